//! The command `lake`: tables for analytical programs.

mod views;

use crate::example::read_template;
use crate::outcome::{Failure, Outcome};
use aqlite::rm::class::Cls;
use aqlite::template::{Template, WebTemplate};
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Write the queries of the tables of a template, and one table as Parquet:
    aqlite lake views vital_signs.opt -o views
    aqlite query -d data -f views/vital_signs.aql -o vital_signs.parquet";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[command(subcommand)]
    command: LakeCommand,
}

/// The parts of the command.
#[derive(Subcommand)]
enum LakeCommand {
    /// Propose flat tables for a template, as AQL queries
    Views(ViewsOptions),
}

/// The options of `lake views`.
#[derive(Args)]
struct ViewsOptions {
    /// The file of the template: OPT 1.4 or ADL 2
    #[arg(value_name = "TEMPLATE")]
    template: PathBuf,
    /// The folder for the queries, one file for each; by default the standard output has all
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If the template cannot be read, or the output cannot be written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    let LakeCommand::Views(options) = &options.command;
    let Some(template) = read_template(&options.template)? else {
        return Ok(Outcome::Findings);
    };
    let views = of_template(&template)?;
    match &options.output {
        Some(folder) => write_files(&views, folder)?,
        None => write_all(&views, &mut std::io::stdout().lock())?,
    }
    Ok(Outcome::Success)
}

/// Returns the views of a template.
///
/// # Errors
/// If the template uses constraints that aqlite does not read, so that its nodes are unknown.
fn of_template(template: &Template) -> Result<Vec<views::View>, Failure> {
    let web = WebTemplate::of(template);
    if template.is_opaque || !web.is_complete {
        return Err(Failure::Data(format!(
            "the template `{}` has constraints that are not supported, or too many nodes: its tables are unknown",
            template.template_id
        )));
    }
    if template.definition.class != Some(Cls::COMPOSITION) {
        return Err(Failure::Data(format!(
            "`{}` is no template of compositions, and views are tables of compositions",
            template.template_id
        )));
    }
    Ok(views::views(template, &web))
}

fn write_files(views: &[views::View], folder: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error| Failure::Data(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for view in views {
        let path = folder.join(format!("{}.aql", view.name));
        std::fs::write(&path, view.aql()).map_err(|error| failed(&path, error))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn write_all(views: &[views::View], out: &mut impl Write) -> Result<(), Failure> {
    for (number, view) in views.iter().enumerate() {
        let gap = if number > 0 { "\n" } else { "" };
        write!(out, "{gap}-- {}\n{}", view.name, view.aql())?;
    }
    out.flush()?;
    Ok(())
}
