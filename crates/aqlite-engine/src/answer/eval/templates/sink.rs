//! Consumers of the rows of an anchor that passed its conjuncts.

use super::anchor_rows::AnchorRows;
use crate::answer::eval::output::Output;
use crate::answer::eval::projection::Projection;

/// The consumer of the rows of an anchor.
pub(super) enum Sink<'o, 'b> {
    /// The rows are kept for the join.
    AnchorRows(AnchorRows),
    /// The rows are added to the aggregates of the only group.
    Fold(&'o mut Output),
    /// The rows are added to groups, whose keys are the values of these paths.
    Group(&'o mut Output, Vec<usize>),
    /// The rows are added to an output that sorts them.
    Sort(&'o mut Output),
    /// The cells of the rows are copied to the result buffer.
    Fill(Projection<'o, 'b>),
}

impl Sink<'_, '_> {
    /// Returns the number of rows held.
    pub fn len(&self) -> usize {
        match self {
            Sink::AnchorRows(anchor_rows) => anchor_rows.rows.len(),
            Sink::Fold(output) | Sink::Group(output, _) | Sink::Sort(output) => output.len(),
            Sink::Fill(projection) => projection.len(),
        }
    }

    /// Returns the approximate number of bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Sink::AnchorRows(anchor_rows) => anchor_rows.bytes(),
            Sink::Fold(output) | Sink::Group(output, _) | Sink::Sort(output) => output.bytes(),
            Sink::Fill(projection) => projection.bytes(),
        }
    }
}
