//! The repository in memory: the browser's, the tests', and the one to measure others against.

use super::by_name;
use super::conflict::{self, Head};
use super::journal::{Change, Journal};
use super::repository::{
    Access, AccessFilter, Commit, Contribution, Definition, DefinitionKind, Ehr, EhrFlags, ItemTag, Repository, Sink, StoreError, TagList, Version,
    Which,
};
use super::scan::Scan;
use crate::document::{Batch, DocRow, EhrRow, ObjectKind};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// EHRs, versions and definitions in memory, with one standing batch of columns for population queries.
#[derive(Default)]
pub struct Memory {
    state: RefCell<State>,
    /// Where changes are written down, for hosts that keep them.
    journal: Option<RefCell<Journal>>,
}

#[derive(Default)]
struct State {
    /// By creation order.
    ehrs: BTreeMap<u64, Record>,
    ehr_ids: HashMap<String, u64>,
    subjects: HashMap<(String, String), u64>,
    contributions: HashMap<String, Stated>,
    /// Uids of contributions in commit order.
    log: BTreeMap<u64, String>,
    /// By target.
    tags: BTreeMap<String, (String, Vec<ItemTag>)>,
    objects: HashMap<String, Object>,
    definitions: BTreeMap<(DefinitionKind, String, String), Definition>,
    batch: Batch,
    ordinal: u64,
    revision: u64,
    /// The access log; the number of a line is its place from 1.
    accesses: Vec<Access>,
}

/// An EHR with the ids of what it holds, in commit order. Demographic parties belong to one without `ehr`.
#[derive(Default)]
struct Record {
    ehr: Option<Ehr>,
    in_batch: u32,
    objects: Vec<String>,
    contributions: Vec<String>,
}

/// A contribution.
struct Stated {
    ehr_id: String,
    document: String,
    place: u64,
    /// Object ids and numbers of its versions.
    versions: Vec<(String, u32)>,
}

struct Object {
    ehr_id: String,
    versions: Vec<Stored>,
}

