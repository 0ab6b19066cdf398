//! The command `convert`: documents from one format to another.

mod series;

use crate::data::document::Reader;
use crate::data::files::{self, SourceFile};
use crate::data::load::is_lines;
use crate::data::templates::Templates;
use crate::data::templates_of;
use crate::document_format::{Dialect, DocumentFormat};
use crate::outcome::{Failure, Outcome};
use crate::output_file::{FileIdentity, Output, check_no_input, identity};
use crate::printable::printable;
use crate::progress::{self, Progress};
use crate::terminal::report_line;
use crate::{query, report};
use aqlite::diag::Finding;
use aqlite::rm::tree::NodeRef;
use clap::Args;
use series::Series;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Write a composition as FLAT, by its template:
    aqlite convert -d vital_signs.opt visit.json --to flat -o visit.flat.json

  Convert a folder to canonical XML:
    aqlite convert compositions --to xml -o xml

The content of the input decides its format. FLAT and STRUCTURED need the template.
Several documents of a file, or of its lines (NDJSON), become a JSON array, or one file for
each in the folder of -o.
A document that cannot be converted is reported, and the others are converted.

Exit code: 0 if all documents are converted, 1 for documents with errors, 2 for wrong usage.";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// A document, or a folder of documents
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write, or a folder: needed if IN is a folder; by default the standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: DocumentFormat,
    /// The dialect of FLAT and STRUCTURED
    #[arg(long, value_enum, default_value_t = Dialect::Better)]
    dialect: Dialect,
    /// Templates: files, folders or patterns; may be repeated
    #[arg(short, long = "data", value_name = "DATA")]
    data: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// If a document cannot be read or written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    let inputs = options.data.iter().map(Path::new).chain([&*options.input]);
    check_no_input(options.output.as_deref(), inputs)?;
    let templates = templates_of(&options.data)?;
    let input = options.input.to_string_lossy().into_owned();
    let input = [input];
    let listed = files::list(&input, files::DATA)?;
    if listed.is_empty() {
        query::warn_of_none("documents", &input);
    }
    let mut converter = Converter {
        options,
        templates: &templates,
        now: query::now(),
        progress: Progress::new(listed.iter().map(|file| file.size).sum(), "converting"),
        inputs: by_identity(&listed),
        sources: HashMap::new(),
        converted: 0,
    };
    let outcome = converter.all(&listed);
    converter.progress.finish();
    if !listed.is_empty() && converter.converted == 0 && matches!(outcome, Ok(Outcome::Success)) {
        query::warn_of_none("documents", &input);
    }
    outcome
}

struct Converter<'c> {
    options: &'c Options,
    templates: &'c Templates,
    now: String,
    progress: Progress,
    /// The paths of the files to read, by their identities.
    inputs: HashMap<FileIdentity, PathBuf>,
    /// By the path of a file that is written: the input whose documents it has.
    sources: HashMap<PathBuf, PathBuf>,
    /// The number of documents that were read.
    converted: usize,
}

/// The place of the documents of a file.
enum Target<'t> {
    StandardOutput,
    File(&'t Path),
    /// Files of a folder: this name if it holds all documents, else one for each document.
    InFolder(PathBuf),
}

