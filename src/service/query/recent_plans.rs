//! Plans of recent queries. A plan caches results about the layouts of the data (`PlanCache`),
//! which the next run of an equal query uses.

use crate::aql::query::Query;
use crate::aql::{self, Plan};
use crate::diag::Diagnostic;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The maximum number of kept plans. The least recently used one is removed first.
const MAX_PLANS: usize = 16;

/// The maximum number of layouts about which a kept plan has results: about a megabyte of memory.
const MAX_LAYOUTS: usize = 2_048;

/// Plans of recent queries on the population, the last used one first. Plans of queries on one EHR
/// are not kept, because there may be as many as EHRs.
#[derive(Default)]
pub(in crate::service) struct RecentPlans(RefCell<VecDeque<Rc<Plan>>>);

impl RecentPlans {
    /// Returns the plan of a checked query, as [`aql::plan`] does.
    ///
    /// # Errors
    /// The diagnostics of [`aql::plan`].
    pub fn plan(
        &self,
        query: Query,
        ehr: Option<&str>,
        exact: bool,
    ) -> Result<Rc<Plan>, Vec<Diagnostic>> {
        if ehr.is_none()
            && let Some(known) = self.take(&query, exact)
        {
            return Ok(known);
        }
        aql::plan(query, ehr, exact).map(Rc::new)
    }

    /// Keeps a plan after a run.
    pub fn keep(&self, plan: Rc<Plan>) {
        if plan.scan().ehr().is_some() {
            return;
        }
        let mut plans = self.0.borrow_mut();
        // Another request may have kept a plan of the same query meanwhile.
        plans.retain(|kept| !kept.is_of(plan.query(), plan.is_exact()));
        // The results of a plan grow with each run.
        if plan.cached_layouts() <= MAX_LAYOUTS {
            plans.push_front(plan);
            plans.truncate(MAX_PLANS);
        }
    }

    /// Returns the kept plan of a query. It stays kept for requests that come during its run.
    fn take(&self, query: &Query, exact: bool) -> Option<Rc<Plan>> {
        let plans = self.0.borrow();
        let known = plans.iter().find(|plan| plan.is_of(query, exact));
        known.map(Rc::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aql::{CheckOptions, Parameters};

    fn query(text: &str) -> Query {
        let tree = aql::parse(text).0.unwrap();
        aql::check(&tree, &Parameters::default(), &CheckOptions::default()).unwrap()
    }

    #[test]
    fn an_equal_query_gets_the_kept_plan() {
        let plans = RecentPlans::default();
        let of = |text: &str, ehr, exact| plans.plan(query(text), ehr, exact).unwrap();
        let first = of("SELECT c FROM COMPOSITION c", None, false);
        plans.keep(Rc::clone(&first));
        assert!(Rc::ptr_eq(
            &first,
            &of("select c  FROM COMPOSITION c", None, false)
        ));
        for (text, ehr, exact) in [
            ("SELECT c FROM COMPOSITION c LIMIT 1", None, false),
            ("SELECT c FROM COMPOSITION c", Some("e1"), false),
            ("SELECT c FROM COMPOSITION c", None, true),
        ] {
            assert!(!Rc::ptr_eq(&first, &of(text, ehr, exact)), "{text}");
        }
    }

    #[test]
    fn least_recently_used_plan_is_evicted() {
        let plans = RecentPlans::default();
        let text = |limit| format!("SELECT c FROM COMPOSITION c LIMIT {limit}");
        let of = |limit| plans.plan(query(&text(limit)), None, false).unwrap();
        let (first, second) = (of(1), of(2));
        plans.keep(Rc::clone(&first));
        plans.keep(Rc::clone(&second));
        plans.keep(of(1));
        (3..=MAX_PLANS + 1).for_each(|limit| plans.keep(of(limit)));
        assert!(Rc::ptr_eq(&first, &of(1)));
        assert!(!Rc::ptr_eq(&second, &of(2)));
    }

    #[test]
    fn plans_of_one_ehr_are_not_kept() {
        let plans = RecentPlans::default();
        let text = "SELECT c FROM EHR e CONTAINS COMPOSITION c WHERE e/ehr_id/value = 'e1'";
        let plan = plans.plan(query(text), None, false).unwrap();
        plans.keep(Rc::clone(&plan));
        assert!(!Rc::ptr_eq(
            &plan,
            &plans.plan(query(text), None, false).unwrap()
        ));
    }
}
