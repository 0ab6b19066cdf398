//! Internal queries, such as those of guides: several run over one scan.

use super::super::Service;
use super::super::call::Call;
use super::super::error::Failure;
use super::super::query_memory::ReadBudget;
use super::super::time::iso;
use crate::aql::{self, CheckOptions, Parameters, Plan, QueryError, RowValue, Run};
use crate::document::Batch;
use crate::store::repository::{BatchSink, Pause, Repository};
use crate::store::scan::{Progress, Scan};
use std::collections::HashSet;

/// The number of internal queries that are planned, or that read a batch, between two pauses.
const TOGETHER: usize = 16;

/// The receiver of the rows of internal queries.
pub(crate) trait RowVisitor {
    /// Receives a row of a query. Both have a number; that of the row is in default order.
    fn row(&mut self, query: usize, number: u64, row: &[RowValue<'_>]);

    /// Returns whether the rows of each piece of a query are best sent backward.
    fn reads_backward(&self, _query: usize) -> bool {
        false
    }

    /// Discards all rows, because they are sent again: a part of a segment that they need was
    /// absent.
    fn restart(&mut self);
}

/// The EHRs that an internal query reads.
#[derive(Clone, Copy)]
pub(crate) enum EhrSelection<'a> {
    /// These EHRs, each named once.
    Some(&'a [String]),
    /// All EHRs that queries may read.
    All,
}

impl EhrSelection<'_> {
    /// Returns whether an EHR is selected.
    pub fn includes(&self, ehr_id: &str) -> bool {
        match self {
            EhrSelection::Some(selected) => selected.iter().any(|one| one == ehr_id),
            EhrSelection::All => true,
        }
    }
}

impl<R: Repository> Service<R> {
    /// Runs internal queries, such as those of a guide, over one scan, and passes each row to
    /// `visitor`. Returns the named EHRs that do not exist. An error has the number of the query
    /// that failed.
    pub(crate) async fn each_row(
        &self,
        call: &Call<'_>,
        queries: &[&str],
        parameters: &Parameters,
        whose: EhrSelection<'_>,
        visitor: &mut dyn RowVisitor,
    ) -> Result<Vec<String>, (usize, Failure)> {
        let named = match whose {
            EhrSelection::Some(ehrs) => Some(ehrs.to_vec()),
            EhrSelection::All => None,
        };
        let plans = self.own_plans(call, queries, parameters, named.as_deref());
        let plans = plans.await?;
        // Each batch removes the EHRs that it has from this list.
        let mut missing = named.clone().unwrap_or_default();
        let scan = scan_of(&plans, named);
        let now = iso(call.now);
        let stopped = self.deadline(call);
        let budget = self.budget();
        let backward: Vec<bool> = (0..plans.len())
            .map(|query| visitor.reads_backward(query))
            .collect();
        let begin = || {
            let run = |(plan, backward): (_, &bool)| {
                Run::new(plan, &now, budget, &stopped).backward(*backward)
            };
            plans.iter().zip(&backward).map(run).collect()
        };
        let mut sink = EachRow {
            call,
            reading: self.read_budget(call),
            runs: begin(),
            begin: &begin,
            at: 0,
            needs_more: false,
            work: 0,
            most: budget.work,
            missing: &mut missing,
            visitor,
        };
        self.repository
            .scan(&scan, &mut sink)
            .await
            .map_err(|error| (0, Failure::of_store(error)))?;
        self.finish_runs(sink)?;
        Ok(missing)
    }

    /// Returns the error of the first query that failed, by its number.
    fn finish_runs(&self, mut sink: EachRow<'_, '_, '_, '_>) -> Result<(), (usize, Failure)> {
        if let Some(refusal) = sink.reading.refusal.take() {
            return Err((0, self.stop_failure(refusal)));
        }
        if sink.work > sink.most {
            let error = QueryError::TooMuchWork(sink.most);
            return Err((sink.at, self.run_failure(&error)));
        }
        sink.runs.into_iter().enumerate().try_for_each(|(i, run)| {
            run.finish()
                .map(drop)
                .map_err(|error| (i, self.run_failure(&error)))
        })
    }

    /// Plans queries, with pauses.
    async fn own_plans(
        &self,
        call: &Call<'_>,
        queries: &[&str],
        parameters: &Parameters,
        ehrs: Option<&[String]>,
    ) -> Result<Vec<Plan>, (usize, Failure)> {
        let mut plans: Vec<Plan> = Vec::with_capacity(queries.len());
        for (i, q) in queries.iter().enumerate() {
            let plan = self.own_plan(q, parameters, ehrs);
            plans.push(plan.map_err(|failure| (i, failure))?);
            if plans.len().is_multiple_of(TOGETHER) {
                call.pause().await;
            }
        }
        Ok(plans)
    }

