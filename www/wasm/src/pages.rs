//! Results in pages of rows. All pages show the state of the data that the first one read.

use super::{Repository, Rows, error, stopping};
use aqlite::aql::Page;
use aqlite::store::scan::Snapshot;
use js_sys::Function;
use wasm_bindgen::prelude::*;

/// A query whose rows are read page by page.
#[wasm_bindgen]
pub struct Pages {
    q: String,
    parameters: String,
    /// The present time of all pages.
    now: String,
    /// The state of the first page, once it was read.
    snapshot: Option<Snapshot>,
    /// The number of rows of the pages so far.
    sent: u64,
    is_done: bool,
}

#[wasm_bindgen]
impl Pages {
    /// Prepares a query. Its arguments are those of [`Repository::rows`].
    #[wasm_bindgen(constructor)]
    pub fn new(q: String, parameters: String, now: String) -> Pages {
        Pages {
            q,
            parameters,
            now,
            snapshot: None,
            sent: 0,
            is_done: false,
        }
    }
}

#[wasm_bindgen]
impl Repository {
    /// Returns the next page, of `rows` rows at most; `undefined` after the last one. The first page
    /// may be empty.
    ///
    /// # Errors
    ///
    /// As [`Repository::rows`]; the same page can then be read again, in fewer rows for instance.
    /// The state of the first page does not exist any more.
    pub fn page(
        &self,
        pages: &mut Pages,
        rows: u32,
        stopped: &Function,
    ) -> Result<Option<Rows>, JsValue> {
        if pages.is_done {
            return Ok(None);
        }
        let page = Page {
            offset: pages.sent,
            // One row more shows whether there is another page.
            rows: u64::from(rows) + 1,
        };
        let plan = self.plan(&pages.q, &pages.parameters, Some(page))?;
        let stopped = stopping(stopped);
        let (mut result, snapshot) = self.execute(&plan, &pages.now, pages.snapshot, &stopped)?;
        let rows = usize::try_from(rows).map_err(error::of_argument)?;
        pages.is_done = result.len() <= rows;
        result.truncate(rows);
        pages.sent += result.len() as u64;
        pages.snapshot = Some(snapshot);
        Ok(Some(Rows(result)))
    }
}
