//! The cache of segments: heads, loaded parts, and the changes since the segments were written.

use crate::document::{Batch, Segment, SegmentState};
use crate::store::repository::StoreError;
use crate::store::scan::Snapshot;
use crate::store::sql::value::{Fields, Row};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of loaded parts beyond which the parts of all segments are dropped before a query.
const KEPT: usize = 40 << 20;

/// A segment of the manifest.
pub(super) struct Listed {
    pub first: u64,
    pub last: u64,
    pub state: u64,
    pub blob: String,
    pub bytes: u64,
}

impl Listed {
    /// Reads a row of the manifest.
    pub fn of(row: Row) -> Result<Listed, StoreError> {
        let mut fields = Fields::of(row);
        Ok(Listed {
            first: fields.number()?,
            last: fields.number()?,
            state: fields.number()?,
            blob: fields.text()?,
            bytes: fields.number()?,
        })
    }
}

/// The changes that no segment shows.
#[derive(Default)]
pub(super) struct Overlay {
    /// Versions that were superseded, ascending.
    pub superseded: Vec<u64>,
    /// EHRs that population queries do not read, ascending.
    pub unqueryable: Vec<u64>,
}

/// A segment with its head and its loaded parts.
pub(super) struct Held {
    pub last: u64,
    pub blob: String,
    first: u64,
    pub segment: Segment,
    batch: RefCell<Rc<Batch>>,
    /// The superseded versions and unqueryable EHRs of which the batch knows.
    applied: RefCell<(Vec<u64>, Vec<u64>)>,
}

#[derive(Default)]
pub(super) struct Cache {
    held: HashMap<String, Rc<Held>>,
    overlay: Overlay,
    /// The newest version whose predecessors are in the overlay.
    superseded_to: u64,
    /// The overlay has nothing that was superseded by a version up to this one.
    known_from: u64,
}

impl Held {
    /// The batch in the state of the last query.
    pub fn batch(&self) -> Rc<Batch> {
        Rc::clone(&self.batch.borrow())
    }

    /// Loads parts from the value that holds them.
    ///
    /// # Errors
    /// If the value does not hold them, or is damaged.
    pub fn load(&self, parts: &[u32], value: &[u8]) -> Result<(), &'static str> {
        let batch = self.batch();
        for part in parts {
            let bytes = self
                .segment
                .place(*part)
                .and_then(|place| value.get(place.start as usize..place.end as usize));
            let bytes = bytes.ok_or("a value of a segment is too short")?;
            self.segment.load(&batch, *part, bytes)?;
        }
        Ok(())
    }

    /// Brings the batch to the state that an overlay describes.
    fn apply(&self, overlay: &Overlay) -> Result<(), &'static str> {
        let from = overlay.superseded.partition_point(|id| *id < self.first);
        let to = overlay.superseded.partition_point(|id| *id <= self.last);
        let superseded = overlay.superseded.get(from..to).unwrap_or_default();
        let is_known = {
            let applied = self.applied.borrow();
            (applied.0.as_slice(), &applied.1) == (superseded, &overlay.unqueryable)
        };
        if !is_known {
            let state = SegmentState {
                superseded,
                unqueryable: &overlay.unqueryable,
            };
            let batch = self.segment.renewed(&self.batch(), &state)?;
            self.batch.replace(Rc::new(batch));
            self.applied
                .replace((superseded.to_vec(), overlay.unqueryable.clone()));
        }
        Ok(())
    }
}

impl Cache {
    /// The newest version whose predecessors are known to be superseded; 0 at first.
    pub fn superseded_to(&self) -> u64 {
        self.superseded_to
    }

    /// Forgets segments that the manifest does not name, and learns what was superseded since the
    /// last query.
    pub fn renew(&mut self, state: Snapshot, listed: &[Listed], more: Overlay) {
        let is_listed = |blob: &String| listed.iter().any(|listed| listed.blob == *blob);
        self.held.retain(|blob, _| is_listed(blob));
        let oldest = listed.iter().map(|listed| listed.state).min();
        if self.superseded_to == 0 {
            self.known_from = oldest.unwrap_or(0);
            self.overlay.superseded.clear();
        }
        self.overlay.superseded.extend(more.superseded);
        self.overlay.superseded.sort_unstable();
        self.overlay.superseded.dedup();
        self.overlay.unqueryable = more.unqueryable;
        // A segment may be listed late, with a state before the oldest one that was known. The next
        // query then asks for everything again.
        let is_complete = oldest.is_some_and(|oldest| oldest >= self.known_from);
        self.superseded_to = if is_complete { state.version } else { 0 };
        let overlay = &self.overlay;
        self.held.retain(|_, held| held.apply(overlay).is_ok());
    }

    /// Returns whether the overlay has all that was superseded since a segment was written.
    pub fn knows(&self, listed: &Listed) -> bool {
        listed.state >= self.known_from
    }

    /// A segment that is held.
    pub fn held(&self, blob: &str) -> Option<Rc<Held>> {
        self.held.get(blob).map(Rc::clone)
    }

    /// Holds a segment whose head was read; `None` where the head is damaged.
    pub fn hold(&mut self, listed: &Listed, head: &[u8]) -> Option<Rc<Held>> {
        let segment = Segment::read(head).ok()?;
        let batch = segment.batch(&SegmentState::default()).ok()?;
        let held = Held {
            first: listed.first,
            last: listed.last,
            blob: listed.blob.clone(),
            segment,
            batch: RefCell::new(Rc::new(batch)),
            applied: RefCell::default(),
        };
        held.apply(&self.overlay).ok()?;
        let held = Rc::new(held);
        self.held.insert(listed.blob.clone(), Rc::clone(&held));
        Some(held)
    }

    /// Drops all loaded parts if they are too many.
    pub fn make_room(&mut self, held: &[Rc<Held>]) {
        let bytes: usize = held.iter().map(|held| held.batch().late_bytes()).sum();
        if bytes > KEPT {
            for held in held {
                let (superseded, unqueryable) = held.applied.borrow().clone();
                let state = SegmentState {
                    superseded: &superseded,
                    unqueryable: &unqueryable,
                };
                if let Ok(empty) = held.segment.batch(&state) {
                    held.batch.replace(Rc::new(empty));
                }
            }
        }
    }
}
