//! Rows of nodes: lists of rows, and products of several lists.

use super::block::project_cells;
use super::node::{Node, View};
use crate::answer::plan_cache::{Cells, ProjectedCell};
use crate::document::{Fragment, Layout};

/// Rows of nodes with one column for each path and each captured step.
pub(super) struct Rows {
    width: usize,
    nodes: Vec<Node>,
}

impl Rows {
    /// Creates one row without nodes.
    pub fn single(width: usize) -> Rows {
        Rows {
            width,
            nodes: vec![Node::NONE; width],
        }
    }

    /// Creates no rows.
    pub fn none(width: usize) -> Rows {
        Rows {
            width,
            nodes: Vec::new(),
        }
    }

    /// Returns the rows, each with one node for each column.
    pub fn iter(&self) -> impl Iterator<Item = &[Node]> {
        self.nodes.chunks_exact(self.width)
    }

    /// Creates rows from lists of nodes, which have `width` nodes each.
    pub fn of<'r>(rows: impl Iterator<Item = &'r [Node]>, width: usize) -> Rows {
        Rows {
            width,
            nodes: rows.flatten().copied().collect(),
        }
    }

    /// Creates the rows of a row template for a fragment.
    pub fn of_template(
        view: View<'_>,
        template: &[Cells],
        (fragment, width): (Fragment, usize),
    ) -> Rows {
        let mut nodes = vec![Node::NONE; template.len() * width];
        for (row, cells) in nodes.chunks_exact_mut(width).zip(template) {
            project_cells(view, row, cells, fragment);
        }
        Rows { width, nodes }
    }

    /// Converts the rows of one fragment to row templates for all fragments of its layout variant.
    pub fn cells(&self, layout: &Layout) -> Vec<Cells> {
        let projected_cell = |(column, node): (usize, &Node)| {
            (!node.is_none()).then(|| ProjectedCell::of(layout, column, node.item))
        };
        self.iter()
            .map(|row| row.iter().enumerate().filter_map(projected_cell).collect())
            .collect()
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the nodes of all rows, one row after the other.
    pub fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.nodes.len() / self.width
    }

    /// Adds rows.
    pub fn append(&mut self, more: Rows) {
        if self.nodes.is_empty() {
            self.nodes = more.nodes;
        } else {
            self.nodes.extend(more.nodes);
        }
    }

    /// Replaces the rows by all combinations with the rows of `other`, whose columns are disjoint.
    /// If there are more than `max_rows`, only one row more than `max_rows` is made.
    pub fn product(&mut self, other: &Rows, max_rows: usize) {
        // In the usual case of one row each, no list is allocated.
        if self.nodes.len() == self.width && other.nodes.len() == self.width {
            merge(&mut self.nodes, &other.nodes);
            return;
        }
        // One row more than allowed is made, so that the caller notices the excess.
        let rows = self
            .len()
            .saturating_mul(other.len())
            .min(max_rows.saturating_add(1));
        let mut nodes = Vec::with_capacity(rows.saturating_mul(self.width));
        for row in self.iter() {
            for more in other
                .iter()
                .take(rows.saturating_sub(nodes.len() / self.width))
            {
                let both = row.iter().zip(more);
                nodes.extend(both.map(|(cell, other)| cell.overlaid(*other)));
            }
        }
        self.nodes = nodes;
    }
}

/// The Cartesian product of the rows of some variables, whose rows are made one at a time. The last
/// variable varies fastest.
pub(super) struct Product {
    width: usize,
    factors: Vec<Rows>,
}

impl Product {
    /// Creates the product of no variables: one row without nodes.
    pub fn new(width: usize) -> Product {
        Product {
            width,
            factors: Vec::new(),
        }
    }

    /// Multiplies by the rows of another variable, whose columns are disjoint from all others.
    pub fn add(&mut self, rows: Rows) {
        self.factors.push(rows);
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        self.factors
            .iter()
            .fold(1, |all, rows| all.saturating_mul(rows.len() as u64))
    }

    /// Returns the largest number of rows of one variable.
    pub fn widest(&self) -> usize {
        self.factors.iter().map(Rows::len).max().unwrap_or(0)
    }

    /// Writes the row with a number to `row`. A variable without the row is a broken invariant, which
    /// ends the run.
    pub fn fill(&self, view: View<'_>, number: u64, row: &mut [Node]) {
        row.fill(Node::NONE);
        // The number is read as digits of mixed base, the last variable being the lowest digit.
        let mut rest = number;
        for rows in self.factors.iter().rev() {
            let count = rows.len().max(1) as u64;
            let start = (rest % count) as usize * self.width;
            rest /= count;
            match rows.nodes.get(start..start + self.width) {
                Some(nodes) => merge(row, nodes),
                None => view.note_broken("a variable of a product has no row"),
            }
        }
    }
}

/// Writes the nodes of a row over those of another row.
pub(super) fn merge(row: &mut [Node], more: &[Node]) {
    for (cell, other) in row.iter_mut().zip(more) {
        *cell = cell.overlaid(*other);
    }
}
