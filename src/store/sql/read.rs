//! Reading EHRs, versions and contributions.

use super::catalogue::Loaded;
use super::large::{read_rests, rests};
use super::seal::Stored;
use super::value::{Fields, Row, Sql, Statement, json_list, kind_of, unexpected};
use super::{SqlRepository, tag};
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::json;
use crate::rm::tree::NodeRef;
use crate::store::conflict::{join_uid, split_uid};
use crate::store::repository::{Contribution, Ehr, StoreError, TagList, Version, Which};
use std::collections::{BTreeSet, HashMap};

macro_rules! ehr {
    ($condition:literal) => {
        concat!(
            "SELECT ehr_id, system_id, time_created, subject_id, subject_namespace, is_queryable, is_modifiable FROM ehr WHERE id > 0 AND ",
            $condition
        )
    };
}

macro_rules! versions {
    ($condition:literal) => {
        concat!(
            "SELECT e.ehr_id, v.kind, v.object, v.number, v.system, v.preceding, c.uid, v.time_committed, v.lifecycle, v.template, v.shapes,
               v.digest, v.chunks, v.document,
               (SELECT json_group_array(json_array(t.target, t.key, t.path, t.value)) FROM item_tag t
                WHERE t.target IN (v.object, v.object || '::' || v.system || '::' || v.number)) AS tags
             FROM version v JOIN ehr e ON e.id = v.ehr JOIN contribution c ON c.id = v.contribution ",
            $condition
        )
    };
}

macro_rules! version {
    ($condition:literal) => {
        concat!(versions!("WHERE e.ehr_id = ?1 AND v.object = ?2"), $condition)
    };
}

pub(super) const EHR: &str = ehr!("ehr_id = ?1");
/// `?1` the ehr_id that they follow or NULL, `?2` most rows; row 0 is the demographic service.
const EHRS: &str = ehr!("id > coalesce((SELECT id FROM ehr WHERE ehr_id = ?1), 0) ORDER BY id LIMIT ?2");
pub(super) const EHR_BY_SUBJECT: &str = ehr!("subject_id = ?1 AND subject_namespace = ?2");
pub(super) const VERSIONS: &str = version!(" ORDER BY v.number");
const LATEST: &str = version!(" AND v.successor IS NULL");
const BY_UID: &str = version!(" AND v.number = ?3 AND v.system = ?4");
const AT: &str = version!(" AND v.time_committed <= ?3 ORDER BY v.number DESC LIMIT 1");
pub(super) const OBJECTS: &str = "SELECT object FROM version WHERE ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) AND kind = ?2 AND preceding IS NULL
    ORDER BY id LIMIT ?3 OFFSET ?4";
/// The kind of an object never changes, so the newest version of a kind is one of the object that was committed to last.
pub(super) const NEWEST_OBJECT: &str =
    "SELECT object FROM version WHERE id = (SELECT max(id) FROM version WHERE ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) AND kind = ?2)";
pub(super) const IDEMPOTENCY: &str = "SELECT c.idempotency FROM contribution c JOIN ehr e ON e.id = c.ehr WHERE c.uid = ?2 AND e.ehr_id = ?1";
/// `?1` pairs of object and number.
const OF_UIDS: &str = versions!("JOIN json_each(?1) j ON v.object = j.value ->> 0 AND v.number = j.value ->> 1 ORDER BY v.id");
/// `?1` an EHR or NULL, `?2` the uid that they follow or NULL, `?3` most rows.
const CONTRIBUTIONS: &str = "SELECT c.uid, e.ehr_id, c.shapes, c.digest, c.document FROM contribution c JOIN ehr e ON e.id = c.ehr
    WHERE c.id > coalesce((SELECT id FROM contribution WHERE uid = ?2), 0)
      AND (?1 IS NULL OR c.id IN (SELECT v.contribution FROM version v WHERE v.ehr = (SELECT id FROM ehr WHERE ehr_id = ?1)))
    ORDER BY c.id LIMIT ?3";
const CONTRIBUTION: &str =
    "SELECT c.uid, e.ehr_id, c.shapes, c.digest, c.document FROM contribution c JOIN ehr e ON e.id = c.ehr WHERE c.uid = ?2 AND e.ehr_id = ?1";

