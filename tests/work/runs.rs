//! Runs of queries on one wide document: the time between two pauses, as a ratio to the time that the
//! same machine needs to read the document.

use crate::measure::processor_time;
use aqlite::aql::{Budget, Parameters, QueryOptions, Run, prepare};
use aqlite::document::{
    Batch, DocRow, EhrRow, LayoutStore, NothingKnown, ObjectKind, Packed, pack,
};
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::store::scan::Progress;
use std::fmt::Write;
use std::time::Duration;

/// The number of events of the document.
const EVENTS: usize = 2_000;

/// The most processor time between two pauses, in times of reading the document from JSON and packing
/// it, which a commit does without a pause, too.
const LONGEST: u32 = 60;

/// Readings that are measured together, because a system counts processor time in milliseconds.
const READINGS: u32 = 20;

fn text(value: &str) -> String {
    format!(r#""name":{{"_type":"DV_TEXT","value":"{value}"}}"#)
}

/// Returns a COMPOSITION of this name with one OBSERVATION.
fn document(name: &str, count: usize) -> String {
    let mut events = Vec::new();
    for number in 0..count {
        let time = format!("2020-01-{:02}T{:02}:00:00Z", 1 + number % 28, number % 24);
        events.push(format!(
            r#"{{"_type":"POINT_EVENT",{},"archetype_node_id":"at0006","time":{{"_type":"DV_DATE_TIME","value":"{time}"}},
            "data":{{"_type":"ITEM_LIST",{},"archetype_node_id":"at0003","items":[
            {{"_type":"ELEMENT",{},"archetype_node_id":"at0004","value":{{"_type":"DV_QUANTITY","magnitude":{},"units":"mm[Hg]"}}}},
            {{"_type":"ELEMENT",{},"archetype_node_id":"at0005","value":{{"_type":"DV_QUANTITY","magnitude":{},"units":"mm[Hg]"}}}}]}}}}"#,
            text("any event"),
            text("list"),
            text("systolic"),
            100 + number % 80,
            text("diastolic"),
            60 + number % 40,
        ));
    }
    format!(
        r#"{{"_type":"ORIGINAL_VERSION","uid":{{"_type":"OBJECT_VERSION_ID","value":"a::s::1"}},"data":{{"_type":"COMPOSITION",{},
        "archetype_node_id":"openEHR-EHR-COMPOSITION.x.v1","content":[{{"_type":"OBSERVATION",{},"archetype_node_id":"openEHR-EHR-OBSERVATION.x.v1",
        "data":{{"_type":"HISTORY",{},"archetype_node_id":"at0001","events":[{}]}}}}]}}}}"#,
        text(name),
        text("pressures"),
        text("history"),
        events.join(",")
    )
}

/// Reads and packs a version.
fn packed(version: &str) -> Packed {
    let tree = json::read(version, Cls::ORIGINAL_VERSION).expect("a version");
    pack(
        tree.root().expect("a root"),
        &NothingKnown,
        &LayoutStore::new(),
    )
}

/// Returns the least processor time of reading and packing the document.
fn time_of_reading(version: &str) -> Duration {
    let times = (0..3).map(|_| {
        let started = processor_time();
        (0..READINGS).for_each(|_| drop(packed(version)));
        processor_time().saturating_sub(started) / READINGS
    });
    times.min().expect("three times")
}

fn batch(version: &str) -> Batch {
    let mut batch = Batch::default();
    let ehr = batch.add_ehr(EhrRow {
        ehr_id: "e1".into(),
        system_id: "s".into(),
        time_created: "2020-01-01T00:00:00Z".into(),
        is_queryable: true,
    });
    let row = DocRow {
        kind: ObjectKind::Composition,
        object_id: "a".into(),
        number: 1,
        ordinal: 1,
        latest: true,
        deleted: false,
    };
    batch.add(ehr, row, &packed(version));
    batch
}

