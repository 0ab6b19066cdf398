//! The query of a view: each row names the version that it comes from.
//!
//! A view is copied into tables outside the repository. A copy is renewed version by version, so each
//! row must depend on one version of one COMPOSITION, and on no other row.

use super::ast::{
    ClassExpr, Column, ColumnValue, Condition, Containment, Contains, Expr, Path, Query,
};
use super::document_query::{free_name, name, put_around};
use super::print::print;
use super::query::FunctionGroup;
use super::vocabulary::function_named;
use aqlite_rm::class::Cls;
use aqlite_rm::diag::Diagnostic;
use std::fmt;

/// The attributes of an EHR that never change.
const CONSTANT: [&str; 3] = ["ehr_id", "system_id", "time_created"];

/// The columns that [`version_query`] adds, with the variables of its template.
const KEYS: &str = "SELECT e/ehr_id/value, v/uid/value, v/commit_audit/time_committed/value
 FROM EHR e CONTAINS VERSION v";

/// The number of columns that [`version_query`] adds.
pub const VERSION_KEYS: usize = 3;

/// The reason why a query is no view.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ViewError {
    /// The errors of the text.
    Text(Vec<Diagnostic>),
    /// The rule that the query breaks, with its remedy.
    Rule(&'static str),
}

impl fmt::Display for ViewError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::Rule(rule) => out.write_str(rule),
            ViewError::Text(found) => {
                let lines = found.iter().map(|diagnostic| diagnostic.message.as_str());
                out.write_str(&lines.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

impl std::error::Error for ViewError {}

/// Returns a query with the rows of `text`, and [`VERSION_KEYS`] more columns: the id of the EHR, the
/// uid of the version, and the time of its commit. The clause ORDER BY is removed, because the rows
/// of a table have no order.
///
/// # Errors
/// The errors of the text, or the rule of views that it breaks.
pub fn version_query(text: &str) -> Result<String, ViewError> {
    let (query, diagnostics) = super::parse(text);
    let mut query = query.ok_or(ViewError::Text(diagnostics))?;
    check_rows(&query)?;
    query.order.clear();
    let [ehr, version] = name_version(&mut query.from)?;
    check_paths(&query, &ehr)?;
    let keys = super::parse(KEYS).0.map(|keys| keys.select.columns);
    for mut column in keys.unwrap_or_default() {
        if let ColumnValue::Expr(Expr::Path(path)) = &mut column.value {
            let variable = match path.variable.text.as_str() {
                "e" => &ehr,
                _ => &version,
            };
            path.variable = name(variable);
        }
        query.select.columns.push(column);
    }
    Ok(print(&query))
}

/// Checks that a row of the result is one row of FROM, and that all of them are in the result.
fn check_rows(query: &Query) -> Result<(), ViewError> {
    let is_aggregate = |column: &Column| matches!(column.value, ColumnValue::Aggregate(_));
    let rule = if query.select.columns.iter().any(is_aggregate) {
        "a view has no aggregate functions: select the values, and aggregate the rows of the table"
    } else if query.select.distinct {
        "a view has no DISTINCT: select the values, and remove duplicates in the table"
    } else if query.limit.is_some() || query.select.top.is_some() {
        "a view has no LIMIT and no TOP: its table has all rows"
    } else if reads_clock(query) {
        "a view has no functions of the clock, whose results change without the data: write the time as a literal, or compare with the clock in the queries of the table"
    } else {
        return Ok(());
    };
    Err(ViewError::Rule(rule))
}

/// Returns whether a column or a condition calls a function of the clock.
fn reads_clock(query: &Query) -> bool {
    let mut exprs: Vec<&Expr> = Vec::new();
    for column in &query.select.columns {
        if let ColumnValue::Expr(expr) = &column.value {
            exprs.push(expr);
        }
    }
    if let Some(condition) = &query.condition {
        add_exprs(condition, &mut exprs);
    }
    while let Some(expr) = exprs.pop() {
        if let Expr::Call(call) = expr {
            let function = function_named(&call.name.text);
            if function.is_some_and(|function| function.entry().group == FunctionGroup::Clock) {
                return true;
            }
            exprs.extend(&call.arguments);
        }
    }
    false
}

fn add_exprs<'q>(condition: &'q Condition, out: &mut Vec<&'q Expr>) {
    match condition {
        Condition::And(all) | Condition::Or(all) => {
            all.iter().for_each(|one| add_exprs(one, out));
        }
        Condition::Not(inner) => add_exprs(inner, out),
        Condition::Compare(compare) => out.extend([&compare.left, &compare.right]),
        Condition::Exists(_) | Condition::Like(..) | Condition::Matches(..) => {}
    }
}

/// Names the EHR and the VERSION of the only COMPOSITION, and puts them around it if they are absent.
/// Returns their variables.
fn name_version(from: &mut Containment) -> Result<[String; 2], ViewError> {
    let (ehr_name, version_name) = (free_name(from, "ehr"), free_name(from, "committed"));
    if class_of(from) != Some(Cls::EHR) {
        put_around(from, "EHR", &ehr_name);
    }
    let one = ViewError::Rule(
        "a view reads one COMPOSITION for each row: begin FROM with `EHR e CONTAINS COMPOSITION c`",
    );
    let Containment::Class(ehr) = from else {
        return Err(one);
    };
    let ehr_variable = variable_of(ehr, &ehr_name);
    let Some(Contains {
        negated: false,
        inner,
        ..
    }) = &mut ehr.contains
    else {
        return Err(one);
    };
    if class_of(inner) != Some(Cls::VERSION) {
        put_around(inner, "VERSION", &version_name);
    }
    let Containment::Class(version) = inner else {
        return Err(one);
    };
    if version.predicate.is_some() {
        return Err(ViewError::Rule(
            "a view reads the latest versions: remove the predicate of VERSION",
        ));
    }
    let version_variable = variable_of(version, &version_name);
    match &version.contains {
        Some(Contains {
            negated: false,
            inner: Containment::Class(composition),
            ..
        }) if Cls::parse_any_case(&composition.class.text) == Some(Cls::COMPOSITION) => {
            Ok([ehr_variable, version_variable])
        }
        _ => Err(one),
    }
}

/// Checks that no path reads an attribute of the EHR that may change without the composition.
fn check_paths(query: &Query, ehr: &str) -> Result<(), ViewError> {
    let mut paths = Vec::new();
    for column in &query.select.columns {
        if let ColumnValue::Expr(expr) = &column.value {
            add_paths(expr, &mut paths);
        }
    }
    if let Some(condition) = &query.condition {
        add_condition(condition, &mut paths);
    }
    let may_change = |path: &&Path| {
        let first = path.steps.first();
        let is_constant =
            first.is_some_and(|step| CONSTANT.contains(&step.attribute.text.as_str()));
        path.variable.text.eq_ignore_ascii_case(ehr) && !is_constant
    };
    match paths.iter().any(may_change) {
        true => Err(ViewError::Rule(
            "a view reads `ehr_id`, `system_id` and `time_created` of the EHR: other attributes change without a new version of the composition",
        )),
        false => Ok(()),
    }
}

fn add_paths<'q>(expr: &'q Expr, out: &mut Vec<&'q Path>) {
    match expr {
        Expr::Path(path) => out.push(path),
        Expr::Call(call) => call
            .arguments
            .iter()
            .for_each(|argument| add_paths(argument, out)),
        Expr::Literal(_) | Expr::Parameter(_) | Expr::Terminology(_) => {}
    }
}

