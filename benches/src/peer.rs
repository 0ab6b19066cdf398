//! SQLite over JSON text: one row a composition, asked by json_extract and json_each.

use aqlite_bench::{Loaded, median};
use rusqlite::Connection;

/// SQLite with one row a composition and its canonical JSON as text.
pub struct Peer {
    connection: Connection,
    pub load_ms: f64,
    pub bytes: usize,
}

const ENTRIES: &str = "FROM ehr e JOIN doc d ON d.ehr = e.id, json_each(d.body, '$.content') o, json_each(o.value, '$.data.events') v
    WHERE e.queryable AND json_extract(o.value, '$.archetype_node_id') = 'openEHR-EHR-OBSERVATION.blood_pressure.v2'
    AND json_extract(v.value, '$.archetype_node_id') = 'at0006'";
const SYSTOLIC: &str = "(SELECT json_extract(i.value, '$.value.magnitude') FROM json_each(v.value, '$.data.items') i WHERE json_extract(i.value, '$.archetype_node_id') = 'at0004')";
const DIASTOLIC: &str = "(SELECT json_extract(i.value, '$.value.magnitude') FROM json_each(v.value, '$.data.items') i WHERE json_extract(i.value, '$.archetype_node_id') = 'at0005')";

impl Peer {
    pub fn load(loaded: &Loaded, clock: &dyn Fn() -> f64) -> rusqlite::Result<Peer> {
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
                connection
                    .prepare_cached("INSERT INTO doc(ehr, start, body) VALUES (?1, julianday(json_extract(?2, '$.context.start_time.value')), ?2)")?
                    .execute((ehr as i64, &json))?;
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
    pub fn ask(&self, question: usize, ehr_id: &str, clock: &dyn Fn() -> f64) -> rusqlite::Result<(f64, usize)> {
        let mut statement = self.connection.prepare(&Peer::sql(question))?;
        let columns = statement.column_count();
        let (mut times, mut count) = (Vec::new(), 0);
        for _ in 0..3 {
            let begin = clock();
            let rows = statement
                .query_map([ehr_id], |row| (0..columns).map(|c| row.get::<_, rusqlite::types::Value>(c)).collect::<rusqlite::Result<Vec<_>>>())?;
            count = rows.collect::<rusqlite::Result<Vec<_>>>()?.len();
            times.push(clock() - begin);
        }
        Ok((median(&mut times), count))
    }
}
