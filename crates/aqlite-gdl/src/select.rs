//! Selection of instances by the predicates of a binding.

use super::bind::Instance;
use super::budget::{Exceeded, Spent};
use super::calc::{self, EvalError};
use super::compile::{Attribute, CompiledGuide, Predicate};
use super::eval::{GuideRun, Place, RunNote, add_note};
use super::pause::NextPause;
use super::run::RunInput;
use super::value::{Value, integer};

impl CompiledGuide {
    /// Returns the indexes of the instances of a binding that its predicates keep. A run would read
    /// the same ones.
    ///
    /// # Errors
    ///
    /// The predicates exceed a limit of the run.
    pub fn select(&self, binding: usize, input: &RunInput<'_>) -> Result<Vec<usize>, Exceeded> {
        let guide_run = GuideRun::new(self, input);
        let selecting = guide_run.select_instances(binding, Some(&super::pause::none));
        let selected = guide_run.output_at_once(selecting);
        guide_run.check_budget().map(|()| selected)
    }

    /// Returns the index of the last instance that the predicates of each of these bindings keep,
    /// and the consumption. Pauses as [`CompiledGuide::run_with_pauses`] does.
    ///
    /// # Errors
    ///
    /// The predicates exceed a limit of the run.
    pub async fn select_last(
        &self,
        bindings: impl Iterator<Item = usize>,
        input: &RunInput<'_>,
        next_pause: NextPause<'_>,
    ) -> Result<(Vec<Option<usize>>, Spent), Exceeded> {
        let guide_run = GuideRun::new(self, input);
        let mut last = Vec::new();
        for binding in bindings {
            if !guide_run.budget.spend_steps(1) {
                break;
            }
            let selected = guide_run.select_instances(binding, Some(next_pause)).await;
            last.push(selected.last().copied());
        }
        guide_run.check_budget()?;
        Ok((last, guide_run.budget.spent()))
    }
}

impl GuideRun<'_> {
    /// Returns the indexes of the instances of a binding that its predicates keep. Without
    /// `next_pause`, it is a part of a statement, and does not pause.
    pub(crate) async fn select_instances(
        &self,
        binding: usize,
        next_pause: Option<NextPause<'_>>,
    ) -> Vec<usize> {
        let Some(plan) = self.guide.bindings.get(binding) else {
            self.budget.broken("a selection has no binding");
            return Vec::new();
        };
        let predicates = plan.predicates.as_slice();
        let kept = self.filter_instances(binding, predicates, next_pause).await;
        self.extreme_instances(binding, predicates, kept)
    }

    /// Returns the indexes of the instances of a binding that pass all predicates about one
    /// instance.
    async fn filter_instances(
        &self,
        binding: usize,
        predicates: &[Predicate],
        next_pause: Option<NextPause<'_>>,
    ) -> Vec<usize> {
        // The notes of one instance are gathered apart, because another predicate may make them
        // irrelevant.
        let earlier = self.notes.take();
        let mut relevant = Vec::new();
        let mut kept: Vec<usize> = Vec::new();
        for (i, instance) in self.input.instances_of(binding).iter().enumerate() {
            if let Some(next_pause) = next_pause {
                self.pause_if_due(next_pause).await;
            }
            if self.passes(binding, predicates, instance, &mut relevant) {
                kept.push(i);
            }
        }
        self.notes.replace(earlier);
        relevant.into_iter().for_each(|note| self.keep_note(note));
        kept
    }

    /// Reduces the indexes of instances by the predicates `max` and `min`, in order.
    fn extreme_instances(
        &self,
        binding: usize,
        predicates: &[Predicate],
        mut kept: Vec<usize>,
    ) -> Vec<usize> {
        let instances = self.input.instances_of(binding);
        for predicate in predicates {
            let Predicate::Extreme {
                is_max,
                column,
                attribute,
                source,
            } = predicate
            else {
                continue;
            };
            self.place.set(Place::Predicate(binding, *source));
            if !self.budget.spend_steps(kept.len()) {
                break;
            }
            let moment = |i: &usize| {
                let value = instances.get(*i)?.values.get(*column)?;
                let moment = moment_of(value, *attribute);
                if moment.is_none() && !value.is_null() {
                    self.add_note(EvalError::NoTime);
                }
                moment
            };
            let is_result = |i: usize| instances.get(i).is_some_and(|found| found.is_result);
            kept = extreme_of(&kept, *is_max, moment, is_result)
                .into_iter()
                .collect();
        }
        kept
    }

    /// Returns whether all filters are true for an instance.
    ///
    /// Appends to `relevant` the notes of comparisons that could have changed the result: the notes
    /// of an instance, unless a filter excludes it that could be computed. The queries of the guide
    /// leave out the instances of such filters ([`CompiledGuide::pushed_down`]), and the notes must not
    /// depend on that.
    fn passes(
        &self,
        binding: usize,
        predicates: &[Predicate],
        instance: &Instance,
        relevant: &mut Vec<RunNote>,
    ) -> bool {
        let (mut passes, noted) = (true, relevant.len());
        for predicate in predicates {
            let Predicate::Filter { op, source } = predicate else {
                continue;
            };
            self.place.set(Place::Predicate(binding, *source));
            if !self.budget.spend_steps(1) {
                return false;
            }
            let result = self.test(*op, Some(instance));
            let notes = self.notes.take();
            if result == Some(false) || (result.is_none() && notes.is_empty()) {
                relevant.truncate(noted);
                return false;
            }
            passes &= result.is_some();
            notes.into_iter().for_each(|note| add_note(relevant, note));
        }
        passes
    }
}

