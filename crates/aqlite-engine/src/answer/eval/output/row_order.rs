//! The order of rows: their default order, and their sort keys.

use crate::answer::eval::condition::ConditionEvaluator;
use crate::answer::eval::node::Node;
use crate::answer::eval::sort_key::{SortKey, order_key};
use crate::answer::eval::work::CELL;

/// The default order of a row. Rows are compared by the fields in turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(in crate::answer::eval) struct RowOrder {
    /// The position of the row among all rows of the run. In a join, the index of the first variable
    /// that is bound to a document.
    pub position: u64,
    /// The order of rows with the same position; 0 if rows arrive in order. In a join, the ordinal
    /// of that document.
    pub within: u64,
    /// The number of the row in order of arrival; 0 if the other fields decide.
    pub arrival: u64,
}

/// The default order of a row that joins documents. Rows are compared by the fields in turn.
#[derive(Clone, Copy)]
pub(in crate::answer::eval) struct JoinOrder {
    /// The index of the first variable that is bound to a document; [`u64::MAX`] if none is.
    pub variable: u64,
    /// The ordinal of this document in the commit order of the repository.
    pub ordinal: u64,
}

impl RowOrder {
    /// Returns the order of the row if its positions follow `positions` others.
    pub fn behind(self, positions: u64) -> RowOrder {
        let position = self.position.saturating_add(positions);
        RowOrder { position, ..self }
    }
}

/// Makes the keys of a row for ORDER BY. `held_bytes` is the number of bytes that the output holds.
pub(super) fn order_keys<'p: 'b, 'b>(
    evaluator: ConditionEvaluator<'p, 'b>,
    row: &[Node],
    mut held_bytes: usize,
) -> impl Iterator<Item = SortKey> {
    let view = evaluator.view;
    evaluator.plan.query.order.iter().map(move |by| {
        // Every row must have all its keys, so NULL replaces the keys that are not made.
        if view.is_over() {
            return SortKey::Null;
        }
        let key = order_key(evaluator, &by.key, row);
        held_bytes += key.text_bytes();
        match view.allows_bytes(held_bytes) {
            true => key,
            false => SortKey::Null,
        }
    })
}

/// Returns the units of work of sorting rows by `keys` keys. Most comparisons end at the first key,
/// but all may be equal.
pub(in crate::answer::eval) fn units_of_sort(rows: usize, keys: usize) -> u64 {
    let comparisons = rows.saturating_mul(rows.max(2).ilog2() as usize);
    comparisons.saturating_mul(keys.max(1)) as u64 * (CELL / 8)
}
