//! Population queries on several threads: the responses are those of a service on one thread, also
//! if a thread is lost.
//!
//! The services of the other threads run on the thread of the test, one after the other.

use crate::rest::Ticks;
use crate::sqlite::{MemoryBlobs, Sqlite, compact};
use aqlite::samples::{self, Generator};
use aqlite::service::{
    Auth, Config, PartAnswerFuture, PartQuery, QueryThreads, Request, Response, RunHost, Service,
};
use aqlite::store::ready::now_or_never;
use aqlite::store::sql::{BlobFuture, Blobs, Segments, SqlRepository};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::future::ready;
use std::rc::Rc;

/// The maximum number of documents of a segment, and the minimum of a part.
const SEGMENT: u64 = 20;

const SYSTOLIC: &str = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
const PRESSURE: &str = "OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";

/// Blobs that several repositories share.
#[derive(Clone, Default)]
struct SharedBlobs(Rc<MemoryBlobs>);

impl Blobs for SharedBlobs {
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        self.0.put(key, bytes)
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        self.0.delete(key)
    }
}

type SqlService = Service<SqlRepository<Sqlite>>;

/// The outcome of sending a part to another thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Answered,
    Lost,
}

/// The threads of a service, and a record of the parts that were sent.
struct Threads {
    own: usize,
    others: Rc<Vec<(usize, SqlService)>>,
    last: Rc<Cell<Outcome>>,
    sent: Rc<Cell<usize>>,
}

impl QueryThreads for Threads {
    fn own(&self) -> usize {
        self.own
    }

    fn idle(&self) -> Vec<usize> {
        self.others.iter().map(|(number, _)| *number).collect()
    }

    fn send(&self, thread: usize, query: PartQuery) -> PartAnswerFuture {
        self.sent.set(self.sent.get() + 1);
        let is_last = self.others.last().is_some_and(|(last, _)| *last == thread);
        if is_last && self.last.get() == Outcome::Lost {
            return Box::pin(ready(None));
        }
        let others = Rc::clone(&self.others);
        Box::pin(async move {
            let (_, service) = others.iter().find(|(number, _)| *number == thread)?;
            let now = query.now.clone();
            let host = RunHost {
                deadline: query.deadline,
                ..RunHost::in_memory(&now, &|| 0)
            };
            Some(service.answer_part(query, &host).await)
        })
    }
}

/// A service on three threads, and one on a single thread, over one database.
struct Population {
    divided: SqlService,
    alone: SqlService,
    last: Rc<Cell<Outcome>>,
    sent: Rc<Cell<usize>>,
    /// The clock and the UUIDs of changes.
    ticks: RefCell<Ticks>,
}

impl Population {
    /// Creates a population whose queries may take `work` units of work.
    fn new(work: u64) -> Population {
        let (database, blobs) = (Sqlite::in_memory(), SharedBlobs::default());
        let service = || {
            let segments = Segments::new(Box::new(blobs.clone())).with_sizes(1, SEGMENT);
            let repository = database.repository().with_segments(Rc::new(segments));
            let mut config = Config {
                auth: Auth::Open,
                ..Config::default()
            };
            config.limits.query_work = work;
            Service::new(repository, config)
        };
        let (last, sent) = (Rc::new(Cell::new(Outcome::Answered)), Rc::default());
        let threads = Threads {
            own: 1,
            others: Rc::new(vec![(0, service()), (2, service())]),
            last: Rc::clone(&last),
            sent: Rc::clone(&sent),
        };
        let population = Population {
            divided: service().with_threads(Box::new(threads)),
            alone: service(),
            last,
            sent,
            ticks: RefCell::new(Ticks::new()),
        };
        population.fill();
        compact(population.alone.repository(), &Cell::new(0));
        population
    }

    fn fill(&self) {
        let generator = Generator::new(7, 10, 150);
        for template in samples::templates() {
            let upload = Request::new("POST", "/rest/openehr/v1/definition/template/adl1.4");
            self.done(upload.with_body("application/xml", template.text));
        }
        for ehr in 0..generator.ehrs() {
            let path = format!("/rest/openehr/v1/ehr/{}", generator.ehr(ehr).ehr_id);
            self.done(Request::new("PUT", &path));
        }
        for number in 0..150 {
            let sample = generator.composition(number);
            let ehr_id = generator.ehr(sample.ehr).ehr_id;
            let post = Request::new(
                "POST",
                &format!("/rest/openehr/v1/ehr/{ehr_id}/composition"),
            );
            self.done(post.with_body("application/json", &*sample.json));
        }
    }

    fn done(&self, request: Request) {
        let response = send(&self.alone, &request, &mut self.ticks.borrow_mut());
        let body = String::from_utf8_lossy(&response.body).into_owned();
        assert!(response.status < 300, "{}: {body}", request.path);
    }

