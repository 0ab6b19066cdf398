//! `docs/statements.md`: every statement of the service specification has tests, and the tests that
//! it names exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The headings of the page, which are those of the specification with statements.
const HEADINGS: [&str; 36] = [
    "What the service does",
    "Terms",
    "Conformance manifest",
    "Template entry",
    "Template document",
    "Stored query entry",
    "Stored query detail",
    "Store-query request body",
    "AQL request bodies",
    "Result set",
    "Error body",
    "GDL execution request",
    "GDL execution response",
    "JSON representation rules",
    "States and transitions",
    "OPTIONS /",
    "POST /definition/template",
    "GET /definition/template/{template_id}",
    "GET /definition/template/{template_id}/{version_pattern}",
    "GET /definition/query/{qualified_query_name}",
    "PUT /query/{qualified_query_name}/{version}",
    "GET /query/{qualified_query_name}/{version}: the definition",
    "Query execution: common rules",
    "GET /query/aql",
    "POST /query/aql",
    "GET /query/{qualified_query_name}/{version}: the execution",
    "POST /query/{qualified_query_name}/{version}",
    "GET /gdl/query/{ehr_id}/{guide_id}",
    "POST /gdl/query",
    "Common headers",
    "Representation negotiation",
    "Authentication",
    "Errors: codes",
    "Errors: rules",
    "Limits",
    "Versioning",
];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of the tests of a file: scenarios, or tests of Node.
fn tests_of(root: &Path, file: &str) -> Vec<String> {
    if file.ends_with(".rest") {
        let text = read(&root.join("tests/cases/rest").join(file));
        let titles = text.lines().filter_map(|line| line.strip_prefix("=== "));
        return titles
            .map(|title| {
                title
                    .split_once(" {")
                    .map_or(title, |(title, _)| title)
                    .to_owned()
            })
            .collect();
    }
    let text = read(&root.join("tests/e2e").join(file));
    text.lines()
        .filter_map(|line| {
            line.strip_prefix("test(\"")?
                .split_once('"')
                .map(|(name, _)| name.to_owned())
        })
        .collect()
}

/// Returns the error of a row: its number, its statement, its tests.
fn complaint(
    root: &Path,
    known: &mut BTreeMap<String, Vec<String>>,
    number: usize,
    row: &str,
) -> Option<String> {
    let cells: Vec<&str> = row
        .trim()
        .trim_matches('|')
        .split(" | ")
        .map(str::trim)
        .collect();
    let [given, statement, tests] = cells.as_slice() else {
        return Some(String::from("it has not three cells"));
    };
    if given.parse() != Ok(number) || statement.is_empty() {
        return Some(format!("it should be number {number}"));
    }
    tests.split("<br>").find_map(|test| {
        let named = test
            .strip_prefix('`')
            .and_then(|rest| rest.split_once("`: "));
        let Some((file, name)) = named else {
            return Some(format!("`{test}` names no test"));
        };
        let tests = known
            .entry(file.to_owned())
            .or_insert_with(|| tests_of(root, file));
        (!tests.iter().any(|t| t == name)).then(|| format!("there is no test `{name}` in {file}"))
    })
}

#[test]
fn every_statement_is_shown_by_tests_that_exist() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let page = read(&root.join("docs/statements.md"));
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    let headings: Vec<&str> = sections
        .iter()
        .filter_map(|section| section.lines().next())
        .collect();
    assert_eq!(headings, HEADINGS);
    let (mut known, mut complaints) = (BTreeMap::new(), Vec::new());
    for section in sections {
        let rows: Vec<&str> = section
            .lines()
            .filter(|line| line.starts_with('|'))
            .skip(2)
            .collect();
        let heading = section.lines().next().unwrap_or_default();
        assert!(!rows.is_empty(), "{heading} states nothing");
        let found = rows
            .iter()
            .enumerate()
            .filter_map(|(index, row)| complaint(&root, &mut known, index + 1, row));
        complaints.extend(found.map(|what| format!("{heading}: {what}")));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn every_status_of_the_service_is_stated() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let source = read(&root.join("src/service/error.rs"));
    let (_, table) = source.split_once("fn reason(status: u16)").unwrap();
    let (table, _) = table.split_once("_ =>").unwrap();
    let statuses: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().split_once(" => ").map(|(status, _)| status))
        .collect();
    assert!(statuses.len() > 20, "{statuses:?}");
    let page = read(&root.join("docs/statements.md"));
    let (_, errors) = page.split_once("\n## Errors: codes").unwrap();
    let unstated = statuses.iter().filter(|status| !errors.contains(**status));
    assert_eq!(unstated.collect::<Vec<_>>(), Vec::<&&str>::new());
}
