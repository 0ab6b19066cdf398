//! The Parquet files of a dataset: writing rows, and writing files again without some of them.

use super::changes::SyncContext;
use super::columns::{Columns, LAKE};
use super::names;
use super::pseudonym::Identifiers;
use super::row::borrowed;
use super::state::DataFile;
use super::storage::Storage;
use crate::outcome::Failure;
use crate::progress::is_interrupted;
use crate::repository::cell_of;
use aqlite::aql::Cell;
use aqlite::arrow::arrow_schema::SchemaRef;
use aqlite::arrow::read::{distinct_texts, each_row};
use aqlite::arrow::{
    BATCH_ROWS, ColumnTypes, TableError, TableFormat, TableOptions, TableWriter, has_same_columns,
};
use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

/// The most rows of a data file.
const FILE_ROWS: u64 = 1_048_576;

/// The bytes after which a data file ends. It is held in memory until then.
const FILE_BYTES: usize = 33_554_432;

/// EHRs and objects whose rows leave every file of a dataset.
#[derive(Debug, Default)]
pub struct Removed {
    /// EHRs, with the ids that the dataset has.
    pub ehrs: HashSet<String>,
    /// Objects of these EHRs, and those that were removed physically.
    pub objects: HashSet<String>,
    /// The objects that were removed physically from other EHRs.
    pub absent: HashSet<String>,
}

impl Removed {
    /// Returns whether nothing is removed.
    pub fn is_empty(&self) -> bool {
        self.ehrs.is_empty() && self.objects.is_empty()
    }

    fn has(&self, row: &[Cell<&str>]) -> bool {
        let is = |index: usize, ids: &HashSet<String>| match row.get(index) {
            Some(Cell::Text(id)) => ids.contains(*id),
            _ => false,
        };
        // The first columns of each file are `ehr_id` and `object_id` (`columns::LAKE`).
        is(0, &self.ehrs) || is(1, &self.objects)
    }
}

/// Writes the data files of a sync of one view.
pub struct FileWriter<'w> {
    context: SyncContext<'w>,
    /// The columns of the dataset.
    pub columns: Rc<Columns>,
    /// The types of the next file.
    types: ColumnTypes,
    schema: SchemaRef,
    open: Option<OpenFile>,
    /// The files that were written, and their number with those that were taken.
    files: Vec<DataFile>,
    written: u64,
}

/// A file that is being written.
struct OpenFile {
    writer: TableWriter,
    /// The bytes so far, as the writer returned them, and their number.
    parts: Vec<Vec<u8>>,
    bytes: usize,
    rows: u64,
}

