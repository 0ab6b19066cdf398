//! Values of rows: their types, their comparison, and the functions on them.

use super::number::{Number, round_whole};
use super::{At, time};
use aqlite::aql::query::{CompareOp, Function, LikeItem, Literal};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::tree::{Kind, NodeRef};
use std::cmp::Ordering;

#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    /// The text of a stored date, time, date-time or duration: class and text.
    Temporal(Cls, String),
    /// The whole of one.
    TemporalObject(Cls, String),
    /// A whole DV_TEXT or DV_CODED_TEXT.
    TextObject(String),
    /// Text of a URL parameter.
    Untyped(String),
    Object,
}

const TEMPORAL: [Cls; 4] = [
    Cls::DV_DATE,
    Cls::DV_TIME,
    Cls::DV_DATE_TIME,
    Cls::DV_DURATION,
];

impl Value {
    pub fn of(at: At<'_>) -> Value {
        let text = || at.node.text().to_owned();
        match at.node.kind() {
            Kind::Boolean => Value::Boolean(at.node.text() == "true"),
            Kind::Number => number(at.node.text()),
            Kind::Text if at.node.attr() == Some(Attr::VALUE) && TEMPORAL.contains(&at.holder) => {
                Value::Temporal(at.holder, text())
            }
            Kind::Text => Value::Text(text()),
            _ => Value::of_object(at.node),
        }
    }

    fn of_object(node: NodeRef<'_>) -> Value {
        let class = node.class();
        let number_at = |attr| node.text_at(attr).and_then(Number::parse);
        let text = || node.text_at(Attr::VALUE).map(str::to_owned);
        let value = match class {
            Cls::DV_QUANTITY | Cls::DV_COUNT => number_at(Attr::MAGNITUDE).map(Value::Number),
            Cls::DV_ORDINAL | Cls::DV_SCALE => number_at(Attr::VALUE).map(Value::Number),
            Cls::DV_PROPORTION => {
                let ratio = number_at(Attr::NUMERATOR)
                    .zip(number_at(Attr::DENOMINATOR))
                    .filter(|(_, d)| d.double != 0.0);
                ratio.map(|(n, d)| Value::Number(n.quotient(d)))
            }
            _ if TEMPORAL.contains(&class) => text().map(|t| Value::TemporalObject(class, t)),
            _ if class.is_a(Cls::DV_TEXT) => text().map(Value::TextObject),
            _ => None,
        };
        value.unwrap_or(Value::Object)
    }

    pub fn literal(literal: &Literal) -> Value {
        match literal {
            Literal::Null => Value::Null,
            Literal::Boolean(flag) => Value::Boolean(*flag),
            Literal::Number(text) => number(text),
            Literal::Text(text) => Value::Text(text.to_string()),
            Literal::Untyped(text) => Value::Untyped(text.to_string()),
        }
    }

    /// Returns the text that LIKE and the string functions read.
    pub fn text(&self) -> Option<String> {
        match self {
            Value::Text(t)
            | Value::Temporal(_, t)
            | Value::TemporalObject(_, t)
            | Value::TextObject(t)
            | Value::Untyped(t) => Some(t.clone()),
            _ => None,
        }
    }

    /// Returns the number that arithmetic reads.
    pub fn number(&self) -> Option<Number> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Untyped(text) => Number::parse(text),
            Value::TemporalObject(Cls::DV_DURATION, text) => time::seconds(text).map(Number::of),
            _ => None,
        }
    }
}

fn number(text: &str) -> Value {
    Number::parse(text).map_or(Value::Null, Value::Number)
}

/// Returns the stored digits of a number: of a leaf, or of the number of a whole data value.
pub fn digits(at: At<'_>) -> Option<String> {
    let attr = match at.node.class() {
        Cls::DV_QUANTITY | Cls::DV_COUNT => Attr::MAGNITUDE,
        Cls::DV_ORDINAL | Cls::DV_SCALE => Attr::VALUE,
        _ => return (at.node.kind() == Kind::Number).then(|| at.node.text().to_owned()),
    };
    at.node.text_at(attr).map(str::to_owned)
}

