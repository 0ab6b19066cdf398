//! Numbers that compare by all digits of their whole part, also beyond those of a double.

use crate::number::{self, TextForm};
use std::cmp::Ordering;

/// A number as the nearest double, with the difference to it where the double cannot hold the whole
/// part: an `Integer64` of the Reference Model has up to 19 digits, a double about 16.
///
/// Numbers of less than 2^53 are doubles alone. From there to 2^106 (31 digits) whole numbers are
/// exact. Greater ones are doubles again.
///
/// ```
/// use aqlite_rm::exact::Exact;
///
/// let (odd, even) = (Exact::parse("9007199254740993"), Exact::parse("9007199254740992"));
/// assert!(odd > even);
/// assert_eq!(odd.map(Exact::double), even.map(Exact::double));
/// assert_eq!(odd.map(Exact::text).as_deref(), Some("9007199254740993"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    double: f64,
    /// The difference to the double; 0 for a number that the double holds.
    rest: f64,
}

/// From this number on, 2^53, a double does not hold every whole number.
pub const WIDE: f64 = 9_007_199_254_740_992.0;

// From this number on, 2^106, the difference to the double may be more than 2^53.
const WIDEST: f64 = WIDE * WIDE;

impl Exact {
    /// Parses a decimal number.
    ///
    /// Returns `None` for a text that is not a decimal number.
    pub fn parse(text: &str) -> Option<Exact> {
        let double = number::parse(text)?;
        Some(Exact::of(double, text))
    }

    /// Returns the number of this text, of which `double` is the nearest double.
    pub fn of(double: f64, text: &str) -> Exact {
        let number = Exact::from(double);
        let rest = if number.is_wide() {
            rest_of(double, text).unwrap_or(0.0)
        } else {
            0.0
        };
        Exact { rest, ..number }
    }

    /// Returns the nearest double.
    pub fn double(self) -> f64 {
        self.double
    }

    /// Returns whether the number has digits that its double does not have.
    pub fn is_wide(self) -> bool {
        (WIDE..WIDEST).contains(&self.double.abs())
    }

    /// Returns 0 for -0, and every other number itself.
    #[must_use]
    pub fn without_sign_of_zero(self) -> Exact {
        Exact {
            double: self.double + 0.0,
            rest: self.rest + 0.0,
        }
    }

    /// Returns the bits of both parts, the same for equal numbers: zero has no sign.
    pub fn bits(self) -> (u64, u64) {
        let Exact { double, rest } = self.without_sign_of_zero();
        (double.to_bits(), rest.to_bits())
    }

    /// Returns the order of all numbers, in which NaN is greater than infinity and zero has no sign.
    pub fn total_cmp(self, other: Exact) -> Ordering {
        let (a, b) = (self.without_sign_of_zero(), other.without_sign_of_zero());
        a.double
            .total_cmp(&b.double)
            .then(a.rest.total_cmp(&b.rest))
    }

    /// Returns the decimal number without an exponent: all digits of a wide one, of others as many as
    /// distinguish the double from its neighbors.
    pub fn text(self) -> String {
        if !self.is_wide() {
            return number::shortest(self.double);
        }
        let number = self.abs();
        let (whole, fraction) = number.parts();
        let sign = if self.double < 0.0 { "-" } else { "" };
        // The rest has about 15 digits; those of its whole part are none of the fraction.
        let decimals = 15_usize.saturating_sub(number.rest.abs().trunc().to_string().len());
        let fraction = number::fixed(fraction, decimals);
        match fraction.trim_end_matches('0').strip_prefix("0.") {
            Some("") | None => format!("{sign}{whole}"),
            Some(digits) => format!("{sign}{whole}.{digits}"),
        }
    }

    /// Returns the number without its sign.
    #[must_use]
    pub fn abs(self) -> Exact {
        if self.double.is_sign_negative() {
            self.negated()
        } else {
            self
        }
    }

