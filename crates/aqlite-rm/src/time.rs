//! Partial ISO 8601 values and their order.
//!
//! A temporal value covers an interval of its axis, as wide as its precision: `2019-05` covers the
//! whole of May. A value with seconds or fractions is a point. Values are equal if they cover the
//! same interval. Conditions compare the starts of intervals; sorting compares the starts, then the
//! ends. A missing time zone means UTC. The text of a value is never changed.

mod calendar;
mod cursor;
mod form;

use super::class::Cls;
pub use calendar::{CalendarDate, date_after, days_before, days_in_month};
use cursor::Cursor;
pub use form::TimeForm;
use std::cmp::Ordering;
use std::ops::Range;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The greatest value of [`Temporal::finer`]: 18 digits.
const MAX_FINER: i64 = 999_999_999_999_999_999;
/// The average year of the openEHR magnitude of a duration: 365.24 days.
const AVERAGE_YEAR: i64 = 31_556_736 * SECOND;
/// The average month of the openEHR magnitude of a duration: 30.42 days.
const AVERAGE_MONTH: i64 = 2_628_288 * SECOND;

/// The instants of the years 1 to 9999 in UTC, in microseconds since 0001-01-01T00:00Z.
///
/// An offset can move a valid text beyond them, such as `9999-12-31T23:59:59-12:00`.
pub const CALENDAR: Range<i64> = 0..days_before(10_000, 1, 1) * DAY;

/// The kind of a temporal value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TemporalKind {
    /// DV_DATE
    Date,
    /// DV_TIME
    Time,
    /// DV_DATE_TIME
    DateTime,
    /// DV_DURATION
    Duration,
}

/// The axis of a temporal value. Values of different axes have no order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// Dates and date-times.
    Calendar,
    /// Times of day.
    Clock,
    /// Durations.
    Length,
}

/// The interval that a temporal value covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Temporal {
    /// The kind of value that was parsed.
    pub kind: TemporalKind,
    /// The first microsecond covered.
    ///
    /// It counts from 0001-01-01T00:00Z for dates and date-times, and from midnight UTC for times.
    /// For a duration it is the length.
    pub earliest: i64,
    /// The last microsecond covered, on the same scale. Equal to `earliest` for a point.
    pub latest: i64,
    /// The digits of the text beyond microseconds, in units of 10⁻²⁴ s. They break ties.
    pub finer: i64,
}

/// The components of a date, time or date-time. Those that the text omits are `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// 1 to 9999.
    pub year: Option<i64>,
    /// 1 to 12.
    pub month: Option<i64>,
    /// 1 to 31.
    pub day: Option<i64>,
    /// 0 to 23.
    pub hour: Option<i64>,
    /// 0 to 59.
    pub minute: Option<i64>,
    /// 0 to 59.
    pub second: Option<i64>,
    /// The fraction of the second.
    pub fraction: Option<Fraction>,
    /// Minutes east of UTC.
    pub zone: Option<i64>,
}

/// The digits after the decimal mark of the seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fraction {
    /// Microseconds.
    pub micros: i64,
    /// The next 18 digits.
    pub finer: i64,
}

/// The components of a duration. Those that the text omits are `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DurationParts {
    /// Whether the text begins with `-`.
    pub negative: bool,
    /// `nY`
    pub years: Option<i64>,
    /// `nM` before the `T`
    pub months: Option<i64>,
    /// `nW`
    pub weeks: Option<i64>,
    /// `nD`
    pub days: Option<i64>,
    /// `nH`
    pub hours: Option<i64>,
    /// `nM` after the `T`
    pub minutes: Option<i64>,
    /// `nS`
    pub seconds: Option<i64>,
    /// The fraction of the seconds.
    pub fraction: Option<Fraction>,
}

impl TemporalKind {
    /// Returns the kind of the values of a class, or `None` for classes that are not temporal.
    pub fn for_class(cls: Cls) -> Option<TemporalKind> {
        match cls {
            Cls::DV_DATE => Some(TemporalKind::Date),
            Cls::DV_TIME => Some(TemporalKind::Time),
            Cls::DV_DATE_TIME => Some(TemporalKind::DateTime),
            Cls::DV_DURATION => Some(TemporalKind::Duration),
            _ => None,
        }
    }

