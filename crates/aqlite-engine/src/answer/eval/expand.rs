//! Expansion of the paths of one variable to rows of nodes.
//!
//! The paths of a variable are merged into a trie ([`Trie`]). The expansion descends it from the node
//! that the variable is bound to. The rows of an instance of a step are the product of the rows of
//! its children in the trie. For
//!
//! ```text
//! SELECT o/data/events/time, o/data/events/data/items[at0004]/value,
//!     o/data/events/data/items[at0005]/value
//! FROM OBSERVATION o
//! ```
//!
//! the trie, with the column of each path and the mode of each step before `items`, is
//!
//! ```text
//! o ─ data ─ events ┬ time                            column 0
//!     Inner  Left   └ data ┬ items[at0004] ─ value    column 1
//!                     Left └ items[at0005] ─ value    column 2
//! ```
//!
//! An observation with two events, the second of which has two instances of `at0004` and none of
//! `at0005`, expands to three rows: one of the first event, and the two products of the second.
//!
//! ```text
//! column 0   column 1   column 2
//! 08:00      120        80
//! 09:00      130        NULL
//! 09:00      135        NULL
//! ```
//!
//! An instance of the step `data` without events would have no row ([`Mode::Inner`]), while one of
//! `events` without children keeps its row, with NULL for them ([`Mode::Left`]).
//!
//! Predicates decide at each instance which of the paths *match* there: those whose predicates hold
//! at it and at all instances above it. A column is set only by a path that matches.

use super::bind::may_hold;
use super::node::{Node, View};
use super::predicate::PredicateEvaluator;
use super::rows::{Product, Rows};
use super::work::STEP;
use crate::answer::plan::{PathSet, Plan};
use crate::answer::plan_cache::LayoutVariant;
use crate::answer::query::Predicate;
use crate::answer::trie::{Mode, Trie, TrieNode};
use crate::document::{ItemKind, Layout};
use aqlite_rm::class::Attr;

/// An evaluator that expands the paths of one plan over one batch.
#[derive(Clone, Copy)]
pub(super) struct Expander<'p, 'b> {
    pub plan: &'p Plan,
    pub view: View<'b>,
    /// The largest number of rows of one assignment. One row more is built to detect an overflow.
    pub max_rows: usize,
    /// Whether row templates are not used.
    pub plain: bool,
}

impl<'p, 'b> Expander<'p, 'b> {
    /// Returns the rows of an assignment: the product over all variables that have paths.
    pub fn product(self, assignment: &[Node]) -> Product {
        let mut product = Product::new(self.plan.width);
        for trie in &self.plan.tries {
            let Some(node) = assignment.get(trie.variable) else {
                self.view.note_broken("an assignment lacks a variable");
                continue;
            };
            // The variable belongs to a branch of OR without a match, so its paths are NULL.
            if node.is_none() {
                continue;
            }
            product.add(
                match self
                    .expansion(trie, *node)
                    .as_deref()
                    .and_then(LayoutVariant::rows)
                {
                    Some(template) => {
                        Rows::of_template(self.view, template, (node.fragment, self.plan.width))
                    }
                    None => self.walked(trie, *node),
                },
            );
        }
        product
    }

    /// Returns the rows of an instance of a step; none if no path matches at the instance.
    pub(super) fn expand_child(
        self,
        trie: &Trie,
        step: usize,
        node: Node,
        matching: &PathSet,
    ) -> Rows {
        let passing = self
            .step_of(trie, step)
            .and_then(|step| self.passing(step, node, matching));
        passing.map_or(Rows::none(self.plan.width), |passing| {
            self.expand(trie, step, node, &passing)
        })
    }

    /// Returns a step of a trie. A step that does not exist is a broken invariant: without its
    /// cells and rows, the result would be another one.
    pub(super) fn step_of(self, trie: &Trie, at: usize) -> Option<&TrieNode> {
        let step = trie.nodes.get(at);
        if step.is_none() {
            self.view
                .note_broken("a path has a step that does not exist");
        }
        step
    }

    /// Computes the rows of one variable by walking from the node that it is bound to.
    pub fn walked(self, trie: &Trie, node: Node) -> Rows {
        let matching = self.matching(trie, node);
        let mut rows = Rows::single(self.plan.width);
        match self.fill(trie, 0, node, &matching, rows.nodes_mut()) {
            Some(_) => rows,
            None => self.expand(trie, 0, node, &matching),
        }
    }

