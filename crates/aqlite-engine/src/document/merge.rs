//! Merging of layouts: creates one layout with the items of several.
//!
//! Fragments whose layouts merge are rows of one table. Attributes and list elements can be absent
//! from some of them, and a presence bitmap contains the rows that have such an item. If the
//! content of an attribute differs between two layouts, they do not merge. List elements that
//! differ become separate items.

use super::layout::{Item, ItemKind, Layout};
use aqlite_rm::class::Attr;
use aqlite_rm::order;

/// The largest number of items of a merged layout. It limits the time of a merge.
const MAX_ITEMS: usize = 1 << 12;

/// The result of merging a layout into the merged layout of a table.
pub(super) struct MergedLayout {
    /// The new merged layout; `None` if the old one has all items of the layout.
    pub layout: Option<Layout>,
    /// The initial content of each new presence bitmap.
    pub bitmaps: Vec<InitialPresence>,
    /// The columns of the leaves of the layout, in document order.
    pub leaves: Vec<u32>,
    /// The numbers in the merged layout of the repeated groups of the layout.
    pub groups: Vec<u32>,
    /// The presence bitmaps that contain the rows of the layout.
    pub set: Vec<u32>,
}

/// The rows of a table that have an item which becomes optional, among the rows before the merge.
pub(super) enum InitialPresence {
    /// No row, because the item is new.
    None,
    /// The rows in this presence bitmap; all rows if it is `None`.
    With(Option<u32>),
}

/// Merges the layout `own` into the merged layout `all`, which has `bitmaps` presence bitmaps.
///
/// Returns `None` if the layouts cannot merge.
pub(super) fn merge(all: &Layout, own: &Layout, bitmaps: u32) -> Option<MergedLayout> {
    let mut alignment = Alignment {
        all,
        own,
        pairs: Vec::with_capacity(all.items.len()),
    };
    (alignment.align(0, 0) && alignment.pairs.len() <= MAX_ITEMS).then(|| {
        alignment
            .existing_mapping()
            .unwrap_or_else(|| alignment.build(bitmaps))
    })
}

/// An item of the result: its index in the merged layout, and its index in the layout.
type Pair = (Option<u32>, Option<u32>);

/// An alignment of the items of two layouts, in the order of the result.
struct Alignment<'a> {
    all: &'a Layout,
    own: &'a Layout,
    pairs: Vec<Pair>,
}

