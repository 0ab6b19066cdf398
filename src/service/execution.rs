//! Execution of guides: on one EHR, on several, and several guides in order.
//!
//! `"guide_ids": ["a", "b"]` instead of `"guide_id"` is a chain: the guides run in this order on
//! each EHR, and each reads the results of all before it in addition to the record. The response is
//! a list with the result of each guide in order.

mod failure;
mod rows;
mod stage;
mod work;

use super::Service;
use super::bulk::NDJSON;
use super::call::Call;
use super::content::malformed;
use super::error::{Failure, shortened};
use super::http::Response;
use super::negotiate::{choose, is_ndjson};
use super::query::EhrSelection;
use crate::aql::{Parameters, TerminologyError};
use crate::gdl::output::{EhrRun, Response as Answer, response};
use crate::gdl::value::Value;
use crate::gdl::{CompiledGuide, Exceeded, Limit, Limits, Output, Population, Spent, Subsumptions};
use crate::rm::json::{self, members};
use crate::store::repository::Repository;
pub(super) use failure::RunFailure;
use rows::{StageRows, too_much_data};
pub(super) use stage::Stage;
use stage::{RunBounds, StageInput};
use std::collections::HashSet;
pub(super) use work::GuideWork;
use work::{STEPS, StepCounter, too_long, too_many_steps};

/// The maximum number of guides of a chain.
const MAX_GUIDES: usize = 20;

/// The bytes of the runs of lines, counted as for [`Limits::bytes`], after which their answers are
/// written and sent. So the memory of a call does not depend on the number of its lines. A thousand
/// runs with few values have fewer: EHRs that are left for the next piece are read again, which
/// costs time.
const PIECE_BYTES: usize = 16_000_000;

/// The work of the runs of lines after which their answers are written and sent, in the unit of
/// [`Limits::steps`]. Two runs of the most expensive guide are within it.
const PIECE_STEPS: u64 = 40_000_000;

/// The request of a client.
struct GuideRequest {
    guides: Vec<String>,
    /// Whether it has a list of guides.
    is_chain: bool,
    ehrs: Vec<String>,
}

impl GuideRequest {
    fn read(text: &str) -> Result<GuideRequest, Failure> {
        let (mut guide, mut guides, mut ehrs) = (None, None, Vec::new());
        for (key, value) in members(text).map_err(|m| malformed("body", text, m))? {
            match &*key {
                "guide_id" => guide = json::text(value),
                "guide_ids" => guides = Some(texts("guide_ids", value)?),
                "ehr_ids" => ehrs = texts("ehr_ids", value)?,
                _ => {}
            }
        }
        let is_chain = guides.is_some();
        let guides = match (guide, guides) {
            (None, Some(guides)) if guides.is_empty() => {
                return Err(Failure::bad_request(
                    "`guide_ids` is empty: name the guides in the order in which they run",
                ));
            }
            (None, Some(guides)) => within_chain("guide_ids", guides)?,
            (Some(guide), None) => vec![guide],
            (Some(_), Some(_)) => {
                return Err(Failure::bad_request(
                    "`guide_id` and `guide_ids` exclude each other: name one guide, or a list",
                ));
            }
            (None, None) => return Err(Failure::bad_request("`guide_id` is missing")),
        };
        Ok(GuideRequest {
            guides,
            is_chain,
            ehrs,
        })
    }
}

/// Returns the guides. `name` is that of their member or parameter in the request.
///
/// # Errors
/// 400 for more than [`MAX_GUIDES`].
pub(super) fn within_chain(name: &str, guides: Vec<String>) -> Result<Vec<String>, Failure> {
    match guides.len() {
        0..=MAX_GUIDES => Ok(guides),
        many => Err(Failure::bad_request(format!(
            "`{name}` names {many} guides, at most {MAX_GUIDES} are allowed in one call"
        ))),
    }
}

fn texts(name: &str, list: &str) -> Result<Vec<String>, Failure> {
    json::parse_strings(list)
        .ok_or_else(|| Failure::bad_request(format!("`{name}` is not a list of texts")))
}

