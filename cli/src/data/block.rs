//! Blocks: documents that one thread reads and packs into one segment.

use super::catalog::{EhrFacts, FileProblem, UNREADABLE, VersionFacts, ehr_number, object_hash};
use super::document::{Document, Reader};
use super::files::{self, SourceFile};
use super::locate::line_of;
use super::owner::{Owner, Owners, ehr_id};
use super::templates::Templates;
use super::version::{SYSTEM, VersionUid, Versions, kind_of};
use crate::report::line_without_code;
use aqlite::diag::{Finding, Severity};
use aqlite::document::{
    Batch, DocRow, EhrRow, EncodedSegment, Known, LayoutStore, NothingKnown, ObjectKind, pack,
};
use aqlite::rm::class::Attr;
use aqlite::rm::time;
use aqlite::rm::tree::Tree;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

/// The number of documents of one file that are not lines: the ordinals of the next file follow.
pub const DOCUMENTS_OF_FILE: u64 = 1 << 16;

/// The number of documents of a line: the ordinals of the next line follow.
pub const DOCUMENTS_OF_LINE: u64 = 1 << 12;

/// The maximum number of findings that are listed of one text.
const FINDINGS_OF_TEXT: usize = 1_000;

/// The input of a block.
#[derive(Clone, Debug)]
pub enum Unit {
    /// Files, by their indices.
    Files(Range<usize>),
    /// Lines of a file.
    Lines {
        /// The index of the file.
        file: usize,
        /// The first byte.
        start: u64,
        /// The number of bytes.
        length: u64,
        /// The number of the first line, from 1.
        line: u32,
    },
}

/// Everything that threads share while they read blocks.
pub struct Shared<'s> {
    /// The files.
    pub files: &'s [SourceFile],
    /// The templates.
    pub templates: &'s Templates,
    /// The rules that find EHRs.
    pub owners: &'s Owners,
    /// EHR.time_created of all EHRs.
    pub created: &'s str,
    /// Called with the bytes that were read; returns false to stop.
    pub advance: &'s (dyn Fn(u64) -> bool + Sync),
}

/// A block that was read.
pub struct Block {
    /// Its segment.
    pub segment: EncodedSegment,
    /// The number of its documents.
    pub documents: u32,
    /// Its EHRs.
    pub ehrs: Vec<EhrFacts>,
    /// Its versions in ascending order of ordinals.
    pub versions: Vec<VersionFacts>,
    /// The problems of its files.
    pub problems: Vec<FileProblem>,
}

/// The place of a document.
#[derive(Clone, Copy)]
struct Origin<'o> {
    file: &'o SourceFile,
    /// The line of its text in a file of lines.
    line: Option<u32>,
}

/// Builds the segment of a block.
pub struct Builder<'b> {
    shared: &'b Shared<'b>,
    versions: Versions,
    batch: Batch,
    layouts: LayoutStore,
    numbers: HashMap<String, usize>,
    ehrs: Vec<EhrFacts>,
    facts: Vec<VersionFacts>,
    problems: Vec<FileProblem>,
}

/// Reads a block. `first` is the ordinal of its first document.
///
/// # Errors
/// If an invariant is broken. Problems of files are part of the block.
pub fn read(unit: &Unit, first: u64, shared: &Shared<'_>) -> Result<Block, String> {
    let mut builder = Builder::new(shared)?;
    match unit {
        Unit::Files(range) => {
            let files = shared.files.get(range.clone()).unwrap_or_default();
            for (number, file) in (0..).zip(files) {
                builder.add_file(file, first + number * DOCUMENTS_OF_FILE);
                // False means that the user has pressed Ctrl-C.
                if !(shared.advance)(file.size) {
                    break;
                }
            }
        }
        Unit::Lines {
            file,
            start,
            length,
            line,
        } => {
            if let Some(file) = shared.files.get(*file) {
                // An error of reading is a problem of this file. Other blocks are read.
                let read = builder.add_lines(file, (*start, *length), *line, first);
                if let Err(error) = read {
                    builder.add_problem(file, 0, (UNREADABLE, error.to_string()));
                }
            }
        }
    }
    builder.finish()
}

