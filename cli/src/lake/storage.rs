//! The place of a lake: a folder, or a prefix of a bucket.

use super::lease::{self, Lease, LeaseTimes};
use super::names::{LOCK, OWN};
use crate::outcome::Failure;
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayloadMut, UpdateVersion};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// The place of a lake. Names of files are relative to it, with `/` between their parts.
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    /// The URL of the place, without a slash at the end.
    url: String,
    runtime: Runtime,
    /// The folder; `None` for a bucket.
    folder: Option<PathBuf>,
    /// The lock of a folder, held until the sync ends.
    lock: Option<File>,
    /// The lock of a bucket.
    lease: Option<Lease>,
    /// The version of the state that was read or written last. In a bucket, the state replaces this
    /// version only.
    state: Mutex<Option<UpdateVersion>>,
}

/// A file of a lake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The name.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            lease.release(&self.runtime);
        }
    }
}

impl Storage {
    /// Opens the place that `--to` names: a folder, or `s3://BUCKET/PREFIX`. It is locked, and a folder
    /// is created, unless `is_dry` is set: nothing is written then.
    ///
    /// # Errors
    /// If the place cannot be opened, or another sync writes to it.
    pub fn open(to: &str, is_dry: bool) -> Result<Storage, Failure> {
        match to.split_once("://") {
            None => Storage::folder(Path::new(to), is_dry),
            Some(("s3", place)) => Storage::bucket(place, is_dry),
            Some((scheme, _)) => Err(Failure::Usage(format!(
                "`{scheme}` is no storage of lakes: name a folder, or `s3://BUCKET/PREFIX`"
            ))),
        }
    }

    fn folder(folder: &Path, is_dry: bool) -> Result<Storage, Failure> {
        let failed =
            |error: std::io::Error| Failure::Data(format!("{}: {error}", folder.display()));
        if is_dry && !folder.exists() {
            let url = location_of(folder);
            return Storage::new(Arc::new(InMemory::new()), Key::default(), url, None);
        }
        if !is_dry {
            std::fs::create_dir_all(folder.join(OWN)).map_err(failed)?;
        }
        let folder = folder.canonicalize().map_err(failed)?;
        let store = LocalFileSystem::new_with_prefix(&folder);
        let store = store
            .map_err(|error| failure(&error))?
            // Deletions leave empty folders in place.
            .with_automatic_cleanup(false)
            // After a power failure, the state names complete files only.
            .with_fsync(true);
        // A dry run of a lake waits for no other sync only where there has never been one.
        let lock = match is_dry && !folder.join(LOCK).exists() {
            true => None,
            false => Some(lock(&folder)?),
        };
        let url = location_of(&folder);
        let mut storage = Storage::new(Arc::new(store), Key::default(), url, lock)?;
        storage.folder = Some(folder);
        Ok(storage)
    }

