//! Integration tests: one binary, so that the core is linked once.

mod rest;
mod rows;
mod aql_errors;
mod store;
mod tidy;
