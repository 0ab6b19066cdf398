//! The repository in memory, for browsers and tests.

mod apply;
mod check;
mod checkpoint;
mod index;
mod repository;
mod scan;
mod snapshot;

use super::journal::{Change, Journal};
use super::log::MemoryLog;
use super::repository::{
    Commit, Definition, DefinitionKind, Ehr, ItemTag, StoreError, TagList, Version,
};
use super::state_history::StateHistory;
use crate::document::{Batch, Doc, DocRow, DocState, EhrRow, ObjectKind, TextIndex};
use crate::rm::class::Attr;
use aqlite_engine::codec;
pub use checkpoint::CheckpointWork;
use index::StoredContribution;
pub use scan::MemoryScan;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// A repository in memory. All documents are rows of one batch, which grows with each commit.
#[derive(Default)]
pub struct Memory {
    /// Shared with the scans that run in steps.
    state: Rc<RefCell<State>>,
    /// The journal of changes, for hosts that save them.
    journal: Option<RefCell<Journal>>,
}

#[derive(Default)]
struct State {
    /// The EHRs in the order of creation.
    ehrs: Vec<EhrEntry>,
    ehr_ids: HashMap<String, usize>,
    /// The EHRs of subjects, by id and namespace.
    subjects: BTreeMap<(String, String), usize>,
    /// The contributions in commit order.
    contributions: Vec<StoredContribution>,
    contribution_uids: TextIndex,
    /// [`Commit::idempotency`] by the uid of the contribution.
    idempotency: HashMap<String, String>,
    /// The tags, by target.
    tags: HashMap<String, (String, Vec<ItemTag>)>,
    /// The newest version of each object.
    objects: TextIndex,
    /// The preceding version of each document.
    before: Vec<Option<u32>>,
    /// Versions whose metadata cannot be derived from their documents.
    explicit: HashMap<u32, ExplicitVersion>,
    definitions: HashMap<(DefinitionKind, String, String), Definition>,
    batch: Batch,
    ordinal: u64,
    revision: u64,
    history: StateHistory,
    log: MemoryLog,
}

/// The metadata of a version that cannot be derived from its document.
#[derive(Clone)]
struct ExplicitVersion {
    ehr_id: String,
    version_uid: String,
    preceding: Option<String>,
    contribution: String,
    time_committed: String,
    lifecycle: String,
    template_id: Option<String>,
}

codec!(ExplicitVersion {
    ehr_id,
    version_uid,
    preceding,
    contribution,
    time_committed,
    lifecycle,
    template_id,
});

/// An EHR, and its number in the batch. The owner of the demographic parties has no `ehr`.
struct EhrEntry {
    ehr: Option<Ehr>,
    in_batch: u32,
    /// The number of the newest version at the creation of the EHR.
    created_after: u64,
}

const UID: &[Attr] = &[Attr::UID, Attr::VALUE];
const PRECEDING: &[Attr] = &[Attr::PRECEDING_VERSION_UID, Attr::VALUE];
const CONTRIBUTION: &[Attr] = &[Attr::CONTRIBUTION, Attr::ID, Attr::VALUE];
const TIME: &[Attr] = &[Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE];
const LIFECYCLE: &[Attr] = &[
    Attr::LIFECYCLE_STATE,
    Attr::DEFINING_CODE,
    Attr::CODE_STRING,
];

impl Memory {
    /// Creates an empty repository.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Creates an empty repository that records its changes, so that a host can save them.
    pub fn journaled() -> Memory {
        Memory {
            journal: Some(RefCell::default()),
            ..Memory::default()
        }
    }

    /// Returns the changes since the last call as one line of text with its end, or `None` without
    /// changes.
    ///
    /// # Errors
    /// A message if a part of the checkpoint could not be read: the changes must not be saved.
    pub fn take_journal_line(&self) -> Result<Option<String>, String> {
        let taken = self.journal.as_ref().and_then(|j| j.borrow_mut().take());
        match self.failure() {
            Some(why) => Err(why),
            None => Ok(taken),
        }
    }

    /// Returns the reason for which a part of the checkpoint could not be read; `None` if none
    /// failed. After a failure, the repository must not be used.
    pub fn failure(&self) -> Option<String> {
        self.state.borrow().batch.failure().map(str::to_owned)
    }

    /// Applies lines of [`Memory::take_journal_line`] again. The caller passes all lines since the first one,
    /// in their order.
    ///
    /// # Errors
    /// A message if a line cannot be read, or contradicts the state. After an error, the repository
    /// must not be used.
    pub fn replay_journal(&self, lines: &str) -> Result<(), String> {
        let journal = self
            .journal
            .as_ref()
            .ok_or("this repository has no journal")?;
        for record in super::journal::records(lines) {
            let change = journal.borrow_mut().read(record)?;
            change.map_or(Ok(()), |change| self.check_and_apply(change))?;
        }
        self.failure().map_or(Ok(()), Err)
    }

