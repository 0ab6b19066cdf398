//! Databases that were altered outside the repository, or damaged. Every read of an altered record
//! is refused by an error that names the record and reveals none of its content. All other requests
//! are answered as before.

use crate::sqlite::Sqlite;
use crate::upgrade::{Host, fixtures, text, upgraded};
use aqlite::service::{Request, Response};
use serde_json::Value;
use std::collections::BTreeMap;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const OTHER: &str = "7d44b88c-4199-4bad-97dc-d78268e01398";
/// A value that only the second version contains.
const SECRET: &str = "74.25";

/// A repository with two versions of a weight, a long document, and the weight of another patient.
struct Ward {
    database: Sqlite,
    /// The read requests by name.
    requests: BTreeMap<&'static str, Request>,
}

impl Ward {
    fn new() -> Ward {
        let database = Sqlite::in_memory();
        let mut host = Host::over(&database);
        let (json, weight) = ("application/json", text("rest/weight.json"));
        host.made(
            "POST",
            "definition/template/adl1.4",
            "application/xml",
            &text("template/small.opt"),
            "",
        );
        host.made("PUT", &format!("ehr/{EHR}"), json, "", "");
        host.made("PUT", &format!("ehr/{OTHER}"), json, "", "");
        let first = host.made("POST", &format!("ehr/{EHR}/composition"), json, &weight, "");
        let object = first.split("::").next().unwrap().to_owned();
        let second = host.made(
            "PUT",
            &format!("ehr/{EHR}/composition/{object}"),
            json,
            &weight.replace("72.50", SECRET),
            &first,
        );
        let long = weight.replace("Nurse Berg", &format!("Nurse {}", "Berg".repeat(300_000)));
        let long = host.made("POST", &format!("ehr/{EHR}/composition"), json, &long, "");
        host.made(
            "POST",
            &format!("ehr/{OTHER}/composition"),
            json,
            &weight,
            "",
        );
        let [changed] = &database.texts("SELECT c.uid FROM contribution c JOIN version v ON v.contribution = c.id WHERE v.number = 2")[..] else {
            panic!("one change set")
        };
        let get = |path: &str| Request::new("GET", &format!("/rest/openehr/v1/{path}"));
        let query =
            |q: &str, ehr: &str| get(&format!("query/aql?q={}{ehr}", q.replace(' ', "%20")));
        let of_ehr = format!("&ehr_id={EHR}");
        let weights = "SELECT o/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude FROM EHR e CONTAINS OBSERVATION o";
        let requests = BTreeMap::from([
            ("first", get(&format!("ehr/{EHR}/composition/{first}"))),
            ("latest", get(&format!("ehr/{EHR}/composition/{object}"))),
            ("by uid", get(&format!("ehr/{EHR}/composition/{second}"))),
            (
                "at time",
                get(&format!(
                    "ehr/{EHR}/composition/{object}?version_at_time=2040-01-01T00:00:00Z"
                )),
            ),
            (
                "version",
                get(&format!(
                    "ehr/{EHR}/versioned_composition/{object}/version/{second}"
                )),
            ),
            (
                "history",
                get(&format!(
                    "ehr/{EHR}/versioned_composition/{object}/revision_history"
                )),
            ),
            ("long", get(&format!("ehr/{EHR}/composition/{long}"))),
            (
                "contribution",
                get(&format!("ehr/{EHR}/contribution/{changed}")),
            ),
            ("query of the EHR", query(weights, &of_ehr)),
            ("query of all", query(weights, "")),
            (
                "query of versions",
                query(
                    "SELECT c/uid/value FROM EHR e CONTAINS VERSION v[ALL_VERSIONS] CONTAINS COMPOSITION c",
                    "",
                ),
            ),
            (
                "query that needs none",
                query("SELECT e/ehr_id/value FROM EHR e", ""),
            ),
            ("other EHR", query(weights, &format!("&ehr_id={OTHER}"))),
            ("export", get("admin/export?limit=1000")),
            (
                "export of the other EHR",
                get(&format!("admin/export?limit=1000&ehr_id={OTHER}")),
            ),
        ]);
        Ward { database, requests }
    }

    /// Returns the answers of a fresh instance by name of the request.
    fn answers(&self) -> BTreeMap<&'static str, Response> {
        self.requests
            .iter()
            .map(|(name, way)| (*name, Host::over(&self.database).send(way.clone())))
            .collect()
    }

    fn alter(&self, sql: &str) {
        assert!(
            !self
                .database
                .texts(&format!("{sql} RETURNING 1"))
                .is_empty(),
            "{sql}"
        );
    }
}

