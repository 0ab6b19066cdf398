//! Requests and responses as data, independent of the host.

use super::error::{Failure, shortened};
use serde_json::json;

/// The largest number of items of a page of a list.
pub(super) const MAX_PAGE: u64 = 1_000;

/// An HTTP request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// The method as sent: its name is case-sensitive.
    pub method: String,
    /// The path as sent, with percent-encoding.
    pub path: String,
    /// The query string in order, decoded.
    pub query: Vec<(String, String)>,
    /// The headers, names in any case.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
    /// Scheme and authority that the client used, such as `http://127.0.0.1:8787`; empty for a call
    /// within a process.
    pub base_url: String,
    /// The address of the client, as the host knows it; empty for a call within a process. A host
    /// takes it from a header only if the client cannot set that header.
    pub client_address: String,
    /// The part of a long result that is wanted: the [`Response::rest`] of the part before.
    pub part: Option<RowPart>,
    /// Whether the host allows this request to administer, even if [`Config::admin`] does not.
    ///
    /// [`Config::admin`]: super::Config::admin
    pub administers: bool,
}

impl Request {
    /// Returns the same request with another body.
    #[must_use]
    pub(crate) fn replacing_body(&self, body: Vec<u8>) -> Request {
        // Field by field: a clone would copy the body that is replaced.
        Request {
            method: self.method.clone(),
            path: self.path.clone(),
            query: self.query.clone(),
            headers: self.headers.clone(),
            body,
            base_url: self.base_url.clone(),
            client_address: self.client_address.clone(),
            part: self.part.clone(),
            administers: self.administers,
        }
    }

    /// Creates a request from the target of its request line: `/v1/query/aql?q=SELECT%20…`.
    pub fn new(method: &str, target: &str) -> Request {
        // A fragment is never part of a request. A client may have sent it nevertheless.
        let target = target.split('#').next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |part: &str| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(key, true), decode(value, true))
        };
        let query = query
            .split('&')
            .filter(|part| !part.is_empty())
            .map(pair)
            .collect();
        Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query,
            ..Request::default()
        }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body and its media type.
    pub fn with_body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self.with_header("Content-Type", content_type)
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.trim())
    }

    /// Returns the id in the header X-Request-Id, or an empty text if it is invalid: at most 64
    /// letters, digits, `-`, `.`, `_`.
    pub fn id(&self) -> &str {
        let sane = |id: &&str| {
            id.len() <= 64
                && id
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
        };
        self.header("X-Request-Id").filter(sane).unwrap_or_default()
    }

    /// Returns the first value of a query key.
    pub fn query_value(&self, key: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    /// Returns the number of items of a page that a query key requests, from 1 to [`MAX_PAGE`];
    /// `otherwise` for a key that is absent or empty.
    ///
    /// # Errors
    /// 400 for another value. Too large a page is rejected and not shortened, so that the client
    /// notices.
    pub(super) fn page_size(&self, key: &str, otherwise: u64) -> Result<u64, Failure> {
        let text = self.query_value(key).unwrap_or_default();
        match text.parse() {
            Ok(size @ 1..=MAX_PAGE) => Ok(size),
            _ if text.is_empty() => Ok(otherwise),
            _ => Err(Failure::bad_request(format!(
                "`{key}` is `{}`: expected a whole number from 1 to {MAX_PAGE}",
                shortened(text)
            ))),
        }
    }

    /// Returns the truth value of a query key: `true` or `false` in any letter case. A key that is
    /// absent or empty is false.
    pub(super) fn query_flag(&self, key: &str) -> Result<bool, Failure> {
        let text = self.query_value(key).unwrap_or_default();
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "" | "false" => Ok(false),
            _ => Err(Failure::bad_request(format!(
                "`{key}` is `{}`: expected `true` or `false`",
                shortened(text)
            ))),
        }
    }
}

/// A part of a result with more rows than a page, or of the answers to lines of EHRs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowPart {
    /// The rows, or the answered lines, of the parts before.
    pub(super) sent: u64,
    /// The maximum rows, or lines, of this part.
    pub(super) rows: u64,
    /// The token of the state of the first part, known after it.
    pub(super) snapshot: Option<String>,
    /// The table that the rows belong to.
    #[cfg(feature = "arrow")]
    pub(super) table: Option<super::table::TablePart>,
}

