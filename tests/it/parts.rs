//! Results with more rows than a page, in parts: they show one state whatever is written meanwhile,
//! and are refused where a part could not follow another.

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use crate::upgrade::text;
use aqlite::service::{Auth, Config, Environment, Limits, Request, Response, RowPart, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;
use serde_json::Value;

pub const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const QUERY: &str = "SELECT c/uid/value AS uid, o/data/events/time/value AS time FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o";
/// Rows of the largest page, and of the largest part.
pub const PAGE: u64 = 20;
/// Rows of the longest result.
const LONGEST: u64 = 90;
const COMPOSITIONS: usize = 100;

/// A host that sends bodies in parts.
pub struct Streaming(Ticks);

impl Environment for Streaming {
    fn now(&mut self) -> i64 {
        self.0.now()
    }

    fn new_uuid(&mut self) -> String {
        self.0.new_uuid()
    }

    fn sends_parts(&self) -> bool {
        true
    }
}

/// A service over a repository with [`COMPOSITIONS`] compositions.
pub struct Host<R> {
    service: Service<R>,
    environment: Streaming,
}

impl<R: Repository> Host<R> {
    fn over(repository: R) -> Host<R> {
        let limits = Limits {
            stream_maximum: LONGEST,
            ..Limits::default()
        };
        Host::limited(repository, limits)
    }

    /// Creates a host with limits of its own, whose page has [`PAGE`] rows.
    pub fn limited(repository: R, limits: Limits) -> Host<R> {
        let limits = Limits {
            fetch_maximum: PAGE,
            ..limits
        };
        let config = Config {
            auth: Auth::Open,
            admin: true,
            limits,
            ..Config::default()
        };
        let mut host = Host {
            service: Service::new(repository, config),
            environment: Streaming(Ticks::new()),
        };
        let template = text("template/small.opt");
        host.write(
            "POST",
            "definition/template/adl1.4",
            "application/xml",
            &template,
        );
        let status = text("rest/status.json");
        host.write("PUT", &format!("ehr/{EHR}"), "application/json", &status);
        (0..COMPOSITIONS).for_each(|_| host.write_composition());
        host
    }

    pub fn send(&mut self, request: &Request) -> Response {
        let response = self.service.handle(request, &mut self.environment);
        now_or_never(response).expect("a synchronous repository")
    }

    fn write(&mut self, method: &str, path: &str, media_type: &str, body: &str) {
        let request = Request::new(method, &format!("/rest/openehr/v1/{path}"));
        let response = self.send(&request.with_body(media_type, body));
        assert!(response.status < 300, "{method} {path}: {response:?}");
    }

    fn write_composition(&mut self) {
        self.write_composition_of(&text("rest/weight.json"));
    }

    pub fn write_composition_of(&mut self, text: &str) {
        let path = format!("ehr/{EHR}/composition");
        self.write("POST", &path, "application/json", text);
    }
}

/// Returns the request for the rows of a query, as newline-delimited JSON unless stated otherwise.
pub fn request(query: &str, fetch: u64, offset: u64) -> Request {
    let body = serde_json::json!({ "q": query, "fetch": fetch, "offset": offset });
    Request::new("POST", "/rest/openehr/v1/query/aql")
        .with_body("application/json", body.to_string())
        .with_header("Accept", "application/x-ndjson")
}

fn lines(response: &Response) -> Vec<String> {
    let text = String::from_utf8_lossy(&response.body);
    text.lines().map(str::to_owned).collect()
}

/// Sends a request for all its parts; `between` acts after each.
fn in_parts<R: Repository>(
    host: &mut Host<R>,
    mut request: Request,
    mut between: impl FnMut(&mut Host<R>),
) -> (Vec<String>, usize) {
    let (mut rows, mut parts) = (Vec::new(), 0);
    loop {
        let response = host.send(&request);
        assert_eq!(response.status, 200, "{response:?}");
        rows.extend(lines(&response));
        parts += 1;
        let Some(rest): Option<RowPart> = response.rest else {
            return (rows, parts);
        };
        request.part = Some(rest);
        between(host);
    }
}

fn parts_show_one_state(repository: impl Repository) {
    let mut host = Host::over(repository);
    let whole: Vec<String> = (0..COMPOSITIONS as u64 / PAGE)
        .flat_map(|page| lines(&host.send(&request(QUERY, PAGE, page * PAGE))))
        .collect();
    assert_eq!(whole.len(), COMPOSITIONS);
    let (rows, parts) = in_parts(&mut host, request(QUERY, 90, 0), |host| {
        host.write_composition();
    });
    assert_eq!((rows.as_slice(), parts), (&whole[..90], 5));
    // The end of the result comes before the number of rows that is asked for, and inside a part.
    let (rows, parts) = in_parts(&mut host, request(QUERY, 50, 70), |_| {});
    assert_eq!((rows.len(), parts), (COMPOSITIONS + 4 - 70, 2));
    assert_eq!(rows[..30], whole[70..]);
    // A page is not sent in parts.
    let (rows, parts) = in_parts(&mut host, request(QUERY, PAGE, 0), |_| {});
    assert_eq!((rows.as_slice(), parts), (&whole[..PAGE as usize], 1));
}

#[test]
fn parts_of_a_result_show_the_state_of_the_first_one() {
    parts_show_one_state(Memory::new());
    parts_show_one_state(Sqlite::in_memory().repository());
    parts_show_one_state(Sqlite::in_memory().segmented());
}

#[test]
fn parts_of_long_rows_have_fewer_rows() {
    // A part has the texts of a quarter of the result: about four documents.
    let limits = Limits {
        stream_maximum: LONGEST,
        result: 40_000,
        ..Limits::default()
    };
    let query = "SELECT c, c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c";
    for repository in [
        Sqlite::in_memory().repository(),
        Sqlite::in_memory().segmented(),
    ] {
        let mut host = Host::limited(repository, limits.clone());
        let pages: Vec<String> = (0..COMPOSITIONS as u64 / 5)
            .flat_map(|page| lines(&host.send(&request(query, 5, page * 5))))
            .collect();
        assert_eq!(pages.len(), COMPOSITIONS);
        let page = host.send(&request(query, PAGE, 0));
        assert_eq!(page.status, 400, "a page of {PAGE} rows is too large");
        let (rows, parts) = in_parts(&mut host, request(query, 90, 0), |_| {});
        assert_eq!(rows, pages[..90]);
        assert!(parts >= 18, "{parts} parts");
    }
}

#[test]
fn a_part_whose_state_was_deleted_is_an_error() {
    let mut host = Host::over(Memory::new());
    let asked = request(QUERY, 90, 0);
    let first = host.send(&asked);
    let deletion = Request::new("DELETE", &format!("/v1/admin/ehr/{EHR}"));
    assert_eq!(host.send(&deletion).status, 204);
    let next = Request {
        part: first.rest,
        ..asked
    };
    let response = host.send(&next);
    let body: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!((response.status, body["code"].as_i64()), (410, Some(410)));
    assert!(response.rest.is_none());
}

#[test]
fn results_that_cannot_follow_in_parts_are_pages() {
    let mut host = Host::over(Memory::new());
    let ordered = format!("{QUERY} ORDER BY uid");
    let distinct = QUERY.replace("SELECT", "SELECT DISTINCT");
    let counted = "SELECT count(*) AS n FROM COMPOSITION c";
    let mut json = request(QUERY, 50, 0);
    json.headers.retain(|(name, _)| name != "Accept");
    for (refused, remedy) in [
        (json, "application/x-ndjson"),
        (request(&ordered, 50, 0), "without ORDER BY"),
        (request(&distinct, 50, 0), "DISTINCT"),
        (request(counted, 50, 0), "aggregates"),
        (request(QUERY, LONGEST + 1, 0), "90 rows are the most"),
    ] {
        let response = host.send(&refused);
        let text = String::from_utf8_lossy(&response.body);
        assert_eq!(response.status, 400, "{text}");
        assert!(text.contains(remedy), "{text}");
    }
    // A host that does not send parts must not end with the first one.
    let asked = request(QUERY, 50, 0);
    let plain = host.service.handle(&asked, &mut host.environment.0);
    let response = now_or_never(plain).expect("a synchronous repository");
    assert_eq!(response.status, 400);
}
