//! The single-row functions: names, arguments, meaning (AQL § 3.9.2–3.9.4). One table for the
//! checker and the editor.

use super::query::Function;

/// A function as the author may call it.
#[derive(Debug)]
pub struct Signature {
    /// The name, upper case.
    pub name: &'static str,
    /// What it computes.
    pub function: Function,
    /// At least so many arguments.
    pub least: usize,
    /// At most so many; `None` for any number.
    pub most: Option<usize>,
    /// The arguments as a reader sees them.
    pub arguments: &'static str,
    /// What it gives back, in one sentence.
    pub meaning: &'static str,
}

macro_rules! signatures {
    ($($name:literal $function:ident $least:literal $most:expr, $arguments:literal, $meaning:literal;)*) => {
        /// Every single-row function.
        pub static SIGNATURES: &[Signature] = &[
            $(Signature { name: $name, function: Function::$function, least: $least, most: $most, arguments: $arguments, meaning: $meaning }),*
        ];
    };
}

signatures! {
    "LENGTH" Length 1 Some(1), "(text)", "the number of characters";
    "CONTAINS" Contains 2 Some(2), "(text, part)", "true when the part occurs in the text";
    "POSITION" Position 2 Some(2), "(part, text)", "where the part first occurs, counted from 1; 0 when it does not";
    "SUBSTRING" Substring 2 Some(3), "(text, position [, length])", "the text from a position on, counted from 1";
    "CONCAT" Concat 1 None, "(text, …)", "the texts one behind the other";
    "CONCAT_WS" ConcatWs 2 None, "(separator, text, …)", "the texts one behind the other, separated";
    "ABS" Abs 1 Some(1), "(number)", "the number without its sign";
    "MOD" Mod 2 Some(2), "(number, divisor)", "the remainder of the division";
    "CEIL" Ceil 1 Some(1), "(number)", "the smallest whole number not below";
    "FLOOR" Floor 1 Some(1), "(number)", "the greatest whole number not above";
    "ROUND" Round 1 Some(2), "(number [, digits])", "the number rounded to so many decimal digits, or to a whole one";
    "CURRENT_DATE" CurrentDate 0 Some(0), "()", "today as `YYYY-MM-DD`";
    "CURRENT_TIME" CurrentTime 0 Some(0), "()", "the time of day as `hh:mm:ss`";
    "CURRENT_DATE_TIME" CurrentDateTime 0 Some(0), "()", "date and time with milliseconds and time zone";
    "NOW" CurrentDateTime 0 Some(0), "()", "date and time with milliseconds and time zone";
    "CURRENT_TIMEZONE" CurrentTimezone 0 Some(0), "()", "the time zone as `±hh:mm`";
}

/// The function of this name, in any case.
pub fn signature(name: &str) -> Option<&'static Signature> {
    SIGNATURES
        .iter()
        .find(|s| s.name.eq_ignore_ascii_case(name))
}
