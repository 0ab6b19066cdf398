//! The headers of responses.

use serde_json::{Map, Value, json};

/// Headers with which a resource is read.
const OF_READS: &[&str] = &["ETag", "Last-Modified"];
/// Headers of a response to a change.
const OF_CHANGES: &[&str] = &["ETag", "Last-Modified", "Location", "Preference-Applied"];
/// Headers of a result set.
const OF_RESULTS: &[&str] = &[
    "ETag",
    "Last-Modified",
    "Aqlite-Snapshot",
    "Content-Disposition",
];

/// The headers of successful responses, by the kind of the operation. Kinds without an entry have
/// none.
const OF_KINDS: &[(&str, &[&[&str]])] = &[
    (
        "create",
        &[
            OF_CHANGES,
            &[
                "openehr-uri",
                "openehr-template-id",
                "openehr-item-tag",
                "openehr-version-item-tag",
            ],
        ],
    ),
    (
        "update",
        &[OF_CHANGES, &["openehr-template-id", "openehr-item-tag"]],
    ),
    ("delete", &[OF_READS, &["Location"]]),
    (
        "read",
        &[
            OF_READS,
            &[
                "Preference-Applied",
                "Warning",
                "openehr-template-id",
                "openehr-item-tag",
                "openehr-version-item-tag",
            ],
        ],
    ),
    ("versioned", &[OF_READS]),
    ("tags", &[&["ETag"]]),
    ("tags put", &[&["ETag", "Location", "Preference-Applied"]]),
    ("ehr create", &[OF_CHANGES, &["openehr-uri"]]),
    ("ehr by subject", &[OF_READS, &["Link"]]),
    ("ehr", &[OF_READS, &["Preference-Applied"]]),
    ("contribution create", &[OF_CHANGES, &["openehr-uri"]]),
    ("contribution", &[OF_READS, &["Preference-Applied"]]),
    ("contributions", &[&["Link"]]),
    ("query", &[OF_RESULTS]),
    ("query store", &[OF_CHANGES]),
    ("query detail", &[OF_READS]),
    ("template upload", &[OF_CHANGES]),
    ("template versions", &[OF_READS]),
    ("template", &[OF_READS]),
    ("web template", &[OF_READS]),
    ("guide upload", &[OF_CHANGES]),
    ("guide", &[OF_READS]),
    ("value set store", &[OF_CHANGES]),
    ("value set", &[OF_READS]),
];

/// The headers with their meaning.
const MEANINGS: &[(&str, &str)] = &[
    (
        "Accept-Encoding",
        "The encodings in which a body may be sent.",
    ),
    (
        "Aqlite-Snapshot",
        "The state that was read: send it as `snapshot` with the requests for the other pages.",
    ),
    (
        "Content-Disposition",
        "A name for the file of a result that is no JSON.",
    ),
    (
        "ETag",
        "The version of the resource in quotation marks, for If-Match and If-None-Match.",
    ),
    ("Last-Modified", "The time of the commit."),
    (
        "Link",
        "The next page of a list (`rel=\"next\"`), if there is one.",
    ),
    (
        "Location",
        "The URL of the resource, or of its latest version.",
    ),
    (
        "Preference-Applied",
        "The preference of the header Prefer that was followed.",
    ),
    (
        "Retry-After",
        "The number of seconds after which the request may be sent again.",
    ),
    (
        "WWW-Authenticate",
        "The way in which a caller can authenticate.",
    ),
    (
        "Warning",
        "Parts of the document that the requested format cannot express.",
    ),
    ("openehr-item-tag", "The tags of the object."),
    (
        "openehr-template-id",
        "The id of the template of the composition.",
    ),
    ("openehr-uri", "The EHR URI of the resource."),
    ("openehr-version-item-tag", "The tags of the version."),
];

/// Returns the headers of all responses, for `components`.
pub(super) fn components() -> Map<String, Value> {
    let described = MEANINGS.iter().map(|(name, meaning)| {
        let schema = json!({ "description": meaning, "schema": { "type": "string" } });
        ((*name).to_owned(), schema)
    });
    described.collect()
}

/// Returns the headers of the responses of a kind with a status below 400.
pub(super) fn of(kind: &str, status: u16) -> Map<String, Value> {
    let known = OF_KINDS.iter().find(|(name, _)| *name == kind);
    let names = known.into_iter().flat_map(|(_, lists)| lists.iter());
    let names = names.flat_map(|list| list.iter().copied());
    // A result set that has not changed is confirmed by its entity tag alone.
    let confirmed = match kind {
        "query" => &["ETag"],
        _ => OF_READS,
    };
    named(names.filter(|name| status != 304 || confirmed.contains(name)))
}

/// Returns references to headers.
pub(super) fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Map<String, Value> {
    let reference = |name: &str| json!({ "$ref": format!("#/components/headers/{name}") });
    names
        .into_iter()
        .map(|name| (name.to_owned(), reference(name)))
        .collect()
}
