//! SELECT, WHERE and ORDER BY paths of one variable: the rows of its node.

use super::bind::may_hold;
use super::block::project_cells;
use super::node::{Node, PresenceTests, View};
use super::predicate::PredicateEvaluator;
use super::work::STEP;
use crate::answer::plan::{PathSet, Plan};
use crate::answer::plan_cache::{
    Bound, Cells, DecisionTree, Expansion, GroupExpansion, LayoutVariant, ProjectedCell,
};
use crate::answer::query::Predicate;
use crate::answer::trie::{Mode, Trie, TrieNode};
use crate::document::{Fragment, ItemKind, Layout, Table};
use aqlite_rm::class::Attr;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// Rows of nodes, one column a path or captured step.
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

    /// Rows of some nodes.
    pub fn of<'r>(rows: impl Iterator<Item = &'r [Node]>, width: usize) -> Rows {
        Rows {
            width,
            nodes: rows.flatten().copied().collect(),
        }
    }

    /// The rows of a template at a fragment.
    pub fn of_template(template: &[Cells], fragment: Fragment, width: usize) -> Rows {
        let mut rows = Rows::none(width);
        for cells in template {
            let start = rows.nodes.len();
            rows.nodes.resize(start + width, Node::NONE);
            rows.set(start, cells, fragment);
        }
        rows
    }

    fn set(&mut self, start: usize, cells: &Cells, fragment: Fragment) {
        project_cells(
            self.nodes.get_mut(start..).unwrap_or_default(),
            cells,
            fragment,
        );
    }

    /// The rows of one fragment as those of all fragments of its layout.
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

    /// Every row of `self` with every row of `other`, at most `most` of them; the columns of both
    /// are disjoint.
    pub fn product(&mut self, other: &Rows, most: usize) {
        // In the usual case of one row each, no list is made.
        if self.nodes.len() == self.width && other.nodes.len() == self.width {
            merge(&mut self.nodes, &other.nodes);
            return;
        }
        // One row more than allowed is made, so that the caller notices the excess.
        let rows = self
            .len()
            .saturating_mul(other.len())
            .min(most.saturating_add(1));
        let mut nodes = Vec::with_capacity(rows.saturating_mul(self.width));
        for row in self.iter() {
            for more in other
                .iter()
                .take(rows.saturating_sub(nodes.len() / self.width))
            {
                let start = nodes.len();
                nodes.extend_from_slice(row);
                merge(nodes.get_mut(start..).unwrap_or_default(), more);
            }
        }
        self.nodes = nodes;
    }
}

/// The product of the rows of some variables, of which no more than one row is made at a time: the
/// last variable varies fastest.
pub(super) struct Product {
    width: usize,
    factors: Vec<Rows>,
}

impl Product {
    /// The product of no variables: one row without nodes.
    pub fn new(width: usize) -> Product {
        Product {
            width,
            factors: Vec::new(),
        }
    }

    /// Multiplies by the rows of one more variable; the columns of all are disjoint.
    pub fn add(&mut self, rows: Rows) {
        self.factors.push(rows);
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        self.factors
            .iter()
            .fold(1, |all, rows| all.saturating_mul(rows.len() as u64))
    }

    /// The most rows that one variable has.
    pub fn widest(&self) -> usize {
        self.factors.iter().map(Rows::len).max().unwrap_or(0)
    }

    /// Writes the row of a number.
    pub fn fill(&self, number: u64, row: &mut [Node]) {
        row.fill(Node::NONE);
        // The number is read as digits of mixed base, the last variable being the lowest digit.
        let mut rest = number;
        for rows in self.factors.iter().rev() {
            let count = rows.len().max(1) as u64;
            let start = (rest % count) as usize * self.width;
            rest /= count;
            merge(
                row,
                rows.nodes
                    .get(start..start + self.width)
                    .unwrap_or_default(),
            );
        }
    }
}

fn merge(row: &mut [Node], more: &[Node]) {
    for (cell, other) in row.iter_mut().zip(more) {
        if !other.is_none() {
            *cell = *other;
        }
    }
}

