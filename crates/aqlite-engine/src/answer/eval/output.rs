//! The output of a run: the steps after WHERE, which are groups and aggregates, ORDER BY, DISTINCT
//! and the window.
//!
//! # The kinds of output
//!
//! The treatment of a row depends on the query alone, so it is decided once, by [`Output::new`].
//! Each kind is a type with its own lists and invariants:
//!
//! - [`PlainRows`]: each row belongs to one document, and there is neither an aggregate nor ORDER BY.
//!   The rows are output in order of arrival.
//!
//!   ```aql
//!   SELECT DISTINCT o/name/value FROM EHR e CONTAINS OBSERVATION o LIMIT 20 OFFSET 40
//!   ```
//! - [`HeldRows`]: ORDER BY, or rows that join documents of an EHR, which arrive EHR by EHR. The rows
//!   are sorted at the end.
//!
//!   ```aql
//!   SELECT o/uid/value AS id FROM EHR e CONTAINS OBSERVATION o ORDER BY id DESC LIMIT 5
//!   SELECT a/name/value FROM EHR e CONTAINS (COMPOSITION a AND COMPOSITION b) LIMIT 5
//!   ```
//! - [`Groups`]: aggregates. Rows are not held.
//!
//!   ```aql
//!   SELECT c/name/value, COUNT(*) FROM EHR e CONTAINS COMPOSITION c
//!   ```
//! - [`VisitedRows`]: the caller computes with the values and needs no result set
//!   ([`Run::push_each`](super::Run::push_each)). Guides read their data so.
//!
//!   ```aql
//!   SELECT o/data FROM EHR e CONTAINS OBSERVATION o
//!   ```
//! - [`DocumentMarks`]: a side of a [semi-join](super::semi_join), of which only the documents matter.
//!   Here, `OBSERVATION o` is a side, and `OBSERVATION p` the other one.
//!
//!   ```aql
//!   SELECT o/name/value FROM EHR e
//!   CONTAINS ((COMPOSITION a CONTAINS OBSERVATION o) AND (COMPOSITION b CONTAINS OBSERVATION p))
//!   ```
//!
//! Rows of all kinds arrive by [`Output::take`] or [`Output::take_at`], which have one `match` for
//! each row. Faster paths pass whole blocks of rows, and request their kind once: a
//! [projection](super::projection) fills plain rows, and the sinks of [row templates](super::templates)
//! add blocks to groups.
//!
//! The cells of all rows are in one [`ResultCells`], and the kinds have the numbers of their rows. The
//! cells are no part of a kind: plain rows, held rows and groups all need them in the end, and all
//! that refers to the dictionary of a batch is in one place.
//!
//! # The life of a row
//!
//! 1. **Take.** A row that passed WHERE arrives as *nodes*: one reference into the batch for each
//!    path of the query. A plain row gets cells at once, unless it is before the window. A group adds
//!    the nodes to its aggregates and forgets them.
//! 2. **Hold.** A held row gets its sort keys at once. If only the first k rows are needed, it stays
//!    as nodes, and most rows are removed before they have cells.
//! 3. **Cells.** At the end of a batch, [`Output::make_cells`] makes the cells that are missing,
//!    because nodes refer to the batch.
//! 4. **Finish.** At the end of the run, [`Output::close`] does the rest in pieces: complete groups
//!    become held rows, held rows are sorted, duplicates are removed. [`Output::finish`] applies the
//!    window.
//!
//! # Words
//!
//! - *Cells*: the values of a row in the result buffer. Rows are numbered in order of their making.
//! - *Nodes*: the references into the batch from which cells and keys are read.
//! - *Keys*: the sort keys of a row, one for each term of ORDER BY. A *grouping key* is the text that
//!   identifies a group.
//! - *Position*: the number of a row among all rows of the run, for the default order. If rows do not
//!   arrive in order, each fragment of a batch has a position.
//! - *Window*: LIMIT and OFFSET, or TOP.
//! - *Skipped*: rows before the window of which no cells are held.

mod close;
mod distinct;
mod document_marks;
mod groups;
mod held_rows;
mod part;
mod plain_rows;
mod result_cells;
mod row_order;
mod sort;
mod visited_rows;

use super::accumulator::order_at;
use super::block::RowPosition;
use super::condition::ConditionEvaluator;
use super::node::{Node, View};
use super::row_value::RowVisit;
use super::semi_join::DocumentSet;
use super::work::Work;
use super::{Budget, QueryError};
use crate::answer::plan::Plan;
use crate::document::Batch;
use close::Closing;
use document_marks::DocumentMarks;
pub(super) use groups::Groups;
use held_rows::HeldRows;
pub(super) use held_rows::{best_of, first_of_join};
pub(super) use part::OutputPart;
pub(super) use plain_rows::PlainRows;
pub(super) use result_cells::ResultCells;
pub(super) use row_order::{JoinOrder, RowOrder};
use visited_rows::VisitedRows;

