//! Segments of a database: copies of its versions as columns, in a blob store.
//!
//! The table `segment` is the manifest. A population query reads the segments that follow one
//! another from the first version on, and the rows of all later versions. The rows are the source
//! of truth: if a segment is missing, damaged or written by another release, its rows are read.

mod cache;
mod cached_segment;
mod compaction;
mod divided;
mod joined;
mod load;
mod manifest;
mod named;
mod nightly;
mod overlay;
mod past;

use super::SqlRepository;
use super::value::{Fields, Row, Sql, Statement};
use crate::document::{Batch, absent_reads};
use crate::store::repository::{ScanPart, StoreError};
use crate::store::scan::{Progress, Scan, Snapshot};
use crate::store::sink::{BatchSink, Pause, ScanReads, Sink, send_among};
use cache::SegmentCache;
use cached_segment::CachedSegment;
pub use compaction::{Compaction, CompactionHost};
use futures_util::stream::{self, StreamExt};
pub(super) use joined::is_joined;
use manifest::ManifestEntry;
pub(super) use named::NamedEhrs;
pub(super) use overlay::KnownChanges;
use overlay::NewChanges;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;

/// Bytes of loaded parts beyond which the parts of all segments are dropped before a query.
const MAX_KEPT: usize = 41_943_040;

/// Bytes of parts that one query may load. A query that needs more reads rows.
const MAX_LOADED: usize = 67_108_864;

/// Failed reads of a segment after which it is written again. A store may not show a new blob to
/// all places for a minute, so one failure is not enough.
const MAX_MISSES: u32 = 64;

/// Blobs that are read concurrently.
const BLOBS_AT_ONCE: usize = 6;

/// The minimum number of versions of a segment: fewer are one page of rows.
const MIN_VERSIONS: u64 = 512;
/// The maximum number of versions of a segment: more would not fit into the memory of a worker
/// while they are encoded.
const MAX_VERSIONS: u64 = 32_768;

/// The answer of a blob store. The store has logged an error; its text is for those who wait for a
/// compaction. A scan reads the rows instead.
pub type BlobFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + 'a>>;

/// A store of immutable blobs by key: KV, files, memory. It may be late or empty.
pub trait Blobs {
    /// Reads a blob; `None` if the store does not have it, or does not show it yet.
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>>;

    /// Stores a blob. A key is never stored twice.
    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()>;

    /// Deletes a blob. Deleting an absent blob succeeds.
    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()>;
}

/// The rows of which segments are copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CopiedRows {
    /// The versions of objects, by their ids.
    Versions,
    /// EHRs without documents, by their ids.
    Ehrs,
}

/// The segments of one database, with caches that outlive requests.
pub struct Segments {
    blobs: Box<dyn Blobs>,
    versions: RefCell<SegmentCache>,
    ehrs: RefCell<SegmentCache>,
    is_due: Cell<bool>,
    /// The number of failed reads of each segment, by its id.
    misses: RefCell<BTreeMap<String, u32>>,
    /// Versions that were written since the last compaction.
    written: Cell<u64>,
    /// The minimum and the maximum number of versions of a segment. Ids without a version count
    /// too.
    sizes: (u64, u64),
    /// The minimum number of documents of a part of a divided scan.
    divided: u64,
    /// The maximum bytes of parts that stay loaded, and of those that one query may load.
    memory: (usize, usize),
    /// The maximum number of ids that one statement lists.
    listed: u64,
    /// The minimum number of EHRs of a scan with named EHRs that reads segments.
    named: usize,
}

/// The live segments of versions, in order.
const MANIFEST: &str =
    "SELECT first, last, state, versions, blob, memory FROM segment ORDER BY first";
