//! The response to a query: entity tag, metadata and rows.

use super::super::Service;
use super::super::call::Call;
use super::super::error::Failure;
use super::super::http::encode_value;
use super::super::negotiate::NegotiatedFormat;
use super::super::parameters::QueryRequest;
use super::super::root::generator;
use super::super::stored_query::qualified_name;
use super::super::substitution::substituted;
use super::super::time::iso;
use super::QueryResult;
use crate::aql::ResultFormat;
use crate::document::short_digest;
use crate::store::canonical::quoted;
use crate::store::repository::{Definition, Repository};
use serde_json::json;
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
        request: &QueryRequest,
        q: &str,
        revision: u64,
        format: NegotiatedFormat,
    ) -> String {
        let format = match format {
            NegotiatedFormat::Json => "json",
            NegotiatedFormat::Csv(options) if options.guard => "csv",
            NegotiatedFormat::Csv(_) => "csv;guard=off",
            NegotiatedFormat::Ndjson => "ndjson",
        };
        let page = self.config.limits.fetch_default;
        let archetypes = if self.config.exact_archetypes {
            "exact"
        } else {
            "specialised"
        };
        short_digest(
            &json!([
                revision,
                call.dialect.mount(),
                format,
                page,
                archetypes,
                q,
                request.to_json()
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
                out.reserve_exact(next.saturating_add(2 * PIECE));
                answer
                    .share
                    .hold(held.saturating_add(out.capacity()), call.clock())?;
                call.pause().await;
            }
            if start.saturating_add(next) <= limit {
                rows = result.write_piece(&format, rows, (start + PIECE, limit), &mut out);
            }
            if out.len().max(start.saturating_add(next)) > limit {
                let remedy = "ask for fewer rows by `fetch`, or for paths instead of whole objects";
                return Err(Failure::bad_request(format!(
                    "the result is larger than {limit} bytes: {remedy}"
                )));
            }
            if rows < result.len() {
                // Reserves memory for the remaining rows, estimated from those so far: doubling the
                // text would take twice as much.
                let foretold =
                    (out.len() as u64).saturating_mul(result.len() as u64) / rows.max(1) as u64;
                let room = usize::try_from(foretold)
                    .unwrap_or(limit)
                    .min(limit)
                    .saturating_sub(out.len());
                out.reserve_exact(room.saturating_add(2 * PIECE).min(limit));
                answer
                    .share
                    .hold(held.saturating_add(out.capacity()), call.clock())?;
                call.pause().await;
            }
        }
        format.end(&mut out);
        Ok(out)
    }

    /// Returns the members of a result before its rows.
    pub(super) fn result_head(
        &self,
        call: &Call<'_>,
        request: &QueryRequest,
        q: &str,
        stored: Option<&Definition>,
        answer: &QueryResult,
    ) -> String {
        let mut out = String::from(r#"{"meta":{"#);
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
        if self.config.debug || call.dialect.full_result_meta() {
            let _ = write!(
                out,
                r#","_executed_aql":{}"#,
                quoted(&substituted(q, &request.parameters))
            );
        }
        if call.dialect.full_result_meta() {
            let _ = write!(out, r#","resultsize":{}"#, answer.result.len());
            for (name, value) in [("fetch", request.fetch), ("offset", request.offset)] {
                if let Some(value) = value {
                    let _ = write!(out, r#","{name}":{value}"#);
                }
            }
        }
        out.push('}');
        if let Some(stored) = stored {
            let _ = write!(out, r#","name":{}"#, quoted(&qualified_name(stored)));
        }
        let _ = write!(out, r#","q":{},"columns":["#, quoted(q));
        for (i, column) in answer.result.columns.iter().enumerate() {
            let _ = write!(
                out,
                r#"{}{{"name":{}"#,
                if i > 0 { "," } else { "" },
                quoted(&column.name)
            );
            if let Some(path) = &column.path {
                let path = if call.dialect.column_paths_name_the_variable() {
                    path.as_str()
                } else {
                    without_variable(path)
                };
                let _ = write!(out, r#","path":{}"#, quoted(path));
            }
            out.push('}');
        }
        out.push_str(r#"],"rows":"#);
        out
    }
}

/// Returns the path of a column without its variable: `/uid/value`; `/` for a variable alone.
fn without_variable(path: &str) -> &str {
    let mut depth = 0_u32;
    for (at, c) in path.char_indices() {
        match c {
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
