//! Checks of the request line and the headers, before the body is read: host, caller, permission,
//! origin, and whether the body is acceptable.

use super::super::bulk::{body_limit, is_read_in_parts, too_long_line};
use super::super::error::Failure;
use super::super::ids::is_version;
use super::super::negotiate::ContentCoding;
use super::super::origin::{check_host, check_origin};
use super::super::route::{MatchedRoute, Operation};
use super::super::{Auth, Request, Service};
use super::caller::{Caller, Denied, Subject};
use super::scope::{Action, Permission, Resource};
use super::trail::AccessTrail;
use crate::document::ObjectKind;
use crate::store::repository::Repository;

impl<R: Repository> Service<R> {
    /// Returns the caller, if the request line and the headers allow the operation. The body may
    /// not have been read yet.
    pub(crate) fn admit<'a>(
        &'a self,
        request: &Request,
        found: &MatchedRoute,
        caller: Result<&'a Caller, &Denied>,
        trail: &AccessTrail,
    ) -> Result<&'a Caller, Failure> {
        // This also protects an open service, which knows no callers: see `origin`.
        check_host(request, &self.config)?;
        let caller = match self.config.auth {
            Auth::Refuse => return Err(Denied::unconfigured().failure()),
            Auth::Open => &self.everyone,
            Auth::Known => caller.map_err(Denied::failure)?,
        };
        // Set here, so that the record of a request that is rejected below names its caller.
        trail.set_caller(caller);
        check_origin(request, &self.config)?;
        check_permission(found, caller)?;
        if found.route.permission.resource == Resource::Admin && !self.admits_admin(request) {
            return Err(Failure::new(
                403,
                "administration is switched off: set the variable `ADMIN=true` for `aqlite serve`, or under `[vars]` in wrangler.toml for the worker",
            ));
        }
        self.check_length(request)?;
        ContentCoding::from_headers(request)?;
        found.route.operation.accepts().check(request)?;
        Ok(caller)
    }

    /// Returns whether a request may administer, if its caller may.
    pub(crate) fn admits_admin(&self, request: &Request) -> bool {
        self.config.admin || request.administers
    }

    /// Checks the length of the body, present or announced. A body of lines is read in parts, so it
    /// has no total limit.
    fn check_length(&self, request: &Request) -> Result<(), Failure> {
        let announced = request
            .header("Content-Length")
            .and_then(|length| length.parse().ok())
            .filter(|_| !is_read_in_parts(request));
        let limit = body_limit(request, self.config.limits.body);
        if request.body.len().max(announced.unwrap_or(0)) <= limit {
            return Ok(());
        }
        Err(match too_long_line(request, limit) {
            Some(number) => Failure::too_long_line(number, limit),
            None => Failure::too_large("body", limit),
        })
    }
}

/// Checks the permission of a route, as far as the request line determines its subject.
///
/// # Errors
/// 403, or 404 for an EHR that the caller must not know of.
fn check_permission(found: &MatchedRoute, caller: &Caller) -> Result<(), Failure> {
    let (permission, subject) = (found.route.permission, subject(found));
    // The definition of a stored query may be readable although its execution is not allowed.
    let shows = Permission {
        act: Action::Read,
        ..permission
    };
    let names_version = || found.named(&["version"]).is_some_and(is_version);
    if found.route.operation == Operation::QueryStored
        && found.dialect.detail_and_result()
        && found.route.method == "GET"
        && names_version()
        && caller.has_permission(shows, subject)
    {
        return Ok(());
    }
    match found.named(&["ehr_id"]) {
        Some(ehr) if matches!(permission.resource, Resource::Record | Resource::Guide) => {
            caller.within(permission, subject, ehr)
        }
        _ => caller.reach(permission, subject).map(|_| ()),
    }
}

