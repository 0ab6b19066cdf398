//! A request in a service thread: authentication, admission control, body, answer.

use super::auth::Authenticated;
use super::body::{IncomingBody, Unread};
use super::environment::{self, HeavySlot, Machine, RequestEnvironment, RoomSlot};
use super::http;
use super::log;
use super::metrics::route_class;
use super::parts::{self, PartOrder};
use super::sending::answer_body;
use super::thread::{Held, RequestJob, ServiceThread};
use aqlite::service::auth::Denied;
use aqlite::service::{self, Auth, BodyParts, Environment, LARGE, Permit, Work};
use axum::body::Body;
use axum::response::Response;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::spawn_local;
use tokio::time::timeout;

/// The time that a long response waits for memory in which it is sent.
const SEND_PATIENCE: Duration = Duration::from_secs(5);

/// The time in which a client of HTTP/2 may send the rest of a body that nothing reads. It also reads
/// the response if the body is broken off, so the time only spares it an error.
const MULTIPLEXED_TIME: Duration = Duration::from_secs(1);

/// Answers a request. It is executed to its end even if the client disconnects.
pub async fn answer(thread: Rc<ServiceThread>, job: RequestJob, held: Held) {
    let RequestJob {
        head,
        body,
        started,
        is_multiplexed,
        answer,
    } = job;
    let body = body.map(|body| IncomingBody::new(body, &head));
    let active = ActiveRequest::admit(thread, &head, body.is_some(), started).await;
    let pass = async |body: Option<IncomingBody>, limit: usize| match is_multiplexed {
        true => drop(timeout(MULTIPLEXED_TIME, pass(body, limit)).await),
        false => pass(body, limit).await,
    };
    let response = match (active, body) {
        (Err(refused), body) => {
            let limit = refused.thread.service.config().limits.body;
            let response = refused.finish(&head, refused.response.clone());
            // Callers without permission must not take the places of others meanwhile.
            drop((head, held));
            pass(body, limit).await;
            http::response(response)
        }
        // Nothing reads the body of a request that needs no permission.
        (Ok(active), Some(body)) if !service::needs_permission(&head) => {
            let limit = active.thread.service.config().limits.body;
            // Uses up the headers, which may be long: no request keeps them while its body passes.
            let response = Rc::new(active).answer_whole(head).await;
            drop(held);
            pass(Some(body), limit).await;
            response
        }
        (Ok(active), None) => Rc::new(active).answer_whole(head).await,
        (Ok(active), Some(body)) => Rc::new(active).answer_with_body(head, body).await,
    };
    // A client that has gone away needs no answer.
    drop(answer.send(response));
}

/// Discards the rest of a body that nothing reads.
async fn pass(body: Option<IncomingBody>, limit: usize) {
    if let Some(mut body) = body {
        body.pass(limit).await;
    }
}

/// A request that was rejected by its headers.
struct Refused {
    thread: Rc<ServiceThread>,
    started: Instant,
    response: service::Response,
}

impl Refused {
    fn finish(&self, head: &service::Request, response: service::Response) -> service::Response {
        record(&self.thread, head, response, self.started)
    }
}

/// Writes the log line and the figures of a request that was rejected.
fn record(
    thread: &ServiceThread,
    head: &service::Request,
    response: service::Response,
    started: Instant,
) -> service::Response {
    let (time, route) = (started.elapsed(), route_class(&head.path));
    log::request(head, &response, time);
    thread.metrics.record_answer(route, response.status, time);
    response
}

/// A request of which another service thread answers a part.
pub struct SharedRequest {
    caller: Arc<Authenticated>,
    key: String,
    started: Instant,
}

impl SharedRequest {
    /// Returns the request in a thread. Its permit stays with the request itself.
    pub fn activate(self, thread: &Rc<ServiceThread>) -> ActiveRequest {
        ActiveRequest {
            thread: Rc::clone(thread),
            caller: self.caller,
            key: self.key,
            started: self.started,
            permit: None,
            is_begun: Cell::new(true),
            is_part: true,
            figures: Cell::default(),
            room: RoomSlot::default(),
        }
    }
}

/// A request in progress.
pub struct ActiveRequest {
    /// Its thread.
    pub thread: Rc<ServiceThread>,
    caller: Arc<Authenticated>,
    /// The caller in admission control.
    key: String,
    started: Instant,
    /// Its permit, unless it needs none; returned when this is dropped.
    permit: Option<Permit>,
    /// Whether a part was answered.
    is_begun: Cell<bool>,
    /// Whether this is a part of a load, which is no request in the figures.
    is_part: bool,
    /// The class of the route and the status of its answer, for the figures.
    figures: Cell<Option<(&'static str, u16)>>,
    room: RoomSlot,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if let Some((route, status)) = self.figures.get() {
            let time = self.started.elapsed();
            self.thread.metrics.record_answer(route, status, time);
        }
        self.thread.return_permit(self.permit.take());
    }
}

