//! Estimates of the memory of the output.

use super::{OutRow, Output};
use crate::answer::eval::node::Node;
use crate::answer::eval::sort_key::SortKey;

impl Output {
    /// Returns an estimate of the bytes held.
    pub fn bytes(&self) -> usize {
        let rows = self.final_rows.len() * size_of::<u32>() + self.rows.len() * size_of::<OutRow>();
        let made_of = self.keys.len() * size_of::<SortKey>() + self.nodes.len() * size_of::<Node>();
        self.result_buffer.bytes()
            + rows
            + made_of
            + self.key_bytes
            + self.grouped_bytes
            + self.distinct.bytes()
    }

    /// Returns an estimate of the allocated bytes, which the run takes from the memory of its host.
    /// A growing list allocates up to twice as much as it holds.
    pub fn footprint(&self) -> usize {
        let rows = self.final_rows.capacity() * size_of::<u32>()
            + self.rows.capacity() * size_of::<OutRow>();
        let made_of =
            self.keys.capacity() * size_of::<SortKey>() + self.nodes.capacity() * size_of::<Node>();
        self.result_buffer.footprint()
            + rows
            + made_of
            + self.key_bytes
            + self.grouped_bytes
            + self.distinct.bytes()
    }
}
