//! The context of one request: operation, caller, environment, and the construction of its
//! response.

#[cfg(feature = "server")]
use super::admission::Work;
use super::admission::{COPIES, LARGE, Turn};
use super::auth::{AccessTrail, Caller, Denied, Permission, Resource, Subject};
use super::committal::{Audit, Code, CommitMetadata};
use super::dialect::Dialect;
use super::envelope::{Envelope, SharedCommitData};
use super::error::Failure;
use super::http::encode;
use super::negotiate::{Form, Prefer, Return, choose, none_match, wanted_format};
use super::representation::Representation;
use super::representation::body_of;
use super::route::{MatchedRoute, Operation};
use super::templates::{FactSource, Templates};
use super::{Config, Environment, Request, Response};
use crate::document::ObjectKind;
use crate::rm::tree::NodeRef;
use crate::store::repository::{EarlierCommits, Pause};
use aqlite_rm::order;
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

/// A request with its operation.
pub(crate) struct Call<'a> {
    /// The HTTP request.
    pub request: &'a Request,
    /// The mount of the request.
    pub dialect: Dialect,
    /// The operation.
    pub operation: Operation,
    /// The caller.
    pub caller: &'a Caller,
    /// The permission that the operation needs.
    pub permission: Permission,
    /// Data for the access log.
    pub trail: &'a AccessTrail,
    /// The configuration of the service.
    pub config: &'a Config,
    /// The preference for the content of the response to a change.
    pub prefer: Prefer,
    /// The time of arrival: microseconds since 1970-01-01T00:00:00Z.
    pub now: i64,
    /// True below `demographic`, where the path names no EHR.
    pub demographic: bool,
    /// Whether the host sends bodies in parts.
    pub sends_parts: bool,
    params: Vec<String>,
    /// Templates that the request has looked up.
    pub templates: RefCell<Templates>,
    shared: SharedCommitData,
    environment: RefCell<&'a mut dyn Environment>,
    drawn: RefCell<DrawnUuids>,
}

/// The UUIDs that an attempt of a write has drawn. The next attempt draws the same ones, so that a
/// repetition of the request has the same result whether the first attempt succeeds or not.
#[derive(Default)]
struct DrawnUuids {
    /// Whether UUIDs are kept for the next attempt. Requests without attempts do not need them.
    are_kept: bool,
    kept: Vec<String>,
    /// The index in `kept` of the UUID that the current attempt draws next.
    next: usize,
}

/// A request before its route is known.
#[derive(Clone, Copy)]
pub(crate) struct IncomingRequest<'a> {
    /// See [`Call::request`].
    pub request: &'a Request,
    /// See [`Call::config`].
    pub config: &'a Config,
    /// See [`Call::trail`].
    pub trail: &'a AccessTrail,
    /// See [`Call::now`].
    pub now: i64,
}

/// A resource after a change.
pub(crate) struct ChangedResource<'a> {
    /// Whether it is new.
    pub created: bool,
    /// Its path below the mount.
    pub path: String,
    /// Its DV_EHR_URI, if it belongs to an EHR.
    pub uri: Option<String>,
    /// Its uid, which is its entity tag.
    pub uid: &'a str,
    /// The time of the commit, ISO 8601.
    pub time: &'a str,
    /// The resource itself; `None` for a deletion.
    pub node: Option<NodeRef<'a>>,
    /// The resource in another format, if the client prefers one.
    pub shown: Result<Option<Representation>, Failure>,
}

