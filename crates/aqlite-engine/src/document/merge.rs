//! Merging of layouts: creates one layout with the items of several.
//!
//! Fragments whose layouts merge are rows of one table. Attributes and list elements can be absent
//! from some of them, and a presence bitmap contains the rows that have such an item. If the
//! content of an attribute differs between two layouts, they do not merge. List elements that
//! differ become separate items.
//!
//! A table with rows of the layout `[a, b]` gets rows of `[a, c]`. The merged layout is
//! `[a, b, c]`. `a` needs no bitmap, because all rows have it. `b` gets bitmap 0, which contains
//! all earlier rows ([`InitialPresence::With`]). `c` gets bitmap 1, which is empty
//! ([`InitialPresence::None`]); the new rows are added to it. A third layout `[a]` changes nothing:
//! its rows are in no bitmap.

use super::layout::{Item, ItemKind, Layout};
use aqlite_rm::class::Attr;
use aqlite_rm::order;

/// The largest number of items of a merged layout. It limits the time of a merge.
const MAX_ITEMS: usize = 1 << 12;

/// The result of merging a layout, the added one, into the merged layout of a table.
pub(super) struct MergedLayout {
    /// The new merged layout; `None` if the old one has all items of the added layout.
    pub layout: Option<Layout>,
    /// The initial content of each new presence bitmap.
    pub bitmaps: Vec<InitialPresence>,
    /// The columns of the leaves of the added layout, in document order.
    pub leaves: Vec<u32>,
    /// The numbers in the merged layout of the repeated groups of the added layout.
    pub groups: Vec<u32>,
    /// The presence bitmaps that contain the rows of the added layout.
    pub present_in: Vec<u32>,
}

/// The rows of a table that have an item which becomes optional, among the rows before the merge.
pub(super) enum InitialPresence {
    /// No row, because the item is new.
    None,
    /// The rows in this presence bitmap; all rows if it is `None`.
    With(Option<u32>),
}

/// Merges the layout `added` into the layout `merged`, which has `bitmaps` presence bitmaps.
///
/// Returns `None` if the layouts cannot merge.
pub(super) fn merge(merged: &Layout, added: &Layout, bitmaps: u32) -> Option<MergedLayout> {
    let mut alignment = Alignment {
        merged,
        added,
        pairs: Vec::with_capacity(merged.items.len()),
    };
    (alignment.align(0, 0) && alignment.pairs.len() <= MAX_ITEMS).then(|| {
        alignment
            .existing_mapping()
            .unwrap_or_else(|| alignment.build(bitmaps))
    })
}

/// An item of the result: its index in the merged layout, and its index in the added layout.
type Pair = (Option<u32>, Option<u32>);

/// An alignment of the items of two layouts, in the order of the result.
struct Alignment<'a> {
    merged: &'a Layout,
    added: &'a Layout,
    pairs: Vec<Pair>,
}

