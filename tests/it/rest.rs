//! The REST interface by its cases in `tests/cases/rest/`: each scenario on a fresh repository, on
//! both mounts; in this process, and over HTTP against hosts that `tests/e2e/cases.test.mjs`
//! starts.
//!
//! A file has scenarios, a scenario steps, a step a request and the expectations of its answer:
//!
//! ```text
//! === what the scenario shows                     (options behind it: `mount: v1`, `mount: its`, `admin: off`, `auth: off`,
//!                                                  `archetypes: exact`, and with it `flat: ehrbase`; `tables: on` for hosts that write
//!                                                  Arrow and Parquet, `tables: off` for the others)
//! > PUT /ehr/{ehr}                                (below the mount; `///health` is absolute)
//! Prefer: return=representation                   (headers; then, behind an empty line, the body; `@file` reads one)
//!                                                 (a body has the Content-Type that it looks like, where the case says none; `none` sends none;
//!                                                 with `Content-Encoding: gzip` it is compressed)
//!                                                 (a body may hold files in `<<file>>`; `@file with a => b` changes one; `%{3 ab}` is `ababab`)
//! < 201                                           (or by mount: `< 400 v1, 422 its`)
//! ETag: "{ehr}"                                   (a header; `*` matches any value but an empty one, `<date of TIME>` for a time as HTTP writes it,
//!                                                 `<digest>` for 32 hexadecimal digits)
//! /ehr_id/value = "{ehr}"                         (a JSON pointer into the body; `/x = *` for any value but null and "", `/x absent`; `<time>` is
//!                                                 extended ISO 8601 with its zone, `<number>` a number)
//! body: some text                                 (the body contains it; `body lacks`, `body is` likewise, `body is @file` to the byte)
//! table: [["a",1]]                                (the rows of a body that is Arrow or Parquet, as JSON)
//! uid := ETag                                     (keeps a header, without quotes, or a pointer as `{uid}`; `until ::` cuts it)
//! ```

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use crate::checkpoints::{Saved, open, save};
use crate::generated::{nested_folders, repeated};
use crate::openapi::Bodies;
use crate::over_http;
use crate::same_cells;
use crate::sqlite::{Sqlite, compact};
use crate::tables;
use aqlite::service::{Auth, Config, Environment, Limits, Pause, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;
use aqlite::store::sql::SqlRepository;
use aqlite::template::flat::FlatDialect;
use chrono::DateTime;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

const BASE: &str = "http://test.example";

/// A clock that advances by a millisecond at each reading, and UUIDs that count.
pub struct Ticks {
    now: i64,
    uuids: u64,
}

/// The clock and UUIDs of [`Ticks`], and a count of the pauses.
pub struct Counting {
    ticks: Ticks,
    pub pauses: usize,
    sends_parts: bool,
}

impl Counting {
    /// Starts without a pause. `sends_parts`: whether the host sends bodies in parts.
    pub fn new(sends_parts: bool) -> Counting {
        Counting {
            ticks: Ticks::new(),
            pauses: 0,
            sends_parts,
        }
    }
}

impl Environment for Counting {
    fn now(&mut self) -> i64 {
        self.ticks.now()
    }

    fn new_uuid(&mut self) -> String {
        self.ticks.new_uuid()
    }

    fn pause(&mut self) -> Pause {
        self.pauses += 1;
        Box::pin(std::future::ready(()))
    }

    fn sends_parts(&self) -> bool {
        self.sends_parts
    }
}

impl Ticks {
    /// Starts on a fixed day.
    pub fn new() -> Ticks {
        Ticks {
            now: 1_796_000_000_000_000,
            uuids: 0,
        }
    }
}

impl Environment for Ticks {
    fn now(&mut self) -> i64 {
        self.now += 1_000;
        self.now
    }

    fn new_uuid(&mut self) -> String {
        self.uuids += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.uuids)
    }

    /// The time zone of Stockholm in 2025.
    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        let is_summer = (1_743_296_400_000..1_761_440_400_000).contains(&millis);
        (zone == "Europe/Stockholm").then_some(if is_summer { 7200 } else { 3600 })
    }
}

