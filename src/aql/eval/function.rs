//! Single-row functions (AQL § 3.9.2–3.9.4): NULL in, NULL out; positions count characters from 1.

use super::value::Value;
use crate::aql::query::Function;

/// Calls a function; a wrong type or an impossible argument gives NULL.
pub(super) fn call<'a>(function: Function, arguments: &[Value<'a>], now: &str) -> Value<'a> {
    evaluate(function, arguments, now).unwrap_or(Value::Null)
}

fn evaluate<'a>(function: Function, arguments: &[Value<'a>], now: &str) -> Option<Value<'a>> {
    let text = |i: usize| arguments.get(i).and_then(printed);
    let number = |i: usize| arguments.get(i).and_then(Value::as_number);
    let value = match function {
        Function::Length => Value::Number(text(0)?.chars().count() as f64),
        Function::Contains => Value::Boolean(text(0)?.contains(&text(1)?)),
        Function::Position => Value::Number(position(&text(0)?, &text(1)?)),
        Function::Substring => Value::Text(substring(&text(0)?, number(1)?, if arguments.len() > 2 { Some(number(2)?) } else { None }).into()),
        Function::Concat => Value::Text((0..arguments.len()).map(text).collect::<Option<String>>()?.into()),
        Function::ConcatWs => Value::Text((1..arguments.len()).filter_map(text).collect::<Vec<_>>().join(&text(0)?).into()),
        Function::Abs => finite(number(0)?.abs())?,
        Function::Mod => finite(number(0)? % number(1)?)?,
        Function::Ceil => finite(number(0)?.ceil())?,
        Function::Floor => finite(number(0)?.floor())?,
        Function::Round => finite(round(number(0)?, if arguments.len() > 1 { number(1)? } else { 0.0 }))?,
        Function::CurrentDate => Value::Text(now.get(..10)?.to_owned().into()),
        Function::CurrentTime => Value::Text(now.get(11..19)?.to_owned().into()),
        Function::CurrentDateTime => Value::Text(now.to_owned().into()),
        Function::CurrentTimezone => Value::Text(zone(now).to_owned().into()),
    };
    Some(value)
}

fn finite<'a>(number: f64) -> Option<Value<'a>> {
    number.is_finite().then_some(Value::Number(number))
}

/// A value as text, as CONCAT and its kin take it.
fn printed(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        other => other.as_text().map(str::to_owned),
    }
}

/// Where a text stands in another, from 1; 0 when it does not.
fn position(part: &str, text: &str) -> f64 {
    text.find(part).map_or(0.0, |at| (text.chars().count() - text.get(at..).map_or(0, |rest| rest.chars().count()) + 1) as f64)
}

/// Characters from a position on; what lies before the text or behind it is empty.
fn substring(text: &str, from: f64, length: Option<f64>) -> String {
    let first = from.floor();
    let end = length.map_or(f64::INFINITY, |l| first + l.floor());
    (1u32..).map(f64::from).zip(text.chars()).filter(|(i, _)| *i >= first && *i < end).map(|(_, c)| c).collect()
}

/// Half away from zero, to a number of decimals (negative: tens, hundreds).
fn round(number: f64, decimals: f64) -> f64 {
    let decimals = decimals.clamp(-300.0, 300.0) as i32;
    if decimals > 15 {
        return number;
    }
    let factor = 10f64.powi(decimals.abs());
    if decimals < 0 { (number / factor).round() * factor } else { (number * factor).round() / factor }
}

fn zone(now: &str) -> &str {
    let tail = now.get(19..).unwrap_or_default();
    tail.find(['Z', '+', '-']).and_then(|at| tail.get(at..)).unwrap_or("Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(function: Function, arguments: &[Value<'_>]) -> Option<f64> {
        call(function, arguments, "2026-01-02T03:04:05.678+01:00").as_number()
    }

    #[test]
    fn positions_count_characters() {
        assert_eq!(position("ß", "aßc"), 2.0);
        assert_eq!(position("x", "abc"), 0.0);
        assert_eq!(substring("äöüß", 2.0, Some(2.0)), "öü");
        assert_eq!(substring("abc", -1.0, Some(3.0)), "a");
    }

    #[test]
    fn null_in_null_out() {
        assert_eq!(number(Function::Length, &[Value::Null]), None);
        assert_eq!(number(Function::Mod, &[Value::Number(1.0), Value::Number(0.0)]), None);
        assert_eq!(number(Function::Round, &[Value::Number(2.345), Value::Number(1.0)]), Some(2.3));
    }
}
