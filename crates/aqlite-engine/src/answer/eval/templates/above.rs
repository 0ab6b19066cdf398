//! The class expressions above the anchors.
//!
//! They restrict the documents, and their variables contribute cells to every row of a document.

use super::super::node::{Node, View};
use super::super::predicate::PredicateEvaluator;
use super::super::scope::Scope;
use super::super::{QueryError, rows::Rows};
use super::RowTemplateEvaluator;
use crate::answer::plan_cache::{Cells, LayoutVariant};
use crate::answer::query::{ClassExpr, Predicate};
use crate::answer::trie::Trie;
use crate::document::{Doc, Fragment};
use aqlite_rm::class::Cls;
use hashbrown::HashMap;
use std::cell::Cell;
use std::rc::Rc;

/// A variable above the anchors, with its rows in one document.
pub(super) struct AboveVariable<'p> {
    class: Cls,
    pub(super) trie: &'p Trie,
    fragment: Option<Fragment>,
    rows: AboveRows,
}

/// The rows of a variable above the anchors in one document.
pub(super) enum AboveRows {
    /// The document has no fragment of the variable.
    None,
    /// The layout variant whose row templates apply to the fragment.
    Same(Rc<LayoutVariant>),
    /// Rows that were computed for this fragment.
    Own(Rows),
}

impl AboveVariable<'_> {
    /// Returns the row templates and the fragment that they are applied to; `None` if the rows were
    /// computed for the fragment.
    pub(super) fn templates(&self) -> Option<(&[Cells], Fragment)> {
        match &self.rows {
            AboveRows::Same(variant) => Some((variant.rows()?, self.fragment?)),
            _ => None,
        }
    }

    pub(super) fn rows(&self, view: View<'_>, width: usize) -> Rows {
        match (self.templates(), &self.rows) {
            (Some((rows, fragment)), _) => Rows::of_template(view, rows, (fragment, width)),
            (None, AboveRows::Own(rows)) => Rows::of(rows.iter(), width),
            (None, _) => Rows::none(width),
        }
    }
}

