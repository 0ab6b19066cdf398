//! The explanation of a query by a repository: the answer of `query/aql/explain` for people.

use crate::outcome::{Failure, Outcome};
use crate::report::{self, ReportedProblem};
use aqlite::diag::Span;
use serde_json::Value;
use std::io::Write;

/// Shows the problems of a query on the standard error, and writes the steps to its rows and the
/// data that its run reads.
///
/// Returns [`Outcome::Findings`] if the query has errors. Members that the repository does not send
/// are left out.
///
/// # Errors
/// If the output cannot be written.
pub fn write(
    explained: &Value,
    (text, path): (&str, &str),
    out: &mut impl Write,
) -> Result<Outcome, Failure> {
    let problems: Vec<ReportedProblem<'_>> = members(explained, "diagnostics")
        .map(|problem| shown(problem, text))
        .collect();
    let is_wrong = problems.iter().any(|problem| problem.is_error);
    report::show_all(text, path, problems);
    if is_wrong {
        return Ok(Outcome::Findings);
    }
    for (name, member) in [("checked query", "query"), ("plan", "plan")] {
        if let Some(part) = explained.get(member).filter(|part| !part.is_null()) {
            writeln!(out, "{name}")?;
            write_part(part, 1, out)?;
        }
    }
    if let Some(run) = explained.get("run") {
        write_run(run, out)?;
    }
    if let Some(empty) = explained.get("empty") {
        write_removed(empty, out)?;
    }
    out.flush()?;
    Ok(Outcome::Success)
}

fn shown<'v>(problem: &'v Value, text: &str) -> ReportedProblem<'v> {
    let string = |name: &str| problem.get(name).and_then(Value::as_str);
    let offset = |name: &str| {
        let units = problem.get(name).and_then(Value::as_u64);
        byte_of(text, units.unwrap_or_default())
    };
    ReportedProblem {
        is_error: string("severity") == Some("error"),
        code: string("code").unwrap_or_default(),
        message: string("message").unwrap_or_default(),
        span: Span::new(offset("from"), offset("to")),
        help: string("help"),
    }
}

/// Returns the byte offset of an offset in UTF-16 units, which positions of an explanation are.
fn byte_of(text: &str, units: u64) -> usize {
    let mut before = 0_u64;
    let found = text.char_indices().find(|(_, character)| {
        let is_here = before >= units;
        before += character.len_utf16() as u64;
        is_here
    });
    found.map_or(text.len(), |(at, _)| at)
}

/// Writes a step and its parts as indented lines.
fn write_part(part: &Value, depth: usize, out: &mut impl Write) -> Result<(), Failure> {
    let label = part.get("label").and_then(Value::as_str);
    writeln!(out, "{:1$}{2}", "", depth * 2, label.unwrap_or_default())?;
    members(part, "parts").try_for_each(|part| write_part(part, depth + 1, out))
}

/// Writes the data that the run read.
fn write_run(run: &Value, out: &mut impl Write) -> Result<(), Failure> {
    let number = |name: &str| run.get(name).and_then(Value::as_u64);
    let count = |name: &str| number(name).unwrap_or_default();
    writeln!(out, "run")?;
    writeln!(
        out,
        "  {} documents of {} EHRs in {} batches, {} of them segments",
        count("documents"),
        count("ehrs"),
        count("batches"),
        count("segments")
    )?;
    if count("left_out") > 0 {
        writeln!(out, "  {} rows left out by zone maps", count("left_out"))?;
    }
    let work = count("work");
    match (number("rows"), run.get("error").and_then(Value::as_str)) {
        (Some(rows), _) => writeln!(out, "  {rows} rows, {work} units of work")?,
        (None, Some(error)) => writeln!(out, "  {error}, after {work} units of work")?,
        (None, None) => writeln!(out, "  {work} units of work")?,
    }
    Ok(())
}

/// Writes the rows that each part of a query leaves, up to the part that leaves none.
fn write_removed(empty: &Value, out: &mut impl Write) -> Result<(), Failure> {
    writeln!(out, "rows behind each part of the query")?;
    for part in members(empty, "parts") {
        let string = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| part.get(name).and_then(Value::as_u64);
        let rows = number("rows").unwrap_or_default();
        let (kind, label) = (string("kind"), string("label"));
        write!(out, "  {rows:>8}  {kind} {label}")?;
        match number("without") {
            Some(without) => writeln!(out, "; without it {without}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// Returns the elements of a list; none if it is absent.
fn members<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    let list = value.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::byte_of;

    #[test]
    fn offset_in_utf16_units_becomes_one_in_bytes() {
        let text = "aä😀b";
        let offsets = [0, 1, 2, 4, 5, 9].map(|units| byte_of(text, units));
        assert_eq!(offsets, [0, 1, 3, 7, 8, 8]);
    }
}
