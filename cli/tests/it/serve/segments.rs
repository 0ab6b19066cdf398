//! Loads, segments as files, and long results.

use super::server::{Folder, Server, text};
use super::{over_http, said};
use aqlite::samples::Generator;
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};

const COUNT: &str = "SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c";

/// Waits until the maintenance thread has written a segment.
fn wait_for_segments(folder: &Folder) {
    let until = Instant::now() + Duration::from_secs(60);
    let files = || std::fs::read_dir(folder.0.join("test.db.segments")).unwrap();
    while files().count() == 0 {
        assert!(Instant::now() < until, "no segment was written");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn loaded_lines_become_segments_and_more_rows_than_a_page_are_sent_in_parts() {
    let folder = Folder::new("segments");
    let limits = [("LIMIT_FETCH", "100"), ("LIMIT_FETCH_DEFAULT", "100")];
    let server = Server::start(&folder, &["--open"], &limits);
    server.store_templates();
    let generator = Generator::new(1, 60, 600);
    let ids: Vec<String> = (0..60).map(|_| server.create_ehr()).collect();
    let line = |index: usize| {
        let composition = generator.composition(index).json;
        format!(
            "{{\"ehr_id\":\"{}\",\"composition\":{composition}}}\n",
            ids[index / 10]
        )
    };
    let body: String = (0..600).map(line).collect();
    std::fs::write(folder.0.join("lines.ndjson"), body).unwrap();
    let base = format!("http://{}/v1", server.authority);
    let load = |from: &str| {
        let arguments = ["load", "lines.ndjson", "--base", &base, "--from", from];
        said(&folder.succeed(&arguments))
    };
    assert!(load("1").starts_with("600 lines loaded, 0 were loaded before"));
    assert!(load("101").starts_with("0 lines loaded, 500 were loaded before"));
    wait_for_segments(&folder);
    let query = json!({ "q": COUNT });
    let explained = server.send("POST", "/v1/query/aql/explain", &query.to_string());
    assert!(text(&explained).contains("segment"), "{}", text(&explained));
    assert_eq!(server.count(COUNT), 600);
    let query =
        json!({ "q": "SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c", "fetch": 600 });
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/x-ndjson"),
    ];
    let body = query.to_string();
    let path = "/v1/query/aql";
    let answer = over_http::send(&server.authority, "POST", path, &headers, body.as_bytes());
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{}", text(&answer));
    assert_eq!(text(&answer).matches("::1\"").count(), 600);
    server.stop();

    std::fs::remove_dir_all(folder.0.join("test.db.segments")).unwrap();
    let server = Server::start(&folder, &["--open", "--threads", "1"], &[]);
    // A thread writes a segment again when it was absent 64 times.
    for _ in 0..66 {
        assert_eq!(server.count(COUNT), 600);
    }
    wait_for_segments(&folder);
    assert_eq!(server.count(COUNT), 600);
    server.stop();
}
