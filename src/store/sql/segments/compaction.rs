//! Compaction: writing segments of rows that no segment holds.
//!
//! A compaction reads the rows after the first segments that follow one another, and stores them as
//! one segment. It may be stopped anywhere: the blobs of a segment are listed as garbage before
//! they are stored, and are taken off that list in the transaction that makes the segment live. Of
//! two concurrent compactions of the same rows, one makes its segment live. A deletion during a
//! compaction makes the segment void.

use super::{CopiedRows, Segments, head_key, value_key};
use crate::document::{Batch, ObjectKind};
use crate::store::repository::{BatchSink, Pause, StoreError};
use crate::store::scan::{Progress, Scan, Snapshot};
use crate::store::sql::SqlRepository;
use crate::store::sql::scan::{GatherBounds, GatheredBatch, NEWEST, newest_of};
use crate::store::sql::segments::manifest::ManifestEntry;
use crate::store::sql::value::{Fields, Sql, Statement, unexpected};

/// Maximum bytes of memory while a segment is encoded, estimated. The segment then ends early.
const MAX_BYTES: usize = 40 << 20;

/// The number of segments of about one size that are merged.
const FACTOR: usize = 8;

/// Milliseconds within which a segment must be written. Later, its blobs count as garbage.
const LEASE: u64 = 600_000;

/// The maximum number of segments whose blobs one collection deletes.
const MAX_COLLECTED: u64 = 100;

const BEGIN: &str = "INSERT INTO segment_garbage VALUES (?1, ?2, ?3)";
/// `?1` segment id, `?2` first, `?3` last, `?4` state, `?5` rows, `?6` values, `?7` removals, `?8`
/// bytes, `?9` memory.
/// Nothing is done if the segment is not listed any more, if something was removed meanwhile, or if
/// a live segment lies across an end of the new one.
macro_rules! if_publishable {
    ($table:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM segment_garbage WHERE blob = ?1)
           AND NOT EXISTS (SELECT 1 FROM ",
            $table,
            " s WHERE s.first <= ?3 AND s.last >= ?2 AND (s.first < ?2 OR s.last > ?3))
           AND (SELECT coalesce(max(id), 0) FROM removal) = ?7"
        )
    };
}

macro_rules! replace {
    ($table:literal, $state:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE first >= ?2 AND last <= ?3 AND ",
            $state,
            " <= ?4 AND ?5 >= 0 AND ?6 >= 0 AND ?8 >= 0 AND ?9 >= 0 AND ",
            if_publishable!($table)
        )
    };
}

macro_rules! publish {
    ($table:literal, $columns:literal, $values:literal) => {
        concat!(
            "INSERT INTO ",
            $table,
            " (first, last, blob, files, bytes, memory, ",
            $columns,
            ") SELECT ?2, ?3, ?1, ?6, ?8, ?9, ",
            $values,
            " WHERE ?4 >= 0 AND NOT EXISTS (SELECT 1 FROM ",
            $table,
            " WHERE first <= ?3 AND last >= ?2) AND ",
            if_publishable!($table),
            " RETURNING id"
        )
    };
}

impl CopiedRows {
    /// Returns the statement that removes the segments that a new one replaces.
    fn replace(self) -> &'static str {
        match self {
            CopiedRows::Versions => replace!("segment", "state"),
            CopiedRows::Ehrs => replace!("ehr_segment", "0"),
        }
    }

    /// Returns the statement that makes a segment live.
    fn publish(self) -> &'static str {
        match self {
            CopiedRows::Versions => publish!("segment", "state, versions", "?4, ?5"),
            CopiedRows::Ehrs => publish!("ehr_segment", "ehrs", "?5"),
        }
    }

    /// Returns the scan of all rows that a segment of this source holds.
    fn everything(self) -> Scan {
        let kinds = match self {
            CopiedRows::Versions => vec![
                ObjectKind::Composition,
                ObjectKind::EhrStatus,
                ObjectKind::Folder,
            ],
            CopiedRows::Ehrs => Vec::new(),
        };
        Scan {
            ehrs: None,
            kinds,
            all_versions: true,
            whole_ehrs: false,
            derived: false,
            empty_ehrs: self == CopiedRows::Ehrs,
            unqueryable: true,
            archetypes: Vec::new(),
            snapshot: None,
        }
    }
}

