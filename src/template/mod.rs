//! Templates: the reader of operational templates (OPT 1.4) the constraint tree that it makes, and
//! documents checked against it.

mod fit;
mod leaf;
mod opt;
pub mod pattern;
pub mod tree;
mod validate;
mod xml;

pub use tree::Template;
pub use validate::validate;
