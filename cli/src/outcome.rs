//! The outcome of a command: exit codes and failures.

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
        match result {
            Ok(Outcome::Success) | Err(Failure::Closed) => ExitCode::SUCCESS,
            Ok(Outcome::Findings) => ExitCode::from(1),
            Err(Failure::Interrupted) => ExitCode::from(130),
            Err(Failure::Data(message) | Failure::Damaged(message)) => failed(&message, 1),
            Err(Failure::Refused { status, message }) => failed(&format!("{status}: {message}"), 1),
            Err(Failure::Usage(message)) => failed(&message, 2),
        }
    }
}

impl Failure {
    /// Returns whether a repository refuses a request as wrong.
    pub fn is_bad_request(&self) -> bool {
        matches!(self, Failure::Refused { status: 400, .. })
    }

    /// Adds the file that the failure is about.
    pub fn at(self, path: &str) -> Failure {
        match self {
            Failure::Data(message) => Failure::Data(format!("{path}: {message}")),
            other => other,
        }
    }
}

fn failed(message: &str, code: u8) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Failure::Closed;
        }
        Failure::Data(error.to_string())
    }
}
