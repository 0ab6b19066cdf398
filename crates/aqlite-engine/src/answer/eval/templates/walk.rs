//! Fragments that are walked one by one, because no row template describes their rows.

use super::super::QueryError;
use super::super::anchors::Conjunct;
use super::super::execution_path::ExecutionPath;
use super::super::expand::Rows;
use super::super::node::Node;
use super::super::work::{ROW, STEP};
use super::anchor_rows::AnchorRows;
use super::{Abort, ByTemplate, Search, Sink};
use crate::answer::trie::Trie;
use crate::document::{Fragment, Table};

impl<'p: 'b, 'b> ByTemplate<'p, 'b> {
    /// Finds what passes of one fragment's rows.
    pub(super) fn walk(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        trie: &'p Trie,
        (table, number): (&Table, u32),
        row: u32,
    ) -> Result<(), Abort> {
        self.go_on(&mut search.done, 0)?;
        self.work.taken.note(ExecutionPath::WalkedFragments);
        let evaluator = self.evaluator();
        let at = |values: &[u32]| values.get(row as usize).copied();
        let (place, doc) = at(table.places())
            .zip(at(table.docs()))
            .ok_or(QueryError::Broken("a fragment has no place in its batch"))?;
        let rows = self.walked(trie, Node::root(Fragment { table: number, row }))?;
        self.work.add(STEP * rows.len() as u64);
        for (order, row) in (0..).zip(rows.iter()) {
            self.go_on(&mut search.done, 0)?;
            let passes = |c: &Conjunct<'p>| evaluator.truth(c.condition, row) == Some(true);
            if search.conjuncts.iter().all(passes) {
                search.walked.push((place, order), doc, row);
            }
        }
        self.bear(search.walked.rows.len() as u64)
    }

    /// Gives the rows of fragments that were walked to a sink.
    pub(super) fn give_walked(
        &self,
        search: &mut Search<'_, 'p, 'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), QueryError> {
        let evaluator = self.evaluator();
        let walked = std::mem::replace(&mut search.walked, AnchorRows::new(self.plan.width));
        self.work.add(ROW * walked.rows.len() as u64);
        for (i, (place, order, doc, _)) in walked.rows.iter().enumerate() {
            let row = walked
                .nodes_of(i)
                .ok_or(QueryError::Broken("a row that was kept has no nodes"))?;
            match sink {
                Sink::Fold(output) => output.fold_row(evaluator, row, (*place, *order)),
                Sink::Sort(output) | Sink::Group(output, _) => {
                    output.take_at(evaluator, row, (*place, *order))
                }
                Sink::Fill(projection) => projection.take_row(row, *place, *doc),
                Sink::AnchorRows(anchor_rows) => anchor_rows.push((*place, *order), *doc, row),
            }
        }
        match sink {
            Sink::AnchorRows(anchor_rows) => self
                .budget
                .check(anchor_rows.rows.len(), anchor_rows.bytes()),
            Sink::Fold(output) | Sink::Sort(output) | Sink::Group(output, _) => {
                self.budget.check(output.len(), output.bytes())
            }
            Sink::Fill(projection) => self.budget.check(projection.len(), projection.bytes()),
        }
    }

    /// The rows of one variable, if they are not too many.
    pub(super) fn walked(&self, trie: &Trie, node: Node) -> Result<Rows, QueryError> {
        let expander = self.expander(self.view());
        let rows = expander.walked(trie, node);
        if rows.len() > expander.most {
            Err(QueryError::TooManyCombinations(expander.most))
        } else {
            Ok(rows)
        }
    }
}
