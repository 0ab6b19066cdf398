//! The anchor scan: finds the rows that an anchor can bind, table by table and by layout variant.

use super::QueryError;
use super::bind::may_hold;
use super::layout_variant::{Start, StepIn};
use super::node::Node;
use super::predicate::PredicateEvaluator;
use super::scope::Scope;
use super::selection::Selection;
use super::templates::RowTemplateEvaluator;
use crate::answer::plan_cache::{
    AnchorTables, Branch, BranchId, DecisionTree, Expansion, GroupExpansion, LayoutVariant,
};
use crate::answer::query::{ClassExpr, Predicate};
use crate::answer::trie::Trie;
use crate::document::{Fragment, Table};
use aqlite_rm::order;
use std::cell::Cell;
use std::rc::Rc;

/// The rows of a table within the scope, grouped by layout variant.
pub(super) struct TableVariants<'b> {
    pub table: &'b Table,
    pub number: u32,
    pub variants: Vec<(Rc<LayoutVariant>, Selection<'b>)>,
    /// Whether these are all rows of the table within the scope, because no predicate excluded any.
    pub are_all: bool,
}

/// Repeated groups whose child rows are read without their parent rows.
pub(super) struct RepeatedGroups<'b> {
    pub children: Vec<TableVariants<'b>>,
    /// The layout variant with the step whose instances the child rows are.
    variant: Rc<LayoutVariant>,
}

/// Parent rows for which no child row results in a row.
pub(super) struct ChildlessParents {
    /// The number of their table.
    pub table: u32,
    pub variant: Rc<LayoutVariant>,
    pub rows: Vec<u32>,
}

/// A callback that receives the rows of one layout variant.
pub(super) type Visit<'v, 'b> =
    &'v mut dyn FnMut(Rc<LayoutVariant>, Selection<'b>) -> Result<(), QueryError>;

impl<'b> TableVariants<'b> {
    /// Groups rows of the table of a step by layout variant.
    pub fn of(step: &StepIn<'_, '_, 'b>, rows: Selection<'b>) -> TableVariants<'b> {
        let mut variants = Vec::with_capacity(1);
        // The visitor returns no error.
        let _ = step.each_variant(rows, &mut |variant, rows| {
            variants.push((variant, rows));
            Ok(())
        });
        TableVariants {
            table: step.table,
            number: step.number,
            variants,
            are_all: true,
        }
    }
}

impl<'b> StepIn<'_, '_, 'b> {
    /// Visits rows of the table, grouped by layout variant. Each branch of the decision tree splits
    /// the rows, until all rows of a part have the same variant.
    pub fn each_variant(
        &self,
        rows: Selection<'b>,
        visit: Visit<'_, 'b>,
    ) -> Result<(), QueryError> {
        let variants = self.variants();
        let mut open: Vec<(BranchId, Selection<'b>)> = vec![(DecisionTree::ENTRY, rows)];
        while let Some((place, rows)) = open.pop() {
            match variants.at(place) {
                _ if rows.is_empty() => {}
                Branch::LayoutVariant(variant) => visit(variant, rows)?,
                Branch::Test(number, flag) => {
                    let (has, lacks) = rows.split(self.table.presence(flag));
                    open.extend([((number, false), lacks), ((number, true), has)]);
                }
                // The first row of an unknown branch extends the tree, and the rows are split
                // again.
                Branch::Unknown
                    if rows.get(0).is_some_and(|row| {
                        variants.learn(self.presence(row), || self.find(row))
                    }) =>
                {
                    open.push((place, rows))
                }
                // The tree is full, so these rows are walked.
                Branch::Unknown => visit(
                    Rc::new(LayoutVariant {
                        tests: Vec::new(),
                        expansion: Expansion::Walk,
                    }),
                    rows,
                )?,
            }
        }
        Ok(())
    }
}

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Returns the tables whose fragments an anchor can bind. The result is cached for the schema
    /// of the batch.
    pub fn anchor_tables(&self, anchor: &'p ClassExpr) -> Rc<AnchorTables> {
        let schema_id = self.batch.schema_id();
        self.plan
            .plan_cache
            .anchor_tables(anchor.variable, schema_id, || {
                let may_pass = self.may_pass(anchor);
                let tables = self
                    .batch
                    .tables()
                    .filter(|(_, table)| may_pass(table))
                    .map(|(number, _)| number);
                AnchorTables {
                    schema_id,
                    tables: tables.collect(),
                }
            })
    }

