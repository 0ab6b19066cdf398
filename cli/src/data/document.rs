//! Reading of documents in each of their formats.

use super::content::{Content, body};
use super::export;
use super::templates::{LoadedTemplate, Templates};
use aqlite::diag::Finding;
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::imported::stored_form;
use aqlite::rm::json::{self, elements, members, members_with};
use aqlite::rm::tree::{NodeRef, Tree};
use aqlite::rm::xml;
use aqlite::template::flat::{self, Shape};
use serde_json::Value;

/// The code of the change type of a first version, in the terminology of openEHR.
const CREATION: &str = "249";
/// The code of the change type and of the lifecycle state of a deletion.
const DELETED: &str = "523";

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
    /// The uid of the version that this one follows, if the document is a member of a contribution.
    /// The uid of the document is then the next one.
    pub preceding: Option<String>,
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
    /// A document without a text around it.
    pub fn alone(tree: Tree) -> Document {
        Document {
            tree,
            version: None,
            ehr: None,
            uid: None,
            preceding: None,
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
    let Some(class) = tree.root().map(NodeRef::class) else {
        return Err(vec![unknown()]);
    };
    if [Cls::COMPOSITION, Cls::EHR_STATUS, Cls::FOLDER].contains(&class) {
        return Ok(Document::alone(tree));
    }
    if class.is_a(Cls::VERSION) {
        let document = document_of_version(tree);
        if document.tree.root().is_some() {
            return Ok(document);
        }
    }
    Err(no_document(class))
}

fn no_document(class: Cls) -> Vec<Finding> {
    let problem = "expected a COMPOSITION, an EHR_STATUS, a FOLDER or a VERSION with one of them";
    vec![Finding::error("CLI0103", "", problem).found(class.name())]
}

/// Reads a VERSION of an export, also one that deletes its object.
///
/// # Errors
/// All findings of the reader.
pub fn read_version(text: &str) -> Result<Document, Vec<Finding>> {
    let tree = json::read(text, Cls::ANY)?;
    let class = tree.root().map(NodeRef::class);
    let Some(class) = class.filter(|class| class.is_a(Cls::VERSION)) else {
        return document(tree);
    };
    let document = document_of_version(tree);
    // The version of a deletion has no data, and its uid names the object.
    match document.version.is_some() || document.tree.root().is_some() {
        true => Ok(document),
        false => Err(no_document(class)),
    }
}

/// Takes the document of a VERSION; its tree is empty for a deletion. The version itself is kept
/// if it has a uid. Queries read the stored form of an IMPORTED_VERSION.
fn document_of_version(version: Tree) -> Document {
    let imported = version
        .root()
        .filter(|root| root.class() == Cls::IMPORTED_VERSION)
        .map(|root| stored_form(root, follows(root)));
    let version = imported.unwrap_or(version);
    let root = version.root();
    let uid = root.and_then(|root| root.text_along(&[Attr::UID, Attr::VALUE]));
    let uid = uid.map(str::to_owned);
    let data = root.and_then(|root| root.get(Attr::DATA));
    Document {
        tree: data.map_or_else(Tree::new, NodeRef::to_tree),
        version: uid.is_some().then_some(version),
        ehr: None,
        uid,
        preceding: None,
    }
}

/// Returns whether an IMPORTED_VERSION follows another version in the repository that imported it:
/// the change type of its import is then another one than creation.
fn follows(imported: NodeRef<'_>) -> bool {
    let change_type = imported.text_along(&[
        Attr::COMMIT_AUDIT,
        Attr::CHANGE_TYPE,
        Attr::DEFINING_CODE,
        Attr::CODE_STRING,
    ]);
    change_type.is_some_and(|code| code != CREATION)
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

/// Reads the members of a CONTRIBUTION in the form of a client.
fn contribution_data(text: &str) -> Result<Vec<Document>, Vec<Finding>> {
    let malformed = |problem| vec![json::finding(text, problem)];
    let all = members(text).map_err(malformed)?;
    let part = |name: &str| all.iter().find(|(key, _)| key == name).map(|(_, v)| *v);
    let deletes = part("audit").and_then(states_deletion).unwrap_or(false);
    let versions = elements(part("versions").unwrap_or("[]")).map_err(malformed)?;
    let read = |version: &str| {
        let found = contribution_member(version, deletes);
        found.map_err(|found| below(found, "contribution"))
    };
    versions.into_iter().map(read).collect()
}

/// Reads a member of a CONTRIBUTION. `deletes` is true if a member without a change type deletes.
fn contribution_member(text: &str, deletes: bool) -> Result<Document, Vec<Finding>> {
    let parts = members(text).map_err(|problem| vec![json::finding(text, problem)])?;
    let part = |name: &str| parts.iter().find(|(key, _)| key == name).map(|(_, v)| *v);
    if let Some(item) = part("item") {
        // The item of an IMPORTED_VERSION is a version of another system.
        let item = json::read(item, Cls::ORIGINAL_VERSION)?;
        return Ok(document_of_version(item));
    }
    let preceding = part("preceding_version_uid").and_then(object_version_id);
    let deletes = part("commit_audit")
        .and_then(states_deletion)
        .unwrap_or(deletes);
    let read = match part("data").filter(|_| !deletes) {
        Some(data) => document(json::read(data, Cls::ANY)?)?,
        None if preceding.is_some() => Document::alone(Tree::new()),
        None => {
            let problem = "the version has neither `data` nor the version that it deletes";
            return Err(vec![Finding::error("CLI0108", "/versions", problem)]);
        }
    };
    Ok(Document { preceding, ..read })
}

/// Returns the text of an OBJECT_VERSION_ID: that of its `value`, or the JSON text itself.
fn object_version_id(id: &str) -> Option<String> {
    let id = json::value(id).ok()?;
    let text = id.get("value").unwrap_or(&id).as_str();
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns whether the change type of an audit is a deletion; `None` if it has no change type.
fn states_deletion(audit: &str) -> Option<bool> {
    let audit = json::value(audit).ok()?;
    let change_type = audit.get("change_type")?;
    let texts = [
        change_type.pointer("/defining_code/code_string"),
        change_type.get("code_string"),
        change_type.get("value"),
        Some(change_type),
    ];
    let mut texts = texts.into_iter().flatten().filter_map(Value::as_str);
    let is_deletion = |text: &str| text == DELETED || text.eq_ignore_ascii_case("deleted");
    Some(texts.any(|text| is_deletion(text.trim())))
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
