//! Scans of the state in memory, step by step.

use super::{Memory, State};
use crate::document::Batch;
use crate::store::repository::{StoreError, state_to_read};
use crate::store::scan::{Progress, Scan, Snapshot};
use std::cell::RefCell;
use std::rc::Rc;

/// A scan whose host may do other work between the steps. After a write, it begins again in the
/// state that it reads: see [`MemoryScan::restart_if_changed`].
pub struct MemoryScan {
    state: Rc<RefCell<State>>,
    scan: Scan,
    /// The revision of the state at the begin of the scan.
    revision: u64,
    snapshot: Snapshot,
    source: BatchSource,
}

/// The batches of a scan.
enum BatchSource {
    /// The batch of the state, with all documents.
    State,
    /// A batch that was made for the scan, and the ids of the EHRs that get batches of their own
    /// after it, the next one at the end.
    Made(Box<Batch>, Vec<String>),
    Nothing,
}

impl Memory {
    /// Begins a scan.
    ///
    /// # Errors
    /// [`StoreError::SnapshotGone`] and [`StoreError::NoSuchSnapshot`].
    pub fn begin_scan(&self, scan: &Scan) -> Result<MemoryScan, StoreError> {
        MemoryScan::begin(&self.state, scan, scan.snapshot)
    }
}

impl State {
    fn source(&self, scan: &Scan, snapshot: Snapshot) -> Result<BatchSource, StoreError> {
        if let Some(version) = self.earlier_version(scan, snapshot) {
            let batch = self.as_of(version, scan.ehrs.as_deref())?;
            return Ok(BatchSource::Made(Box::new(batch), Vec::new()));
        }
        match scan.ehrs_in(&self.batch) {
            Some(found) if found.is_empty() => Ok(BatchSource::Nothing),
            // Lists of all versions per EHR would be built for all EHRs of the batch, so smaller
            // batches are made.
            Some(found) if scan.whole_ehrs && scan.all_versions => {
                // The owner of the parties is no EHR, so it has no row.
                let rows = found.iter().rev().filter_map(|ehr| self.batch.ehr(*ehr));
                let mut rest: Vec<String> = rows.map(|row| row.ehr_id.clone()).collect();
                rest.pop().map_or(Ok(BatchSource::Nothing), |first| {
                    Ok(BatchSource::Made(Box::new(self.batch_of(&first)?), rest))
                })
            }
            _ => Ok(BatchSource::State),
        }
    }
}

impl MemoryScan {
    /// Begins a scan in a state, or without one in the newest.
    fn begin(
        shared: &Rc<RefCell<State>>,
        scan: &Scan,
        read: Option<Snapshot>,
    ) -> Result<MemoryScan, StoreError> {
        let state = shared.borrow();
        let in_state = Scan {
            snapshot: read,
            ..scan.clone()
        };
        let snapshot = state_to_read(
            read,
            state.newest_state(scan),
            state.lacks_data_of(&in_state) || state.shows_withdrawn(&in_state),
        )?;
        Ok(MemoryScan {
            state: Rc::clone(shared),
            revision: state.revision,
            snapshot,
            source: state.source(scan, snapshot)?,
            scan: scan.clone(),
        })
    }

    /// Restarts the scan if a write has changed the batches since the last step, and returns whether it
    /// did. [`MemoryScan::step`] then passes the documents of the same state, from the first one;
    /// those of the newest state if some were physically deleted. Called after each pause.
    ///
    /// It copies the documents of the state, which costs time and memory in proportion to all of
    /// them. A host that can wait keeps writes back until its queries have ended.
    ///
    /// # Errors
    /// [`StoreError::SnapshotGone`] if the scan names a state of which data were deleted.
    pub fn restart_if_changed(&mut self) -> Result<bool, StoreError> {
        let is_copy = matches!(&self.source, BatchSource::Made(_, rest) if rest.is_empty());
        if is_copy || self.state.borrow().revision == self.revision {
            return Ok(false);
        }
        let begin = |read| MemoryScan::begin(&self.state, &self.scan, read);
        *self = begin(Some(self.snapshot)).or_else(|_| begin(self.scan.snapshot))?;
        Ok(true)
    }

    /// Passes the present batch to `take`, as [`BatchSink::take`] describes. Returns
    /// [`Progress::Paused`] until nothing is left, or until `take` needs no more.
    ///
    /// It is generic, and small, because a call of `take` by a pointer would keep the code of all
    /// methods of a sink in the module of the page.
    ///
    /// # Errors
    /// A part of the checkpoint cannot be read.
    ///
    /// [`BatchSink::take`]: crate::store::repository::BatchSink::take
    #[inline]
    pub fn step(&mut self, take: impl FnOnce(&Batch) -> Progress) -> Result<Progress, StoreError> {
        let shared = Rc::clone(&self.state);
        let state = shared.borrow();
        let progress = self.present(&state).map_or(Progress::More, take);
        self.follow(&state, progress)
    }

    /// Returns the present batch, if there is any.
    fn present<'s>(&'s self, state: &'s State) -> Option<&'s Batch> {
        match &self.source {
            BatchSource::State => Some(&state.batch),
            BatchSource::Made(batch, _) => Some(batch),
            BatchSource::Nothing => None,
        }
    }

    /// Continues with the next batch if the present one is done.
    fn follow(&mut self, state: &State, progress: Progress) -> Result<Progress, StoreError> {
        if let Some(why) = state.batch.failure() {
            return Err(StoreError::Failed(why.to_owned()));
        }
        if let (Progress::More, BatchSource::Made(batch, rest)) = (progress, &mut self.source)
            && let Some(next) = rest.pop()
        {
            **batch = state.batch_of(&next)?;
            return Ok(Progress::Paused);
        }
        Ok(progress)
    }

    /// Returns the state that the scan reads.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }
}
