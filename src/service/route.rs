//! The table of routes: method, path and operation. Dispatch, Allow and the manifest use it.

use super::Request;
use super::auth::{Action, Permission, Resource};
use super::dialect::Dialect;
use super::document_class::Controlled;
use super::error::{Failure, shortened};
use super::fhir::Canonical;
use super::http::decode;
use super::negotiate::Accepted;
use super::origin::authority_of;
use crate::document::ObjectKind;
use crate::store::repository::DefinitionKind;

mod definitions;
mod records;

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the table of routes describes each operation")]
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
    /// Returns the media types that its body may have.
    pub fn accepts(self) -> Accepted {
        match self {
            Operation::Create(what) | Operation::Update(what)
                if what.kind == ObjectKind::Composition =>
            {
                Accepted::Forms
            }
            Operation::Create(_)
            | Operation::Update(_)
            | Operation::EhrCreate
            | Operation::EhrCreateWithId
            | Operation::ContributionCreate => Accepted::Model,
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

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    /// The method.
    pub method: &'static str,
    /// The path below the mount, with `{parameters}`.
    pub pattern: &'static str,
    /// The operation.
    pub operation: Operation,
    /// The permission that a caller needs.
    pub permission: Permission,
}

const fn route(
    method: &'static str,
    pattern: &'static str,
    operation: Operation,
    resource: Resource,
    act: Action,
) -> Route {
    Route {
        method,
        pattern,
        operation,
        permission: Permission { resource, act },
    }
}

/// Returns every route of a mount. If two patterns match a path, the earlier route wins.
pub(crate) fn routes() -> impl Iterator<Item = &'static Route> {
    records::ROUTES.iter().chain(definitions::ROUTES)
}

/// The top-level groups of a mount in the manifest, the three of the service specification first.
pub(crate) const ENDPOINTS: [&str; 7] = [
    "/ehrs",
    "/definitions",
    "/query",
    "/gdl",
    CDS_SERVICES,
    "/demographic",
    "/admin",
];

/// The prefix of administration in EHRbase, which clients may use instead of that of the ITS mount.
const ADMIN: &str = "/rest/admin";

/// Methods that HTTP defines; any other gets 501.
const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
];

/// Methods of the table, in their order in Allow.
const SERVED: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];

/// The path of the services of CDS Hooks, below a mount and at the root.
const CDS_SERVICES: &str = "/cds-services";

/// The path of the OpenAPI document.
const OPENAPI: &str = "/openapi.json";

/// The value of Allow for an address outside the mounts.
const READ_ONLY: &str = "GET, HEAD, OPTIONS";

/// The route of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RouteTarget {
    /// The health check, outside the mounts.
    Health,
    /// The configuration for applications of SMART on openEHR.
    Smart,
    /// The methods of a path; the manifest for the root of a mount (`allow` lists every method
    /// there).
    Options {
        dialect: Option<Dialect>,
        allow: String,
    },
    /// An operation with the path parameters in order.
    Operation(MatchedRoute),
}

/// An operation that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MatchedRoute {
    pub dialect: Dialect,
    pub route: &'static Route,
    pub params: Vec<String>,
}

impl MatchedRoute {
    /// Returns the parameters of the path without the ehr_id.
    pub fn others(&self) -> Vec<&str> {
        let ehr = self
            .route
            .pattern
            .split('/')
            .filter(|part| part.starts_with('{'))
            .position(|part| part == "{ehr_id}");
        self.params
            .iter()
            .enumerate()
            .filter(|(i, _)| Some(*i) != ehr)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// Returns the parameter of the path with one of these names.
    pub fn named(&self, names: &[&str]) -> Option<&str> {
        self.parameters()
            .find(|(part, _)| names.contains(part))
            .map(|(_, value)| value)
    }

    /// Returns the name of the definition that the path addresses, which patterns of scopes limit.
    ///
    /// Every parameter but an EHR and a version is such a name, so that no route of a new kind of
    /// definition escapes the patterns.
    pub fn definition_name(&self) -> Option<&str> {
        let (part, name) = self
            .parameters()
            .find(|(part, _)| !["ehr_id", "version"].contains(part))?;
        Some(match part {
            // A value set is stored under its URL without a version.
            "url" => Canonical::read(name).url,
            _ => name,
        })
    }

    /// Returns the parameters of the path with their names in the pattern.
    fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let pattern: &'static str = self.route.pattern;
        let parts = pattern
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        parts.zip(self.params.iter().map(String::as_str))
    }
}

/// Checks that a request has one header Host at most, and that it and the address of the request
/// are authorities without a name of a user (RFC 9112 §3.2). A runtime prepends the header to the
/// target of a request, where a `/` or `?` in it would replace the path of the target.
fn check_authority(request: &Request) -> Result<(), Failure> {
    let is_of_authority =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(&byte);
    let is_host = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("Host");
    if request.headers.iter().filter(is_host).count() > 1 {
        return Err(Failure::bad_request(
            "the request has more than one header Host: send one",
        ));
    }
    let host = request.header("Host").unwrap_or_default();
    if !host.bytes().all(is_of_authority) {
        return Err(Failure::bad_request(
            "the header Host is no host: expected a name or an address, and a port where it has one",
        ));
    }
    if !authority_of(&request.base_url).bytes().all(is_of_authority) {
        return Err(Failure::bad_request(
            "the host of the address is no host: expected a name or an address, and a port where it has one",
        ));
    }
    Ok(())
}

