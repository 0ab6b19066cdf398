//! The command `shell`: queries as a conversation.

mod command;
mod editor;
mod session;
mod source;

use crate::data::DataOptions;
use crate::outcome::{Failure, Outcome};
use crate::output::Format;
use crate::printable::printable_lines;
use crate::progress::resume;
use crate::server_options::ServerOptions;
use crate::terminal::print_line;
use clap::Args;
use editor::Input;
use etcetera::BaseStrategy;
use session::{Next, Session};
use source::ShellData;
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Ask about a folder, with completion of paths and clinical names by the key Tab:
    aqlite shell -d data

  Ask a server, and the database of `aqlite serve`:
    aqlite shell -d https://cdr.example.org/rest/openehr/v1 --token $TOKEN
    aqlite shell -d aqlite.db

  Run the statements of a file:
    aqlite shell -d data < queries.aql

Enter runs a complete query, and adds a line to an incomplete one; Alt-Enter always adds a line. A \
semicolon or an empty line ends a query in any case. `.help` lists the commands of the shell.

Exit code of a file: 0 if all its statements are answered, 1 for errors in data or statements, 2 for wrong usage.";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[command(flatten)]
    data: DataOptions,
    #[command(flatten)]
    server: ServerOptions,
    /// The format of rows; by default a table on a terminal, otherwise CSV
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The file of earlier input; by default in the data folder of the user
    #[arg(long, value_name = "FILE", env = "AQLITE_HISTORY")]
    history: Option<PathBuf>,
    /// The language of clinical names
    #[arg(long, default_value = "en", value_name = "LANGUAGE")]
    language: String,
}

/// Runs the command.
///
/// # Errors
/// If the data cannot be read, or the terminal fails.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    let (source, outcome) = ShellData::open(&options.data, &options.server)?;
    let is_terminal = std::io::stdin().is_terminal();
    let format = Format::or_default(options.format, None);
    let mut session = Session::new(source, format, options.language.clone());
    if is_terminal {
        converse(&mut session, options)?;
        return Ok(Outcome::Success);
    }
    Ok(outcome.and(run_script(&mut session)?))
}

/// Reads from a terminal until the user ends it.
fn converse(session: &mut Session, options: &Options) -> Result<(), Failure> {
    let history = options.history.clone().or_else(|| {
        let user = etcetera::base_strategy::choose_native_strategy().ok()?;
        Some(user.data_dir().join("aqlite").join("history.txt"))
    });
    print_line!("{}", session.greeting());
    let mut editor = editor::Editor::new(session, history.as_deref())?;
    loop {
        match editor.read()? {
            Input::Text(text) => {
                resume();
                match session.run(&text) {
                    Ok(Next::More) => {}
                    Ok(Next::Quit) => return Ok(()),
                    // Ctrl-C ends the query, not the shell.
                    Err(Failure::Interrupted) => print_line!("interrupted"),
                    Err(failure) => match failure.message() {
                        Some(message) => print_line!("error: {}", printable_lines(&message)),
                        None => return Err(failure),
                    },
                }
            }
            Input::Nothing => {}
            Input::End => return Ok(()),
        }
    }
}

/// Runs the statements of the standard input. Each error is reported, and the next one runs.
fn run_script(session: &mut Session) -> Result<Outcome, Failure> {
    let mut statement = String::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let is_command = statement.is_empty() && line.trim_start().starts_with('.');
        statement.push_str(&line);
        statement.push('\n');
        // A complete query may go on in the next line, so in a file only its end counts.
        let is_ended = is_command || line.trim_end().ends_with(';') || line.trim().is_empty();
        if is_ended && session.run(&std::mem::take(&mut statement))? == Next::Quit {
            return Ok(session.outcome());
        }
    }
    session.run(&statement)?;
    Ok(session.outcome())
}

#[cfg(test)]
mod tests {
    use super::editor::is_complete;

    #[test]
    fn query_is_complete_when_it_parses_or_its_error_is_not_at_its_end() {
        for text in [
            "SELECT c FROM COMPOSITION c",
            "SELECT c FROM",
            "SELECT c FROM COMPOSITION c WHERE",
            "SELECT c\nFROM COMPOSITION c CONTAINS",
        ] {
            assert_eq!(is_complete(text), text.ends_with("COMPOSITION c"), "{text}");
        }
        for text in [
            "SELECT c FROM;",
            ".help",
            "SELECT FROM x y z",
            "",
            "SELECT c FROM\n\n",
        ] {
            assert!(is_complete(text), "{text}");
        }
    }
}
