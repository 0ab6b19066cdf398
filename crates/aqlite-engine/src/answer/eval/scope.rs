//! The scope of a run by row templates: the fragments of all current documents, or of some EHRs.

use super::anchors::Anchors;
use super::bind::is_current;
use super::node::View;
use super::selection::{Selection, part_of};
use crate::answer::plan::Plan;
use crate::document::{Batch, Doc, Fragment, Table};
use aqlite_rm::class::Cls;
use std::borrow::Cow;
use std::ops::Range;

/// The fragments that a run reads.
pub(super) enum Scope<'b> {
    /// The fragments of the marked documents in a range of document numbers.
    Flagged(Cow<'b, [bool]>, Range<u32>),
    /// A list of fragments, sorted by table and row, each as `table << 32 | row`.
    Chosen(Vec<u64>),
}

impl<'b> Scope<'b> {
    /// Returns the scope of a plan, limited to a range of document numbers; `passes` is a further
    /// test of a document.
    pub fn of(
        plan: &Plan,
        anchors: &Anchors<'_>,
        view: View<'b>,
        slice: Range<u32>,
        passes: Option<&mut dyn FnMut(Doc) -> bool>,
    ) -> Scope<'b> {
        let batch = view.batch;
        let Some(documents) = Scope::documents(plan, batch) else {
            let (docs, live) = (
                batch.docs_among(slice.clone()),
                part_of(batch.live(), &slice),
            );
            let filtered = |passes: &mut dyn FnMut(Doc) -> bool| {
                docs.zip(live)
                    .map(|(doc, live)| *live && passes(doc))
                    .collect()
            };
            let flags = passes.map_or(Cow::Borrowed(live), |passes| Cow::Owned(filtered(passes)));
            if flags.len() != slice.len() {
                view.note_broken("a document of a slice is not in its batch");
            }
            return Scope::Flagged(flags, slice);
        };
        let mut passes = passes;
        let mut chosen = FragmentCollector {
            anchors,
            view,
            fragments: Vec::with_capacity(documents.len()),
            classes: Vec::new(),
        };
        for doc in documents.iter().filter_map(|d| view.doc(*d)) {
            if is_current(&doc) && passes.as_mut().is_none_or(|passes| passes(doc)) {
                doc.data
                    .into_iter()
                    .for_each(|data| chosen.take(data, doc.row.kind.class()));
            }
        }
        // The order by table and row allows bisection in `Scope::rows`.
        chosen.fragments.sort_unstable();
        Scope::Chosen(chosen.fragments)
    }

    /// Returns the scope of the documents of some EHRs, limited to a range of document numbers;
    /// `passes` is a further test of a document.
    pub fn of_ehrs(
        ehrs: &[u32],
        view: View<'b>,
        slice: Range<u32>,
        mut passes: Option<&mut dyn FnMut(Doc) -> bool>,
    ) -> Scope<'b> {
        let mut is_named = vec![false; ehrs.last().map_or(0, |last| *last as usize + 1)];
        for ehr in ehrs {
            match is_named.get_mut(*ehr as usize) {
                Some(named) => *named = true,
                None => view.note_broken("the EHRs of a query are not in order"),
            }
        }
        if slice.end as usize > view.batch.len() {
            view.note_broken("a document of a slice is not in its batch");
        }
        let named = |document: u32| {
            // The places of documents are a part of a segment, which only `passes` needs.
            view.batch
                .owner_of_current(document)
                .is_some_and(|ehr| is_named.get(ehr as usize) == Some(&true))
                && passes
                    .as_mut()
                    .is_none_or(|passes| view.doc(document).is_some_and(passes))
        };
        Scope::Flagged(slice.clone().map(named).collect(), slice)
    }

    /// Returns the documents of the EHR of a plan for one EHR; `None` for other plans.
    pub fn documents(plan: &Plan, batch: &'b Batch) -> Option<&'b [u32]> {
        let ehr = plan.scan().ehr()?;
        Some(
            batch
                .ehr_number(ehr)
                .map_or(&[], |number| batch.docs_of(number)),
        )
    }

    /// Returns the rows of a table in the scope, in the order of their documents.
    pub fn rows<'t>(&self, number: u32, table: &'t Table) -> Selection<'t> {
        match self {
            // Borrowed flags are those of `Batch::live`, for which each table lists its hidden
            // rows.
            Scope::Flagged(Cow::Borrowed(_), slice) => {
                Selection::excluding(rows_of(slice, table.docs()), table.hidden())
            }
            Scope::Flagged(flags, slice) => {
                let rows = rows_of(slice, table.docs());
                // All rows are from the slice, so the subtraction cannot underflow, and each row has
                // a flag.
                let flagged = |doc: u32| flags.get((doc - slice.start) as usize) == Some(&true);
                let docs = part_of(table.docs(), &rows);
                Selection::Indices(
                    rows.zip(docs)
                        .filter_map(|(row, doc)| flagged(*doc).then_some(row))
                        .collect(),
                )
            }
            Scope::Chosen(fragments) => Selection::Indices(rows_in_table(fragments, number)),
        }
    }

    /// Returns the first document of a population in the scope.
    pub fn first_document(&self) -> Option<u32> {
        match self {
            Scope::Flagged(flags, slice) => {
                let first = flags.iter().position(|flag| *flag)?;
                Some(slice.start.saturating_add(first as u32))
            }
            Scope::Chosen(_) => None,
        }
    }

    /// Removes all documents but these.
    pub fn narrow(&mut self, view: View<'_>, documents: impl Iterator<Item = u32>) {
        if let Scope::Flagged(flags, slice) = self {
            let mut left = vec![false; flags.len()];
            for document in documents {
                // A document before the slice wraps to a huge index and is reported as well.
                match left.get_mut(document.wrapping_sub(slice.start) as usize) {
                    Some(flag) => *flag = true,
                    None => view.note_broken("a row is outside the slice of its run"),
                }
            }
            // The flags of the batch allow ranges of rows instead of lists.
            if left != **flags {
                *flags = Cow::Owned(left);
            }
        }
    }
}

