//! The differences between the rows of a view and its dataset.

use super::columns::Columns;
use super::files::DatasetRow;
use super::objects::{ObjectEntry, Objects};
use super::pseudonym::{Pseudonyms, Replaced};
use super::source::{Deletion, Source, ViewRows, object_and_version};
use crate::outcome::Failure;
use aqlite::aql::{Cell, Row};
use aqlite::rm::time::{Temporal, TemporalKind, format_utc};
use std::collections::HashMap;
use twox_hash::XxHash64;

/// The present rows of an object.
struct PresentObject {
    ehr: u32,
    version: u32,
    committed: Option<i64>,
    /// The sum of the hashes of its rows, which does not depend on their order.
    digest: u64,
    is_changed: bool,
}

/// The rows of a view that its dataset does not have.
pub struct Changes<'r> {
    rows: &'r ViewRows,
    columns: &'r Columns,
    sync: u64,
    /// The ids of EHRs, and what replaces ids in their rows, by the numbers of the EHRs here.
    ehrs: Vec<(String, Replaced)>,
    objects: HashMap<&'r str, PresentObject>,
    /// Objects without rows that have rows in the dataset, with the version that deletes them.
    gone: Vec<(String, ObjectEntry)>,
    /// The index before this sync.
    before: &'r Objects,
}

