//! Division of a population scan at the ends of segments, for several threads.

use super::manifest::ManifestEntry;
use super::{CopiedRows, is_joined};
use crate::store::division::{Division, SegmentExtent, divide};
use crate::store::repository::StoreError;
use crate::store::scan::Scan;
use crate::store::sql::SqlRepository;
use crate::store::sql::scan::{NEWEST, newest_of, removed, state_of};
use crate::store::sql::value::{Sql, Statement};

/// The minimum number of documents of a part, in full segments. The division, and the way of a part
/// to a thread and back, take about a millisecond, in which a thread evaluates some segments.
pub(super) const FULL_SEGMENTS: u64 = 4;

impl<S: Sql> SqlRepository<S> {
    /// Divides a scan of the versions of all EHRs. `None` if there are too few segments, or others
    /// serve the scan.
    ///
    /// # Errors
    /// If the database does not answer, or no longer has the state of the scan.
    pub(in crate::store::sql) async fn divide_scan(
        &self,
        scan: &Scan,
        count: usize,
    ) -> Result<Option<Division>, StoreError> {
        let Some(segments) = &self.segments else {
            return Ok(None);
        };
        let source = CopiedRows::of(scan, segments.named);
        let is_whole = scan.ehrs.is_none() && !is_joined(scan);
        let Some(source) = source.filter(|s| is_whole && *s == CopiedRows::Versions) else {
            return Ok(None);
        };
        let manifest = Statement::new(source.manifest());
        let statements = vec![Statement::new(NEWEST), removed(scan), manifest];
        let mut answers = self.batch(statements).await?;
        let newest = newest_of(answers.next()?)?;
        let snapshot = state_of(scan, newest, answers.next()?)?;
        let manifest = ManifestEntry::all(answers.next()?)?;
        let extents = manifest.iter().map(|entry| SegmentExtent {
            last: entry.last,
            documents: entry.rows,
        });
        let extents: Vec<SegmentExtent> = extents.collect();
        let parts = divide(&extents, count, segments.divided);
        Ok((parts.len() > 1).then_some(Division { snapshot, parts }))
    }
}
