//! aqlite: an openEHR query (AQL) and decision support (GDL) core.

pub mod aql;
pub mod gdl;
pub mod samples;
pub mod service;
pub mod store;
pub mod template;

use aqlite_engine::{case, order};
pub use aqlite_engine::{diag, document, rm};

/// The example of README.md, compiled and run as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of docs/reference-model.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../docs/reference-model.md")]
struct ReferenceModel;

/// The examples of docs/guides.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides.md")]
struct Guides;
/// The example of docs/simplified-formats.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../docs/simplified-formats.md")]
struct SimplifiedFormats;
