//! Pauses of a run: a host lets other work continue between two statements.
//!
//! A run counts its steps, and pauses after
//! [`STEPS_BETWEEN_PAUSES`](super::budget::STEPS_BETWEEN_PAUSES) of them, before the next statement
//! or instance. A single statement has a limit of its own
//! ([`STATEMENT`](super::budget::STATEMENT)), because nothing can pause within it.

use super::eval::GuideRun;
use std::future::{Future, ready};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// The invariant that a future without pauses has broken.
pub(crate) const WAITS: &str = "a run without pauses waits";

/// A future that ends when the run may continue, or must end because it takes too long.
pub type Pause = Pin<Box<dyn Future<Output = ControlFlow<()>>>>;

/// Returns the next pause of a run.
pub type NextPause<'p> = &'p dyn Fn() -> Pause;

impl GuideRun<'_> {
    /// Begins the next statement, after a pause if one is due. The host may end the run there.
    pub(crate) async fn pause_if_due(&self, next_pause: NextPause<'_>) {
        if self.budget.begin_statement() && next_pause().await.is_break() {
            self.budget.end_for_time();
        }
    }

    /// Returns the output of a future of this run that does not wait. If it waits, the run ends
    /// without a result, and the default output is not read.
    pub(crate) fn output_at_once<F: Future<Output: Default>>(&self, future: F) -> F::Output {
        at_once(future).unwrap_or_else(|| {
            self.budget.broken(WAITS);
            F::Output::default()
        })
    }
}

/// Returns a pause that ends at once.
pub(crate) fn none() -> Pause {
    Box::pin(ready(ControlFlow::Continue(())))
}

/// Returns the output of a future that does not wait: its pauses end at once. `None` if it waits.
pub(crate) fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunInput;
    use crate::bind::Instance;
    use crate::budget::Limit;
    use crate::value::Value;

    #[test]
    fn a_host_can_end_a_run_at_a_pause() {
        // The condition visits all instances, so a pause is due before the action.
        let guide = r#"{"id":"x.v1","definition":{
            "data_bindings":{"gt0003":{"model_id":"openEHR-EHR-EVALUATION.a.v1","type":"INPUT",
                "elements":{"gt0004":{"path":"/data[at0001]/items[at0002]"}}}},
            "rules":{"gt0002":{"priority":1,"when":["any[$gt0004]($gt0004==2)"],"then":["$gt0001.magnitude=1"]}}}}"#;
        let guide = crate::parse(guide).unwrap().compile();
        let instance = |value| Instance {
            values: vec![Value::Count(value)],
            ..Instance::default()
        };
        let mut instances = vec![instance(1); 60_000];
        instances.push(instance(2));
        let input = RunInput {
            instances: &[instances],
            ..RunInput::without_data()
        };
        let run = |pause: ControlFlow<()>| {
            let next_pause = move || -> Pause { Box::pin(ready(pause)) };
            at_once(guide.run_with_pauses(&input, &next_pause)).unwrap()
        };
        assert!(run(ControlFlow::Continue(())).is_ok());
        let ended = run(ControlFlow::Break(())).unwrap_err();
        assert_eq!((ended.limit, ended.code()), (Limit::Time, "GDL0605"));
        assert_eq!(ended.place, "rule gt0002");
        assert!(ended.to_string().ends_with(": the run takes too long"));
    }

    #[test]
    fn a_future_that_waits_ends_the_run() {
        let guide = crate::parse(r#"{"id":"x.v1","definition":{}}"#);
        let guide = guide.unwrap().compile();
        let input = RunInput::without_data();
        let guide_run = GuideRun::new(&guide, &input);
        assert_eq!(guide_run.output_at_once(ready(vec![1])), [1]);
        assert_eq!(guide_run.check_budget(), Ok(()));
        let nothing: Vec<usize> = guide_run.output_at_once(std::future::pending());
        assert!(nothing.is_empty());
        let ended = guide_run.check_budget().unwrap_err();
        assert_eq!(
            (ended.limit, ended.code()),
            (Limit::Broken(WAITS), "GDL0699")
        );
    }
}
