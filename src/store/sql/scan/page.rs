//! Pages of rows: their statements, bounds and sizes.

use super::NO_BOUND;
use crate::store::repository::MAX_PAGE_BYTES;
use crate::store::scan::Scan;
use crate::store::sql::catalog::MatchingProfiles;
use crate::store::sql::list::size_of_version;
use crate::store::sql::value::{Statement, json_list};

/// Maximum rows of a page.
pub(super) const PAGE_ROWS: u64 = 1000;

/// The mean size of documents in bytes from which a population is read in smaller pages.
const LONG_DOCUMENTS: u64 = 50_000;

/// Bytes of such a page. A JavaScript runtime releases texts of megabytes late, because they are
/// not in the memory of short-lived objects, which it collects often.
const SMALL_PAGE_BYTES: u64 = 524_288;

/// Whether an EHR was queryable in the requested state.
macro_rules! queryable {
    () => {
        "coalesce((SELECT q.is_queryable FROM queryable_before q WHERE q.ehr = e.id AND q.version > ?6 ORDER BY q.version LIMIT 1), e.is_queryable)"
    };
}

/// `?1` matching profiles, `?2` the last known profile, `?3` all versions, `?4` after this id, `?5`
/// up to this id, `?6` the newest version of the scan, `?7` maximum rows, `?8` whether EHRs may be
/// unqueryable, `?9` the id of the EHR or the ids of some, `?10` maximum bytes, `?11` and `?12` an
/// EHR and the version in it after which the page begins.
///
/// The sizes of the documents limit a page: it has the first document, and those after it while the
/// total is within the maximum. `found` counts all rows of the inner query.
macro_rules! page {
    ($from:literal, $condition:literal, $rest:literal, $order:literal, $outer:literal) => {
        concat!(
            "SELECT p.found, p.size, e.id AS ehr, e.ehr_id, e.system_id, e.time_created, ",
            "?8 OR ", queryable!(),
            " AS is_queryable, v.id AS ordinal, v.kind, v.object, v.system, v.number, v.time_committed,
               v.successor IS NULL OR v.successor > ?6 AS latest, v.lifecycle = '523' AS deleted, v.shapes, v.digest, v.chunks, v.document
             FROM (SELECT ehr, id, size, sum(size) OVER (ORDER BY ", $order, " ROWS UNBOUNDED PRECEDING) AS total, count(*) OVER () AS found
               FROM (SELECT e.id AS ehr, v.id AS id, coalesce(",
            size_of_version!(),
            ", 0) AS size FROM ",
            $from,
            " AND (?3 OR ((v.successor IS NULL OR v.successor > ?6) AND v.lifecycle <> '523')) AND ",
            $condition,
            $rest,
            " AND ?11 >= 0 AND ?12 >= 0 AND (?8 OR ",
            queryable!(),
            ") ORDER BY ", $order, " LIMIT ?7)) p
             CROSS JOIN ehr e ON e.id = p.ehr LEFT JOIN version v ON v.id = p.id
             WHERE p.total <= ?10 OR p.total = p.size ORDER BY ", $outer
        )
    };
}

/// The documents of one EHR.
pub(super) const OF_EHR: &str = page!(
    "ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id > ?4 AND v.id <= ?6",
    "(v.profile > ?2 OR v.profile IN (SELECT value FROM json_each(?1)))",
    " WHERE e.ehr_id = ?9 AND e.id > 0",
    "id",
    "p.id"
);

/// Some EHRs with their documents.
pub(super) const OF_EHRS: &str = page!(
    "json_each(?9) s CROSS JOIN ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id <= ?6 AND v.id > CASE WHEN e.id = ?11 THEN ?12 ELSE 0 END",
    "v.profile IN (SELECT value FROM json_each(?1))",
    " WHERE e.ehr_id = s.value AND e.id > ?4 AND e.id <= ?5",
    "ehr, id",
    "p.ehr, p.id"
);

/// EHRs of a range of ids with their documents.
pub(super) const BY_EHR: &str = page!(
    "ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id <= ?6 AND v.id > CASE WHEN e.id = ?11 THEN ?12 ELSE 0 END",
    "v.profile IN (SELECT value FROM json_each(?1))",
    " WHERE e.id > ?4 AND e.id <= ?5",
    "ehr, id",
    "p.ehr, p.id"
);

/// Documents of a range of ids that belong to some EHRs.
pub(super) const NEW_OF_EHRS: &str = page!(
    "version v CROSS JOIN ehr e WHERE v.id > ?4 AND v.id <= ?5 AND v.profile IN (SELECT value FROM json_each(?1))",
    "e.id = v.ehr",
    " AND e.id > 0 AND e.ehr_id IN (SELECT value FROM json_each(?9))",
    "id",
    "p.id"
);

/// Documents of a range of ids, selected by their profiles.
pub(super) const BY_PROFILE: &str = page!(
    "json_each(?1) s CROSS JOIN version v CROSS JOIN ehr e WHERE v.profile = s.value AND v.id > ?4 AND v.id <= ?5",
    "e.id = v.ehr",
    " AND e.id > 0",
    "id",
    "p.id"
);

/// Documents of a range of ids of which most are selected. They are read in the order of their ids,
/// without a search by profile and without sorting.
pub(super) const BY_ID: &str = page!(
    "version v CROSS JOIN ehr e WHERE v.id > ?4 AND v.id <= ?5 AND v.profile IN (SELECT value FROM json_each(?1))",
    "e.id = v.ehr",
    " AND e.id > 0",
    "id",
    "p.id"
);

/// Documents of a list of ids.
pub(super) const LISTED: &str = page!(
    "json_each(?9) s CROSS JOIN version v CROSS JOIN ehr e WHERE v.id = s.value AND v.id > ?4 AND v.id <= ?5",
    "v.profile IN (SELECT value FROM json_each(?1))",
    " AND e.id = v.ehr AND e.id > 0 AND (e.id, v.id) > (?11, ?12)",
    "ehr, id",
    "p.ehr, p.id"
);

pub(super) fn page(
    query: &'static str,
    scan: &Scan,
    matching: &MatchingProfiles,
    page_bounds: &PageBounds,
    (newest, size): (u64, &PageSize),
    ehrs: Option<&str>,
) -> Statement {
    Statement::new(query)
        .bind(json_list(&matching.profiles))
        .bind(matching.known_to)
        .bind(scan.all_versions)
        .bind(page_bounds.after)
        .bind(page_bounds.until)
        .bind(newest)
        .bind(size.rows)
        .bind(scan.unqueryable)
        .bind(ehrs)
        .bind(size.bytes)
        .bind(page_bounds.last.0)
        .bind(page_bounds.last.1)
}

/// The size of the next page, adapted to the rows and bytes of the last one.
pub(super) struct PageSize {
    /// Ids in the range of the next page.
    pub range: u64,
    /// Most rows of the next page.
    pub rows: u64,
    /// Most bytes of its documents, unless a single one is larger.
    pub bytes: u64,
}

impl PageSize {
    /// The size of a page of all documents in a range, of one EHR or for a segment.
    pub const ALL: PageSize = PageSize {
        range: PAGE_ROWS,
        rows: PAGE_ROWS,
        bytes: MAX_PAGE_BYTES,
    };

    /// Returns the size of the first page, which is a guess: an EHR has some tens of documents, and
    /// a quarter of a range of ids may match.
    pub fn first(by_ehr: bool) -> PageSize {
        PageSize {
            range: if by_ehr { 16 } else { PAGE_ROWS },
            rows: if by_ehr { PAGE_ROWS } else { PAGE_ROWS / 4 },
            bytes: MAX_PAGE_BYTES,
        }
    }

    /// Adapts the bytes of the next page to the mean size of the documents in a range of ids. A
    /// range without documents says nothing about the next one.
    pub fn learn_length(&mut self, rows: u64, bytes: u64) {
        self.bytes = match bytes.checked_div(rows) {
            None => self.bytes,
            Some(LONG_DOCUMENTS..) => SMALL_PAGE_BYTES,
            Some(_) => MAX_PAGE_BYTES,
        };
    }

    /// Adapts the size of the next page to the result for `range` ids.
    pub fn learn(&mut self, rows: u64, bytes: u64, range: u64, by_ehr: bool) {
        let (rows, bytes) = (rows.max(1), bytes.max(1));
        let fitting = PAGE_ROWS
            .min(self.bytes.saturating_mul(rows) / bytes)
            .max(1);
        self.range =
            (range.saturating_mul(fitting) / rows).clamp(1, range.saturating_mul(8).max(16));
        if !by_ehr {
            self.rows = fitting.min(self.rows.saturating_mul(8));
        }
    }
}

/// The bounds of a page.
pub(super) struct PageBounds {
    /// The page begins after this id of an EHR or a version.
    pub after: u64,
    /// The page ends at this id.
    pub until: u64,
    /// The last EHR of the page before, and its last version there.
    pub last: (u64, u64),
}

impl PageBounds {
    pub fn between(after: u64, until: u64) -> PageBounds {
        PageBounds {
            after,
            until,
            last: (0, 0),
        }
    }

    /// Continues after a version of an EHR, or after an EHR without versions.
    pub fn continue_after(&mut self, ehr: u64, version: u64) {
        if version == NO_BOUND {
            (self.after, self.last) = (ehr, (0, 0));
        } else {
            (self.after, self.last) = (ehr.saturating_sub(1), (ehr, version));
        }
    }
}
