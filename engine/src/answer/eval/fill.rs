//! Cells straight from columns: blocks of rows that need no more than to be shown, with what stands above them.

use super::block::{Block, Over, filled};
use super::expand::Expander;
use super::node::{Node, View};
use super::output::{Output, cell_of, cell_of_literal, hold_node};
use super::scope::Scope;
use super::templates::ByTemplate;
use crate::answer::facts::{Case, Cells};
use crate::answer::query::{ClassExpr, ColumnValue, Expr};
use crate::answer::result::{Held, Sheet};
use crate::answer::trie::Trie;
use crate::document::{Dictionary, Fragment, ItemKind, Lane, Table};
use crate::order;
use crate::rm::class::Cls;
use std::rc::Rc;

/// Fills rows of a sheet.
pub(super) struct Filling<'o, 'b> {
    expander: Expander<'b, 'b>,
    sheet: &'o mut Sheet,
    ready: &'o mut Vec<u32>,
    /// Place and number of each row, to be sorted.
    marks: Vec<u64>,
    /// What every row has.
    constants: Vec<(usize, Held)>,
    /// The columns of the anchor: which of SELECT, and the path.
    own: Vec<(usize, usize)>,
    above: Vec<Above<'b>>,
}

/// A variable above the anchor.
struct Above<'b> {
    class: Cls,
    paths: Vec<(usize, usize)>,
    trie: &'b Trie,
    /// Where its cells come from, by table and case.
    known: Vec<Known<'b>>,
    /// The one that was asked last.
    last: usize,
    /// Room for the fragments of some rows.
    fragments: Vec<Option<Fragment>>,
}

/// So many rows are filled together.
const TOGETHER: usize = 256;

/// Where cells come from in the fragments of a table that are of a case.
struct Known<'b> {
    number: u32,
    table: &'b Table,
    case: Rc<Case>,
    sources: Vec<(usize, Source<'b>)>,
}

/// Where the cells of a column come from, for all fragments of a table.
#[derive(Clone, Copy)]
enum Source<'b> {
    Slot(Lane<'b>),
    Same(Held),
    /// An object or list at this item.
    Tree(u32),
}

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// The filling for a query that shows paths of one anchor, and of variables above it that give one row each.
    pub fn filling<'o>(&self, anchor: &'p ClassExpr, scope: &Scope<'b>, output: &'o mut Output) -> Option<Filling<'o, 'b>> {
        let is_simple = output.is_plain(self.plan) && matches!(scope, Scope::Flagged(..)) && !anchor.class.may_contain(anchor.class);
        if !is_simple {
            return None;
        }
        let (sheet, ready) = output.sheet();
        let mut filling = Filling {
            expander: self.expander(self.view()),
            sheet,
            ready,
            marks: Vec::new(),
            constants: Vec::new(),
            own: Vec::new(),
            above: Vec::new(),
        };
        for trie in self.plan.tries.iter().filter(|trie| trie.variable != anchor.variable) {
            let expr = self.anchors.above.iter().find(|expr| expr.variable == trie.variable)?;
            let sorted = self.sorted_tables(expr, scope, &mut 0).ok()?;
            if !sorted.iter().flat_map(|sorted| &sorted.cases).all(|(case, _)| case.rows().is_some_and(|rows| rows.len() == 1)) {
                return None;
            }
            let paths = self.shown(trie.variable);
            filling.above.push(Above { class: expr.class, paths, trie, known: Vec::new(), last: 0, fragments: Vec::new() });
        }
        filling.own = self.shown(anchor.variable);
        for (at, column) in self.plan.query.select.iter().enumerate() {
            match &column.value {
                ColumnValue::Expr(Expr::Path(_)) => {}
                ColumnValue::Expr(Expr::Literal(literal)) => filling.constants.push((at, filling.sheet.hold(&cell_of_literal(literal)))),
                _ => return None,
            }
        }
        Some(filling)
    }

    /// The columns of SELECT that show a path of a variable.
    fn shown(&self, variable: usize) -> Vec<(usize, usize)> {
        let is_own = |path: usize| self.plan.query.paths.get(path).is_some_and(|p| p.variable == variable);
        let path_of = |value: &ColumnValue| if let ColumnValue::Expr(Expr::Path(path)) = value { Some(*path) } else { None };
        let columns = self.plan.query.select.iter().enumerate();
        columns.filter_map(|(at, column)| Some((at, path_of(&column.value).filter(|path| is_own(*path))?))).collect()
    }
}

