//! Evaluation by row templates: a query is compiled once for each layout variant, and the result is
//! applied to all fragments of the variant.
//!
//! Queries of a population whose FROM names entries of a document (`… COMPOSITION c CONTAINS
//! OBSERVATION o`, or several entries joined by AND) need no walk for each document. Each entry
//! class is an *anchor*. Its tables are found by their layouts. Its paths are expanded once for all
//! fragments with the same optional items, past one repeated group if there is one. Conditions
//! about it are tested column by column. Fragments whose rows depend on more than this are walked
//! one by one.
//!
//! The rows that pass are added to aggregates, or joined by document and sorted in document order.
//! The first of these ways that applies to a query is taken ([`RowTemplateEvaluator::run`]). Each declines
//! before it has changed the output.
//!
//! - [`RowTemplateEvaluator::consume_rows`] aggregates, groups or sorts the rows of one anchor that decides
//!   all of WHERE.
//! - [`RowTemplateEvaluator::project_rows`] shows paths of one anchor that decides all of WHERE, and of
//!   classes above it that have one row in each document.
//! - [`RowTemplateEvaluator::consume_with_above`] aggregates, groups or sorts the rows of one anchor with
//!   paths of classes above it that have one row in each document.
//! - [`RowTemplateEvaluator::count_join`] counts the rows of several anchors without paths and WHERE.
//! - [`RowTemplateEvaluator::join`] joins the rows of all anchors, for any other query.

mod above;
mod anchor_rows;
mod children;
mod count_join;
mod join;
mod sink;
mod walk;
mod with_above;

use super::anchor_scan::{ChildlessParents, TableVariants, group_expansion};
use super::anchors::{Anchors, Conjunct, Conjuncts};
use super::block::{Block, ParentRows};
use super::condition::ConditionEvaluator;
use super::execution_path::ExecutionPath;
use super::expand::Expander;
use super::node::{Node, View};
use super::output::Output;
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
use sink::Sink;
use std::ops::Range;
use std::rc::Rc;

/// The approximate number of rows of a block. Its working set fits the cache of the processor.
const BLOCK_ROWS: usize = 1 << 12;

/// The number of rows of one fragment above which rows are counted before they are made.
const MAX_UNCOUNTED_ROWS: usize = 16;

/// The number of rows after which a run tests whether it was cancelled.
const ROWS_PER_CHECK: usize = 1 << 16;

/// An evaluator of one plan over one batch by row templates.
pub(super) struct RowTemplateEvaluator<'p, 'b> {
    pub plan: &'p Plan,
    pub anchors: &'p Anchors<'p>,
    pub batch: &'b Batch,
    /// The numbers of the EHRs that the query names, ascending; `None` if it names none.
    pub ehrs: Option<Rc<[u32]>>,
    pub now: &'p str,
    pub budget: Budget,
    pub stopped: &'p dyn Fn() -> bool,
    /// The range of document numbers that is evaluated, for queries of a population.
    pub slice: Range<u32>,
    pub work: &'b Work,
    /// The units of work that the run had spent before this evaluation.
    pub begun_at: u64,
    /// Whether any first rows are sufficient. Once there are enough, no other parts are needed.
    pub first_only: bool,
}

/// The reason why an evaluation by row templates ended early.
pub(super) enum Abort {
    /// The slice needs more than one piece of work. No row has reached the output.
    Heavy,
    Failed(QueryError),
}

/// Returns the error of a broken invariant.
fn broken(what: &'static str) -> Abort {
    Abort::Failed(QueryError::Broken(what))
}

impl From<QueryError> for Abort {
    fn from(failure: QueryError) -> Abort {
        Abort::Failed(failure)
    }
}

/// The average units of work of a document above which a slice is split into smaller ones.
const UNITS_OF_DOCUMENT: u64 = 1 << 14;

/// Candidate rows of a table, with their parent rows.
struct CandidateRows<'b> {
    /// The number of the table.
    table: u32,
    rows: Selection<'b>,
    parent_rows: ParentRows,
}

/// Rows of one layout variant before conditions are tested.
struct VariantCandidates<'b> {
    variant: Rc<LayoutVariant>,
    rows: CandidateRows<'b>,
}

