//! The memory of a server while many queries with large results run at the same time.

use super::over_http;
use super::server::{Folder, ITS, Server, compositions};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::scope;

/// Compositions of six kilobytes: their result takes more than the queries of a server with
/// `--memory 128M` may have together, if two run at a time.
const COMPOSITIONS: usize = 1_500;

/// Queries at the same time.
const QUERIES: usize = 24;

/// Bytes of the answer of a guide to one line, and the lines of a request.
const ANSWER: usize = 650_000;
const LINES: usize = 200;

/// Megabytes that the process may take beside `--memory`: the program itself, and answers on their
/// way to their clients.
const BESIDE: u64 = 100;

/// Loads compositions into one EHR.
fn fill(server: &Server) {
    server.store_templates();
    let ehr_id = server.create_ehr();
    let lines: String = compositions(COMPOSITIONS)
        .iter()
        .map(|text| {
            let composition: Value = serde_json::from_str(text).expect("JSON");
            let line = json!({ "ehr_id": ehr_id, "composition": composition });
            format!("{line}\n")
        })
        .collect();
    let headers = [("Content-Type", "application/x-ndjson")];
    let body = lines.as_bytes();
    let answer = over_http::send(&server.authority, "POST", "/v1/ehr/bulk", &headers, body);
    let answer = super::text(&answer.expect("an answer"));
    assert_eq!(answer.matches(r#""status":201"#).count(), COMPOSITIONS);
}

#[test]
#[cfg(target_os = "linux")]
fn parallel_queries_share_the_memory_of_the_server() {
    let folder = Folder::new("memory");
    let arguments = ["--open", "--threads", "8", "--memory", "128M"];
    let variables = [
        ("LIMIT_CONCURRENCY", "64"),
        ("LIMIT_CONCURRENCY_HEAVY", "32"),
    ];
    let server = Server::start(&folder, &arguments, &variables);
    fill(&server);
    let text = "SELECT c FROM COMPOSITION c ORDER BY c/uid/value";
    let body = json!({ "q": text, "fetch": COMPOSITIONS }).to_string();
    let path = format!("{ITS}/query/aql");
    let answers: Vec<_> = scope(|scope| {
        let send = || server.send("POST", &path, &body);
        let started: Vec<_> = (0..QUERIES).map(|_| scope.spawn(send)).collect();
        started
            .into_iter()
            .map(|query| query.join().unwrap())
            .collect()
    });
    let peak = server.peak_memory() / 1_000_000;
    let mut answered = 0;
    for answer in &answers {
        match answer.status {
            200 => {
                let result: Value = serde_json::from_slice(&answer.body).expect("JSON");
                let rows = result["rows"].as_array().expect("rows");
                assert_eq!(rows.len(), COMPOSITIONS, "an answer is complete");
                answered += 1;
            }
            429 => assert!(answer.header("Retry-After").is_some()),
            status => panic!("{status}: {}", super::text(answer)),
        }
    }
    println!("{answered} of {QUERIES} answered, {peak} MB at most");
    assert!(answered > 0, "no query was answered");
    assert!(peak < 128 + BESIDE, "{peak} MB");
    let count = server.count("SELECT COUNT(*) AS n FROM COMPOSITION c");
    assert_eq!(count, COMPOSITIONS as u64);
    server.stop();
}

/// Runs a guide on lines with one EHR. Returns the bytes of the answer, of which no more than a
/// buffer is kept.
fn run_on_lines(server: &Server, ehr_id: &str) -> usize {
    let body = format!("\"{ehr_id}\"\n").repeat(LINES);
    let mut stream = TcpStream::connect(&server.authority).expect("a connection");
    let head = format!(
        "POST /v1/gdl/query?guide_id=text.v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("a request");
    stream.write_all(body.as_bytes()).expect("a body");
    let (mut buffer, mut read) = (vec![0; 100_000], 0);
    loop {
        match stream.read(&mut buffer).expect("an answer") {
            0 => return read,
            more => read += more,
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn answers_of_guides_on_lines_are_never_in_memory_as_a_whole() {
    let folder = Folder::new("guide-memory");
    let server = Server::start(&folder, &["--open", "--memory", "128M"], &[]);
    let ehr_id = server.create_ehr();
    let guide = json!({ "id": "text.v1", "definition": {
        "data_bindings": { "gt0004": { "model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT",
            "elements": { "gt0005": { "path": "/data[at0001]/items[at0002]" } } } },
        "rules": { "gt0006": { "priority": 1, "then": [format!("$gt0005='{}'", "x".repeat(ANSWER))] } } } });
    let stored = server.send("POST", "/v1/definition/gdl", &guide.to_string());
    assert_eq!(stored.status, 201);
    let read: Vec<usize> = scope(|scope| {
        let started: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| run_on_lines(&server, &ehr_id)))
            .collect();
        let finished = started.into_iter().map(|run| run.join().unwrap());
        finished.collect()
    });
    let peak = server.peak_memory() / 1_000_000;
    assert!(read.iter().all(|read| *read > LINES * ANSWER), "{read:?}");
    assert!(peak < 128 + BESIDE, "{peak} MB");
    server.stop();
}

/// Stores one composition with a long text, and returns the request of a query whose result has
/// this text ten times.
fn long_result(server: &Server, bytes: usize) -> String {
    server.store_templates();
    let ehr_id = server.create_ehr();
    let text = compositions(1).remove(0);
    let mut composition: Value = serde_json::from_str(&text).expect("JSON");
    composition["composer"]["name"] = json!("x".repeat(bytes));
    let path = format!("{ITS}/ehr/{ehr_id}/composition");
    let stored = server.send("POST", &path, &composition.to_string());
    assert_eq!(stored.status, 201, "{}", super::text(&stored));
    let columns: Vec<String> = (0..10)
        .map(|at| format!("c/composer/name AS n{at}"))
        .collect();
    let q = format!("SELECT {} FROM COMPOSITION c", columns.join(", "));
    let body = json!({ "q": q }).to_string();
    format!(
        "POST {ITS}/query/aql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
#[cfg(target_os = "linux")]
fn clients_that_do_not_read_their_results_take_no_more_memory() {
    let folder = Folder::new("unread-results");
    let server = Server::start(&folder, &["--open", "--memory", "128M"], &[]);
    let request = long_result(&server, 2_000_000);
    let mut unread = Vec::new();
    // Each result has 20 MB, of which a connection takes a few.
    let refused = (0..16).find(|_| {
        let mut stream = TcpStream::connect(&server.authority).expect("a connection");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("a status");
        unread.push(stream);
        &status[9..] == b"429"
    });
    let peak = server.peak_memory() / 1_000_000;
    assert!(refused.is_some(), "all results are in memory: {peak} MB");
    assert!(peak < 128 + BESIDE, "{peak} MB");
    drop(unread);
    assert_eq!(server.count("SELECT COUNT(*) AS n FROM COMPOSITION c"), 1);
    server.stop();
}

#[test]
#[cfg(target_os = "linux")]
fn bodies_of_strangers_are_not_kept() {
    let folder = Folder::new("bodies-of-strangers");
    let server = Server::start(&folder, &["--memory", "128M"], &[]);
    let requests = ["GET /health", "OPTIONS /v1/ehr", "POST /v1/ehr"];
    let streams: Vec<TcpStream> = (0..300)
        .map(|at| {
            let mut stream = TcpStream::connect(&server.authority).expect("a connection");
            let head = format!(
                "{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
                requests[at % requests.len()]
            );
            stream.write_all(head.as_bytes()).expect("a head");
            // The last bytes do not arrive, so the body cannot end.
            stream.write_all(&vec![b' '; 990_000]).expect("a body");
            stream
        })
        .collect();
    for (at, mut stream) in streams.into_iter().enumerate() {
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("a status");
        let expected = ["200", "200", "401"][at % requests.len()];
        assert_eq!(&status[9..], expected.as_bytes(), "{at}");
    }
    let peak = server.peak_memory() / 1_000_000;
    assert!(peak < BESIDE, "{peak} MB");
    server.stop();
}
