//! Operators and functions on values: arithmetic, comparison, three-valued logic.

use super::compile::Attribute;
use super::expr::ast::{Function, Operator};
use super::time::{Clock, Moment, Precision, TimeUnit};
use super::value::{Quantity, Value, grouped, integer, real};
use chrono::{Datelike, NaiveDate};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The reason why an operation has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EvalError {
    /// Division by zero, or a remainder by zero.
    DivisionByZero,
    /// The result is outside the range of numbers, or is not a number.
    Range,
    /// The result is a date before the year 0000 or after the year 9999, which ISO 8601 cannot
    /// write with four digits.
    Calendar,
    /// The denominator of a proportion would be 0.
    ZeroDenominator,
    /// The operation does not exist for these types.
    Types,
    /// The operands are quantities with these two different units. A missing unit is an empty text.
    Units(Arc<str>, Arc<str>),
    /// `max` or `min` of a predicate found a value that is no time.
    NoTime,
    /// A placeholder names this variable, which has no value.
    NoValue(Arc<str>),
    /// The result is the logarithm of zero. Rules can compare it, but it cannot be a result of the
    /// guide.
    Infinite,
    /// The statement is not in the language of guides: a condition that is never true, or an action
    /// that does nothing.
    Unreadable,
}

type Result<T> = std::result::Result<T, EvalError>;

