//! Blocks: rows of one row template, tested, folded and shown column by column.

use super::anchors::Conjunct;
use super::condition::Judge;
use super::node::{Node, View};
use super::picked::{Numbers, Picked};
use super::strategy::ExecutionPath;
use super::tally::EXACT;
use super::templates::Broken;
use crate::answer::facts::{Cells, Filled};
use crate::answer::query::CompareOp;
use crate::document::{Column, Fragment, ItemKind, Lane, Table};
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
    pub rows: Picked<'b>,
    /// Of the template's rows the how manieth.
    pub order: u32,
    /// For parts of a run: what has them.
    pub over: Over,
}

/// The fragments that have the parts of a block.
#[derive(Clone)]
pub(super) enum Over {
    /// The fragments of the block are no parts.
    Nothing,
    /// What has them gives no cell.
    Unasked,
    /// What has them.
    Known {
        /// What they have in common, by number.
        wholes: Rc<[Whole]>,
        /// For each row of the block: the number of what is common, and the row in its table.
        of: Vec<(u32, u32)>,
    },
}

/// A table with parts of its fragments elsewhere.
pub(super) struct Whole {
    pub number: u32,
    pub cells: Cells,
}

/// What of a block a conjunct depends on.
enum Reads<'b> {
    /// Nothing that differs between rows.
    Nothing,
    /// One slot of texts.
    Words(Lane<'b>),
    /// Anything.
    Anything,
}

impl<'b> Block<'b> {
    /// Keeps the rows for which a conjunct is true; `go_on` is asked before each that is judged by itself.
    pub fn retain<'p: 'b>(
        &mut self,
        conjunct: &Conjunct<'p>,
        judge: Judge<'p, 'b>,
        scratch: &mut [Node],
        go_on: &mut dyn FnMut() -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        if let Some((path, op, limit)) = conjunct.number
            && let Some(numbers) = self.numbers(path)
        {
            judge.view.note(ExecutionPath::CompareColumn);
            self.compare(numbers, op, limit);
            return Ok(());
        }
        match self.reads(conjunct) {
            Reads::Nothing => {
                judge.view.note(ExecutionPath::PredicateOnce);
                if self.rows.is_empty() || !self.is_true(0, conjunct, judge, scratch) {
                    self.keep(|_, _| false);
                }
            }
            Reads::Words(lane) => {
                judge.view.note(ExecutionPath::PredicateWords);
                let word = |row: u32| lane.id(row).unwrap_or_default();
                let mut known: HashMap<u32, bool> = HashMap::new();
                for (i, row) in (0..).zip(self.rows.rows().iter()) {
                    if let Entry::Vacant(unknown) = known.entry(word(*row)) {
                        go_on()?;
                        unknown.insert(self.is_true(i, conjunct, judge, scratch));
                    }
                }
                self.keep(|_, row| known.get(&word(row)) == Some(&true));
            }
            Reads::Anything => {
                judge.view.note(ExecutionPath::PredicateRows);
                let mut flags = Vec::with_capacity(self.rows.len());
                for i in 0..self.rows.len() {
                    go_on()?;
                    flags.push(self.is_true(i, conjunct, judge, scratch));
                }
                self.keep(|i, _| flags.get(i).copied().unwrap_or(false));
            }
        }
        Ok(())
    }

    /// Keeps the rows whose number compares so.
    fn compare(&mut self, numbers: Numbers<'_>, op: CompareOp, limit: f64) {
        match op {
            CompareOp::Eq => self.keep_passing(numbers, |v| v == limit),
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
            Over::Known { .. } => self.keep(|_, row| numbers.at(row).is_some_and(&test)),
            _ => self.rows = self.rows.passing(numbers, test),
        }
    }

