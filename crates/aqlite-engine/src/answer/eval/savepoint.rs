//! Rollback of a run to its state between two batches.
//!
//! A repository that cannot hold the parts of all segments in memory sends the segments one after
//! the other. If a segment lacks parts, only its own evaluation is repeated; the rows of earlier
//! segments stay.

use super::Run;
use super::output::Output;
use super::top_k::BestRanks;
use std::rc::Rc;

/// The state of a run between two batches, to which the run can return. It takes as much memory as
/// the rows so far.
pub struct Savepoint {
    output: Output,
    best_ranks: BestRanks,
    is_at_window: bool,
}

impl Run<'_> {
    /// Returns the state of the run; `None` within a batch, or if the run has failed.
    pub fn savepoint(&self) -> Option<Savepoint> {
        let is_between = self.open.is_none() && self.failure.is_none();
        let is_between = is_between && self.counting.is_none() && self.search.is_none();
        is_between.then(|| Savepoint {
            output: self.output.clone(),
            best_ranks: self.work.best_ranks.borrow().clone(),
            is_at_window: self.is_at_window,
        })
    }

    /// Restores a state. Rows that were added since are discarded; the work that was spent stays
    /// counted.
    pub fn roll_back(&mut self, to: &Savepoint) {
        self.output = to.output.clone();
        *self.work.best_ranks.borrow_mut() = to.best_ranks.clone();
        self.is_at_window = to.is_at_window;
        (self.open, self.counting, self.failure) = (None, None, None);
        (self.search, self.joinable) = (None, None);
        self.trail = Rc::default();
        self.ehrs = None;
        self.work.roll_back();
    }
}
