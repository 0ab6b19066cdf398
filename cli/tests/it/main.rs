//! Integration tests of the program: one binary, so that the core is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

mod check;
mod convert;
mod docs;
#[cfg(unix)]
mod files;
mod guide;
mod index;
#[cfg(unix)]
mod interrupt;
mod lake;
mod lake_bucket;
mod lake_rules;
mod lake_sync;
#[cfg(unix)]
mod output;
mod parity;
mod program;
mod query;
#[path = "../../../tests/it/same_cells.rs"]
mod same_cells;
mod serve;
#[cfg(unix)]
mod shell;
mod tables;
