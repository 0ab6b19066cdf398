//! The work of a call that runs guides: its limit, and the pauses between parts of it.

use crate::service::call::Call;
use crate::service::error::Failure;

/// The maximum number of EHRs on which a guide runs between two pauses: at most some tens of
/// milliseconds. A pause of the worker takes 1.2 ms, as long as a usual guide on some tens of EHRs.
const PAUSE_EHRS: usize = 512;

/// The steps between two pauses: some tens of milliseconds. They bound the time too, because a
/// guide with many bindings may take as long on one EHR as another guide on hundreds.
const PAUSE_STEPS: u64 = 200_000;

/// The work since the last pause.
#[derive(Default)]
pub(super) struct StepCounter {
    ehrs: usize,
    steps: u64,
}

impl StepCounter {
    /// Counts the steps of one EHR. Returns whether a pause is due, and begins again after one.
    pub fn is_over(&mut self, steps: u64) -> bool {
        self.ehrs += 1;
        self.steps = self.steps.saturating_add(steps);
        let is_over = self.ehrs >= PAUSE_EHRS || self.steps >= PAUSE_STEPS;
        if is_over {
            *self = StepCounter::default();
        }
        is_over
    }
}

/// The maximum work of all runs of a call, in the unit of
/// [`Limits::steps`](crate::gdl::Limits::steps). It includes the questions of `is_a`.
pub(super) const STEPS: u64 = 200_000_000;

/// The work of a call beside the runs of guides.
pub(in crate::service) struct GuideWork {
    /// The steps that the call has left.
    left: u64,
    since_pause: u64,
    /// The time after which the call is ended, in microseconds since 1970.
    deadline: i64,
}

impl GuideWork {
    /// Creates the counter of a call that has these steps left, and that ends at this time at the
    /// latest, in microseconds since 1970.
    pub fn new(left: u64, deadline: i64) -> GuideWork {
        GuideWork {
            left,
            since_pause: 0,
            deadline,
        }
    }

    /// Returns the steps that the call has left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Counts steps, and pauses if they are many.
    ///
    /// # Errors
    /// 400 if the call has no steps left, 408 if it takes too long.
    pub async fn spend(&mut self, call: &Call<'_>, steps: u64) -> Result<(), Failure> {
        self.left = self.left.saturating_sub(steps);
        if self.left == 0 {
            return Err(too_many_steps());
        }
        self.since_pause = self.since_pause.saturating_add(steps);
        if self.since_pause >= PAUSE_STEPS {
            self.since_pause = 0;
            if call.clock() > self.deadline {
                return Err(too_long());
            }
            call.pause().await;
        }
        Ok(())
    }
}

/// Returns the error for a call without steps left.
pub(super) fn too_many_steps() -> Failure {
    Failure::bad_request(format!(
        "the guides take more than {STEPS} steps: name fewer EHRs, or fewer guides"
    ))
}

/// Returns the error for a call that takes too long.
pub(super) fn too_long() -> Failure {
    Failure::new(
        408,
        "the guides take too long: restrict the data by predicates, or name fewer EHRs or guides",
    )
}
