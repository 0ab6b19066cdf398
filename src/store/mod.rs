//! Storage: the interface that a host implements, and its two implementations, in memory and in
//! SQL.

pub(crate) mod cache;
pub mod cache_entry;
pub(crate) mod canonical;
pub(crate) mod commit_rules;
mod division;
mod error;
mod journal;
pub mod log;
pub mod memory;
mod prune;
pub mod ready;
pub mod repository;
mod sink;
pub mod sql;
mod state_history;

pub use aqlite_engine::answer::scan;

use repository::Definition;
use std::cmp::Ordering;

/// Orders definitions by name, then by SEMVER precedence. Texts that are no SEMVER come first.
fn by_name(a: &Definition, b: &Definition) -> Ordering {
    in_lists((&a.name, &a.version), (&b.name, &b.version))
}

/// Orders definitions like [`by_name`], by their names and versions.
pub(crate) fn in_lists(a: (&str, &str), b: (&str, &str)) -> Ordering {
    let version = |(_, version): (&str, &str)| semver::Version::parse(version).ok();
    a.0.cmp(b.0)
        .then_with(|| version(a).cmp(&version(b)))
        .then_with(|| a.1.cmp(b.1))
}
