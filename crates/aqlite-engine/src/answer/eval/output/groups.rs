//! Groups: rows are added to the aggregates of their group, and none of them is held.

use super::held_rows::{Content, HeldRows, NO_KEYS, best_of, units_of_row};
use super::row_order::{RowOrder, order_keys};
use crate::answer::eval::accumulator::{Accumulator, BlockRows, order_at};
use crate::answer::eval::block::Block;
use crate::answer::eval::cells::{constant_cell, identity, plain_cell};
use crate::answer::eval::condition::ConditionEvaluator;
use crate::answer::eval::execution_path::ExecutionPath;
use crate::answer::eval::node::{Node, View};
use crate::answer::eval::sort_key::{SortKey, order_key};
use crate::answer::eval::work::{ROW, Work};
use crate::answer::plan::Plan;
use crate::answer::query::{Aggregate, ColumnValue, Expr, OrderBy, Query};
use crate::answer::result::{Cell, CellRef, ResultBuffer};
use std::collections::HashMap;

/// The groups of a query with aggregates.
///
/// The keys of the groups are the columns of SELECT that are neither aggregates nor literals.
/// Without such a column, the query has one group, the *only group*, even if it has no row.
/// At the end of the run, each group becomes a held row.
#[derive(Clone)]
pub(in crate::answer::eval) struct Groups {
    groups: Vec<Group>,
    /// The index of each group by its grouping key; empty for the only group.
    by_key: HashMap<String, usize>,
    has_keys: bool,
    /// For each column, the first column with the same aggregate, which alone is computed.
    first_of: Vec<usize>,
    /// The units of work of a row that arrives alone, beside those of its aggregates.
    row_units: u64,
    /// An estimate of the bytes of groups and accumulators.
    group_bytes: usize,
    /// The rows that complete groups have become; none before the end of the run.
    rows: HeldRows,
}

/// A group, with its key cells and its aggregates.
#[derive(Clone)]
pub(super) struct Group {
    /// The cells of the first row in default order, without those of aggregates.
    cells: Vec<Cell<String>>,
    /// The sort keys of that row.
    sort_keys: Vec<SortKey>,
    /// The default order of that row.
    order: RowOrder,
    accumulators: Vec<Accumulator>,
}

impl Groups {
    pub fn new(plan: &Plan) -> Groups {
        let query = &plan.query;
        Groups {
            groups: Vec::new(),
            by_key: HashMap::new(),
            has_keys: query.select.iter().any(|c| is_key(&c.value)),
            first_of: first_of(query),
            row_units: units_of_row(query, best_of(query).is_none()),
            group_bytes: 0,
            rows: HeldRows::of_groups(plan),
        }
    }

    /// Returns the number of groups, and of rows that were groups.
    pub fn len(&self) -> usize {
        self.groups.len() + self.rows.len()
    }

    /// Returns whether the query has no keys, so that its only group receives rows in any order.
    pub fn has_only_group(&self) -> bool {
        !self.has_keys
    }

