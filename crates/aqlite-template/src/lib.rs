#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod adl2;
#[cfg(test)]
mod constraint_cases;
pub mod describe;
mod draft;
pub mod example;
mod fit;
pub mod flat;
mod label;
mod leaf;
pub mod limits;
mod opt;
mod opt2;
mod reading;
mod reference;
mod rematch;
mod slot;
pub mod tree;
mod unique;
mod validate;
pub mod web;
mod xml;

pub use aqlite_rm::pattern;
pub use describe::{Description, describe};
pub use example::{ExampleKind, example};
pub use label::label_findings;
pub use reading::TemplateElements;
pub use tree::Template;
pub use validate::{validate, validate_draft};
pub use web::{WebNode, WebTemplate};
