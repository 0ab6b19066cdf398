//! Projection: copies the cells of SELECT from columns to the result buffer, for queries that need
//! no further processing of rows.

use super::block::{Block, ParentRows, projected_cell};
use super::cells::{cell_of, cell_of_literal, node_cell_ref};
use super::expand::Expander;
use super::late_objects::LateObjects;
use super::node::{Node, View};
use super::output::{Output, PlainRows};
use super::scope::Scope;
use super::templates::{Abort, RowTemplateEvaluator};
use super::work::of_texts;
use crate::answer::plan_cache::{Cells, LayoutVariant};
use crate::answer::query::{ClassExpr, ColumnValue, Expr};
use crate::answer::result::{CellRef, ResultBuffer};
use crate::answer::trie::Trie;
use crate::document::{ColumnView, Dictionary, Fragment, ItemKind, Table};
use aqlite_rm::class::Cls;
use hashbrown::{HashMap, HashSet};
use std::rc::Rc;

/// A projection of one anchor and the variables above it to the columns of SELECT.
pub(super) struct Projection<'o, 'b> {
    expander: Expander<'b, 'b>,
    result_buffer: &'o mut ResultBuffer,
    plain_rows: &'o mut PlainRows,
    /// The objects that are written last; `None` if DISTINCT needs the cells of all rows.
    late: Option<LateObjects>,
    /// The sort key of each row: its pre-order number in the upper 32 bits, its number in the result
    /// buffer in the lower ones.
    sort_keys: Vec<u64>,
    /// The literals.
    constants: Vec<ConstantColumn>,
    /// The paths of the anchor.
    own: Vec<PathColumn>,
    /// The paths of variables above the anchor.
    above: Vec<AboveColumns<'b>>,
    repeated: Vec<RepeatedColumn>,
}

/// A column of SELECT with the same cell in every row.
struct ConstantColumn {
    /// The index of the column in SELECT.
    column: usize,
    cell: CellRef,
}

/// A column of SELECT with a path.
struct PathColumn {
    /// The index of the column in SELECT.
    column: usize,
    /// The index of the path in the query.
    path: usize,
}

/// A column of SELECT that repeats the path of an earlier one. Its cells are copied, so that a long
/// text is read once.
struct RepeatedColumn {
    /// The index of the column in SELECT.
    column: usize,
    /// The index of the earlier column.
    earlier: usize,
}

/// A column of SELECT with the source of its cells, for the rows of one layout variant.
struct SourceColumn<'b> {
    /// The index of the column in SELECT.
    column: usize,
    source: CellSource<'b>,
}

/// The list to which a row adds the objects that are written last.
struct LateRow<'l> {
    objects: &'l mut LateObjects,
    /// The number of the row in the result buffer.
    row: u32,
}

/// The columns of SELECT with paths of a variable above the anchor.
struct AboveColumns<'b> {
    class: Cls,
    paths: Vec<PathColumn>,
    trie: &'b Trie,
    /// The cell sources for each table and layout variant.
    sources_by_variant: Vec<VariantSources<'b>>,
    /// The index of the cell sources that were used last.
    last: usize,
    /// A buffer for the fragments of some rows.
    fragments: Vec<Option<Fragment>>,
}

/// The number of rows that are projected together, so that their cells stay in the cache of the
/// processor.
const PROJECTED_ROWS: usize = 256;

/// The cell sources for the rows of one layout variant of a table.
struct VariantSources<'b> {
    number: u32,
    table: &'b Table,
    variant: Rc<LayoutVariant>,
    sources: Vec<SourceColumn<'b>>,
}