/// The live segments of EHRs, in order. Only `is_queryable` of an EHR changes, and an overlay has
/// these changes. So the segments are valid in every state, and `state` is a number above all.
const EHR_MANIFEST: &str = "SELECT first, last, 4503599627370496 AS state, ehrs, blob, memory FROM ehr_segment ORDER BY first";
/// The first `?3` versions that were superseded by a version after `?1` and up to `?2`, in the
/// order of the superseding versions. If `?1` is 0, those superseded after the oldest state of a
/// segment. Versions in no segment are among them, because a segment with them may become live
/// later.
const SUPERSEDED: &str = "SELECT json_group_array(id) AS superseded, max(successor) AS last, count(*) AS found
    FROM (SELECT id, successor FROM version
      WHERE successor > CASE ?1 WHEN 0 THEN (SELECT coalesce(min(state), 9007199254740991) FROM segment) ELSE ?1 END
        AND successor <= ?2 ORDER BY successor LIMIT ?3)";
/// Unqueryable EHRs with ids after `?1`, and EHRs whose `is_queryable` changed after the version
/// `?2`. If the number of physical deletions is not `?3`, all unqueryable EHRs instead of those
/// after `?1`. Returns the first `?4` EHRs with ids above `?5`, as queryable or not in the state
/// with the newest version `?6`.
const UNQUERYABLE: &str = "SELECT json_group_array(id) FILTER (WHERE NOT is_queryable) AS unqueryable,
      json_group_array(id) FILTER (WHERE is_queryable) AS queryable, max(id) AS last, count(*) AS found
    FROM (SELECT id, coalesce((SELECT q.is_queryable FROM queryable_before q WHERE q.ehr = id AND q.version > ?6
        ORDER BY q.version LIMIT 1), is_queryable) AS is_queryable
      FROM (SELECT id, is_queryable FROM ehr
        WHERE NOT is_queryable AND id > CASE (SELECT coalesce(max(id), 0) FROM removal) WHEN ?3 THEN ?1 ELSE 0 END
      UNION SELECT e.id, e.is_queryable FROM queryable_before q CROSS JOIN ehr e ON e.id = q.ehr WHERE q.version > ?2)
      WHERE id > ?5 ORDER BY id LIMIT ?4)";

/// The maximum number of ids that one statement lists: a value of D1 has at most 2 MB.
const MAX_LISTED: u64 = 50_000;
/// Above every id.
const NO_BOUND: u64 = 1 << 52;

/// The segments that a scan reads, as they are in its state.
pub(super) struct SegmentScan {
    source: CopiedRows,
    segments: Vec<Opened>,
    /// The number of segments in the manifest.
    listed: usize,
    /// The blobs that were read, and their bytes.
    blobs: (u64, u64),
    /// Whether loaded parts stay for later queries.
    keeps: bool,
}

/// A segment with its batch in the state of a scan.
struct Opened {
    cached: Rc<CachedSegment>,
    batch: Rc<Batch>,
    /// The numbers in the batch of the EHRs that the scan names, ascending; `None` if it names
    /// none.
    ehrs: Option<Vec<u32>>,
}

impl Opened {
    /// Returns the segment in the same state without any part, for one query alone; `None` if it is
    /// damaged.
    fn without_parts(&self) -> Option<Opened> {
        let batch = self.cached.segment.without_parts(&self.batch).ok()?;
        Some(Opened {
            cached: Rc::clone(&self.cached),
            batch: Rc::new(batch),
            ehrs: self.ehrs.clone(),
        })
    }

    /// Sends the segment. Returns whether the sink wants more.
    async fn send(&self, sink: Sink<'_>) -> bool {
        match self.ehrs.as_deref() {
            // No document of the segment belongs to a named EHR.
            Some([]) => true,
            ehrs => send_among(sink, &self.batch, ehrs).await,
        }
    }
}

