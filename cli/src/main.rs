//! The `aqlite` program: openEHR on the command line and the REST service on one machine.

use clap::Parser;

/// The arguments of the program.
#[derive(Parser)]
#[command(name = "aqlite", version, about, arg_required_else_help = true)]
struct Arguments {}

fn main() {
    Arguments::parse();
}
