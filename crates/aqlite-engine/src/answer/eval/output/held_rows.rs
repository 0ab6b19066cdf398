//! Held rows: rows that are sorted at the end of the run, each with its sort keys.

use super::result_cells::ResultCells;
use super::row_order::{RowOrder, order_keys, units_of_sort};
use super::sort::sort_rows;
use crate::answer::eval::condition::ConditionEvaluator;
use crate::answer::eval::node::{Node, View};
use crate::answer::eval::sort_key::SortKey;
use crate::answer::eval::work::{CELL, Work};
use crate::answer::plan::Plan;
use crate::answer::query::{Query, Window};

/// The rows of a query with ORDER BY, of a join of documents, or of complete groups.
///
/// If the query needs only its first `best` rows, a row is kept as nodes until the end of its batch,
/// because most rows are removed before. Of any other query, each row becomes cells when it arrives.
/// Between two batches, each row has cells.
#[derive(Clone)]
pub(super) struct HeldRows {
    /// The number of first rows that the query needs; `None` if it needs all.
    best: Option<usize>,
    /// The number of nodes of a row.
    width: usize,
    /// Whether the first term of ORDER BY is descending.
    is_descending: bool,
    /// The units of work of a row: those of its cells, if they are made at once, and of its keys.
    row_units: u64,
    rows: Vec<HeldRow>,
    /// Whether the rows are sorted.
    is_sorted: bool,
    /// The sort keys of the rows, one row after the other: one for each term of ORDER BY.
    keys: Vec<SortKey>,
    /// The bytes of the texts of the keys.
    key_bytes: usize,
    /// The nodes of the rows that have no cells yet, one row after the other.
    nodes: Vec<Node>,
}

/// A row that is held. Its keys and its nodes are in the lists of [`HeldRows`].
#[derive(Clone)]
pub(super) struct HeldRow {
    content: Content,
    /// The index of its sort keys in the list of keys, counted in rows.
    keys: u32,
    /// The rank and prefix of the first sort key, inverted for a descending order. It decides most
    /// comparisons.
    pub lead: u128,
    pub order: RowOrder,
}

/// The content of a held row.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// The cells of the row in the result buffer, by number.
    Cells(u32),
    /// The nodes from which its cells are made, by their index in the list of nodes, counted in
    /// rows.
    Nodes(u32),
}

/// The broken invariant of [`HeldRows::push`].
pub(super) const NO_KEYS: &str = "a held row has not one key for each term of ORDER BY";
const NO_NODES: &str = "a held row has neither cells nor nodes";

impl HeldRows {
    /// Creates an empty list for the rows of a query without aggregates.
    pub fn new(plan: &Plan) -> HeldRows {
        let best = best_of(&plan.query).or(first_of_join(plan));
        HeldRows {
            best,
            row_units: units_of_row(&plan.query, best.is_none()),
            ..HeldRows::of_groups(plan)
        }
    }

