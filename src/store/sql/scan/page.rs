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

/// Builds the query of a page. Its parameters:
///
/// | | |
/// |---|---|
/// | `?1` | the matching profiles, a JSON list |
/// | `?2` | the last known profile |
/// | `?3` | whether all versions are read |
/// | `?4`, `?5` | the page begins after this id, and ends at that one |
/// | `?6` | the newest version of the scan |
/// | `?7`, `?10` | the maximum rows and bytes |
/// | `?8` | whether EHRs may be unqueryable |
/// | `?9` | the id of the EHR, or a JSON list of ids of EHRs or versions |
/// | `?11`, `?12` | an EHR, and the version in it after which the page begins |
///
/// `from` ends within an ON or a WHERE, which `condition` continues. `rest` continues it further, or
/// begins the WHERE behind a LEFT JOIN. `order` sorts the inner query, and `outer` the outer one in
/// the same way.
///
/// The sizes of the documents limit a page: it has the first document, and those after it while the
/// total is within the maximum. `found` counts all rows of the inner query.
macro_rules! page {
    (
        from: $from:literal,
        condition: $condition:literal,
        rest: $rest:literal,
        order: $order:literal,
        outer: $outer:literal
    ) => {
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
    from: "ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id > ?4 AND v.id <= ?6",
    condition: "(v.profile > ?2 OR v.profile IN (SELECT value FROM json_each(?1)))",
    rest: " WHERE e.ehr_id = ?9 AND e.id > 0",
    order: "id",
    outer: "p.id"
);

/// Some EHRs with their documents.
pub(super) const OF_EHRS: &str = page!(
    from: "json_each(?9) s CROSS JOIN ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id <= ?6 AND v.id > CASE WHEN e.id = ?11 THEN ?12 ELSE 0 END",
    condition: "v.profile IN (SELECT value FROM json_each(?1))",
    rest: " WHERE e.ehr_id = s.value AND e.id > ?4 AND e.id <= ?5",
    order: "ehr, id",
    outer: "p.ehr, p.id"
);

/// EHRs of a range of ids with their documents.
pub(super) const BY_EHR: &str = page!(
    from: "ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id <= ?6 AND v.id > CASE WHEN e.id = ?11 THEN ?12 ELSE 0 END",
    condition: "v.profile IN (SELECT value FROM json_each(?1))",
    rest: " WHERE e.id > ?4 AND e.id <= ?5",
    order: "ehr, id",
    outer: "p.ehr, p.id"
);

/// Documents of a range of ids that belong to some EHRs.
pub(super) const NEW_OF_EHRS: &str = page!(
    from: "version v CROSS JOIN ehr e WHERE v.id > ?4 AND v.id <= ?5 AND v.profile IN (SELECT value FROM json_each(?1))",
    condition: "e.id = v.ehr",
    rest: " AND e.id > 0 AND e.ehr_id IN (SELECT value FROM json_each(?9))",
    order: "id",
    outer: "p.id"
);

/// Documents of a range of ids, selected by their profiles.
pub(super) const BY_PROFILE: &str = page!(
    from: "json_each(?1) s CROSS JOIN version v CROSS JOIN ehr e WHERE v.profile = s.value AND v.id > ?4 AND v.id <= ?5",
    condition: "e.id = v.ehr",
    rest: " AND e.id > 0",
    order: "id",
    outer: "p.id"
);

/// Documents of a range of ids of which most are selected. They are read in the order of their ids,
/// without a search by profile and without sorting.
pub(super) const BY_ID: &str = page!(
    from: "version v CROSS JOIN ehr e WHERE v.id > ?4 AND v.id <= ?5 AND v.profile IN (SELECT value FROM json_each(?1))",
    condition: "e.id = v.ehr",
    rest: " AND e.id > 0",
    order: "id",
    outer: "p.id"
);

/// Documents of a list of ids.
pub(super) const LISTED: &str = page!(
    from: "json_each(?9) s CROSS JOIN version v CROSS JOIN ehr e WHERE v.id = s.value AND v.id > ?4 AND v.id <= ?5",
    condition: "v.profile IN (SELECT value FROM json_each(?1))",
    rest: " AND e.id = v.ehr AND e.id > 0 AND (e.id, v.id) > (?11, ?12)",
    order: "ehr, id",
    outer: "p.ehr, p.id"
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
        .bind(page_bounds.last.ehr)
        .bind(page_bounds.last.version)
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
    pub last: LastVersion,
}

/// The last EHR of the page before, and its last version there.
#[derive(Clone, Copy, Default)]
pub(super) struct LastVersion {
    pub ehr: u64,
    /// [`NO_BOUND`] if the EHR has no documents.
    pub version: u64,
}

impl PageBounds {
    pub fn between(after: u64, until: u64) -> PageBounds {
        PageBounds {
            after,
            until,
            last: LastVersion::default(),
        }
    }

    /// Continues after a version of an EHR, or after an EHR without versions.
    pub fn continue_after(&mut self, last: LastVersion) {
        if last.version == NO_BOUND {
            (self.after, self.last) = (last.ehr, LastVersion::default());
        } else {
            (self.after, self.last) = (last.ehr.saturating_sub(1), last);
        }
    }
}
