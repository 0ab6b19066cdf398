//! Databases of every published schema, with data in them, are upgraded by the later migrations and
//! answer as before.
//!
//! `tests/cases/schema/NNNN.sql` holds the rows of a database as migration NNNN left it, written by
//! the program of that time. `NNNN.ndjson` is the expected export. A new migration gets its file by
//! `AQLITE_WRITE_SCHEMA=NNNN cargo test --test it upgrade`, before it is published. If one schema
//! held documents in several forms, the file name also contains the form: `0001_first.sql` has them
//! as the first program packed them, with whole digests; `0030_text.sql` has digests of their
//! canonical JSON, `0030.sql` of the packed documents.

use crate::rest::Ticks;
use crate::sqlite::{Sqlite, migrations};
use aqlite::service::{Auth, Config, Environment, Request, Response, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::sql::SqlRepository;
use rusqlite::Connection;
use serde_json::Value;
use std::path::PathBuf;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(name)
}

/// Returns the text of a file under `tests/cases`.
pub fn text(name: &str) -> String {
    std::fs::read_to_string(file(name))
        .unwrap_or_else(|error| panic!("tests/cases/{name}: {error}"))
}

/// A service over a database.
pub struct Host(Service<SqlRepository<Sqlite>>, Ticks);

impl Host {
    /// Creates a service with empty caches.
    pub fn over(database: &Sqlite) -> Host {
        let config = Config {
            auth: Auth::Open,
            admin: true,
            system_id: String::from("test.example"),
            ..Config::default()
        };
        Host(Service::new(database.repository(), config), Ticks::new())
    }

    /// Returns an identifier that the service will not generate again.
    pub fn new_uuid(&mut self) -> String {
        self.1.new_uuid()
    }

    /// Sends a request. Returns the answer.
    pub fn send(&mut self, request: Request) -> Response {
        now_or_never(self.0.handle(&request, &mut self.1)).expect("a synchronous repository")
    }

    /// Sends a body. Returns the entity tag of the created resource.
    pub fn made(
        &mut self,
        method: &str,
        path: &str,
        media_type: &str,
        body: &str,
        if_match: &str,
    ) -> String {
        let request =
            Request::new(method, &format!("/rest/openehr/v1/{path}")).with_body(media_type, body);
        let response = self.send(if if_match.is_empty() {
            request
        } else {
            request.with_header("If-Match", if_match)
        });
        assert!(response.status < 300, "{method} {path}: {response:?}");
        response
            .header("ETag")
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned()
    }

    fn answers(&mut self, path: &str) -> String {
        let response = self.send(Request::new("GET", &format!("/rest/openehr/v1/{path}")));
        assert_eq!(response.status, 200, "{path}: {response:?}");
        String::from_utf8_lossy(&response.body).into_owned()
    }

    fn count(&mut self) -> i64 {
        let body: Value = serde_json::from_str(&self.answers(
            "query/aql?q=SELECT%20count(*)%20FROM%20EHR%20e%20CONTAINS%20COMPOSITION%20c",
        ))
        .unwrap();
        body.pointer("/rows/0/0")
            .and_then(Value::as_i64)
            .expect("a number")
    }
}

/// Creates one object of each kind that a repository can contain.
fn create_one_of_each(host: &mut Host) {
    let (json, weight) = ("application/json", text("rest/weight.json"));
    host.made(
        "POST",
        "definition/template/adl1.4",
        "application/xml",
        &text("template/small.opt"),
        "",
    );
    host.made(
        "PUT",
        "definition/query/ids/1.0.0",
        "text/plain",
        "SELECT e/ehr_id/value FROM EHR e",
        "",
    );
    host.made(
        "POST",
        "definition/gdl",
        json,
        &text("rest/weight_class.gdl2"),
        "",
    );
    host.made(
        "PUT",
        &format!("ehr/{EHR}"),
        json,
        &text("rest/status.json"),
        "",
    );
    let first = host.made("POST", &format!("ehr/{EHR}/composition"), json, &weight, "");
    let object = first.split("::").next().unwrap_or_default().to_owned();
    host.made(
        "PUT",
        &format!("ehr/{EHR}/composition/{object}"),
        json,
        &weight,
        &first,
    );
    let gone = host.made("POST", &format!("ehr/{EHR}/composition"), json, &weight, "");
    host.made(
        "DELETE",
        &format!("ehr/{EHR}/composition/{gone}"),
        json,
        "",
        "",
    );
    host.made(
        "POST",
        &format!("ehr/{EHR}/directory"),
        json,
        &text("rest/directory.json"),
        "",
    );
    host.made(
        "POST",
        "demographic/person",
        json,
        &text("rest/person.json"),
        "",
    );
}

/// Exports all data.
fn export(host: &mut Host) -> String {
    host.answers("admin/export?limit=1000")
}

