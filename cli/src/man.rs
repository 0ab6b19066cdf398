//! The command `man`: the manual page.

use crate::Arguments;
use crate::outcome::{Failure, Outcome};
use clap::{Args, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  aqlite man | man -l -
  aqlite man --to ~/.local/share/man/man1";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// A folder for the pages of the program and of each command
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If the pages cannot be written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    let command = Arguments::command();
    match &options.to {
        Some(folder) => {
            fs::create_dir_all(folder)?;
            clap_mangen::generate_to(command, folder)?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
        }
    }
    Ok(Outcome::Success)
}