impl<'w> FileWriter<'w> {
    /// Creates the writer of files with these types.
    ///
    /// # Errors
    /// If an invariant is broken.
    pub fn new(
        context: &SyncContext<'w>,
        columns: Rc<Columns>,
        types: &ColumnTypes,
    ) -> Result<FileWriter<'w>, Failure> {
        let schema = schema_of(context, &columns, types)?;
        Ok(FileWriter {
            context: *context,
            columns,
            types: types.clone(),
            schema,
            open: None,
            files: Vec::new(),
            written: 0,
        })
    }

    /// Returns the schema of the files.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Lets later rows have other types. Returns false if the columns of the files are then others, so
    /// that the files so far must be written again.
    ///
    /// # Errors
    /// If the present file cannot be ended.
    pub fn renew_types(&mut self, types: &ColumnTypes) -> Result<bool, Failure> {
        if self.types == *types {
            return Ok(true);
        }
        let schema = schema_of(&self.context, &self.columns, types)?;
        if !has_same_columns(&self.schema, &schema) {
            return Ok(false);
        }
        self.types = types.clone();
        if self.schema != schema {
            // The metadata of a file are true for all its rows.
            self.end_file()?;
            self.schema = schema;
        }
        Ok(true)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// If a file cannot be written, a value has not the type of its column, or the user stops.
    pub fn write(&mut self, cells: &[Cell<&str>]) -> Result<(), Failure> {
        let file = match &mut self.open {
            Some(file) => file,
            None => self.open.insert(OpenFile {
                writer: TableWriter::new(
                    &self.columns.result()?,
                    &self.types,
                    &options(&self.context),
                )
                .map_err(|error| failure(&error))?,
                parts: Vec::new(),
                bytes: 0,
                rows: 0,
            }),
        };
        let written = file.writer.write_cells(cells.iter().copied());
        written.map_err(|error| failure(&error))?;
        file.rows += 1;
        // The writer encodes whole batches, so it has new bytes only at the end of one.
        if !file.rows.is_multiple_of(BATCH_ROWS as u64) {
            return Ok(());
        }
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let part = file.writer.take();
        if !part.is_empty() {
            file.bytes += part.len();
            file.parts.push(part);
        }
        match file.rows >= FILE_ROWS || file.bytes >= FILE_BYTES {
            true => self.end_file(),
            false => Ok(()),
        }
    }

    fn end_file(&mut self) -> Result<(), Failure> {
        let Some(mut file) = self.open.take() else {
            return Ok(());
        };
        let rest = file.writer.finish().map_err(|error| failure(&error))?;
        file.parts.push(rest);
        self.written += 1;
        let SyncContext { view, sync, .. } = self.context;
        let name = names::DATA.name(&view.name, &[sync, self.written]);
        let stored = self.context.storage.write_parts(&name, file.parts)?;
        self.files.push(DataFile::new(stored, file.rows));
        Ok(())
    }

    /// Ends the present file. Removes and returns the files that were written.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn take_files(&mut self) -> Result<Vec<DataFile>, Failure> {
        self.end_file()?;
        Ok(std::mem::take(&mut self.files))
    }

    /// Writes a file again with the present types, without some rows.
    ///
    /// # Errors
    /// As [`FileWriter::write`]; also if a file cannot be read.
    pub fn rewrite(
        &mut self,
        file: &DataFile,
        removed: &Removed,
    ) -> Result<Vec<DataFile>, Failure> {
        let bytes = self.context.storage.expect(&file.name)?;
        let mut outcome = Ok(());
        let read = each_row(TableFormat::Parquet, bytes, &mut |row| {
            outcome = self.rewrite_row(row, removed, &file.name);
            // Returning false ends the reading. The error of the row precedes that of the reader.
            outcome.is_ok()
        });
        outcome?;
        read.map_err(|error| failure(&error).at(&file.name))?;
        self.take_files()
    }

    fn rewrite_row(
        &mut self,
        row: &[String],
        removed: &Removed,
        name: &str,
    ) -> Result<(), Failure> {
        let cells: Option<Vec<Cell<String>>> = row.iter().map(|cell| cell_of(cell)).collect();
        let broken = || Failure::Data(format!("{name}: a cell is no JSON"));
        let cells = cells.ok_or_else(broken)?;
        let cells: Vec<Cell<&str>> = cells.iter().map(borrowed).collect();
        if removed.has(&cells) {
            return Ok(());
        }
        let Some(identifiers) = self.context.identifiers else {
            return self.write(&cells);
        };
        let replaced = identifiers.replaced();
        let renamed = (0..)
            .zip(&cells)
            .map(|(index, cell)| match is_of_view(index) {
                true => replaced.cell(*cell),
                false => replaced.as_is(*cell),
            });
        let renamed: Vec<Cell<Cow<'_, str>>> = renamed.collect();
        let cells: Vec<Cell<&str>> = renamed.iter().map(borrowed).collect();
        self.write(&cells)
    }
}

fn options<'o>(context: &SyncContext<'o>) -> TableOptions<'o> {
    TableOptions {
        format: TableFormat::Parquet,
        aql: &context.view.aql,
        field_ids: true,
        ..TableOptions::default()
    }
}

/// Returns the schema of files with some types.
///
/// # Errors
/// If an invariant is broken.
pub fn schema_of(
    context: &SyncContext<'_>,
    columns: &Columns,
    types: &ColumnTypes,
) -> Result<SchemaRef, Failure> {
    let empty = columns.result()?;
    Ok(TableWriter::schema(&empty, types, &options(context)))
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

/// Returns whether a column with an index is one of the view. Those of the lake precede them.
fn is_of_view(index: usize) -> bool {
    index >= LAKE.len()
}

/// Returns whether a file has a cell of the view with an id that has a pseudonym.
///
/// # Errors
/// If it cannot be read.
pub fn names_id(
    storage: &Storage,
    file: &DataFile,
    identifiers: &Identifiers<'_>,
) -> Result<bool, Failure> {
    let replaced = identifiers.replaced();
    let mut is_found = false;
    let bytes = storage.expect(&file.name)?;
    let read = each_row(TableFormat::Parquet, bytes, &mut |row| {
        let mut cells = (0..).zip(row).filter(|(index, _)| is_of_view(*index));
        is_found = cells.any(|(_, cell)| {
            let cell = cell_of(cell);
            cell.is_some_and(|cell| replaced.is_in(borrowed(&cell)))
        });
        !is_found
    });
    match is_found {
        true => Ok(true),
        false => match read {
            Ok(_) => Ok(false),
            Err(error) => Err(failure(&error).at(&file.name)),
        },
    }
}

fn failure(error: &TableError) -> Failure {
    Failure::Data(error.to_string())
}