/// The source of the cells of one column of SELECT.
#[derive(Clone, Copy)]
enum CellSource<'b> {
    Leaf(ColumnView<'b>),
    Same(CellRef),
    /// The object or list at this item.
    Tree(u32),
}

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Returns the projection of a query that shows paths of one anchor, literals, and paths of
    /// variables above the anchor with one row each. `None` for any other query.
    pub fn projection<'o>(
        &self,
        anchor: &'p ClassExpr,
        scope: &Scope<'b>,
        output: &'o mut Output,
    ) -> Option<Projection<'o, 'b>> {
        let (plain_rows, result_cells) = output.plain_rows()?;
        if !matches!(scope, Scope::Flagged(..)) || anchor.class.may_contain(anchor.class) {
            return None;
        }
        let tries = self.plan.tries.iter();
        let above = tries
            .filter(|trie| trie.variable != anchor.variable)
            .map(|trie| self.above_columns(trie, scope))
            .collect::<Option<_>>()?;
        let late = plain_rows.window_of_next().map(LateObjects::new);
        let result_buffer = &mut result_cells.buffer;
        Some(Projection {
            late,
            expander: self.expander(self.view()),
            constants: self.constant_cells(result_buffer)?,
            result_buffer,
            plain_rows,
            sort_keys: Vec::new(),
            own: self.columns_of(anchor.variable),
            above,
            repeated: self.repeated(),
        })
    }

    /// Returns the columns of a variable above the anchor; `None` if it can have several rows in a
    /// document.
    fn above_columns(&self, trie: &'p Trie, scope: &Scope<'b>) -> Option<AboveColumns<'b>> {
        let mut above = self.anchors.above.iter();
        let expr = above.find(|expr| expr.variable == trie.variable)?;
        let rows = self.anchored_rows(expr, scope, &mut 0).ok()?;
        let mut variants = rows.iter().flat_map(|table| &table.variants);
        let has_one_row =
            variants.all(|(variant, _)| variant.rows().is_some_and(|rows| rows.len() == 1));
        has_one_row.then(|| AboveColumns {
            class: expr.class,
            paths: self.columns_of(trie.variable),
            trie,
            sources_by_variant: Vec::new(),
            last: 0,
            fragments: Vec::new(),
        })
    }

    /// Returns the cells of the literals of SELECT; `None` if SELECT has expressions other than
    /// paths and literals.
    fn constant_cells(&self, result_buffer: &mut ResultBuffer) -> Option<Vec<ConstantColumn>> {
        let mut constants = Vec::new();
        for (column, shown) in self.plan.query.select.iter().enumerate() {
            match &shown.value {
                ColumnValue::Expr(Expr::Path(_)) => {}
                ColumnValue::Expr(Expr::Literal(literal)) => {
                    let cell = result_buffer.store_cell(&cell_of_literal(literal));
                    constants.push(ConstantColumn { column, cell });
                }
                _ => return None,
            }
        }
        Some(constants)
    }

    /// Returns the columns of SELECT with a path of a variable, each path once.
    fn columns_of(&self, variable: usize) -> Vec<PathColumn> {
        let paths = &self.plan.query.paths;
        let is_own = |path: &usize| paths.get(*path).is_some_and(|p| p.variable == variable);
        let mut seen = HashSet::new();
        let columns = self.path_columns();
        columns
            .filter(|own| is_own(&own.path) && seen.insert(own.path))
            .collect()
    }

    /// Returns the columns of SELECT that repeat the path of an earlier column.
    fn repeated(&self) -> Vec<RepeatedColumn> {
        let mut first = HashMap::new();
        let columns = self.path_columns();
        columns
            .filter_map(|PathColumn { column, path }| {
                let earlier = *first.entry(path).or_insert(column);
                (earlier != column).then_some(RepeatedColumn { column, earlier })
            })
            .collect()
    }

    /// Returns the columns of SELECT that are paths.
    fn path_columns(&self) -> impl Iterator<Item = PathColumn> {
        let columns = self.plan.query.select.iter().enumerate();
        columns.filter_map(|(column, shown)| match shown.value {
            ColumnValue::Expr(Expr::Path(path)) => Some(PathColumn { column, path }),
            _ => None,
        })
    }
}

