//! The query that counts the rows of another one.
//!
//! A page far behind the first one leaves out many rows. Batches whose rows all lie before the page
//! need not make them: it is sufficient to count them.

use super::query::{Aggregate, Column, ColumnValue, IdentifiedPath, PathUse, Query, Window};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;

/// A query that counts rows, and the paths that it reads.
pub(super) struct CountingQuery {
    pub query: Query,
    /// Indexes into [`Query::paths`], ascending: those of WHERE, and those that may give a document
    /// more than one row.
    pub paths: Vec<usize>,
}

impl CountingQuery {
    /// Creates the query that counts the rows of a query which leaves out its first rows; `None`
    /// if it leaves out none, or if its rows come in another order than they are found.
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

/// Returns whether a path may lead to several nodes of one object.
fn may_repeat(path: &IdentifiedPath) -> bool {
    path.steps.iter().any(|step| is_list(step.attr))
}

/// Returns whether an attribute has several values in some class.
fn is_list(attr: Attr) -> bool {
    Cls::all().any(|class| class.attr(attr).is_some_and(|def| def.card.is_list()))
}
