//! Conversion of documents of a batch to packed documents and to canonical JSON.

use super::{Batch, Fragment, Table};
use crate::document::column::Leaf;
use crate::document::layout::{Item, ItemKind, Layout, LayoutKey};
use crate::document::pack::{FragmentView, Packed, PackedFragment, write_json};
use aqlite_rm::json::quote_into;
use aqlite_rm::tree::Kind;

impl Batch {
    /// Returns a document as it was packed.
    pub fn packed(&self, fragment: Fragment) -> Option<Packed> {
        let mut text = String::new();
        let root = self.pack_fragment(fragment, &mut text)?;
        Packed::new(text, root)
    }

    fn pack_fragment(&self, fragment: Fragment, text: &mut String) -> Option<PackedFragment> {
        let table = self.table(fragment.table)?;
        let (mut key, mut open) = (LayoutKey::default(), Vec::new());
        let (mut leaves, mut groups) = (Vec::new(), Vec::new());
        for (index, item) in (0..).zip(table.layout().items()) {
            // Objects and lists whose subtree ends here are closed.
            while open.last().is_some_and(|end| *end <= index) {
                open.pop();
                key.close();
            }
            // The row lacks items that come from other layouts of the table.
            if !table.has(fragment.row, index) {
                continue;
            }
            add_to_key(&mut key, table.layout(), item);
            match item.kind {
                ItemKind::Object | ItemKind::List => open.push(item.end),
                ItemKind::Constant { .. } => {}
                ItemKind::Leaf(..) => {
                    let start = text.len() as u32;
                    self.write_leaf(fragment, index, text);
                    leaves.push((start, text.len() as u32));
                }
                ItemKind::Group(group) => groups.push(self.pack_group(fragment, group, text)?),
            }
        }
        open.iter().for_each(|_| key.close());
        // The key has the items of this row only, so the layout is the one from before the merge.
        Some(PackedFragment {
            layout: self.layouts.intern(key.bytes()),
            leaves,
            groups,
        })
    }

    /// Packs the child rows of a repeated group, and appends their leaf values to `text`.
    fn pack_group(
        &self,
        fragment: Fragment,
        group: u32,
        text: &mut String,
    ) -> Option<Vec<PackedFragment>> {
        let children = self.child_rows(fragment, group).iter();
        children
            .map(|child| self.pack_fragment(*child, text))
            .collect()
    }

    /// Appends the subtree of an item of a fragment as canonical JSON, as stored.
    pub fn write_json(&self, fragment: Fragment, item: u32, out: &mut String) {
        if let Some(table) = self.table(fragment.table) {
            write_json(
                &BatchView {
                    batch: self,
                    table,
                    fragment,
                },
                item,
                out,
            );
        }
    }
}

struct BatchView<'a> {
    batch: &'a Batch,
    table: &'a Table,
    fragment: Fragment,
}

impl FragmentView for BatchView<'_> {
    fn layout(&self) -> &Layout {
        self.table.layout()
    }

    fn has(&self, item: u32) -> bool {
        self.table.has(self.fragment.row, item)
    }

    fn write_leaf(&self, leaf: u32, kind: Kind, out: &mut String) {
        let (Some(column_view), texts) = (
            self.table.column_view(leaf),
            self.batch.texts_of(self.fragment.table),
        ) else {
            return;
        };
        match (kind, column_view.leaf(self.fragment.row, texts)) {
            // Columns store texts without quotes and escapes.
            (Kind::Text, Some(Leaf::Text(text))) => quote_into(out, text),
            // The text of a time has no character that JSON escapes.
            (Kind::Text, Some(Leaf::Time(time))) => {
                out.push('"');
                time.write(out);
                out.push('"');
            }
            _ => column_view.write(self.fragment.row, texts, out),
        }
    }

    fn each_child(&self, group: u32, visit: &mut dyn FnMut(&Self)) {
        for child in self.batch.child_rows(self.fragment, group) {
            if let Some(table) = self.batch.table(child.table) {
                visit(&BatchView {
                    batch: self.batch,
                    table,
                    fragment: *child,
                });
            }
        }
    }
}

/// Appends an item of a layout to the key of another layout. Objects and lists are opened, and the
/// caller closes them.
fn add_to_key(key: &mut LayoutKey, layout: &Layout, item: &Item) {
    match item.kind {
        ItemKind::Object => key.open(item.attr, item.class, Kind::Object),
        ItemKind::List => key.open(item.attr, item.class, Kind::List),
        ItemKind::Constant { kind, .. } => {
            key.constant(item.attr, item.class, kind, layout.text(item))
        }
        ItemKind::Leaf(kind, _) => key.leaf(item.attr, item.class, kind),
        ItemKind::Group(_) => key.group(item.attr, item.class),
    }
}