impl CopiedRows {
    /// Returns the source of the segments that serve a scan; `None` if only rows serve it, such as
    /// for a scan of fewer than `named` EHRs.
    fn of(scan: &Scan, named: usize) -> Option<CopiedRows> {
        if let Some(ehrs) = &scan.ehrs {
            return named::is_served(scan, ehrs.len(), named).then_some(CopiedRows::Versions);
        }
        if scan.unqueryable {
            return None;
        }
        match (scan.kinds.is_empty(), scan.empty_ehrs) {
            // Without a kind of document the scan reads EHRs alone.
            (true, true) => Some(CopiedRows::Ehrs),
            (_, false) if !scan.whole_ehrs => Some(CopiedRows::Versions),
            _ => is_joined(scan).then_some(CopiedRows::Versions),
        }
    }

    /// Returns the statement that lists the live segments.
    fn manifest(self) -> &'static str {
        match self {
            CopiedRows::Versions => MANIFEST,
            CopiedRows::Ehrs => EHR_MANIFEST,
        }
    }

    /// Returns the newest id of the rows of this source in a state.
    fn newest(self, state: Snapshot) -> u64 {
        match self {
            CopiedRows::Versions => state.version,
            CopiedRows::Ehrs => state.ehr,
        }
    }
}

impl SegmentScan {
    /// Returns the number of segments.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns the first and the last id of a segment.
    pub fn range(&self, number: usize) -> Option<(u64, u64)> {
        let cached = &self.segments.get(number)?.cached;
        Some((cached.first, cached.last))
    }

    /// Returns the last id of the segments if they hold all ids behind `after` up to it; `None` if
    /// there is a gap.
    pub fn covered(&self, after: u64) -> Option<u64> {
        let mut end = after;
        for Opened { cached, .. } in &self.segments {
            // A gap ends the range, because its versions are rows only.
            if cached.first != end + 1 {
                return None;
            }
            end = cached.last;
        }
        Some(end)
    }

    /// Returns the number of ids up to `newest` that no segment holds.
    fn missing(&self, newest: u64) -> u64 {
        let length = |opened: &Opened| opened.cached.last + 1 - opened.cached.first;
        newest.saturating_sub(self.segments.iter().map(length).sum())
    }

    /// Adds the counts of segments and bytes that were read.
    pub fn count(&self, reads: &mut ScanReads) {
        let read = self.segments.len();
        reads.segments = read as u64;
        reads.absent_segments = self.listed.saturating_sub(read) as u64;
        (reads.blobs, reads.blob_bytes) = self.blobs;
        reads.part_bytes = self.loaded_bytes() as u64;
    }

    fn loaded_bytes(&self) -> usize {
        let bytes = |opened: &Opened| opened.batch.late_bytes();
        self.segments.iter().map(bytes).sum()
    }
}

impl Segments {
    /// Segments in a store, of which nothing is read yet.
    pub fn new(blobs: Box<dyn Blobs>) -> Segments {
        Segments {
            blobs,
            versions: RefCell::default(),
            ehrs: RefCell::default(),
            is_due: Cell::new(false),
            misses: RefCell::default(),
            written: Cell::new(0),
            sizes: (MIN_VERSIONS, MAX_VERSIONS),
            divided: divided::FULL_SEGMENTS * MAX_VERSIONS,
            memory: (MAX_KEPT, MAX_LOADED),
            listed: MAX_LISTED,
            named: named::MIN_EHRS,
        }
    }

    /// Sets the maximum number of ids that one statement lists.
    #[must_use]
    pub fn with_listed(self, listed: u64) -> Segments {
        Segments {
            listed: listed.max(1),
            ..self
        }
    }

    /// Sets the minimum number of EHRs that a scan names if it reads segments.
    #[must_use]
    pub fn with_named(self, named: usize) -> Segments {
        Segments { named, ..self }
    }

    /// Sets the maximum bytes of parts between queries, and of one query.
    #[must_use]
    pub fn with_memory(self, kept: usize, loaded: usize) -> Segments {
        Segments {
            memory: (kept, loaded),
            ..self
        }
    }

