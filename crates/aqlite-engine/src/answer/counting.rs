//! The query that counts the rows of another query.
//!
//! A query with a large OFFSET leaves out many rows. If all rows of a batch are before the window,
//! they are only counted and never made.

use super::query::{Aggregate, Column, ColumnValue, IdentifiedPath, PathUse, Query, Window};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;

/// A query that counts rows, with the paths that it reads.
pub(super) struct CountingQuery {
    pub query: Query,
    /// Indexes into [`Query::paths`], ascending: the paths of WHERE, and the paths with which a
    /// document can have several rows.
    pub paths: Vec<usize>,
}

impl CountingQuery {
    /// Creates the query that counts the rows of `query`.
    ///
    /// Returns `None` if `query` leaves out no rows, or if its rows are sorted, grouped or
    /// distinct.
    pub fn of(query: &Query) -> Option<CountingQuery> {
        let leaves_out = matches!(query.window, Some(Window::First { offset: 1.., .. }));
        if !leaves_out || !query.keeps_found_order() {
            return None;
        }
        let rows = Column {
            name: String::from("rows"),
            path: None,
            value: ColumnValue::Aggregate(Aggregate::CountRows),
        };
        Some(CountingQuery {
            paths: counted_paths(query),
            query: Query {
                select: vec![rows],
                window: None,
                ..query.clone()
            },
        })
    }
}

/// Returns the paths that decide the number of rows.
fn counted_paths(query: &Query) -> Vec<usize> {
    let repeated = (0..).zip(&query.paths).filter(|(_, path)| may_repeat(path));
    let mut counted: Vec<usize> = repeated.map(|(index, _)| index).collect();
    if let Some(condition) = &query.condition {
        condition.each_path(&mut |path| {
            if let PathUse::Value(path) = path {
                counted.push(path);
            }
        });
    }
    order::distinct(counted)
}

/// Returns whether a path can lead to several nodes of one object.
fn may_repeat(path: &IdentifiedPath) -> bool {
    path.steps.iter().any(|step| is_list(step.attr))
}

/// Returns whether an attribute has several values in some class.
fn is_list(attr: Attr) -> bool {
    Cls::all().any(|class| class.attr(attr).is_some_and(|def| def.card.is_list()))
}
