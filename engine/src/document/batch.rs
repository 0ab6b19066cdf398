//! A batch: many packed documents as columns, one table for all shapes that unite.

mod derived;
mod docs;
mod flag;
mod table;

pub use derived::Container;
pub use docs::{Doc, DocState};
pub use flag::{Bits, Flag};
pub use table::{Lane, Table};

use super::column::{Dictionary, Leaf, Words, push};
use super::pack::{FragmentView, Packed, Part, pack, write_json};
use super::rule::NothingKnown;
use super::shape::{ItemKind, Key, Shape, Shapes};
use crate::rm::class::{Attr, Cls};
use crate::rm::id::is_archetype_id;
use crate::rm::json::quote_into;
use crate::rm::number;
use crate::rm::tree::{Kind, Tree};
use derived::{DERIVED, Derived};
use docs::Docs;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use table::Fit;

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
    pub fn number(self) -> u64 {
        match self {
            ObjectKind::Composition => 1,
            ObjectKind::EhrStatus => 2,
            ObjectKind::Folder => 3,
            ObjectKind::Party => 4,
        }
    }

    /// The kind that a number stands for.
    pub fn of_number(number: u64) -> Option<ObjectKind> {
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

/// A fragment: a row of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Fragment {
    /// The number of the table.
    pub table: u32,
    /// The row in it.
    pub row: u32,
}

impl Fragment {
    /// No fragment.
    pub const NONE: Fragment = Fragment { table: u32::MAX, row: 0 };
}

/// Where a fragment stands.
#[derive(Clone, Copy)]
struct Within {
    /// The number of the archetype.
    archetype: Option<u32>,
    /// The place of what it is a part of; its own where it is a part of nothing.
    whole: u32,
}

/// How a shape fits, as long as the shape is there.
type KnownFit = (Weak<Shape>, Rc<Fit>);

/// Many packed documents, their EHRs and the tables of their fragments.
#[derive(Debug, Default)]
pub struct Batch {
    ehrs: Vec<Option<EhrRow>>,
    docs: Docs,
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
    /// How the shapes that came last fit into tables, by address, which stays in use as long as it is named here.
    fits: HashMap<(usize, Option<u32>), KnownFit>,
    /// The node ids of roots.
    root_ids: Vec<String>,
    /// The number of the first table.
    base: u32,
    layout: u64,
    /// The invariant that did not hold when something was added, if any.
    broken: Option<&'static str>,
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

