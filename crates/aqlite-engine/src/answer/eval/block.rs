//! Blocks: rows of one row template, which are tested, aggregated and projected column by column.

use super::anchors::{ComparedValue, Comparison, Conjunct};
use super::condition::ConditionEvaluator;
use super::execution_path::ExecutionPath;
use super::node::{Node, View};
use super::selection::{Numbers, Selection};
use super::templates::Abort;
use super::value::compare_times;
use crate::answer::plan_cache::{Cells, ProjectedCell};
use crate::answer::query::CompareOp;
use crate::document::{Column, ColumnView, Fragment, ItemKind, Table, ZoneMap};
use aqlite_rm::exact::WIDE;
use aqlite_rm::time::Temporal;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::cell::Cell;
use std::rc::Rc;

/// Rows of one table that have the same cells, one fragment each.
#[derive(Clone)]
pub(super) struct Block<'b> {
    /// The table of the fragments, and its number.
    pub table: &'b Table,
    pub number: u32,
    pub cells: Cells,
    /// The fragments.
    pub rows: Selection<'b>,
    /// The index of the row template in its layout variant. It orders the rows of one fragment.
    pub template: u32,
    /// The parent rows, if the rows are child rows of a repeated group.
    pub parent_rows: ParentRows,
    /// The fragments of the classes above the anchor, if they contribute cells: a block for each
    /// class, whose row `i` belongs to row `i` of this block.
    pub above: Vec<Block<'b>>,
}

/// The largest number of parts into which a block is split by keys.
const MAX_PARTS: usize = 32;

/// The parent rows of the child rows of a block.
#[derive(Clone)]
pub(super) enum ParentRows {
    /// The rows of the block have no parent rows.
    None,
    /// The parent rows contribute no cell.
    Unused,
    /// The parent rows contribute cells.
    Known {
        /// The cells that the parent rows contribute, by table and layout variant.
        parents: Rc<[ParentCells]>,
        /// The parent row of each row of the block.
        parent_of: Vec<ParentRef>,
    },
}

/// The parent row of a child row.
#[derive(Clone, Copy)]
pub(super) struct ParentRef {
    /// The index of its cells: see [`ParentCells`].
    pub cells: u32,
    /// The number of the row in its table.
    pub row: u32,
}

/// The position of a row in its batch. Rows are compared by the fields in turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPosition {
    /// The pre-order number of the fragment; that of the parent row for a child row.
    pub preorder: u32,
    /// The index of the row template. For a child row, its own pre-order number is in the upper 32
    /// bits.
    pub within: u64,
}

/// The cells that the parent rows of one table and layout variant contribute.
pub(super) struct ParentCells {
    pub number: u32,
    pub cells: Cells,
}

/// The columns of a block that a conjunct reads.
enum ConjunctColumns<'b> {
    /// No column: the outcome is the same for all rows.
    Nothing,
    /// One column of texts, with the row of its table for each row of the block.
    Texts(ColumnView<'b>, Vec<u32>),
    /// Any other columns.
    Anything,
}