    /// Sends a query to both services. Returns the status and the body of both, and the number of
    /// parts that were sent to other threads.
    fn answers(&self, query: &Value) -> ([(u16, Value); 2], usize) {
        let request = Request::new("POST", "/v1/query/aql");
        let request = request.with_body("application/json", query.to_string());
        let before = self.sent.get();
        let answers = [&self.divided, &self.alone].map(|service| {
            // Both services read the same clock.
            let response = send(service, &request, &mut Ticks::new());
            let body = serde_json::from_slice(&response.body).expect("JSON");
            (response.status, body)
        });
        (answers, self.sent.get() - before)
    }
}

fn send(service: &SqlService, request: &Request, ticks: &mut Ticks) -> Response {
    now_or_never(service.handle(request, ticks)).expect("a synchronous repository")
}

/// Queries of all kinds of results, each with the number of parts for other threads.
fn queries() -> Vec<(Value, usize)> {
    let from = format!("FROM EHR e CONTAINS COMPOSITION c CONTAINS {PRESSURE}");
    let divided = [
        format!(
            "SELECT avg({SYSTOLIC}), max({SYSTOLIC}), count(*), min(c/uid/value) FROM COMPOSITION c CONTAINS {PRESSURE}"
        ),
        String::from(
            "SELECT c/archetype_details/template_id/value AS t, count(*) AS n, count(DISTINCT c/composer/name) FROM COMPOSITION c ORDER BY n DESC",
        ),
        format!(
            "SELECT c/uid/value AS uid, {SYSTOLIC} AS systolic {from} ORDER BY systolic DESC, uid LIMIT 7 OFFSET 3"
        ),
        format!("SELECT DISTINCT c/composer/name AS name {from} ORDER BY name LIMIT 4"),
        format!("SELECT TOP 3 BACKWARD c/uid/value AS uid, o {from}"),
        String::from("SELECT count(*) FROM COMPOSITION c WHERE c/uid/value = 'none'"),
    ];
    let alone = [
        String::from("SELECT c/uid/value FROM COMPOSITION c LIMIT 5"),
        format!("SELECT c/uid/value {from} WHERE {SYSTOLIC} > 100 LIMIT 5 OFFSET 5"),
        format!("SELECT c/uid/value AS uid, c AS whole {from} WHERE {SYSTOLIC} > 150"),
        format!("SELECT DISTINCT c/composer/name AS name {from} WHERE {SYSTOLIC} > 100 LIMIT 4"),
        String::from("SELECT count(*) FROM EHR e"),
        format!("SELECT count(*) FROM EHR e CONTAINS ({PRESSURE} AND COMPOSITION d)"),
    ];
    let divided = divided.map(|q| (json!({"q": q}), 2));
    let alone = alone.map(|q| (json!({"q": q}), 0));
    divided.into_iter().chain(alone).collect()
}

#[test]
fn query_on_several_threads_has_the_response_of_one_thread() {
    let population = Population::new(Config::default().limits.query_work);
    for outcome in [Outcome::Answered, Outcome::Lost] {
        population.last.set(outcome);
        for (query, parts) in queries() {
            let ([found, expected], sent) = population.answers(&query);
            assert_eq!(found, expected, "{outcome:?}: {query}");
            assert_eq!((expected.0, sent), (200, parts), "{outcome:?}: {query}");
        }
    }
}

#[test]
fn limit_of_work_holds_for_all_threads_together() {
    let population = Population::new(2_000);
    let query = json!({"q": "SELECT c/uid/value AS uid FROM COMPOSITION c ORDER BY uid"});
    let ([found, expected], sent) = population.answers(&query);
    assert_eq!((found.0, expected.0, sent), (408, 408, 2));
    assert_eq!(found.1, expected.1);
}

#[test]
fn page_of_an_older_state_is_divided_too() {
    let population = Population::new(Config::default().limits.query_work);
    let q = format!(
        "SELECT c/uid/value AS uid, {SYSTOLIC} AS s FROM COMPOSITION c CONTAINS {PRESSURE} ORDER BY s, uid"
    );
    let ([first, _], _) = population.answers(&json!({"q": q, "fetch": 5}));
    let snapshot = &first.1["meta"]["_snapshot"];
    assert!(snapshot.is_string(), "{first:?}");
    let generator = Generator::new(7, 10, 150);
    let sample = generator.composition(0);
    let ehr_id = generator.ehr(sample.ehr).ehr_id;
    let post = Request::new(
        "POST",
        &format!("/rest/openehr/v1/ehr/{ehr_id}/composition"),
    );
    let mut document: Value = serde_json::from_str(&sample.json).expect("JSON");
    document.as_object_mut().expect("an object").remove("uid");
    population.done(post.with_body("application/json", document.to_string()));
    let page = json!({"q": q, "fetch": 5, "offset": 5, "snapshot": snapshot});
    let ([found, expected], sent) = population.answers(&page);
    assert_eq!(found, expected);
    assert_eq!((found.0, sent), (200, 2));
}
