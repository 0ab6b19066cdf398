//! One request on its way: what it asks for, who it is addressed to, and how its answer is made.

use super::admission::{COPIES, LARGE, Turn};
use super::auth::{Caller, Denied, Need, Resource, Subject, Trail};
use super::commit::Alike;
use super::content::body_of;
use super::dialect::Dialect;
use super::error::Failure;
use super::http::encode;
use super::library::Compiled;
use super::negotiate::{Form, Prefer, Return, none_match, wanted_format};
use super::parameters::twice;
use super::route::{Found, Operation};
use super::simplified::Shown;
use super::{Config, Environment, Request, Response};
use crate::document::ObjectKind;
use crate::rm::tree::NodeRef;
use crate::store::repository::Pause;
use aqlite_rm::order;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A request with its operation.
pub(crate) struct Call<'a> {
    /// The request.
    pub request: &'a Request,
    /// The mount that it came in by.
    pub dialect: Dialect,
    /// What it asks for.
    pub operation: Operation,
    /// Who asks.
    pub caller: &'a Caller,
    /// What must be allowed for it.
    pub need: Need,
    /// What the access log is told.
    pub trail: &'a Trail,
    /// How the service is set up.
    pub config: &'a Config,
    /// How much the answer to a change should carry.
    pub prefer: Prefer,
    /// When it arrived: microseconds since 1970-01-01T00:00:00Z.
    pub now: i64,
    /// True below `demographic`, where no EHR stands in the path.
    pub demographic: bool,
    params: Vec<String>,
    /// Templates that were asked for.
    pub templates: RefCell<BTreeMap<String, Option<Rc<Compiled>>>>,
    /// What the changes of it have alike.
    pub alike: Alike,
    environment: RefCell<&'a mut dyn Environment>,
}

/// A request as it came in.
#[derive(Clone, Copy)]
pub(crate) struct Arrived<'a> {
    /// See [`Call::request`].
    pub request: &'a Request,
    /// See [`Call::config`].
    pub config: &'a Config,
    /// See [`Call::trail`].
    pub trail: &'a Trail,
    /// See [`Call::now`].
    pub now: i64,
}

/// A resource after a change of it.
pub(crate) struct Changed<'a> {
    /// True when it is new.
    pub created: bool,
    /// Its path below the mount.
    pub path: String,
    /// Its DV_EHR_URI, where it stands in an EHR.
    pub uri: Option<String>,
    /// Its uid, which is its entity tag.
    pub uid: &'a str,
    /// When it was committed, ISO 8601.
    pub time: &'a str,
    /// The resource itself; a deletion has none.
    pub node: Option<NodeRef<'a>>,
    /// The same in another form than the usual one, where the client prefers that.
    pub shown: Option<Shown>,
}

