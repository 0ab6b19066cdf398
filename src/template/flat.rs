//! The simplified formats FLAT and STRUCTURED: documents as keys of a web template, read and written over one tree.
//!
//! Both directions are driven by the web template, the class table and one table of suffixes. What a format has no key
//! for is written as canonical JSON under `|raw`.

mod compare;
mod complete;
mod context;
mod fill;
mod follow;
mod form;
mod keys;
mod print;
mod read;
mod suffix;
mod write;

pub use form::Shape;
pub use write::Maker;

use super::tree::Template;
use super::web::WebTemplate;
use crate::diag::Finding;
use crate::order::ByText;
use crate::rm::tree::{NodeRef, Tree};

/// Findings that are collected; what is wrong beyond them is not told.
const MAX_FINDINGS: usize = 100;

/// Reads a document; what it leaves open is filled from `ctx`, the template and `now` (ISO 8601 with zone).
///
/// Whether the document then meets its template is another question ([`crate::template::validate`]).
///
/// # Errors
/// Every key that cannot be used, with the nearest keys that could: `FLT0101` an unknown segment, `FLT0102` an unknown suffix, `FLT0103` an
/// unknown key of `ctx`, `FLT0104` a wrong value, `FLT0105` a key or an index that is none, `FLT0106` a wrong kind of value, `FLT0107` keys that
/// contradict each other, `FLT0108` something that must be given and is not; or `RM0001` where the text is not JSON.
pub fn read(text: &str, shape: Shape, template: &Template, web: &WebTemplate, now: &str) -> Result<Tree, Vec<Finding>> {
    read::document(&form::parse(text, shape)?, template, web, Some(now))
}

/// A document in one of the formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// What the formats have no place for, and this document has: such as numbers behind names.
    pub left: Vec<&'static str>,
}

/// Writes a document. What has no key stands as canonical JSON under `|raw`, so that reading the text gives the document
/// again, but for what [`Written::left`] says.
pub fn write(document: NodeRef<'_>, shape: Shape, template: &Template, web: &WebTemplate, maker: Maker) -> Written {
    let (text, left) = write::document(document, shape, template, web, maker);
    Written { text, left }
}

/// The same, where the text and the work for it stay within limits: `None` where the text would have more than `most` bytes.
pub fn write_within(document: NodeRef<'_>, shape: Shape, template: &Template, web: &WebTemplate, maker: Maker, most: usize) -> Option<Written> {
    write::within(document, shape, template, web, maker, most).map(|(text, left)| Written { text, left })
}

/// The keys of places of a document, given by paths as findings have them: `/content[0]/data/items[at0004]`.
pub(crate) fn keys<'p>(document: NodeRef<'_>, web: &WebTemplate, paths: impl Iterator<Item = &'p str>) -> ByText<String> {
    keys::keys(document, web, paths)
}

/// A key as errors quote it.
fn shown(key: &str) -> String {
    key.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
