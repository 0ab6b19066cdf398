//! The outcome of a command: exit codes and failures.

use crate::printable::{printable, printable_lines};
use crate::terminal::report_line;
use std::process::ExitCode;

/// The outcome of a command that ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing was found wrong: exit code 0.
    Success,
    /// Data, queries or documents have errors, which were reported: exit code 1.
    Findings,
}

/// A failure that ends a command.
#[derive(Debug)]
pub enum Failure {
    /// Data or queries cannot be processed: exit code 1.
    Data(String),
    /// An index file is damaged. The files are read again; if that is impossible: exit code 1.
    Damaged(String),
    /// A repository refuses a request: exit code 1.
    Refused {
        /// The status of its answer.
        status: u16,
        /// The message of its answer.
        message: String,
    },
    /// The arguments of the program are wrong: exit code 2.
    Usage(String),
    /// The user pressed Ctrl-C: exit code 130, as of other programs.
    Interrupted,
    /// The reader of the output has closed it, as `head` does: exit code 0, without a message.
    Closed,
}

impl Outcome {
    /// Returns the outcome of two parts of a command: findings if either has some.
    pub fn and(self, other: Outcome) -> Outcome {
        match self {
            Outcome::Success => other,
            Outcome::Findings => self,
        }
    }

    /// Reports a failure on the standard error, and returns the exit code.
    pub fn exit_code(result: Result<Outcome, Failure>) -> ExitCode {
        let failure = match result {
            Ok(Outcome::Success) => return ExitCode::SUCCESS,
            Ok(Outcome::Findings) => return ExitCode::from(1),
            Err(failure) => failure,
        };
        failure.report();
        match failure {
            Failure::Closed => ExitCode::SUCCESS,
            Failure::Data(_) | Failure::Damaged(_) | Failure::Refused { .. } => ExitCode::from(1),
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Interrupted => ExitCode::from(130),
        }
    }
}

impl Failure {
    /// Returns whether a repository refuses a request as wrong.
    pub fn is_bad_request(&self) -> bool {
        matches!(self, Failure::Refused { status: 400, .. })
    }

    /// Returns the message; `None` for an end that needs none.
    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Data(message) | Failure::Damaged(message) | Failure::Usage(message) => {
                Some(message.clone())
            }
            Failure::Refused { status, message } => Some(format!("{status}: {message}")),
            Failure::Interrupted | Failure::Closed => None,
        }
    }

    /// Writes the message on the standard error.
    pub fn report(&self) {
        if let Some(message) = self.message() {
            report_line!("error: {}", printable_lines(&message));
        }
    }

    /// Adds the file that the failure is about.
    pub fn at(self, path: &str) -> Failure {
        match self {
            Failure::Data(message) => Failure::Data(format!("{}: {message}", printable(path))),
            other => other,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Failure::Closed;
        }
        Failure::Data(error.to_string())
    }
}
