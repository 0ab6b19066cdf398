//! Sinks: the receivers of the batches of a scan.

use crate::document::Batch;
use crate::store::scan::Progress;
use std::pin::Pin;

/// Receives the batches of a scan. It may consume each batch in several steps.
pub trait BatchSink {
    /// Reserves memory before documents are read. `bytes` estimates the memory of the documents of
    /// the next batch. Returning false ends the scan like [`Progress::Enough`].
    fn admit(&mut self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Consumes a step of a batch. After [`Progress::Paused`] the sink gets the same batch again.
    fn take(&mut self, batch: &Batch) -> Progress;

    /// Receives the ids of those named EHRs that exist, before the repository reads segments. EHRs
    /// without documents are then in no batch. Returns false if the sink does not implement
    /// [`BatchSink::take_among`]; it then gets no segment.
    fn receive_named_ehrs(&mut self, ehr_ids: &mut dyn Iterator<Item = &str>) -> bool {
        let _ = ehr_ids;
        false
    }

    /// Consumes a step of a segment for a scan that names EHRs, like [`BatchSink::take`]. `ehrs`
    /// are the numbers in the segment of the named EHRs, ascending: a segment has no index of ids.
    fn take_among(&mut self, segment: &Batch, ehrs: &[u32]) -> Progress {
        let _ = (segment, ehrs);
        Progress::Enough
    }

    /// Discards all batches so far, because the scan sends them again with parts that were absent.
    /// Returns false if the sink cannot restart or needs no more. It then gets complete documents
    /// only.
    fn restart(&mut self) -> bool {
        false
    }

    /// Returns the ordinals of all documents of a union that the sink needs, for each EHR that has
    /// any; `None` if they are not known, or if they are more than `most`. The scan can then send
    /// these documents alone, whole EHRs in each batch, after [`BatchSink::restart`].
    fn needed_documents(&self, union: &Batch, most: usize) -> Option<Vec<Vec<u64>>> {
        let _ = (union, most);
        None
    }

    /// Remembers the state before a segment, which may be sent several times. Returns false if the
    /// sink cannot return to a state.
    fn savepoint(&mut self) -> bool {
        false
    }

    /// Returns to the remembered state: the segment is sent again, with parts that were absent.
    fn roll_back(&mut self) {}

    /// Receives the counts of what the scan has read, at its end. A repository in memory reads
    /// nothing.
    fn observe(&mut self, reads: &ScanReads) {
        let _ = reads;
    }

    /// Yields to other requests. A repository that can wait awaits the future after
    /// [`Progress::Paused`].
    fn pause(&self) -> Pause {
        Box::pin(std::future::ready(()))
    }
}

/// Counts of the data that a scan read from a database and a blob store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanReads {
    /// Segments whose documents were evaluated.
    pub segments: u64,
    /// Segments that could not be read, or whose parts take too much memory. Their rows were read.
    pub absent_segments: u64,
    /// Blobs that were read from the store; those of earlier queries are cached.
    pub blobs: u64,
    /// The bytes of these blobs.
    pub blob_bytes: u64,
    /// The memory of the parts of segments that are loaded, those of earlier queries included.
    pub part_bytes: u64,
    /// Pages of rows that were read.
    pub pages: u64,
    /// Rows of these pages: documents, and EHRs without any.
    pub rows: u64,
}

/// A future that resolves after other requests had their turn.
pub type Pause = Pin<Box<dyn Future<Output = ()>>>;

/// A closure consumes each batch in one step. It returns false to stop the scan.
impl<F: FnMut(&Batch) -> bool> BatchSink for F {
    fn take(&mut self, batch: &Batch) -> Progress {
        if self(batch) {
            Progress::More
        } else {
            Progress::Enough
        }
    }
}

/// The receiver of the batches of a scan.
pub type Sink<'a> = &'a mut dyn BatchSink;

/// Sends a batch to a sink, and yields between its steps. Returns false if the sink needs no more.
pub(crate) async fn send(sink: Sink<'_>, batch: &Batch) -> bool {
    send_among(sink, batch, None).await
}

/// Sends a batch like [`send`]: of a scan that names EHRs a segment, with the numbers of those that
/// it has.
pub(crate) async fn send_among(sink: Sink<'_>, batch: &Batch, ehrs: Option<&[u32]>) -> bool {
    loop {
        let progress = match ehrs {
            Some(ehrs) => sink.take_among(batch, ehrs),
            None => sink.take(batch),
        };
        match progress {
            Progress::Paused => sink.pause().await,
            Progress::More => return true,
            Progress::Enough => return false,
        }
    }
}
