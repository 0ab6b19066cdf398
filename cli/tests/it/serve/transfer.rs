//! `aqlite export` and `aqlite import`: the content of one server in another one.

use super::server::{Folder, ITS, Server, compositions, text};
use std::process::Output;

const ADMIN: [(&str, &str); 1] = [("ADMIN", "true")];
/// Returns the line that a command has written, which must succeed.
fn written(output: &Output) -> String {
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problems}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts a server with templates.
fn start(folder: &Folder) -> (Server, String) {
    let server = Server::start(folder, &["--open"], &ADMIN);
    let base = format!("http://{}", server.authority);
    (server, base)
}

#[test]
fn an_export_that_broke_off_is_completed_and_imported() {
    let (here, there) = (Folder::new("export"), Folder::new("import"));
    let (server, base) = start(&here);
    server.store_templates();
    let ehr = server.create_ehr();
    for composition in compositions(3) {
        let made = server.send(
            "POST",
            &format!("{ITS}/ehr/{ehr}/composition"),
            &composition,
        );
        assert_eq!(made.status, 201, "{}", text(&made));
    }
    let export = |name: &str| here.run(&["export", name, "--base", &base]);
    assert!(written(&export("whole.ndjson")).ends_with("records exported to whole.ndjson"));
    let whole = std::fs::read_to_string(here.0.join("whole.ndjson")).unwrap();
    assert!(whole.lines().count() > 5, "{whole}");

    // A file that ends within its fourth line.
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let broken = lines[..3].concat() + &lines[3][..lines[3].len() / 2];
    std::fs::write(here.0.join("broken.ndjson"), broken).unwrap();
    let left = lines.len() - 3;
    assert_eq!(
        written(&export("broken.ndjson")),
        format!("{left} records exported to broken.ndjson")
    );
    let completed = std::fs::read_to_string(here.0.join("broken.ndjson")).unwrap();
    assert!(completed == whole, "the completed file differs");

    // A definition that is stored before the export continues is among the first lines.
    let query = r#"{"q":"SELECT e/ehr_id/value FROM EHR e"}"#;
    let path = format!("{ITS}/definition/query/org.example::later/1.0.0");
    let stored = server.send("PUT", &path, query);
    assert!(stored.status < 300, "{}", text(&stored));
    let is_contribution = |line: &&str| line.contains(r#""record":{"ehr_id""#);
    let first = lines.iter().position(is_contribution).unwrap();
    std::fs::write(here.0.join("late.ndjson"), lines[..=first].concat()).unwrap();
    written(&export("late.ndjson"));
    written(&export("fresh.ndjson"));
    let whole = std::fs::read_to_string(here.0.join("fresh.ndjson")).unwrap();
    assert!(whole.contains("org.example::later"), "{whole}");
    let late = std::fs::read_to_string(here.0.join("late.ndjson")).unwrap();
    assert!(late == whole, "the definition is not in its place");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();

    // A complete file may have an earlier state.
    let complete = refused(&export("whole.ndjson"));
    assert!(
        complete.contains("whole.ndjson: the file is a complete export"),
        "{complete}"
    );
    server.stop();

    let (server, base) = start(&there);
    let file = here.0.join("fresh.ndjson");
    let import = |file: &str| there.run(&["import", file, "--base", &base]);
    let file = file.to_str().unwrap();
    // The last line is the end, which is no record.
    let records = lines.len() - 1;
    assert_eq!(
        written(&import(file)),
        format!("{records} records imported, 0 were there")
    );
    assert_eq!(
        written(&import(file)),
        format!("0 records imported, {records} were there")
    );
    assert_eq!(
        server.count("SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c"),
        3
    );
    written(&there.run(&["export", "again.ndjson", "--base", &base]));
    let again = std::fs::read_to_string(there.0.join("again.ndjson")).unwrap();
    assert!(again == whole, "the export of an import differs");

    std::fs::write(
        there.0.join("altered.ndjson"),
        whole.replace("openehr", "openEHR"),
    )
    .unwrap();
    let altered = refused(&import("altered.ndjson"));
    assert!(altered.contains("the export was altered"), "{altered}");

    let records = lines.len() - 2;
    std::fs::write(there.0.join("part.ndjson"), lines[..records].concat()).unwrap();
    let part = import("part.ndjson");
    let said = format!("0 records imported, {records} were there\n");
    assert_eq!(String::from_utf8_lossy(&part.stdout), said);
    let part = refused(&part);
    assert!(part.contains("the export broke off"), "{part}");
    server.stop();
}

#[test]
fn a_server_without_administration_refuses_an_export() {
    let folder = Folder::new("transfer-refused");
    let server = Server::start(&folder, &["--open"], &[]);
    let base = format!("http://{}", server.authority);
    std::fs::write(folder.0.join("empty.ndjson"), "").unwrap();
    let export = refused(&folder.run(&["export", "a.ndjson", "--base", &base]));
    assert!(
        export.contains("administration is switched off: set the variable `ADMIN=true`"),
        "{export}"
    );
    assert!(
        !folder.0.join("a.ndjson").exists(),
        "no file without a page"
    );
    let broken = r#"{"digest":"0"#;
    for (name, held) in [("b.json", r#"{"a":1}"#), ("broken.ndjson", broken)] {
        std::fs::write(folder.0.join(name), held).unwrap();
        refused(&folder.run(&["export", name, "--base", &base]));
        let left = std::fs::read_to_string(folder.0.join(name)).unwrap();
        assert_eq!(left, held, "a refused export leaves the file");
    }
    let import = refused(&folder.run(&["import", "empty.ndjson", "--base", &base]));
    assert!(import.contains("the export broke off"), "{import}");
    server.stop();
}
