//! A batch: many packed documents as columns, one table a shape.

mod derived;

pub use derived::Container;

use super::column::{Column, Leaf};
use super::pack::{FragmentView, Packed, Part, pack, write_json};
use super::rule::NothingKnown;
use super::shape::{ItemKind, Shape, Shapes};
use crate::rm::class::{Attr, Cls};
use crate::rm::json::quote_into;
use crate::rm::tree::{Kind, Tree};
use derived::{DERIVED, Derived};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The kinds of versioned objects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum ObjectKind {
    /// COMPOSITION.
    Composition,
    /// EHR_STATUS.
    EhrStatus,
    /// The directory: a tree of FOLDERs.
    Folder,
    /// A demographic PARTY.
    Party,
}

impl ObjectKind {
    /// What stands for it where it is stored.
    pub(crate) fn number(self) -> u64 {
        match self {
            ObjectKind::Composition => 1,
            ObjectKind::EhrStatus => 2,
            ObjectKind::Folder => 3,
            ObjectKind::Party => 4,
        }
    }

    /// The kind that a number stands for.
    pub(crate) fn of_number(number: u64) -> Option<ObjectKind> {
        [ObjectKind::Composition, ObjectKind::EhrStatus, ObjectKind::Folder, ObjectKind::Party].into_iter().find(|kind| kind.number() == number)
    }

    /// The class of its documents.
    pub fn class(self) -> Cls {
        match self {
            ObjectKind::Composition => Cls::COMPOSITION,
            ObjectKind::EhrStatus => Cls::EHR_STATUS,
            ObjectKind::Folder => Cls::FOLDER,
            ObjectKind::Party => Cls::PARTY,
        }
    }
}

/// What a batch knows of an EHR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EhrRow {
    /// EHR.ehr_id.value.
    pub ehr_id: String,
    /// EHR.system_id.value.
    pub system_id: String,
    /// EHR.time_created.value.
    pub time_created: String,
    /// False keeps the EHR out of population queries.
    pub is_queryable: bool,
}

/// What a batch knows of a document beside its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocRow {
    /// What it is a version of.
    pub kind: ObjectKind,
    /// VERSIONED_OBJECT.uid.value.
    pub object_id: String,
    /// The number of the version, from 1.
    pub number: u32,
    /// Its place in the commit order of the whole repository.
    pub ordinal: u64,
    /// True for the newest version of its object.
    pub latest: bool,
    /// True for a version that says that the object is deleted.
    pub deleted: bool,
}

/// A document of a batch.
#[derive(Clone, Debug)]
pub struct Doc {
    /// The number of its EHR in the batch.
    pub ehr: u32,
    /// What is known beside the content.
    pub row: DocRow,
    /// The fragment of the ORIGINAL_VERSION.
    pub version: Fragment,
    /// The fragment of its data; a deletion has none.
    pub data: Option<Fragment>,
}

/// A fragment: a row of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Fragment {
    /// The number of the table.
    pub table: u32,
    /// The row in it.
    pub row: u32,
}

/// All fragments of one shape.
#[derive(Clone, Debug)]
pub struct Table {
    shape: Arc<Shape>,
    docs: Vec<u32>,
    places: Vec<u32>,
    columns: Vec<Column>,
    runs: Vec<Run>,
}

/// One run of parts of all fragments of a shape.
#[derive(Clone, Debug, Default)]
struct Run {
    ends: Vec<u32>,
    parts: Vec<Fragment>,
}

/// Many packed documents, their EHRs and the tables of their fragments.
#[derive(Debug, Default)]
pub struct Batch {
    ehrs: Vec<Option<EhrRow>>,
    docs: Vec<Doc>,
    live: Vec<bool>,
    ehr_numbers: HashMap<String, u32>,
    ehr_fragments: Vec<Fragment>,
    by_ehr: Vec<Vec<u32>>,
    fragments: u32,
    shapes: Shapes,
    tables: Vec<Table>,
    by_address: HashMap<usize, (Arc<Shape>, u32)>,
    by_digest: HashMap<String, u32>,
    /// The number of the first table.
    base: u32,
    derived: OnceCell<Box<Derived>>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// How many documents it holds, removed ones included.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// True when it holds no document.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// Adds an EHR and gives its number.
    pub fn add_ehr(&mut self, ehr: EhrRow) -> u32 {
        self.derived.take();
        let number = self.ehrs.len() as u32;
        let tree = ehr_tree(&ehr);
        if let Some(root) = tree.root() {
            let packed = pack(root, &NothingKnown, &self.shapes);
            let fragment = self.add_part(number, &packed, packed.root());
            self.ehr_fragments.push(fragment);
        }
        self.ehr_numbers.insert(ehr.ehr_id.clone(), number);
        self.ehrs.push(Some(ehr));
        self.by_ehr.push(Vec::new());
        number
    }

    /// The number of the EHR with this id.
    pub fn ehr_number(&self, ehr_id: &str) -> Option<u32> {
        self.ehr_numbers.get(ehr_id).copied().filter(|number| self.ehr(*number).is_some())
    }

