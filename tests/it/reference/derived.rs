//! Data that are derived from all versions of an EHR: its references, and the VERSIONED_OBJECTs.

use super::super::notation::{Document, Repository};
use aqlite::document::ObjectKind;
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::rm::tree::Tree;

/// A VERSIONED_OBJECT, identified by the number of its first version.
pub struct Container {
    pub first: usize,
    pub tree: Tree,
}

/// Returns an EHR object for each EHR that contains its references only, and every container in
/// order of creation.
pub fn of(repository: &Repository) -> (Vec<Tree>, Vec<Container>) {
    let is_first = |d: &usize| {
        repository.documents[..*d]
            .iter()
            .all(|before| before.row.object_id != repository.documents[*d].row.object_id)
    };
    let firsts: Vec<usize> = (0..repository.documents.len()).filter(is_first).collect();
    let references = (0..repository.ehrs.len())
        .map(|ehr| references(repository, ehr, &firsts))
        .collect();
    let containers = firsts
        .iter()
        .map(|first| Container {
            first: *first,
            tree: container(repository, *first),
        })
        .collect();
    (references, containers)
}

fn class(document: &Document) -> &'static str {
    match document.row.kind {
        ObjectKind::Composition => "VERSIONED_COMPOSITION",
        ObjectKind::EhrStatus => "VERSIONED_EHR_STATUS",
        ObjectKind::Folder => "VERSIONED_FOLDER",
        ObjectKind::Party => "VERSIONED_PARTY",
    }
}

fn reference(id: &str, class: &str) -> String {
    format!(
        r#"{{"_type":"OBJECT_REF","id":{{"_type":"HIER_OBJECT_ID","value":"{id}"}},"namespace":"local","type":"{class}"}}"#
    )
}

fn references(repository: &Repository, ehr: usize, firsts: &[usize]) -> Tree {
    let own = |kind: ObjectKind| {
        firsts
            .iter()
            .map(|d| &repository.documents[*d])
            .filter(move |d| d.ehr == ehr && d.row.kind == kind)
    };
    let list = |kind| {
        own(kind)
            .map(|d| reference(&d.row.object_id, class(d)))
            .collect::<Vec<_>>()
            .join(",")
    };
    let contribution = |d: &Document| {
        d.tree
            .root()
            .and_then(|v| v.text_along(&[Attr::CONTRIBUTION, Attr::ID, Attr::VALUE]))
            .map(str::to_owned)
    };
    let mut contributions: Vec<String> = repository
        .documents
        .iter()
        .filter(|d| d.ehr == ehr)
        .filter_map(contribution)
        .collect();
    contributions.dedup();
    let contributions: Vec<String> = contributions
        .iter()
        .map(|id| reference(id, "CONTRIBUTION"))
        .collect();
    let lives = |d: &&Document| {
        let last = repository
            .documents
            .iter()
            .rev()
            .find(|other| other.row.object_id == d.row.object_id);
        last.is_some_and(|last| !last.row.deleted)
    };
    let directory = own(ObjectKind::Folder)
        .find(lives)
        .map(|d| format!(r#","directory":{}"#, reference(&d.row.object_id, class(d))));
    let text = format!(
        r#"{{"_type":"EHR","contributions":[{}],"compositions":[{}],"folders":[{}]{}}}"#,
        contributions.join(","),
        list(ObjectKind::Composition),
        list(ObjectKind::Folder),
        directory.unwrap_or_default(),
    );
    json::read(&text, Cls::EHR).expect("references")
}

fn container(repository: &Repository, first: usize) -> Tree {
    let document = &repository.documents[first];
    let created = document
        .tree
        .root()
        .and_then(|v| v.text_along(&[Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE]))
        .unwrap_or_default();
    let text = format!(
        r#"{{"_type":"{}","uid":{{"_type":"HIER_OBJECT_ID","value":"{}"}},"owner_id":{},"time_created":{{"_type":"DV_DATE_TIME","value":"{created}"}}}}"#,
        class(document),
        document.row.object_id,
        reference(&repository.ehrs[document.ehr].ehr_id, "EHR"),
    );
    json::read(&text, Cls::VERSIONED_OBJECT).expect("a container")
}
