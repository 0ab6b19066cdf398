//! The command `check`: problems of queries, templates, guides and compositions.

mod problem;
mod sarif;
mod subject;

use crate::data::files::{self, SourceFile};
use crate::data::templates::Templates;
use crate::data::templates_of;
use crate::outcome::{Failure, Outcome};
use crate::progress::{self, Interrupted, Progress};
use clap::{Args, ValueEnum};
use problem::Problem;
use std::io::{IsTerminal, Write};
use subject::Checker;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Check a query:
    aqlite check systolic.aql

  Check compositions against the model and their templates:
    aqlite check -d templates compositions

  Check queries against templates: archetypes, nodes, units and codes:
    aqlite check -d templates queries

  Write the problems of a repository for continuous integration:
    aqlite check --format sarif queries templates > aqlite.sarif

Exit code: 0 without errors, 1 with errors, 2 for wrong usage. Warnings alone are no errors.";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Files, folders or patterns of queries, templates, guides and compositions
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Templates of the queries and compositions: files, folders or patterns; may be repeated
    #[arg(short, long = "data", visible_alias = "template", value_name = "DATA")]
    data: Vec<String>,
    /// The format of the problems
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The format of problems.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// With the line of the source
    Text,
    /// A JSON array of objects
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// Runs the command.
///
/// # Errors
/// If files cannot be listed or the output cannot be written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    let listed = files::list(&options.files, files::CHECKED)?;
    if listed.is_empty() {
        crate::query::warn_of_none("files to check", &options.files);
    }
    let mut templates = templates_of(&options.data)?;
    add_templates(&listed, &mut templates)?;
    let progress = Progress::new(listed.iter().map(|file| file.size).sum(), "checking");
    let checker = Checker {
        templates: &templates,
        // Templates were named, so compositions without theirs are worth a warning.
        expects_templates: templates.all().next().is_some(),
        now: crate::query::now(),
        progress: &progress,
    };
    let (mut problems, mut is_wrong) = (Vec::new(), false);
    let mut out = std::io::stdout().lock();
    for file in &listed {
        let found = checker.check(file);
        // The problems of a file that was checked in part are left out.
        progress::check()?;
        is_wrong |= found.iter().any(Problem::is_error);
        if options.format != Format::Text {
            problems.extend(found);
        } else if !found.is_empty() {
            progress.hide_while(|| write_texts(&found, &mut out))?;
        }
    }
    progress.finish();
    write_end(options.format, listed.len(), &problems, &mut out)?;
    out.flush()?;
    Ok(if is_wrong {
        Outcome::Findings
    } else {
        Outcome::Success
    })
}

/// Writes the end of the output: the number of files on a terminal, or all problems in a format for
/// programs.
fn write_end(
    format: Format,
    files: usize,
    problems: &[Problem],
    out: &mut impl Write,
) -> std::io::Result<()> {
    match format {
        Format::Text if std::io::stdout().is_terminal() => {
            let noun = if files == 1 { "file" } else { "files" };
            writeln!(out, "{files} {noun} checked")
        }
        Format::Text => Ok(()),
        Format::Json => writeln!(out, "{:#}", sarif::list(problems)),
        Format::Sarif => writeln!(out, "{:#}", sarif::log(problems)),
    }
}

/// Writes problems with the lines of their sources.
fn write_texts(problems: &[Problem], out: &mut impl Write) -> std::io::Result<()> {
    let is_colored = std::io::stdout().is_terminal();
    let mut all = problems.iter();
    all.try_for_each(|problem| writeln!(out, "{}", problem.text(is_colored)))
}

/// Adds the templates among the checked files. Their problems are reported when they are checked.
fn add_templates(listed: &[SourceFile], templates: &mut Templates) -> Result<(), Interrupted> {
    for file in listed {
        progress::check()?;
        if let Some(template) = subject::template_of(file) {
            templates.add(template);
        }
    }
    Ok(())
}
