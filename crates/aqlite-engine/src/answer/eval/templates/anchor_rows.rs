//! The rows of one anchor that passed its conjuncts, in document order.

use super::super::block::RowPosition;
use super::super::node::Node;
use std::ops::Range;

/// The rows of one anchor that passed its conjuncts.
pub(super) struct AnchorRows {
    pub(super) rows: Vec<AnchorRow>,
    nodes: Vec<Node>,
    width: usize,
}

/// A row of an anchor, without its nodes. Rows are ordered by their position in the batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AnchorRow {
    pub position: RowPosition,
    /// The document of the fragment.
    pub document: u32,
    /// The index of its nodes in the list of all nodes, counted in rows.
    nodes: u32,
}

impl AnchorRows {
    pub(super) fn new(width: usize) -> AnchorRows {
        AnchorRows {
            rows: Vec::new(),
            nodes: Vec::new(),
            width,
        }
    }

    /// Returns the documents that have rows, in ascending order.
    pub(super) fn documents(&self) -> impl Iterator<Item = u32> {
        self.rows
            .chunk_by(|a, b| a.document == b.document)
            .filter_map(|rows| rows.first().map(|row| row.document))
    }

    /// Returns the number of rows of a document.
    ///
    /// Documents must be passed in ascending order. `start` is the position at which the last call
    /// ended.
    pub(super) fn rows_of(&self, doc: u32, start: &mut usize) -> usize {
        let rest = |start: usize| self.rows.get(start..).unwrap_or_default();
        *start += rest(*start)
            .iter()
            .take_while(|row| row.document < doc)
            .count();
        rest(*start)
            .iter()
            .take_while(|row| row.document == doc)
            .count()
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * size_of::<AnchorRow>() + self.nodes.len() * size_of::<Node>()
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.nodes.reserve(rows * self.width);
    }

    pub(super) fn push(&mut self, position: RowPosition, doc: u32, nodes: &[Node]) {
        // A run holds at most `Budget::rows` rows. A number beyond `u32` has no nodes, which
        // `nodes_of` reports.
        let number = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push(AnchorRow {
            position,
            document: doc,
            nodes: number,
        });
        self.nodes.extend_from_slice(nodes);
    }

    pub(super) fn nodes_of(&self, index: usize) -> Option<&[Node]> {
        let start = self.rows.get(index)?.nodes as usize * self.width;
        self.nodes.get(start..start + self.width)
    }

    /// Returns the range of the rows of the fragment whose first row is at an index.
    pub(super) fn fragment_at(&self, at: usize) -> Range<usize> {
        let rest = self.rows.get(at..).unwrap_or_default();
        let preorder = rest.first().map(|row| row.position.preorder);
        at..at
            + rest
                .iter()
                .take_while(|row| Some(row.position.preorder) == preorder)
                .count()
                .max(1)
    }

    /// Lists the ranges of the rows of each fragment in a document. Documents must be passed in
    /// ascending order. `start` is the position at which the last call ended.
    pub(super) fn fragments_of(
        &self,
        doc: u32,
        start: &mut usize,
        fragments: &mut Vec<Range<usize>>,
    ) {
        let rest = self.rows.get(*start..).unwrap_or_default();
        *start += rest.iter().take_while(|row| row.document < doc).count();
        fragments.clear();
        let is_of_doc = |row: &AnchorRow| row.document == doc;
        while self.rows.get(*start).is_some_and(is_of_doc) {
            let range = self.fragment_at(*start);
            *start = range.end;
            fragments.push(range);
        }
    }
}
