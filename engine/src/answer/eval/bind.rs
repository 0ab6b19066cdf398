//! FROM: all assignments of the variables of a query within one EHR, or one document of it.

use super::node::{Node, View};
use super::predicate::{Tester, matches_node_id};
use crate::answer::facts::Candidate;
use crate::answer::plan::Plan;
use crate::answer::query::{ClassExpr, CompareOp, Contains, Literal, Predicate, PredicateValue, Source, Versions};
use crate::document::{Container, Doc, ItemKind, ObjectKind, Table};
use crate::rm::class::{Attr, Cls};
use crate::rm::id::is_archetype_id;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

/// What a class expression is searched below.
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

/// What to do with a complete assignment.
pub(super) type Next<'n> = &'n mut dyn FnMut(&mut Assignment) -> ControlFlow<()>;

/// Whether the EHR that was asked last passes the predicate of a class expression: (variable, EHR, answer).
pub(super) type LastEhr = Cell<Option<(usize, u32, bool)>>;

/// Binds variables in one EHR of a batch.
pub(super) struct Binder<'p, 'b> {
    pub plan: &'p Plan,
    pub view: View<'b>,
    pub ehr: u32,
    pub last_ehr: &'p LastEhr,
    pub watch: Watch<'p>,
}

/// Asks the host now and then, while candidates are tried, whether to stop.
pub(super) struct Watch<'p> {
    stopped: &'p dyn Fn() -> bool,
    tried: Cell<u32>,
    over: Cell<bool>,
}

