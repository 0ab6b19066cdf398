//! The tests in JavaScript: files of several folders in one pool of processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use crate::process::{PACKAGES, PACKAGES_VARIABLE, command, root};
use crate::tools::find_browser;

/// The reporter that writes the duration of each file, and the file that it writes.
const REPORTER: &str = "./tests/durations.mjs";
const DURATIONS: &str = "target/node-tests/durations.json";

/// Returns the command that runs all test files of the folders.
pub fn command_of(folders: &[&str]) -> Result<Command, String> {
    let mut files = Vec::new();
    for folder in folders {
        files.extend(test_files(folder)?);
    }
    longest_first(&mut files, &durations());
    // One file for each processor. With more, tests of latency measure the other tests.
    let count = available_parallelism().map_or(2, usize::from);
    let durations = root().join(DURATIONS);
    let folder = durations.parent().unwrap_or(&durations);
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut node = command("node", &["--test"]);
    node.arg(format!("--test-concurrency={count}"))
        .args(["--test-reporter=tap", "--test-reporter-destination=stdout"])
        .arg(format!("--test-reporter={REPORTER}"))
        .arg(format!("--test-reporter-destination={DURATIONS}"))
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

/// Returns the milliseconds of each file in the last run. Empty before the first one.
fn durations() -> BTreeMap<String, f64> {
    let text = fs::read_to_string(root().join(DURATIONS)).unwrap_or_default();
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
    use super::longest_first;

    #[test]
    fn longest_file_is_first_and_unknown_ones_before_it() {
        let mut files = ["a", "b", "c", "d"].map(String::from);
        let durations = [("a", 1.0), ("c", 3.0), ("d", 2.0)];
        let durations = durations.map(|(name, time)| (name.to_owned(), time));
        longest_first(&mut files, &durations.into());
        assert_eq!(files, ["b", "c", "d", "a"]);
    }
}
