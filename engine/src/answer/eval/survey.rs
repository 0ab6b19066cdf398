//! What an anchor gives in the tables of a batch: their rows, by the case that they are.

use super::QueryError;
use super::bind::may_hold;
use super::expand::{Start, StepIn};
use super::node::Node;
use super::picked::Picked;
use super::predicate::Tester;
use super::scope::Scope;
use super::templates::ByTemplate;
use crate::answer::facts::{Case, Cases, Expansion, OverRun, Place, Standing, Survey};
use crate::answer::query::{ClassExpr, Predicate};
use crate::answer::trie::Trie;
use crate::document::{Fragment, Table};
use crate::order;
use std::cell::Cell;
use std::rc::Rc;

/// Rows of a table, by what they give.
pub(super) struct Sorted<'b> {
    pub table: &'b Table,
    pub number: u32,
    pub cases: Vec<(Rc<Case>, Picked<'b>)>,
    /// False where a predicate left out some of the rows that take part.
    pub are_all: bool,
}

/// The parts of runs that are looked at without asking which is whose.
pub(super) struct Runs<'b> {
    pub parts: Vec<Sorted<'b>>,
    /// The step that they are instances of.
    only: Rc<Case>,
}

/// Fragments with a run of which no part gives a row: their table, their case and their rows.
pub(super) type Without = (u32, Rc<Case>, Vec<u32>);

/// What is done with the rows of a case.
pub(super) type Visit<'v, 'b> = &'v mut dyn FnMut(Rc<Case>, Picked<'b>) -> Result<(), QueryError>;

impl<'b> Sorted<'b> {
    /// Sorts rows of the table of a step.
    pub fn of(step: &StepIn<'_, '_, 'b>, rows: Picked<'b>) -> Sorted<'b> {
        let mut cases = Vec::with_capacity(1);
        // It is never broken off.
        let _ = step.each_case(rows, &mut |case, rows| {
            cases.push((case, rows));
            Ok(())
        });
        Sorted { table: step.table, number: step.number, cases, are_all: true }
    }
}

impl<'b> StepIn<'_, '_, 'b> {
    /// Visits rows of the table case by case: they are parted by what decides the case, until all of a part are of one.
    pub fn each_case(&self, rows: Picked<'b>, visit: Visit<'_, 'b>) -> Result<(), QueryError> {
        let cases = self.cases();
        let mut open: Vec<(Place, Picked<'b>)> = vec![(Cases::ENTRY, rows)];
        while let Some((place, rows)) = open.pop() {
            match cases.at(place) {
                _ if rows.is_empty() => {}
                Standing::Case(case) => visit(case, rows)?,
                Standing::Question(number, flag) => {
                    let (has, lacks) = rows.split(self.table.flag(flag));
                    open.extend([((number, false), lacks), ((number, true), has)]);
                }
                Standing::Nothing if rows.get(0).is_some_and(|row| cases.learn(self.flags(row), || self.find(row))) => open.push((place, rows)),
                Standing::Nothing => visit(Rc::new(Case { asked: Vec::new(), expansion: Expansion::Walk }), rows)?,
            }
        }
        Ok(())
    }
}

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// The tables that an anchor may bind fragments of, found out once for as long as these stay as they are.
    pub fn survey(&self, anchor: &'p ClassExpr) -> Rc<Survey> {
        let layout = self.batch.layout();
        self.plan.facts.survey(anchor.variable, layout, || {
            let may_pass = self.may_pass(anchor);
            let tables = (0..).zip(self.batch.tables()).filter(|(_, table)| may_pass(table)).map(|(number, _)| number);
            Survey { layout, tables: tables.collect() }
        })
    }

