//! The EHR of a file: by a mapping file, by its folder or by its name.

use super::catalog::FileProblem;
use super::files::SourceFile;
use crate::outcome::Failure;
use aqlite::document::short_digest;
use clap::ValueEnum;
use glob::Pattern;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf, is_separator};

/// The part of a path that names the EHR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum EhrFrom {
    /// The first folder below a folder of -d, else the folder that contains the file
    Folder,
    /// The name of the file without its ending: each file is an EHR of its own
    File,
}

/// The EHR of a document, with its subject if a mapping names one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// EHR.ehr_id.value.
    pub ehr_id: String,
    /// Id and namespace of the patient.
    pub subject: Option<(String, String)>,
}

/// The rules that find the EHR of a file.
pub struct Owners {
    from: EhrFrom,
    /// The mapping file.
    map: PathBuf,
    rows: Vec<MappingRow>,
    /// The indices of the rows without a pattern: by their whole paths, and also by bare names.
    exact: HashMap<PathBuf, usize>,
    /// The working directory, to which the paths of rows are relative.
    here: PathBuf,
}

/// A row of a mapping file.
struct MappingRow {
    line: u64,
    path: String,
    pattern: Option<Pattern>,
    owner: Owner,
}

/// The columns of a mapping file.
struct Columns {
    path: usize,
    ehr: Option<usize>,
    subject: Option<usize>,
    namespace: Option<usize>,
}

/// The namespace of subjects without one.
const NAMESPACE: &str = "patients";

impl Owners {
    /// Creates the rules, with the rows of a mapping file if there is one.
    ///
    /// # Errors
    /// [`Failure::Data`] for a mapping file that cannot be read, with its line.
    pub fn new(from: EhrFrom, map: Option<&Path>) -> Result<Owners, Failure> {
        let mut owners = Owners {
            from,
            map: map.map(Path::to_owned).unwrap_or_default(),
            rows: Vec::new(),
            exact: HashMap::new(),
            here: std::env::current_dir().unwrap_or_default(),
        };
        if let Some(map) = map {
            owners.read(map)?;
        }
        Ok(owners)
    }

    fn read(&mut self, map: &Path) -> Result<(), Failure> {
        let failed = |problem: &dyn std::fmt::Display| {
            Failure::Data(format!("{}: {problem}", map.display()))
        };
        let reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_path(map);
        let mut reader = reader.map_err(|error| failed(&error))?;
        let headers = reader.headers().map_err(|error| failed(&error))?.clone();
        let columns = Columns::of(&headers).map_err(|problem| failed(&problem))?;
        for record in reader.records() {
            let record = record.map_err(|error| failed(&error))?;
            let line = record.position().map_or(0, csv::Position::line);
            let added = self.add(&columns, &record, line);
            added.map_err(|problem| failed(&format!("line {line}: {problem}")))?;
        }
        self.check_subjects().map_err(|problem| failed(&problem))
    }

    fn add(
        &mut self,
        columns: &Columns,
        record: &csv::StringRecord,
        line: u64,
    ) -> Result<(), String> {
        let path = record.get(columns.path).unwrap_or_default().to_owned();
        let owner = columns.owner(record)?;
        if path.is_empty() {
            return Err(String::from("the path is missing"));
        }
        let is_pattern = path.contains(['*', '?', '[']);
        let pattern = is_pattern.then(|| Pattern::new(without_dot(&path)));
        let pattern = pattern.transpose().map_err(|error| error.to_string())?;
        if pattern.is_none() {
            let whole = self.whole(Path::new(&path));
            if let Some(known) = self.exact.get(&whole).and_then(|row| self.rows.get(*row))
                && known.owner != owner
            {
                return Err(format!("line {} has the path, too", known.line));
            }
            let row = self.rows.len();
            self.exact.insert(whole, row);
            if !path.contains(is_separator) {
                self.exact.insert(PathBuf::from(&path), row);
            }
        }
        self.rows.push(MappingRow {
            line,
            path,
            pattern,
            owner,
        });
        Ok(())
    }

    /// Checks that rows name one subject for each EHR.
    fn check_subjects(&self) -> Result<(), String> {
        let mut subjects: HashMap<&str, (u64, &(String, String))> = HashMap::new();
        for MappingRow { line, owner, .. } in &self.rows {
            let Some(subject) = &owner.subject else {
                continue;
            };
            let known = subjects.entry(&owner.ehr_id).or_insert((*line, subject));
            if known.1 != subject {
                return Err(format!(
                    "line {line}: line {} has another subject of the EHR `{}`",
                    known.0, owner.ehr_id
                ));
            }
        }
        Ok(())
    }

    /// Returns the warning about rows that match none of some files.
    pub fn unmatched(&self, files: &[SourceFile]) -> Option<FileProblem> {
        if self.rows.is_empty() {
            return None;
        }
        let matched = files.iter().flat_map(|file| self.matching(file));
        let matched: HashSet<usize> = matched.collect();
        let rows = self.rows.iter().enumerate();
        let mut unmatched = rows.filter(|(index, _)| !matched.contains(index));
        let (_, first) = unmatched.next()?;
        let further = match unmatched.count() {
            0 => String::new(),
            1 => String::from(", nor does 1 further row"),
            count => format!(", nor do {count} further rows"),
        };
        Some(FileProblem {
            path: self.map.display().to_string(),
            line: u32::try_from(first.line).unwrap_or_default(),
            severity: String::from("warning"),
            code: String::from("CLI0006"),
            message: format!("`{}` matches no file of the data{further}", first.path),
        })
    }