#[test]
fn the_cases_hold_in_memory() {
    run_all(&|config| Box::new(Synchronous(Service::new(Memory::new(), config))));
}

#[test]
fn the_cases_hold_on_sqlite() {
    run_all(&|config| {
        Box::new(Synchronous(Service::new(
            Sqlite::in_memory().repository(),
            config,
        )))
    });
}

#[test]
fn the_cases_hold_on_segments_that_are_written_after_each_request() {
    run_all(&|config| {
        Box::new(Compacted {
            service: Service::new(Sqlite::in_memory().segmented(), config),
            serial: Cell::new(0),
        })
    });
}

/// A service that writes segments after each request, so that queries read no rows.
struct Compacted {
    service: Service<SqlRepository<Sqlite>>,
    serial: Cell<u64>,
}

impl Handler for Compacted {
    fn handle(&self, request: &Request, environment: &mut dyn Environment) -> Response {
        let answer = now_or_never(self.service.handle(request, environment));
        compact(self.service.repository(), &self.serial);
        answer.expect("a synchronous repository")
    }
}

#[test]
#[ignore = "needs hosts: tests/e2e/cases.test.mjs starts them and names them in AQLITE_HOSTS"]
fn the_cases_hold_over_http() {
    let named = std::env::var("AQLITE_HOSTS")
        .expect("AQLITE_HOSTS is `open=HOST:PORT exact=… plain=… closed=…`");
    let host = |config: &Config| match (config.auth, config.admin) {
        (Auth::Refuse, _) => "closed=",
        (_, false) => "plain=",
        _ if config.exact_archetypes => "exact=",
        _ => "open=",
    };
    let bodies = Rc::new(Bodies::new());
    run_all(&|config| {
        let authority = named
            .split(' ')
            .find_map(|pair| pair.strip_prefix(host(&config)))
            .expect("a host of this kind");
        let host = Remote {
            authority: authority.to_owned(),
            bodies: Rc::clone(&bodies),
        };
        if config.admin && config.auth == Auth::Open {
            let emptied = host.handle(&Request::new("POST", "/v1/admin/reset"), &mut Ticks::new());
            assert_eq!(emptied.status, 204, "{authority} cannot be emptied");
        }
        Box::new(host)
    });
    bodies.assert_fulfilled();
}

#[test]
fn the_cases_hold_in_memory_that_is_built_anew_from_its_journal_before_every_request() {
    run_all(&|config| {
        Box::new(Rebuilt {
            config,
            lines: RefCell::default(),
        })
    });
}

/// A service that is built again from its journal before each request.
struct Rebuilt {
    config: Config,
    lines: RefCell<String>,
}

impl Handler for Rebuilt {
    fn handle(&self, request: &Request, environment: &mut dyn Environment) -> Response {
        let memory = Memory::journaled();
        memory
            .replay_journal(&self.lines.borrow())
            .expect("the lines that were written");
        let service = Service::new(memory, self.config.clone());
        let response =
            now_or_never(service.handle(request, environment)).expect("a synchronous repository");
        let line = service.repository().take_journal_line().expect("whole");
        let mut lines = self.lines.borrow_mut();
        lines.push_str(&line.unwrap_or_default());
        response
    }
}

#[test]
fn the_cases_hold_in_memory_that_is_opened_from_a_checkpoint_before_every_request() {
    run_all(&|config| {
        let saved = save(&Memory::journaled()).expect("a checkpoint");
        Box::new(Reopened {
            config,
            saved: RefCell::new((saved, String::new())),
            requests: Cell::new(0),
        })
    });
}

/// A service that is opened before each request from a checkpoint and the lines behind it. Every
/// second request is followed by a checkpoint.
struct Reopened {
    config: Config,
    saved: RefCell<(Saved, String)>,
    requests: Cell<u32>,
}