    /// Returns the axis of values of this kind.
    pub fn axis(self) -> Axis {
        match self {
            TemporalKind::Date | TemporalKind::DateTime => Axis::Calendar,
            TemporalKind::Time => Axis::Clock,
            TemporalKind::Duration => Axis::Length,
        }
    }
}

impl Temporal {
    /// Parses a value of a known kind in basic or extended form, complete or partial. Returns
    /// `None` if it is invalid, as `20200101T10:00`, which mixes the forms.
    pub fn parse(kind: TemporalKind, text: &str) -> Option<Temporal> {
        match kind {
            TemporalKind::Duration => DurationParts::parse(text).map(|p| p.temporal()),
            _ => Parts::parse(kind, text).map(|p| p.temporal(kind)),
        }
    }

    /// Parses a text of unknown kind, by trying duration, date, date-time and time of day in this
    /// order.
    ///
    /// A time of day needs a colon or a leading `T`: digits alone are a date (`2019`, `201905`) or
    /// invalid.
    pub fn classify(text: &str) -> Option<Temporal> {
        let kinds: &[TemporalKind] = match text.as_bytes() {
            [b'P', ..] | [b'-', b'P', ..] => &[TemporalKind::Duration],
            // A date is also a valid date-time, so the kind `Date` is tried first.
            [b'0'..=b'9' | b'T', ..] => &[
                TemporalKind::Date,
                TemporalKind::DateTime,
                TemporalKind::Time,
            ],
            _ => &[],
        };
        kinds
            .iter()
            .find_map(|kind| Temporal::parse_literal(*kind, text))
    }

    /// Parses a literal that is compared with a value of kind `kind`.
    ///
    /// It differs from [`Temporal::parse`] in one rule: a time of day needs a colon or a leading
    /// `T`. Otherwise digits that were meant as a date would be read as a time.
    pub fn parse_literal(kind: TemporalKind, text: &str) -> Option<Temporal> {
        let may_be = kind != TemporalKind::Time || text.contains(':') || text.starts_with('T');
        if may_be {
            Temporal::parse(kind, text)
        } else {
            None
        }
    }

    /// Returns the point `micros` microseconds after 0001-01-01T00:00Z.
    pub fn from_micros(micros: i64) -> Temporal {
        Temporal {
            kind: TemporalKind::DateTime,
            earliest: micros,
            latest: micros,
            finer: 0,
        }
    }

    /// Returns the axis of this value.
    pub fn axis(self) -> Axis {
        self.kind.axis()
    }

    /// Returns whether both values cover the same interval, or `None` if their axes differ.
    pub fn same(self, other: Temporal) -> Option<bool> {
        self.total_order(other).map(Ordering::is_eq)
    }

    /// Compares the starts of the intervals, as conditions do. `None` if the axes differ.
    pub fn floor_order(self, other: Temporal) -> Option<Ordering> {
        (self.axis() == other.axis())
            .then(|| (self.earliest, self.finer).cmp(&(other.earliest, other.finer)))
    }

    /// Compares the starts, then the ends, as ORDER BY, MIN and MAX do. `None` if the axes differ.
    pub fn total_order(self, other: Temporal) -> Option<Ordering> {
        self.floor_order(other)
            .map(|order| order.then(self.latest.cmp(&other.latest)))
    }

    /// Returns the text by which a date, date-time or time of day is sorted among other texts.
    ///
    /// It is the start of the interval in UTC, in extended form with seconds, and with the digits
    /// of the fraction up to the last non-zero one.
    ///
    /// The text never decreases with time, so the order of texts is consistent with the order of
    /// times. Starts outside the years 0000 to 9999, or before midnight, are clamped to the nearest
    /// value inside: one before them has no fraction, and one behind them the greatest fraction.
    ///
    /// ```
    /// use aqlite_rm::time::{Temporal, TemporalKind};
    ///
    /// let sort = |kind, text| Temporal::parse(kind, text).map(Temporal::sort_text);
    /// assert_eq!(sort(TemporalKind::Date, "2019-05").as_deref(), Some("2019-05-01T00:00:00"));
    /// let zoned = "20190501T101900.50+0200";
    /// assert_eq!(sort(TemporalKind::DateTime, zoned).as_deref(), Some("2019-05-01T08:19:00.5"));
    /// assert_eq!(sort(TemporalKind::Time, "10:19").as_deref(), Some("10:19:00"));
    /// ```
    pub fn sort_text(self) -> String {
        let (start, finer) = self.clamped_start();
        // Only a calendar value has a prefix of 19 bytes. The others end with blanks, which are
        // removed.
        let mut out = String::from_utf8_lossy(self.sort_prefix().trim_ascii_end()).into_owned();
        let fraction = format!("{:06}{:018}", start.rem_euclid(SECOND), finer.max(0));
        let digits = fraction.trim_end_matches('0');
        if !digits.is_empty() {
            out.push('.');
            out.push_str(digits);
        }
        out
    }

