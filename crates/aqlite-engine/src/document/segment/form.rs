//! The encoded forms of the parts of a segment: lists of numbers that compress well.
//!
//! Ascending numbers are stored as differences, decimal numbers as integers with their number of
//! decimals, and times as multiples of their greatest common divisor.

mod moments;

use super::StoredTable;
use crate::codec;
use crate::document::batch::{
    ChildLists, Fragment, PresenceBitmap, RepeatedGroup, Structure, TableRoot,
};
use crate::document::codec::{ByteReader, ByteWriter, Codec};
use crate::document::column::{Column, NumberColumn, Page};
use crate::document::layout::{Item, ItemKind, Layout, kind_number, kind_of};
use aqlite_rm::class::{Attr, Cls};
use bitcode::{Decode, Encode};
use moments::{StoredMoments, TextMoments};

/// The invariant that does not hold if a stored part has lists of different lengths.
const UNEVEN: &str = "the lists of a part of a segment do not fit together";

/// The invariant that does not hold if stored numbers are those of no column.
const DAMAGED_NUMBERS: &str = "the numbers of a part of a segment are damaged";

/// Numbers as differences to the previous number.
#[derive(Default, Encode, Decode)]
pub(super) struct Differences(Vec<i32>);

impl Differences {
    pub fn of(numbers: impl IntoIterator<Item = u32>) -> Differences {
        let mut last = 0u32;
        // Differences wrap around, so descending numbers are restored exactly too.
        let difference = |number: u32| {
            let difference = number.wrapping_sub(last) as i32;
            last = number;
            difference
        };
        Differences(numbers.into_iter().map(difference).collect())
    }

    pub fn numbers(&self) -> Vec<u32> {
        let mut last = 0u32;
        let number = |difference: &i32| {
            last = last.wrapping_add(*difference as u32);
            last
        };
        self.0.iter().map(number).collect()
    }
}

/// An encoded list of fragments.
#[derive(Default, Encode, Decode)]
pub(super) struct Fragments {
    tables: Vec<u32>,
    rows: Differences,
}

impl Fragments {
    pub fn of(fragments: &[Fragment]) -> Fragments {
        Fragments {
            tables: fragments.iter().map(|fragment| fragment.table).collect(),
            rows: Differences::of(fragments.iter().map(|fragment| fragment.row)),
        }
    }

    /// Decodes the fragments, in a batch whose first table has the number `base`.
    ///
    /// # Errors
    /// If the lists differ in length.
    pub fn fragments(&self, base: u32) -> Result<Vec<Fragment>, &'static str> {
        if self.tables.len() != self.rows.0.len() {
            return Err(UNEVEN);
        }
        // The sum cannot reach `Fragment::NONE`, which has the greatest number.
        let number = |table: u32| match table {
            u32::MAX => u32::MAX,
            table => base.saturating_add(table).min(u32::MAX - 1),
        };
        let pairs = self.tables.iter().zip(self.rows.numbers());
        let fragments = pairs.map(|(table, row)| Fragment {
            table: number(*table),
            row,
        });
        Ok(fragments.collect())
    }
}

/// The encoded structure of a table.
#[derive(Encode, Decode)]
pub(super) struct StoredStructure {
    docs: Differences,
    preorder: Differences,
    /// The difference between the pre-order number of each row and that of its parent row; 0 for a
    /// row without a parent.
    parent_distances: Vec<u32>,
    /// The child lists of a checkpoint. Those of a segment are a part of their own.
    groups: Vec<StoredGroup>,
    bitmaps: Vec<Vec<u64>>,
}

/// The encoded child lists of a table.
#[derive(Encode, Decode)]
pub(super) struct StoredChildLists(Vec<StoredGroup>);

#[derive(Encode, Decode)]
struct StoredGroup {
    ends: Differences,
    rows: Fragments,
}

impl StoredStructure {
    /// Encodes a structure without child lists.
    pub fn of(structure: &Structure) -> StoredStructure {
        let pairs = structure.preorder.iter().zip(&structure.parent_preorder);
        StoredStructure {
            docs: Differences::of(structure.docs.iter().copied()),
            preorder: Differences::of(structure.preorder.iter().copied()),
            parent_distances: pairs
                .map(|(preorder, parent)| preorder.wrapping_sub(*parent))
                .collect(),
            groups: Vec::new(),
            bitmaps: structure.bitmaps.iter().map(|b| b.to_words()).collect(),
        }
    }

