//! Packing: lossless conversion between document trees and fragments of layouts and leaf values.

mod json;
mod text;

use super::layout::{Item, ItemKind, Layout, LayoutKey, LayoutStore};
use super::rule::{self, Known, LeafPosition};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::tree::{Kind, NodeId, NodeRef, Tree};
pub(super) use json::{FragmentView, write_json};
use std::sync::Arc;

/// A packed document: its root fragment with all child rows.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The concatenated texts of all leaf values.
    text: String,
    root: PackedFragment,
}

/// A fragment of a packed document.
#[derive(Clone, Debug)]
pub(super) struct PackedFragment {
    pub layout: Arc<Layout>,
    /// The range in the text of each leaf value, by number.
    pub leaves: Vec<(u32, u32)>,
    /// The fragments of each repeated group, by number.
    pub groups: Vec<Vec<PackedFragment>>,
}

impl PackedFragment {
    /// Returns whether the fragment and its descendants have the leaf values and groups of their
    /// layouts, and whether the leaf values are ranges of a text. Costs one step for each leaf
    /// value.
    fn fits(&self, text: &str) -> bool {
        let is_part =
            |(start, end): &(u32, u32)| text.get(*start as usize..*end as usize).is_some();
        self.leaves.len() == self.layout.leaves().len()
            && self.groups.len() == self.layout.groups().len()
            && self.leaves.iter().all(is_part)
            && self.groups.iter().flatten().all(|inner| inner.fits(text))
    }
}

/// Packs a document, or any other object, into layouts and leaf values.
///
/// `known` are the texts of its template. Other texts become leaf values, whatever the class table
/// states about their attribute.
pub fn pack(node: NodeRef<'_>, known: &dyn Known, layouts: &LayoutStore) -> Packed {
    let mut packer = Packer {
        known,
        layouts,
        // Leaf values are about a sixth of a document.
        text: String::with_capacity(node.tree().size() / 6),
        spare: Vec::new(),
    };
    let root = packer.fragment(node);
    Packed {
        text: packer.text,
        root,
    }
}

struct Packer<'a> {
    known: &'a dyn Known,
    layouts: &'a LayoutStore,
    text: String,
    spare: Vec<LayoutKey>,
}

/// A fragment under construction.
struct Draft {
    key: LayoutKey,
    leaves: Vec<(u32, u32)>,
    groups: Vec<Vec<PackedFragment>>,
}

impl Packer<'_> {
    fn fragment(&mut self, node: NodeRef<'_>) -> PackedFragment {
        let mut draft = Draft {
            // The buffer of a finished fragment is reused.
            key: self.spare.pop().unwrap_or_else(LayoutKey::with_capacity),
            // Most fragments have some leaves and few groups.
            leaves: Vec::with_capacity(16),
            groups: Vec::new(),
        };
        draft.key.clear();
        self.object(node, None, None, &mut draft);
        let layout = self.layouts.intern(draft.key.bytes());
        self.spare.push(draft.key);
        PackedFragment {
            layout,
            leaves: draft.leaves,
            groups: draft.groups,
        }
    }

    fn object(
        &mut self,
        node: NodeRef<'_>,
        attr: Option<Attr>,
        role: Option<Attr>,
        draft: &mut Draft,
    ) {
        draft.key.open(attr, node.class(), Kind::Object);
        // A text or code within another one has the role of the attribute that holds the outermost
        // of them.
        let role = if has_outer_role(node.class()) {
            role.or(attr)
        } else {
            None
        };
        for child in node.children() {
            match child.kind() {
                Kind::Object
                    if child
                        .attr()
                        .is_some_and(|a| rule::is_own_fragment(node.class(), a)) =>
                {
                    // A single object that is always a fragment of its own is a group of one.
                    draft.key.group(child.attr(), child.class());
                    let fragment = self.fragment(child);
                    draft.groups.push(vec![fragment]);
                }
                Kind::Object => self.object(child, child.attr(), role, draft),
                Kind::List => self.list(child, draft),
                _ => self.leaf(child, node.class(), role, draft),
            }
        }
        draft.key.close();
    }

    fn list(&mut self, list: NodeRef<'_>, draft: &mut Draft) {
        draft.key.open(list.attr(), list.class(), Kind::List);
        // Consecutive fragments share a group. Any other element between them ends the group, which
        // preserves the order of the list.
        let mut in_group = false;
        for (element, cut) in list.children().zip(rule::elements_with_own_fragment(list)) {
            if !cut {
                in_group = false;
                match element.kind() {
                    Kind::Object | Kind::List => self.object(element, list.attr(), None, draft),
                    _ => self.leaf(element, list.class(), None, draft),
                }
                continue;
            }
            let fragment = self.fragment(element);
            match draft.groups.last_mut().filter(|_| in_group) {
                Some(group) => group.push(fragment),
                None => {
                    draft.key.group(list.attr(), list.class());
                    draft.groups.push(vec![fragment]);
                }
            }
            in_group = true;
        }
        draft.key.close();
    }

    fn leaf(&mut self, leaf: NodeRef<'_>, class: Cls, role: Option<Attr>, draft: &mut Draft) {
        let attr = leaf.attr();
        let constant = attr.is_some_and(|attr| {
            rule::is_constant(
                LeafPosition { class, attr, role },
                leaf.kind(),
                leaf.text(),
                self.known,
            )
        });
        if constant {
            draft
                .key
                .constant(attr, leaf.class(), leaf.kind(), leaf.text());
        } else {
            draft.key.leaf(attr, leaf.class(), leaf.kind());
            let start = self.text.len() as u32;
            self.text.push_str(leaf.text());
            draft.leaves.push((start, self.text.len() as u32));
        }
    }
}

