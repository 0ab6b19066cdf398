//! `aqlite backup` and `aqlite restore`: copies of a repository, also while it is served.
//!
//! A backup is a folder with the database of the documents and that of the access log. It has no
//! segments: they are copies of the documents, and the server that opens a restored repository
//! writes them again.

use super::database::{Files, beside};
use super::storage::{WAL, folder_of};
use super::system::{give, other_owner, sync_folder};
use crate::progress;
use crate::terminal::{print_line, report_line};
use anyhow::{Context, bail, ensure};
use clap::Args;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

/// Pages that are copied at a time.
const STEP: i32 = 4_096;

/// The pause after a step that met a lock, and between looks for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(20);

/// The files of a backup.
const DATABASE: &str = "aqlite.db";
const LOG: &str = "access-log.db";

/// The ends of the names of the files that SQLite keeps beside an open database.
const SQLITE_FILES: [&str; 3] = [WAL, "-shm", "-journal"];

/// Removes the segments of a copy from its manifest.
const WITHOUT_SEGMENTS: &str =
    "DELETE FROM segment; DELETE FROM ehr_segment; DELETE FROM segment_garbage;";

/// The examples of the help of `backup`.
const BACKUP_EXAMPLES: &str = "\
Examples:
  Copy a repository into a new folder, also while it is served:
    aqlite backup --db /var/lib/aqlite/aqlite.db /backup/2026-11-23

A backup has the documents and the access log, checked by SQLite. Encrypt it: it holds health data.

Exit code: 0 for a complete backup, 1 for an error, 2 for wrong usage, 130 for Ctrl-C.";

/// The arguments of `aqlite backup`.
#[derive(Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct BackupOptions {
    /// The database of the repository; its server may be running
    #[arg(long, value_name = "FILE", default_value = super::DATABASE)]
    db: PathBuf,
    /// The folder to create
    out: PathBuf,
}

/// The examples of the help of `restore`.
const RESTORE_EXAMPLES: &str = "\
Examples:
  Create a repository from a backup, and count its EHRs:
    aqlite restore /backup/2026-11-23 --db restored.db
    aqlite query -d restored.db 'SELECT COUNT(*) AS n FROM EHR e'

The database must not exist yet. The server that opens it writes the segments again. Root gives the files to the \
owner of their folder, so that a server of that user can open them.

Exit code: 0 for a complete repository, 1 for an error, 2 for wrong usage, 130 for Ctrl-C.";

/// The arguments of `aqlite restore`.
#[derive(Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub struct RestoreOptions {
    /// The folder that `aqlite backup` has created
    backup: PathBuf,
    /// The database to create
    #[arg(long, value_name = "FILE", default_value = super::DATABASE)]
    db: PathBuf,
}

/// Copies a repository into a new folder.
///
/// # Errors
/// If the folder exists, a copy fails or is damaged, or the user presses Ctrl-C. Then the folder is
/// not created, and the copied files are removed.
pub fn backup(options: &BackupOptions) -> anyhow::Result<()> {
    let files = Files::beside(&options.db)?;
    let out = &options.out;
    ensure!(!out.exists(), "{} exists already", out.display());
    for file in [&files.database, &files.log] {
        ensure!(file.exists(), "{} does not exist", file.display());
    }
    // A folder of this name is incomplete. The rename at the end makes the backup visible as a
    // whole.
    let unfinished = out.with_added_extension("tmp");
    fs::create_dir_all(&unfinished).with_context(|| format!("{}", unfinished.display()))?;
    if let Err(error) = copy_all(&files, &unfinished) {
        // The error of the copy matters more than one of the removal.
        drop(fs::remove_dir_all(&unfinished));
        return Err(error);
    }
    fs::rename(&unfinished, out).with_context(|| format!("{}", out.display()))?;
    sync_folder_of(out)?;
    print_line!("{}: {}", out.display(), contents(&out.join(DATABASE))?);
    Ok(())
}

/// Copies both databases of a repository into a folder, and checks the copies.
fn copy_all(files: &Files, folder: &Path) -> anyhow::Result<()> {
    // The documents first: a record that is moved between both copies is then in both, and its key
    // keeps it from being added twice.
    copy(&files.database, &folder.join(DATABASE))?;
    copy(&files.log, &folder.join(LOG))?;
    change(&folder.join(DATABASE), WITHOUT_SEGMENTS)?;
    [DATABASE, LOG]
        .iter()
        .try_for_each(|name| finish(&folder.join(name)))
}

/// Creates a repository from a backup.
///
/// # Errors
/// If the repository exists or is served, the backup is damaged, or the user presses Ctrl-C. Then
/// the copied files are removed.
pub fn restore(options: &RestoreOptions) -> anyhow::Result<()> {
    let files = Files::beside(&options.db)?;
    let _lock = files.lock()?;
    // Before an error can end the restore: the file of the lock remains.
    give_to_owner_of_folder(&files, &[&files.lock]);
    ensure_all_absent(&files)?;
    let from = |name: &str| options.backup.join(name);
    let copies = [(from(LOG), &files.log), (from(DATABASE), &files.database)];
    for (from, _) in &copies {
        ensure!(from.exists(), "{} does not exist", from.display());
    }
    // Both are copied and checked before one gets its name. The database comes last: without it
    // there is no repository.
    let unfinished = |to: &Path| to.with_added_extension("restore");
    for (from, to) in &copies {
        let copied = copy(from, &unfinished(to)).and_then(|()| finish(&unfinished(to)));
        if let Err(error) = copied {
            // The error of the copy matters more than one of the removal.
            for (_, to) in &copies {
                drop(fs::remove_file(unfinished(to)));
            }
            return Err(error);
        }
    }
    for (_, to) in &copies {
        fs::rename(unfinished(to), to).with_context(|| format!("{}", to.display()))?;
        sync_folder_of(to)?;
    }
    give_to_owner_of_folder(&files, &[&files.log, &files.database]);
    print_line!(
        "{}: {}",
        files.database.display(),
        contents(&files.database)?
    );
    Ok(())
}

