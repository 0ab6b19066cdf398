//! Doubles from decimal digits and back, exactly, by whole numbers of any size. What the standard library does this with is faster for
//! long numbers, but its tables and code are forty kilobytes that every page would load.

use std::num::IntErrorKind;

/// So many digits at most tell a decimal number from the middle between two doubles.
const TELLING: usize = 770;

/// The double nearest to a decimal number, of two as near the even one; infinite beyond all doubles. `None` for what is no number,
/// and for the words `inf` and `nan`.
///
/// ```
/// use aqlite_engine::rm::number;
///
/// assert_eq!(number::parse("-37.50"), Some(-37.5));
/// assert_eq!(number::parse("1e400"), Some(f64::INFINITY));
/// assert_eq!(number::parse("1,5"), None);
/// ```
pub fn parse(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if !digits().all(|byte| byte.is_ascii_digit()) || digits().next().is_none() {
        return None;
    }
    let exponent = i64::from(power(exponent)?).saturating_sub(fraction.len() as i64);
    let digits: Vec<u8> = digits().map(|byte| byte - b'0').skip_while(|digit| *digit == 0).collect();
    let size = nearest(&digits, exponent);
    Some(if mantissa.starts_with('-') { -size } else { size })
}

/// What is written as text and read again: numbers, and texts themselves.
pub trait Spelled: Sized {
    /// What a text spells.
    fn read(text: &str) -> Option<Self>;
    /// The text that spells it.
    fn spell(&self) -> String;
}

impl Spelled for f64 {
    fn read(text: &str) -> Option<f64> {
        parse(text)
    }

    fn spell(&self) -> String {
        shown(*self)
    }
}

macro_rules! spelled {
    ($($ty:ty),*) => { $(impl Spelled for $ty {
        fn read(text: &str) -> Option<$ty> {
            text.parse().ok()
        }

        fn spell(&self) -> String {
            self.to_string()
        }
    })* };
}

spelled!(i64, u32, String);

/// The number behind `e`; one that is too large is the largest.
fn power(text: &str) -> Option<i32> {
    match text.parse::<i32>() {
        Ok(power) => Some(power),
        Err(why) => match why.kind() {
            IntErrorKind::PosOverflow => Some(i32::MAX),
            IntErrorKind::NegOverflow => Some(i32::MIN),
            _ => None,
        },
    }
}

/// The double nearest to these digits, of which the first is not 0, times 10 to the power of `exponent`.
fn nearest(digits: &[u8], exponent: i64) -> f64 {
    // Whole numbers below 10^15 and powers of ten up to 10^22 are doubles, so that one operation rounds once.
    if digits.len() <= 15 && (-22..=22).contains(&exponent) {
        let whole = digits.iter().fold(0.0, |whole, digit| whole * 10.0 + f64::from(*digit));
        let power = (0..exponent.abs()).fold(1.0, |power, _| power * 10.0);
        return if exponent < 0 { whole / power } else { whole * power };
    }
    match digits.len() as i64 + exponent {
        _ if digits.is_empty() => 0.0,
        ..-330 => 0.0,
        310.. => f64::INFINITY,
        _ => exactly(digits, exponent),
    }
}

fn exactly(digits: &[u8], exponent: i64) -> f64 {
    let (telling, rest) = digits.split_at(digits.len().min(TELLING));
    let mut number = Natural::default();
    telling.iter().for_each(|digit| number.times_plus(10, u32::from(*digit)));
    number.times_plus(10, u32::from(rest.iter().any(|digit| *digit != 0)));
    let exponent = exponent + rest.len() as i64 - 1;
    if exponent >= 0 {
        powers(10, exponent.unsigned_abs()).for_each(|power| number.times_plus(power, 0));
        return rounded(&number.0, 0);
    }
    // More words below than the division takes away.
    let words = exponent.unsigned_abs() as usize / 9 + 3;
    number.0.splice(0..0, std::iter::repeat_n(0, words));
    let inexact = powers(10, exponent.unsigned_abs()).fold(false, |inexact, power| inexact | (number.over(power) != 0));
    number.0.first_mut().into_iter().for_each(|word| *word |= u32::from(inexact));
    rounded(&number.0, -32 * words as i32)
}

/// The double nearest to these words, the lowest first, times 2 to the power of `exponent`; of two as near the even one.
pub(crate) fn rounded(words: &[u32], exponent: i32) -> f64 {
    let Some(high) = words.iter().rposition(|word| *word != 0) else { return 0.0 };
    let word = |i: Option<usize>| i.and_then(|i| words.get(i)).copied().map_or(0, u128::from);
    let three = word(Some(high)) << 64 | word(high.checked_sub(1)) << 32 | word(high.checked_sub(2));
    let below = words.iter().take(high.saturating_sub(2)).any(|word| *word != 0);
    let exact = three << 1 | u128::from(below);
    let exponent = exponent + (high as i32 - 2) * 32 - 1;
    // A double has 53 binary digits, and none below 2 to the power of -1074.
    let spare = (75 - exact.leading_zeros() as i32).max(-1074 - exponent).clamp(1, 127);
    let (kept, half, rest) = ((exact >> spare) as u64, 1 << (spare - 1), exact & ((1 << spare) - 1));
    let up = rest > half || (rest == half && kept & 1 == 1);
    let exponent = exponent + spare;
    (kept + u64::from(up)) as f64 * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2)
}

