//! A guide of a call: its parameters, its input and its run on one EHR.

use crate::gdl::output::{EhrRun, QueryRun};
use crate::gdl::value::Value;
use crate::gdl::{
    BindingQuery, CompiledGuide, Exceeded, Instance, Limit, Limits, NextPause, Options, Output,
    Pause, Population, RunInput, Spent, Subsumptions,
};
use crate::service::call::Call;
use crate::service::error::Failure;
use crate::service::run_parameters::RunParameters;
use std::future::ready;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Bytes that are counted for a value or a query of a response in addition to its texts: it is an
/// object of objects until it is written.
const ANSWER_FRAME: usize = 400;

/// The invariant that does not hold if a guide selects an instance that was not read.
const NO_INSTANCE: &str = "a selected instance does not exist";

/// A guide of a chain, with its parameters.
pub(in crate::service) struct Stage<'c> {
    guide: Rc<CompiledGuide>,
    parameters: RunParameters<'c>,
}

/// The input of a stage for an EHR.
pub(super) struct StageInput<'i> {
    pub ehr_id: &'i str,
    instances: Vec<Vec<Instance>>,
}

/// The bounds of the run of one stage for one EHR.
pub(super) struct RunBounds {
    /// The time that each query took, in milliseconds.
    pub query_millis: f64,
    /// The rest of the limits of the request.
    pub limits: Limits,
    /// The time after which the run ends without a result, in microseconds since 1970.
    pub deadline: i64,
}

impl<'c> Stage<'c> {
    /// Creates the stage of a guide with the parameters of the request.
    pub fn of<'a: 'c>(call: &'c Call<'a>, guide: Rc<CompiledGuide>) -> Result<Stage<'c>, Failure> {
        Ok(Stage {
            parameters: RunParameters::of(call, &guide)?,
            guide,
        })
    }

    /// Returns the id of the guide.
    pub fn id(&self) -> &str {
        &self.guide.guide().id
    }

    /// Returns the guide.
    pub fn guide(&self) -> &CompiledGuide {
        &self.guide
    }

    /// Returns the data that the guide reads, without rows.
    pub(super) fn population(&self) -> Population<'_> {
        let parameters = &self.parameters;
        Population::new(&self.guide, parameters.clock(), parameters.options)
    }

    /// Returns the language of texts.
    pub fn language(&self) -> &str {
        &self.parameters.language
    }

    /// Returns the steps of reading an EHR: every binding is evaluated once for the record and once
    /// for each result of an earlier guide.
    pub(super) fn reading(&self, earlier: usize) -> u64 {
        let bindings = self.guide.guide().bindings.len() as u64;
        bindings.saturating_mul(1 + earlier as u64)
    }

    /// Reads the input of the guide for an EHR: the record, and the results of the guides before
    /// it.
    pub(super) fn read<'i>(
        &self,
        population: &mut Population<'_>,
        ehr_id: &'i str,
        earlier: &[Output],
    ) -> Result<StageInput<'i>, Exceeded> {
        let mut instances = population.instances(ehr_id)?;
        self.guide
            .feed(&mut instances, earlier, self.parameters.now);
        Ok(StageInput { ehr_id, instances })
    }

    /// Runs the guide within its bounds, with pauses. Reports the values of the queries if
    /// requested.
    pub(super) async fn run(
        &self,
        call: &Call<'_>,
        terms: &Subsumptions,
        read: StageInput<'_>,
        queries: &[BindingQuery],
        bounds: RunBounds,
    ) -> Result<(EhrRun, Spent), Exceeded> {
        let StageInput { ehr_id, instances } = read;
        let RunParameters {
            language, options, ..
        } = &self.parameters;
        let options = Options {
            limits: options.limits.within(bounds.limits),
            ..*options
        };
        let input = RunInput {
            instances: &instances,
            clock: self.parameters.clock(),
            language,
            options,
            terminology: Some(terms),
        };
        let next_pause = || pause_until(call, bounds.deadline);
        let run = self.guide.run_with_pauses(&input, &next_pause).await?;
        let mut spent = run.spent;
        let reports = match queries {
            [] => Vec::new(),
            queries => {
                self.query_runs(
                    queries,
                    (ehr_id, bounds.query_millis),
                    &input,
                    &next_pause,
                    &mut spent,
                )
                .await?
            }
        };
        let run = EhrRun {
            ehr_id: ehr_id.to_owned(),
            queries: reports,
            run,
        };
        Ok((run, spent))
    }

    /// Returns the values of the queries for an EHR, each of which took `query_millis`. Adds
    /// their consumption to `spent`.
    async fn query_runs(
        &self,
        queries: &[BindingQuery],
        (ehr_id, query_millis): (&str, f64),
        input: &RunInput<'_>,
        next_pause: NextPause<'_>,
        spent: &mut Spent,
    ) -> Result<Vec<QueryRun>, Exceeded> {
        let options = input.options;
        let left = RunInput {
            options: Options {
                limits: options.limits.without(*spent),
                ..options
            },
            ..*input
        };
        let bindings = queries.iter().map(|query| query.binding);
        let selecting = self.guide.select_last(bindings, &left, next_pause);
        let (selected, selecting) = selecting.await?;
        spent.steps = spent.steps.saturating_add(selecting.steps);
        let mut reports = Vec::with_capacity(queries.len());
        for (query, selected) in queries.iter().zip(selected) {
            let instances = input.instances.get(query.binding);
            let instance = selected.map(|at| instances.and_then(|list| list.get(at)));
            // An index that is not found must not read as a binding without instances.
            if matches!(instance, Some(None)) {
                return Err(self.failed(query, Limit::Broken(NO_INSTANCE), 0));
            }
            let value = query.values_of(instance.flatten());
            let sizes = value.iter().map(|(name, v)| name.len() + v.size());
            let size: usize = sizes.map(|size| ANSWER_FRAME + size).sum();
            spent.bytes += ANSWER_FRAME + query.aql.len() + size;
            if spent.bytes > options.limits.bytes {
                let most = u64::try_from(options.limits.bytes).unwrap_or(u64::MAX);
                return Err(self.failed(query, Limit::Bytes, most));
            }
            reports.push(QueryRun {
                id: query.id.clone(),
                // Ids of EHRs in the repository are UUIDs, so they need no escaping.
                aql: query.aql.replace("$ehr_id", &format!("'{ehr_id}'")),
                time: query_millis,
                value,
            });
        }
        Ok(reports)
    }

    /// Returns the error for a query whose values cannot be reported: they exceed the limit of a
    /// response, or an invariant is broken.
    fn failed(&self, query: &BindingQuery, limit: Limit, most: u64) -> Exceeded {
        Exceeded {
            guide_id: self.id().to_owned(),
            place: format!("query of {}", query.id),
            statement: String::new(),
            limit,
            most,
        }
    }
}

/// Returns the next pause of a run, which is ended after `deadline`, in microseconds since 1970.
fn pause_until(call: &Call<'_>, deadline: i64) -> Pause {
    if call.clock() > deadline {
        return Box::pin(ready(ControlFlow::Break(())));
    }
    let pause = call.pause();
    Box::pin(async {
        pause.await;
        ControlFlow::Continue(())
    })
}

impl StageInput<'_> {
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.instances
            .iter()
            .flatten()
            .flat_map(|instance| &instance.values)
    }
}
