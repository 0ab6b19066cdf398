//! Suite `rm.xsd`: what is written as XML is valid against a published schema, that of its
//! namespace: the documents of the corpus, and the examples of its templates. The validator is
//! libxml2 in wasm (npm package `xmllint-wasm`), run by `xsd.mjs`; without the npm packages
//! everything is skipped.
//!
//! Content is never changed for a schema's sake: a document whose own content breaks a facet, or
//! lacks what the schema asks for, is listed with just that.

use crate::corpus::{Corpus, text_of};
use crate::report::{Case, target};
use crate::rm_example::made;
use crate::rm_json::{kind_of, told};
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
    tell(&cases);
    cases
}

/// What stands before the reason of a listed document.
const LISTED: &str = "the content breaks ";

/// How many documents are listed, by what they break.
fn tell(cases: &[Case]) {
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

/// A document as XML, and where it lacks what the Reference Model asks for.
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

/// The examples of the templates for compositions.
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

/// A document among the files that the validator sees.
struct Document {
    id: String,
    /// The findings of existence: the schema will miss the same.
    lacks: String,
}

/// Makes an empty folder.
pub fn empty(folder: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())
}

/// The schemas have root elements for compositions and versions only.
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
    let tree = read.map_err(|findings| format!("not read: {}", told(&findings)))?;
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
        told(&findings),
    ))
}

/// What the validator says, by file name.
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
    /// Facets, simple types and what is missing are about the content, which is never changed; all
    /// else is about how it is written.
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

    /// What the content breaks, by the validator's words; `None` where the writer is to blame.
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
