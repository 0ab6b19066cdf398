//! Guides for the page: description, runs on a form, and fixtures. All values cross the border as
//! JSON text.

use super::error;
use aqlite::diag::Diagnostic;
use aqlite::gdl::Options;
use aqlite::gdl::describe::{self, problems};
use aqlite::gdl::print;
use aqlite::gdl::time::Moment;
use aqlite::rm::json;
use std::borrow::Cow;
use wasm_bindgen::prelude::*;

/// Describes a guide in a language: bindings with their AQL, inputs for a form, outputs, rules,
/// terms, problems. `convert_units` must be that of the run: then no query excludes quantities of
/// other units.
///
/// # Errors
///
/// An `Error` with `diagnostics` if the text is not a guide; an `Error` if `now` is not a time.
#[wasm_bindgen(js_name = describeGuide)]
pub fn describe_guide(
    text: &str,
    language: &str,
    now: &str,
    convert_units: Option<bool>,
) -> Result<String, JsValue> {
    describe::describe(text, language, moment(now)?, options(convert_units))
        .map(|json| json.to_string())
        .map_err(|found| guide_error(text, &found))
}

/// Prints a guide as GDL2 in JSON, or with the syntax `odin` as ODIN.
///
/// # Errors
///
/// An `Error` with `diagnostics` if the text is neither JSON nor ODIN.
#[wasm_bindgen(js_name = printGuide)]
pub fn print_guide(text: &str, syntax: &str) -> Result<String, JsValue> {
    let printed = if syntax == "odin" {
        print::odin(text)
    } else {
        print::json(text)
    };
    printed.map_err(|problem| guide_error(text, &[problem]))
}

/// Runs a guide on a form. `inputs` is a JSON object of literals by variable, such as `{"gt0003":
/// "80,kg"}`; `now` is ISO 8601. Returns `{fired, results, cards, trace, notes}`. With
/// `convert_units`, quantities of compatible UCUM units are converted in comparisons. Without it, a
/// comparison of different units is unknown, and a note names both.
///
/// # Errors
///
/// An `Error` if the text is not a guide, `inputs` not an object of texts, or `now` not a time.
#[wasm_bindgen(js_name = tryGuide)]
pub fn try_guide(
    text: &str,
    inputs: &str,
    language: &str,
    now: &str,
    convert_units: Option<bool>,
) -> Result<String, JsValue> {
    let run = describe::try_out(
        text,
        &texts(inputs)?,
        language,
        moment(now)?,
        options(convert_units),
    );
    run.map(|json| json.to_string())
        .map_err(|found| guide_error(text, &found))
}

/// Runs a guide on the answers to the queries of its bindings: a JSON object of result sets (as
/// texts) by the id of the binding. `now` must be that of `describeGuide`, which returned the
/// queries. Returns the same as `tryGuide`.
///
/// # Errors
///
/// An `Error` if the text is not a guide, `answers` not an object of texts, or `now` not a time.
#[wasm_bindgen(js_name = runGuideOn)]
pub fn run_guide_on(
    text: &str,
    answers: &str,
    language: &str,
    now: &str,
    convert_units: Option<bool>,
) -> Result<String, JsValue> {
    let run = describe::run_on_answers(
        text,
        &texts(answers)?,
        language,
        moment(now)?,
        options(convert_units),
    );
    run.map(|json| json.to_string())
        .map_err(|found| guide_error(text, &found))
}

/// Runs the cases of a fixture file on a guide: `{guide_id, problems, cases: [{id, line, passed,
/// differences, fired, …}]}`.
///
/// # Errors
/// An `Error` with `diagnostics` when the guide or the fixture cannot be read.
#[wasm_bindgen(js_name = testGuide)]
pub fn test_guide(text: &str, fixture: &str, now: &str) -> Result<String, JsValue> {
    describe::run_fixture(text, fixture, moment(now)?)
        .map(|json| json.to_string())
        .map_err(|found| {
            let is_of_fixture = found.iter().all(|d| d.code.starts_with("GDL05"));
            guide_error(if is_of_fixture { fixture } else { text }, &found)
        })
}

fn options(convert_units: Option<bool>) -> Options {
    Options {
        convert_units: convert_units.unwrap_or_default(),
        ..Options::default()
    }
}

/// Returns the texts of a JSON object.
fn texts(object: &str) -> Result<Vec<(String, String)>, JsValue> {
    let members =
        json::members(object).map_err(|problem| error::of_argument(problem.describe(object)))?;
    let text_of = |(name, value): (Cow<'_, str>, &str)| match json::text(value) {
        Some(text) => Ok((name.into_owned(), text)),
        None => Err(error::of_argument(format!(
            "`{name}` is `{value}`, expected a text"
        ))),
    };
    members.into_iter().map(text_of).collect()
}

fn moment(text: &str) -> Result<Moment, JsValue> {
    Moment::parse(text, 0).ok_or_else(|| error::of_argument("`now` is not ISO 8601"))
}

fn guide_error(text: &str, found: &[Diagnostic]) -> JsValue {
    let message = found
        .first()
        .map_or_else(|| String::from("the guide is wrong"), |d| d.one_line(text));
    error::of_text(message, found, &problems(found, text))
}
