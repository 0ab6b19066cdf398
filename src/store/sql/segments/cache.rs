//! The cache of segments: heads, loaded parts, and the changes since the segments were written.

use crate::document::{Batch, PastState, Segment, SegmentState, share_parts};
use crate::store::repository::StoreError;
use crate::store::scan::Snapshot;
use crate::store::sql::value::{Fields, Row};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// The number of tables that segments may use. Higher numbers are those of tables of rows in no
/// segment.
pub(super) const TABLES: u32 = 1 << 30;

/// A segment of the manifest.
pub(super) struct ManifestEntry {
    pub first: u64,
    pub last: u64,
    pub state: u64,
    /// The number of its documents, or of its EHRs.
    pub rows: u64,
    /// The segment id, which the keys of its blobs have.
    pub id: String,
    /// The bytes of memory that it took while it was written.
    pub memory: u64,
}

impl ManifestEntry {
    /// Reads the rows of the manifest.
    ///
    /// # Errors
    /// If two segments hold one id, because queries would count its row twice, or if a segment has
    /// ids that its state lacks.
    pub fn all(rows: Vec<Row>) -> Result<Vec<ManifestEntry>, StoreError> {
        let manifest = rows.into_iter().map(ManifestEntry::of);
        let manifest: Vec<ManifestEntry> = manifest.collect::<Result<_, _>>()?;
        let is_range =
            |of: &ManifestEntry| 0 < of.first && of.first <= of.last && of.last <= of.state;
        if manifest.iter().all(is_range) && manifest.is_sorted_by(|one, next| one.last < next.first)
        {
            return Ok(manifest);
        }
        let what = "the segments of the manifest overlap, or are newer than their states";
        Err(StoreError::Failed(what.to_owned()))
    }

    /// Returns whether a segment has as many documents, or EHRs if it has no document, as the
    /// manifest says, each once and with an id in its range.
    fn is_of(&self, segment: &Segment) -> bool {
        let Ok(batch) = segment.batch(&SegmentState::default()) else {
            return false;
        };
        let documents = 0..batch.len() as u32;
        let ids: Vec<u64> = match batch.is_empty() {
            true => segment.ehrs().to_vec(),
            false => documents.filter_map(|d| batch.ordinal_of(d)).collect(),
        };
        let ends = [ids.first(), ids.last()];
        let range = self.first..=self.last;
        ids.len() as u64 == self.rows
            && ids.is_sorted_by(|one, next| one < next)
            && ends.into_iter().flatten().all(|id| range.contains(id))
    }

    /// Reads a row of the manifest.
    fn of(row: Row) -> Result<ManifestEntry, StoreError> {
        let mut fields = Fields::of(row);
        Ok(ManifestEntry {
            first: fields.number()?,
            last: fields.number()?,
            state: fields.number()?,
            rows: fields.number()?,
            id: fields.text()?,
            memory: fields.number()?,
        })
    }
}

/// The changes since the segments were written, up to one state of the repository.
#[derive(Default)]
pub(super) struct Overlay {
    /// Versions that were superseded, ascending.
    superseded: Vec<u64>,
    /// EHRs that population queries do not read, ascending.
    unqueryable: Rc<[u64]>,
    /// The overlay lacks versions that were superseded by a version up to this one.
    known_from: u64,
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
    fn is_empty(&self) -> bool {
        [&self.superseded, &self.unqueryable, &self.queryable]
            .into_iter()
            .all(Vec::is_empty)
    }
}

impl Overlay {
    /// Creates an overlay of all changes since a version.
    fn since(known_from: u64, changes: NewChanges) -> Overlay {
        Overlay {
            superseded: ascending(changes.superseded),
            unqueryable: ascending(changes.unqueryable).into(),
            known_from,
        }
    }