impl Alignment<'_> {
    /// Aligns two items and their subtrees. Adds nothing and returns false if they differ.
    fn align(&mut self, merged: u32, added: u32) -> bool {
        let start = self.pairs.len();
        self.pairs.push((Some(merged), Some(added)));
        let is_aligned = self.is_alike(merged, added) && self.align_children(merged, added);
        if !is_aligned {
            self.pairs.truncate(start);
        }
        is_aligned
    }

    /// Returns whether two items are equal apart from their subtrees.
    fn is_alike(&self, merged: u32, added: u32) -> bool {
        let (Some(a), Some(b)) = (self.merged.item(merged), self.added.item(added)) else {
            return false;
        };
        (a.attr, a.class) == (b.attr, b.class)
            && match (a.kind, b.kind) {
                // The numbers of leaves and groups differ between layouts. They are mapped, not
                // compared.
                (ItemKind::Object, ItemKind::Object)
                | (ItemKind::List, ItemKind::List)
                | (ItemKind::Group(_), ItemKind::Group(_)) => true,
                (ItemKind::Leaf(one, _), ItemKind::Leaf(other, _)) => one == other,
                // All rows of a table share the text of a constant, so it must be the same.
                (ItemKind::Constant { kind: one, .. }, ItemKind::Constant { kind: other, .. }) => {
                    one == other && self.merged.text(a) == self.added.text(b)
                }
                _ => false,
            }
    }

    /// Aligns the children of two items that are alike.
    ///
    /// Every child is aligned with the first remaining child that it matches. Children without a
    /// match are interleaved.
    fn align_children(&mut self, merged: u32, added: u32) -> bool {
        let is_list = self
            .added
            .item(added)
            .is_some_and(|item| item.kind == ItemKind::List);
        let merged_children: Vec<u32> = self.merged.children(merged).collect();
        let mut rest = merged_children.as_slice();
        let mut waiting = Vec::new();
        for child in self.added.children(added) {
            let found = (0..rest.len()).find(|at| {
                self.align_after(rest.get(..=*at).unwrap_or_default(), child, &waiting, added)
            });
            match found {
                Some(at) => {
                    rest = rest.get(at + 1..).unwrap_or_default();
                    // `align_after` has added the waiting children in front of this one.
                    waiting.clear();
                }
                // An object has an attribute once. If the merged layout has it in another order or
                // with other content, the layouts cannot merge. A node id identifies its object, so
                // it can never be optional.
                None if !is_list
                    && (self.is_node_id(self.added, child)
                        || merged_children.iter().any(|a| self.has_attr_of(*a, child))) =>
                {
                    return false;
                }
                None => waiting.push(child),
            }
        }
        let is_named = |layout: &Layout, mut children: std::slice::Iter<'_, u32>| {
            children.any(|child| self.is_node_id(layout, *child))
        };
        // The remaining items become optional, but a node id must never be.
        if !is_list && is_named(self.merged, rest.iter()) {
            return false;
        }
        self.interleave(rest, &waiting, added);
        true
    }

    /// Aligns `child` with the last item of `merged_children`. The waiting children and the other
    /// items of `merged_children` precede it.
    fn align_after(
        &mut self,
        merged_children: &[u32],
        child: u32,
        waiting: &[u32],
        parent: u32,
    ) -> bool {
        let Some((last, before)) = merged_children.split_last() else {
            return false;
        };
        // The skipped items would become optional, but a node id must never be.
        if !self.may_match(*last, child) || before.iter().any(|a| self.is_node_id(self.merged, *a))
        {
            return false;
        }
        let start = self.pairs.len();
        self.interleave(before, waiting, parent);
        let is_aligned = self.align(*last, child);
        if !is_aligned {
            self.pairs.truncate(start);
        }
        is_aligned
    }

    /// Adds items that only one of both layouts has.
    ///
    /// The order is that of the attributes of the class, then that of node ids, because later
    /// layouts probably have the same order.
    fn interleave(&mut self, merged_children: &[u32], added_children: &[u32], parent: u32) {
        let class = self.added.item(parent).map(|item| item.class);
        let place =
            |layout: &Layout, item: u32| layout.item(item).and_then(|i| class?.position(i.attr?));
        let mut merged_children = merged_children.iter().copied().peekable();
        for added in added_children {
            let is_first = |merged: &u32| {
                (place(self.merged, *merged), node_id(self.merged, *merged))
                    <= (place(self.added, *added), node_id(self.added, *added))
            };
            while let Some(merged) = merged_children.next_if(is_first) {
                self.pairs
                    .extend(subtree(self.merged, merged).map(|item| (Some(item), None)));
            }
            self.pairs
                .extend(subtree(self.added, *added).map(|item| (None, Some(item))));
        }
        for merged in merged_children {
            self.pairs
                .extend(subtree(self.merged, merged).map(|item| (Some(item), None)));
        }
    }

    /// Returns false for most children that differ, without a comparison of their subtrees.
    fn may_match(&self, merged: u32, added: u32) -> bool {
        self.is_alike(merged, added) && node_id(self.merged, merged) == node_id(self.added, added)
    }

    fn is_node_id(&self, layout: &Layout, item: u32) -> bool {
        layout
            .item(item)
            .is_some_and(|item| item.attr == Some(Attr::ARCHETYPE_NODE_ID))
    }

    fn has_attr_of(&self, merged: u32, added: u32) -> bool {
        self.merged.item(merged).map(|item| item.attr)
            == self.added.item(added).map(|item| item.attr)
    }

    /// Returns the mapping into the merged layout if it has all items already; otherwise `None`.
    fn existing_mapping(&self) -> Option<MergedLayout> {
        let mut mapping = MergedLayout {
            layout: None,
            bitmaps: Vec::new(),
            leaves: Vec::new(),
            groups: Vec::new(),
            present_in: Vec::new(),
        };
        for (merged, added) in &self.pairs {
            // If the added layout has no item of its own, item `i` of the merged layout is in pair
            // `i`.
            let item = self.merged.item((*merged)?)?;
            let (parent, has_parent) = (
                self.merged.item(item.parent)?,
                self.pairs.get(item.parent as usize)?.1.is_some(),
            );
            match (added, item.kind) {
                // Rows with the parent that lack this item need a bitmap that does not exist yet.
                (None, _) if has_parent && item.presence == parent.presence => return None,
                (None, _) => continue,
                (Some(_), ItemKind::Leaf(_, leaf)) => mapping.leaves.push(leaf),
                (Some(_), ItemKind::Group(group)) => mapping.groups.push(group),
                _ => {}
            }
            mapping.present_in.extend(item.presence);
        }
        Some(MergedLayout {
            present_in: order::distinct(mapping.present_in),
            ..mapping
        })
    }

    /// Builds the merged layout of both, with the mapping of the added layout.
    fn build(&self, bitmaps: u32) -> MergedLayout {
        let mut builder = MergeBuilder {
            bitmaps,
            ..MergeBuilder::new(self.merged, self.added)
        };
        self.pairs.iter().for_each(|pair| builder.push(self, *pair));
        // Children follow their parents, so the loop runs backwards: the end of an item is final
        // before it is passed on to the parent.
        for at in (1..builder.layout.items.len()).rev() {
            let Some((parent, end)) = builder
                .layout
                .items
                .get(at)
                .map(|item| (item.parent, item.end))
            else {
                continue;
            };
            builder
                .layout
                .items
                .get_mut(parent as usize)
                .into_iter()
                .for_each(|parent| parent.end = parent.end.max(end));
        }
        let present_in = order::distinct(builder.present_in);
        MergedLayout {
            layout: Some(builder.layout),
            bitmaps: builder.initial,
            leaves: builder.added_leaves,
            groups: builder.added_groups,
            present_in,
        }
    }
}

