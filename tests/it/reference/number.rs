//! Numbers of rows: doubles, and whole numbers with all their digits.

use std::cmp::Ordering;

/// A number, and all digits of one that was written as a whole number.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    pub double: f64,
    whole: Option<i128>,
}

/// The whole numbers that every double holds.
const DOUBLES: std::ops::Range<i128> = -(1 << 53)..(1 << 53) + 1;

impl Number {
    pub fn parse(text: &str) -> Option<Number> {
        let double = text.parse().ok()?;
        Some(Number {
            double,
            whole: whole(text),
        })
    }

    pub fn of(double: f64) -> Number {
        // A result that is a double may be compared with digits, so it gets its own.
        let whole = format!("{double}").parse().ok();
        Number { double, whole }
    }

    pub fn of_whole(whole: i128) -> Number {
        Number {
            double: whole as f64,
            whole: Some(whole),
        }
    }

    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self.whole, other.whole) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => self.double.partial_cmp(&other.double),
        }
    }

    /// Returns a text that is the same for equal numbers.
    pub fn identity(self) -> String {
        match self.whole {
            Some(whole) => whole.to_string(),
            None => (self.double + 0.0).to_string(),
        }
    }

    /// Returns the whole number where its double would be another one.
    pub fn beyond_doubles(self) -> Option<i128> {
        self.whole.filter(|whole| !DOUBLES.contains(whole))
    }

    /// Computes a function: on all digits of numbers beyond doubles, else on the double.
    pub fn map(self, whole: impl Fn(i128) -> i128, double: impl Fn(f64) -> f64) -> Number {
        match self.beyond_doubles() {
            Some(number) => Number::of_whole(whole(number)),
            None => Number::of(double(self.double)),
        }
    }

    pub fn quotient(self, divisor: Number) -> Number {
        match (self.whole, divisor.whole) {
            (Some(a), Some(b)) if b != 0 && a % b == 0 => Number::of_whole(a / b),
            _ => Number::of(self.double / divisor.double),
        }
    }

    pub fn remainder(self, divisor: Number) -> Number {
        let is_beyond = self.beyond_doubles().or(divisor.beyond_doubles()).is_some();
        match (self.whole, divisor.whole) {
            (Some(a), Some(b)) if is_beyond && b != 0 => Number::of_whole(a % b),
            _ => Number::of(self.double % divisor.double),
        }
    }
}

/// Returns the whole number that a text is, in any notation.
fn whole(text: &str) -> Option<i128> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zeros = exponent.parse::<i32>().ok()? - behind.len() as i32;
    if zeros >= 0 {
        let digits = format!("{before}{behind}{}", "0".repeat(zeros.min(40) as usize));
        return digits.parse().ok();
    }
    let digits = format!("{before}{behind}");
    let kept = digits.len().checked_sub(zeros.unsigned_abs() as usize)?;
    let is_whole = digits[kept..].bytes().all(|digit| digit == b'0');
    is_whole.then(|| digits[..kept].parse().ok())?
}

/// Rounds a whole number to a multiple of 10 to the power of `zeros`, half away from zero.
pub fn round_whole(number: i128, zeros: u32) -> i128 {
    let Some(unit) = 10_i128.checked_pow(zeros) else {
        return 0;
    };
    (number.abs() + unit / 2) / unit * unit * number.signum()
}
