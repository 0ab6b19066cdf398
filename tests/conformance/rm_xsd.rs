//! Suite `rm.xsd`: written XML is valid against the published schema of its namespace, for the
//! documents of the corpus and the examples of its templates. The validator is libxml2 in wasm (npm
//! package `xmllint-wasm`), run by `xsd.mjs`. Without the npm packages everything is skipped.
//!
//! Content is never changed for a schema's sake. A document whose own content violates a facet, or
//! lacks required content, is listed with exactly that.

use crate::corpus::{Corpus, text_of};
use crate::report::{Case, target};
use crate::rm_example::made;
use crate::rm_json::{findings_text, kind_of};
use aqlite::rm::class::Cls;
use aqlite::rm::tree::NodeRef;
use aqlite::rm::{json, validate, xml};
use aqlite::template::ExampleKind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let folder = target().join("conformance/xsd");
    let mut cases = Vec::new();
    let mut written: Vec<Document> = Vec::new();
    if let Err(error) = empty(&folder) {
        return vec![Case::skipped("all", error)];
    }
    for (id, document) in documents(corpus).chain(examples(corpus)) {
        let path = folder.join(format!("{}.xml", written.len()));
        match document.and_then(|(text, lacks)| {
            std::fs::write(path, text)
                .map(|()| lacks)
                .map_err(|e| e.to_string())
        }) {
            Ok(lacks) => written.push(Document { id, lacks }),
            Err(reason) => cases.push(Case::skipped(id, reason)),
        }
    }
    match problems(corpus, &folder) {
        Ok(found) => {
            let verdicts = written
                .iter()
                .enumerate()
                .map(|(n, document)| document.verdict(found.get(format!("{n}.xml"))));
            cases.extend(verdicts);
        }
        Err(reason) => {
            println!("conformance rm.xsd SKIPPED: {reason}");
            cases.extend(
                written
                    .iter()
                    .map(|document| Case::skipped(document.id.as_str(), reason.clone())),
            );
        }
    }
    print_listed(&cases);
    cases
}

/// The prefix of the reason of a listed document.
const LISTED: &str = "the content breaks ";

/// Prints the number of listed documents by their violation.
fn print_listed(cases: &[Case]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in cases
        .iter()
        .filter_map(|case| case.detail.strip_prefix(LISTED))
    {
        *counts
            .entry(reason.split(':').next().unwrap_or_default())
            .or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    println!(
        "  listed, for their content breaks the schema: {}",
        counts.join(", ")
    );
}

/// A document as XML, and the places where it lacks content that the Reference Model requires.
type Written = Result<(String, String), String>;

fn documents(corpus: &Corpus) -> impl Iterator<Item = (String, Written)> {
    let index = corpus.json_lines("rm/index.jsonl");
    index.into_iter().filter(is_document).map(|entry| {
        (
            text_of(&entry, "file").to_owned(),
            as_xml(corpus, text_of(&entry, "file")),
        )
    })
}

/// Returns the examples of the templates for compositions.
fn examples(corpus: &Corpus) -> impl Iterator<Item = (String, Written)> {
    let files = ["rm/opt", "rm/opt_variants"]
        .map(|folder| corpus.files(folder))
        .concat();
    let kinds =
        |file: String| [ExampleKind::Minimal, ExampleKind::Full].map(|kind| (file.clone(), kind));
    files
        .into_iter()
        .flat_map(kinds)
        .filter_map(|(file, kind)| {
            let (_, tree) = made(corpus, &file, kind).ok()?.ok()?;
            let root = tree
                .root()
                .filter(|root| root.class() == Cls::COMPOSITION)?;
            Some((format!("example of {file} {kind:?}"), written(root)))
        })
}

/// A document among the files for the validator.
struct Document {
    id: String,
    /// The findings of existence, which the schema will report as well.
    lacks: String,
}

/// Creates an empty folder.
pub fn empty(folder: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())
}