impl<'b> Block<'b> {
    /// Keeps the rows for which a conjunct is true.
    pub fn retain<'p: 'b>(
        &mut self,
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
        check_cancelled: &mut dyn FnMut() -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        if let Some(comparison) = conjunct.comparison
            && let ComparedValue::Number(limit) = comparison.bound
            && let Some(numbers) = self.numbers(comparison.path)
        {
            evaluator.view.note(ExecutionPath::CompareColumn);
            self.compare(evaluator.view, numbers, comparison.op, limit);
            return Ok(());
        }
        if let Some(comparison) = conjunct.comparison
            && let ComparedValue::Time(limit) = comparison.bound
            && let columns = self.block_of(comparison.path)
            && let Some(times) = columns.times(comparison.path)
        {
            evaluator.view.note(ExecutionPath::CompareTimes);
            let rows = columns.rows.rows().into_owned();
            // A text that is no point in time is compared like any other value.
            let outcome = |i: usize| {
                let point = Temporal::from_micros(times.point(*rows.get(i)?)?);
                Some(compare_times(point, comparison.op, limit) == Some(true))
            };
            return self.retain_each(conjunct, evaluator, scratch, check_cancelled, &outcome);
        }
        match self.reads(conjunct) {
            ConjunctColumns::Nothing => {
                // The outcome is the same for all rows, so the first row decides.
                let passes = !self.rows.is_empty() && self.is_true(0, conjunct, evaluator, scratch);
                self.keep_all(passes, evaluator.view);
                Ok(())
            }
            ConjunctColumns::Texts(column_view, rows) => {
                let texts = (column_view, rows.as_slice());
                self.retain_by_text(texts, conjunct, evaluator, scratch, check_cancelled)
            }
            ConjunctColumns::Anything => {
                if let Some(outcomes) = self.outcomes_by_variant(conjunct, evaluator, scratch) {
                    self.keep_by_variant(&outcomes, evaluator.view);
                    return Ok(());
                }
                evaluator.view.note(ExecutionPath::PredicateRows);
                self.retain_each(conjunct, evaluator, scratch, check_cancelled, &|_| None)
            }
        }
    }

    /// Keeps all rows if they pass a conjunct with the same outcome for all of them, or removes all.
    fn keep_all(&mut self, passes: bool, view: View<'_>) {
        view.note(ExecutionPath::PredicateOnce);
        if !passes {
            self.keep(|_, _| false);
        }
    }

    /// Returns the outcome of a conjunct with EXISTS for each layout variant of the parent rows
    /// ([`ParentRows::variant_of`]); `None` if it depends on more than the layouts.
    fn outcomes_by_variant<'p: 'b>(
        &self,
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
    ) -> Option<Vec<bool>> {
        if conjunct.paths.is_some() || self.rows.is_empty() {
            return None;
        }
        let differs = Cell::new(false);
        let watched = ConditionEvaluator {
            plan: evaluator.plan,
            view: evaluator.view.watched(&differs),
            now: evaluator.now,
        };
        let variants = self.parent_rows.variants();
        let mut outcomes: Vec<Option<bool>> = vec![None; variants];
        let mut undecided = variants;
        for i in 0..self.rows.len() {
            let outcome = outcomes.get_mut(self.parent_rows.variant_of(i)?)?;
            if outcome.is_some() {
                continue;
            }
            self.fill(watched.view, i, scratch);
            *outcome = Some(watched.truth(conjunct.condition, scratch) == Some(true));
            undecided -= 1;
            if differs.get() {
                return None;
            }
            if undecided == 0 {
                break;
            }
        }
        // No row has a variant without an outcome.
        let decided = outcomes.into_iter().map(|outcome| outcome == Some(true));
        Some(decided.collect())
    }

    /// Keeps the rows whose parent rows have a layout variant with the outcome true.
    fn keep_by_variant(&mut self, outcomes: &[bool], view: View<'_>) {
        if let [passes] = outcomes {
            return self.keep_all(*passes, view);
        }
        view.note(ExecutionPath::PredicateOnce);
        let outcome = |i| outcomes.get(self.parent_rows.variant_of(i)?).copied();
        let flags: Vec<bool> = (0..self.rows.len())
            .map(|i| {
                outcome(i).unwrap_or_else(|| {
                    view.note_broken("a child row of a block has no parent row");
                    false
                })
            })
            .collect();
        self.keep(|i, _| flags.get(i) == Some(&true));
    }

