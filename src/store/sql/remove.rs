//! Physical deletion: removes rows, and the layouts and profiles that no document uses any more.
//!
//! A SQLite file keeps the bytes of a removed row until they are overwritten, unless
//! `secure_delete` is on. A host that opens the file itself switches it on. An UPDATE that
//! overwrites rows beforehand is no substitute: SQLite does not write a page that the same
//! transaction frees. In two transactions, a deletion that fails would have destroyed data that it
//! did not remove.

use super::value::{Fields, Sql, Statement, json_list};
use super::{SqlRepository, next_revision};
use crate::document::short_digest;
use crate::store::repository::StoreError;
use aqlite_rm::order;

/// The maximum number of versions that the transaction of a deletion searches for layouts in use.
/// With more, later transactions search them in steps.
const MAX_SEARCHED: u64 = 50_000;
/// Versions, or contributions, that one step searches for layouts in use.
const STEP: u64 = 50_000;
/// The maximum number of steps.
const MAX_STEPS: u64 = 200;

/// `?1` an ehr_id.
macro_rules! ehr_row_id {
    () => {
        "(SELECT id FROM ehr WHERE ehr_id = ?1)"
    };
}

macro_rules! versions_of_ehr {
    () => {
        concat!("ehr = ", ehr_row_id!())
    };
}

macro_rules! contributions_of_ehr {
    () => {
        concat!(
            "id IN (SELECT contribution FROM version WHERE ehr = ",
            ehr_row_id!(),
            ")"
        )
    };
}

macro_rules! chunks_of_ehr {
    () => {
        concat!(
            "owner IN (SELECT 'v/' || object || '::' || system || '::' || number FROM version WHERE ehr = ",
            ehr_row_id!(),
            " UNION ALL SELECT 'c/' || uid FROM contribution WHERE ",
            contributions_of_ehr!(),
            ")"
        )
    };
}

/// `?2` a list of object ids.
macro_rules! versions_of_objects {
    () => {
        concat!(
            "ehr = ",
            ehr_row_id!(),
            " AND object IN (SELECT value FROM json_each(?2))"
        )
    };
}

macro_rules! chunks_of_objects {
    () => {
        concat!(
            "owner IN (SELECT 'v/' || object || '::' || system || '::' || number FROM version WHERE ",
            versions_of_objects!(),
            " UNION ALL SELECT 'c/' || uid FROM contribution WHERE ",
            contributions_of_objects!(),
            ")"
        )
    };
}

/// Contributions whose versions belong to these objects only.
macro_rules! contributions_of_objects {
    () => {
        concat!(
            "id IN (SELECT contribution FROM version WHERE ",
            versions_of_objects!(),
            ") AND id NOT IN (SELECT contribution FROM version WHERE ehr = ",
            ehr_row_id!(),
            " AND object NOT IN (SELECT value FROM json_each(?2)))"
        )
    };
}

macro_rules! tags_of_objects {
    () => {
        concat!(
            "ehr = ",
            ehr_row_id!(),
            " AND target IN (SELECT value FROM json_each(?2) UNION ALL
               SELECT object || '::' || system || '::' || number FROM version WHERE object IN (SELECT value FROM json_each(?2)))"
        )
    };
}

macro_rules! delete {
    ($table:literal, $condition:expr) => {
        concat!("DELETE FROM ", $table, " WHERE ", $condition)
    };
}

/// Keeps the highest id of a version, so that ids of removed versions are never used again.
const KEEP_LAST_VERSION: &str = "UPDATE meta SET value = max(value, (SELECT coalesce(max(id), 0) FROM version)) WHERE name = 'last_version'";

/// `?3` the digest of the ehr_id. The other parameters are those of the condition.
macro_rules! record_removal {
    ($condition:expr) => {
        concat!(
            "INSERT INTO removal (ehr, first_version) SELECT ?3, min(id) FROM version WHERE ",
            $condition,
            " GROUP BY ehr"
        )
    };
}

