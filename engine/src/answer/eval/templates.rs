//! Row templates: what a query makes of a case of fragments, found once and used for all of them.
//!
//! Population queries whose FROM names entries of a document (`… COMPOSITION c CONTAINS OBSERVATION o`, or several of them
//! by AND) need no walk per document. Each entry class is an *anchor*: its tables are found by shape, its paths are
//! expanded once for all fragments of a table that have the same of the items on the way, past one run of parts where there is
//! one, and conditions on it are tested column by column. Where more decides, fragments are walked one by one. What passes is
//! folded where only aggregates are asked for, else joined by document and put into document order.

use super::anchors::{Anchors, Conjunct};
use super::block::{Block, Over, Whole, set_cells};
use super::condition::Judge;
use super::expand::{Expander, Product, Rows, Start};
use super::fill::Filling;
use super::first::First;
use super::node::{Node, View};
use super::output::Output;
use super::picked::Picked;
use super::predicate::Tester;
use super::scope::{Scope, table_of};
use super::strategy::ExecutionPath;
use super::survey::{Sorted, over_run};
use super::work::{ROW, STEP, Work};
use super::{Budget, CHECKED, QueryError};
use crate::answer::facts::{Case, Cells, Expansion, OverRun};
use crate::answer::plan::{PathSet, Plan};
use crate::answer::query::{ClassExpr, Predicate};
use crate::answer::trie::Trie;
use crate::document::{Batch, Doc, Fragment, Table};
use crate::order;
use crate::rm::class::Cls;
use hashbrown::HashMap;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// About so many rows are looked at together: what is known of them stays near the processor.
const PIECE: usize = 1 << 12;

/// Rows of one fragment, above which they are counted before they are made.
const MANY: usize = 16;

/// So many rows may go by until the host is asked whether to go on.
const PATIENCE: usize = 1 << 16;

/// Evaluates one plan over one batch by templates.
pub(super) struct ByTemplate<'p, 'b> {
    pub plan: &'p Plan,
    pub anchors: &'p Anchors<'p>,
    pub batch: &'b Batch,
    pub now: &'p str,
    pub budget: Budget,
    pub stopped: &'p dyn Fn() -> bool,
    /// Of a population the documents with these numbers.
    pub slice: Range<u32>,
    pub work: &'b Work,
    /// The units that were spent before.
    pub begun_at: u64,
}

/// Why an evaluation by templates was given up.
pub(super) enum Broken {
    /// The documents have more than one piece of work may take. Nothing was given to the output.
    Heavy,
    Failed(QueryError),
}

impl From<QueryError> for Broken {
    fn from(failure: QueryError) -> Broken {
        Broken::Failed(failure)
    }
}

/// Units of work that a document may have on an average before its documents are evaluated in smaller pieces.
const UNITS_OF_DOCUMENT: u64 = 1 << 14;

/// Fragments that give the same rows, ready to be tested.
struct Ready<'b> {
    number: u32,
    case: Rc<Case>,
    rows: Picked<'b>,
    over: Over,
}

/// Where the rows of an anchor go.
enum Sink<'o, 'b> {
    /// To the join.
    Hits(Hits),
    /// Into the aggregates.
    Fold(&'o mut Output),
    /// Out, to be put in order.
    Sort(&'o mut Output),
    /// Out.
    Fill(Filling<'o, 'b>),
}

/// The passing rows of one anchor.
struct Hits {
    rows: Vec<Hit>,
    nodes: Vec<Node>,
    width: usize,
}

/// A row: the place of its fragment, its order there, its document, and where its nodes begin.
type Hit = (u32, u64, u32, u32);

/// An anchor at work.
struct Search<'s, 'p, 'b> {
    trie: Option<&'p Trie>,
    conjuncts: &'s [Conjunct<'p>],
    scratch: Vec<Node>,
    /// What was done since the host was last asked whether to go on, in rows.
    done: usize,
    /// What leaves rows out that cannot be among the first.
    first: Option<First<'b>>,
    /// What is given once all is known.
    ready: Vec<Ready<'b>>,
    /// Fragments with runs of which no part gives a row, which have one row without them.
    without: Vec<(u32, Rc<Case>, Vec<u32>)>,
    /// The passing rows of fragments that were walked.
    walked: Hits,
    /// Of a costly query: what passed, not given to the sink yet.
    tested: Vec<Block<'b>>,
    /// The tables with parts elsewhere.
    wholes: Vec<(u32, Rc<Case>)>,
    /// Their parts, together by the step that these are instances of.
    steps: Vec<PartsOfStep>,
}

/// The parts that are instances of one step.
struct PartsOfStep {
    step: usize,
    alive: PathSet,
    /// The numbers of those in each table.
    by_table: HashMap<u32, Vec<usize>>,
    parts: Vec<Parts>,
}

