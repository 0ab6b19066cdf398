//! Commits: a change set is one batch, and constraints of the database guard it.

use super::SqlRepository;
use super::catalog::{EncodedDocument, LayoutCatalog, ProfileBuilder};
use super::chunked::ChunkedText;
use super::lineage::{Seen, continues};
use super::read::{EHR, known_texts};
use super::rows::{Cell, CollectedRows, Insert, InsertedRows, RowCells, RowForm, RowText};
use super::tag::replace;
use super::value::{Fields, Row, Sql, SqlError, Statement, json_list, kind_of, unexpected};
use super::verified::{StoredColumns, verified_row};
use crate::document::{Layout, ObjectKind, Packed};
use crate::store::commit_rules::{self, KeptProperties, LatestVersion};
use crate::store::repository::{
    Commit, Ehr, EhrFlags, Preconditions, Predecessor, StoreError, TemplateState, Version,
};
use aqlite_rm::order;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

static CREATE_EHR: Insert = Insert::new(
    "INSERT INTO ehr (ehr_id, system_id, time_created, subject_id, subject_namespace, is_queryable, is_modifiable)",
    "{0}, {1}, {2}, {3}, {4}, {5}, {6}",
);
const FLAG_EHR: &str = "UPDATE ehr SET subject_id = ?2, subject_namespace = ?3, is_queryable = ?4, is_modifiable = ?5 WHERE ehr_id = ?1";
/// `ehr` becomes NULL, which fails, in four cases: the EHR does not exist, it is not modifiable and
/// the commit writes content (cell 6), the definitions of a template differ from the precondition
/// (cell 7: pairs of name and state), or the predecessor is not the latest version of its object,
/// or not as the precondition has it (cells 8 to 12).
static CONTRIBUTE: Insert = Insert::new(
    "INSERT INTO contribution (uid, ehr, shapes, digest, document, idempotency)",
    concat!(
        "{0}, (SELECT e.id FROM ehr e WHERE e.ehr_id = {1} AND (e.is_modifiable OR NOT {6})
      AND ({7} IS NULL OR NOT EXISTS (SELECT 1 FROM json_each({7}) t WHERE t.value ->> 1 IS NOT
        (SELECT group_concat(stored, '/') FROM
          (SELECT version || ' ' || created || ' ' || storing_id AS stored FROM definition WHERE kind = 1 AND name = t.value ->> 0 ORDER BY 1))))
      AND ({8} IS NULL OR EXISTS (SELECT 1 FROM version p
        WHERE p.object = {8} AND p.number = {9} AND p.system = {10} AND p.successor IS NULL AND p.ehr = e.id
          AND ({11} IS NULL OR {11} = ",
        verified_row!("p"),
        ")
          AND (NOT {12} OR p.id = (SELECT max(n.id) FROM version n WHERE n.ehr = p.ehr AND n.kind = p.kind))))),
      {2}, {3}, {4}, {5}"
    ),
);
/// The id of the next version: higher than all present and removed ones, because snapshots identify
/// states by ids.
macro_rules! next_version {
    () => {
        "(SELECT max(value, (SELECT coalesce(max(id), 0) FROM version)) + 1 FROM meta WHERE name = 'last_version')"
    };
}
/// The versions of the next list get the next ids, by their positions in it (the last cell). They
/// become the successors of the latest ones: object, number and system.
///
/// Without MATERIALIZED, SQLite would merge the inner query into the outer one, and search for each
/// version of the table in the list.
const SUPERSEDE: &str = concat!(
    "WITH s AS MATERIALIZED (SELECT v.id AS superseded, ",
    next_version!(),
    " + (j.value ->> 3) AS next FROM json_each(?1) j CROSS JOIN version v
        ON v.object = j.value ->> 0 AND v.number = j.value ->> 1 AND v.system = j.value ->> 2 AND v.successor IS NULL)
    UPDATE version SET successor = s.next FROM s WHERE version.id = s.superseded"
);
/// A first version creates an object, which must not exist. A later one gets the EHR of the version
/// with the number in cell 18, which it has just superseded, or follows a version of the same list
/// (no cell 18), whose cell 17 has the distance to its successor. Otherwise `ehr` becomes NULL,
/// which fails.
static ADD_VERSION: Insert = Insert::new(
    "INSERT INTO version (id, ehr, object, preceding, kind, number, system, contribution, time_committed, lifecycle,
      template, profile, shapes, digest, chunks, document, archetype, persistent, successor)",
    concat!(
        next_version!(),
        " + {position},
      CASE WHEN {2} IS NULL
        THEN (SELECT e.id FROM ehr e WHERE e.ehr_id = {0} AND NOT EXISTS (SELECT 1 FROM version o WHERE o.object = {1}))
      WHEN {18} IS NULL THEN (SELECT e.id FROM ehr e WHERE e.ehr_id = {0})
        ELSE (SELECT e.id FROM version p JOIN ehr e ON e.id = p.ehr
              WHERE p.object = {1} AND p.number = {18} AND p.successor = ",
        next_version!(),
        " + {position} AND e.ehr_id = {0})
      END,
      {1}, {2}, {3}, {4}, {5}, (SELECT id FROM contribution WHERE uid = {6}),
      {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}, {16},
      CASE WHEN {17} IS NOT NULL THEN ",
        next_version!(),
        " + {position} + {17} END"
    ),
);
/// Sets the next revision, and returns it. Fails if the present generation of layouts is not `?1`, or
/// the CONTRIBUTION `?2` does not exist, because `value` then becomes NULL.
const NEXT_REVISION_OF: &str = concat!(
    "UPDATE meta SET value =
    CASE WHEN (SELECT value FROM meta WHERE name = 'shape_generation') = ?1 AND ",
    continues!("?2"),
    " THEN value + 1 END WHERE name = 'revision' RETURNING value"
);
/// The failed constraint, as [`SqlError::Constraint`] names it.
const LAYOUTS_WERE_REMOVED: &str = "NULL meta.value";
/// The maximum number of batches of a commit. Each removal of layouts can refuse one of them.
const MAX_ATTEMPTS: usize = 16;
/// The latest versions of objects. The last column is a JSON list of the columns for
/// [`KeptProperties`]; it is NULL if no version has data.
const LATEST_VERSIONS: &str = "SELECT v.object, e.ehr_id, v.object || '::' || v.system || '::' || v.number AS uid, v.kind,
      (SELECT json_array(d.template, d.archetype, d.persistent) FROM version d WHERE d.object = v.object AND d.lifecycle <> '523' ORDER BY d.number DESC LIMIT 1) AS kept
    FROM json_each(?1) j CROSS JOIN version v ON v.object = j.value AND v.number = (SELECT max(n.number) FROM version n WHERE n.object = j.value)
      CROSS JOIN ehr e ON e.id = v.ehr";
