//! Predicates in queries change how much is read, never the result of a guide or its notes. Every
//! predicate is tested alone and with every other, on values of every kind and time, with and
//! without pushdown.

use crate::gdl_records::{add_composition, rows};
use aqlite::document::{Batch, EhrRow, LayoutStore};
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, BindingQuery, CompiledGuide, Instance, Options, RunInput};
use serde_json::{Value as Json, json};

const EHR: &str = "7d44b88c-4199-4bad-97dc-d78268e01398";
const VALUE: &str = "/data[at0001]/events[at0002]/data[at0003]/items[at0004]";
const NOW: &str = "2024-02-29T12:00:00.000+01:00";

fn values() -> Vec<Json> {
    let coded = |terminology: &str, code: &str, text: &str| json!({"_type": "DV_CODED_TEXT", "value": text, "defining_code": {"terminology_id": {"value": terminology}, "code_string": code}});
    vec![
        Json::Null,
        json!({"_type": "DV_QUANTITY", "magnitude": 5, "units": "kg"}),
        json!({"_type": "DV_QUANTITY", "magnitude": 5.000_000_1, "units": "kg"}),
        json!({"_type": "DV_QUANTITY", "magnitude": -5.5, "units": "lb"}),
        json!({"_type": "DV_QUANTITY", "magnitude": 1, "units": "mo"}),
        json!({"_type": "DV_QUANTITY", "magnitude": 31, "units": "d"}),
        json!({"_type": "DV_COUNT", "magnitude": 5}),
        json!({"_type": "DV_COUNT", "magnitude": 0}),
        json!({"_type": "DV_PROPORTION", "numerator": 10.0, "denominator": 2.0, "type": 0}),
        json!({"_type": "DV_ORDINAL", "value": 5, "symbol": coded("local", "at0005", "Yes")}),
        json!({"_type": "DV_TEXT", "value": "5"}),
        json!({"_type": "DV_TEXT", "value": "Yes"}),
        json!({"_type": "DV_TEXT", "value": "2024-01-01T00:00:00Z"}),
        coded("local", "at0005", "Yes"),
        coded("local", "at0006", "No"),
        coded("ATC", "at0005", "It's"),
        coded("ATC(2024)", "at0005", "It's"),
        json!({"_type": "DV_BOOLEAN", "value": true}),
        json!({"_type": "DV_DATE_TIME", "value": "2023-12-31T23:59:59"}),
        json!({"_type": "DV_DATE", "value": "2024-01-01"}),
        json!({"_type": "DV_DATE", "value": "2024"}),
        json!({"_type": "DV_TIME", "value": "10:30:00"}),
        json!({"_type": "DV_DURATION", "value": "P5D"}),
    ]
}

const TIMES: [&str; 8] = [
    "2024-02-28T12:00:00+01:00",
    "2023-02-28T12:00:00+01:00",
    "2023-02-28T11:00:00.000Z",
    "2023-02-28T11:00:00.0004Z",
    "2023-02-28T10:59:59.999",
    "2023",
    "2024-02-29T11:00:00Z",
    "2025-01-01T00:00:00Z",
];

const PREDICATES: [&str; 46] = [
    "PATH != null",
    "PATH == null",
    "PATH/value/magnitude > 5",
    "PATH/value/magnitude >= 5",
    "PATH/value/magnitude < 5.00000005",
    "PATH/value/magnitude == 0",
    "PATH > 5",
    "PATH == 5",
    "PATH != 5",
    "5 <= PATH",
    "PATH == 5,kg",
    "PATH >= 5,kg",
    "PATH > 4000,g",
    "PATH >= 5,kg && PATH != null && /data/events/time != null",
    "/data/events/time > 2023-02-28T11:00:00Z && PATH < 5,lb",
    "PATH < 30,d",
    "PATH <= 1,mo",
    "PATH != 5,kg",
    "PATH == local::at0005|Yes|",
    "PATH != local::at0005|Yes|",
    "PATH == ATC::at0005",
    "PATH == 5|local::at0005|Yes|",
    "PATH == 'Yes'",
    "PATH/value/defining_code/code_string == 'at0005'",
    "PATH/value/units == 'kg'",
    "PATH == true",
    "PATH > 2024-01-01",
    "PATH <= 2024-01-01",
    "PATH == 2024-01-01",
    "/data/events/time >= ($currentDateTime.value-1,a)",
    "/data/events/time > ($currentDateTime-1,a)",
    "/data/events/time < ($currentDateTime.value-1,a)",
    "/data/events/time <= 2023-02-28T11:00:00Z",
    "/data/events/time == 2023-02-28T11:00:00Z",
    "/data/events/time != null && PATH > 4",
    "/data/events/time/value >= ($currentDateTime.value-1,a)",
    "/data/events/time/value > ($currentDateTime-1,a)",
    "/data/events/time/value <= 2023-02-28T11:00:00Z",
    "/data/events/time/value == 2023-02-28T11:00:00Z",
    "/data/events/time/value != null && PATH > 4",
    "/data/events/time/value/year >= 2024",
    "max(/data/events/time/value)",
    "PATH is_a local::gt0010|Drug|",
    "max(/data/events/time)",
    "min(/data/events/time)",
    "PATH/value/magnitude > 1 || PATH == local::at0005|Yes|",
];

