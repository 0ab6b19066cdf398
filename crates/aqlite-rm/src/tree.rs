//! A Reference Model document in memory: an arena of nodes in document order and one text buffer.
//!
//! The readers of JSON and XML build a [`Tree`], the writers print it, paths navigate it, and
//! `document::pack` splits it into a layout and leaf values. Attributes are in canonical order,
//! which is that of the class table, whatever the order of the input. Numbers, dates and white
//! space keep the text that was sent.

use super::class::{Attr, Cls};
use crate::order;

// The absent link. It is the largest number, which `graft_whole` relies on.
const NONE: u32 = u32::MAX;

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An RM object. Its children are attributes.
    Object,
    /// A list attribute. Its children are the elements. A list that was sent empty is kept as a
    /// list without children.
    List,
    /// A text leaf: String, Character or Octets (base64 as sent).
    Text,
    /// A number leaf: its text is the number token as sent.
    Number,
    /// A boolean leaf: its text is `true` or `false`.
    Boolean,
}

/// The index of a node in one [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct NodeId(u32);

#[derive(Clone, Copy, Debug)]
struct Node {
    attr: Option<Attr>,
    cls: Cls,
    kind: Kind,
    first: u32,
    last: u32,
    next: u32,
    start: u32,
    len: u32,
}

/// A document tree: a document, or any part of one.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    text: String,
}

/// A read-only view of a node together with its tree.
#[derive(Clone, Copy)]
pub struct NodeRef<'a> {
    tree: &'a Tree,
    id: NodeId,
}

impl Tree {
    /// Returns an empty tree. The first node pushed without a parent becomes the root.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// Returns an empty tree with capacity for a document of about `bytes` bytes of JSON.
    pub fn with_capacity(bytes: usize) -> Tree {
        Tree {
            // Estimates of the bytes of JSON for each node, and of the share of leaf texts.
            nodes: Vec::with_capacity(bytes / 24),
            text: String::with_capacity(bytes / 4),
        }
    }

    /// Returns a tree that consists of one object of class `cls` without attributes.
    pub fn object(cls: Cls) -> Tree {
        let mut tree = Tree::new();
        tree.push_object(None, None, cls);
        tree
    }

    /// Returns the approximate length of the canonical JSON in bytes: the texts, and sixteen for
    /// each node.
    pub fn size(&self) -> usize {
        self.text.len() + self.nodes.len() * 16
    }

