//! The log: a line of JSON for each request, and for what goes wrong beside them. No line carries
//! content of documents or queries, nor a path or query string.

use aqlite::service::{self, Request, Response};
use serde_json::json;
use std::fmt::Display;
use worker::{console_error, console_log};

/// Tells of a request. It names the operation, with the id that the client got too.
pub fn tell(request: &Request, response: &Response, millis: u64) {
    // What is not implemented (501) nobody needs to be woken for.
    let level = if response.status >= 500 && response.status != 501 {
        "error"
    } else {
        "info"
    };
    let line = json!({
        "level": level,
        "request_id": request.id(),
        "method": request.method,
        "operation": service::operation(request),
        "status": response.status,
        "ms": millis,
        "problem": response.problem,
    });
    if level == "error" {
        console_error!("{line}")
    } else {
        console_log!("{line}")
    }
}

/// Tells that something was done that no request asked for.
pub fn note(about: &str) {
    let line = json!({ "level": "info", "about": about });
    console_log!("{line}");
}

/// Tells of something that is not about one request, or does not change its answer.
pub fn complain(about: &str, problem: &dyn Display) {
    let line = json!({ "level": "error", "about": about, "problem": problem.to_string() });
    console_error!("{line}");
}
