//! The values of guides: the data types of the Reference Model, reduced to the parts that rules can
//! read.

use super::time::Moment;
use aqlite_rm::number;
use aqlite_rm::terminology::is_same_terminology;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The maximum bytes of a text that is read as a number. The greatest double has 309 digits.
const NUMBER_TEXT: usize = 400;

/// A value of a variable or of an expression. Cloning is cheap: texts are shared.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Value {
    /// Unknown.
    #[default]
    Null,
    /// A plain number, as arithmetic returns it.
    Number(f64),
    /// Milliseconds since 1970, the `.value` of a date-time.
    Millis(f64),
    /// Milliseconds between two points in time.
    Span(f64),
    /// A boolean or `DV_BOOLEAN`.
    Boolean(bool),
    /// `DV_TEXT`, or a text in an expression.
    Text(Arc<str>),
    /// `DV_COUNT`.
    Count(i64),
    /// `DV_QUANTITY`.
    Quantity(Quantity),
    /// `DV_ORDINAL`.
    Ordinal(Arc<Ordinal>),
    /// `DV_CODED_TEXT`.
    Coded(Arc<Coded>),
    /// `DV_DATE_TIME`, `DV_DATE` or `DV_TIME`. A stored value whose text is not the text of the
    /// moment has that text: a partial one, one without a zone.
    Moment(Moment, Option<Arc<str>>),
    /// `DV_PROPORTION`.
    Proportion(Proportion),
    /// `DV_DURATION`, its ISO 8601 text.
    Duration(Arc<str>),
    /// Any other object, such as a FHIR resource made from a template.
    Object(Arc<serde_json::Value>),
}

/// A magnitude with a unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantity {
    /// The number.
    pub magnitude: f64,
    /// The unit as written. Empty for a quantity without unit.
    pub unit: Arc<str>,
    /// Number of decimals; `None` if unknown.
    pub precision: Option<u8>,
}

/// A code with its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Coded {
    /// `local`, `SNOMED-CT`, `ATC`, …
    pub terminology: Arc<str>,
    /// The code string.
    pub code: Arc<str>,
    /// The text, in the language of its source.
    pub text: Arc<str>,
}

/// A coded text with a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ordinal {
    /// The rank.
    pub value: i64,
    /// The symbol.
    pub symbol: Coded,
}

/// A ratio of two numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Proportion {
    /// The numerator.
    pub numerator: f64,
    /// The denominator.
    pub denominator: f64,
    /// The kind as in DV_PROPORTION: 0 ratio, 1 unitary, 2 percent, 3 fraction, 4 integer fraction.
    pub kind: i64,
    /// Number of decimals; `None` if unknown.
    pub precision: Option<u8>,
}

impl Value {
    /// Creates a text.
    pub fn text(text: &str) -> Value {
        Value::Text(Arc::from(text))
    }

    /// Creates a quantity without known precision.
    pub fn quantity(magnitude: f64, unit: &str) -> Value {
        Value::Quantity(Quantity {
            magnitude,
            unit: Arc::from(unit),
            precision: None,
        })
    }

    /// Creates a coded text.
    pub fn coded(terminology: &str, code: &str, text: &str) -> Value {
        Value::Coded(Arc::new(Coded {
            terminology: Arc::from(terminology),
            code: Arc::from(code),
            text: Arc::from(text),
        }))
    }

    /// Creates an ordinal.
    pub fn ordinal(value: i64, terminology: &str, code: &str, text: &str) -> Value {
        let symbol = Coded {
            terminology: Arc::from(terminology),
            code: Arc::from(code),
            text: Arc::from(text),
        };
        Value::Ordinal(Arc::new(Ordinal { value, symbol }))
    }

    /// Creates a point in time that is not stored.
    pub fn moment(moment: Moment) -> Value {
        Value::Moment(moment, None)
    }

    /// Parses a stored time. The moment of a partial one is its beginning; its text is kept.
    pub(crate) fn recorded(text: &str, zone: i32) -> Option<Value> {
        let moment = Moment::parse(text, zone)?;
        let recorded = (moment.text() != text).then(|| Arc::from(text));
        Some(Value::Moment(moment, recorded))
    }

    /// Returns whether the value is [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns whether the value is finite. The logarithm of zero and numbers computed from it are
    /// not: they have a place in the order of numbers, but no RM class can represent them.
    pub fn is_finite(&self) -> bool {
        match self {
            Value::Number(n) | Value::Millis(n) | Value::Span(n) => n.is_finite(),
            Value::Quantity(q) => q.magnitude.is_finite(),
            Value::Proportion(p) => p.numerator.is_finite() && p.denominator.is_finite(),
            _ => true,
        }
    }

    /// Returns the code of a coded text, or of the symbol of an ordinal.
    pub fn code(&self) -> Option<&Coded> {
        match self {
            Value::Coded(code) => Some(code),
            Value::Ordinal(ordinal) => Some(&ordinal.symbol),
            _ => None,
        }
    }

    /// Returns the bytes of the texts in the value, as an answer writes them.
    pub fn size(&self) -> usize {
        super::budget::size(self)
    }