    /// Keeps rows by their number in the block and their fragment.
    pub fn keep(&mut self, mut wanted: impl FnMut(usize, u32) -> bool) {
        let mut rows = std::mem::replace(&mut self.rows, Picked::These(Vec::new())).into_rows();
        let mut of = if let Over::Known { of, .. } = &mut self.over { Some(of) } else { None };
        let mut kept = 0;
        for i in 0..rows.len() {
            if rows.get(i).is_some_and(|row| wanted(i, *row)) {
                rows.swap(i, kept);
                of.iter_mut().for_each(|of| of.swap(i, kept));
                kept += 1;
            }
        }
        rows.truncate(kept);
        of.into_iter().for_each(|of| of.truncate(kept));
        self.rows = Picked::These(rows);
    }

    fn is_true<'p: 'b>(&self, i: usize, conjunct: &Conjunct<'p>, judge: Judge<'p, 'b>, scratch: &mut [Node]) -> bool {
        self.fill(i, scratch);
        judge.truth(conjunct.condition, scratch, &mut conjunct.exists.clone()) == Some(true)
    }

    /// True where every row of the block is one of its table, has its place, its document and, for child rows, its parent row, and every cell
    /// has a column in rows so wide: what reads them relies on it.
    pub fn is_sound(&self, width: usize) -> bool {
        let (table, len) = (self.table, self.table.len());
        let lists = [table.docs(), table.places(), table.wholes()].iter().all(|list| list.len() == len);
        let fits = |cells: &[Filled]| cells.iter().all(|filled| filled.column < width);
        let over = match &self.over {
            Over::Nothing | Over::Unasked => true,
            Over::Known { wholes, of } => {
                of.len() == self.rows.len()
                    && of.iter().all(|(whole, _)| (*whole as usize) < wholes.len())
                    && wholes.iter().all(|whole| fits(&whole.cells))
            }
        };
        lists && over && fits(&self.cells) && self.rows.span().end as usize <= len
    }

    /// Writes the nodes of a row.
    pub fn fill(&self, i: usize, scratch: &mut [Node]) {
        scratch.fill(Node::NONE);
        if let Some((whole, row)) = self.over.whole(i) {
            set_cells(scratch, &whole.cells, Fragment { table: whole.number, row });
        }
        if let Some(row) = self.rows.get(i) {
            set_cells(scratch, &self.cells, Fragment { table: self.number, row });
        }
    }

    /// Where a row stands: the place of the fragment that was looked for, then the order of the row within it.
    pub fn place(&self, i: usize) -> (u32, u64) {
        let (own, order) = (self.own_place(i), u64::from(self.order));
        match &self.over {
            Over::Nothing => (own, order),
            Over::Unasked | Over::Known { .. } => (self.told(self.table.wholes(), i).unwrap_or(0), (u64::from(own) << 32) | order),
        }
    }

    /// The place of the fragment that has the cells of a row.
    pub fn own_place(&self, i: usize) -> u32 {
        self.told(self.table.places(), i).unwrap_or(0)
    }

    /// The document of a row.
    pub fn doc(&self, i: usize) -> u32 {
        self.told(self.table.docs(), i).unwrap_or(u32::MAX)
    }

    /// What a list with an entry for each fragment of the table tells of a row.
    fn told(&self, list: &[u32], i: usize) -> Option<u32> {
        list.get(self.rows.get(i)? as usize).copied()
    }

    /// The item of a path in the fragments.
    fn item_of(&self, path: usize) -> Option<u32> {
        filled(&self.cells, path).map(|filled| filled.item)
    }

    /// True where each row has something at a path, of its own fragment.
    pub fn fills(&self, path: usize) -> bool {
        filled(&self.cells, path).is_some()
    }

    /// True where no row has anything at a path.
    pub fn lacks(&self, path: usize) -> bool {
        !self.fills(path) && !self.over.has(path)
    }

