//! Points in time of the interface: reading and writing.

use super::error::Failure;
use super::http::Request;
use crate::rm::time::{
    CalendarDate, Parts, Temporal, TemporalKind, date_after, format_nearest_utc, format_utc,
    from_unix_millis,
};
use std::borrow::Cow;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Formats a time as ISO 8601 extended in UTC with microseconds, so that text order is time order:
/// `2026-11-20T22:15:00.123456+00:00`. A time outside the years 1 to 9999 becomes the nearest one
/// inside, because beyond them the order of texts is not that of times.
pub(crate) fn iso(micros: i64) -> String {
    let micros = from_unix_millis(0).saturating_add(micros);
    with_six_decimals(&format_nearest_utc(micros))
}

/// Returns the time `days` days before a time in microseconds since 1970, in the format of the
/// access log.
#[must_use]
pub fn days_before(micros: i64, days: u32) -> String {
    iso(micros.saturating_sub(i64::from(days) * 86_400_000_000))
}

/// Converts a text of [`format_utc`] to the format of [`iso`].
fn with_six_decimals(text: &str) -> String {
    let text = text.trim_end_matches('Z');
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    // Always six digits, because texts are compared byte by byte.
    format!("{seconds}.{fraction:0<6}+00:00")
}

/// Formats a date for HTTP headers: `Fri, 20 Nov 2026 22:15:00 GMT`. Returns `None` for a text that
/// is no time, or none of the years 1 to 9999 in UTC.
pub(crate) fn http_date(iso: &str) -> Option<String> {
    let micros = Temporal::parse(TemporalKind::DateTime, iso)?.earliest;
    let days = micros.div_euclid(86_400_000_000);
    let CalendarDate { year, month, day } = date_after(days);
    let name = |names: &[&'static str], at: i64| names.get(usize::try_from(at).ok()?).copied();
    let (weekday, month) = (name(&DAYS, days.rem_euclid(7))?, name(&MONTHS, month - 1)?);
    let clock = format_utc(micros)?;
    Some(format!(
        "{weekday}, {day:02} {month} {year:04} {} GMT",
        clock.get(11..19)?
    ))
}

/// Reads the parameter `version_at_time` and returns it in the form of [`iso`]. It is ISO 8601 with
/// at least a date. A blank is read as `+`, because form decoders replace it. Without a zone the
/// time is UTC.
pub(crate) fn at_time(text: &str) -> Result<String, Failure> {
    time_of("version_at_time", text)
}

/// Returns the parameter `version_at_time` of a request, in the form of [`iso`].
pub(crate) fn version_at_time(request: &Request) -> Result<Option<String>, Failure> {
    let stated = request.query_value("version_at_time");
    stated.filter(|t| !t.is_empty()).map(at_time).transpose()
}

/// Returns a value of a query string with the `+` of a zone that arrived as a blank, because the
/// client did not encode it: `2024-01-03T11:00:00 01:00`. Every other text is returned as it is.
pub(crate) fn with_plus(text: &str) -> Cow<'_, str> {
    let is_time =
        |text: &str| text.contains('T') && Parts::parse(TemporalKind::DateTime, text).is_some();
    let with_plus = || text.replacen(' ', "+", 1);
    match text.contains(' ') && is_time(&with_plus()) {
        true => Cow::Owned(with_plus()),
        false => Cow::Borrowed(text),
    }
}

/// Reads a parameter that is a time. It is a bound of a search, so the nearest time of [`iso`] is as
/// good as one that the conversion to UTC moves out of the calendar.
pub(crate) fn time_of(key: &str, text: &str) -> Result<String, Failure> {
    // A `+` in a query string arrives as a blank if the client did not encode it.
    let text = text.trim().replace(' ', "+");
    let complete = Parts::parse(TemporalKind::DateTime, &text).filter(|parts| parts.day.is_some());
    complete
        .and_then(|_| Temporal::parse(TemporalKind::DateTime, &text))
        .map(|time| with_six_decimals(&format_nearest_utc(time.earliest)))
        .ok_or_else(|| {
            Failure::bad_request(format!(
                "`{key}` is not a time: expected ISO 8601 such as `2026-01-31T08:15:00.000+01:00`"
            ))
        })
}

/// Reads a time of a document that is stored as sent, and returns it in the form of [`iso`]: ISO
/// 8601 with a complete date and time, within the calendar, and within the years 1 to 9999 in UTC.
/// Without a zone it is UTC.
pub(crate) fn instant(what: &str, text: &str) -> Result<String, Failure> {
    let complete = Parts::parse(TemporalKind::DateTime, text).filter(|parts| parts.day.is_some());
    let time = complete.and_then(|_| Temporal::parse(TemporalKind::DateTime, text));
    let utc = time.and_then(|time| format_utc(time.earliest));
    utc.map(|utc| with_six_decimals(&utc)).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Failure::bad_request(format!("{what} is `{shown}`, which is no time of the calendar: expected ISO 8601 such as `2026-01-31T08:15:00.000+01:00`, within the years 1 to 9999 in UTC"))
    })
}

