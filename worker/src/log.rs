//! The log: a line of JSON for each request, and for problems beside them. No line has content of
//! documents or queries, nor a path or query string.

use aqlite::service::{self, Request, Response};
use serde_json::json;
use std::fmt::Display;
use worker::{console_error, console_log};

/// Logs a request: the operation, and the id that the client got.
pub fn log_request(request: &Request, response: &Response, millis: u64) {
    // The status 501 means that the operation is not implemented, not that the service failed.
    let level = if response.status >= 500 && response.status != 501 {
        "ERROR"
    } else {
        "INFO"
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
    if level == "ERROR" {
        console_error!("{line}")
    } else {
        console_log!("{line}")
    }
}

/// Logs an action without a request.
pub fn log_action(about: &str) {
    let line = json!({ "level": "INFO", "about": about });
    console_log!("{line}");
}

/// Logs a problem that does not belong to one request, or does not change its response.
pub fn log_problem(about: &str, problem: &dyn Display) {
    let line = json!({ "level": "ERROR", "about": about, "problem": problem.to_string() });
    console_error!("{line}");
}
