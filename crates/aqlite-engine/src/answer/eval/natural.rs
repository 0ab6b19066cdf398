//! Natural numbers of any size, for exact sums.

/// Returns the double nearest to a natural number times 2 to the power of `exponent`; ties round to
/// even. `words` are the digits in base 2³², least significant first.
pub(super) fn rounded(words: &[u32], exponent: i32) -> f64 {
    let Some(high) = words.iter().rposition(|word| *word != 0) else {
        return 0.0;
    };
    let word = |i: Option<usize>| i.and_then(|i| words.get(i)).copied().map_or(0, u128::from);
    let three =
        word(Some(high)) << 64 | word(high.checked_sub(1)) << 32 | word(high.checked_sub(2));
    let below = words
        .iter()
        .take(high.saturating_sub(2))
        .any(|word| *word != 0);
    // The lowest bit is set if any lower word is not 0, which is all that rounding needs.
    let exact = three << 1 | u128::from(below);
    let exponent = exponent + (high as i32 - 2) * 32 - 1;
    // A double has 53 binary digits, and none below 2 to the power of -1074.
    let spare = (75 - exact.leading_zeros() as i32)
        .max(-1074 - exponent)
        .clamp(1, 127);
    let (kept, half, rest) = (
        (exact >> spare) as u64,
        1 << (spare - 1),
        exact & ((1 << spare) - 1),
    );
    let up = rest > half || (rest == half && kept & 1 == 1);
    // One power of two could overflow or underflow although the result does not.
    let exponent = exponent + spare;
    (kept + u64::from(up)) as f64
        * power_of_two(exponent / 2)
        * power_of_two(exponent - exponent / 2)
}

/// Returns 2 to a power between -1022 and 1023.
pub(super) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent.clamp(-1022, 1023) + 1023).unsigned_abs()) << 52)
}

/// Returns the exact decimal digits of a natural number times 2 to the power of `exponent`, or
/// `None` if that is no whole number. `words` are the digits in base 2³², least significant first.
pub(super) fn whole(words: Vec<u32>, exponent: i32) -> Option<String> {
    let mut scaled = Natural(words);
    powers(2, u64::from(exponent.max(0).unsigned_abs()))
        .for_each(|power| scaled.multiply_add(power, 0));
    let is_whole =
        powers(2, u64::from(exponent.min(0).unsigned_abs())).all(|power| scaled.divide(power) == 0);
    let digits = scaled.digits();
    is_whole.then(|| {
        if digits.is_empty() {
            "0".to_owned()
        } else {
            digits
        }
    })
}

/// Returns numbers below 2³² whose product is `base` to the power of `exponent`.
fn powers(base: u32, exponent: u64) -> impl Iterator<Item = u32> {
    std::iter::repeat_n(base.pow(9), (exponent / 9) as usize)
        .chain([base.pow((exponent % 9) as u32)])
}

/// A natural number as digits in base 2³², least significant first.
#[derive(Default)]
struct Natural(Vec<u32>);

impl Natural {
    /// Multiplies by `factor`, then adds `summand`.
    fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for word in &mut self.0 {
            // A product of 32-bit numbers and a carry of 32 bits fit into 64 bits.
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Divides by a number, and returns the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut rest = 0;
        for word in self.0.iter_mut().rev() {
            // The rest is below the divisor, so the quotient fits into 32 bits.
            let all = rest << 32 | u64::from(*word);
            (*word, rest) = ((all / u64::from(divisor)) as u32, all % u64::from(divisor));
        }
        rest as u32
    }

    /// Returns the decimal digits; no digits for zero.
    fn digits(mut self) -> String {
        let mut groups = Vec::new();
        while self.0.iter().any(|word| *word != 0) {
            // Each group has nine decimal digits, and the lowest group comes first.
            groups.push(self.divide(1_000_000_000));
        }
        let digits: String = groups
            .iter()
            .rev()
            .map(|group| format!("{group:09}"))
            .collect();
        digits.trim_start_matches('0').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{power_of_two, rounded, whole};

    /// Returns natural numbers around powers of two, and others with random digits.
    fn numbers() -> Vec<u128> {
        let mut numbers = vec![0, 1, 2, 3];
        for bit in 1..125 {
            let power = 1u128 << bit;
            // Ties between two doubles, and their neighbors.
            let half = power >> 53;
            let near = [power - 1, power, power + 1, power + half, power + 3 * half];
            numbers.extend(near.into_iter().flat_map(|n| [n, n + 1, n - 1]));
        }
        let mut state = 7u128;
        for bits in 1..125 {
            state = state
                .wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645)
                .wrapping_add(1);
            numbers.push(state >> (128 - bits));
        }
        numbers
    }

    fn words(number: u128) -> Vec<u32> {
        (0..4).map(|at| (number >> (32 * at)) as u32).collect()
    }

    #[test]
    fn rounding_is_that_of_the_conversion_to_double() {
        for number in numbers() {
            for exponent in [-200, -64, -1, 0, 1, 33, 500] {
                // The conversion rounds to the nearest double, ties to even. The scaling is exact.
                let expected = number as f64 * power_of_two(exponent);
                assert_eq!(
                    rounded(&words(number), exponent),
                    expected,
                    "{number} {exponent}"
                );
            }
        }
    }

    #[test]
    fn rounding_at_the_ends_of_the_range() {
        let least = f64::from_bits(1);
        assert_eq!(rounded(&[1], -1074), least);
        assert_eq!(
            rounded(&[3], -1075),
            2.0 * least,
            "a tie goes to the even neighbor"
        );
        assert_eq!(rounded(&[1], -1075), 0.0, "a tie goes to the even neighbor");
        assert_eq!(rounded(&[3], -1076), least);
        assert_eq!(rounded(&[1], 1023), 2f64.powi(1023));
        assert_eq!(rounded(&[1], 1024), f64::INFINITY);
        assert_eq!(rounded(&[0, 0, 0], 5), 0.0);
    }

    #[test]
    fn whole_numbers_have_all_digits() {
        for number in numbers() {
            assert_eq!(whole(words(number), 0), Some(number.to_string()));
            let number = number >> 4;
            assert_eq!(whole(words(number), 3), Some((number << 3).to_string()));
            assert_eq!(whole(words(number << 3), -3), Some(number.to_string()));
            assert_eq!(whole(words((number << 3) + 1), -3), None);
        }
    }
}
