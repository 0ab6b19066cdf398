//! Blocks: rows of one row template, tested, folded and shown column by column.

use super::anchors::{Bound, Comparison, Conjunct};
use super::condition::ConditionEvaluator;
use super::execution_path::ExecutionPath;
use super::node::{Node, View};
use super::selection::{Numbers, Selection};
use super::templates::Abort;
use crate::answer::plan_cache::{Cells, ProjectedCell};
use crate::answer::query::CompareOp;
use crate::document::{Column, ColumnView, Fragment, ItemKind, Table, Zone};
use aqlite_rm::exact::WIDE;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::rc::Rc;

/// Rows of which each has the same cells, in a fragment of its own.
pub(super) struct Block<'b> {
    /// The table of the fragments, and its number.
    pub table: &'b Table,
    pub number: u32,
    pub cells: Cells,
    /// The fragments.
    pub rows: Selection<'b>,
    /// The index of the row template in its layout variant.
    pub order: u32,
    /// The parent rows, if the rows are child rows of a repeated group.
    pub over: ParentRows,
}

/// The number of parts beyond which a block is not split.
const PARTS: usize = 32;

/// The parent rows of the child rows of a block.
#[derive(Clone)]
pub(super) enum ParentRows {
    /// The rows of the block are not child rows.
    Nothing,
    /// The parent rows supply no cell.
    Unused,
    /// The parent rows supply cells.
    Known {
        /// The tables of the parent rows, each with the cells that it supplies.
        parents: Rc<[ParentCells]>,
        /// For each row of the block: the index of its parent cells, and the row in its table.
        of: Vec<(u32, u32)>,
    },
}

/// The cells that the parent rows of one table supply.
pub(super) struct ParentCells {
    pub number: u32,
    pub cells: Cells,
}

/// The columns of a block that a conjunct reads.
enum Reads<'b> {
    /// Nothing that differs between rows.
    Nothing,
    /// One leaf value of texts.
    Words(ColumnView<'b>),
    /// Anything.
    Anything,
}

impl<'b> Block<'b> {
    /// Keeps the rows for which a conjunct is true; `go_on` is asked before each that is judged by
    /// itself.
    pub fn retain<'p: 'b>(
        &mut self,
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
        go_on: &mut dyn FnMut() -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        if let Some(comparison) = conjunct.comparison
            && let Bound::Number(limit) = comparison.bound
            && let Some(numbers) = self.numbers(comparison.path)
        {
            evaluator.view.note(ExecutionPath::CompareColumn);
            self.compare(numbers, comparison.op, limit);
            return Ok(());
        }
        match self.reads(conjunct) {
            Reads::Nothing => {
                evaluator.view.note(ExecutionPath::PredicateOnce);
                // The outcome is the same for all rows, so the first row decides.
                if self.rows.is_empty() || !self.is_true(0, conjunct, evaluator, scratch) {
                    self.keep(|_, _| false);
                }
                Ok(())
            }
            Reads::Words(column_view) => {
                self.retain_by_word(column_view, conjunct, evaluator, scratch, go_on)
            }
            Reads::Anything => self.retain_each(conjunct, evaluator, scratch, go_on),
        }
    }

