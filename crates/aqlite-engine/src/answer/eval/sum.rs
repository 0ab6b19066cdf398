//! Exact sums of doubles: independent of the order of the numbers, and rounded once.

use super::natural::{power_of_two, rounded, whole};

/// A sum of numbers as a superaccumulator. Each limb holds the sum of the numbers in a range of 32
/// binary exponents, in units of the lowest exponent.
///
/// A number has 53 binary digits, so it takes at most 85 bits of a limb. A limb has 128 bits, which
/// is enough for 2⁴² numbers.
#[derive(Clone, Default)]
pub(super) struct Sum {
    limbs: Vec<i128>,
    /// The position of the first stored limb, in steps of [`LIMB_EXPONENTS`] above [`LOWEST`].
    first: usize,
    /// The sum of the numbers that are infinite or NaN.
    infinite: f64,
    /// A buffer of numbers that are added together.
    waiting: Vec<f64>,
}

/// The number of binary exponents of a limb.
const LIMB_EXPONENTS: usize = 32;
/// The binary exponent of the lowest digit of the limb at position 0.
const LOWEST: i32 = -1075;
/// The number of buffered numbers that are added together.
const BUFFER: usize = 1024;

impl Sum {
    /// Returns the bytes of memory of the lists.
    pub fn bytes(&self) -> usize {
        self.limbs.capacity() * size_of::<i128>() + self.waiting.capacity() * size_of::<f64>()
    }

    /// Adds numbers.
    pub fn add_all(&mut self, numbers: &[f64]) {
        let (pieces, rest) = numbers.as_chunks::<BUFFER>();
        pieces.iter().for_each(|piece| self.add_piece(piece));
        // The numbers are buffered, because a full buffer is added faster than its numbers one by
        // one.
        if self.waiting.len() + rest.len() > BUFFER {
            self.flush();
        }
        self.waiting.extend_from_slice(rest);
    }

    fn flush(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.add_piece(&waiting);
        waiting.clear();
        self.waiting = waiting;
    }

    /// Adds at most [`BUFFER`] numbers.
    fn add_piece(&mut self, numbers: &[f64]) {
        // Two exact sums replace up to 1024 additions to limbs.
        match two_sums(numbers) {
            Some(sums) => sums.into_iter().for_each(|sum| self.add(sum)),
            None => numbers.iter().for_each(|number| self.add(*number)),
        }
    }

    /// Adds a number.
    pub fn add(&mut self, number: f64) {
        // Bits 52 to 62 of a double are its biased exponent. All ones mean infinity or NaN.
        let bits = number.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as usize;
        if exponent == 0x7ff {
            self.infinite += number;
            return;
        }
        // The leading 1 is implicit, except in subnormal numbers. Their exponent field is 0, but
        // they have the scale of exponent 1.
        let significand = (bits & ((1 << 52) - 1)) | u64::from(exponent > 0) << 52;
        let scale = exponent.max(1);
        // 53 binary digits, shifted by at most 31, need 84 of the 127 bits.
        let amount = i128::from(significand) << (scale % LIMB_EXPONENTS);
        let amount = if number.is_sign_negative() {
            -amount
        } else {
            amount
        };
        self.add_to_limb(scale / LIMB_EXPONENTS, amount);
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, mut other: Sum) {
        other.flush();
        self.infinite += other.infinite;
        for (position, amount) in (other.first..).zip(other.limbs) {
            self.add_to_limb(position, amount);
        }
    }

    /// Adds an amount to the limb at a position.
    fn add_to_limb(&mut self, position: usize, amount: i128) {
        // A position below the first one wraps to a huge index, for which there is no limb.
        match self.limbs.get_mut(position.wrapping_sub(self.first)) {
            Some(limb) => *limb += amount,
            None => self.widen(position, amount),
        }
    }

    /// Adds an amount to a limb that is not stored yet.
    fn widen(&mut self, position: usize, amount: i128) {
        if self.limbs.is_empty() {
            self.first = position;
        }
        if position < self.first {
            self.limbs
                .splice(0..0, std::iter::repeat_n(0, self.first - position));
            self.first = position;
        }
        self.limbs
            .resize(self.limbs.len().max(position - self.first + 1), 0);
        self.limbs
            .get_mut(position - self.first)
            .into_iter()
            .for_each(|limb| *limb += amount);
    }

    /// Returns all digits of the sum, or `None` if it is no whole number.
    pub fn whole(&mut self) -> Option<String> {
        self.flush();
        if self.infinite != 0.0 || self.infinite.is_nan() {
            return None;
        }
        let (digits, negative) = self.digits();
        let digits = whole(digits, (self.first * LIMB_EXPONENTS) as i32 + LOWEST)?;
        Some(if negative {
            format!("-{digits}")
        } else {
            digits
        })
    }

