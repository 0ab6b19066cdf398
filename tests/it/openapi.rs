//! The OpenAPI document compared with actual answers: every status of the cases is documented, and
//! every documented status occurs.

use crate::rest::{Handler, Ticks, run_all};
use aqlite::service::auth::{Caller, Denied};
use aqlite::service::{
    Auth, Config, Environment, Limits, Request, Response, Service, body_limit, operation,
};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The statuses of each operation, such as `GET ehr/{ehr_id}`.
type Seen = BTreeMap<String, BTreeSet<u16>>;

/// A service that records its answers.
struct Noting {
    service: Service<Memory>,
    seen: Rc<RefCell<Seen>>,
    bodies: Rc<Bodies>,
}

/// The JSON schemas of the answers, and the number of answers that each accepted.
pub struct Bodies {
    document: Value,
    validators: RefCell<BTreeMap<String, Option<jsonschema::Validator>>>,
    fulfilled: RefCell<BTreeMap<String, usize>>,
    complaints: RefCell<BTreeSet<String>>,
    /// The operations that succeeded without the body that they may have.
    bodiless: RefCell<BTreeSet<String>>,
    /// The headers of responses that have been seen, with their operation and status.
    headers: RefCell<BTreeSet<[String; 3]>>,
}

/// Headers of every response, which the document does not list.
const GENERAL: [&str; 9] = [
    "Content-Type",
    "X-Request-Id",
    "X-Content-Type-Options",
    "Content-Security-Policy",
    "Cache-Control",
    "Vary",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
    "Content-Encoding",
];

impl Bodies {
    /// Reads the schemas of the document that a service serves.
    pub fn new() -> Bodies {
        let document = aqlite::service::openapi();
        Bodies {
            document,
            validators: RefCell::default(),
            fulfilled: RefCell::default(),
            complaints: RefCell::default(),
            bodiless: RefCell::default(),
            headers: RefCell::default(),
        }
    }

    /// Notes a request that succeeded without a body.
    fn check_absent_body(&self, request: &Request, status: u16) {
        let name = operation(request).filter(|_| status < 300 && request.body.is_empty());
        let Some(name) = name else { return };
        let (method, path) = name.split_once(' ').unwrap();
        let operation = &self.document["paths"][format!("/{path}")][method.to_lowercase()];
        match operation["requestBody"]["required"].as_bool() {
            Some(true) => {
                let complaint = format!("{name}: {status} without the body that is `required`");
                self.complaints.borrow_mut().insert(complaint);
            }
            Some(false) => drop(self.bodiless.borrow_mut().insert(name)),
            None => {}
        }
    }

    /// Notes the headers of an answer.
    fn note_headers(&self, request: &Request, response: &Response) {
        let Some(name) = operation(request) else {
            return;
        };
        let mut seen = self.headers.borrow_mut();
        for (header, _) in &response.headers {
            if !GENERAL
                .iter()
                .any(|general| general.eq_ignore_ascii_case(header))
            {
                let status = response.status.to_string();
                seen.insert([name.clone(), status, header.to_ascii_lowercase()]);
            }
        }
    }