    /// Sets the minimum and the maximum number of versions of a segment. A part of a divided scan
    /// then has one full segment at least.
    #[must_use]
    pub fn with_sizes(self, least: u64, most: u64) -> Segments {
        Segments {
            sizes: (least.max(1), most.max(1)),
            divided: most.max(1),
            ..self
        }
    }

    /// Returns whether a compaction pays: many versions were written, or a query had to read many
    /// rows in no segment.
    pub fn is_due(&self) -> bool {
        self.is_due.get() || self.written.get() >= self.sizes.0
    }

    /// Returns whether enough versions for a segment of the largest size were written since the
    /// last compaction.
    pub fn is_overdue(&self) -> bool {
        self.written.get() >= self.sizes.1
    }

    /// Records that versions were written to a segment.
    fn count_compacted(&self, versions: u64) {
        self.written
            .set(self.written.get().saturating_sub(versions));
    }

    /// Counts versions that were written.
    pub(super) fn count_written(&self, versions: usize) {
        let written = self.written.get().saturating_add(versions as u64);
        self.written.set(written);
    }

    /// Records that there is nothing to write.
    fn rest(&self) {
        self.is_due.set(false);
        self.written.set(0);
    }

    /// Returns the last id that the segments of the last query held, if they held all ids up to it.
    pub(super) fn covered_to(&self, source: CopiedRows) -> Option<u64> {
        self.cache(source).borrow().covered_to
    }

    fn cache(&self, source: CopiedRows) -> &RefCell<SegmentCache> {
        match source {
            CopiedRows::Versions => &self.versions,
            CopiedRows::Ehrs => &self.ehrs,
        }
    }

    /// Returns the statements whose rows [`SqlRepository::open_segments`] reads, and the known
    /// changes to which their rows add later ones.
    ///
    /// `breaks` is the number of times that the past of the database was another one.
    pub(super) fn statements(
        &self,
        source: CopiedRows,
        breaks: u64,
    ) -> ([Statement; 3], KnownChanges) {
        let mut cache = self.cache(source).borrow_mut();
        cache.follow(breaks);
        let known = cache.known();
        let seen = match source {
            CopiedRows::Versions => known.state.map_or(0, |state| state.version),
            CopiedRows::Ehrs => NO_BOUND,
        };
        let statements = [
            Statement::new(source.manifest()),
            self.superseded(seen, NO_BOUND),
            self.unqueryable(known.state, None, 0),
        ];
        (statements, known)
    }

    /// Returns the statement that lists unqueryable EHRs with ids behind `after`, as far as the
    /// `known` state does not have them. They are those of `state`; without a state, those of the
    /// present.
    fn unqueryable(
        &self,
        known: Option<Snapshot>,
        state: Option<Snapshot>,
        after: u64,
    ) -> Statement {
        let until = state.map_or(NO_BOUND, |state| state.version);
        // Without a known state, all unqueryable EHRs are listed, because no database has
        // `NO_BOUND` deletions. EHRs that became queryable after the state of the scan are found by
        // their changes after `until`.
        let (ehr, version, removals) = known.map_or((0, until, NO_BOUND), |state| {
            (state.ehr, state.version, state.removals)
        });
        let bounds = Statement::new(UNQUERYABLE).bind(ehr).bind(version);
        let bounds = bounds.bind(removals).bind(self.listed);
        bounds.bind(after).bind(until)
    }

    /// Returns the statement that lists versions superseded after a version and up to another one.
    fn superseded(&self, after: u64, until: u64) -> Statement {
        let bounds = Statement::new(SUPERSEDED).bind(after).bind(until);
        bounds.bind(self.listed)
    }