impl ActiveRequest {
    /// Authenticates the caller and checks the headers.
    async fn admit(
        thread: Rc<ServiceThread>,
        head: &service::Request,
        has_body: bool,
        started: Instant,
    ) -> Result<ActiveRequest, Refused> {
        let refused = |response| Refused {
            thread: Rc::clone(&thread),
            started,
            response,
        };
        let needs_permission = service::needs_permission(head);
        let caller = match needs_permission {
            true => authenticated(&thread, head).await,
            false => Err(no_credentials(&thread)),
        };
        let key = key(&caller, head);
        if has_body {
            let caller = caller.as_ref();
            // Before the body is read: an unauthorized caller must not make the server store a long
            // body.
            let screened = thread.service.screen(head, caller, &mut Machine).await;
            screened.map_err(refused)?;
        }
        let permit = match needs_permission {
            false => None,
            true => match thread.permit(&key, Work::Request, false).await {
                Some(permit) => Some(permit),
                None => return Err(refused(thread.service.refuse(head, &Denied::busy()))),
            },
        };
        Ok(ActiveRequest {
            caller: Arc::new(caller),
            key,
            started,
            permit,
            is_begun: Cell::new(false),
            is_part: false,
            figures: Cell::default(),
            room: RoomSlot::default(),
            thread: Rc::clone(&thread),
        })
    }

    /// Answers a request that is complete.
    async fn answer_whole(self: Rc<Self>, request: service::Request) -> Response {
        let answer = self.answer(&request).await;
        if answer.rest.is_some() {
            return parts::send_rows(self, request, answer);
        }
        let room = self.room.take().filter(|_| answer.body.len() >= LARGE);
        match room {
            Some(room) => self.send_long(answer, room).await,
            None => http::response(answer),
        }
    }

    /// Returns a long response. Its memory is held until the client has received it, or has stopped
    /// reading.
    async fn send_long(&self, mut answer: service::Response, room: Permit) -> Response {
        let text = std::mem::take(&mut answer.body);
        room.shrink(text.len());
        let (body, sender) = answer_body(Some(text.len() as u64));
        // The first part needs no client that reads.
        sender.send(text).await;
        let thread = Rc::clone(&self.thread);
        spawn_local(async move {
            sender.sent().await;
            thread.return_permit(Some(room));
        });
        http::response_with(answer, Body::new(body))
    }

    /// Reads the body, and answers the request at once or part by part.
    async fn answer_with_body(
        self: Rc<Self>,
        mut head: service::Request,
        mut body: IncomingBody,
    ) -> Response {
        let limit = service::body_limit(&head, self.thread.service.config().limits.body);
        let sizes = self.thread.service.config().load_sizes;
        if let Some(size) = service::part_size(&mut head, environment::now(), sizes) {
            body.expand(&mut head);
            let parts = BodyParts::new(size, sizes.lines, limit);
            return parts::answer(self, head, body, parts).await;
        }
        // Held until the response: the bodies in memory are limited in total.
        let permit = match service::may_be_large(&head) {
            false => None,
            true => match self.body_permit(&head, limit).await {
                Some(permit) => Some(permit),
                None => {
                    let denied = self.thread.service.refuse(&head, &Denied::busy());
                    body.pass(limit).await;
                    return http::response(self.record(&head, denied));
                }
            },
        };
        body.expand(&mut head);
        let response = match body.read_all(limit).await {
            Ok(body) => {
                let request = service::Request { body, ..head };
                Rc::clone(&self).answer_whole(request).await
            }
            Err(Unread(error)) => {
                let response = self.thread.service.unreadable(&head, error);
                http::response(self.record(&head, response))
            }
        };
        self.thread.return_permit(permit);
        response
    }

    /// Waits for memory for the body of the request. `limit` is the longest body.
    async fn body_permit(&self, head: &service::Request, limit: usize) -> Option<Permit> {
        self.permit_of_bytes(service::body_memory(head, limit))
            .await
    }

    /// Waits for memory for bytes of the body of the request.
    pub async fn permit_of_bytes(&self, bytes: usize) -> Option<Permit> {
        self.thread
            .permit(&self.key, Work::Body(bytes), false)
            .await
    }

    /// Returns this request for a service thread that answers a part of it.
    pub fn shared(&self) -> SharedRequest {
        SharedRequest {
            caller: Arc::clone(&self.caller),
            key: self.key.clone(),
            started: self.started,
        }
    }

