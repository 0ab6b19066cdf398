//! Results that are kept for several forms of output, and results in pages of rows. All pages show
//! the state of the data that the first one read.

use super::{Repository, error, outcome_of};
use aqlite::aql::{CsvOptions, Page, Plan, QueryError, ResultSet};
use aqlite::service::json_head;
use aqlite::store::scan::Snapshot;
use js_sys::Function;
use std::task::Poll;
use wasm_bindgen::prelude::*;

/// The rows of a query.
#[wasm_bindgen]
pub struct Rows(ResultSet);

#[wasm_bindgen]
impl Rows {
    /// Returns the form of [`Repository::begin`].
    pub fn json(&self) -> String {
        let mut out = json_head(&self.0);
        self.0.write_rows(&mut out);
        out.push('}');
        out
    }

    /// Returns RFC 4180. With `guard`, spreadsheets do not interpret texts as formulas.
    pub fn csv(&self, guard: bool) -> String {
        self.0.to_csv(CsvOptions { guard })
    }

    /// Returns one object per line.
    pub fn ndjson(&self) -> String {
        self.0.to_ndjson()
    }
}

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
    /// Runs a query and keeps the rows for several forms of output. `stopped` is called from time
    /// to time. If it returns true, the run ends.
    ///
    /// # Errors
    ///
    /// As [`Repository::begin`], and if the run was stopped.
    pub fn rows(
        &self,
        q: &str,
        parameters: &str,
        now: &str,
        stopped: &Function,
    ) -> Result<Rows, JsValue> {
        let plan = self.plan(q, parameters, None)?;
        let (rows, _) = self.execute(plan, now, None, &stopping(stopped))?;
        Ok(Rows(rows))
    }

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
        let (mut result, snapshot) = self.execute(plan, &pages.now, pages.snapshot, &stopped)?;
        let rows = usize::try_from(rows).map_err(error::of_argument)?;
        pages.is_done = result.len() <= rows;
        result.truncate(rows);
        pages.sent += result.len() as u64;
        pages.snapshot = Some(snapshot);
        Ok(Some(Rows(result)))
    }
}

impl Repository {
    /// Runs a plan at once. Returns the state that was read, too.
    fn execute(
        &self,
        plan: Plan,
        now: &str,
        snapshot: Option<Snapshot>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(ResultSet, Snapshot), JsValue> {
        let mut steps = self.steps(plan, now, snapshot)?;
        loop {
            match steps.step() {
                Poll::Ready(outcome) => return outcome_of(outcome),
                Poll::Pending if stopped() => return Err(error::of_run(&QueryError::Stopped)),
                Poll::Pending => {}
            }
        }
    }
}

/// Returns a function that calls a function of JavaScript. An exception there ends the run.
fn stopping(stopped: &Function) -> impl Fn() -> bool {
    || {
        stopped
            .call0(&JsValue::NULL)
            .map_or(true, |answer| answer.is_truthy())
    }
}