struct Stored {
    version: Version,
    ordinal: u64,
    in_batch: Option<u32>,
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
            state.check(commit).map_err(|why| format!("the journal does not fit: {why}"))?;
        }
        state.apply(change);
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
        self.objects.values().flat_map(|o| &o.versions).any(|v| v.version.template_id.as_deref() == Some(id))
    }

    fn record(&self, ehr_id: &str) -> Option<&Record> {
        self.ehrs.get(self.ehr_ids.get(ehr_id)?)
    }

    fn ehr(&self, ehr_id: &str) -> Option<&Ehr> {
        self.record(ehr_id)?.ehr.as_ref()
    }

    fn object(&self, ehr_id: &str, object_id: &str) -> Option<&Object> {
        self.objects.get(object_id).filter(|o| o.ehr_id == ehr_id)
    }

    fn check(&self, commit: &Commit) -> Result<(), StoreError> {
        conflict::check_form(commit)?;
        if let Some(ehr) = &commit.new_ehr {
            if self.ehr(&ehr.ehr_id).is_some() {
                return Err(StoreError::EhrExists);
            }
        } else if !commit.ehr_id.is_empty() && self.ehr(&commit.ehr_id).is_none() {
            return Err(StoreError::NoSuchEhr);
        }
        self.check_subject(&commit.ehr_id, commit.new_ehr.as_ref().and_then(|e| e.subject.as_ref()))?;
        self.check_subject(&commit.ehr_id, commit.status.as_ref().and_then(|s| s.subject.as_ref()))?;
        if self.contributions.contains_key(&commit.contribution_uid) {
            return Err(StoreError::UidExists(commit.contribution_uid.clone()));
        }
        conflict::check_chain(&commit.versions, &|object| self.head(object))?;
        conflict::check_directory(&commit.versions, || self.directories(&commit.ehr_id))
    }

    fn check_subject(&self, ehr_id: &str, subject: Option<&(String, String)>) -> Result<(), StoreError> {
        let owner = subject.and_then(|s| self.subjects.get(s));
        if owner.is_some_and(|owner| self.ehr_ids.get(ehr_id) != Some(owner)) {
            return Err(StoreError::SubjectExists);
        }
        Ok(())
    }

    fn head(&self, object_id: &str) -> Option<Head> {
        let object = self.objects.get(object_id)?;
        let latest = object.versions.last()?;
        Some(Head { ehr_id: object.ehr_id.clone(), version_uid: latest.version.version_uid.clone() })
    }

    /// The directories of an EHR that are not deleted.
    fn directories(&self, ehr_id: &str) -> Vec<String> {
        let lives = |object: &&String| {
            let latest = self.objects.get(*object).and_then(|o| o.versions.last());
            latest.is_some_and(|l| l.version.kind == ObjectKind::Folder && !l.version.is_deletion())
        };
        self.record(ehr_id).map(|r| r.objects.iter().filter(lives).cloned().collect()).unwrap_or_default()
    }

    /// False when there was nothing to do.
    fn apply(&mut self, change: Change) -> bool {
        match change {
            Change::Commit(commit) => self.commit(*commit),
            Change::Tags(ehr_id, list) => self.tag(&ehr_id, list),
            Change::RemoveObjects(ehr_id, objects) => self.remove_objects(&ehr_id, &objects),
            Change::RemoveEhr(ehr_id) => return self.remove(&ehr_id),
            Change::Define(kind, definition) => {
                self.definitions.insert((kind, definition.name.clone(), definition.version.clone()), definition);
            }
            Change::Undefine(kind, name, version) => {
                let found = self.definitions.remove(&(kind, name, version)).is_some();
                self.revision += u64::from(found);
                return found;
            }
            Change::Note(accesses) => {
                self.accesses.extend(accesses);
                return true;
            }
            Change::Reset => *self = State { revision: self.revision, accesses: std::mem::take(&mut self.accesses), ..State::default() },
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
        let key = self.key_of(&commit.ehr_id);
        self.ehrs.entry(key).or_default().contributions.push(commit.contribution_uid.clone());
        let place = self.log.last_key_value().map_or(0, |(place, _)| place + 1);
        self.log.insert(place, commit.contribution_uid.clone());
        let versions = commit.versions.iter().map(|v| (v.object_id.clone(), v.number)).collect();
        let stated = Stated { ehr_id: commit.ehr_id.clone(), document: commit.contribution, place, versions };
        self.contributions.insert(commit.contribution_uid, stated);
        self.accesses.extend(commit.access);
        for mut version in commit.versions {
            std::mem::take(&mut version.tags).into_iter().for_each(|list| self.tag(&commit.ehr_id, list));
            self.store(key, version);
        }
    }

    /// The key of an EHR's record; that of the parties is made when it is first needed.
    fn key_of(&mut self, ehr_id: &str) -> u64 {
        let next = self.ehrs.last_key_value().map_or(0, |(key, _)| key + 1);
        *self.ehr_ids.entry(ehr_id.to_owned()).or_insert(next)
    }

    fn create(&mut self, ehr: Ehr) {
        let key = self.key_of(&ehr.ehr_id);
        if let Some(subject) = &ehr.subject {
            self.subjects.insert(subject.clone(), key);
        }
        let in_batch = self.batch.add_ehr(row_of(&ehr));
        self.ehrs.insert(key, Record { ehr: Some(ehr), in_batch, ..Record::default() });
    }

    fn flag(&mut self, ehr_id: &str, flags: EhrFlags) {
        let Some(key) = self.ehr_ids.get(ehr_id).copied() else { return };
        let Some(record) = self.ehrs.get_mut(&key) else { return };
        let Some(ehr) = &mut record.ehr else { return };
        if let Some(subject) = &ehr.subject {
            self.subjects.remove(subject);
        }
        if let Some(subject) = &flags.subject {
            self.subjects.insert(subject.clone(), key);
        }
        (ehr.subject, ehr.is_queryable, ehr.is_modifiable) = (flags.subject, flags.is_queryable, flags.is_modifiable);
        self.batch.set_queryable(record.in_batch, flags.is_queryable);
    }

    fn tag(&mut self, ehr_id: &str, list: TagList) {
        if list.tags.is_empty() {
            self.tags.remove(&list.target);
        } else {
            self.tags.insert(list.target, (ehr_id.to_owned(), list.tags));
        }
    }

    /// A version with its tags and those of its object.
    fn tagged(&self, version: &Version) -> Version {
        let of = |target: &String| self.tags.get(target).map(|(_, tags)| TagList { target: target.clone(), tags: tags.clone() });
        Version { tags: [&version.object_id, &version.version_uid].into_iter().filter_map(of).collect(), ..version.clone() }
    }

    fn forget_contribution(&mut self, uid: &str) {
        if let Some(stated) = self.contributions.remove(uid) {
            self.log.remove(&stated.place);
        }
    }

    fn store(&mut self, key: u64, version: Version) {
        let Some(record) = self.ehrs.get_mut(&key) else { return };
        self.ordinal += 1;
        let stored = Stored { version, ordinal: self.ordinal, in_batch: None };
        let object_id = stored.version.object_id.clone();
        let object = self.objects.entry(object_id.clone()).or_insert_with(|| {
            record.objects.push(object_id);
            Object { ehr_id: stored.version.ehr_id.clone(), versions: Vec::new() }
        });
        if let Some(document) = object.versions.last().and_then(|v| v.in_batch) {
            self.batch.supersede(document);
        }
        let in_batch = record.ehr.is_some().then(|| stored.add_to(&mut self.batch, record.in_batch, true));
        object.versions.push(Stored { in_batch, ..stored });
    }

    /// Forgets an EHR, its objects, contributions and columns.
    fn remove(&mut self, ehr_id: &str) -> bool {
        let Some(record) = self.ehr_ids.remove(ehr_id).and_then(|key| self.ehrs.remove(&key)) else { return false };
        for object in &record.objects {
            self.objects.remove(object);
        }
        for contribution in &record.contributions {
            self.forget_contribution(contribution);
        }
        self.tags.retain(|_, (owner, _)| owner != ehr_id);
        if let Some(subject) = record.ehr.and_then(|e| e.subject) {
            self.subjects.remove(&subject);
        }
        self.rebuild();
        self.revision += 1;
        true
    }

    /// Forgets objects, and contributions that are left without versions.
    fn remove_objects(&mut self, ehr_id: &str, objects: &[String]) {
        let Some(record) = self.ehr_ids.get(ehr_id).and_then(|key| self.ehrs.get_mut(key)) else { return };
        record.objects.retain(|object| !objects.contains(object));
        let contributions = &self.contributions;
        let left = |uid: &String| contributions.get(uid).is_some_and(|c| c.versions.iter().any(|(object, _)| record.objects.contains(object)));
        let (kept, gone): (Vec<String>, Vec<String>) = std::mem::take(&mut record.contributions).into_iter().partition(left);
        record.contributions = kept;
        for object in objects {
            self.objects.remove(object);
        }
        self.tags.retain(|target, _| {
            !objects.iter().any(|o| target.strip_prefix(o.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")))
        });
        gone.iter().for_each(|uid| self.forget_contribution(uid));
        self.rebuild();
    }

    /// Makes the standing batch anew, so that nothing of a removed EHR stays in its columns.
    fn rebuild(&mut self) {
        let mut batch = Batch::new();
        let mut order: Vec<(u64, u32, String, usize)> = Vec::new();
        for record in self.ehrs.values_mut() {
            let Some(ehr) = &record.ehr else { continue };
            record.in_batch = batch.add_ehr(row_of(ehr));
            for id in &record.objects {
                let versions = self.objects.get(id).map(|o| o.versions.as_slice()).unwrap_or_default();
                order.extend(versions.iter().enumerate().map(|(i, stored)| (stored.ordinal, record.in_batch, id.clone(), i)));
            }
        }
        order.sort_unstable();
        for (_, ehr, object, index) in order {
            let Some(object) = self.objects.get_mut(&object) else { continue };
            let latest = index + 1 == object.versions.len();
            if let Some(stored) = object.versions.get_mut(index) {
                stored.in_batch = Some(stored.add_to(&mut batch, ehr, latest));
            }
        }
        self.batch = batch;
    }

    /// A batch of one EHR with what a scan asks for of it.
    fn batch_of(&self, ehr_id: &str, scan: &Scan) -> Option<Batch> {
        let record = self.record(ehr_id)?;
        let ehr = record.ehr.as_ref().filter(|e| e.is_queryable || scan.unqueryable)?;
        let mut batch = Batch::new();
        let number = batch.add_ehr(row_of(ehr));
        let objects = record.objects.iter().filter_map(|id| self.objects.get(id));
        let mut wanted: Vec<(&Stored, bool)> = objects
            .flat_map(|object| object.versions.iter().enumerate().map(|(i, stored)| (stored, i + 1 == object.versions.len())))
            .filter(|(stored, latest)| stored.wanted(scan, *latest))
            .collect();
        wanted.sort_unstable_by_key(|(stored, _)| stored.ordinal);
        for (stored, latest) in wanted {
            stored.add_to(&mut batch, number, latest);
        }
        Some(batch)
    }
}

impl Stored {
    fn add_to(&self, batch: &mut Batch, ehr: u32, latest: bool) -> u32 {
        let version = &self.version;
        let row = DocRow {
            kind: version.kind,
            object_id: version.object_id.clone(),
            number: version.number,
            ordinal: self.ordinal,
            latest,
            deleted: version.is_deletion(),
        };
        batch.add(ehr, row, &version.packed)
    }

    fn wanted(&self, scan: &Scan, latest: bool) -> bool {
        let version = &self.version;
        scan.kinds.contains(&version.kind) && (scan.all_versions || (latest && !version.is_deletion()))
    }
}

fn row_of(ehr: &Ehr) -> EhrRow {
    EhrRow { ehr_id: ehr.ehr_id.clone(), system_id: ehr.system_id.clone(), time_created: ehr.time_created.clone(), is_queryable: ehr.is_queryable }
}

impl Repository for Memory {
    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.state.borrow().check(&commit)?;
        self.change(Change::Commit(Box::new(commit)));
        Ok(())
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Vec<Result<(), StoreError>> {
        let mut outcomes = Vec::new();
        for commit in commits {
            outcomes.push(self.commit(commit).await);
        }
        outcomes
    }

    async fn contributions(&self, ehr_id: Option<&str>, after: Option<&str>, limit: u64) -> Result<Vec<Contribution>, StoreError> {
        let state = self.state.borrow();
        let behind = match after {
            Some(uid) => state.contributions.get(uid).ok_or(StoreError::NoSuchContribution)?.place + 1,
            None => 0,
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let version = |(object, number): &(String, u32)| {
            let stored = state.objects.get(object)?.versions.iter().find(|s| s.version.number == *number)?;
            Some(state.tagged(&stored.version))
        };
        let stated = state.log.range(behind..).filter_map(|(_, uid)| Some((uid, state.contributions.get(uid)?)));
        let wanted = stated.filter(|(_, c)| ehr_id.is_none_or(|ehr_id| c.ehr_id == ehr_id)).take(limit);
        let whole = |(uid, c): (&String, &Stated)| Contribution {
            ehr_id: c.ehr_id.clone(),
            uid: uid.clone(),
            document: c.document.clone(),
            versions: c.versions.iter().filter_map(version).collect(),
        };
        Ok(wanted.map(whole).collect())
    }

    async fn set_tags(&self, ehr_id: &str, list: TagList) -> Result<(), StoreError> {
        self.change(Change::Tags(ehr_id.to_owned(), list));
        Ok(())
    }

    async fn tags(&self, ehr_id: &str, target: Option<&str>) -> Result<Vec<TagList>, StoreError> {
        let state = self.state.borrow();
        let wanted = state.tags.iter().filter(|(t, (owner, _))| owner == ehr_id && target.is_none_or(|target| target == t.as_str()));
        Ok(wanted.map(|(target, (_, tags))| TagList { target: target.clone(), tags: tags.clone() }).collect())
    }

    async fn delete_objects(&self, ehr_id: &str, objects: &[String]) -> Result<(), StoreError> {
        self.change(Change::RemoveObjects(ehr_id.to_owned(), objects.to_vec()));
        Ok(())
    }

    async fn ehr(&self, ehr_id: &str) -> Result<Option<Ehr>, StoreError> {
        Ok(self.state.borrow().ehr(ehr_id).cloned())
    }

    async fn ehr_by_subject(&self, id: &str, namespace: &str) -> Result<Option<Ehr>, StoreError> {
        let state = self.state.borrow();
        let key = state.subjects.get(&(id.to_owned(), namespace.to_owned()));
        Ok(key.and_then(|key| state.ehrs.get(key)).and_then(|record| record.ehr.clone()))
    }

    async fn version(&self, ehr_id: &str, object_id: &str, which: Which<'_>) -> Result<Option<Version>, StoreError> {
        let state = self.state.borrow();
        let Some(object) = state.object(ehr_id, object_id) else { return Ok(None) };
        let mut versions = object.versions.iter().map(|stored| &stored.version).rev();
        let found = match which {
            Which::Latest => versions.next(),
            Which::Uid(uid) => versions.find(|v| v.version_uid == uid),
            Which::At(time) => versions.find(|v| v.time_committed.as_str() <= time),
        };
        Ok(found.map(|version| state.tagged(version)))
    }

    async fn versions(&self, ehr_id: &str, object_id: &str) -> Result<Vec<Version>, StoreError> {
        let state = self.state.borrow();
        Ok(state.object(ehr_id, object_id).map(|o| o.versions.iter().map(|s| state.tagged(&s.version)).collect()).unwrap_or_default())
    }

    async fn objects(&self, ehr_id: &str, kind: ObjectKind, offset: u64, limit: u64) -> Result<Vec<String>, StoreError> {
        let state = self.state.borrow();
        let Some(record) = state.record(ehr_id) else { return Ok(Vec::new()) };
        let is_kind = |id: &&String| state.objects.get(*id).and_then(|o| o.versions.first()).is_some_and(|v| v.version.kind == kind);
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let take = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(record.objects.iter().filter(is_kind).skip(skip).take(take).cloned().collect())
    }

    async fn contribution(&self, ehr_id: &str, uid: &str) -> Result<Option<String>, StoreError> {
        let state = self.state.borrow();
        Ok(state.contributions.get(uid).filter(|c| c.ehr_id == ehr_id).map(|c| c.document.clone()))
    }

    async fn scan(&self, scan: &Scan, sink: Sink<'_>) -> Result<u64, StoreError> {
        let state = self.state.borrow();
        match &scan.ehr {
            None => sink(&state.batch),
            Some(ehr_id) => state.batch_of(ehr_id, scan).is_none_or(|batch| sink(&batch)),
        };
        Ok(state.revision)
    }

    async fn define(&self, kind: DefinitionKind, definition: Definition) -> Result<(), StoreError> {
        let key = (kind, definition.name.clone(), definition.version.clone());
        if self.state.borrow().definitions.contains_key(&key) {
            return Err(StoreError::DefinitionExists);
        }
        self.change(Change::Define(kind, definition));
        Ok(())
    }

    async fn definitions(&self, kind: DefinitionKind, prefix: &str) -> Result<Vec<Definition>, StoreError> {
        let state = self.state.borrow();
        let listed = state.definitions.iter().filter(|((k, name, _), _)| *k == kind && name.starts_with(prefix));
        let mut found: Vec<Definition> = listed.map(|(_, d)| Definition { body: String::new(), ..d.clone() }).collect();
        found.sort_by(by_name);
        Ok(found)
    }

    async fn definition(&self, kind: DefinitionKind, name: &str, version: &str) -> Result<Option<Definition>, StoreError> {
        Ok(self.state.borrow().definitions.get(&(kind, name.to_owned(), version.to_owned())).cloned())
    }

    async fn undefine(&self, kind: DefinitionKind, name: &str, version: &str) -> Result<bool, StoreError> {
        if kind == DefinitionKind::Template && self.state.borrow().names_template(name) {
            return Err(StoreError::TemplateInUse);
        }
        Ok(self.change(Change::Undefine(kind, name.to_owned(), version.to_owned())))
    }

    async fn delete_ehr(&self, ehr_id: &str) -> Result<bool, StoreError> {
        Ok(!ehr_id.is_empty() && self.change(Change::RemoveEhr(ehr_id.to_owned())))
    }

    async fn reset(&self) -> Result<(), StoreError> {
        self.change(Change::Reset);
        Ok(())
    }

    async fn note(&self, accesses: Vec<Access>) -> Result<(), StoreError> {
        self.change(Change::Note(accesses));
        Ok(())
    }

    async fn accesses(&self, filter: &AccessFilter<'_>) -> Result<Vec<(u64, Access)>, StoreError> {
        let state = self.state.borrow();
        let wanted = |(number, access): &(u64, &Access)| {
            *number > filter.after
                && filter.from.is_none_or(|from| access.time.as_str() >= from)
                && filter.to.is_none_or(|to| access.time.as_str() < to)
                && filter.ehr_id.is_none_or(|id| access.ehr_id.as_deref() == Some(id))
                && filter.who.is_none_or(|who| access.who == who)
        };
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        Ok((1..).zip(&state.accesses).filter(wanted).take(limit).map(|(number, access)| (number, access.clone())).collect())
    }

    async fn revision(&self) -> Result<u64, StoreError> {
        Ok(self.state.borrow().revision)
    }
}
