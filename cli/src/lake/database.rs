//! The database of `aqlite serve` as the data of a lake. Queries run on its segments, without the
//! REST interface and its limits.

use super::source::{Deletion, ViewRows};
use super::state::Watermark;
use crate::outcome::Failure;
use crate::progress::is_interrupted;
use crate::query::now;
use crate::serve::database;
use crate::serve::sqlite::Sqlite;
use aqlite::aql::{Checkpoint, Plan, Progress, ResultSet, Run};
use aqlite::document::Batch;
use aqlite::store::repository::{BatchSink, Repository};
use aqlite::store::sql::SqlRepository;
use rusqlite::{Connection, Row};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use tokio::runtime::{Builder, Runtime};

/// The newest version, and everything else that changes which rows a query has.
const STATE: &str = "SELECT max((SELECT coalesce(max(id), 0) FROM version), (SELECT value FROM meta WHERE name = 'last_version')),
  (SELECT coalesce(max(id), 0) FROM removal) || '.' || (SELECT count(*) FROM queryable_before) || '.' || (SELECT count(*) FROM ehr WHERE NOT is_queryable),
  (SELECT value FROM meta WHERE name = 'revision')";

/// Objects with compositions that changed after a version, with their EHRs.
const TOUCHED: &str = "SELECT DISTINCT v.object, e.ehr_id FROM version v JOIN ehr e ON e.id = v.ehr
  WHERE v.id > ?1 AND v.kind = 1 AND e.is_queryable";

/// Compositions whose latest version deletes them.
const DELETED: &str = "SELECT object, number, time_committed FROM version
  WHERE successor IS NULL AND lifecycle = '523' AND kind = 1";

const OBJECTS: &str = "SELECT DISTINCT object FROM version WHERE kind = 1";

const EHRS: &str = "SELECT ehr_id FROM ehr WHERE id > 0 AND is_queryable";

const SUBJECTS: &str = "SELECT ehr_id, subject_id FROM ehr WHERE subject_id IS NOT NULL";

/// The most EHRs that a query names. If more of them changed, the segments of all are read.
const NAMED: usize = 2_000;

/// Bytes of parts of segments that a query may load.
const PARTS: usize = 1_073_741_824;

/// A database that is read only. Another process may serve it meanwhile.
pub struct LakeDatabase {
    repository: SqlRepository<Sqlite>,
    database: Sqlite,
    runtime: Runtime,
}

impl LakeDatabase {
    /// Opens a database.
    ///
    /// # Errors
    /// If it cannot be read, or is of another release.
    pub fn open(path: &str) -> Result<LakeDatabase, Failure> {
        let opened = database::read_only(Path::new(path), Some((PARTS, PARTS)));
        let (database, repository) =
            opened.map_err(|error| Failure::Data(format!("{path}: {error:#}")))?;
        Ok(LakeDatabase {
            repository,
            database,
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Returns the present state.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn watermark(&self) -> Result<Watermark, Failure> {
        let read = |row: &Row<'_>| {
            let (version, others, revision) = (row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?);
            let state = format!("{version}.{others}.{revision}");
            Ok(Watermark {
                state,
                version: Some(version),
                others: Some(others),
            })
        };
        let found: rusqlite::Result<Watermark> = self.connection().query_one(STATE, [], read);
        found.map_err(|error| failure(&error))
    }

    /// Runs a query of versions. If only new versions came since a state, it is run on their EHRs.
    ///
    /// # Errors
    /// If the database cannot be read, or the user stops.
    pub fn rows(&self, plan: Plan, since: Option<&Watermark>) -> Result<ViewRows, Failure> {
        let touched = match since {
            Some(since) => self.touched(since)?,
            None => None,
        };
        let Some(touched) = touched else {
            return Ok(ViewRows {
                result: self.run(&plan)?,
                touched: None,
            });
        };
        let ehrs: HashSet<String> = touched.values().cloned().collect();
        let mut ehrs: Vec<String> = ehrs.into_iter().collect();
        ehrs.sort_unstable();
        Ok(ViewRows {
            result: self.run(&plan.among(&ehrs))?,
            touched: Some(touched.into_keys().collect()),
        })
    }

    /// Returns the objects that changed since a state, with their EHRs; `None` if they are too many,
    /// or if more than versions changed.
    fn touched(&self, since: &Watermark) -> Result<Option<HashMap<String, String>>, Failure> {
        let now = self.watermark()?;
        let Some(version) = since.version.filter(|_| now.others == since.others) else {
            return Ok(None);
        };
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let touched: HashMap<String, String> =
            self.list(TOUCHED, [version], read)?.into_iter().collect();
        let ehrs: HashSet<&String> = touched.values().collect();
        let are_few = ehrs.len() <= NAMED;
        Ok(are_few.then_some(touched))
    }

    /// Returns the ids of the EHRs that queries of the population read.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn ehrs(&self) -> Result<HashSet<String>, Failure> {
        let ehrs = self.list(EHRS, [], |row| row.get(0))?;
        Ok(ehrs.into_iter().collect())
    }

    /// Returns the ids of all compositions that have a version.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn objects(&self) -> Result<HashSet<String>, Failure> {
        let objects = self.list(OBJECTS, [], |row| row.get(0))?;
        Ok(objects.into_iter().collect())
    }

    /// Returns the ids of the subjects of EHRs.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn subjects(&self) -> Result<HashMap<String, String>, Failure> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        Ok(self.list(SUBJECTS, [], read)?.into_iter().collect())
    }

    /// Returns the compositions whose latest version deletes them.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn deletions(&self) -> Result<HashMap<String, Deletion>, Failure> {
        let read = |row: &Row<'_>| {
            let deletion = Deletion {
                version: row.get(1)?,
                committed: row.get(2)?,
            };
            Ok((row.get(0)?, deletion))
        };
        Ok(self.list(DELETED, [], read)?.into_iter().collect())
    }

    fn connection(&self) -> &Connection {
        self.database.connection()
    }

    fn list<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Failure> {
        let mut prepared = self
            .connection()
            .prepare_cached(sql)
            .map_err(|error| failure(&error))?;
        let rows = prepared.query_map(parameters, read);
        let rows = rows.and_then(Iterator::collect);
        rows.map_err(|error| failure(&error))
    }

    fn run(&self, plan: &Plan) -> Result<ResultSet, Failure> {
        let now = now();
        let begin = || Run::new(plan, &now, crate::data::answer::budget(), &is_interrupted);
        let mut sink = Rows {
            run: begin(),
            begin: &begin,
            before: None,
        };
        let scanned = self.repository.scan(plan.scan(), &mut sink);
        self.runtime
            .block_on(scanned)
            .map_err(|error| Failure::Data(error.to_string()))?;
        sink.run.finish().map_err(crate::data::answer::failure)
    }
}

/// The sink of a query: it evaluates each batch.
struct Rows<'r, 'c> {
    run: Run<'r>,
    begin: &'c dyn Fn() -> Run<'r>,
    /// The state before the segment that is being sent.
    before: Option<Checkpoint>,
}

impl BatchSink for Rows<'_, '_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        self.run.advance(batch)
    }

    fn checkpoint(&mut self) -> bool {
        self.before = self.run.checkpoint();
        self.before.is_some()
    }

    fn roll_back(&mut self) {
        if let Some(before) = &self.before {
            self.run.roll_back(before);
        }
    }

    fn restart(&mut self) -> bool {
        let earlier = std::mem::replace(&mut self.run, (self.begin)());
        self.run.take_over(earlier);
        !is_interrupted()
    }
}

fn failure(error: &rusqlite::Error) -> Failure {
    Failure::Data(error.to_string())
}
