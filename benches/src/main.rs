//! `aqlite-bench [--compositions N,N]`: the six questions beside SQLite over JSON text, in one run, one thread.

use aqlite::aql::{Cell, ResultSet};
use aqlite_bench::{Loaded, QUESTIONS, load, median};
use rusqlite::Connection;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let sizes = arguments.iter().position(|a| a == "--compositions").and_then(|i| arguments.get(i + 1)).cloned().unwrap_or("10000,100000".to_owned());
    for size in sizes.split(',') {
        measure(size.trim().parse()?)?;
    }
    Ok(())
}

fn measure(compositions: usize) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let clock = move || start.elapsed().as_secs_f64() * 1000.0;
    let loaded = load(compositions, &clock);
    let share = 100.0 * (loaded.packed_bytes + loaded.shape_bytes) as f64 / loaded.json_bytes as f64;
    println!("\n### {compositions} compositions, {} EHRs", loaded.generator.ehrs());
    println!(
        "canonical JSON {:.1} MB; packed {:.1} MB with {} shapes of {:.2} MB: {share:.1} %; columns {:.1} MB; read + pack {:.0} compositions/s",
        mega(loaded.json_bytes), mega(loaded.packed_bytes), loaded.shapes, mega(loaded.shape_bytes), mega(loaded.batch.bytes()),
        compositions as f64 / loaded.load_ms * 1000.0
    );
    check(&loaded)?;
    let ours = loaded.times(&clock);
    let peer = Peer::load(&loaded, &clock)?;
    println!("SQLite over JSON text: load {:.0} ms, {:.1} MB; ours: load {:.0} ms; peak memory {:.0} MB", peer.load_ms, mega(peer.bytes), loaded.load_ms, peak_memory());
    println!("\n| | question | aqlite rows ms | as JSON ms | SQLite JSON text ms | ratio |\n|---|---|---:|---:|---:|---:|");
    for (i, ((name, what, aql), (rows, text))) in QUESTIONS.iter().zip(&ours).enumerate() {
        let (theirs, count) = peer.ask(i, &loaded.ehr_id(), &clock)?;
        let found = loaded.ask(aql).rows.len();
        if found != count {
            return Err(format!("{name}: {found} rows, SQLite gives {count}").into());
        }
        println!("| {name} | {what} | {rows:.3} | {text:.3} | {theirs:.3} | {:.0} |", theirs / rows);
    }
    Ok(())
}

