//! Row templates: what a query makes of one shape, found once and used for all its fragments.
//!
//! Population queries whose FROM names entries of a document (`… COMPOSITION c CONTAINS OBSERVATION o`, or several of them
//! by AND) need no walk per document. Each entry class is an *anchor*: its tables are found by shape, its paths are
//! expanded once per shape, past one run of parts where there is one, and conditions on it are tested column by column.
//! Where more decides, the fragments of the shape are walked one by one. What passes is folded where only aggregates are
//! asked for, else joined by document and put into document order.

use super::anchors::{Anchors, Conjunct};
use super::block::{Block, Over, Whole, set_cells};
use super::condition::Judge;
use super::expand::{Expander, Rows};
use super::node::{Node, View};
use super::output::Output;
use super::predicate::Tester;
use super::{Budget, QueryError};
use crate::aql::facts::{Cells, Expansion, OverRun};
use crate::aql::plan::Plan;
use crate::aql::query::{ClassExpr, Predicate};
use crate::aql::trie::Trie;
use crate::document::{Batch, Doc, Fragment, Table};
use crate::rm::class::Cls;
use hashbrown::HashMap;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// Evaluates one plan over one batch by templates.
pub(super) struct ByTemplate<'p, 'b> {
    pub plan: &'p Plan,
    pub anchors: &'p Anchors<'p>,
    pub batch: &'b Batch,
    pub now: &'p str,
    pub budget: Budget,
    pub stopped: &'p dyn Fn() -> bool,
}

/// Where the rows of an anchor go.
enum Sink<'o> {
    /// To the join.
    Hits(Hits),
    /// Into the aggregates.
    Fold(&'o mut Output),
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
    anchor: &'p ClassExpr,
    trie: Option<&'p Trie>,
    conjuncts: &'s [Conjunct<'p>],
    visible: &'s [bool],
    scratch: Vec<Node>,
    /// The tables with parts elsewhere, and their parts by what these give.
    wholes: Vec<(&'b Table, u32, Rc<Expansion>)>,
    parts: HashMap<(u32, usize), Parts>,
}

