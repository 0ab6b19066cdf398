//! The Parquet files of a dataset: writing rows, and writing files again without some of them.

use super::columns::{Columns, LAKE};
use super::state::DataFile;
use super::storage::Storage;
use crate::outcome::Failure;
use crate::progress::{Progress, is_interrupted};
use crate::repository::cell_of;
use aqlite::aql::Cell;
use aqlite::arrow::arrow_schema::SchemaRef;
use aqlite::arrow::read::{distinct_texts, table};
use aqlite::arrow::{BATCH_ROWS, ColumnTypes, TableError, TableFormat, TableOptions, TableWriter};
use std::collections::HashSet;

/// The most rows of a data file.
const FILE_ROWS: u64 = 1_048_576;

/// The bytes after which a data file ends. It is held in memory until then.
const FILE_BYTES: usize = 134_217_728;

/// A row of a dataset.
pub type DatasetRow = Vec<Cell<String>>;

/// EHRs and objects whose rows leave every file of a dataset.
#[derive(Debug, Default)]
pub struct Removed {
    /// EHRs, with the ids that the dataset has.
    pub ehrs: HashSet<String>,
    /// Objects that were removed physically.
    pub objects: HashSet<String>,
}

impl Removed {
    /// Returns whether nothing is removed.
    pub fn is_empty(&self) -> bool {
        self.ehrs.is_empty() && self.objects.is_empty()
    }

    fn has(&self, row: &DatasetRow) -> bool {
        let is = |index: usize, ids: &HashSet<String>| match row.get(index) {
            Some(Cell::Text(id)) => ids.contains(id),
            _ => false,
        };
        is(0, &self.ehrs) || is(1, &self.objects)
    }
}

/// Writes the data files of one sync.
pub struct FileWriter<'w> {
    /// The place of the lake.
    pub storage: &'w Storage,
    /// The name of the view.
    pub view: &'w str,
    /// The text of the query, for the metadata.
    pub aql: &'w str,
    /// The columns of the dataset.
    pub columns: &'w Columns,
    /// The types of all values.
    pub types: &'w ColumnTypes,
    /// The number of the sync.
    pub sync: u64,
    /// The number of files that were written.
    pub written: u64,
    /// The progress in rows.
    pub progress: &'w Progress,
}

impl FileWriter<'_> {
    fn options(&self) -> TableOptions<'_> {
        TableOptions {
            format: TableFormat::Parquet,
            aql: self.aql,
            field_ids: true,
            ..TableOptions::default()
        }
    }

    /// Returns the schema of the files.
    ///
    /// # Errors
    /// If an invariant is broken.
    pub fn schema(&self) -> Result<SchemaRef, Failure> {
        let empty = self.columns.result(Vec::new())?;
        Ok(TableWriter::schema(&empty, self.types, &self.options()))
    }

    /// Writes rows to as many files as they need.
    ///
    /// # Errors
    /// If a file cannot be written, a value was not observed, or the user stops.
    pub fn write(
        &mut self,
        rows: impl Iterator<Item = Result<DatasetRow, Failure>>,
    ) -> Result<Vec<DataFile>, Failure> {
        let mut files = Vec::new();
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            files.push(self.write_file(&mut rows)?);
        }
        Ok(files)
    }

    fn write_file(
        &mut self,
        rows: &mut dyn Iterator<Item = Result<DatasetRow, Failure>>,
    ) -> Result<DataFile, Failure> {
        let empty = self.columns.result(Vec::new())?;
        let writer = TableWriter::new(&empty, self.types, &self.options());
        let mut writer = writer.map_err(|error| failure(&error))?;
        let (mut bytes, mut count) = (Vec::new(), 0);
        while count < FILE_ROWS && bytes.len() < FILE_BYTES {
            let batch = (&mut *rows)
                .take(BATCH_ROWS)
                .collect::<Result<Vec<_>, _>>()?;
            if batch.is_empty() {
                break;
            }
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            let batch = self.columns.result(batch)?;
            count += batch.len() as u64;
            writer
                .write(batch.rows())
                .map_err(|error| failure(&error))?;
            bytes.extend(writer.take());
            self.progress.advance(batch.len() as u64);
            self.progress.show();
        }
        bytes.extend(writer.finish().map_err(|error| failure(&error))?);
        self.written += 1;
        let name = format!(
            "{}/data/{:08}-{:04}.parquet",
            self.view, self.sync, self.written
        );
        Ok(DataFile::new(self.storage.write(&name, bytes)?, count))
    }

    /// Writes files again with the present types, without some rows.
    ///
    /// # Errors
    /// As [`FileWriter::write`]; also if a file cannot be read.
    pub fn rewrite(
        &mut self,
        files: &[DataFile],
        removed: &Removed,
    ) -> Result<Vec<DataFile>, Failure> {
        let mut written = Vec::new();
        for file in files {
            let bytes = self.storage.expect(&file.name)?;
            let table = table(TableFormat::Parquet, bytes);
            let table = table.map_err(|error| failure(&error).at(&file.name))?;
            let rows = table.rows.into_iter().map(|row| read_row(&row, &file.name));
            let is_kept = |row: &Result<DatasetRow, Failure>| match row {
                Ok(row) => !removed.has(row),
                Err(_) => true,
            };
            written.extend(self.write(rows.filter(is_kept))?);
        }
        Ok(written)
    }
}

/// Returns whether a file has rows that are removed.
///
/// # Errors
/// If it cannot be read.
pub fn holds(storage: &Storage, file: &DataFile, removed: &Removed) -> Result<bool, Failure> {
    let bytes = storage.expect(&file.name)?;
    for (column, ids) in [(LAKE[0], &removed.ehrs), (LAKE[1], &removed.objects)] {
        if ids.is_empty() {
            continue;
        }
        let found = distinct_texts(bytes.clone(), column);
        let found = found.map_err(|error| failure(&error).at(&file.name))?;
        if !found.is_disjoint(ids) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns a row that was read from a data file.
fn read_row(row: &[String], name: &str) -> Result<DatasetRow, Failure> {
    let cells = row.iter().map(|cell| cell_of(cell)).collect();
    let broken = || Failure::Data(format!("{name}: a cell is no JSON"));
    Option::<DatasetRow>::ok_or_else(cells, broken)
}

fn failure(error: &TableError) -> Failure {
    Failure::Data(error.to_string())
}