    /// Encodes a structure with child lists.
    pub fn with_child_lists(structure: &Structure, lists: &ChildLists) -> StoredStructure {
        StoredStructure {
            groups: StoredChildLists::of(lists).0,
            ..StoredStructure::of(structure)
        }
    }

    /// Decodes the structure of a table with `rows` rows.
    ///
    /// # Errors
    /// If the encoded lists belong to another table.
    pub fn structure(&self, rows: usize) -> Result<Structure, &'static str> {
        let (docs, preorder) = (self.docs.numbers(), self.preorder.numbers());
        let lengths = [docs.len(), preorder.len(), self.parent_distances.len()];
        if lengths.iter().any(|length| *length != rows) {
            return Err(UNEVEN);
        }
        let parents = preorder.iter().zip(&self.parent_distances);
        let bitmaps = self.bitmaps.iter().cloned();
        Ok(Structure {
            parent_preorder: parents
                .map(|(preorder, distance)| preorder.wrapping_sub(*distance))
                .collect(),
            docs,
            preorder,
            bitmaps: bitmaps.map(PresenceBitmap::from_words).collect(),
        })
    }

    /// Returns the child lists of a checkpoint.
    pub fn into_child_lists(self) -> StoredChildLists {
        StoredChildLists(self.groups)
    }
}

impl StoredChildLists {
    pub fn of(ChildLists(groups): &ChildLists) -> StoredChildLists {
        let group = |group: &RepeatedGroup| StoredGroup {
            ends: Differences::of(group.ends.iter().copied()),
            rows: Fragments::of(&group.rows),
        };
        StoredChildLists(groups.iter().map(group).collect())
    }

    /// Decodes the child lists of a table with `groups` repeated groups, in a batch whose first table
    /// has the number `base`.
    ///
    /// # Errors
    /// If there are more or fewer groups, or if their lists do not fit together.
    pub fn lists(&self, groups: usize, base: u32) -> Result<ChildLists, &'static str> {
        let group = |group: &StoredGroup| {
            let (ends, rows) = (group.ends.numbers(), group.rows.fragments(base)?);
            // The ends must ascend to the number of rows, because they are used as ranges of the
            // rows.
            let is_whole = ends.last().is_none_or(|end| *end as usize == rows.len());
            if is_whole && ends.is_sorted() {
                Ok(RepeatedGroup { ends, rows })
            } else {
                Err(UNEVEN)
            }
        };
        if self.0.len() != groups {
            return Err(UNEVEN);
        }
        let lists = self.0.iter().map(group);
        lists.collect::<Result<_, _>>().map(ChildLists)
    }
}

/// An encoded column.
#[derive(Encode, Decode)]
pub(super) enum StoredColumn {
    Number(StoredNumbers),
    Text(Vec<u32>),
    Moment(StoredMoments),
    Boolean(Vec<bool>),
    /// Texts whose numbers ascend, as those of ids do: each text has its number from its first use.
    Ascending(Differences),
}

/// Decimal numbers as integers, which are divided by 10 to the power of their decimals.
#[derive(Encode, Decode)]
pub(super) struct StoredNumbers {
    scaled: Vec<i64>,
    decimals: Vec<u8>,
    /// The numbers that are kept as text, by row.
    tokens: Vec<(u32, String)>,
}

impl StoredColumn {
    /// Encodes a column. `number_of` maps the number of a text in the batch to its number in the
    /// segment.
    pub fn of(column: &Column, mut number_of: impl FnMut(u32) -> u32) -> StoredColumn {
        match column {
            Column::Number(numbers) => StoredColumn::Number(StoredNumbers::of(numbers)),
            Column::Text(ids) => {
                let ids: Vec<u32> = ids.iter().map(|id| number_of(*id)).collect();
                match ids.is_sorted() {
                    true => StoredColumn::Ascending(Differences::of(ids)),
                    false => StoredColumn::Text(ids),
                }
            }
            Column::DateTime(moments) => {
                StoredColumn::Moment(StoredMoments::of(moments.parts(number_of)))
            }
            Column::Boolean(flags) => StoredColumn::Boolean(flags.clone()),
        }
    }

    /// Decodes the column.
    ///
    /// # Errors
    /// If its lists differ in length, or its numbers are damaged.
    pub fn column(self) -> Result<Column, &'static str> {
        Ok(match self {
            StoredColumn::Number(numbers) => Column::Number(numbers.numbers()?),
            StoredColumn::Text(ids) => Column::Text(ids),
            StoredColumn::Moment(moments) => Column::DateTime(moments.moments()?),
            StoredColumn::Boolean(flags) => Column::Boolean(flags),
            StoredColumn::Ascending(ids) => Column::Text(ids.numbers()),
        })
    }
}

