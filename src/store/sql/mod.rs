//! The repository in a SQLite-dialect database: D1 in a worker, SQLite in tests.
//!
//! Statements are data, and a host executes them ([`Sql`]). One batch is one transaction: a commit
//! is one batch, and a failed constraint (UNIQUE, NOT NULL) rolls it back. `migrations/` has the
//! schema.

mod access;
mod catalog;
mod checksum;
mod chunked;
mod commit;
mod definition;
mod lineage;
mod list;
mod migrations;
mod read;
mod remove;
mod rows;
mod scan;
mod segments;
mod tag;
mod value;
mod verified;

use super::log::{LogEntry, LogStore};
use super::repository::{
    AccessFilter, AccessRecord, BoundedVersion, Commit, Contribution, ContributionDetail,
    Definition, DefinitionKind, Division, EarlierCommits, Ehr, ItemTag, ListPage, Repository,
    ScanPart, Sink, StoreError, TagList, VerifiedVersion, Version, VersionMetadata,
    VersionSelector, not_written,
};
use super::scan::{Scan, Snapshot};
use crate::document::ObjectKind;
pub use access::SqlLog;
pub use catalog::LayoutCatalog;
pub use migrations::{LOG_MIGRATIONS, MIGRATIONS, Migrations};
pub use segments::{BlobFuture, Blobs, Compaction, CompactionHost, Segments};
use std::cell::Cell;
use std::rc::Rc;
use value::{Answers, Fields};
pub use value::{Row, Sql, SqlError, SqlValue, Statement, encode_statements};

/// A repository over an executor of SQL.
///
/// The [`LayoutCatalog`] may live longer: a worker makes a repository for each request and has one
/// catalog for each database.
pub struct SqlRepository<S> {
    sql: S,
    catalog: Rc<LayoutCatalog>,
    log: Option<SqlLog<S>>,
    segments: Option<Rc<Segments>>,
    /// The number of records in the queue of the access log that this instance has written since
    /// the last move.
    waiting: Cell<u64>,
}

impl<S: Sql> SqlRepository<S> {
    /// Creates a repository over `sql` with a cache of its layouts.
    pub fn new(sql: S, catalog: Rc<LayoutCatalog>) -> SqlRepository<S> {
        SqlRepository {
            sql,
            catalog,
            log: None,
            segments: None,
            waiting: Cell::new(0),
        }
    }

    /// Returns the executor.
    pub fn sql(&self) -> &S {
        &self.sql
    }

    async fn batch(&self, statements: Vec<Statement>) -> Result<Answers, StoreError> {
        Ok(Answers::of(self.sql.batch(statements).await?))
    }

    /// Reads documents. One that seems damaged may be of a layout that has another meaning since the
    /// database was restored, so it is read again then.
    async fn read_twice<T>(
        &self,
        read: impl AsyncFn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let found = read().await;
        if !matches!(found, Err(StoreError::Corrupt { .. })) {
            return found;
        }
        let state = self.rows(self.catalog.read_new_profiles()).await?;
        match self.catalog.add_new_profiles(state)? {
            true => found,
            false => read().await,
        }
    }

    /// Returns the rows of one statement.
    async fn rows(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.batch(vec![statement]).await?.next()
    }
}

/// Returns the statement that increments the revision. It is part of every batch that changes data.
fn next_revision() -> Statement {
    Statement::new("UPDATE meta SET value = value + 1 WHERE name = 'revision'")
}

impl<S: Sql> Repository for SqlRepository<S> {
    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.write_commit(&commit).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Vec<Result<(), StoreError>> {
        self.write_commits(&commits, None).await
    }

    async fn commit_all_after(
        &self,
        commits: Vec<Commit>,
        earlier: EarlierCommits,
    ) -> Vec<Result<(), StoreError>> {
        // A failure is reported by the attempt below. A single commit has other statements then.
        let prepared = match commits.as_slice() {
            [] | [_] => None,
            _ => self.prepare(&commits).await.ok().flatten(),
        };
        match earlier.await {
            // The statements were prepared while the earlier commits were written.
            true => self.write_commits(&commits, prepared).await,
            false => not_written(commits.len()),
        }
    }

