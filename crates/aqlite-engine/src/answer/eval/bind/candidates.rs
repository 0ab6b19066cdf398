//! The candidates of a class expression below a parent: versions, versioned objects and nodes.
//!
//! In `FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o`, the candidates for `c` below the
//! EHR are nodes of its current documents, and those for `o` are descendants of the node of `c`.
//! The candidates in one layout are found once for each plan ([`CachedLayout::candidates`]).
//!
//! [`CachedLayout::candidates`]: crate::answer::plan_cache::CachedLayout::candidates

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

/// The archetype roots that a search enters. A local code such as `at0004` has a meaning only in
/// the archetype of the node below which it is searched.
#[derive(Clone, Copy)]
enum ArchetypeScope {
    /// All roots.
    Any,
    /// No root behind this item: the search began at it, in this fragment.
    OfItem(u32),
    /// No root: the search began in a fragment above.
    OfParent,
}

impl ArchetypeScope {
    /// Returns the scope of the search in child rows.
    fn of_child_rows(self) -> ArchetypeScope {
        match self {
            ArchetypeScope::Any => ArchetypeScope::Any,
            ArchetypeScope::OfItem(_) | ArchetypeScope::OfParent => ArchetypeScope::OfParent,
        }
    }
}

impl<'b> Binder<'_, 'b> {
    /// Visits the candidates of a class expression below a parent, each with the parent for its
    /// CONTAINS.
    pub(super) fn visit_candidates(
        &self,
        expr: &ClassExpr,
        parent: Parent<'b>,
        visit: &mut dyn FnMut(Node, Parent<'b>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if expr.class.is_a(Cls::VERSION) {
            self.visit_versions(expr, parent, &mut |doc| {
                let version = Node::root(doc.version);
                if self.view.class(version).is_a(expr.class) {
                    visit(version, Parent::Version(doc))
                } else {
                    ControlFlow::Continue(())
                }
            })
        } else if expr.class.is_a(Cls::VERSIONED_OBJECT) {
            self.visit_versioned_objects(expr, parent, &mut |object| {
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
            self.visit_nodes(expr, parent, &mut |node| visit(node, Parent::Node(node)))
        }
    }

    /// Visits the versions that a VERSION expression can bind below a parent.
    fn visit_versions(
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
            Parent::Node(node) if self.view.class(node).is_a(Cls::FOLDER) => self
                .objects_in_folder(node, &mut |documents| {
                    documents
                        .iter()
                        .filter_map(|d| self.view.doc(*d))
                        .filter(wanted)
                        .try_for_each(&mut *visit)
                }),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Returns the versioned objects of a class below a parent, in order of creation, or in that
    /// of the folder that lists them.
    fn visit_versioned_objects(
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
                self.latest_in_folder(node, &mut |doc| {
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
    fn visit_nodes(
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
                .try_for_each(|d| self.visit_document(expr, d, visit)),
            Parent::Doc(doc) if is_current(&doc) => self.visit_document(expr, doc, visit),
            Parent::Version(doc) => self.visit_document(expr, doc, visit),
            Parent::Object(object) => self
                .docs_in(object)
                .filter(is_current)
                .try_for_each(|d| self.visit_document(expr, d, visit)),
            Parent::Doc(_) => ControlFlow::Continue(()),
            Parent::Node(node) => {
                self.visit_descendants(expr, node, visit)?;
                // Sub-folders are part of the tree, but compositions are listed by reference.
                if self.view.class(node).is_a(Cls::FOLDER) && expr.class != Cls::FOLDER {
                    return self
                        .latest_in_folder(node, &mut |doc| self.visit_document(expr, doc, visit));
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
    fn visit_document(
        &self,
        expr: &ClassExpr,
        doc: Doc,
        visit: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match doc.data {
            Some(data) => self.search(expr, data, 0, ArchetypeScope::Any, visit),
            None => ControlFlow::Continue(()),
        }
    }

    /// Visits the proper descendants of a node.
    fn visit_descendants(
        &self,
        expr: &ClassExpr,
        node: Node,
        visit: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let is_local = !self.view.class(node).is_a(Cls::FOLDER)
            && expr.predicate.as_ref().is_some_and(pins_local_code);
        let scope = match is_local {
            true => ArchetypeScope::OfItem(node.item),
            false => ArchetypeScope::Any,
        };
        self.search(expr, node.fragment, node.item + 1, scope, visit)
    }

    /// Visits the candidates in a fragment below an item, whose next item is `from`; in the whole
    /// fragment if `from` is 0.
    fn search(
        &self,
        expr: &ClassExpr,
        fragment: crate::document::Fragment,
        from: u32,
        scope: ArchetypeScope,
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
            let is_of_other_archetype = candidate.above.is_some_and(|root| match scope {
                ArchetypeScope::Any => false,
                ArchetypeScope::OfItem(item) => root > item,
                ArchetypeScope::OfParent => true,
            });
            if is_of_other_archetype {
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
                        self.search(expr, *child, 0, scope.of_child_rows(), visit)?;
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
