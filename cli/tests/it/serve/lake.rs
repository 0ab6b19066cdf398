//! The command `lake sync` on a repository: its database, and its server.

use super::super::lake_sync::{files_with, latest};
use super::said;
use super::server::{Folder, ITS, Server, compositions, text};
use aqlite::service::Response;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

const VIEW: &str = "SELECT c/name/value AS name, c/context/start_time/value AS at FROM EHR e CONTAINS COMPOSITION c";

/// Runs a sync that must succeed, and returns its report.
fn synced(folder: &Folder, data: &str, to: &str, more: &[&str]) -> String {
    let arguments = ["lake", "sync", "-d", data, "--to", to];
    let output = folder.succeed(&[&arguments[..], more].concat());
    assert!(output.stderr.is_empty(), "{}", said(&output));
    String::from_utf8(output.stdout)
        .expect("UTF-8")
        .trim()
        .to_owned()
}

/// Returns the uid of the version that an answer names.
fn uid(answer: &Response) -> String {
    super::server::tag(answer)
}

/// Creates compositions in an EHR, and returns the uids of their versions.
fn create(server: &Server, ehr_id: &str, documents: &[String]) -> Vec<String> {
    let create = |document: &String| {
        let path = format!("{ITS}/ehr/{ehr_id}/composition");
        let answer = server.send("POST", &path, document);
        assert_eq!(answer.status, 201, "{}", text(&answer));
        uid(&answer)
    };
    documents.iter().map(create).collect()
}

#[test]
fn lake_follows_commits_deletions_and_removed_ehrs() {
    let folder = Folder::new("lake");
    let variables = [
        ("AUTH", "none"),
        ("ADMIN", "true"),
        ("LIMIT_FETCH_DEFAULT", "7"),
    ];
    let server = Server::start(&folder, &[], &variables);
    server.store_templates();
    let ehrs = [server.create_ehr(), server.create_ehr()];
    let documents = compositions(24);
    let first = create(&server, &ehrs[0], &documents[..10]);
    let second = create(&server, &ehrs[1], &documents[10..20]);
    let path = format!("{ITS}/definition/query/org.example::names/1.0.0");
    let stored = server.send("PUT", &path, &json!({ "q": VIEW }).to_string());
    assert_eq!(stored.status, 200, "{}", text(&stored));
    let (stored, view) = (["--stored", "org.example::names"], "org_example__names");
    let sync = || synced(&folder, "test.db", "lake", &stored);
    let lake = folder.0.join("lake");
    assert_eq!(sync(), format!("{view}: 20 rows of 20 compositions"));
    assert_eq!(sync(), format!("{view}: no changes"));

    create(&server, &ehrs[1], &documents[20..24]);
    delete(&server, &ehrs[0], &first[0]);
    let said = sync();
    assert_eq!(
        said,
        format!("{view}: 4 rows of 4 compositions, 1 deleted compositions")
    );
    let deleted = first[0].split("::").next().expect("an id").to_owned();
    assert!(!latest(&lake, view).contains_key(&format!("\"{deleted}\"")));
    assert!(
        !files_with(&lake, &deleted).is_empty(),
        "a deletion is a row"
    );
    assert_is_fresh(&folder, &server, view);

    let gone = first[1].split("::").next().expect("an id");
    let path = format!("{ITS}/admin/ehr/{}/composition/{gone}", ehrs[0]);
    let answer = server.send("DELETE", &path, "");
    assert_eq!(answer.status, 204, "{}", text(&answer));
    let said = sync();
    assert!(
        said.contains("1 removed compositions, 1 files written again"),
        "{said}"
    );
    assert_eq!(files_with(&lake, gone), Vec::<PathBuf>::new());
    assert_is_fresh(&folder, &server, view);

    let answer = server.send("DELETE", &format!("{ITS}/admin/ehr/{}", ehrs[1]), "");
    assert_eq!(answer.status, 204, "{}", text(&answer));
    let said = sync();
    assert!(said.contains("1 removed EHRs"), "{said}");
    let removed = second[3].split("::").next().expect("an id");
    for text in [&ehrs[1], removed] {
        assert_eq!(files_with(&lake, text), Vec::<PathBuf>::new(), "{text}");
    }
    assert_is_fresh(&folder, &server, view);

    set_queryable(&server, &ehrs[0], false);
    let output = folder.run(&[
        "lake", "sync", "-d", "test.db", "--to", "lake", stored[0], stored[1],
    ]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "the last EHR is not removed in passing"
    );
    let emptied = synced(
        &folder,
        "test.db",
        "lake",
        &[&stored[..], &["--allow-empty"]].concat(),
    );
    assert!(emptied.contains("1 removed EHRs"), "{emptied}");
    assert_eq!(files_with(&lake, &ehrs[0]), Vec::<PathBuf>::new());
    set_queryable(&server, &ehrs[0], true);
    assert_eq!(sync(), format!("{view}: 8 rows of 8 compositions"));
    assert_is_fresh(&folder, &server, view);
    server.stop();
}

