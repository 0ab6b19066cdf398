//! The EHR of a file: by a mapping file, by its folder or by its name.

use super::files::SourceFile;
use crate::outcome::Failure;
use aqlite::document::short_digest;
use clap::ValueEnum;
use glob::{MatchOptions, Pattern};
use std::collections::HashMap;
use std::path::Path;

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
    exact: HashMap<String, Owner>,
    patterns: Vec<(Pattern, Owner)>,
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
            exact: HashMap::new(),
            patterns: Vec::new(),
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
            let added = self.add(&columns, &record);
            added.map_err(|problem| failed(&format!("line {line}: {problem}")))?;
        }
        Ok(())
    }

    fn add(&mut self, columns: &Columns, record: &csv::StringRecord) -> Result<(), String> {
        let path = record.get(columns.path).unwrap_or_default().to_owned();
        let owner = columns.owner(record)?;
        if path.is_empty() {
            return Err(String::from("the path is missing"));
        }
        if path.contains(['*', '?', '[']) {
            let pattern = Pattern::new(&path).map_err(|error| error.to_string())?;
            self.patterns.push((pattern, owner));
        } else {
            self.exact.insert(path, owner);
        }
        Ok(())
    }

    /// Returns the EHR of a file. A mapping precedes folders and names.
    pub fn of(&self, file: &SourceFile) -> Owner {
        if let Some(owner) = self.mapped(file) {
            return owner.clone();
        }
        let stem = || file.path.file_stem().unwrap_or_default().to_string_lossy();
        let ehr_id = match self.from {
            EhrFrom::Folder => ehr_id(&file.folder),
            EhrFrom::File => ehr_id(&stem()),
        };
        Owner {
            ehr_id,
            subject: None,
        }
    }

    fn mapped(&self, file: &SourceFile) -> Option<&Owner> {
        if self.exact.is_empty() && self.patterns.is_empty() {
            return None;
        }
        let path = file.shown();
        // A mapping names files without `./`, which a shell may add.
        let path = path.strip_prefix("./").unwrap_or(&path);
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        // Exact names precede patterns, and a path precedes a bare file name.
        if let Some(owner) = self.exact.get(path).or_else(|| self.exact.get(&*name)) {
            return Some(owner);
        }
        let options = MatchOptions::default();
        let fits = |pattern: &Pattern| {
            pattern.matches_with(path, options) || pattern.matches_with(&name, options)
        };
        let found = self.patterns.iter().find(|(pattern, _)| fits(pattern));
        found.map(|(_, owner)| owner)
    }
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