impl EvalError {
    /// Returns the reason as a message.
    pub fn text(&self) -> Cow<'static, str> {
        let named = |unit: &Arc<str>| {
            if unit.is_empty() {
                String::from("none")
            } else {
                format!("`{unit}`")
            }
        };
        Cow::Borrowed(match self {
            EvalError::DivisionByZero => "division by zero",
            EvalError::ZeroDenominator => "the denominator of a proportion is not 0",
            EvalError::Range => "the result is out of range",
            EvalError::Calendar => "the date is beyond the calendar: years are 0000 to 9999",
            EvalError::Types => "the types do not fit",
            EvalError::Units(left, right) => {
                return Cow::Owned(format!(
                    "the units differ: {} and {}",
                    named(left),
                    named(right)
                ));
            }
            EvalError::NoValue(code) => {
                return Cow::Owned(format!("`{code}` of a placeholder has no value"));
            }
            EvalError::NoTime => "`max` and `min` of a predicate compare dates and times only",
            EvalError::Unreadable => "the statement cannot be read, so it has no effect",
            EvalError::Infinite => "the value is infinite: rules compare it, but it is no result",
        })
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for EvalError {}

/// Computes `a op b` for an arithmetic operator. Null if an operand is null.
pub(crate) fn arithmetic(
    operator: Operator,
    a: &Value,
    b: &Value,
    clock: Clock<'_>,
) -> Result<Value> {
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    // Times before texts: a date plus a period is a date, not a joined text.
    if let Some(result) = with_time(operator, a, b, clock) {
        return result;
    }
    if operator == Operator::Plus && is_joined(a, b) {
        return Ok(Value::text(&format!("{}{}", shown(a), shown(b))));
    }
    if matches!(operator, Operator::Plus | Operator::Minus) {
        check_units(a, b)?;
    }
    let (x, y) = (
        a.number().ok_or(EvalError::Types)?,
        b.number().ok_or(EvalError::Types)?,
    );
    let n = match operator {
        Operator::Plus => x + y,
        Operator::Minus => x - y,
        Operator::Times => x * y,
        Operator::Divided | Operator::Modulo if y == 0.0 => return Err(EvalError::DivisionByZero),
        Operator::Divided => x / y,
        Operator::Modulo => x % y,
        Operator::Power => x.powf(y),
        _ => return Err(EvalError::Types),
    };
    let n = carried(n, x.is_infinite() || y.is_infinite())?;
    Ok(match operator {
        Operator::Plus | Operator::Minus => with_common_unit(a, b, n),
        _ => n,
    })
}

/// Returns a sum or difference as a quantity, if both operands have one unit. Its precision is the
/// greater one, if both are known.
fn with_common_unit(a: &Value, b: &Value, sum: Value) -> Value {
    match (a, b, &sum) {
        (Value::Quantity(x), Value::Quantity(y), Value::Number(n))
            if x.unit == y.unit && !x.unit.is_empty() =>
        {
            Value::Quantity(Quantity {
                magnitude: *n,
                unit: x.unit.clone(),
                precision: x.precision.zip(y.precision).map(|(p, q)| p.max(q)),
            })
        }
        _ => sum,
    }
}

/// Checks that two quantities that are added or subtracted have the same unit. One without a unit is
/// a number.
fn check_units(a: &Value, b: &Value) -> Result<()> {
    match (a, b) {
        (Value::Quantity(x), Value::Quantity(y))
            if x.unit != y.unit && !x.unit.is_empty() && !y.unit.is_empty() =>
        {
            Err(EvalError::Units(x.unit.clone(), y.unit.clone()))
        }
        _ => Ok(()),
    }
}

/// Accepts an infinite result only where an operand was infinite. The logarithm of zero has a place
/// in the order of numbers; overflow is an error.
fn carried(n: f64, from_infinite: bool) -> Result<Value> {
    if n.is_finite() || (from_infinite && n.is_infinite()) {
        Ok(Value::Number(n))
    } else {
        Err(EvalError::Range)
    }
}

fn finite(n: f64) -> Result<Value> {
    if n.is_finite() {
        Ok(Value::Number(n))
    } else {
        Err(EvalError::Range)
    }
}

/// Computes calendar arithmetic. `None` if neither operand is a time or a duration.
fn with_time(operator: Operator, a: &Value, b: &Value, clock: Clock<'_>) -> Option<Result<Value>> {
    let sign = match operator {
        Operator::Plus => 1.0,
        Operator::Minus => -1.0,
        Operator::Divided => {
            let lengths = time_lengths(a, b, clock)?;
            return Some(
                lengths.and_then(|(dividend, divisor)| match divisor == 0.0 {
                    true => Err(EvalError::DivisionByZero),
                    false => finite(dividend / divisor),
                }),
            );
        }
        _ => return None,
    };
    // Only the difference of two moments is defined. Their sum is an error.
    match (instant(a, clock), instant(b, clock)) {
        (Some(x), Some(y)) if sign < 0.0 => Some(Ok(Value::Span(real(x.millis) - real(y.millis)))),
        (Some(_), Some(_)) => Some(Err(EvalError::Types)),
        (Some(x), None) => moved(x, b, sign, clock),
        (None, Some(y)) if sign > 0.0 => moved(y, a, sign, clock),
        (None, Some(_)) => Some(Err(EvalError::Types)),
        (None, None) => None,
    }
}

/// Returns the lengths of two times of different units in a common unit; `None` for other values.
/// Months and days have no common unit, so their lengths count from now.
fn time_lengths(a: &Value, b: &Value, clock: Clock<'_>) -> Option<Result<(f64, f64)>> {
    let unit = |value: &Value| match value {
        Value::Quantity(q) => Some((q.magnitude, TimeUnit::parse(&q.unit)?)),
        _ => None,
    };
    let (y, y_unit) = unit(b)?;
    let lengths = if let Value::Span(span) = a {
        period_millis(b, clock).map(|length| (*span, length))
    } else {
        let (x, x_unit) = unit(a).filter(|(_, unit)| *unit != y_unit)?;
        let ((x_base, x_length), (y_base, y_length)) =
            (x_unit.fixed_length(), y_unit.fixed_length());
        match x_base == y_base {
            true => Some((x * x_length, y * y_length)),
            false => period_millis(a, clock).zip(period_millis(b, clock)),
        }
    };
    Some(lengths.ok_or(EvalError::Calendar))
}

fn moved(moment: Moment, by: &Value, sign: f64, clock: Clock<'_>) -> Option<Result<Value>> {
    match by {
        Value::Quantity(q) => {
            let unit = TimeUnit::parse(&q.unit)?;
            let moved = clock.plus(moment, sign * q.magnitude, unit);
            let moved = moved.filter(|m| m.is_in_calendar());
            Some(moved.map(Value::moment).ok_or(EvalError::Calendar))
        }
        Value::Number(n) | Value::Span(n) => Some(moved_by_millis(moment, sign * n)),
        Value::Count(n) => Some(moved_by_millis(moment, sign * real(*n))),
        _ => None,
    }
}

fn moved_by_millis(moment: Moment, millis: f64) -> Result<Value> {
    let moved = real(moment.millis) + millis;
    // A sum beyond the integers is beyond the calendar, too.
    let is_in_calendar =
        integer(moved.trunc()).is_some_and(|millis| Moment { millis, ..moment }.is_in_calendar());
    match is_in_calendar {
        true => Ok(Value::Millis(moved)),
        false => Err(EvalError::Calendar),
    }
}

fn instant(value: &Value, clock: Clock<'_>) -> Option<Moment> {
    match value {
        Value::Moment(m, _) => Some(*m),
        Value::Millis(ms) => integer(*ms).and_then(|ms| clock.at(ms)),
        _ => None,
    }
}

/// Returns the length of a time quantity in milliseconds, counted from now on, because months and
/// years differ in length.
fn period_millis(value: &Value, clock: Clock<'_>) -> Option<f64> {
    let Value::Quantity(q) = value else {
        return None;
    };
    // The start is `now`: `1 mo` and `30 d` compare as they would from today.
    let end = clock.plus(clock.now, q.magnitude, TimeUnit::parse(&q.unit)?)?;
    Some(real(end.millis) - real(clock.now.millis))
}

/// Returns whether `+` joins texts: one operand is a text, and the operands are not both numbers.
fn is_joined(a: &Value, b: &Value) -> bool {
    let is_text = |v: &Value| matches!(v, Value::Text(_));
    (is_text(a) || is_text(b)) && (a.number().is_none() || b.number().is_none())
}

/// Returns a value as a part of a text.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null | Value::Object(_) => String::new(),
        Value::Number(n) | Value::Millis(n) | Value::Span(n) => grouped(*n),
        Value::Boolean(b) => b.to_string(),
        Value::Text(t) | Value::Duration(t) => t.to_string(),
        Value::Count(n) => grouped(real(*n)),
        Value::Quantity(q) => {
            let n = super::fill::magnitude(q);
            if q.unit.is_empty() {
                n
            } else {
                format!("{n},{}", q.unit)
            }
        }
        Value::Ordinal(o) => o.symbol.text.to_string(),
        Value::Coded(c) => c.text.to_string(),
        Value::Moment(_, Some(recorded)) => recorded.to_string(),
        Value::Moment(m, None) => m.text(),
        Value::Proportion(p) => format!("{}/{}", grouped(p.numerator), grouped(p.denominator)),
    }
}

