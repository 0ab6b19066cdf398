//! Decimal text of doubles: parsing, shortest form, fixed number of decimals.

/// Parses a decimal number as the nearest double, ties to even. Numbers beyond the range are
/// infinite.
///
/// Returns `None` for a text that is not a decimal number. The words `inf` and `nan`, which the
/// standard library accepts, are rejected.
///
/// ```
/// use aqlite_rm::number;
///
/// assert_eq!(number::parse("-37.50"), Some(-37.5));
/// assert_eq!(number::parse("1e400"), Some(f64::INFINITY));
/// assert_eq!(number::parse("1,5"), None);
/// ```
pub fn parse(text: &str) -> Option<f64> {
    // `str::parse` also accepts `inf` and `nan`. The first character excludes them.
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_decimal = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if is_decimal { text.parse().ok() } else { None }
}

/// A value with a text form that can be parsed again: numbers, and texts themselves.
pub trait TextForm: Sized {
    /// Parses the text form.
    fn from_text(text: &str) -> Option<Self>;
    /// Returns the text form.
    fn to_text(&self) -> String;
}

impl TextForm for f64 {
    fn from_text(text: &str) -> Option<f64> {
        parse(text)
    }

    fn to_text(&self) -> String {
        shortest(*self)
    }
}

macro_rules! text_form {
    ($($ty:ty),*) => { $(impl TextForm for $ty {
        fn from_text(text: &str) -> Option<$ty> {
            text.parse().ok()
        }

        fn to_text(&self) -> String {
            self.to_string()
        }
    })* };
}

text_form!(i64, u32, String);

/// Returns the shortest decimal number that parses as `number`, without an exponent.
///
/// ```
/// assert_eq!(aqlite_rm::number::shortest(1e21), "1000000000000000000000");
/// assert_eq!(aqlite_rm::number::shortest(-1.5e-7), "-0.00000015");
/// ```
pub fn shortest(number: f64) -> String {
    number.to_string()
}

/// Returns a number with `decimals` digits after the decimal point.
///
/// The exact binary value is rounded, half to even.
///
/// ```
/// assert_eq!(aqlite_rm::number::fixed(2.675, 2), "2.67"); // the double is less than 2.675
/// assert_eq!(aqlite_rm::number::fixed(0.125, 2), "0.12");
/// ```
pub fn fixed(number: f64, decimals: usize) -> String {
    // The formatter accepts precisions of 16 bits; a double has at most 1,074 decimals.
    let decimals = decimals.min(usize::from(u16::MAX));
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_rejects_words_and_malformed_numbers() {
        let broken = [
            "", "-", "+", ".", "e5", "1e", "1e+", "1e5x", "1.2.3", "--1", "0x1", "1_000", " 1",
            "1 ", "inf", "-inf", "nan", "infinity",
        ];
        for text in broken {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn parse_accepts_every_decimal_notation() {
        let spellings = [
            ("-0", -0.0),
            ("+1", 1.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("-.5e1", -5.0),
            ("00012.500", 12.5),
            ("1E+5", 1e5),
            ("0e999999999999", 0.0),
            ("1e999999999999", f64::INFINITY),
            ("1e-999999999999", 0.0),
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("5e-324", 5e-324),
        ];
        for (text, number) in spellings {
            assert_eq!(
                parse(text).map(f64::to_bits),
                Some(number.to_bits()),
                "{text}"
            );
        }
    }

    #[test]
    fn shortest_form_parses_to_the_same_number() {
        for number in [
            0.0,
            -0.0,
            1e17,
            5e-324,
            f64::MAX,
            f64::MIN_POSITIVE,
            0.1,
            1.25e-7,
        ] {
            assert_eq!(
                parse(&shortest(number)).map(f64::to_bits),
                Some(number.to_bits())
            );
        }
        assert_eq!(shortest(-0.0), "-0");
        assert_eq!(fixed(2.5, 0), "2");
        assert_eq!(fixed(0.5, 70_000).len(), 2 + usize::from(u16::MAX));
    }
}
