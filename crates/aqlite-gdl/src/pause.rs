//! Pauses of a run: a host lets other work continue between two statements.
//!
//! A run counts its steps, and pauses after [`TURN`](super::budget::TURN) of them, before the next
//! statement or instance. A single statement has a limit of its own
//! ([`STATEMENT`](super::budget::STATEMENT)), because nothing can pause within it.

use super::eval::Machine;
use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// A future that ends when the run may continue.
pub type Pause = Pin<Box<dyn Future<Output = ()>>>;

/// Returns the next pause of a run.
pub type NextPause<'p> = &'p dyn Fn() -> Pause;

impl Machine<'_> {
    /// Begins the next statement, after a pause if one is due.
    pub(crate) async fn pause_if_due(&self, next_pause: NextPause<'_>) {
        if self.budget.begin_statement() {
            next_pause().await;
        }
    }
}

/// Returns a pause that ends at once.
pub(crate) fn none() -> Pause {
    Box::pin(ready(()))
}

/// Returns the output of a future that does not wait: its pauses end at once. `None` if it waits.
pub(crate) fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
