//! Pages of documents. The database limits the bytes of a page before it reads a text.

use super::SqlRepository;
use super::chunked::{full_chunk, joined_chunks, read_chunks};
use super::read::{ContributionRow, versions};
use super::value::{Fields, Row, Sql, Statement, json_list, kind_of, unexpected};
use crate::rm::class::{Attr, Cls};
use crate::rm::json;
use crate::rm::tree::NodeRef;
use crate::store::commit_rules::{join_uid, split_uid};
use crate::store::repository::{
    Contribution, ContributionDetail, ListPage, MAX_PAGE_BYTES, StoreError, Version,
    VersionMetadata,
};
use std::collections::HashMap;

/// Estimates the bytes of the stored document of the version `v`: those of its first chunk, and a
/// full size for each other one. A database knows the length of a text without reading it.
macro_rules! size_of_version {
    () => {
        "octet_length(v.document) + v.chunks * 900000"
    };
}
pub(super) use size_of_version;

/// Estimates the bytes of the tags of the version `v` and its object.
macro_rules! size_of_tags {
    () => {
        "coalesce((SELECT sum(octet_length(t.key) + octet_length(t.path) + coalesce(octet_length(t.value), 0) + 100) FROM item_tag t
           WHERE t.target IN (v.object, v.object || '::' || v.system || '::' || v.number)), 0)"
    };
}

/// Selects a page of a query with the columns `id` and `size`: the first row, and the rows after it
/// while the total size is at most `$most`. `found` counts all rows of the query.
macro_rules! page {
    ($query:expr, $most:literal) => {
        concat!(
            "(SELECT id, found FROM (SELECT id, size, sum(size) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS total, count(*) OVER () AS found FROM (",
            $query,
            // `total = size` holds for the first row only: a page has at least one item, however
            // long.
            ")) WHERE total <= ",
            $most,
            " OR total = size) p"
        )
    };
}

/// `?1` an EHR or NULL, `?2` the uid before the page or NULL, `?3` maximum rows, `?4` maximum
/// bytes.
macro_rules! contributions {
    ($which:literal) => {
        concat!(
            "SELECT c.uid, e.ehr_id, c.shapes, c.digest, c.document, p.found FROM ",
            page!(
                concat!(
                    "SELECT c.id, octet_length(c.document) + iif(octet_length(c.document) < ",
                    full_chunk!(),
                    ", 0, coalesce((SELECT sum(octet_length(body)) FROM chunk WHERE owner = 'c/' || c.uid), 0)) AS size
                     FROM contribution c WHERE c.id > coalesce((SELECT id FROM contribution WHERE uid = ?2), 0) AND ",
                    $which,
                    " ORDER BY c.id LIMIT ?3"
                ),
                "?4"
            ),
            " CROSS JOIN contribution c ON c.id = p.id JOIN ehr e ON e.id = c.ehr ORDER BY p.id"
        )
    };
}

/// Finds a contribution of an EHR, or without an EHR any.
const KNOWN_CONTRIBUTION: &str = "SELECT 1 AS known FROM contribution c JOIN ehr e ON e.id = c.ehr WHERE c.uid = ?1 AND (?2 IS NULL OR e.ehr_id = ?2)";

const CONTRIBUTIONS: &str = contributions!("?1 IS NULL");
const CONTRIBUTIONS_OF_EHR: &str = contributions!(
    "c.id IN (SELECT v.contribution FROM version v WHERE v.ehr = (SELECT id FROM ehr WHERE ehr_id = ?1))"
);

/// `?1` pairs of object and number.
const OF_UIDS: &str = versions!(
    "JOIN json_each(?1) j ON v.object = j.value ->> 0 AND v.number = j.value ->> 1 ORDER BY v.id"
);
const SIZES_OF_UIDS: &str = concat!(
    "SELECT v.object, v.number, ",
    size_of_version!(),
    " + ",
    size_of_tags!(),
    " AS size FROM json_each(?1) j CROSS JOIN version v ON v.object = j.value ->> 0 AND v.number = j.value ->> 1"
);