    /// Returns the paths whose root predicate the node passes.
    pub(super) fn matching(self, trie: &Trie, node: Node) -> PathSet {
        let mut matching = PathSet::default();
        for (path, predicate) in trie.nodes.first().iter().flat_map(|root| &root.paths) {
            if !node.is_none()
                && predicate
                    .as_ref()
                    .is_none_or(|p| self.predicates().holds(p, node))
            {
                matching.insert(*path);
            }
        }
        matching
    }

    /// Fills the cells of a step and of all steps below it, as long as each step has at most one
    /// instance. This is the usual case, which needs no lists of rows.
    ///
    /// Returns `Some(false)` if the instance results in no row, and `None` if a step has several
    /// instances, so that rows must be multiplied.
    fn fill(
        self,
        trie: &Trie,
        at: usize,
        node: Node,
        matching: &PathSet,
        row: &mut [Node],
    ) -> Option<bool> {
        let step = self.step_of(trie, at)?;
        for child in &step.children {
            let below = match self.only(trie, *child, node, matching)? {
                Some((instance, passing)) => self.fill(trie, *child, instance, &passing, row)?,
                None => false,
            };
            // A purely structural step vanishes if there is no row below.
            if !below && step.mode == Mode::Inner {
                return Some(false);
            }
        }
        for column in step
            .ends
            .iter()
            .filter(|p| matching.contains(**p))
            .chain(&step.capture)
        {
            self.set_cell(row, *column, node);
        }
        Some(true)
    }

    /// Returns the only instance of a step at which a path matches, with the paths that match
    /// there; `None` if there are several instances.
    pub(super) fn only(
        self,
        trie: &Trie,
        child: usize,
        node: Node,
        matching: &PathSet,
    ) -> Option<Option<(Node, PathSet)>> {
        let mut found = None;
        let mut several = false;
        if let Some(step) = self.step_of(trie, child).filter(|_| !node.is_none()) {
            self.view.each_such(
                node,
                step.attr,
                &|layout, item| self.may_pass(step, layout, item),
                &mut |instance| {
                    if let Some(passing) = self.passing(step, instance, matching) {
                        several = found.is_some();
                        found = Some((instance, passing));
                    }
                    // The visit ends at the second instance.
                    !several
                },
            );
        }
        (!several).then_some(found)
    }

    /// Returns the paths that match at an instance; `None` if no path matches. The set is empty for
    /// a step that only a condition reads.
    fn passing(self, step: &TrieNode, instance: Node, matching: &PathSet) -> Option<PathSet> {
        self.view.count(STEP + step.paths.len() as u64);
        let mut passing = PathSet::default();
        for (path, predicate) in &step.paths {
            if matching.contains(*path)
                && predicate
                    .as_ref()
                    .is_none_or(|p| self.predicates().holds(p, instance))
            {
                passing.insert(*path);
            }
        }
        (!passing.is_empty() || (step.paths.is_empty() && step.capture.is_some()))
            .then_some(passing)
    }

    /// Returns false if the node id of an item alone excludes that a path matches at it.
    pub(super) fn may_pass(self, step: &TrieNode, layout: &Layout, item: u32) -> bool {
        let is_object = layout
            .item(item)
            .is_some_and(|item| item.kind == ItemKind::Object);
        let id = layout.constant(item, Attr::ARCHETYPE_NODE_ID);
        let may_hold = |(_, predicate): &(usize, Option<Predicate>)| {
            predicate
                .as_ref()
                .is_none_or(|p| may_hold(p, id, self.plan.exact))
        };
        // Only an object has a node id by which it can be excluded.
        !is_object || step.paths.is_empty() || step.paths.iter().any(may_hold)
    }

    /// Sets a cell of a row. A row without the column is a broken invariant.
    fn set_cell(self, row: &mut [Node], column: usize, node: Node) {
        match row.get_mut(column) {
            Some(cell) => *cell = node,
            None => self.view.note_broken("a row lacks the column of a path"),
        }
    }

    fn predicates(&self) -> PredicateEvaluator<'_, '_> {
        PredicateEvaluator {
            plan: self.plan,
            view: self.view,
        }
    }

    fn expand(self, trie: &Trie, at: usize, node: Node, matching: &PathSet) -> Rows {
        let mut rows = Rows::single(self.plan.width);
        // Two nodes of a row are written in about the time of one unit.
        let of_row = self.plan.width as u64 / 2;
        self.view.count(of_row);
        let Some(step) = self.step_of(trie, at) else {
            return rows;
        };
        let columns = step
            .ends
            .iter()
            .filter(|p| matching.contains(**p))
            .chain(&step.capture);
        for column in columns {
            self.set_cell(rows.nodes_mut(), *column, node);
        }
        for child in &step.children {
            let below = self.below(trie, *child, node, matching);
            if !below.is_empty() {
                rows.product(&below, self.max_rows);
                self.view.count((STEP + of_row) * rows.len() as u64);
            } else if step.mode == Mode::Inner {
                return Rows::none(self.plan.width);
            }
        }
        rows
    }

