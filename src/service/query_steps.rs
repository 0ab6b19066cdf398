//! Queries on a repository in memory that run in steps, so that their host can do other work in
//! between, and the pauses between such steps.

use crate::aql::{Budget, Plan, QueryError, ResultFormat, ResultSet, Run};
use crate::store::memory::Memory;
use crate::store::repository::{Pause, StoreError};
use crate::store::scan::{Progress, Scan, Snapshot};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A query that runs in steps. It reads the state at its begin, whatever is written meanwhile: see
/// [`MemoryScan::restart_if_changed`].
///
/// [`MemoryScan::restart_if_changed`]: crate::store::memory::MemoryScan::restart_if_changed
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
            let begin = || Run::new(&plan, &now, budget, &|| false);
            let mut run = begin();
            while scan.step(|batch| run.advance(batch))? == Progress::Paused {
                next_poll().await;
                if scan.restart_if_changed()? {
                    run = begin();
                }
            }
            while run.close() == Progress::Paused {
                next_poll().await;
            }
            Ok((run.finish(), scan.snapshot()))
        })))
    }

    /// Runs the next step. It must not be called again after the outcome.
    pub fn step(&mut self) -> Poll<StepsOutcome> {
        Pin::new(self).poll(&mut Context::from_waker(Waker::noop()))
    }
}

impl Future for QuerySteps {
    type Output = StepsOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<StepsOutcome> {
        self.0.as_mut().poll(context)
    }
}

/// Returns a pause that ends with the next poll, for hosts that poll a request step by step and do
/// other work in between.
pub fn next_poll() -> Pause {
    let mut is_polled = false;
    Box::pin(poll_fn(move |_| {
        match std::mem::replace(&mut is_polled, true) {
            false => Poll::Pending,
            true => Poll::Ready(()),
        }
    }))
}

/// The bytes of a result that are written between two pauses.
const PIECE: usize = 1 << 20;

/// Returns the JSON text `{"columns":[{name, path}],"rows":[[…]]}` of a result. It is written in
/// steps: see [`next_poll`].
pub async fn json_in_steps(result: &ResultSet) -> String {
    let mut out = json_head(result);
    let (format, mut rows) = (ResultFormat::Json, 0);
    format.begin(&mut out);
    while rows < result.len() {
        let end = out.len() + PIECE;
        rows = result.write_piece(&format, rows, (end, usize::MAX), &mut out);
        next_poll().await;
    }
    format.end(&mut out);
    out.push('}');
    out
}

/// Returns the JSON text of a result before its rows.
pub fn json_head(result: &ResultSet) -> String {
    let columns: Vec<Value> = result
        .columns
        .iter()
        .map(|c| json!({ "name": c.name, "path": c.path }))
        .collect();
    format!("{{\"columns\":{},\"rows\":", Value::from(columns))
}