impl Handler for Reopened {
    fn handle(&self, request: &Request, environment: &mut dyn Environment) -> Response {
        let (saved, lines) = &mut *self.saved.borrow_mut();
        let memory = open(saved).expect("a checkpoint");
        memory
            .replay_journal(lines)
            .expect("the lines that were written");
        let service = Service::new(memory, self.config.clone());
        let response =
            now_or_never(service.handle(request, environment)).expect("a synchronous repository");
        let memory = service.repository();
        let line = memory.take_journal_line().expect("whole");
        lines.push_str(&line.unwrap_or_default());
        self.requests.set(self.requests.get() + 1);
        if self.requests.get().is_multiple_of(2) {
            *saved = save(memory).expect("a checkpoint");
            lines.clear();
        }
        response
    }
}

/// A service whose futures never wait.
pub trait Handler {
    /// Answers a request.
    fn handle(&self, request: &Request, environment: &mut dyn Environment) -> Response;

    /// Returns scheme and authority before the mounts.
    fn base(&self) -> String {
        BASE.to_owned()
    }

    /// Returns whether the host writes Arrow and Parquet.
    fn writes_tables(&self) -> bool {
        true
    }
}

/// A host at `HOST:PORT`, with a clock and identifiers of its own.
struct Remote {
    authority: String,
    /// The schemas that its answers must fulfill.
    bodies: Rc<Bodies>,
}

impl Handler for Remote {
    fn handle(&self, request: &Request, _: &mut dyn Environment) -> Response {
        let pairs: Vec<String> = request
            .query
            .iter()
            .map(|(key, value)| format!("{}={}", escaped(key), escaped(value)))
            .collect();
        let target = format!("{}?{}", request.path, pairs.join("&"));
        let headers: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let target = target.trim_end_matches('?');
        let authority = &self.authority;
        let sent = over_http::send(authority, &request.method, target, &headers, &request.body);
        let response = sent.unwrap_or_else(|e| panic!("{} {target}: {e}", request.method));
        self.bodies.check(request, &response);
        response
    }

    fn base(&self) -> String {
        format!("http://{}", self.authority)
    }

