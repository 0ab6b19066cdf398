//! The strategy for queries whose rows are EHRs or join documents of one EHR: walks EHRs one by one,
//! or only counts them.

use super::rare_documents::Rare;
use super::walk::bind;
use super::{Halt, Strategy, Tasks};
use crate::answer::eval::bind::{LastEhr, Parent};
use crate::answer::eval::execution_path::ExecutionPath;
use crate::answer::eval::node::View;
use crate::answer::eval::{QueryError, Run};
use crate::answer::query::{ClassExpr, Contains, Source};
use crate::document::Batch;
use aqlite_rm::class::Cls;
use std::rc::Rc;

/// Returns whether a query only counts EHRs, without a path or a condition.
fn counts_ehrs(run: &Run<'_>) -> bool {
    let (plan, query) = (run.plan, &run.plan.query);
    let is_any_ehr = |expr: &ClassExpr| {
        expr.class == Cls::EHR && expr.predicate.is_none() && expr.contains == Contains::Nothing
    };
    matches!(&query.from, Source::Class(expr) if is_any_ehr(expr))
        && query.condition.is_none()
        && plan.tries.is_empty()
        && run.output.has_only_group()
        && !run.budget.plain
}

/// A walk through the EHRs that the query reads.
#[derive(Default)]
pub(super) struct EhrWalk {
    /// The numbers of the EHRs in the batch. `None` before the walk has begun: a walk that resumes
    /// does not list them again.
    ehrs: Option<Rc<[u32]>>,
    /// The position of the next EHR in the list.
    at: usize,
}

/// Returns the EHRs that the query reads: the named ones or all that are queryable, without those
/// whose documents cannot be joined.
fn listed(run: &Run<'_>, batch: &Batch) -> Rc<[u32]> {
    let is_joinable = |ehr: &u32| {
        let joinable = run.joinable.as_ref();
        joinable.is_none_or(|joinable| joinable.has_ehr(*ehr))
    };
    match &run.ehrs {
        Some(named) => named.iter().copied().filter(is_joinable).collect(),
        None => {
            let queryable = batch.ehrs().filter(|ehr| batch.is_queryable(*ehr));
            queryable.filter(is_joinable).collect()
        }
    }
}

impl Strategy for EhrWalk {
    fn evaluate(
        self: Box<Self>,
        run: &mut Run<'_>,
        batch: &Batch,
        last_ehr: &LastEhr,
        tasks: &mut Tasks,
    ) -> Result<(), Halt> {
        let EhrWalk { ehrs, at: first } = *self;
        run.work.taken.note(ExecutionPath::Ehrs);
        let ehrs = ehrs.unwrap_or_else(|| listed(run, batch));
        if counts_ehrs(run) {
            let (view, count) = (View::new(batch), ehrs.len() as u64);
            run.work.taken.note(ExecutionPath::CountEhrs);
            run.work.add(count);
            if let Some((groups, _)) = run.output.groups() {
                groups.fold_count(&run.plan.query, view, count);
            }
            return Ok(());
        }
        let mut rare = Rare::ehrs();
        for (at, ehr) in ehrs.iter().copied().enumerate().skip(first) {
            // The trail of the run may be inside the first EHR.
            let is_visited = at == first || run.work.samples(at);
            if !is_visited && !rare.contains(run, batch, ehr) {
                continue;
            }
            if (run.stopped)() {
                return Err(Halt::Failed(QueryError::Stopped));
            }
            let done = bind(run, batch, ehr, Parent::Ehr(ehr), last_ehr);
            if let Err(Halt::Paused) = done {
                // The trail of the run is inside this EHR, so the rest begins with it.
                let ehrs = Some(Rc::clone(&ehrs));
                tasks.push(Box::new(EhrWalk { ehrs, at }));
            }
            done?;
        }
        Ok(())
    }
}
