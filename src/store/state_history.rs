//! The history of a memory repository that snapshots need: enough to read an earlier state, or to
//! report that it is gone.

use super::scan::Snapshot;
use crate::document::short_digest;
use aqlite_engine::codec;

/// Physical deletions, and changes of `is_queryable`.
#[derive(Clone, Default)]
pub(super) struct StateHistory {
    removals: Vec<Removal>,
    queryable: Vec<FormerQueryable>,
}

/// A physical deletion.
#[derive(Clone)]
struct Removal {
    /// The digest of the ehr_id; `None` if everything was removed.
    ehr: Option<String>,
    /// The oldest version that was removed.
    first_version: u64,
}

/// A former value of `is_queryable`: valid before a version of the EHR_STATUS.
#[derive(Clone)]
struct FormerQueryable {
    ehr_id: String,
    before: u64,
    is_queryable: bool,
}

codec!(StateHistory {
    removals,
    queryable
});
codec!(Removal { ehr, first_version });
codec!(FormerQueryable {
    ehr_id,
    before,
    is_queryable
});

impl StateHistory {
    /// Returns the number of physical deletions.
    pub fn removals(&self) -> u64 {
        self.removals.len() as u64
    }

    /// Returns the number of physical deletions that concern an EHR.
    pub fn removals_of(&self, ehr_id: &str) -> u64 {
        let digest = short_digest(ehr_id);
        self.removals
            .iter()
            .filter(|removal| removal.ehr.as_ref().is_none_or(|ehr| *ehr == digest))
            .count() as u64
    }

    pub fn remove_all(&mut self) {
        self.queryable.clear();
        self.removals.push(Removal {
            ehr: None,
            first_version: 0,
        });
    }

    pub fn remove_ehr(&mut self, ehr_id: &str, first_version: u64) {
        self.queryable.retain(|change| change.ehr_id != ehr_id);
        self.remove_objects(ehr_id, first_version);
    }

    pub fn remove_objects(&mut self, ehr_id: &str, first_version: u64) {
        self.removals.push(Removal {
            ehr: Some(short_digest(ehr_id)),
            first_version,
        });
    }

    pub fn record_queryable(&mut self, ehr_id: &str, before: u64, is_queryable: bool) {
        self.queryable.push(FormerQueryable {
            ehr_id: ehr_id.to_owned(),
            before,
            is_queryable,
        });
    }

    /// Returns whether an EHR was queryable at a version, or `None` if that has not changed since.
    pub fn queryable(&self, ehr_id: &str, version: u64) -> Option<bool> {
        self.queryable
            .iter()
            // The changes are in the order of versions, so the first later one has the state before
            // it.
            .find(|change| change.ehr_id == ehr_id && change.before > version)
            .map(|change| change.is_queryable)
    }

    /// Returns whether something that a snapshot contains of these EHRs (or of all) was removed
    /// since.
    pub fn is_incomplete(&self, snapshot: Snapshot, ehrs: Option<&[String]>) -> bool {
        let since = self
            .removals
            .iter()
            // The snapshot counts the removals before it. Only later ones concern it.
            .skip(usize::try_from(snapshot.removals).unwrap_or(usize::MAX));
        let concerns = |removal: &Removal| match (&removal.ehr, ehrs) {
            (Some(removed), Some(ehrs)) => {
                ehrs.iter().any(|ehr_id| short_digest(ehr_id) == *removed)
            }
            // A removal of everything concerns every query, and so does any removal a query on all
            // EHRs.
            _ => true,
        };
        since
            .filter(|removal| removal.first_version <= snapshot.version)
            .any(concerns)
    }
}