/// Returns the constant node id of an object; the empty text if its node id is a leaf value.
fn node_id(layout: &Layout, item: u32) -> Option<&str> {
    layout
        .child(item, Attr::ARCHETYPE_NODE_ID)
        .and_then(|id| layout.item(id))
        .map(|id| layout.text(id))
}

fn subtree(layout: &Layout, item: u32) -> std::ops::Range<u32> {
    item..layout.item(item).map_or(item, |i| i.end)
}

/// A merged layout under construction.
struct MergeBuilder {
    layout: Layout,
    /// The number of presence bitmaps.
    bitmaps: u32,
    initial: Vec<InitialPresence>,
    /// The index in the result of each item of the old merged layout.
    index_of_merged: Vec<u32>,
    /// The index in the result of each item of the added layout.
    index_of_added: Vec<u32>,
    /// The numbers in the result of the leaves of the added layout.
    added_leaves: Vec<u32>,
    /// The numbers in the result of the repeated groups of the added layout.
    added_groups: Vec<u32>,
    /// The presence bitmaps that contain the rows of the added layout.
    present_in: Vec<u32>,
}

impl MergeBuilder {
    fn new(merged: &Layout, added: &Layout) -> MergeBuilder {
        let mut layout = Layout::default();
        // Existing leaves and groups keep their numbers, by which the table stores its columns.
        (layout.leaves, layout.groups) = (merged.leaves.clone(), merged.groups.clone());
        MergeBuilder {
            layout,
            bitmaps: 0,
            initial: Vec::new(),
            index_of_merged: vec![0; merged.items.len()],
            index_of_added: vec![0; added.items.len()],
            added_leaves: Vec::new(),
            added_groups: Vec::new(),
            present_in: Vec::new(),
        }
    }