    fn check_and_apply(&self, change: Change) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        if let Change::Commit(commit) = &change {
            // Only the order of versions is checked: an earlier release may have accepted changes
            // that this one refuses.
            state
                .check_order(commit)
                .map_err(|why| format!("the journal does not fit: {why}"))?;
        }
        state.apply(change).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Checks a commit and applies it.
    fn check_and_commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.state.borrow().check(&commit)?;
        self.apply_and_record(Change::Commit(Box::new(commit)))?;
        Ok(())
    }

    /// Records a change and applies it.
    fn apply_and_record(&self, change: Change) -> Result<bool, StoreError> {
        if let Some(journal) = &self.journal {
            journal.borrow_mut().write(&change)?;
        }
        self.state.borrow_mut().apply(change)
    }

    /// Returns the number of physical deletions.
    pub fn removals(&self) -> u64 {
        self.state.borrow().history.removals()
    }

    /// Returns the approximate size of the batch in bytes.
    pub fn bytes(&self) -> usize {
        self.state.borrow().batch.bytes()
    }
}

impl State {
    fn record(&self, ehr_id: &str) -> Option<&EhrEntry> {
        self.ehrs.get(*self.ehr_ids.get(ehr_id)?)
    }

    fn ehr(&self, ehr_id: &str) -> Option<&Ehr> {
        self.record(ehr_id)?.ehr.as_ref()
    }

    /// Returns the newest version of an object.
    fn newest(&self, object_id: &str) -> Option<u32> {
        self.objects
            .find(object_id, |document| self.batch.object_id(document))
    }

    fn object_id(&self, doc: &Doc) -> Result<String, StoreError> {
        let id = self.batch.find_object_id(doc.document);
        id.map(str::to_owned).ok_or_else(missing_document)
    }

    /// Returns the versions of an object of an EHR, newest first, or none if the object belongs to
    /// another EHR.
    fn versions(&self, ehr_id: &str, object_id: &str) -> Result<Vec<u32>, StoreError> {
        let (Some(record), Some(newest)) = (self.record(ehr_id), self.newest(object_id)) else {
            return Ok(Vec::new());
        };
        let doc = self.batch.doc(newest).ok_or_else(missing_document)?;
        if doc.ehr != record.in_batch {
            return Ok(Vec::new());
        }
        let mut versions = vec![newest];
        let mut document = newest;
        while let Some(before) = self.preceding(document)? {
            versions.push(before);
            document = before;
        }
        Ok(versions)
    }

    /// Returns the document of the version before that of a document; `None` for a first version.
    fn preceding(&self, document: u32) -> Result<Option<u32>, StoreError> {
        let before = self.before.get(document as usize);
        before.copied().ok_or_else(missing_document)
    }

    /// Iterates over the documents of an EHR in commit order.
    fn documents(&self, ehr_id: &str) -> impl Iterator<Item = Doc> {
        let documents = self
            .record(ehr_id)
            // Commit order is the order of documents in the batch.
            .map_or(&[][..], |record| self.batch.docs_of(record.in_batch));
        documents
            .iter()
            .filter_map(|number| self.batch.doc(*number))
    }

    /// Returns the contribution with this uid, and its index.
    fn contribution(&self, uid: &str) -> Option<(usize, &StoredContribution)> {
        let number = self
            .contribution_uids
            .find(uid, |number| self.uid_of(number))? as usize;
        Some((number, self.contributions.get(number)?))
    }

    /// Returns the uid of a contribution for the index of uids. The empty text of a contribution
    /// without one equals no uid, so it is not found.
    fn uid_of(&self, contribution: u32) -> &str {
        let stored = self.contributions.get(contribution as usize);
        let uid = stored.and_then(|stored| stored.uid(&self.batch));
        uid.unwrap_or_default()
    }

    /// Returns the id of the EHR with this number in the batch, or the empty id of the owner of the
    /// parties; `None` for any other number.
    fn owner_id(&self, owner: u32) -> Option<&str> {
        let of_parties = || self.in_batch("").filter(|parties| *parties == owner);
        let id = self.batch.ehr_id(owner);
        id.or_else(|| of_parties().map(|_| ""))
    }

    /// Returns the number of an EHR in the batch; an empty id is that of the owner of the parties.
    fn in_batch(&self, ehr_id: &str) -> Option<u32> {
        self.record(ehr_id).map(|record| record.in_batch)
    }

