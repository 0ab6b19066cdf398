//! The repository in memory: the browser's, the tests', and the one to measure others against.

use super::by_name;
use super::conflict::{self, Head};
use super::journal::{Change, Journal};
use super::log::MemoryLog;
use super::past::Past;
use super::repository::{
    Access, AccessFilter, Commit, Contribution, Definition, DefinitionKind, Ehr, EhrFlags, Grounds, ItemTag, Repository, Sink, StoreError, TagList,
    Version, Which, send_at_once, state_to_read,
};
use super::scan::{Scan, Snapshot};
use super::statement;
use crate::document::{Batch, Doc, DocRow, DocState, EhrRow, ObjectKind};
use crate::order;
use crate::rm::class::Attr;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Ready, ready};
use std::hash::BuildHasher;

/// EHRs, versions and definitions in memory: every document is held once, in the columns of one standing batch.
#[derive(Default)]
pub struct Memory {
    state: RefCell<State>,
    /// Where changes are written down, for hosts that keep them.
    journal: Option<RefCell<Journal>>,
}

#[derive(Default)]
struct State {
    /// By creation order.
    ehrs: Vec<Record>,
    ehr_ids: HashMap<String, usize>,
    subjects: HashMap<(String, String), usize>,
    /// In commit order.
    contributions: Vec<Stated>,
    contribution_uids: Index,
    /// [`Commit::idempotency`] by the uid of the contribution.
    idempotency: HashMap<String, String>,
    /// By target.
    tags: HashMap<String, (String, Vec<ItemTag>)>,
    /// The newest version of each object.
    objects: Index,
    /// For each document the version before it.
    before: Vec<Option<u32>>,
    /// Versions that say beside their document what it does not tell.
    odd: HashMap<u32, Version>,
    definitions: HashMap<(DefinitionKind, String, String), Definition>,
    batch: Batch,
    ordinal: u64,
    revision: u64,
    past: Past,
    log: MemoryLog,
}

/// An EHR, and its number in the batch. Demographic parties belong to one without `ehr`.
struct Record {
    ehr: Option<Ehr>,
    in_batch: u32,
    /// The number of the newest version when it was made.
    behind: u64,
}

/// A contribution.
struct Stated {
    /// The number of its EHR in the batch.
    owner: u32,
    /// The numbers of its versions.
    documents: (u32, u32),
    /// Its uid and its document, where its versions do not tell them.
    own: Option<Box<(String, String)>>,
}

impl Stated {
    fn uid<'a>(&'a self, batch: &'a Batch) -> &'a str {
        match &self.own {
            Some(own) => &own.0,
            None => batch.doc(self.documents.0).and_then(|doc| batch.text_along(doc.version, CONTRIBUTION)).unwrap_or_default(),
        }
    }

    fn document(&self, batch: &Batch) -> String {
        self.own.as_ref().map_or_else(|| self.told(batch).unwrap_or_default(), |own| own.1.clone())
    }

    /// The document of a contribution that has the audit of its first version.
    fn told(&self, batch: &Batch) -> Option<String> {
        let first = batch.doc(self.documents.0)?.version;
        let mut audit = String::new();
        batch.write_json(first, batch.table(first.table)?.shape().child(0, Attr::COMMIT_AUDIT)?, &mut audit);
        let class = |doc: Doc| doc.data.and_then(|data| batch.table(data.table)).map_or(doc.row.kind.class(), |table| table.shape().class()).name();
        let version = |doc: Doc| Some((batch.text_along(doc.version, UID)?, class(doc)));
        let versions: Option<Vec<_>> = (self.documents.0..self.documents.1).map(|document| batch.doc(document).and_then(version)).collect();
        Some(statement::contribution(batch.text_along(first, CONTRIBUTION)?, &versions?, &audit))
    }
}

const UID: &[Attr] = &[Attr::UID, Attr::VALUE];
const PRECEDING: &[Attr] = &[Attr::PRECEDING_VERSION_UID, Attr::VALUE];
const CONTRIBUTION: &[Attr] = &[Attr::CONTRIBUTION, Attr::ID, Attr::VALUE];
const TIME: &[Attr] = &[Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE];
const LIFECYCLE: &[Attr] = &[Attr::LIFECYCLE_STATE, Attr::DEFINING_CODE, Attr::CODE_STRING];

/// Numbers found by a text that they stand for.
#[derive(Default)]
struct Index {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Index {
    fn find<'t>(&self, text: &str, text_of: impl Fn(u32) -> &'t str) -> Option<u32> {
        self.numbers.find(self.hasher.hash_one(text), |number| text_of(*number) == text).copied()
    }

    /// Puts a number in place of the one with the same text, which it gives back.
    fn put<'t>(&mut self, number: u32, text_of: impl Fn(u32) -> &'t str) -> Option<u32> {
        let text = text_of(number);
        let hash = self.hasher.hash_one(text);
        if let Some(known) = self.numbers.find_mut(hash, |other| text_of(*other) == text) {
            return Some(std::mem::replace(known, number));
        }
        self.numbers.insert_unique(hash, number, |other| self.hasher.hash_one(text_of(*other)));
        None
    }
}

