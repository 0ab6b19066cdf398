//! Tests that the pattern of a scope limits every route of definitions, and every composition.

use super::super::route::{Operation, Route, routes};
use super::super::{Auth, Config, Request, Response, Service};
use super::ticks::Ticks;
use super::{Action, Caller, Permission, Resource};
use crate::store::memory::Memory;
use crate::store::ready::now_or_never;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const TEMPLATE: &str = include_str!("../../../tests/cases/template/small.opt");
const TEMPLATE_2: &str = include_str!("../../../tests/cases/template/note.adls");
const GUIDE: &str = include_str!("../../../tests/cases/rest/weight_class.gdl2");
const VALUE_SET: &str = r#"{"resourceType":"ValueSet","url":"http://x.example/weights","title":"a title","compose":{"include":[{"system":"http://s.example","concept":[{"code":"c1"}]}]}}"#;
const VALUE_SET_PATH: &str = "http:%2F%2Fx.example%2Fweights";
const QUERY: &str = r#"{"q":"SELECT e/ehr_id/value FROM EHR e"}"#;
const RUN: &str =
    r#"{"guide_id":"weight_class.v1","ehr_ids":["6ba7b810-9dad-41d1-80b4-00c04fd430c8"]}"#;
/// The names of the stored definitions, and of no other.
const NAMES: [&str; 4] = [
    "weight.en.v2",
    "weight_class.v1",
    "http://x.example/weights",
    "org.weights::all",
];

/// A service with one definition of each kind and an EHR.
struct Host(Service<Memory>, Ticks);

impl Host {
    /// Returns a service without definitions and EHRs.
    fn empty() -> Host {
        let config = Config {
            auth: Auth::Known,
            ..Config::default()
        };
        Host(Service::new(Memory::new(), config), Ticks::default())
    }

    fn new() -> Host {
        let mut host = Host::empty();
        let owner = Caller::with_roles("owner", "", &["read", "write", "query", "define"]);
        for (method, target, media_type, body) in [
            ("PUT", &*format!("/v1/ehr/{EHR}"), "application/json", ""),
            (
                "POST",
                "/v1/definition/template?type=opt14",
                "application/xml",
                TEMPLATE,
            ),
            ("POST", "/v1/definition/gdl", "application/json", GUIDE),
            (
                "PUT",
                "/v1/query/org.weights::all/1.0.0",
                "application/json",
                QUERY,
            ),
            (
                "PUT",
                &format!("/v1/definition/valueset/{VALUE_SET_PATH}"),
                "application/json",
                VALUE_SET,
            ),
        ] {
            let answer = host.send(&owner, method, target, media_type, body);
            assert!([200, 201].contains(&answer.status), "{target}: {answer:?}");
        }
        host
    }

    fn send(
        &mut self,
        caller: &Caller,
        method: &str,
        target: &str,
        media_type: &str,
        body: &str,
    ) -> Response {
        let request = Request::new(method, target).with_body(media_type, body);
        now_or_never(self.0.serve(&request, Ok(caller), &mut self.1)).unwrap()
    }

    fn status(&mut self, caller: &Caller, method: &str, target: &str, body: &str) -> u16 {
        self.send(caller, method, target, "application/json", body)
            .status
    }
}

fn app(scopes: &str) -> Caller {
    Caller::with_roles("app", "https://id.example", &[]).narrowed(scopes, Some(EHR), false)
}

/// Returns a caller with every permission on definitions whose names match a pattern.
fn limited_to(pattern: &str) -> Caller {
    let scopes = ["template", "aql", "guide"]
        .map(|word| format!("user/{word}-{pattern}.cruds system/{word}-{pattern}.cruds"));
    app(&scopes.join(" "))
}

fn has_definitions(route: &Route) -> bool {
    let resource = route.permission.resource;
    matches!(
        resource,
        Resource::Template | Resource::Query | Resource::Guide
    )
}

fn text(response: &Response) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

