//! Pairs of conditions on one path that exclude each other, and pairs that cover every value.
//!
//! Equal paths have one value in each row, so two conditions on a path concern the same value.

use super::{ALWAYS, EXCLUSIVE, Linter, contrary, value_of};
use crate::ast;
use crate::print;
use crate::query::{CompareOp, Literal};
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::number;
use aqlite_rm::time::Temporal;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The most conditions on one path that are compared with each other.
const COMPARED: usize = 64;

/// A condition on a path.
struct Bound<'a> {
    condition: &'a ast::Condition,
    op: CompareOp,
    /// The value; several for `matches`, whose operator is `=`.
    values: Vec<Literal>,
    /// From the path to the end of the value.
    span: Span,
    /// The right side of a comparison.
    right: Option<Span>,
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
            let message = "this alternative or an earlier one is true for every value";
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
        let mut by_path: BTreeMap<String, Vec<&'a ast::Condition>> = BTreeMap::new();
        for condition in all {
            if let Some((path, _)) = self.bound(condition) {
                by_path.entry(path).or_default().push(condition);
            }
        }
        let mut found = Vec::new();
        for group in by_path.into_values() {
            let bounds = || group.iter().take(COMPARED).filter_map(|c| self.bound(c));
            for (i, (_, second)) in bounds().enumerate() {
                // One partner is enough to see the problem.
                if let Some((_, first)) =
                    bounds().take(i).find(|(_, first)| is_pair(first, &second))
                {
                    found.push((first, second));
                }
            }
        }
        found
    }

    /// Returns the path of a condition, and the values that the condition compares it with.
    fn bound(&self, condition: &'a ast::Condition) -> Option<(String, Bound<'a>)> {
        let (path, op, values, end) = match condition {
            ast::Condition::Compare(compare) => {
                let ast::Expr::Path(path) = &compare.left else {
                    return None;
                };
                let value = self.literal(&compare.right)?;
                (
                    path,
                    compare.op,
                    vec![value],
                    print::expr_span(&compare.right),
                )
            }
            ast::Condition::Matches(path, ast::MatchesOperand::List(items)) => {
                let literal = |item: &ast::MatchesItem| match item {
                    ast::MatchesItem::Literal(literal) => Some(literal.clone()),
                    _ => None,
                };
                let literals: Vec<ast::Literal> =
                    items.iter().map(literal).collect::<Option<_>>()?;
                let end = literals.last()?.at.0;
                let values = literals.iter().take(COMPARED + 1).map(value_of).collect();
                (
                    path,
                    CompareOp::Eq,
                    values,
                    Span::new(end.start, end.end + 1),
                )
            }
            _ => return None,
        };
        // A version uid also equals its short forms.
        let mut names = path
            .steps
            .iter()
            .rev()
            .map(|step| step.attribute.text.as_str());
        let is_uid = names.next() == Some("value") && names.next() == Some("uid");
        let is_usual = |v: &Literal| !matches!(v, Literal::Null | Literal::Untyped(_));
        let is_read = !is_uid && values.len() <= COMPARED && values.iter().all(is_usual);
        let right = matches!(condition, ast::Condition::Compare(_)).then_some(end);
        is_read.then(|| {
            let bound = Bound {
                condition,
                op,
                values,
                span: Span::new(path.span().start, end.end),
                right,
            };
            (print::path(path), bound)
        })
    }

    /// Adds the probable meaning of a pair.
    fn with_other_word(
        &self,
        found: Diagnostic,
        first: &Bound<'_>,
        second: &Bound<'_>,
        repair: Repair,
    ) -> Diagnostic {
        let text = |span: Span| self.text.get(span.start..span.end);
        let between = Span::new(first.span.end, second.span.start);
        let words = text(between).map(str::trim);
        let other = match (repair, words, first.right, second.right) {
            (Repair::Exclusive, Some(word), Some(a), Some(b)) if is_word(word, "AND") => {
                let (left, middle) = (Span::new(first.span.start, a.start), text(between));
                let parts = match (first.op, second.op) {
                    (CompareOp::Eq, CompareOp::Eq) => {
                        let path = Span::new(first.span.start, a.start);
                        let path = text(path).and_then(|path| path.trim_end().strip_suffix('='));
                        let list = text(a).zip(text(b));
                        path.zip(list).map(|(path, (a, b))| {
                            format!("{} matches {{{a}, {b}}}", path.trim_end())
                        })
                    }
                    (CompareOp::Eq | CompareOp::Ne, _) | (_, CompareOp::Eq | CompareOp::Ne) => None,
                    _ => {
                        let right = Span::new(second.span.start, b.start);
                        let all = [text(left), text(b), middle, text(right), text(a)];
                        all.into_iter()
                            .collect::<Option<Vec<&str>>>()
                            .map(|all| all.concat())
                    }
                };
                parts
            }
            (Repair::Covering, Some(word), _, _) if is_word(word, "OR") => {
                let all = [text(first.span), Some(" AND "), text(second.span)];
                all.into_iter()
                    .collect::<Option<Vec<&str>>>()
                    .map(|all| all.concat())
            }
            _ => None,
        };
        match other {
            Some(other) => {
                let help = format!("did you mean `{other}`?");
                found
                    .with_help(help)
                    .with_fix(first.span.to(second.span), other)
            }
            None => found.with_help("remove one of them"),
        }
    }
}

#[derive(Clone, Copy)]
enum Repair {
    Exclusive,
    Covering,
}

fn is_word(found: &str, word: &str) -> bool {
    found.eq_ignore_ascii_case(word)
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
        (Literal::Number(a), Literal::Number(b)) => {
            number::parse(a)?.partial_cmp(&number::parse(b)?)
        }
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
        let order = order_of(value, other)?;
        Some(match bound.op {
            CompareOp::Eq => order.is_eq(),
            CompareOp::Ne => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::Le => order.is_le(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::Ge => order.is_ge(),
        })
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
