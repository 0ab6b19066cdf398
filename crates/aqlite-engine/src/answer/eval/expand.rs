//! Expansion of the paths of one variable to rows of nodes.

use super::bind::may_hold;
use super::block::project_cells;
use super::node::{Node, PresenceTests, View};
use super::predicate::PredicateEvaluator;
use super::work::STEP;
use crate::answer::plan::{PathSet, Plan};
use crate::answer::plan_cache::{
    Cells, DecisionTree, Expansion, GroupExpansion, LayoutVariant, ProjectedCell, StepBinding,
};
use crate::answer::query::Predicate;
use crate::answer::trie::{Mode, Trie, TrieNode};
use crate::document::{Fragment, ItemKind, Layout, Table};
use aqlite_rm::class::Attr;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// Rows of nodes with one column for each path and each captured step.
pub(super) struct Rows {
    width: usize,
    nodes: Vec<Node>,
}

impl Rows {
    fn single(width: usize) -> Rows {
        Rows {
            width,
            nodes: vec![Node::NONE; width],
        }
    }

    pub fn none(width: usize) -> Rows {
        Rows {
            width,
            nodes: Vec::new(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &[Node]> {
        self.nodes.chunks_exact(self.width)
    }

    /// Creates rows from lists of nodes, which have `width` nodes each.
    pub fn of<'r>(rows: impl Iterator<Item = &'r [Node]>, width: usize) -> Rows {
        Rows {
            width,
            nodes: rows.flatten().copied().collect(),
        }
    }

    /// Creates the rows of a row template for a fragment.
    pub fn of_template(
        view: View<'_>,
        template: &[Cells],
        (fragment, width): (Fragment, usize),
    ) -> Rows {
        let mut nodes = vec![Node::NONE; template.len() * width];
        for (row, cells) in nodes.chunks_exact_mut(width).zip(template) {
            project_cells(view, row, cells, fragment);
        }
        Rows { width, nodes }
    }

    /// Converts the rows of one fragment to row templates for all fragments of its layout variant.
    fn cells(&self, layout: &Layout) -> Vec<Cells> {
        let projected_cell = |(column, node): (usize, &Node)| {
            (!node.is_none()).then(|| ProjectedCell::of(layout, column, node.item))
        };
        self.iter()
            .map(|row| row.iter().enumerate().filter_map(projected_cell).collect())
            .collect()
    }

    fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the number of rows.
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

    /// Replaces the rows by all combinations with the rows of `other`, whose columns are disjoint.
    /// If there are more than `max_rows`, only one row more than `max_rows` is made.
    pub fn product(&mut self, other: &Rows, max_rows: usize) {
        // In the usual case of one row each, no list is allocated.
        if self.nodes.len() == self.width && other.nodes.len() == self.width {
            merge(&mut self.nodes, &other.nodes);
            return;
        }
        // One row more than allowed is made, so that the caller notices the excess.
        let rows = self
            .len()
            .saturating_mul(other.len())
            .min(max_rows.saturating_add(1));
        let mut nodes = Vec::with_capacity(rows.saturating_mul(self.width));
        for row in self.iter() {
            for more in other
                .iter()
                .take(rows.saturating_sub(nodes.len() / self.width))
            {
                let both = row.iter().zip(more);
                nodes.extend(both.map(|(cell, other)| cell.overlaid(*other)));
            }
        }
        self.nodes = nodes;
    }
}

/// The Cartesian product of the rows of some variables, whose rows are made one at a time. The last
/// variable varies fastest.
pub(super) struct Product {
    width: usize,
    factors: Vec<Rows>,
}

impl Product {
    /// Creates the product of no variables: one row without nodes.
    pub fn new(width: usize) -> Product {
        Product {
            width,
            factors: Vec::new(),
        }
    }

    /// Multiplies by the rows of another variable, whose columns are disjoint from all others.
    pub fn add(&mut self, rows: Rows) {
        self.factors.push(rows);
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        self.factors
            .iter()
            .fold(1, |all, rows| all.saturating_mul(rows.len() as u64))
    }

    /// Returns the largest number of rows of one variable.
    pub fn widest(&self) -> usize {
        self.factors.iter().map(Rows::len).max().unwrap_or(0)
    }

    /// Writes the row with a number to `row`. A variable without the row is a broken invariant, which
    /// ends the run.
    pub fn fill(&self, view: View<'_>, number: u64, row: &mut [Node]) {
        row.fill(Node::NONE);
        // The number is read as digits of mixed base, the last variable being the lowest digit.
        let mut rest = number;
        for rows in self.factors.iter().rev() {
            let count = rows.len().max(1) as u64;
            let start = (rest % count) as usize * self.width;
            rest /= count;
            match rows.nodes.get(start..start + self.width) {
                Some(nodes) => merge(row, nodes),
                None => view.note_broken("a variable of a product has no row"),
            }
        }
    }
}

/// Writes the nodes of a row over those of another row.
pub(super) fn merge(row: &mut [Node], more: &[Node]) {
    for (cell, other) in row.iter_mut().zip(more) {
        *cell = cell.overlaid(*other);
    }
}

/// The path from an item to the only repeated group on which its rows depend.
#[derive(Default)]
struct GroupPath {
    cells: Vec<ProjectedCell>,
    group: Option<GroupStep>,
    /// The range of the cells that are removed if no child row results in a row: those of the steps
    /// between the repeated group and the next step that keeps its row.
    below: Option<Range<usize>>,
}

/// A step of a path into the child rows of a repeated group.
#[derive(Clone, Copy)]
struct GroupStep {
    /// The number of the repeated group.
    group: u32,
    /// The step whose instances the child rows are.
    step: usize,
    /// The paths that are alive before the step.
    alive: PathSet,
}

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

/// The start of the expansion of a variable in the fragments of a table.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// The item that the variable is bound to.
    Item(u32),
    /// The root, which is an instance of this step, and the paths that are alive before the step.
    Child(usize, PathSet),
}

impl Start {
    /// Returns the start of the expansion in the child rows of a repeated group.
    pub fn in_children(over: &GroupExpansion) -> Start {
        Start::Child(over.step, over.alive)
    }
}

/// A step of the paths of a variable in the fragments of one table.
#[derive(Clone, Copy)]
pub(super) struct StepIn<'t, 'p, 'b> {
    expander: Expander<'p, 'b>,
    trie: &'t Trie,
    pub table: &'b Table,
    pub number: u32,
    start: Start,
}