/// The ids among `?1` that are ids of EHRs.
const EHR_IDS: &str = "SELECT ehr_id FROM ehr WHERE ehr_id IN (SELECT value FROM json_each(?1))";

impl<S: Sql> SqlRepository<S> {
    pub(super) async fn write_commit(&self, commit: &Commit) -> Result<(), StoreError> {
        match self
            .send_commits(std::slice::from_ref(commit), None)
            .await?
        {
            Ok(()) => Ok(()),
            Err(SqlError::Constraint(what)) => Err(self.rule_error(commit, &what).await),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes several commits in one transaction. If that fails, writes each half in a transaction
    /// of its own, and so on, as long as the database answers.
    ///
    /// `prepared` are the statements of all commits, if they were made before.
    pub(super) async fn write_commits(
        &self,
        commits: &[Commit],
        mut prepared: Option<PreparedBatch>,
    ) -> Vec<Result<(), StoreError>> {
        let (mut outcomes, mut rest) = (Vec::new(), vec![commits]);
        while let Some(part) = rest.pop() {
            match part {
                [] => {}
                // The database does not answer, so the remaining commits are not tried.
                part if let Some(Err(StoreError::Unavailable(why))) = outcomes.last() => {
                    let unavailable = Err(StoreError::Unavailable(why.clone()));
                    outcomes.extend(part.iter().map(|_| unavailable.clone()));
                }
                [only] => outcomes.push(self.write_commit(only).await),
                part if self.write_together(part, prepared.take()).await => {
                    outcomes.extend(part.iter().map(|_| Ok(())))
                }
                part => {
                    let (first, second) = part.split_at(part.len() / 2);
                    // The stack returns the first half next, because commits must keep their order.
                    rest.extend([second, first]);
                }
            }
        }
        outcomes
    }

    async fn write_together(&self, commits: &[Commit], prepared: Option<PreparedBatch>) -> bool {
        self.send_commits(commits, prepared)
            .await
            .is_ok_and(|outcome| outcome.is_ok())
    }

    /// Writes change sets in one transaction, again if layouts were removed meanwhile.
    async fn send_commits(
        &self,
        commits: &[Commit],
        mut prepared: Option<PreparedBatch>,
    ) -> Result<Result<(), SqlError>, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let next = match prepared.take() {
                Some(prepared) => Some(prepared),
                None => self.prepare_again(commits).await?,
            };
            let Some(PreparedBatch { batch, columns }) = next else {
                break;
            };
            match self.sql.batch(batch).await {
                Err(SqlError::Constraint(what)) if what == LAYOUTS_WERE_REMOVED => {
                    self.catalog.forget_ids()
                }
                Ok(answers) => {
                    self.know_state(commits, answers)?;
                    let recorded = commits.iter().filter(|commit| commit.access.is_some());
                    self.count_queued_records(recorded.count()).await;
                    let versions = commits.iter().map(|commit| commit.versions.len());
                    let segments = self.segments.iter();
                    let written = versions.sum();
                    segments.for_each(|segments| segments.count_written(written));
                    if let [only] = commits {
                        self.know_versions(only, &columns);
                    }
                    return Ok(Ok(()));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        Err(StoreError::Unavailable(
            "documents are being removed meanwhile".into(),
        ))
    }

    /// Prepares until no layouts were removed meanwhile. An attempt may only learn the generation.
    async fn prepare_again(&self, commits: &[Commit]) -> Result<Option<PreparedBatch>, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            if let Some(prepared) = self.prepare(commits).await? {
                return Ok(Some(prepared));
            }
        }
        Ok(None)
    }

    /// Returns the batch of change sets; `None` if layouts were removed meanwhile.
    pub(super) async fn prepare(
        &self,
        commits: &[Commit],
    ) -> Result<Option<PreparedBatch>, StoreError> {
        // `statements` may read layouts, which may learn a newer generation.
        let known = || (self.catalog.generation(), self.catalog.breaks());
        let (before, seen) = (known(), self.catalog.newest_seen());
        let (mut batch, columns) = self.statements(commits).await?;
        let (generation, _) = before;
        if generation.is_none() || before != known() {
            // Some of the ids may be of an older generation than others. The generation is known
            // now, so this happens once.
            return Ok(None);
        }
        // First, so that ids of an old generation fail here, before they break a constraint of
        // another table.
        batch.insert(0, next_revision_of(generation, seen));
        Ok(Some(PreparedBatch { batch, columns }))
    }

    /// Keeps the state that commits have made, by the answers to their batch.
    fn know_state(&self, commits: &[Commit], answers: Vec<Vec<Row>>) -> Result<(), StoreError> {
        let revision = answers.into_iter().next().ok_or_else(unexpected)?;
        let revision = Fields::of_only(revision)?.number()?;
        if let Some(last) = commits.last() {
            let seen = Seen::committed(&last.contribution_uid, revision);
            self.catalog.follow(seen);
        }
        Ok(())
    }

    /// Keeps the written versions of a commit as verified, for updates that follow them. Versions
    /// of a load are not kept: they would evict all others, and few of them are changed soon.
    fn know_versions(&self, commit: &Commit, columns: &[Option<StoredColumns>]) {
        for (version, columns) in commit.versions.iter().zip(columns) {
            if let Some(columns) = columns {
                self.catalog.verified.add(version, columns);
            }
        }
    }

    /// Returns the ids of the profiles of versions, in order. `layouts` are the layouts of each.
    async fn profiles_of<'v>(
        &self,
        versions: impl Iterator<Item = &'v Version>,
        layouts: &[Vec<Arc<Layout>>],
    ) -> Result<Vec<u64>, StoreError> {
        let mut profiler = ProfileBuilder::default();
        let positions: Vec<usize> = versions
            .zip(layouts)
            .map(|(version, layouts)| profiler.add(version.kind, layouts))
            .collect();
        let ids = self.intern_profiles(profiler.profiles()).await?;
        let profiles = positions.iter().map(|at| ids.get(*at).copied());
        profiles.collect::<Option<_>>().ok_or_else(unexpected)
    }

