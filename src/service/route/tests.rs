//! Tests of the routes, and of the responses to hostile requests.

use super::*;

fn operation(method: &str, target: &str) -> Option<(Operation, Vec<String>)> {
    match find(&Request::new(method, target)) {
        Ok(RouteTarget::Operation(found)) => Some((found.route.operation, found.params)),
        _ => None,
    }
}

fn status(method: &str, target: &str) -> u16 {
    find(&Request::new(method, target)).map_or_else(|f| f.status, |_| 200)
}

#[test]
fn both_mounts_and_the_plural_names_lead_to_the_same_operations() {
    for target in [
        "/v1/ehr/1",
        "/rest/openehr/v1/ehr/1",
        "/v1/ehrs/1",
        "/v1/ehr/1/",
    ] {
        assert_eq!(
            operation("GET", target),
            Some((Operation::EhrGet, vec!["1".into()])),
            "{target}"
        );
    }
    assert_eq!(
        operation("GET", "/v1/definitions/template/adl1.4"),
        Some((Operation::TemplateList, vec![]))
    );
}

#[test]
fn unknown_paths_and_methods_are_errors() {
    assert_eq!(status("GET", "/v2/ehr"), 404);
    assert_eq!(status("GET", "/v1x/ehr"), 404);
    for encoded in ["ehr%2Fbulk", "ehr%2F%7Behr_id%7D", "query%2Faql"] {
        assert_eq!(status("POST", &format!("/v1/{encoded}")), 404, "{encoded}");
    }
    assert_eq!(status("PATCH", "/v1/ehr"), 405);
    assert_eq!(status("BREW", "/v1/ehr"), 501);
    assert_eq!(status("GET", "/v1"), 405);
    assert_eq!(status("GET", "/health"), 200);
}

/// Returns the methods of a path, in the answer to OPTIONS.
fn allow(target: &str) -> String {
    match find(&Request::new("OPTIONS", target)) {
        Ok(RouteTarget::Options { allow, .. }) => allow,
        other => panic!("{target}: {other:?}"),
    }
}

#[test]
fn allow_lists_the_methods_that_a_path_serves() {
    for (target, methods) in [
        ("*", "GET, HEAD, POST, PUT, DELETE, OPTIONS"),
        ("/openapi.json", READ_ONLY),
        ("/health", READ_ONLY),
        // No query can be stored under the name of ad hoc queries.
        ("/v1/query/aql", "GET, HEAD, POST, OPTIONS"),
        ("/v1/query/aql/explain", "GET, HEAD, POST, OPTIONS"),
        ("/v1/query/AQL/1.0.0", "GET, HEAD, POST, OPTIONS"),
        ("/v1/definition/query/aql", READ_ONLY),
        ("/v1/query/aqlx", "GET, HEAD, POST, PUT, OPTIONS"),
    ] {
        assert_eq!(allow(target), methods, "{target}");
    }
    assert_eq!(status("POST", "/openapi.json"), 405);
    assert_eq!(status("GET", "*"), 404);
    let bulk = match cfg!(feature = "server") {
        true => "POST, OPTIONS",
        false => "OPTIONS",
    };
    assert_eq!(allow("/v1/ehr/bulk"), bulk);
}

#[test]
fn body_with_a_transfer_coding_other_than_chunked_is_not_implemented() {
    for (codings, expected) in [
        ("chunked", 200),
        ("Chunked", 200),
        ("", 200),
        ("gzip, chunked", 501),
        ("gzip", 501),
        ("identity", 501),
        ("chunked, x", 501),
    ] {
        for target in ["/v1/ehr", "/health", "/v1/"] {
            let method = if target == "/v1/ehr" {
                "POST"
            } else {
                "OPTIONS"
            };
            let request = Request::new(method, target).with_header("Transfer-Encoding", codings);
            let found = find(&request).map_or_else(|failure| failure.status, |_| 200);
            assert_eq!(found, expected, "{codings} {target}");
        }
    }
}

