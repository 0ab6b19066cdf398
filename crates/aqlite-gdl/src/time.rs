//! Points in time in guides: parsing, printing and calendar arithmetic without a clock.

use chrono::{
    DateTime, Datelike, Days, FixedOffset, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta,
};
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while_m_n, take_while1};
use nom::character::complete::{char, one_of};
use nom::combinator::{all_consuming, map_opt, opt, value};
use nom::sequence::preceded;
use nom::{IResult, Parser};
use std::fmt;

/// The RM class of a point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// `DV_DATE`: the start of the day.
    Date,
    /// `DV_DATE_TIME`.
    DateTime,
    /// `DV_TIME`: a moment of 1970-01-01.
    Time,
}

/// A point in time with the offset in which its calendar runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Moment {
    /// Milliseconds since 1970-01-01T00:00:00Z. A partial value has the earliest point that it
    /// covers.
    pub millis: i64,
    /// Seconds east of UTC.
    pub offset: i32,
    /// The class that the text had.
    pub precision: Precision,
    /// Whether the calendar follows the zone of the evaluation, whose offset changes; otherwise the
    /// offset is fixed.
    pub zoned: bool,
}

/// A time zone with changes of its offset, such as Europe/Stockholm. The host implements it,
/// because the core contains no zone data.
pub trait Zone {
    /// Returns the offset in seconds east of UTC at a number of milliseconds since 1970; `None` at a
    /// time that the host's data of the zone do not cover. A result at such a time is unknown.
    fn offset(&self, millis: i64) -> Option<i32>;
}

/// The time of evaluation and the time zone of its calendar. A moment converts to a clock with a
/// fixed offset.
#[derive(Clone, Copy)]
pub struct Clock<'a> {
    /// The time of evaluation.
    pub now: Moment,
    zone: Option<&'a dyn Zone>,
}

impl fmt::Debug for Clock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now.text())
    }
}

impl From<Moment> for Clock<'_> {
    fn from(now: Moment) -> Self {
        Clock { now, zone: None }
    }
}

impl<'a> Clock<'a> {
    /// Creates a clock in a time zone, in which `now` already is ([`Moment::in_zone`]).
    pub fn in_zone(now: Moment, zone: &'a dyn Zone) -> Clock<'a> {
        Clock {
            now,
            zone: Some(zone),
        }
    }

    /// Returns the date-time at a number of milliseconds since 1970; `None` where the zone has no
    /// offset.
    pub(crate) fn at(self, millis: i64) -> Option<Moment> {
        let moment = Moment::from_millis(millis, self.now.offset);
        match self.zone {
            Some(zone) => moment.in_zone(zone),
            None => Some(moment),
        }
    }

    /// Returns the current date of the calendar in the zone of evaluation. Like each date of the
    /// data it has no zone itself, so that it equals the same date there.
    pub(crate) fn today(self) -> Option<Moment> {
        let midnight = NaiveDateTime::new(self.now.local_date()?, NaiveTime::MIN);
        Moment::at(midnight, 0, Precision::Date)
    }

    /// Adds like [`Moment::plus`], across changes of the offset: a day ends at the same time of
    /// day, and an hour has always the same length.
    pub(crate) fn plus(self, moment: Moment, amount: f64, unit: TimeUnit) -> Option<Moment> {
        self.settled(moment.plus(amount, unit)?, unit)
    }

    fn settled(self, moment: Moment, unit: TimeUnit) -> Option<Moment> {
        match self.zone.filter(|_| moment.zoned) {
            None => Some(moment),
            // An hour has a fixed length: the moment stays and its offset is looked up.
            Some(zone) if unit.is_of_clock() => Some(Moment {
                offset: zone.offset(moment.millis)?,
                ..moment
            }),
            Some(zone) => moment.settled(zone),
        }
    }
}

/// The time units of quantities, as calendar periods or durations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// `a`
    Year,
    /// `mo`
    Month,
    /// `wk`
    Week,
    /// `d`
    Day,
    /// `h`
    Hour,
    /// `min`
    Minute,
    /// `s`
    Second,
}

