//! Definitions that were stored before the limits existed do not stop the service: everything
//! derived from them is bounded.

use crate::rest::{Ticks, gzip};
use aqlite::gdl::guide::MAX_BYTES;
use aqlite::service::{Auth, Config, Environment, Limits, Request, Response, RoomFuture, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{Definition, DefinitionKind, Repository};

const SMALL: &str = include_str!("../cases/template/small.opt");
const WEIGHT: &str = include_str!("../cases/rest/weight.json");
const AUDIT: &str = include_str!("../cases/rest/audit.json");
const EHR: &str = "7d44b88c-4199-4bad-97dc-d78268e01398";
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
            admin: true,
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
fn an_example_of_exactly_the_result_limit_is_sent() {
    let within = |result: usize| {
        let limits = Limits {
            result,
            ..Limits::default()
        };
        service(SMALL, limits)
    };
    for accept in ["application/json", "application/xml"] {
        let unlimited = get(&within(Limits::default().result), EXAMPLE, accept);
        let bytes = unlimited.body.len();
        let exact = get(&within(bytes), EXAMPLE, accept);
        assert_eq!((exact.status, exact.body.len()), (200, bytes), "{accept}");
        let less = get(&within(bytes - 1), EXAMPLE, accept);
        assert_eq!(less.status, 422, "{accept}");
    }
}

#[test]
fn a_guide_of_exactly_the_limit_is_stored() {
    let service = service(SMALL, Limits::default());
    let guide = r#"{"id": "long.v1", "definition": {"data_bindings": {"gt0001": {
        "model_id": "openEHR-EHR-EVALUATION.advice.v1", "type": "OUTPUT",
        "elements": {"gt0002": {"path": "/data[at0001]/items[at0002]"}}}},
        "rules": {"gt0003": {"priority": 1, "then": ["$gt0002='rest'"]}}}}"#;
    let upload = |bytes: usize| {
        // White space is part of the text.
        let text = guide.to_owned() + &" ".repeat(bytes - guide.len());
        let request = Request::new("POST", "/rest/openehr/v1/definition/gdl");
        let request = request.with_body("application/json", text);
        now_or_never(service.handle(&request, &mut Ticks::new()))
            .unwrap()
            .status
    };
    assert_eq!(upload(MAX_BYTES + 1), 413);
    assert_eq!(upload(MAX_BYTES), 201);
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
        (200, 3_000, 177, 2_823),
        "lines of 113 bytes, until they have more than 20,000"
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

#[test]
fn export_has_its_definitions_in_pages_of_ten_megabytes() {
    let service = service(SMALL, Limits::default());
    let store = |kind, name: &str, bytes: usize| {
        let definition = Definition {
            name: name.to_owned(),
            version: String::from("1.0.0"),
            format: String::from("gdl2"),
            created: String::from("2026-01-01T00:00:00Z"),
            storing_id: String::new(),
            summary: String::from("{}"),
            bytes: 0,
            body: "x".repeat(bytes),
        };
        now_or_never(service.repository().define(kind, definition))
            .unwrap()
            .unwrap();
    };
    (0..6).for_each(|at| {
        store(DefinitionKind::Guide, &format!("guide/{at}"), 3_000_000);
    });
    store(DefinitionKind::ValueSet, "http://x/y", 12_000_000);
    let (mut after, mut pages, mut names) = (String::new(), 0, Vec::new());
    loop {
        let path = format!("/v1/admin/export?after={after}");
        let answer = get(&service, &path, "*/*");
        assert_eq!(answer.status, 200, "{answer:?}");
        pages += 1;
        let text = String::from_utf8(answer.body).unwrap();
        let largest = text.lines().map(str::len).max().unwrap_or_default();
        assert!(
            text.len() < 10_000_000.max(largest) + 10_000,
            "page {pages}: {} bytes",
            text.len()
        );
        let mut last = String::new();
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let member = |name: &str| line["record"][name].as_str().unwrap_or_default().to_owned();
            last = format!(
                "{}/{}/{}",
                member("definition"),
                member("name"),
                member("version")
            );
            if line["record"]["end"] == true {
                assert_eq!(pages, 3, "{names:?}");
                assert_eq!(
                    names,
                    [
                        "weight.en.v2",
                        "guide/0",
                        "guide/1",
                        "guide/2",
                        "guide/3",
                        "guide/4",
                        "guide/5",
                        "http://x/y"
                    ]
                );
                return;
            }
            names.push(member("name"));
        }
        after = last;
    }
}

#[test]
fn export_behind_an_unknown_kind_of_definition_is_refused() {
    let service = service(SMALL, Limits::default());
    for after in ["picture/a/1.0.0", "guide/a"] {
        let answer = get(&service, &format!("/v1/admin/export?after={after}"), "*/*");
        assert_eq!(answer.status, 400, "{after}: {answer:?}");
    }
}

