//! Requests and responses: the runtime's own, and the core's.

use aqlite::service;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::js_sys::{Function, Promise, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::{Headers, Result, web_sys};

/// Bytes of a body of unknown length that are read at a time.
const CHUNK: usize = 100_000;

/// How many times the limit (a chunk, if it is lower) is read past before the connection is given up.
const PATIENCE: usize = 10;

#[wasm_bindgen(module = "/http.js")]
extern "C" {
    fn head(request: &web_sys::Request) -> String;
    fn respond(status: u16, headers: &str, body: Option<Vec<u8>>) -> web_sys::Response;
    fn reader(request: &web_sys::Request, size: usize) -> Function;
}

/// A body on its way, and how many bytes of it are read at a time.
pub struct Body(Function, usize);

impl Body {
    /// The body of a request, which must have one.
    pub fn of(request: &web_sys::Request, size: usize) -> Body {
        Body(reader(request, size), size)
    }

    /// Adds the next bytes to those before; false where it ends here.
    pub async fn next(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let mut chunk = self.chunk().await?.to_vec();
        let goes_on = chunk.len() == self.1;
        into.append(&mut chunk);
        Ok(goes_on)
    }

    async fn chunk(&self) -> Result<Uint8Array> {
        let bytes = Promise::from(self.0.call0(&JsValue::NULL)?);
        Ok(JsFuture::from(bytes).await?.unchecked_into())
    }

    /// Reads past what is left, up to a bound: an answer to a request that is still being sent would not arrive, and the next
    /// request of its connection would fail.
    pub async fn pass(&mut self, limit: usize) {
        let mut left = PATIENCE * limit.max(self.1) / self.1;
        while left > 0 && self.chunk().await.is_ok_and(|chunk| chunk.length() as usize == self.1) {
            left -= 1;
        }
    }
}

/// A request without its body, and scheme and authority of its address.
pub fn read(request: &web_sys::Request) -> Result<(service::Request, String)> {
    let (method, url, headers): (String, String, Vec<(String, String)>) = serde_json::from_str(&head(request))?;
    let (origin, target) = url.split_at(end_of_origin(&url));
    Ok((service::Request { headers, ..service::Request::new(&method, target) }, origin.to_owned()))
}

/// Reads a body. Of one longer than `limit` no more is kept than shows that it is too long.
pub async fn body(request: web_sys::Request, length: Option<&str>, limit: usize) -> Result<Vec<u8>> {
    if request.body().is_none() {
        return Ok(Vec::new());
    }
    if length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| length <= limit) {
        let whole = JsFuture::from(request.array_buffer()?).await?;
        return Ok(Uint8Array::new(&whole).to_vec());
    }
    let (mut chunks, mut body) = (Body::of(&request, CHUNK), Vec::new());
    while chunks.next(&mut body).await? && body.len() <= limit {}
    chunks.pass(limit).await;
    Ok(body)
}

/// Where scheme and authority of a URL end: `https://example.org`.
fn end_of_origin(url: &str) -> usize {
    let authority = url.find("://").map_or(0, |at| at + 3);
    url.get(authority..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(url.len(), |at| authority + at)
}

/// Writes a response. A body that is empty is none: some statuses forbid even an empty one.
pub fn write(response: service::Response) -> Result<web_sys::Response> {
    let headers = serde_json::to_string(&response.headers)?;
    Ok(respond(response.status, &headers, (!response.body.is_empty()).then_some(response.body)))
}

/// The headers of a response.
pub fn headers(response: &service::Response) -> Result<Headers> {
    let headers = Headers::new();
    for (name, value) in &response.headers {
        headers.append(name, value)?;
    }
    Ok(headers)
}