    fn own_plan(
        &self,
        q: &str,
        parameters: &Parameters,
        ehrs: Option<&[String]>,
    ) -> Result<Plan, Failure> {
        let (ast, diagnostics) = aql::parse(q);
        let ast = ast.ok_or_else(|| Failure::in_text(400, "query", q, &diagnostics))?;
        let query = aql::check(&ast, parameters, &CheckOptions::default())
            .map_err(|d| Failure::in_text(400, "query", q, &d))?;
        let plan = aql::plan(query, None, self.config.exact_archetypes)
            .map_err(|d| Failure::in_text(400, "query", q, &d))?;
        Ok(if let Some(ehrs) = ehrs {
            plan.among(ehrs)
        } else {
            plan
        })
    }
}

/// Returns the scan of all plans together.
fn scan_of(plans: &[Plan], ehrs: Option<Vec<String>>) -> Scan {
    let nothing = Scan {
        kinds: Vec::new(),
        whole_ehrs: false,
        derived: false,
        empty_ehrs: ehrs.is_some(),
        unqueryable: ehrs.is_some(),
        ehrs,
        ..Scan::default()
    };
    plans
        .iter()
        .fold(nothing, |all, plan| all.with(plan.scan()))
}

/// A sink that runs several queries over the batches of a scan, one after the other, and passes
/// their rows on.
struct EachRow<'r, 'c, 'a, 'v> {
    call: &'c Call<'a>,
    reading: ReadBudget,
    runs: Vec<Run<'r>>,
    /// Starts the runs again.
    begin: &'v dyn Fn() -> Vec<Run<'r>>,
    /// The query that reads the present batch.
    at: usize,
    /// Whether an earlier query needs more batches.
    needs_more: bool,
    /// The work of all queries together, and its maximum.
    work: u64,
    most: u64,
    /// The named EHRs that were in no batch so far.
    missing: &'v mut Vec<String>,
    visitor: &'v mut dyn RowVisitor,
}

impl EachRow<'_, '_, '_, '_> {
    /// Evaluates a step of a batch: of a segment the EHRs with these numbers, if the queries name
    /// EHRs.
    fn advance(&mut self, batch: &Batch, ehrs: Option<&[u32]>) -> Progress {
        while let Some(run) = self.runs.get_mut(self.at) {
            let (at, visitor, before) = (self.at, &mut *self.visitor, run.work());
            let mut visit = |number: u64, row: &[RowValue<'_>]| visitor.row(at, number, row);
            let progress = match ehrs {
                Some(ehrs) => run.advance_each_among(batch, ehrs, &mut visit),
                None => run.advance_each(batch, &mut visit),
            };
            self.work = self.work.saturating_add(run.work().saturating_sub(before));
            let held = run.footprint();
            if self.work > self.most || !self.reading.hold(held, self.call.clock()) {
                return Progress::Enough;
            }
            match progress {
                Progress::Paused => return Progress::Paused,
                Progress::More => self.needs_more = true,
                // The queries behind this one may need more batches.
                Progress::Enough => {}
            }
            self.at += 1;
            // Each query reads all tables of the batch, even without a result, so this bounds the
            // time without a pause.
            if self.at.is_multiple_of(TOGETHER) && self.at < self.runs.len() {
                return Progress::Paused;
            }
        }
        self.at = 0;
        let needs_more = std::mem::take(&mut self.needs_more) || self.runs.is_empty();
        if needs_more {
            Progress::More
        } else {
            Progress::Enough
        }
    }
}

impl BatchSink for EachRow<'_, '_, '_, '_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        // A batch is sent again after each pause, and was counted the first time.
        if self.at == 0 {
            self.missing.retain(|id| batch.ehr_number(id).is_none());
        }
        self.advance(batch, None)
    }

    fn receive_named_ehrs(&mut self, ehr_ids: &mut dyn Iterator<Item = &str>) -> bool {
        let existing: HashSet<&str> = ehr_ids.collect();
        self.missing.retain(|id| !existing.contains(id.as_str()));
        true
    }

    fn take_among(&mut self, segment: &Batch, ehrs: &[u32]) -> Progress {
        self.advance(segment, Some(ehrs))
    }

    fn restart(&mut self) -> bool {
        // The EHRs that were met exist, however often their documents are sent.
        self.runs = (self.begin)();
        (self.at, self.needs_more, self.work) = (0, false, 0);
        self.visitor.restart();
        self.reading.restart()
    }

    fn admit(&mut self, bytes: usize) -> bool {
        let held = self.runs.iter().map(Run::footprint).sum();
        self.reading.admit(bytes, held, self.call.clock())
    }

    fn pause(&self) -> Pause {
        self.call.pause()
    }
}