    /// Returns a hash that equal values share. It limits the number of comparisons.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        std::mem::discriminant(self).hash(&mut hasher);
        // Adding 0.0 turns -0.0 into 0.0: both compare as equal, so they must have the same bits.
        let bits = |n: f64| (n + 0.0).to_bits();
        match self {
            Value::Number(n) | Value::Millis(n) | Value::Span(n) => bits(*n).hash(&mut hasher),
            Value::Quantity(q) => (bits(q.magnitude), &q.unit).hash(&mut hasher),
            Value::Text(text) | Value::Duration(text) => text.hash(&mut hasher),
            Value::Count(n) => n.hash(&mut hasher),
            Value::Coded(code) => (&code.terminology, &code.code).hash(&mut hasher),
            Value::Ordinal(ordinal) => (ordinal.value, &ordinal.symbol.code).hash(&mut hasher),
            Value::Moment(moment, _) => moment.millis.hash(&mut hasher),
            Value::Null | Value::Boolean(_) | Value::Proportion(_) | Value::Object(_) => {}
        }
        hasher.finish()
    }

    /// Returns whether two ordinals or coded texts have equal rank and code, whatever their texts.
    pub fn same_code(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Coded(a), Value::Coded(b)) => a.is_same(b),
            (Value::Ordinal(a), Value::Ordinal(b)) => {
                a.value == b.value && a.symbol.is_same(&b.symbol)
            }
            _ => false,
        }
    }

    /// Returns the operand of arithmetic: a number, a count, the magnitude of a quantity, the rank
    /// of an ordinal, or a text of digits as a number, if it has no more than 400 bytes.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(n) | Value::Millis(n) | Value::Span(n) => Some(*n),
            Value::Count(n) => Some(real(*n)),
            Value::Quantity(q) => Some(q.magnitude),
            Value::Ordinal(o) => Some(real(o.value)),
            Value::Proportion(p) if p.denominator != 0.0 => Some(p.numerator / p.denominator),
            Value::Text(t) if t.len() > NUMBER_TEXT => None,
            Value::Text(t) => number::parse(t.trim()).filter(|n| n.is_finite()),
            _ => None,
        }
    }

    /// Returns the name of the RM class of the value. A plain number becomes a count or a quantity.
    pub fn rm_type(&self) -> &'static str {
        use super::time::Precision;
        match self {
            Value::Null => "null",
            Value::Number(n) if n.fract() == 0.0 => "DV_COUNT",
            Value::Number(_) | Value::Quantity(_) | Value::Span(_) => "DV_QUANTITY",
            Value::Millis(_) => "DV_DATE_TIME",
            Value::Boolean(_) => "DV_BOOLEAN",
            Value::Text(_) => "DV_TEXT",
            Value::Count(_) => "DV_COUNT",
            Value::Ordinal(_) => "DV_ORDINAL",
            Value::Coded(_) => "DV_CODED_TEXT",
            Value::Moment(m, _) => match m.precision {
                Precision::Date => "DV_DATE",
                Precision::DateTime => "DV_DATE_TIME",
                Precision::Time => "DV_TIME",
            },
            Value::Proportion(_) => "DV_PROPORTION",
            Value::Duration(_) => "DV_DURATION",
            Value::Object(_) => "object",
        }
    }
}

impl Coded {
    /// Returns whether the codes are equal, in one terminology ([`is_same_terminology`]).
    pub(crate) fn is_same(&self, other: &Coded) -> bool {
        self.code == other.code && is_same_terminology(&self.terminology, &other.terminology)
    }
}

impl Quantity {
    /// Rounds to the precision (half to even on the exact value of the double). Unchanged if the
    /// precision is 0 or unknown.
    pub fn rounded(mut self) -> Quantity {
        if let Some(decimals) = self.precision.filter(|p| *p > 0) {
            self.magnitude = round_half_even(self.magnitude, decimals);
        }
        self
    }
}

/// Returns the number of decimals in the digits of a number: `2.50` has two, `2.5e-3` four, `2.5e3`
/// none.
pub(crate) fn decimals(digits: &str) -> u8 {
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let shown = mantissa
        .split_once('.')
        .map_or(0, |(_, d)| d.bytes().take_while(u8::is_ascii_digit).count());
    let exponent = exponent.parse::<i64>().unwrap_or_default();
    let shown = i64::try_from(shown)
        .unwrap_or(i64::MAX)
        .saturating_sub(exponent);
    u8::try_from(shown.max(0)).unwrap_or(u8::MAX)
}

/// Converts an integer to a double.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn real(n: i64) -> f64 {
    n as f64
}

/// Returns the whole part of a double; `None` beyond ±2^53, where doubles are not exact.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn integer(n: f64) -> Option<i64> {
    (n.abs() <= 9_007_199_254_740_992.0).then_some(n.trunc() as i64)
}

/// Rounds to `decimals` digits, ties of the exact binary value to even.
pub(crate) fn round_half_even(n: f64, decimals: u8) -> f64 {
    let scale = 10f64.powi(i32::from(decimals));
    let scaled = n * scale;
    if scaled.abs() < 1.0e9 && ((scaled - scaled.trunc()).abs() - 0.5).abs() > 1.0e-5 {
        return scaled.round() / scale;
    }
    number::parse(&number::fixed(n, usize::from(decimals))).unwrap_or(n)
}

/// Prints a number for texts: no `.0` behind whole numbers, groups of three digits, and the fewest
/// decimals that identify it.
pub(crate) fn grouped(n: f64) -> String {
    if n.is_infinite() {
        return super::fill::decimal(n, None);
    }
    let text = number::shortest(n.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    if n < 0.0 && out != "0" {
        format!("-{out}")
    } else {
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_by_the_exact_double() {
        assert_eq!(round_half_even(2.675, 2), 2.67);
        assert_eq!(round_half_even(0.125, 2), 0.12);
        assert_eq!(round_half_even(0.375, 2), 0.38);
        assert_eq!(round_half_even(-1.005, 2), -1.0);
    }

    #[test]
    fn numbers_in_texts_are_grouped() {
        assert_eq!(grouped(1500.0), "1,500");
        assert_eq!(grouped(1.0), "1");
        assert_eq!(grouped(-1234567.25), "-1,234,567.25");
        assert_eq!(grouped(999.5), "999.5");
        assert_eq!(grouped(0.0004), "0.0004");
        assert_eq!(grouped(-0.0), "0");
    }
}
