//! The child rows of the repeated groups of a table.

use super::Fragment;

/// The child rows of the repeated groups of a table, by number of the group. Only a query that goes
/// from rows to their children reads them, and they can take more memory than the structure.
#[derive(Clone, Debug, Default)]
pub(in crate::document) struct ChildLists(pub Vec<RepeatedGroup>);

/// The child rows of one repeated group, for all parent rows that have the group.
///
/// `ends[i]` is the end of the children of the `i`-th of these parent rows in `rows`.
#[derive(Clone, Debug, Default)]
pub(in crate::document) struct RepeatedGroup {
    pub ends: Vec<u32>,
    pub rows: Vec<Fragment>,
}

impl ChildLists {
    /// Estimates the bytes in use.
    pub fn bytes(&self) -> usize {
        let groups = self.0.iter();
        groups
            .map(|group| group.ends.capacity() * 4 + group.rows.capacity() * 8)
            .sum()
    }
}

impl RepeatedGroup {
    /// Returns the children of the parent row with an index among those that have the group.
    pub fn children(&self, at: u32) -> &[Fragment] {
        let start = at
            .checked_sub(1)
            .and_then(|before| self.ends.get(before as usize))
            .copied()
            .unwrap_or(0);
        let end = self.ends.get(at as usize).copied().unwrap_or(start);
        self.rows
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }
}