/// Replaces the database by its backup.
fn restore(folder: &Folder) {
    for entry in std::fs::read_dir(&folder.0).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        if name.starts_with("test") {
            match path.is_dir() {
                true => std::fs::remove_dir_all(&path).expect("removed"),
                false => std::fs::remove_file(&path).expect("removed"),
            }
        }
    }
    folder.succeed(&["restore", "copy", "--db", "test.db"]);
}

#[test]
fn lake_follows_a_database_that_was_restored() {
    let folder = Folder::new("lake-restored");
    let variables = [("AUTH", "none"), ("ADMIN", "true")];
    let documents = compositions(12);
    let server = Server::start(&folder, &[], &variables);
    server.store_templates();
    let ehr = server.create_ehr();
    create(&server, &ehr, &documents[..3]);
    folder.succeed(&["backup", "--db", "test.db", "copy"]);
    let lost = create(&server, &ehr, &documents[3..6]);
    server.stop();
    let view = "SELECT c/name/value AS name FROM EHR e CONTAINS COMPOSITION c";
    std::fs::write(folder.0.join("names.aql"), view).expect("a file");
    let sync = || synced(&folder, "test.db", "lake", &["--view", "names.aql"]);
    assert_eq!(sync(), "names: 6 rows of 6 compositions");
    restore(&folder);
    let said = sync();
    assert!(said.contains("3 removed compositions"), "{said}");
    for uid in &lost {
        let object = uid.split("::").next().expect("an id");
        assert_eq!(
            files_with(&folder.0.join("lake"), object),
            Vec::<PathBuf>::new()
        );
    }
    // The numbers of versions pass those that the lake has seen before the next sync.
    let server = Server::start(&folder, &[], &variables);
    create(&server, &ehr, &documents[6..9]);
    assert_eq!(sync(), "names: 3 rows of 3 compositions");
    server.stop();
    restore(&folder);
    let server = Server::start(&folder, &[], &variables);
    create(&server, &ehr, &documents[8..12]);
    server.stop();
    let said = sync();
    assert!(
        said.contains("4 rows of 4 compositions, 3 removed"),
        "{said}"
    );
    synced(&folder, "test.db", "fresh", &["--view", "names.aql"]);
    let rows = |lake: &str| latest(&folder.0.join(lake), "names");
    assert_eq!(rows("lake"), rows("fresh"));
}

/// Starts a server in front of another one, like one of another vendor: it names no state, and lists
/// one EHR at most. Returns its address.
fn limited(authority: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let authority = authority.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            forward(stream.expect("a connection"), &authority);
        }
    });
    address
}

