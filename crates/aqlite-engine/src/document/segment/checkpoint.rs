//! Checkpoints: a whole batch in a file, from which it is opened and can grow further.
//!
//! A checkpoint has the parts of a segment in one file, and a head that describes them. It differs
//! from a segment in these ways:
//!
//! - It can be the only copy of its documents, so every failure is an error.
//! - The first checkpoint orders the texts by column. Later ones keep their numbers, so an
//!   unchanged part is copied from the last checkpoint.
//! - Its head has the names of classes and attributes, so that a later release with other numbers
//!   can read it.

use super::form::{Differences, Fragments, StoredColumn, StoredPage, StoredStructure, Vocabulary};
use super::{
    DAMAGED, MAX_PART_BYTES, StoredData, StoredDocs, StoredTable, StoredVersions, TablePart,
    TablePartName, checksum,
};
use crate::codec;
use crate::document::Batch;
use crate::document::batch::{ChildLists, DocumentData, DocumentVersions, Structure, Table};
use crate::document::codec::{ByteReader, ByteWriter, Codec};
use crate::document::column::{Column, Dictionary, DictionaryTexts, PAGE, Page};
use crate::document::part::{Part, Restore};
use crate::document::part_file::{PartFile, Region};
use crate::document::text_index::{SortedHashes, TextIndex};
use aqlite_rm::order;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// The invariant that does not hold if a batch cannot be written.
const UNREADABLE: &str = "a part of the last checkpoint cannot be read";

/// The number of bytes after which a step of writing ends.
const STEP: usize = 256 << 10;

/// A batch without its parts, as the head of a checkpoint stores it.
struct StoredBatch {
    vocabulary: Vocabulary,
    /// For each EHR: 0 for an owner that is no EHR, 1 if population queries leave it out, 2 if they
    /// read it.
    ehrs: Vec<u8>,
    ehr_fragments: Fragments,
    docs: StoredDocs,
    explicit_object_ids: Vec<(u32, String)>,
    root_ids: Vec<String>,
    fragments: u32,
    texts: u32,
    /// The bytes of all texts of the dictionary.
    size: u64,
    tables: Vec<StoredTable>,
    /// The hidden rows of each table.
    hidden: Vec<Differences>,
    /// The regions of the parts: structure and columns of each table, the pages of texts, the index
    /// of texts, the fragments of documents.
    regions: Vec<Region>,
}

codec!(StoredBatch {
    vocabulary,
    ehrs,
    ehr_fragments,
    docs,
    explicit_object_ids,
    root_ids,
    fragments,
    texts,
    size,
    tables,
    hidden,
    regions,
});
codec!(StoredDocs {
    ehrs,
    first_ordinal,
    ordinals,
    kinds,
    latest,
    deleted,
});

/// The fragments of all documents.
struct StoredDocumentFragments {
    numbers: Vec<u32>,
    versions: Fragments,
    data: Fragments,
}

impl StoredDocumentFragments {
    fn of(versions: &DocumentVersions, data: &DocumentData) -> StoredDocumentFragments {
        StoredDocumentFragments {
            numbers: versions.numbers.clone(),
            versions: Fragments::of(&versions.fragments),
            data: Fragments::of(&data.0),
        }
    }
}

codec!(StoredDocumentFragments {
    numbers,
    versions,
    data,
});
codec!(StoredTable {
    layout,
    rows,
    root_id,
    archetype,
    origins,
});

/// The name of a part that a checkpoint stores.
#[derive(Clone, Copy)]
enum PartName {
    Structure(usize),
    Column(usize, usize),
    Page(usize),
    Index,
    DocumentFragments,
}

/// A writer of a batch, part by part. The batch must not change before the head is written.
pub struct CheckpointWriter {
    /// The parts that are not written yet, in reverse order, with their numbers.
    left: Vec<(usize, PartName)>,
    regions: Vec<Region>,
    /// The order of the texts in the file; `None` if they keep their numbers.
    order: Option<TextOrder>,
    /// The number of bytes that were written.
    at: u64,
}

/// An order of texts by the columns that use them. The texts of a column are consecutive, so that a
/// query reads few pages.
struct TextOrder {
    /// For each old number the new one; [`u32::MAX`] for a text without one.
    numbers: Vec<u32>,
    /// The old numbers in the new order.
    text_ids: Vec<u32>,
}