    /// Returns the part of [`Temporal::sort_text`] up to the seconds, padded with blanks.
    pub fn sort_prefix(self) -> [u8; 19] {
        let (start, _) = self.clamped_start();
        let clock = start.rem_euclid(DAY);
        let mut out = [b' '; 19];
        match self.axis() {
            Axis::Calendar => {
                let CalendarDate { year, month, day } = date_after(start.div_euclid(DAY));
                let parts = [
                    TimePart::new(year, 4, b'-'),
                    TimePart::new(month, 2, b'-'),
                    TimePart::new(day, 2, b'T'),
                    TimePart::new(clock / HOUR, 2, b':'),
                ];
                write_parts(&parts, clock % HOUR, &mut out);
            }
            _ => {
                let hours = TimePart::new(start / HOUR, 2, b':');
                write_parts(&[hours], start % HOUR, &mut out);
            }
        }
        out
    }

    /// Returns the start of the interval in microseconds and its finer digits, clamped to four
    /// digits of a year or two of an hour.
    fn clamped_start(self) -> (i64, i64) {
        let (least, most) = match self.axis() {
            Axis::Calendar => (
                days_before(0, 1, 1) * DAY,
                days_before(10_000, 1, 1) * DAY - 1,
            ),
            // A zone can move a time of day before midnight or beyond 24 hours.
            _ => (0, 100 * HOUR - 1),
        };
        // The finer digits are clamped, too: those of a start outside would break the order.
        (self.earliest, self.finer).clamp((least, 0), (most, MAX_FINER))
    }

    /// Returns the openEHR magnitude.
    ///
    /// It is in days since 0001-01-01 for a date, seconds since then for a date-time, seconds since
    /// midnight for a time, and seconds for a duration.
    pub fn magnitude(self) -> f64 {
        let unit = if self.kind == TemporalKind::Date {
            DAY
        } else {
            SECOND
        };
        #[allow(
            clippy::cast_precision_loss,
            reason = "magnitudes are reals by definition"
        )]
        // Microseconds since year 1 exceed the 53 bits of a double after 285 years. Therefore the
        // whole units and the remainder are converted separately.
        let (whole, part) = (
            self.earliest.div_euclid(unit) as f64,
            self.earliest.rem_euclid(unit) as f64 / unit as f64,
        );
        whole + part
    }
}

impl Parts {
    /// Parses a date, time or date-time into its components. Returns `None` if it is invalid.
    pub fn parse(kind: TemporalKind, text: &str) -> Option<Parts> {
        let mut parts = Parts::default();
        let mut cursor = Cursor {
            rest: text.as_bytes(),
        };
        if kind == TemporalKind::Time {
            cursor.eat(b'T');
            cursor.time(&mut parts)?;
        } else {
            cursor.date(&mut parts)?;
            // A time of day may follow a complete date only.
            if kind == TemporalKind::DateTime && parts.day.is_some() && cursor.eat(b'T') {
                if !is_one_form(text.as_bytes(), cursor.rest) {
                    return None;
                }
                cursor.time(&mut parts)?;
            }
        }
        // Durations have a parser of their own, `DurationParts::parse`.
        (cursor.rest.is_empty() && kind != TemporalKind::Duration).then_some(parts)
    }

