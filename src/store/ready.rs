//! Runs futures that never wait, for synchronous hosts (browser memory, SQLite in tests,
//! command-line tools).

use std::fmt;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Polls a future once and returns its output.
///
/// [`super::memory::Memory`] and [`super::sql::SqlRepository`] over a synchronous executor only
/// make futures that are ready.
///
/// # Errors
/// [`NotReady`] if the future is not ready.
pub fn now_or_never<F: Future>(future: F) -> Result<F::Output, NotReady> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err(NotReady),
    }
}

/// The error for a future that waits for something outside, which a synchronous host cannot supply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotReady;

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the future waits for input or output, but its host is synchronous")
    }
}

impl std::error::Error for NotReady {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_futures_finish_and_waiting_ones_are_refused() {
        assert_eq!(
            now_or_never(async { std::future::ready(3).await + 1 }),
            Ok(4)
        );
        assert_eq!(now_or_never(std::future::pending::<u8>()), Err(NotReady));
    }
}
