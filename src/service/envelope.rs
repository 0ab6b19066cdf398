//! The commit data that the changes of one request share: time, commit metadata of the headers, and
//! the parts of versions around their documents.

use super::Request;
use super::committal::{Audit, CommitMetadata};
use super::error::Failure;
use super::time::iso;
use crate::rm::class::Cls;
use crate::rm::json;
use crate::rm::tree::Tree;
use crate::store::canonical::reference;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// Data that the changes of one request share, computed once.
#[derive(Default)]
pub(crate) struct SharedCommitData {
    time: RefCell<Option<Rc<str>>>,
    headers: OnceCell<CommitMetadata>,
    last: RefCell<Option<Rc<Envelope>>>,
}

/// The parts that versions with the same audit have in common.
pub(crate) struct Envelope {
    audit: Audit,
    /// The AUDIT_DETAILS as canonical JSON.
    pub audit_json: String,
    /// An ORIGINAL_VERSION without data, uid and contribution.
    pub version: Tree,
}

impl SharedCommitData {
    /// Returns the time of the changes, ISO 8601.
    pub fn time(&self, now: i64) -> Rc<str> {
        let mut time = self.time.borrow_mut();
        Rc::clone(time.get_or_insert_with(|| iso(now).into()))
    }

    /// Makes the time of the changes no earlier than that of a version that they follow, in the
    /// form of [`iso`]. The clock of the instance that wrote it may be ahead, and an import keeps
    /// times.
    pub fn follow(&self, now: i64, time: &str) {
        if *self.time(now) < *time {
            self.time.replace(Some(time.into()));
            self.last.replace(None);
        }
    }

    /// Returns the committal headers of the request.
    pub fn headers(&self, request: &Request) -> Result<&CommitMetadata, Failure> {
        if let Some(stated) = self.headers.get() {
            return Ok(stated);
        }
        let stated = CommitMetadata::of_headers(request)?;
        Ok(self.headers.get_or_init(|| stated))
    }

    /// Returns the parts of versions with an audit, whose AUDIT_DETAILS `to_json` returns.
    ///
    /// # Errors
    /// 400 if the audit breaks a rule of the Reference Model.
    pub fn envelope(
        &self,
        audit: &Audit,
        to_json: impl FnOnce() -> String,
    ) -> Result<Rc<Envelope>, Failure> {
        let last = self.last.borrow().clone();
        // The members of a bulk load usually have the same audit one after the other.
        if let Some(last) = last.filter(|last| last.audit == *audit) {
            return Ok(last);
        }
        let made = Rc::new(Envelope::new(audit, to_json())?);
        self.last.replace(Some(Rc::clone(&made)));
        Ok(made)
    }
}

impl Envelope {
    fn new(audit: &Audit, audit_json: String) -> Result<Envelope, Failure> {
        let (contribution, lifecycle) = (
            reference("HIER_OBJECT_ID", "", "CONTRIBUTION"),
            audit.lifecycle.to_json(),
        );
        let text = format!(
            r#"{{"_type":"ORIGINAL_VERSION","contribution":{contribution},"commit_audit":{audit_json},"uid":{{"_type":"OBJECT_VERSION_ID","value":""}},"lifecycle_state":{lifecycle}}}"#
        );
        let version = json::read(&text, Cls::ORIGINAL_VERSION)
            .map_err(|findings| Failure::unreadable("version", &findings))?;
        Ok(Envelope {
            audit: audit.clone(),
            audit_json,
            version,
        })
    }
}