impl<'b> Filling<'_, 'b> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.sheet.len()
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        self.sheet.bytes() + self.marks.len() * size_of::<u64>()
    }

    /// Takes the rows of a block.
    pub fn take(&mut self, block: &Block<'b>, scratch: &mut [Node]) {
        if let Over::Known { .. } = block.over {
            for i in 0..block.rows.len() {
                block.fill(i, scratch);
                self.take_row(scratch, block.own_place(i), block.doc(i));
            }
            return;
        }
        let Filling { expander, sheet, marks, constants, own, above, .. } = self;
        let (first, width) = (sheet.len() as u64, expander.plan.query.select.len());
        let (cells, texts) = sheet.extend(block.rows.len());
        let sources: Vec<(usize, Source<'b>)> =
            own.iter().map(|(at, path)| (*at, Source::of(expander.view, block.number, &block.cells, *path, texts))).collect();
        let at = |values: &[u32], row: u32| values.get(row as usize).copied().unwrap_or(u32::MAX);
        let rows = block.rows.rows();
        for (rows, cells) in rows.chunks(TOGETHER).zip(cells.chunks_mut(TOGETHER * width)) {
            for (row, cells) in rows.iter().zip(cells.chunks_exact_mut(width)) {
                let fragment = Fragment { table: block.number, row: *row };
                constants.iter().for_each(|(at, held)| set(cells, *at, *held));
                sources.iter().for_each(|(at, source)| set(cells, *at, source.held(expander.view, fragment, texts)));
            }
            above.iter_mut().for_each(|of| of.fill(*expander, rows.iter().map(|row| at(block.table.docs(), *row)), cells, texts));
        }
        marks.extend((first..).zip(rows.iter()).map(|(number, row)| u64::from(at(block.table.places(), *row)) << 32 | number));
    }

    /// Takes the row of a fragment that was walked.
    pub fn take_row(&mut self, row: &[Node], place: u32, doc: u32) {
        let Filling { expander, sheet, marks, constants, own, above, .. } = self;
        marks.push(u64::from(place) << 32 | sheet.len() as u64);
        let (cells, texts) = sheet.extend(1);
        constants.iter().for_each(|(at, held)| set(cells, *at, *held));
        for (at, path) in own {
            let node = row.get(*path).copied().unwrap_or(Node::NONE);
            set(cells, *at, hold_node(expander.view, node, texts, &mut None));
        }
        above.iter_mut().for_each(|of| of.fill(*expander, std::iter::once(doc), cells, texts));
    }

    /// Puts the rows into document order.
    pub fn finish(mut self) {
        order::by_upper_half(&mut self.marks);
        self.ready.extend(self.marks.iter().map(|mark| *mark as u32));
    }
}

impl<'b> Above<'b> {
    /// Fills the cells of rows of these documents. All fragments are looked up before the first is read: memory answers many at once.
    fn fill(&mut self, expander: Expander<'_, 'b>, docs: impl Iterator<Item = u32>, cells: &mut [Held], texts: &mut Dictionary) {
        let (batch, width) = (expander.view.batch, expander.plan.query.select.len());
        let mut fragments = std::mem::take(&mut self.fragments);
        fragments.clear();
        fragments.extend(docs.map(|doc| batch.bound(self.class, doc)));
        for (fragment, cells) in fragments.iter().zip(cells.chunks_exact_mut(width)) {
            let Some(fragment) = *fragment else { continue };
            if !self.known.get(self.last).is_some_and(|known| known.is_of(fragment)) {
                let known = self.known.iter().position(|known| known.is_of(fragment));
                self.last = known.unwrap_or_else(|| self.learn(expander, fragment, texts));
            }
            let sources = self.known.get(self.last).into_iter().flat_map(|known| &known.sources);
            sources.for_each(|(at, source)| set(cells, *at, source.held(expander.view, fragment, texts)));
        }
        self.fragments = fragments;
    }

    fn learn(&mut self, expander: Expander<'_, 'b>, fragment: Fragment, texts: &mut Dictionary) -> usize {
        let (batch, number) = (expander.view.batch, fragment.table);
        let found = batch.table(number).zip(expander.expansion(self.trie, Node::root(fragment)));
        self.known.extend(found.map(|(table, case)| {
            let template = case.rows().and_then(<[_]>::first);
            let sources = self.paths.iter().flat_map(|(at, path)| Some((*at, Source::of(expander.view, number, template?, *path, texts))));
            Known { number, table, sources: sources.collect(), case }
        }));
        self.known.len().saturating_sub(1)
    }
}

impl Known<'_> {
    fn is_of(&self, fragment: Fragment) -> bool {
        self.number == fragment.table && self.case.is_of(self.table, fragment.row)
    }
}

impl<'b> Source<'b> {
    fn of(view: View<'b>, number: u32, template: &Cells, path: usize, texts: &mut Dictionary) -> Source<'b> {
        let batch = view.batch;
        let found = filled(template, path).and_then(|filled| Some((batch.table(number)?, filled.item, filled.slot)));
        let Some((table, item, slot)) = found else { return Source::Same(Held::Null) };
        match slot.map(|slot| table.lane(slot)) {
            Some(Some(lane)) => return Source::Slot(lane),
            Some(None) => view.note_broken("a slot has no column"),
            None => {}
        }
        match table.shape().item(item).map(|i| i.kind) {
            Some(ItemKind::Constant(..)) => {
                let node = Node { fragment: Fragment { table: number, row: 0 }, item };
                Source::Same(Held::of(&cell_of(View::new(batch), node, &mut String::new()), texts))
            }
            _ => Source::Tree(item),
        }
    }

    fn held(self, view: View<'b>, fragment: Fragment, texts: &mut Dictionary) -> Held {
        match self {
            Source::Slot(lane) => Held::slot(lane, fragment.row, texts),
            Source::Same(held) => held,
            Source::Tree(item) => Held::of(&cell_of(view, Node { fragment, item }, &mut String::new()), texts),
        }
    }
}

fn set(cells: &mut [Held], at: usize, held: Held) {
    if let Some(cell) = cells.get_mut(at) {
        *cell = held;
    }
}