impl TextOrder {
    fn new(texts: usize) -> TextOrder {
        TextOrder {
            numbers: vec![u32::MAX; texts],
            text_ids: Vec::with_capacity(texts),
        }
    }

    /// Returns the new number of an id, which is the next one at its first use.
    fn number_of(&mut self, id: u32) -> u32 {
        let Some(number) = self.numbers.get_mut(id as usize) else {
            return u32::MAX;
        };
        if *number == u32::MAX {
            *number = self.text_ids.len() as u32;
            self.text_ids.push(id);
        }
        *number
    }

    /// Returns the old numbers of the texts of a page, after all columns were written.
    fn page(&mut self, page: usize) -> &[u32] {
        if self.text_ids.len() < self.numbers.len() {
            // Texts that no column uses are at the end.
            for id in 0..self.numbers.len() as u32 {
                self.number_of(id);
            }
        }
        let rest = self.text_ids.get(page * PAGE..).unwrap_or_default();
        rest.get(..PAGE).unwrap_or(rest)
    }
}

impl CheckpointWriter {
    /// Creates a writer of a batch.
    pub fn new(batch: &Batch) -> CheckpointWriter {
        let parts = batch.tables.iter().enumerate().flat_map(|(at, table)| {
            let columns = (0..table.columns.len()).map(move |column| PartName::Column(at, column));
            let names = std::iter::once(PartName::Structure(at)).chain(columns);
            // The child lists are stored with the structure.
            let parts = TablePart::all(table)
                .filter(|part| !matches!(part.name, TablePartName::ChildLists));
            parts.map(|part| part.rank).zip(names)
        });
        let mut ranked: Vec<_> = parts.enumerate().collect();
        // Parts are numbered table by table. Parts that one query reads are stored next to each
        // other.
        order::sort_by(&mut ranked, |(a, (one, _)), (b, (other, _))| {
            one.cmp(other).then(a.cmp(b))
        });
        let mut left: Vec<(usize, PartName)> = ranked
            .into_iter()
            .map(|(number, (_, name))| (number, name))
            .collect();
        let pages = (0..batch.dictionary.texts().pages().len()).map(PartName::Page);
        let rest = pages.chain([PartName::Index, PartName::DocumentFragments]);
        left.extend((left.len()..).zip(rest));
        let regions = vec![Region::default(); left.len()];
        left.reverse();
        CheckpointWriter {
            left,
            regions,
            order: batch
                .file
                .is_none()
                .then(|| TextOrder::new(batch.dictionary.len())),
            at: 0,
        }
    }

    /// Returns the bytes that follow those of the last call; `None` if all parts are written.
    ///
    /// # Errors
    /// If an unchanged part cannot be read from the last checkpoint, or a part is too large.
    pub fn step(&mut self, batch: &Batch) -> Result<Option<Vec<u8>>, String> {
        let mut bytes = Vec::new();
        while bytes.len() < STEP {
            let Some((number, name)) = self.left.pop() else {
                break;
            };
            let part = batch.stored_part(name, &mut self.order).map_err(|why| {
                let failure = batch.failure().map(str::to_owned);
                failure.unwrap_or_else(|| why.to_owned())
            })?;
            let region = self.regions.get_mut(number).ok_or(DAMAGED)?;
            *region = Region::of(&part, self.at + bytes.len() as u64);
            bytes.extend(part);
        }
        self.at += bytes.len() as u64;
        Ok((!bytes.is_empty()).then_some(bytes))
    }

    /// Returns the region of a part that the repository appends behind those of this batch.
    pub fn append(&mut self, part: &[u8]) -> Region {
        let region = Region::of(part, self.at);
        self.at += part.len() as u64;
        region
    }

