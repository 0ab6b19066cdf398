//! Parts of a batch, which can be loaded after the batch.
//!
//! A batch that was made of documents owns all its parts. A batch that was read from a segment has
//! its layouts only; every other part is loaded when a query first reads it. A read of an absent
//! part returns nothing and marks the part as wanted. A result is valid only if no read found an
//! absent part while it was computed: see [`absent_reads`]. The marks alone do not show this,
//! because another query of the same batch can have loaded the part since.
//!
//! A batch that was opened from a checkpoint reads each part from the file at its first use, and
//! owns a part from its first change on: see [`super::CheckpointWriter`].

use super::part_file::{PartFile, Region};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

thread_local! {
    static ABSENT_READS: Cell<u64> = const { Cell::new(0) };
    static LOADS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of parts that were loaded on this thread. A batch of a segment has the same
/// parts as before if the number did not change.
pub(super) fn loads() -> u64 {
    LOADS.get()
}

/// Returns the number of reads of absent parts on this thread.
///
/// A computation on this thread has read no absent part if the number did not change.
pub fn absent_reads() -> u64 {
    ABSENT_READS.get()
}

/// A part that is owned, or loaded on demand.
#[derive(Debug)]
pub(super) enum Part<T> {
    /// A part of a batch that can grow.
    Owned(T),
    /// A part of a segment: absent until the store loads it.
    OfSegment(SegmentPart<T>),
    /// An unchanged part of a checkpoint: read from its file at the first use.
    OfCheckpoint(Box<CheckpointPart<T>>),
}

/// A part of a checkpoint, which is read from its file at the first use.
#[derive(Clone, Debug)]
pub(super) struct CheckpointPart<T> {
    file: Rc<PartFile>,
    region: Region,
    /// The expected number of rows, groups, texts or documents, which the decoder checks; 0 for a
    /// column, whose length its table determines.
    expected_len: u32,
    /// [`Restore::restore`]. A program that opens no checkpoint, such as the worker, so has no
    /// decoders of checkpoints.
    restore: RestorePart<T>,
    value: OnceCell<T>,
}

/// A function that decodes a part from its bytes and its expected length.
type RestorePart<T> = fn(&[u8], u32) -> Result<T, &'static str>;

/// A part that can be decoded from its stored bytes.
pub(super) trait Restore: Sized {
    /// Decodes a part. `expected_len` is the number that the head of the checkpoint has for it.
    ///
    /// # Errors
    /// If the bytes are damaged, or have another length.
    fn restore(bytes: &[u8], expected_len: u32) -> Result<Self, &'static str>;
}

impl<T> CheckpointPart<T> {
    /// Returns the part; `None` if it cannot be read, which the file records.
    fn get(&self) -> Option<&T> {
        if let Some(value) = self.value.get() {
            return Some(value);
        }
        let value = self.file.read(self.region, |bytes| {
            (self.restore)(bytes, self.expected_len)
        })?;
        Some(self.value.get_or_init(|| value))
    }
}

/// A part of a segment: absent until it is loaded, and immutable after that.
#[derive(Debug)]
pub(super) struct SegmentPart<T> {
    value: OnceLock<Arc<T>>,
    wanted: AtomicBool,
}

impl<T> Default for SegmentPart<T> {
    fn default() -> SegmentPart<T> {
        SegmentPart {
            value: OnceLock::new(),
            wanted: AtomicBool::new(false),
        }
    }
}

impl<T: Default> Default for Part<T> {
    fn default() -> Part<T> {
        Part::Owned(T::default())
    }
}

impl<T: Clone> Clone for Part<T> {
    fn clone(&self) -> Part<T> {
        match self {
            Part::Owned(value) => Part::Owned(value.clone()),
            Part::OfSegment(part) => Part::OfSegment(SegmentPart {
                value: part.value.clone(),
                wanted: AtomicBool::new(part.wanted.load(Ordering::Relaxed)),
            }),
            Part::OfCheckpoint(part) => Part::OfCheckpoint(part.clone()),
        }
    }
}

impl<T> Part<T> {
    /// Creates an absent part.
    pub fn absent() -> Part<T> {
        Part::OfSegment(SegmentPart::default())
    }

    /// Creates a part of a checkpoint.
    pub fn stored(file: &Rc<PartFile>, region: Region, expected_len: u32) -> Part<T>
    where
        T: Restore,
    {
        Part::OfCheckpoint(Box::new(CheckpointPart {
            file: Rc::clone(file),
            region,
            expected_len,
            restore: T::restore,
            value: OnceCell::new(),
        }))
    }

    /// Returns the file and the region of an unchanged part of a checkpoint.
    pub fn unchanged(&self) -> Option<(&PartFile, Region)> {
        match self {
            Part::OfCheckpoint(part) => Some((&part.file, part.region)),
            _ => None,
        }
    }

    /// Returns the part. Marks an absent part as wanted, and returns `None`.
    pub fn get(&self) -> Option<&T> {
        match self {
            Part::Owned(value) => Some(value),
            Part::OfCheckpoint(part) => part.get(),
            Part::OfSegment(part) => {
                let value = part.value.get();
                if value.is_none() {
                    // Relaxed suffices: the flag is only a request, and `OnceLock` publishes the
                    // part itself.
                    part.wanted.store(true, Ordering::Relaxed);
                    ABSENT_READS.set(ABSENT_READS.get().wrapping_add(1));
                }
                value.map(|value| &**value)
            }
        }
    }

    /// Returns the part for changes; `None` for a part of a segment. A part of a checkpoint becomes
    /// owned.
    pub fn owned(&mut self) -> Option<&mut T> {
        if let Part::OfCheckpoint(part) = self {
            part.get()?;
            let value = part.value.take()?;
            *self = Part::Owned(value);
        }
        match self {
            Part::Owned(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the part if it is in memory, without marking it as wanted.
    pub fn present(&self) -> Option<&T> {
        match self {
            Part::Owned(value) => Some(value),
            Part::OfSegment(part) => part.value.get().map(|value| &**value),
            Part::OfCheckpoint(part) => part.value.get(),
        }
    }

    /// Returns whether a read found the part absent.
    pub fn is_wanted(&self) -> bool {
        match self {
            Part::Owned(_) | Part::OfCheckpoint(_) => false,
            Part::OfSegment(part) => {
                part.value.get().is_none() && part.wanted.load(Ordering::Relaxed)
            }
        }
    }

    /// Stores a loaded part. If the part is loaded already, the value is dropped, as both are
    /// equal.
    pub fn load(&self, value: Arc<T>) {
        if let Part::OfSegment(part) = self
            && part.value.set(value).is_ok()
        {
            LOADS.set(LOADS.get().wrapping_add(1));
        }
    }

    /// Returns the loaded part, to share it with another batch of the same segment.
    pub fn share(&self) -> Option<Arc<T>> {
        match self {
            Part::Owned(_) | Part::OfCheckpoint(_) => None,
            Part::OfSegment(part) => part.value.get().cloned(),
        }
    }
}
