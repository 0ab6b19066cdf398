//! The access log in SQL: a database of its own, and a queue for the records of change sets in the
//! database of the documents.
//!
//! A change set and its record are one transaction, so the record is first written into the
//! database of the documents (table `access_log` of `migrations/`, which held the complete log in
//! earlier releases). It is moved to the log's own database (`migrations-log/`) when the log is
//! read, by the nightly maintenance, and after [`QUEUE_LIMIT`] change sets. A record is removed
//! from the queue after it was added to the log. Its key prevents that it is added twice.

use super::SqlRepository;
use super::rows::{Cell, CollectedRows, Insert};
use super::value::{Answers, Fields, Sql, Statement, unexpected};
use crate::store::log::{LogEntry, LogStore};
use crate::store::repository::{AccessFilter, AccessRecord, StoreError};

/// Inserts queued records of change sets.
pub(super) static INSERT_QUEUED: Insert = Insert::new(
    "INSERT INTO access_log (time, who, issuer, operation, object, ehr_id, query, status, request_id, key)",
    "{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, lower(hex(randomblob(16)))",
);
/// Records that an earlier release wrote have no key. Their content distinguishes them.
const WAITING: &str = "SELECT id, coalesce(key, id || ' ' || time || ' ' || request_id) AS key,
      time, who, issuer, operation, object, ehr_id, query, status, request_id, NULL AS refused
    FROM access_log ORDER BY id LIMIT ?1";
/// The database only removes records that are marked as moved.
const MOVED: [&str; 2] = [
    "UPDATE meta SET value = max(value, ?1) WHERE name = 'log_moved'",
    "DELETE FROM access_log WHERE id <= ?1",
];

macro_rules! append {
    ($condition:literal, $rest:literal) => {
        concat!(
            "INSERT INTO access_log (time, who, issuer, operation, object, ehr_id, query, status, request_id, key, refused)
             SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6, j.value ->> 7,
               j.value ->> 8, j.value ->> 9, j.value ->> 10
             FROM json_each(?1) j WHERE ",
            $condition,
            $rest
        )
    };
}

const APPEND: &str = append!("true", " ON CONFLICT DO NOTHING");
/// `?2` the day, `?3` the maximum number of records of a day.
const APPEND_REFUSED: &str = append!(
    "(SELECT count(*) FROM (SELECT 1 FROM access_log WHERE refused IS NOT NULL AND time >= ?2 LIMIT ?3)) < ?3",
    " RETURNING id"
);
/// Reads records in the order of time. The order of their numbers is another one: a record that was
/// moved here has a higher number than later ones that were added directly. `?1` is the number of
/// the record before the page. If that record has expired, the page is the first one.
const READ: &str = "SELECT id, time, who, issuer, operation, object, ehr_id, query, status, request_id, refused FROM access_log
    WHERE (time, id) > (SELECT coalesce(max(time), ''), coalesce(max(id), 0) FROM access_log WHERE id = ?1)
      AND time >= ?2 AND time < ?3 AND (?4 IS NULL OR ehr_id = ?4) AND (?5 IS NULL OR who = ?5) ORDER BY time, id LIMIT ?6";
