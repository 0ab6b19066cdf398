//! Evaluation: batches of stored documents in, rows out.
//!
//! Push-based: the host pushes batches as it reads them, then asks for the result; it can stop at
//! any time. Documents are never unpacked: nodes are items of layouts, values are leaves.

mod accumulator;
mod anchor_scan;
mod anchors;
mod bind;
mod block;
mod cells;
mod close;
mod condition;
mod distinct;
mod expand;
mod function;
mod natural;
mod node;
mod output;
mod predicate;
mod projection;
mod row_value;
mod scope;
mod selection;
mod sort_key;
mod strategy;
mod sum;
mod templates;
mod top_k;
mod touched;
mod value;
mod work;

pub use row_value::RowValue;
pub use strategy::ExecutionPath;
pub use touched::{Touched, TouchedLayout, evaluation_strategy};

use super::plan::Plan;
use super::result::ResultSet;
use super::scan::Progress;
use crate::document::{Batch, Doc};
use anchors::Anchors;
use bind::{Binder, LastEhr, Parent, Trail};
use condition::ConditionEvaluator;
use expand::Expander;
use node::{Node, View};
use output::Output;
use scope::Scope;
use std::cell::OnceCell;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;
use templates::{Abort, ByTemplate};
use work::{ROW, STEP, Work};

/// The budget of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most rows (or groups) that may be held at once.
    pub rows: usize,
    /// The most bytes that rows, groups and what decides their order may take, about.
    pub bytes: usize,
    /// The most units of work: a unit is about what one value of a column costs, a nanosecond on a
    /// machine of 2025. What is counted depends on data and query only, not on a clock.
    pub work: u64,
    /// Units of work after which [`Run::advance`] pauses, so that a host can let others work.
    pub piece: u64,
    /// Evaluates document by document, without row templates: slower, and the reference for every
    /// fast path.
    pub plain: bool,
    /// The smallest number of documents of a slice, for queries that need any first rows: after
    /// each slice the number of rows is checked.
    pub slice: u32,
    /// The largest number of documents of a slice, for queries that need all rows: intermediate
    /// data then fit the caches of the processor.
    pub part: u32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            rows: 1_000_000,
            bytes: 64 << 20,
            work: WORK,
            piece: PIECE,
            plain: false,
            slice: 256,
            part: 1 << 18,
        }
    }
}

/// The default budget of work: some seconds of one processor.
const WORK: u64 = 2_000_000_000;

/// Units of work between two pauses: some milliseconds.
const PIECE: u64 = 10_000_000;

/// The largest number of documents of a slice of a costly query. A slice that exceeds one piece of
/// work is discarded and split, so a large one wastes work.
const COSTLY: u32 = 1 << 13;

/// Bytes that the rows of one variable in one document may take while they are multiplied.
const BYTES_OF_VARIABLE: usize = 16 << 20;

impl Budget {
    /// Checks a number of rows and their bytes against the budget.
    fn check(&self, rows: usize, bytes: usize) -> Result<(), QueryError> {
        match (rows > self.rows, bytes > self.bytes) {
            (true, _) => Err(QueryError::TooManyRows(self.rows)),
            (_, true) => Err(QueryError::TooLarge(self.bytes)),
            _ => Ok(()),
        }
    }

    /// The most rows that the paths of one variable may give in one document.
    fn rows_of_variable(&self, plan: &Plan) -> usize {
        self.rows
            .min(BYTES_OF_VARIABLE.min(self.bytes) / (plan.width * size_of::<Node>()))
            .max(1)
    }
}

/// Why a run was given up; there is never a partial answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueryError {
    /// More rows than the budget allows.
    TooManyRows(usize),
    /// The paths of one variable give more rows in one document than may be multiplied.
    TooManyCombinations(usize),
    /// Rows that take more bytes than the budget allows.
    TooLarge(usize),
    /// More work than the budget allows.
    TooMuchWork(u64),
    /// The host asked to stop, or its time is over.
    Stopped,
    /// An invariant of the engine does not hold: there is no answer, because it could be wrong.
    Broken(&'static str),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::TooManyRows(limit) => write!(
                f,
                "the query gives more than {limit} rows; narrow it by WHERE, by an EHR, or use LIMIT"
            ),
            QueryError::TooManyCombinations(limit) => write!(
                f,
                "the repeated nodes on the paths of one variable combine to more than {limit} rows in one document; select fewer of them together, or bind them by CONTAINS"
            ),
            QueryError::TooLarge(limit) => write!(
                f,
                "what the query gives takes more than {} MB; select paths instead of whole objects, narrow it by WHERE, by an EHR, or use LIMIT",
                limit >> 20
            ),
            QueryError::TooMuchWork(limit) => write!(
                f,
                "the query takes more than {limit} units of work; narrow it by an EHR, an archetype or a template, and join fewer class expressions by AND"
            ),
            QueryError::Broken(what) => write!(f, "an invariant of the engine is broken: {what}"),
            QueryError::Stopped => f.write_str(
                "the query was stopped; narrow it by an EHR, an archetype or a template",
            ),
        }
    }
}