/// The parts in one table that are of one case, each with the number of its whole and the row in that one's table.
struct Parts {
    table: u32,
    case: Rc<Case>,
    rows: Vec<u32>,
    of: Vec<(u32, u32)>,
}

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// Gives every passing row to the output.
    pub fn run(&self, output: &mut Output) -> Result<(), Broken> {
        let (per_anchor, rest_is_true) = self.anchors.split(self.plan);
        let mut scope = self.scope();
        if let ([anchor], [conjuncts]) = (self.anchors.entries.as_slice(), per_anchor.as_slice())
            && rest_is_true
        {
            let query = &self.plan.query;
            let is_alone = self.plan.tries.iter().all(|t| t.variable == anchor.variable);
            let folds = output.folds(query);
            if is_alone && (folds || !query.order.is_empty()) {
                let mut sink = if folds { Sink::Fold(output) } else { Sink::Sort(output) };
                self.search(anchor, conjuncts, &scope, First::of(query, anchor.variable), &mut sink)?;
                output.took(u64::from(self.batch.places()));
                return Ok(());
            }
            if let Some(filling) = self.filling(anchor, &scope, output) {
                let mut sink = Sink::Fill(filling);
                self.search(anchor, conjuncts, &scope, None, &mut sink)?;
                if let Sink::Fill(filling) = sink {
                    filling.finish();
                }
                return Ok(());
            }
        }
        let mut found: Vec<(usize, Hits)> = Vec::new();
        for at in most_asked_first(&per_anchor) {
            let (Some(anchor), Some(conjuncts)) = (self.anchors.entries.get(at), per_anchor.get(at)) else { continue };
            let mut sink = Sink::Hits(Hits::new(self.plan.width));
            let first = First::of(&self.plan.query, anchor.variable).filter(|_| rest_is_true && per_anchor.len() == 1);
            self.search(anchor, conjuncts, &scope, first, &mut sink)?;
            if let Sink::Hits(mut hits) = sink {
                hits.rows.sort_unstable();
                if found.len() + 1 < per_anchor.len() {
                    scope.narrow(hits.rows.iter().map(|(.., doc, _)| *doc));
                }
                found.push((at, hits));
            }
        }
        order::sort_by_key(&mut found, |(at, _)| *at);
        let hits: Vec<Hits> = found.into_iter().map(|(_, hits)| hits).collect();
        self.join(&hits, rest_is_true, output)
    }

    pub fn view(&self) -> View<'b> {
        View::new(self.batch).counting(self.work)
    }

    fn judge(&self) -> Judge<'p, 'b> {
        Judge { plan: self.plan, view: self.view(), now: self.now }
    }

    pub fn expander<'v>(&self, view: View<'v>) -> Expander<'p, 'v> {
        Expander { plan: self.plan, view, most: self.budget.rows_of_variable(self.plan), plain: false }
    }

    pub fn trie_of(&self, expr: &ClassExpr) -> Option<&'p Trie> {
        self.plan.tries.iter().find(|t| t.variable == expr.variable)
    }

    /// Gives the rows of one anchor that pass its own conditions to a sink. First all is found, then it is given: where it is too much
    /// for one piece of work, nothing of it.
    fn search(
        &self,
        anchor: &'p ClassExpr,
        conjuncts: &[Conjunct<'p>],
        scope: &Scope<'b>,
        first: Option<First<'b>>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Broken> {
        let mut search = Search {
            trie: self.trie_of(anchor),
            conjuncts,
            scratch: vec![Node::NONE; self.plan.width],
            done: 0,
            first,
            ready: Vec::new(),
            without: Vec::new(),
            walked: Hits::new(self.plan.width),
            tested: Vec::new(),
            wholes: Vec::new(),
            steps: Vec::new(),
        };
        match scope {
            Scope::Flagged(..) => self.find_all(&mut search, anchor, scope)?,
            Scope::Chosen(chosen) => self.find_chosen(&mut search, anchor, chosen)?,
        }
        self.bear(search.rows())?;
        self.give_found(&mut search, sink)?;
        let mut held = search.first.take().into_iter().flat_map(First::release);
        Ok(held.try_for_each(|block| self.pass(&mut search, &block, sink))?)
    }

    /// Whether so many rows can be made in one piece of work.
    fn bear(&self, rows: u64) -> Result<(), Broken> {
        let units = rows.saturating_mul(ROW);
        let most = self.work.piece().max(UNITS_OF_DOCUMENT.saturating_mul(self.slice.len() as u64));
        self.work.check()?;
        if units > most { Err(Broken::Heavy) } else { Ok(()) }
    }

    /// Whether a costly query spends no more in this slice than a piece of work may take, with `units` that are still to be spent.
    fn bear_costs(&self, units: u64) -> Result<(), Broken> {
        let spent = self.work.spent().saturating_sub(self.begun_at).saturating_add(units);
        if self.plan.costly && spent > self.work.piece().saturating_mul(2) { Err(Broken::Heavy) } else { Ok(()) }
    }

    /// Finds what may pass of a population; the parts of runs apart from what has them, where nobody needs to ask which is whose.
    fn find_all(&self, search: &mut Search<'_, 'p, 'b>, anchor: &'p ClassExpr, scope: &Scope<'b>) -> Result<(), Broken> {
        let found = self.sorted_tables(anchor, scope, &mut search.done)?;
        // Where anchors may stand in one another, parts of one may stand among the rows of another.
        let apart = search.trie.filter(|_| !anchor.class.may_contain(anchor.class));
        let runs = apart.and_then(|trie| Some((trie, self.runs(trie, &found, scope)?)));
        for Sorted { table, number, cases, .. } in found {
            let mut cases = cases.into_iter().filter(|(case, _)| runs.is_none() || over_run(case).is_none());
            cases.try_for_each(|(case, rows)| self.find_case(search, (table, number), case, rows))?;
        }
        if let Some((trie, runs)) = &runs {
            search.without.extend(self.without(trie, runs));
        }
        for Sorted { number, cases, .. } in runs.into_iter().flat_map(|(_, runs)| runs.parts) {
            search.ready.extend(cases.into_iter().map(|(case, rows)| Ready { number, case, rows, over: Over::Unasked }));
        }
        Ok(())
    }

    /// Finds what may pass of some fragments.
    fn find_chosen(&self, search: &mut Search<'_, 'p, 'b>, anchor: &'p ClassExpr, chosen: &[u64]) -> Result<(), Broken> {
        let may_pass = self.may_pass(anchor);
        for same in chosen.chunk_by(|a, b| table_of(*a) == table_of(*b)) {
            let number = same.first().map_or(u32::MAX, |fragment| table_of(*fragment));
            let Some(table) = self.batch.table(number).filter(|table| may_pass(table)) else { continue };
            let rows = Picked::These(same.iter().map(|fragment| *fragment as u32).collect());
            let Some(rows) = self.bound(anchor, (table, number), rows, &mut search.done)? else { continue };
            let mut cases = Vec::with_capacity(1);
            self.each_case(anchor, number, rows, &mut |case, rows| {
                cases.push((case, rows));
                Ok(())
            })?;
            cases.into_iter().try_for_each(|(case, rows)| self.find_case(search, (table, number), case, rows))?;
        }
        Ok(())
    }

    /// Finds what may pass of rows of a case.
    fn find_case(&self, search: &mut Search<'_, 'p, 'b>, (table, number): (&'b Table, u32), case: Rc<Case>, rows: Picked<'b>) -> Result<(), Broken> {
        self.go_on(&mut search.done, rows.len())?;
        match (&case.expansion, search.trie) {
            (Expansion::Run(over), Some(trie)) => {
                let (without, walked) = self.collect_parts(search, trie, over, number, &rows);
                walked.into_iter().try_for_each(|row| self.walk(search, trie, (table, number), row))?;
                search.without.push((number, Rc::clone(&case), without));
                search.wholes.push((number, case));
                Ok(())
            }
            (Expansion::Walk, Some(trie)) => rows.rows().iter().try_for_each(|row| self.walk(search, trie, (table, number), *row)),
            _ => {
                search.ready.push(Ready { number, case, rows, over: Over::Nothing });
                Ok(())
            }
        }
    }

    /// Gives what passes of all that was found.
    fn give_found(&self, search: &mut Search<'_, 'p, 'b>, sink: &mut Sink<'_, 'b>) -> Result<(), Broken> {
        for Ready { number, case, rows, over } in std::mem::take(&mut search.ready) {
            self.give_pieces(search, &case, (number, rows, over), sink)?;
        }
        for (number, case, rows) in std::mem::take(&mut search.without) {
            let (Some(table), Some(over)) = (self.batch.table(number), over_run(&case)) else { continue };
            let (cells, rows) = (Rc::clone(&over.without), Picked::These(rows));
            if !rows.is_empty() {
                self.work.taken.note(ExecutionPath::ParentRowsAlone);
            }
            self.give(search, Block { table, number, cells, rows, order: 0, over: Over::Nothing }, sink)?;
        }
        self.give_parts(search, sink)?;
        let tested = std::mem::take(&mut search.tested);
        let rows = tested.iter().map(|block| block.rows.len()).sum::<usize>() + search.walked.rows.len();
        self.bear_costs((rows as u64).saturating_mul(ROW).saturating_mul(self.plan.query.select.len() as u64))?;
        tested.iter().try_for_each(|block| self.pass(search, block, sink))?;
        Ok(self.give_walked(search, sink)?)
    }

    /// Gives what passes of rows that all give the same, so many at a time.
    fn give_pieces(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        case: &Case,
        (number, rows, over): (u32, Picked<'b>, Over),
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Broken> {
        let templates = case.rows().unwrap_or_default();
        if rows.len() <= PIECE {
            return self.give_each(search, templates, (number, rows, over), sink);
        }
        rows.pieces(PIECE).into_iter().try_for_each(|rows| self.give_each(search, templates, (number, rows, over.clone()), sink))
    }

    /// Gives a block for each row of a template.
    fn give_each(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        templates: &[Cells],
        (number, rows, over): (u32, Picked<'b>, Over),
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Broken> {
        let (Some(table), Some((last, others))) = (self.batch.table(number), templates.split_last()) else { return Ok(()) };
        for (order, cells) in (0..).zip(others) {
            self.give(search, Block { table, number, cells: Rc::clone(cells), rows: rows.clone(), order, over: over.clone() }, sink)?;
        }
        self.give(search, Block { table, number, cells: Rc::clone(last), rows, order: others.len() as u32, over }, sink)
    }

    /// Lays the parts of fragments to those of their cases; gives the fragments none of whose parts gives rows, and those that
    /// must be walked.
    fn collect_parts(&self, search: &mut Search<'_, 'p, 'b>, trie: &Trie, over: &OverRun, number: u32, rows: &Picked<'_>) -> (Vec<u32>, Vec<u32>) {
        let whole = search.wholes.len() as u32;
        let (mut without, mut walked, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let Some(step) = search.parts_of(over) else { return (without, walked) };
        for row in rows.rows().iter().copied() {
            let parts = self.batch.parts(Fragment { table: number, row }, over.run);
            found.clear();
            found.extend(parts.iter().filter_map(|part| step.case_of(self, trie, over, *part)));
            let gives = |at: &usize| step.parts.get(*at).and_then(|parts| parts.case.rows()).map(|rows| !rows.is_empty());
            if found.len() < parts.len() || found.iter().any(|at| gives(at).is_none()) {
                walked.push(row);
            } else if !found.iter().any(|at| gives(at) == Some(true)) {
                without.push(row);
            } else {
                found.iter().zip(parts).for_each(|(at, part)| step.collect(*at, *part, (whole, row)));
            }
        }
        (without, walked)
    }

    fn give_parts(&self, search: &mut Search<'_, 'p, 'b>, sink: &mut Sink<'_, 'b>) -> Result<(), Broken> {
        if search.steps.is_empty() {
            return Ok(());
        }
        let wholes = std::mem::take(&mut search.wholes);
        let wholes: Rc<[Whole]> =
            wholes.iter().filter_map(|(number, case)| Some(Whole { number: *number, cells: Rc::clone(&over_run(case)?.with) })).collect();
        for Parts { table: number, case, rows, of } in std::mem::take(&mut search.steps).into_iter().flat_map(|step| step.parts) {
            let over = Over::Known { wholes: Rc::clone(&wholes), of };
            self.give_each(search, case.rows().unwrap_or_default(), (number, Picked::These(rows), over), sink)?;
        }
        Ok(())
    }

    /// Gives what passes of a block; later, where only the first rows are wanted, or where the query is costly.
    fn give(&self, search: &mut Search<'_, 'p, 'b>, mut block: Block<'b>, sink: &mut Sink<'_, 'b>) -> Result<(), Broken> {
        self.go_on(&mut search.done, block.rows.len())?;
        // Once for a block: each column that is tested or shown is read once for each row.
        self.work.add(block.rows.len() as u64 * (1 + search.conjuncts.len() + self.plan.query.select.len()) as u64);
        let Search { conjuncts, scratch, done, .. } = &mut *search;
        for conjunct in *conjuncts {
            block.retain(conjunct, self.judge(), scratch, &mut || {
                self.bear_costs(0)?;
                Ok(self.go_on(done, 0)?)
            })?;
        }
        let block = if let Some(first) = &mut search.first { first.hold(block, &self.work.taken) } else { Some(block) };
        match block {
            Some(block) if self.plan.costly => search.tested.push(block),
            Some(block) => self.pass(search, &block, sink)?,
            None => {}
        }
        Ok(())
    }

    /// Gives the rows of a block to a sink.
    fn pass(&self, search: &mut Search<'_, 'p, 'b>, block: &Block<'b>, sink: &mut Sink<'_, 'b>) -> Result<(), QueryError> {
        if block.rows.is_empty() {
            return Ok(());
        }
        self.note(sink, &block.over);
        if !block.is_sound(self.plan.width) {
            self.work.broken.set(Some("a block of rows does not fit its table"));
            return Ok(());
        }
        match sink {
            Sink::Fold(output) => {
                output.fold(self.judge(), block, &mut search.scratch);
                self.budget.check(output.len(), output.bytes())?;
            }
            Sink::Sort(output) => {
                output.reserve(self.plan, block.rows.len());
                for i in 0..block.rows.len() {
                    block.fill(i, &mut search.scratch);
                    output.take_at(self.judge(), &search.scratch, block.place(i));
                }
                self.budget.check(output.len(), output.bytes())?;
            }
            Sink::Fill(filling) => {
                filling.take(block, &mut search.scratch);
                self.budget.check(filling.len(), filling.bytes())?;
            }
            Sink::Hits(hits) => {
                hits.reserve(block.rows.len());
                for i in 0..block.rows.len() {
                    block.fill(i, &mut search.scratch);
                    hits.push(block.place(i), block.doc(i), &search.scratch);
                }
                self.budget.check(hits.rows.len(), hits.bytes())?;
            }
        }
        Ok(())
    }

    /// Notes where the rows of a block go, and what they are rows of.
    fn note(&self, sink: &Sink<'_, 'b>, over: &Over) {
        let taken = &self.work.taken;
        taken.note(match sink {
            Sink::Fold(_) => ExecutionPath::Fold,
            Sink::Sort(_) => ExecutionPath::Sort,
            Sink::Fill(_) if self.plan.query.distinct => ExecutionPath::FillDistinct,
            Sink::Fill(_) => ExecutionPath::Fill,
            Sink::Hits(_) => ExecutionPath::Join,
        });
        match over {
            Over::Nothing => {}
            Over::Unasked => taken.note(ExecutionPath::ChildRowsAlone),
            Over::Known { .. } => taken.note(ExecutionPath::ChildRows),
        }
    }

    /// Asks the host now and then whether to go on.
    pub fn go_on(&self, done: &mut usize, rows: usize) -> Result<(), QueryError> {
        *done += rows + 16;
        if *done < PATIENCE {
            return Ok(());
        }
        *done = 0;
        self.work.check()?;
        if (self.stopped)() { Err(QueryError::Stopped) } else { Ok(()) }
    }

    /// Finds what passes of one fragment's rows.
    fn walk(&self, search: &mut Search<'_, 'p, 'b>, trie: &'p Trie, (table, number): (&Table, u32), row: u32) -> Result<(), Broken> {
        self.go_on(&mut search.done, 0)?;
        self.work.taken.note(ExecutionPath::WalkedFragments);
        let judge = self.judge();
        let at = |values: &[u32]| values.get(row as usize).copied().unwrap_or(u32::MAX);
        let (place, doc) = (at(table.places()), at(table.docs()));
        let rows = self.walked(trie, Node::root(Fragment { table: number, row }))?;
        self.work.add(STEP * rows.len() as u64);
        for (order, row) in (0..).zip(rows.iter()) {
            self.go_on(&mut search.done, 0)?;
            let passes = |c: &Conjunct<'p>| judge.truth(c.condition, row, &mut c.exists.clone()) == Some(true);
            if search.conjuncts.iter().all(passes) {
                search.walked.push((place, order), doc, row);
            }
        }
        self.bear(search.walked.rows.len() as u64)
    }

    /// Gives the rows of fragments that were walked to a sink.
    fn give_walked(&self, search: &mut Search<'_, 'p, 'b>, sink: &mut Sink<'_, 'b>) -> Result<(), QueryError> {
        let judge = self.judge();
        let walked = std::mem::replace(&mut search.walked, Hits::new(self.plan.width));
        self.work.add(ROW * walked.rows.len() as u64);
        for (i, (place, order, doc, _)) in walked.rows.iter().enumerate() {
            let row = walked.nodes_of(i).unwrap_or_default();
            match sink {
                Sink::Fold(output) => output.fold_row(judge, row, (*place, *order)),
                Sink::Sort(output) => output.take_at(judge, row, (*place, *order)),
                Sink::Fill(filling) => filling.take_row(row, *place, *doc),
                Sink::Hits(hits) => hits.push((*place, *order), *doc, row),
            }
        }
        match sink {
            Sink::Hits(hits) => self.budget.check(hits.rows.len(), hits.bytes()),
            Sink::Fold(output) | Sink::Sort(output) => self.budget.check(output.len(), output.bytes()),
            Sink::Fill(filling) => self.budget.check(filling.len(), filling.bytes()),
        }
    }

    /// The rows of one variable, if they are not too many.
    fn walked(&self, trie: &Trie, node: Node) -> Result<Rows, QueryError> {
        let expander = self.expander(self.view());
        let rows = expander.walked(trie, node);
        if rows.len() > expander.most { Err(QueryError::TooManyCombinations(expander.most)) } else { Ok(rows) }
    }

    /// Joins within each document: every choice of one fragment an anchor, in document order, gives the product of the rows
    /// of all variables.
    fn join(&self, hits: &[Hits], rest_is_true: bool, output: &mut Output) -> Result<(), Broken> {
        let mut join = Join { hits, rest_is_true, above: self.above(), doc: None, row: vec![Node::NONE; self.plan.width], done: 0 };
        if let [only] = hits {
            let mut at = 0;
            output.reserve(self.plan, only.rows.len());
            while let Some((.., doc, _)) = only.rows.get(at) {
                let range = only.fragment_at(at);
                at = range.end;
                self.choose(&mut join, *doc, &[range], output)?;
            }
            return Ok(());
        }
        let Some(fewest) = hits.iter().min_by_key(|hits| hits.rows.len()) else { return Ok(()) };
        self.bear(joined(hits, fewest))?;
        let mut starts = vec![0; hits.len()];
        let mut fragments = vec![Vec::new(); hits.len()];
        let mut choice = Vec::with_capacity(hits.len());
        for doc in fewest.documents() {
            for ((hits, start), fragments) in hits.iter().zip(&mut starts).zip(&mut fragments) {
                hits.fragments_of(doc, start, fragments);
            }
            for number in 0..fragments.iter().map(Vec::len).product() {
                choose_from(&fragments, number, &mut choice);
                self.choose(&mut join, doc, &choice, output)?;
            }
        }
        Ok(())
    }

    /// Gives the rows of a choice of one fragment an anchor.
    fn choose(&self, join: &mut Join<'_, 'p>, doc: u32, chosen: &[Range<usize>], output: &mut Output) -> Result<(), Broken> {
        self.go_on(&mut join.done, 0)?;
        self.work.add(ROW);
        if join.doc != Some(doc) {
            self.whole_rows(doc, &mut join.above)?;
            join.doc = Some(doc);
        }
        let judge = self.judge();
        if join.one_row(chosen) {
            if join.rest_is_true || judge.keeps(&join.row) {
                output.take(judge, &join.row, None);
            }
            return Ok(output.within(self.plan, &self.budget)?);
        }
        let product = self.product(join.hits, chosen, &join.above)?;
        for number in 0..product.len() {
            self.go_on(&mut join.done, 0)?;
            self.work.add(ROW);
            product.fill(number, &mut join.row);
            if join.rest_is_true || judge.keeps(&join.row) {
                output.take(judge, &join.row, None);
            }
            if number % CHECKED == CHECKED - 1 {
                output.within(self.plan, &self.budget)?;
            }
        }
        Ok(output.within(self.plan, &self.budget)?)
    }

    /// The product of the rows of all variables, in order of their first use.
    fn product(&self, hits: &[Hits], chosen: &[Range<usize>], above: &[Above<'p>]) -> Result<Product, QueryError> {
        let mut product = Product::new(self.plan.width);
        let most = self.budget.rows_of_variable(self.plan);
        for trie in &self.plan.tries {
            let anchor = self.anchors.entries.iter().position(|e| e.variable == trie.variable);
            match anchor.and_then(|a| hits.get(a).zip(chosen.get(a))) {
                Some((hits, range)) => product.add(Rows::of(range.clone().filter_map(|i| hits.nodes_of(i)), self.plan.width)),
                None => {
                    let of_variable = above.iter().find(|of| of.trie.variable == trie.variable);
                    product.add(of_variable.map_or_else(|| Rows::none(self.plan.width), |of| of.rows(self.plan.width)));
                }
            }
        }
        if product.widest() > most { Err(QueryError::TooManyCombinations(most)) } else { Ok(product) }
    }

    /// The class expressions above the anchors whose variables have paths.
    fn above(&self) -> Vec<Above<'p>> {
        let above = self.anchors.above.iter().filter(|e| !self.anchors.entries.iter().any(|a| a.variable == e.variable));
        above.filter_map(|expr| Some(Above { class: expr.class, trie: self.trie_of(expr)?, fragment: None, rows: WholeRows::Nothing })).collect()
    }

    /// Finds the rows that EHR, VERSION and COMPOSITION give for a document; what holds for a whole shape is not looked up again.
    fn whole_rows(&self, doc: u32, above: &mut [Above<'p>]) -> Result<(), QueryError> {
        for of in above {
            let fragment = self.batch.bound(of.class, doc);
            let before = std::mem::replace(&mut of.fragment, fragment);
            let Some(fragment) = fragment else {
                of.rows = WholeRows::Nothing;
                continue;
            };
            let is_same = |case: &Case| self.batch.table(fragment.table).is_some_and(|table| case.is_of(table, fragment.row));
            let in_same = before.is_some_and(|before| before.table == fragment.table);
            if matches!(&of.rows, WholeRows::Same(case) if in_same && is_same(case)) {
                continue;
            }
            of.rows = match self.expander(self.view()).expansion(of.trie, Node::root(fragment)) {
                Some(known) if known.rows().is_some() => WholeRows::Same(known),
                _ => WholeRows::Own(self.walked(of.trie, Node::root(fragment))?),
            };
        }
        Ok(())
    }

    /// What takes part.
    fn scope(&self) -> Scope<'b> {
        let is_anchor = |expr: &ClassExpr| self.anchors.entries.iter().any(|a| a.variable == expr.variable);
        let decides = |e: &&&ClassExpr| !is_anchor(e) && (e.predicate.is_some() || !matches!(e.class, Cls::EHR | Cls::VERSION | Cls::COMPOSITION));
        let deciding = self.anchors.above.iter().filter(decides).copied();
        let (of_ehr, of_doc): (Vec<&ClassExpr>, Vec<&ClassExpr>) = deciding.partition(|e| e.class == Cls::EHR);
        let (mut known, mut last) = (HashMap::new(), None);
        let mut passes = |doc: Doc| {
            let mut all = |exprs: &[&ClassExpr]| exprs.iter().all(|expr| self.passes(expr, doc.document, &mut known));
            let ehr_passes = match last {
                Some((ehr, passes)) if ehr == doc.ehr => passes,
                _ => all(&of_ehr),
            };
            last = Some((doc.ehr, ehr_passes));
            ehr_passes && all(&of_doc)
        };
        let decides = !of_ehr.is_empty() || !of_doc.is_empty();
        if of_doc.is_empty()
            && decides
            && let Some(documents) = Scope::documents(self.plan, self.batch)
        {
            // All are of one EHR, which is asked once.
            let passes = documents.first().and_then(|document| self.batch.doc(*document)).is_some_and(passes);
            return if passes { Scope::of(self.plan, self.anchors, self.batch, self.slice.clone(), None) } else { Scope::Chosen(Vec::new()) };
        }
        Scope::of(self.plan, self.anchors, self.batch, self.slice.clone(), if decides { Some(&mut passes) } else { None })
    }

    /// Whether a document passes what a class expression above the anchors asks; asked once an EHR, once a shape where it decides.
    fn passes(&self, expr: &ClassExpr, doc: u32, known: &mut HashMap<(usize, Fragment), bool>) -> bool {
        let fragment = self.batch.bound(expr.class, doc);
        let Some((fragment, table)) = fragment.and_then(|f| Some((f, self.batch.table(f.table)?))) else { return false };
        let holds = |view: View<'_>| {
            let tester = Tester { plan: self.plan, view };
            view.class(Node::root(fragment)).is_a(expr.class)
                && expr.predicate.as_ref().is_none_or(|p: &Predicate| tester.holds(p, Node::root(fragment)))
        };
        let by_shape = self.plan.facts.of(table.shape()).passes(expr.variable, || {
            let differs = Cell::new(false);
            let first = holds(self.view().watched(&differs));
            (!differs.get()).then_some(first)
        });
        by_shape.unwrap_or_else(|| *known.entry((expr.variable, fragment)).or_insert_with(|| holds(self.view())))
    }
}

/// A variable above the anchors, and what it gives for one document.
struct Above<'p> {
    class: Cls,
    trie: &'p Trie,
    fragment: Option<Fragment>,
    rows: WholeRows,
}

enum WholeRows {
    Nothing,
    /// Those of every fragment of a case.
    Same(Rc<Case>),
    /// Found for this fragment.
    Own(Rows),
}

impl Above<'_> {
    /// The templates of its rows and the fragment that fills them, where every fragment of the case has the same.
    fn templates(&self) -> Option<(&[Cells], Fragment)> {
        match &self.rows {
            WholeRows::Same(case) => Some((case.rows()?, self.fragment?)),
            _ => None,
        }
    }

    fn rows(&self, width: usize) -> Rows {
        match (self.templates(), &self.rows) {
            (Some((rows, fragment)), _) => Rows::of_template(rows, fragment, width),
            (None, WholeRows::Own(rows)) => Rows::of(rows.iter(), width),
            (None, _) => Rows::none(width),
        }
    }
}

/// How many rows the join of some anchors has, document by document.
fn joined(hits: &[Hits], fewest: &Hits) -> u64 {
    let mut starts = vec![0; hits.len()];
    let of_document = |doc: u32, starts: &mut Vec<usize>| {
        let each = hits.iter().zip(starts).map(|(hits, start)| hits.rows_of(doc, start) as u64);
        each.fold(1, u64::saturating_mul)
    };
    fewest.documents().map(|doc| of_document(doc, &mut starts)).fold(0, u64::saturating_add)
}

impl Search<'_, '_, '_> {
    /// How many rows there are, before they are tested.
    fn rows(&self) -> u64 {
        let of = |case: &Case, rows: usize| (case.rows().map_or(0, <[Cells]>::len) as u64).saturating_mul(rows as u64);
        // One row of each fragment is what columns are for: only what is multiplied is counted.
        let ready = self.ready.iter().filter(|ready| ready.case.rows().is_some_and(|rows| rows.len() > MANY));
        let ready = ready.map(|ready| of(&ready.case, ready.rows.len()));
        let parts = self.steps.iter().flat_map(|step| &step.parts).map(|parts| of(&parts.case, parts.rows.len()));
        ready.chain(parts).fold(self.walked.rows.len() as u64, u64::saturating_add)
    }

    /// The parts of the step that a run leads to.
    fn parts_of(&mut self, over: &OverRun) -> Option<&mut PartsOfStep> {
        let at = self.steps.iter().position(|s| (s.step, s.alive) == (over.step, over.alive)).unwrap_or_else(|| {
            self.steps.push(PartsOfStep { step: over.step, alive: over.alive, by_table: HashMap::new(), parts: Vec::new() });
            self.steps.len() - 1
        });
        self.steps.get_mut(at)
    }
}