    fn temporal(self, kind: TemporalKind) -> Temporal {
        let date = self.year.map_or(0, |y| {
            days_before(y, self.month.unwrap_or(1), self.day.unwrap_or(1))
        });
        let clock = self.hour.unwrap_or(0) * HOUR
            + self.minute.unwrap_or(0) * MINUTE
            + self.second.unwrap_or(0) * SECOND;
        let fraction = self.fraction.unwrap_or_default();
        // A zone east of UTC is ahead of it, so its offset is subtracted.
        let earliest = date * DAY + clock + fraction.micros - self.zone.unwrap_or(0) * MINUTE;
        Temporal {
            kind,
            earliest,
            latest: earliest + self.width() - 1,
            finer: fraction.finer,
        }
    }

    /// Returns the width of the interval in microseconds. It is zero for values with seconds.
    fn width(self) -> i64 {
        // The first arm with a component decides, so the arms run from the finest to the coarsest.
        match (
            self.year,
            self.month,
            self.day,
            self.hour,
            self.minute,
            self.second,
        ) {
            // The caller subtracts 1, so this value is a point.
            (.., Some(_)) => 1,
            (.., Some(_), None) => MINUTE,
            (.., Some(_), None, None) => HOUR,
            (Some(year), None, ..) => DAY * (days_before(year + 1, 1, 1) - days_before(year, 1, 1)),
            (Some(year), Some(month), None, ..) => DAY * days_in_month(year, month),
            _ => DAY,
        }
    }
}

impl DurationParts {
    /// Parses a duration `[-]P[nY][nM][nW][nD][T[nH][nM][n[.n]S]]`. Returns `None` if it is
    /// invalid.
    pub fn parse(text: &str) -> Option<DurationParts> {
        let mut cursor = Cursor {
            rest: text.as_bytes(),
        };
        let mut parts = DurationParts {
            negative: cursor.eat(b'-'),
            ..DurationParts::default()
        };
        if !cursor.eat(b'P') {
            return None;
        }
        // The designators must follow in this order. A component out of order remains in `rest` and
        // makes the text invalid.
        let mut named = false;
        for (letter, field) in [
            (b'Y', &mut parts.years),
            (b'M', &mut parts.months),
            (b'W', &mut parts.weeks),
            (b'D', &mut parts.days),
        ] {
            *field = cursor.component(letter);
            named |= field.is_some();
        }
        if cursor.eat(b'T') {
            // At least one component must follow a `T`, so `P1DT` is invalid.
            named = false;
            for (letter, field) in [
                (b'H', &mut parts.hours),
                (b'M', &mut parts.minutes),
                (b'S', &mut parts.seconds),
            ] {
                *field = cursor.component(letter);
                named |= field.is_some();
            }
            // `component` does not accept a decimal mark and consumes nothing then. Seconds with a
            // fraction are therefore read here.
            if let Some(seconds) = (!cursor.rest.is_empty()).then(|| cursor.number()).flatten() {
                parts.seconds = Some(seconds);
                parts.fraction = Some(cursor.fraction()?);
                named = cursor.eat(b'S');
            }
        }
        (named && cursor.rest.is_empty()).then_some(parts)
    }

    /// Returns the length, with average years and months.
    pub(crate) fn temporal(self) -> Temporal {
        let units = [
            (self.years, AVERAGE_YEAR),
            (self.months, AVERAGE_MONTH),
            (self.weeks, 7 * DAY),
            (self.days, DAY),
            (self.hours, HOUR),
            (self.minutes, MINUTE),
            (self.seconds, SECOND),
        ];
        let fraction = self.fraction.unwrap_or_default();
        // A count has up to 18 digits. Its product with a unit in microseconds needs more than 64
        // bits.
        let length: i128 = units
            .iter()
            .map(|(count, unit)| i128::from(count.unwrap_or(0)) * i128::from(*unit))
            .sum();
        let length = i64::try_from(length + i128::from(fraction.micros)).unwrap_or(i64::MAX);
        let (earliest, finer) = if self.negative {
            (-length, -fraction.finer)
        } else {
            (length, fraction.finer)
        };
        Temporal {
            kind: TemporalKind::Duration,
            earliest,
            latest: earliest,
            finer,
        }
    }
}

