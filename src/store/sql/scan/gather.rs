//! Reading the documents of a range of ids into one batch, which becomes a segment.

use super::BatchBuilder;
use super::page::{BY_EHR, BY_ID, BY_PROFILE, PageBounds, PageSize, page};
use super::rows::{ScanPage, ScanRow};
use crate::document::Batch;
use crate::store::repository::{Sink, StoreError};
use crate::store::scan::Scan;
use crate::store::sql::SqlRepository;
use crate::store::sql::value::{Sql, unexpected};

/// The documents of a range of ids, as one batch.
#[derive(Default)]
pub(in crate::store::sql) struct GatheredBatch {
    pub batch: Batch,
    /// The ids of its EHRs, indexed by their numbers.
    pub ehrs: Vec<u64>,
    /// The last id of the range that was read.
    pub end: u64,
    /// The number of pages.
    pub pages: u64,
}

impl<S: Sql> SqlRepository<S> {
    /// Reads the documents of a scan with ids above `after` and up to `until`, in the state up to
    /// `newest`, into an empty batch. A scan of EHRs alone reads the EHRs with such ids. Ends early
    /// when they take about `most` bytes of memory. `None` if the sink has no memory for them.
    pub(in crate::store::sql) async fn gather(
        &self,
        scan: &Scan,
        (after, until, newest): (u64, u64, u64),
        (batch, most): (Batch, usize),
        sink: Sink<'_>,
    ) -> Result<Option<GatheredBatch>, StoreError> {
        let matching = self.catalog.matching(scan);
        let query = match scan {
            _ if scan.empty_ehrs => BY_EHR,
            // A scan for a segment selects almost every document of the range.
            _ if scan.unqueryable => BY_ID,
            _ => BY_PROFILE,
        };
        let (mut size, mut builder) = (
            PageSize::ALL,
            BatchBuilder {
                batch,
                ..BatchBuilder::default()
            },
        );
        let (mut end, mut pages) = (after, 0);
        while end < until && builder.batch.encoding_bytes() < most {
            let to = (end + size.range).min(until);
            let page_bounds = PageBounds::between(end, to);
            let bounds = (newest, &size);
            let statement = page(query, scan, &matching, &page_bounds, bounds, None);
            let page = ScanPage::of(self.rows(statement).await?, size.rows)?;
            page.check(&page_bounds, scan.empty_ehrs)?;
            let (rows, bytes) = (page.rows.len() as u64, page.bytes());
            let reached = match page.rows.last().filter(|_| page.is_cut) {
                Some(ScanRow { ehr, doc: None, .. }) => *ehr,
                Some(ScanRow { doc: Some(doc), .. }) => doc.row.ordinal,
                None => to,
            };
            pages += 1;
            if !self.add(&mut builder, page.rows, scan, 0, sink).await? {
                return Ok(None);
            }
            size.learn(rows, bytes, reached - end, false);
            end = reached;
            sink.pause().await;
        }
        let BatchBuilder { batch, numbers } = builder;
        let mut ehrs = vec![0; numbers.len()];
        for (id, number) in numbers {
            *ehrs.get_mut(number as usize).ok_or_else(unexpected)? = id;
        }
        Ok(Some(GatheredBatch {
            batch,
            ehrs,
            end,
            pages,
        }))
    }
}
