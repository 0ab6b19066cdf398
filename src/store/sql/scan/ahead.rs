//! The first page of rows behind the segments, read together with the manifest.
//!
//! The query before has shown up to which id segments reach. A query requests the page behind that
//! id in its first batch of statements, so that it needs no second round trip. The page is used
//! only if the manifest confirms the id.

use super::{NO_BOUND, PageBounds, PageSize, ScanPage, is_by_ehr, page, population_query};
use crate::store::repository::StoreError;
use crate::store::scan::Scan;
use crate::store::sql::catalog::MatchingProfiles;
use crate::store::sql::value::{Row, Statement};

/// A page that was requested ahead.
pub(super) struct Ahead<'s> {
    scan: &'s Scan,
    matching: MatchingProfiles,
    /// The page begins after this id.
    after: u64,
    page: Option<ScanPage>,
}

impl<'s> Ahead<'s> {
    /// Creates the page after an id; `None` for a scan that names EHRs or an older state, whose
    /// rows are read in other ways.
    pub fn of(scan: &'s Scan, matching: MatchingProfiles, after: u64) -> Option<Ahead<'s>> {
        let is_newest = scan.ehrs.is_none() && scan.snapshot.is_none();
        is_newest.then_some(Ahead {
            scan,
            matching,
            after,
            page: None,
        })
    }

    /// The statement that reads it. Its batch reads the newest state, so no version is too new.
    pub fn statement(&self) -> Statement {
        let size = self.size();
        let bounds = PageBounds::between(self.after, self.after + size.range);
        let query = population_query(is_by_ehr(self.scan));
        let limits = (NO_BOUND, &size);
        page(query, self.scan, &self.matching, &bounds, limits, None)
    }

    fn size(&self) -> PageSize {
        PageSize::first(is_by_ehr(self.scan))
    }

    /// Reads the rows of the statement.
    ///
    /// # Errors
    /// If the rows are not as expected.
    pub fn read(&mut self, rows: Vec<Row>) -> Result<(), StoreError> {
        self.page = Some(ScanPage::of(rows, self.size().rows)?);
        Ok(())
    }

    /// The page, if it is the first one after an id with these profiles: the batch may have brought
    /// new ones, and a compaction or a deletion may have changed the segments.
    pub fn page(self, after: u64, matching: &MatchingProfiles) -> Option<ScanPage> {
        let is_same = self.after == after && self.matching.profiles == matching.profiles;
        self.page.filter(|_| is_same)
    }
}