    /// Returns the statements of change sets, in order, and the stored columns of each version of a
    /// single one.
    async fn statements(
        &self,
        commits: &[Commit],
    ) -> Result<(Vec<Statement>, Vec<Option<StoredColumns>>), StoreError> {
        commits.iter().try_for_each(commit_rules::check_form)?;
        let contributions: Vec<PackedContribution> = commits
            .iter()
            .map(|commit| PackedContribution::of(&self.catalog, commit))
            .collect();
        let versions = || commits.iter().flat_map(|c| &c.versions);
        let layouts: Vec<Vec<Arc<Layout>>> = versions().map(|v| v.packed.layouts()).collect();
        let of_contributions = contributions.iter().flat_map(|c| &c.layouts);
        let interned = self
            .intern_layouts(layouts.iter().flatten().chain(of_contributions))
            .await?;
        let profiles = self.profiles_of(versions(), &layouts).await?;
        let mut of_version = layouts.iter().zip(profiles);
        let mut statements = CommitStatements::new(match S::REPEATS {
            true => RowForm::Repeated,
            false => RowForm::List,
        });
        statements.keeps_columns = commits.len() == 1;
        let mut columns = Vec::new();
        for (commit, contribution) in commits.iter().zip(contributions) {
            // EHR, contribution, versions, flags: each row refers to those before it, and the
            // versions are written under the flags that held before.
            statements.create_ehr(commit);
            let (owner, known) = (commit.ehr_id.as_str(), [commit.contribution_uid.as_str()]);
            let contribution = match contribution.packed {
                Some(packed) => interned.pack(&packed, &contribution.layouts, owner, &known)?,
                None => EncodedDocument::plain(&commit.contribution, owner, &known),
            };
            statements.contribute(commit, contribution)?;
            for (version, (layouts, profile)) in commit.versions.iter().zip(&mut of_version) {
                let packed = interned.pack(
                    &version.packed,
                    layouts,
                    owner,
                    &known_texts(&version.version_uid, &version.time_committed),
                )?;
                columns.push(statements.add_version(commit, version, profile, packed)?);
            }
            statements.flag_ehr(commit);
            if let Some(access) = &commit.access {
                statements.accesses.push(&super::access::cells(access));
            }
        }
        Ok((statements.finish(), columns))
    }