/// 2 to a power between -1022 and 1023.
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent.clamp(-1022, 1023) + 1023).unsigned_abs()) << 52)
}

/// As few digits as tell a number from all others, without exponent, and without a point behind a whole number.
///
/// ```
/// assert_eq!(aqlite_engine::rm::number::shown(1e21), "1000000000000000000000");
/// assert_eq!(aqlite_engine::rm::number::shown(-1.5e-7), "-0.00000015");
/// ```
pub fn shown(number: f64) -> String {
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format(number);
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.strip_suffix(".0").unwrap_or(text).to_owned() };
    let (sign, size) = mantissa.strip_prefix('-').map_or(("", mantissa), |size| ("-", size));
    placed(sign, &size.replace('.', ""), exponent.parse().unwrap_or(0) + 1)
}

/// The exact decimal digits of a natural number times a power of 2, where that is a whole number; `words` are its digits of 32 bits, the
/// lowest first.
pub(crate) fn whole(words: Vec<u32>, exponent: i32) -> Option<String> {
    let mut scaled = Natural(words);
    powers(2, u64::from(exponent.max(0).unsigned_abs())).for_each(|power| scaled.times_plus(power, 0));
    let is_whole = powers(2, u64::from(exponent.min(0).unsigned_abs())).all(|power| scaled.over(power) == 0);
    let digits = scaled.digits();
    is_whole.then(|| if digits.is_empty() { "0".to_owned() } else { digits })
}

