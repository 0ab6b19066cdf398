//! The metadata of the documents of a batch, as columns.

use super::{Fragment, ObjectKind};
use crate::document::column::push;
use std::sync::Arc;

/// A document of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Doc {
    /// Its number in the batch.
    pub document: u32,
    /// The number of its EHR in the batch.
    pub ehr: u32,
    /// The metadata.
    pub row: DocState,
    /// The fragment of the ORIGINAL_VERSION.
    pub version: Fragment,
    /// The fragment of its data; a deletion has none.
    pub data: Option<Fragment>,
}

/// The part of a [`super::DocRow`] that a batch stores; the object id is part of the version uid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DocState {
    /// The kind of the versioned object.
    pub kind: ObjectKind,
    /// The number of the version, from 1.
    pub number: u32,
    /// Its place in the commit order of the whole repository.
    pub ordinal: u64,
    /// Whether this is the newest version of its object.
    pub latest: bool,
    /// Whether this is a version that says that the object is deleted.
    pub deleted: bool,
}

/// The documents, in commit order.
#[derive(Clone, Debug, Default)]
pub(in crate::document) struct Docs {
    /// Shared by the batches of one segment in its states.
    fixed: Arc<Fixed>,
    marks: Vec<Marks>,
    live: Vec<bool>,
}

/// The columns that never change.
#[derive(Clone, Debug, Default)]
struct Fixed {
    ehrs: Vec<u32>,
    numbers: Vec<u32>,
    ordinals: Vec<u64>,
    versions: Vec<Fragment>,
    /// [`Fragment::NONE`] for a deletion.
    data: Vec<Fragment>,
}

/// The fields of a [`DocState`] with few values.
#[derive(Clone, Copy, Debug)]
struct Marks {
    kind: ObjectKind,
    latest: bool,
    deleted: bool,
}

impl Docs {
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Adds a document behind all others; it is alive until that is found out.
    pub fn push(&mut self, doc: &Doc) {
        let DocState {
            kind,
            number,
            ordinal,
            latest,
            deleted,
        } = doc.row;
        let fixed = Arc::make_mut(&mut self.fixed);
        push(&mut fixed.ehrs, doc.ehr);
        push(&mut fixed.numbers, number);
        push(&mut fixed.ordinals, ordinal);
        push(&mut fixed.versions, doc.version);
        push(&mut fixed.data, doc.data.unwrap_or(Fragment::NONE));
        push(
            &mut self.marks,
            Marks {
                kind,
                latest,
                deleted,
            },
        );
        push(&mut self.live, true);
    }

    pub fn get(&self, document: u32) -> Option<Doc> {
        let at = document as usize;
        let Marks {
            kind,
            latest,
            deleted,
        } = *self.marks.get(at)?;
        let row = DocState {
            kind,
            number: *self.fixed.numbers.get(at)?,
            ordinal: *self.fixed.ordinals.get(at)?,
            latest,
            deleted,
        };
        Some(Doc {
            document,
            ehr: self.ehr(document)?,
            row,
            version: self.version(document)?,
            data: self.data(document),
        })
    }

    pub fn ehr(&self, document: u32) -> Option<u32> {
        self.fixed.ehrs.get(document as usize).copied()
    }

    pub fn version(&self, document: u32) -> Option<Fragment> {
        self.fixed.versions.get(document as usize).copied()
    }

    pub fn data(&self, document: u32) -> Option<Fragment> {
        self.fixed
            .data
            .get(document as usize)
            .copied()
            .filter(|data| *data != Fragment::NONE)
    }

    pub fn live(&self) -> &[bool] {
        &self.live
    }

    /// Sets whether population queries read a document. Returns whether that changed.
    pub fn set_live(&mut self, document: u32, lives: bool) -> bool {
        self.live
            .get_mut(document as usize)
            .is_some_and(|live| std::mem::replace(live, lives) != lives)
    }

    /// Records that a document is no longer the latest version of its object.
    pub fn supersede(&mut self, document: u32) {
        self.marks
            .get_mut(document as usize)
            .into_iter()
            .for_each(|marks| marks.latest = false);
    }

    pub fn bytes(&self) -> usize {
        const EACH: usize = 2 * size_of::<u32>()
            + size_of::<u64>()
            + size_of::<Marks>()
            + size_of::<bool>()
            + 2 * size_of::<Fragment>();
        self.marks.capacity() * EACH
    }
}