/// The output of a run: receives the rows that passed WHERE, and creates the result set.
#[derive(Clone)]
pub(super) struct Output {
    kind: Kind,
    /// The cells of plain rows and held rows.
    cells: ResultCells,
    /// The position of the last row in the run; the first row has 1.
    position: u64,
    /// The progress of ending the run.
    closing: Closing,
}

/// The kind of an output, with its rows.
#[derive(Clone)]
enum Kind {
    Plain(PlainRows),
    Held(HeldRows),
    Groups(Groups),
    Visited(VisitedRows),
    Documents(DocumentMarks),
}

impl Kind {
    /// Returns the kind of a query that has a result set.
    fn of(plan: &Plan) -> Kind {
        let query = &plan.query;
        if query.is_grouped() {
            Kind::Groups(Groups::new(plan))
        } else if plan.single && query.order.is_empty() {
            Kind::Plain(PlainRows::new(query))
        } else {
            Kind::Held(HeldRows::new(plan))
        }
    }

    /// Returns the rows that are sorted at the end of the run.
    fn held_rows(&mut self) -> Option<&mut HeldRows> {
        match self {
            Kind::Held(rows) => Some(rows),
            Kind::Groups(groups) => Some(groups.rows()),
            Kind::Plain(_) | Kind::Visited(_) | Kind::Documents(_) => None,
        }
    }
}

impl Output {
    /// Creates an output for the result set of a query.
    pub fn new(plan: &Plan) -> Output {
        Output {
            kind: Kind::of(plan),
            cells: ResultCells::new(plan.query.select.len()),
            position: 0,
            closing: Closing::default(),
        }
    }

    /// Creates an output that marks the documents of the rows. `union` has all documents of the
    /// batches that follow.
    pub fn of_documents(union: &Batch) -> Output {
        Output {
            kind: Kind::Documents(DocumentMarks::of(union)),
            cells: ResultCells::new(0),
            position: 0,
            closing: Closing::default(),
        }
    }

    /// Prepares the output for rows that [`Output::release`] passes to a visitor. A query with
    /// aggregates has groups and no such rows.
    pub fn begin_visits(&mut self, work: &Work) {
        if matches!(self.kind, Kind::Visited(_) | Kind::Groups(_)) {
            return;
        }
        if self.len() > 0 {
            work.note_broken("a run holds rows before its rows are passed on");
        }
        self.kind = Kind::Visited(VisitedRows::default());
    }