/// A number with so many digits behind the point; of two as near, by the exact binary value, the one whose last digit is even.
///
/// ```
/// assert_eq!(aqlite_engine::rm::number::fixed(2.675, 2), "2.67"); // the double lies below
/// assert_eq!(aqlite_engine::rm::number::fixed(0.125, 2), "0.12");
/// ```
pub fn fixed(number: f64, decimals: usize) -> String {
    if !number.is_finite() {
        return shown(number);
    }
    let bits = number.abs().to_bits();
    let (exponent, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
    let mantissa = fraction | u64::from(exponent > 0) << 52;
    let exponent = exponent.max(1) - 1075;
    // Twice the number, so that what is cut off last is a half.
    let mut scaled = Natural(vec![mantissa as u32, (mantissa >> 32) as u32]);
    let up = powers(2, exponent.max(0).unsigned_abs() + 1).chain(powers(10, decimals as u64));
    up.for_each(|power| scaled.times_plus(power, 0));
    let inexact = powers(2, exponent.min(0).unsigned_abs()).fold(false, |inexact, power| inexact | (scaled.over(power) != 0));
    let is_half = scaled.over(2) == 1;
    let is_odd = scaled.0.first().is_some_and(|word| word & 1 == 1);
    scaled.times_plus(1, u32::from(is_half && (inexact || is_odd)));
    let digits = scaled.digits();
    placed(if number.is_sign_negative() { "-" } else { "" }, &digits, digits.len() as i64 - decimals as i64)
}

/// Digits with a point behind the first `point` of them, and zeros where there are none.
fn placed(sign: &str, digits: &str, point: i64) -> String {
    let zeros = usize::try_from(1 - point).unwrap_or_default();
    let point = usize::try_from(point).unwrap_or_default().max(1);
    let digits = format!("{:0<point$}", "0".repeat(zeros) + digits);
    match digits.split_at_checked(point) {
        Some((whole, fraction)) if !fraction.is_empty() => format!("{sign}{whole}.{fraction}"),
        _ => format!("{sign}{digits}"),
    }
}

/// Numbers below 2^32 whose product is a power.
fn powers(base: u32, exponent: u64) -> impl Iterator<Item = u32> {
    std::iter::repeat_n(base.pow(9), (exponent / 9) as usize).chain([base.pow((exponent % 9) as u32)])
}

/// A whole number, in digits of 32 bits, the lowest first.
#[derive(Default)]
struct Natural(Vec<u32>);

impl Natural {
    fn times_plus(&mut self, factor: u32, more: u32) {
        let mut carry = u64::from(more);
        for word in &mut self.0 {
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Divides; gives what is left over.
    fn over(&mut self, divisor: u32) -> u32 {
        let mut rest = 0;
        for word in self.0.iter_mut().rev() {
            let all = rest << 32 | u64::from(*word);
            (*word, rest) = ((all / u64::from(divisor)) as u32, all % u64::from(divisor));
        }
        rest as u32
    }

    /// Its decimal digits, none for nothing.
    fn digits(mut self) -> String {
        let mut groups = Vec::new();
        while self.0.iter().any(|word| *word != 0) {
            groups.push(self.over(1_000_000_000));
        }
        let digits: String = groups.iter().rev().map(|group| format!("{group:09}")).collect();
        digits.trim_start_matches('0').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers that look like chance.
    fn chance() -> impl FnMut() -> u64 {
        let mut state = 11_u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 1
        }
    }

    fn same(text: &str) {
        let (ours, theirs) = (parse(text), text.parse::<f64>().ok());
        assert_eq!(ours.map(f64::to_bits), theirs.map(f64::to_bits), "{text}");
    }

    #[test]
    fn every_text_is_read_as_the_standard_library_reads_it() {
        let odd = [
            "",
            "-",
            "+",
            ".",
            "e5",
            "1e",
            "1e+",
            "1e5x",
            "1.2.3",
            "--1",
            "0x1",
            "1_000",
            " 1",
            "1 ",
            "0",
            "-0",
            "+1",
            "1.",
            ".5",
            "-.5e1",
            "00012.500",
            "1e5",
            "1E+5",
            "1e-5",
            "0e999999999999",
            "1e999999999999",
            "1e-999999999999",
            "123456789012345678",
            "9007199254740993",
            "9007199254740992.5",
            "9007199254740993.00000000000000000000000000001",
            "5e-324",
            "2.4703282292062327e-324",
            "2.4703282292062328e-324",
            "2.2250738585072011e-308",
            "2.2250738585072014e-308",
            "1.7976931348623157e308",
            "1.7976931348623158e308",
            "1.7976931348623159e308",
            "1e23",
            "8.5e22",
            "1e22",
            "1e-22",
            "22.857142857142858",
            "37.299999999999997",
            "0.000000000000000000000000000000000000000000000000000000000000000000000000000000001e80",
        ];
        odd.iter().for_each(|text| same(text));
        let mut next = chance();
        for _ in 0..20_000 {
            let digits = format!("{}{}", next(), next());
            let (whole, fraction) = digits.split_at((next() % 5) as usize);
            let fraction = &fraction[..(next() % 34) as usize % fraction.len()];
            let exponent = (next() % 700) as i64 - 350;
            same(&format!("{whole}.{fraction}"));
            same(&format!("-{whole}.{fraction}e{exponent}"));
            same(&format!("{whole}{fraction}e{}", exponent / 12));
        }
    }

    #[test]
    fn the_middle_between_two_doubles_is_found_however_many_digits_it_takes() {
        for number in [5e-324_f64, 1e-310, 2.2250738585072014e-308, 0.1, 1.0, 9007199254740991.0, 1e300] {
            let middle = |digits: &str| {
                let zeros = "0".repeat(900);
                [digits.to_owned(), format!("{digits}{zeros}"), format!("{digits}{zeros}1")]
            };
            // Half a unit in the last binary digit behind a number has one binary digit more: all its decimal digits are printed.
            let exact = format!("{number:.1100}");
            middle(&exact).iter().for_each(|text| same(text));
            let next = f64::from_bits(number.to_bits() + 1);
            let sum = decimal_sum(&exact, &format!("{next:.1100}"));
            middle(&half(&sum)).iter().for_each(|text| same(text));
        }
    }

    /// The sum of two numbers with equally many digits behind the point.
    fn decimal_sum(a: &str, b: &str) -> String {
        let width = a.len().max(b.len()) + 1;
        let (a, b) = (format!("{a:0>width$}"), format!("{b:0>width$}"));
        let mut carry = 0;
        let mut out: Vec<u8> = a
            .bytes()
            .zip(b.bytes())
            .rev()
            .map(|(a, b)| {
                if a == b'.' {
                    return a;
                }
                let all = a - b'0' + b - b'0' + carry;
                carry = all / 10;
                b'0' + all % 10
            })
            .collect();
        out.reverse();
        String::from_utf8(out).unwrap()
    }

    fn half(number: &str) -> String {
        let mut rest = 0;
        let halved = format!("{number}0")
            .bytes()
            .map(|byte| {
                if byte == b'.' {
                    return byte;
                }
                let all = rest * 10 + byte - b'0';
                rest = all % 2;
                b'0' + all / 2
            })
            .collect();
        String::from_utf8(halved).unwrap()
    }

    #[test]
    fn numbers_are_shown_as_the_standard_library_shows_them() {
        let mut next = chance();
        let odd = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            1e15,
            1e16,
            1e17,
            1.5e300,
            5e-324,
            f64::MAX,
            f64::MIN_POSITIVE,
            0.1,
            1e-5,
            1.25e-7,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        let random = (0..20_000).map(|i| match i % 2 {
            0 => f64::from_bits(next() << 1),
            _ => next() as f64 / 10_f64.powi((next() % 30) as i32),
        });
        for number in odd.into_iter().chain(random.collect::<Vec<_>>()) {
            // Of several as short and as near the one or the other is taken.
            let (ours, theirs) = (shown(number), number.to_string());
            assert!(ours == theirs || (ours.len() == theirs.len() && parse(&ours) == Some(number)), "{ours} {theirs}");
            for decimals in [0, 1, 2, 3, 9] {
                assert_eq!(fixed(number, decimals), format!("{number:.decimals$}"), "{number:e} {decimals}");
            }
            let tie = (number * 1000.0).round() / 8.0;
            assert_eq!(fixed(tie, 2), format!("{tie:.2}"));
        }
    }
}