    /// The invariant that did not hold when something was added: what the batch holds is not all that it was given, and no answer may be
    /// made of it.
    pub fn broken(&self) -> Option<&'static str> {
        self.broken
    }

    /// True when it holds no document.
    pub fn is_empty(&self) -> bool {
        self.docs.len() == 0
    }

    /// Adds an EHR and gives its number.
    pub fn add_ehr(&mut self, ehr: EhrRow) -> u32 {
        self.derived.take();
        let number = self.ehrs.len() as u32;
        let tree = ehr_tree(&ehr);
        if let Some(root) = tree.root() {
            let packed = pack(root, &NothingKnown, &self.shapes);
            let fragment = self.add_whole(number, &packed);
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
    pub fn bound(&self, class: Cls, document: u32) -> Option<Fragment> {
        match class {
            Cls::EHR => self.ehr_fragment(self.docs.ehr(document)?),
            class if class.is_a(Cls::VERSION) => self.docs.version(document),
            _ => self.docs.data(document),
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
        let lives = self.doc(document).is_some_and(|doc| self.lives(&doc));
        if self.docs.set_live(document, lives) {
            self.hide(self.docs.version(document), !lives);
        }
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
            (0..table.runs()).for_each(|run| fragments.extend_from_slice(table.parts(fragment.row, run)));
        }
    }

    fn lives(&self, doc: &Doc) -> bool {
        doc.row.latest && !doc.row.deleted && self.ehr(doc.ehr).is_some_and(|ehr| ehr.is_queryable)
    }

    /// For each document: true for the latest version of an object, not deleted, of an EHR that takes part in population queries.
    pub fn live(&self) -> &[bool] {
        self.docs.live()
    }

    /// Adds a packed ORIGINAL_VERSION and gives its number.
    pub fn add(&mut self, ehr: u32, row: DocRow, packed: &Packed) -> u32 {
        self.derived.take();
        let number = self.docs.len() as u32;
        let version = self.add_whole(number, packed);
        let data = self.part_at(version, Attr::DATA);
        let DocRow { kind, object_id, number: nth, ordinal, latest, deleted } = row;
        let row = DocState { kind, number: nth, ordinal, latest, deleted };
        if self.object_in_uid(version) != Some(&object_id) {
            self.odd_ids.insert(number, object_id);
        }
        self.docs.push(&Doc { document: number, ehr, row, version, data });
        self.set_flag(number);
        if let Some(documents) = self.by_ehr.get_mut(ehr as usize) {
            push(documents, number);
        }
        number
    }

    /// Adds an owner of documents that is no EHR: no query sees them.
    pub fn add_owner(&mut self) -> u32 {
        let number = self.ehrs.len() as u32;
        self.ehrs.push(None);
        self.by_ehr.push(Vec::new());
        self.ehr_fragments.push(Fragment::NONE);
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
            let table = self.table(at.table)?;
            let shape = table.shape();
            item = shape.child(item, *attr).filter(|item| table.has(at.row, *item))?;
            if let ItemKind::Parts(run) = shape.item(item)?.kind {
                (at, item) = (*self.parts(at, run).first()?, 0);
            }
        }
        match self.leaf(at, item)? {
            Leaf::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Adds what is no part of another fragment.
    fn add_whole(&mut self, doc: u32, packed: &Packed) -> Fragment {
        self.add_part(doc, packed, packed.root(), Within { archetype: None, whole: self.fragments })
    }

    /// Adds a fragment with its parts.
    fn add_part(&mut self, doc: u32, packed: &Packed, part: &Part, Within { archetype, whole }: Within) -> Fragment {
        let place = self.fragments;
        self.fragments += 1;
        let inner = if part.runs.is_empty() { None } else { self.fit(&part.shape, archetype).archetype };
        let within = Within { archetype: inner, whole: place };
        let runs: Vec<Vec<Fragment>> =
            part.runs.iter().map(|run| run.iter().map(|of_run| self.add_part(doc, packed, of_run, within)).collect()).collect();
        let fit = self.fit(&part.shape, archetype);
        let number = fit.table;
        let table = self.tables.get_mut((number - self.base) as usize);
        let texts = (0..part.slots.len() as u32).map(|slot| packed.slot(part, slot));
        let Some(row) = table.and_then(|table| table.add((doc, place, whole), &fit, texts, &runs, &mut self.words)) else {
            self.broken = Some("a fragment does not fit the columns of its table");
            return Fragment::NONE;
        };
        let parts = runs.iter().zip(&fit.runs).flat_map(|(parts, run)| parts.iter().map(move |part| (*run, part)));
        for (run, part) in parts {
            let origins = self.tables.get_mut((part.table - self.base) as usize).map(|table| &mut table.origins);
            if let Some(origins) = origins.filter(|origins| !origins.contains(&(number, run))) {
                origins.push((number, run));
                self.layout = new_layout();
            }
        }
        Fragment { table: number, row }
    }

    /// How a shape fits into a table: found anew when the table has changed.
    fn fit(&mut self, shape: &Arc<Shape>, within: Option<u32>) -> Rc<Fit> {
        let address = (Arc::as_ptr(shape) as usize, within);
        let is_new = |fit: &Fit| self.tables.get((fit.table - self.base) as usize).is_some_and(|table| table.grown() == fit.grown);
        if let Some((_, fit)) = self.fits.get(&address).filter(|(_, fit)| is_new(fit)) {
            return Rc::clone(fit);
        }
        if self.fits.len() >= MOST_FITS {
            self.fits.clear();
        }
        let fit = Rc::new(self.find_fit(shape, within));
        self.fits.insert(address, (Arc::downgrade(shape), Rc::clone(&fit)));
        fit
    }

    fn find_fit(&mut self, shape: &Arc<Shape>, within: Option<u32>) -> Fit {
        let id = shape.constant(0, Attr::ARCHETYPE_NODE_ID);
        let root_id = id.map(|id| self.number_of_root(id));
        // A code means something within its archetype only.
        let archetype = if id.is_some_and(is_archetype_id) { root_id } else { within };
        let is_alike = |table: &Table| table.root() == (root_id, archetype) && table.shape().class() == shape.class();
        let alike = self.tables.iter_mut().zip(self.base..).filter(|(table, _)| is_alike(table));
        let found = alike.take(MOST_TRIED).find_map(|(table, number)| Some((table.grown(), table.admit(shape, number)?)));
        if found.as_ref().is_none_or(|(grown, fit)| *grown < fit.grown) {
            self.layout = new_layout();
        }
        found.map(|(_, fit)| fit).unwrap_or_else(|| {
            self.tables.push(Table::new(Arc::clone(shape), (root_id, archetype)));
            Fit::exact(shape, self.base + self.tables.len() as u32 - 1, archetype)
        })
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
        self.docs.supersede(document);
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
    pub fn docs(&self) -> impl Iterator<Item = Doc> {
        self.docs_among(0..self.len() as u32)
    }

    /// The documents with some numbers.
    pub fn docs_among(&self, numbers: Range<u32>) -> impl Iterator<Item = Doc> {
        numbers.map_while(|document| self.doc(document))
    }

    /// One document.
    pub fn doc(&self, document: u32) -> Option<Doc> {
        self.docs.get(document)
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

    /// Tells layouts apart, those of all batches: it changes with the list of tables, with their shapes, and with the runs that the
    /// fragments of a table are parts of.
    pub fn layout(&self) -> u64 {
        self.layout
    }

    /// The fragment that another is a part of.
    pub fn whole_of(&self, part: Fragment) -> Option<Fragment> {
        let table = self.table(part.table)?;
        let doc = *table.docs().get(part.row as usize)?;
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
        let item = table.shape().item(item)?;
        match item.kind {
            ItemKind::Slot(_, slot) => table.lane(slot)?.leaf(fragment.row, self.words_of(fragment.table)),
            ItemKind::Constant(Kind::Number, ..) => number::parse(table.shape().text(item)).map(Leaf::Number),
            ItemKind::Constant(Kind::Boolean, ..) => Some(Leaf::Boolean(table.shape().text(item) == "true")),
            ItemKind::Constant(..) => Some(Leaf::Text(table.shape().text(item))),
            _ => None,
        }
    }

    /// The point in time that a slot of a fragment holds, where it is one: microseconds since 0001-01-01T00:00Z.
    pub fn point(&self, fragment: Fragment, item: u32) -> Option<i64> {
        let table = self.table(fragment.table)?;
        match table.shape().item(item)?.kind {
            ItemKind::Slot(_, slot) => table.lane(slot)?.point(fragment.row),
            _ => None,
        }
    }

    /// Appends the text of a leaf item of a fragment as it was sent.
    pub fn write_leaf(&self, fragment: Fragment, item: u32, out: &mut String) {
        let Some(table) = self.table(fragment.table) else { return };
        match table.shape().item(item).map(|i| (i.kind, i)) {
            Some((ItemKind::Slot(_, slot), _)) => drop(table.lane(slot).map(|c| c.write(fragment.row, self.words_of(fragment.table), out))),
            Some((ItemKind::Constant(..), item)) => out.push_str(table.shape().text(item)),
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
        let (mut key, mut open, mut slots, mut runs) = (Key::default(), Vec::new(), Vec::new(), Vec::new());
        for (index, item) in (0..).zip(table.shape().items()) {
            while open.last().is_some_and(|end| *end <= index) {
                open.pop();
                key.close();
            }
            match item.kind {
                _ if !table.has(fragment.row, index) => {}
                ItemKind::Object | ItemKind::List => {
                    key.open(item.attr, item.class, if item.kind == ItemKind::List { Kind::List } else { Kind::Object });
                    open.push(item.end);
                }
                ItemKind::Constant(kind, ..) => key.constant(item.attr, item.class, kind, table.shape().text(item)),
                ItemKind::Slot(kind, _) => {
                    key.slot(item.attr, item.class, kind);
                    let start = text.len() as u32;
                    self.write_leaf(fragment, index, text);
                    slots.push((start, text.len() as u32));
                }
                ItemKind::Parts(run) => {
                    key.parts(item.attr, item.class);
                    runs.push(self.parts(fragment, run).iter().map(|part| self.part(*part, text)).collect::<Option<_>>()?);
                }
            }
        }
        open.iter().for_each(|_| key.close());
        Some(Part { shape: self.shapes.intern(key.bytes()), slots, runs })
    }

    /// The fragments of a run, in list order.
    pub fn parts(&self, fragment: Fragment, run: u32) -> &[Fragment] {
        self.table(fragment.table).map_or(&[], |table| table.parts(fragment.row, run))
    }

    /// The fragment at a single attribute of a fragment's root, such as the data of a version.
    pub fn part_at(&self, fragment: Fragment, attr: Attr) -> Option<Fragment> {
        let table = self.table(fragment.table)?;
        match table.shape().item(table.shape().child(0, attr)?)?.kind {
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
        let fits: usize = self.fits.values().map(|(_, fit)| fit.bytes()).sum();
        tables + fits + self.words.bytes() + self.docs.bytes() + self.ehrs.len() * 200
    }
}

/// So many fits are remembered at once; then all are forgotten.
const MOST_FITS: usize = 1 << 13;
/// In so many tables of the same class and node id a shape is tried; then it gets its own.
const MOST_TRIED: usize = 64;

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

struct BatchView<'a> {
    batch: &'a Batch,
    table: &'a Table,
    fragment: Fragment,
}

impl FragmentView for BatchView<'_> {
    fn shape(&self) -> &Shape {
        self.table.shape()
    }

    fn has(&self, item: u32) -> bool {
        self.table.has(self.fragment.row, item)
    }

    fn write_slot(&self, slot: u32, kind: Kind, out: &mut String) {
        let (Some(lane), words) = (self.table.lane(slot), self.batch.words_of(self.fragment.table)) else { return };
        match (kind, lane.leaf(self.fragment.row, words)) {
            (Kind::Text, Some(Leaf::Text(text))) => quote_into(out, text),
            _ => lane.write(self.fragment.row, words, out),
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
