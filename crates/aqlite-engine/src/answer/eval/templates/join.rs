//! The join of the rows of several anchors within each document.

use super::super::block::project_cells;
use super::super::node::{Node, View};
use super::super::output::Output;
use super::super::rows::{Product, Rows, merge};
use super::super::work::ROW;
use super::super::{QueryError, ROWS_PER_BUDGET_CHECK};
use super::above::AboveVariable;
use super::anchor_rows::AnchorRows;
use super::{Abort, RowTemplateEvaluator};
use std::ops::Range;

/// The state of a join.
struct Join<'h, 'p> {
    anchor_rows: &'h [AnchorRows],
    rest_is_true: bool,
    above: Vec<AboveVariable<'p>>,
    /// The document of the rows in `above`.
    doc: Option<u32>,
    row: Vec<Node>,
    /// The number of rows since the last test for cancellation.
    rows_since_check: usize,
}

impl Join<'_, '_> {
    /// Makes the row of a choice if each variable has exactly one, which is the usual case. Returns
    /// false if a variable has several.
    fn one_row(&mut self, view: View<'_>, chosen: &[Range<usize>]) -> bool {
        self.row.fill(Node::NONE);
        for (anchor_rows, range) in self.anchor_rows.iter().zip(chosen) {
            match anchor_rows.nodes_of(range.start) {
                Some(nodes) if range.len() == 1 => merge(&mut self.row, nodes),
                _ => return false,
            }
        }
        self.above.iter().all(|of| match of.templates() {
            Some(([cells], fragment)) => {
                project_cells(view, &mut self.row, cells, fragment);
                true
            }
            _ => false,
        })
    }
}

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Joins the rows of the anchors within each document, in document order. A document has a
    /// choice for each combination of one fragment of each anchor. A choice has the product of the
    /// rows of all variables.
    pub(super) fn join(
        &self,
        anchor_rows: &[AnchorRows],
        rest_is_true: bool,
        output: &mut Output,
    ) -> Result<(), Abort> {
        let mut join = Join {
            anchor_rows,
            rest_is_true,
            above: self.above(),
            doc: None,
            row: vec![Node::NONE; self.plan.width],
            rows_since_check: 0,
        };
        if let [only] = anchor_rows {
            let mut at = 0;
            output.reserve(self.plan, only.rows.len());
            while let Some(row) = only.rows.get(at) {
                let range = only.fragment_at(at);
                at = range.end;
                self.choose(&mut join, row.document, &[range], output)?;
            }
            return Ok(());
        }
        self.join_several(&mut join, output)
    }

    /// Joins the rows of several anchors, document by document.
    fn join_several(&self, join: &mut Join<'_, 'p>, output: &mut Output) -> Result<(), Abort> {
        let anchor_rows = join.anchor_rows;
        // A document needs rows of every anchor, so the documents of the shortest list are
        // sufficient.
        let Some(fewest) = anchor_rows
            .iter()
            .min_by_key(|anchor_rows| anchor_rows.rows.len())
        else {
            return Ok(());
        };
        // The number of rows is checked before any of them is made.
        self.check_rows(joined(anchor_rows, fewest))?;
        let mut starts = vec![0; anchor_rows.len()];
        let mut fragments = vec![Vec::new(); anchor_rows.len()];
        let mut choice = Vec::with_capacity(anchor_rows.len());
        for doc in fewest.documents() {
            for ((anchor_rows, start), fragments) in
                anchor_rows.iter().zip(&mut starts).zip(&mut fragments)
            {
                anchor_rows.fragments_of(doc, start, fragments);
            }
            // The product is 0 if the document has no fragment for one of the anchors.
            for number in 0..fragments.iter().map(Vec::len).product() {
                choose_from(&fragments, number, &mut choice);
                self.choose(join, doc, &choice, output)?;
            }
        }
        Ok(())
    }

    /// Outputs the rows of a choice of one fragment of each anchor.
    fn choose(
        &self,
        join: &mut Join<'_, 'p>,
        doc: u32,
        chosen: &[Range<usize>],
        output: &mut Output,
    ) -> Result<(), Abort> {
        self.check_cancelled(&mut join.rows_since_check, 0)?;
        self.work.add(ROW);
        // The rows of the variables above are computed once for each document.
        if join.doc != Some(doc) {
            self.update_above_rows(doc, &mut join.above)?;
            join.doc = Some(doc);
        }
        let evaluator = self.evaluator();
        if join.one_row(evaluator.view, chosen) {
            if join.rest_is_true || evaluator.keeps(&join.row) {
                output.take(evaluator, &join.row, None);
            }
            return Ok(output.check_limits(&self.budget, self.work)?);
        }
        let product = self.product(join.anchor_rows, chosen, &join.above)?;
        for number in 0..product.len() {
            self.check_cancelled(&mut join.rows_since_check, 0)?;
            self.work.add(ROW);
            product.fill(evaluator.view, number, &mut join.row);
            if join.rest_is_true || evaluator.keeps(&join.row) {
                output.take(evaluator, &join.row, None);
            }
            if number % ROWS_PER_BUDGET_CHECK == ROWS_PER_BUDGET_CHECK - 1 {
                output.check_limits(&self.budget, self.work)?;
            }
        }
        Ok(output.check_limits(&self.budget, self.work)?)
    }

    /// Returns the product of the rows of all variables, in the order of their first use.
    fn product(
        &self,
        anchor_rows: &[AnchorRows],
        chosen: &[Range<usize>],
        above: &[AboveVariable<'p>],
    ) -> Result<Product, QueryError> {
        let mut product = Product::new(self.plan.width);
        let most = self.budget.rows_of_variable(self.plan);
        for trie in &self.plan.tries {
            let anchor = self
                .anchors
                .entries
                .iter()
                .position(|e| e.variable == trie.variable);
            match anchor.and_then(|a| anchor_rows.get(a).zip(chosen.get(a))) {
                Some((anchor_rows, range)) => {
                    let rows: Option<Vec<&[Node]>> =
                        range.clone().map(|i| anchor_rows.nodes_of(i)).collect();
                    let rows = rows.ok_or(QueryError::Broken("a row that is joined has no nodes"));
                    product.add(Rows::of(rows?.into_iter(), self.plan.width));
                }
                None => {
                    let of_variable = above.iter().find(|of| of.trie.variable == trie.variable);
                    let of_variable = of_variable.ok_or(QueryError::Broken(
                        "a variable with paths is not bound by a join",
                    ))?;
                    product.add(of_variable.rows(self.view(), self.plan.width));
                }
            }
        }
        if product.widest() > most {
            Err(QueryError::TooManyCombinations(most))
        } else {
            Ok(product)
        }
    }
}

/// Returns the number of rows of a join of anchors within each document.
fn joined(anchor_rows: &[AnchorRows], fewest: &AnchorRows) -> u64 {
    let mut starts = vec![0; anchor_rows.len()];
    let of_document = |doc: u32, starts: &mut Vec<usize>| {
        let each = anchor_rows
            .iter()
            .zip(starts)
            .map(|(anchor_rows, start)| anchor_rows.rows_of(doc, start) as u64);
        each.fold(1, u64::saturating_mul)
    };
    fewest
        .documents()
        .map(|doc| of_document(doc, &mut starts))
        .fold(0, u64::saturating_add)
}

/// Writes the choice with a number to `choice`: one fragment of each anchor. The last anchor varies
/// fastest.
fn choose_from(fragments: &[Vec<Range<usize>>], number: usize, choice: &mut Vec<Range<usize>>) {
    let mut rest = number;
    choice.clear();
    for of_anchor in fragments.iter().rev() {
        choice.extend(of_anchor.get(rest % of_anchor.len().max(1)).cloned());
        rest /= of_anchor.len().max(1);
    }
    choice.reverse();
}
