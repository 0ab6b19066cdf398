//! The Parquet files of a dataset: writing rows, and writing files again without some of them.

use super::changes::SyncContext;
use super::columns::{Columns, LAKE};
use super::names;
use super::pseudonym::{Identifiers, NewIds};
use super::row::borrowed;
use super::state::{CheckedFile, DataFile};
use super::storage::Storage;
use super::tokens::{TokenFilter, Tokens};
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
    /// The tokens of its cells, if ids have pseudonyms.
    tokens: Option<Tokens>,
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
                tokens: self.context.identifiers.map(|_| Tokens::default()),
            }),
        };
        if let Some(tokens) = &mut file.tokens {
            let of_view = cells.iter().skip(LAKE.len());
            of_view.for_each(|cell| tokens.add(*cell));
        }
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
        let name = names::DATA.name(&view.name, [sync, self.written]);
        let stored = self.context.storage.write_parts(&name, file.parts)?;
        let mut stored = DataFile::new(stored, file.rows);
        if let Some(filter) = file.tokens.and_then(|mut tokens| tokens.take()) {
            let name = names::TOKENS.name(&view.name, [sync, self.written]);
            let checksum = filter.checksum();
            self.context.storage.write(&name, filter.into_bytes())?;
            stored.tokens = Some(CheckedFile { name, checksum });
        }
        self.files.push(stored);
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

/// Returns whether a file may have one of the new ids, by the filter of its tokens. A file without one
/// may.
///
/// # Errors
/// If the filter cannot be read.
pub fn may_have(storage: &Storage, file: &DataFile, ids: &NewIds<'_>) -> Result<bool, Failure> {
    let Some(CheckedFile { name, checksum }) = &file.tokens else {
        return Ok(true);
    };
    let filter = storage.read(name)?;
    let filter = filter.and_then(|bytes| TokenFilter::read(bytes, *checksum));
    Ok(filter.is_none_or(|filter| ids.any(|id| filter.may_have(id))))
}

/// Observes the types of the cells of a file whose ids get pseudonyms, and returns whether it has any.
///
/// # Errors
/// If the file cannot be read.
pub fn observe_ids(
    storage: &Storage,
    file: &DataFile,
    identifiers: &Identifiers<'_>,
    types: &mut ColumnTypes,
) -> Result<bool, Failure> {
    let replaced = identifiers.replaced();
    let mut is_found = false;
    let bytes = storage.expect(&file.name)?;
    let read = each_row(TableFormat::Parquet, bytes, &mut |row| {
        let cells = (0..).zip(row).map(|(index, cell)| match is_of_view(index) {
            true => cell_of(cell).and_then(|cell| replaced.changed(borrowed(&cell))),
            false => None,
        });
        let cells: Vec<Option<Cell<String>>> = cells.collect();
        if cells.iter().any(Option::is_some) {
            is_found = true;
            // An id may look like a date, unlike its pseudonym. NULL has no part in the types.
            let cells = cells
                .iter()
                .map(|cell| cell.as_ref().map_or(Cell::Null, borrowed));
            types.observe_cells(cells);
        }
        !is_interrupted()
    });
    read.map_err(|error| failure(&error).at(&file.name))?;
    match is_interrupted() {
        true => Err(Failure::Interrupted),
        false => Ok(is_found),
    }
}

fn failure(error: &TableError) -> Failure {
    Failure::Data(error.to_string())
}
