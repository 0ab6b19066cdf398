//! Queries that need a terminology server, with a simulated server.

use crate::rest::Ticks;
use aqlite::service::{
    Auth, Config, Environment, Request, Response, Service, TerminologyResponse, TerminologyServer,
    Unreachable, WaitFuture, Work,
};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::ready;
use std::pin::Pin;
use std::rc::Rc;

type Asked = Rc<RefCell<Vec<String>>>;

struct Server<F> {
    asked: Asked,
    answer: F,
    kept: RefCell<HashMap<String, String>>,
}

impl<F: Fn(&str) -> Result<TerminologyResponse, Unreachable>> TerminologyServer for Server<F> {
    fn cached<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Option<String>> + 'a>> {
        Box::pin(ready(self.kept.borrow().get(address).cloned()))
    }

    fn keep<'a>(
        &'a self,
        address: &'a str,
        body: &'a str,
    ) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        let mut kept = self.kept.borrow_mut();
        kept.insert(address.to_owned(), body.to_owned());
        Box::pin(ready(()))
    }

    fn get<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<TerminologyResponse, Unreachable>> + 'a>> {
        self.asked.borrow_mut().push(address.to_owned());
        Box::pin(ready((self.answer)(address)))
    }
}

fn ask(
    q: &str,
    answer: impl Fn(&str) -> Result<TerminologyResponse, Unreachable> + 'static,
) -> (Response, Vec<String>) {
    let (mut responses, asked) = ask_again(q, 1, answer);
    (responses.remove(0), asked)
}

/// Sends a query a number of times.
fn ask_again(
    q: &str,
    times: usize,
    answer: impl Fn(&str) -> Result<TerminologyResponse, Unreachable> + 'static,
) -> (Vec<Response>, Vec<String>) {
    let asked = Asked::default();
    let server = Server {
        asked: Rc::clone(&asked),
        answer,
        kept: RefCell::default(),
    };
    let service = Service::new(
        Memory::new(),
        Config {
            auth: Auth::Open,
            ..Config::default()
        },
    )
    .with_terminology(Box::new(server));
    let mut environment = Ticks::new();
    let mut send =
        |request: &Request| now_or_never(service.handle(request, &mut environment)).expect("ready");
    assert_eq!(send(&Request::new("POST", "/v1/ehr")).status, 201);
    let body = serde_json::json!({ "q": q }).to_string();
    let query = Request::new("POST", "/v1/query/aql").with_body("application/json", body);
    let responses = (0..times).map(|_| send(&query)).collect();
    let asked = asked.borrow().clone();
    (responses, asked)
}

fn reply(status: u16, body: &str) -> Result<TerminologyResponse, Unreachable> {
    Ok(TerminologyResponse {
        status,
        body: body.to_owned(),
    })
}

const EXPAND: &str = "SELECT COUNT(*) FROM EHR e WHERE e/system_id/value matches TERMINOLOGY('expand', 'hl7.org/fhir/4.0', 'url=http://x/a')";

#[test]
fn an_expansion_is_read_to_its_end() {
    let pages = |address: &str| {
        let code = if address.contains("offset=1") {
            "aqlite.local"
        } else {
            "other"
        };
        reply(
            200,
            &format!(
                r#"{{"resourceType":"ValueSet","expansion":{{"total":2,"contains":[{{"code":"{code}"}}]}}}}"#
            ),
        )
    };
    let (response, asked) = ask(EXPAND, pages);
    assert!(
        String::from_utf8_lossy(&response.body).contains("\"rows\":[[1]]"),
        "{response:?}"
    );
    assert_eq!(
        asked,
        [
            "ValueSet/$expand?url=http%3A%2F%2Fx%2Fa&count=10000",
            "ValueSet/$expand?url=http%3A%2F%2Fx%2Fa&count=10000&offset=1"
        ]
    );
}

