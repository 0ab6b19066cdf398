//! What a query needs from a repository, as data: the planner writes it, the repository may use it to read less.

use crate::document::ObjectKind;

/// A request for batches of documents.
///
/// Every field only narrows: a repository that ignores one and sends more gives the same rows, later.
#[derive(Clone, PartialEq, Debug)]
pub struct Scan {
    /// Only this EHR.
    pub ehr: Option<String>,
    /// The kinds of documents that the query can touch; empty: only the EHRs themselves are asked for.
    pub kinds: Vec<ObjectKind>,
    /// Old and deleted versions are asked for too; else only the latest, not deleted ones.
    pub all_versions: bool,
    /// Each batch must hold all documents of an EHR that it holds one of: the query joins documents, or asks for EHRs without any.
    pub whole_ehrs: bool,
    /// EHRs without a matching document are asked for too.
    pub empty_ehrs: bool,
    /// EHRs that are not queryable are asked for too: only with `ehr`.
    pub unqueryable: bool,
    /// A document can only give a row if its shapes hold one archetype of each group: pruning for compositions.
    pub archetypes: Vec<ArchetypeGroup>,
}

/// Archetype ids of which a document must hold one, compared by specialisation (see `rm::id`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArchetypeGroup(pub Vec<String>);

impl Default for Scan {
    fn default() -> Scan {
        Scan {
            ehr: None,
            kinds: vec![ObjectKind::Composition, ObjectKind::EhrStatus, ObjectKind::Folder],
            all_versions: false,
            whole_ehrs: true,
            empty_ehrs: true,
            unqueryable: false,
            archetypes: Vec::new(),
        }
    }
}
