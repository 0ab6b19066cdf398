//! The OpenAPI document, generated from the table of routes. It is written when the page is built,
//! and is not part of the worker.

mod schema;

use super::document_class::Controlled;
use super::negotiate::{FLAT, FLAT_OLD, STRUCTURED, STRUCTURED_OLD};
use super::root::VERSION;
use super::route::{Operation, Part, Route, routes};
use super::template::WEB_TEMPLATE;
use crate::document::ObjectKind;
use aqlite_rm::order;
use schema::Bodies;
use serde_json::{Map, Value, json};

/// The description of all routes with one kind of operation, in addition to the table of routes.
struct Kind {
    /// Its name. The statuses are those of all routes with this name.
    name: &'static str,
    summary: String,
    /// Parameters of the query string.
    query: &'static [&'static str],
    /// Request headers.
    headers: &'static [&'static str],
    /// Media types of the body; the first is the usual one.
    sends: &'static [&'static str],
    /// Media types of the response.
    gives: &'static [&'static str],
    /// Statuses of this kind, without those of [`OF_ACCESS`] and [`OF_BODIES`].
    statuses: &'static [u16],
}

const JSON: &[&str] = &["application/json"];
const RM: &[&str] = &["application/json", "application/xml"];
const FORMS: &[&str] = &[
    "application/json",
    "application/xml",
    FLAT,
    STRUCTURED,
    FLAT_OLD,
    STRUCTURED_OLD,
];
const XML: &[&str] = &["application/xml", "text/plain"];
const TEXT: &[&str] = &["application/json", "text/plain"];
const TABLE: &[&str] = &["application/json", "text/csv", "application/x-ndjson"];
const NDJSON: &[&str] = &["application/x-ndjson"];
const NONE: &[&str] = &[];
const COMMITTAL: &[&str] = &[
    "Prefer",
    "openEHR-VERSION.lifecycle_state",
    "openEHR-AUDIT_DETAILS.change_type",
    "openEHR-AUDIT_DETAILS.description",
    "openEHR-AUDIT_DETAILS.committer",
];
const BULK: &[&str] = &[
    "Idempotency-Key",
    "openEHR-VERSION.lifecycle_state",
    "openEHR-AUDIT_DETAILS.change_type",
    "openEHR-AUDIT_DETAILS.description",
    "openEHR-AUDIT_DETAILS.committer",
];
const CHANGE: &[&str] = &[
    "If-Match",
    "Prefer",
    "openEHR-VERSION.lifecycle_state",
    "openEHR-AUDIT_DETAILS.change_type",
    "openEHR-AUDIT_DETAILS.description",
    "openEHR-AUDIT_DETAILS.committer",
];
const CACHED: &[&str] = &["If-None-Match"];
const ASKED: &[&str] = &["openEHR-EHR-id", "If-None-Match"];

/// Statuses of access control, for every route: not authenticated, no permission, another host, too
/// many requests, unavailable.
const OF_ACCESS: [u16; 5] = [401, 403, 421, 429, 503];
/// Statuses of bodies: too large, or of a wrong type.
const OF_BODIES: [u16; 2] = [413, 415];

impl Kind {
    fn new(name: &'static str, summary: impl Into<String>, statuses: &'static [u16]) -> Kind {
        Kind {
            name,
            summary: summary.into(),
            query: NONE,
            headers: NONE,
            sends: NONE,
            gives: NONE,
            statuses,
        }
    }