/// The number of versions behind the last segment. Ids without a version count too.
const WAITING: &str = "SELECT (SELECT coalesce(max(id), 0) FROM version) - (SELECT coalesce(max(last), 0) FROM segment) AS waiting";
const END: &str = "DELETE FROM segment_garbage WHERE blob = ?1
    AND (EXISTS (SELECT 1 FROM segment WHERE blob = ?1) OR EXISTS (SELECT 1 FROM ehr_segment WHERE blob = ?1))";
const GARBAGE: &str =
    "SELECT blob, files FROM segment_garbage WHERE after <= ?1 ORDER BY after LIMIT ?2";
const DROP: [&str; 2] = [
    "DELETE FROM segment WHERE blob = ?1",
    "DELETE FROM ehr_segment WHERE blob = ?1",
];
const COLLECT: &str = "DELETE FROM segment_garbage WHERE blob = ?1";
const ABANDON: &str = "UPDATE segment_garbage SET after = 0 WHERE blob = ?1";

/// The outcome of a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compaction {
    /// There are too few rows for a segment.
    Nothing,
    /// A segment was written; there may be rows for more.
    Written,
    /// Another compaction or a deletion has changed the rows or segments meanwhile.
    Lost,
}

/// The ids of the rows of a segment that is to be written.
#[derive(Debug, PartialEq)]
pub(super) struct Range {
    pub first: u64,
    pub last: u64,
}

impl Range {
    /// Returns the next range to be written: rows that no segment holds, else segments to be
    /// merged.
    fn of(manifest: &[ManifestEntry], newest: u64, sizes: (u64, u64)) -> Option<Range> {
        Range::unwritten(manifest, newest, sizes).or_else(|| Range::merged(manifest, sizes))
    }

    /// Returns the first rows that no segment holds, if they are enough.
    fn unwritten(
        manifest: &[ManifestEntry],
        newest: u64,
        (least, most): (u64, u64),
    ) -> Option<Range> {
        let (mut end, mut gap_end) = (0, newest);
        for entry in manifest {
            // A segment that was lost or removed leaves a gap.
            if entry.first > end + 1 {
                gap_end = entry.first - 1;
                break;
            }
            end = entry.last;
        }
        let (first, most) = (end + 1, end + most);
        // A gap is filled whatever its size: until then, the ids behind it are not covered without
        // gaps, which costs queries time.
        let is_gap = gap_end < newest;
        (gap_end >= first && (is_gap || gap_end - end >= least)).then_some(Range {
            first,
            last: gap_end.min(most),
        })
    }

    /// Returns the range of [`FACTOR`] segments of about one size that follow one another, or of as
    /// many as make a large one. There are never many small segments, and each version is rewritten
    /// a few times only.
    fn merged(manifest: &[ManifestEntry], (least, most): (u64, u64)) -> Option<Range> {
        let mut tier = least;
        while tier < most {
            // Only segments with fewer versions take part in a tier, so that a large segment is not
            // written again for a few small ones.
            tier = tier.saturating_mul(FACTOR as u64).min(most);
            let range = (0..manifest.len()).find_map(|at| {
                let run = run_of(manifest.get(at..).unwrap_or_default(), tier, most);
                let (first, last) = (run.first()?.first, run.last()?.last);
                let memory: u64 = run.iter().map(|segment| segment.memory).sum();
                // Fewer than FACTOR segments are merged if they fill three quarters of a limit,
                // because few further ones would fit.
                let fills = last + 1 - first > most / 4 * 3 || memory > MAX_BYTES as u64 / 4 * 3;
                let is_large = run.len() > 1 && fills;
                (run.len() >= FACTOR || is_large).then_some(Range { first, last })
            });
            if range.is_some() {
                return range;
            }
        }
        None
    }
}

/// Returns the first segments that follow one another, have fewer versions than `tier` each, and no
/// more than `most` together.
fn run_of(manifest: &[ManifestEntry], tier: u64, most: u64) -> &[ManifestEntry] {
    let (mut count, mut total, mut memory) = (0, 0, 0);
    let mut end = None;
    for segment in manifest {
        let versions = segment.last + 1 - segment.first;
        let follows = end.is_none_or(|end| segment.first == end + 1);
        (total, memory) = (total + versions, memory + segment.memory);
        if !follows
            || versions >= tier
            || total > most
            || memory > MAX_BYTES as u64
            || count == FACTOR
        {
            break;
        }
        (count, end) = (count + 1, Some(segment.last));
    }
    manifest.get(..count).unwrap_or_default()
}

