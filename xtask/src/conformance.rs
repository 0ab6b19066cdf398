//! `cargo xtask conformance [rm|aql|gdl] [--corpus DIR] [--via URL]`: an external corpus against the core.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::Options;
use crate::process;

const DEFAULT_CORPUS: &str = "../shared/corpus";

pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["corpus", "via"], &[])?;
    let areas: Vec<&str> = options.words.iter().map(String::as_str).collect();
    if let Some(other) = areas.iter().find(|area| !["rm", "aql", "gdl"].contains(area)) {
        return Err(format!("unknown area `{other}`: expected rm, aql or gdl"));
    }
    let mut tests = command(&areas);
    if let Some(folder) = options.given("corpus") {
        let here = std::env::current_dir().map_err(|e| e.to_string())?.join(folder);
        if !here.is_dir() {
            return Err(format!("the corpus `{folder}` does not exist"));
        }
        tests.env("AQLITE_CORPUS", here);
    } else {
        check_corpus()?;
    }
    if let Some(base) = options.given("via") {
        tests.env("AQLITE_VIA", base);
    }
    process::run(&mut tests)
}

/// The command that runs the areas of the corpus; all areas when none is named.
pub fn command(areas: &[&str]) -> Command {
    let args = ["test", "--quiet", "--profile", "checked", "--test", "conformance", "--"];
    let mut command = process::cargo(&[&args[..], areas].concat());
    if let Some(corpus) = corpus() {
        command.env("AQLITE_CORPUS", corpus);
    }
    command
}

/// A corpus that is named must exist; without a name, a missing one is skipped loudly.
pub fn check_corpus() -> Result<(), String> {
    match std::env::var("AQLITE_CORPUS") {
        Ok(named) if !process::root().join(&named).is_dir() => Err(format!("AQLITE_CORPUS names `{named}`, which does not exist")),
        Ok(_) => Ok(()),
        Err(_) => {
            if corpus().is_none() {
                println!("WARNING: no corpus at {DEFAULT_CORPUS} and AQLITE_CORPUS is not set: tests that need it are skipped");
            }
            Ok(())
        }
    }
}

/// The corpus as an absolute path.
fn corpus() -> Option<PathBuf> {
    let named = std::env::var("AQLITE_CORPUS").unwrap_or_else(|_| DEFAULT_CORPUS.to_owned());
    process::root().join(Path::new(&named)).canonicalize().ok().filter(|path| path.is_dir())
}
