//! Rows of one anchor with cells of the classes above it, block by block.
//!
//! A query that aggregates, groups or sorts entries often reads their composition or EHR too
//! (`max(c/context/start_time/value)`). If each document has one row of the classes above, their
//! fragments are attached to the blocks of the anchor, and their columns are read like its own.

use super::above::ContextVariable;
use super::sink::{FoundBlocks, Sink};
use super::{Abort, AnchorSearch, ByTemplate};
use crate::answer::eval::QueryError;
use crate::answer::eval::anchors::Conjunct;
use crate::answer::eval::block::{Block, ParentRows, project_cells};
use crate::answer::eval::execution_path::ExecutionPath;
use crate::answer::eval::node::Node;
use crate::answer::eval::output::Output;
use crate::answer::eval::scope::Scope;
use crate::answer::eval::selection::Selection;
use crate::answer::eval::top_k::TopK;
use crate::answer::plan_cache::Cells;
use crate::answer::query::ClassExpr;
use crate::document::{Fragment, absent_reads};
use aqlite_rm::class::Cls;
use std::rc::Rc;

/// The fragments of one class above that have the same cells.
struct AboveRows {
    /// The number of their table.
    table: u32,
    cells: Cells,
    /// The row of the fragment of each row of the part.
    rows: Vec<u32>,
}

/// Rows of a block whose fragments above have the same tables and cells.
struct Part {
    /// The indexes of the rows in the block.
    indices: Vec<usize>,
    above: Vec<AboveRows>,
}

impl Part {
    fn new(above: &[(Fragment, &Cells)]) -> Part {
        let rows = |(fragment, cells): &(Fragment, &Cells)| AboveRows {
            table: fragment.table,
            cells: Rc::clone(cells),
            rows: Vec::new(),
        };
        Part {
            indices: Vec::new(),
            above: above.iter().map(rows).collect(),
        }
    }

    fn fits(&self, above: &[(Fragment, &Cells)]) -> bool {
        let is_same = |(own, (fragment, cells)): (&AboveRows, &(Fragment, &Cells))| {
            own.table == fragment.table && Rc::ptr_eq(&own.cells, cells)
        };
        self.above.iter().zip(above).all(is_same)
    }

    fn push(&mut self, index: usize, above: &[(Fragment, &Cells)]) {
        self.indices.push(index);
        for (own, (fragment, _)) in self.above.iter_mut().zip(above) {
            own.rows.push(fragment.row);
        }
    }
}

