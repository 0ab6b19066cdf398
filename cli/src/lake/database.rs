//! The database of `aqlite serve` as the data of a lake. Queries run on its segments, without the
//! REST interface and its limits.

use super::objects::ObjectId;
use super::source::{Deletion, PatientIds, RowSink};
use super::state::Watermark;
use crate::data::answer::{budget, failure as failed};
use crate::outcome::Failure;
use crate::progress::is_interrupted;
use crate::query::now;
use crate::repository::result_of;
use crate::serve::database;
use crate::serve::sqlite::Sqlite;
use aqlite::aql::{Cell, Plan, Progress, ResultColumn, ResultSet, Run};
use aqlite::document::{Batch, absent_reads};
use aqlite::store::repository::{BatchSink, Repository};
use aqlite::store::sql::SqlRepository;
use rusqlite::{Connection, Row};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The newest version, and everything else that changes which rows a query has.
const STATE: &str = "SELECT max((SELECT coalesce(max(id), 0) FROM version), (SELECT value FROM meta WHERE name = 'last_version')),
  (SELECT coalesce(max(id), 0) FROM removal) || '.' || (SELECT count(*) FROM queryable_before) || '.' || (SELECT count(*) FROM ehr WHERE NOT is_queryable),
  (SELECT value FROM meta WHERE name = 'revision'),
  (SELECT uid FROM contribution WHERE id = (SELECT max(id) FROM contribution))";

/// The CONTRIBUTION with a uid.
const CONTRIBUTION: &str = "SELECT uid FROM contribution WHERE uid = ?1";

/// Objects with compositions that changed after a version, with their EHRs.
const TOUCHED: &str = "SELECT DISTINCT v.object, e.ehr_id FROM version v JOIN ehr e ON e.id = v.ehr
  WHERE v.id > ?1 AND v.kind = 1 AND e.is_queryable";

/// Compositions whose latest version deletes them.
const DELETED: &str = "SELECT object, number, time_committed FROM version
  WHERE successor IS NULL AND lifecycle = '523' AND kind = 1";

const OBJECTS: &str = "SELECT object FROM version WHERE kind = 1";

const EHRS: &str = "SELECT ehr_id FROM ehr WHERE id > 0 AND is_queryable";

const ALL_EHRS: &str = "SELECT ehr_id FROM ehr WHERE id > 0";

const SUBJECTS: &str = "SELECT subject_id FROM ehr WHERE subject_id IS NOT NULL";

/// The most EHRs that a query names. If more of them changed, the segments of all are read.
const NAMED: usize = 2_000;

/// Bytes of parts of segments that a query may load. With more of them the segments are sent one
/// after the other, and the memory is that of one.
const PARTS: usize = 67_108_864;

/// A database that is read only. Another process may serve it meanwhile.
pub struct LakeDatabase {
    repository: SqlRepository<Sqlite>,
    database: Sqlite,
}

