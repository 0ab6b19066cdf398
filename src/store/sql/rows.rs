//! Many rows by one statement: a statement costs a database more than a row.
//!
//! Rows reach a database in one of two forms ([`RowForm`]). Either they are one JSON list of rows,
//! each a list of cells, which the statement reads by `json_each(?1)`. Or the statement is executed
//! once for each row, whose cells are its parameters.

use super::value::{SqlValue, Statement};
use crate::rm::json::quote_into;
use std::fmt::Write;
use std::sync::OnceLock;

/// Maximum bytes of a list, unless a single row has more. D1 accepts 2 MB.
const LIST_BYTES: usize = 1_500_000;

/// The form in which an executor gets the rows of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowForm {
    /// A JSON list: on D1 each statement is a part of a message to another process.
    List,
    /// Parameters of one execution for each row, without JSON in between.
    Repeated,
}

/// An INSERT of rows, in both forms.
///
/// The expressions of `values` have `{0}`, `{1}` and so on in the place of the cells of a row, and
/// `{position}` in the place of the number of rows before it in the same execution.
pub(super) struct Insert {
    into: &'static str,
    values: &'static str,
    list: OnceLock<String>,
    repeated: OnceLock<String>,
}

impl Insert {
    /// Creates an INSERT from its text before the values, and the values.
    pub(super) const fn new(into: &'static str, values: &'static str) -> Insert {
        Insert {
            into,
            values,
            list: OnceLock::new(),
            repeated: OnceLock::new(),
        }
    }

    /// Returns the statement in a form.
    ///
    /// Without MATERIALIZED, SQLite would parse the JSON of a row again for each of its cells.
    fn text(&'static self, form: RowForm) -> &'static str {
        let into = self.into;
        match form {
            RowForm::List => self.list.get_or_init(|| {
                let values = self.values_of(&|cell| format!("j.value ->> {cell}"), "j.key");
                format!(
                    "{into} WITH j AS MATERIALIZED (SELECT key, value FROM json_each(?1)) SELECT {values} FROM j"
                )
            }),
            RowForm::Repeated => self.repeated.get_or_init(|| {
                let values = self.values_of(&|cell| format!("?{}", cell + 1), "0");
                format!("{into} VALUES ({values})")
            }),
        }
    }

    /// Returns the values with the spelling of the cells and of the position.
    fn values_of(&self, cell: &dyn Fn(usize) -> String, position: &str) -> String {
        let mut parts = self.values.split('{');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap_or((part, ""));
            match name.parse() {
                Ok(number) => text.push_str(&cell(number)),
                Err(_) => text.push_str(position),
            }
            text.push_str(rest);
        }
        text
    }
}

/// Rows that are collected for an INSERT.
pub(super) struct InsertedRows {
    insert: &'static Insert,
    form: RowForm,
    lists: CollectedRows,
    /// The statement of all rows in the form [`RowForm::Repeated`].
    repeated: Option<Statement>,
}

impl InsertedRows {
    /// Creates a collection without rows.
    pub(super) fn new(insert: &'static Insert, form: RowForm) -> InsertedRows {
        InsertedRows {
            insert,
            form,
            lists: CollectedRows::new(insert.text(RowForm::List)),
            repeated: None,
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, cells: &[Cell<'_>]) {
        self.push_row(RowCells::of(self.form, cells));
    }

    /// Adds a row that is encoded already, in the form of this collection.
    pub(super) fn push_row(&mut self, row: RowCells) {
        match row {
            RowCells::Text(row) => self.lists.push_text(row),
            RowCells::Values(mut cells) => match &mut self.repeated {
                Some(statement) => statement.repeated.append(&mut cells),
                None => {
                    let mut statement = Statement::new(self.insert.text(RowForm::Repeated));
                    statement.params = cells;
                    self.repeated = Some(statement);
                }
            },
        }
    }

    /// Returns the statements of the rows so far, and removes these rows.
    pub(super) fn take_statements(&mut self) -> impl Iterator<Item = Statement> + use<> {
        self.lists.take_statements().chain(self.repeated.take())
    }
}

/// Rows that are collected for a statement with a JSON list.
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
    pub(super) fn take_statements(&mut self) -> impl Iterator<Item = Statement> + use<> {
        let sql = self.sql;
        std::mem::take(&mut self.lists)
            .into_iter()
            .map(move |list| Statement::new(sql).bind(list + "]"))
    }
}

/// The cells of a row in one of the forms.
pub(super) enum RowCells {
    /// For [`RowForm::List`].
    Text(RowText),
    /// For [`RowForm::Repeated`].
    Values(Vec<SqlValue>),
}

impl RowCells {
    /// Encodes the first cells of a row.
    pub(super) fn of(form: RowForm, cells: &[Cell<'_>]) -> RowCells {
        match form {
            RowForm::List => RowCells::Text(RowText::of(cells)),
            RowForm::Repeated => {
                RowCells::Values(cells.iter().map(|cell| (*cell).into()).collect())
            }
        }
    }

    /// Appends cells.
    pub(super) fn with(self, cells: &[Cell<'_>]) -> RowCells {
        match self {
            RowCells::Text(row) => RowCells::Text(row.with(cells)),
            RowCells::Values(mut values) => {
                values.extend(cells.iter().map(|cell| SqlValue::from(*cell)));
                RowCells::Values(values)
            }
        }
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
    fn an_insert_has_both_forms() {
        static INSERT: Insert = Insert::new("INSERT INTO t (a, b)", "{position} + {1}, f({0})");
        let statements = |form| {
            let mut rows = InsertedRows::new(&INSERT, form);
            rows.push(&[Cell::Number(1), "x".into()]);
            rows.push_row(RowCells::of(form, &[Cell::Null]).with(&["y".into()]));
            let statements: Vec<Statement> = rows.take_statements().collect();
            assert_eq!(rows.take_statements().count(), 0);
            statements
        };
        let list = "INSERT INTO t (a, b) WITH j AS MATERIALIZED (SELECT key, value FROM json_each(?1)) SELECT j.key + j.value ->> 1, f(j.value ->> 0) FROM j";
        assert_eq!(
            statements(RowForm::List),
            [Statement::new(list).bind(r#"[[1,"x"],[null,"y"]]"#)]
        );
        let null: Option<u64> = None;
        let mut repeated = Statement::new("INSERT INTO t (a, b) VALUES (0 + ?2, f(?1))");
        repeated = repeated.bind(1_u64).bind("x");
        repeated.repeated = vec![null.into(), "y".into()];
        assert_eq!(statements(RowForm::Repeated), [repeated]);
    }

    #[test]
    fn rows_share_a_statement_up_to_its_limit() {
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