impl<'r> Changes<'r> {
    /// Compares the rows of a view with the index of its dataset.
    ///
    /// # Errors
    /// If a row does not name its version, or the deletions cannot be read.
    pub fn find(
        (rows, columns): (&'r ViewRows, &'r Columns),
        before: &'r Objects,
        source: &Source,
        (pseudonyms, sync): (Option<&Pseudonyms>, u64),
    ) -> Result<Changes<'r>, Failure> {
        let mut changes = Changes {
            rows,
            columns,
            sync,
            ehrs: Vec::new(),
            objects: HashMap::new(),
            gone: Vec::new(),
            before,
        };
        changes.group(source, pseudonyms)?;
        for (id, object) in &mut changes.objects {
            let known = before.get(id).and_then(|entry| entry.digest);
            object.is_changed = known != Some(object.digest);
        }
        changes.find_gone(source)?;
        Ok(changes)
    }

    /// Groups the rows by their objects.
    fn group(&mut self, source: &Source, pseudonyms: Option<&Pseudonyms>) -> Result<(), Failure> {
        let subjects = match pseudonyms {
            Some(_) => source.subjects()?,
            None => HashMap::new(),
        };
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut text = String::new();
        for row in self.rows.result.rows() {
            let [ehr_id, uid, committed] = keys(row, self.columns)?;
            let (object, version) = object_and_version(uid);
            let next = u32::try_from(self.ehrs.len()).unwrap_or(u32::MAX);
            let ehr = *numbers.entry(ehr_id).or_insert(next);
            if ehr == next {
                let replaced = pseudonyms.map(|p| p.replaced(ehr_id, subjects.get(ehr_id)));
                let shown = pseudonyms.map_or_else(|| ehr_id.to_owned(), |p| p.of_ehr(ehr_id));
                self.ehrs.push((shown, replaced.unwrap_or_default()));
            }
            text.clear();
            row.iter().take(self.columns.keys).for_each(|cell| {
                cell.write_json(&mut text);
                text.push(',');
            });
            let hash = XxHash64::oneshot(u64::from(version), text.as_bytes());
            let entry = self.objects.entry(object).or_insert_with(|| PresentObject {
                ehr,
                version,
                committed: micros_of(committed),
                digest: 0,
                is_changed: false,
            });
            entry.digest = entry.digest.wrapping_add(hash);
        }
        Ok(())
    }

    /// Finds the objects of the dataset that have no rows any more.
    fn find_gone(&mut self, source: &Source) -> Result<(), Failure> {
        let may_change = |id: &String| match &self.rows.touched {
            Some(touched) => touched.contains(id),
            None => true,
        };
        let is_gone = |(id, entry): &(&String, &ObjectEntry)| {
            entry.digest.is_some() && may_change(id) && !self.objects.contains_key(id.as_str())
        };
        let gone: Vec<(&String, &ObjectEntry)> = self.before.iter().filter(is_gone).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let deletions = source.deletions()?;
        for (id, entry) in gone {
            let mut entry = ObjectEntry {
                digest: None,
                ..*entry
            };
            if let Some(Deletion { version, committed }) = deletions.get(id) {
                entry.version = *version;
                entry.committed = micros_of(committed).or(entry.committed);
            }
            self.gone.push((id.clone(), entry));
        }
        self.gone
            .sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(())
    }

    /// Returns the number of objects with new rows.
    pub fn changed(&self) -> usize {
        self.objects
            .values()
            .filter(|object| object.is_changed)
            .count()
    }

    /// Returns the number of objects that have no rows any more.
    pub fn gone(&self) -> usize {
        self.gone.len()
    }

    /// Returns the number of rows to write.
    pub fn len(&self) -> usize {
        let new = self.rows.result.rows().filter(|row| self.is_new(*row));
        new.count() + self.gone.len()
    }

    fn is_new(&self, row: Row<'_>) -> bool {
        let keys = keys(row, self.columns);
        let object = keys.ok().map(|[_, uid, _]| object_and_version(uid).0);
        object
            .and_then(|id| self.objects.get(id))
            .is_some_and(|object| object.is_changed)
    }

    /// The rows to write, in the order of the view, and then those of deleted objects.
    pub fn rows(&self) -> impl Iterator<Item = Result<DatasetRow, Failure>> {
        let new = self.rows.result.rows().filter(|row| self.is_new(*row));
        let new = new.map(|row| self.new_row(row));
        new.chain(
            self.gone
                .iter()
                .map(|(id, entry)| Ok(self.gone_row(id, entry))),
        )
    }

    fn new_row(&self, row: Row<'_>) -> Result<DatasetRow, Failure> {
        let [_, uid, _] = keys(row, self.columns)?;
        let id = object_and_version(uid).0;
        let object = self.objects.get(id).ok_or_else(unnamed)?;
        let (ehr, replaced) = self.ehrs.get(object.ehr as usize).ok_or_else(unnamed)?;
        let mut cells = self.lake_cells(ehr, id, (object.version, object.committed), false);
        for index in &self.columns.kept {
            cells.push(replaced.cell(row.get(*index).unwrap_or(Cell::Null)));
        }
        Ok(cells)
    }

    fn gone_row(&self, id: &str, entry: &ObjectEntry) -> DatasetRow {
        let ehr = self.before.ehr_id(entry.ehr);
        let mut cells = self.lake_cells(ehr, id, (entry.version, entry.committed), true);
        cells.resize(self.columns.all.len(), Cell::Null);
        cells
    }

    fn lake_cells(
        &self,
        ehr: &str,
        object: &str,
        (version, committed): (u32, Option<i64>),
        deleted: bool,
    ) -> DatasetRow {
        let number =
            |number: u64| Cell::Number(aqlite::document::Number::Token(number.to_string()));
        let mut cells = Vec::with_capacity(self.columns.all.len());
        cells.extend([
            Cell::Text(ehr.to_owned()),
            Cell::Text(object.to_owned()),
            number(u64::from(version)),
            committed.map_or(Cell::Null, |micros| Cell::Text(format_utc(micros))),
            Cell::Boolean(deleted),
            number(self.sync),
        ]);
        cells
    }

    /// Returns the index after this sync.
    pub fn objects(&self) -> Objects {
        let mut after = self.before.clone();
        for (id, object) in self.objects.iter().filter(|(_, object)| object.is_changed) {
            let ehr = self.ehrs.get(object.ehr as usize);
            let ehr = after.ehr(ehr.map(|(id, _)| id.clone()).unwrap_or_default());
            let entry = ObjectEntry {
                ehr,
                version: object.version,
                committed: object.committed,
                digest: Some(object.digest),
            };
            after.set((*id).to_owned(), entry);
        }
        for (id, entry) in &self.gone {
            after.set(id.clone(), *entry);
        }
        after
    }
}

/// Returns the keys of a row: the id of the EHR, the uid of the version, the time of its commit.
fn keys<'r>(row: Row<'r>, columns: &Columns) -> Result<[&'r str; 3], Failure> {
    let key = |index: usize| match row.get(columns.keys + index) {
        Some(Cell::Text(text)) => Ok(text),
        Some(Cell::Null) if index == 2 => Ok(""),
        _ => Err(unnamed()),
    };
    Ok([key(0)?, key(1)?, key(2)?])
}

/// The failure for a row without a key.
fn unnamed() -> Failure {
    Failure::Data(String::from(
        "a row names no EHR or no version: the repository does not tell them",
    ))
}

/// Returns the microseconds since 0001-01-01 of a time of commit.
fn micros_of(text: &str) -> Option<i64> {
    Temporal::parse(TemporalKind::DateTime, text).map(|time| time.earliest)
}
