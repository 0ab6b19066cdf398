//! Lint on the data of a folder: warnings that no row refutes, and the parts of a query that leave
//! no row.

use crate::data::DataSet;
use crate::outcome::Failure;
use aqlite::aql::{
    Cell, Explanation, LintWarning, Parameters, QueryOptions, ResultSet, ast, prepare_tree,
};
use aqlite::diag::Diagnostic;
use std::io::Write;

/// The data and the parameters of a query.
pub struct Lint<'l> {
    /// The data.
    pub data: &'l DataSet,
    /// The parameters.
    pub parameters: &'l Parameters,
    /// The time of the query.
    pub now: &'l str,
}

impl Lint<'_> {
    /// Returns the warnings that depend on templates, unless a row refutes them.
    ///
    /// # Errors
    /// As a run.
    pub fn unrefuted(&self, warnings: &[LintWarning]) -> Result<Vec<Diagnostic>, Failure> {
        let mut kept = Vec::new();
        for warning in warnings.iter().filter(|warning| !warning.is_certain) {
            let rows = self.rows(&warning.contrary)?;
            if rows.is_none_or(|rows| rows.is_empty()) {
                kept.push(warning.diagnostic.clone());
            }
        }
        Ok(kept)
    }

    /// Writes the rows that each part of a query leaves, up to the part that leaves none.
    ///
    /// # Errors
    /// As a run.
    pub fn write_removed(
        &self,
        explanation: &Explanation,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        writeln!(out, "rows behind each part of the query")?;
        let Some(stages) = &explanation.stages else {
            return Ok(());
        };
        for stage in stages.all() {
            let Some(count) = self.count(&stages.counting(stage))? else {
                break;
            };
            let kind = stage.kind.name();
            write!(out, "  {count:>8}  {kind} {}", stage.label)?;
            let without = match count.as_str() {
                "0" => stages.counting_without(stage),
                _ => None,
            };
            let without = without.map(|query| self.count(&query)).transpose()?;
            match without.flatten() {
                Some(without) => writeln!(out, "; without it {without}")?,
                None => writeln!(out)?,
            }
            if count == "0" {
                break;
            }
        }
        Ok(())
    }

    fn rows(&self, query: &ast::Query) -> Result<Option<ResultSet>, Failure> {
        let plan = prepare_tree(query, self.parameters, &QueryOptions::default());
        let answer = plan.ok().map(|plan| self.data.answer(&plan, self.now));
        Ok(answer.transpose()?.map(|answer| answer.result))
    }

    /// Returns the digits of the first cell.
    fn count(&self, query: &ast::Query) -> Result<Option<String>, Failure> {
        let rows = self.rows(query)?;
        let first = rows.as_ref().and_then(|rows| rows.rows().next());
        Ok(first.and_then(|row| row.get(0)).map(|cell: Cell<&str>| {
            let mut digits = String::new();
            cell.write_json(&mut digits);
            digits
        }))
    }
}