    /// The rows of a population that an anchor binds, table by table.
    pub fn sorted_tables(&self, anchor: &'p ClassExpr, scope: &Scope<'b>, done: &mut usize) -> Result<Vec<Sorted<'b>>, QueryError> {
        let survey = self.survey(anchor);
        let mut found = Vec::with_capacity(survey.tables.len());
        for number in &survey.tables {
            let Some(table) = self.batch.table(*number) else { continue };
            let all = scope.rows(*number, table);
            let count = all.len();
            let rows = self.bound(anchor, (table, *number), all, done)?;
            found.extend(rows.map(|rows| Sorted { are_all: rows.len() == count, ..self.sorted(anchor, (table, *number), rows) }));
        }
        Ok(found)
    }

    /// Those of some rows of a table that an anchor binds; `None` where it binds no row of the table.
    pub fn bound(
        &self,
        anchor: &ClassExpr,
        (table, number): (&Table, u32),
        rows: Picked<'b>,
        done: &mut usize,
    ) -> Result<Option<Picked<'b>>, QueryError> {
        let predicate = match (self.root_passes(anchor, number, table), &anchor.predicate) {
            (None, Some(predicate)) => predicate,
            (passes, _) => return Ok((passes != Some(false)).then_some(rows)),
        };
        let tester = Tester { plan: self.plan, view: self.view() };
        let mut passing = Vec::new();
        for row in rows.rows().iter() {
            self.go_on(done, 0)?;
            passing.extend(tester.holds(predicate, Node::root(Fragment { table: number, row: *row })).then_some(*row));
        }
        Ok(Some(Picked::These(passing)))
    }

    /// Rows of a table by what an anchor gives in them.
    fn sorted(&self, anchor: &ClassExpr, (table, number): (&'b Table, u32), rows: Picked<'b>) -> Sorted<'b> {
        match self.step(anchor, number) {
            Some(step) => Sorted::of(&step, rows),
            None => Sorted { table, number, cases: vec![(nothing_asked(), rows)], are_all: true },
        }
    }

    /// Visits rows of a table by what an anchor gives in them.
    pub fn each_case(&self, anchor: &ClassExpr, number: u32, rows: Picked<'b>, visit: Visit<'_, 'b>) -> Result<(), QueryError> {
        match self.step(anchor, number) {
            Some(step) => step.each_case(rows, visit),
            None => visit(nothing_asked(), rows),
        }
    }

    /// An anchor whose variable has paths, in a table.
    fn step(&self, anchor: &ClassExpr, number: u32) -> Option<StepIn<'p, 'p, 'b>> {
        self.expander(self.view()).step(self.trie_of(anchor)?, number, Start::Item(0))
    }

    /// Tells by class and node id which tables an anchor may bind fragments of.
    pub fn may_pass(&self, anchor: &'p ClassExpr) -> impl Fn(&Table) -> bool {
        let known = |predicate: &Predicate| self.batch.root_ids().map(|id| may_hold(predicate, Some(id), self.plan.exact)).collect();
        let known: Vec<bool> = anchor.predicate.as_ref().map_or(Vec::new(), known);
        move |table| table.root_id().is_none_or(|id| known.get(id as usize) != Some(&false)) && table.shape().class().is_a(anchor.class)
    }

    /// Whether the fragments of a table pass what an anchor asks of its node; `None` where they differ.
    fn root_passes(&self, anchor: &ClassExpr, number: u32, table: &Table) -> Option<bool> {
        let Some(predicate) = &anchor.predicate else { return Some(true) };
        self.plan.facts.of(table.shape()).passes(anchor.variable, || {
            let differs = Cell::new(false);
            let root = Node::root(Fragment { table: number, row: 0 });
            let first = Tester { plan: self.plan, view: self.view().watched(&differs) }.holds(predicate, root);
            (!differs.get()).then_some(first)
        })
    }

    /// The parts of the runs that rows go over, when they are all of their fragments, all are of one step, and what has them gives
    /// no cell: then nobody needs to ask which part is whose, but for the few that give no row.
    pub fn runs(&self, trie: &Trie, wholes: &[Sorted<'b>], scope: &Scope<'b>) -> Option<Runs<'b>> {
        let cases = || wholes.iter().flat_map(|sorted| sorted.cases.iter().map(move |(case, _)| (sorted, case)));
        let only_case = cases().map(|(_, case)| case).find(|case| over_run(case).is_some())?;
        let only = over_run(only_case)?;
        let mut over: Vec<(u32, u32)> = Vec::new();
        for (sorted, run) in cases().filter_map(|(sorted, case)| Some((sorted, over_run(case)?))) {
            if !run.with.is_empty() || !sorted.are_all || (run.step, run.alive) != (only.step, only.alive) || !sorted.others_lack(run.run) {
                return None;
            }
            over.push((sorted.number, run.run));
        }
        let mut parts = Vec::new();
        let mut lengths = (0, 0);
        for (number, table) in (0..).zip(self.batch.tables()).filter(|(_, table)| table.origins().iter().any(|of| over.contains(of))) {
            let rows = scope.rows(number, table);
            let sorted = Sorted::of(&self.expander(self.view()).step(trie, number, Start::in_parts(only))?, rows);
            for (case, rows) in &sorted.cases {
                let count = if case.rows()?.is_empty() { &mut lengths.1 } else { &mut lengths.0 };
                *count += rows.len();
            }
            if !table.origins().iter().all(|of| over.contains(of)) {
                return None;
            }
            parts.push(sorted);
        }
        (lengths.1 <= lengths.0 / 8).then(|| Runs { parts, only: Rc::clone(only_case) })
    }

    /// The fragments with runs of which no part gives a row: those of the parts that give none are asked.
    pub fn without(&self, trie: &Trie, runs: &Runs<'b>) -> Vec<Without> {
        let Some(only) = over_run(&runs.only) else { return Vec::new() };
        let mut wholes = Vec::new();
        for sorted in &runs.parts {
            for (_, rows) in sorted.cases.iter().filter(|(case, _)| case.rows().is_some_and(<[_]>::is_empty)) {
                wholes.extend(rows.rows().iter().filter_map(|row| self.batch.whole_of(Fragment { table: sorted.number, row: *row })));
            }
        }
        let case_of = |part: &Fragment| Some(self.expander(self.view()).step(trie, part.table, Start::in_parts(only))?.case(part.row));
        let gives = |part: &Fragment| case_of(part).is_some_and(|case| !case.rows().is_some_and(<[_]>::is_empty));
        let mut without: Vec<Without> = Vec::new();
        for whole in order::distinct(wholes) {
            let Some(case) = self.expander(self.view()).expansion(trie, Node::root(whole)) else { continue };
            let Some(run) = over_run(&case).filter(|over| !self.batch.parts(whole, over.run).iter().any(gives)) else { continue };
            match without.iter_mut().find(|(table, of, _)| *table == whole.table && over_run(of).is_some_and(|of| of.run == run.run)) {
                Some((.., rows)) => rows.push(whole.row),
                None => without.push((whole.table, Rc::clone(&case), vec![whole.row])),
            }
        }
        without
    }
}

impl Sorted<'_> {
    /// True when no row of a case that does not go over a run has that run, as far as was asked.
    fn others_lack(&self, run: u32) -> bool {
        let shape = self.table.shape();
        let mut flags = Vec::new();
        let mut at = shape.parts().get(run as usize).copied().unwrap_or(0);
        while let Some(item) = shape.item(at) {
            flags.extend(item.flag);
            if at == 0 {
                break;
            }
            at = item.parent;
        }
        let lacks = |case: &Case| case.asked.iter().any(|(flag, stands)| !stands && flags.contains(flag));
        self.cases.iter().all(|(case, _)| over_run(case).is_some_and(|of| of.run == run) || lacks(case))
    }
}

/// The case of all fragments, where no path asks for anything.
fn nothing_asked() -> Rc<Case> {
    Rc::new(Case { asked: Vec::new(), expansion: Expansion::Rows(vec![Rc::new([])]) })
}

/// The run that rows go over.
pub(super) fn over_run(case: &Case) -> Option<&OverRun> {
    match &case.expansion {
        Expansion::Run(of) => Some(of),
        _ => None,
    }
}
