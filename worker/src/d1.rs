//! D1 as an executor of the core's statements.

use aqlite::store::sql::{Row, Sql, SqlError, SqlValue, Statement};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use worker::js_sys::{Array, JSON, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::worker_sys::types::{D1Database, D1PreparedStatement};

/// A D1 database. A batch is one transaction there; its rows cross into wasm as one JSON text, which is several times
/// faster than value by value.
pub struct D1(D1Database);

impl D1 {
    /// The database of a binding.
    pub fn new(database: worker::D1Database) -> D1 {
        D1(JsValue::from(database).unchecked_into())
    }

    fn prepare(&self, statement: &Statement) -> Result<D1PreparedStatement, JsValue> {
        let values: Array = statement.params.iter().map(bound).collect();
        self.0.prepare(&statement.sql)?.bind(values)
    }

    /// The rows of each statement; what D1 tells beside them stays behind.
    async fn run(&self, statements: &[Statement]) -> Result<Array, JsValue> {
        let prepared = statements.iter().map(|statement| self.prepare(statement).map(JsValue::from)).collect::<Result<Array, JsValue>>()?;
        let outcomes = Array::from(&JsFuture::from(self.0.batch(prepared)?).await?);
        outcomes.iter().map(|outcome| Reflect::get(&outcome, &"results".into())).collect()
    }
}

impl Sql for D1 {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        let results = self.run(&statements).await.map_err(|error| SqlError::from_message(&message(&error)))?;
        let text = JSON::stringify(&results).map_err(|error| SqlError::Failed(message(&error)))?;
        let outcomes: Vec<Vec<Cells>> = serde_json::from_str(&String::from(text)).map_err(|error| SqlError::Failed(error.to_string()))?;
        Ok(outcomes.into_iter().map(|rows| rows.into_iter().map(|row| row.0).collect()).collect())
    }
}

/// Numbers go as JavaScript has them: exact to 2^53, which is the promise of [`SqlValue::Integer`].
fn bound(value: &SqlValue) -> JsValue {
    match value {
        SqlValue::Null => JsValue::NULL,
        SqlValue::Integer(number) => JsValue::from_f64(*number as f64),
        SqlValue::Real(number) => JsValue::from_f64(*number),
        SqlValue::Text(text) => JsValue::from_str(text),
    }
}

/// The message of a thrown value, with that of its cause: D1 puts the constraint there.
fn message(error: &JsValue) -> String {
    let Some(error) = error.dyn_ref::<worker::js_sys::Error>() else { return "the database threw no error".to_owned() };
    let cause = error.cause().dyn_into::<worker::js_sys::Error>().map(|cause| String::from(cause.message()));
    [Some(String::from(error.message())), cause.ok()].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// An object whose keys are the columns, in the order of the SELECT.
struct Cells(Row);

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Cells, D::Error> {
        struct Columns;
        impl<'de> Visitor<'de> for Columns {
            type Value = Cells;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cells, A::Error> {
                let mut row = Row::new();
                while let Some((IgnoredAny, Cell(value))) = map.next_entry()? {
                    row.push(value);
                }
                Ok(Cells(row))
            }
        }
        from.deserialize_map(Columns)
    }
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
                i64::try_from(number).map(|n| Cell(SqlValue::Integer(n))).map_err(E::custom)
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