/// Each route that names a definition refuses a foreign name, each list leaves it out, and each
/// upload refuses a body with it. A new route of definitions must do the same.
#[test]
fn pattern_limits_every_route_of_definitions() {
    let mut host = Host::new();
    let other = limited_to("other");
    for route in routes().filter(|route| has_definitions(route)) {
        let is_name =
            |part: &&str| part.starts_with('{') && !["{ehr_id}", "{version}"].contains(part);
        let names_one = route.pattern.split('/').any(|part| is_name(&part));
        let path: Vec<&str> = route
            .pattern
            .split('/')
            .map(|part| match part {
                "{ehr_id}" => EHR,
                "{version}" => "1.0.0",
                "{url}" => VALUE_SET_PATH,
                part if part.starts_with('{') => "org.weights::all",
                part => part,
            })
            .collect();
        let target = format!(
            "/v1/{}?ehr_id={EHR}&guide_id=weight_class.v1",
            path.join("/")
        );
        let lists = route.operation == Operation::QueryList
            || (!names_one && (route.method, route.permission.act) == ("GET", Action::Read));
        let (media_type, body) = match route.operation {
            Operation::TemplateUpload if target.contains("adl2") => ("text/plain", TEMPLATE_2),
            Operation::TemplateUpload => ("application/xml", TEMPLATE),
            Operation::GuideUpload => ("application/json", GUIDE),
            Operation::GuideRunOn => ("application/json", RUN),
            _ => ("application/json", QUERY),
        };
        let query = if route.operation == Operation::TemplateUpload {
            "&type=opt14"
        } else {
            ""
        };
        let answer = host.send(
            &other,
            route.method,
            &format!("{target}{query}"),
            media_type,
            body,
        );
        let (status, text) = (answer.status, text(&answer));
        let expected = if lists { 200 } else { 403 };
        assert_eq!(status, expected, "{} {target}: {text}", route.method);
        let named = NAMES.iter().find(|name| text.contains(**name));
        assert_eq!(named, None, "{} {target}: {text}", route.method);
    }
}

#[test]
fn lists_have_the_definitions_that_a_pattern_matches() {
    let mut host = Host::new();
    let weights = limited_to("**weight**");
    for (target, name) in [
        ("/v1/definition/template", NAMES[0]),
        ("/v1/definition/gdl", NAMES[1]),
        ("/v1/cds-services", NAMES[1]),
        ("/v1/definition/valueset", NAMES[2]),
        ("/v1/definition/query", NAMES[3]),
    ] {
        let answer = host.send(&weights, "GET", target, "application/json", "");
        assert!(text(&answer).contains(name), "{target}: {answer:?}");
    }
}

#[test]
fn value_set_is_named_by_its_url_without_a_version() {
    let mut host = Host::new();
    let exact = app("user/template-http://x.example/weights.cruds");
    for path in [VALUE_SET_PATH, &format!("{VALUE_SET_PATH}%7C7")] {
        let target = format!("/v1/definition/valueset/{path}");
        assert_eq!(host.status(&exact, "GET", &target, ""), 200, "{path}");
        assert_eq!(
            host.status(&exact, "PUT", &target, VALUE_SET),
            204,
            "{path}"
        );
    }
    let versioned = app("user/template-http://x.example/weights|7.cruds");
    let target = format!("/v1/definition/valueset/{VALUE_SET_PATH}%7C7");
    assert_eq!(host.status(&versioned, "GET", &target, ""), 403);
}

#[test]
fn scope_of_one_ehr_reads_definitions_and_changes_none() {
    let mut host = Host::new();
    let patient = app("patient/template-*.cruds patient/aql-*.cruds patient/guide-*.cruds");
    for route in routes().filter(|route| has_definitions(route)) {
        let Permission { act, .. } = route.permission;
        if !matches!(act, Action::Create | Action::Update | Action::Delete) {
            continue;
        }
        let path = route.pattern.replace("{url}", VALUE_SET_PATH);
        let answer = host.send(
            &patient,
            route.method,
            &format!("/v1/{path}"),
            "application/json",
            "{}",
        );
        let text = text(&answer);
        assert_eq!(answer.status, 403, "{path}: {text}");
        assert!(text.contains("or a `user/` scope for"), "{path}: {text}");
    }
    let target = format!("/v1/definition/valueset/{VALUE_SET_PATH}");
    assert_eq!(host.status(&patient, "GET", &target, ""), 200);
    let creates = app("patient/composition-*.cruds");
    let answer = host.send(&creates, "POST", "/v1/ehr", "application/json", "");
    assert_eq!(answer.status, 403);
    assert!(
        text(&answer).contains("a `user/` scope for `composition` with `c`"),
        "{answer:?}"
    );
}

