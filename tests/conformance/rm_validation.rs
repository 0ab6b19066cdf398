//! Suite `rm.validation`: documents validated against their templates, with the verdicts of the
//! corpus.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use crate::rm_json::findings_text;
use aqlite::diag::{Finding, Severity};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::id::is_archetype_id;
use aqlite::rm::tree::NodeRef;
use aqlite::rm::{self, json, xml};
use aqlite::template::flat::{self, Shape};
use aqlite::template::{Template, WebTemplate, validate};
use serde_json::Value;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    corpus
        .json_lines("rm/validation_cases/cases.jsonl")
        .iter()
        .map(|case| one(corpus, case))
        .collect()
}

fn one(corpus: &Corpus, case: &Value) -> Case {
    let id = case.get("case").map_or_else(String::new, |id| {
        id.as_str().map_or_else(|| id.to_string(), str::to_owned)
    });
    if case
        .get("contested")
        .and_then(Value::as_bool)
        .unwrap_or_default()
    {
        return Case::skipped(id, "contested by its authors");
    }
    Case::check(id, || {
        let findings = problems(corpus, case)?;
        let was_read = !findings.iter().any(rm::validate::is_unreadable);
        match (
            case.get("expected_status").and_then(Value::as_u64),
            findings.is_empty(),
        ) {
            (Some(201), true) => Ok(()),
            (Some(201), false) => Err(findings_text(&findings)),
            (_, true) => Err("it was accepted".to_owned()),
            (_, false) if was_read => says(case, &findings),
            (_, false) => Ok(()),
        }
    })
}

/// Returns the findings about the document with paths by node id, as in the expected messages.
/// Empty if it is accepted.
fn problems(corpus: &Corpus, case: &Value) -> Result<Vec<Finding>, String> {
    let text = corpus.text(&format!("rm/{}", text_of(case, "opt")))?;
    let template = Template::parse(&text).map_err(|errors| {
        errors
            .iter()
            .map(|e| e.one_line(&text))
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    let document = corpus.text(&format!("rm/{}", text_of(case, "composition")))?;
    let read = match text_of(case, "format") {
        "CANONICAL_XML" => xml::read(&document, Cls::COMPOSITION),
        "FLAT" => flat::read(
            &document,
            Shape::Flat,
            &template,
            &WebTemplate::of(&template),
            "2026-11-20T09:30:00Z",
        ),
        _ => json::read(&document, Cls::COMPOSITION),
    };
    let tree = match read {
        Ok(tree) => tree,
        Err(findings) => return Ok(findings),
    };
    let root = tree.root().ok_or("the tree is empty")?;
    let mut findings = rm::validate::validate(root);
    findings.extend(validate(root, &template));
    findings.retain(|f| f.severity == Severity::Error);
    findings
        .iter_mut()
        .for_each(|f| f.path = by_ids(root, &f.path));
    Ok(findings)
}

/// Returns a path with the archetype id of each member of a list that has one, in place of its
/// index.
fn by_ids(root: NodeRef<'_>, path: &str) -> String {
    let (mut at, mut out) = (Some(root), String::new());
    for step in path.split('/').skip(1) {
        let (name, index) = step.split_once('[').unwrap_or((step, "0]"));
        let index = index.trim_end_matches(']').parse().unwrap_or_default();
        at = at.and_then(|node| node.values(Attr::parse(name)?).nth(index));
        let id = at
            .and_then(|node| node.text_at(Attr::ARCHETYPE_NODE_ID))
            .filter(|id| is_archetype_id(id));
        out += &id.map_or(format!("/{step}"), |id| format!("/{name}[{id}]"));
    }
    out
}

/// Checks that the message contains the substrings that clients of other repositories look for.
fn says(case: &Value, findings: &[Finding]) -> Result<(), String> {
    let all: Vec<String> = findings.iter().map(Finding::one_line).collect();
    let wanted = case
        .get("message_contains")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let missing: Vec<&str> = wanted
        .filter(|w| !all.iter().any(|line| line.contains(w)))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "`{}` is not said in: {}",
            missing.join("`, `"),
            all.join("; ")
        ))
    }
}
