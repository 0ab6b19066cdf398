//! Guides: evaluation on values and on stored documents, by the core and through the facade.

use super::service::{EHR, finish, repository_with_weights};
use super::{GUIDE, NOW};
use aqlite::gdl::time::Moment;
use aqlite::gdl::value::Value;
use aqlite::gdl::{DataInstance, Options, RunInput};
use aqlite_wasm::guide::{describe_guide, run_guide_on, test_guide, try_guide};
use serde_json::{Value as Json, json};
use wasm_bindgen_test::wasm_bindgen_test;

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

/// Returns the class that the guide finds for a weight.
fn class_of(weight: f64) -> Option<Value> {
    let guide = aqlite::gdl::parse(GUIDE).unwrap().compile();
    let path = "/data[at0002]/events[at0003]/data[at0001]/items[at0004]";
    let instance = DataInstance {
        model_id: "openEHR-EHR-OBSERVATION.body_weight.v2".into(),
        values: vec![(path.into(), Value::quantity(weight, "kg"))],
    };
    let input = RunInput {
        instances: &guide.instances_of(&[instance]),
        clock: Moment::parse(NOW, 0).unwrap().into(),
        language: "en",
        options: Options::default(),
        terminology: None,
    };
    let run = guide.run(&input).ok().unwrap();
    run.value(&guide, "gt0005").cloned()
}

#[wasm_bindgen_test]
fn a_guide_sorts_weights_at_its_limit() {
    assert_eq!(class_of(100.0), Some(Value::Count(1)));
    assert_eq!(class_of(100.5), Some(Value::Count(2)));
}

#[wasm_bindgen_test]
fn a_guide_runs_on_the_rows_of_its_own_queries() {
    let repository = repository_with_weights();
    let described = parsed(&describe_guide(GUIDE, "en", NOW, None).unwrap());
    let binding = &described["bindings"][0];
    let parameters = json!({ "ehr_id": EHR }).to_string();
    let aql = binding["aql"].as_str().unwrap();
    let rows = finish(repository.begin(aql, &parameters, NOW)).unwrap();
    let answers = json!({ binding["id"].as_str().unwrap(): rows }).to_string();
    let run = parsed(&run_guide_on(GUIDE, &answers, "en", NOW, None).unwrap());
    assert_eq!(run["fired"], json!(["gt0011"]), "{run:#}");
}

#[wasm_bindgen_test]
fn a_guide_runs_on_the_values_of_a_form() {
    let run = parsed(&try_guide(GUIDE, r#"{"gt0003":"80,kg"}"#, "en", NOW, None).unwrap());
    assert_eq!(run["fired"], json!(["gt0012"]));
}

#[wasm_bindgen_test]
fn a_fixture_shows_which_case_differs() {
    let fixture = "guidelines:\n  1: weight_class.v1\ntest_cases:\n- id: heavy\n  input:\n    1:\n      gt0003|Weight|: 120,kg\n  expected_output:\n    1:\n      gt0005|Class|: 2\n- id: wrong\n  input:\n    1:\n      gt0003|Weight|: 20,kg\n  expected_output:\n    1:\n      gt0005|Class|: 2\n";
    let tested = parsed(&test_guide(GUIDE, fixture, NOW).unwrap());
    let passed: Vec<&Json> = tested["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| &case["passed"])
        .collect();
    assert_eq!(passed, [&json!(true), &json!(false)], "{tested:#}");
}
