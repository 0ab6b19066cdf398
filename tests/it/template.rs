//! Authored validation cases: a valid document, a change, the findings
//! (`tests/cases/template/validation.txt`).

use aqlite::diag::Severity;
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::samples::templates;
use aqlite::template::{Template, validate, validate_draft};
use serde_json::Value;
use std::fmt::Write;

#[test]
fn authored_findings() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/template");
    let text = std::fs::read_to_string(format!("{folder}/validation.txt")).unwrap();
    let mut wrong = String::new();
    for case in text.split("\n=== ").skip(1) {
        let (title, body) = case.split_once('\n').unwrap();
        let (steps, expected) = body.split_once("---").unwrap();
        let found = findings(folder, steps);
        if found.trim() != expected.trim() {
            let _ = write!(
                wrong,
                "{title}\nexpected:\n{}\nfound:\n{}\n\n",
                expected.trim(),
                found.trim()
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn findings(folder: &str, steps: &str) -> String {
    let (first, rest) = steps.split_once('\n').unwrap_or((steps, ""));
    let name = first.strip_prefix("in ").unwrap();
    let (name, is_draft) = name
        .strip_suffix(" as a draft")
        .map_or((name, false), |name| (name, true));
    let mut document: Value =
        serde_json::from_str(&std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap())
            .unwrap();
    rest.lines()
        .filter(|l| !l.is_empty())
        .for_each(|step| change(&mut document, step));
    let tree =
        json::read(&document.to_string(), Cls::COMPOSITION).unwrap_or_else(|e| panic!("{e:?}"));
    let sample = templates()
        .into_iter()
        .find(|t| t.template_id.contains(name))
        .unwrap();
    let template = Template::parse(sample.text).unwrap();
    let mut out = String::new();
    let root = tree.root().unwrap();
    for finding in if is_draft {
        validate_draft(root, &template)
    } else {
        validate(root, &template)
    } {
        let mark = if finding.severity == Severity::Warning {
            " (warning)"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "{} | {}{mark}",
            finding.label.as_deref().unwrap_or_default(),
            finding.one_line()
        );
    }
    out
}

fn change(document: &mut Value, step: &str) {
    let mut words = step.splitn(3, ' ');
    let (verb, path, argument) = (
        words.next().unwrap(),
        words.next().unwrap(),
        words.next().unwrap_or_default(),
    );
    let (parent, key) = path.rsplit_once('/').unwrap();
    match verb {
        "set" => {
            let value = serde_json::from_str(argument).unwrap_or_else(|e| panic!("{step}: {e}"));
            document
                .pointer_mut(parent)
                .and_then(Value::as_object_mut)
                .unwrap_or_else(|| panic!("{step}"))
                .insert(key.to_owned(), value);
        }
        "remove" => match document
            .pointer_mut(parent)
            .unwrap_or_else(|| panic!("{step}"))
        {
            Value::Array(items) => drop(items.remove(key.parse().unwrap())),
            Value::Object(members) => drop(members.shift_remove(key)),
            _ => panic!("{step}"),
        },
        "copy" => {
            let value = document
                .pointer(path)
                .unwrap_or_else(|| panic!("{step}"))
                .clone();
            document
                .pointer_mut(argument)
                .and_then(Value::as_array_mut)
                .unwrap_or_else(|| panic!("{step}"))
                .push(value);
        }
        _ => panic!("{step}"),
    }
}