/// Returns a document of the stored template, with this template id.
fn weight(template: &str) -> String {
    include_str!("../../../tests/cases/rest/weight.json").replace("weight.en.v2", template)
}

/// Whether the template exists, and whether the document fits it, makes no difference.
#[test]
fn document_of_a_template_beyond_the_pattern_has_one_answer() {
    let mut host = Host::new();
    for scope in [
        "patient/composition-other.cruds",
        "user/composition-other.cruds",
    ] {
        let caller = app(scope);
        let mut refused = |method: &str, target: &str, media_type: &str, body: &str| {
            let answer = host.send(&caller, method, target, media_type, body);
            (answer.status, text(&answer))
        };
        let valid = weight("weight.en.v2");
        let invalid = valid.replace("Nurse Berg", "");
        let unknown = weight("unknown.v1");
        for mount in ["/v1", "/rest/openehr/v1"] {
            let ehr = format!("{mount}/ehr/{EHR}");
            let documents = [&valid, &invalid, &unknown].map(|body| {
                refused(
                    "POST",
                    &format!("{ehr}/composition"),
                    "application/json",
                    body,
                )
            });
            let flats = ["weight.en.v2", "unknown.v1"].map(|template| {
                let target = format!("{ehr}/composition?templateId={template}");
                let media_type = "application/openehr.wt.flat+json";
                refused("POST", &target, media_type, r#"{"nothing/here":"1"}"#)
            });
            for (status, answer) in documents.iter().chain(&flats) {
                assert_eq!((*status, answer), (403, &documents[0].1), "{scope} {mount}");
            }
            let members = [&valid, &invalid, &unknown].map(|data| {
                let body = format!(
                    r#"{{"versions":[{{"commit_audit":{{"change_type":{{"value":"creation","defining_code":{{"terminology_id":{{"value":"openehr"}},"code_string":"249"}}}}}},"data":{data}}}],"audit":{{}}}}"#
                );
                refused("POST", &format!("{ehr}/contribution"), "application/json", &body)
            });
            for (status, answer) in &members {
                assert_eq!((*status, answer), (403, &members[0].1), "{scope} {mount}");
            }
        }
    }
}

/// A load needs the pattern `*`, which this caller has in another EHR only.
#[test]
fn line_of_a_template_beyond_the_pattern_has_one_answer() {
    let mut host = Host::new();
    let other = "7ba7b810-9dad-41d1-80b4-00c04fd430c8";
    let owner = Caller::with_roles("owner", "", &["write"]);
    assert_eq!(
        host.status(&owner, "PUT", &format!("/v1/ehr/{other}"), ""),
        201
    );
    let caller = app("patient/composition-*.cruds user/composition-other.cruds");
    let valid = weight("weight.en.v2");
    let compositions = [valid.replace("Nurse Berg", ""), weight("unknown.v1"), valid];
    let status = |template: &str| {
        let details = format!(
            r#"{{"archetype_details":{{"archetype_id":{{"value":"openEHR-EHR-EHR_STATUS.generic.v1"}},"template_id":{{"value":"{template}"}},"rm_version":"1.1.0"}},"#
        );
        include_str!("../../../tests/cases/rest/status.json").replacen('{', &details, 1)
    };
    let statuses = ["weight.en.v2", "unknown.v1"].map(status);
    let lines = compositions.iter().map(|body| ("composition", body));
    let lines = lines.chain(statuses.iter().map(|body| ("ehr_status", body)));
    for (member, body) in lines {
        let body = body.replace('\n', "");
        let line = format!(r#"{{"ehr_id":"{other}","{member}":{body}}}"#);
        let answer = host.send(
            &caller,
            "POST",
            "/v1/ehr/bulk",
            "application/x-ndjson",
            &line,
        );
        let text = text(&answer);
        assert!(text.contains("\"status\":404"), "{member}: {text}");
    }
}

/// Scopes of templates concern compositions. Other documents need the pattern `*`.
#[test]
fn directory_with_a_template_needs_permission_for_everything() {
    let mut host = Host::new();
    let owner = Caller::with_roles("owner", "", &["admin", "define", "write"]);
    let stays = include_str!("../../../tests/cases/rest/folder.opt");
    let upload = "/v1/definition/template?type=opt14";
    let answer = host.send(&owner, "POST", upload, "application/xml", stays);
    assert_eq!(answer.status, 201, "{answer:?}");
    let folder = r#"{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.stays.v1","name":{"_type":"DV_TEXT","value":"Stays"},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-FOLDER.stays.v1"},"template_id":{"_type":"TEMPLATE_ID","value":"stays.v1"},"rm_version":"1.1.0"}}"#;
    let path = format!("/v1/ehr/{EHR}/directory");
    assert_eq!(host.status(&owner, "POST", &path, folder), 201);
    for (scope, status) in [("stays.v1", 403), ("*", 200)] {
        let caller = app(&format!("patient/composition-{scope}.cruds"));
        assert_eq!(host.status(&caller, "GET", &path, ""), status, "{scope}");
    }
}

#[test]
fn lint_compares_a_query_with_templates_that_the_caller_may_read() {
    let mut host = Host::new();
    let q = "SELECT o/data[at9999] FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.body_weight.v2]";
    let body = format!(r#"{{"q":"{q}","ehr_id":"{EHR}"}}"#);
    let mut warnings = |scopes: &str| {
        let caller = app(scopes);
        let answer = host.send(
            &caller,
            "POST",
            "/v1/query/aql/explain",
            "application/json",
            &body,
        );
        assert_eq!(answer.status, 200, "{answer:?}");
        let explanation: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        explanation["warnings"].to_string()
    };
    let own = warnings("patient/aql-*.s patient/template-weight.**.r");
    assert!(own.contains("AQL06"), "{own}");
    let without = warnings("patient/aql-*.s");
    assert_ne!(own, without);
    assert_eq!(
        warnings("patient/aql-*.s patient/template-other.r"),
        without
    );
    let mut empty = Host::empty();
    let owner = Caller::with_roles("owner", "", &["write"]);
    assert_eq!(
        empty.status(&owner, "PUT", &format!("/v1/ehr/{EHR}"), ""),
        201
    );
    let caller = app("patient/aql-*.s");
    let answer = empty.send(
        &caller,
        "POST",
        "/v1/query/aql/explain",
        "application/json",
        &body,
    );
    let explanation: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        explanation["warnings"].to_string(),
        without,
        "as without the template"
    );
}

#[test]
fn long_texts_of_stored_queries_leave_every_list_readable() {
    let mut host = Host::new();
    let author = app("user/aql-org.long::*.cruds");
    let text_of = "SELECT e/ehr_id/value FROM EHR e";
    let long = format!(r#"{{"q":"{text_of} -- {}"}}"#, "x".repeat(250_000));
    for number in 0..42 {
        let target = format!("/v1/definition/query/org.long::q{number}/1.0.0");
        assert_eq!(host.status(&author, "PUT", &target, &long), 200);
    }
    let mut listed = |scopes: &str| {
        let answer = host.send(
            &app(scopes),
            "GET",
            "/v1/definition/query",
            "application/json",
            "",
        );
        assert_eq!(answer.status, 200, "{scopes}");
        let queries: Vec<serde_json::Value> = serde_json::from_slice(&answer.body).unwrap();
        let q = |query: &serde_json::Value| query["q"].as_str().unwrap_or_default().to_owned();
        queries.iter().map(q).collect::<Vec<_>>()
    };
    assert_eq!(
        listed("user/aql-org.weights::*.r"),
        [text_of],
        "others do not count"
    );
    for scopes in ["user/aql-org.long::*.r", "user/aql-*.r"] {
        let texts = listed(scopes);
        let bytes: usize = texts.iter().map(String::len).sum();
        assert!(
            texts.len() >= 42 && bytes <= 10_000_000,
            "{scopes}: {bytes}"
        );
        let is_whole_or_cut = |text: &String| text == text_of || text.ends_with('…');
        assert!(texts.iter().all(is_whole_or_cut), "{scopes}");
    }
}
