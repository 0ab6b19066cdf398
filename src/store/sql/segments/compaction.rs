//! Compaction: writing segments of rows that no segment holds.
//!
//! A compaction reads the rows behind the first segments that follow one another, and stores them
//! as one segment. It may be stopped anywhere: the blobs of a segment are listed as garbage before
//! they are stored, and are taken off that list in the transaction that makes the segment live. Of
//! two compactions of the same rows one makes its segment live; a deletion that comes between makes
//! the segment void.

use super::{MANIFEST, Segments, head_key, value_key};
use crate::document::{Batch, ObjectKind};
use crate::store::repository::{BatchSink, Pause, StoreError};
use crate::store::scan::{Progress, Scan};
use crate::store::sql::SqlRepository;
use crate::store::sql::scan::{Gathered, NEWEST, newest_of};
use crate::store::sql::segments::cache::Listed;
use crate::store::sql::value::{Fields, Sql, Statement};

/// Bytes of memory of the documents of a segment, about; with more it ends early.
const BYTES: usize = 24 << 20;

/// Milliseconds within which a segment must be written.
const LEASE: u64 = 600_000;

/// Blobs of segments that one collection deletes at most.
const COLLECTED: u64 = 100;

const BEGIN: &str = "INSERT INTO segment_garbage VALUES (?1, ?2, ?3)";
const PUBLISH: &str = "INSERT INTO segment (first, last, state, versions, blob, files)
    SELECT ?2, ?3, ?4, ?5, ?1, ?6 WHERE EXISTS (SELECT 1 FROM segment_garbage WHERE blob = ?1)
      AND NOT EXISTS (SELECT 1 FROM segment WHERE first <= ?3 AND last >= ?2)
      AND (SELECT coalesce(max(id), 0) FROM removal) = ?7 RETURNING id";
const END: &str = "DELETE FROM segment_garbage WHERE blob = ?1 AND EXISTS (SELECT 1 FROM segment WHERE blob = ?1)";
const GARBAGE: &str =
    "SELECT blob, files FROM segment_garbage WHERE after <= ?1 ORDER BY after LIMIT ?2";
const COLLECT: &str = "DELETE FROM segment_garbage WHERE blob = ?1";
const ABANDON: &str = "UPDATE segment_garbage SET after = 0 WHERE blob = ?1";

/// The outcome of a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compaction {
    /// There are too few rows for a segment.
    Nothing,
    /// A segment was written; there may be rows for more.
    Written,
    /// Another compaction or a deletion came between.
    Lost,
}

/// The rows of a segment to be.
struct Range {
    first: u64,
    last: u64,
}

impl Range {
    /// The first rows that no segment holds, if they are enough.
    fn of(listed: &[Listed], newest: u64, (least, most): (u64, u64)) -> Option<Range> {
        let (mut end, mut gap_end) = (0, newest);
        for listed in listed {
            if listed.first > end + 1 {
                gap_end = listed.first - 1;
                break;
            }
            end = listed.last;
        }
        let (first, most) = (end + 1, end + most);
        let is_gap = gap_end < newest;
        (gap_end >= first && (is_gap || gap_end - end >= least)).then_some(Range {
            first,
            last: gap_end.min(most),
        })
    }
}

/// Counts the documents of a segment, without evaluating anything.
struct Gathering<'p> {
    pause: &'p dyn Fn() -> Pause,
}

impl BatchSink for Gathering<'_> {
    fn take(&mut self, _: &Batch) -> Progress {
        Progress::More
    }

    fn pause(&self) -> Pause {
        (self.pause)()
    }
}

