//! The forms of date-times: what a text has beside its position in time.

use super::{MINUTE, SECOND, Temporal};

/// The form of a complete date-time in extended ISO 8601: the number of decimals of its seconds,
/// and its time zone. A position in time and a form determine a text.
///
/// ```
/// use aqlite_rm::time::{Temporal, TemporalKind, TimeForm};
///
/// let text = "2019-05-01T10:19:00.50+02:00";
/// let micros = Temporal::parse(TemporalKind::DateTime, text).unwrap().earliest;
/// let form = TimeForm::of(text, micros).unwrap();
/// let mut written = String::new();
/// form.write(micros, &mut written);
/// assert_eq!(written, text);
/// assert_eq!(TimeForm::of("20190501T101900", micros), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimeForm {
    /// 0 to [`MAX_DECIMALS`].
    decimals: u8,
    zone: Zone,
}

/// The time zone of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Zone {
    /// The text ends without a zone.
    Nothing,
    /// The text ends with `Z`.
    Utc,
    /// The text ends with `+hh:mm` or `-hh:mm`: minutes east of UTC.
    Offset(i16),
}

/// The number of decimals of microseconds.
const MAX_DECIMALS: u8 = 6;
/// The number of values of [`TimeForm::decimals`], rounded up to a power of two.
const DECIMALS: u16 = 8;
/// The length of a date-time to the second.
const SECONDS_END: usize = 19;
/// The number of the zone with an offset of 0. Smaller numbers are those of negative offsets, and 0
/// and 1 those of other zones.
const OFFSET_ZERO: u16 = 1024;
/// The end of the numbers of zones.
const ZONES_END: u16 = 2048;

impl TimeForm {
    /// Creates the form of times in UTC that end with `Z`, with at most six decimals.
    pub fn utc(decimals: u8) -> TimeForm {
        TimeForm {
            decimals: decimals.min(MAX_DECIMALS),
            zone: Zone::Utc,
        }
    }

    /// Returns the form of a text that denotes the time `micros` microseconds after
    /// 0001-01-01T00:00Z. Returns `None` if [`TimeForm::write`] would not restore the text exactly:
    /// for a partial time, for the basic form, and for finer fractions.
    pub fn of(text: &str, micros: i64) -> Option<TimeForm> {
        let rest = text.get(SECONDS_END..)?;
        let digits = rest.strip_prefix('.').unwrap_or("");
        let decimals = digits.bytes().take_while(u8::is_ascii_digit).count();
        let zone = match rest.get(decimals + usize::from(decimals > 0)..)? {
            "" => Zone::Nothing,
            "Z" => Zone::Utc,
            offset => Zone::Offset(minutes_of(offset)?),
        };
        let form = TimeForm {
            decimals: u8::try_from(decimals).ok().filter(|d| *d <= MAX_DECIMALS)?,
            zone,
        };
        let mut written = String::with_capacity(text.len());
        form.write(micros, &mut written);
        (written == text).then_some(form)
    }

    /// Returns the time zone in minutes east of UTC; `None` if the text has none.
    pub fn offset(self) -> Option<i16> {
        match self.zone {
            Zone::Nothing => None,
            Zone::Utc => Some(0),
            Zone::Offset(minutes) => Some(minutes),
        }
    }

    /// Appends the text of the time `micros` microseconds after 0001-01-01T00:00Z.
    pub fn write(self, micros: i64, out: &mut String) {
        let offset = i64::from(self.offset().unwrap_or(0));
        let local = micros.saturating_add(offset * MINUTE);
        let seconds = Temporal::from_micros(local).sort_prefix();
        out.extend(seconds.map(char::from));
        if self.decimals > 0 {
            out.push('.');
            push_digits(local.rem_euclid(SECOND), MAX_DECIMALS, self.decimals, out);
        }
        match self.zone {
            Zone::Nothing => {}
            Zone::Utc => out.push('Z'),
            Zone::Offset(_) => {
                out.push(if offset < 0 { '-' } else { '+' });
                push_digits(offset.abs() / 60, 2, 2, out);
                out.push(':');
                push_digits(offset.abs() % 60, 2, 2, out);
            }
        }
    }

