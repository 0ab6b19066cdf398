//! Hints for unexpected words: the AQL form for habits from SQL, and from older and newer AQL.

use super::expected::Expected;
use super::token::TokenKind;
use super::vocabulary::{Clause, Keyword};
use aqlite_rm::class::Cls;

/// An unexpected token with its surroundings.
pub(crate) struct Unexpected<'a> {
    /// The text of the token, in lower case.
    pub word: &'a str,
    /// The kind of the token.
    pub kind: TokenKind,
    /// The kind of the token before it.
    pub before: Option<TokenKind>,
    /// The clause of the token; `None` at the start of the text.
    pub clause: Option<Clause>,
    /// The alternatives of the grammar.
    pub expected: &'a [Expected],
}

/// Returns a line of help, if one is known that helps more than the list of alternatives.
pub(crate) fn hint(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    by_word(unexpected)
        .or_else(|| by_clause(unexpected))
        .or_else(|| by_kind(unexpected))
}

/// Returns the hint for a text, with the token before it.
fn by_word(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    use Keyword as W;
    use TokenKind as K;
    Some(match (unexpected.word, unexpected.before) {
        ("fetch", _) => "rows are limited by `LIMIT n OFFSET m`, or by `fetch` of the request",
        ("offset", _) => "OFFSET stands behind LIMIT only: `LIMIT n OFFSET m`",
        ("timewindow", _) => "TIMEWINDOW was removed from AQL: compare a time in WHERE",
        ("group" | "having", _) => {
            "columns without an aggregate function are the groups; there is no GROUP BY"
        }
        ("union" | "let" | "join", _) => "AQL has one SELECT, FROM, WHERE, ORDER BY and LIMIT",
        ("between", _) => "write `path >= low AND path <= high`",
        ("in", _) => "membership in a list is written `path matches {'a', 'b'}`",
        ("is", _) => "whether a path has data is asked by `EXISTS path` or `NOT EXISTS path`",
        ("not", Some(K::Keyword(W::Contains | W::And | W::Or))) => {
            "NOT stands between a class and CONTAINS: `A NOT CONTAINS B`"
        }
        ("not", _) => "NOT stands before the whole condition: `NOT path LIKE 'x*'`",
        ("*", Some(K::Keyword(W::Select))) => "name the columns; `COUNT(*)` counts rows",
        ("*", Some(K::Keyword(W::Distinct))) => {
            "`COUNT(DISTINCT path)` counts different values, `COUNT(*)` rows"
        }
        ("distinct", Some(K::Sign('('))) => "DISTINCT stands in COUNT only",
        ("distinct", _) => "DISTINCT stands directly behind SELECT",
        ("/", Some(K::Sign('/'))) => {
            "one `/` stands between two steps; a comment starts with `--` and a space"
        }
        ("exists", Some(K::Sign('['))) => "EXISTS stands in WHERE only",
        ("(", Some(K::Sign('['))) => {
            "there are no parentheses in brackets; AND binds tighter than OR"
        }
        ("-", Some(K::Integer)) => "a date is a string: `'2019-05-01'`",
        ("-", Some(K::Identifier)) => "a name has letters, digits and `_`; AQL has no arithmetic",
        ("from", Some(K::Sign(','))) => "there is a comma too many",
        _ => return None,
    })
}

/// Returns the hint for a text that is a mistake in one clause only.
fn by_clause(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    use Keyword as W;
    use TokenKind as K;
    let in_select = unexpected.clause == Some(Clause::Select);
    Some(match (unexpected.word, unexpected.before) {
        (",", _) if unexpected.clause == Some(Clause::From) => {
            "classes are joined by CONTAINS, AND and OR"
        }
        (_, Some(K::Sign('{'))) if Cls::parse_any_case(unexpected.word).is_some() => {
            "constraints of archetypes do not stand in AQL: compare an attribute, such as `path/magnitude >= 5`"
        }
        (_, Some(K::Identifier))
            if unexpected.kind == K::Identifier
                && unexpected.expected.contains(&Expected::Word(W::And))
                && unexpected.clause == Some(Clause::Where) =>
        {
            "a text stands in quotes: `path = 'two words'`"
        }
        ("<", Some(K::Identifier)) if unexpected.clause == Some(Clause::From) => {
            "a class is named without type parameters: `DV_INTERVAL`"
        }
        (_, Some(K::Identifier | K::Sign(']' | ')')))
            if in_select && Cls::parse_any_case(unexpected.word).is_some() =>
        {
            "FROM stands before the classes"
        }
        (_, _)
            if in_select
                && unexpected.kind == K::Identifier
                && unexpected.expected.contains(&Expected::Word(W::As)) =>
        {
            "a column's name stands behind AS"
        }
        _ => return None,
    })
}

/// Returns the hint for a kind of token, with the token before it.
fn by_kind(unexpected: &Unexpected<'_>) -> Option<&'static str> {
    use Keyword as W;
    use TokenKind as K;
    let literal = matches!(unexpected.kind, K::Text | K::Integer | K::Real | K::Boolean);
    Some(match (unexpected.before, unexpected.kind) {
        (Some(K::Keyword(W::Matches)), K::Parameter) => {
            "a parameter behind MATCHES stands in braces: `matches {$list}`"
        }
        (Some(K::Keyword(W::Limit | W::Offset | W::Top)), _) => {
            "the number is written out; `fetch` and `offset` of the request take any"
        }
        (Some(K::Text), K::Text) => "a quote inside a string is written `\\'`",
        (Some(K::Sign('[')), K::Integer) => {
            "there are no positions in brackets; name the node by its code or its name"
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
        (_, K::Keyword(word))
            if word.is_function() && unexpected.clause == Some(Clause::OrderBy) =>
        {
            "ORDER BY takes paths and aliases; give the function an alias in SELECT"
        }
        (_, K::Keyword(word)) if word.is_function() => "it is a reserved word and cannot be a name",
        (Some(K::Keyword(W::Where | W::And | W::Or | W::Not)), _) if literal => {
            "the left side of a comparison is a path or a function; turn the comparison round"
        }
        _ => return None,
    })
}
