//! The command `example`.

use crate::outcome::{Failure, Outcome};
use clap::Args;

/// The options of the command.
#[derive(Args)]
pub struct Options {}

/// Runs the command.
pub fn run(_options: &Options) -> Result<Outcome, Failure> {
    Err(Failure::Usage(String::from("this command is not ready")))
}