    /// Returns the headers of answers that are not documented, and the documented ones that no
    /// answer of the kind had.
    fn header_complaints(&self) -> Vec<String> {
        // Some headers of a success depend on its status, and errors of all kinds have the same.
        let class_of = |status: &str, kind: &str| match status.as_bytes().first() {
            Some(b'2') => format!("{kind} 2xx"),
            Some(b'3') => format!("{kind} 3xx"),
            _ => String::from("error"),
        };
        let (mut complaints, mut shown, mut absent) = (vec![], BTreeSet::new(), BTreeMap::new());
        let seen = self.headers.borrow();
        for (path, methods) in self.document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let Some(kind) = operation["x-kind"].as_str() else {
                    continue;
                };
                let name = format!("{} {}", method.to_uppercase(), path.trim_start_matches('/'));
                for (status, response) in operation["responses"].as_object().unwrap() {
                    for header in self.headers_of(response) {
                        let has = seen.contains(&[name.clone(), status.clone(), header.clone()]);
                        match (has, class_of(status, kind)) {
                            (true, class) => drop(shown.insert(format!("{class} {header}"))),
                            (false, class) => {
                                absent.insert(format!("{class} {header}"), name.clone());
                            }
                        }
                    }
                }
            }
        }
        for [name, status, header] in seen.iter() {
            let (method, path) = name.split_once(' ').unwrap();
            let operation = &self.document["paths"][format!("/{path}")][method.to_lowercase()];
            let response = &operation["responses"][status];
            if !self.headers_of(response).contains(header) {
                let kind = &operation["x-kind"];
                complaints.push(format!("{name} ({kind}): {status} has the header {header}"));
            }
        }
        // Hosts limit the rate of requests.
        absent.retain(|key, _| !shown.contains(key) && key != "error retry-after");
        let absent = absent.into_iter();
        complaints.extend(absent.map(|(key, name)| format!("{name}: no answer shows {key}")));
        complaints
    }

    /// Returns the lower-case names of the headers of a response of the document.
    fn headers_of(&self, response: &Value) -> BTreeSet<String> {
        let named = response["$ref"].as_str().map(|reference| {
            let path = reference.trim_start_matches('#');
            self.document.pointer(path).expect("a response")
        });
        let headers = named.unwrap_or(response)["headers"].as_object();
        let names = headers.into_iter().flatten();
        names.map(|(name, _)| name.to_ascii_lowercase()).collect()
    }

    /// Compares a JSON answer with the schema of its operation, status and media type.
    pub fn check(&self, request: &Request, response: &Response) {
        let media_type = response.header("Content-Type").unwrap_or_default();
        let (Some(name), true) = (
            operation(request),
            !media_type.contains("ndjson")
                && media_type.ends_with("json")
                && !response.body.is_empty(),
        ) else {
            return;
        };
        let (method, path) = name.split_once(' ').unwrap();
        let status = if response.status < 400 {
            response.status.to_string()
        } else {
            String::from("error")
        };
        let key = format!("{name} {status} {media_type}");
        let mut validators = self.validators.borrow_mut();
        let validator = validators
            .entry(key.clone())
            .or_insert_with(|| self.validator(method, path, &status, media_type));
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        match validator {
            None => drop(
                self.complaints
                    .borrow_mut()
                    .insert(format!("{key}: no schema")),
            ),
            // Explaining why none of many classes fits takes exponential time. The body is
            // sufficient.
            Some(validator) if validator.is_valid(&body) => {
                *self.fulfilled.borrow_mut().entry(key).or_default() += 1
            }
            Some(_) => {
                let shown: String = body.to_string().chars().take(300).collect();
                self.complaints
                    .borrow_mut()
                    .insert(format!("{key}: {shown}"));
            }
        }
    }

    /// Fails if an answer differed from its schema, or if answers of few operations were compared.
    pub fn assert_fulfilled(&self) {
        let wrong = self.complaints.borrow();
        assert!(
            wrong.is_empty(),
            "\n{}",
            wrong.iter().cloned().collect::<Vec<_>>().join("\n")
        );
        assert!(
            self.fulfilled.borrow().len() > 60,
            "answers of {} kinds were compared",
            self.fulfilled.borrow().len()
        );
    }

    fn validator(
        &self,
        method: &str,
        path: &str,
        status: &str,
        media_type: &str,
    ) -> Option<jsonschema::Validator> {
        let responses =
            &self.document["paths"][format!("/{path}")][method.to_lowercase()]["responses"];
        let schema = match status {
            "error" => {
                &self.document["components"]["responses"]["Error"]["content"][media_type]["schema"]
            }
            status => &responses[status]["content"][media_type]["schema"],
        };
        let mut root = schema.as_object()?.clone();
        root.insert("components".into(), self.document["components"].clone());
        Some(jsonschema::draft4::new(&Value::Object(root)).expect("a schema"))
    }
}

impl Handler for Noting {
    fn handle(&self, request: &Request, environment: &mut dyn Environment) -> Response {
        let response =
            now_or_never(self.service.handle(request, environment)).expect("memory never waits");
        note(&self.seen, request, response.status);
        self.bodies.check(request, &response);
        self.bodies.note_headers(request, &response);
        self.bodies.check_absent_body(request, response.status);
        response
    }
}

fn note(seen: &RefCell<Seen>, request: &Request, status: u16) {
    if let Some(name) = operation(request) {
        seen.borrow_mut().entry(name).or_default().insert(status);
    }
}

