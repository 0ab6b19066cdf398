//! A database that fails once, before or after a batch took effect, at every position in turn. An
//! instance that has seen the failure must answer like a fresh one: a failed request may leave only
//! true facts in caches.

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::sql::{LayoutCatalog, Row, Sql, SqlError, SqlRepository, Statement};
use serde_json::Value;
use std::cell::Cell;
use std::rc::Rc;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const OBJECT: &str = "0d7a1a2c-5a53-4c0e-9ef5-5d5d6a4b7f10";
const TEMPLATE: &str = include_str!("../cases/template/small.opt");
const WEIGHT: &str = include_str!("../cases/rest/weight.json");

/// The time of the failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    Before,
    After,
}

/// A database whose n-th batch from now fails.
#[derive(Clone)]
struct Faulty {
    database: Sqlite,
    fault: Rc<Cell<Option<(usize, Moment)>>>,
}

impl Sql for Faulty {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        let lost = || SqlError::Failed("the connection was lost".into());
        match self.fault.take() {
            Some((0, Moment::Before)) => Err(lost()),
            Some((0, Moment::After)) => self.database.batch(statements).await.and(Err(lost())),
            left => {
                self.fault.set(left.map(|(n, moment)| (n - 1, moment)));
                self.database.batch(statements).await
            }
        }
    }
}

/// A database whose layouts are removed right before each of the next commits.
#[derive(Clone)]
struct Removing {
    database: Sqlite,
    left: Rc<Cell<usize>>,
}

impl Sql for Removing {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        let commits = |statement: &Statement| statement.sql.contains("'revision' RETURNING");
        if self.left.get() > 0 && statements.iter().any(commits) {
            self.left.set(self.left.get() - 1);
            let next = "UPDATE meta SET value = value + 1 WHERE name = 'shape_generation'";
            self.database.batch(vec![Statement::new(next)]).await?;
        }
        self.database.batch(statements).await
    }
}

type Instance = Service<SqlRepository<Faulty>>;

fn instance<S: Sql + Clone>(database: &S) -> Service<SqlRepository<S>> {
    let config = Config {
        auth: Auth::Open,
        admin: true,
        log: false,
        system_id: String::from("test.example"),
        ..Config::default()
    };
    Service::new(
        SqlRepository::new(database.clone(), Rc::new(LayoutCatalog::default())),
        config,
    )
}

fn send<S: Sql>(
    service: &Service<SqlRepository<S>>,
    ticks: &mut Ticks,
    request: &Request,
) -> Response {
    now_or_never(service.handle(request, ticks)).expect("a synchronous repository")
}

fn json(method: &str, path: &str, body: impl Into<Vec<u8>>) -> Request {
    Request::new(method, &format!("/rest/openehr/v1/{path}")).with_body("application/json", body)
}

