//! Reading of documents in each of their formats.

use super::content::{Content, body};
use super::export;
use super::templates::{LoadedTemplate, Templates};
use aqlite::diag::Finding;
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json::{self, elements, members, members_with};
use aqlite::rm::tree::{NodeRef, Tree};
use aqlite::rm::xml;
use aqlite::template::flat::{self, Shape};

/// A document that was read: a COMPOSITION, an EHR_STATUS or a directory.
pub struct Document {
    /// The document itself; empty for the deletion of one.
    pub tree: Tree,
    /// The complete VERSION with the document, if the text has one.
    pub version: Option<Tree>,
    /// The EHR that the text names.
    pub ehr: Option<String>,
    /// The uid that the text around the document names.
    pub uid: Option<String>,
}

/// The reader of documents, with everything that it needs beside the text.
#[derive(Clone, Copy)]
pub struct Reader<'r> {
    /// The templates of the simplified formats.
    pub templates: &'r Templates,
    /// The time that completes FLAT and STRUCTURED: ISO 8601 with zone.
    pub now: &'r str,
}

impl Document {
    fn alone(tree: Tree) -> Document {
        Document {
            tree,
            version: None,
            ehr: None,
            uid: None,
        }
    }
}

impl<'r> Reader<'r> {
    /// Reads the documents of a text: usually one, or the elements of a JSON array.
    ///
    /// # Errors
    /// All findings of the reader; one finding if the text is no document.
    pub fn read(self, text: &str) -> Result<Vec<Document>, Vec<Finding>> {
        let text = body(text);
        match Content::of(text) {
            Content::Json => one(read_json(text)),
            Content::Xml => one(xml::read(text, Cls::ANY)),
            Content::Flat => one(self.simplified(text, Shape::Flat)),
            Content::Structured => one(self.simplified(text, Shape::Structured)),
            Content::BulkLine => bulk_line(text),
            Content::ExportLine => export::read(text),
            Content::List => self.list(text),
            // Guides lie beside data, and are no data.
            Content::Guide => Ok(Vec::new()),
            Content::Template => Ok(Vec::new()),
            Content::Aql | Content::Unknown => Err(vec![unknown()]),
        }
    }

    fn list(self, text: &str) -> Result<Vec<Document>, Vec<Finding>> {
        let parts = elements(text).map_err(|problem| vec![json::finding(text, problem)])?;
        let (mut all, mut findings) = (Vec::new(), Vec::new());
        for (number, part) in parts.into_iter().enumerate() {
            match self.read(part) {
                Ok(documents) => all.extend(documents),
                Err(found) => findings.extend(found.into_iter().map(|finding| Finding {
                    path: format!("[{number}]{}", finding.path),
                    ..finding
                })),
            }
        }
        if findings.is_empty() {
            Ok(all)
        } else {
            Err(findings)
        }
    }

    fn simplified(self, text: &str, shape: Shape) -> Result<Tree, Vec<Finding>> {
        let found = self.template_of(text).map_err(|finding| vec![finding])?;
        flat::read(text, shape, &found.template, found.web(), self.now)
    }

    /// Returns the template of a text in a simplified format: the root of its keys names it.
    fn template_of(self, text: &str) -> Result<&'r LoadedTemplate, Finding> {
        let members = members(text).map_err(|problem| json::finding(text, problem))?;
        // The first key that is not context determines the template: `encounter` of
        // `encounter/vitals:0/…`.
        let mut keys = members.iter().map(|(key, _)| key.as_ref());
        let is_content = |key: &&str| *key != "ctx" && !key.starts_with("ctx/");
        let root = keys.find(is_content).unwrap_or_default();
        let root = root.split(['/', '|', ':']).next().unwrap_or_default();
        self.templates.with_root(root)
    }
}

fn one(tree: Result<Tree, Vec<Finding>>) -> Result<Vec<Document>, Vec<Finding>> {
    tree.and_then(document).map(|document| vec![document])
}

/// Reads canonical JSON. Without `_type` it is a COMPOSITION.
fn read_json(text: &str) -> Result<Tree, Vec<Finding>> {
    let class = if names_class(text) {
        Cls::ANY
    } else {
        Cls::COMPOSITION
    };
    json::read(text, class)
}

/// Returns whether the outermost object of a JSON text names its class.
fn names_class(text: &str) -> bool {
    let first = text.trim_start_matches('{').trim_start();
    // Usually `_type` is the first member, so the other members need not be scanned.
    first.starts_with("\"_type\"")
        || members(text).is_ok_and(|all| all.iter().any(|(key, _)| key == "_type"))
}

/// Takes the document of a tree: the tree itself, or the data of a VERSION.
fn document(tree: Tree) -> Result<Document, Vec<Finding>> {
    let Some(root) = tree.root() else {
        return Err(vec![unknown()]);
    };
    let class = root.class();
    if [Cls::COMPOSITION, Cls::EHR_STATUS, Cls::FOLDER].contains(&class) {
        return Ok(Document::alone(tree));
    }
    if class.is_a(Cls::VERSION)
        && let Some(document) = data_of(root)
    {
        let is_complete = class == Cls::ORIGINAL_VERSION && document.uid.is_some();
        return Ok(Document {
            version: is_complete.then_some(tree),
            ..document
        });
    }
    let problem = "expected a COMPOSITION, an EHR_STATUS, a FOLDER or a VERSION with one of them";
    Err(vec![
        Finding::error("CLI0103", "", problem).found(class.name()),
    ])
}

