//! Queries on a repository in memory that run in steps, so that their host can do other work in
//! between.

use crate::aql::{Budget, Plan, QueryError, ResultSet, Run};
use crate::store::memory::Memory;
use crate::store::repository::StoreError;
use crate::store::scan::{Progress, Scan, Snapshot};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A query that runs in steps. It is void if the repository changes meanwhile.
pub struct QuerySteps(Pin<Box<dyn Future<Output = StepsOutcome>>>);

/// The result of a run, and the state of the data that it read; or the failure of the repository.
pub type StepsOutcome = Result<(Result<ResultSet, QueryError>, Snapshot), StoreError>;

impl QuerySteps {
    /// Begins a run of a plan on a state of the data; without one on the newest. `now` as in
    /// [`Run::new`]. A step does about as much work as [`Budget::piece`] allows.
    ///
    /// # Errors
    /// [`StoreError::SnapshotGone`] and [`StoreError::NoSuchSnapshot`].
    pub fn new(
        memory: &Memory,
        plan: Plan,
        now: String,
        budget: Budget,
        snapshot: Option<Snapshot>,
    ) -> Result<QuerySteps, StoreError> {
        let mut scan = memory.begin_scan(&Scan {
            snapshot,
            ..plan.scan().clone()
        })?;
        Ok(QuerySteps(Box::pin(async move {
            let mut run = Run::new(&plan, &now, budget, &|| false);
            while scan.step(|batch| run.advance(batch))? == Progress::Paused {
                end_of_step().await;
            }
            while run.close() == Progress::Paused {
                end_of_step().await;
            }
            Ok((run.finish(), scan.snapshot()))
        })))
    }

    /// Runs the next step. It must not be called again after the outcome.
    pub fn step(&mut self) -> Poll<StepsOutcome> {
        self.0
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }
}

/// Waits for the next poll.
async fn end_of_step() {
    let mut is_polled = false;
    poll_fn(|_| match std::mem::replace(&mut is_polled, true) {
        false => Poll::Pending,
        true => Poll::Ready(()),
    })
    .await;
}
