//! One table of method, path and operation: what is served, what Allow says, what the manifest lists.

use super::Request;
use super::auth::Act::{self, Create, Delete, Read, Search, Update};
use super::auth::Need;
use super::auth::Resource::{self, Admin, Guide, Log, Party, Query, Record, Template};
use super::controlled::{AGENT, COMPOSITION, Controlled, DIRECTORY, EHR_STATUS, GROUP, ORGANISATION, PARTY, PERSON, ROLE};
use super::dialect::Dialect;
use super::error::Failure;
use super::http::decode;
use super::negotiate::Accepted;
use crate::document::ObjectKind;
use crate::store::repository::DefinitionKind;

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the table below says what each is")]
pub(crate) enum Operation {
    EhrCreate,
    EhrCreateWithId,
    EhrBySubject,
    EhrGet,
    Create(&'static Controlled),
    Read(&'static Controlled),
    Update(&'static Controlled),
    Delete(&'static Controlled),
    Versioned(&'static Controlled, Part),
    TagsList,
    TagsGet(&'static Controlled),
    TagsPut(&'static Controlled),
    TagsDelete(&'static Controlled),
    ContributionCreate,
    ContributionList,
    ContributionGet,
    TemplateUpload,
    TemplateList,
    TemplateVersions,
    TemplateGet,
    TemplateExample,
    TemplateWeb,
    QueryList,
    QueryStore,
    QueryDetail,
    QueryAdHoc,
    QueryExplain,
    QueryStored,
    ValueSetStore,
    ValueSetList,
    ValueSetGet,
    ValueSetDelete,
    GuideUpload,
    GuideList,
    GuideGet,
    GuideRun,
    GuideRunOn,
    Bulk,
    Export,
    Import,
    CdsDiscovery,
    CdsCall,
    AdminLoad,
    AdminReset,
    AdminDeleteEhr,
    AdminDeleteObject(&'static Controlled),
    AdminDeleteDefinition(DefinitionKind),
    AccessLog,
}

impl Operation {
    /// The media types that its body may have.
    pub fn accepts(self) -> Accepted {
        match self {
            Operation::Create(what) | Operation::Update(what) if what.kind == ObjectKind::Composition => Accepted::Forms,
            Operation::Create(_) | Operation::Update(_) | Operation::EhrCreate | Operation::EhrCreateWithId | Operation::ContributionCreate => {
                Accepted::Model
            }
            Operation::TemplateUpload => Accepted::Xml,
            Operation::QueryStore | Operation::GuideUpload => Accepted::TextOrJson,
            Operation::GuideRunOn | Operation::AdminLoad => Accepted::JsonOrLines,
            Operation::Bulk | Operation::Import => Accepted::Lines,
            _ => Accepted::Json,
        }
    }
}

/// The four resources of a versioned object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The VERSIONED_OBJECT.
    Container,
    /// Its REVISION_HISTORY.
    History,
    /// The VERSION that was the latest at a time.
    AtTime,
    /// The VERSION with a uid.
    Version,
}

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    /// The method.
    pub method: &'static str,
    /// The path below the mount, with `{parameters}`.
    pub pattern: &'static str,
    /// What is asked for.
    pub operation: Operation,
    /// What a caller must be allowed to do, and to what.
    pub need: Need,
}

const fn route(method: &'static str, pattern: &'static str, operation: Operation, resource: Resource, act: Act) -> Route {
    Route { method, pattern, operation, need: Need { resource, act } }
}

/// Every resource of a mount: method, path, operation, and what it needs leave for. Where two patterns fit a path, the earlier
/// line wins.
pub(crate) const ROUTES: &[Route] = &[
    route("POST", "ehr", Operation::EhrCreate, Record, Create),
    route("GET", "ehr", Operation::EhrBySubject, Record, Read),
    route("POST", "ehr/bulk", Operation::Bulk, Record, Create),
    route("PUT", "ehr/{ehr_id}", Operation::EhrCreateWithId, Record, Create),
    route("GET", "ehr/{ehr_id}", Operation::EhrGet, Record, Read),
    route("GET", "ehr/{ehr_id}/ehr_status", Operation::Read(&EHR_STATUS), Record, Read),
    route("PUT", "ehr/{ehr_id}/ehr_status", Operation::Update(&EHR_STATUS), Record, Update),
    route("GET", "ehr/{ehr_id}/ehr_status/{version_uid}", Operation::Read(&EHR_STATUS), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_ehr_status", Operation::Versioned(&EHR_STATUS, Part::Container), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_ehr_status/revision_history", Operation::Versioned(&EHR_STATUS, Part::History), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_ehr_status/version", Operation::Versioned(&EHR_STATUS, Part::AtTime), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_ehr_status/version/{version_uid}", Operation::Versioned(&EHR_STATUS, Part::Version), Record, Read),
    route("POST", "ehr/{ehr_id}/composition", Operation::Create(&COMPOSITION), Record, Create),
    route("GET", "ehr/{ehr_id}/composition/{uid}", Operation::Read(&COMPOSITION), Record, Read),
    route("PUT", "ehr/{ehr_id}/composition/{uid}", Operation::Update(&COMPOSITION), Record, Update),
    route("DELETE", "ehr/{ehr_id}/composition/{uid}", Operation::Delete(&COMPOSITION), Record, Delete),
    route("GET", "ehr/{ehr_id}/versioned_composition/{uid}", Operation::Versioned(&COMPOSITION, Part::Container), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_composition/{uid}/revision_history", Operation::Versioned(&COMPOSITION, Part::History), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_composition/{uid}/version", Operation::Versioned(&COMPOSITION, Part::AtTime), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_composition/{uid}/version/{version_uid}", Operation::Versioned(&COMPOSITION, Part::Version), Record, Read),
    route("POST", "ehr/{ehr_id}/directory", Operation::Create(&DIRECTORY), Record, Create),
    route("GET", "ehr/{ehr_id}/directory", Operation::Read(&DIRECTORY), Record, Read),
    route("PUT", "ehr/{ehr_id}/directory", Operation::Update(&DIRECTORY), Record, Update),
    route("DELETE", "ehr/{ehr_id}/directory", Operation::Delete(&DIRECTORY), Record, Delete),
    route("GET", "ehr/{ehr_id}/directory/{version_uid}", Operation::Read(&DIRECTORY), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_directory", Operation::Versioned(&DIRECTORY, Part::Container), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_directory/revision_history", Operation::Versioned(&DIRECTORY, Part::History), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_directory/version", Operation::Versioned(&DIRECTORY, Part::AtTime), Record, Read),
    route("GET", "ehr/{ehr_id}/versioned_directory/version/{version_uid}", Operation::Versioned(&DIRECTORY, Part::Version), Record, Read),
    route("POST", "ehr/{ehr_id}/contribution", Operation::ContributionCreate, Record, Create),
    route("GET", "ehr/{ehr_id}/contribution", Operation::ContributionList, Record, Read),
    route("GET", "ehr/{ehr_id}/contribution/{uid}", Operation::ContributionGet, Record, Read),
    route("GET", "ehr/{ehr_id}/tags", Operation::TagsList, Record, Read),
    route("GET", "ehr/{ehr_id}/composition/{uid}/tags", Operation::TagsGet(&COMPOSITION), Record, Read),
    route("PUT", "ehr/{ehr_id}/composition/{uid}/tags", Operation::TagsPut(&COMPOSITION), Record, Update),
    route("DELETE", "ehr/{ehr_id}/composition/{uid}/tags/{key}", Operation::TagsDelete(&COMPOSITION), Record, Update),
    route("GET", "ehr/{ehr_id}/ehr_status/{uid}/tags", Operation::TagsGet(&EHR_STATUS), Record, Read),
    route("PUT", "ehr/{ehr_id}/ehr_status/{uid}/tags", Operation::TagsPut(&EHR_STATUS), Record, Update),
    route("DELETE", "ehr/{ehr_id}/ehr_status/{uid}/tags/{key}", Operation::TagsDelete(&EHR_STATUS), Record, Update),
    route("POST", "demographic/agent", Operation::Create(&AGENT), Party, Create),
    route("GET", "demographic/agent/{uid}", Operation::Read(&AGENT), Party, Read),
    route("PUT", "demographic/agent/{uid}", Operation::Update(&AGENT), Party, Update),
    route("DELETE", "demographic/agent/{uid}", Operation::Delete(&AGENT), Party, Delete),
    route("POST", "demographic/group", Operation::Create(&GROUP), Party, Create),
    route("GET", "demographic/group/{uid}", Operation::Read(&GROUP), Party, Read),
    route("PUT", "demographic/group/{uid}", Operation::Update(&GROUP), Party, Update),
    route("DELETE", "demographic/group/{uid}", Operation::Delete(&GROUP), Party, Delete),
    route("POST", "demographic/organisation", Operation::Create(&ORGANISATION), Party, Create),
    route("GET", "demographic/organisation/{uid}", Operation::Read(&ORGANISATION), Party, Read),
    route("PUT", "demographic/organisation/{uid}", Operation::Update(&ORGANISATION), Party, Update),
    route("DELETE", "demographic/organisation/{uid}", Operation::Delete(&ORGANISATION), Party, Delete),
    route("POST", "demographic/person", Operation::Create(&PERSON), Party, Create),
    route("GET", "demographic/person/{uid}", Operation::Read(&PERSON), Party, Read),
    route("PUT", "demographic/person/{uid}", Operation::Update(&PERSON), Party, Update),
    route("DELETE", "demographic/person/{uid}", Operation::Delete(&PERSON), Party, Delete),
    route("POST", "demographic/role", Operation::Create(&ROLE), Party, Create),
    route("GET", "demographic/role/{uid}", Operation::Read(&ROLE), Party, Read),
    route("PUT", "demographic/role/{uid}", Operation::Update(&ROLE), Party, Update),
    route("DELETE", "demographic/role/{uid}", Operation::Delete(&ROLE), Party, Delete),
    route("GET", "demographic/versioned_party/{uid}", Operation::Versioned(&PARTY, Part::Container), Party, Read),
    route("GET", "demographic/versioned_party/{uid}/revision_history", Operation::Versioned(&PARTY, Part::History), Party, Read),
    route("GET", "demographic/versioned_party/{uid}/version", Operation::Versioned(&PARTY, Part::AtTime), Party, Read),
    route("GET", "demographic/versioned_party/{uid}/version/{version_uid}", Operation::Versioned(&PARTY, Part::Version), Party, Read),
    route("GET", "demographic/tags", Operation::TagsList, Party, Read),
    route("GET", "demographic/agent/{uid}/tags", Operation::TagsGet(&AGENT), Party, Read),
    route("PUT", "demographic/agent/{uid}/tags", Operation::TagsPut(&AGENT), Party, Update),
    route("DELETE", "demographic/agent/{uid}/tags/{key}", Operation::TagsDelete(&AGENT), Party, Update),
    route("GET", "demographic/group/{uid}/tags", Operation::TagsGet(&GROUP), Party, Read),
    route("PUT", "demographic/group/{uid}/tags", Operation::TagsPut(&GROUP), Party, Update),
    route("DELETE", "demographic/group/{uid}/tags/{key}", Operation::TagsDelete(&GROUP), Party, Update),
    route("GET", "demographic/organisation/{uid}/tags", Operation::TagsGet(&ORGANISATION), Party, Read),
    route("PUT", "demographic/organisation/{uid}/tags", Operation::TagsPut(&ORGANISATION), Party, Update),
    route("DELETE", "demographic/organisation/{uid}/tags/{key}", Operation::TagsDelete(&ORGANISATION), Party, Update),
    route("GET", "demographic/person/{uid}/tags", Operation::TagsGet(&PERSON), Party, Read),
    route("PUT", "demographic/person/{uid}/tags", Operation::TagsPut(&PERSON), Party, Update),
    route("DELETE", "demographic/person/{uid}/tags/{key}", Operation::TagsDelete(&PERSON), Party, Update),
    route("GET", "demographic/role/{uid}/tags", Operation::TagsGet(&ROLE), Party, Read),
    route("PUT", "demographic/role/{uid}/tags", Operation::TagsPut(&ROLE), Party, Update),
    route("DELETE", "demographic/role/{uid}/tags/{key}", Operation::TagsDelete(&ROLE), Party, Update),
    route("POST", "demographic/contribution", Operation::ContributionCreate, Party, Create),
    route("GET", "demographic/contribution/{uid}", Operation::ContributionGet, Party, Read),
    route("POST", "definition/template", Operation::TemplateUpload, Template, Create),
    route("GET", "definition/template", Operation::TemplateList, Template, Read),
    route("POST", "definition/template/adl1.4", Operation::TemplateUpload, Template, Create),
    route("GET", "definition/template/adl1.4", Operation::TemplateList, Template, Read),
    route("GET", "definition/template/adl1.4/{id}", Operation::TemplateGet, Template, Read),
    route("GET", "definition/template/adl1.4/{id}/example", Operation::TemplateExample, Template, Read),
    route("GET", "definition/template/adl1.4/{id}/webtemplate", Operation::TemplateWeb, Template, Read),
    route("POST", "definition/template/adl2", Operation::TemplateUpload, Template, Create),
    route("GET", "definition/template/adl2", Operation::TemplateList, Template, Read),
    route("GET", "definition/template/adl2/{id}", Operation::TemplateGet, Template, Read),
    route("GET", "definition/template/adl2/{id}/example", Operation::TemplateExample, Template, Read),
    route("GET", "definition/template/adl2/{id}/webtemplate", Operation::TemplateWeb, Template, Read),
    route("GET", "definition/template/adl2/{id}/{version}", Operation::TemplateGet, Template, Read),
    route("GET", "definition/template/{id}", Operation::TemplateVersions, Template, Read),
    route("GET", "definition/template/{id}/webtemplate", Operation::TemplateWeb, Template, Read),
    route("GET", "definition/template/{id}/{version}", Operation::TemplateGet, Template, Read),
    route("GET", "definition/template/{id}/{version}/example", Operation::TemplateExample, Template, Read),
    route("GET", "definition/template/{id}/{version}/webtemplate", Operation::TemplateWeb, Template, Read),
    route("GET", "definition/query", Operation::QueryList, Query, Read),
    route("GET", "definition/query/{name}", Operation::QueryList, Query, Read),
    route("PUT", "definition/query/{name}", Operation::QueryStore, Query, Create),
    route("GET", "definition/query/{name}/{version}", Operation::QueryDetail, Query, Read),
    route("PUT", "definition/query/{name}/{version}", Operation::QueryStore, Query, Create),
    route("GET", "query/aql", Operation::QueryAdHoc, Query, Search),
    route("POST", "query/aql", Operation::QueryAdHoc, Query, Search),
    route("GET", "query/aql/explain", Operation::QueryExplain, Query, Search),
    route("POST", "query/aql/explain", Operation::QueryExplain, Query, Search),
    route("GET", "query/{name}", Operation::QueryStored, Query, Search),
    route("POST", "query/{name}", Operation::QueryStored, Query, Search),
    route("GET", "query/{name}/{version}", Operation::QueryStored, Query, Search),
    route("POST", "query/{name}/{version}", Operation::QueryStored, Query, Search),
    route("PUT", "query/{name}", Operation::QueryStore, Query, Create),
    route("PUT", "query/{name}/{version}", Operation::QueryStore, Query, Create),
    route("GET", "definition/valueset", Operation::ValueSetList, Template, Read),
    route("PUT", "definition/valueset/{url}", Operation::ValueSetStore, Template, Create),
    route("GET", "definition/valueset/{url}", Operation::ValueSetGet, Template, Read),
    route("DELETE", "definition/valueset/{url}", Operation::ValueSetDelete, Template, Delete),
    route("POST", "definition/gdl", Operation::GuideUpload, Guide, Create),
    route("GET", "definition/gdl", Operation::GuideList, Guide, Read),
    route("GET", "definition/gdl/{id}", Operation::GuideGet, Guide, Read),
    route("GET", "gdl/query/{ehr_id}/{guide_id}", Operation::GuideRun, Guide, Search),
    route("POST", "gdl/query", Operation::GuideRunOn, Guide, Search),
    route("GET", "admin/export", Operation::Export, Admin, Read),
    route("POST", "admin/import", Operation::Import, Admin, Create),
    route("GET", "cds-services", Operation::CdsDiscovery, Guide, Read),
    route("POST", "cds-services/{guide_id}", Operation::CdsCall, Guide, Search),
    route("POST", "admin/load", Operation::AdminLoad, Admin, Create),
    route("POST", "admin/reset", Operation::AdminReset, Admin, Delete),
    route("DELETE", "admin/ehr/{ehr_id}", Operation::AdminDeleteEhr, Admin, Delete),
    route("DELETE", "admin/ehr/{ehr_id}/composition/{uid}", Operation::AdminDeleteObject(&COMPOSITION), Admin, Delete),
    route("DELETE", "admin/ehr/{ehr_id}/directory/{uid}", Operation::AdminDeleteObject(&DIRECTORY), Admin, Delete),
    route("DELETE", "admin/template/{id}", Operation::AdminDeleteDefinition(DefinitionKind::Template), Admin, Delete),
    route("DELETE", "admin/template/{id}/{version}", Operation::AdminDeleteDefinition(DefinitionKind::Template), Admin, Delete),
    route("DELETE", "admin/query/{name}/{version}", Operation::AdminDeleteDefinition(DefinitionKind::Query), Admin, Delete),
    route("DELETE", "admin/gdl/{id}", Operation::AdminDeleteDefinition(DefinitionKind::Guide), Admin, Delete),
    route("GET", "admin/access-log", Operation::AccessLog, Log, Read),
];

/// The top-level groups of a mount, as the manifest names them: the three of the service specification first.
pub(crate) const ENDPOINTS: [&str; 7] = ["/ehrs", "/definitions", "/query", "/gdl", "/cds-services", "/demographic", "/admin"];

/// Where clients of a well-known server look for administration; it is that of the ITS mount.
const ADMIN: &str = "/rest/admin";

/// Methods that HTTP knows; any other is answered with 501.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"];

/// Methods that some resource is served by, in the order in which Allow lists them.
const SERVED: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];

/// Where a request leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Matched {
    /// Outside the mounts: is the service there?
    Health,
    /// What an application of SMART on openEHR must know.
    Smart,
    /// What a path allows; the manifest for the root of a mount (`allow` lists every method there).
    Options { dialect: Option<Dialect>, allow: String },
    /// An operation with the path parameters in order.
    Operation(Found),
}

/// An operation that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub dialect: Dialect,
    pub route: &'static Route,
    pub params: Vec<String>,
}

impl Found {
    /// The parameters of the path that do not name the EHR.
    pub fn others(&self) -> Vec<&str> {
        let ehr = self.route.pattern.split('/').filter(|part| part.starts_with('{')).position(|part| part == "{ehr_id}");
        self.params.iter().enumerate().filter(|(i, _)| Some(*i) != ehr).map(|(_, value)| value.as_str()).collect()
    }

    /// The parameter of the path with one of these names.
    pub fn named(&self, names: &[&str]) -> Option<&str> {
        let parts = self.route.pattern.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        parts.zip(&self.params).find(|(part, _)| names.contains(part)).map(|(_, value)| value.as_str())
    }
}

/// Finds the operation of a request; 404, 405 with Allow, or 501 where there is none.
pub(crate) fn find(request: &Request) -> Result<Matched, Failure> {
    if !METHODS.contains(&request.method.as_str()) {
        return Err(Failure::new(501, format!("the method `{}` is not implemented", request.method.chars().take(20).collect::<String>())));
    }
    let method = if request.method == "HEAD" { "GET" } else { request.method.as_str() };
    let path = match request.path.strip_prefix(ADMIN) {
        Some(rest) if rest.starts_with('/') => &format!("{}/admin{rest}", Dialect::Its.mount()),
        _ => &request.path,
    };
    let path = path.trim_end_matches('/');
    if method == "GET" && ["/health", "/status", "/rest/status"].contains(&path) {
        return Ok(Matched::Health);
    }
    if method == "GET" && path == "/.well-known/smart-configuration" {
        return Ok(Matched::Smart);
    }
    let mount = Dialect::ALL
        .into_iter()
        .find_map(|d| path.strip_prefix(d.mount()).filter(|rest| rest.is_empty() || rest.starts_with('/')).map(|rest| (d, rest)));
    let Some((dialect, rest)) = mount else {
        return match method {
            "OPTIONS" if path.is_empty() => Ok(Matched::Options { dialect: Some(Dialect::V1), allow: every_method() }),
            _ => Err(Failure::missing(format!(
                "there is no such resource; the service answers below {} and {}",
                Dialect::V1.mount(),
                Dialect::Its.mount()
            ))),
        };
    };
    find_in_mount(dialect, method, rest)
}

/// The operation that a request leads to, as logs may name it: the method and the pattern of the path.
pub fn operation(request: &Request) -> Option<String> {
    match find(request) {
        Ok(Matched::Operation(found)) => Some(format!("{} {}", found.route.method, found.route.pattern)),
        _ => None,
    }
}

/// True when only somebody who has leave is answered.
pub fn needs_leave(request: &Request) -> bool {
    matches!(find(request), Ok(Matched::Operation(_)))
}

fn find_in_mount(dialect: Dialect, method: &str, rest: &str) -> Result<Matched, Failure> {
    let segments: Vec<String> = rest.split('/').skip(1).map(|s| decode(s, false)).collect();
    if segments.is_empty() {
        return match method {
            "OPTIONS" => Ok(Matched::Options { dialect: Some(dialect), allow: every_method() }),
            _ => Err(not_allowed(method, "OPTIONS")),
        };
    }
    let fitting: Vec<(&'static Route, Vec<String>)> = ROUTES.iter().filter_map(|r| Some((r, parameters(r.pattern, &segments)?))).collect();
    if fitting.is_empty() {
        return Err(Failure::missing(format!("there is no resource at this path below {}", dialect.mount())));
    }
    if method == "OPTIONS" {
        return Ok(Matched::Options { dialect: None, allow: allowed(&fitting) });
    }
    match fitting.iter().find(|(r, _)| r.method == method) {
        Some((r, params)) => Ok(Matched::Operation(Found { dialect, route: r, params: params.clone() })),
        None => Err(not_allowed(method, &allowed(&fitting))),
    }
}

/// The parameters when a path fits a pattern; the plural names of the groups are aliases.
fn parameters(pattern: &str, segments: &[String]) -> Option<Vec<String>> {
    let mut params = Vec::new();
    let mut parts = pattern.split('/');
    for (i, segment) in segments.iter().enumerate() {
        let part = parts.next()?;
        if part.starts_with('{') {
            params.push(segment.clone());
        } else if part != segment && !(i == 0 && segment.strip_suffix('s') == Some(part) && matches!(part, "ehr" | "definition")) {
            return None;
        }
    }
    parts.next().is_none().then_some(params)
}

/// The value of Allow for the routes that fit a path: the same whether it is asked for or a refusal tells it.
fn allowed(fitting: &[(&Route, Vec<String>)]) -> String {
    let has = |method: &str| fitting.iter().any(|(r, _)| r.method == method);
    let answered = |method: &&str| *method == "OPTIONS" || has(method) || (*method == "HEAD" && has("GET"));
    SERVED.into_iter().filter(answered).collect::<Vec<_>>().join(", ")
}

fn every_method() -> String {
    SERVED.join(", ")
}

fn not_allowed(method: &str, allow: &str) -> Failure {
    Failure::new(405, format!("`{method}` is not allowed here; allowed are {allow}")).header("Allow", allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(method: &str, target: &str) -> Option<(Operation, Vec<String>)> {
        match find(&Request::new(method, target)) {
            Ok(Matched::Operation(found)) => Some((found.route.operation, found.params)),
            _ => None,
        }
    }

    fn status(method: &str, target: &str) -> u16 {
        find(&Request::new(method, target)).map_or_else(|f| f.status, |_| 200)
    }

    #[test]
    fn both_mounts_and_the_plural_names_lead_to_the_same_operations() {
        for target in ["/v1/ehr/1", "/rest/openehr/v1/ehr/1", "/v1/ehrs/1", "/v1/ehr/1/"] {
            assert_eq!(operation("GET", target), Some((Operation::EhrGet, vec!["1".into()])), "{target}");
        }
        assert_eq!(operation("GET", "/v1/definitions/template/adl1.4"), Some((Operation::TemplateList, vec![])));
    }

    #[test]
    fn what_is_not_served_says_so() {
        assert_eq!(status("GET", "/v2/ehr"), 404);
        assert_eq!(status("GET", "/v1x/ehr"), 404);
        assert_eq!(status("PATCH", "/v1/ehr"), 405);
        assert_eq!(status("BREW", "/v1/ehr"), 501);
        assert_eq!(status("GET", "/v1"), 405);
        assert_eq!(status("GET", "/health"), 200);
    }

    struct Fixed(i64);

    impl crate::service::Moment for Fixed {
        fn now(&mut self) -> i64 {
            1_796_000_000_000_000
        }

        fn new_uuid(&mut self) -> String {
            self.0 += 1;
            format!("00000000-0000-4000-8000-{:012x}", self.0)
        }
    }

    #[test]
    fn whatever_is_sent_to_any_line_of_the_table_is_the_clients_fault() {
        use crate::service::{Auth, Config, Service};
        use crate::store::{memory::Memory, ready::block_on};
        let service = Service::new(Memory::new(), Config { auth: Auth::Open, admin: true, ..Config::default() });
        let mut moment = Fixed(0);
        let ehr = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
        let version = format!("{ehr}::aqlite.local::1");
        block_on(service.handle(&Request::new("PUT", &format!("/v1/ehr/{ehr}")), &mut moment)).unwrap();
        let params = ["x", ehr, &version, "%00", "%C3%28", "..", "1.0", "'\"--"];
        let bodies: [&[u8]; 9] =
            [b"", b"{", b"[]", b"null", b"{}", b"<a", b"<composition/>", b"\xff\xfe", b"{\"q\":1,\"versions\":{},\"data\":[],\"ehr_ids\":0}"];
        let types = ["", "application/json", "application/xml", "text/plain", "application/x-ndjson", ";"];
        for r in ROUTES {
            for param in params {
                let target: String = r.pattern.split('/').map(|p| format!("/{}", if p.starts_with('{') { param } else { p })).collect();
                for (body, kind) in bodies.iter().flat_map(|b| types.iter().map(move |t| (b, t))) {
                    for mount in ["/v1", "/rest/openehr/v1"] {
                        let target = format!("{mount}{target}?version_at_time={param}&offset={param}&path=%2F");
                        let request = Request::new(r.method, &target).with_header("If-Match", param).with_header("Prefer", "return=representation");
                        let response = block_on(service.handle(&request.with_body(kind, *body), &mut moment)).unwrap();
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
    fn every_line_of_the_table_can_be_reached() {
        for r in ROUTES {
            let found = operation(r.method, &format!("/v1/{}", r.pattern.replace(['{', '}'], "")));
            assert_eq!(found.map(|(o, _)| o), Some(r.operation), "{} {}", r.method, r.pattern);
        }
    }
}