impl StepIn<'_, '_, '_> {
    /// Returns the decision tree of this step.
    pub fn variants(&self) -> Rc<DecisionTree> {
        let (step, item, alive) = match self.start {
            Start::Item(item) => (0, item, PathSet::default()),
            Start::Child(step, alive) => (step, 0, alive),
        };
        self.expander
            .plan
            .plan_cache
            .of(self.table.layout())
            .variants(StepBinding {
                variable: self.trie.variable,
                step,
                item,
                alive,
            })
    }

    /// Returns the layout variant of a row, which is computed once for all rows with the same
    /// outcomes of presence tests.
    pub fn variant(&self, row: u32) -> Rc<LayoutVariant> {
        self.variants()
            .variant(self.presence(row), || self.find(row))
    }

    /// Returns a test of whether a presence bitmap contains the row.
    pub fn presence(&self, row: u32) -> impl Fn(u32) -> bool {
        move |bitmap| self.table.is_present(bitmap, row)
    }

    /// Computes the layout variant of a row by expansion, recording the bitmaps that it tests.
    pub fn find(&self, row: u32) -> LayoutVariant {
        let fragment = Fragment {
            table: self.number,
            row,
        };
        let (differs, recorded) = (Cell::new(false), PresenceTests::of(fragment));
        let recording = Expander {
            view: self.expander.view.recording(&differs, &recorded),
            ..self.expander
        };
        let (node, rows) = match self.start {
            Start::Item(item) => (
                Node { fragment, item },
                recording.walked(self.trie, Node { fragment, item }),
            ),
            Start::Child(step, alive) => (
                Node::root(fragment),
                recording.expand_child(self.trie, step, Node::root(fragment), &alive),
            ),
        };
        // If presence alone decided, the rows hold for all fragments with the same items.
        let expansion = match (differs.replace(false), self.start) {
            (false, _) => Expansion::Rows(rows.cells(self.table.layout())),
            // Repeated groups below child rows are not followed: such rows are walked.
            (true, Start::Child(..)) => Expansion::Walk,
            (true, Start::Item(_)) => recording
                .group_expansion(self.trie, node)
                .filter(|_| !differs.get())
                .map_or(Expansion::Walk, Expansion::Group),
        };
        LayoutVariant {
            tests: recorded.tests(),
            expansion,
        }
    }
}

