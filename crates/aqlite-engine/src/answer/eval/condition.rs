//! Evaluation of WHERE: three-valued conditions over one row, and the single-row functions.

use super::function;
use super::node::{Node, View};
use super::predicate::PredicateEvaluator;
use super::value::{Value, compare, compared_bytes, member};
use super::work::{STEP, TEST, Work, of_texts};
use crate::answer::plan::Plan;
use crate::answer::query::{CompareOp, Condition, Expr, LikeItem, LikePattern, Literal, Predicate};

/// An evaluator of expressions and conditions over the rows of one batch.
#[derive(Clone, Copy)]
pub(super) struct ConditionEvaluator<'p, 'b> {
    pub plan: &'p Plan,
    pub view: View<'b>,
    /// The time of the run in ISO 8601 with a time zone. The clock is read once.
    pub now: &'p str,
}

impl<'p: 'b, 'b> ConditionEvaluator<'p, 'b> {
    /// Returns whether WHERE keeps the row.
    pub fn keeps(self, row: &[Node]) -> bool {
        self.view.count(STEP);
        self.plan
            .query
            .condition
            .as_ref()
            .is_none_or(|c| self.truth(c, row) == Some(true))
    }

    /// Returns the truth of a condition; `None` is unknown.
    pub fn truth(self, condition: &'p Condition, row: &[Node]) -> Option<bool> {
        if !matches!(
            condition,
            Condition::And(_) | Condition::Or(_) | Condition::Not(_)
        ) {
            self.view.count(TEST);
        }
        match condition {
            Condition::And(terms) => self.all(terms, row, false),
            Condition::Or(terms) => self.all(terms, row, true),
            Condition::Not(inner) => self.truth(inner, row).map(|t| !t),
            Condition::Compare(left, op, right) => {
                let (left, right) = (self.value(left, row), self.value(right, row));
                self.view
                    .count(of_texts(compared_bytes(&left, *op, &right)));
                compare(&left, *op, &right)
            }
            Condition::Like(left, pattern) => self.value(left, row).as_text().map(|text| {
                // LIKE may search the whole text for a part of the pattern.
                self.view.count(2 * of_texts(text.len()));
                is_like(text, pattern, self.view.work())
            }),
            Condition::Matches(left, members) => {
                let value = self.value(left, row);
                let bytes = compared_bytes(&value, CompareOp::Eq, &value);
                self.view
                    .count((TEST + of_texts(bytes)).saturating_mul(members.lists() as u64));
                member(&value, members)
            }
            Condition::Exists(index) => Some(self.exists(*index, row)),
            Condition::Constant(truth) => *truth,
        }
    }

    /// Returns the truth of AND (`dominant` is false) or OR (`dominant` is true).
    ///
    /// A term with the dominant value decides, and the terms behind it are not evaluated. An unknown
    /// term does not decide: a later one may have the dominant value.
    fn all(self, terms: &'p [Condition], row: &[Node], dominant: bool) -> Option<bool> {
        let mut result = Some(!dominant);
        let spent = || self.view.work().map_or(0, Work::spent);
        let before = spent();
        for term in terms {
            let units = spent().saturating_sub(before);
            if self.view.work().is_some_and(|work| !work.allows_row(units)) {
                return None;
            }
            match self.truth(term, row) {
                Some(truth) if truth == dominant => return Some(dominant),
                Some(_) => {}
                None => result = None,
            }
        }
        result
    }

    /// Returns whether a row has data at a path of [`Query::exists`], given by the index of the
    /// path.
    ///
    /// [`Query::exists`]: crate::answer::query::Query::exists
    fn exists(self, index: usize, row: &[Node]) -> bool {
        let plan = self.plan.exists.get(index);
        let Some((path, plan)) = self.plan.query.exists.get(index).zip(plan) else {
            self.view.note_broken("an EXISTS condition has no plan");
            return false;
        };
        let node = |column: &Option<usize>| row.get((*column)?).copied().filter(|n| !n.is_none());
        let last = |(level, column)| Some((level, node(column)?));
        let Some((level, base)) = plan.columns.iter().enumerate().rev().find_map(last) else {
            return false;
        };
        let predicates = PredicateEvaluator {
            plan: self.plan,
            view: self.view,
        };
        let holds = |predicate: &Option<Predicate>, column| {
            let predicate = predicate.as_ref();
            predicate.is_none_or(|p| node(column).is_some_and(|node| predicates.holds(p, node)))
        };
        // The first column is that of the variable, and each step has the next one.
        let (bound, rest) = path.steps.split_at(level.min(path.steps.len()));
        let mut columns = plan.columns.iter();
        columns
            .next()
            .is_some_and(|column| holds(&path.root, column))
            && (bound.iter().zip(columns)).all(|(step, column)| holds(&step.predicate, column))
            && predicates.reaches(base, rest, &mut |_| true)
    }

    /// Returns the value of an expression in a row.
    pub fn value(self, expr: &'p Expr, row: &[Node]) -> Value<'b> {
        match expr {
            Expr::Path(path) => self.view.value(self.view.node_at(row, *path)),
            Expr::Literal(literal) => Value::of_literal(literal),
            Expr::Call(function, arguments) => {
                let argument = |(place, argument)| match function::takes_text(*function, place) {
                    true => self.text_argument(argument, row),
                    false => self.value(argument, row),
                };
                let arguments: Vec<Value<'b>> =
                    arguments.iter().enumerate().map(argument).collect();
                let bytes: usize = arguments
                    .iter()
                    .filter_map(Value::as_text)
                    .map(str::len)
                    .sum();
                // The result of CONCAT is as long as all its arguments: its work is counted before it
                // is made.
                if self.view.work().is_some_and(|work| {
                    let units = function::units(*function, arguments.len(), bytes);
                    !work.add_comparison(units, &mut 0)
                }) {
                    return Value::Null;
                }
                function::call(*function, &arguments, self.now)
            }
        }
    }
}