/// The rows of a segment that is to be written.
pub(super) struct SegmentRows {
    pub source: CopiedRows,
    pub range: Range,
    /// The state of which the segment is a copy.
    pub state: Snapshot,
}

/// The sizes of a segment, for the manifest.
struct SegmentSizes {
    /// The last id of its rows.
    end: u64,
    rows: u64,
    /// The number of its values.
    values: u64,
    bytes: u64,
    /// The bytes of memory that writing it took.
    memory: u64,
}

/// A sink that only passes the pauses of the host: the documents are gathered into a batch, and not
/// evaluated.
struct GatheringSink<'p> {
    pause: &'p dyn Fn() -> Pause,
}

impl BatchSink for GatheringSink<'_> {
    fn take(&mut self, _: &Batch) -> Progress {
        Progress::More
    }

    fn pause(&self) -> Pause {
        (self.pause)()
    }
}

/// The host of a compaction.
pub struct CompactionHost<'h> {
    /// Creates the id of a new segment, which the keys of its blobs have.
    pub blob: &'h dyn Fn() -> String,
    /// The time in milliseconds since 1970.
    pub now: &'h dyn Fn() -> u64,
    /// Lets other requests run.
    pub pause: &'h dyn Fn() -> Pause,
}

impl<S: Sql> SqlRepository<S> {
    /// Writes segments until no rows wait for one. Begins none after `milliseconds` have passed.
    /// Then deletes the blobs of those that are no longer live.
    ///
    /// # Errors
    /// If the database or the blob store does not answer.
    pub async fn compact_for(
        &self,
        milliseconds: u64,
        host: &CompactionHost<'_>,
    ) -> Result<(), StoreError> {
        let end = (host.now)().saturating_add(milliseconds);
        loop {
            let now = (host.now)();
            let is_late = now >= end;
            if is_late
                || self.compact(&(host.blob)(), now, host.pause).await? != Compaction::Written
            {
                return self.collect_garbage(now).await;
            }
        }
    }

