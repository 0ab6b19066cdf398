//! Evaluation: batches of stored documents in, rows out.
//!
//! Push-based: the host pushes batches as it reads them, then requests the result. It can stop at
//! any time. Documents are never unpacked: nodes are items of layouts, values are leaves.

mod accumulator;
mod anchor_scan;
mod anchors;
mod bind;
mod block;
mod cells;
mod checkpoint;
mod close;
mod condition;
mod distinct;
mod execution_path;
mod expand;
mod function;
mod late_objects;
mod natural;
mod node;
mod output;
mod predicate;
mod projection;
mod row_value;
mod scope;
mod selection;
mod semi_join;
mod skip;
mod sort_key;
mod strategy;
mod sum;
mod templates;
mod top_k;
mod touched;
mod value;
mod work;

pub use checkpoint::Checkpoint;
pub use execution_path::ExecutionPath;
pub use row_value::{RowValue, ValueId};
pub use strategy::evaluation_strategy;
pub use touched::{Touched, TouchedLayout};

use super::plan::{BROKEN_INVARIANT, Plan};
use super::result::ResultSet;
use super::scan::Progress;
use super::semi_join::SemiJoin;
use crate::document::Batch;
use bind::{LastEhr, Trail};
use condition::ConditionEvaluator;
use node::{Node, View};
use output::Output;
use semi_join::{CompleteSides, JoinableDocuments, SideScan};
use std::fmt;
use std::rc::Rc;
use strategy::{Halt, Tasks};
use work::Work;

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

/// The number of rows of one assignment between two checks of the budget.
const CHECKED: u64 = 256;

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
            // A row has a node for each of `width` paths and variables.
            .min(BYTES_OF_VARIABLE.min(self.bytes) / (plan.width * size_of::<Node>()))
            .max(1)
    }
}

/// Why a run was given up; there is never a partial answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
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

impl QueryError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            QueryError::TooManyRows(_) => "TOO_MANY_ROWS",
            QueryError::TooManyCombinations(_) => "TOO_MANY_COMBINATIONS",
            QueryError::TooLarge(_) => "RESULT_TOO_LARGE",
            QueryError::TooMuchWork(_) => "TOO_MUCH_WORK",
            QueryError::Stopped => "ABORTED",
            QueryError::Broken(_) => BROKEN_INVARIANT,
        }
    }
}

impl std::error::Error for QueryError {}

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

