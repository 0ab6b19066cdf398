//! Templates and cards by example: `tests/cases/gdl/templates.txt`.

use crate::gdl::{compiled, ontology, run};
use aqlite::gdl::value::Value;
use aqlite::gdl::{DataInstance, fixture, output};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;

const NOW: &str = "2024-02-29T12:00:00+01:00";

#[derive(Default)]
struct Case {
    title: String,
    given: Vec<Vec<(String, Value)>>,
    templates: Map<String, Json>,
    cards: Vec<Json>,
    when: Vec<String>,
    then: Vec<String>,
    expected: Vec<Json>,
    expected_cards: Vec<Json>,
}

fn statements(text: &str) -> Vec<String> {
    text.split(";;").map(|s| s.trim().to_owned()).collect()
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        let (key, rest) = line.split_once(": ").unwrap();
        let json = || serde_json::from_str(rest).unwrap_or_else(|e| panic!("{line}: {e}"));
        if key == "case" {
            cases.push(Case {
                title: rest.to_owned(),
                ..Case::default()
            });
            continue;
        }
        let case = cases.last_mut().unwrap();
        match key {
            "given" => {
                let pair = |s: String| {
                    s.split_once('=')
                        .map(|(name, literal)| (name.to_owned(), fixture::literal(literal)))
                        .unwrap()
                };
                case.given
                    .push(statements(rest).into_iter().map(pair).collect());
            }
            "card" => case.cards.push(json()),
            "when" => case.when = statements(rest),
            "do" => case.then = statements(rest),
            "expect" => case.expected.push(json()),
            "expect card" => case.expected_cards.push(json()),
            template => {
                let id = template
                    .strip_prefix("template ")
                    .unwrap_or_else(|| panic!("{line}?"));
                case.templates.insert(
                    id.to_owned(),
                    json!({"id": id, "model_id": "Resource", "object": json()}),
                );
            }
        }
    }
    cases
}

/// Returns whether a card contains the expected members.
fn holds(expected: &Json, found: &Json) -> bool {
    match (expected, found) {
        (Json::Object(expected), Json::Object(found)) => expected
            .iter()
            .all(|(name, value)| found.get(name).is_some_and(|f| holds(value, f))),
        _ => expected == found,
    }
}

impl Case {
    /// Returns the difference between expected and actual cards.
    fn difference(&self) -> Option<String> {
        let names: BTreeSet<&String> = self.given.iter().flatten().map(|(name, _)| name).collect();
        let path = |name: &str| format!("/data[at0001]/items[{name}]");
        let elements: Map<String, Json> = names
            .iter()
            .map(|name| ((*name).clone(), json!({"path": path(name)})))
            .collect();
        let guide = compiled(&json!({
            "id": "case",
            "description": {"references": [{"label": "The paper", "url": "https://example.org/paper"}]},
            "definition": {
                "data_bindings": {
                    "in": {"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "elements": elements},
                    "out": {"model_id": "openEHR-EHR-OBSERVATION.out.v1", "type": "OUTPUT", "elements": {"x": {"path": path("x")}}}},
                "templates": self.templates,
                "rules": {"r": {"priority": 1, "when": self.when, "then": self.then, "cards": self.cards}},
            },
            "ontology": ontology(),
        }));
        let instance = |values: &Vec<(String, Value)>| DataInstance {
            model_id: "openEHR-EHR-OBSERVATION.in.v1".to_owned(),
            values: values
                .iter()
                .map(|(name, value)| (path(name), value.clone()))
                .collect(),
        };
        let data: Vec<DataInstance> = self.given.iter().map(instance).collect();
        let run = run(&guide, &guide.instances_of(&data), NOW);
        let objects = run
            .outputs
            .iter()
            .flat_map(|o| &o.values)
            .filter(|v| matches!(v.value, Value::Object(_)));
        let objects: Vec<Json> = objects.map(|v| output::rm_json(&v.value)).collect();
        let cards: Vec<Json> = run
            .cards
            .iter()
            .map(|card| serde_json::to_value(card).unwrap())
            .collect();
        let cards_hold = cards.len() == self.expected_cards.len()
            && self
                .expected_cards
                .iter()
                .zip(&cards)
                .all(|(e, f)| holds(e, f));
        (objects != self.expected || !cards_hold)
            .then(|| format!("{}: {} {}", self.title, json!(objects), json!(cards)))
    }
}

#[test]
fn templates_and_cards_are_filled_as_their_cases_say() {
    let text = std::fs::read_to_string("tests/cases/gdl/templates.txt").unwrap();
    let cases = cases(&text);
    let wrong: Vec<String> = cases.iter().filter_map(Case::difference).collect();
    assert!(
        wrong.is_empty() && cases.len() > 20,
        "\n{}",
        wrong.join("\n")
    );
}
