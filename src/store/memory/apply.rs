//! Application of changes to the state.

use super::index::StoredContribution;
use super::{EhrEntry, ExplicitVersion, State, broken, missing_document, row_in, row_of};
use crate::document::{Batch, DocRow};
use crate::store::journal::Change;
use crate::store::repository::{
    Commit, Definition, DefinitionKind, Ehr, EhrFlags, StoreError, TagList, Version,
};
use aqlite_rm::order;
use std::collections::HashMap;

impl State {
    /// Applies a change. Returns whether it changed anything.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if an invariant of the state is broken. The state must not be used
    /// after that.
    pub(super) fn apply(&mut self, change: Change) -> Result<bool, StoreError> {
        match change {
            Change::Commit(commit) => self.commit(*commit)?,
            Change::Tags(ehr_id, list) => self.tag(&ehr_id, list),
            Change::RemoveObjects(ehr_id, objects) => self.remove_objects(&ehr_id, &objects)?,
            Change::RemoveEhr(ehr_id) => return self.remove(&ehr_id),
            Change::Idempotency(uid, text) => {
                self.idempotency.insert(uid, text);
                return Ok(true);
            }
            Change::Define(kind, definition) => {
                self.define(kind, definition);
            }
            Change::Undefine(kind, name, version) => {
                let found = self.definitions.remove(&(kind, name, version)).is_some();
                self.revision += u64::from(found);
                return Ok(found);
            }
            Change::Accesses(accesses) => {
                self.log.push(accesses);
                return Ok(true);
            }
            Change::Reset => {
                self.reset();
            }
        }
        self.revision += 1;
        Ok(true)
    }

    fn define(&mut self, kind: DefinitionKind, definition: Definition) {
        let definition = Definition {
            // The revision never repeats, so neither does the id of a storing.
            storing_id: (self.revision + 1).to_string(),
            bytes: definition.body.len(),
            ..definition
        };
        self.definitions.insert(
            (kind, definition.name.clone(), definition.version.clone()),
            definition,
        );
    }

    /// Removes all data. The access log is not part of them.
    fn reset(&mut self) {
        self.history.remove_all();
        let (history, log) = (
            std::mem::take(&mut self.history),
            std::mem::take(&mut self.log),
        );
        *self = State {
            // Revision and ordinals continue, so that old snapshots never match a new state.
            revision: self.revision,
            ordinal: self.ordinal,
            history,
            log,
            ..State::default()
        };
    }

    /// Applies a change set that was checked.
    fn commit(&mut self, commit: Commit) -> Result<(), StoreError> {
        if let Some(ehr) = commit.new_ehr {
            self.create(ehr);
        }
        if let Some(flags) = commit.status {
            // Before the versions are stored, because `flag` takes the next ordinal as that of the
            // first version with the new flags.
            self.flag(&commit.ehr_id, flags)?;
        }
        let owner = self.owner(&commit.ehr_id);
        self.log.push(commit.access);
        self.idempotency.extend(
            commit
                .idempotency
                .map(|text| (commit.contribution_uid.clone(), text)),
        );
        let first = self.batch.len() as u32;
        for mut version in commit.versions {
            std::mem::take(&mut version.tags)
                .into_iter()
                .for_each(|list| self.tag(&commit.ehr_id, list));
            self.ordinal += 1;
            self.store(owner, self.ordinal, version);
        }
        let contribution = StoredContribution {
            owner,
            documents: (first, self.batch.len() as u32),
            own: None,
        };
        // Most contributions follow from their versions. Only others need a text of their own.
        let is_derived = contribution.uid(&self.batch) == Some(&commit.contribution_uid)
            && contribution
                .derived_document(&self.batch)
                .is_some_and(|contribution| contribution == commit.contribution);
        let own = (!is_derived).then(|| Box::new((commit.contribution_uid, commit.contribution)));
        self.contribute(StoredContribution {
            own,
            ..contribution
        });
        Ok(())
    }

    /// Adds a contribution and its uid to the index.
    fn contribute(&mut self, stored: StoredContribution) {
        let number = self.contributions.len() as u32;
        self.contributions.push(stored);
        // Taken out of the state, because the index calls a method of the state for the text of a
        // number.
        let mut uids = std::mem::take(&mut self.contribution_uids);
        uids.put(number, |number| self.uid_of(number));
        self.contribution_uids = uids;
    }

