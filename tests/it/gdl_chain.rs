//! Chains of guides: the results of earlier guides as the input of later ones.

use super::gdl::{NOW, compiled, file, instance, ontology, run};
use aqlite::gdl::fixture::text_form;
use aqlite::gdl::stored::value_of_json;
use aqlite::gdl::time::Moment;
use aqlite::gdl::{CompiledGuide, Instance, output};
use serde_json::{Value as Json, json};

#[test]
fn a_chain_of_guides_passes_results_on() {
    let (_, score) = file("chain_score.gdl2.json");
    let (_, advice) = file("chain_advice.gdl");
    let data = [instance(
        "openEHR-EHR-OBSERVATION.answers_demo.v1",
        &[("/data[at0001]/items[at0002]", "3|local::at0010|Often|")],
    )];
    let first = run(&score, &score.instances_of(&data), NOW);
    let mut instances = advice.instances_of(&data);
    advice.feed(
        &mut instances,
        &first.outputs,
        Moment::parse(NOW, 0).unwrap(),
    );
    let second = run(&advice, &instances, NOW);
    assert_eq!(
        second.value(&advice, "gt0007").map(text_form).as_deref(),
        Some("refer")
    );
}

/// The paths of two elements of an OBSERVATION, and of its times.
const SCORE: [&str; 2] = [
    "/data[at0001]/events[at0002]/data[at0003]/items[at0004]",
    "/data[at0001]/events[at0002]/data[at0003]/items[at0005]",
];
const SCORE_MODEL: &str = "openEHR-EHR-OBSERVATION.score.v1";

/// Returns a guide that carries out actions on the variables `x` and `y` of a score.
fn scoring(actions: &[&str]) -> CompiledGuide {
    let elements = json!({"x": {"path": SCORE[0]}, "y": {"path": SCORE[1]}});
    let out = json!({"model_id": SCORE_MODEL, "type": "OUTPUT", "elements": elements});
    compiled(
        &json!({"id": "scoring", "definition": {"data_bindings": {"out": out},
        "rules": {"r": {"priority": 1, "then": actions}}}}),
    )
}

/// Runs guides in order, and returns `x` and `y` as another guide with a predicate reads them. The
/// record has a score `7` at the time of evaluation.
fn read_after(guides: &[&[&str]], predicate: &str) -> String {
    let now = Moment::parse(NOW, 0).unwrap();
    let mut earlier = Vec::new();
    for actions in guides {
        earlier.extend(run(&scoring(actions), &[], NOW).outputs);
    }
    let predicates: Vec<&str> = Some(predicate)
        .filter(|p| !p.is_empty())
        .into_iter()
        .collect();
    let elements = json!({"x": {"path": SCORE[0]}, "y": {"path": SCORE[1]}});
    let reader = compiled(&json!({"id": "reader", "definition": {"data_bindings": {
        "in": {"model_id": SCORE_MODEL, "type": "INPUT", "elements": elements, "predicates": predicates}}}}));
    let times = [
        "/data/events/time",
        "/data[at0001]/events[at0002]/time",
        "/data[at0001]/origin",
    ];
    let values = times.map(|path| (path, NOW));
    let record = instance(SCORE_MODEL, &[&values[..], &[(SCORE[0], "7")]].concat());
    let mut instances = reader.instances_of(&[record]);
    reader.feed(&mut instances, &earlier, now);
    let run = run(&reader, &instances, NOW);
    let read = ["x", "y"].map(|code| {
        let value = run.value(&reader, code);
        value.map_or(String::from("nothing"), text_form)
    });
    read.join(" ")
}

#[test]
fn results_of_one_model_are_one_latest_instance() {
    let (one, two) = (["$x.magnitude=1"], ["$x.magnitude=2"]);
    let five = ["$y.magnitude=5"];
    for latest in [
        "",
        "max(/data/events/time)",
        "max(/data[at0001]/events[at0002]/time)",
        "max(/data[at0001]/origin)",
    ] {
        assert_eq!(read_after(&[&one, &two], latest), "2 nothing", "{latest}");
        assert_eq!(read_after(&[&one, &five], latest), "1 5", "{latest}");
        assert_eq!(read_after(&[&five, &one], latest), "1 5", "{latest}");
        let created = ["$out.create($x.magnitude=3)", "$out.create($x.magnitude=4)"];
        assert_eq!(read_after(&[&one, &created], latest), "4 nothing");
        assert_eq!(read_after(&[&created, &one], latest), "1 nothing");
        let set_last = ["$out.create($x.magnitude=3)", "$x.magnitude=4"];
        assert_eq!(read_after(&[&set_last], latest), "4 nothing", "{latest}");
    }
    let created_last = [
        "$x.magnitude=1",
        "$out.create($x.magnitude=3)",
        "$y.magnitude=5",
    ];
    assert_eq!(read_after(&[&created_last], ""), "3 5");
    let max = "max(/data/events/time)";
    let created = ["$out.create($x.magnitude=3)"];
    assert_eq!(read_after(&[&five, &created], max), "3 nothing", "apart");
    // A result is later than the data of its time.
    assert_eq!(read_after(&[&one], "min(/data/events/time)"), "7 nothing");
    assert_eq!(read_after(&[], max), "7 nothing");
    let other = "max(/data[at0001]/events[at0009]/time)";
    assert_eq!(
        read_after(&[&one], other),
        "nothing nothing",
        "no such event"
    );
    let since = "/data[at0001]/events[at0002]/time>=($currentDateTime-1,h)";
    assert_eq!(read_after(&[&one], since), "1 nothing");
    let flavor = ["$x.null_flavor=openehr::271|no information|"];
    assert_eq!(read_after(&[&flavor, &one], max), "1 nothing");
    assert_eq!(read_after(&[&one, &flavor], max), "nothing nothing");
}

