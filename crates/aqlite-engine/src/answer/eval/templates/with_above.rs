//! Rows of one anchor with cells of the classes above it, block by block.
//!
//! A query that aggregates, groups or sorts entries often reads their composition or EHR too
//! (`max(c/context/start_time/value)`). If each document has one row of the classes above, their
//! fragments are attached to the blocks of the anchor, and their columns are read like its own.

use super::above::AboveVariable;
use super::sink::{FoundBlocks, Sink};
use super::{Abort, AnchorSearch, RowTemplateEvaluator};
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
struct AttachedRows {
    /// The number of their table.
    table: u32,
    cells: Cells,
    /// The row of the fragment of each row of the piece.
    rows: Vec<u32>,
}

/// Rows of a block whose fragments above have the same tables and cells.
struct BlockPiece {
    /// The indexes of the rows in the block.
    indices: Vec<usize>,
    above: Vec<AttachedRows>,
}

impl BlockPiece {
    fn new(above: &[(Fragment, &Cells)]) -> BlockPiece {
        let rows = |(fragment, cells): &(Fragment, &Cells)| AttachedRows {
            table: fragment.table,
            cells: Rc::clone(cells),
            rows: Vec::new(),
        };
        BlockPiece {
            indices: Vec::new(),
            above: above.iter().map(rows).collect(),
        }
    }

    fn has_same_cells(&self, above: &[(Fragment, &Cells)]) -> bool {
        let is_same = |(own, (fragment, cells)): (&AttachedRows, &(Fragment, &Cells))| {
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
fn single_rows<'c>(above: &'c [AboveVariable<'_>]) -> Option<Vec<(Fragment, &'c Cells)>> {
    let single = |variable: &'c AboveVariable<'_>| match variable.templates() {
        Some(([cells], fragment)) => Some((fragment, cells)),
        _ => None,
    };
    above.iter().map(single).collect()
}

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
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
        let found = self.find_blocks(document, &own, scope, None)?;
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
        (anchor_conjuncts, other_conjuncts): (&[Conjunct<'p>], &[Conjunct<'p>]),
        scope: &Scope<'b>,
        output: &mut Output,
    ) -> Result<bool, Abort> {
        let query = &self.plan.query;
        let mut above = self.above();
        if Sink::without_order(query, output).is_none()
            || !self.has_single_rows(scope, &mut above)?
        {
            return Ok(false);
        }
        // Rows may be excluded before the classes above are read if no later condition removes
        // others. Their ranks are collected once.
        let before = TopK::of(query, &[anchor.variable]).filter(|_| other_conjuncts.is_empty());
        let is_reduced = before.is_some();
        let found = self.find_blocks(anchor, anchor_conjuncts, scope, before)?;
        let Some(found) = self.with_above(found, &mut above)? else {
            self.work.best_ranks.borrow_mut().discard();
            return Ok(false);
        };
        let Some(mut sink) = Sink::without_order(query, output) else {
            return Ok(false);
        };
        self.work.taken.note(ExecutionPath::AboveColumns);
        let variables: Vec<usize> = self.plan.tries.iter().map(|t| t.variable).collect();
        let top_k = TopK::of(query, &variables).filter(|_| !is_reduced);
        self.emit_with_above(other_conjuncts, found, top_k, &mut sink)?;
        output.advance_position(u64::from(self.batch.fragment_count()));
        Ok(true)
    }

    /// Returns the rows of an anchor that satisfy its conjuncts and are among the first ones.
    fn find_blocks(
        &self,
        anchor: &'p ClassExpr,
        conjuncts: &[Conjunct<'p>],
        scope: &Scope<'b>,
        top_k: Option<TopK<'b>>,
    ) -> Result<FoundBlocks<'b>, Abort> {
        let mut sink = Sink::Blocks(FoundBlocks::new(self.plan.width));
        self.search(anchor, conjuncts, scope, top_k, &mut sink)?;
        match sink {
            Sink::Blocks(found) => Ok(found),
            _ => Err(super::broken("a sink of blocks became another one")),
        }
    }

    /// Returns whether the first document of the scope has exactly one row of each class above.
    /// Other documents usually are alike, so this saves a search whose rows could not be used.
    fn has_single_rows(
        &self,
        scope: &Scope<'b>,
        above: &mut [AboveVariable<'p>],
    ) -> Result<bool, Abort> {
        let Some(document) = scope.first_document() else {
            return Ok(true);
        };
        self.update_above_rows(document, above)?;
        Ok(single_rows(above).is_some())
    }

    /// Attaches the fragments of the classes above to rows; `None` if a document does not have
    /// exactly one row of each class.
    fn with_above(
        &self,
        found: FoundBlocks<'b>,
        above: &mut [AboveVariable<'p>],
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
            self.update_above_rows(walked.document, above)?;
            let (Some(single), Some(nodes)) = (single_rows(above), found.walked.nodes_of(i)) else {
                return Ok(None);
            };
            row.clone_from_slice(nodes);
            for (fragment, cells) in single {
                project_cells(self.view(), &mut row, cells, fragment);
            }
            with.walked.push(walked.position, walked.document, &row);
        }
        Ok(Some(with))
    }

    /// Splits the rows of a block by the tables and cells of their fragments above.
    fn parts_of(
        &self,
        block: &Block<'b>,
        above: &mut [AboveVariable<'p>],
    ) -> Result<Option<Vec<BlockPiece>>, QueryError> {
        let rows = block.rows.rows();
        self.work.add(rows.len() as u64 * (1 + above.len()) as u64);
        let docs = block.table.docs();
        let doc = |row: &u32| docs.get(*row as usize).copied();
        let (mut parts, mut last, mut at) = (Vec::<BlockPiece>::new(), 0, 0);
        for of_doc in rows.chunk_by(|a, b| doc(a) == doc(b)) {
            // A document that is unknown is none of the batch, so it has no rows above.
            let document = of_doc.first().and_then(doc).unwrap_or(u32::MAX);
            self.update_above_rows(document, above)?;
            let Some(single) = single_rows(above) else {
                return Ok(None);
            };
            if !parts
                .get(last)
                .is_some_and(|part| part.has_same_cells(&single))
            {
                let known = parts.iter().position(|part| part.has_same_cells(&single));
                last = known.unwrap_or(parts.len());
                if known.is_none() {
                    parts.push(BlockPiece::new(&single));
                }
            }
            let next = at + of_doc.len();
            if let Some(part) = parts.get_mut(last) {
                (at..next).for_each(|index| part.push(index, &single));
            }
            at = next;
        }
        Ok(Some(parts))
    }

    /// Returns the block of a part, with its fragments above.
    fn attached(&self, block: &Block<'b>, part: BlockPiece) -> Result<Block<'b>, Abort> {
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
                template: 0,
                parent_rows: ParentRows::None,
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
        top_k: Option<TopK<'b>>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        let mut search = AnchorSearch::new(None, rest, top_k, self.plan.width);
        let evaluator = self.evaluator();
        for (i, walked) in found.walked.rows.iter().enumerate() {
            let Some(row) = found.walked.nodes_of(i) else {
                return Err(super::broken("a row that was kept has no nodes"));
            };
            let passes = |c: &Conjunct<'p>| evaluator.truth(c.condition, row) == Some(true);
            if rest.iter().all(passes) {
                search.walked.push(walked.position, walked.document, row);
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
        self.emit_top_k(&mut search, sink)
    }
}