    /// Returns the head for [`Batch::open`], after all parts were written.
    ///
    /// # Errors
    /// If the batch is broken.
    pub fn head(self, batch: &Batch) -> Result<Vec<u8>, &'static str> {
        if let Some(broken) = batch.broken() {
            return Err(broken);
        }
        if batch.base != 0 || batch.united.is_some() || batch.is_late || !self.left.is_empty() {
            return Err("a checkpoint needs a whole batch of its own");
        }
        let explicit_object_ids = batch.explicit_object_ids.iter();
        let hidden = batch.tables.iter().map(Table::hidden);
        Ok(encode(&StoredBatch {
            vocabulary: Vocabulary::own(),
            ehrs: batch.ehrs.iter().copied().map(number_of_state).collect(),
            ehr_fragments: Fragments::of(&batch.ehr_fragments),
            docs: StoredDocs::of(&batch.docs),
            explicit_object_ids: explicit_object_ids
                .map(|(d, id)| (*d, id.clone()))
                .collect(),
            root_ids: batch.root_ids.clone(),
            fragments: batch.fragments,
            texts: batch.dictionary.len() as u32,
            size: batch.dictionary.size() as u64,
            tables: batch.tables.iter().map(StoredTable::of).collect(),
            hidden: hidden
                .map(|rows| Differences::of(rows.iter().copied()))
                .collect(),
            regions: self.regions,
        }))
    }
}

/// Encodes and compresses a value with a checksum, for [`decode_with_checksum`].
pub fn encode_with_checksum<T: Codec>(magic: [u8; 4], value: &T) -> Vec<u8> {
    let body = lz4_flex::compress_prepend_size(&encode(value));
    let sum = checksum(&body).to_le_bytes();
    [magic.as_slice(), &sum, &body].concat()
}

/// Decodes the bytes of [`encode_with_checksum`]; `None` if they are damaged or have other first bytes.
pub fn decode_with_checksum<T: Codec>(magic: [u8; 4], bytes: &[u8]) -> Option<T> {
    let (sum, body) = bytes.strip_prefix(&magic)?.split_first_chunk::<8>()?;
    if checksum(body) != u64::from_le_bytes(*sum) {
        return None;
    }
    // The checksum is correct, so the size is the one that was written.
    let plain = lz4_flex::decompress_size_prepended(body).ok()?;
    decode(&plain)
}

fn encode<T: Codec>(value: &T) -> Vec<u8> {
    let mut out = ByteWriter::default();
    value.write(&mut out);
    out.into_bytes()
}

fn decode<T: Codec>(bytes: &[u8]) -> Option<T> {
    let mut from = ByteReader::new(bytes);
    let value = T::read(&mut from)?;
    from.is_at_end().then_some(value)
}

/// Decodes a part that [`encode_part`] has encoded.
fn decode_part<T: Codec>(bytes: &[u8]) -> Result<T, &'static str> {
    decode(&decompress(bytes)?).ok_or(DAMAGED)
}

fn decompress(part: &[u8]) -> Result<Vec<u8>, &'static str> {
    // The size comes from a file, so it is checked before memory is allocated.
    let (size, _) = lz4_flex::block::uncompressed_size(part).map_err(|_| DAMAGED)?;
    if size > MAX_PART_BYTES {
        return Err(DAMAGED);
    }
    lz4_flex::decompress_size_prepended(part).map_err(|_| DAMAGED)
}

fn number_of_state(is_queryable: Option<bool>) -> u8 {
    is_queryable.map_or(0, |is_queryable| 1 + u8::from(is_queryable))
}

fn state_of_number(number: u8) -> Option<bool> {
    (number > 0).then_some(number > 1)
}

/// Encodes and compresses a part, and checks its size, so that it can be read again.
fn encode_part<T: Codec>(part: &T) -> Result<Vec<u8>, &'static str> {
    compress(&encode(part))
}

fn compress(plain: &[u8]) -> Result<Vec<u8>, &'static str> {
    if plain.len() > MAX_PART_BYTES {
        return Err("a part of a checkpoint is too large");
    }
    Ok(lz4_flex::compress_prepend_size(plain))
}

/// Returns the bytes of a part: copied from the last checkpoint if it is unchanged, otherwise
/// encoded by `make`.
fn unchanged_or<T: Restore>(
    part: &Part<T>,
    make: impl FnOnce(&T) -> Result<Vec<u8>, &'static str>,
) -> Result<Vec<u8>, &'static str> {
    match part.unchanged() {
        Some((file, region)) => copied(file, region),
        None => make(part.get().ok_or(UNREADABLE)?),
    }
}

