//! The place of a finding in the text of a document.

use super::content::{Content, body};
use aqlite::diag::{Finding, LineIndex, Span};
use aqlite::rm::json::{elements, members};
use aqlite::rm::xml;
use std::borrow::Cow;

/// Returns the line of a finding from 1; 0 where the text does not show it.
pub fn line_of(text: &str, finding: &Finding) -> u32 {
    if let Some(line) = stated_line(&finding.message) {
        return line;
    }
    let Some(span) = span_of(text, finding) else {
        return 0;
    };
    let (line, _) = LineIndex::new(text).line_column(span.start);
    u32::try_from(line).unwrap_or_default()
}

/// Returns the line that a message about malformed text states.
fn stated_line(message: &str) -> Option<u32> {
    let (_, rest) = message.split_once("line ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Returns the range of the node that a finding is about: the innermost one that is in the text.
pub fn span_of(text: &str, finding: &Finding) -> Option<Span> {
    let whole = body(text);
    let found = match Content::of(whole) {
        Content::Flat | Content::Structured => key_in(whole, finding)?,
        Content::Xml => along(whole, &finding.path, &xml_child),
        _ => along(whole, &finding.path, &json_child),
    };
    let start = (found.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let first_line = found.lines().next().unwrap_or_default();
    Some(Span::new(start, start + first_line.len().max(1)))
}

/// Returns the key of a simplified format that a finding names.
fn key_in<'t>(text: &'t str, finding: &Finding) -> Option<&'t str> {
    let key = finding.path.trim_start_matches('/');
    let (at, _) = text.match_indices(key).find(|_| !key.is_empty())?;
    text.get(at..at + key.len())
}

type Child = dyn for<'t> Fn(&'t str, &str, Option<usize>) -> Option<&'t str>;

/// Follows the steps of a path such as `/content[0]/data` as far as they are in the text.
fn along<'t>(text: &'t str, path: &str, child: &Child) -> &'t str {
    let mut at = text;
    for step in path.split('/').filter(|step| !step.is_empty()) {
        let (name, index) = match step.split_once('[') {
            Some((name, rest)) => (name, rest.trim_end_matches(']').parse().ok()),
            None => (step, None),
        };
        match child(at, name, index) {
            Some(inner) => at = inner,
            None => break,
        }
    }
    at
}

fn json_child<'t>(text: &'t str, name: &str, index: Option<usize>) -> Option<&'t str> {
    let value = if name.is_empty() {
        text
    } else {
        let all = members(text).ok()?;
        all.iter().find(|(key, _)| key == name).map(|(_, v)| *v)?
    };
    match index {
        Some(index) => elements(value).ok()?.get(index).copied(),
        None => Some(value),
    }
}

fn xml_child<'t>(text: &'t str, name: &str, index: Option<usize>) -> Option<&'t str> {
    let all = xml::child_elements(text).ok()?;
    let is_named = |(key, _): &&(Cow<'t, str>, &'t str)| key == name;
    all.iter()
        .filter(is_named)
        .nth(index.unwrap_or(0))
        .map(|(_, element)| *element)
}
