//! The `aqlite` program: openEHR on the command line and the REST service on one machine.

mod check;
mod completions;
mod convert;
mod data;
mod document_format;
mod example;
mod guide;
mod man;
mod outcome;
mod output;
mod progress;
mod query;
mod report;
mod shell;
mod template;

use clap::{Parser, Subcommand};
use outcome::Outcome;
use std::process::ExitCode;

/// The arguments of the program.
#[derive(Parser)]
#[command(name = "aqlite", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The commands of the program; each has a file of its own.
#[derive(Subcommand)]
enum Command {
    /// Answer an AQL query from files
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
    /// Ask queries interactively
    Shell(shell::Options),
    /// Write completions for a shell
    Completions(completions::Options),
    /// Write the manual page
    Man(man::Options),
}

fn main() -> ExitCode {
    progress::listen_to_ctrl_c();
    let result = match Arguments::parse().command {
        Command::Query(options) => query::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Convert(options) => convert::run(&options),
        Command::Example(options) => example::run(&options),
        Command::Template(options) => template::run(&options),
        Command::Guide(options) => guide::run(&options),
        Command::Shell(options) => shell::run(&options),
        Command::Completions(options) => completions::run(&options),
        Command::Man(options) => man::run(&options),
    };
    Outcome::exit_code(result)
}