    /// Creates an empty list for the rows of complete groups, whose cells are made at once.
    pub fn of_groups(plan: &Plan) -> HeldRows {
        HeldRows {
            best: None,
            width: plan.width,
            is_descending: plan.query.order.first().is_some_and(|by| by.descending),
            row_units: 0,
            rows: Vec::new(),
            is_sorted: true,
            keys: Vec::new(),
            key_bytes: 0,
            nodes: Vec::new(),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Reserves memory for `rows` more rows, as far as they are held at once.
    pub fn reserve(&mut self, query: &Query, rows: usize) {
        let terms = query.order.len();
        let rows = match self.best {
            // A top-k query holds few rows at once, so memory for them is sufficient.
            Some(best) if self.rows.is_empty() => {
                rows.min(most_held(best, terms)).max(best.min(64) + 4)
            }
            Some(best) => rows.min(most_held(best, terms)),
            None => rows,
        };
        self.rows.reserve(rows);
        self.keys.reserve(rows * terms);
        if self.best.is_some() {
            self.nodes.reserve(rows * self.width);
        }
    }

    /// Adds a row that passed WHERE.
    pub fn take<'p: 'b, 'b>(
        &mut self,
        cells: &mut ResultCells,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        order: RowOrder,
    ) {
        let (query, view) = (&evaluator.plan.query, evaluator.view);
        view.count(self.row_units);
        let held_bytes = match query.order.is_empty() {
            true => 0,
            false => self.bytes() + cells.bytes(),
        };
        let keys = order_keys(evaluator, row, held_bytes);
        let content = match self.best {
            Some(_) => {
                let number = self.nodes.len() / self.width.max(1);
                self.nodes.extend_from_slice(row);
                Content::Nodes(number as u32)
            }
            None => Content::Cells(cells.append(evaluator, row)),
        };
        if !self.push(query, content, keys, order) {
            view.note_broken(NO_KEYS);
        }
        // Rows behind the first k are removed in large numbers, which makes each removal cheap.
        if let Some(best) = self.best
            && self.rows.len() >= most_held(best, query.order.len())
        {
            self.count_and_retain_best(query, best, view);
        }
    }

    /// Adds a row with its keys. Returns false if it has not one key for each term of ORDER BY.
    pub fn push(
        &mut self,
        query: &Query,
        content: Content,
        keys: impl Iterator<Item = SortKey>,
        order: RowOrder,
    ) -> bool {
        let (start, terms) = (self.keys.len(), query.order.len());
        // Without ORDER BY, rows have no keys and the divisor is 0.
        let number = start.checked_div(terms).unwrap_or(0) as u32;
        self.keys.extend(keys);
        let own = self.keys.get(start..).unwrap_or_default();
        self.key_bytes += own.iter().map(SortKey::text_bytes).sum::<usize>();
        let lead = own.first().map_or(0, |key| {
            // The complement reverses the order.
            if self.is_descending {
                !key.lead()
            } else {
                key.lead()
            }
        });
        self.is_sorted = false;
        self.rows.push(HeldRow {
            content,
            keys: number,
            lead,
            order,
        });
        // The keys of a row are found by its number, so a row with fewer would shift all later ones.
        own.len() == terms
    }

    /// Makes the cells that are still missing; for a top-k query only those of the best rows.
    pub fn make_cells<'p: 'b, 'b>(
        &mut self,
        cells: &mut ResultCells,
        evaluator: ConditionEvaluator<'p, 'b>,
    ) {
        let Some(best) = self.best else {
            return;
        };
        if self.rows.len() > best {
            self.count_and_retain_best(&evaluator.plan.query, best, evaluator.view);
        }
        let unmade = self.rows.iter().filter(|row| row.is_unmade());
        cells.buffer.reserve(unmade.count());
        for row in &mut self.rows {
            let Content::Nodes(number) = row.content else {
                continue;
            };
            let Some(nodes) = nth(&self.nodes, number, self.width) else {
                evaluator.view.note_broken(NO_NODES);
                return;
            };
            row.content = Content::Cells(cells.append(evaluator, nodes));
        }
        self.nodes.clear();
        self.drop_unused_cells(cells);
    }

    /// Returns whether the cells of a row are not made yet.
    pub fn has_unmade(&self) -> bool {
        self.rows.iter().any(HeldRow::is_unmade)
    }

    /// Removes the cells of rows that were removed, if they are most of the result buffer.
    pub fn drop_unused_cells(&mut self, cells: &mut ResultCells) {
        if cells.buffer.len() <= self.rows.len().saturating_mul(4).max(1024) {
            return;
        }
        let mut used = Vec::with_capacity(self.rows.len());
        for row in &mut self.rows {
            if let Content::Cells(number) = &mut row.content {
                used.push(std::mem::replace(number, used.len() as u32));
            }
        }
        cells.keep(&used);
    }

    /// Keeps the best rows so far, and counts the work of sorting them.
    fn count_and_retain_best(&mut self, query: &Query, best: usize, view: View<'_>) {
        view.count(units_of_sort(self.rows.len(), query.order.len()));
        if !self.retain_best(query, best) {
            view.note_broken(NO_NODES);
        }
    }

    /// Keeps the best rows so far, with their keys and nodes. Returns false if some are missing.
    fn retain_best(&mut self, query: &Query, best: usize) -> bool {
        let terms = query.order.len();
        self.sort_at_once(query);
        self.rows.truncate(best);
        let mut keys = Vec::with_capacity(self.rows.len() * terms);
        let mut nodes = Vec::with_capacity(self.rows.len() * self.width);
        for (number, row) in (0..).zip(&mut self.rows) {
            let start = row.keys as usize * terms;
            let Some(own) = self.keys.get_mut(start..start + terms) else {
                return false;
            };
            keys.extend(
                own.iter_mut()
                    .map(|key| std::mem::replace(key, SortKey::Null)),
            );
            row.keys = number;
            if let Content::Nodes(number) = &mut row.content {
                let Some(own) = nth(&self.nodes, *number, self.width) else {
                    return false;
                };
                *number = (nodes.len() / self.width) as u32;
                nodes.extend_from_slice(own);
            }
        }
        self.key_bytes = keys.iter().map(SortKey::text_bytes).sum();
        (self.keys, self.nodes) = (keys, nodes);
        true
    }

    /// Sorts the rows, without a pause.
    pub fn sort_at_once(&mut self, query: &Query) {
        if !self.is_sorted {
            let mut rows = self.begin_sort();
            sort_rows(&mut rows, &self.keys, query);
            self.end_sort(rows);
        }
    }

    /// Returns whether the rows are sorted.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// Takes the rows to sort them. Rows arrive in commit order, which mostly is the order of their
    /// times. For a descending order the list is reversed, and then mostly is sorted already.
    pub fn begin_sort(&mut self) -> Vec<HeldRow> {
        if self.is_descending {
            self.rows.reverse();
        }
        std::mem::take(&mut self.rows)
    }

