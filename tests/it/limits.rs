//! Definitions that were stored before the limits existed do not stop the service: everything
//! derived from them is bounded.

use crate::rest::Ticks;
use aqlite::service::{Auth, Config, Limits, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{Definition, DefinitionKind, Repository};

const SMALL: &str = include_str!("../cases/template/small.opt");
const EXAMPLE: &str = "/rest/openehr/v1/definition/template/adl1.4/weight.en.v2/example";

/// Returns a service on a repository that already contains a template.
fn service(template: &str, limits: Limits) -> Service<Memory> {
    let repository = Memory::new();
    let definition = Definition {
        name: String::from("weight.en.v2"),
        version: String::from("2.0.0"),
        format: String::from("opt14"),
        created: String::from("2026-01-01T00:00:00Z"),
        storing_id: String::new(),
        summary: String::from("{}"),
        bytes: 0,
        body: template.to_owned(),
    };
    now_or_never(repository.define(DefinitionKind::Template, definition))
        .unwrap()
        .unwrap();
    Service::new(
        repository,
        Config {
            auth: Auth::Open,
            limits,
            ..Config::default()
        },
    )
}

fn get(service: &Service<Memory>, path: &str, accept: &str) -> Response {
    let request = Request::new("GET", path).with_header("Accept", accept);
    now_or_never(service.handle(&request, &mut Ticks::new())).unwrap()
}

#[test]
fn a_stored_template_with_bounds_of_billions_has_an_answer() {
    let bound = "true</upper_unbounded><lower>1</lower>";
    assert!(SMALL.contains(bound));
    let service = service(
        &SMALL.replace(bound, "true</upper_unbounded><lower>2000000000</lower>"),
        Limits::default(),
    );
    for accept in [
        "application/json",
        "application/xml",
        "application/openehr.wt.flat+json",
    ] {
        let answer = get(&service, &format!("{EXAMPLE}?kind=full"), accept);
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            answer.status < 500 && answer.status >= 400 && body.contains("TPL0603"),
            "{}: {body}",
            answer.status
        );
        assert_eq!(
            get(&service, &format!("{EXAMPLE}?kind=minimal"), accept).status,
            200,
            "the bound is in an optional part"
        );
    }
    let web = get(
        &service,
        "/rest/openehr/v1/definition/template/adl1.4/weight.en.v2",
        "application/openehr.wt+json",
    );
    assert_eq!(web.status, 200);
}

#[test]
fn artefacts_of_a_template_honour_the_result_limit() {
    let service = service(
        SMALL,
        Limits {
            result: 1_000,
            ..Limits::default()
        },
    );
    for accept in [
        "application/json",
        "application/xml",
        "application/openehr.wt.flat+json",
        "application/openehr.wt.structured+json",
    ] {
        assert_eq!(get(&service, EXAMPLE, accept).status, 422, "{accept}");
    }
    assert_eq!(
        get(
            &service,
            "/rest/openehr/v1/definition/template/adl1.4/weight.en.v2",
            "application/openehr.wt+json"
        )
        .status,
        422
    );
}

#[test]
fn an_unreadable_stored_template_is_not_a_server_error() {
    let wide = SMALL.replace(
        "<concept>",
        &format!(
            "<concept {}>",
            (0..200).map(|i| format!("a{i}='' ")).collect::<String>()
        ),
    );
    let answer = get(
        &service(&wide, Limits::default()),
        EXAMPLE,
        "application/json",
    );
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(
        answer.status == 422 && body.contains("TPL0104") && body.contains("store it again"),
        "{}: {body}",
        answer.status
    );
}

#[test]
fn lines_beyond_the_result_limit_are_refused_one_by_one() {
    let service = Service::new(
        Memory::new(),
        Config {
            auth: Auth::Open,
            limits: Limits {
                result: 20_000,
                ..Limits::default()
            },
            ..Config::default()
        },
    );
    let mut ticks = Ticks::new();
    let guide = include_str!("../cases/rest/weight_class.gdl2");
    let sent = Request::new("POST", "/rest/openehr/v1/definition/gdl")
        .with_body("application/json", guide);
    assert_eq!(
        now_or_never(service.handle(&sent, &mut ticks))
            .unwrap()
            .status,
        201
    );
    let lines: String = (0..3_000)
        .map(|i| format!("\"00000000-0000-4000-8000-{i:012x}\"\n"))
        .collect();
    let request = Request::new(
        "POST",
        "/rest/openehr/v1/gdl/query?guide_id=weight_class.v1",
    )
    .with_body("application/x-ndjson", lines);
    let answer = now_or_never(service.handle(&request, &mut ticks)).unwrap();
    let body = String::from_utf8(answer.body).unwrap();
    let statuses = |status: u16| {
        body.lines()
            .filter(|line| line.ends_with(&format!("\"status\":{status}}}")))
            .count()
    };
    assert_eq!(
        (
            answer.status,
            body.lines().count(),
            statuses(404),
            statuses(413)
        ),
        (200, 3_000, 1_000, 2_000)
    );
}

/// Returns clusters three levels deep, twelve per level, with unconstrained elements at the lowest
/// level.
fn bushy() -> String {
    let object = |class: &str, id: usize, inner: &str| {
        format!(
            "<children xsi:type=\"C_COMPLEX_OBJECT\"><rm_type_name>{class}</rm_type_name><occurrences><upper_unbounded>true</upper_unbounded><lower>0</lower></occurrences><node_id>at{id}</node_id>{inner}</children>"
        )
    };
    let mut inner: String = (0..9).map(|i| object("ELEMENT", 1_000 + i, "")).collect();
    for level in 0..3 {
        let below = format!(
            "<attributes xsi:type=\"C_MULTIPLE_ATTRIBUTE\"><rm_attribute_name>items</rm_attribute_name>{inner}</attributes>"
        );
        inner = (0..12)
            .map(|i| object("CLUSTER", 3_000 + level * 20 + i, &below))
            .collect();
    }
    let at = SMALL.find("<rm_type_name>ELEMENT").expect("an element");
    let begin = SMALL[..at].rfind("<children").expect("its beginning");
    format!("{}{inner}{}", &SMALL[..begin], &SMALL[begin..])
}

#[test]
fn uploads_refuse_templates_that_later_uses_would_refuse() {
    let service = Service::new(
        Memory::new(),
        Config {
            auth: Auth::Open,
            ..Config::default()
        },
    );
    let upload = |text: &str| {
        let request = Request::new("POST", "/v1/definition/template?type=opt14")
            .with_body("application/xml", text);
        now_or_never(service.handle(&request, &mut Ticks::new())).unwrap()
    };
    let answer = upload(&bushy());
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 400, "{body}");
    assert!(body.contains("TPL0304"), "{body}");
    assert_eq!(upload(SMALL).status, 201);
}
