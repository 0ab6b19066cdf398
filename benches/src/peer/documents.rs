//! One row per composition with its canonical JSON as text or JSONB, queried by json_extract and
//! json_each. The rows are indexed by EHR and time.

use super::Layout;
use rusqlite::Connection;

/// Canonical JSON as text.
pub struct Text;

/// JSONB.
pub struct Jsonb;

/// JSONB, queried by `jsonb_each` (SQLite 3.51). It passes inner objects on as JSONB, so they are
/// not parsed again.
pub struct JsonbEach;

const SCHEMA: &str = "CREATE TABLE doc (id INTEGER PRIMARY KEY, ehr INTEGER NOT NULL, start REAL NOT NULL, body NOT NULL);";
const INDEXES: &str = "CREATE INDEX doc_ehr ON doc (ehr, start);";

impl Layout for Text {
    const NAME: &'static str = "text";
    const SCHEMA: &'static str = SCHEMA;
    const INDEXES: &'static str = INDEXES;

    fn insert(connection: &Connection, ehr: i64, id: i64, json: &str) -> rusqlite::Result<()> {
        let sql = "INSERT INTO doc VALUES (?1, ?2, julianday(json_extract(?3, '$.context.start_time.value')), ?3)";
        connection
            .prepare_cached(sql)?
            .execute((id, ehr, json))
            .map(drop)
    }

    fn question(_: &Connection, number: usize) -> rusqlite::Result<String> {
        Ok(question(number))
    }
}

impl Layout for Jsonb {
    const NAME: &'static str = "jsonb";
    const SCHEMA: &'static str = SCHEMA;
    const INDEXES: &'static str = INDEXES;

    fn insert(connection: &Connection, ehr: i64, id: i64, json: &str) -> rusqlite::Result<()> {
        let sql = "INSERT INTO doc VALUES (?1, ?2, julianday(json_extract(?3, '$.context.start_time.value')), jsonb(?3))";
        connection
            .prepare_cached(sql)?
            .execute((id, ehr, json))
            .map(drop)
    }

    fn question(_: &Connection, number: usize) -> rusqlite::Result<String> {
        Ok(question(number))
    }
}

impl Layout for JsonbEach {
    const NAME: &'static str = "jsonb_each";
    const SCHEMA: &'static str = SCHEMA;
    const INDEXES: &'static str = INDEXES;

    fn insert(connection: &Connection, ehr: i64, id: i64, json: &str) -> rusqlite::Result<()> {
        Jsonb::insert(connection, ehr, id, json)
    }

    fn question(_: &Connection, number: usize) -> rusqlite::Result<String> {
        Ok(question(number).replace("json_each", "jsonb_each"))
    }
}

const ENTRIES: &str = "FROM ehr e JOIN doc d ON d.ehr = e.id, json_each(d.body, '$.content') o, json_each(o.value, '$.data.events') v
    WHERE json_extract(o.value, '$.archetype_node_id') = 'openEHR-EHR-OBSERVATION.blood_pressure.v2'
    AND json_extract(v.value, '$.archetype_node_id') = 'at0006'";
const SYSTOLIC: &str = "(SELECT json_extract(i.value, '$.value.magnitude') FROM json_each(v.value, '$.data.items') i WHERE json_extract(i.value, '$.archetype_node_id') = 'at0004')";
const DIASTOLIC: &str = "(SELECT json_extract(i.value, '$.value.magnitude') FROM json_each(v.value, '$.data.items') i WHERE json_extract(i.value, '$.archetype_node_id') = 'at0005')";
const RATE: &str = "(SELECT json_extract(i.value, '$.value.magnitude') FROM json_each(w.value, '$.data.items') i WHERE json_extract(i.value, '$.archetype_node_id') = 'at0004')";
const TIME: &str = "json_extract(v.value, '$.time.value')";
const START: &str = "json_extract(d.body, '$.context.start_time.value')";

fn question(number: usize) -> String {
    match number {
        0 => format!("SELECT {TIME}, {SYSTOLIC}, {DIASTOLIC} {ENTRIES} AND e.ehr_id = ?1 ORDER BY julianday({TIME}) DESC LIMIT 1"),
        1 => format!("SELECT e.ehr_id, {TIME}, {SYSTOLIC} AS s, {DIASTOLIC} {ENTRIES} AND e.queryable AND s >= 140"),
        2 => "SELECT COUNT(*) FROM ehr e JOIN doc d ON d.ehr = e.id, json_each(d.body, '$.content') o WHERE e.queryable
              AND json_extract(o.value, '$.archetype_node_id') = 'openEHR-EHR-OBSERVATION.body_temperature.v2'"
            .to_owned(),
        3 => format!("SELECT AVG(s), MAX(s) FROM (SELECT {SYSTOLIC} AS s {ENTRIES} AND e.queryable)"),
        4 => format!(
            "SELECT {START}, json_extract(d.body, '$.archetype_details.template_id.value')
             FROM ehr e JOIN doc d ON d.ehr = e.id WHERE e.ehr_id = ?1 ORDER BY d.start DESC LIMIT 20"
        ),
        _ => {
            format!("SELECT e.ehr_id, {START}, {SYSTOLIC} AS s, {RATE} AS r {ENTRIES} AND e.queryable AND s >= 160").replace(
                "json_each(o.value, '$.data.events') v",
                "json_each(o.value, '$.data.events') v, json_each(d.body, '$.content') p, json_each(p.value, '$.data.events') w",
            ) + " AND json_extract(p.value, '$.archetype_node_id') = 'openEHR-EHR-OBSERVATION.pulse.v2'
              AND json_extract(w.value, '$.archetype_node_id') = 'at0003' AND r >= 100"
        }
    }
}