/// One run of a plan.
pub struct Run<'p> {
    plan: &'p Plan,
    now: &'p str,
    budget: Budget,
    output: Output,
    stopped: &'p dyn Fn() -> bool,
    failure: Option<QueryError>,
    work: Rc<Work>,
    /// The remaining tasks of the current batch; absent between batches.
    open: Option<Tasks>,
    /// The position in the document or EHR that was begun.
    trail: Rc<Trail>,
    /// The numbers of the EHRs in the current batch that the query is about, ascending; `None` if it
    /// is about all.
    ehrs: Option<Rc<[u32]>>,
    /// The run that counts the rows of the current batch, if it has begun.
    counting: Option<Box<Run<'p>>>,
    /// Whether the window begins in the current batch or an earlier one.
    is_at_window: bool,
    /// The semi-joins of the query.
    semi_join: Option<&'p SemiJoin>,
    /// The search for the documents of the current batch that can be joined, if it has begun.
    search: Option<SideScan<'p>>,
    /// The documents of the current batch that can be joined, once they are found.
    joinable: Option<Rc<JoinableDocuments>>,
    /// The documents of the sides that are known.
    complete_sides: Option<CompleteSides>,
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
        let work = Rc::new(Work::new(budget.work, budget.piece, budget.bytes));
        Run::with_work(plan, now, (budget, work), stopped)
    }

    /// Starts a run that counts its work together with that of others.
    fn with_work(
        plan: &'p Plan,
        now: &'p str,
        (budget, work): (Budget, Rc<Work>),
        stopped: &'p dyn Fn() -> bool,
    ) -> Run<'p> {
        // The plain evaluation is the reference for semi-joins too, so it uses none.
        let semi_join = plan.semi_join.as_deref().filter(|_| !budget.plain);
        let plan = semi_join.map_or(plan, |semi_join| &semi_join.plan);
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
            ehrs: None,
            counting: None,
            is_at_window: false,
            semi_join,
            search: None,
            joinable: None,
            complete_sides: None,
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
        self.advance_on(batch, None)
    }

    /// Evaluates a piece of a batch, of the EHRs with these numbers if there are any.
    fn advance_on(&mut self, batch: &Batch, ehrs: Option<&[u32]>) -> Progress {
        if self.failure.is_some() {
            return Progress::Enough;
        }
        self.work.resume();
        let progress = self.advance_piece(batch, ehrs);
        self.work.pause();
        progress
    }

    fn advance_piece(&mut self, batch: &Batch, ehrs: Option<&[u32]>) -> Progress {
        if self.open.is_none()
            && let Some(progress) = self.skip_batch(batch, ehrs)
        {
            return progress;
        }
        if self.open.is_none()
            && let Some(progress) = self.find_joinable(batch, ehrs)
        {
            return progress;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => match self.begin(batch, ehrs) {
                Ok(open) => open,
                Err(failure) => {
                    self.failure = Some(failure);
                    return Progress::Enough;
                }
            },
        };
        self.open = self.evaluate_tasks(batch, open);
        if self.open.is_some() {
            return Progress::Paused;
        }
        self.close_batch(batch);
        if self.failure.is_some() || self.is_full() {
            Progress::Enough
        } else {
            Progress::More
        }
    }

    /// Evaluates tasks until a piece of work is done, and returns the tasks that are left; `None`
    /// if the batch is done, or the run is full or has failed.
    fn evaluate_tasks(&mut self, batch: &Batch, mut open: Tasks) -> Option<Tasks> {
        let last_ehr = LastEhr::default();
        while let Some(task) = open.pop() {
            match task.evaluate(self, batch, &last_ehr, &mut open) {
                Ok(()) if self.is_full() => return None,
                // There is no pause after the last task: the batch is complete.
                Ok(()) if !self.work.is_due() || open.is_empty() => {}
                Ok(()) | Err(Halt::Paused) if (self.stopped)() => {
                    self.failure = Some(QueryError::Stopped);
                    return None;
                }
                Ok(()) | Err(Halt::Paused) => return Some(open),
                Err(Halt::Full) => return None,
                Err(Halt::Failed(failure)) => {
                    self.failure = Some(failure);
                    return None;
                }
            }
        }
        None
    }

    /// Reads what the output still needs of a batch, and checks that the run has not failed.
    fn close_batch(&mut self, batch: &Batch) {
        self.joinable = None;
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
        self.output.fetch_words();
        if self.failure.is_none() && self.work.is_over() {
            self.failure = self.work.check().err();
        }
        let broken = batch.broken().or(self.work.broken());
        if let Some(what) = broken.or(self.output.broken()) {
            self.failure = Some(QueryError::Broken(what));
        }
    }

    /// Returns the tasks of a batch that was not begun.
    fn begin(&mut self, batch: &Batch, ehrs: Option<&[u32]>) -> Result<Tasks, QueryError> {
        let scan = self.plan.scan();
        // A segment has no index of the ids of EHRs, so the repository must supply the numbers.
        if batch.is_late() && scan.ehrs.is_some() != ehrs.is_some()
            || scan.ehr().and(ehrs).is_some()
        {
            return Err(QueryError::Broken(
                "the EHRs of a segment are not those of its query",
            ));
        }
        let named = || scan.ehrs_in(batch).map(Rc::from);
        self.ehrs = ehrs.map_or_else(named, |ehrs| Some(Rc::from(ehrs)));
        self.output.turn_to(View::new(batch));
        Ok(strategy::tasks(self, batch))
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
        self.advance_each_on(batch, None, visit)
    }

    /// Evaluates a piece of a segment like [`Run::advance_each`], for a query that names EHRs. They
    /// have these numbers in the segment, ascending. The query is about them whether population
    /// queries read them or not.
    pub fn advance_each_among(
        &mut self,
        segment: &Batch,
        ehrs: &[u32],
        visit: &mut dyn FnMut(&[RowValue<'_>]),
    ) -> Progress {
        self.advance_each_on(segment, Some(ehrs), visit)
    }

    fn advance_each_on(
        &mut self,
        batch: &Batch,
        ehrs: Option<&[u32]>,
        visit: &mut dyn FnMut(&[RowValue<'_>]),
    ) -> Progress {
        self.output.hold();
        let progress = self.advance_on(batch, ehrs);
        self.output.release(self.plan, View::new(batch), visit);
        progress
    }

    /// Units of work that were spent so far.
    pub fn work(&self) -> u64 {
        self.work.spent()
    }

    /// The rows that a comparison excluded by the range of the values of their column, without
    /// reading the column.
    pub fn left_out(&self) -> u64 {
        self.work.left_out()
    }

    /// Bytes that rows, groups and what decides their order take of the memory of the host, about:
    /// lists grow ahead of what they hold.
    pub fn footprint(&self) -> usize {
        self.output.footprint()
    }

    /// Does a piece of the remaining work after the last batch: groups become rows, rows are
    /// sorted. It is called until it is not [`Progress::Paused`], with pauses between the calls.
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

    fn is_full(&mut self) -> bool {
        self.output.is_full(self.plan, &self.work)
    }
}
