//! The data of a lake: files, the database of `aqlite serve`, or a server.

use super::database::LakeDatabase;
use super::state::Watermark;
use crate::data::{DataOptions, DataSet};
use crate::outcome::{Failure, Outcome};
use crate::query::{now, report_problems};
use crate::report;
use crate::repository::{QueryText, Repository, RepositoryQuery};
use aqlite::aql::{self, Cell, Parameters, Plan, QueryOptions, ResultSet};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// The deleted versions of the data that have no successor.
const DELETED: &str = "SELECT v/uid/value, v/commit_audit/time_committed/value
 FROM EHR e CONTAINS VERSION v[ALL_VERSIONS] WHERE v/lifecycle_state/defining_code/code_string = '523'";

/// The EHRs that queries of the population read.
const EHRS: &str = "SELECT e/ehr_id/value FROM EHR e";

/// The subjects of EHRs.
const SUBJECTS: &str = "SELECT e/ehr_id/value, s/subject/external_ref/id/value
 FROM EHR e CONTAINS EHR_STATUS s";

/// The data of a lake.
pub enum Source {
    /// Files of documents.
    Files(Box<FileSource>),
    /// The database of `aqlite serve`.
    Database(Box<LakeDatabase>),
    /// A server with the REST interface of openEHR.
    Server(Repository),
}

/// Files of documents. They are read when a view needs them.
pub struct FileSource {
    options: DataOptions,
    set: OnceCell<DataSet>,
}

/// The rows of a view with the keys of [`aql::version_query`].
pub struct ViewRows {
    /// The rows.
    pub result: ResultSet,
    /// The objects that changed since the last sync; `None` if these are the rows of all objects.
    pub touched: Option<HashSet<String>>,
}

/// A version that deletes its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The number of the version.
    pub version: u32,
    /// The time of its commit, as it is stored.
    pub committed: String,
}

