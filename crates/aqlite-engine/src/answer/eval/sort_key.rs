//! Sort keys of ORDER BY, and the total order of values.

use super::block::rank_of;
use super::condition::ConditionEvaluator;
use super::node::Node;
use super::value::Value;
use crate::answer::query::{ColumnValue, Expr, OrderBy, OrderKey};
use aqlite_rm::exact::Exact;
use aqlite_rm::time::{Axis, Temporal, TemporalKind};
use std::borrow::Cow;
use std::cmp::Ordering;

/// The sort key of a value. The order of types is: numbers, durations by length, texts together
/// with dates and times, booleans, objects, NULL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SortKey {
    Number(Exact),
    Temporal(Temporal),
    Text(String),
    Boolean(bool),
    /// An object without a value to sort by. The default order decides between two of them.
    Object,
    Null,
}

/// Returns the sort key of a row by one criterion of ORDER BY.
///
/// The key of an aggregate is NULL until its group is complete.
pub(super) fn order_key<'p: 'b, 'b>(
    evaluator: ConditionEvaluator<'p, 'b>,
    key: &'p OrderBy,
    row: &[Node],
) -> SortKey {
    let view = evaluator.view;
    let of_path = |path: usize| {
        let node = view.node_at(row, path);
        // An exact point in time is read from its column, without parsing the text.
        match view.batch.point(node.fragment, node.item) {
            Some(micros) => SortKey::Temporal(Temporal::from_micros(micros)),
            None => sort_key(&view.value(node)),
        }
    };
    let column = match key {
        OrderBy::Path(path) => return of_path(*path),
        OrderBy::Column(column) => evaluator.plan.query.select.get(*column),
    };
    match column.map(|column| &column.value) {
        Some(ColumnValue::Expr(Expr::Path(path))) => of_path(*path),
        Some(ColumnValue::Expr(expr)) => sort_key(&evaluator.value(expr, row)),
        Some(ColumnValue::Aggregate(_)) => SortKey::Null,
        None => {
            view.note_broken("ORDER BY names a column that the query does not have");
            SortKey::Null
        }
    }
}

pub(super) fn sort_key(value: &Value<'_>) -> SortKey {
    match value {
        Value::Null => SortKey::Null,
        Value::Boolean(flag) => SortKey::Boolean(*flag),
        Value::Number(number) => SortKey::Number(*number),
        // A text that is a duration sorts as text (P30M before P40D); a whole DV_DURATION sorts by
        // its length.
        Value::Temporal(TemporalKind::Duration, text) => SortKey::Text(text.to_string()),
        Value::Temporal(kind, text) | Value::TemporalObject(kind, text) => {
            temporal_key(*kind, text)
        }
        Value::Text(text) => SortKey::Text(text.to_string()),
        Value::TextObject(text) | Value::Untyped(text) => SortKey::Text((*text).to_owned()),
        Value::Object => SortKey::Object,
    }
}

fn temporal_key(kind: TemporalKind, text: &str) -> SortKey {
    match Temporal::parse(kind, text) {
        Some(temporal) => SortKey::Temporal(temporal),
        None => SortKey::Text(text.to_owned()),
    }
}

impl SortKey {
    /// Returns the bytes of the text of the key.
    pub(super) fn text_bytes(&self) -> usize {
        if let SortKey::Text(text) = self {
            text.len()
        } else {
            0
        }
    }

    fn rank(&self) -> u8 {
        match self {
            SortKey::Number(_) => 0,
            SortKey::Temporal(temporal) if temporal.axis() == Axis::Length => 1,
            SortKey::Text(_) | SortKey::Temporal(_) => 2,
            SortKey::Boolean(_) => 3,
            SortKey::Object => 4,
            SortKey::Null => 5,
        }
    }

    /// Returns a number whose order is compatible with that of the keys: the rank in the highest
    /// byte, then a prefix of the value. Keys with equal numbers must be compared in full.
    pub(super) fn lead(&self) -> u128 {
        let value = match self {
            SortKey::Number(number) => u128::from(in_order(rank_of(number.double()))),
            SortKey::Temporal(temporal) if temporal.axis() == Axis::Length => {
                u128::from(in_order(temporal.earliest))
            }
            // The 15 bytes end before the seconds of a date-time, but reach into the fraction of a
            // time of day.
            SortKey::Temporal(temporal) if temporal.axis() == Axis::Clock => {
                beginning(temporal.sort_text().as_bytes())
            }
            SortKey::Temporal(temporal) => beginning(&temporal.sort_prefix()),
            SortKey::Text(text) => beginning(text.as_bytes()),
            SortKey::Boolean(flag) => u128::from(*flag),
            SortKey::Object | SortKey::Null => 0,
        };
        // The rank takes the highest byte: a value has at most 15 bytes.
        u128::from(self.rank()) << 120 | value
    }

    /// Returns the text that a key sorts by among texts, and the rank of its type among keys with
    /// equal texts: texts, dates, times of day.
    fn place(&self) -> (Cow<'_, str>, u8) {
        match self {
            SortKey::Text(text) => (Cow::Borrowed(text), 0),
            SortKey::Temporal(temporal) => (
                Cow::Owned(temporal.sort_text()),
                if temporal.axis() == Axis::Calendar {
                    1
                } else {
                    2
                },
            ),
            _ => (Cow::Borrowed(""), 0),
        }
    }
}

/// Returns the first 15 bytes of a text as a number in the order of texts.
fn beginning(text: &[u8]) -> u128 {
    // The first byte stays 0, because `lead` puts the rank there.
    let mut bytes = [0; 16];
    bytes
        .iter_mut()
        .skip(1)
        .zip(text)
        .for_each(|(to, byte)| *to = *byte);
    u128::from_be_bytes(bytes)
}

/// Maps a signed number to an unsigned one in the same order.
fn in_order(number: i64) -> u64 {
    // Flipping the sign bit moves negative numbers below the others.
    (number as u64) ^ (1 << 63)
}

/// Compares two keys in a total order; NULL is the greatest.
///
/// Dates and times with the same axis are compared as times. With other texts they are compared by
/// [`Temporal::sort_text`], which preserves the order of time. So the order over texts, dates and
/// times is transitive.
pub(super) fn compare_keys(a: &SortKey, b: &SortKey) -> Ordering {
    match (a, b) {
        (SortKey::Number(a), SortKey::Number(b)) => a.total_cmp(*b),
        (SortKey::Temporal(a), SortKey::Temporal(b)) if a.axis() == b.axis() => {
            a.total_order(*b).unwrap_or(Ordering::Equal)
        }
        (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
        (SortKey::Boolean(a), SortKey::Boolean(b)) => a.cmp(b),
        _ => a
            .rank()
            .cmp(&b.rank())
            .then_with(|| a.place().cmp(&b.place())),
    }
}

/// Compares two rows by their keys of ORDER BY.
pub(super) fn compare_rows(a: &[SortKey], b: &[SortKey], order: &[OrderKey]) -> Ordering {
    let mut keys = order.iter().zip(a.iter().zip(b)).map(|(key, (a, b))| {
        let ascending = compare_keys(a, b);
        if key.descending {
            ascending.reverse()
        } else {
            ascending
        }
    });
    keys.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}