impl<'b> Projection<'_, 'b> {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.result_buffer.len()
    }

    /// Returns an estimate of the bytes held.
    pub fn bytes(&self) -> usize {
        let late = self.late.as_ref().map_or(0, LateObjects::bytes);
        self.result_buffer.bytes() + self.sort_keys.len() * size_of::<u64>() + late
    }

    /// Adds the rows of a block.
    pub fn take(&mut self, block: &Block<'b>, scratch: &mut [Node]) {
        // The cells come from two tables, so each row is projected singly.
        if let ParentRows::Known { .. } = block.parent_rows {
            let view = self.expander.view;
            for i in 0..block.rows.len() {
                block.fill(view, i, scratch);
                let (preorder, doc) = (block.own_preorder(view, i), block.doc(view, i));
                self.take_row(scratch, preorder, doc);
            }
        } else {
            self.take_columns(block);
        }
    }

    /// Adds the rows of a block whose cells are in columns of its table.
    fn take_columns(&mut self, block: &Block<'b>) {
        let (expander, first) = (self.expander, self.result_buffer.len() as u32);
        let width = expander.plan.query.select.len();
        let (cells, texts) = self.result_buffer.extend(block.rows.len());
        let (view, table) = (expander.view, block.number);
        let sources: Vec<SourceColumn<'b>> = self
            .own
            .iter()
            .map(|own| own.source(view, table, &block.cells, texts))
            .collect();
        let rows = block.rows.rows();
        let numbers = (first..).step_by(PROJECTED_ROWS);
        let chunks = rows
            .chunks(PROJECTED_ROWS)
            .zip(cells.chunks_mut(PROJECTED_ROWS * width));
        for (number, (rows, cells)) in numbers.zip(chunks) {
            let filled = (number..).zip(rows).zip(cells.chunks_exact_mut(width));
            for ((number, row), cells) in filled {
                set_constants(cells, &self.constants);
                let fragment = Fragment { table, row: *row };
                let late = LateRow::of(&mut self.late, number);
                fill(view, fragment, &sources, cells, texts, late);
            }
            for above in &mut self.above {
                let docs = rows.iter().map(|row| nth(view, block.table.docs(), *row));
                let late = LateRow::of(&mut self.late, number);
                above.fill(expander, docs, cells, texts, late);
            }
            cells
                .chunks_exact_mut(width)
                .for_each(|cells| repeat(cells, &self.repeated));
        }
        // The upper half is the pre-order number, which determines the order of rows.
        let preorder = |row: u32| u64::from(nth(view, block.table.preorder(), row));
        let numbered = (u64::from(first)..).zip(rows.iter());
        self.sort_keys
            .extend(numbered.map(|(number, row)| preorder(*row) << 32 | number));
    }

    /// Adds the row of a fragment that was walked.
    pub fn take_row(&mut self, row: &[Node], preorder: u32, doc: u32) {
        let (view, number) = (self.expander.view, self.result_buffer.len() as u32);
        self.sort_keys
            .push(u64::from(preorder) << 32 | u64::from(number));
        let (cells, texts) = self.result_buffer.extend(1);
        set_constants(cells, &self.constants);
        for PathColumn { column, path } in &self.own {
            let node = view.node_at(row, *path);
            match &mut self.late {
                Some(late) if is_object(view, node) => late.push(number, *column, node),
                _ => set(cells, *column, node_cell_ref(view, node, texts, &mut None)),
            }
        }
        for above in &mut self.above {
            let late = LateRow::of(&mut self.late, number);
            above.fill(self.expander, std::iter::once(doc), cells, texts, late);
        }
        repeat(cells, &self.repeated);
    }

    /// Sorts the rows in document order, and writes the objects of the rows in the window. `check`
    /// is called after each object.
    ///
    /// # Errors
    /// The errors of `check`.
    pub fn finish(mut self, check: impl Fn() -> Result<(), Abort>) -> Result<(), Abort> {
        self.sort_keys.sort_unstable();
        // The lower half of a mark is the number of the row.
        let rows: Vec<u32> = self.sort_keys.iter().map(|key| *key as u32).collect();
        if let Some(late) = self.late {
            late.write(&rows, self.expander.view, self.result_buffer, check)?;
            for row in rows.iter().filter(|_| !self.repeated.is_empty()) {
                if let Some((cells, _)) = self.result_buffer.row_mut(*row) {
                    repeat(cells, &self.repeated);
                }
            }
        }
        self.plain_rows.extend(rows);
        Ok(())
    }
}

impl<'b> AboveColumns<'b> {
    /// Fills the cells of the rows of some documents; `late` is that of the first row. All fragments
    /// are looked up before the first one is read, so that cache misses overlap.
    fn fill(
        &mut self,
        expander: Expander<'_, 'b>,
        docs: impl Iterator<Item = u32>,
        cells: &mut [CellRef],
        texts: &mut Dictionary,
        mut late: Option<LateRow<'_>>,
    ) {
        let (batch, width) = (expander.view.batch, expander.plan.query.select.len());
        let mut fragments = std::mem::take(&mut self.fragments);
        fragments.clear();
        fragments.extend(docs.map(|doc| batch.bound(self.class, doc)));
        let filled = (0..).zip(&fragments).zip(cells.chunks_exact_mut(width));
        for ((at, fragment), cells) in filled {
            let Some(fragment) = *fragment else {
                // The cells remain NULL, and the run ends with the error.
                expander.view.note_broken("a row has no document");
                continue;
            };
            // Neighbors mostly have the same variant, so the last one is tried first.
            if !self
                .sources_by_variant
                .get(self.last)
                .is_some_and(|known| known.is_of(fragment))
            {
                let known = self
                    .sources_by_variant
                    .iter()
                    .position(|known| known.is_of(fragment));
                self.last = known.unwrap_or_else(|| self.learn(expander, fragment, texts));
            }
            let Some(known) = self.sources_by_variant.get(self.last) else {
                expander
                    .view
                    .note_broken("a document has no layout variant");
                continue;
            };
            let late = late.as_mut().map(|first| LateRow {
                objects: &mut *first.objects,
                row: first.row + at,
            });
            fill(expander.view, fragment, &known.sources, cells, texts, late);
        }
        self.fragments = fragments;
    }

