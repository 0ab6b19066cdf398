//! The strategy for queries with an anchor: row templates over the columns of a slice of documents.

use super::document_walk::DocumentWalk;
use super::{Halt, Strategy, Tasks, documents};
use crate::answer::eval::anchors::Anchors;
use crate::answer::eval::bind::LastEhr;
use crate::answer::eval::execution_path::ExecutionPath;
use crate::answer::eval::output::best_of;
use crate::answer::eval::templates::{Abort, RowTemplateEvaluator};
use crate::answer::eval::{QueryError, Run};
use crate::document::Batch;
use std::ops::Range;
use std::rc::Rc;

/// The evaluation of a range of document numbers by row templates.
pub(super) struct RowTemplates(pub Range<u32>);

impl Strategy for RowTemplates {
    fn evaluate(
        self: Box<Self>,
        run: &mut Run<'_>,
        batch: &Batch,
        _: &LastEhr,
        tasks: &mut Tasks,
    ) -> Result<(), Halt> {
        let RowTemplates(slice) = *self;
        let (plan, work) = (run.plan, Rc::clone(&run.work));
        work.taken.note(ExecutionPath::Templates);
        let first_only = run.output.missing().is_some();
        let plain = run.output.plain_rows();
        let before = plain.map(|(rows, cells)| rows.end(cells));
        let is_whole = plan.scan().ehr().is_some();
        match output_rows(run, batch, slice.clone(), first_only) {
            Ok(()) => {
                if let Some((rows, cells)) = run.output.plain_rows() {
                    rows.remove_duplicates(cells, &work);
                }
                run.output.check_limits(&run.budget, &work)?;
            }
            Err(Abort::Heavy) => {
                // Objects of rows that were not output may have been written.
                if let Some(((rows, cells), end)) = run.output.plain_rows().zip(before) {
                    rows.make_again_from(cells, end);
                }
                match is_whole {
                    // A single document, or the documents of one EHR, cannot be split. A walk can
                    // pause inside a document.
                    true => tasks.push(Box::new(DocumentWalk(0..documents(plan, batch)))),
                    false if slice.len() > 1 => split(slice, tasks),
                    false => tasks.push(Box::new(DocumentWalk(slice))),
                }
            }
            // The slice has more rows than the run can hold, but only a few of them may be needed.
            // A walk ends as soon as it has these.
            Err(Abort::Failed(failure)) if first_only && !is_whole && is_too_large(&failure) => {
                if let Some(((rows, cells), end)) = run.output.plain_rows().zip(before) {
                    rows.truncate_to(cells, end);
                }
                // Rows before the window are discarded after each slice, so smaller slices fit.
                if run.output.before_window() > 0 && slice.len() > 1 {
                    split(slice, tasks);
                } else {
                    tasks.push(Box::new(DocumentWalk(slice)));
                }
            }
            Err(Abort::Failed(failure)) => return Err(Halt::Failed(failure)),
        }
        Ok(())
    }
}

/// Outputs the rows of a slice, and keeps the best ranks if all rows were output.
fn output_rows(
    run: &mut Run<'_>,
    batch: &Batch,
    slice: Range<u32>,
    first_only: bool,
) -> Result<(), Abort> {
    let (plan, work) = (run.plan, Rc::clone(&run.work));
    let anchors = Anchors::of(plan).ok_or(QueryError::Broken(
        "a query without anchor is evaluated by row templates",
    ))?;
    if let Some((rows, _)) = run.output.plain_rows() {
        rows.set_removable(first_only);
    }
    let evaluator = RowTemplateEvaluator {
        plan,
        anchors: &anchors,
        batch,
        ehrs: run.ehrs.clone(),
        now: run.now,
        budget: run.budget,
        stopped: run.stopped,
        slice,
        work: &work,
        begun_at: work.spent(),
        first_only,
    };
    let outcome = evaluator.run(&mut run.output);
    if let Some((rows, _)) = run.output.plain_rows() {
        rows.set_removable(false);
    }
    match &outcome {
        Ok(()) => work.best_ranks.borrow_mut().commit(best_of(&plan.query)),
        Err(_) => work.best_ranks.borrow_mut().discard(),
    }
    outcome
}

/// Returns whether an error concerns the size of the result, rather than the query or its work.
fn is_too_large(failure: &QueryError) -> bool {
    matches!(
        failure,
        QueryError::TooManyRows(_) | QueryError::TooManyCombinations(_) | QueryError::TooLarge(_)
    )
}

/// Pushes both halves of a slice that exceeds one piece of work, the first half on top.
fn split(slice: Range<u32>, tasks: &mut Tasks) {
    let middle = slice.start + slice.len() as u32 / 2;
    tasks.push(Box::new(RowTemplates(middle..slice.end)));
    tasks.push(Box::new(RowTemplates(slice.start..middle)));
}
