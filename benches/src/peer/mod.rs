//! The peers: SQLite with the same queries in the same run.

mod documents;
mod nodes;

use aqlite_bench::{Answer, Loaded, QUESTIONS, answer_of, seconds, timed};
use rusqlite::types::Value;
use rusqlite::{Connection, Statement};

/// A layout of compositions in SQLite tables.
pub trait Layout {
    /// The name in the lines of the benchmark.
    const NAME: &'static str;
    /// The statements that create the tables.
    const SCHEMA: &'static str;
    /// The statements that run after loading, such as indexes.
    const INDEXES: &'static str;

    /// Stores one composition.
    fn insert(connection: &Connection, ehr: i64, id: i64, json: &str) -> rusqlite::Result<()>;

    /// Returns the SQL of a query. `?1` is an ehr_id in the queries on one EHR.
    fn question(connection: &Connection, number: usize) -> rusqlite::Result<String>;
}

pub use documents::{Jsonb, JsonbEach, Text};
pub use nodes::Nodes;

const EHRS: &str = "CREATE TABLE ehr (id INTEGER PRIMARY KEY, ehr_id TEXT NOT NULL UNIQUE, queryable INTEGER NOT NULL);";

/// Loads the compositions, runs the six queries, prepared and warm, and reports their times.
///
/// # Errors
///
/// SQLite fails, or its answer differs from that of `loaded`.
pub fn measure<L: Layout>(loaded: &Loaded) -> Result<(), String> {
    let failed = |e: rusqlite::Error| format!("{}: {e}", L::NAME);
    let report_peer = |key: &str, value: f64| {
        println!(
            "{}.{}.{key} = {value}",
            L::NAME,
            loaded.generator.compositions()
        )
    };
    let (connection, load_ms) = fill::<L>(loaded).map_err(failed)?;
    report_peer("load", load_ms);
    let pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
    report_peer(
        "bytes.stored",
        connection
            .query_row(pages, [], |r| r.get::<_, i64>(0))
            .map_err(failed)? as f64,
    );
    for (number, (name, _, aql)) in QUESTIONS.iter().enumerate() {
        let sql = L::question(&connection, number).map_err(failed)?;
        let mut statement = connection.prepare(&sql).map_err(failed)?;
        let ordered = number == 0 || number == 4;
        let found = rows(&mut statement, &loaded.ehr_id()).map_err(failed)?;
        let expected = answer_of(&loaded.ask(aql), ordered);
        compare(
            &format!("{name}, {}", L::NAME),
            &answer(&found, ordered),
            &expected,
        )?;
        report_peer(
            name,
            timed(0.5, || {
                rows(&mut statement, &loaded.ehr_id())
                    .map(|r| r.len())
                    .unwrap_or_default()
            }),
        );
    }
    Ok(())
}

fn fill<L: Layout>(loaded: &Loaded) -> rusqlite::Result<(Connection, f64)> {
    let connection = Connection::open_in_memory()?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(&format!("{EHRS}{}BEGIN", L::SCHEMA))?;
    let mut load = 0.0;
    for ehr in 0..loaded.generator.ehrs() {
        let sample = loaded.generator.ehr(ehr);
        connection
            .prepare_cached("INSERT INTO ehr VALUES (?1, ?2, ?3)")?
            .execute((ehr as i64, &sample.ehr_id, sample.is_queryable))?;
        for index in loaded.generator.compositions_of(ehr) {
            let json = loaded.generator.composition(index).json;
            let (time, done) = seconds(|| L::insert(&connection, ehr as i64, index as i64, &json));
            done?;
            load += time;
        }
    }
    let (time, done) =
        seconds(|| connection.execute_batch(&format!("COMMIT;{}ANALYZE", L::INDEXES)));
    done?;
    Ok((connection, (load + time) * 1000.0))
}

fn rows(statement: &mut Statement<'_>, ehr_id: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
    let columns = statement.column_count();
    let cells = |row: &rusqlite::Row<'_>| {
        (0..columns)
            .map(|c| row.get::<_, Value>(c))
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    match statement.parameter_count() {
        0 => statement.query_map([], cells)?.collect(),
        _ => statement.query_map([ehr_id], cells)?.collect(),
    }
}

fn answer(rows: &[Vec<Value>], ordered: bool) -> Answer {
    let cell = |value: &Value| match value {
        Value::Null | Value::Blob(_) => String::new(),
        Value::Integer(n) => format!("{:.9}", *n as f64),
        Value::Real(n) => format!("{n:.9}"),
        Value::Text(text) => text.clone(),
    };
    let mut rows: Answer = rows
        .iter()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    if !ordered {
        rows.sort_unstable();
    }
    rows
}

fn compare(what: &str, found: &Answer, expected: &Answer) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let differing = found.iter().zip(expected).find(|(a, b)| a != b);
    Err(format!(
        "{what}: {} rows, aqlite gives {}; first difference: {differing:?}",
        found.len(),
        expected.len()
    ))
}
