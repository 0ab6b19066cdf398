//! Statistics of the tables and layouts that a run reads, for the explanation of a query.

use super::anchor_scan::TableVariants;
use super::expand::Expander;
use super::layout_variant::Start;
use super::node::{Node, View};
use super::predicate::PredicateEvaluator;
use super::rows::Rows;
use super::selection::Selection;
use crate::answer::plan::Plan;
use crate::answer::plan_cache::LayoutVariant;
use crate::answer::query::{ClassExpr, Contains, Source};
use crate::document::{Batch, Doc, Fragment, ItemKind, Layout, Table};
use aqlite_rm::class::Attr;
use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;

/// The largest number of layouts, and of row templates of one layout, in an explanation.
const MAX_SHOWN: usize = 40;

/// Counts of the data that a run read, summed over its batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScanStatistics {
    /// Batches that the repository sent.
    pub batches: usize,
    /// Batches that are segments.
    pub segments: usize,
    /// An estimate of the bytes of the batches.
    pub bytes: usize,
    /// EHRs in the batches.
    pub ehrs: usize,
    /// Documents in the batches.
    pub documents: usize,
    /// Documents of a kind and version that the query reads.
    pub scanned: usize,
    /// Layouts in the batches.
    pub layouts: usize,
    /// Layouts that a class of FROM can bind, limited to the first 40.
    pub matching: Vec<LayoutStatistics>,
}

/// The fragments of one table and layout variant that a class expression can bind.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutStatistics {
    /// The class of the root, with the archetype id or node id.
    pub name: String,
    /// The variable of the class expression.
    pub variable: String,
    /// The number of fragments.
    pub fragments: usize,
    /// Whether the root can pass the predicate, as far as the layout determines it.
    pub passes: bool,
    /// The rows of a fragment, with one text for each path: the path of a leaf, a constant, or
    /// NULL. Empty if the rows differ between fragments.
    pub rows: Vec<Vec<String>>,
}

impl ScanStatistics {
    /// Adds the data of a batch.
    pub fn add(&mut self, plan: &Plan, batch: &Batch) {
        let scan = plan.scan();
        self.batches += 1;
        self.segments += usize::from(batch.is_late());
        self.bytes += batch.bytes();
        self.ehrs += batch.ehrs().count();
        self.documents += batch.len();
        let wanted = |kind, latest: bool, deleted: bool| {
            scan.kinds.contains(&kind) && (scan.all_versions || (latest && !deleted))
        };
        let ehrs = scan.ehrs_in(batch);
        let of_ehr = |doc: &Doc| ehrs.as_ref().is_none_or(|ehrs| ehrs.contains(&doc.ehr));
        self.scanned += batch
            .docs()
            .filter(|d| wanted(d.row.kind, d.row.latest, d.row.deleted) && of_ehr(d))
            .count();
        self.layouts += batch.tables().count();
        self.add_matching(plan, batch);
    }

    /// Adds the layouts that a class of FROM can bind, up to [`MAX_SHOWN`] in total.
    fn add_matching(&mut self, plan: &Plan, batch: &Batch) {
        let mut classes = Vec::new();
        each_class(&plan.query.from, &mut classes);
        for (number, table) in batch.tables() {
            let class = table.layout().class();
            for expr in classes.iter().filter(|e| class.is_a(e.class)) {
                let left = MAX_SHOWN.saturating_sub(self.matching.len());
                let scanned = ScannedTable {
                    plan,
                    batch,
                    expr,
                    number,
                    table,
                };
                self.matching
                    .extend(scanned.variants().into_iter().take(left));
            }
        }
    }
}

fn each_class<'q>(source: &'q Source, found: &mut Vec<&'q ClassExpr>) {
    match source {
        Source::And(left, right) | Source::Or(left, right) => {
            each_class(left, found);
            each_class(right, found);
        }
        Source::Class(expr) => {
            found.push(expr);
            if let Contains::Some(inner) | Contains::None(inner) = &expr.contains {
                each_class(inner, found);
            }
        }
    }
}

/// A table whose fragments a class expression can bind.
#[derive(Clone, Copy)]
struct ScannedTable<'t> {
    plan: &'t Plan,
    batch: &'t Batch,
    expr: &'t ClassExpr,
    number: u32,
    table: &'t Table,
}

