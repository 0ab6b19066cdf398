//! A document tree under construction from which optional parts can still be removed.

use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::tree::{Kind, NodeId, NodeRef, Tree};
use std::borrow::Cow;

/// An object, a list or a leaf. Texts are borrowed if possible.
#[derive(Clone, Debug)]
pub(super) enum Draft<'d> {
    Object(Cls, Vec<(Attr, Draft<'d>)>),
    List(Cls, Vec<Draft<'d>>),
    Leaf(Cls, Cow<'d, str>),
}

impl<'d> Draft<'d> {
    /// Creates an object without attributes.
    pub fn object(class: Cls) -> Draft<'d> {
        Draft::Object(class, Vec::new())
    }

    /// Creates an object with one leaf.
    pub fn holding(class: Cls, attr: Attr, text: impl Into<Cow<'d, str>>) -> Draft<'d> {
        Draft::object(class).with(attr, Draft::text(text))
    }

    /// Creates a leaf of a primitive type.
    pub fn leaf(class: Cls, text: impl Into<Cow<'d, str>>) -> Draft<'d> {
        Draft::Leaf(class, text.into())
    }

    /// Creates a text leaf.
    pub fn text(text: impl Into<Cow<'d, str>>) -> Draft<'d> {
        Draft::Leaf(Cls::STRING, text.into())
    }

    /// Creates a boolean leaf.
    pub fn boolean(value: bool) -> Draft<'d> {
        Draft::Leaf(
            Cls::BOOLEAN,
            Cow::Borrowed(if value { "true" } else { "false" }),
        )
    }

    /// Creates a CODE_PHRASE.
    pub fn code(terminology: impl Into<Cow<'d, str>>, code: impl Into<Cow<'d, str>>) -> Draft<'d> {
        let terminology = Draft::holding(Cls::TERMINOLOGY_ID, Attr::VALUE, terminology);
        Draft::holding(Cls::CODE_PHRASE, Attr::CODE_STRING, code)
            .with(Attr::TERMINOLOGY_ID, terminology)
    }

    /// Returns the class of an object, or the declared class of a leaf or of the members of a list.
    pub fn class(&self) -> Cls {
        match self {
            Draft::Object(class, _) | Draft::List(class, _) | Draft::Leaf(class, _) => *class,
        }
    }

    /// Changes the class of an object.
    pub fn set_class(&mut self, class: Cls) {
        if let Draft::Object(own, _) = self {
            *own = class;
        }
    }

    /// Returns the object with an attribute set, replacing any previous value.
    pub fn with(mut self, attr: Attr, value: Draft<'d>) -> Draft<'d> {
        self.put(attr, value);
        self
    }

    /// Sets an attribute, replacing any previous value.
    pub fn put(&mut self, attr: Attr, value: Draft<'d>) {
        if let Draft::Object(_, attributes) = self {
            attributes.retain(|(a, _)| *a != attr);
            attributes.push((attr, value));
        }
    }

    /// Removes the value at an attribute.
    pub fn remove(&mut self, attr: Attr) {
        if let Draft::Object(_, attributes) = self {
            attributes.retain(|(a, _)| *a != attr);
        }
    }

    /// Returns the value at an attribute.
    pub fn get(&self, attr: Attr) -> Option<&Draft<'d>> {
        let Draft::Object(_, attributes) = self else {
            return None;
        };
        attributes
            .iter()
            .find(|(a, _)| *a == attr)
            .map(|(_, value)| value)
    }

    /// Returns the value at an attribute for modification.
    pub fn get_mut(&mut self, attr: Attr) -> Option<&mut Draft<'d>> {
        let Draft::Object(_, attributes) = self else {
            return None;
        };
        attributes
            .iter_mut()
            .find(|(a, _)| *a == attr)
            .map(|(_, value)| value)
    }

    /// Adds a value at an attribute: appends to a list, replaces a single value.
    pub fn add(&mut self, attr: Attr, value: Draft<'d>) {
        let Some(def) = self.class().attr(attr) else {
            return;
        };
        if !def.card.is_list() {
            return self.put(attr, value);
        }
        match self.get_mut(attr) {
            Some(Draft::List(_, members)) => members.push(value),
            _ => self.put(attr, Draft::List(def.ty, vec![value])),
        }
    }

    /// Returns the members of a list attribute, or the one value of another attribute.
    pub fn members(&self, attr: Attr) -> &[Draft<'d>] {
        match self.get(attr) {
            Some(Draft::List(_, members)) => members,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        }
    }

    /// Returns the members at an attribute for modification.
    pub fn members_mut(&mut self, attr: Attr) -> &mut [Draft<'d>] {
        match self.get_mut(attr) {
            Some(Draft::List(_, members)) => members,
            Some(one) => std::slice::from_mut(one),
            None => &mut [],
        }
    }

    /// Converts a document or a part of one.
    pub fn of(node: NodeRef<'_>) -> Draft<'d> {
        match node.kind() {
            Kind::Object => Draft::Object(
                node.class(),
                node.children()
                    .filter_map(|c| Some((c.attr()?, Draft::of(c))))
                    .collect(),
            ),
            Kind::List => Draft::List(node.class(), node.children().map(Draft::of).collect()),
            _ => Draft::Leaf(node.class(), Cow::Owned(node.text().to_owned())),
        }
    }

    /// Returns the text of the leaf at the end of a chain of attributes.
    pub fn text_along(&self, attrs: &[Attr]) -> Option<&str> {
        match attrs
            .iter()
            .try_fold(self, |draft, attr| draft.get(*attr))?
        {
            Draft::Leaf(_, text) => Some(text),
            _ => None,
        }
    }

    /// Returns a copy of the text at the end of a chain of attributes.
    pub fn copy_along(&self, attrs: &[Attr]) -> Option<Cow<'d, str>> {
        match attrs
            .iter()
            .try_fold(self, |draft, attr| draft.get(*attr))?
        {
            Draft::Leaf(_, text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Appends ` #number` to the runtime name, if it is a plain text.
    pub fn append_number(&mut self, number: usize) {
        let Draft::Object(_, attributes) = self else {
            return;
        };
        let Some((_, name)) = attributes.iter_mut().find(|(a, _)| *a == Attr::NAME) else {
            return;
        };
        // A coded name is left alone: its text must remain the term of its code.
        if let Draft::Object(Cls::DV_TEXT, parts) = name
            && let Some((_, Draft::Leaf(_, text))) =
                parts.iter_mut().find(|(a, _)| *a == Attr::VALUE)
        {
            text.to_mut().push_str(&format!(" #{number}"));
        }
    }

    /// Converts the draft to a tree. A single leaf keeps `attr` as its attribute.
    pub fn into_tree(self, attr: Option<Attr>) -> Tree {
        let mut tree = Tree::with_capacity(4096);
        self.push(&mut tree, None, attr);
        tree
    }

    fn push(self, tree: &mut Tree, parent: Option<NodeId>, attr: Option<Attr>) {
        match self {
            Draft::Object(class, attributes) => {
                let id = tree.push_object(parent, attr, class);
                attributes
                    .into_iter()
                    .for_each(|(attr, value)| value.push(tree, Some(id), Some(attr)));
                // The attributes were put in any order. `close` sorts them into that of the class
                // table.
                tree.close(id);
            }
            Draft::List(class, members) => {
                // A list needs an object around it and cannot be the root.
                let (Some(parent), Some(attr)) = (parent, attr) else {
                    return;
                };
                let id = tree.push_list(parent, attr, class);
                members
                    .into_iter()
                    .for_each(|member| member.push(tree, Some(id), Some(attr)));
            }
            Draft::Leaf(class, text) => {
                let kind = match class {
                    Cls::BOOLEAN => Kind::Boolean,
                    Cls::INTEGER | Cls::INTEGER64 | Cls::REAL => Kind::Number,
                    _ => Kind::Text,
                };
                tree.push_leaf(parent, attr, class, kind, &text);
            }
        }
    }
}
