//! Checkpoints: the whole state in one file, from which a host opens the repository again without
//! the journal before it.
//!
//! The file has the parts of the batch ([`CheckpointWriter`]), the two indexes of the state, and a
//! head at its end. Opening reads the head. Parts are read when something first needs them.

use super::{EhrEntry, ExplicitVersion, Memory, State, StoredContribution, broken};
use crate::document::{
    Batch, CheckpointWriter, PartFile, ReadBytes, Region, TextIndex, decode_with_checksum,
    encode_with_checksum,
};
use crate::store::journal::Journal;
use crate::store::log::MemoryLog;
use crate::store::repository::{
    AccessRecord, Definition, DefinitionKind, Ehr, ItemTag, StoreError,
};
use crate::store::state_history::StateHistory;
use aqlite_engine::codec;
use aqlite_rm::order;
use std::cell::RefCell;
use std::rc::Rc;

/// The first bytes of a head. The last of them is the version of the format. A later release reads
/// all earlier versions, because a checkpoint may be the only copy of its data.
const MAGIC: [u8; 4] = *b"AQC\x02";

/// The first bytes of the first version. All its date-times are texts of the dictionary; otherwise it
/// is read as the present one.
const MAGIC_OF_TEXTS: [u8; 4] = *b"AQC\x01";

/// The state as the head of a checkpoint has it.
struct StoredState {
    batch: Vec<u8>,
    ehrs: Vec<StoredEhr>,
    /// The owner and the number of documents of each contribution. Their documents follow one
    /// another.
    owners: Vec<u32>,
    documents: Vec<u32>,
    /// Uid and document of contributions whose uid and document are not derived from their
    /// versions, by number.
    own: Vec<(u32, (String, String))>,
    contribution_uids: Region,
    objects: Region,
    /// The number of objects.
    object_count: u32,
    idempotency: Vec<(String, String)>,
    tags: Vec<StoredTags>,
    /// Pairs of a document and the document of its preceding version.
    before: Vec<(u32, u32)>,
    explicit: Vec<(u32, ExplicitVersion)>,
    definitions: Vec<StoredDefinition>,
    ordinal: u64,
    revision: u64,
    history: StateHistory,
    log: Vec<StoredAccess>,
    last_access: u64,
}

struct StoredEhr {
    /// Ehr id, system id and time of creation; `None` for the owner of the parties.
    ehr: Option<[String; 3]>,
    subject: Option<(String, String)>,
    is_queryable: bool,
    is_modifiable: bool,
    in_batch: u32,
    created_after: u64,
}

struct StoredTags {
    target: String,
    ehr_id: String,
    tags: Vec<ItemTag>,
}

struct StoredDefinition {
    kind: u8,
    name: String,
    version: String,
    format: String,
    created: String,
    storing_id: String,
    summary: String,
    body: String,
}

struct StoredAccess {
    number: u64,
    /// Time, who, issuer, operation and request id.
    texts: [String; 5],
    object: Option<String>,
    ehr_id: Option<String>,
    query: Option<String>,
    status: u16,
    refused: Option<u64>,
}

codec!(StoredState {
    batch,
    ehrs,
    owners,
    documents,
    own,
    contribution_uids,
    objects,
    object_count,
    idempotency,
    tags,
    before,
    explicit,
    definitions,
    ordinal,
    revision,
    history,
    log,
    last_access
});
codec!(StoredEhr {
    ehr,
    subject,
    is_queryable,
    is_modifiable,
    in_batch,
    created_after
});
codec!(StoredTags {
    target,
    ehr_id,
    tags
});
codec!(ItemTag { key, path, value });
codec!(StoredDefinition {
    kind,
    name,
    version,
    format,
    created,
    storing_id,
    summary,
    body
});
codec!(StoredAccess {
    number,
    texts,
    object,
    ehr_id,
    query,
    status,
    refused
});

/// A checkpoint that is being written. It is void if the repository changes meanwhile.
pub struct CheckpointWork {
    batch: CheckpointWriter,
    revision: u64,
    objects: Option<Region>,
    contribution_uids: Option<Region>,
}