/// The path from an item to the only repeated group on which its rows depend.
#[derive(Default)]
struct GroupPath {
    cells: Vec<ProjectedCell>,
    /// The repeated group, the step whose instances its child rows are, and the paths alive before
    /// it.
    group: Option<(u32, usize, PathSet)>,
    /// The cells that are removed if no child row has a row: those of the steps between the
    /// repeated group and the step that stays.
    below: Option<Range<usize>>,
}

/// Expands the tries of one plan over one batch.
#[derive(Clone, Copy)]
pub(super) struct Expander<'p, 'b> {
    pub plan: &'p Plan,
    pub view: View<'b>,
    /// The largest number of rows of one assignment. One row more is built to detect an overflow.
    pub most: usize,
    /// Without templates.
    pub plain: bool,
}

/// The start of the expansion of a variable in the rows of a table.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// At the item that the variable is bound to.
    Item(u32),
    /// At their roots, which are instances of this step, with the paths that are alive before it.
    Child(usize, PathSet),
}

impl Start {
    /// Returns the start of the expansion in the child rows of a repeated group.
    pub fn in_children(over: &GroupExpansion) -> Start {
        Start::Child(over.step, over.alive)
    }
}

/// A variable, expanded in the fragments of one table.
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
            .variants(Bound {
                variable: self.trie.variable,
                step,
                item,
                alive,
            })
    }

    /// Returns the layout variant of a row; computed once for all rows with the same tested items.
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
        let (differs, asked) = (Cell::new(false), PresenceTests::of(fragment));
        let asking = Expander {
            view: self.expander.view.asking(&differs, &asked),
            ..self.expander
        };
        let (node, rows) = match self.start {
            Start::Item(item) => (
                Node { fragment, item },
                asking.walked(self.trie, Node { fragment, item }),
            ),
            Start::Child(step, alive) => (
                Node::root(fragment),
                asking.expand_child(self.trie, step, Node::root(fragment), &alive),
            ),
        };
        // If presence alone decided, the rows hold for all fragments with the same items.
        let expansion = match (differs.replace(false), self.start) {
            (false, _) => Expansion::Rows(rows.cells(self.table.layout())),
            // Nothing below child rows is followed further: such rows are walked.
            (true, Start::Child(..)) => Expansion::Walk,
            (true, Start::Item(_)) => asking
                .group_expansion(self.trie, node)
                .filter(|_| !differs.get())
                .map_or(Expansion::Walk, Expansion::Group),
        };
        LayoutVariant {
            tests: asked.tests(),
            expansion,
        }
    }
}

impl<'p, 'b> Expander<'p, 'b> {
    /// A variable in the fragments of a table; nothing is known without templates.
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

    /// The rows of an instance of a step; none where no path cares for it.
    fn expand_child(self, trie: &Trie, step: usize, node: Node, alive: &PathSet) -> Rows {
        let passing = trie
            .nodes
            .get(step)
            .and_then(|step| self.passing(step, node, alive));
        passing.map_or(Rows::none(self.plan.width), |passing| {
            self.expand(trie, step, node, &passing)
        })
    }

    /// The rows of an assignment: the product over all variables that have paths.
    pub fn product(self, assignment: &[Node]) -> Product {
        let mut product = Product {
            width: self.plan.width,
            factors: Vec::with_capacity(self.plan.tries.len()),
        };
        for trie in &self.plan.tries {
            let node = assignment.get(trie.variable).copied().unwrap_or(Node::NONE);
            if node.is_none() {
                continue;
            }
            product.add(
                match self
                    .expansion(trie, node)
                    .as_deref()
                    .and_then(LayoutVariant::rows)
                {
                    Some(template) => Rows::of_template(template, node.fragment, self.plan.width),
                    None => self.walked(trie, node),
                },
            );
        }
        product
    }

    /// Returns the expansion of a variable that is bound to this node. It holds for all fragments
    /// with the same outcome of the presence tests. `None` without row templates.
    pub fn expansion(self, trie: &Trie, node: Node) -> Option<Rc<LayoutVariant>> {
        Some(
            self.step(trie, node.fragment.table, Start::Item(node.item))?
                .variant(node.fragment.row),
        )
    }

