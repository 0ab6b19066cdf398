//! Work: the consumption of a run in units that are the same on every machine.
//!
//! A clock cannot limit a query, because the clock of a Cloudflare worker does not advance while
//! code runs. Every loop over data therefore counts its work. A unit is about the cost of one value
//! of a column, and other steps cost multiples of it. Counting is one addition to a cell: once for
//! each batch of columnar rows, once for each step elsewhere.

use super::QueryError;
use super::absent_parts::AbsentParts;
use super::execution_path::TakenPaths;
use super::top_k::BestRanks;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

/// The units of one candidate of a class expression, or of one node that a path reaches.
pub(super) const STEP: u64 = 32;

/// The units of one condition of WHERE for one row.
pub(super) const TEST: u64 = 16;

/// The units of one row of nodes that is made, tested or output.
pub(super) const ROW: u64 = 64;

/// The units of one cell that is made, compared or hashed. A row has as many cells as SELECT or
/// ORDER BY has columns.
pub(super) const CELL: u64 = 32;

/// The units of one byte of JSON that is written for an object.
pub(super) const BYTE: u64 = 4;

/// The limit of units between two possible pauses: in one comparison with a pattern, in the
/// conditions or the cells of one row, and, after a pause is due, in the paths of one fragment. A
/// run that exceeds it ends with an error.
const UNPAUSED: u64 = 33_554_432;

/// The limit of units for the cells of one row. By default, the body of a request has at most ten
/// megabytes. The object that is stored from it is written with [`BYTE`] units for each byte, and
/// can be three times as long as the body.
const UNPAUSED_CELLS: u64 = 134_217_728;

/// The bytes of compared texts for one unit. Equal texts are compared eight or more bytes at a
/// time.
const COMPARED: u64 = 8;

/// Returns the units of comparing `bytes` bytes of texts.
pub(super) fn of_texts(bytes: usize) -> u64 {
    bytes as u64 / COMPARED
}

/// The work counter of one run, with its limits, and the absent parts that the run has met.
///
/// A run is evaluated in pieces. After each of them, the host calls [`Work::pause`]. If the run is
/// void ([`Work::is_void`]), the host loads the absent parts and evaluates it again, as a new run
/// ([`Work::follow`]) or from an earlier state of this one ([`Work::roll_back`]). Then
/// [`Work::resume`] begins the next piece.
#[derive(Debug)]
pub(super) struct Work {
    limit: u64,
    /// The limit that the run has exceeded, if it is not the limit of all work.
    exceeded: Cell<Option<u64>>,
    /// The largest number of bytes that the run may hold.
    max_bytes: usize,
    /// Whether the run would have held more bytes than allowed.
    is_too_large: Cell<bool>,
    spent: Cell<u64>,
    /// The number of rows that zone maps excluded.
    pruned_rows: Cell<u64>,
    /// The units between two pauses.
    piece: u64,
    /// The units at which the next pause is due.
    pause_at: Cell<u64>,
    /// Whether the current piece has made no step. Each piece makes at least one step, or the run
    /// would never end.
    is_fresh: Cell<bool>,
    /// Whether the current piece has made no step of a search for existence.
    is_fresh_search: Cell<bool>,
    /// The execution paths that were taken.
    pub taken: TakenPaths,
    /// The best ranks of a top-k query.
    pub best_ranks: RefCell<BestRanks>,
    /// The absent parts that the run has read.
    absent: AbsentParts,
    /// The broken invariant, if any. The run then ends with an error.
    broken: Cell<Option<&'static str>>,
}

impl Work {
    /// Creates a counter with the limit of work, the units between two pauses, and the limit of
    /// bytes.
    pub fn new(limit: u64, piece: u64, max_bytes: usize) -> Work {
        let piece = piece.max(1);
        Work {
            limit,
            exceeded: Cell::new(None),
            max_bytes,
            is_too_large: Cell::new(false),
            spent: Cell::new(0),
            pruned_rows: Cell::new(0),
            piece,
            pause_at: Cell::new(piece),
            is_fresh: Cell::new(true),
            is_fresh_search: Cell::new(true),
            taken: TakenPaths::default(),
            best_ranks: RefCell::default(),
            absent: AbsentParts::default(),
            broken: Cell::new(None),
        }
    }

    /// Returns the units that were spent.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Counts rows that zone maps excluded.
    pub fn add_pruned_rows(&self, rows: u64) {
        self.pruned_rows.set(self.pruned_rows.get() + rows);
    }

    /// Returns the number of rows that zone maps excluded.
    pub fn pruned_rows(&self) -> u64 {
        self.pruned_rows.get()
    }

    /// Returns the units between two pauses.
    pub fn piece(&self) -> u64 {
        self.piece
    }