    /// Adds a row that passed WHERE. `order` is its default order, if rows do not arrive in that
    /// order.
    pub fn take<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        order: Option<JoinOrder>,
    ) {
        self.position += 1;
        let order = match order {
            None => RowOrder {
                position: self.position,
                ..RowOrder::default()
            },
            Some(JoinOrder { variable, ordinal }) => RowOrder {
                position: variable,
                within: ordinal,
                arrival: self.position,
            },
        };
        self.take_in(evaluator, row, order);
    }

    /// Adds a row that passed WHERE, with its position in the batch.
    pub fn take_at<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        position: RowPosition,
    ) {
        self.take_in(evaluator, row, order_at(self.position, position));
    }

    fn take_in<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        order: RowOrder,
    ) {
        match &mut self.kind {
            // Plain rows arrive in order.
            Kind::Plain(rows) => rows.take(&mut self.cells, evaluator, row),
            Kind::Held(rows) => rows.take(&mut self.cells, evaluator, row, order),
            Kind::Groups(groups) => groups.take(evaluator, row, order),
            Kind::Visited(rows) => rows.take(row, order),
            Kind::Documents(documents) => documents.take(evaluator, row),
        }
    }

    /// Reserves memory for `rows` more rows, as far as the output holds them at once.
    pub fn reserve(&mut self, plan: &Plan, rows: usize) {
        match &mut self.kind {
            Kind::Held(held) => held.reserve(&plan.query, rows),
            Kind::Visited(visited) => visited.reserve(rows, plan.width),
            Kind::Plain(_) | Kind::Groups(_) | Kind::Documents(_) => {}
        }
    }

    /// Advances the position of the next batch by the number of positions in the last one.
    pub fn advance_position(&mut self, positions: u64) {
        self.position = self.position.saturating_add(positions);
    }

    /// Returns the plain rows and their cells; `None` for any other kind.
    pub fn plain_rows(&mut self) -> Option<(&mut PlainRows, &mut ResultCells)> {
        match &mut self.kind {
            Kind::Plain(rows) => Some((rows, &mut self.cells)),
            _ => None,
        }
    }

    fn as_plain(&self) -> Option<&PlainRows> {
        match &self.kind {
            Kind::Plain(rows) => Some(rows),
            _ => None,
        }
    }

    /// Returns the number of rows that a query for its first rows still needs; `None` for other
    /// queries.
    pub fn missing(&self) -> Option<u64> {
        self.as_plain().and_then(PlainRows::missing)
    }

    /// Returns the number of rows before the window that were neither made nor skipped; 0 if this is
    /// not known before the end of the run.
    pub fn before_window(&self) -> u64 {
        self.as_plain().map_or(0, PlainRows::before_window)
    }

    /// Returns the number of plain rows that arrived (see [`PlainRows::arrived`]).
    pub fn arrived(&self) -> u64 {
        self.as_plain().map_or(0, PlainRows::arrived)
    }

    /// Returns whether more rows cannot change the result: rows arrive in final order and the
    /// window is full.
    pub fn is_full(&mut self, work: &Work) -> bool {
        match &mut self.kind {
            Kind::Plain(rows) => rows.is_full(&mut self.cells, work),
            _ => false,
        }
    }

    /// Returns the groups, and the position before the next batch; `None` for any other kind.
    pub fn groups(&mut self) -> Option<(&mut Groups, u64)> {
        match &mut self.kind {
            Kind::Groups(groups) => Some((groups, self.position)),
            _ => None,
        }
    }

    /// Returns whether a query has aggregates and no keys, so that its only group receives rows in
    /// any order.
    pub fn has_only_group(&self) -> bool {
        matches!(&self.kind, Kind::Groups(groups) if groups.has_only_group())
    }

    /// Sets the number in the union of the first document of the batch that follows, for an output
    /// that marks documents.
    pub fn begin_part(&mut self, first: u32) {
        if let Kind::Documents(documents) = &mut self.kind {
            documents.begin_batch(first);
        }
    }

    /// Takes the marked documents; `None` for any other kind.
    pub fn marked_documents(&mut self) -> Option<DocumentSet> {
        match &mut self.kind {
            Kind::Documents(documents) => Some(documents.finish()),
            _ => None,
        }
    }

    /// Passes the rows of a piece to a visitor in default order, or backward, and removes them.
    pub fn release(
        &mut self,
        plan: &Plan,
        view: View<'_>,
        is_backward: bool,
        visit: RowVisit<'_>,
        work: &Work,
    ) {
        if let Kind::Visited(rows) = &mut self.kind
            && !rows.release(plan, view, is_backward, visit)
        {
            work.note_broken("a visited row has no nodes");
        }
    }

    /// Removes rows that the result does not need, and checks that the others are within the limits.
    ///
    /// # Errors
    /// When there are too many rows, or they are too large.
    pub fn check_limits(&mut self, budget: &Budget, work: &Work) -> Result<(), QueryError> {
        if let Kind::Plain(rows) = &mut self.kind {
            rows.reduce(&mut self.cells, work);
        }
        budget.check(self.len(), self.bytes())
    }

    /// Makes the cells that are still missing, because the batch ends.
    pub fn make_cells<'p: 'b, 'b>(&mut self, evaluator: ConditionEvaluator<'p, 'b>) {
        if let Kind::Held(rows) = &mut self.kind {
            rows.make_cells(&mut self.cells, evaluator);
        }
    }

    /// Prepares the output for the rows of another batch.
    pub fn switch_batch(&mut self, view: View<'_>) {
        self.cells.switch_batch(view);
    }

    /// Reads the texts of a checkpoint that the rows refer to, so that later reads cannot fail.
    pub fn fetch_texts(&self) {
        self.cells.buffer.fetch_texts();
    }

    /// Returns the broken invariant of the result buffer, if any: rows are missing or incomplete.
    pub fn broken(&self) -> Option<&'static str> {
        self.cells.buffer.broken()
    }

    /// Returns the number of rows or groups.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Plain(rows) => rows.len(),
            Kind::Held(rows) => rows.len(),
            Kind::Groups(groups) => groups.len(),
            Kind::Visited(rows) => rows.len(),
            Kind::Documents(_) => 0,
        }
    }

    /// Returns an estimate of the bytes held.
    pub fn bytes(&self) -> usize {
        let of_kind = match &self.kind {
            Kind::Plain(rows) => rows.bytes(),
            Kind::Held(rows) => rows.bytes(),
            Kind::Groups(groups) => groups.bytes(),
            Kind::Visited(rows) => rows.bytes(),
            Kind::Documents(_) => 0,
        };
        of_kind + self.cells.bytes()
    }

    /// Returns an estimate of the allocated bytes, which the run takes from the memory of its host.
    /// A growing list allocates up to twice as much as it holds.
    pub fn footprint(&self) -> usize {
        let of_kind = match &self.kind {
            Kind::Plain(rows) => rows.footprint(),
            Kind::Held(rows) => rows.footprint(),
            Kind::Groups(groups) => groups.footprint(),
            Kind::Visited(rows) => rows.footprint(),
            Kind::Documents(_) => 0,
        };
        of_kind + self.cells.footprint()
    }
}
