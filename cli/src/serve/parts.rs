//! Bodies in parts: long bodies of lines, whose responses are sent as they are ready, and results with
//! more rows than a page.

use super::body::{IncomingBody, Unread};
use super::http;
use super::request::ActiveRequest;
use aqlite::service::{self, AHEAD, BodyParts};
use axum::body::{Body, Bytes};
use axum::response::Response;
use std::convert::Infallible;
use std::rc::Rc;
use tokio::sync::mpsc;
use tokio::task::{spawn_local, yield_now};

/// Returns a response whose body begins with that of `first`, and the sender of the rest. One part
/// waits while the next one is made.
fn streamed(first: service::Response) -> (Response, mpsc::Sender<Bytes>, Bytes) {
    let (sender, mut receiver) = mpsc::channel(1);
    let begun = Bytes::from(first.body);
    let head = service::Response {
        body: Vec::new(),
        ..first
    };
    let stream = futures_util::stream::poll_fn(move |context| {
        receiver
            .poll_recv(context)
            .map(|part| part.map(Ok::<Bytes, Infallible>))
    });
    let response = http::response_with(head, Body::from_stream(stream));
    (response, sender, begun)
}

/// Sends the first part of a result and all that follow it.
pub fn send_rows(
    active: Rc<ActiveRequest>,
    mut request: service::Request,
    mut first: service::Response,
) -> Response {
    let mut rest = first.rest.take();
    let (response, sender, begun) = streamed(first);
    spawn_local(async move {
        let mut text = begun;
        while sender.send(text).await.is_ok() {
            let Some(part) = rest.take() else { return };
            request.part = Some(part);
            // Waiting requests have their turn between two parts.
            yield_now().await;
            let mut answer = active.answer(&request).await;
            // The status is sent already, so the last line is the error.
            match answer.status {
                200 => rest = answer.rest,
                _ => answer.body.push(b'\n'),
            }
            text = Bytes::from(answer.body);
        }
    });
    response
}

/// The rest of a long body of lines: the service gets it in parts, and its responses are sent as
/// they are ready.
pub struct Load {
    active: Rc<ActiveRequest>,
    head: service::Request,
    body: IncomingBody,
    parts: BodyParts,
    limit: usize,
}

impl Load {
    /// Creates the load of a request. A part has `size` bytes; `limit` is that of bodies.
    pub fn new(
        active: Rc<ActiveRequest>,
        head: service::Request,
        body: IncomingBody,
        (size, limit): (usize, usize),
    ) -> Load {
        Load {
            active,
            head,
            body,
            parts: BodyParts::new(size, limit),
            limit,
        }
    }

    /// Responds to all parts. The first response determines the status.
    pub async fn answer(mut self) -> Response {
        let first = match self.answer_next().await {
            Some(first) => first,
            None => self.active.answer(&self.head).await,
        };
        if first.status != 200 {
            self.body.pass(self.limit).await;
        }
        if first.status != 200 || self.parts.is_done() {
            return http::response(first);
        }
        let (response, sender, begun) = streamed(first);
        spawn_local(self.answer_rest(begun, sender));
        response
    }

    /// Sends the responses to the remaining parts until the client goes away.
    async fn answer_rest(mut self, begun: Bytes, sender: mpsc::Sender<Bytes>) {
        let mut text = begun;
        while sender.send(text).await.is_ok() {
            let Some(answer) = self.answer_next().await else {
                return;
            };
            text = Bytes::from(answer.body);
            // A part that is rejected as a whole ends the load. The lines before it have their
            // responses.
            if answer.status != 200 {
                drop(sender.send(text).await);
                drop(sender.send(Bytes::from_static(b"\n")).await);
                return self.body.pass(self.limit).await;
            }
        }
    }

    /// Responds to the next part; `None` at the end of the body.
    async fn answer_next(&mut self) -> Option<service::Response> {
        match self.next().await {
            Ok(part) => Some(self.active.answer(&part?).await),
            Err(Unread(error)) => {
                let response = self.active.thread.service.unreadable(&self.head, error);
                Some(self.active.record(&self.head, response))
            }
        }
    }

    async fn next(&mut self) -> Result<Option<service::Request>, Unread> {
        // Waiting requests run, even if the next part has already arrived.
        yield_now().await;
        while self.parts.is_short() {
            let full = self.parts.buffer().len().saturating_add(AHEAD);
            let goes_on = self.body.next(self.parts.buffer(), full).await?;
            self.parts.record_arrival(goes_on);
        }
        Ok(self.parts.next(&self.head))
    }
}
