//! The steps after WHERE: groups and aggregates, ORDER BY, DISTINCT and the window.

mod groups;
mod memory;
mod partial;
mod row_order;

use super::accumulator::order_at;
use super::block::RowPosition;
use super::cells::{LastCell, append_row, node_of};
use super::close::Closing;
use super::condition::ConditionEvaluator;
use super::distinct::Distinct;
use super::node::{Node, View};
use super::row_value::{RowValue, RowVisit};
use super::semi_join::DocumentSet;
use super::sort_key::SortKey;
use super::work::{CELL, Work};
use super::{Budget, QueryError};
use crate::answer::plan::Plan;
use crate::answer::query::{Query, Window};
use crate::answer::result::{ResultBuffer, ResultColumn, ResultSet};
use aqlite_rm::order;
pub(super) use groups::Group;
use groups::first_of;
pub(super) use partial::OutputPart;
use row_order::order_keys;
pub(super) use row_order::{JoinOrder, RowOrder, compare_out, sort_out, units_of_sort};
use std::collections::HashMap;
use std::ops::Range;

/// A row of the output, as references into the lists of [`Output`].
#[derive(Clone)]
pub(super) struct OutRow {
    /// The number of the row in the result buffer; [`UNMADE`] if its cells are not made yet.
    cells: u32,
    /// The index of its nodes in the list of nodes, counted in rows.
    nodes: u32,
    /// The index of its sort keys in the list of keys, counted in rows.
    keys: u32,
    /// The rank and prefix of the first sort key, inverted for a descending order. It decides most
    /// comparisons.
    lead: u128,
    order: RowOrder,
}

const UNMADE: u32 = u32::MAX;

/// The numbers of rows, and of cells, after which duplicates are removed.
const DUPLICATES: usize = 4096;
const DUPLICATE_CELLS: usize = 1 << 16;

/// The numbers of rows, and of bytes, after which rows before the window are discarded.
const BEFORE_WINDOW: usize = 1024;
const BEFORE_WINDOW_BYTES: usize = 1 << 20;

/// The output of a run: collects rows and creates the result set.
#[derive(Clone)]
pub(super) struct Output {
    result_buffer: ResultBuffer,
    /// For each column, the last constant or object and its cell, which the next row often repeats.
    last_cells: Vec<LastCell>,
    /// The rows of the result buffer in their final order, if rows arrive in that order.
    final_rows: Vec<u32>,
    /// The identities of the rows, for DISTINCT.
    distinct: Distinct,
    /// The length of the prefix of `final_rows` that has no duplicates.
    deduplicated: usize,
    /// Whether rows can be removed again, so that duplicates must stay: the set of identities
    /// cannot forget a row.
    keeps_duplicates: bool,
    /// The bytes of the texts of sort keys.
    key_bytes: usize,
    rows: Vec<OutRow>,
    /// Whether the rows are sorted.
    is_sorted: bool,
    /// The sort keys of the rows, one row after the other.
    keys: Vec<SortKey>,
    /// The nodes of the rows without cells, one row after the other.
    nodes: Vec<Node>,
    groups: Vec<Group>,
    /// The index of each group by its grouping key.
    group_by_key: HashMap<String, usize>,
    is_grouped: bool,
    /// For each column, the first column with the same aggregate, which alone is computed.
    first_of: Vec<usize>,
    /// Whether rows keep their nodes, for a consumer that needs no cells.
    keeps_nodes: bool,
    /// The number of rows that [`Output::release`] has passed on.
    released: u64,
    /// The documents of the rows, if only these are needed.
    pub documents: Option<DocumentSet>,
    /// An estimate of the bytes of groups and accumulators.
    grouped_bytes: usize,
    /// The position of the last row in the run; the first row has 1.
    position: u64,
    /// The number of rows before the window that were counted and not made, or made and discarded.
    skipped: u64,
    /// The number of rows before the window that were made and discarded.
    discarded_rows: u64,
    /// The broken invariant, if any. The run then ends with an error.
    broken: Option<&'static str>,
    /// The progress of ending the run.
    pub closing: Closing,
}