    fn push(&mut self, alignment: &Alignment<'_>, (merged, added): Pair) {
        let index = self.layout.items.len() as u32;
        let old = merged.and_then(|merged| alignment.merged.item(merged));
        let new = added.and_then(|added| alignment.added.item(added));
        let (Some(item), Some(of)) = (
            old.or(new),
            if old.is_some() {
                Some(alignment.merged)
            } else {
                Some(alignment.added)
            },
        ) else {
            return;
        };
        // Parents precede their children, so the new index of a parent is already known.
        let place =
            |places: &[u32], item: &Item| places.get(item.parent as usize).copied().unwrap_or(0);
        let parent = new
            .map(|item| place(&self.index_of_added, item))
            .or(old.map(|item| place(&self.index_of_merged, item)))
            .unwrap_or(0);
        let kind = self.kind(of.text(item), item.kind, old.is_some());
        let presence = self.presence(alignment, (merged, added), parent);
        self.record(kind, index, added.is_some(), presence);
        merged
            .and_then(|merged| self.index_of_merged.get_mut(merged as usize))
            .into_iter()
            .for_each(|entry| *entry = index);
        added
            .and_then(|added| self.index_of_added.get_mut(added as usize))
            .into_iter()
            .for_each(|entry| *entry = index);
        self.layout.items.push(Item {
            kind,
            parent,
            end: index + 1,
            presence,
            ..*item
        });
    }

    /// Returns the kind of an item of the result.
    ///
    /// Leaves and groups keep their numbers; new ones get the next number.
    fn kind(&mut self, text: &str, kind: ItemKind, is_old: bool) -> ItemKind {
        match kind {
            ItemKind::Constant { kind, .. } => {
                let start = self.layout.texts.len() as u32;
                self.layout.texts.push_str(text);
                ItemKind::Constant {
                    kind,
                    start,
                    len: text.len() as u32,
                }
            }
            ItemKind::Leaf(kind, _) if !is_old => {
                // The 0 is a placeholder: `record` enters the index of the item.
                self.layout.leaves.push(0);
                ItemKind::Leaf(kind, self.layout.leaves.len() as u32 - 1)
            }
            ItemKind::Group(_) if !is_old => {
                self.layout.groups.push(0);
                ItemKind::Group(self.layout.groups.len() as u32 - 1)
            }
            kind => kind,
        }
    }

    /// Returns the presence bitmap of an item: that of its parent, unless only some rows with the
    /// parent have the item.
    fn presence(
        &mut self,
        alignment: &Alignment<'_>,
        (merged, added): Pair,
        parent: u32,
    ) -> Option<u32> {
        let above = self.layout.item(parent).and_then(|item| item.presence);
        let old = merged.and_then(|merged| alignment.merged.item(merged));
        let old_above = old
            .and_then(|item| alignment.merged.item(item.parent))
            .and_then(|parent| parent.presence);
        let has_parent =
            |pairs: &dyn Fn(&Pair) -> bool| alignment.pairs.get(parent as usize).is_some_and(pairs);
        match (old, added) {
            // The item was optional before, so its bitmap stays.
            (Some(old), _) if old.presence != old_above => old.presence,
            // All earlier rows with the parent have the item, but the rows of the added layout lack
            // it.
            (Some(_), None) if has_parent(&|(_, added)| added.is_some()) => {
                Some(self.add_bitmap(InitialPresence::With(old_above)))
            }
            // The parent exists already, but no earlier row of it has the item.
            (None, _) if has_parent(&|(merged, _)| merged.is_some()) => {
                Some(self.add_bitmap(InitialPresence::None))
            }
            // The item is present exactly where its parent is, so both share a bitmap.
            _ => above,
        }
    }

