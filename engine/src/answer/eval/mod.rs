//! Evaluation: batches of stored documents in, rows out.
//!
//! Push-based: the host pushes batches as it reads them, then asks for the result; it can stop at any time. Documents
//! are never unpacked: nodes are items of shapes, values are slots.

mod anchors;
mod bind;
mod block;
mod condition;
mod expand;
mod fill;
mod first;
mod found;
mod function;
mod node;
mod output;
mod picked;
mod predicate;
mod scope;
mod sum;
mod survey;
mod tally;
mod templates;
mod touched;
mod value;

pub use found::Found;
pub use touched::{Touched, TouchedShape, way};

use super::plan::Plan;
use super::result::ResultSet;
use crate::document::{Batch, Doc};
use anchors::Anchors;
use bind::{Binder, LastEhr, Parent, Watch};
use condition::Judge;
use expand::Expander;
use node::{Node, View};
use output::Output;
use std::fmt;
use std::ops::{ControlFlow, Range};
use templates::ByTemplate;

/// What one run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most rows (or groups) that may be held at once.
    pub rows: usize,
    /// The most bytes that rows, groups and what decides their order may take, about.
    pub bytes: usize,
    /// Evaluates document by document, without templates: slower, and the measure of everything faster.
    pub plain: bool,
    /// Where any first rows are enough, so many documents at least are looked at before it is asked whether there are enough.
    pub slice: u32,
    /// Where all rows are wanted, so many documents at most are looked at together: what is made of them stays near the processor.
    pub part: u32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { rows: 1_000_000, bytes: 64 << 20, plain: false, slice: 256, part: 1 << 18 }
    }
}

impl Budget {
    /// Whether so many rows, of so many bytes, may be held.
    fn check(&self, rows: usize, bytes: usize) -> Result<(), QueryError> {
        match (rows > self.rows, bytes > self.bytes) {
            (true, _) => Err(QueryError::TooManyRows(self.rows)),
            (_, true) => Err(QueryError::TooLarge(self.bytes)),
            _ => Ok(()),
        }
    }
}

/// Why a run was given up; there is never a partial answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueryError {
    /// More rows than the budget allows.
    TooManyRows(usize),
    /// Rows that take more bytes than the budget allows.
    TooLarge(usize),
    /// The host asked to stop, or its time is over.
    Stopped,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::TooManyRows(limit) => write!(f, "the query gives more than {limit} rows; narrow it by WHERE, by an EHR, or use LIMIT"),
            QueryError::TooLarge(limit) => write!(
                f,
                "what the query gives takes more than {} MB; select paths instead of whole objects, narrow it by WHERE, by an EHR, or use LIMIT",
                limit >> 20
            ),
            QueryError::Stopped => f.write_str("the query was stopped; narrow it by an EHR, an archetype or a template"),
        }
    }
}

/// One run of a plan.
pub struct Run<'p> {
    plan: &'p Plan,
    now: &'p str,
    budget: Budget,
    output: Output,
    stopped: &'p dyn Fn() -> bool,
    failure: Option<QueryError>,
}