/// The EHRs on which a call runs guides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EhrRange {
    /// All EHRs. Their runs share the limits of a call.
    All,
    /// The first EHRs, until their runs have [`PIECE_BYTES`] or [`PIECE_STEPS`]; one at least. The
    /// runs on one EHR share the limits of a call.
    Piece,
}

/// The results of stages on EHRs.
pub(super) struct GuideResults {
    /// For each stage its runs, in the order of the EHRs that exist.
    pub stages: Vec<Vec<EhrRun>>,
    /// The EHRs that exist and were left for the next piece.
    pub left: HashSet<String>,
    /// Milliseconds of each stage. The first one includes the time of reading.
    times: Vec<f64>,
}

/// The data of all stages, read in one scan.
struct StageData<'s> {
    /// For each stage its data.
    populations: Vec<Population<'s>>,
    /// The requested EHRs that exist, in order.
    ehrs: Vec<&'s str>,
    /// The number of queries of all stages.
    queries: usize,
}

/// The state of a chain of guides between two stages.
struct Chain {
    ehr_range: EhrRange,
    /// The time at which the chain began, in microseconds since 1970.
    started: i64,
    reports_queries: bool,
    /// Milliseconds of each query for each EHR: their share of the scan.
    query_time: f64,
    /// The remaining limits of the call.
    limits: Limits,
    /// The consumption of the runs on each EHR.
    spent: Vec<Spent>,
    /// The outputs of the earlier stages for each EHR. Only these EHRs have further runs.
    earlier: Vec<Vec<Output>>,
}

impl Chain {
    /// Returns the state of a chain before its first stage, without queries. `bytes` is the limit of
    /// the results, and `ehrs` the number of EHRs.
    fn begin(ehr_range: EhrRange, started: i64, bytes: usize, ehrs: usize) -> Chain {
        Chain {
            ehr_range,
            started,
            reports_queries: false,
            query_time: 0.0,
            limits: Limits {
                bytes,
                steps: STEPS,
                ..Limits::default()
            },
            spent: vec![Spent::default(); ehrs],
            earlier: vec![Vec::new(); ehrs],
        }
    }

    /// Returns the limits of the next run on an EHR, given by its index.
    ///
    /// # Errors
    /// 500 for an EHR without a count of its consumption: its run would have no limit.
    fn limits_of(&self, ehr: usize) -> Result<Limits, Failure> {
        Ok(match self.ehr_range {
            EhrRange::All => self.limits,
            // The steps of reading are counted for the call.
            EhrRange::Piece => self
                .limits
                .without(*self.spent.get(ehr).ok_or_else(uncounted)?),
        })
    }

    /// Keeps the outputs of the runs of a stage for the guides after it.
    fn keep_outputs(&mut self, runs: &[EhrRun]) {
        for (earlier, run) in self.earlier.iter_mut().zip(runs) {
            earlier.extend(run.run.outputs.iter().cloned());
        }
    }

    /// Counts a run on an EHR, given by its index. Returns the consumption of all its runs.
    ///
    /// # Errors
    /// As [`Chain::limits_of`].
    fn count(&mut self, ehr: usize, spent: Spent) -> Result<Spent, Failure> {
        if self.ehr_range == EhrRange::All {
            self.limits = self.limits.without(spent);
        }
        let own = self.spent.get_mut(ehr).ok_or_else(uncounted)?;
        *own = own.with(spent);
        Ok(*own)
    }
}

/// Returns the error for an EHR whose consumption is not counted, which breaks an invariant.
fn uncounted() -> Failure {
    Failure::broken("the consumption of the runs on an EHR is not counted")
}

/// Returns whether the EHRs before one whose run ended are a piece: the others have answers of their
/// own. A broken invariant ends the call.
fn ends_piece(ended: &Exceeded, ehr_range: EhrRange, ehr: usize) -> bool {
    ehr_range == EhrRange::Piece && ehr > 0 && !matches!(ended.limit, Limit::Broken(_))
}

/// Returns whether EHRs with this consumption are a piece.
fn is_piece(spent: Spent) -> bool {
    spent.bytes >= PIECE_BYTES || spent.steps >= PIECE_STEPS
}

impl<R: Repository> Service<R> {
    /// GET /gdl/query/{ehr_id}/{guide_id}
    pub(super) async fn guide_run(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let answers = self
            .execute(
                call,
                &[call.param(1)?.to_owned()],
                &[call.param(0)?.to_owned()],
            )
            .await?;
        written(&answers.first())
    }

