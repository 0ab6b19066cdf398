//! Blocks: rows of one row template, tested and folded column by column.

use super::anchors::Conjunct;
use super::condition::Judge;
use super::node::Node;
use super::value::holds;
use crate::aql::facts::Cells;
use crate::aql::query::{CompareOp, Condition, Expr, Literal};
use crate::document::{Column, Fragment, ItemKind, Table};
use hashbrown::HashMap;
use std::rc::Rc;

/// Rows of which each has the same cells, in a fragment of its own.
pub(super) struct Block<'b> {
    /// The table of the fragments, and its number.
    pub table: &'b Table,
    pub number: u32,
    pub cells: Cells,
    /// The fragments.
    pub rows: Vec<u32>,
    /// Of the template's rows the how manieth.
    pub order: u32,
    /// For parts of a run: what has them.
    pub over: Option<Over<'b>>,
}

/// The fragments that have the parts of a block.
pub(super) struct Over<'b> {
    /// What they have in common, by number.
    pub wholes: Rc<[Whole<'b>]>,
    /// For each row of the block: the number of what is common, and the row in its table.
    pub of: Vec<(u32, u32)>,
}

/// A table with parts of its fragments elsewhere.
pub(super) struct Whole<'b> {
    pub table: &'b Table,
    pub number: u32,
    pub cells: Cells,
}

/// What of a block a conjunct depends on.
enum Reads<'b> {
    /// Nothing that differs between rows.
    Nothing,
    /// One column of words.
    Words(&'b [u32]),
    /// Anything.
    Anything,
}

impl<'b> Block<'b> {
    /// Keeps the rows for which a conjunct is true.
    pub fn retain<'p: 'b>(&mut self, conjunct: &Conjunct<'p>, judge: Judge<'p, 'b>, scratch: &mut [Node]) {
        if let Some((values, op, limit)) = self.number_test(conjunct.condition) {
            let passes = |row: u32| values.get(row as usize).is_some_and(|v| v.partial_cmp(&limit).is_some_and(|o| holds(op, o)));
            return self.keep(|_, row| passes(row));
        }
        match self.reads(conjunct) {
            Reads::Nothing => {
                if self.rows.is_empty() || !self.is_true(0, conjunct, judge, scratch) {
                    self.rows.clear();
                }
            }
            Reads::Words(ids) => {
                let mut known: HashMap<u32, bool> = HashMap::new();
                let flags: Vec<bool> = (0..self.rows.len())
                    .map(|i| {
                        let word = self.rows.get(i).and_then(|row| ids.get(*row as usize)).map_or(0, |id| *id);
                        *known.entry(word).or_insert_with(|| self.is_true(i, conjunct, judge, scratch))
                    })
                    .collect();
                self.keep(|i, _| flags.get(i).copied().unwrap_or(false));
            }
            Reads::Anything => {
                let flags: Vec<bool> = (0..self.rows.len()).map(|i| self.is_true(i, conjunct, judge, scratch)).collect();
                self.keep(|i, _| flags.get(i).copied().unwrap_or(false));
            }
        }
    }

    /// Keeps rows by their number in the block and their fragment.
    pub fn keep(&mut self, mut wanted: impl FnMut(usize, u32) -> bool) {
        let mut i = 0;
        let mut next = |row: &u32| {
            i += 1;
            wanted(i - 1, *row)
        };
        match &mut self.over {
            None => self.rows.retain(next),
            Some(over) => {
                let kept: Vec<bool> = self.rows.iter().map(&mut next).collect();
                let mut of_row = kept.iter();
                self.rows.retain(|_| of_row.next() == Some(&true));
                let mut of_whole = kept.iter();
                over.of.retain(|_| of_whole.next() == Some(&true));
            }
        }
    }

    fn is_true<'p: 'b>(&self, i: usize, conjunct: &Conjunct<'p>, judge: Judge<'p, 'b>, scratch: &mut [Node]) -> bool {
        self.fill(i, scratch);
        judge.truth(conjunct.condition, scratch, &mut conjunct.exists.clone()) == Some(true)
    }

    /// Writes the nodes of a row.
    pub fn fill(&self, i: usize, scratch: &mut [Node]) {
        scratch.fill(Node::NONE);
        if let Some((whole, (_, row))) = self.over.as_ref().and_then(|over| over.whole(i)) {
            set_cells(scratch, &whole.cells, Fragment { table: whole.number, row });
        }
        if let Some(row) = self.rows.get(i) {
            set_cells(scratch, &self.cells, Fragment { table: self.number, row: *row });
        }
    }

