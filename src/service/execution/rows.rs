//! The rows of the data that the guides of a call read.

use super::stage::Stage;
use crate::aql::RowValue;
use crate::gdl::Population;
use crate::service::error::{Failure, shortened};
use crate::service::query::RowVisitor;

/// The maximum bytes of data that the guides of a call read, as [`Population::bytes`] counts them.
const MAX_READ: usize = 30_000_000;

/// The receiver of the rows that the guides of all stages read.
pub(super) struct StageRows<'s> {
    /// For each stage its data.
    pub populations: Vec<Population<'s>>,
    /// For each query its stage, and its number there.
    pub owners: Vec<(usize, usize)>,
    /// The bytes of all data, as [`Population::bytes`] counts them.
    read: usize,
    /// Whether a row belongs to no stage, so that data may be missing.
    pub is_incomplete: bool,
}

impl<'s> StageRows<'s> {
    pub fn of(stages: &'s [Stage<'_>]) -> StageRows<'s> {
        let populations: Vec<Population<'_>> = stages.iter().map(Stage::population).collect();
        let owners = (0..)
            .zip(&populations)
            .flat_map(|(i, p)| (0..p.queries().len()).map(move |query| (i, query)))
            .collect();
        StageRows {
            populations,
            owners,
            read: 0,
            is_incomplete: false,
        }
    }

    /// Returns whether the data exceed the limit of a call.
    pub fn is_too_much(&self) -> bool {
        self.read > MAX_READ
    }
}

impl RowVisitor for StageRows<'_> {
    fn row(&mut self, query: usize, number: u64, row: &[RowValue<'_>]) {
        // Data beyond the limit are not kept, as the call fails.
        if self.is_too_much() {
            return;
        }
        let owner = self.owners.get(query);
        let owner = owner.and_then(|(stage, query)| {
            let population = self.populations.get_mut(*stage)?;
            Some((population, *query))
        });
        let Some((population, query)) = owner else {
            self.is_incomplete = true;
            return;
        };
        // An instance that replaces others can make the data smaller.
        self.read -= population.bytes();
        population.add(query, number, row);
        self.read += population.bytes();
    }

    fn reads_backward(&self, query: usize) -> bool {
        let owner = self.owners.get(query);
        owner.is_some_and(|(stage, query)| {
            let population = self.populations.get(*stage);
            population.is_some_and(|population| population.reads_latest(*query))
        })
    }

    fn restart(&mut self) {
        self.populations.iter_mut().for_each(Population::clear);
        self.read = 0;
    }
}

/// Returns the error for guides that would read too much data.
pub(super) fn too_much_data(stages: &[Stage<'_>], ids: &[String]) -> Failure {
    let remedy = match (ids, stages) {
        ([_], [_]) => "restrict the data by predicates",
        ([_], _) => "name fewer guides, or restrict the data by predicates",
        _ => "name fewer EHRs, or fewer guides",
    };
    let read = format!("the guides would read more than {MAX_READ} bytes of data");
    let whose = match ids {
        [id] => format!(" of EHR {}", shortened(id)),
        _ => String::new(),
    };
    Failure::bad_request(format!("{read}{whose}: {remedy}"))
}
