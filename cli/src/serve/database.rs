//! The files of a repository: the database of the documents, that of the access log, the folder of
//! segments, and the lock of the process that serves them.

use super::blobs::{self, FileBlobs};
use super::environment::Machine;
use super::memory::Memory;
use super::metrics::Metrics;
use super::sqlite::Sqlite;
use super::system::names_of;
use super::writer::Writer;
use anyhow::{Context, anyhow, bail, ensure};
use aqlite::service::{Config, Request, Response, Service};
use aqlite::store::sql::{
    LOG_MIGRATIONS, LayoutCatalog, MIGRATIONS, Migrations, Segments, SqlRepository,
};
use rusqlite::{Connection, OptionalExtension};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};

/// The system of the first version, unless a version is of the system `?1`.
const FIRST_OTHER_SYSTEM: &str = "SELECT system FROM version
    WHERE NOT EXISTS (SELECT 1 FROM version WHERE system = ?1) ORDER BY id LIMIT 1";

/// The paths of a repository.
#[derive(Clone, Debug)]
pub struct Files {
    /// The database of the documents.
    pub database: PathBuf,
    /// The database of the access log.
    pub log: PathBuf,
    /// The folder of segments.
    pub segments: PathBuf,
    /// The file that the serving process locks.
    pub lock: PathBuf,
}

/// Links from one to the next that are followed: as many as Linux follows.
const LINKS: usize = 40;

/// Returns the path of the file that a path names through symbolic links. Neither the file nor its
/// folder has to exist.
fn linked(path: &Path) -> PathBuf {
    let mut file = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = std::fs::read_link(&file) else {
            break;
        };
        file = file.parent().unwrap_or(Path::new("")).join(target);
    }
    file
}

/// Returns the path of a file whose name begins with that of a database.
pub(super) fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

impl Files {
    /// Returns the paths beside a database, and not beside a symbolic link to it.
    ///
    /// # Errors
    /// If the file of the database has several names. The other files, also those of SQLite, are
    /// found by one of them only, so neither locks nor commits would be shared.
    pub fn beside(database: &Path) -> anyhow::Result<Files> {
        let database = linked(database);
        ensure!(
            names_of(&database) <= 1,
            "{0} has several names (hard links), and a process that serves it by another one would not be noticed: remove \
             the others, which `find / -samefile {0}` lists",
            database.display()
        );
        let with = |end| beside(&database, end);
        Ok(Files {
            log: with(".access-log"),
            segments: with(".segments"),
            lock: with(".lock"),
            database,
        })
    }

    /// Locks the repository for this process, until the file is dropped.
    ///
    /// # Errors
    /// If another process serves it.
    pub fn lock(&self) -> anyhow::Result<File> {
        let shown = self.lock.display();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            // The lock is on the open file, not on its existence, so a killed process leaves no
            // lock.
            .truncate(false)
            .open(&self.lock)
            .map_err(|error| match error.kind() {
                ErrorKind::PermissionDenied => {
                    anyhow!("{shown}: {error}: give the files of the repository to this user")
                }
                _ => anyhow!("{shown}: {error}"),
            })?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => bail!(
                "another process serves {}: stop it first",
                self.database.display()
            ),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("{shown}")),
        }
    }
}

/// The writers of a repository.
#[derive(Clone)]
pub struct Databases {
    files: Files,
    writer: Writer,
    log: Writer,
    memory: Memory,
}

