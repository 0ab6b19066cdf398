//! Values of rows and their comparison in three-valued logic: numbers, temporal values and texts.

use super::node::{Node, View};
use crate::answer::query::{CompareOp, Literal, Members};
use crate::document::Leaf;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::exact::Exact;
use aqlite_rm::time::{Temporal, TemporalKind};
use std::borrow::Cow;

/// The value of an expression for one row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// NULL: missing or unbound.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(Exact),
    /// A text.
    Text(Cow<'a, str>),
    /// The text of a stored date, time, date-time or duration.
    Temporal(TemporalKind, Cow<'a, str>),
    /// A whole DV_DATE, DV_TIME, DV_DATE_TIME or DV_DURATION, which is comparable with temporal
    /// values.
    TemporalObject(TemporalKind, Cow<'a, str>),
    /// A whole DV_TEXT. ORDER BY and functions use its text. Comparisons with it are never true.
    TextObject(&'a str),
    /// The text of a URL parameter, whose type follows from the other side of a comparison.
    Untyped(&'a str),
    /// Any other object.
    Object,
}

impl<'b> View<'b> {
    /// Returns the value of a node.
    pub fn value(self, node: Node) -> Value<'b> {
        if node.is_none() {
            return Value::Null;
        }
        let text = match self.leaf(node) {
            Some(Leaf::Number(number)) => return Value::Number(self.exact(node, number)),
            Some(Leaf::Boolean(flag)) => return Value::Boolean(flag),
            Some(Leaf::Text(text)) => Cow::Borrowed(text),
            Some(Leaf::Time(time)) => Cow::Owned(time.text()),
            None => return self.object_value(node),
        };
        // Only the attribute `value` of a temporal class is a temporal value; other texts of it are
        // not.
        let kind = match self.holder(node) {
            Some((class, Attr::VALUE)) => TemporalKind::for_class(class),
            _ => None,
        };
        match kind {
            Some(kind) => Value::Temporal(kind, text),
            None => Value::Text(text),
        }
    }

    fn object_value(self, node: Node) -> Value<'b> {
        let class = self.class(node);
        let number = |attr| {
            let number = self.single(node, attr).map(|number| self.value(number));
            number
                .filter(|number| matches!(number, Value::Number(_)))
                .unwrap_or(Value::Object)
        };
        match class {
            Cls::DV_QUANTITY | Cls::DV_COUNT => number(Attr::MAGNITUDE),
            Cls::DV_ORDINAL | Cls::DV_SCALE => number(Attr::VALUE),
            Cls::DV_PROPORTION => match (number(Attr::NUMERATOR), number(Attr::DENOMINATOR)) {
                // A proportion with denominator 0 cannot be compared.
                (Value::Number(n), Value::Number(d)) if d.double() != 0.0 => {
                    Value::Number(n.quotient(d))
                }
                _ => Value::Object,
            },
            _ if class.is_a(Cls::DV_TEXT) => self
                .text_at(node, Attr::VALUE)
                .map_or(Value::Object, Value::TextObject),
            _ => {
                let value = self.single(node, Attr::VALUE);
                let text = value.and_then(|value| self.leaf(value)?.as_text());
                match (TemporalKind::for_class(class), text) {
                    (Some(kind), Some(text)) => Value::TemporalObject(kind, text),
                    _ => Value::Object,
                }
            }
        }
    }
}

impl<'a> Value<'a> {
    /// Creates the value of a literal.
    pub fn of_literal(literal: &'a Literal) -> Value<'a> {
        match literal {
            Literal::Null => Value::Null,
            Literal::Boolean(flag) => Value::Boolean(*flag),
            Literal::Number(text) => Exact::parse(text).map_or(Value::Null, Value::Number),
            Literal::Text(text) => Value::Text((&**text).into()),
            Literal::Untyped(text) => Value::Untyped(text),
        }
    }

    /// Returns the text for LIKE and functions of texts: a date as it is written, and never a
    /// number.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Temporal(_, text) | Value::TemporalObject(_, text) => {
                Some(text)
            }
            Value::TextObject(text) | Value::Untyped(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the temporal value: of a stored value by its own kind, of a text by the kind of the
    /// other side of the comparison, or else by its content.
    fn key(&self, other: &Value<'_>) -> Option<Temporal> {
        match (self, other) {
            (Value::Temporal(kind, text) | Value::TemporalObject(kind, text), _) => {
                Temporal::parse(*kind, text)
            }
            (_, Value::Temporal(kind, _) | Value::TemporalObject(kind, _)) => {
                let text = self.as_text()?;
                Temporal::parse_literal(*kind, text).or_else(|| Temporal::classify(text))
            }
            _ => None,
        }
    }

    /// Returns the number for arithmetic. A whole duration is converted to seconds.
    pub fn as_number(&self) -> Option<Exact> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Untyped(text) => Exact::parse(text),
            Value::TemporalObject(TemporalKind::Duration, text) => {
                let duration = Temporal::parse(TemporalKind::Duration, text)?;
                Some(duration.magnitude().into())
            }
            _ => None,
        }
    }
}

/// Returns whether a value equals a member. The outcome is that of comparing it with each member,
/// but found by lookups.
pub(super) fn member(value: &Value<'_>, members: &Members) -> Option<bool> {
    match value {
        Value::Number(number) => members.has_number(*number),
        Value::Boolean(flag) => members.has_boolean(*flag),
        Value::Text(text) => members.has_text(text),
        Value::Temporal(kind, text) => members.has_temporal(*kind, text),
        Value::TemporalObject(kind, text) => members.has_temporal_object(*kind, text),
        // Such a text has the type of the member that it is compared with.
        Value::Untyped(_) => one_by_one(value, members),
        Value::Null | Value::Object | Value::TextObject(_) => members.is_empty().then_some(false),
    }
}

/// Compares a value with each member. Lookups must have the same outcome.
fn one_by_one(value: &Value<'_>, members: &Members) -> Option<bool> {
    let mut found = Some(false);
    for literal in members.literals() {
        match compare(value, CompareOp::Eq, &Value::of_literal(literal)) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => found = None,
        }
    }
    found
}

