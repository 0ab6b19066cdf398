//! Requests and responses: the runtime's own, and the core's.

use aqlite::service;
use futures_util::StreamExt;
use worker::{Headers, Request, Response, ResponseBody, Result};

/// How many times the limit is read past before the connection is given up.
const PATIENCE: usize = 10;

/// Reads a request without its body.
pub fn head(request: &Request) -> service::Request {
    let url = request.inner().url();
    let target = url.strip_prefix(&origin(&url)).unwrap_or_default();
    let mut read = service::Request::new(&request.inner().method(), target);
    read.headers = request.headers().entries().collect();
    read
}

/// Reads a body. Of one longer than `limit` no more is kept than shows that it is too long; the rest is read past, up to a bound: an answer to a request that is still being sent would not arrive.
pub async fn body(request: &mut Request, limit: usize) -> Result<Vec<u8>> {
    let (mut body, mut past) = (Vec::new(), 0);
    if request.inner().body().is_none() {
        return Ok(body);
    }
    let mut chunks = request.stream()?;
    while past < PATIENCE * limit {
        let Some(chunk) = chunks.next().await else { break };
        if body.len() <= limit {
            body.extend_from_slice(&chunk?);
        } else {
            past += chunk?.len();
        }
    }
    Ok(body)
}

/// Scheme and authority of a URL: `https://example.org`.
pub fn origin(url: &str) -> String {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(authority..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(url.len(), |at| authority + at);
    url.get(..end).unwrap_or(url).to_owned()
}

/// Writes a response. A body that is empty is none: some statuses forbid even an empty one.
pub fn write(response: service::Response) -> Result<Response> {
    let headers = headers(&response)?;
    let body = if response.body.is_empty() { ResponseBody::Empty } else { ResponseBody::Body(response.body) };
    Ok(Response::from_body(body)?.with_status(response.status).with_headers(headers))
}

/// The headers of a response.
pub fn headers(response: &service::Response) -> Result<Headers> {
    let headers = Headers::new();
    for (name, value) in &response.headers {
        headers.append(name, value)?;
    }
    Ok(headers)
}