/// Gives created files to the owner of their folder, if root runs the program. Prints the command
/// to run if the file system refuses that.
fn give_to_owner_of_folder(files: &Files, created: &[&Path]) {
    let folder = folder_of(&files.database);
    let Some(owner) = other_owner(folder) else {
        return;
    };
    for file in created {
        if let Err(error) = give(file, owner) {
            let (folder, database) = (folder.display(), files.database.display());
            report_line!(
                "warning: {} belongs to root ({error}): run `chown --reference={folder} {database}*` before the server starts",
                file.display()
            );
            return;
        }
    }
}

/// Checks that a repository does not exist, nor a part of it.
fn ensure_all_absent(files: &Files) -> anyhow::Result<()> {
    for file in [&files.database, &files.log, &files.segments] {
        ensure_absent(file)?;
    }
    // SQLite would replay the log of a database that was removed into the one that gets its name.
    for end in SQLITE_FILES {
        ensure_absent(&beside(&files.database, end))?;
        ensure_absent(&beside(&files.log, end))?;
    }
    Ok(())
}

fn ensure_absent(file: &Path) -> anyhow::Result<()> {
    ensure!(
        !file.exists(),
        "{} exists already: move it away first",
        file.display()
    );
    Ok(())
}

/// Copies a database as it is now. Other processes may write to it meanwhile.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let shown = format!("{}", from.display());
    if to.exists() {
        fs::remove_file(to).with_context(|| format!("{}", to.display()))?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags).with_context(|| shown.clone())?;
    let mut target = Connection::open(to).with_context(|| format!("{}", to.display()))?;
    // An open transaction keeps its snapshot, so that the copy need not begin again after a write.
    source.execute_batch("BEGIN")?;
    // BEGIN alone takes no snapshot: SQLite takes it at the first read.
    source.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let copying = Backup::new(&source, &mut target)?;
    let is_shown = std::io::stderr().is_terminal();
    loop {
        progress::check()?;
        let step = copying.step(STEP).with_context(|| shown.clone())?;
        if is_shown {
            let progress = copying.progress();
            let done = progress.pagecount - progress.remaining;
            // Its reader may have gone.
            let _ = write!(
                std::io::stderr(),
                "\r{shown}: {done} of {} pages ",
                progress.pagecount
            );
        }
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            // Busy or locked: another process holds a lock for a moment.
            _ => sleep(PAUSE),
        }
    }
    if is_shown {
        report_line!("");
    }
    Ok(())
}

/// Executes statements on a copy.
fn change(path: &Path, statements: &str) -> anyhow::Result<()> {
    let connection = Connection::open(path)?;
    // Freed pages are overwritten, as in the served database.
    connection.pragma_update(None, "secure_delete", "ON")?;
    until_interrupted(&connection, || connection.execute_batch(statements))
}

/// Executes a long statement, which Ctrl-C ends.
fn until_interrupted<T>(
    connection: &Connection,
    statement: impl FnOnce() -> rusqlite::Result<T>,
) -> anyhow::Result<T> {
    let handle = connection.get_interrupt_handle();
    let is_done = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                // Repeated, because an interruption before the statement begins has no effect.
                if progress::is_interrupted() {
                    handle.interrupt();
                }
                sleep(PAUSE);
            }
        });
        let result = statement();
        is_done.store(true, Ordering::Relaxed);
        result
    });
    progress::check()?;
    Ok(result?)
}

/// Checks a copy, and makes it one durable file.
fn finish(path: &Path) -> anyhow::Result<()> {
    let connection = Connection::open(path)?;
    // A copy of a database in WAL mode is in that mode too, and would need a second file.
    connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    let found: String = until_interrupted(&connection, || {
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))
    })?;
    if found != "ok" {
        bail!("{} is damaged: {found}", path.display());
    }
    drop(connection);
    File::options().write(true).open(path)?.sync_all()?;
    Ok(())
}

fn sync_folder_of(path: &Path) -> anyhow::Result<()> {
    Ok(sync_folder(folder_of(path))?)
}

/// Returns the content of a database as numbers.
fn contents(path: &Path) -> anyhow::Result<String> {
    let connection = Connection::open(path)?;
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok(format!(
        "{} EHRs, {} versions, {} contributions",
        // Row 0 owns the parties, and is no EHR.
        count("SELECT count(*) FROM ehr WHERE id > 0")?,
        count("SELECT count(*) FROM version")?,
        count("SELECT count(*) FROM contribution")?
    ))
}