impl Output {
    pub fn new(query: &Query) -> Output {
        Output {
            result_buffer: ResultBuffer::new(query.select.len()),
            last_cells: vec![None; query.select.len()],
            final_rows: Vec::new(),
            distinct: Distinct::default(),
            deduplicated: 0,
            keeps_duplicates: false,
            key_bytes: 0,
            rows: Vec::new(),
            is_sorted: true,
            keys: Vec::new(),
            nodes: Vec::new(),
            groups: Vec::new(),
            group_by_key: HashMap::new(),
            is_grouped: query.is_grouped(),
            first_of: first_of(query),
            keeps_nodes: false,
            released: 0,
            documents: None,
            grouped_bytes: 0,
            position: 0,
            skipped: 0,
            discarded_rows: 0,
            broken: None,
            closing: Closing::default(),
        }
    }

    /// Returns the broken invariant, if any: rows, keys or groups are missing.
    pub fn broken(&self) -> Option<&'static str> {
        self.broken.or(self.result_buffer.broken())
    }

    /// Returns the number of rows or groups.
    pub fn len(&self) -> usize {
        self.final_rows.len() + self.rows.len() + self.groups.len()
    }

    /// Reserves memory for `rows` more rows, as far as the output holds them at once.
    pub fn reserve(&mut self, plan: &Plan, rows: usize) {
        let wanted = self.wanted(plan);
        // A top-k query holds few rows at once, so memory for them is sufficient.
        let at_once = wanted
            .filter(|_| self.rows.is_empty())
            .map_or(0, |wanted| wanted.min(64) + 4);
        let rows = wanted.map_or(rows, |wanted| {
            rows.min(most_held(wanted, plan.query.order.len()))
                .max(at_once)
        });
        if !self.is_grouped && !self.is_plain(plan) && self.documents.is_none() {
            self.rows.reserve(rows);
            self.keys.reserve(rows * plan.query.order.len());
            self.nodes.reserve(wanted.map_or(0, |_| rows * plan.width));
        }
    }

    /// Returns whether more rows cannot change the result: rows arrive in final order and the
    /// window is full.
    pub fn is_full(&mut self, plan: &Plan, work: &Work) -> bool {
        let is_full = self.missing(plan) == Some(0);
        // Duplicates that are not removed yet count as rows, so the window may not be full.
        if is_full && plan.query.distinct && self.deduplicated < self.final_rows.len() {
            self.remove_duplicates(plan, work);
            return self.missing(plan) == Some(0);
        }
        is_full
    }

    /// Sets whether rows can be removed again. Until then, no duplicates are removed.
    pub fn set_removable(&mut self, may: bool) {
        self.keeps_duplicates = may;
    }

    /// Checks that the rows in memory are within the limits.
    ///
    /// # Errors
    /// When there are too many rows, or they are too large.
    pub fn check_limits(
        &mut self,
        plan: &Plan,
        budget: &Budget,
        work: &Work,
    ) -> Result<(), QueryError> {
        let new = self.final_rows.len() - self.deduplicated;
        let is_due = new >= DUPLICATES || new * plan.query.select.len() >= DUPLICATE_CELLS;
        if plan.query.distinct && !self.keeps_duplicates && is_due {
            self.remove_duplicates(plan, work);
        }
        if self.final_rows.len() >= BEFORE_WINDOW
            || self.result_buffer.bytes() >= BEFORE_WINDOW_BYTES
        {
            self.discard_before_window(plan);
        }
        budget.check(self.len(), self.bytes())
    }

    /// Discards the rows before the window, so that a query with a large OFFSET needs no more
    /// memory than one without. Rows that can be removed again stay.
    fn discard_before_window(&mut self, plan: &Plan) {
        let before = self.before_window_of_made(plan);
        if before == 0 || plan.query.distinct || self.keeps_duplicates {
            return;
        }
        let count =
            usize::try_from(before).map_or(self.final_rows.len(), |n| n.min(self.final_rows.len()));
        let kept = self.final_rows.split_off(count);
        self.result_buffer.keep(kept.iter().copied());
        self.final_rows = (0..kept.len() as u32).collect();
        // The texts of the result buffer have new numbers, which the cache does not know.
        self.last_cells.fill(None);
        self.discarded_rows += count as u64;
        self.skip(count as u64);
    }

    /// Removes the duplicates from a query with DISTINCT that has neither order nor aggregates, and
    /// their texts.
    pub fn remove_duplicates(&mut self, plan: &Plan, work: &Work) {
        if !plan.query.distinct
            || !self.is_plain(plan)
            || self.deduplicated == self.final_rows.len()
        {
            return;
        }
        let new = self.final_rows.split_off(self.deduplicated);
        let kept: Vec<u32> = new
            .into_iter()
            .filter(|row| self.distinct.is_new(&self.result_buffer, *row, work))
            .collect();
        let start = self.deduplicated as u32;
        self.result_buffer.keep_behind(self.deduplicated, &kept);
        self.final_rows.extend(start..start + kept.len() as u32);
        self.deduplicated = self.final_rows.len();
    }

    /// Returns the number of rows that a query for its first rows still needs; `None` for other
    /// queries.
    pub fn missing(&self, plan: &Plan) -> Option<u64> {
        match plan.query.window {
            Some(Window::First { limit, offset }) if self.is_plain(plan) => Some(
                limit
                    .saturating_add(offset)
                    .saturating_sub(self.skipped)
                    .saturating_sub(self.len() as u64),
            ),
            _ => None,
        }
    }

    /// Returns the number of rows before the window that were neither made nor skipped.
    pub fn before_window(&self, plan: &Plan) -> u64 {
        self.before_window_of_made(plan)
            .saturating_sub(self.len() as u64)
    }

    /// Returns the number of rows before the window that were not skipped, from the first row that
    /// is held.
    fn before_window_of_made(&self, plan: &Plan) -> u64 {
        match plan.query.window {
            Some(Window::First { offset, .. }) if self.is_plain(plan) => {
                offset.saturating_sub(self.skipped)
            }
            _ => 0,
        }
    }

    /// Returns whether the next row of a plain query is before the window, so that it is not made.
    fn is_next_before_window(&self, plan: &Plan) -> bool {
        !plan.query.distinct && !self.keeps_duplicates && self.before_window(plan) > 0
    }

    /// Returns the range of the next rows of a plain query that are in the window, counted from 0:
    /// all rows if it has no window. `None` with DISTINCT, where this is not known.
    pub fn window_of_next(&self, plan: &Plan) -> Option<Range<usize>> {
        let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        let is_known = self.is_plain(plan) && !plan.query.distinct;
        let end = self.missing(plan).map_or(usize::MAX, count);
        is_known.then(|| count(self.before_window(plan))..end)
    }

    /// Returns the number of rows that were made, including those before the window.
    pub fn made(&self) -> u64 {
        self.discarded_rows + self.len() as u64
    }

    /// Counts rows before the window that are not made.
    pub fn skip(&mut self, rows: u64) {
        self.skipped = self.skipped.saturating_add(rows);
    }

    /// Returns the end of the rows of a plain query, for [`Output::truncate_to`].
    pub fn end(&self) -> (usize, usize) {
        (self.result_buffer.len(), self.final_rows.len())
    }

    /// Removes the rows of a plain query that were added after an end, because they are made again
    /// in smaller parts. Their texts stay for them, so the cost does not depend on earlier rows.
    pub fn make_again_from(&mut self, (cells, final_rows): (usize, usize)) {
        self.final_rows.truncate(final_rows);
        self.result_buffer.keep_behind(cells, &[]);
    }

    /// Removes the rows of a plain query that were added after an end, and their texts.
    pub fn truncate_to(&mut self, (cells, final_rows): (usize, usize)) {
        self.final_rows.truncate(final_rows);
        // The removed texts lose their numbers, so the caches that use these are emptied.
        self.last_cells.fill(None);
        self.distinct.forget_texts();
        self.result_buffer.keep(0..cells as u32);
    }

    /// Prepares the output for the rows of another batch.
    pub fn switch_batch(&mut self, view: View<'_>) {
        self.result_buffer.switch_batch(view.batch.texts());
        self.distinct.forget_dictionary_texts();
        self.last_cells.fill(None);
    }

    /// Reads the texts of a checkpoint that the rows refer to, so that later reads cannot fail.
    pub fn fetch_texts(&self) {
        self.result_buffer.fetch_texts();
    }

    /// Returns whether a query is plain: its rows are output in order of arrival, and only their
    /// cells are needed.
    pub fn is_plain(&self, plan: &Plan) -> bool {
        !self.is_grouped && !self.keeps_nodes && plan.single && plan.query.order.is_empty()
    }

    /// Returns the result buffer for rows of a plain query, and the list of their numbers.
    pub fn result_buffer(&mut self) -> (&mut ResultBuffer, &mut Vec<u32>) {
        (&mut self.result_buffer, &mut self.final_rows)
    }

    /// Adds a row that passed WHERE. `order` is its default order, if rows do not arrive in that
    /// order.
    pub fn take<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        order: Option<JoinOrder>,
    ) {
        if self.is_plain(evaluator.plan) {
            if self.is_next_before_window(evaluator.plan) {
                self.discarded_rows += 1;
                return self.skip(1);
            }
            evaluator
                .view
                .count(CELL / 2 * evaluator.plan.query.select.len() as u64);
            let number = append_row(
                &mut self.result_buffer,
                &mut self.last_cells,
                evaluator,
                row,
            );
            return self.final_rows.push(number);
        }
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
        self.push_row_in(evaluator, row, order);
    }

    /// Adds a row that passed WHERE, with its position in the batch.
    pub fn push_row_at<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        position: RowPosition,
    ) {
        self.push_row_in(evaluator, row, order_at(self.position, position));
    }

    fn push_row_in<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        order: RowOrder,
    ) {
        let query = &evaluator.plan.query;
        if let Some(documents) = &mut self.documents {
            return documents.mark_row(evaluator, row);
        }
        let made = if self.wanted(evaluator.plan).is_some() {
            0
        } else {
            query.select.len()
        };
        evaluator
            .view
            .count(CELL / 2 * (made + 2 * query.order.len()) as u64);
        let held_bytes = match query.order.is_empty() {
            true => 0,
            false => self.bytes(),
        };
        let keys = order_keys(evaluator, row, held_bytes);
        if self.is_grouped {
            return self.add_to_group(evaluator, row, keys.collect(), order);
        }
        match self.wanted(evaluator.plan) {
            Some(wanted) => {
                let nodes = (self.nodes.len() / row.len().max(1)) as u32;
                self.nodes.extend_from_slice(row);
                self.push(query, (UNMADE, nodes), keys, order);
                // Rows behind the first k are removed in large numbers, which makes each removal
                // cheap.
                if self.rows.len() >= most_held(wanted, query.order.len()) {
                    evaluator
                        .view
                        .count(units_of_sort(self.rows.len(), query.order.len()));
                    self.retain_best(evaluator.plan, wanted);
                }
            }
            None => {
                let number = append_row(
                    &mut self.result_buffer,
                    &mut self.last_cells,
                    evaluator,
                    row,
                );
                self.push(query, (number, 0), keys, order);
            }
        }
    }

    fn push(
        &mut self,
        query: &Query,
        (cells, nodes): (u32, u32),
        keys: impl Iterator<Item = SortKey>,
        order: RowOrder,
    ) {
        let start = self.keys.len();
        // Without ORDER BY, rows have no keys and the divisor is 0.
        let number = start.checked_div(query.order.len()).unwrap_or(0) as u32;
        self.keys.extend(keys);
        // The keys of a row are found by its number, so a row with fewer would shift all later ones.
        if self.keys.len() != start + query.order.len() {
            self.broken = Some("a row has not one key for each term of ORDER BY");
        }
        let own = self.keys.iter().skip(start);
        self.key_bytes += own.map(SortKey::text_bytes).sum::<usize>();
        let lead = query
            .order
            .first()
            .zip(self.keys.get(start))
            .map_or(0, |(by, key)| {
                // The complement reverses the order.
                if by.descending {
                    !key.lead()
                } else {
                    key.lead()
                }
            });
        self.is_sorted = false;
        self.rows.push(OutRow {
            cells,
            nodes,
            keys: number,
            lead,
            order,
        });
    }

    /// Returns the number of rows that are kept as nodes; `None` if rows become cells at once.
    fn wanted(&self, plan: &Plan) -> Option<usize> {
        if self.keeps_nodes {
            Some(usize::MAX)
        } else {
            best_of(&plan.query).or(first_of_join(plan))
        }
    }

    /// Makes rows keep their nodes until [`Output::release`].
    pub fn keep_nodes(&mut self) {
        self.keeps_nodes = true;
    }

    /// Passes the nodes of the held rows to a visitor in default order, or backward, and removes the
    /// rows.
    pub fn release<'b>(
        &mut self,
        plan: &Plan,
        view: View<'b>,
        is_backward: bool,
        visit: RowVisit<'_>,
    ) {
        let mut found = Vec::with_capacity(plan.query.select.len());
        order::sort_by_key(&mut self.rows, |row| row.order);
        let (first, count) = (self.released, self.rows.len() as u64);
        self.released += count;
        if is_backward {
            self.rows.reverse();
        }
        for (visited, row) in (0..).zip(self.rows.drain(..)) {
            let Some(row) = nth(&self.nodes, row.nodes, plan.width) else {
                self.broken = Some("a held row has no nodes");
                break;
            };
            found.clear();
            found.extend(plan.query.select.iter().map(|column| RowValue {
                view,
                node: node_of(view, &column.value, row),
            }));
            let number = match is_backward {
                false => visited,
                true => count - 1 - visited,
            };
            visit(first + number, &found);
        }
        self.keys.clear();
        self.key_bytes = 0;
        self.nodes.clear();
    }

    /// Makes the cells that are still missing; for a top-k query only those of the best rows.
    pub fn make_cells<'p: 'b, 'b>(&mut self, evaluator: ConditionEvaluator<'p, 'b>) {
        let Some(wanted) = self.wanted(evaluator.plan).filter(|_| !self.keeps_nodes) else {
            return;
        };
        if self.rows.len() > wanted {
            let columns = evaluator.plan.query.order.len();
            evaluator
                .view
                .count(units_of_sort(self.rows.len(), columns));
            self.retain_best(evaluator.plan, wanted);
        }
        self.result_buffer
            .reserve(self.rows.iter().filter(|row| row.cells == UNMADE).count());
        for row in self.rows.iter_mut().filter(|r| r.cells == UNMADE) {
            let Some(nodes) = nth(&self.nodes, row.nodes, evaluator.plan.width) else {
                self.broken = Some("a row without cells has no nodes");
                return;
            };
            row.cells = append_row(
                &mut self.result_buffer,
                &mut self.last_cells,
                evaluator,
                nodes,
            );
        }
        self.nodes.clear();
        self.drop_unused_cells();
    }

    /// Removes the cells of rows that were removed, if they are most of the result buffer.
    fn drop_unused_cells(&mut self) {
        let used = self.final_rows.len() + self.rows.len();
        if self.result_buffer.len() <= used.saturating_mul(4).max(1024) {
            return;
        }
        self.last_cells.fill(None);
        let cells = self.rows.iter().map(|row| row.cells);
        self.result_buffer
            .keep(self.final_rows.iter().copied().chain(cells));
        let cells = self.rows.iter_mut().map(|row| &mut row.cells);
        for (row, number) in self.final_rows.iter_mut().chain(cells).zip(0..) {
            *row = number;
        }
    }

    /// Keeps the best rows so far, with their keys and nodes.
    fn retain_best(&mut self, plan: &Plan, wanted: usize) {
        let width = plan.query.order.len();
        self.sort_rows(&plan.query);
        self.rows.truncate(wanted);
        let mut keys = Vec::with_capacity(self.rows.len() * width);
        let mut nodes = Vec::with_capacity(self.rows.len() * plan.width);
        for (number, row) in (0..).zip(&mut self.rows) {
            let start = row.keys as usize * width;
            let Some(own) = self.keys.get_mut(start..start + width) else {
                self.broken = Some("a row has no keys");
                return;
            };
            keys.extend(
                own.iter_mut()
                    .map(|key| std::mem::replace(key, SortKey::Null)),
            );
            row.keys = number;
            if row.cells == UNMADE {
                let Some(own) = nth(&self.nodes, row.nodes, plan.width) else {
                    self.broken = Some("a row without cells has no nodes");
                    return;
                };
                row.nodes = (nodes.len() / plan.width) as u32;
                nodes.extend_from_slice(own);
            }
        }
        self.key_bytes = keys.iter().map(SortKey::text_bytes).sum();
        (self.keys, self.nodes) = (keys, nodes);
    }

    /// Sorts the rows: by ORDER BY (NULL last for ASC, first for DESC), then in default order.
    pub fn sort(&mut self, query: &Query, work: &Work) {
        if !self.is_sorted {
            work.add(units_of_sort(self.rows.len(), query.order.len()));
        }
        self.sort_rows(query);
    }

    fn sort_rows(&mut self, query: &Query) {
        if std::mem::replace(&mut self.is_sorted, true) {
            return;
        }
        // Rows arrive in commit order, which mostly is the order of their times. A reversed list
        // then is sorted already.
        if query.order.first().is_some_and(|key| key.descending) {
            self.rows.reverse();
        }
        sort_out(&mut self.rows, &self.keys, query);
    }

    /// Advances the position of the next batch by the number of positions in the last one.
    pub fn advance_position(&mut self, positions: u64) {
        self.position = self.position.saturating_add(positions);
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
        if let Some(what) = self.broken {
            return Err(QueryError::Broken(what));
        }
        let (query, mut rows) = (&plan.query, self.closing.rows);
        cut(&mut rows, query.window, self.skipped);
        let columns = query
            .select
            .iter()
            .map(|c| ResultColumn {
                name: c.name.clone(),
                path: c.path.clone(),
            })
            .collect();
        ResultSet::new(columns, self.result_buffer, rows)
    }

    /// Returns the sort keys of the rows, one row after the other.
    pub fn keys(&self) -> &[SortKey] {
        &self.keys
    }

    /// Returns whether the rows are sorted.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// Takes the rows to sort them. Rows arrive in commit order, which mostly is the order of their
    /// times, so for a descending order the list is reversed.
    pub fn take_rows(&mut self, query: &Query) -> Vec<OutRow> {
        if query.order.first().is_some_and(|key| key.descending) {
            self.rows.reverse();
        }
        std::mem::take(&mut self.rows)
    }

    /// Stores the sorted rows.
    pub fn put_rows(&mut self, rows: Vec<OutRow>) {
        (self.rows, self.is_sorted) = (rows, true);
    }

    /// Returns the numbers of the rows of the result buffer in their order. Sort keys are dropped.
    pub fn rows_in_order(&mut self) -> Vec<u32> {
        let mut rows = std::mem::take(&mut self.final_rows);
        rows.extend(std::mem::take(&mut self.rows).iter().map(|row| row.cells));
        rows
    }

    /// Returns whether duplicates are removed at the end. In a plain query they are removed as rows
    /// arrive.
    pub fn removes_duplicates(&self, query: &Query) -> bool {
        query.distinct && self.deduplicated == 0
    }

    /// Returns whether a row of the result buffer differs from all rows before it.
    pub fn is_new(&mut self, row: u32, work: &Work) -> bool {
        self.distinct.is_new(&self.result_buffer, row, work)
    }
}