const RECORD_EHR_REMOVAL: &str = record_removal!(concat!(versions_of_ehr!(), " AND ?2 IS NULL"));
const RECORD_OBJECT_REMOVAL: &str = record_removal!(versions_of_objects!());

const OF_EHR: [&str; 6] = [
    delete!("item_tag", versions_of_ehr!()),
    delete!("chunk", chunks_of_ehr!()),
    delete!("contribution", contributions_of_ehr!()),
    delete!("version", versions_of_ehr!()),
    // `?1 IS NOT NULL` only uses the parameter, because all statements get the same ones.
    "UPDATE meta SET value = value + 1 WHERE name = 'revision' AND ?1 IS NOT NULL",
    // Last: the statements above look up the EHR by its id, and this one reports whether it
    // existed.
    "DELETE FROM ehr WHERE ehr_id = ?1 RETURNING id",
];

const OF_OBJECTS: [&str; 4] = [
    delete!("item_tag", tags_of_objects!()),
    delete!("chunk", chunks_of_objects!()),
    delete!("contribution", contributions_of_objects!()),
    delete!("version", versions_of_objects!()),
];

const ALL: [&str; 9] = [
    KEEP_LAST_VERSION,
    "INSERT INTO removal (ehr, first_version) VALUES (NULL, 0)",
    "DELETE FROM item_tag",
    "DELETE FROM chunk WHERE substr(owner, 1, 2) <> 's/'",
    // Before the versions: deleting a version looks up its segment.
    "DELETE FROM segment",
    "DELETE FROM version",
    "DELETE FROM contribution",
    "DELETE FROM definition",
    // Row 0 is the demographic service, which always exists.
    "DELETE FROM ehr WHERE id > 0",
];

/// Layouts of the ids `?1` (of all, if NULL) that no version above `?2` and no contribution above
/// `?3` uses. Empty unless the generation of layouts is `?4`, and there are at most `?5` versions.
macro_rules! unused {
    () => {
        "(?1 IS NULL OR id IN (SELECT value FROM json_each(?1)))
           AND id NOT IN (SELECT j.value FROM version v, json_each(v.shapes) j WHERE v.id > ?2)
           AND id NOT IN (SELECT j.value FROM contribution c, json_each(c.shapes) j WHERE c.id > ?3 AND c.shapes IS NOT NULL)
           AND (?4 IS NULL OR ?4 = (SELECT value FROM meta WHERE name = 'shape_generation'))
           AND (?5 IS NULL OR (SELECT count(*) FROM (SELECT 1 FROM version LIMIT ?5 + 1)) <= ?5)"
    };
}

macro_rules! chunks_of_unused {
    () => {
        concat!(
            "owner IN (SELECT 's/' || digest FROM shape WHERE ",
            unused!(),
            ")"
        )
    };
}

/// Like [`unused`], for profiles, which an index finds. The parameters are the same.
macro_rules! unused_profile {
    () => {
        "NOT EXISTS (SELECT 1 FROM version v WHERE v.profile = profile.id) AND (?1 IS NULL OR ?1 IS NOT NULL) AND ?2 >= 0 AND ?3 >= 0
           AND (?4 IS NULL OR ?4 = (SELECT value FROM meta WHERE name = 'shape_generation')) AND (?5 IS NULL OR ?5 > 0)"
    };
}

/// The newest layout and the newest profile remain, so that their ids are not used again.
const PURGE: [&str; 5] = [
    delete!("chunk", chunks_of_unused!()),
    delete!(
        "shape",
        concat!("id < (SELECT max(id) FROM shape) AND ", unused!())
    ),
    concat!(
        // The row stays for its id, but must neither keep texts nor be found by its digest.
        "UPDATE shape SET digest = 'removed ' || id, skeleton = '' WHERE id = (SELECT max(id) FROM shape) AND ",
        unused!()
    ),
    delete!(
        "profile",
        concat!("id < (SELECT max(id) FROM profile) AND ", unused_profile!())
    ),
    concat!(
        "UPDATE profile SET archetypes = json_array('removed ' || id) WHERE id = (SELECT max(id) FROM profile) AND ",
        unused_profile!()
    ),
];

