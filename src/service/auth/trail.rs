//! The data of a request in progress for its records in the access log.

use super::super::Request;
use super::super::ids::is_uuid;
use super::super::route::MatchedRoute;
use super::super::time::iso;
use super::caller::Caller;
use super::scope::Resource;
use crate::store::repository::AccessRecord;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;

/// The maximum number of characters of the name of an object in the log.
const MAX_NAME: usize = 200;

/// The data of a request in progress for its records in the log.
#[derive(Default)]
pub(crate) struct AccessTrail {
    pub(super) line: RefCell<AccessRecord>,
    ehrs: RefCell<Vec<String>>,
    /// The same ids, for lookups: a request can name tens of thousands.
    known_ehrs: RefCell<HashSet<String>>,
    pub(super) is_administrative: Cell<bool>,
    /// Whether the caller is authenticated, or authentication is off.
    pub(super) is_authenticated: Cell<bool>,
    pub(super) now: Cell<i64>,
    /// Whether a change set was committed, and its record with it.
    pub(super) is_recorded: Cell<bool>,
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
            .take(MAX_NAME)
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
        let ehr_id = ehr_id.to_ascii_lowercase();
        if is_uuid(&ehr_id) && self.known_ehrs.borrow_mut().insert(ehr_id.clone()) {
            self.ehrs.borrow_mut().push(ehr_id);
        }
    }

    /// Records the digest of the query.
    pub fn set_query(&self, digest: &str) {
        self.line.borrow_mut().query = Some(digest.to_owned());
    }

    /// Notes that a change set of the request was committed with its record. The record of one that
    /// was rolled back is lost.
    pub fn set_recorded(&self) {
        self.is_recorded.set(true);
    }

    /// Returns the record of a change set, which is written with it.
    pub fn commit_record(&self, ehr_id: &str, object: &str, status: u16) -> AccessRecord {
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
    #[cfg(feature = "server")]
    pub(super) fn records(&self, status: u16) -> Vec<AccessRecord> {
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