    /// Removes all rows and returns true if the zone map of a column excludes that any value passes
    /// a conjunct. The column is not loaded.
    pub fn prune(&mut self, conjuncts: &[Conjunct<'_>], view: View<'_>) -> bool {
        let is_left_out = conjuncts.iter().any(|conjunct| self.is_beyond(conjunct));
        if is_left_out {
            view.note(ExecutionPath::ZoneMap);
            self.keep(|_, _| false);
        }
        is_left_out
    }

    /// Returns whether the zone map of a column excludes that any value passes a conjunct.
    fn is_beyond(&self, conjunct: &Conjunct<'_>) -> bool {
        let Some(Comparison { path, op, bound }) = conjunct.comparison else {
            return false;
        };
        let columns = self.block_of(path);
        let leaf = projected_cell(&columns.cells, path).and_then(|cell| cell.leaf);
        match (leaf.and_then(|leaf| columns.table.zone_map(leaf)), bound) {
            (Some(ZoneMap::Numbers(least, greatest)), ComparedValue::Number(limit)) => {
                is_outside((least, greatest), op, limit)
            }
            (Some(ZoneMap::Moments(first, last)), ComparedValue::Time(limit)) => {
                is_outside((first, last), op, limit.earliest)
            }
            _ => false,
        }
    }

    /// Keeps the rows for which a conjunct over one column of texts is true. The conjunct is
    /// evaluated once for each distinct text. The column comes with the row of its table for each
    /// row of the block.
    fn retain_by_text<'p: 'b>(
        &mut self,
        (column_view, rows): (ColumnView<'b>, &[u32]),
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
        check_cancelled: &mut dyn FnMut() -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        evaluator.view.note(ExecutionPath::PredicateWords);
        // A row without a text has an outcome of its own.
        let id_of = |row: &u32| column_view.id(*row);
        let mut known: HashMap<Option<u32>, bool> = HashMap::new();
        for (i, row) in (0..).zip(rows) {
            if let Entry::Vacant(unknown) = known.entry(id_of(row)) {
                check_cancelled()?;
                unknown.insert(self.is_true(i, conjunct, evaluator, scratch));
            }
        }
        let outcome = |row: &u32| known.get(&id_of(row)).copied();
        self.keep(|i, _| rows.get(i).and_then(outcome) == Some(true));
        Ok(())
    }

    /// Keeps the rows for which a conjunct is true. `outcome` returns whether it is true for the row
    /// at an index; the conjunct is evaluated for the rows whose outcome it does not know.
    fn retain_each<'p: 'b>(
        &mut self,
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
        check_cancelled: &mut dyn FnMut() -> Result<(), Abort>,
        outcome: &dyn Fn(usize) -> Option<bool>,
    ) -> Result<(), Abort> {
        // `keep` changes the rows that `is_true` reads, so all outcomes are collected first.
        let mut flags = Vec::with_capacity(self.rows.len());
        for i in 0..self.rows.len() {
            flags.push(match outcome(i) {
                Some(is_true) => is_true,
                None => {
                    check_cancelled()?;
                    self.is_true(i, conjunct, evaluator, scratch)
                }
            });
        }
        self.keep(|i, _| {
            flags.get(i).copied().unwrap_or_else(|| {
                let view = evaluator.view;
                view.note_broken("a row of a block was not tested");
                false
            })
        });
        Ok(())
    }

    /// Splits the rows by the values of paths: the rows of each part have equal values. Returns
    /// `None` if a path is neither constant nor a column of texts, or if there would be more than
    /// [`MAX_PARTS`] parts.
    pub fn split_by(&self, paths: &[usize]) -> Option<Vec<Block<'b>>> {
        // Keys may come from parent rows, which are not columns of this table.
        if matches!(self.parent_rows, ParentRows::Known { .. }) {
            return None;
        }
        let mut columns = Vec::with_capacity(paths.len());
        for path in paths {
            let source = self.block_of(*path);
            let column = source.key_column(*path)?;
            columns.extend(column.map(|column| (column, source.rows.rows())));
        }
        if columns.is_empty() {
            return Some(vec![self.clone()]);
        }
        let (mut keys, mut parts) = (Vec::<Vec<u32>>::new(), Vec::<Vec<usize>>::new());
        let (mut key, mut last) = (Vec::with_capacity(columns.len()), 0);
        for i in 0..self.rows.len() {
            key.clear();
            for (column, rows) in &columns {
                key.push(column.id(*rows.get(i)?)?);
            }
            // Neighbors often have the same values.
            if keys.get(last) != Some(&key) {
                // A linear search is fast, because there are at most `MAX_PARTS` keys.
                last = match keys.iter().position(|known| *known == key) {
                    Some(number) => number,
                    None if parts.len() == MAX_PARTS => return None,
                    None => {
                        keys.push(key.clone());
                        parts.push(Vec::new());
                        parts.len() - 1
                    }
                };
            }
            parts.get_mut(last)?.push(i);
        }
        Some(parts.iter().map(|indices| self.part(indices)).collect())
    }

    /// Returns the column of texts that has the values of a path; `Some(None)` if all rows have the
    /// same value, and `None` for any other path.
    fn key_column(&self, path: usize) -> Option<Option<ColumnView<'b>>> {
        let Some(item) = self.item_of(path) else {
            return (!self.parent_rows.has(path)).then_some(None);
        };
        if let ItemKind::Constant { .. } = self.table.layout().item(item)?.kind {
            return Some(None);
        }
        let column = self.column_view(path)?;
        column.column().ids().is_some().then_some(Some(column))
    }

