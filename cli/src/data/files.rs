//! The files that arguments of `-d` name: files, folders and glob patterns.

use crate::outcome::Failure;
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The endings of files of data that are read in a folder. A file that is named itself may have any
/// ending.
pub const DATA: &[&str] = &["json", "xml", "opt", "ndjson", "jsonl", "adls", "adl"];

/// The endings of files that the command `check` reads in a folder.
pub const CHECKED: &[&str] = &[
    "json", "xml", "opt", "ndjson", "jsonl", "adls", "adl", "aql", "gdl", "gdl2",
];

/// The largest depth of folders below a folder of `-d`: symbolic links may form a circle.
const DEPTH: usize = 64;

/// A file of documents or templates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// The path as it is shown: the argument, and the rest below it.
    pub path: PathBuf,
    /// The name of the folder that means a patient: the first folder below the folder of `-d`, or
    /// the folder that contains the file.
    pub folder: String,
    /// Its size in bytes.
    pub size: u64,
    /// The time of its last modification in nanoseconds since 1970.
    pub modified: u64,
}

impl SourceFile {
    /// Returns the ending of the file in lower case; empty if it has none.
    pub fn ending(&self) -> String {
        let ending = self.path.extension().unwrap_or_default();
        ending.to_string_lossy().to_ascii_lowercase()
    }

    /// Returns the path as text.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

/// Lists the files of some arguments, each once, in the order of the arguments and of the paths. Of
/// a folder, those with some endings.
///
/// # Errors
/// [`Failure::Usage`] for an argument that names nothing, [`Failure::Data`] for a folder that
/// cannot be read.
pub fn list(arguments: &[String], endings: &[&str]) -> Result<Vec<SourceFile>, Failure> {
    let mut lister = Lister {
        endings,
        files: Vec::new(),
        known: HashSet::new(),
    };
    for argument in arguments {
        let path = Path::new(argument);
        if path.exists() {
            lister.add(path)?;
            continue;
        }
        let pattern = glob::glob(argument)
            .map_err(|error| Failure::Usage(format!("`{argument}` is no pattern: {error}")))?;
        let mut found: Vec<PathBuf> = pattern.flatten().collect();
        if found.is_empty() {
            return Err(Failure::Usage(format!(
                "`{argument}` names no file or folder"
            )));
        }
        found.sort();
        found.iter().try_for_each(|path| lister.add(path))?;
    }
    Ok(lister.files)
}

struct Lister<'l> {
    endings: &'l [&'l str],
    files: Vec<SourceFile>,
    known: HashSet<PathBuf>,
}

impl Lister<'_> {
    fn add(&mut self, path: &Path) -> Result<(), Failure> {
        let metadata = metadata(path)?;
        if metadata.is_dir() {
            return self.add_folder(path, None, DEPTH);
        }
        self.add_file(path.to_owned(), &metadata, folder_of(path));
        Ok(())
    }

    /// Adds the files of a folder. `patient` is the name of the first folder below that of `-d`.
    fn add_folder(
        &mut self,
        folder: &Path,
        patient: Option<&str>,
        depth: usize,
    ) -> Result<(), Failure> {
        if depth == 0 {
            return Err(at(folder, "folders are nested too deep"));
        }
        let entries = fs::read_dir(folder).map_err(|error| at(folder, error))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(|error| at(folder, error))?.path());
        }
        paths.sort();
        for path in paths {
            if is_hidden(&path) {
                continue;
            }
            let metadata = metadata(&path)?;
            if metadata.is_dir() {
                let name = name_of(&path);
                self.add_folder(&path, Some(patient.unwrap_or(&name)), depth - 1)?;
            } else if self.is_listed(&path) {
                let own = || folder_of(&path);
                let patient = patient.map_or_else(own, str::to_owned);
                self.add_file(path, &metadata, patient);
            }
        }
        Ok(())
    }

    fn is_listed(&self, path: &Path) -> bool {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let mut endings = self.endings.iter();
        endings.any(|listed| ending.eq_ignore_ascii_case(listed))
    }

    fn add_file(&mut self, path: PathBuf, metadata: &Metadata, folder: String) {
        if !self.known.insert(path.clone()) {
            return;
        }
        let modified = metadata.modified().ok();
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanos = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
        self.files.push(SourceFile {
            path,
            folder,
            size: metadata.len(),
            modified: nanos.unwrap_or_default(),
        });
    }
}

fn metadata(path: &Path) -> Result<Metadata, Failure> {
    fs::metadata(path).map_err(|error| at(path, error))
}

fn at(path: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::Data(format!("{}: {problem}", path.display()))
}

fn is_hidden(path: &Path) -> bool {
    name_of(path).starts_with('.')
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the name of the folder that contains a file, also of a path such as `a.json`.
fn folder_of(path: &Path) -> String {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = name_of(folder);
    if !name.is_empty() && name != ".." {
        return name;
    }
    let whole = fs::canonicalize(if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    });
    whole.map_or_else(|_| String::from("data"), |whole| name_of(&whole))
}
