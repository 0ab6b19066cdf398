//! Rows as Arrow streams and Parquet files.

use crate::outcome::Failure;
use crate::progress;
use crate::rows::Rows;
use aqlite::arrow::{BATCH_ROWS, ColumnTypes, TableError, TableOptions, TableWriter, Times};
use clap::ValueEnum;
use std::io::Write;

/// The form of columns of complete date-times in Arrow and Parquet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum TimesForm {
    /// Points in time
    #[default]
    Instant,
    /// Texts as they were sent
    Text,
    /// Points in time, and a second column with the texts
    Both,
}

impl From<TimesForm> for Times {
    fn from(form: TimesForm) -> Times {
        match form {
            TimesForm::Instant => Times::Instant,
            TimesForm::Text => Times::Text,
            TimesForm::Both => Times::Both,
        }
    }
}

/// Returns the types of the columns, which all rows decide.
///
/// # Errors
/// If the rows cannot be read, or the user stops.
pub fn types_of(rows: &Rows<'_>) -> Result<ColumnTypes, Failure> {
    let mut types = None;
    rows.each(&mut |part| {
        progress::check()?;
        let types = types.get_or_insert_with(|| ColumnTypes::new(part.columns.len()));
        part.rows().for_each(|row| types.observe(row));
        Ok(())
    })?;
    types.ok_or_else(no_columns)
}

/// Writes rows, whose types were observed, as a table. The memory is that of a row group beside that
/// of a part of the rows.
///
/// # Errors
/// If the rows cannot be read, the output cannot be written, or the user stops.
pub fn write(
    rows: &Rows<'_>,
    types: &ColumnTypes,
    options: &TableOptions<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut begun = None;
    rows.each(&mut |part| {
        let writer = match &mut begun {
            Some(writer) => writer,
            None => begun.insert(TableWriter::new(part, types, options).map_err(failure)?),
        };
        let mut rows = part.rows();
        while rows.len() > 0 {
            progress::check()?;
            let batch = rows.by_ref().take(BATCH_ROWS);
            writer.write(batch).map_err(failure)?;
            out.write_all(&writer.take())?;
        }
        Ok(())
    })?;
    let rest = begun.ok_or_else(no_columns)?.finish().map_err(failure)?;
    out.write_all(&rest)?;
    Ok(())
}

/// The error for rows without a part, which [`Rows::each`] never has.
fn no_columns() -> Failure {
    Failure::Data(String::from("a result has no columns"))
}

fn failure(error: TableError) -> Failure {
    Failure::Data(error.to_string())
}