impl TimeUnit {
    /// Parses a unit in the spelling of UCUM.
    pub fn parse(unit: &str) -> Option<TimeUnit> {
        match unit {
            "a" => Some(TimeUnit::Year),
            "mo" => Some(TimeUnit::Month),
            "wk" => Some(TimeUnit::Week),
            "d" => Some(TimeUnit::Day),
            "h" => Some(TimeUnit::Hour),
            "min" => Some(TimeUnit::Minute),
            "s" => Some(TimeUnit::Second),
            _ => None,
        }
    }

    /// Returns the number of months or seconds in a unit, and the one in which it is fixed.
    pub(crate) fn fixed_length(self) -> (TimeUnit, f64) {
        match self {
            TimeUnit::Year => (TimeUnit::Month, 12.0),
            TimeUnit::Month => (TimeUnit::Month, 1.0),
            TimeUnit::Week => (TimeUnit::Second, 604_800.0),
            TimeUnit::Day => (TimeUnit::Second, 86_400.0),
            TimeUnit::Hour => (TimeUnit::Second, 3_600.0),
            TimeUnit::Minute => (TimeUnit::Second, 60.0),
            TimeUnit::Second => (TimeUnit::Second, 1.0),
        }
    }

    /// Returns whether the unit is a part of a day, with the same length on every day.
    fn is_of_clock(self) -> bool {
        matches!(self, TimeUnit::Hour | TimeUnit::Minute | TimeUnit::Second)
    }
}

impl Moment {
    /// Parses ISO 8601, extended or basic, complete or truncated on the right. `zone` (seconds east
    /// of UTC) applies if the text has no offset. A region in brackets behind the offset is
    /// ignored.
    pub fn parse(text: &str, zone: i32) -> Option<Moment> {
        usual(text, zone).or_else(|| Moment::parse_any(text, zone))
    }

    fn parse_any(text: &str, zone: i32) -> Option<Moment> {
        // A region such as `[Europe/Paris]` follows the offset, which is authoritative.
        let text = text.split_once('[').map_or(text, |(t, _)| t);
        let (_, (date, time)) = all_consuming((opt(date), opt(time_part)))
            .parse(text)
            .ok()?;
        if date.is_none() && text.starts_with('T') {
            return None;
        }
        let (clock, offset) = time.unwrap_or((NaiveTime::MIN, None));
        let precision = match (date, time) {
            (Some(_), Some(_)) => Precision::DateTime,
            (Some(_), None) => Precision::Date,
            (None, Some(_)) => Precision::Time,
            (None, None) => return None,
        };
        let day = date.or_else(|| NaiveDate::from_ymd_opt(1970, 1, 1))?;
        Moment::at(
            NaiveDateTime::new(day, clock),
            offset.unwrap_or(zone),
            precision,
        )
    }

    /// Parses like [`Moment::parse`]. A text without offset is a clock reading in the zone: one that
    /// is skipped moves forward by the length of the gap, and of one that occurs twice the first is
    /// meant.
    pub fn parse_in_zone(text: &str, zone: &dyn Zone) -> Option<Moment> {
        const DAY: i64 = 86_400_000;
        let read = |offset: i32| Moment::parse(text, offset);
        let reading = read(0)?;
        if read(3600)?.millis == reading.millis {
            return Some(reading);
        }
        // The offsets before and after a change that may be near. Zones change no more than once
        // within two days.
        let wall = reading.millis;
        let near = |millis: i64| zone.offset(wall.saturating_add(millis));
        let (before, after) = (near(-DAY)?, near(DAY)?);
        let at = |offset: i32| wall.saturating_sub(i64::from(offset) * 1000);
        let holds = |offset: i32| zone.offset(at(offset)) == Some(offset);
        let millis = at(match !holds(before) && holds(after) {
            true => after,
            false => before,
        });
        Some(Moment {
            millis,
            offset: zone.offset(millis)?,
            ..reading
        })
    }

