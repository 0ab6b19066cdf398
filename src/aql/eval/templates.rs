//! Row templates: what a query makes of one shape, found once and used for all its fragments.
//!
//! Population queries whose FROM names entries of a document (`… COMPOSITION c CONTAINS OBSERVATION o`, or several of them
//! by AND) need no walk per document. Each entry class is an *anchor*: its tables are found by shape, its paths are
//! expanded once per shape (by the same expander, watched: where a slot or a run decides, the shape has no template and
//! its fragments are expanded one by one), and conditions on it are tested column by column. What passes is joined by
//! document and put into document order.

use super::bind::{is_current, pins_local_code};
use super::condition::Judge;
use super::expand::{Expander, Rows};
use super::node::{Node, View};
use super::output::Output;
use super::predicate::Tester;
use super::value::holds;
use super::{Budget, QueryError};
use crate::aql::plan::Plan;
use crate::aql::query::{ClassExpr, CompareOp, Condition, Contains, Expr, Literal, Predicate, Source, Versions};
use crate::aql::trie::Trie;
use crate::document::{Batch, Column, Fragment, ItemKind, Table};
use crate::rm::class::Cls;
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

/// The parts of FROM that this way of evaluating needs to tell apart.
#[derive(Debug)]
pub(super) struct Anchors<'p> {
    /// EHR, VERSION, COMPOSITION: what a document is bound to as a whole.
    above: Vec<&'p ClassExpr>,
    /// The entries, in textual order; the last of `above` when there are none below it.
    entries: Vec<&'p ClassExpr>,
}

/// The conjuncts of WHERE that speak of one anchor only, with the number of EXISTS conditions before each.
type Conjuncts<'p> = Vec<(&'p Condition, usize)>;

/// A variable and its rows.
type OfVariable = (usize, Vec<Vec<Node>>);

/// The passing rows of one anchor, in document order.
struct Hits {
    /// Document and place of the fragment, and where its nodes begin.
    rows: Vec<(u32, u32, u32)>,
    nodes: Vec<Node>,
    width: usize,
}

impl<'p> Anchors<'p> {
    /// The anchors of a query, when it can be answered by templates.
    pub fn of(plan: &'p Plan) -> Option<Anchors<'p>> {
        let mut anchors = Anchors { above: Vec::new(), entries: Vec::new() };
        let mut source = &plan.query.from;
        loop {
            match source {
                Source::Class(expr) if rank(expr).is_some() => {
                    if anchors.above.last().is_some_and(|outer| rank(outer) >= rank(expr)) {
                        return None;
                    }
                    anchors.above.push(expr);
                    match &expr.contains {
                        Contains::Some(inner) => source = inner,
                        Contains::Nothing if matches!(expr.class, Cls::COMPOSITION | Cls::EHR_STATUS) => {
                            anchors.entries.push(expr);
                            break;
                        }
                        _ => return None,
                    }
                }
                _ => {
                    collect_entries(source, &mut anchors.entries)?;
                    break;
                }
            }
        }
        (plan.single && plan.scan().ehr.is_none() && anchors.entries.len() <= 3).then_some(anchors)
    }
}

/// The level of a class expression that binds a document as a whole.
fn rank(expr: &ClassExpr) -> Option<u8> {
    match expr.class {
        Cls::EHR => Some(0),
        class if class.is_a(Cls::VERSION) && expr.versions == Versions::Latest => Some(1),
        Cls::COMPOSITION | Cls::EHR_STATUS => Some(2),
        _ => None,
    }
}

fn collect_entries<'p>(source: &'p Source, entries: &mut Vec<&'p ClassExpr>) -> Option<()> {
    match source {
        Source::And(left, right) => {
            collect_entries(left, entries)?;
            collect_entries(right, entries)
        }
        Source::Class(expr) if expr.contains == Contains::Nothing && is_anywhere(expr) => {
            entries.push(expr);
            Some(())
        }
        _ => None,
    }
}

/// True for an entry or section that is looked for at any depth of a document.
fn is_anywhere(expr: &ClassExpr) -> bool {
    expr.class.is_a(Cls::CONTENT_ITEM) && !expr.predicate.as_ref().is_some_and(pins_local_code)
}

