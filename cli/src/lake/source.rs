//! The data of a lake: files, the database of `aqlite serve`, or a server.

use super::database::LakeDatabase;
use super::objects::ObjectId;
use super::state::Watermark;
use crate::data::answer::{budget, failure};
use crate::data::catalog::FileProblem;
use crate::data::templates::Templates;
use crate::data::{DataOptions, DataSet};
use crate::outcome::{Failure, Outcome};
use crate::progress::is_interrupted;
use crate::query::{now, report_problems};
use crate::report;
use crate::repository::{QueryText, Repository, RepositoryQuery, result_of};
use crate::server_options::ServerOptions;
use aqlite::aql::{self, Cell, Parameters, Plan, QueryOptions, ResultSet, Run};
use aqlite::document::Number;
use aqlite::rm::id::object_id_of;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The deleted versions of the data that have no successor.
const DELETED: &str = "SELECT v/uid/value, v/commit_audit/time_committed/value
 FROM EHR e CONTAINS VERSION v[ALL_VERSIONS] WHERE v/lifecycle_state/defining_code/code_string = '523'";

/// The EHRs that queries of the population read.
const EHRS: &str = "SELECT e/ehr_id/value FROM EHR e";

/// The number of these EHRs.
const EHR_COUNT: &str = "SELECT COUNT(e/ehr_id/value) FROM EHR e";

/// The subjects of EHRs, also those of earlier versions of their EHR_STATUS.
const SUBJECTS: &str = "SELECT s/subject/external_ref/id/value
 FROM EHR e CONTAINS VERSION v[ALL_VERSIONS] CONTAINS EHR_STATUS s";

/// The receiver of the rows of a view. They come in parts, so that not all of them are in memory.
pub trait RowSink {
    /// Receives a part of the rows, or the columns alone before the first one. All rows of a version
    /// follow one another in one part.
    ///
    /// # Errors
    /// If the rows cannot be written.
    fn take(&mut self, rows: ResultSet) -> Result<(), Failure>;

    /// Forgets all rows so far, because they are sent again.
    ///
    /// # Errors
    /// If that is impossible.
    fn restart(&mut self) -> Result<(), Failure>;
}

/// The data of a lake.
pub enum LakeSource {
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
    set: RefCell<Option<DataSet>>,
}

/// The ids that name a patient.
#[derive(Default)]
pub struct PatientIds {
    /// The ids of all EHRs.
    pub ehrs: HashSet<String>,
    /// The ids of the subjects that any version of an EHR_STATUS names.
    pub subjects: HashSet<String>,
    /// Whether ids of compositions may be derived from the names of files.
    pub has_derived: bool,
}

/// Objects that changed since the last sync, with their EHRs.
pub type Touched = HashMap<String, String>;

/// A version that deletes its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The number of the version.
    pub version: u32,
    /// The time of its commit, as it is stored.
    pub committed: String,
}