#[test]
fn pages_are_counted_by_their_concepts() {
    let page = |inner: &str| {
        reply(
            200,
            &format!(r#"{{"resourceType":"ValueSet","expansion":{{"total":3,{inner}}}}}"#),
        )
    };
    let pages = move |address: &str| match address.contains("offset=2") {
        true => page(r#""offset":2,"contains":[{"code":"aqlite.local"}]"#),
        false => page(r#""contains":[{"code":"group","abstract":true},{"code":"other"}]"#),
    };
    let (response, asked) = ask(EXPAND, pages);
    assert!(
        String::from_utf8_lossy(&response.body).contains("\"rows\":[[1]]"),
        "{response:?}"
    );
    assert_eq!(asked.len(), 2);
}

#[test]
fn expansion_with_a_wrong_or_missing_page_has_no_answer() {
    for inner in [
        r#""offset":0,"contains":[{"code":"aqlite.local"}]"#,
        r#""contains":[{"code":"aqlite.local"}]"#,
        r#""contains":[]"#,
    ] {
        let body = format!(r#"{{"resourceType":"ValueSet","expansion":{{"total":3,{inner}}}}}"#);
        let (response, _) = ask(EXPAND, move |_| reply(200, &body));
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, 502, "{inner}: {text}");
        assert!(text.contains("AQL0505"), "{inner}: {text}");
    }
}

#[test]
fn response_that_cannot_be_read_is_not_cached() {
    let count = Cell::new(0);
    let (responses, asked) = ask_again(EXPAND, 3, move |_| {
        count.set(count.get() + 1);
        match count.get() {
            1 => reply(200, "<html>sign in</html>"),
            _ => reply(
                200,
                r#"{"resourceType":"ValueSet","expansion":{"contains":[{"code":"aqlite.local"}]}}"#,
            ),
        }
    });
    let statuses: Vec<u16> = responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [502, 200, 200]);
    assert_eq!(asked.len(), 2, "the third query reads the cache");
}

#[test]
fn server_of_very_small_pages_is_not_asked_for_all() {
    let (response, asked) = ask(EXPAND, |address| {
        let offset = address.split("&offset=").nth(1).unwrap_or("0");
        let page =
            format!(r#""total":90000,"offset":{offset},"contains":[{{"code":"c{offset}"}}]"#);
        reply(
            200,
            &format!(r#"{{"resourceType":"ValueSet","expansion":{{{page}}}}}"#),
        )
    });
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert_eq!((response.status, asked.len()), (400, 200), "{text}");
    assert!(
        text.contains("AQL0502") && text.contains("200 pages"),
        "{text}"
    );
}

#[test]
fn version_of_a_canonical_url_is_a_parameter_of_its_own() {
    let query = EXPAND.replace("url=http://x/a", "url=http://x/a|2.0");
    let (response, asked) = ask(&query, |_| {
        reply(
            200,
            r#"{"resourceType":"ValueSet","expansion":{"contains":[{"code":"x"}]}}"#,
        )
    });
    assert_eq!(response.status, 200);
    assert_eq!(
        asked,
        ["ValueSet/$expand?url=http%3A%2F%2Fx%2Fa&valueSetVersion=2.0&count=10000"]
    );
}

#[test]
fn an_empty_value_set_has_no_members() {
    let (response, asked) = ask(EXPAND, |_| {
        reply(
            200,
            r#"{"resourceType":"ValueSet","expansion":{"total":0}}"#,
        )
    });
    assert!(
        String::from_utf8_lossy(&response.body).contains("\"rows\":[[0]]"),
        "{response:?}"
    );
    assert_eq!(asked.len(), 1);
}

#[test]
fn equal_terminology_requests_are_sent_once() {
    let twice = format!(
        "{EXPAND} OR NOT {}",
        EXPAND.split_once("WHERE ").expect("WHERE").1
    );
    let (response, asked) = ask(&twice, |_| {
        reply(
            200,
            r#"{"resourceType":"ValueSet","expansion":{"contains":[{"code":"x"}]}}"#,
        )
    });
    assert_eq!((response.status, asked.len()), (200, 1));
}

#[test]
fn every_failure_has_a_status_and_a_code() {
    let outcome = r#"{"resourceType":"OperationOutcome","issue":[{"diagnostics":"no such set"}]}"#;
    let statuses: [(u16, &str, u16, &str); 8] = [
        (404, outcome, 400, "AQL0502"),
        (422, "", 400, "AQL0502"),
        (401, "", 502, "AQL0505"),
        (429, "", 502, "AQL0505"),
        (500, "", 502, "AQL0505"),
        (302, "", 502, "AQL0505"),
        (200, "<html>", 502, "AQL0505"),
        (200, r#"{"resourceType":"Bundle"}"#, 502, "AQL0505"),
    ];
    for (status, body, expected, code) in statuses {
        let (response, _) = ask(EXPAND, move |_| reply(status, body));
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, expected, "{status}: {text}");
        assert!(
            text.contains(code) && (body != outcome || text.contains("no such set")),
            "{status}: {text}"
        );
    }
    for (unreachable, expected, code) in [
        (Unreachable::Late, 504, "AQL0506"),
        (Unreachable::Failed("refused".into()), 502, "AQL0505"),
    ] {
        let (response, _) = ask(EXPAND, move |_| Err(unreachable.clone()));
        assert_eq!(response.status, expected);
        assert!(String::from_utf8_lossy(&response.body).contains(code));
    }
}

#[test]
fn endless_value_sets_are_refused() {
    let many = |_: &str| {
        reply(
            200,
            r#"{"resourceType":"ValueSet","expansion":{"total":2000000,"contains":[{"code":"x"}]}}"#,
        )
    };
    let (response, asked) = ask(EXPAND, many);
    assert_eq!((response.status, asked.len()), (400, 1));
}

/// Runs a guide about the coded name of compositions with the answers of a simulated server.
fn run_guide(
    answer: impl Fn(&str) -> Result<TerminologyResponse, Unreachable> + 'static,
) -> (Response, Vec<String>) {
    run_guide_on(&mut Ticks::new(), answer)
}

/// Runs it on a host.
fn run_guide_on(
    environment: &mut dyn Environment,
    answer: impl Fn(&str) -> Result<TerminologyResponse, Unreachable> + 'static,
) -> (Response, Vec<String>) {
    let asked = Asked::default();
    let server = Server {
        asked: Rc::clone(&asked),
        answer,
        kept: RefCell::default(),
    };
    let service = Service::new(
        Memory::new(),
        Config {
            auth: Auth::Open,
            ..Config::default()
        },
    )
    .with_terminology(Box::new(server));
    let read = |name: &str| std::fs::read_to_string(format!("tests/cases/{name}")).expect("a file");
    let mut send = |method: &str, path: &str, media_type: &str, body: String| {
        now_or_never(service.handle(
            &Request::new(method, path).with_body(media_type, body),
            &mut *environment,
        ))
        .expect("ready")
    };
    let guide = read("rest/language_group.gdl2")
        .replace("\"/language\"", "\"/name\"")
        .replace("ISO_639-1\": {\"bindings", "SNOMED-CT\": {\"bindings");
    let guide = guide.replace(
        "\"codes\": [], \"uri\": \"http://example.org/germanic\"",
        "\"codes\": [\"SNOMED-CT::27113001\"]",
    );
    let coded = r#"{"_type": "DV_CODED_TEXT", "value": "Encounter", "defining_code": {"_type": "CODE_PHRASE",
        "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "SNOMED-CT"}, "code_string": "363808001"}}"#;
    let mut composition: serde_json::Value =
        serde_json::from_str(&read("rest/weight.json")).expect("JSON");
    composition["name"] = serde_json::from_str(coded).expect("JSON");
    assert_eq!(
        send(
            "POST",
            "/v1/definition/template/adl1.4",
            "application/xml",
            read("template/small.opt")
        )
        .status,
        201
    );
    assert_eq!(
        send("POST", "/v1/definition/gdl", "application/json", guide).status,
        201
    );
    assert_eq!(
        send(
            "PUT",
            "/v1/ehr/7d44b88c-4199-4bad-97dc-d78268e01398",
            "application/json",
            String::new()
        )
        .status,
        201
    );
    let sent = send(
        "POST",
        "/v1/ehr/7d44b88c-4199-4bad-97dc-d78268e01398/composition",
        "application/json",
        composition.to_string(),
    );
    assert_eq!(sent.status, 201, "{}", String::from_utf8_lossy(&sent.body));
    let response = send(
        "GET",
        "/v1/gdl/query/7d44b88c-4199-4bad-97dc-d78268e01398/language_group.v1",
        "application/json",
        String::new(),
    );
    let asked = asked.borrow().clone();
    (response, asked)
}

#[test]
fn a_guide_requests_the_codes_subsumed_by_its_terms() {
    let outcome = |name: &str| {
        let body = format!(
            r#"{{"resourceType":"Parameters","parameter":[{{"name":"outcome","valueCode":"{name}"}}]}}"#
        );
        move |_: &str| reply(200, &body)
    };
    let fired = |response: &Response| {
        String::from_utf8_lossy(&response.body).contains("\"rules_executed\":[\"gt0011\"]")
    };
    let (response, asked) = run_guide(outcome("subsumes"));
    assert!(response.status == 200 && fired(&response), "{response:?}");
    assert_eq!(
        asked,
        [
            "CodeSystem/$subsumes?system=http%3A%2F%2Fsnomed.info%2Fsct&codeA=27113001&codeB=363808001"
        ]
    );
    let (response, _) = run_guide(outcome("not-subsumed"));
    assert!(response.status == 200 && !fired(&response), "{response:?}");
    // If the server does not know the codes, they are compared as texts.
    let (response, _) = run_guide(|_| reply(404, ""));
    assert!(response.status == 200 && !fired(&response), "{response:?}");
    for (answer, status) in [(reply(500, ""), 502), (Err(Unreachable::Late), 504)] {
        let (response, _) = run_guide(move |_| answer.clone());
        assert_eq!(response.status, status);
        assert!(
            String::from_utf8_lossy(&response.body).contains("guide language_group.v1: `is_a`: "),
            "{response:?}"
        );
    }
}

/// A host that records the permits that a request exchanges, and refuses one kind.
struct Permits {
    ticks: Ticks,
    exchanged: Vec<Work>,
    refused: Option<Work>,
}

impl Environment for Permits {
    fn now(&mut self) -> i64 {
        self.ticks.now()
    }

    fn new_uuid(&mut self) -> String {
        self.ticks.new_uuid()
    }

    fn replace_permit(&mut self, work: Work) -> WaitFuture {
        self.exchanged.push(work);
        Box::pin(ready(self.refused != Some(work)))
    }
}

#[test]
fn a_wait_for_a_server_has_its_own_permit_and_the_work_after_it_too() {
    let run = |refused| {
        let mut host = Permits {
            ticks: Ticks::new(),
            exchanged: Vec::new(),
            refused,
        };
        let (response, asked) = run_guide_on(&mut host, |_| reply(404, ""));
        (response.status, asked.len(), host.exchanged)
    };
    let both = vec![Work::ForeignWait, Work::Heavy];
    assert_eq!(run(None), (200, 1, both.clone()));
    assert_eq!(run(Some(Work::ForeignWait)), (429, 0, both[..1].to_vec()));
    assert_eq!(run(Some(Work::Heavy)), (429, 1, both));
}