    /// Returns the least whole number that is not less.
    #[must_use]
    pub fn ceil(self) -> Exact {
        match self.parts() {
            _ if self.rest == 0.0 => Exact::from(self.double.ceil()),
            (whole, fraction) => Exact::of_whole(whole + i128::from(fraction > 0.0)),
        }
    }

    /// Returns the greatest whole number that is not greater.
    #[must_use]
    pub fn floor(self) -> Exact {
        if self.rest == 0.0 {
            Exact::from(self.double.floor())
        } else {
            Exact::of_whole(self.parts().0)
        }
    }

    /// Returns the least whole number that is greater. From 2^106 on it is the number itself.
    #[must_use]
    pub fn whole_above(self) -> Exact {
        self.floor().moved(1)
    }

    /// Returns the greatest whole number that is less. From 2^106 on it is the number itself.
    #[must_use]
    pub fn whole_below(self) -> Exact {
        self.ceil().moved(-1)
    }

    /// Returns the sum of a whole number and `distance`; without it from 2^106 on.
    fn moved(self, distance: i128) -> Exact {
        self.whole()
            .map_or(self, |whole| Exact::of_whole(whole + distance))
    }

    /// Returns the remainder of the division that rounds to zero; it has the sign of the dividend.
    #[must_use]
    pub fn remainder(self, divisor: Exact) -> Exact {
        let wide = |number: Exact| number.double.abs() >= WIDE;
        match (self.whole(), divisor.whole()) {
            (Some(a), Some(b)) if wide(self) || wide(divisor) => {
                // The divisor 0 has no remainder, as with doubles.
                a.checked_rem(b)
                    .map_or(Exact::from(f64::NAN), Exact::of_whole)
            }
            _ => Exact::from(self.double % divisor.double),
        }
    }

    /// Rounds half away from zero, to a number of decimals (negative: to tens, hundreds), on the
    /// digits of [`Exact::text`].
    #[must_use]
    pub fn round(self, decimals: i32) -> Exact {
        let text = self.abs().text();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = [whole, fraction].concat();
        // The number of digits that are kept; an infinite number has no digits.
        let kept = i64::try_from(whole.len()).unwrap_or(i64::MAX) + i64::from(decimals);
        let Some(next) = usize::try_from(kept).ok().map(|kept| digits.get(kept..)) else {
            return Exact::from(0.0);
        };
        let Some(next) = next.and_then(|rest| rest.bytes().next()) else {
            return self;
        };
        let kept = digits.get(..digits.len().min(kept as usize));
        let mut rounded = String::from("0") + kept.unwrap_or_default();
        if next >= b'5' {
            increment(&mut rounded);
        }
        let rounded = Exact::parse(&format!("{rounded}e{}", -i64::from(decimals)));
        match rounded {
            Some(rounded) if self.double < 0.0 => rounded.negated(),
            Some(rounded) => rounded,
            None => self,
        }
    }

    /// Divides two numbers: exactly if both are whole and the quotient is, else as doubles.
    #[must_use]
    pub fn quotient(self, divisor: Exact) -> Exact {
        match (self.whole(), divisor.whole()) {
            (Some(a), Some(b)) if a.checked_rem(b) == Some(0) => Exact::of_whole(a / b),
            _ => Exact::from(self.double / divisor.double),
        }
    }

    /// Returns the difference of the number to its nearest double.
    pub fn rest(self) -> f64 {
        self.rest
    }

    fn negated(self) -> Exact {
        Exact {
            double: -self.double,
            rest: -self.rest,
        }
    }

    /// Returns the whole number that this is, if it has no fraction and is less than 2^106.
    fn whole(self) -> Option<i128> {
        let (whole, fraction) = self.parts();
        (fraction == 0.0 && self.double.abs() < WIDEST).then_some(whole)
    }

    /// Returns the greatest whole number that is not greater, and what is added to it.
    fn parts(self) -> (i128, f64) {
        let (double, rest) = (self.double.floor(), self.rest.floor());
        // Both are less than 2^107 if the rest is not 0, so the conversions lose nothing.
        let whole = double as i128 + rest as i128;
        (whole, (self.double - double) + (self.rest - rest))
    }

