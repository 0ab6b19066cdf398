//! Comparison of data values: magnitudes, temporal intervals, decimal numbers.

use super::class::{Attr, Cls};
use super::number;
use super::time::{Temporal, TemporalKind};
use super::tree::{Kind, NodeRef};
use std::cmp::Ordering;

/// Returns the magnitude of a DV_ORDERED.
///
/// It is the magnitude of a quantity or count, the quotient of a proportion, the value of an
/// ordinal or scale, and the seconds of a duration. For dates and times it is the magnitude that
/// the specification defines ([`Temporal::magnitude`]).
///
/// Units and symbols are ignored. Returns `None` for other classes, for a value that is missing or
/// not finite, and for a proportion with denominator zero.
pub fn magnitude(node: NodeRef<'_>) -> Option<f64> {
    match node.class() {
        Cls::DV_QUANTITY | Cls::DV_COUNT => number(node, Attr::MAGNITUDE),
        Cls::DV_ORDINAL | Cls::DV_SCALE => number(node, Attr::VALUE),
        Cls::DV_PROPORTION => {
            let (numerator, denominator) = (
                number(node, Attr::NUMERATOR)?,
                number(node, Attr::DENOMINATOR)?,
            );
            (denominator != 0.0).then(|| numerator / denominator)
        }
        _ => temporal(node).map(Temporal::magnitude),
    }
}

/// Returns the number at an attribute if it is finite.
pub fn number(node: NodeRef<'_>, attr: Attr) -> Option<f64> {
    node.get(attr)
        .filter(|n| n.kind() == Kind::Number)
        .and_then(|n| number::parse(n.text()))
        // `1e400` is infinite as a double and therefore has no value here.
        .filter(|n| n.is_finite())
}

/// Returns the interval that a DV_DATE, DV_TIME, DV_DATE_TIME or DV_DURATION covers.
pub fn temporal(node: NodeRef<'_>) -> Option<Temporal> {
    Temporal::parse(
        TemporalKind::for_class(node.class())?,
        node.text_at(Attr::VALUE)?,
    )
}

/// Compares two DV_ORDERED: dates and times by the start of their intervals, all others by
/// magnitude.
///
/// Returns `None` if they have no order: different numeric classes, quantities of different units,
/// or a missing value.
pub fn compare(a: NodeRef<'_>, b: NodeRef<'_>) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (temporal(a), temporal(b)) {
        return a.floor_order(b);
    }
    // Units are compared as text, without conversion. Classes without units have `None` on both
    // sides.
    let comparable = a.class() == b.class() && a.text_at(Attr::UNITS) == b.text_at(Attr::UNITS);
    if !comparable {
        return None;
    }
    if a.class() == Cls::DV_PROPORTION {
        return magnitude(a)?.partial_cmp(&magnitude(b)?);
    }
    let attr = if a.get(Attr::MAGNITUDE).is_some() {
        Attr::MAGNITUDE
    } else {
        Attr::VALUE
    };
    compare_numbers(a.text_at(attr)?, b.text_at(attr)?)
}

/// Compares two JSON number tokens exactly, whatever their number of digits.
pub fn compare_numbers(a: &str, b: &str) -> Option<Ordering> {
    let (x, y) = (number::parse(a)?, number::parse(b)?);
    let order = x.partial_cmp(&y)?;
    // In the range of normal doubles, values of 15 digits or fewer differ as doubles if they
    // differ.
    if order.is_ne() || (a.len() <= 15 && b.len() <= 15) {
        return Some(order);
    }
    // As doubles they are equal, so they have the same sign, or both are zero.
    let (x, y) = (Decimal::parse(a)?, Decimal::parse(b)?);
    Some(if x.negative {
        x.size(&y).reverse()
    } else {
        x.size(&y)
    })
}