    fn query(self, query: &'static [&'static str]) -> Kind {
        Kind { query, ..self }
    }

    fn headers(self, headers: &'static [&'static str]) -> Kind {
        Kind { headers, ..self }
    }

    fn sends(self, sends: &'static [&'static str]) -> Kind {
        Kind { sends, ..self }
    }

    fn gives(self, gives: &'static [&'static str]) -> Kind {
        Kind { gives, ..self }
    }

    fn of(route: &Route) -> Kind {
        match route.operation {
            Operation::Create(_)
            | Operation::Read(_)
            | Operation::Update(_)
            | Operation::Delete(_)
            | Operation::Versioned(..) => Kind::of_document(route.operation),
            Operation::TagsList
            | Operation::TagsGet(_)
            | Operation::TagsPut(_)
            | Operation::TagsDelete(_) => Kind::of_tags(route.operation),
            Operation::QueryList
            | Operation::QueryStore
            | Operation::QueryDetail
            | Operation::QueryAdHoc
            | Operation::QueryExplain
            | Operation::QueryStored => Kind::of_queries(route),
            operation => Kind::of_records(operation)
                .or_else(|| Kind::of_templates(operation))
                .or_else(|| Kind::of_guides(operation))
                .or_else(|| Kind::of_value_sets(operation))
                .or_else(|| Kind::of_transfers(operation))
                .or_else(|| Kind::of_administration(operation))
                .unwrap_or_else(|| Kind::new("", "", &[])),
        }
    }

    fn of_document(operation: Operation) -> Kind {
        match operation {
            Operation::Create(what) => {
                let statuses: &[u16] = match what.kind {
                    ObjectKind::Composition | ObjectKind::Party => {
                        &[201, 400, 404, 406, 409, 412, 422]
                    }
                    _ => &[201, 400, 404, 406, 409, 412],
                };
                let kind = Kind::new("create", format!("Create: {}", what.name), statuses)
                    .headers(COMMITTAL);
                kind.sends(forms(what)).gives(forms(what)).query(of_forms(
                    what,
                    &["templateId", "format", "dialect", "strict"],
                ))
            }
            Operation::Update(what) => {
                let statuses: &[u16] = match what.kind {
                    ObjectKind::Composition | ObjectKind::Party => {
                        &[200, 204, 400, 404, 406, 409, 412, 422]
                    }
                    _ => &[200, 204, 400, 404, 406, 409, 412],
                };
                let kind =
                    Kind::new("update", format!("Update: {}", what.name), statuses).headers(CHANGE);
                kind.sends(forms(what)).gives(forms(what)).query(of_forms(
                    what,
                    &["templateId", "format", "dialect", "strict"],
                ))
            }
            Operation::Delete(what) => Kind::new(
                "delete",
                format!("Delete, logically: {}", what.name),
                &[204, 400, 404, 409, 412],
            )
            .headers(CHANGE),
            Operation::Versioned(what, part) => {
                let part = match part {
                    Part::Container => "container",
                    Part::History => "revision history",
                    Part::AtTime => "version at a time",
                    Part::Version => "version",
                };
                Kind::new(
                    "versioned",
                    format!("The {part}: {}", what.name),
                    &[200, 304, 404, 406],
                )
                .query(&["version_at_time"])
                .headers(CACHED)
                .gives(RM)
            }
            Operation::Read(what) => Kind::new(
                "read",
                format!("Read: {}", what.name),
                &[200, 204, 304, 400, 404, 406],
            )
            .query(match what.kind {
                ObjectKind::Composition => &["version_at_time", "format", "dialect"],
                _ if what.single => &["version_at_time", "path"],
                _ => &["version_at_time"],
            })
            .headers(CACHED)
            .gives(forms(what)),
            _ => Kind::new("", "", &[]),
        }
    }

    fn of_tags(operation: Operation) -> Kind {
        match operation {
            Operation::TagsPut(_) => Kind::new(
                "tags put",
                "Replace the item tags",
                &[200, 204, 400, 404, 406, 409, 412],
            )
            .headers(&["Prefer", "If-Match"])
            .sends(JSON)
            .gives(JSON),
            Operation::TagsDelete(_) => {
                Kind::new("tags delete", "Remove an item tag", &[204, 404, 409, 412])
                    .headers(&["If-Match"])
            }
            Operation::TagsGet(_) => Kind::new("tags", "Item tags", &[200, 304, 404, 406])
                .headers(CACHED)
                .gives(JSON),
            _ => Kind::new(
                "tags list",
                "Item tags of an EHR, or of all parties",
                &[200, 404, 406],
            )
            .gives(JSON),
        }
    }

    fn of_queries(route: &Route) -> Kind {
        let sends = if route.method == "POST" { JSON } else { NONE };
        match route.operation {
            Operation::QueryList => Kind::new(
                "query list",
                "List stored queries by a prefix of their names",
                &[200, 406],
            )
            .gives(JSON),
            Operation::QueryStore => {
                Kind::new("query store", "Store a query", &[200, 400, 409, 412])
                    .query(&["type"])
                    .headers(&["Prefer", "If-Match"])
                    .sends(TEXT)
                    .gives(JSON)
            }
            Operation::QueryDetail => {
                Kind::new("query detail", "A stored query", &[200, 304, 404, 406])
                    .headers(CACHED)
                    .gives(JSON)
            }
            Operation::QueryAdHoc => Kind::new(
                "query",
                "Execute AQL",
                &[200, 304, 400, 404, 406, 408, 410, 422, 501],
            )
            .query(&[
                "q",
                "ehr_id",
                "offset",
                "fetch",
                "snapshot",
                "query_parameters",
            ])
            .headers(ASKED)
            .sends(sends)
            .gives(TABLE),
            Operation::QueryExplain => Kind::new(
                "explain",
                "Explain AQL: each compilation step, and the data that its run reads",
                &[200, 400, 404, 406],
            )
            .query(&["q", "ehr_id", "query_parameters"])
            .headers(&["openEHR-EHR-id"])
            .sends(sends)
            .gives(JSON),
            _ => Kind::new(
                "query",
                "Execute a stored query",
                &[200, 304, 400, 404, 406, 408, 410, 422, 501],
            )
            .query(&["ehr_id", "offset", "fetch", "snapshot", "query_parameters"])
            .headers(ASKED)
            .sends(sends)
            .gives(TABLE),
        }
    }

    /// Describes the operations on EHRs and contributions.
    fn of_records(operation: Operation) -> Option<Kind> {
        let kind = match operation {
            Operation::EhrCreate | Operation::EhrCreateWithId => {
                Kind::new("ehr create", "Create an EHR", &[201, 400, 406, 409])
                    .headers(COMMITTAL)
                    .sends(RM)
                    .gives(RM)
            }
            Operation::EhrBySubject => Kind::new(
                "ehr by subject",
                "The EHR of a subject; without one, all EHRs page by page",
                &[200, 304, 400, 404, 406],
            )
            .query(&["subject_id", "subject_namespace", "after", "fetch"])
            .headers(CACHED)
            .gives(RM),
            Operation::EhrGet => Kind::new("ehr", "An EHR", &[200, 304, 404, 406])
                .headers(CACHED)
                .gives(RM),
            Operation::ContributionCreate => Kind::new(
                "contribution create",
                "Commit a CONTRIBUTION, all or nothing",
                &[201, 400, 404, 406, 409, 412],
            )
            .headers(COMMITTAL)
            .sends(RM)
            .gives(RM),
            Operation::ContributionList => Kind::new(
                "contributions",
                "The CONTRIBUTIONs of an EHR, oldest first",
                &[200, 400, 404, 406],
            )
            .query(&["after", "fetch"])
            .gives(JSON),
            Operation::ContributionGet => {
                Kind::new("contribution", "A CONTRIBUTION", &[200, 304, 404, 406])
                    .headers(CACHED)
                    .gives(RM)
            }
            _ => return None,
        };
        Some(kind)
    }

    /// Describes the operations on templates.
    fn of_templates(operation: Operation) -> Option<Kind> {
        let kind = match operation {
            Operation::TemplateUpload => Kind::new(
                "template upload",
                "Upload an operational template",
                &[201, 400, 409],
            )
            .query(&["type", "version"])
            .headers(&["Prefer"])
            .sends(XML)
            .gives(&["application/xml", "text/plain", "application/json"]),
            Operation::TemplateList => Kind::new("template list", "List templates", &[200, 406])
                .query(&["type"])
                .gives(JSON),
            Operation::TemplateVersions => Kind::new(
                "template versions",
                "Versions of a template, or the latest as XML or web template",
                &[200, 404, 406],
            )
            .query(&["type"])
            .gives(&[
                "application/json",
                "application/xml",
                "text/plain",
                WEB_TEMPLATE,
            ]),
            Operation::TemplateGet => Kind::new(
                "template",
                "A template, byte for byte",
                &[200, 304, 404, 406],
            )
            .query(&["type"])
            .headers(CACHED)
            .gives(&[
                "application/xml",
                "text/plain",
                WEB_TEMPLATE,
                "application/json",
            ]),
            Operation::TemplateExample => Kind::new(
                "template example",
                "A document that fits a template",
                &[200, 400, 404, 406],
            )
            .query(&["kind", "detail_level", "language", "format", "dialect"])
            .gives(FORMS),
            Operation::TemplateWeb => Kind::new(
                "web template",
                "A template as a web template",
                &[200, 304, 404, 406],
            )
            .query(&["type"])
            .headers(CACHED)
            .gives(&[WEB_TEMPLATE, "application/json"]),
            _ => return None,
        };
        Some(kind)
    }

    /// Describes the operations on guides and CDS Hooks.
    fn of_guides(operation: Operation) -> Option<Kind> {
        let kind = match operation {
            Operation::GuideUpload => Kind::new("guide upload", "Upload a guide", &[201, 400, 409])
                .headers(&["Prefer"])
                .sends(TEXT)
                .gives(JSON),
            Operation::GuideList => Kind::new("guide list", "List guides", &[200, 406]).gives(JSON),
            Operation::GuideGet => Kind::new("guide", "A guide as sent", &[200, 304, 404, 406])
                .headers(CACHED)
                .gives(TEXT),
            Operation::GuideRun => Kind::new(
                "guide run",
                "Execute a guide on one EHR",
                &[200, 400, 404, 406],
            )
            .query(&["now", "zone", "language", "trace", "convert_units"])
            .gives(JSON),
            Operation::GuideRunOn => Kind::new(
                "guide run on",
                "Execute a guide on EHRs",
                &[200, 400, 404, 406],
            )
            .query(&[
                "now",
                "zone",
                "language",
                "trace",
                "convert_units",
                "guide_id",
            ])
            .sends(&["application/json", "application/x-ndjson"])
            .gives(&["application/json", "application/x-ndjson"]),
            Operation::CdsDiscovery => Kind::new(
                "cds discovery",
                "Guides as services of CDS Hooks 2.0",
                &[200, 406],
            )
            .gives(JSON),
            Operation::CdsCall => Kind::new(
                "cds call",
                "Execute a guide as a service of CDS Hooks 2.0",
                &[200, 400, 404, 406, 409],
            )
            .query(&["subject_namespace", "now", "zone", "language"])
            .sends(JSON)
            .gives(JSON),
            _ => return None,
        };
        Some(kind)
    }

    /// Describes the operations on value sets.
    fn of_value_sets(operation: Operation) -> Option<Kind> {
        let kind = match operation {
            Operation::ValueSetStore => Kind::new(
                "value set store",
                "Store a value set",
                &[201, 204, 400, 412],
            )
            .headers(&["If-Match"])
            .sends(JSON),
            Operation::ValueSetList => {
                Kind::new("value set list", "List value sets", &[200, 406]).gives(JSON)
            }
            Operation::ValueSetGet => Kind::new("value set", "A value set", &[200, 304, 404, 406])
                .headers(CACHED)
                .gives(JSON),
            Operation::ValueSetDelete => {
                Kind::new("value set delete", "Remove a value set", &[204, 404, 412])
                    .headers(&["If-Match"])
            }
            _ => return None,
        };
        Some(kind)
    }

    /// Describes the operations on bulk loads, export and import.
    fn of_transfers(operation: Operation) -> Option<Kind> {
        let kind = match operation {
            Operation::Bulk => {
                Kind::new("bulk", "Commit many change sets, a line each", &[200, 400])
                    .query(&["first"])
                    .headers(BULK)
                    .sends(NDJSON)
                    .gives(NDJSON)
            }
            Operation::Export => Kind::new(
                "export",
                "Export all data, or one EHR, page by page",
                &[200, 400, 404],
            )
            .query(&["limit", "after", "ehr_id"])
            .gives(NDJSON),
            Operation::Import => Kind::new("import", "Import an export", &[200, 400])
                .query(&["first", "findings"])
                .sends(NDJSON)
                .gives(NDJSON),
            Operation::AdminLoad => {
                Kind::new("load", "Load versions under fixed ids", &[200, 400, 409])
                    .sends(&["application/json", "application/x-ndjson"])
                    .gives(JSON)
            }
            _ => return None,
        };
        Some(kind)
    }

    /// Describes the operations on administration.
    fn of_administration(operation: Operation) -> Option<Kind> {
        let kind = match operation {
            Operation::AdminReset => {
                Kind::new("reset", "Remove everything but the access log", &[204])
            }
            Operation::AdminDeleteEhr => {
                Kind::new("delete ehr", "Remove an EHR physically", &[204, 400, 404])
            }
            Operation::AdminDeleteDefinition(_) => Kind::new(
                "delete definition",
                "Remove a definition, and count the removed versions",
                &[200, 404, 409, 422],
            )
            .gives(JSON),
            Operation::AdminDeleteObject(_) => Kind::new(
                "delete object",
                "Remove a versioned object physically",
                &[204, 404],
            ),
            Operation::AccessLog => Kind::new("access log", "The access log", &[200, 400, 406])
                .query(&["from", "to", "ehr_id", "who", "after", "fetch"])
                .gives(JSON),
            _ => return None,
        };
        Some(kind)
    }
}

