//! Stamps: a step with unchanged inputs is skipped.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use crate::process::root;

/// Runs `step` unless its inputs (files or folders, relative to the root) and its outputs are
/// unchanged since the last time.
pub fn unless_fresh(
    name: &str,
    inputs: &[&str],
    output: &Path,
    step: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let file = root().join("target/stamps").join(name);
    let now = format!("{:016x}", digest(inputs));
    if output.exists() && fs::read_to_string(&file).is_ok_and(|then| then == now) {
        println!("{name}: unchanged");
        return Ok(());
    }
    step()?;
    let folder = file.parent().unwrap_or(&file);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&file, now))
        .map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns a digest of names and contents.
fn digest(inputs: &[&str]) -> u64 {
    let mut files = Vec::new();
    for input in inputs {
        collect(&root().join(input), &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.as_os_str().as_encoded_bytes());
        hasher.write(&fs::read(&file).unwrap_or_default());
    }
    hasher.finish()
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        files.push(path.to_path_buf());
        return;
    };
    for entry in entries.flatten() {
        collect(&entry.path(), files);
    }
}