    /// Returns the number of versions that wait for a segment: a population query reads their rows.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn waiting_versions(&self) -> Result<u64, StoreError> {
        Fields::of_only(self.rows(Statement::new(WAITING)).await?)?.number()
    }

    /// Writes one segment, if rows are waiting for it. `id` is a new segment id, `now` in
    /// milliseconds since 1970; `pause` lets other requests run.
    ///
    /// # Errors
    /// If the database or the blob store does not answer. What was stored is garbage then.
    pub async fn compact(
        &self,
        id: &str,
        now: u64,
        pause: &dyn Fn() -> Pause,
    ) -> Result<Compaction, StoreError> {
        let Some(segments) = &self.segments else {
            return Ok(Compaction::Nothing);
        };
        self.drop_lost(segments).await?;
        let batch = vec![
            self.catalog.read_new_profiles(),
            Statement::new(NEWEST),
            Statement::new(CopiedRows::Versions.manifest()),
            Statement::new(CopiedRows::Ehrs.manifest()),
        ];
        let mut answers = self.batch(batch).await?;
        if !self.catalog.add_new_profiles(answers.next()?)? {
            return Ok(Compaction::Lost);
        }
        let state = newest_of(answers.next()?)?;
        for source in [CopiedRows::Versions, CopiedRows::Ehrs] {
            let manifest = ManifestEntry::all(answers.next()?)?;
            let newest = source.newest(state);
            if let Some(range) = Range::of(&manifest, newest, segments.sizes) {
                let rows = SegmentRows {
                    source,
                    range,
                    state,
                };
                return self.write_segment(segments, id, &rows, (now, pause)).await;
            }
        }
        segments.rest();
        Ok(Compaction::Nothing)
    }

    /// Takes segments that cannot be read off the manifest, so that they are written again.
    async fn drop_lost(&self, segments: &Segments) -> Result<(), StoreError> {
        for id in segments.lost() {
            let drops = DROP.map(|sql| Statement::new(sql).bind(id.as_str()));
            self.batch(drops.to_vec()).await?;
            segments.misses.borrow_mut().remove(&id);
        }
        Ok(())
    }

    /// Writes the segment of rows, and makes it live.
    ///
    /// # Errors
    /// If the database or the blob store does not answer, or the batch cannot be encoded.
    pub(super) async fn write_segment(
        &self,
        segments: &Segments,
        id: &str,
        rows: &SegmentRows,
        (now, pause): (u64, &dyn Fn() -> Pause),
    ) -> Result<Compaction, StoreError> {
        let mut sink = GatheringSink { pause };
        let bounds = GatherBounds {
            after: rows.range.first - 1,
            until: rows.range.last,
            newest: rows.state.version,
        };
        let everything = rows.source.everything();
        let into = (Batch::new(), MAX_BYTES);
        let gathered = self.gather(&everything, bounds, into, &mut sink).await?;
        let GatheredBatch {
            batch, ehrs, end, ..
        } = gathered.ok_or_else(unexpected)?;
        let encoded = batch.to_segment(&ehrs);
        let encoded = encoded.map_err(|what| StoreError::Failed(what.to_owned()))?;
        let count = match rows.source {
            CopiedRows::Versions => batch.len(),
            CopiedRows::Ehrs => ehrs.len(),
        };
        let memory = batch.encoding_bytes() as u64;
        // The encoded segment is a second copy, and storing it waits for the blob store.
        drop(batch);
        let bytes: usize = encoded.values.iter().map(Vec::len).sum();
        let sizes = SegmentSizes {
            end,
            rows: count as u64,
            values: encoded.values.len() as u64,
            bytes: (bytes + id.len() + encoded.head.len()) as u64,
            memory,
        };
        // The blobs are listed as garbage before they are stored. If anything stops this
        // compaction, they are deleted after the lease.
        let begin = Statement::new(BEGIN).bind(id).bind(sizes.values);
        self.rows(begin.bind(now + LEASE)).await?;
        segments.store(id, encoded.head, encoded.values).await?;
        let outcome = self.publish(segments, id, rows, &sizes).await?;
        self.collect_garbage(0).await?;
        Ok(outcome)
    }

    /// Makes a stored segment live. Does nothing if another compaction or a deletion has changed
    /// its rows meanwhile.
    async fn publish(
        &self,
        segments: &Segments,
        id: &str,
        rows: &SegmentRows,
        sizes: &SegmentSizes,
    ) -> Result<Compaction, StoreError> {
        let SegmentRows {
            source,
            range,
            state,
        } = rows;
        let publish = |sql: &'static str| {
            let ends = Statement::new(sql).bind(id).bind(range.first);
            let ends = ends.bind(sizes.end).bind(state.version);
            let sized = ends.bind(sizes.rows).bind(sizes.values);
            let sized = sized.bind(state.removals).bind(sizes.bytes);
            sized.bind(sizes.memory)
        };
        let finish = Statement::new(END).bind(id);
        let batch = vec![publish(source.replace()), publish(source.publish()), finish];
        let mut answers = self.batch(batch).await?;
        if answers.behind(1)?.is_empty() {
            self.rows(Statement::new(ABANDON).bind(id)).await?;
            // The next compaction waits until it is due again, so that two instances do not hinder
            // each other all the time.
            segments.rest();
            return Ok(Compaction::Lost);
        }
        if *source == CopiedRows::Versions {
            segments.count_compacted(sizes.rows);
        }
        Ok(Compaction::Written)
    }

    /// Deletes the blobs of segments that are no longer live.
    ///
    /// # Errors
    /// If the database or the blob store does not answer. The rest stays listed.
    pub async fn collect_garbage(&self, now: u64) -> Result<(), StoreError> {
        let Some(segments) = &self.segments else {
            return Ok(());
        };
        let garbage = Statement::new(GARBAGE).bind(now).bind(MAX_COLLECTED);
        for row in self.rows(garbage).await? {
            let mut fields = Fields::of(row);
            let (id, values) = (fields.text()?, fields.number()?);
            segments.delete(&id, values).await?;
            self.rows(Statement::new(COLLECT).bind(id.as_str())).await?;
        }
        Ok(())
    }
}

impl Segments {
    async fn store(&self, id: &str, head: Vec<u8>, values: Vec<Vec<u8>>) -> Result<(), StoreError> {
        for (number, value) in (0..).zip(values) {
            let put = self.blobs.put(&value_key(id, number), value).await;
            put.map_err(StoreError::Unavailable)?;
        }
        // The id comes first, because keys may be confused in a store of another program: see `add`.
        let head = [id.as_bytes(), &head].concat();
        let put = self.blobs.put(&head_key(id), head).await;
        put.map_err(StoreError::Unavailable)
    }

