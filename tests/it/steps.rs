//! Queries and requests on a repository in memory that run in steps, and explanations that end in
//! time.

use super::rows::NOW;
use aqlite::aql::{Budget, Parameters, QueryOptions, prepare};
use aqlite::samples::{Generator, templates};
use aqlite::service::{
    Answers, Auth, Config, LintTemplates, QuerySteps, ReplayEnvironment, Request, Response,
    RunHost, SampleLoading, Service, StepsOutcome, next_poll,
};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use serde_json::Value;
use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

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
    load(&service, 1, template_texts(), Vec::new()).unwrap();
    service
}

fn template_texts() -> Vec<String> {
    templates().map(|t| t.text.to_owned()).to_vec()
}

/// Loads the sample patients of a seed.
fn load(
    service: &Service<Memory>,
    seed: u64,
    templates: Vec<String>,
    guides: Vec<String>,
) -> Result<(), String> {
    let generator = Generator::new(seed, 3, 12);
    let mut loading = SampleLoading::new(generator, seed, templates, guides);
    while loading.step(service, 100)? {}
    Ok(())
}

#[test]
fn sample_patients_of_another_seed_accept_the_stored_templates_and_guides() {
    let service = service();
    let guide = include_str!("../../www/samples/blood_pressure_category.gdl2.json");
    let guides = || vec![guide.to_owned()];
    for seed in [2, 3] {
        load(&service, seed, template_texts(), guides()).unwrap();
    }
    // An EHR is created once, and another text under the id of a stored template is refused.
    assert!(load(&service, 3, template_texts(), guides()).is_err());
    let changed = template_texts()
        .iter()
        .map(|text| format!("{text}\n"))
        .collect();
    let refused = load(&service, 4, changed, guides()).unwrap_err();
    assert!(refused.contains("409"), "{refused}");
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

/// Sends a request that is answered at once. New identifiers follow from `seed`.
fn send(service: &Service<Memory>, request: &Request, seed: usize) -> Response {
    let mut environment = ReplayEnvironment::new(0.0, &seed.to_string());
    let answer = service.handle(request, &mut environment);
    now_or_never(answer).unwrap_or_else(|waits| panic!("{waits}"))
}

/// Creates an EHR. Returns its address.
fn new_ehr(service: &Service<Memory>, seed: usize) -> String {
    let made = send(service, &Request::new("POST", "/v1/ehr"), seed);
    assert_eq!(made.status, 201);
    let location = made.headers.iter().find(|(name, _)| name == "Location");
    location.unwrap().1.clone()
}

/// Returns the rows of a query that runs at once.
fn rows_of(service: &Service<Memory>, q: &str) -> String {
    let (outcome, _) = finish(begin(service.repository(), q, u64::MAX));
    outcome.unwrap().0.unwrap().to_ndjson()
}

/// The ids of all EHRs.
const EHRS: &str = "SELECT DISTINCT e/ehr_id/value AS ehr FROM EHR e";

#[test]
fn a_write_between_two_steps_does_not_change_the_answer() {
    let all_versions = "SELECT DISTINCT e/ehr_id/value AS ehr, v/commit_audit/change_type/value AS c FROM EHR e CONTAINS VERSION v[ALL_VERSIONS]";
    for q in [PAIRS, EHRS, all_versions] {
        let service = service();
        let before = rows_of(&service, q);
        let mut steps = begin(service.repository(), q, 1);
        assert!(steps.step().is_pending(), "{q}");
        new_ehr(&service, 1);
        assert!(steps.step().is_pending(), "{q}");
        new_ehr(&service, 2);
        let (outcome, _) = finish(steps);
        assert_eq!(outcome.unwrap().0.unwrap().to_ndjson(), before, "{q}");
    }
}

#[test]
fn a_query_reads_the_newest_state_if_its_data_are_deleted_between_two_steps() {
    let service = service();
    let ehr = new_ehr(&service, 1);
    let before = rows_of(&service, EHRS);
    let mut steps = begin(service.repository(), EHRS, 1);
    assert!(steps.step().is_pending());
    let id = ehr.rsplit('/').next().unwrap();
    let mut deletion = Request::new("DELETE", &format!("/v1/admin/ehr/{id}"));
    assert_eq!(send(&service, &deletion, 2).status, 403);
    deletion.administers = true;
    assert_eq!(send(&service, &deletion, 2).status, 204);
    let (outcome, _) = finish(steps);
    let rows = outcome.unwrap().0.unwrap().to_ndjson();
    assert!(before.contains(id) && !rows.contains(id));
    assert_eq!(rows, rows_of(&service, EHRS));
}

#[test]
fn a_request_that_pauses_answers_in_the_state_of_its_begin() {
    let service = service();
    // A query with many paths pauses before its first batch.
    let paths = (0..64).map(|n| format!("c/content[at{n:04}]/name/value AS p{n}"));
    let paths = paths.collect::<Vec<_>>().join(", ");
    let q = format!("SELECT e/ehr_id/value AS ehr, {paths} FROM EHR e CONTAINS COMPOSITION c");
    let body = serde_json::json!({ "q": q }).to_string();
    let query = Request::new("POST", "/v1/query/aql").with_body("application/json", body);
    let rows = |response: &Response| {
        let answer: Value = serde_json::from_slice(&response.body).unwrap();
        answer["rows"].to_string()
    };
    let before = send(&service, &query, 0);
    let mut environment = ReplayEnvironment::new(0.0, "").with_pauses(next_poll);
    let mut answer = pin!(service.handle(&query, &mut environment));
    let mut context = Context::from_waker(Waker::noop());
    let mut pauses = 0;
    let after = loop {
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(response) => break response,
            // A write and a read of the same data run in each pause.
            Poll::Pending => {
                pauses += 1;
                new_ehr(&service, pauses);
                assert_eq!(rows(&send(&service, &query, 0)), rows(&before));
            }
        }
    };
    assert!(pauses > 0);
    assert_eq!((after.status, rows(&after)), (200, rows(&before)));
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
    let host = RunHost::in_memory(NOW, &clock);
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
