//! Queries on a repository in memory that run in steps, and explanations that end in time.

use super::rows::NOW;
use aqlite::aql::{Budget, Parameters, QueryOptions, prepare};
use aqlite::samples::{Generator, templates};
use aqlite::service::{
    Answers, Auth, Config, Host, LintTemplates, QuerySteps, Request, SampleLoading, Service,
    StepsOutcome,
};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::StoreError;
use serde_json::Value;
use std::cell::Cell;
use std::task::Poll;

/// A query with many combinations of elements in each EHR.
const PAIRS: &str = "SELECT a/value/magnitude AS x, b/value/magnitude AS y FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b) WHERE a/name/value = b/name/value AND a/value/magnitude < b/value/magnitude ORDER BY x, y";

/// Returns a service with sample patients.
fn service() -> Service<Memory> {
    let config = Config {
        auth: Auth::Open,
        trusts_compositions: true,
        ..Config::default()
    };
    let service = Service::new(Memory::new(), config);
    let texts = templates()
        .map(|template| template.text.to_owned())
        .to_vec();
    let mut loading = SampleLoading::new(Generator::new(1, 3, 12), 1, texts, Vec::new());
    while loading.step(&service, 100).unwrap() {}
    service
}

fn begin(memory: &Memory, q: &str, piece: u64) -> QuerySteps {
    let plan = prepare(q, &Parameters::new(), &QueryOptions::default()).unwrap();
    let budget = Budget {
        piece,
        ..Budget::default()
    };
    QuerySteps::new(memory, plan, NOW.to_owned(), budget, None).unwrap()
}

/// Runs a query to its end. Returns the outcome and the number of pauses.
fn finish(mut steps: QuerySteps) -> (StepsOutcome, usize) {
    let mut pauses = 0;
    loop {
        match steps.step() {
            Poll::Ready(outcome) => return (outcome, pauses),
            Poll::Pending => pauses += 1,
        }
    }
}

#[test]
fn a_query_in_steps_has_the_rows_of_one_that_runs_at_once() {
    let service = service();
    let queries = [
        PAIRS,
        "SELECT c/uid/value FROM EHR e CONTAINS VERSION v[ALL_VERSIONS] CONTAINS COMPOSITION c",
        "SELECT e/ehr_id/value FROM EHR e NOT CONTAINS COMPOSITION c",
    ];
    for q in queries {
        let rows = |piece| {
            let (outcome, pauses) = finish(begin(service.repository(), q, piece));
            let mut text = String::new();
            outcome.unwrap().0.unwrap().write_rows(&mut text);
            (text, pauses)
        };
        let (at_once, no_pauses) = rows(u64::MAX);
        let (in_steps, _) = rows(500);
        assert_eq!((no_pauses, in_steps), (0, at_once), "{q}");
    }
    let (_, pauses) = finish(begin(service.repository(), PAIRS, 500));
    assert!(pauses > 3, "{pauses} pauses");
}

#[test]
fn other_queries_run_between_the_steps_of_one() {
    let service = service();
    let mut first = begin(service.repository(), PAIRS, 500);
    assert!(first.step().is_pending());
    let (second, _) = finish(begin(service.repository(), PAIRS, 500));
    let (first, _) = finish(first);
    let [first, second] = [first, second].map(|outcome| outcome.unwrap().0.unwrap());
    assert_eq!(first.to_ndjson(), second.to_ndjson());
}

#[test]
fn a_write_between_two_steps_makes_the_query_void() {
    let service = service();
    let mut steps = begin(service.repository(), PAIRS, 500);
    assert!(steps.step().is_pending());
    let mut environment = super::rest::Ticks::new();
    let made = now_or_never(service.handle(&Request::new("POST", "/v1/ehr"), &mut environment));
    assert_eq!(made.unwrap().status, 201);
    let Poll::Ready(Err(StoreError::Unavailable(why))) = steps.step() else {
        panic!("the query read two states");
    };
    assert!(why.contains("run it again"), "{why}");
}

/// Explains a query without rows. Each look at the clock takes `microseconds`.
fn explained(service: &Service<Memory>, microseconds: i64) -> Value {
    let q = "SELECT c FROM EHR e CONTAINS COMPOSITION c WHERE c/name/value = 'none' AND c/composer/name = 'nobody'";
    let time = Cell::new(0);
    let clock = || {
        time.set(time.get() + microseconds);
        time.get()
    };
    let (answers, templates) = (Answers::default(), LintTemplates::default());
    let host = Host::in_memory(NOW, &clock);
    let parameters = Parameters::new();
    let explanation = service.explanation(q, &parameters, None, &answers, &host, &templates);
    now_or_never(explanation).unwrap().unwrap()["empty"].take()
}

#[test]
fn the_explanation_of_a_result_without_rows_ends_after_two_seconds() {
    let service = service();
    let all = explained(&service, 1);
    assert_eq!(all["complete"], true);
    let late = explained(&service, 1_500_000);
    assert_eq!(late["complete"], false);
    let parts = |explained: &Value| explained["parts"].as_array().unwrap().len();
    assert!(parts(&late) < parts(&all));
}