    async fn contributions(
        &self,
        ehr_id: Option<&str>,
        after: Option<&str>,
        limit: u64,
        detail: ContributionDetail,
    ) -> Result<ListPage<Contribution>, StoreError> {
        self.read_twice(async || self.read_contributions(ehr_id, after, limit, detail).await)
            .await
    }

    async fn set_tags(
        &self,
        ehr_id: &str,
        list: TagList,
        expected: Option<&[ItemTag]>,
    ) -> Result<(), StoreError> {
        self.write_tags(ehr_id, &list, expected).await
    }

    async fn tags(&self, ehr_id: &str, target: &str) -> Result<Vec<ItemTag>, StoreError> {
        self.read_tags(ehr_id, target).await
    }

    async fn tag_lists(
        &self,
        ehr_id: &str,
        after: Option<&str>,
    ) -> Result<ListPage<TagList>, StoreError> {
        self.read_tag_lists(ehr_id, after).await
    }

    async fn delete_objects(&self, ehr_id: &str, objects: &[String]) -> Result<(), StoreError> {
        self.remove_objects(ehr_id, objects).await
    }

    async fn ehr(&self, ehr_id: &str) -> Result<Option<Ehr>, StoreError> {
        self.read_ehr(Statement::new(read::EHR).bind(ehr_id)).await
    }

    async fn ehrs(&self, after: Option<&str>, limit: u64) -> Result<Vec<Ehr>, StoreError> {
        self.read_ehrs(after, limit).await
    }

    async fn ehr_by_subject(&self, id: &str, namespace: &str) -> Result<Option<Ehr>, StoreError> {
        self.read_ehr(
            Statement::new(read::EHR_BY_SUBJECT)
                .bind(id)
                .bind(namespace),
        )
        .await
    }

    async fn ehrs_by_subject_id(&self, id: &str, limit: u64) -> Result<Vec<Ehr>, StoreError> {
        self.read_ehrs_by_subject_id(id, limit).await
    }

    async fn version_within(
        &self,
        ehr_id: &str,
        object_id: &str,
        which: VersionSelector<'_>,
        most: usize,
    ) -> Result<Option<BoundedVersion>, StoreError> {
        self.read_twice(async || self.read_version(ehr_id, object_id, which, most).await)
            .await
    }

    async fn latest_versions(
        &self,
        ehr_id: &str,
        object_ids: &[&str],
        most: usize,
    ) -> Result<Vec<BoundedVersion>, StoreError> {
        self.read_twice(async || self.read_latest(ehr_id, object_ids, most).await)
            .await
    }

    fn verified_version(&self, ehr_id: &str, version_uid: &str) -> Option<VerifiedVersion> {
        self.catalog.verified.get(ehr_id, version_uid)
    }

    async fn versions(
        &self,
        ehr_id: &str,
        object_id: &str,
        after: u32,
    ) -> Result<ListPage<Version>, StoreError> {
        self.read_twice(async || self.read_history(ehr_id, object_id, after).await)
            .await
    }

    async fn version_metadata(
        &self,
        ehr_id: &str,
        object_id: &str,
    ) -> Result<Vec<VersionMetadata>, StoreError> {
        self.read_heads(ehr_id, object_id).await
    }

