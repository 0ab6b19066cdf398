//! The texts of a query that its author chose freely: literals, patterns, names and comments.

use super::token::{Escapes, Token, TokenKind, regex_body, tokens, unescape};
use super::vocabulary::Keyword;

/// The least digits of a number that may be an id. Values and limits have fewer.
const ID_DIGITS: usize = 6;

/// Returns the texts of a query that its author chose freely, with their escapes resolved: string
/// literals, patterns of LIKE and MATCHES, terms, addresses, parameters, variables, aliases, comments,
/// and numbers of at least six digits. Words of the language, classes, attributes, node ids and
/// archetype ids are left out: the model fixes them. The text need not be a valid query.
///
/// # Examples
/// ```
/// let texts = aqlite_aql::author_texts(r"SELECT c AS x FROM COMPOSITION c WHERE c/uid = '\u0061'");
/// assert_eq!(texts, ["c", "x", "c", "c", "a"]);
/// ```
pub fn author_texts(aql: &str) -> Vec<String> {
    let (all, _) = tokens(aql);
    let all = all.into_iter().filter(|token| token.kind != TokenKind::End);
    let all: Vec<Token> = all.collect();
    let mut out = Vec::new();
    for (index, token) in all.iter().enumerate() {
        let raw = aql.get(token.span.start..token.span.end);
        let raw = raw.unwrap_or_default();
        let before = index.checked_sub(1).and_then(|index| all.get(index));
        match token.kind {
            TokenKind::Text => out.push(unescape(raw, Escapes::Text).0),
            TokenKind::Regex => {
                // A backslash makes the next sign literal. Both readings are texts.
                out.push(regex_body(raw).replace('\\', ""));
                out.push(raw.to_owned());
            }
            TokenKind::Identifier if is_chosen(before) => out.push(raw.to_owned()),
            TokenKind::Integer | TokenKind::Real if raw.len() >= ID_DIGITS => {
                out.push(raw.to_owned());
            }
            TokenKind::Term
            | TokenKind::Uri
            | TokenKind::Parameter
            | TokenKind::Comment
            | TokenKind::Invalid => out.push(raw.to_owned()),
            _ => {}
        }
    }
    out
}

/// Returns whether a name behind a token is chosen by the author: no attribute, and no class.
fn is_chosen(before: Option<&Token>) -> bool {
    match before.map(|token| token.kind) {
        Some(TokenKind::Sign('/' | '[')) => false,
        Some(TokenKind::Keyword(keyword)) => !matches!(keyword, Keyword::From | Keyword::Contains),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::author_texts;

    #[test]
    fn texts_are_those_that_the_author_chose() {
        let aql = r#"SELECT c/name/value AS pat1 -- of p2
 FROM EHR e CONTAINS COMPOSITION c[openEHR-EHR-COMPOSITION.encounter.v1]
 WHERE c/uid/value LIKE 'pat\u002d3*' AND c/name/value matches {"p4", 'p\'5'}
 AND c/context/location = $p6 AND c/content[at0001, 'p7']/x > 140 AND c/y != 1234567
 AND c/z[name/value matches {/p\-8/}]/v matches {terminology://p9}"#;
        let texts = author_texts(aql);
        for chosen in [
            "pat1", "-- of p2", "pat-3*", "p4", "p'5", "$p6", "p7", "1234567", "p-8",
        ] {
            assert!(
                texts.iter().any(|text| text == chosen),
                "{chosen}: {texts:?}"
            );
        }
        assert!(texts.iter().any(|text| text.contains("p9")), "{texts:?}");
        for fixed in ["name", "value", "COMPOSITION", "EHR", "at0001", "140"] {
            assert!(
                !texts.iter().any(|text| text == fixed),
                "{fixed}: {texts:?}"
            );
        }
    }
}