const NEXT_GENERATION: &str = "UPDATE meta SET value = value + 1 WHERE name = 'shape_generation' AND (?1 IS NULL OR value = ?1)";
const IS_LARGE: &str =
    "SELECT (SELECT count(*) FROM (SELECT 1 FROM version LIMIT ?1 + 1)) > ?1 AS large";
const EVERY_LAYOUT: &str = "SELECT id FROM shape";
const LAST: &str = "SELECT (SELECT coalesce(max(id), 0) FROM version) AS version, (SELECT coalesce(max(id), 0) FROM contribution) AS contribution";
/// The layouts among `?1` that versions and contributions after `?2` and up to `?3` use.
const USED: [&str; 2] = [
    "SELECT DISTINCT j.value AS id FROM version v, json_each(v.shapes) j
     WHERE v.id > ?2 AND v.id <= ?3 AND j.value IN (SELECT value FROM json_each(?1))",
    "SELECT DISTINCT j.value AS id FROM contribution c, json_each(c.shapes) j
     WHERE c.id > ?2 AND c.id <= ?3 AND c.shapes IS NOT NULL AND j.value IN (SELECT value FROM json_each(?1))",
];

/// The layouts to examine, and the documents that have not been searched yet.
struct Purge {
    /// A list of ids; all layouts if `None`.
    layouts: Option<String>,
    after_version: u64,
    after_contribution: u64,
    generation: Option<u64>,
    most: Option<u64>,
}

impl Purge {
    /// Searches everything in one transaction, if there are not too many versions.
    const AT_ONCE: Purge = Purge {
        layouts: None,
        after_version: 0,
        after_contribution: 0,
        generation: None,
        most: Some(MAX_SEARCHED),
    };

    fn statements(&self) -> impl Iterator<Item = Statement> {
        PURGE.iter().map(|sql| {
            let statement = Statement::new(*sql)
                .bind(self.layouts.as_deref())
                .bind(self.after_version)
                .bind(self.after_contribution);
            statement.bind(self.generation).bind(self.most)
        })
    }
}

/// Returns the first statements of a deletion: a record of it for snapshots.
fn removal_statements(
    record: &'static str,
    ehr_id: &str,
    objects: Option<String>,
) -> Vec<Statement> {
    vec![
        Statement::new(KEEP_LAST_VERSION),
        Statement::new(record)
            .bind(ehr_id)
            .bind(objects)
            .bind(short_digest(ehr_id)),
    ]
}

impl<S: Sql> SqlRepository<S> {
    /// Removes an EHR with everything in it.
    pub(super) async fn remove_ehr(&self, ehr_id: &str) -> Result<bool, StoreError> {
        // This is the ehr_id of row 0, which belongs to the demographic service.
        if ehr_id.is_empty() {
            return Ok(false);
        }
        let none: Option<String> = None;
        let mut batch = removal_statements(RECORD_EHR_REMOVAL, ehr_id, none);
        batch.extend(OF_EHR.iter().map(|sql| Statement::new(*sql).bind(ehr_id)));
        self.remove(batch).await
    }

    /// Removes objects, and contributions that have no version left.
    pub(super) async fn remove_objects(
        &self,
        ehr_id: &str,
        objects: &[String],
    ) -> Result<(), StoreError> {
        let objects = json_list(objects);
        let mut batch = removal_statements(RECORD_OBJECT_REMOVAL, ehr_id, Some(objects.clone()));
        batch.extend(
            OF_OBJECTS
                .iter()
                .map(|sql| Statement::new(*sql).bind(ehr_id).bind(objects.as_str())),
        );
        batch.push(next_revision());
        self.remove(batch).await.map(drop)
    }

