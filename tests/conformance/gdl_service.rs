//! Suite `gdl.service`: guides over REST, on stored data.
//!
//! Each guide of the published fixtures is uploaded. Each fixture gets an EHR with one composition,
//! which holds the inputs of the fixture at the paths of the guide's bindings. The guide then runs
//! on this EHR by `gdl/query`. Rules and results must be those of a run in the library on the same
//! values, without those that are dated after the time of the evaluation; the suites `gdl.…` compare
//! the library with the published verdicts.
//!
//! Without `--via` the suite runs on a service on memory. `--via sqlite` takes twice the time.

use crate::corpus::{Corpus, text_of};
use crate::gdl::{compiled, literals};
use crate::report::Case;
use crate::rows::short;
use crate::server::{Server, expect, tag};
use aqlite::gdl::guide::Direction;
use aqlite::gdl::output::{EhrRun, line, rm_json};
use aqlite::gdl::stored::value_of_json;
use aqlite::gdl::time::Moment;
use aqlite::gdl::value::Value as GuideValue;
use aqlite::gdl::{CompiledGuide, DataInstance, Options, RunInput, fixture};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A template that leaves the content of its COMPOSITION open.
const TEMPLATE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<template xmlns="http://schemas.openehr.org/v1" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <language><terminology_id><value>ISO_639-1</value></terminology_id><code_string>en</code_string></language>
  <description><lifecycle_state>draft</lifecycle_state></description>
  <uid><value>0b6d3e0e-3a52-4f2c-8f0f-6a64f5f6c001</value></uid>
  <template_id><value>conformance.open.v1</value></template_id>
  <concept>Open</concept>
  <definition>
    <rm_type_name>COMPOSITION</rm_type_name>
    <occurrences><lower_included>true</lower_included><upper_included>true</upper_included><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences>
    <node_id>at0000</node_id>
    <archetype_id><value>openEHR-EHR-COMPOSITION.encounter.v1</value></archetype_id>
    <term_definitions code="at0000"><items id="text">Encounter</items><items id="description">Encounter</items></term_definitions>
  </definition>
</template>"#;

/// The path of the time of an event in an OBSERVATION.
const EVENT_TIME: &str = "/data/events/time";

/// Runs the suite.
pub fn run(corpus: &Corpus) -> Vec<Case> {
    let mut by_guide: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for case in corpus.json_lines("gdl/cases.jsonl") {
        let file = format!("gdl/{}", text_of(&case, "guide"));
        by_guide.entry(file).or_default().push(case);
    }
    let vias = corpus.vias(&["memory"]);
    let servers: Result<Vec<(&str, Server)>, String> = vias
        .into_iter()
        .map(|via| Ok((via, prepared(via)?)))
        .collect();
    let mut cases = Vec::new();
    for (file, fixtures) in &by_guide {
        let guide = servers
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|servers| uploaded(corpus, file, servers));
        cases.extend(fixtures.iter().map(|fixture| {
            Case::check(text_of(fixture, "id"), || {
                let guide = guide.as_ref().map_err(Clone::clone)?;
                let servers = servers.as_ref().map_err(Clone::clone)?;
                let record = Record::of(guide, fixture)?;
                let expected = record.expected(guide, fixture)?;
                servers.iter().try_for_each(|(via, server)| {
                    record
                        .check(server, guide, fixture, &expected)
                        .map_err(|why| format!("{via}: {why}"))
                })
            })
        }));
    }
    cases
}

/// Returns an empty server with the template.
fn prepared(via: &str) -> Result<Server, String> {
    let server = Server::empty(via, "conformance.example")?;
    let xml = [("Content-Type", "application/xml")];
    let answer = server.send("POST", "/definition/template/adl1.4", &xml, TEMPLATE)?;
    expect(&answer, 201)?;
    Ok(server)
}

