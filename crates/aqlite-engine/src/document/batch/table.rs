//! Tables: the fragments whose layouts merge, as columns.
//!
//! A table has one merged layout. An optional item has a presence bitmap; its column, or its
//! repeated group, holds values for the rows in the bitmap only. Columns, groups and bitmaps keep
//! their numbers when the merged layout grows.

use super::Fragment;
use super::child_lists::{ChildLists, RepeatedGroup};
use super::presence::PresenceBitmap;
use crate::document::column::{Column, Dictionary, DictionaryTexts, Leaf, push};
use crate::document::layout::{Item, ItemKind, Layout};
use crate::document::merge::{InitialPresence, merge};
#[cfg(doc)]
use crate::document::moment::DateTimeColumn;
use crate::document::part::Part;
use crate::document::zone_map::ZoneMap;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::tree::Kind;
use std::sync::{Arc, OnceLock};

/// A table of a batch: the fragments whose layouts merge, as columns.
#[derive(Clone, Debug)]
pub struct Table {
    layout: Arc<Layout>,
    /// The number of times that the merged layout was widened.
    layout_revision: u32,
    root: TableRoot,
    /// The number of rows.
    rows: u32,
    pub(in crate::document) structure: Part<Structure>,
    pub(in crate::document) child_lists: Part<ChildLists>,
    pub(in crate::document) columns: Vec<Part<Column>>,
    /// The zone maps of the columns of a segment; empty for a table that can be widened.
    zone_maps: Arc<[Option<ZoneMap>]>,
    /// The number of the presence bitmap of each column; `None` if all rows have a value.
    column_presence: Vec<Option<u32>>,
    /// The rows of documents that no population query reads, ascending.
    pub(in crate::document) hidden: OnceLock<Vec<u32>>,
    /// The repeated groups, by table and number, whose child rows are rows of this table.
    pub(in crate::document) origins: Vec<(u32, u32)>,
}

/// The properties that all rows of a table share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::document) struct TableRoot {
    /// The number of the constant node id of the root; `None` if the id is a leaf value or absent.
    pub node_id: Option<u32>,
    /// The number of the archetype that the rows belong to; `None` outside of archetypes.
    pub archetype: Option<u32>,
}

/// The structure of a table: the part that every query of the table reads.
#[derive(Clone, Debug, Default)]
pub(in crate::document) struct Structure {
    pub docs: Vec<u32>,
    /// The pre-order number of each row: its number among all fragments of the batch. A parent
    /// precedes its child rows, and documents follow in the order of insertion.
    pub preorder: Vec<u32>,
    /// The pre-order number of the parent row of each row; that of the row if it has no parent.
    pub parent_preorder: Vec<u32>,
    /// The presence bitmaps of the optional items.
    pub bitmaps: Vec<PresenceBitmap>,
}

/// A column with its presence bitmap.
///
/// The column holds one value for each row that has the leaf, so an index of a row is mapped to
/// an index of the column by rank.
#[derive(Clone, Copy)]
pub struct ColumnView<'t> {
    column: &'t Column,
    presence: Option<&'t PresenceBitmap>,
}

/// The owner and the position of a fragment.
#[derive(Clone, Copy, Default)]
pub(super) struct FragmentPosition {
    /// The number of the document, or of the EHR; `u32::MAX` for a row that is hidden at once.
    pub doc: u32,
    /// The pre-order number of the fragment.
    pub preorder: u32,
    /// The pre-order number of the parent row.
    pub parent_preorder: u32,
}

/// The mapping of the items of a layout to the columns, groups and bitmaps of a table.
#[derive(Debug)]
pub(super) struct LayoutMapping {
    pub table: u32,
    /// The number of the archetype that the rows belong to.
    pub archetype: Option<u32>,
    /// The layout revision of the table for which the mapping was computed.
    pub layout_revision: u32,
    /// The column of each leaf.
    leaves: Vec<u32>,
    /// The number in the table of each repeated group.
    pub groups: Vec<u32>,
    /// The presence bitmaps that contain the rows of the layout.
    present_in: Vec<u32>,
}

impl LayoutMapping {
    /// Estimates the bytes in use.
    pub fn bytes(&self) -> usize {
        (self.leaves.capacity() + self.groups.capacity() + self.present_in.capacity()) * 4 + 160
    }

