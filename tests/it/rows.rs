//! Authored AQL cases: small documents, a query, and its rows.
//!
//! A file of `tests/cases/rows` holds data sets (`=== data NAME`, in the
//! [notation](super::notation)) and cases (`=== TITLE`): `data: NAME`, the query, and behind `----
//! rows` the rows as JSON arrays, one per line, in order. `---- unordered` compares them as a
//! multiset, `---- error CODE` expects a refusal of the query. A line `with:` above the query sets
//! a parameter (`with: $name = "text"`; `{"text": "5"}` as a URL does), restricts it to one EHR
//! (`with: ehr e1`) or disables specialization (`with: exact`). A line that starts with `#` is a
//! comment. Every case is also run by the reference.

use super::notation::Repository;
use super::reference;
use aqlite::aql::query::{AggregateFunction, Function, ValueType};
use aqlite::aql::{
    Budget, ExecutionPath, Parameter, Parameters, Plan, QueryOptions, Run, check, lint, parse,
    prepare, prepare_tree,
};
use aqlite::document::Batch;
use std::collections::HashMap;

#[test]
fn authored_rows() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/rows");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        for case in read(&text) {
            count += 1;
            if let Err(message) = case.check() {
                wrong.push(format!("{file}: {}\n{message}", case.title));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 0);
}

/// A warning of lint that follows from the language alone has no row to the contrary.
#[test]
fn no_row_refutes_a_warning_of_lint() {
    let mut warnings = 0;
    for case in all_cases().iter().filter(|case| case.error.is_none()) {
        let ast = parse(&case.query).0.unwrap();
        let repository = Repository::read(&case.data).unwrap();
        let options = QueryOptions {
            exact_archetypes: case.exact,
            ..QueryOptions::default()
        };
        for warning in lint(&case.query, &ast, &case.parameters, &[]) {
            warnings += 1;
            let plan = prepare_tree(&warning.contrary, &case.parameters, &options).unwrap();
            let found = run_plan(&case.query, &plan, &[&repository.batch()], false);
            let title = (&case.title, &warning.diagnostic);
            assert_eq!(found.map(|(rows, _)| rows), Ok(Vec::new()), "{title:?}");
            assert!(warning.is_certain, "{title:?}");
        }
    }
    assert!(warnings > 20, "the cases have {warnings} warnings");
}

/// Returns the cases of all files.
fn all_cases() -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/rows");
    std::fs::read_dir(folder)
        .unwrap()
        .flat_map(|entry| read(&std::fs::read_to_string(entry.unwrap().path()).unwrap()))
        .collect()
}

#[test]
fn every_function_has_a_case_with_rows() {
    let queries: Vec<String> = all_cases()
        .into_iter()
        .filter(|case| case.error.is_none() && !case.expected.is_empty())
        .map(|case| case.query.to_uppercase())
        .collect();
    let is_called = |name: &str| {
        let call = format!("{name}(");
        let begins = |query: &str, at: usize| !query[..at].ends_with(|c: char| c.is_alphanumeric());
        let mut calls = queries
            .iter()
            .flat_map(|query| query.match_indices(&call).map(move |(at, _)| (query, at)));
        calls.any(|(query, at)| begins(query, at))
    };
    let aggregates = AggregateFunction::ALL.iter().map(|f| f.name());
    let missing: Vec<&str> = aggregates
        .chain(Function::ALL.iter().map(|f| f.name()))
        .filter(|name| !is_called(name))
        .collect();
    assert!(
        missing.is_empty(),
        "tests/cases/rows has no call of {missing:?}"
    );
}

/// The documentation shows the declared type of each aggregate function.
#[test]
fn results_of_aggregates_have_the_declared_type() {
    for entry in AggregateFunction::ALL.iter().map(|f| f.entry()) {
        let name = entry.name;
        let cases = all_cases().into_iter().filter(|case| {
            let query = case.query.to_uppercase();
            query.starts_with(&format!("SELECT {name}(")) && case.error.is_none()
        });
        let rows: Vec<String> = cases.flat_map(|case| case.expected).collect();
        assert!(!rows.is_empty(), "no case selects {name} first");
        for row in rows {
            let cells: Vec<serde_json::Value> = serde_json::from_str(&row).unwrap();
            let first = cells.first().unwrap();
            let is_of_type = match entry.result {
                ValueType::Number => first.is_number(),
                ValueType::Boolean => first.is_boolean(),
                ValueType::Text => first.is_string(),
                ValueType::Any => true,
            };
            assert!(first.is_null() || is_of_type, "{name}: {row}");
        }
    }
}

/// The time of every case.
pub const NOW: &str = "2026-01-02T03:04:05.678Z";

#[derive(Default)]
struct Case {
    title: String,
    data: String,
    query: String,
    parameters: Parameters,
    ehr: Option<String>,
    exact: bool,
    error: Option<String>,
    expected: Vec<String>,
    unordered: bool,
}

