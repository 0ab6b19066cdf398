//! Answers: the engine reads the segments of a data set.
//!
//! The rules of a scan are those of the SQL repository (`store/sql/segments.rs`): a query whose rows
//! come from one document each reads segments, and of them only the parts that it needs. A query of
//! EHRs alone reads the catalog. All other queries read whole documents.

use super::catalog::EhrFacts;
use super::set::{DataSet, Opened, damaged};
use super::version::SYSTEM;
use crate::outcome::Failure;
use crate::progress::is_interrupted;
use aqlite::aql::{Budget, Plan, QueryError, ResultSet, RowVisit, Run};
use aqlite::document::{Batch, DocRow, EhrRow, Segment, absent_reads};
use aqlite::store::scan::Scan;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

/// The answer to a query, with the facts that `--explain` shows.
pub struct QueryAnswer {
    /// The rows.
    pub result: ResultSet,
    /// The way in which the data were read.
    pub source: BatchSource,
    /// Units of work of the engine.
    pub work: u64,
}

/// The source of the batches of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchSource {
    /// The catalog: a query of EHRs alone.
    Ehrs,
    /// Columns of segments.
    Segments,
    /// Whole documents: a query that joins documents of an EHR, names EHRs or reads old versions.
    Documents,
}

impl BatchSource {
    /// Returns the source for a scan.
    pub fn of(scan: &Scan) -> BatchSource {
        if scan.kinds.is_empty() && scan.ehrs.is_none() {
            return BatchSource::Ehrs;
        }
        let is_plain = scan.ehrs.is_none() && !scan.unqueryable && scan.snapshot.is_none();
        let is_single = !scan.whole_ehrs && !scan.empty_ehrs && !scan.all_versions;
        if is_plain && is_single {
            BatchSource::Segments
        } else {
            BatchSource::Documents
        }
    }

    /// Describes the source in words.
    pub fn description(self) -> &'static str {
        match self {
            BatchSource::Ehrs => "the list of EHRs",
            BatchSource::Segments => "columns of segments",
            BatchSource::Documents => "whole documents",
        }
    }
}

/// Returns the budget of a query on this machine: the user can press Ctrl-C.
pub fn budget() -> Budget {
    Budget {
        rows: u32::MAX as usize,
        bytes: usize::MAX / 4,
        work: u64::MAX,
        ..Budget::default()
    }
}

impl DataSet {
    /// Answers a query. `now` is the time of the query, ISO 8601 with zone.
    ///
    /// # Errors
    /// If the run ends with an error, a part of a segment cannot be read, or the user stops.
    pub fn answer(&self, plan: &Plan, now: &str) -> Result<QueryAnswer, Failure> {
        let scan = plan.scan();
        let source = BatchSource::of(scan);
        let run = match source {
            BatchSource::Ehrs => self.run_on(&self.ehrs_alone()?, plan, now)?,
            BatchSource::Segments => self.run_on_segments(plan, now)?,
            BatchSource::Documents if scan.ehrs.is_some() => {
                self.run_on(&self.documents(scan)?, plan, now)?
            }
            BatchSource::Documents => self.run_on(self.whole(scan)?, plan, now)?,
        };
        let work = run.work();
        let result = run.finish().map_err(failure)?;
        Ok(QueryAnswer {
            result,
            source,
            work,
        })
    }

    /// Passes the rows of a query to `take` in parts, so that not all of them are in memory, until it
    /// wants no more. The first part has the columns and no row, the others are those of the
    /// segments. The parts of segments that the query reads are not kept. All rows must come from one
    /// document each.
    ///
    /// # Errors
    /// As [`DataSet::answer`], and as `take`.
    pub fn answer_in_parts(
        &self,
        plan: &Plan,
        now: &str,
        take: &mut dyn FnMut(ResultSet) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        if BatchSource::of(plan.scan()) != BatchSource::Segments {
            return take(self.answer(plan, now)?.result).map(drop);
        }
        let columns = Run::new(plan, now, budget(), &is_interrupted).finish();
        let mut wanted = take(columns.map_err(failure)?)?;
        for number in 0..self.segments.len() {
            if wanted.is_break() {
                break;
            }
            let rows = self.rows_of_segment(number, plan, now)?;
            if !rows.is_empty() {
                wanted = take(rows)?;
            }
        }
        Ok(())
    }