/// The parts of one table, each with the number of its whole and the row in that one's table.
struct Parts {
    expansion: Rc<Expansion>,
    rows: Vec<u32>,
    of: Vec<(u32, u32)>,
}

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// Gives every passing row to the output.
    pub fn run(&self, output: &mut Output) -> Result<(), QueryError> {
        let (per_anchor, rest_is_true) = self.anchors.split(self.plan);
        let filtered = self.filtered();
        let visible = filtered.as_deref().unwrap_or(self.batch.live());
        if let ([anchor], [conjuncts]) = (self.anchors.entries.as_slice(), per_anchor.as_slice())
            && rest_is_true
            && self.plan.tries.iter().all(|t| t.variable == anchor.variable)
            && output.folds(&self.plan.query)
        {
            self.search(anchor, conjuncts, visible, &mut Sink::Fold(output))?;
            output.folded(u64::from(self.batch.places()));
            return Ok(());
        }
        let mut hits = Vec::new();
        for (anchor, conjuncts) in self.anchors.entries.iter().zip(&per_anchor) {
            let mut sink = Sink::Hits(Hits { rows: Vec::new(), nodes: Vec::new(), width: self.plan.width });
            self.search(anchor, conjuncts, visible, &mut sink)?;
            if let Sink::Hits(mut found) = sink {
                found.rows.sort_unstable();
                hits.push(found);
            }
        }
        self.join(&hits, rest_is_true, output)
    }

    fn view(&self) -> View<'b> {
        View::new(self.batch)
    }

    fn judge(&self) -> Judge<'p, 'b> {
        Judge { plan: self.plan, view: self.view(), now: self.now }
    }

    fn expander<'v>(&self, view: View<'v>) -> Expander<'p, 'v> {
        Expander { plan: self.plan, view, most: self.budget.rows, plain: false }
    }

    fn trie_of(&self, expr: &ClassExpr) -> Option<&'p Trie> {
        self.plan.tries.iter().find(|t| t.variable == expr.variable)
    }

    /// Gives the rows of one anchor that pass its own conditions to a sink.
    fn search(&self, anchor: &'p ClassExpr, conjuncts: &[Conjunct<'p>], visible: &[bool], sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let scratch = vec![Node::NONE; self.plan.width];
        let trie = self.trie_of(anchor);
        let mut search = Search { anchor, trie, conjuncts, visible, scratch, wholes: Vec::new(), parts: HashMap::new() };
        for (number, table) in (0u32..).zip(self.batch.tables()) {
            if number % 64 == 0 && (self.stopped)() {
                return Err(QueryError::Stopped);
            }
            if table.shape().class().is_a(anchor.class) && !table.is_empty() {
                self.search_table(&mut search, number, table, sink)?;
            }
        }
        self.search_parts(&mut search, sink)
    }

    fn search_table(&self, search: &mut Search<'_, 'p, 'b>, number: u32, table: &'b Table, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let root = |row: u32| Node::root(Fragment { table: number, row });
        let passes = |row: u32, view: View<'_>| search.anchor.predicate.as_ref().is_none_or(|p| Tester { plan: self.plan, view }.holds(p, root(row)));
        let known = self.plan.facts.of(table.shape()).passes(search.anchor.variable, || {
            let differs = Cell::new(false);
            let first = passes(0, self.view().watched(&differs));
            (!differs.get()).then_some(first)
        });
        if known == Some(false) {
            return Ok(());
        }
        let is_visible = |row: &u32| table.docs().get(*row as usize).is_some_and(|d| search.visible.get(*d as usize) == Some(&true));
        let mut rows: Vec<u32> = (0..table.len() as u32).filter(is_visible).collect();
        if known.is_none() {
            rows.retain(|row| passes(*row, self.view()));
        }
        let Some(trie) = search.trie else {
            let nothing: Cells = Box::new([]);
            return self.give(search, Block { table, number, cells: &nothing, rows, order: 0, over: None }, sink);
        };
        let expansion = self.expander(self.view()).expansion(trie, root(0));
        match expansion.as_deref() {
            Some(Expansion::Rows(templates)) => {
                for (order, cells) in (0..).zip(templates) {
                    self.give(search, Block { table, number, cells, rows: rows.clone(), order, over: None }, sink)?;
                }
                Ok(())
            }
            Some(Expansion::Run(over)) => {
                let whole = search.wholes.len() as u32;
                let mut without = Vec::new();
                for row in rows {
                    match self.collect_parts(search, trie, over, Fragment { table: number, row }, whole) {
                        Some(true) => {}
                        Some(false) => without.push(row),
                        None => self.walk(search, trie, root(row), table, sink)?,
                    }
                }
                self.give(search, Block { table, number, cells: &over.without, rows: without, order: 0, over: None }, sink)?;
                search.wholes.extend(expansion.clone().map(|e| (table, number, e)));
                Ok(())
            }
            _ => rows.into_iter().try_for_each(|row| self.walk(search, trie, root(row), table, sink)),
        }
    }

    /// Lays the parts of a fragment to those of their tables; `None` when one of them must be walked, else whether any gives rows.
    fn collect_parts(&self, search: &mut Search<'_, 'p, 'b>, trie: &'p Trie, over: &OverRun, whole: Fragment, number: u32) -> Option<bool> {
        let expander = self.expander(self.view());
        let parts = self.batch.parts(whole, over.run);
        let expansions: Vec<Rc<Expansion>> = parts.iter().map(|part| expander.of_part(trie, over, *part)).collect::<Option<_>>()?;
        if expansions.iter().any(|e| !matches!(**e, Expansion::Rows(_))) {
            return None;
        }
        let mut any = false;
        for (part, expansion) in parts.iter().zip(expansions) {
            if matches!(&*expansion, Expansion::Rows(rows) if rows.is_empty()) {
                continue;
            }
            any = true;
            let key = (part.table, Rc::as_ptr(&expansion) as usize);
            let parts = search.parts.entry(key).or_insert_with(|| Parts { expansion, rows: Vec::new(), of: Vec::new() });
            parts.rows.push(part.row);
            parts.of.push((number, whole.row));
        }
        Some(any)
    }

    fn search_parts(&self, search: &mut Search<'_, 'p, 'b>, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let wholes = std::mem::take(&mut search.wholes);
        let wholes: Vec<Whole<'_>> = wholes
            .iter()
            .filter_map(|(table, number, expansion)| match &**expansion {
                Expansion::Run(over) => Some(Whole { table, number: *number, cells: &over.with }),
                _ => None,
            })
            .collect();
        for ((number, _), parts) in std::mem::take(&mut search.parts) {
            let (Some(table), Expansion::Rows(templates)) = (self.batch.table(number), &*parts.expansion) else { continue };
            for (order, cells) in (0..).zip(templates) {
                let over = Some(Over { wholes: &wholes, of: parts.of.clone() });
                self.give(search, Block { table, number, cells, rows: parts.rows.clone(), order, over }, sink)?;
            }
        }
        Ok(())
    }

    /// Gives what passes of a block.
    fn give(&self, search: &mut Search<'_, 'p, 'b>, mut block: Block<'b, '_>, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let judge = self.judge();
        for conjunct in search.conjuncts {
            block.retain(conjunct, judge, &mut search.scratch);
        }
        if block.rows.is_empty() {
            return Ok(());
        }
        match sink {
            Sink::Fold(output) => output.fold(judge, &block, &mut search.scratch),
            Sink::Hits(hits) => {
                for i in 0..block.rows.len() {
                    block.fill(i, &mut search.scratch);
                    hits.push(block.place(i), block.doc(i), &search.scratch);
                }
                self.within_budget(hits.rows.len())?;
            }
        }
        Ok(())
    }

    /// Gives what passes of one fragment's rows.
    fn walk(&self, search: &Search<'_, 'p, 'b>, trie: &'p Trie, root: Node, table: &Table, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let judge = self.judge();
        let at = |values: &[u32]| values.get(root.fragment.row as usize).copied().unwrap_or(u32::MAX);
        let (place, doc) = (at(table.places()), at(table.docs()));
        for (order, row) in (0..).zip(self.walked(trie, root)?.iter()) {
            let passes = |c: &Conjunct<'p>| judge.truth(c.condition, row, &mut c.exists.clone()) == Some(true);
            if search.conjuncts.iter().all(passes) {
                match sink {
                    Sink::Fold(output) => output.fold_row(judge, row, (place, order)),
                    Sink::Hits(hits) => hits.push((place, order), doc, row),
                }
            }
        }
        match sink {
            Sink::Hits(hits) => self.within_budget(hits.rows.len()),
            Sink::Fold(_) => Ok(()),
        }
    }

    /// The rows of one variable, if the budget allows them.
    fn walked(&self, trie: &Trie, node: Node) -> Result<Rows, QueryError> {
        let rows = self.expander(self.view()).walked(trie, node);
        self.within_budget(rows.len()).map(|()| rows)
    }

    fn within_budget(&self, rows: usize) -> Result<(), QueryError> {
        if rows > self.budget.rows { Err(QueryError::TooManyRows(self.budget.rows)) } else { Ok(()) }
    }

    /// Joins within each document: every choice of one fragment an anchor, in document order, gives the product of the rows
    /// of all variables.
    fn join(&self, hits: &[Hits], rest_is_true: bool, output: &mut Output) -> Result<(), QueryError> {
        let Some(first) = hits.first() else { return Ok(()) };
        let judge = self.judge();
        let mut scratch = vec![Node::NONE; self.plan.width];
        let mut at = 0;
        let mut starts = vec![0; hits.len()];
        while let Some((.., doc, _)) = first.rows.get(at) {
            let fragments: Vec<Vec<Range<usize>>> = hits.iter().zip(&mut starts).map(|(h, start)| h.fragments_of(*doc, start)).collect();
            at = fragments.first().and_then(|f| f.last()).map_or(usize::MAX, |last| last.end);
            let choices = fragments.iter().map(Vec::len).product();
            let whole = if choices > 0 { self.whole_rows(*doc)? } else { Vec::new() };
            for choice in 0..choices {
                if (at + choice) % 4096 == 4095 && (self.stopped)() {
                    return Err(QueryError::Stopped);
                }
                let chosen = chosen(&fragments, choice);
                if self.one_row(hits, &chosen, &whole, &mut scratch) {
                    if rest_is_true || judge.keeps(&scratch) {
                        output.take(judge, &scratch, 0);
                    }
                } else {
                    for row in self.rows(hits, &chosen, &whole)? {
                        if rest_is_true || judge.keeps(&row) {
                            output.take(judge, &row, 0);
                        }
                    }
                }
                self.within_budget(output.len())?;
            }
        }
        Ok(())
    }

    /// The usual case: one row of each variable makes one row.
    fn one_row(&self, hits: &[Hits], chosen: &[Range<usize>], whole: &[OfWhole], row: &mut [Node]) -> bool {
        row.fill(Node::NONE);
        for (hits, range) in hits.iter().zip(chosen) {
            match hits.nodes_of(range.start) {
                Some(nodes) if range.len() == 1 => merge(row, nodes),
                _ => return false,
            }
        }
        for of in whole {
            match &of.rows {
                WholeRows::Same(expansion, fragment) => match &**expansion {
                    Expansion::Rows(rows) if rows.len() == 1 => rows.iter().for_each(|cells| set_cells(row, cells, *fragment)),
                    _ => return false,
                },
                WholeRows::Own(_) => return false,
            }
        }
        true
    }

    /// The product of the rows of all variables, in order of their first use.
    fn rows(&self, hits: &[Hits], chosen: &[Range<usize>], whole: &[OfWhole]) -> Result<Vec<Vec<Node>>, QueryError> {
        let mut rows: Vec<Vec<Node>> = vec![vec![Node::NONE; self.plan.width]];
        for trie in &self.plan.tries {
            let anchor = self.anchors.entries.iter().position(|e| e.variable == trie.variable);
            let more: Vec<Vec<Node>> = match anchor.and_then(|a| hits.get(a).zip(chosen.get(a))) {
                Some((hits, range)) => range.clone().filter_map(|i| hits.nodes_of(i).map(<[Node]>::to_vec)).collect(),
                None => whole.iter().filter(|of| of.variable == trie.variable).flat_map(|of| of.rows(self.plan.width)).collect(),
            };
            self.within_budget(rows.len().saturating_mul(more.len()))?;
            rows = rows.iter().flat_map(|row| more.iter().map(|extra| merged(row, extra))).collect();
        }
        Ok(rows)
    }

    /// The rows that EHR, VERSION and COMPOSITION give for a document; anchors excluded.
    fn whole_rows(&self, doc: u32) -> Result<Vec<OfWhole>, QueryError> {
        let Some(doc) = self.batch.doc(doc) else { return Ok(Vec::new()) };
        let above = self.anchors.above.iter().filter(|e| !self.anchors.entries.iter().any(|a| a.variable == e.variable));
        above
            .filter_map(|expr| {
                let trie = self.trie_of(expr)?;
                let fragment = match expr.class {
                    Cls::EHR => self.batch.ehr_fragment(doc.ehr)?,
                    class if class.is_a(Cls::VERSION) => doc.version,
                    _ => doc.data?,
                };
                let rows = match self.expander(self.view()).expansion(trie, Node::root(fragment)) {
                    Some(known) if matches!(*known, Expansion::Rows(_)) => Ok(WholeRows::Same(known, fragment)),
                    _ => self.walked(trie, Node::root(fragment)).map(WholeRows::Own),
                };
                Some(rows.map(|rows| OfWhole { variable: expr.variable, rows }))
            })
            .collect()
    }

    /// For each document whether it takes part, where more than its being alive decides.
    fn filtered(&self) -> Option<Vec<bool>> {
        let is_anchor = |expr: &ClassExpr| self.anchors.entries.iter().any(|a| a.variable == expr.variable);
        let decides = |e: &&&ClassExpr| !is_anchor(e) && (e.predicate.is_some() || !matches!(e.class, Cls::EHR | Cls::VERSION | Cls::COMPOSITION));
        let deciding: Vec<&ClassExpr> = self.anchors.above.iter().filter(decides).copied().collect();
        if deciding.is_empty() {
            return None;
        }
        let mut known = HashMap::new();
        let passes = |(doc, live): (&Doc, &bool)| *live && deciding.iter().all(|expr| self.passes(expr, doc, &mut known));
        Some(self.batch.docs().iter().zip(self.batch.live()).map(passes).collect())
    }

    /// Whether a document passes what a class expression above the anchors asks; asked once an EHR, once a shape where it decides.
    fn passes(&self, expr: &ClassExpr, doc: &Doc, known: &mut HashMap<(usize, Fragment), bool>) -> bool {
        let fragment = match expr.class {
            Cls::EHR => self.batch.ehr_fragment(doc.ehr),
            class if class.is_a(Cls::VERSION) => Some(doc.version),
            _ => doc.data,
        };
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

/// What a variable above the anchors gives for one document.
struct OfWhole {
    variable: usize,
    rows: WholeRows,
}

enum WholeRows {
    /// Those of every fragment of the shape.
    Same(Rc<Expansion>, Fragment),
    /// Found for this fragment.
    Own(Rows),
}

impl OfWhole {
    fn rows(&self, width: usize) -> Vec<Vec<Node>> {
        match &self.rows {
            WholeRows::Own(rows) => rows.iter().map(<[Node]>::to_vec).collect(),
            WholeRows::Same(expansion, fragment) => match &**expansion {
                Expansion::Rows(rows) => rows
                    .iter()
                    .map(|cells| {
                        let mut row = vec![Node::NONE; width];
                        set_cells(&mut row, cells, *fragment);
                        row
                    })
                    .collect(),
                _ => Vec::new(),
            },
        }
    }
}

/// One fragment an anchor: the choice with this number, the last anchor varying fastest.
fn chosen(fragments: &[Vec<Range<usize>>], choice: usize) -> Vec<Range<usize>> {
    let mut rest = choice;
    let mut chosen: Vec<Range<usize>> = fragments
        .iter()
        .rev()
        .filter_map(|of_anchor| {
            let index = rest % of_anchor.len().max(1);
            rest /= of_anchor.len().max(1);
            of_anchor.get(index).cloned()
        })
        .collect();
    chosen.reverse();
    chosen
}

impl Hits {
    fn push(&mut self, (place, order): (u32, u64), doc: u32, nodes: &[Node]) {
        let start = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push((place, order, doc, start));
        self.nodes.extend_from_slice(nodes);
    }

    fn nodes_of(&self, index: usize) -> Option<&[Node]> {
        let start = self.rows.get(index)?.3 as usize * self.width;
        self.nodes.get(start..start + self.width)
    }

    /// The rows of each fragment in a document; documents are asked for in order, `start` tells how far the last one went.
    fn fragments_of(&self, doc: u32, start: &mut usize) -> Vec<Range<usize>> {
        let rest = self.rows.get(*start..).unwrap_or_default();
        *start += rest.iter().take_while(|(.., d, _)| *d < doc).count();
        let of_document = self.rows.get(*start..).unwrap_or_default().iter().take_while(|(.., d, _)| *d == doc).count();
        let mut at = *start;
        *start += of_document;
        let lengths = self.rows.get(at..*start).unwrap_or_default().chunk_by(|a, b| a.0 == b.0).map(<[_]>::len);
        lengths
            .map(|length| {
                at += length;
                at - length..at
            })
            .collect()
    }
}

fn merge(row: &mut [Node], extra: &[Node]) {
    for (cell, other) in row.iter_mut().zip(extra) {
        if !other.is_none() {
            *cell = *other;
        }
    }
}

fn merged(row: &[Node], extra: &[Node]) -> Vec<Node> {
    let mut row = row.to_vec();
    merge(&mut row, extra);
    row
}