    fn writes_tables(&self) -> bool {
        std::env::var_os("AQLITE_TABLES").is_some()
    }
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

struct Synchronous<R>(Service<R>);

impl<R: Repository> Handler for Synchronous<R> {
    fn handle(&self, request: &Request, environment: &mut dyn Environment) -> Response {
        now_or_never(self.0.handle(request, environment)).expect("a synchronous repository")
    }
}

/// Runs every case file on services that `start` creates.
pub fn run_all(start: &dyn Fn(Config) -> Box<dyn Handler>) {
    let folder = folder();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("tests/cases/rest")
        .flatten()
        .map(|e| e.path())
        .collect();
    files.sort();
    let (mut complaints, mut steps, mut number) = (Vec::new(), 0, 0);
    for file in files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "rest"))
    {
        let text = std::fs::read_to_string(file).expect("a case file");
        for scenario in text.split("\n=== ").skip(1) {
            for mount in ["v1", "its"] {
                let mut run = Run {
                    mount,
                    number,
                    kept: BTreeMap::new(),
                    complaints: Vec::new(),
                };
                number += 1;
                steps += run.scenario(scenario, start);
                let name = file
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                complaints.extend(run.complaints.iter().map(|c| {
                    format!(
                        "{name} [{mount}] {}: {c}",
                        scenario.lines().next().unwrap_or_default()
                    )
                }));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(steps > 100, "only {steps} steps ran");
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/rest")
}

/// Compresses a text with gzip (RFC 1952).
pub fn gzip(text: &[u8]) -> Vec<u8> {
    let bits = |crc: u32| {
        (0..8).fold(crc, |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    };
    let crc = !text
        .iter()
        .fold(!0, |crc, byte| bits(crc ^ u32::from(*byte)));
    let length = u32::try_from(text.len()).expect("a short text");
    let packed = miniz_oxide::deflate::compress_to_vec(text, 6);
    [
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255],
        packed.as_slice(),
        &crc.to_le_bytes(),
        &length.to_le_bytes(),
    ]
    .concat()
}

/// Returns the media type that fits a body.
fn usual_type(name: &str, body: &[u8]) -> &'static str {
    match body.trim_ascii_start().first() {
        _ if name.ends_with(".ndjson") => "application/x-ndjson",
        Some(b'<') => "application/xml",
        Some(b'{' | b'[') => "application/json",
        _ => "text/plain",
    }
}

struct Run {
    mount: &'static str,
    /// The number of earlier scenarios. Each has an EHR of its own, since the access log outlives a
    /// reset.
    number: u64,
    kept: BTreeMap<String, String>,
    complaints: Vec<String>,
}

impl Run {
    fn scenario(&mut self, scenario: &str, start: &dyn Fn(Config) -> Box<dyn Handler>) -> usize {
        let option = |text: &str| scenario.lines().any(|line| line.trim() == text);
        if option(if self.mount == "v1" {
            "mount: its"
        } else {
            "mount: v1"
        }) {
            return 0;
        }
        let service = start(Config {
            system_id: String::from("test.example"),
            base_url: BASE.to_owned(),
            auth: if option("auth: off") {
                Auth::Refuse
            } else {
                Auth::Open
            },
            admin: !option("admin: off"),
            limits: Limits {
                body: 200_000,
                template: 150_000,
                query_work: 20_000_000,
                parameters: 100_000,
                ..Limits::default()
            },
            exact_archetypes: option("archetypes: exact"),
            flat_dialect: if option("flat: ehrbase") {
                FlatDialect::Ehrbase
            } else {
                FlatDialect::Better
            },
            origins: vec![String::from("https://page.example")],
            ..Config::default()
        });
        let unwanted = match service.writes_tables() {
            true => "tables: off",
            false => "tables: on",
        };
        if option(unwanted) {
            return 0;
        }
        let mut environment = Ticks::new();
        self.kept.insert(
            String::from("ehr"),
            format!(
                "6ba7b810-9dad-41d1-80b4-{:012x}",
                0x00c0_4fd4_30c8_u64 + self.number
            ),
        );
        self.kept.insert(
            String::from("base"),
            format!("{}{}", service.base(), self.prefix()),
        );
        let steps: Vec<&str> = scenario.split("\n> ").skip(1).collect();
        for step in &steps {
            let Some((ask, expected)) = step.split_once("\n< ") else {
                self.complaints.push(format!(
                    "`{}` expects nothing",
                    step.lines().next().unwrap_or_default()
                ));
                continue;
            };
            let ask = self.filled(ask);
            let response = service.handle(&self.request(&ask), &mut environment);
            self.check(ask.lines().next().unwrap_or_default(), &response, expected);
        }
        steps.len()
    }

    fn prefix(&self) -> &'static str {
        if self.mount == "v1" {
            "/v1"
        } else {
            "/rest/openehr/v1"
        }
    }

    fn filled(&self, text: &str) -> String {
        self.kept
            .iter()
            .fold(text.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), value)
            })
    }

    fn request(&self, ask: &str) -> Request {
        let (head, body) = ask.split_once("\n\n").unwrap_or((ask, ""));
        let mut lines = head.lines();
        let (method, target) = lines
            .next()
            .unwrap_or_default()
            .split_once(' ')
            .expect("method and path");
        let target = match target.strip_prefix("//") {
            Some(absolute) => absolute.to_owned(),
            None => format!("{}{target}", self.prefix()),
        };
        let mut request = Request::new(method, &target);
        for line in lines {
            let (name, value) = line.split_once(": ").expect("a header");
            request = request.with_header(name, value);
        }
        request.body = self.body(body.trim()).into_bytes();
        match request.header("Content-Type") {
            Some("none") => request
                .headers
                .retain(|(name, _)| !name.eq_ignore_ascii_case("Content-Type")),
            None if !request.body.is_empty() => {
                let usual = usual_type(body.trim(), &request.body);
                request = request.with_header("Content-Type", usual);
            }
            _ => {}
        }
        if request.header("Content-Encoding") == Some("gzip") {
            request.body = gzip(&request.body);
        }
        request
    }

    /// Expands a body: `@file` reads a file, `@deep` and `@large` generate large ones.
    fn body(&self, text: &str) -> String {
        match text.strip_prefix('@') {
            Some("deep") => format!("{}{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000)),
            Some("deep-xml") => format!("{}{}", "<a>".repeat(10_000), "</a>".repeat(10_000)),
            Some("deep-aql") => format!(
                r#"{{"q":"SELECT e FROM EHR e WHERE {}e/ehr_id/value = '1'{}"}}"#,
                "(".repeat(10_000),
                ")".repeat(10_000)
            ),
            Some(folders) if folders.starts_with("folders ") => nested_folders(folders),
            Some("large") => "x".repeat(200_001),
            Some("blank-lines") => "\n".repeat(1_001),
            Some(file) => {
                let (file, change) = file.split_once(" with ").unwrap_or((file, ""));
                let text =
                    std::fs::read_to_string(folder().join(file.trim())).expect("a body file");
                match change.split_once(" => ") {
                    Some((from, to)) => {
                        assert!(text.contains(from), "`{from}` is not in {file}");
                        self.filled(&text.replace(from, &repeated(to)))
                    }
                    None => self.filled(&text),
                }
            }
            None => {
                let text = repeated(text);
                let mut out = String::new();
                let mut parts = text.split("<<");
                out.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    let (file, rest) = part.split_once(">>").expect("`<<file>>`");
                    out.push_str(&self.body(&format!("@{file}")));
                    out.push_str(rest);
                }
                out
            }
        }
    }

    fn check(&mut self, step: &str, response: &Response, expected: &str) {
        let body = String::from_utf8_lossy(&response.body).into_owned();
        let mut lines = expected
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with("mount:"));
        let statuses = lines.next().unwrap_or_default();
        let wanted = statuses
            .split(',')
            .map(str::trim)
            .find_map(|s| match s.split_once(' ') {
                Some((status, mount)) => (mount == self.mount).then_some(status),
                None => Some(s),
            });
        let mut complaints = Vec::new();
        if wanted != Some(response.status.to_string().as_str()) {
            complaints.push(format!(
                "{} instead of {statuses}: {}",
                response.status,
                body.chars().take(600).collect::<String>()
            ));
        }
        let json: Value = serde_json::from_str(&body).unwrap_or_default();
        for line in lines {
            if let Some(complaint) = self.expectation(line, response, &body, &json) {
                complaints.push(complaint);
            }
        }
        self.complaints
            .extend(complaints.into_iter().map(|c| format!("{step}: {c}")));
    }

    /// Checks one expectation. Returns a complaint if it is not met.
    fn expectation(
        &mut self,
        line: &str,
        response: &Response,
        body: &str,
        json: &Value,
    ) -> Option<String> {
        if let Some((name, source)) = line.split_once(" := ") {
            return self.keep(name.trim(), source, response, body, json);
        }
        let line = self.filled(line);
        if line.starts_with("body") {
            return self.check_body(&line, body);
        }
        if let Some(rows) = line.strip_prefix("table: ") {
            return check_table(rows, response);
        }
        if let Some(name) = line.strip_suffix(" absent") {
            let found = match name.starts_with('/') {
                true => json.pointer(name).map(Value::to_string),
                false => response.header(name).map(str::to_owned),
            };
            return found.map(|found| format!("{name} is {found}"));
        }
        if let Some((pointer, value)) = line.split_once(" = ") {
            return check_pointer(pointer, value, body, json);
        }
        match line.split_once(": ") {
            Some((name, value)) => check_header(name, value, response),
            None => Some(format!("`{line}` is not an expectation")),
        }
    }

    /// Keeps a header, a member or the body of an answer under a name.
    fn keep(
        &mut self,
        name: &str,
        source: &str,
        response: &Response,
        body: &str,
        json: &Value,
    ) -> Option<String> {
        let (source, end) = source.split_once(" until ").unwrap_or((source, "\n"));
        if source == "body" {
            self.kept
                .insert(name.to_owned(), body.trim_end().to_owned());
            return None;
        }
        let value = match source.starts_with('/') {
            true => json
                .pointer(source)
                .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)),
            false => response
                .header(source)
                .map(|v| v.trim_matches('"').to_owned()),
        };
        let value = value.map(|v| v.split(end).next().unwrap_or_default().to_owned());
        let missing = value
            .is_none()
            .then(|| format!("there is no {source} to keep"));
        self.kept.insert(name.to_owned(), value.unwrap_or_default());
        missing
    }

    fn check_body(&self, line: &str, body: &str) -> Option<String> {
        if let Some(text) = line.strip_prefix("body is").map(str::trim_start) {
            let (found, wanted) = if text.starts_with('@') {
                (body, self.body(text))
            } else {
                (body.trim_end(), text.to_owned())
            };
            return (found != wanted).then(|| {
                format!(
                    "the body is another one: {}",
                    first_difference(found, &wanted)
                )
            });
        }
        if let Some(text) = line.strip_prefix("body lacks ") {
            return body.contains(text).then(|| {
                format!(
                    "the body contains `{text}`: {}",
                    body.chars().take(600).collect::<String>()
                )
            });
        }
        if let Some(text) = line.strip_prefix("body: ") {
            return (!body.contains(text)).then(|| {
                format!(
                    "the body does not contain `{text}`: {}",
                    body.chars().take(600).collect::<String>()
                )
            });
        }
        Some(format!("`{line}` is not an expectation"))
    }
}