fn add_condition<'q>(condition: &'q Condition, out: &mut Vec<&'q Path>) {
    match condition {
        Condition::And(all) | Condition::Or(all) => {
            all.iter().for_each(|one| add_condition(one, out));
        }
        Condition::Not(inner) => add_condition(inner, out),
        Condition::Exists(path) | Condition::Like(path, _) | Condition::Matches(path, _) => {
            out.push(path);
        }
        Condition::Compare(compare) => {
            add_paths(&compare.left, out);
            add_paths(&compare.right, out);
        }
    }
}

fn class_of(from: &Containment) -> Option<Cls> {
    match from {
        Containment::Class(expr) => Cls::parse_any_case(&expr.class.text),
        Containment::And(_) | Containment::Or(_) => None,
    }
}

/// Returns the variable of a class expression, which gets the name `free` if it has none.
fn variable_of(expr: &mut ClassExpr, free: &str) -> String {
    expr.variable.get_or_insert_with(|| name(free)).text.clone()
}

#[cfg(test)]
mod tests {
    use super::{ViewError, version_query};

    fn one_line(text: &str) -> String {
        let query = version_query(text).unwrap();
        let (_, problems) = crate::parse(&query);
        assert!(problems.is_empty(), "{query}: {problems:?}");
        query.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rows_name_their_ehr_and_version() {
        for (text, expected) in [
            (
                "SELECT c/name/value AS n FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o ORDER BY n",
                "SELECT c/name/value AS n, e/ehr_id/value, committed/uid/value, committed/commit_audit/time_committed/value FROM EHR e CONTAINS VERSION committed CONTAINS COMPOSITION c CONTAINS OBSERVATION o",
            ),
            (
                "SELECT committed/name/value FROM COMPOSITION committed",
                "SELECT committed/name/value, ehr/ehr_id/value, committed_/uid/value, committed_/commit_audit/time_committed/value FROM EHR ehr CONTAINS VERSION committed_ CONTAINS COMPOSITION committed",
            ),
            (
                "SELECT v/uid/value FROM VERSION v CONTAINS COMPOSITION c",
                "SELECT v/uid/value, ehr/ehr_id/value, v/uid/value, v/commit_audit/time_committed/value FROM EHR ehr CONTAINS VERSION v CONTAINS COMPOSITION c",
            ),
        ] {
            assert_eq!(one_line(text), expected, "{text}");
        }
    }

    #[test]
    fn query_whose_rows_depend_on_several_versions_is_no_view() {
        for (text, part) in [
            ("SELECT COUNT(*) FROM COMPOSITION c", "aggregate"),
            (
                "SELECT DISTINCT c/name/value FROM COMPOSITION c",
                "DISTINCT",
            ),
            ("SELECT c/name/value FROM COMPOSITION c LIMIT 3", "LIMIT"),
            ("SELECT TOP 3 c/name/value FROM COMPOSITION c", "TOP"),
            ("SELECT current_date() FROM COMPOSITION c", "clock"),
            ("SELECT CONCAT('x', NOW()) AS n FROM COMPOSITION c", "clock"),
            (
                "SELECT c/name/value FROM COMPOSITION c WHERE NOT (c/name/value = 'a' OR c/context/start_time/value < Current_Date_Time())",
                "clock",
            ),
            ("SELECT e/ehr_id/value FROM EHR e", "one COMPOSITION"),
            ("SELECT o/name/value FROM OBSERVATION o", "one COMPOSITION"),
            (
                "SELECT c/name/value FROM EHR e CONTAINS (COMPOSITION c AND COMPOSITION d)",
                "one COMPOSITION",
            ),
            (
                "SELECT c/name/value FROM EHR e NOT CONTAINS COMPOSITION c",
                "one COMPOSITION",
            ),
            (
                "SELECT c/name/value FROM VERSION v[ALL_VERSIONS] CONTAINS COMPOSITION c",
                "predicate of VERSION",
            ),
            (
                "SELECT c/name/value FROM EHR e CONTAINS COMPOSITION c WHERE e/ehr_status/is_modifiable = true",
                "ehr_id",
            ),
        ] {
            let error = version_query(text).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        assert!(matches!(version_query("SELECT"), Err(ViewError::Text(_))));
    }
}