/// A part of a batch that is still to be evaluated.
#[derive(Clone, Debug)]
enum Task {
    /// Documents for a query that wants its first rows in default order only: from this one on.
    First(u32),
    /// Documents by row templates.
    Templates(Range<u32>),
    /// Documents one by one; of a query about one EHR, by their numbers there.
    Documents(Range<u32>),
    /// EHRs one by one, by their numbers among those that take part.
    Ehrs(Range<u32>),
}

/// Why a task is not finished.
enum Halt {
    Paused,
    /// No more rows are wanted.
    Full,
    Failed(QueryError),
}

impl From<QueryError> for Halt {
    fn from(failure: QueryError) -> Halt {
        Halt::Failed(failure)
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
    work: Rc<Work>,
    /// The remaining tasks of the current batch, as a stack; absent between batches.
    open: Option<Vec<Task>>,
    /// The position in the document or EHR that was begun.
    trail: Rc<Trail>,
}

impl<'p> Run<'p> {
    /// Starts a run. `now` is the one reading of the clock (ISO 8601 with zone); `stopped` is asked
    /// now and then.
    pub fn new(
        plan: &'p Plan,
        now: &'p str,
        budget: Budget,
        stopped: &'p dyn Fn() -> bool,
    ) -> Run<'p> {
        let work = Rc::new(Work::new(budget.work, budget.piece));
        Run {
            plan,
            now,
            budget,
            output: Output::new(&plan.query),
            stopped,
            failure: None,
            work,
            open: None,
            trail: Rc::default(),
        }
    }

    /// Evaluates a batch; false when no more batches are needed, because of a full window or a
    /// failure.
    pub fn push(&mut self, batch: &Batch) -> bool {
        loop {
            match self.advance(batch) {
                Progress::Paused => {}
                Progress::More => return true,
                Progress::Enough => return false,
            }
        }
    }

