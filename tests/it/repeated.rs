//! Rows as parameters of repeated executions store the same as rows in JSON lists.

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use aqlite::samples::{Generator, templates};
use aqlite::service::{Auth, Config, LoadSizes, Request, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::sql::{LayoutCatalog, Row, Sql, SqlError, SqlRepository, Statement};
use serde_json::{Value, json};
use std::rc::Rc;

/// A database that gets rows as parameters.
struct Repeating(Sqlite);

impl Sql for Repeating {
    const REPEATS: bool = true;

    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        self.0.batch(statements).await
    }
}

/// A database that gets rows as lists.
struct Listing(Sqlite);

impl Sql for Listing {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        assert!(statements.iter().all(|s| s.repeated.is_empty()));
        self.0.batch(statements).await
    }
}

/// Sends requests to a service over a database. Returns status and body of each answer.
fn answers<S: Sql>(sql: S, requests: &[Request]) -> Vec<(u16, String)> {
    let config = Config {
        auth: Auth::Open,
        admin: true,
        log: false,
        load_sizes: LoadSizes {
            commits: 7,
            ..LoadSizes::default()
        },
        ..Config::default()
    };
    let service = Service::new(
        SqlRepository::new(sql, Rc::<LayoutCatalog>::default()),
        config,
    );
    let mut ticks = Ticks::new();
    let answer = |request| {
        let answer = now_or_never(service.handle(request, &mut ticks));
        let answer = answer.expect("a synchronous repository");
        (
            answer.status,
            String::from_utf8_lossy(&answer.body).into_owned(),
        )
    };
    requests.iter().map(answer).collect()
}

fn audit(code: &str, rubric: &str) -> Value {
    let terminology = json!({ "_type": "TERMINOLOGY_ID", "value": "openehr" });
    let code =
        json!({ "_type": "CODE_PHRASE", "terminology_id": terminology, "code_string": code });
    json!({
        "_type": "AUDIT_DETAILS",
        "system_id": "client",
        "committer": { "_type": "PARTY_IDENTIFIED", "name": "Dr. Ek" },
        "change_type": { "_type": "DV_CODED_TEXT", "value": rubric, "defining_code": code }
    })
}

/// Returns a contribution with a composition and with a second version of the same composition.
fn contribution(composition: &Value) -> Value {
    let uid = "6ba7b810-9dad-41d1-80b4-00c04fd430c8::aqlite.local::1";
    let mut first = composition.clone();
    first["uid"] = json!({ "_type": "OBJECT_VERSION_ID", "value": uid });
    let preceding = json!({ "_type": "OBJECT_VERSION_ID", "value": uid });
    json!({
        "_type": "CONTRIBUTION",
        "audit": audit("249", "creation"),
        "versions": [
            { "_type": "ORIGINAL_VERSION", "commit_audit": audit("249", "creation"), "data": first },
            { "_type": "ORIGINAL_VERSION", "commit_audit": audit("251", "modification"),
              "preceding_version_uid": preceding, "data": composition }
        ]
    })
}

/// Returns lines: EHRs, compositions, a contribution, and lines that are refused.
fn lines(generator: &Generator) -> String {
    let ehr_id = |ehr: usize| generator.ehr(ehr).ehr_id;
    let composition = |index: usize| -> (String, Value) {
        let sample = generator.composition(index);
        let composition = serde_json::from_str(&sample.json).expect("JSON");
        (ehr_id(sample.ehr), composition)
    };
    let mut lines: Vec<Value> = (0..generator.ehrs())
        .map(|ehr| json!({ "ehr_id": ehr_id(ehr), "ehr_status": null }))
        .collect();
    lines.extend((0..30).map(|index| {
        let (ehr_id, composition) = composition(index);
        json!({ "ehr_id": ehr_id, "composition": composition })
    }));
    let (ehr, first) = composition(0);
    lines.insert(
        20,
        json!({ "ehr_id": ehr, "contribution": contribution(&first) }),
    );
    lines.insert(25, json!({ "ehr_id": ehr, "ehr_status": null }));
    let absent = "00000000-aaaa-4aaa-8aaa-000000000000";
    lines.insert(30, json!({ "ehr_id": absent, "composition": first }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn requests() -> Vec<Request> {
    let generator = Generator::new(3, 6, 40);
    let upload = |text: &str| {
        let path = "/v1/definition/template?type=opt14";
        Request::new("POST", path).with_body("application/xml", text)
    };
    let mut requests: Vec<Request> = templates().iter().map(|t| upload(t.text)).collect();
    let load = Request::new("POST", "/v1/ehr/bulk")
        .with_header("Idempotency-Key", "one")
        .with_body("application/x-ndjson", lines(&generator));
    requests.extend([load.clone(), load]);
    let status = json!({
        "_type": "EHR_STATUS",
        "archetype_node_id": "openEHR-EHR-EHR_STATUS.generic.v1",
        "name": { "_type": "DV_TEXT", "value": "EHR status" },
        "subject": { "_type": "PARTY_SELF" },
        "is_queryable": true,
        "is_modifiable": false
    });
    let sample = generator.composition(35);
    let ehr = format!("/v1/ehr/{}", generator.ehr(sample.ehr).ehr_id);
    let post = |path: String, body: String| {
        Request::new("POST", &path).with_body("application/json", body)
    };
    let folder = json!({
        "_type": "FOLDER",
        "archetype_node_id": "openEHR-EHR-FOLDER.generic.v1",
        "name": { "_type": "DV_TEXT", "value": "Folder" }
    });
    requests.extend([
        post(format!("{ehr}/composition"), sample.json.clone()),
        post(format!("{ehr}/directory"), folder.to_string()),
        post(format!("{ehr}/directory"), folder.to_string()),
        post(String::from("/v1/ehr"), status.to_string()),
        Request::new("GET", "/v1/admin/export"),
    ]);
    requests
}

/// Returns the rows of a database without those of definitions: the database gives each of them a
/// random id. The export has compared their texts.
fn rows_of(database: &Sqlite) -> Vec<String> {
    let is_definition = |row: &String| row.starts_with("INSERT OR REPLACE INTO definition ");
    let rows = database.dump();
    rows.into_iter().filter(|row| !is_definition(row)).collect()
}

#[test]
fn rows_as_parameters_store_what_rows_in_lists_store() {
    let requests = requests();
    let [repeating, listing] = [(); 2].map(|()| Sqlite::in_memory());
    let found = answers(Repeating(repeating.clone()), &requests);
    let expected = answers(Listing(listing.clone()), &requests);
    for (request, (found, expected)) in requests.iter().zip(found.iter().zip(&expected)) {
        assert_eq!(found, expected, "{} {}", request.method, request.path);
    }
    let load = &found.get(templates().len()).expect("the load").1;
    let count = |status: &str| load.matches(&format!(r#""status":{status}"#)).count();
    assert_eq!(
        (count("201"), count("404"), count("409")),
        (37, 1, 1),
        "{load}"
    );
    let (_, export) = found.last().expect("an export");
    assert!(export.lines().count() > 37, "an export");
    assert_eq!(rows_of(&repeating), rows_of(&listing));
}
