//! The fragments of the classes above the anchor that belong to the rows of a block.

use super::{Block, ParentRows};
use crate::answer::eval::selection::Selection;
use std::rc::Rc;

impl<'b> Block<'b> {
    /// Returns the block whose table has the column of a path: one of a class above, or this one.
    pub fn block_of(&self, path: usize) -> &Block<'b> {
        let above = self.above.iter().find(|above| above.has_all_nodes(path));
        above.unwrap_or(self)
    }

    /// Returns a block of the rows at some indexes.
    pub fn part(&self, indices: &[usize]) -> Block<'b> {
        let rows = self.rows.rows();
        let rows = indices.iter().filter_map(|i| rows.get(*i).copied());
        let parent_rows = match &self.parent_rows {
            ParentRows::Known { parents, parent_of } => ParentRows::Known {
                parents: Rc::clone(parents),
                parent_of: indices
                    .iter()
                    .filter_map(|i| parent_of.get(*i).copied())
                    .collect(),
            },
            other => other.clone(),
        };
        Block {
            table: self.table,
            number: self.number,
            cells: Rc::clone(&self.cells),
            rows: Selection::Indices(rows.collect()),
            template: self.template,
            parent_rows,
            above: self.above.iter().map(|above| above.part(indices)).collect(),
        }
    }
}