impl<'p: 'b, 'b> ConditionEvaluator<'p, 'b> {
    /// Returns the value of a text argument. A number is converted to its digits as stored or
    /// written.
    fn text_argument(self, expr: &'p Expr, row: &[Node]) -> Value<'b> {
        let digits = match expr {
            Expr::Path(path) => {
                let node = self.view.node_at(row, *path);
                // A missing value has no digits: it is NULL.
                (!node.is_none()).then(|| self.view.digits(node)).flatten()
            }
            Expr::Literal(Literal::Number(token)) => Some(token.to_string()),
            Expr::Literal(_) | Expr::Call(..) => None,
        };
        match digits {
            Some(digits) => Value::Text(digits.into()),
            None => self.value(expr, row),
        }
    }
}

/// Returns whether a whole text matches a LIKE pattern.
///
/// The matcher backtracks to the last `*` only, so it is never exponential. It searches for the
/// text behind a `*`, so a pattern without `?` costs about the length of the text. Other work is
/// counted, and the match is false when the budget is spent.
pub(super) fn is_like(text: &str, pattern: &LikePattern, work: Option<&Work>) -> bool {
    if text.len() < pattern.min_bytes() {
        return false;
    }
    let (mut rest, mut at) = (text, 0);
    let mut back: Option<(&str, usize)> = None;
    let mut units = 0;
    loop {
        let step = match pattern.items().get(at) {
            Some(LikeItem::Any) => {
                back = Some((rest, at + 1));
                Some(rest)
            }
            Some(LikeItem::One) => {
                let mut characters = rest.chars();
                characters.next().map(|_| characters.as_str())
            }
            Some(LikeItem::Text(piece)) => rest.strip_prefix(piece.as_str()),
            None if rest.is_empty() => return true,
            None => None,
        };
        match (step, back) {
            (Some(tail), _) => (rest, at) = (tail, at + 1),
            (None, Some((from, next))) => {
                let next_start = match pattern.items().get(next) {
                    Some(LikeItem::Text(piece)) => after_first(from)
                        .and_then(|from| from.find(piece.as_str()).and_then(|at| from.get(at..))),
                    // Everything matches behind the last `*`.
                    None => Some(""),
                    _ => after_first(from),
                };
                let Some(start) = next_start else {
                    return false;
                };
                let passed = (from.len() - start.len()) as u64 / 8;
                back = Some((start, next));
                (rest, at) = (start, next);
                if work.is_some_and(|work| !work.add_comparison(1 + passed, &mut units)) {
                    return false;
                }
            }
            (None, None) => return false,
        }
        units += 1;
    }
}

/// Returns a text without its first character; `None` for an empty text.
fn after_first(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    characters.next().map(|_| characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_matches_whole_texts() {
        let text = |t: &str| LikeItem::Text(t.to_owned());
        let pattern = LikePattern::new(vec![
            text("2019-0"),
            LikeItem::One,
            text("-"),
            LikeItem::Any,
            text("Z"),
        ]);
        assert!(is_like("2019-05-01T10:00:00Z", &pattern, None));
        assert!(!is_like("2019-05-01T10:00:00", &pattern, None));
        assert!(is_like("", &LikePattern::new(vec![LikeItem::Any]), None));
        assert!(is_like(
            "aXbXc",
            &LikePattern::new(vec![text("a"), LikeItem::Any, text("X"), LikeItem::One]),
            None
        ));
    }
}
