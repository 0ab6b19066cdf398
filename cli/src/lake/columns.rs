//! The columns of a dataset: six of the lake, then those of the view.

use crate::outcome::Failure;
use aqlite::aql::{ResultColumn, ResultSet, VERSION_KEYS};

/// The columns that the lake adds in front of those of the view.
pub const LAKE: [&str; 6] = [
    "ehr_id",
    "object_id",
    "version",
    "time_committed",
    "deleted",
    "sync",
];

/// The columns of a dataset, and their origin in the rows of a query of versions.
pub struct Columns {
    /// The columns of the dataset.
    pub all: Vec<ResultColumn>,
    /// The indices of the columns of the view that are kept.
    pub kept: Vec<usize>,
    /// The index of the first key in the rows of the query.
    pub keys: usize,
}

impl Columns {
    /// Returns the columns of a result. A column `ehr_id` of the view that is the id of the EHR is the
    /// one of the lake.
    ///
    /// # Errors
    /// If the view has another column with a name of the lake, or two columns whose names differ in
    /// the case of letters only.
    pub fn of(result: &ResultSet, view: &str) -> Result<Columns, Failure> {
        let keys = result.columns.len().saturating_sub(VERSION_KEYS);
        let names = result.column_names();
        let mut all: Vec<ResultColumn> = LAKE.iter().map(|name| column(name, None)).collect();
        let mut kept = Vec::new();
        for (index, (found, name)) in result.columns.iter().zip(names).take(keys).enumerate() {
            let path = found.path.as_deref().unwrap_or_default();
            if name == "ehr_id" && path.ends_with("/ehr_id/value") {
                continue;
            }
            // Many readers of tables ignore the case of column names.
            if let Some(other) = all.iter().find(|one| one.name.eq_ignore_ascii_case(&name)) {
                return Err(Failure::Data(format!(
                    "the view `{view}` has the column `{name}`, and the dataset has `{}` already: name it otherwise by AS",
                    other.name
                )));
            }
            kept.push(index);
            all.push(column(&name, found.path.clone()));
        }
        Ok(Columns { all, kept, keys })
    }

    /// Returns a result with these columns and no rows.
    ///
    /// # Errors
    /// If an invariant is broken.
    pub fn result(&self) -> Result<ResultSet, Failure> {
        let result = ResultSet::from_rows(self.all.clone(), std::iter::empty());
        result.map_err(|error| Failure::Data(error.to_string()))
    }
}

fn column(name: &str, path: Option<String>) -> ResultColumn {
    ResultColumn {
        name: name.to_owned(),
        path,
    }
}
