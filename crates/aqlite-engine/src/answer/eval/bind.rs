//! FROM: all assignments of the variables of a query within one EHR, or one document of it.

use super::expand::Product;
use super::node::{Node, View};
use super::predicate::{PredicateEvaluator, matches_node_id};
use super::semi_join::JoinableDocuments;
use super::work::{STEP, Work};
use crate::answer::plan::{Plan, may_occur_in};
use crate::answer::plan_cache::Candidate;
use crate::answer::query::{
    ClassExpr, CompareOp, Contains, Literal, Predicate, PredicateValue, Source, Versions,
};
use crate::document::{Container, Doc, Fragment, ItemKind, ObjectKind, Table};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::id::is_archetype_id;
use hashbrown::HashMap;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;

/// The node below which a class expression is searched.
#[derive(Clone, Copy)]
pub(super) enum Parent<'b> {
    /// All documents of an EHR.
    Ehr(u32),
    /// One document, for queries that never join documents.
    Doc(Doc),
    /// One version of an object.
    Version(Doc),
    /// All versions of an object.
    Object(&'b Container),
    /// A node of a document.
    Node(Node),
}

/// The nodes bound to the variables so far.
pub(super) type Assignment = Vec<Node>;

/// A callback that receives each complete assignment.
pub(super) type Next<'n> = &'n mut dyn FnMut(&mut Assignment) -> ControlFlow<()>;

/// Whether the EHR that was asked last passes the predicate of a class expression: (variable, EHR,
/// answer).
pub(super) type LastEhr = Cell<Option<(usize, u32, bool)>>;

/// Binds variables in one EHR of a batch.
pub(super) struct Binder<'p, 'b> {
    pub plan: &'p Plan,
    pub view: View<'b>,
    pub ehr: u32,
    pub last_ehr: &'p LastEhr,
    pub work: &'p Work,
    pub trail: &'p Trail,
    /// The documents that can be joined, if those were found before.
    pub joinable: Option<&'p JoinableDocuments>,
    /// The living compositions of the EHR by their object ids, once a folder was looked at.
    pub listed: OnceCell<HashMap<&'b str, Vec<u32>>>,
    /// The candidates of class expressions that are enumerated again and again.
    pub listings: RefCell<HashMap<(usize, ParentKey), Listing<'b>>>,
}

/// The candidates of a class expression below a parent that pass it and have below them what it
/// contains.
pub(super) type Listing<'b> = Rc<[ListedCandidate<'b>]>;

/// The candidates of a class expression that are bound below a parent.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    /// All, each found and tested when it is reached.
    All,
    /// All, from the listing: another class expression is assigned many times.
    Listed,
    /// The first of the listing. Only in a void run, which is left to find absent parts: the other
    /// candidates were bound with another assignment.
    First,
}

/// A candidate of a class expression.
#[derive(Clone, Copy)]
pub(super) struct ListedCandidate<'b> {
    /// Its number among all candidates, by which a trail finds it again.
    number: u32,
    node: Node,
    below: Parent<'b>,
}

/// The position of the enumeration of the assignments of one document or EHR, so that it can be
/// left and gone on with.
///
/// Class expressions nest in one order. For each that is open the trail has the number of its
/// candidate; going on passes over those before it without a test.
#[derive(Default)]
pub(super) struct Trail {
    /// The number of the candidate of each open class expression, the outermost first.
    path: RefCell<Vec<u32>>,
    /// The number of open class expressions.
    depth: Cell<usize>,
    /// Rows of the present assignment that are done.
    rows: Cell<u64>,
    /// The rows of the present assignment, where the enumeration was left among them.
    product: RefCell<Option<Product>>,
    /// The number of rows of all assignments that WHERE kept.
    kept: Cell<u64>,
    /// The searches for a node of a class expression below a parent of which only the outcome is
    /// asked.
    searches: RefCell<HashMap<(usize, ParentKey), Search>>,
}

/// The identity of a parent: the kind of [`Parent`], and its numbers.
pub(super) type ParentKey = (u8, Node);

