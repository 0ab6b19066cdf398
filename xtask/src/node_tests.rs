//! The tests in JavaScript: files of several folders in one pool of processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use crate::process::{PACKAGES, PACKAGES_VARIABLE, command, root};
use crate::tools::find_browser;

/// The program that runs the files in a given order, and the durations that it writes.
const RUNNER: &str = "tests/run.mjs";
const DURATIONS: &str = "target/node-tests/durations.json";
const DURATIONS_OF_PROGRAM: &str = "target/node-tests/durations-of-program.json";
/// The durations of earlier runs, in the form of [`DURATIONS`]. They give the order on a fresh clone.
const COMMITTED: &str = "tests/durations.json";

/// The tests of the worker to which `aqlite serve` is held too. Tests of workerd alone in them are
/// skipped (`testOfWorker` in tests/e2e/server.mjs).
const OF_PROGRAM: [&str; 14] = [
    "access",
    "altered",
    "bad_input",
    "concurrency",
    "host",
    "logs",
    "openapi_client",
    "population",
    "privacy",
    "refusals",
    "repository",
    "roles",
    "terminology",
    "transfer",
];

/// Returns the command that runs all test files of the folders.
pub fn command_of(folders: &[&str]) -> Result<Command, String> {
    let mut files = Vec::new();
    for folder in folders {
        files.extend(test_files(folder)?);
    }
    command_of_files(files, DURATIONS)
}

/// Returns the command that runs tests of the worker against the program of a profile.
pub fn command_of_program(program: &Path) -> Result<Command, String> {
    let files = OF_PROGRAM.map(|name| format!("tests/e2e/{name}.test.mjs"));
    let mut node = command_of_files(files.to_vec(), DURATIONS_OF_PROGRAM)?;
    node.env("AQLITE_PROGRAM", program);
    Ok(node)
}

fn command_of_files(mut files: Vec<String>, written: &str) -> Result<Command, String> {
    longest_first(&mut files, &durations());
    // One file for each processor. With more, tests of latency measure the other tests.
    let count = available_parallelism().map_or(2, usize::from);
    let durations = root().join(written);
    let folder = durations.parent().unwrap_or(&durations);
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut node = command("node", &[RUNNER, "--durations", written]);
    node.arg(format!("--concurrency={count}"))
        .args(files)
        .env(PACKAGES_VARIABLE, PACKAGES.join(" "));
    if let Some(found) = find_browser() {
        node.env("CHROMIUM", found.chromium);
    }
    Ok(node)
}

fn test_files(folder: &str) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root().join(folder)).map_err(|e| format!("{folder}: {e}"))?;
    let names = entries
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> = names
        .filter(|name| name.ends_with(".test.mjs"))
        .map(|name| Path::new(folder).join(name).to_string_lossy().into_owned())
        .collect();
    files.sort();
    Ok(files)
}

/// Returns the milliseconds of each file in the last run. A file that has not run here yet has
/// those of the sources.
fn durations() -> BTreeMap<String, f64> {
    let mut all = durations_in(COMMITTED);
    all.extend(durations_in(DURATIONS));
    all
}

fn durations_in(file: &str) -> BTreeMap<String, f64> {
    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Sorts files by their durations, the longest first, so that none runs alone at the end. Unknown
/// files are first.
fn longest_first(files: &mut [String], durations: &BTreeMap<String, f64>) {
    let of = |file: &String| durations.get(file).copied().unwrap_or(f64::INFINITY);
    files.sort_by(|a, b| of(b).total_cmp(&of(a)));
}

#[cfg(test)]
mod tests {
    use super::{COMMITTED, RUNNER, durations_in, longest_first};
    use crate::process::{command, root};
    use std::fs;

    #[test]
    fn longest_file_is_first_and_unknown_ones_before_it() {
        let mut files = ["a", "b", "c", "d"].map(String::from);
        let durations = [("a", 1.0), ("c", 3.0), ("d", 2.0)];
        let durations = durations.map(|(name, time)| (name.to_owned(), time));
        longest_first(&mut files, &durations.into());
        assert_eq!(files, ["b", "c", "d", "a"]);
    }

    #[test]
    fn files_run_in_the_given_order() {
        let folder = root().join("target/node-tests/order");
        fs::create_dir_all(&folder).unwrap();
        for name in ["a", "b"] {
            let text =
                format!("import {{ test }} from 'node:test';\ntest('{name}', () => {{}});\n");
            fs::write(folder.join(name).with_extension("test.mjs"), text).unwrap();
        }
        let written = "target/node-tests/order/durations.json";
        let files = ["b", "a"].map(|name| format!("target/node-tests/order/{name}.test.mjs"));
        let arguments = [RUNNER, "--concurrency=1", "--durations", written];
        let run = command("node", &arguments).args(&files).output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{text}");
        let at = |name: &str| text.find(&format!("# Subtest: {name}")).unwrap();
        assert!(at("b") < at("a"), "{text}");
        assert_eq!(durations_in(written).len(), 2);
    }

    #[test]
    fn committed_durations_name_existing_files() {
        let durations = durations_in(COMMITTED);
        assert!(!durations.is_empty(), "{COMMITTED} has no durations");
        let missing: Vec<_> = durations
            .keys()
            .filter(|name| !root().join(name).is_file())
            .collect();
        assert!(
            missing.is_empty(),
            "{COMMITTED} names no files: {missing:?}"
        );
    }
}
