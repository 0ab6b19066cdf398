//! Hints for unexpected words: the AQL form for habits from SQL, and from older and newer AQL.

use super::expected::Expected;
use super::token::TokenKind as K;
use super::vocabulary::{Clause, Keyword as W};
use aqlite_rm::class::Cls;

/// An unexpected token with its surroundings.
pub(crate) struct Unexpected<'a> {
    /// The text of the token, in lower case.
    pub word: &'a str,
    /// The kind of the token.
    pub kind: K,
    /// The kind of the token before it.
    pub before: Option<K>,
    /// The clause of the token; `None` at the start of the text.
    pub clause: Option<Clause>,
    /// The alternatives of the grammar.
    pub expected: &'a [Expected],
}

/// Returns a line of help, if one is known that helps more than the list of alternatives.
pub(crate) fn hint(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    of_not(unexpected)
        .or_else(|| by_word(unexpected))
        .or_else(|| by_clause(unexpected))
        .or_else(|| by_kind(unexpected))
}

/// Returns the hint for NOT at a wrong place.
fn of_not(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    let is_inside = unexpected.expected.contains(&Expected::Predicate);
    (unexpected.word == "not").then_some(match unexpected.clause {
        _ if is_inside => "NOT is not allowed in brackets: use `!=`, or a condition of WHERE",
        Some(Clause::From) => "write NOT between a class and CONTAINS: `A NOT CONTAINS B`",
        _ => "write NOT before the whole condition: `NOT path LIKE 'x*'`",
    })
}

/// Returns the hint for a text, with the token before it.
fn by_word(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    let mut hints = WORDS.iter();
    let found = hints.find(|hint| {
        hint.words.contains(&unexpected.word)
            && (hint.before.is_empty()
                || unexpected
                    .before
                    .is_some_and(|kind| hint.before.contains(&kind)))
    });
    found.map(|hint| hint.text)
}

/// The hint for some words, with the token before them.
struct WordHint {
    words: &'static [&'static str],
    /// The kinds of the token before the word; any, if there are none.
    before: &'static [K],
    text: &'static str,
}

const fn word_hint(
    words: &'static [&'static str],
    before: &'static [K],
    text: &'static str,
) -> WordHint {
    WordHint {
        words,
        before,
        text,
    }
}

/// The hints for words. The first that fits is shown.
#[rustfmt::skip]
const WORDS: [WordHint; 18] = [
    word_hint(&["fetch"], &[], "rows are limited by `LIMIT n OFFSET m`, or by `fetch` of the request"),
    word_hint(&["offset"], &[], "OFFSET is allowed behind LIMIT only: `LIMIT n OFFSET m`"),
    word_hint(&["timewindow"], &[], "TIMEWINDOW was removed from AQL: compare a time in WHERE"),
    word_hint(&["group", "having"], &[], "columns without an aggregate function are the groups; there is no GROUP BY"),
    word_hint(&["union", "let", "join"], &[], "AQL has one SELECT, FROM, WHERE, ORDER BY and LIMIT"),
    word_hint(&["between"], &[], "write `path >= low AND path <= high`"),
    word_hint(&["in"], &[], "membership in a list is written `path matches {'a', 'b'}`"),
    word_hint(&["is"], &[], "whether a path has data is asked by `EXISTS path` or `NOT EXISTS path`"),
    word_hint(&["*"], &[K::Keyword(W::Select)], "name the columns; `COUNT(*)` counts rows"),
    word_hint(&["*"], &[K::Keyword(W::Distinct)], "`COUNT(DISTINCT path)` counts different values, `COUNT(*)` rows"),
    word_hint(&["distinct"], &[K::Sign('(')], "DISTINCT is allowed in COUNT only"),
    word_hint(&["distinct"], &[], "write DISTINCT directly behind SELECT"),
    word_hint(&["/"], &[K::Sign('/')], "write one `/` between two steps; a comment starts with `--` and a space"),
    word_hint(&["exists"], &[K::Sign('[')], "EXISTS is allowed in WHERE only"),
    word_hint(&["("], &[K::Sign('[')], "there are no parentheses in brackets; AND binds tighter than OR"),
    word_hint(&["-"], &[K::Integer], "a date is a string: `'2019-05-01'`"),
    word_hint(&["-"], &[K::Identifier], "a name has letters, digits and `_`; AQL has no arithmetic"),
    word_hint(&["from"], &[K::Sign(',')], "there is a comma too many"),
];

