//! Problems as JSON, and as SARIF 2.1.0 (OASIS) for editors and code scanning.

use super::problem::{Problem, Region};
use aqlite::aql::LINT_RULES;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn level(problem: &Problem) -> &'static str {
    if problem.is_error() {
        "error"
    } else {
        "warning"
    }
}

/// Returns problems as a list of `{path, line, column, endLine, endColumn, severity, code, message,
/// help, fix}`. `fix` is `null`, or the range and the replacement that remove the problem.
pub fn list(problems: &[Problem]) -> Value {
    let one = |problem: &Problem| {
        let region = problem.region();
        json!({
            "path": problem.source.path,
            "line": region.line,
            "column": region.column,
            "endLine": region.end_line,
            "endColumn": region.end_column,
            "severity": level(problem),
            "code": problem.diagnostic.code,
            "message": problem.diagnostic.message,
            "help": problem.diagnostic.help,
            "fix": problem.fix().map(|(region, text)| json!({
                "line": region.line,
                "column": region.column,
                "endLine": region.end_line,
                "endColumn": region.end_column,
                "text": text,
            })),
        })
    };
    problems.iter().map(one).collect()
}

/// Returns problems as a log of SARIF.
pub fn log(problems: &[Problem]) -> Value {
    let codes: BTreeSet<&str> = problems.iter().map(|p| p.diagnostic.code).collect();
    let rules: Vec<Value> = codes.into_iter().map(rule).collect();
    let results: Vec<Value> = problems.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "aqlite",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// Describes a rule. Those of lint have a name and a meaning.
fn rule(code: &str) -> Value {
    match LINT_RULES.iter().find(|rule| rule.code == code) {
        Some(rule) => json!({
            "id": code,
            "name": rule.name,
            "shortDescription": { "text": rule.meaning },
        }),
        None => json!({ "id": code }),
    }
}

fn range(region: Region) -> Value {
    json!({
        "startLine": region.line,
        "startColumn": region.column,
        "endLine": region.end_line,
        "endColumn": region.end_column,
    })
}

fn result(problem: &Problem) -> Value {
    let text = match &problem.diagnostic.help {
        Some(help) => format!("{}; help: {help}", problem.diagnostic.message),
        None => problem.diagnostic.message.clone(),
    };
    let place = json!({ "uri": uri(&problem.source.path) });
    let mut result = json!({
        "ruleId": problem.diagnostic.code,
        "level": level(problem),
        "message": { "text": text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": place,
            "region": range(problem.region()),
        } }],
    });
    if let (Some((region, text)), Some(members)) = (problem.fix(), result.as_object_mut()) {
        let replacement = json!({
            "deletedRegion": range(region),
            "insertedContent": { "text": text },
        });
        let change = json!({ "artifactLocation": place, "replacements": [replacement] });
        let fixes = json!([{ "artifactChanges": [change] }]);
        members.insert(String::from("fixes"), fixes);
    }
    result
}

/// Returns a path as the reference of a URI: with slashes, and other signs encoded.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.replace('\\', "/").bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        if is_plain {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
