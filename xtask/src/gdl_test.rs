//! `cargo xtask gdl-test`: runs the fixtures beside guides by `aqlite guide test`.

use crate::options::Options;
use crate::process::{cargo, run};

/// Runs every fixture below a folder. `--junit` writes the result for continuous integration.
pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["junit", "now"], &["lint"])?;
    let [folder] = options.words.as_slice() else {
        return Err("name one folder of guides and fixtures: `gdl-test DIR`".to_owned());
    };
    // The program starts in the project's root, but paths are relative to the caller's folder.
    let here = std::env::current_dir().map_err(|e| e.to_string())?;
    let mut program = cargo(&["run", "--quiet", "--profile", "checked"]);
    program
        .args(["--package", "aqlite-cli", "--", "guide", "test"])
        .arg(here.join(folder));
    if let Some(file) = options.given("junit") {
        program.arg("--junit").arg(here.join(file));
    }
    if let Some(now) = options.given("now") {
        program.args(["--now", now]);
    }
    if options.has("lint") {
        program.arg("--lint");
    }
    run(&mut program)
}
