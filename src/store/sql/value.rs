//! Statements, values and rows of an executor.

use crate::document::ObjectKind;
use crate::rm::json::quote_into;
use crate::store::repository::StoreError;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// A parameter of a statement or a value of a row.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum SqlValue {
    /// NULL.
    Null,
    /// INTEGER; exact up to 2^53.
    Integer(i64),
    /// REAL. A host without integers returns integers in this form too.
    Real(f64),
    /// TEXT.
    Text(String),
}

/// A row: the values of the columns in the order of the SELECT.
pub type Row = Vec<SqlValue>;

/// One statement with its parameters, `?1` first.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// The text. It never contains a value, and the columns of its rows have distinct names.
    pub sql: Cow<'static, str>,
    /// The parameters; at most 100, each at most 2 MB.
    pub params: Vec<SqlValue>,
    /// The parameters of further executions of the statement, in order, as many for each as in
    /// `params`. Empty unless the executor has [`Sql::REPEATS`].
    pub repeated: Vec<SqlValue>,
}

/// The failure of a batch. The database has rolled it back.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SqlError {
    /// A constraint failed: kind and columns in the form of SQLite, such as `UNIQUE version.object,
    /// version.number` or `NULL version.ehr`.
    Constraint(String),
    /// Any other failure: the database did not answer, or could not execute the batch.
    Failed(String),
}

/// An executor of batches, which a host supplies to [`super::SqlRepository`].
#[allow(
    async_fn_in_trait,
    reason = "futures of a worker are not Send, and nothing spawns them"
)]
pub trait Sql {
    /// Whether this executor executes statements with [`Statement::repeated`]. An executor in the
    /// same process does: parameters cost it less than rows in a JSON list.
    const REPEATS: bool = false;

    /// Executes the statements in order in one transaction, and returns the rows of each.
    ///
    /// The columns of a SELECT have distinct names: D1 returns a row as an object by name.
    ///
    /// # Errors
    /// If a statement fails. Then none of them has had an effect.
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError>;
}

/// Bytes of a text above which it is passed beside the JSON list.
const LONG: usize = 1_000;

/// Encodes statements for a host in another language: a JSON list of `[sql, ...values]`, and the
/// long texts in order. `[]` takes the place of a long text in the list, because escaping and
/// parsing it again would cost time.
pub fn encode_statements(statements: &[Statement]) -> (String, Vec<&str>) {
    let (mut list, mut long) = (String::from("["), Vec::new());
    for (number, statement) in statements.iter().enumerate() {
        list.push_str(if number > 0 { ",[" } else { "[" });
        quote_into(&mut list, &statement.sql);
        for value in &statement.params {
            list.push(',');
            encode_value(value, &mut list, &mut long);
        }
        list.push(']');
    }
    list.push(']');
    (list, long)
}

/// Appends a value to the list, or a long text to `long`.
fn encode_value<'s>(value: &'s SqlValue, list: &mut String, long: &mut Vec<&'s str>) {
    match value {
        SqlValue::Text(text) if text.len() > LONG => {
            // An empty list marks the position of a text that the host binds separately.
            list.push_str("[]");
            long.push(text.as_str());
        }
        SqlValue::Text(text) => quote_into(list, text),
        SqlValue::Null => list.push_str("null"),
        SqlValue::Integer(number) => list.push_str(&number.to_string()),
        // Infinity and NaN have no notation in JSON; the store binds neither.
        SqlValue::Real(number) if !number.is_finite() => list.push_str("null"),
        SqlValue::Real(number) => list.push_str(&format!("{number:?}")),
    }
}

impl Statement {
    /// Creates a statement without parameters.
    pub fn new(sql: impl Into<Cow<'static, str>>) -> Statement {
        Statement {
            sql: sql.into(),
            params: Vec::new(),
            repeated: Vec::new(),
        }
    }

    /// Returns the parameters of each execution.
    pub fn executions(&self) -> impl Iterator<Item = &[SqlValue]> {
        // A size of 0 would panic. Without parameters there is nothing to repeat either.
        let further = self.repeated.chunks(self.params.len().max(1));
        std::iter::once(self.params.as_slice()).chain(further)
    }