impl LakeDatabase {
    /// Opens a database.
    ///
    /// # Errors
    /// If it cannot be read, or is of another release.
    pub fn open(path: &str) -> Result<LakeDatabase, Failure> {
        // Nothing stays in memory between queries: each sync reads every segment once.
        let opened = database::read_only(Path::new(path), Some((0, PARTS)));
        let (database, repository) =
            opened.map_err(|error| Failure::Data(format!("{path}: {error:#}")))?;
        Ok(LakeDatabase {
            repository,
            database,
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
                newest: row.get(3)?,
            })
        };
        let found: rusqlite::Result<Watermark> = self.connection().query_one(STATE, [], read);
        found.map_err(|error| failure(&error))
    }

    /// Sends the rows of a query of versions, of some EHRs or of all, to a sink.
    ///
    /// # Errors
    /// If the database cannot be read, the sink fails, or the user stops.
    pub fn send(
        &self,
        plan: Plan,
        ehrs: Option<&[String]>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Failure> {
        let plan = match ehrs {
            Some(ehrs) => plan.among(ehrs),
            None => plan,
        };
        let now = now();
        // The columns, also of a query without rows.
        sink.take(
            Run::new(&plan, &now, budget(), &is_interrupted)
                .finish()
                .map_err(failed)?,
        )?;
        let mut batches = Batches {
            plan: &plan,
            now: &now,
            sink,
            outcome: Ok(()),
        };
        let scanned = completed(self.repository.scan(plan.scan(), &mut batches));
        batches.outcome?;
        scanned.map_err(|error| Failure::Data(error.to_string()))?;
        match is_interrupted() {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }

    /// Returns the objects that changed since a state, with their EHRs; `None` if they are too many,
    /// or if more than versions changed. This includes a database that was restored to an earlier
    /// state.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn touched(&self, since: &Watermark) -> Result<Option<HashMap<String, String>>, Failure> {
        let now = self.watermark()?;
        // After a removal or a change of `is_queryable`, new versions alone do not explain the
        // difference.
        let Some(version) = since.version.filter(|_| now.others == since.others) else {
            return Ok(None);
        };
        let newest: Vec<String> = self.list(CONTRIBUTION, [&since.newest], |row| row.get(0))?;
        if newest.is_empty() {
            return Ok(None);
        }
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

    /// Returns the ids of all compositions that have a version, ascending.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn objects(&self) -> Result<Vec<ObjectId>, Failure> {
        let read = |row: &Row<'_>| {
            let id = row.get_ref(0)?.as_str();
            id.map(ObjectId::of).map_err(rusqlite::Error::from)
        };
        let mut objects = self.list(OBJECTS, [], read)?;
        objects.sort_unstable();
        objects.dedup();
        Ok(objects)
    }

    /// Returns the ids of all EHRs, and of their present subjects.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn patient_ids(&self) -> Result<PatientIds, Failure> {
        let ehrs = self.list(ALL_EHRS, [], |row| row.get(0))?;
        let subjects = self.list(SUBJECTS, [], |row| row.get(0))?;
        Ok(PatientIds {
            ehrs: ehrs.into_iter().collect(),
            subjects: subjects.into_iter().collect(),
            has_derived: false,
        })
    }

    /// Returns all rows of a query of versions.
    ///
    /// # Errors
    /// As [`LakeDatabase::send`].
    pub fn answer(&self, plan: Plan) -> Result<ResultSet, Failure> {
        let mut rows = Rows::default();
        self.send(plan, None, &mut rows)?;
        result_of(rows.columns, rows.rows)
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
}

/// The sink of a query whose rows come from one document each: it evaluates each batch alone, so
/// that the memory is that of the rows of one batch.
struct Batches<'b> {
    plan: &'b Plan,
    now: &'b str,
    sink: &'b mut dyn RowSink,
    outcome: Result<(), Failure>,
}

/// The rows of a query that has few of them.
#[derive(Default)]
struct Rows {
    columns: Vec<ResultColumn>,
    rows: Vec<Vec<Cell<String>>>,
}

impl RowSink for Rows {
    fn take(&mut self, rows: ResultSet) -> Result<(), Failure> {
        let cells = |row: aqlite::aql::Row<'_>| row.iter().map(|cell| cell.to_owned()).collect();
        self.rows.extend(rows.rows().map(cells));
        self.columns = rows.columns;
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Failure> {
        self.rows.clear();
        Ok(())
    }
}

impl Batches<'_> {
    fn rows_of(&self, batch: &Batch) -> Result<ResultSet, Failure> {
        let mut run = Run::new(self.plan, self.now, budget(), &is_interrupted);
        run.push(batch);
        run.finish().map_err(failed)
    }
}

impl BatchSink for Batches<'_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        let before = absent_reads();
        let rows = self.rows_of(batch);
        // The repository sends the batch again with the parts that were absent.
        if absent_reads() == before {
            self.outcome = rows.and_then(|rows| match rows.is_empty() {
                true => Ok(()),
                false => self.sink.take(rows),
            });
        }
        match self.outcome {
            Ok(()) if !is_interrupted() => Progress::More,
            _ => Progress::Enough,
        }
    }

    fn savepoint(&mut self) -> bool {
        // No rows of a batch with absent parts were taken, so there is nothing to return to.
        true
    }

    fn restart(&mut self) -> bool {
        if self.outcome.is_ok() {
            self.outcome = self.sink.restart();
        }
        self.outcome.is_ok() && !is_interrupted()
    }
}

/// Polls a future of the repository until it is complete. Its reads block the thread, so it only waits
/// for itself. A runtime could not be entered again by the sink, which writes files.
fn completed<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return outcome;
        }
    }
}

fn failure(error: &rusqlite::Error) -> Failure {
    Failure::Data(error.to_string())
}
