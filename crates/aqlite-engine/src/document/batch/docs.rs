//! The metadata of the documents of a batch, as columns.

use super::Fragment;
use crate::document::column::push;
use crate::document::part::Part;
use aqlite_rm::class::Cls;
use std::sync::Arc;

/// The kinds of versioned objects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum ObjectKind {
    /// COMPOSITION.
    Composition,
    /// EHR_STATUS.
    EhrStatus,
    /// The directory: a tree of FOLDERs.
    Folder,
    /// A demographic PARTY.
    Party,
}

impl ObjectKind {
    /// Returns the number that represents the kind in storage.
    pub fn number(self) -> u64 {
        match self {
            ObjectKind::Composition => 1,
            ObjectKind::EhrStatus => 2,
            ObjectKind::Folder => 3,
            ObjectKind::Party => 4,
        }
    }

    /// Returns the kind that a number represents.
    pub fn of_number(number: u64) -> Option<ObjectKind> {
        [
            ObjectKind::Composition,
            ObjectKind::EhrStatus,
            ObjectKind::Folder,
            ObjectKind::Party,
        ]
        .into_iter()
        .find(|kind| kind.number() == number)
    }

    /// Returns the class of its documents.
    pub fn class(self) -> Cls {
        match self {
            ObjectKind::Composition => Cls::COMPOSITION,
            ObjectKind::EhrStatus => Cls::EHR_STATUS,
            ObjectKind::Folder => Cls::FOLDER,
            ObjectKind::Party => Cls::PARTY,
        }
    }
}

/// The metadata of a document version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocRow {
    /// The kind of the versioned object.
    pub kind: ObjectKind,
    /// VERSIONED_OBJECT.uid.value.
    pub object_id: String,
    /// The number of the version, from 1.
    pub number: u32,
    /// Its place in the commit order of the whole repository.
    pub ordinal: u64,
    /// Whether this is the newest version of its object.
    pub latest: bool,
    /// Whether this version is a deletion.
    pub deleted: bool,
}

/// A document of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Doc {
    /// The number of the document in the batch.
    pub document: u32,
    /// The number of its EHR in the batch.
    pub ehr: u32,
    /// The metadata.
    pub row: DocState,
    /// The fragment of the ORIGINAL_VERSION or IMPORTED_VERSION.
    pub version: Fragment,
    /// The fragment of the data; `None` for a deletion.
    pub data: Option<Fragment>,
}

/// The metadata of a document version that a batch stores. The object id is part of the version
/// uid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DocState {
    /// The kind of the versioned object.
    pub kind: ObjectKind,
    /// The number of the version, from 1.
    pub number: u32,
    /// Its place in the commit order of the whole repository.
    pub ordinal: u64,
    /// Whether this is the newest version of its object.
    pub latest: bool,
    /// Whether this version is a deletion.
    pub deleted: bool,
}

/// The metadata of the documents of a batch, in commit order.
#[derive(Clone, Debug, Default)]
pub(in crate::document) struct Docs {
    /// The columns that are shared by all states of the batch of a segment.
    fixed: Arc<Fixed>,
    /// The VERSION of each document. Absent in a batch of a segment until a query reads versions.
    pub versions: Part<DocumentVersions>,
    /// The data of each document. Absent in a batch of a segment until a query goes from documents to
    /// their data.
    pub data: Part<DocumentData>,
    flags: Vec<DocumentFlags>,
    live: Vec<bool>,
}

/// The columns that are never changed.
#[derive(Clone, Debug, Default)]
struct Fixed {
    ehrs: Vec<u32>,
    ordinals: Vec<u64>,
}

/// The VERSION of each document.
#[derive(Clone, Debug, Default)]
pub(in crate::document) struct DocumentVersions {
    /// The number of the version in its object.
    pub numbers: Vec<u32>,
    pub fragments: Vec<Fragment>,
}

/// The fragment of the data of each document; [`Fragment::NONE`] for a deletion.
#[derive(Clone, Debug, Default)]
pub(in crate::document) struct DocumentData(pub Vec<Fragment>);

