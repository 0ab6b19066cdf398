//! The forms of a result set: JSON, CSV, NDJSON, and tables of Arrow and Parquet.

use super::{choose, media_type};
use crate::aql::CsvOptions;
#[cfg(feature = "arrow")]
use crate::arrow::{TableFormat, Times};
use crate::service::Request;
use crate::service::error::Failure;
#[cfg(feature = "arrow")]
use crate::service::table::Table;

/// The forms of a result set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NegotiatedFormat {
    /// The RESULT_SET of the interface.
    Json,
    /// CSV; `Accept: text/csv;guard=off` leaves formulas as they are.
    Csv(CsvOptions),
    /// One JSON object for each row and line.
    Ndjson,
    /// A table of Arrow or Parquet.
    #[cfg(feature = "arrow")]
    Table(Table),
}

impl NegotiatedFormat {
    /// Returns whether a result of this form can be sent in parts.
    pub fn has_parts(self) -> bool {
        match self {
            NegotiatedFormat::Ndjson => true,
            #[cfg(feature = "arrow")]
            NegotiatedFormat::Table(_) => true,
            NegotiatedFormat::Json | NegotiatedFormat::Csv(_) => false,
        }
    }

    /// Returns the form of the table, if it is one.
    #[cfg(feature = "arrow")]
    pub fn table(self) -> Option<Table> {
        match self {
            NegotiatedFormat::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// The media types of result sets, the usual one first.
pub(crate) const RESULT_TYPES: &[&str] = &[
    "application/json",
    "text/csv",
    "application/x-ndjson",
    #[cfg(feature = "arrow")]
    ARROW,
    #[cfg(feature = "arrow")]
    PARQUET,
];

/// The media type of the stream format of Arrow.
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// The media type of Parquet.
const PARQUET: &str = "application/vnd.apache.parquet";

/// Returns the requested form of a result set.
pub(crate) fn wanted_result(request: &Request) -> Result<NegotiatedFormat, Failure> {
    let unguarded = |range: &str| {
        media_type(range) == "text/csv"
            && range
                .split(';')
                .any(|p| p.trim().eq_ignore_ascii_case("guard=off"))
    };
    Ok(
        match choose(request, RESULT_TYPES).map_err(|failure| with_host(request, failure))? {
            "text/csv" => NegotiatedFormat::Csv(CsvOptions {
                guard: !request
                    .header("Accept")
                    .is_some_and(|a| a.split(',').any(unguarded)),
            }),
            "application/x-ndjson" => NegotiatedFormat::Ndjson,
            #[cfg(feature = "arrow")]
            ARROW => wanted_table(request, TableFormat::Arrow)?,
            #[cfg(feature = "arrow")]
            PARQUET => wanted_table(request, TableFormat::Parquet)?,
            _ => NegotiatedFormat::Json,
        },
    )
}

/// Adds the host that offers tables to a refusal of a host that does not.
fn with_host(request: &Request, mut failure: Failure) -> Failure {
    let accept = request.header("Accept").unwrap_or_default();
    let mut wanted = accept.split(',').map(media_type);
    let is_host = cfg!(feature = "arrow");
    if !is_host && wanted.any(|name| name == ARROW || name == PARQUET) {
        let others = "; `aqlite serve` and `aqlite query` also write Arrow and Parquet";
        failure.message.push_str(others);
    }
    failure
}

/// Returns the requested form of a table. The parameter `times` of its media type decides the form
/// of date-times.
///
/// # Errors
/// 400 for an unknown value of this parameter.
#[cfg(feature = "arrow")]
fn wanted_table(request: &Request, format: TableFormat) -> Result<NegotiatedFormat, Failure> {
    let accept = request.header("Accept").unwrap_or_default();
    let mut ranges = accept.split(',');
    let range = ranges.find(|range| media_type(range) == format.media_type());
    let times = range.and_then(|range| super::parameter(range, "times"));
    let times = match times.map(|value| value.trim_matches('"')) {
        None | Some("instant") => Times::Instant,
        Some("text") => Times::Text,
        Some("both") => Times::Both,
        Some(other) => {
            let other: String = other.chars().take(80).collect();
            return Err(Failure::bad_request(format!(
                "the parameter `times` of the media type is `{other}`: expected `instant`, `text` or `both`"
            )));
        }
    };
    Ok(NegotiatedFormat::Table(Table { format, times }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_sets_have_several_forms() {
        let wanted = |value: &str| {
            wanted_result(&Request::new("GET", "/").with_header("Accept", value))
                .map_err(|f| f.status)
        };
        assert_eq!(wanted("*/*"), Ok(NegotiatedFormat::Json));
        assert_eq!(
            wanted("text/*"),
            Ok(NegotiatedFormat::Csv(CsvOptions { guard: true }))
        );
        assert_eq!(
            wanted("text/csv; guard=off, application/json;q=0.5"),
            Ok(NegotiatedFormat::Csv(CsvOptions { guard: false }))
        );
        assert_eq!(wanted("application/jsonl"), Ok(NegotiatedFormat::Ndjson));
        assert_eq!(wanted("application/*"), Ok(NegotiatedFormat::Json));
        assert_eq!(wanted("application/xml"), Err(406));
    }

    #[cfg(feature = "arrow")]
    #[test]
    fn tables_have_a_form_of_date_times() {
        let wanted = |value: &str| {
            wanted_result(&Request::new("GET", "/").with_header("Accept", value))
                .map_err(|f| f.status)
        };
        let table = |format, times| Ok(NegotiatedFormat::Table(Table { format, times }));
        assert_eq!(wanted(ARROW), table(TableFormat::Arrow, Times::Instant));
        assert_eq!(
            wanted("application/vnd.apache.parquet; Times=\"both\", */*;q=0.1"),
            table(TableFormat::Parquet, Times::Both)
        );
        assert_eq!(
            wanted("application/vnd.apache.arrow.stream;q=0.9;times=text"),
            table(TableFormat::Arrow, Times::Text)
        );
        assert_eq!(
            wanted("application/vnd.apache.parquet;times=never"),
            Err(400)
        );
    }
}
