//! Row templates: what a query makes of a layout variant of fragments, found once and used for all
//! of them.
//!
//! Population queries whose FROM names entries of a document (`… COMPOSITION c CONTAINS OBSERVATION
//! o`, or several of them by AND) need no walk per document. Each entry class is an *anchor*: its
//! tables are found by layout, its paths are expanded once for all fragments of a table that have
//! the same of the items on the way, past one repeated group if there is one, and conditions on it
//! are tested column by column. Where more decides, fragments are walked one by one. What passes is
//! folded where only aggregates are asked for, else joined by document and put into document order.

mod above;
mod anchor_rows;
mod children;
mod count_join;
mod join;
mod walk;

use super::anchor_scan::{TableVariants, Without, group_expansion};
use super::anchors::{Anchors, Conjunct};
use super::block::{Block, ParentRows};
use super::condition::ConditionEvaluator;
use super::execution_path::ExecutionPath;
use super::expand::Expander;
use super::node::{Node, View};
use super::output::Output;
use super::projection::Projection;
use super::scope::{Scope, table_of};
use super::selection::Selection;
use super::top_k::TopK;
use super::work::{ROW, Work};
use super::{Budget, QueryError};
use crate::answer::plan::Plan;
use crate::answer::plan_cache::{Cells, Expansion, LayoutVariant};
use crate::answer::query::ClassExpr;
use crate::answer::trie::Trie;
use crate::document::{Batch, Table, absent_reads};
use anchor_rows::AnchorRows;
use aqlite_rm::order;
use children::ChildrenOfStep;
use std::ops::Range;
use std::rc::Rc;

/// The approximate number of rows of a block; its working set fits the cache of the processor.
const PIECE: usize = 1 << 12;

/// Rows of one fragment, above which they are counted before they are made.
const MANY: usize = 16;

/// The number of rows after which the host is asked whether the run was cancelled.
const PATIENCE: usize = 1 << 16;

/// Evaluates one plan over one batch by templates.
pub(super) struct ByTemplate<'p, 'b> {
    pub plan: &'p Plan,
    pub anchors: &'p Anchors<'p>,
    pub batch: &'b Batch,
    /// The numbers of the EHRs that the query names, ascending.
    pub ehrs: Option<Rc<[u32]>>,
    pub now: &'p str,
    pub budget: Budget,
    pub stopped: &'p dyn Fn() -> bool,
    /// Of a population the documents with these numbers.
    pub slice: Range<u32>,
    pub work: &'b Work,
    /// The units that were spent before.
    pub begun_at: u64,
    /// The query wants any first rows: once it has them, other parts are not needed.
    pub first_only: bool,
}

/// The reason why an evaluation by row templates ended early.
pub(super) enum Abort {
    /// The documents have more than one piece of work may take. No row was given to the output.
    Heavy,
    Failed(QueryError),
}

/// An invariant that does not hold.
fn broken(what: &'static str) -> Abort {
    Abort::Failed(QueryError::Broken(what))
}

impl From<QueryError> for Abort {
    fn from(failure: QueryError) -> Abort {
        Abort::Failed(failure)
    }
}

/// Units of work that a document may have on an average before its documents are evaluated in
/// smaller pieces.
const UNITS_OF_DOCUMENT: u64 = 1 << 14;

/// Rows of one layout variant, before conditions are tested.
struct Ready<'b> {
    number: u32,
    variant: Rc<LayoutVariant>,
    rows: Selection<'b>,
    over: ParentRows,
}

