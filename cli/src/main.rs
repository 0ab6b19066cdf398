//! The `aqlite` program: openEHR on the command line and the REST service on one machine.

mod serve;

use clap::{Parser, Subcommand};
use serve::{backup, load};

/// The arguments of the program.
#[derive(Parser)]
#[command(name = "aqlite", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The commands of the program.
#[derive(Subcommand)]
enum Command {
    /// Serve a repository by HTTP
    Serve(serve::Options),
    /// Copy a repository, also while it is served
    Backup(backup::BackupOptions),
    /// Create a repository from a backup
    Restore(backup::RestoreOptions),
    /// Load a file of lines into a server
    Load(load::LoadOptions),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Serve(options) => serve::run(&options),
        Command::Backup(options) => backup::backup(&options),
        Command::Restore(options) => backup::restore(&options),
        Command::Load(options) => load::load(&options),
    }
}
