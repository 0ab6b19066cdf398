//! The command `completions`: completions for a shell.

use crate::Arguments;
use crate::outcome::{Failure, Outcome};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  bash:  aqlite completions bash > ~/.local/share/bash-completion/completions/aqlite
  zsh:   aqlite completions zsh > ~/.zfunc/_aqlite
  fish:  aqlite completions fish > ~/.config/fish/completions/aqlite.fish";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
///
/// # Errors
/// If the output cannot be written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(
        options.shell,
        &mut Arguments::command(),
        "aqlite",
        &mut text,
    );
    std::io::stdout().write_all(&text)?;
    Ok(Outcome::Success)
}
