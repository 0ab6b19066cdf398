//! The rules of a commit, checked before it is applied.

use super::{State, UID, missing_document, missing_owner};
use crate::document::{Doc, ObjectKind};
use crate::store::commit_rules::{self, KeptProperties, LatestVersion};
use crate::store::repository::{
    Commit, DefinitionKind, Preconditions, Predecessor, StoreError, TemplateState,
};

impl State {
    /// Checks all rules of a commit, in the order in which the constraints of the database do.
    pub(super) fn check(&self, commit: &Commit) -> Result<(), StoreError> {
        commit_rules::check_form(commit)?;
        self.check_owner(commit)?;
        self.check_preconditions(commit)?;
        self.check_new(commit)?;
        self.check_ids(commit)?;
        commit_rules::check_kind_and_properties(&commit.versions, &|object| self.head(object))?;
        commit_rules::check_status(&commit.versions, || {
            self.documents(&commit.ehr_id)
                .any(|doc| doc.row.kind == ObjectKind::EhrStatus)
        })?;
        self.check_indexes(commit)
    }

    /// Checks that the versions of a commit from a journal follow the stored ones. All later reads
    /// rely on this.
    pub(super) fn check_order(&self, commit: &Commit) -> Result<(), StoreError> {
        // The other rules of `check` were checked when the journal was written.
        self.check_owner(commit)?;
        self.check_new(commit)?;
        self.check_indexes(commit)
    }

    /// Checks that no object has the id of an EHR, and no EHR that of an object.
    fn check_ids(&self, commit: &Commit) -> Result<(), StoreError> {
        match &commit.new_ehr {
            Some(ehr) if self.newest(&ehr.ehr_id).is_some() => {
                Err(StoreError::UidExists(ehr.ehr_id.clone()))
            }
            _ => commit_rules::check_ids(commit, |id| self.ehr(id).is_some()),
        }
    }

    fn check_owner(&self, commit: &Commit) -> Result<(), StoreError> {
        if let Some(ehr) = &commit.new_ehr {
            if self.ehr(&ehr.ehr_id).is_some() {
                return Err(StoreError::EhrExists);
            }
        // A party has no EHR. Its commit has an empty id.
        } else if !commit.ehr_id.is_empty() && self.ehr(&commit.ehr_id).is_none() {
            return Err(StoreError::NoSuchEhr);
        }
        Ok(())
    }

    /// Checks that new objects do not exist, and that each new version follows the latest one.
    fn check_new(&self, commit: &Commit) -> Result<(), StoreError> {
        self.check_subject(
            &commit.ehr_id,
            commit.new_ehr.as_ref().and_then(|e| e.subject.as_ref()),
        )?;
        if self.contribution(&commit.contribution_uid).is_some() {
            return Err(StoreError::UidExists(commit.contribution_uid.clone()));
        }
        commit_rules::check_sequence(&commit.versions, &|object| self.head(object))
    }

    /// Checks what is unique in an EHR: its directory and its subject.
    fn check_indexes(&self, commit: &Commit) -> Result<(), StoreError> {
        commit_rules::check_directory(&commit.versions, || self.directories(&commit.ehr_id))?;
        self.check_subject(
            &commit.ehr_id,
            commit.status.as_ref().and_then(|s| s.subject.as_ref()),
        )
    }

    /// Checks that the templates and the predecessor of a commit are as its preconditions state.
    fn check_preconditions(&self, commit: &Commit) -> Result<(), StoreError> {
        if commit.needs_modifiable()
            && self
                .ehr(&commit.ehr_id)
                .is_some_and(|ehr| !ehr.is_modifiable)
        {
            return Err(StoreError::NotModifiable);
        }
        let Preconditions {
            templates,
            predecessor,
        } = &commit.preconditions;
        let is_followed = match predecessor {
            Some(known) => self.is_latest(&commit.ehr_id, known)?,
            None => true,
        };
        match is_followed && templates.iter().all(|known| self.has_state(known)) {
            true => Ok(()),
            false => Err(StoreError::PreconditionFailed),
        }
    }

