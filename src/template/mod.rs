//! Templates: the readers of operational templates (OPT 1.4, ADL 2), the constraint tree that they make, documents
//! checked against it, example documents made of it, and a description of it for people.

mod adl2;
#[cfg(test)]
#[path = "../../engine/src/rm/arbitrary.rs"]
#[expect(dead_code, reason = "the tests beside it use more of it")]
mod arbitrary;
pub mod describe;
mod draft;
pub mod example;
mod fit;
pub mod flat;
mod leaf;
pub mod limits;
mod opt;
mod opt2;
pub mod tree;
mod validate;
pub mod web;
mod xml;

pub use aqlite_engine::pattern;
pub use describe::{Description, describe};
pub use example::{ExampleKind, example};
pub use tree::Template;
pub use validate::{label_findings, validate, validate_draft};
pub use web::WebTemplate;