impl Memory {
    /// Begins a checkpoint of the present state.
    pub fn checkpoint(&self) -> CheckpointWork {
        let state = self.state.borrow();
        CheckpointWork {
            batch: CheckpointWriter::new(&state.batch),
            revision: state.revision,
            objects: None,
            contribution_uids: None,
        }
    }

    /// Returns the bytes of the file that follow those of the last call; `None` before the head.
    ///
    /// # Errors
    /// A message if the repository has changed since the checkpoint was begun, or a part of the
    /// last checkpoint cannot be read.
    pub fn checkpoint_step(&self, work: &mut CheckpointWork) -> Result<Option<Vec<u8>>, String> {
        let state = self.state.borrow();
        state.expect_revision(work.revision)?;
        if let Some(bytes) = work.batch.step(&state.batch)? {
            return Ok(Some(bytes));
        }
        let (index, region) = if work.objects.is_none() {
            let ids = |document| state.batch.object_id(document);
            let index = state.batch.stored_index(&state.objects, ids);
            (index, &mut work.objects)
        } else if work.contribution_uids.is_none() {
            let uids = |number| state.uid_of(number);
            let index = state.batch.stored_index(&state.contribution_uids, uids);
            (index, &mut work.contribution_uids)
        } else {
            return Ok(None);
        };
        let bytes = index.map_err(|why| self.failure().unwrap_or_else(|| why.to_owned()))?;
        *region = Some(work.batch.append(&bytes));
        Ok(Some(bytes))
    }

    /// Returns the head: the last bytes of the file.
    ///
    /// # Errors
    /// A message if the repository has changed, or an invariant of it is broken.
    pub fn checkpoint_head(&self, work: CheckpointWork) -> Result<Vec<u8>, String> {
        let state = self.state.borrow();
        state.expect_revision(work.revision)?;
        let (Some(objects), Some(contribution_uids)) = (work.objects, work.contribution_uids)
        else {
            return Err(String::from("the parts of the checkpoint are not complete"));
        };
        let batch = work.batch.head(&state.batch)?;
        let stored = state
            .stored(batch, [objects, contribution_uids])
            .map_err(|error| error.to_string())?;
        match self.failure() {
            Some(why) => Err(why),
            None => Ok(encode_with_checksum(MAGIC, &stored)),
        }
    }

    /// Opens the repository of a checkpoint, which records its changes. `bytes` reads the file.
    ///
    /// # Errors
    /// A message if the head is damaged, or was written by a later release.
    pub fn open(head: &[u8], bytes: Box<dyn ReadBytes>) -> Result<Memory, String> {
        let damaged =
            || String::from("the head of the checkpoint is damaged, or of a later release");
        let magic = if head.starts_with(&MAGIC_OF_TEXTS) {
            MAGIC_OF_TEXTS
        } else {
            MAGIC
        };
        let stored: StoredState = decode_with_checksum(magic, head).ok_or_else(damaged)?;
        let file = Rc::new(PartFile::new(bytes));
        let state = State::restored(stored, &file).map_err(|error| error.to_string())?;
        Ok(Memory {
            state: Rc::new(RefCell::new(state)),
            journal: Some(RefCell::new(Journal::after_checkpoint())),
        })
    }
}

impl State {
    fn expect_revision(&self, revision: u64) -> Result<(), String> {
        if self.revision == revision {
            Ok(())
        } else {
            Err(String::from(
                "the repository has changed since the checkpoint was begun",
            ))
        }
    }

