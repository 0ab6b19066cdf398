//! Batches: many packed documents as columns, with one table for all layouts that merge.

mod child_lists;
mod derived;
mod docs;
mod ehr;
mod insert;
mod presence;
mod restore;
mod table;
mod union;

pub(super) use child_lists::{ChildLists, RepeatedGroup};
pub use derived::VersionedObject;
pub use docs::{Doc, DocRow, DocState, ObjectKind};
pub(super) use docs::{Docs, DocumentData, DocumentFlags, DocumentVersions};
pub use ehr::EhrRow;
pub use presence::{Bitmap, PresenceBitmap};
pub use table::{ColumnView, Table};
pub(super) use table::{Structure, TableRoot};
pub use union::{Ranges, UnionPart};

use super::column::{Dictionary, DictionaryTexts, Leaf, push};
use super::layout::{ItemKind, Layout, LayoutStore};
use super::pack::pack;
use super::part_file::PartFile;
use super::rule::NothingKnown;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::id::object_id_of;
use aqlite_rm::number;
use aqlite_rm::tree::Kind;
use derived::{DERIVED, Derived};
use ehr::ehr_tree;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use table::LayoutMapping;
use union::Union;

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
    pub const NONE: Fragment = Fragment {
        table: u32::MAX,
        row: 0,
    };
}

/// A cached mapping, which is valid as long as its layout exists.
type CachedMapping = (Weak<Layout>, Rc<LayoutMapping>);

/// The numbers of EHRs by id. In a batch of a checkpoint, they are computed at the first lookup.
#[derive(Debug)]
struct EhrNumbers(OnceCell<HashMap<String, u32>>);

impl Default for EhrNumbers {
    fn default() -> EhrNumbers {
        EhrNumbers(OnceCell::from(HashMap::new()))
    }
}

/// The documents of each EHR. In a batch of a segment, they are computed at the first use.
#[derive(Debug)]
struct ByEhr(OnceCell<Vec<Vec<u32>>>);

impl Default for ByEhr {
    fn default() -> ByEhr {
        ByEhr(OnceCell::from(Vec::new()))
    }
}

impl ByEhr {
    fn add_ehr(&mut self) {
        if let Some(by_ehr) = self.0.get_mut() {
            by_ehr.push(Vec::new());
        }
    }

    fn add(&mut self, ehr: u32, document: u32) {
        let by_ehr = self.0.get_mut();
        if let Some(documents) = by_ehr.and_then(|by_ehr| by_ehr.get_mut(ehr as usize)) {
            push(documents, document);
        }
    }
}

/// Many packed documents with their EHRs, and the tables of their fragments.
#[derive(Debug, Default)]
pub struct Batch {
    /// For each EHR, whether population queries read it; `None` for a removed one.
    pub(super) ehrs: Vec<Option<bool>>,
    pub(super) docs: Docs,
    /// The dictionary of the texts of all columns.
    pub(super) dictionary: Dictionary,
    /// The object ids that are not the beginning of the uid of the version, by document.
    pub(super) explicit_object_ids: HashMap<u32, String>,
    ehr_numbers: EhrNumbers,
    pub(super) ehr_fragments: Vec<Fragment>,
    by_ehr: ByEhr,
    pub(super) fragments: u32,
    layouts: LayoutStore,
    pub(super) tables: Vec<Table>,
    /// Recent mappings by the address of the layout and the number of the archetype. The weak
    /// reference keeps the address from being reused.
    mappings: HashMap<(usize, Option<u32>), CachedMapping>,
    /// The node ids of the roots of layouts.
    pub(super) root_ids: Vec<String>,
    /// The number of the first table.
    pub(super) base: u32,
    pub(super) schema_id: u64,
    /// The invariant that did not hold when data were added, if any.
    pub(super) broken: Option<&'static str>,
    /// Whether the batch was read from a segment, so that parts can be absent: see
    /// [`Batch::wanted`].
    pub(super) is_late: bool,
    /// The bytes of the loaded parts of tables, and the number of loads when they were measured.
    pub(super) measured: Cell<Option<(u64, usize)>>,
    /// The file of the checkpoint from which the batch was opened.
    pub(super) file: Option<Rc<PartFile>>,
    derived: OnceCell<Box<Derived>>,
    /// The batches whose tables and documents this one has, if it is a union.
    pub(super) united: Option<Box<Union>>,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Creates an empty batch whose first table has this number, so that it can be united with
    /// others.
    pub fn with_first_table(number: u32) -> Batch {
        Batch {
            base: number,
            ..Batch::default()
        }
    }