impl<'p> Watch<'p> {
    pub fn new(stopped: &'p dyn Fn() -> bool) -> Watch<'p> {
        Watch { stopped, tried: Cell::new(0), over: Cell::new(false) }
    }

    /// True when the run was stopped; what was found since means nothing.
    pub fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Breaks off when the run is over.
    pub fn step(&self) -> ControlFlow<()> {
        self.tried.set(self.tried.get().wrapping_add(1));
        if self.over.get() || (self.tried.get().is_multiple_of(4096) && (self.stopped)()) {
            self.over.set(true);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl<'p, 'b> Binder<'p, 'b> {
    fn tester(&self) -> Tester<'p, 'b> {
        Tester { plan: self.plan, view: self.view }
    }

    /// Calls `next` for every assignment of `source` below `parent`.
    pub fn bind(&self, source: &Source, parent: Parent<'b>, a: &mut Assignment, next: Next<'_>) -> ControlFlow<()> {
        match source {
            Source::And(left, right) => self.bind(left, parent, a, &mut |a| self.bind(right, parent, a, next)),
            Source::Or(left, right) => match (self.exists(left, parent, a), self.exists(right, parent, a)) {
                (true, true) => self.bind(left, parent, a, &mut |a| self.bind(right, parent, a, next)),
                (true, false) => self.bind(left, parent, a, next),
                (false, true) => self.bind(right, parent, a, next),
                (false, false) => ControlFlow::Continue(()),
            },
            Source::Class(expr) => self.bind_class(expr, parent, a, next),
        }
    }

    fn exists(&self, source: &Source, parent: Parent<'b>, a: &Assignment) -> bool {
        self.bind(source, parent, &mut a.clone(), &mut |_| ControlFlow::Break(())).is_break()
    }

    fn bind_class(&self, expr: &ClassExpr, parent: Parent<'b>, a: &mut Assignment, next: Next<'_>) -> ControlFlow<()> {
        let flow = if expr.class.is_a(Cls::VERSION) {
            self.versions(expr, parent, &mut |doc| {
                let version = Node::root(doc.version);
                if self.view.class(version).is_a(expr.class) {
                    self.take(expr, version, Parent::Version(doc), a, next)
                } else {
                    ControlFlow::Continue(())
                }
            })
        } else if expr.class.is_a(Cls::VERSIONED_OBJECT) {
            self.containers(expr, parent, &mut |object| self.take(expr, Node::root(object.fragment), Parent::Object(object), a, next))
        } else if expr.class == Cls::EHR {
            match (parent, self.view.batch.ehr_fragment(self.ehr)) {
                (Parent::Ehr(_) | Parent::Doc(_), Some(fragment)) => self.take(expr, Node::root(fragment), parent, a, next),
                _ => ControlFlow::Continue(()),
            }
        } else {
            self.nodes(expr, parent, &mut |node| self.take(expr, node, Parent::Node(node), a, next))
        };
        if let Some(slot) = a.get_mut(expr.variable) {
            *slot = Node::NONE;
        }
        flow
    }

    fn take(&self, expr: &ClassExpr, node: Node, below: Parent<'b>, a: &mut Assignment, next: Next<'_>) -> ControlFlow<()> {
        self.watch.step()?;
        if !expr.predicate.as_ref().is_none_or(|p| if expr.class == Cls::EHR { self.ehr_passes(expr, p, node) } else { self.tester().holds(p, node) })
        {
            return ControlFlow::Continue(());
        }
        if let Some(slot) = a.get_mut(expr.variable) {
            *slot = node;
        }
        match &expr.contains {
            Contains::Nothing => next(a),
            Contains::Some(source) => self.bind(source, below, a, next),
            Contains::None(source) if self.exists(source, below, a) => ControlFlow::Continue(()),
            Contains::None(_) => next(a),
        }
    }

    /// Tests an EHR once, not again for each of its documents.
    fn ehr_passes(&self, expr: &ClassExpr, predicate: &Predicate, node: Node) -> bool {
        match self.last_ehr.get() {
            Some((variable, ehr, passes)) if (variable, ehr) == (expr.variable, self.ehr) => passes,
            _ => {
                let passes = self.tester().holds(predicate, node);
                self.last_ehr.set(Some((expr.variable, self.ehr, passes)));
                passes
            }
        }
    }

    /// The versions that a VERSION expression may bind below a parent.
    fn versions(&self, expr: &ClassExpr, parent: Parent<'b>, visit: &mut dyn FnMut(Doc) -> ControlFlow<()>) -> ControlFlow<()> {
        let wanted = |doc: &Doc| expr.versions == Versions::All || is_current(doc);
        match parent {
            Parent::Ehr(ehr) => self.view.docs_of(ehr).filter(|d| wanted(d)).try_for_each(visit),
            Parent::Doc(doc) if wanted(&doc) => visit(doc),
            Parent::Object(object) => self.docs_in(object).filter(|d| wanted(d)).try_for_each(visit),
            Parent::Node(node) if self.view.class(node).is_a(Cls::FOLDER) => self.listed(node, visit),
            _ => ControlFlow::Continue(()),
        }
    }

    /// The versioned objects of the class below a parent, in order of creation or listing.
    fn containers(&self, expr: &ClassExpr, parent: Parent<'b>, visit: &mut dyn FnMut(&'b Container) -> ControlFlow<()>) -> ControlFlow<()> {
        let of_ehr = self.view.batch.containers(self.ehr);
        let mut visit = |object: &'b Container| {
            if self.view.class(Node::root(object.fragment)).is_a(expr.class) { visit(object) } else { ControlFlow::Continue(()) }
        };
        match parent {
            Parent::Ehr(_) => of_ehr.iter().try_for_each(visit),
            Parent::Node(node) if self.view.class(node).is_a(Cls::FOLDER) => self.listed(node, &mut |doc| {
                let holds = |object: &&Container| self.docs_in(object).any(|d| d.document == doc.document);
                of_ehr.iter().find(holds).map_or(ControlFlow::Continue(()), &mut visit)
            }),
            _ => ControlFlow::Continue(()),
        }
    }

    /// The versions of an object, oldest first.
    fn docs_in(&self, object: &'b Container) -> impl Iterator<Item = Doc> {
        let batch = self.view.batch;
        object.docs.iter().filter_map(|d| batch.doc(*d))
    }

    /// The nodes of the class below a parent, in document order.
    fn nodes(&self, expr: &ClassExpr, parent: Parent<'b>, visit: &mut dyn FnMut(Node) -> ControlFlow<()>) -> ControlFlow<()> {
        match parent {
            Parent::Ehr(ehr) => self.view.docs_of(ehr).filter(is_current).try_for_each(|d| self.within(expr, d, visit)),
            Parent::Doc(doc) if is_current(&doc) => self.within(expr, doc, visit),
            Parent::Version(doc) => self.within(expr, doc, visit),
            Parent::Object(object) => self.docs_in(object).filter(is_current).try_for_each(|d| self.within(expr, d, visit)),
            Parent::Doc(_) => ControlFlow::Continue(()),
            Parent::Node(node) => {
                self.below(expr, node, true, visit)?;
                if self.view.class(node).is_a(Cls::FOLDER) && expr.class != Cls::FOLDER {
                    return self.listed(node, &mut |doc| self.within(expr, doc, visit));
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// The root of a document and everything below it.
    fn within(&self, expr: &ClassExpr, doc: Doc, visit: &mut dyn FnMut(Node) -> ControlFlow<()>) -> ControlFlow<()> {
        match doc.data {
            Some(data) => self.search(expr, data, 0, None, visit),
            None => ControlFlow::Continue(()),
        }
    }

    /// The proper descendants of a node.
    fn below(&self, expr: &ClassExpr, node: Node, in_document: bool, visit: &mut dyn FnMut(Node) -> ControlFlow<()>) -> ControlFlow<()> {
        let local = in_document && !self.view.class(node).is_a(Cls::FOLDER) && expr.predicate.as_ref().is_some_and(pins_local_code);
        self.search(expr, node.fragment, node.item + 1, local.then_some(Some(node.item)), visit)
    }

    /// Candidates in a fragment from an item's subtree on. `local`: do not enter archetype roots other than that item's ancestors.
    fn search(
        &self,
        expr: &ClassExpr,
        fragment: crate::document::Fragment,
        from: u32,
        local: Option<Option<u32>>,
        visit: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(table) = self.view.batch.table(fragment.table) else { return ControlFlow::Continue(()) };
        let end = table.shape().item(from.saturating_sub(1)).map_or(0, |i| i.end);
        for candidate in self.candidates_of(expr, table).iter().filter(|c| c.item >= from && c.item < end && table.has(fragment.row, c.item)) {
            if local.is_some_and(|anchor| candidate.above.is_some_and(|root| anchor.is_none_or(|a| root > a))) {
                continue;
            }
            match candidate.run {
                None => visit(Node { fragment, item: candidate.item })?,
                Some(run) => {
                    for part in self.view.batch.parts(fragment, run) {
                        self.search(expr, *part, 0, local.map(|_| None), visit)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn candidates_of(&self, expr: &ClassExpr, table: &Table) -> Rc<[Candidate]> {
        self.plan.facts.of(table.shape()).candidates(expr.variable, || self.find_candidates(expr, table))
    }

    fn find_candidates(&self, expr: &ClassExpr, table: &Table) -> Vec<Candidate> {
        let shape = table.shape();
        let id_of = |item: u32| shape.constant(item, Attr::ARCHETYPE_NODE_ID);
        let mut roots: Vec<(u32, u32)> = Vec::new();
        let mut found = Vec::new();
        // Where nothing of the class can stand below the root, only the root is looked at.
        let depth = if shape.class().may_contain(expr.class) { usize::MAX } else { 1 };
        for (item, node) in (0u32..).zip(shape.items()).take(depth) {
            while roots.last().is_some_and(|(_, end)| *end <= item) {
                roots.pop();
            }
            let above = roots.last().map(|(root, _)| *root);
            match node.kind {
                ItemKind::Parts(run) => found.push(Candidate { item, run: Some(run), above }),
                ItemKind::Object => {
                    let id = id_of(item);
                    if node.class.is_a(expr.class) && expr.predicate.as_ref().is_none_or(|p| may_hold(p, id, self.plan.exact)) {
                        found.push(Candidate { item, run: None, above });
                    }
                    if id.is_some_and(is_archetype_id) {
                        roots.push((item, node.end));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The compositions that a folder lists, then those of its sub-folders, each listing counted.
    fn listed(&self, folder: Node, visit: &mut dyn FnMut(Doc) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut items = Vec::new();
        self.view.each(folder, Attr::ITEMS, &mut |item| {
            items.extend(self.view.single(item, Attr::ID).and_then(|id| self.view.text_at(id, Attr::VALUE)));
            true
        });
        for id in items {
            let object = id.split("::").next().unwrap_or(id);
            let batch = self.view.batch;
            let is_listed = |document: &&u32| {
                let is_composition = |doc: &Doc| is_current(doc) && doc.row.kind == ObjectKind::Composition;
                batch.doc(**document).as_ref().is_some_and(is_composition) && batch.object_id(**document) == object
            };
            if let Some(doc) = batch.docs_of(self.ehr).iter().find(is_listed).and_then(|document| batch.doc(*document)) {
                visit(doc)?;
            }
        }
        let mut folders = Vec::new();
        self.view.each(folder, Attr::FOLDERS, &mut |inner| {
            folders.push(inner);
            true
        });
        folders.into_iter().try_for_each(|inner| self.listed(inner, visit))
    }
}

/// True for the latest version of an object that is not deleted.
pub(super) fn is_current(doc: &Doc) -> bool {
    doc.row.latest && !doc.row.deleted
}

/// False when the node id, known from the shape, already fails the predicate.
pub(super) fn may_hold(predicate: &Predicate, id: Option<&str>, exact: bool) -> bool {
    match (predicate, id) {
        (Predicate::NodeId(wanted), Some(id)) => matches_node_id(wanted, id, exact),
        (Predicate::And(terms), _) => terms.iter().all(|t| may_hold(t, id, exact)),
        (Predicate::Or(terms), _) => terms.iter().any(|t| may_hold(t, id, exact)),
        _ => true,
    }
}

/// True when every alternative of the predicate names an at or id code.
pub(super) fn pins_local_code(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::NodeId(id) => !is_archetype_id(id),
        Predicate::And(terms) => terms.iter().any(pins_local_code),
        Predicate::Or(terms) => terms.iter().all(pins_local_code),
        Predicate::Compare(path, CompareOp::Eq, PredicateValue::Literal(Literal::Text(id))) => {
            matches!(path.as_slice(), [step] if step.attr == Attr::ARCHETYPE_NODE_ID) && !is_archetype_id(id)
        }
        _ => false,
    }
}
