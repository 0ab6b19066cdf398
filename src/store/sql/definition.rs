//! Templates, stored queries, guides and value sets.

use super::chunked::{ChunkedText, joined_chunks, read_chunks};
use super::read::{EHR, ehr_of};
use super::value::{Fields, Row, Sql, SqlError, Statement, unexpected};
use super::{SqlRepository, next_revision};
use crate::store::by_name;
use crate::store::repository::{Definition, DefinitionKind, Ehr, StoreError};
use aqlite_rm::order;

/// The columns that [`head`] reads. The bytes are those of the first chunk, and a full size for
/// each other one.
macro_rules! head {
    () => {
        "name, version, format, created, summary, storing_id, octet_length(body) + 900000 * (SELECT count(*) FROM chunk c
         WHERE c.owner = 'd/' || CAST(kind AS INTEGER) || '/' || name || '/' || version)"
    };
}

const LIST: &str = concat!(
    "SELECT ",
    head!(),
    " FROM definition WHERE kind = ?1 AND substr(name, 1, length(?2)) = ?2"
);
const LIST_WITH_BODIES: &str = concat!(
    "SELECT ",
    head!(),
    ", body || coalesce((SELECT group_concat(c.body, '') FROM
      (SELECT body FROM chunk WHERE owner = 'd/' || CAST(?1 AS INTEGER) || '/' || name || '/' || version ORDER BY part) c), '')
    FROM definition WHERE kind = ?1 AND substr(name, 1, length(?2)) = ?2"
);
const LENGTHS: &str = "SELECT coalesce(sum(octet_length(body) + coalesce((SELECT sum(octet_length(c.body)) FROM chunk c
      WHERE c.owner = 'd/' || CAST(?1 AS INTEGER) || '/' || name || '/' || version), 0)), 0)
    FROM definition WHERE kind = ?1 AND substr(name, 1, length(?2)) = ?2";
const VERSIONS: &str = concat!(
    "SELECT ",
    head!(),
    " FROM definition WHERE kind = ?1 AND name = ?2"
);
const READ: &str = concat!(
    "SELECT ",
    head!(),
    ", body FROM definition WHERE kind = ?1 AND name = ?2 AND version = ?3"
);
const INSERT: &str =
    "INSERT INTO definition (kind, name, version, format, created, summary, body, storing_id)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, lower(hex(randomblob(16))))";
const DELETE: &str = "DELETE FROM definition WHERE kind = ?1 AND name = ?2 AND version = ?3
    AND (?1 <> 1 OR NOT EXISTS (SELECT 1 FROM version v WHERE v.template = ?2)) RETURNING id";
const DELETE_CHUNKS: &str = "DELETE FROM chunk WHERE owner = ?4
    AND NOT EXISTS (SELECT 1 FROM definition WHERE kind = ?1 AND name = ?2 AND version = ?3)";