/// Computes `a op b` for a comparison operator; `None` is unknown. A null value equals nothing, so
/// `!=` with a known value is true; its order is unknown.
pub(crate) fn compare(
    operator: Operator,
    a: &Value,
    b: &Value,
    clock: Clock<'_>,
) -> Result<Option<bool>> {
    if a.is_null() || b.is_null() {
        // Equality is two-valued even with null, because guides test `x != y` for missing values.
        let same = a.is_null() && b.is_null();
        return Ok(match operator {
            Operator::Equal => Some(same),
            Operator::Unequal => Some(!same),
            _ => None,
        });
    }
    match operator {
        Operator::Equal => equal(a, b, clock).map(Some),
        Operator::Unequal => equal(a, b, clock).map(|e| Some(!e)),
        _ => {
            let order = order(a, b, clock)?;
            Ok(Some(match operator {
                // `partial_cmp` in `order` excludes NaN, so exactly one of these orders holds.
                Operator::Less => order == Ordering::Less,
                Operator::LessOrEqual => order != Ordering::Greater,
                Operator::Greater => order == Ordering::Greater,
                Operator::GreaterOrEqual => order != Ordering::Less,
                _ => return Err(EvalError::Types),
            }))
        }
    }
}

/// Returns the order of two values. Quantities of different units have none, unless both are units
/// of time.
fn order(a: &Value, b: &Value, clock: Clock<'_>) -> Result<Ordering> {
    if let (Value::Moment(x, _), Value::Moment(y, _)) = (a, b)
        && (x.precision == Precision::Time) != (y.precision == Precision::Time)
    {
        // A time of day is on no day.
        return Err(EvalError::Types);
    }
    if let (Some(x), Some(y)) = (instant(a, clock), instant(b, clock)) {
        return Ok(x.millis.cmp(&y.millis));
    }
    let milliseconds = || Arc::from("ms");
    let (x, y) = match (a, b) {
        // Different units are comparable only if both are units of time.
        (Value::Quantity(x), Value::Quantity(y)) if x.unit != y.unit => {
            let periods = period_millis(a, clock).zip(period_millis(b, clock));
            periods.ok_or_else(|| EvalError::Units(x.unit.clone(), y.unit.clone()))?
        }
        (Value::Span(x), Value::Quantity(q)) => (
            *x,
            period_millis(b, clock)
                .ok_or_else(|| EvalError::Units(milliseconds(), q.unit.clone()))?,
        ),
        (Value::Quantity(q), Value::Span(y)) => (
            period_millis(a, clock)
                .ok_or_else(|| EvalError::Units(q.unit.clone(), milliseconds()))?,
            *y,
        ),
        _ => (
            a.number().ok_or(EvalError::Types)?,
            b.number().ok_or(EvalError::Types)?,
        ),
    };
    x.partial_cmp(&y).ok_or(EvalError::Range)
}

