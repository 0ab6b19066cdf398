//! Older states: segments as they were when the snapshot of a scan was taken.
//!
//! A segment has all versions of its range, so it also has those of an older state. What changed
//! since is read from the database: versions that were superseded later, and EHRs that were
//! queryable or not.

use super::{CopiedRows, SegmentScan, Segments};
use crate::document::PastState;
use crate::store::repository::StoreError;
use crate::store::scan::{Scan, Snapshot};
use crate::store::sql::value::{Fields, Row, Statement};

/// The EHRs that were unqueryable in the state with the newest version `?1`; at most `?2`. Each of
/// them is unqueryable now, or has changed since.
const UNQUERYABLE: &str = "SELECT json_group_array(id) AS unqueryable FROM (SELECT e.id
    FROM (SELECT id FROM ehr WHERE NOT is_queryable UNION SELECT ehr FROM queryable_before WHERE version > ?1) c
      CROSS JOIN ehr e ON e.id = c.id
    WHERE NOT coalesce((SELECT q.is_queryable FROM queryable_before q WHERE q.ehr = e.id AND q.version > ?1
      ORDER BY q.version LIMIT 1), e.is_queryable) LIMIT ?2)";

/// Returns whether segments can show an older state to a scan.
fn is_served(scan: &Scan, source: CopiedRows) -> bool {
    source == CopiedRows::Versions && scan.ehrs.is_none() && !scan.all_versions
}

impl Segments {
    /// Returns the statements whose rows [`Segments::in_past`] reads.
    pub(in crate::store::sql) fn past_statements(&self, requested: Snapshot) -> [Statement; 2] {
        let unqueryable = Statement::new(UNQUERYABLE).bind(requested.version);
        [
            self.superseded(requested.version, super::NO_BOUND),
            unqueryable.bind(self.listed),
        ]
    }

    /// Changes segments in the newest state to an older one. If too much has changed since, no
    /// segment is left and rows are read.
    ///
    /// # Errors
    /// If the rows are not as expected.
    pub(in crate::store::sql) fn in_past(
        &self,
        opened: &mut SegmentScan,
        (scan, state): (&Scan, Snapshot),
        [superseded, unqueryable]: [Vec<Row>; 2],
    ) -> Result<(), StoreError> {
        let mut fields = Fields::of_only(superseded)?;
        let mut revived = fields.numbers()?;
        let mut unqueryable = Fields::of_only(unqueryable)?.numbers()?;
        let is_short = |list: &Vec<u64>| (list.len() as u64) < self.listed;
        if !is_served(scan, opened.source) || ![&revived, &unqueryable].into_iter().all(is_short) {
            opened.segments.clear();
            return Ok(());
        }
        revived.sort_unstable();
        unqueryable.sort_unstable();
        let past = PastState {
            until: state.version,
            revived: &revived,
            unqueryable: &unqueryable,
        };
        opened.segments.retain_mut(|opened| {
            let batch = opened.cached.in_past(&opened.batch, &past).ok();
            let batch = batch.filter(|_| opened.cached.first <= state.version);
            batch.map(|batch| opened.batch = batch).is_some()
        });
        Ok(())
    }
}