impl StoredNumbers {
    fn of(numbers: &NumberColumn) -> StoredNumbers {
        let (scaled, decimals) = numbers.scaled().unzip();
        StoredNumbers {
            scaled,
            decimals,
            tokens: numbers
                .tokens()
                .map(|(row, token)| (row, token.to_owned()))
                .collect(),
        }
    }

    fn numbers(self) -> Result<NumberColumn, &'static str> {
        if self.scaled.len() != self.decimals.len() {
            return Err(UNEVEN);
        }
        let scaled = self.scaled.into_iter().zip(self.decimals);
        NumberColumn::from_scaled(scaled, self.tokens).ok_or(DAMAGED_NUMBERS)
    }
}

/// An encoded page of texts.
///
/// Most texts of a patient's record that occur once begin with a random UUID, which takes 16 bytes
/// instead of 36.
#[derive(Encode, Decode)]
pub(super) struct StoredPage {
    /// For each text whether it begins with a UUID.
    begins_with_uuid: Vec<bool>,
    /// The UUIDs, 16 bytes each.
    uuids: Vec<u8>,
    /// The concatenated rests of all texts.
    text: String,
    /// The length in bytes of the rest of each text.
    lengths: Vec<u32>,
}

/// The length of the canonical text of a UUID.
const UUID: usize = 36;

/// Returns the bytes of a UUID at the beginning of a text in canonical form. Other forms would not
/// be restored exactly.
fn leading_uuid(text: &str) -> Option<[u8; 16]> {
    let uuid = text.get(..UUID)?;
    let is_canonical = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    if !uuid.bytes().enumerate().all(is_canonical) {
        return None;
    }
    let digits = uuid.bytes().filter(|byte| *byte != b'-');
    let value = digits.fold(0u128, |value, digit| {
        let digit = char::from(digit).to_digit(16).unwrap_or(0);
        value << 4 | u128::from(digit)
    });
    Some(value.to_be_bytes())
}

/// Appends a UUID in canonical form.
fn push_uuid(bytes: [u8; 16], text: &mut String) {
    for (at, byte) in bytes.into_iter().enumerate() {
        // The canonical form has groups of 4, 2, 2, 2 and 6 bytes.
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
    }
}

impl StoredPage {
    pub fn of<'t>(texts: impl Iterator<Item = &'t str>) -> StoredPage {
        let mut page = StoredPage {
            begins_with_uuid: Vec::new(),
            uuids: Vec::new(),
            text: String::new(),
            lengths: Vec::new(),
        };
        for text in texts {
            let uuid = leading_uuid(text);
            page.begins_with_uuid.push(uuid.is_some());
            let rest = match uuid {
                Some(uuid) => {
                    page.uuids.extend(uuid);
                    text.get(UUID..).unwrap_or_default()
                }
                None => text,
            };
            page.text.push_str(rest);
            page.lengths.push(rest.len() as u32);
        }
        page
    }

    /// Decodes the page.
    ///
    /// # Errors
    /// If the lengths do not match the texts, or the number of UUIDs differs from that of the texts
    /// that begin with one.
    pub fn page(self) -> Result<Page, &'static str> {
        let (uuids, remainder) = self.uuids.as_chunks::<16>();
        let marked = self.begins_with_uuid.iter().filter(|begins| **begins);
        let is_even = self.begins_with_uuid.len() == self.lengths.len();
        if !is_even || !remainder.is_empty() || marked.count() != uuids.len() {
            return Err(UNEVEN);
        }
        let mut text = String::with_capacity(self.text.len() + uuids.len() * UUID);
        let mut ends = Vec::with_capacity(self.lengths.len());
        let (mut uuids, mut start) = (uuids.iter(), 0);
        for (begins_with_uuid, length) in self.begins_with_uuid.iter().zip(&self.lengths) {
            if *begins_with_uuid {
                push_uuid(*uuids.next().ok_or(UNEVEN)?, &mut text);
            }
            let end = start + *length as usize;
            text.push_str(self.text.get(start..end).ok_or(UNEVEN)?);
            ends.push(u32::try_from(text.len()).map_err(|_| UNEVEN)?);
            start = end;
        }
        // A rest that belongs to no text means that the page is damaged.
        if start == self.text.len() {
            Ok(Page::new(text, ends))
        } else {
            Err(UNEVEN)
        }
    }
}

/// The names of classes and attributes, by the numbers of a release.
pub(super) struct Vocabulary {
    classes: Vec<String>,
    attributes: Vec<String>,
}