    /// Adds a row that passed WHERE to its group.
    pub fn take<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        order: RowOrder,
    ) {
        evaluator.view.count(self.row_units);
        if self.has_keys {
            evaluator.view.note(ExecutionPath::Groups);
        }
        let keys = order_keys(evaluator, row, self.bytes()).collect();
        // Without memory for the keys, the run ends.
        if let Some(group) = self.group_of(evaluator, row, keys, order) {
            self.add_row_to(evaluator, group, row, order);
        }
    }

    /// Adds all rows of a block to the only group. `start` is the position before the batch.
    pub fn fold<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        block: &Block<'b>,
        start: u64,
        scratch: &mut [Node],
    ) {
        let group = self.only_group(&evaluator.plan.query);
        self.add_block_to(evaluator, group, block, start, scratch);
    }

    /// Adds one row to the only group.
    pub fn fold_row<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        order: RowOrder,
    ) {
        let group = self.only_group(&evaluator.plan.query);
        self.add_row_to(evaluator, group, row, order);
    }

    /// Adds a number of rows to the only group of a query whose aggregates read no path.
    pub fn fold_count(&mut self, query: &Query, view: View<'_>, rows: u64) {
        let group = self.only_group(query);
        self.update(query, view, group, |_, accumulator, _| {
            accumulator.count_block(view, rows);
        });
    }

    /// Returns the number of the only group of a query without keys. The group is created before
    /// its first row.
    fn only_group(&mut self, query: &Query) -> usize {
        if self.groups.is_empty() {
            self.groups.push(empty_group(query));
        }
        0
    }

    /// Adds one row to a group.
    fn add_row_to<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        group: usize,
        row: &[Node],
        order: RowOrder,
    ) {
        let (query, view) = (&evaluator.plan.query, evaluator.view);
        view.count(ROW * query.select.len() as u64);
        self.update(query, view, group, |aggregate, accumulator, held_bytes| {
            accumulator.add(aggregate, view, row, order, held_bytes);
        });
    }

    /// Adds all rows of a block to a group.
    fn add_block_to<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        group: usize,
        block: &Block<'b>,
        start: u64,
        scratch: &mut [Node],
    ) {
        let (view, mut known) = (evaluator.view, None);
        self.update(
            &evaluator.plan.query,
            view,
            group,
            |aggregate, accumulator, held_bytes| {
                let rows = BlockRows {
                    view,
                    block,
                    start,
                    held_bytes,
                };
                accumulator.add_block(aggregate, rows, scratch, &mut known);
            },
        );
    }

    /// Calls `add` for each accumulator of a group, and updates the estimate of the bytes of all
    /// groups. `add` also receives the bytes that everything but the accumulator holds.
    fn update(
        &mut self,
        query: &Query,
        view: View<'_>,
        group: usize,
        mut add: impl FnMut(&Aggregate, &mut Accumulator, usize),
    ) {
        let Some(group) = self.groups.get_mut(group) else {
            return view.note_broken(NO_GROUP);
        };
        for (aggregate, accumulator) in computed(query, &self.first_of, &mut group.accumulators) {
            self.group_bytes = self.group_bytes.saturating_sub(accumulator.bytes());
            add(aggregate, accumulator, self.group_bytes);
            self.group_bytes += accumulator.bytes();
        }
    }

    /// Returns the paths of the keys; `None` if a key is no path.
    pub fn key_paths(&self, query: &Query) -> Option<Vec<usize>> {
        let keys = query.select.iter().filter(|c| is_key(&c.value));
        let path = |value: &ColumnValue| match value {
            ColumnValue::Expr(Expr::Path(path)) => Some(*path),
            _ => None,
        };
        keys.map(|c| path(&c.value)).collect()
    }

    /// Adds all rows of a block to their groups. Rows with equal keys are added at once if the
    /// block can be split by `paths`, otherwise row by row. `start` is the position before the
    /// batch.
    pub fn take_block<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        block: &Block<'b>,
        paths: &[usize],
        start: u64,
        scratch: &mut [Node],
    ) {
        let Some(parts) = block.split_by(paths) else {
            for i in 0..block.rows.len() {
                block.fill(evaluator.view, i, scratch);
                let order = order_at(start, block.position(evaluator.view, i));
                self.take(evaluator, scratch, order);
            }
            return;
        };
        evaluator.view.note(ExecutionPath::GroupBlock);
        for part in &parts {
            self.take_part(evaluator, part, start, scratch);
        }
    }

    /// Adds the rows of a block that have equal keys to their group.
    fn take_part<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        part: &Block<'b>,
        start: u64,
        scratch: &mut [Node],
    ) {
        // The key cells of a group are those of its first row.
        let Some(first) = part.first(evaluator.view) else {
            return;
        };
        part.fill(evaluator.view, first, scratch);
        let order_keys = evaluator.plan.query.order.iter();
        let order_keys = order_keys.map(|by| order_key(evaluator, &by.key, scratch));
        let (keys, order) = (
            order_keys.collect(),
            order_at(start, part.position(evaluator.view, first)),
        );
        // Without memory for the keys, the run ends.
        if let Some(group) = self.group_of(evaluator, scratch, keys, order) {
            self.add_block_to(evaluator, group, part, start, scratch);
        }
    }

    /// Returns the number of the group of a row, which is created if it is new. Returns `None` if
    /// its keys exceed the limit of memory.
    fn group_of<'p: 'b, 'b>(
        &mut self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        keys: Vec<SortKey>,
        order: RowOrder,
    ) -> Option<usize> {
        let query = &evaluator.plan.query;
        if !self.has_keys {
            // Blocks may have created the only group, which has no key.
            return Some(self.only_group(query));
        }
        let mut buffer = String::new();
        let key = self.grouping_key(evaluator, row, &mut buffer)?;
        let next = self.groups.len();
        let key_bytes = bytes_of_key(&key);
        let number = *self.by_key.entry(key).or_insert(next);
        let known = self.groups.get_mut(number);
        if known.as_ref().is_some_and(|group| order >= group.order) {
            return Some(number);
        }
        let cells = query.select.iter();
        let cells = cells
            .map(|c| plain_cell(evaluator, &c.value, row, &mut buffer).to_owned())
            .collect();
        if let Some(group) = known {
            (group.cells, group.sort_keys, group.order) = (cells, keys, order);
            return Some(number);
        }
        self.group_bytes += key_bytes + bytes_of_group(query);
        let accumulators = query.select.iter().map(|_| Accumulator::default());
        self.groups.push(Group {
            cells,
            sort_keys: keys,
            order,
            accumulators: accumulators.collect(),
        });
        Some(number)
    }

    /// Returns the identity of the key cells of a row; `None` if they exceed the limit of memory.
    #[inline]
    fn grouping_key<'p: 'b, 'b>(
        &self,
        evaluator: ConditionEvaluator<'p, 'b>,
        row: &[Node],
        buffer: &mut String,
    ) -> Option<String> {
        let mut key = String::new();
        let columns = evaluator.plan.query.select.iter();
        for column in columns.filter(|c| is_key(&c.value)) {
            let cell = plain_cell(evaluator, &column.value, row, buffer);
            // The set keeps the key, and the group keeps the cells of its first row.
            let bytes = key
                .len()
                .saturating_add(cell.text_bytes())
                .saturating_mul(2);
            evaluator.view.count(cell.text_bytes() as u64);
            let bytes = self.group_bytes.saturating_add(bytes);
            if !evaluator.view.allows_bytes(bytes) {
                return None;
            }
            identity(&cell, &mut key);
        }
        Some(key)
    }

    /// Adds the groups of a part, whose rows follow `positions` positions.
    pub fn absorb(&mut self, query: &Query, part: Groups, positions: u64, work: &Work) {
        let mut keys = vec![None; part.groups.len()];
        for (key, number) in part.by_key {
            match keys.get_mut(number) {
                Some(slot) => *slot = Some(key),
                None => work.note_broken(NO_GROUP),
            }
        }
        for (group, key) in part.groups.into_iter().zip(keys) {
            if !self.absorb_group(query, group, key, positions) {
                work.note_broken(NO_GROUP);
            }
        }
    }

    /// Adds a group to the group with the same key; `None` is the key of the only group. Returns
    /// false if there is no group with the number of this key.
    fn absorb_group(
        &mut self,
        query: &Query,
        mut added: Group,
        key: Option<String>,
        positions: u64,
    ) -> bool {
        let next = self.groups.len();
        let key_bytes = key.as_ref().map_or(0, |key| bytes_of_key(key));
        let number = key.map_or(0, |key| *self.by_key.entry(key).or_insert(next));
        let is_new = number == next;
        if is_new {
            self.group_bytes += key_bytes + bytes_of_group(query);
            self.groups.push(empty_group(query));
        }
        let Some(group) = self.groups.get_mut(number) else {
            return false;
        };
        let order = added.order.behind(positions);
        // The key cells of a group are those of its first row.
        if is_new || order < group.order {
            (group.cells, group.sort_keys, group.order) = (added.cells, added.sort_keys, order);
        }
        let own = computed(query, &self.first_of, &mut group.accumulators);
        let others = computed(query, &self.first_of, &mut added.accumulators);
        for ((aggregate, sum), (_, other)) in own.zip(others) {
            self.group_bytes = self.group_bytes.saturating_sub(sum.bytes());
            sum.absorb(aggregate, std::mem::take(other), positions);
            self.group_bytes += sum.bytes();
        }
        true
    }

    /// Takes the complete groups, for [`Groups::close_group`].
    pub(super) fn finish(&mut self, query: &Query) -> Vec<Group> {
        if !self.has_keys {
            self.only_group(query);
        }
        std::mem::take(&mut self.groups)
    }

    /// Converts a complete group to a row, and makes its cells.
    pub(super) fn close_group(
        &mut self,
        query: &Query,
        mut group: Group,
        result_buffer: &mut ResultBuffer,
        work: &Work,
    ) {
        if !self.set_aggregate_keys(query, &mut group) {
            work.note_broken("a key of ORDER BY has no column or accumulator");
        }
        let mut cell_refs: Vec<CellRef> = Vec::with_capacity(query.select.len());
        let columns = query.select.iter().zip(&self.first_of).enumerate();
        for (at, (column, first)) in columns {
            let known = cell_refs.get(*first).copied();
            // A column before this one with an equal aggregate has the cell already.
            let cell = match (&column.value, known) {
                (ColumnValue::Aggregate(_), Some(known)) => Some(known),
                (ColumnValue::Aggregate(aggregate), None) => {
                    let accumulator = group.accumulators.get_mut(at);
                    accumulator.map(|sum| result_buffer.store_cell(&sum.cell(aggregate)))
                }
                _ => {
                    let cell = group.cells.get(at);
                    cell.map(|cell| result_buffer.store_cell(cell))
                }
            };
            // The result buffer rejects a row that lacks a cell.
            cell_refs.extend(cell);
        }
        let content = Content::Cells(result_buffer.push(cell_refs.into_iter()));
        let keys = group.sort_keys.into_iter();
        if !self.rows.push(query, content, keys, group.order) {
            work.note_broken(NO_KEYS);
        }
    }

    /// Returns the rows that complete groups have become.
    pub(super) fn rows(&mut self) -> &mut HeldRows {
        &mut self.rows
    }

    /// Returns an estimate of the bytes held, beside those of cells.
    pub fn bytes(&self) -> usize {
        self.group_bytes + self.rows.bytes()
    }

    /// Returns an estimate of the allocated bytes, beside those of cells.
    pub fn footprint(&self) -> usize {
        self.group_bytes + self.rows.footprint()
    }

    /// Sets the sort keys of a complete group that are aggregates. Returns false if one of them has
    /// no aggregate.
    fn set_aggregate_keys(&self, query: &Query, group: &mut Group) -> bool {
        for (order, key) in query.order.iter().zip(&mut group.sort_keys) {
            let OrderBy::Column(column) = order.key else {
                continue;
            };
            let value = query.select.get(column).map(|c| &c.value);
            if let Some(ColumnValue::Expr(_)) = value {
                continue;
            }
            let first = self.first_of.get(column);
            let accumulator = first.and_then(|first| group.accumulators.get_mut(*first));
            match (value, accumulator) {
                (Some(ColumnValue::Aggregate(aggregate)), Some(accumulator)) => {
                    *key = accumulator.key(aggregate);
                }
                _ => return false,
            }
        }
        true
    }
}

