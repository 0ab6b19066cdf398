//! Templates, stored queries, guides and value sets.

use super::chunked::{ChunkedText, joined_chunks};
use super::read::{EHR, ehr_of};
use super::value::{Fields, Row, Sql, SqlError, Statement, unexpected};
use super::{SqlRepository, next_revision};
use crate::store::by_name;
use crate::store::repository::{Definition, DefinitionKind, Ehr, StoreError};
use aqlite_rm::order;

/// The bytes of the body of a row `definition`.
///
/// Releases before the column `bytes` left it NULL. Only then is the body counted, by a reference
/// to the row of its own: the index `definition_list` covers everything else.
macro_rules! bytes {
    () => {
        "coalesce(bytes, (SELECT octet_length(d.body) + coalesce((SELECT sum(octet_length(c.body)) FROM chunk c
           WHERE c.owner = 'd/' || d.kind || '/' || d.name || '/' || d.version), 0) FROM definition d WHERE d.id = definition.id))"
    };
}

/// Columns that [`head`] reads.
macro_rules! head {
    () => {
        concat!(
            "name, version, format, created, summary, storing_id, ",
            bytes!()
        )
    };
}

const LIST: &str = concat!(
    "SELECT ",
    head!(),
    " FROM definition WHERE kind = ?1 AND substr(name, 1, length(?2)) = ?2"
);
/// The body of a row `definition`. A search in `chunk` compares whole chunks of other owners, so it
/// is made for long bodies only.
macro_rules! body {
    () => {
        "CASE WHEN bytes = octet_length(body) THEN body ELSE body || coalesce((SELECT group_concat(c.body, '') FROM
      (SELECT body FROM chunk WHERE owner = 'd/' || CAST(?1 AS INTEGER) || '/' || name || '/' || version ORDER BY part) c), '') END"
    };
}
/// Definitions by names and versions. A body of more than `?3` bytes is cut to a quarter as many
/// characters.
const LIST_WITH_BODIES: &str = concat!(
    "SELECT ",
    head!(),
    ", CASE WHEN ",
    bytes!(),
    " <= ?3 THEN ",
    body!(),
    " ELSE substr(",
    body!(),
    ", 1, CAST(?3 / 4 AS INTEGER)) END
    FROM json_each(?2) j CROSS JOIN definition
    WHERE kind = ?1 AND name = json_extract(j.value, '$[0]') AND version = json_extract(j.value, '$[1]')"
);
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
/// The chunks of a body behind the first one, if it has any.
const REST: &str = "SELECT owner, body FROM chunk WHERE owner = ?4 AND (SELECT bytes IS NULL OR bytes > octet_length(body)
      FROM definition WHERE kind = ?1 AND name = ?2 AND version = ?3) ORDER BY part";
const INSERT: &str =
    "INSERT INTO definition (kind, name, version, format, created, summary, body, storing_id, bytes)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, lower(hex(randomblob(16))), ?8)";
const DELETE: &str = "DELETE FROM definition WHERE kind = ?1 AND name = ?2 AND version = ?3
    AND (?1 <> 1 OR NOT EXISTS (SELECT 1 FROM version v WHERE v.template = ?2)) RETURNING id";
const DELETE_CHUNKS: &str = "DELETE FROM chunk WHERE owner = ?4
    AND NOT EXISTS (SELECT 1 FROM definition WHERE kind = ?1 AND name = ?2 AND version = ?3)";

impl<S: Sql> SqlRepository<S> {
    /// Stores a new definition with its chunks in one transaction.
    ///
    /// # Errors
    /// [`StoreError::DefinitionExists`] if another one has the same name and version.
    pub(super) async fn write_definition(
        &self,
        kind: DefinitionKind,
        definition: Definition,
    ) -> Result<(), StoreError> {
        let owner = owner(kind, &definition.name, &definition.version);
        let bytes = definition.body.len();
        let body = ChunkedText::split(definition.body);
        let insert = Statement::new(INSERT)
            .bind(kind.number())
            .bind(definition.name)
            .bind(definition.version)
            .bind(definition.format)
            .bind(definition.created)
            .bind(definition.summary)
            .bind(body.first.as_str())
            .bind(u64::try_from(bytes).map_err(|_| unexpected())?);
        // All statements are one transaction, so no definition is ever stored without its chunks.
        let mut batch = vec![insert, next_revision()];
        batch.extend(body.insert_chunks(&owner));
        match self.sql.batch(batch).await {
            Ok(_) => Ok(()),
            // The constraint decides between two requests that store the same definition at once.
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

    pub(super) async fn list_bodies(
        &self,
        kind: DefinitionKind,
        ids: &[(&str, &str)],
        longest: usize,
    ) -> Result<Vec<Definition>, StoreError> {
        let ids = serde_json::Value::from_iter(ids.iter().map(|(name, version)| [*name, *version]));
        let bodies = Statement::new(LIST_WITH_BODIES)
            .bind(kind.number())
            .bind(ids.to_string())
            .bind(longest as u64);
        let mut found = Vec::new();
        for row in self.rows(bodies).await? {
            let mut fields = Fields::of(row);
            let head = head(&mut fields)?;
            let definition = Definition {
                body: fields.text()?,
                ..head
            };
            found.push(match definition.bytes <= longest {
                true => whole(definition)?,
                false => definition,
            });
        }
        order::sort_by(&mut found, by_name);
        Ok(found)
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
            .await?;
        Ok((ehr_of(answers.next()?)?, listed(answers.next()?)?))
    }

    pub(super) async fn read_definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<Option<Definition>, StoreError> {
        let of_definition = |sql| {
            Statement::new(sql)
                .bind(kind.number())
                .bind(name)
                .bind(version)
        };
        let owner = owner(kind, name, version);
        let rest = of_definition(REST).bind(owner.as_str());
        let mut answers = self.batch(vec![of_definition(READ), rest]).await?;
        let Some(row) = answers.next()?.into_iter().next() else {
            return Ok(None);
        };
        let mut fields = Fields::of(row);
        let head = head(&mut fields)?;
        let rest = joined_chunks(answers.next()?)?;
        let body = fields.text()? + rest.get(&owner).map_or("", String::as_str);
        whole(Definition { body, ..head }).map(Some)
    }

    /// Removes a definition with its chunks. Returns whether it existed.
    ///
    /// # Errors
    /// [`StoreError::TemplateInUse`] for a template that a stored version names.
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
        let mut answers = self
            .batch(vec![
                of_definition(DELETE),
                // The chunks are removed only if the definition is gone.
                chunks,
                of_definition(READ),
                next_revision(),
            ])
            .await?;
        let is_removed = !answers.next()?.is_empty();
        let is_left = !answers.behind(1)?.is_empty();
        // The definition is still there, so documents use the template.
        if is_left {
            return Err(StoreError::TemplateInUse);
        }
        Ok(is_removed)
    }
}

/// Returns a definition if its body has all its parts.
fn whole(definition: Definition) -> Result<Definition, StoreError> {
    if definition.body.len() == definition.bytes {
        return Ok(definition);
    }
    Err(StoreError::Corrupt {
        uid: definition.name,
        ehr_id: String::new(),
    })
}

/// Returns the definitions of rows without bodies, by name and SEMVER.
fn listed(rows: Vec<Row>) -> Result<Vec<Definition>, StoreError> {
    let mut found = rows
        .into_iter()
        .map(|row| head(&mut Fields::of(row)))
        .collect::<Result<Vec<_>, StoreError>>()?;
    order::sort_by(&mut found, by_name);
    Ok(found)
}

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