    /// Counts units.
    pub fn add(&self, units: u64) {
        self.spent.set(self.spent.get().saturating_add(units));
    }

    /// Counts units of one comparison. Ends the run and returns false if this comparison alone
    /// exceeds its limit.
    pub fn add_comparison(&self, units: u64, so_far: &mut u64) -> bool {
        self.add(units);
        *so_far = so_far.saturating_add(units);
        if *so_far > UNPAUSED {
            self.exceed(UNPAUSED);
        }
        !self.is_over()
    }

    /// Ends the run if the conditions of one row exceed their limit of units. Returns false if the
    /// run is over.
    pub fn allows_row(&self, units: u64) -> bool {
        self.allows(units, UNPAUSED)
    }

    /// Ends the run if the cells of one row exceed their limit of units. Returns false if the run
    /// is over.
    pub fn allows_cells(&self, units: u64) -> bool {
        self.allows(units, UNPAUSED_CELLS)
    }

    /// Ends the run if it exceeds the limit of units after a pause became due. Returns false if the
    /// run is over.
    pub fn allows_overdue_work(&self) -> bool {
        let overdue = self.spent.get().saturating_sub(self.pause_at.get());
        self.allows(overdue, UNPAUSED)
    }

    fn allows(&self, units: u64, limit: u64) -> bool {
        if units > limit {
            self.exceed(limit);
        }
        !self.is_over()
    }

    /// Ends the run with an error if it would hold more than the permitted bytes. Returns false then.
    /// Texts can have megabytes, so a copy of one is counted before it is made.
    pub fn allows_bytes(&self, bytes: usize) -> bool {
        if bytes > self.max_bytes {
            self.is_too_large.set(true);
        }
        bytes <= self.max_bytes
    }

    /// Ends the run because of a limit other than that of all work.
    fn exceed(&self, limit: u64) {
        self.exceeded.set(Some(limit));
    }

    /// Returns whether the run has exceeded a limit.
    pub fn is_over(&self) -> bool {
        self.spent.get() > self.limit || self.exceeded.get().is_some() || self.is_too_large.get()
    }

    /// Returns whether a pause is due, so that the host can answer other requests.
    pub fn is_due(&self) -> bool {
        self.spent.get() >= self.pause_at.get()
    }

    /// Returns whether the run read an absent part (see [`AbsentParts::were_read`]).
    pub fn is_void(&self) -> bool {
        self.absent.were_read()
    }

    /// Returns whether the run visits the document, EHR or fragment at an index (see
    /// [`AbsentParts::samples`]).
    pub fn samples(&self, index: usize) -> bool {
        self.absent.samples(index)
    }

    /// Counts the attempts of an earlier run at the same evaluation, which read absent parts.
    pub fn follow(&self, earlier: &Work) {
        self.absent.follow(&earlier.absent);
    }

    /// Ends a piece. Other runs on this thread may read absent parts until the next piece.
    pub fn pause(&self) {
        self.absent.end_piece();
    }

    /// Starts the next piece.
    pub fn resume(&self) {
        self.absent.begin_piece();
        self.pause_at
            .set(self.spent.get().saturating_add(self.piece));
        self.is_fresh.set(true);
        self.is_fresh_search.set(true);
    }

    /// Forgets absent parts and broken invariants, because the run returns to a state before them.
    /// The units that were spent stay counted.
    pub fn roll_back(&self) {
        self.absent.begin_attempt();
        self.broken.set(None);
    }

    /// Counts a step of a search for existence. Breaks like [`Work::step`]. Each piece makes at
    /// least one such step, so that a search advances with pieces of any size.
    pub fn search_step(&self, units: u64) -> ControlFlow<()> {
        let waits = self.is_due() && !self.is_fresh_search.replace(false);
        self.add(units);
        if waits || self.is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Counts a step of an enumeration. Breaks if the budget is spent or a pause is due.
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
    /// A void run records nothing: an absent part reads as empty, and the result is discarded.
    pub fn note_broken(&self, what: &'static str) {
        if !self.is_void() {
            self.broken.set(Some(what));
        }
    }

    /// Returns the broken invariant, if any.
    pub fn broken(&self) -> Option<&'static str> {
        self.broken.get()
    }

    /// Returns the error that ends the run, if any.
    ///
    /// # Errors
    /// If an invariant is broken, the budget is spent, or the run would hold too many bytes.
    pub fn check(&self) -> Result<(), QueryError> {
        if let Some(what) = self.broken() {
            Err(QueryError::Broken(what))
        } else if self.is_too_large.get() {
            Err(QueryError::TooLarge(self.max_bytes))
        } else if self.is_over() {
            Err(QueryError::TooMuchWork(
                self.exceeded.get().unwrap_or(self.limit),
            ))
        } else {
            Ok(())
        }
    }
}