    /// Removes all rows, and returns true, if a conjunct compares a column with a value that no value
    /// of the column passes, by the range of its values. No column need be loaded then.
    pub fn leave_out(&mut self, conjuncts: &[Conjunct<'_>], view: View<'_>) -> bool {
        let is_left_out = conjuncts.iter().any(|conjunct| self.is_beyond(conjunct));
        if is_left_out {
            view.note(ExecutionPath::ZoneMap);
            self.keep(|_, _| false);
        }
        is_left_out
    }

    /// Returns whether no value of a column passes a conjunct, by the range of its values.
    fn is_beyond(&self, conjunct: &Conjunct<'_>) -> bool {
        let Some(Comparison { path, op, bound }) = conjunct.comparison else {
            return false;
        };
        let leaf = projected_cell(&self.cells, path).and_then(|cell| cell.leaf);
        match (leaf.and_then(|leaf| self.table.zone(leaf)), bound) {
            (Some(Zone::Numbers(least, greatest)), Bound::Number(limit)) => {
                is_outside((least, greatest), op, limit)
            }
            (Some(Zone::Moments(first, last)), Bound::Moment(limit)) => {
                is_outside((first, last), op, limit)
            }
            _ => false,
        }
    }

    /// Keeps the rows for which a conjunct is true that reads one column of texts: evaluates it
    /// once for each text.
    fn retain_by_word<'p: 'b>(
        &mut self,
        column_view: ColumnView<'b>,
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
        go_on: &mut dyn FnMut() -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        evaluator.view.note(ExecutionPath::PredicateWords);
        // A row without a word has an outcome of its own.
        let word = |row: u32| column_view.id(row);
        let mut known: HashMap<Option<u32>, bool> = HashMap::new();
        for (i, row) in (0..).zip(self.rows.rows().iter()) {
            if let Entry::Vacant(unknown) = known.entry(word(*row)) {
                go_on()?;
                unknown.insert(self.is_true(i, conjunct, evaluator, scratch));
            }
        }
        self.keep(|_, row| known.get(&word(row)) == Some(&true));
        Ok(())
    }

    /// Keeps the rows for which a conjunct is true, which is evaluated for each row.
    fn retain_each<'p: 'b>(
        &mut self,
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
        go_on: &mut dyn FnMut() -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        evaluator.view.note(ExecutionPath::PredicateRows);
        // `keep` changes the rows that `is_true` reads, so all outcomes are collected first.
        let mut flags = Vec::with_capacity(self.rows.len());
        for i in 0..self.rows.len() {
            go_on()?;
            flags.push(self.is_true(i, conjunct, evaluator, scratch));
        }
        self.keep(|i, _| flags.get(i).copied().unwrap_or(false));
        Ok(())
    }

    /// Splits the rows by the values of paths: rows of one part have the same values. `None` if a
    /// path is neither constant nor a column of texts, or if there would be many parts.
    pub fn split_by(&self, paths: &[usize]) -> Option<Vec<Block<'b>>> {
        // Keys may come from parent rows, which are not columns of this table.
        if matches!(self.over, ParentRows::Known { .. }) {
            return None;
        }
        let mut columns = Vec::with_capacity(paths.len());
        for path in paths {
            columns.extend(self.key_column(*path)?);
        }
        if columns.is_empty() {
            return Some(vec![self.with_rows(self.rows.clone())]);
        }
        let (mut keys, mut parts) = (Vec::<Vec<u32>>::new(), Vec::<Vec<u32>>::new());
        let (mut key, mut last) = (Vec::with_capacity(columns.len()), 0);
        for row in self.rows.rows().iter() {
            key.clear();
            for column in &columns {
                key.push(column.id(*row)?);
            }
            // Neighbours often have the same values.
            if keys.get(last) != Some(&key) {
                // A linear search is fast, because there are at most `PARTS` keys.
                last = match keys.iter().position(|known| *known == key) {
                    Some(number) => number,
                    None if parts.len() == PARTS => return None,
                    None => {
                        keys.push(key.clone());
                        parts.push(Vec::new());
                        parts.len() - 1
                    }
                };
            }
            parts.get_mut(last)?.push(*row);
        }
        let rows = parts.into_iter().map(Selection::Indices);
        Some(rows.map(|rows| self.with_rows(rows)).collect())
    }

    /// A block with other rows of the table.
    fn with_rows(&self, rows: Selection<'b>) -> Block<'b> {
        Block {
            table: self.table,
            number: self.number,
            cells: Rc::clone(&self.cells),
            rows,
            order: self.order,
            over: self.over.clone(),
        }
    }

    /// Returns the column of texts in which the values of a path are, none if the values are the
    /// same in all rows; `None` if they are anything else.
    fn key_column(&self, path: usize) -> Option<Option<ColumnView<'b>>> {
        let Some(item) = self.item_of(path) else {
            return (!self.over.has(path)).then_some(None);
        };
        if let ItemKind::Constant(..) = self.table.layout().item(item)?.kind {
            return Some(None);
        }
        let column = self.column_view(path)?;
        column.column().ids().is_some().then_some(Some(column))
    }

    /// Keeps the rows whose number compares so.
    fn compare(&mut self, numbers: Numbers<'_>, op: CompareOp, limit: f64) {
        match op {
            CompareOp::Eq => self.keep_passing(numbers, |v| v == limit),
            // In Rust, NaN differs from every number. In AQL, no comparison with it is true.
            CompareOp::Ne => self.keep_passing(numbers, |v| v != limit && !v.is_nan()),
            CompareOp::Lt => self.keep_passing(numbers, |v| v < limit),
            CompareOp::Le => self.keep_passing(numbers, |v| v <= limit),
            CompareOp::Gt => self.keep_passing(numbers, |v| v > limit),
            CompareOp::Ge => self.keep_passing(numbers, |v| v >= limit),
        }
    }

    /// Keeps the rows whose value passes a test.
    fn keep_passing(&mut self, numbers: Numbers<'_>, test: impl Fn(f64) -> bool) {
        match self.over {
            ParentRows::Known { .. } => self.keep(|_, row| numbers.at(row).is_some_and(&test)),
            _ => self.rows = self.rows.passing(numbers, test),
        }
    }

