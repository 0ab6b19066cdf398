//! Comparisons with the uid of a version: the uid of its object, `uuid`, and `uuid::::2` without
//! the system name it too.
//!
//! COMPOSITION.uid holds a version uid (`uuid::system::2`), but people and clients know the object.
//! So `=`, `!=` and `matches` on `…/uid/value` also compare with these short forms; other texts
//! compare as texts.

use crate::query::{
    CompareOp, Condition, Contains, Expr, LikeItem, LikePattern, Predicate, PredicateValue, Query,
    ShortUid, Source, Step,
};
use aqlite_rm::class::{Attr, Cls};

/// Lets short forms of version uids match.
pub(super) fn widen(query: &mut Query) {
    if let Some(condition) = query.condition.take() {
        query.condition = Some(widened(query, condition));
    }
    widen_source(&mut query.from);
}

fn widened(query: &Query, condition: Condition) -> Condition {
    match condition {
        Condition::And(all) => Condition::And(all.into_iter().map(|c| widened(query, c)).collect()),
        Condition::Or(all) => Condition::Or(all.into_iter().map(|c| widened(query, c)).collect()),
        Condition::Not(inner) => Condition::Not(Box::new(widened(query, *inner))),
        Condition::Compare(
            Expr::Path(path),
            op @ (CompareOp::Eq | CompareOp::Ne),
            Expr::Literal(literal),
        ) if is_uid(query, path) => {
            let like = ShortUid::of(&literal)
                .map(|form| Condition::Like(Expr::Path(path), pattern(&form)));
            let exact = Condition::Compare(Expr::Path(path), op, Expr::Literal(literal));
            match like {
                None => exact,
                Some(like) if op == CompareOp::Eq => Condition::Or(vec![exact, like]),
                Some(like) => Condition::And(vec![exact, Condition::Not(Box::new(like))]),
            }
        }
        Condition::Matches(Expr::Path(path), members) if is_uid(query, path) => {
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
        Predicate::Compare(steps, CompareOp::Eq, PredicateValue::Literal(literal))
            if ends_in_uid(steps) =>
        {
            if let Some(form) = ShortUid::of(literal) {
                let regex = Predicate::Regex(steps.clone(), regex(&form));
                *predicate = Predicate::Or(vec![predicate.clone(), regex]);
            }
        }
        _ => {}
    }
}

pub(super) fn is_uid(query: &Query, path: usize) -> bool {
    query.paths.get(path).is_some_and(|path| {
        let class = query
            .variables
            .get(path.variable)
            .map_or(Cls::ANY, |v| v.class);
        class.is_a(Cls::LOCATABLE) && ends_in_uid(&path.steps)
    })
}

fn ends_in_uid(steps: &[Step]) -> bool {
    steps.iter().map(|s| s.attr).eq([Attr::UID, Attr::VALUE])
}

/// The pattern of the version uids that a short form names.
fn pattern(form: &ShortUid) -> LikePattern {
    let start = LikeItem::Text(format!("{}::", form.object));
    let end = form
        .number
        .as_ref()
        .map(|n| LikeItem::Text(format!("::{n}")));
    LikePattern::new([start, LikeItem::Any].into_iter().chain(end).collect())
}

/// The same as a regular expression.
fn regex(form: &ShortUid) -> String {
    let number = form.number.as_ref().map(|n| format!("::{n}"));
    format!("{}::.*{}", form.object, number.unwrap_or_default())
}
