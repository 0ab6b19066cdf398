//! Single-row functions (AQL § 3.9.2–3.9.4): NULL in, NULL out; positions count characters from 1.

use super::value::Value;
use super::work::{BYTE, STEP};
use crate::answer::query::{Function, ValueType};
use aqlite_rm::exact::Exact;
use aqlite_rm::time::TemporalKind;
use std::borrow::Cow;

/// Calls a function. The result for a wrong type or an impossible argument is NULL.
pub(super) fn call<'a>(function: Function, arguments: &[Value<'a>], now: &str) -> Value<'a> {
    evaluate(function, arguments, now).unwrap_or(Value::Null)
}

fn evaluate<'a>(function: Function, arguments: &[Value<'a>], now: &str) -> Option<Value<'a>> {
    let text = |i: usize| arguments.get(i).and_then(printed);
    let number = |i: usize| arguments.get(i).and_then(Value::as_number);
    let double = |i: usize| number(i).map(Exact::double);
    let value = match function {
        Function::Length => finite(Exact::from(text(0)?.chars().count() as f64))?,
        Function::Contains => Value::Boolean(text(0)?.contains(&*text(1)?)),
        Function::Position => finite(Exact::from(position(&text(0)?, &text(1)?)))?,
        Function::Substring => Value::Text(
            substring(
                &text(0)?,
                double(1)?,
                // A length that is NULL makes the result NULL. An absent one does not.
                if arguments.len() > 2 {
                    Some(double(2)?)
                } else {
                    None
                },
            )?
            .into(),
        ),
        Function::Concat => Value::Text(
            (0..arguments.len())
                .map(text)
                .collect::<Option<String>>()?
                .into(),
        ),
        Function::ConcatWs => Value::Text(
            // A text that is NULL is left out together with its separator.
            (1..arguments.len())
                .filter_map(text)
                .collect::<Vec<Cow<'_, str>>>()
                .join(&text(0)?)
                .into(),
        ),
        Function::Abs => finite(number(0)?.abs())?,
        Function::Mod => finite(number(0)?.remainder(number(1)?))?,
        Function::Ceil => finite(number(0)?.ceil())?,
        Function::Floor => finite(number(0)?.floor())?,
        Function::Round => {
            let decimals = if arguments.len() > 1 { double(1)? } else { 0.0 };
            // No double has digits beyond these places: the greatest is about 1.8e308, the least
            // 5e-324.
            finite(number(0)?.round(decimals.clamp(-400.0, 400.0) as i32))?
        }
        Function::CurrentDate => Value::Text(now.get(..10)?.to_owned().into()),
        Function::CurrentTime => Value::Text(now.get(11..19)?.to_owned().into()),
        Function::CurrentDateTime | Function::Now => {
            let time = now.strip_suffix(zone(now))?;
            // Hosts measure in microseconds; the text has milliseconds.
            let time = time.get(..MILLISECONDS).unwrap_or(time);
            Value::Text(format!("{time}{}", utc_offset(now)).into())
        }
        Function::CurrentTimezone => Value::Text(utc_offset(now).to_owned().into()),
    };
    Some(value)
}

/// The bytes of a date and time with milliseconds, without a time zone.
const MILLISECONDS: usize = "2026-01-01T00:00:00.000".len();

/// Returns a computed number, or `None` if it is not finite. Zero has no sign.
fn finite<'a>(number: Exact) -> Option<Value<'a>> {
    let is_finite = number.double().is_finite();
    is_finite.then_some(Value::Number(number.without_sign_of_zero()))
}

/// Returns whether an argument is read as a text.
pub(super) fn takes_text(function: Function, argument: usize) -> bool {
    let parameter = function.entry().parameter(argument);
    parameter.is_some_and(|parameter| parameter.value_type == ValueType::Text)
}

/// Converts a value to a text as CONCAT does: a whole duration becomes its length in seconds.
fn printed<'v>(value: &'v Value<'_>) -> Option<Cow<'v, str>> {
    match value {
        Value::Number(number) => Some(number.text().into()),
        Value::Boolean(flag) => Some(flag.to_string().into()),
        Value::TemporalObject(TemporalKind::Duration, _) => {
            value.as_number().map(|number| number.text().into())
        }
        other => other.as_text().map(Cow::Borrowed),
    }
}

/// The units of work of ROUND: it writes and reads two numbers as decimal texts.
const ROUNDING: u64 = 1_024;

/// Returns the units of work of a call with texts of `bytes` bytes. Functions that only search a
/// text read each byte about once; the others copy it.
pub(super) fn units(function: Function, arguments: usize, bytes: usize) -> u64 {
    let bytes = bytes as u64;
    let of_function = match function {
        Function::Length | Function::Contains | Function::Position => bytes / 2,
        Function::Round => ROUNDING,
        _ => bytes * BYTE,
    };
    STEP * (1 + arguments as u64) + of_function
}

