//! Late materialization of objects: the JSON of an object is written only for rows within the
//! window.
//!
//! A projection finds the rows of many documents before it knows their order. The text of an object
//! can have megabytes, so objects of rows outside the window are never written.

use super::cells::{LastCell, node_cell_ref};
use super::node::{Node, View};
use super::templates::Abort;
use crate::answer::result::ResultBuffer;
use hashbrown::HashSet;
use std::ops::Range;

/// The objects of the rows of a projection that are not written yet.
pub(super) struct LateObjects {
    /// The positions of the rows within the window, in the order of the result.
    window: Range<usize>,
    found: Vec<LateObject>,
}

/// An object with its row and column in the result buffer.
struct LateObject {
    row: u32,
    column: usize,
    object: Node,
}

impl LateObjects {
    /// Creates the list of objects. Of the rows in their order, those at `window` are shown.
    pub fn new(window: Range<usize>) -> LateObjects {
        let found = Vec::new();
        LateObjects { window, found }
    }

    /// Returns an estimate of the bytes held.
    pub fn bytes(&self) -> usize {
        self.found.len() * size_of::<LateObject>()
    }

    /// Adds an object of a row of the result buffer.
    pub fn push(&mut self, row: u32, column: usize, object: Node) {
        self.found.push(LateObject {
            row,
            column,
            object,
        });
    }

    /// Writes the objects of the rows in the window; `rows` are the rows in their final order.
    /// `check` is called after each object.
    ///
    /// # Errors
    /// The errors of `check`.
    pub fn write(
        self,
        rows: &[u32],
        view: View<'_>,
        result_buffer: &mut ResultBuffer,
        check: impl Fn() -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let end = self.window.end.min(rows.len());
        let shown = rows.get(self.window.start..end).unwrap_or_default();
        let shown: HashSet<u32> = shown.iter().copied().collect();
        let columns = self.found.iter().map(|late| late.column + 1).max();
        let mut last: Vec<LastCell> = vec![None; columns.unwrap_or_default()];
        for LateObject {
            row,
            column,
            object,
        } in self.found
        {
            if !shown.contains(&row) {
                continue;
            }
            let (Some(last), Some((cells, texts))) =
                (last.get_mut(column), result_buffer.row_mut(row))
            else {
                view.note_broken("an object has no row");
                continue;
            };
            let Some(cell) = cells.get_mut(column) else {
                view.note_broken("an object has no column");
                continue;
            };
            *cell = node_cell_ref(view, object, texts, last);
            if !view.allows_bytes(texts.size()) {
                break;
            }
            check()?;
        }
        Ok(())
    }
}
