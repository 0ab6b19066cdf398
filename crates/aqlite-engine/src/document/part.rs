//! Parts of a batch that may be loaded after the batch.
//!
//! A batch that was made of documents owns all its parts. A batch that was read from a segment
//! knows its layouts only; each other part is loaded when a query first reads it. A read of an
//! absent part returns nothing and records that the part is wanted. An answer is valid only if no
//! read found its part absent while it was computed: see [`absent_reads`]. That a part is wanted
//! does not show this, because another query of the same batch may have loaded the part since.
//!
//! A batch that was read from a checkpoint reads each part from its file at the first use, and owns
//! a part from the first change on: see [`super::CheckpointWriter`].

use super::part_file::{PartFile, Region};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

thread_local! {
    static ABSENT_READS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of reads of absent parts on this thread.
///
/// A computation on this thread that leaves the number as it was has read no absent part.
pub fn absent_reads() -> u64 {
    ABSENT_READS.get()
}

/// A part that is owned, or loaded later.
#[derive(Debug)]
pub(super) enum Part<T> {
    /// The part of a batch that can grow.
    Owned(T),
    /// The part of a segment.
    Late(Late<T>),
    /// The part of a checkpoint, which was not changed since.
    Stored(Box<Stored<T>>),
}

/// A part of a checkpoint: read from its file at the first use.
#[derive(Clone, Debug)]
pub(super) struct Stored<T> {
    file: Rc<PartFile>,
    region: Region,
    /// The expected sizes, which decoding checks.
    sizes: (u32, u32),
    value: OnceCell<T>,
}

/// A part that can be restored from its stored bytes.
pub(super) trait Restore: Sized {
    /// Restores a part. `sizes` are the numbers that the head of the checkpoint states for it.
    ///
    /// # Errors
    /// If the bytes are damaged, or state other sizes.
    fn restore(bytes: &[u8], sizes: (u32, u32)) -> Result<Self, &'static str>;
}

impl<T: Restore> Stored<T> {
    /// Returns the part; `None` if it cannot be read, which the file records.
    fn get(&self) -> Option<&T> {
        if let Some(value) = self.value.get() {
            return Some(value);
        }
        let value = self
            .file
            .read(self.region, |bytes| T::restore(bytes, self.sizes))?;
        Some(self.value.get_or_init(|| value))
    }
}

/// A part of a segment: absent until it is loaded, and then immutable.
#[derive(Debug)]
pub(super) struct Late<T> {
    value: OnceLock<Arc<T>>,
    wanted: AtomicBool,
}

impl<T> Default for Late<T> {
    fn default() -> Late<T> {
        Late {
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
            Part::Late(late) => Part::Late(Late {
                value: late.value.clone(),
                wanted: AtomicBool::new(late.wanted.load(Ordering::Relaxed)),
            }),
            Part::Stored(stored) => Part::Stored(stored.clone()),
        }
    }
}

impl<T> Part<T> {
    /// An absent part.
    pub fn absent() -> Part<T> {
        Part::Late(Late::default())
    }

    /// A part of a checkpoint.
    pub fn stored(file: &Rc<PartFile>, region: Region, sizes: (u32, u32)) -> Part<T> {
        Part::Stored(Box::new(Stored {
            file: Rc::clone(file),
            region,
            sizes,
            value: OnceCell::new(),
        }))
    }

    /// Returns the place of an unchanged part in a checkpoint.
    pub fn unchanged(&self) -> Option<(&PartFile, Region)> {
        match self {
            Part::Stored(stored) => Some((&stored.file, stored.region)),
            _ => None,
        }
    }

    /// Returns the part; records that it is wanted where it is absent.
    pub fn get(&self) -> Option<&T>
    where
        T: Restore,
    {
        match self {
            Part::Owned(value) => Some(value),
            Part::Stored(stored) => stored.get(),
            Part::Late(late) => {
                let value = late.value.get();
                if value.is_none() {
                    // Relaxed suffices: the flag is only a request, and `OnceLock` publishes the
                    // part itself.
                    late.wanted.store(true, Ordering::Relaxed);
                    ABSENT_READS.set(ABSENT_READS.get().wrapping_add(1));
                }
                value.map(|value| &**value)
            }
        }
    }

    /// Returns the part to be changed, if this batch owns it, or can own it.
    pub fn owned(&mut self) -> Option<&mut T>
    where
        T: Restore,
    {
        if let Part::Stored(stored) = self {
            stored.get()?;
            let value = stored.value.take()?;
            *self = Part::Owned(value);
        }
        match self {
            Part::Owned(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the part if it is there, without wanting it.
    pub fn present(&self) -> Option<&T> {
        match self {
            Part::Owned(value) => Some(value),
            Part::Late(late) => late.value.get().map(|value| &**value),
            Part::Stored(stored) => stored.value.get(),
        }
    }

    /// Returns whether a read of the absent part was attempted.
    pub fn is_wanted(&self) -> bool {
        match self {
            Part::Owned(_) | Part::Stored(_) => false,
            Part::Late(late) => late.value.get().is_none() && late.wanted.load(Ordering::Relaxed),
        }
    }

    /// Stores a loaded part. A part that is there already stays, as both are the same.
    pub fn load(&self, value: Arc<T>) {
        if let Part::Late(late) = self {
            let _ = late.value.set(value);
        }
    }

    /// Returns the loaded part, for another batch of the same segment.
    pub fn share(&self) -> Option<Arc<T>> {
        match self {
            Part::Owned(_) | Part::Stored(_) => None,
            Part::Late(late) => late.value.get().cloned(),
        }
    }
}