    /// Opens a prefix of a bucket. Variables such as AWS_ACCESS_KEY_ID name its server and the
    /// credentials.
    fn bucket(place: &str, is_dry: bool) -> Result<Storage, Failure> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.is_empty() {
            let problem = "the bucket is missing: name the lake as `s3://BUCKET/PREFIX`";
            return Err(Failure::Usage(String::from(problem)));
        }
        let prefix = prefix_of(prefix)?;
        // Fails only if a provider is installed already, which is then used.
        drop(rustls::crypto::ring::default_provider().install_default());
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build();
        let store = store.map_err(|error| failure(&error))?;
        // The key, and not the text of the option, so that readers find the objects by the URL.
        let url = format!("s3://{bucket}/{prefix}");
        let url = url.trim_end_matches('/').to_owned();
        let mut storage = Storage::new(Arc::new(store), prefix, url, None)?;
        if !is_dry {
            storage.take_lease(lease::TIMES)?;
        }
        Ok(storage)
    }

    fn take_lease(&mut self, times: LeaseTimes) -> Result<(), Failure> {
        let place = (Arc::clone(&self.store), self.key(LOCK));
        self.lease = Some(Lease::take(place, &self.url, &self.runtime, times)?);
        Ok(())
    }

    /// Checks that no other sync writes to the place. A folder is locked by the operating system, and
    /// the lock of a bucket may have been taken over.
    ///
    /// # Errors
    /// If another sync does.
    pub fn confirm_lock(&self) -> Result<(), Failure> {
        match &self.lease {
            Some(lease) => lease.confirm(&self.runtime),
            None => Ok(()),
        }
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
            // A worker thread renews the lock of a bucket, also while no file is written.
            runtime: Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()?,
            folder: None,
            lock,
            lease: None,
            state: Mutex::default(),
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
        self.write_parts(name, vec![bytes])
    }

    /// Writes a file whose bytes are in several parts, like [`Storage::write`].
    ///
    /// # Errors
    /// If it cannot be written, or another sync has taken over the lock: it may have written a file
    /// with this name.
    pub fn write_parts(&self, name: &str, parts: Vec<Vec<u8>>) -> Result<StoredFile, Failure> {
        self.confirm_lock()?;
        let size = parts.iter().map(|part| part.len() as u64).sum();
        let key = self.key(name);
        let mut payload = PutPayloadMut::new();
        parts.into_iter().for_each(|part| payload.push(part.into()));
        let written = self
            .runtime
            .block_on(self.store.put(&key, payload.freeze()));
        written.map_err(|error| failure(&error))?;
        Ok(StoredFile {
            name: name.to_owned(),
            bytes: size,
        })
    }

    /// Reads the state of the lake.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_state(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let key = self.key(name);
        let read = async {
            let found = self.store.get(&key).await?;
            let version = UpdateVersion {
                e_tag: found.meta.e_tag.clone(),
                version: found.meta.version.clone(),
            };
            Ok((found.bytes().await?, version))
        };
        match self.runtime.block_on(read) {
            Ok((bytes, version)) => {
                self.set_version(version);
                Ok(Some(bytes.to_vec()))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Writes the state of the lake, unless another sync has written it since it was read.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_state(&self, name: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        // Another sync that has taken over the lock may have removed the files that the state names.
        self.confirm_lock()?;
        // The lock of a folder keeps other syncs away.
        let version = self
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mode = match version {
            // A local folder has no conditional writes. Its lock excludes other syncs.
            _ if self.lock.is_some() => PutMode::Overwrite,
            Some(version) => PutMode::Update(version),
            None => PutMode::Create,
        };
        let key = self.key(name);
        let written = self.store.put_opts(&key, bytes.into(), mode.into());
        match self.runtime.block_on(written) {
            Ok(written) => {
                self.set_version(written.into());
                Ok(())
            }
            Err(
                object_store::Error::Precondition { .. }
                | object_store::Error::AlreadyExists { .. },
            ) => Err(Failure::Data(format!(
                "another sync has written to {}: run this one again",
                self.url
            ))),
            Err(error) => Err(failure(&error)),
        }
    }

    fn set_version(&self, version: UpdateVersion) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = Some(version);
    }

    /// Removes the files of a folder that a killed sync has left without a name of their own. They
    /// have rows, and listings do not show them. Buckets have none. `is_own` recognizes the complete
    /// names that a sync gives to files.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove_incomplete(
        &self,
        folder: &str,
        is_own: &dyn Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        let Some(place) = &self.folder else {
            return Ok(());
        };
        let entries = match std::fs::read_dir(place.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // `LocalFileSystem` writes to `NAME#NUMBER`, and renames the file when it is complete.
            let (name, suffix) = name.rsplit_once('#').unwrap_or((&name, ""));
            let is_number = !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit());
            if is_number && is_own(name) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
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

    /// Returns the files below a folder of the lake, also those in folders of it.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn list(&self, folder: &str) -> Result<Vec<StoredFile>, Failure> {
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
            .filter_map(|meta| {
                Some(StoredFile {
                    name: name(&meta.location)?,
                    bytes: meta.size,
                })
            })
            .collect())
    }
}

/// Returns the location of a folder in the metadata of tables: its URL, or its plain path if the URL
/// would have percent-encoded characters. Readers of tables, such as pyiceberg and DuckDB, do not decode
/// them, and all of them read plain paths.
fn location_of(folder: &Path) -> String {
    let path = folder.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '~');
    match path.chars().all(is_plain) {
        true => format!("file://{path}"),
        false => path,
    }
}

/// Returns the key of a prefix of a bucket, with the characters of the text itself.
fn prefix_of(prefix: &str) -> Result<Key, Failure> {
    let refused = |problem: &str| {
        Failure::Usage(format!(
            "`{prefix}` is no prefix of a lake: {problem}. Name the lake as `s3://BUCKET/PREFIX`"
        ))
    };
    // Programs that read a URL end its path there, or decode the character.
    if prefix.contains(['#', '?', '%']) {
        return Err(refused("readers of URLs do not agree on `#`, `?` and `%`"));
    }
    // `Key::from` would encode characters that a bucket may have, such as letters with accents.
    Key::parse(prefix).map_err(|error| refused(&error.to_string()))
}