/// `?1` an EHR, `?2` an object, `?3` the version number before the page, `?4` maximum rows, `?5`
/// maximum bytes.
const HISTORY: &str = versions!(concat!(
    "WHERE v.id IN (SELECT id FROM ",
    page!(
        concat!(
            "SELECT v.id, ",
            size_of_version!(),
            " + ",
            size_of_tags!(),
            " AS size FROM version v WHERE v.object = ?2 AND v.number > ?3
              AND v.ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) ORDER BY v.number LIMIT ?4"
        ),
        "?5"
    ),
    ") ORDER BY v.number"
));
const LAST_NUMBER: &str = "SELECT coalesce(max(number), 0) AS number FROM version WHERE object = ?2 AND ehr = (SELECT id FROM ehr WHERE ehr_id = ?1)";
const HEADS: &str =
    "SELECT kind, object, system, number, time_committed, lifecycle, template, octet_length(document) + chunks * 900000 FROM version
    WHERE object = ?2 AND ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) ORDER BY number";

/// Maximum versions of a page.
const ROWS: u64 = 1000;

impl<S: Sql> SqlRepository<S> {
    /// Returns the versions of an object after a version number.
    pub(super) async fn read_history(
        &self,
        ehr_id: &str,
        object_id: &str,
        after: u32,
    ) -> Result<ListPage<Version>, StoreError> {
        let of_object = |sql| Statement::new(sql).bind(ehr_id).bind(object_id);
        let page = of_object(HISTORY)
            .bind(u64::from(after))
            .bind(ROWS)
            .bind(MAX_PAGE_BYTES);
        // One batch, so the last number and the page belong to the same state.
        let mut answers = self.batch(vec![of_object(LAST_NUMBER), page]).await?;
        let last = Fields::of_only(answers.next()?)?.number()?;
        let rows = answers.next()?;
        let items = self.versions_of(rows).await?;
        let more = items.last().is_some_and(|v| u64::from(v.number) < last);
        Ok(ListPage { items, more })
    }

    /// Returns the metadata of every version of an object.
    pub(super) async fn read_heads(
        &self,
        ehr_id: &str,
        object_id: &str,
    ) -> Result<Vec<VersionMetadata>, StoreError> {
        let heads = Statement::new(HEADS).bind(ehr_id).bind(object_id);
        self.rows(heads).await?.into_iter().map(head_of).collect()
    }

    pub(super) async fn read_contributions(
        &self,
        ehr_id: Option<&str>,
        after: Option<&str>,
        limit: u64,
        detail: ContributionDetail,
    ) -> Result<ListPage<Contribution>, StoreError> {
        // A contribution of another EHR gets the same error as one that does not exist.
        let known = Statement::new(KNOWN_CONTRIBUTION).bind(after).bind(ehr_id);
        let query = match ehr_id {
            Some(_) => CONTRIBUTIONS_OF_EHR,
            None => CONTRIBUTIONS,
        };
        let query = Statement::new(query)
            .bind(ehr_id)
            .bind(after)
            .bind(limit)
            .bind(MAX_PAGE_BYTES);
        let mut answers = self.batch(vec![known, query]).await?;
        if answers.next()?.is_empty() && after.is_some() {
            return Err(StoreError::NoSuchContribution);
        }
        let rows = answers.next()?;
        let (count, found) = (rows.len() as u64, found_of(&rows)?);
        let items = self.contributions_of(rows).await?;
        let page = ListPage {
            items,
            // The inner query stops at `limit`, so then there may be more rows.
            more: found > count || found == limit,
        };
        match detail {
            ContributionDetail::WithoutVersions => Ok(page),
            ContributionDetail::WithVersions => self.with_versions(page).await,
        }
    }

    /// Returns the CONTRIBUTIONs of rows.
    async fn contributions_of(&self, rows: Vec<Row>) -> Result<Vec<Contribution>, StoreError> {
        let row = rows
            .into_iter()
            .map(ContributionRow::of)
            .collect::<Result<Vec<_>, StoreError>>()?;
        let owners: Vec<String> = row
            .iter()
            .filter(|row| row.may_continue())
            .map(ContributionRow::owner)
            .collect();
        let rest = match owners.is_empty() {
            true => HashMap::new(),
            false => joined_chunks(self.rows(read_chunks(&owners)).await?)?,
        };
        let mut found = Vec::new();
        for row in row {
            let rest = rest.get(&row.owner());
            let row = row.with(rest);
            let document = self.contribution_document(&row).await?;
            found.push(Contribution {
                ehr_id: row.ehr_id,
                uid: row.uid,
                document,
                versions: Vec::new(),
            });
        }
        Ok(found)
    }

