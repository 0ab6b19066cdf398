//! The state that a scan reads: the newest, or an older one that is still complete.

use super::NO_BOUND;
use crate::document::short_digest;
use crate::store::repository::{StoreError, state_to_read};
use crate::store::scan::{Scan, Snapshot};
use crate::store::sql::value::{Fields, Row, Statement, json_list};

/// The newest state, in the fields of [`Snapshot`].
pub(in crate::store::sql) const NEWEST: &str = "SELECT max((SELECT coalesce(max(id), 0) FROM version), (SELECT value FROM meta WHERE name = 'last_version')) AS version,
    (SELECT coalesce(max(id), 0) FROM ehr) AS ehr, (SELECT coalesce(max(id), 0) FROM removal) AS removals,
    (SELECT value FROM meta WHERE name = 'revision') AS revision";

/// Whether a deletion after the first `?1` removed a version up to `?2`, or an EHR that was
/// queryable in the state with the newest version `?2` and the newest EHR `?5` is not queryable
/// now: of the EHRs with the digests `?3` and the ids `?4`, or of any if NULL. `?6`: whether
/// unqueryable EHRs matter.
///
/// An EHR belongs to the state by its number or by a version, because both numbers come from a
/// client.
const REMOVED: &str =
    "SELECT EXISTS (SELECT 1 FROM removal r WHERE r.id > ?1 AND r.first_version <= ?2
      AND (?3 IS NULL OR r.ehr IS NULL OR r.ehr IN (SELECT value FROM json_each(?3))))
    OR (?6 AND EXISTS (SELECT 1 FROM queryable_before q CROSS JOIN ehr e ON e.id = q.ehr
      WHERE q.version > ?2 AND q.is_queryable AND NOT e.is_queryable
        AND NOT EXISTS (SELECT 1 FROM queryable_before f WHERE f.ehr = q.ehr AND f.version > ?2 AND f.version < q.version)
        AND (e.id <= ?5 OR EXISTS (SELECT 1 FROM version v WHERE v.ehr = e.id AND v.id <= ?2))
        AND (?4 IS NULL OR e.ehr_id IN (SELECT value FROM json_each(?4))))) AS removed";

/// The newest state of the EHR `?1` with the digest `?2`, and its newest version.
const NEWEST_OF_EHR: &str = "SELECT count(*) AS versions, (SELECT count(*) FROM removal WHERE ehr IS NULL OR ehr = ?2) AS removals,
    coalesce(max(v.id), 0) AS newest FROM version v JOIN ehr e ON e.id = v.ehr WHERE e.ehr_id = ?1";

/// The `?2`th version of an EHR, and whether the EHR was queryable then and is not now.
pub(super) const NTH_OF_EHR: &str = "SELECT v.id, NOT e.is_queryable AND coalesce((SELECT q.is_queryable FROM queryable_before q
      WHERE q.ehr = e.id AND q.version > v.id ORDER BY q.version LIMIT 1), 0) AS withdrawn
    FROM version v JOIN ehr e ON e.id = v.ehr WHERE e.ehr_id = ?1 ORDER BY v.id LIMIT 1 OFFSET ?2 - 1";

/// Returns the statement that tests whether the snapshot of a scan is complete. Without a snapshot
/// it reads no deletions.
pub(in crate::store::sql) fn removed(scan: &Scan) -> Statement {
    let nothing = Snapshot {
        version: 0,
        ehr: 0,
        removals: NO_BOUND,
        revision: 0,
    };
    // Without a snapshot, no deletion matters, of whichever EHR.
    let ehrs = scan.ehrs.as_ref().filter(|_| scan.snapshot.is_some());
    let snapshot = scan.snapshot.unwrap_or(nothing);
    let digests = |ehrs: &Vec<String>| {
        let digests: Vec<String> = ehrs.iter().map(|id| short_digest(id)).collect();
        json_list(&digests)
    };
    Statement::new(REMOVED)
        .bind(snapshot.removals)
        .bind(snapshot.version)
        .bind(ehrs.map(digests))
        .bind(ehrs.map(|ehrs| json_list(ehrs)))
        .bind(snapshot.ehr)
        .bind(scan.snapshot.is_some() && !scan.unqueryable)
}

pub(super) fn newest_of_ehr(ehr_id: &str) -> Statement {
    Statement::new(NEWEST_OF_EHR)
        .bind(ehr_id)
        .bind(short_digest(ehr_id))
}

/// The state of one EHR that a scan reads.
#[derive(Clone, Copy)]
pub(super) struct EhrState {
    pub state: Snapshot,
    /// The id of the newest version of the EHR in this state; [`NO_BOUND`] if it has none.
    pub newest: u64,
}

/// Returns the state of one EHR that a scan reads, from the rows of [`NEWEST_OF_EHR`].
pub(super) fn state_of_ehr(scan: &Scan, rows: Vec<Row>) -> Result<EhrState, StoreError> {
    let mut fields = Fields::of_only(rows)?;
    let present = Snapshot::of_ehr(fields.number()?, fields.number()?);
    let newest = fields.number()?;
    let removed = scan
        .snapshot
        .is_some_and(|requested| requested.version > 0 && requested.removals < present.removals);
    let state = state_to_read(scan.snapshot, present, removed)?;
    Ok(EhrState { state, newest })
}

/// Returns the newest state from the rows of [`NEWEST`].
pub(in crate::store::sql) fn newest_of(rows: Vec<Row>) -> Result<Snapshot, StoreError> {
    let mut fields = Fields::of_only(rows)?;
    Ok(Snapshot {
        version: fields.number()?,
        ehr: fields.number()?,
        removals: fields.number()?,
        revision: fields.number()?,
    })
}

/// Returns the state that a scan reads, from the rows of [`REMOVED`].
pub(in crate::store::sql) fn state_of(
    scan: &Scan,
    newest: Snapshot,
    removed: Vec<Row>,
) -> Result<Snapshot, StoreError> {
    let removed = Fields::of_only(removed)?.flag()?;
    state_to_read(scan.snapshot, newest, removed)
}
