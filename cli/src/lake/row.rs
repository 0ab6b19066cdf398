//! The cells of a row of a dataset, as references to the row of the view.

use super::objects::{ObjectEntry, ObjectId};
use super::pseudonym::{Pseudonyms, Replaced};
use crate::outcome::Failure;
use aqlite::aql::{Cell, Row};
use aqlite::document::Number;
use aqlite::rm::time::format_utc;
use std::borrow::Cow;
use twox_hash::XxHash64;

/// A consumer of the cells of a row.
pub type UseRow<'u> = &'u mut dyn FnMut(&[Cell<&str>]) -> Result<(), Failure>;

/// The texts of the columns that the lake adds to those of a view ([`super::columns::LAKE`]). All rows
/// of an object have the same.
pub struct LakeCells<'l> {
    ehr_id: &'l str,
    object_id: Cow<'l, str>,
    version: String,
    committed: Option<String>,
    is_deleted: bool,
    sync: String,
}

impl<'l> LakeCells<'l> {
    /// Creates the cells of the rows of an object.
    pub fn present(
        ehr_id: &'l str,
        object_id: &'l str,
        (version, committed): (u32, Option<i64>),
        sync: u64,
    ) -> LakeCells<'l> {
        LakeCells {
            ehr_id,
            object_id: Cow::Borrowed(object_id),
            version: version.to_string(),
            committed: committed.and_then(format_utc),
            is_deleted: false,
            sync: sync.to_string(),
        }
    }

    /// Creates the cells of the row that says that an object is deleted.
    pub fn deleted(
        ehr_id: &'l str,
        object_id: &ObjectId,
        entry: &ObjectEntry,
        sync: u64,
    ) -> LakeCells<'l> {
        LakeCells {
            ehr_id,
            object_id: Cow::Owned(object_id.to_string()),
            version: entry.version.to_string(),
            committed: entry.committed.and_then(format_utc),
            is_deleted: true,
            sync: sync.to_string(),
        }
    }

    fn cells(&self) -> [Cell<&str>; 6] {
        let number = |digits| Cell::Number(Number::Token(digits));
        [
            Cell::Text(self.ehr_id),
            Cell::Text(&self.object_id),
            number(self.version.as_str()),
            self.committed.as_deref().map_or(Cell::Null, Cell::Text),
            Cell::Boolean(self.is_deleted),
            number(self.sync.as_str()),
        ]
    }

    /// Passes these cells and those of a row of the view to a consumer, with pseudonyms in the place
    /// of ids. `kept` are the columns of the view that the dataset has.
    ///
    /// # Errors
    /// As the consumer.
    pub fn with_row(
        &self,
        row: Row<'_>,
        kept: &[usize],
        replaced: Option<&Replaced<'_>>,
        use_row: UseRow<'_>,
    ) -> Result<(), Failure> {
        let of_view = kept
            .iter()
            .map(|index| row.get(*index).unwrap_or(Cell::Null));
        let mut cells = Vec::with_capacity(kept.len() + self.cells().len());
        cells.extend(self.cells());
        let Some(replaced) = replaced else {
            cells.extend(of_view);
            return use_row(&cells);
        };
        let of_view: Vec<Cell<Cow<'_, str>>> = of_view.map(|cell| replaced.cell(cell)).collect();
        cells.extend(of_view.iter().map(borrowed));
        use_row(&cells)
    }

    /// Passes these cells and NULL for each column of the view to a consumer.
    ///
    /// # Errors
    /// As the consumer.
    pub fn with_nulls(&self, width: usize, use_row: UseRow<'_>) -> Result<(), Failure> {
        let mut cells = self.cells().to_vec();
        cells.resize(width, Cell::Null);
        use_row(&cells)
    }
}

/// Returns the cell with a reference to its text.
pub fn borrowed<S: AsRef<str>>(cell: &Cell<S>) -> Cell<&str> {
    match cell {
        Cell::Null => Cell::Null,
        Cell::Boolean(flag) => Cell::Boolean(*flag),
        Cell::Number(Number::Decimal(value, decimals)) => {
            Cell::Number(Number::Decimal(*value, *decimals))
        }
        Cell::Number(Number::Computed(value)) => Cell::Number(Number::Computed(*value)),
        Cell::Number(Number::Token(token)) => Cell::Number(Number::Token(token.as_ref())),
        Cell::Text(text) => Cell::Text(text.as_ref()),
        Cell::Json(json) => Cell::Json(json.as_ref()),
    }
}

/// Digests of rows. The buffers are used again for each row.
#[derive(Default)]
pub struct Digest {
    bytes: Vec<u8>,
    number: String,
}

impl Digest {
    /// Returns the digest of the first cells of a row, as the data have them: a new pseudonym does not
    /// change it. In a lake with pseudonyms it depends on their key. Equal values have the same digest,
    /// whatever form the data hold them in.
    pub fn of(&mut self, row: Row<'_>, cells: usize, key: Option<&Pseudonyms>) -> u64 {
        self.bytes.clear();
        if key.is_some() {
            // The hash of a row is never that of an id.
            self.bytes.extend_from_slice(b"row\0");
        }
        row.iter().take(cells).for_each(|cell| self.add(cell));
        match key {
            Some(key) => key.digest(&self.bytes),
            None => XxHash64::oneshot(0, &self.bytes),
        }
    }

    fn add(&mut self, cell: Cell<&str>) {
        match cell {
            Cell::Null => self.bytes.push(b'n'),
            Cell::Boolean(flag) => self.bytes.push(if flag { b't' } else { b'f' }),
            Cell::Number(number) => {
                // The digits as written: 1.0 and 1.00 are different values of a dataset.
                self.number.clear();
                number.write(&mut self.number);
                add(&mut self.bytes, b'0', &self.number);
            }
            Cell::Text(text) => add(&mut self.bytes, b'"', text),
            Cell::Json(json) => add(&mut self.bytes, b'{', json),
        }
    }
}

/// Appends a text with its kind and its length, so that no two rows have the same bytes.
fn add(bytes: &mut Vec<u8>, kind: u8, text: &str) {
    bytes.push(kind);
    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}