    fn has_state(&self, known: &TemplateState) -> bool {
        let stored = self.definitions.iter().filter(|((kind, name, _), _)| {
            *kind == DefinitionKind::Template && *name == known.template
        });
        TemplateState::of(&known.template, stored.map(|(_, definition)| definition)) == *known
    }

    /// Returns whether a version is the latest of its object, which this EHR owns. Rows in memory
    /// are never altered, so no row is compared.
    fn is_latest(&self, ehr_id: &str, known: &Predecessor) -> Result<bool, StoreError> {
        let Some(uid) = commit_rules::split_uid(&known.version_uid) else {
            return Ok(false);
        };
        let Some(head) = self.head(uid.object)? else {
            return Ok(false);
        };
        let newest_of_kind = || {
            let of_kind = |doc: &Doc| doc.row.kind == head.kind;
            let newest = self.documents(ehr_id).filter(of_kind).last();
            newest.is_some_and(|doc| self.batch.object_id(doc.document) == uid.object)
        };
        Ok(head.version_uid == known.version_uid
            && head.ehr_id == ehr_id
            && (!known.is_newest_of_kind || newest_of_kind()))
    }

    fn check_subject(
        &self,
        ehr_id: &str,
        subject: Option<&(String, String)>,
    ) -> Result<(), StoreError> {
        let owner = subject.and_then(|s| self.subjects.get(s));
        // An EHR may state its own subject again. Only the subject of another one is a conflict.
        if owner.is_some_and(|owner| self.ehr_ids.get(ehr_id) != Some(owner)) {
            return Err(StoreError::SubjectExists);
        }
        Ok(())
    }

    /// Returns the latest version of an object, with the properties that its next version must
    /// keep; `None` for an object that does not exist.
    fn head(&self, object_id: &str) -> Result<Option<LatestVersion>, StoreError> {
        let Some(newest) = self.newest(object_id) else {
            return Ok(None);
        };
        let doc = self.batch.doc(newest).ok_or_else(missing_document)?;
        // The uid of a version may be stored beside it. Otherwise its document has it.
        let uid = self
            .explicit
            .get(&newest)
            .map(|version| version.version_uid.as_str())
            .or_else(|| self.batch.text_along(doc.version, UID));
        let kept = self.last_with_data(newest)?.map(|doc| {
            KeptProperties::read(doc.row.kind, self.named_template(doc), |path| {
                self.batch.text_along(doc.version, path)
            })
        });
        Ok(Some(LatestVersion {
            ehr_id: self.owner_id(doc.ehr).ok_or_else(missing_owner)?.to_owned(),
            version_uid: uid.ok_or_else(missing_document)?.to_owned(),
            kind: doc.row.kind,
            kept,
        }))
    }

    /// Returns the newest version of an object that is no deletion, starting at its newest version.
    fn last_with_data(&self, newest: u32) -> Result<Option<Doc>, StoreError> {
        let mut document = Some(newest);
        while let Some(number) = document {
            let doc = self.batch.doc(number).ok_or_else(missing_document)?;
            if !doc.row.deleted {
                return Ok(Some(doc));
            }
            document = self.preceding(number)?;
        }
        Ok(None)
    }

    /// Returns the template that a version was committed with.
    fn named_template(&self, doc: Doc) -> Option<&str> {
        match self.explicit.get(&doc.document) {
            Some(version) => version.template_id.as_deref(),
            None => self.template_of(doc),
        }
    }

    /// Returns the directories of an EHR that are not deleted.
    fn directories(&self, ehr_id: &str) -> Vec<String> {
        let lives =
            |doc: &Doc| doc.row.kind == ObjectKind::Folder && doc.row.latest && !doc.row.deleted;
        self.documents(ehr_id)
            .filter(lives)
            .map(|doc| self.batch.object_id(doc.document).to_owned())
            .collect()
    }

    pub(super) fn names_template(&self, id: &str) -> bool {
        self.batch
            .docs()
            .any(|doc| self.named_template(doc) == Some(id))
    }
}
