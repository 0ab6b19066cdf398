//! Many rows by one statement, as a JSON list of rows, each a list of cells, which the statement
//! reads by `json_each(?1)`. A statement costs a database more than a row.

use super::value::{SqlValue, Statement};
use crate::rm::json::quote_into;
use std::fmt::Write;

/// Maximum bytes of a list, unless a single row has more. D1 accepts 2 MB.
const LIST_BYTES: usize = 1_500_000;

/// Rows that are collected for a statement.
pub(super) struct CollectedRows {
    sql: &'static str,
    /// Lists without their closing bracket. Rows are added to the last one.
    lists: Vec<String>,
}

impl CollectedRows {
    /// Creates a collection without rows.
    pub(super) fn new(sql: &'static str) -> CollectedRows {
        CollectedRows {
            sql,
            lists: Vec::new(),
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, cells: &[Cell<'_>]) {
        self.push_text(RowText::of(cells));
    }

    /// Adds a row that is encoded already.
    pub(super) fn push_text(&mut self, row: RowText) {
        let row = row.0 + "]";
        // A parameter of a statement has a limit, so a new list begins before it is reached.
        let fits = |list: &&mut String| list.len() + row.len() < LIST_BYTES;
        match self.lists.last_mut().filter(fits) {
            Some(list) => {
                list.push(',');
                list.push_str(&row);
            }
            None => self.lists.push(format!("[{row}")),
        }
    }

    /// Returns the statements of the rows so far, and removes these rows.
    pub(super) fn take_statements(&mut self) -> impl Iterator<Item = Statement> {
        let sql = self.sql;
        std::mem::take(&mut self.lists)
            .into_iter()
            .map(move |list| Statement::new(sql).bind(list + "]"))
    }
}

/// The cells of a row as a JSON list without its closing bracket.
pub(super) struct RowText(String);

impl RowText {
    /// Encodes the first cells of a row.
    pub(super) fn of(cells: &[Cell<'_>]) -> RowText {
        RowText(String::new()).with(cells)
    }

    /// Appends cells.
    pub(super) fn with(self, cells: &[Cell<'_>]) -> RowText {
        let mut list = self.0;
        for cell in cells {
            list.push(if list.is_empty() { '[' } else { ',' });
            match cell {
                Cell::Null => list.push_str("null"),
                Cell::Number(number) => drop(write!(list, "{number}")),
                Cell::Text(text) => quote_into(&mut list, text),
            }
        }
        RowText(list)
    }
}

/// A cell of a row.
#[derive(Clone, Copy)]
pub(super) enum Cell<'a> {
    Null,
    Number(u64),
    Text(&'a str),
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Cell<'a> {
        Cell::Text(text)
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Cell<'a> {
        Cell::Text(text)
    }
}

impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        Cell::Number(number)
    }
}

impl From<bool> for Cell<'_> {
    fn from(flag: bool) -> Self {
        Cell::Number(u64::from(flag))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Cell<'a> {
        value.map_or(Cell::Null, Into::into)
    }
}

impl From<Cell<'_>> for SqlValue {
    fn from(cell: Cell<'_>) -> SqlValue {
        match cell {
            Cell::Null => SqlValue::Null,
            Cell::Number(number) => number.into(),
            Cell::Text(text) => text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_together_as_far_as_they_fit() {
        let mut rows = CollectedRows::new("INSERT");
        for text in ["a", "\"", &"x".repeat(LIST_BYTES), "b"] {
            rows.push(&[Cell::Number(1), text.into(), Cell::Null]);
        }
        let lists: Vec<String> = rows
            .take_statements()
            .map(|s| format!("{:?}", s.params))
            .collect();
        assert_eq!(lists.len(), 3);
        assert_eq!(rows.take_statements().count(), 0);
        rows.push(&[Cell::Number(1), "\"".into()]);
        rows.push(&[Cell::Null]);
        assert_eq!(
            rows.take_statements().next().unwrap().params,
            [SqlValue::from(r#"[[1,"\""],[null]]"#)]
        );
    }
}