impl<'p, 'b> Expander<'p, 'b> {
    /// Returns the step of a variable in the fragments of a table; `None` if row templates are not
    /// used.
    pub fn step<'t>(self, trie: &'t Trie, table: u32, start: Start) -> Option<StepIn<'t, 'p, 'b>> {
        let found = self.view.batch.table(table).filter(|_| !self.plain)?;
        Some(StepIn {
            expander: self,
            trie,
            table: found,
            number: table,
            start,
        })
    }

    /// Returns the rows of an instance of a step; none if no path is alive at the instance.
    fn expand_child(self, trie: &Trie, step: usize, node: Node, alive: &PathSet) -> Rows {
        let passing = self
            .step_of(trie, step)
            .and_then(|step| self.passing(step, node, alive));
        passing.map_or(Rows::none(self.plan.width), |passing| {
            self.expand(trie, step, node, &passing)
        })
    }

    /// Returns a step of a trie. A step that does not exist is a broken invariant: without its
    /// cells and rows, the result would be another one.
    fn step_of(self, trie: &Trie, at: usize) -> Option<&TrieNode> {
        let step = trie.nodes.get(at);
        if step.is_none() {
            self.view
                .note_broken("a path has a step that does not exist");
        }
        step
    }

    /// Returns the rows of an assignment: the product over all variables that have paths.
    pub fn product(self, assignment: &[Node]) -> Product {
        let mut product = Product {
            width: self.plan.width,
            factors: Vec::with_capacity(self.plan.tries.len()),
        };
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

    /// Returns the layout variant of a variable that is bound to this node. It holds for all
    /// fragments with the same outcomes of presence tests. `None` if row templates are not used.
    pub fn expansion(self, trie: &Trie, node: Node) -> Option<Rc<LayoutVariant>> {
        Some(
            self.step(trie, node.fragment.table, Start::Item(node.item))?
                .variant(node.fragment.row),
        )
    }

    /// Returns the expansion over the only repeated group on which the rows depend, if each other
    /// step has at most one instance.
    fn group_expansion(self, trie: &Trie, node: Node) -> Option<GroupExpansion> {
        let mut group_path = GroupPath::default();
        let exists = self.descend(trie, 0, node, &self.alive(trie, node), &mut group_path)?;
        let GroupStep { group, step, alive } = group_path.group.filter(|_| exists)?;
        // The root of a trie always keeps its row (`Mode::Left`), so the range is known. If it is
        // not, the fragments are walked.
        let below = group_path.below?;
        let without = [
            group_path.cells.get(..below.start)?,
            group_path.cells.get(below.end..)?,
        ]
        .concat()
        .into();
        Some(GroupExpansion {
            group,
            step,
            alive,
            with: group_path.cells.into(),
            without,
        })
    }

    /// Collects cells like [`Expander::fill`], but continues past one repeated group. Returns
    /// `None` if several repeated groups or steps decide.
    fn descend(
        self,
        trie: &Trie,
        at: usize,
        node: Node,
        alive: &PathSet,
        group_path: &mut GroupPath,
    ) -> Option<bool> {
        let step = self.step_of(trie, at)?;
        for kid in &step.kids {
            let (start, known) = (group_path.cells.len(), group_path.group.is_some());
            let below = match self.run_at(trie, *kid, node) {
                // The rows of a second repeated group would have to be multiplied.
                Some(_) if known => return None,
                Some(group) => {
                    group_path.group = Some(GroupStep {
                        group: group?,
                        step: *kid,
                        alive: *alive,
                    });
                    true
                }
                None => match self.only(trie, *kid, node, alive)? {
                    Some((instance, passing)) => {
                        self.descend(trie, *kid, instance, &passing, group_path)?
                    }
                    None => false,
                },
            };
            // A purely structural step vanishes if there is no row below.
            if !below && step.mode == Mode::Chain {
                return Some(false);
            }
            if !known
                && group_path.group.is_some()
                && step.mode == Mode::Left
                && group_path.below.is_none()
            {
                group_path.below = Some(start..group_path.cells.len());
            }
        }
        let columns = step
            .ends
            .iter()
            .filter(|p| alive.contains(**p))
            .chain(&step.capture);
        let layout = self.view.table(node)?.layout();
        group_path
            .cells
            .extend(columns.map(|column| ProjectedCell::of(layout, *column, node.item)));
        Some(true)
    }

    /// Returns the repeated group that contains all instances of a step below a node; `Some(None)`
    /// if only some instances are in a group, and `None` if no instance is.
    fn run_at(self, trie: &Trie, kid: usize, node: Node) -> Option<Option<u32>> {
        let layout = self.view.table(node)?.layout();
        let has = |item: &u32| self.view.has(node.fragment, *item);
        let step = self.step_of(trie, kid)?;
        let child = layout.child(node.item, step.attr).filter(has)?;
        let run_of = |item: u32| match layout.item(item).map(|i| i.kind) {
            Some(ItemKind::Group(group)) => Some(group),
            _ => None,
        };
        let elements: Vec<u32> = match layout.item(child)?.kind {
            ItemKind::List => layout
                .children(child)
                .filter(|item| self.may_pass(step, layout, *item))
                .filter(has)
                .collect(),
            _ => vec![child],
        };
        match elements.as_slice() {
            [only] => run_of(*only).map(Some),
            several => several.iter().any(|e| run_of(*e).is_some()).then_some(None),
        }
    }

    /// Computes the rows of one variable by walking from the node that it is bound to.
    pub fn walked(self, trie: &Trie, node: Node) -> Rows {
        let alive = self.alive(trie, node);
        let mut rows = Rows::single(self.plan.width);
        match self.fill(trie, 0, node, &alive, &mut rows.nodes) {
            Some(_) => rows,
            None => self.expand(trie, 0, node, &alive),
        }
    }

    /// Returns the paths whose root predicate the node passes.
    fn alive(self, trie: &Trie, node: Node) -> PathSet {
        let mut alive = PathSet::default();
        for (path, predicate) in trie.nodes.first().iter().flat_map(|root| &root.paths) {
            if !node.is_none()
                && predicate
                    .as_ref()
                    .is_none_or(|p| self.predicates().holds(p, node))
            {
                alive.insert(*path);
            }
        }
        alive
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
        alive: &PathSet,
        row: &mut [Node],
    ) -> Option<bool> {
        let step = self.step_of(trie, at)?;
        for kid in &step.kids {
            let below = match self.only(trie, *kid, node, alive)? {
                Some((instance, passing)) => self.fill(trie, *kid, instance, &passing, row)?,
                None => false,
            };
            // A purely structural step vanishes if there is no row below.
            if !below && step.mode == Mode::Chain {
                return Some(false);
            }
        }
        for column in step
            .ends
            .iter()
            .filter(|p| alive.contains(**p))
            .chain(&step.capture)
        {
            self.set_cell(row, *column, node);
        }
        Some(true)
    }

    /// Returns the only instance of a step at which a path is alive, with the paths that are alive
    /// there; `None` if there are several instances.
    fn only(
        self,
        trie: &Trie,
        kid: usize,
        node: Node,
        alive: &PathSet,
    ) -> Option<Option<(Node, PathSet)>> {
        let mut found = None;
        let mut several = false;
        if let Some(step) = self.step_of(trie, kid).filter(|_| !node.is_none()) {
            self.view.each_such(
                node,
                step.attr,
                &|layout, item| self.may_pass(step, layout, item),
                &mut |instance| {
                    if let Some(passing) = self.passing(step, instance, alive) {
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

    /// Returns the paths that are alive at an instance; `None` if no path is.
    fn passing(self, step: &TrieNode, instance: Node, alive: &PathSet) -> Option<PathSet> {
        self.view.count(STEP + step.paths.len() as u64);
        let mut passing = PathSet::default();
        for (path, predicate) in &step.paths {
            if alive.contains(*path)
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

    /// Returns false if the node id of an item alone excludes that a path is alive at it.
    fn may_pass(self, step: &TrieNode, layout: &Layout, item: u32) -> bool {
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

    fn expand(self, trie: &Trie, at: usize, node: Node, alive: &PathSet) -> Rows {
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
            .filter(|p| alive.contains(**p))
            .chain(&step.capture);
        for column in columns {
            self.set_cell(&mut rows.nodes, *column, node);
        }
        for kid in &step.kids {
            let below = self.below(trie, *kid, node, alive);
            if !below.is_empty() {
                rows.product(&below, self.max_rows);
                self.view.count((STEP + of_row) * rows.len() as u64);
            } else if step.mode == Mode::Chain {
                return Rows::none(self.plan.width);
            }
        }
        rows
    }

    /// Returns the rows of all instances of a step below a node.
    fn below(self, trie: &Trie, kid: usize, node: Node, alive: &PathSet) -> Rows {
        let mut rows = Rows::none(self.plan.width);
        let Some(step) = self.step_of(trie, kid).filter(|_| !node.is_none()) else {
            return rows;
        };
        self.view.each_such(
            node,
            step.attr,
            &|layout, item| self.may_pass(step, layout, item),
            &mut |instance| {
                if let Some(passing) = self.passing(step, instance, alive) {
                    rows.append(self.expand(trie, kid, instance, &passing));
                }
                // One row more than allowed is sufficient to notice the excess.
                rows.len() <= self.max_rows && self.view.bounds_overdue()
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
    fn trie(ends: &[usize], kids: &[usize]) -> Trie {
        let root = TrieNode {
            attr: Attr::NAME,
            paths: ends.iter().map(|path| (*path, None)).collect(),
            ends: ends.to_vec(),
            kids: kids.to_vec(),
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
            let alive = super::PathSet::default();
            broken(|expander| drop(expander.expand_child(&trie, 7, node, &alive)))
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
