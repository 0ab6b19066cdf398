//! Ctrl-C and signals to stop end each command at a point where nothing is half written, with exit code 130.

use super::program::{Folder, Ran, ran};
use rusqlite::Connection;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// The maximum time until something happens that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(folder: &Folder, arguments: &[&str]) -> Child {
    let mut command = folder.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program")
}

/// Sends one SIGINT, and waits until the handler has run.
fn press_ctrl_c(child: &Child) {
    send(child, "-INT");
}

/// Sends a signal, and waits until the handler has run.
fn send(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status();
    assert!(sent.expect("kill").success());
    sleep(Duration::from_millis(300));
}

fn end(child: Child) -> Ran {
    ran(child.wait_with_output().expect("its end"))
}

/// Creates a named pipe: each of its ends waits until the other one is opened.
fn pipe(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo").success());
    path
}

/// Opens a pipe when the program has opened its other end.
///
/// # Panics
/// If the program does not open it within [`PATIENCE`]. The thread that waits ends with the tests.
fn open_when_used(pipe: PathBuf, options: &OpenOptions) -> File {
    let options = options.clone();
    let (sender, receiver) = channel();
    spawn(move || sender.send(options.open(pipe)));
    let opened = receiver.recv_timeout(PATIENCE);
    opened.expect("the program opens the pipe").unwrap()
}

#[test]
fn check_ends_behind_the_file_that_it_reads() {
    let folder = Folder::new();
    let lines = pipe(&folder, "1.ndjson");
    folder.write("2.aql", "SELECT c FROM COMPOSITON c\n");
    let child = start(&folder, &["check", "1.ndjson", "2.aql"]);
    let mut writer = open_when_used(lines, File::options().write(true));
    press_ctrl_c(&child);
    writer.write_all(b"{\"a\":1}\n{\"a\":2}\n").unwrap();
    drop(writer);
    let ran = end(child);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(130), "", "")
    );
}

#[test]
fn convert_ends_behind_the_file_that_it_writes() {
    let folder = Folder::new();
    // More than the buffer of the pipe: the program waits until the test reads.
    let name = "a".repeat(1 << 20);
    let document = format!(r#"{{"_type":"FOLDER","name":{{"_type":"DV_TEXT","value":"{name}"}}}}"#);
    folder.write("in/1.json", &document);
    folder.write("in/2.json", &document);
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let first = pipe(&folder, "out/1.json");
    let child = start(&folder, &["convert", "in", "--to", "json", "-o", "out"]);
    let mut reader = open_when_used(first, File::options().read(true));
    press_ctrl_c(&child);
    let mut written = String::new();
    reader.read_to_string(&mut written).unwrap();
    let ran = end(child);
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""));
    assert!(written.ends_with("}\n"));
    assert!(!folder.path().join("out").join("2.json").exists());
}

#[test]
fn convert_writes_each_document_of_lines_when_it_is_read() {
    let folder = Folder::new();
    let lines = pipe(&folder, "1.ndjson");
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let child = start(
        &folder,
        &["convert", "1.ndjson", "--to", "xml", "-o", "out"],
    );
    let mut writer = open_when_used(lines, File::options().write(true));
    let name = r#"{"_type":"DV_TEXT","value":"A"}"#;
    let document = format!("{{\"_type\":\"FOLDER\",\"name\":{name}}}\n");
    writer.write_all(document.repeat(2).as_bytes()).unwrap();
    let written = |number| {
        let name = format!("out/1-{number}.xml");
        folder.path().join(name).exists()
    };
    let until = Instant::now() + PATIENCE;
    while !(written(1) && written(2)) {
        assert!(Instant::now() < until, "no document is written");
        sleep(Duration::from_millis(10));
    }
    press_ctrl_c(&child);
    writer.write_all(document.as_bytes()).unwrap();
    drop(writer);
    let ran = end(child);
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""));
    assert!(!written(3));
}

#[test]
fn load_ends_while_the_server_is_silent_and_names_the_line() {
    let folder = Folder::new();
    folder.write("lines.ndjson", "{\"ehr_id\":\"a\"}\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let child = start(&folder, &["load", "lines.ndjson", "--base", &base]);
    let (mut connection, _) = listener.accept().unwrap();
    let mut begin = [0; 16];
    connection.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"POST /v1/ehr/bul");
    press_ctrl_c(&child);
    let ran = end(child);
    assert_eq!((ran.code, ran.out.as_str()), (Some(130), ""));
    assert!(ran.err.contains("--from 1"), "{}", ran.err);
}

#[test]
fn backup_removes_what_it_has_copied() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        backup_is_removed_after(signal);
    }
}

fn backup_is_removed_after(signal: &str) {
    let folder = Folder::new();
    let create = |name: &str| {
        let database = Connection::open(folder.path().join(name)).unwrap();
        database.execute_batch("CREATE TABLE t (a)").unwrap();
        database
    };
    let database = create("aqlite.db");
    drop(create("aqlite.db.access-log"));
    // The copy waits for this lock when it has created its file.
    database.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let child = start(&folder, &["backup", "copy"]);
    let unfinished = folder.path().join("copy.tmp");
    let until = Instant::now() + PATIENCE;
    while !unfinished.join("aqlite.db").exists() {
        assert!(Instant::now() < until, "the copy does not begin");
        sleep(Duration::from_millis(10));
    }
    send(&child, signal);
    database.execute_batch("ROLLBACK").unwrap();
    let ran = end(child);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(130), "", ""),
        "{signal}"
    );
    assert!(!unfinished.exists() && !folder.path().join("copy").exists());
}

#[test]
fn command_of_nohup_goes_on_when_its_terminal_ends() {
    let folder = Folder::new();
    let lines = pipe(&folder, "1.ndjson");
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_aqlite"));
    command
        .args(["check", "1.ndjson"])
        .current_dir(folder.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.stdin(Stdio::null()).spawn().expect("nohup");
    let mut writer = open_when_used(lines, File::options().write(true));
    send(&child, "-HUP");
    writer.write_all(b"{\"a\":1}\n").unwrap();
    drop(writer);
    let ran = end(child);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
}
