//! Bodies in parts: long bodies of lines, whose responses are sent as they are ready, and results with
//! more rows than a page.
//!
//! The service threads share the parts of a long body: each reads and checks the lines of a part
//! while another one commits those before it. Parts are committed one after the other, and
//! answered in their order. One task of the request reads the body and sends its parts to the
//! threads; another one sends the answers.

use super::body::{IncomingBody, Unread, WHOLE};
use super::environment::{HeavySlot, now};
use super::http;
use super::request::{ActiveRequest, SharedRequest};
use super::sending::{AnswerSender, answer_body};
use super::thread::{Job, ServiceThread};
use aqlite::service::auth::Denied;
use aqlite::service::{
    self, AHEAD, BodyParts, DISCARD_TIME, HEAVY, IncompleteBody, Permit, RowParts,
};
use axum::body::Body;
use axum::response::Response;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_local, yield_now};
use tokio::time::{Instant, timeout, timeout_at};

/// Returns a response whose body begins with that of `first`, and the sender of the rest.
fn streamed(first: service::Response) -> (Response, AnswerSender, Vec<u8>) {
    // A slow client stops the computation of further parts.
    let (body, sender) = answer_body(None);
    let head = service::Response {
        body: Vec::new(),
        ..first
    };
    let response = http::response_with(head, Body::new(body));
    (response, sender, first.body)
}

/// Sends the first part of a result and all that follow it.
pub fn send_rows(
    active: Rc<ActiveRequest>,
    request: service::Request,
    mut first: service::Response,
) -> Response {
    let mut parts = RowParts::new(request, &mut first);
    let (response, sender, begun) = streamed(first);
    spawn_local(async move {
        let mut text = begun;
        while sender.send(text).await {
            // Waiting requests have their turn between two parts.
            yield_now().await;
            let Some(request) = parts.next_request() else {
                sender.sent().await;
                // Counted before the client receives the end.
                return drop(active);
            };
            let answer = active.answer(request).await;
            match parts.text_of(answer) {
                Ok(next) => text = next,
                Err(IncompleteBody) => {
                    sender.sent().await;
                    return sender.fail();
                }
            }
        }
    });
    response
}

/// The position of a part in its body.
pub struct PartOrder {
    /// The time of arrival.
    pub arrival: i64,
    /// Resolves when the parts before this one are answered; `None` after it was awaited, and for
    /// the first part.
    earlier: RefCell<Option<oneshot::Receiver<bool>>>,
    /// Whether all of them were answered with 200.
    is_accepted: Cell<bool>,
}

impl PartOrder {
    /// Waits for the parts before this one; false if one of them was rejected or lost.
    pub async fn is_next(&self) -> bool {
        let earlier = self.earlier.take();
        if let Some(earlier) = earlier {
            // A dropped sender means that the earlier part was lost, so this one must not be
            // committed.
            self.is_accepted.set(earlier.await.unwrap_or(false));
        }
        self.is_accepted.get()
    }
}

/// A part on its way to a service thread.
pub struct PartJob {
    part: service::Request,
    request: SharedRequest,
    arrival: i64,
    earlier: Option<oneshot::Receiver<bool>>,
    /// Resolves for the next part when this one is answered.
    done: oneshot::Sender<bool>,
    answer: oneshot::Sender<service::Response>,
}

impl PartJob {
    /// Answers the part.
    pub async fn answer(self, thread: &Rc<ServiceThread>) {
        let order = Rc::new(PartOrder {
            arrival: self.arrival,
            earlier: RefCell::new(self.earlier),
            is_accepted: Cell::new(true),
        });
        let active = self.request.activate(thread);
        let response = active
            .answer_part(&self.part, Some(Rc::clone(&order)), HeavySlot::default())
            .await;
        // Also if nothing was committed: the next part follows all those before it.
        let goes_on = order.is_next().await && response.status == 200;
        // The next part, or the request, may have ended.
        let _ = self.done.send(goes_on);
        let _ = self.answer.send(response);
    }
}

/// A part that was sent to a service thread.
struct SentPart {
    request: service::Request,
    response: JoinHandle<Option<service::Response>>,
    /// Whether it is known to be the last one.
    is_last: bool,
}

/// Responds to a long body of lines part by part. The first response determines the status.
pub async fn answer(
    active: Rc<ActiveRequest>,
    head: service::Request,
    body: IncomingBody,
    parts: BodyParts,
) -> Response {
    // Beside these parts, one is awaited, and one is read.
    let (sender, mut sent) = mpsc::channel(active.thread.load_parts);
    let reader = Reader {
        active: Rc::clone(&active),
        head: head.clone(),
        body,
        parts,
        earlier: None,
    };
    let mut reader = spawn_local(reader.send_parts(sender));
    let Some(first) = sent.recv().await else {
        return http::response(active.answer(&head).await);
    };
    let is_last = first.is_last;
    let (mut response, request) = answered(&active, &head, first).await;
    let mut next = response.take_next_request(&request);
    active.count(&head, response.status);
    if response.status != 200 {
        end(sent, &mut reader).await;
        return http::response(response);
    }
    if is_last && next.is_none() {
        return http::response(response);
    }
    let (response, sender, begun) = streamed(response);
    spawn_local(async move {
        let mut text = begun;
        while sender.send(text).await {
            let Some((mut answer, request)) = next_answer(&active, &head, next, &mut sent).await
            else {
                sender.sent().await;
                // Counted before the client receives the end.
                return drop(active);
            };
            next = answer.take_next_request(&request);
            text = answer.body;
            // A part that is rejected as a whole ends the load. The lines before it have their
            // responses.
            if answer.status != 200 {
                text.push(b'\n');
                sender.send(text).await;
                end(sent, &mut reader).await;
                sender.sent().await;
                return;
            }
        }
    });
    response
}