    /// Keeps rows by their number in the block and their fragment.
    pub fn keep(&mut self, mut wanted: impl FnMut(usize, u32) -> bool) {
        let mut rows =
            std::mem::replace(&mut self.rows, Selection::Indices(Vec::new())).into_rows();
        let mut of = if let ParentRows::Known { of, .. } = &mut self.over {
            Some(of)
        } else {
            None
        };
        let mut kept = 0;
        for i in 0..rows.len() {
            if rows.get(i).is_some_and(|row| wanted(i, *row)) {
                // Both lists swap the same places, and the rows that are kept stay in order.
                rows.swap(i, kept);
                of.iter_mut().for_each(|of| of.swap(i, kept));
                kept += 1;
            }
        }
        rows.truncate(kept);
        of.into_iter().for_each(|of| of.truncate(kept));
        self.rows = Selection::Indices(rows);
    }

    fn is_true<'p: 'b>(
        &self,
        i: usize,
        conjunct: &Conjunct<'p>,
        evaluator: ConditionEvaluator<'p, 'b>,
        scratch: &mut [Node],
    ) -> bool {
        self.fill(i, scratch);
        evaluator.truth(conjunct.condition, scratch) == Some(true)
    }

    /// Returns whether every row of the block is one of its table, has its place, its document and,
    /// for child rows, its parent row, and every cell has a column in rows so wide: what reads them
    /// relies on it.
    pub fn is_sound(&self, width: usize) -> bool {
        let (table, len) = (self.table, self.table.len());
        let lists = [table.docs(), table.places(), table.parent_places()]
            .iter()
            .all(|list| list.len() == len);
        let fits = |cells: &[ProjectedCell]| {
            cells
                .iter()
                .all(|projected_cell| projected_cell.column < width)
        };
        let over = match &self.over {
            ParentRows::Nothing | ParentRows::Unused => true,
            ParentRows::Known { parents, of } => {
                of.len() == self.rows.len()
                    && of
                        .iter()
                        .all(|(parent, _)| (*parent as usize) < parents.len())
                    && parents.iter().all(|parent| fits(&parent.cells))
            }
        };
        lists && over && fits(&self.cells) && self.rows.span().end as usize <= len
    }

    /// Writes the nodes of a row.
    pub fn fill(&self, i: usize, scratch: &mut [Node]) {
        // Cells of an earlier row must not remain.
        scratch.fill(Node::NONE);
        if let Some((parent, row)) = self.over.parent(i) {
            project_cells(
                scratch,
                &parent.cells,
                Fragment {
                    table: parent.number,
                    row,
                },
            );
        }
        if let Some(row) = self.rows.get(i) {
            project_cells(
                scratch,
                &self.cells,
                Fragment {
                    table: self.number,
                    row,
                },
            );
        }
    }

    /// Returns the position of a row: the place of the fragment that was looked for, then the order
    /// of the row within it.
    pub fn place(&self, view: View<'_>, i: usize) -> (u32, u64) {
        let (own, order) = (self.own_place(view, i), u64::from(self.order));
        match &self.over {
            ParentRows::Nothing => (own, order),
            ParentRows::Unused | ParentRows::Known { .. } => (
                self.entry(view, self.table.parent_places(), i),
                // Child rows are ordered by their own place first, then by row template.
                (u64::from(own) << 32) | order,
            ),
        }
    }

    /// The place of the fragment that has the cells of a row.
    pub fn own_place(&self, view: View<'_>, i: usize) -> u32 {
        self.entry(view, self.table.places(), i)
    }

    /// The document of a row.
    pub fn doc(&self, view: View<'_>, i: usize) -> u32 {
        self.entry(view, self.table.docs(), i)
    }

    /// Returns the entry for a row of a list with one entry for each row of the table. A row without
    /// one is a broken invariant, which ends the run.
    ///
    /// An empty list is a part of a segment that is absent: the run starts again once it is loaded.
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

    /// The item of a path in the fragments.
    fn item_of(&self, path: usize) -> Option<u32> {
        projected_cell(&self.cells, path).map(|projected_cell| projected_cell.item)
    }

    /// Returns whether each row has something at a path, of its own fragment.
    pub fn fills(&self, path: usize) -> bool {
        projected_cell(&self.cells, path).is_some()
    }

    /// Returns whether no row has anything at a path.
    pub fn lacks(&self, path: usize) -> bool {
        !self.fills(path) && !self.over.has(path)
    }