/// Returns whether a value is a number of an integer type, or a data value that represents one.
pub fn is_integer(at: At<'_>) -> bool {
    let holder = if at.node.kind() == Kind::Object {
        at.node.class()
    } else {
        at.holder
    };
    matches!(holder, Cls::DV_COUNT | Cls::DV_ORDINAL)
}

/// Compares two values; `None` is unknown.
pub fn compare(left: &Value, op: CompareOp, right: &Value) -> Option<bool> {
    let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
    let order = match (left, right) {
        (Value::Null | Value::Object | Value::TextObject(_), _)
        | (_, Value::Null | Value::Object | Value::TextObject(_)) => return None,
        (Value::Untyped(text), other) => return compare(&typed(text, other), op, other),
        (other, Value::Untyped(text)) => return compare(other, op, &typed(text, other)),
        (Value::Number(a), Value::Number(b)) => a.compare(*b)?,
        (Value::Boolean(a), Value::Boolean(b)) if equality => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.chars().cmp(b.chars()),
        _ => return temporal(left, op, right),
    };
    Some(holds(op, order))
}

fn typed(text: &str, other: &Value) -> Value {
    match other {
        Value::Number(_) => number(text.trim()),
        Value::Boolean(_) => text.trim().parse().map_or(Value::Null, Value::Boolean),
        _ => Value::Text(text.to_owned()),
    }
}

/// Compares by interval on a common axis; unknown across axes. Texts that are not dates are
/// compared with texts only.
fn temporal(left: &Value, op: CompareOp, right: &Value) -> Option<bool> {
    let stored = |value: &Value| match value {
        Value::Temporal(class, text) | Value::TemporalObject(class, text) => {
            Some((*class, text.clone()))
        }
        _ => None,
    };
    let interval = |value: &Value, other: &Value| match (stored(value), stored(other), value) {
        (Some((class, text)), _, _) => time::read(class, &text),
        (None, Some((class, _)), Value::Text(text)) => {
            time::on_axis(class, text).or_else(|| time::anything(text))
        }
        _ => None,
    };
    let is_object = |value: &Value| matches!(value, Value::TemporalObject(..));
    let (a_text, b_text) = (left.text()?, right.text()?);
    match (interval(left, right), interval(right, left)) {
        (Some(a), Some(b)) if a.0 != b.0 => None,
        (Some(a), Some(b)) => Some(match op {
            CompareOp::Eq => a == b,
            CompareOp::Ne => a != b,
            _ => holds(op, a.1.cmp(&b.1)),
        }),
        _ if is_object(left) || is_object(right) => None,
        _ => Some(holds(op, a_text.cmp(&b_text))),
    }
}

fn holds(op: CompareOp, order: Ordering) -> bool {
    match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
    }
}

pub fn is_like(text: &[char], pattern: &[LikeItem]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((LikeItem::Any, rest)) => (0..=text.len()).any(|i| is_like(&text[i..], rest)),
        Some((LikeItem::One, rest)) => !text.is_empty() && is_like(&text[1..], rest),
        Some((LikeItem::Text(piece), rest)) => {
            let piece: Vec<char> = piece.chars().collect();
            text.starts_with(&piece) && is_like(&text[piece.len()..], rest)
        }
    }
}