codec!(Vocabulary {
    classes,
    attributes
});

impl Vocabulary {
    /// Returns the names of this release.
    pub fn own() -> Vocabulary {
        let attributes = (0..=u8::MAX).map_while(Attr::from_number);
        Vocabulary {
            classes: Cls::all().map(|class| class.name().to_owned()).collect(),
            attributes: attributes.map(|attr| attr.name().to_owned()).collect(),
        }
    }

    /// Returns whether the numbers are those of this release.
    pub fn is_own(&self) -> bool {
        let own = Vocabulary::own();
        (&self.classes, &self.attributes) == (&own.classes, &own.attributes)
    }

    fn class(&self, number: u8) -> Result<Cls, &'static str> {
        let name = self.classes.get(usize::from(number)).ok_or(UNEVEN)?;
        let found = Cls::all().find(|class| class.name() == name);
        found.ok_or("a checkpoint has a class that this release does not know")
    }

    fn attribute(&self, number: u8) -> Result<Attr, &'static str> {
        let name = self.attributes.get(usize::from(number)).ok_or(UNEVEN)?;
        let mut all = (0..=u8::MAX).map_while(Attr::from_number);
        let found = all.find(|attr| attr.name() == name);
        found.ok_or("a checkpoint has an attribute that this release does not know")
    }
}

/// An encoded layout.
#[derive(Default, Encode, Decode)]
pub(super) struct StoredLayout {
    items: Vec<StoredItem>,
    texts: String,
}

#[derive(Encode, Decode)]
struct StoredItem {
    attr: Option<u8>,
    class: u8,
    kind: StoredItemKind,
    parent: u32,
    end: u32,
    presence: Option<u32>,
}

#[derive(Encode, Decode)]
enum StoredItemKind {
    Object,
    List,
    Constant(u8, u32, u32),
    Leaf(u8, u32),
    Group(u32),
}

impl StoredTable {
    /// Returns the properties that all rows of the table share.
    pub(super) fn root(&self) -> TableRoot {
        TableRoot {
            node_id: self.root_id,
            archetype: self.archetype,
        }
    }
}

impl StoredLayout {
    pub fn of(layout: &Layout) -> StoredLayout {
        let item = |item: &Item| StoredItem {
            attr: item.attr.map(Attr::number),
            class: item.class.number(),
            kind: match item.kind {
                ItemKind::Object => StoredItemKind::Object,
                ItemKind::List => StoredItemKind::List,
                ItemKind::Constant { kind, start, len } => {
                    StoredItemKind::Constant(kind_number(kind), start, len)
                }
                ItemKind::Leaf(kind, leaf) => StoredItemKind::Leaf(kind_number(kind), leaf),
                ItemKind::Group(group) => StoredItemKind::Group(group),
            },
            parent: item.parent,
            end: item.end,
            presence: item.presence,
        };
        StoredLayout {
            items: layout.items().iter().map(item).collect(),
            texts: layout.texts.clone(),
        }
    }

    /// Decodes a layout whose numbers are those of a vocabulary.
    ///
    /// # Errors
    /// As [`StoredLayout::layout`].
    pub fn layout_in(mut self, vocabulary: &Vocabulary) -> Result<Layout, &'static str> {
        if vocabulary.is_own() {
            return self.layout();
        }
        for item in &mut self.items {
            item.class = vocabulary.class(item.class)?.number();
            let attr = item.attr.map(|attr| vocabulary.attribute(attr));
            item.attr = attr.transpose()?.map(Attr::number);
        }
        self.layout()
    }

    /// Decodes the layout.
    ///
    /// # Errors
    /// If it has a class or an attribute that this release does not know, or if its leaves or
    /// groups are not numbered consecutively from 0.
    pub fn layout(&self) -> Result<Layout, &'static str> {
        let count = |counts: fn(&StoredItemKind) -> bool| {
            self.items.iter().filter(|item| counts(&item.kind)).count()
        };
        let mut layout = Layout::default();
        layout.texts.clone_from(&self.texts);
        // `u32::MAX` marks a number that no item has used yet.
        layout.leaves = vec![u32::MAX; count(|kind| matches!(kind, StoredItemKind::Leaf(..)))];
        layout.groups = vec![u32::MAX; count(|kind| matches!(kind, StoredItemKind::Group(_)))];
        for (index, item) in (0..).zip(&self.items) {
            let kind = number_item(&mut layout, index, &item.kind)?;
            layout.items.push(Item {
                attr: item.attr.and_then(Attr::from_number),
                class: Cls::from_number(item.class).ok_or(UNEVEN)?,
                kind,
                parent: item.parent,
                end: item.end,
                presence: item.presence,
            });
        }
        // There are as many numbers as items, so the numbers are consecutive if each one is used.
        let numbers = layout.leaves.iter().chain(&layout.groups);
        if numbers.into_iter().any(|item| *item == u32::MAX) {
            return Err(UNEVEN);
        }
        Ok(layout)
    }
}

