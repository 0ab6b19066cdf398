//! Reads of EHRs, versions and contributions.

use super::catalog::LoadedLayouts;
use super::checksum::StoredDocument;
use super::chunked::{ChunkedText, full_chunk, joined_chunks, read_chunks};
use super::value::{Fields, Row, Sql, Statement, json_list, kind_of, unexpected};
use super::verified::StoredColumns;
use super::{SqlRepository, tag};
use crate::document::ObjectKind;
use crate::store::commit_rules::{join_uid, split_uid};
use crate::store::repository::{
    BoundedVersion, Ehr, LargeVersion, StoreError, TagList, Version, VersionMetadata,
    VersionSelector,
};
use aqlite_rm::order;
use std::collections::HashMap;

macro_rules! ehr {
    ($condition:literal) => {
        concat!(
            "SELECT ehr_id, system_id, time_created, subject_id, subject_namespace, is_queryable, is_modifiable FROM ehr WHERE id > 0 AND ",
            $condition
        )
    };
}

macro_rules! versions {
    ($condition:expr) => {
        versions!("v.document", $condition)
    };
    ($document:literal, $condition:expr) => {
        concat!(
            "SELECT e.ehr_id, v.kind, v.object, v.number, v.system, v.preceding, c.uid, v.time_committed, v.lifecycle, v.template, v.shapes,
               v.digest, v.chunks, octet_length(v.document) + v.chunks * 900000, ",
            $document,
            " AS document,
               (SELECT json_group_array(json_array(t.target, t.key, t.path, t.value)) FROM item_tag t
                WHERE t.target IN (v.object, v.object || '::' || v.system || '::' || v.number)) AS tags
             FROM version v JOIN ehr e ON e.id = v.ehr JOIN contribution c ON c.id = v.contribution ",
            $condition
        )
    };
}

pub(super) use versions;

/// `?1` an EHR, `?2` an object, `?3` the maximum bytes of a document to read.
macro_rules! version {
    ($condition:literal) => {
        concat!(
            versions!(
                "iif(octet_length(v.document) + v.chunks * 900000 <= ?3, v.document, NULL)",
                "WHERE e.ehr_id = ?1 AND v.object = ?2"
            ),
            $condition
        )
    };
}

pub(super) const EHR: &str = ehr!("ehr_id = ?1");
/// `?1` the ehr_id before the page or NULL, `?2` maximum rows. Row 0 is the demographic service.
const EHRS: &str =
    ehr!("id > coalesce((SELECT id FROM ehr WHERE ehr_id = ?1), 0) ORDER BY id LIMIT ?2");
pub(super) const EHR_BY_SUBJECT: &str = ehr!("subject_id = ?1 AND subject_namespace = ?2");
/// `?1` the id of a subject, `?2` maximum rows.
const EHRS_BY_SUBJECT_ID: &str = ehr!("subject_id = ?1 ORDER BY subject_namespace LIMIT ?2");
/// A limit above the size of every document, which JSON represents exactly.
const ANY: u64 = 1 << 40;
const LATEST: &str = version!(" AND v.successor IS NULL");
const BY_UID: &str = version!(" AND v.number = ?4 AND v.system = ?5");
const AT: &str = version!(" AND v.time_committed <= ?4 ORDER BY v.number DESC LIMIT 1");
/// The latest version of each of the objects `?2` of an EHR, and the last one with data.
const LATEST_OF_OBJECTS: &str = versions!(
    "iif(octet_length(v.document) + v.chunks * 900000 <= ?3, v.document, NULL)",
    "WHERE e.ehr_id = ?1 AND v.id IN (SELECT n.id FROM json_each(?2) j CROSS JOIN version n
       ON n.object = j.value AND n.number IN (
         (SELECT max(l.number) FROM version l WHERE l.object = j.value),
         (SELECT max(l.number) FROM version l WHERE l.object = j.value AND l.lifecycle <> '523')))"
);
pub(super) const OBJECTS: &str = "SELECT object FROM version WHERE ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) AND kind = ?2 AND preceding IS NULL
    ORDER BY id LIMIT ?3 OFFSET ?4";
/// The kind of an object never changes, so the newest version of a kind belongs to the object of
/// that kind that was committed to last.
pub(super) const NEWEST_OBJECT: &str = "SELECT object FROM version WHERE id = (SELECT max(id) FROM version WHERE ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) AND kind = ?2)";
/// Like [`NEWEST_OBJECT`], without the versions after the time `?3`.
pub(super) const OBJECT_AT: &str =
    "SELECT object FROM version WHERE id = (SELECT max(id) FROM version
    WHERE ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) AND kind = ?2 AND time_committed <= ?3)";