    /// Deletes the blobs of a segment: its head, and this number of values.
    async fn delete(&self, id: &str, values: u64) -> Result<(), StoreError> {
        let numbers = 0..u32::try_from(values).unwrap_or(u32::MAX);
        let values = numbers.map(|number| value_key(id, number));
        for key in std::iter::once(head_key(id)).chain(values) {
            let deleted = self.blobs.delete(&key).await;
            deleted.map_err(StoreError::Unavailable)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::segments::{MAX_VERSIONS, MIN_VERSIONS};

    fn range(listed: &[(u64, u64)], newest: u64) -> Option<(u64, u64)> {
        let listed: Vec<ManifestEntry> = listed
            .iter()
            .map(|(first, last)| ManifestEntry {
                first: *first,
                last: *last,
                state: *last,
                rows: *last + 1 - *first,
                id: String::new(),
                memory: 1,
            })
            .collect();
        Range::of(&listed, newest, (MIN_VERSIONS, MAX_VERSIONS))
            .map(|range| (range.first, range.last))
    }

    #[test]
    fn next_range_is_the_first_gap_or_the_rest() {
        assert_eq!(range(&[], 0), None);
        assert_eq!(range(&[], MIN_VERSIONS - 1), None, "too few rows");
        assert_eq!(range(&[], MIN_VERSIONS), Some((1, MIN_VERSIONS)));
        assert_eq!(
            range(&[], 10 * MAX_VERSIONS),
            Some((1, MAX_VERSIONS)),
            "one segment at a time"
        );
        assert_eq!(range(&[(1, 10_000)], 10_100), None);
        assert_eq!(
            range(&[(1, 10_000)], 10_000 + MIN_VERSIONS),
            Some((10_001, 10_000 + MIN_VERSIONS))
        );
        assert_eq!(range(&[(1, 10_000)], 20_000), Some((10_001, 20_000)));
        assert_eq!(
            range(&[(1, 10), (21, 10_000)], 10_100),
            Some((11, 20)),
            "a gap is filled, however small"
        );
        assert_eq!(range(&[(5, 10_000)], 10_000), Some((1, 4)));
    }

    #[test]
    fn segments_are_merged_as_far_as_their_memory_allows() {
        let listed = |memory: usize| -> Vec<ManifestEntry> {
            (0..8)
                .map(|number| ManifestEntry {
                    first: number * 600 + 1,
                    last: number * 600 + 600,
                    state: 0,
                    rows: 600,
                    id: String::new(),
                    memory: memory as u64,
                })
                .collect()
        };
        let merged = |memory| {
            let range = Range::merged(&listed(memory), (MIN_VERSIONS, MAX_VERSIONS));
            range.map(|range| (range.first, range.last))
        };
        assert_eq!(merged(MAX_BYTES / 8), Some((1, 4_800)));
        assert_eq!(merged(MAX_BYTES / 3), Some((1, 1_800)), "three fit");
        assert_eq!(merged(MAX_BYTES / 2 + 1), None, "two do not fit");
    }

    #[test]
    fn small_segments_are_merged() {
        let small = |from: u64, count: u64, size: u64| -> Vec<(u64, u64)> {
            let first = |number| from + number * size;
            (0..count)
                .map(|n| (first(n), first(n) + size - 1))
                .collect()
        };
        let segments = small(1, 8, 600);
        assert_eq!(range(&segments, 4_800), Some((1, 4_800)));
        assert_eq!(range(&segments[..7], 4_200), None, "too few");
        let many = small(1, 20, 600);
        assert_eq!(range(&many, 12_000), Some((1, 4_800)), "eight at a time");
        let large = [vec![(1, 5_000)], small(5_001, 8, 600)].concat();
        assert_eq!(range(&large, 9_800), Some((5_001, 9_800)), "of one size");
        let six = small(1, 8, 5_000);
        assert_eq!(range(&six, 40_000), Some((1, 30_000)), "no more than fit");
        assert_eq!(
            range(&small(1, 2, 20_000), 40_000),
            None,
            "too large together"
        );
        assert_eq!(range(&small(1, 8, 4_096), 32_768), Some((1, 32_768)));
    }
}
