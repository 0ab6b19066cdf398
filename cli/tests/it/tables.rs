//! Results as Arrow streams and Parquet files: their rows are those of JSON.

use super::parity;
use super::program::{Folder, ran, sample};
use super::same_cells::{cells, difference};
use aqlite::arrow::TableFormat;
use aqlite::arrow::read::{TableRows, table};

const FORMATS: [(&str, TableFormat); 2] = [
    ("arrow", TableFormat::Arrow),
    ("parquet", TableFormat::Parquet),
];

/// Reads a table that the program has written into a file.
fn read(folder: &Folder, name: &str, format: TableFormat) -> TableRows {
    let bytes = std::fs::read(folder.path().join(name)).unwrap();
    table(format, bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn tables_have_the_rows_of_json_for_all_queries() {
    let folder = sample();
    let texts = parity::texts();
    // The clock advances between the formats.
    let is_constant =
        |text: &&String| !["CURRENT_", "NOW()"].iter().any(|part| text.contains(part));
    let texts = texts.iter().filter(|text| !text.is_empty());
    let texts: Vec<&String> = texts.filter(is_constant).collect();
    let script: String = (0..)
        .zip(&texts)
        .map(|(number, text)| commands(number, text))
        .collect();
    folder.shell(&["data", "templates"], &script);
    let mut compared = 0;
    for (number, text) in (0..).zip(&texts) {
        // A query with an error has no rows.
        let Ok(json) = std::fs::read_to_string(folder.path().join(format!("t{number}.json")))
        else {
            continue;
        };
        let (_, rows) = json.trim_end().split_once("\"rows\":").unwrap();
        let rows = cells(rows.strip_suffix('}').unwrap()).unwrap();
        for (ending, format) in FORMATS {
            let table = read(folder, &format!("t{number}.{ending}"), format);
            assert_eq!(difference(&rows, &table.rows), None, "{ending}: {text}");
            assert_eq!(table.aql.trim(), text.trim().trim_end_matches(';'));
        }
        compared += usize::from(!rows.is_empty());
    }
    assert!(compared > 30, "{compared} of {}", texts.len());
}

/// Returns the commands that write the rows of a query in all formats.
fn commands(number: usize, text: &str) -> String {
    let one = |format: &str| format!(".format {format}\n.output t{number}.{format}\n{text};\n");
    ["json", "arrow", "parquet"].map(one).concat()
}

/// A query whose times are all complete, with a zone.
const TIMES: &str = "SELECT c/context/start_time/value AS time FROM COMPOSITION c WHERE c/context/start_time/value LIKE '*T??:??:??+01:00'";

#[test]
fn ending_of_the_file_decides_the_format_and_times_their_columns() {
    let folder = sample();
    for (times, texts) in [
        ("instant", &[][..]),
        ("text", &[]),
        ("both", &["time_text"]),
    ] {
        for (ending, format) in FORMATS {
            let name = format!("times.{ending}");
            let data = ["query", "-d", "data", "-d", "templates"];
            let rest = ["--times", times, "-o", &name, TIMES];
            let ran = folder.run(&[&data[..], &rest].concat());
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
            let table = read(folder, &name, format);
            assert_eq!(
                (table.rows.len(), table.columns),
                (44, vec![String::from("time")])
            );
            assert_eq!(table.text_columns, texts, "{times} {ending}");
            let is_instant = table.rows.concat().iter().all(|time| time.ends_with("Z\""));
            assert_eq!(is_instant, times != "text", "{times} {ending}");
        }
    }
}

/// Queries whose tables are written segment by segment, and queries that need all rows before the
/// first one is known.
const PARTED: [&str; 6] = [
    "SELECT e/ehr_id/value, c/uid/value, c/name FROM EHR e CONTAINS COMPOSITION c",
    "SELECT o/data/events/data/items/value AS value, o/subject FROM OBSERVATION o WHERE o/name/value != 'x'",
    "SELECT c/uid/value FROM COMPOSITION c WHERE c/name/value = 'absent'",
    "SELECT c/uid/value FROM COMPOSITION c LIMIT 7 OFFSET 2",
    "SELECT DISTINCT c/name/value FROM COMPOSITION c ORDER BY c/name/value DESC",
    "SELECT COUNT(*) AS n, MAX(o/data/events/time/value) AS last FROM OBSERVATION o",
];

#[test]
fn tables_of_files_have_the_rows_of_json() {
    let folder = sample();
    let written = |name: &str, query: &str, limit: &str| {
        let data = ["query", "-d", "data", "-d", "templates", "-o", name];
        let ran = folder.run(&[&data[..], &["--limit", limit, query]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{query}");
    };
    for query in PARTED {
        for limit in ["5", "1000000"] {
            written("parted.json", query, limit);
            let json = std::fs::read_to_string(folder.path().join("parted.json")).unwrap();
            let (_, rows) = json.trim_end().split_once("\"rows\":").unwrap();
            let rows = cells(rows.strip_suffix('}').unwrap()).unwrap();
            for (ending, format) in FORMATS {
                let name = format!("parted.{ending}");
                written(&name, query, limit);
                let table = read(folder, &name, format);
                assert_eq!(difference(&rows, &table.rows), None, "{ending}: {query}");
            }
        }
    }
}

#[test]
fn limit_and_pipe_apply_to_tables() {
    let data = ["query", "-d", "data", "-d", "templates", "--limit", "3"];
    let mut command = sample().command(&[&data[..], &["--format", "arrow", TIMES]].concat());
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert_eq!(
        table(TableFormat::Arrow, output.stdout).unwrap().rows.len(),
        3
    );
}

#[cfg(unix)]
#[test]
fn terminal_gets_no_binary_format() {
    use expectrl::Expect;
    let arguments = ["query", "-d", "data", "--format", "parquet", TIMES];
    let command = sample().command(&arguments);
    let mut session = expectrl::session::Session::spawn(command).unwrap();
    session.set_expect_timeout(Some(std::time::Duration::from_secs(20)));
    session
        .expect("name a file, as in `-o rows.parquet`")
        .unwrap();
    session.expect(expectrl::Eof).unwrap();
}

#[test]
fn unwritable_file_is_an_error() {
    let data = ["query", "-d", "data", "-d", "templates"];
    let arguments = [&data[..], &["-o", "absent/rows.parquet", TIMES]].concat();
    let ran = ran(sample().command(&arguments).output().unwrap());
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("absent/rows.parquet"), "{}", ran.err);
}
