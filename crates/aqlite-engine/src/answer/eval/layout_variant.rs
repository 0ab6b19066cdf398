//! Layout variants: the expansion of paths, computed once for all fragments of a table that have the
//! same optional items.
//!
//! The expansion of one fragment is recorded with the presence bitmaps that it tested. If nothing
//! else decided (no leaf value, no repeated group), its rows become row templates: each cell is the
//! item of the layout that fills it. If one repeated group decided besides, the templates are those
//! of its child rows, and the cells of the parent row are added to each. Otherwise each fragment is
//! walked ([`Expander::walked`]).
//!
//! In a table with the merged layout `[a, b, c]`, where bitmap 0 contains the rows with `b`, the path
//! `items[b]/value` has two variants. Rows in bitmap 0 share a row template whose cell is the item of
//! the value of `b`. The others share one without that cell, which stays NULL.

use super::expand::Expander;
use super::node::{Node, PresenceTests};
use crate::answer::plan::PathSet;
use crate::answer::plan_cache::{
    DecisionTree, Expansion, GroupExpansion, LayoutVariant, ProjectedCell, StepBinding,
};
use crate::answer::trie::{Mode, Trie};
use crate::document::{Fragment, ItemKind, Table};
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

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
    /// The paths that match before the step.
    matching: PathSet,
}

/// The start of the expansion of a variable in the fragments of a table.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// The item that the variable is bound to.
    Item(u32),
    /// The root, which is an instance of this step, and the paths that match before the step.
    Child(usize, PathSet),
}

impl Start {
    /// Returns the start of the expansion in the child rows of a repeated group.
    pub fn in_children(expansion: &GroupExpansion) -> Start {
        Start::Child(expansion.step, expansion.matching)
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
        let (step, item, matching) = match self.start {
            Start::Item(item) => (0, item, PathSet::default()),
            Start::Child(step, matching) => (step, 0, matching),
        };
        self.expander
            .plan
            .plan_cache
            .of(self.table.layout())
            .variants(StepBinding {
                variable: self.trie.variable,
                step,
                item,
                matching,
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
            Start::Child(step, matching) => (
                Node::root(fragment),
                recording.expand_child(self.trie, step, Node::root(fragment), &matching),
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
        let exists = self.descend(trie, 0, node, &self.matching(trie, node), &mut group_path)?;
        let GroupStep {
            group,
            step,
            matching,
        } = group_path.group.filter(|_| exists)?;
        // The root of a trie always keeps its row (`Mode::Left`), so the range is known. If it is
        // not, the fragments are walked.
        let below = group_path.below?;
        let childless_cells = [
            group_path.cells.get(..below.start)?,
            group_path.cells.get(below.end..)?,
        ]
        .concat()
        .into();
        Some(GroupExpansion {
            group,
            step,
            matching,
            parent_cells: group_path.cells.into(),
            childless_cells,
        })
    }

    /// Collects cells like [`Expander::fill`], but continues past one repeated group. Returns
    /// `None` if several repeated groups or steps decide.
    fn descend(
        self,
        trie: &Trie,
        at: usize,
        node: Node,
        matching: &PathSet,
        group_path: &mut GroupPath,
    ) -> Option<bool> {
        let step = self.step_of(trie, at)?;
        for child in &step.children {
            let (start, known) = (group_path.cells.len(), group_path.group.is_some());
            let below = match self.repeated_group(trie, *child, node) {
                // The rows of a second repeated group would have to be multiplied.
                Some(_) if known => return None,
                Some(group) => {
                    group_path.group = Some(GroupStep {
                        group: group?,
                        step: *child,
                        matching: *matching,
                    });
                    true
                }
                None => match self.only(trie, *child, node, matching)? {
                    Some((instance, passing)) => {
                        self.descend(trie, *child, instance, &passing, group_path)?
                    }
                    None => false,
                },
            };
            // A purely structural step vanishes if there is no row below.
            if !below && step.mode == Mode::Inner {
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
            .filter(|p| matching.contains(**p))
            .chain(&step.capture);
        let layout = self.view.table(node)?.layout();
        group_path
            .cells
            .extend(columns.map(|column| ProjectedCell::of(layout, *column, node.item)));
        Some(true)
    }

    /// Returns the repeated group that contains all instances of a step below a node; `Some(None)`
    /// if only some instances are in a group, and `None` if no instance is.
    fn repeated_group(self, trie: &Trie, child: usize, node: Node) -> Option<Option<u32>> {
        let layout = self.view.table(node)?.layout();
        let has = |item: &u32| self.view.has(node.fragment, *item);
        let step = self.step_of(trie, child)?;
        let item = layout.child(node.item, step.attr).filter(has)?;
        let group_of = |item: u32| match layout.item(item).map(|i| i.kind) {
            Some(ItemKind::Group(group)) => Some(group),
            _ => None,
        };
        let elements: Vec<u32> = match layout.item(item)?.kind {
            ItemKind::List => layout
                .children(item)
                .filter(|item| self.may_pass(step, layout, *item))
                .filter(has)
                .collect(),
            _ => vec![item],
        };
        match elements.as_slice() {
            [only] => group_of(*only).map(Some),
            several => several
                .iter()
                .any(|e| group_of(*e).is_some())
                .then_some(None),
        }
    }
}