/// The state of the search for the rows of one anchor.
///
/// - [`RowTemplateEvaluator::find_all`] and [`RowTemplateEvaluator::find_chosen`] fill `candidates`,
///   `childless`, `parents` and `steps`. They test the rows of walked fragments, and fill `walked`.
/// - [`RowTemplateEvaluator::emit_found`] tests the candidates block by block. `top_k` holds back
///   blocks whose rows may not be needed, and `passing` the blocks of a costly query.
/// - [`RowTemplateEvaluator::emit_top_k`] passes the rest of the rows to the sink.
struct AnchorSearch<'s, 'p, 'b> {
    trie: Option<&'p Trie>,
    conjuncts: &'s [Conjunct<'p>],
    scratch: Vec<Node>,
    /// The number of rows since the last test for cancellation.
    rows_since_check: usize,
    /// The top-k filter of a query with ORDER BY and LIMIT.
    top_k: Option<TopK<'b>>,
    /// The rows that are not tested yet, in the order of output.
    candidates: Vec<VariantCandidates<'b>>,
    /// Parent rows whose child rows result in no row. Each results in one row without them.
    childless: Vec<ChildlessParents>,
    /// The rows of walked fragments that passed.
    walked: AnchorRows,
    /// The blocks that passed; a costly query passes them to the sink only at the end.
    passing: Vec<Block<'b>>,
    /// The tables with parent rows, each with its layout variant.
    parents: Vec<(u32, Rc<LayoutVariant>)>,
    /// The child rows of these parent rows, grouped by the step whose instances they are.
    steps: Vec<ChildrenOfStep>,
}

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Evaluates the query, and adds the rows that pass to the output.
    pub fn run(&self, output: &mut Output) -> Result<(), Abort> {
        let Conjuncts { per_anchor, rest } = self.anchors.split(self.plan);
        let mut scope = self.scope();
        self.narrow_by_document(&rest, &mut scope)?;
        let rest_is_true = rest.is_empty();
        if let ([anchor], [conjuncts]) = (self.anchors.entries.as_slice(), per_anchor.as_slice()) {
            // If one anchor decides all of WHERE, no anchors are joined.
            if rest_is_true
                && (self.consume_rows(anchor, conjuncts, &scope, output)?
                    || self.project_rows(anchor, conjuncts, &scope, output)?)
            {
                return Ok(());
            }
            let conjuncts = (conjuncts.as_slice(), rest.as_slice());
            if self.consume_with_above(anchor, conjuncts, &scope, output)? {
                return Ok(());
            }
        }
        // A count of pairs needs the number of rows of each document, and not the rows.
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
        let sink = Sink::without_order(query, output);
        let Some(mut sink) = sink.filter(|_| is_alone) else {
            return Ok(false);
        };
        let top_k = TopK::of(query, &[anchor.variable]);
        self.search(anchor, conjuncts, scope, top_k, &mut sink)?;
        output.advance_position(u64::from(self.batch.fragment_count()));
        Ok(true)
    }

    /// Copies the cells of the rows of a single anchor from columns. Returns false without effect
    /// if the query needs more than a projection of columns.
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
            projection.finish(|| self.check_objects())?;
        }
        Ok(true)
    }

    /// Finds the rows of each anchor. The result has the order of the anchors in FROM.
    fn rows_of_anchors(
        &self,
        per_anchor: &[Vec<Conjunct<'p>>],
        rest_is_true: bool,
        mut scope: Scope<'b>,
    ) -> Result<Vec<AnchorRows>, Abort> {
        let mut found: Vec<(usize, AnchorRows)> = Vec::new();
        for at in search_order(per_anchor) {
            let (Some(anchor), Some(conjuncts)) =
                (self.anchors.entries.get(at), per_anchor.get(at))
            else {
                continue;
            };
            let mut sink = Sink::AnchorRows(AnchorRows::new(self.plan.width));
            // Rows may be excluded early only if no later condition or join removes others.
            let top_k = TopK::of(&self.plan.query, &[anchor.variable])
                .filter(|_| rest_is_true && per_anchor.len() == 1);
            self.search(anchor, conjuncts, &scope, top_k, &mut sink)?;
            if let Sink::AnchorRows(mut anchor_rows) = sink {
                if !anchor_rows.rows.is_sorted() {
                    order::sort(&mut anchor_rows.rows);
                }
                // Later anchors need only the documents in which this one has rows.
                if found.len() + 1 < per_anchor.len() {
                    let documents = anchor_rows.rows.iter().map(|row| row.document);
                    scope.narrow(self.view(), documents);
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
            max_rows: self.budget.rows_of_variable(self.plan),
            plain: false,
        }
    }

    pub fn trie_of(&self, expr: &ClassExpr) -> Option<&'p Trie> {
        self.plan.tries.iter().find(|t| t.variable == expr.variable)
    }

    /// Passes the rows of an anchor that satisfy its conjuncts to a sink. All rows are found first:
    /// if they need more than one piece of work, none of them reaches the sink.
    fn search(
        &self,
        anchor: &'p ClassExpr,
        conjuncts: &[Conjunct<'p>],
        scope: &Scope<'b>,
        top_k: Option<TopK<'b>>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let mut search = AnchorSearch::new(self.trie_of(anchor), conjuncts, top_k, self.plan.width);
        match scope {
            Scope::Flagged(..) => self.find_all(&mut search, anchor, scope)?,
            Scope::Chosen(chosen) => self.find_chosen(&mut search, anchor, chosen)?,
        }
        // Checked before anything is output, so that smaller parts can be evaluated instead.
        self.check_rows(search.rows())?;
        self.emit_found(&mut search, sink)?;
        self.emit_top_k(&mut search, sink)
    }

    /// Passes the rows that the top-k filter leaves to a sink.
    fn emit_top_k(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let held = search.top_k.take();
        let held =
            held.map(|top_k| top_k.release(self.view(), &mut self.work.best_ranks.borrow_mut()));
        let mut held = held.into_iter().flatten();
        Ok(held.try_for_each(|block| self.send_to_sink(block, &mut search.scratch, sink))?)
    }

    /// Checks that `rows` rows can be made in one piece of work.
    fn check_rows(&self, rows: u64) -> Result<(), Abort> {
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

    /// Checks that the objects written so far stay within one piece of work, unless the slice has
    /// only one document.
    fn check_objects(&self) -> Result<(), Abort> {
        self.work.check()?;
        if self.slice.len() > 1 && self.is_overdue(0) {
            Err(Abort::Heavy)
        } else {
            Ok(())
        }
    }

    /// Checks that a costly query stays within one piece of work in this slice, including `units`
    /// of future work.
    fn check_costs(&self, units: u64) -> Result<(), Abort> {
        if self.plan.costly && self.is_overdue(units) {
            Err(Abort::Heavy)
        } else {
            Ok(())
        }
    }

    /// Returns whether this slice needs more than two pieces of work, including `units` of future
    /// work.
    fn is_overdue(&self, units: u64) -> bool {
        let spent = self.work.spent().saturating_sub(self.begun_at);
        spent.saturating_add(units) > self.work.piece().saturating_mul(2)
    }

    /// Finds the candidate rows of a population. Child rows are read without their parent rows if
    /// the pairs of parent rows and child rows do not matter.
    fn find_all(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        anchor: &'p ClassExpr,
        scope: &Scope<'b>,
    ) -> Result<(), Abort> {
        let found = self.anchored_rows(anchor, scope, &mut search.rows_since_check)?;
        // If an anchor can contain another one, a child row of one can be a row of the other.
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
            search
                .childless
                .extend(self.childless_parents(trie, &groups)?);
            let children = groups.children.into_iter();
            search
                .candidates
                .extend(children.flat_map(child_candidates));
        }
        Ok(())
    }

    /// Finds the candidate rows among the listed fragments of a scope.
    fn find_chosen(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        anchor: &'p ClassExpr,
        chosen: &[u64],
    ) -> Result<(), Abort> {
        let may_pass = self.may_pass(anchor);
        for same in chosen.chunk_by(|a, b| table_of(*a) == table_of(*b)) {
            let number = same
                .first()
                .map_or(u32::MAX, |fragment| table_of(*fragment));
            let Some(table) = self.batch.table(number) else {
                self.work.note_broken("a fragment has no table");
                continue;
            };
            if !may_pass(table) {
                continue;
            }
            let rows = Selection::Indices(same.iter().map(|fragment| *fragment as u32).collect());
            self.find_in_table(search, anchor, (table, number), rows)?;
        }
        Ok(())
    }

    /// Finds the candidate rows among rows of a table.
    fn find_in_table(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        anchor: &'p ClassExpr,
        (table, number): (&'b Table, u32),
        rows: Selection<'b>,
    ) -> Result<(), Abort> {
        let Some(rows) = self.bound(anchor, (table, number), rows, &mut search.rows_since_check)?
        else {
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

    /// Finds the candidate rows among rows of a layout variant.
    fn find_variant(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        (table, number): (&'b Table, u32),
        variant: Rc<LayoutVariant>,
        rows: Selection<'b>,
    ) -> Result<(), Abort> {
        self.check_cancelled(&mut search.rows_since_check, rows.len())?;
        let walk = |search: &mut AnchorSearch<'_, 'p, 'b>, trie, rows: &[u32]| {
            let mut sampled = rows
                .iter()
                .enumerate()
                .filter(|(i, _)| self.work.samples(*i));
            sampled.try_for_each(|(_, row)| self.walk(search, trie, (table, number), *row))
        };
        match (&variant.expansion, search.trie) {
            (Expansion::Group(expansion), Some(trie)) => {
                let collected = self.collect_child_rows(search, trie, expansion, number, &rows)?;
                walk(search, trie, &collected.walked)?;
                search.childless.push(ChildlessParents {
                    table: number,
                    variant: Rc::clone(&variant),
                    rows: collected.childless,
                });
                search.parents.push((number, variant));
            }
            (Expansion::Walk, Some(trie)) => walk(search, trie, &rows.rows())?,
            _ => search.candidates.push(VariantCandidates {
                variant,
                rows: CandidateRows {
                    table: number,
                    rows,
                    parent_rows: ParentRows::None,
                },
            }),
        }
        Ok(())
    }

    /// Tests all candidate rows, and passes the rows that satisfy the conjuncts to the sink.
    fn emit_found(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        for candidates in std::mem::take(&mut search.candidates) {
            self.emit_pieces(search, candidates, sink)?;
        }
        for parents in std::mem::take(&mut search.childless) {
            self.emit_childless(search, parents, sink)?;
        }
        self.emit_child_rows(search, sink)?;
        let passing = std::mem::take(&mut search.passing);
        // Nothing of a costly query has been output yet, so it can still be split here.
        self.check_costs(self.units_of_output(&passing, &search.walked))?;
        passing
            .into_iter()
            .try_for_each(|block| self.send_to_sink(block, &mut search.scratch, sink))?;
        Ok(self.emit_walked(search, sink)?)
    }

    /// Returns the units of work for the output of rows.
    fn units_of_output(&self, passing: &[Block<'b>], walked: &AnchorRows) -> u64 {
        let rows = passing.iter().map(|block| block.rows.len()).sum::<usize>() + walked.rows.len();
        (rows as u64)
            .saturating_mul(ROW)
            .saturating_mul(self.plan.query.select.len() as u64)
    }

    /// Emits the rows of parent rows whose child rows result in no row.
    fn emit_childless(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        parents: ChildlessParents,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let ChildlessParents {
            table: number,
            variant,
            rows,
        } = parents;
        let (Some(table), Some(expansion)) = (self.batch.table(number), group_expansion(&variant))
        else {
            return Err(broken("a table of parent rows has no repeated group"));
        };
        if !rows.is_empty() {
            self.work.taken.note(ExecutionPath::ParentRowsAlone);
        }
        let block = Block {
            table,
            number,
            cells: Rc::clone(&expansion.childless_cells),
            rows: Selection::Indices(rows),
            template: 0,
            parent_rows: ParentRows::None,
            above: Vec::new(),
        };
        self.emit_block(search, block, sink)
    }

    /// Emits the rows of one layout variant in pieces of bounded size.
    fn emit_pieces(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        VariantCandidates { variant, rows }: VariantCandidates<'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let candidates = rows;
        let templates = variant
            .rows()
            .ok_or_else(|| broken("a layout variant has no rows"))?;
        // After a read of an absent part, the run only finds out which other parts it needs. The
        // first rows of a layout variant need the same parts as the others, except where conditions
        // differ.
        let probes = self.work.is_void() && !self.first_only;
        if candidates.rows.len() <= BLOCK_ROWS && !probes {
            return self.emit_templates(search, templates, candidates, sink);
        }
        let pieces = if probes {
            candidates.rows.growing_pieces(BLOCK_ROWS)
        } else {
            candidates.rows.pieces(BLOCK_ROWS)
        };
        for rows in pieces {
            let before = absent_reads();
            let piece = CandidateRows {
                table: candidates.table,
                rows,
                parent_rows: candidates.parent_rows.clone(),
            };
            self.emit_templates(search, templates, piece, sink)?;
            if absent_reads() != before && !self.first_only {
                break;
            }
        }
        Ok(())
    }

    /// Emits a block for each row template.
    fn emit_templates(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        templates: &[Cells],
        candidates: CandidateRows<'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let CandidateRows {
            table: number,
            rows,
            parent_rows,
        } = candidates;
        // The last template takes the selection, which saves a copy in the common case of one.
        let Some((last, others)) = templates.split_last() else {
            return Ok(());
        };
        let table = self
            .batch
            .table(number)
            .ok_or_else(|| broken("rows of a table that the batch has not"))?;
        let block = |template: u32, cells: &Cells, rows, parent_rows| Block {
            table,
            number,
            cells: Rc::clone(cells),
            rows,
            template,
            parent_rows,
            above: Vec::new(),
        };
        for (template, cells) in (0..).zip(others) {
            self.emit_block(
                search,
                block(template, cells, rows.clone(), parent_rows.clone()),
                sink,
            )?;
        }
        self.emit_block(
            search,
            block(others.len() as u32, last, rows, parent_rows),
            sink,
        )
    }

    /// Tests a block, and passes its rows to the sink. The sink receives them later if only the
    /// first rows are needed, or if the query is costly.
    fn emit_block(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        mut block: Block<'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        self.retain_passing(search, &mut block)?;
        let block = if let Some(top_k) = &mut search.top_k {
            top_k.hold(block, self.view())
        } else {
            Some(block)
        };
        match block {
            Some(block) if self.plan.costly => search.passing.push(block),
            Some(block) => self.send_to_sink(block, &mut search.scratch, sink)?,
            None => {}
        }
        Ok(())
    }

    /// Removes the rows of a block for which a conjunct of the anchor is not true.
    fn retain_passing(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        block: &mut Block<'b>,
    ) -> Result<(), Abort> {
        self.check_cancelled(&mut search.rows_since_check, block.rows.len())?;
        // Once for a block: each column that is tested or shown is read once for each row.
        self.work.add(
            block.rows.len() as u64
                * (1 + search.conjuncts.len() + self.plan.query.select.len()) as u64,
        );
        let AnchorSearch {
            conjuncts,
            scratch,
            rows_since_check,
            ..
        } = search;
        let rows = block.rows.len();
        if block.prune(conjuncts, self.view()) {
            self.work.add_pruned_rows(rows as u64);
            return Ok(());
        }
        for conjunct in *conjuncts {
            block.retain(conjunct, self.evaluator(), scratch, &mut || {
                self.check_costs(0)?;
                Ok(self.check_cancelled(rows_since_check, 0)?)
            })?;
        }
        Ok(())
    }

    /// Tests for cancellation and limits after a number of rows.
    pub fn check_cancelled(
        &self,
        rows_since_check: &mut usize,
        rows: usize,
    ) -> Result<(), QueryError> {
        // A call without rows counts as 16 rows, so that such calls are tested too.
        *rows_since_check += rows + 16;
        if *rows_since_check < ROWS_PER_CHECK {
            return Ok(());
        }
        *rows_since_check = 0;
        self.work.check()?;
        if (self.stopped)() {
            Err(QueryError::Stopped)
        } else {
            Ok(())
        }
    }
}

impl<'s, 'p, 'b> AnchorSearch<'s, 'p, 'b> {
    /// Creates a search without any rows. `width` is the number of nodes of a row.
    fn new(
        trie: Option<&'p Trie>,
        conjuncts: &'s [Conjunct<'p>],
        top_k: Option<TopK<'b>>,
        width: usize,
    ) -> AnchorSearch<'s, 'p, 'b> {
        AnchorSearch {
            trie,
            conjuncts,
            scratch: vec![Node::NONE; width],
            rows_since_check: 0,
            top_k,
            candidates: Vec::new(),
            childless: Vec::new(),
            walked: AnchorRows::new(width),
            passing: Vec::new(),
            parents: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Returns the number of candidate rows.
    fn rows(&self) -> u64 {
        let of = |variant: &LayoutVariant, rows: usize| {
            (variant.rows().map_or(0, <[Cells]>::len) as u64).saturating_mul(rows as u64)
        };
        // Single rows of fragments are columns, which cost nothing. Only multiplied rows are
        // counted.
        let candidates = self.candidates.iter().filter(|candidates| {
            candidates
                .variant
                .rows()
                .is_some_and(|rows| rows.len() > MAX_UNCOUNTED_ROWS)
        });
        let candidates =
            candidates.map(|candidates| of(&candidates.variant, candidates.rows.rows.len()));
        let children = self
            .steps
            .iter()
            .flat_map(|step| &step.children)
            .map(|children| of(&children.variant, children.rows.len()));
        candidates
            .chain(children)
            .fold(self.walked.rows.len() as u64, u64::saturating_add)
    }
}

/// Returns the rows of child rows that are read without their parent rows.
fn child_candidates(children: TableVariants<'_>) -> impl Iterator<Item = VariantCandidates<'_>> {
    let number = children.number;
    children
        .variants
        .into_iter()
        .map(move |(variant, rows)| VariantCandidates {
            variant,
            rows: CandidateRows {
                table: number,
                rows,
                parent_rows: ParentRows::Unused,
            },
        })
}

/// Returns the indexes of the anchors in the order of their search. Anchors with conjuncts come
/// first, because they leave fewer documents to the others.
fn search_order(per_anchor: &[Vec<Conjunct<'_>>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..per_anchor.len()).collect();
    order::sort_by_key(&mut order, |at| {
        std::cmp::Reverse(per_anchor.get(*at).map_or(0, Vec::len))
    });
    order
}
