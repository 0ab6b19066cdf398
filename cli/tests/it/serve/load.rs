//! Loads: the service threads share the parts of a long body, and the outcome is that of one line
//! after the other.

use super::over_http;
use super::server::{Folder, PROGRAM, Server, compositions};
use aqlite::service::Response;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// Bytes of a line. A part of a load has 4 MB, so thirty lines are a part.
const LINE: usize = 120_000;

/// EHRs of a load: four lines each, so their load has six parts.
const EHRS: usize = 50;

fn ehr_id(number: usize) -> String {
    format!("6ba7b810-9dad-41d1-80b4-{number:012x}")
}

/// Returns a line for an EHR, with white space that makes it a long one.
fn line(number: usize, name: &str, content: &Value) -> String {
    let line = json!({ "ehr_id": ehr_id(number), name: content }).to_string();
    let blank = " ".repeat(LINE.saturating_sub(line.len()));
    format!("{blank}{line}\n")
}

/// Returns a contribution that creates a composition.
fn contribution(composition: &Value) -> Value {
    let coded = |code: &str, value: &str| {
        let terminology = json!({ "_type": "TERMINOLOGY_ID", "value": "openehr" });
        json!({ "_type": "DV_CODED_TEXT", "value": value, "defining_code":
            { "_type": "CODE_PHRASE", "terminology_id": terminology, "code_string": code } })
    };
    let audit = json!({ "_type": "AUDIT_DETAILS", "system_id": "client", "change_type": coded("249", "creation"),
        "committer": { "_type": "PARTY_IDENTIFIED", "name": "Dr. Ek" } });
    let version = json!({ "_type": "ORIGINAL_VERSION", "commit_audit": audit, "data": composition,
        "lifecycle_state": coded("532", "complete") });
    json!({ "_type": "CONTRIBUTION", "versions": [version], "audit": audit })
}

/// Returns lines for each EHR: the EHR, a contribution to it, a composition of it, and one of the
/// next EHR, which does not exist yet.
fn lines() -> String {
    let sample: Vec<Value> = compositions(1)
        .iter()
        .map(|text| serde_json::from_str(text).expect("JSON"))
        .collect();
    let composition = sample.first().expect("a composition");
    let of_ehr = |number: usize| {
        [
            line(number, "ehr_status", &Value::Null),
            line(number, "contribution", &contribution(composition)),
            line(number, "composition", composition),
            line(number + 1, "composition", composition),
        ]
    };
    (0..EHRS).flat_map(of_ehr).collect()
}

fn load(server: &Server, lines: &str) -> Response {
    let headers = [
        ("Content-Type", "application/x-ndjson"),
        ("Idempotency-Key", "one"),
    ];
    let body = lines.as_bytes();
    let answer = over_http::send(&server.authority, "POST", "/v1/ehr/bulk", &headers, body);
    answer.expect("an answer")
}

/// Returns the status of each line of an answer, which must be in the order of the lines.
fn statuses(answer: &Response) -> Vec<u64> {
    let text = super::text(answer);
    let answers = text.lines().zip(1..).map(|(line, number)| {
        let answer: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(answer["line"].as_u64(), Some(number), "{line}");
        answer["status"].as_u64().expect("a status")
    });
    answers.collect()
}

#[test]
fn parts_of_a_load_are_committed_and_answered_in_order() {
    for threads in ["1", "4"] {
        let folder = Folder::new(&format!("load-{threads}"));
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let figures = port.local_addr().unwrap().to_string();
        drop(port);
        let arguments = ["--open", "--threads", threads, "--metrics", &figures];
        let server = Server::start(&folder, &arguments, &[]);
        server.store_templates();
        let lines = lines();
        let answer = load(&server, &lines);
        assert_eq!(statuses(&answer), [201, 201, 201, 404].repeat(EHRS));
        // Repeated: the EHRs of the fourth lines exist now, but for the last one.
        let mut expected = [200, 200, 200, 201].repeat(EHRS);
        expected.splice(4 * EHRS - 1.., [404]);
        assert_eq!(statuses(&load(&server, &lines)), expected);
        let count = "SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c";
        assert_eq!(server.count(count), 3 * EHRS as u64 - 1);
        // Each load is one request, however many parts it has.
        let figures = over_http::send(&figures, "GET", "/metrics", &[], b"").unwrap();
        let figures = super::text(&figures);
        let loads = r#"aqlite_requests_total{route="bulk",status="2xx"} 2"#;
        assert!(figures.contains(&format!("{loads}\n")), "{figures}");
        server.stop();
    }
}

