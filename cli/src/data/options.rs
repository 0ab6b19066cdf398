//! The options that all commands on data have.

use super::owner::EhrFrom;
use clap::Args;
use std::path::{Path, PathBuf};

/// The data of a command.
#[derive(Args, Clone, Debug)]
pub struct DataOptions {
    /// Files, folders or patterns of compositions and templates; may be repeated. `query`, `shell` and `lake sync` also
    /// take one server (URL) or the database of `aqlite serve`
    #[arg(short, long = "data", value_name = "DATA")]
    pub data: Vec<String>,
    /// A CSV file with the columns path (or glob) and ehr or subject
    #[arg(long, value_name = "FILE")]
    pub ehr_map: Option<PathBuf>,
    /// The part of a path that names the EHR of a file
    #[arg(long, value_enum, default_value_t = EhrFrom::Folder, value_name = "PART")]
    pub ehr_from: EhrFrom,
    /// Leave out files that cannot be read, and do not count them as errors
    #[arg(long)]
    pub skip_invalid: bool,
    /// Read all files, and keep no index of them
    #[arg(long)]
    pub no_cache: bool,
    /// The folder of the index files; by default in the cache folder of the user
    #[arg(long, value_name = "DIR", env = "AQLITE_CACHE_DIR")]
    pub cache_dir: Option<PathBuf>,
}

impl DataOptions {
    /// Returns the paths of the data and of the mapping, as they are named.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        let map = self.ehr_map.as_deref();
        self.data.iter().map(Path::new).chain(map)
    }
}
