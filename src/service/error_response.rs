//! Responses to errors, in the format that the client accepts.

use super::error::{Failure, reason};
use super::negotiate::{Format, wanted_format};
use super::{Request, Response};
use serde_json::Value;

impl Failure {
    /// Returns the response in the format that the client accepts: JSON, or XML if requested.
    pub fn into_response(self, request: &Request) -> Response {
        let body = self.body();
        let response = match wanted_format(request) {
            Ok(Format::Xml) => Response::new(self.status)
                .with_body(Format::Xml.media_type(), xml("failure", &body)),
            _ => Response::json(self.status, body),
        };
        let response = Response {
            problem: self.problem(),
            code: cfg!(feature = "server").then(|| self.code()),
            ..response
        };
        self.into_fields()
            .headers
            .into_iter()
            .fold(response, |response, (name, value)| {
                response.with_header(&name, value)
            })
    }

    /// Returns the text for a log: the message if it is an internal error, or codes if a query
    /// failed.
    fn problem(&self) -> Option<String> {
        match self.status {
            // These messages are made by the service and contain no clinical values.
            500 | 503 => Some(self.message.clone()),
            // A query caused these, and its text may contain clinical values: only codes are
            // logged.
            501.. => Some(
                self.errors
                    .iter()
                    .filter_map(code_of)
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            _ => None,
        }
    }

    /// Returns the code of the first error, or the name of the status: `NOT_FOUND`.
    fn code(&self) -> String {
        let is_error = |problem: &&Value| problem.get("_severity").is_none();
        let first = self.errors.iter().find(is_error).and_then(code_of);
        first.map_or_else(|| name_of(self.status), str::to_owned)
    }
}

/// Returns the name of a status: its reason phrase in upper case, with underscores.
fn name_of(status: u16) -> String {
    let letter = |c: char| match c {
        ' ' => '_',
        _ => c.to_ascii_uppercase(),
    };
    reason(status).chars().map(letter).collect()
}

/// Returns the code of a problem.
fn code_of(problem: &Value) -> Option<&str> {
    problem.pointer("/defining_code/code_string")?.as_str()
}

/// Encodes a JSON value as XML elements: members by their names, the items of a list one after
/// another.
fn xml(name: &str, value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(|item| xml(name, item)).collect(),
        Value::Object(members) => {
            let inner: String = members.iter().map(|(key, value)| xml(key, value)).collect();
            format!("<{name}>{inner}</{name}>")
        }
        Value::String(text) => format!("<{name}>{}</{name}>", escaped(text)),
        other => format!("<{name}>{other}</{name}>"),
    }
}

/// Escapes a text for XML. Characters that XML cannot represent become `?`.
fn escaped(text: &str) -> String {
    let carried = |c: char| {
        if c < ' ' && !matches!(c, '\t' | '\n' | '\r') || matches!(c, '\u{fffe}' | '\u{ffff}') {
            '?'
        } else {
            c
        }
    };
    quick_xml::escape::partial_escape(text.chars().map(carried).collect::<String>()).into_owned()
}
