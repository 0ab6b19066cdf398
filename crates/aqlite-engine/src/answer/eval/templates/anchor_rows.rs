//! The passing rows of one anchor, document by document.

use super::super::node::Node;
use std::ops::Range;

/// The passing rows of one anchor.
pub(super) struct AnchorRows {
    pub(super) rows: Vec<AnchorRow>,
    nodes: Vec<Node>,
    width: usize,
}

/// A row: the place of its fragment, its order there, its document, and where its nodes begin.
pub(super) type AnchorRow = (u32, u64, u32, u32);

impl AnchorRows {
    pub(super) fn new(width: usize) -> AnchorRows {
        AnchorRows {
            rows: Vec::new(),
            nodes: Vec::new(),
            width,
        }
    }

    /// The documents that have rows, in order.
    pub(super) fn documents(&self) -> impl Iterator<Item = u32> {
        self.rows
            .chunk_by(|a, b| a.2 == b.2)
            .filter_map(|rows| rows.first().map(|hit| hit.2))
    }

    /// Returns the number of rows of a document.
    ///
    /// Calls must be in ascending order of documents; `start` is the position of the last call.
    pub(super) fn rows_of(&self, doc: u32, start: &mut usize) -> usize {
        let rest = |start: usize| self.rows.get(start..).unwrap_or_default();
        *start += rest(*start)
            .iter()
            .take_while(|(.., d, _)| *d < doc)
            .count();
        rest(*start)
            .iter()
            .take_while(|(.., d, _)| *d == doc)
            .count()
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * size_of::<AnchorRow>() + self.nodes.len() * size_of::<Node>()
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.nodes.reserve(rows * self.width);
    }

    pub(super) fn push(&mut self, (place, order): (u32, u64), doc: u32, nodes: &[Node]) {
        let start = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push((place, order, doc, start));
        self.nodes.extend_from_slice(nodes);
    }

    pub(super) fn nodes_of(&self, index: usize) -> Option<&[Node]> {
        let start = self.rows.get(index)?.3 as usize * self.width;
        self.nodes.get(start..start + self.width)
    }

    /// The rows of the fragment that a row is the first of.
    pub(super) fn fragment_at(&self, at: usize) -> Range<usize> {
        let rest = self.rows.get(at..).unwrap_or_default();
        let place = rest.first().map(|hit| hit.0);
        at..at
            + rest
                .iter()
                .take_while(|hit| Some(hit.0) == place)
                .count()
                .max(1)
    }

    /// Finds the rows of each fragment in a document; calls must be in ascending order of
    /// documents; `start` is the position of the last call.
    pub(super) fn fragments_of(
        &self,
        doc: u32,
        start: &mut usize,
        fragments: &mut Vec<Range<usize>>,
    ) {
        let rest = self.rows.get(*start..).unwrap_or_default();
        *start += rest.iter().take_while(|(.., d, _)| *d < doc).count();
        fragments.clear();
        while self.rows.get(*start).is_some_and(|(.., d, _)| *d == doc) {
            let range = self.fragment_at(*start);
            *start = range.end;
            fragments.push(range);
        }
    }
}
