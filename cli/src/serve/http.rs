//! The HTTP server: connections, conversion of requests and responses, dispatch to service threads.

use super::database::Files;
use super::metrics::{Metrics, route_class};
use super::server::HEADERS;
use super::thread::{Job, Pool, RequestJob};
use super::{page, storage};
use aqlite::service;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// The header of proxies that lists the addresses through which a request came.
const FORWARDED: &str = "X-Forwarded-For";

/// Seconds after which a client should try again that met a full queue.
const RETRY: &str = "1";

/// The data of the handlers.
#[derive(Clone)]
pub struct Server {
    /// The service threads.
    pub pool: Pool,
    /// The figures.
    pub metrics: Arc<Metrics>,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Whether a proxy adds the address of the client to each request.
    pub is_behind_proxy: bool,
}

/// Returns the routes of the service and of the page.
pub fn routes(server: Server) -> Router {
    Router::new().fallback(handle).with_state(server)
}

/// The data of the handler of the figures.
#[derive(Clone)]
pub struct Figures {
    /// The figures that are counted.
    pub metrics: Arc<Metrics>,
    /// The files whose sizes are read for each answer.
    pub files: Files,
}

/// Returns the routes of the figures.
pub fn metrics_routes(figures: Figures) -> Router {
    Router::new()
        .route("/metrics", get(answer_figures))
        .with_state(figures)
}

