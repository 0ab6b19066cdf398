//! The `aqlite` program: openEHR on the command line and the REST service on one machine.

// Lines for the user are written by the macros of `terminal`, which survive the end of their reader.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod columnar;
mod completions;
mod convert;
mod data;
mod document_format;
mod example;
mod guide;
mod lake;
mod lint;
mod man;
mod outcome;
mod output;
mod output_file;
mod printable;
mod progress;
mod query;
mod report;
mod repository;
mod rows;
mod serve;
mod server_options;
mod shell;
mod template;
mod terminal;
mod transfer;

use clap::{Parser, Subcommand};
use outcome::{Failure, Outcome};
use progress::Interrupted;
use serve::{backup, load};
use std::process::ExitCode;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Try out a repository with sample data, on http://127.0.0.1:8080:
    aqlite serve --open --sample

  Count the compositions in the files of a folder, without a server:
    aqlite query -d data 'SELECT COUNT(*) AS n FROM COMPOSITION c'

`aqlite COMMAND --help` has the options of a command with examples.";

/// The arguments of the program.
#[derive(Parser)]
#[command(name = "aqlite", version, about, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The commands of the program; each has a file of its own.
#[derive(Subcommand)]
enum Command {
    /// Answer an AQL query from files, a server or a database
    Query(query::Options),
    /// Check queries, templates, guides and compositions
    Check(check::Options),
    /// Convert compositions between formats
    Convert(convert::Options),
    /// Write an example composition of a template
    Example(example::Options),
    /// Show a template as tree, web template or paths
    Template(template::Options),
    /// Run, test and explain guides
    Guide(guide::Options),
    /// Write tables for analytical programs: Parquet and Apache Iceberg
    Lake(lake::Options),
    /// Ask queries interactively, of files, a server or a database
    Shell(shell::Options),
    /// Serve a repository by HTTP: the REST interface of openEHR, and the page
    Serve(serve::Options),
    /// Copy a repository, also while it is served
    Backup(backup::BackupOptions),
    /// Create a repository from a backup
    Restore(backup::RestoreOptions),
    /// Load a file of lines into a server
    Load(load::LoadOptions),
    /// Export the content of a server to a file
    Export(transfer::ExportOptions),
    /// Import the file of an export into a server
    Import(transfer::ImportOptions),
    /// Write completions for a shell
    Completions(completions::Options),
    /// Write the manual page
    Man(man::Options),
}

fn main() -> ExitCode {
    Outcome::exit_code(run(Arguments::parse().command))
}

fn run(command: Command) -> Result<Outcome, Failure> {
    // A server finishes its requests after a signal. The other commands end at the next safe point.
    if !matches!(command, Command::Serve(_)) {
        progress::listen_to_signals(matches!(command, Command::Shell(_)));
    }
    if matches!(
        command,
        Command::Serve(_) | Command::Backup(_) | Command::Restore(_) | Command::Export(_)
    ) {
        serve::system::create_private_files();
    }
    match command {
        Command::Query(options) => query::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Convert(options) => convert::run(&options),
        Command::Example(options) => example::run(&options),
        Command::Template(options) => template::run(&options),
        Command::Guide(options) => guide::run(&options),
        Command::Lake(options) => lake::run(&options),
        Command::Shell(options) => shell::run(&options),
        Command::Serve(options) => succeeded(serve::run(&options)),
        Command::Backup(options) => succeeded(backup::backup(&options)),
        Command::Restore(options) => succeeded(backup::restore(&options)),
        Command::Load(options) => succeeded(load::load(&options)),
        Command::Export(options) => transfer::export(&options),
        Command::Import(options) => transfer::import(&options),
        Command::Completions(options) => completions::run(&options),
        Command::Man(options) => man::run(&options),
    }
}

/// Returns the outcome of a command of the server, whose errors have their context.
fn succeeded(result: anyhow::Result<()>) -> Result<Outcome, Failure> {
    match result {
        Ok(()) => Ok(Outcome::Success),
        Err(error) if error.is::<Interrupted>() => Err(Failure::Interrupted),
        Err(error) => Err(Failure::Data(format!("{error:#}"))),
    }
}
