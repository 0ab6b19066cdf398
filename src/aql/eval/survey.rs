//! What an anchor gives in all tables of a batch, found out once for as long as no table comes in.

use super::bind::may_hold;
use super::node::Node;
use super::predicate::Tester;
use super::scope::Scope;
use super::templates::ByTemplate;
use crate::aql::facts::{Expansion, OverRun, Runs, Survey, Surveyed};
use crate::aql::query::{ClassExpr, Predicate};
use crate::aql::trie::Trie;
use crate::document::{Fragment, Table};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// What an anchor gives in each table.
    pub fn survey(&self, anchor: &'p ClassExpr) -> Rc<Survey> {
        self.plan.facts.survey(anchor.variable, self.batch.layout(), || self.surveyed(anchor))
    }

    fn surveyed(&self, anchor: &'p ClassExpr) -> Survey {
        let mut survey = Survey { layout: self.batch.layout(), same: Vec::new(), others: Vec::new(), runs: Runs::default() };
        let trie = self.trie_of(anchor);
        let may_pass = self.may_pass(anchor);
        let mut over = BTreeMap::new();
        for (number, table) in (0..).zip(self.batch.tables()).filter(|(_, table)| may_pass(table)) {
            let root = Node::root(Fragment { table: number, row: 0 });
            let expansion = trie.and_then(|trie| self.expander(self.view()).expansion(trie, root));
            match (self.root_passes(anchor, number, table), expansion.as_deref()) {
                (Some(false), _) => {}
                (Some(true), None) if trie.is_none() => survey.same.push(Surveyed { table: number, expansion: None, of_run: false }),
                (Some(true), Some(Expansion::Rows(_))) => survey.same.push(Surveyed { table: number, expansion, of_run: false }),
                (Some(true), Some(Expansion::Run(_))) => over.extend(expansion.map(|expansion| (number, expansion))),
                _ => survey.others.push(number),
            }
        }
        // Where anchors may stand in one another, parts of one may stand among the rows of another.
        let apart = trie.filter(|_| !anchor.class.may_contain(anchor.class));
        match apart.and_then(|trie| self.runs(trie, &over)) {
            Some(runs) => {
                let same = |(table, e): (&u32, &Rc<Expansion>)| Surveyed { table: *table, expansion: Some(Rc::clone(e)), of_run: true };
                survey.same.extend(runs.giving.iter().map(same));
                survey.runs = runs;
            }
            None => survey.others.extend(over.into_keys()),
        }
        survey
    }

    /// Tells by class and node id which tables an anchor may bind fragments of.
    pub fn may_pass(&self, anchor: &'p ClassExpr) -> impl Fn(&Table) -> bool {
        let known = |predicate: &Predicate| self.batch.root_ids().map(|id| may_hold(predicate, Some(id), self.plan.exact)).collect();
        let known: Vec<bool> = anchor.predicate.as_ref().map_or(Vec::new(), known);
        move |table| table.root_id().is_none_or(|id| known.get(id as usize) != Some(&false)) && table.shape().class().is_a(anchor.class)
    }

    /// Whether the fragments of a table pass what an anchor asks of its node; `None` where slots decide.
    pub fn root_passes(&self, anchor: &ClassExpr, number: u32, table: &Table) -> Option<bool> {
        let Some(predicate) = &anchor.predicate else { return Some(true) };
        self.plan.facts.of(table.shape()).passes(anchor.variable, || {
            let differs = Cell::new(false);
            let root = Node::root(Fragment { table: number, row: 0 });
            let first = Tester { plan: self.plan, view: self.view().watched(&differs) }.holds(predicate, root);
            (!differs.get()).then_some(first)
        })
    }

    /// The tables of the parts of some runs, when these are all of their fragments, all are of one step, and what has them gives
    /// no cell and is never without any: then nobody needs to ask which part is whose, but for the few that give no row.
    fn runs(&self, trie: &Trie, over: &BTreeMap<u32, Rc<Expansion>>) -> Option<Runs> {
        let is_run = |(table, run): &(u32, u32)| over.get(table).and_then(over_run).is_some_and(|of| of.run == *run);
        let only = over.values().find_map(over_run)?;
        let is_same = |(number, of): (&u32, &OverRun)| {
            let never_without = self.batch.table(*number).is_some_and(|table| !table.has_empty(of.run));
            of.with.is_empty() && of.step == only.step && of.alive == only.alive && never_without
        };
        if !over.iter().all(|(number, e)| over_run(e).is_some_and(|of| is_same((number, of)))) {
            return None;
        }
        let mut runs = Runs { wholes: over.clone(), ..Runs::default() };
        let mut lengths = (0, 0);
        for (number, table) in (0..).zip(self.batch.tables()).filter(|(_, table)| table.origins().iter().any(is_run)) {
            let expansion = self.expander(self.view()).of_part(trie, only, Fragment { table: number, row: 0 })?;
            let Expansion::Rows(rows) = &*expansion else { return None };
            if !table.origins().iter().all(is_run) {
                return None;
            }
            if rows.is_empty() {
                lengths.1 += table.len();
                runs.barren.push(number);
            } else {
                lengths.0 += table.len();
                runs.giving.insert(number, expansion);
            }
        }
        (lengths.1 <= lengths.0 / 8).then_some(runs)
    }

    /// The fragments with runs of which no part gives a row, by table: those of the parts that give none are asked.
    pub fn without(&self, runs: &Runs, scope: &Scope<'b>) -> BTreeMap<u32, Vec<u32>> {
        let mut found = BTreeSet::new();
        for number in &runs.barren {
            let Some(table) = self.batch.table(*number) else { continue };
            let rows = scope.rows(*number, table, 0..table.len() as u32);
            found.extend(rows.rows().iter().filter_map(|row| self.batch.whole_of(Fragment { table: *number, row: *row })));
        }
        let mut without: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for whole in found {
            let run = runs.wholes.get(&whole.table).and_then(over_run).map_or(u32::MAX, |of| of.run);
            if !self.batch.parts(whole, run).iter().any(|part| runs.giving.contains_key(&part.table)) {
                without.entry(whole.table).or_default().push(whole.row);
            }
        }
        without
    }
}

/// The run that rows go over.
pub(super) fn over_run(expansion: &Rc<Expansion>) -> Option<&OverRun> {
    match &**expansion {
        Expansion::Run(of) => Some(of),
        _ => None,
    }
}