    /// Creates the mapping of the first layout of a table.
    pub fn identity(layout: &Arc<Layout>, table: u32, archetype: Option<u32>) -> LayoutMapping {
        let (leaves, groups) = (
            (0..layout.leaves().len() as u32).collect(),
            (0..layout.groups().len() as u32).collect(),
        );
        LayoutMapping {
            table,
            archetype,
            layout_revision: 0,
            leaves,
            groups,
            present_in: Vec::new(),
        }
    }
}

impl Table {
    pub(super) fn new(layout: Arc<Layout>, root: TableRoot) -> Table {
        let mut table = Table {
            layout,
            layout_revision: 0,
            root,
            rows: 0,
            structure: Part::default(),
            child_lists: Part::default(),
            columns: Vec::new(),
            zone_maps: Arc::default(),
            column_presence: Vec::new(),
            hidden: OnceLock::from(Vec::new()),
            origins: Vec::new(),
        };
        table.widen();
        table
    }

    /// Creates a table of a segment without any of its parts.
    pub(in crate::document) fn late(
        layout: Arc<Layout>,
        root: TableRoot,
        rows: u32,
        zone_maps: Arc<[Option<ZoneMap>]>,
    ) -> Table {
        let columns = layout.leaves().iter().map(|_| Part::absent()).collect();
        Table {
            column_presence: presence_of_leaves(&layout),
            layout,
            layout_revision: 0,
            root,
            rows,
            structure: Part::absent(),
            child_lists: Part::absent(),
            columns,
            zone_maps,
            hidden: OnceLock::new(),
            origins: Vec::new(),
        }
    }

    /// Adds the columns and groups of the merged layout that the table lacks.
    fn widen(&mut self) {
        let layout = &self.layout;
        let column = |index: &u32| match layout.item(*index) {
            // Date-times are also stored as numbers, so that ORDER BY and comparisons parse no
            // texts.
            Some(item)
                if item.attr == Some(Attr::VALUE)
                    && layout
                        .item(item.parent)
                        .is_some_and(|p| p.class == Cls::DV_DATE_TIME) =>
            {
                Column::of_date_times()
            }
            Some(Item {
                kind: ItemKind::Leaf(kind, _),
                ..
            }) => Column::new(*kind),
            _ => Column::new(Kind::Text),
        };
        // Leaves keep their numbers, so only those after the existing columns are new.
        let more = layout.leaves().iter().skip(self.columns.len()).map(column);
        self.columns.extend(more.map(Part::Owned));
        self.column_presence = presence_of_leaves(layout);
        if let Some(ChildLists(groups)) = self.child_lists.owned() {
            groups.resize(layout.groups().len(), RepeatedGroup::default());
        }
    }

    /// Merges a layout into that of the table.
    ///
    /// Returns `None` if the layouts do not merge.
    pub(super) fn merge_layout(&mut self, layout: &Layout, table: u32) -> Option<LayoutMapping> {
        let structure = self.structure.owned()?;
        // A table without its child lists could not be widened below.
        self.child_lists.owned()?;
        let merged = merge(&self.layout, layout, structure.bitmaps.len() as u32)?;
        if let Some(layout) = merged.layout {
            let first = structure.bitmaps.len();
            // `merge` numbers new bitmaps after the existing ones, so the order of this loop
            // matters.
            for initial in merged.bitmaps {
                let presence = match initial {
                    InitialPresence::None => Some(PresenceBitmap::default()),
                    InitialPresence::With(Some(presence)) => {
                        structure.bitmaps.get(presence as usize).cloned()
                    }
                    InitialPresence::With(None) => Some(PresenceBitmap::all_rows(self.rows)),
                };
                // An empty bitmap in its place would hide values of earlier rows. A table that is
                // not widened keeps them, and the layout gets a table of its own.
                let Some(presence) = presence else {
                    structure.bitmaps.truncate(first);
                    return None;
                };
                structure.bitmaps.push(presence);
            }
            self.layout = Arc::new(layout);
            self.layout_revision += 1;
            self.widen();
        }
        Some(LayoutMapping {
            table,
            archetype: self.root.archetype,
            layout_revision: self.layout_revision,
            leaves: merged.leaves,
            groups: merged.groups,
            present_in: merged.present_in,
        })
    }

    /// Returns whether a mapping has `leaves` columns and `groups` groups, and refers only to
    /// columns, groups and bitmaps that exist.
    fn is_valid_mapping(&self, mapping: &LayoutMapping, leaves: usize, groups: usize) -> bool {
        let is_there =
            |numbers: &[u32], len: usize| numbers.iter().all(|number| (*number as usize) < len);
        (mapping.leaves.len(), mapping.groups.len()) == (leaves, groups)
            && is_there(&mapping.leaves, self.columns.len())
            && is_there(&mapping.groups, self.groups() as usize)
            && self
                .structure
                .get()
                .is_some_and(|structure| is_there(&mapping.present_in, structure.bitmaps.len()))
    }