    /// Returns the date-time at the same time with the offset of a zone; `None` where the zone has
    /// none.
    pub fn in_zone(self, zone: &dyn Zone) -> Option<Moment> {
        let offset = zone.offset(self.millis)?;
        Some(Moment {
            zoned: true,
            ..Moment::from_millis(self.millis, offset)
        })
    }

    /// Returns the date-time at a number of milliseconds since 1970, with the given offset.
    pub fn from_millis(millis: i64, offset: i32) -> Moment {
        Moment {
            millis,
            offset,
            precision: Precision::DateTime,
            zoned: false,
        }
    }

    /// Keeps the local time and adjusts the offset to the zone. A local time that occurs twice
    /// keeps its offset if that is one of the two, else it is the earlier. A local time that is
    /// skipped moves forward by the length of the gap.
    fn settled(self, zone: &dyn Zone) -> Option<Moment> {
        let wall = self.millis.checked_add(i64::from(self.offset) * 1000)?;
        let at = |offset: i32| wall.checked_sub(i64::from(offset) * 1000);
        // Two steps: the offset at the old moment may differ from the offset at the new one.
        let first = zone.offset(self.millis)?;
        let offset = if zone.offset(at(first)?)? == first {
            first
        } else {
            // In a gap, the lesser offset yields the later moment.
            first.min(self.offset)
        };
        let millis = at(offset)?;
        Some(Moment {
            millis,
            offset: zone.offset(millis)?,
            ..self
        })
    }

    /// Returns the date in the offset of the moment.
    pub(crate) fn local_date(self) -> Option<NaiveDate> {
        self.local().map(|local| local.date())
    }

    /// Returns whether ISO 8601 can write the year with four digits.
    pub(crate) fn is_in_calendar(self) -> bool {
        self.local_date()
            .is_some_and(|date| (0..=9999).contains(&date.year()))
    }

    /// Adds the whole part of `amount` calendar units: 31 January plus one month is the last of
    /// February.
    pub fn plus(self, amount: f64, unit: TimeUnit) -> Option<Moment> {
        // Fractions of calendar units have no meaning.
        let steps = whole(amount)?;
        let local = self.local()?;
        let moved = match unit {
            TimeUnit::Year => plus_months(local, steps.checked_mul(12)?),
            TimeUnit::Month => plus_months(local, steps),
            // Days are calendar days: a change of the offset does not shift the time of day.
            TimeUnit::Week => plus_days(local, steps.checked_mul(7)?),
            TimeUnit::Day => plus_days(local, steps),
            TimeUnit::Hour => local.checked_add_signed(TimeDelta::try_hours(steps)?),
            TimeUnit::Minute => local.checked_add_signed(TimeDelta::try_minutes(steps)?),
            TimeUnit::Second => local.checked_add_signed(TimeDelta::try_seconds(steps)?),
        }?;
        // A date plus hours has a time of day.
        let precision = match (self.precision, unit) {
            (Precision::Date, unit) if unit.is_of_clock() => Precision::DateTime,
            (same, _) => same,
        };
        let moved = Moment::at(moved, self.offset, precision)?;
        Some(Moment {
            zoned: self.zoned,
            ..moved
        })
    }

    /// Prints ISO 8601: a date without offset, a date-time with its offset and no superfluous
    /// digits.
    pub fn text(self) -> String {
        let Some(local) = self.local() else {
            return String::new();
        };
        let zone = || match self.offset {
            0 => "Z".to_owned(),
            o => format!(
                "{}{:02}:{:02}",
                if o < 0 { '-' } else { '+' },
                o.abs() / 3600,
                o.abs() / 60 % 60
            ),
        };
        match self.precision {
            Precision::Date => local.date().to_string(),
            Precision::Time => format!("{}{}", local.time(), zone()),
            Precision::DateTime => format!("{}T{}{}", local.date(), local.time(), zone()),
        }
    }

    fn local(self) -> Option<NaiveDateTime> {
        let utc = DateTime::from_timestamp_millis(self.millis)?;
        FixedOffset::east_opt(self.offset).map(|zone| utc.with_timezone(&zone).naive_local())
    }

