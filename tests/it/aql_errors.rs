//! The diagnostics of AQL as users see them: `tests/cases/aql/*.txt`.
//!
//! A case consists of a title behind `==`, JSON parameters behind `with` if it has any, the query,
//! and the diagnostics behind `=>`. A file with a line `lint:` and names of templates shows the
//! warnings of lint as well. `AQLITE_BLESS=1` writes the present diagnostics into the files.
//! Read the difference before you commit it.

use aqlite::aql::{CheckOptions, Parameter, Parameters, examine, lint, parse};
use aqlite::diag::{Diagnostic, LineIndex, Severity};
use aqlite::template::Template;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

#[test]
fn diagnostics_are_those_of_the_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/aql");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let bless = std::env::var_os("AQLITE_BLESS").is_some();
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let present = with_present_diagnostics(&text);
        if bless {
            fs::write(&file, &present).unwrap();
        } else if present != text {
            let different = present.lines().zip(text.lines()).find(|(a, b)| a != b);
            wrong.push(format!("{}: {different:?}", file.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "AQLITE_BLESS=1 writes these down anew:\n{}",
        wrong.join("\n")
    );
}

/// Returns the text of a file with the present diagnostics of each case.
fn with_present_diagnostics(text: &str) -> String {
    let mut blocks = text.split("\n== ");
    let mut out = blocks.next().unwrap_or_default().to_owned();
    let templates = out.lines().find_map(|line| line.strip_prefix("lint:"));
    let templates: Option<Vec<Template>> =
        templates.map(|names| names.split_whitespace().map(template).collect());
    for block in blocks {
        let case = block.split("\n=>").next().unwrap_or_default().trim_end();
        let (title, rest) = case.split_once('\n').unwrap_or((case, ""));
        let (parameters, query) = match rest.strip_prefix("with ") {
            Some(rest) => rest.split_once('\n').unwrap_or((rest, "")),
            None => ("{}", rest),
        };
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!("{rest}\n")
        };
        let _ = write!(
            out,
            "\n== {title}\n{rest}=>\n{}",
            diagnostics_of(query, &parameters_of(parameters), templates.as_deref())
        );
    }
    out
}

fn template(name: &str) -> Template {
    let path = format!("tests/cases/template/{name}");
    Template::parse(&fs::read_to_string(path).unwrap()).unwrap()
}

fn parameters_of(json: &str) -> Parameters {
    let value: Value = serde_json::from_str(json).unwrap();
    value
        .as_object()
        .unwrap()
        .iter()
        .map(|(k, v)| (k.clone(), parameter(v)))
        .collect()
}

fn parameter(value: &Value) -> Parameter {
    match value {
        Value::Bool(value) => Parameter::Boolean(*value),
        Value::Number(value) => Parameter::Number(value.to_string()),
        Value::String(value) => Parameter::Text(value.clone()),
        Value::Array(values) => Parameter::List(values.iter().map(parameter).collect()),
        Value::Null | Value::Object(_) => Parameter::Null,
    }
}

/// Returns the diagnostics of a query, with those of lint if there is a list of templates.
fn diagnostics_of(query: &str, parameters: &Parameters, templates: Option<&[Template]>) -> String {
    let (tree, mut diagnostics) = parse(query);
    if let Some(tree) = &tree {
        diagnostics = examine(tree, parameters, &CheckOptions::default()).1;
    }
    if let Some((tree, templates)) = tree.zip(templates) {
        let templates: Vec<&Template> = templates.iter().collect();
        let warnings = lint(query, &tree, parameters, &templates);
        diagnostics.extend(warnings.into_iter().map(|w| w.diagnostic));
    }
    if diagnostics.is_empty() {
        return "nothing\n".to_owned();
    }
    diagnostics
        .iter()
        .map(|d| diagnostic_text(query, d))
        .collect()
}

fn diagnostic_text(query: &str, diagnostic: &Diagnostic) -> String {
    let (line, column) = LineIndex::new(query).line_column(diagnostic.span.start);
    let source = query.lines().nth(line - 1).unwrap_or_default();
    let marked = query
        .get(diagnostic.span.start..diagnostic.span.end)
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default();
    let carets = "^".repeat(marked.chars().count().max(1));
    let warning = if diagnostic.severity == Severity::Warning {
        "warning: "
    } else {
        ""
    };
    let mut out = format!(
        "{line}:{column} {} {warning}{}\n",
        diagnostic.code, diagnostic.message
    );
    if !source.is_empty() {
        let _ = writeln!(out, "  {source}\n  {}{carets}", " ".repeat(column - 1));
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(out, "  help: {help}");
    }
    if let Some(fix) = diagnostic
        .fix
        .as_ref()
        .filter(|_| diagnostic.code > "AQL0604")
    {
        let _ = writeln!(out, "  fix: {}", fix.text);
    }
    out
}