/// Returns the names of the stored databases.
pub fn fixtures() -> Vec<String> {
    let files = std::fs::read_dir(file("schema"))
        .expect("folder")
        .flatten()
        .map(|entry| entry.path());
    let mut names: Vec<String> = files
        .filter_map(|file| {
            file.file_name()?
                .to_str()?
                .strip_suffix(".sql")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// Returns the migrations up to a number, and the later ones.
fn parted(number: &str) -> (Vec<String>, Vec<String>) {
    let (before, after): (Vec<_>, Vec<_>) = migrations()
        .into_iter()
        .partition(|(n, _)| n.as_str() <= number);
    let texts = |list: Vec<(String, String)>| list.into_iter().map(|(_, text)| text).collect();
    (texts(before), texts(after))
}

fn with_schema(migrations: &[String]) -> Connection {
    let connection = Connection::open_in_memory().expect("memory");
    migrations
        .iter()
        .for_each(|migration| connection.execute_batch(migration).expect("migration"));
    connection
}

/// Returns the stored database with this name, upgraded by the later migrations.
pub fn upgraded(name: &str) -> Sqlite {
    let (before, after) = parted(name.get(..4).unwrap_or_default());
    let connection = with_schema(&before);
    connection
        .execute_batch(&text(&format!("schema/{name}.sql")))
        .expect("rows of that time");
    after
        .iter()
        .for_each(|migration| connection.execute_batch(migration).expect("migration"));
    Sqlite::with(connection)
}

/// Writes the rows of the present tables as far as a schema has them, and their export.
fn write(number: &str) {
    let database = Sqlite::in_memory();
    let mut host = Host::over(&database);
    create_one_of_each(&mut host);
    let tables = Sqlite::with(with_schema(&parted(number).0))
        .texts("SELECT name FROM sqlite_schema WHERE type = 'table'");
    let known = |row: &&String| {
        row.strip_prefix("INSERT OR REPLACE INTO ")
            .is_some_and(|rest| {
                tables
                    .iter()
                    .any(|table| rest.split(' ').next() == Some(table))
            })
    };
    let dump: String = database
        .dump()
        .iter()
        .filter(known)
        .map(|row| {
            format!(
                "{row}
"
            )
        })
        .collect();
    std::fs::create_dir_all(file("schema")).expect("folder");
    std::fs::write(file(&format!("schema/{number}.sql")), dump).expect("file");
    std::fs::write(file(&format!("schema/{number}.ndjson")), export(&mut host)).expect("file");
}

#[test]
fn a_database_of_every_schema_is_upgraded_with_its_data() {
    if let Ok(number) = std::env::var("AQLITE_WRITE_SCHEMA") {
        write(&number);
    }
    let newest = migrations().pop().expect("a migration").0;
    let names = fixtures();
    assert!(
        ["0001_first", "0001", &newest]
            .iter()
            .all(|name| names.iter().any(|n| n == name)),
        "{names:?}"
    );
    for number in &names {
        let database = upgraded(number);
        let mut host = Host::over(&database);
        assert!(
            export(&mut host) == text(&format!("schema/{number}.ndjson")),
            "{number}: the export differs"
        );
        assert_eq!(host.count(), 1, "{number}");
        // The ids of this service start where those of the writer of the rows started.
        (0..100).for_each(|_| drop(host.1.new_uuid()));
        host.made(
            "POST",
            &format!("ehr/{EHR}/composition"),
            "application/json",
            &text("rest/weight.json"),
            "",
        );
        assert_eq!(host.count(), 2, "{number}");
        assert!(host.answers("definition/query").contains("ids"), "{number}");
    }
}

/// Rows of releases that did not store archetype and category of a COMPOSITION stay updatable. The
/// first update stores them.
#[test]
fn composition_of_every_schema_is_updated_and_then_keeps_its_persistence() {
    for number in fixtures() {
        let database = upgraded(&number);
        let mut host = Host::over(&database);
        (0..100).for_each(|_| drop(host.new_uuid()));
        let query = "SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c";
        let query = query.replace(' ', "%20");
        let rows = host.answers(&format!("query/aql?q={query}"));
        let rows: Value = serde_json::from_str(&rows).unwrap();
        let latest = rows.pointer("/rows/0/0").and_then(Value::as_str);
        let latest = latest.expect("a composition").to_owned();
        let object = latest.split("::").next().unwrap_or_default();
        let path = format!("ehr/{EHR}/composition/{object}");
        let weight = text("rest/weight.json");
        // A template that permits both categories.
        let template = text("template/small.opt").replace(
            "<code_list>433</code_list>",
            "<code_list>433</code_list><code_list>431</code_list>",
        );
        let upload = Request::new("POST", "/v1/definition/template?type=opt14&version=9.0.0")
            .with_body("application/xml", template);
        assert_eq!(host.send(upload).status, 201, "{number}");
        let latest = host.made("PUT", &path, "application/json", &weight, &latest);
        let persistent = weight.replace("\"433\"", "\"431\"");
        let update = Request::new("PUT", &format!("/rest/openehr/v1/{path}"))
            .with_header("If-Match", &latest)
            .with_body("application/json", persistent);
        let answer = host.send(update);
        assert_eq!(answer.status, 422, "{number}: {answer:?}");
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(body.contains("SVC0206"), "{number}: {body}");
        let stored =
            "SELECT archetype || ' ' || persistent FROM version WHERE persistent IS NOT NULL";
        let stored = database.texts(stored);
        let kept = "openEHR-EHR-COMPOSITION.encounter.v1 0";
        assert!(stored.iter().any(|row| row == kept), "{number}: {stored:?}");
    }
}
