//! `cargo xtask export` and `import`: everything of a repository into a file, and back, over HTTP.

use crate::options::Options;
use crate::process::{command, run};

/// The mount of a server on this machine.
const BASE: &str = "http://127.0.0.1:8787/v1";

/// Exports into a file, or goes on where an export of it broke off.
pub fn export(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["base", "ehr"], &[])?;
    transfer("export", &options, options.given("ehr"))
}

/// Imports a file; what is there already is passed over.
pub fn import(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["base", "findings"], &[])?;
    transfer("import", &options, options.given("findings"))
}

fn transfer(what: &str, options: &Options, more: Option<&str>) -> Result<(), String> {
    let [file] = options.words.as_slice() else {
        return Err(format!("name one file: `{what} FILE`"));
    };
    // The program starts in the project's root, the word is meant from here.
    let here = std::env::current_dir().map_err(|e| e.to_string())?;
    let mut program = command(
        "node",
        &["xtask/transfer.mjs", what, options.value("base", BASE)],
    );
    run(program.arg(here.join(file)).args(more))
}