/// Uploads a guide, and returns it compiled.
fn uploaded(
    corpus: &Corpus,
    file: &str,
    servers: &[(&str, Server)],
) -> Result<CompiledGuide, String> {
    let text = corpus.text(file)?;
    let json = [("Content-Type", "application/json")];
    for (via, server) in servers {
        let answer = server.send("POST", "/definition/gdl", &json, &text)?;
        expect(&answer, 201).map_err(|why| format!("{via}: upload: {why}"))?;
    }
    compiled(&text)
}

/// The inputs of a fixture as data of an EHR.
struct Record {
    /// The time of the evaluation, and of data without a time of their own.
    now: Moment,
    /// Values by path, for each archetype that the guide reads.
    data: Vec<DataInstance>,
}

impl Record {
    fn of(guide: &CompiledGuide, fixture: &Value) -> Result<Record, String> {
        let now = Moment::parse(text_of(fixture, "now"), 0).ok_or("`now` is no time")?;
        let own_time = now.text();
        let input = literals(fixture, "input");
        let mut data: Vec<DataInstance> = Vec::new();
        let bindings = guide.guide().bindings.iter();
        for binding in bindings.filter(|binding| binding.direction != Direction::Output) {
            let values = binding.elements.iter().filter_map(|element| {
                let given = input.iter().find(|(code, _)| *code == element.id);
                // Each event has a time, also if the fixture gives none to the variable.
                let is_time = element.path.starts_with(EVENT_TIME);
                let text = given
                    .map(|(_, text)| text)
                    .or(is_time.then_some(&own_time))?;
                let value = stored(&fixture::literal(text));
                Some((element.path.clone(), value))
            });
            let values: Vec<_> = values.filter(|(_, value)| !value.is_null()).collect();
            match data.iter_mut().find(|d| d.model_id == binding.model_id) {
                Some(known) => known.values.extend(values),
                None if values.is_empty() => {}
                None => data.push(DataInstance {
                    model_id: binding.model_id.clone(),
                    values,
                }),
            }
        }
        Ok(Record { now, data })
    }

    /// Returns the data without those that are dated after the time of the evaluation. A guide does
    /// not read these from an EHR.
    fn data_until_now(&self) -> Vec<DataInstance> {
        let is_later = |(path, value): &(String, GuideValue)| {
            let is_time = path.starts_with(EVENT_TIME);
            matches!(value, GuideValue::Moment(time, _) if is_time && time.millis > self.now.millis)
        };
        let data = self.data.iter();
        data.filter(|data| !data.values.iter().any(is_later))
            .cloned()
            .collect()
    }

    /// Returns rules and results of a run in the library.
    fn expected(&self, guide: &CompiledGuide, fixture: &Value) -> Result<Value, String> {
        let mut instances = guide.instances_of(&self.data_until_now());
        // Bindings that are written have no query.
        for (binding, own) in guide.guide().bindings.iter().zip(&mut instances) {
            if binding.direction == Direction::Output {
                own.clear();
            }
        }
        let run = guide.run(&RunInput {
            instances: &instances,
            clock: self.now.into(),
            language: language(fixture),
            options: Options::default(),
            terminology: None,
        });
        let run = EhrRun {
            ehr_id: String::new(),
            run: run.map_err(|exceeded| exceeded.to_string())?,
            queries: Vec::new(),
        };
        let line = line(&run, None).map_err(|error| error.to_string())?;
        let line: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        Ok(rules_and_results(
            line.get("rules_executed"),
            line.get("results"),
        ))
    }

    /// Stores the data in an EHR of their own, and runs the guide on it.
    fn check(
        &self,
        server: &Server,
        guide: &CompiledGuide,
        fixture: &Value,
        expected: &Value,
    ) -> Result<(), String> {
        let created = server.send("POST", "/ehr", &[], "")?;
        expect(&created, 201)?;
        let ehr_id = tag(&created)?;
        if !self.data.is_empty() {
            let json = [("Content-Type", "application/json")];
            let path = format!("/ehr/{ehr_id}/composition");
            let answer = server.send("POST", &path, &json, &self.composition()?.to_string())?;
            expect(&answer, 201)?;
        }
        let path = format!(
            "/gdl/query/{ehr_id}/{}?now={}&language={}",
            encoded(&guide.guide().id),
            encoded(&self.now.text()),
            language(fixture)
        );
        let answer = server.send("GET", &path, &[], "")?;
        expect(&answer, 200)?;
        let answer: Value =
            serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        let found = rules_and_results(
            answer.pointer("/execution_details/rules_executed"),
            answer.get("results"),
        );
        match found == *expected {
            true => Ok(()),
            false => Err(format!("{} instead of {}", short(&found), short(expected))),
        }
    }

