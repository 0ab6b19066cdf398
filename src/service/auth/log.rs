//! The access log: a record of every request that needs a permission, including rejected ones.
//!
//! No response is sent before its record is written. If the log fails, the response is 503 and
//! contains no data. The record of a change set is part of its transaction. An operation of an
//! administrator is also recorded before it begins. Requests that are rejected before
//! authentication are counted ([`super::refusals`]).

use super::super::call::Call;
use super::super::error::Failure;
use super::super::time::time_of;
use super::super::{Auth, Request, Response, Service};
use super::trail::AccessTrail;
use crate::store::repository::{AccessFilter, AccessRecord, Repository};
use serde_json::{Value, json};

/// Records of a page by default.
const PAGE: u64 = 100;

impl<R: Repository> Service<R> {
    pub(crate) fn keeps_log(&self) -> bool {
        self.config.log && self.config.auth != Auth::Refuse
    }

    /// Records the operation of an administrator before it begins.
    pub(crate) async fn record_before(&self, trail: &AccessTrail) -> Result<(), Failure> {
        if !(self.keeps_log() && trail.is_administrative.get()) {
            return Ok(());
        }
        self.repository
            .log_accesses(trail.records(102))
            .await
            .map_err(|_| unwritten())
    }

    /// Records the response to a request. If that fails, returns an error response instead.
    pub(crate) async fn record_after(
        &self,
        request: &Request,
        trail: &AccessTrail,
        response: Response,
    ) -> Response {
        // The response to an error after a commit is recorded too.
        let is_recorded = trail.is_recorded.get() || request.part.is_some();
        let already_recorded = is_recorded && response.status < 400;
        if !self.keeps_log() || already_recorded || trail.line.borrow().operation.is_empty() {
            return response;
        }
        let now = trail.now.get();
        if response.status >= 400 && !trail.is_authenticated.get() {
            // One record for each request: its sender controls how many EHRs it names.
            for line in trail.records(response.status).into_iter().take(1) {
                self.record_refusal(line, now).await;
            }
            return response;
        }
        self.flush_refusals(now, false).await;
        match self
            .repository
            .log_accesses(trail.records(response.status))
            .await
        {
            Ok(()) => response,
            Err(_) => unwritten().into_response(request),
        }
    }

    /// GET /admin/access-log?from=…&to=…&ehr_id=…&who=…&after=…&fetch=…
    pub(crate) async fn access_log(&self, call: &Call<'_>) -> Result<Response, Failure> {
        super::super::negotiate::choose(call.request, &["application/json"])?;
        let text = |key: &str| call.request.query_value(key).filter(|v| !v.is_empty());
        let time = |key: &str| text(key).map(|value| time_of(key, value)).transpose();
        let (from, to) = (time("from")?, time("to")?);
        let limit = call.request.page_size("fetch", PAGE)?;
        let ehr_id = text("ehr_id").map(str::to_ascii_lowercase);
        let filter = AccessFilter {
            from: from.as_deref(),
            to: to.as_deref(),
            ehr_id: ehr_id.as_deref(),
            who: text("who"),
            after: text("after").map_or(Ok(0), position)?,
            limit,
        };
        // Writes the counts of the last minute first, so that the log is complete.
        self.flush_refusals(call.now, true).await;
        let found = self
            .repository
            .accesses(&filter)
            .await
            .map_err(Failure::of_store)?;
        let full = u64::try_from(found.len()).is_ok_and(|n| n == limit);
        let next = found.last().map(|(number, _)| *number).filter(|_| full);
        let entries: Vec<Value> = found
            .iter()
            .map(|(number, access)| shown(*number, access))
            .collect();
        Ok(Response::json(
            200,
            json!({ "entries": entries, "next": next }),
        ))
    }
}

/// Reads `after`: the number of the last record that was read.
fn position(text: &str) -> Result<u64, Failure> {
    let number = text.parse();
    number.map_err(|_| Failure::bad_request("`after` is not a whole number from 0"))
}

fn unwritten() -> Failure {
    Failure::unavailable(
        "the access log cannot be written, so nothing is answered; try again later",
    )
}

fn shown(number: u64, access: &AccessRecord) -> Value {
    json!({
        "number": number,
        "time": access.time,
        "who": access.who,
        "issuer": access.issuer,
        "operation": access.operation,
        "object": access.object,
        "ehr_id": access.ehr_id,
        "query": access.query,
        "status": access.status,
        "request_id": access.request_id,
        "requests": access.refused.unwrap_or(1),
    })
}
