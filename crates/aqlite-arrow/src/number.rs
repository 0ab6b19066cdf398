//! The type of a column of numbers: the narrowest one that keeps every digit that counts.
//!
//! AQL keeps numbers as they were sent. A double keeps a number if the shortest decimal number that
//! parses as this double has the same value: then `0.1` is read back as `0.1`.

use aqlite_engine::document::Number;
use aqlite_rm::number::{parse, shortest};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The digits of the widest decimal number of Arrow that all readers have.
const DECIMAL_DIGITS: usize = 38;

/// The digits of a number that the engine holds as a decimal number.
const HELD_DIGITS: usize = 15;

/// The largest exponent that is expanded. A number beyond it has no place in a double.
const LARGEST_EXPONENT: i64 = 400;

/// The type of a column of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NumberType {
    /// Whole numbers of 64 bits.
    Integer,
    /// Doubles.
    Double,
    /// Decimal numbers of 38 digits, with this number of digits behind the point.
    Decimal(i8),
    /// The numbers as they were sent.
    Text,
}

/// Facts about the numbers of a column, from which its type follows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NumberFacts {
    /// Whether a number is written with a point or an exponent, or exceeds 64 bits.
    is_beyond_integer: bool,
    /// Whether a double changes a number.
    is_beyond_double: bool,
    /// Whether a number has an exponent that is too large to be expanded.
    is_beyond_decimal: bool,
    /// The largest number of digits before the point.
    integer_digits: usize,
    /// The largest number of digits behind the point.
    decimals: usize,
}

impl NumberFacts {
    /// Observes a number.
    pub fn observe(&mut self, number: &Number<&str>) {
        if let Number::Decimal(_, decimals) = number {
            self.is_beyond_integer |= *decimals > 0;
            self.integer_digits = self.integer_digits.max(HELD_DIGITS);
            self.decimals = self.decimals.max(usize::from(*decimals));
            return;
        }
        self.observe_token(&token_of(number));
    }

    /// Observes a number as it is written in JSON.
    pub fn observe_token(&mut self, token: &str) {
        if let Some((before_point, decimals)) = short_digits(token) {
            self.is_beyond_integer |= token.contains('.');
            self.integer_digits = self.integer_digits.max(before_point);
            self.decimals = self.decimals.max(decimals);
            return;
        }
        self.is_beyond_integer |= token.parse::<i64>().is_err();
        let Some(digits) = Digits::parse(token) else {
            self.is_beyond_double = true;
            self.is_beyond_decimal = true;
            return;
        };
        self.is_beyond_double |= !digits.is_kept_by_double(token);
        self.integer_digits = self.integer_digits.max(digits.before_point());
        self.decimals = self.decimals.max(digits.decimals);
    }

    /// Returns the type of the column.
    pub fn number_type(&self) -> NumberType {
        if self.is_beyond_integer {
            self.real_type()
        } else {
            NumberType::Integer
        }
    }

    /// Returns the type of the column if its numbers are reals by definition.
    pub fn real_type(&self) -> NumberType {
        let width = self.integer_digits.saturating_add(self.decimals);
        let is_decimal = !self.is_beyond_decimal && width <= DECIMAL_DIGITS;
        match i8::try_from(self.decimals) {
            _ if !self.is_beyond_double => NumberType::Double,
            Ok(decimals) if is_decimal => NumberType::Decimal(decimals),
            _ => NumberType::Text,
        }
    }

    /// Returns the largest number of digits behind the point.
    pub fn decimals(&self) -> usize {
        self.decimals
    }
}

/// Returns the digits before the point, without zeros at the begin, and behind it, of a number without
/// exponent that has few enough digits for every double to keep them. `None` for any other text.
fn short_digits(token: &str) -> Option<(usize, usize)> {
    let unsigned = token.strip_prefix('-').unwrap_or(token);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_short = whole.len() + fraction.len() <= HELD_DIGITS;
    let is_number = !whole.is_empty() && is_digits(whole) && is_digits(fraction);
    (is_short && is_number).then(|| (whole.trim_start_matches('0').len(), fraction.len()))
}

/// Returns a number as it is written in JSON.
pub(crate) fn token_of<'n>(number: &Number<&'n str>) -> Cow<'n, str> {
    if let Number::Token(token) = number {
        return Cow::Borrowed(token);
    }
    let mut out = String::new();
    number.write(&mut out);
    Cow::Owned(out)
}

/// Returns a number as a whole number; `None` if it is none of 64 bits.
pub(crate) fn integer(number: &Number<&str>) -> Option<i64> {
    match number {
        // A held number has few enough digits that its double is exact.
        Number::Decimal(value, 0) if value.fract() == 0.0 => Some(*value as i64),
        other => token_of(other).parse().ok(),
    }
}

/// Returns the whole number of a token times ten to the power of `scale`; `None` if it is none.
pub(crate) fn unscaled(token: &str, scale: i8) -> Option<i128> {
    let digits = Digits::parse(token)?;
    let zeros = usize::try_from(digits.exponent + i64::from(scale)).ok()?;
    let sign = if digits.is_negative { "-" } else { "" };
    if digits.significant.len().saturating_add(zeros) > DECIMAL_DIGITS {
        return None;
    }
    format!("{sign}0{}{:0<zeros$}", digits.significant, "")
        .parse()
        .ok()
}

