//! Pairs of conditions on one path that exclude each other, and pairs that cover every value.
//!
//! Equal paths have one value in each row, so two conditions on a path concern the same value.

use super::{ALWAYS, EXCLUSIVE, Linter, TYPES, contrary, value_of};
use crate::ast;
use crate::print;
use crate::query::{CompareOp, Literal};
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::exact::Exact;
use aqlite_rm::time::Temporal;
use std::cmp::Ordering;

/// The most conditions of one connective that are compared with each other.
const COMPARED: usize = 64;

/// A condition on a path.
#[derive(Clone)]
struct Bound<'a> {
    /// The path as text.
    path: String,
    condition: &'a ast::Condition,
    op: CompareOp,
    /// The value; several for `matches`, whose operator is `=`.
    values: Vec<Literal>,
    /// From the path to the end of the value.
    span: Span,
    /// The right side of a comparison.
    right: Option<Span>,
}

impl<'a> Bound<'a> {
    /// Returns the condition with the values of another one.
    fn with(&self, other: &Bound<'a>) -> Bound<'a> {
        Bound {
            values: other.values.clone(),
            ..self.clone()
        }
    }
}

impl<'a> Linter<'a> {
    /// Warns of conditions of AND that exclude each other.
    pub(super) fn exclusive(&mut self, all: &'a [ast::Condition]) {
        let flat = flattened(all, |c| match c {
            ast::Condition::And(all) => Some(all),
            _ => None,
        });
        for (first, second) in self.pairs(&flat, exclude) {
            let whole =
                ast::Condition::And(vec![first.condition.clone(), second.condition.clone()]);
            let message = "this condition and an earlier one exclude each other";
            let found = Diagnostic::warning(EXCLUSIVE, second.span, message);
            let found = self.with_other_word(found, &first, &second, Repair::Exclusive);
            self.warn(found, contrary::of_query(&self.ast.from, whole), true);
        }
    }

    /// Warns of alternatives of OR, one of which is true for every value.
    pub(super) fn covering(&mut self, any: &'a [ast::Condition]) {
        let flat = flattened(any, |c| match c {
            ast::Condition::Or(any) => Some(any),
            _ => None,
        });
        for (first, second) in self.pairs(&flat, cover) {
            let either =
                ast::Condition::Or(vec![first.condition.clone(), second.condition.clone()]);
            let message = "this alternative or an earlier one is true for every value of this type";
            let found = Diagnostic::warning(ALWAYS, second.span, message);
            let found = self.with_other_word(found, &first, &second, Repair::Covering);
            let whole = ast::Condition::Not(Box::new(either));
            self.warn(found, contrary::of_query(&self.ast.from, whole), true);
        }
    }