    fn composition(&self) -> Result<Value, String> {
        let entries = self.data.iter().map(|data| self.entry(data));
        let content: Vec<Value> = entries.collect::<Result<_, String>>()?;
        let archetype = "openEHR-EHR-COMPOSITION.encounter.v1";
        Ok(json!({
            "_type": "COMPOSITION",
            "name": { "_type": "DV_TEXT", "value": "Encounter" },
            "archetype_node_id": archetype,
            "archetype_details": {
                "_type": "ARCHETYPED",
                "archetype_id": { "_type": "ARCHETYPE_ID", "value": archetype },
                "template_id": { "_type": "TEMPLATE_ID", "value": "conformance.open.v1" },
                "rm_version": "1.0.4"
            },
            "language": code_phrase("ISO_639-1", "en"),
            "territory": code_phrase("ISO_3166-1", "GB"),
            "category": coded_text("433", "event"),
            "composer": { "_type": "PARTY_IDENTIFIED", "name": "Dr. Ek" },
            "context": {
                "_type": "EVENT_CONTEXT",
                "start_time": self.time(),
                "setting": coded_text("238", "other care")
            },
            "content": content
        }))
    }

    /// Returns the entry of an archetype with its values.
    fn entry(&self, data: &DataInstance) -> Result<Value, String> {
        let class = class_of(&data.model_id)?;
        let mut entry = self.node(class, &data.model_id);
        entry.insert(
            "archetype_details".into(),
            json!({
                "_type": "ARCHETYPED",
                "archetype_id": { "_type": "ARCHETYPE_ID", "value": data.model_id },
                "rm_version": "1.0.4"
            }),
        );
        for (path, value) in &data.values {
            let steps: Vec<Step<'_>> = path
                .split('/')
                .filter(|s| !s.is_empty())
                .map(step)
                .collect();
            self.put(&mut entry, &steps, rm_json(value))
                .ok_or_else(|| format!("{path}: a path of an unknown form"))?;
        }
        Ok(Value::Object(entry))
    }

