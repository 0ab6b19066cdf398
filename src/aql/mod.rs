//! AQL: text → tokens → syntax tree → checked query → plan → rows.

pub mod ast;
mod check;
mod classes;
mod parse;
mod print;
pub mod query;
mod signature;
mod suggest;
mod token;

pub use check::{CheckOptions, Parameter, Parameters, Terminology, TerminologyAnswer, TerminologyCall, TerminologyError, check, terminology_calls};
pub use parse::{NESTING_LIMIT, TEXT_LIMIT, parse};
pub use signature::{SIGNATURES, Signature, signature};
pub mod eval;
pub mod plan;
pub mod query;
pub mod result;
mod trie;
