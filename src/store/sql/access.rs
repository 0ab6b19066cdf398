//! The access log in SQL: a database of its own, and the entries of change sets that wait for it in
//! the database of the documents.
//!
//! A change set and its entry are one transaction, so the entry is written beside it (table
//! `access_log` of `migrations/`, which held the whole log in earlier releases), and moved to the
//! log's own database (`migrations-log/`) when the log is read, by the nightly maintenance, and
//! after so many change sets. An entry is removed here after it was added there; its key lets it be
//! added once.

use super::SqlRepository;
use super::rows::{Cell, Rows};
use super::value::{Fields, Sql, Statement};
use crate::store::log::{LogEntry, LogStore};
use crate::store::repository::{Access, AccessFilter, StoreError};

/// Entries of change sets, which wait.
pub(super) const NOTE: &str = "INSERT INTO access_log (time, who, issuer, operation, object, ehr_id, query, status, request_id, key)
    SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6, j.value ->> 7, j.value ->> 8,
      lower(hex(randomblob(16)))
    FROM json_each(?1) j";
/// Those that an earlier release wrote have no key: what they are tells them apart.
const WAITING: &str = "SELECT id, coalesce(key, id || ' ' || time || ' ' || request_id) AS key,
      time, who, issuer, operation, object, ehr_id, query, status, request_id, NULL AS refused
    FROM access_log ORDER BY id LIMIT ?1";
/// The database refuses to remove entries that are not said to be moved.
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
/// `?2` the day, `?3` most entries of a day.
const APPEND_REFUSED: &str = append!(
    "(SELECT count(*) FROM (SELECT 1 FROM access_log WHERE refused IS NOT NULL AND time >= ?2 LIMIT ?3)) < ?3",
    " RETURNING id"
);
/// In the order of time: an entry that was moved here has a higher number than later ones that were
/// added directly. `?1` is the entry behind which to go on; one that has expired is before all
/// others.
const READ: &str = "SELECT id, time, who, issuer, operation, object, ehr_id, query, status, request_id, refused FROM access_log
    WHERE (time, id) > (SELECT coalesce(max(time), ''), coalesce(max(id), 0) FROM access_log WHERE id = ?1)
      AND time >= ?2 AND time < ?3 AND (?4 IS NULL OR ehr_id = ?4) AND (?5 IS NULL OR who = ?5) ORDER BY time, id LIMIT ?6";
