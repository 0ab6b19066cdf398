//! The strategy for queries whose rows join documents of one EHR: walks EHRs one by one.

use super::walk::bind;
use super::{Halt, Strategy, Tasks};
use crate::answer::eval::bind::{LastEhr, Parent};
use crate::answer::eval::execution_path::ExecutionPath;
use crate::answer::eval::node::View;
use crate::answer::eval::{QueryError, Run};
use crate::answer::query::{ClassExpr, Contains, Source};
use crate::document::Batch;
use aqlite_rm::class::Cls;
use std::ops::Range;

/// Returns whether a query only counts EHRs, without a path or a condition.
fn counts_ehrs(run: &Run<'_>) -> bool {
    let (plan, query) = (run.plan, &run.plan.query);
    let is_any_ehr = |expr: &ClassExpr| {
        expr.class == Cls::EHR && expr.predicate.is_none() && expr.contains == Contains::Nothing
    };
    matches!(&query.from, Source::Class(expr) if is_any_ehr(expr))
        && query.condition.is_none()
        && plan.tries.is_empty()
        && run.output.has_only_group(query)
        && !run.budget.plain
}

/// A walk through a range of the EHRs that the query reads.
pub(super) struct EhrWalk(pub Range<u32>);

impl Strategy for EhrWalk {
    fn evaluate(
        self: Box<Self>,
        run: &mut Run<'_>,
        batch: &Batch,
        last_ehr: &LastEhr,
        tasks: &mut Tasks,
    ) -> Result<(), Halt> {
        let EhrWalk(range) = *self;
        run.work.taken.note(ExecutionPath::Ehrs);
        let queryable = || {
            let ehrs = batch.ehrs();
            ehrs.filter(|ehr| batch.is_queryable(*ehr)).collect()
        };
        let named = run.ehrs.clone();
        let mut ehrs: Vec<u32> = named.map_or_else(queryable, |ehrs| ehrs.to_vec());
        if let Some(joinable) = &run.joinable {
            ehrs.retain(|ehr| joinable.has_ehr(*ehr));
        }
        if counts_ehrs(run) {
            let (view, count) = (View::new(batch), ehrs.len() as u64);
            run.work.taken.note(ExecutionPath::CountEhrs);
            run.work.add(count);
            run.output.fold_count(&run.plan.query, view, count);
            return Ok(());
        }
        for (at, ehr) in (0..).zip(ehrs).skip(range.start as usize) {
            if (run.stopped)() {
                return Err(Halt::Failed(QueryError::Stopped));
            }
            let done = bind(run, batch, ehr, Parent::Ehr(ehr), last_ehr);
            if let Err(Halt::Paused) = done {
                // The trail of the run is inside this EHR, so the rest begins with it.
                tasks.push(Box::new(EhrWalk(at..range.end)));
            }
            done?;
        }
        Ok(())
    }
}
