//! Suite `rm.xsd`: what is written as XML is valid against a published schema, that of its namespace. The validator is
//! libxml2 in wasm (npm package `xmllint-wasm`), run by `xsd.mjs`; without the npm packages everything is skipped.

use crate::corpus::{Corpus, text_of};
use crate::report::{Case, target};
use crate::rm_json::{kind_of, told};
use aqlite::diag::Severity;
use aqlite::rm::class::Cls;
use aqlite::rm::{json, validate, xml};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let index = corpus.json_lines("rm/index.jsonl");
    let folder = target().join("conformance/xsd");
    let mut cases = Vec::new();
    let mut written: Vec<&str> = Vec::new();
    if let Err(error) = empty(&folder) {
        return vec![Case::skipped("all", error)];
    }
    for entry in index.iter().filter(|entry| is_document(entry)) {
        let file = text_of(entry, "file");
        let path = folder.join(format!("{}.xml", written.len()));
        match as_xml(corpus, file).and_then(|text| std::fs::write(path, text).map_err(|e| e.to_string())) {
            Ok(()) => written.push(file),
            Err(reason) => cases.push(Case::skipped(file, reason)),
        }
    }
    match problems(corpus, &folder) {
        Ok(found) => cases.extend(written.iter().enumerate().map(|(n, file)| verdict(file, found.get(format!("{n}.xml"))))),
        Err(reason) => {
            println!("conformance rm.xsd SKIPPED: {reason}");
            cases.extend(written.iter().map(|file| Case::skipped(*file, reason.clone())));
        }
    }
    cases
}

fn empty(folder: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())
}

/// The schemas have root elements for compositions and versions only.
fn is_document(entry: &Value) -> bool {
    let kind = text_of(entry, "kind");
    let is_good = ["valid", "valid?", "equal to the XML"].contains(&text_of(entry, "expected"));
    is_good && (kind == "derived_json" || [Cls::COMPOSITION, Cls::ORIGINAL_VERSION, Cls::IMPORTED_VERSION].contains(&kind_of(entry)))
}

/// The document written as XML; the reason, where the document itself does not meet the Reference Model.
fn as_xml(corpus: &Corpus, file: &str) -> Result<String, String> {
    let text = corpus.text(&format!("rm/{file}"))?;
    let read =
        if text.trim_start_matches('\u{feff}').trim_start().starts_with('<') { xml::read(&text, Cls::ANY) } else { json::read(&text, Cls::ANY) };
    let tree = read.map_err(|findings| format!("not read: {}", told(&findings)))?;
    let root = tree.root().ok_or("the tree is empty")?;
    let mut findings = validate::validate(root);
    findings.retain(|f| f.severity == Severity::Error);
    if !findings.is_empty() {
        return Err(format!("it breaks the Reference Model: {}", told(&findings)));
    }
    let name = if root.class() == Cls::COMPOSITION { "composition" } else { "version" };
    xml::write(root, name).map_err(|finding| finding.one_line())
}

/// What the validator says, by file name.
fn problems(corpus: &Corpus, folder: &Path) -> Result<Value, String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemas = corpus.path("rm/reference/xsd");
    for (needed, cure) in [(home.join("node_modules/xmllint-wasm"), "run `npm ci`"), (schemas.clone(), "the corpus has no schemas")] {
        if !needed.is_dir() {
            return Err(format!("{} is missing: {cure}", needed.display()));
        }
    }
    let output = Command::new("node").arg(home.join("tests/conformance/xsd.mjs")).arg(schemas).arg(folder).output();
    let output = output.map_err(|e| format!("Node does not start: {e}"))?;
    if !output.status.success() {
        return Ok(Value::String(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("the validator's answer is not JSON: {e}"))
}

/// Facets and simple types are about the content, which is never changed; all else is about how it is written.
fn verdict(file: &str, found: Option<&Value>) -> Case {
    let Some(messages) = found.and_then(Value::as_array) else {
        return Case::check(file, || Err("the validator did not answer".to_owned()));
    };
    let messages: Vec<&str> = messages.iter().filter_map(Value::as_str).collect();
    let is_content = |message: &&str| message.contains("[facet '") || message.contains("is not a valid value of the");
    match messages.iter().find(|message| !is_content(message)) {
        Some(message) => Case::check(file, || Err((*message).to_owned())),
        None if messages.is_empty() => Case::check(file, || Ok(())),
        None => Case::skipped(file, format!("the content breaks a facet: {}", messages.first().unwrap_or(&""))),
    }
}
