//! aqlite: an openEHR query (AQL) and decision support (GDL) core.

pub mod samples;
pub mod service;
pub mod store;

pub use aqlite_aql as aql;
#[cfg(feature = "arrow")]
pub use aqlite_arrow as arrow;
pub use aqlite_engine::document;
pub use aqlite_gdl as gdl;
pub use aqlite_rm as rm;
pub use aqlite_rm::diag;
pub use aqlite_template as template;

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
