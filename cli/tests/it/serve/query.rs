//! Queries of the command line that a repository answers: a server, or its database.

use super::super::same_cells::{cells, difference};
use super::over_http;
use super::said;
use super::server::{Folder, ITS, PROGRAM, Server, compositions};
use aqlite::arrow::TableFormat;
use aqlite::arrow::read::table;
use serde_json::json;
use std::io::{Read, Write};
use std::process::Command;

const QUERY: &str =
    "SELECT c/uid/value AS uid, c/context/start_time AS time FROM COMPOSITION c ORDER BY uid";
const FORMATS: [TableFormat; 2] = [TableFormat::Arrow, TableFormat::Parquet];
/// A query in the order of commits, which can be sent in parts.
const PLAIN: &str = "SELECT c/uid/value AS uid, c/context/start_time/value AS time, c/category AS category FROM COMPOSITION c";
const COUNT: &str = "SELECT COUNT(*) AS n FROM COMPOSITION c WHERE c/name/value = $name";

/// Returns the output of a query that succeeds.
fn rows(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.succeed(&[&["query"], arguments].concat());
    assert!(output.stderr.is_empty(), "{}", said(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn server_and_database_answer_alike() {
    let folder = Folder::new("query");
    // Fewer rows than the result has, so that it comes in pages.
    let variables = [("AUTH", "none"), ("LIMIT_FETCH_DEFAULT", "7")];
    let server = Server::start(&folder, &[], &variables);
    server.store_templates();
    let ehr_id = server.create_ehr();
    for composition in compositions(20) {
        let path = format!("{ITS}/ehr/{ehr_id}/composition");
        assert_eq!(server.send("POST", &path, &composition).status, 201);
    }
    let path = format!("{ITS}/definition/query/org.example::named/1.0.0");
    let stored = server.send("PUT", &path, &json!({ "q": COUNT }).to_string());
    assert_eq!(stored.status, 200, "{}", super::text(&stored));
    let url = format!("http://{}", server.authority);
    for format in ["csv", "json", "ndjson", "table"] {
        let answers = [url.as_str(), "test.db"]
            .map(|data| rows(&folder, &["-d", data, "--format", format, QUERY]));
        assert_eq!(answers[0], answers[1]);
        assert!(answers[0].lines().count() >= 20 || format == "json");
        assert_eq!(
            answers[0].matches("::test.example::").count()
                + answers[0].matches("::aqlite.local::").count(),
            20
        );
    }
    tables_are_those_of_json(&folder, &url);
    let name = ["--param", "name=Encounter"];
    let stored = [url.as_str(), "test.db"].map(|data| {
        let arguments = [&["-d", data, "--stored", "org.example::named"][..], &name];
        rows(&folder, &arguments.concat())
    });
    let direct = rows(&folder, &[&["-d", "test.db", COUNT][..], &name].concat());
    assert_eq!(stored, [direct.clone(), direct]);
    let arguments = [
        "-d",
        &url,
        "--stored",
        "org.example::named",
        "-o",
        "n.arrows",
    ];
    rows(&folder, &[&arguments[..], &name].concat());
    let bytes = std::fs::read(folder.0.join("n.arrows")).expect("a file");
    let named = table(TableFormat::Arrow, bytes).expect("a table");
    assert_eq!(
        named.aql, COUNT,
        "the repository knows the text of a stored query"
    );
    server.stop();
    // Also without a server.
    let rows = rows(&folder, &["-d", "test.db", "--limit", "3", QUERY]);
    assert_eq!(rows.lines().count(), 4);
}

/// Compares tables of a server and of a database with JSON.
fn tables_are_those_of_json(folder: &Folder, url: &str) {
    let sent = json_rows(folder, url);
    for format in FORMATS {
        for data in [url, "test.db"] {
            let name = format!("rows.{}", format.extension());
            assert_eq!(rows(folder, &["-d", data, "-o", &name, PLAIN]), "");
            let bytes = std::fs::read(folder.0.join(&name)).expect("a file");
            let read = table(format, bytes).expect("a table").rows;
            assert_eq!(difference(&sent, &read), None, "{data}");
        }
    }
}

/// Returns the cells of the rows of [`PLAIN`].
fn json_rows(folder: &Folder, data: &str) -> Vec<Vec<String>> {
    let json = rows(folder, &["-d", data, "--format", "json", PLAIN]);
    let (_, sent) = json.trim_end().split_once("\"rows\":").expect("rows");
    let sent = cells(sent.strip_suffix('}').expect("the end")).expect("cells");
    assert_eq!(sent.len(), 20);
    sent
}

/// Texts of digits, such as codes, and numbers: each is compared by the type of its other side.
#[test]
fn parameter_of_digits_has_the_type_of_the_other_side() {
    let folder = Folder::new("query-digits");
    let server = Server::open(&folder);
    server.store_templates();
    let path = format!("{ITS}/ehr/{}/composition", server.create_ehr());
    for composition in compositions(3) {
        assert_eq!(server.send("POST", &path, &composition).status, 201);
    }
    let id = "123456789012345678901234567890";
    let body = json!({"_type": "EHR_STATUS", "archetype_node_id": "openEHR-EHR-EHR_STATUS.generic.v1",
        "name": {"_type": "DV_TEXT", "value": "EHR Status"}, "is_queryable": true, "is_modifiable": true,
        "subject": {"_type": "PARTY_SELF", "external_ref": {"_type": "PARTY_REF", "namespace": "n", "type": "PERSON",
            "id": {"_type": "GENERIC_ID", "value": id, "scheme": "s"}}}});
    let created = server.send("POST", &format!("{ITS}/ehr"), &body.to_string());
    assert_eq!(created.status, 201, "{}", super::text(&created));
    let url = format!("http://{}", server.authority);
    let code =
        "SELECT COUNT(*) AS n FROM COMPOSITION c WHERE c/category/defining_code/code_string = $x";
    let text =
        "SELECT COUNT(*) AS n FROM EHR e WHERE e/ehr_status/subject/external_ref/id/value = $x";
    let number = "SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c[openEHR-EHR-COMPOSITION.encounter.v1] \
        CONTAINS DV_QUANTITY q WHERE q/magnitude > $x LIMIT 1";
    for data in [url.as_str(), "test.db"] {
        for (query, value, expected) in [(code, "433", "3"), (text, id, "1")] {
            let value = format!("x={value}");
            let found = rows(&folder, &["-d", data, query, "--param", &value]);
            assert_eq!(found, format!("n\n{expected}\n"), "{data}: {value}");
        }
        let found = rows(&folder, &["-d", data, number, "--param", "x=0"]);
        assert!(!found.ends_with("\n0\n"), "{data}: {found}");
    }
    server.stop();
}

/// A server that is not aqlite receives numbers as such, with all their digits.
#[test]
fn other_servers_receive_numbers() {
    let folder = Folder::new("query-vendor");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let answers = [
            r#"{"solution": "another"}"#,
            r#"{"columns": [{"name": "n"}], "rows": [[1]]}"#,
        ];
        answers.map(|answer| answer_once(&listener, answer))
    });
    let numbers = "a=140";
    let digits = "b=123456789012345678901234567890";
    let query = [
        "-d", &url, "SELECT c", "--param", numbers, "--param", digits,
    ];
    assert_eq!(rows(&folder, &query), "n\n1\n");
    let [manifest, asked] = served.join().unwrap();
    assert!(manifest.starts_with("OPTIONS /v1 "), "{manifest}");
    let parameters = r#"{"a":140,"b":"123456789012345678901234567890"}"#;
    assert!(asked.contains(parameters), "{asked}");
}

/// Answers one request, and returns its text.
fn answer_once(listener: &std::net::TcpListener, body: &str) -> String {
    let (mut connection, _) = listener.accept().unwrap();
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    let is_whole = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return false;
        };
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next());
        body.len() >= length.map_or(0, |length| length.parse().unwrap())
    };
    while !is_whole(&text) {
        let read = connection.read(&mut buffer).unwrap();
        assert!(read > 0, "the request ends early");
        text.extend_from_slice(&buffer[..read]);
    }
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
    write!(
        connection,
        "{head}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn server_sends_tables_in_parts() {
    let folder = Folder::new("table-parts");
    let variables = [("AUTH", "none"), ("LIMIT_FETCH", "8")];
    let server = Server::start(&folder, &["--threads", "2"], &variables);
    server.store_templates();
    let ehr_id = server.create_ehr();
    for composition in compositions(20) {
        let path = format!("{ITS}/ehr/{ehr_id}/composition");
        assert_eq!(server.send("POST", &path, &composition).status, 201);
    }
    let body = json!({ "q": PLAIN, "fetch": 100 }).to_string();
    let tables = FORMATS.map(|format| {
        let headers = [
            ("Accept", format.media_type()),
            ("Content-Type", "application/json"),
        ];
        let path = format!("{ITS}/query/aql");
        let answer = over_http::send(&server.authority, "POST", &path, &headers, body.as_bytes());
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{}", super::text(&answer));
        table(format, answer.body).expect("a table")
    });
    server.stop();
    let sent = json_rows(&folder, "test.db");
    for table in tables {
        assert_eq!(difference(&sent, &table.rows), None);
    }
}