/// The answers must be those of the truth table before anything is measured.
fn check(loaded: &Loaded) -> Result<(), String> {
    let generator = &loaded.generator;
    let rows = |i: usize| QUESTIONS.get(i).map(|(_, _, aql)| loaded.ask(aql)).unwrap_or_default();
    let number = |result: &ResultSet, column: usize| match result.rows.first().and_then(|r| r.get(column)) {
        Some(Cell::Number(token)) => token.parse::<f64>().unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    let expect = |good: bool, question: &str| if good { Ok(()) } else { Err(format!("{question} differs from the truth table")) };
    expect(rows(1).rows.len() == generator.systolic_from_140().len(), "Q2")?;
    expect(number(&rows(2), 0) == generator.with_body_temperature() as f64, "Q3")?;
    let (mean, highest) = generator.mean_and_highest_systolic().unwrap_or_default();
    let found = rows(3);
    expect((number(&found, 0) - mean).abs() < 1e-9 && number(&found, 1) == highest, "Q4")?;
    expect(rows(4).rows.len() == generator.last_20_compositions(loaded.ehr()).len(), "Q5")?;
    expect(rows(5).rows.len() == generator.pressure_160_with_pulse_100().len(), "Q6")
}

/// SQLite with one row a composition and its canonical JSON as text.
struct Peer {
    connection: Connection,
    load_ms: f64,
    bytes: usize,
}

const ENTRIES: &str = "FROM ehr e JOIN doc d ON d.ehr = e.id, json_each(d.body, '$.content') o, json_each(o.value, '$.data.events') v
    WHERE e.queryable AND json_extract(o.value, '$.archetype_node_id') = 'openEHR-EHR-OBSERVATION.blood_pressure.v2'
    AND json_extract(v.value, '$.archetype_node_id') = 'at0006'";
const SYSTOLIC: &str = "(SELECT json_extract(i.value, '$.value.magnitude') FROM json_each(v.value, '$.data.items') i WHERE json_extract(i.value, '$.archetype_node_id') = 'at0004')";
const DIASTOLIC: &str = "(SELECT json_extract(i.value, '$.value.magnitude') FROM json_each(v.value, '$.data.items') i WHERE json_extract(i.value, '$.archetype_node_id') = 'at0005')";

impl Peer {
    fn load(loaded: &Loaded, clock: &dyn Fn() -> f64) -> rusqlite::Result<Peer> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE TABLE ehr(id INTEGER PRIMARY KEY, ehr_id TEXT UNIQUE, queryable INTEGER);
             CREATE TABLE doc(id INTEGER PRIMARY KEY, ehr INTEGER, start REAL, body TEXT); BEGIN",
        )?;
        let mut load_ms = 0.0;
        for ehr in 0..loaded.generator.ehrs() {
            let sample = loaded.generator.ehr(ehr);
            connection.prepare_cached("INSERT INTO ehr VALUES (?1, ?2, ?3)")?.execute((ehr as i64, &sample.ehr_id, sample.is_queryable))?;
            for index in loaded.generator.compositions_of(ehr) {
                let json = loaded.generator.composition(index).json;
                let begin = clock();
                connection.prepare_cached("INSERT INTO doc(ehr, start, body) VALUES (?1, julianday(json_extract(?2, '$.context.start_time.value')), ?2)")?.execute((ehr as i64, &json))?;
                load_ms += clock() - begin;
            }
        }
        connection.execute_batch("COMMIT; CREATE INDEX doc_ehr ON doc(ehr)")?;
        let bytes: i64 = connection.query_row("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()", [], |r| r.get(0))?;
        Ok(Peer { connection, load_ms, bytes: usize::try_from(bytes).unwrap_or_default() })
    }

    fn sql(question: usize) -> String {
        match question {
            0 => format!("SELECT json_extract(v.value, '$.time.value') AS t, {SYSTOLIC}, {DIASTOLIC} {ENTRIES} AND e.ehr_id = ?1 ORDER BY t DESC LIMIT 1").replace("e.queryable AND", ""),
            1 => format!("SELECT e.ehr_id, json_extract(v.value, '$.time.value'), {SYSTOLIC}, {DIASTOLIC} {ENTRIES} AND {SYSTOLIC} >= 140 AND ?1 IS NOT NULL"),
            2 => "SELECT COUNT(*) FROM ehr e JOIN doc d ON d.ehr = e.id, json_each(d.body, '$.content') o WHERE e.queryable
                  AND json_extract(o.value, '$.archetype_node_id') = 'openEHR-EHR-OBSERVATION.body_temperature.v2' AND ?1 IS NOT NULL".to_owned(),
            3 => format!("SELECT AVG(s), MAX(s) FROM (SELECT {SYSTOLIC} AS s {ENTRIES} AND ?1 IS NOT NULL)"),
            4 => "SELECT json_extract(d.body, '$.context.start_time.value') AS t, json_extract(d.body, '$.archetype_details.template_id.value')
                  FROM ehr e JOIN doc d ON d.ehr = e.id WHERE e.ehr_id = ?1 ORDER BY t DESC LIMIT 20".to_owned(),
            _ => format!("SELECT e.ehr_id, json_extract(d.body, '$.context.start_time.value'), {SYSTOLIC},
                  json_extract(w.value, '$.data.items[0].value.magnitude') {ENTRIES} AND {SYSTOLIC} >= 160 AND ?1 IS NOT NULL").replace(
                "json_each(o.value, '$.data.events') v",
                "json_each(o.value, '$.data.events') v, json_each(d.body, '$.content') p, json_each(p.value, '$.data.events') w",
            ) + " AND json_extract(p.value, '$.archetype_node_id') = 'openEHR-EHR-OBSERVATION.pulse.v2' AND json_extract(w.value, '$.archetype_node_id') = 'at0003'
                  AND (SELECT json_extract(i.value, '$.value.magnitude') FROM json_each(w.value, '$.data.items') i WHERE json_extract(i.value, '$.archetype_node_id') = 'at0004') >= 100",
        }
    }

    /// Median milliseconds and rows of a question.
    fn ask(&self, question: usize, ehr_id: &str, clock: &dyn Fn() -> f64) -> rusqlite::Result<(f64, usize)> {
        let mut statement = self.connection.prepare(&Peer::sql(question))?;
        let columns = statement.column_count();
        let (mut times, mut count) = (Vec::new(), 0);
        for _ in 0..3 {
            let begin = clock();
            let rows = statement.query_map([ehr_id], |row| (0..columns).map(|c| row.get::<_, rusqlite::types::Value>(c)).collect::<rusqlite::Result<Vec<_>>>())?;
            count = rows.collect::<rusqlite::Result<Vec<_>>>()?.len();
            times.push(clock() - begin);
        }
        Ok((median(&mut times), count))
    }
}

fn mega(bytes: usize) -> f64 {
    bytes as f64 / 1_000_000.0
}

/// The most memory that the process has held, in MB, where the system tells it.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().split(' ').next()?.parse::<f64>().ok()).map_or(f64::NAN, |kb| kb / 1000.0)
}
