//! The files that arguments of `-d` name: files, folders and glob patterns.

use crate::outcome::Failure;
use crate::repository;
use std::collections::{HashMap, HashSet};
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
    /// The identity of the file: that folder and the path below it. It does not depend on the
    /// spelling of the argument, the working directory or the place of the folder.
    pub identity: String,
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
/// a folder, those with some endings. A link that leads nowhere is listed: its reader reports it.
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
        identities: HashMap::new(),
        real_folders: HashMap::new(),
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
    /// The files, by their places: two spellings of an argument name one file. A link in a folder is
    /// a file of its own.
    known: HashSet<PathBuf>,
    /// The numbers of files with one identity.
    identities: HashMap<String, u32>,
    /// The paths of the folders of single files without links, by their paths as named.
    real_folders: HashMap<PathBuf, PathBuf>,
}

/// A folder whose files are listed.
struct ListedFolder<'f> {
    path: &'f Path,
    /// The path of the folder of `-d` without links, and the rest as it is named.
    place: PathBuf,
    /// The path without links.
    real: PathBuf,
    /// The name of the first folder below that of `-d`, and the path from there to this folder;
    /// absent for the folder of `-d`.
    patient: Option<(String, String)>,
    above: Option<&'f ListedFolder<'f>>,
}

impl Lister<'_> {
    fn add(&mut self, path: &Path) -> Result<(), Failure> {
        let metadata = fs::metadata(path).map_err(|error| at(path, error))?;
        if metadata.is_dir() {
            let real = real(path);
            let folder = ListedFolder {
                path,
                place: real.clone(),
                real,
                patient: None,
                above: None,
            };
            return self.add_folder(&folder, DEPTH);
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let folder = match self.real_folders.get(parent) {
            Some(folder) => folder.clone(),
            None => real(parent),
        };
        self.add_file(path, &folder, Some(&metadata), (folder_of(path), ""));
        self.real_folders.insert(parent.to_owned(), folder);
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
                identity: String::from(STANDARD_INPUT),
                size: input.len() as u64,
                modified: 0,
            });
        }
        Ok(())
    }

    /// Adds the files of a folder.
    fn add_folder(&mut self, folder: &ListedFolder<'_>, depth: usize) -> Result<(), Failure> {
        if depth == 0 {
            return Err(at(folder.path, "folders are nested too deep"));
        }
        let entries = match folder.entries() {
            Ok(entries) => entries,
            Err(failure) => {
                let above = folder.above.ok_or(failure)?;
                // Its reader reports it, as it does a file that cannot be read.
                let owner = (folder_of(folder.path), "");
                self.add_file(folder.path, &above.place, None, owner);
                return Ok(());
            }
        };
        for (path, is_link) in entries {
            let metadata = fs::metadata(&path).ok();
            if metadata.as_ref().is_some_and(Metadata::is_dir) {
                let below = folder.folder(&path, is_link);
                // A link to a folder above would be followed without end, or lists the folders
                // beside that of `-d`.
                if !(is_link && folder.is_in(&below.real)) {
                    self.add_folder(&below, depth - 1)?;
                }
                continue;
            }
            // A pipe or a socket could be read without end.
            let is_file = metadata.as_ref().is_none_or(Metadata::is_file);
            // A link that leads nowhere may be one to a folder, whose documents are missing then.
            let is_lost = metadata.is_none() && path.extension().is_none();
            if is_file && (is_lost || self.is_listed(&path)) {
                let own = || (folder_of(&path), "");
                let patient = folder.patient.as_ref();
                let owner =
                    patient.map_or_else(own, |(name, below)| (name.clone(), below.as_str()));
                self.add_file(&path, &folder.place, metadata.as_ref(), owner);
            }
        }
        Ok(())
    }

    fn is_listed(&self, path: &Path) -> bool {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let mut endings = self.endings.iter();
        endings.any(|listed| ending.eq_ignore_ascii_case(listed))
    }

    /// Adds a file. `place` is that of its folder, `folder` the name of the folder that means a patient,
    /// and `below` the path from there to the folder of the file.
    fn add_file(
        &mut self,
        path: &Path,
        place: &Path,
        metadata: Option<&Metadata>,
        (folder, below): (String, &str),
    ) {
        let place = place.join(path.file_name().unwrap_or_default());
        if !self.known.insert(place) {
            return;
        }
        let modified = metadata.and_then(|metadata| metadata.modified().ok());
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanos = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
        let identity = self.identity(format!("{folder}/{below}{}", name_of(path)));
        self.files.push(SourceFile {
            path: path.to_owned(),
            folder,
            identity,
            size: metadata.map_or(0, Metadata::len),
            modified: nanos.unwrap_or_default(),
        });
    }

    /// Returns the identity of a file. Files of folders with one name, in several places, have a
    /// number behind it from the second one on.
    fn identity(&mut self, path: String) -> String {
        let count = self.identities.entry(path.clone()).or_default();
        *count += 1;
        match *count {
            1 => path,
            // No path has a zero byte.
            count => format!("{path}\u{0}{count}"),
        }
    }
}

impl ListedFolder<'_> {
    /// Returns the paths of its entries in their order, and whether each is a link.
    fn entries(&self) -> Result<Vec<(PathBuf, bool)>, Failure> {
        let failed = |error| at(self.path, error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_link = entry.file_type().map_err(failed)?.is_symlink();
            // Such as `.git`, and files of editors.
            if !is_hidden(&entry.path()) {
                entries.push((entry.path(), is_link));
            }
        }
        entries.sort();
        Ok(entries)
    }

    /// Returns the folder at a path in this one.
    fn folder<'f>(&'f self, path: &'f Path, is_link: bool) -> ListedFolder<'f> {
        let name = name_of(path);
        let below = path.file_name().unwrap_or_default();
        ListedFolder {
            path,
            place: self.place.join(below),
            real: match is_link {
                true => real(path),
                false => self.real.join(below),
            },
            // Only the first folder below the argument names the patient, however deep a file lies.
            patient: Some(match &self.patient {
                Some((patient, below)) => (patient.clone(), format!("{below}{name}/")),
                None => (name, String::new()),
            }),
            above: Some(self),
        }
    }

    /// Returns whether it is a folder without links, or below it, also by the links to it.
    fn is_in(&self, real: &Path) -> bool {
        self.real.starts_with(real) || self.above.is_some_and(|above| above.is_in(real))
    }
}

/// Returns the path of a folder without links.
fn real(folder: &Path) -> PathBuf {
    let named = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    fs::canonicalize(named).unwrap_or_else(|_| named.to_owned())
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
    let whole = real(folder);
    match name_of(&whole) {
        name if name.is_empty() => String::from("data"),
        name => name,
    }
}
