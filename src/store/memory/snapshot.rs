//! The states that a scan can read: the newest one, and the earlier one of a snapshot.

use super::{State, broken, missing_document, row_in, row_of};
use crate::document::{Batch, DocRow, EhrRow};
use crate::store::repository::{Ehr, StoreError};
use crate::store::scan::{Scan, Snapshot};
use std::collections::HashMap;

impl State {
    pub(super) fn newest_state(&self, scan: &Scan) -> Snapshot {
        match scan.ehr() {
            Some(ehr_id) => Snapshot::of_ehr(
                self.documents(ehr_id).count() as u64,
                self.history.removals_of(ehr_id),
            ),
            None => Snapshot {
                version: self.ordinal,
                ehr: 0,
                removals: self.history.removals(),
                revision: self.revision,
            },
        }
    }

    /// Returns the newest version of an earlier state, or `None` for the newest state.
    pub(super) fn earlier_version(&self, scan: &Scan, read: Snapshot) -> Option<u64> {
        let Some(ehr_id) = scan.ehr() else {
            return (read.version < self.ordinal).then_some(read.version);
        };
        // The version of a snapshot of one EHR counts its versions, from 1.
        let Some(nth) = usize::try_from(read.version).ok()?.checked_sub(1) else {
            return Some(0);
        };
        let mut rest = self.documents(ehr_id).skip(nth);
        let version = rest.next()?.row.ordinal;
        rest.next().map(|_| version)
    }

    /// Returns whether an EHR that the snapshot of a scan shows is not queryable any more.
    pub(super) fn shows_withdrawn(&self, scan: &Scan) -> bool {
        let Some(requested) = scan.snapshot.filter(|_| !scan.unqueryable) else {
            return false;
        };
        let Some(version) = self.earlier_version(scan, requested) else {
            return false;
        };
        let is_asked = |ehr: &&Ehr| {
            let ehrs = scan.ehrs.as_ref();
            ehrs.is_none_or(|ehrs| ehrs.contains(&ehr.ehr_id))
        };
        self.ehrs
            .iter()
            .filter(|record| record.created_after < version)
            .filter_map(|record| record.ehr.as_ref())
            .filter(is_asked)
            .any(|ehr| {
                !ehr.is_queryable && self.history.queryable(&ehr.ehr_id, version) == Some(true)
            })
    }

    /// Returns whether something that the snapshot of a scan contains was physically deleted.
    pub(super) fn lacks_data_of(&self, scan: &Scan) -> bool {
        let of_one = |requested: Snapshot, ehr_id: &str| {
            // Version 0 is the state of an EHR that did not exist: nothing of it can be removed.
            requested.version > 0 && requested.removals < self.history.removals_of(ehr_id)
        };
        scan.snapshot.is_some_and(|requested| {
            scan.ehr().map_or_else(
                || self.history.is_incomplete(requested, scan.ehrs.as_deref()),
                |ehr_id| of_one(requested, ehr_id),
            )
        })
    }

    /// Returns a batch of the versions up to `version`, of these EHRs or of all, in commit order.
    pub(super) fn as_of(&self, version: u64, ehrs: Option<&[String]>) -> Result<Batch, StoreError> {
        let mut batch = Batch::new();
        let owners = self.add_owners(version, ehrs, &mut batch);
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        for doc in self.batch.docs().filter(|doc| doc.row.ordinal <= version) {
            // Documents of EHRs that are not requested have no owner in the new batch.
            let Some(owner) = owners.get(&doc.ehr).copied() else {
                continue;
            };
            let packed = self
                .batch
                .packed(doc.version)
                .ok_or_else(missing_document)?;
            if let Some(before) = self.preceding(doc.document)? {
                // A version follows its predecessor in commit order, so the predecessor was added.
                let before = numbers
                    .get(&before)
                    .ok_or_else(|| broken("a version precedes the version that it follows"))?;
                batch.supersede(*before);
            }
            let row = DocRow {
                // True until a later version of the object supersedes it above.
                latest: true,
                ..row_in(&self.batch, &doc)?
            };
            numbers.insert(doc.document, batch.add(owner, row, &packed));
        }
        Ok(batch)
    }

    /// Adds the EHRs of an earlier state to a batch, and the owner of the parties. Returns their
    /// numbers in it by those in the batch of this state.
    fn add_owners(
        &self,
        version: u64,
        ehrs: Option<&[String]>,
        batch: &mut Batch,
    ) -> HashMap<u32, u32> {
        let mut owners = HashMap::new();
        let existing = self.ehrs.iter().filter(|e| e.created_after < version);
        for record in existing {
            let number = match &record.ehr {
                Some(ehr) if ehrs.is_none_or(|ehrs| ehrs.contains(&ehr.ehr_id)) => {
                    let earlier = self.history.queryable(&ehr.ehr_id, version);
                    batch.add_ehr(EhrRow {
                        is_queryable: earlier.unwrap_or(ehr.is_queryable),
                        ..row_of(ehr)
                    })
                }
                Some(_) => continue,
                None => batch.add_owner(),
            };
            owners.insert(record.in_batch, number);
        }
        owners
    }

    /// Returns a batch of one EHR with all its versions.
    pub(super) fn batch_of(&self, ehr_id: &str) -> Result<Batch, StoreError> {
        let mut batch = Batch::new();
        let ehr = self
            .ehr(ehr_id)
            .ok_or_else(|| broken("an EHR of the batch is not in the index"))?;
        let number = batch.add_ehr(row_of(ehr));
        for doc in self.documents(ehr_id) {
            let packed = self
                .batch
                .packed(doc.version)
                .ok_or_else(missing_document)?;
            batch.add(number, row_in(&self.batch, &doc)?, &packed);
        }
        Ok(batch)
    }
}
