//! Guides in the interfaces of the page and of developers: forms, descriptions, fixtures.

use aqlite::gdl::form::{Choice, Control, Input, inputs};
use aqlite::gdl::suite::Suite;
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, Options, describe};
use serde_json::json;

const GUIDE: &str = r#"{
  "id": "Form.v1", "concept": "gt0001", "language": {"original_language": "ISO_639-1::en"},
  "description": {"details": {"en": {"purpose": "To show a form"}, "de": {"purpose": "Ein Formular zeigen"}}},
  "definition": {
    "data_bindings": {
      "gt0002": {"model_id": "openEHR-EHR-OBSERVATION.form.v1", "type": "INPUT", "elements": {
        "gt0010": {"path": "/data[at0001]/items[at0010]"},
        "gt0011": {"path": "/data[at0001]/items[at0011]", "data_type": "DV_QUANTITY", "units": ["mmol/l"]},
        "gt0012": {"path": "/data[at0001]/items[at0012]"},
        "gt0013": {"path": "/data[at0001]/items[at0013]", "data_type": "DV_CODED_TEXT", "allowed_values": ["local::at0005|Yes|", "local::at0006|No|"]},
        "gt0014": {"path": "/data[at0001]/items[at0014]"},
        "gt0015": {"path": "/data[at0001]/items[at0015]"},
        "gt0016": {"path": "/data[at0001]/items[at0016]"},
        "gt0017": {"path": "/data[at0001]/items[at0017]"},
        "gt0018": {"path": "/data/events/time"},
        "gt0019": {"path": "/data[at0001]/items[at0019]"}}},
      "gt0003": {"model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT", "elements": {"gt0030": {"path": "/data[at0001]/items[at0030]"}}}},
    "rules": {
      "gt0040": {"priority": 1, "when": ["$gt0010.unit=='kg'", "$gt0010 < 80,lb", "$gt0011>3,mg/dl",
        "$gt0012==1|local::at0008|High| || $gt0012==0|local::at0007|Low|", "$gt0013==local::at0005|Yes|", "$gt0014==true",
        "($currentDateTime-$gt0015)/1,a > 18", "$gt0016.magnitude > 2", "$gt0017 is_a local::gt0050|Statin|", "$gt0019=='x'"],
        "then": ["$gt0030=2|local::at0031|Bad|"]}}},
  "ontology": {"term_definitions": {"en": {"terms": {"gt0001": {"text": "Form"}, "gt0010": {"text": "Weight", "description": "of the body"},
      "gt0050": {"text": "Statin"}}}, "de": {"terms": {"gt0010": {"text": "Gewicht"}}}},
    "term_bindings": {"ATC": {"bindings": {"gt0050": {"codes": ["ATC::C10AA"]}}}}}
}"#;

fn form(language: &str) -> Vec<Input> {
    inputs(&gdl::parse(GUIDE).unwrap().compile(), language)
}

#[test]
fn the_control_of_an_input_follows_from_its_use() {
    let form = form("en");
    let controls: Vec<(&str, Control)> = form
        .iter()
        .map(|i| (i.variable.as_str(), i.control))
        .collect();
    let expected = [
        ("gt0010", Control::Quantity),
        ("gt0011", Control::Quantity),
        ("gt0012", Control::Ordinal),
        ("gt0013", Control::CodedText),
        ("gt0014", Control::Boolean),
        ("gt0015", Control::DateTime),
        ("gt0016", Control::Count),
        ("gt0017", Control::CodedText),
        ("gt0018", Control::DateTime),
        ("gt0019", Control::Text),
    ];
    assert_eq!(controls, expected);
    assert_eq!(form[0].units, ["kg", "lb"]);
    assert_eq!(
        (form[0].name.as_str(), form[0].description.as_str()),
        ("Weight", "of the body")
    );
    assert_eq!(form[1].units, ["mmol/l", "mg/dl"]);
    let choice = |literal: &str, text: &str| Choice {
        literal: literal.into(),
        text: text.into(),
    };
    assert_eq!(
        form[2].options,
        [
            choice("0|local::at0007|Low|", "Low"),
            choice("1|local::at0008|High|", "High")
        ]
    );
    assert_eq!(
        form[3].options,
        [
            choice("local::at0005|Yes|", "Yes"),
            choice("local::at0006|No|", "No")
        ]
    );
    assert_eq!(form[7].options, [choice("ATC::C10AA|Statin|", "Statin")]);
    assert_eq!(self::form("de")[0].name, "Gewicht");
}

