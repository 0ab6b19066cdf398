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

/// The equalities of an OR with one path.
struct Equalities {
    /// The index of the first of them among the remaining conditions.
    first: usize,
    values: Vec<Literal>,
}

/// Joins an OR: each path is compared once, in the position of its first comparison.
fn joined_or(uids: &UidPaths, all: Vec<Condition>) -> Condition {
    let mut rest: Vec<Condition> = Vec::with_capacity(all.len());
    let mut by_path: BTreeMap<usize, Equalities> = BTreeMap::new();
    for condition in all {
        match condition {
            Condition::Compare(Expr::Path(path), CompareOp::Eq, Expr::Literal(literal))
                if !uids.contains(path) =>
            {
                if let Some(known) = by_path.get_mut(&path) {
                    known.values.push(literal);
                    continue;
                }
                let equalities = Equalities {
                    first: rest.len(),
                    values: vec![literal.clone()],
                };
                by_path.insert(path, equalities);
                rest.push(Condition::Compare(
                    Expr::Path(path),
                    CompareOp::Eq,
                    Expr::Literal(literal),
                ));
            }
            other => rest.push(joined(uids, other)),
        }
    }
    for (path, Equalities { first, values }) in by_path {
        // A single equality remains a comparison, which the engine evaluates over columns.
        if values.len() > 1
            && let Some(first) = rest.get_mut(first)
        {
            *first = Condition::Matches(Expr::Path(path), Members::new(vec![List::new(values)]));
        }
    }
    match rest.pop() {
        Some(only) if rest.is_empty() => only,
        last => Condition::Or(rest.into_iter().chain(last).collect()),
    }
}
