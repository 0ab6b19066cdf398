//! A document of the Reference Model as one arena: nodes linked in document order, text in one buffer.
//!
//! Readers build it, writers print it, paths walk it, `document::pack` turns it into shape and slots. Attributes stand
//! in canonical order (that of the class table) whatever order the sender used; digits, dates and white space are the
//! sender's own.

use super::class::{Attr, Cls};
use crate::order;

const NONE: u32 = u32::MAX;

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An RM object; its children are attributes.
    Object,
    /// A list attribute; its children are the elements. An empty list that was sent stays a list without children.
    List,
    /// A text leaf: String, Character or Octets (base64 as sent).
    Text,
    /// A number leaf: its text is the number token as sent.
    Number,
    /// A boolean leaf: its text is `true` or `false`.
    Boolean,
}

/// A node of one [`Tree`].
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

/// A document, or any part of one.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    text: String,
}

/// A node together with its tree: the reading view.
#[derive(Clone, Copy)]
pub struct NodeRef<'a> {
    tree: &'a Tree,
    id: NodeId,
}

impl Tree {
    /// A tree with nothing in it; the first node pushed without a parent is the root.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// Room for a document of about this many bytes of JSON.
    pub fn with_capacity(bytes: usize) -> Tree {
        Tree { nodes: Vec::with_capacity(bytes / 24), text: String::with_capacity(bytes / 4) }
    }

    /// A tree that is one object of this class, without attributes.
    pub fn object(cls: Cls) -> Tree {
        let mut tree = Tree::new();
        tree.push_object(None, None, cls);
        tree
    }

