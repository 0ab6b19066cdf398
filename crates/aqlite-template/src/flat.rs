//! The simplified formats FLAT and STRUCTURED: documents as keys of a web template.
//!
//! Both formats are read and written via one tree of segments. Both directions are
//! driven by the web template, the class table and one table of suffixes. Objects for which a
//! format has no key are written as canonical JSON under `|raw`.

mod compare;
mod complete;
mod context;
mod fill;
mod follow;
mod form;
mod keys;
mod party;
mod print;
mod read;
mod suffix;
mod write;

pub use form::Shape;
pub use write::Maker;

use super::tree::Template;
use super::web::WebTemplate;
use aqlite_rm::diag::Finding;
use aqlite_rm::tree::{NodeRef, Tree};
use std::collections::BTreeMap;

/// The maximum number of findings. Further ones are dropped.
const MAX_FINDINGS: usize = 100;

/// Reads a document. Omitted values are completed from `ctx`, the template and `now` (ISO 8601 with
/// zone).
///
/// The result is not validated against the template (see [`crate::validate`]).
///
/// # Errors
/// A finding for every unusable key, with the nearest usable keys: `FLT0101` unknown segment,
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
    read::read_document(&form::parse(text, shape)?, template, web, Some(now))
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

/// Writes a document.
///
/// Objects without a key are written as canonical JSON under `|raw`, so that reading the text
/// results in the same document, except for the content named in [`Written::left`].
pub fn write(
    document: NodeRef<'_>,
    shape: Shape,
    template: &Template,
    web: &WebTemplate,
    maker: Maker,
) -> Written {
    let (text, left) = write::write_document(document, shape, template, web, maker);
    Written { text, left }
}

/// Writes like [`write()`], within limits of size and work. Returns `None` if the text would exceed
/// `most` bytes.
pub fn write_within(
    document: NodeRef<'_>,
    shape: Shape,
    template: &Template,
    web: &WebTemplate,
    maker: Maker,
    most: usize,
) -> Option<Written> {
    write::write_document_within(document, shape, template, web, maker, most)
        .map(|(text, left)| Written { text, left })
}

/// Returns the keys of nodes that are given by paths of findings: `/content[0]/data/items[at0004]`.
pub fn keys<'p>(
    document: NodeRef<'_>,
    web: &WebTemplate,
    paths: impl Iterator<Item = &'p str>,
) -> BTreeMap<String, String> {
    keys::keys(document, web, paths)
}

/// Returns a key as error messages quote it.
fn shown(key: &str) -> String {
    key.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
