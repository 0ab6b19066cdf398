//! Item tags. A write replaces the complete list of a target.

use super::value::{Fields, Row, Sql, SqlError, Statement, json_list, unexpected};
use super::{SqlRepository, next_revision};
use crate::store::repository::{ItemTag, ListPage, StoreError, TagList};
use std::collections::BTreeMap;

const CLEAR: &str =
    "DELETE FROM item_tag WHERE target = ?1 AND ehr = (SELECT id FROM ehr WHERE ehr_id = ?2)";
const ADD: &str = "INSERT INTO item_tag (target, key, path, value, ehr)
    SELECT ?1, j.value ->> 0, j.value ->> 1, j.value ->> 2, e.id FROM json_each(?3) j JOIN ehr e ON e.ehr_id = ?2";
/// Fails on the column `key`, which is not null, unless the target has exactly the expected tags
/// (`?3`, in the form of [`ADD`]).
const EXPECT: &str = "INSERT INTO item_tag (target, key, path, ehr) SELECT ?1, NULL, '', 0
    WHERE (SELECT count(*) FROM item_tag t JOIN ehr e ON e.id = t.ehr WHERE t.target = ?1 AND e.ehr_id = ?2) <> json_array_length(?3)
      OR EXISTS (SELECT 1 FROM json_each(?3) j WHERE NOT EXISTS (SELECT 1 FROM item_tag t JOIN ehr e ON e.id = t.ehr
        WHERE t.target = ?1 AND e.ehr_id = ?2 AND t.key = j.value ->> 0 AND t.path = j.value ->> 1 AND t.value IS j.value ->> 2))";
/// Fails on the column `path`, which is not null, if the EHR does not allow modification.
const ALLOW: &str = "INSERT INTO item_tag (target, key, path, ehr) SELECT ?1, '', NULL, 0
    WHERE EXISTS (SELECT 1 FROM ehr WHERE ehr_id = ?2 AND NOT is_modifiable)";
const OF_TARGET: &str =
    "SELECT t.target, t.key, t.path, t.value FROM item_tag t JOIN ehr e ON e.id = t.ehr
    WHERE e.ehr_id = ?1 AND t.target = ?2 ORDER BY t.key, t.path";
/// `?2` the target before the page, `?3` maximum rows whose sizes are read, `?4` maximum bytes. The
/// last target may have more rows than those, all of which are returned. `found` counts the targets
/// of the rows, and one more if there may be others.
const LISTS: &str = "SELECT t.target, t.key, t.path, t.value, p.found FROM (SELECT target, found FROM
      (SELECT target, size, sum(size) OVER (ORDER BY target ROWS UNBOUNDED PRECEDING) AS total,
          count(*) OVER () + (sum(rows) OVER () >= ?3) AS found FROM
        (SELECT target, count(*) AS rows, sum(octet_length(key) + octet_length(path) + coalesce(octet_length(value), 0) + 100) AS size FROM
          (SELECT t.target, t.key, t.path, t.value FROM item_tag t
           WHERE t.ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) AND t.target > ?2 ORDER BY t.target LIMIT ?3)
         GROUP BY target))
      WHERE total <= ?4 OR total = size) p
    CROSS JOIN item_tag t ON t.target = p.target WHERE t.ehr = (SELECT id FROM ehr WHERE ehr_id = ?1) ORDER BY t.target, t.key, t.path";

/// Maximum rows of a page, unless its last target has more.
const ROWS: u64 = 1000;
/// Maximum bytes of a page, unless its first target has more. Tags are read and written one by one,
/// so a page of [`MAX_PAGE_BYTES`](crate::store::repository::MAX_PAGE_BYTES) would let others wait.
const BYTES: u64 = 262_144;

