//! Segments for queries whose rows join documents of one EHR.
//!
//! The documents of an EHR lie in many segments, and the newest ones in rows behind them. All are
//! united in one batch that lists the documents of each EHR. The union copies no column, so such a
//! query loads the parts that it reads, as any other.

use super::cache::TABLES;
use super::{CompletenessSink, SegmentScan, Segments};
use crate::document::{Batch, ObjectKind, UnionPart};
use crate::store::repository::StoreError;
use crate::store::scan::{Progress, Scan, Snapshot};
use crate::store::sink::{BatchSink, ScanReads, Sink};
use crate::store::sql::SqlRepository;
use crate::store::sql::scan::{GatherBounds, GatheredBatch};
use crate::store::sql::value::Sql;
use std::rc::Rc;

/// The maximum number of versions behind the segments that are united with them. With more, rows
/// are read.
const MAX_BEHIND: u64 = 16_384;

/// The maximum bytes of memory of the rows behind the segments.
const MAX_BYTES: usize = 32 << 20;

/// Steps after which a run with an absent part ends. Each loading doubles them, so that finding all
/// parts costs at most about as much as the answer.
const STEPS: u32 = 4;

/// The maximum number of times that all parts are dropped to load others. A join evaluates one side
/// after the other, so it needs fewer parts at once than in total.
const MAX_DROPS: u32 = 4;

/// Returns whether a scan joins documents of an EHR, and segments can serve it.
///
/// Derived objects ([`Scan::derived`]) are made from the texts of all versions of an EHR. They need
/// rows, because segments would make them for all EHRs at once.
pub(in crate::store::sql) fn is_joined(scan: &Scan) -> bool {
    let is_population = scan.ehrs.is_none() && !scan.unqueryable;
    is_population
        && scan.whole_ehrs
        && !scan.kinds.is_empty()
        && !scan.all_versions
        && !scan.derived
}

/// The maximum number of documents that are read as rows for a join whose parts need too much
/// memory. A row costs about 35 µs.
const MAX_NEEDED: usize = 65_536;

/// The outcome of sending a union.
enum Sent {
    /// All was sent, or the sink wants no more.
    All,
    /// The parts of the join need too much memory. The join needs only these documents, given as
    /// ordinals for each EHR.
    Needs(Vec<Vec<u64>>),
}

/// The rows behind the segments.
struct Behind {
    batch: Rc<Batch>,
    ehrs: Vec<u64>,
}

impl SegmentScan {
    /// Unites the segments with the rows behind them. The union has the EHRs with numbers up to
    /// `newest`; `None` if it cannot be made.
    fn union(&self, behind: &Behind, newest: u64) -> Option<Batch> {
        let segments = self.segments.iter().map(|opened| UnionPart {
            batch: Rc::clone(&opened.batch),
            ehrs: opened.cached.segment.ehrs(),
        });
        let behind = UnionPart {
            batch: Rc::clone(&behind.batch),
            ehrs: &behind.ehrs,
        };
        let parts: Vec<UnionPart<'_>> = segments.chain([behind]).collect();
        Batch::union(&parts, newest).ok()
    }
}

impl Segments {
    /// Sends the union of segments and rows, and loads the parts that the sink needs. `None` if a
    /// part cannot be read or needs too much memory; rows are read then.
    async fn send_union(
        &self,
        scan: &mut SegmentScan,
        (behind, newest): (&Behind, u64),
        sink: Sink<'_>,
    ) -> Option<Sent> {
        let mut is_join = false;
        for _ in 0..MAX_DROPS {
            let union = scan.union(behind, newest)?;
            if self.send_complete(scan, &union, sink).await? {
                return Some(Sent::All);
            }
            // Once the documents are known, only the parts of the join are loaded. If they do not
            // fit into memory alone, loading them again is of no use.
            let needed = sink.needed_documents(&union, MAX_NEEDED);
            if std::mem::replace(&mut is_join, needed.is_some()) {
                return needed.map(Sent::Needs);
            }
            // The union holds the parts, so it is dropped before they are.
            drop(union);
            self.drop_parts(scan);
        }
        None
    }

