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
/// The lifecycle states of drafts, by code and rubric in the terminology of openEHR.
const DRAFT: [&str; 4] = ["553", "incomplete", "801", "abandoned"];

/// A document that was read: a COMPOSITION, an EHR_STATUS or a directory.
pub struct Document {
    /// The document itself; empty for the deletion of one.
    pub tree: Tree,
    /// The complete VERSION with the document, if the text has one: the stored form of an
    /// IMPORTED_VERSION.
    pub version: Option<Tree>,
    /// The path of the VERSION in the text, or else that of the document.
    pub place: String,
    /// Whether the version is incomplete, or was when it was abandoned.
    pub is_draft: bool,
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
            place: String::new(),
            is_draft: false,
            ehr: None,
            uid: None,
            preceding: None,
        }
    }

    /// Returns the document, found at a path of the text around it.
    pub fn at(mut self, path: &str) -> Document {
        self.place.insert_str(0, path);
        self
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
            let place = format!("[{number}]");
            match self.read(part) {
                Ok(documents) => all.extend(documents.into_iter().map(|found| found.at(&place))),
                Err(found) => findings.extend(below(found, &place)),
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
    match document.uid.is_some() || document.tree.root().is_some() {
        true => Ok(document),
        false => Err(no_document(class)),
    }
}

/// Takes the document of a VERSION; its tree is empty for a deletion.
fn document_of_version(version: Tree) -> Document {
    let imported = version
        .root()
        .filter(|root| root.class() == Cls::IMPORTED_VERSION)
        .map(|root| stored_form(root, follows(root)));
    let version = imported.unwrap_or(version);
    let root = version.root();
    let uid = root.and_then(|root| root.text_along(&[Attr::UID, Attr::VALUE]));
    let uid = uid.map(str::to_owned);
    let state = [
        Attr::LIFECYCLE_STATE,
        Attr::DEFINING_CODE,
        Attr::CODE_STRING,
    ];
    let state = root.and_then(|root| root.text_along(&state));
    let is_draft = state.is_some_and(|code| DRAFT.contains(&code));
    let data = root.and_then(|root| root.get(Attr::DATA));
    let tree = data.map_or_else(Tree::new, NodeRef::to_tree);
    Document {
        version: Some(version),
        is_draft,
        uid,
        ..Document::alone(tree)
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
        (Some(tree), _) => vec![Document::alone(tree).at("/composition")],
        (None, Some(text)) => {
            let tree = json::read(text, Cls::COMPOSITION);
            let tree = tree.map_err(|found| below(found, "/composition"))?;
            vec![Document::alone(tree).at("/composition")]
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
            let tree = tree.map_err(|found| below(found, "/ehr_status"))?;
            Ok(vec![Document::alone(tree).at("/ehr_status")])
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
    let read = |(number, version): (usize, &str)| {
        let place = format!("/contribution/versions[{number}]");
        match contribution_member(version, deletes) {
            Ok(document) => Ok(document.at(&place)),
            Err(found) => Err(below(found, &place)),
        }
    };
    versions.into_iter().enumerate().map(read).collect()
}

/// Reads a member of a CONTRIBUTION. `deletes` is true if a member without a change type deletes.
fn contribution_member(text: &str, deletes: bool) -> Result<Document, Vec<Finding>> {
    let parts = members(text).map_err(|problem| vec![json::finding(text, problem)])?;
    let part = |name: &str| parts.iter().find(|(key, _)| key == name).map(|(_, v)| *v);
    if let Some(item) = part("item") {
        // The item of an IMPORTED_VERSION is a version of another system.
        let item = json::read(item, Cls::ORIGINAL_VERSION);
        let item = item.map_err(|found| below(found, "/item"))?;
        return Ok(document_of_version(item).at("/item"));
    }
    let preceding = part("preceding_version_uid").and_then(object_version_id);
    let deletes = part("commit_audit")
        .and_then(states_deletion)
        .unwrap_or(deletes);
    let read = match part("data").filter(|_| !deletes) {
        Some(data) => {
            let read = json::read(data, Cls::ANY).and_then(document);
            read.map_err(|found| below(found, "/data"))?.at("/data")
        }
        None if preceding.is_some() => Document::alone(Tree::new()),
        None => {
            let problem = "the version has neither `data` nor the version that it deletes";
            return Err(vec![Finding::error("CLI0108", "", problem)]);
        }
    };
    let state = part("lifecycle_state").and_then(|state| json::value(state).ok());
    Ok(Document {
        is_draft: state.is_some_and(|state| is_coded(&state, &DRAFT)),
        preceding,
        ..read
    })
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
    Some(is_coded(audit.get("change_type")?, &[DELETED, "deleted"]))
}

/// Returns whether a coded text, in any form that clients send, is one of these codes or rubrics.
fn is_coded(coded: &Value, known: &[&str]) -> bool {
    let texts = [
        coded.pointer("/defining_code/code_string"),
        coded.get("code_string"),
        coded.get("value"),
        Some(coded),
    ];
    let mut texts = texts.into_iter().flatten().filter_map(Value::as_str);
    texts.any(|text| {
        let mut known = known.iter();
        known.any(|known| text.trim().eq_ignore_ascii_case(known))
    })
}

/// Returns findings about a part of a text at `place`, with paths from the text.
pub fn below(mut findings: Vec<Finding>, place: &str) -> Vec<Finding> {
    for Finding { path, .. } in &mut findings {
        // The Reference Model has `/` for the root.
        match path == "/" && !place.is_empty() {
            true => place.clone_into(path),
            false => path.insert_str(0, place),
        }
    }
    findings
}

fn unknown() -> Finding {
    Finding::error(
        "CLI0104",
        "",
        "the content is not recognized: expected a composition as JSON, XML, FLAT or STRUCTURED, a template, or lines of JSON",
    )
}