    /// Returns the error of the rule that a failed constraint enforces.
    async fn rule_error(&self, commit: &Commit, constraint: &str) -> StoreError {
        match constraint {
            "UNIQUE ehr.ehr_id" => StoreError::EhrExists,
            "UNIQUE ehr.subject_id, ehr.subject_namespace" => self.subject_error(commit).await,
            "NULL contribution.ehr" => self.preconditions_error(commit).await,
            "UNIQUE contribution.uid" => StoreError::UidExists(commit.contribution_uid.clone()),
            "UNIQUE version.ehr" => self
                .sequence_error(commit)
                .await
                .unwrap_or(StoreError::DirectoryExists),
            "ONE version.ehr, version.kind" => self
                .sequence_error(commit)
                .await
                .unwrap_or(StoreError::StatusExists),
            "ID ehr.ehr_id" => StoreError::UidExists(commit.ehr_id.clone()),
            "ID version.object" => self.id_error(commit).await,
            "NULL version.ehr"
            | "UNIQUE version.object, version.number"
            // The triggers of the schema report kind, owner and properties as `KEPT`.
            | "KEPT version.kind, version.ehr"
            | "KEPT version.template"
            | "KEPT version.archetype, version.persistent" => {
                // If the stored versions break no rule now, another writer has changed them
                // meanwhile.
                let raced = || StoreError::Unavailable("another writer was faster".into());
                self.sequence_error(commit).await.unwrap_or_else(raced)
            }
            other => SqlError::Constraint(other.to_owned()).into(),
        }
    }