/// The bytes of a temporal value whose parsing is included in the base cost of a comparison.
const CHEAP_TEMPORAL_BYTES: usize = 64;

/// The cost of parsing a byte of a temporal value, relative to comparing a byte.
const COST_OF_TEMPORAL_BYTE: usize = 32;

/// Returns an upper bound of the bytes that a comparison of two values reads: the length of the
/// shorter text, or 0 if different lengths decide. Long temporal texts count more.
pub(super) fn compared_bytes(left: &Value<'_>, op: CompareOp, right: &Value<'_>) -> usize {
    let (Some(a), Some(b)) = (left.as_text(), right.as_text()) else {
        return 0;
    };
    let is_temporal =
        |value: &Value<'_>| matches!(value, Value::Temporal(..) | Value::TemporalObject(..));
    if is_temporal(left) || is_temporal(right) {
        let read = |text: &str| {
            text.len()
                .saturating_sub(CHEAP_TEMPORAL_BYTES)
                .saturating_mul(COST_OF_TEMPORAL_BYTE)
        };
        read(a).saturating_add(read(b))
    } else if matches!(op, CompareOp::Eq | CompareOp::Ne) && a.len() != b.len() {
        0
    } else {
        a.len().min(b.len())
    }
}

/// Compares two values; `None` is unknown.
pub(super) fn compare(left: &Value<'_>, op: CompareOp, right: &Value<'_>) -> Option<bool> {
    let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
    match (left, right) {
        (Value::Null | Value::Object | Value::TextObject(_), _)
        | (_, Value::Null | Value::Object | Value::TextObject(_)) => None,
        (Value::Untyped(text), other) => compare(&typed(text, other), op, other),
        (other, Value::Untyped(text)) => compare(other, op, &typed(text, other)),
        (Value::Number(a), Value::Number(b)) => a.partial_cmp(b).map(|order| op.holds(order)),
        (Value::Boolean(a), Value::Boolean(b)) if equality => Some(op.holds(a.cmp(b))),
        // Texts of different lengths differ, and no byte of them is read.
        (Value::Text(a), Value::Text(b)) if equality && a.len() != b.len() => {
            Some(op == CompareOp::Ne)
        }
        (Value::Text(a), Value::Text(b)) => Some(op.holds(a.as_ref().cmp(b.as_ref()))),
        _ => compare_temporal(left, op, right),
    }
}

