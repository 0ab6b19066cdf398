//! The walk through one document or EHR: enumerates assignments of the variables of FROM, and
//! outputs the rows of each. A pause leaves a trail, from which the walk resumes.

use super::Halt;
use crate::answer::eval::bind::{Binder, LastEhr, Parent, Trail};
use crate::answer::eval::condition::ConditionEvaluator;
use crate::answer::eval::expand::Expander;
use crate::answer::eval::node::{Node, View};
use crate::answer::eval::output::{JoinOrder, Output, first_of_join};
use crate::answer::eval::work::{ROW, STEP, Work};
use crate::answer::eval::{Budget, QueryError, ROWS_PER_BUDGET_CHECK, Run};
use crate::answer::plan::{Plan, each_class};
use crate::document::Batch;
use aqlite_rm::class::Cls;
use std::cell::{OnceCell, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;

/// Outputs the rows of one document or EHR, from the position of its trail.
pub(super) fn bind(
    run: &mut Run<'_>,
    batch: &Batch,
    ehr: u32,
    parent: Parent<'_>,
    last_ehr: &LastEhr,
) -> Result<(), Halt> {
    let (work, trail) = (Rc::clone(&run.work), Rc::clone(&run.trail));
    let joinable = run.joinable.clone();
    let binder = Binder {
        plan: run.plan,
        view: View::new(batch).counting(&work),
        ehr,
        last_ehr,
        work: &work,
        trail: &trail,
        joinable: joinable.as_deref(),
        compositions_by_id: OnceCell::new(),
        candidate_lists: RefCell::default(),
    };
    let end = output_rows(run, &binder, parent);
    let halted = match end {
        _ if work.is_over() => Err(Halt::Failed(
            work.check()
                .err()
                .unwrap_or(QueryError::TooMuchWork(run.budget.work)),
        )),
        end => end,
    };
    if !matches!(halted, Err(Halt::Paused)) {
        run.trail.clear();
    }
    halted
}

/// Outputs the rows of each assignment, until one of them halts the run.
fn output_rows<'b>(
    run: &mut Run<'_>,
    binder: &Binder<'_, 'b>,
    parent: Parent<'b>,
) -> Result<(), Halt> {
    let (plan, now, budget, view) = (run.plan, run.now, run.budget, binder.view);
    let expander = Expander {
        plan,
        view,
        max_rows: budget.rows_of_variable(plan),
        plain: budget.plain,
    };
    let mut assignment = vec![Node::NONE; plan.query.variables.len()];
    let mut row = vec![Node::NONE; plan.width];
    let (output, mut halt, mut is_enough) = (&mut run.output, None, false);
    let wanted = wanted_of_ehr(plan);
    let joinable = binder.joinable;
    let order = joinable.and_then(|joinable| joinable.order_of(view.batch, binder.ehr));
    let flow = binder.bind(&plan.query.from, parent, &mut assignment, &mut |a| {
        let done = rows_of(
            ConditionEvaluator { plan, view, now },
            expander,
            binder.trail,
            Assignment { nodes: a, order },
            &mut row,
            output,
            RunLimits {
                budget: &budget,
                work: binder.work,
            },
        );
        halt = done.err();
        // A void run continues, to find the absent parts.
        is_enough = halt.is_none()
            && wanted.is_some_and(|wanted| binder.trail.kept() >= wanted)
            && !binder.work.is_void();
        if halt.is_some() || is_enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    match (flow, halt) {
        _ if is_enough => Ok(()),
        (_, Some(halt)) => Err(halt),
        (ControlFlow::Break(()), None) => Err(Halt::Paused),
        (ControlFlow::Continue(()), None) => Ok(()),
    }
}

/// Returns the number of rows of one EHR behind which no other row of it can be among the first
/// rows of a join. Within an EHR, documents are bound in default order. `None` if versions of
/// objects are bound, because those of one object are enumerated together.
fn wanted_of_ehr(plan: &Plan) -> Option<u64> {
    let wanted = first_of_join(plan)?;
    let mut is_in_order = true;
    each_class(&plan.query.from, &mut |expr| {
        is_in_order &= !expr.class.is_a(Cls::VERSIONED_OBJECT);
    });
    is_in_order.then_some(wanted as u64)
}

/// An assignment of nodes to the variables of FROM.
struct Assignment<'a> {
    nodes: &'a [Node],
    /// The default order of its rows, if the semi-join has determined it.
    order: Option<JoinOrder>,
}

/// The limits of a run.
struct RunLimits<'a> {
    budget: &'a Budget,
    work: &'a Work,
}

/// Outputs the rows of an assignment that the trail has not passed.
fn rows_of<'p: 'b, 'b>(
    evaluator: ConditionEvaluator<'p, 'b>,
    expander: Expander<'p, 'b>,
    trail: &Trail,
    assignment: Assignment<'_>,
    row: &mut [Node],
    output: &mut Output,
    RunLimits { budget, work }: RunLimits<'_>,
) -> Result<(), Halt> {
    let (plan, view) = (evaluator.plan, evaluator.view);
    let product = trail
        .product()
        .unwrap_or_else(|| expander.product(assignment.nodes));
    if product.widest() > expander.max_rows {
        return Err(Halt::Failed(QueryError::TooManyCombinations(
            expander.max_rows,
        )));
    }
    let order = assignment
        .order
        .or_else(|| (!plan.single).then(|| join_order(view.batch, assignment.nodes)));
    for number in trail.rows()..product.len() {
        if work.step(STEP).is_break() {
            trail.leave(product, number);
            return Err(Halt::Paused);
        }
        product.fill(view, number, row);
        if evaluator.keeps(row) {
            output.take(evaluator, row, order);
            trail.keep();
            view.count(ROW);
            if output.is_full(work) {
                return Err(Halt::Full);
            }
            if number % ROWS_PER_BUDGET_CHECK == ROWS_PER_BUDGET_CHECK - 1 {
                output.check_limits(budget, work)?;
            }
        }
    }
    trail.close_rows();
    Ok(output.check_limits(budget, work)?)
}

/// Returns the default order of a row that joins documents: the position of the first bound
/// document in the order of the class expressions; unbound ones sort last. Within one EHR, and if
/// only EHRs are bound, rows arrive in default order.
fn join_order(batch: &Batch, assignment: &[Node]) -> JoinOrder {
    let ordinal = |node: &Node| {
        let table = batch.table(node.fragment.table)?;
        let is_ehr = table.layout().class() == aqlite_rm::class::Cls::EHR;
        let number = batch.owner_of(node.fragment).filter(|_| !is_ehr)?;
        batch.doc(number).map(|doc| doc.row.ordinal)
    };
    match assignment
        .iter()
        .enumerate()
        .find_map(|(i, node)| ordinal(node).map(|o| (i, o)))
    {
        Some((variable, ordinal)) => JoinOrder {
            variable: variable as u64,
            ordinal,
        },
        None => JoinOrder {
            variable: u64::MAX,
            ordinal: u64::MAX,
        },
    }
}
