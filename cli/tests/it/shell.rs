//! The command `shell`: from a script, and at a pseudo-terminal.

use super::program::{Folder, Ran, generator, sample};
use expectrl::session::{OsSession, Session};
use expectrl::{ControlCode, Expect};
use std::time::Duration;

fn script(folder: &Folder, text: &str) -> Ran {
    folder.shell(&["data", "templates"], text)
}

#[test]
fn script_runs_queries_and_commands() {
    let ran = script(
        sample(),
        ".templates\n.schema openEHR-EHR-OBSERVATION.pulse.v2\n.param n=1\n.param\n.format ndjson\nSELECT COUNT(*) AS n\nFROM COMPOSITION c;\nSELECT COUNT(*) AS n FROM EHR e\n\n.explain\n.output rows.csv\n.format csv\nSELECT COUNT(*) AS n FROM EHR e;\n.quit\nSELECT",
    );
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for expected in [
        "sample.vital_signs.v1\n",
        "data[at0002]/events[at0003]/data[at0001]/items[at0004]/value",
        "$n = 1\n",
        "{\"n\":200}\n",
        "{\"n\":20}\n",
        "reads the list of EHRs",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    let rows = std::fs::read_to_string(sample().path().join("rows.csv")).unwrap();
    assert_eq!(rows, "n\n20\n");
}

#[test]
fn errors_of_a_script_are_reported_and_the_next_statement_runs() {
    let text = "SELECT c FROM COMPOSITON c;\n.wrong\n.format xls\n.schema nothing\nSELECT COUNT(*) AS n FROM EHR e;\n";
    let ran = script(sample(), text);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "n\n20\n"));
    for expected in [
        "AQL0201",
        "`.wrong` is no command",
        "the formats are",
        "`nothing`",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

#[test]
fn queries_behind_output_append_to_its_file() {
    let folder = Folder::new();
    let one = |name: &str| format!("SELECT 1 AS {name} FROM EHR e LIMIT 1;\n");
    let (a, b) = (one("a"), one("b"));
    folder.write("rows.csv", "old");
    folder.write("data/p/1.json", &generator().composition(0).json);
    let ran = folder.shell(&["data"], &format!(".output rows.csv\n{a}{b}.output\n{a}"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out, "a\n1\n");
    let rows = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(rows("rows.csv"), b"a\n1\nb\n1\n");
    let text = format!(".format parquet\n.output rows.parquet\n{a}{b}.format csv\n{a}");
    let ran = folder.shell(&["data"], &text);
    assert_eq!(ran.code, Some(1));
    let refused = "`rows.parquet` has the rows of another query";
    assert_eq!(ran.err.matches(refused).count(), 2, "{}", ran.err);
    assert!(rows("rows.parquet").ends_with(b"PAR1"));
}

/// Starts the shell at a pseudo-terminal, which answers the request for the position of the cursor
/// as a terminal does.
fn terminal(folder: &Folder) -> OsSession {
    let mut command = folder.command(&["shell", "-d", "data", "-d", "templates"]);
    command.env("AQLITE_HISTORY", folder.path().join("history.txt"));
    command.env("TERM", "xterm");
    let mut session = Session::spawn(command).unwrap();
    session.set_expect_timeout(Some(Duration::from_secs(20)));
    session.get_process_mut().set_window_size(120, 40).unwrap();
    session
}

/// Waits until the editor requests the position of the cursor, and answers.
fn prompt(session: &mut OsSession) {
    session.expect("\u{1b}[6n").unwrap();
    session.send("\u{1b}[1;1R").unwrap();
    session.expect("aqlite").unwrap();
}

#[test]
fn terminal_completes_edits_and_ends() {
    let folder = sample();
    let mut session = terminal(folder);
    session.expect("200 documents of 20 EHRs").unwrap();
    prompt(&mut session);
    // An incomplete query continues in the next line.
    session.send("SELECT COUNT(*) AS n\r").unwrap();
    session.expect("...>").unwrap();
    session.send("FROM EHR e\r").unwrap();
    session.expect("20").unwrap();
    session.expect("1 row").unwrap();
    prompt(&mut session);
    // The menu has archetypes with their clinical names.
    session
        .send("SELECT o FROM OBSERVATION o[openEHR-EHR-OBSERVATION.pul\t")
        .unwrap();
    session.expect("openEHR-EHR-OBSERVATION.pulse.v2").unwrap();
    session.send(ControlCode::EndOfText).unwrap();
    prompt(&mut session);
    // A path before FROM is completed by the class behind it.
    session
        .send("SELECT o/ FROM OBSERVATION o[openEHR-EHR-OBSERVATION.pulse.v2]")
        .unwrap();
    session.send(ControlCode::StartOfHeading).unwrap();
    session.send("\u{1b}[C".repeat("SELECT o/".len())).unwrap();
    session.send("\t").unwrap();
    session.expect("data[at0002]").unwrap();
    session.send(ControlCode::EndOfText).unwrap();
    prompt(&mut session);
    // An error is shown under the text, and the shell continues.
    session.send("SELECT c FROM COMPOSITON c\r").unwrap();
    session.expect("AQL0201").unwrap();
    session.expect("^^^^").unwrap();
    prompt(&mut session);
    session.send(ControlCode::EndOfTransmission).unwrap();
    session.expect(expectrl::Eof).unwrap();
    let history = std::fs::read_to_string(folder.path().join("history.txt")).unwrap();
    assert!(history.contains("FROM EHR e"), "{history}");
}
