//! The forms of date-times: what a text has beside its position in time.

use super::{MINUTE, SECOND, Temporal};
use std::ops::RangeInclusive;

/// The form of a date-time with minutes in extended ISO 8601: its precision, and its time zone
/// designator. A position in time and a form determine a text.
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
    /// The number of decimals of the seconds, 0 to [`MAX_DECIMALS`]; `None` for a text that ends
    /// its time of day with the minutes.
    decimals: Option<u8>,
    designator: ZoneDesignator,
}

/// The time zone designator of a text (ISO 8601:2004, section 2.1.11).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ZoneDesignator {
    /// The text ends without a designator.
    Absent,
    /// The text ends with `Z`.
    Utc,
    /// The text ends with `+hh:mm` or `-hh:mm`: minutes east of UTC, in [`OFFSETS`].
    Offset(i16),
}

/// The number of decimals of microseconds.
const MAX_DECIMALS: u8 = 6;
/// The length of a date-time to the minute.
const MINUTES_END: usize = 16;
/// The length of a date-time to the second.
const SECONDS_END: usize = 19;
/// The offsets that openEHR permits, in minutes: -12:59 to +14:59 (see [`super::cursor`]).
const OFFSETS: RangeInclusive<i16> = -779..=899;

// The numbers of forms are frozen: segments and checkpoints on disk have them. A change of a
// constant below would make every stored date-time another text.

/// The number of values of a precision: 0 to [`MAX_DECIMALS`] are decimals, then [`MINUTES`].
const PRECISIONS: u16 = 8;
/// The number of the precision of a text that ends its time of day with the minutes.
const MINUTES: u8 = 7;
/// The number of an absent designator.
const ZONE_ABSENT: u16 = 0;
/// The number of the designator `Z`.
const ZONE_UTC: u16 = 1;
/// The number of the designator with an offset of 0. Negative offsets have smaller numbers.
const OFFSET_ZERO: u16 = 1024;

impl TimeForm {
    /// Creates the form of times in UTC that end with `Z`, with at most six decimals.
    pub fn utc(decimals: u8) -> TimeForm {
        TimeForm {
            decimals: Some(decimals.min(MAX_DECIMALS)),
            designator: ZoneDesignator::Utc,
        }
    }

    /// Returns the form of a text whose interval starts `micros` microseconds after
    /// 0001-01-01T00:00Z. Returns `None` if [`TimeForm::write`] would not restore the text exactly:
    /// for a time without minutes, for the basic form, and for finer fractions.
    pub fn of(text: &str, micros: i64) -> Option<TimeForm> {
        let has_seconds = text.as_bytes().get(MINUTES_END) == Some(&b':');
        let rest = text.get(
            if has_seconds {
                SECONDS_END
            } else {
                MINUTES_END
            }..,
        )?;
        let digits = rest.strip_prefix('.').unwrap_or("");
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        let designator = match rest.get(count + usize::from(count > 0)..)? {
            "" => ZoneDesignator::Absent,
            "Z" => ZoneDesignator::Utc,
            offset => ZoneDesignator::Offset(minutes_of(offset)?),
        };
        let decimals = u8::try_from(count).ok().filter(|d| *d <= MAX_DECIMALS)?;
        let form = TimeForm {
            decimals: has_seconds.then_some(decimals),
            designator,
        };
        let mut written = String::with_capacity(text.len());
        form.write(micros, &mut written);
        (written == text).then_some(form)
    }

    /// Returns the time zone in minutes east of UTC; `None` if the text has none.
    pub fn offset(self) -> Option<i16> {
        match self.designator {
            ZoneDesignator::Absent => None,
            ZoneDesignator::Utc => Some(0),
            ZoneDesignator::Offset(minutes) => Some(minutes),
        }
    }

    /// Returns whether the text has seconds, so that it denotes a point in time. A text without
    /// them covers a minute.
    pub fn has_seconds(self) -> bool {
        self.decimals.is_some()
    }

    /// Returns whether the text has seconds, milliseconds only if they are not 0, and a designator:
    /// `Z`, or an offset other than 0.
    pub fn is_plain(self, micros: i64) -> bool {
        let has_plain_seconds = match self.decimals {
            Some(0) => true,
            Some(3) => micros.rem_euclid(SECOND) != 0,
            _ => false,
        };
        let has_designator = match self.designator {
            ZoneDesignator::Absent => false,
            ZoneDesignator::Utc => true,
            ZoneDesignator::Offset(minutes) => minutes != 0,
        };
        has_plain_seconds && has_designator
    }

    /// Appends the text of the time `micros` microseconds after 0001-01-01T00:00Z.
    ///
    /// The year must have four digits in the zone of the form, as that of every text has from which
    /// [`TimeForm::of`] returned the form. Other times are clamped.
    pub fn write(self, micros: i64, out: &mut String) {
        let offset = i64::from(self.offset().unwrap_or(0));
        let local = micros.saturating_add(offset * MINUTE);
        let length = if self.has_seconds() {
            SECONDS_END
        } else {
            MINUTES_END
        };
        let seconds = Temporal::from_micros(local).sort_prefix();
        out.extend(seconds.into_iter().take(length).map(char::from));
        if let Some(decimals) = self.decimals.filter(|decimals| *decimals > 0) {
            out.push('.');
            push_digits(local.rem_euclid(SECOND), MAX_DECIMALS, decimals, out);
        }
        match self.designator {
            ZoneDesignator::Absent => {}
            ZoneDesignator::Utc => out.push('Z'),
            ZoneDesignator::Offset(_) => {
                out.push(if offset < 0 { '-' } else { '+' });
                push_digits(offset.abs() / 60, 2, 2, out);
                out.push(':');
                push_digits(offset.abs() % 60, 2, 2, out);
            }
        }
    }