/// Posts a contribution of compositions, each of a template of its own with a text of `bytes` bytes.
fn contribute(count: usize, bytes: usize) -> Response {
    let service = service(SMALL, Limits::default());
    let named = |text: &str, at: usize| text.replace("weight.en.v2", &format!("weight{at}.en.v2"));
    for at in 0..count {
        let body = named(SMALL, at) + &format!("<!--{}-->", "x".repeat(bytes));
        let definition = Definition {
            name: format!("weight{at}.en.v2"),
            version: String::from("2.0.0"),
            format: String::from("opt14"),
            created: String::from("2026-01-01T00:00:00Z"),
            storing_id: String::new(),
            summary: String::from("{}"),
            bytes: 0,
            body,
        };
        now_or_never(
            service
                .repository()
                .define(DefinitionKind::Template, definition),
        )
        .unwrap()
        .unwrap();
    }
    let members: Vec<String> = (0..count).map(|at| named(WEIGHT, at)).collect();
    commit(&service, &members, &mut Ticks::new())
}

/// Creates the EHR and posts a contribution of compositions.
fn commit(
    service: &Service<Memory>,
    members: &[String],
    environment: &mut dyn Environment,
) -> Response {
    let mut send = |method, path: &str, body: String| {
        let request =
            Request::new(method, &format!("/v1/{path}")).with_body("application/json", body);
        now_or_never(service.handle(&request, environment)).unwrap()
    };
    let created = send("PUT", &format!("ehr/{EHR}"), String::new());
    assert_eq!(created.status, 201, "{created:?}");
    let versions: Vec<String> = members
        .iter()
        .map(|composition| format!(r#"{{"data":{composition}}}"#))
        .collect();
    let body = format!(r#"{{"audit":{AUDIT},"versions":[{}]}}"#, versions.join(","));
    send("POST", &format!("ehr/{EHR}/contribution"), body)
}

#[test]
fn contribution_of_many_large_templates_is_refused() {
    let answer = contribute(3, 7_000_000);
    let body = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, 400, "{body}");
    assert!(body.contains("20000000 bytes in all"), "{body}");
    let answer = contribute(2, 7_000_000);
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// A host that notes the memory that requests wait for.
struct Noting {
    ticks: Ticks,
    rooms: Vec<usize>,
}

impl Environment for Noting {
    fn now(&mut self) -> i64 {
        self.ticks.now()
    }

    fn new_uuid(&mut self) -> String {
        self.ticks.new_uuid()
    }

    fn room(&mut self, bytes: usize) -> RoomFuture {
        self.rooms.push(bytes);
        Box::pin(std::future::ready(true))
    }
}

#[test]
fn resolved_references_take_memory_for_their_documents_only() {
    let service = service(SMALL, Limits::default());
    let mut host = Noting {
        ticks: Ticks::new(),
        rooms: Vec::new(),
    };
    assert!(WEIGHT.contains("Encounter"));
    let long = WEIGHT.replace("Encounter", &"n".repeat(60_000));
    let made = commit(&service, &vec![long; 3], &mut host);
    assert_eq!(made.status, 201, "{made:?}");
    let path = made.header("Location").unwrap().to_owned();
    host.rooms.clear();
    let path = path.split_once("/v1/").unwrap().1;
    let request = Request::new("GET", &format!("/v1/{path}"))
        .with_header("Prefer", "resolve_refs")
        .with_header("Accept", "application/json");
    let answer = now_or_never(service.handle(&request, &mut host)).unwrap();
    assert!(answer.status == 200 && answer.body.len() > 180_000);
    let [room] = host.rooms.as_slice() else {
        panic!("one wait was expected: {:?}", host.rooms);
    };
    // A caller has 32 MB at a time, so twelve such requests run beside each other.
    assert!((1_000_000..2_700_000).contains(room), "{room}");
}

/// A host that never has memory for long texts.
struct Full(Ticks);

impl Environment for Full {
    fn now(&mut self) -> i64 {
        self.0.now()
    }

    fn new_uuid(&mut self) -> String {
        self.0.new_uuid()
    }

    fn room(&mut self, _bytes: usize) -> RoomFuture {
        Box::pin(std::future::ready(false))
    }
}

#[test]
fn committed_change_is_no_error_if_its_content_cannot_be_returned() {
    let service = service(SMALL, Limits::default());
    let mut host = Full(Ticks::new());
    let mut send = |request: &Request| now_or_never(service.handle(request, &mut host)).unwrap();
    send(&Request::new("PUT", &format!("/v1/ehr/{EHR}")));
    let long = WEIGHT.replace("Encounter", &"n".repeat(60_000));
    let body = format!(r#"{{"audit":{AUDIT},"versions":[{{"data":{long}}},{{"data":{long}}}]}}"#);
    let request = Request::new("POST", &format!("/v1/ehr/{EHR}/contribution"))
        .with_header("Prefer", "return=representation, resolve_refs")
        .with_body("application/json", body);
    let made = send(&request);
    assert_eq!((made.status, made.body.len()), (201, 0), "{made:?}");
    assert_eq!(made.header("Preference-Applied"), None);
    let path = made.header("Location").unwrap().to_owned();
    let path = path.split_once("/v1/").unwrap().1;
    let read = send(&Request::new("GET", &format!("/v1/{path}")));
    assert_eq!(read.status, 200, "{read:?}");
}

fn send(service: &Service<Memory>, method: &str, path: &str, body: String) -> Response {
    let request = Request {
        body: body.into_bytes(),
        ..Request::new(method, path).with_header("Content-Type", "application/json")
    };
    now_or_never(service.handle(&request, &mut Ticks::new())).unwrap()
}

#[test]
fn long_title_of_a_value_set_is_cut_in_lists() {
    let service = service(SMALL, Limits::default());
    let title = "é".repeat(5_000);
    let set = format!(
        r#"{{"resourceType":"ValueSet","url":"u:a","title":"{title}","compose":{{"include":[{{"system":"s","concept":[{{"code":"a"}}]}}]}}}}"#
    );
    let path = "/v1/definition/valueset";
    let stored = send(&service, "PUT", &format!("{path}/u%3Aa"), set.clone());
    assert_eq!(stored.status, 201);
    let list = get(&service, path, "application/json");
    let text = String::from_utf8(list.body).unwrap();
    assert!(text.contains(&format!("{}…", "é".repeat(2_000))), "{text}");
    let one = get(&service, &format!("{path}/u%3Aa"), "application/json");
    assert_eq!(one.body, set.into_bytes(), "the resource is as sent");
}

#[test]
fn long_subject_of_an_ehr_is_refused_in_every_way_of_writing() {
    let service = service(SMALL, Limits::default());
    let status = |id: &str, namespace: &str| {
        format!(
            r#"{{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1","name":{{"_type":"DV_TEXT","value":"s"}},"subject":{{"_type":"PARTY_SELF","external_ref":{{"_type":"PARTY_REF","namespace":"{namespace}","type":"PERSON","id":{{"_type":"GENERIC_ID","value":"{id}","scheme":"s"}}}}}},"is_queryable":true,"is_modifiable":true}}"#
        )
    };
    let path = format!("/v1/ehr/{EHR}");
    let (fits, long) = ("i".repeat(1_000), "i".repeat(1_001));
    for (id, namespace) in [(&*long, "n"), ("i", &*long)] {
        let refused = send(&service, "PUT", &path, status(id, namespace));
        let text = String::from_utf8_lossy(&refused.body);
        assert_eq!(refused.status, 400, "{text}");
        assert!(text.contains("subject/external_ref"), "{text}");
        let line = format!(
            r#"{{"ehr_id":"{EHR}","ehr_status":{}}}"#,
            status(id, namespace)
        );
        let bulk = Request {
            body: line.into_bytes(),
            ..Request::new("POST", "/v1/ehr/bulk")
                .with_header("Content-Type", "application/x-ndjson")
        };
        let bulk = now_or_never(service.handle(&bulk, &mut Ticks::new())).unwrap();
        let text = String::from_utf8_lossy(&bulk.body);
        assert!(text.contains("400"), "{text}");
    }
    assert_eq!(get(&service, &path, "application/json").status, 404);
    let stored = send(&service, "PUT", &path, status(&fits, &fits));
    assert_eq!(stored.status, 201);
}

#[test]
fn parameters_of_a_query_are_bounded_together() {
    let limits = Limits {
        parameters: 100,
        ..Limits::default()
    };
    let service = service(SMALL, limits);
    let query = "SELECT COUNT(*) FROM COMPOSITION c WHERE c/name/value = $a OR c/name/value = $b";
    let status = |length: usize| {
        let text = "x".repeat(length);
        let body = format!(r#"{{"q":"{query}","query_parameters":{{"a":"{text}","b":"y"}}}}"#);
        let posted =
            Request::new("POST", "/rest/openehr/v1/query/aql").with_body("application/json", body);
        let address = query.replace(' ', "%20").replace('$', "%24");
        let address = format!("/rest/openehr/v1/query/aql?q={address}&a={text}&b=y");
        let fetched = Request::new("GET", &address);
        [posted, fetched].map(|request| {
            now_or_never(service.handle(&request, &mut Ticks::new()))
                .unwrap()
                .status
        })
    };
    assert_eq!(status(50), [200, 200]);
    assert_eq!(status(100), [413, 413]);
}

#[test]
fn compressed_body_without_its_end_is_refused() {
    let service = service(SMALL, Limits::default());
    let query = br#"{"q":"SELECT COUNT(*) FROM COMPOSITION c"}"#;
    let send = |body: &[u8]| {
        let request = Request::new("POST", "/rest/openehr/v1/query/aql")
            .with_header("Content-Encoding", "gzip")
            .with_body("application/json", body);
        now_or_never(service.handle(&request, &mut Ticks::new())).unwrap()
    };
    let packed = gzip(query);
    assert_eq!(send(&packed).status, 200);
    // Without its trailer, the text is complete, but nothing shows that.
    for missing in [1, 8, 9] {
        let answer = send(packed.get(..packed.len() - missing).unwrap());
        assert_eq!(answer.status, 400, "without {missing} bytes");
    }
}