/// Computes a function. `None` is NULL: a missing or wrong argument, or a result that is not a
/// number. An argument is a value with its digits, if it is a number that was not computed.
pub fn call(function: Function, arguments: &[(Value, Option<String>)], now: &str) -> Option<Value> {
    let text = |i: usize| {
        let (value, digits) = arguments.get(i)?;
        match value {
            Value::Number(n) => digits.clone().or_else(|| Some(n.identity())),
            Value::Boolean(b) => Some(b.to_string()),
            Value::TemporalObject(Cls::DV_DURATION, text) => {
                time::seconds(text).map(|n| n.to_string())
            }
            other => other.text(),
        }
    };
    let number = |i: usize| arguments.get(i).and_then(|(value, _)| value.number());
    let double = |i: usize| number(i).map(|number| number.double);
    let numeric = |n: Number| {
        n.double
            .is_finite()
            .then_some(Value::Number(if n.double == 0.0 {
                Number::of(0.0)
            } else {
                n
            }))
    };
    match function {
        Function::Length => numeric(Number::of(text(0)?.chars().count() as f64)),
        Function::Contains => Some(Value::Boolean(at_index(&text(0)?, &text(1)?).is_some())),
        Function::Position => numeric(Number::of(
            at_index(&text(1)?, &text(0)?).map_or(0.0, |i| i as f64 + 1.0),
        )),
        Function::Substring => {
            let (whole, from) = (text(0)?, double(1)?.floor());
            let length = if arguments.len() == 3 {
                double(2)?
            } else {
                f64::INFINITY
            };
            if from < 1.0 || length < 0.0 {
                return None;
            }
            let until = from + length.floor();
            let characters = whole
                .chars()
                .enumerate()
                .filter(|(i, _)| *i as f64 + 1.0 >= from && (*i as f64) + 1.0 < until);
            Some(Value::Text(characters.map(|(_, c)| c).collect()))
        }
        Function::Concat => (0..arguments.len())
            .map(text)
            .collect::<Option<Vec<_>>>()
            .map(|all| Value::Text(all.concat())),
        Function::ConcatWs => {
            let separator = text(0)?;
            Some(Value::Text(
                (1..arguments.len())
                    .filter_map(text)
                    .collect::<Vec<_>>()
                    .join(&separator),
            ))
        }
        Function::Abs => numeric(number(0)?.map(i128::abs, f64::abs)),
        Function::Mod => numeric(number(0)?.remainder(number(1)?)),
        Function::Ceil => numeric(number(0)?.map(|n| n, f64::ceil)),
        Function::Floor => numeric(number(0)?.map(|n| n, f64::floor)),
        Function::Round => {
            let digits = if arguments.len() == 2 {
                double(1)?.trunc().clamp(-400.0, 400.0)
            } else {
                0.0
            };
            let digits = digits as i32;
            numeric(number(0)?.map(
                |n| round_whole(n, digits.min(0).unsigned_abs()),
                |n| rounded(n, digits),
            ))
        }
        Function::CurrentDate => Some(Value::Text(now[..10].to_owned())),
        Function::CurrentTime => Some(Value::Text(now[11..19].to_owned())),
        Function::CurrentDateTime | Function::Now => Some(Value::Text(now.replace('Z', "+00:00"))),
        Function::CurrentTimezone => Some(Value::Text("+00:00".to_owned())),
    }
}

/// Returns the position of a text in another, in characters from 0.
fn at_index(whole: &str, part: &str) -> Option<usize> {
    let (whole, part): (Vec<char>, Vec<char>) = (whole.chars().collect(), part.chars().collect());
    (0..=whole.len()).find(|i| whole[*i..].starts_with(&part))
}

/// Rounds half away from zero, on the decimal digits.
fn rounded(number: f64, digits: i32) -> f64 {
    let text = number.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let figures: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|b| b - b'0')
        .collect();
    let keep = whole.len() as i32 + digits;
    if keep >= figures.len() as i32 {
        return number;
    }
    let up = keep >= 0 && figures[keep as usize] >= 5;
    let kept: String = if keep > 0 {
        figures[..keep as usize]
            .iter()
            .map(|d| char::from(b'0' + d))
            .collect()
    } else {
        "0".to_owned()
    };
    let rest: f64 = format!("{kept}e{}", -digits).parse().unwrap();
    let step: f64 = format!("1e{}", -digits).parse().unwrap();
    let sum = if up {
        format!("{:.*}", digits.max(0) as usize, rest + step)
            .parse()
            .unwrap()
    } else {
        rest
    };
    if number < 0.0 { -sum } else { sum }
}
