//! Long bodies of lines: the service gets them in pieces, and its answers leave as they come.

use crate::http::{Body, Unread};
use crate::memory::Sending;
use crate::{Visit, compaction};
use aqlite::service::{AHEAD, Pieces, Request, Response};
use futures_util::{StreamExt, stream};
use std::rc::Rc;
use std::time::Duration;
use worker::{Delay, Result, web_sys};

/// What is left of a load.
struct Load {
    visit: Rc<Visit>,
    head: Request,
    body: Body,
    pieces: Pieces,
    limit: usize,
    /// Keeps this instance while answers of the load are being sent.
    _sending: Sending,
}

impl Load {
    /// Answers the next piece; nothing where the body has ended.
    async fn answer(&mut self) -> Option<Response> {
        let piece = match self.next().await {
            Ok(piece) => piece?,
            Err(Unread(error)) => {
                return Some(self.visit.tell(
                    &self.head,
                    self.visit.state.service.unreadable(&self.head, error),
                ));
            }
        };
        let answer = self.visit.answer(&piece).await;
        compaction::during_load(&self.visit.state).await;
        Some(answer)
    }

    async fn next(&mut self) -> Result<Option<Request>, Unread> {
        // Whatever waits meanwhile goes on, also where the next piece is there already.
        Delay::from(Duration::ZERO).await;
        while self.pieces.is_short() {
            let goes_on = self.body.next(self.pieces.buffer()).await?;
            self.pieces.took(goes_on);
        }
        Ok(self.pieces.next(&self.head))
    }
}

/// Answers a request piece by piece, of `size` bytes each; the first answer decides about the
/// status.
pub async fn answer(
    visit: Rc<Visit>,
    mut head: Request,
    request: &web_sys::Request,
    (size, limit): (usize, usize),
) -> Result<web_sys::Response> {
    let body = Body::expanded(request, &mut head, AHEAD);
    let mut load = Load {
        visit,
        head,
        body,
        pieces: Pieces::new(size, limit),
        limit,
        _sending: Sending::begin(),
    };
    let first = match load.answer().await {
        Some(first) => first,
        None => load.visit.answer(&load.head).await,
    };
    if first.status != 200 {
        load.body.pass(limit).await;
    }
    if first.status != 200 || load.pieces.is_done() {
        return super::http::write(first);
    }
    let (headers, begun) = (super::http::headers(&first)?, first.body);
    let rest = stream::unfold(Some(load), move |load| async move {
        let mut load = load?;
        let answer = load.answer().await?;
        // A piece that is refused as a whole ends the load: the lines before it are answered.
        let goes_on = answer.status == 200;
        let mut text = answer.body;
        if !goes_on {
            text.push(b'\n');
            load.body.pass(load.limit).await;
        }
        Some((Ok::<_, worker::Error>(text), goes_on.then_some(load)))
    });
    let all = stream::once(async move { Ok(begun) }).chain(rest);
    Ok(worker::Response::from_stream(all)?
        .with_headers(headers)
        .into())
}
