//! The log: a line of JSON for each request, and for problems beside them. No line has content of
//! documents or queries, nor a path or query string.

use aqlite::service::{self, Request, Response};
use clap::ValueEnum;
use std::fmt::Display;
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::WorkerGuard;

/// The lines that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogLevel {
    /// No line.
    Off,
    /// Problems.
    Error,
    /// Problems, and a line for each request.
    Info,
}

/// Starts the log on standard error. A thread of its own writes the lines; the last ones are
/// written when the guard is dropped.
pub fn start(level: LogLevel) -> WorkerGuard {
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let filter = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Info => LevelFilter::INFO,
    };
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_current_span(false)
        .with_span_list(false)
        .with_max_level(filter)
        .with_writer(writer)
        .init();
    guard
}

/// Logs a request: the operation, and the id that the client got.
pub fn request(request: &Request, response: &Response, time: Duration) {
    let (status, ms) = (response.status, time.as_secs_f64() * 1_000.0);
    let (id, method) = (request.id(), request.method.as_str());
    // Found again only if the line is written: the table of routes is searched.
    if is_failure(status) {
        let operation = service::operation(request);
        let problem = response.problem.as_deref();
        tracing::error!(request_id = id, method, operation, status, ms, problem);
    } else if tracing::enabled!(tracing::Level::INFO) {
        let operation = service::operation(request);
        tracing::info!(request_id = id, method, operation, status, ms);
    }
}

/// Returns whether a status is a failure of the service. An unimplemented operation (501) is not.
fn is_failure(status: u16) -> bool {
    status >= 500 && status != 501
}

/// Logs an action without a request.
pub fn action(about: &str) {
    tracing::info!(about);
}

/// Logs a problem that does not belong to one request, or does not change its response.
pub fn problem(about: &str, problem: &dyn Display) {
    tracing::error!(about, problem = problem.to_string());
}
