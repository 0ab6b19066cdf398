//! The REST service on the memory repository, through the facade.

use super::{GUIDE, NOW_MILLIS, TEMPLATE, WEIGHT};
use aqlite_wasm::{Repository, Steps};
use js_sys::Error;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use wasm_bindgen_test::wasm_bindgen_test;

const ITS: &str = "http://local/rest/openehr/v1";
/// The EHR with a weight of 120.50 kg.
pub const EHR: &str = "7d44b88c-4199-4bad-97dc-d78268e01398";
/// The EHR with a weight of 72.50 kg.
const LIGHT: &str = "8849182c-82ad-4088-a07f-48ead4180515";

/// Returns another seed of identifiers for each request.
fn seed() -> String {
    static REQUESTS: AtomicU32 = AtomicU32::new(0);
    REQUESTS.fetch_add(1, Ordering::Relaxed).to_string()
}

/// An answer: its status, its body as JSON or text, and one header.
pub struct Answer {
    pub status: u64,
    pub body: Value,
    etag: String,
}

/// Runs all steps of a call.
pub fn finish(call: Result<Steps, impl Into<Error>>) -> Result<String, Error> {
    let mut call = call.map_err(Into::into)?;
    loop {
        if let Some(text) = call.step()? {
            return Ok(text);
        }
    }
}

pub fn send(repository: &Repository, call: &str, headers: &Value, body: &str) -> Answer {
    let (method, path) = call.split_once(' ').unwrap();
    let url = format!("{ITS}{path}");
    let headers = headers.to_string();
    let request = repository.begin_request(method, &url, &headers, body, NOW_MILLIS, &seed());
    let text = finish(request).unwrap();
    let (answer, body) = text.split_once('\n').unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    let named = |header: &&Value| {
        header[0]
            .as_str()
            .is_some_and(|n| n.eq_ignore_ascii_case("etag"))
    };
    let headers = answer["headers"].as_array().unwrap();
    let etag = headers.iter().find(named).map(|h| h[1].as_str().unwrap());
    Answer {
        status: answer["status"].as_u64().unwrap(),
        body: serde_json::from_str(body).unwrap_or_else(|_| body.into()),
        etag: etag.unwrap_or_default().to_owned(),
    }
}

fn as_json() -> Value {
    json!({ "content-type": "application/json" })
}

/// Returns a repository with a template, a guide, and two EHRs with a weight each.
pub fn repository_with_weights() -> Repository {
    let repository = Repository::new("http://local", false);
    let xml = json!({ "content-type": "application/xml" });
    let sent = [
        send(
            &repository,
            "POST /definition/template/adl1.4",
            &xml,
            TEMPLATE,
        ),
        send(&repository, &format!("PUT /ehr/{EHR}"), &json!({}), ""),
        send(&repository, &format!("PUT /ehr/{LIGHT}"), &json!({}), ""),
        commit(&repository, EHR, &WEIGHT.replace("72.50", "120.50")),
        commit(&repository, LIGHT, WEIGHT),
    ];
    for answer in sent {
        assert!([201, 204].contains(&answer.status), "{:#}", answer.body);
    }
    repository
}

fn commit(repository: &Repository, ehr: &str, composition: &str) -> Answer {
    let call = format!("POST /ehr/{ehr}/composition");
    send(repository, &call, &as_json(), composition)
}

#[wasm_bindgen_test]
fn a_composition_comes_back_with_its_digits_and_its_etag() {
    let repository = repository_with_weights();
    let committed = commit(&repository, EHR, WEIGHT);
    let uid = committed.etag.trim_matches('"').to_owned();
    let read = send(
        &repository,
        &format!("GET /ehr/{EHR}/composition/{uid}"),
        &json!({}),
        "",
    );
    assert_eq!((read.status, read.etag), (200, committed.etag));
    assert_eq!(read.body["uid"]["value"], uid.as_str());
}

#[wasm_bindgen_test]
fn an_update_with_a_stale_version_is_rejected() {
    let repository = repository_with_weights();
    let uid = commit(&repository, EHR, WEIGHT)
        .etag
        .trim_matches('"')
        .to_owned();
    let call = format!(
        "PUT /ehr/{EHR}/composition/{}",
        uid.split("::").next().unwrap()
    );
    let headers = json!({ "content-type": "application/json", "if-match": uid });
    assert_eq!(send(&repository, &call, &headers, WEIGHT).status, 204);
    assert_eq!(send(&repository, &call, &headers, WEIGHT).status, 412);
}

#[wasm_bindgen_test]
fn a_composition_against_its_template_is_rejected_with_the_path() {
    let repository = repository_with_weights();
    let wrong = WEIGHT.replace("\"units\": \"kg\"", "\"units\": \"Cel\"");
    let answer = commit(&repository, EHR, &wrong);
    assert_eq!(answer.status, 422);
    assert!(
        answer.body.to_string().contains("/items["),
        "{:#}",
        answer.body
    );
}

#[wasm_bindgen_test]
fn a_query_returns_the_rows_of_all_ehrs() {
    let repository = repository_with_weights();
    let q = "SELECT o/data/events/data/items[at0004]/value/magnitude AS kg FROM EHR e CONTAINS OBSERVATION o ORDER BY kg";
    let answer = send(
        &repository,
        "POST /query/aql",
        &as_json(),
        &json!({ "q": q }).to_string(),
    );
    assert_eq!(
        (answer.status, &answer.body["rows"]),
        (200, &json!([[72.5], [120.5]]))
    );
}

#[wasm_bindgen_test]
fn a_wrong_query_is_answered_with_400() {
    let repository = repository_with_weights();
    let answer = send(
        &repository,
        "POST /query/aql",
        &as_json(),
        r#"{"q":"SELECT"}"#,
    );
    assert_eq!(answer.status, 400);
}

#[wasm_bindgen_test]
fn a_stored_guide_runs_on_several_ehrs() {
    let repository = repository_with_weights();
    let call = |call: &str, body: &str| {
        let url = format!("http://local/v1{}", call.split_once(' ').unwrap().1);
        let headers = as_json().to_string();
        let request = repository.begin_request("POST", &url, &headers, body, NOW_MILLIS, &seed());
        let text = finish(request).unwrap();
        let (answer, body) = text.split_once('\n').unwrap();
        let answer: Value = serde_json::from_str(answer).unwrap();
        (
            answer["status"].as_u64().unwrap(),
            serde_json::from_str(body).unwrap_or(Value::Null),
        )
    };
    assert_eq!(call("POST /definition/gdl", GUIDE).0, 201);
    let ehrs = json!({ "guide_id": "weight_class.v1", "ehr_ids": [LIGHT, EHR] });
    let (status, run): (u64, Value) = call("POST /gdl/query", &ehrs.to_string());
    assert_eq!(status, 200);
    let class = |of: usize| &run["results"][of]["rm_values"][0]["value"]["magnitude"];
    assert_eq!((class(0), class(1)), (&json!(1), &json!(2)), "{run:#}");
}
