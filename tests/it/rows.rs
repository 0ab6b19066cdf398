//! Authored AQL cases: small documents, a query, and its rows.
//!
//! A file of `tests/cases/rows` holds data sets (`=== data NAME`, in the
//! [notation](super::notation)) and cases (`=== TITLE`): `data: NAME`, the query, and behind `----
//! rows` the rows as JSON arrays, one per line, in order. `---- unordered` compares them as a
//! multiset, `---- error CODE` expects a refusal of the query. A line `with:` above the query sets
//! a parameter (`with: $name = "text"`; `{"text": "5"}` as a URL does), restricts it to one EHR
//! (`with: ehr e1`), disables specialization (`with: exact`) or demands that the query takes an
//! execution path (`with: path sum of a column`; [`ExecutionPath::ALL`] has the names). A line that
//! starts with `#` is a comment. Every case is also run by the reference.

mod case;

use super::notation::Repository;
use super::reference;
use aqlite::aql::query::{AggregateFunction, Function, ValueType};
use aqlite::aql::{Budget, QueryOptions, check, lint, parse, prepare, prepare_tree};
use aqlite::document::Batch;
use case::{Case, budget_of, read, run_within};

pub use case::{NOW, run, run_divided, run_plan, traced};

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

/// The tests inside wasm name each file, because they can read no folder.
#[test]
fn authored_rows_run_in_wasm() {
    let project = env!("CARGO_MANIFEST_DIR");
    let source = format!("{project}/tests/wasm/tests/cases/aql.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let mut named: Vec<&str> = source
        .split("include_str!(\"../../../cases/rows/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    named.sort_unstable();
    let mut present: Vec<String> = std::fs::read_dir(format!("{project}/tests/cases/rows"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    present.sort();
    assert_eq!(named, present);
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

impl Case {
    /// Checks that an uninterrupted run takes the execution paths that the case demands.
    fn check_paths(&self, options: &QueryOptions<'_>, batch: &Batch) -> Result<(), String> {
        if self.paths.is_empty() {
            return Ok(());
        }
        let query = &self.query;
        let plan = prepare(query, &self.parameters, options).map_err(|d| format!("{d:?}"))?;
        let (_, taken) = run_within(&plan, &[batch], Budget::default())?;
        let is_taken = |name: &&String| taken.iter().any(|path| path.name() == name.as_str());
        match self.paths.iter().find(|name| !is_taken(name)) {
            Some(missing) => Err(format!("  {query}\n  takes {taken:?}, not `{missing}`")),
            None => Ok(()),
        }
    }

    /// Checks the rows of runs over several batches, up to one for each document, or for each EHR if
    /// EHRs must be whole.
    fn check_parts(
        &self,
        options: &QueryOptions<'_>,
        repository: &Repository,
        expected: &[String],
    ) -> Result<(), String> {
        let query = &self.query;
        let plan = prepare(query, &self.parameters, options).map_err(|d| format!("{d:?}"))?;
        for count in [1, 2, 3, usize::MAX] {
            let parts = repository.parts(plan.scan().whole_ehrs, count);
            let parts: Vec<&Batch> = parts.iter().collect();
            for budget in [Budget::default(), budget_of(query, false)] {
                let (found, _) = run_within(&plan, &parts, budget)?;
                if found != expected {
                    return Err(format!(
                        "  {query}\n  one batch {expected:#?}\n  {} batches {found:#?}",
                        parts.len()
                    ));
                }
            }
        }
        Ok(())
    }

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
        self.check_paths(&options, &batch)?;
        if found != plain {
            return Err(format!(
                "  {}\n  plain {plain:#?}\n  optimised {found:#?}",
                self.query
            ));
        }
        self.check_parts(&options, &repository, &plain)?;
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
