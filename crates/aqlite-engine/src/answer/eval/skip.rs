//! Counting of rows before the window: the rows of whole batches are counted and not made.

use super::Run;
use super::execution_path::ExecutionPath;
use crate::answer::QueryError;
use crate::answer::plan::Plan;
use crate::answer::result::{Cell, ResultSet};
use crate::answer::scan::Progress;
use crate::document::Batch;
use crate::document::Number;
use std::rc::Rc;

/// The largest number of documents of a batch for each row before the window. Counting reads all
/// documents of the batch, while making the first rows only costs more for each row.
const DOCUMENTS_PER_ROW: u64 = 8;

impl<'p> Run<'p> {
    /// Counts the rows of a new batch if all of them can be before the window. Returns `None` if
    /// the rows of the batch must be made.
    pub(super) fn skip_batch(&mut self, batch: &Batch, ehrs: Option<&[u32]>) -> Option<Progress> {
        let plan = self.plan.counting.as_deref()?;
        let before = self.output.before_window();
        let is_likely =
            before.saturating_mul(DOCUMENTS_PER_ROW) >= u64::from(batch.fragment_count());
        if self.is_at_window || self.budget.plain || before == 0 || !is_likely {
            return None;
        }
        let counting = self.counting.take();
        let mut counting = counting.unwrap_or_else(|| Box::new(self.counting_run(plan)));
        if counting.advance_piece(batch, ehrs) == Progress::Paused {
            self.counting = Some(counting);
            return Some(Progress::Paused);
        }
        self.work.taken.note(ExecutionPath::SkippedRows);
        match counting.finish().and_then(|result| count(&result)) {
            Ok(rows) if rows <= before => {
                if let Some((plain, _)) = self.output.plain_rows() {
                    plain.skip(rows);
                }
                Some(Progress::More)
            }
            Ok(_) => {
                self.is_at_window = true;
                None
            }
            Err(failure) => {
                self.failure = Some(failure);
                Some(Progress::Enough)
            }
        }
    }

    fn counting_run(&self, plan: &'p Plan) -> Run<'p> {
        let work = Rc::clone(&self.work);
        Run::with_work(plan, self.now, (self.budget, work), self.stopped)
    }
}

/// Reads the only cell of a result that counts rows.
fn count(result: &ResultSet) -> Result<u64, QueryError> {
    let cell = result.rows().next().and_then(|row| row.get(0));
    let count = match cell {
        Some(Cell::Number(Number::Token(digits))) => digits.parse().ok(),
        _ => None,
    };
    count.ok_or(QueryError::Broken("a count of rows is not a number"))
}
