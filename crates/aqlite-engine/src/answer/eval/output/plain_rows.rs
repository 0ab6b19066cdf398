//! Plain rows: rows that are output in order of arrival, and of which only the cells are needed.

use super::result_cells::ResultCells;
use crate::answer::eval::condition::ConditionEvaluator;
use crate::answer::eval::node::Node;
use crate::answer::eval::work::{CELL, Work};
use crate::answer::query::{Query, Window};
use std::ops::Range;

/// The numbers of rows, and of cells, after which duplicates are removed.
const DUPLICATES: usize = 4096;
const DUPLICATE_CELLS: usize = 1 << 16;

/// The numbers of rows, and of bytes, after which rows before the window are discarded.
const BEFORE_WINDOW: usize = 1024;
const BEFORE_WINDOW_BYTES: usize = 1 << 20;

/// The rows of a query without aggregates and ORDER BY whose rows belong to one document each.
///
/// The rows so far, in their final order, are:
///
/// ```text
/// skipped                        numbers
/// ├──────────────────────────────┼──────────────┬───────────────────────────┤
/// counted or discarded, before   without        with duplicates, if the
/// the window; none for DISTINCT  duplicates     query has DISTINCT
///                                               └ deduplicated
/// ```
///
/// Between two pieces of work, each row of the result buffer is in `numbers` once.
#[derive(Clone)]
pub(in crate::answer::eval) struct PlainRows {
    /// The numbers of the rows in the result buffer, in their final order.
    numbers: Vec<u32>,
    /// The number of columns.
    columns: usize,
    is_distinct: bool,
    /// The number of rows up to the end of the window (LIMIT and OFFSET); `None` if all rows are
    /// needed.
    end_of_window: Option<u64>,
    /// The number of rows before the window; 0 if all rows are needed.
    offset: u64,
    /// The length of the prefix of `numbers` that has no duplicates.
    deduplicated: usize,
    /// Whether rows can be removed again, so that duplicates and rows before the window must stay:
    /// the set of identities cannot forget a row.
    is_removable: bool,
    /// The number of rows before the window that were counted and not made, or discarded.
    skipped: u64,
    /// Those of the skipped rows that arrived one by one, or were made and discarded. The others were
    /// counted for a whole batch.
    discarded: u64,
}

/// An end of plain rows, behind which later rows can be removed.
#[derive(Clone, Copy, Default)]
pub(in crate::answer::eval) struct PlainEnd {
    /// The number of rows of the result buffer.
    cells: usize,
    /// The number of rows of the output.
    rows: usize,
}

impl PlainRows {
    pub fn new(query: &Query) -> PlainRows {
        let (end_of_window, offset) = match query.window {
            Some(Window::First { limit, offset }) => (Some(limit.saturating_add(offset)), offset),
            Some(Window::Last { .. }) | None => (None, 0),
        };
        PlainRows {
            numbers: Vec::new(),
            columns: query.select.len(),
            is_distinct: query.distinct,
            end_of_window,
            offset,
            deduplicated: 0,
            is_removable: false,
            skipped: 0,
            discarded: 0,
        }
    }

    /// Returns the number of rows that are held.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the number of rows that arrived, including those before the window, but without the
    /// rows of whole batches that were counted only.
    pub fn arrived(&self) -> u64 {
        self.discarded + self.len() as u64
    }

    /// Returns the number of rows that the window still needs; `None` if it needs all rows.
    pub fn missing(&self) -> Option<u64> {
        Some(
            self.end_of_window?
                .saturating_sub(self.skipped)
                .saturating_sub(self.len() as u64),
        )
    }

    /// Returns the number of rows before the window that were neither made nor skipped.
    pub fn before_window(&self) -> u64 {
        self.before_window_of_held()
            .saturating_sub(self.len() as u64)
    }

    /// Returns the number of rows before the window that were not skipped, from the first row that
    /// is held.
    fn before_window_of_held(&self) -> u64 {
        self.offset.saturating_sub(self.skipped)
    }

    /// Returns the range of the next rows that are in the window, counted from 0: all rows if there
    /// is no window. `None` with DISTINCT, where this is not known.
    pub fn window_of_next(&self) -> Option<Range<usize>> {
        let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        let end = self.missing().map_or(usize::MAX, count);
        (!self.is_distinct).then(|| count(self.before_window())..end)
    }

    /// Returns whether more rows cannot change the result, because the window is full.
    pub fn is_full(&mut self, cells: &mut ResultCells, work: &Work) -> bool {
        let is_full = self.missing() == Some(0);
        // Duplicates that are not removed yet count as rows, so the window may not be full.
        if is_full && self.is_distinct && self.deduplicated < self.len() {
            self.remove_duplicates(cells, work);
            return self.missing() == Some(0);
        }
        is_full
    }