impl Case {
    fn check(&self) -> Result<(), String> {
        let repository = Repository::read(&self.data)?;
        let batch = repository.batch();
        let options = QueryOptions {
            ehr: self.ehr.as_deref(),
            exact_archetypes: self.exact,
            ..QueryOptions::default()
        };
        if let Some(code) = &self.error {
            return match prepare(&self.query, &self.parameters, &options) {
                Err(found) if found.iter().any(|d| d.code == code) => Ok(()),
                other => Err(format!(
                    "  {}\n  expected {code}, found {other:?}",
                    self.query
                )),
            };
        }
        let plain = run(&self.query, &self.parameters, &options, &[&batch], true)?;
        let mut found = run(&self.query, &self.parameters, &options, &[&batch], false)?;
        if found != plain {
            return Err(format!(
                "  {}\n  plain {plain:#?}\n  optimised {found:#?}",
                self.query
            ));
        }
        let mut expected = self.expected.clone();
        if self.unordered {
            found.sort();
            expected.sort();
        }
        if found != expected {
            return Err(format!(
                "  {}\n  expected {expected:#?}\n  found {found:#?}",
                self.query
            ));
        }
        let query = parse(&self.query)
            .0
            .and_then(|ast| check(&ast, &self.parameters, &Default::default()).ok())
            .ok_or("not a query")?;
        let judged = reference::rows(
            &query,
            &repository,
            &reference::Options {
                ehr: options.ehr,
                exact: self.exact,
                now: NOW,
            },
        );
        let judged = judged.ok_or("too much for the reference")?;
        if judged == plain {
            Ok(())
        } else {
            Err(format!(
                "  {}\n  reference {judged:#?}\n  plain {plain:#?}",
                self.query
            ))
        }
    }
}

/// Returns the rows of a query over some batches, each as a JSON array.
pub fn run(
    query: &str,
    parameters: &Parameters,
    options: &QueryOptions<'_>,
    batches: &[&Batch],
    plain: bool,
) -> Result<Vec<String>, String> {
    traced(query, parameters, options, batches, plain).map(|(rows, _)| rows)
}

/// Returns the rows of a query, and the execution paths that produced them.
pub fn traced(
    query: &str,
    parameters: &Parameters,
    options: &QueryOptions<'_>,
    batches: &[&Batch],
    plain: bool,
) -> Result<(Vec<String>, Vec<ExecutionPath>), String> {
    let messages = |problems: Vec<aqlite::diag::Diagnostic>| {
        problems
            .iter()
            .map(|d| d.one_line(query))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let plan = prepare(query, parameters, options).map_err(messages)?;
    run_plan(query, &plan, batches, plain)
}

/// Returns the rows of a plan, and the execution paths that produced them.
pub fn run_plan(
    query: &str,
    plan: &Plan,
    batches: &[&Batch],
    plain: bool,
) -> Result<(Vec<String>, Vec<ExecutionPath>), String> {
    let go_on = || false;
    // Some queries read the data in parts of a few documents, others in one.
    let part = if query.len().is_multiple_of(2) {
        3
    } else {
        Budget::default().part
    };
    // Some queries are interrupted as often as possible.
    let piece = if query.len().is_multiple_of(3) {
        Budget::default().piece
    } else {
        1 + query.len() as u64
    };
    let mut run = Run::new(
        plan,
        NOW,
        Budget {
            plain,
            rows: 20_000,
            slice: 2,
            part,
            piece,
            ..Budget::default()
        },
        &go_on,
    );
    for batch in batches {
        if !run.push(batch) {
            break;
        }
    }
    let paths = run.execution_paths().collect();
    let result = run.finish().map_err(|e| e.to_string())?;
    let rows = result
        .rows()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .map(|cell| {
                    let mut out = String::new();
                    cell.write_json(&mut out);
                    out
                })
                .collect();
            format!("[{}]", cells.join(", "))
        })
        .collect();
    Ok((rows, paths))
}

fn read(text: &str) -> Vec<Case> {
    let mut data: HashMap<String, String> = HashMap::new();
    let mut cases = Vec::new();
    for block in format!("\n{text}").split("\n=== ").skip(1) {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        if let Some(name) = head.strip_prefix("data ") {
            data.insert(name.trim().to_owned(), body.to_owned());
            continue;
        }
        let mut case = Case {
            title: head.trim().to_owned(),
            ..Case::default()
        };
        let mut below = false;
        for line in body
            .lines()
            .filter(|l| !l.trim().is_empty() && !l.starts_with('#'))
        {
            if let Some(name) = line.strip_prefix("data: ") {
                case.data = data
                    .get(name.trim())
                    .unwrap_or_else(|| panic!("{}: no data `{name}`", case.title))
                    .clone();
            } else if let Some(option) = line.strip_prefix("with: ") {
                case.option(option.trim());
            } else if let Some(what) = line.strip_prefix("---- ") {
                below = true;
                case.unordered = what == "unordered";
                case.error = what.strip_prefix("error ").map(str::to_owned);
            } else if below {
                case.expected.push(line.to_owned());
            } else {
                case.query.push_str(line);
                case.query.push('\n');
            }
        }
        assert!(below, "{}: no rows", case.title);
        cases.push(case);
    }
    cases
}

impl Case {
    fn option(&mut self, text: &str) {
        match (
            text.strip_prefix("ehr "),
            text.strip_prefix('$').and_then(|t| t.split_once(" = ")),
        ) {
            (Some(ehr), _) => self.ehr = Some(ehr.to_owned()),
            (None, Some((name, value))) => drop(self.parameters.insert(
                name.to_owned(),
                parameter(&serde_json::from_str(value).expect("JSON")),
            )),
            (None, None) if text == "exact" => self.exact = true,
            _ => panic!("{}: with: {text}", self.title),
        }
    }
}

fn parameter(value: &serde_json::Value) -> Parameter {
    match value {
        serde_json::Value::Bool(flag) => Parameter::Boolean(*flag),
        serde_json::Value::Number(number) => Parameter::Number(number.to_string()),
        serde_json::Value::String(text) => Parameter::Text(text.clone()),
        serde_json::Value::Array(values) => Parameter::List(values.iter().map(parameter).collect()),
        serde_json::Value::Object(members) => {
            Parameter::Untyped(members["text"].as_str().expect("a text").to_owned())
        }
        serde_json::Value::Null => Parameter::Null,
    }
}