    /// Puts a value at a path below a node, and creates the nodes on the way.
    fn put(&self, node: &mut Map<String, Value>, steps: &[Step<'_>], value: Value) -> Option<()> {
        let (first, rest) = steps.split_first()?;
        let class = node.get("_type")?.as_str()?.to_owned();
        let child_class = match child_class(&class, first.attribute, rest) {
            None if rest.is_empty() => {
                node.insert(first.attribute.to_owned(), value);
                return Some(());
            }
            class => class?,
        };
        let new = || Value::Object(self.node(child_class, first.node_id.unwrap_or("at9999")));
        let is_it = |child: &Value| {
            first
                .node_id
                .is_none_or(|id| text_of(child, "archetype_node_id") == id)
        };
        let child = if ["events", "items", "activities"].contains(&first.attribute) {
            let list = node.entry(first.attribute).or_insert_with(|| json!([]));
            let list = list.as_array_mut()?;
            let at = list.iter().position(is_it).unwrap_or_else(|| {
                list.push(new());
                list.len() - 1
            });
            list.get_mut(at)?
        } else {
            node.entry(first.attribute).or_insert_with(new)
        };
        let child = child.as_object_mut()?;
        if rest.is_empty() {
            child.insert("value".into(), value);
            return Some(());
        }
        self.put(child, rest, value)
    }

    /// Returns a node with the attributes that its class must have.
    fn node(&self, class: &str, node_id: &str) -> Map<String, Value> {
        let text = |value: &str| json!({ "_type": "DV_TEXT", "value": value });
        let mut node = Map::new();
        let mut set = |name: &str, value: Value| drop(node.insert(name.to_owned(), value));
        set("_type", json!(class));
        set("name", text("Node"));
        set("archetype_node_id", json!(node_id));
        match class {
            "OBSERVATION" | "EVALUATION" | "INSTRUCTION" | "ACTION" => {
                set("language", code_phrase("ISO_639-1", "en"));
                set("encoding", code_phrase("IANA_character-sets", "UTF-8"));
                set("subject", json!({ "_type": "PARTY_SELF" }));
            }
            "HISTORY" => set("origin", self.time()),
            "POINT_EVENT" => set("time", self.time()),
            "ACTIVITY" => set("action_archetype_id", json!("/.*/")),
            _ => {}
        }
        match class {
            "INSTRUCTION" => set("narrative", text("Narrative")),
            "ACTION" => {
                set("time", self.time());
                let state = json!({ "_type": "ISM_TRANSITION",
                    "current_state": coded_text("532", "completed") });
                set("ism_transition", state);
            }
            _ => {}
        }
        node
    }

    fn time(&self) -> Value {
        json!({ "_type": "DV_DATE_TIME", "value": self.now.text() })
    }
}

/// A step of a path.
struct Step<'p> {
    attribute: &'p str,
    node_id: Option<&'p str>,
}

fn step(text: &str) -> Step<'_> {
    match text.split_once('[') {
        Some((attribute, rest)) => Step {
            attribute,
            node_id: rest.strip_suffix(']'),
        },
        None => Step {
            attribute: text,
            node_id: None,
        },
    }
}

/// Returns the class of the node at an attribute; `None` for a value.
fn child_class(class: &str, attribute: &str, rest: &[Step<'_>]) -> Option<&'static str> {
    let structure = match rest.first().map(|step| step.attribute) {
        Some("item") => "ITEM_SINGLE",
        _ => "ITEM_TREE",
    };
    Some(match (class, attribute) {
        ("OBSERVATION", "data") => "HISTORY",
        ("HISTORY", "events") => "POINT_EVENT",
        ("INSTRUCTION", "activities") => "ACTIVITY",
        (_, "data" | "state" | "protocol" | "description") => structure,
        (_, "items") if !rest.is_empty() => "CLUSTER",
        (_, "items" | "item") => "ELEMENT",
        _ => return None,
    })
}

fn class_of(model_id: &str) -> Result<&str, String> {
    let class = model_id
        .split('.')
        .next()
        .and_then(|m| m.rsplit('-').next());
    class.ok_or_else(|| format!("{model_id}: no archetype"))
}

/// Returns a value as a guide reads it from a document.
fn stored(value: &GuideValue) -> GuideValue {
    value_of_json(&rm_json(value).to_string())
}

/// Returns what is compared: the rules that fired, in order, and the results without their EHR.
fn rules_and_results(rules: Option<&Value>, results: Option<&Value>) -> Value {
    let mut results = results.cloned().unwrap_or_default();
    for result in results.as_array_mut().into_iter().flatten() {
        if let Some(result) = result.as_object_mut() {
            result.remove("_ehr_id");
        }
    }
    json!({ "rules": rules, "results": results })
}

fn language(fixture: &Value) -> &str {
    match text_of(fixture, "language") {
        "" => "en",
        language => language,
    }
}

fn code_phrase(terminology: &str, code: &str) -> Value {
    let terminology = json!({ "_type": "TERMINOLOGY_ID", "value": terminology });
    json!({ "_type": "CODE_PHRASE", "terminology_id": terminology, "code_string": code })
}

fn coded_text(code: &str, rubric: &str) -> Value {
    json!({ "_type": "DV_CODED_TEXT", "value": rubric, "defining_code": code_phrase("openehr", code) })
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