    /// Adds the versions to the first contributions of a page: to as many as may be read together.
    async fn with_versions(
        &self,
        mut page: ListPage<Contribution>,
    ) -> Result<ListPage<Contribution>, StoreError> {
        let uids = page
            .items
            .iter()
            .map(|c| uids_of(&c.document))
            .collect::<Result<Vec<_>, StoreError>>()?;
        let sizes = self.sizes_of(&uids.concat()).await?;
        let mut total = 0;
        let fits = |uids: &&Vec<(String, u64)>| {
            total += uids.iter().filter_map(|uid| sizes.get(uid)).sum::<u64>();
            total <= MAX_PAGE_BYTES
        };
        // At least one contribution, or a list could never continue.
        let count = uids.iter().take_while(fits).count().max(1);
        // The items that are cut off here are read again by the next page.
        page.more |= count < page.items.len();
        page.items.truncate(count);
        let uids = uids.get(..count).unwrap_or(&uids).concat();
        let mut of_uid: HashMap<String, Vec<Version>> = HashMap::new();
        let versions = Statement::new(OF_UIDS).bind(json_list(&uids));
        for version in self.read_versions(versions).await? {
            let uid = version.contribution.clone();
            of_uid.entry(uid).or_default().push(version);
        }
        for contribution in &mut page.items {
            // A contribution all of whose versions were removed has none left.
            contribution.versions = of_uid.remove(&contribution.uid).unwrap_or_default();
        }
        Ok(page)
    }

    /// Returns the bytes of versions by object id and number.
    async fn sizes_of(
        &self,
        uids: &[(String, u64)],
    ) -> Result<HashMap<(String, u64), u64>, StoreError> {
        let sizes = Statement::new(SIZES_OF_UIDS).bind(json_list(uids));
        let mut size_of = HashMap::new();
        for row in self.rows(sizes).await? {
            let mut fields = Fields::of(row);
            size_of.insert((fields.text()?, fields.number()?), fields.number()?);
        }
        Ok(size_of)
    }
}

/// Returns the number of rows that a page would have without a limit on its bytes, from the last
/// column.
fn found_of(rows: &[Row]) -> Result<u64, StoreError> {
    match rows.first() {
        Some(row) => Fields::of(row.last().cloned().into_iter().collect()).number(),
        None => Ok(0),
    }
}

/// Returns object and number of the versions that a CONTRIBUTION lists. A reference of an imported
/// one that is no uid of a version names no stored version.
fn uids_of(document: &str) -> Result<Vec<(String, u64)>, StoreError> {
    let tree = json::read(document, Cls::CONTRIBUTION).map_err(|_| unexpected())?;
    let uid = |reference: NodeRef<'_>| {
        let uid = split_uid(reference.text_along(&[Attr::ID, Attr::VALUE])?)?;
        Some((uid.object.to_owned(), u64::from(uid.number)))
    };
    let root = tree.root().ok_or_else(unexpected)?;
    Ok(root.values(Attr::VERSIONS).filter_map(uid).collect())
}

fn head_of(row: Row) -> Result<VersionMetadata, StoreError> {
    let mut fields = Fields::of(row);
    let kind = kind_of(fields.number()?)?;
    let (object, system) = (fields.text()?, fields.text()?);
    let number = u32::try_from(fields.number()?).map_err(|_| unexpected())?;
    Ok(VersionMetadata {
        kind,
        version_uid: join_uid(&object, &system, number),
        number,
        time_committed: fields.text()?,
        lifecycle: fields.text()?,
        template_id: fields.optional_text()?,
        bytes: usize::try_from(fields.number()?).map_err(|_| unexpected())?,
    })
}