impl<'p: 'b, 'b> RowTemplateEvaluator<'p, 'b> {
    /// Returns the class expressions above the anchors whose variables have paths.
    pub(super) fn above(&self) -> Vec<AboveVariable<'p>> {
        let above = self.anchors.above.iter().filter(|e| {
            !self
                .anchors
                .entries
                .iter()
                .any(|a| a.variable == e.variable)
        });
        above
            .filter_map(|expr| {
                Some(AboveVariable {
                    class: expr.class,
                    trie: self.trie_of(expr)?,
                    fragment: None,
                    rows: AboveRows::None,
                })
            })
            .collect()
    }

    /// Computes the rows of EHR, VERSION and COMPOSITION in a document. Rows that the layout
    /// determines are cached.
    pub(super) fn update_above_rows(
        &self,
        doc: u32,
        above: &mut [AboveVariable<'p>],
    ) -> Result<(), QueryError> {
        for of in above {
            let fragment = self.batch.bound(of.class, doc);
            let before = std::mem::replace(&mut of.fragment, fragment);
            let Some(fragment) = fragment else {
                of.rows = AboveRows::None;
                continue;
            };
            let is_same = |variant: &LayoutVariant| {
                self.batch
                    .table(fragment.table)
                    .is_some_and(|table| variant.is_of(table, fragment.row))
            };
            let in_same = before.is_some_and(|before| before.table == fragment.table);
            if matches!(&of.rows, AboveRows::Same(variant) if in_same && is_same(variant)) {
                continue;
            }
            of.rows = match self
                .expander(self.view())
                .expansion(of.trie, Node::root(fragment))
            {
                Some(known) if known.rows().is_some() => AboveRows::Same(known),
                _ => AboveRows::Own(self.walked(of.trie, Node::root(fragment))?),
            };
        }
        Ok(())
    }

    /// Returns the scope: the fragments that the query reads.
    pub(super) fn scope(&self) -> Scope<'b> {
        let is_anchor = |expr: &ClassExpr| {
            self.anchors
                .entries
                .iter()
                .any(|a| a.variable == expr.variable)
        };
        let decides = |e: &&&ClassExpr| {
            !is_anchor(e)
                && (e.predicate.is_some()
                    || !matches!(e.class, Cls::EHR | Cls::VERSION | Cls::COMPOSITION))
        };
        let deciding = self.anchors.above.iter().filter(decides).copied();
        let (of_ehr, of_doc): (Vec<&ClassExpr>, Vec<&ClassExpr>) =
            deciding.partition(|e| e.class == Cls::EHR);
        let (mut known, mut last) = (HashMap::new(), None);
        let mut passes = |doc: Doc| {
            let mut all = |exprs: &[&ClassExpr]| {
                exprs
                    .iter()
                    .all(|expr| self.passes(expr, doc.document, &mut known))
            };
            // Documents of one EHR often are consecutive, so the last outcome is kept.
            let ehr_passes = match last {
                Some((ehr, passes)) if ehr == doc.ehr => passes,
                _ => all(&of_ehr),
            };
            last = Some((doc.ehr, ehr_passes));
            ehr_passes && all(&of_doc)
        };
        let decides = !of_ehr.is_empty() || !of_doc.is_empty();
        if of_doc.is_empty()
            && decides
            && let Some(documents) = Scope::documents(self.plan, self.batch)
        {
            // All documents belong to one EHR, which is tested once.
            let passes = documents
                .first()
                .and_then(|document| self.view().doc(*document))
                .is_some_and(passes);
            return if passes {
                self.scope_of(None)
            } else {
                Scope::Chosen(Vec::new())
            };
        }
        self.scope_of(if decides { Some(&mut passes) } else { None })
    }

    /// Returns the scope of the slice; `passes` is a further test of a document.
    fn scope_of(&self, passes: Option<&mut dyn FnMut(Doc) -> bool>) -> Scope<'b> {
        let slice = self.slice.clone();
        match self
            .ehrs
            .as_deref()
            .filter(|_| self.plan.scan().ehr().is_none())
        {
            Some(ehrs) => Scope::of_ehrs(ehrs, self.view(), slice, passes),
            None => Scope::of(self.plan, self.anchors, self.view(), slice, passes),
        }
    }

    /// Returns whether a document passes a class expression above the anchors. The outcome is
    /// computed once for each EHR, or once for each layout if the layout determines it.
    fn passes(
        &self,
        expr: &ClassExpr,
        doc: u32,
        known: &mut HashMap<(usize, Fragment), bool>,
    ) -> bool {
        let fragment = self.batch.bound(expr.class, doc);
        let Some((fragment, table)) = fragment.and_then(|f| Some((f, self.batch.table(f.table)?)))
        else {
            return false;
        };
        let cache = self.plan.plan_cache.of(table.layout());
        let by_layout = cache.passes(expr.variable, || {
            // An outcome holds for the layout only if nothing was read that differs between its
            // rows.
            let differs = Cell::new(false);
            let first = self.fits(expr, self.view().watched(&differs), fragment);
            (!differs.get()).then_some(first)
        });
        by_layout.unwrap_or_else(|| {
            *known
                .entry((expr.variable, fragment))
                .or_insert_with(|| self.fits(expr, self.view(), fragment))
        })
    }

    /// Returns whether the root of a fragment has the class of an expression and passes its
    /// predicate.
    fn fits(&self, expr: &ClassExpr, view: View<'_>, fragment: Fragment) -> bool {
        let root = Node::root(fragment);
        let predicates = PredicateEvaluator {
            plan: self.plan,
            view,
        };
        let predicate = expr.predicate.as_ref();
        view.class(root).is_a(expr.class)
            && predicate.is_none_or(|p: &Predicate| predicates.holds(p, root))
    }
}
