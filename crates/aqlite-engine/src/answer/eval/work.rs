//! Work: the spent part of a budget, in units that are the same on every machine.
//!
//! A clock cannot bound a query, because the clock of a Cloudflare worker does not advance while
//! code runs. Every loop over data therefore counts its work. A unit is about the cost of one value
//! of a column; other steps cost multiples of it. Counting is one addition to a cell: once for each
//! batch of columnar rows, once for each step elsewhere.

use super::QueryError;
use super::execution_path::Taken;
use super::top_k::BestRanks;
use crate::document::absent_reads;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

/// Units of one candidate of a class expression, or one node that a path reaches.
pub(super) const STEP: u64 = 32;

/// Units of one condition of WHERE for one row.
pub(super) const TEST: u64 = 16;

/// Units of one row that is made of nodes, tested or shown.
pub(super) const ROW: u64 = 64;

/// Units of one cell that is made, or compared or hashed: a row has as many as SELECT or ORDER BY
/// has columns.
pub(super) const CELL: u64 = 32;

/// Units of a byte of JSON that is written for an object.
pub(super) const BYTE: u64 = 4;

/// Units that may be spent where nothing can pause: in one comparison with a pattern, in the
/// conditions or the cells of one row, and, after a pause is due, in the paths of one fragment. What
/// takes more ends the run.
const UNPAUSED: u64 = 33_554_432;

/// Units of the cells of one row. A body of a request has at most ten megabytes unless the host is
/// configured otherwise. The object that is stored from it is written with [`BYTE`] units a byte,
/// and may be three times as long as the body.
const UNPAUSED_CELLS: u64 = 134_217_728;

/// Bytes of compared texts for one unit: equal texts are compared eight bytes and more at a time.
const COMPARED: u64 = 8;

/// Returns the units of comparing `bytes` bytes of texts.
pub(super) fn of_texts(bytes: usize) -> u64 {
    bytes as u64 / COMPARED
}

/// The work of one run.
#[derive(Debug)]
pub(super) struct Work {
    limit: u64,
    /// The smaller limit that the run has exceeded, if any.
    exceeded: Cell<Option<u64>>,
    /// Bytes that the run may hold.
    most: usize,
    /// Is set once the run would have held more.
    is_too_large: Cell<bool>,
    spent: Cell<u64>,
    /// The rows that zone maps left out.
    left_out: Cell<u64>,
    /// Units between two pauses.
    piece: u64,
    /// The units at which the next pause is due.
    pause_at: Cell<u64>,
    /// Whether no step was made: set until the first step of a piece: each piece makes at least
    /// one, or it would never end.
    is_fresh: Cell<bool>,
    /// The same for the steps of searches of which only the outcome is asked.
    is_fresh_search: Cell<bool>,
    /// The execution paths that were taken.
    pub taken: Taken,
    /// The best ranks of a top-k query.
    pub best_ranks: RefCell<BestRanks>,
    /// Whether an earlier piece read an absent part.
    read_absent: Cell<bool>,
    /// The reads of absent parts on this thread when the piece began.
    reads_before: Cell<u64>,
    /// The broken invariant, if any: the run ends without an answer.
    broken: Cell<Option<&'static str>>,
}

impl Work {
    /// Nothing is spent; `limit` units may be, with a pause after each `piece` of them, and `most`
    /// bytes may be held.
    pub fn new(limit: u64, piece: u64, most: usize) -> Work {
        let piece = piece.max(1);
        Work {
            limit,
            exceeded: Cell::new(None),
            most,
            is_too_large: Cell::new(false),
            spent: Cell::new(0),
            left_out: Cell::new(0),
            piece,
            pause_at: Cell::new(piece),
            is_fresh: Cell::new(true),
            is_fresh_search: Cell::new(true),
            taken: Taken::default(),
            best_ranks: RefCell::default(),
            read_absent: Cell::new(false),
            reads_before: Cell::new(absent_reads()),
            broken: Cell::new(None),
        }
    }

    /// Units spent so far.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Counts rows that zone maps left out.
    pub fn leave_out(&self, rows: usize) {
        self.left_out.set(self.left_out.get() + rows as u64);
    }

    /// Returns the number of rows that zone maps left out.
    pub fn left_out(&self) -> u64 {
        self.left_out.get()
    }

    /// Units between two pauses.
    pub fn piece(&self) -> u64 {
        self.piece
    }

    /// Counts units.
    pub fn add(&self, units: u64) {
        self.spent.set(self.spent.get().saturating_add(units));
    }