#[test]
fn load_sends_its_token_to_the_mount_of_the_service() {
    let folder = Folder::new("load-token");
    std::fs::write(
        folder.0.join("lines.ndjson"),
        line(1, "ehr_status", &Value::Null),
    )
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for (arguments, variables) in [
        (&["--token", "abc"][..], &[][..]),
        (&[], &[("AQLITE_TOKEN", "abc")]),
        (&[], &[("AQLITE_AUTHORIZATION", "Bearer abc")]),
    ] {
        let mut load = Command::new(PROGRAM);
        load.args([
            "load",
            "lines.ndjson",
            "--base",
            &format!("http://{address}"),
        ]);
        load.args(arguments).envs(variables.iter().copied());
        load.stdout(Stdio::null()).stderr(Stdio::null());
        let mut load = load.current_dir(&folder.0).spawn().unwrap();
        let (stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        assert_eq!(head[0], "POST /v1/ehr/bulk?first=1 HTTP/1.1");
        let has_token = |line: &String| line.eq_ignore_ascii_case("authorization: Bearer abc");
        assert!(head.iter().any(has_token), "{head:?}");
        load.wait().unwrap();
    }
}

/// Starts a server that gives one answer to one request, and returns its address.
fn server_with_answer(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 16]).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).unwrap();
        // The client has sent everything before it closes the connection.
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    address
}

#[test]
fn load_or_import_with_fewer_answers_than_lines_fails() {
    let folder = Folder::new("load-answers");
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).unwrap();
    write(
        "lines.ndjson",
        "{\"ehr_id\":\"a\"}\n\n \n{\"ehr_id\":\"b\"}",
    );
    let line = |record: &str| {
        let digest = aqlite::document::digest_of_text(record);
        format!("{{\"digest\":\"{digest}\",\"record\":{record}}}\n")
    };
    let records = [r#"{"definition":"query"}"#, r#"{"end":true}"#].map(line);
    write("export.ndjson", &records.concat());
    let both = "{\"line\":1,\"status\":201}\n{\"line\":4,\"status\":200}";
    for (command, file, answer, problem) in [
        ("load", "lines.ndjson", "", "answered 0 of 2 lines"),
        (
            "load",
            "lines.ndjson",
            "{\"line\":1,\"status\":201}\n",
            "answered 1 of 2 lines",
        ),
        ("load", "lines.ndjson", both, ""),
        ("import", "export.ndjson", "", "answered 0 of 1 lines"),
        ("import", "export.ndjson", "{}", "answers an import by `{}`"),
        (
            "import",
            "export.ndjson",
            "{\"line\":1,\"status\":201}\n",
            "",
        ),
    ] {
        let output = folder.run(&[command, file, "--base", &server_with_answer(answer)]);
        let said = super::said(&output);
        assert_eq!(output.status.success(), problem.is_empty(), "{said}");
        assert!(said.contains(problem), "{said}");
    }
}

#[test]
fn part_that_is_rejected_ends_a_load() {
    let folder = Folder::new("load-end");
    let arguments = ["--open", "--threads", "4"];
    let server = Server::start(&folder, &arguments, &[("LIMIT_BODY", "2500000")]);
    server.store_templates();
    let lines = lines();
    let (before, after) = lines.split_at(lines.len() / 2);
    let too_long = " ".repeat(2_600_000);
    let answer = load(&server, &format!("{before}{too_long}\n{after}"));
    let text = super::text(&answer);
    let last = text.lines().last().expect("an error");
    let last: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(last["code"], 413, "{last}");
    assert_eq!(
        text.lines().count(),
        2 * EHRS + 1,
        "no line after it is answered"
    );
    let ehrs = server.count("SELECT COUNT(*) AS n FROM EHR e");
    assert_eq!(ehrs, EHRS as u64 / 2, "no line after it is written");
    server.stop();
}

#[test]
fn load_from_a_line_that_the_file_lacks_is_refused() {
    let folder = Folder::new("load-from");
    std::fs::write(folder.0.join("lines.ndjson"), "{}\n{}\n").expect("a file");
    for (from, code, problem) in [
        (
            "4",
            1,
            "the file has 2 lines, and the first one to send is line 4",
        ),
        ("0", 2, "0 is not in 1.."),
    ] {
        let output = folder.run(&["load", "lines.ndjson", "--from", from]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(problem), "{said}");
    }
}