/// A search for a node that passes a class expression and has below it what that contains.
#[derive(Clone, Copy, Default)]
struct Search {
    /// Candidates that are none.
    done: u32,
    /// Whether the test of the next candidate was begun.
    is_open: bool,
    /// The outcome, once it is known.
    found: Option<bool>,
}

impl Parent<'_> {
    fn key(&self) -> ParentKey {
        let numbered = |table: u32| Node::root(Fragment { table, row: 0 });
        match self {
            Parent::Ehr(ehr) => (0, numbered(*ehr)),
            Parent::Doc(doc) => (1, numbered(doc.document)),
            Parent::Version(doc) => (2, numbered(doc.document)),
            Parent::Object(object) => (3, Node::root(object.fragment)),
            Parent::Node(node) => (4, *node),
        }
    }
}

/// A candidate of a class expression, as the trail has it.
enum Reached {
    /// Done before.
    Passed,
    /// The enumeration was left somewhere below it.
    Again,
    New,
}

/// An open class expression on a trail.
struct Level {
    depth: usize,
    /// Candidates that were done before the enumeration was left.
    skip: u32,
    count: Cell<u32>,
}

impl Trail {
    /// Rows of the present assignment that are done.
    pub fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Counts a row that WHERE kept.
    pub fn keep(&self) {
        self.kept.set(self.kept.get().saturating_add(1));
    }

    /// The number of rows that WHERE kept.
    pub fn kept(&self) -> u64 {
        self.kept.get()
    }

    /// Stores the position within the rows of the current assignment: `rows` of them are done.
    pub fn leave(&self, product: Product, rows: u64) {
        self.product.replace(Some(product));
        self.rows.set(rows);
    }

    /// The rows among which the enumeration was left.
    pub fn product(&self) -> Option<Product> {
        self.product.take()
    }

    /// All rows of the present assignment are done.
    pub fn close_rows(&self) {
        self.rows.set(0);
    }

    /// Starts again, for another document or EHR.
    pub fn clear(&self) {
        self.path.borrow_mut().clear();
        self.searches.borrow_mut().clear();
        self.depth.set(0);
        self.rows.set(0);
        self.kept.set(0);
        self.product.take();
    }

    fn open(&self) -> Level {
        let depth = self.depth.replace(self.depth.get() + 1);
        let mut path = self.path.borrow_mut();
        if path.len() <= depth {
            path.push(0);
        }
        Level {
            depth,
            skip: path.get(depth).copied().unwrap_or(0),
            count: Cell::new(0),
        }
    }

    /// Advances to the next candidate of a class expression, unless it was done before the pause.
    fn reach(&self, level: &Level) -> Reached {
        let number = level.count.replace(level.count.get().saturating_add(1));
        self.reach_number(level, number)
    }

    /// Advances like [`Trail::reach`] to the candidate with a number.
    fn reach_number(&self, level: &Level, number: u32) -> Reached {
        if number < level.skip {
            return Reached::Passed;
        }
        let mut path = self.path.borrow_mut();
        path.get_mut(level.depth)
            .into_iter()
            .for_each(|at| *at = number);
        // A longer path or an open product means that the pause was inside this candidate.
        let is_inside = path.len() > level.depth + 1 || self.product.borrow().is_some();
        if number == level.skip && is_inside {
            Reached::Again
        } else {
            Reached::New
        }
    }

    /// Closes a class expression; where the enumeration is left, the trail keeps its place.
    fn close(&self, level: &Level, flow: ControlFlow<()>) {
        self.depth.set(level.depth);
        if flow.is_continue() {
            self.path.borrow_mut().truncate(level.depth);
        }
    }
}

impl<'p, 'b> Binder<'p, 'b> {
    fn predicates(&self) -> PredicateEvaluator<'p, 'b> {
        PredicateEvaluator {
            plan: self.plan,
            view: self.view,
        }
    }

    /// Calls `next` for every assignment of `source` below `parent` that the trail has not passed.
    /// Breaks when `next` does, when a pause is due, and when the budget is spent.
    pub fn bind(
        &self,
        source: &Source,
        parent: Parent<'b>,
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        self.bind_in(source, (parent, Extent::All), a, next)
    }

