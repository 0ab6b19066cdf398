//! Checks of a checked query: its errors, its use of the clock, and its version uids.

use super::super::error::Failure;
use super::super::ids::{VersionUid, is_uuid};
use crate::aql;
use crate::aql::query::{ColumnValue, Condition, Expr, FunctionGroup, Literal, Query};
use crate::rm::class::{Attr, Cls};

/// Returns 400 if the query is wrong or a terminology refuses it; otherwise the status of a feature
/// that this host lacks (501) or of a service that fails (502, 504). A broken invariant is 500,
/// whatever else the diagnostics contain.
pub(super) fn status_of(diagnostics: &[crate::diag::Diagnostic]) -> u16 {
    if diagnostics.iter().any(|d| d.code == aql::BROKEN_INVARIANT) {
        return 500;
    }
    let of_code = |code: &str| match code {
        "AQL0501" | "AQL0504" => 501,
        "AQL0505" => 502,
        "AQL0506" => 504,
        _ => 400,
    };
    diagnostics
        .iter()
        .map(|d| of_code(d.code))
        // An error of the client comes first: with it, another run would fail too.
        .min()
        .unwrap_or(400)
}

/// Returns whether the result depends on the time of the query.
pub(super) fn reads_clock(query: &Query) -> bool {
    let selected = query
        .select
        .iter()
        .any(|c| matches!(&c.value, ColumnValue::Expr(expr) if expr_reads_clock(expr)));
    selected || query.condition.as_ref().is_some_and(condition_reads_clock)
}

fn condition_reads_clock(condition: &Condition) -> bool {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().any(condition_reads_clock),
        Condition::Not(inner) => condition_reads_clock(inner),
        Condition::Compare(left, _, right) => expr_reads_clock(left) || expr_reads_clock(right),
        Condition::Like(expr, _) | Condition::Matches(expr, _) => expr_reads_clock(expr),
        Condition::Exists(_) | Condition::Constant(_) => false,
    }
}

fn expr_reads_clock(expr: &Expr) -> bool {
    match expr {
        Expr::Call(function, arguments) => {
            function.entry().group == FunctionGroup::Clock || arguments.iter().any(expr_reads_clock)
        }
        Expr::Path(_) | Expr::Literal(_) => false,
    }
}

/// Rejects comparisons of COMPOSITION.uid with a text that cannot be a uid of this server, on a
/// mount that requires it.
pub(super) fn check_uids(query: &Query, system_id: &str, status: u16) -> Result<(), Failure> {
    let check = |text: &str| check_version_uid(text, system_id, status);
    let condition = query.condition.as_ref();
    condition.map_or(Ok(()), |condition| each_uid(query, condition, &check))
}

/// Calls a function with each text that the condition compares with COMPOSITION.uid.
fn each_uid(
    query: &Query,
    condition: &Condition,
    check: &dyn Fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match condition {
        Condition::And(all) | Condition::Or(all) => {
            all.iter().try_for_each(|c| each_uid(query, c, check))
        }
        Condition::Not(inner) => each_uid(query, inner, check),
        Condition::Compare(Expr::Path(path), _, Expr::Literal(Literal::Text(text)))
            if is_composition_uid(query, *path) =>
        {
            check(text)
        }
        _ => Ok(()),
    }
}

fn check_version_uid(text: &str, system_id: &str, status: u16) -> Result<(), Failure> {
    let problem = match VersionUid::parse(text) {
        // The short forms name versions of any system.
        _ if is_uuid(text) || without_system(text) => return Ok(()),
        Some(uid) if uid.system_id == system_id => return Ok(()),
        Some(uid) => format!(
            "the system id `{}` does not match this server ({system_id})",
            uid.system_id
        ),
        None => format!(
            "`{}` is not a valid OBJECT_VERSION_ID/UID",
            text.chars().take(80).collect::<String>()
        ),
    };
    Err(Failure::new(status, problem))
}

/// Returns true for `uuid::::2`.
fn without_system(text: &str) -> bool {
    text.split_once("::::")
        .is_some_and(|(object, number)| is_uuid(object) && number.parse::<u32>().is_ok())
}

fn is_composition_uid(query: &Query, path: usize) -> bool {
    query.paths.get(path).is_some_and(|path| {
        let class = query.variables.get(path.variable).map(|v| v.class);
        class == Some(Cls::COMPOSITION)
            && path
                .steps
                .iter()
                .map(|s| s.attr)
                .eq([Attr::UID, Attr::VALUE])
    })
}