#[test]
fn result_above_the_limit_is_read_in_smaller_pages() {
    let folder = Folder::new("query-large");
    // Ten of the compositions are below the limit, all twenty are above it.
    let sample = compositions(20);
    let (first, last) = sample.split_at(10);
    let [first, last] = [first, last].map(|some| some.concat().len());
    let limit = (first.max(last) + first.min(last) / 2).to_string();
    let variables = [("AUTH", "none"), ("LIMIT_RESULT", limit.as_str())];
    let server = Server::start(&folder, &[], &variables);
    server.store_templates();
    let ehr_id = server.create_ehr();
    for composition in &sample {
        let path = format!("{ITS}/ehr/{ehr_id}/composition");
        assert_eq!(server.send("POST", &path, composition).status, 201);
    }
    let query = "SELECT c FROM COMPOSITION c";
    let whole = json!({ "q": query }).to_string();
    let refused = server.send("POST", &format!("{ITS}/query/aql"), &whole);
    assert_eq!(refused.status, 400, "{}", super::text(&refused));
    let url = format!("http://{}", server.authority);
    let [of_server, of_database] = [url.as_str(), "test.db"]
        .map(|data| rows(&folder, &["-d", data, "--format", "ndjson", query]));
    assert_eq!(of_server.lines().count(), 20);
    assert_eq!(of_server, of_database);
    // The rows of a query with LIMIT are those that it names.
    let output = folder.run(&["query", "-d", &url, &format!("{query} LIMIT 20")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("400: the result is larger"),
        "{}",
        said(&output)
    );
    server.stop();
}

#[test]
fn wrong_query_to_a_repository_is_shown_with_its_line() {
    let folder = Folder::new("query-wrong");
    let server = Server::open(&folder);
    let url = format!("http://{}", server.authority);
    let query = "SELECT c\nFROM COMPOSITON c";
    for data in [url.as_str(), "test.db"] {
        for arguments in [
            &["query", "-d", data, query][..],
            &["query", "-d", data, "--explain", query],
        ] {
            let output = folder.run(arguments);
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            for part in ["error[AQL0201]", "--> query:2:6", "^^^^^^^^^"] {
                assert!(said(&output).contains(part), "{data}: {}", said(&output));
            }
        }
    }
    server.stop();
}

#[test]
fn repository_explains_a_query() {
    let folder = Folder::new("query-explained");
    let server = Server::open(&folder);
    server.store_templates();
    let path = format!("{ITS}/ehr/{}/composition", server.create_ehr());
    for composition in compositions(3) {
        assert_eq!(server.send("POST", &path, &composition).status, 201);
    }
    let url = format!("http://{}", server.authority);
    let outputs = |query: &str| {
        [url.as_str(), "test.db"].map(|data| {
            let arguments = ["query", "-d", data, "--explain", query, "--param", "n=x"];
            said(&folder.succeed(&arguments))
        })
    };
    for explained in outputs("SELECT c/name/value FROM COMPOSITION c") {
        let parts = [
            "checked query\n  ",
            "plan\n  ",
            "3 documents of 1 EHRs",
            "  3 rows, ",
        ];
        for part in parts {
            assert!(explained.contains(part), "{part}: {explained}");
        }
    }
    for empty in outputs("SELECT c FROM COMPOSITION c WHERE c/name/value = $n") {
        let first = "rows behind each part of the query\n         3  ";
        assert!(empty.contains(first), "{empty}");
    }
    server.stop();
}

#[test]
fn shell_asks_a_repository() {
    let folder = Folder::new("query-shell");
    let server = Server::open(&folder);
    server.store_templates();
    let path = format!("{ITS}/ehr/{}/composition", server.create_ehr());
    for composition in compositions(3) {
        assert_eq!(server.send("POST", &path, &composition).status, 201);
    }
    let script = ".templates\n.schema openEHR-EHR-OBSERVATION.pulse.v2\n.param name=x\n\
        SELECT COUNT(*) AS n FROM COMPOSITION c;\n\
        SELECT COUNT(*) AS named FROM COMPOSITION c WHERE c/name/value = $name;\n.explain\n\
        SELECT c FROM COMPOSITON c;\nSELECT COUNT(*) AS ehrs FROM EHR e;\n";
    std::fs::write(folder.0.join("script"), script).unwrap();
    let url = format!("http://{}", server.authority);
    for data in [url.as_str(), "test.db"] {
        let script = std::fs::File::open(folder.0.join("script")).unwrap();
        let mut shell = Command::new(PROGRAM);
        shell.args(["shell", "-d", data]).current_dir(&folder.0);
        let output = shell.stdin(script).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        for part in [
            "sample.vital_signs.v1\n",
            "data[at0002]/events[at0003]/data[at0001]/items[at0004]/value",
            "n\n3\n",
            "named\n0\n",
            "checked query\n",
            "error[AQL0201]",
            "ehrs\n1\n",
        ] {
            assert!(
                said(&output).contains(part),
                "{data}: {part}: {}",
                said(&output)
            );
        }
    }
    server.stop();
}

#[test]
fn commands_on_files_refuse_a_repository() {
    let folder = Folder::new("query-files");
    Server::open(&folder).stop();
    let guide = "guide.json";
    std::fs::write(folder.0.join(guide), aqlite::samples::guides()[0].text).unwrap();
    for data in ["test.db", "http://127.0.0.1:1"] {
        for arguments in [
            &["guide", "run", guide, "-d", data][..],
            &["check", "-d", data, guide],
            &["check", data],
            &["convert", data, "--to", "xml"],
        ] {
            let output = folder.run(arguments);
            let said = said(&output);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            for part in [&format!("`{data}` is the"), "name files or folders"] {
                assert!(said.contains(part), "{arguments:?}: {said}");
            }
        }
    }
}

#[test]
fn repository_that_refuses_or_is_absent_is_an_error() {
    let folder = Folder::new("query-refused");
    let server = Server::start(&folder, &[], &[]);
    let url = format!("http://{}", server.authority);
    let output = folder.run(&["query", "-d", &url, QUERY]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("401"), "{}", said(&output));
    server.stop();
    let output = folder.run(&["query", "-d", &url, QUERY]);
    assert_eq!(output.status.code(), Some(1));
    let output = folder.run(&["query", "-d", "test.db", "SELECT nonsense"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("400"), "{}", said(&output));
    let output = folder.run(&["query", "-d", ".", "--stored", "a::b"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
