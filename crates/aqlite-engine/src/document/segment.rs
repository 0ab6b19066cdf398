//! Segments: immutable copies of the documents of a range of commits as columns.
//!
//! A segment is an encoded [`Batch`]. Its *head* describes layouts, documents and the positions of
//! all other *parts*: the structure of a table, its child lists, a column, a page of texts. The parts are stored in
//! *values* of some hundred kilobytes, so that a store without range reads returns few of them for
//! a query. A batch that is read from a segment has no parts at first. A query finds out which
//! parts it needs by reading them: see [`Batch::wanted`].
//!
//! A segment is a copy. If it cannot be read, the documents are read from the database instead, so
//! every error here means that the segment is treated as absent.

mod checkpoint;
mod form;
mod load;

use super::batch::{Docs, DocumentData, DocumentFlags, DocumentVersions, ObjectKind, Table};
use super::column::{Column, Dictionary, DictionaryTexts, PAGE, Page};
use super::digest::fnv;
use super::layout::Item;
use super::part::{self, Part};
use super::zone_map::ZoneMap;
use super::{Batch, Layout};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;
use bitcode::{Decode, Encode};
pub use checkpoint::{CheckpointWriter, decode_with_checksum, encode_with_checksum};
use form::{
    Differences, Fragments, StoredChildLists, StoredColumn, StoredLayout, StoredPage,
    StoredStructure,
};
pub use load::share_parts;
use load::{load_child_lists, load_column, load_structure};
use std::sync::Arc;
use twox_hash::XxHash64;

/// The first bytes of a head. The last byte is the version of the encoding.
const MAGIC: [u8; 4] = *b"AQS\x08";

/// The number of bytes after which a value is complete.
const VALUE_BYTES: usize = 256 << 10;

/// The largest size of a part in bytes, before compression.
const MAX_PART_BYTES: usize = 64 << 20;

/// The invariant that does not hold if a stored segment cannot be read.
const DAMAGED: &str = "a part of a segment is damaged";

/// An encoded segment.
#[derive(Debug)]
pub struct EncodedSegment {
    /// The head.
    pub head: Vec<u8>,
    /// The values with the parts, by number of the value.
    pub values: Vec<Vec<u8>>,
}

/// The position of a part in the values of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct PartPlace {
    /// The number of the value.
    pub value: u32,
    /// The position in the value of its first byte.
    pub start: u32,
    /// The position in the value behind its last byte.
    pub end: u32,
    /// An estimate of the memory in bytes that the loaded part takes.
    pub memory: u32,
    /// The [`checksum`] of the bytes.
    checksum: u64,
}

/// The state of the documents of a segment, which changes after the segment was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentState<'s> {
    /// The ordinals of documents that were superseded after the segment was written, ascending.
    pub superseded: &'s [u64],
    /// The repository's numbers of the EHRs that population queries do not read, ascending.
    pub unqueryable: &'s [u64],
}

/// An earlier state of the documents of a segment.
#[derive(Clone, Copy, Debug)]
pub struct PastState<'s> {
    /// The ordinal of the newest version of the state.
    pub until: u64,
    /// The ordinals of the versions that were superseded after this state, ascending.
    pub revived: &'s [u64],
    /// The repository's numbers of the EHRs that population queries did not read, ascending.
    pub unqueryable: &'s [u64],
}

/// A segment whose head was decoded.
#[derive(Debug)]
pub struct Segment {
    head: Head,
    layouts: Vec<Arc<super::Layout>>,
    zone_maps: Vec<Arc<[Option<ZoneMap>]>>,
    docs: Docs,
    schema_id: u64,
    /// The number of the first table of its batches.
    base: u32,
}

#[derive(Encode, Decode)]
struct Head {
    /// The hash of the names of classes and attributes in the order of their numbers, by which
    /// layouts refer to them.
    vocabulary: u64,
    /// For each EHR of the segment its number in the repository.
    ehrs: Vec<u64>,
    ehr_fragments: Fragments,
    docs: StoredDocs,
    /// The object ids that are not the beginning of the uid of the version, by document.
    explicit_object_ids: Vec<(u32, String)>,
    root_ids: Vec<String>,
    fragments: u32,
    texts: u32,
    tables: Vec<StoredTable>,
    /// The zone map of each column, table by table.
    zone_maps: Vec<Vec<Option<ZoneMap>>>,
    /// The parts: structure, child lists and columns of each table, then the pages of texts, then the
    /// versions and the data of documents.
    parts: Vec<PartPlace>,
}