    fn of_whole(whole: i128) -> Exact {
        let number = Exact::from(whole as f64);
        let rest = if number.is_wide() {
            (whole - number.double as i128) as f64
        } else {
            0.0
        };
        Exact { rest, ..number }
    }
}

impl TextForm for Exact {
    fn from_text(text: &str) -> Option<Exact> {
        Exact::parse(text)
    }

    fn to_text(&self) -> String {
        self.text()
    }
}

impl From<f64> for Exact {
    fn from(double: f64) -> Exact {
        Exact { double, rest: 0.0 }
    }
}

/// NaN equals nothing, and zero has no sign.
impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        self.double == other.double && self.rest == other.rest
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Exact) -> Option<Ordering> {
        let doubles = self.double.partial_cmp(&other.double)?;
        // Rounding to a double never swaps two numbers, so only equal doubles need the rest.
        Some(doubles.then(self.rest.partial_cmp(&other.rest)?))
    }
}

/// Adds 1 to decimal digits that begin with 0, in the last place.
fn increment(digits: &mut String) {
    let kept = digits.trim_end_matches('9').len();
    let nines = digits.len() - kept;
    digits.truncate(kept);
    // The first digit is 0, so there is one that is no 9.
    let last = digits.pop().map_or(b'1', |digit| digit as u8 + 1);
    digits.push(char::from(last));
    digits.push_str(&"0".repeat(nines));
}

