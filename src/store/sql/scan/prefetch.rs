//! The prefetch of the first page of rows behind the segments, which is read with the manifest.
//!
//! The cache knows up to which id the segments reached in the last query. A query requests the page
//! behind that id in its first batch of statements, so that it needs no second round trip. The page
//! is used only if the manifest confirms the id.

use super::{NO_BOUND, PageBounds, PageSize, ScanPage, is_by_ehr, page, population_query};
use crate::store::repository::StoreError;
use crate::store::scan::Scan;
use crate::store::sql::catalog::MatchingProfiles;
use crate::store::sql::value::{Row, Statement};

/// A page that was prefetched.
pub(super) struct PrefetchedPage {
    pub page: ScanPage,
    /// The last id of its range. Rows with higher ids are on later pages.
    pub until: u64,
}

/// The prefetch of the first page of rows behind the segments, which is read with the manifest.
pub(super) struct PagePrefetch<'s> {
    scan: &'s Scan,
    matching: MatchingProfiles,
    /// The page begins after this id.
    after: u64,
    page: Option<ScanPage>,
}

impl<'s> PagePrefetch<'s> {
    /// Creates the page after an id; `None` for a scan that names EHRs or an older state, whose
    /// rows are read in other ways.
    pub fn of(scan: &'s Scan, matching: MatchingProfiles, after: u64) -> Option<PagePrefetch<'s>> {
        let is_newest = scan.ehrs.is_none() && scan.snapshot.is_none();
        is_newest.then_some(PagePrefetch {
            scan,
            matching,
            after,
            page: None,
        })
    }

    /// Returns the statement that reads the page. Its batch reads the newest state, so no version
    /// is too new.
    pub fn statement(&self) -> Statement {
        let size = self.size();
        let bounds = PageBounds::between(self.after, self.until());
        let query = population_query(is_by_ehr(self.scan));
        let limits = (NO_BOUND, &size);
        page(query, self.scan, &self.matching, &bounds, limits, None)
    }

    /// Returns the last id of the range of the page.
    fn until(&self) -> u64 {
        self.after + self.size().range
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

    /// Returns the page if it is the first one after an id with these profiles; `None` if not. The
    /// batch may have brought new profiles, and a compaction or a deletion may have changed the
    /// segments.
    pub fn page(self, after: u64, matching: &MatchingProfiles) -> Option<PrefetchedPage> {
        let is_same = self.after == after && self.matching.profiles == matching.profiles;
        let until = self.until();
        let page = self.page.filter(|_| is_same)?;
        Some(PrefetchedPage { page, until })
    }
}