impl PartsOfStep {
    /// The number of the parts that are of the same case as one.
    fn case_of(&mut self, by: &ByTemplate<'_, '_>, trie: &Trie, over: &OverRun, part: Fragment) -> Option<usize> {
        let table = by.batch.table(part.table)?;
        let of_table = self.by_table.entry(part.table).or_default();
        let is_same = |at: &&usize| self.parts.get(**at).is_some_and(|parts| parts.case.is_of(table, part.row));
        if let Some(at) = of_table.iter().find(is_same) {
            return Some(*at);
        }
        let case = by.expander(by.view()).step(trie, part.table, Start::in_parts(over))?.case(part.row);
        of_table.push(self.parts.len());
        self.parts.push(Parts { table: part.table, case, rows: Vec::new(), of: Vec::new() });
        Some(self.parts.len() - 1)
    }

    /// Lays a part to those of its case.
    fn collect(&mut self, at: usize, part: Fragment, of: (u32, u32)) {
        if let Some(parts) = self.parts.get_mut(at) {
            parts.rows.push(part.row);
            parts.of.push(of);
        }
    }
}

/// The anchors in the order in which they are searched: those with conditions first, for they leave few documents to the others.
fn most_asked_first(per_anchor: &[Vec<Conjunct<'_>>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..per_anchor.len()).collect();
    order::sort_by_key(&mut order, |at| std::cmp::Reverse(per_anchor.get(*at).map_or(0, Vec::len)));
    order
}

/// A join at work.
struct Join<'h, 'p> {
    hits: &'h [Hits],
    rest_is_true: bool,
    above: Vec<Above<'p>>,
    /// The document that `above` tells about.
    doc: Option<u32>,
    row: Vec<Node>,
    /// What was done since the host was last asked whether to go on, in rows.
    done: usize,
}

impl Join<'_, '_> {
    /// The usual case: one row of each variable makes one row.
    fn one_row(&mut self, chosen: &[Range<usize>]) -> bool {
        self.row.fill(Node::NONE);
        for (hits, range) in self.hits.iter().zip(chosen) {
            match hits.nodes_of(range.start) {
                Some(nodes) if range.len() == 1 => merge(&mut self.row, nodes),
                _ => return false,
            }
        }
        self.above.iter().all(|of| match of.templates() {
            Some(([cells], fragment)) => {
                set_cells(&mut self.row, cells, fragment);
                true
            }
            _ => false,
        })
    }
}

/// One fragment an anchor: the choice with this number, the last anchor varying fastest.
fn choose_from(fragments: &[Vec<Range<usize>>], number: usize, choice: &mut Vec<Range<usize>>) {
    let mut rest = number;
    choice.clear();
    for of_anchor in fragments.iter().rev() {
        choice.extend(of_anchor.get(rest % of_anchor.len().max(1)).cloned());
        rest /= of_anchor.len().max(1);
    }
    choice.reverse();
}

impl Hits {
    fn new(width: usize) -> Hits {
        Hits { rows: Vec::new(), nodes: Vec::new(), width }
    }

    /// The documents that have rows, in order.
    fn documents(&self) -> impl Iterator<Item = u32> {
        self.rows.chunk_by(|a, b| a.2 == b.2).filter_map(|rows| rows.first().map(|hit| hit.2))
    }

    /// How many rows a document has; documents are asked for in order, `start` tells how far the last one went.
    fn rows_of(&self, doc: u32, start: &mut usize) -> usize {
        let rest = |start: usize| self.rows.get(start..).unwrap_or_default();
        *start += rest(*start).iter().take_while(|(.., d, _)| *d < doc).count();
        rest(*start).iter().take_while(|(.., d, _)| *d == doc).count()
    }

    fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Hit>() + self.nodes.len() * size_of::<Node>()
    }

    fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.nodes.reserve(rows * self.width);
    }

    fn push(&mut self, (place, order): (u32, u64), doc: u32, nodes: &[Node]) {
        let start = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push((place, order, doc, start));
        self.nodes.extend_from_slice(nodes);
    }

    fn nodes_of(&self, index: usize) -> Option<&[Node]> {
        let start = self.rows.get(index)?.3 as usize * self.width;
        self.nodes.get(start..start + self.width)
    }

    /// The rows of the fragment that a row is the first of.
    fn fragment_at(&self, at: usize) -> Range<usize> {
        let rest = self.rows.get(at..).unwrap_or_default();
        let place = rest.first().map(|hit| hit.0);
        at..at + rest.iter().take_while(|hit| Some(hit.0) == place).count().max(1)
    }

    /// Finds the rows of each fragment in a document; documents are asked for in order, `start` tells how far the last one went.
    fn fragments_of(&self, doc: u32, start: &mut usize, fragments: &mut Vec<Range<usize>>) {
        let rest = self.rows.get(*start..).unwrap_or_default();
        *start += rest.iter().take_while(|(.., d, _)| *d < doc).count();
        fragments.clear();
        while self.rows.get(*start).is_some_and(|(.., d, _)| *d == doc) {
            let range = self.fragment_at(*start);
            *start = range.end;
            fragments.push(range);
        }
    }
}

fn merge(row: &mut [Node], extra: &[Node]) {
    for (cell, other) in row.iter_mut().zip(extra) {
        if !other.is_none() {
            *cell = *other;
        }
    }
}
