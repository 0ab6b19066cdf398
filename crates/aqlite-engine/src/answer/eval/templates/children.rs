//! Child rows of repeated groups, which are collected from their parent rows and grouped by layout
//! variant.

use super::super::anchor_scan::group_expansion;
use super::super::block::{ParentCells, ParentRef, ParentRows};
use super::super::layout_variant::Start;
use super::super::selection::Selection;
use super::{Abort, AnchorSearch, CandidateRows, RowTemplateEvaluator, Sink, broken};
use crate::answer::plan::PathSet;
use crate::answer::plan_cache::{GroupExpansion, LayoutVariant};
use crate::answer::trie::Trie;
use crate::document::Fragment;
use hashbrown::HashMap;
use std::rc::Rc;

/// The child rows that are instances of one step, grouped by layout variant.
pub(super) struct ChildrenOfStep {
    pub(super) step: usize,
    pub(super) matching: PathSet,
    /// The indexes of the variants of each table.
    pub(super) by_table: HashMap<u32, Vec<usize>>,
    pub(super) children: Vec<ChildRows>,
}

/// The child rows of one layout variant in one table, each with its parent row. The cells of the
/// parent row have the index of its table and layout variant in [`AnchorSearch::parents`].
pub(super) struct ChildRows {
    pub(super) table: u32,
    pub(super) variant: Rc<LayoutVariant>,
    pub(super) rows: Vec<u32>,
    pub(super) parent_of: Vec<ParentRef>,
}

/// The parent rows whose child rows were not collected.
#[derive(Default)]
pub(super) struct CollectedParents {
    /// The rows whose child rows all result in no row.
    pub childless: Vec<u32>,
    /// The rows that must be walked.
    pub walked: Vec<u32>,
}

impl ChildrenOfStep {
    /// Returns the index of the layout variant of `child`, which is added if it is new.
    fn variant_of(
        &mut self,
        by: &RowTemplateEvaluator<'_, '_>,
        trie: &Trie,
        expansion: &GroupExpansion,
        child: Fragment,
    ) -> Option<usize> {
        let table = by.batch.table(child.table)?;
        let of_table = self.by_table.entry(child.table).or_default();
        let is_same = |at: &&usize| {
            self.children
                .get(**at)
                .is_some_and(|children| children.variant.is_of(table, child.row))
        };
        if let Some(at) = of_table.iter().find(is_same) {
            return Some(*at);
        }
        let variant = by
            .expander(by.view())
            .step(trie, child.table, Start::in_children(expansion))?
            .variant(child.row);
        of_table.push(self.children.len());
        self.children.push(ChildRows {
            table: child.table,
            variant,
            rows: Vec::new(),
            parent_of: Vec::new(),
        });
        Some(self.children.len() - 1)
    }

    /// Adds a child row to its layout variant.
    fn collect(&mut self, at: usize, child: Fragment, parent: ParentRef) -> Result<(), Abort> {
        let children = self.children.get_mut(at);
        let children =
            children.ok_or_else(|| broken("a child row is of no known layout variant"))?;
        children.rows.push(child.row);
        children.parent_of.push(parent);
        Ok(())
    }
}

impl AnchorSearch<'_, '_, '_> {
    /// Returns the child rows of the step that a repeated group leads to.
    fn children_of(&mut self, expansion: &GroupExpansion) -> Option<&mut ChildrenOfStep> {
        let at = self
            .steps
            .iter()
            .position(|s| (s.step, s.matching) == (expansion.step, expansion.matching))
            .unwrap_or_else(|| {
                self.steps.push(ChildrenOfStep {
                    step: expansion.step,
                    matching: expansion.matching,
                    by_table: HashMap::new(),
                    children: Vec::new(),
                });
                self.steps.len() - 1
            });
        self.steps.get_mut(at)
    }
}

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Adds the child rows of fragments to their layout variants. Returns the other fragments.
    pub(super) fn collect_child_rows(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        trie: &Trie,
        expansion: &GroupExpansion,
        number: u32,
        rows: &Selection<'_>,
    ) -> Result<CollectedParents, Abort> {
        let cells = search.parents.len() as u32;
        let (mut collected, mut found) = (CollectedParents::default(), Vec::new());
        let step = search
            .children_of(expansion)
            .ok_or_else(|| broken("a step of child rows is missing"))?;
        for row in rows.rows().iter().copied() {
            let children = self
                .batch
                .child_rows(Fragment { table: number, row }, expansion.group);
            found.clear();
            found.extend(
                children
                    .iter()
                    .filter_map(|child| step.variant_of(self, trie, expansion, *child)),
            );
            let has_rows = |at: &usize| {
                step.children
                    .get(*at)
                    .and_then(|children| children.variant.rows())
                    .map(|rows| !rows.is_empty())
            };
            // A child row has no layout variant, or one whose rows depend on leaf values.
            if found.len() < children.len() || found.iter().any(|at| has_rows(at).is_none()) {
                collected.walked.push(row);
            } else if !found.iter().any(|at| has_rows(at) == Some(true)) {
                collected.childless.push(row);
            } else {
                for (at, child) in found.iter().zip(children) {
                    step.collect(*at, *child, ParentRef { cells, row })?;
                }
            }
        }
        Ok(collected)
    }

    pub(super) fn emit_child_rows(
        &self,
        search: &mut AnchorSearch<'_, 'p, 'b>,
        sink: &mut Sink<'_, 'b>,
    ) -> Result<(), Abort> {
        if search.steps.is_empty() {
            return Ok(());
        }
        let parents = cells_of_parents(&std::mem::take(&mut search.parents))?;
        for ChildRows {
            table,
            variant,
            rows,
            parent_of,
        } in std::mem::take(&mut search.steps)
            .into_iter()
            .flat_map(|step| step.children)
        {
            if rows.is_empty() {
                // Fragments with such child rows are walked.
                continue;
            }
            let parent_rows = ParentRows::Known {
                parents: Rc::clone(&parents),
                parent_of,
            };
            let templates = variant
                .rows()
                .ok_or_else(|| broken("a layout variant of child rows has no rows"))?;
            let candidates = CandidateRows {
                table,
                rows: Selection::Indices(rows),
                parent_rows,
            };
            self.emit_templates(search, templates, candidates, sink)?;
        }
        Ok(())
    }
}

/// Returns the cells that parent rows contribute, by table and layout variant.
fn cells_of_parents(parents: &[(u32, Rc<LayoutVariant>)]) -> Result<Rc<[ParentCells]>, Abort> {
    let cells = |(number, variant): &(u32, Rc<LayoutVariant>)| {
        Some(ParentCells {
            number: *number,
            cells: Rc::clone(&group_expansion(variant)?.parent_cells),
        })
    };
    let cells: Option<_> = parents.iter().map(cells).collect();
    cells.ok_or_else(|| broken("a table of parent rows has no repeated group"))
}