impl PartPlace {
    /// The position of a part that is not stored yet.
    const NOWHERE: PartPlace = PartPlace {
        value: u32::MAX,
        start: 0,
        end: 0,
        memory: 0,
        checksum: 0,
    };
}

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} tables, {} parts",
            self.tables.len(),
            self.parts.len()
        )
    }
}

#[derive(Default, Encode, Decode)]
struct StoredDocs {
    ehrs: Differences,
    first_ordinal: u64,
    ordinals: Differences,
    kinds: Vec<u8>,
    latest: Vec<bool>,
    deleted: Vec<bool>,
}

#[derive(Encode, Decode)]
struct StoredVersions {
    numbers: Vec<u32>,
    fragments: Fragments,
}

#[derive(Encode, Decode)]
struct StoredData(Fragments);

#[derive(Encode, Decode)]
struct StoredTable {
    layout: StoredLayout,
    rows: u32,
    root_id: Option<u32>,
    archetype: Option<u32>,
    origins: Vec<(u32, u32)>,
}

/// Returns the hash of the names of classes and attributes.
fn vocabulary() -> u64 {
    let classes = (0..=u8::MAX).filter_map(Cls::from_number).map(Cls::name);
    let attributes = (0..=u8::MAX).filter_map(Attr::from_number).map(Attr::name);
    // The byte 0xFF occurs in no UTF-8 text, so it separates the names.
    fnv(classes
        .chain(attributes)
        .flat_map(|name| name.bytes().chain([0xff])))
}

/// Computes the XXH64 hash of bytes. It detects damage, not forgery, and reads eight bytes at a time.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

fn encode_part<T: Encode>(value: &T) -> Vec<u8> {
    lz4_flex::compress_prepend_size(&bitcode::encode(value))
}

fn decode_part<T: for<'d> Decode<'d>>(bytes: &[u8]) -> Result<T, &'static str> {
    // The size comes from a file, so it is checked before memory is allocated.
    let (size, _) = lz4_flex::block::uncompressed_size(bytes).map_err(|_| DAMAGED)?;
    if size > MAX_PART_BYTES {
        return Err(DAMAGED);
    }
    let plain = lz4_flex::decompress_size_prepended(bytes).map_err(|_| DAMAGED)?;
    bitcode::decode(&plain).map_err(|_| DAMAGED)
}