    /// Responds to the request, or to the rows that follow those of its last response. Heavy work
    /// has a heavy permit meanwhile.
    pub async fn answer(&self, request: &service::Request) -> service::Response {
        // A request that is answered in parts may still hold the room of its last part.
        self.room.take();
        // Room for a long body before it is parsed.
        let mut environment = self.environment(request, None, HeavySlot::default());
        if environment.body > 0 && service::is_heavy(request) && !environment.room(0).await {
            let denied = self.thread.service.refuse(request, &Denied::busy());
            return self.record(request, denied);
        }
        let heavy = match self.heavy_permit(request).await {
            Ok(heavy) => HeavySlot::new(heavy.into()),
            Err(denied) => return denied,
        };
        let response = self.answer_part(request, None, Rc::clone(&heavy)).await;
        self.thread.return_permit(heavy.take());
        response
    }

    /// Returns a heavy permit if the request, or a part of it, needs one.
    ///
    /// # Errors
    /// The response if none is free in time.
    pub async fn heavy_permit(
        &self,
        request: &service::Request,
    ) -> Result<Option<Permit>, service::Response> {
        let is_begun = self.is_begun.replace(true);
        if !service::is_heavy(request) {
            return Ok(None);
        }
        match self.thread.permit(&self.key, Work::Heavy, is_begun).await {
            Some(permit) => Ok(Some(permit)),
            None => {
                let denied = self.thread.service.refuse(request, &Denied::busy());
                Err(self.record(request, denied))
            }
        }
    }

    /// Responds to the request, or to a part of it. Its heavy permit is that of the caller of this
    /// function; `heavy` has it if the request may return it before.
    pub async fn answer_part(
        &self,
        request: &service::Request,
        part: Option<Rc<PartOrder>>,
        heavy: HeavySlot,
    ) -> service::Response {
        let is_part = part.is_some();
        let mut environment = self.environment(request, part, heavy);
        let service = &self.thread.service;
        let mut response = service
            .serve(request, self.caller.as_ref().as_ref(), &mut environment)
            .await;
        if !is_part && !self.has_room_to_send(request, &response).await {
            response = service.refuse(request, &Denied::busy());
        }
        self.renew();
        self.thread.replace_lost_segments().await;
        self.record(request, response)
    }

    /// Waits for memory for a long response, which is held until its client has received it: a
    /// client that reads slowly, or not at all, must not fill the memory with results. Returns
    /// false if there is none in time. The heavy permit of the request bounds the waiting responses.
    async fn has_room_to_send(
        &self,
        request: &service::Request,
        response: &service::Response,
    ) -> bool {
        let bytes = response.body.len();
        if bytes < LARGE || self.room.borrow().is_some() {
            return true;
        }
        // A change that is done is reported, however little memory is free.
        if !service::only_reads(request) {
            return true;
        }
        let permit = self.thread.permit(&self.key, Work::Room(bytes), false);
        let permit = timeout(SEND_PATIENCE, permit).await.ok().flatten();
        let is_free = permit.is_some();
        self.room.replace(permit);
        is_free
    }

    /// Returns the environment of the service for this request, or for a part of it. The memory of
    /// the parts of a load is bounded by their number.
    fn environment(
        &self,
        request: &service::Request,
        part: Option<Rc<PartOrder>>,
        heavy: HeavySlot,
    ) -> RequestEnvironment {
        let body = match part {
            None => service::room_of_body(request.body.len()),
            Some(_) => 0,
        };
        RequestEnvironment {
            thread: Rc::clone(&self.thread),
            key: self.key.clone(),
            room: Rc::clone(&self.room),
            body,
            heavy,
            part,
        }
    }

    /// Renews the lease of the permit: the next part of a load may come long after this one.
    pub fn renew(&self) {
        if let Some(permit) = &self.permit {
            permit.renew(environment::now());
        }
    }

    /// Writes the log line of a response, or of a part of it.
    pub fn record(
        &self,
        head: &service::Request,
        response: service::Response,
    ) -> service::Response {
        log::request(head, &response, self.started.elapsed());
        self.count(head, response.status);
        response
    }

    /// Counts the request once in the figures, when it ends: with the status of its first response,
    /// which is the one that the client receives.
    pub fn count(&self, head: &service::Request, status: u16) {
        if !self.is_part && self.figures.get().is_none() {
            self.figures.set(Some((route_class(&head.path), status)));
        }
    }
}

/// Authenticates the caller, if the service needs that.
async fn authenticated(thread: &ServiceThread, head: &service::Request) -> Authenticated {
    match (&thread.gate, thread.service.config().auth) {
        (Some(gate), Auth::Known) => gate.authenticate(head).await,
        _ => Err(no_credentials(thread)),
    }
}

fn no_credentials(thread: &ServiceThread) -> Denied {
    match &thread.gate {
        Some(gate) => gate.no_credentials(),
        None => Denied::no_credentials("Bearer realm=\"aqlite\""),
    }
}

/// Returns the key of a caller in admission control.
fn key(caller: &Authenticated, head: &service::Request) -> String {
    match caller {
        Ok(caller) => format!("{} {}", caller.issuer, caller.name),
        Err(_) => head.client_address.clone(),
    }
}
