//! Conversion of requests and responses between the runtime and the core.

use crate::memory::count_response;
use aqlite::service::{self, DISCARD_TIME, DISCARDED, EXPANDED, Gunzip, GzipError, HEAVY, Needs};
use futures_util::future::{Either, FutureExt, select};
use futures_util::{Stream, StreamExt, pin_mut, stream};
use std::time::Duration;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::js_sys::{Array, Function, Promise, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::{Delay, Error, Headers, Result, web_sys};

/// The time in which a short body, or each [`CHUNK`] of a longer one, must arrive. A request whose
/// body is arriving occupies a permit, so a slow client must not hold it for long.
const IDLE: Duration = Duration::from_secs(30);

/// The number of bytes of a body that are read at once, if its length is unknown or it is compressed.
pub const CHUNK: usize = 100_000;

#[wasm_bindgen(module = "/http.js")]
extern "C" {
    fn head(request: &web_sys::Request) -> String;
    fn respond(status: u16, headers: &str, body: Option<Vec<u8>>) -> web_sys::Response;
    fn observed(status: u16, headers: &str, body: Vec<u8>) -> Array;
    fn reader(request: &web_sys::Request, size: usize) -> Function;
}

/// The body of a request, as far as it was read.
pub struct Body {
    reader: Function,
    /// The number of bytes that are read at once. The last read may return fewer.
    size: usize,
    gunzip: Option<Gunzip>,
    ended: bool,
}

/// A body that cannot be read completely: an error of gzip, or a broken connection.
pub struct Unread(pub GzipError);

impl From<Error> for Unread {
    fn from(_: Error) -> Unread {
        Unread(GzipError::Malformed)
    }
}

impl From<GzipError> for Unread {
    fn from(error: GzipError) -> Unread {
        Unread(error)
    }
}

impl Body {
    /// Returns the body of a request, which must have one.
    pub fn new(request: &web_sys::Request, size: usize) -> Body {
        Body {
            reader: reader(request, size),
            size,
            gunzip: None,
            ended: false,
        }
    }

    /// Returns the body of a request, decompressed if necessary. Removes the coding from the
    /// headers then. `size` applies to a body without compression.
    pub fn expanded(request: &web_sys::Request, head: &mut service::Request, size: usize) -> Body {
        if !service::is_compressed(head) {
            return Body::new(request, size);
        }
        head.headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("Content-Encoding"));
        Body {
            gunzip: Some(Gunzip::default()),
            ..Body::new(request, CHUNK)
        }
    }

    /// Appends the next bytes. Returns false at the end of the body.
    pub async fn next(&mut self, into: &mut Vec<u8>) -> Result<bool, Unread> {
        let Some(mut gunzip) = self.gunzip.take() else {
            // Copying twice is faster than `resize`, which writes its zeros byte by byte here.
            into.extend_from_slice(&self.chunk().await?.to_vec());
            return Ok(!self.ended);
        };
        // Each step appends at most `EXPANDED` bytes of output. A step may need several chunks of
        // input, or only a part of one.
        let full = into.len() + EXPANDED;
        while gunzip.expand(into, full.saturating_sub(into.len()))? == Needs::Input {
            if self.ended {
                gunzip.end()?;
                return Ok(false);
            }
            gunzip.feed(&self.chunk().await?.to_vec());
        }
        self.gunzip = Some(gunzip);
        Delay::from(Duration::ZERO).await;
        Ok(true)
    }

    async fn chunk(&mut self) -> Result<Uint8Array> {
        let bytes = Promise::from(self.reader.call0(&JsValue::NULL)?);
        // No timeout for the parts of a bulk load: a client may compute the lines while it sends
        // them, and a load occupies no permit for long bodies.
        let read = match self.size > CHUNK {
            true => JsFuture::from(bytes).await?,
            false => in_time(bytes).await?,
        };
        let bytes: Uint8Array = read.unchecked_into();
        // The reader returns full chunks until the end, so a shorter one is the last.
        self.ended = (bytes.length() as usize) < self.size;
        Ok(bytes)
    }

    /// Reads the rest without decompressing it, and discards it, up to a bound. A client that is still
    /// sending would not read the response, and the next request of its connection would fail.
    pub async fn pass(&mut self, limit: usize) {
        let most = DISCARDED * limit.max(EXPANDED) / self.size;
        let all = async {
            for _ in 0..=most {
                if self.ended || self.chunk().await.is_err() {
                    return;
                }
            }
        };
        let late = Delay::from(DISCARD_TIME);
        pin_mut!(all, late);
        select(all, late).await;
    }
}

