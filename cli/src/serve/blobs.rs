//! The blobs of segments as files in a folder beside the database.

use super::log::problem;
use super::system::sync_folder;
use aqlite::store::sql::{BlobFuture, Blobs};
use std::fs::{self, File};
use std::future::ready;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The end of the name of a file that is being written.
const UNFINISHED: &str = "tmp";

/// A folder of blobs. Reads and writes block the thread: most blobs have about 256 kB, and the
/// cache of the system has those that queries read.
pub struct FileBlobs(PathBuf);

impl FileBlobs {
    /// Creates the store in a folder, which [`prepare`] has created.
    pub fn new(folder: &Path) -> FileBlobs {
        FileBlobs(folder.to_owned())
    }

    /// Returns the file of a key: one level of names, without characters that a path could need.
    fn file(&self, key: &str) -> PathBuf {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name = |c: char| if plain(c) { c } else { '.' };
        self.0.join(key.chars().map(name).collect::<String>())
    }

    fn write(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.file(key);
        let unfinished = path.with_added_extension(UNFINISHED);
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        // Before the rename: otherwise a crash could leave the final name on an incomplete file.
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        // The new name is durable when its folder is.
        sync_folder(&self.0)
    }
}

/// Creates the folder of blobs, and removes files whose writing a crash has interrupted.
///
/// # Errors
/// If the folder cannot be created or read.
pub fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == UNFINISHED) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Returns an outcome; `None` where there is no file. An error is logged.
fn found<T>(outcome: io::Result<T>) -> Result<Option<T>, String> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            problem("file of a segment", &error);
            Err(error.to_string())
        }
    }
}

impl Blobs for FileBlobs {
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>> {
        Box::pin(ready(found(fs::read(self.file(key)))))
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        let stored = self.write(key, &bytes);
        Box::pin(ready(stored.map_err(|error| {
            problem("file of a segment", &error);
            error.to_string()
        })))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        Box::pin(ready(found(fs::remove_file(self.file(key))).map(drop)))
    }
}