impl Databases {
    /// Opens the databases, applies their migrations, and starts their threads, which end when all
    /// clones are dropped.
    ///
    /// # Errors
    /// If a file cannot be opened or a migration fails.
    pub fn open(
        files: Files,
        metrics: &Arc<Metrics>,
        memory: &Memory,
    ) -> anyhow::Result<(Databases, [JoinHandle<()>; 2])> {
        blobs::prepare(&files.segments).with_context(|| format!("{}", files.segments.display()))?;
        let start = |path: &Path, migrations| {
            let prepare = |connection: &mut Connection| migrate(connection, migrations);
            Writer::start(path, memory.writer_pages, prepare, Arc::clone(metrics))
        };
        let (writer, documents) = start(&files.database, MIGRATIONS)?;
        let (log, accesses) = start(&files.log, LOG_MIGRATIONS)?;
        let databases = Databases {
            files,
            writer,
            log,
            memory: memory.clone(),
        };
        Ok((databases, [documents, accesses]))
    }

    /// Checks that the default system id has created a version if there are any. A server that is
    /// restarted without the variable SYSTEM_ID would go on with versions of another system.
    ///
    /// # Errors
    /// If all versions are of other systems, or the database cannot be read.
    pub fn check_default_system(&self, system_id: &str) -> anyhow::Result<()> {
        let database = Sqlite::read_only(&self.files.database)?;
        let first: Option<String> = database
            .connection()
            .query_row(FIRST_OTHER_SYSTEM, [system_id], |row| row.get(0))
            .optional()?;
        let Some(first) = first else {
            return Ok(());
        };
        bail!(
            "the versions in {} are of other systems, such as `{first}`, and SYSTEM_ID is not set: set SYSTEM_ID={first} \
             to continue them, or SYSTEM_ID={system_id} to write versions of that system",
            self.files.database.display()
        )
    }

    /// Returns the paths of the repository.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Opens the connections of a thread.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub fn connect(&self) -> rusqlite::Result<Connections> {
        let memory = &self.memory;
        let open =
            |path: &Path, writer: &Writer| Sqlite::open(path, memory.reader_pages, writer.clone());
        let segments = Segments::new(Box::new(FileBlobs::new(&self.files.segments)));
        Ok(Connections {
            database: open(&self.files.database, &self.writer)?,
            log: open(&self.files.log, &self.log)?,
            catalog: Rc::new(LayoutCatalog::with_limit(memory.layouts)),
            segments: Rc::new(segments.with_memory(memory.kept_parts, memory.loaded_parts)),
        })
    }
}

/// Opens the database of a repository for reading. `parts` are the bytes of parts of segments that
/// it keeps, and that a query may load, if they differ from those of an isolate.
///
/// # Errors
/// If it cannot be read, or is of another release.
pub fn read_only(
    path: &Path,
    parts: Option<(usize, usize)>,
) -> anyhow::Result<(Sqlite, SqlRepository<Sqlite>)> {
    let files = Files::beside(path)?;
    let database = Sqlite::read_only(&files.database)?;
    let applied = applied(database.connection()).context("it is no repository")?;
    check_release(&applied, MIGRATIONS)?;
    ensure!(
        // Reading needs exactly the schema of this release, and a read-only connection cannot
        // migrate.
        applied.iter().eq(MIGRATIONS.iter().map(|(name, _)| name)),
        "the database is of an older release: `aqlite serve` of this one migrates it"
    );
    let mut segments = Segments::new(Box::new(FileBlobs::new(&files.segments)));
    if let Some((kept, loaded)) = parts {
        segments = segments.with_memory(kept, loaded);
    }
    let repository =
        SqlRepository::new(database.clone(), Rc::default()).with_segments(Rc::new(segments));
    Ok((database, repository))
}

/// A database that this process reads only. Another process may serve it meanwhile.
pub struct Reader {
    service: Service<SqlRepository<Sqlite>>,
    runtime: Runtime,
}

