//! Results as tables of Arrow and Parquet: pages, and results in parts, whose types follow from all
//! of their rows.

use crate::parts::{Host, PAGE, request};
use crate::same_cells::{cells, difference};
use crate::sqlite::Sqlite;
use aqlite::arrow::TableFormat;
use aqlite::arrow::read::{TableRows, table};
use aqlite::service::{Limits, Request, Response, RowParts};
use aqlite::store::memory::Memory;
use aqlite::store::repository::Repository;
use serde_json::Value;

const FORMATS: [TableFormat; 2] = [TableFormat::Arrow, TableFormat::Parquet];

/// A query whose column has numbers in the first parts, and a NULL only in rows that follow.
const QUERY: &str = "SELECT c/uid/value AS uid, o/data/events/data/items[at0004]/value AS weight, o/data/events/data/items[at0004]/value/magnitude AS kg FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o";

/// Reads the table of a response.
pub fn rows_of(response: &Response) -> Result<TableRows, String> {
    let media_type = response.header("Content-Type").unwrap_or_default();
    let format = FORMATS
        .into_iter()
        .find(|format| format.media_type() == media_type);
    let format = format.ok_or_else(|| format!("`{media_type}` is no table"))?;
    table(format, response.body.clone()).map_err(|error| error.to_string())
}

/// Returns a request for rows in a format.
fn in_format(format: TableFormat, query: &str, fetch: u64) -> Request {
    let mut request = request(query, fetch, 0);
    request.headers.retain(|(name, _)| name != "Accept");
    request.with_header("Accept", format.media_type())
}

/// Answers a request for all its parts, as a host does. Returns the whole response, the bytes of its
/// largest part, and the number of parts.
fn answer<R: Repository>(host: &mut Host<R>, request: Request) -> (Response, usize, usize) {
    let mut first = host.send(&request);
    assert_eq!(
        first.status,
        200,
        "{}",
        String::from_utf8_lossy(&first.body)
    );
    let mut parts = RowParts::new(request, &mut first);
    let (mut largest, mut count) = (first.body.len(), 1);
    while let Some(request) = parts.next_request().cloned() {
        let response = host.send(&request);
        let bytes = parts.text_of(response).expect("a part");
        largest = largest.max(bytes.len());
        first.body.extend(bytes);
        count += 1;
    }
    (first, largest, count)
}

/// Returns the cells of a JSON result, page by page.
fn json_rows<R: Repository>(host: &mut Host<R>, query: &str, pages: u64) -> Vec<Vec<String>> {
    let page = |page: u64| {
        let mut request = request(query, PAGE, page * PAGE);
        request.headers.retain(|(name, _)| name != "Accept");
        let body = String::from_utf8(host.send(&request).body).expect("JSON");
        let (_, rows) = body.split_once("\"rows\":").expect("rows");
        cells(rows.strip_suffix('}').expect("the end")).expect("cells")
    };
    (0..pages).flat_map(page).collect()
}

fn tables_have_the_rows_of_json(repository: impl Repository) {
    let mut host = Host::limited(repository, Limits::default());
    // The last rows change the type of a column: the table of the first part would not hold them.
    let text = crate::upgrade::text("rest/weight.json");
    for magnitude in ["123.4567890123456789012", "55"] {
        let changed = text.replace("72.50", magnitude);
        assert_ne!(changed, text);
        host.write_composition_of(&changed);
    }
    let expected = json_rows(&mut host, QUERY, 6);
    assert_eq!(expected.len(), 102);
    for format in FORMATS {
        let (response, _, count) = answer(&mut host, in_format(format, QUERY, PAGE));
        let page = rows_of(&response).expect("a table");
        assert_eq!((page.rows.len(), count), (PAGE as usize, 1));
        assert_eq!(difference(&expected[..PAGE as usize], &page.rows), None);
        let (response, largest, count) = answer(&mut host, in_format(format, QUERY, 120));
        let table = rows_of(&response).expect("a table");
        assert_eq!(difference(&expected, &table.rows), None, "{format:?}");
        assert_eq!(table.aql, QUERY);
        assert!(count >= 12, "{count} parts of two passes");
        // A row group of Parquet is written as a whole.
        let is_stream = format == TableFormat::Arrow;
        assert_eq!(
            largest < response.body.len() / 3,
            is_stream,
            "{largest} bytes"
        );
        // A result that ends in its first part is read once.
        let one = format!("{QUERY} WHERE o/data/events/data/items[at0004]/value/magnitude = 55");
        let (response, _, count) = answer(&mut host, in_format(format, &one, 120));
        assert_eq!(
            (rows_of(&response).expect("a table").rows.len(), count),
            (1, 1)
        );
    }
}

#[test]
fn tables_in_parts_have_the_rows_of_json() {
    tables_have_the_rows_of_json(Memory::new());
    tables_have_the_rows_of_json(Sqlite::in_memory().segmented());
}

#[test]
fn table_ends_with_an_error_if_a_part_fails() {
    for (format, parts_before) in [(TableFormat::Arrow, 0), (TableFormat::Parquet, 8)] {
        let mut host = Host::limited(Memory::new(), Limits::default());
        let request = in_format(format, QUERY, 90);
        let mut first = host.send(&request);
        let mut parts = RowParts::new(request, &mut first);
        for _ in 0..parts_before {
            let next = parts.next_request().cloned().expect("a part");
            let response = host.send(&next);
            parts.text_of(response).expect("a part");
        }
        let deletion = format!("/v1/admin/ehr/{}", crate::parts::EHR);
        assert_eq!(host.send(&Request::new("DELETE", &deletion)).status, 204);
        let next = parts.next_request().cloned().expect("a part");
        let response = host.send(&next);
        assert_eq!(response.status, 410);
        assert!(
            parts.text_of(response).is_err(),
            "a table has no place for an error"
        );
        assert_eq!(parts.next_request(), None);
    }
}

#[test]
fn table_larger_than_a_result_is_refused() {
    let limits = Limits {
        result: 2_000,
        ..Limits::default()
    };
    let mut host = Host::limited(Memory::new(), limits);
    for format in FORMATS {
        let response = host.send(&in_format(format, QUERY, PAGE));
        let body: Value = serde_json::from_slice(&response.body).expect("JSON");
        assert_eq!(response.status, 400, "{body}");
        let message = body["message"].as_str().unwrap_or_default();
        assert!(message.contains("larger than 2000 bytes"), "{message}");
    }
}