#[test]
fn a_guide_is_described_and_tried_out() {
    let answer = describe::describe(
        GUIDE,
        "de",
        Moment::parse("2024-01-01T00:00:00Z", 0).unwrap(),
        Options::default(),
    )
    .unwrap();
    assert_eq!(
        (&answer["id"], &answer["purpose"], &answer["languages"]),
        (
            &json!("Form.v1"),
            &json!("Ein Formular zeigen"),
            &json!(["en", "de"])
        )
    );
    assert!(
        answer["bindings"][0]["aql"]
            .as_str()
            .unwrap()
            .contains("CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.form.v1]")
    );
    assert_eq!(answer["outputs"][0]["variable"], "gt0030");
    let given = [
        ("gt0010", "70,kg"),
        ("gt0011", "4,mg/dl"),
        ("gt0012", "0|local::at0007|Low|"),
        ("gt0013", "local::at0005|Yes|"),
        ("gt0014", "true"),
        ("gt0015", "1980-01-01"),
        ("gt0016", "3"),
        ("gt0017", "ATC::C10AA05|x|"),
        ("gt0019", "x"),
    ];
    let given: Vec<(String, String)> = given
        .iter()
        .map(|(code, value)| ((*code).to_owned(), (*value).to_owned()))
        .collect();
    let run = describe::try_out(
        &GUIDE.replace("$gt0010 < 80,lb", "$gt0010 < 80,kg"),
        &given,
        "en",
        Moment::parse("2024-01-01T00:00:00Z", 0).unwrap(),
        Options::default(),
    );
    let run = run.unwrap();
    assert_eq!(run["fired"], json!(["gt0040"]));
    assert_eq!(
        run["results"][0]["values"][0]["literal"],
        "2|local::at0031|Bad|"
    );
    assert_eq!(run["cards"][0]["summary"], "Form: gt0030 Bad");
    assert_eq!(
        run["trace"]["rules"][0]["conditions"]
            .as_array()
            .unwrap()
            .len(),
        10
    );
}