/// Evaluates one plan over one batch by templates.
pub(super) struct ByTemplate<'p, 'b> {
    pub plan: &'p Plan,
    pub anchors: &'p Anchors<'p>,
    pub batch: &'b Batch,
    pub now: &'p str,
    pub budget: Budget,
    pub stopped: &'p dyn Fn() -> bool,
}

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// Gives every passing row to the output, in document order.
    pub fn run(&self, output: &mut Output) -> Result<(), QueryError> {
        let documents = Documents::new(self);
        let (per_anchor, rest_is_true) = self.split_condition();
        let mut hits = Vec::new();
        for (anchor, conjuncts) in self.anchors.entries.iter().zip(per_anchor) {
            hits.push(self.hits(anchor, &conjuncts, &documents)?);
        }
        self.join(&hits, &documents, rest_is_true, output)
    }

    fn view(&self) -> View<'b> {
        View::new(self.batch)
    }

    fn judge(&self) -> Judge<'p, 'b> {
        Judge { plan: self.plan, view: self.view(), now: self.now }
    }

    fn trie_of(&self, expr: &ClassExpr) -> Option<&'p Trie> {
        self.plan.tries.iter().find(|t| t.variable == expr.variable)
    }

    /// The conjuncts of each anchor, and whether they are all of WHERE.
    fn split_condition(&self) -> (Vec<Conjuncts<'p>>, bool) {
        let mut per_anchor: Vec<Conjuncts<'p>> = self.anchors.entries.iter().map(|_| Vec::new()).collect();
        let terms: Vec<&'p Condition> = match &self.plan.query.condition {
            Some(Condition::And(terms)) => terms.iter().collect(),
            other => other.iter().collect(),
        };
        let (mut exists, mut taken) = (0, 0);
        for term in &terms {
            let mut variables = Vec::new();
            let before = exists;
            self.variables_of(term, &mut variables, &mut exists);
            let anchor = self.anchors.entries.iter().position(|e| variables.iter().all(|v| *v == e.variable));
            if let Some(conjuncts) = anchor.and_then(|a| per_anchor.get_mut(a)) {
                conjuncts.push((*term, before));
                taken += 1;
            }
        }
        (per_anchor, taken == terms.len())
    }

    fn variables_of(&self, condition: &Condition, found: &mut Vec<usize>, exists: &mut usize) {
        let mut of_expr = |expr: &Expr| each_path(expr, &mut |p| found.extend(self.plan.query.paths.get(p).map(|path| path.variable)));
        match condition {
            Condition::And(terms) | Condition::Or(terms) => terms.iter().for_each(|t| self.variables_of(t, found, exists)),
            Condition::Not(inner) => self.variables_of(inner, found, exists),
            Condition::Compare(left, _, right) => {
                of_expr(left);
                of_expr(right);
            }
            Condition::Like(expr, _) | Condition::Matches(expr, _) => of_expr(expr),
            Condition::Exists(path) => {
                *exists += 1;
                found.push(path.variable);
            }
            Condition::Constant(_) => {}
        }
    }

    /// The rows of one anchor that pass its own conditions.
    fn hits(&self, anchor: &'p ClassExpr, conjuncts: &Conjuncts<'p>, documents: &Documents<'_, 'p, 'b>) -> Result<Hits, QueryError> {
        let mut hits = Hits { rows: Vec::new(), nodes: Vec::new(), width: self.plan.width };
        for (number, table) in (0u32..).zip(self.batch.tables()) {
            if (self.stopped)() {
                return Err(QueryError::Stopped);
            }
            let class = table.shape().class();
            if !class.is_a(anchor.class) || class.is_a(Cls::VERSION) {
                continue;
            }
            let differs = Cell::new(false);
            let passes = |row: u32, view: View<'_>| {
                let root = Node::root(Fragment { table: number, row });
                anchor.predicate.as_ref().is_none_or(|p| Tester { plan: self.plan, view }.holds(p, root))
            };
            let first = passes(0, self.view().watched(&differs));
            let by_row = differs.get();
            if !by_row && !first {
                continue;
            }
            let wanted = |row: u32| table.docs().get(row as usize).is_some_and(|d| documents.is_wanted(*d)) && (!by_row || passes(row, self.view()));
            self.hits_of_table(anchor, conjuncts, number, table, &wanted, &mut hits)?;
        }
        hits.rows.sort_unstable_by_key(|(_, place, start)| (*place, *start));
        Ok(hits)
    }

    fn hits_of_table(
        &self,
        anchor: &ClassExpr,
        conjuncts: &Conjuncts<'p>,
        number: u32,
        table: &'b Table,
        wanted: &dyn Fn(u32) -> bool,
        hits: &mut Hits,
    ) -> Result<(), QueryError> {
        let rows = 0..u32::try_from(table.len()).unwrap_or(u32::MAX);
        let of_row = |row: u32| Node::root(Fragment { table: number, row });
        let Some(trie) = self.trie_of(anchor) else {
            let single = vec![Node::NONE; self.plan.width];
            rows.filter(|row| wanted(*row) && self.passes(conjuncts, &single)).for_each(|row| hits.push(table, row, &single));
            return Ok(());
        };
        let differs = Cell::new(false);
        let templates = self.expanded(trie, of_row(0), self.view().watched(&differs))?;
        if differs.get() {
            for row in rows.filter(|row| wanted(*row)) {
                self.expanded(trie, of_row(row), self.view())?.iter().filter(|r| self.passes(conjuncts, r)).for_each(|r| hits.push(table, row, r));
            }
            return Ok(());
        }
        for template in templates.iter() {
            let mut selected: Vec<u32> = rows.clone().collect();
            let mut nodes = template.to_vec();
            for conjunct in conjuncts {
                match fast_test(conjunct.0, &nodes, table) {
                    Some((values, op, limit)) => {
                        selected.retain(|row| values.get(*row as usize).is_some_and(|v| v.partial_cmp(&limit).is_some_and(|o| holds(op, o))))
                    }
                    None => selected.retain(|row| {
                        set_row(&mut nodes, *row);
                        self.passes(std::slice::from_ref(conjunct), &nodes)
                    }),
                }
            }
            for row in selected.into_iter().filter(|row| wanted(*row)) {
                set_row(&mut nodes, row);
                hits.push(table, row, &nodes);
            }
        }
        Ok(())
    }

    /// The rows of one variable, if the budget allows them.
    fn expanded(&self, trie: &Trie, node: Node, view: View<'_>) -> Result<Rows, QueryError> {
        let rows = Expander { plan: self.plan, view, most: self.budget.rows, plain: false }.walked(trie, node);
        self.within_budget(rows.len()).map(|()| rows)
    }

    fn within_budget(&self, rows: usize) -> Result<(), QueryError> {
        if rows > self.budget.rows { Err(QueryError::TooManyRows(self.budget.rows)) } else { Ok(()) }
    }

    fn passes(&self, conjuncts: &[(&'p Condition, usize)], row: &[Node]) -> bool {
        conjuncts.iter().all(|(condition, before)| self.judge().truth(condition, row, &mut before.clone()) == Some(true))
    }

    /// Joins within each document: every choice of one fragment an anchor, in document order, gives the product of the rows
    /// of all variables.
    fn join(&self, hits: &[Hits], documents: &Documents<'_, 'p, 'b>, rest_is_true: bool, output: &mut Output) -> Result<(), QueryError> {
        let Some(first) = hits.first() else { return Ok(()) };
        let judge = self.judge();
        let mut at = 0;
        while let Some((doc, ..)) = first.rows.get(at) {
            let fragments: Vec<Vec<Range<usize>>> = hits.iter().map(|h| h.fragments_of(*doc)).collect();
            at = fragments.first().and_then(|f| f.last()).map_or(usize::MAX, |last| last.end);
            let choices = fragments.iter().map(Vec::len).product();
            let whole = if choices > 0 { documents.rows(*doc)? } else { Vec::new() };
            for choice in 0..choices {
                if choice % 4096 == 4095 && (self.stopped)() {
                    return Err(QueryError::Stopped);
                }
                let chosen = chosen(&fragments, choice);
                for row in self.rows(hits, &chosen, &whole)? {
                    if rest_is_true || judge.keeps(&row) {
                        output.take(judge, &row, 0);
                    }
                }
                self.within_budget(output.len())?;
            }
        }
        Ok(())
    }

    /// The product of the rows of all variables, in order of their first use.
    fn rows(&self, hits: &[Hits], chosen: &[Range<usize>], whole: &[OfVariable]) -> Result<Vec<Vec<Node>>, QueryError> {
        let mut rows: Vec<Vec<Node>> = Vec::new();
        for trie in &self.plan.tries {
            let anchor = self.anchors.entries.iter().position(|e| e.variable == trie.variable);
            let of_anchor = anchor.and_then(|a| hits.get(a).zip(chosen.get(a))).into_iter();
            let of_whole = whole.iter().filter(|(variable, _)| *variable == trie.variable && anchor.is_none());
            let more = of_anchor.flat_map(|(hits, range)| range.clone().filter_map(|i| hits.nodes_of(i)));
            let more = more.chain(of_whole.flat_map(|(_, rows)| rows.iter().map(Vec::as_slice)));
            self.within_budget(rows.len().saturating_mul(more.clone().count()))?;
            rows = if rows.is_empty() {
                more.map(<[Node]>::to_vec).collect()
            } else {
                rows.iter().flat_map(|row| more.clone().map(|extra| merged(row, extra))).collect()
            };
        }
        Ok(if rows.is_empty() { vec![vec![Node::NONE; self.plan.width]] } else { rows })
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
    fn push(&mut self, table: &Table, row: u32, nodes: &[Node]) {
        if let (Some(doc), Some(place)) = (table.docs().get(row as usize), table.places().get(row as usize)) {
            let start = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
            self.rows.push((*doc, *place, start));
            self.nodes.extend_from_slice(nodes);
        }
    }

    fn nodes_of(&self, index: usize) -> Option<&[Node]> {
        let (_, _, start) = self.rows.get(index)?;
        self.nodes.get(*start as usize..*start as usize + self.width)
    }

    /// The rows of each fragment in a document.
    fn fragments_of(&self, doc: u32) -> Vec<Range<usize>> {
        let start = self.rows.partition_point(|(d, ..)| *d < doc);
        let of_document = self.rows.get(start..).unwrap_or_default().split(|(d, ..)| *d != doc).next().unwrap_or_default();
        let mut at = start;
        let lengths = of_document.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len);
        lengths
            .map(|length| {
                at += length;
                at - length..at
            })
            .collect()
    }
}

/// What is bound to documents as a whole, and which documents take part.
struct Documents<'t, 'p, 'b> {
    run: &'t ByTemplate<'p, 'b>,
    /// For each table of document roots: whether its shape passes, when the shape decides it.
    roots: HashMap<u32, Option<bool>>,
    visible: Vec<bool>,
}

