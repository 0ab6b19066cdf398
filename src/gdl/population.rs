//! One guide over many EHRs: each binding is asked once for all of them, then the guide runs EHR by EHR.
//!
//! ```text
//! Population::new ─► queries() … host runs each population_aql … take(query, rows) ─► run(ehr_id, …) for each EHR
//! ```

use super::bind::{BindingQuery, Instance, UTC, value_of_cell};
use super::compile::CompiledGuide;
use super::run::{Run, RunInput};
use super::time::Moment;
use super::value::Value;
use crate::aql::Cell;
use std::collections::HashMap;

/// The data that a guide reads, of many EHRs.
#[derive(Debug)]
pub struct Population<'g> {
    guide: &'g CompiledGuide,
    queries: Vec<BindingQuery>,
    now: Moment,
    /// The instances by EHR of each query.
    found: Vec<HashMap<String, Vec<Instance>>>,
}

impl<'g> Population<'g> {
    /// Nothing read yet. Data dated after `now` will be left out.
    pub fn new(guide: &'g CompiledGuide, now: Moment) -> Population<'g> {
        let queries = guide.queries_at(now);
        let found = queries.iter().map(|_| HashMap::new()).collect();
        Population { guide, queries, now, found }
    }

    /// What to ask: run each [`BindingQuery::population_aql`] and hand its rows to [`Population::take`].
    pub fn queries(&self) -> &[BindingQuery] {
        &self.queries
    }

    /// Takes the rows, in commit order, of one of [`Population::queries`]; the last cell of each is the id of the EHR.
    pub fn take<'c>(&mut self, query: usize, rows: impl IntoIterator<Item = &'c [Cell]>) {
        let (Some(query), Some(found)) = (self.queries.get(query), self.found.get_mut(query)) else { return };
        let mut own: (&str, Vec<Instance>) = ("", Vec::new());
        for row in rows {
            let Some((Cell::Text(ehr_id), values)) = row.split_last() else { continue };
            let ehr_id = ehr_id.as_str();
            // The rows of an EHR mostly stand together.
            if own.0 != ehr_id {
                add(found, std::mem::replace(&mut own, (ehr_id, Vec::new())));
            }
            own.1.push(query.instance(values.iter().map(|cell| value_of_cell(cell, UTC)).collect()));
        }
        add(found, own);
        found.values_mut().for_each(|own| super::bind::in_order(own, self.now));
    }

    /// The instances of one EHR, for each binding of the guide; each EHR can be asked for once.
    pub fn instances(&mut self, ehr_id: &str) -> Vec<Vec<Instance>> {
        let mut all = vec![Vec::new(); self.guide.bindings.len()];
        for (query, found) in self.queries.iter().zip(&mut self.found) {
            if let (Some(place), Some(own)) = (all.get_mut(query.binding), found.remove(ehr_id)) {
                *place = own;
            }
        }
        all
    }

    /// The EHRs that have any data that the guide reads, in the order of their ids.
    pub fn ehr_ids(&self) -> Vec<String> {
        let mut ids: Vec<&String> = self.found.iter().flat_map(HashMap::keys).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().cloned().collect()
    }

    /// Runs the guide on every EHR that has data and hands each result to `visit`. `like` gives language, switches and terminology.
    pub fn run(mut self, like: &RunInput<'_>, mut visit: impl FnMut(&str, Run)) {
        for ehr_id in self.ehr_ids() {
            let instances = self.instances(&ehr_id);
            visit(&ehr_id, self.guide.run(&RunInput { instances: &instances, now: self.now, ..*like }));
        }
    }
}

fn add(found: &mut HashMap<String, Vec<Instance>>, (ehr_id, mut new): (&str, Vec<Instance>)) {
    match found.get_mut(ehr_id) {
        _ if new.is_empty() => {}
        Some(own) => own.append(&mut new),
        None => drop(found.insert(ehr_id.to_owned(), new)),
    }
}

impl BindingQuery {
    /// Variable (or path, where only a predicate needs it) and value of an instance, as the answer shows what was read.
    pub fn values_of(&self, instance: Option<&Instance>) -> Vec<(String, Value)> {
        let names = self.columns.iter().filter_map(super::bind::QueryColumn::name);
        names.map(str::to_owned).zip(instance.into_iter().flat_map(|i| i.values.iter().cloned())).collect()
    }
}
