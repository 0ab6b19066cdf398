//! Accumulators: the states of aggregate functions.

use super::block::{Block, RowPosition};
use super::cells::{cell_of, identity};
use super::execution_path::ExecutionPath;
use super::node::{Node, View};
use super::output::RowOrder;
use super::sort_key::{SortKey, compare_keys, sort_key};
use super::sum::Sum;
use super::value::Value;
use super::work::{ROW, of_texts};
use crate::answer::query::Aggregate;
use crate::answer::result::Cell;
use crate::document::{ColumnView, Number};
use aqlite_rm::exact::Exact;
use aqlite_rm::number::shortest;
use aqlite_rm::time::Axis;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

/// The state of one aggregate function for one group.
#[derive(Clone, Default)]
pub(super) struct Accumulator {
    count: u64,
    sum: Sum,
    /// Whether a number of a type with fractions was added.
    is_real: bool,
    best: Option<Best>,
    seen: HashSet<String>,
    /// An estimate of the bytes of the collections above, for the limit of memory.
    kept_bytes: usize,
    /// Whether a value without an order was added. MIN and MAX are then NULL.
    unordered: bool,
}

/// The minimum or maximum of the values so far.
#[derive(Clone)]
struct Best {
    key: SortKey,
    /// The value; `None` if it equals the text of the key.
    cell: Option<Cell<String>>,
    order: RowOrder,
}

impl Best {
    /// Creates the value of a node with its sort key. A text that equals its key is stored once.
    fn of(view: View<'_>, node: Node, key: SortKey, order: RowOrder) -> Best {
        let mut buffer = String::new();
        let cell = cell_of(view, node, &mut buffer);
        let cell = match (&key, &cell) {
            (SortKey::Text(key), Cell::Text(text)) if key == text => None,
            _ => Some(cell.to_owned()),
        };
        Best { key, cell, order }
    }

    fn cell(&self) -> Cell<String> {
        match (&self.cell, &self.key) {
            (Some(cell), _) => cell.clone(),
            (None, SortKey::Text(text)) => Cell::Text(text.clone()),
            (None, _) => Cell::Null,
        }
    }

    fn bytes(&self) -> usize {
        self.key.text_bytes() + self.cell.as_ref().map_or(0, Cell::text_bytes)
    }
}

/// Rows of a block that are added to an accumulator.
#[derive(Clone, Copy)]
pub(super) struct BlockRows<'r, 'b> {
    pub view: View<'b>,
    pub block: &'r Block<'b>,
    /// The position in the run of the first fragment of the batch.
    pub start: u64,
    /// The bytes that the run holds apart from the accumulator.
    pub held_bytes: usize,
}

/// The numbers of a path in the rows of a block, with the index of the path.
pub(super) type PathNumbers<'b> = (usize, Cow<'b, [f64]>);