impl Alignment<'_> {
    /// Aligns two items and their subtrees. Adds nothing and returns false if they differ.
    fn align(&mut self, all: u32, own: u32) -> bool {
        let start = self.pairs.len();
        self.pairs.push((Some(all), Some(own)));
        let is_aligned = self.is_alike(all, own) && self.align_children(all, own);
        if !is_aligned {
            self.pairs.truncate(start);
        }
        is_aligned
    }

    /// Returns whether two items are equal apart from their subtrees.
    fn is_alike(&self, all: u32, own: u32) -> bool {
        let (Some(a), Some(b)) = (self.all.item(all), self.own.item(own)) else {
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
                (ItemKind::Constant(one, ..), ItemKind::Constant(other, ..)) => {
                    one == other && self.all.text(a) == self.own.text(b)
                }
                _ => false,
            }
    }

    /// Aligns the children of two items that are alike.
    ///
    /// Every child is aligned with the first remaining child that it matches. Children without a
    /// match are interleaved.
    fn align_children(&mut self, all: u32, own: u32) -> bool {
        let is_list = self
            .own
            .item(own)
            .is_some_and(|item| item.kind == ItemKind::List);
        let theirs: Vec<u32> = self.all.children(all).collect();
        let mut rest = theirs.as_slice();
        let mut waiting = Vec::new();
        for child in self.own.children(own) {
            let found = (0..rest.len()).find(|at| {
                self.align_after(rest.get(..=*at).unwrap_or_default(), child, &waiting, own)
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
                    && (self.is_node_id(self.own, child)
                        || theirs.iter().any(|a| self.has_attr_of(*a, child))) =>
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
        if !is_list && is_named(self.all, rest.iter()) {
            return false;
        }
        self.interleave(rest, &waiting, own);
        true
    }

    /// Aligns `child` with the last item of `theirs`. The waiting children and the other items of
    /// `theirs` precede it.
    fn align_after(&mut self, theirs: &[u32], child: u32, waiting: &[u32], parent: u32) -> bool {
        let Some((last, before)) = theirs.split_last() else {
            return false;
        };
        // The skipped items would become optional, but a node id must never be.
        if !self.may_match(*last, child) || before.iter().any(|a| self.is_node_id(self.all, *a)) {
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
    fn interleave(&mut self, theirs: &[u32], ours: &[u32], parent: u32) {
        let class = self.own.item(parent).map(|item| item.class);
        let place =
            |layout: &Layout, item: u32| layout.item(item).and_then(|i| class?.position(i.attr?));
        let mut theirs = theirs.iter().copied().peekable();
        for own in ours {
            let is_first = |all: &u32| {
                (place(self.all, *all), node_id(self.all, *all))
                    <= (place(self.own, *own), node_id(self.own, *own))
            };
            while let Some(all) = theirs.next_if(is_first) {
                self.pairs
                    .extend(subtree(self.all, all).map(|item| (Some(item), None)));
            }
            self.pairs
                .extend(subtree(self.own, *own).map(|item| (None, Some(item))));
        }
        for all in theirs {
            self.pairs
                .extend(subtree(self.all, all).map(|item| (Some(item), None)));
        }
    }

    /// Returns false for most children that differ, without a comparison of their subtrees.
    fn may_match(&self, all: u32, own: u32) -> bool {
        self.is_alike(all, own) && node_id(self.all, all) == node_id(self.own, own)
    }

    fn is_node_id(&self, layout: &Layout, item: u32) -> bool {
        layout
            .item(item)
            .is_some_and(|item| item.attr == Some(Attr::ARCHETYPE_NODE_ID))
    }

    fn has_attr_of(&self, all: u32, own: u32) -> bool {
        self.all.item(all).map(|item| item.attr) == self.own.item(own).map(|item| item.attr)
    }

    /// Returns the mapping into the merged layout if it has all items already; otherwise `None`.
    fn existing_mapping(&self) -> Option<MergedLayout> {
        let mut merged = MergedLayout {
            layout: None,
            bitmaps: Vec::new(),
            leaves: Vec::new(),
            groups: Vec::new(),
            set: Vec::new(),
        };
        for (all, own) in &self.pairs {
            // If the layout adds no item, item `i` of the merged layout is in pair `i`.
            let item = self.all.item((*all)?)?;
            let (parent, has_parent) = (
                self.all.item(item.parent)?,
                self.pairs.get(item.parent as usize)?.1.is_some(),
            );
            match (own, item.kind) {
                // Rows with the parent that lack this item need a bitmap that does not exist yet.
                (None, _) if has_parent && item.presence == parent.presence => return None,
                (None, _) => continue,
                (Some(_), ItemKind::Leaf(_, leaf)) => merged.leaves.push(leaf),
                (Some(_), ItemKind::Group(group)) => merged.groups.push(group),
                _ => {}
            }
            merged.set.extend(item.presence);
        }
        Some(MergedLayout {
            set: order::distinct(merged.set),
            ..merged
        })
    }

    /// Builds the merged layout of both, with the mapping of `own`.
    fn build(&self, bitmaps: u32) -> MergedLayout {
        let mut builder = MergeBuilder {
            bitmaps,
            ..MergeBuilder::new(self.all, self.own)
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
        let set = order::distinct(builder.set);
        MergedLayout {
            layout: Some(builder.layout),
            bitmaps: builder.initial,
            leaves: builder.own_leaves,
            groups: builder.own_groups,
            set,
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
    /// The new index of each item of the old merged layout. The field below is the same for the
    /// layout.
    all: Vec<u32>,
    own: Vec<u32>,
    own_leaves: Vec<u32>,
    own_groups: Vec<u32>,
    set: Vec<u32>,
}

impl MergeBuilder {
    fn new(all: &Layout, own: &Layout) -> MergeBuilder {
        let mut layout = Layout::default();
        // Existing leaves and groups keep their numbers, by which the table stores its columns.
        (layout.leaves, layout.groups) = (all.leaves.clone(), all.groups.clone());
        let (all, own) = (vec![0; all.items.len()], vec![0; own.items.len()]);
        MergeBuilder {
            layout,
            bitmaps: 0,
            initial: Vec::new(),
            all,
            own,
            own_leaves: Vec::new(),
            own_groups: Vec::new(),
            set: Vec::new(),
        }
    }

    fn push(&mut self, alignment: &Alignment<'_>, (all, own): Pair) {
        let index = self.layout.items.len() as u32;
        let old = all.and_then(|all| alignment.all.item(all));
        let new = own.and_then(|own| alignment.own.item(own));
        let (Some(item), Some(of)) = (
            old.or(new),
            if old.is_some() {
                Some(alignment.all)
            } else {
                Some(alignment.own)
            },
        ) else {
            return;
        };
        // Parents precede their children, so the new index of a parent is already known.
        let place =
            |places: &[u32], item: &Item| places.get(item.parent as usize).copied().unwrap_or(0);
        let parent = new
            .map(|item| place(&self.own, item))
            .or(old.map(|item| place(&self.all, item)))
            .unwrap_or(0);
        let kind = self.kind(of.text(item), item.kind, old.is_some());
        let presence = self.presence(alignment, (all, own), parent);
        self.record(kind, index, own.is_some(), presence);
        all.and_then(|all| self.all.get_mut(all as usize))
            .into_iter()
            .for_each(|place| *place = index);
        own.and_then(|own| self.own.get_mut(own as usize))
            .into_iter()
            .for_each(|place| *place = index);
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
            ItemKind::Constant(kind, ..) => {
                let start = self.layout.texts.len() as u32;
                self.layout.texts.push_str(text);
                ItemKind::Constant(kind, start, text.len() as u32)
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
        (all, own): Pair,
        parent: u32,
    ) -> Option<u32> {
        let above = self.layout.item(parent).and_then(|item| item.presence);
        let old = all.and_then(|all| alignment.all.item(all));
        let old_above = old
            .and_then(|item| alignment.all.item(item.parent))
            .and_then(|parent| parent.presence);
        let has_parent =
            |pairs: &dyn Fn(&Pair) -> bool| alignment.pairs.get(parent as usize).is_some_and(pairs);
        match (old, own) {
            // The item was optional before, so its bitmap stays.
            (Some(old), _) if old.presence != old_above => old.presence,
            // All earlier rows with the parent have the item, but the rows of the new layout lack
            // it.
            (Some(_), None) if has_parent(&|(_, own)| own.is_some()) => {
                Some(self.add_bitmap(InitialPresence::With(old_above)))
            }
            // The parent exists already, but no earlier row of it has the item.
            (None, _) if has_parent(&|(all, _)| all.is_some()) => {
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

    fn record(&mut self, kind: ItemKind, index: u32, is_own: bool, presence: Option<u32>) {
        let (places, own, number) = match kind {
            ItemKind::Leaf(_, leaf) => (&mut self.layout.leaves, &mut self.own_leaves, leaf),
            ItemKind::Group(group) => (&mut self.layout.groups, &mut self.own_groups, group),
            _ => return self.set.extend(presence.filter(|_| is_own)),
        };
        places
            .get_mut(number as usize)
            .into_iter()
            .for_each(|place| *place = index);
        own.extend(is_own.then_some(number));
        self.set.extend(presence.filter(|_| is_own));
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
        let mut all = (layout(lists[0]), 0);
        for own in &lists[1..] {
            let merged = merge(&all.0, &layout(own), all.1).unwrap();
            all.1 += merged.bitmaps.len() as u32;
            all.0 = merged.layout.map_or(all.0, std::sync::Arc::new);
        }
        (std::sync::Arc::into_inner(all.0).unwrap(), all.1)
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
                .is_some_and(|merged| merged.layout.is_none() && merged.leaves == [0])
        );
    }
}