    async fn objects(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<String>, StoreError> {
        let query = Statement::new(read::OBJECTS)
            .bind(ehr_id)
            .bind(kind.number())
            .bind(limit)
            .bind(offset);
        self.rows(query)
            .await?
            .into_iter()
            .map(|row| Fields::of(row).text())
            .collect()
    }

    async fn newest_object(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        at: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        let query = match at {
            Some(at) => Statement::new(read::OBJECT_AT)
                .bind(ehr_id)
                .bind(kind.number())
                .bind(at),
            None => Statement::new(read::NEWEST_OBJECT)
                .bind(ehr_id)
                .bind(kind.number()),
        };
        let rows = self.rows(query).await?;
        rows.into_iter()
            .next()
            .map(|row| Fields::of(row).text())
            .transpose()
    }

    async fn idempotency(
        &self,
        ehr_id: &str,
        contribution_uid: &str,
    ) -> Result<Option<String>, StoreError> {
        let rows = self
            .rows(
                Statement::new(read::IDEMPOTENCY)
                    .bind(ehr_id)
                    .bind(contribution_uid),
            )
            .await?;
        rows.into_iter()
            .next()
            .map_or(Ok(None), |row| Fields::of(row).optional_text())
    }

    async fn contribution(&self, ehr_id: &str, uid: &str) -> Result<Option<String>, StoreError> {
        self.read_twice(async || self.read_contribution(ehr_id, uid).await)
            .await
    }

    async fn scan(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        self.send(scan, sink).await
    }

    async fn divide(&self, scan: &Scan, count: usize) -> Result<Option<Division>, StoreError> {
        self.divide_scan(scan, count).await
    }

    async fn scan_part(
        &self,
        scan: &Scan,
        part: ScanPart,
        sink: Sink<'_>,
    ) -> Result<Snapshot, StoreError> {
        self.send_many(scan, part, sink).await
    }

    async fn define(&self, kind: DefinitionKind, definition: Definition) -> Result<(), StoreError> {
        self.write_definition(kind, definition).await
    }

    async fn definitions(
        &self,
        kind: DefinitionKind,
        prefix: &str,
    ) -> Result<Vec<Definition>, StoreError> {
        self.list_definitions(kind, prefix).await
    }

    async fn definition_versions(
        &self,
        kind: DefinitionKind,
        name: &str,
    ) -> Result<Vec<Definition>, StoreError> {
        self.list_versions(kind, name).await
    }

    async fn definition_bodies(
        &self,
        kind: DefinitionKind,
        ids: &[(&str, &str)],
        longest: usize,
    ) -> Result<Vec<Definition>, StoreError> {
        self.list_bodies(kind, ids, longest).await
    }

    async fn preconditions(
        &self,
        ehr_id: &str,
        template_id: &str,
    ) -> Result<(Option<Ehr>, Vec<Definition>), StoreError> {
        self.read_preconditions(ehr_id, template_id).await
    }

    async fn definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<Option<Definition>, StoreError> {
        self.read_definition(kind, name, version).await
    }

    async fn undefine(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<bool, StoreError> {
        self.remove_definition(kind, name, version).await
    }

    async fn delete_ehr(&self, ehr_id: &str) -> Result<bool, StoreError> {
        self.remove_ehr(ehr_id).await
    }

    async fn reset(&self) -> Result<(), StoreError> {
        self.remove_all().await
    }

    async fn log_accesses(&self, accesses: Vec<AccessRecord>) -> Result<(), StoreError> {
        let entries: Vec<LogEntry> = accesses
            .into_iter()
            .map(|access| LogEntry { key: None, access })
            .collect();
        self.log()?.append(&entries).await
    }

    async fn log_refused_accesses(
        &self,
        accesses: &[AccessRecord],
        day: &str,
        most: u64,
    ) -> Result<bool, StoreError> {
        self.log()?.append_refused(accesses, day, most).await
    }

    async fn accesses(
        &self,
        filter: &AccessFilter<'_>,
    ) -> Result<Vec<(u64, AccessRecord)>, StoreError> {
        self.read_accesses(filter).await
    }

    async fn revision(&self) -> Result<u64, StoreError> {
        let rows = self
            .rows(Statement::new(
                "SELECT value FROM meta WHERE name = 'revision'",
            ))
            .await?;
        rows.into_iter()
            .next()
            .map_or(Ok(0), |row| Fields::of(row).number())
    }
}