/// The fields of a [`DocState`] that have few distinct values.
#[derive(Clone, Copy, Debug)]
pub(in crate::document) struct DocumentFlags {
    pub kind: ObjectKind,
    pub latest: bool,
    pub deleted: bool,
}

impl Docs {
    pub fn len(&self) -> usize {
        self.flags.len()
    }

    /// Returns the fields of all documents that have few values.
    pub fn flags(&self) -> &[DocumentFlags] {
        &self.flags
    }

    /// Adds a document behind all others. Population queries read it until [`Docs::set_live`]
    /// excludes it. Returns false if the fragments of documents are loaded on demand, so that none
    /// can be added.
    pub fn push(&mut self, doc: &Doc) -> bool {
        let (Some(versions), Some(data)) = (self.versions.owned(), self.data.owned()) else {
            return false;
        };
        push(&mut versions.numbers, doc.row.number);
        push(&mut versions.fragments, doc.version);
        push(&mut data.0, doc.data.unwrap_or(Fragment::NONE));
        let fixed = Arc::make_mut(&mut self.fixed);
        push(&mut fixed.ehrs, doc.ehr);
        push(&mut fixed.ordinals, doc.row.ordinal);
        let flags = DocumentFlags {
            kind: doc.row.kind,
            latest: doc.row.latest,
            deleted: doc.row.deleted,
        };
        push(&mut self.flags, flags);
        push(&mut self.live, true);
        true
    }

    /// Creates documents whose fragments are loaded on demand, each of which population queries
    /// read. The lists have equal lengths, and the ordinals ascend.
    pub fn late(ehrs: Vec<u32>, ordinals: Vec<u64>, flags: Vec<DocumentFlags>) -> Docs {
        Docs {
            live: vec![true; flags.len()],
            fixed: Arc::new(Fixed { ehrs, ordinals }),
            versions: Part::absent(),
            data: Part::absent(),
            flags,
        }
    }

    /// Returns the documents after the versions with the ordinals `superseded` were superseded,
    /// without their fragments. `is_queryable` has for each EHR whether population queries read it.
    /// `None` if a document has no EHR.
    pub fn in_state(&self, superseded: &[u64], is_queryable: &[Option<bool>]) -> Option<Docs> {
        let mut flags = self.flags.clone();
        for document in superseded.iter().filter_map(|at| self.at_ordinal(*at)) {
            flags.get_mut(document as usize)?.latest = false;
        }
        self.with_flags(flags, is_queryable)
    }

    /// Returns the documents as they were before the versions with ordinals above `until` were
    /// committed, without their fragments. The versions with the ordinals `revived` were the latest
    /// ones then. `None` if a document has no EHR.
    pub fn in_past(
        &self,
        revived: &[u64],
        until: u64,
        is_queryable: &[Option<bool>],
    ) -> Option<Docs> {
        let mut flags = self.flags.clone();
        for document in revived.iter().filter_map(|at| self.at_ordinal(*at)) {
            flags.get_mut(document as usize)?.latest = true;
        }
        // Later versions are hidden as if they were superseded, because only scans of the latest
        // versions read older states.
        let end = self.fixed.ordinals.partition_point(|at| *at <= until);
        let later = flags.get_mut(end..)?.iter_mut();
        later.for_each(|flags| flags.latest = false);
        self.with_flags(flags, is_queryable)
    }

    /// Returns the documents without their fragments. `None` if a document has no EHR.
    pub fn without_fragments(&self, is_queryable: &[Option<bool>]) -> Option<Docs> {
        self.with_flags(self.flags.clone(), is_queryable)
    }

    fn with_flags(&self, flags: Vec<DocumentFlags>, is_queryable: &[Option<bool>]) -> Option<Docs> {
        let lives = |(flags, ehr): (&DocumentFlags, &u32)| {
            let is_queryable = *is_queryable.get(*ehr as usize)? == Some(true);
            Some(is_queryable && flags.latest && !flags.deleted)
        };
        let live = flags.iter().zip(&self.fixed.ehrs).map(lives);
        Some(Docs {
            live: live.collect::<Option<_>>()?,
            fixed: Arc::clone(&self.fixed),
            versions: Part::absent(),
            data: Part::absent(),
            flags,
        })
    }