impl<'a> Call<'a> {
    /// Creates the call of an authorized caller.
    pub fn new(
        incoming: IncomingRequest<'a>,
        found: MatchedRoute,
        caller: &'a Caller,
        environment: &'a mut dyn Environment,
    ) -> Call<'a> {
        let IncomingRequest {
            request,
            config,
            trail,
            now,
        } = incoming;
        let MatchedRoute {
            dialect,
            route,
            params,
        } = found;
        let (operation, permission, prefer) = (
            route.operation,
            route.permission,
            Prefer::from_headers(request),
        );
        let demographic = route.pattern.starts_with("demographic/");
        Call {
            request,
            dialect,
            operation,
            caller,
            permission,
            trail,
            config,
            prefer,
            now,
            demographic,
            sends_parts: cfg!(feature = "server") && environment.sends_parts(),
            params,
            templates: RefCell::default(),
            shared: SharedCommitData::default(),
            environment: RefCell::new(environment),
            drawn: RefCell::default(),
        }
    }

    /// Returns the time of the changes of the request, ISO 8601.
    pub fn commit_time(&self) -> Rc<str> {
        self.shared.time(self.now)
    }

    /// Makes the time of the changes no earlier than that of a version that they follow.
    pub fn follow_time(&self, time_committed: &str) {
        self.shared.follow(self.now, time_committed);
    }

    /// Returns the commit metadata in the headers of the request.
    pub fn commit_headers(&self) -> Result<&CommitMetadata, Failure> {
        self.shared.headers(self.request)
    }

    /// Returns the audit of a document that is created, updated or deleted at its own URL, from the
    /// headers of the request.
    pub fn direct_audit(&self, change_type: Code) -> Result<Audit, Failure> {
        self.commit_headers()?.clone().direct_audit(change_type)
    }

    /// Returns the parts of versions with an audit.
    pub fn envelope(&self, audit: &Audit) -> Result<Rc<Envelope>, Failure> {
        self.shared.envelope(audit, || {
            let system_id = &self.config.system_id;
            audit.to_json(system_id, &self.commit_time(), &self.caller.party())
        })
    }

    /// Begins an attempt of a write that relies on these facts, without anything that an earlier
    /// attempt has looked up.
    pub fn begin_attempt(&self, facts: FactSource) {
        self.templates.borrow_mut().rely_on(facts);
        let mut drawn = self.drawn.borrow_mut();
        drawn.are_kept = true;
        drawn.next = 0;
    }

    /// Checks that the caller may perform the operation on something with this name: 403.
    pub fn check_named_permission(&self, name: &str) -> Result<(), Failure> {
        self.caller
            .reach(self.permission, Subject::Named(name))
            .map(|_| ())
    }

    /// Checks that the caller may perform the operation with something of this name on the data of
    /// this EHR: 403, or 404.
    pub fn check_permission_on(&self, name: &str, ehr_id: &str) -> Result<(), Failure> {
        self.caller
            .within(self.permission, Subject::Named(name), ehr_id)
    }

    /// Checks that the caller may perform the operation in this EHR, on a document of a kind and a
    /// template: 403, or 404.
    pub fn check_permission_in(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        template_id: Option<&str>,
    ) -> Result<(), Failure> {
        let subject = Subject::of_document(kind, template_id);
        self.caller.within(self.permission, subject, ehr_id)
    }

    /// Returns the parameter of the path at an index.
    ///
    /// # Errors
    /// 500 if the route of the operation has fewer.
    pub fn param(&self, index: usize) -> Result<&str, Failure> {
        self.optional_param(index).ok_or_else(missing_parameter)
    }

    /// Returns the parameter of the path at an index, or `None` if the path has fewer.
    pub fn optional_param(&self, index: usize) -> Option<&str> {
        self.params.get(index).map(String::as_str)
    }

    /// Returns the parameter of the path at an index behind that of the owner.
    ///
    /// # Errors
    /// 500 if the route of the operation has fewer.
    pub fn sub_param(&self, index: usize) -> Result<&str, Failure> {
        self.optional_sub_param(index).ok_or_else(missing_parameter)
    }

    /// Returns the parameter of the path at an index behind that of the owner, or `None` if the
    /// path has fewer.
    pub fn optional_sub_param(&self, index: usize) -> Option<&str> {
        // Paths of EHRs have the owner as their first parameter, paths of parties do not.
        self.optional_param(index + usize::from(!self.demographic))
    }

    /// Returns a new random UUID in lower case. A repeated attempt of a write gets those of the
    /// first attempt.
    pub fn new_uuid(&self) -> String {
        let mut drawn = self.drawn.borrow_mut();
        let next = drawn.next;
        if let Some(kept) = drawn.kept.get(next).cloned() {
            drawn.next += 1;
            return kept;
        }
        let uuid = self
            .environment
            .borrow_mut()
            .new_uuid()
            .to_ascii_lowercase();
        if drawn.are_kept {
            drawn.kept.push(uuid.clone());
            drawn.next += 1;
        }
        uuid
    }

    /// Returns the present time in microseconds since 1970, for limits of time.
    pub fn clock(&self) -> i64 {
        self.environment.borrow_mut().now()
    }

    /// Yields to other requests. Awaited between steps of long work.
    pub fn pause(&self) -> Pause {
        self.environment.borrow_mut().pause()
    }

    /// Returns the future of the parts of the body before this one; `None` in each further call.
    pub fn earlier_parts(&self) -> Option<EarlierCommits> {
        self.environment.borrow_mut().earlier_parts()
    }

    /// Waits for a turn if a text or document has at least [`LARGE`] bytes. Awaited before work on
    /// it that does not pause. The caller drops the turn before it awaits anything else.
    ///
    /// # Errors
    /// 429 if no turn was free in time.
    pub async fn turn(&self, bytes: usize) -> Result<Turn, Failure> {
        // Short texts take too little time to delay other requests.
        if bytes < LARGE {
            return Ok(Turn::default());
        }
        let turn = self.environment.borrow_mut().turn();
        turn.await.ok_or_else(|| Denied::busy().failure())
    }

    /// Waits for memory if a stored text has at least [`LARGE`] bytes. Awaited before the text is
    /// read. The memory covers `bytes` of stored text and everything made of it. It is held until
    /// the response is sent, or until the request waits for memory again.
    ///
    /// # Errors
    /// 429 if the memory was not free in time.
    pub async fn room(&self, bytes: usize) -> Result<(), Failure> {
        if bytes < LARGE {
            return Ok(());
        }
        let room = self
            .environment
            .borrow_mut()
            .room(bytes.saturating_mul(COPIES));
        permitted(room.await)
    }

    /// Returns the heavy permit before a wait for a foreign server, and waits for the permission to
    /// wait for it.
    ///
    /// # Errors
    /// 429 if too many requests wait for foreign servers.
    #[cfg(feature = "server")]
    pub async fn begin_wait(&self) -> Result<(), Failure> {
        let wait = self
            .environment
            .borrow_mut()
            .replace_permit(Work::ForeignWait);
        permitted(wait.await)
    }

    /// Waits for a heavy permit after a wait for a foreign server.
    ///
    /// # Errors
    /// 429 if none was free in time.
    #[cfg(feature = "server")]
    pub async fn end_wait(&self) -> Result<(), Failure> {
        let wait = self.environment.borrow_mut().replace_permit(Work::Heavy);
        permitted(wait.await)
    }

    /// Waits for a turn for work on the body, like [`Call::turn`].
    pub async fn turn_for_body(&self) -> Result<Turn, Failure> {
        self.turn(self.request.body.len()).await
    }

    /// Returns the offset from UTC of a zone in seconds, at a time in milliseconds since 1970, or
    /// `None` if the host does not know the zone.
    pub fn offset(&self, zone: &str, millis: i64) -> Option<i32> {
        self.environment.borrow_mut().offset(zone, millis)
    }

    /// Returns the URL before the mounts: the configured one, or the one that the client used.
    pub fn base_url(&self) -> &str {
        self.config.base_url_of(self.request)
    }

    /// Returns the absolute URL of a path below the mount, given by its segments.
    pub fn address(&self, segments: &[&str]) -> String {
        let path: Vec<String> = segments.iter().map(|s| encode(s)).collect();
        format!(
            "{}{}/{}",
            self.base_url(),
            self.dialect.mount(),
            path.join("/")
        )
    }

    /// Rejects text that was not UTF-8 in the request: hosts decode invalid bytes as U+FFFD, which
    /// must not be stored.
    fn check_decoded(&self) -> Result<(), Failure> {
        const REPLACEMENT: char = '\u{fffd}';
        let is_stored = |name: &str| {
            name.get(..8)
                .is_some_and(|start| start.eq_ignore_ascii_case("openehr-"))
        };
        let header = self
            .request
            .headers
            .iter()
            .find(|(name, value)| is_stored(name) && value.contains(REPLACEMENT));
        if let Some((name, _)) = header {
            return Err(Failure::bad_request(format!(
                "the header {name} is not UTF-8: send its value as UTF-8"
            )));
        }
        if self.params.iter().any(|param| param.contains(REPLACEMENT)) {
            return Err(Failure::bad_request(
                "the path is not UTF-8 where its percent signs are decoded",
            ));
        }
        match self
            .request
            .query
            .iter()
            .find(|(key, value)| key.contains(REPLACEMENT) || value.contains(REPLACEMENT))
        {
            Some((key, _)) => Err(Failure::bad_request(format!(
                "the parameter `{key}` is not UTF-8 where its percent signs are decoded"
            ))),
            None => Ok(()),
        }
    }

    /// Rejects undecodable text, and a repeated parameter or header that has one value: the ignored
    /// value may be the intended one.
    pub fn check_unambiguous(&self) -> Result<(), Failure> {
        use Operation::{
            AdminDeleteEhr, GuideRunOn, QueryAdHoc, QueryExplain, QueryStored, TagsList,
        };
        self.check_decoded()?;
        if matches!(
            self.operation,
            AdminDeleteEhr | GuideRunOn | QueryAdHoc | QueryExplain | QueryStored | TagsList
        ) {
            return Ok(());
        }
        // Sorting puts equal names side by side. A repetition with the same value is harmless and
        // is removed.
        let given = order::distinct(&self.request.query);
        let same = given
            .iter()
            .zip(given.iter().skip(1))
            .find(|(one, other)| one.0 == other.0);
        same.map_or(Ok(()), |((name, _), _)| Err(Failure::repeated(name)))
    }

    /// Returns the body as text.
    pub fn text(&self) -> Result<&'a str, Failure> {
        std::str::from_utf8(&self.request.body)
            .map(|text| text.strip_prefix('\u{feff}').unwrap_or(text))
            .map_err(|e| {
                Failure::bad_request(format!(
                    "the body is not UTF-8: byte {} is not part of a character",
                    e.valid_up_to()
                ))
            })
    }

    /// Returns the response to a read: the resource with its validators (`shown` is another format
    /// of it), or 304 if the client has it.
    pub fn resource(
        &self,
        node: NodeRef<'_>,
        shown: Option<Representation>,
        uid: &str,
        time: &str,
    ) -> Result<Response, Failure> {
        if none_match(self.request, uid) {
            return Ok(validated(Response::new(304), uid, time));
        }
        self.whole_resource(node, shown, uid, time)
    }

    /// Returns the response to a read whose entity tag does not change with its content: the
    /// resource, also if the client has one with this tag.
    pub fn whole_resource(
        &self,
        node: NodeRef<'_>,
        shown: Option<Representation>,
        uid: &str,
        time: &str,
    ) -> Result<Response, Failure> {
        let response = self.with_resource(Response::new(200), node, shown)?;
        Ok(validated(response, uid, time))
    }

    fn with_resource(
        &self,
        response: Response,
        node: NodeRef<'_>,
        shown: Option<Representation>,
    ) -> Result<Response, Failure> {
        let Some(Representation {
            media_type,
            body,
            headers,
        }) = shown
        else {
            let (media_type, body) = body_of(node, wanted_format(self.request)?)?;
            return Ok(response.with_body(media_type, body));
        };
        Ok(headers.into_iter().fold(
            response.with_body(media_type, body),
            |response, (name, value)| response.with_header(name, value),
        ))
    }

    /// Returns the response to a change, with the content that the client prefers.
    ///
    /// The change is committed, so no request for it ends in an error any more: content that cannot
    /// be written is left out.
    pub fn changed(&self, changed: ChangedResource<'_>) -> Response {
        let full = Response::new(if changed.created { 201 } else { 200 });
        let content = match (self.prefer.returns, changed.node) {
            (Return::Representation, Some(node)) => {
                let shown = changed.shown;
                shown
                    .and_then(|shown| self.with_resource(full, node, shown))
                    .ok()
            }
            (Return::Identifier, Some(_)) => Some(full.with_body(
                "application/json",
                json!({ "uid": changed.uid }).to_string(),
            )),
            _ => None,
        };
        let minimal = || Response::new(if changed.created { 201 } else { 204 });
        let response = content.unwrap_or_else(minimal);
        let response = validated(response, changed.uid, changed.time)
            .with_header("Location", changed.path.as_str());
        let response = match &changed.uri {
            // Only the response to a creation has this header.
            Some(uri) if changed.created => response.with_header("openEHR-uri", uri.as_str()),
            _ => response,
        };
        self.preference_applied(response)
    }

    /// Returns the status of the response to a change, for the access log.
    pub fn status_of_change(&self, created: bool, deleted: bool) -> u16 {
        match self.permission.resource {
            Resource::Admin => 200,
            _ if created || self.operation == Operation::ContributionCreate => 201,
            _ if deleted || self.prefer.returns == Return::Minimal => 204,
            _ => 200,
        }
    }

    /// Returns whether FLAT and STRUCTURED may be sent and requested.
    pub fn has_forms(&self) -> bool {
        let what = match self.operation {
            Operation::Create(what) | Operation::Read(what) | Operation::Update(what) => {
                Some(what.kind)
            }
            _ => None,
        };
        what == Some(ObjectKind::Composition)
    }

    /// Checks, before anything is written, that the response to a change will be acceptable.
    pub fn check_acceptable(&self) -> Result<(), Failure> {
        match self.prefer.returns {
            Return::Representation if self.has_forms() => Form::wanted(self.request).map(drop),
            Return::Representation => wanted_format(self.request).map(drop),
            // An identifier is JSON.
            Return::Identifier => self.check_json_acceptable(),
            Return::Minimal => Ok(()),
        }
    }

    /// Checks, before anything is written, that the response to a change will be acceptable if its
    /// only form is JSON.
    pub fn check_json_acceptable(&self) -> Result<(), Failure> {
        match self.prefer.returns {
            Return::Minimal => Ok(()),
            _ => choose(self.request, &["application/json"]).map(drop),
        }
    }

    /// Adds Preference-Applied if the client stated a preference and the response honors it (RFC
    /// 7240 §3).
    pub fn preference_applied(&self, response: Response) -> Response {
        let (word, is_applied) = match self.prefer.returns {
            Return::Minimal => ("return=minimal", response.body.is_empty()),
            Return::Representation => ("return=representation", !response.body.is_empty()),
            Return::Identifier => ("return=identifier", !response.body.is_empty()),
        };
        if self.prefer.stated && is_applied {
            response.with_header("Preference-Applied", word)
        } else {
            response
        }
    }
}