/// Returns status and body of an answer; of a result set only its rows.
fn essence(response: &Response) -> (u16, String) {
    let body = String::from_utf8_lossy(&response.body).into_owned();
    let rows = serde_json::from_str::<Value>(&body)
        .ok()
        .and_then(|body| Some(body.get("rows")?.to_string()));
    (response.status, rows.unwrap_or(body))
}

fn assert_refused(response: &Response, ehr: &str, uid: &str, about: &str) {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    assert_eq!(
        (response.status, body["code"].as_u64()),
        (500, Some(500)),
        "{about}: {response:?}"
    );
    assert_eq!(
        body["errors"][0]["defining_code"]["code_string"], "SVC0601",
        "{about}"
    );
    assert_eq!(body["errors"][0]["_ehr_id"], ehr, "{about}");
    assert!(
        body["errors"][0]["_help"]
            .as_str()
            .is_some_and(|help| help.contains("restore")),
        "{about}: {body}"
    );
    let message = body["message"].as_str().unwrap();
    assert!(
        message.contains(uid) && !message.contains(SECRET) && !message.contains(ehr),
        "{about}: {message}"
    );
    assert_eq!(
        response.problem.as_deref(),
        Some(message),
        "{about}: the log says it too"
    );
}

const SECOND: &str = "WHERE kind = 1 AND number = 2";
/// The requests that read the second version.
const OF_SECOND: [&str; 9] = [
    "latest",
    "by uid",
    "at time",
    "version",
    "history",
    "query of the EHR",
    "query of all",
    "query of versions",
    "export",
];
const OF_LONG: [&str; 5] = [
    "long",
    "query of the EHR",
    "query of all",
    "query of versions",
    "export",
];

/// An alteration, the requests that read the altered record, and the end of the uid in the error.
type Alteration = (String, Vec<&'static str>, &'static str);

fn alterations_of_versions() -> Vec<Alteration> {
    vec![
        (
            format!(
                "UPDATE version SET document = replace(document, '{SECRET}', '47.25') {SECOND}"
            ),
            OF_SECOND.to_vec(),
            "::2",
        ),
        (
            format!("UPDATE version SET document = '[]' {SECOND}"),
            OF_SECOND.to_vec(),
            "::2",
        ),
        (
            format!("UPDATE version SET document = document || ' ' {SECOND}"),
            OF_SECOND.to_vec(),
            "::2",
        ),
        (
            format!("UPDATE version SET digest = '0000000000000000' {SECOND}"),
            OF_SECOND.to_vec(),
            "::2",
        ),
        (
            format!("UPDATE version SET digest = '' {SECOND}"),
            OF_SECOND.to_vec(),
            "::2",
        ),
        (
            format!("UPDATE version SET shapes = '[]' {SECOND}"),
            OF_SECOND.to_vec(),
            "::2",
        ),
        (
            format!("UPDATE version SET time_committed = '2020-01-01T00:00:00.000Z' {SECOND}"),
            OF_SECOND.to_vec(),
            "::2",
        ),
    ]
}

fn alterations_of_layouts() -> Vec<Alteration> {
    let observation = "WHERE skeleton LIKE '{\"_type\":\"OBSERVATION\"%'";
    let of_observation = [
        &OF_SECOND[..],
        &["first", "long", "other EHR", "export of the other EHR"],
    ]
    .concat();
    vec![
        (
            format!(
                "UPDATE shape SET skeleton = replace(skeleton, 'Body weight', 'Body height') {observation}"
            ),
            of_observation.clone(),
            "",
        ),
        (
            format!("UPDATE shape SET skeleton = '' {observation}"),
            of_observation.clone(),
            "",
        ),
        (
            format!("DELETE FROM shape {observation}"),
            of_observation.clone(),
            "",
        ),
    ]
}

fn other_alterations() -> Vec<Alteration> {
    vec![
        (
            "UPDATE chunk SET body = replace(body, 'BergBerg', 'Bergberg')".into(),
            OF_LONG.to_vec(),
            "",
        ),
        ("DELETE FROM chunk".into(), OF_LONG.to_vec(), ""),
        (
            format!(
                "UPDATE contribution SET document = replace(document, '::2', '::1') WHERE id = (SELECT contribution FROM version {SECOND})"
            ),
            vec!["contribution", "export"],
            "",
        ),
    ]
}

#[test]
fn altered_records_are_refused_by_every_read() {
    let alterations = [
        alterations_of_versions(),
        alterations_of_layouts(),
        other_alterations(),
    ];
    for (sql, refused, uid) in alterations.concat() {
        let ward = Ward::new();
        let before = ward.answers();
        assert!(
            before.values().all(|response| response.status == 200),
            "{before:?}"
        );
        ward.alter(&sql);
        for (way, response) in ward.answers() {
            let about = format!("{sql}, read by {way}");
            match refused.contains(&way) {
                true => assert_refused(
                    &response,
                    if way.ends_with("other EHR") {
                        OTHER
                    } else {
                        EHR
                    },
                    uid,
                    &about,
                ),
                false => assert_eq!(essence(&response), essence(&before[way]), "{about}"),
            }
        }
    }
}

