//! The nightly maintenance of segments. Segments that are absent from the blob store, and those
//! with many superseded versions, are written again.
//!
//! Queries read rows in place of an absent segment, and the list of superseded versions beside each
//! segment. Their results are the same, but they take longer.

use super::compaction::{Compaction, CompactionHost, Range, SegmentRows};
use super::{BLOBS_AT_ONCE, CopiedRows, MAX_MISSES, Segments, head_key};
use crate::store::repository::StoreError;
use crate::store::sql::SqlRepository;
use crate::store::sql::scan::{NEWEST, newest_of};
use crate::store::sql::segments::manifest::ManifestEntry;
use crate::store::sql::value::{Fields, Sql, Statement};
use futures_util::{StreamExt, stream};

/// The first segment of which more than a tenth of the versions were superseded after it was
/// written. Each superseded version belongs to the segment with the least `last` from its id on.
const OUTDATED: &str = "SELECT s.first, s.last
    FROM version v JOIN segment s ON s.last = (SELECT min(last) FROM segment WHERE last >= v.id)
    WHERE v.successor > (SELECT min(state) FROM segment)
      AND v.successor > s.state AND v.id >= s.first
    GROUP BY s.id HAVING 10 * count(*) > s.versions ORDER BY s.first LIMIT 1";

impl<S: Sql> SqlRepository<S> {
    /// Does the nightly maintenance: passes the id of each absent segment to `absent`, and writes
    /// absent, due and outdated segments. Begins none after `milliseconds` have passed, which apply
    /// to due and to outdated segments each.
    ///
    /// # Errors
    /// If the database or the blob store does not answer.
    pub async fn renew_segments(
        &self,
        milliseconds: u64,
        host: &CompactionHost<'_>,
        absent: impl Fn(&str),
    ) -> Result<(), StoreError> {
        let lost = self.find_lost_segments().await?;
        lost.iter().for_each(|id| absent(id));
        self.compact_for(milliseconds, host).await?;
        self.rewrite_outdated_for(milliseconds, host).await
    }

    /// Finds the segments whose heads are absent from the blob store. The next compaction of this
    /// repository writes them again. Returns their ids.
    ///
    /// A store may show a blob only a minute after it was stored, so a segment of the last minute
    /// may be among them. It is written once more then.
    ///
    /// # Errors
    /// If the database or the blob store does not answer.
    pub async fn find_lost_segments(&self) -> Result<Vec<String>, StoreError> {
        let Some(segments) = &self.segments else {
            return Ok(Vec::new());
        };
        for source in [CopiedRows::Versions, CopiedRows::Ehrs] {
            let rows = self.rows(Statement::new(source.manifest())).await?;
            segments.check_heads(&ManifestEntry::all(rows)?).await?;
        }
        Ok(segments.lost())
    }

    /// Writes segments again of which more than a tenth of the versions were superseded. Begins
    /// none after `milliseconds` have passed.
    ///
    /// # Errors
    /// If the database or the blob store does not answer.
    pub async fn rewrite_outdated_for(
        &self,
        milliseconds: u64,
        host: &CompactionHost<'_>,
    ) -> Result<(), StoreError> {
        let end = (host.now)().saturating_add(milliseconds);
        while (host.now)() < end {
            let (id, now) = ((host.blob)(), (host.now)());
            if self.rewrite_outdated(&id, now, host).await? != Compaction::Written {
                break;
            }
        }
        Ok(())
    }

    /// Writes the first outdated segment again, if there is one.
    async fn rewrite_outdated(
        &self,
        id: &str,
        now: u64,
        host: &CompactionHost<'_>,
    ) -> Result<Compaction, StoreError> {
        let Some(segments) = &self.segments else {
            return Ok(Compaction::Nothing);
        };
        let statements = vec![
            self.catalog.read_new_profiles(),
            Statement::new(NEWEST),
            Statement::new(OUTDATED),
        ];
        let mut answers = self.batch(statements).await?;
        if !self.catalog.add_new_profiles(answers.next()?)? {
            return Ok(Compaction::Lost);
        }
        let state = newest_of(answers.next()?)?;
        let Some(row) = answers.next()?.into_iter().next() else {
            return Ok(Compaction::Nothing);
        };
        let mut fields = Fields::of(row);
        let rows = SegmentRows {
            source: CopiedRows::Versions,
            range: Range {
                first: fields.number()?,
                last: fields.number()?,
            },
            state,
        };
        self.write_segment(segments, id, &rows, (now, host.pause))
            .await
    }
}

impl Segments {
    /// Records each segment whose head is absent as lost.
    async fn check_heads(&self, manifest: &[ManifestEntry]) -> Result<(), StoreError> {
        let heads = stream::iter(manifest).map(|entry| async move {
            let head = self.blobs.get(&head_key(&entry.id)).await;
            (entry, head)
        });
        let mut heads = std::pin::pin!(heads.buffer_unordered(BLOBS_AT_ONCE));
        while let Some((entry, head)) = heads.next().await {
            if head.map_err(StoreError::Unavailable)?.is_none() {
                self.miss(&entry.id, MAX_MISSES);
            }
        }
        Ok(())
    }
}