impl LakeSource {
    /// Opens the data that the options name.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub fn open(options: &DataOptions, server: &ServerOptions) -> Result<LakeSource, Failure> {
        if options.data.is_empty() {
            let problem = "no data: name files, a database or a server by -d";
            return Err(Failure::Usage(String::from(problem)));
        }
        Ok(match Repository::open(&options.data, server)? {
            // The database is opened again without the REST service, which limits rows and time.
            Some(Repository::Database(_)) => {
                let path = options.data.first().map_or("", String::as_str);
                LakeSource::Database(Box::new(LakeDatabase::open(path)?))
            }
            Some(server) => LakeSource::Server(server),
            None => LakeSource::Files(Box::new(FileSource {
                options: options.clone(),
                set: RefCell::default(),
            })),
        })
    }

    /// Opens the same data for another thread; `None` if that would read all files again.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub fn another(
        options: &DataOptions,
        server: &ServerOptions,
    ) -> Result<Option<LakeSource>, Failure> {
        let source = LakeSource::open(options, server)?;
        if let LakeSource::Files(files) = &source {
            let set = DataSet::open_indexed(options)?;
            let is_indexed = set.is_some();
            files.set.replace(set);
            return Ok(is_indexed.then_some(source));
        }
        Ok(Some(source))
    }

    /// Reads what all views need: the files, and their index if they have one.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn prepare(&self) -> Result<(), Failure> {
        match self {
            LakeSource::Files(files) => files.with(|_| Ok(())),
            LakeSource::Database(_) | LakeSource::Server(_) => Ok(()),
        }
    }

    /// Returns the present state of the data; `None` if it is unknown before they are read.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn watermark(&self) -> Result<Option<Watermark>, Failure> {
        let of_state = |state: String| Watermark {
            state,
            version: None,
            others: None,
            newest: None,
        };
        match self {
            LakeSource::Files(files) => {
                let state = DataSet::fingerprint(&files.options)?;
                Ok(state.map(|state| of_state(format!("{state:032x}"))))
            }
            LakeSource::Database(database) => database.watermark().map(Some),
            LakeSource::Server(server) => Ok(server.state()?.map(of_state)),
        }
    }

    /// Returns the objects that changed since a state; `None` if the data cannot tell them apart.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn touched(&self, since: Option<&Watermark>) -> Result<Option<Touched>, Failure> {
        match (self, since) {
            (LakeSource::Database(database), Some(since)) => database.touched(since),
            _ => Ok(None),
        }
    }

    /// Sends the rows of a query of versions to a sink: those of the EHRs of touched objects, or all.
    ///
    /// # Errors
    /// If the query is wrong, the data cannot be read, or the sink fails.
    pub fn send(
        &self,
        query: &str,
        touched: Option<&Touched>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Failure> {
        match self {
            LakeSource::Files(files) => files.send(query, sink),
            LakeSource::Database(database) => {
                let ehrs = touched.map(ehrs_of);
                database.send(prepare(query)?, ehrs.as_deref(), sink)
            }
            LakeSource::Server(server) => send_pages(server, query, sink),
        }
    }

    /// Returns the ids of the EHRs that queries of the population read.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn ehrs(&self) -> Result<HashSet<String>, Failure> {
        let result = match self {
            LakeSource::Database(database) => return database.ehrs(),
            LakeSource::Files(files) => files.answer(EHRS, None)?,
            LakeSource::Server(server) => listed_ehrs(server)?,
        };
        Ok(result.rows().filter_map(|row| text(row.get(0))).collect())
    }

    /// Returns the ids of all compositions that have a version, also those that are deleted,
    /// ascending; `None` if the data cannot tell a deletion from a removal.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn objects(&self) -> Result<Option<Vec<ObjectId>>, Failure> {
        match self {
            LakeSource::Database(database) => database.objects().map(Some),
            LakeSource::Files(_) | LakeSource::Server(_) => Ok(None),
        }
    }

    /// Returns the ids that name a patient, also those of EHRs that queries of the population do not
    /// read, as far as the data contain them.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn patient_ids(&self) -> Result<PatientIds, Failure> {
        let mut ids = match self {
            LakeSource::Database(database) => database.patient_ids()?,
            LakeSource::Files(files) => files.patient_ids()?,
            LakeSource::Server(_) => PatientIds {
                ehrs: self.ehrs()?,
                ..PatientIds::default()
            },
        };
        let result = match self {
            LakeSource::Database(database) => database.answer(prepare(SUBJECTS)?)?,
            LakeSource::Files(files) => files.answer(SUBJECTS, None)?,
            LakeSource::Server(server) => answer(server, SUBJECTS)?,
        };
        ids.subjects
            .extend(result.rows().filter_map(|row| text(row.get(0))));
        Ok(ids)
    }

    /// Returns the versions that delete an object, by the ids of the objects. `ehrs` returns the EHRs
    /// of the objects that are wanted: of files, the documents of others are not read.
    ///
    /// # Errors
    /// If the data cannot be read.
    pub fn deletions(
        &self,
        ehrs: &dyn Fn() -> Result<Vec<String>, Failure>,
    ) -> Result<HashMap<String, Deletion>, Failure> {
        let result = match self {
            LakeSource::Database(database) => return database.deletions(),
            LakeSource::Files(files) => files.answer(DELETED, Some(&ehrs()?))?,
            LakeSource::Server(server) => answer(server, DELETED)?,
        };
        let mut found: HashMap<String, Deletion> = HashMap::new();
        for row in result.rows() {
            let (Some(uid), Some(committed)) = (text(row.get(0)), text(row.get(1))) else {
                continue;
            };
            let (object, version) = object_and_version(&uid);
            if found
                .get(object)
                // An object may be deleted, restored and deleted again. The last deletion counts.
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
    pub fn templates(&self) -> Result<Option<Arc<Templates>>, Failure> {
        match self {
            LakeSource::Files(files) => files.with(|set| Ok(Some(Arc::clone(&set.templates)))),
            LakeSource::Database(_) | LakeSource::Server(_) => Ok(None),
        }
    }

    /// Returns whether a document of the files could not be read. Its absence then means nothing.
    ///
    /// # Errors
    /// If no file can be read.
    pub fn is_incomplete(&self) -> Result<bool, Failure> {
        let has_error = |set: &DataSet| set.catalog.problems.iter().any(FileProblem::is_error);
        match self {
            LakeSource::Files(files) => files.with(|set| Ok(has_error(set))),
            LakeSource::Database(_) | LakeSource::Server(_) => Ok(false),
        }
    }

    /// Reports the problems of files that were read, and returns whether they are errors.
    pub fn report(&self) -> Outcome {
        match self {
            LakeSource::Files(files) => files
                .set
                .borrow()
                .as_ref()
                .map_or(Outcome::Success, |set| report_problems(set, &files.options)),
            LakeSource::Database(_) | LakeSource::Server(_) => Outcome::Success,
        }
    }
}

impl FileSource {
    /// Computes something from the files, which are read if they were not. If their index turns out
    /// to be damaged, they are read again, and the computation is repeated.
    fn with<T>(&self, compute: impl FnMut(&DataSet) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut held = self.set.borrow_mut();
        let set = match held.take() {
            Some(set) => set,
            None => DataSet::open(&self.options)?,
        };
        held.insert(set).reliably(&self.options, compute)
    }

    fn answer(&self, query: &str, ehrs: Option<&[String]>) -> Result<ResultSet, Failure> {
        let plan = prepare(query)?;
        let plan = match ehrs {
            Some(ehrs) => plan.among(ehrs),
            None => plan,
        };
        let now = now();
        self.with(|set| Ok(set.answer(&plan, &now)?.result))
    }

    fn patient_ids(&self) -> Result<PatientIds, Failure> {
        let (mut ehrs, mut subjects) = (HashSet::new(), HashSet::new());
        self.with(|set| {
            for ehr in &set.catalog.ehrs {
                ehrs.insert(ehr.ehr_id.clone());
                subjects.extend(ehr.subject.iter().map(|(id, _)| id.clone()));
            }
            Ok(())
        })?;
        Ok(PatientIds {
            ehrs,
            subjects,
            has_derived: true,
        })
    }

    fn send(&self, query: &str, sink: &mut dyn RowSink) -> Result<(), Failure> {
        let (plan, now) = (prepare(query)?, now());
        self.with(|set| {
            // Of the rows before a damaged part of the index, nothing may stay.
            sink.restart()?;
            set.answer_in_parts(&plan, &now, &mut |rows| {
                sink.take(rows).map(ControlFlow::Continue)
            })
        })
    }
}

/// Returns the EHRs of touched objects, ascending.
fn ehrs_of(touched: &Touched) -> Vec<String> {
    let mut ehrs: Vec<String> = touched.values().cloned().collect();
    ehrs.sort_unstable();
    ehrs.dedup();
    ehrs
}

/// Sends the rows of a server. Pages of one state of an aqlite server have the rows of a version one
/// after the other. Another server may have them in any order, so all its rows are read and sorted.
fn send_pages(server: &Repository, query: &str, sink: &mut dyn RowSink) -> Result<(), Failure> {
    let query = RepositoryQuery {
        text: QueryText::Aql(query),
        parameters: &Parameters::new(),
    };
    let mut held: Vec<Vec<Cell<String>>> = Vec::new();
    let columns = server.pages(&query, None, &mut |page| {
        held.extend(page.rows);
        // Without a snapshot, the order of the rows is unknown: all of them are collected, and
        // sorted below. The last page needs no cut.
        if page.snapshot.is_none() || !page.has_more {
            return Ok(ControlFlow::Continue(()));
        }
        // The last version may have more rows on the next page.
        let last = held.last().map(|row| uid_of(row).to_owned());
        let is_last = |row: &Vec<Cell<String>>| Some(uid_of(row)) == last.as_deref();
        let complete = held
            .iter()
            .rposition(|row| !is_last(row))
            .map_or(0, |at| at + 1);
        let rest = held.split_off(complete);
        let rows = std::mem::replace(&mut held, rest);
        sink.take(result_of(page.columns, rows)?)
            .map(ControlFlow::Continue)
    })?;
    held.sort_by(|one, other| uid_of(one).cmp(uid_of(other)));
    sink.take(result_of(columns, held)?)
}

/// Returns the uid of the version of a row with the keys of [`aql::version_query`].
fn uid_of(row: &[Cell<String>]) -> &str {
    let keys = row.len().saturating_sub(aql::VERSION_KEYS);
    match row.get(keys + 1) {
        Some(Cell::Text(uid)) => uid,
        _ => "",
    }
}

/// Prepares a query of a lake. It has no parameters: a table has all rows of its query.
fn prepare(query: &str) -> Result<Plan, Failure> {
    aql::prepare(query, &Parameters::new(), &QueryOptions::default()).map_err(|found| {
        report::show(query, "view", &found);
        Failure::Data(String::from("a view is no valid query"))
    })
}

/// Returns a result with the columns of a query, and no rows.
///
/// # Errors
/// If the query is wrong.
pub fn columns_of(query: &str) -> Result<ResultSet, Failure> {
    let (plan, now) = (prepare(query)?, now());
    let run = Run::new(&plan, &now, budget(), &is_interrupted);
    run.finish().map_err(failure)
}

fn answer(server: &Repository, query: &str) -> Result<ResultSet, Failure> {
    server.answer(&RepositoryQuery {
        text: QueryText::Aql(query),
        parameters: &Parameters::new(),
    })
}

fn text(cell: Option<Cell<&str>>) -> Option<String> {
    match cell {
        Some(Cell::Text(text)) => Some(text.to_owned()),
        _ => None,
    }
}

/// Returns the id of the object and the number of a version, from its uid.
pub fn object_and_version(uid: &str) -> (&str, u32) {
    let number = uid
        .rsplit("::")
        .next()
        .and_then(|number| number.parse().ok());
    (object_id_of(uid), number.unwrap_or(1))
}

/// Returns the EHRs of a server.
///
/// # Errors
/// If the server does not answer, or lists fewer EHRs than it has. A server of another vendor may
/// limit results without saying so, and the rows of the other EHRs would be removed from the lake.
fn listed_ehrs(server: &Repository) -> Result<ResultSet, Failure> {
    // An aqlite server names its state, and says that rows are missing. They are counted first, so
    // EHRs that are created meanwhile are only listed.
    let counted = match server.state()? {
        Some(_) => None,
        None => Some(answer(server, EHR_COUNT)?),
    };
    let listed = answer(server, EHRS)?;
    let count = counted.and_then(|counted| match counted.rows().next()?.get(0)? {
        Cell::Number(Number::Token(digits)) => digits.parse::<usize>().ok(),
        _ => None,
    });
    match count {
        Some(count) if count > listed.len() => Err(Failure::Data(format!(
            "the server lists {} of {count} EHRs, because it limits results: remove the limit, or the rows of the other EHRs would be removed",
            listed.len()
        ))),
        _ => Ok(listed),
    }
}