impl<'t, 'p: 'b, 'b> Documents<'t, 'p, 'b> {
    fn new(run: &'t ByTemplate<'p, 'b>) -> Documents<'t, 'p, 'b> {
        let mut documents = Documents { run, roots: HashMap::new(), visible: Vec::new() };
        let ehrs: Vec<bool> = documents.visible_ehrs();
        documents.visible = Vec::with_capacity(run.batch.len());
        let kinds = &run.plan.scan().kinds;
        for doc in run.batch.docs() {
            let candidate = is_current(doc) && kinds.contains(&doc.row.kind) && ehrs.get(doc.ehr as usize).copied().unwrap_or(false);
            let wanted = candidate && documents.passes(doc);
            documents.visible.push(wanted);
        }
        documents
    }

    fn visible_ehrs(&self) -> Vec<bool> {
        let batch = self.run.batch;
        let size = batch.ehrs().map(|(n, _)| n + 1).max().unwrap_or(0);
        let mut visible = vec![false; size as usize];
        for (number, row) in batch.ehrs() {
            let node = batch.ehr_fragment(number).map(Node::root);
            let predicates = self.run.anchors.above.iter().filter(|e| e.class == Cls::EHR).filter_map(|e| e.predicate.as_ref());
            let wanted = row.is_queryable && predicates.into_iter().all(|p| node.is_some_and(|n| self.holds(p, n)));
            if let Some(flag) = visible.get_mut(number as usize) {
                *flag = wanted;
            }
        }
        visible
    }

    fn holds(&self, predicate: &Predicate, node: Node) -> bool {
        Tester { plan: self.run.plan, view: self.run.view() }.holds(predicate, node)
    }

    fn passes(&mut self, doc: &crate::document::Doc) -> bool {
        let Some(data) = doc.data else { return false };
        match self.roots.get(&data.table) {
            Some(Some(known)) => return *known,
            Some(None) => return self.passes_above(doc.version, data, self.run.view()),
            None => {}
        }
        let differs = Cell::new(false);
        let passes = self.passes_above(doc.version, data, self.run.view().watched(&differs));
        self.roots.insert(data.table, (!differs.get()).then_some(passes));
        passes
    }

    fn passes_above(&self, version: Fragment, data: Fragment, view: View<'_>) -> bool {
        let tester = Tester { plan: self.run.plan, view };
        let node = |expr: &ClassExpr| Node::root(if expr.class.is_a(Cls::VERSION) { version } else { data });
        let of_document = self.run.anchors.above.iter().filter(|e| e.class != Cls::EHR);
        of_document.into_iter().all(|expr| {
            let root = node(expr);
            view.class(root).is_a(expr.class) && expr.predicate.as_ref().is_none_or(|p| tester.holds(p, root))
        })
    }

    fn is_wanted(&self, doc: u32) -> bool {
        self.visible.get(doc as usize).copied().unwrap_or(false)
    }

    /// The rows that EHR, VERSION and COMPOSITION give for a document, by variable; anchors excluded.
    fn rows(&self, doc: u32) -> Result<Vec<OfVariable>, QueryError> {
        let Some(doc) = self.run.batch.doc(doc) else { return Ok(Vec::new()) };
        let anchors = &self.run.anchors;
        let above = anchors.above.iter().filter(|e| !anchors.entries.iter().any(|a| a.variable == e.variable));
        above
            .filter_map(|expr| {
                let trie = self.run.trie_of(expr)?;
                let fragment = match expr.class {
                    Cls::EHR => self.run.batch.ehr_fragment(doc.ehr)?,
                    class if class.is_a(Cls::VERSION) => doc.version,
                    _ => doc.data?,
                };
                let rows = self.run.expanded(trie, Node::root(fragment), self.run.view());
                Some(rows.map(|rows| (expr.variable, rows.iter().map(<[Node]>::to_vec).collect())))
            })
            .collect()
    }
}

