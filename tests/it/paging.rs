//! Pages under one snapshot form the result of one state, for random queries and random writes
//! between the pages: in memory, in the database, and in segments.

use crate::rest::Ticks;
use crate::sql::{Dice, EHRS};
use crate::sqlite::{Sqlite, compact};
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;
use serde_json::{Value, json};
use std::cell::Cell;

/// Queries whose results change by creations, updates and deletions. The sorted one has many equal
/// keys, and the last has one row for several documents.
const QUERIES: [&str; 4] = [
    "SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c",
    "SELECT o/data/events/data/items[at0004]/value/magnitude AS kg, c/uid/value FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o ORDER BY kg DESC",
    "SELECT c/uid/value FROM EHR e CONTAINS VERSION v[ALL_VERSIONS] CONTAINS COMPOSITION c",
    "SELECT DISTINCT o/data/events/data/items[at0004]/value/magnitude AS kg FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o",
];

/// The pages of a query that were read so far.
struct Sequence {
    request: Value,
    /// The rows of the whole result at the time of the snapshot.
    expected: Vec<Value>,
    seen: Vec<Value>,
}

struct Host<R: Repository> {
    service: Service<R>,
    environment: Ticks,
    dice: Dice,
    /// The EHR and the latest version of each composition that is not deleted.
    compositions: Vec<(&'static str, String)>,
}

impl<R: Repository> Host<R> {
    fn new(repository: R, seed: u64) -> Host<R> {
        let config = Config {
            auth: Auth::Open,
            ..Config::default()
        };
        let mut host = Host {
            service: Service::new(repository, config),
            environment: Ticks::new(),
            dice: Dice::of(seed),
            compositions: Vec::new(),
        };
        let template = include_str!("../cases/template/small.opt");
        let upload = Request::new("POST", "/v1/definition/template?type=opt14");
        host.ask(201, upload.with_body("application/xml", template));
        for ehr in EHRS {
            host.ask(201, Request::new("PUT", &format!("/v1/ehr/{ehr}")));
        }
        host
    }

    fn ask(&mut self, status: u16, request: Request) -> Response {
        let answer = now_or_never(self.service.handle(&request, &mut self.environment)).unwrap();
        let body = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, status, "{}: {body}", request.path);
        answer
    }

    /// Creates, updates or deletes a composition.
    fn write(&mut self) {
        let magnitude = format!("{}.5", self.dice.roll(4) + 60);
        let text = include_str!("../cases/rest/weight.json").replace("72.50", &magnitude);
        let count = self.compositions.len() as u64;
        let change = self.dice.roll(6);
        if change < 3 || count == 0 {
            let ehr = EHRS[self.dice.roll(3) as usize];
            let create = Request::new("POST", &format!("/v1/ehr/{ehr}/composition"));
            let answer = self.ask(201, create.with_body("application/json", text));
            return self.compositions.push((ehr, version(&answer)));
        }
        let at = self.dice.roll(count) as usize;
        let (ehr, uid) = self.compositions[at].clone();
        if change == 3 {
            let path = format!("/v1/ehr/{ehr}/composition/{uid}");
            self.ask(204, Request::new("DELETE", &path));
            self.compositions.swap_remove(at);
            return;
        }
        let object = uid.split("::").next().unwrap();
        let update = Request::new("PUT", &format!("/v1/ehr/{ehr}/composition/{object}"));
        let update = update.with_header("If-Match", &uid);
        let answer = self.ask(204, update.with_body("application/json", text));
        self.compositions[at].1 = version(&answer);
    }

    fn query(&mut self, request: &Value) -> Value {
        let ask = Request::new("POST", "/v1/query/aql");
        let answer = self.ask(200, ask.with_body("application/json", request.to_string()));
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Reads a whole result, and starts a sequence of its pages.
    fn sequence(&mut self) -> Sequence {
        let query = QUERIES[self.dice.roll(QUERIES.len() as u64) as usize];
        let mut request = json!({ "q": query, "fetch": 10_000 });
        if self.dice.roll(3) == 0 {
            request["ehr_id"] = json!(EHRS[self.dice.roll(3) as usize]);
        }
        let whole = self.query(&request);
        request["snapshot"] = whole["meta"]["_snapshot"].clone();
        Sequence {
            request,
            expected: whole["rows"].as_array().unwrap().clone(),
            seen: Vec::new(),
        }
    }

    /// Reads the next page of a sequence. Returns whether it was the last.
    fn next_page(&mut self, sequence: &mut Sequence) -> bool {
        let fetch = self.dice.roll(7) + 1;
        sequence.request["fetch"] = json!(fetch);
        sequence.request["offset"] = json!(sequence.seen.len());
        let page = self.query(&sequence.request);
        let rows = page["rows"].as_array().unwrap();
        sequence.seen.extend_from_slice(rows);
        (rows.len() as u64) < fetch
    }
}

/// Returns the uid of the version that a commit created.
fn version(answer: &Response) -> String {
    let tag = answer.header("ETag").unwrap();
    tag.trim_matches('"').to_owned()
}

/// Reads sequences of pages at the same time, with writes between the pages. Returns how many
/// sequences ended, and how many of these had rows that a later state does not have.
fn random_pages<R: Repository>(repository: R, seed: u64, after: impl Fn(&R)) -> (usize, usize) {
    let mut host = Host::new(repository, seed);
    let (mut open, mut counts) = (Vec::<Sequence>::new(), (0, 0));
    for _ in 0..150 {
        host.write();
        after(host.service.repository());
        if open.len() < 3 {
            open.push(host.sequence());
        }
        let at = host.dice.roll(open.len() as u64) as usize;
        if host.next_page(&mut open[at]) {
            let mut done = open.swap_remove(at);
            assert_eq!(done.seen, done.expected, "seed {seed}: {}", done.request);
            let request = done.request.as_object_mut().unwrap();
            request.retain(|key, _| key == "q" || key == "ehr_id");
            let now = host.query(&done.request);
            let is_past = now["rows"].as_array() != Some(&done.expected);
            counts = (counts.0 + 1, counts.1 + usize::from(is_past));
        }
    }
    counts
}

#[test]
fn pages_under_a_snapshot_lose_and_repeat_nothing_under_random_writes() {
    let compacted = |seed| {
        let serial = Cell::new(0);
        random_pages(Sqlite::in_memory().segmented(), seed, |repository| {
            compact(repository, &serial);
        })
    };
    let runs: [&dyn Fn(u64) -> (usize, usize); 3] = [
        &|seed| random_pages(Memory::new(), seed, |_| {}),
        &|seed| random_pages(Sqlite::in_memory().repository(), seed, |_| {}),
        &compacted,
    ];
    for run in runs {
        let counts: Vec<_> = (0..4).map(run).collect();
        let ended: usize = counts.iter().map(|(ended, _)| ended).sum();
        let past: usize = counts.iter().map(|(_, past)| past).sum();
        // Most results differ from those of the present state, so the pages show an earlier one.
        assert!(ended > 30 && past * 2 > ended, "{ended} ended, {past} past");
    }
}
