//! The kinds of operations: summaries, parameters, media types and statuses.

use super::super::document_class::Controlled;
use super::super::negotiate::{FLAT, FLAT_OLD, RESULT_TYPES, STRUCTURED, STRUCTURED_OLD};
use super::super::route::{Operation, Part, Route};
use super::super::template::WEB_TEMPLATE;
use crate::document::ObjectKind;

/// The description of all routes with one kind of operation, in addition to the table of routes.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// Its name. The statuses are those of all routes with this name.
    pub name: &'static str,
    summary: &'static str,
    /// The class of the documents, for operations on documents.
    of: Option<&'static str>,
    /// Parameters of the query string.
    pub query: &'static [&'static str],
    /// Request headers.
    pub headers: &'static [&'static str],
    /// Media types of the body; the first is the usual one.
    pub sends: &'static [&'static str],
    /// Media types of the response.
    pub gives: &'static [&'static str],
    /// Statuses of this kind, without those of every request, of access control and of bodies.
    pub statuses: &'static [u16],
}

const JSON: &[&str] = &["application/json"];
/// Media types of a document of the Reference Model.
const RM: &[&str] = &["application/json", "application/xml"];
/// Media types of a COMPOSITION.
const FORMS: &[&str] = &[
    "application/json",
    "application/xml",
    FLAT,
    STRUCTURED,
    FLAT_OLD,
    STRUCTURED_OLD,
];
/// Media types of an operational template of ADL 1.4 or 2.
const XML: &[&str] = &["application/xml", "text/plain"];
/// Media types of a query or a guide.
const TEXT: &[&str] = &["application/json", "text/plain"];
const NDJSON: &[&str] = &["application/x-ndjson"];
/// The media types of no body.
const NONE: &[&str] = &[];
/// Headers of a creation.
const COMMITTAL: &[&str] = &[
    "Prefer",
    "openEHR-VERSION.lifecycle_state",
    "openEHR-AUDIT_DETAILS.change_type",
    "openEHR-AUDIT_DETAILS.description",
    "openEHR-AUDIT_DETAILS.committer",
];
/// Headers of a creation under an id that the path names.
const COMMITTAL_AT_ID: &[&str] = &[
    "If-Match",
    "If-None-Match",
    "Prefer",
    "openEHR-VERSION.lifecycle_state",
    "openEHR-AUDIT_DETAILS.change_type",
    "openEHR-AUDIT_DETAILS.description",
    "openEHR-AUDIT_DETAILS.committer",
];
/// Headers of a load of versions.
const LOAD: &[&str] = &[
    "openEHR-VERSION.lifecycle_state",
    "openEHR-AUDIT_DETAILS.change_type",
    "openEHR-AUDIT_DETAILS.description",
    "openEHR-AUDIT_DETAILS.committer",
];
/// Headers of a bulk load.
const BULK: &[&str] = &[
    "Idempotency-Key",
    "openEHR-VERSION.lifecycle_state",
    "openEHR-AUDIT_DETAILS.change_type",
    "openEHR-AUDIT_DETAILS.description",
    "openEHR-AUDIT_DETAILS.committer",
];
/// Headers of an update and a deletion.
const CHANGE: &[&str] = &[
    "If-Match",
    "Prefer",
    "openEHR-VERSION.lifecycle_state",
    "openEHR-AUDIT_DETAILS.change_type",
    "openEHR-AUDIT_DETAILS.description",
    "openEHR-AUDIT_DETAILS.committer",
];
/// Headers of a change whose preconditions are optional.
const CONDITIONAL: &[&str] = &["If-Match", "If-None-Match"];
/// Headers of a read with an entity tag.
const CACHED: &[&str] = &["If-None-Match"];
/// Headers of a query.
const ASKED: &[&str] = &["openEHR-EHR-id", "If-None-Match"];

impl Kind {
    const fn new(name: &'static str, summary: &'static str, statuses: &'static [u16]) -> Kind {
        Kind {
            name,
            summary,
            of: None,
            query: NONE,
            headers: NONE,
            sends: NONE,
            gives: NONE,
            statuses,
        }
    }