impl Batch {
    /// Encodes a batch as a segment. `ehrs` has for each EHR its number in the repository.
    ///
    /// # Errors
    /// If the batch was read from a segment and lacks parts, if it is broken, or if the number of
    /// EHRs differs.
    pub fn to_segment(&self, ehrs: &[u64]) -> Result<EncodedSegment, &'static str> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        if self.base != 0 || self.united.is_some() {
            return Err("a segment needs a batch of its own");
        }
        if ehrs.len() != self.ehrs.len() {
            return Err("a segment needs the number of each of its EHRs");
        }
        let mut encoder = Encoder::new(self.dictionary.len());
        encoder.add_tables(&self.tables)?;
        // The columns come first, because they determine the order of the texts.
        encoder.add_texts(self.dictionary.texts());
        let absent = "a batch with absent parts cannot become a segment";
        let versions = self.docs.versions.present().ok_or(absent)?;
        encoder.add(&StoredVersions::of(versions), versions.bytes());
        let data = self.docs.data.present().ok_or(absent)?;
        encoder.add(&StoredData::of(data), data.bytes());
        let body = encode_part(&self.head(ehrs, encoder.text_ids.len() as u32, encoder.places));
        // The checksum covers the compressed bytes, so damage is found before decompression.
        let sum = checksum(&body).to_le_bytes();
        Ok(EncodedSegment {
            head: [MAGIC.as_slice(), &sum, &body].concat(),
            values: encoder.values,
        })
    }

    /// Returns the head of the segment of the batch; `parts` are the positions of its parts.
    fn head(&self, ehrs: &[u64], texts: u32, parts: Vec<PartPlace>) -> Head {
        let explicit_object_ids = self.explicit_object_ids.iter();
        Head {
            vocabulary: vocabulary(),
            ehrs: ehrs.to_vec(),
            ehr_fragments: Fragments::of(&self.ehr_fragments),
            docs: StoredDocs::of(&self.docs),
            explicit_object_ids: explicit_object_ids
                .map(|(d, id)| (*d, id.clone()))
                .collect(),
            root_ids: self.root_ids.clone(),
            fragments: self.fragments,
            texts,
            tables: self.tables.iter().map(StoredTable::of).collect(),
            zone_maps: self.tables.iter().map(zone_maps_of).collect(),
            parts,
        }
    }

    /// Estimates the memory in bytes for encoding the batch as a segment: a page of texts, which
    /// can hold most of them, is copied, encoded and compressed.
    pub fn encoding_bytes(&self) -> usize {
        self.bytes() + 3 * self.dictionary.bytes()
    }

    /// Returns the numbers of the absent parts that were read, ascending.
    ///
    /// A result that was computed from the batch is valid only if the computation made no
    /// [`absent_reads`]. Otherwise the parts must be loaded ([`Segment::load`]) and the computation
    /// repeated. A part that was absent is missing here if another computation has loaded it since.
    ///
    /// [`absent_reads`]: super::absent_reads
    pub fn wanted(&self) -> Vec<u32> {
        let mut wanted = Vec::new();
        // Parts are counted in the order of `Head::parts`.
        let mut number = 0;
        let mut note = |is_wanted: bool| {
            wanted.extend(is_wanted.then_some(number));
            number += 1;
        };
        for table in &self.tables {
            note(table.structure.is_wanted());
            note(table.child_lists.is_wanted());
            table
                .columns
                .iter()
                .for_each(|column| note(column.is_wanted()));
        }
        let pages = self.dictionary.texts().pages().iter();
        pages.for_each(|page| note(page.is_wanted()));
        note(self.docs.versions.is_wanted());
        note(self.docs.data.is_wanted());
        wanted
    }

    /// Estimates the bytes of the parts that were loaded.
    pub fn late_bytes(&self) -> usize {
        self.bytes_of_tables() + self.dictionary.bytes() + self.docs.late_bytes()
    }

    /// Estimates the bytes of the loaded parts of tables. Each query asks for them, so they are
    /// measured again only after a load.
    fn bytes_of_tables(&self) -> usize {
        let measured = self.measured.get();
        match measured.filter(|(loads, _)| self.is_late && *loads == part::loads()) {
            Some((_, bytes)) => bytes,
            None => {
                let bytes = self.tables.iter().map(Table::late_bytes).sum();
                self.measured.set(Some((part::loads(), bytes)));
                bytes
            }
        }
    }

    /// Returns whether the batch was read from a segment, so that parts of it may be absent.
    pub fn is_late(&self) -> bool {
        self.is_late
    }
}

/// An encoder, which collects parts into values.
struct Encoder {
    places: Vec<PartPlace>,
    values: Vec<Vec<u8>>,
    /// For each text of the batch its number in the segment; [`u32::MAX`] for a text without one.
    numbers: Vec<u32>,
    /// The texts of the batch in the order of the segment. The texts of one column are consecutive,
    /// so that a column needs few pages.
    text_ids: Vec<u32>,
}

impl Encoder {
    fn new(texts: usize) -> Encoder {
        Encoder {
            places: Vec::new(),
            values: vec![Vec::new()],
            numbers: vec![u32::MAX; texts],
            text_ids: Vec::new(),
        }
    }

    /// Adds the next part; `memory` is the estimate for the loaded part.
    fn add(&mut self, part: &impl Encode, memory: usize) {
        self.places.push(PartPlace::NOWHERE);
        self.put(self.places.len() - 1, part, memory);
    }

