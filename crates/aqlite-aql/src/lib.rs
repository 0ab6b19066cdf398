#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

#[cfg(test)]
mod arbitrary;
pub mod ast;
mod author_texts;
mod check;
mod classes;
mod complete;
mod document_query;
mod draft;
mod executed;
mod expected;
mod explain;
mod hint;
mod hover;
mod labels;
mod lint;
mod parameter;
mod parse;
mod prepare;
mod print;
mod stages;
mod terminology;
mod token;
mod version_query;
mod vocabulary;

pub use aqlite_engine::answer::{
    BROKEN_INVARIANT, Budget, Cell, CsvColumns, CsvOptions, CsvParts, ExecutionPath,
    LayoutStatistics, MAX_PATHS, PartialResult, Plan, Progress, QueryError, ResultColumn,
    ResultFormat, ResultSet, Row, RowValue, RowVisit, Run, Savepoint, ScanStatistics, ValueId,
    plan, query,
};
pub use author_texts::author_texts;
pub use check::{CheckOptions, MAX_CONDITIONS, MAX_MEMBERS, Parameter, Parameters, check, examine};
pub use complete::{Completion, CompletionKind, Diagnosis, complete, diagnose, diagnose_with};
pub use document_query::{document_query, patient_query};
pub use executed::executed;
pub use explain::{Explanation, Part, explain};
pub use hover::{Hover, hover};
pub use labels::{Label, LabelStep, Labels, NoLabels, TemplateLabels};
pub use lint::{LINT_RULES, LintRule, LintWarning, lint};
pub use parse::{NESTING_LIMIT, TEXT_LIMIT, parse};
pub use prepare::{Page, QueryOptions, prepare, prepare_tree};
pub use print::{format, print};
pub use stages::{MAX_STAGES, Stage, StageKind, Stages};
pub use terminology::{
    Terminology, TerminologyAnswer, TerminologyCall, TerminologyError, terminology_calls,
};
pub use version_query::{VERSION_KEYS, ViewError, version_query};
pub use vocabulary::{BOOLEANS, Clause, Keyword, Word, WordKind};
