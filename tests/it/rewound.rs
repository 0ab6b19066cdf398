//! A database that its operator restores to an earlier state while instances run: D1 has a restore
//! point for each minute. What an instance has read or written since is not true any more. It must
//! answer like a fresh one, and store no document of layouts that are gone.

use crate::rest::Ticks;
use crate::sqlite::{MemoryBlobs, Sqlite};
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Pause;
use aqlite::store::sql::{
    Compaction, LayoutCatalog, Row, Segments, Sql, SqlError, SqlRepository, Statement,
};
use rusqlite::Connection;
use serde_json::Value;
use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const TEMPLATE: &str = include_str!("../cases/template/small.opt");
const WEIGHT: &str = include_str!("../cases/rest/weight.json");

/// A database that can be replaced by a copy of an earlier state, and the clock of all instances.
#[derive(Clone)]
struct Restored(Rc<RefCell<Sqlite>>, Rc<RefCell<Ticks>>);

impl Restored {
    /// Creates an empty database with a template and an EHR.
    fn with_ehr() -> Restored {
        let database = Restored(
            Rc::new(RefCell::new(Sqlite::in_memory())),
            Rc::new(RefCell::new(Ticks::new())),
        );
        let instance = Instance::of(&database);
        let template = Request::new("POST", "/rest/openehr/v1/definition/template/adl1.4")
            .with_body("application/xml", TEMPLATE);
        for request in [template, json("PUT", &format!("ehr/{EHR}"), "")] {
            assert_eq!(instance.send(&request).status, 201);
        }
        database
    }

    /// Returns a repository over segments of few versions, with caches of its own.
    fn segmented(&self) -> SqlRepository<Restored> {
        let segments = Segments::new(Box::new(MemoryBlobs::default())).with_sizes(1, 100);
        SqlRepository::new(self.clone(), Rc::default()).with_segments(Rc::new(segments))
    }

    /// Returns a copy of the present state.
    fn copy(&self, name: &str) -> Sqlite {
        let file = std::env::temp_dir().join(format!("aqlite-{name}-{}", std::process::id()));
        drop(std::fs::remove_file(&file));
        let into = format!("VACUUM INTO '{}'", file.display());
        self.0.borrow().behind(&into);
        let copy = Connection::open(&file).expect("a copy");
        let memory = "PRAGMA journal_mode = MEMORY";
        copy.execute_batch(memory).expect("a journal in memory");
        Sqlite::with(copy)
    }
}

impl Sql for Restored {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        let database = self.0.borrow().clone();
        database.batch(statements).await
    }
}

/// An instance of the service with caches of its own.
struct Instance {
    service: Service<SqlRepository<Restored>>,
    ticks: Rc<RefCell<Ticks>>,
}

impl Instance {
    fn of(database: &Restored) -> Instance {
        let catalog = Rc::new(LayoutCatalog::default());
        Instance::over(SqlRepository::new(database.clone(), catalog), database)
    }

    fn over(repository: SqlRepository<Restored>, database: &Restored) -> Instance {
        let config = Config {
            auth: Auth::Open,
            admin: true,
            log: false,
            system_id: String::from("test.example"),
            ..Config::default()
        };
        Instance {
            service: Service::new(repository, config),
            ticks: Rc::clone(&database.1),
        }
    }

    fn send(&self, request: &Request) -> Response {
        let mut ticks = self.ticks.borrow_mut();
        now_or_never(self.service.handle(request, &mut *ticks)).expect("a synchronous repository")
    }

    /// Commits a document, and returns its uid.
    fn commit(&self, document: &str) -> String {
        let committed = self.send(&json("POST", &format!("ehr/{EHR}/composition"), document));
        let text = String::from_utf8_lossy(&committed.body);
        assert_eq!(committed.status, 201, "{text}");
        let tag = committed.header("ETag").unwrap_or_default();
        tag.trim_matches('"').to_owned()
    }

    /// Commits the next version of a document.
    fn update(&self, uid: &str, document: &str) {
        let object = uid.split("::").next().unwrap_or_default();
        let update = json("PUT", &format!("ehr/{EHR}/composition/{object}"), document);
        let updated = self.send(&update.with_header("If-Match", &format!("\"{uid}\"")));
        assert_eq!(updated.status, 204, "{updated:?}");
    }

