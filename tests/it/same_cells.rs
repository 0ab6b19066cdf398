//! Comparison of the cells of a JSON result with those that were read from a table of Arrow or
//! Parquet.

use aqlite::rm::json::{elements, members, text};
use aqlite::rm::time::{Parts, Temporal, TemporalKind};

/// Returns whether a cell of a table has the value of a cell of JSON: numbers have the same decimal
/// value, points in time are the same, objects have the same members, and texts are equal.
pub fn same(sent: &str, read: &str) -> bool {
    let (sent, read) = (sent.trim(), read.trim());
    match (sent.as_bytes().first(), read.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => same_objects(sent, read),
        (Some(b'['), Some(b'[')) => {
            let (Ok(sent), Ok(read)) = (elements(sent), elements(read)) else {
                return false;
            };
            sent.len() == read.len() && sent.iter().zip(read).all(|(s, r)| same(s, r))
        }
        (Some(b'"'), Some(b'"')) => {
            let (sent, read) = (text(sent), text(read));
            sent == read || (sent.is_some() && point(sent.as_deref()) == Some(read))
        }
        (Some(b'-' | b'0'..=b'9'), Some(b'-' | b'0'..=b'9')) => decimal(sent) == decimal(read),
        _ => sent == read,
    }
}

fn same_objects(sent: &str, read: &str) -> bool {
    let (Ok(sent), Ok(read)) = (members(sent), members(read)) else {
        return false;
    };
    let value = |name: &str| read.iter().find(|(other, _)| *other == name);
    sent.len() == read.len()
        && sent
            .iter()
            .all(|(name, json)| value(name).is_some_and(|(_, read)| same(json, read)))
}

/// Returns the text in UTC of a complete date-time with a zone.
fn point(text: Option<&str>) -> Option<Option<String>> {
    let text = text?;
    let parts = Parts::parse(TemporalKind::DateTime, text)?;
    let time = Temporal::parse(TemporalKind::DateTime, text)?;
    let is_complete = parts.second.is_some() && parts.zone.is_some();
    let utc = aqlite::rm::time::format_utc(time.earliest)?;
    is_complete.then_some(Some(utc))
}

/// Returns sign, digits and exponent of a number, without zeros at the ends.
fn decimal(number: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", whole.trim_start_matches('-'));
    let kept = all.trim_end_matches('0');
    let exponent: i64 = exponent.parse().unwrap_or(i64::MAX / 2);
    let power = exponent - fraction.len() as i64 + (all.len() - kept.len()) as i64;
    match kept.trim_start_matches('0') {
        "" => (false, String::new(), 0),
        digits => (number.starts_with('-'), digits.to_owned(), power),
    }
}

/// Returns the cells of the rows of a JSON array of arrays.
pub fn cells(rows: &str) -> Option<Vec<Vec<String>>> {
    let rows = elements(rows).ok()?.into_iter();
    rows.map(|row| Some(elements(row).ok()?.into_iter().map(str::to_owned).collect()))
        .collect()
}

/// Returns the first difference of two tables of cells.
pub fn difference(sent: &[Vec<String>], read: &[Vec<String>]) -> Option<String> {
    if sent.len() != read.len() {
        return Some(format!("{} rows instead of {}", read.len(), sent.len()));
    }
    let differs = |(sent, read): &(&Vec<String>, &Vec<String>)| {
        sent.len() != read.len() || !sent.iter().zip(*read).all(|(sent, read)| same(sent, read))
    };
    let (sent, read) = sent.iter().zip(read).find(differs)?;
    Some(format!("{read:?} instead of {sent:?}"))
}

#[test]
fn cells_are_compared_by_value() {
    for (sent, read) in [
        ("72.50", "72.5"),
        ("1e3", "1000"),
        ("-0.0", "0"),
        (
            r#""2024-02-29T12:00:00+01:00""#,
            r#""2024-02-29T11:00:00Z""#,
        ),
        (r#"{"a":1.0,"b":[true,null]}"#, r#"{"b":[true,null],"a":1}"#),
    ] {
        assert!(same(sent, read), "{sent} {read}");
    }
    for (sent, read) in [
        ("72.50", "72.51"),
        ("9007199254740993", "9007199254740992"),
        ("1", "\"1\""),
        (
            r#""2024-02-29T12:00:00+01:00""#,
            r#""2024-02-29T12:00:00Z""#,
        ),
        (r#""2024-02-29""#, r#""2024-02-29T00:00:00Z""#),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
        ("null", "\"\""),
    ] {
        assert!(!same(sent, read), "{sent} {read}");
    }
}