    /// Stores the sorted rows.
    pub fn end_sort(&mut self, rows: Vec<HeldRow>) {
        (self.rows, self.is_sorted) = (rows, true);
    }

    /// Returns the sort keys of the rows, for [`HeldRow::keys`].
    pub fn keys(&self) -> &[SortKey] {
        &self.keys
    }

    /// Takes the numbers of the cells of all rows in their order.
    pub fn finish(&mut self, work: &Work) -> Vec<u32> {
        let rows = std::mem::take(&mut self.rows);
        let mut numbers = Vec::with_capacity(rows.len());
        for row in rows {
            match row.content {
                Content::Cells(number) => numbers.push(number),
                Content::Nodes(_) => work.note_broken("a row of the result has no cells"),
            }
        }
        numbers
    }

    /// Adds rows of a part whose documents follow all others. `first` is the number of the first of
    /// their cells, and `positions` the number of positions before the part.
    pub fn absorb(&mut self, query: &Query, part: HeldRows, first: u32, positions: u64) {
        let held_rows = self.keys.len().checked_div(query.order.len());
        // Without ORDER BY, rows have no keys.
        let held_rows = held_rows.unwrap_or(0) as u32;
        self.is_sorted &= part.rows.is_empty();
        self.rows.extend(part.rows.into_iter().map(|row| HeldRow {
            content: match row.content {
                Content::Cells(number) => Content::Cells(first + number),
                // A part has none.
                unmade @ Content::Nodes(_) => unmade,
            },
            keys: held_rows + row.keys,
            order: row.order.behind(positions),
            ..row
        }));
        self.keys.extend(part.keys);
        self.key_bytes += part.key_bytes;
    }

    /// Removes the rows, and their cells, that the result does not need.
    pub fn reduce(&mut self, query: &Query, cells: &mut ResultCells, work: &Work) {
        if let Some(best) = self.best.filter(|best| self.rows.len() > *best) {
            if !self.retain_best(query, best) {
                work.note_broken(NO_NODES);
            }
            self.drop_unused_cells(cells);
        }
    }

    /// Returns the bytes held, beside those of cells.
    pub fn bytes(&self) -> usize {
        self.rows.len() * size_of::<HeldRow>()
            + self.keys.len() * size_of::<SortKey>()
            + self.nodes.len() * size_of::<Node>()
            + self.key_bytes
    }

    /// Returns the allocated bytes, beside those of cells.
    pub fn footprint(&self) -> usize {
        self.rows.capacity() * size_of::<HeldRow>()
            + self.keys.capacity() * size_of::<SortKey>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.key_bytes
    }
}

impl HeldRow {
    /// Returns the sort keys of the row; `keys` are those of all rows.
    pub fn keys<'k>(&self, keys: &'k [SortKey], query: &Query) -> &'k [SortKey] {
        // The run fails for a row without its keys, so the default never decides an answer.
        nth(keys, self.keys, query.order.len()).unwrap_or_default()
    }

    fn is_unmade(&self) -> bool {
        matches!(self.content, Content::Nodes(_))
    }
}

/// Returns the values of a row in a list with `width` values for each row.
fn nth<T>(values: &[T], row: u32, width: usize) -> Option<&[T]> {
    let start = row as usize * width;
    values.get(start..start + width)
}

/// Returns the units of work of the keys of a row, and of its cells if they are made at once.
pub(super) fn units_of_row(query: &Query, makes_cells: bool) -> u64 {
    let made = if makes_cells { query.select.len() } else { 0 };
    CELL / 2 * (made + 2 * query.order.len()) as u64
}

/// Returns the number of rows that a top-k query holds before it removes those behind the first
/// `best`. Rows with many sort keys reduce it.
fn most_held(best: usize, keys: usize) -> usize {
    best.saturating_mul(2)
        .max((8192 / keys.max(1)).clamp(16, 1024))
}

/// Returns the number of rows up to the end of the window, for a query without DISTINCT.
fn first_rows(query: &Query) -> Option<usize> {
    match query.window {
        Some(Window::First { limit, offset }) if !query.distinct => {
            Some(usize::try_from(limit.saturating_add(offset)).unwrap_or(usize::MAX))
        }
        _ => None,
    }
}

/// Returns k of a top-k query (ORDER BY and LIMIT).
pub(in crate::answer::eval) fn best_of(query: &Query) -> Option<usize> {
    first_rows(query).filter(|_| !query.order.is_empty())
}

/// Returns the number of first rows that a join without ORDER BY needs. Its rows arrive in default
/// order within each EHR only.
pub(in crate::answer::eval) fn first_of_join(plan: &Plan) -> Option<usize> {
    let query = &plan.query;
    let is_join = !plan.single && query.order.is_empty() && !query.is_grouped();
    first_rows(query).filter(|_| is_join)
}
