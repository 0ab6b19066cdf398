//! The output of a part of the documents, and its addition to the output of another part.

use super::groups::Group;
use super::{OutRow, Output, UNMADE, best_of};
use crate::answer::eval::sort_key::SortKey;
use crate::answer::plan::Plan;
use crate::answer::result::DetachedRows;
use std::collections::HashMap;

/// The rows and groups of an output, without references to a batch.
pub(in crate::answer::eval) struct OutputPart {
    cells: DetachedRows,
    final_rows: Vec<u32>,
    rows: Vec<OutRow>,
    keys: Vec<SortKey>,
    key_bytes: usize,
    groups: Vec<Group>,
    group_by_key: HashMap<String, usize>,
    /// The number of positions of the part.
    positions: u64,
}

impl Output {
    /// Returns the rows and groups.
    ///
    /// # Errors
    /// If a row refers to a batch, or rows before the window were left out.
    pub fn into_part(mut self) -> Result<OutputPart, &'static str> {
        let is_unmade = self.rows.iter().any(|row| row.cells == UNMADE);
        if is_unmade || self.keeps_nodes || self.documents.is_some() || self.skipped > 0 {
            return Err("a part of a result lacks rows or cells");
        }
        self.drop_unused_cells();
        Ok(OutputPart {
            cells: self.result_buffer.detach(),
            final_rows: self.final_rows,
            rows: self.rows,
            keys: self.keys,
            key_bytes: self.key_bytes,
            groups: self.groups,
            group_by_key: self.group_by_key,
            positions: self.position,
        })
    }

    /// Adds the rows and groups of a part whose documents follow all others.
    pub fn absorb(&mut self, plan: &Plan, part: OutputPart) {
        let positions = self.position;
        let first = self.result_buffer.append(part.cells);
        self.final_rows
            .extend(part.final_rows.iter().map(|row| first + row));
        self.absorb_rows(plan, (first, part.rows), part.keys);
        self.key_bytes += part.key_bytes;
        self.absorb_groups(&plan.query, (part.groups, part.group_by_key), positions);
        self.advance_position(part.positions);
        if let Some(wanted) = best_of(&plan.query).filter(|wanted| self.rows.len() > *wanted) {
            self.retain_best(plan, wanted);
            self.drop_unused_cells();
        }
    }

    /// Adds rows with their sort keys. `first` is the number of the first of their cells.
    fn absorb_rows(&mut self, plan: &Plan, (first, rows): (u32, Vec<OutRow>), keys: Vec<SortKey>) {
        let held_rows = self.keys.len().checked_div(plan.query.order.len());
        // Without ORDER BY, rows have no keys.
        let held_rows = held_rows.unwrap_or(0) as u32;
        let positions = self.position;
        self.is_sorted &= rows.is_empty();
        self.rows.extend(rows.into_iter().map(|row| OutRow {
            cells: first + row.cells,
            keys: held_rows + row.keys,
            order: row.order.behind(positions),
            ..row
        }));
        self.keys.extend(keys);
    }
}