    /// Creates the overlay of a later state from this one and the changes between them.
    /// `has_all` means that the changes list all EHRs that population queries do not read.
    fn with(&self, mut changes: NewChanges, has_all: bool) -> Overlay {
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
    pub fn knows(&self, manifest: &ManifestEntry) -> bool {
        manifest.state >= self.known_from
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
    overlay: Rc<Overlay>,
    /// The state of the overlay; `None` if the next query reads everything again.
    pub state: Option<Snapshot>,
    /// The number of times that the past of the database was another one.
    breaks: u64,
}

/// A segment with its head and its loaded parts.
pub(in crate::store::sql) struct CachedSegment {
    pub first: u64,
    pub last: u64,
    pub id: String,
    pub segment: Segment,
    /// Absent until a query reads the segment.
    current: RefCell<Option<BatchInState>>,
}

/// The batch of a segment in one state.
struct BatchInState {
    batch: Rc<Batch>,
    /// The superseded versions and unqueryable EHRs of which the batch knows.
    superseded: Vec<u64>,
    unqueryable: Rc<[u64]>,
}

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

impl CachedSegment {
    /// Returns the batch in the state of an overlay. If `keeps` is true, later queries get it too.
    ///
    /// A query keeps the batch that it got, because others may replace the cached batch by one of a
    /// newer state while it waits.
    ///
    /// # Errors
    /// If the head is damaged.
    pub fn batch(&self, overlay: &Overlay, keeps: bool) -> Result<Rc<Batch>, &'static str> {
        // The overlay has the ids of all segments in ascending order. Those of this segment are
        // adjacent.
        let from = overlay.superseded.partition_point(|id| *id < self.first);
        let to = overlay.superseded.partition_point(|id| *id <= self.last);
        let superseded = overlay.superseded.get(from..to).unwrap_or_default();
        let state = SegmentState {
            superseded,
            unqueryable: &overlay.unqueryable,
        };
        let mut current = self.current.borrow_mut();
        let batch = match &*current {
            Some(current) if current.is_in(superseded, &overlay.unqueryable) => {
                return Ok(Rc::clone(&current.batch));
            }
            Some(current) => self.segment.renewed(&current.batch, &state)?,
            None => self.segment.batch(&state)?,
        };
        let batch = Rc::new(batch);
        if keeps {
            *current = Some(BatchInState {
                batch: Rc::clone(&batch),
                superseded: superseded.to_vec(),
                unqueryable: Rc::clone(&overlay.unqueryable),
            });
        }
        Ok(batch)
    }

    /// Loads parts into a batch from the value that holds them.
    ///
    /// # Errors
    /// If the value does not hold them, or is damaged.
    pub fn load(&self, batch: &Batch, parts: &[u32], value: &[u8]) -> Result<(), &'static str> {
        for part in parts {
            let bytes = self
                .segment
                .place(*part)
                .and_then(|place| value.get(place.start as usize..place.end as usize));
            let bytes = bytes.ok_or("a value of a segment is too short")?;
            self.segment.load(batch, *part, bytes)?;
        }
        Ok(())
    }

    /// Returns the batch in an older state than that of `batch`.
    ///
    /// # Errors
    /// If the head is damaged.
    pub fn in_past(&self, batch: &Batch, past: &PastState<'_>) -> Result<Rc<Batch>, &'static str> {
        self.segment.in_past(batch, past).map(Rc::new)
    }

    /// Returns the batch in the state of `batch`, without any part. Later queries get it too, if
    /// they would have got `batch`.
    ///
    /// # Errors
    /// If the head is damaged.
    pub fn without_parts(&self, batch: &Rc<Batch>) -> Result<Rc<Batch>, &'static str> {
        let bare = Rc::new(self.segment.without_parts(batch)?);
        if let Some(current) = &mut *self.current.borrow_mut()
            && Rc::ptr_eq(&current.batch, batch)
        {
            current.batch = Rc::clone(&bare);
        }
        Ok(bare)
    }

    /// Keeps the parts that a batch of another state has for later queries.
    pub fn keep_parts(&self, batch: &Rc<Batch>) {
        if let Some(current) = &*self.current.borrow()
            && !Rc::ptr_eq(&current.batch, batch)
        {
            share_parts(batch, &current.batch);
        }
    }

    /// Drops the parts for later queries. Returns the batch that has them, which lives as long as
    /// queries read it.
    fn forget_parts(&self) -> Weak<Batch> {
        let before = self.current.take();
        before.map_or_else(Weak::new, |before| Rc::downgrade(&before.batch))
    }

    /// Returns the bytes of the loaded parts.
    fn late_bytes(&self) -> usize {
        let current = self.current.borrow();
        current
            .as_ref()
            .map_or(0, |current| current.batch.late_bytes())
    }
}

impl BatchInState {
    fn is_in(&self, superseded: &[u64], unqueryable: &Rc<[u64]>) -> bool {
        // Most queries find the list of the query before, which has one element for each EHR.
        let is_same = Rc::ptr_eq(&self.unqueryable, unqueryable);
        self.superseded == superseded && (is_same || self.unqueryable == *unqueryable)
    }
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
        let cached = Rc::new(CachedSegment {
            first: entry.first,
            last: entry.last,
            id: entry.id.clone(),
            segment,
            current: RefCell::default(),
        });
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
        let first = cache.renew(
            cache.known(),
            state(5, 0),
            &manifest,
            changes(&[], &[2], &[]),
        );
        let same = cache.renew(cache.known(), state(6, 0), &manifest, NewChanges::default());
        assert!(Rc::ptr_eq(&first, &same));
        // After a deletion the database lists everything, which is nothing here.
        let last = cache.renew(cache.known(), state(7, 1), &manifest, NewChanges::default());
        assert!(last.unqueryable.is_empty());
    }
}
