//! Trial runs: queries that are run to learn about them, not for their rows.

use super::Service;
use super::query_memory::{ReadBudget, StopReason};
use super::run_host::RunHost;
use crate::aql::{Budget, Plan, QueryError, ResultSet, Run, ScanStatistics};
use crate::document::Batch;
use crate::store::repository::{BatchSink, Pause, Repository, ScanReads, StoreError};
use crate::store::scan::Progress;

/// The outcome of a trial run.
pub(super) struct Trial {
    /// The rows, or the reason for their absence.
    pub result: Result<ResultSet, String>,
    /// Units of work.
    pub work: u64,
    /// The rows that zone maps left out.
    pub left_out: u64,
    /// The data that it read, if they were to be recorded.
    pub touched: ScanStatistics,
    /// The reads of the repository.
    pub reads: ScanReads,
}

impl<R: Repository> Service<R> {
    /// Runs a query within a budget of work. `records` makes it record the data that it reads.
    pub(super) async fn trial(
        &self,
        plan: &Plan,
        work: u64,
        records: bool,
        host: &RunHost<'_>,
    ) -> Result<Trial, StoreError> {
        // The rows are counted and not shown, so they need only a part of the memory that queries
        // share.
        let budget = self.budget();
        let budget = Budget {
            bytes: budget.bytes / 4,
            work,
            ..budget
        };
        let mut sink = TrialSink {
            plan,
            touched: records.then(ScanStatistics::default),
            run: Run::new(plan, host.now, budget, host.is_stopped),
            budget,
            is_new: true,
            host,
            reading: ReadBudget::new(self.query_memory.share(), host.deadline),
            reads: ScanReads::default(),
        };
        self.repository.scan(plan.scan(), &mut sink).await?;
        let TrialSink {
            touched,
            mut run,
            reading,
            reads,
            ..
        } = sink;
        while run.close() == Progress::Paused {
            (host.pause)().await;
        }
        let (work, left_out) = (run.work(), run.pruned_rows());
        let result = match reading.refusal {
            None => run.finish().map_err(|error| error.to_string()),
            Some(StopReason::Late) => Err(QueryError::Stopped.to_string()),
            Some(StopReason::NoRoom(failure)) => Err(failure.into_fields().message),
        };
        Ok(Trial {
            result,
            work,
            left_out,
            touched: touched.unwrap_or_default(),
            reads,
        })
    }
}

/// A sink that runs a query and records the data that it reads.
struct TrialSink<'r, 'h> {
    plan: &'r Plan,
    /// Absent if the data are not recorded.
    touched: Option<ScanStatistics>,
    run: Run<'r>,
    budget: Budget,
    /// False between the steps of one batch.
    is_new: bool,
    host: &'h RunHost<'h>,
    reading: ReadBudget,
    reads: ScanReads,
}

impl<'h: 'r, 'r> BatchSink for TrialSink<'r, 'h> {
    fn take(&mut self, batch: &Batch) -> Progress {
        if let Some(touched) = self.touched.as_mut().filter(|_| self.is_new) {
            touched.add(self.plan, batch);
        }
        let progress = self.run.advance(batch);
        self.is_new = progress != Progress::Paused;
        let held = self.run.footprint();
        if self.reading.hold(held, (self.host.clock)()) {
            progress
        } else {
            Progress::Enough
        }
    }

    fn admit(&mut self, bytes: usize) -> bool {
        let held = self.run.footprint();
        self.reading.admit(bytes, held, (self.host.clock)())
    }

    fn needed_documents(&self, union: &Batch, most: usize) -> Option<Vec<Vec<u64>>> {
        self.run.needed_documents(union, most)
    }

    fn restart(&mut self) -> bool {
        let run = Run::new(self.plan, self.host.now, self.budget, self.host.is_stopped);
        let earlier = std::mem::replace(&mut self.run, run);
        self.run.take_over(earlier);
        if let Some(touched) = &mut self.touched {
            *touched = ScanStatistics::default();
        }
        self.is_new = true;
        self.reading.restart()
    }

    fn observe(&mut self, reads: &ScanReads) {
        self.reads = *reads;
    }

    fn pause(&self) -> Pause {
        (self.host.pause)()
    }
}
