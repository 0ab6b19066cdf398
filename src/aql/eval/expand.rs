//! SELECT, WHERE and ORDER BY paths of one variable: the rows that its node gives.

use super::node::{Node, View};
use super::predicate::Tester;
use crate::aql::plan::{PathSet, Plan};
use crate::aql::trie::{Mode, Trie};

/// Rows of nodes, one column a path or captured step.
pub(super) struct Rows {
    width: usize,
    nodes: Vec<Node>,
}

impl Rows {
    fn single(width: usize) -> Rows {
        Rows { width, nodes: vec![Node::NONE; width] }
    }

    fn none(width: usize) -> Rows {
        Rows { width, nodes: Vec::new() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &[Node]> {
        self.nodes.chunks_exact(self.width)
    }

    fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.nodes.len() / self.width
    }

    fn append(&mut self, more: Rows) {
        if self.nodes.is_empty() {
            self.nodes = more.nodes;
        } else {
            self.nodes.extend(more.nodes);
        }
    }

    /// Every row of `self` with every row of `other`, at most `most` of them; the columns of both are disjoint.
    pub fn product(&mut self, other: &Rows, most: usize) {
        if let ([row], [more]) =
            (self.nodes.chunks_exact_mut(self.width).collect::<Vec<_>>().as_mut_slice(), other.iter().collect::<Vec<_>>().as_slice())
        {
            merge(row, more);
            return;
        }
        let mut nodes =
            Vec::with_capacity(self.nodes.len().saturating_mul(other.nodes.len() / self.width).min((most + 1).saturating_mul(self.width)));
        for row in self.iter() {
            for more in other.iter().take((most + 1).saturating_sub(nodes.len() / self.width)) {
                let start = nodes.len();
                nodes.extend_from_slice(row);
                merge(nodes.get_mut(start..).unwrap_or_default(), more);
            }
        }
        self.nodes = nodes;
    }
}

fn merge(row: &mut [Node], more: &[Node]) {
    for (cell, other) in row.iter_mut().zip(more) {
        if !other.is_none() {
            *cell = *other;
        }
    }
}

/// Expands the tries of one plan over one batch.
#[derive(Clone, Copy)]
pub(super) struct Expander<'p, 'b> {
    pub plan: &'p Plan,
    pub view: View<'b>,
    /// So many rows of one assignment are the most that are built; one more tells that there are more.
    pub most: usize,
}

impl Expander<'_, '_> {
    /// The rows of an assignment: the product over all variables that have paths.
    pub fn rows(self, assignment: &[Node]) -> Rows {
        let mut rows = Rows::single(self.plan.width);
        for trie in &self.plan.tries {
            let node = assignment.get(trie.variable).copied().unwrap_or(Node::NONE);
            rows.product(&self.of_variable(trie, node), self.most);
        }
        rows
    }

    /// The rows of one variable, bound to a node.
    pub fn of_variable(self, trie: &Trie, node: Node) -> Rows {
        let Some(root) = trie.nodes.first() else { return Rows::single(self.plan.width) };
        let mut alive = PathSet::default();
        for (path, predicate) in &root.paths {
            if !node.is_none() && predicate.as_ref().is_none_or(|p| self.tester().holds(p, node)) {
                alive.insert(*path);
            }
        }
        self.expand(trie, 0, node, &alive)
    }

    fn tester(&self) -> Tester<'_, '_> {
        Tester { plan: self.plan, view: self.view }
    }

    fn expand(self, trie: &Trie, at: usize, node: Node, alive: &PathSet) -> Rows {
        let mut rows = Rows::single(self.plan.width);
        let Some(step) = trie.nodes.get(at) else { return rows };
        let columns = step.ends.iter().filter(|p| alive.contains(**p)).chain(&step.capture);
        for column in columns {
            if let Some(cell) = rows.nodes.get_mut(*column) {
                *cell = node;
            }
        }
        for kid in &step.kids {
            let below = self.below(trie, *kid, node, alive);
            if !below.is_empty() {
                rows.product(&below, self.most);
            } else if step.mode == Mode::Chain {
                return Rows::none(self.plan.width);
            }
        }
        rows
    }

    /// The rows of all instances of a step below a node.
    fn below(self, trie: &Trie, kid: usize, node: Node, alive: &PathSet) -> Rows {
        let mut rows = Rows::none(self.plan.width);
        let Some(step) = trie.nodes.get(kid).filter(|_| !node.is_none()) else { return rows };
        self.view.each(node, step.attr, &mut |instance| {
            let mut passing = PathSet::default();
            for (path, predicate) in &step.paths {
                if alive.contains(*path) && predicate.as_ref().is_none_or(|p| self.tester().holds(p, instance)) {
                    passing.insert(*path);
                }
            }
            if !passing.is_empty() || (step.paths.is_empty() && step.capture.is_some()) {
                rows.append(self.expand(trie, kid, instance, &passing));
            }
            rows.len() <= self.most
        });
        rows
    }
}
