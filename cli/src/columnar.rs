//! Rows as Arrow streams and Parquet files.

use crate::outcome::Failure;
use crate::progress::is_interrupted;
use aqlite::aql::ResultSet;
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

/// Writes the rows of a result as a table. The memory is that of a row group beside the rows.
///
/// # Errors
/// If the output cannot be written, or the user stops.
pub fn write(
    result: &ResultSet,
    options: &TableOptions<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut types = ColumnTypes::new(result.columns.len());
    result.rows().for_each(|row| types.observe(row));
    let mut writer = TableWriter::new(result, &types, options).map_err(failure)?;
    let mut rows = result.rows();
    while rows.len() > 0 {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        writer
            .write(rows.by_ref().take(BATCH_ROWS))
            .map_err(failure)?;
        out.write_all(&writer.take())?;
    }
    out.write_all(&writer.finish().map_err(failure)?)?;
    Ok(())
}

fn failure(error: TableError) -> Failure {
    Failure::Data(error.to_string())
}