/// Returns whether the schemas have a root element for the entry: only compositions and versions
/// have.
fn is_document(entry: &Value) -> bool {
    let kind = text_of(entry, "kind");
    let is_good = ["valid", "valid?", "equal to the XML"].contains(&text_of(entry, "expected"));
    is_good
        && (kind == "derived_json"
            || [
                Cls::COMPOSITION,
                Cls::ORIGINAL_VERSION,
                Cls::IMPORTED_VERSION,
            ]
            .contains(&kind_of(entry)))
}

fn as_xml(corpus: &Corpus, file: &str) -> Written {
    let text = corpus.text(&format!("rm/{file}"))?;
    let read = if text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<')
    {
        xml::read(&text, Cls::ANY)
    } else {
        json::read(&text, Cls::ANY)
    };
    let tree = read.map_err(|findings| format!("not read: {}", findings_text(&findings)))?;
    written(tree.root().ok_or("the tree is empty")?)
}

fn written(root: NodeRef<'_>) -> Written {
    let mut findings = validate::validate(root);
    findings.retain(|f| f.code == "RM0201");
    let name = if root.class() == Cls::COMPOSITION {
        "composition"
    } else {
        "version"
    };
    Ok((
        xml::write(root, name).map_err(|finding| finding.one_line())?,
        findings_text(&findings),
    ))
}

/// Returns the messages of the validator by file name.
pub fn problems(corpus: &Corpus, folder: &Path) -> Result<Value, String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemas = corpus.path("rm/reference/xsd");
    for (needed, cure) in [
        (home.join("node_modules/xmllint-wasm"), "run `npm ci`"),
        (schemas.clone(), "the corpus has no schemas"),
    ] {
        if !needed.is_dir() {
            return Err(format!("{} is missing: {cure}", needed.display()));
        }
    }
    let output = Command::new("node")
        .arg(home.join("tests/conformance/xsd.mjs"))
        .arg(schemas)
        .arg(folder)
        .output();
    let output = output.map_err(|e| format!("Node does not start: {e}"))?;
    if !output.status.success() {
        return Ok(Value::String(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("the validator's answer is not JSON: {e}"))
}

impl Document {
    /// Facets, simple types and missing content concern the content, which is never changed. All
    /// other messages concern the writer.
    fn verdict(&self, found: Option<&Value>) -> Case {
        let Some(messages) = found.and_then(Value::as_array) else {
            return Case::check(self.id.as_str(), || {
                Err("the validator did not answer".to_owned())
            });
        };
        let messages: Vec<&str> = messages.iter().filter_map(Value::as_str).collect();
        match messages
            .iter()
            .find(|message| self.broken(message).is_none())
        {
            Some(message) => Case::check(self.id.as_str(), || Err((*message).to_owned())),
            None => match messages.iter().find_map(|message| self.broken(message)) {
                Some(reason) => Case::skipped(self.id.as_str(), format!("{LISTED}{reason}")),
                None => Case::check(self.id.as_str(), || Ok(())),
            },
        }
    }

    /// Returns the violation of the content in a message of the validator; `None` if the writer
    /// caused it.
    fn broken(&self, message: &str) -> Option<String> {
        let facet = message
            .split_once("[facet '")
            .and_then(|(_, rest)| rest.split_once('\''));
        match facet {
            Some((facet, _)) => Some(format!("the facet `{facet}`: {message}")),
            None if message.contains("is not a valid value of the") => {
                Some(format!("a simple type: {message}"))
            }
            None if message.contains("}data'")
                && message.contains("does not resolve to a type definition") =>
            {
                Some(format!(
                    "the choice of classes for the data of a version: {message}"
                ))
            }
            None if !self.lacks.is_empty()
                && (message.contains("not expected") || message.contains("Missing child")) =>
            {
                Some(format!("existence: {}", self.lacks))
            }
            None => None,
        }
    }
}
