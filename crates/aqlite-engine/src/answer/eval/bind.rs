//! Evaluation of FROM: enumerates the assignments of the variables of a query within one EHR or one
//! document.

mod candidates;
mod folder;
mod trail;

use super::node::{Node, View};
use super::predicate::{PredicateEvaluator, matches_node_id};
use super::semi_join::JoinableDocuments;
use super::work::{STEP, Work};
use crate::answer::plan::Plan;
use crate::answer::query::{
    ClassExpr, CompareOp, Contains, Literal, Predicate, PredicateValue, Source,
};
use crate::document::{Doc, Fragment, VersionedObject};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::id::is_archetype_id;
use hashbrown::HashMap;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;
pub(super) use trail::Trail;
use trail::{ExistenceSearch, Reached};

/// The object or document below which a class expression is searched.
#[derive(Clone, Copy)]
pub(super) enum Parent<'b> {
    /// All documents of an EHR.
    Ehr(u32),
    /// One document, for queries that never join documents.
    Doc(Doc),
    /// One version of a versioned object.
    Version(Doc),
    /// All versions of an object.
    Object(&'b VersionedObject),
    /// A node of a document.
    Node(Node),
}

/// The nodes that are bound to the variables, by the index of the variable.
pub(super) type Assignment = Vec<Node>;

/// A callback that receives each complete assignment.
pub(super) type Next<'n> = &'n mut dyn FnMut(&mut Assignment) -> ControlFlow<()>;

/// The outcome of the predicate of a class expression for one EHR.
#[derive(Clone, Copy)]
pub(super) struct EhrOutcome {
    variable: usize,
    ehr: u32,
    passes: bool,
}

/// The latest outcome of the predicate of an EHR class expression.
pub(super) type LastEhr = Cell<Option<EhrOutcome>>;

/// Binds variables in one EHR of a batch.
pub(super) struct Binder<'p, 'b> {
    pub plan: &'p Plan,
    pub view: View<'b>,
    pub ehr: u32,
    pub last_ehr: &'p LastEhr,
    pub work: &'p Work,
    pub trail: &'p Trail,
    /// The documents that can be joined, if a semi-join has found them.
    pub joinable: Option<&'p JoinableDocuments>,
    /// The current compositions of the EHR by object id; filled when a folder is first read.
    pub compositions_by_id: OnceCell<HashMap<&'b str, Vec<u32>>>,
    /// The candidates of class expressions that are enumerated repeatedly, by variable and parent.
    pub candidate_lists: RefCell<HashMap<(usize, ParentKey), CandidateList<'b>>>,
}

/// The candidates of a class expression below a parent that pass its predicate and its CONTAINS.
pub(super) type CandidateList<'b> = Rc<[ListedCandidate<'b>]>;

/// The source of the candidates of a class expression.
#[derive(Clone, Copy, PartialEq)]
enum CandidateSource {
    /// All candidates. Each is found and tested when the enumeration reaches it.
    Search,
    /// All candidates, from their list, because another class expression has many assignments.
    List,
    /// The first candidate of the list. Used in a void run, which only finds absent parts: the
    /// other candidates were already bound with an earlier assignment.
    FirstOfList,
}

/// A candidate in a list.
#[derive(Clone, Copy)]
pub(super) struct ListedCandidate<'b> {
    /// Its number among all candidates, by which a trail resumes at it.
    number: u32,
    node: Node,
    below: Parent<'b>,
}

/// The identity of a parent: the number of the variant of [`Parent`], and its content as a node.
pub(super) type ParentKey = (u8, Node);

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

impl<'p, 'b> Binder<'p, 'b> {
    fn predicates(&self) -> PredicateEvaluator<'p, 'b> {
        PredicateEvaluator {
            plan: self.plan,
            view: self.view,
        }
    }

    /// Calls `next` for every assignment of `source` below `parent` that the trail has not passed.
    /// Breaks if `next` breaks, if a pause is due, or if the budget is spent.
    pub fn bind(
        &self,
        source: &Source,
        parent: Parent<'b>,
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        self.bind_in(source, (parent, CandidateSource::Search), a, next)
    }