    /// The root node; `None` only for an empty tree.
    pub fn root(&self) -> Option<NodeRef<'_>> {
        (!self.nodes.is_empty()).then_some(NodeRef { tree: self, id: NodeId(0) })
    }

    /// The view of one node.
    pub fn at(&self, id: NodeId) -> NodeRef<'_> {
        NodeRef { tree: self, id }
    }

    /// How many nodes the tree has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when nothing has been pushed.
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
    pub fn push_leaf(&mut self, parent: Option<NodeId>, attr: Option<Attr>, cls: Cls, kind: Kind, text: &str) -> NodeId {
        self.push(parent, attr, cls, kind, text)
    }

    /// Adds a node of any kind as the last child of `parent`.
    pub fn push(&mut self, parent: Option<NodeId>, attr: Option<Attr>, cls: Cls, kind: Kind, text: &str) -> NodeId {
        let id = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let start = u32::try_from(self.text.len()).unwrap_or(NONE);
        self.text.push_str(text);
        let len = u32::try_from(text.len()).unwrap_or(NONE);
        self.nodes.push(Node { attr, cls, kind, first: NONE, last: NONE, next: NONE, start, len });
        if let Some(parent) = parent {
            self.link(parent, id);
        }
        NodeId(id)
    }

    fn link(&mut self, parent: NodeId, child: u32) {
        let Some(node) = self.node_mut(parent.0) else { return };
        let before = node.last;
        node.last = child;
        if before == NONE {
            node.first = child;
        } else if let Some(sibling) = self.node_mut(before) {
            sibling.next = child;
        }
    }

    /// Puts the attributes of an object into canonical order; a reader calls it when the object ends.
    pub fn close(&mut self, id: NodeId) {
        let cls = self.at(id).class();
        let mut children: Vec<(usize, u32)> = Vec::new();
        let mut sorted = true;
        let mut at = self.node(id.0).map_or(NONE, |n| n.first);
        while let Some(node) = self.node(at) {
            let position = node.attr.and_then(|a| cls.position(a)).unwrap_or(usize::MAX);
            sorted &= children.last().is_none_or(|(p, _)| *p <= position);
            children.push((position, at));
            at = node.next;
        }
        if !sorted {
            order::sort_by_key(&mut children, |(position, _)| *position);
            self.relink(id, &children.iter().map(|(_, child)| *child).collect::<Vec<_>>());
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

    /// Replaces the text of a leaf.
    pub fn set_text(&mut self, id: NodeId, text: &str) {
        let start = u32::try_from(self.text.len()).unwrap_or(NONE);
        self.text.push_str(text);
        if let Some(node) = self.node_mut(id.0) {
            node.start = start;
            node.len = u32::try_from(text.len()).unwrap_or(NONE);
        }
    }

    /// Changes the class of an object, as a reader does when `_type` comes after other members.
    pub fn set_class(&mut self, id: NodeId, cls: Cls) {
        if let Some(node) = self.node_mut(id.0) {
            node.cls = cls;
        }
    }

    /// Takes an attribute away from an object.
    pub fn remove(&mut self, parent: NodeId, attr: Attr) {
        let rest: Vec<u32> = self.at(parent).children().filter(|c| c.attr() != Some(attr)).map(|c| c.id.0).collect();
        self.relink(parent, &rest);
    }

    /// Copies a subtree (of this or another tree) as the last child of `parent`, or as the root of an empty tree.
    pub fn graft(&mut self, parent: Option<NodeId>, attr: Option<Attr>, source: NodeRef<'_>) -> NodeId {
        if source.id == NodeId(0) {
            return self.graft_whole(parent, attr, source.tree);
        }
        let id = self.push(parent, attr, source.class(), source.kind(), source.text());
        for child in source.children() {
            self.graft(Some(id), child.attr(), child);
        }
        id
    }

    /// A whole tree as it lies there, what was taken away from it included, but nothing leads to that.
    fn graft_whole(&mut self, parent: Option<NodeId>, attr: Option<Attr>, source: &Tree) -> NodeId {
        let (id, start) = (u32::try_from(self.nodes.len()).unwrap_or(NONE), u32::try_from(self.text.len()).unwrap_or(NONE));
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

    /// Puts a subtree at an attribute in place of what stood there, in canonical order.
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

    /// The id of this node in its tree.
    pub fn id(self) -> NodeId {
        self.id
    }

    /// The tree that this node belongs to.
    pub fn tree(self) -> &'a Tree {
        self.tree
    }

    /// The class of an object, the primitive type of a leaf, the declared element class of a list.
    pub fn class(self) -> Cls {
        self.node().map_or(Cls::ANY, |n| n.cls)
    }

    /// What kind of node this is.
    pub fn kind(self) -> Kind {
        self.node().map_or(Kind::Object, |n| n.kind)
    }

    /// The attribute at which this node stands; elements of a list carry that of their list, the root none.
    pub fn attr(self) -> Option<Attr> {
        self.node().and_then(|n| n.attr)
    }

    /// The text of a leaf as sent; empty for objects and lists.
    pub fn text(self) -> &'a str {
        let Some(node) = self.node() else { return "" };
        let start = usize::try_from(node.start).unwrap_or_default();
        let end = start + usize::try_from(node.len).unwrap_or_default();
        self.tree.text.get(start..end).unwrap_or_default()
    }

    /// True for text, number and boolean leaves.
    pub fn is_leaf(self) -> bool {
        !matches!(self.kind(), Kind::Object | Kind::List)
    }

    /// The children in document order: attributes of an object, elements of a list.
    pub fn children(self) -> impl Iterator<Item = NodeRef<'a>> {
        let tree = self.tree;
        let mut at = self.node().map_or(NONE, |n| n.first);
        std::iter::from_fn(move || {
            let node = tree.node(at)?;
            let child = NodeRef { tree, id: NodeId(at) };
            at = node.next;
            Some(child)
        })
    }

    /// The node at an attribute: the list itself where it is one.
    pub fn get(self, attr: Attr) -> Option<NodeRef<'a>> {
        self.children().find(|c| c.attr() == Some(attr))
    }

    /// The values of an attribute: none, one, or the elements of a list.
    pub fn values(self, attr: Attr) -> impl Iterator<Item = NodeRef<'a>> {
        let node = self.get(attr);
        let (single, list) = match node {
            Some(n) if n.kind() == Kind::List => (None, Some(n)),
            other => (other, None),
        };
        single.into_iter().chain(list.into_iter().flat_map(NodeRef::children))
    }

    /// The text of the leaf at an attribute.
    pub fn text_at(self, attr: Attr) -> Option<&'a str> {
        self.get(attr).filter(|n| n.is_leaf()).map(NodeRef::text)
    }

    /// The text of the leaf at the end of a chain of single-valued attributes.
    pub fn text_along(self, attrs: &[Attr]) -> Option<&'a str> {
        attrs.iter().try_fold(self, |node, attr| node.get(*attr)).filter(|n| n.is_leaf()).map(NodeRef::text)
    }

    /// A tree of its own with a copy of this subtree.
    pub fn to_tree(self) -> Tree {
        let mut tree = Tree::new();
        tree.graft(None, None, self);
        tree
    }

    /// True when both subtrees carry the same classes, attributes and texts.
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
    use crate::rm::arbitrary::Generator;

    #[test]
    fn attributes_are_put_into_canonical_order() {
        let mut tree = Tree::object(Cls::DV_QUANTITY);
        let root = tree.root().map(NodeRef::id).unwrap();
        tree.push_leaf(Some(root), Some(Attr::UNITS), Cls::STRING, Kind::Text, "mm[Hg]");
        tree.push_leaf(Some(root), Some(Attr::MAGNITUDE), Cls::REAL, Kind::Number, "120.50");
        tree.close(root);
        let order: Vec<&str> = tree.at(root).children().map(NodeRef::text).collect();
        assert_eq!(order, ["120.50", "mm[Hg]"]);
    }

    #[test]
    fn a_whole_tree_is_grafted_as_a_part_of_one_is() {
        for seed in 0..150 {
            let mut tree = Generator::new(seed).tree();
            let mut around = Tree::object(Cls::ORIGINAL_VERSION);
            let version = around.root().map(NodeRef::id).unwrap();
            around.push_leaf(Some(version), Some(Attr::SIGNATURE), Cls::STRING, Kind::Text, "s");
            let id = around.put(version, Attr::DATA, tree.root().unwrap());
            assert!(around.at(id).same_as(tree.root().unwrap()) && around.at(id).attr() == Some(Attr::DATA));
            assert!(around.root().unwrap().same_as(around.at(version).to_tree().root().unwrap()));
            let part = around.at(id).to_tree();
            assert!(part.root().unwrap().same_as(tree.root().unwrap()) && part.len() == tree.len());
            let first = tree.root().and_then(|root| root.children().next()).and_then(NodeRef::attr);
            if let (Some(first), Some(root)) = (first, tree.root().map(NodeRef::id)) {
                tree.remove(root, first);
                let id = around.put(version, Attr::DATA, tree.root().unwrap());
                assert!(around.at(id).same_as(tree.root().unwrap()) && around.at(id).get(first).is_none());
                assert_eq!(around.root().unwrap().children().count(), 2);
            }
        }
    }
}
