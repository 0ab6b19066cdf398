//! The text of a query as executed: with the values of its parameters.
//!
//! A text such as `5` of a parameter also compares with numbers. AQL has no such literal, so it is
//! written as a number where the attribute is a number in every class, otherwise as a text.

use crate::check::{MAX_NUMBER, Parameter, Parameters};
use crate::token::{Token, TokenKind, is_number, tokens};
use crate::vocabulary::Keyword;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Span;

/// Bytes of an executed query after which placeholders are not replaced.
const MAX_EXECUTED: usize = 1_000_000;

/// Returns a query with the values of its parameters.
pub fn executed(text: &str, parameters: &Parameters) -> String {
    let mut words = tokens(text).0;
    words.retain(|word| word.kind != TokenKind::Comment);
    let query = ParameterizedText {
        text,
        words,
        parameters,
    };
    query.filled()
}

struct ParameterizedText<'a> {
    text: &'a str,
    words: Vec<Token>,
    parameters: &'a Parameters,
}

impl ParameterizedText<'_> {
    /// Returns the text with the values.
    fn filled(&self) -> String {
        let text = |span: Span| self.text.get(span.start..span.end).unwrap_or_default();
        let (mut out, mut at, mut depth) = (String::new(), 0, 0);
        for (i, word) in self.words.iter().enumerate() {
            match word.kind {
                TokenKind::Sign('[') => depth += 1,
                TokenKind::Sign(']') => depth -= 1,
                TokenKind::Parameter => {}
                _ => continue,
            }
            let name = text(word.span).trim_start_matches('$');
            // Bounds the text: a query may name a long value a thousand times.
            let value = self.parameters.get(name);
            if let Some(value) = value.filter(|_| out.len() < MAX_EXECUTED) {
                out += text(Span::new(at, word.span.start));
                out += &self.value(value, i, depth > 0);
                at = word.span.end;
            }
        }
        out + text(Span::new(at, self.text.len()))
    }

    /// Returns the value of the parameter that is a word of the text.
    fn value(&self, value: &Parameter, at: usize, is_inside: bool) -> String {
        let before = |count| self.words.get(at.checked_sub(count)?);
        let kind = before(1).map(|word| word.kind);
        match (value, kind) {
            // The id of a node.
            (
                Parameter::Text(id) | Parameter::Untyped(id),
                Some(TokenKind::Sign('[') | TokenKind::Keyword(_)),
            ) if is_inside => id.clone(),
            (Parameter::Number(text), Some(TokenKind::Keyword(Keyword::Like))) => quoted(text),
            (_, Some(TokenKind::Keyword(Keyword::Like))) => literal(value, false),
            (_, Some(TokenKind::Comparison)) => {
                let attribute = before(2).map(|word| word.span);
                let attribute = attribute.and_then(|at| self.text.get(at.start..at.end));
                let known = attribute.and_then(is_of_numbers);
                literal(value, known == Some(true))
            }
            _ => literal(value, false),
        }
    }
}

/// Returns whether an attribute is a number in every class, or in none; `None` if that differs.
fn is_of_numbers(attribute: &str) -> Option<bool> {
    let attribute = Attr::parse(attribute)?;
    let mut types = Cls::all().filter_map(|class| Some(class.attr(attribute)?.ty));
    let is_number = |class| matches!(class, Cls::INTEGER | Cls::INTEGER64 | Cls::REAL);
    let first = is_number(types.next()?);
    let is_text = |class: Cls| class.is_primitive() && class != Cls::BOOLEAN && !is_number(class);
    types
        .all(|class| match first {
            true => is_number(class),
            false => is_text(class),
        })
        .then_some(first)
}

/// Returns a value as AQL writes it. `is_number_wanted` writes a text that is a number as such.
fn literal(value: &Parameter, is_number_wanted: bool) -> String {
    match value {
        Parameter::Null => String::from("NULL"),
        Parameter::Boolean(value) => value.to_string(),
        Parameter::Number(text) => text.clone(),
        Parameter::Text(text) | Parameter::Untyped(text) => {
            let number = text.trim();
            match is_number_wanted && is_number(number) && text.len() <= MAX_NUMBER {
                true => number.to_owned(),
                false => quoted(text),
            }
        }
        // The grammar has no empty list, and NULL equals nothing.
        Parameter::List(values) if values.is_empty() => literal(&Parameter::Null, is_number_wanted),
        Parameter::List(values) => {
            let values: Vec<String> = values
                .iter()
                .map(|v| literal(v, is_number_wanted))
                .collect();
            values.join(", ")
        }
    }
}

/// Returns a text as a literal.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_not_repeated_without_end() {
        let long = Parameter::Text("x".repeat(600_000));
        let parameters = Parameters::from([(String::from("a"), long)]);
        let executed_text = executed(&["x = $a"; 900].join(" AND "), &parameters);
        assert!(executed_text.len() < 2_000_000 && executed_text.ends_with("x = $a"));
        // A name is read once, not from each of its letters.
        let word = format!("SELECT {} FROM EHR e", "a".repeat(250_000));
        assert_eq!(executed(&word, &parameters), word);
    }

    #[test]
    fn placeholders_are_replaced_where_aql_has_them() {
        let text = |text: &str| Parameter::Text(String::from(text));
        let parameters = Parameters::from([
            (String::from("a"), text("it's")),
            (String::from("id"), text("at0010")),
            (String::from("five"), text("5")),
            (String::from("yes"), text("true")),
            (String::from("n"), Parameter::Number(String::from("1.50"))),
            (String::from("none"), Parameter::List(Vec::new())),
            (
                String::from("list"),
                Parameter::List(vec![Parameter::Number(String::from("5")), text("37")]),
            ),
        ]);
        for (condition, expected) in [
            ("x/name/value = $a", r"x/name/value = 'it\'s'"),
            ("x/name/value = '$a' -- $a", "x/name/value = '$a' -- $a"),
            (
                "x[$id, $a]/name/value = $ab",
                r"x[at0010, 'it\'s']/name/value = $ab",
            ),
            (
                "x/value[name/value = 'a' AND $id] > $n",
                "x/value[name/value = 'a' AND at0010] > 1.50",
            ),
            ("x/value/magnitude = $five", "x/value/magnitude = 5"),
            ("x/value/units = $five", "x/value/units = '5'"),
            ("x/value/value = $yes", "x/value/value = 'true'"),
            ("x/name/value LIKE $n", "x/name/value LIKE '1.50'"),
            ("x/name/value LIKE $five", "x/name/value LIKE '5'"),
            (
                "x/value matches {$list, 'a'} OR x/name = $n",
                "x/value matches {5, '37', 'a'} OR x/name = 1.50",
            ),
            ("x/value matches {$none}", "x/value matches {NULL}"),
        ] {
            let query = |condition| format!("SELECT x FROM ELEMENT x[$id] WHERE {condition}");
            let expected = query(expected).replace("x[$id] W", "x[at0010] W");
            assert_eq!(executed(&query(condition), &parameters), expected);
        }
    }
}