#[test]
fn a_document_never_becomes_that_of_another_patient() {
    let ward = Ward::new();
    ward.alter(&format!(
        "UPDATE version SET ehr = (SELECT id FROM ehr WHERE ehr_id = '{OTHER}') {SECOND}"
    ));
    let answers = ward.answers();
    for way in ["other EHR", "query of all", "query of versions"] {
        assert_refused(&answers[way], OTHER, "::2", way);
    }
    assert_eq!(answers["by uid"].status, 404);
}

#[test]
fn no_commit_follows_an_altered_record() {
    let ward = Ward::new();
    ward.alter(&format!(
        "UPDATE version SET document = replace(document, '{SECRET}', '47.25') {SECOND}"
    ));
    let latest = ward.requests["by uid"]
        .path
        .rsplit('/')
        .next()
        .unwrap()
        .to_owned();
    let object = latest.split("::").next().unwrap();
    let count = || ward.database.texts("SELECT count(*) FROM version");
    let before = count();
    let change = Request::new(
        "PUT",
        &format!("/rest/openehr/v1/ehr/{EHR}/composition/{object}"),
    )
    .with_header("If-Match", &latest);
    let response = Host::over(&ward.database)
        .send(change.with_body("application/json", text("rest/weight.json")));
    assert_refused(&response, EHR, &latest, "an update");
    assert_eq!(count(), before);
}

#[test]
fn no_commit_follows_a_record_that_was_altered_behind_the_instance_that_knows_it() {
    let alterations = [
        alterations_of_versions(),
        vec![(
            format!(
                "UPDATE version SET ehr = (SELECT id FROM ehr WHERE ehr_id = '{OTHER}') {SECOND}"
            ),
            Vec::new(),
            "",
        )],
    ];
    for (sql, ..) in alterations.concat() {
        let ward = Ward::new();
        let mut host = Host::over(&ward.database);
        let read = host.send(ward.requests["by uid"].clone());
        assert_eq!(read.status, 200);
        let latest = read.header("ETag").unwrap().trim_matches('"').to_owned();
        ward.alter(&sql);
        let before = ward.database.records();
        let object = latest.split("::").next().unwrap();
        for (method, path) in [("PUT", object), ("DELETE", &latest)] {
            let path = format!("/rest/openehr/v1/ehr/{EHR}/composition/{path}");
            let change = Request::new(method, &path).with_header("If-Match", &latest);
            let response =
                host.send(change.with_body("application/json", text("rest/weight.json")));
            match sql.contains("SET ehr") {
                true => assert_eq!(response.status, 404, "{sql}"),
                false => assert_refused(&response, EHR, &latest, &sql),
            }
        }
        assert!(ward.database.records() == before, "{sql}");
    }
}

#[test]
fn alterations_of_documents_of_earlier_releases_are_detected() {
    for fixture in fixtures() {
        let database = upgraded(&fixture);
        let mut host = Host::over(&database);
        let read = Request::new(
            "GET",
            "/rest/openehr/v1/query/aql?q=SELECT%20c%20FROM%20EHR%20e%20CONTAINS%20COMPOSITION%20c",
        );
        assert_eq!(host.send(read.clone()).status, 200, "{fixture}");
        database.texts("UPDATE version SET document = replace(document, '72.50', '27.50') WHERE kind = 1 RETURNING 1");
        for way in [
            read,
            Request::new("GET", "/rest/openehr/v1/admin/export?limit=1000"),
        ] {
            assert_refused(&Host::over(&database).send(way), EHR, "::", &fixture);
        }
    }
}

/// The address of a stored query answers its definition with its result.
#[test]
fn result_beside_the_definition_of_a_query_is_refused() {
    let ward = Ward::new();
    let mut host = Host::over(&ward.database);
    let path = "/v1/query/org.example::names/1.0.0";
    let q = r#"{"q":"SELECT c FROM EHR e CONTAINS COMPOSITION c"}"#;
    let stored = host.send(Request::new("PUT", path).with_body("application/json", q));
    assert_eq!(stored.status, 200, "{stored:?}");
    let shown = |ward: &Ward| Host::over(&ward.database).send(Request::new("GET", path));
    assert_eq!(shown(&ward).status, 200);
    ward.alter(&format!("UPDATE version SET document = '[]' {SECOND}"));
    assert_refused(&shown(&ward), EHR, "::2", "a stored query");
}
