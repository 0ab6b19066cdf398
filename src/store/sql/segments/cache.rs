//! The cache of segments: heads, loaded parts, and the changes since the segments were written.
//!
//! A query reads the manifest and the changes since the state that the cache knew when it began
//! ([`SegmentCache::known`]). They make the overlay of its state ([`SegmentCache::renew`]). Each
//! segment of the manifest then gives it a batch in this state ([`CachedSegment::batch`]).

use super::cached_segment::CachedSegment;
use super::manifest::ManifestEntry;
use super::overlay::{KnownChanges, NewChanges, Overlay};
use crate::document::{Batch, Segment};
use crate::store::scan::Snapshot;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// The number of tables that segments may use. Higher numbers are those of tables of rows in no
/// segment.
pub(super) const TABLES: u32 = 1 << 30;

/// Heads and parts of the segments of one database.
#[derive(Default)]
pub(super) struct SegmentCache {
    segments: HashMap<String, Rc<CachedSegment>>,
    /// Batches that were forgotten while a query still reads them.
    forgotten: RefCell<Vec<Weak<Batch>>>,
    known: KnownChanges,
    /// The newest version in the state of the overlay.
    newest: u64,
    /// The last id that the segments of the last query held, if they held all ids up to it.
    pub covered_to: Option<u64>,
    /// The number of the first table of the next segment. No two cached tables share a number.
    next_table: u32,
}

impl SegmentCache {
    /// Returns the changes that are known now.
    pub fn known(&self) -> KnownChanges {
        self.known.clone()
    }

    /// Forgets the changes that are known, if the past of the database was another one since.
    pub fn follow(&mut self, breaks: u64) {
        if self.known.breaks != breaks {
            self.known = KnownChanges {
                breaks,
                ..KnownChanges::default()
            };
            (self.newest, self.covered_to) = (0, None);
        }
    }

    /// Forgets segments that the manifest does not name. Returns the overlay of a state: what was
    /// `known` when the query began, and the changes since. Later queries build on it, unless
    /// another query has read a newer state.
    pub fn renew(
        &mut self,
        known: KnownChanges,
        state: Snapshot,
        manifest: &[ManifestEntry],
        changes: NewChanges,
    ) -> Rc<Overlay> {
        let is_listed = |id: &String| manifest.iter().any(|entry| entry.id == *id);
        // A running query has its own reference to a segment that is dropped here.
        self.segments.retain(|id, _| is_listed(id));
        let oldest = manifest.iter().map(|entry| entry.state).min();
        let overlay = match known.state {
            None => Rc::new(Overlay::since(oldest.unwrap_or(0), changes)),
            Some(before) => {
                // After a physical deletion the database lists all unqueryable EHRs, as those in
                // the overlay may be among the deleted ones.
                let is_removed = before.removals != state.removals;
                if !is_removed && changes.is_empty() {
                    Rc::clone(&known.overlay)
                } else {
                    Rc::new(known.overlay.with(changes, is_removed))
                }
            }
        };
        if known.breaks == self.known.breaks && state.version >= self.newest {
            // A segment may be listed late, with a state before the oldest one that was known. The
            // next query then requests everything again.
            let is_complete = oldest.is_some_and(|oldest| oldest >= overlay.known_from);
            self.newest = state.version;
            self.known = KnownChanges {
                overlay: Rc::clone(&overlay),
                state: is_complete.then_some(state),
                breaks: known.breaks,
            };
        }
        overlay
    }

    /// Returns whether an overlay is that of the newest state that was read.
    pub fn is_newest(&self, overlay: &Rc<Overlay>) -> bool {
        Rc::ptr_eq(overlay, &self.known.overlay)
    }

    /// Returns a segment whose head was read.
    pub fn segment(&self, id: &str) -> Option<Rc<CachedSegment>> {
        self.segments.get(id).map(Rc::clone)
    }

    /// Adds a segment whose head was read. Returns `None` if the head is damaged, is that of another
    /// segment, or has other rows than the manifest says.
    ///
    /// A stored head begins with the id of its segment, so that a head of another deployment, whose
    /// rows may have the same numbers, is not read in its place. The head has the checksums of all
    /// values.
    pub fn add(&mut self, entry: &ManifestEntry, head: &[u8]) -> Option<Rc<CachedSegment>> {
        let segment = Segment::read(head.strip_prefix(entry.id.as_bytes())?).ok();
        let segment = self.numbered(segment.filter(|segment| entry.is_of(segment))?);
        let cached = Rc::new(CachedSegment::of(entry, segment));
        self.segments.insert(entry.id.clone(), Rc::clone(&cached));
        Some(cached)
    }

    /// Numbers the tables of a segment. After very many segments the numbers begin again; a union
    /// of segments that share numbers then fails, and rows are read.
    fn numbered(&mut self, segment: Segment) -> Segment {
        let tables = u32::try_from(segment.tables()).unwrap_or(TABLES);
        let first = match self.next_table.checked_add(tables) {
            Some(end) if end <= TABLES => self.next_table,
            _ => 0,
        };
        self.next_table = first.saturating_add(tables);
        segment.with_first_table(first)
    }

    /// Drops all loaded parts if they take more than `kept` bytes.
    pub fn make_room(&self, kept: usize) {
        let bytes = self.segments.values().map(|cached| cached.late_bytes());
        if bytes.sum::<usize>() > kept {
            let forgotten = self.segments.values().map(|cached| cached.forget_parts());
            self.forgotten.borrow_mut().extend(forgotten);
        }
    }

    /// Counts the memory of a replaced batch as long as running queries read it.
    pub fn forget(&self, batch: &Rc<Batch>) {
        self.forgotten.borrow_mut().push(Rc::downgrade(batch));
    }

    /// Returns the bytes of parts that were dropped, and that running queries still read.
    pub fn forgotten_bytes(&self) -> usize {
        let mut forgotten = self.forgotten.borrow_mut();
        forgotten.retain(|batch| batch.strong_count() > 0);
        let batches = forgotten.iter().filter_map(Weak::upgrade);
        batches.map(|batch| batch.late_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_without_changes_keeps_the_overlay() {
        let state = |version, removals| Snapshot {
            version,
            ehr: 2,
            removals,
            revision: version,
        };
        let manifest = [ManifestEntry {
            first: 1,
            last: 5,
            state: 5,
            rows: 5,
            id: String::from("a"),
            memory: 1,
        }];
        let mut cache = SegmentCache::default();
        let changes = NewChanges {
            unqueryable: vec![2],
            ..NewChanges::default()
        };
        let first = cache.renew(cache.known(), state(5, 0), &manifest, changes);
        let same = cache.renew(cache.known(), state(6, 0), &manifest, NewChanges::default());
        assert!(Rc::ptr_eq(&first, &same));
        // After a deletion the database lists everything, which is nothing here.
        let last = cache.renew(cache.known(), state(7, 1), &manifest, NewChanges::default());
        assert!(last.unqueryable.is_empty());
    }
}