    /// Returns a version with its tags and those of its object.
    fn version(&self, document: u32) -> Result<Version, StoreError> {
        let version = match self.explicit.get(&document) {
            Some(explicit) => self.explicit_version(document, explicit),
            None => self.derived_version(document),
        };
        let version = version.ok_or_else(missing_document)?;
        let of = |target: &String| {
            self.tags.get(target).map(|(_, tags)| TagList {
                target: target.clone(),
                tags: tags.clone(),
            })
        };
        let tags = [&version.object_id, &version.version_uid]
            .into_iter()
            .filter_map(of)
            .collect();
        Ok(Version { tags, ..version })
    }

    fn explicit_version(&self, document: u32, explicit: &ExplicitVersion) -> Option<Version> {
        let doc = self.batch.doc(document)?;
        Some(Version {
            ehr_id: explicit.ehr_id.clone(),
            kind: doc.row.kind,
            object_id: self.batch.find_object_id(document)?.to_owned(),
            version_uid: explicit.version_uid.clone(),
            number: doc.row.number,
            preceding: explicit.preceding.clone(),
            contribution: explicit.contribution.clone(),
            time_committed: explicit.time_committed.clone(),
            lifecycle: explicit.lifecycle.clone(),
            template_id: explicit.template_id.clone(),
            packed: self.batch.packed(doc.version)?,
            tags: Vec::new(),
        })
    }

    /// Derives a version from its document.
    fn derived_version(&self, document: u32) -> Option<Version> {
        let doc = self.batch.doc(document)?;
        let text = |path| self.batch.text_along(doc.version, path).map(str::to_owned);
        Some(Version {
            ehr_id: self.owner_id(doc.ehr)?.to_owned(),
            kind: doc.row.kind,
            object_id: self.batch.find_object_id(document)?.to_owned(),
            version_uid: text(UID)?,
            number: doc.row.number,
            preceding: text(PRECEDING),
            contribution: text(CONTRIBUTION)?,
            time_committed: text(TIME)?,
            lifecycle: text(LIFECYCLE)?,
            template_id: self.template_of(doc).map(str::to_owned),
            packed: self.batch.packed(doc.version)?,
            tags: Vec::new(),
        })
    }

    /// Returns whether [`State::derived_version`] derives exactly this version.
    fn is_derivable(&self, document: u32, version: &Version) -> bool {
        let Some(doc) = self.batch.doc(document) else {
            return false;
        };
        let text = |path| self.batch.text_along(doc.version, path);
        let needed = [
            (UID, &version.version_uid),
            (CONTRIBUTION, &version.contribution),
            (TIME, &version.time_committed),
            (LIFECYCLE, &version.lifecycle),
        ];
        needed
            .into_iter()
            .all(|(path, said)| text(path) == Some(said))
            && text(PRECEDING) == version.preceding.as_deref()
            && self.template_of(doc) == version.template_id.as_deref()
            && self.owner_id(doc.ehr) == Some(&version.ehr_id)
    }

    fn template_of(&self, doc: Doc) -> Option<&str> {
        let of_composition = doc.data.filter(|_| doc.row.kind == ObjectKind::Composition);
        self.batch.text_along(
            of_composition?,
            &[Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE],
        )
    }

    /// Returns the tags of a target in an EHR.
    fn tags_of(&self, ehr_id: &str, target: &str) -> &[ItemTag] {
        self.tags
            .get(target)
            .filter(|(owner, _)| owner == ehr_id)
            .map_or(&[], |(_, tags)| tags)
    }
}

/// Returns the error for a number of a document that is not in the batch.
fn missing_document() -> StoreError {
    broken("a document that the index names is not in the batch")
}

/// Returns the error for a number of an owner that is neither an EHR nor that of the parties.
fn missing_owner() -> StoreError {
    broken("the owner of a document is not in the batch")
}

/// Returns the error for a broken invariant of this repository.
fn broken(what: &str) -> StoreError {
    StoreError::Failed(format!("an invariant of the repository is broken: {what}"))
}

/// Returns the row of a document of a batch, to add it to another batch.
///
/// # Errors
/// If the document has no object id.
fn row_in(batch: &Batch, doc: &Doc) -> Result<DocRow, StoreError> {
    let DocState {
        kind,
        number,
        ordinal,
        latest,
        deleted,
    } = doc.row;
    let object_id = batch.find_object_id(doc.document);
    Ok(DocRow {
        kind,
        object_id: object_id.ok_or_else(missing_document)?.to_owned(),
        number,
        ordinal,
        latest,
        deleted,
    })
}

fn row_of(ehr: &Ehr) -> EhrRow {
    EhrRow {
        ehr_id: ehr.ehr_id.clone(),
        system_id: ehr.system_id.clone(),
        time_created: ehr.time_created.clone(),
        is_queryable: ehr.is_queryable,
    }
}
