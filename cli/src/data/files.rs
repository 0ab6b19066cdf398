//! The files that arguments of `-d` name: files, folders and glob patterns.

use crate::outcome::Failure;
use crate::repository;
use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

/// The endings of files of data that are read in a folder. A file that is named itself may have any
/// ending.
pub const DATA: &[&str] = &["json", "xml", "opt", "ndjson", "jsonl", "adls", "adl"];

/// The endings of files that the command `check` reads in a folder.
pub const CHECKED: &[&str] = &[
    "json", "xml", "opt", "ndjson", "jsonl", "adls", "adl", "aql", "gdl", "gdl2",
];

/// The argument that means the standard input.
pub const STANDARD_INPUT: &str = "-";

/// The standard input, which is read once.
static INPUT: OnceLock<Vec<u8>> = OnceLock::new();

/// A file that is read, or the standard input.
pub enum Opened {
    /// A file.
    File(File),
    /// The standard input.
    Input(Cursor<&'static [u8]>),
}

impl Read for Opened {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Opened::File(file) => file.read(into),
            Opened::Input(input) => input.read(into),
        }
    }
}

impl Seek for Opened {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Opened::File(file) => file.seek(to),
            Opened::Input(input) => input.seek(to),
        }
    }
}

/// Opens a file, or the standard input for [`STANDARD_INPUT`].
///
/// # Errors
/// If it cannot be read.
pub fn open(path: &Path) -> io::Result<Opened> {
    match path == Path::new(STANDARD_INPUT) {
        false => Ok(Opened::File(File::open(path)?)),
        true => Ok(Opened::Input(Cursor::new(standard_input()?))),
    }
}

/// Reads a file, or the standard input for [`STANDARD_INPUT`].
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    match path == Path::new(STANDARD_INPUT) {
        false => fs::read(path),
        true => standard_input().map(<[u8]>::to_vec),
    }
}

/// Reads a file of text, or the standard input for [`STANDARD_INPUT`].
///
/// # Errors
/// If it cannot be read or is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::other("the text is no UTF-8"))
}

/// Reads the standard input the first time, and returns it.
fn standard_input() -> io::Result<&'static [u8]> {
    if let Some(input) = INPUT.get() {
        return Ok(input);
    }
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    Ok(INPUT.get_or_init(|| input))
}

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
    /// Returns the ending of the file in lower case; empty if it has none. The standard input has
    /// the one that its content would have.
    pub fn ending(&self) -> String {
        if self.path == Path::new(STANDARD_INPUT) {
            return String::from(ending_of_input(INPUT.get().map_or(&[], Vec::as_slice)));
        }
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
/// [`Failure::Usage`] for an argument that names nothing or a repository, [`Failure::Data`] for a folder that
/// cannot be read.
pub fn list(arguments: &[String], endings: &[&str]) -> Result<Vec<SourceFile>, Failure> {
    repository::check_files(arguments)?;
    let mut lister = Lister {
        endings,
        files: Vec::new(),
        known: HashSet::new(),
    };
    for argument in arguments {
        let path = Path::new(argument);
        if argument == STANDARD_INPUT {
            lister.add_input()?;
            continue;
        }
        if path.exists() {
            lister.add(path)?;
            continue;
        }
        // A shell on Windows does not expand patterns, and quoted ones arrive unexpanded elsewhere.
        let pattern = glob::glob(argument)
            .map_err(|error| Failure::Usage(format!("`{argument}` is no pattern: {error}")))?;
        let mut found: Vec<PathBuf> = pattern.flatten().collect();
        if found.is_empty() {
            return Err(Failure::Usage(format!(
                "`{argument}` names no file or folder"
            )));
        }
        // The order of a directory depends on the file system. Equal data must have equal ordinals.
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

    /// Adds the standard input. Its documents belong to one EHR, unless they name another.
    fn add_input(&mut self) -> Result<(), Failure> {
        let path = PathBuf::from(STANDARD_INPUT);
        let input = standard_input().map_err(|error| at(&path, error))?;
        if self.known.insert(path.clone()) {
            self.files.push(SourceFile {
                path,
                folder: String::from("input"),
                size: input.len() as u64,
                modified: 0,
            });
        }
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
            // Such as `.git`, and files of editors.
            if is_hidden(&path) {
                continue;
            }
            let metadata = metadata(&path)?;
            if metadata.is_dir() {
                let name = name_of(&path);
                // Only the first folder below the argument names the patient, however deep a file
                // lies.
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

/// Returns the ending of a file with the content of the standard input: `ndjson` for several
/// objects, one on each line.
fn ending_of_input(input: &[u8]) -> &'static str {
    let mut lines = input.split(|byte| *byte == b'\n');
    let mut lines = lines
        .by_ref()
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty());
    let is_object = |line: &[u8]| line.starts_with(b"{") && line.ends_with(b"}");
    match (lines.next(), lines.next()) {
        (Some(first), Some(second)) if is_object(first) && is_object(second) => "ndjson",
        _ => "",
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
    // `a.json` and `../a.json` have no name of a folder in the path, so it is read from the file
    // system.
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
