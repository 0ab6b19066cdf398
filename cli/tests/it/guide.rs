//! The command `guide`.

use super::program::{Folder, sample};
use serde_json::Value;

const SCORE: &str = "guides/Sample_early_warning_score.v1.gdl2.json";
const CATEGORY: &str = "guides/Sample_blood_pressure_category.v1.gdl2.json";

#[test]
fn guide_runs_on_each_ehr() {
    let ran = sample().run(&["guide", "run", CATEGORY, "-d", "data"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 20);
    let fired = |line: &&Value| !line["rules_executed"].as_array().unwrap().is_empty();
    assert!(lines.iter().filter(fired).count() > 5);
    let ehr = lines[3]["_ehr_id"].as_str().unwrap();
    let one = sample().run(&["guide", "run", CATEGORY, "-d", "data", "--ehr", ehr]);
    assert_eq!(
        one.out.lines().collect::<Vec<_>>(),
        [ran.out.lines().nth(3).unwrap()]
    );
    for command in ["run", "explain"] {
        let ran = sample().run(&["guide", command, CATEGORY, "-d", "data", "--ehr", "typo"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{command}");
        assert!(
            ran.err.contains("the data have no EHR `typo`"),
            "{}",
            ran.err
        );
    }
    let why = sample().run(&["guide", "explain", CATEGORY, "-d", "data", "--ehr", ehr]);
    assert!(why.out.contains("fire"), "{}", why.out);
}

#[test]
fn explanation_on_data_that_cannot_be_read_has_findings() {
    let folder = Folder::new();
    folder.write(
        "d/e1/a.json",
        &super::program::generator().composition(0).json,
    );
    folder.write("d/e1/b.json", "{");
    folder.write("g.json", aqlite::samples::guides()[0].text);
    let explain = ["guide", "explain", "g.json", "-d", "d", "--ehr", "e1"];
    let ran = folder.run(&explain);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("b.json"), "{}", ran.err);
    let ran = folder.run(&[&explain[..], &["--skip-invalid"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn explanation_on_data_needs_an_ehr() {
    let ran = sample().run(&["guide", "explain", SCORE, "-d", "data"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("`-d` needs `--ehr`"), "{}", ran.err);
}

#[test]
fn explanation_refuses_unknown_variables_and_decimal_commas() {
    for (input, expected) in [
        (
            "gt9999=30,/min",
            "the guide has no variable `gt9999` (GDL0511); help: it has gt0003, ",
        ),
        (
            "gt0003=30,5,/min",
            "`30,5,/min` has a decimal comma (GDL0517); help: write `30.5,/min`",
        ),
    ] {
        let ran = sample().run(&["guide", "explain", SCORE, "--input", input]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{input}");
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

/// A name of a guide cannot change the state of a terminal.
#[test]
fn control_characters_of_an_explanation_are_escaped() {
    let folder = Folder::new();
    let terms = r#""terms": {"gt0006": {"id": "gt0006", "text": "a\u001b[2Jb"}}"#;
    folder.write("g.json", &GUIDE.replace(r#""terms": {}"#, terms));
    let ran = folder.run(&["guide", "explain", "g.json", "--input", "gt0003=80,kg"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains(r"a\u{1b}[2Jb"), "{}", ran.out);
}

#[test]
fn explanation_names_rules_conditions_and_values() {
    let ran = sample().run(&["guide", "explain", SCORE, "--input", "gt0003=30,/min"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for expected in [" fired", "did not fire", "unknown ", "gt0003"] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    let ran = sample().run(&[
        "guide",
        "explain",
        SCORE,
        "--input",
        "gt0003=30,/min",
        "--json",
    ]);
    let run: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(run["trace"]["rules"].is_array());
}

const GUIDE: &str = r#"{"id": "Demo.v1", "gdl_version": "2.0", "concept": "gt0001", "definition": {
  "data_bindings": {
    "gt0002": {"id": "gt0002", "model_id": "openEHR-EHR-OBSERVATION.body_weight.v2", "type": "INPUT",
      "elements": {"gt0003": {"id": "gt0003", "path": "/data[at0002]/events[at0003]/data[at0001]/items[at0004]"}}},
    "gt0005": {"id": "gt0005", "model_id": "openEHR-EHR-OBSERVATION.score.v1", "type": "OUTPUT",
      "elements": {"gt0004": {"id": "gt0004", "path": "/data[at0002]/events[at0003]/data[at0001]/items[at0005]"}}}},
  "rules": {"gt0006": {"id": "gt0006", "priority": 1, "when": ["$gt0003.magnitude > 100"], "then": ["$gt0004.magnitude=1"]}}},
  "ontology": {"term_definitions": {"en": {"terms": {}}}}}"#;

#[test]
fn fixtures_beside_guides_are_run() {
    let folder = Folder::new();
    folder.write("g/Demo.v1.gdl2.json", GUIDE);
    let fixture = |expected: u32| {
        format!(
            "guidelines:\n  1: Demo.v1\ntest_cases:\n- id: heavy\n  input:\n    1:\n      gt0003|Weight: 120,kg\n  expected_output:\n    1:\n      gt0004|Score: {expected}\n"
        )
    };
    folder.write("g/Demo.v1.test.yml", &fixture(1));
    let ran = folder.run(&["guide", "test", "g", "--now", "2026-01-01T00:00:00Z"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "1 fixtures, 1 cases, 0 failed\n")
    );
    folder.write("g/Demo.v1.test.yml", &fixture(2));
    let ran = folder.run(&["guide", "test", "g", "--junit", "report.xml"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("FAILED: heavy"), "{}", ran.out);
    let report = std::fs::read_to_string(folder.path().join("report.xml")).unwrap();
    assert!(
        report.contains("<testsuite name=\"g/Demo.v1.test.yml\" tests=\"1\" failures=\"1\">"),
        "{report}"
    );
    folder.write("g/Demo.v1.test.yml", &fixture(1));
    std::fs::write(folder.path().join("g/Other.v1.gdl"), [0xff, 0xfe]).unwrap();
    let ran = folder.run(&["guide", "test", "g"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.out.contains("g/Other.v1.gdl: error: "), "{}", ran.out);
    let ran = folder.run(&["guide", "test", "absent"]);
    assert_eq!(ran.code, Some(2));
}