impl<S: Sql> SqlRepository<S> {
    /// Writes one segment, if rows are waiting for it. `blob` is a new identifier, `now` in
    /// milliseconds since 1970; `pause` lets other requests run.
    ///
    /// # Errors
    /// If the database or the blob store does not answer. What was stored is garbage then.
    pub async fn compact(
        &self,
        blob: &str,
        now: u64,
        pause: &dyn Fn() -> Pause,
    ) -> Result<Compaction, StoreError> {
        let Some(segments) = &self.segments else {
            return Ok(Compaction::Nothing);
        };
        let batch = vec![
            self.catalogue.ask_news(),
            Statement::new(NEWEST),
            Statement::new(MANIFEST),
        ];
        let mut answers = self.batch(batch).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default();
        self.catalogue.take_news(next())?;
        let state = newest_of(next())?;
        let listed = next().into_iter().map(Listed::of);
        let listed: Vec<Listed> = listed.collect::<Result<_, _>>()?;
        let Some(range) = Range::of(&listed, state.version, segments.sizes) else {
            segments.rest();
            return Ok(Compaction::Nothing);
        };
        let mut sink = Gathering { pause };
        let bounds = (range.first - 1, range.last, state.version);
        let gathered = self.gather(&everything(), bounds, BYTES, &mut sink).await?;
        let Gathered { batch, ehrs, end } = gathered;
        let encoded = batch.to_segment(&ehrs);
        let encoded = encoded.map_err(|what| StoreError::Failed(what.to_owned()))?;
        let versions = batch.len() as u64;
        drop(batch);
        let files = encoded.values.len() as u64;
        let begin = Statement::new(BEGIN).bind(blob).bind(files);
        self.rows(begin.bind(now + LEASE)).await?;
        segments.store(blob, encoded.head, encoded.values).await?;
        let publish = Statement::new(PUBLISH)
            .bind(blob)
            .bind(range.first)
            .bind(end)
            .bind(state.version)
            .bind(versions)
            .bind(files)
            .bind(state.removals);
        let finish = Statement::new(END).bind(blob);
        let answers = self.batch(vec![publish, finish]).await?;
        if answers.first().is_some_and(|rows| !rows.is_empty()) {
            return Ok(Compaction::Written);
        }
        self.rows(Statement::new(ABANDON).bind(blob)).await?;
        self.collect_garbage(0).await?;
        Ok(Compaction::Lost)
    }

    /// Deletes the blobs of segments that are no longer live.
    ///
    /// # Errors
    /// If the database or the blob store does not answer. The rest stays listed.
    pub async fn collect_garbage(&self, now: u64) -> Result<(), StoreError> {
        let Some(segments) = &self.segments else {
            return Ok(());
        };
        let garbage = Statement::new(GARBAGE).bind(now).bind(COLLECTED);
        for row in self.rows(garbage).await? {
            let mut fields = Fields::of(row);
            let (blob, files) = (fields.text()?, fields.number()?);
            segments.delete(&blob, files).await?;
            self.rows(Statement::new(COLLECT).bind(blob.as_str()))
                .await?;
        }
        Ok(())
    }
}

impl Segments {
    async fn store(
        &self,
        blob: &str,
        head: Vec<u8>,
        values: Vec<Vec<u8>>,
    ) -> Result<(), StoreError> {
        for (number, value) in (0..).zip(values) {
            let put = self.blobs.put(&value_key(blob, number), value).await;
            put.map_err(StoreError::Away)?;
        }
        let put = self.blobs.put(&head_key(blob), head).await;
        put.map_err(StoreError::Away)
    }

    /// Deletes the blobs of a segment.
    async fn delete(&self, blob: &str, files: u64) -> Result<(), StoreError> {
        let numbers = 0..u32::try_from(files).unwrap_or(u32::MAX);
        let values = numbers.map(|number| value_key(blob, number));
        for key in std::iter::once(head_key(blob)).chain(values) {
            let deleted = self.blobs.delete(&key).await;
            deleted.map_err(StoreError::Away)?;
        }
        Ok(())
    }
}

/// The scan of all versions that queries may read.
fn everything() -> Scan {
    Scan {
        ehrs: None,
        kinds: vec![
            ObjectKind::Composition,
            ObjectKind::EhrStatus,
            ObjectKind::Folder,
        ],
        all_versions: true,
        whole_ehrs: false,
        empty_ehrs: false,
        unqueryable: true,
        archetypes: Vec::new(),
        snapshot: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::segments::{LEAST, MOST};

    fn range(listed: &[(u64, u64)], newest: u64) -> Option<(u64, u64)> {
        let listed: Vec<Listed> = listed
            .iter()
            .map(|(first, last)| Listed {
                first: *first,
                last: *last,
                state: *last,
                blob: String::new(),
            })
            .collect();
        Range::of(&listed, newest, (LEAST, MOST)).map(|range| (range.first, range.last))
    }

    #[test]
    fn next_range_is_the_first_gap_or_the_rest() {
        assert_eq!(range(&[], 0), None);
        assert_eq!(range(&[], LEAST - 1), None, "too few rows");
        assert_eq!(range(&[], LEAST), Some((1, LEAST)));
        assert_eq!(
            range(&[], 10 * MOST),
            Some((1, MOST)),
            "one segment at a time"
        );
        assert_eq!(range(&[(1, 10_000)], 10_100), None);
        assert_eq!(range(&[(1, 10_000)], 20_000), Some((10_001, 20_000)));
        assert_eq!(
            range(&[(1, 10), (21, 10_000)], 10_100),
            Some((11, 20)),
            "a gap is filled, however small"
        );
        assert_eq!(range(&[(5, 10_000)], 10_000), Some((1, 4)));
    }
}
