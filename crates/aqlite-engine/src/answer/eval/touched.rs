//! Statistics of the tables and layouts that a run reads, for the explanation of a query.

use super::anchor_scan::TableVariants;
use super::expand::{Expander, Start};
use super::node::{Node, View};
use super::predicate::PredicateEvaluator;
use super::selection::Selection;
use crate::answer::plan::Plan;
use crate::answer::plan_cache::LayoutVariant;
use crate::answer::query::{ClassExpr, Contains, Source};
use crate::document::{Batch, Doc, Fragment, ItemKind, Table};
use aqlite_rm::class::Attr;
use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;

/// The largest number of layouts, and of row templates of one layout, in an explanation.
const SHOWN: usize = 40;

/// Counts of the data that a run read, summed over its batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touched {
    /// Batches that the repository sent.
    pub batches: usize,
    /// Those of them that are segments.
    pub segments: usize,
    /// Bytes of them, about.
    pub bytes: usize,
    /// EHRs in them.
    pub ehrs: usize,
    /// Documents in them.
    pub documents: usize,
    /// Those of a kind and version that the query looks at.
    pub scanned: usize,
    /// Layouts in them.
    pub layouts: usize,
    /// Those whose root a class of FROM may bind, the first of them.
    pub matching: Vec<TouchedLayout>,
}

/// Fragments of one table that a class expression may bind, and that have the same of the items on
/// its paths.
#[derive(Clone, Debug, PartialEq)]
pub struct TouchedLayout {
    /// The class of its root, and the archetype or node id.
    pub name: String,
    /// The variable of the class expression.
    pub variable: String,
    /// The number of fragments.
    pub fragments: usize,
    /// Whether its node may pass the predicate, as far as the layout decides.
    pub passes: bool,
    /// The sources of each row of a fragment, one text for each path: the path to a leaf, a
    /// constant, or NULL. Empty where the rows differ from fragment to fragment.
    pub rows: Vec<Vec<String>>,
}

impl Touched {
    /// Adds what a batch holds.
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
        self.layouts += batch.tables().len();
        let mut classes = Vec::new();
        each_class(&plan.query.from, &mut classes);
        for (number, table) in (0..).zip(batch.tables()) {
            for expr in classes
                .iter()
                .filter(|e| table.layout().class().is_a(e.class))
            {
                let left = SHOWN.saturating_sub(self.matching.len());
                self.matching.extend(
                    variants(plan, batch, expr, number, table)
                        .into_iter()
                        .take(left),
                );
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

/// The layout variants of fragments in a table.
fn variants(
    plan: &Plan,
    batch: &Batch,
    expr: &ClassExpr,
    number: u32,
    table: &Table,
) -> Vec<TouchedLayout> {
    let node = |row: u32| Node::root(Fragment { table: number, row });
    let differs = Cell::new(false);
    let predicates = PredicateEvaluator {
        plan,
        view: View::new(batch).watched(&differs),
    };
    let passes = expr
        .predicate
        .as_ref()
        .is_none_or(|p| predicates.holds(p, node(0)))
        || differs.get();
    let id = table
        .layout()
        .constant(0, Attr::ARCHETYPE_NODE_ID)
        .map(|id| format!("[{id}]"))
        .unwrap_or_default();
    let variable = plan
        .query
        .variables
        .get(expr.variable)
        .and_then(|v| v.name.clone());
    let touched = |fragments: usize, rows: Vec<Vec<String>>| {
        let (name, variable) = (
            format!("{}{id}", table.layout().class()),
            variable.clone().unwrap_or_default(),
        );
        TouchedLayout {
            name,
            variable,
            fragments,
            passes,
            rows,
        }
    };
    let Some(trie) = plan
        .tries
        .iter()
        .find(|t| t.variable == expr.variable)
        .filter(|_| passes)
    else {
        return vec![touched(table.len(), Vec::new())];
    };
    let expander = Expander {
        plan,
        view: View::new(batch),
        most: SHOWN,
        plain: false,
    };
    let Some(step) = expander.step(trie, number, Start::Item(0)) else {
        return Vec::new();
    };
    let sorted = TableVariants::of(&step, Selection::excluding(0..table.len() as u32, &[]));
    let cell = |node: &Node| {
        if node.is_none() {
            String::from("NULL")
        } else {
            place(batch, *node)
        }
    };
    let shown = |row: Option<u32>| -> Vec<Vec<String>> {
        let rows = row.map(|row| expander.walked(trie, node(row)));
        rows.iter()
            .flat_map(|rows| rows.iter().take(SHOWN))
            .map(|row| row.iter().map(cell).collect())
            .collect()
    };
    let of_case = |(variant, rows): &(Rc<LayoutVariant>, Selection<'_>)| {
        touched(
            rows.len(),
            shown(rows.get(0).filter(|_| variant.rows().is_some())),
        )
    };
    sorted.variants.iter().map(of_case).collect()
}

/// Returns the path from the root of the layout to a node, and its constant.
fn place(batch: &Batch, node: Node) -> String {
    let Some(layout) = batch.table(node.fragment.table).map(Table::layout) else {
        return String::new();
    };
    let mut steps = Vec::new();
    let mut at = node.item;
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
    let mut out = if steps.is_empty() {
        String::from("/")
    } else {
        steps.concat()
    };
    match layout.item(node.item).map(|item| (item.kind, item)) {
        Some((ItemKind::Leaf(..), _)) => out.push_str(" (slot)"),
        // A layout holds no patient's text: only what a template, an archetype or the Reference
        // Model knows.
        Some((ItemKind::Constant(..), item)) => drop(write!(out, " = {}", layout.text(item))),
        _ => {}
    }
    out
}
