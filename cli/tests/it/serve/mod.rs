//! `aqlite serve` as a child process: REST cases, crashes, backups, access control, end.

mod access;
mod crash;
mod lake;
mod load;
mod memory;
#[path = "../../../../tests/it/over_http.rs"]
mod over_http;
mod query;
mod secure;
mod segments;
pub mod server;
mod smoke;
mod transfer;

use super::program::corpus;
use aqlite::service::Response;
use server::{Folder, ITS, PROGRAM, Server, compositions, text};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The configuration of the runner of the REST cases, in variables of a deployment.
const COMMON: [(&str, &str); 6] = [
    ("SYSTEM_ID", "test.example"),
    ("LIMIT_BODY", "200000"),
    ("LIMIT_TEMPLATE", "150000"),
    ("LIMIT_QUERY_WORK", "20000000"),
    ("LIMIT_PARAMETERS", "100000"),
    ("ORIGINS", "https://page.example"),
];
const OPEN: [(&str, &str); 3] = [("AUTH", "none"), ("ACCESS_LOG", "on"), ("ADMIN", "true")];
const EXACT: [(&str, &str); 2] = [("SPECIALISATION", "exact"), ("FLAT_DIALECT", "ehrbase")];

#[test]
fn the_cases_of_the_rest_interface_hold() {
    let kinds: [(&str, Vec<(&str, &str)>); 4] = [
        ("open", [&COMMON[..], &OPEN].concat()),
        ("exact", [&COMMON[..], &OPEN, &EXACT].concat()),
        ("plain", [&COMMON[..], &[("AUTH", "none")]].concat()),
        ("closed", COMMON.to_vec()),
    ];
    let started: Vec<(String, Folder, Server)> = kinds
        .iter()
        .map(|(kind, variables)| {
            let folder = Folder::new(&format!("cases-{kind}"));
            // Requests that follow one another go to different threads, each with caches of its own.
            let server = Server::start(&folder, &["--threads", "3"], variables);
            (format!("{kind}={}", server.authority), folder, server)
        })
        .collect();
    let hosts: Vec<&str> = started.iter().map(|(host, ..)| host.as_str()).collect();
    let output = test_of_the_core("it")
        .args(["--ignored", "--exact", "rest::the_cases_hold_over_http"])
        .env("AQLITE_HOSTS", hosts.join(" "))
        .env("AQLITE_TABLES", "on")
        .output()
        .expect("the runner of the cases");
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "the test is there: {said}");
    for (_, _, server) in started {
        server.stop();
    }
}