async fn answer_figures(State(Figures { metrics, files }): State<Figures>) -> Response {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    // A folder of many segments on a slow disk must not delay requests.
    match spawn_blocking(move || metrics.text(&storage::measure(&files))).await {
        Ok(Ok(text)) => ([("Content-Type", TYPE)], text).into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn handle(
    State(server): State<Server>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    if let Some(answer) = page::answer(&parts) {
        return answer;
    }
    // Checked by hyper for HTTP/1 only.
    if parts.headers.len() > HEADERS {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response();
    }
    // Before the headers are copied, so that requests without a place take little memory.
    if !server.pool.has_room() {
        return refused(&server, route_class(parts.uri.path()), started);
    }
    let Some(head) = head(&server, &parts, peer) else {
        return without_host();
    };
    // hyper knows from the headers that a request has no body.
    let body = (!body.is_end_stream()).then_some(body);
    let route = route_class(&head.path);
    let (answer, answered) = oneshot::channel();
    let job = Job::Request(RequestJob {
        head,
        body,
        started,
        is_multiplexed: parts.version >= Version::HTTP_2,
        answer,
    });
    if !server.pool.send(job) {
        return refused(&server, route, started);
    }
    // Many requests of one connection may wait, each with long headers.
    let method = parts.method.clone();
    drop(parts);
    // The channel closes without an answer if the service thread has ended.
    let answer = answered.await.unwrap_or_else(|_| unavailable());
    without_length(&method, answer)
}

/// Refuses a request that no service thread has room for.
fn refused(server: &Server, route: &'static str, started: Instant) -> Response {
    server.metrics.record_refusal();
    let (status, time) = (StatusCode::SERVICE_UNAVAILABLE, started.elapsed());
    server.metrics.record_answer(route, status.as_u16(), time);
    unavailable()
}

/// Omits the length of an answer that has no body: it would be 0, and the length of an answer to
/// HEAD is that of GET (RFC 9110, section 8.6).
fn without_length(method: &Method, mut answer: Response) -> Response {
    let has_none = *method == Method::HEAD
        || matches!(
            answer.status(),
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
    if has_none {
        // The size of a stream is unknown, so that axum and hyper write none.
        let nothing = stream::empty::<Result<Bytes, Infallible>>();
        *answer.body_mut() = Body::from_stream(nothing);
    }
    answer
}

/// The answer to a request that names no host, so that no address of a resource could be made.
fn without_host() -> Response {
    const BODY: &str = r#"{"error":"Bad Request","message":"the request names no host: send the header Host, which HTTP/1.0 leaves out by default","code":400,"errors":[]}"#;
    let headers = [("Content-Type", "application/json")];
    (StatusCode::BAD_REQUEST, headers, BODY).into_response()
}

/// The answer if all service threads are full, or have ended.
fn unavailable() -> Response {
    const BODY: &str = r#"{"error":"Service Unavailable","message":"too many requests are waiting","code":503,"errors":[]}"#;
    let headers = [("Content-Type", "application/json"), ("Retry-After", RETRY)];
    (StatusCode::SERVICE_UNAVAILABLE, headers, BODY).into_response()
}

/// Returns the host and port that a request is addressed to; `None` if it names none, which only
/// HTTP/1.0 allows.
///
/// HTTP/2 has it in the pseudo-header `:authority`, which is a part of the URI here. In HTTP/1, a
/// request line with a whole URL precedes the header `Host` (RFC 9112, section 3.2.2). The service
/// checks both, because the headers stay as they were sent.
fn authority(parts: &Parts) -> Option<&str> {
    let host = parts.headers.get(HOST);
    if parts.version == Version::HTTP_11 && host.is_none() {
        return None;
    }
    let requested = parts.uri.authority().map(|authority| authority.as_str());
    let authority = match parts.version {
        Version::HTTP_2 => requested,
        _ => requested.or_else(|| host?.to_str().ok()),
    };
    authority.filter(|authority| !authority.is_empty())
}

/// Converts the head of a request; `None` if it names no host.
fn head(server: &Server, parts: &Parts, peer: SocketAddr) -> Option<service::Request> {
    let authority = authority(parts)?;
    let target = parts.uri.path_and_query().map_or("/", |t| t.as_str());
    let mut head = service::Request {
        base_url: format!("{}://{authority}", server.scheme),
        ..service::Request::new(parts.method.as_str(), target)
    };
    head.headers = headers(&parts.headers);
    head.client_address = client_address(&parts.headers, peer, server.is_behind_proxy);
    identify(&mut head);
    Some(head)
}

/// Returns the address of a client: that of its connection, or the one that the proxy has added.
fn client_address(headers: &HeaderMap, peer: SocketAddr, is_behind_proxy: bool) -> String {
    let address = match is_behind_proxy {
        true => forwarded(headers),
        false => None,
    };
    // A dual-stack socket shows IPv4 addresses as IPv6 (`::ffff:192.0.2.1`). One client must have
    // one address.
    address.unwrap_or_else(|| peer.ip().to_canonical().to_string())
}

/// Gives a request an id, unless the client sent a valid one. An invalid id is replaced, so that log
/// and response agree.
fn identify(head: &mut service::Request) {
    if head.id().is_empty() {
        head.headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("X-Request-Id"));
        let id = uuid::Uuid::new_v4().to_string();
        head.headers.push((String::from("X-Request-Id"), id));
    }
}

/// Returns the headers of a request. Lines of one name are one list (RFC 9110, section 5.3).
fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut all = Vec::with_capacity(headers.keys_len());
    for name in headers.keys() {
        let lines = headers.get_all(name).iter().map(text);
        // A host is no list. The service refuses a second one.
        if *name == HOST {
            all.extend(lines.map(|line| (name.as_str().to_owned(), line)));
        } else {
            let list = lines.collect::<Vec<_>>().join(", ");
            all.push((name.as_str().to_owned(), list));
        }
    }
    all
}

/// Returns the text of a header: UTF-8, or ISO 8859-1 if the bytes are not UTF-8.
///
/// Older clients send ISO 8859-1, the encoding of HTTP before RFC 7230. Its 256 characters are the
/// first ones of Unicode, so every byte has a character.
fn text(value: &HeaderValue) -> String {
    let bytes = value.as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// Returns the address that the proxy has added: the last one. Clients may have sent the others.
fn forwarded(headers: &HeaderMap) -> Option<String> {
    let last = headers.get_all(FORWARDED).iter().next_back()?;
    let last = last.to_str().ok()?.rsplit(',').next()?.trim();
    (!last.is_empty()).then(|| last.to_owned())
}

/// Converts a response.
pub fn response(mut response: service::Response) -> Response {
    let body = Body::from(std::mem::take(&mut response.body));
    response_with(response, body)
}

/// Converts status and headers of a response, with another body.
pub fn response_with(from: service::Response, body: Body) -> Response {
    let mut response = Response::new(body);
    let status = StatusCode::from_u16(from.status);
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in from.headers {
        // The core writes no invalid name. A value with a control character would split the head.
        if let (Ok(name), Ok(value)) = (
            HeaderName::try_from(name),
            HeaderValue::from_maybe_shared(Bytes::from(value)),
        ) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_cannot_set_the_address_that_the_server_uses() {
        let mut sent = HeaderMap::new();
        sent.insert("cf-connecting-ip", HeaderValue::from_static("10.0.0.1"));
        sent.insert(FORWARDED, HeaderValue::from_static("10.0.0.2, 10.0.0.3"));
        let peer = SocketAddr::from(([192, 0, 2, 1], 443));
        let address = |is_behind_proxy| client_address(&sent, peer, is_behind_proxy);
        assert_eq!([false, true].map(address), ["192.0.2.1", "10.0.0.3"]);
    }

    #[test]
    fn lines_of_one_header_are_one_list_except_hosts() {
        let mut sent = HeaderMap::new();
        for (name, value) in [
            ("accept", "text/html"),
            ("host", "a"),
            ("accept", "application/json"),
            ("host", "b"),
        ] {
            sent.append(name, HeaderValue::from_static(value));
        }
        let expected = [
            ("accept", "text/html, application/json"),
            ("host", "a"),
            ("host", "b"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers(&sent), expected);
    }

    #[test]
    fn header_that_is_not_utf8_is_read_as_iso_8859_1() {
        let read = |bytes: &[u8]| text(&HeaderValue::from_bytes(bytes).unwrap());
        assert_eq!(read("name=\"Åsa\"".as_bytes()), "name=\"Åsa\"");
        assert_eq!(read(b"name=\"\xc5sa\""), "name=\"Åsa\"");
        // Both encodings in one value: all of it is ISO 8859-1.
        assert_eq!(read(b"\xc3\x85 \xc5\xff"), "Ã\u{85} Åÿ");
    }

    #[test]
    fn address_behind_a_proxy_is_the_one_that_the_proxy_added() {
        let mut sent = HeaderMap::new();
        assert_eq!(forwarded(&sent), None);
        sent.append(FORWARDED, HeaderValue::from_static("10.0.0.1, 192.0.2.7"));
        assert_eq!(forwarded(&sent).as_deref(), Some("192.0.2.7"));
        sent.append(FORWARDED, HeaderValue::from_static("192.0.2.8"));
        assert_eq!(forwarded(&sent).as_deref(), Some("192.0.2.8"));
    }

    #[test]
    fn header_that_would_split_the_head_is_left_out() {
        let answer = service::Response::new(200).with_header("Location", "a\r\nb: c");
        assert!(response(answer).headers().is_empty());
    }
}