/// Returns the rows whose documents are in a range.
fn rows_of(slice: &Range<u32>, docs: &[u32]) -> Range<u32> {
    // Rows ascend by document, so the rows of a slice are one range.
    let at = |document: u32| docs.partition_point(|other| *other < document) as u32;
    at(slice.start)..at(slice.end)
}

/// Returns the number of the table of a listed fragment.
pub(super) fn table_of(fragment: u64) -> u32 {
    (fragment >> 32) as u32
}

/// A collector of the fragments of documents that an anchor can bind.
struct FragmentCollector<'a, 'b> {
    anchors: &'a Anchors<'a>,
    view: View<'b>,
    fragments: Vec<u64>,
    /// The classes of the fragments so far.
    classes: Vec<FragmentClass>,
}

/// The relation of a class of fragments to the anchors.
#[derive(Clone, Copy)]
struct FragmentClass {
    class: Cls,
    /// Whether an anchor can bind an object of the class.
    is_anchor: bool,
    /// Whether an object of the class can contain one that an anchor can bind.
    may_hold: bool,
}

impl FragmentCollector<'_, '_> {
    fn take(&mut self, fragment: Fragment, class: Cls) {
        let known = self.known(class);
        if known.is_anchor {
            self.fragments
                .push((u64::from(fragment.table) << 32) | u64::from(fragment.row));
        }
        if !known.may_hold {
            return;
        }
        let batch = self.view.batch;
        let Some(table) = batch.table(fragment.table) else {
            return self.view.note_broken("a fragment has no table");
        };
        for child in (0..table.layout().groups().len() as u32)
            .flat_map(|group| batch.child_rows(fragment, group))
        {
            match batch.table(child.table) {
                Some(table) => self.take(*child, table.layout().class()),
                None => self.view.note_broken("a fragment has no table"),
            }
        }
    }

    fn known(&mut self, class: Cls) -> FragmentClass {
        if let Some(known) = self.classes.iter().find(|known| known.class == class) {
            return *known;
        }
        let entries = &self.anchors.entries;
        let found = FragmentClass {
            class,
            is_anchor: entries.iter().any(|anchor| class.is_a(anchor.class)),
            may_hold: entries.iter().any(|anchor| class.may_contain(anchor.class)),
        };
        self.classes.push(found);
        found
    }
}

/// Returns the rows of a table among listed fragments, which are sorted by table.
fn rows_in_table(fragments: &[u64], number: u32) -> Vec<u32> {
    let from = fragments.partition_point(|f| table_of(*f) < number);
    let rest = fragments.get(from..).unwrap_or_default();
    rest.iter()
        .take_while(|f| table_of(**f) == number)
        .map(|f| *f as u32)
        .collect()
}
