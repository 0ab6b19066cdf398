//! Guides whose data are reduced to the latest rows have the results of guides with all data.

use crate::gdl::compiled;
use crate::gdl_records::{add_composition, batch, ehr_row, plan};
use crate::property::random::Random;
use aqlite::document::{Batch, LayoutStore};
use aqlite::gdl::output::{EhrRun, line};
use aqlite::gdl::time::Moment;
use aqlite::gdl::{CompiledGuide, Options, Population, RunInput};
use aqlite::samples::Generator;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Within the times of the data, so that some of them are in the future.
const NOW: &str = "2018-06-01T00:00:00Z";

/// Statements that read the last value of variables.
const LAST: [&str; 7] = [
    "$o1=$systolic",
    "$o2=$mean",
    "$o3=$cuff",
    "$o4=$time",
    "$o5=$temperature",
    "$o1.magnitude=$systolic.magnitude-$diastolic.magnitude",
    "$diastolic.magnitude=$systolic.magnitude",
];

/// Statements that read earlier values too.
const LISTS: [&str; 4] = [
    "$o6.magnitude=$systolic.count",
    "$o6.magnitude=$mean.sum",
    "$o6.magnitude=$cuff.count+$temperature.count",
    "$o6.magnitude=$diastolic.count",
];

const CONDITIONS: [&str; 5] = [
    "$systolic!=null",
    "$systolic.magnitude>130",
    "$cuff==null",
    "any($mean.magnitude>100)",
    "$temperature.magnitude>38",
];

/// Texts of cards, some of which read lists.
const SUMMARIES: [&str; 6] = [
    "{$systolic} and {$mean.magnitude}",
    "a card",
    "{$systolic.count} values",
    "{$temperature.all}",
    "{$pressure.all}",
    "{$time}",
];

const PREDICATES: [&str; 2] = [
    "max(/data[at0001]/events[at0006]/time)",
    "/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude>120",
];

/// Returns a guide of random statements.
fn guide(random: &mut Random) -> CompiledGuide {
    let element = |path: &str| json!({ "path": path });
    let item = |code: &str| {
        element(&format!(
            "/data[at0001]/events[at0006]/data[at0003]/items[{code}]"
        ))
    };
    let mut pressure = json!({"systolic": item("at0004")});
    for (code, element) in [
        ("diastolic", item("at0005")),
        ("mean", item("at1006")),
        ("cuff", element("/protocol[at0011]/items[at0013]")),
        ("time", element("/data[at0001]/events[at0006]/time")),
    ] {
        if random.one_in(2) {
            pressure[code] = element;
        }
    }
    let predicates: Vec<&str> = match random.below(4) {
        0 => vec![random.pick(&PREDICATES)],
        _ => Vec::new(),
    };
    let reads_lists = random.one_in(3);
    let rule = |random: &mut Random, number: usize| {
        let then: Vec<&str> = (0..1 + random.below(3))
            .map(|_| match reads_lists && random.one_in(3) {
                true => random.pick(&LISTS),
                false => random.pick(&LAST),
            })
            .collect();
        let conditions = if reads_lists { 5 } else { 3 };
        let summaries = if reads_lists { 6 } else { 2 };
        json!({"priority": 9 - number, "then": then,
            "when": [CONDITIONS[random.below(conditions)]],
            "cards": [{"summary": SUMMARIES[random.below(summaries)], "indicator": "info"}]})
    };
    let rules: BTreeMap<String, Value> = (0..1 + random.below(3))
        .map(|number| (format!("r{number}"), rule(random, number)))
        .collect();
    let outputs: BTreeMap<String, Value> = (1..=6)
        .map(|n| {
            (
                format!("o{n}"),
                element(&format!("/data[at0001]/items[at000{n}]")),
            )
        })
        .collect();
    compiled(&json!({"id": "latest.v1", "definition": {
        "data_bindings": {
            "pressure": {"model_id": "openEHR-EHR-OBSERVATION.blood_pressure.v2", "type": "INPUT",
                "elements": pressure, "predicates": predicates},
            "warmth": {"model_id": "openEHR-EHR-OBSERVATION.body_temperature.v2", "type": "INPUT",
                "elements": {"temperature":
                    element("/data[at0002]/events[at0003]/data[at0001]/items[at0004]")}},
            "out": {"model_id": "openEHR-EHR-OBSERVATION.out.v1", "type": "OUTPUT", "elements": outputs}},
        "rules": rules}}))
}