    /// Binds like [`Binder::bind`], with a choice of candidates.
    ///
    /// Candidates that are enumerated for each assignment of another class expression are listed
    /// once. A void run binds each of them once: it finds absent parts in the time of a sum instead
    /// of a product.
    fn bind_in(
        &self,
        source: &Source,
        (parent, candidates): (Parent<'b>, CandidateSource),
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        let below = (parent, candidates);
        let mut is_bound = false;
        let mut both = |left, right, a: &mut Assignment| {
            self.bind_in(left, below, a, &mut |a| {
                let is_repeated = std::mem::replace(&mut is_bound, true);
                let candidates = match is_repeated && self.work.is_void() {
                    true => CandidateSource::FirstOfList,
                    false => CandidateSource::List,
                };
                self.bind_in(right, (parent, candidates), a, &mut *next)
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
                    (true, false) => self.bind_in(left, below, a, next),
                    (false, true) => self.bind_in(right, below, a, next),
                    (false, false) => ControlFlow::Continue(()),
                }
            }
            Source::Class(expr) => match candidates {
                CandidateSource::Search => self.bind_class(expr, parent, a, next),
                CandidateSource::List | CandidateSource::FirstOfList => {
                    self.bind_listed(expr, below, a, next)
                }
            },
        }
    }

    /// Binds a class expression like [`Binder::bind_class`], from the list of its candidates.
    fn bind_listed(
        &self,
        expr: &ClassExpr,
        (parent, candidates): (Parent<'b>, CandidateSource),
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        let Some(candidate_list) = self.candidate_list(expr, parent) else {
            return ControlFlow::Break(());
        };
        let count = match candidates {
            CandidateSource::FirstOfList => 1,
            CandidateSource::Search | CandidateSource::List => candidate_list.len(),
        };
        let level = self.trail.open();
        let flow = candidate_list.iter().take(count).try_for_each(|candidate| {
            match self.trail.reach_number(&level, candidate.number) {
                Reached::Passed => return ControlFlow::Continue(()),
                Reached::Again => {}
                Reached::New => self.work.step(STEP)?,
            }
            self.bind_below(expr, candidate.node, (candidate.below, candidates), a, next)
        });
        self.trail.close(&level, flow);
        unbind(a, expr);
        flow
    }

    /// Returns the candidates below a parent that pass the predicate and the CONTAINS of a class
    /// expression. Returns `None` if a pause is due or the budget is spent. The trail keeps the
    /// outcomes so far.
    fn candidate_list(&self, expr: &ClassExpr, parent: Parent<'b>) -> Option<CandidateList<'b>> {
        let key = (expr.variable, parent.key());
        if let Some(candidate_list) = self.candidate_lists.borrow().get(&key) {
            return Some(Rc::clone(candidate_list));
        }
        let (mut found, mut number) = (Vec::new(), 0);
        let flow = self.visit_candidates(expr, parent, &mut |node, below| {
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
        let candidate_list: CandidateList<'b> = found.into();
        self.candidate_lists
            .borrow_mut()
            .insert(key, Rc::clone(&candidate_list));
        Some(candidate_list)
    }

    /// Returns whether there is an assignment; `None` if a pause is due or the budget is spent. The
    /// trail keeps the outcomes so far, so a repeated call makes progress.
    ///
    /// Branches of AND do not depend on each other, and the subtree of a node is searched once. The
    /// cost is at most one visit for each node and class expression, never a product.
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

    /// Returns whether a node below a parent passes a class expression and its CONTAINS. Each
    /// parent is searched once; a search that a pause interrupted resumes at its position.
    fn search_for(&self, expr: &ClassExpr, parent: Parent<'b>) -> Option<bool> {
        let key = (expr.variable, parent.key());
        let begun = self.trail.searches.borrow().get(&key).copied();
        let begun = begun.unwrap_or_default();
        if begun.found.is_some() {
            return begun.found;
        }
        let mut search = ExistenceSearch {
            found: Some(false),
            ..begun
        };
        let mut number = 0;
        // The outcome is stored in `search`. The flow only ends the enumeration.
        let _ = self.visit_candidates(expr, parent, &mut |node, below| {
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

    /// Returns whether the subtree of a node satisfies the CONTAINS of its class expression; `None`
    /// if that is not known yet.
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
        let flow = self.visit_candidates(expr, parent, &mut |node, below| {
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
        self.bind_below(expr, node, (below, CandidateSource::Search), a, next)
    }

    /// Binds a node that passed a class expression, then the class expressions that it contains.
    fn bind_below(
        &self,
        expr: &ClassExpr,
        node: Node,
        (below, candidates): (Parent<'b>, CandidateSource),
        a: &mut Assignment,
        next: Next<'_>,
    ) -> ControlFlow<()> {
        if let Some(leaf) = a.get_mut(expr.variable) {
            *leaf = node;
        }
        match &expr.contains {
            Contains::Nothing => next(a),
            Contains::Some(source) => self.bind_in(source, (below, candidates), a, next),
            // The list has only candidates that passed this test.
            Contains::None(_) if candidates != CandidateSource::Search => next(a),
            Contains::None(_) => match self.contains(expr, below) {
                Some(true) => next(a),
                Some(false) => ControlFlow::Continue(()),
                None => ControlFlow::Break(()),
            },
        }
    }

    /// Returns whether an EHR passes a predicate. The outcome is cached for the following documents
    /// of the same EHR.
    fn ehr_passes(&self, expr: &ClassExpr, predicate: &Predicate, node: Node) -> bool {
        let (variable, ehr) = (expr.variable, self.ehr);
        let is_of = |last: &EhrOutcome| (last.variable, last.ehr) == (variable, ehr);
        if let Some(last) = self.last_ehr.get().filter(is_of) {
            return last.passes;
        }
        let passes = self.predicates().holds(predicate, node);
        self.last_ehr.set(Some(EhrOutcome {
            variable,
            ehr,
            passes,
        }));
        passes
    }
}

/// Unbinds the variable of a class expression, before the outer expressions continue.
fn unbind(assignment: &mut Assignment, expr: &ClassExpr) {
    if let Some(leaf) = assignment.get_mut(expr.variable) {
        *leaf = Node::NONE;
    }
}

/// Returns whether a document is the latest version of its object, and not a deletion.
pub(super) fn is_current(doc: &Doc) -> bool {
    doc.row.latest && !doc.row.deleted
}

/// Returns false if the node id, known from the layout, already fails the predicate.
pub(super) fn may_hold(predicate: &Predicate, id: Option<&str>, exact: bool) -> bool {
    match (predicate, id) {
        (Predicate::NodeId(wanted), Some(id)) => matches_node_id(wanted, id, exact),
        (Predicate::And(terms), _) => terms.iter().all(|t| may_hold(t, id, exact)),
        (Predicate::Or(terms), _) => terms.iter().any(|t| may_hold(t, id, exact)),
        // Only the fragment itself can decide.
        _ => true,
    }
}

/// Returns whether every alternative of the predicate requires an at code or id code.
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
