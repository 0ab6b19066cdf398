//! All steps from text and parameters to a plan.

use super::ast;
use super::check::{CheckOptions, Parameters, check};
use super::parse::parse;
use super::terminology::Terminology;
use super::{Plan, plan};
use aqlite_rm::diag::{Diagnostic, Severity, Span};

/// The options of a query.
#[derive(Clone, Copy, Default)]
pub struct QueryOptions<'a> {
    /// Narrows the query to one EHR, as `ehr_id` of a request does.
    pub ehr: Option<&'a str>,
    /// Whether archetype and node ids match by equality only, not by specialisation.
    pub exact_archetypes: bool,
    /// The source of answers to `TERMINOLOGY()` and value set URIs, beside openEHR's own groups and
    /// code sets.
    pub terminology: Option<&'a dyn Terminology>,
    /// The page of the result that is wanted.
    pub page: Option<Page>,
}

/// A page of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// The number of rows before it.
    pub offset: u64,
    /// The largest number of its rows.
    pub rows: u64,
}

/// Parses, checks and plans a query.
///
/// # Errors
/// The errors of the text, the parameters or the size of the query, with position and remedy.
pub fn prepare(
    text: &str,
    parameters: &Parameters,
    options: &QueryOptions<'_>,
) -> Result<Plan, Vec<Diagnostic>> {
    let (ast, mut diagnostics) = parse(text);
    diagnostics.retain(|d| d.severity == Severity::Error);
    let Some(ast) = ast.filter(|_| diagnostics.is_empty()) else {
        return Err(diagnostics);
    };
    prepare_tree(&ast, parameters, options)
}

/// Checks and plans a parsed query.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_tree(
    ast: &ast::Query,
    parameters: &Parameters,
    options: &QueryOptions<'_>,
) -> Result<Plan, Vec<Diagnostic>> {
    let options_of_check = CheckOptions {
        terminology: options.terminology,
        ..CheckOptions::default()
    };
    let mut query = check(ast, parameters, &options_of_check)?;
    if let Some(Page { offset, rows }) = options.page
        && !query.narrow_to_page(offset, rows)
    {
        let span = ast
            .select
            .top
            .as_ref()
            .map_or(Span::default(), |top| top.at.0);
        let message = "`TOP … BACKWARD` has no pages";
        let help = "use `ORDER BY … DESC` and `LIMIT`";
        return Err(vec![
            Diagnostic::error("AQL0406", span, message).with_help(help),
        ]);
    }
    plan(query, options.ehr, options.exact_archetypes)
}