/// A decimal number: a whole number times a power of ten.
#[derive(PartialEq, Eq)]
struct Digits {
    is_negative: bool,
    /// The digits, which begin and end with another digit than zero; empty for zero.
    significant: String,
    /// The power of ten; zero for zero.
    exponent: i64,
    /// The digits behind the point, after an exponent is applied.
    decimals: usize,
}

impl Digits {
    /// Parses a number of JSON; `None` if it is none, or its exponent is too large.
    fn parse(token: &str) -> Option<Digits> {
        let (is_negative, rest) = match token.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, token),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_number = !whole.is_empty() && [whole, fraction].iter().all(|part| is_digits(part));
        if !is_number || exponent.abs() > LARGEST_EXPONENT {
            return None;
        }
        let behind = i64::try_from(fraction.len()).ok()?;
        let all = format!("{whole}{fraction}");
        let kept = all.trim_end_matches('0');
        let zeros = i64::try_from(all.len() - kept.len()).ok()?;
        let significant = kept.trim_start_matches('0').to_owned();
        Some(Digits {
            is_negative: is_negative && !significant.is_empty(),
            exponent: match significant.is_empty() {
                true => 0,
                false => exponent - behind + zeros,
            },
            significant,
            decimals: usize::try_from(behind - exponent).unwrap_or(0),
        })
    }

    fn before_point(&self) -> usize {
        let digits = i64::try_from(self.significant.len()).unwrap_or(i64::MAX);
        usize::try_from(digits.saturating_add(self.exponent)).unwrap_or(0)
    }

    /// Returns whether the shortest text of the nearest double has the same value.
    fn is_kept_by_double(&self, token: &str) -> bool {
        let Some(double) = parse(token).filter(|double| double.is_finite()) else {
            return false;
        };
        Digits::parse(&shortest(double)).is_some_and(|kept| {
            (kept.is_negative, kept.exponent) == (self.is_negative, self.exponent)
                && kept.significant == self.significant
        })
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_of(tokens: &[&str]) -> NumberType {
        let mut facts = NumberFacts::default();
        for token in tokens {
            facts.observe(&Number::Token(token));
        }
        facts.number_type()
    }

    #[test]
    fn the_narrowest_type_that_keeps_all_numbers_is_chosen() {
        use NumberType::{Decimal, Double, Integer, Text};
        for (tokens, expected) in [
            (&["0", "-7", "9223372036854775807"][..], Integer),
            (&["1", "72.50"], Double),
            (&["0.1", "1e3", "-0.0"], Double),
            (&["9007199254740993", "1"], Integer),
            (&["9007199254740993", "0.5"], Decimal(1)),
            (&["1e19"], Double),
            (&["9223372036854775808"], Decimal(0)),
            (&["9223372036854775809"], Decimal(0)),
            (&["3.14159265358979323846"], Decimal(20)),
            (&["1e-400", "0.5"], Text),
            (&["1e401"], Text),
            (&["1e39", "0.12345678901234567890"], Text),
        ] {
            assert_eq!(type_of(tokens), expected, "{tokens:?}");
        }
    }

    #[test]
    fn short_numbers_have_the_facts_of_their_digits() {
        for token in [
            "0",
            "-0",
            "7",
            "-120",
            "0.05",
            "72.50",
            "-0.00",
            "1200",
            "999999999999999",
            "0.00000000000001",
        ] {
            let (before_point, decimals) = short_digits(token).unwrap();
            let digits = Digits::parse(token).unwrap();
            assert_eq!(before_point, digits.before_point(), "{token}");
            assert_eq!(decimals, digits.decimals, "{token}");
            assert!(
                digits.is_kept_by_double(token) || token.starts_with("-0"),
                "{token}"
            );
        }
        for token in ["1e3", "1234567890123456", "", "-", ".5", "a", "1.2.3", "+1"] {
            assert_eq!(short_digits(token), None, "{token}");
        }
        for (number, expected) in [
            (Number::Decimal(-120.0, 0), Some(-120)),
            (Number::Token("9223372036854775807"), Some(i64::MAX)),
            (Number::Computed(3.0), Some(3)),
            (Number::Decimal(1.5, 1), None),
            (Number::Token("1e3"), None),
        ] {
            assert_eq!(integer(&number), expected, "{number:?}");
        }
    }

    #[test]
    fn held_numbers_and_computed_ones_have_the_types_of_their_tokens() {
        let mut facts = NumberFacts::default();
        facts.observe(&Number::Decimal(120.0, 0));
        facts.observe(&Number::Computed(3.0));
        assert_eq!(facts.number_type(), NumberType::Integer);
        assert_eq!(facts.real_type(), NumberType::Double);
        facts.observe(&Number::Decimal(36.6, 1));
        assert_eq!(
            (facts.number_type(), facts.decimals()),
            (NumberType::Double, 1)
        );
    }

    #[test]
    fn decimal_numbers_are_scaled_exactly() {
        for (token, scale, expected) in [
            ("1.50", 2, Some(150)),
            ("-0.05", 3, Some(-50)),
            ("12e2", 0, Some(1200)),
            ("0", 5, Some(0)),
            ("1.5", 0, None),
            ("9007199254740993", 1, Some(90_071_992_547_409_930)),
            ("1e38", 0, None),
        ] {
            assert_eq!(unscaled(token, scale), expected, "{token}");
        }
    }
}