    /// Binds the next parameter.
    pub fn bind(mut self, value: impl Into<SqlValue>) -> Statement {
        self.params.push(value.into());
        self
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> SqlValue {
        SqlValue::Text(text.to_owned())
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> SqlValue {
        SqlValue::Text(text)
    }
}

impl From<u64> for SqlValue {
    fn from(number: u64) -> SqlValue {
        SqlValue::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for SqlValue {
    fn from(flag: bool) -> SqlValue {
        SqlValue::Integer(i64::from(flag))
    }
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> SqlValue {
        value.map_or(SqlValue::Null, Into::into)
    }
}

impl SqlError {
    /// Parses a message of SQLite or D1, which names the constraint: `… UNIQUE constraint failed:
    /// ehr.ehr_id: SQLITE_…`.
    pub fn from_message(message: &str) -> SqlError {
        let found = message
            .split_once(" constraint failed: ")
            .and_then(|(before, after)| {
                // The last word is the kind: of `NOT NULL` it is `NULL`.
                let kind = before.rsplit([' ', ':']).next()?;
                let columns = after.split([':', ';', '\n']).next()?.trim();
                Some(format!("{kind} {columns}"))
            });
        found.map_or_else(
            || SqlError::Failed(message.to_owned()),
            SqlError::Constraint,
        )
    }
}

impl std::error::Error for SqlError {}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SqlError::Constraint(what) => write!(f, "constraint {what}"),
            SqlError::Failed(why) => f.write_str(why),
        }
    }
}

impl From<SqlError> for StoreError {
    fn from(error: SqlError) -> StoreError {
        match error {
            // The callers handle the constraints that they expect. Any other one would fail again,
            // so the error does not ask the client to try again, as `Unavailable` does.
            SqlError::Constraint(_) => StoreError::Failed(error.to_string()),
            SqlError::Failed(why) => StoreError::Unavailable(why),
        }
    }
}

/// The rows of each statement of a batch, in the order of the statements.
///
/// A host that returns rows for fewer statements than it was sent breaks its contract: that is an
/// error, as a statement without rows must not be mistaken for one that was not answered.
pub(super) struct Answers(std::vec::IntoIter<Vec<Row>>);

impl Answers {
    pub(super) fn of(rows: Vec<Vec<Row>>) -> Answers {
        Answers(rows.into_iter())
    }

    /// Returns the rows of the next statement.
    pub(super) fn next(&mut self) -> Result<Vec<Row>, StoreError> {
        self.0.next().ok_or_else(unanswered)
    }

    /// Returns the rows of the statement behind `count` others.
    pub(super) fn behind(&mut self, count: usize) -> Result<Vec<Row>, StoreError> {
        self.0.nth(count).ok_or_else(unanswered)
    }

    /// Returns the rows of the last statement.
    pub(super) fn last(&mut self) -> Result<Vec<Row>, StoreError> {
        self.0.next_back().ok_or_else(unanswered)
    }
}

fn unanswered() -> StoreError {
    StoreError::Failed("the database answered fewer statements than it was sent".into())
}

/// Reads a row from left to right.
pub(super) struct Fields(std::vec::IntoIter<SqlValue>);

impl Fields {
    /// Returns the fields of the only row of a statement that always has one.
    pub(super) fn of_only(rows: Vec<Row>) -> Result<Fields, StoreError> {
        let row = rows.into_iter().next().ok_or_else(unexpected)?;
        Ok(Fields::of(row))
    }

