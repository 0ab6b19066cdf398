//! Values of a row read from the batch, for callers that compute with them instead of formatting
//! them.

use super::node::{Node, View};
use crate::document::Leaf;
use aqlite_rm::class::{Attr, Cls};
use std::borrow::Cow;

/// A value of a row: an object, a leaf, or NULL.
#[derive(Clone, Copy)]
pub struct RowValue<'b> {
    pub(super) view: View<'b>,
    pub(super) node: Node,
}

/// A visitor of rows: it receives the number of each row in default order, from 0 for the first row
/// of the run, and its values.
pub type RowVisit<'v> = &'v mut dyn FnMut(u64, &[RowValue<'_>]);

/// The identity of a value within its batch. Rows that repeat a value have the same identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueId(Node);

impl ValueId {
    /// Returns whether both values are in one row of one table, and so in one document.
    pub fn shares_document(self, other: ValueId) -> bool {
        self.0.fragment == other.0.fragment
    }
}

impl<'b> RowValue<'b> {
    /// Returns the identity of the value within its batch.
    pub fn id(self) -> ValueId {
        ValueId(self.node)
    }

    /// Appends the value as JSON, as it is stored.
    pub fn write_json(self, out: &mut String) {
        if self.is_null() {
            out.push_str("null");
        } else {
            self.view.write_json(self.node, out);
        }
    }

    /// Returns whether the value is NULL.
    pub fn is_null(self) -> bool {
        self.node.is_none()
    }

    /// Returns the class of an object, or the primitive type of a leaf.
    pub fn class(self) -> Cls {
        self.view.class(self.node)
    }

    /// Returns the value of a leaf.
    pub fn leaf(self) -> Option<Leaf<'b>> {
        self.view.leaf(self.node)
    }

    /// Returns the text of a leaf.
    pub fn text(self) -> Option<Cow<'b, str>> {
        self.leaf()?.as_text()
    }

    /// Returns the first value at an attribute of an object.
    pub fn get(self, attr: Attr) -> Option<RowValue<'b>> {
        self.view
            .single(self.node, attr)
            .map(|node| RowValue { node, ..self })
    }
}
