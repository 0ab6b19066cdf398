//! Detection of rules that can never fire, because a condition can never be true or two conditions
//! exclude each other. An uncertain condition counts as possible.

use super::expr::ast::{Expr, Operator, Variable};
use super::guide::{Condition, Guide};
use super::value::Value;
use aqlite_rm::order;
use std::collections::{HashMap, HashSet};

/// The reason why conditions can never all be true: the condition that cannot, and an explanation.
pub(crate) type Reason<'g> = (&'g Condition, String);

/// The maximum number of demands on one variable that are compared with each other. It bounds a
/// quadratic search.
const COMPARED: usize = 100;

/// The facts about a guide that are known before it runs.
pub(crate) struct Reach<'g> {
    /// Variables that a binding or an action can set. All others are always null.
    known: &'g HashSet<&'g str>,
    /// The rules that run earlier and can fire.
    earlier: HashSet<&'g str>,
}

impl<'g> Reach<'g> {
    pub fn new(known: &'g HashSet<&'g str>) -> Reach<'g> {
        Reach {
            known,
            earlier: HashSet::new(),
        }
    }

    /// Returns the rules that can never fire, by index in the guide, with the reason.
    pub fn unreachable(mut self, guide: &'g Guide) -> Vec<(usize, Reason<'g>)> {
        let mut order: Vec<usize> = (0..guide.rules.len()).collect();
        // In the order of evaluation, because a rule can only read whether earlier ones fired.
        order::sort_by_key(&mut order, |i| {
            guide.rules.get(*i).map(|r| std::cmp::Reverse(r.priority))
        });
        let mut found = Vec::new();
        for (i, rule) in order
            .into_iter()
            .filter_map(|i| Some((i, guide.rules.get(i)?)))
        {
            let reason = self.never(&rule.when);
            if reason.is_none() {
                self.earlier.insert(&rule.id);
            }
            found.extend(reason.map(|reason| (i, reason)));
        }
        found
    }

    /// Returns the reason why the conditions can never all be true, if there is one.
    pub fn never(&self, conditions: &'g [Condition]) -> Option<Reason<'g>> {
        let impossible = conditions
            .iter()
            // A condition that cannot be read is never true.
            .find(|c| !c.expr.as_ref().is_some_and(|e| self.can(e, true)));
        if let Some(condition) = impossible {
            return Some((condition, format!("`{}` is never true", condition.text)));
        }
        // Demands by variable and attribute, each with its condition.
        let mut known: HashMap<_, Vec<(usize, Demand<'g>)>> = HashMap::new();
        for (at, condition) in conditions.iter().enumerate() {
            let mut new = Vec::new();
            condition
                .expr
                .iter()
                .for_each(|e| collect_demands(e, &mut new));
            let clash = new.into_iter().any(|a| {
                let same = known
                    .entry((&a.variable.code, &a.variable.attribute))
                    .or_default();
                let clash = same
                    .iter()
                    // A pair within one condition is tested in both directions, because its order
                    // has no meaning.
                    .any(|(of, b)| a.excludes(b) || *of == at && b.excludes(&a));
                // The limit bounds the quadratic comparison. Further demands are taken as possible.
                if same.len() < COMPARED {
                    same.push((at, a));
                }
                clash
            });
            if clash {
                return Some((
                    condition,
                    format!("`{}` contradicts another of its conditions", condition.text),
                ));
            }
        }
        None
    }

    /// Returns whether a condition can evaluate to `wanted`.
    fn can(&self, expr: &Expr, wanted: bool) -> bool {
        use Operator::{And, Equal, Or, Unequal};
        match expr {
            Expr::Literal(value) => *value == Value::Boolean(wanted),
            Expr::Not(a) => self.can(a, !wanted),
            Expr::Binary(operator @ (And | Or), a, b) => {
                // `a && b` is true if both are, and false if one is. For `||` it is the reverse.
                let both = (*operator == And) == wanted;
                let (a, b) = (self.can(a, wanted), self.can(b, wanted));
                if both { a && b } else { a || b }
            }
            Expr::Binary(operator @ (Equal | Unequal), a, b) => {
                match (self.is_null(a), self.is_null(b)) {
                    (true, true) => (*operator == Equal) == wanted,
                    // A value that is always null differs from every literal.
                    (true, false) | (false, true) if is_value(a) || is_value(b) => {
                        (*operator == Unequal) == wanted
                    }
                    _ => true,
                }
            }
            // Order and arithmetic with null are unknown, which is neither true nor false.
            Expr::Binary(_, a, b) => !self.is_null(a) && !self.is_null(b),
            Expr::Fired(rule) => !wanted || self.earlier.contains(rule.code.as_str()),
            // Without values the result of a quantifier is unknown, so it may fail to be true.
            Expr::Any(_, a) | Expr::ForAll(a) => !wanted || self.can(a, true),
            other => !self.is_null(other),
        }
    }

    /// Returns whether the value of an expression is null for all data.
    fn is_null(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Literal(value) => value.is_null(),
            Expr::Variable(v) => {
                !self.known.contains(v.code.as_str())
                    // `count` and `sum` are 0 without values, and a term needs none.
                    && !matches!(v.attribute.as_deref(), Some("term" | "count" | "sum"))
            }
            Expr::Negate(a) => self.is_null(a),
            Expr::Call(_, arguments) => arguments.iter().any(|a| self.is_null(a)),
            Expr::Binary(operator, a, b)
                if operator.precedence() >= Operator::Plus.precedence() =>
            {
                self.is_null(a) || self.is_null(b)
            }
            _ => false,
        }
    }
}