    /// Returns the root node, or `None` for an empty tree.
    pub fn root(&self) -> Option<NodeRef<'_>> {
        (!self.nodes.is_empty()).then_some(NodeRef {
            tree: self,
            id: NodeId(0),
        })
    }

    /// Returns the view of one node.
    pub fn at(&self, id: NodeId) -> NodeRef<'_> {
        NodeRef { tree: self, id }
    }

    /// Returns the number of nodes, including those that [`Tree::remove`] unlinked.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the tree has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds an object as the last child of `parent`.
    pub fn push_object(&mut self, parent: Option<NodeId>, attr: Option<Attr>, cls: Cls) -> NodeId {
        self.push(parent, attr, cls, Kind::Object, "")
    }

    /// Adds a list attribute; `cls` is the declared class of its elements.
    pub fn push_list(&mut self, parent: NodeId, attr: Attr, cls: Cls) -> NodeId {
        self.push(Some(parent), Some(attr), cls, Kind::List, "")
    }

    /// Adds a leaf as the last child of `parent`.
    pub fn push_leaf(
        &mut self,
        parent: Option<NodeId>,
        attr: Option<Attr>,
        cls: Cls,
        kind: Kind,
        text: &str,
    ) -> NodeId {
        self.push(parent, attr, cls, kind, text)
    }

    /// Adds a node of any kind as the last child of `parent`.
    pub fn push(
        &mut self,
        parent: Option<NodeId>,
        attr: Option<Attr>,
        cls: Cls,
        kind: Kind,
        text: &str,
    ) -> NodeId {
        let id = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let start = u32::try_from(self.text.len()).unwrap_or(NONE);
        self.text.push_str(text);
        let len = u32::try_from(text.len()).unwrap_or(NONE);
        self.nodes.push(Node {
            attr,
            cls,
            kind,
            first: NONE,
            last: NONE,
            next: NONE,
            start,
            len,
        });
        if let Some(parent) = parent {
            self.link(parent, id);
        }
        NodeId(id)
    }

    fn link(&mut self, parent: NodeId, child: u32) {
        let Some(node) = self.node_mut(parent.0) else {
            return;
        };
        let before = node.last;
        node.last = child;
        if before == NONE {
            node.first = child;
        } else if let Some(sibling) = self.node_mut(before) {
            sibling.next = child;
        }
    }

    /// Sorts the attributes of an object into canonical order.
    ///
    /// A reader calls it at the end of each object. An object that is sorted already costs one pass
    /// over its attributes.
    pub fn close(&mut self, id: NodeId) {
        let cls = self.at(id).class();
        let mut children: Vec<(usize, u32)> = Vec::new();
        let mut sorted = true;
        let mut at = self.node(id.0).map_or(NONE, |n| n.first);
        while let Some(node) = self.node(at) {
            // An attribute that the class does not have sorts last.
            let position = node
                .attr
                .and_then(|a| cls.position(a))
                .unwrap_or(usize::MAX);
            sorted &= children.last().is_none_or(|(p, _)| *p <= position);
            children.push((position, at));
            at = node.next;
        }
        if !sorted {
            order::sort_by_key(&mut children, |(position, _)| *position);
            self.relink(
                id,
                &children.iter().map(|(_, child)| *child).collect::<Vec<_>>(),
            );
        }
    }

    fn relink(&mut self, parent: NodeId, children: &[u32]) {
        for (i, child) in children.iter().enumerate() {
            let next = children.get(i + 1).copied().unwrap_or(NONE);
            if let Some(node) = self.node_mut(*child) {
                node.next = next;
            }
        }
        if let Some(node) = self.node_mut(parent.0) {
            node.first = children.first().copied().unwrap_or(NONE);
            node.last = children.last().copied().unwrap_or(NONE);
        }
    }

    /// Replaces the text of a leaf. The old text stays in the buffer, unused.
    pub fn set_text(&mut self, id: NodeId, text: &str) {
        let start = u32::try_from(self.text.len()).unwrap_or(NONE);
        self.text.push_str(text);
        if let Some(node) = self.node_mut(id.0) {
            node.start = start;
            node.len = u32::try_from(text.len()).unwrap_or(NONE);
        }
    }

    /// Changes the class of an object. Readers need it when `_type` follows other members.
    pub fn set_class(&mut self, id: NodeId, cls: Cls) {
        if let Some(node) = self.node_mut(id.0) {
            node.cls = cls;
        }
    }

    /// Removes an attribute from an object.
    ///
    /// The nodes are unlinked, not freed: their ids stay valid until the tree is dropped.
    pub fn remove(&mut self, parent: NodeId, attr: Attr) {
        let rest: Vec<u32> = self
            .at(parent)
            .children()
            .filter(|c| c.attr() != Some(attr))
            .map(|c| c.id.0)
            .collect();
        self.relink(parent, &rest);
    }

    /// Copies a subtree of this or another tree as the last child of `parent`, or as the root of an
    /// empty tree.
    ///
    /// Returns the id of the copy.
    pub fn graft(
        &mut self,
        parent: Option<NodeId>,
        attr: Option<Attr>,
        source: NodeRef<'_>,
    ) -> NodeId {
        // The root covers the whole arena, which can be copied without following the links.
        if source.id == NodeId(0) {
            return self.graft_whole(parent, attr, source.tree);
        }
        let id = self.push(parent, attr, source.class(), source.kind(), source.text());
        for child in source.children() {
            self.graft(Some(id), child.attr(), child);
        }
        id
    }

    /// Copies a whole tree by appending its arena with shifted indices.
    ///
    /// Nodes that were removed from `source` are copied as well, but no link leads to them.
    fn graft_whole(&mut self, parent: Option<NodeId>, attr: Option<Attr>, source: &Tree) -> NodeId {
        let (id, start) = (
            u32::try_from(self.nodes.len()).unwrap_or(NONE),
            u32::try_from(self.text.len()).unwrap_or(NONE),
        );
        // `NONE` is the largest number, so the saturating addition does not change it.
        let moved = |at: u32| at.saturating_add(id);
        self.text.push_str(&source.text);
        self.nodes.extend(source.nodes.iter().map(|node| Node {
            first: moved(node.first),
            last: moved(node.last),
            next: moved(node.next),
            start: node.start.saturating_add(start),
            ..*node
        }));
        if let Some(root) = self.node_mut(id) {
            root.attr = attr;
        }
        if let Some(parent) = parent {
            self.link(parent, id);
        }
        NodeId(id)
    }

    /// Sets an attribute to a copy of a subtree, replaces any previous value, and restores
    /// canonical order.
    pub fn put(&mut self, parent: NodeId, attr: Attr, source: NodeRef<'_>) -> NodeId {
        if self.at(parent).get(attr).is_some() {
            self.remove(parent, attr);
        }
        let id = self.graft(Some(parent), Some(attr), source);
        self.close(parent);
        id
    }

    fn node(&self, index: u32) -> Option<&Node> {
        self.nodes.get(usize::try_from(index).ok()?)
    }

    fn node_mut(&mut self, index: u32) -> Option<&mut Node> {
        self.nodes.get_mut(usize::try_from(index).ok()?)
    }
}