/// Returns the bytes of the structure and the child lists of a table. A change of a table changes
/// its structure.
fn stored_structure(table: &Table) -> Result<Vec<u8>, &'static str> {
    unchanged_or(&table.structure, |structure| {
        let lists = table.child_lists.get().ok_or(UNREADABLE)?;
        encode_part(&StoredStructure::with_child_lists(structure, lists))
    })
}

fn copied(file: &PartFile, region: Region) -> Result<Vec<u8>, &'static str> {
    let bytes = file.read(region, |bytes| Ok(bytes.to_vec()));
    bytes.ok_or(UNREADABLE)
}

impl Batch {
    /// Encodes a part of the batch.
    fn stored_part(
        &self,
        name: PartName,
        order: &mut Option<TextOrder>,
    ) -> Result<Vec<u8>, &'static str> {
        let table = |number: usize| self.tables.get(number).ok_or(DAMAGED);
        match name {
            PartName::Structure(number) => stored_structure(table(number)?),
            PartName::Column(number, column) => {
                let column = table(number)?.columns.get(column).ok_or(DAMAGED)?;
                let number_of = |id| order.as_mut().map_or(id, |order| order.number_of(id));
                unchanged_or(column, |column| {
                    encode_part(&StoredColumn::of(column, number_of))
                })
            }
            PartName::Page(number) => self.stored_page(number, order),
            PartName::Index => self.stored_words(order.as_ref()),
            PartName::DocumentFragments => unchanged_or(&self.docs.versions, |versions| {
                let data = self.docs.data.get().ok_or(UNREADABLE)?;
                encode_part(&StoredDocumentFragments::of(versions, data))
            }),
        }
    }

    fn stored_page(
        &self,
        number: usize,
        order: &mut Option<TextOrder>,
    ) -> Result<Vec<u8>, &'static str> {
        let texts = self.dictionary.texts();
        if let Some(order) = order {
            let page = order.page(number).iter();
            return encode_part(&StoredPage::of(page.map(|id| texts.text(*id))));
        }
        unchanged_or(texts.pages().get(number).ok_or(DAMAGED)?, |page| {
            encode_part(&StoredPage::of((0..page.len()).map(|at| page.text(at))))
        })
    }

    /// Encodes the index of texts.
    fn stored_words(&self, order: Option<&TextOrder>) -> Result<Vec<u8>, &'static str> {
        let texts = self.dictionary.texts();
        let Some(order) = order else {
            return self.stored_index(self.dictionary.index(), |id| texts.text(id));
        };
        let sorted = self.dictionary.index().sorted(|id| texts.text(id));
        let sorted = sorted.ok_or(UNREADABLE)?;
        let number = |id: &u32| order.numbers.get(*id as usize).copied();
        let numbers = sorted.numbers.iter().map(number);
        encode_part(&StoredIndex {
            hashes: Differences::of(sorted.hashes.iter().copied()),
            numbers: numbers.collect::<Option<_>>().ok_or(DAMAGED)?,
        })
    }

    /// Encodes an index. `text_of` returns the text of a number.
    ///
    /// # Errors
    /// If the index cannot be read from the last checkpoint.
    pub fn stored_index<'t>(
        &self,
        index: &TextIndex,
        text_of: impl Fn(u32) -> &'t str,
    ) -> Result<Vec<u8>, &'static str> {
        if let Some((file, region)) = index.unchanged() {
            return copied(file, region);
        }
        let sorted = index.sorted(text_of).ok_or(UNREADABLE)?;
        encode_part(&StoredIndex {
            hashes: Differences::of(sorted.hashes),
            numbers: sorted.numbers,
        })
    }

    /// Opens a batch from the head of [`CheckpointWriter::head`] and the file with its parts. No
    /// part is read yet.
    ///
    /// # Errors
    /// If the head is damaged, or names classes or attributes that this release does not know.
    pub fn open(head: &[u8], file: &Rc<PartFile>) -> Result<Batch, &'static str> {
        let head: StoredBatch = decode(head).ok_or(DAMAGED)?;
        let mut regions = head.regions.into_iter();
        let mut region = || regions.next().ok_or(DAMAGED);
        let mut batch = Batch::unlisted();
        for (table, hidden) in head.tables.into_iter().zip(&head.hidden) {
            let root = table.root();
            let layout = Arc::new(table.layout.layout_in(&head.vocabulary)?);
            let mut opened = Table::late(layout, root, table.rows, Arc::default());
            // Both parts have one region. Each is decoded at its first use.
            let both = region()?;
            opened.structure = Part::stored(file, both, table.rows);
            opened.child_lists = Part::stored(file, both, opened.groups());
            for column in &mut opened.columns {
                *column = Part::stored(file, region()?, 0);
            }
            opened.hidden = OnceLock::from(hidden.numbers());
            opened.origins = table.origins;
            batch.tables.push(opened);
        }
        let pages = (0..head.texts.div_ceil(PAGE as u32)).map(|page| {
            let len = (head.texts - page * PAGE as u32).min(PAGE as u32);
            Ok(Part::stored(file, region()?, len))
        });
        let pages = pages.collect::<Result<Vec<_>, &'static str>>()?;
        let index = TextIndex::stored(file, region()?, head.texts);
        let texts = DictionaryTexts::in_pages(pages, head.texts);
        batch.dictionary = Dictionary::stored(texts, head.size as usize, index);
        batch.ehrs = head.ehrs.into_iter().map(state_of_number).collect();
        let docs = head.docs.docs()?.in_state(&[], &batch.ehrs);
        batch.docs = docs.ok_or(DAMAGED)?;
        let (both, documents) = (region()?, batch.docs.len() as u32);
        batch.docs.versions = Part::stored(file, both, documents);
        batch.docs.data = Part::stored(file, both, documents);
        batch.ehr_fragments = head.ehr_fragments.fragments(0)?;
        if batch.ehr_fragments.len() != batch.ehrs.len() || regions.next().is_some() {
            return Err(DAMAGED);
        }
        batch.explicit_object_ids = head.explicit_object_ids.into_iter().collect();
        batch.root_ids = head.root_ids;
        batch.fragments = head.fragments;
        batch.file = Some(Rc::clone(file));
        Ok(batch)
    }
}