/// The texts of a version's row that its document names again: there they stand as references.
pub(super) fn known_texts<'a>(version_uid: &'a str, time_committed: &'a str) -> [&'a str; 3] {
    [version_uid, time_committed, split_uid(version_uid).map_or("", |(_, system, _)| system)]
}

/// A row of a contribution, its document still as it is stored.
struct Filed {
    uid: String,
    ehr_id: String,
    /// `None`: the document is JSON.
    shapes: Option<Vec<u64>>,
    /// `None`: an earlier release wrote it.
    seal: Option<String>,
    document: String,
}

/// A row of a version, its document still as text.
struct Line {
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
    shapes: Vec<u64>,
    digest: String,
    chunks: u64,
    document: String,
    tags: Vec<TagList>,
}

impl<S: Sql> SqlRepository<S> {
    pub(super) async fn read_ehr(&self, query: Statement) -> Result<Option<Ehr>, StoreError> {
        ehr_of(self.rows(query).await?)
    }

    pub(super) async fn read_ehrs(&self, after: Option<&str>, limit: u64) -> Result<Vec<Ehr>, StoreError> {
        let known = Statement::new("SELECT 1 AS known FROM ehr WHERE ehr_id = ?1").bind(after);
        let mut answers = self.batch(vec![known, Statement::new(EHRS).bind(after).bind(limit)]).await?.into_iter();
        if answers.next().is_none_or(|known| known.is_empty()) && after.is_some() {
            return Err(StoreError::NoSuchEhr);
        }
        answers.next().unwrap_or_default().into_iter().map(ehr_of_row).collect()
    }

    pub(super) async fn read_version(&self, ehr_id: &str, object_id: &str, which: Which<'_>) -> Result<Option<Version>, StoreError> {
        let query = |sql: &'static str| Statement::new(sql).bind(ehr_id).bind(object_id);
        let query = match which {
            Which::Latest => query(LATEST),
            Which::At(time) => query(AT).bind(time),
            Which::Uid(uid) => match split_uid(uid) {
                Some((object, system, number)) if object == object_id => query(BY_UID).bind(u64::from(number)).bind(system),
                _ => return Ok(None),
            },
        };
        Ok(self.read_versions(query).await?.pop())
    }

    pub(super) async fn read_versions(&self, query: Statement) -> Result<Vec<Version>, StoreError> {
        let lines = self.rows(query).await?.into_iter().map(Line::of).collect::<Result<Vec<Line>, StoreError>>()?;
        let shapes = self.load(&lines.iter().flat_map(|line| &line.shapes).copied().collect::<BTreeSet<u64>>()).await?;
        let rest = self.read_document_rests(lines.iter().filter(|l| l.chunks > 0).map(Line::uid)).await?;
        lines.into_iter().map(|line| line.whole(&shapes, &rest)).collect()
    }

    /// What follows the first pieces of the documents of these versions; no round trip when there are none.
    pub(super) async fn read_document_rests(&self, uids: impl Iterator<Item = String>) -> Result<HashMap<String, String>, StoreError> {
        let owners: Vec<String> = uids.map(|uid| format!("v/{uid}")).collect();
        if owners.is_empty() {
            return Ok(HashMap::new());
        }
        rests(self.rows(read_rests(&owners)).await?)
    }

    pub(super) async fn read_contribution(&self, ehr_id: &str, uid: &str) -> Result<Option<String>, StoreError> {
        let owner = format!("c/{uid}");
        let read = Statement::new(CONTRIBUTION).bind(ehr_id).bind(uid);
        let mut answers = self.batch(vec![read, read_rests(std::slice::from_ref(&owner))]).await?.into_iter();
        let Some(row) = answers.next().and_then(|rows| rows.into_iter().next()) else { return Ok(None) };
        let rest = rests(answers.next().unwrap_or_default())?;
        self.contribution_document(&Filed::of(row)?.with(rest.get(&owner))).await.map(Some)
    }

    async fn contribution_document(&self, filed: &Filed) -> Result<String, StoreError> {
        let stored = Stored { owner: &filed.ehr_id, known: &[&filed.uid], text: &filed.document };
        let Some(shapes) = &filed.shapes else {
            let is_it = filed.seal.as_ref().is_none_or(|seal| *seal == stored.seal(std::iter::empty()));
            return if is_it { Ok(filed.document.clone()) } else { Err(stored.altered()) };
        };
        let loaded = self.load(&shapes.iter().copied().collect::<BTreeSet<u64>>()).await?;
        Ok(loaded.unpack(stored, shapes, filed.seal.as_deref())?.to_json())
    }