/// Checks that the body of a request has no transfer coding but `chunked`, which the host has
/// removed. With another one, the bytes that the service gets are not those of the content.
///
/// # Errors
/// 501 for a transfer coding that is not understood (RFC 9112, section 6.1).
fn check_transfer_coding(request: &Request) -> Result<(), Failure> {
    let codings = request.header("Transfer-Encoding").unwrap_or_default();
    let mut names = codings.split(',').map(str::trim);
    match names.find(|name| !name.is_empty() && !name.eq_ignore_ascii_case("chunked")) {
        None => Ok(()),
        Some(other) => Err(Failure::new(
            501,
            format!(
                "the transfer coding `{}` is not implemented: send the body with `Content-Encoding`, or uncompressed",
                shortened(other)
            ),
        )),
    }
}

/// Finds the operation of a request.
///
/// # Errors
/// 400 for an invalid header Host; 404, 405 with Allow, or 501 if there is no operation.
pub(crate) fn find(request: &Request) -> Result<RouteTarget, Failure> {
    check_authority(request)?;
    check_transfer_coding(request)?;
    check_method(&request.method)?;
    // The host drops the body of a response to HEAD.
    let method = match request.method.as_str() {
        "HEAD" => "GET",
        method => method,
    };
    let path = match request.path.strip_prefix(ADMIN) {
        Some(rest) if rest.starts_with('/') => &format!("{}/admin{rest}", Dialect::Its.mount()),
        _ => &request.path,
    };
    // Some clients append a slash.
    let path = path.trim_end_matches('/');
    match mount_of(path) {
        Some((dialect, rest)) => find_in_mount(dialect, method, rest),
        None => find_outside_mounts(method, path),
    }
}

/// Checks that a method is one that any resource has.
///
/// # Errors
/// 501 for any other.
fn check_method(method: &str) -> Result<(), Failure> {
    if METHODS.contains(&method) {
        return Ok(());
    }
    let sent: String = method.chars().take(20).collect();
    let meant = sent.to_ascii_uppercase();
    let remedy = match METHODS.contains(&meant.as_str()) {
        // The names of methods are case-sensitive (RFC 9110, section 9.1).
        true => format!(": send `{meant}`"),
        false => String::new(),
    };
    Err(Failure::new(
        501,
        format!("the method `{sent}` is not implemented{remedy}"),
    ))
}

/// Finds the resource of a path that is below no mount.
fn find_outside_mounts(method: &str, path: &str) -> Result<RouteTarget, Failure> {
    let read = match path {
        "/health" | "/status" | "/rest/status" => Some(RouteTarget::Health),
        "/.well-known/smart-configuration" => Some(RouteTarget::Smart),
        // The host has the OpenAPI document, and answers requests that read it.
        OPENAPI if method != "GET" => None,
        _ => return find_server(method, path),
    };
    match (method, read) {
        ("GET", Some(target)) => Ok(target),
        ("OPTIONS", _) => Ok(RouteTarget::Options {
            dialect: None,
            allow: READ_ONLY.to_owned(),
        }),
        _ => Err(not_allowed(method, READ_ONLY)),
    }
}

/// Finds the server as a whole (RFC 9110, section 9.3.7).
fn find_server(method: &str, path: &str) -> Result<RouteTarget, Failure> {
    let dialect = match path {
        "*" if method == "OPTIONS" => None,
        "" if method == "OPTIONS" => Some(Dialect::V1),
        _ => {
            return Err(Failure::not_found(format!(
                "there is no such resource; the service answers below {} and {}",
                Dialect::V1.mount(),
                Dialect::Its.mount()
            )));
        }
    };
    Ok(RouteTarget::Options {
        dialect,
        allow: every_method(),
    })
}

/// Returns the mount of a path, and the path below it. The services of CDS Hooks are at the root too:
/// clients append `/cds-services` to the address of a server.
fn mount_of(path: &str) -> Option<(Dialect, &str)> {
    if path == CDS_SERVICES || path.starts_with("/cds-services/") {
        return Some((Dialect::V1, path));
    }
    Dialect::ALL.into_iter().find_map(|d| {
        path.strip_prefix(d.mount())
            // `/v10` does not belong to `/v1`.
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .map(|rest| (d, rest))
    })
}

/// Returns the operation of a request for logs: the method and the pattern of the path.
pub fn operation(request: &Request) -> Option<String> {
    match find(request) {
        Ok(RouteTarget::Operation(found)) => {
            Some(format!("{} {}", found.route.method, found.route.pattern))
        }
        _ => None,
    }
}

