//! From the checked query through plan, scan and execution to the result.

mod counting;
mod csv_guard;
mod eval;
mod functions;
mod members;
mod plan;
mod plan_cache;
pub mod query;
mod reads;
mod result;
pub mod scan;
mod semi_join;
mod table;
mod trie;

pub use eval::{
    Budget, ExecutionPath, LayoutStatistics, PartialResult, QueryError, RowValue, RowVisit, Run,
    Savepoint, ScanStatistics, ValueId, evaluation_strategy,
};
pub use plan::{BROKEN_INVARIANT, MAX_PATHS, Plan, compile_pattern, plan, unanswerable_class};
pub use result::{Cell, ResultColumn, ResultFormat, ResultSet, Row};
pub use scan::Progress;
pub use table::{CsvColumns, CsvOptions, CsvParts};
pub use trie::{Mode, Trie, TrieNode};
