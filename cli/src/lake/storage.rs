//! The place of a lake: a folder, or a prefix of a bucket.

use crate::outcome::Failure;
use futures_util::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// The file that a sync of a folder locks.
const LOCK: &str = "_aqlite/lock";

/// The place of a lake. Names of files are relative to it, with `/` between their parts.
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    /// The URL of the place, without a slash at the end.
    url: String,
    runtime: Runtime,
    /// The lock of a folder, held until the sync ends.
    _lock: Option<File>,
}

/// A file of a lake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The name.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
}

impl Storage {
    /// Opens the place that `--to` names: a folder, which is created, or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// If the place cannot be opened, or another sync writes to the folder.
    pub fn open(to: &str) -> Result<Storage, Failure> {
        match to.split_once("://") {
            None => Storage::folder(Path::new(to)),
            Some((scheme, _)) => Err(Failure::Usage(format!(
                "`{scheme}` is no storage of lakes: name a folder"
            ))),
        }
    }

    fn folder(folder: &Path) -> Result<Storage, Failure> {
        let failed =
            |error: std::io::Error| Failure::Data(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder.join("_aqlite")).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        let store = LocalFileSystem::new_with_prefix(&folder);
        let store = store
            .map_err(|error| failure(&error))?
            .with_automatic_cleanup(false);
        let url = format!("file://{}", folder.display());
        Storage::new(Arc::new(store), Key::default(), url, Some(lock(&folder)?))
    }

    /// Creates the place below a prefix of an object store.
    ///
    /// # Errors
    /// If no runtime can be started.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        prefix: Key,
        url: String,
        lock: Option<File>,
    ) -> Result<Storage, Failure> {
        Ok(Storage {
            store,
            prefix,
            url,
            runtime: Builder::new_current_thread().enable_all().build()?,
            _lock: lock,
        })
    }

    /// Returns the URL of a file.
    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    fn key(&self, name: &str) -> Key {
        name.split('/')
            .fold(self.prefix.clone(), |key, part| key.join(part))
    }

    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let key = self.key(name);
        let read = async { self.store.get(&key).await?.bytes().await };
        match self.runtime.block_on(read) {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Reads a file that the state of the lake names.
    ///
    /// # Errors
    /// If it cannot be read, or is absent.
    pub fn expect(&self, name: &str) -> Result<Vec<u8>, Failure> {
        self.read(name)?.ok_or_else(|| {
            let url = self.url(name);
            Failure::Data(format!(
                "{url} is missing: restore it, or write the view again with --rebuild"
            ))
        })
    }

    /// Writes a file. It has all its bytes once it has its name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, bytes: Vec<u8>) -> Result<StoredFile, Failure> {
        let size = bytes.len() as u64;
        let key = self.key(name);
        let written = self.runtime.block_on(self.store.put(&key, bytes.into()));
        written.map_err(|error| failure(&error))?;
        Ok(StoredFile {
            name: name.to_owned(),
            bytes: size,
        })
    }

    /// Removes a file. One that does not exist is no error.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let key = self.key(name);
        match self.runtime.block_on(self.store.delete(&key)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Returns the names of the files below a folder of the lake, also those in folders of it.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let key = self.key(folder);
        let found = self.store.list(Some(&key)).try_collect::<Vec<_>>();
        let found = self
            .runtime
            .block_on(found)
            .map_err(|error| failure(&error))?;
        let name = |key: &Key| {
            let parts = key.prefix_match(&self.prefix)?;
            let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
            Some(parts.join("/"))
        };
        Ok(found
            .iter()
            .filter_map(|meta| name(&meta.location))
            .collect())
    }
}

/// Locks a folder for this sync.
fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).open(&path);
    let file = opened.map_err(|error| Failure::Data(format!("{}: {error}", path.display())))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::Data(format!(
            "another sync writes to {}: wait until it ends",
            folder.display()
        ))),
        Err(TryLockError::Error(error)) => {
            Err(Failure::Data(format!("{}: {error}", path.display())))
        }
    }
}

fn failure(error: &object_store::Error) -> Failure {
    Failure::Data(error.to_string())
}