    /// Stores the part with a number, behind the parts that were stored before.
    fn put(&mut self, number: usize, part: &impl Encode, memory: usize) {
        let bytes = encode_part(part);
        // A part is never divided, so the last part of a value can exceed the size.
        if self
            .values
            .last()
            .is_none_or(|value| value.len() >= VALUE_BYTES)
        {
            self.values.push(Vec::new());
        }
        let last = self.values.len() as u32 - 1;
        let (Some(value), Some(place)) = (self.values.last_mut(), self.places.get_mut(number))
        else {
            return;
        };
        let start = value.len() as u32;
        value.extend_from_slice(&bytes);
        *place = PartPlace {
            value: last,
            start,
            end: value.len() as u32,
            memory: u32::try_from(memory).unwrap_or(u32::MAX),
            checksum: checksum(&bytes),
        };
    }

    /// Adds the structures, child lists and columns of all tables. Parts that one query reads are stored next to
    /// each other, so that it reads few values.
    fn add_tables(&mut self, tables: &[Table]) -> Result<(), &'static str> {
        let absent = "a batch with absent parts cannot become a segment";
        // Parts are numbered table by table, but stored in the order of their ranks.
        let parts = tables.iter().flat_map(TablePart::all).enumerate();
        let mut stored: Vec<(usize, TablePart<'_>)> = parts.collect();
        self.places = vec![PartPlace::NOWHERE; stored.len()];
        order::sort_by(&mut stored, |(_, one), (_, other)| {
            one.rank.cmp(&other.rank)
        });
        for (number, TablePart { table, name, .. }) in stored {
            match name {
                TablePartName::Structure => {
                    let structure = table.structure.present().ok_or(absent)?;
                    self.put(number, &StoredStructure::of(structure), structure.bytes());
                }
                TablePartName::ChildLists => {
                    let lists = table.child_lists.present().ok_or(absent)?;
                    self.put(number, &StoredChildLists::of(lists), lists.bytes());
                }
                TablePartName::Column(column) => {
                    let column = column.present().ok_or(absent)?;
                    let stored = StoredColumn::of(column, |id| self.number_of(id));
                    self.put(number, &stored, column.bytes());
                }
            }
        }
        Ok(())
    }

    fn number_of(&mut self, id: u32) -> u32 {
        let Some(number) = self.numbers.get_mut(id as usize) else {
            return u32::MAX;
        };
        // A text gets its number when a column first uses it.
        if *number == u32::MAX {
            *number = self.text_ids.len() as u32;
            self.text_ids.push(id);
        }
        *number
    }

    fn add_texts(&mut self, texts: &DictionaryTexts) {
        let order = std::mem::take(&mut self.text_ids);
        for page in order.chunks(PAGE) {
            let texts = || page.iter().map(|id| texts.text(*id));
            let memory = texts().map(|text| text.len() + size_of::<u32>()).sum();
            self.add(&StoredPage::of(texts()), memory);
        }
        self.text_ids = order;
    }
}

/// A part of a table, for encoding.
struct TablePart<'t> {
    table: &'t Table,
    name: TablePartName<'t>,
    rank: PartOrder,
}

/// The name of a part of a table.
enum TablePartName<'t> {
    Structure,
    ChildLists,
    Column(&'t Part<Column>),
}

/// The sort key of a part: tables with one kind of root are consecutive, with their structures
/// and child lists first, then their columns by path.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PartOrder {
    archetype: Option<u32>,
    class: &'static str,
    root_id: Option<u32>,
    /// The names of the attributes from the root to the leaf; `None` for a part of no leaf.
    path: Option<Vec<&'static str>>,
}

impl TablePart<'_> {
    /// Returns the parts of a table of a segment, in the order of their numbers.
    fn all(table: &Table) -> impl Iterator<Item = TablePart<'_>> {
        let layout = table.layout();
        let root = table.root();
        let part = move |name, path| TablePart {
            table,
            name,
            rank: PartOrder {
                archetype: root.archetype,
                class: layout.class().name(),
                root_id: root.node_id,
                path,
            },
        };
        let columns = table.columns.iter().zip(layout.leaves());
        let columns = columns.map(move |(column, leaf)| {
            part(TablePartName::Column(column), Some(path_of(layout, *leaf)))
        });
        let rows = [TablePartName::Structure, TablePartName::ChildLists];
        rows.into_iter()
            .map(move |name| part(name, None))
            .chain(columns)
    }
}