impl<S: Sql> SqlRepository<S> {
    /// Replaces the tags of a target, if they are the `expected` ones and its EHR allows the
    /// change.
    ///
    /// # Errors
    /// See [`Repository::set_tags`](crate::store::repository::Repository::set_tags).
    pub(super) async fn write_tags(
        &self,
        ehr_id: &str,
        list: &TagList,
        expected: Option<&[ItemTag]>,
    ) -> Result<(), StoreError> {
        let guard = expected.map(|tags| {
            Statement::new(EXPECT)
                .bind(list.target.as_str())
                .bind(ehr_id)
                .bind(json_list(&cells(tags)))
        });
        let allow = Statement::new(ALLOW)
            .bind(list.target.as_str())
            .bind(ehr_id);
        // The conditions come first. A condition that fails inserts NULL into a column that must
        // not be null, which rolls the batch back.
        let batch = std::iter::once(allow)
            .chain(guard)
            .chain(replace(ehr_id, list))
            .chain([next_revision()])
            .collect();
        match self.sql.batch(batch).await {
            Ok(_) => Ok(()),
            Err(SqlError::Constraint(what)) if what == "NULL item_tag.key" => {
                Err(StoreError::TagsChanged)
            }
            Err(SqlError::Constraint(what)) if what == "NULL item_tag.path" => {
                Err(StoreError::NotModifiable)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn read_tags(
        &self,
        ehr_id: &str,
        target: &str,
    ) -> Result<Vec<ItemTag>, StoreError> {
        let rows = self
            .rows(Statement::new(OF_TARGET).bind(ehr_id).bind(target))
            .await?;
        let (lists, _) = lists_of(rows)?;
        Ok(lists.into_iter().flat_map(|list| list.tags).collect())
    }

    pub(super) async fn read_tag_lists(
        &self,
        ehr_id: &str,
        after: Option<&str>,
    ) -> Result<ListPage<TagList>, StoreError> {
        let query = Statement::new(LISTS)
            .bind(ehr_id)
            .bind(after.unwrap_or_default())
            .bind(ROWS)
            .bind(BYTES);
        let (items, found) = lists_of(self.rows(query).await?)?;
        let more = found > items.len() as u64;
        Ok(ListPage { items, more })
    }
}

/// Returns the lists of rows, and the last column of the last row, or 0 without rows.
fn lists_of(rows: Vec<Row>) -> Result<(Vec<TagList>, u64), StoreError> {
    let (mut lists, mut found) = (BTreeMap::new(), 0);
    for row in rows {
        // Only the statement of lists has the fifth column.
        let is_counted = row.len() > 4;
        let mut fields = Fields::of(row);
        let target = fields.text()?;
        let tag = tag_of(fields.text()?, fields.text()?, fields.optional_text()?);
        lists.entry(target).or_insert_with(Vec::new).push(tag);
        if is_counted {
            found = fields.number()?;
        }
    }
    Ok((in_order(lists), found))
}

/// Returns key, path and value of tags for the JSON parameter of a statement.
fn cells(tags: &[ItemTag]) -> Vec<(&String, &str, &Option<String>)> {
    tags.iter()
        .map(|t| (&t.key, t.path.as_deref().unwrap_or_default(), &t.value))
        .collect()
}

/// Returns the statements that replace the list of a target.
pub(super) fn replace(ehr_id: &str, list: &TagList) -> impl Iterator<Item = Statement> {
    let cells = cells(&list.tags);
    let clear = Statement::new(CLEAR)
        .bind(list.target.as_str())
        .bind(ehr_id);
    let add = Statement::new(ADD)
        .bind(list.target.as_str())
        .bind(ehr_id)
        .bind(json_list(&cells));
    std::iter::once(clear).chain((!cells.is_empty()).then_some(add))
}

/// Reads the lists of a version and its object from a JSON array of target, key, path and value.
pub(super) fn of_json(text: Option<&str>) -> Result<Vec<TagList>, StoreError> {
    let rows: Vec<(String, String, String, Option<String>)> = text
        .map_or(Ok(Vec::new()), serde_json::from_str)
        .map_err(|_| unexpected())?;
    let mut lists = BTreeMap::new();
    for (target, key, path, value) in rows {
        let tags = lists.entry(target).or_insert_with(Vec::new);
        tags.push(tag_of(key, path, value));
    }
    Ok(in_order(lists))
}

/// Returns a tag as stored: an empty path is that of a tag without one.
fn tag_of(key: String, path: String, value: Option<String>) -> ItemTag {
    ItemTag {
        key,
        path: Some(path).filter(|p| !p.is_empty()),
        value,
    }
}

fn in_order(lists: BTreeMap<String, Vec<ItemTag>>) -> Vec<TagList> {
    lists
        .into_iter()
        .map(|(target, tags)| TagList::new(target, tags))
        .collect()
}
