//! The Reference Model: class table, document tree, canonical JSON and XML, paths, values.

#[cfg(test)]
mod arbitrary;
mod build;
pub mod class;
#[rustfmt::skip]
mod class_table;
pub mod id;
mod invariant;
pub mod json;
pub mod path;
pub mod quantity;
mod scan;
pub mod terminology;
pub mod time;
pub mod tree;
pub mod validate;
pub mod xml;

pub use build::Limits;
pub use scan::Token;
