//! A batch: many packed documents as columns, one table a shape.

mod derived;

pub use derived::Container;

use super::column::{Column, Dictionary, Leaf, Words, push};
use super::pack::{FragmentView, Packed, Part, pack, write_json};
use super::rule::NothingKnown;
use super::shape::{Item, ItemKind, Shape, Shapes};
use crate::rm::class::{Attr, Cls};
use crate::rm::json::quote_into;
use crate::rm::tree::{Kind, Tree};
use derived::{DERIVED, Derived};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// What is told of a document beside its content.
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

/// What a batch keeps of a [`DocRow`]; the object id stands in the uid of the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DocState {
    /// What it is a version of.
    pub kind: ObjectKind,
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
    pub row: DocState,
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
    /// The number of the node id of the root, where the shape tells it.
    root_id: Option<u32>,
    docs: Vec<u32>,
    places: Vec<u32>,
    columns: Vec<Column>,
    runs: Vec<Run>,
    /// The fragments of no living document, in order.
    hidden: Vec<u32>,
    /// The runs, by table and number, that its fragments are parts of.
    origins: Vec<(u32, u32)>,
}

/// One run of parts of all fragments of a shape.
#[derive(Clone, Debug, Default)]
struct Run {
    ends: Vec<u32>,
    parts: Vec<Fragment>,
    /// True when some fragment has no part in it.
    has_empty: bool,
}

/// Many packed documents, their EHRs and the tables of their fragments.
#[derive(Debug, Default)]
pub struct Batch {
    ehrs: Vec<Option<EhrRow>>,
    docs: Vec<Doc>,
    live: Vec<bool>,
    /// The texts of all columns.
    words: Dictionary,
    /// Object ids that do not stand in the uid of the version, by document.
    odd_ids: HashMap<u32, String>,
    ehr_numbers: HashMap<String, u32>,
    ehr_fragments: Vec<Fragment>,
    by_ehr: Vec<Vec<u32>>,
    fragments: u32,
    shapes: Shapes,
    tables: Vec<Table>,
    by_address: HashMap<usize, (Arc<Shape>, u32)>,
    by_digest: HashMap<String, u32>,
    /// The node ids of roots.
    root_ids: Vec<String>,
    /// The number of the first table.
    base: u32,
    layout: u64,
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

    /// What a class that binds a document as a whole binds of one: its EHR, its version, or its data.
    pub fn bound(&self, class: Cls, doc: &Doc) -> Option<Fragment> {
        match class {
            Cls::EHR => self.ehr_fragment(doc.ehr),
            class if class.is_a(Cls::VERSION) => Some(doc.version),
            _ => doc.data,
        }
    }

    /// Changes whether an EHR takes part in population queries.
    pub fn set_queryable(&mut self, ehr: u32, is_queryable: bool) {
        if let Some(Some(row)) = self.ehrs.get_mut(ehr as usize) {
            row.is_queryable = is_queryable;
        }
        self.set_live(ehr);
    }

    fn set_live(&mut self, ehr: u32) {
        for number in self.docs_of(ehr).to_vec() {
            self.set_flag(number);
        }
    }

    /// Says anew whether a document lives.
    fn set_flag(&mut self, document: u32) {
        let lives = self.doc(document).is_some_and(|doc| self.lives(doc));
        let version = self.doc(document).map(|doc| doc.version);
        match self.live.get_mut(document as usize) {
            Some(flag) if *flag != lives => *flag = lives,
            _ => return,
        }
        self.hide(version, !lives);
    }