/// Returns whether the operation of a request needs a permission.
pub fn needs_permission(request: &Request) -> bool {
    matches!(find(request), Ok(RouteTarget::Operation(_)))
}

/// Returns whether the operation of a request changes nothing. A host may replace its response by an
/// error: that of another operation reports a change that is done.
pub fn only_reads(request: &Request) -> bool {
    match find(request) {
        Ok(RouteTarget::Operation(found)) => {
            matches!(found.route.permission.act, Action::Read | Action::Search)
        }
        _ => false,
    }
}

/// Finds the operation of a path below a mount.
fn find_in_mount(dialect: Dialect, method: &str, rest: &str) -> Result<RouteTarget, Failure> {
    // Decoded after the split, so that `%2F` is part of a segment.
    let mut segments: Vec<String> = rest.split('/').skip(1).map(|s| decode(s, false)).collect();
    if segments.is_empty() {
        return match method {
            "OPTIONS" => Ok(RouteTarget::Options {
                dialect: Some(dialect),
                allow: every_method(),
            }),
            _ => Err(not_allowed(method, "OPTIONS")),
        };
    }
    // `ehrs` and `definitions` are the names of the manifest.
    if let Some(group) = segments.first_mut()
        && matches!(group.as_str(), "ehrs" | "definitions")
    {
        group.pop();
    }
    let mut fitting: Vec<&'static Route> = routes()
        .filter(|route| fits(route.pattern, &segments))
        .collect();
    // `ehr/bulk` is no EHR: a path without a parameter is a resource of its own.
    let is_fixed = |route: &Route| !route.pattern.contains('{');
    if fitting.iter().any(|route| is_fixed(route)) {
        fitting.retain(|route| is_fixed(route));
    }
    if fitting.is_empty() {
        return Err(Failure::not_found(format!(
            "there is no resource at this path below {}",
            dialect.mount()
        )));
    }
    if method == "OPTIONS" {
        return Ok(RouteTarget::Options {
            dialect: None,
            allow: allowed(&fitting, &segments),
        });
    }
    match fitting.iter().find(|route| route.method == method) {
        Some(route) => Ok(RouteTarget::Operation(MatchedRoute {
            dialect,
            route,
            params: parameters(route.pattern, segments),
        })),
        None => Err(not_allowed(method, &allowed(&fitting, &segments))),
    }
}

/// Returns whether a path matches a pattern.
///
/// Each request compares its path with all patterns, so this neither splits nor copies a pattern.
fn fits(pattern: &str, segments: &[String]) -> bool {
    let mut rest = pattern;
    for (at, segment) in segments.iter().enumerate() {
        let part = if at == 0 {
            Some(rest)
        } else {
            rest.strip_prefix('/')
        };
        let behind = part.and_then(|part| match part.starts_with('{') {
            true => part.find('}').and_then(|end| part.get(end + 1..)),
            // A slash that was encoded is part of a segment, and separates none of a pattern.
            false => part
                .strip_prefix(segment.as_str())
                .filter(|_| !segment.contains('/')),
        });
        let Some(behind) = behind else { return false };
        rest = behind;
    }
    rest.is_empty()
}

/// Returns the segments of a path at the parameters of the pattern that it matches.
fn parameters(pattern: &str, segments: Vec<String>) -> Vec<String> {
    pattern
        .split('/')
        .zip(segments)
        .filter(|(part, _)| part.starts_with('{'))
        .map(|(_, segment)| segment)
        .collect()
}

/// Returns the value of Allow for the routes that match a path. OPTIONS and a 405 response have the
/// same value.
fn allowed(fitting: &[&Route], segments: &[String]) -> String {
    let has = |method: &str| {
        let mut routes = fitting.iter().filter(|route| route.method == method);
        routes.any(|route| is_implemented(route.operation) && !is_reserved(route, segments))
    };
    let answered =
        |method: &&str| *method == "OPTIONS" || has(method) || (*method == "HEAD" && has("GET"));
    SERVED
        .into_iter()
        .filter(answered)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns whether a build has an operation. Others answer 501.
fn is_implemented(operation: Operation) -> bool {
    cfg!(feature = "server") || !matches!(operation, Operation::Bulk | Operation::AccessLog)
}

/// Returns whether a name is that of ad hoc queries, which no stored query may have.
pub(super) fn is_reserved_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("aql")
}

/// Returns whether a route stores a query under a reserved name, which is always refused: below
/// `query/aql`, only ad hoc queries are served.
fn is_reserved(route: &Route, segments: &[String]) -> bool {
    let mut parts = route.pattern.split('/').zip(segments);
    route.operation == Operation::QueryStore
        && parts.any(|(part, segment)| part == "{name}" && is_reserved_name(segment))
}

fn every_method() -> String {
    SERVED.join(", ")
}

fn not_allowed(method: &str, allow: &str) -> Failure {
    Failure::new(
        405,
        format!("`{method}` is not allowed here; allowed are {allow}"),
    )
    .header("Allow", allow)
}

#[cfg(test)]
mod tests;
