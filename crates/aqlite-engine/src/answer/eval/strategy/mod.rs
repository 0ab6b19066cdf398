//! Strategies of evaluating a batch, one file each, and the choice among them.
//!
//! A task is a strategy with a part of a batch. Tasks form a stack. A task that cannot complete its
//! part in one piece of work pushes tasks for the rest.

mod document_walk;
mod ehr_walk;
mod first_rows;
mod rare_documents;
mod row_templates;
mod walk;

use super::anchors::Anchors;
use super::bind::LastEhr;
use super::scope::Scope;
use super::{QueryError, Run};
use crate::answer::plan::Plan;
use crate::document::Batch;
use document_walk::DocumentWalk;
use ehr_walk::EhrWalk;
use first_rows::FirstRows;
use row_templates::RowTemplates;

/// A strategy of evaluating a part of a batch.
pub(super) trait Strategy {
    /// Evaluates the part, and outputs its rows in default order.
    ///
    /// # Errors
    /// [`Halt::Paused`] if a piece of work is done; a task for the rest is then on the stack.
    /// [`Halt::Full`] if no more rows are needed, [`Halt::Failed`] if the run failed.
    fn evaluate(
        self: Box<Self>,
        run: &mut Run<'_>,
        batch: &Batch,
        last_ehr: &LastEhr,
        tasks: &mut Tasks,
    ) -> Result<(), Halt>;
}

/// The remaining tasks of a batch, as a stack.
pub(super) type Tasks = Vec<Box<dyn Strategy>>;

/// The reason why a task is not finished.
pub(super) enum Halt {
    /// A piece of work is done, so the host can answer other requests.
    Paused,
    /// No more rows are needed.
    Full,
    /// The run failed.
    Failed(QueryError),
}

impl From<QueryError> for Halt {
    fn from(failure: QueryError) -> Halt {
        Halt::Failed(failure)
    }
}

/// The largest number of documents of a slice of a costly query. A slice that exceeds one piece of
/// work is discarded and split, so a large one wastes work.
const MAX_COSTLY_SLICE: u32 = 1 << 13;

/// The strategy that the plan determines.
#[derive(Clone, Copy)]
enum Choice {
    /// [`Anchors::of`] finds anchors: row templates can evaluate the query.
    RowTemplates,
    /// Each row belongs to one document.
    Documents,
    /// Rows join documents of one EHR.
    Ehrs,
}

/// Returns the strategy of a plan.
fn choice(plan: &Plan) -> Choice {
    match Anchors::of(plan) {
        Some(_) => Choice::RowTemplates,
        None if plan.single => Choice::Documents,
        None => Choice::Ehrs,
    }
}

/// Returns the description of the strategy of a plan, as `explain` shows it.
pub fn evaluation_strategy(plan: &Plan) -> &'static str {
    match choice(plan) {
        Choice::RowTemplates => "by row templates, one set for each layout",
        Choice::Documents => "document by document",
        Choice::Ehrs if plan.semi_join.is_some() => {
            "EHR by EHR, for its documents are joined; those that can be joined are found first"
        }
        Choice::Ehrs => "EHR by EHR, for its documents are joined",
    }
}

/// Returns the tasks of a batch. Rows must be output in default order, so the task of the first
/// documents is on top.
pub(super) fn tasks(run: &Run<'_>, batch: &Batch) -> Tasks {
    let (plan, budget) = (run.plan, &run.budget);
    match choice(plan) {
        // The anchor scan reads the dictionary of the batch, and a union has none.
        Choice::RowTemplates if !budget.plain && !batch.is_union() => {}
        // Without row templates, a plan with an anchor is evaluated like any other.
        _ if plan.single => return vec![Box::new(DocumentWalk(0..documents(plan, batch)))],
        _ => return vec![Box::new(EhrWalk::default())],
    }
    let all = batch.len() as u32;
    let is_narrow = plan.scan().ehrs.is_some();
    if run.output.missing().is_some() && !is_narrow {
        return vec![Box::new(FirstRows { start: 0 })];
    }
    let part = match plan.costly {
        true => budget.part.min(MAX_COSTLY_SLICE),
        false => budget.part,
    };
    let most = if is_narrow { all } else { part }.max(1);
    let starts = (0..all).step_by(most as usize).rev();
    starts
        .map(|start| start..all.min(start.saturating_add(most)))
        .map(|slice| Box::new(RowTemplates(slice)) as Box<dyn Strategy>)
        .collect()
}

/// Returns the number of documents of a walk: those of the batch, or of the one EHR that the query
/// is about.
fn documents(plan: &Plan, batch: &Batch) -> u32 {
    Scope::documents(plan, batch).map_or(batch.len(), <[u32]>::len) as u32
}
