//! Comparisons with the uid of a version: the uid of its object, `uuid`, and `uuid::::2` without the system name it too.
//!
//! COMPOSITION.uid holds a version uid (`uuid::system::2`), but people and clients know the object. So `=`, `!=` and
//! `matches` on `…/uid/value` also compare with these short forms; other texts compare as texts.

use crate::aql::query::{
    CompareOp, Condition, Contains, Expr, LikeItem, LikePattern, Literal, Predicate, PredicateValue, Query, ShortUid, Source, Step,
};
use crate::rm::class::{Attr, Cls};
use crate::rm::id::is_uuid;

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
        Condition::Compare(Expr::Path(path), op @ (CompareOp::Eq | CompareOp::Ne), Expr::Literal(literal)) if is_uid(query, path) => {
            let like = short_form(&literal).map(|form| Condition::Like(Expr::Path(path), form.pattern()));
            let exact = Condition::Compare(Expr::Path(path), op, Expr::Literal(literal));
            match like {
                None => exact,
                Some(like) if op == CompareOp::Eq => Condition::Or(vec![exact, like]),
                Some(like) => Condition::And(vec![exact, Condition::Not(Box::new(like))]),
            }
        }
        Condition::Matches(Expr::Path(path), members) if is_uid(query, path) => {
            let short = members.literals().iter().filter_map(short_form).map(|form| form.owned()).collect();
            Condition::Matches(Expr::Path(path), members.with_short_uids(short))
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
        Predicate::Compare(steps, CompareOp::Eq, PredicateValue::Literal(literal)) if ends_in_uid(steps) => {
            if let Some(form) = short_form(literal) {
                let regex = Predicate::Regex(steps.clone(), form.regex());
                *predicate = Predicate::Or(vec![predicate.clone(), regex]);
            }
        }
        _ => {}
    }
}

pub(super) fn is_uid(query: &Query, path: usize) -> bool {
    query.paths.get(path).is_some_and(|path| {
        let class = query.variables.get(path.variable).map_or(Cls::ANY, |v| v.class);
        class.is_a(Cls::LOCATABLE) && ends_in_uid(&path.steps)
    })
}

fn ends_in_uid(steps: &[Step]) -> bool {
    steps.iter().map(|s| s.attr).eq([Attr::UID, Attr::VALUE])
}

/// A version uid without its system, or without its number too.
struct ShortForm<'a> {
    object: &'a str,
    number: Option<&'a str>,
}

fn short_form(literal: &Literal) -> Option<ShortForm<'_>> {
    let (Literal::Text(text) | Literal::Untyped(text)) = literal else { return None };
    let (object, number) = match text.split_once("::::") {
        Some((object, number)) => (object, Some(number)),
        None => (text.as_str(), None),
    };
    if number.is_some_and(|n| n.is_empty() || !n.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    is_uuid(object).then_some(ShortForm { object, number })
}

impl ShortForm<'_> {
    fn owned(&self) -> ShortUid {
        ShortUid { object: self.object.to_owned(), number: self.number.map(str::to_owned) }
    }

    fn pattern(&self) -> LikePattern {
        let start = LikeItem::Text(format!("{}::", self.object));
        let end = self.number.map(|n| LikeItem::Text(format!("::{n}")));
        LikePattern::new([start, LikeItem::Any].into_iter().chain(end).collect())
    }

    fn regex(&self) -> String {
        format!("{}::.*{}", self.object, self.number.map(|n| format!("::{n}")).unwrap_or_default())
    }
}