    /// POST /gdl/query
    pub(super) async fn guide_run_on(&self, call: &Call<'_>) -> Result<Response, Failure> {
        if is_ndjson(call.request) {
            return self.guide_run_on_lines(call).await;
        }
        choose(call.request, &["application/json"])?;
        let order = GuideRequest::read(call.text()?)?;
        order
            .guides
            .iter()
            .try_for_each(|guide| call.check_named_permission(guide))?;
        self.check_number_of_ehrs(order.ehrs.len())?;
        let answers = self.execute(call, &order.guides, &order.ehrs).await?;
        if order.is_chain {
            written(&answers)
        } else {
            written(&answers.first())
        }
    }

    fn check_number_of_ehrs(&self, ehrs: usize) -> Result<(), Failure> {
        let most = self.config.limits.guide_ehrs;
        match ehrs {
            0 => Err(Failure::bad_request(
                "`ehr_ids` is missing or empty: name the EHRs on whose data the guide is executed",
            )),
            many if many > most => Err(Failure::bad_request(format!(
                "`ehr_ids` names {many} EHRs, at most {most} are allowed in one call; send more as lines ({NDJSON})"
            ))),
            _ => Ok(()),
        }
    }

    async fn execute(
        &self,
        call: &Call<'_>,
        guide_ids: &[String],
        ehr_ids: &[String],
    ) -> Result<Vec<Answer>, Failure> {
        let stages = self.stages(call, guide_ids).await?;
        let mut ids: Vec<String> = ehr_ids.iter().map(|id| id.to_ascii_lowercase()).collect();
        let mut seen = HashSet::new();
        // A repeated EHR is run once, at its first position.
        ids.retain(|id| seen.insert(id.clone()));
        ids.iter()
            .try_for_each(|id| record_access(call, &stages, id))?;
        let GuideResults {
            stages: runs,
            times,
            ..
        } = self
            .run_stages(call, &stages, &ids, EhrRange::All, true)
            .await?;
        let first = runs.first().map(Vec::as_slice).unwrap_or_default();
        if let Some(id) = (0..).zip(&ids).find_map(|(i, id)| {
            first
                .get(i)
                .is_none_or(|run| run.ehr_id != *id)
                .then_some(id)
        }) {
            // Runs have the order of the EHRs that exist, so the first difference is a missing EHR.
            let whose = named(stages.first().map_or("", Stage::id), id);
            return Err(Failure::no_ehr().within(&whose));
        }
        let answers = stages.iter().zip(runs).zip(times);
        Ok(answers
            .map(|((stage, runs), time)| response(stage.guide(), runs, time))
            .collect())
    }