    /// Returns the number of the form, by which files store it. It is less than 2¹⁴.
    pub fn number(self) -> u16 {
        let zone = match self.designator {
            ZoneDesignator::Absent => ZONE_ABSENT,
            ZoneDesignator::Utc => ZONE_UTC,
            ZoneDesignator::Offset(minutes) => OFFSET_ZERO.wrapping_add_signed(minutes),
        };
        zone * PRECISIONS + u16::from(self.decimals.unwrap_or(MINUTES))
    }

    /// Returns the form with a number; `None` if no form has it.
    pub fn from_number(number: u16) -> Option<TimeForm> {
        let designator = match number / PRECISIONS {
            ZONE_ABSENT => ZoneDesignator::Absent,
            ZONE_UTC => ZoneDesignator::Utc,
            zone => {
                let minutes = i32::from(zone) - i32::from(OFFSET_ZERO);
                let minutes = i16::try_from(minutes).ok();
                ZoneDesignator::Offset(minutes.filter(|minutes| OFFSETS.contains(minutes))?)
            }
        };
        let precision = (number % PRECISIONS) as u8;
        Some(TimeForm {
            decimals: (precision != MINUTES).then_some(precision),
            designator,
        })
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
    let is_valid = (0..=14).contains(&hours) && (0..60).contains(&minutes);
    // The product cannot overflow, because the test comes first.
    let offset = is_valid.then(|| sign * (hours * 60 + minutes))?;
    OFFSETS.contains(&offset).then_some(offset)
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
    use std::collections::BTreeSet;

    fn form_of(text: &str) -> Option<TimeForm> {
        let time = Temporal::parse(TemporalKind::DateTime, text)?;
        TimeForm::of(text, time.earliest)
    }

    #[test]
    fn plain_forms_have_a_zone_and_no_superfluous_digits() {
        for (text, expected) in [
            ("2019-05-01T10:19:00Z", true),
            ("2019-05-01T10:19:00+02:00", true),
            ("2019-05-01T10:19:00.120Z", true),
            ("2019-05-01T10:19:00.000Z", false),
            ("2019-05-01T10:19:00.5Z", false),
            ("2019-05-01T10:19:00.123456Z", false),
            ("2019-05-01T10:19:00+00:00", false),
            ("2019-05-01T10:19:00", false),
            ("2019-05-01T10:19Z", false),
        ] {
            let time = Temporal::parse(TemporalKind::DateTime, text).unwrap();
            let is_plain = form_of(text).unwrap().is_plain(time.earliest);
            assert_eq!(is_plain, expected, "{text}");
        }
    }

    #[test]
    fn text_is_restored_from_its_position_and_form() {
        for text in [
            "2019-05-01T10:19:00",
            "2019-05-01T10:19:00Z",
            "2019-05-01T10:19:00.5Z",
            "2019-05-01T10:19:00.500",
            "2019-05-01T10:19",
            "2019-05-01T10:19Z",
            "2024-01-02T10:30+01:00",
            "0001-01-01T00:00-12:59",
            "9999-12-31T23:59+14:59",
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
            "2019-05-01T10",
            "2019-05-01T10+01:00",
            "20190501T101900Z",
            "20190501T1019Z",
            "2019-05-01T10:19+02",
            "2019-05-01T10:19+0200",
            "2019-05-01T10:19-00:00",
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

    /// Files have these numbers. No release may change one.
    #[test]
    fn numbers_of_forms_are_those_in_files() {
        for (text, number) in [
            ("2019-05-01T10:19:00", 0),
            ("2019-05-01T10:19:00.123456", 6),
            ("2019-05-01T10:19", 7),
            ("2019-05-01T10:19:00Z", 8),
            ("2019-05-01T10:19:00.5Z", 9),
            ("2019-05-01T10:19Z", 15),
            ("2019-05-01T10:19:00-12:59", 1_960),
            ("2019-05-01T10:19:00.000001-11:30", 2_678),
            ("2019-05-01T10:19:00+00:00", 8_192),
            ("2019-05-01T10:19:00.500+01:00", 8_675),
            ("2019-05-01T10:19+01:00", 8_679),
            ("2019-05-01T10:19+14:59", 15_391),
        ] {
            assert_eq!(form_of(text).map(TimeForm::number), Some(number), "{text}");
        }
    }

    #[test]
    fn every_form_has_one_number_and_no_other_number_has_a_form() {
        let offsets = OFFSETS.map(ZoneDesignator::Offset);
        let designators = [ZoneDesignator::Absent, ZoneDesignator::Utc].into_iter();
        let precisions = || (0..=MAX_DECIMALS).map(Some).chain([None]);
        let mut numbers = BTreeSet::new();
        for designator in designators.chain(offsets) {
            for decimals in precisions() {
                let form = TimeForm {
                    decimals,
                    designator,
                };
                let number = form.number();
                assert!(numbers.insert(number), "{number} has two forms");
                assert!(number < 1 << 14, "{form:?}");
                assert_eq!(TimeForm::from_number(number), Some(form));
            }
        }
        for number in (0..=u16::MAX).filter(|number| !numbers.contains(number)) {
            assert_eq!(TimeForm::from_number(number), None, "{number}");
        }
    }
}