impl<'p> Run<'p> {
    /// Starts a run. `now` is the one reading of the clock (ISO 8601 with zone); `stopped` is asked now and then.
    pub fn new(plan: &'p Plan, now: &'p str, budget: Budget, stopped: &'p dyn Fn() -> bool) -> Run<'p> {
        Run { plan, now, budget, output: Output::new(&plan.query), stopped, failure: None }
    }

    /// Evaluates a batch; false when no more batches are needed, because of a full window or a failure.
    pub fn push(&mut self, batch: &Batch) -> bool {
        if self.failure.is_none() {
            self.output.turn_to(View::new(batch));
            let last_ehr = LastEhr::default();
            let all = 0..batch.len() as u32;
            let done = match Anchors::of(self.plan).filter(|_| !self.budget.plain) {
                Some(anchors) if self.output.missing(self.plan).is_some() && self.plan.scan().ehrs.is_none() => {
                    self.by_slices(batch, &anchors, &last_ehr)
                }
                Some(anchors) => {
                    let most = if self.plan.scan().ehrs.is_some() { all.end } else { self.budget.part }.max(1);
                    let mut starts = all.clone().step_by(most as usize);
                    let done = starts.try_for_each(|start| self.by_template(batch, &anchors, start..all.end.min(start.saturating_add(most))));
                    done.map_or_else(|failure| self.fail(failure), ControlFlow::Continue)
                }
                None if self.plan.single => self.each_document(batch, all, &last_ehr),
                None => self.each_ehr(batch, &last_ehr),
            };
            self.output.settle(Judge { plan: self.plan, view: View::new(batch), now: self.now });
            if done.is_continue() && !self.is_full() {
                return true;
            }
        }
        false
    }

    /// Evaluates a batch like [`Run::push`], and hands over each row that WHERE keeps, in default order, with its values where they
    /// are stored: for queries that select paths, without aggregates, DISTINCT, order or window. What is handed over is not in the
    /// result set.
    pub fn push_each(&mut self, batch: &Batch, visit: &mut dyn FnMut(&[Found<'_>])) -> bool {
        self.output.hold();
        let goes_on = self.push(batch);
        self.output.release(self.plan, View::new(batch), visit);
        goes_on
    }

    /// The result set.
    ///
    /// # Errors
    /// When the run was over its budget or stopped.
    pub fn finish(self) -> Result<ResultSet, QueryError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.output.finish(&self.plan.query)),
        }
    }

    fn by_template(&mut self, batch: &Batch, anchors: &Anchors<'_>, slice: Range<u32>) -> Result<(), QueryError> {
        let (plan, now, budget, stopped) = (self.plan, self.now, self.budget, self.stopped);
        ByTemplate { plan, anchors, batch, now, budget, stopped, slice }.run(&mut self.output)
    }