    /// Where a row stands: the place of the fragment that was looked for, then the order of the row within it.
    pub fn place(&self, i: usize) -> (u32, u64) {
        let row = self.rows.get(i).map_or(0, |row| *row as usize);
        let own = self.table.places().get(row).copied().unwrap_or(0);
        match self.over.as_ref().and_then(|over| over.whole(i)) {
            Some((whole, (_, row))) => (whole.table.places().get(row as usize).copied().unwrap_or(0), (u64::from(own) << 32) | u64::from(self.order)),
            None => (own, u64::from(self.order)),
        }
    }

    /// The document of a row.
    pub fn doc(&self, i: usize) -> u32 {
        self.rows.get(i).and_then(|row| self.table.docs().get(*row as usize)).copied().unwrap_or(u32::MAX)
    }

    fn item_of(&self, path: usize) -> Option<u32> {
        self.cells.iter().find(|(column, _)| *column == path).map(|(_, item)| *item)
    }

    /// The column of a path that ends in a slot of the fragments.
    pub fn column(&self, path: usize) -> Option<&'b Column> {
        match self.table.shape().item(self.item_of(path)?)?.kind {
            ItemKind::Slot(_, slot) => self.table.column(slot),
            _ => None,
        }
    }

    /// The numbers of a path, one a fragment.
    pub fn numbers(&self, path: usize) -> Option<&'b [f64]> {
        match self.column(path)? {
            Column::Number(numbers) => Some(numbers.values()),
            _ => None,
        }
    }

    /// Appends what the values of a path sort by among values of their kind; false, and nothing, where a row has none such.
    pub fn add_ranks(&self, path: usize, ranks: &mut Vec<i64>) -> bool {
        let start = ranks.len();
        match self.column(path) {
            Some(Column::Number(numbers)) => ranks.extend(self.rows.iter().map_while(|row| numbers.values().get(*row as usize)).map(|n| rank_of(*n))),
            Some(column) => ranks.extend(self.rows.iter().map_while(|row| column.point(*row))),
            None => return false,
        }
        let all = ranks.len() - start == self.rows.len();
        if !all {
            ranks.truncate(start);
        }
        all
    }

    /// True for a path whose values are numbers, false for one of date-times.
    pub fn is_of_numbers(&self, path: usize) -> bool {
        matches!(self.column(path), Some(Column::Number(_)))
    }

    /// A comparison of numbers with a number: the column, and what its values are compared with.
    fn number_test(&self, condition: &Condition) -> Option<(&'b [f64], CompareOp, f64)> {
        let Condition::Compare(Expr::Path(path), op, Expr::Literal(Literal::Number(token))) = condition else { return None };
        Some((self.numbers(*path)?, *op, token.parse().ok()?))
    }

    fn reads(&self, conjunct: &Conjunct<'_>) -> Reads<'b> {
        let Some(paths) = conjunct.paths.as_ref() else { return Reads::Anything };
        let mut found = Reads::Nothing;
        for path in paths {
            let Some(item) = self.item_of(*path) else {
                if self.has_whole(*path) {
                    return Reads::Anything;
                }
                continue;
            };
            found = match (self.table.shape().item(item).map(|i| i.kind), self.column(*path), found) {
                (Some(ItemKind::Constant(..)), _, found) => found,
                (_, Some(column), found) => match (column.ids(), found) {
                    (Some(ids), Reads::Nothing) => Reads::Words(ids),
                    (Some(ids), Reads::Words(others)) if std::ptr::eq(ids, others) => Reads::Words(others),
                    _ => return Reads::Anything,
                },
                _ => return Reads::Anything,
            };
        }
        found
    }

    fn has_whole(&self, path: usize) -> bool {
        self.over.as_ref().is_some_and(|over| over.wholes.iter().any(|w| w.cells.iter().any(|(column, _)| *column == path)))
    }
}

/// A whole number in the order of numbers, in which -0 is 0.
pub(super) fn rank_of(number: f64) -> i64 {
    let bits = (number + 0.0).to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

impl<'b> Over<'b> {
    fn whole(&self, i: usize) -> Option<(&Whole<'b>, (u32, u32))> {
        let of = *self.of.get(i)?;
        Some((self.wholes.get(of.0 as usize)?, of))
    }
}

/// Writes the cells of a fragment into a row.
pub(super) fn set_cells(row: &mut [Node], cells: &[(usize, u32)], fragment: Fragment) {
    for (column, item) in cells {
        if let Some(cell) = row.get_mut(*column) {
            *cell = Node { fragment, item: *item };
        }
    }
}
