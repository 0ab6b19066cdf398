//! Answers: checked query → plan → rows.

mod csv_guard;
mod eval;
mod facts;
mod members;
mod plan;
pub mod query;
mod result;
pub mod scan;
mod table;
mod trie;

pub use eval::{Budget, ExecutionPath, Found, QueryError, Run, Touched, TouchedShape, way};
pub use plan::{MAX_PATHS, Plan, plan};
pub use result::{Cell, Layout, ResultColumn, ResultSet, Row};
pub use scan::Progress;
pub use table::CsvOptions;
pub use trie::{Mode, Trie, TrieNode};
