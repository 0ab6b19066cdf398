//! The sizes of the files of a repository, and the free space of their disk.

use super::database::{Files, beside};
use super::system;
use std::fs;
use std::path::Path;

/// The end of the name of a write-ahead log.
pub const WAL: &str = "-wal";

/// The sizes of the files of a repository in bytes. An absent file has none.
pub struct StorageSizes {
    /// The database of the documents.
    pub database: u64,
    /// Its write-ahead log.
    pub database_wal: u64,
    /// The database of the access log.
    pub access_log: u64,
    /// Its write-ahead log.
    pub access_log_wal: u64,
    /// All files of segments.
    pub segments: u64,
    /// The bytes of the disk that the server may still write; 0 if the system does not report them.
    pub free: u64,
}

/// Measures the files of a repository. It reads one directory entry for each segment.
pub fn measure(files: &Files) -> StorageSizes {
    StorageSizes {
        database: size(&files.database),
        database_wal: size(&beside(&files.database, WAL)),
        access_log: size(&files.log),
        access_log_wal: size(&beside(&files.log, WAL)),
        segments: size_of_all(&files.segments),
        free: system::free_bytes(folder_of(&files.database)).unwrap_or_default(),
    }
}

/// Returns the folder of a file.
pub fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|f| !f.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

/// Returns the size of all files in a folder. A file that is removed meanwhile has none.
fn size_of_all(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.metadata().map_or(0, |file| file.len()))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::beside(&folder.path().join("a.db")).unwrap();
        fs::create_dir(&files.segments).unwrap();
        for (path, bytes) in [
            (files.database.clone(), 5),
            (beside(&files.database, WAL), 7),
            (files.log.clone(), 11),
            (files.segments.join("1"), 13),
            (files.segments.join("2"), 17),
        ] {
            fs::write(path, vec![0; bytes]).unwrap();
        }
        let sizes = measure(&files);
        assert_eq!((sizes.database, sizes.database_wal), (5, 7));
        assert_eq!((sizes.access_log, sizes.access_log_wal), (11, 0));
        assert_eq!(sizes.segments, 30);
    }

    #[test]
    fn folder_of_a_bare_name_is_the_present_one() {
        assert_eq!(folder_of(Path::new("a.db")), Path::new("."));
        assert_eq!(folder_of(Path::new("b/a.db")), Path::new("b"));
    }
}
