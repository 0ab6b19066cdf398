//! Partial results: a query is evaluated on parts of the documents, each by a run of its own, and
//! the results are merged. The runs may be on different threads.

use super::execution_path::TakenPaths;
use super::output::OutputPart;
use super::{QueryError, Run};
use crate::answer::scan::Progress;

/// The rows and groups of a query on a part of the documents.
///
/// It has no reference to documents or plan, so it can be sent to another thread. The query is
/// [`Query::of_part`](crate::answer::query::Query::of_part).
pub struct PartialResult {
    output: OutputPart,
    work: u64,
    pruned_rows: u64,
    taken: TakenPaths,
}

/// Compiles only if a partial result can be sent to another thread.
const _: fn(PartialResult) -> Box<dyn Send> = |partial| Box::new(partial);

impl Run<'_> {
    /// Returns the rows and groups of all batches so far.
    ///
    /// # Errors
    /// If the run exceeded a limit or was cancelled, or an invariant is broken.
    pub fn into_partial(self) -> Result<PartialResult, QueryError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.work.check()?;
        if self.open.is_some() || self.search.is_some() {
            return Err(QueryError::Broken("a partial result ends within a batch"));
        }
        Ok(PartialResult {
            output: self.output.into_part().map_err(QueryError::Broken)?,
            work: self.work.spent(),
            pruned_rows: self.work.pruned_rows(),
            taken: self.work.taken.clone(),
        })
    }

    /// Adds a partial result. Its documents must follow all documents of the run so far.
    ///
    /// Returns [`Progress::Enough`] if no more results are needed, because the window is full or
    /// the run has failed.
    pub fn absorb(&mut self, partial: PartialResult) -> Progress {
        if self.failure.is_some() {
            return Progress::Enough;
        }
        self.work.add(partial.work);
        self.work.add_pruned_rows(partial.pruned_rows);
        self.work.taken.note_all(&partial.taken);
        self.output.absorb(self.plan, partial.output, &self.work);
        let broken = self.output.broken().map(QueryError::Broken);
        let within = self.work.check();
        let within = within.and_then(|()| self.output.check_limits(&self.budget, &self.work));
        self.failure = broken.or(within.err());
        if self.failure.is_some() || self.is_full() {
            Progress::Enough
        } else {
            Progress::More
        }
    }
}