/// Returns the hint for a text that is a mistake in one clause only.
fn by_clause(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    let word = |word: W| unexpected.expected.contains(&Expected::Word(word));
    let is_class = Cls::parse_any_case(unexpected.word).is_some();
    let is_name = unexpected.kind == K::Identifier;
    let behind_name = unexpected.before == Some(K::Identifier);
    let behind_bracket = matches!(unexpected.before, Some(K::Sign(']' | ')')));
    match unexpected.clause? {
        _ if unexpected.before == Some(K::Sign('{')) && is_class => Some(
            "constraints of archetypes do not stand in AQL: compare an attribute, such as `path/magnitude >= 5`",
        ),
        _ if unexpected.word == "," && unexpected.expected.contains(&Expected::Sign(']')) => {
            Some("predicates are joined by AND: `[at0004 AND name/value = 'a']`")
        }
        Clause::From if unexpected.word == "," => {
            Some("classes are joined by CONTAINS, AND and OR")
        }
        Clause::From if unexpected.word == "<" && behind_name => {
            Some("a class is named without type parameters: `DV_INTERVAL`")
        }
        Clause::Where if behind_name && is_name && word(W::And) => {
            Some("write a text in quotes: `path = 'two words'`")
        }
        Clause::Select if (behind_name || behind_bracket) && is_class => {
            Some("write FROM before the classes")
        }
        Clause::Select if is_name && word(W::As) => Some("write a column's name behind AS"),
        _ => None,
    }
}

/// Returns the hint for a kind of token, with the token before it.
fn by_kind(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    let literal = matches!(unexpected.kind, K::Text | K::Integer | K::Real | K::Boolean);
    Some(match (unexpected.before, unexpected.kind) {
        (Some(K::Keyword(W::Matches)), K::Parameter) => {
            "write a parameter behind MATCHES in braces: `matches {$list}`"
        }
        (Some(K::Keyword(W::Limit | W::Offset | W::Top)), _) => {
            "the number is written out; `fetch` and `offset` of the request take any"
        }
        (Some(K::Text), K::Text) => "a quote inside a string is written `\\'`",
        (Some(K::Sign('[')), K::Integer) => {
            "there are no positions in brackets; name the node by its code or its name"
        }
        (_, K::Parameter)
            if unexpected
                .expected
                .contains(&Expected::Word(W::LatestVersion)) =>
        {
            "a version has no node id: write LATEST_VERSION, ALL_VERSIONS or a comparison"
        }
        (_, K::Parameter) if unexpected.clause != Some(Clause::Where) => {
            "parameters stand for values in WHERE and in predicates only"
        }
        (_, K::Parameter) => {
            "the left side of a comparison is a path or a function; turn the comparison round"
        }
        (_, K::Regex) => {
            "regular expressions stand in brackets only; in WHERE use LIKE with `*` and `?`"
        }
        (Some(K::Comparison), K::Code) => "write a code in quotes: `'at0004'`",
        (_, K::Code) => "a word such as `at1` or `id1` is a node code and cannot be a name",
        (_, K::Keyword(W::Matches | W::Like)) if unexpected.expected == [Expected::Comparison] => {
            "MATCHES and LIKE have a path on their left"
        }
        (_, K::End) if unexpected.expected == [Expected::Comparison] => {
            "a function of truth is compared too: `… = true`"
        }
        (_, K::Keyword(_))
            if unexpected
                .expected
                .iter()
                .any(|e| e.is_terminology_argument()) =>
        {
            "TERMINOLOGY takes three strings"
        }
        (_, K::Keyword(_)) if unexpected.expected == [Expected::Path] => {
            "an aggregate function takes a path"
        }
        (_, K::Keyword(W::Contains)) => return None,
        (_, K::Keyword(W::Aggregate(_))) if unexpected.clause == Some(Clause::Where) => {
            "aggregate functions are allowed in SELECT only"
        }
        (_, K::Keyword(word))
            if word.is_function() && unexpected.clause == Some(Clause::OrderBy) =>
        {
            "ORDER BY takes paths and aliases; give the function an alias in SELECT"
        }
        (_, K::Keyword(word)) if word.is_function() => "it is a reserved word and cannot be a name",
        (Some(K::Keyword(W::And | W::Or)), _) if literal => {
            "repeat the path: `path = 'a' OR path = 'b'`; the left side is a path or a function"
        }
        (Some(K::Keyword(W::Where | W::Not)), _) if literal => {
            "the left side of a comparison is a path or a function; turn the comparison round"
        }
        _ => return None,
    })
}
