//! The text of a query as executed: with the values of its parameters.
//!
//! A text such as `5` of a parameter also compares with numbers. AQL has no such literal, so its
//! condition is written twice, with the text and with the number.

use crate::ast::Condition;
use crate::check::{MAX_NUMBER, Parameter, Parameters};
use crate::parse::parse;
use crate::print::condition_span;
use crate::token::{Token, TokenKind, is_number, tokens};
use crate::vocabulary::Keyword;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Span;

/// Bytes of an executed query after which placeholders are not replaced.
const MAX_EXECUTED: usize = 1_000_000;

/// Returns a query with the values of its parameters. It has the rows of the query.
pub fn executed(text: &str, parameters: &Parameters) -> String {
    let mut words = tokens(text).0;
    words.retain(|word| word.kind != TokenKind::Comment);
    let query = ParameterizedText {
        text,
        words,
        parameters,
    };
    let mut leaves = Vec::new();
    if let Some(condition) = parse(text).0.and_then(|query| query.condition) {
        add_leaves(&condition, Keyword::Or, &mut leaves);
    }
    let (mut out, mut at) = (String::new(), 0);
    for (leaf, word) in leaves {
        let leaf = query.with_brace(leaf);
        out += &query.filled(Span::new(at, leaf.start), false, out.len());
        let plain = query.filled(leaf, false, out.len());
        let typed = query.filled(leaf, true, out.len());
        out += &match plain == typed {
            true => plain,
            false => format!("({plain} {} {typed})", word.text()),
        };
        at = leaf.end;
    }
    out += &query.filled(Span::new(at, text.len()), false, out.len());
    out
}

/// Collects the conditions without connectives, each with the word that joins its two forms.
///
/// Only true conditions have rows. So one of two forms must be true, and below NOT one must be
/// false.
fn add_leaves(condition: &Condition, word: Keyword, leaves: &mut Vec<(Span, Keyword)>) {
    match condition {
        Condition::And(all) | Condition::Or(all) => {
            all.iter().for_each(|inner| add_leaves(inner, word, leaves));
        }
        Condition::Not(inner) => {
            let other = match word {
                Keyword::Or => Keyword::And,
                _ => Keyword::Or,
            };
            add_leaves(inner, other, leaves);
        }
        single => leaves.push((condition_span(single), word)),
    }
}

struct ParameterizedText<'a> {
    text: &'a str,
    words: Vec<Token>,
    parameters: &'a Parameters,
}

impl ParameterizedText<'_> {
    /// Returns the position with the brace behind it.
    fn with_brace(&self, span: Span) -> Span {
        let behind = self.words.partition_point(|word| word.span.end <= span.end);
        match self.words.get(behind) {
            Some(word) if word.kind == TokenKind::Sign('}') => span.to(word.span),
            _ => span,
        }
    }

    /// Returns a part of the text with values. `is_typed` writes texts of unknown type as numbers
    /// or booleans, where they are some. `before` is the number of bytes of the parts before.
    fn filled(&self, part: Span, is_typed: bool, before: usize) -> String {
        let text = |span: Span| self.text.get(span.start..span.end).unwrap_or_default();
        let (mut out, mut at, mut depth) = (String::new(), part.start, 0);
        let first = self
            .words
            .partition_point(|word| word.span.start < part.start);
        for (i, word) in self.words.iter().enumerate().skip(first) {
            match word.kind {
                _ if word.span.start >= part.end => break,
                TokenKind::Sign('[') => depth += 1,
                TokenKind::Sign(']') => depth -= 1,
                TokenKind::Parameter => {}
                _ => continue,
            }
            let name = text(word.span).trim_start_matches('$');
            // Bounds the text: a query may name a long value a thousand times.
            let is_short = before + out.len() < MAX_EXECUTED;
            if let Some(value) = self.parameters.get(name).filter(|_| is_short) {
                out += text(Span::new(at, word.span.start));
                out += &self.value(value, i, depth > 0, is_typed);
                at = word.span.end;
            }
        }
        out + text(Span::new(at, part.end))
    }

    /// Returns the value of the parameter that is a word of the text.
    fn value(&self, value: &Parameter, at: usize, is_inside: bool, is_typed: bool) -> String {
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
                literal(value, known.unwrap_or(is_typed && !is_inside))
            }
            _ => literal(value, is_typed && !is_inside),
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

/// Returns a value as AQL writes it. `is_typed` writes a text that is a number or boolean as such.
fn literal(value: &Parameter, is_typed: bool) -> String {
    match value {
        Parameter::Null => String::from("NULL"),
        Parameter::Boolean(value) => value.to_string(),
        Parameter::Number(text) => text.clone(),
        Parameter::Text(text) | Parameter::Untyped(text) => {
            let word = text.trim();
            let is_word =
                (is_number(word) && text.len() <= MAX_NUMBER) || word.parse::<bool>().is_ok();
            match is_typed && is_word {
                true => word.to_owned(),
                false => quoted(text),
            }
        }
        // The grammar has no empty list, and NULL equals nothing.
        Parameter::List(values) if values.is_empty() => literal(&Parameter::Null, is_typed),
        Parameter::List(values) => {
            let values: Vec<String> = values.iter().map(|v| literal(v, is_typed)).collect();
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
            (
                "x/value/value = $yes",
                "(x/value/value = 'true' OR x/value/value = true)",
            ),
            ("NOT x/value = $five", "NOT (x/value = '5' AND x/value = 5)"),
            (
                "NOT (NOT x/value = $five)",
                "NOT (NOT (x/value = '5' OR x/value = 5))",
            ),
            ("x/name/value LIKE $n", "x/name/value LIKE '1.50'"),
            ("x/name/value LIKE $five", "x/name/value LIKE '5'"),
            (
                "x/value matches {$list, 'a'} OR x/name = $n",
                "(x/value matches {5, '37', 'a'} OR x/value matches {5, 37, 'a'}) OR x/name = 1.50",
            ),
            ("x/value matches {$none}", "x/value matches {NULL}"),
        ] {
            let query = |condition| format!("SELECT x FROM ELEMENT x[$id] WHERE {condition}");
            let expected = query(expected).replace("x[$id] W", "x[at0010] W");
            assert_eq!(executed(&query(condition), &parameters), expected);
        }
    }
}