/// Returns the forms of a document.
fn forms(what: &Controlled) -> &'static [&'static str] {
    if what.kind == ObjectKind::Composition {
        FORMS
    } else {
        RM
    }
}

/// Returns the parameters of documents that have simplified forms.
fn of_forms(what: &Controlled, parameters: &'static [&'static str]) -> &'static [&'static str] {
    if what.kind == ObjectKind::Composition {
        parameters
    } else {
        NONE
    }
}

/// Returns the document: OpenAPI 3.0.
pub fn openapi() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let path = paths
            .entry(format!("/{}", route.pattern))
            .or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(route.method.to_ascii_lowercase(), operation(route));
        }
    }
    let open = |summary: &str| json!({ "servers": [{ "url": "/" }], "get": { "summary": summary, "tags": ["service"], "security": [], "responses": { "200": { "description": "OK" } } } });
    paths.insert(String::from("/health"), open("Is the service there?"));
    paths.insert(String::from("/rest/status"), open("Name and version"));
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "aqlite",
            "version": VERSION,
            "description": "An openEHR clinical data repository. Both servers are one repository: the first speaks the dialect of the service specification, the second that of openEHR ITS-REST.",
        },
        "servers": [{ "url": "/v1" }, { "url": "/rest/openehr/v1" }],
        "security": [{ "bearer": [] }, { "access": [] }, { "basic": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
                "access": { "type": "apiKey", "in": "header", "name": "Cf-Access-Jwt-Assertion" },
                "basic": { "type": "http", "scheme": "basic", "description": "for development" },
            },
            "responses": { "Error": { "description": "what is wrong, where, and what helps", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } } },
            "schemas": schema::schemas(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let (kind, bodies) = (Kind::of(route), Bodies::of(route.operation));
    let names: Vec<&str> = route
        .pattern
        .split('/')
        .map(|part| part.trim_matches(['{', '}']))
        .collect();
    let in_path = route
        .pattern
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let parameter = |place: &str, name: &str| json!({ "name": name, "in": place, "required": is_required(route, name), "schema": schema_of(name) });
    let in_query = kind.query.iter().map(|name| parameter("query", name));
    let in_headers = kind.headers.iter().map(|name| parameter("header", name));
    let mut said = json!({
        "operationId": format!("{}_{}", route.method.to_ascii_lowercase(), names.join("_")),
        "summary": kind.summary,
        "tags": names.first(),
        "parameters": in_path.chain(in_query).chain(in_headers).collect::<Value>(),
        "responses": responses(&kind, &bodies.answers, route.method),
        "x-kind": kind.name,
        "x-roles": route.permission.roles(),
        "x-scope": format!("{}-*.{}", route.permission.word(), route.permission.letter()),
    });
    if let (Some(members), Some(first)) = (said.as_object_mut(), names.first()) {
        members.insert(String::from("tags"), json!([first]));
        if !kind.sends.is_empty() {
            members.insert(
                String::from("requestBody"),
                request_body(&kind, &bodies.takes),
            );
        }
    }
    said
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
        "offset" | "fetch" | "first" | "limit" => json!({ "type": "integer", "minimum": 0 }),
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

fn responses(kind: &Kind, answers: &[String], method: &str) -> Map<String, Value> {
    // A body is checked even if the operation needs none.
    let of_bodies = OF_BODIES.iter().filter(|_| method != "GET");
    let mut statuses: Vec<u16> = kind
        .statuses
        .iter()
        .chain(&OF_ACCESS)
        .chain(of_bodies)
        .copied()
        .collect();
    order::sort(&mut statuses);
    let response = |status: u16| match status {
        200 | 201 if !kind.gives.is_empty() => {
            json!({ "description": super::error::reason(status), "content": content(kind.gives, answers) })
        }
        200..400 => json!({ "description": super::error::reason(status) }),
        _ => json!({ "$ref": "#/components/responses/Error" }),
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