impl Accumulator {
    /// Adds all rows of a block: as a whole column for aggregates of numbers, otherwise row by row.
    /// `known` caches the numbers of the path that the previous aggregate read.
    pub fn add_block<'b>(
        &mut self,
        aggregate: &Aggregate,
        rows: BlockRows<'_, 'b>,
        scratch: &mut [Node],
        known: &mut Option<PathNumbers<'b>>,
    ) {
        let BlockRows { view, block, .. } = rows;
        let Some(path) = aggregate.path() else {
            return self.count_block(view, block.rows.len() as u64);
        };
        let columns = block.block_of(path);
        // Each row has a node at the path, so the rows need not be read.
        if matches!(aggregate, Aggregate::Count(_)) && columns.has_all_nodes(path) {
            return self.count_block(view, block.rows.len() as u64);
        }
        if block.has_no_nodes(path) {
            return;
        }
        if let (Aggregate::Min(_) | Aggregate::Max(_), Some(times)) =
            (aggregate, columns.times(path))
        {
            let times = (times, &*columns.rows.rows());
            return self.add_extreme_time(aggregate, rows, times, scratch);
        }
        // Several aggregates of one path read its numbers once.
        if known.as_ref().is_none_or(|(of, _)| *of != path) {
            *known = columns.exact_numbers(path).map(|numbers| {
                view.note(columns.rows.read_method(numbers).path());
                (path, columns.rows.of(view, numbers))
            });
        }
        let Some((_, values)) = known else {
            return self.add_each(aggregate, rows, scratch);
        };
        match aggregate {
            Aggregate::Sum(_) | Aggregate::Avg(_) => self.add_sum(rows, path, values),
            Aggregate::Min(_) | Aggregate::Max(_) => {
                self.add_extreme(aggregate, rows, values, scratch)
            }
            Aggregate::CountRows | Aggregate::Count(_) | Aggregate::CountDistinct(_) => {
                self.add_each(aggregate, rows, scratch)
            }
        }
    }

    /// Adds the numbers at a path of the rows of a block to the sum.
    fn add_sum(&mut self, rows: BlockRows<'_, '_>, path: usize, values: &[f64]) {
        rows.view.note(ExecutionPath::SumColumn);
        self.count += rows.block.rows.len() as u64;
        self.is_real |= !rows.block.block_of(path).is_integer(rows.view, path);
        self.sum.add_all(values);
    }

    /// Adds the first row of a block that has the minimum or maximum number.
    fn add_extreme(
        &mut self,
        aggregate: &Aggregate,
        rows: BlockRows<'_, '_>,
        values: &[f64],
        scratch: &mut [Node],
    ) {
        let is_min = matches!(aggregate, Aggregate::Min(_));
        rows.view.note(if is_min {
            ExecutionPath::MinColumn
        } else {
            ExecutionPath::MaxColumn
        });
        // The maximum is the negated minimum of the negated numbers, so one loop computes both.
        let best = if is_min {
            least(values)
        } else {
            -least_of(values, |v| -v)
        };
        // Only the first of the best rows is added: the others cannot change the result.
        if !self.is_behind(aggregate, best) {
            let as_good = (0..).zip(values).filter(|(_, value)| **value == best);
            let first = as_good.min_by_key(|(i, _)| rows.block.position(rows.view, *i));
            first
                .into_iter()
                .for_each(|(i, _)| self.add_at(aggregate, rows, i, scratch));
        }
    }

    /// Adds the rows of a block that can have the minimum or maximum date-time. The column of
    /// date-times comes with the row of its table for each row of the block.
    fn add_extreme_time(
        &mut self,
        aggregate: &Aggregate,
        rows: BlockRows<'_, '_>,
        (times, own): (ColumnView<'_>, &[u32]),
        scratch: &mut [Node],
    ) {
        let BlockRows { view, block, .. } = rows;
        view.note(ExecutionPath::ExtremeTime);
        let starts = || own.iter().filter_map(|row| times.start(*row));
        let best = match aggregate {
            Aggregate::Min(_) => starts().min(),
            _ => starts().max(),
        };
        let best = best.filter(|best| !self.is_behind_time(aggregate, *best));
        let is_best = |row: u32| best.is_some() && times.start(row) == best;
        // Equal points in time have equal keys, so only the first of them is added. Partial times
        // with one start differ, and a text that is no time is compared with all others.
        let points = (0..).zip(own);
        let points = points.filter(|(_, row)| is_best(**row) && times.point(**row).is_some());
        let first = points.min_by_key(|(i, _)| block.position(view, *i));
        let first = first.map(|(i, _)| i);
        let others = (0..).zip(own).filter(|(_, row)| {
            let has_no_rank = times.start(**row).is_none();
            has_no_rank || (is_best(**row) && times.point(**row).is_none())
        });
        let others: Vec<usize> = others.map(|(i, _)| i).collect();
        view.count(ROW * others.len() as u64);
        for i in first.into_iter().chain(others) {
            self.add_at(aggregate, rows, i, scratch);
        }
    }

    /// Adds the rows of a block one by one.
    fn add_each(&mut self, aggregate: &Aggregate, rows: BlockRows<'_, '_>, scratch: &mut [Node]) {
        let count = rows.block.rows.len();
        rows.view.count(ROW * count as u64);
        rows.view.note(ExecutionPath::AggregateRows);
        (0..count).for_each(|i| self.add_at(aggregate, rows, i, scratch));
    }

    /// Counts all rows of a block.
    pub fn count_block(&mut self, view: View<'_>, rows: u64) {
        view.note(ExecutionPath::CountBlock);
        self.count = self.count.saturating_add(rows);
    }

    /// Returns whether a number is worse than the current minimum or maximum.
    fn is_behind(&self, aggregate: &Aggregate, number: f64) -> bool {
        match (self.best.as_ref().map(|best| &best.key), aggregate) {
            (Some(SortKey::Number(best)), Aggregate::Min(_)) => best.double() < number,
            (Some(SortKey::Number(best)), Aggregate::Max(_)) => best.double() > number,
            _ => false,
        }
    }

    /// Returns whether a date-time begins at a worse time than the current minimum or maximum.
    fn is_behind_time(&self, aggregate: &Aggregate, begin: i64) -> bool {
        let Some(SortKey::Temporal(best)) = self.best.as_ref().map(|best| &best.key) else {
            return false;
        };
        // A value of another axis has an order of its own.
        best.axis() == Axis::Calendar
            && match aggregate {
                Aggregate::Min(_) => best.earliest < begin,
                _ => best.earliest > begin,
            }
    }

    fn add_at(
        &mut self,
        aggregate: &Aggregate,
        rows: BlockRows<'_, '_>,
        i: usize,
        scratch: &mut [Node],
    ) {
        let BlockRows { view, block, .. } = rows;
        block.fill(view, i, scratch);
        let order = order_at(rows.start, block.position(view, i));
        self.add(aggregate, view, scratch, order, rows.held_bytes);
    }

    /// Returns an estimate of the bytes that the accumulator holds, including the minimum or
    /// maximum and the sum.
    pub fn bytes(&self) -> usize {
        self.kept_bytes + self.best.as_ref().map_or(0, Best::bytes) + self.sum.bytes()
    }

    /// Adds a row. `held_bytes` is the number of bytes that the rest of the query holds.
    pub fn add(
        &mut self,
        aggregate: &Aggregate,
        view: View<'_>,
        row: &[Node],
        order: RowOrder,
        held_bytes: usize,
    ) {
        let at = |path: &usize| Some(view.node_at(row, *path)).filter(|n| !n.is_none());
        match aggregate {
            Aggregate::CountRows => self.count += 1,
            Aggregate::Count(path) => self.count += u64::from(at(path).is_some()),
            Aggregate::CountDistinct(path) => {
                if let Some(node) = at(path) {
                    self.add_distinct(view, node, held_bytes);
                }
            }
            Aggregate::Sum(path) | Aggregate::Avg(path) => {
                if let Some(node) = at(path) {
                    self.add_number(view, node);
                }
            }
            Aggregate::Min(path) => {
                self.improve(view, at(path), Ordering::Less, (order, held_bytes))
            }
            Aggregate::Max(path) => {
                self.improve(view, at(path), Ordering::Greater, (order, held_bytes))
            }
        }
    }

    /// Adds the value of a node to the set of distinct values, if the limit of memory allows it.
    fn add_distinct(&mut self, view: View<'_>, node: Node, held_bytes: usize) {
        let (mut key, mut buffer) = (String::new(), String::new());
        let cell = cell_of(view, node, &mut buffer);
        view.count(cell.text_bytes() as u64);
        if !view.allows_bytes(held_bytes + self.bytes() + cell.text_bytes()) {
            return;
        }
        identity(&cell, &mut key);
        self.keep_distinct(key);
    }

    /// Adds the identity of a value to the set of distinct values.
    fn keep_distinct(&mut self, key: String) {
        // 48 is an estimate for the string and its entry in the set.
        let bytes = key.len() + 48;
        self.kept_bytes += if self.seen.insert(key) { bytes } else { 0 };
    }

    /// Adds the number of a node to the sum. A value that is not a number is skipped.
    #[inline]
    fn add_number(&mut self, view: View<'_>, node: Node) {
        let Some(number) = view.value(node).as_number() else {
            return;
        };
        self.count += 1;
        self.is_real |= !view.is_integer(node);
        self.sum.add(number.double());
        if number.is_wide() {
            self.sum.add(number.rest());
        }
    }

    /// Replaces the minimum or maximum if a value is better. Of equal values, the one of the first
    /// row is kept.
    fn improve(
        &mut self,
        view: View<'_>,
        node: Option<Node>,
        wanted: Ordering,
        (order, held_bytes): (RowOrder, usize),
    ) {
        let Some(node) = node else { return };
        let value = view.value(node);
        if matches!(value, Value::TextObject(_) | Value::Object) {
            self.unordered = true;
        }
        let bytes = value.as_text().map_or(0, str::len);
        view.count(of_texts(bytes));
        if !view.allows_bytes(held_bytes + self.bytes() + bytes) {
            return;
        }
        let key = sort_key(&value);
        if self.is_better(&key, order, wanted) {
            self.best = Some(Best::of(view, node, key, order));
        }
    }

    /// Returns whether a value replaces the minimum or maximum. `wanted` is the result of its
    /// comparison with a value that it replaces.
    fn is_better(&self, key: &SortKey, order: RowOrder, wanted: Ordering) -> bool {
        // Rows may arrive in any order, so position decides among equal values.
        let better = |best: &Best| match compare_keys(key, &best.key) {
            Ordering::Equal => order < best.order,
            found => found == wanted,
        };
        self.best.as_ref().is_none_or(better)
    }

    /// Adds the rows of another accumulator of the same aggregate. `positions` is the number of
    /// positions before its rows.
    pub fn absorb(&mut self, aggregate: &Aggregate, other: Accumulator, positions: u64) {
        self.count = self.count.saturating_add(other.count);
        self.sum.add_sum(other.sum);
        self.is_real |= other.is_real;
        self.unordered |= other.unordered;
        for key in other.seen {
            self.keep_distinct(key);
        }
        let Some(mut best) = other.best else { return };
        best.order = best.order.behind(positions);
        let wanted = match aggregate {
            Aggregate::Max(_) => Ordering::Greater,
            _ => Ordering::Less,
        };
        if self.is_better(&best.key, best.order, wanted) {
            self.best = Some(best);
        }
    }

    /// Returns the value of the aggregate.
    pub fn cell(&mut self, aggregate: &Aggregate) -> Cell<String> {
        match aggregate {
            Aggregate::CountRows | Aggregate::Count(_) => {
                Cell::Number(Number::Token(self.count.to_string()))
            }
            Aggregate::CountDistinct(_) => Cell::Number(Number::Token(self.seen.len().to_string())),
            Aggregate::Sum(_) | Aggregate::Avg(_) if self.count == 0 => Cell::Null,
            Aggregate::Sum(_) => {
                let sum = self.sum.value();
                let has_digits = !self.is_real || Exact::from(sum).is_wide();
                match self.sum.whole().filter(|_| has_digits) {
                    Some(digits) => Cell::Number(Number::Token(digits)),
                    None => Cell::computed(sum),
                }
            }
            Aggregate::Avg(_) => double(self.sum.value() / self.count as f64),
            // Texts with rubrics have no order, so none of them is the smallest.
            Aggregate::Min(_) | Aggregate::Max(_) if self.unordered => Cell::Null,
            Aggregate::Min(_) | Aggregate::Max(_) => {
                self.best.as_ref().map_or(Cell::Null, Best::cell)
            }
        }
    }

    /// Returns the sort key of the value.
    pub fn key(&mut self, aggregate: &Aggregate) -> SortKey {
        match (self.cell(aggregate), &self.best) {
            (Cell::Null, _) => SortKey::Null,
            (_, Some(best)) => best.key.clone(),
            (Cell::Number(number), None) => SortKey::Number(number.exact()),
            _ => SortKey::Null,
        }
    }
}