/// Returns the response to `rest`, the rest of the last part, or else to the next part, with its
/// request. `None` at the end of the body.
async fn next_answer(
    active: &ActiveRequest,
    head: &service::Request,
    rest: Option<service::Request>,
    sent: &mut mpsc::Receiver<SentPart>,
) -> Option<(service::Response, service::Request)> {
    let Some(rest) = rest else {
        let part = sent.recv().await?;
        return Some(answered(active, head, part).await);
    };
    // Waiting requests have their turn between two parts.
    yield_now().await;
    Some((active.answer(&rest).await, rest))
}

/// Returns the response to a part, with the request for it, and renews the permit of its request.
async fn answered(
    active: &ActiveRequest,
    head: &service::Request,
    part: SentPart,
) -> (service::Response, service::Request) {
    let response = part.response.await.ok().flatten();
    active.renew();
    // A thread that ended, or a part that was lost.
    let lost = || active.thread.service.refuse(head, &Denied::busy());
    (response.unwrap_or_else(lost), part.request)
}

/// Ends a load: no further part is sent, and the rest of the body is discarded.
async fn end(sent: mpsc::Receiver<SentPart>, reader: &mut JoinHandle<()>) {
    drop(sent);
    drop(timeout(DISCARD_TIME, &mut *reader).await);
    reader.abort();
}

/// The body of a load, and the part that was sent last.
struct Reader {
    active: Rc<ActiveRequest>,
    head: service::Request,
    body: IncomingBody,
    parts: BodyParts,
    /// Resolves when that part is answered.
    earlier: Option<oneshot::Receiver<bool>>,
}

impl Reader {
    /// Sends the parts of the body to the service threads, until its end or that of `sent`.
    async fn send_parts(mut self, sent: mpsc::Sender<SentPart>) {
        let limit = self.active.thread.service.config().limits.body;
        while let Some(part) = self.next().await {
            // Bounds the parts that are in memory.
            let Ok(place) = sent.reserve().await else {
                break;
            };
            let request = match &part {
                Ok(part) if service::may_have_rest(part) => part.clone(),
                _ => service::Request::default(),
            };
            let response = match part {
                Ok(part) => self.send_part(part).await,
                Err(response) => spawn_local(async move { Some(response) }),
            };
            place.send(SentPart {
                request,
                response,
                is_last: self.parts.is_done(),
            });
        }
        self.body.pass(limit).await;
    }

    /// Returns the next part, or the response to a body that cannot be read; `None` at the end.
    async fn next(&mut self) -> Option<Result<service::Request, service::Response>> {
        // Waiting requests run, even if the next part has already arrived.
        yield_now().await;
        if let Err(response) = self.fill().await {
            self.parts.end();
            return Some(Err(response));
        }
        self.parts.next(&self.head).map(Ok)
    }

    /// Reads the bytes of the next part. A line that is long takes the memory of a long body
    /// meanwhile, and has its time.
    async fn fill(&mut self) -> Result<(), service::Response> {
        let (mut long, mut until) = (None, None);
        while self.parts.is_short() {
            if long.is_none() && self.parts.awaits_line_above(HEAVY) {
                long = Some(self.permit_of_line().await?);
                until = Some(Instant::now() + WHOLE);
            }
            // Each step appends about `AHEAD` bytes.
            let full = self.parts.buffer().len().saturating_add(AHEAD);
            let step = self.body.next(self.parts.buffer(), full);
            let read = match until {
                None => step.await,
                Some(until) => timeout_at(until, step).await.unwrap_or(Err(Unread::late())),
            };
            match read {
                Ok(goes_on) => self.parts.record_arrival(goes_on),
                Err(Unread(error)) => {
                    let response = self.active.thread.service.unreadable(&self.head, error);
                    return Err(self.active.record(&self.head, response));
                }
            }
        }
        self.active.thread.return_permit(long);
        Ok(())
    }

    /// Returns the memory for a long line.
    ///
    /// # Errors
    /// The response if none is free in time.
    async fn permit_of_line(&self) -> Result<Permit, service::Response> {
        let limit =
            service::body_limit(&self.head, self.active.thread.service.config().limits.body);
        let permit = self.active.permit_of_bytes(limit).await;
        permit.ok_or_else(|| {
            let denied = self
                .active
                .thread
                .service
                .refuse(&self.head, &Denied::busy());
            self.active.record(&self.head, denied)
        })
    }

    /// Sends a part to a service thread. Heavy permits are requested in the order of the parts, so
    /// a part never waits for one that a later part has.
    async fn send_part(&mut self, part: service::Request) -> JoinHandle<Option<service::Response>> {
        let heavy = match self.active.heavy_permit(&part).await {
            Ok(heavy) => heavy,
            Err(denied) => {
                self.parts.end();
                return spawn_local(async move { Some(denied) });
            }
        };
        let (done, next) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let job = PartJob {
            part,
            request: self.active.shared(),
            arrival: now(),
            earlier: self.earlier.replace(next),
            done,
            answer,
        };
        // A part that cannot be sent is dropped, and its receivers report that.
        let _ = self.active.thread.peers.send(Job::Part(job));
        let thread = Rc::clone(&self.active.thread);
        spawn_local(async move {
            let response = answered.await.ok();
            thread.return_permit(heavy);
            response
        })
    }
}