/// Returns the documented statuses by operation, the kind of each operation, and the operations
/// that have a body.
fn documented() -> (Seen, BTreeMap<String, String>, BTreeSet<String>) {
    let (mut statuses, mut kinds, mut bodies) = (Seen::new(), BTreeMap::new(), BTreeSet::new());
    let document = aqlite::service::openapi();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, said) in methods.as_object().unwrap() {
            let Some(kind) = said["x-kind"].as_str() else {
                continue;
            };
            assert!(!kind.is_empty(), "{method} {path} is not described");
            let name = format!("{} {}", method.to_uppercase(), path.trim_start_matches('/'));
            let codes = said["responses"]
                .as_object()
                .unwrap()
                .keys()
                .map(|s| s.parse().unwrap())
                .collect();
            kinds.insert(name.clone(), kind.to_owned());
            if said.get("requestBody").is_some() {
                bodies.insert(name.clone());
            }
            statuses.insert(name, codes);
        }
    }
    (statuses, kinds, bodies)
}

/// The limit of bodies, which a new EHR does not reach when it is stored.
const LIMIT: usize = 10_000;

/// Sends requests to every operation that many of them must refuse.
fn sweep(seen: &RefCell<Seen>, names: impl Iterator<Item = String>, bodies: &BTreeSet<String>) {
    let config = |auth| Config {
        auth,
        admin: true,
        limits: Limits {
            body: LIMIT,
            ..Limits::default()
        },
        ..Config::default()
    };
    let (open, closed) = (
        Service::new(Memory::new(), config(Auth::Open)),
        Service::new(Memory::new(), config(Auth::Known)),
    );
    let mut environment = Ticks::new();
    let ehr = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    let stranger = Caller::with_roles("stranger", "", &[]);
    for name in names {
        let (method, pattern) = name.split_once(' ').unwrap();
        let made = Request::new("PUT", &format!("/v1/ehr/{ehr}"));
        now_or_never(open.handle(&made, &mut environment)).unwrap();
        let part = |part: &str| {
            if part == "{ehr_id}" {
                ehr.to_owned()
            } else {
                part.trim_matches(['{', '}']).to_owned()
            }
        };
        let path: Vec<String> = pattern.split('/').map(part).collect();
        for mount in ["/v1", "/rest/openehr/v1"] {
            let target = format!("{mount}/{}", path.join("/"));
            let request =
                || Request::new(method, &target).with_header("Prefer", "return=representation");
            let mut asks = vec![
                request(),
                Request::new(method, &format!("{target}?unreadable=%FF")),
                request().with_header("Accept", "application/x-nothing"),
            ];
            if bodies.contains(&name) || method != "GET" {
                let too_large = "x".repeat(body_limit(&request(), LIMIT) + 1);
                let types = [
                    ("image/png", "x"),
                    ("application/json", "{}"),
                    ("application/json", too_large.as_str()),
                ];
                asks.extend(types.map(|(media_type, body)| request().with_body(media_type, body)));
            }
            for ask in &asks {
                note(
                    seen,
                    ask,
                    now_or_never(open.handle(ask, &mut environment))
                        .unwrap()
                        .status,
                );
            }
            for caller in [Err(&Denied::no_credentials("Bearer")), Ok(&stranger)] {
                note(
                    seen,
                    &asks[0],
                    now_or_never(closed.serve(&asks[0], caller, &mut environment))
                        .unwrap()
                        .status,
                );
            }
        }
    }
}

/// A clock that advances by a minute at each reading.
struct Slow(Ticks, i64);

impl Environment for Slow {
    fn now(&mut self) -> i64 {
        self.1 += 60_000_000;
        self.0.now() + self.1
    }

    fn new_uuid(&mut self) -> String {
        self.0.new_uuid()
    }
}

fn answered_slowly(request: &Request) -> u16 {
    let service = Service::new(
        Memory::new(),
        Config {
            auth: Auth::Open,
            ..Config::default()
        },
    );
    let mut environment = Slow(Ticks::new(), 0);
    now_or_never(service.handle(&Request::new("POST", "/v1/ehr"), &mut environment)).unwrap();
    now_or_never(service.handle(request, &mut environment))
        .unwrap()
        .status
}

/// Statuses that hosts determine: a host name that is not theirs; a rate limit; an absent issuer or
/// database.
const OF_HOSTS: [u16; 3] = [421, 429, 503];

