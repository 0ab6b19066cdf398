//! Tables: the fragments whose shapes unite, as columns.
//!
//! A table has the shape of all its fragments together. Where not all have an item, a flag tells who does; its column, or run,
//! holds something for these alone. Numbers of columns, runs and flags stay when the shape grows.

use super::Fragment;
use super::flag::Flag;
use crate::document::column::{Column, Dictionary, Leaf, Words, push};
use crate::document::shape::{Item, ItemKind, Shape};
use crate::document::superset::{Before, unite};
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::Kind;
use std::sync::Arc;

/// Fragments whose shapes unite.
#[derive(Clone, Debug)]
pub struct Table {
    shape: Arc<Shape>,
    /// How often that has grown.
    grown: u32,
    /// The number of the node id of the root, where the shape tells it.
    root_id: Option<u32>,
    /// The number of the archetype that the root is of.
    archetype: Option<u32>,
    docs: Vec<u32>,
    places: Vec<u32>,
    /// The places of what the fragments are parts of.
    wholes: Vec<u32>,
    columns: Vec<Column>,
    /// The flag of each column; `None` where all fragments have a value.
    flagged: Vec<Option<u32>>,
    runs: Vec<Run>,
    /// Who has an item.
    flags: Vec<Flag>,
    /// The fragments of no living document, in order.
    pub(super) hidden: Vec<u32>,
    /// The runs, by table and number, that its fragments are parts of.
    pub(super) origins: Vec<(u32, u32)>,
}

/// The values of a slot, one a fragment that has it.
#[derive(Clone, Copy)]
pub struct Lane<'t> {
    column: &'t Column,
    flag: Option<&'t Flag>,
}

/// One run of parts, of all fragments of a table that have it.
#[derive(Clone, Debug, Default)]
struct Run {
    ends: Vec<u32>,
    parts: Vec<Fragment>,
}

/// How a shape fits into a table.
#[derive(Debug)]
pub(super) struct Fit {
    pub table: u32,
    /// The number of the archetype that the root is of.
    pub archetype: Option<u32>,
    /// How often the shape of the table had grown.
    pub grown: u32,
    /// The columns of the shape's slots.
    slots: Vec<u32>,
    /// The numbers of its runs in the table.
    pub runs: Vec<u32>,
    /// The flags that its fragments have.
    set: Vec<u32>,
}

impl Fit {
    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        (self.slots.capacity() + self.runs.capacity() + self.set.capacity()) * 4 + 160
    }

    /// The first shape of a table.
    pub fn exact(shape: &Arc<Shape>, table: u32, archetype: Option<u32>) -> Fit {
        let (slots, runs) = ((0..shape.slots().len() as u32).collect(), (0..shape.parts().len() as u32).collect());
        Fit { table, archetype, grown: 0, slots, runs, set: Vec::new() }
    }
}

impl Table {
    pub(super) fn new(shape: Arc<Shape>, (root_id, archetype): (Option<u32>, Option<u32>)) -> Table {
        let (docs, places, wholes, columns, flagged) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (runs, flags, hidden, origins) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut table = Table { shape, grown: 0, root_id, archetype, docs, places, wholes, columns, flagged, runs, flags, hidden, origins };
        table.widen();
        table
    }

    /// Makes the columns and runs that the shape has.
    fn widen(&mut self) {
        let shape = &self.shape;
        let column = |index: &u32| match shape.item(*index) {
            Some(item) if item.attr == Some(Attr::VALUE) && shape.item(item.parent).is_some_and(|p| p.class == Cls::DV_DATE_TIME) => {
                Column::of_moments()
            }
            Some(Item { kind: ItemKind::Slot(kind, _), .. }) => Column::new(*kind),
            _ => Column::new(Kind::Text),
        };
        self.columns.extend(shape.slots().iter().skip(self.columns.len()).map(column));
        self.flagged = shape.slots().iter().map(|item| shape.item(*item)?.flag).collect();
        self.runs.resize(shape.parts().len(), Run::default());
    }