    /// Returns the number of the form, by which files store it. It is less than 2¹⁴.
    pub fn number(self) -> u16 {
        let zone = match self.zone {
            Zone::Nothing => 0,
            Zone::Utc => 1,
            Zone::Offset(minutes) => OFFSET_ZERO.wrapping_add_signed(minutes),
        };
        zone * DECIMALS + u16::from(self.decimals)
    }

    /// Returns the form with a number; `None` if no form has it.
    pub fn from_number(number: u16) -> Option<TimeForm> {
        let zone = match number / DECIMALS {
            0 => Zone::Nothing,
            1 => Zone::Utc,
            zone if zone < ZONES_END => {
                Zone::Offset(i16::try_from(i32::from(zone) - i32::from(OFFSET_ZERO)).ok()?)
            }
            _ => return None,
        };
        let decimals = (number % DECIMALS) as u8;
        (decimals <= MAX_DECIMALS).then_some(TimeForm { decimals, zone })
    }
}

/// Returns the minutes of an offset `+hh:mm` or `-hh:mm`.
fn minutes_of(offset: &str) -> Option<i16> {
    let (sign, rest) = match offset.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i16, i16) = (hours.parse().ok()?, minutes.parse().ok()?);
    // Greater offsets have no number. ISO 8601 and openEHR do not permit them.
    let is_valid = (0..=14).contains(&hours) && (0..60).contains(&minutes);
    is_valid.then_some(sign * (hours * 60 + minutes))
}

/// Appends the first `count` of `width` decimal digits of a number.
fn push_digits(number: i64, width: u8, count: u8, out: &mut String) {
    for place in (width - count..width).rev() {
        let digit = number / 10_i64.pow(u32::from(place)) % 10;
        out.push(char::from(b'0' + digit as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::TemporalKind;

    fn form_of(text: &str) -> Option<TimeForm> {
        let time = Temporal::parse(TemporalKind::DateTime, text)?;
        TimeForm::of(text, time.earliest)
    }

    #[test]
    fn text_is_restored_from_its_position_and_form() {
        for text in [
            "2019-05-01T10:19:00",
            "2019-05-01T10:19:00Z",
            "2019-05-01T10:19:00.5Z",
            "2019-05-01T10:19:00.500",
            "2019-12-31T23:59:59.000001-11:30",
            "2020-02-29T00:00:00.1234+14:00",
            "2020-02-29T00:00:00+00:00",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59.999999-12:00",
        ] {
            let form = form_of(text).unwrap_or_else(|| panic!("{text} has no form"));
            assert_eq!(TimeForm::from_number(form.number()), Some(form), "{text}");
            let time = Temporal::parse(TemporalKind::DateTime, text).unwrap();
            let mut written = String::new();
            form.write(time.earliest, &mut written);
            assert_eq!(written, text);
        }
    }

    #[test]
    fn text_of_another_form_has_none() {
        for text in [
            "2019-05",
            "2019-05-01T10:19",
            "2019-05-01T10:19Z",
            "20190501T101900Z",
            "2019-05-01T10:19:00,5Z",
            "2019-05-01T10:19:00.1234567Z",
            "2019-05-01T10:19:00+02",
            "2019-05-01T10:19:00+0200",
            "2019-05-01T10:19:00-00:00",
        ] {
            assert!(
                Temporal::parse(TemporalKind::DateTime, text).is_some(),
                "{text}"
            );
            assert_eq!(form_of(text), None, "{text}");
        }
        assert_eq!(TimeForm::of("soon", 0), None);
        assert_eq!(
            TimeForm::of("2019-05-01T10:19:00Z", 0),
            None,
            "another time"
        );
    }

    #[test]
    fn every_number_below_the_limit_is_that_of_one_form() {
        for number in 0..u16::MAX {
            let form = TimeForm::from_number(number);
            assert!(form.is_none_or(|form| form.number() == number), "{number}");
        }
        assert_eq!(TimeForm::from_number(ZONES_END * DECIMALS), None);
    }
}
