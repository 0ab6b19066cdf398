//! Long bodies of lines: the service gets them in pieces, cut between lines, and its answers leave as they come.

use aqlite::service;
use futures_util::{StreamExt, stream};
use std::future::Future;
use worker::{ByteStream, Request, Response, Result, web_sys};

/// Bytes of a piece, about.
const PIECE: usize = 4_000_000;

/// A body on its way.
struct Pieces {
    chunks: ByteStream,
    /// What has arrived and was not handed over.
    buffer: Vec<u8>,
    /// The number of the line that the buffer begins with.
    line: u64,
    ended: bool,
}

impl Pieces {
    /// Whole lines of at most `limit` bytes together, and the number of the first of them; nothing at the end. A longer line is
    /// refused by its length.
    async fn next(&mut self, limit: usize) -> Result<Option<(u64, Vec<u8>)>> {
        let is_short = |buffer: &[u8]| buffer.len() < PIECE.min(limit) || (!buffer.contains(&b'\n') && buffer.len() <= limit);
        while !self.ended && is_short(&self.buffer) {
            match self.chunks.next().await {
                Some(chunk) => self.buffer.extend_from_slice(&chunk?),
                None => self.ended = true,
            }
        }
        let (all, last) = (self.buffer.len(), self.buffer.iter().take(limit).rposition(|b| *b == b'\n'));
        let rest = self.buffer.split_off(if self.ended && all <= limit { all } else { last.map_or(all, |at| at + 1) });
        let (piece, first) = (std::mem::replace(&mut self.buffer, rest), self.line);
        self.line += piece.iter().filter(|b| **b == b'\n').count() as u64;
        Ok((!piece.is_empty()).then_some((first, piece)))
    }
}

/// Answers a request piece by piece; the first answer decides about the status.
pub async fn answer<A, F>(head: service::Request, request: web_sys::Request, limit: usize, mut ask: A) -> Result<web_sys::Response>
where
    A: FnMut(service::Request) -> F + 'static,
    F: Future<Output = service::Response>,
{
    let line = head.query_value("first").and_then(|first| first.parse().ok()).unwrap_or(1);
    let mut pieces = Pieces { chunks: Request::from(request).stream()?, buffer: Vec::new(), line, ended: false };
    let (_, body) = pieces.next(limit).await?.unwrap_or_default();
    let first = ask(service::Request { body, ..head.clone() }).await;
    if first.status != 200 || (pieces.ended && pieces.buffer.is_empty()) {
        return super::http::write(first);
    }
    let (headers, begun) = (super::http::headers(&first)?, first.body);
    let rest = stream::try_unfold(Some((pieces, ask, head)), move |state| async move {
        let Some((mut pieces, mut ask, head)) = state else { return Ok(None) };
        let Some((line, body)) = pieces.next(limit).await? else { return Ok::<_, worker::Error>(None) };
        let mut piece = service::Request { body, ..head.clone() };
        piece.query.retain(|(key, _)| key != "first");
        piece.query.push((String::from("first"), line.to_string()));
        let answer = ask(piece).await;
        // A piece that is refused as a whole ends the load: the lines before it are answered.
        let goes_on = answer.status == 200;
        let mut text = answer.body;
        if !goes_on {
            text.push(b'\n');
        }
        Ok(Some((text, goes_on.then_some((pieces, ask, head)))))
    });
    let all = stream::once(async move { Ok(begun) }).chain(rest);
    Ok(Response::from_stream(all)?.with_headers(headers).into())
}