    /// Removes everything.
    pub(super) async fn remove_all(&self) -> Result<(), StoreError> {
        let mut batch: Vec<Statement> = ALL.iter().map(|sql| Statement::new(*sql)).collect();
        batch.push(next_revision());
        self.remove(batch).await.map(drop)
    }

    /// Removes documents, then the layouts that no other document uses. Returns whether the last
    /// statement of `batch` returned a row.
    async fn remove(&self, mut batch: Vec<Statement>) -> Result<bool, StoreError> {
        let last = batch.len().saturating_sub(1);
        batch.extend(Purge::AT_ONCE.statements());
        let none: Option<u64> = None;
        batch.extend([
            Statement::new(NEXT_GENERATION).bind(none),
            Statement::new(IS_LARGE).bind(MAX_SEARCHED),
        ]);
        let answers = self.batch(batch).await;
        // Cleared after an error too: the connection may have failed after the database removed the
        // documents.
        self.catalog.verified.clear();
        let mut answers = answers?;
        let large = answers.last().and_then(Fields::of_only);
        let large = large.and_then(|mut fields| fields.flag());
        self.catalog.forget_ids();
        // The segments with the removed documents are no longer live. After a failure, their blobs
        // stay listed as garbage, and the next compaction deletes them.
        drop(self.collect_garbage(0).await);
        if large? {
            // The documents are removed already. After a failure, the next nightly maintenance
            // removes their layouts.
            drop(self.sweep().await);
        }
        Ok(!answers.behind(last)?.is_empty())
    }

    /// Removes the layouts and profiles that no document uses, in steps. Stops when a deletion
    /// intervenes.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        let batch = [
            self.catalog.generation_of(),
            Statement::new(LAST),
            Statement::new(EVERY_LAYOUT),
        ];
        let mut answers = self.batch(batch.to_vec()).await?;
        let generation = Fields::of_only(answers.next()?)?.number()?;
        let mut ends = Fields::of_only(answers.next()?)?;
        // Rows are searched up to these ids in steps. The transaction that removes the layouts
        // searches the later ones itself.
        let ends = [ends.number()?, ends.number()?];
        let mut layouts = answers
            .next()?
            .into_iter()
            .map(|row| Fields::of(row).number())
            .collect::<Result<Vec<u64>, StoreError>>()?;
        if ends.iter().any(|end| end.div_ceil(STEP) > MAX_STEPS) {
            return Ok(());
        }
        for (query, end) in USED.into_iter().zip(ends) {
            self.keep_used(query, end, &mut layouts).await?;
        }
        let list = json_list(&layouts);
        let [after_version, after_contribution] = ends;
        let purge = Purge {
            layouts: Some(list),
            after_version,
            after_contribution,
            generation: Some(generation),
            most: None,
        };
        let mut batch: Vec<Statement> = purge.statements().collect();
        batch.push(Statement::new(NEXT_GENERATION).bind(generation));
        self.batch(batch).await?;
        self.catalog.forget_ids();
        Ok(())
    }

    /// Removes the layouts from a set that rows up to `end` use.
    async fn keep_used(
        &self,
        query: &'static str,
        end: u64,
        unused: &mut Vec<u64>,
    ) -> Result<(), StoreError> {
        for start in (0..end).step_by(STEP as usize) {
            let list = json_list(unused);
            let rows = Statement::new(query)
                .bind(list)
                .bind(start)
                .bind((start + STEP).min(end));
            let used = self.rows(rows).await?.into_iter();
            let used = used.map(|row| Fields::of(row).number());
            let used = order::distinct(used.collect::<Result<Vec<u64>, StoreError>>()?);
            unused.retain(|layout| used.binary_search(layout).is_err());
        }
        Ok(())
    }
}
