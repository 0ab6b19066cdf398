//! The response to a query: entity tag, metadata and rows.

use super::super::Service;
use super::super::call::Call;
use super::super::dialect::Dialect;
use super::super::error::Failure;
use super::super::http::encode_value;
use super::super::negotiate::NegotiatedFormat;
use super::super::root::generator;
use super::super::stored_query::qualified_name;
use super::super::time::iso;
use super::{QueryResult, RequestedQuery, StopReason};
use crate::aql::{CsvColumns, CsvParts, ResultColumn, ResultFormat, executed};
use crate::document::short_digest;
use crate::store::canonical::quoted;
use crate::store::repository::Repository;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Write;

/// Bytes of a result that are written between two pauses.
const PIECE: usize = 1 << 20;

impl<R: Repository> Service<R> {
    /// Returns the entity tag of a result. It changes whenever the result may, with the data, the
    /// query, its parameters, the page and the mount.
    ///
    /// It is a digest of JSON of a fixed form, so that a new release returns the same tag for the
    /// same result.
    pub(super) fn etag(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
        state: &Value,
    ) -> String {
        let format = match requested.format {
            NegotiatedFormat::Json => Cow::from("json"),
            NegotiatedFormat::Csv(options) if options.guard => Cow::from("csv"),
            NegotiatedFormat::Csv(_) => Cow::from("csv;guard=off"),
            NegotiatedFormat::Ndjson => Cow::from("ndjson"),
            #[cfg(feature = "arrow")]
            NegotiatedFormat::Table(table) => Cow::from(table.name()),
        };
        let page = self.config.limits.fetch_default;
        let archetypes = if self.config.exact_archetypes {
            "exact"
        } else {
            "specialised"
        };
        short_digest(
            &json!([
                state,
                call.dialect.mount(),
                format,
                page,
                archetypes,
                requested.text,
                requested.request.to_json()
            ])
            .to_string(),
        )
    }

    /// Writes the rows of a result after a head, with pauses between steps.
    ///
    /// # Errors
    /// As soon as the text is larger than the limit of a result.
    pub(super) async fn write_rows(
        &self,
        call: &Call<'_>,
        answer: &QueryResult,
        format: ResultFormat,
        head: String,
    ) -> Result<String, Failure> {
        let (mut out, mut rows, limit) = (head, 0, self.config.limits.result);
        let (result, held) = (&answer.result, answer.result.footprint());
        format.begin(&mut out);
        while rows < result.len() {
            let (start, next) = (out.len(), result.row_bytes(rows));
            if next > PIECE && start.saturating_add(next) <= limit {
                // The size of a row of long texts is checked before it is written.
                let bytes = next.saturating_add(2 * PIECE);
                reserve(call, answer, held, bytes, &mut out).await?;
            }
            // A row that does not fit is not written at all. The check below then fails.
            if start.saturating_add(next) <= limit {
                rows = result.write_piece(&format, rows, (start + PIECE, limit), &mut out);
            }
            if out.len().max(start.saturating_add(next)) > limit {
                return Err(too_large(limit));
            }
            if rows < result.len() {
                let bytes = bytes_of_rest(out.len(), rows, result.len(), limit);
                reserve(call, answer, held, bytes, &mut out).await?;
            }
        }
        format.end(&mut out);
        Ok(out)
    }

    /// Returns the columns of CSV, with the parts that the values of each column have.
    pub(super) async fn csv_columns(
        &self,
        call: &Call<'_>,
        answer: &QueryResult,
    ) -> Result<CsvColumns, Failure> {
        let (result, limit) = (&answer.result, self.config.limits.result);
        let (mut parts, is_late) = (CsvParts::default(), self.deadline(call));
        while !result.find_csv_parts(&mut parts, PIECE) {
            call.pause().await;
            if is_late() {
                return Err(self.stop_failure(StopReason::Late));
            }
            // Such a row cannot be written either.
            if result.row_bytes(parts.next_row()) > limit {
                return Err(too_large(limit));
            }
        }
        Ok(result.csv_columns_with(parts))
    }

