//! Canonical JSON of a packed document, and of a row of a batch.

use super::{Packed, PackedFragment};
use crate::document::layout::{ItemKind, Layout};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::json::quote_into;
use aqlite_rm::tree::Kind;

impl Packed {
    /// Returns the document as canonical JSON. Every object has its `_type`.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.text.len() * 8);
        write_json(
            &PackedView {
                packed: self,
                fragment: &self.root,
            },
            0,
            &mut out,
        );
        out
    }
}

/// Read access to a fragment: packed, or in the columns of a batch.
pub(in crate::document) trait FragmentView: Sized {
    fn layout(&self) -> &Layout;
    /// Returns whether the fragment has an item.
    fn has(&self, item: u32) -> bool;
    fn write_leaf(&self, leaf: u32, kind: Kind, out: &mut String);
    fn each_child(&self, group: u32, visit: &mut dyn FnMut(&Self));
}

struct PackedView<'a> {
    packed: &'a Packed,
    fragment: &'a PackedFragment,
}

impl FragmentView for PackedView<'_> {
    fn layout(&self) -> &Layout {
        &self.fragment.layout
    }

    fn has(&self, _: u32) -> bool {
        // Only merged layouts have optional items. This layout belongs to the fragment alone.
        true
    }

    fn write_leaf(&self, leaf: u32, kind: Kind, out: &mut String) {
        let text = self.packed.leaf_text(self.fragment, leaf);
        if kind == Kind::Text {
            quote_into(out, text)
        } else {
            out.push_str(text)
        }
    }

    fn each_child(&self, group: u32, visit: &mut dyn FnMut(&Self)) {
        for fragment in self
            .fragment
            .groups
            .get(group as usize)
            .into_iter()
            .flatten()
        {
            visit(&PackedView {
                packed: self.packed,
                fragment,
            });
        }
    }
}

/// Writes the subtree of an item as canonical JSON.
pub(in crate::document) fn write_json<V: FragmentView>(view: &V, index: u32, out: &mut String) {
    let layout = view.layout();
    let Some(item) = layout.item(index) else {
        return;
    };
    match item.kind {
        ItemKind::Object => write_object(view, index, item.class, out),
        ItemKind::List => {
            out.push('[');
            let children = layout.children(index).filter(|child| view.has(*child));
            for (i, child) in children.enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write_json(view, child, out);
            }
            out.push(']');
        }
        ItemKind::Constant {
            kind: Kind::Text, ..
        } => quote_into(out, layout.text(item)),
        ItemKind::Constant { .. } => out.push_str(layout.text(item)),
        ItemKind::Leaf(kind, leaf) => view.write_leaf(leaf, kind, out),
        ItemKind::Group(group) => write_group(view, group, out),
    }
}

/// Writes an object with its `_type`.
fn write_object<V: FragmentView>(view: &V, index: u32, class: Cls, out: &mut String) {
    let layout = view.layout();
    out.push_str("{\"_type\":\"");
    out.push_str(class.name());
    out.push('"');
    for child in layout.children(index).filter(|child| view.has(*child)) {
        let attr = layout.item(child).and_then(|c| c.attr);
        out.push_str(",\"");
        out.push_str(attr.map_or("?", Attr::name));
        out.push_str("\":");
        write_json(view, child, out);
    }
    out.push('}');
}

fn write_group<V: FragmentView>(view: &V, group: u32, out: &mut String) {
    let mut first = true;
    view.each_child(group, &mut |fragment| {
        out.push_str(if first { "" } else { "," });
        first = false;
        write_json(fragment, 0, out);
    });
}
