//! The overlay: the changes since the segments were written, up to one state.

use super::manifest::ManifestEntry;
use crate::store::scan::Snapshot;
use std::rc::Rc;

/// The changes since the segments were written, up to one state of the repository.
#[derive(Default)]
pub(super) struct Overlay {
    /// Versions that were superseded, ascending.
    pub superseded: Vec<u64>,
    /// EHRs that population queries do not read, ascending.
    pub unqueryable: Rc<[u64]>,
    /// The overlay lacks versions that were superseded by a version up to this one.
    pub known_from: u64,
}

/// The changes between the state that a cache knew when a query began, and the state of the query.
/// The ids are in any order.
#[derive(Default)]
pub(super) struct NewChanges {
    /// Versions that were superseded.
    pub superseded: Vec<u64>,
    /// Unqueryable EHRs: those that became so, or all of them.
    pub unqueryable: Vec<u64>,
    /// EHRs that are queryable, and may have been unqueryable before.
    pub queryable: Vec<u64>,
}

impl NewChanges {
    pub fn is_empty(&self) -> bool {
        [&self.superseded, &self.unqueryable, &self.queryable]
            .into_iter()
            .all(Vec::is_empty)
    }
}

impl Overlay {
    /// Creates an overlay of all changes since a version.
    pub fn since(known_from: u64, changes: NewChanges) -> Overlay {
        Overlay {
            superseded: ascending(changes.superseded),
            unqueryable: ascending(changes.unqueryable).into(),
            known_from,
        }
    }

    /// Creates the overlay of a later state from this one and the changes between them.
    /// `has_all` means that the changes list all EHRs that population queries do not read.
    pub fn with(&self, mut changes: NewChanges, has_all: bool) -> Overlay {
        changes.superseded.extend_from_slice(&self.superseded);
        if !has_all {
            let queryable = ascending(std::mem::take(&mut changes.queryable));
            let is_still = |ehr: &&u64| queryable.binary_search(ehr).is_err();
            changes
                .unqueryable
                .extend(self.unqueryable.iter().filter(is_still));
            changes.unqueryable = ascending(changes.unqueryable);
            changes.unqueryable.dedup();
        }
        Overlay::since(self.known_from, changes)
    }

    /// Returns whether the overlay has all that was superseded since a segment was written.
    pub fn knows(&self, entry: &ManifestEntry) -> bool {
        entry.state >= self.known_from
    }
}

fn ascending(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids
}

/// The changes that a cache knows when a query begins.
///
/// The query adds later changes to these, and not to those that the cache knows when the database
/// has answered: another query may have read a newer state meanwhile.
#[derive(Clone, Default)]
pub(in crate::store::sql) struct KnownChanges {
    pub(super) overlay: Rc<Overlay>,
    /// The state of the overlay; `None` if the next query reads everything again.
    pub state: Option<Snapshot>,
    /// The number of times that the past of the database was another one.
    pub(super) breaks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(superseded: &[u64], unqueryable: &[u64], queryable: &[u64]) -> NewChanges {
        NewChanges {
            superseded: superseded.to_vec(),
            unqueryable: unqueryable.to_vec(),
            queryable: queryable.to_vec(),
        }
    }

    #[test]
    fn changes_are_added_to_the_overlay() {
        let known = Overlay::since(3, changes(&[9, 4], &[7, 2], &[]));
        let next = known.with(changes(&[5], &[1, 2], &[7]), false);
        assert_eq!(next.superseded, [4, 5, 9]);
        assert_eq!(*next.unqueryable, [1, 2]);
        assert_eq!(next.known_from, 3);
    }

    #[test]
    fn complete_list_replaces_the_overlay() {
        let known = Overlay::since(3, changes(&[4], &[7, 2], &[]));
        let next = known.with(changes(&[], &[8], &[2]), true);
        assert_eq!(next.superseded, [4]);
        assert_eq!(*next.unqueryable, [8]);
    }
}
