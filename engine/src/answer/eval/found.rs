//! The values of a row where they are stored, for who computes with them instead of writing them out.

use super::node::{Node, View};
use crate::document::Leaf;
use crate::rm::class::{Attr, Cls};

/// What a row has in a column: an object, a leaf, or nothing.
#[derive(Clone, Copy)]
pub struct Found<'b> {
    pub(super) view: View<'b>,
    pub(super) node: Node,
}

impl<'b> Found<'b> {
    /// True for NULL.
    pub fn is_null(self) -> bool {
        self.node.is_none()
    }

    /// The class of an object, the primitive type of a leaf.
    pub fn class(self) -> Cls {
        self.view.class(self.node)
    }

    /// The value of a leaf.
    pub fn leaf(self) -> Option<Leaf<'b>> {
        self.view.leaf(self.node)
    }

    /// The text of a leaf.
    pub fn text(self) -> Option<&'b str> {
        match self.leaf()? {
            Leaf::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The first value at an attribute of an object.
    pub fn get(self, attr: Attr) -> Option<Found<'b>> {
        self.view.single(self.node, attr).map(|node| Found { node, ..self })
    }
}