/// Reads a VERSION of an export, also one that deletes its object.
///
/// # Errors
/// All findings of the reader.
pub fn read_version(text: &str) -> Result<Document, Vec<Finding>> {
    let tree = json::read(text, Cls::ANY)?;
    let deletion = tree
        .root()
        .filter(|root| root.class() == Cls::ORIGINAL_VERSION && root.get(Attr::DATA).is_none());
    let uid = deletion.and_then(|root| root.text_along(&[Attr::UID, Attr::VALUE]));
    let Some(uid) = uid.map(str::to_owned) else {
        return document(tree);
    };
    Ok(Document {
        tree: Tree::new(),
        version: Some(tree),
        ehr: None,
        uid: Some(uid),
    })
}

/// Returns the data of a VERSION with its uid. Those of an IMPORTED_VERSION are in its item.
fn data_of(version: NodeRef<'_>) -> Option<Document> {
    let uid = version.text_along(&[Attr::UID, Attr::VALUE]);
    // An IMPORTED_VERSION wraps an ORIGINAL_VERSION.
    let version = version.get(Attr::ITEM).unwrap_or(version);
    let data = version.get(Attr::DATA)?;
    let uid = uid.or_else(|| version.text_along(&[Attr::UID, Attr::VALUE]));
    Some(Document {
        tree: data.to_tree(),
        version: None,
        ehr: None,
        uid: uid.map(str::to_owned),
    })
}

/// Reads a line of a bulk load: `{ehr_id, composition}`, `{ehr_id, ehr_status}` or `{ehr_id,
/// contribution}`.
fn bulk_line(text: &str) -> Result<Vec<Document>, Vec<Finding>> {
    let mut found: Option<Tree> = None;
    let all = members_with(text, &mut |name, scanner| {
        if name != "composition" {
            return false;
        }
        // Parsed while the line is scanned, so the text of the composition is scanned once.
        found = json::read_next(scanner, Cls::COMPOSITION);
        found.is_some()
    });
    let all = all.map_err(|problem| vec![json::finding(text, problem)])?;
    let member = |name: &str| all.iter().find(|(key, _)| key == name).map(|(_, v)| *v);
    let ehr = member("ehr_id").and_then(json::text);
    let uid = member("uid").and_then(json::text);
    let documents = match (found, member("composition")) {
        (Some(tree), _) => vec![Document::alone(tree)],
        (None, Some(text)) => {
            let tree = json::read(text, Cls::COMPOSITION);
            vec![Document::alone(
                tree.map_err(|found| below(found, "composition"))?,
            )]
        }
        (None, None) => other_member(member("ehr_status"), member("contribution"))?,
    };
    let with_ehr = |document: Document| Document {
        ehr: ehr.clone(),
        uid: document.uid.or_else(|| uid.clone()),
        ..document
    };
    Ok(documents.into_iter().map(with_ehr).collect())
}

fn other_member(
    status: Option<&str>,
    contribution: Option<&str>,
) -> Result<Vec<Document>, Vec<Finding>> {
    match (status, contribution) {
        // The EHR gets the default status, as every other EHR.
        (Some("null"), _) => Ok(Vec::new()),
        (Some(text), _) => {
            let tree = json::read(text, Cls::EHR_STATUS);
            let tree = tree.map_err(|found| below(found, "ehr_status"))?;
            Ok(vec![Document::alone(tree)])
        }
        (None, Some(text)) => contribution_data(text),
        (None, None) => Err(vec![unknown()]),
    }
}

/// Reads the data of the versions of a CONTRIBUTION.
fn contribution_data(text: &str) -> Result<Vec<Document>, Vec<Finding>> {
    let malformed = |problem| vec![json::finding(text, problem)];
    let all = members(text).map_err(malformed)?;
    let versions = all.iter().find(|(key, _)| key == "versions");
    let versions = elements(versions.map_or("[]", |(_, text)| text)).map_err(malformed)?;
    let mut documents = Vec::new();
    for version in versions {
        let parts = members(version).map_err(malformed)?;
        let Some((_, data)) = parts.iter().find(|(key, _)| key == "data") else {
            continue;
        };
        let tree = json::read(data, Cls::ANY).map_err(|found| below(found, "contribution"))?;
        documents.push(document(tree)?);
    }
    Ok(documents)
}

/// Returns findings about a member of a line, with paths from the line.
fn below(findings: Vec<Finding>, member: &str) -> Vec<Finding> {
    let moved = |finding: Finding| Finding {
        path: format!("/{member}{}", finding.path),
        ..finding
    };
    findings.into_iter().map(moved).collect()
}

fn unknown() -> Finding {
    Finding::error(
        "CLI0104",
        "",
        "the content is not recognized: expected a composition as JSON, XML, FLAT or STRUCTURED, a template, or lines of JSON",
    )
}