    /// Returns the members of a result before its rows.
    pub(super) fn result_head(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
        answer: &QueryResult,
    ) -> String {
        let mut out = String::from(r#"{"meta":{"#);
        self.add_meta(call, requested, answer, &mut out);
        out.push('}');
        if let Some(stored) = requested.stored {
            let _ = write!(out, r#","name":{}"#, quoted(&qualified_name(stored)));
        }
        let _ = write!(out, r#","q":{},"columns":["#, quoted(requested.text));
        for (i, column) in answer.result.columns.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            add_column(&mut out, call.dialect, column);
        }
        out.push_str(r#"],"rows":"#);
        out
    }

    /// Appends the members of the metadata.
    fn add_meta(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
        answer: &QueryResult,
        out: &mut String,
    ) {
        // The URL of a POST does not contain the query, which is in its body.
        if call.request.method != "POST" {
            let _ = write!(out, r#""_href":{},"#, quoted(&href(call)));
        }
        let _ = write!(
            out,
            r#""_type":"RESULTSET","_schema_version":"{}","_created":"{}","_generator":"{}""#,
            call.dialect.specs_version(),
            iso(call.now),
            generator()
        );
        if answer.more {
            out.push_str(r#","_more":true"#);
        }
        let _ = write!(out, r#","_snapshot":"{}""#, answer.state);
        let RequestedQuery { request, text, .. } = requested;
        if self.config.debug || call.dialect.full_result_meta() {
            let executed = quoted(&executed(text, &request.parameters));
            let _ = write!(out, r#","_executed_aql":{executed}"#);
        }
        if call.dialect.full_result_meta() {
            let _ = write!(out, r#","resultsize":{}"#, answer.result.len());
            for (name, value) in [("fetch", request.fetch), ("offset", request.offset)] {
                if let Some(value) = value {
                    let _ = write!(out, r#","{name}":{value}"#);
                }
            }
        }
    }
}

/// Returns the error for a result whose text has more than `limit` bytes.
fn too_large(limit: usize) -> Failure {
    let remedy = "request fewer rows by `fetch`, or paths instead of whole objects";
    Failure::bad_request(format!("the result is larger than {limit} bytes: {remedy}"))
}

/// Appends the description of a column.
fn add_column(out: &mut String, dialect: Dialect, column: &ResultColumn) {
    let _ = write!(out, r#"{{"name":{}"#, quoted(&column.name));
    if let Some(path) = &column.path {
        let path = if dialect.column_paths_name_the_variable() {
            path.as_str()
        } else {
            without_variable(path)
        };
        let _ = write!(out, r#","path":{}"#, quoted(path));
    }
    out.push('}');
}

/// Reserves memory for more bytes of a result, and pauses.
///
/// # Errors
/// If the queries of all requests together hold too much memory for too long.
async fn reserve(
    call: &Call<'_>,
    answer: &QueryResult,
    held: usize,
    bytes: usize,
    out: &mut String,
) -> Result<(), Failure> {
    out.reserve_exact(bytes);
    let held = held.saturating_add(out.capacity());
    answer.share.hold(held, call.clock())?;
    call.pause().await;
    Ok(())
}

/// Returns the bytes to reserve for the remaining rows, estimated from those so far: doubling the
/// text would take twice as much memory.
fn bytes_of_rest(written: usize, rows: usize, all: usize, limit: usize) -> usize {
    // On 32 bits the product would overflow `usize`.
    let projected = (written as u64).saturating_mul(all as u64) / rows.max(1) as u64;
    let room = usize::try_from(projected)
        .unwrap_or(limit)
        .min(limit)
        .saturating_sub(written);
    room.saturating_add(2 * PIECE).min(limit)
}

/// Returns the path of a column without its variable: `/uid/value`; `/` for a variable alone.
fn without_variable(path: &str) -> &str {
    let mut depth = 0_u32;
    for (at, c) in path.char_indices() {
        match c {
            // A predicate of an archetype or a name may have slashes.
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => return path.get(at..).unwrap_or("/"),
            _ => {}
        }
    }
    "/"
}

/// Returns the URL of a query that was sent by GET.
fn href(call: &Call<'_>) -> String {
    let pairs: Vec<String> = call
        .request
        .query
        .iter()
        .map(|(key, value)| format!("{}={}", encode_value(key), encode_value(value)))
        .collect();
    let path = format!("{}{}", call.base_url(), call.request.path);
    if pairs.is_empty() {
        path
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_lose_their_variable() {
        assert_eq!(without_variable("c/uid/value"), "/uid/value");
        assert_eq!(without_variable("o[name/value='x']/data"), "/data");
        assert_eq!(without_variable("c"), "/");
    }
}
