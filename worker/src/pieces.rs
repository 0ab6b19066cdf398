//! Long bodies of lines: the service gets them in pieces, cut between lines, and its answers leave as they come.

use crate::http::Body;
use aqlite::service;
use futures_util::{StreamExt, stream};
use std::future::Future;
use worker::{Response, Result, web_sys};

/// Bytes that are read ahead of what is answered.
const AHEAD: usize = 4_000_000;

/// A body on its way.
struct Pieces {
    chunks: Body,
    /// What has arrived and was not handed over.
    buffer: Vec<u8>,
    /// The number of the line that the buffer begins with.
    line: u64,
    ended: bool,
    /// Bytes of a piece at most, unless a line is longer.
    size: usize,
    /// Bytes of a line at most.
    limit: usize,
}

impl Pieces {
    /// Whole lines, and the number of the first of them; nothing at the end. A line that is too long is refused by its length.
    async fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let (size, limit) = (self.size, self.limit);
        let is_short = |buffer: &[u8]| buffer.len() <= AHEAD.min(limit) || (!buffer.contains(&b'\n') && buffer.len() <= limit);
        while !self.ended && is_short(&self.buffer) {
            let chunk = self.chunks.next(AHEAD).await?;
            self.ended = chunk.len() < AHEAD;
            self.buffer.extend(chunk);
        }
        let (all, is_end) = (self.buffer.len(), |b: &u8| *b == b'\n');
        let last = || self.buffer.iter().take(size).rposition(is_end).or_else(|| self.buffer.iter().position(is_end));
        let end = if self.ended && all <= size { all } else { last().map_or(all, |at| at + 1) };
        let rest = self.buffer.split_off(end);
        let (piece, first) = (std::mem::replace(&mut self.buffer, rest), self.line);
        self.line += piece.iter().filter(|b| **b == b'\n').count() as u64;
        Ok((!piece.is_empty()).then_some((first, piece)))
    }

    /// Reads past what is left.
    async fn pass(&mut self) {
        if !self.ended {
            self.chunks.pass(self.limit).await;
        }
    }
}

/// Answers a request piece by piece, of `size` bytes each; the first answer decides about the status.
pub async fn answer<A, F>(head: service::Request, request: web_sys::Request, (size, limit): (usize, usize), mut ask: A) -> Result<web_sys::Response>
where
    A: FnMut(service::Request) -> F + 'static,
    F: Future<Output = service::Response>,
{
    let line = head.query_value("first").and_then(|first| first.parse().ok()).unwrap_or(1);
    let mut pieces = Pieces { chunks: Body::of(&request), buffer: Vec::new(), line, ended: false, size: size.min(limit), limit };
    let (_, body) = pieces.next().await?.unwrap_or_default();
    let first = ask(service::Request { body, ..head.clone() }).await;
    if first.status != 200 {
        pieces.pass().await;
    }
    if first.status != 200 || (pieces.ended && pieces.buffer.is_empty()) {
        return super::http::write(first);
    }
    let (headers, begun) = (super::http::headers(&first)?, first.body);
    let rest = stream::try_unfold(Some((pieces, ask, head)), move |state| async move {
        let Some((mut pieces, mut ask, head)) = state else { return Ok(None) };
        let Some((line, body)) = pieces.next().await? else { return Ok::<_, worker::Error>(None) };
        let mut piece = service::Request { body, ..head.clone() };
        piece.query.retain(|(key, _)| key != "first");
        piece.query.push((String::from("first"), line.to_string()));
        let answer = ask(piece).await;
        // A piece that is refused as a whole ends the load: the lines before it are answered.
        let goes_on = answer.status == 200;
        let mut text = answer.body;
        if !goes_on {
            text.push(b'\n');
            pieces.pass().await;
        }
        Ok(Some((text, goes_on.then_some((pieces, ask, head)))))
    });
    let all = stream::once(async move { Ok(begun) }).chain(rest);
    Ok(Response::from_stream(all)?.with_headers(headers).into())
}
