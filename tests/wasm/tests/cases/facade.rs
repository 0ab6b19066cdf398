//! The functions that JavaScript calls: results, errors and editor services.

use super::service::{finish, repository_with_weights, send};
use super::{NOW, TEMPLATE, WEIGHT};
use aqlite_wasm::{Repository, format};
use js_sys::{Array, Function, Reflect};
use serde_json::{Value, json};
use wasm_bindgen_test::wasm_bindgen_test;

const WEIGHTS: &str = "SELECT o/data/events/data/items[at0004]/value/magnitude AS kg FROM EHR e CONTAINS OBSERVATION o ORDER BY kg";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[wasm_bindgen_test]
fn rows_come_as_json() {
    let repository = repository_with_weights();
    let rows = parsed(&finish(repository.begin(WEIGHTS, "{}", NOW)).unwrap());
    assert_eq!(rows["columns"][0]["name"], "kg");
    assert_eq!(rows["rows"], json!([[72.5], [120.5]]));
}

#[wasm_bindgen_test]
fn a_query_runs_in_steps() {
    let repository = repository_with_weights();
    let mut run = repository.begin(WEIGHTS, "{}", NOW).ok().unwrap();
    let steps = std::iter::repeat_with(|| run.step().unwrap()).take_while(Option::is_none);
    assert!(
        steps.count() > 0,
        "the text is written in a step of its own"
    );
}

#[wasm_bindgen_test]
fn a_request_runs_in_steps_with_the_permission_of_its_begin() {
    let mut repository = repository_with_weights();
    let url = "http://local/v1/admin/export";
    let begin =
        |repository: &Repository| repository.begin_request("GET", url, "{}", "", 1.796e12, "seed");
    let status = |request| {
        let text = finish(request).unwrap();
        parsed(text.lines().next().unwrap())["status"].clone()
    };
    repository.set_admin(true);
    let admitted = begin(&repository);
    repository.set_admin(false);
    assert_eq!(status(begin(&repository)), 403);
    assert_eq!(status(admitted), 200);
}

#[wasm_bindgen_test]
fn a_query_takes_parameters() {
    let repository = repository_with_weights();
    let q = "SELECT o/name/value FROM OBSERVATION o WHERE o/data/events/data/items[at0004]/value/magnitude > $least";
    let rows = parsed(&finish(repository.begin(q, r#"{"least":100}"#, NOW)).unwrap());
    assert_eq!(rows["rows"], json!([["Body weight"]]));
}

#[wasm_bindgen_test]
fn a_wrong_query_is_an_error_with_positions_in_utf16_units() {
    let repository = Repository::new("http://local", false);
    let q = "SELECT '𝛼', o/dta FROM OBSERVATION o";
    let error = finish(repository.begin(q, "{}", NOW)).unwrap_err();
    assert!(String::from(error.message()).contains("dta"));
    let diagnostics: Array = Reflect::get(&error, &"diagnostics".into()).unwrap().into();
    let from = Reflect::get(&diagnostics.get(0), &"from".into()).unwrap();
    assert_eq!(
        from.as_f64(),
        q.encode_utf16()
            .position(|unit| unit == u16::from(b'd'))
            .map(|at| at as f64)
    );
}

#[wasm_bindgen_test]
fn a_kept_result_has_several_forms() {
    let repository = repository_with_weights();
    let never = Function::new_no_args("return false");
    let rows = repository.rows(WEIGHTS, "{}", NOW, &never).ok().unwrap();
    assert_eq!(rows.ndjson().lines().count(), 2);
    assert_eq!(
        rows.csv(true).lines().collect::<Vec<_>>(),
        ["kg", "72.50", "120.50"]
    );
    assert_eq!(parsed(&rows.json())["rows"], json!([[72.5], [120.5]]));
}

#[wasm_bindgen_test]
fn the_editor_gets_completions_hovers_diagnostics_and_a_layout() {
    let repository = repository_with_weights();
    let q = "SELECT o/da FROM OBSERVATION o";
    let found = parsed(&repository.complete(q, 11).unwrap());
    assert_eq!(
        (&found["from"], &found["options"][0]["label"]),
        (&json!(9), &json!("data")),
        "{found:#}"
    );
    assert_eq!(parsed(&repository.hover(q, 19).unwrap())["from"], 17);
    assert_eq!(
        parsed(&repository.diagnose(q, NOW).ok().unwrap())[0]["code"],
        "AQL0203"
    );
    assert!(
        format("select e from EHR e")
            .unwrap()
            .starts_with("SELECT e")
    );
}

#[wasm_bindgen_test]
fn a_document_is_validated_and_simplified() {
    let repository = repository_with_weights();
    assert_eq!(repository.validate(WEIGHT, None).ok().unwrap(), "[]");
    let wrong = WEIGHT.replace("\"units\": \"kg\"", "\"units\": \"Cel\"");
    let found = parsed(&repository.validate(&wrong, None).ok().unwrap());
    assert_eq!(found[0]["severity"], "error", "{found:#}");
    let flat = parsed(&repository.simplified(WEIGHT, "FLAT").ok().unwrap());
    assert!(
        flat.as_object()
            .unwrap()
            .values()
            .any(|value| *value == json!(72.5)),
        "{flat:#}"
    );
}

#[wasm_bindgen_test]
fn a_journal_repeats_the_writes_of_a_repository() {
    let first = Repository::new("http://local", true);
    let url = "http://local/v1/ehr/7d44b88c-4199-4bad-97dc-d78268e01398";
    finish(first.begin_request("PUT", url, "{}", "", 1.796e12, "seed")).unwrap();
    let second = Repository::new("http://local", true);
    second
        .replay_journal(&first.take_journal_line().ok().unwrap().unwrap())
        .ok()
        .unwrap();
    let q = "SELECT e/ehr_id/value FROM EHR e";
    let rows = parsed(&finish(second.begin(q, "{}", NOW)).unwrap());
    assert_eq!(
        rows["rows"],
        json!([["7d44b88c-4199-4bad-97dc-d78268e01398"]])
    );
}

#[wasm_bindgen_test]
fn template_in_place_of_another_is_described() {
    let mut repository = Repository::new("http://local", false);
    repository.set_admin(true);
    let call = |call: &str, body: &str| {
        let xml = json!({ "content-type": "application/xml" });
        let answer = send(&repository, call, &xml, body);
        assert!(
            [200, 201, 204].contains(&answer.status),
            "{:#}",
            answer.body
        );
    };
    let is_described = |template: &str| repository.describe(template, "").unwrap() != "null";
    call("POST /definition/template/adl1.4", TEMPLATE);
    assert!(is_described("weight.en.v2"));
    call("DELETE /admin/template/weight.en.v2", "");
    let other = TEMPLATE.replace("weight.en.v2", "other.en.v2");
    call("POST /definition/template/adl1.4", &other);
    assert!(is_described("other.en.v2") && !is_described("weight.en.v2"));
}