    /// The values of a path that ends in a slot of the fragments.
    fn lane(&self, path: usize) -> Option<Lane<'b>> {
        self.table.lane(filled(&self.cells, path)?.slot?)
    }

    /// The numbers of a path.
    pub fn numbers(&self, path: usize) -> Option<Numbers<'b>> {
        let lane = self.lane(path)?;
        match lane.column() {
            Column::Number(numbers) => Some(Numbers { values: numbers.values(), lane }),
            _ => None,
        }
    }

    /// The numbers of a path, where each is exactly what was stored: no whole number in the column is too long for a double.
    pub fn exact_numbers(&self, path: usize) -> Option<Numbers<'b>> {
        match self.lane(path)?.column() {
            Column::Number(numbers) if numbers.has_long(EXACT) => None,
            _ => self.numbers(path),
        }
    }

    /// True for a path to numbers of an integer type.
    pub fn is_integer(&self, view: View<'_>, path: usize) -> bool {
        let node = self.item_of(path).zip(self.rows.get(0)).map(|(item, row)| Node { fragment: Fragment { table: self.number, row }, item });
        node.is_some_and(|node| view.is_integer(node))
    }

    /// Appends what the values of a path sort by among values of their kind, or [`NO_RANK`] for one of no kind; false, and nothing,
    /// where the column has no kind.
    pub fn add_ranks(&self, path: usize, ranks: &mut Vec<i64>) -> bool {
        let rows = self.rows.rows();
        let Some(lane) = self.lane(path) else { return false };
        let rank = |rank: Option<i64>| rank.unwrap_or(NO_RANK);
        match (self.numbers(path), lane.column()) {
            (Some(numbers), _) => ranks.extend(rows.iter().map(|row| rank(numbers.at(*row).map(rank_of)))),
            (_, Column::Moment(_)) => ranks.extend(rows.iter().map(|row| rank(lane.begin(*row)))),
            _ => return false,
        }
        true
    }

    /// True for a path whose values are numbers, false for one of date-times.
    pub fn is_of_numbers(&self, path: usize) -> bool {
        self.numbers(path).is_some()
    }

    fn reads(&self, conjunct: &Conjunct<'_>) -> Reads<'b> {
        let Some(paths) = conjunct.paths.as_ref() else { return Reads::Anything };
        let mut found = Reads::Nothing;
        for path in paths {
            let Some(item) = self.item_of(*path) else {
                if self.over.has(*path) {
                    return Reads::Anything;
                }
                continue;
            };
            found = match (self.table.shape().item(item).map(|i| i.kind), self.lane(*path), found) {
                (Some(ItemKind::Constant(..)), _, found) => found,
                (_, Some(lane), found) => match (lane.column().ids(), found) {
                    (Some(_), Reads::Nothing) => Reads::Words(lane),
                    (Some(_), Reads::Words(other)) if std::ptr::eq(lane.column(), other.column()) => Reads::Words(other),
                    _ => return Reads::Anything,
                },
                _ => return Reads::Anything,
            };
        }
        found
    }
}

/// Says that a value has no rank among others.
pub(super) const NO_RANK: i64 = i64::MIN;

/// What fills a column.
pub(super) fn filled(cells: &[Filled], path: usize) -> Option<&Filled> {
    cells.iter().find(|filled| filled.column == path)
}

/// A whole number in the order of numbers, in which -0 is 0.
pub(super) fn rank_of(number: f64) -> i64 {
    let bits = (number + 0.0).to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

impl Over {
    /// What has the part of a row, and its row there.
    fn whole(&self, i: usize) -> Option<(&Whole, u32)> {
        let Over::Known { wholes, of } = self else { return None };
        let (whole, row) = *of.get(i)?;
        Some((wholes.get(whole as usize)?, row))
    }

    /// True when what has the parts fills a column.
    pub fn has(&self, path: usize) -> bool {
        matches!(self, Over::Known { wholes, .. } if wholes.iter().any(|whole| filled(&whole.cells, path).is_some()))
    }
}

/// Writes the cells of a fragment into a row.
pub(super) fn set_cells(row: &mut [Node], cells: &[Filled], fragment: Fragment) {
    for filled in cells {
        if let Some(cell) = row.get_mut(filled.column) {
            *cell = Node { fragment, item: filled.item };
        }
    }
}
