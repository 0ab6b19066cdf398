//! The end of a run: groups become rows, rows are sorted, and duplicates are removed. The work is
//! divided into pieces, between which the host answers other requests.

use super::output::{Group, OutRow, Output, compare_out, sort_out, units_of_sort};
use super::work::{CELL, Work};
use super::{Budget, QueryError};
use crate::answer::plan::Plan;
use crate::answer::query::Query;
use std::collections::VecDeque;
use std::iter::Peekable;
use std::vec::IntoIter;

/// The number of cells in the rows or groups of one piece, which takes some milliseconds.
const PIECE_CELLS: usize = 1 << 15;

/// The units of work of one piece.
const PIECE: u64 = CELL * PIECE_CELLS as u64;

/// Returns the number of rows of a piece, if each has `cells` cells.
fn rows_of_piece(cells: usize) -> usize {
    // A piece has at least 8 rows, so wide rows make progress too.
    (PIECE_CELLS / cells.max(1)).max(8)
}

/// The progress of ending a run.
#[derive(Clone, Default)]
pub(super) struct Closing {
    state: State,
    /// The numbers of the rows of the result buffer in their final order, before the window is
    /// applied.
    pub rows: Vec<u32>,
}

#[derive(Clone, Default)]
enum State {
    #[default]
    Begun,
    /// Groups that are not rows yet.
    Groups(IntoIter<Group>),
    /// Rows that belong to no sorted run yet, and the sorted runs.
    Runs(IntoIter<OutRow>, VecDeque<Vec<OutRow>>),
    /// Two sorted runs during their merge, and the other runs.
    Merge(Box<RunMerge>, VecDeque<Vec<OutRow>>),
    /// Sorted rows, from which duplicates are still to be removed.
    Sorted(IntoIter<u32>),
    Done,
}

/// The merge of two sorted runs.
#[derive(Clone)]
struct RunMerge {
    left: Peekable<IntoIter<OutRow>>,
    right: Peekable<IntoIter<OutRow>>,
    out: Vec<OutRow>,
}

impl RunMerge {
    fn of(left: Vec<OutRow>, right: Vec<OutRow>) -> RunMerge {
        let out = Vec::with_capacity(left.len() + right.len());
        RunMerge {
            left: left.into_iter().peekable(),
            right: right.into_iter().peekable(),
            out,
        }
    }

    /// Moves the next row to the merged run. Returns false if both runs are empty.
    fn step(&mut self, output: &Output, query: &Query) -> bool {
        let from_left = match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) => compare_out(output.keys(), query, left, right).is_le(),
            (left, _) => left.is_some(),
        };
        let next = if from_left {
            self.left.next()
        } else {
            self.right.next()
        };
        let is_there = next.is_some();
        self.out.extend(next);
        is_there
    }
}

