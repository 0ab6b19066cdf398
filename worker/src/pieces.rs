//! Long bodies of lines: the service gets them in pieces, and its answers leave as they come.

use crate::http::Body;
use crate::memory::Sending;
use aqlite::service::{AHEAD, Pieces, Request, Response};
use futures_util::{StreamExt, stream};
use std::future::Future;
use worker::{Result, web_sys};

/// The next piece of a body.
async fn next(body: &mut Body, pieces: &mut Pieces, head: &Request) -> Result<Option<Request>> {
    while pieces.is_short() {
        let goes_on = body.next(pieces.buffer()).await?;
        pieces.took(goes_on);
    }
    Ok(pieces.next(head))
}

/// Answers a request piece by piece, of `size` bytes each; the first answer decides about the status.
pub async fn answer<A, F>(head: Request, request: web_sys::Request, (size, limit): (usize, usize), mut ask: A) -> Result<web_sys::Response>
where
    A: FnMut(Request) -> F + 'static,
    F: Future<Output = Response>,
{
    let (mut body, mut pieces) = (Body::of(&request, AHEAD), Pieces::new(size, limit));
    let piece = next(&mut body, &mut pieces, &head).await?;
    let first = ask(piece.unwrap_or_else(|| head.clone())).await;
    if first.status != 200 {
        body.pass(limit).await;
    }
    if first.status != 200 || pieces.is_done() {
        return super::http::write(first);
    }
    let (headers, begun) = (super::http::headers(&first)?, first.body);
    let begins = (body, pieces, ask, head, Sending::begin());
    let rest = stream::try_unfold(Some(begins), move |state| async move {
        let Some((mut body, mut pieces, mut ask, head, sending)) = state else { return Ok(None) };
        let Some(piece) = next(&mut body, &mut pieces, &head).await? else { return Ok::<_, worker::Error>(None) };
        let answer = ask(piece).await;
        // A piece that is refused as a whole ends the load: the lines before it are answered.
        let goes_on = answer.status == 200;
        let mut text = answer.body;
        if !goes_on {
            text.push(b'\n');
            body.pass(limit).await;
        }
        Ok(Some((text, goes_on.then_some((body, pieces, ask, head, sending)))))
    });
    let all = stream::once(async move { Ok(begun) }).chain(rest);
    Ok(worker::Response::from_stream(all)?.with_headers(headers).into())
}