/// Microseconds that a time of another system may be in the future: a day, because a time without a
/// zone is read as UTC.
const AHEAD: i64 = 86_400_000_000;

/// Like [`instant`], for the time of a commit, which must not be after `now` (microseconds since
/// 1970).
pub(crate) fn past_instant(what: &str, text: &str, now: i64) -> Result<String, Failure> {
    let time = instant(what, text)?;
    check_past(what, text, now).map(|()| time)
}

/// Checks that a time is not in the future. Of an incomplete time, the earliest possible time
/// counts. Other checks reject invalid times.
pub(crate) fn check_past(what: &str, text: &str, now: i64) -> Result<(), Failure> {
    let limit = from_unix_millis(0)
        .saturating_add(now)
        .saturating_add(AHEAD);
    match Temporal::parse(TemporalKind::DateTime, text) {
        Some(time) if time.earliest > limit => {
            let shown: String = text.chars().take(40).collect();
            Err(Failure::bad_request(format!(
                "{what} is `{shown}`, which is in the future: nothing is committed later than now; correct the time, or the clock of this server"
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_at_the_ends_of_the_calendar_keep_their_order() {
        for (text, time) in [
            (
                "9999-12-31T23:59:59-01:00",
                "9999-12-31T23:59:59.999999+00:00",
            ),
            (
                "0001-01-01T00:00:00+01:00",
                "0001-01-01T00:00:00.000000+00:00",
            ),
        ] {
            assert_eq!(at_time(text).ok().as_deref(), Some(time));
        }
    }

    #[test]
    fn the_access_log_is_kept_for_whole_days() {
        let now = 1_796_000_000_000_000;
        assert_eq!(iso(now), "2026-11-30T00:53:20.000000+00:00");
        assert_eq!(days_before(now, 30), "2026-10-31T00:53:20.000000+00:00");
        assert_eq!(days_before(now, 0), iso(now));
    }

    #[test]
    fn times_are_read_in_their_common_spellings() {
        let expected = "2026-01-31T07:15:00.000000+00:00";
        for text in [
            "2026-01-31T08:15:00.000+01:00",
            "2026-01-31T08:15:00 01:00",
            "2026-01-31T07:15:00Z",
            "2026-01-31T07:15:00",
            "2026-01-31T07:15",
        ] {
            assert_eq!(at_time(text).unwrap(), expected, "{text}");
        }
        assert_eq!(
            at_time("2026-01-31").unwrap(),
            "2026-01-31T00:00:00.000000+00:00"
        );
        assert_eq!(
            at_time("2026-01-31T07:15:00.25").unwrap(),
            "2026-01-31T07:15:00.250000+00:00"
        );
        assert!(
            ["yesterday", "2026-01", "2026-02-30", ""]
                .iter()
                .all(|text| at_time(text).is_err())
        );
        assert_eq!(iso(1_500_000), "1970-01-01T00:00:01.500000+00:00");
        assert_eq!(
            http_date("2026-11-20T22:15:00.123456+00:00").unwrap(),
            "Fri, 20 Nov 2026 22:15:00 GMT"
        );
        assert_eq!(
            http_date("2027-03-01T00:15:00.000000+01:00").unwrap(),
            "Sun, 28 Feb 2027 23:15:00 GMT"
        );
        assert_eq!(http_date("9999-12-31T23:59:59-12:00"), None);
        assert_eq!(
            http_date("2024-02-01T00:00:00.000000+00:00").unwrap(),
            "Thu, 01 Feb 2024 00:00:00 GMT"
        );
    }

    #[test]
    fn an_instant_is_in_the_calendar_and_in_utc() {
        assert_eq!(
            instant("t", "2026-11-20T22:15:00.123456+00:00").unwrap(),
            "2026-11-20T22:15:00.123456+00:00"
        );
        assert_eq!(
            instant("t", "2026-11-20T22:15:00.5-01:00").unwrap(),
            "2026-11-20T23:15:00.500000+00:00"
        );
        for text in [
            "9999-99-99",
            "2026-02-29T00:00:00Z",
            "2026-11",
            "2026-11-20T25:00:00Z",
            "",
            "now",
            "9999-12-31T23:59:59-12:00",
            "0001-01-01T00:00:00+14:00",
            " 2026-11-20T22:15:00Z",
        ] {
            assert_eq!(instant("t", text).map_err(|f| f.status), Err(400), "{text}");
        }
    }
}