/// Returns the names of the attributes from the root of a layout to an item.
fn path_of(layout: &Layout, mut item: u32) -> Vec<&'static str> {
    let mut path = Vec::new();
    // The root contains itself and has no attribute, which ends the loop.
    while let Some(Item {
        attr: Some(attr),
        parent,
        ..
    }) = layout.item(item)
    {
        path.push(attr.name());
        item = *parent;
    }
    path.reverse();
    path
}

/// Returns the zone map of each column of a table.
fn zone_maps_of(table: &Table) -> Vec<Option<ZoneMap>> {
    let columns = table.columns.iter();
    columns.map(|column| column.present()?.zone_map()).collect()
}

impl StoredTable {
    fn of(table: &Table) -> StoredTable {
        let root = table.root();
        StoredTable {
            layout: StoredLayout::of(table.layout()),
            rows: table.len() as u32,
            root_id: root.node_id,
            archetype: root.archetype,
            origins: table.origins.clone(),
        }
    }
}

impl StoredVersions {
    fn of(versions: &DocumentVersions) -> StoredVersions {
        StoredVersions {
            numbers: versions.numbers.clone(),
            fragments: Fragments::of(&versions.fragments),
        }
    }

    /// Returns the versions of `documents` documents, in a batch whose first table has the number
    /// `base`.
    fn versions(self, documents: usize, base: u32) -> Result<DocumentVersions, &'static str> {
        let fragments = self.fragments.fragments(base)?;
        if [self.numbers.len(), fragments.len()] != [documents; 2] {
            return Err(DAMAGED);
        }
        Ok(DocumentVersions {
            numbers: self.numbers,
            fragments,
        })
    }
}

impl StoredData {
    fn of(data: &DocumentData) -> StoredData {
        StoredData(Fragments::of(&data.0))
    }

    /// Returns the data of `documents` documents, in a batch whose first table has the number
    /// `base`.
    fn data(&self, documents: usize, base: u32) -> Result<DocumentData, &'static str> {
        let fragments = self.0.fragments(base)?;
        if fragments.len() != documents {
            return Err(DAMAGED);
        }
        Ok(DocumentData(fragments))
    }
}

impl StoredDocs {
    fn of(docs: &Docs) -> StoredDocs {
        let all = || 0..docs.len() as u32;
        let first_ordinal = docs.ordinal(0).unwrap_or(0);
        // The ordinals of a segment span far fewer than 2³² versions.
        let ordinal = |ordinal: u64| ordinal.wrapping_sub(first_ordinal) as u32;
        let ordinals = all().filter_map(|document| docs.ordinal(document));
        let flags = docs.flags().iter();
        StoredDocs {
            ehrs: Differences::of(all().filter_map(|document| docs.ehr(document))),
            first_ordinal,
            ordinals: Differences::of(ordinals.map(ordinal)),
            kinds: flags.clone().map(|m| m.kind.number() as u8).collect(),
            latest: flags.clone().map(|flags| flags.latest).collect(),
            deleted: flags.map(|flags| flags.deleted).collect(),
        }
    }

    /// Returns the documents without their fragments. Population queries read all of them.
    fn docs(&self) -> Result<Docs, &'static str> {
        let (ehrs, ordinals) = (self.ehrs.numbers(), self.ordinals.numbers());
        let lengths = [
            ordinals.len(),
            self.kinds.len(),
            self.latest.len(),
            self.deleted.len(),
        ];
        // `Docs::at_ordinal` searches the ordinals by bisection, so they must ascend.
        if lengths.iter().any(|length| *length != ehrs.len()) || !ordinals.is_sorted() {
            return Err(DAMAGED);
        }
        let states = self.kinds.iter().zip(&self.latest).zip(&self.deleted);
        let flags = states.map(|((kind, latest), deleted)| {
            Some(DocumentFlags {
                kind: ObjectKind::of_number(u64::from(*kind))?,
                latest: *latest,
                deleted: *deleted,
            })
        });
        let flags = flags.collect::<Option<Vec<_>>>().ok_or(DAMAGED)?;
        let ordinal = |ordinal| self.first_ordinal.wrapping_add(u64::from(ordinal));
        let ordinals = ordinals.into_iter().map(ordinal).collect();
        Ok(Docs::late(ehrs, ordinals, flags))
    }
}