#[test]
fn copies_pass_through_a_chain_as_they_are_stored() {
    let element =
        |path: &str| json!({"a": {"path": path}, "b": {"path": "/data[at0001]/items[at0009]"}});
    let copying = |id: &str, from: &str, to: &str| {
        let elements = element("/data[at0001]/items[at0002]");
        let outputs = json!({"x": elements["a"], "y": elements["b"]});
        compiled(&json!({"id": id, "definition": {
            "data_bindings": {
                "in": {"model_id": from, "type": "INPUT", "elements": elements},
                "out": {"model_id": to, "type": "OUTPUT", "elements": outputs}},
            "rules": {"r": {"priority": 1, "then": ["$x=$a", "$y=$b"]}}}}))
    };
    let models = ["one", "two", "three"].map(|name| format!("openEHR-EHR-EVALUATION.{name}.v1"));
    let first = copying("first", &models[0], &models[1]);
    let second = copying("second", &models[1], &models[2]);
    let interval = json!({"_type": "DV_INTERVAL", "lower": {"_type": "DV_COUNT", "magnitude": 1},
        "upper": {"_type": "DV_COUNT", "magnitude": 3}, "lower_unbounded": false, "upper_unbounded": false});
    let quantity =
        json!({"_type": "DV_QUANTITY", "magnitude": 5, "units": "mg", "magnitude_status": "<"});
    let mut instances = vec![vec![Instance {
        values: vec![
            value_of_json(&interval.to_string()),
            value_of_json(&quantity.to_string()),
        ],
        originals: vec![(1, std::sync::Arc::new(quantity.clone()))],
        ..Instance::default()
    }]];
    instances.resize_with(2, Vec::new);
    let outputs = run(&first, &instances, NOW).outputs;
    let mut instances = second.instances_of(&[]);
    second.feed(&mut instances, &outputs, Moment::parse(NOW, 0).unwrap());
    let run = run(&second, &instances, NOW);
    let values = &run.outputs[0].values;
    assert_eq!(output::rm_json(&values[0].value), interval);
    assert_eq!(values[1].original.as_deref(), Some(&quantity));
}

#[test]
fn a_resource_that_a_guide_made_is_read_by_the_next() {
    let resource = |id: &str, start: &str, code: &str| {
        let coding = json!([{"system": "ATC", "code": code, "display": "a drug"}]);
        json!({"id": id, "model_id": "Plan", "object": {"id": id, "start": start, "count": 3, "open": true, "for": {"coding": coding}}})
    };
    let first = compiled(&json!({"id": "first", "definition": {
        "data_bindings": {},
        "templates": {"first": resource("first", "{$currentDateTime}", "C10AA01"), "second": resource("second", "2013-04-20", "C09AA05")},
        "rules": {"r": {"priority": 1, "when": [], "then": ["use_template($first)", "use_template($second)"]}}}}));
    let bound = |predicates: Json| {
        json!({"model_id": "Plan", "type": "INPUT", "predicates": predicates, "elements": {
            "start": {"path": "/start"}, "count": {"path": "/count"}, "open": {"path": "/open"}, "drug": {"path": "/for/coding[0]"}}})
    };
    let chosen = |predicates: Json| {
        let out = json!({"model_id": "Out", "type": "OUTPUT", "elements": {
            "when": {"path": "/a"}, "many": {"path": "/b"}, "is": {"path": "/c"}, "what": {"path": "/d"}}});
        let next = compiled(
            &json!({"id": "next", "ontology": ontology(), "definition": {
            "data_bindings": {"in": bound(predicates), "out": out},
            "rules": {"r": {"priority": 1, "when": ["$start!=null"], "then": ["$when=$start", "$many=$count", "$is=$open", "$what=$drug"]}}}}),
        );
        let mut instances = next.instances_of(&[]);
        next.feed(
            &mut instances,
            &run(&first, &[], NOW).outputs,
            Moment::parse(NOW, 0).unwrap(),
        );
        let run = run(&next, &instances, NOW);
        ["when", "many", "is", "what"].map(|code| {
            run.value(&next, code)
                .map_or("nothing".to_owned(), text_form)
        })
    };
    let second = ["2013-04-20", "3", "true", "ATC::C09AA05|a drug|"];
    assert_eq!(chosen(json!([])), second, "the last is read");
    assert_eq!(chosen(json!(["/id=='second'"])), second);
    assert_eq!(
        chosen(json!(["/for/coding[0] is_a local::gt2001|ACE inhibitor|"])),
        second
    );
    assert_eq!(chosen(json!(["max(/start)"]))[3], "ATC::C10AA01|a drug|");
    assert_eq!(chosen(json!(["min(/start)"])), second);
    assert_eq!(chosen(json!(["/id=='third'"])), ["nothing"; 4]);
}