    /// Adds the cell sources for the layout variant of a fragment. Returns their index, which has
    /// no entry if the fragment has not exactly one row.
    fn learn(
        &mut self,
        expander: Expander<'_, 'b>,
        fragment: Fragment,
        texts: &mut Dictionary,
    ) -> usize {
        let (view, number, last) = (expander.view, fragment.table, self.sources_by_variant.len());
        let found = view
            .batch
            .table(number)
            .zip(expander.expansion(self.trie, Node::root(fragment)));
        let Some((table, variant)) = found else {
            return last;
        };
        let Some(template) = variant.rows().and_then(<[_]>::first) else {
            return last;
        };
        let sources = self
            .paths
            .iter()
            .map(|own| own.source(view, number, template, texts))
            .collect();
        self.sources_by_variant.push(VariantSources {
            number,
            table,
            sources,
            variant,
        });
        last
    }
}

impl<'l> LateRow<'l> {
    /// Returns the list for a row; `None` if objects are not written last.
    fn of(late: &'l mut Option<LateObjects>, row: u32) -> Option<LateRow<'l>> {
        let objects = late.as_mut()?;
        Some(LateRow { objects, row })
    }
}

impl PathColumn {
    /// Returns the source of the cells for the rows of a template of a table.
    fn source<'b>(
        &self,
        view: View<'b>,
        table: u32,
        template: &Cells,
        texts: &mut Dictionary,
    ) -> SourceColumn<'b> {
        SourceColumn {
            column: self.column,
            source: CellSource::of(view, table, template, self.path, texts),
        }
    }
}

impl VariantSources<'_> {
    fn is_of(&self, fragment: Fragment) -> bool {
        self.number == fragment.table && self.variant.is_of(self.table, fragment.row)
    }
}

impl<'b> CellSource<'b> {
    fn of(
        view: View<'b>,
        number: u32,
        template: &Cells,
        path: usize,
        texts: &mut Dictionary,
    ) -> CellSource<'b> {
        let batch = view.batch;
        let found = projected_cell(template, path).and_then(|projected_cell| {
            Some((
                batch.table(number)?,
                projected_cell.item,
                projected_cell.leaf,
            ))
        });
        let Some((table, item, leaf)) = found else {
            return CellSource::Same(CellRef::Null);
        };
        match leaf.map(|leaf| table.column_view(leaf)) {
            Some(Some(column_view)) => return CellSource::Leaf(column_view),
            Some(None) => view.note_broken("a leaf has no column"),
            None => {}
        }
        match table.layout().item(item).map(|i| i.kind) {
            Some(ItemKind::Constant { .. }) => {
                // A constant is the same in every row, so row 0 serves for all.
                let node = Node {
                    fragment: Fragment {
                        table: number,
                        row: 0,
                    },
                    item,
                };
                let mut buffer = String::new();
                let cell = cell_of(View::new(batch), node, &mut buffer);
                view.count(of_texts(cell.text_bytes()));
                CellSource::Same(CellRef::of(&cell, texts))
            }
            _ => CellSource::Tree(item),
        }
    }

    fn cell_ref(self, view: View<'b>, fragment: Fragment, texts: &mut Dictionary) -> CellRef {
        match self {
            CellSource::Leaf(column_view) => {
                let cell = CellRef::from_leaf(column_view, fragment.row, texts);
                view.cell_of_column(cell)
            }
            CellSource::Same(cell) => cell,
            CellSource::Tree(item) => CellRef::of(
                &cell_of(view, Node { fragment, item }, &mut String::new()),
                texts,
            ),
        }
    }
}

