//! Errors as JavaScript values: an `Error` with a stable `code`, and with `diagnostics` if a text
//! is the cause.

use aqlite::aql::QueryError;
use aqlite::diag::{Diagnostic, Severity};
use aqlite::store::repository::StoreError;
use serde_json::Value;
use std::fmt::Display;
use wasm_bindgen::prelude::*;

/// A wrong argument: parameters, headers, a time.
const ARGUMENT: &str = "ARGUMENT";
/// Stored writes that cannot be repeated.
const JOURNAL: &str = "JOURNAL";
/// The sample patients, of which one was refused.
const SAMPLES: &str = "SAMPLES";
/// A repository that fails.
const STORE: &str = "STORE";
/// A state of the data that does not exist any more.
const GONE: &str = "GONE";
/// A broken invariant: the repository in memory never waits.
const WAITS: &str = "AQL0901";

/// Creates the error of a wrong argument.
pub fn of_argument(message: impl Display) -> JsValue {
    coded(ARGUMENT, &message)
}

/// Creates the error of stored writes that cannot be repeated.
pub fn of_journal(message: impl Display) -> JsValue {
    coded(JOURNAL, &message)
}

/// Creates the error of sample patients that cannot be loaded.
pub fn of_samples(message: impl Display) -> JsValue {
    coded(SAMPLES, &message)
}

/// Creates the error of a repository that fails, or does not have the state of a page any more.
pub fn of_store(error: &StoreError) -> JsValue {
    let is_gone = matches!(error, StoreError::SnapshotGone | StoreError::NoSuchSnapshot);
    coded(if is_gone { GONE } else { STORE }, error)
}

/// Creates the error of a repository that fails, from its message.
pub fn of_store_message(message: impl Display) -> JsValue {
    coded(STORE, &message)
}

/// Creates the error of a future that waits.
pub fn of_wait(waits: impl Display) -> JsValue {
    coded(WAITS, &waits)
}

/// Creates the error of a run that ended without an answer.
pub fn of_run(error: &QueryError) -> JsValue {
    coded(error.code(), error)
}

/// Creates an error with the message of the first problem, its code, and all problems as
/// `diagnostics`. Warnings may precede the first error, whose code it is.
pub fn of_text(message: String, found: &[Diagnostic], diagnostics: &Value) -> JsValue {
    let is_error = |d: &&Diagnostic| d.severity == Severity::Error;
    let first = found.iter().find(is_error).or(found.first());
    let error = coded(first.map_or(ARGUMENT, |d| d.code), &message);
    let diagnostics = js_sys::JSON::parse(&diagnostics.to_string()).unwrap_or(JsValue::NULL);
    set(&error, "diagnostics", &diagnostics);
    error
}

/// Creates an error. It is no generic function, which would be compiled for each type of message.
fn coded(code: &str, message: &dyn Display) -> JsValue {
    let error = js_sys::Error::new(&message.to_string());
    set(&error, "code", &JsValue::from_str(code));
    error.into()
}

fn set(error: &JsValue, name: &str, value: &JsValue) {
    // Setting a member of a fresh object does not fail.
    let _ = js_sys::Reflect::set(error, &JsValue::from_str(name), value);
}