/// Returns whether a date and the time of day behind it are both in basic or both in extended form
/// (ISO 8601:2004, section 4.3.2). The form of an hour alone is either.
fn is_one_form(date: &[u8], time: &[u8]) -> bool {
    let date_is_extended = date.get(4) == Some(&b'-');
    match time.get(2) {
        Some(b':') => date_is_extended,
        Some(b'0'..=b'9') => !date_is_extended,
        _ => true,
    }
}

/// A number of a time with a fixed count of digits, and the separator behind it.
struct TimePart {
    number: i64,
    digits: u32,
    separator: u8,
}

impl TimePart {
    fn new(number: i64, digits: u32, separator: u8) -> TimePart {
        TimePart {
            number,
            digits,
            separator,
        }
    }
}

/// Writes parts of a time, then minutes and seconds of the hour.
fn write_parts(parts: &[TimePart], of_hour: i64, out: &mut [u8; 19]) {
    let minutes = [
        TimePart::new(of_hour / MINUTE, 2, b':'),
        TimePart::new(of_hour % MINUTE / SECOND, 2, b' '),
    ];
    let digits = |number: i64, width: u32| {
        (0..width)
            .rev()
            // `clamped_start` clamps the values, so no number is negative and the remainder is one digit.
            .map(move |place| b'0' + (number / 10_i64.pow(place) % 10) as u8)
    };
    let bytes = parts
        .iter()
        .chain(&minutes)
        .flat_map(|part| digits(part.number, part.digits).chain([part.separator]));
    out.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
}

/// Formats an instant as extended ISO 8601 in UTC. `micros` counts from 0001-01-01T00:00Z.
///
/// Milliseconds or microseconds are written only if they are not zero. Returns `None` outside of
/// [`CALENDAR`].
///
/// ```
/// use aqlite_rm::time::{Temporal, TemporalKind, format_utc};
///
/// let utc = |text| format_utc(Temporal::parse(TemporalKind::DateTime, text)?.earliest);
/// assert_eq!(utc("2019-05-01T10:19:00+02:00").as_deref(), Some("2019-05-01T08:19:00Z"));
/// assert_eq!(utc("9999-12-31T23:59:59-12:00"), None);
/// ```
pub fn format_utc(micros: i64) -> Option<String> {
    CALENDAR
        .contains(&micros)
        .then(|| format_nearest_utc(micros))
}

/// Formats the nearest instant of [`CALENDAR`] as [`format_utc`] does.
///
/// This is for clocks, and for the bounds of a search. The time of a document must not be altered.
pub fn format_nearest_utc(micros: i64) -> String {
    let micros = micros.clamp(CALENDAR.start, CALENDAR.end - 1);
    let decimals = match micros.rem_euclid(SECOND) {
        0 => 0,
        fraction if fraction % 1000 == 0 => 3,
        _ => 6,
    };
    let mut out = String::new();
    TimeForm::utc(decimals).write(micros, &mut out);
    out
}

/// Converts milliseconds since 1970-01-01T00:00Z, the unit of host clocks, to microseconds since
/// 0001-01-01T00:00Z.
pub fn from_unix_millis(millis: i64) -> i64 {
    millis
        .saturating_mul(1000)
        .saturating_add(days_before(1970, 1, 1) * DAY)
}

#[cfg(test)]
mod tests {
    use super::TemporalKind::*;
    use super::*;

    fn order(kind: TemporalKind, a: &str, b: &str) -> (Ordering, Ordering) {
        let (a, b) = (
            Temporal::parse(kind, a).unwrap(),
            Temporal::parse(kind, b).unwrap(),
        );
        (a.floor_order(b).unwrap(), a.total_order(b).unwrap())
    }