fn is_value(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value) if !value.is_null())
}

/// The demand of a condition on one variable.
struct Demand<'g> {
    variable: &'g Variable,
    operator: Operator,
    value: &'g Value,
}

/// Collects the demands that must all be true if the condition is true. Splits conjunctions only,
/// because each of their operands must be true.
fn collect_demands<'g>(expr: &'g Expr, demands: &mut Vec<Demand<'g>>) {
    let Expr::Binary(operator, a, b) = expr else {
        return;
    };
    match (operator, a.as_ref(), b.as_ref()) {
        (Operator::And, a, b) => {
            collect_demands(a, demands);
            collect_demands(b, demands);
        }
        (operator, Expr::Variable(variable), Expr::Literal(value)) => demands.push(Demand {
            variable,
            operator: *operator,
            value,
        }),
        (operator, Expr::Literal(value), Expr::Variable(variable)) => demands.push(Demand {
            variable,
            operator: operator.mirrored(),
            value,
        }),
        _ => {}
    }
}

impl Demand<'_> {
    fn excludes(&self, other: &Demand<'_>) -> bool {
        use Operator::{Equal, Unequal};
        if self.variable.code != other.variable.code
            || self.variable.attribute != other.variable.attribute
        {
            return false;
        }
        match (self.operator, other.operator) {
            (Equal, Unequal) | (Unequal, Equal)
                if self.value.is_null() && other.value.is_null() =>
            {
                true
            }
            (Equal, operator) if self.value.is_null() => {
                operator != Unequal && !other.value.is_null()
            }
            (Equal, Equal) if !other.value.is_null() => self.differs(other),
            _ => self.is_beyond(other),
        }
    }

    /// Returns whether the demands require two values that cannot be equal.
    fn differs(&self, other: &Demand<'_>) -> bool {
        match (self.value, other.value) {
            (Value::Coded(_), Value::Coded(_)) | (Value::Ordinal(_), Value::Ordinal(_)) => {
                !self.value.same_code(other.value)
            }
            (Value::Text(a), Value::Text(b)) => a != b,
            (Value::Boolean(a), Value::Boolean(b)) => a != b,
            _ => self.is_beyond(other),
        }
    }

    /// Returns whether the demands require two disjoint ranges of numbers.
    fn is_beyond(&self, other: &Demand<'_>) -> bool {
        use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        let (Some(a), Some(b)) = (number(self.value), number(other.value)) else {
            return false;
        };
        // Quantities of different units have no order that is known here.
        if a.1 != b.1 {
            return false;
        }
        match (self.operator, other.operator) {
            (Less, Greater | GreaterOrEqual | Equal) | (LessOrEqual, Greater) => a.0 <= b.0,
            (LessOrEqual, GreaterOrEqual | Equal) => a.0 < b.0,
            (Equal, Equal) => a.0 != b.0,
            (Greater | GreaterOrEqual | Equal, Less | LessOrEqual) => other.is_beyond(self),
            (Equal, Greater) => a.0 <= b.0,
            (Equal, GreaterOrEqual) => a.0 < b.0,
            (Greater | GreaterOrEqual, Equal) => other.is_beyond(self),
            _ => false,
        }
    }
}

/// Returns a number and its unit.
fn number(value: &Value) -> Option<(f64, &str)> {
    match value {
        Value::Number(n) => Some((*n, "")),
        Value::Quantity(q) => Some((q.magnitude, &q.unit)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::parse;
    use aqlite_rm::diag::Span;

    fn can_be_true(conditions: &[&str]) -> bool {
        let condition = |text: &&str| Condition {
            text: (*text).to_owned(),
            span: Span::default(),
            expr: parse::condition(text).ok(),
        };
        let conditions: Vec<Condition> = conditions.iter().map(condition).collect();
        let known = HashSet::from(["gt1", "gt2"]);
        let mut reach = Reach::new(&known);
        reach.earlier.insert("gt5");
        reach.never(&conditions).is_none()
    }

    #[test]
    fn only_certain_problems_are_reported() {
        for possible in [
            &["$gt1 > 5", "$gt1 < 6"][..],
            &["$gt1 == 5 || $gt1 == 6"],
            &["$gt9 == null"],
            &["$gt9 != 5"],
            &["!fired($gt6)"],
            &["fired($gt5)"],
            &["$gt9.count == 0"],
            &["$gt1 == 5,kg", "$gt1 == 6,lb"],
            &["$gt1 != null && $gt1 <= 5", "$gt1 >= 5"],
            &["$gt1.unit == 'kg'", "$gt1.magnitude == 5"],
            &["$gt1 is_a local::gt8|x|"],
        ] {
            assert!(can_be_true(possible), "{possible:?}");
        }
        for impossible in [
            &["false"][..],
            &["$gt1 >"],
            &["$gt9 > 5"],
            &["$gt9 + 1 == 5"],
            &["$gt9 != null"],
            &["fired($gt6)"],
            &["fired($gt7)"],
            &["$gt1 > 5", "$gt1 < 5"],
            &["$gt1 == 5", "$gt1 >= 6"],
            &["$gt1 >= 6", "$gt1 == 5"],
            &["$gt1 == local::at1|a|", "$gt1 == local::at2|b|"],
            &["$gt1 == null && $gt1 == 5"],
            &["$gt1 == null", "$gt1 != null"],
            &["!($gt9 == null)"],
            &["$gt1 == 1|local::at1|a|", "$gt1 == 2|local::at2|b|"],
        ] {
            assert!(!can_be_true(impossible), "{impossible:?}");
        }
    }
}
