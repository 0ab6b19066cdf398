//! The time of structured values on their way from wasm to JavaScript: as JSON text that
//! `JSON.parse` reads, and as objects that serde-wasm-bindgen builds. ARCHITECTURE.md, "The border
//! of wasm", has the figures and the choice.
//!
//! ```text
//! cargo build --package xtask --features wasm-tests --bin wasm-test-runner
//! CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=$PWD/target/debug/wasm-test-runner cargo test \
//!   --profile wasm --target wasm32-unknown-unknown --package aqlite-wasm-tests --test transfer \
//!   -- --include-ignored --nocapture
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

#[path = "../../it/notation.rs"]
#[allow(dead_code, reason = "the native tests use more of it")]
mod notation;

use aqlite::aql::{Budget, Cell, Parameters, QueryOptions, ResultSet, Run, prepare};
use js_sys::{Date, JSON};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer as Serialization};
use serde_json::{Value, json};
use serde_wasm_bindgen::Serializer;
use wasm_bindgen_test::{console_log, wasm_bindgen_test};

/// The milliseconds that a measurement lasts.
const MILLISECONDS: f64 = 400.0;

/// Returns the mean duration of a call in microseconds.
fn measured(call: impl Fn()) -> f64 {
    let (started, mut calls) = (Date::now(), 0_u32);
    while Date::now() - started < MILLISECONDS {
        (0..20).for_each(|_| call());
        calls += 20;
    }
    (Date::now() - started) * 1000.0 / f64::from(calls)
}

/// A cell as a value of JavaScript. A number becomes a double.
struct AsValue<'c>(Cell<&'c str>);

impl Serialize for AsValue<'_> {
    fn serialize<S: Serialization>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Cell::Null => to.serialize_unit(),
            Cell::Boolean(flag) => to.serialize_bool(flag),
            Cell::Text(text) | Cell::Json(text) => to.serialize_str(text),
            Cell::Number(_) => {
                let mut text = String::new();
                self.0.write_json(&mut text);
                to.serialize_f64(text.parse().unwrap())
            }
        }
    }
}

/// The rows of a result as arrays of arrays.
struct AsRows<'r>(&'r ResultSet);

impl Serialize for AsRows<'_> {
    fn serialize<S: Serialization>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut rows = to.serialize_seq(None)?;
        for row in self.0.rows() {
            rows.serialize_element(&row.iter().map(AsValue).collect::<Vec<_>>())?;
        }
        rows.end()
    }
}

/// Returns a result of a number of rows with two texts and two numbers.
fn result(rows: usize) -> ResultSet {
    let mut data = String::from("EHR e1\n");
    for number in 0..rows {
        data += &format!(
            "COMPOSITION[openEHR-EHR-COMPOSITION.x.v1] c{number}\n  OBSERVATION[openEHR-EHR-OBSERVATION.a.v1] o\n    HISTORY[at0001] h\n      POINT_EVENT[at0002] e = 2020-01-01T00:00:00Z\n        ITEM_TREE[at0003] t\n          ELEMENT[at0004] s = {number}.50 mm[Hg]\n"
        );
    }
    let batch = notation::Repository::read(&data).unwrap().batch();
    let q = "SELECT c/name/value, e/time/value, l/value/magnitude, l/value/precision FROM COMPOSITION c CONTAINS POINT_EVENT e CONTAINS ELEMENT l";
    let plan = prepare(q, &Parameters::default(), &QueryOptions::default()).unwrap();
    let never = || false;
    let now = "2026-01-01T00:00:00Z";
    let mut run = Run::new(&plan, now, Budget::default(), &never);
    run.push(&batch);
    let result = run.finish().ok().unwrap();
    assert_eq!(result.len(), rows);
    result
}

fn compare(name: &str, text: impl Fn() -> String, objects: impl Serialize) {
    let as_text = measured(|| {
        JSON::parse(&text()).unwrap();
    });
    let as_objects = measured(|| {
        objects.serialize(&Serializer::json_compatible()).unwrap();
    });
    let bytes = text().len();
    console_log!("{name} ({bytes} bytes): text {as_text:.1} µs, objects {as_objects:.1} µs");
}

#[wasm_bindgen_test]
#[ignore = "a measurement"]
fn text_and_objects() {
    let diagnostic = json!({ "from": 9, "to": 12, "severity": "error", "code": "AQL0203", "message": "`dta` is not an attribute of OBSERVATION", "help": "did you mean `data`?" });
    let option = json!({ "label": "archetype_node_id", "kind": "attribute", "detail": "String", "insert": "archetype_node_id" });
    compare("a diagnostic", || diagnostic.to_string(), &diagnostic);
    let options = Value::from(vec![option; 40]);
    compare("40 completions", || options.to_string(), &options);
    for rows in [20, 1000] {
        let result = result(rows);
        let text = || {
            let mut text = String::new();
            result.write_rows(&mut text);
            text
        };
        compare(&format!("{rows} rows"), text, AsRows(&result));
    }
}

/// Both ways give the same value: the comparison is fair.
#[wasm_bindgen_test]
fn both_ways_give_the_same_value() {
    let value = json!({ "rows": [["a", 1.5, null, true]], "columns": [{ "name": "x" }] });
    let objects = value.serialize(&Serializer::json_compatible()).unwrap();
    assert_eq!(JSON::stringify(&objects).unwrap(), value.to_string());
}
