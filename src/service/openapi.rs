//! The OpenAPI document, generated from the table of routes. It is written when the page is built,
//! and is not part of the worker.

mod headers;
mod kinds;
mod schema;

use super::http::MAX_PAGE;
use super::root::VERSION;
use super::route::{Operation, Route, routes};
use aqlite_rm::order;
use kinds::Kind;
use schema::Bodies;
use serde_json::{Map, Value, json};

/// Statuses of every request: a repeated parameter, an escape that is no UTF-8, a wrong value.
const OF_REQUESTS: [u16; 1] = [400];
/// Statuses of access control, for every route: not authenticated, no permission, another host, too
/// many requests, unavailable.
const OF_ACCESS: [u16; 5] = [401, 403, 421, 429, 503];
/// Statuses of bodies: too large, or of a wrong type.
const OF_BODIES: [u16; 2] = [413, 415];

/// Returns the document: OpenAPI 3.0.
pub fn openapi() -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "aqlite",
            "version": VERSION,
            "description": "An openEHR clinical data repository. Both servers are one repository: the first speaks the dialect of the service specification, the second that of openEHR ITS-REST.",
        },
        "servers": [{ "url": "/v1" }, { "url": "/rest/openehr/v1" }],
        "security": [{ "bearer": [] }, { "access": [] }, { "basic": [] }],
        "paths": paths(),
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
                "access": { "type": "apiKey", "in": "header", "name": "Cf-Access-Jwt-Assertion" },
                "basic": { "type": "http", "scheme": "basic", "description": "for development" },
            },
            "responses": errors(),
            "headers": headers::components(),
            "schemas": schema::schemas(),
        },
    })
}

/// The responses with problems: the name, and the headers that such a response may have.
const ERRORS: [(&str, &[&str]); 5] = [
    ("Error", &[]),
    ("Unauthorized", &["WWW-Authenticate"]),
    // The latest version, with which the request can be repeated.
    ("Conflict", &["ETag", "Location"]),
    ("UnsupportedMediaType", &["Accept-Encoding"]),
    ("Busy", &["Retry-After"]),
];

/// Returns the name of the response for a status from 400.
fn error_name(status: u16) -> &'static str {
    match status {
        401 => "Unauthorized",
        409 | 412 => "Conflict",
        415 => "UnsupportedMediaType",
        429 | 503 => "Busy",
        _ => "Error",
    }
}

fn errors() -> Map<String, Value> {
    let error = |(name, names): (&str, &[&str])| {
        let mut response = json!({ "description": "The problems of the request, each with its place and remedy.", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } });
        add_headers(&mut response, headers::named(names.iter().copied()));
        (name.to_owned(), response)
    };
    ERRORS.into_iter().map(error).collect()
}

/// Adds headers to a response, if there are any.
fn add_headers(response: &mut Value, headers: Map<String, Value>) {
    if let Some(members) = response.as_object_mut().filter(|_| !headers.is_empty()) {
        members.insert(String::from("headers"), headers.into());
    }
}

/// Returns the operations by path and method: the routes, and two paths outside the mounts.
fn paths() -> Map<String, Value> {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let path = paths
            .entry(format!("/{}", route.pattern))
            .or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(route.method.to_ascii_lowercase(), operation(route));
        }
    }
    let open = |summary: &str| json!({ "servers": [{ "url": "/" }], "get": { "summary": summary, "tags": ["service"], "security": [], "responses": { "200": { "description": "OK" }, "503": error(503) } } });
    paths.insert(String::from("/health"), open("Health check"));
    paths.insert(String::from("/rest/status"), open("Name and version"));
    paths
}

fn operation(route: &Route) -> Value {
    let (kind, bodies) = (Kind::of(route), Bodies::of(route.operation));
    let names: Vec<&str> = route
        .pattern
        .split('/')
        .map(|part| part.trim_matches(['{', '}']))
        .collect();
    let mut operation = json!({
        "operationId": format!("{}_{}", route.method.to_ascii_lowercase(), names.join("_")),
        "summary": kind.summary(),
        "tags": names.first().into_iter().collect::<Vec<_>>(),
        "parameters": parameters(route, &kind),
        "responses": responses(&kind, &bodies.answers, route.method),
        "x-kind": kind.name,
        "x-roles": route.permission.roles(),
        "x-scope": format!("{}-*.{}", route.permission.word(), route.permission.letter()),
    });
    if let Some(members) = operation.as_object_mut().filter(|_| !kind.sends.is_empty()) {
        let body = request_body(&kind, &bodies.takes);
        members.insert(String::from("requestBody"), body);
    }
    operation
}