    pub fn get(&self, document: u32) -> Option<Doc> {
        let at = document as usize;
        let DocumentFlags {
            kind,
            latest,
            deleted,
        } = *self.flags.get(at)?;
        // Both parts are read before either is tested, so that both are wanted at once.
        let (versions, data) = (self.versions.get(), self.data(document));
        let number = *versions?.numbers.get(at)?;
        let row = DocState {
            kind,
            number,
            ordinal: self.ordinal(document)?,
            latest,
            deleted,
        };
        Some(Doc {
            document,
            ehr: self.ehr(document)?,
            row,
            version: self.version(document)?,
            data,
        })
    }

    pub fn ehr(&self, document: u32) -> Option<u32> {
        self.fixed.ehrs.get(document as usize).copied()
    }

    pub fn ordinal(&self, document: u32) -> Option<u64> {
        self.fixed.ordinals.get(document as usize).copied()
    }

    /// Returns the document of a version, given by its place in the commit order.
    pub fn at_ordinal(&self, ordinal: u64) -> Option<u32> {
        // Documents are in commit order, so their ordinals ascend.
        let found = self.fixed.ordinals.binary_search(&ordinal);
        found.ok().map(|document| document as u32)
    }

    /// Returns whether a document is the latest version of an object, and not a deletion.
    pub fn is_current(&self, document: u32) -> bool {
        let flags = self.flags.get(document as usize);
        flags.is_some_and(|flags| flags.latest && !flags.deleted)
    }

    pub fn version(&self, document: u32) -> Option<Fragment> {
        let versions = &self.versions.get()?.fragments;
        versions.get(document as usize).copied()
    }

    pub fn data(&self, document: u32) -> Option<Fragment> {
        let data = self.data.get()?.0.get(document as usize);
        data.copied().filter(|data| *data != Fragment::NONE)
    }

    pub fn live(&self) -> &[bool] {
        &self.live
    }

    /// Sets whether population queries read a document. Returns whether the value has changed.
    pub fn set_live(&mut self, document: u32, lives: bool) -> bool {
        self.live
            .get_mut(document as usize)
            .is_some_and(|live| std::mem::replace(live, lives) != lives)
    }

    /// Records that a document is no longer the latest version of its object.
    pub fn supersede(&mut self, document: u32) {
        self.flags
            .get_mut(document as usize)
            .into_iter()
            .for_each(|flags| flags.latest = false);
    }

    pub fn bytes(&self) -> usize {
        const EACH: usize =
            size_of::<u32>() + size_of::<u64>() + size_of::<DocumentFlags>() + size_of::<bool>();
        self.flags.capacity() * EACH + self.late_bytes()
    }

    /// Estimates the bytes of the fragments.
    pub fn late_bytes(&self) -> usize {
        let versions = self.versions.present().map_or(0, DocumentVersions::bytes);
        versions + self.data.present().map_or(0, DocumentData::bytes)
    }
}

impl DocumentVersions {
    pub fn bytes(&self) -> usize {
        self.numbers.capacity() * (size_of::<u32>() + size_of::<Fragment>())
    }
}

impl DocumentData {
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Fragment>()
    }
}

#[cfg(test)]
mod tests {
    use super::{DocRow, ObjectKind};
    use crate::answer::query::{
        ClassExpr, Column, ColumnValue, Contains, Expr, Literal, Query, Source, Variable, Versions,
    };
    use crate::answer::{Budget, QueryError, Run, plan};
    use crate::document::{Batch, EhrRow, LayoutStore, NothingKnown, pack};
    use aqlite_rm::class::Cls;
    use aqlite_rm::json;
    use std::cell::OnceCell;

