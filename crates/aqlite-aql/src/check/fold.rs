//! Equalities with one path joined by OR: `p = 'a' OR p = 'b'` means `p matches {'a', 'b'}`, whose
//! cost does not grow with its values.
//!
//! MATCHES is true, false or unknown exactly where the OR of its equalities is. Comparisons with
//! the uid of a version stay as they are: [`super::uid`] has widened them.

use super::uid::UidPaths;
use crate::query::{CompareOp, Condition, Expr, List, Literal, Members, Query};
use std::collections::BTreeMap;

/// Joins the equalities of every OR of WHERE.
pub(super) fn join_equalities(query: &mut Query, uids: &UidPaths) {
    query.condition = query.condition.take().map(|c| joined(uids, c));
}

fn joined(uids: &UidPaths, condition: Condition) -> Condition {
    match condition {
        Condition::And(all) => Condition::And(all.into_iter().map(|c| joined(uids, c)).collect()),
        Condition::Not(inner) => Condition::Not(Box::new(joined(uids, *inner))),
        Condition::Or(all) => joined_or(uids, all),
        other => other,
    }
}

/// Joins an OR: each path is compared once, in the position of its first comparison.
fn joined_or(uids: &UidPaths, all: Vec<Condition>) -> Condition {
    let mut values: BTreeMap<usize, Vec<Literal>> = BTreeMap::new();
    for (path, value) in all.iter().filter_map(|c| equality(uids, c)) {
        values.entry(path).or_default().push(value.clone());
    }
    let mut rest: Vec<Condition> = Vec::with_capacity(all.len());
    for condition in all {
        let Some((path, _)) = equality(uids, &condition) else {
            rest.push(joined(uids, condition));
            continue;
        };
        match values.remove(&path) {
            // A single equality remains a comparison, which the engine evaluates over columns.
            Some(values) if values.len() == 1 => rest.push(condition),
            Some(values) => {
                let members = Members::new(vec![List::new(values)]);
                rest.push(Condition::Matches(Expr::Path(path), members));
            }
            // The first comparison with this path has the value.
            None => {}
        }
    }
    match rest.pop() {
        Some(only) if rest.is_empty() => only,
        last => Condition::Or(rest.into_iter().chain(last).collect()),
    }
}

/// Returns the path and the value of an equality that may be joined with others.
fn equality<'c>(uids: &UidPaths, condition: &'c Condition) -> Option<(usize, &'c Literal)> {
    match condition {
        Condition::Compare(Expr::Path(path), CompareOp::Eq, Expr::Literal(value))
            if !uids.contains(*path) =>
        {
            Some((*path, value))
        }
        _ => None,
    }
}
