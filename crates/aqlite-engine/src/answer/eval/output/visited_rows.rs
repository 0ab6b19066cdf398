//! Visited rows: rows whose nodes are passed to a visitor after each piece, for a consumer that
//! needs no cells.

use super::row_order::RowOrder;
use crate::answer::eval::cells::node_of;
use crate::answer::eval::node::{Node, View};
use crate::answer::eval::row_value::{RowValue, RowVisit};
use crate::answer::plan::Plan;
use aqlite_rm::order;

/// The rows of a piece of work that are not passed on yet.
///
/// The nodes of a row refer to the batch, so no row stays after a piece.
#[derive(Clone, Default)]
pub(super) struct VisitedRows {
    rows: Vec<VisitedRow>,
    /// The nodes of the rows, one row after the other.
    nodes: Vec<Node>,
    /// The number of rows that were passed on.
    released: u64,
}

/// A row, with its default order.
#[derive(Clone)]
struct VisitedRow {
    order: RowOrder,
    /// The index of its nodes in the list of nodes, counted in rows.
    nodes: u32,
}

impl VisitedRows {
    /// Returns the number of rows that are not passed on yet.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Reserves memory for `rows` more rows with `width` nodes each.
    pub fn reserve(&mut self, rows: usize, width: usize) {
        self.rows.reserve(rows);
        self.nodes.reserve(rows * width);
    }

    /// Adds a row.
    pub fn take(&mut self, row: &[Node], order: RowOrder) {
        let nodes = self.rows.len() as u32;
        self.nodes.extend_from_slice(row);
        self.rows.push(VisitedRow { order, nodes });
    }

    /// Passes the rows to a visitor in default order, or backward, and removes them. Returns false if
    /// a row has no nodes, and is missing.
    pub fn release(
        &mut self,
        plan: &Plan,
        view: View<'_>,
        is_backward: bool,
        visit: RowVisit<'_>,
    ) -> bool {
        let mut values = Vec::with_capacity(plan.query.select.len());
        order::sort_by_key(&mut self.rows, |row| row.order);
        let (first, count) = (self.released, self.rows.len() as u64);
        self.released += count;
        if is_backward {
            self.rows.reverse();
        }
        for (visited, row) in (0..).zip(self.rows.drain(..)) {
            let start = row.nodes as usize * plan.width;
            let Some(nodes) = self.nodes.get(start..start + plan.width) else {
                return false;
            };
            values.clear();
            values.extend(plan.query.select.iter().map(|column| RowValue {
                view,
                node: node_of(view, &column.value, nodes),
            }));
            let number = match is_backward {
                false => visited,
                true => count - 1 - visited,
            };
            visit(first + number, &values);
        }
        self.nodes.clear();
        true
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.rows.len() * size_of::<VisitedRow>() + self.nodes.len() * size_of::<Node>()
    }

    /// Returns the allocated bytes.
    pub fn footprint(&self) -> usize {
        self.rows.capacity() * size_of::<VisitedRow>() + self.nodes.capacity() * size_of::<Node>()
    }
}