impl Output {
    /// Does a piece of the remaining work at the end of a run. Returns false if nothing remains.
    ///
    /// # Errors
    /// If the identities of the rows exceed the limit of memory, or the work exceeds the budget.
    pub fn close(&mut self, plan: &Plan, budget: &Budget, work: &Work) -> Result<bool, QueryError> {
        // A pause takes a millisecond in a worker, so there is none between the short steps of a
        // small result.
        let end = work.spent().saturating_add(PIECE);
        while self.close_step(plan, budget, work)? {
            if work.spent() >= end {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes a step, which does a piece of work at most. Returns false if nothing remains.
    fn close_step(
        &mut self,
        plan: &Plan,
        budget: &Budget,
        work: &Work,
    ) -> Result<bool, QueryError> {
        let query = &plan.query;
        work.check()?;
        let state = std::mem::replace(&mut self.closing.state, State::Done);
        self.closing.state = match state {
            State::Begun => {
                self.remove_duplicates(plan, work);
                State::Groups(self.take_groups(query).into_iter())
            }
            State::Groups(groups) => self.close_groups(query, work, groups),
            State::Runs(rows, runs) => self.sort_run(query, work, rows, runs),
            State::Merge(merge, runs) => self.merge_runs(query, work, merge, runs),
            State::Sorted(rows) => self.close_sorted(query, budget, work, rows)?,
            State::Done => State::Done,
        };
        Ok(!matches!(self.closing.state, State::Done))
    }

    /// Converts a piece of the groups to rows.
    fn close_groups(&mut self, query: &Query, work: &Work, mut groups: IntoIter<Group>) -> State {
        let shown = query.select.len();
        let count = rows_of_piece(shown).min(groups.len());
        work.add(CELL * (count * shown) as u64);
        groups
            .by_ref()
            .take(count)
            .for_each(|group| self.close_group(query, group));
        if groups.len() > 0 {
            State::Groups(groups)
        } else {
            self.begin_sort(query, work)
        }
    }

    /// Sorts a piece of the rows, which becomes a sorted run.
    fn sort_run(
        &mut self,
        query: &Query,
        work: &Work,
        mut rows: IntoIter<OutRow>,
        mut runs: VecDeque<Vec<OutRow>>,
    ) -> State {
        let sorted = query.order.len();
        let mut run: Vec<OutRow> = rows.by_ref().take(rows_of_piece(sorted)).collect();
        work.add(units_of_sort(run.len(), sorted));
        sort_out(&mut run, self.keys(), query);
        runs.push_back(run);
        if rows.len() > 0 {
            State::Runs(rows, runs)
        } else {
            self.next_merge(runs)
        }
    }

    /// Moves a piece of two sorted runs to the merged run.
    fn merge_runs(
        &mut self,
        query: &Query,
        work: &Work,
        mut merge: Box<RunMerge>,
        mut runs: VecDeque<Vec<OutRow>>,
    ) -> State {
        let sorted = query.order.len();
        let count = rows_of_piece(sorted);
        work.add(CELL * (count * sorted) as u64);
        let is_within = (0..count).all(|_| merge.step(self, query));
        if is_within {
            State::Merge(merge, runs)
        } else {
            runs.push_back(merge.out);
            self.next_merge(runs)
        }
    }

    /// Removes the duplicates from a piece of the sorted rows.
    fn close_sorted(
        &mut self,
        query: &Query,
        budget: &Budget,
        work: &Work,
        mut rows: IntoIter<u32>,
    ) -> Result<State, QueryError> {
        let removes = self.removes_duplicates(query);
        let count = rows_of_piece(if removes { query.select.len() } else { 1 });
        for row in rows.by_ref().take(count) {
            let is_new = !removes || self.is_new(row, work);
            self.closing.rows.extend(is_new.then_some(row));
        }
        if removes && self.bytes() > budget.bytes {
            return Err(QueryError::TooLarge(budget.bytes));
        }
        Ok(if rows.len() > 0 {
            State::Sorted(rows)
        } else {
            State::Done
        })
    }

    /// Begins to sort: few rows at once, many rows as sorted runs that are merged.
    fn begin_sort(&mut self, query: &Query, work: &Work) -> State {
        if self.len() <= rows_of_piece(query.order.len()) || self.is_sorted() {
            self.sort(query, work);
            return self.sorted_rows();
        }
        State::Runs(self.take_rows(query).into_iter(), VecDeque::new())
    }

    /// Begins the merge of the first two sorted runs, which are the shortest. A single run has all
    /// rows.
    fn next_merge(&mut self, mut runs: VecDeque<Vec<OutRow>>) -> State {
        match (runs.pop_front(), runs.pop_front()) {
            (Some(left), Some(right)) => State::Merge(Box::new(RunMerge::of(left, right)), runs),
            (rows, _) => {
                self.put_rows(rows.unwrap_or_default());
                self.sorted_rows()
            }
        }
    }

    fn sorted_rows(&mut self) -> State {
        State::Sorted(self.rows_in_order().into_iter())
    }
}