/// Returns the difference of a text to its nearest double, which is less than 2^106.
fn rest_of(double: f64, text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let unsigned = mantissa.trim_start_matches(['-', '+']);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let point = i64::try_from(whole.len()).ok()? + exponent;
    let digits = || whole.bytes().chain(fraction.bytes());
    // A number below 2^106 has at most 32 digits before the point, but for zeros in front.
    let mut number: i128 = 0;
    let mut digit = digits().chain(std::iter::repeat(b'0'));
    for _ in 0..point.max(0) {
        number = number.checked_mul(10)? + i128::from(digit.next()? - b'0');
    }
    let behind: String = digits()
        .skip(usize::try_from(point.max(0)).ok()?)
        .map(char::from)
        .collect();
    let behind = number::parse(&format!("0.{behind}"))?;
    // The nearest double of such a number is whole.
    let rest = (number - double.abs() as i128) as f64 + behind;
    Some(if double < 0.0 { -rest } else { rest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary::Generator;

    fn exact(text: &str) -> Exact {
        Exact::parse(text).unwrap()
    }

    #[test]
    fn notations_of_one_number_are_equal() {
        let spellings = [
            "9007199254740993",
            "+9007199254740993.000",
            "9.007199254740993e15",
            "9007199254740993000E-3",
            "0009007199254740993",
        ];
        for text in spellings {
            assert_eq!(exact(text), exact(spellings[0]), "{text}");
            assert_eq!(exact(text).bits(), exact(spellings[0]).bits(), "{text}");
            assert_eq!(exact(text).text(), spellings[0]);
        }
        assert_eq!(exact("0.1"), exact("1e-1"));
        assert_eq!(exact("-0").bits(), exact("0").bits());
        assert!(exact("1e400").double().is_infinite());
    }

    #[test]
    fn whole_numbers_are_in_the_order_of_integers() {
        let mut random = Generator::new(5);
        let mut next = |bits: u32| {
            let parts = [0; 4].map(|_| random.next(1 << 30) as i128);
            let number =
                parts.iter().fold(0, |number, part| number << 30 | part) & ((1 << bits) - 1);
            if random.next(2) == 0 { number } else { -number }
        };
        for round in 0..20_000 {
            let a = next(40 + round % 60);
            let b = a + next(round % 12);
            let (x, y) = (exact(&a.to_string()), exact(&b.to_string()));
            assert_eq!(x.partial_cmp(&y), Some(a.cmp(&b)), "{a} {b}");
            assert_eq!(x.total_cmp(y), a.cmp(&b), "{a} {b}");
            assert_eq!(x == y, a == b);
            assert_eq!(x.bits() == y.bits(), a == b);
            assert_eq!(x.text(), a.to_string());
            assert_eq!(x.abs().text(), a.abs().to_string());
            if b != 0 {
                assert_eq!(x.remainder(y), Exact::of_whole(a % b), "{a} % {b}");
            }
        }
    }

    #[test]
    fn fractions_of_wide_numbers_count() {
        let (low, middle, high) = (
            exact("-9007199254740993.5"),
            exact("-9007199254740993.25"),
            exact("-9007199254740993"),
        );
        assert!(low < middle && middle < high);
        assert_eq!(low.text(), "-9007199254740993.5");
        assert_eq!(low.floor().text(), "-9007199254740994");
        assert_eq!(low.ceil().text(), "-9007199254740993");
        assert_eq!(middle.abs().text(), "9007199254740993.25");
    }

    #[test]
    fn whole_numbers_have_neighbors() {
        for (text, below, above) in [
            ("4", "3", "5"),
            ("4.5", "4", "5"),
            ("-0.5", "-1", "0"),
            ("0", "-1", "1"),
            ("9007199254740992", "9007199254740991", "9007199254740993"),
            ("9007199254740993.5", "9007199254740993", "9007199254740994"),
            (
                "9223372036854775807",
                "9223372036854775806",
                "9223372036854775808",
            ),
        ] {
            assert_eq!(exact(text).whole_below().text(), below, "{text}");
            assert_eq!(exact(text).whole_above().text(), above, "{text}");
        }
        assert!(exact("1e400").whole_above().double().is_infinite());
    }

    #[test]
    fn digits_round_half_away_from_zero() {
        let cases = [
            ("9007199254740993.5", 0, "9007199254740994"),
            ("-9007199254740993.5", 0, "-9007199254740994"),
            ("9007199254740995", -1, "9007199254741000"),
            ("9007199254740994", -1, "9007199254740990"),
            ("9007199254740993", -16, "10000000000000000"),
            ("9007199254740993", -17, "0"),
            ("9007199254740993.567", 1, "9007199254740993.6"),
            ("90071992547409931.567", 1, "90071992547409931.6"),
            (
                "12345678901234567890123456789.12345",
                1,
                "12345678901234567890123456789.1",
            ),
            ("237521577549630.53", 1, "237521577549630.5"),
            ("999.96", 1, "1000"),
            ("0.5", 0, "1"),
            ("-0.49", 0, "-0"),
            ("1e300", 5, &number::shortest(1e300)),
            ("1.5", 400, "1.5"),
            ("1.5", -400, "0"),
        ];
        for (text, decimals, rounded) in cases {
            assert_eq!(exact(text).round(decimals).text(), rounded, "{text}");
        }
        assert!(exact("1e400").round(1).double().is_infinite());
    }

    #[test]
    fn wide_numbers_print_the_digits_that_they_were_written_with() {
        for text in [
            "70973155591261354.04",
            "9007199254740993.567",
            "-9223372036854775807",
        ] {
            assert_eq!(exact(text).text(), text);
        }
    }

    #[test]
    fn whole_quotients_are_exact() {
        let quotient = |a, b| exact(a).quotient(exact(b)).text();
        assert_eq!(quotient("9007199254740993", "1"), "9007199254740993");
        assert_eq!(quotient("27021597764222979", "3"), "9007199254740993");
        assert_eq!(quotient("1", "4"), "0.25");
    }

    #[test]
    fn no_number_is_comparable_with_nan() {
        let nan = Exact::from(f64::NAN);
        assert_eq!(nan.partial_cmp(&exact("1")), None);
        assert!(nan != nan);
        assert!(exact("7").remainder(exact("0")).double().is_nan());
        assert!(
            exact("9007199254740993")
                .remainder(exact("0"))
                .double()
                .is_nan()
        );
    }
}