#[test]
fn a_guide_runs_on_the_answers_to_its_queries() {
    let row = r#"[{"_type":"DV_QUANTITY","magnitude":70.5,"units":"kg"},null,null,null,null,null,null,null,{"_type":"DV_DATE_TIME","value":"2023-05-01T08:00:00Z"},null,"u::s::1"]"#;
    let answers = [(
        "gt0002".to_owned(),
        format!(r#"{{"q":"…","columns":[],"rows":[{row}]}}"#),
    )];
    let run = describe::run_on_answers(
        GUIDE,
        &answers,
        "en",
        Moment::parse("2024-01-01T00:00:00Z", 0).unwrap(),
        Options::default(),
    )
    .unwrap();
    let used = &run["trace"]["inputs"][0]["used"][0];
    assert_eq!(
        (
            &used["composition"],
            &used["time"],
            &used["values"][0]["value"]
        ),
        (
            &json!("u::s::1"),
            &json!("2023-05-01T08:00:00Z"),
            &json!("70.5 kg")
        )
    );
    let before = describe::run_on_answers(
        GUIDE,
        &answers,
        "en",
        Moment::parse("2022-01-01T00:00:00Z", 0).unwrap(),
        Options::default(),
    )
    .unwrap();
    assert_eq!(before["trace"]["inputs"][0]["found"], 0);
}

const FIXTURE: &str = "\
guidelines:
  \"1\": Form.v1
test_cases:
  - id: everything fits
    input:
      \"1\":
        gt0010|Weight: 70,kg
        gt0013: local::at0009|Perhaps|
        gt0099: 5
        gt0011: 7,mg
    expected_output:
      \"1\":
        gt0030|Class: 2|local::at0031|Bad|
        gt0010: 5,kg
  - id: nothing is expected
    input:
      1: {}
    expected_output: {}
";

#[test]
fn fixtures_are_run_and_checked() {
    let guide = gdl::parse(GUIDE).unwrap().compile();
    let suite = Suite::read(FIXTURE).unwrap();
    let found: Vec<(usize, &str)> = suite
        .lint(&guide)
        .iter()
        .map(|d| (FIXTURE[..d.span.start].matches('\n').count() + 1, d.code))
        .collect();
    assert_eq!(
        found,
        [
            (2, "GDL0516"),
            (8, "GDL0513"),
            (9, "GDL0511"),
            (10, "GDL0512"),
            (14, "GDL0514")
        ]
    );
    let answer = describe::run_fixture(
        GUIDE,
        FIXTURE,
        Moment::parse("2024-01-01T00:00:00Z", 0).unwrap(),
    )
    .unwrap();
    assert_eq!(answer["cases"][0]["passed"], false);
    assert_eq!(
        answer["cases"][0]["differences"][0],
        "gt0030: expected `2|local::at0031|Bad|`, found nothing"
    );
    assert_eq!(
        (&answer["cases"][1]["passed"], &answer["cases"][1]["line"]),
        (&json!(true), &json!(15))
    );
    let at_a_time = Suite::read(&format!(
        "current_datetime: 2024-01-01T00:00:00Z\n{FIXTURE}"
    ))
    .unwrap();
    assert_eq!(at_a_time.lint(&guide)[0].code, "GDL0513");
    let twice = Suite::read(&FIXTURE.replace("gt0099: 5", "gt0010: 71,kg")).unwrap();
    assert_eq!(twice.lint(&guide)[2].code, "GDL0515");
    let other = Suite::read(&FIXTURE.replace("Form.v1", "Other.v1")).unwrap();
    assert_eq!(other.lint(&guide)[0].code, "GDL0510");
    for (text, code) in [
        ("a: b", "GDL0502"),
        ("guidelines:\n  1: x\n", "GDL0502"),
        ("a: [", "GDL0501"),
    ] {
        assert_eq!(Suite::read(text).unwrap_err().code, code, "{text}");
    }
}

#[test]
fn a_failing_case_names_a_change_that_lets_it_pass() {
    let guide = r#"{"id": "Cause.v1", "definition": {"data_bindings": {
        "gt0002": {"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "elements": {
            "gt0003": {"path": "/data[at0001]/items[at0003]"}, "gt0004": {"path": "/data[at0001]/items[at0004]"}}},
        "gt0005": {"model_id": "openEHR-EHR-OBSERVATION.out.v1", "type": "OUTPUT", "elements": {
            "gt0006": {"path": "/data[at0001]/items[at0006]"}, "gt0007": {"path": "/data[at0001]/items[at0007]"}}}},
      "rules": {"gt0010": {"priority": 2, "when": ["$gt0003!=null"], "then": ["$gt0006.magnitude=floor(($currentDateTime-$gt0003)/1,a)"]},
        "gt0011": {"priority": 1, "when": [], "then": ["$gt0007.precision=1", "$gt0007.unit='1'", "$gt0007.magnitude=$gt0004.magnitude", "$gt0006.magnitude=$gt0007.magnitude*10"]}}}}"#;
    let guide = gdl::parse(guide).unwrap().compile();
    let now = Moment::parse("2025-06-01T00:00:00Z", 0).unwrap();
    let cause = |time: &str, input: &str, expected: &str| {
        let text = format!(
            "{time}guidelines:\n  1: Cause.v1\ntest_cases:\n  - id: a\n    input:\n      1:\n        {input}\n    expected_output:\n      1:\n        {expected}\n"
        );
        let suite = Suite::read(&text).unwrap();
        assert!(
            !suite
                .run(&suite.cases[0], &guide, now, gdl::Options::default())
                .unwrap()
                .differences
                .is_empty(),
            "{text}"
        );
        suite
            .cause(&suite.cases[0], &guide, now)
            .unwrap_or_default()
    };
    let born = "gt0003: 1990-01-01T00:00:00Z";
    assert!(cause("", born, "gt0006: 30").starts_with("it passes at 2020-12-01T00:00:00Z"));
    assert_eq!(
        cause(
            "current_datetime: 2025-06-01T00:00:00Z\n",
            born,
            "gt0006: 30"
        ),
        ""
    );
    assert_eq!(
        cause("", "gt0004: '2.26,1'", "gt0006: 22"),
        "it passes where quantities are not rounded when they are stored"
    );
    assert_eq!(
        cause("", born, "gt0007: '0.0,1'"),
        "it passes where missing values are made up, as published"
    );
    assert_eq!(cause("", "gt0004: '2.26,1'", "gt0006: 5"), "");
}