/// Returns an estimate of the bytes of the key of a group: the text, its copy and its entry.
fn bytes_of_key(key: &str) -> usize {
    2 * key.len() + 48
}

/// Returns the bytes of a group without its key and the content of its accumulators.
fn bytes_of_group(query: &Query) -> usize {
    let column = size_of::<Accumulator>() + size_of::<Cell<String>>();
    size_of::<Group>() + query.select.len() * column
}

const NO_GROUP: &str = "a row has the number of a group that does not exist";

/// Returns the aggregates of a query that are computed, each with its accumulator.
fn computed<'q, 's>(
    query: &'q Query,
    first_of: &'s [usize],
    sums: &'s mut [Accumulator],
) -> impl Iterator<Item = (&'q Aggregate, &'s mut Accumulator)> {
    let columns = query.select.iter().zip(sums).zip(first_of).enumerate();
    columns.filter_map(|(at, ((column, accumulator), first))| match &column.value {
        ColumnValue::Aggregate(aggregate) if *first == at => Some((aggregate, accumulator)),
        _ => None,
    })
}

/// Returns for each column the first column with the same aggregate; its own index if there is
/// none.
fn first_of(query: &Query) -> Vec<usize> {
    let mut known: Vec<(&Aggregate, usize)> = Vec::new();
    let columns = query.select.iter().enumerate();
    columns
        .map(|(at, column)| {
            let ColumnValue::Aggregate(aggregate) = &column.value else {
                return at;
            };
            match known.iter().find(|(other, _)| *other == aggregate) {
                Some((_, first)) => *first,
                None => {
                    known.push((aggregate, at));
                    at
                }
            }
        })
        .collect()
}

/// Returns whether rows are grouped by a column beside aggregates: any column but a literal.
fn is_key(value: &ColumnValue) -> bool {
    matches!(value, ColumnValue::Expr(Expr::Path(_) | Expr::Call(..)))
}

/// Creates the only group of a query without keys, before any row.
fn empty_group(query: &Query) -> Group {
    let cells = query
        .select
        .iter()
        .map(|c| constant_cell(&c.value))
        .collect();
    let accumulators = query
        .select
        .iter()
        .map(|_| Accumulator::default())
        .collect();
    Group {
        cells,
        sort_keys: query.order.iter().map(|_| SortKey::Null).collect(),
        order: RowOrder::default(),
        accumulators,
    }
}