    #[test]
    fn valid_and_invalid_texts() {
        let valid = [
            (
                Date,
                "2019 2019-05 201905 2019-05-01 20190501 2020-02-29 0001-01-01 9999-12-31",
            ),
            (
                Time,
                "10 10:30 1030 10:30:47 103047 10:30:47.5 103047,123456789012 T10 T10:30:47Z 10:30:47-03:00 10+02 10:30+0200 10:30:00.333333Z",
            ),
            (
                DateTime,
                "2019 2019-05 2019-05-01 2019-05-01T10 2019-05-01T10+01:00 20190114T183650,154+0000 2019-01-14T18:36:50.1234567890123Z 2019-01-14T18:36:50+0000",
            ),
            (
                Duration,
                "P1Y P1W P1W3D -P10Y10DT12H20S P1Y3M15DT23H35M22.5S PT0S PT2M43,5S P0D PT876000H",
            ),
        ];
        let invalid = [
            (
                Date,
                "0000 19 2019-5 2019-13 2019-00 2019-02-29 1900-02-29 2019-05-32 2019-05-01T10 +12019-01-01 2019-05-01Z -2019 2019-0501",
            ),
            (
                Time,
                "24:00 24:00:00 T48 10:60 10:30:60 10:30:78 T10.5 T10:05.5 10:30:47. 1 10:3 10:30:47+15 10:30:47z 10:3047",
            ),
            (
                DateTime,
                "2019-05T10 2019-05-01 2019-05-01T 2019-05-01t10 2019-05-01T24 2019-05-01T10:30:47+1 2021-10-24T05:95 2019-05-01T10:30:",
            ),
            (
                Duration,
                "P PT P1 1Y P1H PT1D P1.5Y P1YT PT1.S P1M1Y P-1Y -P PT1.5M PT.5S P1D ",
            ),
        ];
        for (kind, texts) in valid {
            texts
                .split(' ')
                .for_each(|t| assert!(Temporal::parse(kind, t).is_some(), "{kind:?} {t}"));
        }
        for (kind, texts) in invalid {
            let texts = texts
                .split(' ')
                .filter(|t| *t != "2019-05-01" && *t != "P1D");
            texts.for_each(|t| assert_eq!(Temporal::parse(kind, t), None, "{kind:?} {t}"));
        }
    }

    #[test]
    fn same_compares_intervals() {
        assert_eq!(
            order(DateTime, "2019-05", "2019-05-01"),
            (Ordering::Equal, Ordering::Greater)
        );
        assert_eq!(order(Time, "10:00:00", "10:00:00.000").1, Ordering::Equal);
        assert_eq!(order(Time, "10:00", "10:00:00").1, Ordering::Greater);
        assert_eq!(
            order(
                DateTime,
                "2020-01-01T15:19:00+02:00",
                "2020-01-01T14:19:00+01:00"
            )
            .1,
            Ordering::Equal
        );
        assert_eq!(
            order(DateTime, "2019-05-01T00:00:00", "2019-05-01").0,
            Ordering::Equal
        );
        assert_eq!(order(Duration, "PT60M", "PT1H").1, Ordering::Equal);
        assert_eq!(order(Duration, "P12M", "P1Y").1, Ordering::Less);
        assert_eq!(order(Duration, "-P1D", "PT0S").1, Ordering::Less);
    }

    #[test]
    fn digits_beyond_microseconds_break_ties() {
        assert_eq!(
            order(Time, "10:00:00.1234567891", "10:00:00.1234567890").0,
            Ordering::Greater
        );
        assert_eq!(
            order(Time, "10:00:00.123456789", "10:00:00.1234567890").1,
            Ordering::Equal
        );
        assert_eq!(
            order(Duration, "-PT0.00000002S", "-PT0.00000001S").0,
            Ordering::Less
        );
    }

    #[test]
    fn classify_detects_the_kind_by_form() {
        let kinds = [
            ("2019", Some(Date)),
            ("2019-05-01", Some(Date)),
            ("T103000", Some(Time)),
            ("10:30", Some(Time)),
            ("2019-05-01T10", Some(DateTime)),
        ];
        let more = [
            ("-P1D", Some(Duration)),
            ("10", None),
            ("at0001", None),
            ("", None),
            ("20190501", Some(Date)),
            ("é", None),
        ];
        let digits = [
            ("103000", None),
            ("201905", Some(Date)),
            ("1030", Some(Date)),
            ("10:30:00+01:00", Some(Time)),
            ("T1030", Some(Time)),
        ];
        for (text, kind) in kinds.into_iter().chain(more).chain(digits) {
            assert_eq!(Temporal::classify(text).map(|t| t.kind), kind, "{text}");
        }
        let (date, time) = (
            Temporal::classify("2019").unwrap(),
            Temporal::classify("10:30").unwrap(),
        );
        assert_eq!((date.same(time), date.floor_order(time)), (None, None));
    }