/// Returns the parameters of a route: those in the path, in the query string, and headers.
fn parameters(route: &Route, kind: &Kind) -> Value {
    let in_path = route
        .pattern
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let parameter = |place: &str, name: &str| json!({ "name": name, "in": place, "required": is_required(route, name), "schema": schema_of(name) });
    let in_query = kind.query.iter().map(|name| parameter("query", name));
    let in_headers = kind.headers.iter().map(|name| parameter("header", name));
    in_path.chain(in_query).chain(in_headers).collect()
}

/// Returns whether a request without this query parameter or header is rejected.
fn is_required(route: &Route, name: &str) -> bool {
    match (route.operation, name) {
        (Operation::QueryAdHoc | Operation::QueryExplain, "q") => route.method == "GET",
        (Operation::TemplateUpload, "type") => route.pattern == "definition/template",
        (Operation::Update(_), "If-Match") => true,
        (Operation::Delete(what), "If-Match") => what.single,
        _ => false,
    }
}

/// Returns the schema of a query parameter or header.
fn schema_of(name: &str) -> Value {
    match name {
        "offset" | "fetch" | "first" => json!({ "type": "integer", "minimum": 0 }),
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": MAX_PAGE }),
        "ehr_id" => json!({ "type": "string", "format": "uuid" }),
        "version_at_time" | "now" | "from" | "to" => {
            json!({ "type": "string", "description": "Extended ISO 8601 with its time zone." })
        }
        "format" => json!({ "type": "string", "enum": ["JSON", "XML", "FLAT", "STRUCTURED"] }),
        "snapshot" => {
            json!({ "type": "string", "description": "`meta._snapshot` of the first page: the state that is read." })
        }
        "trace" | "convert_units" | "strict" => {
            json!({ "type": "string", "enum": ["true", "false"] })
        }
        _ => json!({ "type": "string" }),
    }
}

/// Returns a reference to the response for a status from 400.
fn error(status: u16) -> Value {
    json!({ "$ref": format!("#/components/responses/{}", error_name(status)) })
}

fn responses(kind: &Kind, answers: &[String], method: &str) -> Map<String, Value> {
    // A body is checked even if the operation needs none.
    let of_bodies = OF_BODIES.iter().filter(|_| method != "GET");
    let mut statuses: Vec<u16> = kind
        .statuses
        .iter()
        .chain(&OF_REQUESTS)
        .chain(&OF_ACCESS)
        .chain(of_bodies)
        .copied()
        .collect();
    order::sort(&mut statuses);
    let response = |status: u16| {
        let mut response = match status {
            200 | 201 if !kind.gives.is_empty() => {
                json!({ "description": super::error::reason(status), "content": content(kind.gives, answers) })
            }
            200..400 => json!({ "description": super::error::reason(status) }),
            _ => return error(status),
        };
        add_headers(&mut response, headers::of(kind.name, status));
        response
    };
    statuses
        .into_iter()
        .map(|status| (status.to_string(), response(status)))
        .collect()
}

/// Returns the description of a body. An EHR may be created without one, and a stored query may run
/// without one.
fn request_body(kind: &Kind, takes: &[String]) -> Value {
    let is_optional = ["ehr create"].contains(&kind.name)
        || takes.iter().any(|name| name == "StoredQueryRequest");
    json!({ "required": !is_optional, "content": content(kind.sends, takes) })
}

fn content(types: &[&str], names: &[String]) -> Map<String, Value> {
    types
        .iter()
        .map(|media_type| {
            (
                (*media_type).to_owned(),
                json!({ "schema": schema::of_body(media_type, names) }),
            )
        })
        .collect()
}
