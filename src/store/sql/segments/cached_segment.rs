//! A segment in the cache, and its batch in the state of the queries that read it.

use super::manifest::ManifestEntry;
use super::overlay::Overlay;
use crate::document::{Batch, PastState, Segment, SegmentState, share_parts};
use std::cell::RefCell;
use std::rc::{Rc, Weak};

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

impl CachedSegment {
    /// Creates the segment of an entry of the manifest, of which no query has read a batch.
    pub(super) fn of(entry: &ManifestEntry, segment: Segment) -> CachedSegment {
        CachedSegment {
            first: entry.first,
            last: entry.last,
            id: entry.id.clone(),
            segment,
            current: RefCell::default(),
        }
    }

    /// Returns the batch in the state of an overlay. If `keeps` is true, later queries get it too.
    ///
    /// A query keeps the batch that it got, because others may replace the cached batch by one of a
    /// newer state while it waits.
    ///
    /// # Errors
    /// If the head is damaged.
    pub(super) fn batch(&self, overlay: &Overlay, keeps: bool) -> Result<Rc<Batch>, &'static str> {
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
    pub(super) fn forget_parts(&self) -> Weak<Batch> {
        let before = self.current.take();
        before.map_or_else(Weak::new, |before| Rc::downgrade(&before.batch))
    }

    /// Returns the bytes of the loaded parts.
    pub(super) fn late_bytes(&self) -> usize {
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
