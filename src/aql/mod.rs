//! AQL: text → tokens → syntax tree → checked query → plan → rows.

#[cfg(test)]
mod arbitrary;
pub mod ast;
mod check;
mod classes;
mod complete;
mod eval;
mod explain;
mod facts;
mod hint;
mod hover;
mod labels;
mod parse;
mod plan;
mod prepare;
mod print;
pub mod query;
mod result;
mod scene;
mod signature;
mod table;
mod terminology;
mod token;
mod trie;
mod whereabouts;

pub use check::{CheckOptions, Parameter, Parameters, check, examine};
pub use complete::{Completion, CompletionKind, complete, diagnose};
pub use eval::{Budget, Found, QueryError, Run, Touched, TouchedShape};
pub use explain::{Explanation, Part, explain};
pub use hover::{Hover, hover};
pub use labels::{Label, LabelStep, Labels, NoLabels, TemplateLabels};
pub use parse::{NESTING_LIMIT, TEXT_LIMIT, parse};
pub use plan::{MAX_PATHS, Plan, plan};
pub use prepare::{QueryOptions, prepare};
pub use print::{format, print};
pub use result::{Cell, ResultColumn, ResultSet, Row};
pub use signature::{SIGNATURES, Signature, signature};
pub use table::CsvOptions;
pub use terminology::{Terminology, TerminologyAnswer, TerminologyCall, TerminologyError, terminology_calls};
pub use whereabouts::document_query;