    /// Returns the rows of the scope that an anchor binds, table by table.
    pub fn anchored_rows(
        &self,
        anchor: &'p ClassExpr,
        scope: &Scope<'b>,
        rows_since_check: &mut usize,
    ) -> Result<Vec<TableVariants<'b>>, QueryError> {
        let anchor_tables = self.anchor_tables(anchor);
        let mut found = Vec::with_capacity(anchor_tables.tables.len());
        for number in &anchor_tables.tables {
            let table = self.batch.table(*number);
            let table = table.ok_or(QueryError::Broken("an anchor table is not in the batch"))?;
            let all = scope.rows(*number, table);
            let count = all.len();
            let rows = self.bound(anchor, (table, *number), all, rows_since_check)?;
            found.extend(rows.map(|rows| TableVariants {
                are_all: rows.len() == count,
                ..self.group_by_variant(anchor, (table, *number), rows)
            }));
        }
        Ok(found)
    }

    /// Returns those of some rows of a table that an anchor binds; `None` if there are none.
    pub fn bound(
        &self,
        anchor: &ClassExpr,
        (table, number): (&Table, u32),
        rows: Selection<'b>,
        rows_since_check: &mut usize,
    ) -> Result<Option<Selection<'b>>, QueryError> {
        let predicate = match (self.root_passes(anchor, number, table), &anchor.predicate) {
            (None, Some(predicate)) => predicate,
            (passes, _) => return Ok((passes != Some(false)).then_some(rows)),
        };
        let predicates = PredicateEvaluator {
            plan: self.plan,
            view: self.view(),
        };
        let mut passing = Vec::new();
        for row in rows.rows().iter() {
            self.check_cancelled(rows_since_check, 0)?;
            passing.extend(
                predicates
                    .holds(
                        predicate,
                        Node::root(Fragment {
                            table: number,
                            row: *row,
                        }),
                    )
                    .then_some(*row),
            );
        }
        Ok(Some(Selection::Indices(passing)))
    }

    /// Groups rows of a table by the layout variants of an anchor.
    fn group_by_variant(
        &self,
        anchor: &ClassExpr,
        (table, number): (&'b Table, u32),
        rows: Selection<'b>,
    ) -> TableVariants<'b> {
        match self.step(anchor, number) {
            Some(step) => TableVariants::of(&step, rows),
            None => TableVariants {
                table,
                number,
                variants: vec![(variant_without_paths(), rows)],
                are_all: true,
            },
        }
    }

    /// Visits rows of a table, grouped by the layout variants of an anchor.
    pub fn each_variant(
        &self,
        anchor: &ClassExpr,
        number: u32,
        rows: Selection<'b>,
        visit: Visit<'_, 'b>,
    ) -> Result<(), QueryError> {
        match self.step(anchor, number) {
            Some(step) => step.each_variant(rows, visit),
            None => visit(variant_without_paths(), rows),
        }
    }

    /// Returns the start of the paths of an anchor in a table; `None` if its variable has no paths.
    fn step(&self, anchor: &ClassExpr, number: u32) -> Option<StepIn<'p, 'p, 'b>> {
        self.expander(self.view())
            .step(self.trie_of(anchor)?, number, Start::Item(0))
    }

    /// Returns a test by class and node id: whether a table can have fragments that an anchor
    /// binds.
    pub fn may_pass(&self, anchor: &'p ClassExpr) -> impl Fn(&Table) -> bool {
        let known = |predicate: &Predicate| {
            self.batch
                .root_ids()
                .map(|id| may_hold(predicate, Some(id), self.plan.exact))
                .collect()
        };
        let known: Vec<bool> = anchor.predicate.as_ref().map_or(Vec::new(), known);
        move |table| {
            table
                .root_id()
                // A table that may pass is tested again when its rows are bound.
                .is_none_or(|id| known.get(id as usize) != Some(&false))
                && table.layout().class().is_a(anchor.class)
        }
    }

    /// Returns whether all fragments of a table pass the predicate of an anchor; `None` if their
    /// outcomes differ.
    fn root_passes(&self, anchor: &ClassExpr, number: u32, table: &Table) -> Option<bool> {
        let Some(predicate) = &anchor.predicate else {
            return Some(true);
        };
        self.plan
            .plan_cache
            .of(table.layout())
            .passes(anchor.variable, || {
                // The outcome of row 0 holds for all rows, unless it depended on the row.
                let differs = Cell::new(false);
                let root = Node::root(Fragment {
                    table: number,
                    row: 0,
                });
                let first = PredicateEvaluator {
                    plan: self.plan,
                    view: self.view().watched(&differs),
                }
                .holds(predicate, root);
                (!differs.get()).then_some(first)
            })
    }

    /// Returns the repeated groups on which the rows depend, if their child rows can be read
    /// without their parent rows.
    ///
    /// This needs three conditions: the child rows are all rows of their tables, they are instances
    /// of one step, and their parent rows contribute no cell. Parent rows are then looked up only
    /// for child rows that result in no row.
    pub fn groups(
        &self,
        trie: &Trie,
        parents: &[TableVariants<'b>],
        scope: &Scope<'b>,
    ) -> Option<RepeatedGroups<'b>> {
        let mut variants = parents.iter().flat_map(|table| &table.variants);
        let (variant, _) = variants.find(|(variant, _)| group_expansion(variant).is_some())?;
        let expansion = group_expansion(variant)?;
        let groups = groups_of_step(parents, expansion)?;
        let (mut children, mut counts) = (Vec::new(), ChildRowCounts::default());
        for (number, table) in self
            .batch
            .tables()
            .filter(|(_, table)| table.origins().iter().any(|of| groups.contains(of)))
        {
            let rows = scope.rows(number, table);
            let expander = self.expander(self.view());
            let step = expander.step(trie, number, Start::in_children(expansion))?;
            let rows_by_variant = TableVariants::of(&step, rows);
            counts.add(&rows_by_variant)?;
            if !table.origins().iter().all(|of| groups.contains(of)) {
                return None;
            }
            children.push(rows_by_variant);
        }
        // Many lookups of parent rows would cost more than reading child rows by parent.
        (counts.rowless <= counts.with_rows / 8).then(|| RepeatedGroups {
            children,
            variant: Rc::clone(variant),
        })
    }

    /// Returns the parent rows whose child rows all result in no row. Reads only the parent rows of
    /// child rows without a resulting row.
    pub fn childless_parents(
        &self,
        trie: &Trie,
        groups: &RepeatedGroups<'b>,
    ) -> Result<Vec<ChildlessParents>, QueryError> {
        let expansion = group_expansion(&groups.variant)
            .ok_or(QueryError::Broken("child rows have no repeated group"))?;
        let mut childless: Vec<ChildlessParents> = Vec::new();
        for parent in order::distinct(self.parents_of_rowless(groups)?) {
            let variant = self.expander(self.view());
            let variant = variant.expansion(trie, Node::root(parent));
            let variant = variant.ok_or(QueryError::Broken("a parent row has no table"))?;
            // `groups` is only returned if every variant with the group depends on it.
            let group = group_expansion(&variant).ok_or(QueryError::Broken(
                "rows of a parent row do not depend on its child rows",
            ))?;
            if self.has_rows(trie, expansion, parent, group)? {
                continue;
            }
            match childless.iter_mut().find(|known| {
                known.table == parent.table
                    && group_expansion(&known.variant).is_some_and(|of| of.group == group.group)
            }) {
                Some(known) => known.rows.push(parent.row),
                None => childless.push(ChildlessParents {
                    table: parent.table,
                    variant: Rc::clone(&variant),
                    rows: vec![parent.row],
                }),
            }
        }
        Ok(childless)
    }

    /// Returns the parent rows of the child rows that result in no row, without duplicates.
    fn parents_of_rowless(&self, groups: &RepeatedGroups<'b>) -> Result<Vec<Fragment>, QueryError> {
        let mut parents = Vec::new();
        for table in &groups.children {
            let variants = table.variants.iter();
            for (_, rows) in variants.filter(|(variant, _)| is_rowless(variant)) {
                for row in rows.rows().iter().copied() {
                    let child = Fragment {
                        table: table.number,
                        row,
                    };
                    let parent = self.batch.parent_of(child);
                    parents
                        .push(parent.ok_or(QueryError::Broken("a child row has no parent row"))?);
                }
            }
        }
        Ok(parents)
    }

    /// Returns whether a child row of a parent row results in a row. `expansion` is the expansion with
    /// the step whose instances the child rows are.
    fn has_rows(
        &self,
        trie: &Trie,
        expansion: &GroupExpansion,
        parent: Fragment,
        group: &GroupExpansion,
    ) -> Result<bool, QueryError> {
        for child in self.batch.child_rows(parent, group.group) {
            let expander = self.expander(self.view());
            let step = expander.step(trie, child.table, Start::in_children(expansion));
            let step = step.ok_or(QueryError::Broken("a child row has no table"))?;
            if !is_rowless(&step.variant(child.row)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl TableVariants<'_> {
    /// Returns whether the rows of all other layout variants lack a repeated group. Variants count
    /// as having it if their presence tests do not decide.
    fn is_absent_elsewhere(&self, group: u32) -> bool {
        let layout = self.table.layout();
        let mut flags = Vec::new();
        // The caller then reads the child rows by their parent rows.
        let Some(mut at) = layout.groups().get(group as usize).copied() else {
            return false;
        };
        while let Some(item) = layout.item(at) {
            flags.extend(item.presence);
            if at == 0 {
                break;
            }
            at = item.parent;
        }
        let lacks = |variant: &LayoutVariant| {
            variant
                .tests
                .iter()
                .any(|(flag, is_present)| !is_present && flags.contains(flag))
        };
        self.variants.iter().all(|(variant, _)| {
            group_expansion(variant).is_some_and(|of| of.group == group) || lacks(variant)
        })
    }
}

/// Returns the layout variant of all fragments for a query without paths: one row without cells.
fn variant_without_paths() -> Rc<LayoutVariant> {
    Rc::new(LayoutVariant {
        tests: Vec::new(),
        expansion: Expansion::Rows(vec![Rc::new([])]),
    })
}

/// Returns the repeated groups, by table, on which the rows of parent rows depend. Returns `None`
/// if a group belongs to another step than that of `expansion`, or if its parent rows contribute cells.
fn groups_of_step(
    parents: &[TableVariants<'_>],
    expansion: &GroupExpansion,
) -> Option<Vec<(u32, u32)>> {
    let mut groups = Vec::new();
    for table in parents {
        let variants = table.variants.iter();
        for group in variants.filter_map(|(variant, _)| group_expansion(variant)) {
            if !group.parent_cells.is_empty()
                || !table.are_all
                || (group.step, group.matching) != (expansion.step, expansion.matching)
                || !table.is_absent_elsewhere(group.group)
            {
                return None;
            }
            groups.push((table.number, group.group));
        }
    }
    Some(groups)
}

/// The numbers of child rows that result in rows, and of child rows that result in none.
#[derive(Default)]
struct ChildRowCounts {
    with_rows: usize,
    rowless: usize,
}

impl ChildRowCounts {
    /// Counts the child rows of a table. Returns `None` if some of them must be walked.
    fn add(&mut self, children: &TableVariants<'_>) -> Option<()> {
        for (variant, rows) in &children.variants {
            if variant.rows()?.is_empty() {
                self.rowless += rows.len();
            } else {
                self.with_rows += rows.len();
            }
        }
        Some(())
    }
}

/// Returns whether fragments of a variant result in no row.
fn is_rowless(variant: &LayoutVariant) -> bool {
    variant.rows().is_some_and(<[_]>::is_empty)
}

/// Returns the repeated group on which the expansion of a variant depends; `None` for other
/// expansions.
pub(super) fn group_expansion(variant: &LayoutVariant) -> Option<&GroupExpansion> {
    match &variant.expansion {
        Expansion::Group(of) => Some(of),
        _ => None,
    }
}
