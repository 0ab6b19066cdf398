//! The command `lake`: tables for analytical programs.

mod changes;
mod columns;
mod database;
mod ehrs;
mod files;
mod iceberg;
mod issued;
mod lease;
mod names;
mod objects;
mod pseudonym;
mod row;
mod source;
mod state;
mod storage;
mod sync;
mod sync_drop;
mod sync_view;
mod sync_views;
mod tokens;
mod views;

use crate::example::read_template;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print_line;
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
    aqlite query -d data -f views/vital_signs.aql -o vital_signs.parquet

  Write the tables of all templates as Parquet datasets, and later the changes since:
    aqlite lake sync -d data --to lake";

/// The examples of the help of `lake sync`.
const SYNC_EXAMPLES: &str = "\
Examples:
  Write the tables of all templates of a folder, and later the changes since:
    aqlite lake sync -d data --to lake

  Write one view of the database of `aqlite serve`, with pseudonyms in the place of ids of patients:
    openssl rand -hex 32 > key
    aqlite lake sync -d aqlite.db --to lake --view pressures=pressures.aql --pseudonyms key

Each view has a folder: Parquet files in `data`, a table of Apache Iceberg in `metadata`. The columns `ehr_id`, \
`object_id`, `version`, `time_committed`, `deleted` and `sync` precede those of the query. The present rows of an \
object are those of its last sync, unless they say that it is deleted.

One sync writes to a lake at a time, and another one ends with an error. The lock of a killed sync of a bucket \
expires after 60 seconds.

Exit code: 0 if the lake is up to date, 1 for errors in data or queries, 2 for wrong usage, 130 for Ctrl-C.";

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
    /// Write the rows of views as Parquet datasets, and renew them by each run
    #[command(after_help = SYNC_EXAMPLES)]
    Sync(Box<sync::SyncOptions>),
}

/// The examples of the help of `lake views`.
const VIEWS_EXAMPLES: &str = "\
Examples:
  Show the queries of the tables of a template:
    aqlite lake views vital_signs.opt

  Write each query into a file, and the rows of one as Parquet:
    aqlite lake views vital_signs.opt -o views
    aqlite query -d data -f views/vital_signs.aql -o vital_signs.parquet";

/// The options of `lake views`.
#[derive(Args)]
#[command(after_help = VIEWS_EXAMPLES)]
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
    let options = match &options.command {
        LakeCommand::Views(options) => options,
        LakeCommand::Sync(options) => return sync::run(options),
    };
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
    let path_of = |view: &views::View| folder.join(format!("{}.aql", view.name));
    // Checked before any file is written, so that a refusal changes nothing.
    for view in views {
        check_owner(view, &path_of(view))?;
    }
    for view in views {
        let path = path_of(view);
        std::fs::write(&path, view.aql()).map_err(|error| failed(&path, error))?;
        print_line!("{}", path.display());
    }
    Ok(())
}

/// Checks that the file of a query is absent, or has a query of the same template.
fn check_owner(view: &views::View, path: &Path) -> Result<(), Failure> {
    let condition = views::condition_of(&view.template_id);
    match std::fs::read_to_string(path) {
        Ok(text) if !text.contains(&condition) => Err(Failure::Data(format!(
            "{}: the file is no query of the template `{}`: name another folder by -o",
            path.display(),
            view.template_id
        ))),
        _ => Ok(()),
    }
}

fn write_all(views: &[views::View], out: &mut impl Write) -> Result<(), Failure> {
    for (number, view) in views.iter().enumerate() {
        let gap = if number > 0 { "\n" } else { "" };
        write!(out, "{gap}-- {}\n{}", view.name, view.aql())?;
    }
    out.flush()?;
    Ok(())
}