    const fn query(self, query: &'static [&'static str]) -> Kind {
        Kind { query, ..self }
    }

    const fn headers(self, headers: &'static [&'static str]) -> Kind {
        Kind { headers, ..self }
    }

    const fn sends(self, sends: &'static [&'static str]) -> Kind {
        Kind { sends, ..self }
    }

    const fn gives(self, gives: &'static [&'static str]) -> Kind {
        Kind { gives, ..self }
    }

    /// Returns the kind of a route. A route with GET has no body, also if the same operation has
    /// one with POST.
    pub(super) fn of(route: &Route) -> Kind {
        let kind = match route.operation {
            Operation::Create(what) => Kind::create(what),
            Operation::Read(what) => Kind::read(what),
            Operation::Update(what) => Kind::update(what),
            Operation::Delete(what) => Kind::delete(what),
            Operation::Versioned(what, part) => Kind::versioned(what, part),
            Operation::TagsGet(_) => TAGS_GET,
            Operation::TagsPut(_) => TAGS_PUT,
            Operation::TagsDelete(_) => TAGS_DELETE,
            Operation::AdminDeleteDefinition(_) => DELETE_DEFINITION,
            Operation::AdminDeleteObject(_) => DELETE_OBJECT,
            operation => KINDS
                .iter()
                .find(|(known, _)| *known == operation)
                .map_or(Kind::new("", "", &[]), |(_, kind)| *kind),
        };
        match route.method {
            "GET" => kind.sends(NONE),
            _ => kind,
        }
    }

    /// Returns the summary with the class of the documents.
    pub(super) fn summary(&self) -> String {
        match self.of {
            Some(class) => format!("{}: {class}", self.summary),
            None => self.summary.to_owned(),
        }
    }

    fn create(what: &'static Controlled) -> Kind {
        let statuses: &[u16] = match what.kind {
            ObjectKind::Composition | ObjectKind::Party => &[201, 404, 406, 409, 412, 422],
            _ => &[201, 404, 406, 409, 412],
        };
        Kind::new("create", "Create", statuses)
            .headers(COMMITTAL)
            .with_document(what)
    }

    fn update(what: &'static Controlled) -> Kind {
        let statuses: &[u16] = match what.kind {
            ObjectKind::Composition | ObjectKind::Party => &[200, 204, 404, 406, 409, 412, 422],
            _ => &[200, 204, 404, 406, 409, 412],
        };
        Kind::new("update", "Update", statuses)
            .headers(CHANGE)
            .with_document(what)
    }

    /// Adds the forms of a document that is sent and returned.
    fn with_document(self, what: &'static Controlled) -> Kind {
        let parameters: &[&str] = match what.kind {
            ObjectKind::Composition => &["templateId", "format", "dialect", "strict"],
            _ => NONE,
        };
        self.about(what)
            .sends(forms(what))
            .gives(forms(what))
            .query(parameters)
    }

    fn about(self, what: &'static Controlled) -> Kind {
        Kind {
            of: Some(what.name),
            ..self
        }
    }

    fn delete(what: &'static Controlled) -> Kind {
        Kind::new("delete", "Delete, logically", &[204, 404, 409, 412])
            .about(what)
            .headers(CHANGE)
    }

    fn read(what: &'static Controlled) -> Kind {
        let parameters: &[&str] = match what.kind {
            ObjectKind::Composition => &["version_at_time", "format", "dialect"],
            _ if what.single => &["version_at_time", "path"],
            _ => &["version_at_time"],
        };
        Kind::new("read", "Read", &[200, 204, 304, 404, 406])
            .about(what)
            .query(parameters)
            .headers(CACHED)
            .gives(forms(what))
    }

    fn versioned(what: &'static Controlled, part: Part) -> Kind {
        let summary = match part {
            Part::Container => "The container",
            Part::History => "The revision history",
            Part::AtTime => "The version at a time",
            Part::Version => "The version",
        };
        Kind::new("versioned", summary, &[200, 304, 404, 406])
            .about(what)
            .query(&["version_at_time"])
            .headers(CACHED)
            .gives(RM)
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

const TAGS_GET: Kind = Kind::new("tags", "Item tags", &[200, 304, 404, 406])
    .headers(CACHED)
    .gives(JSON);
const TAGS_PUT: Kind = Kind::new(
    "tags put",
    "Replace the item tags",
    &[200, 204, 404, 406, 409, 412],
)
.headers(&["Prefer", "If-Match", "If-None-Match"])
.sends(JSON)
.gives(JSON);
const TAGS_DELETE: Kind =
    Kind::new("tags delete", "Remove an item tag", &[204, 404, 409, 412]).headers(CONDITIONAL);
const DELETE_DEFINITION: Kind = Kind::new(
    "delete definition",
    "Remove a definition, and count the removed versions",
    &[200, 404, 406, 409, 412, 422],
)
.headers(CONDITIONAL)
.gives(JSON);
const DELETE_OBJECT: Kind = Kind::new(
    "delete object",
    "Remove a versioned object physically",
    &[204, 404, 412],
)
.headers(CONDITIONAL);

/// The kinds of the operations without a document class.
const KINDS: &[(Operation, Kind)] = &[
    // Item tags.
    (
        Operation::TagsList,
        Kind::new(
            "tags list",
            "Item tags of an EHR, or of all parties",
            &[200, 404, 406],
        )
        .gives(JSON),
    ),
    // Stored queries and the execution of queries.
    (
        Operation::QueryList,
        Kind::new(
            "query list",
            "List stored queries by a prefix of their names",
            &[200, 406],
        )
        .gives(JSON),
    ),
    (
        Operation::QueryStore,
        Kind::new("query store", "Store a query", &[200, 406, 409, 412])
            .query(&["type"])
            .headers(&["Prefer", "If-Match", "If-None-Match"])
            .sends(TEXT)
            .gives(JSON),
    ),
    (
        Operation::QueryDetail,
        Kind::new("query detail", "A stored query", &[200, 304, 404, 406])
            .headers(CACHED)
            .gives(JSON),
    ),
    (
        Operation::QueryAdHoc,
        Kind::new(
            "query",
            "Execute AQL",
            &[200, 304, 404, 406, 408, 410, 422, 501],
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
        .sends(JSON)
        .gives(RESULT_TYPES),
    ),
    (
        Operation::QueryExplain,
        Kind::new(
            "explain",
            "Explain AQL: each compilation step, and the data that its run reads",
            &[200, 404, 406],
        )
        .query(&["q", "ehr_id", "query_parameters"])
        .headers(&["openEHR-EHR-id"])
        .sends(JSON)
        .gives(JSON),
    ),
    (
        Operation::QueryStored,
        Kind::new(
            "query",
            "Execute a stored query",
            &[200, 304, 404, 406, 408, 410, 422, 501],
        )
        .query(&["ehr_id", "offset", "fetch", "snapshot", "query_parameters"])
        .headers(ASKED)
        .sends(JSON)
        .gives(RESULT_TYPES),
    ),
    // EHRs and contributions.
    (
        Operation::EhrCreate,
        Kind::new("ehr create", "Create an EHR", &[201, 406, 409])
            .headers(COMMITTAL)
            .sends(RM)
            .gives(RM),
    ),
    (
        Operation::EhrCreateWithId,
        Kind::new("ehr create", "Create an EHR", &[201, 406, 409, 412])
            .headers(COMMITTAL_AT_ID)
            .sends(RM)
            .gives(RM),
    ),
    (
        Operation::EhrBySubject,
        Kind::new(
            "ehr by subject",
            "The EHR of a subject; without one, all EHRs page by page",
            &[200, 404, 406],
        )
        .query(&["subject_id", "subject_namespace", "after", "fetch"])
        .gives(RM),
    ),
    (
        Operation::EhrGet,
        Kind::new("ehr", "An EHR", &[200, 404, 406]).gives(RM),
    ),
    (
        Operation::ContributionCreate,
        Kind::new(
            "contribution create",
            "Commit a CONTRIBUTION, all or nothing",
            &[201, 404, 406, 409, 412],
        )
        .headers(COMMITTAL)
        .sends(RM)
        .gives(RM),
    ),
    (
        Operation::ContributionList,
        Kind::new(
            "contributions",
            "The CONTRIBUTIONs of an EHR, oldest first",
            &[200, 404, 406],
        )
        .query(&["after", "fetch"])
        .gives(JSON),
    ),
    (
        Operation::ContributionGet,
        Kind::new("contribution", "A CONTRIBUTION", &[200, 304, 404, 406])
            .headers(CACHED)
            .gives(RM),
    ),
    // Templates.
    (
        Operation::TemplateUpload,
        Kind::new(
            "template upload",
            "Upload an operational template",
            &[201, 406, 409, 412],
        )
        .query(&["type", "version"])
        .headers(&["Prefer", "If-Match", "If-None-Match"])
        .sends(XML)
        .gives(&[
            "application/xml",
            "text/plain",
            WEB_TEMPLATE,
            "application/json",
        ]),
    ),
    (
        Operation::TemplateList,
        Kind::new("template list", "List templates", &[200, 406])
            .query(&["type"])
            .gives(JSON),
    ),
    (
        Operation::TemplateVersions,
        Kind::new(
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
    ),
    (
        Operation::TemplateGet,
        Kind::new(
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
    ),
    (
        Operation::TemplateExample,
        Kind::new(
            "template example",
            "A document that fits a template",
            &[200, 404, 406],
        )
        .query(&[
            "kind",
            "detail_level",
            "type",
            "language",
            "format",
            "dialect",
        ])
        .gives(FORMS),
    ),
    (
        Operation::TemplateWeb,
        Kind::new(
            "web template",
            "A template as a web template",
            &[200, 304, 404, 406],
        )
        .query(&["type"])
        .headers(CACHED)
        .gives(&[WEB_TEMPLATE, "application/json"]),
    ),
    // Guides and CDS Hooks.
    (
        Operation::GuideUpload,
        Kind::new("guide upload", "Upload a guide", &[201, 406, 409, 412])
            .headers(&["Prefer", "If-Match", "If-None-Match"])
            .sends(TEXT)
            .gives(JSON),
    ),
    (
        Operation::GuideList,
        Kind::new("guide list", "List guides", &[200, 406]).gives(JSON),
    ),
    (
        Operation::GuideGet,
        Kind::new("guide", "A guide as sent", &[200, 304, 404, 406])
            .headers(CACHED)
            .gives(TEXT),
    ),
    (
        Operation::GuideRun,
        Kind::new("guide run", "Execute a guide on one EHR", &[200, 404, 406])
            .query(&["now", "zone", "language", "trace", "convert_units"])
            .gives(JSON),
    ),
    (
        Operation::GuideRunOn,
        Kind::new("guide run on", "Execute a guide on EHRs", &[200, 404, 406])
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
    ),
    (
        Operation::CdsDiscovery,
        Kind::new(
            "cds discovery",
            "Guides as services of CDS Hooks 2.0",
            &[200, 406],
        )
        .gives(JSON),
    ),
    (
        Operation::CdsCall,
        Kind::new(
            "cds call",
            "Execute a guide as a service of CDS Hooks 2.0",
            &[200, 404, 406, 409],
        )
        .query(&["subject_namespace", "now", "zone", "language"])
        .sends(JSON)
        .gives(JSON),
    ),
    // Value sets.
    (
        Operation::ValueSetStore,
        Kind::new(
            "value set store",
            "Store a value set",
            &[200, 201, 204, 406, 412],
        )
        .headers(&["Prefer", "If-Match", "If-None-Match"])
        .sends(JSON)
        .gives(JSON),
    ),
    (
        Operation::ValueSetList,
        Kind::new("value set list", "List value sets", &[200, 406]).gives(JSON),
    ),
    (
        Operation::ValueSetGet,
        Kind::new("value set", "A value set", &[200, 304, 404, 406])
            .headers(CACHED)
            .gives(JSON),
    ),
    (
        Operation::ValueSetDelete,
        Kind::new("value set delete", "Remove a value set", &[204, 404, 412]).headers(CONDITIONAL),
    ),
    // Bulk loads, export and import.
    (
        Operation::Bulk,
        Kind::new("bulk", "Commit many change sets, a line each", &[200, 406])
            .query(&["first"])
            .headers(BULK)
            .sends(NDJSON)
            .gives(NDJSON),
    ),
    (
        Operation::Export,
        Kind::new(
            "export",
            "Export all data, or one EHR, page by page",
            &[200, 404, 406],
        )
        .query(&["limit", "after", "ehr_id"])
        .gives(NDJSON),
    ),
    (
        Operation::Import,
        Kind::new("import", "Import an export", &[200, 406])
            .query(&["first", "findings"])
            .sends(NDJSON)
            .gives(NDJSON),
    ),
    (
        Operation::AdminLoad,
        Kind::new("load", "Load versions under fixed ids", &[200, 406, 409])
            .headers(LOAD)
            .sends(&["application/json", "application/x-ndjson"])
            .gives(JSON),
    ),
    // Administration.
    (
        Operation::AdminReset,
        Kind::new("reset", "Remove everything but the access log", &[204, 412])
            .headers(CONDITIONAL),
    ),
    (
        Operation::AdminDeleteEhr,
        Kind::new("delete ehr", "Remove an EHR physically", &[204, 404, 412]).headers(CONDITIONAL),
    ),
    (
        Operation::AccessLog,
        Kind::new("access log", "The access log", &[200, 406])
            .query(&["from", "to", "ehr_id", "who", "after", "fetch"])
            .gives(JSON),
    ),
];
