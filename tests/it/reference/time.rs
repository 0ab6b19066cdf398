//! Dates, times and durations as intervals of an axis, counted in yoctoseconds.

use aqlite::rm::class::Cls;
use regex_lite::{Captures, Regex};
use std::sync::LazyLock;

/// Axis (`d`ay, `c`lock, `l`ength), begin and end.
pub type Interval = (char, i128, i128);

const SECOND: i128 = 1_000_000_000_000_000_000_000_000;

static DATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\d{4})(?:-(\d\d)(?:-(\d\d))?|(\d\d)(\d\d)?)?$").unwrap());
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?|(\d\d)(?:(\d\d)(?:[.,](\d+))?)?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?$").unwrap()
});
static LENGTH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(-)?P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d+))?S)?)?$").unwrap()
});

/// Returns the interval of a stored value of this class, or of a text that is compared with one.
pub fn read(class: Cls, text: &str) -> Option<Interval> {
    match class {
        Cls::DV_DATE => date(text).map(|(from, to)| ('d', from, to)),
        Cls::DV_DATE_TIME => date_time(text).map(|(from, to)| ('d', from, to)),
        Cls::DV_TIME => {
            clock(text.strip_prefix('T').unwrap_or(text)).map(|(from, to)| ('c', from, to))
        }
        Cls::DV_DURATION => length(text).map(|n| ('l', n, n)),
        _ => None,
    }
}

/// Returns the interval of a text on the axis of a class. A time has a colon or a leading `T`.
pub fn on_axis(class: Cls, text: &str) -> Option<Interval> {
    match class {
        Cls::DV_DATE => read(Cls::DV_DATE_TIME, text),
        Cls::DV_TIME if !text.contains(':') && !text.starts_with('T') => None,
        _ => read(class, text),
    }
}

/// Returns the interval of a text that is a date, time or duration.
pub fn anything(text: &str) -> Option<Interval> {
    [Cls::DV_DATE_TIME, Cls::DV_TIME, Cls::DV_DURATION]
        .iter()
        .find_map(|class| on_axis(*class, text))
}

/// Returns the text that represents an interval of the axes `d` and `c` in the order of texts: its
/// begin in UTC, in the extended format, to the seconds and the last non-zero digit of their
/// fraction.
pub fn place((axis, from, _): Interval) -> String {
    let (mut rest, day) = (from, 86_400 * SECOND);
    let mut out = String::new();
    if axis == 'd' {
        let mut year = 1;
        let length = |year: i128| (1..=12).map(|m| days(year, m)).sum::<i128>() * day;
        if rest < 0 {
            (year, rest) = (0, rest + length(0));
        }
        while rest >= length(year) {
            rest -= length(year);
            year += 1;
        }
        if year > 9999 {
            return "9999-12-31T23:59:59.999999".to_owned();
        }
        let mut month = 1;
        while rest >= days(year, month) * day {
            rest -= days(year, month) * day;
            month += 1;
        }
        out = format!("{year:04}-{month:02}-{:02}T", rest / day + 1);
        rest %= day;
    }
    let rest = rest.max(0);
    let (hour, minute, second) = (
        rest / SECOND / 3600,
        rest / SECOND / 60 % 60,
        rest / SECOND % 60,
    );
    out += &format!("{hour:02}:{minute:02}:{second:02}.{:024}", rest % SECOND);
    out.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the length of a duration in seconds.
pub fn seconds(text: &str) -> Option<f64> {
    length(text).map(|n| (n / SECOND) as f64 + (n % SECOND) as f64 / SECOND as f64)
}

fn number(found: &Captures<'_>, groups: &[usize]) -> Option<i128> {
    groups
        .iter()
        .find_map(|g| found.get(*g))
        .map(|m| m.as_str().parse().unwrap_or(i128::MAX / 4))
}

fn days(year: i128, month: i128) -> i128 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i128::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn date(text: &str) -> Option<(i128, i128)> {
    let found = DATE.captures(text)?;
    let (year, month, day) = (
        number(&found, &[1])?,
        number(&found, &[2, 4]),
        number(&found, &[3, 5]),
    );
    let fits = year > 0
        && month.is_none_or(|m| (1..=12).contains(&m))
        && day.is_none_or(|d| d >= 1 && d <= days(year, month.unwrap_or(1)));
    if !fits {
        return None;
    }
    let before_year: i128 = (1..year)
        .map(|y| (1..=12).map(|m| days(y, m)).sum::<i128>())
        .sum();
    let before_month: i128 = (1..month.unwrap_or(1)).map(|m| days(year, m)).sum();
    let width = match (month, day) {
        (None, _) => (1..=12).map(|m| days(year, m)).sum(),
        (Some(month), None) => days(year, month),
        _ => 1,
    };
    let from = before_year + before_month + day.unwrap_or(1) - 1;
    Some((from * 86_400 * SECOND, (from + width) * 86_400 * SECOND))
}

fn date_time(text: &str) -> Option<(i128, i128)> {
    let Some((day, time)) = text.split_once('T') else {
        return date(text);
    };
    let (from, to) = date(day)?;
    let (hour, until) = clock(time)?;
    (to - from == 86_400 * SECOND && day.len() >= 8).then_some((from + hour, from + until))
}

fn clock(text: &str) -> Option<(i128, i128)> {
    let found = CLOCK.captures(text)?;
    let (hour, minute, second) = (
        number(&found, &[1])?,
        number(&found, &[2, 5]),
        number(&found, &[3, 6]),
    );
    let (zone_hour, zone_minute) = (
        number(&found, &[9]).unwrap_or(0),
        number(&found, &[10]).unwrap_or(0),
    );
    if hour > 23
        || minute.is_some_and(|m| m > 59)
        || second.is_some_and(|s| s > 59)
        || zone_hour > 14
        || zone_minute > 59
    {
        return None;
    }
    let sign = if found.get(8).is_some_and(|s| s.as_str() == "-") {
        -1
    } else {
        1
    };
    let local = hour * 3600 + minute.unwrap_or(0) * 60 + second.unwrap_or(0);
    let from =
        (local - sign * (zone_hour * 60 + zone_minute) * 60) * SECOND + fraction(&found, &[4, 7]);
    let width = match (minute, second) {
        (None, _) => 3600,
        (_, None) => 60,
        _ => 0,
    };
    Some((from, from + width * SECOND))
}

fn fraction(found: &Captures<'_>, groups: &[usize]) -> i128 {
    let digits = groups
        .iter()
        .find_map(|g| found.get(*g))
        .map_or("", |m| m.as_str());
    format!("{digits:0<24}")
        .get(..24)
        .and_then(|d| d.parse().ok())
        .unwrap_or(0)
}

/// A year has 365.24 days, a month 30.42.
fn length(text: &str) -> Option<i128> {
    let found = LENGTH.captures(text)?;
    let named = [2, 3, 4, 5].iter().any(|g| found.get(*g).is_some());
    if found.get(6).map_or(!named, |time| time.as_str() == "T") {
        return None;
    }
    let part = |group: usize, seconds: i128| {
        number(&found, &[group])
            .unwrap_or(0)
            .saturating_mul(seconds)
    };
    let whole = part(2, 31_556_736)
        + part(3, 2_628_288)
        + part(4, 604_800)
        + part(5, 86_400)
        + part(7, 3600)
        + part(8, 60)
        + part(9, 1);
    let length = whole
        .saturating_mul(SECOND)
        .saturating_add(fraction(&found, &[10]));
    Some(if found.get(1).is_some() {
        -length
    } else {
        length
    })
}