    /// The values of a path that ends in a leaf value of the fragments.
    fn column_view(&self, path: usize) -> Option<ColumnView<'b>> {
        self.table
            .column_view(projected_cell(&self.cells, path)?.leaf?)
    }

    /// The numbers of a path.
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

    /// The numbers of a path, if each is exactly the stored one: no whole number in the column is
    /// too long for a double.
    pub fn exact_numbers(&self, path: usize) -> Option<Numbers<'b>> {
        match self.column_view(path)?.column() {
            Column::Number(numbers) if numbers.has_long(WIDE) => None,
            _ => self.numbers(path),
        }
    }

    /// Returns whether this is a path to numbers of an integer type.
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

    /// Appends what the values of a path sort by among values of their kind, or [`NO_RANK`] for one
    /// of no kind; false, and nothing, where the column has no kind.
    pub fn add_ranks(&self, path: usize, ranks: &mut Vec<i64>) -> bool {
        let rows = self.rows.rows();
        let Some(column_view) = self.column_view(path) else {
            return false;
        };
        let rank = |rank: Option<i64>| rank.unwrap_or(NO_RANK);
        match (self.numbers(path), column_view.column()) {
            (Some(numbers), _) => {
                ranks.extend(rows.iter().map(|row| rank(numbers.at(*row).map(rank_of))))
            }
            (_, Column::Moment(_)) => {
                ranks.extend(rows.iter().map(|row| rank(column_view.begin(*row))))
            }
            _ => return false,
        }
        true
    }

    /// Returns whether this is a path whose values are numbers, false for one of date-times.
    pub fn is_of_numbers(&self, path: usize) -> bool {
        self.numbers(path).is_some()
    }

    fn reads(&self, conjunct: &Conjunct<'_>) -> Reads<'b> {
        let Some(paths) = conjunct.paths.as_ref() else {
            return Reads::Anything;
        };
        let mut found = Reads::Nothing;
        for path in paths {
            let Some(item) = self.item_of(*path) else {
                if self.over.has(*path) {
                    return Reads::Anything;
                }
                continue;
            };
            found = match (
                self.table.layout().item(item).map(|i| i.kind),
                self.column_view(*path),
                found,
            ) {
                (Some(ItemKind::Constant(..)), _, found) => found,
                (_, Some(column_view), found) => match (column_view.column().ids(), found) {
                    (Some(_), Reads::Nothing) => Reads::Words(column_view),
                    (Some(_), Reads::Words(other))
                        // Two paths to one column still have one text for each row.
                        if std::ptr::eq(column_view.column(), other.column()) =>
                    {
                        Reads::Words(other)
                    }
                    _ => return Reads::Anything,
                },
                _ => return Reads::Anything,
            };
        }
        found
    }
}

/// The rank of a value that cannot be ranked.
pub(super) const NO_RANK: i64 = i64::MIN;

/// Returns the projected cell of a column.
pub(super) fn projected_cell(cells: &[ProjectedCell], path: usize) -> Option<&ProjectedCell> {
    cells
        .iter()
        .find(|projected_cell| projected_cell.column == path)
}

/// A whole number in the order of numbers, in which -0 is 0.
pub(super) fn rank_of(number: f64) -> i64 {
    // Adding 0.0 turns -0.0 into 0.0. The bits of negative numbers ascend as the numbers descend,
    // so all bits but the sign are flipped.
    let bits = (number + 0.0).to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

impl ParentRows {
    /// Returns the parent cells of a row of the block and the parent row.
    fn parent(&self, i: usize) -> Option<(&ParentCells, u32)> {
        let ParentRows::Known { parents, of } = self else {
            return None;
        };
        let (parent, row) = *of.get(i)?;
        Some((parents.get(parent as usize)?, row))
    }

    /// Returns whether the parent rows fill a column.
    pub fn has(&self, path: usize) -> bool {
        matches!(self, ParentRows::Known { parents, .. } if parents.iter().any(|parent| projected_cell(&parent.cells, path).is_some()))
    }
}

/// Writes the cells of a fragment into a row.
pub(super) fn project_cells(row: &mut [Node], cells: &[ProjectedCell], fragment: Fragment) {
    for projected_cell in cells {
        if let Some(cell) = row.get_mut(projected_cell.column) {
            *cell = Node {
                fragment,
                item: projected_cell.item,
            };
        }
    }
}

/// Returns whether no value of a range passes a comparison. A value that equals an end of the range
/// is never left out: two date-times with the same beginning may differ.
fn is_outside<T: PartialOrd>((least, greatest): (T, T), op: CompareOp, limit: T) -> bool {
    match op {
        CompareOp::Lt | CompareOp::Le => least > limit,
        CompareOp::Gt | CompareOp::Ge => greatest < limit,
        CompareOp::Eq => least > limit || greatest < limit,
        CompareOp::Ne => false,
    }
}
