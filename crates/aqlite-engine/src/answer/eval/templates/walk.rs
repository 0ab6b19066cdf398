//! Fragments that are walked one by one, because no row template describes their rows.

use super::super::QueryError;
use super::super::accumulator::order_at;
use super::super::anchors::Conjunct;
use super::super::block::RowPosition;
use super::super::execution_path::ExecutionPath;
use super::super::node::Node;
use super::super::rows::Rows;
use super::super::work::{ROW, STEP};
use super::anchor_rows::AnchorRows;
use super::sink::GroupSink;
use super::{Abort, AnchorSearch, RowTemplateEvaluator, Sink};
use crate::answer::trie::Trie;
use crate::document::{Fragment, Table};

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Walks a fragment, and keeps the rows that satisfy the conjuncts of the anchor.
    pub(super) fn walk(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        trie: &'p Trie,
        (table, number): (&Table, u32),
        row: u32,
    ) -> Result<(), Abort> {
        self.check_cancelled(&mut search.rows_since_check, 0)?;
        self.work.taken.note(ExecutionPath::WalkedFragments);
        let evaluator = self.evaluator();
        let at = |values: &[u32]| values.get(row as usize).copied();
        let (preorder, doc) =
            at(table.preorder())
                .zip(at(table.docs()))
                .ok_or(QueryError::Broken(
                    "a fragment has no position in its batch",
                ))?;
        let rows = self.walked(trie, Node::root(Fragment { table: number, row }))?;
        self.work.add(STEP * rows.len() as u64);
        for (within, row) in (0..).zip(rows.iter()) {
            self.check_cancelled(&mut search.rows_since_check, 0)?;
            let passes = |c: &Conjunct<'p>| evaluator.truth(c.condition, row) == Some(true);
            if search.conjuncts.iter().all(passes) {
                search
                    .walked
                    .push(RowPosition { preorder, within }, doc, row);
            }
        }
        self.check_rows(search.walked.rows.len() as u64)
    }

    /// Passes the rows of walked fragments to a sink.
    pub(super) fn emit_walked(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), QueryError> {
        let evaluator = self.evaluator();
        let walked = std::mem::replace(&mut search.walked, AnchorRows::new(self.plan.width));
        self.work.add(ROW * walked.rows.len() as u64);
        for (i, kept) in walked.rows.iter().enumerate() {
            let position = kept.position;
            let row = walked
                .nodes_of(i)
                .ok_or(QueryError::Broken("a row that was kept has no nodes"))?;
            match sink {
                Sink::Fold(GroupSink { groups, start }) => {
                    groups.fold_row(evaluator, row, order_at(*start, position))
                }
                Sink::Group(GroupSink { groups, start }, _) => {
                    groups.take(evaluator, row, order_at(*start, position))
                }
                Sink::Sort(output) => output.take_at(evaluator, row, position),
                Sink::Fill(projection) => {
                    projection.take_row(row, position.preorder, kept.document)
                }
                Sink::AnchorRows(anchor_rows) => anchor_rows.push(position, kept.document, row),
                Sink::Blocks(found) => found.walked.push(position, kept.document, row),
            }
        }
        self.budget.check(sink.len(), sink.bytes())
    }

    /// Returns the rows of one variable, computed by a walk.
    pub(super) fn walked(&self, trie: &Trie, node: Node) -> Result<Rows, QueryError> {
        let expander = self.expander(self.view());
        let rows = expander.walked(trie, node);
        if rows.len() > expander.max_rows {
            Err(QueryError::TooManyCombinations(expander.max_rows))
        } else {
            Ok(rows)
        }
    }
}
