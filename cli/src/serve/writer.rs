//! The thread that writes a database, with group commit.
//!
//! A batch of the core is one transaction. The thread executes all batches that wait as savepoints
//! of one transaction of SQLite, commits it, and only then answers each of them. One fsync of the
//! write-ahead log serves them all. A batch that fails is rolled back to its savepoint, and does
//! not fail the others.

use super::database::check_owner;
use super::metrics::Metrics;
use super::sqlite::{configure, execute, failure, set_cache};
use anyhow::Context;
use aqlite::store::sql::{Row, SqlError, Statement};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::sync::oneshot;

/// Batches of one group.
const GROUP: usize = 256;

/// Batches that wait for the writer. Further ones are refused.
const WAITING: usize = 4_096;

/// Bytes of the parameters of one group, unless its first batch is longer. It bounds the time that
/// the first batch waits for the last one.
const GROUP_BYTES: usize = 16_000_000;

/// Pages of the write-ahead log from which a commit also writes them into the database file.
const CHECKPOINT_PAGES: u32 = 10_000;

/// Bytes to which the write-ahead log shrinks after it has been written back.
const LOG_BYTES: u32 = 64_000_000;

/// The rows of the statements of a batch.
type Answer = Result<Vec<Vec<Row>>, SqlError>;

/// A batch that waits for the writer.
struct Batch {
    statements: Vec<Statement>,
    answer: oneshot::Sender<Answer>,
}

impl Batch {
    fn bytes(&self) -> usize {
        let statements = self.statements.iter();
        let params = statements.flat_map(|s| s.params.iter().chain(&s.repeated));
        params
            .map(|value| match value {
                aqlite::store::sql::SqlValue::Text(text) => text.len(),
                _ => 0,
            })
            .sum()
    }
}

/// The sender of batches to the thread of a database. The thread ends when all senders are dropped.
#[derive(Clone)]
pub struct Writer(SyncSender<Batch>);

impl Writer {
    /// Opens the file of a database, applies `prepare`, and starts its thread. The connection keeps
    /// `pages` bytes of pages: commits insert into indexes of random ids, so most of their pages are
    /// read again.
    ///
    /// # Errors
    /// If the file cannot be opened or prepared.
    pub fn start(
        path: &Path,
        pages: usize,
        prepare: impl FnOnce(&mut Connection) -> anyhow::Result<()>,
        metrics: Arc<Metrics>,
    ) -> anyhow::Result<(Writer, JoinHandle<()>)> {
        let shown = || format!("{}", path.display());
        let mut connection = Connection::open(path).with_context(shown)?;
        check_owner(&connection).with_context(shown)?;
        set_up(&connection, pages).with_context(shown)?;
        prepare(&mut connection)?;
        let (sender, receiver) = mpsc::sync_channel(WAITING);
        let thread = thread::Builder::new().name("writer".into());
        let thread = thread.spawn(move || run(&connection, &receiver, &metrics))?;
        Ok((Writer(sender), thread))
    }

    /// Executes a batch. The answer comes after the fsync.
    pub async fn write(&self, statements: Vec<Statement>) -> Answer {
        let (answer, answered) = oneshot::channel();
        let batch = Batch { statements, answer };
        self.0.try_send(batch).map_err(|error| {
            SqlError::Failed(String::from(match error {
                TrySendError::Full(_) => "too many batches wait for the database",
                TrySendError::Disconnected(_) => "the database is closed",
            }))
        })?;
        answered
            .await
            .unwrap_or_else(|_| Err(SqlError::Failed(String::from("the database is closed"))))
    }
}

/// Sets up the connection that writes.
fn set_up(connection: &Connection, pages: usize) -> rusqlite::Result<()> {
    configure(connection)?;
    // Freed pages are overwritten with zeros, so that deleted documents do not stay in the file.
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Each commit waits for the fsync of the write-ahead log.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    set_cache(connection, pages)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)
}

fn run(connection: &Connection, batches: &Receiver<Batch>, metrics: &Metrics) {
    while let Ok(first) = batches.recv() {
        let mut bytes = first.bytes();
        let mut group = vec![first];
        while group.len() < GROUP && bytes < GROUP_BYTES {
            // Only batches that wait already join the group: the first one is not delayed for
            // others.
            let Ok(next) = batches.try_recv() else { break };
            bytes = bytes.saturating_add(next.bytes());
            group.push(next);
        }
        let (count, started) = (group.len(), Instant::now());
        commit(connection, group);
        metrics.record_group(count, started.elapsed());
    }
    close(connection);
}

/// Writes the log back into the database file, and empties it.
fn close(connection: &Connection) {
    let checkpoint = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = checkpoint {
        super::log::problem("checkpoint", &error);
    }
}

/// Executes a group of batches in one transaction, and answers each after the commit.
fn commit(connection: &Connection, group: Vec<Batch>) {
    let mut waiting = Vec::with_capacity(group.len());
    // A transaction of one batch needs no savepoint, for which SQLite would copy each page that
    // the batch changes.
    let (is_only, mut end) = (group.len() == 1, "COMMIT");
    // IMMEDIATE takes the write lock now. Otherwise a later statement could fail because another
    // process writes.
    let mut error = connection.execute_batch("BEGIN IMMEDIATE").err();
    for batch in group {
        if error.is_some() || batch.answer.is_closed() {
            // A caller that has gone away is not answered, and its change is not made.
            waiting.push((batch.answer, Err(closed())));
            continue;
        }
        let answer = match is_only {
            true => execute_all(connection, &batch.statements),
            false => member(connection, &batch.statements),
        };
        if is_only && answer.is_err() {
            end = "ROLLBACK";
        }
        // Some errors (a full disk, no memory) roll back the whole transaction.
        if connection.is_autocommit() {
            error = answer.as_ref().err().map(copy);
        }
        waiting.push((batch.answer, answer.map_err(|error| failure(&error))));
    }
    let committed = match error {
        Some(error) => Err(error),
        None => connection.execute_batch(end),
    };
    if let Err(error) = &committed {
        super::log::problem("commit", error);
        if !connection.is_autocommit() {
            drop(connection.execute_batch("ROLLBACK"));
        }
    }
    for (sender, answer) in waiting {
        let answer = match (&committed, answer) {
            // The transaction was not committed, so a batch that succeeded alone has failed as
            // well. A batch with an error of its own keeps that error.
            (Err(error), Ok(_)) => Err(SqlError::Failed(error.to_string())),
            (_, answer) => answer,
        };
        // A caller that has gone away needs no answer.
        drop(sender.send(answer));
    }
}