impl ScannedTable<'_> {
    /// Returns the layout variants of the fragments.
    fn variants(self) -> Vec<LayoutStatistics> {
        let passes = self.may_pass();
        let mut tries = self.plan.tries.iter();
        let trie = tries.find(|t| t.variable == self.expr.variable);
        let Some(trie) = trie.filter(|_| passes) else {
            return vec![self.statistics(passes, self.table.len(), Vec::new())];
        };
        let expander = Expander {
            plan: self.plan,
            view: View::new(self.batch),
            max_rows: MAX_SHOWN,
            plain: false,
        };
        let Some(step) = expander.step(trie, self.number, Start::Item(0)) else {
            return Vec::new();
        };
        let rows = Selection::excluding(0..self.table.len() as u32, &[]);
        let sorted = TableVariants::of(&step, rows);
        let of_variant = |(variant, rows): &(Rc<LayoutVariant>, Selection<'_>)| {
            // The rows of a walked variant differ between fragments.
            let example = rows.get(0).filter(|_| variant.rows().is_some());
            let shown = example.map(|row| self.sources(&expander.walked(trie, self.node(row))));
            self.statistics(passes, rows.len(), shown.unwrap_or_default())
        };
        sorted.variants.iter().map(of_variant).collect()
    }

    fn node(&self, row: u32) -> Node {
        Node::root(Fragment {
            table: self.number,
            row,
        })
    }

    /// Returns whether a fragment can pass the predicate of the class expression.
    fn may_pass(&self) -> bool {
        let differs = Cell::new(false);
        let predicates = PredicateEvaluator {
            plan: self.plan,
            view: View::new(self.batch).watched(&differs),
        };
        let predicate = self.expr.predicate.as_ref();
        predicate.is_none_or(|p| predicates.holds(p, self.node(0))) || differs.get()
    }

    /// Returns the first rows of a fragment, with one text for each path.
    fn sources(&self, rows: &Rows) -> Vec<Vec<String>> {
        let source = |node: &Node| {
            if node.is_none() {
                String::from("NULL")
            } else {
                place(self.batch, *node)
            }
        };
        let rows = rows.iter().take(MAX_SHOWN);
        rows.map(|row| row.iter().map(source).collect()).collect()
    }

    /// Returns the statistics of `fragments` fragments of the table.
    fn statistics(
        &self,
        passes: bool,
        fragments: usize,
        rows: Vec<Vec<String>>,
    ) -> LayoutStatistics {
        let layout = self.table.layout();
        let id = layout
            .constant(0, Attr::ARCHETYPE_NODE_ID)
            .map(|id| format!("[{id}]"))
            .unwrap_or_default();
        let variable = self.plan.query.variables.get(self.expr.variable);
        LayoutStatistics {
            name: format!("{}{id}", layout.class()),
            variable: variable.and_then(|v| v.name.clone()).unwrap_or_default(),
            fragments,
            passes,
            rows,
        }
    }
}

/// Returns the path from the root of the layout to a node, and the text of a constant.
fn place(batch: &Batch, node: Node) -> String {
    let Some(layout) = batch.table(node.fragment.table).map(Table::layout) else {
        return String::new();
    };
    let mut out = path_in(layout, node.item);
    match layout.item(node.item).map(|item| (item.kind, item)) {
        Some((ItemKind::Leaf(..), _)) => out.push_str(" (slot)"),
        // A layout holds no text of a patient, but only texts of templates, archetypes and the
        // Reference Model.
        Some((ItemKind::Constant { .. }, item)) => drop(write!(out, " = {}", layout.text(item))),
        _ => {}
    }
    out
}

/// Returns the path from the root of a layout to an item, with node ids.
fn path_in(layout: &Layout, item: u32) -> String {
    let mut steps = Vec::new();
    let mut at = item;
    while let Some(item) = layout.item(at).filter(|_| at > 0) {
        let id = layout
            .constant(at, Attr::ARCHETYPE_NODE_ID)
            .map(|id| format!("[{id}]"))
            .unwrap_or_default();
        // An element of a list carries the attribute of its list.
        if item.kind != ItemKind::List {
            steps.push(format!("/{}{id}", item.attr.map_or("", Attr::name)));
        }
        at = item.parent;
    }
    steps.reverse();
    if steps.is_empty() {
        String::from("/")
    } else {
        steps.concat()
    }
}