    /// Returns the rows of a query.
    fn rows(&self, q: &str) -> String {
        let body = serde_json::json!({ "q": q }).to_string();
        let answer = self.send(&json("POST", "query/aql", body));
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 200, "{q}: {text}");
        serde_json::from_str::<Value>(&text).expect("JSON")["rows"].to_string()
    }
}

fn json(method: &str, path: &str, body: impl Into<Vec<u8>>) -> Request {
    Request::new(method, &format!("/rest/openehr/v1/{path}")).with_body("application/json", body)
}

/// Returns a document with layouts of its own: its composer has members that others lack.
fn composed_by(members: &str) -> String {
    let party = "\"_type\": \"PARTY_IDENTIFIED\"";
    let changed = WEIGHT.replacen(party, &format!("{party}, {members}"), 1);
    assert_ne!(changed, WEIGHT);
    changed
}

const QUERIES: [&str; 4] = [
    "SELECT c/uid/value, c FROM EHR e CONTAINS COMPOSITION c",
    "SELECT count(*) FROM EHR e CONTAINS COMPOSITION c",
    "SELECT c FROM COMPOSITION c CONTAINS OBSERVATION o",
    "SELECT c/composer/identifiers/id AS id, c/composer/external_ref/id/value AS x FROM COMPOSITION c",
];

#[test]
fn instance_that_runs_during_a_restore_answers_like_a_fresh_one() {
    let database = Restored::with_ehr();
    let one = Instance::of(&database);
    let identifier = |id: &str| {
        composed_by(&format!(
            "\"identifiers\": [{{\"_type\":\"DV_IDENTIFIER\",\"id\":\"{id}\"}}]"
        ))
    };
    let external = |id: &str| {
        composed_by(&format!(
            "\"external_ref\": {{\"_type\":\"PARTY_REF\",\"namespace\":\"n\",\"type\":\"PERSON\",\"id\":{{\"_type\":\"GENERIC_ID\",\"value\":\"{id}\",\"scheme\":\"s\"}}}}"
        ))
    };
    let before = database.copy("restored");
    one.commit(&identifier("lost"));
    QUERIES.iter().for_each(|q| drop(one.rows(q)));
    let reader = Instance::of(&database);
    QUERIES.iter().for_each(|q| drop(reader.rows(q)));

    let second_reader = Instance::of(&database);
    QUERIES.iter().for_each(|q| drop(second_reader.rows(q)));

    database.0.replace(before);
    let other = Instance::of(&database);
    let committed = other.commit(&external("other"));
    // An instance that answers no query in between.
    let address = format!("ehr/{EHR}/composition/{committed}");
    assert_eq!(second_reader.send(&json("GET", &address, "")).status, 200);
    one.commit(&identifier("kept"));
    for q in QUERIES {
        let fresh = Instance::of(&database).rows(q);
        assert_eq!(one.rows(q), fresh, "{q}");
        assert_eq!(reader.rows(q), fresh, "{q}");
        assert_eq!(other.rows(q), fresh, "{q}");
    }
}

#[test]
fn segments_are_read_in_the_state_after_a_restore() {
    let database = Restored::with_ehr();
    let repository = database.segmented();
    let (first, second) = (Instance::of(&database), Instance::of(&database));
    let kept = [first.commit(WEIGHT), first.commit(WEIGHT)];
    let pause = || Box::pin(ready(())) as Pause;
    let compacted = now_or_never(repository.compact("b1", 0, &pause)).expect("ready");
    assert_eq!(compacted, Ok(Compaction::Written));
    let reader = Instance::over(repository, &database);
    let q = "SELECT c/uid/value FROM COMPOSITION c ORDER BY c/uid/value";
    let before = database.copy("restored-segments");
    reader.rows(q);
    first.update(&kept[0], WEIGHT);
    first.commit(WEIGHT);
    reader.rows(q);

    database.0.replace(before);
    second.update(&kept[1], WEIGHT);
    assert_eq!(reader.rows(q), Instance::of(&database).rows(q));
}