    /// Makes room for the fragments of a shape; `None` where it does not unite with that of the table.
    pub(super) fn admit(&mut self, shape: &Shape, table: u32) -> Option<Fit> {
        let union = unite(&self.shape, shape, self.flags.len() as u32)?;
        if let Some(shape) = union.shape {
            for before in union.flags {
                self.flags.push(match before {
                    Before::None => Flag::default(),
                    Before::With(Some(flag)) => self.flag(flag).cloned().unwrap_or_default(),
                    Before::With(None) => Flag::of(self.docs.len() as u32),
                });
            }
            self.shape = Arc::new(shape);
            self.grown += 1;
            self.widen();
        }
        Some(Fit { table, archetype: self.archetype, grown: self.grown, slots: union.slots, runs: union.runs, set: union.set })
    }

    /// True where the columns, runs and flags of a fit are there, one for each of so many slots and runs of a fragment.
    fn admits(&self, fit: &Fit, slots: usize, runs: usize) -> bool {
        let is_there = |numbers: &[u32], len: usize| numbers.iter().all(|number| (*number as usize) < len);
        (fit.slots.len(), fit.runs.len()) == (slots, runs)
            && is_there(&fit.slots, self.columns.len())
            && is_there(&fit.runs, self.runs.len())
            && is_there(&fit.set, self.flags.len())
    }

    /// Adds a fragment, with its document, its place and that of what it is a part of, and gives its row; `None`, with nothing added, where
    /// the fit is none of this table: a value without a column would be lost.
    pub(super) fn add<'t>(
        &mut self,
        (doc, place, whole): (u32, u32, u32),
        fit: &Fit,
        texts: impl ExactSizeIterator<Item = &'t str>,
        runs: &[Vec<Fragment>],
        words: &mut Dictionary,
    ) -> Option<u32> {
        if !self.admits(fit, texts.len(), runs.len()) {
            return None;
        }
        let row = self.docs.len() as u32;
        push(&mut self.docs, doc);
        push(&mut self.places, place);
        push(&mut self.wholes, whole);
        for (text, slot) in texts.zip(&fit.slots) {
            self.columns.get_mut(*slot as usize).into_iter().for_each(|column| column.push(text, words));
        }
        for (parts, run) in runs.iter().zip(&fit.runs) {
            let Some(run) = self.runs.get_mut(*run as usize) else { continue };
            parts.iter().for_each(|part| push(&mut run.parts, *part));
            push(&mut run.ends, run.parts.len() as u32);
        }
        for flag in &fit.set {
            self.flags.get_mut(*flag as usize).into_iter().for_each(|flag| flag.set(row));
        }
        self.hidden.extend((doc == u32::MAX).then_some(row));
        Some(row)
    }

    /// True when a fragment has an item.
    pub fn has(&self, row: u32, item: u32) -> bool {
        self.shape.item(item).is_some_and(|item| item.flag.is_none_or(|flag| self.is_set(flag, row)))
    }

    /// True when a flag stands for a fragment.
    pub fn is_set(&self, flag: u32, row: u32) -> bool {
        self.flag(flag).is_some_and(|flag| flag.stands(row))
    }

    /// For which fragments a flag stands.
    pub fn flag(&self, flag: u32) -> Option<&Flag> {
        self.flags.get(flag as usize)
    }

    fn flag_of(&self, item: u32) -> Option<&Flag> {
        self.flag(self.shape.item(item)?.flag?)
    }

    /// The fragments of a run of one row, in list order.
    pub(super) fn parts(&self, row: u32, run: u32) -> &[Fragment] {
        let (Some(item), Some(run)) = (self.shape.parts().get(run as usize), self.runs.get(run as usize)) else { return &[] };
        let at = match self.flag_of(*item) {
            Some(flag) if !flag.stands(row) => return &[],
            Some(flag) => flag.before(row),
            None => row,
        };
        let start = at.checked_sub(1).and_then(|before| run.ends.get(before as usize)).copied().unwrap_or(0);
        let end = run.ends.get(at as usize).copied().unwrap_or(start);
        run.parts.get(start as usize..end as usize).unwrap_or_default()
    }

    /// How many runs its fragments may have.
    pub(super) fn runs(&self) -> u32 {
        self.runs.len() as u32
    }

    /// The fragments of no living document, in order; see [`super::Batch::live`].
    pub fn hidden(&self) -> &[u32] {
        &self.hidden
    }

    /// The runs, by table and number, that its fragments are parts of.
    pub fn origins(&self) -> &[(u32, u32)] {
        &self.origins
    }

    /// What its fragments have between them; [`Table::has`] tells what one has.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// The number of the node id that the root of every fragment has; `None` where they differ or have none.
    pub fn root_id(&self) -> Option<u32> {
        self.root_id
    }

    /// How often its shape has grown.
    pub(super) fn grown(&self) -> u32 {
        self.grown
    }

    /// The numbers of the root's node id and of the archetype that it is of.
    pub(super) fn root(&self) -> (Option<u32>, Option<u32>) {
        (self.root_id, self.archetype)
    }

    /// How many fragments it holds.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// True when it holds none.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// The document of each fragment.
    pub fn docs(&self) -> &[u32] {
        &self.docs
    }

    /// Where each fragment stands among all fragments of the batch, in document order.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// The place of what each fragment is a part of: its own where it is a part of nothing.
    pub fn wholes(&self) -> &[u32] {
        &self.wholes
    }

    /// The values of a slot.
    pub fn lane(&self, slot: u32) -> Option<Lane<'_>> {
        let flag = self.flagged.get(slot as usize)?.and_then(|flag| self.flag(flag));
        Some(Lane { column: self.columns.get(slot as usize)?, flag })
    }

    pub(super) fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|c| c.bytes() + std::mem::size_of::<Column>()).sum();
        let runs: usize = self.runs.iter().map(|r| r.ends.capacity() * 4 + r.parts.capacity() * 8).sum();
        let flags: usize = self.flags.iter().map(Flag::bytes).sum();
        columns + runs + flags + self.docs.capacity() * 12 + self.flagged.capacity() * 8 + self.hidden.capacity() * 4 + self.shape.bytes()
    }
}

