//! Evaluation of a plan over the documents of a repository.

use super::super::Service;
use super::super::error::Failure;
use super::super::query_memory::{MemoryShare, ReadBudget};
use super::super::run_host::RunHost;
use crate::aql::{Plan, Run, Savepoint};
use crate::document::Batch;
use crate::store::repository::{BatchSink, Pause, Repository, ScanPart};
use crate::store::scan::{Progress, Scan, Snapshot};
use std::rc::Rc;

/// A run that has read all documents that it needs.
pub(super) struct Evaluated<'r> {
    pub run: Run<'r>,
    /// The state that was read.
    pub snapshot: Snapshot,
    /// The EHR to which the query was restricted, if it exists.
    pub of_ehr: Option<String>,
    /// The reserved memory of the run.
    pub share: MemoryShare,
}

impl<R: Repository> Service<R> {
    /// Evaluates a plan over the documents of its scan in one state, on several threads if that
    /// pays.
    pub(super) async fn evaluate_all<'r>(
        &self,
        plan: &'r Rc<Plan>,
        scan: &Scan,
        host: &RunHost<'r>,
    ) -> Result<Evaluated<'r>, Failure> {
        // WebAssembly has one thread.
        #[cfg(not(target_family = "wasm"))]
        if let Some(evaluated) = self.evaluate_divided(plan, scan, host).await? {
            return Ok(evaluated);
        }
        self.evaluate(plan, (scan, None), host).await
    }

    /// Evaluates a plan over the documents of a scan, or of a part of it.
    pub(super) async fn evaluate<'r>(
        &self,
        plan: &'r Plan,
        (scan, part): (&Scan, Option<ScanPart>),
        host: &RunHost<'r>,
    ) -> Result<Evaluated<'r>, Failure> {
        let (now, is_stopped) = (host.now, host.is_stopped);
        let begin = || Run::new(plan, now, self.budget(), is_stopped);
        let mut sink = OneQuery {
            host,
            run: begin(),
            begin: &begin,
            ehr: plan.scan().ehr(),
            is_ehr_found: false,
            pauses_first: plan.query().paths.len() >= MANY_PATHS,
            reading: ReadBudget::new(self.query_memory.share(), host.deadline),
            before: None,
        };
        let snapshot = match part {
            None => self.repository.scan(scan, &mut sink).await,
            Some(part) => self.repository.scan_part(scan, part, &mut sink).await,
        };
        let snapshot = snapshot.map_err(Failure::of_store)?;
        if let Some(refusal) = sink.reading.refusal {
            return Err(self.stop_failure(refusal));
        }
        Ok(Evaluated {
            run: sink.run,
            snapshot,
            of_ehr: sink.ehr.filter(|_| sink.is_ehr_found).map(str::to_owned),
            share: sink.reading.share,
        })
    }
}

/// The number of paths from which a query pauses before its first batch. The paths of one row are
/// evaluated without a pause, so several such queries whose data arrive together would delay other
/// requests by the sum of their rows.
const MANY_PATHS: usize = 64;

/// A sink that runs one query over the batches of a scan.
struct OneQuery<'r, 'h> {
    host: &'h RunHost<'r>,
    run: Run<'r>,
    /// Starts the run again.
    begin: &'h dyn Fn() -> Run<'r>,
    /// The EHR to which the query is restricted.
    ehr: Option<&'r str>,
    /// Whether the EHR of `ehr` was in a batch.
    is_ehr_found: bool,
    /// Whether the run pauses before its first batch.
    pauses_first: bool,
    reading: ReadBudget,
    /// The state before the segment that is being sent.
    before: Option<Savepoint>,
}

impl BatchSink for OneQuery<'_, '_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        if std::mem::take(&mut self.pauses_first) {
            return Progress::Paused;
        }
        self.is_ehr_found |= self.ehr.is_some_and(|ehr| batch.ehr_number(ehr).is_some());
        let progress = self.run.advance(batch);
        if self.reading.hold(self.run.footprint(), (self.host.clock)()) {
            progress
        } else {
            Progress::Enough
        }
    }

    fn admit(&mut self, bytes: usize) -> bool {
        self.reading
            .admit(bytes, self.run.footprint(), (self.host.clock)())
    }

    fn savepoint(&mut self) -> bool {
        self.before = self.run.savepoint();
        self.before.is_some()
    }

    fn roll_back(&mut self) {
        if let Some(before) = &self.before {
            self.run.roll_back(before);
        }
    }

    fn needed_documents(&self, union: &Batch, most: usize) -> Option<Vec<Vec<u64>>> {
        self.run.needed_documents(union, most)
    }

    fn restart(&mut self) -> bool {
        let earlier = std::mem::replace(&mut self.run, (self.begin)());
        self.run.take_over(earlier);
        self.is_ehr_found = false;
        self.reading.restart()
    }

    fn pause(&self) -> Pause {
        (self.host.pause)()
    }
}