    /// Adds a row that passed WHERE. A row before the window is counted only.
    pub fn take<'p: 'b, 'b>(
        &mut self,
        cells: &mut ResultCells,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
    ) {
        if !self.is_distinct && !self.is_removable && self.before_window() > 0 {
            self.discarded += 1;
            return self.skip(1);
        }
        evaluator.view.count(CELL / 2 * self.columns as u64);
        self.numbers.push(cells.append(evaluator, row));
    }

    /// Adds rows whose cells were made by a projection; `numbers` are those of their cells.
    pub fn extend(&mut self, numbers: Vec<u32>) {
        self.numbers.extend(numbers);
    }

    /// Counts rows before the window that are not made.
    pub fn skip(&mut self, rows: u64) {
        self.skipped = self.skipped.saturating_add(rows);
    }

    /// Returns the number of rows before the window that were counted and not made, or discarded.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Sets whether rows can be removed again. Until then, neither duplicates nor rows before the
    /// window are removed.
    pub fn set_removable(&mut self, is_removable: bool) {
        self.is_removable = is_removable;
    }

    /// Returns the present end of the rows.
    pub fn end(&self, cells: &ResultCells) -> PlainEnd {
        PlainEnd {
            cells: cells.buffer.len(),
            rows: self.len(),
        }
    }

    /// Removes the rows that were added after an end, because they are made again in smaller parts.
    /// Their texts stay for them, so the cost does not depend on earlier rows.
    pub fn make_again_from(&mut self, cells: &mut ResultCells, end: PlainEnd) {
        self.numbers.truncate(end.rows);
        cells.buffer.keep_behind(end.cells, &[]);
    }

    /// Removes the rows that were added after an end, and their texts.
    pub fn truncate_to(&mut self, cells: &mut ResultCells, end: PlainEnd) {
        self.numbers.truncate(end.rows);
        let kept: Vec<u32> = (0..end.cells as u32).collect();
        cells.keep(&kept);
    }

    /// Removes rows that the result does not need, if they are many: duplicates, and rows before the
    /// window.
    pub fn reduce(&mut self, cells: &mut ResultCells, work: &Work) {
        let new = self.len() - self.deduplicated;
        let is_due = new >= DUPLICATES || new * self.columns >= DUPLICATE_CELLS;
        if is_due && !self.is_removable {
            self.remove_duplicates(cells, work);
        }
        if self.len() >= BEFORE_WINDOW || cells.buffer.bytes() >= BEFORE_WINDOW_BYTES {
            self.discard_before_window(cells);
        }
    }

    /// Discards the rows before the window, so that a query with a large OFFSET needs no more
    /// memory than one without. Rows that can be removed again stay.
    fn discard_before_window(&mut self, cells: &mut ResultCells) {
        let before = self.before_window_of_held();
        if before == 0 || self.is_distinct || self.is_removable {
            return;
        }
        let count = usize::try_from(before).map_or(self.len(), |before| before.min(self.len()));
        let kept = self.numbers.split_off(count);
        cells.keep(&kept);
        self.numbers = (0..kept.len() as u32).collect();
        self.discarded += count as u64;
        self.skip(count as u64);
    }

    /// Removes the duplicates from a query with DISTINCT.
    pub fn remove_duplicates(&mut self, cells: &mut ResultCells, work: &Work) {
        if !self.is_distinct || self.deduplicated == self.len() {
            return;
        }
        let new = self.numbers.split_off(self.deduplicated);
        let kept: Vec<u32> = new
            .into_iter()
            .filter(|row| cells.is_new(*row, work))
            .collect();
        let start = self.deduplicated as u32;
        cells.buffer.keep_behind(self.deduplicated, &kept);
        self.numbers.extend(start..start + kept.len() as u32);
        self.deduplicated = self.len();
    }

    /// Takes the numbers of all rows, without duplicates, in their final order.
    pub fn finish(&mut self, cells: &mut ResultCells, work: &Work) -> Vec<u32> {
        self.remove_duplicates(cells, work);
        std::mem::take(&mut self.numbers)
    }

    /// Adds rows of a part whose documents follow all others. `first` is the number of the first of
    /// their cells.
    pub fn absorb(&mut self, part: PlainRows, first: u32) {
        let numbers = part.numbers.iter();
        self.numbers.extend(numbers.map(|number| first + number));
    }

    /// Returns the bytes held, beside those of cells.
    pub fn bytes(&self) -> usize {
        self.numbers.len() * size_of::<u32>()
    }

    /// Returns the allocated bytes, beside those of cells.
    pub fn footprint(&self) -> usize {
        self.numbers.capacity() * size_of::<u32>()
    }
}