    /// Keeps the rows whose number passes a comparison with `limit`.
    fn compare(&mut self, view: View<'_>, numbers: Numbers<'_>, op: CompareOp, limit: f64) {
        match op {
            CompareOp::Eq => self.keep_passing(view, numbers, |v| v == limit),
            // In Rust, NaN differs from every number. In AQL, no comparison with it is true.
            CompareOp::Ne => self.keep_passing(view, numbers, |v| v != limit && !v.is_nan()),
            CompareOp::Lt => self.keep_passing(view, numbers, |v| v < limit),
            CompareOp::Le => self.keep_passing(view, numbers, |v| v <= limit),
            CompareOp::Gt => self.keep_passing(view, numbers, |v| v > limit),
            CompareOp::Ge => self.keep_passing(view, numbers, |v| v >= limit),
        }
    }

    /// Keeps the rows whose value passes a test.
    fn keep_passing(&mut self, view: View<'_>, numbers: Numbers<'_>, test: impl Fn(f64) -> bool) {
        // Only rows without others that belong to them can be replaced.
        if matches!(self.parent_rows, ParentRows::Known { .. }) || !self.above.is_empty() {
            self.keep(|_, row| numbers.at(view, row).is_some_and(&test));
        } else {
            self.rows = self.rows.passing(view, numbers, test);
        }
    }

    /// Keeps the rows that pass a test, which receives the index in the block and the row of the
    /// table.
    pub fn keep(&mut self, mut wanted: impl FnMut(usize, u32) -> bool) {
        let mut rows = self.rows.take_rows();
        let others = self.above.iter_mut();
        let mut others: Vec<Vec<u32>> = others.map(|above| above.rows.take_rows()).collect();
        let mut parent_of = if let ParentRows::Known { parent_of, .. } = &mut self.parent_rows {
            Some(parent_of)
        } else {
            None
        };
        let mut kept = 0;
        for i in 0..rows.len() {
            if rows.get(i).is_some_and(|row| wanted(i, *row)) {
                // All lists swap the same entries, and the rows that are kept stay in order.
                rows.swap(i, kept);
                parent_of.iter_mut().for_each(|list| list.swap(i, kept));
                others.iter_mut().for_each(|rows| rows.swap(i, kept));
                kept += 1;
            }
        }
        rows.truncate(kept);
        parent_of.into_iter().for_each(|list| list.truncate(kept));
        self.rows = Selection::Indices(rows);
        for (above, mut rows) in self.above.iter_mut().zip(others) {
            rows.truncate(kept);
            above.rows = Selection::Indices(rows);
        }
    }

    fn is_true<'p: 'b>(
        &self,
        i: usize,
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
    ) -> bool {
        self.fill(evaluator.view, i, scratch);
        evaluator.truth(conjunct.condition, scratch) == Some(true)
    }

