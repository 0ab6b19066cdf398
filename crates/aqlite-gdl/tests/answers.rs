//! Runs of guides on result sets in JSON.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use aqlite_gdl::time::Moment;
use aqlite_gdl::{Options, describe};
use serde_json::{Value, json};

/// Returns the copies of a stored value, made by assignment and by `create`.
fn copies_of(value: &Value) -> Vec<Value> {
    let path = json!({"path": "/data[at0001]/items[at0002]"});
    let guide = json!({"id": "copies", "definition": {
        "data_bindings": {
            "in": {"model_id": "openEHR-EHR-EVALUATION.a.v1", "type": "INPUT", "elements": {"a": path}},
            "out": {"model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT", "elements": {"x": path}}},
        "rules": {
            "r": {"priority": 2, "then": ["$x=$a"]},
            "s": {"priority": 1, "then": ["$out.create($x=$a)"]}}}});
    let answer = json!({"rows": [[value, null, "u::s::1"]]}).to_string();
    let now = Moment::parse("2030-01-01T00:00:00Z", 0).unwrap();
    let answers = [(String::from("in"), answer)];
    let guide = guide.to_string();
    let run = describe::run_on_answers(&guide, &answers, "en", now, Options::default()).unwrap();
    let results = run.get("results").and_then(Value::as_array).unwrap();
    let copies = results
        .iter()
        .map(|r| r.pointer("/values/0/value").unwrap());
    copies.cloned().collect()
}

#[test]
fn a_copy_of_an_answer_is_the_stored_value() {
    for value in [
        json!({"_type": "DV_DATE", "value": "2020-05"}),
        json!({"_type": "DV_QUANTITY", "magnitude": 5.5, "units": "mg", "magnitude_status": "<"}),
        json!({"_type": "DV_COUNT", "magnitude": 9_007_199_254_740_993_i64}),
        json!({"_type": "DV_IDENTIFIER", "id": "1"}),
        json!({"_type": "DV_PARSABLE", "value": "x", "formalism": "text/plain"}),
    ] {
        assert_eq!(copies_of(&value), [value.clone(), value]);
    }
}
