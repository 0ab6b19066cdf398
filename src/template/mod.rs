//! Templates: the reader of operational templates (OPT 1.4) and the constraint tree that it makes.

mod opt;
pub mod pattern;
pub mod tree;
mod xml;

pub use tree::Template;