impl Memory {
    /// An empty repository.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// An empty repository that writes down what changes, so that a host can keep it.
    pub fn journaled() -> Memory {
        Memory { journal: Some(RefCell::default()), ..Memory::default() }
    }

    /// What was done since the last time, as one line of text with its end; nothing when nothing was done.
    pub fn written(&self) -> Option<String> {
        self.journal.as_ref()?.borrow_mut().take()
    }

    /// Does again what lines of [`Memory::written`] say. All lines since the first must come in their order.
    ///
    /// # Errors
    /// A sentence when a line is broken or does not fit what is here; the repository is of no use then.
    pub fn repeat(&self, lines: &str) -> Result<(), String> {
        let journal = self.journal.as_ref().ok_or("this repository has no journal")?;
        for record in super::journal::records(lines) {
            let change = journal.borrow_mut().read(record)?;
            change.map_or(Ok(()), |change| self.check_and_apply(change))?;
        }
        Ok(())
    }

    fn check_and_apply(&self, change: Change) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        if let Change::Commit(commit) = &change {
            // An earlier release may have written what is refused today: it is read as it is.
            state.check_place(commit).map_err(|why| format!("the journal does not fit: {why}"))?;
        }
        state.apply(change);
        Ok(())
    }

    /// Checks a commit and does it.
    fn take(&self, commit: Commit) -> Result<(), StoreError> {
        self.state.borrow().check(&commit)?;
        self.change(Change::Commit(Box::new(commit)));
        Ok(())
    }

    /// Writes a change down and does it.
    fn change(&self, change: Change) -> bool {
        if let Some(journal) = &self.journal {
            journal.borrow_mut().write(&change);
        }
        self.state.borrow_mut().apply(change)
    }

    /// Bytes of the standing batch, about.
    pub fn bytes(&self) -> usize {
        self.state.borrow().batch.bytes()
    }
}

impl State {
    fn names_template(&self, id: &str) -> bool {
        self.batch.docs().any(|doc| self.named_template(doc) == Some(id))
    }

    fn record(&self, ehr_id: &str) -> Option<&Record> {
        self.ehrs.get(*self.ehr_ids.get(ehr_id)?)
    }

    fn ehr(&self, ehr_id: &str) -> Option<&Ehr> {
        self.record(ehr_id)?.ehr.as_ref()
    }

    /// The newest version of an object.
    fn newest(&self, object_id: &str) -> Option<u32> {
        self.objects.find(object_id, |document| self.batch.object_id(document))
    }

    /// The versions of an object of an EHR, newest first.
    fn versions(&self, ehr_id: &str, object_id: &str) -> impl Iterator<Item = u32> {
        let is_own = |document: &u32| self.record(ehr_id).is_some_and(|r| self.batch.doc(*document).is_some_and(|doc| doc.ehr == r.in_batch));
        std::iter::successors(self.newest(object_id).filter(is_own), |document| self.before.get(*document as usize).copied().flatten())
    }

    /// The documents of an EHR in commit order.
    fn documents(&self, ehr_id: &str) -> impl Iterator<Item = Doc> {
        let documents = self.record(ehr_id).map_or(&[][..], |record| self.batch.docs_of(record.in_batch));
        documents.iter().filter_map(|number| self.batch.doc(*number))
    }

    /// The contribution with a uid.
    fn contribution(&self, uid: &str) -> Option<(usize, &Stated)> {
        let number = self.contribution_uids.find(uid, |number| self.uid_of(number))? as usize;
        Some((number, self.contributions.get(number)?))
    }

    fn uid_of(&self, contribution: u32) -> &str {
        self.contributions.get(contribution as usize).map_or("", |stated| stated.uid(&self.batch))
    }

    fn owner_id(&self, owner: u32) -> &str {
        self.batch.ehr(owner).map_or("", |ehr| &ehr.ehr_id)
    }

    /// A version with its tags and those of its object.
    fn version(&self, document: u32) -> Option<Version> {
        let version = self.odd.get(&document).cloned().or_else(|| self.told(document))?;
        let of = |target: &String| self.tags.get(target).map(|(_, tags)| TagList { target: target.clone(), tags: tags.clone() });
        let tags = [&version.object_id, &version.version_uid].into_iter().filter_map(of).collect();
        Some(Version { tags, ..version })
    }