    /// Counts the fragments of a document as hidden, or no longer so.
    fn hide(&mut self, version: Option<Fragment>, hidden: bool) {
        let mut fragments = Vec::from_iter(version);
        while let Some(fragment) = fragments.pop() {
            let Some(table) = self.tables.get_mut((fragment.table - self.base) as usize) else { continue };
            match table.hidden.binary_search(&fragment.row) {
                Err(at) if hidden => table.hidden.insert(at, fragment.row),
                Ok(at) if !hidden => drop(table.hidden.remove(at)),
                _ => {}
            }
            (0..table.runs.len() as u32).for_each(|run| fragments.extend_from_slice(table.parts(fragment.row, run)));
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
        let DocRow { kind, object_id, number: nth, ordinal, latest, deleted } = row;
        let doc = Doc { ehr, row: DocState { kind, number: nth, ordinal, latest, deleted }, version, data };
        if self.object_in_uid(version) != Some(&object_id) {
            self.odd_ids.insert(number, object_id);
        }
        push(&mut self.live, true);
        push(&mut self.docs, doc);
        self.set_flag(number);
        if let Some(documents) = self.by_ehr.get_mut(ehr as usize) {
            push(documents, number);
        }
        number
    }

    /// Adds an object that is no document, such as a CONTRIBUTION: no query sees it.
    pub fn add_aside(&mut self, packed: &Packed) -> Fragment {
        self.add_part(u32::MAX, packed, packed.root())
    }

    /// Adds an owner of documents that is no EHR: no query sees them.
    pub fn add_owner(&mut self) -> u32 {
        let number = self.ehrs.len() as u32;
        self.ehrs.push(None);
        self.by_ehr.push(Vec::new());
        self.ehr_fragments.push(Fragment { table: u32::MAX, row: 0 });
        number
    }

    /// VERSIONED_OBJECT.uid.value of a document.
    pub fn object_id(&self, document: u32) -> &str {
        let in_uid = || self.doc(document).and_then(|doc| self.object_in_uid(doc.version));
        self.odd_ids.get(&document).map(String::as_str).or_else(in_uid).unwrap_or_default()
    }

    fn object_in_uid(&self, version: Fragment) -> Option<&str> {
        self.text_along(version, &[Attr::UID, Attr::VALUE])?.split("::").next()
    }

    /// The text at the end of single attributes from the root of a fragment.
    pub fn text_along(&self, fragment: Fragment, path: &[Attr]) -> Option<&str> {
        let (mut at, mut item) = (fragment, 0);
        for attr in path {
            let shape = self.table(at.table)?.shape();
            item = shape.child(item, *attr)?;
            if let ItemKind::Parts(run) = shape.item(item)?.kind {
                (at, item) = (*self.parts(at, run).first()?, 0);
            }
        }
        match self.leaf(at, item)? {
            Leaf::Text(text) => Some(text),
            _ => None,
        }
    }

    fn add_part(&mut self, doc: u32, packed: &Packed, part: &Part) -> Fragment {
        let place = self.fragments;
        self.fragments += 1;
        let runs: Vec<Vec<Fragment>> = part.runs.iter().map(|run| run.iter().map(|inner| self.add_part(doc, packed, inner)).collect()).collect();
        let number = self.table_of(&part.shape);
        let Some(table) = self.tables.get_mut((number - self.base) as usize) else { return Fragment { table: number, row: 0 } };
        let row = table.docs.len() as u32;
        push(&mut table.docs, doc);
        push(&mut table.places, place);
        for (slot, column) in table.columns.iter_mut().enumerate() {
            column.push(packed.slot(part, slot as u32), &mut self.words);
        }
        table.hidden.extend((doc == u32::MAX).then_some(row));
        let mut changes = false;
        for (run, column) in runs.iter().zip(&mut table.runs) {
            changes |= run.is_empty() && !column.has_empty;
            column.has_empty |= run.is_empty();
            run.iter().for_each(|part| push(&mut column.parts, *part));
            push(&mut column.ends, column.parts.len() as u32);
        }
        for (run, part) in (0..).zip(&runs).flat_map(|(run, parts)| parts.iter().map(move |part| (run, part))) {
            let origins = self.tables.get_mut((part.table - self.base) as usize).map(|table| &mut table.origins);
            if let Some(origins) = origins.filter(|origins| !origins.contains(&(number, run))) {
                origins.push((number, run));
                changes = true;
            }
        }
        if changes {
            self.layout = new_layout();
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
                let root_id = shape.constant(0, Attr::ARCHETYPE_NODE_ID).map(|id| self.number_of_root(id));
                self.tables.push(Table::new(Arc::clone(shape), root_id));
                self.layout = new_layout();
                self.base + self.tables.len() as u32 - 1
            }
        };
        self.by_digest.insert(shape.digest().to_owned(), table);
        self.by_address.insert(address, (Arc::clone(shape), table));
        table
    }