pub(super) const IDEMPOTENCY: &str = "SELECT c.idempotency FROM contribution c JOIN ehr e ON e.id = c.ehr WHERE c.uid = ?2 AND e.ehr_id = ?1";
const CONTRIBUTION: &str = "SELECT c.uid, e.ehr_id, c.shapes, c.digest, c.document FROM contribution c JOIN ehr e ON e.id = c.ehr WHERE c.uid = ?2 AND e.ehr_id = ?1";

const CONTRIBUTION_REST: &str = concat!(
    "SELECT owner, body FROM chunk WHERE owner = 'c/' || ?1
      AND (SELECT octet_length(document) >= ",
    full_chunk!(),
    " FROM contribution WHERE uid = ?1) ORDER BY part"
);

/// Returns the texts of a version's row that its document repeats. The stored document refers to
/// them.
pub(super) fn known_texts<'a>(version_uid: &'a str, time_committed: &'a str) -> [&'a str; 3] {
    [
        version_uid,
        time_committed,
        split_uid(version_uid).map_or("", |uid| uid.system),
    ]
}

/// A row of a contribution with its document as stored.
pub(super) struct ContributionRow {
    pub uid: String,
    pub ehr_id: String,
    /// `None` if the document is JSON.
    layouts: Option<Vec<u64>>,
    /// `None` if an earlier release wrote the row.
    checksum: Option<String>,
    document: String,
}

/// A row of a version with its document as stored.
struct VersionRow {
    ehr_id: String,
    kind: ObjectKind,
    object_id: String,
    number: u32,
    system: String,
    preceding: Option<String>,
    contribution: String,
    time_committed: String,
    lifecycle: String,
    template_id: Option<String>,
    layouts: Vec<u64>,
    digest: String,
    chunks: u64,
    /// The size of the document in bytes.
    size: usize,
    /// `None` if the document is longer than the limit.
    document: Option<String>,
    tags: Vec<TagList>,
}

impl<S: Sql> SqlRepository<S> {
    pub(super) async fn read_ehr(&self, query: Statement) -> Result<Option<Ehr>, StoreError> {
        ehr_of(self.rows(query).await?)
    }

    pub(super) async fn read_ehrs(
        &self,
        after: Option<&str>,
        limit: u64,
    ) -> Result<Vec<Ehr>, StoreError> {
        // Without this test, an unknown EHR would yield the first page again.
        let known = Statement::new("SELECT 1 AS known FROM ehr WHERE ehr_id = ?1").bind(after);
        let mut answers = self
            .batch(vec![known, Statement::new(EHRS).bind(after).bind(limit)])
            .await?;
        if answers.next()?.is_empty() && after.is_some() {
            return Err(StoreError::NoSuchEhr);
        }
        answers.next()?.into_iter().map(ehr_of_row).collect()
    }

    pub(super) async fn read_ehrs_by_subject_id(
        &self,
        id: &str,
        limit: u64,
    ) -> Result<Vec<Ehr>, StoreError> {
        let query = Statement::new(EHRS_BY_SUBJECT_ID).bind(id).bind(limit);
        let rows = self.rows(query).await?;
        rows.into_iter().map(ehr_of_row).collect()
    }