impl Reader {
    /// Opens the database of a repository.
    ///
    /// # Errors
    /// If it cannot be read, or is of another release.
    pub fn open(path: &Path, config: Config) -> anyhow::Result<Reader> {
        let (_, repository) = read_only(path, None)?;
        Ok(Reader {
            service: Service::new(repository, config),
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Answers a request that changes nothing.
    pub fn answer(&self, request: &Request) -> Response {
        self.runtime
            .block_on(self.service.handle(request, &mut Machine))
    }
}

/// The connections of a thread, with its caches of layouts and segments. A cache is that of an
/// isolate of the worker: others commit to the same database at any time.
pub struct Connections {
    database: Sqlite,
    log: Sqlite,
    catalog: Rc<LayoutCatalog>,
    segments: Rc<Segments>,
}

impl Connections {
    /// Returns a repository over the connections.
    pub fn repository(&self) -> SqlRepository<Sqlite> {
        SqlRepository::new(self.database.clone(), Rc::clone(&self.catalog))
            .with_segments(Rc::clone(&self.segments))
            .with_log(self.log.clone())
    }

    /// Returns the segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }
}

/// Applies the migrations that a database does not have yet, each in a transaction.
///
/// # Errors
/// If a migration fails, or if a newer release has changed the database.
pub fn migrate(connection: &mut Connection, migrations: Migrations) -> anyhow::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied TEXT NOT NULL) STRICT, WITHOUT ROWID",
    )?;
    let applied = applied(connection)?;
    check_release(&applied, migrations)?;
    for (name, text) in migrations {
        if applied.iter().any(|applied| applied == name) {
            continue;
        }
        apply(connection, name, text).with_context(|| format!("migration {name}"))?;
    }
    Ok(())
}

/// Checks that a database has no migration of a newer release, whose schema may have rules that this
/// one would break.
fn check_release(applied: &[String], migrations: Migrations) -> anyhow::Result<()> {
    let is_newer = |name: &&String| !migrations.iter().any(|known| known.0 == *name);
    match applied.iter().find(is_newer) {
        Some(newer) => {
            bail!("the database is of a newer release: this one has no migration {newer}")
        }
        None => Ok(()),
    }
}

/// Checks that a database is empty, or a repository. Called before anything is written to its file.
///
/// # Errors
/// If it has tables of another program.
pub(super) fn check_owner(connection: &Connection) -> anyhow::Result<()> {
    let is_own: bool = connection.query_row(
        "SELECT count(*) = 0 OR total(name = 'migration') > 0 FROM sqlite_schema",
        [],
        |row| row.get(0),
    )?;
    ensure!(
        is_own,
        "the file is a database of another program: name another file"
    );
    Ok(())
}

/// Applies one migration, and records it, in one transaction.
fn apply(connection: &mut Connection, name: &str, text: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(text)?;
    transaction.execute(
        "INSERT INTO migration VALUES (?1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
        [name],
    )?;
    transaction.commit()
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM migration ORDER BY name")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_file_of_the_folders_is_a_migration() {
        for (folder, migrations) in [
            ("migrations", MIGRATIONS),
            ("migrations-log", LOG_MIGRATIONS),
        ] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("..")
                .join(folder);
            let entries = fs::read_dir(folder).unwrap().flatten();
            let mut names: Vec<String> = entries
                .map(|entry| entry.file_name().into_string().unwrap())
                .collect();
            names.sort();
            let embedded: Vec<&str> = migrations.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, embedded);
        }
    }

    #[test]
    fn migrations_are_applied_once_and_a_newer_database_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        assert_eq!(applied(&connection).unwrap().len(), MIGRATIONS.len());
        connection
            .execute("INSERT INTO migration VALUES ('9999_later.sql', '')", [])
            .unwrap();
        let error = migrate(&mut connection, MIGRATIONS).unwrap_err();
        assert!(error.to_string().contains("9999_later.sql"), "{error}");
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        check_owner(&connection).unwrap();
        connection
            .execute_batch("CREATE TABLE note (text TEXT)")
            .unwrap();
        let error = check_owner(&connection).unwrap_err().to_string();
        assert!(error.contains("another program"), "{error}");
        let mut repository = Connection::open_in_memory().unwrap();
        migrate(&mut repository, MIGRATIONS).unwrap();
        check_owner(&repository).unwrap();
    }
}
