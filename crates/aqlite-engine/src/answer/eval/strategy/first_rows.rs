//! The strategy for queries that need only their first rows in default order (LIMIT without ORDER
//! BY, DISTINCT or aggregates): evaluates slices that grow until there are enough rows.

use super::document_walk::DocumentWalk;
use super::row_templates::RowTemplates;
use super::{Halt, Strategy, Tasks};
use crate::answer::eval::Run;
use crate::answer::eval::bind::LastEhr;
use crate::document::Batch;

/// The evaluation of the documents from a number on, until there are enough rows.
pub(super) struct FirstRows {
    pub start: u32,
}

impl Strategy for FirstRows {
    fn evaluate(
        self: Box<Self>,
        run: &mut Run<'_>,
        batch: &Batch,
        _: &LastEhr,
        tasks: &mut Tasks,
    ) -> Result<(), Halt> {
        let (start, all) = (self.start, batch.len() as u32);
        let count = if start == 0 {
            run.budget.slice
        } else {
            next_slice(run, start)
        };
        let slice = start..start.saturating_add(count).min(all);
        if slice.end < all {
            tasks.push(Box::new(FirstRows { start: slice.end }));
        }
        // The first slice is small: compiling row templates would cost more than walking it.
        tasks.push(if start == 0 {
            Box::new(DocumentWalk(slice))
        } else {
            Box::new(RowTemplates(slice))
        });
        Ok(())
    }
}

/// The largest ratio of a slice to the documents before it: an estimate from few rows can be wrong.
const GROWTH: u32 = 16;

/// Returns the number of documents of the next slice, estimated from the rows of the `seen`
/// documents.
fn next_slice(run: &Run<'_>, seen: u32) -> u32 {
    let missing = run.output.missing().unwrap_or_default();
    let found = run.output.arrived().max(1);
    let wanted = missing.saturating_mul(u64::from(seen)) / found;
    let least = run.budget.slice.max(1);
    let most = seen.saturating_mul(GROWTH).max(least);
    u32::try_from(wanted).unwrap_or(u32::MAX).clamp(least, most)
}