/// Returns the number of rows that a top-k query holds before it removes those behind the first
/// `wanted`. Rows with many sort keys reduce it.
fn most_held(wanted: usize, keys: usize) -> usize {
    wanted
        .saturating_mul(2)
        .max((8192 / keys.max(1)).clamp(16, 1024))
}

/// Returns the number of rows up to the end of the window, for a query without ORDER BY, DISTINCT
/// and aggregates.
fn first_rows(query: &Query) -> Option<usize> {
    match query.window {
        Some(Window::First { limit, offset }) if !query.distinct => {
            Some(usize::try_from(limit.saturating_add(offset)).unwrap_or(usize::MAX))
        }
        _ => None,
    }
}

/// Returns k of a top-k query (ORDER BY and LIMIT).
pub(super) fn best_of(query: &Query) -> Option<usize> {
    first_rows(query).filter(|_| !query.order.is_empty())
}

/// Returns the number of first rows that a join without ORDER BY needs. Its rows arrive in default
/// order within each EHR only.
pub(super) fn first_of_join(plan: &Plan) -> Option<usize> {
    let query = &plan.query;
    let is_join = !plan.single && query.order.is_empty() && !query.is_grouped();
    first_rows(query).filter(|_| is_join)
}

/// Returns the values of a row in a list with `width` values for each row.
fn nth<T>(values: &[T], row: u32, width: usize) -> Option<&[T]> {
    let start = row as usize * width;
    values.get(start..start + width)
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
