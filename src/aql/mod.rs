//! AQL: text → tokens → syntax tree → checked query → plan → rows.

pub mod query;