/// Returns the position of a text in another, from 1; 0 if it does not occur.
fn position(part: &str, text: &str) -> f64 {
    // `at` counts bytes, and the result counts characters.
    text.find(part).map_or(0.0, |at| {
        (text.chars().count() - text.get(at..).map_or(0, |rest| rest.chars().count()) + 1) as f64
    })
}

/// Returns the characters from a position on, counted from 1; the empty text behind the end.
/// Returns `None` for a position below 1 or a negative length.
fn substring(text: &str, from: f64, length: Option<f64>) -> Option<String> {
    let first = from.floor();
    if first < 1.0 || length.is_some_and(|length| length < 0.0) {
        return None;
    }
    let end = length.map_or(f64::INFINITY, |l| first + l.floor());
    Some(
        (1u32..)
            .map(f64::from)
            .zip(text.chars())
            .filter(|(i, _)| *i >= first && *i < end)
            .map(|(_, c)| c)
            .collect(),
    )
}

/// Returns the offset of a time from UTC as `±hh:mm`.
fn utc_offset(now: &str) -> &str {
    match zone(now) {
        "Z" => "+00:00",
        zone => zone,
    }
}

fn zone(now: &str) -> &str {
    let tail = now.get(19..).unwrap_or_default();
    tail.find(['Z', '+', '-'])
        .and_then(|at| tail.get(at..))
        .unwrap_or("Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(function: Function, arguments: &[Value<'_>]) -> Option<f64> {
        let value = call(function, arguments, "2026-01-02T03:04:05.678+01:00");
        value.as_number().map(Exact::double)
    }

    #[test]
    fn positions_count_characters() {
        assert_eq!(position("ß", "aßc"), 2.0);
        assert_eq!(position("x", "abc"), 0.0);
        assert_eq!(substring("äöüß", 2.0, Some(2.0)).as_deref(), Some("öü"));
        assert_eq!(
            (
                substring("abc", -1.0, Some(3.0)),
                substring("abc", 0.0, None),
                substring("abc", 1.0, Some(-1.0))
            ),
            (None, None, None)
        );
        assert_eq!(
            (
                substring("abc", 4.0, Some(3.0)).as_deref(),
                substring("abc", 1.0, Some(0.0)).as_deref()
            ),
            (Some(""), Some(""))
        );
    }

    #[test]
    fn the_present_time_has_milliseconds() {
        for (now, text) in [
            (
                "2026-01-02T03:04:05.678912+01:00",
                "2026-01-02T03:04:05.678+01:00",
            ),
            ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678+00:00"),
        ] {
            let value = call(Function::Now, &[], now);
            assert_eq!(value.as_text(), Some(text));
        }
    }

    #[test]
    fn results_have_the_declared_types() {
        for function in Function::ALL {
            let entry = function.entry();
            let sample = |value_type: ValueType| match value_type {
                ValueType::Text => Value::Text("abc".into()),
                ValueType::Number => Value::Number(2.0.into()),
                ValueType::Boolean => Value::Boolean(true),
                ValueType::Any => Value::Null,
            };
            let arguments: Vec<Value<'_>> = entry
                .parameters
                .iter()
                .map(|p| sample(p.value_type))
                .collect();
            let found = match call(*function, &arguments, "2026-01-02T03:04:05.678+01:00") {
                Value::Text(_) => ValueType::Text,
                Value::Number(_) => ValueType::Number,
                Value::Boolean(_) => ValueType::Boolean,
                _ => ValueType::Any,
            };
            assert_eq!(found, entry.result, "{}", entry.name);
        }
    }

    #[test]
    fn null_in_null_out() {
        assert_eq!(number(Function::Length, &[Value::Null]), None);
        assert_eq!(
            number(Function::Mod, &[1.0, 0.0].map(|n| Value::Number(n.into()))),
            None
        );
    }

    #[test]
    fn decimals_round_as_they_are_written() {
        let round = |n: f64, digits: f64| {
            number(
                Function::Round,
                &[n, digits].map(|n| Value::Number(n.into())),
            )
        };
        assert_eq!(
            (round(2.345, 1.0), round(2.345, 2.0), round(-2.5, 0.0)),
            (Some(2.3), Some(2.35), Some(-3.0))
        );
        assert_eq!(
            (
                round(1250.0, -2.0),
                round(49.0, -2.0),
                round(1e300, 5.0),
                round(1.5, 900.0)
            ),
            (Some(1300.0), Some(0.0), Some(1e300), Some(1.5))
        );
    }
}
