//! Results as Arrow streams and Parquet files, for JavaScript: a module of its own, which is loaded
//! for the first table. The module of the core would otherwise be half as large again.
//!
//! A result crosses the border as its JSON text, which keeps every digit.

use aqlite_arrow::{ColumnTypes, TableFormat, TableOptions, TableWriter, Times};
use aqlite_engine::answer::{Cell, ResultColumn, ResultSet};
use aqlite_engine::document::Number;
use aqlite_rm::json::{self, elements, members};
use serde_json::Value;
use wasm_bindgen::prelude::*;

/// Writes a table. `result` is `{"columns":[{name, path}],"rows":[[…]]}`, `format` is `arrow` or
/// `parquet`, `times` is `instant`, `text` or `both`, and `aql` is the query, for the metadata.
///
/// # Errors
///
/// The text is not a result, or the format or the form of times is unknown.
#[wasm_bindgen]
pub fn table(result: &str, format: &str, times: &str, aql: &str) -> Result<Vec<u8>, JsError> {
    written(result, format, times, aql).map_err(|why| JsError::new(&why))
}

/// Writes a table like [`table`].
///
/// # Errors
///
/// As [`table`].
pub fn written(result: &str, format: &str, times: &str, aql: &str) -> Result<Vec<u8>, String> {
    let options = TableOptions {
        format: match format {
            "arrow" => TableFormat::Arrow,
            "parquet" => TableFormat::Parquet,
            other => return Err(format!("there is no table format `{other}`")),
        },
        times: match times {
            "instant" => Times::Instant,
            "text" => Times::Text,
            "both" => Times::Both,
            other => return Err(format!("there is no form of times `{other}`")),
        },
        aql,
    };
    let result = result_of(result)?;
    let mut types = ColumnTypes::new(result.columns.len());
    result.rows().for_each(|row| types.observe(row));
    let mut writer = TableWriter::new(&result, &types, &options).map_err(|e| e.to_string())?;
    writer.write(result.rows()).map_err(|e| e.to_string())?;
    writer.finish().map_err(|e| e.to_string())
}

/// Reads a result.
fn result_of(text: &str) -> Result<ResultSet, String> {
    let wrong = |problem: json::Malformed| problem.describe(text);
    let members = members(text).map_err(wrong)?;
    let member = |name: &str| {
        let found = members.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| format!("the result has no `{name}`"))
    };
    let columns = elements(member("columns")?).map_err(wrong)?;
    let columns: Vec<ResultColumn> = columns.into_iter().map(column).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for row in elements(member("rows")?).map_err(wrong)? {
        rows.push(
            elements(row)
                .map_err(wrong)?
                .into_iter()
                .map(cell)
                .collect(),
        );
    }
    ResultSet::from_rows(columns, rows).map_err(|e| e.to_string())
}

fn column(text: &str) -> Result<ResultColumn, String> {
    let value = json::value(text).map_err(|problem| problem.describe(text))?;
    let member = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(ResultColumn {
        name: member("name").ok_or("a column has no name")?,
        path: member("path"),
    })
}

/// Reads a cell. Numbers keep their digits, and objects stay texts.
fn cell(text: &str) -> Cell<String> {
    match text.as_bytes().first() {
        Some(b'n') => Cell::Null,
        Some(b't' | b'f') => Cell::Boolean(text == "true"),
        Some(b'"') => json::text(text).map_or(Cell::Null, Cell::Text),
        Some(b'{' | b'[') => Cell::Json(text.to_owned()),
        _ => Cell::Number(Number::Token(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqlite_arrow::read::table;

    const RESULT: &str = r#"{"columns":[{"name":"a","path":"c/a"},{"name":"b","path":null}],"rows":[[1.50,"x \"y\""],[null,{"k":[1]}],[2,true]]}"#;

    #[test]
    fn a_result_is_written_in_both_formats() {
        for (name, format) in [
            ("arrow", TableFormat::Arrow),
            ("parquet", TableFormat::Parquet),
        ] {
            let bytes = written(RESULT, name, "instant", "SELECT c/a").unwrap_or_default();
            let read = table(format, bytes).ok();
            let read = read.map(|table| (table.columns, table.rows, table.aql));
            let rows = [
                ["1.5", r#""x \"y\"""#],
                ["null", r#"{"k":[1]}"#],
                ["2", "true"],
            ];
            let rows = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
            let names = vec!["a".to_owned(), "b".to_owned()];
            assert_eq!(read, Some((names, rows, "SELECT c/a".to_owned())));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, format) in [
            ("", "arrow"),
            ("{}", "arrow"),
            (RESULT, "csv"),
            (r#"{"columns":[],"rows":[1]}"#, "arrow"),
        ] {
            assert!(written(text, format, "instant", "").is_err(), "{text}");
        }
    }
}