    /// Runs a query on one segment, whose parts are loaded for this run only.
    fn rows_of_segment(&self, number: usize, plan: &Plan, now: &str) -> Result<ResultSet, Failure> {
        let opened = self.segments.get(number);
        let opened = opened.ok_or_else(|| damaged("a segment is absent"))?;
        // A copy without parts: the parts that this run loads are freed with it.
        let batch = opened.segment.without_parts(&opened.batch);
        let batch = batch.map_err(damaged)?;
        loop {
            let before = absent_reads();
            let mut run = Run::new(plan, now, budget(), &is_interrupted);
            run.push(&batch);
            if absent_reads() == before {
                return run.finish().map_err(failure);
            }
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            // A run that read an absent part but wants none would repeat forever.
            if self.load_into(&batch, number, &batch.wanted())? == 0 {
                return Err(damaged("a part of a segment is absent"));
            }
        }
    }

    fn run_on<'p>(&self, batch: &Batch, plan: &'p Plan, now: &'p str) -> Result<Run<'p>, Failure> {
        let mut run = Run::new(plan, now, budget(), &is_interrupted);
        run.push(batch);
        Ok(run)
    }

    /// Runs a query on the segments until no read found a part absent.
    fn run_on_segments<'p>(&self, plan: &'p Plan, now: &'p str) -> Result<Run<'p>, Failure> {
        let mut earlier: Option<Run<'p>> = None;
        loop {
            let before = absent_reads();
            let mut run = Run::new(plan, now, budget(), &is_interrupted);
            // A later attempt looks for the parts of more documents.
            if let Some(earlier) = earlier.take() {
                run.take_over(earlier);
            }
            // The run ends early when it has enough rows, or has failed.
            let _ = self.segments.iter().all(|opened| run.push(&opened.batch));
            if absent_reads() == before {
                return Ok(run);
            }
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            if self.load_wanted()? == 0 {
                return Err(damaged("a part of a segment is absent"));
            }
            earlier = Some(run);
        }
    }

    /// Passes each row of a query to `visit`, in commit order: for queries of guides, which select
    /// paths of one document each. Returns false if parts of segments were absent. They are loaded
    /// now, and the caller starts again.
    ///
    /// # Errors
    /// As [`DataSet::answer`].
    pub fn visit(&self, plan: &Plan, now: &str, visit: RowVisit<'_>) -> Result<bool, Failure> {
        let mut run = Run::new(plan, now, budget(), &is_interrupted);
        if BatchSource::of(plan.scan()) != BatchSource::Segments {
            run.push_each(self.whole(plan.scan())?, visit);
            return run.finish().map(|_| true).map_err(failure);
        }
        let before = absent_reads();
        for opened in &self.segments {
            if !run.push_each(&opened.batch, visit) {
                break;
            }
        }
        if absent_reads() == before {
            return run.finish().map(|_| true).map_err(failure);
        }
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        if self.load_wanted()? == 0 {
            return Err(damaged("a part of a segment is absent"));
        }
        Ok(false)
    }

    /// Loads the parts that were read while they were absent. Returns their number.
    fn load_wanted(&self) -> Result<usize, Failure> {
        let mut loaded = 0;
        for (number, Opened { batch, .. }) in self.segments.iter().enumerate() {
            loaded += self.load_into(batch, number, &batch.wanted())?;
        }
        Ok(loaded)
    }

    /// Loads parts into a batch of a segment. Returns their number.
    fn load_into(&self, batch: &Batch, number: usize, parts: &[u32]) -> Result<usize, Failure> {
        let (Some(Opened { segment, .. }), Some(facts)) =
            (self.segments.get(number), self.catalog.segments.get(number))
        else {
            return Err(damaged("a segment is absent"));
        };
        for (value, parts) in by_value(segment, parts)? {
            let place = facts.values.get(value as usize);
            let place = place.ok_or_else(|| damaged("a value is absent"))?;
            let bytes = self.store.read(*place)?;
            for part in parts {
                let range = segment
                    .place(part)
                    .and_then(|place| bytes.get(place.start as usize..place.end as usize));
                let range = range.ok_or_else(|| damaged("a value is too short"))?;
                segment.load(batch, part, range).map_err(damaged)?;
            }
        }
        Ok(parts.len())
    }

    fn row(&self, ehr: &EhrFacts) -> EhrRow {
        EhrRow {
            ehr_id: ehr.ehr_id.clone(),
            system_id: SYSTEM.to_owned(),
            time_created: self.catalog.created.clone(),
            is_queryable: ehr.is_queryable,
        }
    }

    /// Returns all EHRs without documents.
    fn ehrs_alone(&self) -> Result<Batch, Failure> {
        let mut batch = Batch::new();
        for ehr in &self.catalog.ehrs {
            batch.add_ehr(self.row(ehr));
        }
        Ok(batch)
    }

    /// Returns all documents as one batch, which is kept for the next query.
    fn whole(&self, scan: &Scan) -> Result<&Batch, Failure> {
        if let Some(batch) = self.whole.get() {
            return Ok(batch);
        }
        let batch = self.documents(scan)?;
        Ok(self.whole.get_or_init(|| batch))
    }