    /// Returns the error of a contribution for which no EHR meets the conditions.
    async fn preconditions_error(&self, commit: &Commit) -> StoreError {
        match self
            .read_ehr(Statement::new(EHR).bind(commit.ehr_id.as_str()))
            .await
        {
            Ok(None) => StoreError::NoSuchEhr,
            Ok(Some(ehr)) if !ehr.is_modifiable && commit.needs_modifiable() => {
                StoreError::NotModifiable
            }
            Ok(Some(_)) if commit.preconditions != Preconditions::default() => {
                StoreError::PreconditionFailed
            }
            Ok(Some(_)) => StoreError::Unavailable("another writer was faster".into()),
            Err(error) => error,
        }
    }

    /// Returns the error of the first version that would create an object under the id of an EHR.
    async fn id_error(&self, commit: &Commit) -> StoreError {
        let created = commit.versions.iter().filter(|v| v.preceding.is_none());
        let ids: Vec<&str> = created.map(|v| v.object_id.as_str()).collect();
        let rows = self
            .rows(Statement::new(EHR_IDS).bind(json_list(&ids)))
            .await;
        let texts = |rows: Vec<Row>| rows.into_iter().map(|row| Fields::of(row).text()).collect();
        let ehrs: Vec<String> = match rows.and_then(texts) {
            Ok(ehrs) => ehrs,
            Err(error) => return error,
        };
        let taken = commit_rules::check_ids(commit, |id| ehrs.iter().any(|ehr| ehr == id)).err();
        taken.unwrap_or_else(|| StoreError::Unavailable("another writer was faster".into()))
    }

    /// Returns the error of a subject that another EHR has. An existing EHR is reported first,
    /// because SQLite does not define the order in which it checks constraints.
    async fn subject_error(&self, commit: &Commit) -> StoreError {
        if commit.new_ehr.is_none() {
            return StoreError::SubjectExists;
        }
        match self
            .read_ehr(Statement::new(EHR).bind(commit.ehr_id.as_str()))
            .await
        {
            Ok(Some(_)) => StoreError::EhrExists,
            Ok(None) => StoreError::SubjectExists,
            Err(error) => error,
        }
    }

    /// Returns the error of versions that do not follow the stored ones, or `None` if they do.
    async fn sequence_error(&self, commit: &Commit) -> Option<StoreError> {
        match self.latest_versions(&commit.versions).await {
            Ok(latest_versions) => {
                let head = |object: &str| Ok(latest_versions.get(object).cloned());
                commit_rules::check_sequence(&commit.versions, &head)
                    .and_then(|()| commit_rules::check_kind_and_properties(&commit.versions, &head))
                    .err()
            }
            Err(error) => Some(error),
        }
    }

    /// Returns the latest versions of the objects of these versions.
    async fn latest_versions(
        &self,
        versions: &[Version],
    ) -> Result<HashMap<String, LatestVersion>, StoreError> {
        // Many versions may be of one object.
        let objects = order::distinct(versions.iter().map(|v| v.object_id.as_str()));
        let rows = self
            .rows(Statement::new(LATEST_VERSIONS).bind(json_list(&objects)))
            .await?;
        let head = |row| {
            let mut fields = Fields::of(row);
            let (object, ehr_id, version_uid, kind) = (
                fields.text()?,
                fields.text()?,
                fields.text()?,
                kind_of(fields.number()?)?,
            );
            let kept: Option<KeptColumns> = fields
                .optional_text()?
                .map_or(Ok(None), |list| serde_json::from_str(&list).map(Some))
                .map_err(|_| unexpected())?;
            Ok((
                object,
                LatestVersion {
                    ehr_id,
                    version_uid,
                    kind,
                    kept: kept.map(KeptProperties::from),
                },
            ))
        };
        rows.into_iter().map(head).collect()
    }
}

/// The columns `template`, `archetype` and `persistent` of a version.
#[derive(serde::Deserialize)]
struct KeptColumns(Option<String>, Option<String>, Option<u8>);

