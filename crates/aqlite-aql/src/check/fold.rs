//! Equalities with one path joined by OR: `p = 'a' OR p = 'b'` means `p matches {'a', 'b'}`, whose
//! cost does not grow with its values.
//!
//! MATCHES is true, false or unknown exactly where the OR of its equalities is. Comparisons with
//! the uid of a version stay as they are: [`super::uid`] has widened them.

use super::uid::is_uid;
use crate::query::{CompareOp, Condition, Expr, List, Literal, Members, Query};

/// Joins the equalities of every OR of WHERE.
pub(super) fn join_equalities(query: &mut Query) {
    if let Some(condition) = query.condition.take() {
        query.condition = Some(joined(query, condition));
    }
}

fn joined(query: &Query, condition: Condition) -> Condition {
    match condition {
        Condition::And(all) => Condition::And(all.into_iter().map(|c| joined(query, c)).collect()),
        Condition::Not(inner) => Condition::Not(Box::new(joined(query, *inner))),
        Condition::Or(all) => joined_or(query, all),
        other => other,
    }
}

/// An OR in which each path is compared once; the values stand where the path was first compared.
fn joined_or(query: &Query, all: Vec<Condition>) -> Condition {
    let mut rest: Vec<Condition> = Vec::with_capacity(all.len());
    // By path: the place in `rest`, and the values.
    let mut lists: Vec<Option<(usize, Vec<Literal>)>> = vec![None; query.paths.len()];
    for condition in all {
        match condition {
            Condition::Compare(Expr::Path(path), CompareOp::Eq, Expr::Literal(literal))
                if !is_uid(query, path) =>
            {
                if let Some(Some((_, values))) = lists.get_mut(path) {
                    values.push(literal);
                    continue;
                }
                if let Some(list) = lists.get_mut(path) {
                    *list = Some((rest.len(), vec![literal.clone()]));
                }
                rest.push(Condition::Compare(
                    Expr::Path(path),
                    CompareOp::Eq,
                    Expr::Literal(literal),
                ));
            }
            other => rest.push(joined(query, other)),
        }
    }
    for (path, list) in lists.into_iter().enumerate() {
        if let Some((place, values)) = list.filter(|(_, values)| values.len() > 1)
            && let Some(first) = rest.get_mut(place)
        {
            *first = Condition::Matches(Expr::Path(path), Members::new(vec![List::new(values)]));
        }
    }
    match rest.pop() {
        Some(only) if rest.is_empty() => only,
        last => Condition::Or(rest.into_iter().chain(last).collect()),
    }
}