    /// Sends a union until no part was absent. Returns false if its parts take too much memory with
    /// those of earlier queries.
    async fn send_complete(
        &self,
        scan: &mut SegmentScan,
        union: &Batch,
        sink: Sink<'_>,
    ) -> Option<bool> {
        let mut steps = STEPS;
        loop {
            let mut wanted = scan.wanted();
            if wanted.is_empty() {
                if send_in_steps(sink, union, steps).await || !sink.restart() {
                    return Some(true);
                }
                steps = steps.saturating_mul(2);
                wanted = scan.wanted();
            }
            if !self.has_room(scan, &wanted) {
                return Some(false);
            }
            let segments = scan.len();
            self.load(scan, wanted).await;
            if scan.len() < segments {
                return None;
            }
        }
    }
}

/// Sends a batch. Ends after some steps if a part was absent. Returns whether no part was.
async fn send_in_steps(sink: Sink<'_>, batch: &Batch, most: u32) -> bool {
    let mut complete = CompletenessSink::of(sink);
    let mut steps = 0u32;
    while complete.take(batch) == Progress::Paused {
        steps = steps.saturating_add(1);
        if !complete.is_complete && steps >= most {
            return false;
        }
        complete.pause().await;
    }
    complete.is_complete
}

impl<S: Sql> SqlRepository<S> {
    /// Sends segments, and the rows behind them, to a query that joins documents of an EHR. Returns
    /// `None` if all was sent or the sink wants no more, and 0 if rows must be sent instead.
    pub(in crate::store::sql) async fn send_joined(
        &self,
        segments: &Segments,
        opened_segments: &mut SegmentScan,
        (scan, (state, reads)): (&Scan, (Snapshot, &mut ScanReads)),
        sink: Sink<'_>,
    ) -> Result<Option<u64>, StoreError> {
        let covered = opened_segments.covered(0).filter(|covered| *covered > 0);
        let near = covered.filter(|covered| state.version.saturating_sub(*covered) <= MAX_BEHIND);
        let Some(covered) = near else {
            opened_segments.segments.clear();
            return Ok(Some(0));
        };
        let bounds = GatherBounds {
            after: covered,
            until: state.version,
            newest: state.version,
        };
        let (wider, into) = (
            scan_behind(scan),
            (Batch::with_first_table(TABLES), MAX_BYTES),
        );
        let Some(behind) = self.gather(&wider, bounds, into, sink).await? else {
            return Ok(None);
        };
        reads.pages += behind.pages;
        reads.rows += behind.batch.len() as u64;
        let GatheredBatch {
            batch, ehrs, end, ..
        } = behind;
        let behind = Behind {
            batch: Rc::new(batch),
            ehrs,
        };
        if end >= state.version || covered >= state.version {
            let sent = segments
                .send_union(opened_segments, (&behind, state.ehr), sink)
                .await;
            match sent {
                Some(Sent::All) => return Ok(None),
                Some(Sent::Needs(documents)) if sink.restart() => {
                    segments.drop_parts(opened_segments);
                    let scan = (scan, state);
                    self.send_listed(scan, &documents, reads, sink).await?;
                    return Ok(None);
                }
                Some(Sent::Needs(_)) => return Ok(None),
                None => {}
            }
        }
        opened_segments.segments.clear();
        Ok(sink.restart().then_some(0))
    }
}

/// Returns the scan of the rows behind the segments: document by document. Each new EHR has an
/// EHR_STATUS there, so that an EHR without other documents is found.
fn scan_behind(scan: &Scan) -> Scan {
    let mut kinds = scan.kinds.clone();
    if scan.empty_ehrs && !kinds.contains(&ObjectKind::EhrStatus) {
        kinds.push(ObjectKind::EhrStatus);
    }
    Scan {
        kinds,
        whole_ehrs: false,
        empty_ehrs: false,
        snapshot: None,
        ..scan.clone()
    }
}
