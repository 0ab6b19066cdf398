//! Values and intervals of constraints on primitive types.

use std::fmt;

use super::*;

/// One value of a constraint.
pub(super) enum Value {
    Text(String),
    Code(String),
    /// A number, boolean, date, time or duration, or a pattern of the last three.
    Scalar(String),
    Interval {
        pattern: String,
        range: Range,
    },
}

/// An interval. An absent limit is unbounded.
#[derive(Default)]
pub(super) struct Range {
    pub(super) lower: Option<String>,
    pub(super) upper: Option<String>,
    excludes_lower: bool,
    excludes_upper: bool,
}

/// The most decimals of a number with a spread. More digits do not fit into 128 bits.
const MAX_SCALE: u32 = 38;

/// The decimal number `digits × 10⁻ˢᶜᵃˡᵉ`.
struct Decimal {
    digits: i128,
    scale: u32,
}

impl Decimal {
    /// Reads a number like `-5`, `0.70` or `1.5e3`. `None` if it is none, or too long.
    fn read(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let decimals = i64::try_from(fraction.len()).ok()?;
        let scale = decimals.checked_sub(exponent.parse().ok()?)?;
        if scale < 0 {
            let whole = Decimal { digits, scale: 0 };
            let digits = whole.digits_at(u32::try_from(scale.checked_neg()?).ok()?)?;
            return Some(Decimal { digits, scale: 0 });
        }
        let scale = u32::try_from(scale).ok().filter(|s| *s <= MAX_SCALE)?;
        Some(Decimal { digits, scale })
    }

    /// Returns the digits at a scale that is not less than that of the number.
    fn digits_at(&self, scale: u32) -> Option<i128> {
        let factor = 10_i128.checked_pow(scale.checked_sub(self.scale)?)?;
        self.digits.checked_mul(factor)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = usize::try_from(self.scale).map_err(|_| fmt::Error)?;
        let digits = format!("{:0>1$}", self.digits.unsigned_abs(), scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let sign = if self.digits < 0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

/// Returns a limit of an interval; `None` if there is none, which is written `*`.
fn limit(text: &str) -> Option<String> {
    let text = Some(text.trim()).filter(|t| !t.is_empty() && *t != "*");
    text.map(str::to_owned)
}

impl Range {
    /// Returns the interval of one value.
    fn single(text: &str) -> Range {
        Range {
            lower: Some(text.to_owned()),
            upper: Some(text.to_owned()),
            ..Range::default()
        }
    }

    /// Reads `5 +/-1`, `5 ±1`, `0..9`, `>0..<9`, `>=0` or `5`.
    pub(super) fn read(text: &str) -> Option<Range> {
        if let Some((middle, spread)) = text.split_once("+/-").or_else(|| text.split_once('±')) {
            return Range::around(middle.trim(), spread.trim());
        }
        if let Some((lower, upper)) = text.split_once("..") {
            let (lower, upper) = (lower.trim(), upper.trim());
            return Some(Range {
                lower: limit(lower.trim_start_matches('>')),
                upper: limit(upper.trim_start_matches('<')),
                excludes_lower: lower.starts_with('>'),
                excludes_upper: upper.starts_with('<'),
            });
        }
        Range::one_sided(text).or_else(|| Some(Range::single(&limit(text)?)))
    }

    /// Returns the interval from `middle - spread` to `middle + spread`. Doubles would move the
    /// limits: 0.7 + 0.1 would be less than 0.8.
    fn around(middle: &str, spread: &str) -> Option<Range> {
        let (middle, spread) = (Decimal::read(middle)?, Decimal::read(spread)?);
        let scale = middle.scale.max(spread.scale);
        let (middle, spread) = (middle.digits_at(scale)?, spread.digits_at(scale)?);
        let limit = |digits| Decimal { digits, scale }.to_string();
        Some(Range {
            lower: Some(limit(middle.checked_sub(spread)?)),
            upper: Some(limit(middle.checked_add(spread)?)),
            ..Range::default()
        })
    }

    /// Reads `>=0`, `≥0`, `<=9`, `≤9`, `>0` or `<9`.
    fn one_sided(text: &str) -> Option<Range> {
        let after = |sign: &str| text.strip_prefix(sign).and_then(limit);
        // The longer signs are tried first, because `>` is also the start of `>=`.
        let lower = after(">=").or_else(|| after("≥"));
        let upper = after("<=").or_else(|| after("≤"));
        let is_included = lower.is_some() || upper.is_some();
        let (lower, upper) = match is_included {
            true => (lower, upper),
            false => (after(">"), after("<")),
        };
        (lower.is_some() || upper.is_some()).then(|| Range {
            excludes_lower: lower.is_some() && !is_included,
            excludes_upper: upper.is_some() && !is_included,
            lower,
            upper,
        })
    }
}

impl Value {
    /// Returns the class of constraints of this value.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "C_STRING",
            Value::Code(_) => "C_TERMINOLOGY_CODE",
            Value::Scalar(text) => kind_of(text),
            // `0..9.5` is an interval of reals, although its lower limit alone is an integer.
            Value::Interval { range, .. } => [&range.lower, &range.upper]
                .into_iter()
                .flatten()
                .map(|limit| kind_of(limit))
                .fold(None, |kind, own| Some(common_kind(kind, own)))
                .unwrap_or("an empty interval"),
        }
    }

    pub(super) fn write<'a>(
        &self,
        elements: &mut Elements<'a>,
        element: usize,
        place: Span,
    ) -> Result<(), Diagnostic> {
        match self {
            Value::Text(text) | Value::Code(text) => {
                elements.text_child(element, "constraint", text, place)
            }
            Value::Scalar(text) if is_pattern(text) => {
                elements.text_child(element, "pattern_constraint", text, place)
            }
            Value::Scalar(text) if self.kind() == "C_BOOLEAN" => {
                elements.text_child(element, "constraint", text, place)
            }
            Value::Scalar(text) => Range::single(text).write(elements, element, place),
            Value::Interval { pattern, range } => {
                if !pattern.is_empty() {
                    elements.text_child(element, "pattern_constraint", pattern, place)?;
                }
                range.write(elements, element, place)
            }
        }
    }
}

