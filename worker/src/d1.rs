//! D1 as an executor of the core's statements.

use crate::memory::count_message;
use aqlite::store::sql::{Row, Sql, SqlError, SqlValue, Statement, encode_statements};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;

#[wasm_bindgen(module = "/d1.js")]
extern "C" {
    fn batch(database: &JsValue, statements: &str, long: &js_sys::Array) -> js_sys::Promise;
}

/// A D1 database. A batch is one transaction. Statements and rows are passed as few texts, because
/// passing single values would be slow.
pub struct D1(JsValue);

impl D1 {
    /// Wraps the database of a binding.
    pub fn new(database: worker::D1Database) -> D1 {
        D1(database.into())
    }
}

impl Sql for D1 {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        let (text, long) = encode_statements(&statements);
        let sent = text.len() + long.iter().map(|text| text.len()).sum::<usize>();
        let long: js_sys::Array = long.into_iter().map(JsValue::from_str).collect();
        // JavaScript has copies of the texts now, so their memory is freed before the transaction.
        drop(statements);
        let rows = JsFuture::from(batch(&self.0, &text, &long)).await;
        drop((text, long));
        let rows = rows.map(|rows| rows.as_string().unwrap_or_default());
        count_message(sent + rows.as_ref().map_or(0, String::len));
        let rows = rows.map_err(|error| SqlError::from_message(&message(&error)))?;
        let outcomes = serde_json::from_str::<Vec<Vec<Vec<Cell>>>>(&rows);
        let outcomes = outcomes.map_err(|error| SqlError::Failed(error.to_string()))?;
        Ok(outcomes
            .into_iter()
            .map(|rows| rows.into_iter().map(row).collect())
            .collect())
    }
}

fn row(cells: Vec<Cell>) -> Row {
    cells.into_iter().map(|cell| cell.0).collect()
}

/// Returns the message of a thrown value, with that of its cause, which has the constraint in D1.
fn message(error: &JsValue) -> String {
    let Some(error) = error.dyn_ref::<js_sys::Error>() else {
        return "the database threw no error".to_owned();
    };
    let cause = error
        .cause()
        .dyn_into::<js_sys::Error>()
        .map(|cause| String::from(cause.message()));
    [Some(String::from(error.message())), cause.ok()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

struct Cell(SqlValue);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Cell, D::Error> {
        struct Value;
        impl Visitor<'_> for Value {
            type Value = Cell;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("null, a number or a text")
            }
            fn visit_unit<E: Error>(self) -> Result<Cell, E> {
                Ok(Cell(SqlValue::Null))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Cell, E> {
                Ok(Cell(SqlValue::Integer(number)))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Cell, E> {
                i64::try_from(number)
                    .map(|n| Cell(SqlValue::Integer(n)))
                    .map_err(E::custom)
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Cell, E> {
                Ok(Cell(SqlValue::Real(number)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Cell, E> {
                Ok(Cell(SqlValue::Text(text.to_owned())))
            }
        }
        from.deserialize_any(Value)
    }
}