    /// Returns the state as the head of a checkpoint has it. `batch` is the head of the batch; the
    /// regions are those of the two indexes in the file.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the documents of a contribution are not adjacent.
    fn stored(
        &self,
        batch: Vec<u8>,
        [objects, contribution_uids]: [Region; 2],
    ) -> Result<StoredState, StoreError> {
        let mut end = 0;
        for stored in &self.contributions {
            if stored.documents.0 != end || stored.documents.1 < end {
                return Err(broken("contributions do not follow one another"));
            }
            end = stored.documents.1;
        }
        let (log, last_access) = self.log.numbered();
        let before = (0..).zip(&self.before);
        let contributions = self.contributions.iter();
        Ok(StoredState {
            batch,
            ehrs: self.ehrs.iter().map(stored_ehr).collect(),
            owners: contributions.clone().map(|c| c.owner).collect(),
            documents: contributions
                .clone()
                .map(|c| c.documents.1 - c.documents.0)
                .collect(),
            own: (0..)
                .zip(contributions)
                .filter_map(|(number, c)| Some((number, (**c.own.as_ref()?).clone())))
                .collect(),
            contribution_uids,
            objects,
            object_count: self.before.iter().filter(|b| b.is_none()).count() as u32,
            idempotency: sorted(self.idempotency.iter(), |(uid, text)| {
                (uid.clone(), text.clone())
            }),
            tags: sorted(self.tags.iter(), |(target, (ehr_id, tags))| {
                stored_tags(target, ehr_id, tags)
            }),
            before: before.filter_map(|(d, b)| Some((d, (*b)?))).collect(),
            explicit: sorted(self.explicit.iter(), |(document, version)| {
                (*document, version.clone())
            }),
            definitions: sorted(self.definitions.iter(), |((kind, ..), definition)| {
                stored_definition(*kind, definition)
            }),
            ordinal: self.ordinal,
            revision: self.revision,
            history: self.history.clone(),
            log: log.into_iter().map(stored_access).collect(),
            last_access,
        })
    }

    /// Returns the state of a checkpoint. Parts of the batch are read from the file at their first
    /// use.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the parts of the head contradict each other.
    fn restored(stored: StoredState, file: &Rc<PartFile>) -> Result<State, StoreError> {
        let batch =
            Batch::open(&stored.batch, file).map_err(|why| StoreError::Failed(why.to_owned()))?;
        let mut before = vec![None; batch.len()];
        for (document, preceding) in stored.before {
            let place = before
                .get_mut(document as usize)
                .filter(|_| preceding < document);
            *place.ok_or_else(|| broken("a version follows one that is not before it"))? =
                Some(preceding);
        }
        let contributions = contributions(&stored.owners, &stored.documents, stored.own);
        let contributions = contributions
            .filter(|all| all.last().map_or(0, |c| c.documents.1) as usize == batch.len())
            .ok_or_else(|| broken("contributions do not have all documents"))?;
        let count = contributions.len() as u32;
        let log = stored.log.into_iter().map(StoredAccess::record).collect();
        let mut state = State {
            contributions,
            contribution_uids: TextIndex::stored(file, stored.contribution_uids, count),
            objects: TextIndex::stored(file, stored.objects, stored.object_count),
            idempotency: stored.idempotency.into_iter().collect(),
            tags: stored.tags.into_iter().map(StoredTags::entry).collect(),
            before,
            explicit: stored.explicit.into_iter().collect(),
            batch,
            ordinal: stored.ordinal,
            revision: stored.revision,
            history: stored.history,
            log: MemoryLog::of((log, stored.last_access)),
            ..State::default()
        };
        for definition in stored.definitions {
            let (kind, definition) = definition
                .definition()
                .ok_or_else(|| broken("there is no such kind of definition"))?;
            let key = (kind, definition.name.clone(), definition.version.clone());
            state.definitions.insert(key, definition);
        }
        state.restore_ehrs(stored.ehrs);
        Ok(state)
    }

    fn restore_ehrs(&mut self, ehrs: Vec<StoredEhr>) {
        self.ehr_ids.reserve(ehrs.len());
        for (index, stored) in ehrs.into_iter().enumerate() {
            let subject = stored.subject;
            let id = stored.ehr.as_ref().map(|[id, ..]| id.clone());
            // The owner of the parties has an empty id.
            self.ehr_ids.insert(id.unwrap_or_default(), index);
            self.subjects
                .extend(subject.clone().map(|subject| (subject, index)));
            self.ehrs.push(EhrEntry {
                ehr: stored.ehr.map(|[ehr_id, system_id, time_created]| Ehr {
                    ehr_id,
                    system_id,
                    time_created,
                    subject,
                    is_queryable: stored.is_queryable,
                    is_modifiable: stored.is_modifiable,
                }),
                in_batch: stored.in_batch,
                created_after: stored.created_after,
            });
        }
    }
}

/// Returns entries of a map in the order of what is made of them, so that equal states have equal
/// checkpoints.
fn sorted<K, T: SortKey>(entries: impl Iterator<Item = K>, make: impl Fn(K) -> T) -> Vec<T> {
    let mut made: Vec<T> = entries.map(make).collect();
    order::sort_by(&mut made, |a, b| a.key().cmp(&b.key()));
    made
}