impl Range {
    pub(super) fn write<'a>(
        &self,
        elements: &mut Elements<'a>,
        element: usize,
        place: Span,
    ) -> Result<(), Diagnostic> {
        let constraint = elements.add(Some(element), "constraint", place)?;
        let lower = ["lower", "lower_unbounded", "lower_included"];
        let upper = ["upper", "upper_unbounded", "upper_included"];
        for ([name, unbounded, included], limit, is_excluded) in [
            (lower, &self.lower, self.excludes_lower),
            (upper, &self.upper, self.excludes_upper),
        ] {
            match limit {
                Some(limit) => elements.text_child(constraint, name, limit, place)?,
                None => elements.text_child(constraint, unbounded, "true", place)?,
            }
            if is_excluded {
                elements.text_child(constraint, included, "false", place)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a text is a pattern of a date, time or duration, such as `yyyy-mm-??`,
/// `HH:MM:SS±hh:mm` or `PYMD`.
pub(super) fn is_pattern(text: &str) -> bool {
    let is_duration = text.starts_with('P') && text.len() > 1;
    let has_digit = text.bytes().any(|b| b.is_ascii_digit());
    !has_digit
        && (is_duration || text.contains(['-', ':']))
        && text.chars().all(|c| "PYMWDTHSymdhsX?-:.,/Z+±".contains(c))
}

/// Returns the kind of the values of a list, of which the last one has the kind `own`.
pub(super) fn common_kind(before: Option<&'static str>, own: &'static str) -> &'static str {
    match (before, own) {
        (Some("C_REAL"), "C_INTEGER") | (Some("C_INTEGER"), "C_REAL") => "C_REAL",
        (Some(before), own) if before != own => "several kinds of values",
        _ => own,
    }
}

fn kind_of(text: &str) -> &'static str {
    let digits = text.trim_start_matches(['-', '+']);
    match text {
        "True" | "False" | "true" | "false" => "C_BOOLEAN",
        _ if digits.starts_with('P') => "C_DURATION",
        _ if is_pattern(text)
            || digits.contains([':', '-']) && digits.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            match (text.contains('T'), text.contains(':')) {
                (true, _) => "C_DATE_TIME",
                (false, true) => "C_TIME",
                // The hyphen of an exponent, as in `1e-3`, is not that of a date.
                (false, false) if text.contains("e-") || text.contains("E-") => "C_REAL",
                (false, false) => "C_DATE",
            }
        }
        _ if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => "C_INTEGER",
        _ if digits.starts_with(|c: char| c.is_ascii_digit()) => "C_REAL",
        _ => "a value of an unknown kind",
    }
}