    pub(super) fn of(row: Row) -> Fields {
        Fields(row.into_iter())
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<String>, StoreError> {
        match self.0.next() {
            Some(SqlValue::Text(text)) => Ok(Some(text)),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        self.optional_text()?.ok_or_else(unexpected)
    }

    pub(super) fn optional_number(&mut self) -> Result<Option<u64>, StoreError> {
        match self.0.next() {
            Some(SqlValue::Integer(number)) => {
                u64::try_from(number).map(Some).map_err(|_| unexpected())
            }
            // Below 9e15, which is less than 2^53, a double holds every integer exactly.
            Some(SqlValue::Real(number))
                if number >= 0.0 && number.fract() == 0.0 && number < 9e15 =>
            {
                Ok(Some(number as u64))
            }
            Some(SqlValue::Null) => Ok(None),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, StoreError> {
        self.optional_number()?.ok_or_else(unexpected)
    }

    /// Reads a JSON array of integers.
    pub(super) fn optional_numbers(&mut self) -> Result<Option<Vec<u64>>, StoreError> {
        self.optional_text()?
            .map(|text| serde_json::from_str(&text).map_err(|_| unexpected()))
            .transpose()
    }

    pub(super) fn numbers(&mut self) -> Result<Vec<u64>, StoreError> {
        self.optional_numbers()?.ok_or_else(unexpected)
    }

    pub(super) fn flag(&mut self) -> Result<bool, StoreError> {
        Ok(self.number()? != 0)
    }
}

pub(super) fn unexpected() -> StoreError {
    StoreError::Failed("a row of the database has another form than this release writes".into())
}

/// Encodes a list as one JSON parameter for `json_each`.
pub(super) fn json_list<T: serde::Serialize>(list: &[T]) -> String {
    serde_json::to_string(list).unwrap_or_else(|_| "[]".into())
}

pub(super) fn kind_of(number: u64) -> Result<ObjectKind, StoreError> {
    ObjectKind::of_number(number).ok_or_else(unexpected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_passed_beside_the_list() {
        let long = "\"".repeat(LONG + 1);
        let none: Option<u64> = None;
        let statements = [
            Statement::new("A \"")
                .bind(1_u64)
                .bind(long.as_str())
                .bind("\n"),
            Statement::new("B").bind(none).bind(long.as_str()),
        ];
        assert_eq!(
            encode_statements(&statements),
            (
                r#"[["A \"",1,[],"\n"],["B",null,[]]]"#.to_owned(),
                vec![long.as_str(), long.as_str()]
            )
        );
        assert_eq!(encode_statements(&[]), ("[]".to_owned(), Vec::new()));
    }

    #[test]
    fn constraints_are_parsed_from_messages_of_sqlite_and_d1() {
        let constraint = |what: &str| SqlError::Constraint(what.into());
        assert_eq!(
            SqlError::from_message("UNIQUE constraint failed: ehr.ehr_id"),
            constraint("UNIQUE ehr.ehr_id")
        );
        let d1 = "D1_ERROR: UNIQUE constraint failed: version.object, version.number: SQLITE_CONSTRAINT_UNIQUE (extended: SQLITE_CONSTRAINT)";
        assert_eq!(
            SqlError::from_message(d1),
            constraint("UNIQUE version.object, version.number")
        );
        assert_eq!(
            SqlError::from_message("Error: NOT NULL constraint failed: version.ehr"),
            constraint("NULL version.ehr")
        );
        assert_eq!(
            SqlError::from_message("no such table: x"),
            SqlError::Failed("no such table: x".into())
        );
    }

    #[test]
    fn statement_without_answer_is_an_error() {
        let mut answers = Answers::of(vec![Vec::new()]);
        assert_eq!(answers.next(), Ok(Vec::new()));
        assert_eq!(answers.next(), Err(unanswered()));
        assert_eq!(Answers::of(Vec::new()).last(), Err(unanswered()));
        assert_eq!(Answers::of(vec![Vec::new()]).behind(1), Err(unanswered()));
    }

    #[test]
    fn row_that_must_exist_is_an_error_where_it_is_missing() {
        assert_eq!(Fields::of_only(Vec::new()).err(), Some(unexpected()));
        let row = vec![SqlValue::Integer(7)];
        let number = Fields::of_only(vec![row]).and_then(|mut fields| fields.number());
        assert_eq!(number, Ok(7));
    }
}