/// The consumer of the rows of an anchor.
enum Sink<'o, 'b> {
    /// To the join.
    AnchorRows(AnchorRows),
    /// Into the aggregates.
    Fold(&'o mut Output),
    /// Into groups, whose keys are the values of these paths.
    Group(&'o mut Output, Vec<usize>),
    /// Out, to be put in order.
    Sort(&'o mut Output),
    /// Out.
    Fill(Projection<'o, 'b>),
}

/// An anchor at work.
struct Search<'s, 'p, 'b> {
    trie: Option<&'p Trie>,
    conjuncts: &'s [Conjunct<'p>],
    scratch: Vec<Node>,
    /// The rows since the last test for cancellation.
    done: usize,
    /// The top-k filter of a query with ORDER BY and LIMIT.
    first: Option<TopK<'b>>,
    /// The blocks whose rows are complete, in the order of output.
    ready: Vec<Ready<'b>>,
    /// Fragments with repeated groups whose child rows have no row: each has one row without them.
    without: Vec<Without>,
    /// The passing rows of fragments that were walked.
    walked: AnchorRows,
    /// Of a costly query: what passed, not given to the sink yet.
    tested: Vec<Block<'b>>,
    /// The tables with children elsewhere.
    parents: Vec<(u32, Rc<LayoutVariant>)>,
    /// Their children, together by the step that these are instances of.
    steps: Vec<ChildrenOfStep>,
}

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// Gives every passing row to the output.
    pub fn run(&self, output: &mut Output) -> Result<(), Abort> {
        let (per_anchor, rest_is_true) = self.anchors.split(self.plan);
        let scope = self.scope();
        // With one anchor that decides all of WHERE, no anchors have to be joined.
        if let ([anchor], [conjuncts]) = (self.anchors.entries.as_slice(), per_anchor.as_slice())
            && rest_is_true
            && (self.consume_rows(anchor, conjuncts, &scope, output)?
                || self.project_rows(anchor, conjuncts, &scope, output)?)
        {
            return Ok(());
        }
        // A count of pairs needs the number of rows of each document, not the rows.
        if self.count_join(&scope, output)? {
            return Ok(());
        }
        let anchor_rows = self.rows_of_anchors(&per_anchor, rest_is_true, scope)?;
        self.join(&anchor_rows, rest_is_true, output)
    }

    /// Aggregates, groups or sorts the rows of a single anchor. Returns false without effect if
    /// the query does none of these, or shows other variables too.
    fn consume_rows(
        &self,
        anchor: &'p ClassExpr,
        conjuncts: &[Conjunct<'p>],
        scope: &Scope<'b>,
        output: &mut Output,
    ) -> Result<bool, Abort> {
        let query = &self.plan.query;
        let mut tries = self.plan.tries.iter();
        let is_alone = tries.all(|t| t.variable == anchor.variable);
        let (folds, keys) = (output.folds(query), output.key_paths(query));
        let mut sink = match keys {
            _ if !is_alone => return Ok(false),
            _ if folds => Sink::Fold(output),
            Some(paths) => Sink::Group(output, paths),
            None if query.order.is_empty() => return Ok(false),
            None => Sink::Sort(output),
        };
        let first = TopK::of(query, anchor.variable);
        self.search(anchor, conjuncts, scope, first, &mut sink)?;
        output.took(u64::from(self.batch.places()));
        Ok(true)
    }

    /// Copies the cells of the rows of a single anchor from columns. Returns false without effect
    /// if the query needs more than a [`Projection`].
    fn project_rows(
        &self,
        anchor: &'p ClassExpr,
        conjuncts: &[Conjunct<'p>],
        scope: &Scope<'b>,
        output: &mut Output,
    ) -> Result<bool, Abort> {
        let Some(projection) = self.projection(anchor, scope, output) else {
            return Ok(false);
        };
        let mut sink = Sink::Fill(projection);
        self.search(anchor, conjuncts, scope, None, &mut sink)?;
        if let Sink::Fill(projection) = sink {
            projection.finish(|| self.bear_objects())?;
        }
        Ok(true)
    }

    /// Finds the rows of each anchor, in the order of FROM.
    fn rows_of_anchors(
        &self,
        per_anchor: &[Vec<Conjunct<'p>>],
        rest_is_true: bool,
        mut scope: Scope<'b>,
    ) -> Result<Vec<AnchorRows>, Abort> {
        let mut found: Vec<(usize, AnchorRows)> = Vec::new();
        for at in most_asked_first(per_anchor) {
            let (Some(anchor), Some(conjuncts)) =
                (self.anchors.entries.get(at), per_anchor.get(at))
            else {
                continue;
            };
            let mut sink = Sink::AnchorRows(AnchorRows::new(self.plan.width));
            // Rows may be excluded early only if no later condition or join removes others.
            let first = TopK::of(&self.plan.query, anchor.variable)
                .filter(|_| rest_is_true && per_anchor.len() == 1);
            self.search(anchor, conjuncts, &scope, first, &mut sink)?;
            if let Sink::AnchorRows(mut anchor_rows) = sink {
                anchor_rows.rows.sort_unstable();
                // Later anchors need only the documents in which this one has rows.
                if found.len() + 1 < per_anchor.len() {
                    scope.narrow(anchor_rows.rows.iter().map(|(.., doc, _)| *doc));
                }
                found.push((at, anchor_rows));
            }
        }
        // The join expects the anchors in the order of FROM.
        order::sort_by_key(&mut found, |(at, _)| *at);
        Ok(found.into_iter().map(|(_, rows)| rows).collect())
    }

    pub fn view(&self) -> View<'b> {
        View::new(self.batch).counting(self.work)
    }

    fn evaluator(&self) -> ConditionEvaluator<'p, 'b> {
        ConditionEvaluator {
            plan: self.plan,
            view: self.view(),
            now: self.now,
        }
    }

    pub fn expander<'v>(&self, view: View<'v>) -> Expander<'p, 'v> {
        Expander {
            plan: self.plan,
            view,
            most: self.budget.rows_of_variable(self.plan),
            plain: false,
        }
    }

    pub fn trie_of(&self, expr: &ClassExpr) -> Option<&'p Trie> {
        self.plan.tries.iter().find(|t| t.variable == expr.variable)
    }