impl Converter<'_> {
    /// Converts all documents: those of several files into a folder.
    fn all(&mut self, listed: &[SourceFile]) -> Result<Outcome, Failure> {
        let options = self.options;
        let is_many = options.input.is_dir() || listed.len() > 1;
        let output = match options.output.as_deref() {
            Some(output) if is_many || output.is_dir() => output,
            None if is_many => {
                let problem =
                    "the input is a folder or several files: name the folder to write by -o";
                return Err(Failure::Usage(String::from(problem)));
            }
            output => {
                let target = || output.map_or(Target::StandardOutput, Target::File);
                let each = |file| self.file(file, &target());
                return outcome_of(listed.iter().map(each));
            }
        };
        outcome_of(listed.iter().map(|file| {
            let target = output.join(self.inner(file).with_extension(options.to.ending()));
            self.file(file, &Target::InFolder(target))
        }))
    }

    /// Returns the path of a file below the folder that is converted; of another file, its name.
    fn inner<'f>(&self, file: &'f SourceFile) -> &'f Path {
        let below = file.path.strip_prefix(&self.options.input).ok();
        let below = below.filter(|path| !path.as_os_str().is_empty());
        below.unwrap_or_else(|| file.path.file_name().map_or(&file.path, Path::new))
    }

    /// Converts the documents of a file. Problems are reported, and the document is left out.
    fn file(&mut self, file: &SourceFile, target: &Target<'_>) -> Result<Outcome, Failure> {
        progress::check()?;
        let mut series = Series::new(file, target);
        let outcome = match is_lines(file) {
            true => self.lines(file, &mut series)?,
            false => {
                self.advance(file.size, target);
                match files::read_text(&file.path) {
                    Ok(text) => self.documents(&file.shown(), &text, &mut series)?,
                    Err(error) => return Ok(self.refused(&format!("{}: {error}", file.shown()))),
                }
            }
        };
        self.converted += series.count;
        if series.count == 0 && outcome == Outcome::Success {
            // A folder may also have templates and guides, which are no documents.
            return Ok(match target {
                Target::InFolder(_) => Outcome::Success,
                _ => {
                    let path = file.shown();
                    self.refused(&format!("{path}: there is no document in this file"))
                }
            });
        }
        Ok(outcome.and(series.finish(self)?))
    }

    /// Converts the documents of a file of lines, and holds one line at a time.
    fn lines(&mut self, file: &SourceFile, series: &mut Series<'_>) -> Result<Outcome, Failure> {
        let path = file.shown();
        let opened = match files::open(&file.path) {
            Ok(opened) => opened,
            Err(error) => return Ok(self.refused(&format!("{path}: {error}"))),
        };
        let mut reader = BufReader::with_capacity(1 << 18, opened);
        let (mut line, mut number, mut outcome) = (Vec::new(), 0_usize, Outcome::Success);
        loop {
            line.clear();
            number += 1;
            let place = format!("{path}:{number}");
            match reader.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(outcome),
                Ok(length) => self.advance(length as u64, series.target),
                Err(error) => return Ok(self.refused(&format!("{place}: {error}"))),
            }
            progress::check()?;
            outcome = outcome.and(match std::str::from_utf8(&line) {
                Ok(text) if text.trim().is_empty() => Outcome::Success,
                Ok(text) => self.documents(&place, text, series)?,
                Err(_) => self.refused(&format!("{place}: the text is no UTF-8")),
            });
        }
    }

    /// Converts the documents of a text. Reports a text that cannot be read.
    fn documents(
        &mut self,
        place: &str,
        text: &str,
        series: &mut Series<'_>,
    ) -> Result<Outcome, Failure> {
        let reader = Reader {
            templates: self.templates,
            now: &self.now,
        };
        match reader.read(text) {
            Ok(documents) => {
                let roots = documents.iter().filter_map(|document| document.tree.root());
                outcome_of(roots.map(|root| series.push(self, root)))
            }
            Err(findings) => {
                self.progress.hide_while(|| show(place, &findings));
                Ok(Outcome::Findings)
            }
        }
    }

    /// Counts bytes that were read.
    fn advance(&self, bytes: u64, target: &Target<'_>) {
        // Documents on the standard output show the progress themselves.
        if !matches!(target, Target::StandardOutput) {
            self.progress.show();
        }
        self.progress.advance(bytes);
    }

    /// Writes the text of a document.
    fn text(&self, path: &str, root: NodeRef<'_>) -> Result<String, Failure> {
        let options = self.options;
        let written = options.to.write(root, self.templates, options.dialect);
        let (text, left) = written.map_err(|failure| failure.at(path))?;
        if !left.is_empty() {
            let left = left.join(", ");
            self.progress.hide_while(|| {
                let (path, left) = (printable(path), printable(&left));
                report_line!("{path}: warning: the format does not carry: {left}");
            });
        }
        Ok(text)
    }

    /// Opens the output of documents: its target, or a file with the number of the document if there
    /// is one. Reports a file that must not be written, and returns `None`.
    fn open(
        &mut self,
        file: &SourceFile,
        target: &Target<'_>,
        number: Option<usize>,
    ) -> Result<Option<Output>, Failure> {
        let target = match target {
            Target::StandardOutput => None,
            Target::File(path) => Some(path.to_path_buf()),
            Target::InFolder(path) => Some(numbered(path, number)),
        };
        if let Some(target) = &target {
            if let Some(input) = identity(target).and_then(|own| self.inputs.get(&own)) {
                let problem = format!(
                    "{}: `{}` is the input `{}`, which it would replace: name another folder",
                    file.shown(),
                    target.display(),
                    input.display()
                );
                self.refused(&problem);
                return Ok(None);
            }
            let source = self.sources.entry(target.clone());
            let source = source.or_insert_with(|| file.path.clone());
            if *source != file.path {
                let problem = format!(
                    "{}: `{}` has the documents of `{}`: rename one of the two files",
                    file.shown(),
                    target.display(),
                    source.display()
                );
                self.refused(&problem);
                return Ok(None);
            }
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder)?;
            }
        }
        Output::open(target.as_deref()).map(Some)
    }

    /// Reports a document that is left out.
    fn refused(&self, problem: &str) -> Outcome {
        let problem = printable(problem);
        self.progress
            .hide_while(|| report_line!("error: {problem}"));
        Outcome::Findings
    }
}

/// Returns the paths of files by their identities.
fn by_identity(files: &[SourceFile]) -> HashMap<FileIdentity, PathBuf> {
    let paths = files.iter().map(|file| &file.path);
    let identities = paths.filter_map(|path| Some((identity(path)?, path.clone())));
    identities.collect()
}

/// Returns the outcome of parts, all of which run unless one fails.
fn outcome_of(
    mut parts: impl Iterator<Item = Result<Outcome, Failure>>,
) -> Result<Outcome, Failure> {
    parts.try_fold(Outcome::Success, |all, part| Ok(all.and(part?)))
}

/// Adds the number of a document to the name of a file: `visits-2.xml`.
fn numbered(path: &Path, number: Option<usize>) -> PathBuf {
    let (Some(number), Some(stem)) = (number, path.file_stem()) else {
        return path.to_owned();
    };
    let mut name = stem.to_owned();
    name.push(format!("-{number}"));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

/// Prints the findings of a file.
fn show(path: &str, findings: &[Finding]) {
    for finding in findings {
        let (path, message) = (printable(path), report::line_without_code(finding));
        report_line!("{path}: error[{}]: {}", finding.code, printable(&message));
    }
}