/// Compares temporal values. If a text is no temporal value of the same axis, texts are compared as
/// strings, and the comparison with a whole object is unknown.
fn compare_temporal(left: &Value<'_>, op: CompareOp, right: &Value<'_>) -> Option<bool> {
    let (a, b) = (left.as_text()?, right.as_text()?);
    let (x, y) = (left.key(right), right.key(left));
    match (x, y) {
        (Some(x), Some(y)) => compare_times(x, op, y),
        _ if matches!(left, Value::TemporalObject(..))
            || matches!(right, Value::TemporalObject(..)) =>
        {
            None
        }
        _ => Some(op.holds(a.cmp(b))),
    }
}

/// Compares two temporal values. The outcome is unknown for values of two axes, such as a date and
/// a duration.
pub(super) fn compare_times(left: Temporal, op: CompareOp, right: Temporal) -> Option<bool> {
    match op {
        CompareOp::Eq => left.same(right),
        CompareOp::Ne => left.same(right).map(|same| !same),
        _ => left.floor_order(right).map(|order| op.holds(order)),
    }
}

/// Converts the text of a URL parameter to the type of the other side of the comparison.
fn typed<'a>(text: &'a str, other: &Value<'_>) -> Value<'a> {
    match other {
        Value::Number(_) => Exact::parse(text.trim()).map_or(Value::Null, Value::Number),
        Value::Boolean(_) => text.trim().parse().map_or(Value::Null, Value::Boolean),
        _ => Value::Text(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::query::List;
    use aqlite_rm::arbitrary::Generator;

    /// Returns literals that cover all combinations: equal by value and different as text, on other
    /// axes, of other types.
    fn literals() -> Vec<Literal> {
        let text = |t: &str| Literal::Text(t.into());
        let untyped = |t: &str| Literal::Untyped(t.into());
        let texts = [
            "a",
            "7",
            "7.0",
            "true",
            "2019-05",
            "2019-05-01",
            "20190501",
            "2019-05-01T10:00:00Z",
            "2019-05-01T12:00:00+02:00",
            "10:00:00",
        ];
        let more = ["10:00:00.000", "P1D", "PT24H", "P1M", "", "-0", "2019"];
        let typed = texts
            .iter()
            .chain(&more)
            .flat_map(|t| [text(t), untyped(t)]);
        let others = ["7", "7.00", "0", "-0", "86400", "9007199254740993"]
            .map(|n| Literal::Number(n.into()));
        typed
            .chain(others)
            .chain([
                Literal::Null,
                Literal::Boolean(true),
                Literal::Boolean(false),
            ])
            .collect()
    }

    fn values() -> Vec<Value<'static>> {
        use TemporalKind::{Date, DateTime, Duration, Time};
        let texts = [
            "a",
            "7",
            "true",
            "2019-05",
            "2019-05-01",
            "2019-05-01T10:00:00Z",
            "10:00:00",
            "P1D",
            "PT24H",
            "",
            "x",
        ];
        let of = |text: &'static str| {
            let kinds = [Date, Time, DateTime, Duration];
            let temporal = kinds.into_iter().flat_map(move |k| {
                [
                    Value::Temporal(k, text.into()),
                    Value::TemporalObject(k, text.into()),
                ]
            });
            temporal.chain([
                Value::Text(text.into()),
                Value::TextObject(text),
                Value::Untyped(text),
            ])
        };
        let numbers = [0.0, -0.0, 7.0, 86400.0, f64::NAN]
            .map(Exact::from)
            .into_iter()
            .chain(["9007199254740992", "9007199254740993"].map(|n| Exact::parse(n).unwrap()))
            .map(Value::Number);
        texts
            .into_iter()
            .flat_map(of)
            .chain(numbers)
            .chain([
                Value::Null,
                Value::Object,
                Value::Boolean(true),
                Value::Boolean(false),
            ])
            .collect()
    }

    #[test]
    fn lookups_agree_with_comparisons_with_each_member() {
        let (literals, values) = (literals(), values());
        for seed in 0..2_000 {
            let mut random = Generator::new(seed);
            let count = random.next(5);
            let list = (0..count)
                .filter_map(|_| literals.get(random.next(literals.len())))
                .cloned()
                .collect::<Vec<Literal>>();
            let cut = random.next(5);
            let (first, second): (Vec<_>, Vec<_>) = (0..).zip(list).partition(|(i, _)| *i < cut);
            let list =
                |list: Vec<(usize, Literal)>| List::new(list.into_iter().map(|(_, l)| l).collect());
            let members = Members::new(vec![list(first), list(second)]);
            for value in &values {
                assert_eq!(
                    member(value, &members),
                    one_by_one(value, &members),
                    "{value:?} {members:?}"
                );
            }
        }
    }
}