    /// Returns the number of an EHR in the batch, or of the owner of the parties, which is created
    /// on first use.
    fn owner(&mut self, ehr_id: &str) -> u32 {
        if let Some(record) = self.record(ehr_id) {
            return record.in_batch;
        }
        let in_batch = self.batch.add_owner();
        self.keep(
            ehr_id,
            EhrEntry {
                ehr: None,
                in_batch,
                created_after: self.ordinal,
            },
        );
        in_batch
    }

    fn keep(&mut self, ehr_id: &str, record: EhrEntry) -> usize {
        self.ehr_ids.insert(ehr_id.to_owned(), self.ehrs.len());
        self.ehrs.push(record);
        self.ehrs.len() - 1
    }

    /// Adds an EHR to the batch and the indexes.
    fn create(&mut self, ehr: Ehr) {
        let in_batch = self.batch.add_ehr(row_of(&ehr));
        let (id, subject) = (ehr.ehr_id.clone(), ehr.subject.clone());
        let index = self.keep(
            &id,
            EhrEntry {
                ehr: Some(ehr),
                in_batch,
                created_after: self.ordinal,
            },
        );
        self.subjects
            .extend(subject.map(|subject| (subject, index)));
    }

    /// Sets the flags and the subject of an EHR. Called before the versions of the commit are
    /// stored.
    fn flag(&mut self, ehr_id: &str, flags: EhrFlags) -> Result<(), StoreError> {
        let index = self.ehr_ids.get(ehr_id).copied();
        let record = index.and_then(|index| Some((index, self.ehrs.get_mut(index)?)));
        let (index, record) = record.ok_or_else(|| broken("a status has no EHR"))?;
        let Some(ehr) = &mut record.ehr else {
            return Err(broken("the owner of the parties has no status"));
        };
        if let Some(subject) = &ehr.subject {
            self.subjects.remove(subject);
        }
        if let Some(subject) = &flags.subject {
            self.subjects.insert(subject.clone(), index);
        }
        if ehr.is_queryable != flags.is_queryable {
            self.history
                // The old value was valid before the first version of this commit, which has the
                // next ordinal.
                .record_queryable(ehr_id, self.ordinal + 1, ehr.is_queryable);
        }
        (ehr.subject, ehr.is_queryable, ehr.is_modifiable) =
            (flags.subject, flags.is_queryable, flags.is_modifiable);
        self.batch
            .set_queryable(record.in_batch, flags.is_queryable);
        Ok(())
    }

    fn tag(&mut self, ehr_id: &str, list: TagList) {
        if list.tags.is_empty() {
            self.tags.remove(&list.target);
        } else {
            self.tags
                .insert(list.target, (ehr_id.to_owned(), list.tags));
        }
    }

    /// Adds a version to the batch and the indexes. `ordinal` is its position among all versions.
    fn store(&mut self, owner: u32, ordinal: u64, version: Version) {
        let before = self.newest(&version.object_id);
        before
            .into_iter()
            .for_each(|document| self.batch.supersede(document));
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
        self.objects
            .put(document, |document| self.batch.object_id(document));
        if !self.is_derivable(document, &version) {
            let explicit = ExplicitVersion {
                ehr_id: version.ehr_id,
                version_uid: version.version_uid,
                preceding: version.preceding,
                contribution: version.contribution,
                time_committed: version.time_committed,
                lifecycle: version.lifecycle,
                template_id: version.template_id,
            };
            self.explicit.insert(document, explicit);
        }
    }

    /// Removes an EHR with its objects, contributions and columns. Returns whether it existed.
    fn remove(&mut self, ehr_id: &str) -> Result<bool, StoreError> {
        let Some(index) = self.ehr_ids.remove(ehr_id) else {
            return Ok(false);
        };
        let first = match self.ehrs.get(index) {
            Some(record) => record.created_after + 1,
            None => return Err(broken("an EHR id has no EHR")),
        };
        self.history.remove_ehr(ehr_id, first);
        let record = self.ehrs.remove(index);
        self.tags.retain(|_, (owner, _)| owner != ehr_id);
        if let Some(subject) = record.ehr.and_then(|e| e.subject) {
            self.subjects.remove(&subject);
        }
        self.ehr_ids
            .values_mut()
            .chain(self.subjects.values_mut())
            // `Vec::remove` moved the later EHRs down by one.
            .filter(|other| **other > index)
            .for_each(|other| *other -= 1);
        self.rebuild(&|_| true)?;
        self.revision += 1;
        Ok(true)
    }