    /// Adds a fragment and returns its row.
    ///
    /// Returns `None` and adds nothing if the mapping does not belong to this table: a value
    /// without a column would be lost.
    pub(super) fn add<'t>(
        &mut self,
        at: FragmentPosition,
        mapping: &LayoutMapping,
        texts: impl ExactSizeIterator<Item = &'t str>,
        groups: &[Vec<Fragment>],
        dictionary: &mut Dictionary,
    ) -> Option<u32> {
        // The check precedes all pushes: an incomplete row would shift all later rows.
        if !self.is_valid_mapping(mapping, texts.len(), groups.len()) {
            return None;
        }
        let (row, structure) = (self.rows, self.structure.owned()?);
        let ChildLists(lists) = self.child_lists.owned()?;
        push(&mut structure.docs, at.doc);
        push(&mut structure.preorder, at.preorder);
        push(&mut structure.parent_preorder, at.parent_preorder);
        // A row without a leaf pushes nothing to its column, because columns are dense.
        for (text, leaf) in texts.zip(&mapping.leaves) {
            let column = self.columns.get_mut(*leaf as usize);
            column
                .and_then(Part::owned)
                .into_iter()
                .for_each(|column| column.push(text, dictionary));
        }
        for (children, group) in groups.iter().zip(&mapping.groups) {
            let Some(group) = lists.get_mut(*group as usize) else {
                continue;
            };
            children
                .iter()
                .for_each(|child| push(&mut group.rows, *child));
            push(&mut group.ends, group.rows.len() as u32);
        }
        for presence in &mapping.present_in {
            structure
                .bitmaps
                .get_mut(*presence as usize)
                .into_iter()
                .for_each(|presence| presence.set(row));
        }
        self.rows += 1;
        if at.doc == u32::MAX {
            self.hide(row, true);
        }
        Some(row)
    }

    /// Returns whether a row has an item.
    pub fn has(&self, row: u32, item: u32) -> bool {
        self.layout.item(item).is_some_and(|item| {
            item.presence
                .is_none_or(|presence| self.is_present(presence, row))
        })
    }

    /// Returns whether a presence bitmap contains a row.
    pub fn is_present(&self, presence: u32, row: u32) -> bool {
        self.presence(presence)
            .is_some_and(|presence| presence.contains(row))
    }

    /// Returns a presence bitmap by number.
    pub fn presence(&self, presence: u32) -> Option<&PresenceBitmap> {
        self.structure.get()?.bitmaps.get(presence as usize)
    }

    /// Adds a row to the hidden rows, or removes it.
    pub(super) fn hide(&mut self, row: u32, is_hidden: bool) {
        let Some(hidden) = self.hidden.get_mut() else {
            return;
        };
        match hidden.binary_search(&row) {
            Err(at) if is_hidden => hidden.insert(at, row),
            Ok(at) if !is_hidden => drop(hidden.remove(at)),
            _ => {}
        }
    }

    fn presence_of(&self, item: u32) -> Option<&PresenceBitmap> {
        self.presence(self.layout.item(item)?.presence?)
    }

    /// Returns the child rows of a row in a repeated group, in list order.
    pub(super) fn child_rows(&self, row: u32, group: u32) -> &[Fragment] {
        let Some(item) = self.layout.groups().get(group as usize) else {
            return &[];
        };
        // Both parts are read before either is tested, so that both are wanted at once.
        let (presence, group) = (self.presence_of(*item), self.group(group));
        let Some(group) = group else {
            return &[];
        };
        // `ends` has entries only for parent rows that have the group, so a row becomes a rank.
        let at = match presence {
            Some(presence) if !presence.contains(row) => return &[],
            Some(presence) => presence.rank(row),
            None => row,
        };
        group.children(at)
    }

    fn group(&self, group: u32) -> Option<&RepeatedGroup> {
        self.child_lists.get()?.0.get(group as usize)
    }

    /// Returns the number of repeated groups.
    pub(in crate::document) fn groups(&self) -> u32 {
        self.layout.groups().len() as u32
    }

    /// Returns the rows of documents that no population query reads, ascending.
    ///
    /// See [`super::Batch::live`].
    pub fn hidden(&self) -> &[u32] {
        self.hidden.get().map_or(&[], Vec::as_slice)
    }

    /// Returns the repeated groups, by table and number, whose child rows are rows of this table.
    pub fn origins(&self) -> &[(u32, u32)] {
        &self.origins
    }

    /// Returns the merged layout. [`Table::has`] returns whether a row has one of its items.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Returns the number of the constant node id of the roots; `None` if it is a leaf value or
    /// absent.
    pub fn root_id(&self) -> Option<u32> {
        self.root.node_id
    }

    /// Returns the number of times that the merged layout was widened.
    pub(super) fn layout_revision(&self) -> u32 {
        self.layout_revision
    }

    /// Returns the properties that all rows share.
    pub(in crate::document) fn root(&self) -> TableRoot {
        self.root
    }

    /// Marks the child lists as wanted if they are absent.
    pub fn want_child_lists(&self) {
        self.child_lists.get();
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the document of each row.
    pub fn docs(&self) -> &[u32] {
        self.structure
            .get()
            .map_or(&[], |structure| &structure.docs)
    }

    /// Returns the pre-order number of each row: its number among all fragments of the batch.
    pub fn preorder(&self) -> &[u32] {
        self.structure
            .get()
            .map_or(&[], |structure| &structure.preorder)
    }

    /// Returns the pre-order number of the parent row of each row; that of the row if it has no
    /// parent row.
    pub fn parent_preorder(&self) -> &[u32] {
        self.structure
            .get()
            .map_or(&[], |structure| &structure.parent_preorder)
    }

    /// Returns the range of the values of a leaf, if the head of the segment has it.
    pub fn zone_map(&self, leaf: u32) -> Option<ZoneMap> {
        self.zone_maps.get(leaf as usize).copied().flatten()
    }

    /// Returns the column of a leaf.
    pub fn column_view(&self, leaf: u32) -> Option<ColumnView<'_>> {
        let presence = self
            .column_presence
            .get(leaf as usize)?
            .and_then(|presence| self.presence(presence));
        // Both parts are read before either is tested, so that both are wanted at once. Without
        // its bitmap the view is wrong, but then the structure is absent and the run is void.
        let column = self.columns.get(leaf as usize)?.get();
        Some(ColumnView {
            column: column?,
            presence,
        })
    }

    /// Returns the number of rows that have the item of a presence bitmap; `None` if there is no such
    /// bitmap.
    fn rows_with(&self, presence: Option<u32>, structure: &Structure) -> Option<usize> {
        let Some(presence) = presence else {
            return Some(self.len());
        };
        let bitmap = structure.bitmaps.get(presence as usize)?;
        Some(bitmap.rank(self.rows) as usize)
    }

    /// Returns the number of values that the column of a leaf has with a structure.
    pub(in crate::document) fn values_of(
        &self,
        leaf: usize,
        structure: &Structure,
    ) -> Option<usize> {
        self.rows_with(*self.column_presence.get(leaf)?, structure)
    }

    /// Returns whether a structure belongs to the table: its loaded columns have a value for each
    /// row that has the leaf, and its loaded child lists belong to it.
    pub(in crate::document) fn is_structure(&self, structure: &Structure) -> bool {
        let fits = |(leaf, column): (usize, &Part<Column>)| {
            let values = self.values_of(leaf, structure);
            values.is_some() && column.present().is_none_or(|c| Some(c.len()) == values)
        };
        let lists = self.child_lists.present();
        self.columns.iter().enumerate().all(fits)
            && lists.is_none_or(|lists| self.has_child_lists(lists, structure))
    }

    /// Returns whether child lists belong to the table with a structure: each repeated group has a
    /// list for each row that has the group.
    pub(in crate::document) fn has_child_lists(
        &self,
        ChildLists(groups): &ChildLists,
        structure: &Structure,
    ) -> bool {
        let has_lists = |(group, item): (&RepeatedGroup, &u32)| {
            let item = self.layout.item(*item);
            let rows = item.and_then(|item| self.rows_with(item.presence, structure));
            rows == Some(group.ends.len())
        };
        groups.len() == self.groups() as usize
            && groups.iter().zip(self.layout.groups()).all(has_lists)
    }

    /// Estimates the bytes of structure, child lists and columns.
    pub(in crate::document) fn late_bytes(&self) -> usize {
        let columns = self.columns.iter().filter_map(Part::present);
        let columns: usize = columns.map(|c| c.bytes() + size_of::<Column>()).sum();
        let lists = self.child_lists.present().map_or(0, ChildLists::bytes);
        columns + lists + self.structure.present().map_or(0, Structure::bytes)
    }

    pub(super) fn bytes(&self) -> usize {
        self.late_bytes()
            + self.column_presence.capacity() * 8
            + self.hidden().len() * 4
            + self.layout.bytes()
    }
}