    /// Reads the heads of the segments. Those that cannot be read are left out.
    async fn open(
        &self,
        (source, part): (CopiedRows, ScanPart),
        state: Snapshot,
        manifest: Vec<ManifestEntry>,
        (known, changes): (KnownChanges, NewChanges),
    ) -> SegmentScan {
        let cache = self.cache(source);
        let overlay = cache.borrow_mut().renew(known, state, &manifest, changes);
        // The overlay lacks changes of segments that are older than it. Their rows are read
        // instead.
        let is_wanted =
            |entry: &&ManifestEntry| overlay.knows(entry) && part.includes(entry.first, entry.last);
        let known: Vec<&ManifestEntry> = manifest.iter().filter(is_wanted).collect();
        let blobs = BlobReads::default();
        let heads = stream::iter(known).map(|entry| self.head(cache, entry, &blobs));
        let found: Vec<_> = heads.buffered(BLOBS_AT_ONCE).collect().await;
        cache.borrow().make_room(self.memory.0);
        let opened = found.into_iter().filter_map(|cached| {
            let cached = cached?;
            // Another query may have read a newer state while this one waited for the heads.
            let keeps = cache.borrow().is_newest(&overlay);
            let batch = self.count_unreadable(&cached.id, cached.batch(&overlay, keeps).ok())?;
            Some(Opened {
                cached,
                batch,
                ehrs: None,
            })
        });
        let scan = SegmentScan {
            source,
            segments: opened.collect(),
            listed: manifest.len(),
            blobs: blobs.get(),
            keeps: true,
        };
        if part == ScanPart::ALL {
            cache.borrow_mut().covered_to = scan.covered(0).filter(|last| *last > 0);
            let rows = scan.missing(source.newest(state));
            self.is_due.set(self.is_due.get() || rows >= self.sizes.0);
        }
        scan
    }

    /// Returns a segment with its head, from the cache or the store; `None` where it cannot be
    /// read.
    async fn head(
        &self,
        cache: &RefCell<SegmentCache>,
        entry: &ManifestEntry,
        reads: &BlobReads,
    ) -> Option<Rc<CachedSegment>> {
        if let Some(cached) = cache.borrow().segment(&entry.id) {
            return Some(cached);
        }
        let read = self.blobs.get(&head_key(&entry.id)).await;
        let head = self.count_absent(&entry.id, read)?;
        count_blob(reads, &head);
        let cached = cache.borrow_mut().add(entry, &head);
        self.count_unreadable(&entry.id, cached)
    }

    /// Returns the bytes of a blob of a segment, and counts an absent one: the store may show it
    /// later.
    fn count_absent(&self, id: &str, read: Result<Option<Vec<u8>>, String>) -> Option<Vec<u8>> {
        // A failed read says nothing about the blob, and the store has logged it.
        let Ok(bytes) = read else { return None };
        if bytes.is_none() {
            self.miss(id, 1);
        }
        bytes
    }

    /// Returns the content of a blob of a segment. Records a segment without readable content as
    /// lost: it is damaged, or of another release, and stays so.
    fn count_unreadable<T>(&self, id: &str, content: Option<T>) -> Option<T> {
        if content.is_none() {
            // Another read would find the same bytes, so this one counts as the last.
            self.miss(id, MAX_MISSES);
        }
        content
    }

    /// Counts failed reads of a segment. A compaction is due once the segment counts as lost.
    fn miss(&self, id: &str, times: u32) {
        let mut misses = self.misses.borrow_mut();
        let misses = misses.entry(id.to_owned()).or_default();
        *misses = misses.saturating_add(times);
        if *misses >= MAX_MISSES {
            self.is_due.set(true);
        }
    }

    /// Returns the ids of segments that cannot be read.
    pub fn lost(&self) -> Vec<String> {
        let misses = self.misses.borrow();
        let lost = misses.iter().filter(|(_, misses)| **misses >= MAX_MISSES);
        lost.map(|(id, _)| id.clone()).collect()
    }

