//! Stamps: a step with unchanged inputs is skipped.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use crate::process::root;

/// A step of a build whose inputs and output decide whether it runs.
pub struct Stamped<'s> {
    /// The name of the step, and of the file with the digest of its inputs.
    pub name: &'s str,
    /// Files or folders, relative to the root.
    pub inputs: Vec<&'s str>,
    /// A file or folder that the step writes.
    pub output: PathBuf,
}

impl Stamped<'_> {
    /// Returns whether inputs and output are unchanged since the last time.
    pub fn is_fresh(&self) -> bool {
        self.holds(&self.digest())
    }

    /// Runs `step` unless its inputs and its output are unchanged since the last time.
    pub fn unless_fresh(&self, step: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let now = self.digest();
        if self.holds(&now) {
            println!("{}: unchanged", self.name);
            return Ok(());
        }
        step()?;
        let file = self.file();
        let folder = file.parent().unwrap_or(&file);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, now))
            .map_err(|e| format!("{}: {e}", file.display()))
    }

    fn holds(&self, now: &str) -> bool {
        self.output.exists() && fs::read_to_string(self.file()).is_ok_and(|then| then == now)
    }

    fn file(&self) -> PathBuf {
        root().join("target/stamps").join(self.name)
    }

    fn digest(&self) -> String {
        format!("{:016x}", digest(&self.inputs))
    }
}

/// Runs `step` unless its inputs (files or folders, relative to the root) and its output are
/// unchanged since the last time.
pub fn unless_fresh(
    name: &str,
    inputs: &[&str],
    output: &Path,
    step: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let stamped = Stamped {
        name,
        inputs: inputs.to_vec(),
        output: output.to_path_buf(),
    };
    stamped.unless_fresh(step)
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
