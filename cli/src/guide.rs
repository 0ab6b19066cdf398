//! The command `guide`: runs, tests and explains guides.

mod explain;
mod run;
mod test;

use crate::outcome::{Failure, Outcome};
use crate::{query, report};
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, CompiledGuide};
use clap::{Args, Subcommand};
use std::path::Path;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Run a guide on each EHR of a folder, one line of JSON for each:
    aqlite guide run score.gdl2.json -d data

  Run the fixtures beside the guides of a folder:
    aqlite guide test guides --junit report.xml

  Show why each rule fired or did not, for given values:
    aqlite guide explain score.gdl2.json --input gt0003=80,kg";

/// The options of the command.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

/// The actions on guides.
#[derive(Subcommand)]
enum Action {
    /// Run a guide on each EHR of the data
    Run(run::Options),
    /// Run the fixtures of guides
    Test(test::Options),
    /// Show for one run why each rule fired or did not
    Explain(explain::Options),
}

/// Runs the command.
///
/// # Errors
/// If a guide or the data cannot be read, or the output cannot be written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    match &options.action {
        Action::Run(options) => run::run(options),
        Action::Test(options) => test::run(options),
        Action::Explain(options) => explain::run(options),
    }
}

/// Reads the time of evaluation; by default the present.
fn moment(text: Option<&str>) -> Result<Moment, Failure> {
    let present = query::now();
    let text = text.unwrap_or(&present);
    Moment::parse(text, 0).ok_or_else(|| {
        Failure::Usage(format!(
            "`{text}` is no time: expected ISO 8601, as 2026-01-31T08:00:00Z"
        ))
    })
}

/// Reads a guide. Its problems are shown; returns `None` if it cannot be read.
fn read(path: &Path) -> Result<Option<CompiledGuide>, Failure> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::Data(format!("{name}: {error}")))?;
    match gdl::parse(&text) {
        Ok(guide) => {
            let compiled = guide.compile();
            report::show(&text, &name, &compiled.problems);
            Ok(Some(compiled))
        }
        Err(found) => {
            report::show(&text, &name, &found);
            Ok(None)
        }
    }
}