impl From<KeptColumns> for KeptProperties {
    fn from(KeptColumns(template_id, archetype_node_id, persistent): KeptColumns) -> Self {
        KeptProperties {
            template_id,
            archetype_node_id,
            is_persistent: persistent.map(|persistent| persistent != 0),
        }
    }
}

/// The statements of change sets that can be written. They hold the ids of layouts, and the
/// generation of these.
pub(super) struct PreparedBatch {
    batch: Vec<Statement>,
    /// The stored columns of each version, if there is one change set.
    columns: Vec<Option<StoredColumns>>,
}

/// A contribution before its layouts have ids.
struct PackedContribution {
    /// `None` if the contribution is stored as plain text.
    packed: Option<Packed>,
    layouts: Vec<Arc<Layout>>,
}

impl PackedContribution {
    fn of(catalog: &LayoutCatalog, commit: &Commit) -> PackedContribution {
        let packed = catalog.pack_contribution(&commit.contribution);
        let layouts = packed.as_ref().map(Packed::layouts).unwrap_or_default();
        PackedContribution { packed, layouts }
    }
}

/// The statements of change sets. Rows of one table share a statement until another statement
/// between them could read or change them.
struct CommitStatements<'c> {
    form: RowForm,
    batch: Vec<Statement>,
    /// The ids of the EHRs of the collected rows.
    owners: HashSet<&'c str>,
    ehrs: InsertedRows,
    contributions: InsertedRows,
    versions: PendingVersions,
    accesses: InsertedRows,
    /// Whether the stored columns of each version are returned. Those of a load are not kept.
    keeps_columns: bool,
    /// The templates that an earlier change set of the batch has as preconditions. They hold for
    /// the transaction, so a change set with the same ones need not name them again.
    checked: Vec<Rc<TemplateState>>,
}

/// Versions whose rows are written together.
#[derive(Default)]
struct PendingVersions {
    rows: Vec<PendingVersion>,
    /// The position of the last version of each object.
    last: HashMap<String, usize>,
    /// The object of the directory of each EHR.
    directories: HashMap<String, String>,
    /// The stored versions that they follow: cells of [`SUPERSEDE`].
    superseded: Vec<RowText>,
}

/// A version whose row is not written yet.
struct PendingVersion {
    version_uid: String,
    /// Its cells but the last two.
    cells: RowCells,
    /// The distance to its successor among these versions.
    successor: Option<usize>,
    /// The number of the stored version that it follows.
    follows_stored: Option<u64>,
}

impl PendingVersions {
    /// Returns whether the rows before a version must be written first, because it depends on them
    /// in another way than as the next version of an object.
    fn must_be_written_before(&self, version: &Version) -> bool {
        let preceding = version.preceding.as_ref();
        let last = self.last.get(&version.object_id);
        let last = last.and_then(|last| self.rows.get(*last));
        // The database checks after each directory that the EHR has only one.
        let is_second_directory = version.kind == ObjectKind::Folder
            && self
                .directories
                .get(&version.ehr_id)
                .is_some_and(|object| *object != version.object_id);
        is_second_directory || last.is_some_and(|last| Some(&last.version_uid) != preceding)
    }

    /// Adds a version with its cells. It follows the last pending version of its object, or else a
    /// stored one.
    fn push(&mut self, version: &Version, cells: RowCells) {
        let position = self.rows.len();
        let last = self.last.insert(version.object_id.clone(), position);
        let mut follows_stored = None;
        if let Some(last) = last {
            if let Some(followed) = self.rows.get_mut(last) {
                followed.successor = Some(position - last);
            }
        } else if let Some(followed) = version
            .preceding
            .as_deref()
            .and_then(commit_rules::split_uid)
        {
            let number = u64::from(followed.number);
            follows_stored = Some(number);
            let cells = [
                followed.object.into(),
                number.into(),
                followed.system.into(),
            ];
            let position = Cell::Number(position as u64);
            self.superseded.push(RowText::of(&cells).with(&[position]));
        }
        if version.kind == ObjectKind::Folder {
            self.directories
                .insert(version.ehr_id.clone(), version.object_id.clone());
        }
        self.rows.push(PendingVersion {
            version_uid: version.version_uid.clone(),
            cells,
            successor: None,
            follows_stored,
        });
    }

