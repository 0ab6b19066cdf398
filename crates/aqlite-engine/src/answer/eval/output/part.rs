//! The output of a part of the documents, and its addition to the output of another part.

use super::{Kind, Output};
use crate::answer::eval::work::Work;
use crate::answer::plan::Plan;
use crate::answer::result::DetachedRows;

/// The rows and groups of an output, without references to a batch.
pub(in crate::answer::eval) struct OutputPart {
    kind: Kind,
    cells: DetachedRows,
    /// The number of positions of the part.
    positions: u64,
}

impl Output {
    /// Returns the rows and groups.
    ///
    /// # Errors
    /// If a row refers to a batch, or rows before the window were left out.
    pub fn into_part(mut self) -> Result<OutputPart, &'static str> {
        let is_complete = match &mut self.kind {
            Kind::Plain(rows) => rows.skipped() == 0,
            Kind::Held(rows) => {
                rows.drop_unused_cells(&mut self.cells);
                !rows.has_unmade()
            }
            Kind::Groups(_) => true,
            Kind::Visited(_) | Kind::Documents(_) => false,
        };
        if !is_complete {
            return Err("a part of a result lacks rows or cells");
        }
        Ok(OutputPart {
            kind: self.kind,
            cells: self.cells.buffer.detach(),
            positions: self.position,
        })
    }

    /// Adds the rows and groups of a part whose documents follow all others.
    pub fn absorb(&mut self, plan: &Plan, part: OutputPart, work: &Work) {
        let (query, positions) = (&plan.query, self.position);
        let first = self.cells.buffer.append(part.cells);
        match (&mut self.kind, part.kind) {
            (Kind::Plain(rows), Kind::Plain(part)) => rows.absorb(part, first),
            (Kind::Held(rows), Kind::Held(part)) => {
                rows.absorb(query, part, first, positions);
                rows.reduce(query, &mut self.cells, work);
            }
            (Kind::Groups(groups), Kind::Groups(part)) => {
                groups.absorb(query, part, positions, work);
            }
            _ => work.note_broken("a part of a result has rows of another kind"),
        }
        self.advance_position(part.positions);
    }
}
