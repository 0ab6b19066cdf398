//! Sorting of held rows in pieces, between which the host answers other requests: pieces of the rows
//! become sorted runs, which are merged two by two.

use super::close::rows_of_piece;
use super::held_rows::{HeldRow, HeldRows};
use super::row_order::units_of_sort;
use crate::answer::eval::sort_key::{SortKey, compare_rows};
use crate::answer::eval::work::{CELL, Work};
use crate::answer::query::Query;
use aqlite_rm::order;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::iter::Peekable;
use std::vec::IntoIter;

/// The progress of sorting many rows, which are taken from [`HeldRows`].
#[derive(Clone)]
pub(super) enum Sorting {
    /// Rows that belong to no sorted run yet, and the sorted runs.
    Runs(IntoIter<HeldRow>, VecDeque<Vec<HeldRow>>),
    /// Two sorted runs during their merge, and the other runs.
    Merge(Box<RunMerge>, VecDeque<Vec<HeldRow>>),
}

/// The merge of two sorted runs.
#[derive(Clone)]
pub(super) struct RunMerge {
    left: Peekable<IntoIter<HeldRow>>,
    right: Peekable<IntoIter<HeldRow>>,
    merged: Vec<HeldRow>,
}

impl RunMerge {
    fn of(left: Vec<HeldRow>, right: Vec<HeldRow>) -> RunMerge {
        let merged = Vec::with_capacity(left.len() + right.len());
        RunMerge {
            left: left.into_iter().peekable(),
            right: right.into_iter().peekable(),
            merged,
        }
    }

    /// Moves the next row to the merged run. Returns false if both runs are empty.
    fn step(&mut self, keys: &[SortKey], query: &Query) -> bool {
        let from_left = match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) => compare(keys, query, left, right).is_le(),
            (left, _) => left.is_some(),
        };
        let next = if from_left {
            self.left.next()
        } else {
            self.right.next()
        };
        let is_there = next.is_some();
        self.merged.extend(next);
        is_there
    }
}

impl HeldRows {
    /// Begins to sort the rows: by ORDER BY (NULL last for ASC, first for DESC), then in default
    /// order. Returns `None` if they are sorted: few rows are sorted at once.
    pub fn sort(&mut self, query: &Query, work: &Work) -> Option<Sorting> {
        let terms = query.order.len();
        if self.is_sorted() {
            return None;
        }
        if self.len() <= rows_of_piece(terms) {
            work.add(units_of_sort(self.len(), terms));
            self.sort_at_once(query);
            return None;
        }
        Some(Sorting::Runs(
            self.begin_sort().into_iter(),
            VecDeque::new(),
        ))
    }

    /// Does a piece of sorting. Returns `None` if the rows are sorted.
    pub fn sort_piece(&mut self, sorting: Sorting, query: &Query, work: &Work) -> Option<Sorting> {
        let terms = query.order.len();
        let count = rows_of_piece(terms);
        match sorting {
            Sorting::Runs(mut rows, mut runs) => {
                let mut run: Vec<HeldRow> = rows.by_ref().take(count).collect();
                work.add(units_of_sort(run.len(), terms));
                sort_rows(&mut run, self.keys(), query);
                runs.push_back(run);
                if rows.len() > 0 {
                    Some(Sorting::Runs(rows, runs))
                } else {
                    self.next_merge(runs)
                }
            }
            Sorting::Merge(mut merge, mut runs) => {
                work.add(CELL * (count * terms) as u64);
                let is_within = (0..count).all(|_| merge.step(self.keys(), query));
                if is_within {
                    Some(Sorting::Merge(merge, runs))
                } else {
                    runs.push_back(merge.merged);
                    self.next_merge(runs)
                }
            }
        }
    }

    /// Begins the merge of the first two sorted runs, which are the shortest. A single run has all
    /// rows.
    fn next_merge(&mut self, mut runs: VecDeque<Vec<HeldRow>>) -> Option<Sorting> {
        match (runs.pop_front(), runs.pop_front()) {
            (Some(left), Some(right)) => {
                Some(Sorting::Merge(Box::new(RunMerge::of(left, right)), runs))
            }
            (rows, _) => {
                self.end_sort(rows.unwrap_or_default());
                None
            }
        }
    }
}

/// Sorts rows by ORDER BY, then in default order; `keys` are the sort keys of all held rows.
pub(super) fn sort_rows(rows: &mut [HeldRow], keys: &[SortKey], query: &Query) {
    order::sort_by(rows, |a, b| compare(keys, query, a, b));
}

fn compare(keys: &[SortKey], query: &Query, a: &HeldRow, b: &HeldRow) -> Ordering {
    let all = || {
        compare_rows(a.keys(keys, query), b.keys(keys, query), &query.order)
            .then(a.order.cmp(&b.order))
    };
    a.lead.cmp(&b.lead).then_with(all)
}