const KEEP_FOR: &str = "UPDATE retention SET days = ?1 WHERE days <> ?1";
/// Entries stand about in the order of their times, so only the first ones are looked at.
const EXPIRE: &str = "DELETE FROM access_log WHERE id IN (SELECT id FROM access_log ORDER BY id LIMIT ?2) AND time < ?1
    AND time < (SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now', '-' || days || ' days') FROM retention) RETURNING id";
/// Later than every time: the text form orders as time does.
const NEVER: &str = "~";

/// Entries that are moved in one step, and most steps of one occasion.
const STEP: u64 = 1_000;
const MOST_STEPS: usize = 100;
/// After so many entries of change sets an instance moves what waits.
const MANY: u64 = 5_000;
/// Entries that are removed for their age in one step.
const EXPIRED: u64 = 2_000;

/// The access log in a database of its own.
pub struct SqlLog<S>(S);

impl<S: Sql> SqlLog<S> {
    /// The log in the database of an executor, whose schema stands in `migrations-log/`.
    pub fn new(sql: S) -> SqlLog<S> {
        SqlLog(sql)
    }
}

impl<S: Sql> LogStore for SqlLog<S> {
    async fn append(&self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut rows = Rows::of(APPEND);
        entries
            .iter()
            .for_each(|entry| rows.push(&with_key(&entry.access, entry.key.as_deref())));
        self.0.batch(rows.written().collect()).await?;
        Ok(())
    }

    async fn append_refused(
        &self,
        entries: &[Access],
        day: &str,
        most: u64,
    ) -> Result<bool, StoreError> {
        let mut rows = Rows::of(APPEND_REFUSED);
        entries
            .iter()
            .for_each(|access| rows.push(&with_key(access, None)));
        let batch = rows
            .written()
            .map(|statement| statement.bind(day).bind(most))
            .collect();
        Ok(self
            .0
            .batch(batch)
            .await?
            .iter()
            .any(|rows| !rows.is_empty()))
    }

    async fn read(&self, filter: &AccessFilter<'_>) -> Result<Vec<(u64, Access)>, StoreError> {
        let query = Statement::new(READ)
            .bind(filter.after)
            .bind(filter.from.unwrap_or(""))
            .bind(filter.to.unwrap_or(NEVER));
        let query = query
            .bind(filter.ehr_id)
            .bind(filter.who)
            .bind(filter.limit);
        let rows = self.0.batch(vec![query]).await?.pop().unwrap_or_default();
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
        let rows = self
            .0
            .batch(vec![Statement::new(EXPIRE).bind(before).bind(most)])
            .await?
            .pop();
        Ok(rows.unwrap_or_default().len() as u64)
    }
}

impl<S: Sql> SqlRepository<S> {
    /// The same repository with the access log in a database of its own. Without one only change
    /// sets are logged, and nothing is read.
    pub fn with_log(self, sql: S) -> SqlRepository<S> {
        SqlRepository {
            log: Some(SqlLog::new(sql)),
            ..self
        }
    }

    pub(super) fn log(&self) -> Result<&SqlLog<S>, StoreError> {
        self.log.as_ref().ok_or_else(|| {
            StoreError::Away("the access log has no database: bind one as LOG".into())
        })
    }

    pub(super) async fn read_accesses(
        &self,
        filter: &AccessFilter<'_>,
    ) -> Result<Vec<(u64, Access)>, StoreError> {
        self.move_log().await?;
        self.log()?.read(filter).await
    }

    /// Moves the entries of change sets to the log, in steps until none waits.
    async fn move_log(&self) -> Result<(), StoreError> {
        for _ in 0..MOST_STEPS {
            let rows = self.rows(Statement::new(WAITING).bind(STEP)).await?;
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

    /// Counts entries that were written with change sets, and moves them when there are many.
    /// Entries that cannot be moved now wait on.
    pub(super) async fn noted(&self, entries: usize) {
        let waiting = self.waiting.get() + entries as u64;
        self.waiting.set(waiting % MANY);
        if waiting >= MANY && self.log.is_some() {
            let _ = self.move_log().await;
        }
    }

    /// What a host does every night: refreshes statistics of the query planner, removes layouts that
    /// no document uses, moves the entries of change sets to the access log, and removes, in at
    /// most `steps` steps, entries of the log from before a time that are kept no longer than
    /// `days`. What fails does not keep the rest from being done.
    ///
    /// # Errors
    /// The first thing that failed.
    pub async fn maintain(&self, before: &str, days: u32, steps: usize) -> Result<(), StoreError> {
        let optimize = || vec![Statement::new("PRAGMA optimize")];
        let done = self.batch(optimize()).await.map(drop);
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

/// An entry that waits, as [`NOTE`] takes it.
pub(super) fn cells(access: &Access) -> [Cell<'_>; 9] {
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

fn with_key<'a>(access: &'a Access, key: Option<&'a str>) -> Vec<Cell<'a>> {
    [&cells(access)[..], &[key.into(), access.refused.into()]].concat()
}

fn entry(fields: &mut Fields) -> Result<(u64, Access), StoreError> {
    Ok((fields.number()?, access(fields)?))
}

fn access(fields: &mut Fields) -> Result<Access, StoreError> {
    Ok(Access {
        time: fields.text()?,
        who: fields.text()?,
        issuer: fields.text()?,
        operation: fields.text()?,
        object: fields.optional_text()?,
        ehr_id: fields.optional_text()?,
        query: fields.optional_text()?,
        status: u16::try_from(fields.number()?).unwrap_or_default(),
        request_id: fields.text()?,
        refused: fields.optional_number()?,
    })
}
