//! Suite `rm.json`: canonical JSON is read and written without change, digits included. Invalid
//! documents are refused with a path.

use crate::corpus::{Corpus, text_of};
use crate::raw::Raw;
use crate::report::Case;
use aqlite::diag::Finding;
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use serde_json::Value;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let index = corpus.json_lines("rm/index.jsonl");
    index
        .iter()
        .filter(|entry| is_canonical_json(entry))
        .filter_map(|entry| case(corpus, entry))
        .collect()
}

fn is_canonical_json(entry: &Value) -> bool {
    let kind = text_of(entry, "kind");
    kind == "derived_json"
        || kind
            .strip_suffix("_json")
            .is_some_and(|k| Cls::parse(&k.to_ascii_uppercase()).is_some())
}

fn case(corpus: &Corpus, entry: &Value) -> Option<Case> {
    let file = text_of(entry, "file");
    let expected = kind_of(entry);
    let path = format!("rm/{file}");
    match text_of(entry, "expected") {
        "valid" | "equal to the XML" => Some(Case::check(file, || {
            reads_and_writes(&corpus.text(&path)?, expected)
        })),
        "valid?" => Some(
            match refusal(&corpus.text(&path).unwrap_or_default(), expected) {
                Some(findings) => Case::skipped(
                    file,
                    format!("no verdict, refused: {}", findings_text(&findings)),
                ),
                None => Case::check(file, || reads_and_writes(&corpus.text(&path)?, expected)),
            },
        ),
        "refused" => Some(Case::check(file, || {
            is_refused(
                json::read(&corpus.text(&path)?, expected).err(),
                text_of(entry, "why"),
            )
        })),
        _ => None,
    }
}

/// Returns the class of the documents of an entry.
pub fn kind_of(entry: &Value) -> Cls {
    let kind = text_of(entry, "kind")
        .trim_end_matches("_json")
        .trim_end_matches("_xml");
    Cls::parse(&kind.to_ascii_uppercase()).unwrap_or(Cls::ANY)
}

/// Returns the findings about a document without a verdict. It may be refused, but not changed.
fn refusal(text: &str, expected: Cls) -> Option<Vec<Finding>> {
    documents(text, expected)
        .into_iter()
        .find_map(|document| json::read(document, expected_of(expected)).err())
}

/// Returns the RM documents in a file: the file itself, or the data of the versions of a
/// contribution as clients commit it.
fn documents(text: &str, kind: Cls) -> Vec<&str> {
    let member = |text, name: &str| {
        json::members(text)
            .ok()?
            .into_iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    };
    match kind {
        Cls::CONTRIBUTION => {
            let versions = member(text, "versions")
                .and_then(|list| json::elements(list).ok())
                .unwrap_or_default();
            versions
                .into_iter()
                .filter_map(|version| member(version, "data"))
                .filter(|data| data.starts_with('{'))
                .collect()
        }
        _ => vec![text],
    }
}

/// Returns the class of the documents in a file of this kind.
fn expected_of(kind: Cls) -> Cls {
    if kind == Cls::CONTRIBUTION {
        Cls::ANY
    } else {
        kind
    }
}

fn reads_and_writes(text: &str, kind: Cls) -> Result<(), String> {
    documents(text, kind)
        .into_iter()
        .try_for_each(|document| keeps(document, expected_of(kind)))
}

fn keeps(text: &str, expected: Cls) -> Result<(), String> {
    let tree = json::read(text, expected).map_err(|findings| findings_text(&findings))?;
    let root = tree.root().ok_or("the tree is empty")?;
    let written = json::write(root);
    if let Some(difference) = Raw::parse(text)?.difference(&Raw::parse(&written)?) {
        return Err(difference);
    }
    let again = json::read(&written, Cls::ANY).map_err(|findings| findings_text(&findings))?;
    if again.root().is_some_and(|r| r.same_as(root)) {
        Ok(())
    } else {
        Err("it reads back differently".to_owned())
    }
}

/// Checks a document that must be refused: the findings must have every path that the corpus names.
pub fn is_refused(findings: Option<Vec<Finding>>, why: &str) -> Result<(), String> {
    let findings = findings.ok_or("it was accepted")?;
    let paths = why
        .split("; ")
        .filter_map(|part| part.split_once(": "))
        .map(|(path, _)| path)
        .filter(|path| path.starts_with('/'));
    for path in paths {
        if !findings.iter().any(|f| f.path == path) {
            return Err(format!(
                "no finding at {path}: {}",
                findings_text(&findings)
            ));
        }
    }
    Ok(())
}

/// Formats findings in one line.
pub fn findings_text(findings: &[Finding]) -> String {
    findings
        .iter()
        .take(5)
        .map(Finding::one_line)
        .collect::<Vec<_>>()
        .join("; ")
}