    /// For queries that want only their first rows in default order: some documents one by one, then columns of as many as seem
    /// to have the rows that are missing.
    fn by_slices(&mut self, batch: &Batch, anchors: &Anchors<'_>, last_ehr: &LastEhr) -> ControlFlow<()> {
        let all = batch.len() as u32;
        let mut slice = 0..self.budget.slice.min(all);
        self.each_document(batch, slice.clone(), last_ehr)?;
        while slice.end < all && !self.is_full() {
            slice = slice.end..slice.end.saturating_add(self.next_slice(slice.end)).min(all);
            let before = self.output.end();
            match self.by_template(batch, anchors, slice.clone()) {
                Ok(()) => {}
                Err(QueryError::Stopped) => return self.fail(QueryError::Stopped),
                // Of more rows than may be held few may be wanted.
                Err(_) => {
                    self.output.back_to(before);
                    self.each_document(batch, slice.clone(), last_ehr)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// How many documents more are looked at, when so many gave the rows that there are.
    fn next_slice(&self, seen: u32) -> u32 {
        let (missing, found) = (self.output.missing(self.plan).unwrap_or_default(), self.output.len().max(1) as u64);
        let wanted = missing.saturating_mul(u64::from(seen)) / found;
        let (least, most) = (self.budget.slice.max(1), seen.saturating_mul(4).max(self.budget.slice.max(1)));
        u32::try_from(wanted).unwrap_or(u32::MAX).clamp(least, most)
    }

    fn is_full(&self) -> bool {
        self.output.is_full(self.plan)
    }

    /// The documents with some numbers, or all of the EHR that the query is about.
    fn each_document(&mut self, batch: &Batch, slice: Range<u32>, last_ehr: &LastEhr) -> ControlFlow<()> {
        let ehrs = self.plan.scan().ehrs_in(batch);
        if let Some([only]) = ehrs.as_deref() {
            return batch.docs_of(*only).iter().filter_map(|d| batch.doc(*d)).try_for_each(|doc| self.document(batch, doc, last_ehr));
        }
        let takes_part = |ehr: u32| match &ehrs {
            Some(ehrs) => ehrs.binary_search(&ehr).is_ok(),
            None => batch.ehr(ehr).is_some_and(|row| row.is_queryable),
        };
        for (i, doc) in batch.docs_among(slice).enumerate() {
            if i % 1024 == 0 && (self.stopped)() {
                return self.fail(QueryError::Stopped);
            }
            if takes_part(doc.ehr) {
                self.document(batch, doc, last_ehr)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn document(&mut self, batch: &Batch, doc: Doc, last_ehr: &LastEhr) -> ControlFlow<()> {
        let scan = self.plan.scan();
        if !scan.kinds.contains(&doc.row.kind) || !(scan.all_versions || (doc.row.latest && !doc.row.deleted)) {
            return ControlFlow::Continue(());
        }
        self.bind(batch, doc.ehr, Parent::Doc(doc), last_ehr)?;
        if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn each_ehr(&mut self, batch: &Batch, last_ehr: &LastEhr) -> ControlFlow<()> {
        let queryable = || batch.ehrs().filter(|(_, row)| row.is_queryable).map(|(ehr, _)| ehr).collect();
        let ehrs: Vec<u32> = self.plan.scan().ehrs_in(batch).unwrap_or_else(queryable);
        ehrs.into_iter().try_for_each(|ehr| {
            if (self.stopped)() {
                return self.fail(QueryError::Stopped);
            }
            self.bind(batch, ehr, Parent::Ehr(ehr), last_ehr)
        })
    }

    fn bind(&mut self, batch: &Batch, ehr: u32, parent: Parent<'_>, last_ehr: &LastEhr) -> ControlFlow<()> {
        let (plan, now) = (self.plan, self.now);
        let view = View::new(batch);
        let binder = Binder { plan, view, ehr, last_ehr, watch: Watch::new(self.stopped) };
        let mut assignment = vec![Node::NONE; plan.query.variables.len()];
        let flow = binder.bind(&plan.query.from, parent, &mut assignment, &mut |a| {
            let judge = Judge { plan, view, now };
            let order = if plan.single { (0, 0) } else { join_order(batch, a) };
            let rows = Expander { plan, view, most: self.budget.rows, plain: self.budget.plain }.rows(a);
            if rows.len() > self.budget.rows {
                return ControlFlow::Break(());
            }
            for row in rows.iter() {
                binder.watch.step()?;
                if judge.keeps(row) {
                    self.output.take(judge, row, order);
                }
            }
            if self.budget.check(self.output.len(), self.output.bytes()).is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match flow {
            _ if binder.watch.is_over() => self.fail(QueryError::Stopped),
            ControlFlow::Break(()) => {
                let over = self.budget.check(self.output.len(), self.output.bytes()).err();
                self.fail(over.unwrap_or(QueryError::TooManyRows(self.budget.rows)))
            }
            flow => flow,
        }
    }

    fn fail(&mut self, failure: QueryError) -> ControlFlow<()> {
        self.failure = Some(failure);
        ControlFlow::Break(())
    }
}

/// The default order of a row whose assignment joins documents: the first bound document of the class expressions decides,
/// unbound ones before it come last. Within one EHR, and where only EHRs are bound, rows come in the right order by themselves.
fn join_order(batch: &Batch, assignment: &[Node]) -> (u64, u64) {
    let ordinal = |node: &Node| {
        let table = batch.table(node.fragment.table)?;
        let is_ehr = table.shape().class() == crate::rm::class::Cls::EHR;
        let number = *table.docs().get(node.fragment.row as usize)?;
        (!is_ehr).then(|| batch.doc(number).map(|d| d.row.ordinal)).flatten()
    };
    match assignment.iter().enumerate().find_map(|(i, node)| ordinal(node).map(|o| (i, o))) {
        Some((before, ordinal)) => (before as u64, ordinal),
        None => (u64::MAX, u64::MAX),
    }
}