    /// Returns the statements of the versions so far, and removes them.
    fn take_statements(&mut self, form: RowForm) -> impl Iterator<Item = Statement> + use<> {
        let pending = std::mem::take(self);
        let mut superseded = CollectedRows::new(SUPERSEDE);
        for row in pending.superseded {
            superseded.push_text(row);
        }
        let mut versions = InsertedRows::new(&ADD_VERSION, form);
        for row in pending.rows {
            let successor = row.successor.map(|distance| distance as u64);
            let links = [successor.into(), row.follows_stored.into()];
            versions.push_row(row.cells.with(&links));
        }
        let superseded: Vec<Statement> = superseded.take_statements().collect();
        let versions: Vec<Statement> = versions.take_statements().collect();
        superseded.into_iter().chain(versions)
    }
}

impl<'c> CommitStatements<'c> {
    /// Creates a batch without change sets.
    fn new(form: RowForm) -> CommitStatements<'c> {
        let rows = |insert| InsertedRows::new(insert, form);
        CommitStatements {
            form,
            batch: Vec::new(),
            owners: HashSet::new(),
            ehrs: rows(&CREATE_EHR),
            contributions: rows(&CONTRIBUTE),
            versions: PendingVersions::default(),
            accesses: rows(&super::access::INSERT_QUEUED),
            keeps_columns: false,
            checked: Vec::new(),
        }
    }

    /// Writes the statements of the collected rows.
    fn flush(&mut self) {
        self.batch.extend(self.ehrs.take_statements());
        self.batch.extend(self.contributions.take_statements());
        self.batch.extend(self.versions.take_statements(self.form));
        self.batch.extend(self.accesses.take_statements());
        self.owners.clear();
    }

    fn finish(mut self) -> Vec<Statement> {
        self.flush();
        self.batch
    }

    /// Creates the EHR if the commit has a new one. Earlier rows of this EHR are written first,
    /// because they must not see it. All others may be written after it.
    fn create_ehr(&mut self, commit: &Commit) {
        if let Some(ehr) = &commit.new_ehr {
            if self.owners.contains(ehr.ehr_id.as_str()) {
                self.flush();
            }
            let created = [&ehr.ehr_id, &ehr.system_id, &ehr.time_created].map(Cell::from);
            self.ehrs
                .push(&[&created[..], &flags(&ehr.flags())].concat());
        }
    }

    /// Sets the flags of the EHR if the commit has a new EHR_STATUS. Earlier rows are written
    /// first, because the flags apply to later commits only.
    fn flag_ehr(&mut self, commit: &Commit) {
        if let Some(new) = &commit.status
            && commit.new_ehr.as_ref().map(Ehr::flags).as_ref() != Some(new)
        {
            self.flush();
            let statement = Statement::new(FLAG_EHR).bind(commit.ehr_id.as_str());
            self.batch
                .push(flags(new).into_iter().fold(statement, Statement::bind));
        }
    }

    /// Adds the row of a contribution, with the preconditions of its commit.
    fn contribute(
        &mut self,
        commit: &'c Commit,
        encoded: EncodedDocument,
    ) -> Result<(), StoreError> {
        let Preconditions {
            templates,
            predecessor,
        } = &commit.preconditions;
        if predecessor.is_some() {
            // The predecessor may be a version of an earlier commit of this batch.
            self.flush();
        }
        self.owners.insert(&commit.ehr_id);
        let text = ChunkedText::split(encoded.text);
        self.batch
            .extend(text.insert_chunks(&format!("c/{}", commit.contribution_uid)));
        let states = self.unchecked(templates);
        let row = [
            Cell::from(&commit.contribution_uid),
            Cell::from(&commit.ehr_id),
            encoded.layouts.as_ref().into(),
            Cell::from(&encoded.checksum),
            Cell::from(&text.first),
            commit.idempotency.as_ref().into(),
            commit.needs_modifiable().into(),
            states.as_ref().into(),
        ];
        let known = predecessor_cells(predecessor.as_ref())?;
        self.contributions.push(&[&row[..], &known].concat());
        Ok(())
    }

    /// Returns the states of templates that the batch does not check yet, as cell 7 of
    /// [`CONTRIBUTE`].
    fn unchecked(&mut self, templates: &[Rc<TemplateState>]) -> Option<String> {
        if templates.iter().all(|state| self.checked.contains(state)) {
            return None;
        }
        let state = |known: &Rc<TemplateState>| [known.template.clone(), known.stored.join("/")];
        let states: Vec<[String; 2]> = templates.iter().map(state).collect();
        self.checked.extend(templates.iter().cloned());
        Some(json_list(&states))
    }

    /// Replaces the tags of a version and of its object, behind its row.
    fn add_tags(&mut self, commit: &Commit, version: &Version) {
        if version.tags.is_empty() {
            return;
        }
        self.flush();
        let lists = version.tags.iter();
        self.batch
            .extend(lists.flat_map(|list| replace(&commit.ehr_id, list)));
    }

    /// Adds the row of a version, with its chunks and tags. Returns its stored columns if they are
    /// kept.
    fn add_version(
        &mut self,
        commit: &'c Commit,
        version: &Version,
        profile: u64,
        encoded: EncodedDocument,
    ) -> Result<Option<StoredColumns>, StoreError> {
        if self.versions.must_be_written_before(version) {
            self.flush();
        }
        self.owners.insert(&commit.ehr_id);
        let uid = commit_rules::split_uid(&version.version_uid).ok_or_else(unexpected)?;
        let document = ChunkedText::split(encoded.text);
        let kept = match version.is_deletion() {
            true => KeptProperties::default(),
            false => KeptProperties::of(version),
        };
        self.batch
            .extend(document.insert_chunks(&format!("v/{}", version.version_uid)));
        let cells = [
            Cell::from(&commit.ehr_id),
            Cell::from(&version.object_id),
            version.preceding.as_ref().into(),
            version.kind.number().into(),
            u64::from(uid.number).into(),
            uid.system.into(),
            Cell::from(&commit.contribution_uid),
            Cell::from(&version.time_committed),
            Cell::from(&version.lifecycle),
            version.template_id.as_ref().into(),
            profile.into(),
            encoded.layouts.as_ref().into(),
            Cell::from(&encoded.checksum),
            document.chunk_count().into(),
            Cell::from(&document.first),
            kept.archetype_node_id.as_ref().into(),
            kept.is_persistent.map(u64::from).into(),
        ];
        self.versions.push(version, RowCells::of(self.form, &cells));
        self.add_tags(commit, version);
        let layouts = encoded.layouts.unwrap_or_default();
        let (checksum, chunks) = (&encoded.checksum, document.chunk_count());
        let columns = || StoredColumns::of(&layouts, checksum, &document.first, chunks);
        Ok(self.keeps_columns.then(columns).flatten())
    }
}

