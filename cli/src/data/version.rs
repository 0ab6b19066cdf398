//! Versions around documents: files hold documents, and queries read versions.

use super::document::Document;
use super::owner::derived_id;
use aqlite::document::ObjectKind;
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::rm::tree::{Kind, NodeRef, Tree};

/// EHR.system_id and AUDIT_DETAILS.system_id of data from files.
pub const SYSTEM: &str = "aqlite.local";

/// The ORIGINAL_VERSION around a document of a file. The texts that differ are set for each one.
const ENVELOPE: &str = r#"{"_type":"ORIGINAL_VERSION",
"contribution":{"_type":"OBJECT_REF","id":{"_type":"HIER_OBJECT_ID","value":""},"namespace":"local","type":"CONTRIBUTION"},
"commit_audit":{"_type":"AUDIT_DETAILS","system_id":"aqlite.local",
 "committer":{"_type":"PARTY_IDENTIFIED","name":"aqlite"},
 "time_committed":{"_type":"DV_DATE_TIME","value":""},
 "change_type":{"_type":"DV_CODED_TEXT","value":"creation","defining_code":{"_type":"CODE_PHRASE",
  "terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"249","preferred_term":"creation"}}},
"uid":{"_type":"OBJECT_VERSION_ID","value":""},
"lifecycle_state":{"_type":"DV_CODED_TEXT","value":"complete","defining_code":{"_type":"CODE_PHRASE",
 "terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"532","preferred_term":"complete"}}}"#;

/// The path of the change type in a VERSION.
const CHANGE_TYPE: [Attr; 2] = [Attr::COMMIT_AUDIT, Attr::CHANGE_TYPE];
/// The code and the rubric of a change type.
const MODIFICATION: (&str, &str) = ("251", "modification");
/// The code and the rubric of a change type and of a lifecycle state.
const DELETED: (&str, &str) = ("523", "deleted");

/// The uid of a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionUid {
    /// VERSIONED_OBJECT.uid.value.
    pub object_id: String,
    /// The whole text.
    pub text: String,
    /// The number of the version, from 1.
    pub number: u32,
}

impl VersionUid {
    /// Returns the uid of a document: the next one of the version that it follows, as the text
    /// around it states, as the document states, else derived from `origin`, which names the place
    /// of the document.
    ///
    /// # Errors
    /// If the number of the version is no whole number of 32 bits, such as that of a branch.
    pub fn of(document: &Document, origin: impl FnOnce() -> String) -> Result<VersionUid, String> {
        if let Some(preceding) = document.preceding.as_deref() {
            return VersionUid::parse(preceding)?.next();
        }
        let own = || document.tree.root()?.text_along(&[Attr::UID, Attr::VALUE]);
        let stated = document.uid.as_deref().or_else(own);
        match stated.filter(|uid| !uid.is_empty()) {
            Some(stated) => VersionUid::parse(stated),
            None => VersionUid::parse(&derived_id(&origin())),
        }
    }

    /// Returns the uid of the version that follows. It has the system of this one, as the members
    /// of later contributions name it.
    fn next(self) -> Result<VersionUid, String> {
        let number = self.number.checked_add(1);
        let number = number.ok_or_else(|| format!("`{}` is the last version", self.text))?;
        let begin = self.text.rsplit_once("::").map_or("", |(begin, _)| begin);
        Ok(VersionUid {
            text: format!("{begin}::{number}"),
            object_id: self.object_id,
            number,
        })
    }

    /// Parses the uid of a version, or the id of an object, whose version is then the first one.
    fn parse(stated: &str) -> Result<VersionUid, String> {
        let mut parts = stated.split("::");
        let object_id = parts.next().unwrap_or_default().to_owned();
        let Some(number) = parts.nth(1) else {
            return Ok(VersionUid {
                text: format!("{object_id}::{SYSTEM}::1"),
                object_id,
                number: 1,
            });
        };
        // Versions are ordered by their numbers. Those of a branch have no place in this order.
        let parsed = number.parse::<u32>().map_err(|_| {
            format!("`{number}` is no version that can be read: expected a whole number up to {}, without a branch", u32::MAX)
        });
        Ok(VersionUid {
            number: parsed?,
            object_id,
            text: stated.to_owned(),
        })
    }
}

/// A builder of VERSIONs. It keeps the tree that all of them share.
pub struct Versions {
    envelope: Tree,
}

impl Versions {
    /// Creates the builder.
    ///
    /// # Errors
    /// If the text of the program is no version: a broken invariant.
    pub fn new() -> Result<Versions, String> {
        match json::read(ENVELOPE, Cls::ORIGINAL_VERSION) {
            Ok(envelope) => Ok(Versions { envelope }),
            Err(_) => Err(String::from("the envelope of versions cannot be read")),
        }
    }

    /// Returns the version around a document; an empty tree is a deletion. `time` is the time of
    /// its commit, and `preceding` the uid of the version that it follows.
    pub fn around(
        &self,
        mut data: Tree,
        uid: &VersionUid,
        preceding: Option<&str>,
        time: &str,
    ) -> Tree {
        let mut tree = self.envelope.clone();
        let contribution = [Attr::CONTRIBUTION, Attr::ID, Attr::VALUE];
        // Files have no contributions. The id of the object is their id: it is the same in each run.
        set(&mut tree, &contribution, &uid.object_id);
        let committed = [Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE];
        set(&mut tree, &committed, time);
        set(&mut tree, &[Attr::UID, Attr::VALUE], &uid.text);
        let Some(root) = tree.root().map(NodeRef::id) else {
            return tree;
        };
        if let Some(id) = preceding.map(version_id).as_ref().and_then(Tree::root) {
            tree.put(root, Attr::PRECEDING_VERSION_UID, id);
        }
        match (data.root().is_some(), preceding) {
            (true, None) => {}
            (true, Some(_)) => set_code(&mut tree, &CHANGE_TYPE, MODIFICATION),
            (false, _) => {
                set_code(&mut tree, &CHANGE_TYPE, DELETED);
                set_code(&mut tree, &[Attr::LIFECYCLE_STATE], DELETED);
            }
        }
        name(&mut data, &uid.text);
        if let Some(data) = data.root() {
            tree.put(root, Attr::DATA, data);
        }
        tree
    }
}

/// Returns the kind of the object of a document.
pub fn kind_of(document: &Document) -> ObjectKind {
    match document.tree.root().map(NodeRef::class) {
        Some(class) if class == Cls::EHR_STATUS => ObjectKind::EhrStatus,
        Some(class) if class == Cls::FOLDER => ObjectKind::Folder,
        _ => ObjectKind::Composition,
    }
}

/// Returns the EHR_STATUS of an EHR that has none in the data.
pub fn default_status(subject: Option<&(String, String)>) -> Result<Tree, String> {
    let mut subject_json = String::from(r#"{"_type":"PARTY_SELF""#);
    if let Some((id, namespace)) = subject {
        subject_json.push_str(r#","external_ref":{"_type":"PARTY_REF","type":"PERSON","id":{"_type":"GENERIC_ID","scheme":"id","value":"#);
        json::quote_into(&mut subject_json, id);
        subject_json.push_str(r#"},"namespace":"#);
        json::quote_into(&mut subject_json, namespace);
        subject_json.push('}');
    }
    subject_json.push('}');
    let text = format!(
        r#"{{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1","name":{{"_type":"DV_TEXT","value":"EHR Status"}},"archetype_details":{{"_type":"ARCHETYPED","archetype_id":{{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-EHR_STATUS.generic.v1"}},"rm_version":"1.1.0"}},"subject":{subject_json},"is_queryable":true,"is_modifiable":true}}"#
    );
    json::read(&text, Cls::EHR_STATUS)
        .map_err(|_| String::from("the status of an EHR cannot be read"))
}

fn set(tree: &mut Tree, path: &[Attr], text: &str) {
    let leaf = path
        .iter()
        .try_fold(tree.root(), |node, attr| node.map(|node| node.get(*attr)))
        .flatten()
        .map(NodeRef::id);
    if let Some(leaf) = leaf {
        tree.set_text(leaf, text);
    }
}

/// Sets a DV_CODED_TEXT to a code of the terminology of openEHR.
fn set_code(tree: &mut Tree, path: &[Attr], (code, rubric): (&str, &str)) {
    let below = |rest: &[Attr]| [path, rest].concat();
    set(tree, &below(&[Attr::VALUE]), rubric);
    set(
        tree,
        &below(&[Attr::DEFINING_CODE, Attr::CODE_STRING]),
        code,
    );
    set(
        tree,
        &below(&[Attr::DEFINING_CODE, Attr::PREFERRED_TERM]),
        rubric,
    );
}

/// Returns an OBJECT_VERSION_ID.
fn version_id(uid: &str) -> Tree {
    let mut id = Tree::object(Cls::OBJECT_VERSION_ID);
    if let Some(node) = id.root().map(NodeRef::id) {
        id.push_leaf(Some(node), Some(Attr::VALUE), Cls::STRING, Kind::Text, uid);
    }
    id
}

/// Sets the uid of a document to that of its version, as the service does.
fn name(data: &mut Tree, uid: &str) {
    if let (Some(root), Some(id)) = (data.root().map(NodeRef::id), version_id(uid).root()) {
        data.put(root, Attr::UID, id);
    }
}

#[cfg(test)]
mod tests {
    use super::VersionUid;

    #[test]
    fn number_of_a_version_is_a_whole_number_of_32_bits() {
        let number = |uid: &str| VersionUid::parse(uid).map(|uid| (uid.text, uid.number));
        let read = |text: &str, number| Ok((text.to_owned(), number));
        assert_eq!(number("a::s::7"), read("a::s::7", 7));
        assert_eq!(
            number("a::s::4294967295"),
            read("a::s::4294967295", u32::MAX)
        );
        assert_eq!(number("a"), read("a::aqlite.local::1", 1));
        for uid in ["a::s::2.1.1", "a::s::4294967296", "a::s::x", "a::s::"] {
            assert!(number(uid).is_err(), "{uid}");
        }
    }
}
