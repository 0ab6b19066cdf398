//! The form of authored AQL cases, and their run. `tests/it/rows.rs` describes it. The tests
//! inside wasm read this file too, so it does not use the other modules of these tests.

use aqlite::aql::{
    Budget, ExecutionPath, Parameter, Parameters, Plan, Progress, QueryOptions, Run, prepare,
};
use aqlite::document::Batch;
use std::collections::HashMap;

/// The time of every case.
pub const NOW: &str = "2026-01-02T03:04:05.678Z";

/// A query, the rows that it must return, and the data.
#[derive(Default)]
pub struct Case {
    pub title: String,
    pub data: String,
    pub query: String,
    pub parameters: Parameters,
    pub ehr: Option<String>,
    pub exact: bool,
    /// The names of execution paths that the query must take.
    pub paths: Vec<String>,
    pub error: Option<String>,
    pub expected: Vec<String>,
    pub unordered: bool,
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
    run_within(plan, batches, budget_of(query, plain))
}

/// Returns the rows of a plan from the merged results of runs over one batch each, and the
/// execution paths that produced them.
pub fn run_divided(
    query: &str,
    plan: &Plan,
    batches: &[&Batch],
    plain: bool,
) -> Result<(Vec<String>, Vec<ExecutionPath>), String> {
    let (budget, go_on) = (budget_of(query, plain), || false);
    let part = aqlite::aql::plan(plan.query().of_part(), None, plan.is_exact());
    let part = part.map_err(|diagnostics| format!("{diagnostics:?}"))?;
    let mut whole = Run::new(plan, NOW, budget, &go_on);
    for batch in batches {
        let mut run = Run::new(&part, NOW, budget, &go_on);
        run.push(batch);
        let partial = run.into_partial().map_err(|e| e.to_string())?;
        if whole.absorb(partial) == Progress::Enough {
            break;
        }
    }
    rows_of(whole)
}

/// Returns the budget of a query of the tests.
pub fn budget_of(query: &str, plain: bool) -> Budget {
    let usual = Budget::default();
    let length = query.len();
    Budget {
        plain,
        rows: 20_000,
        slice: 2,
        // Some queries read the data in parts of a few documents, others in one.
        part: if length.is_multiple_of(2) {
            3
        } else {
            usual.part
        },
        // Some queries are interrupted as often as possible.
        piece: if length.is_multiple_of(3) {
            usual.piece
        } else {
            1 + length as u64
        },
        ..usual
    }
}

/// Returns the rows of a plan within a budget, and the execution paths that produced them.
pub fn run_within(
    plan: &Plan,
    batches: &[&Batch],
    budget: Budget,
) -> Result<(Vec<String>, Vec<ExecutionPath>), String> {
    let go_on = || false;
    let mut run = Run::new(plan, NOW, budget, &go_on);
    for batch in batches {
        if !run.push(batch) {
            break;
        }
    }
    rows_of(run)
}

/// Returns the rows of a run that has read all batches, and the execution paths that produced them.
fn rows_of(run: Run<'_>) -> Result<(Vec<String>, Vec<ExecutionPath>), String> {
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

/// Reads the cases of a file.
pub fn read(text: &str) -> Vec<Case> {
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
            (None, None) if text.starts_with("path ") => self.demand(&text["path ".len()..]),
            _ => panic!("{}: with: {text}", self.title),
        }
    }

    /// Demands that the query takes an execution path.
    fn demand(&mut self, path: &str) {
        let known = ExecutionPath::ALL.iter().any(|known| known.name() == path);
        assert!(known, "{}: no execution path `{path}`", self.title);
        self.paths.push(path.to_owned());
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