/// A decimal number `0.digits × 10^exponent`, without zeros at either end of the digits.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let unsigned = mantissa.trim_start_matches('-');
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        // The value is 0.ddd × 10ⁿ with a first digit other than 0. `leading` is n without the
        // exponent of the text.
        let leading =
            i64::try_from(whole.len()).ok()? - i64::try_from(all.len() - significant.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_add(leading)?;
        Some(Decimal {
            negative: mantissa.starts_with('-'),
            digits: significant.trim_end_matches('0').to_owned(),
            exponent,
        })
    }

    /// Compares the absolute values.
    fn size(&self, other: &Decimal) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => self
                .exponent
                .cmp(&other.exponent)
                .then_with(|| self.digits.cmp(&other.digits)),
            // No digits means zero, which is the least. `true` is greater than `false`, so the
            // operands are swapped.
            (mine, theirs) => theirs.cmp(&mine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn magnitude_of(text: &str) -> Option<f64> {
        magnitude(json::read(text, Cls::DATA_VALUE).unwrap().root().unwrap())
    }

    #[test]
    fn magnitude_is_defined_for_each_ordered_class() {
        let cases = [
            (
                r#"{"_type":"DV_QUANTITY","magnitude":37.50,"units":"Cel"}"#,
                Some(37.5),
            ),
            (r#"{"_type":"DV_COUNT","magnitude":3}"#, Some(3.0)),
            (
                r#"{"_type":"DV_PROPORTION","numerator":1,"denominator":4.0,"type":0}"#,
                Some(0.25),
            ),
            (
                r#"{"_type":"DV_PROPORTION","numerator":1,"denominator":0,"type":0}"#,
                None,
            ),
            (r#"{"_type":"DV_ORDINAL","value":2}"#, Some(2.0)),
            (r#"{"_type":"DV_SCALE","value":2.5}"#, Some(2.5)),
            (r#"{"_type":"DV_DURATION","value":"PT1M"}"#, Some(60.0)),
            (r#"{"_type":"DV_DATE","value":"0001-01-02"}"#, Some(1.0)),
            (r#"{"_type":"DV_QUANTITY","magnitude":1.8e400}"#, None),
            (r#"{"_type":"DV_TEXT","value":"1"}"#, None),
        ];
        for (text, expected) in cases {
            assert_eq!(magnitude_of(text), expected, "{text}");
        }
    }

    #[test]
    fn values_compare_within_class_and_unit() {
        let order = |a: &str, b: &str| {
            let read = |text: &str| json::read(text, Cls::DATA_VALUE).unwrap();
            compare(read(a).root().unwrap(), read(b).root().unwrap())
        };
        let quantity = |magnitude: &str, units: &str| {
            format!(r#"{{"_type":"DV_QUANTITY","magnitude":{magnitude},"units":"{units}"}}"#)
        };
        assert_eq!(
            order(&quantity("1.0", "m"), &quantity("1", "m")),
            Some(Ordering::Equal)
        );
        assert_eq!(order(&quantity("1", "m"), &quantity("2", "cm")), None);
        assert_eq!(
            order(
                r#"{"_type":"DV_COUNT","magnitude":9007199254740993}"#,
                r#"{"_type":"DV_COUNT","magnitude":9007199254740992}"#
            ),
            Some(Ordering::Greater)
        );
        assert_eq!(
            order(
                r#"{"_type":"DV_DATE","value":"2020"}"#,
                r#"{"_type":"DV_DATE_TIME","value":"2020-01-01T00:00:01"}"#
            ),
            Some(Ordering::Less)
        );
    }

    #[test]
    fn long_numbers_compare_exactly() {
        let cases = [
            (
                "12345678901234567890.1",
                "12345678901234567890.2",
                Ordering::Less,
            ),
            (
                "-12345678901234567890.1",
                "-12345678901234567890.2",
                Ordering::Greater,
            ),
            ("1.0000000000000000000", "1", Ordering::Equal),
            ("10000000000000000000e-19", "1", Ordering::Equal),
            ("0.00000000000000000000", "-0", Ordering::Equal),
            ("1e5", "100000", Ordering::Equal),
        ];
        for (a, b, expected) in cases {
            assert_eq!(compare_numbers(a, b), Some(expected), "{a} {b}");
            assert_eq!(compare_numbers(b, a), Some(expected.reverse()), "{b} {a}");
        }
    }
}
