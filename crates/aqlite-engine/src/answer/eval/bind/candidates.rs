//! The candidates of a class expression below a parent: versions, versioned objects and nodes.

use super::{Binder, Parent, is_current, may_hold, pins_local_code};
use crate::answer::eval::node::Node;
use crate::answer::eval::work::STEP;
use crate::answer::plan::may_occur_in;
use crate::answer::plan_cache::Candidate;
use crate::answer::query::{ClassExpr, Versions};
use crate::document::{Doc, ItemKind, Table, VersionedObject};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::id::is_archetype_id;
use std::ops::ControlFlow;
use std::rc::Rc;

impl<'b> Binder<'_, 'b> {
    /// Visits the candidates of a class expression below a parent, each with the parent for its
    /// CONTAINS.
    pub(super) fn each(
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

    /// Visits the versions that a VERSION expression can bind below a parent.
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
                        .filter_map(|d| self.view.doc(*d))
                        .filter(wanted)
                        .try_for_each(&mut *visit)
                })
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Returns the versioned objects of a class below a parent, in order of creation or of the
    /// listing.
    fn containers(
        &self,
        expr: &ClassExpr,
        parent: Parent<'b>,
        visit: &mut dyn FnMut(&'b VersionedObject) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let of_ehr = self.view.batch.versioned_objects(self.ehr);
        let mut visit = |object: &'b VersionedObject| {
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

    /// Returns the versions of an object, oldest first.
    fn docs_in(&self, object: &'b VersionedObject) -> impl Iterator<Item = Doc> {
        let view = self.view;
        object.docs.iter().filter_map(move |d| view.doc(*d))
    }

    /// Visits the nodes of the class below a parent, in document order.
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

    /// Returns whether the semi-join left a document to a class expression below an EHR.
    fn is_joinable(&self, expr: &ClassExpr, doc: &Doc) -> bool {
        let known = self
            .joinable
            .and_then(|joinable| joinable.of(expr.variable));
        known.is_none_or(|documents| documents.contains(doc.document))
    }

    /// Visits the root of a document and its descendants.
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

    /// Visits the proper descendants of a node.
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

    /// Visits the candidates in a fragment from the subtree of an item on. If `local` is true,
    /// archetype roots that do not contain the item are not entered.
    fn search(
        &self,
        expr: &ClassExpr,
        fragment: crate::document::Fragment,
        from: u32,
        local: Option<Option<u32>>,
        visit: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(table) = self.view.batch.table(fragment.table) else {
            self.view.note_broken("a fragment has no table");
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

    /// Returns whether a class expression can bind an object of this class and node id.
    fn may_bind(&self, expr: &ClassExpr, class: Cls, id: Option<&str>) -> bool {
        let predicate = expr.predicate.as_ref();
        class.is_a(expr.class) && predicate.is_none_or(|p| may_hold(p, id, self.plan.exact))
    }
}