impl Segment {
    /// Decodes the head of a segment.
    ///
    /// # Errors
    /// If it is damaged, or was written by a release with another encoding or another Reference
    /// Model.
    pub fn read(head: &[u8]) -> Result<Segment, &'static str> {
        let rest = head.strip_prefix(&MAGIC).ok_or(DAMAGED)?;
        let (sum, body) = rest.split_first_chunk::<8>().ok_or(DAMAGED)?;
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(DAMAGED);
        }
        let mut head: Head = decode_part(body)?;
        if head.vocabulary != vocabulary() {
            return Err("a segment was written with another Reference Model");
        }
        let layouts = head
            .tables
            .iter()
            .map(|table| table.layout.layout().map(Arc::new));
        let layouts: Vec<_> = layouts.collect::<Result<_, _>>()?;
        // A table has its structure, its child lists and one part for each leaf. The pages of texts
        // follow, then the versions and the data of all documents.
        let parts: usize = layouts.iter().map(|layout| 2 + layout.leaves().len()).sum();
        if head.parts.len() != parts + (head.texts as usize).div_ceil(PAGE) + 2 {
            return Err(DAMAGED);
        }
        let leaves = layouts.iter().map(|layout| layout.leaves().len());
        if !leaves.eq(head.zone_maps.iter().map(Vec::len)) {
            return Err(DAMAGED);
        }
        // Takes the encoded documents, so that memory holds one representation only.
        let docs = std::mem::take(&mut head.docs).docs()?;
        // The layouts were decoded above, so their encoded form is dropped.
        for table in &mut head.tables {
            table.layout = StoredLayout::default();
        }
        let zone_maps = std::mem::take(&mut head.zone_maps);
        Ok(Segment {
            docs,
            layouts,
            zone_maps: zone_maps.into_iter().map(Arc::from).collect(),
            head,
            schema_id: super::batch::new_schema_id(),
            base: 0,
        })
    }

    /// Sets the number of the first table of the batches of the segment. Batches can be united only
    /// if their tables have different numbers: see [`Batch::union`].
    #[must_use]
    pub fn with_first_table(self, number: u32) -> Segment {
        Segment {
            base: number,
            ..self
        }
    }

    /// Returns the number of tables.
    pub fn tables(&self) -> usize {
        self.layouts.len()
    }

    /// Returns for each EHR of the segment its number in the repository.
    pub fn ehrs(&self) -> &[u64] {
        &self.head.ehrs
    }

    /// Returns the position of a part.
    pub fn place(&self, part: u32) -> Option<PartPlace> {
        self.head.parts.get(part as usize).copied()
    }

    /// Creates the batch of the segment in a state of the repository, without any part.
    ///
    /// # Errors
    /// If the head refers to documents or EHRs that it does not have.
    pub fn batch(&self, state: &SegmentState<'_>) -> Result<Batch, &'static str> {
        let mut batch = Batch::late();
        let ehrs = self.head.ehrs.iter();
        batch.ehrs = ehrs.map(|id| Some(state.reads(*id))).collect();
        batch.base = self.base;
        batch.ehr_fragments = self.head.ehr_fragments.fragments(self.base)?;
        let docs = self.docs.in_state(state.superseded, &batch.ehrs);
        batch.docs = docs.ok_or(DAMAGED)?;
        batch.explicit_object_ids = self.head.explicit_object_ids.iter().cloned().collect();
        batch.dictionary = Dictionary::absent(self.head.texts);
        batch.fragments = self.head.fragments;
        batch.root_ids.clone_from(&self.head.root_ids);
        batch.schema_id = self.schema_id;
        let layouts = self.layouts.iter().zip(&self.zone_maps);
        for (table, (layout, zone_maps)) in self.head.tables.iter().zip(layouts) {
            let zone_maps = Arc::clone(zone_maps);
            let mut late = Table::late(Arc::clone(layout), table.root(), table.rows, zone_maps);
            let origins = table.origins.iter();
            late.origins = origins
                .map(|(table, group)| (self.base.saturating_add(*table), *group))
                .collect();
            batch.tables.push(late);
        }
        Ok(batch)
    }

    /// Creates the batch of the segment in another state, sharing the loaded parts of `batch`.
    ///
    /// # Errors
    /// As [`Segment::batch`].
    pub fn renewed(&self, batch: &Batch, state: &SegmentState<'_>) -> Result<Batch, &'static str> {
        let new = self.batch(state)?;
        share_parts(batch, &new);
        Ok(new)
    }

    /// Creates the batch of the segment in an earlier state than that of `batch`, sharing the
    /// loaded parts of `batch`.
    ///
    /// # Errors
    /// As [`Segment::batch`].
    pub fn in_past(&self, batch: &Batch, past: &PastState<'_>) -> Result<Batch, &'static str> {
        let mut old = self.batch(&SegmentState {
            superseded: &[],
            unqueryable: past.unqueryable,
        })?;
        let docs = batch.docs.in_past(past.revived, past.until, &old.ehrs);
        old.docs = docs.ok_or(DAMAGED)?;
        share_parts(batch, &old);
        Ok(old)
    }

    /// Creates the batch of the segment in the state of `batch`, without any part.
    ///
    /// # Errors
    /// As [`Segment::batch`].
    pub fn without_parts(&self, batch: &Batch) -> Result<Batch, &'static str> {
        let mut bare = self.batch(&SegmentState::default())?;
        bare.ehrs.clone_from(&batch.ehrs);
        let docs = batch.docs.without_fragments(&batch.ehrs);
        bare.docs = docs.ok_or(DAMAGED)?;
        Ok(bare)
    }

    /// Loads a part into a batch of this segment. `bytes` are the bytes at [`Segment::place`].
    ///
    /// # Errors
    /// If the bytes are damaged, or if there is no such part.
    pub fn load(&self, batch: &Batch, part: u32, bytes: &[u8]) -> Result<(), &'static str> {
        let place = self.place(part).ok_or(DAMAGED)?;
        if checksum(bytes) != place.checksum {
            return Err(DAMAGED);
        }
        // Parts are counted in the order of `Head::parts`: for each table its structure, its child
        // lists, then its columns.
        let mut first = 0;
        for table in &batch.tables {
            let end = first + 2 + table.columns.len() as u32;
            if part < end {
                return match part - first {
                    0 => load_structure(batch, table, bytes),
                    1 => load_child_lists(batch, table, bytes),
                    column => load_column(batch, table, column as usize - 2, bytes),
                };
            }
            first = end;
        }
        self.load_rest(batch, (part - first) as usize, bytes)
    }

    /// Loads a part behind those of the tables: a page of texts, or the versions or the data of the
    /// documents.
    fn load_rest(&self, batch: &Batch, at: usize, bytes: &[u8]) -> Result<(), &'static str> {
        let pages = batch.dictionary.texts().pages();
        if at == pages.len() {
            let stored: StoredVersions = decode_part(bytes)?;
            let versions = stored.versions(batch.docs.len(), self.base)?;
            batch.docs.versions.load(Arc::new(versions));
            return Ok(());
        }
        if at == pages.len() + 1 {
            let stored: StoredData = decode_part(bytes)?;
            let data = stored.data(batch.docs.len(), self.base)?;
            batch.docs.data.load(Arc::new(data));
            return Ok(());
        }
        let page: Page = decode_part::<StoredPage>(bytes)?.page()?;
        // Only the last page has fewer texts.
        let texts = (self.head.texts as usize)
            .saturating_sub(at * PAGE)
            .min(PAGE);
        if page.len() != texts {
            return Err(DAMAGED);
        }
        pages.get(at).ok_or(DAMAGED)?.load(Arc::new(page));
        Ok(())
    }
}

impl SegmentState<'_> {
    fn reads(&self, ehr: u64) -> bool {
        self.unqueryable.binary_search(&ehr).is_err()
    }
}
