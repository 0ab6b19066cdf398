#![doc = include_str!("../README.md")]

mod builder;
mod field_ids;
mod number;
mod object;
pub mod read;
mod types;
mod write;

/// Types of columns, as [`TableWriter::schema`] returns them.
pub use arrow_schema;
pub use field_ids::{field_id, has_same_columns};
pub use types::ColumnTypes;
pub use write::{BATCH_BYTES, BATCH_ROWS, TableFormat, TableOptions, TableWriter, Times};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use std::fmt;

/// The key of the metadata with the text of the query.
pub const AQL: &str = "aqlite.aql";
/// The key of the metadata of a field with the path of its column, as the query has it.
pub const PATH: &str = "aqlite.path";
/// The key of the metadata of a field with the class of its objects.
pub const CLASS: &str = "aqlite.class";
/// The key of the metadata of a field of texts that are more than texts: [`JSON`] or [`NUMBER`].
pub const CONTENT: &str = "aqlite.content";
/// The content of a field whose texts are JSON.
pub const JSON: &str = "json";
/// The content of a field whose texts are numbers with more digits than a numeric type holds.
pub const NUMBER: &str = "number";
/// The key of the metadata of a field with the largest number of digits behind the point.
pub const DECIMALS: &str = "aqlite.decimals";
/// The key of the metadata of a field that repeats the times of another field, which it names, as
/// they were sent.
pub const TEXT_OF: &str = "aqlite.text_of";

/// An error of writing or reading a table: a broken invariant, or bytes of another format.
#[derive(Debug)]
pub struct TableError(String);

impl TableError {
    fn new(message: impl Into<String>) -> TableError {
        TableError(message.into())
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for TableError {}

impl From<ArrowError> for TableError {
    fn from(error: ArrowError) -> TableError {
        TableError(error.to_string())
    }
}

impl From<ParquetError> for TableError {
    fn from(error: ParquetError) -> TableError {
        TableError(error.to_string())
    }
}