/// Returns the cell of a number that is printed as a double: a whole number gets `.0`.
fn double(number: f64) -> Cell<String> {
    // Adding 0.0 turns -0.0 into 0.0.
    let mut digits = shortest(number + 0.0);
    if !digits.contains('.') {
        digits.push_str(".0");
    }
    if number.is_finite() {
        Cell::Number(Number::Token(digits))
    } else {
        Cell::Null
    }
}

/// Returns the default order of a row from its position in a batch that starts at `start`.
pub(super) fn order_at(start: u64, row: RowPosition) -> RowOrder {
    RowOrder {
        position: start.saturating_add(u64::from(row.preorder)),
        within: row.within,
        arrival: 0,
    }
}

/// Returns the minimum of the numbers; infinity for an empty list.
fn least(values: &[f64]) -> f64 {
    least_of(values, |value| value)
}

/// Returns the minimum of the mapped numbers. Four lanes allow vector instructions.
fn least_of(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    // A NaN is never less, so it is skipped.
    let lesser = |a: f64, b: f64| if b < a { b } else { a };
    let (fours, rest) = values.as_chunks::<4>();
    let mut lanes = [f64::INFINITY; 4];
    for four in fours {
        lanes
            .iter_mut()
            .zip(four)
            .for_each(|(lane, value)| *lane = lesser(*lane, of(*value)));
    }
    rest.iter()
        .map(|value| of(*value))
        .chain(lanes)
        .fold(f64::INFINITY, lesser)
}

#[cfg(test)]
mod tests {
    use super::{least, least_of};

    #[test]
    fn least_is_the_minimum_of_the_numbers() {
        for len in 0..13 {
            let numbers: Vec<f64> = (0..len).map(|i| f64::from(i * 7 % 13) - 4.0).collect();
            for start in 0..numbers.len() {
                let part = &numbers[start..];
                let expected = part.iter().copied().fold(f64::INFINITY, f64::min);
                assert_eq!(least(part), expected);
                let greatest = part.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                assert_eq!(-least_of(part, |number| -number), greatest);
            }
        }
        assert_eq!(least(&[]), f64::INFINITY);
        assert_eq!(least(&[f64::NAN, 3.0, f64::NAN, 2.0, f64::NAN]), 2.0);
    }
}