/// Returns the fragment and the cells of each variable above in the current document; `None` if one
/// of them has not exactly one row.
fn only_rows<'c>(above: &'c [ContextVariable<'_>]) -> Option<Vec<(Fragment, &'c Cells)>> {
    let only = |variable: &'c ContextVariable<'_>| match variable.templates() {
        Some(([cells], fragment)) => Some((fragment, cells)),
        _ => None,
    };
    above.iter().map(only).collect()
}

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// Restricts the scope to the documents that satisfy the conjuncts about the document alone.
    /// The rows are tested again later, because a document may have several rows.
    pub(super) fn narrow_by_document(
        &self,
        conjuncts: &[Conjunct<'p>],
        scope: &mut Scope<'b>,
    ) -> Result<(), Abort> {
        let is_document =
            |expr: &&&ClassExpr| matches!(expr.class, Cls::COMPOSITION | Cls::EHR_STATUS);
        let document = self.anchors.above.iter().find(is_document);
        let (Some(document), Scope::Flagged(..)) = (document, &*scope) else {
            return Ok(());
        };
        let is_own = |conjunct: &&Conjunct<'p>| {
            let mut variables = conjunct.variables.iter();
            !conjunct.variables.is_empty() && variables.all(|v| *v == document.variable)
        };
        let own: Vec<Conjunct<'p>> = conjuncts.iter().filter(is_own).cloned().collect();
        if own.is_empty() {
            return Ok(());
        }
        self.work.taken.note(ExecutionPath::NarrowedScope);
        let found = self.find(document, &own, scope, None)?;
        let view = self.view();
        let in_blocks = found.blocks.iter().flat_map(|block| {
            let docs = block.table.docs();
            let rows = block.rows.rows().into_owned().into_iter();
            rows.filter_map(|row| docs.get(row as usize).copied())
        });
        scope.narrow(view, in_blocks.chain(found.walked.documents()));
        Ok(())
    }

    /// Aggregates, groups or sorts the rows of an anchor with cells of the classes above it.
    /// `conjuncts` are those about the anchor alone and the others. Returns false without effect if
    /// the query does none of these, or if a document does not have exactly one row of each class.
    pub(super) fn consume_with_above(
        &self,
        anchor: &'p ClassExpr,
        (own, rest): (&[Conjunct<'p>], &[Conjunct<'p>]),
        scope: &Scope<'b>,
        output: &mut Output,
    ) -> Result<bool, Abort> {
        let query = &self.plan.query;
        let mut above = self.above();
        if Sink::without_order(query, output).is_none() || !self.has_only_rows(scope, &mut above)? {
            return Ok(false);
        }
        // Rows may be excluded before the classes above are read if no later condition removes
        // others. Their ranks are collected once.
        let before = TopK::of(query, &[anchor.variable]).filter(|_| rest.is_empty());
        let is_reduced = before.is_some();
        let found = self.find(anchor, own, scope, before)?;
        let Some(found) = self.with_above(found, &mut above)? else {
            self.work.best_ranks.borrow_mut().discard();
            return Ok(false);
        };
        let Some(mut sink) = Sink::without_order(query, output) else {
            return Ok(false);
        };
        self.work.taken.note(ExecutionPath::AboveColumns);
        let variables: Vec<usize> = self.plan.tries.iter().map(|t| t.variable).collect();
        let first = TopK::of(query, &variables).filter(|_| !is_reduced);
        self.emit_with_above(rest, found, first, &mut sink)?;
        output.advance_position(u64::from(self.batch.places()));
        Ok(true)
    }

    /// Returns the rows of an anchor that satisfy its conjuncts and are among the first ones.
    fn find(
        &self,
        anchor: &'p ClassExpr,
        conjuncts: &[Conjunct<'p>],
        scope: &Scope<'b>,
        first: Option<TopK<'b>>,
    ) -> Result<FoundBlocks<'b>, Abort> {
        let mut sink = Sink::Blocks(FoundBlocks::new(self.plan.width));
        self.search(anchor, conjuncts, scope, first, &mut sink)?;
        match sink {
            Sink::Blocks(found) => Ok(found),
            _ => Err(super::broken("a sink of blocks became another one")),
        }
    }

    /// Returns whether the first document of the scope has exactly one row of each class above.
    /// Other documents usually are alike, so this saves a search whose rows could not be used.
    fn has_only_rows(
        &self,
        scope: &Scope<'b>,
        above: &mut [ContextVariable<'p>],
    ) -> Result<bool, Abort> {
        let Some(document) = scope.first_document() else {
            return Ok(true);
        };
        self.whole_rows(document, above)?;
        Ok(only_rows(above).is_some())
    }

    /// Attaches the fragments of the classes above to rows; `None` if a document does not have
    /// exactly one row of each class.
    fn with_above(
        &self,
        found: FoundBlocks<'b>,
        above: &mut [ContextVariable<'p>],
    ) -> Result<Option<FoundBlocks<'b>>, Abort> {
        let mut with = FoundBlocks::new(self.plan.width);
        for block in found.blocks {
            let Some(parts) = self.parts_of(&block, above)? else {
                return Ok(None);
            };
            for part in parts {
                with.take(self.attached(&block, part)?);
            }
        }
        let mut row = vec![Node::NONE; self.plan.width];
        for (i, walked) in found.walked.rows.iter().enumerate() {
            self.whole_rows(walked.document, above)?;
            let (Some(only), Some(nodes)) = (only_rows(above), found.walked.nodes_of(i)) else {
                return Ok(None);
            };
            row.clone_from_slice(nodes);
            for (fragment, cells) in only {
                project_cells(self.view(), &mut row, cells, fragment);
            }
            let position = (walked.place, walked.order);
            with.walked.push(position, walked.document, &row);
        }
        Ok(Some(with))
    }

    /// Splits the rows of a block by the tables and cells of their fragments above.
    fn parts_of(
        &self,
        block: &Block<'b>,
        above: &mut [ContextVariable<'p>],
    ) -> Result<Option<Vec<Part>>, QueryError> {
        let rows = block.rows.rows();
        self.work.add(rows.len() as u64 * (1 + above.len()) as u64);
        let docs = block.table.docs();
        let doc = |row: &u32| docs.get(*row as usize).copied();
        let (mut parts, mut last, mut at) = (Vec::<Part>::new(), 0, 0);
        for of_doc in rows.chunk_by(|a, b| doc(a) == doc(b)) {
            // A document that is unknown is none of the batch, so it has no rows above.
            let document = of_doc.first().and_then(doc).unwrap_or(u32::MAX);
            self.whole_rows(document, above)?;
            let Some(only) = only_rows(above) else {
                return Ok(None);
            };
            if !parts.get(last).is_some_and(|part| part.fits(&only)) {
                let known = parts.iter().position(|part| part.fits(&only));
                last = known.unwrap_or(parts.len());
                if known.is_none() {
                    parts.push(Part::new(&only));
                }
            }
            let next = at + of_doc.len();
            if let Some(part) = parts.get_mut(last) {
                (at..next).for_each(|index| part.push(index, &only));
            }
            at = next;
        }
        Ok(Some(parts))
    }

    /// Returns the block of a part, with its fragments above.
    fn attached(&self, block: &Block<'b>, part: Part) -> Result<Block<'b>, Abort> {
        let mut attached = if part.indices.len() == block.rows.len() {
            block.clone()
        } else {
            block.part(&part.indices)
        };
        for above in part.above {
            let table = self.batch.table(above.table);
            attached.above.push(Block {
                table: table.ok_or_else(|| super::broken("a fragment has no table"))?,
                number: above.table,
                cells: above.cells,
                rows: Selection::Indices(above.rows),
                order: 0,
                over: ParentRows::Nothing,
                above: Vec::new(),
            });
        }
        Ok(attached)
    }

    /// Passes the rows that satisfy the other conjuncts to a sink.
    fn emit_with_above(
        &self,
        rest: &[Conjunct<'p>],
        found: FoundBlocks<'b>,
        first: Option<TopK<'b>>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let mut search = AnchorSearch::new(None, rest, first, self.plan.width);
        let evaluator = self.evaluator();
        for (i, walked) in found.walked.rows.iter().enumerate() {
            let Some(row) = found.walked.nodes_of(i) else {
                return Err(super::broken("a row that was kept has no nodes"));
            };
            let passes = |c: &Conjunct<'p>| evaluator.truth(c.condition, row) == Some(true);
            if rest.iter().all(passes) {
                let position = (walked.place, walked.order);
                search.walked.push(position, walked.document, row);
            }
        }
        let mut absent = None;
        for block in found.blocks {
            // A run that only finds out which parts it needs reads few rows of each table.
            if absent == Some(block.number) {
                continue;
            }
            let (before, number) = (absent_reads(), block.number);
            self.emit_block(&mut search, block, sink)?;
            if absent_reads() != before && self.work.is_void() && !self.first_only {
                absent = Some(number);
            }
        }
        self.emit_found(&mut search, sink)?;
        self.emit_first(&mut search, sink)
    }
}