impl<'a> NodeRef<'a> {
    fn node(self) -> Option<&'a Node> {
        self.tree.node(self.id.0)
    }

    /// Returns the id of this node in its tree.
    pub fn id(self) -> NodeId {
        self.id
    }

    /// Returns the tree of this node.
    pub fn tree(self) -> &'a Tree {
        self.tree
    }

    /// Returns the class of an object, the primitive type of a leaf, or the declared element class
    /// of a list.
    pub fn class(self) -> Cls {
        self.node().map_or(Cls::ANY, |n| n.cls)
    }

    /// Returns the kind of this node.
    pub fn kind(self) -> Kind {
        self.node().map_or(Kind::Object, |n| n.kind)
    }

    /// Returns the attribute of which this node is a value. Elements of a list have that of their
    /// list. The root has none.
    pub fn attr(self) -> Option<Attr> {
        self.node().and_then(|n| n.attr)
    }

    /// Returns the text of a leaf as sent, or an empty text for objects and lists.
    pub fn text(self) -> &'a str {
        let Some(node) = self.node() else { return "" };
        let start = usize::try_from(node.start).unwrap_or_default();
        let end = start + usize::try_from(node.len).unwrap_or_default();
        self.tree.text.get(start..end).unwrap_or_default()
    }

    /// Returns the number of objects and lists around the innermost value, as canonical JSON nests
    /// them. 0 for a leaf.
    ///
    /// The recursion is bounded, because readers limit the nesting of what they read.
    pub fn depth(self) -> usize {
        if self.is_leaf() {
            return 0;
        }
        1 + self.children().map(NodeRef::depth).max().unwrap_or(0)
    }

    /// Returns whether this is a text, number or boolean leaf.
    pub fn is_leaf(self) -> bool {
        !matches!(self.kind(), Kind::Object | Kind::List)
    }

    /// Returns the children in document order: attributes of an object, elements of a list.
    pub fn children(self) -> impl Iterator<Item = NodeRef<'a>> {
        let tree = self.tree;
        let mut at = self.node().map_or(NONE, |n| n.first);
        std::iter::from_fn(move || {
            let node = tree.node(at)?;
            let child = NodeRef {
                tree,
                id: NodeId(at),
            };
            at = node.next;
            Some(child)
        })
    }

    /// Returns the child at an attribute. A list attribute yields the list node itself.
    pub fn get(self, attr: Attr) -> Option<NodeRef<'a>> {
        self.children().find(|c| c.attr() == Some(attr))
    }

    /// Returns the values of an attribute: none, one, or the elements of a list.
    pub fn values(self, attr: Attr) -> impl Iterator<Item = NodeRef<'a>> {
        let node = self.get(attr);
        let (single, list) = match node {
            Some(n) if n.kind() == Kind::List => (None, Some(n)),
            other => (other, None),
        };
        single
            .into_iter()
            .chain(list.into_iter().flat_map(NodeRef::children))
    }

    /// Returns the text of the leaf at an attribute.
    pub fn text_at(self, attr: Attr) -> Option<&'a str> {
        self.get(attr).filter(|n| n.is_leaf()).map(NodeRef::text)
    }

    /// Returns the text of the leaf at the end of a chain of single-valued attributes.
    pub fn text_along(self, attrs: &[Attr]) -> Option<&'a str> {
        attrs
            .iter()
            .try_fold(self, |node, attr| node.get(*attr))
            .filter(|n| n.is_leaf())
            .map(NodeRef::text)
    }

    /// Returns a new tree with a copy of this subtree.
    pub fn to_tree(self) -> Tree {
        let mut tree = Tree::new();
        tree.graft(None, None, self);
        tree
    }

    /// Returns whether both subtrees have the same classes, attributes and texts.
    pub fn same_as(self, other: NodeRef<'_>) -> bool {
        if (self.kind(), self.class(), self.text()) != (other.kind(), other.class(), other.text()) {
            return false;
        }
        let (mut mine, mut theirs) = (self.children(), other.children());
        loop {
            match (mine.next(), theirs.next()) {
                (None, None) => return true,
                (Some(a), Some(b)) if a.attr() == b.attr() && a.same_as(b) => {}
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary::Generator;

    #[test]
    fn close_sorts_attributes_canonically() {
        let mut tree = Tree::object(Cls::DV_QUANTITY);
        let root = tree.root().map(NodeRef::id).unwrap();
        tree.push_leaf(
            Some(root),
            Some(Attr::UNITS),
            Cls::STRING,
            Kind::Text,
            "mm[Hg]",
        );
        tree.push_leaf(
            Some(root),
            Some(Attr::MAGNITUDE),
            Cls::REAL,
            Kind::Number,
            "120.50",
        );
        tree.close(root);
        let order: Vec<&str> = tree.at(root).children().map(NodeRef::text).collect();
        assert_eq!(order, ["120.50", "mm[Hg]"]);
    }

    #[test]
    fn graft_of_root_equals_graft_of_subtree() {
        for seed in 0..150 {
            let mut tree = Generator::new(seed).tree();
            let mut around = Tree::object(Cls::ORIGINAL_VERSION);
            let version = around.root().map(NodeRef::id).unwrap();
            around.push_leaf(
                Some(version),
                Some(Attr::SIGNATURE),
                Cls::STRING,
                Kind::Text,
                "s",
            );
            let id = around.put(version, Attr::DATA, tree.root().unwrap());
            assert!(
                around.at(id).same_as(tree.root().unwrap())
                    && around.at(id).attr() == Some(Attr::DATA)
            );
            assert!(
                around
                    .root()
                    .unwrap()
                    .same_as(around.at(version).to_tree().root().unwrap())
            );
            let part = around.at(id).to_tree();
            assert!(part.root().unwrap().same_as(tree.root().unwrap()) && part.len() == tree.len());
            let first = tree
                .root()
                .and_then(|root| root.children().next())
                .and_then(NodeRef::attr);
            if let (Some(first), Some(root)) = (first, tree.root().map(NodeRef::id)) {
                tree.remove(root, first);
                let id = around.put(version, Attr::DATA, tree.root().unwrap());
                assert!(
                    around.at(id).same_as(tree.root().unwrap())
                        && around.at(id).get(first).is_none()
                );
                assert_eq!(around.root().unwrap().children().count(), 2);
            }
        }
    }
}