const KEEP_FOR: &str = "UPDATE retention SET days = ?1 WHERE days <> ?1";
/// Records are approximately in the order of their times, so only the first ones are compared.
const EXPIRE: &str = "DELETE FROM access_log WHERE id IN (SELECT id FROM access_log ORDER BY id LIMIT ?2) AND time < ?1
    AND time < (SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now', '-' || days || ' days') FROM retention) RETURNING id";
/// A text that sorts behind the text form of every time.
const NEVER: &str = "~";

/// Records that are moved in one step.
const STEP: u64 = 1_000;
/// The maximum number of steps of a move.
const MAX_STEPS: usize = 100;
/// The number of queued records after which an instance moves them.
const QUEUE_LIMIT: u64 = 5_000;
/// Records that are removed for their age in one step.
const EXPIRED: u64 = 2_000;

/// The access log in a database of its own.
pub struct SqlLog<S>(S);

impl<S: Sql> SqlLog<S> {
    /// Creates the log in the database of an executor. `migrations-log/` has the schema.
    pub fn new(sql: S) -> SqlLog<S> {
        SqlLog(sql)
    }
}

impl<S: Sql> LogStore for SqlLog<S> {
    async fn append(&self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut rows = CollectedRows::new(APPEND);
        entries
            .iter()
            .for_each(|entry| rows.push(&with_key(&entry.access, entry.key.as_deref())));
        self.0.batch(rows.take_statements().collect()).await?;
        Ok(())
    }

    async fn append_refused(
        &self,
        entries: &[AccessRecord],
        day: &str,
        most: u64,
    ) -> Result<bool, StoreError> {
        let mut rows = CollectedRows::new(APPEND_REFUSED);
        entries
            .iter()
            .for_each(|access| rows.push(&with_key(access, None)));
        let batch = rows
            .take_statements()
            .map(|statement| statement.bind(day).bind(most))
            .collect();
        Ok(self
            .0
            .batch(batch)
            .await?
            .iter()
            .any(|rows| !rows.is_empty()))
    }

    async fn read(
        &self,
        filter: &AccessFilter<'_>,
    ) -> Result<Vec<(u64, AccessRecord)>, StoreError> {
        let query = Statement::new(READ)
            .bind(filter.after)
            .bind(filter.from.unwrap_or(""))
            .bind(filter.to.unwrap_or(NEVER));
        let query = query
            .bind(filter.ehr_id)
            .bind(filter.who)
            .bind(filter.limit);
        let rows = Answers::of(self.0.batch(vec![query]).await?).next()?;
        rows.into_iter()
            .map(|row| entry(&mut Fields::of(row)))
            .collect()
    }

    async fn keep_for(&self, days: u32) -> Result<(), StoreError> {
        self.0
            .batch(vec![Statement::new(KEEP_FOR).bind(u64::from(days))])
            .await?;
        Ok(())
    }

    async fn expire(&self, before: &str, most: u64) -> Result<u64, StoreError> {
        let expire = Statement::new(EXPIRE).bind(before).bind(most);
        let rows = Answers::of(self.0.batch(vec![expire]).await?).next()?;
        Ok(rows.len() as u64)
    }
}

impl<S: Sql> SqlRepository<S> {
    /// Returns this repository with the access log in a database of its own. Without one, only
    /// change sets are logged, and the log cannot be read.
    pub fn with_log(self, sql: S) -> SqlRepository<S> {
        SqlRepository {
            log: Some(SqlLog::new(sql)),
            ..self
        }
    }

    pub(super) fn log(&self) -> Result<&SqlLog<S>, StoreError> {
        self.log.as_ref().ok_or_else(|| {
            StoreError::Unavailable("the access log has no database: bind one as LOG".into())
        })
    }

    pub(super) async fn read_accesses(
        &self,
        filter: &AccessFilter<'_>,
    ) -> Result<Vec<(u64, AccessRecord)>, StoreError> {
        self.move_log().await?;
        self.log()?.read(filter).await
    }

    /// Moves the records of change sets to the log, in at most [`MAX_STEPS`] steps.
    async fn move_log(&self) -> Result<(), StoreError> {
        for _ in 0..MAX_STEPS {
            let rows = self.rows(Statement::new(WAITING).bind(STEP)).await?;
            // A full step may have more after it.
            let is_last = (rows.len() as u64) < STEP;
            let (mut last, mut waiting) = (0, Vec::new());
            for row in rows {
                let mut fields = Fields::of(row);
                let (id, key) = (fields.number()?, fields.text()?);
                last = id;
                waiting.push(LogEntry {
                    key: Some(key),
                    access: access(&mut fields)?,
                });
            }
            if !waiting.is_empty() {
                // Added first, removed afterwards: a failure in between repeats the addition, which
                // the key makes harmless.
                self.log()?.append(&waiting).await?;
                self.batch(MOVED.map(|sql| Statement::new(sql).bind(last)).to_vec())
                    .await?;
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// Counts queued records, and moves them when there are many. Records that cannot be moved now
    /// remain in the queue.
    pub(super) async fn count_queued_records(&self, entries: usize) {
        let waiting = self.waiting.get() + entries as u64;
        // Counted from 0 again even if the move fails, so that not every commit tries it.
        self.waiting.set(waiting % QUEUE_LIMIT);
        if waiting >= QUEUE_LIMIT && self.log.is_some() {
            // The change set is committed. Entries that cannot be moved wait for the next time.
            drop(self.move_log().await);
        }
    }

    /// Does the nightly maintenance: refreshes statistics of the query planner, removes layouts
    /// that no document uses, and moves the records of change sets to the access log. Then removes,
    /// in at most `steps` steps, records of the log from before a time that are older than `days`.
    /// A failed step does not prevent the others.
    ///
    /// # Errors
    /// The first failure.
    pub async fn maintain(&self, before: &str, days: u32, steps: usize) -> Result<(), StoreError> {
        let optimize = || vec![Statement::new("PRAGMA optimize")];
        let done = self.batch(optimize()).await.map(drop);
        // `and` keeps the first error; its argument runs in any case.
        let done = done.and(self.sweep().await);
        let Some(log) = &self.log else { return done };
        let done = done
            .and(self.move_log().await)
            .and(log.keep_for(days).await);
        let mut done = done.and(
            log.0
                .batch(optimize())
                .await
                .map(drop)
                .map_err(StoreError::from),
        );
        for _ in 0..steps {
            match log.expire(before, EXPIRED).await {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    done = done.and(Err(error));
                    break;
                }
            }
        }
        done
    }
}

/// Returns the cells of a queued record, in the order of [`INSERT_QUEUED`].
pub(super) fn cells(access: &AccessRecord) -> [Cell<'_>; 9] {
    [
        access.time.as_str().into(),
        access.who.as_str().into(),
        access.issuer.as_str().into(),
        access.operation.as_str().into(),
        access.object.as_deref().into(),
        access.ehr_id.as_deref().into(),
        access.query.as_deref().into(),
        u64::from(access.status).into(),
        access.request_id.as_str().into(),
    ]
}

fn with_key<'a>(access: &'a AccessRecord, key: Option<&'a str>) -> Vec<Cell<'a>> {
    [&cells(access)[..], &[key.into(), access.refused.into()]].concat()
}

fn entry(fields: &mut Fields) -> Result<(u64, AccessRecord), StoreError> {
    Ok((fields.number()?, access(fields)?))
}

fn access(fields: &mut Fields) -> Result<AccessRecord, StoreError> {
    Ok(AccessRecord {
        time: fields.text()?,
        who: fields.text()?,
        issuer: fields.text()?,
        operation: fields.text()?,
        object: fields.optional_text()?,
        ehr_id: fields.optional_text()?,
        query: fields.optional_text()?,
        status: u16::try_from(fields.number()?).map_err(|_| unexpected())?,
        request_id: fields.text()?,
        refused: fields.optional_number()?,
    })
}