    /// Evaluates a piece of a batch. After [`Progress::Paused`] it must be called again with the
    /// same batch.
    pub fn advance(&mut self, batch: &Batch) -> Progress {
        if self.failure.is_some() {
            return Progress::Enough;
        }
        let mut open = self.open.take().unwrap_or_else(|| {
            self.output.turn_to(View::new(batch));
            self.tasks(batch)
        });
        self.work.resume();
        let last_ehr = LastEhr::default();
        while let Some(task) = open.pop() {
            match self.perform(batch, task, &last_ehr, &mut open) {
                Ok(()) if self.is_full() => break,
                Ok(()) if !self.work.is_due() || open.is_empty() => {}
                Ok(()) | Err(Halt::Paused) if (self.stopped)() => {
                    self.failure = Some(QueryError::Stopped);
                    break;
                }
                Ok(()) | Err(Halt::Paused) => {
                    self.open = Some(open);
                    return Progress::Paused;
                }
                Err(Halt::Full) => break,
                Err(Halt::Failed(failure)) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        let evaluator = ConditionEvaluator {
            plan: self.plan,
            view: View::new(batch).counting(&self.work),
            now: self.now,
        };
        self.output.settle(evaluator);
        if batch.is_late() {
            // Texts are read now, so that every part that the answer needs is wanted by now.
            self.output.turn_to(View::new(batch));
        }
        if self.failure.is_none() && self.work.is_over() {
            self.failure = self.work.check().err();
        }
        if let Some(what) = batch.broken().or(self.work.broken.get()) {
            self.failure = Some(QueryError::Broken(what));
        }
        if self.failure.is_some() || self.is_full() {
            Progress::Enough
        } else {
            Progress::More
        }
    }

    /// Evaluates a batch like [`Run::push`], and hands over each row that WHERE keeps, in default
    /// order, with its values where they are stored: for queries that select paths, without
    /// aggregates, DISTINCT, order or window. What is handed over is not in the result set.
    pub fn push_each(&mut self, batch: &Batch, visit: &mut dyn FnMut(&[RowValue<'_>])) -> bool {
        loop {
            match self.advance_each(batch, visit) {
                Progress::Paused => {}
                Progress::More => return true,
                Progress::Enough => return false,
            }
        }
    }

    /// Evaluates a piece of a batch like [`Run::advance`], and hands over its rows like
    /// [`Run::push_each`].
    pub fn advance_each(
        &mut self,
        batch: &Batch,
        visit: &mut dyn FnMut(&[RowValue<'_>]),
    ) -> Progress {
        self.output.hold();
        let progress = self.advance(batch);
        self.output.release(self.plan, View::new(batch), visit);
        progress
    }

    /// Units of work that were spent so far.
    pub fn work(&self) -> u64 {
        self.work.spent()
    }

    /// Bytes that rows, groups and what decides their order take of the memory of the host, about:
    /// lists grow ahead of what they hold.
    pub fn footprint(&self) -> usize {
        self.output.footprint()
    }

    /// Does a piece of what is left when there are no more batches: groups become rows, rows are
    /// sorted. To be called until it is not [`Progress::Paused`], with pauses between;
    /// [`Run::finish`] does the rest at once.
    pub fn close(&mut self) -> Progress {
        if self.failure.is_none() {
            match self.output.close(self.plan, &self.budget, &self.work) {
                Ok(true) if (self.stopped)() => self.failure = Some(QueryError::Stopped),
                Ok(true) => return Progress::Paused,
                Ok(false) => {}
                Err(failure) => self.failure = Some(failure),
            }
        }
        Progress::Enough
    }

    /// The execution paths that were taken so far.
    pub fn execution_paths(&self) -> impl Iterator<Item = ExecutionPath> + use<> {
        self.work.taken.paths()
    }

    /// The result set.
    ///
    /// # Errors
    /// When the run was over its budget or stopped.
    pub fn finish(self) -> Result<ResultSet, QueryError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.output.finish(self.plan, &self.budget, &self.work),
        }
    }

    /// Returns the tasks of a batch, as a stack.
    fn tasks(&self, batch: &Batch) -> Vec<Task> {
        let all = batch.len() as u32;
        let by_templates = !self.budget.plain && Anchors::of(self.plan).is_some();
        let is_narrow = self.plan.scan().ehrs.is_some();
        if !by_templates {
            return vec![if self.plan.single {
                Task::Documents(0..self.documents(batch))
            } else {
                Task::Ehrs(0..u32::MAX)
            }];
        }
        if self.output.missing(self.plan).is_some() && !is_narrow {
            return vec![Task::First(0)];
        }
        let part = if self.plan.costly {
            self.budget.part.min(COSTLY)
        } else {
            self.budget.part
        };
        let most = if is_narrow { all } else { part }.max(1);
        let starts = (0..all).step_by(most as usize);
        starts
            .map(|start| Task::Templates(start..all.min(start.saturating_add(most))))
            .rev()
            .collect()
    }

    /// Returns the number of documents to be looked at one by one: those of the batch, or of the
    /// one EHR that the query is about.
    fn documents(&self, batch: &Batch) -> u32 {
        Scope::documents(self.plan, batch).map_or(batch.len(), <[u32]>::len) as u32
    }

    fn perform(
        &mut self,
        batch: &Batch,
        task: Task,
        last_ehr: &LastEhr,
        open: &mut Vec<Task>,
    ) -> Result<(), Halt> {
        match task {
            Task::First(start) => {
                self.first(batch, start, open);
                Ok(())
            }
            Task::Templates(slice) => self.templates(batch, slice, open),
            Task::Documents(range) => {
                self.work.taken.note(ExecutionPath::Documents);
                self.each_document(batch, range, last_ehr, open)
            }
            Task::Ehrs(range) => {
                self.work.taken.note(ExecutionPath::Ehrs);
                self.each_ehr(batch, range, last_ehr, open)
            }
        }
    }

    /// For queries that want only their first rows in default order: some documents one by one,
    /// then columns of as many as seem to have the rows that are missing.
    fn first(&mut self, batch: &Batch, start: u32, open: &mut Vec<Task>) {
        let all = batch.len() as u32;
        let slice = start
            ..start
                .saturating_add(if start == 0 {
                    self.budget.slice
                } else {
                    self.next_slice(start)
                })
                .min(all);
        if slice.end < all {
            open.push(Task::First(slice.end));
        }
        open.push(if start == 0 {
            Task::Documents(slice)
        } else {
            Task::Templates(slice)
        });
    }

    /// Evaluates documents by row templates. Where they have too much for one piece, half of them
    /// at a time; one document that has too much is walked, for that can be left and gone on with.
    fn templates(
        &mut self,
        batch: &Batch,
        slice: Range<u32>,
        open: &mut Vec<Task>,
    ) -> Result<(), Halt> {
        let (plan, now, budget, stopped, work) = (
            self.plan,
            self.now,
            self.budget,
            self.stopped,
            Rc::clone(&self.work),
        );
        let Some(anchors) = Anchors::of(plan) else {
            return Ok(());
        };
        let first_only = self.output.missing(plan).is_some();
        let before = self.output.end();
        self.output.may_go_back(first_only);
        self.work.taken.note(ExecutionPath::Templates);
        let by_template = ByTemplate {
            plan,
            anchors: &anchors,
            batch,
            now,
            budget,
            stopped,
            slice: slice.clone(),
            work: &work,
            begun_at: work.spent(),
        };
        let outcome = by_template.run(&mut self.output);
        self.output.may_go_back(false);
        let is_whole = plan.scan().ehr().is_some();
        match outcome {
            Ok(()) => {
                self.output.remove_duplicates(plan, &work);
                self.output.within(plan, &budget, &work)?;
            }
            Err(Abort::Heavy) if slice.len() > 1 && !is_whole => {
                let middle = slice.start + slice.len() as u32 / 2;
                open.extend([
                    Task::Templates(middle..slice.end),
                    Task::Templates(slice.start..middle),
                ]);
            }
            Err(Abort::Heavy) => open.push(Task::Documents(if is_whole {
                0..self.documents(batch)
            } else {
                slice
            })),
            // Of more rows than may be held few may be wanted.
            Err(Abort::Failed(
                QueryError::TooManyRows(_)
                | QueryError::TooManyCombinations(_)
                | QueryError::TooLarge(_),
            )) if first_only && !is_whole => {
                self.output.back_to(before);
                open.push(Task::Documents(slice));
            }
            Err(Abort::Failed(failure)) => return Err(Halt::Failed(failure)),
        }
        Ok(())
    }

    /// Returns the number of documents of the next slice, from the yield of the `seen` documents.
    fn next_slice(&self, seen: u32) -> u32 {
        let (missing, found) = (
            self.output.missing(self.plan).unwrap_or_default(),
            self.output.len().max(1) as u64,
        );
        let wanted = missing.saturating_mul(u64::from(seen)) / found;
        let (least, most) = (
            self.budget.slice.max(1),
            seen.saturating_mul(4).max(self.budget.slice.max(1)),
        );
        u32::try_from(wanted).unwrap_or(u32::MAX).clamp(least, most)
    }

    fn is_full(&mut self) -> bool {
        self.output.is_full(self.plan, &self.work)
    }

    /// The documents with some numbers; of a query about one EHR, with these numbers there.
    fn each_document(
        &mut self,
        batch: &Batch,
        range: Range<u32>,
        last_ehr: &LastEhr,
        open: &mut Vec<Task>,
    ) -> Result<(), Halt> {
        let ehrs = self.plan.scan().ehrs_in(batch);
        let only = Scope::documents(self.plan, batch);
        let takes_part = |ehr: u32| match &ehrs {
            Some(ehrs) => ehrs.binary_search(&ehr).is_ok(),
            None => batch.is_queryable(ehr),
        };
        for at in range.clone() {
            let number = only.map_or(Some(at), |documents| documents.get(at as usize).copied());
            let Some(doc) = number.and_then(|number| batch.doc(number)) else {
                continue;
            };
            if at.is_multiple_of(1024) && (self.stopped)() {
                return Err(Halt::Failed(QueryError::Stopped));
            }
            if takes_part(doc.ehr) {
                let done = self.document(batch, doc, last_ehr);
                if let Err(Halt::Paused) = done {
                    open.push(Task::Documents(at..range.end));
                }
                done?;
            }
        }
        Ok(())
    }

    fn document(&mut self, batch: &Batch, doc: Doc, last_ehr: &LastEhr) -> Result<(), Halt> {
        let scan = self.plan.scan();
        if !scan.kinds.contains(&doc.row.kind)
            || !(scan.all_versions || (doc.row.latest && !doc.row.deleted))
        {
            return Ok(());
        }
        self.bind(batch, doc.ehr, Parent::Doc(doc), last_ehr)
    }

    fn each_ehr(
        &mut self,
        batch: &Batch,
        range: Range<u32>,
        last_ehr: &LastEhr,
        open: &mut Vec<Task>,
    ) -> Result<(), Halt> {
        let queryable = || {
            batch
                .ehrs()
                .filter(|ehr| batch.is_queryable(*ehr))
                .collect()
        };
        let ehrs: Vec<u32> = self.plan.scan().ehrs_in(batch).unwrap_or_else(queryable);
        for (at, ehr) in (0..).zip(ehrs).skip(range.start as usize) {
            if (self.stopped)() {
                return Err(Halt::Failed(QueryError::Stopped));
            }
            let done = self.bind(batch, ehr, Parent::Ehr(ehr), last_ehr);
            if let Err(Halt::Paused) = done {
                open.push(Task::Ehrs(at..range.end));
            }
            done?;
        }
        Ok(())
    }

    /// Outputs the rows of one document or EHR, from the position of its trail.
    fn bind(
        &mut self,
        batch: &Batch,
        ehr: u32,
        parent: Parent<'_>,
        last_ehr: &LastEhr,
    ) -> Result<(), Halt> {
        let (plan, now, budget) = (self.plan, self.now, self.budget);
        let (work, trail) = (Rc::clone(&self.work), Rc::clone(&self.trail));
        let view = View::new(batch).counting(&work);
        let binder = Binder {
            plan,
            view,
            ehr,
            last_ehr,
            work: &work,
            trail: &trail,
            listed: OnceCell::new(),
        };
        let most = budget.rows_of_variable(plan);
        let expander = Expander {
            plan,
            view,
            most,
            plain: budget.plain,
        };
        let (mut assignment, mut row) = (
            vec![Node::NONE; plan.query.variables.len()],
            vec![Node::NONE; plan.width],
        );
        let mut halt = None;
        let output = &mut self.output;
        let flow = binder.bind(&plan.query.from, parent, &mut assignment, &mut |a| {
            let done = rows_of(
                ConditionEvaluator { plan, view, now },
                expander,
                &trail,
                a,
                &mut row,
                output,
                (&budget, &work),
            );
            halt = done.err();
            if halt.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let halted = match (flow, halt) {
            _ if work.is_over() => Err(Halt::Failed(QueryError::TooMuchWork(budget.work))),
            (_, Some(halt)) => Err(halt),
            (ControlFlow::Break(()), None) => Err(Halt::Paused),
            (ControlFlow::Continue(()), None) => Ok(()),
        };
        if !matches!(halted, Err(Halt::Paused)) {
            self.trail.clear();
        }
        halted
    }
}

/// Takes the rows of an assignment that the trail has not passed.
fn rows_of<'p: 'b, 'b>(
    evaluator: ConditionEvaluator<'p, 'b>,
    expander: Expander<'p, 'b>,
    trail: &Trail,
    assignment: &[Node],
    row: &mut [Node],
    output: &mut Output,
    (budget, work): (&Budget, &Work),
) -> Result<(), Halt> {
    let (plan, view) = (evaluator.plan, evaluator.view);
    let product = trail
        .product()
        .unwrap_or_else(|| expander.product(assignment));
    if product.widest() > expander.most {
        return Err(Halt::Failed(QueryError::TooManyCombinations(expander.most)));
    }
    let order = if plan.single {
        None
    } else {
        Some(join_order(view.batch, assignment))
    };
    for number in trail.rows()..product.len() {
        if work.step(STEP).is_break() {
            trail.leave(product, number);
            return Err(Halt::Paused);
        }
        product.fill(number, row);
        if evaluator.keeps(row) {
            output.take(evaluator, row, order);
            view.count(ROW);
            if output.is_full(plan, work) {
                return Err(Halt::Full);
            }
            if number % CHECKED == CHECKED - 1 {
                output.within(plan, budget, work)?;
            }
        }
    }
    trail.close_rows();
    Ok(output.within(plan, budget, work)?)
}

/// The rows of one assignment between two checks of the budget.
const CHECKED: u64 = 256;

/// The default order of a row whose assignment joins documents: the first bound document of the
/// class expressions decides, unbound ones before it come last. Within one EHR, and where only EHRs
/// are bound, rows come in the right order by themselves.
fn join_order(batch: &Batch, assignment: &[Node]) -> (u64, u64) {
    let ordinal = |node: &Node| {
        let table = batch.table(node.fragment.table)?;
        let is_ehr = table.layout().class() == aqlite_rm::class::Cls::EHR;
        let number = *table.docs().get(node.fragment.row as usize)?;
        (!is_ehr)
            .then(|| batch.doc(number).map(|d| d.row.ordinal))
            .flatten()
    };
    match assignment
        .iter()
        .enumerate()
        .find_map(|(i, node)| ordinal(node).map(|o| (i, o)))
    {
        Some((before, ordinal)) => (before as u64, ordinal),
        None => (u64::MAX, u64::MAX),
    }
}
