//! The host of one run of a query.

use crate::store::repository::Pause;

/// The time, the pauses and the end that a host sets for one run.
pub struct RunHost<'h> {
    /// The time of the request, ISO 8601 with zone.
    pub now: &'h str,
    /// Returns whether the run must end now. Called regularly.
    pub is_stopped: &'h dyn Fn() -> bool,
    /// Yields to other requests, see [`super::Environment::pause`].
    pub pause: &'h dyn Fn() -> Pause,
    /// Reads the clock, in microseconds since 1970.
    pub clock: &'h dyn Fn() -> i64,
    /// The time at which a run ends without a result, in microseconds since 1970.
    pub deadline: i64,
}

impl<'h> RunHost<'h> {
    /// Creates the host of a run in memory, which never pauses. `clock` as in [`RunHost`].
    pub fn in_memory(now: &'h str, clock: &'h dyn Fn() -> i64) -> RunHost<'h> {
        RunHost {
            now,
            is_stopped: &|| false,
            pause: &|| Box::pin(std::future::ready(())),
            clock,
            deadline: i64::MAX,
        }
    }
}