    /// Removes objects, and contributions that have no version left.
    fn remove_objects(&mut self, ehr_id: &str, objects: &[String]) -> Result<(), StoreError> {
        self.tags.retain(|target, _| {
            !objects.iter().any(|o| {
                target
                    .strip_prefix(o.as_str())
                    // The tags of the object, and those of its versions: `object::system::number`.
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            })
        });
        let mut versions = Vec::new();
        for object in objects {
            versions.extend(self.versions(ehr_id, object)?);
        }
        let gone = order::distinct(versions);
        let ordinals: Result<Vec<u64>, StoreError> = gone
            .iter()
            .map(|document| self.batch.doc(*document).ok_or_else(missing_document))
            .map(|doc| Ok(doc?.row.ordinal))
            .collect();
        let first = ordinals?.into_iter().min();
        first
            .into_iter()
            .for_each(|first| self.history.remove_objects(ehr_id, first));
        self.rebuild(&|document| gone.binary_search(&document).is_err())
    }

    /// Builds the batch again from the versions to keep, so that no value of a removed version
    /// remains in its columns.
    fn rebuild(&mut self, kept: &dyn Fn(u32) -> bool) -> Result<(), StoreError> {
        let old = std::mem::take(&mut self.batch);
        let contributions = std::mem::take(&mut self.contributions);
        let mut explicit = std::mem::take(&mut self.explicit);
        (self.contribution_uids, self.objects, self.before) = Default::default();
        let owners = self.renumber_owners();
        for stored in contributions {
            // The EHR of these contributions is the one being removed.
            let Some(owner) = owners.get(&stored.owner).copied() else {
                continue;
            };
            let first = self.batch.len() as u32;
            for document in (stored.documents.0..stored.documents.1).filter(|d| kept(*d)) {
                self.carry(owner, document, &old, explicit.remove(&document))?;
            }
            let documents = (first, self.batch.len() as u32);
            self.carry_contribution(stored, owner, documents, &old)?;
        }
        let mut idempotency = std::mem::take(&mut self.idempotency);
        idempotency.retain(|uid, _| self.contribution(uid).is_some());
        self.idempotency = idempotency;
        Ok(())
    }

    /// Adds the EHRs and the owner of the parties to a new batch. Returns their numbers in it by
    /// those in the old one.
    fn renumber_owners(&mut self) -> HashMap<u32, u32> {
        let mut owners = HashMap::new();
        for record in &mut self.ehrs {
            let number = match &record.ehr {
                Some(ehr) => self.batch.add_ehr(row_of(ehr)),
                None => self.batch.add_owner(),
            };
            owners.insert(std::mem::replace(&mut record.in_batch, number), number);
        }
        owners
    }

    /// Adds a contribution again, with those of its documents that were carried to the new batch. A
    /// contribution that lost all its versions goes too. One that never had any stays.
    fn carry_contribution(
        &mut self,
        stored: StoredContribution,
        owner: u32,
        documents: (u32, u32),
        old: &Batch,
    ) -> Result<(), StoreError> {
        let (before, left) = (
            stored.documents.1 - stored.documents.0,
            documents.1 - documents.0,
        );
        if left == 0 && before > 0 {
            return Ok(());
        }
        // With fewer versions, the derived document would differ from the committed one.
        let own = if stored.own.is_some() || left < before {
            let document = stored.document(old)?;
            let uid = stored.uid(old).ok_or_else(missing_document)?;
            Some(Box::new((uid.to_owned(), document)))
        } else {
            None
        };
        self.contribute(StoredContribution {
            owner,
            documents,
            own,
        });
        Ok(())
    }

    /// Copies a document from another batch.
    fn carry(
        &mut self,
        owner: u32,
        document: u32,
        old: &Batch,
        explicit: Option<ExplicitVersion>,
    ) -> Result<(), StoreError> {
        let doc = old.doc(document).ok_or_else(missing_document)?;
        let packed = old.packed(doc.version).ok_or_else(missing_document)?;
        let row = row_in(old, &doc)?;
        let before = self.newest(&row.object_id);
        let document = self.batch.add(owner, row, &packed);
        self.before.push(before);
        self.objects
            .put(document, |document| self.batch.object_id(document));
        self.explicit
            .extend(explicit.map(|explicit| (document, explicit)));
        Ok(())
    }
}