#[test]
fn host_with_a_path_is_refused_for_every_target() {
    let hosted = |host: &str, target: &str| {
        let request = Request::new("GET", target).with_header("Host", host);
        find(&request).map_or_else(|failure| failure.status, |_| 200)
    };
    for host in [
        "localhost",
        "127.0.0.1:8787",
        "[::1]:80",
        "cdr.example.org.",
        "a_b",
    ] {
        assert_eq!(hosted(host, "/health"), 200, "{host}");
    }
    for host in [
        "localhost/v1/ehr?x=",
        "localhost?",
        "localhost#",
        "localhost\\health",
        "ann@localhost",
        "localhost, localhost",
        "a b",
    ] {
        for target in ["/health", "/v1/ehr", "/nowhere"] {
            assert_eq!(hosted(host, target), 400, "{host} {target}");
        }
    }
}

struct Fixed(i64);

impl crate::service::Environment for Fixed {
    fn now(&mut self) -> i64 {
        1_796_000_000_000_000
    }

    fn new_uuid(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.0)
    }
}

#[test]
fn hostile_requests_to_every_route_are_client_errors() {
    use crate::service::{Auth, Config, Service};
    use crate::store::{memory::Memory, ready::now_or_never};
    let service = Service::new(
        Memory::new(),
        Config {
            auth: Auth::Open,
            admin: true,
            ..Config::default()
        },
    );
    let mut environment = Fixed(0);
    let ehr = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    let version = format!("{ehr}::aqlite.local::1");
    now_or_never(service.handle(
        &Request::new("PUT", &format!("/v1/ehr/{ehr}")),
        &mut environment,
    ))
    .unwrap();
    let params = ["x", ehr, &version, "%00", "%C3%28", "..", "1.0", "'\"--"];
    let bodies: [&[u8]; 9] = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"<a",
        b"<composition/>",
        b"\xff\xfe",
        b"{\"q\":1,\"versions\":{},\"data\":[],\"ehr_ids\":0}",
    ];
    let types = [
        "",
        "application/json",
        "application/xml",
        "text/plain",
        "application/x-ndjson",
        ";",
    ];
    for r in routes() {
        for param in params {
            let target: String = r
                .pattern
                .split('/')
                .map(|p| format!("/{}", if p.starts_with('{') { param } else { p }))
                .collect();
            for (body, kind) in bodies
                .iter()
                .flat_map(|b| types.iter().map(move |t| (b, t)))
            {
                for mount in ["/v1", "/rest/openehr/v1"] {
                    let target =
                        format!("{mount}{target}?version_at_time={param}&offset={param}&path=%2F");
                    let request = Request::new(r.method, &target)
                        .with_header("If-Match", param)
                        .with_header("Prefer", "return=representation");
                    let response = now_or_never(
                        service.handle(&request.with_body(kind, *body), &mut environment),
                    )
                    .unwrap();
                    assert!(
                        response.status < 500 || response.status == 501,
                        "{} {target} {kind} {}: {response:?}",
                        r.method,
                        String::from_utf8_lossy(body)
                    );
                }
            }
        }
    }
}

#[test]
fn every_route_can_be_reached() {
    for r in routes() {
        let found = operation(
            r.method,
            &format!("/v1/{}", r.pattern.replace(['{', '}'], "")),
        );
        assert_eq!(
            found.map(|(o, _)| o),
            Some(r.operation),
            "{} {}",
            r.method,
            r.pattern
        );
    }
}

#[test]
fn operations_that_change_data_do_not_only_read() {
    let reads = |method: &str, path: &str| only_reads(&Request::new(method, path));
    for (method, path) in [
        ("GET", "/v1/ehr/1/composition/2"),
        ("POST", "/v1/query/aql"),
        ("POST", "/v1/gdl/query?guide_id=a"),
        ("GET", "/v1/admin/export"),
    ] {
        assert!(reads(method, path), "{method} {path}");
    }
    for (method, path) in [
        ("POST", "/v1/ehr/1/composition"),
        ("PUT", "/v1/ehr/1/composition/2"),
        ("DELETE", "/v1/ehr/1/composition/2"),
        ("POST", "/v1/ehr/1/contribution"),
        ("POST", "/v1/ehr/bulk"),
        ("POST", "/v1/admin/import"),
        ("PUT", "/v1/definition/query/a::b/1.0.0"),
        ("GET", "/v1/nothing"),
    ] {
        assert!(!reads(method, path), "{method} {path}");
    }
}