    /// Sends the segments to a sink, and loads the parts that it needs. Returns whether the sink
    /// wants more. On return the sink has read no absent part.
    pub(super) async fn send(&self, scan: &mut SegmentScan, sink: Sink<'_>) -> bool {
        let mut is_alone = false;
        loop {
            let mut complete = CompletenessSink::of(sink);
            let mut wants_more = true;
            for opened in &scan.segments {
                wants_more = opened.send(&mut complete).await;
                if !wants_more {
                    break;
                }
            }
            if complete.is_complete {
                return wants_more;
            }
            // Other queries of the same batch may have loaded all of them meanwhile.
            let wanted = scan.wanted();
            if self.has_room(scan, &wanted) {
                self.load(scan, wanted).await;
            } else {
                // The first attempt drops the parts that earlier queries loaded. The second one
                // sends the segments one by one. If that fails too, rows are read.
                self.drop_parts(scan);
                if std::mem::replace(&mut is_alone, true) {
                    match self.send_in_turn(scan, sink).await {
                        Some(wants_more) => return wants_more,
                        None => scan.segments.clear(),
                    }
                }
            }
            if !sink.restart() {
                return false;
            }
        }
    }

    /// Sends the segments one after the other. Each has its own parts in memory and no others, so
    /// this takes the memory of one segment, and reads the blobs again for each query. Returns
    /// whether the sink wants more; `None` if a segment cannot be sent in this way.
    async fn send_in_turn(&self, scan: &mut SegmentScan, sink: Sink<'_>) -> Option<bool> {
        if !sink.restart() {
            return Some(false);
        }
        for number in 0..scan.segments.len() {
            let opened = scan.segments.get(number)?;
            let mut alone = SegmentScan {
                source: scan.source,
                segments: vec![opened.without_parts()?],
                listed: 1,
                blobs: (0, 0),
                keeps: false,
            };
            let sent = self.send_alone(&mut alone, sink).await;
            scan.blobs.0 += alone.blobs.0;
            scan.blobs.1 += alone.blobs.1;
            if !sent? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Sends a single segment, and loads the parts that the sink needs. After each loading, the
    /// sink returns to its state before the segment. `None` if it cannot, or if its parts need too
    /// much memory.
    async fn send_alone(&self, alone: &mut SegmentScan, sink: Sink<'_>) -> Option<bool> {
        if !sink.savepoint() {
            return None;
        }
        loop {
            let mut complete = CompletenessSink::of(sink);
            let wants_more = alone.segments.first()?.send(&mut complete).await;
            if complete.is_complete {
                return Some(wants_more);
            }
            let wanted = alone.wanted();
            if !self.has_room(alone, &wanted) {
                return None;
            }
            self.load(alone, wanted).await;
            sink.roll_back();
        }
    }

    /// Sends one segment, all of whose needed parts were loaded by [`Segments::send`]. Returns
    /// whether the sink wants more; `None` if it read a part that is absent.
    pub(super) async fn send_one(
        &self,
        scan: &SegmentScan,
        number: usize,
        sink: Sink<'_>,
    ) -> Option<bool> {
        let mut complete = CompletenessSink::of(sink);
        let wants_more = scan.segments.get(number)?.send(&mut complete).await;
        complete.is_complete.then_some(wants_more)
    }

    /// Drops the parts of segments, which earlier queries may have loaded. A segment that cannot be
    /// read without them is left out.
    fn drop_parts(&self, scan: &mut SegmentScan) {
        let cache = self.cache(scan.source).borrow();
        scan.segments.retain_mut(|opened| {
            let bare = opened.cached.without_parts(&opened.batch);
            let Ok(bare) = bare else { return false };
            cache.forget(&std::mem::replace(&mut opened.batch, bare));
            true
        });
    }
}

/// The number of blobs that a scan has read, and their bytes.
type BlobReads = Cell<(u64, u64)>;

fn count_blob(reads: &BlobReads, blob: &[u8]) {
    let (blobs, bytes) = reads.get();
    reads.set((blobs + 1, bytes + blob.len() as u64));
}

/// A sink that records whether all parts were loaded that the inner sink has read.
struct CompletenessSink<'s> {
    sink: Sink<'s>,
    is_complete: bool,
}

impl CompletenessSink<'_> {
    fn of(sink: Sink<'_>) -> CompletenessSink<'_> {
        CompletenessSink {
            sink,
            is_complete: true,
        }
    }
}

impl BatchSink for CompletenessSink<'_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        let before = absent_reads();
        let progress = self.sink.take(batch);
        self.is_complete &= absent_reads() == before;
        progress
    }

    fn take_among(&mut self, segment: &Batch, ehrs: &[u32]) -> Progress {
        let before = absent_reads();
        let progress = self.sink.take_among(segment, ehrs);
        self.is_complete &= absent_reads() == before;
        progress
    }

    fn pause(&self) -> Pause {
        self.sink.pause()
    }
}