    fn number_of_root(&mut self, id: &str) -> u32 {
        let known = self.root_ids.iter().position(|known| known == id);
        let number = known.unwrap_or_else(|| {
            self.root_ids.push(id.to_owned());
            self.root_ids.len() - 1
        });
        number as u32
    }

    /// The node ids (archetype ids or codes) that stand at the roots of shapes; [`Table::root_id`] numbers them.
    pub fn root_ids(&self) -> impl Iterator<Item = &str> {
        self.root_ids.iter().map(String::as_str)
    }

    /// Says that a document is no longer the latest version of its object.
    pub fn supersede(&mut self, document: u32) {
        self.derived.take();
        if let Some(doc) = self.docs.get_mut(document as usize) {
            doc.row.latest = false;
        }
        self.set_flag(document);
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

    /// The words of the columns of a table.
    fn words_of(&self, table: u32) -> &Words {
        match self.derived.get() {
            Some(derived) if table >= DERIVED => derived.batch.words.words(),
            _ => self.words.words(),
        }
    }

    /// The texts of the text columns of [`Batch::tables`].
    pub fn words(&self) -> &Words {
        self.words.words()
    }

    /// Tells layouts apart, those of all batches: it changes with the list of tables, with the runs that the fragments of a table
    /// are parts of, and when a run first has a fragment without parts.
    pub fn layout(&self) -> u64 {
        self.layout
    }

    /// The fragment that another is a part of.
    pub fn whole_of(&self, part: Fragment) -> Option<Fragment> {
        let table = self.table(part.table)?;
        let doc = *table.docs.get(part.row as usize)?;
        table.origins.iter().find_map(|(number, run)| {
            let docs = self.table(*number)?.docs();
            let first = docs.partition_point(|other| *other < doc) as u32;
            let own = docs.get(first as usize..)?.iter().take_while(|other| **other == doc).count() as u32;
            let mut wholes = (first..first + own).map(|row| Fragment { table: *number, row });
            wholes.find(|whole| self.parts(*whole, *run).contains(&part))
        })
    }

    /// The value of a leaf item of a fragment: a constant of the shape, or the slot.
    pub fn leaf(&self, fragment: Fragment, item: u32) -> Option<Leaf<'_>> {
        let table = self.table(fragment.table)?;
        let item = table.shape.item(item)?;
        match item.kind {
            ItemKind::Slot(_, slot) => table.column(slot)?.leaf(fragment.row, self.words_of(fragment.table)),
            ItemKind::Constant(Kind::Number, ..) => table.shape.text(item).parse().ok().map(Leaf::Number),
            ItemKind::Constant(Kind::Boolean, ..) => Some(Leaf::Boolean(table.shape.text(item) == "true")),
            ItemKind::Constant(..) => Some(Leaf::Text(table.shape.text(item))),
            _ => None,
        }
    }

    /// The point in time that a slot of a fragment holds, where it is one: microseconds since 0001-01-01T00:00Z.
    pub fn point(&self, fragment: Fragment, item: u32) -> Option<i64> {
        let table = self.table(fragment.table)?;
        match table.shape.item(item)?.kind {
            ItemKind::Slot(_, slot) => table.column(slot)?.point(fragment.row),
            _ => None,
        }
    }

    /// Appends the text of a leaf item of a fragment as it was sent.
    pub fn write_leaf(&self, fragment: Fragment, item: u32, out: &mut String) {
        let Some(table) = self.table(fragment.table) else { return };
        match table.shape.item(item).map(|i| (i.kind, i)) {
            Some((ItemKind::Slot(_, slot), _)) => drop(table.column(slot).map(|c| c.write(fragment.row, self.words_of(fragment.table), out))),
            Some((ItemKind::Constant(..), item)) => out.push_str(table.shape.text(item)),
            _ => {}
        }
    }

