//! Evaluation of plans over batches of stored documents.
//!
//! Evaluation is push-based: the host pushes batches as it reads them, then requests the result. It
//! can cancel the run at any time. Documents are never unpacked: nodes are items of layouts, and
//! values are leaves.

mod absent_parts;
mod accumulator;
mod anchor_scan;
mod anchors;
mod bind;
mod block;
mod cells;
mod condition;
mod execution_path;
mod expand;
mod function;
mod late_objects;
mod layout_variant;
mod natural;
mod node;
mod output;
mod partial;
mod predicate;
mod projection;
mod row_value;
mod rows;
mod savepoint;
mod scan_statistics;
mod scope;
mod selection;
mod semi_join;
mod skip;
mod sort_key;
mod strategy;
mod sum;
mod templates;
mod top_k;
mod value;
mod work;

pub use execution_path::ExecutionPath;
pub use partial::PartialResult;
pub use row_value::{RowValue, RowVisit, ValueId};
pub use savepoint::Savepoint;
pub use scan_statistics::{LayoutStatistics, ScanStatistics};
pub use strategy::evaluation_strategy;

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

/// The limits of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The largest number of rows or groups that the run may hold.
    pub rows: usize,
    /// The largest number of bytes, estimated, that rows, groups and their sort keys may take.
    pub bytes: usize,
    /// The largest number of units of work. A unit is about the cost of one value of a column,
    /// which was a nanosecond on a machine of 2025. The count depends on data and query only, never
    /// on a clock.
    pub work: u64,
    /// The units of work after which [`Run::advance`] pauses, so that a host can answer other
    /// requests.
    pub piece: u64,
    /// Whether documents are evaluated one by one, without row templates. This is slower, and the
    /// reference for every fast path.
    pub plain: bool,
    /// The smallest number of documents of a slice, for queries that need any first rows. The
    /// number of rows is tested after each slice.
    pub slice: u32,
    /// The largest number of documents of a slice, for queries that need all rows. Intermediate
    /// data then fit the caches of the processor.
    pub part: u32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            rows: 1_000_000,
            bytes: 64 << 20,
            work: DEFAULT_WORK,
            piece: DEFAULT_PIECE,
            plain: false,
            slice: 16,
            part: 1 << 18,
        }
    }
}

/// The default limit of work: some seconds on one processor.
const DEFAULT_WORK: u64 = 2_000_000_000;

/// The default number of units between two pauses: some milliseconds.
const DEFAULT_PIECE: u64 = 10_000_000;

/// The number of rows of one assignment between two checks of the limits.
const ROWS_PER_BUDGET_CHECK: u64 = 256;

/// The largest number of bytes of the rows of one variable in one document while they are
/// multiplied.
const MAX_BYTES_OF_VARIABLE: usize = 16 << 20;

impl Budget {
    /// Checks a number of rows and their bytes against the limits.
    fn check(&self, rows: usize, bytes: usize) -> Result<(), QueryError> {
        match (rows > self.rows, bytes > self.bytes) {
            (true, _) => Err(QueryError::TooManyRows(self.rows)),
            (_, true) => Err(QueryError::TooLarge(self.bytes)),
            _ => Ok(()),
        }
    }

    /// Returns the largest number of rows that the paths of one variable may have in one document.
    fn rows_of_variable(&self, plan: &Plan) -> usize {
        self.rows
            // A row has a node for each of `width` paths and variables.
            .min(MAX_BYTES_OF_VARIABLE.min(self.bytes) / (plan.width * size_of::<Node>()))
            .max(1)
    }
}

/// The reason why a run ended without a result. There is never a partial result.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QueryError {
    /// The run held more rows than the limit.
    TooManyRows(usize),
    /// The paths of one variable have more rows in one document than the limit of a product.
    TooManyCombinations(usize),
    /// The rows take more bytes than the limit.
    TooLarge(usize),
    /// The run needed more work than the limit.
    TooMuchWork(u64),
    /// The host cancelled the run, or its time is over.
    Stopped,
    /// An invariant of the engine does not hold. There is no result, because it could be wrong.
    Broken(&'static str),
}

impl QueryError {
    /// Returns the stable code of the error.
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
                "the result takes more than {} MB; select paths instead of whole objects, narrow it by WHERE, by an EHR, or use LIMIT",
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
    /// The remaining tasks of the current batch; `None` between batches.
    open: Option<Tasks>,
    /// The position in the document or EHR whose evaluation has begun.
    trail: Rc<Trail>,
    /// The numbers of the EHRs in the current batch that the query concerns, ascending; `None` for
    /// all EHRs.
    ehrs: Option<Rc<[u32]>>,
    /// The run that counts the rows of the current batch, if it has begun.
    counting: Option<Box<Run<'p>>>,
    /// Whether the window begins in the current batch or an earlier one.
    is_at_window: bool,
    /// The semi-joins of the query.
    semi_join: Option<&'p SemiJoin>,
    /// The search for the joinable documents of the current batch, if it has begun.
    search: Option<SideScan<'p>>,
    /// The joinable documents of the current batch, if they were found.
    joinable: Option<Rc<JoinableDocuments>>,
    /// The documents of the sides that were evaluated completely.
    complete_sides: Option<CompleteSides>,
    /// Whether the rows of each piece are visited backward.
    is_backward: bool,
}

