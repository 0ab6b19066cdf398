//! Evaluation of semi-joins: finds the documents of an EHR that can be joined before the join.
//!
//! Each [`JoinSide`] is evaluated on its own, by row templates if it has an anchor. Its output
//! keeps no rows, but marks their documents. The join then reads the marked documents of EHRs that
//! have one for each side.
//!
//! [`JoinSide`]: crate::answer::semi_join::JoinSide

use super::Run;
use super::execution_path::ExecutionPath;
use super::output::{JoinOrder, Output};
use crate::answer::QueryError;
use crate::answer::scan::Progress;
use crate::answer::semi_join::SemiJoin;
use crate::document::{Batch, Ranges};
use std::rc::Rc;

/// A set of documents of a batch, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct DocumentSet {
    words: Vec<u64>,
}

impl DocumentSet {
    /// Creates an empty set of documents of a batch.
    pub fn of(batch: &Batch) -> DocumentSet {
        DocumentSet {
            words: vec![0; batch.len().div_ceil(64)],
        }
    }

    /// Adds a document. Returns false if the batch has no such document.
    pub fn insert(&mut self, document: u32) -> bool {
        let word = self.words.get_mut(document as usize / 64);
        word.map(|word| *word |= 1 << (document % 64)).is_some()
    }

    pub fn contains(&self, document: u32) -> bool {
        let word = self.words.get(document as usize / 64);
        word.is_some_and(|word| word & 1 << (document % 64) != 0)
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let words = (0u32..).step_by(64).zip(&self.words);
        words.flat_map(|(start, word)| {
            let rest = std::iter::successors(Some(*word), |word| Some(word & word.wrapping_sub(1)));
            let rest = rest.take_while(|word| *word != 0);
            // The lowest bit of the rest is the next document.
            rest.map(move |word| start + word.trailing_zeros())
        })
    }
}

/// The documents of a batch that can be joined.
#[derive(Clone)]
pub(super) struct JoinableDocuments {
    /// The variable and the documents of each side that is complete.
    sides: Vec<(usize, DocumentSet)>,
    /// For each EHR, the number of leading sides for which it has a document.
    of_ehrs: Vec<u32>,
    /// The variable of the first side, if the join leaves it out: its documents determine the default
    /// order of the rows.
    order_variable: Option<usize>,
}

impl JoinableDocuments {
    /// Returns whether an EHR has a document for each side.
    pub fn has_ehr(&self, ehr: u32) -> bool {
        self.of_ehrs.get(ehr as usize).copied() == Some(self.sides.len() as u32)
    }

    /// Returns whether a side has the document.
    fn contains(&self, document: u32) -> bool {
        let mut sides = self.sides.iter();
        sides.any(|(_, documents)| documents.contains(document))
    }

    /// Returns the documents to which a variable can be bound below an EHR; `None` if they are not
    /// known.
    pub fn of(&self, variable: usize) -> Option<&DocumentSet> {
        let mut sides = self.sides.iter();
        sides.find_map(|(own, documents)| (*own == variable).then_some(documents))
    }

    /// Returns the default order of the rows of an EHR if the join leaves out the first side: it is
    /// that of the first document of this side.
    pub fn order_of(&self, batch: &Batch, ehr: u32) -> Option<JoinOrder> {
        let variable = self.order_variable?;
        let documents = self.of(variable)?;
        let mut of_ehr = batch.docs_of(ehr).iter();
        let first = of_ehr.find(|document| documents.contains(**document));
        let ordinal = first.and_then(|document| batch.ordinal_of(*document));
        Some(JoinOrder {
            variable: variable as u64,
            ordinal: ordinal.unwrap_or(u64::MAX),
        })
    }

    /// Adds the documents of the next side.
    ///
    /// # Errors
    /// If a document has no EHR.
    fn add(
        &mut self,
        variable: usize,
        documents: DocumentSet,
        batch: &Batch,
    ) -> Result<(), QueryError> {
        let before = self.sides.len() as u32;
        for document in documents.iter() {
            let ehr = batch.ehr_of(document);
            let sides = ehr.and_then(|ehr| self.of_ehrs.get_mut(ehr as usize));
            let sides = sides.ok_or(QueryError::Broken("a document of a side has no EHR"))?;
            if *sides == before {
                *sides = before + 1;
            }
        }
        self.sides.push((variable, documents));
        Ok(())
    }
}

/// The search for the documents of a batch that can be joined.
pub(super) struct SideScan<'p> {
    found: JoinableDocuments,
    /// The run of the current side.
    run: Box<Run<'p>>,
    /// The number of the batch in the union that it reads.
    part: usize,
}

/// The documents of the sides that were evaluated completely, for a later run of the same plan over
/// the same documents.
pub(super) struct CompleteSides {
    ranges: Ranges,
    found: JoinableDocuments,
}

/// The outcome of a step of a search.
enum SearchStep {
    Done,
    Paused,
    /// A part that a side reads is absent.
    Absent,
}

