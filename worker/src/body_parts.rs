//! Long bodies of lines: the service gets them in parts, and its responses are sent as they are
//! ready.

use crate::http::{Body, Unread};
use crate::memory::Sending;
use crate::{ActiveRequest, compaction};
use aqlite::service::{AHEAD, BodyParts, Request, Response};
use futures_util::stream;
use std::rc::Rc;
use std::time::Duration;
use worker::{Delay, Result, web_sys};

/// The rest of a load.
struct Load {
    active: Rc<ActiveRequest>,
    head: Request,
    body: Body,
    parts: BodyParts,
    /// The request for the rest of the last part, if it has one.
    rest: Option<Request>,
    limit: usize,
    /// Prevents the replacement of this instance while responses of the load are being sent.
    _sending: Sending,
}

impl Load {
    /// Responds to the next part, or to the rest of the last one; `None` at the end of the body.
    async fn answer(&mut self) -> Option<Response> {
        let part = match self.next().await {
            Ok(part) => part?,
            Err(Unread(error)) => {
                return Some(self.active.log_response(
                    &self.head,
                    self.active.state.service.unreadable(&self.head, error),
                ));
            }
        };
        let mut answer = self.active.answer(&part).await;
        self.rest = answer.take_next_request(&part);
        compaction::during_load(&self.active.state).await;
        Some(answer)
    }

    async fn next(&mut self) -> Result<Option<Request>, Unread> {
        // Other requests get a turn of the event loop, even if the next part has already arrived.
        Delay::from(Duration::ZERO).await;
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        while self.parts.is_short() {
            let goes_on = self.body.next(self.parts.buffer()).await?;
            self.parts.record_arrival(goes_on);
        }
        Ok(self.parts.next(&self.head))
    }
}

/// Responds to a request part by part. The first response determines the
/// status.
pub async fn answer(
    active: Rc<ActiveRequest>,
    mut head: Request,
    request: &web_sys::Request,
    parts: BodyParts,
    limit: usize,
) -> Result<web_sys::Response> {
    let body = Body::expanded(request, &mut head, AHEAD);
    let mut load = Load {
        active,
        head,
        body,
        parts,
        rest: None,
        limit,
        _sending: Sending::begin(),
    };
    let first = match load.answer().await {
        Some(first) => first,
        None => load.active.answer(&load.head).await,
    };
    if first.status != 200 {
        load.body.pass(limit).await;
    }
    if first.status != 200 || (load.rest.is_none() && load.parts.is_done()) {
        return super::http::write(first);
    }
    let rest = stream::unfold(Some(load), move |load| async move {
        let mut load = load?;
        let answer = load.answer().await?;
        // A part that is rejected as a whole ends the load. The outcomes of the lines before it
        // were sent already.
        let goes_on = answer.status == 200;
        let mut text = answer.body;
        if !goes_on {
            text.push(b'\n');
            load.body.pass(load.limit).await;
        }
        Some((Ok(text), goes_on.then_some(load)))
    });
    super::http::write_parts(first, rest)
}
