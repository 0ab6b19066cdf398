//! The scan: a value that describes the data which a query needs from a repository. The repository
//! can use it to read less.

use crate::document::{Batch, ObjectKind};
use aqlite_rm::order;

/// A request for batches of documents.
///
/// Every field only narrows the scan. If a repository ignores a field and sends more data, the
/// result is the same but takes longer.
#[derive(Clone, PartialEq, Debug)]
pub struct Scan {
    /// The EHRs to read, each named once; `None` for all EHRs. The documents of each EHR arrive in
    /// commit order, and those of several EHRs can alternate.
    pub ehrs: Option<Vec<String>>,
    /// The kinds of documents to read; empty if only the EHRs themselves are read.
    pub kinds: Vec<ObjectKind>,
    /// Whether old and deleted versions are read, in addition to the latest versions that are not
    /// deleted.
    pub all_versions: bool,
    /// Whether a batch must hold all documents of each of its EHRs, because the query joins
    /// documents or reads EHRs without documents.
    pub whole_ehrs: bool,
    /// Whether objects are read that are derived from all versions of an EHR: its references and
    /// its versioned objects.
    pub derived: bool,
    /// Whether EHRs without a matching document are read.
    pub empty_ehrs: bool,
    /// Whether EHRs that are not queryable are read. Without `ehrs`, a repository may leave them
    /// out.
    pub unqueryable: bool,
    /// Groups of archetypes for pruning: a document is read only if its layouts have one archetype
    /// of each group.
    pub archetypes: Vec<ArchetypeGroup>,
    /// The state to read; `None` for the newest one.
    pub snapshot: Option<Snapshot>,
}

/// A state of a repository: everything that was committed up to a version.
///
/// A scan of it reads versions that were superseded since as they were, and no later versions. In a
/// scan of one EHR, the numbers count in that EHR alone, so that they reveal nothing about others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The number of the newest version in the order of commits, which is never used again. For one
    /// EHR: its number of versions.
    pub version: u64,
    /// The number of the newest EHR.
    pub ehr: u64,
    /// The number of physical deletions before this state.
    pub removals: u64,
    /// The revision of the repository. For one EHR: the sum of its versions and deletions.
    pub revision: u64,
}

impl Scan {
    /// Returns the EHR, if the scan reads exactly one.
    pub fn ehr(&self) -> Option<&str> {
        match self.ehrs.as_deref() {
            Some([only]) => Some(only),
            _ => None,
        }
    }

    /// Returns the numbers in a batch of the EHRs that the scan names, ascending; `None` if it
    /// reads all.
    pub fn ehrs_in(&self, batch: &Batch) -> Option<Vec<u32>> {
        let asked = |ehr: &u32| {
            if self.unqueryable {
                batch.has_ehr(*ehr)
            } else {
                batch.is_queryable(*ehr)
            }
        };
        Some(order::distinct(
            self.ehrs
                .as_ref()?
                .iter()
                .filter_map(|id| batch.ehr_number(id))
                .filter(asked),
        ))
    }

    /// Returns a scan that reads the data of both scans. Both must name the same EHRs, or none.
    #[must_use]
    pub fn with(mut self, other: &Scan) -> Scan {
        let composition = ObjectKind::Composition;
        self.archetypes = match (
            self.kinds.contains(&composition),
            other.kinds.contains(&composition),
        ) {
            (true, true) => either(&self.archetypes, &other.archetypes),
            // Archetypes select compositions only, so a scan without compositions does not limit
            // them.
            (true, false) => self.archetypes,
            (false, _) => other.archetypes.clone(),
        };
        let more: Vec<ObjectKind> = other
            .kinds
            .iter()
            .filter(|kind| !self.kinds.contains(kind))
            .copied()
            .collect();
        self.kinds.extend(more);
        self.all_versions |= other.all_versions;
        self.whole_ehrs |= other.whole_ehrs;
        self.derived |= other.derived;
        self.empty_ehrs |= other.empty_ehrs;
        self.unqueryable |= other.unqueryable;
        self
    }
}

/// Returns groups that every document satisfies which satisfies all groups of either list.
fn either(one: &[ArchetypeGroup], other: &[ArchetypeGroup]) -> Vec<ArchetypeGroup> {
    let (Some(ArchetypeGroup(one)), Some(ArchetypeGroup(other))) = (one.first(), other.first())
    else {
        // One of the scans reads compositions of any archetype.
        return Vec::new();
    };
    let mut ids = one.clone();
    ids.extend(other.iter().filter(|id| !one.contains(id)).cloned());
    vec![ArchetypeGroup(ids)]
}

impl Snapshot {
    /// Creates the state of one EHR from its number of versions and its number of deletions that
    /// removed a version.
    pub fn of_ehr(versions: u64, removals: u64) -> Snapshot {
        Snapshot {
            version: versions,
            ehr: 0,
            removals,
            revision: versions.saturating_add(removals),
        }
    }
}

/// The progress of a receiver in a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// A pause is due; the receiver continues with the same batch.
    Paused,
    /// The batch is done, and more batches are needed.
    More,
    /// No more batches are needed, because the result is complete or the run has failed.
    Enough,
}

/// Archetype ids of which a document must have one, or a specialization of it (see `rm::id`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArchetypeGroup(pub Vec<String>);

impl Default for Scan {
    fn default() -> Scan {
        Scan {
            ehrs: None,
            kinds: vec![
                ObjectKind::Composition,
                ObjectKind::EhrStatus,
                ObjectKind::Folder,
            ],
            all_versions: false,
            whole_ehrs: true,
            derived: true,
            empty_ehrs: true,
            unqueryable: false,
            archetypes: Vec::new(),
            snapshot: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_of_two_scans_reads_the_data_of_both() {
        let group = |ids: &[&str]| ArchetypeGroup(ids.iter().map(|id| (*id).to_owned()).collect());
        let scan = |groups: &[&[&str]]| Scan {
            kinds: vec![ObjectKind::Composition],
            whole_ehrs: false,
            empty_ehrs: false,
            archetypes: groups.iter().map(|ids| group(ids)).collect(),
            ..Scan::default()
        };
        let (pulse, pressure) = (
            scan(&[&["pulse"], &["encounter"]]),
            scan(&[&["pressure", "pulse"]]),
        );
        assert_eq!(
            pulse.clone().with(&pressure).archetypes,
            [group(&["pulse", "pressure"])]
        );
        assert!(pulse.clone().with(&scan(&[])).archetypes.is_empty());
        let ehrs = Scan {
            kinds: Vec::new(),
            empty_ehrs: true,
            whole_ehrs: true,
            ..scan(&[])
        };
        let both = ehrs.with(&pulse);
        assert_eq!(
            (both.archetypes, both.kinds),
            (pulse.archetypes, vec![ObjectKind::Composition])
        );
        assert!(both.empty_ehrs && both.whole_ehrs && !both.all_versions);
    }
}