    /// A version as its document tells it.
    fn told(&self, document: u32) -> Option<Version> {
        let doc = self.batch.doc(document)?;
        let text = |path| self.batch.text_along(doc.version, path).map(str::to_owned);
        Some(Version {
            ehr_id: self.owner_id(doc.ehr).to_owned(),
            kind: doc.row.kind,
            object_id: self.batch.object_id(document).to_owned(),
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

    /// True when [`State::told`] gives this version.
    fn tells(&self, document: u32, version: &Version) -> bool {
        let Some(doc) = self.batch.doc(document) else { return false };
        let text = |path| self.batch.text_along(doc.version, path);
        let needed =
            [(UID, &version.version_uid), (CONTRIBUTION, &version.contribution), (TIME, &version.time_committed), (LIFECYCLE, &version.lifecycle)];
        needed.into_iter().all(|(path, said)| text(path) == Some(said))
            && text(PRECEDING) == version.preceding.as_deref()
            && self.template_of(doc) == version.template_id.as_deref()
            && self.owner_id(doc.ehr) == version.ehr_id
    }

    fn template_of(&self, doc: Doc) -> Option<&str> {
        let of_composition = doc.data.filter(|_| doc.row.kind == ObjectKind::Composition);
        self.batch.text_along(of_composition?, &[Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE])
    }

    /// Checks all rules of a commit, in the order in which the database meets them.
    fn check(&self, commit: &Commit) -> Result<(), StoreError> {
        conflict::check_form(commit)?;
        self.check_owner(commit)?;
        self.check_grounds(commit)?;
        self.check_new(commit)?;
        conflict::check_kept(&commit.versions, &|object| self.head(object))?;
        conflict::check_status(&commit.versions, || self.documents(&commit.ehr_id).any(|doc| doc.row.kind == ObjectKind::EhrStatus))?;
        self.check_indexes(commit)
    }

    /// Checks that a commit of a journal fits behind those that are here, which everything read later relies on.
    fn check_place(&self, commit: &Commit) -> Result<(), StoreError> {
        self.check_owner(commit)?;
        self.check_new(commit)?;
        self.check_indexes(commit)
    }

    fn check_owner(&self, commit: &Commit) -> Result<(), StoreError> {
        if let Some(ehr) = &commit.new_ehr {
            if self.ehr(&ehr.ehr_id).is_some() {
                return Err(StoreError::EhrExists);
            }
        } else if !commit.ehr_id.is_empty() && self.ehr(&commit.ehr_id).is_none() {
            return Err(StoreError::NoSuchEhr);
        }
        Ok(())
    }

    /// Checks that what a commit opens is not there, and what it follows is the latest.
    fn check_new(&self, commit: &Commit) -> Result<(), StoreError> {
        self.check_subject(&commit.ehr_id, commit.new_ehr.as_ref().and_then(|e| e.subject.as_ref()))?;
        if self.contribution(&commit.contribution_uid).is_some() {
            return Err(StoreError::UidExists(commit.contribution_uid.clone()));
        }
        conflict::check_chain(&commit.versions, &|object| self.head(object))
    }

    /// Checks what an EHR has once: its directory and its subject.
    fn check_indexes(&self, commit: &Commit) -> Result<(), StoreError> {
        conflict::check_directory(&commit.versions, || self.directories(&commit.ehr_id))?;
        self.check_subject(&commit.ehr_id, commit.status.as_ref().and_then(|s| s.subject.as_ref()))
    }

    fn check_grounds(&self, commit: &Commit) -> Result<(), StoreError> {
        if commit.needs_modifiable() && self.ehr(&commit.ehr_id).is_some_and(|ehr| !ehr.is_modifiable) {
            return Err(StoreError::NotModifiable);
        }
        let Some(grounds) = &commit.grounds else { return Ok(()) };
        let stored = self.definitions.iter().filter(|((kind, name, _), _)| *kind == DefinitionKind::Template && *name == grounds.template);
        let is_same = Grounds::of(&grounds.template, stored.map(|(_, definition)| definition)) == *grounds;
        if is_same { Ok(()) } else { Err(StoreError::TemplateChanged) }
    }

    fn check_subject(&self, ehr_id: &str, subject: Option<&(String, String)>) -> Result<(), StoreError> {
        let owner = subject.and_then(|s| self.subjects.get(s));
        if owner.is_some_and(|owner| self.ehr_ids.get(ehr_id) != Some(owner)) {
            return Err(StoreError::SubjectExists);
        }
        Ok(())
    }

    fn head(&self, object_id: &str) -> Option<Head> {
        let newest = self.newest(object_id)?;
        let doc = self.batch.doc(newest)?;
        let uid = self.odd.get(&newest).map(|version| version.version_uid.as_str()).or_else(|| self.batch.text_along(doc.version, UID));
        let template_id = self.last_with_data(newest).map(|doc| self.named_template(doc).map(str::to_owned));
        Some(Head { ehr_id: self.owner_id(doc.ehr).to_owned(), version_uid: uid?.to_owned(), kind: doc.row.kind, template_id })
    }

    /// The last version of an object that is no deletion, from its newest version on.
    fn last_with_data(&self, newest: u32) -> Option<Doc> {
        let chain = std::iter::successors(Some(newest), |document| self.before.get(*document as usize).copied().flatten());
        chain.filter_map(|document| self.batch.doc(document)).find(|doc| !doc.row.deleted)
    }

    /// The template that a version was committed with.
    fn named_template(&self, doc: Doc) -> Option<&str> {
        match self.odd.get(&doc.document) {
            Some(version) => version.template_id.as_deref(),
            None => self.template_of(doc),
        }
    }

    /// The directories of an EHR that are not deleted.
    fn directories(&self, ehr_id: &str) -> Vec<String> {
        let lives = |doc: &Doc| doc.row.kind == ObjectKind::Folder && doc.row.latest && !doc.row.deleted;
        self.documents(ehr_id).filter(lives).map(|doc| self.batch.object_id(doc.document).to_owned()).collect()
    }

    /// False when there was nothing to do.
    fn apply(&mut self, change: Change) -> bool {
        match change {
            Change::Commit(commit) => self.commit(*commit),
            Change::Tags(ehr_id, list) => self.tag(&ehr_id, list),
            Change::RemoveObjects(ehr_id, objects) => self.remove_objects(&ehr_id, &objects),
            Change::RemoveEhr(ehr_id) => return self.remove(&ehr_id),
            Change::Idempotency(uid, text) => {
                self.idempotency.insert(uid, text);
                return true;
            }
            Change::Define(kind, definition) => {
                let definition = Definition { storing_id: (self.revision + 1).to_string(), ..definition };
                self.definitions.insert((kind, definition.name.clone(), definition.version.clone()), definition);
            }
            Change::Undefine(kind, name, version) => {
                let found = self.definitions.remove(&(kind, name, version)).is_some();
                self.revision += u64::from(found);
                return found;
            }
            Change::Note(accesses) => {
                self.log.push(accesses);
                return true;
            }
            Change::Reset => {
                self.past.remove_all();
                let (past, log) = (std::mem::take(&mut self.past), std::mem::take(&mut self.log));
                *self = State { revision: self.revision, ordinal: self.ordinal, past, log, ..State::default() };
            }
        }
        self.revision += 1;
        true
    }

    fn commit(&mut self, commit: Commit) {
        if let Some(ehr) = commit.new_ehr {
            self.create(ehr);
        }
        if let Some(flags) = commit.status {
            self.flag(&commit.ehr_id, flags);
        }
        let owner = self.owner(&commit.ehr_id);
        self.log.push(commit.access);
        self.idempotency.extend(commit.idempotency.map(|text| (commit.contribution_uid.clone(), text)));
        let first = self.batch.len() as u32;
        for mut version in commit.versions {
            std::mem::take(&mut version.tags).into_iter().for_each(|list| self.tag(&commit.ehr_id, list));
            self.ordinal += 1;
            self.store(owner, self.ordinal, version);
        }
        let told = Stated { owner, documents: (first, self.batch.len() as u32), own: None };
        let is_told = told.uid(&self.batch) == commit.contribution_uid && told.told(&self.batch).is_some_and(|told| told == commit.contribution);
        let own = (!is_told).then(|| Box::new((commit.contribution_uid, commit.contribution)));
        self.contribute(Stated { own, ..told });
    }

    fn contribute(&mut self, stated: Stated) {
        let number = self.contributions.len() as u32;
        self.contributions.push(stated);
        let mut uids = std::mem::take(&mut self.contribution_uids);
        uids.put(number, |number| self.uid_of(number));
        self.contribution_uids = uids;
    }

    /// The number in the batch of an EHR, or of the owner of the parties, which is made when it is first needed.
    fn owner(&mut self, ehr_id: &str) -> u32 {
        if let Some(record) = self.record(ehr_id) {
            return record.in_batch;
        }
        let in_batch = self.batch.add_owner();
        self.keep(ehr_id, Record { ehr: None, in_batch, behind: self.ordinal });
        in_batch
    }

    fn keep(&mut self, ehr_id: &str, record: Record) -> usize {
        self.ehr_ids.insert(ehr_id.to_owned(), self.ehrs.len());
        self.ehrs.push(record);
        self.ehrs.len() - 1
    }

    fn create(&mut self, ehr: Ehr) {
        let in_batch = self.batch.add_ehr(row_of(&ehr));
        let (id, subject) = (ehr.ehr_id.clone(), ehr.subject.clone());
        let place = self.keep(&id, Record { ehr: Some(ehr), in_batch, behind: self.ordinal });
        self.subjects.extend(subject.map(|subject| (subject, place)));
    }

    fn flag(&mut self, ehr_id: &str, flags: EhrFlags) {
        let Some(place) = self.ehr_ids.get(ehr_id).copied() else { return };
        let Some(record) = self.ehrs.get_mut(place) else { return };
        let Some(ehr) = &mut record.ehr else { return };
        if let Some(subject) = &ehr.subject {
            self.subjects.remove(subject);
        }
        if let Some(subject) = &flags.subject {
            self.subjects.insert(subject.clone(), place);
        }
        if ehr.is_queryable != flags.is_queryable {
            self.past.note_queryable(ehr_id, self.ordinal + 1, ehr.is_queryable);
        }
        (ehr.subject, ehr.is_queryable, ehr.is_modifiable) = (flags.subject, flags.is_queryable, flags.is_modifiable);
        self.batch.set_queryable(record.in_batch, flags.is_queryable);
    }

    /// The tags of a target in an EHR.
    fn tags_of(&self, ehr_id: &str, target: &str) -> &[ItemTag] {
        self.tags.get(target).filter(|(owner, _)| owner == ehr_id).map_or(&[], |(_, tags)| tags)
    }

    fn tag(&mut self, ehr_id: &str, list: TagList) {
        if list.tags.is_empty() {
            self.tags.remove(&list.target);
        } else {
            self.tags.insert(list.target, (ehr_id.to_owned(), list.tags));
        }
    }

    fn store(&mut self, owner: u32, ordinal: u64, version: Version) {
        let before = self.newest(&version.object_id);
        before.into_iter().for_each(|document| self.batch.supersede(document));
        let row = DocRow {
            kind: version.kind,
            object_id: version.object_id.clone(),
            number: version.number,
            ordinal,
            latest: true,
            deleted: version.is_deletion(),
        };
        let document = self.batch.add(owner, row, &version.packed);
        self.before.push(before);
        self.objects.put(document, |document| self.batch.object_id(document));
        if !self.tells(document, &version) {
            self.odd.insert(document, version);
        }
    }

    /// Forgets an EHR, its objects, contributions and columns.
    fn remove(&mut self, ehr_id: &str) -> bool {
        let Some(first) = self.record(ehr_id).map(|record| record.behind + 1) else { return false };
        self.past.remove_ehr(ehr_id, first);
        let Some(place) = self.ehr_ids.remove(ehr_id) else { return false };
        let record = self.ehrs.remove(place);
        self.tags.retain(|_, (owner, _)| owner != ehr_id);
        if let Some(subject) = record.ehr.and_then(|e| e.subject) {
            self.subjects.remove(&subject);
        }
        self.ehr_ids.values_mut().chain(self.subjects.values_mut()).filter(|other| **other > place).for_each(|other| *other -= 1);
        self.rebuild(&|_| true);
        self.revision += 1;
        true
    }

    /// Forgets objects, and contributions that are left without versions.
    fn remove_objects(&mut self, ehr_id: &str, objects: &[String]) {
        self.tags.retain(|target, _| {
            !objects.iter().any(|o| target.strip_prefix(o.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")))
        });
        let gone = order::distinct(objects.iter().flat_map(|object| self.versions(ehr_id, object)));
        let first = gone.iter().filter_map(|document| self.batch.doc(*document)).map(|doc| doc.row.ordinal).min();
        first.into_iter().for_each(|first| self.past.remove_objects(ehr_id, first));
        self.rebuild(&|document| gone.binary_search(&document).is_err());
    }

    /// Makes the standing batch anew of the versions that are kept, so that nothing of a removed one stays in its columns.
    fn rebuild(&mut self, kept: &dyn Fn(u32) -> bool) {
        let old = std::mem::take(&mut self.batch);
        let contributions = std::mem::take(&mut self.contributions);
        let mut odd = std::mem::take(&mut self.odd);
        (self.contribution_uids, self.objects, self.before) = Default::default();
        let mut owners: HashMap<u32, u32> = HashMap::new();
        for record in &mut self.ehrs {
            let number = match &record.ehr {
                Some(ehr) => self.batch.add_ehr(row_of(ehr)),
                None => self.batch.add_owner(),
            };
            owners.insert(std::mem::replace(&mut record.in_batch, number), number);
        }
        for stated in contributions {
            let Some(owner) = owners.get(&stated.owner).copied() else { continue };
            let first = self.batch.len() as u32;
            for document in (stated.documents.0..stated.documents.1).filter(|document| kept(*document)) {
                self.carry(owner, document, &old, odd.remove(&document));
            }
            let documents = (first, self.batch.len() as u32);
            if documents.0 < documents.1 || stated.documents.0 == stated.documents.1 {
                let is_whole = documents.1 - documents.0 == stated.documents.1 - stated.documents.0;
                let before = || Box::new((stated.uid(&old).to_owned(), stated.document(&old)));
                let own = (stated.own.is_some() || !is_whole).then(before);
                self.contribute(Stated { owner, documents, own });
            }
        }
        let mut idempotency = std::mem::take(&mut self.idempotency);
        idempotency.retain(|uid, _| self.contribution(uid).is_some());
        self.idempotency = idempotency;
    }

    /// Takes a document over from another batch.
    fn carry(&mut self, owner: u32, document: u32, old: &Batch, odd: Option<Version>) {
        let Some((doc, packed)) = old.doc(document).and_then(|doc| Some((doc, old.packed(doc.version)?))) else { return };
        let before = self.newest(old.object_id(document));
        let DocState { kind, number, ordinal, latest, deleted } = doc.row;
        let row = DocRow { kind, object_id: old.object_id(document).to_owned(), number, ordinal, latest, deleted };
        let document = self.batch.add(owner, row, &packed);
        self.before.push(before);
        self.objects.put(document, |document| self.batch.object_id(document));
        self.odd.extend(odd.map(|odd| (document, odd)));
    }

    fn newest_state(&self, scan: &Scan) -> Snapshot {
        match scan.ehr() {
            Some(ehr_id) => Snapshot::of_ehr(self.documents(ehr_id).count() as u64, self.past.removals_of(ehr_id)),
            None => Snapshot { version: self.ordinal, ehr: 0, removals: self.past.removals(), revision: self.revision },
        }
    }

    /// The newest version of a state, where there are newer ones.
    fn earlier_version(&self, scan: &Scan, read: Snapshot) -> Option<u64> {
        let Some(ehr_id) = scan.ehr() else { return (read.version < self.ordinal).then_some(read.version) };
        let Some(nth) = usize::try_from(read.version).ok()?.checked_sub(1) else { return Some(0) };
        let mut rest = self.documents(ehr_id).skip(nth);
        let version = rest.next()?.row.ordinal;
        rest.next().map(|_| version)
    }

    /// Whether something that the snapshot of a scan shows was physically deleted.
    fn lacks_of(&self, scan: &Scan) -> bool {
        let of_one = |asked: Snapshot, ehr_id: &str| asked.version > 0 && asked.removals < self.past.removals_of(ehr_id);
        scan.snapshot.is_some_and(|asked| scan.ehr().map_or_else(|| self.past.lacks(asked, scan.ehrs.as_deref()), |ehr_id| of_one(asked, ehr_id)))
    }

    /// A batch of the versions up to one, of these EHRs or of all, in commit order.
    fn as_of(&self, version: u64, ehrs: Option<&[String]>) -> Batch {
        let mut batch = Batch::new();
        let mut owners: HashMap<u32, u32> = HashMap::new();
        for record in self.ehrs.iter().filter(|record| record.behind < version) {
            let number = match &record.ehr {
                Some(ehr) if ehrs.is_none_or(|ehrs| ehrs.contains(&ehr.ehr_id)) => {
                    let is_queryable = self.past.queryable(&ehr.ehr_id, version).unwrap_or(ehr.is_queryable);
                    batch.add_ehr(EhrRow { is_queryable, ..row_of(ehr) })
                }
                Some(_) => continue,
                None => batch.add_owner(),
            };
            owners.insert(record.in_batch, number);
        }
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        for doc in self.batch.docs().filter(|doc| doc.row.ordinal <= version) {
            let Some((owner, packed)) = owners.get(&doc.ehr).copied().zip(self.batch.packed(doc.version)) else { continue };
            let before = self.before.get(doc.document as usize).copied().flatten();
            before.and_then(|before| numbers.get(&before)).into_iter().for_each(|before| batch.supersede(*before));
            let DocState { kind, number, ordinal, deleted, .. } = doc.row;
            let row = DocRow { kind, object_id: self.batch.object_id(doc.document).to_owned(), number, ordinal, latest: true, deleted };
            numbers.insert(doc.document, batch.add(owner, row, &packed));
        }
        batch
    }

    /// A batch of one EHR with all its versions.
    fn batch_of(&self, ehr_id: &str) -> Option<Batch> {
        let mut batch = Batch::new();
        let number = batch.add_ehr(row_of(self.ehr(ehr_id)?));
        for doc in self.documents(ehr_id) {
            let DocState { kind, number: nth, ordinal, latest, deleted } = doc.row;
            let row = DocRow { kind, object_id: self.batch.object_id(doc.document).to_owned(), number: nth, ordinal, latest, deleted };
            batch.add(number, row, &self.batch.packed(doc.version)?);
        }
        Some(batch)
    }
}

fn row_of(ehr: &Ehr) -> EhrRow {
    EhrRow { ehr_id: ehr.ehr_id.clone(), system_id: ehr.system_id.clone(), time_created: ehr.time_created.clone(), is_queryable: ehr.is_queryable }
}

/// What needs no waiting, as the future that a host would wait for.
fn at_once<T>(make: impl FnOnce() -> T) -> Ready<T> {
    ready(make())
}

impl Repository for Memory {
    fn commit(&self, commit: Commit) -> impl Future<Output = Result<(), StoreError>> {
        at_once(|| self.take(commit))
    }

    fn commit_all(&self, commits: Vec<Commit>) -> impl Future<Output = Vec<Result<(), StoreError>>> {
        at_once(|| commits.into_iter().map(|commit| self.take(commit)).collect())
    }

    fn contributions(&self, ehr_id: Option<&str>, after: Option<&str>, limit: u64) -> impl Future<Output = Result<Vec<Contribution>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let behind = match after {
                // A contribution of another EHR is as unknown as one that there is not.
                Some(uid) => {
                    let known = state.contribution(uid).filter(|(_, stated)| ehr_id.is_none_or(|ehr_id| state.owner_id(stated.owner) == ehr_id));
                    known.ok_or(StoreError::NoSuchContribution)?.0 + 1
                }
                None => 0,
            };
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let stated = (0..).zip(&state.contributions).skip(behind);
            let wanted = stated.filter(|(_, c)| ehr_id.is_none_or(|ehr_id| state.owner_id(c.owner) == ehr_id)).take(limit);
            let whole = |(number, c): (u32, &Stated)| Contribution {
                ehr_id: state.owner_id(c.owner).to_owned(),
                uid: state.uid_of(number).to_owned(),
                document: c.document(&state.batch),
                versions: (c.documents.0..c.documents.1).filter_map(|document| state.version(document)).collect(),
            };
            Ok(wanted.map(whole).collect())
        })
    }

    fn set_tags(&self, ehr_id: &str, list: TagList, expected: Option<&[ItemTag]>) -> impl Future<Output = Result<(), StoreError>> {
        at_once(|| {
            if expected.is_some_and(|expected| self.state.borrow().tags_of(ehr_id, &list.target) != expected) {
                return Err(StoreError::TagsChanged);
            }
            self.change(Change::Tags(ehr_id.to_owned(), list));
            Ok(())
        })
    }

    fn tags(&self, ehr_id: &str, target: Option<&str>) -> impl Future<Output = Result<Vec<TagList>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let wanted = state.tags.iter().filter(|(t, (owner, _))| owner == ehr_id && target.is_none_or(|target| target == t.as_str()));
            let mut lists: Vec<TagList> = wanted.map(|(target, (_, tags))| TagList { target: target.clone(), tags: tags.clone() }).collect();
            order::sort_by(&mut lists, &|a, b| a.target.cmp(&b.target));
            Ok(lists)
        })
    }

    fn delete_objects(&self, ehr_id: &str, objects: &[String]) -> impl Future<Output = Result<(), StoreError>> {
        at_once(|| {
            self.change(Change::RemoveObjects(ehr_id.to_owned(), objects.to_vec()));
            Ok(())
        })
    }

    fn ehr(&self, ehr_id: &str) -> impl Future<Output = Result<Option<Ehr>, StoreError>> {
        at_once(|| Ok(self.state.borrow().ehr(ehr_id).cloned()))
    }

    fn ehrs(&self, after: Option<&str>, limit: u64) -> impl Future<Output = Result<Vec<Ehr>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let behind = match after {
                Some(id) => state.ehr_ids.get(id).ok_or(StoreError::NoSuchEhr)? + 1,
                None => 0,
            };
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Ok(state.ehrs.iter().skip(behind).filter_map(|record| record.ehr.clone()).take(limit).collect())
        })
    }

    fn ehr_by_subject(&self, id: &str, namespace: &str) -> impl Future<Output = Result<Option<Ehr>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let place = state.subjects.get(&(id.to_owned(), namespace.to_owned()));
            Ok(place.and_then(|place| state.ehrs.get(*place)).and_then(|record| record.ehr.clone()))
        })
    }

    fn version(&self, ehr_id: &str, object_id: &str, which: Which<'_>) -> impl Future<Output = Result<Option<Version>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let mut versions = state.versions(ehr_id, object_id).filter_map(|document| state.version(document));
            Ok(match which {
                Which::Latest => versions.next(),
                Which::Uid(uid) => versions.find(|v| v.version_uid == uid),
                Which::At(time) => versions.find(|v| v.time_committed.as_str() <= time),
            })
        })
    }

    fn versions(&self, ehr_id: &str, object_id: &str) -> impl Future<Output = Result<Vec<Version>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let mut versions: Vec<Version> = state.versions(ehr_id, object_id).filter_map(|document| state.version(document)).collect();
            versions.reverse();
            Ok(versions)
        })
    }

    fn objects(&self, ehr_id: &str, kind: ObjectKind, offset: u64, limit: u64) -> impl Future<Output = Result<Vec<String>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let is_first = |doc: &Doc| doc.row.kind == kind && state.before.get(doc.document as usize) == Some(&None);
            let skip = usize::try_from(offset).unwrap_or(usize::MAX);
            let take = usize::try_from(limit).unwrap_or(usize::MAX);
            let wanted = state.documents(ehr_id).filter(is_first).skip(skip).take(take);
            Ok(wanted.map(|doc| state.batch.object_id(doc.document).to_owned()).collect())
        })
    }

    fn newest_object(&self, ehr_id: &str, kind: ObjectKind) -> impl Future<Output = Result<Option<String>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let newest = state.documents(ehr_id).filter(|doc| doc.row.kind == kind).last();
            Ok(newest.map(|doc| state.batch.object_id(doc.document).to_owned()))
        })
    }

    fn idempotency(&self, ehr_id: &str, contribution_uid: &str) -> impl Future<Output = Result<Option<String>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let found = state.contribution(contribution_uid).filter(|(_, c)| state.owner_id(c.owner) == ehr_id);
            Ok(found.and_then(|_| state.idempotency.get(contribution_uid).cloned()))
        })
    }

    fn contribution(&self, ehr_id: &str, uid: &str) -> impl Future<Output = Result<Option<String>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let found = state.contribution(uid).filter(|(_, c)| state.owner_id(c.owner) == ehr_id);
            Ok(found.map(|(_, c)| c.document(&state.batch)))
        })
    }

    fn scan(&self, scan: &Scan, sink: Sink<'_>) -> impl Future<Output = Result<Snapshot, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let read = state_to_read(scan.snapshot, state.newest_state(scan), state.lacks_of(scan))?;
            if let Some(version) = state.earlier_version(scan, read) {
                send_at_once(sink, &state.as_of(version, scan.ehrs.as_deref()));
                return Ok(read);
            }
            match scan.ehrs_in(&state.batch) {
                Some(found) if found.is_empty() => true,
                // What follows from all versions of an EHR would be made for all EHRs of the standing batch.
                Some(found) if scan.whole_ehrs && scan.all_versions => {
                    let rows = found.iter().filter_map(|ehr| state.batch.ehr(*ehr));
                    rows.filter_map(|row| state.batch_of(&row.ehr_id)).all(|batch| send_at_once(sink, &batch))
                }
                _ => send_at_once(sink, &state.batch),
            };
            Ok(read)
        })
    }

    fn define(&self, kind: DefinitionKind, definition: Definition) -> impl Future<Output = Result<(), StoreError>> {
        at_once(|| {
            let key = (kind, definition.name.clone(), definition.version.clone());
            if self.state.borrow().definitions.contains_key(&key) {
                return Err(StoreError::DefinitionExists);
            }
            self.change(Change::Define(kind, definition));
            Ok(())
        })
    }

    fn definitions(&self, kind: DefinitionKind, prefix: &str) -> impl Future<Output = Result<Vec<Definition>, StoreError>> {
        at_once(|| {
            let state = self.state.borrow();
            let listed = state.definitions.iter().filter(|((k, name, _), _)| *k == kind && name.starts_with(prefix));
            let body = |d: &Definition| if kind.lists_bodies() { d.body.clone() } else { String::new() };
            let mut found: Vec<Definition> = listed.map(|(_, d)| Definition { body: body(d), ..d.clone() }).collect();
            order::sort_by(&mut found, &by_name);
            Ok(found)
        })
    }

    fn definition(&self, kind: DefinitionKind, name: &str, version: &str) -> impl Future<Output = Result<Option<Definition>, StoreError>> {
        at_once(|| Ok(self.state.borrow().definitions.get(&(kind, name.to_owned(), version.to_owned())).cloned()))
    }

    fn undefine(&self, kind: DefinitionKind, name: &str, version: &str) -> impl Future<Output = Result<bool, StoreError>> {
        at_once(|| {
            if kind == DefinitionKind::Template && self.state.borrow().names_template(name) {
                return Err(StoreError::TemplateInUse);
            }
            Ok(self.change(Change::Undefine(kind, name.to_owned(), version.to_owned())))
        })
    }

    fn delete_ehr(&self, ehr_id: &str) -> impl Future<Output = Result<bool, StoreError>> {
        at_once(|| Ok(!ehr_id.is_empty() && self.change(Change::RemoveEhr(ehr_id.to_owned()))))
    }

    fn reset(&self) -> impl Future<Output = Result<(), StoreError>> {
        at_once(|| {
            self.change(Change::Reset);
            Ok(())
        })
    }

    fn note(&self, accesses: Vec<Access>) -> impl Future<Output = Result<(), StoreError>> {
        at_once(|| {
            self.change(Change::Note(accesses));
            Ok(())
        })
    }

    fn note_refused(&self, accesses: &[Access], day: &str, most: u64) -> impl Future<Output = Result<bool, StoreError>> {
        at_once(|| {
            let has_room = self.state.borrow().log.has_room(day, most);
            Ok(has_room && self.change(Change::Note(accesses.to_vec())))
        })
    }

    fn accesses(&self, filter: &AccessFilter<'_>) -> impl Future<Output = Result<Vec<(u64, Access)>, StoreError>> {
        at_once(|| Ok(self.state.borrow().log.select(filter)))
    }

    fn revision(&self) -> impl Future<Output = Result<u64, StoreError>> {
        at_once(|| Ok(self.state.borrow().revision))
    }
}