/// Queries that name many paths, predicates or functions, by title.
fn queries() -> Vec<(&'static str, String)> {
    let list = |count: usize, part: &dyn Fn(usize) -> String, between: &str| {
        (0..count).map(part).collect::<Vec<_>>().join(between)
    };
    let from = "FROM EHR e CONTAINS OBSERVATION o";
    let values = "o/data/events/data/items";
    let nested = |inner: &str| {
        let mut call = String::new();
        (0..60).for_each(|_| call.push_str("ROUND("));
        call.push_str(inner);
        (0..60).for_each(|_| write!(call, ",3)").expect("a text"));
        call
    };
    let predicates = |i: usize| {
        format!(
            "o/data/events[time/value > '20{:02}-01-01' and name/value='x{i}']/data/items/value/magnitude > {i}",
            10 + i % 90
        )
    };
    let path = |i: usize| {
        let (event, item) = (2 + i / 46, 4 + i % 46);
        format!("o/data/events[at{event:04}]/data/items[at{item:04}]/value/magnitude")
    };
    vec![
        (
            "predicates in conditions",
            format!(
                "SELECT COUNT(*) {from} WHERE {}",
                list(200, &predicates, " OR ")
            ),
        ),
        (
            "paths of columns",
            format!("SELECT {} {from} LIMIT 1", list(230, &path, ", ")),
        ),
        (
            "distinct counts",
            format!(
                "SELECT {} {from} LIMIT 1",
                list(
                    196,
                    &|i| format!(
                        "COUNT(DISTINCT {values}[at{:04}]/value/magnitude) AS a{i}",
                        i + 4
                    ),
                    ", "
                )
            ),
        ),
        (
            "roundings of a literal",
            format!(
                "SELECT {} {from} CONTAINS ELEMENT l LIMIT 1000",
                list(380, &|i| format!("{} AS a{i}", nested("1e300")), ", ")
            ),
        ),
        (
            "roundings in conditions",
            format!(
                "SELECT COUNT(*) {from} CONTAINS ELEMENT l WHERE {}",
                list(
                    300,
                    &|i| format!("{} = {}.5", nested("l/value/magnitude"), 1_000 + i),
                    " OR "
                )
            ),
        ),
        (
            "arguments of a function",
            format!(
                "SELECT CONCAT({}) AS a {from} CONTAINS ELEMENT l LIMIT 1000",
                list(10_000, &|_| "l/name/value".to_owned(), ",")
            ),
        ),
    ]
}

/// Runs a query to its end. Returns the longest time between two pauses, and the units of work.
fn run(query: &str, batch: &Batch) -> (Duration, u64, Duration) {
    let plan = prepare(query, &Parameters::new(), &QueryOptions::default()).expect("a query");
    let go_on = || false;
    let mut run = Run::new(&plan, "2026-01-01T00:00:00.000Z", Budget::default(), &go_on);
    let (mut longest, mut all) = (Duration::ZERO, Duration::ZERO);
    let mut timed = |work: &mut dyn FnMut() -> Progress| {
        let started = processor_time();
        let progress = work();
        let time = processor_time().saturating_sub(started);
        longest = longest.max(time);
        all += time;
        progress
    };
    while timed(&mut || run.advance(batch)) == Progress::Paused {}
    while timed(&mut || run.close()) == Progress::Paused {}
    let work = run.work();
    // A run that does too much ends with an error, which is an answer.
    let _ = run.finish();
    (longest, work, all)
}

/// A long text is hashed once for a batch, however many columns show it.
fn a_long_text_in_many_columns() {
    let version = document(&"a".repeat(1_000_000), 1);
    let most = time_of_reading(&version) * LONGEST;
    let columns = vec!["c/name/value"; 900].join(", ");
    let query = format!("SELECT {columns} FROM COMPOSITION c");
    let plan = prepare(&query, &Parameters::new(), &QueryOptions::default()).expect("a query");
    let go_on = || false;
    let mut run = Run::new(&plan, "2026-01-01T00:00:00.000Z", Budget::default(), &go_on);
    let batches = [(); 4].map(|()| batch(&version));
    let started = processor_time();
    for batch in &batches {
        while run.advance(batch) == Progress::Paused {}
    }
    let result = run.finish().expect("rows");
    let time = processor_time().saturating_sub(started);
    assert_eq!(result.len(), 4);
    assert_eq!(result.row_bytes(3), 900_000_000);
    assert!(time <= most, "{time:?}, expected at most {most:?}");
}

pub fn all() {
    a_long_text_in_many_columns();
    let version = document("visit", EVENTS);
    let most = time_of_reading(&version) * LONGEST;
    let batch = batch(&version);
    for (title, query) in queries() {
        let (longest, work, all) = run(&query, &batch);
        if std::env::var_os("AQLITE_WORK_FIGURES").is_some() {
            println!(
                "{title}: {longest:?} of {all:?} without a pause (at most {most:?}), {work} units"
            );
        }
        assert!(
            longest <= most,
            "{title}: {longest:?} without a pause, expected at most {most:?}"
        );
    }
}
