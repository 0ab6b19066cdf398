//! The number of rows of a join that reads no path. Its documents are counted without making rows.

use super::super::execution_path::ExecutionPath;
use super::super::output::Output;
use super::super::scope::Scope;
use super::{Abort, RowTemplateEvaluator, broken};
use crate::answer::query::ClassExpr;

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Counts the rows of a join of several anchors without paths. A document has as many rows as
    /// the product of the numbers of fragments that each anchor binds. Returns false and counts
    /// nothing for any other query.
    pub(super) fn count_join(&self, scope: &Scope<'b>, output: &mut Output) -> Result<bool, Abort> {
        let query = &self.plan.query;
        let is_counted = output.has_only_group()
            && self.plan.tries.is_empty()
            && query.condition.is_none()
            && query.exists.is_empty();
        if !is_counted || !matches!(scope, Scope::Flagged(..)) {
            return Ok(false);
        }
        let mut rows = vec![1_u64; self.slice.len()];
        let mut rows_since_check = 0;
        for anchor in &self.anchors.entries {
            let fragments = self.count_fragments(anchor, scope, &mut rows_since_check)?;
            for (rows, fragments) in rows.iter_mut().zip(fragments) {
                // A document without a fragment for one anchor gets the factor 0 and has no rows.
                *rows = rows.saturating_mul(fragments);
            }
        }
        self.work.taken.note(ExecutionPath::CountJoin);
        let count = rows.into_iter().fold(0, u64::saturating_add);
        if let Some((groups, _)) = output.groups() {
            groups.fold_count(query, self.view(), count);
        }
        Ok(true)
    }

    /// Returns the number of fragments that an anchor binds in each document of the slice.
    fn count_fragments(
        &self,
        anchor: &'p ClassExpr,
        scope: &Scope<'b>,
        rows_since_check: &mut usize,
    ) -> Result<Vec<u64>, Abort> {
        let mut fragments = vec![0_u64; self.slice.len()];
        for found in self.anchored_rows(anchor, scope, rows_since_check)? {
            let docs = found.table.docs();
            for (_, selection) in &found.variants {
                self.check_cancelled(rows_since_check, selection.len())?;
                self.work.add(selection.len() as u64);
                for row in selection.rows().iter() {
                    let doc = docs.get(*row as usize).copied().unwrap_or(u32::MAX);
                    // A document before the slice wraps to a huge index and is reported as well.
                    let count = fragments.get_mut(doc.wrapping_sub(self.slice.start) as usize);
                    let outside = || broken("a fragment lies outside the slice of its run");
                    *count.ok_or_else(outside)? += 1;
                }
            }
        }
        Ok(fragments)
    }
}