/// Returns the moment of an attribute of a value, in milliseconds.
fn moment_of(value: &Value, attribute: Attribute) -> Option<i64> {
    match calc::attribute(value, attribute) {
        Ok(Value::Moment(moment, _)) => Some(moment.millis),
        // `.value` of a time.
        Ok(Value::Millis(millis)) => integer(millis),
        _ => None,
    }
}

/// Returns the instance with the latest or earliest moment. Instances without one are not chosen.
///
/// Of equal moments the first instance wins. Results of earlier guides are later than all before
/// them, so the last of them is the latest.
fn extreme_of(
    instances: &[usize],
    is_latest: bool,
    moment: impl Fn(&usize) -> Option<i64>,
    is_result: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut best: Option<(i64, usize)> = None;
    for i in instances {
        let Some(found) = moment(i) else { continue };
        let is_better = best.is_none_or(|(ms, _)| match is_latest {
            true => found > ms || (found == ms && is_result(*i)),
            false => found < ms,
        });
        if is_better {
            best = Some((found, *i));
        }
    }
    best.map(|(_, i)| i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::budget::Limit;
    use crate::time::Moment;

    #[test]
    fn instances_without_a_plan_end_the_run() {
        let text = r#"{"id":"x.v1","definition":{"data_bindings":{"gt0001":{"model_id":"openEHR-EHR-EVALUATION.a.v1",
            "type":"INPUT","elements":{"gt0002":{"path":"/data[at0001]/items[at0002]"}}}},
            "rules":{"gt0003":{"priority":1,"when":["$gt0002==1"]}}}}"#;
        let guide = crate::parse(text).unwrap().compile();
        let instance = Instance {
            values: vec![Value::Count(1)],
            ..Instance::default()
        };
        let input = RunInput {
            instances: &[vec![instance.clone()], vec![instance]],
            clock: Moment::from_millis(0, 0).into(),
            language: "en",
            options: Options::default(),
            terminology: None,
        };
        assert_eq!(guide.select(0, &input), Ok(vec![0]));
        let ended = guide.select(1, &input).unwrap_err();
        assert!(matches!(ended.limit, Limit::Broken(_)), "{ended}");
        assert_eq!(guide.run(&input).map(|run| run.fired.len()), Ok(1));
        let mut damaged = guide.clone();
        damaged.slots.clear();
        let ended = damaged.run(&input).unwrap_err();
        assert_eq!(ended.limit, Limit::Broken("a column has no variable"));
    }
}