    fn add_bitmap(&mut self, initial: InitialPresence) -> u32 {
        self.initial.push(initial);
        self.bitmaps += 1;
        self.bitmaps - 1
    }

    fn record(&mut self, kind: ItemKind, index: u32, is_added: bool, presence: Option<u32>) {
        let (items, numbers, number) = match kind {
            ItemKind::Leaf(_, leaf) => (&mut self.layout.leaves, &mut self.added_leaves, leaf),
            ItemKind::Group(group) => (&mut self.layout.groups, &mut self.added_groups, group),
            _ => return self.present_in.extend(presence.filter(|_| is_added)),
        };
        items
            .get_mut(number as usize)
            .into_iter()
            .for_each(|item| *item = index);
        numbers.extend(is_added.then_some(number));
        self.present_in.extend(presence.filter(|_| is_added));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::layout::LayoutStore;

    fn list(elements: &[&str]) -> String {
        let element = |id: &&str| {
            format!(
                r#"{{"_type":"ELEMENT","archetype_node_id":"{id}","name":{{"_type":"DV_TEXT","value":"{id}"}},"value":{{"_type":"DV_COUNT","magnitude":{{"_slot":"number"}}}}}}"#
            )
        };
        let elements: Vec<String> = elements.iter().map(element).collect();
        format!(
            r#"{{"_type":"ITEM_LIST","archetype_node_id":"at0000","items":[{}]}}"#,
            elements.join(",")
        )
    }

    fn merged_lists(lists: &[&[&str]]) -> (Layout, u32) {
        let layout = |elements: &[&str]| LayoutStore::new().read(&list(elements)).unwrap();
        let mut merged = (layout(lists[0]), 0);
        for added in &lists[1..] {
            let result = merge(&merged.0, &layout(added), merged.1).unwrap();
            merged.1 += result.bitmaps.len() as u32;
            merged.0 = result.layout.map_or(merged.0, std::sync::Arc::new);
        }
        (std::sync::Arc::into_inner(merged.0).unwrap(), merged.1)
    }

    #[test]
    fn elements_are_interleaved_by_node_id() {
        let lists: [&[&str]; 5] = [
            &["at2", "at5", "at9"],
            &["at1", "at2", "at7"],
            &["at3", "at5"],
            &["at9"],
            &["at1", "at2", "at3", "at5", "at7", "at9"],
        ];
        let (layout, bitmaps) = merged_lists(&lists);
        let expected = merged_lists(&[&["at1", "at2", "at3", "at5", "at7", "at9"]]).0;
        assert_eq!(bitmaps, 6, "each may be missing");
        assert_eq!(layout.to_text(), expected.to_text());
    }

    #[test]
    fn elements_in_another_order_get_items_of_their_own() {
        let (layout, _) = merged_lists(&[&["at1", "at2"], &["at2", "at1"]]);
        assert_eq!(
            layout.to_text(),
            merged_lists(&[&["at1", "at2", "at1"]]).0.to_text()
        );
    }

    #[test]
    fn different_values_of_one_attribute_do_not_merge() {
        let layout = |value: &str| {
            LayoutStore::new()
                .read(&format!(
                    r#"{{"_type":"ELEMENT","archetype_node_id":"at1","value":{value}}}"#
                ))
                .unwrap()
        };
        let number = layout(r#"{"_type":"DV_COUNT","magnitude":{"_slot":"number"}}"#);
        assert!(
            merge(
                &number,
                &layout(r#"{"_type":"DV_TEXT","value":{"_slot":"text"}}"#),
                0
            )
            .is_none()
        );
        assert!(
            merge(&number, &number, 0)
                .is_some_and(|result| result.layout.is_none() && result.leaves == [0])
        );
    }
}