/// The encoded form of an index.
struct StoredIndex {
    hashes: Differences,
    numbers: Vec<u32>,
}

codec!(StoredIndex { hashes, numbers });

impl Restore for SortedHashes {
    fn restore(bytes: &[u8], len: u32) -> Result<SortedHashes, &'static str> {
        let stored: StoredIndex = decode_part(bytes)?;
        let hashes = stored.hashes.numbers();
        let lengths = [hashes.len(), stored.numbers.len()];
        if lengths.iter().any(|length| *length != len as usize) || !hashes.is_sorted() {
            return Err(DAMAGED);
        }
        Ok(SortedHashes {
            hashes,
            numbers: stored.numbers,
        })
    }
}

impl Restore for Structure {
    fn restore(bytes: &[u8], rows: u32) -> Result<Structure, &'static str> {
        decode_part::<StoredStructure>(bytes)?.structure(rows as usize)
    }
}

impl Restore for ChildLists {
    fn restore(bytes: &[u8], groups: u32) -> Result<ChildLists, &'static str> {
        let stored: StoredStructure = decode_part(bytes)?;
        stored.into_child_lists().lists(groups as usize, 0)
    }
}

impl Restore for Column {
    fn restore(bytes: &[u8], _: u32) -> Result<Column, &'static str> {
        decode_part::<StoredColumn>(bytes)?.column()
    }
}

impl Restore for Page {
    fn restore(bytes: &[u8], texts: u32) -> Result<Page, &'static str> {
        let page = decode_part::<StoredPage>(bytes)?.page()?;
        if page.len() == texts as usize {
            Ok(page)
        } else {
            Err(DAMAGED)
        }
    }
}

impl Restore for DocumentVersions {
    fn restore(bytes: &[u8], documents: u32) -> Result<DocumentVersions, &'static str> {
        let StoredDocumentFragments {
            numbers, versions, ..
        } = decode_part(bytes)?;
        let fragments = versions;
        StoredVersions { numbers, fragments }.versions(documents as usize, 0)
    }
}

impl Restore for DocumentData {
    fn restore(bytes: &[u8], documents: u32) -> Result<DocumentData, &'static str> {
        let stored: StoredDocumentFragments = decode_part(bytes)?;
        StoredData(stored.data).data(documents as usize, 0)
    }
}
