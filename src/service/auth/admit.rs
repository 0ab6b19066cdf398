//! What must hold before anything is read: the caller is known, has leave, and the request is not too large.

use super::super::error::Failure;
use super::super::route::{Found, Operation};
use super::super::{Auth, Request, Service};
use super::caller::{Caller, Denied, Subject};
use super::scope::{Act, Need, Resource};
use crate::document::ObjectKind;
use crate::store::repository::Repository;

impl<R: Repository> Service<R> {
    /// The caller, who may do this, as far as the request line tells.
    pub(crate) fn admit<'a>(&'a self, request: &Request, found: &Found, caller: Result<&'a Caller, &Denied>) -> Result<&'a Caller, Failure> {
        let caller = match self.config.auth {
            Auth::Refuse => return Err(Denied::unconfigured().failure()),
            Auth::Open => &self.everyone,
            Auth::Known => caller.map_err(Denied::failure)?,
        };
        check_leave(found, caller)?;
        if found.route.need.resource == Resource::Admin && !self.config.admin {
            return Err(Failure::new(403, "administration is switched off: start the service with `--admin` to use it"));
        }
        if request.body.len() > self.config.limits.body {
            return Err(Failure::too_large("body", self.config.limits.body));
        }
        Ok(caller)
    }
}

fn check_leave(found: &Found, caller: &Caller) -> Result<(), Failure> {
    let (need, subject) = (found.route.need, subject(found));
    // The definition of a stored query may be shown where its execution may not.
    let shows = Need { act: Act::Read, ..need };
    if found.route.operation == Operation::QueryStored && found.dialect.detail_and_result() && caller.may(shows, subject) {
        return Ok(());
    }
    match found.named(&["ehr_id"]) {
        Some(ehr) if matches!(need.resource, Resource::Record | Resource::Guide) => caller.within(need, subject, ehr),
        _ => caller.reach(need, subject).map(|_| ()),
    }
}

/// What the request line tells about the thing that leave is needed for.
fn subject(found: &Found) -> Subject<'_> {
    let of_compositions = match found.route.operation {
        Operation::Create(what) | Operation::Read(what) | Operation::Update(what) | Operation::Delete(what) | Operation::Versioned(what, _) => {
            what.kind == ObjectKind::Composition
        }
        operation => operation == Operation::ContributionCreate,
    };
    match found.route.need.resource {
        Resource::Record if of_compositions => Subject::Some,
        Resource::Record => Subject::Nameless,
        _ if found.route.operation == Operation::QueryAdHoc => Subject::Nameless,
        _ if found.route.operation == Operation::QueryList => Subject::Some,
        Resource::Template | Resource::Query | Resource::Guide => found.named(&["id", "name", "guide_id"]).map_or(Subject::Some, Subject::Named),
        Resource::Party | Resource::Admin | Resource::Log => Subject::Some,
    }
}