    /// Returns the stages of a call.
    pub(super) async fn stages<'c, 'a: 'c>(
        &self,
        call: &'c Call<'a>,
        guide_ids: &[String],
    ) -> Result<Vec<Stage<'c>>, Failure> {
        let mut stages = Vec::with_capacity(guide_ids.len());
        for id in guide_ids {
            let guide = self
                .guide(id)
                .await
                .map_err(|failure| failure.within(&format!("guide {}", shortened(id))))?;
            stages.push(Stage::of(call, guide)?);
        }
        Ok(stages)
    }

    /// Runs guides in order on EHRs, each of which is named once: on the next ones of `ehr_range`.
    /// EHRs that do not exist have no runs. One scan reads the data of all guides. `reports_queries`
    /// is true if the runs report their queries.
    pub(super) async fn run_stages(
        &self,
        call: &Call<'_>,
        stages: &[Stage<'_>],
        ids: &[String],
        ehr_range: EhrRange,
        reports_queries: bool,
    ) -> Result<GuideResults, RunFailure> {
        let started = call.clock();
        let data = self.read_stages(call, stages, ids).await?;
        let queries = (data.queries * data.ehrs.len()).max(1);
        let mut chain = Chain {
            reports_queries,
            // One scan answers all queries, so each gets an equal share of its time.
            query_time: millis(call.clock() - started) / queries as f64,
            ..Chain::begin(
                ehr_range,
                started,
                self.config.limits.result,
                data.ehrs.len(),
            )
        };
        let mut results = GuideResults {
            stages: Vec::with_capacity(stages.len()),
            left: HashSet::new(),
            times: Vec::new(),
        };
        let mut begun = started;
        for (stage, population) in stages.iter().zip(data.populations) {
            let runs = self
                .run_stage(call, stage, population, &data.ehrs, &mut chain)
                .await?;
            // The last stage has no reader, so its outputs are not copied.
            if results.stages.len() + 1 < stages.len() {
                chain.keep_outputs(&runs);
            }
            let now = call.clock();
            results.times.push(millis(now - begun));
            results.stages.push(runs);
            begun = now;
        }
        let ran = chain.earlier.len();
        results
            .stages
            .iter_mut()
            .for_each(|runs| runs.truncate(ran));
        let left = data.ehrs.iter().skip(ran);
        results.left = left.map(|id| (*id).to_owned()).collect();
        Ok(results)
    }

    /// Reads the data of all stages in one scan.
    async fn read_stages<'s>(
        &self,
        call: &Call<'_>,
        stages: &'s [Stage<'_>],
        ids: &'s [String],
    ) -> Result<StageData<'s>, RunFailure> {
        let mut stage_rows = StageRows::of(stages);
        let texts: Vec<String> = stage_rows
            .populations
            .iter()
            .flat_map(|p| p.queries())
            .map(|query| query.population_aql.clone())
            .collect();
        let queries: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (parameters, ehrs) = (Parameters::new(), EhrSelection::Some(ids));
        let missing = self
            .each_row(call, &queries, &parameters, ehrs, &mut stage_rows)
            .await;
        let is_too_much = stage_rows.is_too_much();
        let StageRows {
            populations,
            owners,
            is_incomplete,
            ..
        } = stage_rows;
        let missing: HashSet<String> = missing
            .map_err(|(at, failure)| in_binding(stages, owners.get(at), failure))?
            .into_iter()
            .collect();
        if is_too_much {
            return Err(RunFailure::Data(too_much_data(stages, ids)));
        }
        if is_incomplete {
            return Err(Failure::broken("a row of the data belongs to no guide").into());
        }
        let exists = |id: &&String| !missing.contains(*id);
        Ok(StageData {
            populations,
            ehrs: ids.iter().filter(exists).map(String::as_str).collect(),
            queries: texts.len(),
        })
    }

    /// Runs one guide on the EHRs that exist.
    async fn run_stage(
        &self,
        call: &Call<'_>,
        stage: &Stage<'_>,
        mut population: Population<'_>,
        ehrs: &[&str],
        chain: &mut Chain,
    ) -> Result<Vec<EhrRun>, RunFailure> {
        let mut counter = StepCounter::default();
        let inputs = self
            .stage_inputs(call, stage, &mut population, ehrs, chain, &mut counter)
            .await?;
        let values = inputs.iter().flat_map(StageInput::values);
        let deadline = chain.started.saturating_add(self.config.limits.query_time);
        let mut work = GuideWork::new(chain.limits.steps, deadline);
        let terms = self
            .subsumptions(call, stage.guide(), values, &mut work)
            .await
            .map_err(RunFailure::of_data)?;
        chain.limits.steps = work.left();
        let queries = match chain.reports_queries {
            true => population.queries(),
            false => &[],
        };
        let mut runs: Vec<EhrRun> = Vec::with_capacity(inputs.len());
        let mut total = Spent::default();
        for (ehr, input) in inputs.into_iter().enumerate() {
            let ehr_id = input.ehr_id;
            let limits = chain.limits_of(ehr)?;
            let bounds = RunBounds {
                query_millis: chain.query_time,
                limits,
                deadline,
            };
            let ran = stage.run(call, &terms, input, queries, bounds).await;
            let (run, spent) = match ran {
                // The next piece begins with this EHR.
                Err(ended) if ends_piece(&ended, chain.ehr_range, ehr) => {
                    chain.earlier.truncate(ehr);
                    break;
                }
                Err(ended) => return Err(RunFailure::of_run(&ended, stage.id(), ehr_id)),
                Ok(ran) => ran,
            };
            total = total.with(chain.count(ehr, spent)?);
            runs.push(run);
            if chain.ehr_range == EhrRange::Piece && is_piece(total) {
                chain.earlier.truncate(runs.len());
                break;
            }
            if !counter.is_over(spent.steps.saturating_add(stage.reading(0))) {
                continue;
            }
            if call.clock() - chain.started > self.config.limits.query_time {
                return Err(too_long().within(&named(stage.id(), ehr_id)).into());
            }
            call.pause().await;
        }
        Ok(runs)
    }

    /// Reads the input of a guide for each EHR, within the steps that the call has left.
    async fn stage_inputs<'e>(
        &self,
        call: &Call<'_>,
        stage: &Stage<'_>,
        population: &mut Population<'_>,
        ehrs: &[&'e str],
        chain: &mut Chain,
        counter: &mut StepCounter,
    ) -> Result<Vec<StageInput<'e>>, RunFailure> {
        let mut inputs = Vec::with_capacity(ehrs.len());
        for (id, earlier) in ehrs.iter().zip(&chain.earlier) {
            let work = stage.reading(earlier.len());
            chain.limits = chain.limits.without(Spent {
                steps: work,
                ..Spent::default()
            });
            if chain.limits.steps == 0 {
                let failure = too_many_steps().within(&named(stage.id(), id));
                return Err(RunFailure::Data(failure));
            }
            let input = stage.read(population, id, earlier);
            let broken = |e| Failure::exceeded(&e).within(&named(stage.id(), id));
            inputs.push(input.map_err(broken)?);
            if counter.is_over(work) {
                call.pause().await;
            }
        }
        Ok(inputs)
    }

    /// Requests from terminologies the subsumptions of codes in the data that the guide tests by
    /// `is_a`.
    async fn subsumptions<'q>(
        &self,
        call: &Call<'_>,
        guide: &'q CompiledGuide,
        values: impl Iterator<Item = &'q Value>,
        work: &mut GuideWork,
    ) -> Result<Subsumptions, Failure> {
        let of_guide = || format!("guide {}: `is_a`", guide.guide().id);
        let questions = guide.subsumptions(values);
        self.test_subsumptions(call, &questions, work)
            .await
            .map_err(|failure| failure.within(&of_guide()))?
            .map_err(|error| {
                let (status, why) = match error {
                    TerminologyError::Late(why) => (504, why),
                    TerminologyError::Refused(why) => (400, why),
                    TerminologyError::Absent(why) | TerminologyError::Failed(why) => (502, why),
                    other => (500, other.to_string()),
                };
                Failure::new(status, format!("{}: {why}", of_guide()))
            })
    }
}