    /// Counts units of one comparison; false when that alone takes too many, which ends the run.
    pub fn compare(&self, units: u64, so_far: &mut u64) -> bool {
        self.add(units);
        *so_far = so_far.saturating_add(units);
        if *so_far > UNPAUSED {
            self.exceed(UNPAUSED);
        }
        !self.is_over()
    }

    /// Ends the run when the conditions of one row took too many units; false when the run is over.
    pub fn bounds_row(&self, units: u64) -> bool {
        self.bounds(units, UNPAUSED)
    }

    /// Ends the run when the cells of one row took too many units; false when the run is over.
    pub fn bounds_cells(&self, units: u64) -> bool {
        self.bounds(units, UNPAUSED_CELLS)
    }

    /// Ends the run when too much was spent since a pause became due; false when the run is over.
    pub fn bounds_overdue(&self) -> bool {
        let overdue = self.spent.get().saturating_sub(self.pause_at.get());
        self.bounds(overdue, UNPAUSED)
    }

    fn bounds(&self, units: u64, limit: u64) -> bool {
        if units > limit {
            self.exceed(limit);
        }
        !self.is_over()
    }

    /// Returns whether the run may hold `bytes` bytes in all. Otherwise the run ends. Texts may have
    /// megabytes, so a copy of one is counted before it is kept.
    pub fn has_room(&self, bytes: usize) -> bool {
        if bytes > self.most {
            self.is_too_large.set(true);
        }
        bytes <= self.most
    }

    /// Ends the run, which has exceeded a smaller limit than that of all its work.
    fn exceed(&self, limit: u64) {
        self.exceeded.set(Some(limit));
    }

    /// Returns whether the run has exceeded a limit.
    pub fn is_over(&self) -> bool {
        self.spent.get() > self.limit || self.exceeded.get().is_some() || self.is_too_large.get()
    }

    /// Returns whether it is time to let others work.
    pub fn is_due(&self) -> bool {
        self.spent.get() >= self.pause_at.get()
    }

    /// Returns whether the run read an absent part. Its answer is then discarded: the host loads
    /// the part and starts the run again, see [`absent_reads`].
    pub fn is_void(&self) -> bool {
        self.read_absent.get() || absent_reads() != self.reads_before.get()
    }

    /// Ends a piece. Other runs may read absent parts on this thread until the next piece.
    pub fn pause(&self) {
        self.read_absent.set(self.is_void());
        self.reads_before.set(absent_reads());
    }

    /// Starts the next piece.
    pub fn resume(&self) {
        self.reads_before.set(absent_reads());
        self.pause_at
            .set(self.spent.get().saturating_add(self.piece));
        self.is_fresh.set(true);
        self.is_fresh_search.set(true);
    }

    /// Forgets absent parts and broken invariants: the run returns to a state before them. What was
    /// spent stays spent.
    pub fn roll_back(&self) {
        self.read_absent.set(false);
        self.reads_before.set(absent_reads());
        self.broken.set(None);
    }

    /// Counts a step of a search; breaks as [`Work::step`] does. Each piece makes at least one of
    /// these steps too, so that a search advances however small the pieces are.
    pub fn search_step(&self, units: u64) -> ControlFlow<()> {
        let waits = self.is_due() && !self.is_fresh_search.replace(false);
        self.add(units);
        if waits || self.is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Counts a step of an enumeration; breaks when the budget is spent or a pause is due.
    pub fn step(&self, units: u64) -> ControlFlow<()> {
        let waits = self.is_due() && !self.is_fresh.replace(false);
        self.add(units);
        if waits || self.is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Records a broken invariant. The run then ends with an error.
    ///
    /// A void run breaks no invariant: an absent part returns nothing, and its answer is discarded.
    pub fn note_broken(&self, what: &'static str) {
        if !self.is_void() {
            self.broken.set(Some(what));
        }
    }

    /// Returns the broken invariant, if any.
    pub fn broken(&self) -> Option<&'static str> {
        self.broken.get()
    }

    /// # Errors
    /// When an invariant is broken, the budget is spent, or too much would be held.
    pub fn check(&self) -> Result<(), QueryError> {
        if let Some(what) = self.broken() {
            Err(QueryError::Broken(what))
        } else if self.is_too_large.get() {
            Err(QueryError::TooLarge(self.most))
        } else if self.is_over() {
            Err(QueryError::TooMuchWork(
                self.exceeded.get().unwrap_or(self.limit),
            ))
        } else {
            Ok(())
        }
    }
}