    /// Returns the documents of the EHRs of a scan as one batch.
    fn documents(&self, scan: &Scan) -> Result<Batch, Failure> {
        let named: Option<HashSet<&str>> = scan
            .ehrs
            .as_ref()
            .map(|ehrs| ehrs.iter().map(String::as_str).collect());
        let mut gathering = Gathering::default();
        for ehr in &self.catalog.ehrs {
            if named
                .as_ref()
                .is_none_or(|named| named.contains(ehr.ehr_id.as_str()))
            {
                gathering.add_ehr(ehr.number, self.row(ehr));
            }
        }
        for number in 0..self.segments.len() {
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            self.gather(number, &mut gathering)?;
        }
        Ok(gathering.batch)
    }

    /// Adds the documents of a segment whose EHRs are gathered.
    fn gather(&self, number: usize, gathering: &mut Gathering) -> Result<(), Failure> {
        let Some(Opened { segment, .. }) = self.segments.get(number) else {
            return Err(damaged("a segment is absent"));
        };
        let ehrs: Vec<Option<u32>> = segment
            .ehrs()
            .iter()
            .map(|ehr| gathering.numbers.get(ehr).copied())
            .collect();
        // No document of this segment belongs to a wanted EHR, so its parts need not be loaded.
        if ehrs.iter().all(Option::is_none) {
            return Ok(());
        }
        let batch = self.complete(number)?;
        for doc in batch.docs() {
            let owner = ehrs.get(doc.ehr as usize).copied().flatten();
            // A version that occurs twice in the files is read once, from its first occurrence.
            let is_repeated = self
                .catalog
                .repeated
                .binary_search(&doc.row.ordinal)
                .is_ok();
            let Some(owner) = owner.filter(|_| !is_repeated) else {
                continue;
            };
            let packed = batch.packed(doc.version);
            let packed = packed.ok_or_else(|| damaged("a document is incomplete"))?;
            let row = DocRow {
                kind: doc.row.kind,
                object_id: batch.object_id(doc.document).to_owned(),
                number: doc.row.number,
                ordinal: doc.row.ordinal,
                latest: doc.row.latest,
                deleted: doc.row.deleted,
            };
            gathering.batch.add(owner, row, &packed);
        }
        Ok(())
    }

    /// Returns the batch of a segment with all its parts. They are not kept in the segment, because
    /// queries of columns need few of them.
    fn complete(&self, number: usize) -> Result<Batch, Failure> {
        let (Some(Opened { segment, batch }), Some(facts)) =
            (self.segments.get(number), self.catalog.segments.get(number))
        else {
            return Err(damaged("a segment is absent"));
        };
        let state = aqlite::document::SegmentState {
            superseded: &self.catalog.superseded,
            // The rows of EHRs in the gathered batch have the flag `is_queryable`.
            unqueryable: &[],
        };
        let whole = segment.renewed(batch, &state).map_err(damaged)?;
        let mut values = HashMap::new();
        let mut part = 0;
        while let Some(place) = segment.place(part) {
            let bytes = match values.entry(place.value) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(empty) => {
                    let value = facts.values.get(place.value as usize);
                    let value = value.ok_or_else(|| damaged("a value is absent"))?;
                    empty.insert(self.store.read(*value)?)
                }
            };
            let range = bytes.get(place.start as usize..place.end as usize);
            let range = range.ok_or_else(|| damaged("a value is too short"))?;
            segment.load(&whole, part, range).map_err(damaged)?;
            part += 1;
        }
        Ok(whole)
    }
}

/// Documents that are gathered in one batch.
#[derive(Default)]
struct Gathering {
    batch: Batch,
    /// The numbers of EHRs in the batch by their numbers in segments.
    numbers: HashMap<u64, u32>,
}

impl Gathering {
    fn add_ehr(&mut self, number: u64, row: EhrRow) {
        let in_batch = self.batch.add_ehr(row);
        self.numbers.insert(number, in_batch);
    }
}

/// Returns the failure for a run that ended with an error.
pub fn failure(error: QueryError) -> Failure {
    match error {
        QueryError::Stopped => Failure::Interrupted,
        other => Failure::Data(other.to_string()),
    }
}

/// Returns the numbers of parts by the stored value that has them.
fn by_value(segment: &Segment, parts: &[u32]) -> Result<BTreeMap<u32, Vec<u32>>, Failure> {
    let mut values: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for part in parts {
        let place = segment.place(*part);
        let place = place.ok_or_else(|| damaged("a part is absent"))?;
        values.entry(place.value).or_default().push(*part);
    }
    Ok(values)
}