/// Answers the request of a connection.
fn forward(mut stream: TcpStream, authority: &str) {
    let mut reader = BufReader::new(stream.try_clone().expect("a connection"));
    let (mut head, mut length) = (String::new(), 0);
    while reader.read_line(&mut head).expect("a line") > 2 {
        let last = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        if let Some(value) = last.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let mut words = head.split(' ');
    let (method, path) = (
        words.next().expect("a method"),
        words.next().expect("a path"),
    );
    let headers = [("Content-Type", "application/json")];
    let answer = super::over_http::send(authority, method, path, &headers, &body);
    let answer = answer.expect("an answer");
    let mut result: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if let Some(result) = result.as_object_mut() {
        result.remove("meta");
        let lists_ehrs =
            String::from_utf8_lossy(&body).contains("SELECT e/ehr_id/value FROM EHR e");
        if let Some(rows) = result.get_mut("rows").and_then(Value::as_array_mut)
            && lists_ehrs
        {
            rows.truncate(1);
        }
    }
    let text = result.to_string();
    let head = format!(
        "HTTP/1.1 {} OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.status,
        text.len()
    );
    stream.write_all((head + &text).as_bytes()).expect("sent");
}

#[test]
fn server_that_lists_not_all_ehrs_removes_none() {
    let folder = Folder::new("lake-limited");
    let variables = [("AUTH", "none"), ("ADMIN", "true")];
    let server = Server::start(&folder, &[], &variables);
    server.store_templates();
    let documents = compositions(4);
    let ehrs = [server.create_ehr(), server.create_ehr()];
    create(&server, &ehrs[0], &documents[..2]);
    create(&server, &ehrs[1], &documents[2..]);
    std::fs::write(folder.0.join("names.aql"), VIEW).expect("a file");
    let view = ["--view", "names.aql"];
    let url = limited(&server.authority);
    assert_eq!(
        synced(&folder, &url, "lake", &view),
        "names: 4 rows of 4 compositions"
    );
    let output = folder.run(&[&["lake", "sync", "-d", &url, "--to", "lake"][..], &view].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("the server lists 1 of 2 EHRs"),
        "{}",
        said(&output)
    );
    // A list of all EHRs is believed.
    let answer = server.send("DELETE", &format!("{ITS}/admin/ehr/{}", ehrs[1]), "");
    assert_eq!(answer.status, 204, "{}", text(&answer));
    let report = synced(&folder, &url, "lake", &view);
    assert!(report.contains("1 removed EHRs"), "{report}");
    server.stop();
}

/// Returns a composition of the sample with a name.
fn named(name: &str) -> String {
    let mut document: Value = serde_json::from_str(&compositions(1)[0]).expect("JSON");
    document["name"] = json!({"_type": "DV_TEXT", "value": name});
    document.to_string()
}

/// Creates an EHR whose subject has an id.
fn create_ehr_of(server: &Server, subject: &str) -> String {
    let status = json!({
        "_type": "EHR_STATUS",
        "archetype_node_id": "openEHR-EHR-EHR_STATUS.generic.v1",
        "name": {"_type": "DV_TEXT", "value": "Status"},
        "subject": {"_type": "PARTY_SELF", "external_ref": {
            "_type": "PARTY_REF", "namespace": "mrn", "type": "PERSON",
            "id": {"_type": "GENERIC_ID", "value": subject, "scheme": "x"},
        }},
        "is_queryable": true,
        "is_modifiable": true,
    });
    let answer = server.send("POST", &format!("{ITS}/ehr"), &status.to_string());
    assert_eq!(answer.status, 201, "{}", text(&answer));
    uid(&answer)
}

#[test]
fn pseudonyms_and_removals_follow_a_database_and_a_server() {
    let folder = Folder::new("lake-rules");
    let variables = [("AUTH", "none"), ("ADMIN", "true")];
    let server = Server::start(&folder, &[], &variables);
    server.store_templates();
    std::fs::write(folder.0.join("names.aql"), VIEW).expect("a view");
    std::fs::write(folder.0.join("other.aql"), VIEW).expect("a view");
    std::fs::write(folder.0.join("key"), "k".repeat(64)).expect("a key");
    let url = format!("http://{}", server.authority);
    let names = ["--view", "names.aql", "--pseudonyms", "key"];
    let both = [&names[..], &["--view", "other.aql"]].concat();
    let places = [("test.db", "of-database"), (url.as_str(), "of-server")];
    let has_none = |ids: &[&str]| {
        for (_, to) in places {
            for id in ids {
                let found = files_with(&folder.0.join(to), id);
                assert_eq!(found, Vec::<PathBuf>::new(), "{id}");
            }
        }
    };
    let (one, other) = (server.create_ehr(), create_ehr_of(&server, "MRN-2"));
    let simple = other.replace('-', "").to_uppercase();
    let texts = ["plain", &other, &format!("see {simple}."), "MRN-2", "MRN-3"];
    create(&server, &one, &texts.map(named));
    create(&server, &other, &[named("Unmistakable")]);
    for (data, to) in places {
        synced(&folder, data, to, &both);
    }
    has_none(&[&one, &other, &simple, "MRN-2"]);

    // A document names a patient before the EHR exists.
    let third = create_ehr_of(&server, "MRN-3");
    create(&server, &third, &[named("third")]);
    for (data, to) in places {
        let said = synced(&folder, data, to, &both);
        let expected = "1 rows of 1 compositions, 1 files written again";
        assert_eq!(said, format!("names: {expected}\nother: {expected}"));
    }
    has_none(&[&third, "MRN-3"]);

    let answer = server.send("DELETE", &format!("{ITS}/admin/ehr/{other}"), "");
    assert_eq!(answer.status, 204, "{}", text(&answer));
    for (data, to) in places {
        let arguments = ["lake", "sync", "-d", data, "--to", to];
        let output = folder.succeed(&[&arguments[..], &names].concat());
        assert!(said(&output).contains("--drop NAME"), "{}", said(&output));
        let lake = folder.0.join(to);
        assert_eq!(latest(&lake, "names"), latest(&lake, "other"));
        assert_eq!(latest(&lake, "names").len(), 6);
    }
    has_none(&[&other, &simple, "MRN-2", "Unmistakable"]);

    // A later document names the removed patient.
    create(
        &server,
        &one,
        &[named(&format!("see {other}")), named("MRN-2")],
    );
    for (data, to) in places {
        synced(&folder, data, to, &both);
        let lake = folder.0.join(to);
        assert_eq!(latest(&lake, "names"), latest(&lake, "other"));
        assert_eq!(latest(&lake, "names").len(), 8);
    }
    has_none(&[&other, &simple, "MRN-2"]);
    let of = |to: &str| latest(&folder.0.join(to), "names");
    assert_eq!(of("of-database"), of("of-server"));
    server.stop();
}

fn delete(server: &Server, ehr_id: &str, uid: &str) {
    let answer = server.send(
        "DELETE",
        &format!("{ITS}/ehr/{ehr_id}/composition/{uid}"),
        "",
    );
    assert_eq!(answer.status, 204, "{}", text(&answer));
}

/// Sets EHR_STATUS.is_queryable.
fn set_queryable(server: &Server, ehr_id: &str, is_queryable: bool) {
    let path = format!("{ITS}/ehr/{ehr_id}/ehr_status");
    let answer = server.send("GET", &path, "");
    let mut status: Value = serde_json::from_slice(&answer.body).expect("JSON");
    status["is_queryable"] = Value::from(is_queryable);
    let headers = [
        ("Content-Type", "application/json"),
        ("If-Match", &format!("\"{}\"", uid(&answer))),
    ];
    let body = status.to_string();
    let authority = &server.authority;
    let answer = super::over_http::send(authority, "PUT", &path, &headers, body.as_bytes());
    let answer = answer.expect("an answer");
    assert!(answer.status < 300, "{}", text(&answer));
}

/// Compares the present rows of the lake with those that a single sync writes, of the database and of
/// the server.
fn assert_is_fresh(folder: &Folder, server: &Server, view: &str) {
    let url = format!("http://{}", server.authority);
    let expected = latest(&folder.0.join("lake"), view);
    for (number, data) in ["test.db", &url].into_iter().enumerate() {
        let to = format!("fresh-{number}");
        drop(std::fs::remove_dir_all(folder.0.join(&to)));
        synced(folder, data, &to, &["--stored", "org.example::names"]);
        assert_eq!(latest(&folder.0.join(&to), view), expected, "{data}");
    }
    // The snapshot of an aqlite server tells that nothing was committed since.
    let state = std::fs::read_to_string(folder.0.join("fresh-1/_aqlite/state.json"));
    let state: Value = serde_json::from_str(&state.expect("a state")).expect("JSON");
    assert!(state["views"][view]["watermark"]["state"].is_string());
    let again = synced(folder, &url, "fresh-1", &["--stored", "org.example::names"]);
    assert_eq!(again, format!("{view}: no changes"));
}