impl<'b> Builder<'b> {
    /// Creates an empty block.
    ///
    /// # Errors
    /// See [`Versions::new`].
    pub fn new(shared: &'b Shared<'b>) -> Result<Builder<'b>, String> {
        Ok(Builder {
            shared,
            versions: Versions::new()?,
            batch: Batch::new(),
            layouts: LayoutStore::default(),
            numbers: HashMap::new(),
            ehrs: Vec::new(),
            facts: Vec::new(),
            problems: Vec::new(),
        })
    }

    /// Encodes the block.
    ///
    /// # Errors
    /// If the batch is broken.
    pub fn finish(self) -> Result<Block, String> {
        let numbers: Vec<u64> = self.ehrs.iter().map(|ehr| ehr.number).collect();
        let documents = u32::try_from(self.batch.len()).map_err(|_| "a block is too large")?;
        Ok(Block {
            segment: self.batch.to_segment(&numbers)?,
            documents,
            ehrs: self.ehrs,
            versions: self.facts,
            problems: self.problems,
        })
    }

    fn add_file(&mut self, file: &SourceFile, first: u64) {
        let text = match files::read(&file.path) {
            Ok(bytes) => String::from_utf8(bytes),
            Err(error) => {
                return self.add_problem(file, 0, (UNREADABLE, error.to_string()));
            }
        };
        match text {
            Ok(text) => self.add_text(&text, Origin { file, line: None }, first),
            Err(_) => self.add_problem(file, 0, ("CLI0002", String::from("the text is no UTF-8"))),
        }
    }

    fn add_lines(
        &mut self,
        file: &SourceFile,
        (start, length): (u64, u64),
        first_line: u32,
        first: u64,
    ) -> std::io::Result<()> {
        let mut opened = files::open(&file.path)?;
        opened.seek(SeekFrom::Start(start))?;
        let mut reader = BufReader::with_capacity(1 << 16, opened.take(length));
        let mut bytes = Vec::new();
        for number in 0.. {
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let line = Some(first_line + number);
            match std::str::from_utf8(&bytes) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => {
                    self.add_text(
                        text,
                        Origin { file, line },
                        first + u64::from(number) * DOCUMENTS_OF_LINE,
                    );
                }
                Err(_) => {
                    let problem = String::from("the text is no UTF-8");
                    self.add_problem(file, first_line + number, ("CLI0002", problem));
                }
            }
            if !(self.shared.advance)(bytes.len() as u64) {
                break;
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str, origin: Origin<'_>, first: u64) {
        let reader = Reader {
            templates: self.shared.templates,
            now: self.shared.created,
        };
        let limit = if origin.line.is_some() {
            DOCUMENTS_OF_LINE
        } else {
            DOCUMENTS_OF_FILE
        };
        match reader.read(text) {
            Ok(documents) if documents.len() as u64 > limit => {
                let problem = format!("more than {limit} documents are in one text");
                self.add_problem(origin.file, origin.line.unwrap_or(0), ("CLI0003", problem));
            }
            Ok(documents) => {
                for (index, document) in (0..).zip(documents) {
                    self.add_document(document, origin, (first, index));
                }
            }
            Err(findings) => {
                // Each is located by a search from the beginning of the text.
                for finding in findings.iter().take(FINDINGS_OF_TEXT) {
                    self.add_finding(finding, text, origin);
                }
                if let Some(further) = findings.len().checked_sub(FINDINGS_OF_TEXT + 1) {
                    let problem = format!("{} further findings are not listed", further + 1);
                    let line = origin.line.unwrap_or(0);
                    self.add_problem(origin.file, line, ("CLI0004", problem));
                }
            }
        }
    }

    /// Adds a document. `first` is the ordinal of the first document of its text, and `index` its
    /// place in the text.
    fn add_document(&mut self, document: Document, origin: Origin<'_>, (first, index): (u64, u64)) {
        let ordinal = first + index;
        let line = origin.line.unwrap_or(0);
        let owner = match &document.ehr {
            Some(id) => Ok(Owner {
                ehr_id: ehr_id(id),
                subject: None,
            }),
            None => self.shared.owners.of(origin.file),
        };
        let owner = match owner {
            Ok(owner) => owner,
            Err(problem) => return self.add_problem(origin.file, line, ("CLI0005", problem)),
        };
        let kind = kind_of(&document);
        let uid = VersionUid::of(&document, || match kind {
            ObjectKind::EhrStatus => format!("status of {}", owner.ehr_id),
            // Other files have no part in it, so that a document keeps its uid when files are added,
            // and neither has the spelling of the argument.
            _ => format!("{} {line} {index}", origin.file.identity),
        });
        let uid = match uid {
            Ok(uid) => uid,
            Err(problem) => return self.add_problem(origin.file, line, ("CLI0107", problem)),
        };
        let micros = time::from_unix_millis(
            i64::try_from(origin.file.modified / 1_000_000).unwrap_or_default(),
        );
        let committed = time::format_nearest_utc(micros);
        self.add_version(owner, (kind, uid), document, (ordinal, &committed));
    }

    /// Adds the version of a document. `at` is its ordinal and the time of its commit.
    pub fn add_version(
        &mut self,
        owner: Owner,
        (kind, uid): (ObjectKind, VersionUid),
        document: Document,
        at: (u64, &str),
    ) {
        let tree = document.tree;
        let deleted = tree.root().is_none();
        let (ordinal, committed) = at;
        let ehr = self.ehr(owner, ordinal);
        if kind == ObjectKind::EhrStatus {
            self.set_status(ehr, &tree);
        }
        let template = template_id(&tree).and_then(|id| self.shared.templates.get(id));
        let known: &dyn Known = match template {
            Some(found) => &found.known,
            None => &NothingKnown,
        };
        let preceding = document.preceding.as_deref();
        let made = || self.versions.around(tree, &uid, preceding, committed);
        let has_uid = |version: &Tree| {
            let root = version.root();
            root.is_some_and(|root| root.text_along(&[Attr::UID, Attr::VALUE]).is_some())
        };
        let version = document.version.filter(has_uid).unwrap_or_else(made);
        let Some(root) = version.root() else {
            return;
        };
        let packed = pack(root, known, &self.layouts);
        self.facts.push(VersionFacts {
            object: object_hash(&uid.object_id),
            ehr: self.ehrs.get(ehr).map_or(0, |ehr| ehr.number),
            number: uid.number,
            ordinal,
            // All statuses of an EHR without a uid get the same derived one. The newest of them
            // counts.
            is_unique: kind != ObjectKind::EhrStatus,
        });
        let row = DocRow {
            kind,
            object_id: uid.object_id,
            number: uid.number,
            ordinal,
            latest: true,
            deleted,
        };
        self.batch.add(ehr as u32, row, &packed);
    }

    /// Sets the flags of an EHR by its EHR_STATUS.
    fn set_status(&mut self, ehr: usize, status: &Tree) {
        let root = status.root();
        let queryable = root.and_then(|root| root.text_at(Attr::IS_QUERYABLE));
        if let Some(facts) = self.ehrs.get_mut(ehr) {
            // A missing or malformed flag counts as true, as in the default status.
            facts.is_queryable = queryable != Some("false");
            facts.has_status = true;
        }
    }

    /// Returns the number of an EHR in the block, which is the number in the batch.
    fn ehr(&mut self, owner: Owner, ordinal: u64) -> usize {
        if let Some(number) = self.numbers.get(&owner.ehr_id) {
            return *number;
        }
        let number = self.ehrs.len();
        self.batch.add_ehr(EhrRow {
            ehr_id: owner.ehr_id.clone(),
            system_id: SYSTEM.to_owned(),
            time_created: self.shared.created.to_owned(),
            is_queryable: true,
        });
        self.numbers.insert(owner.ehr_id.clone(), number);
        self.ehrs.push(EhrFacts {
            number: ehr_number(&owner.ehr_id),
            ehr_id: owner.ehr_id,
            first: ordinal,
            is_queryable: true,
            has_status: false,
            subject: owner.subject,
        });
        number
    }

    fn add_finding(&mut self, finding: &Finding, text: &str, origin: Origin<'_>) {
        let line = origin.line.unwrap_or_else(|| line_of(text, finding));
        let is_error = finding.severity == Severity::Error;
        self.problems.push(FileProblem {
            path: origin.file.shown(),
            line,
            severity: String::from(if is_error { "error" } else { "warning" }),
            code: finding.code.to_owned(),
            // The code has a column of its own in a problem.
            message: line_without_code(finding),
        });
    }

    fn add_problem(&mut self, file: &SourceFile, line: u32, (code, message): (&str, String)) {
        self.problems.push(FileProblem {
            path: file.shown(),
            line,
            severity: String::from("error"),
            code: code.to_owned(),
            message,
        });
    }
}

/// Returns the id of the template of a document.
fn template_id(document: &Tree) -> Option<&str> {
    let path = [Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE];
    document.root()?.text_along(&path)
}