impl<S: Sql> SqlRepository<S> {
    pub(super) async fn write_definition(
        &self,
        kind: DefinitionKind,
        definition: Definition,
    ) -> Result<(), StoreError> {
        let owner = owner(kind, &definition.name, &definition.version);
        let body = ChunkedText::split(definition.body);
        let insert = Statement::new(INSERT)
            .bind(kind.number())
            .bind(definition.name)
            .bind(definition.version)
            .bind(definition.format)
            .bind(definition.created)
            .bind(definition.summary)
            .bind(body.first.as_str());
        let mut batch = vec![insert, next_revision()];
        batch.extend(body.insert_chunks(&owner));
        match self.sql.batch(batch).await {
            Ok(_) => Ok(()),
            Err(SqlError::Constraint(what)) if what.starts_with("UNIQUE definition.") => {
                Err(StoreError::DefinitionExists)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn list_definitions(
        &self,
        kind: DefinitionKind,
        prefix: &str,
    ) -> Result<Vec<Definition>, StoreError> {
        listed(
            self.rows(Statement::new(LIST).bind(kind.number()).bind(prefix))
                .await?,
        )
    }

    pub(super) async fn list_versions(
        &self,
        kind: DefinitionKind,
        name: &str,
    ) -> Result<Vec<Definition>, StoreError> {
        listed(
            self.rows(Statement::new(VERSIONS).bind(kind.number()).bind(name))
                .await?,
        )
    }

    pub(super) async fn bytes_of_bodies(
        &self,
        kind: DefinitionKind,
        prefix: &str,
    ) -> Result<usize, StoreError> {
        let lengths = Statement::new(LENGTHS).bind(kind.number()).bind(prefix);
        let lengths = self.rows(lengths).await?.into_iter().next();
        let bytes = lengths.map_or(Ok(0), |row| Fields::of(row).number())?;
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    pub(super) async fn list_bodies(
        &self,
        kind: DefinitionKind,
        prefix: &str,
        most: usize,
    ) -> Result<Option<Vec<Definition>>, StoreError> {
        if self.bytes_of_bodies(kind, prefix).await? > most {
            return Ok(None);
        }
        let bodies = Statement::new(LIST_WITH_BODIES);
        let bodies = bodies.bind(kind.number()).bind(prefix);
        listed(self.rows(bodies).await?).map(Some)
    }

    pub(super) async fn read_preconditions(
        &self,
        ehr_id: &str,
        template_id: &str,
    ) -> Result<(Option<Ehr>, Vec<Definition>), StoreError> {
        let versions = Statement::new(VERSIONS)
            .bind(DefinitionKind::Template.number())
            .bind(template_id);
        let mut answers = self
            .batch(vec![Statement::new(EHR).bind(ehr_id), versions])
            .await?
            .into_iter();
        Ok((
            ehr_of(answers.next().unwrap_or_default())?,
            listed(answers.next().unwrap_or_default())?,
        ))
    }

    pub(super) async fn read_definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<Option<Definition>, StoreError> {
        let read = Statement::new(READ)
            .bind(kind.number())
            .bind(name)
            .bind(version);
        let owner = owner(kind, name, version);
        let mut answers = self
            .batch(vec![read, read_chunks(std::slice::from_ref(&owner))])
            .await?
            .into_iter();
        let found = answers.next().and_then(|rows| rows.into_iter().next());
        let Some(row) = found else { return Ok(None) };
        let mut fields = Fields::of(row);
        let head = head(&mut fields)?;
        let rest = joined_chunks(answers.next().unwrap_or_default())?;
        let body = fields.text()? + rest.get(&owner).map_or("", String::as_str);
        Ok(Some(Definition { body, ..head }))
    }

    pub(super) async fn remove_definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<bool, StoreError> {
        let of_definition = |sql| {
            Statement::new(sql)
                .bind(kind.number())
                .bind(name)
                .bind(version)
        };
        let chunks = of_definition(DELETE_CHUNKS).bind(owner(kind, name, version));
        let answers = self
            .batch(vec![
                of_definition(DELETE),
                chunks,
                of_definition(READ),
                next_revision(),
            ])
            .await?;
        match (
            answers.first().is_some_and(|rows| !rows.is_empty()),
            answers.get(2).is_some_and(|rows| !rows.is_empty()),
        ) {
            (_, true) => Err(StoreError::TemplateInUse),
            (removed, false) => Ok(removed),
        }
    }
}

/// Returns the definitions of rows, by name and SEMVER.
fn listed(rows: Vec<Row>) -> Result<Vec<Definition>, StoreError> {
    let definition = |row: Row| {
        let has_body = row.len() > HEAD;
        let mut fields = Fields::of(row);
        let head = head(&mut fields)?;
        Ok(if has_body {
            Definition {
                body: fields.text()?,
                ..head
            }
        } else {
            head
        })
    };
    let mut found = rows
        .into_iter()
        .map(definition)
        .collect::<Result<Vec<_>, StoreError>>()?;
    order::sort_by(&mut found, by_name);
    Ok(found)
}

/// The number of columns that [`head`] reads.
const HEAD: usize = 7;

fn head(fields: &mut Fields) -> Result<Definition, StoreError> {
    Ok(Definition {
        name: fields.text()?,
        version: fields.text()?,
        format: fields.text()?,
        created: fields.text()?,
        summary: fields.text()?,
        storing_id: fields.text()?,
        bytes: usize::try_from(fields.number()?).map_err(|_| unexpected())?,
        body: String::new(),
    })
}

fn owner(kind: DefinitionKind, name: &str, version: &str) -> String {
    format!("d/{}/{name}/{version}", kind.number())
}