    fn at(local: NaiveDateTime, offset: i32, precision: Precision) -> Option<Moment> {
        let millis = local
            .and_utc()
            .timestamp_millis()
            .checked_sub(i64::from(offset) * 1000)?;
        Some(Moment {
            millis,
            offset,
            precision,
            zoned: false,
        })
    }
}

/// Parses the most frequent form without the general parser: `2019-08-12T09:18:00`, then nothing,
/// `Z` or `+02:00`.
fn usual(text: &str, zone: i32) -> Option<Moment> {
    let bytes = text.as_bytes();
    // The positions of the separators decide quickly whether the general parser is needed.
    let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if signs.iter().any(|(at, sign)| bytes.get(*at) != Some(sign)) {
        return None;
    }
    let number = |at: usize, digits: usize| {
        bytes.get(at..at + digits)?.iter().try_fold(0_u32, |n, c| {
            c.is_ascii_digit().then(|| n * 10 + u32::from(c - b'0'))
        })
    };
    let offset = match bytes.get(19..)? {
        [] => zone,
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let seconds = i32::try_from(number(20, 2)? * 3600 + number(23, 2)? * 60)
                .ok()
                .filter(|s| *s < 86_400)?;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let date = NaiveDate::from_ymd_opt(
        i32::try_from(number(0, 4)?).ok()?,
        number(5, 2)?,
        number(8, 2)?,
    )?;
    let clock = NaiveTime::from_hms_opt(number(11, 2)?, number(14, 2)?, number(17, 2)?)?;
    Moment::at(NaiveDateTime::new(date, clock), offset, Precision::DateTime)
}

/// Adds months; the day is at most the last of the month.
fn plus_months(local: NaiveDateTime, months: i64) -> Option<NaiveDateTime> {
    let size = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    match months < 0 {
        true => local.checked_sub_months(size),
        false => local.checked_add_months(size),
    }
}

fn plus_days(local: NaiveDateTime, days: i64) -> Option<NaiveDateTime> {
    let size = Days::new(days.unsigned_abs());
    match days < 0 {
        true => local.checked_sub_days(size),
        false => local.checked_add_days(size),
    }
}

/// Returns the whole part of a number that fits the calendar.
fn whole(amount: f64) -> Option<i64> {
    // The limit keeps the cast exact and every intermediate result in range.
    #[allow(clippy::cast_possible_truncation)]
    (amount.abs() < 1.0e9).then_some(amount.trunc() as i64)
}

fn digits<'a>(n: usize) -> impl Parser<&'a str, Output = u32, Error = nom::error::Error<&'a str>> {
    map_opt(
        take_while_m_n(n, n, |c: char| c.is_ascii_digit()),
        |t: &str| t.parse().ok(),
    )
}

fn date(input: &str) -> IResult<&str, NaiveDate> {
    let extended = (
        digits(4),
        opt(preceded(
            char('-'),
            (digits(2), opt(preceded(char('-'), digits(2)))),
        )),
    );
    let extended = map_opt(extended, |(y, rest)| {
        let (m, d) = rest.map_or((1, 1), |(m, d)| (m, d.unwrap_or(1)));
        NaiveDate::from_ymd_opt(i32::try_from(y).ok()?, m, d)
    });
    let basic = map_opt((digits(4), digits(2), digits(2)), |(y, m, d)| {
        NaiveDate::from_ymd_opt(i32::try_from(y).ok()?, m, d)
    });
    alt((basic, extended)).parse(input)
}

fn time_part(input: &str) -> IResult<&str, (NaiveTime, Option<i32>)> {
    let fraction = preceded(one_of(".,"), take_while1(|c: char| c.is_ascii_digit()));
    let seconds = (preceded(opt(char(':')), digits(2)), opt(fraction));
    let clock = (
        opt(char('T')),
        digits(2),
        preceded(opt(char(':')), digits(2)),
        opt(seconds),
    );
    let clock = map_opt(clock, |(_, h, m, rest)| {
        let (s, fraction) = rest.unwrap_or((0, None));
        let nanos: String = fraction
            .unwrap_or("0")
            .chars()
            .chain("000000000".chars())
            .take(9)
            .collect();
        NaiveTime::from_hms_nano_opt(h, m, s, nanos.parse().ok()?)
    });
    let hours = map_opt((char('T'), digits(2)), |(_, h)| {
        NaiveTime::from_hms_opt(h, 0, 0)
    });
    (alt((clock, hours)), opt(zone)).parse(input)
}