impl RowPart {
    /// Returns the part behind `sent` answered lines, of `lines` lines at most.
    pub(super) fn of_lines(sent: u64, lines: u64) -> RowPart {
        RowPart {
            sent,
            rows: lines,
            snapshot: None,
            #[cfg(feature = "arrow")]
            table: None,
        }
    }

    /// Returns whether the body consists of lines, of which the last one may be an error.
    #[cfg(feature = "arrow")]
    pub(super) fn has_lines(&self) -> bool {
        self.table.is_none()
    }

    /// Returns whether the body consists of lines, of which the last one may be an error.
    #[cfg(not(feature = "arrow"))]
    pub(super) fn has_lines(&self) -> bool {
        true
    }
}

/// An HTTP response.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
    /// The stable code of an error: that of its first problem, or the name of its status. Absent
    /// without the feature `server`, where the body has all problems.
    pub code: Option<String>,
    /// An internal problem, for the host's log: without content of documents and queries.
    pub problem: Option<String>,
    /// The next part of a long result. A host that sends bodies in parts
    /// ([`super::Environment::sends_parts`]) sends the same request with it, and the body of the
    /// response behind this one.
    pub rest: Option<RowPart>,
}

impl Response {
    /// Takes the request for the next part of a result, if there is one. `request` is that of this
    /// response.
    pub fn take_next_request(&mut self, request: &Request) -> Option<Request> {
        let part = Some(self.rest.take()?);
        Some(Request {
            part,
            ..request.clone()
        })
    }

    /// Converts to text, for hosts without HTTP: a line with the JSON object `{status, headers}` and
    /// the `code` of an error, and the body. The body is no member of the object, because escaping a long one, and
    /// parsing it again, would take long without a pause.
    pub fn into_text(self) -> String {
        let mut head = json!({ "status": self.status, "headers": self.headers });
        if let (Some(code), Some(members)) = (self.code, head.as_object_mut()) {
            members.insert("code".into(), code.into());
        }
        format!("{head}\n{}", String::from_utf8_lossy(&self.body))
    }

    /// Creates a response without a body.
    pub fn new(status: u16) -> Response {
        Response {
            status,
            ..Response::default()
        }
    }

    /// Creates a JSON response.
    pub fn json(status: u16, body: impl ToString) -> Response {
        Response::new(status).with_body("application/json", body.to_string())
    }

    /// Adds a header.
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Response {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the body and its media type.
    pub fn with_body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Response {
        self.body = body.into();
        self.with_header("Content-Type", content_type)
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }
}

/// Decodes percent-encoding (and `+` for a blank in query strings). Invalid sequences are not
/// changed.
pub(super) fn decode(text: &str, form: bool) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let hex = behind
            .first_chunk::<2>()
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        rest = behind;
        match (first, hex) {
            // A plus is a blank in the query only, not in the path.
            (b'+', _) if form => out.push(b' '),
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            (other, _) => out.push(*other),
        }
    }
    // Invalid UTF-8 becomes U+FFFD, which `Call::check_unambiguous` rejects.
    String::from_utf8_lossy(&out).into_owned()
}

/// Percent-encodes a path segment. The characters of identifiers stay readable.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*,;=".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Percent-encodes a key or value of a query string.
pub(super) fn encode_value(text: &str) -> String {
    encode(text)
        .replace('&', "%26")
        .replace('=', "%3D")
        .replace('+', "%2B")
        .replace(';', "%3B")
        .replace(':', "%3A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_decoded_once() {
        let request = Request::new("GET", "/v1/query/a%3A%3Ab?q=SELECT%20e&t=1+2&x=%zz");
        assert_eq!(request.path, "/v1/query/a%3A%3Ab");
        assert_eq!(request.query_value("q"), Some("SELECT e"));
        assert_eq!(request.query_value("t"), Some("1 2"));
        assert_eq!(request.query_value("x"), Some("%zz"));
        assert_eq!(decode("a%3A%3Ab", false), "a::b");
        assert_eq!(encode("vital signs/ä::1"), "vital%20signs%2F%C3%A4::1");
    }
}