    /// Returns the rows of all instances of a step below a node.
    fn below(self, trie: &Trie, child: usize, node: Node, matching: &PathSet) -> Rows {
        let mut rows = Rows::none(self.plan.width);
        let Some(step) = self.step_of(trie, child).filter(|_| !node.is_none()) else {
            return rows;
        };
        self.view.each_such(
            node,
            step.attr,
            &|layout, item| self.may_pass(step, layout, item),
            &mut |instance| {
                if let Some(passing) = self.passing(step, instance, matching) {
                    rows.append(self.expand(trie, child, instance, &passing));
                }
                // One row more than allowed is sufficient to notice the excess.
                rows.len() <= self.max_rows && self.view.allows_overdue_work()
            },
        );
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::{Expander, Node, Trie, TrieNode};
    use crate::answer::eval::node::View;
    use crate::answer::eval::projection::tests::one_of_each_composition;
    use crate::answer::eval::work::Work;
    use crate::answer::plan::{Plan, plan};
    use crate::answer::query::{ColumnValue, Expr, IdentifiedPath, Step};
    use crate::answer::trie::Mode;
    use crate::document::{Batch, Fragment};
    use aqlite_rm::class::Attr;

    /// The plan of `SELECT c/name FROM COMPOSITION c`.
    fn plan_of_names() -> Plan {
        let mut query = one_of_each_composition();
        query.paths.push(IdentifiedPath {
            variable: 0,
            root: None,
            steps: vec![Step {
                attr: Attr::NAME,
                predicate: None,
            }],
            text: String::from("c/name"),
        });
        for column in &mut query.select {
            column.value = ColumnValue::Expr(Expr::Path(0));
        }
        plan(query, None, false).unwrap()
    }

    /// Returns the broken invariant of an expansion without a document.
    fn broken(expand: impl Fn(Expander<'_, '_>)) -> Option<&'static str> {
        let (plan, batch) = (plan_of_names(), Batch::new());
        let work = Work::new(1_000, 1_000, 1_000);
        expand(Expander {
            plan: &plan,
            view: View::new(&batch).counting(&work),
            max_rows: 1,
            plain: true,
        });
        work.broken()
    }

    /// Returns a trie of a root at which paths end, with children by index.
    fn trie(ends: &[usize], children: &[usize]) -> Trie {
        let root = TrieNode {
            attr: Attr::NAME,
            paths: ends.iter().map(|path| (*path, None)).collect(),
            ends: ends.to_vec(),
            children: children.to_vec(),
            mode: Mode::Left,
            structural: false,
            key: None,
            capture: None,
        };
        Trie {
            variable: 0,
            nodes: vec![root],
        }
    }

    #[test]
    fn assignment_without_a_variable_is_a_broken_invariant() {
        let unbound = broken(|expander| drop(expander.product(&[Node::NONE])));
        assert_eq!(unbound, None);
        let missing = broken(|expander| drop(expander.product(&[])));
        assert_eq!(missing, Some("an assignment lacks a variable"));
    }

    #[test]
    fn step_that_does_not_exist_is_a_broken_invariant() {
        let node = Node::root(Fragment { table: 0, row: 0 });
        let walked = |trie: Trie| broken(|expander| drop(expander.walked(&trie, node)));
        let missing = Some("a path has a step that does not exist");
        assert_eq!(walked(trie(&[0], &[])), None);
        assert_eq!(walked(trie(&[0], &[1])), missing);
        let nodes = Vec::new();
        assert_eq!(walked(Trie { variable: 0, nodes }), missing);
        let child = |trie: Trie| {
            let matching = super::PathSet::default();
            broken(|expander| drop(expander.expand_child(&trie, 7, node, &matching)))
        };
        assert_eq!(child(trie(&[0], &[])), missing);
    }

    #[test]
    fn row_without_the_column_of_a_path_is_a_broken_invariant() {
        let node = Node::root(Fragment { table: 0, row: 0 });
        let walked = broken(|expander| drop(expander.walked(&trie(&[9], &[]), node)));
        assert_eq!(walked, Some("a row lacks the column of a path"));
    }
}
