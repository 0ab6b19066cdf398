//! Templates and texts with placeholders: `{$gt0009}`, `{$gt0009.magnitude}`, `{$gt0009.all}`. For
//! the code of a binding, `.all` yields its instances.

use super::value::{Quantity, Value, integer, round_half_even};
use aqlite_rm::number;
use serde_json::Value as Json;

/// A function that returns the values for a code and the name behind its dot.
type Lookup<'a> = &'a dyn Fn(&str, Option<&str>) -> Vec<Value>;

/// Returns a copy of a resource with its placeholders filled. A text that is one placeholder takes
/// the type of the value, and `all` makes a list. A null value is null in an object and left out of
/// a list.
pub(crate) fn filled(template: &Json, lookup: Lookup) -> Option<Json> {
    match template {
        Json::String(text) => match whole_place(text) {
            Some((code, Some("all"))) => Some(Json::Array(
                lookup(code, Some("all")).iter().map(to_json).collect(),
            )),
            Some((code, attribute)) => lookup(code, attribute).last().map(to_json),
            None => Some(Json::String(filled_text(text, Missing::Kept, lookup))),
        },
        Json::Array(items) => Some(Json::Array(
            items.iter().flat_map(|i| spread(i, lookup)).collect(),
        )),
        Json::Object(members) => Some(Json::Object(
            members
                .iter()
                .map(|(name, v)| (name.clone(), filled(v, lookup).unwrap_or(Json::Null)))
                .collect(),
        )),
        other => Some(other.clone()),
    }
}

/// Fills an element of a list. A placeholder with `all` becomes several elements.
fn spread(item: &Json, lookup: Lookup) -> Vec<Json> {
    match item.as_str().and_then(whole_place) {
        Some((code, Some("all"))) => lookup(code, Some("all")).iter().map(to_json).collect(),
        _ => filled(item, lookup).into_iter().collect(),
    }
}

/// The text in place of a placeholder whose variable has no value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The placeholder. A resource shows that it is incomplete.
    Kept,
    /// Nothing.
    Empty,
}

/// Returns a text with its placeholders filled.
pub(crate) fn filled_text(text: &str, missing: Missing, lookup: Lookup) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("{$") {
        out.push_str(before);
        let place = from
            .split_once('}')
            .and_then(|(inner, after)| Some((inner, split(inner)?, after)));
        let Some((inner, (code, attribute), after)) = place else {
            out.push_str("{$");
            rest = from;
            continue;
        };
        match lookup(code, attribute).last() {
            Some(value) => out.push_str(&readable(value)),
            None if missing == Missing::Empty => {}
            None => out.extend(["{$", inner, "}"]),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns code and attribute of a text that is exactly one placeholder.
fn whole_place(text: &str) -> Option<(&str, Option<&str>)> {
    split(text.strip_prefix("{$")?.strip_suffix('}')?)
}

/// Splits `gt0009.magnitude`, `gt0009|label|.magnitude` or `gt0002.1` into code and attribute. A
/// word behind the last dot is the attribute.
fn split(inner: &str) -> Option<(&str, Option<&str>)> {
    let (rest, code) = super::expr::token::code(inner).ok()?;
    let rest = super::expr::token::label(rest).map_or(rest, |(rest, _)| rest);
    match rest {
        "" => Some((code, None)),
        _ => super::expr::token::attribute(rest)
            .ok()
            .filter(|(rest, _)| rest.is_empty())
            .map(|(_, a)| (code, Some(a))),
    }
}

/// Converts a value to plain JSON: numbers and booleans as such, everything else as text.
pub(crate) fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Boolean(b) => Json::Bool(*b),
        Value::Object(o) => o.as_ref().clone(),
        Value::Number(_)
        | Value::Millis(_)
        | Value::Span(_)
        | Value::Count(_)
        | Value::Quantity(_) => value.number().map_or(Json::Null, json_number),
        other => Json::String(readable(other)),
    }
}

/// Converts a number to JSON: whole numbers without fraction.
pub(crate) fn json_number(n: f64) -> Json {
    match integer(n) {
        Some(i) if n.fract() == 0.0 => Json::from(i),
        _ => Json::from(n),
    }
}

/// Prints a value for people: decimals by its precision, units behind a space.
pub(crate) fn readable(value: &Value) -> String {
    match value {
        Value::Number(n) | Value::Millis(n) | Value::Span(n) => decimal(*n, None),
        Value::Count(n) => n.to_string(),
        Value::Quantity(q) if q.unit.is_empty() => magnitude(q),
        Value::Quantity(q) => format!("{} {}", magnitude(q), q.unit),
        other => super::calc::shown(other),
    }
}

/// Prints the magnitude of a quantity, in every text of a run in the same way.
///
/// A precision above 0 determines the decimals, because stored quantities are rounded to it. A
/// quantity of precision 0 or of unknown precision keeps its value, so all of its digits are
/// printed: 42.5 must not appear as 42 in a card while rules compare 42.5.
pub(crate) fn magnitude(quantity: &Quantity) -> String {
    decimal(quantity.magnitude, quantity.precision.filter(|p| *p > 0))
}

/// Prints a number with this precision, or else with the fewest digits that identify it.
pub(crate) fn decimal(n: f64, precision: Option<u8>) -> String {
    match precision {
        _ if n.is_infinite() => String::from(if n < 0.0 { "-∞" } else { "∞" }),
        Some(p) => number::fixed(round_half_even(n, p), usize::from(p)),
        None => number::shortest(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lookup(code: &str, attribute: Option<&str>) -> Vec<Value> {
        match (code, attribute) {
            ("gt0001", None) => vec![Value::Number(80.0)],
            ("gt0001", Some("all")) => vec![Value::Number(1.0), Value::Number(2.5)],
            ("gt0002", _) => vec![Value::text("x")],
            _ => Vec::new(),
        }
    }

    #[test]
    fn texts_print_the_value_that_rules_compare() {
        for (precision, expected) in [(None, "42.5"), (Some(0), "42.5"), (Some(2), "42.50")] {
            let quantity = Value::Quantity(Quantity {
                magnitude: 42.5,
                unit: "kg".into(),
                precision,
            });
            assert_eq!(readable(&quantity), format!("{expected} kg"));
            assert_eq!(crate::calc::shown(&quantity), format!("{expected},kg"));
        }
    }

    #[test]
    fn places_take_values() {
        let template = json!({"a": "{$gt0001}", "b": "{$gt0001}mg daily", "c": ["{$gt0001.all}", "{$gt9}"], "d": "{$gt9}", "e": ["{$gt0002.value}"]});
        let expected = json!({"a": 80, "b": "80mg daily", "c": [1, 2.5], "d": null, "e": ["x"]});
        assert_eq!(filled(&template, &lookup), Some(expected));
        assert_eq!(
            filled_text("a {$gt9} {$ b {$gt0002", Missing::Kept, &lookup),
            "a {$gt9} {$ b {$gt0002"
        );
        assert_eq!(
            filled_text("a{$gt9} {$gt0002}", Missing::Empty, &lookup),
            "a x"
        );
    }
}
