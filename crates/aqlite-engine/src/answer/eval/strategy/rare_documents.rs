//! The documents that a void run visits beside its sample: see [`Work::samples`].
//!
//! [`Work::samples`]: crate::answer::eval::work::Work::samples

use crate::answer::eval::Run;
use crate::document::Batch;
use aqlite_rm::order;

/// The number of rows of a table up to which a sample of all documents can miss it.
const RARE: usize = 2048;

/// The documents, or their EHRs, of tables that a sample can miss: one for each table.
pub(super) struct Rare {
    /// Returns the number of the unit that the walk visits for a document.
    unit_of: fn(&Batch, u32) -> Option<u32>,
    /// The numbers of the units, ascending; `None` before the first use.
    units: Option<Vec<u32>>,
}

impl Rare {
    /// Creates a list for a walk through documents.
    pub fn documents() -> Rare {
        Rare {
            unit_of: |_, document| Some(document),
            units: None,
        }
    }

    /// Creates a list for a walk through EHRs.
    pub fn ehrs() -> Rare {
        Rare {
            unit_of: Batch::ehr_of,
            units: None,
        }
    }

    /// Returns whether a document or EHR belongs to the list.
    pub fn contains(&mut self, run: &Run<'_>, batch: &Batch, unit: u32) -> bool {
        self.find(run, batch).binary_search(&unit).is_ok()
    }

    /// Finds the documents or EHRs. The absent lists of rare tables are marked as wanted, so that
    /// the next attempt can find more.
    pub fn find(&mut self, run: &Run<'_>, batch: &Batch) -> &[u32] {
        self.units.get_or_insert_with(|| {
            let documents = first_documents(run, batch).into_iter();
            let units = documents.filter_map(|document| (self.unit_of)(batch, document));
            let mut units: Vec<u32> = units.collect();
            order::sort(&mut units);
            units
        })
    }
}

/// Returns the first document of each rare table whose lists are loaded.
fn first_documents(run: &Run<'_>, batch: &Batch) -> Vec<u32> {
    // A query for its first rows rarely needs all tables.
    if run.output.missing().is_some() {
        return Vec::new();
    }
    let rare = batch.tables().filter(|(_, table)| table.len() <= RARE);
    let firsts = rare.filter_map(|(_, table)| {
        table.want_child_lists();
        table.docs().first().copied()
    });
    firsts.collect()
}
