//! Points in time as the interface writes and reads them.

use super::error::Failure;
use chrono::{DateTime, SecondsFormat, Utc};

/// ISO 8601 extended in UTC with microseconds, so that text order is time order: `2026-11-20T22:15:00.123456+00:00`.
pub(crate) fn iso(micros: i64) -> String {
    moment(micros).to_rfc3339_opts(SecondsFormat::Micros, false)
}

/// The date of HTTP headers: `Fri, 20 Nov 2026 22:15:00 GMT`.
pub(crate) fn http_date(iso: &str) -> Option<String> {
    let time = DateTime::parse_from_rfc3339(iso).ok()?.with_timezone(&Utc);
    Some(time.to_rfc2822().replace("+0000", "GMT"))
}

/// The parameter `version_at_time`, in the form of [`iso`]: extended ISO 8601; a `+` that a form decoder turned into a
/// blank is read as one, and without a zone the time is UTC.
pub(crate) fn at_time(text: &str) -> Result<String, Failure> {
    time_of("version_at_time", text)
}

/// A parameter that is a time.
pub(crate) fn time_of(key: &str, text: &str) -> Result<String, Failure> {
    let text = text.trim().replace(' ', "+");
    let read = LEFT_OUT.iter().find_map(|rest| DateTime::parse_from_rfc3339(&format!("{text}{rest}")).ok());
    read.map(|time| time.with_timezone(&Utc).to_rfc3339_opts(SecondsFormat::Micros, false))
        .ok_or_else(|| Failure::bad(format!("`{key}` is not a time: expected ISO 8601 such as `2026-01-31T08:15:00.000+01:00`")))
}

/// What a time may leave out at its end, and what it means then.
const LEFT_OUT: [&str; 4] = ["", "Z", ":00Z", "T00:00:00Z"];

fn moment(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_common_spellings() {
        let expected = "2026-01-31T07:15:00.000000+00:00";
        for text in ["2026-01-31T08:15:00.000+01:00", "2026-01-31T08:15:00 01:00", "2026-01-31T07:15:00Z", "2026-01-31T07:15:00", "2026-01-31T07:15"]
        {
            assert_eq!(at_time(text).unwrap(), expected, "{text}");
        }
        assert_eq!(at_time("2026-01-31").unwrap(), "2026-01-31T00:00:00.000000+00:00");
        assert_eq!(at_time("2026-01-31T07:15:00.25").unwrap(), "2026-01-31T07:15:00.250000+00:00");
        assert!(at_time("yesterday").is_err());
        assert_eq!(iso(1_500_000), "1970-01-01T00:00:01.500000+00:00");
        assert_eq!(http_date("2026-11-20T22:15:00.123456+00:00").unwrap(), "Fri, 20 Nov 2026 22:15:00 GMT");
    }
}
