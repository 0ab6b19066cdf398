//! The position of an enumeration of assignments, so that it can pause and resume.

use super::ParentKey;
use crate::answer::eval::expand::Product;
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

/// The position of the enumeration of the assignments of one document or EHR, so that it can be
/// left and gone on with.
///
/// Class expressions nest in one order. For each that is open the trail has the number of its
/// candidate; going on passes over those before it without a test.
#[derive(Default)]
pub(in crate::answer::eval) struct Trail {
    /// The number of the candidate of each open class expression, the outermost first.
    path: RefCell<Vec<u32>>,
    /// The number of open class expressions.
    depth: Cell<usize>,
    /// Rows of the present assignment that are done.
    rows: Cell<u64>,
    /// The rows of the present assignment, where the enumeration was left among them.
    product: RefCell<Option<Product>>,
    /// The number of rows of all assignments that WHERE kept.
    kept: Cell<u64>,
    /// The searches for a node of a class expression below a parent of which only the outcome is
    /// asked.
    pub(super) searches: RefCell<HashMap<(usize, ParentKey), Search>>,
}

/// A search for a node that passes a class expression and has below it what that contains.
#[derive(Clone, Copy, Default)]
pub(super) struct Search {
    /// Candidates that are none.
    pub(super) done: u32,
    /// Whether the test of the next candidate was begun.
    pub(super) is_open: bool,
    /// The outcome, once it is known.
    pub(super) found: Option<bool>,
}

/// A candidate of a class expression, as the trail has it.
pub(super) enum Reached {
    /// Done before.
    Passed,
    /// The enumeration was left somewhere below it.
    Again,
    New,
}

/// An open class expression on a trail.
pub(super) struct Level {
    depth: usize,
    /// Candidates that were done before the enumeration was left.
    skip: u32,
    count: Cell<u32>,
}

impl Trail {
    /// Rows of the present assignment that are done.
    pub fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Counts a row that WHERE kept.
    pub fn keep(&self) {
        self.kept.set(self.kept.get().saturating_add(1));
    }

    /// The number of rows that WHERE kept.
    pub fn kept(&self) -> u64 {
        self.kept.get()
    }

    /// Stores the position within the rows of the current assignment: `rows` of them are done.
    pub fn leave(&self, product: Product, rows: u64) {
        self.product.replace(Some(product));
        self.rows.set(rows);
    }

    /// The rows among which the enumeration was left.
    pub fn product(&self) -> Option<Product> {
        self.product.take()
    }

    /// All rows of the present assignment are done.
    pub fn close_rows(&self) {
        self.rows.set(0);
    }

    /// Starts again, for another document or EHR.
    pub fn clear(&self) {
        self.path.borrow_mut().clear();
        self.searches.borrow_mut().clear();
        self.depth.set(0);
        self.rows.set(0);
        self.kept.set(0);
        self.product.take();
    }

    pub(super) fn open(&self) -> Level {
        let depth = self.depth.replace(self.depth.get() + 1);
        let mut path = self.path.borrow_mut();
        if path.len() <= depth {
            path.push(0);
        }
        Level {
            depth,
            skip: path.get(depth).copied().unwrap_or(0),
            count: Cell::new(0),
        }
    }

    /// Advances to the next candidate of a class expression, unless it was done before the pause.
    pub(super) fn reach(&self, level: &Level) -> Reached {
        let number = level.count.replace(level.count.get().saturating_add(1));
        self.reach_number(level, number)
    }

    /// Advances like [`Trail::reach`] to the candidate with a number.
    pub(super) fn reach_number(&self, level: &Level, number: u32) -> Reached {
        if number < level.skip {
            return Reached::Passed;
        }
        let mut path = self.path.borrow_mut();
        path.get_mut(level.depth)
            .into_iter()
            .for_each(|at| *at = number);
        // A longer path or an open product means that the pause was inside this candidate.
        let is_inside = path.len() > level.depth + 1 || self.product.borrow().is_some();
        if number == level.skip && is_inside {
            Reached::Again
        } else {
            Reached::New
        }
    }

    /// Closes a class expression; where the enumeration is left, the trail keeps its place.
    pub(super) fn close(&self, level: &Level, flow: ControlFlow<()>) {
        self.depth.set(level.depth);
        if flow.is_continue() {
            self.path.borrow_mut().truncate(level.depth);
        }
    }
}