    /// Returns the EHR of a file. A mapping precedes folders and names.
    ///
    /// # Errors
    /// If the name of the EHR is not UTF-8: its replacement could be that of another EHR.
    pub fn of(&self, file: &SourceFile) -> Result<Owner, String> {
        // Called for each document: without a mapping, no path is made to compare with.
        let is_mapped = !self.rows.is_empty();
        let row = is_mapped.then(|| self.matching(file).next()).flatten();
        if let Some(row) = row.and_then(|row| self.rows.get(row)) {
            return Ok(row.owner.clone());
        }
        let stem = || file.path.file_stem().unwrap_or_default().to_string_lossy();
        let name = match self.from {
            EhrFrom::Folder => Cow::Borrowed(file.folder.as_str()),
            EhrFrom::File => stem(),
        };
        if name.contains(char::REPLACEMENT_CHARACTER) {
            return Err(format!(
                "the name `{name}` of the EHR is no UTF-8: rename the file or folder, or map it by --ehr-map"
            ));
        }
        Ok(Owner {
            ehr_id: ehr_id(&name),
            subject: None,
        })
    }

    /// Returns the indices of the rows that match a file; the first one determines its EHR. Exact
    /// rows precede patterns, and a path precedes a bare file name.
    fn matching(&self, file: &SourceFile) -> impl Iterator<Item = usize> {
        let whole = self.whole(&file.path);
        let name = file.path.file_name().unwrap_or_default();
        let exact = [whole.as_path(), Path::new(name)];
        let exact = exact.map(|path| self.exact.get(path).copied());
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let below = whole.strip_prefix(&self.here).unwrap_or(&whole);
        let shown = file.shown();
        let spellings = [
            without_dot(&shown).to_owned(),
            text(below),
            text(&whole),
            text(Path::new(name)),
        ];
        let fits = move |row: &MappingRow| {
            let pattern = row.pattern.as_ref();
            pattern.is_some_and(|pattern| spellings.iter().any(|path| pattern.matches(path)))
        };
        let rows = self.rows.iter().enumerate();
        let patterns = rows.filter(move |(_, row)| fits(row)).map(|(row, _)| row);
        exact.into_iter().flatten().chain(patterns)
    }

    /// Returns a path from the root of the file system, without `.` and `..`.
    fn whole(&self, path: &Path) -> PathBuf {
        let mut whole = PathBuf::new();
        for part in self.here.join(path).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(whole.pop()),
                part => whole.push(part),
            }
        }
        whole
    }
}

/// Returns a path without `./` at its beginning.
fn without_dot(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

impl Columns {
    fn of(headers: &csv::StringRecord) -> Result<Columns, String> {
        let place = |names: &[&str]| {
            let is_named = |header: &str| names.iter().any(|n| header.eq_ignore_ascii_case(n));
            headers.iter().position(is_named)
        };
        let path = place(&["path", "file", "glob"]);
        let columns = Columns {
            path: path.ok_or("the first line names no column `path`")?,
            ehr: place(&["ehr", "ehr_id"]),
            subject: place(&["subject", "subject_id"]),
            namespace: place(&["namespace", "subject_namespace"]),
        };
        if columns.ehr.is_none() && columns.subject.is_none() {
            return Err(String::from(
                "the first line names no column `ehr` or `subject`",
            ));
        }
        Ok(columns)
    }

    fn owner(&self, record: &csv::StringRecord) -> Result<Owner, String> {
        let field = |place: Option<usize>| {
            let text = place.and_then(|place| record.get(place));
            text.filter(|text| !text.is_empty())
        };
        let namespace = field(self.namespace).unwrap_or(NAMESPACE);
        let subject = field(self.subject).map(|id| (id.to_owned(), namespace.to_owned()));
        let ehr_id = match (field(self.ehr), &subject) {
            (Some(id), _) => ehr_id(id),
            // Documents of one subject get one EHR, whatever their folders are. The zero byte
            // separates the two parts unambiguously.
            (None, Some((id, namespace))) => derived_id(&format!("{namespace}\u{0}{id}")),
            (None, None) => return Err(String::from("neither an EHR nor a subject is named")),
        };
        Ok(Owner { ehr_id, subject })
    }
}

/// Returns the id of an EHR from a name: a UUID in lower case, any other name as it is.
pub fn ehr_id(name: &str) -> String {
    let is_uuid = name.len() == 36
        && name.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if is_uuid {
        name.to_ascii_lowercase()
    } else {
        name.to_owned()
    }
}

/// Derives a UUID from a text: equal texts have the same one.
pub fn derived_id(text: &str) -> String {
    let digest = short_digest(text);
    let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    // RFC 9562: version 8 (custom) and the variant binary 10.
    [
        part(0, 8),
        part(8, 12),
        &format!("8{}", part(13, 16)),
        &format!("8{}", part(17, 20)),
        part(20, 32),
    ]
    .join("-")
}