impl Source {
    /// Opens the data that the options name.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub fn open(options: &DataOptions, token: Option<&str>) -> Result<Source, Failure> {
        if options.data.is_empty() {
            let problem = "no data: name files, a database or a server by -d";
            return Err(Failure::Usage(String::from(problem)));
        }
        Ok(match Repository::open(&options.data, token)? {
            Some(Repository::Database(_)) => {
                let path = options.data.first().map_or("", String::as_str);
                Source::Database(Box::new(LakeDatabase::open(path)?))
            }
            Some(server) => Source::Server(server),
            None => Source::Files(Box::new(FileSource {
                options: options.clone(),
                set: OnceCell::new(),
            })),
        })
    }

    /// Returns the present state of the data; `None` if it is unknown before they are read.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn watermark(&self) -> Result<Option<Watermark>, Failure> {
        match self {
            Source::Files(files) => {
                let state = DataSet::fingerprint(&files.options)?;
                Ok(state.map(|state| Watermark {
                    state: format!("{state:032x}"),
                    version: None,
                    others: None,
                }))
            }
            Source::Database(database) => database.watermark().map(Some),
            Source::Server(_) => Ok(None),
        }
    }

    /// Returns the rows of a query of versions: those of objects that changed since a state, if the
    /// data can tell them apart, else all.
    ///
    /// # Errors
    /// If the query is wrong, or the data cannot be read.
    pub fn rows(&self, query: &str, since: Option<&Watermark>) -> Result<ViewRows, Failure> {
        let complete = |result| ViewRows {
            result,
            touched: None,
        };
        match self {
            Source::Files(files) => files.answer(query).map(complete),
            Source::Database(database) => database.rows(prepare(query)?, since),
            Source::Server(server) => answer(server, query).map(complete),
        }
    }

    /// Returns the ids of the EHRs that queries of the population read.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn ehrs(&self) -> Result<HashSet<String>, Failure> {
        let result = match self {
            Source::Database(database) => return database.ehrs(),
            Source::Files(files) => files.answer(EHRS)?,
            Source::Server(server) => answer(server, EHRS)?,
        };
        Ok(result.rows().filter_map(|row| text(row.get(0))).collect())
    }

    /// Returns the ids of all compositions that have a version, also those that are deleted; `None` if
    /// the data cannot tell a deletion from a removal.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn objects(&self) -> Result<Option<HashSet<String>>, Failure> {
        match self {
            Source::Database(database) => database.objects().map(Some),
            Source::Files(_) | Source::Server(_) => Ok(None),
        }
    }

    /// Returns the ids of the subjects of EHRs, by the ids of the EHRs.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn subjects(&self) -> Result<HashMap<String, String>, Failure> {
        let result = match self {
            Source::Database(database) => return database.subjects(),
            Source::Files(files) => files.answer(SUBJECTS)?,
            Source::Server(server) => answer(server, SUBJECTS)?,
        };
        let pairs = result
            .rows()
            .map(|row| (text(row.get(0)), text(row.get(1))));
        Ok(pairs
            .filter_map(|(ehr, subject)| Some((ehr?, subject?)))
            .collect())
    }

    /// Returns the versions that delete an object, by the ids of the objects.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn deletions(&self) -> Result<HashMap<String, Deletion>, Failure> {
        let result = match self {
            Source::Database(database) => return database.deletions(),
            Source::Files(files) => files.answer(DELETED)?,
            Source::Server(server) => answer(server, DELETED)?,
        };
        let mut found: HashMap<String, Deletion> = HashMap::new();
        for row in result.rows() {
            let (Some(uid), Some(committed)) = (text(row.get(0)), text(row.get(1))) else {
                continue;
            };
            let (object, version) = object_and_version(&uid);
            if found
                .get(object)
                .is_none_or(|other| other.version < version)
            {
                found.insert(object.to_owned(), Deletion { version, committed });
            }
        }
        Ok(found)
    }

    /// Returns the templates of files; `None` for a repository.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn files(&self) -> Result<Option<&DataSet>, Failure> {
        match self {
            Source::Files(files) => files.set().map(Some),
            Source::Database(_) | Source::Server(_) => Ok(None),
        }
    }

    /// Reports the problems of files that were read, and returns whether they are errors.
    pub fn report(&self) -> Outcome {
        match self {
            Source::Files(files) => files.set.get().map_or(Outcome::Success, |set| {
                report_problems(set, files.options.skip_invalid)
            }),
            Source::Database(_) | Source::Server(_) => Outcome::Success,
        }
    }
}

impl FileSource {
    fn set(&self) -> Result<&DataSet, Failure> {
        if let Some(set) = self.set.get() {
            return Ok(set);
        }
        let set = DataSet::open(&self.options)?;
        Ok(self.set.get_or_init(|| set))
    }

    fn answer(&self, query: &str) -> Result<ResultSet, Failure> {
        let plan = prepare(query)?;
        Ok(self.set()?.answer(&plan, &now())?.result)
    }
}

/// Prepares a query of a lake. It has no parameters: a table has all rows of its query.
fn prepare(query: &str) -> Result<Plan, Failure> {
    aql::prepare(query, &Parameters::new(), &QueryOptions::default()).map_err(|found| {
        report::show(query, "view", &found);
        Failure::Data(String::from("a view is no valid query"))
    })
}

fn answer(server: &Repository, query: &str) -> Result<ResultSet, Failure> {
    let answer = server.answer(&RepositoryQuery {
        text: QueryText::Aql(query),
        parameters: &Parameters::new(),
    })?;
    Ok(answer.result)
}

fn text(cell: Option<Cell<&str>>) -> Option<String> {
    match cell {
        Some(Cell::Text(text)) => Some(text.to_owned()),
        _ => None,
    }
}

/// Returns the id of the object and the number of a version, from its uid.
pub fn object_and_version(uid: &str) -> (&str, u32) {
    let object = uid.split("::").next().unwrap_or_default();
    let number = uid
        .rsplit("::")
        .next()
        .and_then(|number| number.parse().ok());
    (object, number.unwrap_or(1))
}