    /// Creates an empty batch for the data of a segment.
    pub(super) fn late() -> Batch {
        Batch {
            by_ehr: ByEhr(OnceCell::new()),
            is_late: true,
            ..Batch::default()
        }
    }

    /// Creates an empty batch for the data of a checkpoint.
    pub(super) fn unlisted() -> Batch {
        Batch {
            by_ehr: ByEhr(OnceCell::new()),
            ehr_numbers: EhrNumbers(OnceCell::new()),
            schema_id: new_schema_id(),
            ..Batch::default()
        }
    }

    /// Returns the reason why a part of the checkpoint of the batch could not be read. Everything
    /// that was computed since the batch was opened is then invalid.
    pub fn failure(&self) -> Option<&str> {
        self.file.as_ref()?.failure()
    }

    /// Returns the number of documents, including removed ones.
    pub fn len(&self) -> usize {
        match &self.united {
            Some(union) => union.len(),
            None => self.docs.len(),
        }
    }

    /// Returns the broken invariant, if any. The batch is then incomplete, and no result may be
    /// computed from it.
    pub fn broken(&self) -> Option<&'static str> {
        // Derived objects are cached, and could have been derived without the absent parts.
        let is_partial = self.is_late && self.derived.get().is_some();
        let derived = "objects of whole EHRs were derived from a segment";
        let united = self.united.as_deref().and_then(Union::broken);
        let unread = self.failure().map(|_| "a file of the data is damaged");
        let own = unread
            .or(self.broken)
            .or(united)
            .or(is_partial.then_some(derived));
        own.or_else(|| self.derived.get()?.batch.broken)
    }

    /// Returns whether the batch has no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an EHR, and returns its number.
    pub fn add_ehr(&mut self, ehr: EhrRow) -> u32 {
        // Derived objects depend on all data of an EHR, so every change discards them.
        self.derived.take();
        let number = self.ehrs.len() as u32;
        let tree = ehr_tree(&ehr);
        if let Some(root) = tree.root() {
            let packed = pack(root, &NothingKnown, &self.layouts);
            let fragment = self.add_root(number, &packed);
            self.ehr_fragments.push(fragment);
        }
        self.ehrs.push(Some(ehr.is_queryable));
        if let Some(numbers) = self.ehr_numbers.0.get_mut() {
            numbers.insert(ehr.ehr_id, number);
        }
        self.by_ehr.add_ehr();
        number
    }

    /// Returns the number of the EHR with an id.
    pub fn ehr_number(&self, ehr_id: &str) -> Option<u32> {
        self.ehr_numbers
            .0
            .get_or_init(|| self.list_ehrs())
            .get(ehr_id)
            .copied()
            // The index still has removed EHRs.
            .filter(|number| self.has_ehr(*number))
    }

    fn list_ehrs(&self) -> HashMap<String, u32> {
        let ehrs = (0..self.ehrs.len() as u32).filter_map(|ehr| {
            let id = self.ehr_id(ehr)?;
            Some((id.to_owned(), ehr))
        });
        ehrs.collect()
    }

    /// Returns the fragment of the EHR object. Its table stores the number of the EHR where other
    /// tables store the number of the document.
    pub fn ehr_fragment(&self, ehr: u32) -> Option<Fragment> {
        self.ehr_fragments.get(ehr as usize).copied()
    }

    /// Returns the fragment that a class expression of a whole document binds: its EHR, its
    /// version, or its data.
    pub fn bound(&self, class: Cls, document: u32) -> Option<Fragment> {
        match class {
            Cls::EHR => self.ehr_fragment(self.docs.ehr(document)?),
            class if class.is_a(Cls::VERSION) => self.docs.version(document),
            _ => self.docs.data(document),
        }
    }

    /// Sets whether population queries read an EHR.
    pub fn set_queryable(&mut self, ehr: u32, is_queryable: bool) {
        if let Some(Some(state)) = self.ehrs.get_mut(ehr as usize) {
            *state = is_queryable;
        }
        self.set_live(ehr);
    }

    fn set_live(&mut self, ehr: u32) {
        for number in self.docs_of(ehr).to_vec() {
            self.update_live(number);
        }
    }

    /// Updates whether population queries read a document.
    pub(super) fn update_live(&mut self, document: u32) {
        let is_queryable = self
            .docs
            .ehr(document)
            .is_some_and(|ehr| self.is_queryable(ehr));
        let lives = is_queryable && self.docs.is_current(document);
        if self.docs.set_live(document, lives) && !self.is_late {
            self.hide(self.docs.version(document), !lives);
        }
    }

    /// Adds the fragments of a document to the hidden rows of their tables, or removes them.
    fn hide(&mut self, version: Option<Fragment>, hidden: bool) {
        let mut fragments = Vec::from_iter(version);
        while let Some(fragment) = fragments.pop() {
            let Some(table) = self.tables.get_mut((fragment.table - self.base) as usize) else {
                continue;
            };
            table.hide(fragment.row, hidden);
            (0..table.groups()).for_each(|group| {
                fragments.extend_from_slice(table.child_rows(fragment.row, group))
            });
        }
    }

    /// Returns for each document whether population queries read it: the latest version of an
    /// object that is not deleted, in an EHR that takes part in population queries.
    pub fn live(&self) -> &[bool] {
        self.docs.live()
    }

    /// Adds an owner of documents other than an EHR, and returns its number. No query reads these
    /// documents.
    pub fn add_owner(&mut self) -> u32 {
        let number = self.ehrs.len() as u32;
        self.ehrs.push(None);
        self.by_ehr.add_ehr();
        self.ehr_fragments.push(Fragment::NONE);
        number
    }

    /// Returns VERSIONED_OBJECT.uid.value of a document of a complete batch, for an index of ids.
    ///
    /// Returns the empty text where [`Batch::find_object_id`] returns `None`. It equals no id, so
    /// the document is not found.
    pub fn object_id(&self, document: u32) -> &str {
        self.find_object_id(document).unwrap_or_default()
    }

    /// Returns VERSIONED_OBJECT.uid.value of a document.
    ///
    /// Every document has one. `None` means that a part of a segment is absent, or that an
    /// invariant is broken.
    pub fn find_object_id(&self, document: u32) -> Option<&str> {
        if let Some(union) = &self.united {
            return union.find_object_id(document);
        }
        let in_uid = || self.object_in_uid(self.doc(document)?.version);
        self.explicit_object_ids
            .get(&document)
            .map(String::as_str)
            .or_else(in_uid)
    }

    fn object_in_uid(&self, version: Fragment) -> Option<&str> {
        self.text_along(version, &[Attr::UID, Attr::VALUE])
            .map(object_id_of)
    }

    /// Returns the text at the end of a path of single attributes from the root of a fragment.
    pub fn text_along(&self, fragment: Fragment, path: &[Attr]) -> Option<&str> {
        match self.leaf_along(fragment, path)? {
            Leaf::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the leaf at the end of a path of single attributes from the root of a fragment.
    pub(super) fn leaf_along(&self, fragment: Fragment, path: &[Attr]) -> Option<Leaf<'_>> {
        let (mut at, mut item) = (fragment, 0);
        for attr in path {
            let table = self.table(at.table)?;
            let layout = table.layout();
            item = layout
                .child(item, *attr)
                .filter(|item| table.has(at.row, *item))?;
            // The path continues at the root of the child fragment.
            if let ItemKind::Group(group) = layout.item(item)?.kind {
                (at, item) = (*self.child_rows(at, group).first()?, 0);
            }
        }
        self.leaf(at, item)
    }

    /// Returns the node ids (archetype ids or codes) of the roots of layouts. [`Table::root_id`] is
    /// an index into them.
    pub fn root_ids(&self) -> impl Iterator<Item = &str> {
        self.root_ids.iter().map(String::as_str)
    }

    /// Records that a document is no longer the latest version of its object.
    pub fn supersede(&mut self, document: u32) {
        self.derived.take();
        self.docs.supersede(document);
        self.update_live(document);
    }

    /// Excludes an EHR and its documents from all results.
    pub fn remove_ehr(&mut self, ehr: u32) {
        self.derived.take();
        if let Some(row) = self.ehrs.get_mut(ehr as usize) {
            *row = None;
        }
        self.set_live(ehr);
    }

    /// Returns the numbers of the EHRs, in creation order, without removed ones.
    pub fn ehrs(&self) -> impl Iterator<Item = u32> {
        let states = (0..).zip(&self.ehrs);
        states.filter_map(|(ehr, state)| state.map(|_| ehr))
    }

    /// Returns the number of EHRs, including removed ones.
    pub fn ehr_count(&self) -> usize {
        self.ehrs.len()
    }

    /// Returns whether an EHR exists and was not removed.
    pub fn has_ehr(&self, ehr: u32) -> bool {
        matches!(self.ehrs.get(ehr as usize), Some(Some(_)))
    }

    /// Returns whether population queries read an EHR.
    pub fn is_queryable(&self, ehr: u32) -> bool {
        self.ehrs.get(ehr as usize).copied().flatten() == Some(true)
    }

    /// Returns the metadata of an EHR; `None` for a removed one.
    pub fn ehr(&self, ehr: u32) -> Option<EhrRow> {
        let is_queryable = self.ehrs.get(ehr as usize).copied().flatten()?;
        let fragment = self.ehr_fragment(ehr)?;
        let text = |attr| self.leaf_along(fragment, &[attr, Attr::VALUE])?.as_text();
        Some(EhrRow {
            ehr_id: self.ehr_id(ehr)?.to_owned(),
            system_id: text(Attr::SYSTEM_ID)?.into_owned(),
            time_created: text(Attr::TIME_CREATED)?.into_owned(),
            is_queryable,
        })
    }

    /// Returns EHR.ehr_id.value; `None` for a removed EHR.
    pub fn ehr_id(&self, ehr: u32) -> Option<&str> {
        let fragment = self.ehr_fragment(ehr).filter(|_| self.has_ehr(ehr))?;
        self.text_along(fragment, &[Attr::EHR_ID, Attr::VALUE])
    }

    /// Returns the number of fragments. Pre-order numbers are below it.
    pub fn fragment_count(&self) -> u32 {
        self.fragments
    }

    /// Returns the documents of an EHR in commit order.
    pub fn docs_of(&self, ehr: u32) -> &[u32] {
        if let Some(union) = &self.united {
            return union.docs_of(ehr);
        }
        let by_ehr = self.by_ehr.0.get_or_init(|| self.list_by_ehr());
        by_ehr.get(ehr as usize).map_or(&[], Vec::as_slice)
    }

    fn list_by_ehr(&self) -> Vec<Vec<u32>> {
        let mut by_ehr = vec![Vec::new(); self.ehrs.len()];
        for document in 0..self.len() as u32 {
            let ehr = self.docs.ehr(document);
            let documents = ehr.and_then(|ehr| by_ehr.get_mut(ehr as usize));
            documents
                .into_iter()
                .for_each(|documents| push(documents, document));
        }
        by_ehr
    }

    /// Returns all documents in commit order.
    pub fn docs(&self) -> impl Iterator<Item = Doc> {
        self.docs_among(0..self.len() as u32)
    }

    /// Returns the documents in a range of numbers.
    pub fn docs_among(&self, numbers: Range<u32>) -> impl Iterator<Item = Doc> {
        numbers.map_while(|document| self.doc(document))
    }

    /// Returns a document by its number.
    pub fn doc(&self, document: u32) -> Option<Doc> {
        match &self.united {
            Some(union) => union.doc(document),
            None => self.docs.get(document),
        }
    }

    /// Returns the owner of a fragment: the number of its document, or of the EHR for the fragment
    /// of an EHR object.
    pub fn owner_of(&self, fragment: Fragment) -> Option<u32> {
        let table = self.table(fragment.table)?;
        let owner = *table.docs().get(fragment.row as usize)?;
        match &self.united {
            Some(union) if fragment.table < DERIVED => union.owner(table, fragment.table, owner),
            _ => Some(owner),
        }
    }

    /// Returns the place of a document in the commit order of the whole repository.
    pub fn ordinal_of(&self, document: u32) -> Option<u64> {
        match &self.united {
            Some(union) => union.ordinal_of(document),
            None => self.docs.ordinal(document),
        }
    }

    /// Returns the number of the EHR of a document.
    pub fn ehr_of(&self, document: u32) -> Option<u32> {
        match &self.united {
            Some(union) => union.ehr_of(document),
            None => self.docs.ehr(document),
        }
    }

    /// Returns one of the batches of a union, with the number in the union of its first document.
    /// Any other batch is its own only part.
    pub fn part(&self, number: usize) -> Option<(&Batch, u32)> {
        match &self.united {
            Some(union) => union.part(number),
            None => (number == 0).then_some((self, 0)),
        }
    }

    /// Returns the EHR of a document if it is the latest version of an object and not a deletion.
    pub fn owner_of_current(&self, document: u32) -> Option<u32> {
        let owner = self.docs.ehr(document);
        owner.filter(|_| self.docs.is_current(document))
    }

    /// Returns the tables of documents and EHRs, with their numbers.
    pub fn tables(&self) -> impl Iterator<Item = (u32, &Table)> {
        let united = self.united.iter().flat_map(|union| union.tables());
        self.own_tables().chain(united)
    }

    fn own_tables(&self) -> impl Iterator<Item = (u32, &Table)> {
        (self.base..).zip(&self.tables)
    }

    /// Returns one of the tables of [`Batch::tables`] by number.
    pub fn stored_table(&self, number: u32) -> Option<&Table> {
        match &self.united {
            Some(union) => union.part_of(number)?.stored_table(number),
            None => self.tables.get(number.checked_sub(self.base)? as usize),
        }
    }

    /// Returns a table by number, including the tables of derived objects.
    pub fn table(&self, number: u32) -> Option<&Table> {
        // Numbers from `DERIVED` on belong to tables of derived objects.
        if number >= DERIVED && self.base < DERIVED {
            return self.derived.get()?.batch.table(number);
        }
        self.stored_table(number)
    }

    /// Returns the dictionary texts of the columns of a table.
    fn texts_of(&self, table: u32) -> &DictionaryTexts {
        let derived = self.derived.get().filter(|_| table >= DERIVED);
        let of_derived = derived.map(|derived| &derived.batch);
        let of_union = || self.united.as_ref()?.part_of(table);
        of_derived
            .or_else(of_union)
            .unwrap_or(self)
            .dictionary
            .texts()
    }

    /// Returns the dictionary texts of the text columns of [`Batch::tables`]. A union has no
    /// dictionary, so its cells are copies.
    pub fn texts(&self) -> &DictionaryTexts {
        self.dictionary.texts()
    }

    /// Returns the identifier of the batch schema, which is unique among all batches.
    ///
    /// The schema consists of the tables, their merged layouts, and the repeated groups from which
    /// each table receives its rows. Each change of it results in a new identifier.
    pub fn schema_id(&self) -> u64 {
        self.schema_id
    }

    /// Returns the parent row of a fragment; `None` for a root.
    pub fn parent_of(&self, child: Fragment) -> Option<Fragment> {
        let table = self.table(child.table)?;
        let doc = *table.docs().get(child.row as usize)?;
        table.origins.iter().find_map(|(number, group)| {
            let docs = self.table(*number)?.docs();
            // Rows are appended document by document, so those of one document are consecutive.
            let first = docs.partition_point(|other| *other < doc) as u32;
            let own = docs
                .get(first as usize..)?
                .iter()
                .take_while(|other| **other == doc)
                .count() as u32;
            let mut parents = (first..first + own).map(|row| Fragment {
                table: *number,
                row,
            });
            parents.find(|parent| self.child_rows(*parent, *group).contains(&child))
        })
    }

    /// Returns the value of a leaf of a fragment: a constant of the layout, or a leaf value.
    pub fn leaf(&self, fragment: Fragment, item: u32) -> Option<Leaf<'_>> {
        let table = self.table(fragment.table)?;
        let item = table.layout().item(item)?;
        match item.kind {
            ItemKind::Leaf(_, leaf) => table
                .column_view(leaf)?
                .leaf(fragment.row, self.texts_of(fragment.table)),
            ItemKind::Constant {
                kind: Kind::Number, ..
            } => number::parse(table.layout().text(item)).map(Leaf::Number),
            ItemKind::Constant {
                kind: Kind::Boolean,
                ..
            } => Some(Leaf::Boolean(table.layout().text(item) == "true")),
            ItemKind::Constant { .. } => Some(Leaf::Text(table.layout().text(item))),
            _ => None,
        }
    }

    /// Returns the point in time of a leaf value in microseconds since 0001-01-01T00:00Z; `None` if
    /// the value is no exact point in time.
    pub fn point(&self, fragment: Fragment, item: u32) -> Option<i64> {
        let table = self.table(fragment.table)?;
        match table.layout().item(item)?.kind {
            ItemKind::Leaf(_, leaf) => table.column_view(leaf)?.point(fragment.row),
            _ => None,
        }
    }

    /// Appends the text of a leaf of a fragment as it was sent.
    pub fn write_leaf(&self, fragment: Fragment, item: u32, out: &mut String) {
        let Some(table) = self.table(fragment.table) else {
            return;
        };
        match table.layout().item(item).map(|i| (i.kind, i)) {
            Some((ItemKind::Leaf(_, leaf), _)) => drop(
                table
                    .column_view(leaf)
                    .map(|c| c.write(fragment.row, self.texts_of(fragment.table), out)),
            ),
            Some((ItemKind::Constant { .. }, item)) => out.push_str(table.layout().text(item)),
            _ => {}
        }
    }

    /// Returns the child rows of a repeated group, in list order.
    pub fn child_rows(&self, fragment: Fragment, group: u32) -> &[Fragment] {
        self.table(fragment.table)
            .map_or(&[], |table| table.child_rows(fragment.row, group))
    }

    /// Returns the child row at a single attribute of the root of a fragment, such as the data of a
    /// version.
    pub fn child_at(&self, fragment: Fragment, attr: Attr) -> Option<Fragment> {
        let table = self.table(fragment.table)?;
        match table.layout().item(table.layout().child(0, attr)?)?.kind {
            ItemKind::Group(group) => self.child_rows(fragment, group).first().copied(),
            _ => None,
        }
    }

    /// Returns an estimate of the bytes in use.
    pub fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::bytes).sum();
        let mappings: usize = self
            .mappings
            .values()
            .map(|(_, mapping)| mapping.bytes())
            .sum();
        let united = self.united.as_ref().map_or(0, |union| union.bytes());
        let own = tables + mappings + self.dictionary.bytes() + self.docs.bytes();
        own + united + self.ehrs.len() * 100
    }
}

/// Returns an identifier that no other batch schema of this process has.
pub(super) fn new_schema_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Only uniqueness matters, so no ordering with other memory is needed.
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
