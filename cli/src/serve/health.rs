//! The health check of the databases: a read of each file within a short time.

use super::database::Files;
use super::sqlite::Sqlite;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The longest time of a check.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time for which a check that succeeded counts. Health needs no credentials, so strangers could
/// make the server read its files all the time.
const FRESH: Duration = Duration::from_secs(1);

/// Reads the first row of a table that every database has.
const READ: &str = "SELECT name FROM migration LIMIT 1";

/// The health check of the databases of a server.
#[derive(Clone)]
pub struct HealthCheck {
    files: Files,
    /// The time of the last check that succeeded. It is locked while a check runs: if a disk hangs,
    /// one thread waits for it, not one for each request.
    succeeded: Arc<Mutex<Option<Instant>>>,
}

impl HealthCheck {
    /// Creates the check of a repository.
    pub fn new(files: Files) -> HealthCheck {
        HealthCheck {
            files,
            succeeded: Arc::default(),
        }
    }

    /// Reads both databases, and returns the problem if one of them cannot be read in time.
    pub async fn problem(self) -> Option<String> {
        match timeout(PATIENCE, self.check()).await {
            Ok(outcome) => outcome.err(),
            Err(_) => Some(format!(
                "the databases do not answer within {} seconds",
                PATIENCE.as_secs()
            )),
        }
    }

    async fn check(self) -> Result<(), String> {
        let mut succeeded = self.succeeded.lock_owned().await;
        if succeeded.is_some_and(|time| time.elapsed() < FRESH) {
            return Ok(());
        }
        let files = self.files;
        let read = spawn_blocking(move || {
            read(&files.database)?;
            read(&files.log)?;
            *succeeded = Some(Instant::now());
            Ok(())
        });
        read.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// Reads a database over a connection of its own. An open one would not notice that its file was
/// moved away, nor read pages that it keeps.
fn read(path: &Path) -> Result<(), String> {
    let read = || {
        let database = Sqlite::read_only(path)?;
        let connection = database.connection();
        connection.busy_timeout(PATIENCE)?;
        connection.query_row(READ, [], |_| Ok(()))
    };
    read().map_err(|error: rusqlite::Error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    fn database(path: &Path) {
        let connection = Connection::open(path).unwrap();
        let table = "CREATE TABLE migration (name TEXT); INSERT INTO migration VALUES ('a')";
        connection.execute_batch(table).unwrap();
    }

    #[tokio::test]
    async fn absent_file_is_a_problem_until_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::beside(&folder.path().join("a.db")).unwrap();
        database(&files.database);
        let check = HealthCheck::new(files.clone());
        let problem = check.clone().problem().await.unwrap();
        assert!(problem.contains("a.db.access-log"), "{problem}");
        database(&files.log);
        assert_eq!(check.problem().await, None);
    }

    #[tokio::test]
    async fn check_that_succeeded_counts_for_a_moment() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::beside(&folder.path().join("a.db")).unwrap();
        let check = HealthCheck::new(files);
        let succeeded = |at: Instant| *check.succeeded.try_lock().unwrap() = Some(at);
        succeeded(Instant::now());
        assert_eq!(check.clone().problem().await, None);
        succeeded(Instant::now().checked_sub(FRESH).unwrap());
        assert!(check.clone().problem().await.is_some());
    }
}