impl<'t> Lane<'t> {
    /// The values.
    pub fn column(self) -> &'t Column {
        self.column
    }

    /// Who has one; `None` where all have.
    pub fn flag(self) -> Option<&'t Flag> {
        self.flag
    }

    /// Where the column has the value of a fragment that has one.
    pub fn at(self, row: u32) -> u32 {
        self.flag.map_or(row, |flag| flag.before(row))
    }

    /// The number of the word of a fragment, of a slot of texts.
    pub fn id(self, row: u32) -> Option<u32> {
        self.column.ids()?.get(self.at(row) as usize).copied()
    }

    /// The point in time of a fragment: see [`Column::point`].
    pub fn point(self, row: u32) -> Option<i64> {
        self.column.point(self.at(row))
    }

    /// Where the date-time of a fragment begins: see [`Column::begin`].
    pub fn begin(self, row: u32) -> Option<i64> {
        self.column.begin(self.at(row))
    }

    pub(super) fn leaf(self, row: u32, words: &Words) -> Option<Leaf<'_>> {
        self.column.leaf(self.at(row), words)
    }

    pub(super) fn write(self, row: u32, words: &Words, out: &mut String) {
        self.column.write(self.at(row), words, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::answer::query::{ClassExpr, Column, ColumnValue, Contains, Expr, Literal, Query, Source, Variable, Versions};
    use crate::answer::{Budget, QueryError, Run, plan};
    use crate::document::{Batch, Fragment, NothingKnown, Shapes, pack};
    use crate::rm::class::Cls;
    use crate::rm::json;

    fn list(elements: &[(u32, &str)]) -> String {
        let element = |(id, value): &(u32, &str)| {
            format!(r#"{{"_type":"ELEMENT","archetype_node_id":"at{id:04}","name":{{"_type":"DV_TEXT","value":"E"}},"value":{value}}}"#)
        };
        let elements: Vec<String> = elements.iter().map(element).collect();
        let head = r#""_type":"ITEM_LIST","archetype_node_id":"at0000","name":{"_type":"DV_TEXT","value":"L"}"#;
        format!(r#"{{{head},"items":[{}]}}"#, elements.join(","))
    }

    #[test]
    fn a_fragment_that_fits_no_column_is_not_added() {
        let (mut batch, shapes) = (Batch::new(), Shapes::new());
        let tree = json::read(&list(&[(1, r#"{"_type":"DV_COUNT","magnitude":7}"#)]), Cls::ITEM_LIST).unwrap();
        batch.add_whole(u32::MAX, &pack(tree.root().unwrap(), &NothingKnown, &shapes));
        assert_eq!(batch.broken(), None);
        let mut words = super::Dictionary::default();
        let table = &mut batch.tables[0];
        let slots = table.columns.len();
        let fit = |columns: Vec<u32>, set: Vec<u32>| super::Fit { table: 0, archetype: None, grown: 0, slots: columns, runs: Vec::new(), set };
        let all = || (0..slots as u32).collect::<Vec<_>>();
        let mut add = |fit: super::Fit, texts: usize| table.add((0, 0, 0), &fit, vec!["1"; texts].into_iter(), &[], &mut words);
        let beyond = all().into_iter().map(|slot| slot + 1).collect();
        assert_eq!(add(fit(beyond, Vec::new()), slots), None, "a column that is not there");
        assert_eq!(add(fit(all(), Vec::new()), slots + 1), None, "a value more than columns");
        assert_eq!(add(fit(all(), Vec::new()), slots - 1), None, "a column without a value");
        assert_eq!(add(fit(all(), vec![99]), slots), None, "a flag that is not there");
        assert_eq!(add(fit(all(), Vec::new()), slots), Some(1));
        assert_eq!(table.len(), 2);
    }

    /// `SELECT 1 FROM COMPOSITION`
    fn one_of_each_composition() -> Query {
        let composition =
            ClassExpr { variable: 0, class: Cls::COMPOSITION, versions: Versions::Latest, predicate: None, contains: Contains::Nothing };
        let one = ColumnValue::Expr(Expr::Literal(Literal::Number(String::from("1"))));
        Query {
            from: Source::Class(Box::new(composition)),
            variables: vec![Variable { name: None, class: Cls::COMPOSITION }],
            paths: Vec::new(),
            select: vec![Column { name: String::from("#0"), path: None, value: one }],
            distinct: false,
            condition: None,
            order: Vec::new(),
            window: None,
        }
    }

    #[test]
    fn a_batch_that_lacks_a_fragment_is_answered_by_an_error() {
        let plan = plan(one_of_each_composition(), None, false).unwrap();
        let lacks = "a fragment does not fit the columns of its table";
        for broken in [None, Some(lacks)] {
            let mut batch = Batch::new();
            batch.broken = broken;
            let mut run = Run::new(&plan, "2026-01-01T00:00:00Z", Budget::default(), &|| false);
            assert_eq!(run.push(&batch), broken.is_none(), "no more batches are read");
            let outcome = run.finish();
            assert_eq!(outcome.err(), broken.map(QueryError::Broken));
        }
    }

    #[test]
    fn fragments_with_other_elements_share_a_table_and_come_back() {
        let (number, text, flag) =
            (r#"{"_type":"DV_COUNT","magnitude":7}"#, r#"{"_type":"DV_TEXT","value":"t"}"#, r#"{"_type":"DV_BOOLEAN","value":true}"#);
        let lists = [
            list(&[(1, number), (3, text)]),
            list(&[]),
            list(&[(2, flag), (3, text)]),
            list(&[(3, number), (1, number)]),
            list(&[(1, number), (2, flag), (2, flag), (2, flag), (3, text)]),
            list(&[(3, text)]),
        ];
        let (mut batch, shapes) = (Batch::new(), Shapes::new());
        let trees: Vec<_> = lists.iter().map(|text| json::read(text, Cls::ITEM_LIST).unwrap()).collect();
        let packed: Vec<_> = trees.iter().map(|tree| pack(tree.root().unwrap(), &NothingKnown, &shapes)).collect();
        let fragments: Vec<_> = packed.iter().map(|packed| batch.add_whole(u32::MAX, packed)).collect();
        assert_eq!(batch.tables().iter().map(super::Table::len).collect::<Vec<_>>(), [6, 3], "the lists, and the repeated elements");
        let elements = batch.table(1).unwrap();
        for (row, whole) in (0..).zip(elements.wholes()) {
            let list = batch.whole_of(Fragment { table: 1, row }).unwrap();
            assert_eq!(batch.table(list.table).unwrap().places()[list.row as usize], *whole, "an element knows the place of its list");
        }
        assert_eq!(batch.table(0).unwrap().wholes(), batch.table(0).unwrap().places(), "a list is a part of nothing");
        for ((tree, fragment), sent) in trees.iter().zip(fragments).zip(&lists) {
            let packed = batch.packed(fragment).unwrap();
            assert_eq!((packed.to_json(), json::write(packed.unpack().root().unwrap())), (sent.clone(), sent.clone()));
            assert_eq!(packed.shapes(), pack(tree.root().unwrap(), &NothingKnown, &shapes).shapes());
            let mut written = String::new();
            batch.write_json(fragment, 0, &mut written);
            assert_eq!(written, *sent);
        }
    }
}