/// Returns the requests of a typical day.
fn requests() -> Vec<Request> {
    let query = r#"{"q":"SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c"}"#;
    let other = WEIGHT.replacen(
        "\"_type\": \"PARTY_IDENTIFIED\"",
        "\"_type\": \"PARTY_IDENTIFIED\", \"identifiers\": [{\"_type\":\"DV_IDENTIFIER\",\"id\":\"7\"}]",
        1,
    );
    let ehr = format!("ehr/{EHR}");
    let uid = format!(r#""uid": {{"_type": "HIER_OBJECT_ID", "value": "{OBJECT}"}}, "name""#);
    let known = WEIGHT.replacen("\"name\"", &uid, 1);
    vec![
        Request::new("POST", "/rest/openehr/v1/definition/template/adl1.4")
            .with_body("application/xml", TEMPLATE),
        json("PUT", &ehr, ""),
        json("POST", "query/aql", query),
        json("POST", &format!("{ehr}/composition"), WEIGHT),
        json("POST", "query/aql", query),
        json("POST", &format!("{ehr}/composition"), other),
        Request::new("PUT", "/rest/openehr/v1/definition/query/ids/1.0.0")
            .with_body("text/plain", "SELECT e/ehr_id/value FROM EHR e"),
        json("POST", "query/aql", query),
        json("POST", &format!("{ehr}/composition"), known),
        json("PUT", &format!("{ehr}/composition/{OBJECT}"), WEIGHT)
            .with_header("If-Match", &format!("{OBJECT}::test.example::1")),
        json("GET", &format!("{ehr}/composition/{OBJECT}"), ""),
        json("PUT", &format!("{ehr}/composition/{OBJECT}"), WEIGHT)
            .with_header("If-Match", &format!("{OBJECT}::test.example::2")),
        json("POST", "query/aql", query),
        json(
            "DELETE",
            &format!("{ehr}/composition/{OBJECT}::test.example::3"),
            "",
        ),
        json("DELETE", "admin/query/ids/1.0.0", ""),
        json("DELETE", &format!("admin/{ehr}"), ""),
        json("PUT", &ehr, ""),
        json("POST", &format!("{ehr}/composition"), WEIGHT),
    ]
}

/// Returns the answers of an instance about all data, without the unique parts of each answer.
fn all_answers(service: &Instance, ticks: &mut Ticks) -> Vec<String> {
    let rows = |response: Response| {
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        format!("{} {} {}", response.status, body["rows"], body["errors"])
    };
    let query = |q: &str| {
        json(
            "POST",
            "query/aql",
            serde_json::json!({ "q": q }).to_string(),
        )
    };
    let all = query("SELECT c/uid/value, c FROM EHR e CONTAINS COMPOSITION c");
    let counted = query("SELECT count(*) FROM EHR e CONTAINS COMPOSITION c");
    let mut answers = vec![
        rows(send(service, ticks, &all)),
        rows(send(service, ticks, &counted)),
    ];
    for path in [
        "admin/export".to_owned(),
        "definition/query".to_owned(),
        format!("ehr/{EHR}"),
        format!("ehr/{EHR}/ehr_status"),
    ] {
        let response = send(
            service,
            ticks,
            &Request::new("GET", &format!("/rest/openehr/v1/{path}")),
        );
        answers.push(format!(
            "{} {}",
            response.status,
            String::from_utf8_lossy(&response.body)
        ));
    }
    answers
}

/// Fails at the n-th batch of the day. Returns whether the day had that many.
fn fails_at(n: usize, moment: Moment) -> bool {
    let database = Faulty {
        database: Sqlite::in_memory(),
        fault: Rc::default(),
    };
    let (service, mut ticks) = (instance(&database), Ticks::new());
    database.fault.set(Some((n, moment)));
    for request in requests() {
        let armed = database.fault.get();
        let response = send(&service, &mut ticks, &request);
        let failed = armed.is_some() && database.fault.get().is_none();
        let told_so = response.status == 503 && response.header("Retry-After").is_some();
        assert!(
            if failed {
                told_so
            } else {
                response.status < 500
            },
            "{moment:?} {n}: {} {}: {response:?}",
            request.method,
            request.path
        );
        if failed {
            let (seen, fresh) = (
                all_answers(&service, &mut ticks),
                all_answers(&instance(&database), &mut ticks),
            );
            assert_eq!(
                seen, fresh,
                "{moment:?} {n}: {} {}",
                request.method, request.path
            );
            send(&service, &mut ticks, &request);
        }
    }
    let reached = database.fault.take().is_none();
    assert_eq!(
        all_answers(&service, &mut ticks),
        all_answers(&instance(&database), &mut ticks),
        "{moment:?} {n}, at the end of the day"
    );
    reached
}

#[test]
fn a_request_that_fails_leaves_no_wrong_cache() {
    for moment in [Moment::Before, Moment::After] {
        let batches = (0..).take_while(|n| fails_at(*n, moment)).count();
        assert!(batches > 15, "only {batches} batches");
    }
}

/// Whether a line is a repetition is unknown while the database does not answer. 409 would say that
/// it is none.
#[test]
fn a_repeated_line_is_no_conflict_while_the_database_fails() {
    let database = Faulty {
        database: Sqlite::in_memory(),
        fault: Rc::default(),
    };
    let (service, mut ticks) = (instance(&database), Ticks::new());
    for request in requests().into_iter().take(4) {
        assert!(send(&service, &mut ticks, &request).status < 300);
    }
    let lines = |path: &str, body: String| {
        Request::new("POST", &format!("/rest/openehr/v1/{path}"))
            .with_header("Idempotency-Key", "night")
            .with_body("application/x-ndjson", body)
    };
    let export = Request::new("GET", "/rest/openehr/v1/admin/export");
    let exported = send(&service, &mut ticks, &export);
    let exported = String::from_utf8_lossy(&exported.body).into_owned();
    let last = exported.lines().rfind(|line| line.contains(EHR));
    let composition: Value = serde_json::from_str(WEIGHT).expect("JSON");
    let load = serde_json::json!({ "ehr_id": EHR, "composition": composition });
    for request in [
        lines("admin/import", last.expect("a line").to_owned()),
        lines("ehr/bulk", load.to_string()),
    ] {
        send(&service, &mut ticks, &request);
        let mut refused = 0;
        for n in 0.. {
            database.fault.set(Some((n, Moment::Before)));
            let answer = send(&service, &mut ticks, &request);
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            let line: Value = serde_json::from_str(&body).unwrap_or_default();
            let status = line["status"].as_u64().unwrap_or(answer.status.into());
            if database.fault.take().is_some() {
                assert_eq!(status, 200, "{}: {body}", request.path);
                break;
            }
            refused += usize::from(status >= 500);
            assert!(
                status >= 500 || status == 200,
                "{n}: {}: {body}",
                request.path
            );
        }
        assert!(refused >= 2, "{}: {refused}", request.path);
    }
}

#[test]
fn a_commit_is_written_while_documents_are_removed() {
    let database = Removing {
        database: Sqlite::in_memory(),
        left: Rc::default(),
    };
    let (service, mut ticks) = (instance(&database), Ticks::new());
    for request in requests().iter().take(2) {
        let made = send(&service, &mut ticks, request);
        assert!(made.status < 300, "{made:?}");
    }
    for removals in [1, 3, 10] {
        database.left.set(removals);
        let request = json("POST", &format!("ehr/{EHR}/composition"), WEIGHT);
        let made = send(&service, &mut ticks, &request);
        assert_eq!((made.status, database.left.get()), (201, 0), "{made:?}");
    }
}
