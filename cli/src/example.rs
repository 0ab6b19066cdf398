//! The command `example`: an example composition of a template.

use crate::data::templates::{self, Templates};
use crate::document_format::{Dialect, DocumentFormat};
use crate::outcome::{Failure, Outcome};
use crate::output_file::{Output, check_no_input};
use crate::printable::printable;
use crate::terminal::report_line;
use crate::{query, report};
use aqlite::template::{ExampleKind, Template, example};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Write a composition with every optional node once:
    aqlite example vital_signs.opt

  Write the smallest valid composition as FLAT:
    aqlite example vital_signs.opt --kind minimal --to flat

Exit code: 0 for an example, 1 for errors in the template, 2 for wrong usage.";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The file of the template: OPT 1.4 or ADL 2
    #[arg(value_name = "TEMPLATE")]
    template: PathBuf,
    /// The extent of the example
    #[arg(long, value_enum, default_value_t = Kind::Full)]
    kind: Kind,
    /// The format of the example
    #[arg(long, value_enum, default_value_t = DocumentFormat::Json, value_name = "FORMAT")]
    to: DocumentFormat,
    /// The dialect of FLAT and STRUCTURED
    #[arg(long, value_enum, default_value_t = Dialect::Better)]
    dialect: Dialect,
    /// The language of names and texts of codes; by default that of the template
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
    /// The time of the example, ISO 8601; by default the present
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// The file to write; by default the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The extent of an example.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// Every optional node once
    Full,
    /// Mandatory nodes only
    Minimal,
}

/// Runs the command.
///
/// # Errors
/// If the template cannot be read, or no document can meet it.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    check_no_input(options.output.as_deref(), [options.template.as_path()])?;
    let Some(template) = read_template(&options.template)? else {
        return Ok(Outcome::Findings);
    };
    let kind = match options.kind {
        Kind::Full => ExampleKind::Full,
        Kind::Minimal => ExampleKind::Minimal,
    };
    let now = options.now.clone().unwrap_or_else(query::now);
    let made = match example(&template, kind, options.language.as_deref(), &now) {
        Ok(made) => made,
        Err(findings) => {
            for finding in findings {
                let message = finding.one_line();
                report_line!("error[{}]: {}", finding.code, printable(&message));
            }
            return Ok(Outcome::Findings);
        }
    };
    let mut templates = Templates::default();
    templates.add(template);
    let Some(root) = made.root() else {
        return Err(Failure::Data(String::from("the example is empty")));
    };
    let (text, _) = options.to.write(root, &templates, options.dialect)?;
    let mut out = Output::open(options.output.as_deref())?;
    out.write_all(text.as_bytes())?;
    out.finish()?;
    Ok(Outcome::Success)
}

/// Reads the template of a file. Returns `None` if it has errors, which were shown.
///
/// # Errors
/// [`Failure::Data`] if the file cannot be read.
pub fn read_template(path: &Path) -> Result<Option<Template>, Failure> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::Data(format!("{name}: {error}")))?;
    match templates::parse(&text) {
        Ok(template) => Ok(Some(template)),
        Err(found) => {
            report::show(&text, &name, &found);
            Ok(None)
        }
    }
}