/// Returns whether the leaves of a class have the role of the attribute that holds the outermost
/// object of such a class. So `name/defining_code/code_string` has the role `name`.
fn has_outer_role(class: Cls) -> bool {
    class.is_a(Cls::DV_TEXT) || class == Cls::CODE_PHRASE
}

impl Packed {
    /// Creates a packed document. Returns `None` if a fragment does not fit its layout, or a leaf
    /// value is no range of the text. Fragments of [`pack`] and [`Packed::from_text`] always fit.
    pub(super) fn new(text: String, root: PackedFragment) -> Option<Packed> {
        let is_whole = root.fits(&text);
        is_whole.then_some(Packed { text, root })
    }

    pub(super) fn root(&self) -> &PackedFragment {
        &self.root
    }

    /// Returns the text of a leaf value of a fragment of this document.
    ///
    /// Every fragment has the leaf values of its layout, each a part of the text
    /// ([`PackedFragment::fits`]), so the empty text is returned only for the empty leaf value.
    pub(super) fn leaf_text(&self, fragment: &PackedFragment, leaf: u32) -> &str {
        let range = fragment.leaves.get(leaf as usize);
        debug_assert!(range.is_some(), "a fragment has the leaves of its layout");
        let (start, end) = range.copied().unwrap_or_default();
        self.text
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    /// Returns the text at the end of a path of attributes from the root. Of a list, the first member
    /// counts.
    pub fn text_along(&self, path: &[Attr]) -> Option<&str> {
        let (mut fragment, mut index) = (&self.root, 0);
        for attr in path {
            index = fragment.layout.child(index, *attr)?;
            // The path continues at the root of the child fragment.
            if let ItemKind::Group(group) = fragment.layout.item(index)?.kind {
                fragment = fragment.groups.get(group as usize)?.first()?;
                index = 0;
            }
        }
        let item = fragment.layout.item(index)?;
        match self.node(fragment, item) {
            Ok((Kind::Text, text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the bytes of its leaf values.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Returns the class of the root.
    pub fn class(&self) -> Cls {
        self.root.layout.class()
    }

    /// Returns an estimate of the bytes of its canonical JSON: its texts, and 16 bytes for each
    /// node. Costs one step for each child.
    pub fn json_size(&self) -> usize {
        let (mut size, mut waiting) = (self.text.len(), vec![&self.root]);
        while let Some(fragment) = waiting.pop() {
            size += fragment.layout.items().len() * 16;
            waiting.extend(fragment.groups.iter().flatten());
        }
        size
    }

    /// Returns the distinct layouts in order of first use. The first is that of the root.
    pub fn layouts(&self) -> Vec<Arc<Layout>> {
        let mut found: Vec<Arc<Layout>> = Vec::new();
        let mut waiting = vec![&self.root];
        while let Some(fragment) = waiting.pop() {
            if !found.iter().any(|s| Arc::ptr_eq(s, &fragment.layout)) {
                found.push(Arc::clone(&fragment.layout));
            }
            waiting.extend(fragment.groups.iter().flatten());
        }
        found
    }

    /// Returns the document as a tree.
    pub fn unpack(&self) -> Tree {
        let mut tree = Tree::with_capacity(self.text.len() * 8);
        self.grow(&self.root, &mut tree, None, None);
        tree
    }

    fn grow(
        &self,
        fragment: &PackedFragment,
        tree: &mut Tree,
        parent: Option<NodeId>,
        attr: Option<Attr>,
    ) {
        let mut open: Vec<(u32, NodeId)> = Vec::new();
        for (index, item) in fragment.layout.items().iter().enumerate() {
            // Objects and lists whose subtree ends here are closed. The last open one is then the
            // parent.
            while open.last().is_some_and(|(end, _)| *end <= index as u32) {
                open.pop();
            }
            let above = open.last().map(|(_, id)| *id).or(parent);
            // The root of a layout has no attribute, so it is that of the group in the parent
            // fragment.
            let at = if index == 0 { attr } else { item.attr };
            match self.node(fragment, item) {
                Ok((kind, text)) => {
                    open.push((item.end, tree.push(above, at, item.class, kind, text)))
                }
                Err(group) => group
                    .iter()
                    .for_each(|inner| self.grow(inner, tree, above, at)),
            }
        }
    }

    /// Returns the kind and text of the node of an item, or the fragments of a repeated group.
    fn node<'a>(
        &'a self,
        fragment: &'a PackedFragment,
        item: &Item,
    ) -> Result<(Kind, &'a str), &'a [PackedFragment]> {
        match item.kind {
            ItemKind::Object => Ok((Kind::Object, "")),
            ItemKind::List => Ok((Kind::List, "")),
            ItemKind::Constant { kind, .. } => Ok((kind, fragment.layout.text(item))),
            ItemKind::Leaf(kind, leaf) => Ok((kind, self.leaf_text(fragment, leaf))),
            ItemKind::Group(group) => Err(fragment
                .groups
                .get(group as usize)
                .map_or(&[], Vec::as_slice)),
        }
    }

    /// Returns whether [`Packed::unpack`] would return the tree of a node: the same classes,
    /// attributes and texts in the same order.
    pub fn is_equal_to(&self, node: NodeRef<'_>) -> bool {
        self.is(&self.root, 0, node.attr(), node)
    }

    /// Returns whether a node has an attribute, and equals an item with its subtree.
    fn is(
        &self,
        fragment: &PackedFragment,
        index: u32,
        attr: Option<Attr>,
        node: NodeRef<'_>,
    ) -> bool {
        let Some(item) = fragment.layout.item(index) else {
            return false;
        };
        let Ok((kind, text)) = self.node(fragment, item) else {
            return false;
        };
        // Empty texts are not compared: with glibc, a comparison of no bytes at the address of an
        // empty literal takes as long as a hundred other comparisons.
        let has_text =
            || node.text().len() == text.len() && (text.is_empty() || node.text() == text);
        (node.attr(), node.class(), node.kind()) == (attr, item.class, kind)
            && has_text()
            && self.has_children(fragment, index, node)
    }

    /// Returns whether a node has exactly the children of an item, in the same order.
    fn has_children(&self, fragment: &PackedFragment, index: u32, node: NodeRef<'_>) -> bool {
        let layout = &fragment.layout;
        let mut inner = node.children();
        let mut is_next = |fragment: &PackedFragment, index: u32, attr| {
            inner
                .next()
                .is_some_and(|node| self.is(fragment, index, attr, node))
        };
        let all = layout.children(index).all(|child| {
            match layout.item(child).map(|item| (item.attr, item.kind)) {
                // A group has no node of its own: its fragments are compared with children of the
                // node.
                Some((attr, ItemKind::Group(group))) => fragment
                    .groups
                    .get(group as usize)
                    .into_iter()
                    .flatten()
                    .all(|fragment| is_next(fragment, 0, attr)),
                Some((attr, _)) => is_next(fragment, child, attr),
                None => false,
            }
        });
        all && inner.next().is_none()
    }

    /// Returns the child document at a single attribute of the root that is a fragment of its own,
    /// such as the data of a version.
    pub fn child_at(&self, attr: Attr) -> Option<Packed> {
        let index = self.root.layout.child(0, attr)?;
        let ItemKind::Group(group) = self.root.layout.item(index)?.kind else {
            return None;
        };
        let fragment = self.root.groups.get(group as usize)?.first()?;
        // The whole text is copied, because the ranges of the child refer to it.
        Some(Packed {
            text: self.text.clone(),
            root: fragment.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{LayoutStore, NothingKnown};
    use aqlite_rm::arbitrary::Generator;
    use aqlite_rm::json;

    /// Found by fuzzing: a text in the place of a number was read, and could not be written.
    #[test]
    fn leaf_value_of_another_kind_is_refused() {
        let layout =
            r#"{"_type":"DV_QUANTITY","magnitude":{"_slot":"number"},"units":{"_slot":"text"}}"#;
        let layout = LayoutStore::new().read(layout).unwrap();
        let read =
            |leaves: &str| Packed::from_text(leaves, &|_| Some(Arc::clone(&layout)), &["known"]);
        assert!(read(r#"[0,1.5,"kg"]"#).is_ok() && read("[0,1.5,0]").is_ok());
        for broken in [r#"[0,"1.5","kg"]"#, r#"[0,true,"kg"]"#, "[0,1.5,true]"] {
            assert!(read(broken).is_err(), "{broken}");
        }
    }

    const TEXT: &str = r#"{"_type":"COMPOSITION","name":{"value":"Visit"},"archetype_node_id":"openEHR-EHR-COMPOSITION.encounter.v1",
        "language":{"terminology_id":{"value":"ISO_639-1"},"code_string":"en"},"territory":{"terminology_id":{"value":"ISO_3166-1"},"code_string":"UY"},
        "category":{"value":"event","defining_code":{"terminology_id":{"value":"openehr"},"code_string":"433"}},
        "composer":{"_type":"PARTY_IDENTIFIED","name":"Dr \"X\"\n"},
        "content":[{"_type":"ADMIN_ENTRY","name":{"value":"A"},"archetype_node_id":"openEHR-EHR-ADMIN_ENTRY.a.v1",
          "language":{"terminology_id":{"value":"ISO_639-1"},"code_string":"en"},"encoding":{"terminology_id":{"value":"IANA_character-sets"},"code_string":"UTF-8"},
          "subject":{"_type":"PARTY_SELF"},
          "data":{"_type":"ITEM_TREE","name":{"value":"Tree"},"archetype_node_id":"at0001","items":[
            {"_type":"ELEMENT","name":{"value":"Systolic"},"archetype_node_id":"at0004","value":{"_type":"DV_QUANTITY","magnitude":120.50,"units":"mm[Hg]"}},
            {"_type":"CLUSTER","name":{"value":"R"},"archetype_node_id":"at0005","items":[]},
            {"_type":"CLUSTER","name":{"value":"R"},"archetype_node_id":"at0005","items":[]},
            {"_type":"ELEMENT","name":{"value":"Flag"},"archetype_node_id":"at0006","value":{"_type":"DV_BOOLEAN","value":true}}]}}]}"#;

    #[test]
    fn a_document_comes_back_from_its_text_form() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        let layouts = LayoutStore::new();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &layouts);
        let used = packed.layouts();
        assert_eq!(
            used.len(),
            3,
            "the composition, the entry, and one layout for both clusters"
        );
        let id_of = |layout: &Layout| {
            used.iter()
                .position(|s| s.digest() == layout.digest())
                .map(|at| at as u64)
        };
        for known in [[].as_slice(), &["Dr \"X\"\n", "Flag"]] {
            let text = packed.to_text(&id_of, known).unwrap();
            assert_eq!(packed.to_text(&|_| None, known), None);
            let again =
                Packed::from_text(&text, &|id| used.get(id as usize).cloned(), known).unwrap();
            assert!(tree.root().unwrap().same_as(again.unpack().root().unwrap()));
            assert_eq!(again.to_json(), json::write(tree.root().unwrap()));
        }
    }

    #[test]
    fn a_text_is_written_once() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &LayoutStore::new());
        let id_of = |layout: &Layout| {
            packed
                .layouts()
                .iter()
                .position(|s| s.digest() == layout.digest())
                .map(|at| at as u64)
        };
        let text = packed.to_text(&id_of, &["Visit"]).unwrap();
        assert_eq!(
            text,
            r#"[0,0,"Dr \"X\"\n",[[1,"A","Tree","Systolic",120.50,"mm[Hg]",[[2,"R"],[2,"R"]],"Flag",true]]]"#
        );
        let broken = ["[0,9]", "[0,-1]", "[0,1.5]", "[0,-0]", "[0,\"a\",-2]"];
        assert!(broken.iter().all(|text| {
            Packed::from_text(text, &|_| packed.layouts().first().cloned(), &["Visit"]).is_err()
        }));
    }

    #[test]
    fn text_forms_without_references_read_too() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &LayoutStore::new());
        let used = packed.layouts();
        let text = r#"[0,"Visit","Dr \"X\"\n",[[1,"A","Tree","Systolic",120.50,"mm[Hg]",[[2,"R"],[2,"R"]],"Flag",true]]]"#;
        let again =
            Packed::from_text(text, &|id| used.get(id as usize).cloned(), &["Visit", "A"]).unwrap();
        assert_eq!(again.to_json(), json::write(tree.root().unwrap()));
    }

    #[test]
    fn packed_document_equals_only_the_tree_that_it_unpacks_to() {
        let layouts = LayoutStore::new();
        let trees: Vec<Tree> = (0..150)
            .map(|seed| Generator::new(seed).tree())
            .chain([json::read(TEXT, Cls::COMPOSITION).unwrap()])
            .collect();
        for tree in trees.iter().map(|tree| tree.root().unwrap()) {
            let packed = pack(tree, &NothingKnown, &layouts);
            assert!(packed.is_equal_to(tree) && packed.unpack().root().unwrap().same_as(tree));
            for other in trees.iter().map(|tree| tree.root().unwrap()) {
                assert_eq!(packed.is_equal_to(other), tree.same_as(other));
            }
        }
        let changed = [
            "120.50",
            "Systolic",
            "at0004",
            "mm[Hg]",
            r#","items":[]"#,
            "PARTY_SELF",
            "true",
            "Flag",
        ];
        let packed = pack(
            trees.last().unwrap().root().unwrap(),
            &NothingKnown,
            &layouts,
        );
        for (old, new) in changed.into_iter().zip([
            "120.5",
            "systolic",
            "at0005",
            "mm",
            "",
            "PARTY_IDENTIFIED",
            "false",
            "",
        ]) {
            let other = json::read(&TEXT.replacen(old, new, 1), Cls::COMPOSITION).unwrap();
            assert!(!packed.is_equal_to(other.root().unwrap()), "{old}");
        }
    }

    #[test]
    fn layout_survives_text_form() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        for layout in pack(tree.root().unwrap(), &NothingKnown, &LayoutStore::new()).layouts() {
            let again = LayoutStore::new().read(&layout.to_text()).unwrap();
            assert_eq!(again, layout);
        }
    }

    #[test]
    fn free_texts_are_never_part_of_a_layout() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &LayoutStore::new());
        assert!(
            packed
                .layouts()
                .iter()
                .all(|s| !s.to_text().contains("Dr ") && !s.to_text().contains("Systolic"))
        );
    }
}