impl<'p> Run<'p> {
    /// Creates a run. `now` is the time of the run in ISO 8601 with a time zone; `stopped` returns
    /// whether the host has cancelled the run, and is called at intervals.
    pub fn new(
        plan: &'p Plan,
        now: &'p str,
        budget: Budget,
        stopped: &'p dyn Fn() -> bool,
    ) -> Run<'p> {
        let work = Rc::new(Work::new(budget.work, budget.piece, budget.bytes));
        Run::with_work(plan, now, (budget, work), stopped)
    }

    /// Creates a run that counts its work together with other runs.
    fn with_work(
        plan: &'p Plan,
        now: &'p str,
        (budget, work): (Budget, Rc<Work>),
        stopped: &'p dyn Fn() -> bool,
    ) -> Run<'p> {
        // The plain evaluation is the reference for semi-joins, so it uses none.
        let semi_join = plan.semi_join.as_deref().filter(|_| !budget.plain);
        let plan = semi_join.map_or(plan, |semi_join| &semi_join.plan);
        Run {
            plan,
            now,
            budget,
            output: Output::new(plan),
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
            is_backward: false,
        }
    }

    /// Makes [`Run::advance_each`] visit the rows of each piece backward, for a visitor that needs
    /// the latest rows only and can then pass over the others.
    #[must_use]
    pub fn backward(self, is_backward: bool) -> Run<'p> {
        Run {
            is_backward,
            ..self
        }
    }

    /// Evaluates a batch. Returns false if no more batches are needed, because the window is full
    /// or the run has failed.
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

    /// Evaluates a piece of a batch, limited to the EHRs with these numbers if any are passed.
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

    /// Evaluates tasks until a piece of work is done, and returns the tasks that remain. `None` if
    /// the batch is done, the window is full, or the run has failed.
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

    /// Reads the data of a batch that the output still needs, and checks that the run has not
    /// failed.
    fn close_batch(&mut self, batch: &Batch) {
        self.joinable = None;
        let evaluator = ConditionEvaluator {
            plan: self.plan,
            view: View::new(batch).counting(&self.work),
            now: self.now,
        };
        self.output.make_cells(evaluator);
        if batch.is_late() {
            // Texts are read now, so that all parts that the result needs are wanted by now.
            self.output.switch_batch(View::new(batch));
        }
        self.output.fetch_texts();
        if self.failure.is_none() && self.work.is_over() {
            self.failure = self.work.check().err();
        }
        let broken = batch.broken().or(self.work.broken());
        if let Some(what) = broken.or(self.output.broken()) {
            self.failure = Some(QueryError::Broken(what));
        }
    }

    /// Returns the tasks of a new batch.
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
        self.output.switch_batch(View::new(batch));
        Ok(strategy::tasks(self, batch))
    }

    /// Evaluates a batch like [`Run::push`], and passes each row that WHERE keeps to `visit`, in
    /// default order, with values that refer to the batch. The query must select paths, without
    /// aggregates, DISTINCT, order or window. These rows are not in the result set.
    pub fn push_each(&mut self, batch: &Batch, visit: RowVisit<'_>) -> bool {
        loop {
            match self.advance_each(batch, visit) {
                Progress::Paused => {}
                Progress::More => return true,
                Progress::Enough => return false,
            }
        }
    }

    /// Evaluates a piece of a batch like [`Run::advance`], and passes its rows to `visit` like
    /// [`Run::push_each`].
    pub fn advance_each(&mut self, batch: &Batch, visit: RowVisit<'_>) -> Progress {
        self.advance_each_on(batch, None, visit)
    }

    /// Evaluates a piece of a segment like [`Run::advance_each`], for a query that names EHRs.
    /// `ehrs` are their numbers in the segment, ascending. Their documents are read even if
    /// population queries leave them out.
    pub fn advance_each_among(
        &mut self,
        segment: &Batch,
        ehrs: &[u32],
        visit: RowVisit<'_>,
    ) -> Progress {
        self.advance_each_on(segment, Some(ehrs), visit)
    }

    fn advance_each_on(
        &mut self,
        batch: &Batch,
        ehrs: Option<&[u32]>,
        visit: RowVisit<'_>,
    ) -> Progress {
        self.output.begin_visits(&self.work);
        let progress = self.advance_on(batch, ehrs);
        self.output.release(
            self.plan,
            View::new(batch),
            self.is_backward,
            visit,
            &self.work,
        );
        progress
    }

    /// Returns the units of work that were spent so far.
    pub fn work(&self) -> u64 {
        self.work.spent()
    }

    /// Returns the number of rows that zone maps excluded, without reading the column.
    pub fn pruned_rows(&self) -> u64 {
        self.work.pruned_rows()
    }

    /// Returns an estimate of the memory that rows, groups and sort keys take from the host. Lists
    /// allocate more than they hold.
    pub fn footprint(&self) -> usize {
        self.output.footprint()
    }

    /// Does a piece of the remaining work after the last batch: groups become rows, and rows are
    /// sorted. The host calls it until it does not return [`Progress::Paused`], with pauses between
    /// the calls. [`Run::finish`] does the rest at once.
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

    /// Returns the execution paths that were taken so far.
    pub fn execution_paths(&self) -> impl Iterator<Item = ExecutionPath> + use<> {
        self.work.taken.paths()
    }

    /// Returns the result set.
    ///
    /// # Errors
    /// If the run exceeded a limit or was cancelled, or an invariant is broken.
    pub fn finish(self) -> Result<ResultSet, QueryError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.output.finish(self.plan, &self.budget, &self.work),
        }
    }

    fn is_full(&mut self) -> bool {
        self.output.is_full(&self.work)
    }
}