fn composition(number: usize, value: &Json, time: &str) -> (String, String) {
    let name = |text: &str| json!({"_type": "DV_TEXT", "value": text});
    let code = |terminology: &str, code: &str| json!({"terminology_id": {"value": terminology}, "code_string": code});
    let mut element = json!({"_type": "ELEMENT", "name": name("e"), "archetype_node_id": "at0004", "value": value});
    if value.is_null() {
        let unknown = json!({"_type": "DV_CODED_TEXT", "value": "unknown", "defining_code": code("openehr", "253")});
        element = json!({"_type": "ELEMENT", "name": name("e"), "archetype_node_id": "at0004", "null_flavour": unknown});
    }
    let details = |id: &str| json!({"archetype_id": {"value": id}, "rm_version": "1.0.4"});
    let tree = json!({"_type": "ITEM_TREE", "name": name("t"), "archetype_node_id": "at0003", "items": [element]});
    let event = json!({"_type": "POINT_EVENT", "name": name("p"), "archetype_node_id": "at0002", "time": {"_type": "DV_DATE_TIME", "value": time}, "data": tree});
    let observation = "openEHR-EHR-OBSERVATION.push_demo.v1";
    let uid = format!("{number:08x}-0000-4000-8000-000000000000");
    let json = json!({
        "_type": "COMPOSITION", "name": name("c"), "archetype_node_id": "openEHR-EHR-COMPOSITION.c.v1",
        "archetype_details": details("openEHR-EHR-COMPOSITION.c.v1"), "uid": {"_type": "OBJECT_VERSION_ID", "value": format!("{uid}::test::1")},
        "language": code("ISO_639-1", "en"), "territory": code("ISO_3166-1", "GB"),
        "category": {"value": "event", "defining_code": code("openehr", "433")}, "composer": {"_type": "PARTY_SELF"},
        "content": [{
            "_type": "OBSERVATION", "name": name("o"), "archetype_node_id": observation, "archetype_details": details(observation),
            "language": code("ISO_639-1", "en"), "encoding": code("IANA_character-sets", "UTF-8"), "subject": {"_type": "PARTY_SELF"},
            "data": {"_type": "HISTORY", "name": name("h"), "archetype_node_id": "at0001",
                "origin": {"_type": "DV_DATE_TIME", "value": time}, "events": [event]}}],
    });
    (uid, json.to_string())
}

fn records() -> Batch {
    let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
    let row = EhrRow {
        ehr_id: EHR.into(),
        system_id: "test".into(),
        time_created: "2012-01-01T00:00:00Z".into(),
        is_queryable: true,
    };
    let ehr = batch.add_ehr(row);
    let mut number = 0;
    for value in values() {
        for time in TIMES {
            let (uid, json) = composition(number, &value, time);
            add_composition(&mut batch, ehr, number, uid, &json, &layouts);
            number += 1;
        }
    }
    batch
}