    pub(super) async fn read_contributions(&self, ehr_id: Option<&str>, after: Option<&str>, limit: u64) -> Result<Vec<Contribution>, StoreError> {
        // A contribution of another EHR is as unknown as one that there is not.
        let known =
            Statement::new("SELECT 1 AS known FROM contribution c JOIN ehr e ON e.id = c.ehr WHERE c.uid = ?1 AND (?2 IS NULL OR e.ehr_id = ?2)")
                .bind(after)
                .bind(ehr_id);
        let mut answers = self.batch(vec![known, Statement::new(CONTRIBUTIONS).bind(ehr_id).bind(after).bind(limit)]).await?.into_iter();
        if answers.next().is_none_or(|known| known.is_empty()) && after.is_some() {
            return Err(StoreError::NoSuchContribution);
        }
        let rows = answers.next().unwrap_or_default();
        let filed = rows.into_iter().map(Filed::of).collect::<Result<Vec<_>, StoreError>>()?;
        let owners: Vec<String> = filed.iter().map(|filed| format!("c/{}", filed.uid)).collect();
        let rest = rests(self.rows(read_rests(&owners)).await?)?;
        let mut found = Vec::new();
        for (filed, owner) in filed.into_iter().zip(owners) {
            let filed = filed.with(rest.get(&owner));
            let document = self.contribution_document(&filed).await?;
            found.push(Contribution { ehr_id: filed.ehr_id, uid: filed.uid, document, versions: Vec::new() });
        }
        let uids: Vec<(String, u64)> = found.iter().flat_map(|c| uids_of(&c.document)).collect();
        let mut of_uid: HashMap<String, Vec<Version>> = HashMap::new();
        for version in self.read_versions(Statement::new(OF_UIDS).bind(json_list(&uids))).await? {
            of_uid.entry(version.contribution.clone()).or_default().push(version);
        }
        Ok(found.into_iter().map(|c| Contribution { versions: of_uid.remove(&c.uid).unwrap_or_default(), ..c }).collect())
    }
}

impl Filed {
    fn of(row: Row) -> Result<Filed, StoreError> {
        let mut fields = Fields::of(row);
        Ok(Filed {
            uid: fields.text()?,
            ehr_id: fields.text()?,
            shapes: fields.optional_numbers()?,
            seal: fields.optional_text()?,
            document: fields.text()?,
        })
    }

    /// With what follows the first piece of its document.
    fn with(self, rest: Option<&String>) -> Filed {
        Filed { document: self.document + rest.map_or("", String::as_str), ..self }
    }
}

/// Object and number of the versions that a CONTRIBUTION lists.
fn uids_of(document: &str) -> Vec<(String, u64)> {
    let tree = json::read(document, Cls::CONTRIBUTION).unwrap_or_default();
    let uid = |reference: NodeRef<'_>| {
        let (object, _, number) = split_uid(reference.text_along(&[Attr::ID, Attr::VALUE])?)?;
        Some((object.to_owned(), u64::from(number)))
    };
    tree.root().map(|root| root.values(Attr::VERSIONS).filter_map(uid).collect()).unwrap_or_default()
}

/// The EHR of an answer to [`EHR`] or [`EHR_BY_SUBJECT`].
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

impl Line {
    fn of(row: Row) -> Result<Line, StoreError> {
        let mut fields = Fields::of(row);
        Ok(Line {
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
            shapes: fields.numbers()?,
            digest: fields.text()?,
            chunks: fields.number()?,
            document: fields.text()?,
            tags: tag::of_json(fields.optional_text()?.as_deref())?,
        })
    }

    /// The version with its document.
    fn whole(self, shapes: &Loaded, rest: &HashMap<String, String>) -> Result<Version, StoreError> {
        let version_uid = self.uid();
        let text = self.document + rest.get(&format!("v/{version_uid}")).map_or("", String::as_str);
        let stored = Stored { owner: &self.ehr_id, known: &known_texts(&version_uid, &self.time_committed), text: &text };
        let packed = shapes.unpack(stored, &self.shapes, Some(&self.digest))?;
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