    pub(super) async fn read_version(
        &self,
        ehr_id: &str,
        object_id: &str,
        which: VersionSelector<'_>,
        most: usize,
    ) -> Result<Option<BoundedVersion>, StoreError> {
        let query = |sql: &'static str| {
            let statement = Statement::new(sql).bind(ehr_id).bind(object_id);
            // A limit above every possible size means no limit, and still fits in an integer of the
            // database.
            statement.bind(u64::try_from(most).unwrap_or(ANY).min(ANY))
        };
        let query = match which {
            VersionSelector::Latest => query(LATEST),
            VersionSelector::At(time) => query(AT).bind(time),
            VersionSelector::Uid(uid) => match split_uid(uid) {
                Some(uid) if uid.object == object_id => {
                    query(BY_UID).bind(u64::from(uid.number)).bind(uid.system)
                }
                _ => return Ok(None),
            },
        };
        let Some(row) = self.rows(query).await?.pop() else {
            return Ok(None);
        };
        let row = VersionRow::of(row)?;
        // The SQL omits a document above the limit, so its text is never transferred.
        if row.document.is_none() {
            return Ok(Some(BoundedVersion::Large(Box::new(row.large()))));
        }
        let columns = row.columns();
        let version = self.with_documents(vec![row]).await?.pop();
        // The document has been compared with its checksum, so the next version may rely on it.
        if let Some((version, columns)) = version.as_ref().zip(columns) {
            self.catalog.verified.add(version, &columns);
        }
        Ok(version.map(|version| BoundedVersion::Complete(Box::new(version))))
    }

    pub(super) async fn read_latest(
        &self,
        ehr_id: &str,
        objects: &[&str],
        most: usize,
    ) -> Result<Vec<BoundedVersion>, StoreError> {
        let query = Statement::new(LATEST_OF_OBJECTS)
            .bind(ehr_id)
            .bind(json_list(objects))
            .bind(u64::try_from(most).unwrap_or(ANY).min(ANY));
        let rows = self.rows(query).await?;
        let rows = rows.into_iter().map(VersionRow::of);
        let rows = rows.collect::<Result<Vec<VersionRow>, StoreError>>()?;
        let (complete, large): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.document.is_some());
        let complete = self.with_documents(complete).await?.into_iter();
        let complete = complete.map(|version| BoundedVersion::Complete(Box::new(version)));
        let large = large
            .into_iter()
            .map(|row| BoundedVersion::Large(Box::new(row.large())));
        Ok(complete.chain(large).collect())
    }

    pub(super) async fn read_versions(&self, query: Statement) -> Result<Vec<Version>, StoreError> {
        self.versions_of(self.rows(query).await?).await
    }

    /// Returns the versions of rows of [`versions`].
    pub(super) async fn versions_of(&self, rows: Vec<Row>) -> Result<Vec<Version>, StoreError> {
        let rows = rows
            .into_iter()
            .map(VersionRow::of)
            .collect::<Result<Vec<VersionRow>, StoreError>>()?;
        self.with_documents(rows).await
    }

    /// Returns the versions of rows that have documents.
    async fn with_documents(&self, rows: Vec<VersionRow>) -> Result<Vec<Version>, StoreError> {
        let layouts = rows.iter().flat_map(|row| &row.layouts).copied();
        let layouts = self.load(&order::distinct(layouts)).await?;
        let rest = self
            .read_document_chunks(rows.iter().filter(|l| l.chunks > 0).map(VersionRow::uid))
            .await?;
        rows.into_iter()
            .map(|row| row.with_document(&layouts, &rest))
            .collect()
    }

    /// Returns the chunks after the first of the documents of these versions. Makes no round trip
    /// if there are none.
    pub(super) async fn read_document_chunks(
        &self,
        uids: impl Iterator<Item = String>,
    ) -> Result<HashMap<String, String>, StoreError> {
        let owners: Vec<String> = uids.map(|uid| format!("v/{uid}")).collect();
        if owners.is_empty() {
            return Ok(HashMap::new());
        }
        joined_chunks(self.rows(read_chunks(&owners)).await?)
    }

    pub(super) async fn read_contribution(
        &self,
        ehr_id: &str,
        uid: &str,
    ) -> Result<Option<String>, StoreError> {
        let read = Statement::new(CONTRIBUTION).bind(ehr_id).bind(uid);
        let rest = Statement::new(CONTRIBUTION_REST).bind(uid);
        let mut answers = self.batch(vec![read, rest]).await?;
        let Some(row) = answers.next()?.into_iter().next() else {
            return Ok(None);
        };
        let (row, rest) = (ContributionRow::of(row)?, joined_chunks(answers.next()?)?);
        let rest = rest.get(&row.owner());
        self.contribution_document(&row.with(rest)).await.map(Some)
    }

    pub(super) async fn contribution_document(
        &self,
        row: &ContributionRow,
    ) -> Result<String, StoreError> {
        let stored = StoredDocument {
            owner: &row.ehr_id,
            known: &[&row.uid],
            text: &row.document,
        };
        let Some(layouts) = &row.layouts else {
            let is_it = row
                .checksum
                .as_ref()
                // Rows of earlier releases have no checksum and are accepted.
                .is_none_or(|checksum| *checksum == stored.checksum(std::iter::empty()));
            return if is_it {
                Ok(row.document.clone())
            } else {
                Err(stored.corrupt())
            };
        };
        let loaded = self.load(layouts).await?;
        Ok(loaded
            .unpack(stored, layouts, row.checksum.as_deref())?
            .to_json())
    }
}

