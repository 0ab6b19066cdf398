//! Documents of very many keys: one clear error, and nothing is written.

use crate::rest::Ticks;
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::block_on;
use serde_json::Value;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const HEAD: &str = r#""ctx/territory":"SE","ctx/composer_self":true"#;

#[test]
fn a_hundred_thousand_keys_are_refused_by_one_error_and_nothing_is_written() {
    let service = Service::new(Memory::new(), Config { auth: Auth::Open, log: false, ..Config::default() });
    let mut moment = Ticks::new();
    let mut send = |method: &str, path: &str, kind: &str, body: String| -> Response {
        let request = Request::new(method, &format!("/rest/openehr/v1/{path}")).with_body(kind, body);
        block_on(service.handle(&request, &mut moment)).unwrap()
    };
    let template = include_str!("../cases/template/small.opt").to_owned();
    assert_eq!(send("POST", "definition/template/adl1.4", "application/xml", template).status, 201);
    assert_eq!(send("PUT", &format!("ehr/{EHR}"), "application/json", String::new()).status, 201);

    let keys = |key: &dyn Fn(usize) -> String| (0..100_000).map(key).collect::<String>();
    let flat = keys(&|i| format!(r#","encounter/body_weight/events_at0003:{}/weight|magnitude":{i}"#, i % 10_000));
    let same = keys(&|_| String::from(r#","encounter/body_weight/events_at0003:0/weight|magnitude":70"#));
    let lists = keys(&|i| format!(r#"{}{{"weight":[{{"|magnitude":{i}}}]}}"#, if i == 0 { "" } else { "," }));
    for (form, body) in [
        ("flat", format!("{{{HEAD}{flat}}}")),
        ("flat", format!("{{{HEAD}{same}}}")),
        ("structured", format!(r#"{{"ctx":{{"territory":"SE"}},"encounter":{{"body_weight":[{{"events_at0003":[{lists}]}}]}}}}"#)),
    ] {
        let path = format!("ehr/{EHR}/composition?templateId=weight.en.v2");
        let response = send("POST", &path, &format!("application/openehr.wt.{form}+json"), body);
        let told: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!((response.status, told["errors"].as_array().map(Vec::len)), (400, Some(1)), "{told}");
        assert!(told.to_string().contains("too many"), "{told}");
    }
    let query = serde_json::json!({ "q": "SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c" });
    let found = send("POST", "query/aql", "application/json", query.to_string());
    assert_eq!(serde_json::from_slice::<Value>(&found.body).unwrap()["rows"], serde_json::json!([]));
}