    /// The fragment of the EHR object itself; the table of it names the EHR where others name the document.
    pub fn ehr_fragment(&self, ehr: u32) -> Option<Fragment> {
        self.ehr_fragments.get(ehr as usize).copied()
    }

    /// Changes whether an EHR takes part in population queries.
    pub fn set_queryable(&mut self, ehr: u32, is_queryable: bool) {
        if let Some(Some(row)) = self.ehrs.get_mut(ehr as usize) {
            row.is_queryable = is_queryable;
        }
        self.set_live(ehr);
    }

    fn set_live(&mut self, ehr: u32) {
        for number in self.by_ehr.get(ehr as usize).into_iter().flatten() {
            let live = self.docs.get(*number as usize).is_some_and(|doc| self.lives(doc));
            if let Some(flag) = self.live.get_mut(*number as usize) {
                *flag = live;
            }
        }
    }

    fn lives(&self, doc: &Doc) -> bool {
        doc.row.latest && !doc.row.deleted && self.ehr(doc.ehr).is_some_and(|ehr| ehr.is_queryable)
    }

    /// For each document: true for the latest version of an object, not deleted, of an EHR that takes part in population queries.
    pub fn live(&self) -> &[bool] {
        &self.live
    }

    /// Adds a packed ORIGINAL_VERSION and gives its number.
    pub fn add(&mut self, ehr: u32, row: DocRow, packed: &Packed) -> u32 {
        self.derived.take();
        let number = self.docs.len() as u32;
        let version = self.add_part(number, packed, packed.root());
        let data = self.part_at(version, Attr::DATA);
        let doc = Doc { ehr, row, version, data };
        self.live.push(self.lives(&doc));
        self.docs.push(doc);
        if let Some(documents) = self.by_ehr.get_mut(ehr as usize) {
            documents.push(number);
        }
        number
    }

    fn add_part(&mut self, doc: u32, packed: &Packed, part: &Part) -> Fragment {
        let place = self.fragments;
        self.fragments += 1;
        let runs: Vec<Vec<Fragment>> = part.runs.iter().map(|run| run.iter().map(|inner| self.add_part(doc, packed, inner)).collect()).collect();
        let number = self.table_of(&part.shape);
        let Some(table) = self.tables.get_mut((number - self.base) as usize) else { return Fragment { table: number, row: 0 } };
        let row = table.docs.len() as u32;
        table.docs.push(doc);
        table.places.push(place);
        for (slot, column) in table.columns.iter_mut().enumerate() {
            column.push(packed.slot(part, slot as u32));
        }
        for (run, column) in runs.into_iter().zip(&mut table.runs) {
            column.parts.extend(run);
            column.ends.push(column.parts.len() as u32);
        }
        Fragment { table: number, row }
    }

    fn table_of(&mut self, shape: &Arc<Shape>) -> u32 {
        let address = Arc::as_ptr(shape) as usize;
        if let Some((_, table)) = self.by_address.get(&address) {
            return *table;
        }
        let table = match self.by_digest.get(shape.digest()) {
            Some(table) => *table,
            None => {
                self.tables.push(Table::new(Arc::clone(shape)));
                self.base + self.tables.len() as u32 - 1
            }
        };
        self.by_digest.insert(shape.digest().to_owned(), table);
        self.by_address.insert(address, (Arc::clone(shape), table));
        table
    }

    /// Says that a document is no longer the latest version of its object.
    pub fn supersede(&mut self, document: u32) {
        self.derived.take();
        if let Some(doc) = self.docs.get_mut(document as usize) {
            doc.row.latest = false;
        }
        if let Some(flag) = self.live.get_mut(document as usize) {
            *flag = false;
        }
    }

    /// Takes an EHR and its documents out of every answer.
    pub fn remove_ehr(&mut self, ehr: u32) {
        self.derived.take();
        if let Some(row) = self.ehrs.get_mut(ehr as usize) {
            *row = None;
        }
        self.set_live(ehr);
    }

    /// The EHRs with their numbers, in creation order, without removed ones.
    pub fn ehrs(&self) -> impl Iterator<Item = (u32, &EhrRow)> {
        self.ehrs.iter().enumerate().filter_map(|(i, row)| row.as_ref().map(|row| (i as u32, row)))
    }

    /// One EHR; `None` for a removed one.
    pub fn ehr(&self, ehr: u32) -> Option<&EhrRow> {
        self.ehrs.get(ehr as usize).and_then(Option::as_ref)
    }

    /// How many fragments there are: places are numbered from 0.
    pub fn places(&self) -> u32 {
        self.fragments
    }

    /// The documents of an EHR in commit order.
    pub fn docs_of(&self, ehr: u32) -> &[u32] {
        self.by_ehr.get(ehr as usize).map_or(&[], Vec::as_slice)
    }

    /// All documents in commit order.
    pub fn docs(&self) -> &[Doc] {
        &self.docs
    }