    /// Returns the pairs of conditions on the same path with a property.
    fn pairs(
        &self,
        all: &[&'a ast::Condition],
        is_pair: fn(&Bound<'_>, &Bound<'_>) -> bool,
    ) -> Vec<(Bound<'a>, Bound<'a>)> {
        let bounds: Vec<Bound<'a>> = all.iter().filter_map(|c| self.bound(c)).collect();
        let mut found = Vec::new();
        for (i, second) in bounds.iter().enumerate().take(COMPARED) {
            let mut earlier = bounds.iter().take(i);
            // One partner is enough to see the problem.
            if let Some(first) = earlier.find(|b| b.path == second.path && is_pair(b, second)) {
                found.push((first.clone(), second.clone()));
            }
        }
        found
    }

    /// Returns the path of a condition, and the values that the condition compares it with.
    fn bound(&self, condition: &'a ast::Condition) -> Option<Bound<'a>> {
        let (path, bound) = match condition {
            ast::Condition::Compare(compare) => {
                let ast::Expr::Path(path) = &compare.left else {
                    return None;
                };
                let end = print::expr_span(&compare.right);
                let bound = Bound {
                    path: print::path(path),
                    condition,
                    op: compare.op,
                    values: vec![self.literal(&compare.right)?],
                    span: Span::new(path.span().start, end.end),
                    right: Some(end),
                };
                (path, bound)
            }
            ast::Condition::Matches(path, ast::MatchesOperand::List(items)) => {
                let literals = literals(items)?;
                let end = literals.last()?.at.0;
                let bound = Bound {
                    path: print::path(path),
                    condition,
                    op: CompareOp::Eq,
                    values: literals.iter().take(COMPARED + 1).map(value_of).collect(),
                    span: Span::new(path.span().start, end.end + 1),
                    right: None,
                };
                (path, bound)
            }
            _ => return None,
        };
        let is_usual = |v: &Literal| !matches!(v, Literal::Null | Literal::Untyped(_));
        let is_read = bound.values.len() <= COMPARED && bound.values.iter().all(is_usual);
        let Span { start, end } = bound.span;
        // A comparison that is never true has a warning of its own.
        let is_wrong =
            |(code, at): &(&str, Span)| *code == TYPES && at.start > start && at.end <= end;
        let is_read = is_read && !self.seen.iter().any(is_wrong);
        // A version uid also equals its short forms.
        (is_read && !is_uid(path)).then_some(bound)
    }

    /// Adds the probable meaning of a pair, unless the pair with this meaning is never true either.
    fn with_other_word(
        &self,
        found: Diagnostic,
        first: &Bound<'a>,
        second: &Bound<'a>,
        repair: Repair,
    ) -> Diagnostic {
        let text = |start: usize, end: usize| self.text.get(start..end).unwrap_or_default();
        let (start, end) = (first.span.start, second.span.end);
        let between = text(first.span.end, second.span.start);
        let is_between = |word| between.trim().eq_ignore_ascii_case(word);
        let is_equality = |op| matches!(op, CompareOp::Eq | CompareOp::Ne);
        let other = match (repair, first.right, second.right) {
            (Repair::Exclusive, Some(a), Some(b)) if is_between("AND") => {
                let (left, right) = (text(start, a.start), text(second.span.start, b.start));
                let (x, y) = (text(a.start, a.end), text(b.start, b.end));
                let path = left.trim_end().strip_suffix('=').map(str::trim_end);
                match (path, first.op, second.op) {
                    (Some(path), CompareOp::Eq, CompareOp::Eq) => {
                        format!("{path} matches {{{x}, {y}}}")
                    }
                    (_, a, b) if is_equality(a) || is_equality(b) => String::new(),
                    _ if exclude(&first.with(second), &second.with(first)) => String::new(),
                    _ => format!("{left}{y}{between}{right}{x}"),
                }
            }
            (Repair::Covering, ..) if is_between("OR") && !exclude(first, second) => {
                let (first, second) = (text(start, first.span.end), text(second.span.start, end));
                format!("{first} AND {second}")
            }
            _ => String::new(),
        };
        if other.is_empty() {
            return found.with_help("remove one of them");
        }
        let help = format!("did you mean `{other}`?");
        found.with_help(help).with_fix(Span::new(start, end), other)
    }
}

#[derive(Clone, Copy)]
enum Repair {
    Exclusive,
    Covering,
}

/// Returns the conditions of a connective and of the same connectives in it.
fn flattened<'a>(
    all: &'a [ast::Condition],
    inner: fn(&'a ast::Condition) -> Option<&'a Vec<ast::Condition>>,
) -> Vec<&'a ast::Condition> {
    let mut out = Vec::new();
    for condition in all {
        match inner(condition) {
            Some(more) => out.extend(flattened(more, inner)),
            None => out.push(condition),
        }
    }
    out
}

/// Compares two values as a query does, if each way of comparing them agrees: a date also compares
/// as a text, where the stored value is none. `None` if they do not.
fn order_of(a: &Literal, b: &Literal) -> Option<Ordering> {
    match (a, b) {
        (Literal::Number(a), Literal::Number(b)) => Exact::parse(a)?.partial_cmp(&Exact::parse(b)?),
        (Literal::Boolean(a), Literal::Boolean(b)) => Some(a.cmp(b)),
        (Literal::Text(a), Literal::Text(b)) => {
            let texts = a.cmp(b);
            match (Temporal::classify(a), Temporal::classify(b)) {
                (None, None) => Some(texts),
                (Some(x), Some(y)) => x.floor_order(y).filter(|order| *order == texts),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the kind of a value. A value has one kind, so it equals no value of another.
fn kind_of(value: &Literal) -> u8 {
    match value {
        Literal::Number(_) => 1,
        Literal::Boolean(_) => 2,
        _ => 3,
    }
}

/// Returns whether a value satisfies a condition; `None` if that is not certain.
fn admits(bound: &Bound<'_>, value: &Literal) -> Option<bool> {
    let one = |other: &Literal| {
        if kind_of(value) != kind_of(other) {
            return Some(false);
        }
        Some(bound.op.holds(order_of(value, other)?))
    };
    let mut any = Some(false);
    for other in &bound.values {
        match one(other) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => any = None,
        }
    }
    any
}

/// Returns whether no value satisfies both conditions.
fn exclude(a: &Bound<'_>, b: &Bound<'_>) -> bool {
    if a.op == CompareOp::Eq {
        return a.values.iter().all(|value| admits(b, value) == Some(false));
    }
    if b.op == CompareOp::Eq {
        return exclude(b, a);
    }
    let (Some(x), Some(y)) = (a.values.first(), b.values.first()) else {
        return false;
    };
    if kind_of(x) != kind_of(y) {
        return true;
    }
    let is_open = |op| matches!(op, CompareOp::Gt | CompareOp::Lt);
    match (is_lower(a.op), is_lower(b.op)) {
        (Some(true), Some(false)) => match order_of(x, y) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => is_open(a.op) || is_open(b.op),
            _ => false,
        },
        (Some(false), Some(true)) => exclude(b, a),
        _ => false,
    }
}

/// Returns whether every value of the kind satisfies one of the conditions.
fn cover(a: &Bound<'_>, b: &Bound<'_>) -> bool {
    let (Some(x), Some(y)) = (a.values.first(), b.values.first()) else {
        return false;
    };
    if kind_of(x) != kind_of(y) {
        return false;
    }
    match (a.op, b.op) {
        (CompareOp::Ne, CompareOp::Ne) => order_of(x, y).is_some_and(Ordering::is_ne),
        (CompareOp::Ne, CompareOp::Eq) => b
            .values
            .iter()
            .any(|y| order_of(x, y) == Some(Ordering::Equal)),
        (CompareOp::Eq, CompareOp::Ne) => cover(b, a),
        _ => match (is_lower(a.op), is_lower(b.op)) {
            (Some(true), Some(false)) => match order_of(x, y) {
                Some(Ordering::Less) => true,
                Some(Ordering::Equal) => {
                    matches!(a.op, CompareOp::Ge) || matches!(b.op, CompareOp::Le)
                }
                _ => false,
            },
            (Some(false), Some(true)) => cover(b, a),
            _ => false,
        },
    }
}

/// Returns whether an operator is a lower bound (true) or an upper one (false).
fn is_lower(op: CompareOp) -> Option<bool> {
    match op {
        CompareOp::Gt | CompareOp::Ge => Some(true),
        CompareOp::Lt | CompareOp::Le => Some(false),
        CompareOp::Eq | CompareOp::Ne => None,
    }
}

/// Returns the items of `matches` if all are literals.
fn literals(items: &[ast::MatchesItem]) -> Option<Vec<ast::Literal>> {
    let literal = |item: &ast::MatchesItem| match item {
        ast::MatchesItem::Literal(literal) => Some(literal.clone()),
        _ => None,
    };
    items.iter().map(literal).collect()
}

/// Returns whether a path ends with `uid/value`.
fn is_uid(path: &ast::Path) -> bool {
    let mut names = path.steps.iter().rev();
    let mut is_next = |name| names.next().is_some_and(|step| step.attribute.text == name);
    is_next("value") && is_next("uid")
}