    /// Returns whether the block is consistent: each row exists in the table and has a position, a
    /// document and, for child rows, a parent row. Each cell belongs to a column of a result row
    /// with `width` columns. The readers of blocks rely on this.
    pub fn is_sound(&self, width: usize) -> bool {
        let (table, len) = (self.table, self.table.len());
        let lists = [table.docs(), table.preorder(), table.parent_preorder()]
            .iter()
            .all(|list| list.len() == len);
        let fits = |cells: &[ProjectedCell]| {
            cells
                .iter()
                .all(|projected_cell| projected_cell.column < width)
        };
        let parent_rows = match &self.parent_rows {
            ParentRows::None | ParentRows::Unused => true,
            ParentRows::Known { parents, parent_of } => {
                parent_of.len() == self.rows.len()
                    && parent_of
                        .iter()
                        .all(|parent| (parent.cells as usize) < parents.len())
                    && parents.iter().all(|parent| fits(&parent.cells))
            }
        };
        let above = |above: &Block<'b>| {
            let exists = |row: &u32| (*row as usize) < above.table.len();
            above.rows.len() == self.rows.len()
                && above.rows.rows().iter().all(exists)
                && fits(&above.cells)
        };
        lists
            && parent_rows
            && fits(&self.cells)
            && self.rows.span().end as usize <= len
            && self.above.iter().all(above)
    }

    /// Writes the nodes of a row of the block, given by its index. An index without a row or without
    /// its parent row is a broken invariant, which ends the run.
    pub fn fill(&self, view: View<'_>, i: usize, scratch: &mut [Node]) {
        // Cells of an earlier row must not remain.
        scratch.fill(Node::NONE);
        if let ParentRows::Known { .. } = self.parent_rows {
            match self.parent_rows.parent(i) {
                Some((parent, row)) => {
                    let table = parent.number;
                    project_cells(view, scratch, &parent.cells, Fragment { table, row });
                }
                None => view.note_broken("a child row of a block has no parent row"),
            }
        }
        for block in std::iter::once(self).chain(&self.above) {
            match block.rows.get(i) {
                Some(row) => {
                    let table = block.number;
                    project_cells(view, scratch, &block.cells, Fragment { table, row });
                }
                None => view.note_broken("a block has no row at an index"),
            }
        }
    }

    /// Returns the position of a row in its batch.
    pub fn position(&self, view: View<'_>, i: usize) -> RowPosition {
        let (own, template) = (self.own_preorder(view, i), u64::from(self.template));
        match &self.parent_rows {
            ParentRows::None => RowPosition {
                preorder: own,
                within: template,
            },
            ParentRows::Unused | ParentRows::Known { .. } => RowPosition {
                preorder: self.entry(view, self.table.parent_preorder(), i),
                // Child rows are ordered by their own pre-order number, then by row template.
                within: (u64::from(own) << 32) | template,
            },
        }
    }

    /// Returns the index of the row with the first position ([`Block::position`]).
    pub fn first(&self, view: View<'_>) -> Option<usize> {
        if !matches!(self.parent_rows, ParentRows::None) {
            return (0..self.rows.len()).min_by_key(|i| self.position(view, *i));
        }
        // A list of the rows is read faster than each row by its index.
        let (rows, preorder) = (self.rows.rows(), self.table.preorder());
        let rows = (0..).zip(rows.iter());
        let first = rows.min_by_key(|(_, row)| preorder.get(**row as usize));
        first.map(|(i, _)| i)
    }

    /// Returns the pre-order number of the fragment that has the cells of a row.
    pub fn own_preorder(&self, view: View<'_>, i: usize) -> u32 {
        self.entry(view, self.table.preorder(), i)
    }

    /// Returns the document of a row.
    pub fn doc(&self, view: View<'_>, i: usize) -> u32 {
        self.entry(view, self.table.docs(), i)
    }

    /// Returns the entry for a row in a list that has one entry for each row of the table. A row
    /// without an entry is a broken invariant, which ends the run.
    ///
    /// An empty list means that a part of a segment is absent. The run restarts when it is loaded.
    fn entry(&self, view: View<'_>, list: &[u32], i: usize) -> u32 {
        let row = self.rows.get(i);
        let entry = row.and_then(|row| list.get(row as usize).copied());
        entry.unwrap_or_else(|| {
            if !list.is_empty() {
                view.note_broken("a row of a block has no place in its table");
            }
            u32::MAX
        })
    }

    /// Returns the item of a path in the layout of the fragments.
    fn item_of(&self, path: usize) -> Option<u32> {
        projected_cell(&self.cells, path).map(|projected_cell| projected_cell.item)
    }

    /// Returns whether each row has a node at a path, in its own fragment.
    pub fn has_all_nodes(&self, path: usize) -> bool {
        projected_cell(&self.cells, path).is_some()
    }

    /// Returns whether no row has a node at a path.
    pub fn has_no_nodes(&self, path: usize) -> bool {
        !self.block_of(path).has_all_nodes(path) && !self.parent_rows.has(path)
    }

    /// Returns the column of a path that ends in a leaf of the fragments.
    fn column_view(&self, path: usize) -> Option<ColumnView<'b>> {
        self.table
            .column_view(projected_cell(&self.cells, path)?.leaf?)
    }

    /// Returns the numbers of a path; `None` if its column is no column of numbers.
    pub fn numbers(&self, path: usize) -> Option<Numbers<'b>> {
        let column_view = self.column_view(path)?;
        match column_view.column() {
            Column::Number(numbers) => Some(Numbers {
                values: numbers.values(),
                column_view,
            }),
            _ => None,
        }
    }

    /// Returns the view of the column of date-times at a path; `None` if it is no such column.
    pub fn times(&self, path: usize) -> Option<ColumnView<'b>> {
        let column_view = self.column_view(path)?;
        column_view
            .column()
            .moments()
            .is_some()
            .then_some(column_view)
    }

    /// Returns the numbers of a path if the doubles are exact: no whole number of the column
    /// exceeds the precision of a double.
    pub fn exact_numbers(&self, path: usize) -> Option<Numbers<'b>> {
        match self.column_view(path)?.column() {
            Column::Number(numbers) if numbers.has_long(WIDE) => None,
            _ => self.numbers(path),
        }
    }

    /// Returns whether the values of a path are numbers of an integer type.
    pub fn is_integer(&self, view: View<'_>, path: usize) -> bool {
        let node = self
            .item_of(path)
            .zip(self.rows.get(0))
            .map(|(item, row)| Node {
                fragment: Fragment {
                    table: self.number,
                    row,
                },
                item,
            });
        node.is_some_and(|node| view.is_integer(node))
    }

    /// Appends the rank of each value of a path, or [`NO_RANK`] for a value without one. Appends
    /// nothing and returns false if the column has neither numbers nor date-times.
    pub fn add_ranks(&self, view: View<'_>, path: usize, ranks: &mut Vec<i64>) -> bool {
        let columns = self.block_of(path);
        let rows = columns.rows.rows();
        let rank = |rank: Option<i64>| rank.unwrap_or(NO_RANK);
        match (columns.numbers(path), columns.times(path)) {
            (Some(numbers), _) => ranks.extend(
                rows.iter()
                    .map(|row| rank(numbers.at(view, *row).map(rank_of))),
            ),
            (_, Some(times)) => ranks.extend(rows.iter().map(|row| rank(times.start(*row)))),
            _ => return false,
        }
        true
    }

    fn reads(&self, conjunct: &Conjunct<'_>) -> ConjunctColumns<'b> {
        let Some(paths) = conjunct.paths.as_ref() else {
            return ConjunctColumns::Anything;
        };
        let mut found = ConjunctColumns::Nothing;
        for path in paths {
            let source = self.block_of(*path);
            let Some(item) = source.item_of(*path) else {
                if self.parent_rows.has(*path) {
                    return ConjunctColumns::Anything;
                }
                continue;
            };
            found = match (
                source.table.layout().item(item).map(|i| i.kind),
                source.column_view(*path),
                found,
            ) {
                (Some(ItemKind::Constant { .. }), _, found) => found,
                (_, Some(column_view), found) => match (column_view.column().ids(), found) {
                    (Some(_), ConjunctColumns::Nothing) => {
                        ConjunctColumns::Texts(column_view, source.rows.rows().into_owned())
                    }
                    (Some(_), ConjunctColumns::Texts(other, rows))
                        // Two paths to one column still have one text for each row.
                        if std::ptr::eq(column_view.column(), other.column()) =>
                    {
                        ConjunctColumns::Texts(other, rows)
                    }
                    _ => return ConjunctColumns::Anything,
                },
                _ => return ConjunctColumns::Anything,
            };
        }
        found
    }
}