impl ContributionRow {
    pub(super) fn of(row: Row) -> Result<ContributionRow, StoreError> {
        let mut fields = Fields::of(row);
        Ok(ContributionRow {
            uid: fields.text()?,
            ehr_id: fields.text()?,
            layouts: fields.optional_numbers()?,
            checksum: fields.optional_text()?,
            document: fields.text()?,
        })
    }

    /// Returns the owner of the chunks after the first.
    pub(super) fn owner(&self) -> String {
        format!("c/{}", self.uid)
    }

    /// Returns whether chunks may follow the first.
    pub(super) fn may_continue(&self) -> bool {
        ChunkedText::may_continue(&self.document)
    }

    /// Appends the other chunks of its document.
    pub(super) fn with(self, rest: Option<&String>) -> ContributionRow {
        ContributionRow {
            document: self.document + rest.map_or("", String::as_str),
            ..self
        }
    }
}

/// Returns the EHR in the rows of [`EHR`] or [`EHR_BY_SUBJECT`].
pub(super) fn ehr_of(rows: Vec<Row>) -> Result<Option<Ehr>, StoreError> {
    rows.into_iter().next().map(ehr_of_row).transpose()
}

fn ehr_of_row(row: Row) -> Result<Ehr, StoreError> {
    let mut fields = Fields::of(row);
    Ok(Ehr {
        ehr_id: fields.text()?,
        system_id: fields.text()?,
        time_created: fields.text()?,
        subject: fields.optional_text()?.zip(fields.optional_text()?),
        is_queryable: fields.flag()?,
        is_modifiable: fields.flag()?,
    })
}

impl VersionRow {
    fn of(row: Row) -> Result<VersionRow, StoreError> {
        let mut fields = Fields::of(row);
        Ok(VersionRow {
            ehr_id: fields.text()?,
            kind: kind_of(fields.number()?)?,
            object_id: fields.text()?,
            number: u32::try_from(fields.number()?).map_err(|_| unexpected())?,
            system: fields.text()?,
            preceding: fields.optional_text()?,
            contribution: fields.text()?,
            time_committed: fields.text()?,
            lifecycle: fields.text()?,
            template_id: fields.optional_text()?,
            layouts: fields.numbers()?,
            digest: fields.text()?,
            chunks: fields.number()?,
            size: usize::try_from(fields.number()?).map_err(|_| unexpected())?,
            document: fields.optional_text()?,
            tags: tag::of_json(fields.optional_text()?.as_deref())?,
        })
    }

    /// Returns the columns that a version does not have, if the document is short.
    fn columns(&self) -> Option<StoredColumns> {
        let document = self.document.as_deref()?;
        StoredColumns::of(
            &json_list(&self.layouts),
            &self.digest,
            document,
            self.chunks,
        )
    }

    /// Returns the version without its document.
    fn large(self) -> LargeVersion {
        LargeVersion {
            head: VersionMetadata {
                kind: self.kind,
                version_uid: self.uid(),
                number: self.number,
                time_committed: self.time_committed,
                lifecycle: self.lifecycle,
                template_id: self.template_id,
                bytes: self.size,
            },
            tags: self.tags,
        }
    }

    /// Returns the version with its document.
    fn with_document(
        self,
        layouts: &LoadedLayouts,
        rest: &HashMap<String, String>,
    ) -> Result<Version, StoreError> {
        let version_uid = self.uid();
        let text = self.document.ok_or_else(unexpected)?
            + rest
                .get(&format!("v/{version_uid}"))
                .map_or("", String::as_str);
        let stored = StoredDocument {
            owner: &self.ehr_id,
            known: &known_texts(&version_uid, &self.time_committed),
            text: &text,
        };
        let packed = layouts.unpack(stored, &self.layouts, Some(&self.digest))?;
        Ok(Version {
            ehr_id: self.ehr_id,
            kind: self.kind,
            object_id: self.object_id,
            version_uid,
            number: self.number,
            preceding: self.preceding,
            contribution: self.contribution,
            time_committed: self.time_committed,
            lifecycle: self.lifecycle,
            template_id: self.template_id,
            packed,
            tags: self.tags,
        })
    }

    fn uid(&self) -> String {
        join_uid(&self.object_id, &self.system, self.number)
    }
}