/// Returns the key of the blob with the head of a segment.
fn head_key(id: &str) -> String {
    format!("segment/{id}/head")
}

/// Returns the key of a value of a segment.
fn value_key(id: &str, number: u32) -> String {
    format!("segment/{id}/{number}")
}

impl<S: Sql> SqlRepository<S> {
    /// Reads populations from segments in a blob store.
    pub fn with_segments(mut self, segments: Rc<Segments>) -> SqlRepository<S> {
        self.segments = Some(segments);
        self
    }

    /// Opens the segments of a state, by the rows of [`Segments::statements`].
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) async fn open_segments(
        &self,
        segments: &Segments,
        (source, part): (CopiedRows, ScanPart),
        state: Snapshot,
        ([manifest, superseded, unqueryable], known): ([Vec<Row>; 3], KnownChanges),
    ) -> Result<SegmentScan, StoreError> {
        let manifest = ManifestEntry::all(manifest)?;
        // The first page has no upper bound, as its batch reads the newest state. Later pages are
        // read in later transactions and must end with this state.
        let next = |last| segments.unqueryable(known.state, Some(state), last);
        let lists = self.read_lists(segments.listed, unqueryable, next);
        let [unqueryable, queryable] = lists.await?;
        let mut changes = NewChanges {
            unqueryable,
            queryable,
            ..NewChanges::default()
        };
        if source == CopiedRows::Versions {
            let next = |last| segments.superseded(last, state.version);
            let list = self.read_lists(segments.listed, superseded, next);
            [changes.superseded] = list.await?;
        }
        Ok(segments
            .open((source, part), state, manifest, (known, changes))
            .await)
    }

    /// Reads the remaining pages of lists of ids. `rows` has the first page. The row of a page has
    /// the lists, the id behind which the next page begins, and the number of ids that were found.
    async fn read_lists<const LISTS: usize>(
        &self,
        listed: u64,
        mut rows: Vec<Row>,
        next: impl Fn(u64) -> Statement,
    ) -> Result<[Vec<u64>; LISTS], StoreError> {
        let mut lists = [const { Vec::new() }; LISTS];
        loop {
            let mut fields = Fields::of_only(rows)?;
            for list in &mut lists {
                list.extend(fields.numbers()?);
            }
            // The last id is NULL for an empty page.
            let (last, found) = (fields.optional_number()?, fields.number()?);
            let Some(last) = last.filter(|_| found >= listed) else {
                return Ok(lists);
            };
            rows = self.rows(next(last)).await?;
        }
    }

    /// Returns the segments that may serve a scan, and their source. `None` if the sink cannot
    /// restart.
    pub(super) fn segments_for(
        &self,
        scan: &Scan,
        sink: Sink<'_>,
    ) -> Option<(Rc<Segments>, CopiedRows)> {
        let segments = self.segments.as_ref()?;
        let source = CopiedRows::of(scan, segments.named)?;
        sink.restart().then(|| (Rc::clone(segments), source))
    }
}