/// Returns the command that runs a test target of the core, of the profile of this test.
fn test_of_the_core(target: &str) -> Command {
    // The folder of the program is named after its profile.
    let profile = Path::new(PROGRAM).parent().and_then(Path::file_name);
    let profile = match profile.expect("a profile").to_string_lossy() {
        name if name == "debug" => String::from("dev"),
        name => name.into_owned(),
    };
    // The packages that the calling command has compiled: others would compile the core again.
    let packages = std::env::var("AQLITE_TEST_PACKAGES");
    let packages = packages.as_deref().unwrap_or("--package aqlite");
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .args(["test", "--quiet", "--profile", &profile])
        .args(packages.split(' '))
        .args(["--test", target, "--"]);
    // Cargo describes the package of this test in variables, which build scripts read too.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

#[test]
fn the_suites_of_the_service_hold() {
    if corpus().is_none() {
        return;
    }
    let folder = Folder::new("suites");
    let variables = [("AUTH", "none"), ("ADMIN", "true"), ("DEBUG", "true")];
    let server = Server::start(&folder, &["--threads", "3"], &variables);
    let run = |suites: &[&str]| {
        let output = test_of_the_core("conformance")
            .args(suites)
            .args(["--via", &format!("http://{}", server.authority)])
            .env("AQLITE_TABLES", "on")
            .output()
            .expect("the runner of the suites");
        (output.status.success(), said(&output))
    };
    let suites = [
        "aql.result",
        "aql.result_flat",
        "aql.error",
        "aql.no_oracle",
        "gdl.service",
        "rm.flat_service",
    ];
    let (has_succeeded, said) = run(&suites);
    assert!(has_succeeded, "{said}");
    for suite in suites {
        let counts = format!("conformance {suite}: ");
        assert!(said.contains(&counts), "{suite}: {said}");
    }
    // The suites have left content, which another run removes only if that is confirmed.
    let ehr_id = server.create_ehr();
    let path = format!("{ITS}/ehr/{ehr_id}");
    let (has_succeeded, said) = run(&["aql.error"]);
    assert!(!has_succeeded && said.contains("add `--yes`"), "{said}");
    assert_eq!(server.send("GET", &path, "").status, 200);
    let (has_succeeded, said) = run(&["aql.error", "--yes"]);
    assert!(has_succeeded, "{said}");
    assert_eq!(server.send("GET", &path, "").status, 404);
    server.stop();
}

/// Returns both outputs of a program.
fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

#[test]
fn service_is_closed_by_default() {
    let folder = Folder::new("closed");
    let server = Server::start(&folder, &[], &[]);
    let answer = server.send("POST", &format!("{ITS}/ehr"), "");
    assert_eq!(answer.status, 401);
    assert!(text(&answer).contains("access is not configured"));
    assert_eq!(server.send("GET", "/health", "").status, 200);
    assert_eq!(server.send("OPTIONS", "/v1/", "").status, 200);
    server.stop();
}

#[test]
fn health_reports_a_database_that_cannot_be_read() {
    let folder = Folder::new("health");
    let server = Server::open(&folder);
    assert_eq!(server.send("GET", "/health", "").status, 200);
    let (file, moved) = (folder.database(), folder.0.join("moved.db"));
    std::fs::rename(&file, &moved).unwrap();
    let answer = health_within(&server, 503);
    assert!(text(&answer).contains("the database does not answer"));
    assert!(!text(&answer).contains("test.db"), "{}", text(&answer));
    std::fs::rename(&moved, &file).unwrap();
    health_within(&server, 200);
    server.stop();
    let log = std::fs::read_to_string(folder.0.join("log")).unwrap();
    assert!(log.contains("test.db: unable to open"), "{log}");
}

/// Requests the health of a server until it has a status. A success counts for a second.
fn health_within(server: &Server, status: u16) -> Response {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = server.send("GET", "/health", "");
        if answer.status == status {
            return answer;
        }
        assert!(Instant::now() < until, "{}", text(&answer));
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn open_service_on_all_addresses_is_refused() {
    let folder = Folder::new("exposed");
    for arguments in [
        ["serve", "--open", "--listen", "0.0.0.0:0"],
        ["serve", "--open", "--listen", "[::]:0"],
    ] {
        let output = folder.run(&arguments);
        assert!(!output.status.success());
        assert!(said(&output).contains("loopback address only"));
        assert!(
            !folder.0.join("aqlite.db").exists(),
            "a database was created"
        );
    }
}

#[test]
fn open_service_refuses_another_host_name() {
    let folder = Folder::new("rebinding");
    let server = Server::open(&folder);
    let own = &server.authority;
    for (head, status) in [
        (
            "GET /v1/definition/query HTTP/1.1\r\nHost: attacker.example",
            "1.1 421",
        ),
        (
            "GET /v1/definition/query HTTP/1.1\r\nHost: {own}",
            "1.1 200",
        ),
        // The host of a whole URL counts, and the header too.
        (
            "GET http://{own}/v1/definition/query HTTP/1.1\r\nHost: {own}",
            "1.1 200",
        ),
        (
            "GET http://attacker.example/v1/definition/query HTTP/1.1\r\nHost: {own}",
            "1.1 421",
        ),
        (
            "GET http://{own}/v1/definition/query HTTP/1.1\r\nHost: attacker.example",
            "1.1 421",
        ),
        (
            "GET http://ann@{own}/v1/definition/query HTTP/1.1\r\nHost: {own}",
            "1.1 400",
        ),
        // HTTP/1.1 requires one header, HTTP/1.0 any host.
        (
            "GET /v1/definition/query HTTP/1.1\r\nHost: {own}\r\nHost: {own}",
            "1.1 400",
        ),
        (
            "GET /v1/definition/query HTTP/1.1\r\nHost: {own}\r\nHost: attacker.example",
            "1.1 400",
        ),
        ("GET http://{own}/v1/definition/query HTTP/1.1", "1.1 400"),
        ("GET http://{own}/v1/definition/query HTTP/1.0", "1.0 200"),
        ("GET /v1/ HTTP/1.0", "1.0 400"),
    ] {
        let mut stream = TcpStream::connect(own).unwrap();
        let head = head.replace("{own}", own);
        let request = format!("{head}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let expected = format!("HTTP/{status} ");
        assert!(answer.starts_with(&expected), "{head}: {answer}");
    }
}

#[test]
fn committer_in_iso_8859_1_is_stored_like_one_in_utf8() {
    let folder = Folder::new("encodings");
    let server = Server::open(&folder);
    for name in ["Åsa".as_bytes(), b"\xc5sa"] {
        let mut stream = TcpStream::connect(&server.authority).unwrap();
        let head = format!(
            "POST {ITS}/ehr HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 0\r\nopenEHR-AUDIT_DETAILS.committer: name=\"",
            server.authority
        );
        let request = [head.as_bytes(), name, b"\"\r\n\r\n"].concat();
        stream.write_all(&request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }
    let named = "SELECT count(*) AS n FROM EHR e CONTAINS VERSION v CONTAINS EHR_STATUS s WHERE v/commit_audit/committer/name='Åsa'";
    assert_eq!(server.count(named), 2);
    server.stop();
}

/// Sends the head of a request, and returns the answer until the server closes the connection.
fn answer_to_head(server: &Server, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(&server.authority).unwrap();
    let host = &server.authority;
    let head = format!("{head}\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let timeout = Some(Duration::from_secs(20));
    stream.set_read_timeout(timeout).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A client that sends `Expect: 100-continue` sends its body only if the server wants it.
#[test]
fn expectation_is_answered_by_the_final_status_if_the_head_decides() {
    let folder = Folder::new("expectation");
    let server = Server::open(&folder);
    let closed = Folder::new("expectation-closed");
    let without_access = Server::start(&closed, &[], &[]);
    for (server, target, more, status) in [
        (&without_access, "/ehr", "Content-Length: 500", 401),
        (&server, "/ehr", "Content-Length: 999999999999", 413),
        (
            &server,
            "/ehr",
            "Content-Length: 500\r\nContent-Encoding: br",
            415,
        ),
        (
            &server,
            "/ehr",
            "Content-Length: 500\r\nContent-Type: image/png",
            415,
        ),
        (&server, "/nowhere", "Content-Length: 500", 404),
        (
            &server,
            "/query/aql/explain/x",
            "Transfer-Encoding: chunked",
            404,
        ),
    ] {
        let head = format!("POST {ITS}{target} HTTP/1.1\r\nExpect: 100-Continue\r\n{more}");
        let answer = answer_to_head(server, &head, b"");
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{target} {more}: {answer}");
    }
    // A body that the server wants is asked for.
    let mut stream = TcpStream::connect(&server.authority).unwrap();
    let query = r#"{"q":"SELECT count(*) AS n FROM EHR e"}"#;
    let head = format!(
        "POST {ITS}/query/aql HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.authority,
        query.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(query.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    server.stop();
    without_access.stop();
}

#[test]
fn transfer_coding_other_than_chunked_is_refused_with_its_reason() {
    let folder = Folder::new("transfer-coding");
    let server = Server::open(&folder);
    let chunks = b"4\r\n\x1f\x8b\x08\x00\r\n0\r\n\r\n";
    for coding in ["gzip, chunked", "gzip\r\nTransfer-Encoding: chunked"] {
        let head = format!(
            "POST {ITS}/query/aql HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: {coding}"
        );
        let answer = answer_to_head(&server, &head, chunks);
        assert!(answer.starts_with("HTTP/1.1 501 "), "{coding}: {answer}");
        assert!(answer.contains("transfer coding `gzip`"), "{answer}");
    }
    // The end of such a body is unknown (RFC 9112, section 6.3).
    let head = format!("POST {ITS}/query/aql HTTP/1.1\r\nTransfer-Encoding: gzip");
    let answer = answer_to_head(&server, &head, b"");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    server.stop();
}

#[test]
fn options_are_answered_for_the_server_and_for_its_description() {
    let folder = Folder::new("options");
    let server = Server::open(&folder);
    for (target, allow) in [
        ("*", "allow: GET, HEAD, POST, PUT, DELETE, OPTIONS\r\n"),
        ("/openapi.json", "allow: GET, HEAD, OPTIONS\r\n"),
    ] {
        let answer = answer_to_head(&server, &format!("OPTIONS {target} HTTP/1.1"), b"");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains(allow), "{answer}");
    }
    let answer = server.send("PUT", "/openapi.json", "{}");
    assert_eq!(answer.status, 405);
    server.stop();
}

#[test]
fn answers_without_a_body_have_no_length() {
    let folder = Folder::new("lengths");
    let server = Server::open(&folder);
    let target = format!("{ITS}/definition/template/adl1.4");
    for (method, is_sized) in [("GET", true), ("HEAD", false)] {
        let mut stream = TcpStream::connect(&server.authority).unwrap();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            server.authority
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answer = answer.to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 200 "), "{answer}");
        assert_eq!(
            answer.contains("\r\ncontent-length: "),
            is_sized,
            "{answer}"
        );
        assert!(!answer.contains("transfer-encoding"), "{answer}");
    }
    server.stop();
}

#[test]
fn a_second_server_on_the_same_database_is_refused() {
    let folder = Folder::new("twice");
    let server = Server::open(&folder);
    let second = |name| {
        let output = folder.run(&["serve", "--open", "--db", name, "--listen", "127.0.0.1:0"]);
        assert!(!output.status.success());
        said(&output)
    };
    assert!(second("test.db").contains("another process serves test.db"));
    #[cfg(unix)]
    {
        let link = |target, name: &str| std::os::unix::fs::symlink(target, folder.0.join(name));
        std::fs::create_dir(folder.0.join("links")).unwrap();
        link("../test.db", "links/first.db").unwrap();
        link("links/first.db", "second.db").unwrap();
        assert!(second("second.db").contains("another process serves"));
        std::fs::hard_link(folder.database(), folder.0.join("name.db")).unwrap();
        for name in ["name.db", "second.db"] {
            assert!(second(name).contains("several names"));
        }
        std::fs::remove_file(folder.0.join("name.db")).unwrap();
    }
    server.stop();
    // The name that a link leads to is that of a new repository, too.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("links/new.db", folder.0.join("new.db")).unwrap();
        let reset = folder.run(&["restore", "absent", "--db", "new.db"]);
        assert!(!reset.status.success());
        assert!(folder.0.join("links/new.db.lock").exists());
    }
}

#[test]
fn running_request_is_finished_before_the_end() {
    let folder = Folder::new("end");
    let server = Server::open(&folder);
    server.store_templates();
    let ehr_id = server.create_ehr();
    let body = compositions(1).remove(0);
    let (first, second) = body.as_bytes().split_at(body.len() / 2);
    let mut stream = TcpStream::connect(&server.authority).unwrap();
    let head = format!(
        "POST {ITS}/ehr/{ehr_id}/composition HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.authority,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(first).unwrap();
    sleep(Duration::from_millis(300));
    server.signal("TERM");
    sleep(Duration::from_millis(300));
    assert!(
        TcpStream::connect(&server.authority).is_err(),
        "a new connection was accepted"
    );
    stream.write_all(second).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201");
    drop(stream);
    assert!(server.wait().success());
    let size = |end: &str| std::fs::metadata(format!("{}{end}", folder.database().display()));
    assert!(
        size("-wal").is_err(),
        "the write-ahead log was not written back"
    );
    let server = Server::open(&folder);
    let found = server.count("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c");
    assert_eq!(found, 1);
}

/// Service managers reload a service by SIGHUP, also one without files to read again.
#[cfg(unix)]
#[test]
fn reload_of_a_server_without_certificate_leaves_it_running() {
    let folder = Folder::new("hangup");
    let server = Server::start(&folder, &["--open", "--log", "info"], &[]);
    server.signal("HUP");
    let until = Instant::now() + Duration::from_secs(60);
    let log = folder.0.join("log");
    while !std::fs::read_to_string(&log).is_ok_and(|log| log.contains("nothing to read again")) {
        assert!(Instant::now() < until, "the signal is not in the log");
        sleep(Duration::from_millis(10));
    }
    server.create_ehr();
    server.stop();
}

#[test]
fn backup_while_writing_is_whole_and_can_be_restored() {
    let folder = Folder::new("backup");
    let server = Server::open(&folder);
    server.store_templates();
    let sample = compositions(40);
    let (before, after) = (
        crash::Acknowledged::default(),
        crash::Acknowledged::default(),
    );
    crash::load(&server, &sample, &before, || {
        sleep(Duration::from_millis(300))
    });
    crash::load(&server, &sample, &after, || {
        folder.succeed(&["backup", "--db", "test.db", "copy"]);
    });
    assert!(!before.lock().unwrap().is_empty());
    let refused = folder.run(&["backup", "--db", "test.db", "copy"]);
    assert!(said(&refused).contains("exists already"));
    let refused = folder.run(&["restore", "copy", "--db", "test.db"]);
    assert!(said(&refused).contains("another process serves"));
    server.stop();

    let restored = Folder::new("restored");
    let copy = folder.0.join("copy");
    restored.succeed(&["restore", copy.to_str().unwrap(), "--db", "test.db"]);
    crash::assert_whole(&restored);
    let server = Server::open(&restored);
    crash::assert_held(&server, &before);
    server.stop();
}

#[test]
fn server_without_a_system_id_continues_no_versions_of_another_system() {
    let folder = Folder::new("system");
    let with = |id| Server::start(&folder, &["--open"], &[("SYSTEM_ID", id)]);
    let server = with("cdr.example.org");
    server.create_ehr();
    server.stop();
    let refused = folder.run(&[
        "serve",
        "--db",
        "test.db",
        "--open",
        "--listen",
        "127.0.0.1:0",
    ]);
    assert!(!refused.status.success());
    let said = said(&refused);
    assert!(said.contains("set SYSTEM_ID=cdr.example.org"), "{said}");
    let server = with("other.example.org");
    server.create_ehr();
    server.stop();
}

#[test]
fn restore_refuses_the_logs_of_a_removed_database() {
    let folder = Folder::new("leftover");
    let server = Server::open(&folder);
    server.create_ehr();
    server.stop();
    folder.succeed(&["backup", "--db", "test.db", "copy"]);
    for end in ["-wal", "-shm", "-journal", ".access-log-wal"] {
        let leftover = folder.0.join(format!("new.db{end}"));
        std::fs::write(&leftover, "").unwrap();
        let refused = folder.run(&["restore", "copy", "--db", "new.db"]);
        let said = said(&refused);
        assert!(
            !refused.status.success() && said.contains("exists already"),
            "{said}"
        );
        std::fs::remove_file(&leftover).unwrap();
    }
    folder.succeed(&["restore", "copy", "--db", "new.db"]);
}

/// Returns the value of a figure of `/metrics`.
fn figure(figures: &str, name: &str) -> u64 {
    let value = figures.lines().find_map(|line| line.strip_prefix(name));
    let value = value.unwrap_or_else(|| panic!("no {name}: {figures}"));
    value.trim().parse().expect("a number")
}

/// Root restores a repository for the user of the service, who owns its folder.
#[cfg(unix)]
#[test]
fn restored_files_belong_to_the_owner_of_their_folder() {
    use std::os::unix::fs::{MetadataExt, chown};
    const SERVICE: u32 = 12_345;
    let folder = Folder::new("owner");
    if std::fs::metadata(&folder.0).unwrap().uid() != 0 {
        // Only root creates files for others.
        return;
    }
    Server::open(&folder).stop();
    folder.succeed(&["backup", "--db", "test.db", "copy"]);
    let service = folder.0.join("service");
    std::fs::create_dir(&service).unwrap();
    chown(&service, Some(SERVICE), Some(SERVICE)).unwrap();
    folder.succeed(&["restore", "copy", "--db", "service/test.db"]);
    let owners: Vec<(u32, u32)> = std::fs::read_dir(&service)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap())
        .map(|file| (file.uid(), file.gid()))
        .collect();
    // The databases of documents and of the access log, and the lock.
    assert_eq!(owners, [(SERVICE, SERVICE); 3]);
    // A server of root warns before it listens, which it cannot at an occupied port.
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap().to_string();
    let arguments = ["serve", "--open", "--db", "service/test.db", "--listen"];
    let refused = folder.run(&[&arguments[..], &[&address]].concat());
    let said = said(&refused);
    assert!(said.contains("in a folder of user 12345"), "{said}");
}

#[test]
fn figures_are_answered_at_their_own_address() {
    let folder = Folder::new("figures");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    drop(port);
    let server = Server::start(&folder, &["--open", "--metrics", &address], &[]);
    let ehr_id = server.create_ehr();
    let figures = over_http::send(&address, "GET", "/metrics", &[], b"").unwrap();
    let figures = text(&figures);
    assert!(
        figures.contains(r#"aqlite_requests_total{route="ehr",status="2xx"} 1"#),
        "{figures}"
    );
    assert!(!figures.contains(&ehr_id));
    for file in ["database", "database_wal", "access_log", "access_log_wal"] {
        let name = format!("aqlite_storage_bytes{{file=\"{file}\"}}");
        assert!(figure(&figures, &name) > 0, "{file}: {figures}");
    }
    assert!(figure(&figures, "aqlite_disk_free_bytes") > 0, "{figures}");
    assert!(figures.contains(r#"aqlite_storage_bytes{file="segments"} "#));
    // The table of the documentation has the names that Prometheus stores.
    let name = |line: &str| match line.strip_prefix("# TYPE ")?.split_once(' ')? {
        (name, "counter") => Some(format!("{name}_total")),
        (name, _) => Some(name.to_owned()),
    };
    let mut served: Vec<String> = figures.lines().filter_map(name).collect();
    let page = include_str!("../../../../docs/deploy.md");
    let row = |line: &str| {
        Some(
            line.strip_prefix("| `aqlite_")?
                .split_once('`')?
                .0
                .to_owned(),
        )
    };
    let mut documented: Vec<String> = page.lines().filter_map(row).collect();
    documented
        .iter_mut()
        .for_each(|name| name.insert_str(0, "aqlite_"));
    served.sort();
    documented.sort();
    assert_eq!(served, documented);
    assert_eq!(server.send("GET", "/metrics", "").status, 404);
    server.stop();
}
