//! Work stays linear: the work for a template, a guide, a query or a body is bounded by its length
//! and by documented limits. The inputs once needed, or nearly needed, quadratic work or more.
//! Random variations are added.
//!
//! A binary of its own with one test, because the allocator counts for the whole process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

#[path = "../it/property/random.rs"]
#[expect(dead_code, reason = "the property tests use more of it")]
mod random;

mod bodies;
mod guides;
mod measure;
mod queries;
mod runs;
mod templates;

/// Runs every part in turn, because nothing else may allocate meanwhile. `AQLITE_WORK` selects one
/// of them.
#[test]
fn work_is_bounded_by_the_length_of_the_input() {
    let only = std::env::var("AQLITE_WORK").ok();
    let parts: [(&str, fn()); 5] = [
        ("templates", templates::all),
        ("guides", guides::all),
        ("queries", queries::all),
        ("bodies", bodies::all),
        ("runs", runs::all),
    ];
    for (name, part) in parts
        .into_iter()
        .filter(|(name, _)| only.as_ref().is_none_or(|only| only == name))
    {
        println!("{name}");
        part();
    }
}