/// Sets the cells of a row of a fragment from their sources. Objects are added to `late` if it is
/// set.
fn fill(
    view: View<'_>,
    fragment: Fragment,
    sources: &[SourceColumn<'_>],
    cells: &mut [CellRef],
    texts: &mut Dictionary,
    mut late: Option<LateRow<'_>>,
) {
    for SourceColumn { column, source } in sources {
        match (source, &mut late) {
            (CellSource::Tree(item), Some(LateRow { objects, row })) => {
                let item = *item;
                objects.push(*row, *column, Node { fragment, item });
            }
            _ => set(cells, *column, source.cell_ref(view, fragment, texts)),
        }
    }
}

/// Returns whether a node is an object or a list.
fn is_object(view: View<'_>, node: Node) -> bool {
    let table = view.batch.stored_table(node.fragment.table);
    let item = table.and_then(|table| table.layout().item(node.item));
    item.is_some_and(|item| !matches!(item.kind, ItemKind::Leaf(..) | ItemKind::Constant { .. }))
}

/// Copies cells to the columns that repeat others in a row.
fn repeat(cells: &mut [CellRef], repeated: &[RepeatedColumn]) {
    for RepeatedColumn { column, earlier } in repeated {
        if let Some(cell) = cells.get(*earlier).copied() {
            set(cells, *column, cell);
        }
    }
}

fn set(cells: &mut [CellRef], column: usize, cell: CellRef) {
    if let Some(entry) = cells.get_mut(column) {
        *entry = cell;
    }
}

/// Sets the cells of a row that are the same in every row.
#[inline]
fn set_constants(cells: &mut [CellRef], constants: &[ConstantColumn]) {
    for ConstantColumn { column, cell } in constants {
        set(cells, *column, *cell);
    }
}

/// Returns the entry of a row in a list with one number for each row. A row without an entry is a
/// broken invariant, which ends the run.
#[inline]
fn nth(view: View<'_>, numbers: &[u32], row: u32) -> u32 {
    numbers.get(row as usize).copied().unwrap_or_else(|| {
        view.note_broken("a row has no number in a column of its table");
        u32::MAX
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::{AboveColumns, Expander, nth};
    use crate::answer::eval::node::View;
    use crate::answer::eval::work::Work;
    use crate::answer::plan::plan;
    use crate::answer::query::{
        ClassExpr, Column, ColumnValue, Contains, Expr, Literal, Query, Source, Variable, Versions,
    };
    use crate::answer::result::CellRef;
    use crate::answer::trie::Trie;
    use crate::document::{Batch, Dictionary};
    use aqlite_rm::class::Cls;

    /// `SELECT 1 FROM COMPOSITION`
    pub(in crate::answer::eval) fn one_of_each_composition() -> Query {
        let composition = ClassExpr {
            variable: 0,
            class: Cls::COMPOSITION,
            versions: Versions::Latest,
            predicate: None,
            contains: Contains::Nothing,
        };
        Query {
            from: Source::Class(Box::new(composition)),
            variables: vec![Variable {
                name: None,
                class: Cls::COMPOSITION,
            }],
            paths: Vec::new(),
            exists: Vec::new(),
            select: vec![Column {
                name: String::from("#0"),
                path: None,
                value: ColumnValue::Expr(Expr::Literal(Literal::Number("1".into()))),
            }],
            distinct: false,
            condition: None,
            order: Vec::new(),
            window: None,
        }
    }

    #[test]
    fn row_without_a_document_is_a_broken_invariant() {
        let plan = plan(one_of_each_composition(), None, false).unwrap();
        let (batch, work) = (Batch::new(), Work::new(1_000, 1_000, 1_000));
        let view = View::new(&batch).counting(&work);
        let trie = Trie {
            variable: 0,
            nodes: Vec::new(),
        };
        let mut above = AboveColumns {
            class: Cls::COMPOSITION,
            paths: Vec::new(),
            trie: &trie,
            sources_by_variant: Vec::new(),
            last: 0,
            fragments: Vec::new(),
        };
        let expander = Expander {
            plan: &plan,
            view,
            max_rows: 1,
            plain: false,
        };
        let (mut cells, mut texts) = ([CellRef::Null], Dictionary::default());
        above.fill(expander, std::iter::empty(), &mut cells, &mut texts, None);
        assert_eq!(work.broken(), None);
        above.fill(expander, std::iter::once(7), &mut cells, &mut texts, None);
        assert_eq!(work.broken(), Some("a row has no document"));
    }

    #[test]
    fn row_without_a_value_in_a_column_is_a_broken_invariant() {
        let batch = Batch::new();
        let broken = |read: &dyn Fn(View<'_>)| {
            let work = Work::new(1_000, 1_000, 1_000);
            read(View::new(&batch).counting(&work));
            work.broken().is_some()
        };
        assert!(!broken(&|view| assert_eq!(nth(view, &[5, 6], 1), 6)));
        assert!(broken(&|view| assert_eq!(nth(view, &[5, 6], 2), u32::MAX)));
        let cell = |cell: Option<CellRef>| {
            move |view: View<'_>| {
                let read = view.cell_of_column(cell);
                assert!(matches!(read, CellRef::Null | CellRef::Boolean(true)));
            }
        };
        assert!(!broken(&cell(Some(CellRef::Boolean(true)))));
        assert!(broken(&cell(None)));
    }
}
