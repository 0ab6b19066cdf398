//! The simplified formats FLAT and STRUCTURED: documents as keys of a web template.
//!
//! Both formats are read and written via one tree of segments. Both directions are
//! driven by the web template, the class table and one table of suffixes. Objects for which a
//! format has no key are written as canonical JSON under `|raw`.

mod candidates;
mod client_spelling;
mod compare;
mod complete;
mod context;
mod fill;
mod follow;
mod form;
mod keys;
mod merge;
mod party;
mod print;
mod read;
mod single_value;
mod suffix;
mod write;

pub use form::Shape;
pub use write::FlatDialect;

use super::tree::Template;
use super::web::WebTemplate;
use aqlite_rm::class::Cls;
use aqlite_rm::diag::Finding;
use aqlite_rm::tree::{NodeRef, Tree};
use std::collections::BTreeMap;
use std::fmt;

/// The maximum number of findings. Further ones are dropped.
const MAX_FINDINGS: usize = 100;

/// Reads a document. Omitted values are completed from `ctx`, the template and `now` (ISO 8601 with
/// zone).
///
/// The result is not validated against the template (see [`crate::validate`]).
///
/// # Errors
/// A finding for every unusable key, in the spelling of the text, with the nearest usable keys: `FLT0101` unknown segment,
/// `FLT0102` unknown suffix, `FLT0103` unknown key of `ctx`, `FLT0104` wrong value, `FLT0105`
/// malformed key or index, `FLT0106` wrong kind of value, `FLT0107` contradicting keys, `FLT0108`
/// missing mandatory value; or `RM0001` if the text is not JSON.
pub fn read(
    text: &str,
    shape: Shape,
    template: &Template,
    web: &WebTemplate,
    now: &str,
) -> Result<Tree, Vec<Finding>> {
    let read = read_keys(text, shape, template, web, now);
    match shape {
        Shape::Flat => {
            read.map_err(|findings| client_spelling::respell_findings(text, findings, &web.tree))
        }
        _ => read,
    }
}

fn read_keys(
    text: &str,
    shape: Shape,
    template: &Template,
    web: &WebTemplate,
    now: &str,
) -> Result<Tree, Vec<Finding>> {
    let mut form = form::parse(text, shape)?;
    let conflicts = merge::merge_segments(&mut form, &web.tree);
    let read = read::read_document(&form, template, web, Some(now));
    if conflicts.is_empty() {
        return read;
    }
    let finding = |key: String| Finding::error("FLT0107", limited(key), form::CONFLICT);
    let mut findings: Vec<Finding> = conflicts.into_iter().map(finding).collect();
    findings.extend(read.err().unwrap_or_default());
    findings.truncate(MAX_FINDINGS);
    Err(findings)
}

/// A document in one of the simplified formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// The content of the document that the formats cannot represent, such as numbers in runtime
    /// names.
    pub left: Vec<&'static str>,
}

/// The reason for which a document is not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The root has this class. The formats represent a COMPOSITION only.
    Class(Cls),
    /// The text exceeds the limit of the caller.
    TooLarge,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Class(class) => write!(
                f,
                "FLAT and STRUCTURED represent a COMPOSITION, and the document is a {class}"
            ),
            WriteError::TooLarge => write!(f, "the document is too large in this format"),
        }
    }
}

impl std::error::Error for WriteError {}

/// Checks that the formats can represent a document. The writers do so too; this function does not
/// need the template.
///
/// # Errors
/// [`WriteError::Class`] if the root is no COMPOSITION.
pub fn check_class(document: NodeRef<'_>) -> Result<(), WriteError> {
    match document.class() {
        Cls::COMPOSITION => Ok(()),
        class => Err(WriteError::Class(class)),
    }
}

/// Writes a document.
///
/// Objects without a key are written as canonical JSON under `|raw`, so that reading the text
/// results in the same document, except for the content named in [`Written::left`].
///
/// # Errors
/// [`WriteError::Class`] if the root is no COMPOSITION.
pub fn write(
    document: NodeRef<'_>,
    shape: Shape,
    template: &Template,
    web: &WebTemplate,
    dialect: FlatDialect,
) -> Result<Written, WriteError> {
    write_within(document, shape, template, web, dialect, usize::MAX)
}

/// Writes like [`write()`], within limits of size and work.
///
/// # Errors
/// [`WriteError::Class`] if the root is no COMPOSITION, [`WriteError::TooLarge`] if the text would
/// exceed `most` bytes.
pub fn write_within(
    document: NodeRef<'_>,
    shape: Shape,
    template: &Template,
    web: &WebTemplate,
    dialect: FlatDialect,
    most: usize,
) -> Result<Written, WriteError> {
    check_class(document)?;
    write::write_document(document, shape, template, web, dialect, most)
        .map(|(text, left)| Written { text, left })
        .ok_or(WriteError::TooLarge)
}

/// Returns the keys of nodes that are given by paths of findings: `/content[0]/data/items[at0004]`.
pub fn keys<'p>(
    document: NodeRef<'_>,
    web: &WebTemplate,
    paths: impl Iterator<Item = &'p str>,
) -> BTreeMap<String, String> {
    keys::keys(document, web, paths)
}

/// Replaces keys by the spellings of them in the text in FLAT from which the document was read.
///
/// A text may omit the index 0 of a segment. A key that the text does not have keeps its end.
pub fn respell_keys<'k>(text: &str, keys: impl Iterator<Item = &'k mut String>) {
    client_spelling::respell_keys(text, keys);
}

/// Returns a text of the client as error messages quote it.
fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

/// The maximum length of the key of a finding in bytes. Each of a hundred findings may have a key
/// of this length, and a search for its spelling keeps the beginnings of the key.
const LONGEST_KEY: usize = 2_000;

/// Returns a key as findings name it. It is cut only if it exceeds [`LONGEST_KEY`].
fn limited(mut key: String) -> String {
    let is_end = |at: &usize| key.is_char_boundary(*at);
    let end = (0..=LONGEST_KEY).rev().find(is_end).unwrap_or_default();
    if key.len() > end {
        key.truncate(end);
    }
    key
}

#[cfg(test)]
mod tests;
