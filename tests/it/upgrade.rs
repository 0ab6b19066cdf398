//! Databases of every published schema, with data in them, are upgraded by the migrations that came
//! later, and answer as before.
//!
//! `tests/cases/schema/NNNN.sql` holds the rows of a database as migration NNNN left it, written by
//! the program of that time; what it must answer stands in `NNNN.ndjson`, its export. A migration
//! that has no such file yet gets one by `AQLITE_WRITE_SCHEMA=NNNN cargo test --test it upgrade`,
//! before it is published. Where one schema held documents in several forms, the name of a file
//! goes on with the form: `0001_first.sql` has them as the first program packed them, with whole
//! digests; `0030_text.sql` has digests of their canonical JSON, `0030.sql` of the packed
//! documents.

use crate::rest::Ticks;
use crate::sqlite::{Sqlite, migrations};
use aqlite::service::{Auth, Config, Moment, Request, Response, Service};
use aqlite::store::ready::block_on;
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

/// The text of a file under `tests/cases`.
pub fn text(name: &str) -> String {
    std::fs::read_to_string(file(name))
        .unwrap_or_else(|error| panic!("tests/cases/{name}: {error}"))
}

/// A service over a database.
pub struct House(Service<SqlRepository<Sqlite>>, Ticks);

impl House {
    /// A service that knows nothing of the database yet.
    pub fn over(database: &Sqlite) -> House {
        let config = Config {
            auth: Auth::Open,
            admin: true,
            system_id: String::from("test.example"),
            ..Config::default()
        };
        House(Service::new(database.repository(), config), Ticks::new())
    }

    /// An identifier that it will not give again.
    pub fn new_uuid(&mut self) -> String {
        self.1.new_uuid()
    }

    /// The answer to a request.
    pub fn send(&mut self, request: Request) -> Response {
        block_on(self.0.handle(&request, &mut self.1)).expect("a synchronous repository")
    }

    /// Sends a body and gives the entity tag of what it made.
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

    fn told(&mut self, path: &str) -> String {
        let response = self.send(Request::new("GET", &format!("/rest/openehr/v1/{path}")));
        assert_eq!(response.status, 200, "{path}: {response:?}");
        String::from_utf8_lossy(&response.body).into_owned()
    }

    fn count(&mut self) -> i64 {
        let body: Value =
            serde_json::from_str(&self.told(
                "query/aql?q=SELECT%20count(*)%20FROM%20EHR%20e%20CONTAINS%20COMPOSITION%20c",
            ))
            .unwrap();
        body.pointer("/rows/0/0")
            .and_then(Value::as_i64)
            .expect("a number")
    }
}

/// One of each kind of thing that a repository holds.
fn furnish(house: &mut House) {
    let (json, weight) = ("application/json", text("rest/weight.json"));
    house.made(
        "POST",
        "definition/template/adl1.4",
        "application/xml",
        &text("template/small.opt"),
        "",
    );
    house.made(
        "PUT",
        "definition/query/ids/1.0.0",
        "text/plain",
        "SELECT e/ehr_id/value FROM EHR e",
        "",
    );
    house.made(
        "POST",
        "definition/gdl",
        json,
        &text("rest/weight_class.gdl2"),
        "",
    );
    house.made(
        "PUT",
        &format!("ehr/{EHR}"),
        json,
        &text("rest/status.json"),
        "",
    );
    let first = house.made("POST", &format!("ehr/{EHR}/composition"), json, &weight, "");
    let object = first.split("::").next().unwrap_or_default().to_owned();
    house.made(
        "PUT",
        &format!("ehr/{EHR}/composition/{object}"),
        json,
        &weight,
        &first,
    );
    let gone = house.made("POST", &format!("ehr/{EHR}/composition"), json, &weight, "");
    house.made(
        "DELETE",
        &format!("ehr/{EHR}/composition/{gone}"),
        json,
        "",
        "",
    );
    house.made(
        "POST",
        &format!("ehr/{EHR}/directory"),
        json,
        &text("rest/directory.json"),
        "",
    );
    house.made(
        "POST",
        "demographic/person",
        json,
        &text("rest/person.json"),
        "",
    );
}

/// Everything as it is exported.
fn export(house: &mut House) -> String {
    house.told("admin/export?limit=1000")
}

/// The names of the databases that are kept.
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

/// Migrations up to a number, and those behind it.
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

/// The database that was kept under a name, with the migrations that came later.
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

/// Writes the rows of today's tables, as far as a schema has them, and what they export as.
fn write(number: &str) {
    let database = Sqlite::in_memory();
    let mut house = House::over(&database);
    furnish(&mut house);
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
    std::fs::write(file(&format!("schema/{number}.ndjson")), export(&mut house)).expect("file");
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
        let mut house = House::over(&database);
        assert!(
            export(&mut house) == text(&format!("schema/{number}.ndjson")),
            "{number}: the export differs"
        );
        assert_eq!(house.count(), 1, "{number}");
        // The ids of this house begin where those of the one that wrote the rows did.
        (0..100).for_each(|_| drop(house.1.new_uuid()));
        house.made(
            "POST",
            &format!("ehr/{EHR}/composition"),
            "application/json",
            &text("rest/weight.json"),
            "",
        );
        assert_eq!(house.count(), 2, "{number}");
        assert!(house.told("definition/query").contains("ids"), "{number}");
    }
}
