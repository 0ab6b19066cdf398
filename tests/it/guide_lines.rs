//! Guides on lines with long answers and much work: the answers are sent in pieces of limited size,
//! and a run pauses for other requests. Bytes and pauses are counted, so the tests need no clock.

use crate::rest::Counting;
use aqlite::service::{Auth, Config, Limits, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use serde_json::{Value, json};

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const OTHER: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c9";
/// The length of the text that the guide `text.v1` writes.
const TEXT: usize = 650_000;
/// The bytes after which a piece of answers ends.
const PIECE: usize = 8_000_000;

struct Host {
    service: Service<Memory>,
    environment: Counting,
}

impl Host {
    fn new(sends_parts: bool, limits: Limits) -> Host {
        let config = Config {
            auth: Auth::Open,
            limits,
            ..Config::default()
        };
        let mut host = Host {
            service: Service::new(Memory::new(), config),
            environment: Counting::new(sends_parts),
        };
        for ehr_id in [EHR, OTHER] {
            let put = Request::new("PUT", &format!("/v1/ehr/{ehr_id}"));
            assert_eq!(host.send(&put).status, 201);
        }
        host
    }

    fn send(&mut self, request: &Request) -> Response {
        now_or_never(self.service.handle(request, &mut self.environment)).expect("a response")
    }

    /// Stores a guide whose rule has these actions, of the variables `gt0500` to `gt0519`.
    fn store(&mut self, id: &str, actions: &[String]) {
        let elements = (0..20).map(|i| {
            let path = format!("/data[at0001]/items[at05{i:02}]");
            (format!("gt05{i:02}"), json!({ "path": path }))
        });
        let elements: serde_json::Map<String, Value> = elements.collect();
        let binding = json!({ "model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT", "elements": elements });
        let guide = json!({ "id": id, "definition": {
            "data_bindings": { "gt0004": binding },
            "rules": { "gt0011": { "priority": 1, "then": actions } } } });
        let upload = Request::new("POST", "/v1/definition/gdl");
        let response = self.send(&upload.with_body("application/json", guide.to_string()));
        assert_eq!(response.status, 201);
    }

    /// Stores a guide that compares thousands of codes, and tests one by `is_a`.
    fn store_codes(&mut self, id: &str, codes: usize) {
        let compared = (0..codes).map(|i| format!("$gt0003==ATC::C{i}|drug|"));
        let when: Vec<String> = compared
            .chain([String::from("$gt0003 is_a local::gt0020|Statin|")])
            .collect();
        let binding = json!({ "model_id": "openEHR-EHR-EVALUATION.in.v1", "type": "INPUT",
            "elements": { "gt0003": { "path": "/data[at0001]/items[at0002]" } } });
        let bound = json!({ "gt0020": { "codes": [], "uri": "http://example.org/statins" } });
        let guide = json!({ "id": id, "definition": {
                "data_bindings": { "gt0002": binding },
                "rules": { "gt0011": { "priority": 1, "when": when, "then": [] } } },
            "ontology": { "term_bindings": { "ATC": { "bindings": bound } } } });
        let upload = Request::new("POST", "/v1/definition/gdl");
        let response = self.send(&upload.with_body("application/json", guide.to_string()));
        assert_eq!(response.status, 201);
    }

    /// Runs a guide on lines. Returns the bodies of all responses, each of which is one piece.
    fn run(&mut self, guide: &str, lines: &[&str]) -> Vec<String> {
        let lines: String = lines.iter().map(|id| format!("\"{id}\"\n")).collect();
        let request = Request::new("POST", &format!("/v1/gdl/query?guide_id={guide}"));
        let mut next = Some(request.with_body("application/x-ndjson", lines));
        let mut bodies = Vec::new();
        while let Some(request) = next {
            let mut response = self.send(&request);
            assert_eq!(response.status, 200);
            next = response.take_next_request(&request);
            bodies.push(String::from_utf8(response.body).expect("UTF-8"));
        }
        bodies
    }
}

/// The bytes of a text that a guide reads once for each of its variables.
const READ: usize = 900_000;

/// Stores a weight whose name has this length.
fn put_weight(host: &mut Host, ehr_id: &str, text: usize) {
    if ehr_id != EHR && ehr_id != OTHER {
        let put = Request::new("PUT", &format!("/v1/ehr/{ehr_id}"));
        assert_eq!(host.send(&put).status, 201);
    }
    let weight = include_str!("../cases/rest/weight.json");
    let name = format!("\"{}\"", "x".repeat(text));
    let weight = weight.replace("\"Body weight\"", &name);
    let post = Request::new("POST", &format!("/v1/ehr/{ehr_id}/composition"));
    let response = host.send(&post.with_body("application/json", weight));
    assert_eq!(response.status, 201);
}

/// Stores the template of weights, and a guide that reads the name of a weight by each variable, with
/// a rule of these conditions.
fn store_reader(host: &mut Host, variables: usize, when: &[&str]) {
    let template = include_str!("../cases/template/small.opt");
    let post = Request::new("POST", "/v1/definition/template/adl1.4");
    let response = host.send(&post.with_body("application/xml", template));
    assert_eq!(response.status, 201);
    let elements = (0..variables).map(|i| (format!("gt05{i:02}"), json!({ "path": "/name" })));
    let elements: serde_json::Map<String, Value> = elements.collect();
    let binding = json!({ "model_id": "openEHR-EHR-OBSERVATION.body_weight.v2", "type": "INPUT",
        "elements": elements });
    let guide = json!({ "id": "reader.v1", "definition": { "data_bindings": { "gt0004": binding },
        "rules": { "gt0011": { "priority": 1, "when": when } } } });
    let upload = Request::new("POST", "/v1/definition/gdl");
    let response = host.send(&upload.with_body("application/json", guide.to_string()));
    assert_eq!(response.status, 201);
}

#[test]
fn lines_with_too_much_data_together_are_read_apart() {
    let mut host = Host::new(true, Limits::default());
    store_reader(&mut host, 20, &["$gt0500!=null"]);
    for ehr_id in [EHR, OTHER] {
        put_weight(&mut host, ehr_id, READ);
    }
    let bodies = host.run("reader.v1", &[EHR, OTHER, "absent"]);
    assert_eq!(statuses(&bodies), [(1, 200), (2, 200), (3, 404)]);
}

#[test]
fn an_ehr_that_fails_alone_is_refused_by_its_line() {
    let mut host = Host::new(true, Limits::default());
    store_reader(&mut host, 40, &["$gt0500!=null"]);
    let small = "6ba7b810-9dad-41d1-80b4-00c04fd430d0";
    put_weight(&mut host, OTHER, READ);
    put_weight(&mut host, small, 10);
    let bodies = host.run("reader.v1", &["absent", EHR, OTHER, small, OTHER]);
    let expected = [(1, 404), (2, 200), (3, 400), (4, 200), (5, 400)];
    assert_eq!(statuses(&bodies), expected);
    let refused = bodies.iter().flat_map(|body| body.lines());
    let refused = refused.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let refused: Vec<Value> = refused.filter(|line| line["status"] == 400).collect();
    for line in refused {
        assert_eq!(line["_ehr_id"], OTHER);
        let message = line["message"].as_str().expect("a message");
        assert!(
            message.ends_with("restrict the data by predicates"),
            "{message}"
        );
    }
}

#[test]
fn a_run_that_exceeds_a_limit_is_refused_by_its_line() {
    let mut host = Host::new(true, Limits::default());
    let mut actions = vec![String::from("$gt0500=$gt0500+$gt0500"); 31];
    actions[0] = String::from("$gt0500='x'");
    host.store("doubling.v1", &actions);
    let bodies = host.run("doubling.v1", &[EHR, "absent", OTHER, EHR]);
    assert_eq!(statuses(&bodies), [(1, 400), (2, 404), (3, 400), (4, 400)]);
    assert!(bodies.concat().contains("GDL0601"));
}

fn long_text() -> [String; 1] {
    [format!("$gt0500='{}'", "x".repeat(TEXT))]
}

/// Returns the lines of answers with their numbers and statuses.
fn statuses(bodies: &[String]) -> Vec<(u64, u64)> {
    let lines = bodies.iter().flat_map(|body| body.lines());
    let answers = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let number = |value: &Value| value.as_u64().expect("a number");
    answers
        .map(|answer| (number(&answer["line"]), number(&answer["status"])))
        .collect()
}

#[test]
fn long_answers_of_lines_are_sent_in_pieces() {
    let mut host = Host::new(true, Limits::default());
    host.store("text.v1", &long_text());
    // Repeated EHRs run once in a piece, but each line has an answer of its own.
    let lines: Vec<&str> = [EHR, OTHER, "absent"]
        .into_iter()
        .cycle()
        .take(90)
        .collect();
    let bodies = host.run("text.v1", &lines);
    let longest = bodies.iter().map(String::len).max().unwrap_or_default();
    assert!(longest < PIECE + TEXT + 10_000, "{longest} bytes at a time");
    assert!(
        bodies.len() > 60 * TEXT / (PIECE + TEXT),
        "{}",
        bodies.len()
    );
    let expected = (1..=90).map(|line| (line, if line % 3 == 0 { 404 } else { 200 }));
    assert_eq!(statuses(&bodies), expected.collect::<Vec<_>>());
}

#[test]
fn short_answers_of_a_thousand_lines_are_one_piece() {
    let mut host = Host::new(true, Limits::default());
    host.store("short.v1", &[String::from("$gt0500.magnitude=1")]);
    let bodies = host.run("short.v1", &[EHR; 1_000]);
    assert_eq!((bodies.len(), statuses(&bodies).len()), (1, 1_000));
}

#[test]
fn a_response_that_is_sent_as_a_whole_is_limited_over_all_lines() {
    let mut host = Host::new(false, Limits::default());
    let limit = Limits::default().result;
    host.store("text.v1", &long_text());
    let bodies = host.run("text.v1", &[EHR; 300]);
    let bytes: usize = bodies.iter().map(String::len).sum();
    assert!(bytes < limit + TEXT + 300 * 300, "{bytes}");
    let statuses = statuses(&bodies);
    assert_eq!(statuses.len(), 300);
    let answered = statuses.iter().filter(|(_, status)| *status == 200).count();
    assert_eq!(answered, limit / TEXT + 1);
    assert!(
        statuses[answered..]
            .iter()
            .all(|(_, status)| *status == 413)
    );
}

#[test]
fn a_run_pauses_between_its_statements() {
    let mut host = Host::new(true, Limits::default());
    store_reader(&mut host, 2, &["$gt0500==$gt0501"; 20]);
    put_weight(&mut host, EHR, READ);
    let before = host.environment.pauses;
    host.run("reader.v1", &[EHR]);
    // Twenty statements of about 50,000 steps, and a pause after 200,000 of them.
    let pauses = host.environment.pauses - before;
    assert!(pauses >= 4, "{pauses} pauses");
}

#[test]
fn questions_about_many_codes_pause_if_a_value_set_can_answer_them() {
    let mut host = Host::new(true, Limits::default());
    host.store_codes("codes.v1", 3_000);
    let pauses_of_run = |host: &mut Host| {
        let before = host.environment.pauses;
        host.run("codes.v1", &[EHR]);
        host.environment.pauses - before
    };
    // Neither a value set nor a server has an answer, so no question is made of any code.
    let without = pauses_of_run(&mut host);
    let set = json!({ "resourceType": "ValueSet", "url": "http://example.org/statins",
        "expansion": { "contains": [{ "code": "C1" }] } });
    let put = "/v1/definition/valueset/http%3A%2F%2Fexample.org%2Fstatins";
    let put = Request::new("PUT", put).with_body("application/json", set.to_string());
    assert_eq!(host.send(&put).status, 201);
    // Each question takes a thousand steps, and a pause is due after 200,000.
    let pauses = pauses_of_run(&mut host);
    assert!(
        pauses >= without + 14 && without < 14,
        "{without} and {pauses} pauses"
    );
}