    /// Returns the sum, rounded to the nearest double.
    pub fn value(&mut self) -> f64 {
        self.flush();
        if self.infinite != 0.0 || self.infinite.is_nan() {
            return self.infinite;
        }
        let (digits, negative) = self.digits();
        let size = rounded(&digits, (self.first * LIMB_EXPONENTS) as i32 + LOWEST);
        if negative { -size } else { size }
    }

    /// Returns the absolute value of the sum as digits in base 2³², least significant first, and
    /// whether the sum is negative.
    fn digits(&self) -> (Vec<u32>, bool) {
        // Limbs overlap and have signs. Carrying makes each a digit of 32 bits.
        let carried = |sign: i128| {
            let (mut digits, mut carry) = (Vec::new(), 0);
            // Four more digits hold the carry of the highest limb, which has 128 bits.
            for limb in self.limbs.iter().map(|limb| limb * sign).chain([0; 4]) {
                carry += limb;
                // The low 32 bits are the digit. The arithmetic shift keeps the sign of the rest.
                digits.push(carry as u32);
                carry >>= LIMB_EXPONENTS;
            }
            (digits, carry < 0)
        };
        // A carry that stays negative means a negative sum, whose size is that of its opposite.
        match carried(1) {
            (_, true) => (carried(-1).0, true),
            positive => positive,
        }
    }
}

