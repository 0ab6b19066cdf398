//! Scans of listed documents: those that a join needs, as the evaluation of segments has found
//! them.

use super::{
    BatchBuilder, LISTED, NO_BOUND, PAGE_ROWS, PageBounds, PageSize, ScanPage, json_list, page,
};
use crate::store::repository::{Sink, StoreError};
use crate::store::scan::{Scan, Snapshot};
use crate::store::sink::ScanReads;
use crate::store::sql::SqlRepository;
use crate::store::sql::value::Sql;

/// Documents after which a list ends with the present EHR. The documents of one EHR are never
/// split, so a list may have more.
const LIST: usize = 500;

impl<S: Sql> SqlRepository<S> {
    /// Sends documents by their ordinals, given for each EHR, in batches of whole EHRs. Returns
    /// whether the sink wants more.
    pub(in crate::store::sql) async fn send_listed(
        &self,
        (scan, state): (&Scan, Snapshot),
        documents: &[Vec<u64>],
        reads: &mut ScanReads,
        sink: Sink<'_>,
    ) -> Result<bool, StoreError> {
        let mut rest = documents.iter();
        loop {
            let mut list: Vec<u64> = Vec::new();
            while list.len() < LIST
                && let Some(of_ehr) = rest.next()
            {
                list.extend(of_ehr);
            }
            if list.is_empty() {
                return Ok(true);
            }
            let list = json_list(&list);
            if !self.send_list((scan, state), &list, reads, sink).await? {
                return Ok(false);
            }
        }
    }

    /// Sends the documents of a list in JSON, page by page.
    async fn send_list(
        &self,
        (scan, state): (&Scan, Snapshot),
        list: &str,
        reads: &mut ScanReads,
        sink: Sink<'_>,
    ) -> Result<bool, StoreError> {
        let matching = self.catalog.matching(scan);
        let mut builder = BatchBuilder::default();
        let mut bounds = PageBounds::between(0, NO_BOUND);
        loop {
            sink.pause().await;
            let size = (state.version, &PageSize::ALL);
            let statement = page(LISTED, scan, &matching, &bounds, size, Some(list));
            let page = ScanPage::of(self.rows(statement).await?, PAGE_ROWS)?;
            page.check(&bounds, true)?;
            reads.pages += 1;
            reads.rows += page.rows.len() as u64;
            let (end, open) = (page.end().filter(|_| page.is_cut), bounds.last.ehr);
            if !self.take(&mut builder, page, scan, open, sink).await? {
                return Ok(false);
            }
            match end {
                Some(end) => bounds.last = end,
                None => return Ok(true),
            }
        }
    }
}
