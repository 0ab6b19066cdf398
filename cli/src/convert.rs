//! The command `convert`: documents from one format to another.

use crate::data::document::{Document, Reader};
use crate::data::files::{self, SourceFile};
use crate::data::templates::Templates;
use crate::data::templates_of;
use crate::document_format::{Dialect, DocumentFormat};
use crate::outcome::{Failure, Outcome};
use crate::progress::{self, Progress};
use crate::{output, query};
use aqlite::diag::Finding;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Write a composition as FLAT, by its template:
    aqlite convert -d vital_signs.opt visit.json --to flat -o visit.flat.json

  Convert a folder to canonical XML:
    aqlite convert compositions --to xml -o xml

The content of the input decides its format. FLAT and STRUCTURED need the template.

Exit code: 0 if all documents are converted, 1 for documents with errors, 2 for wrong usage.";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// A document, or a folder of documents
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write; the folder if IN is a folder; by default the standard output
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
    let templates = templates_of(&options.data)?;
    let input = options.input.to_string_lossy().into_owned();
    let input = [input];
    let listed = files::list(&input, files::DATA)?;
    if listed.is_empty() {
        query::warn_of_none("documents", &input);
    }
    let converter = Converter {
        options,
        templates: &templates,
        now: query::now(),
        progress: Progress::new(listed.iter().map(|file| file.size).sum(), "converting"),
    };
    let outcome = converter.all(&listed);
    converter.progress.finish();
    outcome
}

struct Converter<'c> {
    options: &'c Options,
    templates: &'c Templates,
    now: String,
    progress: Progress,
}

impl Converter<'_> {
    /// Converts all documents: those of a folder into another one.
    fn all(&self, listed: &[SourceFile]) -> Result<Outcome, Failure> {
        if self.options.input.is_dir() {
            return self.folder(listed);
        }
        let mut outcome = Outcome::Success;
        for file in listed {
            outcome = outcome.and(self.file(file, self.options.output.as_deref())?);
        }
        Ok(outcome)
    }

    /// Converts the documents of a folder into another one, with the same names.
    fn folder(&self, listed: &[SourceFile]) -> Result<Outcome, Failure> {
        let Some(output) = &self.options.output else {
            let problem = "the input is a folder: name the folder to write by -o";
            return Err(Failure::Usage(String::from(problem)));
        };
        let mut outcome = Outcome::Success;
        for file in listed {
            let inner = file.path.strip_prefix(&self.options.input);
            let inner = inner
                .unwrap_or(&file.path)
                .with_extension(self.options.to.ending());
            let target = output.join(inner);
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder)?;
            }
            outcome = outcome.and(self.file(file, Some(&target))?);
        }
        Ok(outcome)
    }

    /// Converts the documents of a file. Problems are reported, and the file is left out.
    fn file(&self, file: &SourceFile, target: Option<&Path>) -> Result<Outcome, Failure> {
        progress::check()?;
        // Documents on the standard output show the progress themselves.
        if target.is_some() {
            self.progress.show();
        }
        self.progress.advance(file.size);
        let path = file.shown();
        let text = files::read_text(&file.path)
            .map_err(|error| Failure::Data(format!("{path}: {error}")))?;
        let reader = Reader {
            templates: self.templates,
            now: &self.now,
        };
        let documents = match reader.read(&text) {
            Ok(documents) => documents,
            Err(findings) => {
                self.progress.hide_while(|| report(&path, &findings));
                return Ok(Outcome::Findings);
            }
        };
        if documents.is_empty() {
            return Ok(Outcome::Success);
        }
        let written = self.write(&path, &documents)?;
        let mut out = output::open(target)?;
        out.write_all(written.as_bytes())?;
        out.flush()?;
        Ok(Outcome::Success)
    }

    fn write(&self, path: &str, documents: &[Document]) -> Result<String, Failure> {
        let mut out = String::new();
        for root in documents.iter().filter_map(|document| document.tree.root()) {
            let options = self.options;
            let written = options.to.write(root, self.templates, options.dialect);
            let (text, left) = written.map_err(|failure| failure.at(path))?;
            if !left.is_empty() {
                let left = left.join(", ");
                self.progress.hide_while(|| {
                    eprintln!("{path}: warning: the format does not carry: {left}");
                });
            }
            out.push_str(&text);
        }
        Ok(out)
    }
}

/// Prints the findings of a file.
fn report(path: &str, findings: &[Finding]) {
    for finding in findings {
        eprintln!("{path}: error[{}]: {}", finding.code, finding.one_line());
    }
}