fn guide(predicates: &[&str]) -> CompiledGuide {
    let predicates: Vec<String> = predicates
        .iter()
        .map(|p| p.replace("PATH", VALUE))
        .collect();
    let guide = json!({"id": "push", "definition": {
        "data_bindings": {"gt0002": {"model_id": "openEHR-EHR-OBSERVATION.push_demo.v1", "type": "INPUT",
            "elements": {"gt0003": {"path": VALUE}}, "predicates": predicates}}},
        "ontology": {"term_bindings": {"ATC": {"bindings": {"gt0010": {"codes": ["ATC::at"]}}}}}})
    .to_string();
    let guide = gdl::parse(&guide).unwrap().compile();
    assert!(
        guide.problems.iter().all(|p| !p.code.starts_with("GDL02")),
        "{:?}",
        guide.problems
    );
    guide
}

/// Returns the values that the guide would read with the notes of the run, and the number of rows
/// that the query returned.
fn seen(
    guide: &CompiledGuide,
    query: &BindingQuery,
    records: &Batch,
    now: Moment,
) -> ((Vec<Instance>, Vec<String>), usize) {
    let rows = rows(&query.aql, Some(EHR), records);
    let count = rows.len();
    let instances = vec![query.instances(rows, now)];
    let input = RunInput {
        instances: &instances,
        clock: now.into(),
        language: "en",
        options: Options::default(),
        terminology: None,
    };
    let chosen = guide.select(0, &input).unwrap().into_iter();
    let chosen = chosen.map(|i| instances[0][i].clone()).collect();
    let notes = guide.run(&input).unwrap().notes.into_iter();
    let notes = notes.map(|note| format!("{}: {}", note.statement, note.reason));
    ((chosen, notes.collect()), count)
}

#[test]
fn pushdown_changes_only_the_work() {
    let (records, now) = (records(), Moment::parse(NOW, 0).unwrap());
    let all = values().len() * TIMES.len();
    let (mut fewer, mut noted) = (0, 0);
    for (i, first) in PREDICATES.iter().enumerate() {
        for second in &PREDICATES[i..] {
            let guide = guide(&[first, second]);
            let (plain, pushed) = (&guide.queries()[0], &guide.queries_at(now)[0]);
            let (expected, rows) = seen(&guide, plain, &records, now);
            assert_eq!(rows, all, "{}", plain.aql);
            let (found, read) = seen(&guide, pushed, &records, now);
            assert!(
                found == expected,
                "`{first}`, `{second}`: {}\n{found:?}\ninstead of\n{expected:?}",
                pushed.aql
            );
            fewer += usize::from(read < all);
            noted += usize::from(!expected.1.is_empty());
        }
    }
    assert!(fewer > 500, "{fewer} of the pairs read less");
    assert!(noted > 500, "{noted} of the pairs have notes");
}

#[test]
fn predicates_beyond_the_conditions_of_a_query_are_left_to_the_run() {
    let (records, now) = (records(), Moment::parse(NOW, 0).unwrap());
    for count in [50, 500] {
        let guide = guide(&vec!["PATH >= 5,kg"; count]);
        let (plain, pushed) = (&guide.queries()[0], &guide.queries_at(now)[0]);
        assert!(pushed.aql.len() > plain.aql.len());
        let (expected, _) = seen(&guide, plain, &records, now);
        assert_eq!(seen(&guide, pushed, &records, now).0, expected, "{count}");
    }
}

#[test]
fn pushed_predicates_are_conditions_of_the_query() {
    let condition = |predicate: &str| {
        let aql = guide(&[predicate]).queries_at(Moment::parse(NOW, 0).unwrap())[0]
            .aql
            .clone();
        aql.split_once(" WHERE ")
            .map_or(String::new(), |(_, condition)| {
                condition.replace(VALUE, "P")
            })
    };
    assert_eq!(condition("PATH != null"), "EXISTS oP/value");
    assert_eq!(
        condition("PATH/value/magnitude > 5"),
        "(NOT EXISTS oP/value/magnitude OR oP/value/magnitude>5)"
    );
    assert_eq!(
        condition("PATH >= 5,kg"),
        "(NOT EXISTS oP/value/units OR oP/value/units!='kg' OR oP/value/magnitude>=5)"
    );
    assert_eq!(condition("PATH > 2024-01-01"), "");
    let time = "o/data[at0001]/events[at0002]/time>='2023-02-28T11:00:00Z'";
    assert_eq!(
        condition("/data/events/time >= ($currentDateTime.value-1,a)"),
        time
    );
    assert_eq!(condition("max(/data/events/time)"), "");
    assert_eq!(condition("PATH is_a local::gt0010|Drug|"), "");
}
