//! The page in the program: the files of `dist/www` as they were when the program was built. Without
//! them, only the OpenAPI document is answered.

use aqlite::service;
use axum::body::{Body, Bytes};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};
use std::borrow::Cow;
use std::sync::LazyLock;
use twox_hash::XxHash64;

/// The files of the page; none if it was not built before the program.
#[derive(RustEmbed)]
#[folder = "../dist/www"]
#[allow_missing = true]
struct Page;

/// The file that lists the headers of the others, in the format of Cloudflare's asset server.
const HEADERS: &str = "_headers";

/// The paths of the service, as `run_worker_first` of wrangler.toml lists them.
const SERVICE: [&str; 6] = [
    "v1",
    "rest",
    "health",
    "status",
    "cds-services",
    ".well-known",
];

/// Returns whether the program has the page.
pub fn is_embedded() -> bool {
    Page::get("index.html").is_some()
}

/// The path of the OpenAPI document, which the page has as a file.
const OPENAPI: &str = "openapi.json";

/// The OpenAPI document of a program without the page: text and tag.
static DOCUMENT: LazyLock<(Bytes, String)> = LazyLock::new(|| {
    let text = service::openapi().to_string();
    let tag = format!("{:016x}", XxHash64::oneshot(0, text.as_bytes()));
    (Bytes::from(text), tag)
});

/// Returns the answer to a request for a file of the page, or for the OpenAPI document; `None` for
/// the service.
pub fn answer(request: &Parts) -> Option<Response> {
    let path = request.uri.path().trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    if SERVICE.contains(&first) || !is_read {
        return None;
    }
    let Some((name, file)) = found(path) else {
        let (text, tag) = (path == OPENAPI).then(|| &*DOCUMENT)?;
        let content = (text.clone(), "application/json");
        return Some(respond(request, content, tag, Vec::new()));
    };
    let tag = tag(&file);
    let text = match file.data {
        Cow::Borrowed(text) => Bytes::from_static(text),
        Cow::Owned(text) => Bytes::from(text),
    };
    let content = (text, file.metadata.mimetype());
    Some(respond(request, content, &tag, listed_headers(&name)))
}

/// Returns the answer with a content and its media type, or 304 if the client has it.
fn respond(
    request: &Parts,
    (content, media_type): (Bytes, &str),
    tag: &str,
    more: Vec<(String, String)>,
) -> Response {
    let etag = format!("\"{tag}\"");
    let known = request.headers.get(IF_NONE_MATCH);
    let is_known = known.is_some_and(|known| known.as_bytes() == etag.as_bytes());
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Response::new(Body::from(content)),
    };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(CONTENT_TYPE, media_type);
    set(ETAG, &etag);
    set(CACHE_CONTROL, "public, max-age=0, must-revalidate");
    for (name, value) in more {
        if let Ok(name) = HeaderName::try_from(name) {
            set(name, &value);
        }
    }
    response
}

/// Returns the file of a path: `/` is `index.html`, `/api` is `api.html`.
fn found(path: &str) -> Option<(String, EmbeddedFile)> {
    if path == HEADERS {
        return None;
    }
    let names = match path {
        "" => vec![String::from("index.html")],
        _ => vec![path.to_owned(), format!("{path}.html")],
    };
    names
        .into_iter()
        .find_map(|name| Page::get(&name).map(|file| (name, file)))
}

/// Returns the first half of the digest of a file in hexadecimal.
fn tag(file: &EmbeddedFile) -> String {
    let digest = file.metadata.sha256_hash();
    digest.iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// Returns the headers that the page's build lists for a file.
fn listed_headers(name: &str) -> Vec<(String, String)> {
    let file = Page::get(HEADERS);
    let text = file.map(|file| String::from_utf8_lossy(&file.data).into_owned());
    headers_of(&text.unwrap_or_default(), name)
}

/// Parses a list of headers: a pattern at the start of a line, its headers indented below it.
fn headers_of(text: &str, name: &str) -> Vec<(String, String)> {
    let (mut applies, mut headers) = (false, Vec::new());
    for line in text.lines() {
        match line.strip_prefix(' ') {
            None => applies = line == "/*" || line.strip_prefix('/') == Some(name),
            Some(header) if applies => headers.extend(
                header
                    .split_once(':')
                    .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())),
            ),
            Some(_) => {}
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_apply_to_all_files_or_to_the_named_one() {
        let text = "/*\n  A: b: c\n\n/x.js\n  Cache-Control: immutable\n\n/y.js\n  D: e\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let both = [pair("A", "b: c"), pair("Cache-Control", "immutable")];
        assert_eq!(headers_of(text, "x.js"), both);
        assert_eq!(headers_of(text, "index.html"), [pair("A", "b: c")]);
    }
}
