//! Integration tests: one binary, so that the core is linked once.

mod store;
mod tidy;
