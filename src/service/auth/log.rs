//! The access log: a record of every request that needs a permission, including rejected ones.
//!
//! No response is sent before its record is written. If the log fails, the response is 503 and
//! contains no data. The record of a change set is part of its transaction. An operation of an
//! administrator is also recorded before it begins. Requests that are rejected before
//! authentication are counted ([`super::refusals`]).

use super::super::call::Call;
use super::super::error::Failure;
use super::super::ids::is_uuid;
use super::super::route::MatchedRoute;
use super::super::time::{iso, time_of};
use super::super::{Auth, Request, Response, Service};
use super::caller::Caller;
use super::scope::Resource;
use crate::store::repository::{AccessFilter, AccessRecord, Repository};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};

/// Records of a page by default, and the maximum.
const PAGE: u64 = 100;
const LONGEST_PAGE: u64 = 1000;
/// The maximum number of characters of the name of an object in the log.
const LONGEST_NAME: usize = 200;

/// The data of a request in progress for its records in the log.
#[derive(Default)]
pub(crate) struct AccessTrail {
    line: RefCell<AccessRecord>,
    ehrs: RefCell<Vec<String>>,
    is_administrative: Cell<bool>,
    /// Whether the caller is authenticated, or authentication is off.
    is_authenticated: Cell<bool>,
    now: Cell<i64>,
    /// Whether a change set included its record.
    is_recorded: Cell<bool>,
}

impl AccessTrail {
    /// Records the operation of the request.
    pub fn set_route(&self, request: &Request, found: &MatchedRoute, now: i64) {
        self.is_administrative
            .set(found.route.permission.resource == Resource::Admin);
        self.now.set(now);
        let names = found
            .others()
            .join("/")
            .chars()
            .take(LONGEST_NAME)
            .collect::<String>();
        self.line.replace(AccessRecord {
            time: iso(now),
            operation: format!("{} {}", found.route.method, found.route.pattern),
            object: Some(names).filter(|n| !n.is_empty()),
            request_id: request.id().to_owned(),
            ..AccessRecord::default()
        });
        if let Some(ehr) = found.named(&["ehr_id"]) {
            self.add_ehr(ehr);
        }
    }

    /// Records the caller of the request.
    pub fn set_caller(&self, caller: &Caller) {
        self.is_authenticated.set(true);
        let mut line = self.line.borrow_mut();
        line.who.clone_from(&caller.name);
        line.issuer.clone_from(&caller.issuer);
    }

    /// Records an EHR of the request, if this is the id of one.
    pub fn add_ehr(&self, ehr_id: &str) {
        let (ehr_id, mut ehrs) = (ehr_id.to_ascii_lowercase(), self.ehrs.borrow_mut());
        if is_uuid(&ehr_id) && !ehrs.contains(&ehr_id) {
            ehrs.push(ehr_id);
        }
    }

    /// Records the digest of the query.
    pub fn set_query(&self, digest: &str) {
        self.line.borrow_mut().query = Some(digest.to_owned());
    }

    /// Returns the record of a change set, which is written with it.
    pub fn commit_record(&self, ehr_id: &str, object: &str, status: u16) -> AccessRecord {
        self.is_recorded.set(true);
        let ehr_id = Some(ehr_id.to_owned()).filter(|id| !id.is_empty());
        AccessRecord {
            object: Some(object.to_owned()),
            ehr_id,
            status,
            ..self.line.borrow().clone()
        }
    }

    /// Returns a record for each EHR, or one. The name in a rejected request may be any text, so it
    /// is not stored.
    fn records(&self, status: u16) -> Vec<AccessRecord> {
        let line = self.line.borrow();
        // A rejected request may carry any text in its path, even a clinical one.
        let object = line.object.clone().filter(|_| status < 400);
        let of = |ehr_id: Option<&String>| AccessRecord {
            object: object.clone(),
            ehr_id: ehr_id.cloned(),
            status,
            ..line.clone()
        };
        match self.ehrs.borrow().as_slice() {
            [] => vec![of(None)],
            ehrs => ehrs.iter().map(|ehr| of(Some(ehr))).collect(),
        }
    }
}

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
        // A commit that failed after all has rolled back its record too.
        let already_recorded = trail.is_recorded.get() && response.status < 400;
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
        let number = |key: &str, otherwise: u64| {
            let read = |value: &str| {
                value.parse().map_err(|_| {
                    Failure::bad_request(format!("`{key}` is not a whole number from 0"))
                })
            };
            text(key).map_or(Ok(otherwise), read)
        };
        let (from, to, limit) = (
            time("from")?,
            time("to")?,
            number("fetch", PAGE)?.min(LONGEST_PAGE),
        );
        let ehr_id = text("ehr_id").map(str::to_ascii_lowercase);
        let filter = AccessFilter {
            from: from.as_deref(),
            to: to.as_deref(),
            ehr_id: ehr_id.as_deref(),
            who: text("who"),
            after: number("after", 0)?,
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