/// Executes one batch as a savepoint.
fn member(connection: &Connection, statements: &[Statement]) -> rusqlite::Result<Vec<Vec<Row>>> {
    connection.prepare_cached("SAVEPOINT member")?.execute([])?;
    let answers = execute_all(connection, statements);
    if answers.is_err() && !connection.is_autocommit() {
        connection
            // ROLLBACK TO keeps the savepoint on the stack, so the RELEASE below is needed in any
            // case.
            .prepare_cached("ROLLBACK TO member")?
            .execute([])?;
    }
    if !connection.is_autocommit() {
        connection.prepare_cached("RELEASE member")?.execute([])?;
    }
    answers
}

/// Executes the statements of a batch up to the first one that fails.
fn execute_all(
    connection: &Connection,
    statements: &[Statement],
) -> rusqlite::Result<Vec<Vec<Row>>> {
    let statements = statements.iter();
    statements
        .map(|statement| execute(connection, statement))
        .collect()
}

fn closed() -> SqlError {
    SqlError::Failed(String::from("the batch was not executed"))
}

/// Returns an error with the same message: that of SQLite cannot be cloned.
fn copy(error: &rusqlite::Error) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        error
            .sqlite_error()
            .copied()
            .unwrap_or(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR)),
        Some(error.to_string()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executes batches of statements as one group, and returns their answers.
    fn group(connection: &Connection, batches: &[&[&'static str]]) -> Vec<Answer> {
        let (mut members, mut answers) = (Vec::new(), Vec::new());
        for batch in batches {
            let (answer, answered) = oneshot::channel();
            let statements = batch.iter().map(|sql| Statement::new(*sql)).collect();
            members.push(Batch { statements, answer });
            answers.push(answered);
        }
        commit(connection, members);
        answers
            .into_iter()
            .map(|mut answer| answer.try_recv().unwrap())
            .collect()
    }

    fn database() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY) STRICT")
            .unwrap();
        connection
    }

    fn ids(connection: &Connection) -> String {
        let sql = "SELECT coalesce(group_concat(id), '') FROM t";
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn batch_that_fails_is_undone_and_does_not_fail_the_others() {
        let connection = database();
        let answers = group(
            &connection,
            &[
                &["INSERT INTO t VALUES (1)"],
                &["INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (1)"],
                &["INSERT INTO t VALUES (3) RETURNING id"],
            ],
        );
        assert!(answers[0].is_ok());
        assert_eq!(
            answers[1],
            Err(SqlError::Constraint(String::from("UNIQUE t.id")))
        );
        assert_eq!(answers[2].as_ref().unwrap()[0].len(), 1);
        assert_eq!(ids(&connection), "1,3");
    }

    #[test]
    fn batch_that_fails_alone_is_undone() {
        let connection = database();
        let answers = group(
            &connection,
            &[&["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"]],
        );
        assert_eq!(
            answers[0],
            Err(SqlError::Constraint(String::from("UNIQUE t.id")))
        );
        assert_eq!(ids(&connection), "");
        assert!(group(&connection, &[&["INSERT INTO t VALUES (1)"]])[0].is_ok());
        assert_eq!(ids(&connection), "1");
    }

    #[test]
    fn error_that_ends_the_transaction_fails_the_group_and_not_the_next_one() {
        let connection = database();
        let rollback = "INSERT OR ROLLBACK INTO t VALUES (1)";
        let answers = group(
            &connection,
            &[
                &["INSERT INTO t VALUES (1)"],
                &[rollback],
                &["INSERT INTO t VALUES (2)"],
            ],
        );
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        assert_eq!(ids(&connection), "");
        assert!(group(&connection, &[&["INSERT INTO t VALUES (4)"]])[0].is_ok());
        assert_eq!(ids(&connection), "4");
    }

    #[test]
    fn batches_that_wait_together_share_a_group() {
        let folder = std::env::temp_dir().join(format!("aqlite-group-{}", std::process::id()));
        let metrics = Arc::new(Metrics::new());
        let prepare = |connection: &mut Connection| {
            connection.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY) STRICT")?;
            Ok(())
        };
        let (writer, thread) =
            Writer::start(&folder, 1 << 20, prepare, Arc::clone(&metrics)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let insert = |id: u64| {
            let statement = Statement::new("INSERT INTO t VALUES (?1)").bind(id);
            writer.write(vec![statement])
        };
        let answers = runtime.block_on(futures_util::future::join_all((0..200).map(insert)));
        assert!(answers.iter().all(Result::is_ok));
        // A group is counted behind its answers.
        drop(writer);
        thread.join().unwrap();
        assert_eq!(metrics.batches(), 200);
        assert!(metrics.groups() < 100, "{} groups", metrics.groups());
        std::fs::remove_file(folder).unwrap();
    }
}