/// Locks a folder for this sync.
fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    // The operating system releases the lock when the process ends, even if it is killed. The file
    // itself stays.
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

pub(super) fn failure(error: &object_store::Error) -> Failure {
    Failure::Data(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(store: &Arc<InMemory>) -> Storage {
        let url = String::from("s3://bucket/lake");
        Storage::new(store.clone(), Key::from("lake"), url, None).unwrap()
    }

    #[test]
    fn names_are_relative_to_the_prefix() {
        let storage = place(&Arc::default());
        assert_eq!(storage.url("v/data/1"), "s3://bucket/lake/v/data/1");
        assert_eq!(storage.read("v/data/1").unwrap(), None);
        assert!(storage.expect("v/data/1").is_err());
        let written = storage.write("v/data/1", vec![1, 2]).unwrap();
        assert_eq!((written.name.as_str(), written.bytes), ("v/data/1", 2));
        storage.write("w/data/1", vec![3]).unwrap();
        assert_eq!(storage.read("v/data/1").unwrap(), Some(vec![1, 2]));
        assert_eq!(storage.list("v/data").unwrap(), [written]);
        storage.remove("v/data/1").unwrap();
        storage.remove("v/data/1").unwrap();
        assert_eq!(storage.list("v/data").unwrap(), Vec::new());
    }

    #[test]
    fn state_of_another_sync_is_not_overwritten() {
        let store = Arc::default();
        let (one, other) = (place(&store), place(&store));
        assert_eq!(one.read_state("state").unwrap(), None);
        assert_eq!(other.read_state("state").unwrap(), None);
        one.write_state("state", vec![1]).unwrap();
        assert!(other.write_state("state", vec![2]).is_err());
        one.write_state("state", vec![3]).unwrap();
        assert_eq!(other.read_state("state").unwrap(), Some(vec![3]));
        other.write_state("state", vec![4]).unwrap();
        assert!(one.write_state("state", vec![5]).is_err());
        assert_eq!(one.read_state("state").unwrap(), Some(vec![4]));
    }

    #[test]
    fn prefix_of_a_bucket_is_the_key_itself() {
        for (prefix, key) in [
            ("a/b/", "a/b"),
            ("", ""),
            ("für uns/x+y@z~{1}", "für uns/x+y@z~{1}"),
        ] {
            assert_eq!(prefix_of(prefix).unwrap().as_ref(), key, "{prefix}");
        }
        for prefix in ["a#b", "a?b", "a%20b", "a//b", "a/../b"] {
            assert!(prefix_of(prefix).is_err(), "{prefix}");
        }
    }

    #[test]
    fn location_of_a_folder_has_no_encoded_characters() {
        let of = |path: &str| location_of(Path::new(path));
        assert_eq!(of("/data/lake-1"), "file:///data/lake-1");
        assert_eq!(of("/my data/l#1 ü%20"), "/my data/l#1 ü%20");
    }

    #[test]
    fn dry_run_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("lake").display().to_string();
        let absent = Storage::open(&to, true).unwrap();
        assert_eq!(absent.read_state("state").unwrap(), None);
        assert!(!folder.path().join("lake").exists());
        std::fs::create_dir(folder.path().join("lake")).unwrap();
        drop(Storage::open(&to, true).unwrap());
        let left = std::fs::read_dir(folder.path().join("lake")).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn folder_is_locked_by_one_sync_and_keeps_complete_files() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("lake").display().to_string();
        let first = Storage::open(&to, false).unwrap();
        assert!(Storage::open(&to, false).is_err());
        first.write_state("state", vec![1]).unwrap();
        drop(first);
        let second = Storage::open(&to, false).unwrap();
        assert_eq!(second.read_state("state").unwrap(), Some(vec![1]));
        second.write("v/data/1", vec![1]).unwrap();
        let data = folder.path().join("lake/v/data");
        for name in ["2#1", "3#12", "4#a", "5#", "foreign#1"] {
            std::fs::write(data.join(name), "rows").unwrap();
        }
        second
            .remove_incomplete("v/data", &|name| name != "foreign")
            .unwrap();
        second.remove_incomplete("absent", &|_| true).unwrap();
        let left = std::fs::read_dir(&data).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["1", "4#a", "5#", "foreign#1"]);
        assert!(Storage::open("gs://bucket/lake", false).is_err());
        assert!(Storage::open("s3://", false).is_err());
    }
}