/// Checks the rows of a table of Arrow or Parquet.
fn check_table(rows: &str, response: &Response) -> Option<String> {
    let expected = same_cells::cells(rows).expect("an array of rows");
    match tables::rows_of(response) {
        Ok(table) => same_cells::difference(&expected, &table.rows),
        Err(problem) => Some(problem),
    }
}

fn check_pointer(pointer: &str, value: &str, body: &str, json: &Value) -> Option<String> {
    let found = json.pointer(pointer);
    let equal = match value {
        "*" => found.is_some_and(|value| !value.is_null() && value != ""),
        "<time>" => found
            .and_then(Value::as_str)
            .is_some_and(|text| DateTime::parse_from_rfc3339(text).is_ok()),
        "<number>" => found.is_some_and(Value::is_number),
        value => found == serde_json::from_str(value).ok().as_ref(),
    };
    (!equal).then(|| {
        format!(
            "{pointer} is {} instead of {value}: {}",
            found.map_or_else(|| String::from("absent"), Value::to_string),
            body.chars().take(600).collect::<String>()
        )
    })
}

fn check_header(name: &str, value: &str, response: &Response) -> Option<String> {
    let found = response.header(name);
    let date = value
        .strip_prefix("<date of ")
        .and_then(|time| http_date(time.strip_suffix('>')?));
    let equal = match value.split_once("<digest>") {
        Some((front, back)) => found
            .and_then(|f| f.strip_prefix(front)?.strip_suffix(back))
            .is_some_and(is_digest),
        None if value == "*" => found.is_some_and(|found| !found.is_empty()),
        None => found == Some(date.as_deref().unwrap_or(value)),
    };
    (!equal).then(|| format!("{name} is {found:?} instead of {value}"))
}

/// Returns whether a text consists of 32 hexadecimal digits.
fn is_digest(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn http_date(time: &str) -> Option<String> {
    let time = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
    Some(time.format("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

fn first_difference(found: &str, wanted: &str) -> String {
    let pair = found
        .lines()
        .zip(wanted.lines())
        .enumerate()
        .find(|(_, (a, b))| a != b);
    pair.map_or_else(
        || String::from("one of them has more lines"),
        |(n, (a, b))| format!("line {}: {a}\ninstead of {b}", n + 1),
    )
}