/// Returns the kind of the item with an index. Records the index under the number of the leaf or
/// group.
///
/// # Errors
/// If the layout has no such number.
fn number_item(
    layout: &mut Layout,
    index: u32,
    kind: &StoredItemKind,
) -> Result<ItemKind, &'static str> {
    Ok(match *kind {
        StoredItemKind::Object => ItemKind::Object,
        StoredItemKind::List => ItemKind::List,
        StoredItemKind::Constant(kind, start, len) => ItemKind::Constant {
            kind: kind_of(kind),
            start,
            len,
        },
        StoredItemKind::Leaf(kind, leaf) => {
            *layout.leaves.get_mut(leaf as usize).ok_or(UNEVEN)? = index;
            ItemKind::Leaf(kind_of(kind), leaf)
        }
        StoredItemKind::Group(group) => {
            *layout.groups.get_mut(group as usize).ok_or(UNEVEN)? = index;
            ItemKind::Group(group)
        }
    })
}

// Checkpoints have the same structs in another encoding, which never changes.
codec!(Fragments { tables, rows });
codec!(StoredGroup { ends, rows });
codec!(StoredStructure {
    docs,
    preorder,
    parent_distances,
    groups,
    bitmaps,
});
codec!(StoredNumbers {
    scaled,
    decimals,
    tokens,
});
codec!(StoredPage {
    begins_with_uuid,
    uuids,
    text,
    lengths,
});
codec!(StoredLayout { items, texts });
codec!(StoredItem {
    attr,
    class,
    kind,
    parent,
    end,
    presence,
});

impl Codec for Differences {
    fn write(&self, out: &mut ByteWriter) {
        self.0.write(out);
    }

    fn read(from: &mut ByteReader<'_>) -> Option<Differences> {
        Codec::read(from).map(Differences)
    }
}

impl Codec for StoredColumn {
    fn write(&self, out: &mut ByteWriter) {
        match self {
            StoredColumn::Number(numbers) => {
                0u8.write(out);
                numbers.write(out);
            }
            StoredColumn::Text(ids) => {
                1u8.write(out);
                ids.write(out);
            }
            StoredColumn::Boolean(flags) => {
                3u8.write(out);
                flags.write(out);
            }
            StoredColumn::Moment(moments) => {
                4u8.write(out);
                moments.write(out);
            }
            StoredColumn::Ascending(ids) => {
                5u8.write(out);
                ids.write(out);
            }
        }
    }

    fn read(from: &mut ByteReader<'_>) -> Option<StoredColumn> {
        Some(match u8::read(from)? {
            0 => StoredColumn::Number(Codec::read(from)?),
            1 => StoredColumn::Text(Codec::read(from)?),
            // The first version of checkpoints; no column is written with this number.
            2 => StoredColumn::Moment(TextMoments::read(from)?.moments()?),
            3 => StoredColumn::Boolean(Codec::read(from)?),
            4 => StoredColumn::Moment(Codec::read(from)?),
            5 => StoredColumn::Ascending(Codec::read(from)?),
            _ => return None,
        })
    }
}

impl Codec for StoredItemKind {
    fn write(&self, out: &mut ByteWriter) {
        match *self {
            StoredItemKind::Object => 0u8.write(out),
            StoredItemKind::List => 1u8.write(out),
            StoredItemKind::Constant(kind, start, len) => {
                2u8.write(out);
                (kind, (start, len)).write(out);
            }
            StoredItemKind::Leaf(kind, leaf) => {
                3u8.write(out);
                (kind, leaf).write(out);
            }
            StoredItemKind::Group(group) => {
                4u8.write(out);
                group.write(out);
            }
        }
    }

    fn read(from: &mut ByteReader<'_>) -> Option<StoredItemKind> {
        Some(match u8::read(from)? {
            0 => StoredItemKind::Object,
            1 => StoredItemKind::List,
            2 => {
                let (kind, (start, len)) = Codec::read(from)?;
                StoredItemKind::Constant(kind, start, len)
            }
            3 => {
                let (kind, leaf) = Codec::read(from)?;
                StoredItemKind::Leaf(kind, leaf)
            }
            4 => StoredItemKind::Group(Codec::read(from)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