/// Returns the cells of [`CONTRIBUTE`] for a predecessor: object, number, system, row, and whether
/// it must be the newest version of its kind.
fn predecessor_cells(known: Option<&Predecessor>) -> Result<[Cell<'_>; 5], StoreError> {
    let Some(known) = known else {
        return Ok([Cell::Null; 5]);
    };
    let uid = commit_rules::split_uid(&known.version_uid).ok_or_else(unexpected)?;
    Ok([
        uid.object.into(),
        u64::from(uid.number).into(),
        uid.system.into(),
        known.row.as_deref().into(),
        known.is_newest_of_kind.into(),
    ])
}

/// Returns the cells of [`FLAG_EHR`] behind the id.
fn flags(flags: &EhrFlags) -> [Cell<'_>; 4] {
    let (id, namespace) = flags
        .subject
        .as_ref()
        .map(|(id, namespace)| (id, namespace))
        .unzip();
    [
        id.into(),
        namespace.into(),
        flags.is_queryable.into(),
        flags.is_modifiable.into(),
    ]
}

/// Returns the statement [`NEXT_REVISION_OF`].
fn next_revision_of(generation: Option<u64>, seen: Option<String>) -> Statement {
    Statement::new(NEXT_REVISION_OF).bind(generation).bind(seen)
}
