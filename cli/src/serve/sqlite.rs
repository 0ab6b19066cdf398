//! SQLite as an executor of the core's statements: reads in the thread of the caller, writes in the
//! thread of the database that writes.

use super::writer::Writer;
use aqlite::store::sql::{Row, Sql, SqlError, SqlValue, Statement};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Prepared statements that a connection keeps. The core has about a hundred.
const PREPARED: usize = 256;

/// Time that a connection waits for a lock of another process, such as a backup.
const BUSY: Duration = Duration::from_secs(10);

/// A database: a connection that reads, and the writer of its file.
#[derive(Clone)]
pub struct Sqlite {
    reader: Rc<Connection>,
    /// `None` if the database is only read.
    writer: Option<Writer>,
}

impl Sqlite {
    /// Opens a connection that reads the file of a writer, and keeps `pages` bytes of its pages.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path, pages: usize, writer: Writer) -> rusqlite::Result<Sqlite> {
        let database = Sqlite::read_only(path)?;
        set_cache(&database.reader, pages)?;
        Ok(Sqlite {
            writer: Some(writer),
            ..database
        })
    }

    /// Opens a connection that reads a file.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn read_only(path: &Path) -> rusqlite::Result<Sqlite> {
        // A read-only handle cannot create the shared-memory file of WAL mode. `query_only` forbids
        // writes instead. No mutex: each connection stays in one thread.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(path, flags)?;
        reader.pragma_update(None, "query_only", "ON")?;
        configure(&reader)?;
        Ok(Sqlite {
            reader: Rc::new(reader),
            writer: None,
        })
    }

    /// Returns the connection that reads.
    pub fn connection(&self) -> &Connection {
        &self.reader
    }

    /// Returns the rows of statements that only read; `None` if one of them writes.
    fn read(&self, statements: &[Statement]) -> rusqlite::Result<Option<Vec<Vec<Row>>>> {
        for statement in statements {
            // `PRAGMA optimize` counts as a read, but it writes statistics.
            let is_pragma = statement.sql.starts_with("PRAGMA");
            // SQLite itself decides by the compiled statement whether it only reads. The statement
            // returns to the cache at once: a batch may have one text many times, and while one
            // copy is held, the next one would be compiled again.
            if is_pragma || !self.reader.prepare_cached(&statement.sql)?.readonly() {
                return Ok(None);
            }
        }
        // One statement is one snapshot already.
        let transaction = match statements {
            [_] => None,
            // All statements of a batch must see the same state. `unchecked`, because the
            // connection is shared by `Rc`; batches do not nest.
            _ => Some(self.reader.unchecked_transaction()?),
        };
        let rows = statements
            .iter()
            .map(|statement| execute(&self.reader, statement))
            .collect::<rusqlite::Result<Vec<_>>>()?;
        transaction.map_or(Ok(()), rusqlite::Transaction::commit)?;
        Ok(Some(rows))
    }
}

impl Sql for Sqlite {
    const REPEATS: bool = true;

    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        match self.read(&statements) {
            Ok(Some(rows)) => Ok(rows),
            Ok(None) => match &self.writer {
                Some(writer) => writer.write(statements).await,
                None => Err(SqlError::Failed(String::from("the database is only read"))),
            },
            Err(error) => Err(failure(&error)),
        }
    }
}

/// Sets what every connection has in common.
pub fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(PREPARED);
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

/// Sets the bytes of the pages that a connection keeps.
pub fn set_cache(connection: &Connection, bytes: usize) -> rusqlite::Result<()> {
    let kibibytes = i64::try_from(bytes / 1024).unwrap_or(i64::MAX);
    // A negative number is a size, a positive one a number of pages.
    connection.pragma_update(None, "cache_size", -kibibytes.max(1))
}

/// Executes one statement, as often as it has parameters, and returns its rows.
pub fn execute(connection: &Connection, statement: &Statement) -> rusqlite::Result<Vec<Row>> {
    let mut prepared = connection.prepare_cached(&statement.sql)?;
    let columns = prepared.column_count();
    let mut found = Vec::new();
    for params in statement.executions() {
        let mut rows = prepared.query(params_from_iter(params.iter().map(Bound)))?;
        while let Some(row) = rows.next()? {
            let cells = (0..columns).map(|column| row.get_ref(column).map(value));
            found.push(cells.collect::<rusqlite::Result<Row>>()?);
        }
    }
    Ok(found)
}

/// Returns the error of a batch, with the constraint that failed.
pub fn failure(error: &rusqlite::Error) -> SqlError {
    SqlError::from_message(&error.to_string())
}

/// A parameter, without a copy of its text.
struct Bound<'v>(&'v SqlValue);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            SqlValue::Null => ToSqlOutput::Owned(Value::Null),
            SqlValue::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            SqlValue::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            SqlValue::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// Returns the value of a cell. The schema has no blobs.
fn value(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Null | ValueRef::Blob(_) => SqlValue::Null,
    }
}
