//! Pauses of computations. Of those that wait, one continues in each turn of the event loop.
//!
//! The timers of several computations may be due in the same turn. Their pieces would then follow
//! one another, and the event loop would read no new request in between.

use std::cell::Cell;
use std::time::Duration;
use worker::Delay;

thread_local! {
    /// The number of pieces that began after a pause.
    static BEGUN: Cell<u64> = const { Cell::new(0) };
    /// The number of computations that wait. The runtime may forget one of a request that was
    /// canceled, which stays counted.
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// A computation that waits.
struct Waiting;

impl Waiting {
    fn begin() -> Waiting {
        WAITING.set(WAITING.get() + 1);
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.set(WAITING.get().saturating_sub(1));
    }
}

/// Waits until the event loop has made a turn, and no other computation has continued in it.
pub async fn pause() {
    let _waiting = Waiting::begin();
    // This computation has just run, so the others go first.
    if WAITING.get() > 1 {
        turn().await;
    }
    loop {
        let begun = BEGUN.get();
        turn().await;
        if BEGUN.get() == begun {
            BEGUN.set(begun + 1);
            return;
        }
    }
}

/// Waits for a turn of the event loop. A promise that is resolved at once would not let other
/// requests run.
pub async fn turn() {
    Delay::from(Duration::ZERO).await;
}