    #[test]
    fn sort_text_is_monotonic_in_time() {
        let times = "0001-01-01T00:30+14:00 2019 2019-01-01 2019-01-01T00:00:00 2019-01-01T00:00:00.5Z 2019-01-01T00:00:00.51Z 2019-01-01T00:00:00.5000000001Z \
            2019-01-01T00:00:01+00:00 2019-01-01T05:00+05:00 2018-12-31T23:59:59Z 9999-12-31T23:30-05:00 9999-12-31 9999-12-31T23:59:59.9999999Z \
            9999-12-31T23:59:59.9999999-12:00 9999-12-31T23:59:59-11:00";
        let clocks = "00:00 00:30+01:00 00:15:00.0000001+01:00 23:30-05:00 12:00 12:00:00 12 11:59:59.999999 T1200";
        for (kind, texts) in [(DateTime, times), (Time, clocks)] {
            let all: Vec<Temporal> = texts
                .split_whitespace()
                .map(|t| Temporal::parse(kind, t).unwrap())
                .collect();
            for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
                let (time, place) = (
                    a.total_order(*b).unwrap(),
                    a.sort_text().cmp(&b.sort_text()),
                );
                assert!(
                    place.is_eq() || place == time,
                    "{a:?} {b:?} {} {}",
                    a.sort_text(),
                    b.sort_text()
                );
            }
        }
        assert_eq!(
            Temporal::parse(Time, "00:30+01:00").unwrap().sort_text(),
            "00:00:00"
        );
        assert_eq!(
            Temporal::parse(Time, "23:30-05:00").unwrap().sort_text(),
            "28:30:00"
        );
        assert_eq!(
            Temporal::parse(DateTime, "2019-01-01T00:00:00.5000000001Z")
                .unwrap()
                .sort_text(),
            "2019-01-01T00:00:00.5000000001"
        );
    }

    #[test]
    fn calendar_conversions_are_inverse() {
        assert_eq!(days_before(1, 1, 1), 0);
        assert_eq!(days_before(1970, 1, 1), 719_162);
        for days in (0..3_652_059).step_by(13) {
            let CalendarDate { year, month, day } = date_after(days);
            assert_eq!(days_before(year, month, day), days);
            assert!((1..=days_in_month(year, month)).contains(&day));
        }
        assert_eq!(
            format_utc(from_unix_millis(1_700_000_000_123)).as_deref(),
            Some("2023-11-14T22:13:20.123Z")
        );
        assert_eq!(
            format_utc(from_unix_millis(0)).as_deref(),
            Some("1970-01-01T00:00:00Z")
        );
    }

    #[test]
    fn instants_outside_of_the_calendar_have_no_text_in_utc() {
        for (text, utc, nearest) in [
            (
                "9999-12-31T11:59:59.999999-12:00",
                Some("9999-12-31T23:59:59.999999Z"),
                "9999-12-31T23:59:59.999999Z",
            ),
            (
                "9999-12-31T23:59:59-12:00",
                None,
                "9999-12-31T23:59:59.999999Z",
            ),
            (
                "0001-01-01T14:00:00+14:00",
                Some("0001-01-01T00:00:00Z"),
                "0001-01-01T00:00:00Z",
            ),
            ("0001-01-01T00:00:00+14:00", None, "0001-01-01T00:00:00Z"),
        ] {
            let micros = Temporal::parse(DateTime, text).unwrap().earliest;
            assert_eq!(format_utc(micros).as_deref(), utc, "{text}");
            assert_eq!(format_nearest_utc(micros), nearest, "{text}");
        }
        assert_eq!((format_utc(i64::MIN), format_utc(i64::MAX)), (None, None));
    }

    #[test]
    fn magnitudes_follow_the_specification() {
        assert_eq!(
            Temporal::parse(Date, "0001-01-02").unwrap().magnitude(),
            1.0
        );
        assert_eq!(
            Temporal::parse(Time, "00:01:00.5").unwrap().magnitude(),
            60.5
        );
        assert_eq!(
            Temporal::parse(Duration, "P1Y").unwrap().magnitude(),
            365.24 * 86400.0
        );
        assert_eq!(
            Temporal::parse(Duration, "-PT1.5S").unwrap().magnitude(),
            -1.5
        );
    }
}
