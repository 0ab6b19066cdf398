//! The owner of the documents of a path: an EHR, or the demographic service, whose documents belong
//! to no EHR.

use super::Service;
use super::call::Call;
use super::content::named_template;
use super::error::Failure;
use super::ids::is_uuid;
use super::templates::FactSource;
use super::time::version_at_time;
use crate::document::ObjectKind;
use crate::rm::tree::Tree;
use crate::store::repository::{Ehr, Repository, StoreError};

/// The owner of versioned objects.
pub(crate) enum Owner {
    /// An EHR.
    Ehr(Ehr),
    /// An EHR that was not read: only the commit finds out whether it exists and is modifiable.
    Unread(String),
    /// The demographic service.
    Demographic,
}

impl Owner {
    /// Creates the owner of a path without reading it. An ehr_id in the path is valid.
    ///
    /// # Errors
    /// As [`Call::param`].
    pub fn unread(call: &Call<'_>) -> Result<Owner, Failure> {
        Ok(match call.demographic {
            true => Owner::Demographic,
            false => Owner::Unread(call.param(0)?.to_ascii_lowercase()),
        })
    }

    /// Returns the ehr_id, which is empty for the demographic service.
    pub fn id(&self) -> &str {
        match self {
            Owner::Ehr(ehr) => &ehr.ehr_id,
            Owner::Unread(ehr_id) => ehr_id,
            Owner::Demographic => "",
        }
    }

    /// Returns the first segments of the path to its documents.
    pub fn segments(id: &str) -> Vec<&str> {
        if id.is_empty() {
            vec!["demographic"]
        } else {
            vec!["ehr", id]
        }
    }

    /// Returns whether it can own documents of a kind.
    pub fn holds(&self, kind: ObjectKind) -> bool {
        matches!(self, Owner::Demographic) == (kind == ObjectKind::Party)
    }

    /// Checks `is_modifiable`. An EHR may forbid changes of all but its EHR_STATUS.
    pub fn check_modifiable(&self, kind: ObjectKind) -> Result<(), Failure> {
        match self {
            Owner::Ehr(ehr) if !ehr.is_modifiable && kind != ObjectKind::EhrStatus => {
                Err(Failure::of_store(StoreError::NotModifiable))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a member of a contribution may change an object of this kind. `modifies` is true
    /// if it has data and a preceding version.
    pub fn check_member(&self, kind: ObjectKind, modifies: bool) -> Result<(), Failure> {
        if !self.holds(kind) {
            return Err(Failure::bad_request(
                "parties are committed to the demographic service, everything else to an EHR",
            ));
        }
        self.check_modifiable(kind)?;
        // The EHR_STATUS is created with its EHR and cannot be deleted.
        if kind == ObjectKind::EhrStatus && !modifies {
            return Err(Failure::bad_request(
                "an EHR has one EHR_STATUS: it can only be modified",
            ));
        }
        Ok(())
    }

    /// Checks `is_modifiable` for tags of an object of this kind. A tag is not part of the
    /// EHR_STATUS that it belongs to, so an EHR that is not modifiable accepts none.
    pub fn check_tags_modifiable(&self, kind: ObjectKind) -> Result<(), Failure> {
        match self {
            // The commit of an EHR_STATUS does not check whether its EHR is modifiable.
            Owner::Unread(_) if kind == ObjectKind::EhrStatus => {
                Err(Failure::of_store(StoreError::NotModifiable))
            }
            _ => self.check_modifiable(ObjectKind::Composition),
        }
    }
}

impl<R: Repository> Service<R> {
    /// Returns the owner in the path; 404 if it does not exist.
    pub(crate) async fn owner(&self, call: &Call<'_>) -> Result<Owner, Failure> {
        if call.demographic {
            Ok(Owner::Demographic)
        } else {
            self.ehr_with_id(call.param(0)?).await.map(Owner::Ehr)
        }
    }

    /// Returns the owner in the path, which is not read if cached facts suffice.
    pub(crate) async fn owner_from(
        &self,
        call: &Call<'_>,
        facts: FactSource,
    ) -> Result<Owner, Failure> {
        match facts {
            FactSource::Cached => Owner::unread(call),
            FactSource::Stored => self.owner(call).await,
        }
    }

    /// Returns the owner in the path, and reads in the same round trip the definitions for checking
    /// a new document.
    pub(crate) async fn owner_with_preconditions(
        &self,
        call: &Call<'_>,
        body: Option<&Tree>,
    ) -> Result<Owner, Failure> {
        // Only a valid id and a named template allow the combined read.
        let (Some(template), false, true) = (
            body.and_then(named_template),
            call.demographic,
            call.optional_param(0).is_some_and(is_uuid),
        ) else {
            return self.owner(call).await;
        };
        let (ehr, templates) = self
            .repository
            .preconditions(&call.param(0)?.to_ascii_lowercase(), template)
            .await
            .map_err(Failure::of_store)?;
        let owner = ehr.map(Owner::Ehr).ok_or_else(Failure::no_ehr)?;
        let latest = self.latest_of(Some(call), template, &templates).await?;
        // The checks that follow find the template here and need no read of their own.
        call.templates.borrow_mut().insert(template, latest)?;
        Ok(owner)
    }

    /// Returns the EHR with an id; 404 if it does not exist, or if the id is invalid.
    pub(crate) async fn ehr_with_id(&self, ehr_id: &str) -> Result<Ehr, Failure> {
        if !is_uuid(ehr_id) {
            return Err(Failure::no_ehr());
        }
        self.repository
            .ehr(&ehr_id.to_ascii_lowercase())
            .await
            .map_err(Failure::of_store)?
            .ok_or_else(Failure::no_ehr)
    }

    /// Returns the object of a kind of which an EHR has at most one. After a deleted directory
    /// there may be a new one.
    pub(crate) async fn object_of(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
    ) -> Result<Option<String>, Failure> {
        self.repository
            .newest_object(ehr_id, kind, None)
            .await
            .map_err(Failure::of_store)
    }

    /// Like [`Service::object_of`], but returns the object that the EHR had at `version_at_time` of
    /// the request. An EHR has one directory at a time, and may have several one after another.
    pub(crate) async fn object_at_time(
        &self,
        call: &Call<'_>,
        ehr_id: &str,
        kind: ObjectKind,
    ) -> Result<Option<String>, Failure> {
        let at = version_at_time(call.request)?;
        self.repository
            .newest_object(ehr_id, kind, at.as_deref())
            .await
            .map_err(Failure::of_store)
    }
}