    /// Returns the path to the only repeated group on which the rows depend, when each other step
    /// has at most one instance.
    fn group_expansion(self, trie: &Trie, node: Node) -> Option<GroupExpansion> {
        let mut group_path = GroupPath::default();
        let exists = self.descend(trie, 0, node, &self.alive(trie, node), &mut group_path)?;
        let (group, step, alive) = group_path.group.filter(|_| exists)?;
        let below = group_path.below.unwrap_or_default();
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

    /// Like [`Expander::fill`], but past one repeated group. `None`: more than that decides.
    fn descend(
        self,
        trie: &Trie,
        at: usize,
        node: Node,
        alive: &PathSet,
        group_path: &mut GroupPath,
    ) -> Option<bool> {
        let step = trie.nodes.get(at)?;
        for kid in &step.kids {
            let (start, known) = (group_path.cells.len(), group_path.group.is_some());
            let below = match self.run_at(trie, *kid, node) {
                // The rows of a second repeated group would have to be multiplied.
                Some(_) if known => return None,
                Some(group) => {
                    group_path.group = Some((group?, *kid, *alive));
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

    /// The repeated group that all instances of a step below a node are in; `Some(None)` when only
    /// some are.
    fn run_at(self, trie: &Trie, kid: usize, node: Node) -> Option<Option<u32>> {
        let layout = self.view.table(node)?.layout();
        let has = |item: &u32| self.view.has(node.fragment, *item);
        let step = trie.nodes.get(kid)?;
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

    /// The rows of one variable, bound to a node, found by walking from it.
    pub fn walked(self, trie: &Trie, node: Node) -> Rows {
        let alive = self.alive(trie, node);
        let mut rows = Rows::single(self.plan.width);
        match self.fill(trie, 0, node, &alive, &mut rows.nodes) {
            Some(_) => rows,
            None => self.expand(trie, 0, node, &alive),
        }
    }

    /// The paths whose root predicate the node passes.
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

    /// The usual layout variant, without lists of rows: fills the cells of a step and of all below
    /// it while each step has at most one instance. `Some(false)`: the instance has no row;
    /// `None`: a step has more, so that rows must be multiplied.
    fn fill(
        self,
        trie: &Trie,
        at: usize,
        node: Node,
        alive: &PathSet,
        row: &mut [Node],
    ) -> Option<bool> {
        let Some(step) = trie.nodes.get(at) else {
            return Some(true);
        };
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
            if let Some(cell) = row.get_mut(*column) {
                *cell = node;
            }
        }
        Some(true)
    }

    /// The one instance of a step that some path is alive at, with those paths; `None` when there
    /// are several.
    fn only(
        self,
        trie: &Trie,
        kid: usize,
        node: Node,
        alive: &PathSet,
    ) -> Option<Option<(Node, PathSet)>> {
        let mut found = None;
        let mut several = false;
        if let Some(step) = trie.nodes.get(kid).filter(|_| !node.is_none()) {
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

    /// The paths that are alive at an instance; `None` when no path cares for it.
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

    /// False for an item whose node id alone says that no path cares for it.
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
        let Some(step) = trie.nodes.get(at) else {
            return rows;
        };
        let columns = step
            .ends
            .iter()
            .filter(|p| alive.contains(**p))
            .chain(&step.capture);
        for column in columns {
            if let Some(cell) = rows.nodes.get_mut(*column) {
                *cell = node;
            }
        }
        for kid in &step.kids {
            let below = self.below(trie, *kid, node, alive);
            if !below.is_empty() {
                rows.product(&below, self.most);
                self.view.count((STEP + of_row) * rows.len() as u64);
            } else if step.mode == Mode::Chain {
                return Rows::none(self.plan.width);
            }
        }
        rows
    }

    /// The rows of all instances of a step below a node.
    fn below(self, trie: &Trie, kid: usize, node: Node, alive: &PathSet) -> Rows {
        let mut rows = Rows::none(self.plan.width);
        let Some(step) = trie.nodes.get(kid).filter(|_| !node.is_none()) else {
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
                rows.len() <= self.most && self.view.bounds_overdue()
            },
        );
        rows
    }
}