/// Runs a guide on all EHRs. Returns the answer of each, and the number of queries whose data were
/// reduced.
fn answers(
    guide: &CompiledGuide,
    batches: &[Batch],
    options: Options,
    is_backward: bool,
) -> (Vec<Value>, usize) {
    let now = Moment::parse(NOW, 0).unwrap();
    let mut population = Population::new(guide, now, options);
    let queries = population.queries().iter();
    let queries: Vec<String> = queries.map(|q| q.population_aql.clone()).collect();
    for (index, query) in queries.iter().enumerate() {
        let go_on = || false;
        let plan = plan(query, None);
        let budget = aqlite::aql::Budget::default();
        let mut run = aqlite::aql::Run::new(&plan, "2030-01-01T00:00:00Z", budget, &go_on)
            .backward(is_backward);
        for batch in batches {
            assert!(run.push_each(batch, &mut |at, row| population.add(index, at, row)));
        }
        run.finish().unwrap();
    }
    let reduced = (0..queries.len()).filter(|query| population.reads_latest(*query));
    let reduced = reduced.count();
    let like = RunInput {
        instances: &[],
        clock: now.into(),
        language: "en",
        options,
        terminology: None,
    };
    let mut answers = Vec::new();
    population
        .run(&like, |ehr_id, run| {
            let (ehr_id, queries) = (ehr_id.to_owned(), Vec::new());
            let text = line(
                &EhrRun {
                    ehr_id,
                    run,
                    queries,
                },
                None,
            )
            .unwrap();
            let mut answer: Value = serde_json::from_str(&text).unwrap();
            answer.as_object_mut().unwrap().remove("_trace");
            answers.push(answer);
        })
        .unwrap();
    (answers, reduced)
}

/// Returns a composition with one observation of a count, at a time.
fn observation(uid: &str, time: &str, count: u32) -> Value {
    let node = |class: &str, code: &str| json!({"_type": class, "archetype_node_id": code, "name": {"value": code}});
    let with = |mut node: Value, members: Value| {
        let members = members.as_object().unwrap().clone();
        node.as_object_mut().unwrap().extend(members);
        node
    };
    let time = json!({"_type": "DV_DATE_TIME", "value": time});
    let value = json!({"_type": "DV_COUNT", "magnitude": count});
    let element = with(node("ELEMENT", "at0004"), json!({"value": value}));
    let tree = with(node("ITEM_TREE", "at0003"), json!({"items": [element]}));
    let event = with(
        node("POINT_EVENT", "at0002"),
        json!({"time": time, "data": tree}),
    );
    let history = with(
        node("HISTORY", "at0001"),
        json!({"origin": time, "events": [event]}),
    );
    let observation = node("OBSERVATION", "openEHR-EHR-OBSERVATION.a.v1");
    let observation = with(observation, json!({"data": history}));
    let uid = json!({"_type": "OBJECT_VERSION_ID", "value": uid});
    let composition = node("COMPOSITION", "openEHR-EHR-COMPOSITION.c.v1");
    with(composition, json!({"uid": uid, "content": [observation]}))
}

#[test]
fn of_instances_of_one_time_the_one_that_was_committed_last_counts() {
    const SAME: &str = "2016-01-01T08:00:00Z";
    let path = |code: &str| json!({"path": format!("/data[at0001]/events[at0002]/data[at0003]/items[{code}]")});
    let guide = compiled(&json!({"id": "same.v1", "definition": {
        "data_bindings": {
            "in": {"model_id": "openEHR-EHR-OBSERVATION.a.v1", "type": "INPUT", "elements": {"x": path("at0004")}},
            "out": {"model_id": "openEHR-EHR-OBSERVATION.b.v1", "type": "OUTPUT", "elements": {"y": path("at0004")}}},
        "rules": {"r": {"priority": 1, "then": ["$y=$x"]}}}}));
    let layouts = LayoutStore::new();
    let counts = [
        [(SAME, 1), (SAME, 2), ("2015-01-01T08:00:00Z", 3)],
        [(SAME, 4), (SAME, 5), (SAME, 6)],
    ];
    let batches: Vec<Batch> = (0..)
        .zip(counts)
        .map(|(part, counts)| {
            let mut batch = Batch::new();
            let ehr = batch.add_ehr(ehr_row("one"));
            for (number, (time, count)) in (0..).zip(counts) {
                let uid = format!("{part}-{number}");
                let json = observation(&format!("{uid}::test::1"), time, count).to_string();
                add_composition(&mut batch, ehr, number, uid, &json, &layouts);
            }
            batch
        })
        .collect();
    for (batches, last) in [(&batches[..1], 2), (&batches[..], 6)] {
        for is_backward in [false, true] {
            let (answers, reduced) = answers(&guide, batches, Options::default(), is_backward);
            assert_eq!(reduced, 1);
            let value = answers[0]["results"].to_string();
            assert!(value.contains(&format!(r#""magnitude":{last}"#)), "{value}");
        }
    }
}

#[test]
fn latest_rows_have_the_results_of_all_rows() {
    let batches = [3, 4].map(|seed| batch(&Generator::new(seed, 12, 240)));
    let traced = Options {
        trace: true,
        ..Options::default()
    };
    let (mut reduced, mut results) = (0, 0);
    for seed in 0..60 {
        let guide = guide(&mut Random::new(seed));
        let (all, none) = answers(&guide, &batches, traced, false);
        assert_eq!(none, 0, "a trace lists all instances");
        for is_backward in [false, true] {
            let (latest, queries) = answers(&guide, &batches, Options::default(), is_backward);
            assert_eq!(latest, all, "seed {seed}");
            reduced += queries;
        }
        let lists = all.iter().filter_map(|answer| answer["results"].as_array());
        results += lists.map(Vec::len).sum::<usize>();
    }
    assert!(
        reduced > 60 && results > 500,
        "{reduced} reduced, {results} results"
    );
}
