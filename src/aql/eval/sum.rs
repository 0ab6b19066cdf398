//! Exact sums: the same whatever the order of the numbers, rounded once.

/// A sum of numbers: for each 32 binary exponents, what the numbers with these come to, in units of the lowest.
///
/// A number has 53 binary digits, so a window holds 85 at once and has room for 2⁴² of them.
#[derive(Default)]
pub(super) struct Sum {
    windows: Vec<i128>,
    /// The number of the first window.
    first: usize,
    /// The sum of what is no finite number.
    infinite: f64,
}

/// Binary exponents of a window.
const WINDOW: usize = 32;
/// The binary exponent of the lowest digit of the first window.
const LOWEST: i32 = -1075;

impl Sum {
    /// Adds a number.
    pub fn add(&mut self, number: f64) {
        let bits = number.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as usize;
        if exponent == 0x7ff {
            self.infinite += number;
            return;
        }
        let digits = (bits & ((1 << 52) - 1)) | u64::from(exponent > 0) << 52;
        let place = exponent.max(1);
        let amount = i128::from(digits) << (place % WINDOW);
        let amount = if number.is_sign_negative() { -amount } else { amount };
        match self.windows.get_mut((place / WINDOW).wrapping_sub(self.first)) {
            Some(window) => *window += amount,
            None => self.widen(place / WINDOW, amount),
        }
    }

    /// Adds to a window that is not there yet.
    fn widen(&mut self, window: usize, amount: i128) {
        if self.windows.is_empty() {
            self.first = window;
        }
        if window < self.first {
            self.windows.splice(0..0, std::iter::repeat_n(0, self.first - window));
            self.first = window;
        }
        self.windows.resize(self.windows.len().max(window - self.first + 1), 0);
        self.windows.get_mut(window - self.first).into_iter().for_each(|w| *w += amount);
    }

    /// The sum, rounded to the nearest number.
    pub fn value(&self) -> f64 {
        if self.infinite != 0.0 || self.infinite.is_nan() {
            return self.infinite;
        }
        let (digits, negative) = self.digits();
        let size = rounded(&digits, (self.first * WINDOW) as i32 + LOWEST);
        if negative { -size } else { size }
    }

    /// The size of the sum in digits of 32 bits, the lowest first, and whether it is negative.
    fn digits(&self) -> (Vec<u32>, bool) {
        let carried = |sign: i128| {
            let (mut digits, mut carry) = (Vec::new(), 0);
            for window in self.windows.iter().map(|w| w * sign).chain([0; 4]) {
                carry += window;
                digits.push(carry as u32);
                carry >>= WINDOW;
            }
            (digits, carry < 0)
        };
        match carried(1) {
            (_, true) => (carried(-1).0, true),
            positive => positive,
        }
    }
}

/// The number nearest to these digits times 2 to the power of `exponent`; of two as near the even one.
fn rounded(digits: &[u32], exponent: i32) -> f64 {
    let Some(high) = digits.iter().rposition(|d| *d != 0) else { return 0.0 };
    let digit = |i: Option<usize>| i.and_then(|i| digits.get(i)).copied().map_or(0, u128::from);
    let three = digit(Some(high)) << 64 | digit(high.checked_sub(1)) << 32 | digit(high.checked_sub(2));
    let spare = 64 - three.leading_zeros() as i32;
    let below = (three & ((1 << spare) - 1)) != 0 || digits.iter().take(high.saturating_sub(2)).any(|d| *d != 0);
    let top = (three >> spare) as u64 | u64::from(below);
    let exponent = exponent + (high as i32 - 2) * WINDOW as i32 + spare;
    top as f64 * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2)
}

/// 2 to a power between -1022 and 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent.clamp(-1022, 1023) + 1023).unsigned_abs()) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = Sum::default();
        numbers.iter().for_each(|n| sum.add(*n));
        sum.value()
    }

    #[test]
    fn the_order_does_not_matter() {
        assert_eq!((sum(&[1e16, 1.0, -1e16]), sum(&[1.0, 1e16, -1e16]), sum(&[])), (1.0, 1.0, 0.0));
        assert_eq!(sum(&[0.1; 10]), 1.0);
        let (half, bit) = (f64::EPSILON / 2.0, f64::EPSILON * f64::EPSILON);
        assert_eq!((sum(&[1.0, half]), sum(&[1.0, half, bit]), sum(&[bit, half, 1.0])), (1.0, 1.0 + f64::EPSILON, 1.0 + f64::EPSILON));
        assert_eq!((sum(&[-0.1; 10]), sum(&[-1.0, -half, -bit]), sum(&[1e308, 1e308, -1e308])), (-1.0, -1.0 - f64::EPSILON, 1e308));
    }

    #[test]
    fn one_number_is_its_own_sum() {
        for number in [0.0, 1.0, -120.5, 5e-324, -2.2e-308, 1.5e-310, f64::MAX, f64::MIN, 0.1, 1e22, 123_456_789.012_345_67] {
            assert_eq!(sum(&[number]), number, "{number:e}");
            assert_eq!(sum(&[number, 1e200, number, -1e200]), 2.0 * number, "{number:e}");
        }
        assert!(
            sum(&[f64::INFINITY, 1.0]).is_infinite() && sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan() && sum(&[f64::MAX, f64::MAX]).is_infinite()
        );
    }
}