fn equal(a: &Value, b: &Value, clock: Clock<'_>) -> Result<bool> {
    Ok(match (a, b) {
        (Value::Coded(_), Value::Coded(_)) | (Value::Ordinal(_), Value::Ordinal(_)) => {
            a.same_code(b)
        }
        (Value::Ordinal(o), Value::Coded(c)) | (Value::Coded(c), Value::Ordinal(o)) => {
            o.symbol.is_same(c)
        }
        (Value::Coded(c), Value::Text(t)) | (Value::Text(t), Value::Coded(c)) => c.text == *t,
        (Value::Text(x), Value::Text(y)) | (Value::Duration(x), Value::Duration(y)) => x == y,
        (Value::Boolean(x), Value::Boolean(y)) => x == y,
        (Value::Boolean(x), Value::Text(t)) | (Value::Text(t), Value::Boolean(x)) => {
            t.eq_ignore_ascii_case(if *x { "true" } else { "false" })
        }
        (Value::Proportion(x), Value::Proportion(y)) => {
            x.numerator == y.numerator && x.denominator == y.denominator && x.kind == y.kind
        }
        (Value::Object(x), Value::Object(y)) => x == y,
        // A class that rules cannot read has no equality with another.
        (Value::Object(_), _) | (_, Value::Object(_)) => return Err(EvalError::Types),
        _ => match order(a, b, clock) {
            // Values of different classes are not equal.
            Err(EvalError::Types) => false,
            order => order? == Ordering::Equal,
        },
    })
}

/// Computes a function of one number.
pub(crate) fn function(function: Function, a: &Value) -> Result<Value> {
    if a.is_null() {
        return Ok(Value::Null);
    }
    let x = a.number().ok_or(EvalError::Types)?;
    // An infinite result is valid at a pole of the function, or for an infinite operand.
    let has_pole = match function {
        Function::Log | Function::Log10 => x == 0.0,
        Function::Log1p => x == -1.0,
        _ => x.is_infinite(),
    };
    let n = match function {
        Function::Abs => x.abs(),
        Function::Ceil => x.ceil(),
        Function::Exp => x.exp(),
        Function::Floor => x.floor(),
        Function::Log => x.ln(),
        Function::Log10 => x.log10(),
        Function::Log1p => x.ln_1p(),
        // Half up, also for negative numbers, as the published guides expect.
        // The difference is exact, unlike `x + 0.5`: 0.49999999999999994 is less than a half.
        Function::Round if x - x.floor() >= 0.5 => x.floor() + 1.0,
        Function::Round => x.floor(),
        Function::Sqrt => x.sqrt(),
        Function::Sin => x.sin(),
        Function::Cos => x.cos(),
        Function::Tan => x.tan(),
        Function::Max | Function::Min => x,
    };
    carried(n, has_pole)
}