    /// Gives the rows of one anchor that pass its own conditions to a sink. TopK all is found,
    /// then it is given: where it is too much for one piece of work, nothing of it.
    fn search(
        &self,
        anchor: &'p ClassExpr,
        conjuncts: &[Conjunct<'p>],
        scope: &Scope<'b>,
        first: Option<TopK<'b>>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let mut search = Search::new(self.trie_of(anchor), conjuncts, first, self.plan.width);
        match scope {
            Scope::Flagged(..) => self.find_all(&mut search, anchor, scope)?,
            Scope::Chosen(chosen) => self.find_chosen(&mut search, anchor, chosen)?,
        }
        // Checked before anything is output, so that smaller parts can be evaluated instead.
        self.bear(search.rows())?;
        self.give_found(&mut search, sink)?;
        let held = search.first.take();
        let held = held.map(|first| first.release(&mut self.work.best_ranks.borrow_mut()));
        let mut held = held.into_iter().flatten();
        Ok(held.try_for_each(|block| self.pass(&mut search, &block, sink))?)
    }

    /// Checks that `rows` rows can be made in one piece of work.
    fn bear(&self, rows: u64) -> Result<(), Abort> {
        let units = rows.saturating_mul(ROW);
        let most = self
            .work
            .piece()
            .max(UNITS_OF_DOCUMENT.saturating_mul(self.slice.len() as u64));
        self.work.check()?;
        if units > most {
            Err(Abort::Heavy)
        } else {
            Ok(())
        }
    }

    /// Checks that the objects which were written stay within one piece of work, unless the slice
    /// has only one document.
    fn bear_objects(&self) -> Result<(), Abort> {
        self.work.check()?;
        if self.slice.len() > 1 && self.is_overdue(0) {
            Err(Abort::Heavy)
        } else {
            Ok(())
        }
    }

    /// Checks that a costly query stays within one piece of work in this slice, `units` of future
    /// work included.
    fn bear_costs(&self, units: u64) -> Result<(), Abort> {
        if self.plan.costly && self.is_overdue(units) {
            Err(Abort::Heavy)
        } else {
            Ok(())
        }
    }

    /// Returns whether this slice takes more than two pieces of work, `units` of future work
    /// included.
    fn is_overdue(&self, units: u64) -> bool {
        let spent = self.work.spent().saturating_sub(self.begun_at);
        spent.saturating_add(units) > self.work.piece().saturating_mul(2)
    }

    /// Finds the candidate rows of a population. If the pairing of child rows and parent rows does
    /// not matter, child rows are read alone.
    fn find_all(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        anchor: &'p ClassExpr,
        scope: &Scope<'b>,
    ) -> Result<(), Abort> {
        let found = self.sorted_tables(anchor, scope, &mut search.done)?;
        // If anchors can contain one another, child rows of one may be rows of the other.
        let apart = search
            .trie
            .filter(|_| !anchor.class.may_contain(anchor.class));
        let groups = apart.and_then(|trie| Some((trie, self.groups(trie, &found, scope)?)));
        for of in found {
            for (variant, rows) in of.variants {
                if groups.is_none() || group_expansion(&variant).is_none() {
                    self.find_variant(search, (of.table, of.number), variant, rows)?;
                }
            }
        }
        if let Some((trie, groups)) = groups {
            search.without.extend(self.without(trie, &groups)?);
            let children = groups.children.into_iter();
            search.ready.extend(children.flat_map(ready_children));
        }
        Ok(())
    }

    /// Finds what may pass of some fragments.
    fn find_chosen(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        anchor: &'p ClassExpr,
        chosen: &[u64],
    ) -> Result<(), Abort> {
        let may_pass = self.may_pass(anchor);
        for same in chosen.chunk_by(|a, b| table_of(*a) == table_of(*b)) {
            let number = same
                .first()
                .map_or(u32::MAX, |fragment| table_of(*fragment));
            let Some(table) = self.batch.table(number).filter(|table| may_pass(table)) else {
                continue;
            };
            let rows = Selection::Indices(same.iter().map(|fragment| *fragment as u32).collect());
            self.find_in_table(search, anchor, (table, number), rows)?;
        }
        Ok(())
    }

    /// Finds what may pass of rows of a table.
    fn find_in_table(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        anchor: &'p ClassExpr,
        (table, number): (&'b Table, u32),
        rows: Selection<'b>,
    ) -> Result<(), Abort> {
        let Some(rows) = self.bound(anchor, (table, number), rows, &mut search.done)? else {
            return Ok(());
        };
        let mut variants = Vec::with_capacity(1);
        self.each_variant(anchor, number, rows, &mut |variant, rows| {
            variants.push((variant, rows));
            Ok(())
        })?;
        variants.into_iter().try_for_each(|(variant, rows)| {
            self.find_variant(search, (table, number), variant, rows)
        })
    }

    /// Finds what may pass of rows of a layout variant.
    fn find_variant(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        (table, number): (&'b Table, u32),
        variant: Rc<LayoutVariant>,
        rows: Selection<'b>,
    ) -> Result<(), Abort> {
        self.go_on(&mut search.done, rows.len())?;
        let walk = |search: &mut Search<'_, 'p, 'b>, trie, rows: &[u32]| {
            rows.iter()
                .try_for_each(|row| self.walk(search, trie, (table, number), *row))
        };
        match (&variant.expansion, search.trie) {
            (Expansion::Group(over), Some(trie)) => {
                let (without, walked) =
                    self.collect_child_rows(search, trie, over, number, &rows)?;
                walk(search, trie, &walked)?;
                search.without.push((number, Rc::clone(&variant), without));
                search.parents.push((number, variant));
            }
            (Expansion::Walk, Some(trie)) => walk(search, trie, &rows.rows())?,
            _ => search.ready.push(Ready {
                number,
                variant,
                rows,
                over: ParentRows::Nothing,
            }),
        }
        Ok(())
    }

    /// Gives what passes of all that was found.
    fn give_found(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        for Ready {
            number,
            variant,
            rows,
            over,
        } in std::mem::take(&mut search.ready)
        {
            self.give_pieces(search, &variant, (number, rows, over), sink)?;
        }
        for without in std::mem::take(&mut search.without) {
            self.give_without(search, without, sink)?;
        }
        self.emit_child_rows(search, sink)?;
        let tested = std::mem::take(&mut search.tested);
        // Nothing of a costly query has been output yet, so it can still be split here.
        self.bear_costs(self.units_of_output(&tested, &search.walked))?;
        tested
            .iter()
            .try_for_each(|block| self.pass(search, block, sink))?;
        Ok(self.give_walked(search, sink)?)
    }

    /// Returns the units of work that the output of these rows takes.
    fn units_of_output(&self, tested: &[Block<'b>], walked: &AnchorRows) -> u64 {
        let rows = tested.iter().map(|block| block.rows.len()).sum::<usize>() + walked.rows.len();
        (rows as u64)
            .saturating_mul(ROW)
            .saturating_mul(self.plan.query.select.len() as u64)
    }

    /// Outputs the rows of parent rows whose child rows have no row.
    fn give_without(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        (number, variant, rows): Without,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let (Some(table), Some(over)) = (self.batch.table(number), group_expansion(&variant))
        else {
            return Err(broken("a table of parent rows has no repeated group"));
        };
        if !rows.is_empty() {
            self.work.taken.note(ExecutionPath::ParentRowsAlone);
        }
        let block = Block {
            table,
            number,
            cells: Rc::clone(&over.without),
            rows: Selection::Indices(rows),
            order: 0,
            over: ParentRows::Nothing,
        };
        self.give(search, block, sink)
    }

    /// Outputs the passing rows of one layout variant, in pieces of bounded size.
    fn give_pieces(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        variant: &LayoutVariant,
        (number, rows, over): (u32, Selection<'b>, ParentRows),
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let templates = variant
            .rows()
            .ok_or_else(|| broken("a layout variant has no rows"))?;
        // Once a part was absent, the run only finds out which other parts it needs. The first rows
        // of a layout variant need the same ones as the others, except where conditions differ.
        let probes = self.work.is_void() && !self.first_only;
        if rows.len() <= PIECE && !probes {
            return self.give_each(search, templates, (number, rows, over), sink);
        }
        let pieces = if probes {
            rows.growing_pieces(PIECE)
        } else {
            rows.pieces(PIECE)
        };
        for rows in pieces {
            let before = absent_reads();
            self.give_each(search, templates, (number, rows, over.clone()), sink)?;
            if absent_reads() != before && !self.first_only {
                break;
            }
        }
        Ok(())
    }

    /// Gives a block for each row of a template.
    fn give_each(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        templates: &[Cells],
        (number, rows, over): (u32, Selection<'b>, ParentRows),
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        // The last template takes the selection, which saves a copy in the common case of one.
        let Some((last, others)) = templates.split_last() else {
            return Ok(());
        };
        let table = self
            .batch
            .table(number)
            .ok_or_else(|| broken("rows of a table that the batch has not"))?;
        let block = |order: u32, cells: &Cells, rows, over| Block {
            table,
            number,
            cells: Rc::clone(cells),
            rows,
            order,
            over,
        };
        for (order, cells) in (0..).zip(others) {
            self.give(
                search,
                block(order, cells, rows.clone(), over.clone()),
                sink,
            )?;
        }
        self.give(search, block(others.len() as u32, last, rows, over), sink)
    }

    /// Gives what passes of a block; later, where only the first rows are wanted, or where the
    /// query is costly.
    fn give(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        mut block: Block<'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        self.retain_passing(search, &mut block)?;
        let block = if let Some(first) = &mut search.first {
            first.hold(block, &self.work.taken)
        } else {
            Some(block)
        };
        match block {
            Some(block) if self.plan.costly => search.tested.push(block),
            Some(block) => self.pass(search, &block, sink)?,
            None => {}
        }
        Ok(())
    }

    /// Removes the rows of a block that the conjuncts of the anchor exclude.
    fn retain_passing(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        block: &mut Block<'b>,
    ) -> Result<(), Abort> {
        self.go_on(&mut search.done, block.rows.len())?;
        // Once for a block: each column that is tested or shown is read once for each row.
        self.work.add(
            block.rows.len() as u64
                * (1 + search.conjuncts.len() + self.plan.query.select.len()) as u64,
        );
        let Search {
            conjuncts,
            scratch,
            done,
            ..
        } = search;
        let rows = block.rows.len();
        if block.leave_out(conjuncts, self.view()) {
            self.work.leave_out(rows);
            return Ok(());
        }
        for conjunct in *conjuncts {
            block.retain(conjunct, self.evaluator(), scratch, &mut || {
                self.bear_costs(0)?;
                Ok(self.go_on(done, 0)?)
            })?;
        }
        Ok(())
    }

    /// Gives the rows of a block to a sink.
    fn pass(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        block: &Block<'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), QueryError> {
        if block.rows.is_empty() {
            return Ok(());
        }
        self.note(sink, &block.over);
        if !block.is_sound(self.plan.width) {
            self.work
                .note_broken("a block of rows does not fit its table");
            return Ok(());
        }
        let (evaluator, scratch) = (self.evaluator(), &mut search.scratch);
        match sink {
            Sink::Fold(output) => output.fold(evaluator, block, scratch),
            Sink::Group(output, paths) => {
                output.add_block_to_groups(evaluator, block, paths, scratch)
            }
            Sink::Sort(output) => self.sort_rows(block, scratch, output),
            Sink::Fill(projection) => projection.take(block, scratch),
            Sink::AnchorRows(anchor_rows) => self.keep_rows(block, scratch, anchor_rows),
        }
        self.budget.check(sink.len(), sink.bytes())
    }

    /// Adds the rows of a block to an output that sorts them.
    fn sort_rows(&self, block: &Block<'b>, scratch: &mut [Node], output: &mut Output) {
        output.reserve(self.plan, block.rows.len());
        for i in 0..block.rows.len() {
            block.fill(i, scratch);
            let evaluator = self.evaluator();
            let place = block.place(evaluator.view, i);
            output.take_at(evaluator, scratch, place);
        }
    }

    /// Adds the rows of a block to the rows of their anchor, for the join.
    fn keep_rows(&self, block: &Block<'b>, scratch: &mut [Node], anchor_rows: &mut AnchorRows) {
        anchor_rows.reserve(block.rows.len());
        for i in 0..block.rows.len() {
            block.fill(i, scratch);
            let view = self.evaluator().view;
            let place = block.place(view, i);
            anchor_rows.push(place, block.doc(view, i), scratch);
        }
    }

    /// Notes where the rows of a block go, and what they are rows of.
    fn note(&self, sink: &Sink<'_, 'b>, over: &ParentRows) {
        let taken = &self.work.taken;
        taken.note(match sink {
            Sink::Fold(_) => ExecutionPath::Fold,
            Sink::Sort(_) => ExecutionPath::Sort,
            Sink::Group(..) => return,
            Sink::Fill(_) if self.plan.query.distinct => ExecutionPath::FillDistinct,
            Sink::Fill(_) => ExecutionPath::Fill,
            Sink::AnchorRows(_) => ExecutionPath::Join,
        });
        match over {
            ParentRows::Nothing => {}
            ParentRows::Unused => taken.note(ExecutionPath::ChildRowsAlone),
            ParentRows::Known { .. } => taken.note(ExecutionPath::ChildRows),
        }
    }

    /// Asks the host now and then whether to go on.
    pub fn go_on(&self, done: &mut usize, rows: usize) -> Result<(), QueryError> {
        // 16 more for each call, so that calls without rows count too.
        *done += rows + 16;
        if *done < PATIENCE {
            return Ok(());
        }
        *done = 0;
        self.work.check()?;
        if (self.stopped)() {
            Err(QueryError::Stopped)
        } else {
            Ok(())
        }
    }
}

impl Sink<'_, '_> {
    /// Returns the number of rows held.
    fn len(&self) -> usize {
        match self {
            Sink::AnchorRows(anchor_rows) => anchor_rows.rows.len(),
            Sink::Fold(output) | Sink::Group(output, _) | Sink::Sort(output) => output.len(),
            Sink::Fill(projection) => projection.len(),
        }
    }

    /// Returns the approximate number of bytes held.
    fn bytes(&self) -> usize {
        match self {
            Sink::AnchorRows(anchor_rows) => anchor_rows.bytes(),
            Sink::Fold(output) | Sink::Group(output, _) | Sink::Sort(output) => output.bytes(),
            Sink::Fill(projection) => projection.bytes(),
        }
    }
}

impl<'s, 'p, 'b> Search<'s, 'p, 'b> {
    /// Creates a search that has found nothing yet, for rows of `width` nodes.
    fn new(
        trie: Option<&'p Trie>,
        conjuncts: &'s [Conjunct<'p>],
        first: Option<TopK<'b>>,
        width: usize,
    ) -> Search<'s, 'p, 'b> {
        Search {
            trie,
            conjuncts,
            scratch: vec![Node::NONE; width],
            done: 0,
            first,
            ready: Vec::new(),
            without: Vec::new(),
            walked: AnchorRows::new(width),
            tested: Vec::new(),
            parents: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Returns the number of rows, before they are tested.
    fn rows(&self) -> u64 {
        let of = |variant: &LayoutVariant, rows: usize| {
            (variant.rows().map_or(0, <[Cells]>::len) as u64).saturating_mul(rows as u64)
        };
        // Columns have one row of each fragment without cost: only multiplied rows are counted.
        let ready = self
            .ready
            .iter()
            .filter(|ready| ready.variant.rows().is_some_and(|rows| rows.len() > MANY));
        let ready = ready.map(|ready| of(&ready.variant, ready.rows.len()));
        let children = self
            .steps
            .iter()
            .flat_map(|step| &step.children)
            .map(|children| of(&children.variant, children.rows.len()));
        ready
            .chain(children)
            .fold(self.walked.rows.len() as u64, u64::saturating_add)
    }
}

/// Returns the child rows of a table that are read without their parent rows.
fn ready_children(children: TableVariants<'_>) -> impl Iterator<Item = Ready<'_>> {
    let number = children.number;
    children
        .variants
        .into_iter()
        .map(move |(variant, rows)| Ready {
            number,
            variant,
            rows,
            over: ParentRows::Unused,
        })
}

/// The anchors in the order in which they are searched: those with conditions first, for they leave
/// few documents to the others.
fn most_asked_first(per_anchor: &[Vec<Conjunct<'_>>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..per_anchor.len()).collect();
    order::sort_by_key(&mut order, |at| {
        std::cmp::Reverse(per_anchor.get(*at).map_or(0, Vec::len))
    });
    order
}
