//! The corpus folder: its place and its files.

use serde_json::Value;
use std::path::PathBuf;

/// An opened corpus.
pub struct Corpus {
    root: PathBuf,
    /// The ITS base address to run against instead of the library, for suites that go through the
    /// service.
    pub via: Option<String>,
}

impl Corpus {
    /// Opens the named corpus, or that of the environment, or the default one; `None` if there is
    /// none.
    pub fn open(named: Option<String>, via: Option<String>) -> Result<Option<Corpus>, String> {
        let named = named.or_else(|| {
            std::env::var("AQLITE_CORPUS")
                .ok()
                .filter(|v| !v.is_empty())
        });
        let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.join(named.as_deref().unwrap_or("../shared/corpus"));
        match (root.is_dir(), named) {
            (true, _) => Ok(Some(Corpus { root, via })),
            (false, None) => Ok(None),
            (false, Some(name)) => Err(format!("the corpus `{name}` is missing")),
        }
    }

    /// Returns the servers on which a suite of the service runs: the address of `--via`, else these.
    pub fn vias<'a>(&'a self, otherwise: &[&'a str]) -> Vec<&'a str> {
        let via = self.via.as_deref();
        via.map_or_else(|| otherwise.to_vec(), |via| vec![via])
    }

    /// Reads a text file, given its path in the corpus.
    pub fn text(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(self.root.join(path)).map_err(|e| format!("{path}: {e}"))
    }

    /// Returns the path of a file or folder of the corpus.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the files of a folder, sorted, as paths in the corpus. Empty if the folder does not
    /// exist.
    pub fn files(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(folder))
            .into_iter()
            .flatten()
            .flatten();
        let mut files: Vec<String> = entries
            .map(|e| format!("{folder}/{}", e.file_name().to_string_lossy()))
            .collect();
        files.sort();
        files
    }

    /// Returns the values of a file with one JSON value per line. Empty if the file does not exist.
    pub fn json_lines(&self, path: &str) -> Vec<Value> {
        let text = self.text(path).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

/// Returns a text member of a JSON object. Empty if it is absent or of another type.
pub fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
