//! The end of a run: groups become rows, rows are sorted, duplicates are removed, and the window is
//! applied. The work is divided into pieces, between which the host answers other requests.

use super::groups::Group;
use super::sort::Sorting;
use super::{Kind, Output};
use crate::answer::eval::work::{CELL, Work};
use crate::answer::eval::{Budget, QueryError};
use crate::answer::plan::Plan;
use crate::answer::query::{Query, Window};
use crate::answer::result::{ResultColumn, ResultSet};
use std::vec::IntoIter;

/// The number of cells in the rows or groups of one piece, which takes some milliseconds.
const PIECE_CELLS: usize = 1 << 15;

/// The units of work of one piece.
const PIECE: u64 = CELL * PIECE_CELLS as u64;

/// Returns the number of rows of a piece, if each has `cells` cells.
pub(super) fn rows_of_piece(cells: usize) -> usize {
    // A piece has at least 8 rows, so wide rows make progress too.
    (PIECE_CELLS / cells.max(1)).max(8)
}

/// The progress of ending a run.
#[derive(Clone, Default)]
pub(super) struct Closing {
    step: Step,
    /// The numbers of the rows of the result buffer in their final order, before the window is
    /// applied.
    rows: Vec<u32>,
}

/// The next step of ending a run.
#[derive(Clone, Default)]
enum Step {
    #[default]
    Begin,
    /// Groups that are not rows yet.
    CloseGroups(IntoIter<Group>),
    /// Held rows while they are sorted.
    Sort(Sorting),
    /// Rows in their final order, from which duplicates are still to be removed.
    RemoveDuplicates(IntoIter<u32>),
    /// Rows in their final order, without duplicates.
    Collect(IntoIter<u32>),
    Done,
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

    /// Sorts the rows, removes duplicates and applies the window: all steps that [`Output::close`]
    /// has not done, without a pause.
    ///
    /// # Errors
    /// When the identities of the rows take more memory than the budget allows, or an invariant is
    /// broken.
    pub fn finish(
        mut self,
        plan: &Plan,
        budget: &Budget,
        work: &Work,
    ) -> Result<ResultSet, QueryError> {
        while self.close(plan, budget, work)? {}
        work.check()?;
        let skipped = match &self.kind {
            Kind::Plain(rows) => rows.skipped(),
            _ => 0,
        };
        let (query, mut rows) = (&plan.query, self.closing.rows);
        cut(&mut rows, query.window, skipped);
        let columns = query
            .select
            .iter()
            .map(|c| ResultColumn {
                name: c.name.clone(),
                path: c.path.clone(),
            })
            .collect();
        ResultSet::new(columns, self.cells.buffer, rows)
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
        let step = std::mem::replace(&mut self.closing.step, Step::Done);
        self.closing.step = match step {
            Step::Begin => self.begin_close(query, work),
            Step::CloseGroups(groups) => self.close_groups(query, work, groups),
            Step::Sort(sorting) => self.sort_piece(query, work, sorting),
            Step::RemoveDuplicates(rows) => self.remove_duplicates(query, budget, work, rows)?,
            Step::Collect(mut rows) => {
                let piece = rows.by_ref().take(rows_of_piece(1));
                self.closing.rows.extend(piece);
                match rows.len() {
                    0 => Step::Done,
                    _ => Step::Collect(rows),
                }
            }
            Step::Done => Step::Done,
        };
        Ok(!matches!(self.closing.step, Step::Done))
    }

    fn begin_close(&mut self, query: &Query, work: &Work) -> Step {
        match &mut self.kind {
            Kind::Plain(rows) => Step::Collect(rows.finish(&mut self.cells, work).into_iter()),
            Kind::Held(_) => self.begin_sort(query, work),
            Kind::Groups(groups) => Step::CloseGroups(groups.finish(query).into_iter()),
            Kind::Visited(rows) => {
                if rows.len() > 0 {
                    work.note_broken("a run ends before its rows are passed on");
                }
                Step::Done
            }
            Kind::Documents(_) => Step::Done,
        }
    }

    /// Converts a piece of the groups to rows.
    fn close_groups(&mut self, query: &Query, work: &Work, mut rest: IntoIter<Group>) -> Step {
        let shown = query.select.len();
        let count = rows_of_piece(shown).min(rest.len());
        work.add(CELL * (count * shown) as u64);
        if let Kind::Groups(groups) = &mut self.kind {
            for group in rest.by_ref().take(count) {
                groups.close_group(query, group, &mut self.cells.buffer, work);
            }
        }
        match rest.len() {
            0 => self.begin_sort(query, work),
            _ => Step::CloseGroups(rest),
        }
    }

    fn begin_sort(&mut self, query: &Query, work: &Work) -> Step {
        let rows = self.kind.held_rows();
        let sorting = rows.and_then(|rows| rows.sort(query, work));
        sorting.map_or_else(|| self.end_sort(query, work), Step::Sort)
    }

    /// Does a piece of sorting.
    fn sort_piece(&mut self, query: &Query, work: &Work, sorting: Sorting) -> Step {
        let rows = self.kind.held_rows();
        let sorting = rows.and_then(|rows| rows.sort_piece(sorting, query, work));
        sorting.map_or_else(|| self.end_sort(query, work), Step::Sort)
    }

    fn end_sort(&mut self, query: &Query, work: &Work) -> Step {
        let rows = self.kind.held_rows();
        let rows = rows
            .map_or(Vec::new(), |rows| rows.finish(work))
            .into_iter();
        match query.distinct {
            true => Step::RemoveDuplicates(rows),
            false => Step::Collect(rows),
        }
    }

    /// Removes the duplicates from a piece of the rows in their final order.
    fn remove_duplicates(
        &mut self,
        query: &Query,
        budget: &Budget,
        work: &Work,
        mut rows: IntoIter<u32>,
    ) -> Result<Step, QueryError> {
        for row in rows.by_ref().take(rows_of_piece(query.select.len())) {
            if self.cells.is_new(row, work) {
                self.closing.rows.push(row);
            }
        }
        if self.bytes() > budget.bytes {
            return Err(QueryError::TooLarge(budget.bytes));
        }
        Ok(match rows.len() {
            0 => Step::Done,
            _ => Step::RemoveDuplicates(rows),
        })
    }
}

/// Applies the window to rows that follow `skipped` others.
fn cut(rows: &mut Vec<u32>, window: Option<Window>, skipped: u64) {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    match window {
        Some(Window::First { limit, offset }) => {
            let offset = offset.saturating_sub(skipped);
            rows.drain(..size(offset).min(rows.len()));
            rows.truncate(size(limit));
        }
        Some(Window::Last { limit }) => drop(rows.drain(..rows.len().saturating_sub(size(limit)))),
        None => {}
    }
}
