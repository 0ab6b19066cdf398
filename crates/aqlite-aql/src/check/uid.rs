//! Comparisons with the uid of a version. The uid of its object, `uuid`, and `uuid::::2` without the
//! system also match it.
//!
//! COMPOSITION.uid holds a version uid (`uuid::system::2`), but people and clients know the object.
//! So `=`, `!=` and `matches` on `…/uid/value` also compare with these short forms, in WHERE and in
//! brackets; other texts compare as texts.

use crate::query::{
    CompareOp, Condition, Contains, Expr, LikeItem, LikePattern, List, Members, Predicate,
    PredicateValue, Query, ShortUid, Source, Step,
};
use aqlite_rm::class::{Attr, Cls};

/// The paths of a query that lead to the uid of a version: ascending indexes into `Query::paths`.
pub(super) struct UidPaths(Vec<usize>);

impl UidPaths {
    /// Collects the paths; `None` if a path starts at a variable that the query does not have.
    pub fn new(query: &Query) -> Option<UidPaths> {
        let mut found = Vec::new();
        for (index, path) in query.paths.iter().enumerate() {
            let class = query.variables.get(path.variable)?.class;
            // VERSIONED_OBJECT.uid is the uid of an object, and equals no other form.
            let is_of_version = path.steps.len() > UID.len()
                || class.is_a(Cls::LOCATABLE)
                || class.is_a(Cls::VERSION);
            if is_of_version && ends_in_uid(&path.steps) {
                found.push(index);
            }
        }
        Some(UidPaths(found))
    }

    /// Returns whether a path leads to the uid of a version.
    pub fn contains(&self, path: usize) -> bool {
        self.0.binary_search(&path).is_ok()
    }
}

/// Adds the short forms of version uids to the comparisons of a query.
pub(super) fn widen(query: &mut Query, uids: &UidPaths) {
    query.condition = query.condition.take().map(|c| widened(uids, c));
    widen_source(&mut query.from);
    for path in query.paths.iter_mut().chain(&mut query.exists) {
        path.root.iter_mut().for_each(widen_predicate);
        widen_steps(&mut path.steps);
    }
}

fn widen_steps(steps: &mut [Step]) {
    let predicates = steps.iter_mut().filter_map(|s| s.predicate.as_mut());
    predicates.for_each(widen_predicate);
}

fn widened(uids: &UidPaths, condition: Condition) -> Condition {
    match condition {
        Condition::And(all) => Condition::And(all.into_iter().map(|c| widened(uids, c)).collect()),
        Condition::Or(all) => Condition::Or(all.into_iter().map(|c| widened(uids, c)).collect()),
        Condition::Not(inner) => Condition::Not(Box::new(widened(uids, *inner))),
        Condition::Compare(
            Expr::Path(path),
            op @ (CompareOp::Eq | CompareOp::Ne),
            Expr::Literal(literal),
        ) if uids.contains(path) => {
            let like = ShortUid::of(&literal)
                .map(|form| Condition::Like(Expr::Path(path), pattern(&form)));
            let exact = Condition::Compare(Expr::Path(path), op, Expr::Literal(literal));
            match like {
                None => exact,
                Some(like) if op == CompareOp::Eq => Condition::Or(vec![exact, like]),
                // `!=` is true only if neither the uid nor its short form matches.
                Some(like) => Condition::And(vec![exact, Condition::Not(Box::new(like))]),
            }
        }
        Condition::Matches(Expr::Path(path), members) if uids.contains(path) => {
            Condition::Matches(Expr::Path(path), members.by_short_uid())
        }
        other => other,
    }
}

fn widen_source(source: &mut Source) {
    match source {
        Source::And(left, right) | Source::Or(left, right) => {
            widen_source(left);
            widen_source(right);
        }
        Source::Class(class) => {
            if let Some(predicate) = &mut class.predicate {
                widen_predicate(predicate);
            }
            match &mut class.contains {
                Contains::Some(below) | Contains::None(below) => widen_source(below),
                Contains::Nothing => {}
            }
        }
    }
}

fn widen_predicate(predicate: &mut Predicate) {
    match predicate {
        Predicate::And(all) | Predicate::Or(all) => all.iter_mut().for_each(widen_predicate),
        Predicate::NodeId(_) => {}
        Predicate::Regex(steps, _) => widen_steps(steps),
        Predicate::Compare(steps, op, value) => {
            widen_steps(steps);
            match value {
                PredicateValue::Path(other) => widen_steps(other),
                PredicateValue::Literal(literal)
                    if matches!(op, CompareOp::Eq | CompareOp::Ne)
                        && ends_in_uid(steps)
                        && ShortUid::of(literal).is_some() =>
                {
                    let list = List::new(vec![literal.clone()]);
                    *value = PredicateValue::Uid(Members::new(vec![list]).by_short_uid());
                }
                PredicateValue::Literal(_) | PredicateValue::Uid(_) => {}
            }
        }
    }
}

/// The end of a path to the text of a uid.
const UID: [Attr; 2] = [Attr::UID, Attr::VALUE];

fn ends_in_uid(steps: &[Step]) -> bool {
    let end = steps.len().checked_sub(UID.len());
    end.is_some_and(|end| steps.iter().skip(end).map(|s| s.attr).eq(UID))
}

/// Returns the pattern of the version uids that a short form names.
fn pattern(form: &ShortUid) -> LikePattern {
    let start = LikeItem::Text(format!("{}::", form.object));
    let end = form
        .number
        .as_ref()
        .map(|n| LikeItem::Text(format!("::{n}")));
    LikePattern::new([start, LikeItem::Any].into_iter().chain(end).collect())
}