    /// A document as it was packed.
    pub fn packed(&self, fragment: Fragment) -> Option<Packed> {
        let mut text = String::new();
        let root = self.part(fragment, &mut text)?;
        Some(Packed::new(text, root))
    }

    fn part(&self, fragment: Fragment, text: &mut String) -> Option<Part> {
        let table = self.table(fragment.table)?;
        let mut part = Part { shape: Arc::clone(&table.shape), slots: Vec::new(), runs: Vec::new() };
        for item in table.shape.slots() {
            let start = text.len() as u32;
            self.write_leaf(fragment, *item, text);
            part.slots.push((start, text.len() as u32));
        }
        for run in 0..table.runs.len() as u32 {
            part.runs.push(self.parts(fragment, run).iter().map(|part| self.part(*part, text)).collect::<Option<_>>()?);
        }
        Some(part)
    }

    /// The fragments of a run, in list order.
    pub fn parts(&self, fragment: Fragment, run: u32) -> &[Fragment] {
        self.table(fragment.table).map_or(&[], |table| table.parts(fragment.row, run))
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
        tables + self.words.bytes() + self.docs.capacity() * (std::mem::size_of::<Doc>() + 9) + self.ehrs.len() * 200
    }
}

/// The next number of a layout.
fn new_layout() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
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
    fn new(shape: Arc<Shape>, root_id: Option<u32>) -> Table {
        let column = |index: &u32| match shape.item(*index) {
            Some(item) if item.attr == Some(Attr::VALUE) && shape.item(item.parent).is_some_and(|p| p.class == Cls::DV_DATE_TIME) => {
                Column::of_moments()
            }
            Some(Item { kind: ItemKind::Slot(kind, _), .. }) => Column::new(*kind),
            _ => Column::new(Kind::Text),
        };
        let columns = shape.slots().iter().map(column).collect();
        let runs = shape.parts().iter().map(|_| Run::default()).collect();
        Table { shape, root_id, docs: Vec::new(), places: Vec::new(), columns, runs, hidden: Vec::new(), origins: Vec::new() }
    }

    /// The fragments of a run of one row, in list order.
    fn parts(&self, row: u32, run: u32) -> &[Fragment] {
        let Some(run) = self.runs.get(run as usize) else { return &[] };
        let start = row.checked_sub(1).and_then(|before| run.ends.get(before as usize)).copied().unwrap_or(0);
        let end = run.ends.get(row as usize).copied().unwrap_or(start);
        run.parts.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The fragments of no living document, in order; see [`Batch::live`].
    pub fn hidden(&self) -> &[u32] {
        &self.hidden
    }

    /// The runs, by table and number, that its fragments are parts of.
    pub fn origins(&self) -> &[(u32, u32)] {
        &self.origins
    }

    /// True when some fragment has no part in a run.
    pub fn has_empty(&self, run: u32) -> bool {
        self.runs.get(run as usize).is_none_or(|run| run.has_empty)
    }

    /// The shape of every fragment in it.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// The number of the node id that the root of every fragment has; `None` where they differ or have none.
    pub fn root_id(&self) -> Option<u32> {
        self.root_id
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

    fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|c| c.bytes() + std::mem::size_of::<Column>()).sum();
        let runs: usize = self.runs.iter().map(|r| r.ends.capacity() * 4 + r.parts.capacity() * 8).sum();
        columns + runs + self.docs.capacity() * 8 + self.hidden.capacity() * 4 + std::mem::size_of_val(self.shape.items())
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
        let (Some(column), words) = (self.table.column(slot), self.batch.words_of(self.fragment.table)) else { return };
        match (kind, column.leaf(self.fragment.row, words)) {
            (Kind::Text, Some(Leaf::Text(text))) => quote_into(out, text),
            _ => column.write(self.fragment.row, words, out),
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