    /// One document.
    pub fn doc(&self, document: u32) -> Option<&Doc> {
        self.docs.get(document as usize)
    }

    /// The tables of documents and EHRs; fragments name them by number.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// One table.
    pub fn table(&self, number: u32) -> Option<&Table> {
        match number.checked_sub(self.base) {
            Some(number) if number < DERIVED => self.tables.get(number as usize),
            _ => self.derived.get()?.batch.table(number),
        }
    }

    /// The fragments of a run, in list order.
    pub fn parts(&self, fragment: Fragment, run: u32) -> &[Fragment] {
        let Some(run) = self.table(fragment.table).and_then(|t| t.runs.get(run as usize)) else { return &[] };
        let start = fragment.row.checked_sub(1).and_then(|r| run.ends.get(r as usize)).copied().unwrap_or(0);
        let end = run.ends.get(fragment.row as usize).copied().unwrap_or(start);
        run.parts.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The fragment at a single attribute of a fragment's root, such as the data of a version.
    pub fn part_at(&self, fragment: Fragment, attr: Attr) -> Option<Fragment> {
        let shape = self.table(fragment.table)?.shape();
        match shape.item(shape.child(0, attr)?)?.kind {
            ItemKind::Parts(run) => self.parts(fragment, run).first().copied(),
            _ => None,
        }
    }

    /// Appends the subtree of an item of a fragment as canonical JSON, as stored.
    pub fn write_json(&self, fragment: Fragment, item: u32, out: &mut String) {
        if let Some(table) = self.table(fragment.table) {
            write_json(&BatchView { batch: self, table, fragment }, item, out);
        }
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::bytes).sum();
        tables + self.docs.len() * (std::mem::size_of::<Doc>() + 40) + self.ehrs.len() * 200
    }
}

/// The EHR object with the attributes that are known of it.
fn ehr_tree(ehr: &EhrRow) -> Tree {
    let mut tree = Tree::new();
    let root = tree.push_object(None, None, Cls::EHR);
    let parts = [
        (Attr::SYSTEM_ID, Cls::HIER_OBJECT_ID, &ehr.system_id),
        (Attr::EHR_ID, Cls::HIER_OBJECT_ID, &ehr.ehr_id),
        (Attr::TIME_CREATED, Cls::DV_DATE_TIME, &ehr.time_created),
    ];
    for (attr, class, text) in parts {
        let object = tree.push_object(Some(root), Some(attr), class);
        tree.push_leaf(Some(object), Some(Attr::VALUE), Cls::STRING, Kind::Text, text);
    }
    tree.close(root);
    tree
}

impl Table {
    fn new(shape: Arc<Shape>) -> Table {
        let kind = |index: &u32| match shape.item(*index).map(|i| i.kind) {
            Some(ItemKind::Slot(kind, _)) => kind,
            _ => Kind::Text,
        };
        let columns = shape.slots().iter().map(|i| Column::new(kind(i))).collect();
        let runs = shape.parts().iter().map(|_| Run::default()).collect();
        Table { shape, docs: Vec::new(), places: Vec::new(), columns, runs }
    }

    /// The shape of every fragment in it.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
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

    /// The column of a slot.
    pub fn column(&self, slot: u32) -> Option<&Column> {
        self.columns.get(slot as usize)
    }

    /// The value of a leaf item in a row: a constant of the shape, or the slot.
    pub fn leaf(&self, item: u32, row: u32) -> Option<Leaf<'_>> {
        let item = self.shape.item(item)?;
        match item.kind {
            ItemKind::Slot(_, slot) => self.column(slot)?.leaf(row),
            ItemKind::Constant(Kind::Number, ..) => self.shape.text(item).parse().ok().map(Leaf::Number),
            ItemKind::Constant(Kind::Boolean, ..) => Some(Leaf::Boolean(self.shape.text(item) == "true")),
            ItemKind::Constant(..) => Some(Leaf::Text(self.shape.text(item))),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::bytes).sum();
        let runs: usize = self.runs.iter().map(|r| r.ends.capacity() * 4 + r.parts.capacity() * 8).sum();
        columns + runs + self.docs.capacity() * 8 + std::mem::size_of_val(self.shape.items())
    }
}

struct BatchView<'a> {
    batch: &'a Batch,
    table: &'a Table,
    fragment: Fragment,
}

impl FragmentView for BatchView<'_> {
    fn shape(&self) -> &Shape {
        &self.table.shape
    }

    fn write_slot(&self, slot: u32, kind: Kind, out: &mut String) {
        let Some(column) = self.table.column(slot) else { return };
        match (kind, column.leaf(self.fragment.row)) {
            (Kind::Text, Some(Leaf::Text(text))) => quote_into(out, text),
            _ => column.write(self.fragment.row, out),
        }
    }

    fn each_part(&self, run: u32, visit: &mut dyn FnMut(&Self)) {
        for part in self.batch.parts(self.fragment, run) {
            if let Some(table) = self.batch.table(part.table) {
                visit(&BatchView { batch: self.batch, table, fragment: *part });
            }
        }
    }
}