/// The rank of a value that has no place in the order of its column.
pub(super) const NO_RANK: i64 = i64::MIN;

/// Returns the projected cell of a result column.
pub(super) fn projected_cell(cells: &[ProjectedCell], path: usize) -> Option<&ProjectedCell> {
    cells
        .iter()
        .find(|projected_cell| projected_cell.column == path)
}

/// Maps a number to an integer with the same order. -0 and 0 have the same rank.
pub(super) fn rank_of(number: f64) -> i64 {
    // Adding 0.0 turns -0.0 into 0.0. The bits of negative numbers ascend as the numbers descend,
    // so all bits but the sign are flipped.
    let bits = (number + 0.0).to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

impl ParentRows {
    /// Returns the parent cells of a row of the block, and the parent row.
    fn parent(&self, i: usize) -> Option<(&ParentCells, u32)> {
        let ParentRows::Known { parents, parent_of } = self else {
            return None;
        };
        let parent = parent_of.get(i)?;
        Some((parents.get(parent.cells as usize)?, parent.row))
    }

    /// Returns the number of tables and layout variants of the parent rows; 1 if they contribute no
    /// cells.
    fn variants(&self) -> usize {
        match self {
            ParentRows::Known { parents, .. } => parents.len(),
            ParentRows::None | ParentRows::Unused => 1,
        }
    }

    /// Returns the index of the table and layout variant of the parent row of a row of the block;
    /// `None` if it has none, which breaks an invariant.
    fn variant_of(&self, i: usize) -> Option<usize> {
        match self {
            ParentRows::Known { parent_of, .. } => {
                parent_of.get(i).map(|parent| parent.cells as usize)
            }
            ParentRows::None | ParentRows::Unused => Some(0),
        }
    }

    /// Returns whether a parent row contributes the cell of a path.
    pub fn has(&self, path: usize) -> bool {
        matches!(self, ParentRows::Known { parents, .. } if parents.iter().any(|parent| projected_cell(&parent.cells, path).is_some()))
    }
}

/// Writes the cells of a fragment into a row. A row without the column of a cell is a broken
/// invariant, which ends the run.
pub(super) fn project_cells(
    view: View<'_>,
    row: &mut [Node],
    cells: &[ProjectedCell],
    fragment: Fragment,
) {
    for projected_cell in cells {
        match row.get_mut(projected_cell.column) {
            Some(cell) => {
                *cell = Node {
                    fragment,
                    item: projected_cell.item,
                };
            }
            None => view.note_broken("a row lacks the column of a cell"),
        }
    }
}

/// Returns whether no value of a range passes a comparison. A value that equals an end of the range
/// may pass, because two date-times with the same beginning can differ.
fn is_outside<T: PartialOrd>((least, greatest): (T, T), op: CompareOp, limit: T) -> bool {
    match op {
        CompareOp::Lt | CompareOp::Le => least > limit,
        CompareOp::Gt | CompareOp::Ge => greatest < limit,
        CompareOp::Eq => least > limit || greatest < limit,
        CompareOp::Ne => false,
    }
}

mod above;
#[cfg(test)]
mod tests;
