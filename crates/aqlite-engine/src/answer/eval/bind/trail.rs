//! The position of an enumeration of assignments, so that it can pause and resume.

use super::ParentKey;
use crate::answer::eval::rows::Product;
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

/// The position in the enumeration of the assignments of one document or EHR, at which it resumes
/// after a pause.
///
/// Class expressions nest in a fixed order. The trail stores the number of the current candidate of
/// each open class expression. A resumed enumeration skips the candidates before it without a test.
#[derive(Default)]
pub(in crate::answer::eval) struct Trail {
    /// The number of the current candidate of each open class expression, outermost first.
    path: RefCell<Vec<u32>>,
    /// The number of open class expressions.
    depth: Cell<usize>,
    /// The rows of the current assignment that are done.
    rows: Cell<u64>,
    /// The rows of the current assignment, if the enumeration paused among them.
    product: RefCell<Option<Product>>,
    /// The number of rows of all assignments that passed WHERE.
    kept: Cell<u64>,
    /// The searches below a parent of which only the outcome is needed, by variable and parent.
    pub(super) searches: RefCell<HashMap<(usize, ParentKey), ExistenceSearch>>,
}

/// A resumable search for a node that passes a class expression and its CONTAINS.
#[derive(Clone, Copy, Default)]
pub(super) struct ExistenceSearch {
    /// The number of candidates that were tested and failed.
    pub(super) done: u32,
    /// Whether the test of the next candidate has begun.
    pub(super) is_open: bool,
    /// The outcome; `None` if it is not known yet.
    pub(super) found: Option<bool>,
}

/// The relation of a candidate to the position of the trail.
pub(super) enum Reached {
    /// It was done before the pause.
    Passed,
    /// The enumeration paused while it was evaluated.
    Again,
    New,
}

/// An open class expression on a trail.
pub(super) struct Level {
    depth: usize,
    /// The number of candidates that were done before the pause.
    skip: u32,
    count: Cell<u32>,
}

impl Trail {
    /// Returns the number of rows of the current assignment that are done.
    pub fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Counts a row that passed WHERE.
    pub fn keep(&self) {
        self.kept.set(self.kept.get().saturating_add(1));
    }

    /// Returns the number of rows that passed WHERE.
    pub fn kept(&self) -> u64 {
        self.kept.get()
    }

    /// Stores the position within the rows of the current assignment: `rows` of them are done.
    pub fn leave(&self, product: Product, rows: u64) {
        self.product.replace(Some(product));
        self.rows.set(rows);
    }

    /// Takes the rows among which the enumeration paused.
    pub fn product(&self) -> Option<Product> {
        self.product.take()
    }

    /// Records that all rows of the current assignment are done.
    pub fn close_rows(&self) {
        self.rows.set(0);
    }

    /// Resets the trail for another document or EHR.
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
        let skip = match path.get(depth) {
            Some(number) => *number,
            // No candidate of this class expression was reached before the pause.
            None => {
                path.resize(depth + 1, 0);
                0
            }
        };
        Level {
            depth,
            skip,
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

    /// Closes a class expression. If the enumeration pauses, the trail keeps its position.
    pub(super) fn close(&self, level: &Level, flow: ControlFlow<()>) {
        self.depth.set(level.depth);
        if flow.is_continue() {
            self.path.borrow_mut().truncate(level.depth);
        }
    }
}