impl<'p> Run<'p> {
    /// Follows an earlier run, which read absent parts, and takes over its complete sides. Both runs
    /// have the same plan and the same state of the repository.
    pub fn take_over(&mut self, earlier: Run<'p>) {
        self.work.follow(&earlier.work);
        self.complete_sides = earlier.complete_sides;
    }

    /// Returns the sides that were evaluated completely over the documents of a batch.
    fn sides_in(&self, batch: &Batch) -> Option<&CompleteSides> {
        let earlier = self.complete_sides.as_ref()?;
        (batch.united_ranges()? == earlier.ranges).then_some(earlier)
    }

    /// Returns the ordinals of all documents of a union that the rows need, for each EHR that has
    /// any. `None` if they are not known, or if they are more than `most`.
    pub fn needed_documents(&self, union: &Batch, most: usize) -> Option<Vec<Vec<u64>>> {
        let plan = self.semi_join.filter(|plan| plan.is_closed)?;
        let sides = self.sides_in(union)?;
        let found = Some(&sides.found).filter(|found| found.sides.len() == plan.sides.len())?;
        let mut needed = Vec::new();
        let mut rest = most;
        for ehr in (0..found.of_ehrs.len() as u32).filter(|ehr| found.has_ehr(*ehr)) {
            let documents = union.docs_of(ehr).iter().copied();
            let documents = documents.filter(|document| found.contains(*document));
            let ordinals: Option<Vec<u64>> = documents.map(|d| union.ordinal_of(d)).collect();
            let ordinals = ordinals?;
            rest = rest.checked_sub(ordinals.len())?;
            needed.push(ordinals);
        }
        Some(needed)
    }

    /// Finds the documents of a new batch that can be joined. Returns `None` when they are known,
    /// or if the query joins nothing.
    pub(super) fn find_joinable(
        &mut self,
        batch: &Batch,
        ehrs: Option<&[u32]>,
    ) -> Option<Progress> {
        let plan = self.semi_join.filter(|_| self.joinable.is_none())?;
        let mut search = match self.search.take() {
            Some(search) => search,
            None => self.begin_search(plan, batch)?,
        };
        self.work.taken.note(match plan.is_smaller {
            true => ExecutionPath::SmallerJoin,
            false => ExecutionPath::SemiJoin,
        });
        match self.search_on(plan, &mut search, (batch, ehrs)) {
            Ok(SearchStep::Done) => {
                self.joinable = Some(Rc::new(search.found));
                None
            }
            Ok(SearchStep::Paused) => {
                self.search = Some(search);
                Some(Progress::Paused)
            }
            Ok(SearchStep::Absent) => Some(Progress::Enough),
            Err(failure) => {
                self.failure = Some(failure);
                Some(Progress::Enough)
            }
        }
    }

    fn begin_search(&mut self, plan: &'p SemiJoin, batch: &Batch) -> Option<SideScan<'p>> {
        let found = self.sides_in(batch).map_or_else(
            || JoinableDocuments {
                sides: Vec::with_capacity(plan.sides.len()),
                of_ehrs: vec![0; batch.ehr_count()],
                order_variable: plan.order_variable,
            },
            |sides| sides.found.clone(),
        );
        let side = found.sides.len().min(plan.sides.len().saturating_sub(1));
        Some(SideScan {
            run: self.run_of_side(plan, side, batch)?,
            found,
            part: 0,
        })
    }

    /// Creates the run that finds the documents of a side; `None` behind the last side.
    fn run_of_side(&self, plan: &'p SemiJoin, side: usize, batch: &Batch) -> Option<Box<Run<'p>>> {
        let side = plan.sides.get(side)?;
        let work = Rc::clone(&self.work);
        let mut run = Run::with_work(&side.plan, self.now, (self.budget, work), self.stopped);
        run.output = Output::of_documents(batch);
        Some(Box::new(run))
    }

    /// Continues a search.
    fn search_on(
        &mut self,
        plan: &'p SemiJoin,
        search: &mut SideScan<'p>,
        (batch, ehrs): (&Batch, Option<&[u32]>),
    ) -> Result<SearchStep, QueryError> {
        while let Some(side) = plan.sides.get(search.found.sides.len()) {
            while let Some((part, first)) = batch.part(search.part) {
                search.run.output.begin_part(first);
                if search.run.advance_piece(part, ehrs) == Progress::Paused {
                    return Ok(SearchStep::Paused);
                }
                if let Some(failure) = search.run.failure.take() {
                    return Err(failure);
                }
                search.part += 1;
            }
            // The run restarts when the absent parts are loaded. Later sides are searched then, so
            // that only the parts of one side are in memory.
            if self.work.is_void() {
                return Ok(SearchStep::Absent);
            }
            let documents = search.run.output.marked_documents();
            let documents = documents.ok_or(QueryError::Broken("a side marks no documents"))?;
            search.found.add(side.variable, documents, batch)?;
            search.part = 0;
            self.complete_sides = batch.united_ranges().map(|ranges| CompleteSides {
                found: search.found.clone(),
                ranges,
            });
            if let Some(run) = self.run_of_side(plan, search.found.sides.len(), batch) {
                search.run = run;
            }
        }
        Ok(SearchStep::Done)
    }
}