#[test]
fn every_status_is_documented_and_every_documented_status_is_real() {
    let seen: Rc<RefCell<Seen>> = Rc::default();
    let (noted, checked) = (Rc::clone(&seen), Rc::new(Bodies::new()));
    let noting = |config| Noting {
        service: Service::new(Memory::new(), config),
        seen: Rc::clone(&noted),
        bodies: Rc::clone(&checked),
    };
    run_all(&|config| Box::new(noting(config)));
    checked.assert_fulfilled();
    let found = checked.header_complaints();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    assert_eq!(
        optional_bodies(&checked.document),
        *checked.bodiless.borrow(),
        "a case shows each body that may be absent"
    );
    let (documented, kinds, bodies) = documented();
    sweep(&seen, documented.keys().cloned(), &bodies);
    let slow = Request::new("POST", "/v1/query/aql").with_body(
        "application/json",
        r#"{"q":"SELECT e/ehr_id/value FROM EHR e"}"#,
    );
    note(&seen, &slow, answered_slowly(&slow));
    let seen = seen.borrow();
    let found = complaints(&seen, &documented, &kinds);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    let doctored = |change: &dyn Fn(&mut BTreeSet<u16>) -> bool| {
        let mut documented = documented.clone();
        assert!(change(documented.get_mut("GET ehr/{ehr_id}").unwrap()));
        complaints(&seen, &documented, &kinds)
    };
    let invented = doctored(&|codes| codes.insert(418));
    assert_eq!(
        invented,
        ["GET ehr/{ehr_id} (ehr) documents [418], which no case shows"]
    );
    let forgotten = doctored(&|codes| codes.remove(&404));
    assert_eq!(
        forgotten,
        ["GET ehr/{ehr_id} answers [404], which is not documented"]
    );
}

/// Calls `visit` with the media type and the schema of each body below a value.
fn each_body(value: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    let Value::Object(members) = value else {
        return;
    };
    for (name, member) in members {
        let bodies = member.as_object().filter(|_| name == "content");
        for (media_type, body) in bodies.into_iter().flatten() {
            visit(media_type, &body["schema"]);
        }
        each_body(member, visit);
    }
}

#[test]
fn bodies_that_are_no_json_are_texts() {
    let document = aqlite::service::openapi();
    let (mut texts, mut others) = (0, 0);
    each_body(&document["paths"], &mut |media_type, schema| {
        let is_json = media_type == "application/json" || media_type.contains("openehr.wt");
        let is_text = schema["type"] == "string";
        assert_ne!(is_json, is_text, "{media_type}: {schema}");
        *(if is_json { &mut others } else { &mut texts }) += 1;
    });
    assert!(texts > 50 && others > 50, "{texts} {others}");
}

/// Returns the operations whose body may be absent.
fn optional_bodies(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["requestBody"]["required"] == false {
                let path = path.trim_start_matches('/');
                found.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    found
}

/// Returns the statuses that occur and are not documented, and the documented ones that never
/// occur.
fn complaints(seen: &Seen, documented: &Seen, kinds: &BTreeMap<String, String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut shown: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
    for (name, statuses) in seen {
        let undocumented: Vec<&u16> = statuses.difference(&documented[name]).collect();
        if !undocumented.is_empty() {
            complaints.push(format!(
                "{name} answers {undocumented:?}, which is not documented"
            ));
        }
        shown
            .entry(kinds[name].as_str())
            .or_default()
            .extend(statuses);
    }
    for (name, codes) in documented {
        let shown = shown.get(kinds[name].as_str()).cloned().unwrap_or_default();
        let unreal: Vec<&u16> = codes
            .difference(&shown)
            .filter(|s| !OF_HOSTS.contains(s))
            .collect();
        if !unreal.is_empty() {
            complaints.push(format!(
                "{name} ({}) documents {unreal:?}, which no case shows",
                kinds[name]
            ));
        }
    }
    complaints
}

#[test]
fn the_document_is_well_formed() {
    let document = aqlite::service::openapi();
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for said in methods
            .as_object()
            .unwrap()
            .values()
            .filter_map(|m| m.get("operationId"))
        {
            assert!(
                ids.insert(said.as_str().unwrap().to_owned()),
                "{said} twice"
            );
        }
        for said in methods
            .as_object()
            .unwrap()
            .values()
            .filter(|m| m["operationId"].is_string())
        {
            let named: Vec<&Value> = said["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|p| p["in"] == "path")
                .map(|p| &p["name"])
                .collect();
            assert_eq!(named.len(), path.matches('{').count(), "{path}");
            assert!(
                said["x-roles"]
                    .as_array()
                    .is_some_and(|roles| !roles.is_empty()),
                "{path}"
            );
        }
    }
    assert!(ids.len() > 80, "{}", ids.len());
}