/// Reads a request without its body.
pub fn read(request: &web_sys::Request) -> Result<service::Request> {
    let (method, url, headers): (String, String, Vec<(String, String)>) =
        serde_json::from_str(&head(request))?;
    let (base_url, target) = url.split_at(end_of_origin(&url));
    let mut head = service::Request {
        headers,
        base_url: base_url.to_owned(),
        ..service::Request::new(&method, target)
    };
    // Cloudflare sets this header, and replaces one that the client sent.
    head.client_address = head
        .header("CF-Connecting-IP")
        .unwrap_or_default()
        .to_owned();
    Ok(head)
}

/// Reads a body. Stops as soon as it exceeds `limit`, which the length then shows.
pub async fn body(
    request: web_sys::Request,
    head: &mut service::Request,
    limit: usize,
) -> Result<Vec<u8>, Unread> {
    if request.body().is_none() {
        return Ok(Vec::new());
    }
    let length = head
        .header("Content-Length")
        .and_then(|length| length.parse::<usize>().ok());
    let known = length.filter(|length| *length <= limit && !service::is_compressed(head));
    // The runtime reads a short body in one call. A copy of a long one in its memory would remain
    // until it collects garbage.
    if known.is_some_and(|length| length <= HEAVY) {
        let whole = in_time(request.array_buffer().map_err(Error::from)?).await?;
        return Ok(Uint8Array::new(&whole).to_vec());
    }
    let mut chunks = Body::expanded(&request, head, CHUNK);
    let mut body = Vec::with_capacity(known.unwrap_or_default());
    let read = async {
        while chunks.next(&mut body).await? && body.len() <= limit {}
        Ok(())
    }
    .await;
    // Also after an error: the connection stays usable only if the body was read.
    chunks.pass(limit).await;
    read.map(|()| body)
}

/// Waits for bytes of a body.
///
/// # Errors
/// If they do not arrive in time, or the connection is broken.
async fn in_time(bytes: Promise) -> Result<JsValue> {
    let (bytes, late) = (JsFuture::from(bytes), Delay::from(IDLE));
    pin_mut!(bytes, late);
    match select(bytes, late).await {
        Either::Left((bytes, _)) => Ok(bytes?),
        Either::Right(_) => Err(Error::from("the body did not arrive in time")),
    }
}

/// Returns the end of scheme and authority in a URL: `https://example.org`.
fn end_of_origin(url: &str) -> usize {
    let authority = url.find("://").map_or(0, |at| at + 3);
    url.get(authority..)
        .and_then(|rest| rest.find(['/', '?', '#']))
        .map_or(url.len(), |at| authority + at)
}

/// Writes a response. An empty body is none: some statuses forbid even an empty one.
pub fn write(response: service::Response) -> Result<web_sys::Response> {
    let headers = serde_json::to_string(&response.headers)?;
    count_response(response.body.len());
    Ok(respond(
        response.status,
        &headers,
        (!response.body.is_empty()).then_some(response.body),
    ))
}

/// Writes a response with a body. The future resolves when the body is sent, or cannot be.
pub fn write_observed(
    response: service::Response,
) -> Result<(web_sys::Response, impl Future<Output = ()>)> {
    let headers = serde_json::to_string(&response.headers)?;
    count_response(response.body.len());
    let parts = observed(response.status, &headers, response.body);
    let sent = JsFuture::from(Promise::from(parts.get(1)));
    Ok((parts.get(0).unchecked_into(), sent.map(drop)))
}

/// Writes a response whose body begins with that of `first`, and continues with `rest` as the
/// client reads it.
pub fn write_parts(
    first: service::Response,
    rest: impl Stream<Item = Result<Vec<u8>>> + 'static,
) -> Result<web_sys::Response> {
    let (headers, begun) = (headers(&first)?, first.body);
    let parts = stream::once(async move { Ok(begun) }).chain(rest);
    let response = worker::Response::from_stream(parts)?;
    Ok(response.with_headers(headers).into())
}

/// Returns the headers of a response.
fn headers(response: &service::Response) -> Result<Headers> {
    let headers = Headers::new();
    for (name, value) in &response.headers {
        headers.append(name, value)?;
    }
    Ok(headers)
}