    /// Returns `SELECT 1` with a FROM that binds these classes.
    fn query(from: Source, classes: &[Cls]) -> Query {
        let variable = |class: &Cls| Variable {
            name: None,
            class: *class,
        };
        let one = ColumnValue::Expr(Expr::Literal(Literal::Number("1".into())));
        Query {
            from,
            variables: classes.iter().map(variable).collect(),
            paths: Vec::new(),
            exists: Vec::new(),
            select: vec![Column {
                name: String::from("#0"),
                path: None,
                value: one,
            }],
            distinct: false,
            condition: None,
            order: Vec::new(),
            window: None,
        }
    }

    fn class(variable: usize, class: Cls, contains: Contains) -> Source {
        Source::Class(Box::new(ClassExpr {
            variable,
            class,
            versions: Versions::Latest,
            predicate: None,
            contains,
        }))
    }

    /// `SELECT 1 FROM COMPOSITION`
    fn one_of_each_composition() -> Query {
        let composition = class(0, Cls::COMPOSITION, Contains::Nothing);
        query(composition, &[Cls::COMPOSITION])
    }

    /// `SELECT 1 FROM EHR CONTAINS (COMPOSITION AND COMPOSITION)`
    fn pairs_of_compositions() -> Query {
        let composition = |variable| Box::new(class(variable, Cls::COMPOSITION, Contains::Nothing));
        let pairs = Source::And(composition(1), composition(2));
        let ehr = class(0, Cls::EHR, Contains::Some(pairs));
        query(ehr, &[Cls::EHR, Cls::COMPOSITION, Cls::COMPOSITION])
    }

    /// Returns a batch of one EHR with two compositions.
    fn batch() -> Batch {
        let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
        let ehr = batch.add_ehr(EhrRow {
            ehr_id: "e".into(),
            system_id: "test".into(),
            time_created: "2026-01-01T00:00:00Z".into(),
            is_queryable: true,
        });
        for ordinal in 0..2 {
            let composition = r#"{"_type":"COMPOSITION","archetype_node_id":"openEHR-EHR-COMPOSITION.encounter.v1","name":{"value":"N"}}"#;
            let version = format!(
                r#"{{"_type":"ORIGINAL_VERSION","uid":{{"value":"o{ordinal}::test::1"}},"data":{composition}}}"#
            );
            let tree = json::read(&version, Cls::VERSION).unwrap();
            let packed = pack(tree.root().unwrap(), &NothingKnown, &layouts);
            let row = DocRow {
                kind: ObjectKind::Composition,
                object_id: format!("o{ordinal}"),
                number: 1,
                ordinal,
                latest: true,
                deleted: false,
            };
            batch.add(ehr, row, &packed);
        }
        batch
    }

    /// Returns the number of rows of a query over a batch.
    fn rows(
        batch: &Batch,
        query: Query,
        ehr: Option<&str>,
        plain: bool,
    ) -> Result<usize, QueryError> {
        let plan = plan(query, ehr, false).unwrap();
        let budget = Budget {
            plain,
            ..Budget::default()
        };
        let mut run = Run::new(&plan, "2026-01-01T00:00:00Z", budget, &|| false);
        run.push(batch);
        run.finish().map(|result| result.rows().count())
    }

    #[test]
    fn document_of_an_ehr_that_is_not_in_the_batch_is_an_error() {
        let mut batch = batch();
        let outcomes = |batch: &Batch| {
            [
                rows(batch, one_of_each_composition(), Some("e"), false),
                rows(batch, pairs_of_compositions(), None, true),
                rows(batch, pairs_of_compositions(), Some("e"), false),
            ]
        };
        assert_eq!(outcomes(&batch), [Ok(2), Ok(4), Ok(4)]);
        batch.by_ehr.0 = OnceCell::from(vec![vec![0, 7]]);
        let missing = Err(QueryError::Broken("a document is not in its batch"));
        assert_eq!(
            outcomes(&batch),
            [missing.clone(), missing.clone(), missing]
        );
    }

    #[test]
    fn document_with_a_fragment_of_no_table_is_an_error() {
        let mut batch = batch();
        batch.tables.truncate(1);
        let missing = Err(QueryError::Broken("a fragment has no table"));
        for plain in [true, false] {
            let found = rows(&batch, one_of_each_composition(), Some("e"), plain);
            assert_eq!(found, missing, "plain: {plain}");
        }
    }
}