impl<'a> Call<'a> {
    /// A call of somebody who has leave.
    pub fn new(
        arrived: Arrived<'a>,
        found: Found,
        caller: &'a Caller,
        environment: &'a mut dyn Environment,
    ) -> Call<'a> {
        let Arrived {
            request,
            config,
            trail,
            now,
        } = arrived;
        let Found {
            dialect,
            route,
            params,
        } = found;
        let (operation, need, prefer) = (route.operation, route.need, Prefer::of(request));
        let demographic = route.pattern.starts_with("demographic/");
        Call {
            request,
            dialect,
            operation,
            caller,
            need,
            trail,
            config,
            prefer,
            now,
            demographic,
            params,
            templates: RefCell::default(),
            alike: Alike::default(),
            environment: RefCell::new(environment),
        }
    }

    /// Makes sure that the caller may do it to something with this name: 403.
    pub fn allowed(&self, name: &str) -> Result<(), Failure> {
        self.caller
            .reach(self.need, Subject::Named(name))
            .map(|_| ())
    }

    /// Makes sure that the caller may do it with something of this name to the data of this EHR:
    /// 403, or 404.
    pub fn allowed_on(&self, name: &str, ehr_id: &str) -> Result<(), Failure> {
        self.caller.within(self.need, Subject::Named(name), ehr_id)
    }

    /// Makes sure that the caller may do it in this EHR, to documents of a template or to what has
    /// none: 403, or 404.
    pub fn allowed_in(&self, ehr_id: &str, template_id: Option<&str>) -> Result<(), Failure> {
        self.caller
            .within(self.need, Subject::of(template_id), ehr_id)
    }

    /// A parameter of the path, in order.
    pub fn param(&self, index: usize) -> &str {
        self.params.get(index).map_or("", String::as_str)
    }

    /// A parameter of the path that may be absent.
    pub fn optional_param(&self, index: usize) -> Option<&str> {
        self.params.get(index).map(String::as_str)
    }

    /// A parameter of the path behind its owner, in order.
    pub fn sub(&self, index: usize) -> &str {
        self.optional_sub(index).unwrap_or_default()
    }

    /// The same, where it may be absent.
    pub fn optional_sub(&self, index: usize) -> Option<&str> {
        self.optional_param(index + usize::from(!self.demographic))
    }

    /// A new random UUID.
    pub fn new_uuid(&self) -> String {
        self.environment
            .borrow_mut()
            .new_uuid()
            .to_ascii_lowercase()
    }

    /// The clock again: for budgets.
    pub fn clock(&self) -> i64 {
        self.environment.borrow_mut().now()
    }

    /// Lets other requests be answered: awaited between pieces of long work.
    pub fn pause(&self) -> Pause {
        self.environment.borrow_mut().pause()
    }

    /// Waits for a turn where a text or document has many bytes: awaited before work on it that
    /// does not pause. What it returns is dropped before anything else is awaited.
    ///
    /// # Errors
    /// 429 where the turn did not come in time.
    pub async fn turn(&self, bytes: usize) -> Result<Turn, Failure> {
        if bytes < LARGE {
            return Ok(Turn::default());
        }
        let turn = self.environment.borrow_mut().turn();
        turn.await.ok_or_else(|| Denied::busy().failure())
    }

    /// Waits for memory where a stored text has many bytes: awaited before it is read. It is held
    /// until the answer is sent, or until the request waits for memory again: for `bytes` of
    /// stored text and what is made of it.
    ///
    /// # Errors
    /// 429 where the memory was not free in time.
    pub async fn room(&self, bytes: usize) -> Result<(), Failure> {
        if bytes < LARGE {
            return Ok(());
        }
        let room = self
            .environment
            .borrow_mut()
            .room(bytes.saturating_mul(COPIES));
        match room.await {
            true => Ok(()),
            false => Err(Denied::busy().failure()),
        }
    }

    /// The same for work on the body.
    pub async fn turn_for_body(&self) -> Result<Turn, Failure> {
        self.turn(self.request.body.len()).await
    }

    /// Seconds east of UTC in a zone at a number of milliseconds since 1970, where the host knows
    /// the zone.
    pub fn offset(&self, zone: &str, millis: i64) -> Option<i32> {
        self.environment.borrow_mut().offset(zone, millis)
    }

    /// What stands in front of the mounts in addresses: as configured, or as the client addressed
    /// the service.
    pub fn base_url(&self) -> &str {
        self.config.base_url_of(self.request)
    }

    /// The absolute address of a path below the mount, given by its segments.
    pub fn address(&self, segments: &[&str]) -> String {
        let path: Vec<String> = segments.iter().map(|s| encode(s)).collect();
        format!(
            "{}{}/{}",
            self.base_url(),
            self.dialect.mount(),
            path.join("/")
        )
    }

    /// Refuses text that was not UTF-8 on its way: hosts decode what they cannot read as U+FFFD,
    /// which must not be stored in its place.
    fn is_decoded(&self) -> Result<(), Failure> {
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
            return Err(Failure::bad(format!(
                "the header {name} is not UTF-8: send its value as UTF-8"
            )));
        }
        if self.params.iter().any(|param| param.contains(REPLACEMENT)) {
            return Err(Failure::bad(
                "the path is not UTF-8 where its percent signs are decoded",
            ));
        }
        match self
            .request
            .query
            .iter()
            .find(|(key, value)| key.contains(REPLACEMENT) || value.contains(REPLACEMENT))
        {
            Some((key, _)) => Err(Failure::bad(format!(
                "the parameter `{key}` is not UTF-8 where its percent signs are decoded"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses two values of what is read as one, because the value that is ignored may be the one
    /// that was meant; and undecodable text.
    pub fn is_unambiguous(&self) -> Result<(), Failure> {
        use Operation::{
            AdminDeleteEhr, GuideRunOn, QueryAdHoc, QueryExplain, QueryStored, TagsList,
        };
        self.is_decoded()?;
        if matches!(
            self.operation,
            AdminDeleteEhr | GuideRunOn | QueryAdHoc | QueryExplain | QueryStored | TagsList
        ) {
            return Ok(());
        }
        let given = order::distinct(&self.request.query);
        let same = given
            .iter()
            .zip(given.iter().skip(1))
            .find(|(one, other)| one.0 == other.0);
        same.map_or(Ok(()), |((name, _), _)| Err(twice(name)))
    }

    /// The body as text.
    pub fn text(&self) -> Result<&'a str, Failure> {
        std::str::from_utf8(&self.request.body)
            .map(|text| text.strip_prefix('\u{feff}').unwrap_or(text))
            .map_err(|e| {
                Failure::bad(format!(
                    "the body is not UTF-8: byte {} is not part of a character",
                    e.valid_up_to()
                ))
            })
    }

    /// The answer to a read: the resource with its validators (in `shown` another form of it), or
    /// 304 when the client has it.
    pub fn resource(
        &self,
        node: NodeRef<'_>,
        shown: Option<Shown>,
        uid: &str,
        time: &str,
    ) -> Result<Response, Failure> {
        if none_match(self.request, uid) {
            return Ok(validated(Response::new(304), uid, time));
        }
        let response = self.with_resource(Response::new(200), node, shown)?;
        Ok(validated(response, uid, time))
    }

    fn with_resource(
        &self,
        response: Response,
        node: NodeRef<'_>,
        shown: Option<Shown>,
    ) -> Result<Response, Failure> {
        let Some(Shown {
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

    /// The answer to a change, as much of it as the client prefers.
    pub fn changed(&self, changed: &Changed<'_>) -> Result<Response, Failure> {
        let full = Response::new(if changed.created { 201 } else { 200 });
        let response = match (self.prefer.returns, changed.node) {
            (Return::Representation, Some(node)) => {
                self.with_resource(full, node, changed.shown.clone())?
            }
            (Return::Identifier, Some(_)) => full.with_body(
                "application/json",
                json!({ "uid": changed.uid }).to_string(),
            ),
            _ => Response::new(if changed.created { 201 } else { 204 }),
        };
        let response = validated(response, changed.uid, changed.time)
            .with_header("Location", changed.path.as_str());
        let response = match &changed.uri {
            Some(uri) if changed.created => response.with_header("openEHR-uri", uri.as_str()),
            _ => response,
        };
        Ok(self.preference_applied(response))
    }

    /// The status of the answer to a change, for the access log.
    pub fn status_of_change(&self, created: bool, deleted: bool) -> u16 {
        match self.need.resource {
            Resource::Admin => 200,
            _ if created || self.operation == Operation::ContributionCreate => 201,
            _ if deleted || self.prefer.returns == Return::Minimal => 204,
            _ => 200,
        }
    }

    /// True where FLAT and STRUCTURED may be sent and asked for.
    pub fn has_forms(&self) -> bool {
        let what = match self.operation {
            Operation::Create(what) | Operation::Read(what) | Operation::Update(what) => {
                Some(what.kind)
            }
            _ => None,
        };
        what == Some(ObjectKind::Composition)
    }

    /// Makes sure, before anything is written, that the answer to a change can be given.
    pub fn can_answer(&self) -> Result<(), Failure> {
        match self.prefer.returns {
            Return::Representation if self.has_forms() => Form::wanted(self.request).map(drop),
            Return::Representation => wanted_format(self.request).map(drop),
            _ => Ok(()),
        }
    }

    /// Adds Preference-Applied if the client stated a preference and the answer honours it (RFC
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

/// Adds the validators of a resource: its entity tag, and when it last changed (ISO 8601).
pub(super) fn validated(response: Response, uid: &str, time: &str) -> Response {
    let response = response.with_header("ETag", format!("\"{uid}\""));
    match super::time::http_date(time) {
        Some(date) => response.with_header("Last-Modified", date),
        None => response,
    }
}
