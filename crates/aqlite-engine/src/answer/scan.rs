//! The scan: the data that a query needs from a repository, as a value. The planner writes it, the
//! repository may use it to read less.

use crate::document::{Batch, ObjectKind};
use aqlite_rm::order;

/// A request for batches of documents.
///
/// Every field only narrows: with a repository that ignores one and sends more, the rows are the
/// same, and later.
#[derive(Clone, PartialEq, Debug)]
pub struct Scan {
    /// Only these EHRs, each named once. The documents of each come in commit order; those of several
    /// EHRs may alternate.
    pub ehrs: Option<Vec<String>>,
    /// The kinds of documents that the query can read; empty if it reads only the EHRs themselves.
    pub kinds: Vec<ObjectKind>,
    /// Whether old and deleted versions are needed too; else only the latest, not deleted ones.
    pub all_versions: bool,
    /// Each batch must hold all documents of an EHR that it holds one of: the query joins
    /// documents, or reads EHRs without any.
    pub whole_ehrs: bool,
    /// Whether objects that follow from all versions of an EHR are needed: its references, or the
    /// versioned objects.
    pub derived: bool,
    /// EHRs without a matching document are asked for too.
    pub empty_ehrs: bool,
    /// Whether EHRs that are not queryable are included, as if they were. Without `ehrs` a
    /// repository may leave them out.
    pub unqueryable: bool,
    /// A document can only give a row if its layouts hold one archetype of each group: pruning for
    /// compositions.
    pub archetypes: Vec<ArchetypeGroup>,
    /// The state that is read, where it is not the newest one.
    pub snapshot: Option<Snapshot>,
}

/// A state of a repository: all that was committed up to a version.
///
/// A scan of it reads versions that were superseded since as they were, and sees no later ones. In
/// a scan of one EHR the numbers count in that EHR alone, so that they reveal nothing of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The number of the newest version, in the order of commits; numbers are never given again. Of
    /// one EHR: how many versions it has.
    pub version: u64,
    /// The number of the newest EHR.
    pub ehr: u64,
    /// Number of physical deletions before it.
    pub removals: u64,
    /// The revision of the repository. Of one EHR: versions and deletions together.
    pub revision: u64,
}

impl Scan {
    /// The EHR, where only one is asked for.
    pub fn ehr(&self) -> Option<&str> {
        match self.ehrs.as_deref() {
            Some([only]) => Some(only),
            _ => None,
        }
    }

    /// The numbers that the EHRs asked for have in a batch, ascending; `None` where all are asked
    /// for.
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

    /// Returns the union of two scans, of the same EHRs or of all: a caller that needs less may be
    /// sent more.
    #[must_use]
    pub fn with(mut self, other: &Scan) -> Scan {
        let composition = ObjectKind::Composition;
        self.archetypes = match (
            self.kinds.contains(&composition),
            other.kinds.contains(&composition),
        ) {
            (true, true) => either(&self.archetypes, &other.archetypes),
            // Archetypes select compositions only, so those of a scan without compositions do not
            // count.
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

/// A document holds an archetype of each group of one list or of the other only if it holds one of
/// this group.
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
    /// Creates the state of one EHR from its number of versions and of deletions that removed
    /// something.
    pub fn of_ehr(versions: u64, removals: u64) -> Snapshot {
        Snapshot {
            version: versions,
            ehr: 0,
            removals,
            revision: versions.saturating_add(removals),
        }
    }
}

/// The progress of a receiver with a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// A pause is due; the receiver continues with the same batch.
    Paused,
    /// The batch is done; more are wanted.
    More,
    /// No more batches are needed, because enough is known or something failed.
    Enough,
}

/// Archetype ids of which a document must hold one, compared by specialisation (see `rm::id`).
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
    fn two_scans_together_ask_for_what_either_asks_for() {
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
