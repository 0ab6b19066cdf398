//! Results as tables of Arrow and Parquet: their format, and the progress of one that is sent in
//! parts.

use crate::arrow::{ColumnTypes, TableFormat, TableWriter, Times};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The form of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    pub format: TableFormat,
    /// The form of date-times.
    pub times: Times,
}

impl Table {
    /// Returns the name of the form in entity tags: `arrow`, `parquet;times=text`. A new release
    /// keeps it.
    pub fn name(self) -> String {
        let format = self.format.name();
        if self.times == Times::default() {
            return format.to_owned();
        }
        format!("{format};times={}", self.times.name())
    }
}

/// A pass over the rows of a result that is sent in parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pass {
    /// Finds the types of the columns. Nothing is sent.
    Observe,
    /// Writes the rows.
    Write,
}

/// The table of a result that is sent in parts. The requests for its parts share its progress.
#[derive(Clone)]
pub(crate) struct TablePart {
    pub pass: Pass,
    progress: Arc<Mutex<TableStage>>,
}

/// The progress of a table between two parts.
#[derive(Default)]
pub(crate) enum TableStage {
    /// Nothing was observed, or the table is complete, or one of its parts has failed.
    #[default]
    None,
    /// The types of the rows so far.
    Observed(ColumnTypes),
    /// The table so far.
    Written(Box<TableWriter>),
}

impl TablePart {
    /// Creates the first part of a table.
    pub fn new() -> TablePart {
        TablePart {
            pass: Pass::Observe,
            progress: Arc::default(),
        }
    }

    /// Returns the first part of the second pass.
    pub fn written(&self) -> TablePart {
        TablePart {
            pass: Pass::Write,
            progress: Arc::clone(&self.progress),
        }
    }

    /// Takes the progress. It is none until [`TablePart::set`], so a part after one that has failed
    /// fails too.
    pub fn take(&self) -> TableStage {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *progress)
    }

    /// Sets the progress.
    pub fn set(&self, progress: TableStage) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }
}

impl fmt::Debug for TablePart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TablePart({:?})", self.pass)
    }
}

impl PartialEq for TablePart {
    fn eq(&self, other: &TablePart) -> bool {
        self.pass == other.pass && Arc::ptr_eq(&self.progress, &other.progress)
    }
}

impl Eq for TablePart {}