fn zone(input: &str) -> IResult<&str, i32> {
    let offset = (
        one_of("+-"),
        digits(2),
        opt(preceded(opt(char(':')), digits(2))),
    );
    let offset = map_opt(offset, |(sign, h, m)| {
        let seconds = i32::try_from(h.checked_mul(3600)? + m.unwrap_or(0) * 60)
            .ok()
            .filter(|s| *s < 86_400)?;
        Some(if sign == '-' { -seconds } else { seconds })
    });
    alt((value(0, tag("Z")), offset)).parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Moment {
        Moment::parse(text, 0).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn texts_come_back() {
        for text in [
            "2019-08-12T09:18:00+02:00",
            "2019-08-12",
            "2019-08-12T09:18:00.250Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(at(text).text(), text);
        }
    }

    #[test]
    fn partial_and_decorated_texts_are_read() {
        assert_eq!(
            at("2019-08-12T09:18+02:00[Europe/Stockholm]"),
            at("2019-08-12T09:18:00+02:00")
        );
        assert_eq!(at("1949-03-07T14:57Z").text(), "1949-03-07T14:57:00Z");
        assert_eq!(at("20190812T091800Z").text(), "2019-08-12T09:18:00Z");
        assert_eq!(at("2019-08").text(), "2019-08-01");
        assert_eq!(Moment::parse("2019-13-01", 0), None);
        assert_eq!(Moment::parse("", 0), None);
    }

    #[test]
    fn the_usual_form_is_read_like_any_other() {
        let texts = [
            "2019-08-12T09:18:00",
            "2019-08-12T09:18:00Z",
            "2019-08-12T09:18:59-02:30",
            "2019-02-29T00:00:00Z",
            "2019-08-12T24:00:00Z",
        ];
        for text in texts.into_iter().chain([
            "2019-08-12T09:18:00+25:00",
            "2019-08-12T09:18:00.5Z",
            "2019-08-12T09:1x:00Z",
            "0000-01-01T00:00:00Z",
        ]) {
            for zone in [0, 3600] {
                assert!(
                    usual(text, zone).is_none()
                        || usual(text, zone) == Moment::parse_any(text, zone),
                    "{text}"
                );
            }
        }
        assert!(usual("2019-08-12T09:18:59-02:30", 0).is_some());
    }

    /// Central European time in 2025; no offset from 2026 on.
    struct Summer;

    impl Zone for Summer {
        fn offset(&self, millis: i64) -> Option<i32> {
            let is_summer = (at("2025-03-30T01:00:00Z").millis..at("2025-10-26T01:00:00Z").millis)
                .contains(&millis);
            let is_covered = millis < at("2026-01-01T00:00:00Z").millis;
            is_covered.then_some(if is_summer { 7200 } else { 3600 })
        }
    }

    fn summer_clock(now: &str) -> Clock<'static> {
        Clock::in_zone(at(now).in_zone(&Summer).unwrap(), &Summer)
    }

    #[test]
    fn time_without_an_offset_of_the_zone_is_unknown() {
        let clock = summer_clock("2025-12-31T12:00:00Z");
        for unit in [TimeUnit::Day, TimeUnit::Hour] {
            assert_eq!(clock.plus(clock.now, 24.0, unit), None);
        }
        assert_eq!(clock.at(at("2026-01-01T00:00:00Z").millis), None);
        assert_eq!(at("2026-01-01T00:00:00Z").in_zone(&Summer), None);
        assert_eq!(Moment::parse_in_zone("2026-01-02T00:00:00", &Summer), None);
    }

    /// Now, amount, unit, sum. In spring, 02:30 does not exist; in autumn it occurs twice.
    #[rustfmt::skip]
    const DAYS_AND_HOURS: [(&str, f64, TimeUnit, &str); 9] = [
        ("2025-03-29T12:00:00Z", 1.0, TimeUnit::Day, "2025-03-30T13:00:00+02:00"),
        ("2025-03-29T12:00:00Z", 24.0, TimeUnit::Hour, "2025-03-30T14:00:00+02:00"),
        ("2025-01-31T12:00:00Z", 6.0, TimeUnit::Month, "2025-07-31T13:00:00+02:00"),
        ("2025-07-31T12:00:00Z", -6.0, TimeUnit::Month, "2025-01-31T14:00:00+01:00"),
        ("2025-03-29T01:30:00Z", 1.0, TimeUnit::Day, "2025-03-30T03:30:00+02:00"),
        ("2025-04-30T00:30:00Z", -1.0, TimeUnit::Month, "2025-03-30T03:30:00+02:00"),
        ("2025-10-25T00:30:00Z", 1.0, TimeUnit::Day, "2025-10-26T02:30:00+02:00"),
        ("2025-10-27T01:30:00Z", -1.0, TimeUnit::Day, "2025-10-26T02:30:00+01:00"),
        ("2025-10-26T00:30:00Z", 60.0, TimeUnit::Minute, "2025-10-26T02:30:00+01:00"),
    ];

    #[test]
    fn days_keep_the_time_of_day_and_hours_their_length() {
        for (now, amount, unit, expected) in DAYS_AND_HOURS {
            let clock = summer_clock(now);
            assert_eq!(
                clock
                    .plus(clock.now, amount, unit)
                    .map(Moment::text)
                    .as_deref(),
                Some(expected),
                "{now} {amount} {unit:?}"
            );
        }
        assert_eq!(
            summer_clock("2025-06-01T23:00:00Z")
                .today()
                .map(|d| (d.text(), d.offset)),
            Some((String::from("2025-06-02"), 0))
        );
        // A time of the data is shown in the offset that it names.
        let clock = summer_clock("2025-03-29T12:00:00Z");
        assert_eq!(
            clock.plus(at("2025-03-29T12:00:00+01:00"), 1.0, TimeUnit::Day),
            Some(at("2025-03-30T12:00:00+01:00"))
        );
    }

    #[test]
    fn clock_readings_near_a_change_have_one_meaning() {
        for (reading, expected) in [
            ("2025-03-30T00:30:00", "2025-03-30T00:30:00+01:00"),
            ("2025-03-30T01:30:00", "2025-03-30T01:30:00+01:00"),
            ("2025-03-30T02:30:00", "2025-03-30T03:30:00+02:00"),
            ("2025-03-30T03:30:00", "2025-03-30T03:30:00+02:00"),
            ("2025-10-26T01:30:00", "2025-10-26T01:30:00+02:00"),
            ("2025-10-26T02:30:00", "2025-10-26T02:30:00+02:00"),
            ("2025-10-26T03:30:00", "2025-10-26T03:30:00+01:00"),
            ("2025-10-26T02:30:00+01:00", "2025-10-26T02:30:00+01:00"),
            ("2025-10-26T02:30:00Z", "2025-10-26T02:30:00Z"),
        ] {
            let found = Moment::parse_in_zone(reading, &Summer).map(Moment::text);
            assert_eq!(found.as_deref(), Some(expected), "{reading}");
        }
    }

    #[test]
    fn months_end_where_the_month_ends() {
        assert_eq!(
            at("2019-01-31")
                .plus(1.0, TimeUnit::Month)
                .map(Moment::text)
                .as_deref(),
            Some("2019-02-28")
        );
        assert_eq!(
            at("2020-02-29")
                .plus(-1.9, TimeUnit::Year)
                .map(Moment::text)
                .as_deref(),
            Some("2019-02-28")
        );
        assert_eq!(at("2020-02-29").plus(1.0e12, TimeUnit::Year), None);
        assert_eq!(at("2020-02-29").plus(f64::NAN, TimeUnit::Day), None);
    }
}
