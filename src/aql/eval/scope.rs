//! Which fragments of a batch a run by templates looks at: those of all living documents, or those of one EHR.

use super::anchors::Anchors;
use super::bind::is_current;
use super::block::Picked;
use crate::aql::plan::Plan;
use crate::document::{Batch, Doc, Fragment, Table};
use crate::rm::class::Cls;
use std::borrow::Cow;
use std::ops::Range;

/// The fragments that take part.
pub(super) enum Scope<'b> {
    /// All of the documents for which a flag stands.
    Flagged(Cow<'b, [bool]>),
    /// These, by table.
    Chosen(Vec<Fragment>),
}

impl<'b> Scope<'b> {
    /// The scope of a plan; `passes` says whether a document takes part, where more than its being alive decides.
    pub fn of(plan: &Plan, anchors: &Anchors<'_>, batch: &'b Batch, passes: Option<&mut dyn FnMut(&Doc) -> bool>) -> Scope<'b> {
        let Some(ehr) = plan.scan().ehr.as_deref() else {
            let filtered =
                |passes: &mut dyn FnMut(&Doc) -> bool| batch.docs().iter().zip(batch.live()).map(|(doc, live)| *live && passes(doc)).collect();
            return Scope::Flagged(passes.map_or(Cow::Borrowed(batch.live()), |passes| Cow::Owned(filtered(passes))));
        };
        let mut passes = passes;
        let documents = batch.ehr_number(ehr).map_or(&[][..], |number| batch.docs_of(number));
        let mut chosen = Chosen { anchors, batch, fragments: Vec::with_capacity(documents.len()), classes: Vec::new() };
        for doc in documents.iter().filter_map(|d| batch.doc(*d)) {
            if is_current(doc) && passes.as_mut().is_none_or(|passes| passes(doc)) {
                doc.data.into_iter().for_each(|data| chosen.take(data));
            }
        }
        chosen.fragments.sort_unstable_by_key(|f| (u64::from(f.table) << 32) | u64::from(f.row));
        Scope::Chosen(chosen.fragments)
    }

    /// The rows of a table that take part, in the order of their documents, of those in a range.
    pub fn rows<'t>(&self, number: u32, table: &'t Table, range: Range<u32>) -> Picked<'t> {
        match self {
            Scope::Flagged(Cow::Borrowed(_)) => Picked::but(range, table.hidden()),
            Scope::Flagged(flags) => {
                let docs = table.docs().get(range.start as usize..range.end as usize).unwrap_or_default();
                let flagged = |(row, doc): (u32, &u32)| (flags.get(*doc as usize) == Some(&true)).then_some(row);
                Picked::These(range.zip(docs).filter_map(flagged).collect())
            }
            Scope::Chosen(fragments) => {
                let from = fragments.partition_point(|f| f.table < number);
                let rest = fragments.get(from..).unwrap_or_default();
                let own = rest.iter().take_while(|f| f.table == number).count();
                Picked::These(rest.iter().take(own).map(|f| f.row).collect())
            }
        }
    }

    /// Leaves the documents that are named only.
    pub fn narrow(&mut self, documents: impl Iterator<Item = u32>) {
        if let Scope::Flagged(flags) = self {
            let mut left = vec![false; flags.len()];
            for document in documents {
                left.get_mut(document as usize).into_iter().for_each(|flag| *flag = true);
            }
            *flags = Cow::Owned(left);
        }
    }
}

/// Finds the fragments of documents that an anchor may bind.
struct Chosen<'a, 'b> {
    anchors: &'a Anchors<'a>,
    batch: &'b Batch,
    fragments: Vec<Fragment>,
    /// Of the classes met so far: whether an anchor may be one, and whether one may be below.
    classes: Vec<(Cls, bool, bool)>,
}

impl Chosen<'_, '_> {
    fn take(&mut self, fragment: Fragment) {
        let Some(shape) = self.batch.table(fragment.table).map(Table::shape) else { return };
        let (is_anchor, may_hold) = self.may_be(shape.class());
        if is_anchor {
            self.fragments.push(fragment);
        }
        if may_hold {
            for run in 0..shape.parts().len() as u32 {
                self.batch.parts(fragment, run).iter().for_each(|part| self.take(*part));
            }
        }
    }

    fn may_be(&mut self, class: Cls) -> (bool, bool) {
        if let Some((_, is_anchor, may_hold)) = self.classes.iter().find(|(known, ..)| *known == class) {
            return (*is_anchor, *may_hold);
        }
        let entries = &self.anchors.entries;
        let found = (entries.iter().any(|anchor| class.is_a(anchor.class)), entries.iter().any(|anchor| class.may_contain(anchor.class)));
        self.classes.push((class, found.0, found.1));
        found
    }
}
