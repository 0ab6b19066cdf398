//! Results with more rows than a page: newline-delimited JSON and tables, sent in parts.
//!
//! A host that sends bodies in parts sends the same request once for each part
//! ([`super::super::http::Response::rest`]). All parts show the state of the first one. So a result
//! needs the memory of one part, and other requests have their turn between parts.

use super::super::call::Call;
use super::super::error::Failure;
use super::super::http::RowPart;
use super::super::negotiate::NegotiatedFormat;
use super::super::page_state::PageState;
use super::super::parameters::QueryRequest;
#[cfg(feature = "arrow")]
use super::super::table::{Pass, TablePart};
use super::QueryResult;
use crate::aql::ResultSet;
use crate::aql::query::Query;
use crate::service::Limits;

/// The rows of the first part, which a client receives before the next ones are found.
const FIRST_ROWS: u64 = 2_000;

/// The rows of a part for each row of the part before.
const GROWTH: u64 = 5;

/// The maximum rows of a part.
const MAX_PART_ROWS: u64 = 50_000;

/// The texts of a part have at most the limit of a result divided by this number, unless the part
/// is one row. Texts grow when they are written, and the next part may have longer rows than this
/// one.
const SHARE: usize = 4;

impl RowPart {
    /// Returns the part that a call requests; `None` if its rows are a page.
    ///
    /// # Errors
    /// 400 if it requests more rows than a page, and its result cannot be sent in parts.
    pub(super) fn of(
        call: &Call<'_>,
        request: &QueryRequest,
        query: &Query,
        format: NegotiatedFormat,
    ) -> Result<Option<RowPart>, Failure> {
        let limits = &call.config.limits;
        let (page, most) = (limits.fetch_maximum, limits.stream_maximum);
        let Some(rows) = request.fetch.filter(|fetch| *fetch > page) else {
            return Ok(None);
        };
        let is_found_order = query.keeps_found_order();
        // The message is the same on every host, so it names those that send bodies in parts.
        let refusal = if most <= page {
            String::new()
        } else if !call.sends_parts || !format.has_parts() || !is_found_order {
            format!(
                "; a server answers up to {most} rows with `Accept: application/x-ndjson`, to a query without ORDER BY, DISTINCT, TOP and aggregates"
            )
        } else if rows > most {
            format!("; in parts, {most} rows are the most")
        } else {
            let first = RowPart {
                sent: 0,
                rows: FIRST_ROWS.min(page),
                snapshot: request.snapshot.map(|state| state.to_string()),
                #[cfg(feature = "arrow")]
                table: format.table().map(|_| TablePart::new()),
            };
            return Ok(Some(call.request.part.clone().unwrap_or(first)));
        };
        Err(Failure::bad_request(format!(
            "`fetch` is larger than the largest page of {page} rows{refusal}"
        )))
    }

    /// Returns the request for the page of this part.
    ///
    /// # Errors
    /// 400 if its state cannot be read.
    pub(super) fn page(&self, request: &QueryRequest) -> Result<QueryRequest, Failure> {
        let mut page = request.clone();
        page.offset = Some(request.offset.unwrap_or(0).saturating_add(self.sent));
        page.fetch = Some(self.wanted(request));
        page.snapshot = self.snapshot.as_deref().map(PageState::parse).transpose()?;
        Ok(page)
    }

    /// Returns the same part with fewer rows; `None` if it has one row.
    pub(super) fn smaller(&self) -> Option<RowPart> {
        let rows = self.rows.div_ceil(SHARE as u64);
        let smaller = RowPart {
            rows,
            ..self.clone()
        };
        (rows < self.rows).then_some(smaller)
    }

    /// Returns the part behind this one; `None` if its answer was the last.
    pub(super) fn next(
        &self,
        request: &QueryRequest,
        answer: &QueryResult,
        limits: &Limits,
    ) -> Option<RowPart> {
        let found = answer.result.len() as u64;
        let most = rows_of_same_length(&answer.result, limits.result).min(limits.fetch_maximum);
        // Not a struct expression: without the feature `arrow`, it would name every field.
        let mut next = self.clone();
        next.sent = self.sent.saturating_add(found);
        next.rows = self
            .rows
            .saturating_mul(GROWTH)
            .min(MAX_PART_ROWS)
            .min(most);
        next.snapshot = Some(answer.state.to_string());
        if self.is_last(request, answer) {
            self.second_pass(next)
        } else {
            Some(next)
        }
    }

    /// Returns whether the result ends with the rows of this part.
    pub(super) fn is_last(&self, request: &QueryRequest, answer: &QueryResult) -> bool {
        let found = answer.result.len() as u64;
        let sent = self.sent.saturating_add(found);
        let is_end = found < self.wanted(request) && !answer.is_cut;
        is_end || sent >= request.fetch.unwrap_or(0)
    }

    /// Returns the first part of the pass that writes a table, after the pass that observes it. A
    /// table that was observed in one part is written with it.
    #[cfg(feature = "arrow")]
    fn second_pass(&self, next: RowPart) -> Option<RowPart> {
        let table = self
            .table
            .as_ref()
            .filter(|table| table.pass == Pass::Observe);
        let table = table.filter(|_| self.sent > 0)?;
        Some(RowPart {
            sent: 0,
            table: Some(table.written()),
            ..next
        })
    }

    #[cfg(not(feature = "arrow"))]
    fn second_pass(&self, _: RowPart) -> Option<RowPart> {
        None
    }

    /// Returns the rows of this part, unless the result ends before.
    fn wanted(&self, request: &QueryRequest) -> u64 {
        let rest = request.fetch.unwrap_or(0).saturating_sub(self.sent);
        self.rows.min(rest)
    }
}

/// Returns the number of rows that a part may have if they are as long as those of `result`.
fn rows_of_same_length(result: &ResultSet, limit: usize) -> u64 {
    let bytes: usize = (0..result.len()).map(|row| result.row_bytes(row)).sum();
    let row = bytes.div_ceil(result.len().max(1)).max(1);
    (limit / SHARE / row).max(1) as u64
}

/// Removes the rows of a part behind those whose texts have [`SHARE`] of the largest result. One
/// row remains. Returns whether rows were removed.
pub(super) fn cut_to_bytes(result: &mut ResultSet, limit: usize) -> bool {
    let mut bytes = 0_usize;
    let rows = (0..result.len())
        .take_while(|row| {
            bytes = bytes.saturating_add(result.row_bytes(*row));
            *row == 0 || bytes <= limit / SHARE
        })
        .count();
    let is_cut = rows < result.len();
    result.truncate(rows);
    is_cut
}