/// Returns the greater (`max`) or lesser of two values. Null if either is null.
pub(crate) fn extreme(max: bool, a: &Value, b: &Value, clock: Clock<'_>) -> Result<Value> {
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    let order = order(a, b, clock)?;
    Ok(if (order == Ordering::Less) == max {
        b.clone()
    } else {
        a.clone()
    })
}

/// Returns an attribute of a value. `count`, `sum` and `null_flavor` belong to variables and are
/// resolved before.
pub(crate) fn attribute(value: &Value, attribute: Attribute) -> Result<Value> {
    use Attribute as A;
    // `.year`, `.month` and `.day` use the calendar of the offset of the moment.
    let moment = |f: fn(NaiveDate) -> f64| match value {
        Value::Moment(m, _) => m
            .local_date()
            .map(|d| Value::Number(f(d)))
            .ok_or(EvalError::Range),
        _ => Err(EvalError::Types),
    };
    Ok(match (attribute, value) {
        (_, Value::Null) | (A::Whole, _) => value.clone(),
        (A::Magnitude, Value::Count(n)) => Value::Number(real(*n)),
        (A::Magnitude, Value::Boolean(_) | Value::Coded(_) | Value::Moment(..)) => {
            return Err(EvalError::Types);
        }
        (A::Magnitude, v) => Value::Number(v.number().ok_or(EvalError::Types)?),
        (A::Unit, Value::Quantity(q)) => Value::Text(q.unit.clone()),
        (
            // An unknown precision is null, not an error: guides test it.
            A::Precision,
            Value::Quantity(Quantity {
                precision: Some(p), ..
            }),
        ) => Value::Number(f64::from(*p)),
        (A::Precision, Value::Proportion(p)) => p
            .precision
            .map_or(Value::Null, |p| Value::Number(f64::from(p))),
        (A::Precision, Value::Quantity(_)) => Value::Null,
        (A::Value, Value::Moment(m, _)) => Value::Millis(real(m.millis)),
        (A::Value, Value::Coded(c)) => Value::Text(c.text.clone()),
        (A::Value, Value::Ordinal(o)) => Value::Number(real(o.value)),
        (A::Value, Value::Quantity(q)) => Value::Number(q.magnitude),
        (A::Value, v) => v.clone(),
        (A::Code, Value::Coded(c)) => Value::Text(c.code.clone()),
        (A::Code, Value::Ordinal(o)) => Value::Text(o.symbol.code.clone()),
        (A::Terminology, Value::Coded(c)) => Value::Text(c.terminology.clone()),
        (A::Terminology, Value::Ordinal(o)) => Value::Text(o.symbol.terminology.clone()),
        (A::Label, Value::Coded(c)) => Value::Text(c.text.clone()),
        (A::Label, Value::Ordinal(o)) => Value::Text(o.symbol.text.clone()),
        (A::Label, Value::Text(t)) => Value::Text(t.clone()),
        (A::Symbol, Value::Ordinal(o)) => Value::Coded(std::sync::Arc::new(o.symbol.clone())),
        (A::Numerator, Value::Proportion(p)) => Value::Number(p.numerator),
        (A::Denominator, Value::Proportion(p)) => Value::Number(p.denominator),
        (A::Type, Value::Proportion(p)) => Value::Number(real(p.kind)),
        (A::Year, _) => moment(|date| f64::from(date.year()))?,
        (A::Month, _) => moment(|date| f64::from(date.month()))?,
        (A::Day, _) => moment(|date| f64::from(date.day()))?,
        (A::String, Value::Text(t)) => Value::Text(t.clone()),
        (A::String, v) => Value::text(&shown(v)),
        _ => return Err(EvalError::Types),
    })
}
