//! AQL, the language: text → tokens → syntax tree → checked query. What comes after, plan and rows, is the engine's.

#[cfg(test)]
mod arbitrary;
pub mod ast;
mod check;
mod classes;
mod complete;
mod explain;
mod hint;
mod hover;
mod labels;
mod parse;
mod prepare;
mod print;
mod scene;
mod signature;
mod terminology;
mod token;
mod whereabouts;

pub use aqlite_engine::answer::{
    Budget, Cell, CsvOptions, ExecutionPath, Found, Layout, MAX_PATHS, Plan, Progress, QueryError, ResultColumn, ResultSet, Row, Run, Touched,
    TouchedShape, plan, query,
};
pub use check::{CheckOptions, MAX_MEMBERS, Parameter, Parameters, check, examine};
pub use complete::{Completion, CompletionKind, complete, diagnose};
pub use explain::{Explanation, Part, explain};
pub use hover::{Hover, hover};
pub use labels::{Label, LabelStep, Labels, NoLabels, TemplateLabels};
pub use parse::{NESTING_LIMIT, TEXT_LIMIT, parse};
pub use prepare::{QueryOptions, prepare};
pub use print::{format, print};
pub use signature::{SIGNATURES, Signature, signature};
pub use terminology::{Terminology, TerminologyAnswer, TerminologyCall, TerminologyError, terminology_calls};
pub use whereabouts::document_query;