/// Returns two numbers whose sum is exactly that of at most [`BUFFER`] numbers, or `None` if the
/// numbers differ too much in magnitude.
///
/// Adding and subtracting a large constant removes the low binary digits of a number. The rest and
/// the removed part are multiples of units so coarse that their sums need no rounding.
fn two_sums(numbers: &[f64]) -> Option<[f64; 2]> {
    let (fours, rest) = numbers.as_chunks::<4>();
    let mut last = [0.0; 4];
    // The last four are padded with zeros, which change no sum.
    last.iter_mut()
        .zip(rest)
        .for_each(|(padded, number)| *padded = *number);
    let fours = || fours.iter().chain(std::iter::once(&last));
    // Four independent lanes allow the compiler to use vector instructions.
    let mut most = [0.0_f64; 4];
    for four in fours() {
        most.iter_mut().zip(four).for_each(|(most, number)| {
            // A NaN is never greater, so it is skipped here. It makes `lost` differ from 0 below.
            *most = if number.abs() > *most {
                number.abs()
            } else {
                *most
            }
        });
    }
    let most = most.into_iter().fold(0.0, f64::max);
    let exponent = (most.to_bits() >> 52) as i32 - 1023;
    // Outside of this range, the constants below could overflow or become subnormal.
    if most == 0.0 || !(-800..=800).contains(&exponent) {
        return (most == 0.0 && numbers.iter().all(|n| *n == 0.0)).then_some([0.0; 2]);
    }
    // Of numbers below 2 to the power of `exponent + 1`, 1024 multiples of 2 to the power of
    // `exponent - 41` need 52 binary digits.
    // The factor 1.5 keeps sum and constant between the same powers of two for both signs.
    let (coarse, fine) = (
        1.5 * power_of_two(exponent + 11),
        1.5 * power_of_two(exponent - 32),
    );
    let (mut high, mut low, mut lost) = ([0.0; 4], [0.0; 4], [0.0_f64; 4]);
    for four in fours() {
        for (((number, high), low), lost) in four.iter().zip(&mut high).zip(&mut low).zip(&mut lost)
        {
            // The addition rounds to a multiple of the coarse unit, and the subtraction is exact.
            let kept = (number + coarse) - coarse;
            let cut = number - kept;
            *high += kept;
            *low += cut;
            // A digit below the fine unit makes the sums inexact: then numbers are added singly.
            *lost += (((cut + fine) - fine) - cut).abs();
        }
    }
    (lost == [0.0; 4]).then(|| [high.iter().sum(), low.iter().sum()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqlite_rm::exact::Exact;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = Sum::default();
        numbers.iter().for_each(|n| sum.add(*n));
        sum.value()
    }

    #[test]
    fn bytes_are_those_of_the_lists() {
        let mut sum = Sum::default();
        assert_eq!(sum.bytes(), 0);
        sum.add(1.0);
        let limbs = sum.bytes();
        assert!(limbs >= size_of::<i128>(), "{limbs}");
        sum.add_all(&[1.0; 100]);
        assert!(sum.bytes() >= limbs + 100 * size_of::<f64>());
    }

    #[test]
    fn the_order_does_not_matter() {
        assert_eq!(
            (sum(&[1e16, 1.0, -1e16]), sum(&[1.0, 1e16, -1e16]), sum(&[])),
            (1.0, 1.0, 0.0)
        );
        assert_eq!(sum(&[0.1; 10]), 1.0);
        let (half, bit) = (f64::EPSILON / 2.0, f64::EPSILON * f64::EPSILON);
        assert_eq!(
            (
                sum(&[1.0, half]),
                sum(&[1.0, half, bit]),
                sum(&[bit, half, 1.0])
            ),
            (1.0, 1.0 + f64::EPSILON, 1.0 + f64::EPSILON)
        );
        assert_eq!(
            (
                sum(&[-0.1; 10]),
                sum(&[-1.0, -half, -bit]),
                sum(&[1e308, 1e308, -1e308])
            ),
            (-1.0, -1.0 - f64::EPSILON, 1e308)
        );
    }

    #[test]
    fn sum_of_sums_is_the_sum_of_all_numbers() {
        let numbers = [1e300, 0.1, -1e300, 5e-324, 1e16, -0.3, f64::EPSILON];
        for split in 0..=numbers.len() {
            let (left, right) = numbers.split_at(split);
            let (mut both, mut other) = (Sum::default(), Sum::default());
            both.add_all(left);
            other.add_all(right);
            both.add_sum(other);
            assert_eq!(both.value(), sum(&numbers), "{split}");
        }
        let (mut finite, mut infinite) = (Sum::default(), Sum::default());
        finite.add(1.0);
        infinite.add(f64::INFINITY);
        finite.add_sum(infinite);
        assert_eq!(finite.value(), f64::INFINITY);
    }

    #[test]
    fn many_at_once_are_as_one_by_one() {
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for (spread, scale) in [
            (1, 1.0),
            (40, 0.1),
            (1000, 37.7),
            (200, 1e-300),
            (2000, 1e300),
        ] {
            let numbers: Vec<f64> = (0..5000)
                .map(|_| (next() as f64 - 1e9) * scale * 10_f64.powi((next() % spread) as i32 / 50))
                .collect();
            let mut at_once = Sum::default();
            numbers.chunks(777).for_each(|piece| at_once.add_all(piece));
            assert_eq!(
                at_once.value().to_bits(),
                sum(&numbers).to_bits(),
                "{spread} {scale}"
            );
        }
        let mut odd = Sum::default();
        odd.add_all(&[f64::NAN, 1.0]);
        assert!(odd.value().is_nan());
    }

    #[test]
    fn whole_sums_keep_all_digits() {
        let of = |numbers: &[i128]| {
            let mut sum = Sum::default();
            for number in numbers {
                let number = Exact::parse(&number.to_string()).unwrap();
                sum.add_all(&[number.double(), number.rest()]);
            }
            sum.whole()
        };
        assert_eq!(of(&[]).as_deref(), Some("0"));
        assert_eq!(
            of(&[i128::from(i64::MAX), i128::from(i64::MAX)]).as_deref(),
            Some("18446744073709551614")
        );
        assert_eq!(
            of(&[i128::from(i64::MIN), -1]).as_deref(),
            Some("-9223372036854775809")
        );
        assert_eq!(
            of(&[9_007_199_254_740_993, 2, -5]).as_deref(),
            Some("9007199254740990")
        );
        assert_eq!(
            of(&[10_i128.pow(30) + 1, -3]).as_deref(),
            Some("999999999999999999999999999998")
        );
        let mut half = Sum::default();
        half.add_all(&[1.0, 0.5]);
        assert_eq!(half.whole(), None);
        half.add_all(&[0.5]);
        assert_eq!(half.whole().as_deref(), Some("2"));
        half.add(f64::INFINITY);
        assert_eq!(half.whole(), None);
    }

    #[test]
    fn one_number_is_its_own_sum() {
        for number in [
            0.0,
            1.0,
            -120.5,
            5e-324,
            -2.2e-308,
            1.5e-310,
            f64::MAX,
            f64::MIN,
            0.1,
            1e22,
            123_456_789.012_345_67,
        ] {
            assert_eq!(sum(&[number]), number, "{number:e}");
            assert_eq!(
                sum(&[number, 1e200, number, -1e200]),
                2.0 * number,
                "{number:e}"
            );
        }
        assert!(
            sum(&[f64::INFINITY, 1.0]).is_infinite()
                && sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan()
                && sum(&[f64::MAX, f64::MAX]).is_infinite()
        );
    }
}