fn merged(row: &[Node], extra: &[Node]) -> Vec<Node> {
    row.iter().zip(extra).map(|(a, b)| if b.is_none() { *a } else { *b }).collect()
}

fn set_row(nodes: &mut [Node], row: u32) {
    for node in nodes.iter_mut().filter(|n| !n.is_none()) {
        node.fragment.row = row;
    }
}

/// A comparison of a number slot with a number: the column, and what its values are compared with.
fn fast_test<'b>(condition: &Condition, template: &[Node], table: &'b Table) -> Option<(&'b [f64], CompareOp, f64)> {
    let Condition::Compare(Expr::Path(path), op, Expr::Literal(Literal::Number(token))) = condition else { return None };
    let node = template.get(*path).filter(|n| !n.is_none())?;
    let ItemKind::Slot(_, slot) = table.shape().item(node.item)?.kind else { return None };
    let Column::Number(numbers) = table.column(slot)? else { return None };
    Some((numbers.values(), *op, token.parse().ok()?))
}

fn each_path(expr: &Expr, visit: &mut dyn FnMut(usize)) {
    match expr {
        Expr::Path(path) => visit(*path),
        Expr::Literal(_) => {}
        Expr::Call(_, arguments) => arguments.iter().for_each(|a| each_path(a, visit)),
    }
}