/// Returns the subject of the permission, as far as the request line determines it.
fn subject(found: &MatchedRoute) -> Subject<'_> {
    let of_compositions = match found.route.operation {
        Operation::Create(what)
        | Operation::Read(what)
        | Operation::Update(what)
        | Operation::Delete(what)
        | Operation::Versioned(what, _)
        | Operation::TagsGet(what)
        | Operation::TagsPut(what)
        | Operation::TagsDelete(what) => what.kind == ObjectKind::Composition,
        operation => operation == Operation::ContributionCreate,
    };
    match found.route.permission.resource {
        Resource::Record if of_compositions => Subject::Some,
        Resource::Record => Subject::Nameless,
        _ if found.route.operation == Operation::QueryAdHoc => Subject::Nameless,
        _ if found.route.operation == Operation::QueryList => Subject::Some,
        Resource::Template | Resource::Query | Resource::Guide => found
            .definition_name()
            .map_or(Subject::Some, Subject::Named),
        Resource::Party | Resource::Import | Resource::Admin | Resource::Log => Subject::Some,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::route::routes;
    use super::super::super::{Config, Environment, Response};
    use super::super::scope::ROLES;
    use super::super::ticks::Ticks;
    use super::*;
    use crate::store::memory::Memory;
    use crate::store::ready::now_or_never;
    use crate::store::repository::AccessFilter;

    const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    const OTHER: &str = "7ba7b810-9dad-41d1-80b4-00c04fd430c8";
    /// All scopes that a token could grant.
    const EVERYTHING: &str = "patient/composition-*.cruds patient/template-*.cruds patient/aql-*.cruds patient/guide-*.cruds patient/party-*.cruds";

    /// A service with two EHRs and a stored query.
    struct Host(Service<Memory>, Ticks);

    impl Host {
        fn new() -> Host {
            let config = Config {
                auth: Auth::Known,
                admin: true,
                ..Config::default()
            };
            let mut host = Host(Service::new(Memory::new(), config), Ticks::default());
            host.furnish();
            host
        }

        fn furnish(&mut self) {
            let owner = Caller::with_roles("owner", "", &["read", "write", "query", "define"]);
            for ehr in [EHR, OTHER] {
                self.ask(&owner, "PUT", &format!("/v1/ehr/{ehr}"), "");
            }
            self.ask(
                &owner,
                "PUT",
                "/v1/query/x/1.0.0",
                r#"{"q":"SELECT e/ehr_id/value FROM EHR e"}"#,
            );
        }

        fn send(
            &mut self,
            caller: Result<&Caller, &Denied>,
            method: &str,
            target: &str,
            body: &str,
        ) -> Response {
            let request = Request::new(method, target)
                .with_body("application/json", body)
                .with_header("X-Request-Id", "r-1");
            now_or_never(self.0.serve(&request, caller, &mut self.1)).unwrap()
        }

        fn ask(&mut self, caller: &Caller, method: &str, target: &str, body: &str) -> u16 {
            self.send(Ok(caller), method, target, body).status
        }

        fn log(&self) -> Vec<crate::store::repository::AccessRecord> {
            let filter = AccessFilter {
                limit: 1_000_000,
                ..AccessFilter::default()
            };
            now_or_never(self.0.repository().accesses(&filter))
                .unwrap()
                .unwrap()
                .into_iter()
                .map(|(_, access)| access)
                .collect()
        }
    }

    /// Returns a path for a route, in one mount.
    fn target(mount: &str, pattern: &str, ehr: &str) -> String {
        let part = |part: &str| match part {
            "{ehr_id}" => ehr.to_owned(),
            "{version}" => String::from("1.0.0"),
            p if p.starts_with('{') => String::from("x"),
            p => p.to_owned(),
        };
        let path: Vec<String> = pattern.split('/').map(part).collect();
        // Without a subject `GET ehr` lists all EHRs, which a single role does not allow.
        let subject = if pattern == "ehr" {
            "&subject_id=x&subject_namespace=y"
        } else {
            ""
        };
        format!("{mount}/{}?ehr_id={ehr}{subject}", path.join("/"))
    }

    #[test]
    fn checks_of_the_head_have_the_status_of_the_complete_request() {
        let mut host = Host::new();
        let reader = Caller::with_roles("r", "", &["read"]);
        let writer = Caller::with_roles("w", "", &["write", "query", "population"]);
        let unauthenticated = Denied::no_credentials("Bearer realm=\"aqlite\"");
        // Caller, method, target, status, headers.
        let cases = "\
            nobody POST /v1/ehr/bulk 401 Content-Encoding=gzip
            reader POST /v1/ehr/bulk 403 Content-Encoding=gzip
            writer POST /v1/nothing 404
            writer PATCH /v1/ehr 405
            writer POST /v1/ehr 413 Content-Length=10000001 Content-Type=application/json
            writer POST /v1/ehr 415 Content-Length=5
            writer POST /v1/ehr 415 Transfer-Encoding=chunked Content-Type=text/plain
            writer POST /v1/ehr 415 Content-Encoding=br
            writer POST /v1/ehr 403 Origin=https://evil.example
            writer POST /v1/ehr/bulk 200 Content-Length=10000001 Content-Type=application/x-ndjson
            writer POST /v1/ehr 200 Content-Length=0
            nobody OPTIONS /v1/ehr 200
            nobody GET /health 200";
        for case in cases.lines().map(str::trim) {
            let words: Vec<&str> = case.split(' ').collect();
            let [caller, method, target, status, headers @ ..] = words.as_slice() else {
                panic!("{case}: too few words");
            };
            let caller = match *caller {
                "reader" => Ok(&reader),
                "writer" => Ok(&writer),
                _ => Err(&unauthenticated),
            };
            let status: u16 = status.parse().unwrap();
            let mut head = Request::new(method, target);
            for header in headers {
                let (name, value) = header.split_once('=').unwrap();
                head = head.with_header(name, value);
            }
            let before = host.log().len();
            let screened = now_or_never(host.0.screen(&head, caller, &mut host.1)).unwrap();
            let outcome = screened
                .as_ref()
                .map_or_else(|answer| answer.status, |()| 200);
            assert_eq!(outcome, status, "{case}");
            if status != 200 {
                let is_routed = ![404, 405].contains(&status);
                let is_recorded = host.log().len() > before;
                assert_eq!(
                    is_recorded, is_routed,
                    "{case}: each refused request of a route is in the log"
                );
                let served = now_or_never(host.0.serve(&head, caller, &mut host.1)).unwrap();
                assert_eq!(served.status, status, "{case}");
            }
        }
    }

    #[test]
    fn caller_whose_token_has_expired_meanwhile_is_refused() {
        let mut host = Host::new();
        let mut writer = Caller::with_roles("w", "https://id", &["write"]);
        for (until, status) in [(i64::MAX, 201), (0, 401)] {
            writer.until = Some(until);
            let line = format!(r#"{{"ehr_id":"{}","ehr_status":null}}"#, host.1.new_uuid());
            let part = Request::new("POST", "/v1/ehr/bulk").with_body("application/x-ndjson", line);
            let answer = now_or_never(host.0.serve(&part, Ok(&writer), &mut host.1)).unwrap();
            let text = String::from_utf8_lossy(&answer.body);
            assert_eq!(text.contains(r#""status":201"#), status == 201, "{text}");
            assert_eq!(answer.status == 401, status == 401, "{text}");
        }
    }

    #[test]
    fn load_that_commits_nothing_is_in_the_access_log_with_its_ehrs() {
        let mut host = Host::new();
        let writer = Caller::with_roles("w", "https://id", &["write"]);
        let new_ehr = "8ba7b810-9dad-41d1-80b4-00c04fd430c8";
        let mut load = |key: &str, ehrs: &[&str]| {
            let line = |ehr: &&str| format!("{{\"ehr_id\":\"{ehr}\",\"ehr_status\":null}}\n");
            let body: String = ehrs.iter().map(line).collect();
            let load = Request::new("POST", "/v1/ehr/bulk")
                .with_header("Idempotency-Key", key)
                .with_body("application/x-ndjson", body);
            let before = host.log().len();
            let answer = now_or_never(host.0.serve(&load, Ok(&writer), &mut host.1)).unwrap();
            assert_eq!(answer.status, 200);
            let log = host.log().split_off(before).into_iter();
            log.map(|entry| (entry.ehr_id.unwrap_or_default(), entry.status))
                .collect::<Vec<_>>()
        };
        let entry = |ehr: &str, status: u16| (ehr.to_owned(), status);
        // An EHR that exists, one that is created, the same load again.
        assert_eq!(load("a", &[EHR]), [entry(EHR, 200)]);
        assert_eq!(load("b", &[new_ehr, EHR]), [entry(new_ehr, 201)]);
        let both = [entry(new_ehr, 200), entry(EHR, 200)];
        assert_eq!(load("b", &[new_ehr, EHR]), both);
    }

    #[test]
    fn addresses_in_responses_begin_as_that_of_the_request() {
        let mut host = Host::new();
        let writer = Caller::with_roles("w", "", &["write"]);
        for base in ["https://a.example", "http://127.0.0.1:1"] {
            let request = Request {
                base_url: base.to_owned(),
                ..Request::new("POST", "/v1/ehr")
            };
            let answer = now_or_never(host.0.serve(&request, Ok(&writer), &mut host.1)).unwrap();
            assert!(
                answer
                    .header("Location")
                    .is_some_and(|location| location.starts_with(&format!("{base}/v1/ehr/"))),
                "{answer:?}"
            );
        }
    }

    /// The roles of an installation and the operations that they allow. The table of routes must
    /// agree.
    #[test]
    fn each_role_allows_its_operations() {
        let policy = [
            ("read", "GET", "ehr/{ehr_id}"),
            ("read", "GET", "ehr/{ehr_id}/composition/{uid}"),
            ("write", "POST", "ehr/{ehr_id}/composition"),
            ("write", "PUT", "ehr/{ehr_id}/composition/{uid}"),
            ("write", "DELETE", "ehr/{ehr_id}/composition/{uid}"),
            ("write", "POST", "ehr/{ehr_id}/contribution"),
            ("query population", "POST", "query/aql"),
            ("query population", "GET", "gdl/query/{ehr_id}/{guide_id}"),
            ("define", "POST", "definition/template"),
            ("define", "PUT", "definition/query/{name}/{version}"),
            ("define", "POST", "definition/gdl"),
            ("admin", "DELETE", "admin/ehr/{ehr_id}"),
            ("audit", "GET", "admin/access-log"),
        ];
        for (roles, method, pattern) in policy {
            let route = routes()
                .find(|r| r.method == method && r.pattern == pattern)
                .expect(pattern);
            assert_eq!(
                route.permission.roles().join(" "),
                roles,
                "{method} {pattern}"
            );
        }
    }

    #[test]
    fn each_route_refuses_roles_without_its_permission() {
        let mut host = Host::new();
        for route in routes() {
            for mount in ["/v1", "/rest/openehr/v1"] {
                let path = target(mount, route.pattern, EHR);
                let nobody = host.send(
                    Err(&Denied::no_credentials("Bearer realm=\"aqlite\"")),
                    route.method,
                    &path,
                    "",
                );
                assert_eq!(
                    (nobody.status, nobody.header("WWW-Authenticate").is_some()),
                    (401, true),
                    "{} {path}",
                    route.method
                );
                for (role, _) in ROLES.iter().chain(&[("stranger", "")]) {
                    let before = host.log().len();
                    let answer = host.send(
                        Ok(&Caller::with_roles("c", "", &[role])),
                        route.method,
                        &path,
                        "",
                    );
                    let shows_detail = route.operation == Operation::QueryStored
                        && mount == "/v1"
                        && route.method == "GET"
                        && route.pattern.ends_with("{version}");
                    let open = route.permission.roles().contains(role);
                    let (refused, recorded) = (answer.status == 403, host.log().len() > before);
                    assert!(
                        open != refused || (shows_detail && !refused),
                        "{role}: {} {path}: {}",
                        route.method,
                        answer.status
                    );
                    assert!(
                        recorded,
                        "{role}: {} {path} is not in the log",
                        route.method
                    );
                    if route.permission.resource == Resource::Admin && open {
                        host.furnish();
                    }
                }
            }
        }
    }

    #[test]
    fn a_patients_application_sees_one_ehr_and_nothing_of_others() {
        let mut host = Host::new();
        let app = Caller::with_roles("p", "", &[]).narrowed(EVERYTHING, Some(EHR), false);
        for route in routes() {
            let other = host.ask(&app, route.method, &target("/v1", route.pattern, OTHER), "");
            let closed = match route.permission.resource {
                Resource::Import | Resource::Admin | Resource::Log | Resource::Party => {
                    other == 403
                }
                Resource::Record | Resource::Guide if route.pattern.contains("{ehr_id}") => {
                    other == 404
                }
                _ if route.operation == Operation::EhrCreate => other == 403,
                _ => other != 200 || !matches!(route.permission.act, Action::Search),
            };
            assert!(closed, "{} {}: {other}", route.method, route.pattern);
        }
        assert_eq!(host.ask(&app, "GET", &format!("/v1/ehr/{EHR}"), ""), 200);
        let rows = |host: &mut Host, target: &str| {
            let answer = host.send(Ok(&app), "GET", target, "");
            serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()["rows"].clone()
        };
        let own = serde_json::json!([[EHR]]);
        assert_eq!(
            rows(
                &mut host,
                "/v1/query/aql?q=SELECT%20e/ehr_id/value%20FROM%20EHR%20e"
            ),
            own
        );
        assert_eq!(
            rows(&mut host, "/v1/query/x/1.0.0"),
            own,
            "the detail carries the rows of this EHR only"
        );
        assert_eq!(rows(&mut host, "/v1/query/x?offset=0"), own);
    }

    /// The error names the place, the rule and the remedy, which depends on the token.
    #[test]
    fn refused_list_of_ehrs_names_what_the_caller_may_read() {
        let mut host = Host::new();
        let rule = "`GET ehr` without a subject lists all EHRs, which needs the role population or a scope such as `system/aql-*.s`";
        let own = format!("read the EHR of this token by `GET ehr/{EHR}`");
        let patient = Caller::with_roles("p", "", &[]);
        let patient = |scopes: &str| patient.clone().narrowed(scopes, Some(EHR), false);
        for (caller, remedy) in [
            (patient(EVERYTHING), own.as_str()),
            (patient("patient/composition-*.r"), "`GET ehr/{ehr_id}`"),
            (
                Caller::with_roles("r", "", &["read", "query"]),
                "`subject_id` and `subject_namespace`",
            ),
        ] {
            for mount in ["/v1", "/rest/openehr/v1"] {
                let answer = host.send(Ok(&caller), "GET", &format!("{mount}/ehr"), "");
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                assert_eq!(answer.status, 403, "{text}");
                assert!(text.contains(rule) && text.contains(remedy), "{text}");
            }
        }
    }

    #[test]
    fn forbidden_and_missing_ehrs_have_equal_responses() {
        let mut host = Host::new();
        let owner = Caller::with_roles("owner", "", &["write", "define"]);
        let guide = include_str!("../../../tests/cases/rest/weight_class.gdl2");
        assert_eq!(host.ask(&owner, "POST", "/v1/definition/gdl", guide), 201);
        let status = include_str!("../../../tests/cases/rest/status.json");
        assert_eq!(host.ask(&owner, "POST", "/v1/ehr", status), 201);
        let app = Caller::with_roles("p", "", &[]).narrowed(EVERYTHING, Some(EHR), false);
        let mut answered = |target: &str, body: &str| {
            let media_type = if target.ends_with("bulk") {
                "application/x-ndjson"
            } else {
                "application/json"
            };
            let request = Request::new("POST", target).with_body(media_type, body);
            let answer = now_or_never(host.0.serve(&request, Ok(&app), &mut host.1)).unwrap();
            (
                answer.status,
                String::from_utf8_lossy(&answer.body).into_owned(),
            )
        };
        let hook = |patient: &str| {
            format!(
                r#"{{"hook":"patient-view","hookInstance":"1","context":{{"patientId":"{patient}"}}}}"#
            )
        };
        let there = answered(
            "/v1/cds-services/weight_class.v1?subject_namespace=clinic",
            &hook("patient-7"),
        );
        assert_eq!(
            there,
            answered(
                "/v1/cds-services/weight_class.v1?subject_namespace=clinic",
                &hook("patient-8")
            )
        );
        assert_eq!(
            (
                there.0,
                answered("/v1/cds-services/weight_class.v1", &hook("patient-7"))
            ),
            (404, there.clone())
        );
        let line =
            |ehr: &str| format!(r#"{{"ehr_id":"{ehr}","composition":{{"_type":"NOTHING"}}}}"#);
        let there = answered("/v1/ehr/bulk", &line(OTHER));
        assert!(there.1.contains(r#""status":404"#), "{there:?}");
        assert_eq!(
            there,
            answered(
                "/v1/ehr/bulk",
                &line("00000000-0000-4000-8000-00000000ffff")
            )
        );
    }

    #[test]
    fn identifiers_of_other_patients_do_not_change_the_answer_of_a_hook() {
        let mut host = Host::new();
        let owner = Caller::with_roles("owner", "", &["write", "define"]);
        let guide = include_str!("../../../tests/cases/rest/weight_class.gdl2");
        assert_eq!(host.ask(&owner, "POST", "/v1/definition/gdl", guide), 201);
        let status = include_str!("../../../tests/cases/rest/status.json");
        let own = status.replace("patient-7", "patient-1");
        let ehr = "8ba7b810-9dad-41d1-80b4-00c04fd430c8";
        let path = format!("/v1/ehr/{ehr}");
        assert_eq!(host.ask(&owner, "PUT", &path, &own), 201);
        assert_eq!(host.ask(&owner, "POST", "/v1/ehr", status), 201);
        let app = Caller::with_roles("p", "", &[]).narrowed(EVERYTHING, Some(ehr), false);
        let mut answered = |listed: &str| {
            let target = "/v1/cds-services/weight_class.v1?subject_namespace=clinic";
            let body = format!(
                r#"{{"hook":"patient-view","hookInstance":"1","context":{{"patientId":"patient-1"}},
                "prefetch":{{"patient":{{"resourceType":"Patient",
                "identifier":[{{"system":"clinic","value":"{listed}"}}]}}}}}}"#
            );
            host.send(Ok(&app), "POST", target, &body).status
        };
        assert_eq!((answered("patient-7"), answered("patient-8")), (200, 200));
    }

    #[test]
    fn service_without_auth_refuses_every_route() {
        let service = Service::new(
            Memory::new(),
            Config {
                admin: true,
                ..Config::default()
            },
        );
        let mut environment = Ticks::default();
        let mut ask = |method: &str, target: &str| {
            now_or_never(service.handle(&Request::new(method, target), &mut environment))
                .unwrap()
                .status
        };
        for route in routes() {
            for mount in ["/v1", "/rest/openehr/v1"] {
                assert_eq!(
                    ask(route.method, &target(mount, route.pattern, EHR)),
                    401,
                    "{} {mount}/{}",
                    route.method,
                    route.pattern
                );
            }
        }
        for (method, target) in [
            ("OPTIONS", "/v1"),
            ("OPTIONS", "/rest/openehr/v1/ehr"),
            ("GET", "/health"),
            ("GET", "/rest/status"),
        ] {
            assert_eq!(ask(method, target), 200, "{method} {target}");
        }
    }

    #[test]
    fn query_on_the_population_needs_the_role_population() {
        let mut host = Host::new();
        let q = "/v1/query/aql?q=SELECT%20e/ehr_id/value%20FROM%20EHR%20e";
        let clinician = Caller::with_roles("c", "", &["query"]);
        assert_eq!(host.ask(&clinician, "GET", q, ""), 403);
        assert_eq!(
            host.ask(&clinician, "GET", &format!("{q}&ehr_id={EHR}"), ""),
            200
        );
        assert_eq!(
            host.ask(&Caller::with_roles("r", "", &["population"]), "GET", q, ""),
            200
        );
    }

    #[test]
    fn stored_query_is_shown_to_those_who_may_read_but_not_run_it() {
        let mut host = Host::new();
        let reader = Caller::with_roles("r", "", &["read"]);
        for (method, target, status) in [
            ("GET", "/v1/query/x/1.0.0", 200),
            ("POST", "/v1/query/x/1.0.0", 403),
            ("GET", "/v1/query/x", 403),
            ("GET", "/rest/openehr/v1/query/x/1.0.0", 403),
        ] {
            let answered = host.ask(&reader, method, target, "");
            assert_eq!(answered, status, "{method} {target}");
        }
        let writer = Caller::with_roles("w", "", &["write"]);
        assert_eq!(host.ask(&writer, "GET", "/v1/query/x/1.0.0", ""), 403);
    }

    #[test]
    fn access_log_has_caller_and_operation_of_each_request() {
        let mut host = Host::new();
        let writer = Caller::with_roles("ann", "https://id.example", &["write", "read"]);
        assert_eq!(host.ask(&writer, "PUT", &format!("/v1/ehr/{EHR}"), ""), 409);
        assert_eq!(host.ask(&writer, "POST", "/v1/ehr", ""), 201);
        assert_eq!(host.ask(&writer, "GET", "/v1/ehr/Anna%20Müller", ""), 404);
        let log = host.log();
        let [.., exists, made, nowhere] = log.as_slice() else {
            panic!("{log:?}")
        };
        assert_eq!(
            (exists.who.as_str(), exists.status, exists.ehr_id.as_deref()),
            ("ann", 409, Some(EHR))
        );
        assert_eq!(
            (
                made.operation.as_str(),
                made.status,
                made.request_id.as_str()
            ),
            ("POST ehr", 201, "r-1")
        );
        assert!(
            made.object.as_ref().is_some_and(|uid| uid.ends_with("::1")) && made.ehr_id.is_some()
        );
        assert_eq!(
            (nowhere.status, &nowhere.object, &nowhere.ehr_id),
            (404, &None, &None),
            "the record of a refused request does not name the object"
        );
        let auditor = Caller::with_roles("aud", "", &["audit"]);
        let page = host.send(
            Ok(&auditor),
            "GET",
            &format!("/v1/admin/access-log?ehr_id={EHR}&who=ann&fetch=1"),
            "",
        );
        let page: serde_json::Value = serde_json::from_slice(&page.body).unwrap();
        assert_eq!(page["entries"][0]["operation"], "PUT ehr/{ehr_id}");
        assert_eq!(page["entries"].as_array().map(Vec::len), Some(1));
        let admin = Caller::with_roles("root", "", &["admin"]);
        assert_eq!(host.ask(&admin, "POST", "/v1/admin/reset", ""), 204);
        let statuses: Vec<u16> = host.log().iter().rev().take(2).map(|a| a.status).collect();
        assert_eq!(
            statuses,
            [204, 102],
            "a reset is recorded before and after, and keeps the log"
        );
    }
}