    /// Binds like [`Binder::bind`]. What is bound for each assignment of another class expression is
    /// listed once. A void run binds all of it once: absent parts are then found in the time of a
    /// sum, not of a product.
    fn bind_in(
        &self,
        source: &Source,
        (parent, extent): (Parent<'b>, Extent),
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        let place = (parent, extent);
        let mut is_bound = false;
        let mut both = |left, right, a: &mut Assignment| {
            self.bind_in(left, place, a, &mut |a| {
                let is_repeated = std::mem::replace(&mut is_bound, true);
                let extent = match is_repeated && self.work.is_void() {
                    true => Extent::First,
                    false => Extent::Listed,
                };
                self.bind_in(right, (parent, extent), a, &mut *next)
            })
        };
        match source {
            Source::And(left, right) => both(left, right, a),
            Source::Or(left, right) => {
                let (Some(has_left), Some(has_right)) =
                    (self.exists(left, parent), self.exists(right, parent))
                else {
                    return ControlFlow::Break(());
                };
                // If both sides hold, the variables of both are bound, as with AND.
                match (has_left, has_right) {
                    (true, true) => both(left, right, a),
                    (true, false) => self.bind_in(left, place, a, next),
                    (false, true) => self.bind_in(right, place, a, next),
                    (false, false) => ControlFlow::Continue(()),
                }
            }
            Source::Class(expr) => match extent {
                Extent::All => self.bind_class(expr, parent, a, next),
                Extent::Listed | Extent::First => self.bind_listed(expr, place, a, next),
            },
        }
    }

    /// Binds a class expression like [`Binder::bind_class`], from its listing.
    fn bind_listed(
        &self,
        expr: &ClassExpr,
        (parent, extent): (Parent<'b>, Extent),
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        let Some(listing) = self.listing(expr, parent) else {
            return ControlFlow::Break(());
        };
        let count = match extent {
            Extent::First => 1,
            Extent::All | Extent::Listed => listing.len(),
        };
        let level = self.trail.open();
        let flow = listing.iter().take(count).try_for_each(|candidate| {
            match self.trail.reach_number(&level, candidate.number) {
                Reached::Passed => return ControlFlow::Continue(()),
                Reached::Again => {}
                Reached::New => self.work.step(STEP)?,
            }
            self.bind_below(expr, candidate.node, (candidate.below, extent), a, next)
        });
        self.trail.close(&level, flow);
        unbind(a, expr);
        flow
    }

    /// Returns the candidates below a parent that pass a class expression and have below them what
    /// that contains. `None` when a pause is due or the budget is spent: the trail keeps the
    /// findings so far.
    fn listing(&self, expr: &ClassExpr, parent: Parent<'b>) -> Option<Listing<'b>> {
        let key = (expr.variable, parent.key());
        if let Some(listing) = self.listings.borrow().get(&key) {
            return Some(Rc::clone(listing));
        }
        let (mut found, mut number) = (Vec::new(), 0);
        let flow = self.each(expr, parent, &mut |node, below| {
            self.view.count(STEP);
            let holds = self.passes(expr, node).then(|| self.contains(expr, below));
            match holds {
                Some(None) => return ControlFlow::Break(()),
                Some(Some(true)) => found.push(ListedCandidate {
                    number,
                    node,
                    below,
                }),
                Some(Some(false)) | None => {}
            }
            number += 1;
            ControlFlow::Continue(())
        });
        if flow.is_break() {
            return None;
        }
        let listing: Listing<'b> = found.into();
        self.listings.borrow_mut().insert(key, Rc::clone(&listing));
        Some(listing)
    }

    /// Returns whether there is an assignment. The branches of AND do not depend on each other, and
    /// the subtree of a node is searched once: the cost is at most one visit for each node and
    /// class expression, never a product.
    ///
    /// Returns `None` when a pause is due or the budget is spent. The trail keeps the findings so
    /// far, so that the repeated search gets further.
    fn exists(&self, source: &Source, parent: Parent<'b>) -> Option<bool> {
        match source {
            Source::And(left, right) => match self.exists(left, parent)? {
                true => self.exists(right, parent),
                false => Some(false),
            },
            Source::Or(left, right) => match self.exists(left, parent)? {
                true => Some(true),
                false => self.exists(right, parent),
            },
            Source::Class(expr) => self.search_for(expr, parent),
        }
    }

    /// Returns whether a node below a parent passes a class expression and has below it what that
    /// contains: searched once for each parent, from where the search was left.
    fn search_for(&self, expr: &ClassExpr, parent: Parent<'b>) -> Option<bool> {
        let key = (expr.variable, parent.key());
        let begun = self.trail.searches.borrow().get(&key).copied();
        let begun = begun.unwrap_or_default();
        if begun.found.is_some() {
            return begun.found;
        }
        let mut search = Search {
            found: Some(false),
            ..begun
        };
        let mut number = 0;
        let _ = self.each(expr, parent, &mut |node, below| {
            let is_open = number == begun.done && begun.is_open;
            number += 1;
            if number <= begun.done {
                return ControlFlow::Continue(());
            }
            // This is recorded before the test, so that a pause inside it resumes at this
            // candidate.
            (search.done, search.is_open) = (number - 1, false);
            if !is_open && self.work.search_step(STEP).is_break() {
                search.found = None;
                return ControlFlow::Break(());
            }
            search.is_open = true;
            search.found = match self.passes(expr, node) {
                true => self.contains(expr, below),
                false => Some(false),
            };
            if search.found == Some(false) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        self.trail.searches.borrow_mut().insert(key, search);
        search.found
    }

    /// Returns whether a node has below it what its class expression contains; `None` when that is
    /// not known yet.
    fn contains(&self, expr: &ClassExpr, below: Parent<'b>) -> Option<bool> {
        match &expr.contains {
            Contains::Nothing => Some(true),
            Contains::Some(source) => self.exists(source, below),
            Contains::None(source) => self.exists(source, below).map(|exists| !exists),
        }
    }

    fn bind_class(
        &self,
        expr: &ClassExpr,
        parent: Parent<'b>,
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        let level = self.trail.open();
        let flow = self.each(expr, parent, &mut |node, below| {
            match self.trail.reach(&level) {
                Reached::Passed => return ControlFlow::Continue(()),
                Reached::Again => {}
                Reached::New => self.work.step(STEP)?,
            }
            self.take(expr, node, below, a, next)
        });
        self.trail.close(&level, flow);
        unbind(a, expr);
        flow
    }

    /// Visits the candidates of a class expression below a parent, each with its contained classes.
    fn each(
        &self,
        expr: &ClassExpr,
        parent: Parent<'b>,
        visit: &mut dyn FnMut(Node, Parent<'b>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if expr.class.is_a(Cls::VERSION) {
            self.versions(expr, parent, &mut |doc| {
                let version = Node::root(doc.version);
                if self.view.class(version).is_a(expr.class) {
                    visit(version, Parent::Version(doc))
                } else {
                    ControlFlow::Continue(())
                }
            })
        } else if expr.class.is_a(Cls::VERSIONED_OBJECT) {
            self.containers(expr, parent, &mut |object| {
                visit(Node::root(object.fragment), Parent::Object(object))
            })
        } else if expr.class == Cls::EHR {
            match (parent, self.view.batch.ehr_fragment(self.ehr)) {
                (Parent::Ehr(_) | Parent::Doc(_), Some(fragment)) => {
                    visit(Node::root(fragment), parent)
                }
                _ => ControlFlow::Continue(()),
            }
        } else {
            self.nodes(expr, parent, &mut |node| visit(node, Parent::Node(node)))
        }
    }

    fn passes(&self, expr: &ClassExpr, node: Node) -> bool {
        expr.predicate.as_ref().is_none_or(|p| {
            if expr.class == Cls::EHR {
                self.ehr_passes(expr, p, node)
            } else {
                self.predicates().holds(p, node)
            }
        })
    }

    fn take(
        &self,
        expr: &ClassExpr,
        node: Node,
        below: Parent<'b>,
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        if !self.passes(expr, node) {
            return ControlFlow::Continue(());
        }
        self.bind_below(expr, node, (below, Extent::All), a, next)
    }

    /// Binds a node that passes a class expression, and what that contains.
    fn bind_below(
        &self,
        expr: &ClassExpr,
        node: Node,
        (below, extent): (Parent<'b>, Extent),
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        if let Some(leaf) = a.get_mut(expr.variable) {
            *leaf = node;
        }
        match &expr.contains {
            Contains::Nothing => next(a),
            Contains::Some(source) => self.bind_in(source, (below, extent), a, next),
            Contains::None(_) if extent != Extent::All => next(a),
            Contains::None(_) => match self.contains(expr, below) {
                Some(true) => next(a),
                Some(false) => ControlFlow::Continue(()),
                None => ControlFlow::Break(()),
            },
        }
    }

    /// Tests an EHR once, not again for each of its documents.
    fn ehr_passes(&self, expr: &ClassExpr, predicate: &Predicate, node: Node) -> bool {
        match self.last_ehr.get() {
            Some((variable, ehr, passes)) if (variable, ehr) == (expr.variable, self.ehr) => passes,
            _ => {
                let passes = self.predicates().holds(predicate, node);
                self.last_ehr.set(Some((expr.variable, self.ehr, passes)));
                passes
            }
        }
    }

    /// Returns whether a class expression below an EHR may be bound in a document.
    fn is_joinable(&self, expr: &ClassExpr, doc: &Doc) -> bool {
        let known = self
            .joinable
            .and_then(|joinable| joinable.of(expr.variable));
        known.is_none_or(|documents| documents.contains(doc.document))
    }

    /// The versions that a VERSION expression may bind below a parent.
    fn versions(
        &self,
        expr: &ClassExpr,
        parent: Parent<'b>,
        visit: &mut dyn FnMut(Doc) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let wanted = |doc: &Doc| expr.versions == Versions::All || is_current(doc);
        match parent {
            Parent::Ehr(ehr) => self
                .view
                .docs_of(ehr)
                .filter(|doc| self.is_joinable(expr, doc) && wanted(doc))
                .try_for_each(visit),
            Parent::Doc(doc) if wanted(&doc) => visit(doc),
            Parent::Object(object) => self
                .docs_in(object)
                .filter(|d| wanted(d))
                .try_for_each(visit),
            Parent::Node(node) if self.view.class(node).is_a(Cls::FOLDER) => {
                self.listed_objects(node, &mut |documents| {
                    documents
                        .iter()
                        .filter_map(|d| self.view.batch.doc(*d))
                        .filter(wanted)
                        .try_for_each(&mut *visit)
                })
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// The versioned objects of the class below a parent, in order of creation or listing.
    fn containers(
        &self,
        expr: &ClassExpr,
        parent: Parent<'b>,
        visit: &mut dyn FnMut(&'b Container) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let of_ehr = self.view.batch.containers(self.ehr);
        let mut visit = |object: &'b Container| {
            if self
                .view
                .class(Node::root(object.fragment))
                .is_a(expr.class)
            {
                visit(object)
            } else {
                ControlFlow::Continue(())
            }
        };
        match parent {
            Parent::Ehr(_) => of_ehr.iter().try_for_each(visit),
            Parent::Node(node) if self.view.class(node).is_a(Cls::FOLDER) => {
                self.listed(node, &mut |doc| {
                    self.view.count(STEP * of_ehr.len() as u64);
                    of_ehr
                        .iter()
                        .find(|object| object.docs.contains(&doc.document))
                        .map_or(ControlFlow::Continue(()), &mut visit)
                })
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// The versions of an object, oldest first.
    fn docs_in(&self, object: &'b Container) -> impl Iterator<Item = Doc> {
        let batch = self.view.batch;
        object.docs.iter().filter_map(|d| batch.doc(*d))
    }

    /// The nodes of the class below a parent, in document order.
    fn nodes(
        &self,
        expr: &ClassExpr,
        parent: Parent<'b>,
        visit: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match parent {
            Parent::Ehr(ehr) => self
                .view
                .docs_of(ehr)
                .filter(|doc| self.is_joinable(expr, doc))
                .filter(|doc| is_current(doc) && may_occur_in(expr.class, doc.row.kind))
                .try_for_each(|d| self.within(expr, d, visit)),
            Parent::Doc(doc) if is_current(&doc) => self.within(expr, doc, visit),
            Parent::Version(doc) => self.within(expr, doc, visit),
            Parent::Object(object) => self
                .docs_in(object)
                .filter(is_current)
                .try_for_each(|d| self.within(expr, d, visit)),
            Parent::Doc(_) => ControlFlow::Continue(()),
            Parent::Node(node) => {
                self.below(expr, node, true, visit)?;
                // Sub-folders are part of the tree, but compositions are listed by reference.
                if self.view.class(node).is_a(Cls::FOLDER) && expr.class != Cls::FOLDER {
                    return self.listed(node, &mut |doc| self.within(expr, doc, visit));
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// The root of a document and everything below it.
    fn within(
        &self,
        expr: &ClassExpr,
        doc: Doc,
        visit: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match doc.data {
            Some(data) => self.search(expr, data, 0, None, visit),
            None => ControlFlow::Continue(()),
        }
    }

    /// The proper descendants of a node.
    fn below(
        &self,
        expr: &ClassExpr,
        node: Node,
        in_document: bool,
        visit: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let local = in_document
            && !self.view.class(node).is_a(Cls::FOLDER)
            && expr.predicate.as_ref().is_some_and(pins_local_code);
        self.search(
            expr,
            node.fragment,
            node.item + 1,
            local.then_some(Some(node.item)),
            visit,
        )
    }

    /// Candidates in a fragment from an item's subtree on. `local`: do not enter archetype roots
    /// other than that item's ancestors.
    fn search(
        &self,
        expr: &ClassExpr,
        fragment: crate::document::Fragment,
        from: u32,
        local: Option<Option<u32>>,
        visit: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(table) = self.view.batch.table(fragment.table) else {
            return ControlFlow::Continue(());
        };
        // For 0, this is the root. Otherwise `from` follows the item whose subtree is searched.
        let end = table
            .layout()
            .item(from.saturating_sub(1))
            .map_or(0, |i| i.end);
        let candidates = self.candidates_of(expr, table);
        // Candidates are sorted by item.
        let start = candidates.partition_point(|c| c.item < from);
        for candidate in candidates
            .iter()
            .skip(start)
            .take_while(|c| c.item < end)
            .filter(|c| table.has(fragment.row, c.item))
        {
            if local.is_some_and(|anchor| {
                candidate
                    .above
                    .is_some_and(|root| anchor.is_none_or(|a| root > a))
            }) {
                continue;
            }
            match candidate.group {
                None => visit(Node {
                    fragment,
                    item: candidate.item,
                })?,
                Some(group) => {
                    for child in self.view.batch.child_rows(fragment, group) {
                        self.view.count(STEP);
                        self.search(expr, *child, 0, local.map(|_| None), visit)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn candidates_of(&self, expr: &ClassExpr, table: &Table) -> Rc<[Candidate]> {
        self.plan
            .plan_cache
            .of(table.layout())
            .candidates(expr.variable, || self.find_candidates(expr, table))
    }

    fn find_candidates(&self, expr: &ClassExpr, table: &Table) -> Vec<Candidate> {
        let layout = table.layout();
        let mut roots: Vec<(u32, u32)> = Vec::new();
        let mut found = Vec::new();
        // If the class table allows no such object below the root, only the root is examined.
        let depth = if layout.class().may_contain(expr.class) {
            usize::MAX
        } else {
            1
        };
        for (item, node) in (0u32..).zip(layout.items()).take(depth) {
            while roots.last().is_some_and(|(_, end)| *end <= item) {
                roots.pop();
            }
            let above = roots.last().map(|(root, _)| *root);
            let candidate = |group| Candidate { item, group, above };
            match node.kind {
                ItemKind::Group(group) => found.push(candidate(Some(group))),
                ItemKind::Object => {
                    let id = layout.constant(item, Attr::ARCHETYPE_NODE_ID);
                    let fits = self.may_bind(expr, node.class, id);
                    found.extend(fits.then(|| candidate(None)));
                    if id.is_some_and(is_archetype_id) {
                        roots.push((item, node.end));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Returns whether a class expression may bind an object of this class and node id.
    fn may_bind(&self, expr: &ClassExpr, class: Cls, id: Option<&str>) -> bool {
        let predicate = expr.predicate.as_ref();
        class.is_a(expr.class) && predicate.is_none_or(|p| may_hold(p, id, self.plan.exact))
    }

    /// The compositions of the EHR by their object ids: their versions, oldest first.
    fn compositions(&self) -> &HashMap<&'b str, Vec<u32>> {
        self.listed.get_or_init(|| {
            let batch = self.view.batch;
            let mut found: HashMap<&'b str, Vec<u32>> = HashMap::new();
            for document in batch.docs_of(self.ehr) {
                self.view.count(STEP);
                if batch
                    .doc(*document)
                    .is_some_and(|doc| doc.row.kind == ObjectKind::Composition)
                {
                    found
                        .entry(batch.object_id(*document))
                        .or_default()
                        .push(*document);
                }
            }
            found
        })
    }

    /// The latest versions of the compositions that a folder lists, then of those that its
    /// sub-folders list, each listing counted.
    fn listed(
        &self,
        folder: Node,
        visit: &mut dyn FnMut(Doc) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.listed_objects(folder, &mut |documents| {
            let mut current = documents
                .iter()
                .filter_map(|document| self.view.batch.doc(*document))
                .filter(is_current);
            current
                .next()
                .map_or(ControlFlow::Continue(()), &mut *visit)
        })
    }

    /// The versions of each composition that a folder lists, then of those that its sub-folders
    /// list, each listing counted.
    fn listed_objects(
        &self,
        folder: Node,
        visit: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut items = Vec::new();
        self.view.each(folder, Attr::ITEMS, &mut |item| {
            items.extend(
                self.view
                    .single(item, Attr::ID)
                    .and_then(|id| self.view.text_at(id, Attr::VALUE)),
            );
            true
        });
        for id in items {
            // The id may be that of a version, which has the id of the object before the first
            // `::`.
            let object = id.split("::").next().unwrap_or(id);
            if let Some(documents) = self.compositions().get(object) {
                visit(documents)?;
            }
        }
        let mut folders = Vec::new();
        self.view.each(folder, Attr::FOLDERS, &mut |inner| {
            folders.push(inner);
            true
        });
        folders
            .into_iter()
            .try_for_each(|inner| self.listed_objects(inner, visit))
    }
}

/// Unbinds the variable of a class expression, before the outer expressions go on.
fn unbind(assignment: &mut Assignment, expr: &ClassExpr) {
    if let Some(leaf) = assignment.get_mut(expr.variable) {
        *leaf = Node::NONE;
    }
}

/// Returns whether this is the latest version of an object that is not deleted.
pub(super) fn is_current(doc: &Doc) -> bool {
    doc.row.latest && !doc.row.deleted
}

/// False when the node id, known from the layout, already fails the predicate.
pub(super) fn may_hold(predicate: &Predicate, id: Option<&str>, exact: bool) -> bool {
    match (predicate, id) {
        (Predicate::NodeId(wanted), Some(id)) => matches_node_id(wanted, id, exact),
        (Predicate::And(terms), _) => terms.iter().all(|t| may_hold(t, id, exact)),
        (Predicate::Or(terms), _) => terms.iter().any(|t| may_hold(t, id, exact)),
        // Only the fragment itself can decide.
        _ => true,
    }
}

/// Returns whether every alternative of the predicate names an at or id code.
pub(super) fn pins_local_code(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::NodeId(id) => !is_archetype_id(id),
        Predicate::And(terms) => terms.iter().any(pins_local_code),
        Predicate::Or(terms) => terms.iter().all(pins_local_code),
        Predicate::Compare(path, CompareOp::Eq, PredicateValue::Literal(Literal::Text(id))) => {
            matches!(path.as_slice(), [step] if step.attr == Attr::ARCHETYPE_NODE_ID)
                && !is_archetype_id(id)
        }
        _ => false,
    }
}