/// Returns the error for a result that cannot be written as JSON.
pub(super) fn unwritten() -> Failure {
    Failure::broken("a result cannot be written as JSON")
}

fn written(answer: &impl serde::Serialize) -> Result<Response, Failure> {
    let body = serde_json::to_value(answer).map_err(|_| unwritten())?;
    Ok(Response::new(200).with_body("application/json", body.to_string()))
}

/// Adds the stage and the binding to the failure of a query.
fn in_binding(stages: &[Stage<'_>], at: Option<&(usize, usize)>, failure: Failure) -> Failure {
    let Some((guide, query)) =
        at.and_then(|(stage, query)| Some((stages.get(*stage)?.guide(), *query)))
    else {
        return failure;
    };
    let binding = guide
        .queries()
        .get(query)
        .map_or_else(String::new, |query| format!(", binding {}", query.id));
    failure.within(&format!("guide {}{binding}", guide.guide().id))
}

/// Records the access to an EHR, and checks that the caller may read it.
pub(super) fn record_access(
    call: &Call<'_>,
    stages: &[Stage<'_>],
    ehr_id: &str,
) -> Result<(), Failure> {
    call.trail.add_ehr(ehr_id);
    stages
        .iter()
        .try_for_each(|stage| call.check_permission_on(stage.id(), ehr_id))
}

fn named(guide_id: &str, ehr_id: &str) -> String {
    format!("guide {guide_id}, EHR {}", shortened(ehr_id))
}

fn millis(micros: i64) -> f64 {
    micros as f64 / 1000.0
}

#[cfg(test)]
mod tests;
