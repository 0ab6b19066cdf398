//! The bytes of segments: in memory, or in an index file.
//!
//! An index file consists of the values and heads of all segments, the catalog, and a footer with
//! the place and the checksum of the catalog. It is written under another name, and gets its own by
//! one operation. So it is complete or absent.

use super::catalog::{Catalog, Place};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

/// The first and the last bytes of an index file. The last one is the version of the form.
const MAGIC: [u8; 8] = *b"AQLIDX\0\x01";

/// Bytes of the footer: start, length and checksum of the catalog, fingerprint, magic.
const FOOTER: u64 = 8 + 8 + 8 + 16 + 8;

/// The place of the bytes of segments.
pub enum Store {
    /// Memory.
    Memory(Vec<u8>),
    /// An index file.
    File(File),
}

impl Store {
    /// Reads a range of bytes.
    ///
    /// # Errors
    /// If the file cannot be read or is too short.
    pub fn read(&self, place: Place) -> io::Result<Vec<u8>> {
        let too_short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        match self {
            Store::Memory(bytes) => {
                let start = usize::try_from(place.start).map_err(|_| too_short())?;
                let length = usize::try_from(place.length).map_err(|_| too_short())?;
                let found = bytes.get(start..start.saturating_add(length));
                found.map(<[u8]>::to_vec).ok_or_else(too_short)
            }
            Store::File(file) => {
                let mut file = file;
                file.seek(SeekFrom::Start(place.start))?;
                let mut bytes = Vec::new();
                if file.take(place.length).read_to_end(&mut bytes)? as u64 != place.length {
                    return Err(too_short());
                }
                Ok(bytes)
            }
        }
    }
}

/// The receiver of the bytes of segments.
pub enum Writer {
    /// Memory.
    Memory(Vec<u8>),
    /// A new index file.
    File(IndexWriter),
}

/// An index file that is being written.
pub struct IndexWriter {
    file: BufWriter<File>,
    length: u64,
    temporary: PathBuf,
    path: PathBuf,
}

impl Writer {
    /// Appends bytes.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<Place> {
        let length = bytes.len() as u64;
        let start = match self {
            Writer::Memory(all) => {
                let start = all.len() as u64;
                all.extend_from_slice(bytes);
                start
            }
            Writer::File(index) => {
                index.file.write_all(bytes)?;
                index.length += length;
                index.length - length
            }
        };
        Ok(Place { start, length })
    }

    /// Completes the store. `keep` is false if the index file must not be used again.
    ///
    /// # Errors
    /// If the index file cannot be completed.
    pub fn finish(self, catalog: &Catalog, fingerprint: u128, keep: bool) -> io::Result<Store> {
        match self {
            Writer::Memory(bytes) => Ok(Store::Memory(bytes)),
            Writer::File(index) => index.finish(catalog, fingerprint, keep),
        }
    }
}

impl IndexWriter {
    /// Creates an index file. Only the user may read it, because it holds clinical data.
    ///
    /// # Errors
    /// If the folder or the file cannot be created.
    pub fn create(path: &Path) -> io::Result<IndexWriter> {
        let folder = path.parent().unwrap_or(Path::new("."));
        create_private_folder(folder)?;
        remove_old(folder);
        let temporary = path.with_extension(format!("{}.part", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).read(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = BufWriter::with_capacity(1 << 18, options.open(&temporary)?);
        file.write_all(&MAGIC)?;
        Ok(IndexWriter {
            file,
            length: MAGIC.len() as u64,
            temporary,
            path: path.to_owned(),
        })
    }

    fn finish(mut self, catalog: &Catalog, fingerprint: u128, keep: bool) -> io::Result<Store> {
        let bytes = bitcode::encode(catalog);
        let mut footer = Vec::with_capacity(FOOTER as usize);
        footer.extend_from_slice(&self.length.to_le_bytes());
        footer.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        footer.extend_from_slice(&checksum(&bytes).to_le_bytes());
        footer.extend_from_slice(&fingerprint.to_le_bytes());
        footer.extend_from_slice(&MAGIC);
        self.file.write_all(&bytes)?;
        self.file.write_all(&footer)?;
        self.file.flush()?;
        if keep {
            fs::rename(&self.temporary, &self.path)?;
        } else {
            // Without its name the file lasts as long as it is open. Where that is impossible, a
            // later run removes it.
            let _ = fs::remove_file(&self.temporary);
        }
        Ok(Store::File(self.file.get_ref().try_clone()?))
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        // The file has another name by now, if it was completed.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Opens an index file. Returns `None` if it is absent, damaged, of another form, or of other data:
/// it is written again then.
pub fn open(path: &Path, fingerprint: u128) -> Option<(Store, Catalog)> {
    let mut file = OpenOptions::new().read(true).open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let footer_start = length.checked_sub(FOOTER)?;
    file.seek(SeekFrom::Start(footer_start)).ok()?;
    let mut footer = Vec::new();
    (&file).take(FOOTER).read_to_end(&mut footer).ok()?;
    let number = |at: usize| {
        let bytes = footer.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let (start, size, sum) = (number(0)?, number(8)?, number(16)?);
    let of = u128::from_le_bytes(footer.get(24..40)?.try_into().ok()?);
    let is_whole = start.checked_add(size) == Some(footer_start);
    if of != fingerprint || footer.get(40..)? != MAGIC || !is_whole {
        return None;
    }
    let store = Store::File(file);
    let bytes = store
        .read(Place {
            start,
            length: size,
        })
        .ok()?;
    if checksum(&bytes) != sum {
        return None;
    }
    let catalog = bitcode::decode(&bytes).ok()?;
    // The time of the last use, for the removal of old files. It matters for nothing else.
    if let Store::File(file) = &store {
        let _ = file.set_modified(std::time::SystemTime::now());
    }
    Some((store, catalog))
}

fn checksum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Index files that were not used for this number of seconds are removed: 30 days.
const UNUSED: u64 = 30 * 86_400;

/// Incomplete files are removed after this number of seconds: a day.
const INCOMPLETE: u64 = 86_400;

/// Returns the age in seconds after which a file is removed; `None` if its name is none of an index
/// file: a folder that the user names may have files of other programs.
fn age_limit(name: &str) -> Option<u64> {
    let (key, ending) = name.split_once('.')?;
    let is_key = |c: u8| c.is_ascii_digit() || matches!(c, b'a'..=b'f');
    if key.len() != 32 || !key.bytes().all(is_key) {
        return None;
    }
    // An incomplete file has the id of its process before its ending.
    match ending.split_once('.') {
        None => (ending == "index").then_some(UNUSED),
        Some((process, ending)) => {
            (ending == "part" && process.parse::<u32>().is_ok()).then_some(INCOMPLETE)
        }
    }
}

/// Removes index files that were not used for long. Errors do not matter: a later run tries again.
fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Some(most) = age_limit(&entry.file_name().to_string_lossy()) else {
            continue;
        };
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age.as_secs() > most) {
            let _ = fs::remove_file(&path);
        }
    }
}
