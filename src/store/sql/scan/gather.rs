//! Reading the documents of a range of ids into one batch, which becomes a segment.

use super::BatchBuilder;
use super::page::{BY_EHR, BY_ID, BY_PROFILE, PageBounds, PageSize, page};
use super::rows::ScanPage;
use crate::document::Batch;
use crate::store::repository::{Sink, StoreError};
use crate::store::scan::Scan;
use crate::store::sql::SqlRepository;
use crate::store::sql::value::{Sql, unexpected};
use std::collections::HashMap;

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

/// The bounds of the documents that are read into one batch.
pub(in crate::store::sql) struct GatherBounds {
    /// The ids begin after this one.
    pub after: u64,
    /// The last id.
    pub until: u64,
    /// The newest version of the state that is read.
    pub newest: u64,
}

impl<S: Sql> SqlRepository<S> {
    /// Reads the documents of a scan within bounds into an empty batch. A scan of EHRs alone reads
    /// the EHRs with such ids. Ends early when they take about `most` bytes of memory. `None` if
    /// the sink has no memory for them.
    pub(in crate::store::sql) async fn gather(
        &self,
        scan: &Scan,
        bounds: GatherBounds,
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
        let mut size = PageSize::ALL;
        let mut builder = BatchBuilder {
            batch,
            ..BatchBuilder::default()
        };
        let (mut end, mut pages) = (bounds.after, 0);
        while end < bounds.until && builder.batch.encoding_bytes() < most {
            let to = (end + size.range).min(bounds.until);
            let page_bounds = PageBounds::between(end, to);
            let limits = (bounds.newest, &size);
            let statement = page(query, scan, &matching, &page_bounds, limits, None);
            let page = ScanPage::of(self.rows(statement).await?, size.rows)?;
            page.check(&page_bounds, scan.empty_ehrs)?;
            let (rows, bytes) = (page.rows.len() as u64, page.bytes());
            let reached = last_id(&page).unwrap_or(to);
            pages += 1;
            if !self.add(&mut builder, page.rows, scan, 0, sink).await? {
                return Ok(None);
            }
            size.learn(rows, bytes, reached - end, false);
            end = reached;
            sink.pause().await;
        }
        Ok(Some(GatheredBatch {
            ehrs: ids_by_number(builder.numbers)?,
            batch: builder.batch,
            end,
            pages,
        }))
    }
}

/// Returns the id up to which a page that was cut has read its range; `None` if it was not cut.
fn last_id(page: &ScanPage) -> Option<u64> {
    let last = page.rows.last().filter(|_| page.is_cut)?;
    Some(match &last.doc {
        Some(doc) => doc.row.ordinal,
        None => last.ehr,
    })
}

/// Returns the ids of EHRs, indexed by their numbers in a batch.
fn ids_by_number(numbers: HashMap<u64, u32>) -> Result<Vec<u64>, StoreError> {
    let mut ids = vec![0; numbers.len()];
    for (id, number) in numbers {
        *ids.get_mut(number as usize).ok_or_else(unexpected)? = id;
    }
    Ok(ids)
}