/// A stored entry of a map, with the key by which it is sorted.
trait SortKey {
    fn key(&self) -> (u64, &str, &str);
}

impl SortKey for (String, String) {
    fn key(&self) -> (u64, &str, &str) {
        (0, &self.0, "")
    }
}

impl SortKey for (u32, ExplicitVersion) {
    fn key(&self) -> (u64, &str, &str) {
        (self.0.into(), "", "")
    }
}

impl SortKey for StoredTags {
    fn key(&self) -> (u64, &str, &str) {
        (0, &self.target, "")
    }
}

impl SortKey for StoredDefinition {
    fn key(&self) -> (u64, &str, &str) {
        (self.kind.into(), &self.name, &self.version)
    }
}

/// Returns contributions whose documents follow one another.
fn contributions(
    owners: &[u32],
    documents: &[u32],
    own: Vec<(u32, (String, String))>,
) -> Option<Vec<StoredContribution>> {
    if owners.len() != documents.len() {
        return None;
    }
    let mut end = 0u32;
    let mut all = Vec::with_capacity(owners.len());
    for (owner, documents) in owners.iter().zip(documents) {
        let first = end;
        end = end.checked_add(*documents)?;
        all.push(StoredContribution {
            owner: *owner,
            documents: (first, end),
            own: None,
        });
    }
    for (number, own) in own {
        all.get_mut(number as usize)?.own = Some(Box::new(own));
    }
    Some(all)
}

fn stored_ehr(entry: &EhrEntry) -> StoredEhr {
    let ehr = entry.ehr.as_ref();
    StoredEhr {
        ehr: ehr.map(|e| [&e.ehr_id, &e.system_id, &e.time_created].map(String::clone)),
        subject: ehr.and_then(|e| e.subject.clone()),
        is_queryable: ehr.is_some_and(|e| e.is_queryable),
        is_modifiable: ehr.is_some_and(|e| e.is_modifiable),
        in_batch: entry.in_batch,
        created_after: entry.created_after,
    }
}

fn stored_tags(target: &str, ehr_id: &str, tags: &[ItemTag]) -> StoredTags {
    StoredTags {
        target: target.to_owned(),
        ehr_id: ehr_id.to_owned(),
        tags: tags.to_vec(),
    }
}

impl StoredTags {
    fn entry(self) -> (String, (String, Vec<ItemTag>)) {
        (self.target, (self.ehr_id, self.tags))
    }
}

fn stored_definition(kind: DefinitionKind, d: &Definition) -> StoredDefinition {
    StoredDefinition {
        kind: kind.number() as u8,
        name: d.name.clone(),
        version: d.version.clone(),
        format: d.format.clone(),
        created: d.created.clone(),
        storing_id: d.storing_id.clone(),
        summary: d.summary.clone(),
        body: d.body.clone(),
    }
}

impl StoredDefinition {
    fn definition(self) -> Option<(DefinitionKind, Definition)> {
        let definition = Definition {
            name: self.name,
            version: self.version,
            format: self.format,
            created: self.created,
            storing_id: self.storing_id,
            summary: self.summary,
            bytes: self.body.len(),
            body: self.body,
        };
        Some((DefinitionKind::of_number(self.kind.into())?, definition))
    }
}

fn stored_access((number, access): (u64, AccessRecord)) -> StoredAccess {
    let AccessRecord {
        time,
        who,
        issuer,
        operation,
        object,
        ehr_id,
        query,
        status,
        request_id,
        refused,
    } = access;
    StoredAccess {
        number,
        texts: [time, who, issuer, operation, request_id],
        object,
        ehr_id,
        query,
        status,
        refused,
    }
}

impl StoredAccess {
    fn record(self) -> (u64, AccessRecord) {
        let [time, who, issuer, operation, request_id] = self.texts;
        let record = AccessRecord {
            time,
            who,
            issuer,
            operation,
            object: self.object,
            ehr_id: self.ehr_id,
            query: self.query,
            status: self.status,
            request_id,
            refused: self.refused,
        };
        (self.number, record)
    }
}