/// Returns the error for a parameter that the route of an operation does not have.
fn missing_parameter() -> Failure {
    Failure::broken("the route of an operation lacks a parameter of the path")
}

/// Adds the validators of a resource: its entity tag, and the time of its last change (ISO 8601).
pub(super) fn validated(response: Response, uid: &str, time: &str) -> Response {
    let response = response.with_header("ETag", format!("\"{uid}\""));
    match super::time::http_date(time) {
        Some(date) => response.with_header("Last-Modified", date),
        None => response,
    }
}

/// Returns an error of status 429 unless admission control permits the work.
fn permitted(is_permitted: bool) -> Result<(), Failure> {
    match is_permitted {
        true => Ok(()),
        false => Err(Denied::busy().failure()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::ReplayEnvironment;
    use super::super::route::{RouteTarget, find};
    use super::*;

    #[test]
    fn parameter_that_the_route_lacks_is_an_internal_error() {
        let request = Request::new("GET", "/v1/ehr/a");
        let Ok(RouteTarget::Operation(found)) = find(&request) else {
            panic!("the path has an operation")
        };
        let (config, trail) = (Config::default(), AccessTrail::default());
        let caller = Caller::with_roles("a", "", &[]);
        let mut environment = ReplayEnvironment::new(0.0, "");
        let incoming = IncomingRequest {
            request: &request,
            config: &config,
            trail: &trail,
            now: 0,
        };
        let call = Call::new(incoming, found, &caller, &mut environment);
        let read = |text: Result<&str, Failure>| text.map(str::to_owned).map_err(|f| f.status);
        assert_eq!(read(call.param(0)), Ok(String::from("a")));
        assert_eq!(
            [read(call.param(1)), read(call.sub_param(0))],
            [Err(500), Err(500)]
        );
    }
}