/// Returns the presence bitmap of each leaf of a layout.
pub(in crate::document) fn presence_of_leaves(layout: &Layout) -> Vec<Option<u32>> {
    let presence = |item: &u32| layout.item(*item)?.presence;
    layout.leaves().iter().map(presence).collect()
}

impl Structure {
    /// Estimates the bytes in use.
    pub fn bytes(&self) -> usize {
        let bitmaps: usize = self.bitmaps.iter().map(PresenceBitmap::bytes).sum();
        // Three lists have 4 bytes for each row: documents and two of pre-order numbers.
        bitmaps + self.docs.capacity() * 12
    }
}

impl<'t> ColumnView<'t> {
    /// Creates a view of a column that is part of no table.
    #[cfg(test)]
    pub fn new(column: &'t Column, presence: Option<&'t PresenceBitmap>) -> ColumnView<'t> {
        ColumnView { column, presence }
    }

    /// Returns the values, one for each row that has the leaf.
    pub fn column(self) -> &'t Column {
        self.column
    }

    /// Returns the rows that have a value; `None` if all rows have.
    pub fn presence(self) -> Option<&'t PresenceBitmap> {
        self.presence
    }

    /// Returns the index in the column of the value of a row that has the leaf.
    pub fn at(self, row: u32) -> u32 {
        self.presence.map_or(row, |presence| presence.rank(row))
    }

    /// Returns the dictionary number of the text of a row.
    pub fn id(self, row: u32) -> Option<u32> {
        self.column.ids()?.get(self.at(row) as usize).copied()
    }

    /// Returns the point in time of a row; see [`DateTimeColumn::point`]. `None` if the column has no
    /// date-times.
    pub fn point(self, row: u32) -> Option<i64> {
        self.column.moments()?.point(self.at(row))
    }

    /// Returns the start of the date-time of a row; see [`DateTimeColumn::start`]. `None` if the column
    /// has no date-times.
    pub fn start(self, row: u32) -> Option<i64> {
        self.column.moments()?.start(self.at(row))
    }

    pub(super) fn leaf(self, row: u32, texts: &DictionaryTexts) -> Option<Leaf<'_>> {
        self.column.leaf(self.at(row), texts)
    }

    pub(super) fn write(self, row: u32, texts: &DictionaryTexts, out: &mut String) {
        self.column.write(self.at(row), texts, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::answer::query::{
        ClassExpr, Column, ColumnValue, Contains, Expr, Literal, Query, Source, Variable, Versions,
    };
    use crate::answer::{Budget, QueryError, Run, plan};
    use crate::document::{Batch, Fragment, LayoutStore, NothingKnown, pack};
    use aqlite_rm::class::Cls;
    use aqlite_rm::json;

    fn list(elements: &[(u32, &str)]) -> String {
        let element = |(id, value): &(u32, &str)| {
            format!(
                r#"{{"_type":"ELEMENT","archetype_node_id":"at{id:04}","name":{{"_type":"DV_TEXT","value":"E"}},"value":{value}}}"#
            )
        };
        let elements: Vec<String> = elements.iter().map(element).collect();
        let head = r#""_type":"ITEM_LIST","archetype_node_id":"at0000","name":{"_type":"DV_TEXT","value":"L"}"#;
        format!(r#"{{{head},"items":[{}]}}"#, elements.join(","))
    }

    #[test]
    fn fragment_without_a_column_is_refused() {
        let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
        let tree = json::read(
            &list(&[(1, r#"{"_type":"DV_COUNT","magnitude":7}"#)]),
            Cls::ITEM_LIST,
        )
        .unwrap();
        batch.add_root(
            u32::MAX,
            &pack(tree.root().unwrap(), &NothingKnown, &layouts),
        );
        assert_eq!(batch.broken(), None);
        let mut dictionary = super::Dictionary::default();
        let table = &mut batch.tables[0];
        let leaves = table.columns.len();
        let mapping = |columns: Vec<u32>, set: Vec<u32>| super::LayoutMapping {
            table: 0,
            archetype: None,
            layout_revision: 0,
            leaves: columns,
            groups: Vec::new(),
            present_in: set,
        };
        let all = || (0..leaves as u32).collect::<Vec<_>>();
        let mut add = |mapping: super::LayoutMapping, texts: usize| {
            table.add(
                super::FragmentPosition::default(),
                &mapping,
                vec!["1"; texts].into_iter(),
                &[],
                &mut dictionary,
            )
        };
        let beyond = all().into_iter().map(|leaf| leaf + 1).collect();
        assert_eq!(
            add(mapping(beyond, Vec::new()), leaves),
            None,
            "a column that is not there"
        );
        assert_eq!(
            add(mapping(all(), Vec::new()), leaves + 1),
            None,
            "a value more than columns"
        );
        assert_eq!(
            add(mapping(all(), Vec::new()), leaves - 1),
            None,
            "a column without a value"
        );
        assert_eq!(
            add(mapping(all(), vec![99]), leaves),
            None,
            "a flag that is not there"
        );
        assert_eq!(add(mapping(all(), Vec::new()), leaves), Some(1));
        assert_eq!(table.len(), 2);
    }

    /// `SELECT 1 FROM COMPOSITION`
    fn one_of_each_composition() -> Query {
        let composition = ClassExpr {
            variable: 0,
            class: Cls::COMPOSITION,
            versions: Versions::Latest,
            predicate: None,
            contains: Contains::Nothing,
        };
        let one = ColumnValue::Expr(Expr::Literal(Literal::Number("1".into())));
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
                value: one,
            }],
            distinct: false,
            condition: None,
            order: Vec::new(),
            window: None,
        }
    }

    #[test]
    fn incomplete_batch_is_an_error() {
        let plan = plan(one_of_each_composition(), None, false).unwrap();
        let lacks = "a fragment does not fit the columns of its table";
        for broken in [None, Some(lacks)] {
            let mut batch = Batch::new();
            batch.broken = broken;
            let mut run = Run::new(&plan, "2026-01-01T00:00:00Z", Budget::default(), &|| false);
            assert_eq!(
                run.push(&batch),
                broken.is_none(),
                "no more batches are read"
            );
            let outcome = run.finish();
            assert_eq!(outcome.err(), broken.map(QueryError::Broken));
        }
    }

    #[test]
    fn fragments_with_different_elements_share_a_table() {
        let (number, text, presence) = (
            r#"{"_type":"DV_COUNT","magnitude":7}"#,
            r#"{"_type":"DV_TEXT","value":"t"}"#,
            r#"{"_type":"DV_BOOLEAN","value":true}"#,
        );
        let lists = [
            list(&[(1, number), (3, text)]),
            list(&[]),
            list(&[(2, presence), (3, text)]),
            list(&[(3, number), (1, number)]),
            list(&[
                (1, number),
                (2, presence),
                (2, presence),
                (2, presence),
                (3, text),
            ]),
            list(&[(3, text)]),
        ];
        let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
        let trees: Vec<_> = lists
            .iter()
            .map(|text| json::read(text, Cls::ITEM_LIST).unwrap())
            .collect();
        let packed: Vec<_> = trees
            .iter()
            .map(|tree| pack(tree.root().unwrap(), &NothingKnown, &layouts))
            .collect();
        let fragments: Vec<_> = packed
            .iter()
            .map(|packed| batch.add_root(u32::MAX, packed))
            .collect();
        assert_eq!(
            batch
                .tables()
                .map(|(_, table)| table.len())
                .collect::<Vec<_>>(),
            [6, 3],
            "the lists, and the repeated elements"
        );
        let elements = batch.table(1).unwrap();
        for (row, parent_preorder) in (0..).zip(elements.parent_preorder()) {
            let list = batch.parent_of(Fragment { table: 1, row }).unwrap();
            assert_eq!(
                batch.table(list.table).unwrap().preorder()[list.row as usize],
                *parent_preorder,
                "an element knows the pre-order number of its list"
            );
        }
        assert_eq!(
            batch.table(0).unwrap().parent_preorder(),
            batch.table(0).unwrap().preorder(),
            "a list is a part of nothing"
        );
        for ((tree, fragment), sent) in trees.iter().zip(fragments).zip(&lists) {
            let packed = batch.packed(fragment).unwrap();
            assert_eq!(
                (
                    packed.to_json(),
                    json::write(packed.unpack().root().unwrap())
                ),
                (sent.clone(), sent.clone())
            );
            assert_eq!(
                packed.layouts(),
                pack(tree.root().unwrap(), &NothingKnown, &layouts).layouts()
            );
            let mut written = String::new();
            batch.write_json(fragment, 0, &mut written);
            assert_eq!(written, *sent);
        }
    }
}
