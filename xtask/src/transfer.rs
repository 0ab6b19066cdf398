//! `cargo xtask export` and `import`: a whole repository to a file and back, over HTTP.

use crate::options::Options;
use crate::process::{command, run};

/// The mount of a server on this machine.
const BASE: &str = "http://127.0.0.1:8787/v1";

/// Exports to a file, or continues an export that was interrupted.
pub fn export(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["base", "ehr"], &[])?;
    transfer("export", &options, options.given("ehr"))
}

/// Imports a file. Existing data are skipped.
pub fn import(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["base", "findings"], &[])?;
    transfer("import", &options, options.given("findings"))
}

fn transfer(what: &str, options: &Options, more: Option<&str>) -> Result<(), String> {
    let [file] = options.words.as_slice() else {
        return Err(format!("name one file: `{what} FILE`"));
    };
    // The program starts in the project's root, but the path is relative to the caller's folder.
    let here = std::env::current_dir().map_err(|e| e.to_string())?;
    let mut program = command(
        "node",
        &["xtask/transfer.mjs", what, options.value("base", BASE)],
    );
    run(program.arg(here.join(file)).args(more))
}
