//! Result sets: columns and rows of cells, with stored content exactly as stored.
//!
//! Cells are formatted when they are written. Until then a cell is a number, or a reference to a
//! text in the dictionary of the batch or of the result set.

use super::eval::QueryError;
use super::table::{CsvColumns, CsvOptions};
use crate::document::{Column, ColumnView, Dictionary, DictionaryTexts, MomentText, Number};
use aqlite_rm::json::quote_into;
use hashbrown::HashMap;

/// The result of a query.
#[derive(Clone, Debug, Default)]
pub struct ResultSet {
    /// The columns, in SELECT order.
    pub columns: Vec<ResultColumn>,
    result_buffer: ResultBuffer,
    /// The numbers of the rows in the result buffer, in the order of the result.
    rows: Vec<u32>,
}

/// The format in which rows of a result are written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ResultFormat {
    /// A JSON array of arrays.
    Json,
    /// One JSON object on each line, with these member names.
    Ndjson(Vec<String>),
    /// Lines of CSV.
    Csv(CsvOptions, CsvColumns),
}

impl ResultFormat {
    /// Appends the text before the rows.
    pub fn begin(&self, out: &mut String) {
        match self {
            ResultFormat::Json => out.push('['),
            ResultFormat::Ndjson(_) => {}
            ResultFormat::Csv(options, columns) => columns.write_head(*options, out),
        }
    }

    /// Appends the text behind the rows.
    pub fn end(&self, out: &mut String) {
        if let ResultFormat::Json = self {
            out.push(']');
        }
    }
}

/// A column of a result set.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// The alias, or `#` and the index from 0.
    pub name: String,
    /// The path as written, with its variable; `None` for literals, functions and aggregates.
    pub path: Option<String>,
}

/// A cell of a result set, whose text has the type `S`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<S> {
    /// NULL.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A number as stored or computed.
    Number(Number<S>),
    /// A text.
    Text(S),
    /// An object or list as canonical JSON.
    Json(S),
}

/// A row of a result set.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r> {
    held: &'r [CellRef],
    result_buffer: &'r ResultBuffer,
}

/// A cell in a result buffer: a value, or a reference to a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CellRef {
    Null,
    Boolean(bool),
    Decimal(f64, u8),
    Computed(f64),
    /// A text in the dictionary of the batch, by number.
    DictionaryText(u32),
    /// The digits of a number in the dictionary of the result buffer, by number.
    Token(u32),
    Text(u32),
    Json(u32),
}

/// Rows under construction: cells row by row, and the dictionary of their texts.
#[derive(Clone, Debug, Default)]
pub(super) struct ResultBuffer {
    width: usize,
    cells: Vec<CellRef>,
    /// The dictionary of the batch of the last rows.
    batch_texts: DictionaryTexts,
    /// The number of leading cells that do not refer to the dictionary of the batch.
    detached: usize,
    own: Dictionary,
    /// The broken invariant, if any: rows are missing or incomplete.
    broken: Option<&'static str>,
}

/// The rows of a result buffer with copies of their texts, so that another thread can read them.
pub(super) struct DetachedRows {
    cells: Vec<CellRef>,
    /// The texts, one after the other.
    text: String,
    /// The end of each text in bytes.
    ends: Vec<usize>,
}

impl DetachedRows {
    /// Returns a text by its number; `None` if there is no such text.
    fn text(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        let start = match number.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.get(start..*self.ends.get(number)?)
    }
}

impl ResultSet {
    /// Creates the result set of the rows with these numbers.
    ///
    /// # Errors
    /// [`QueryError::Broken`] if the result buffer is incomplete or lacks one of the rows.
    pub(super) fn new(
        columns: Vec<ResultColumn>,
        result_buffer: ResultBuffer,
        rows: Vec<u32>,
    ) -> Result<ResultSet, QueryError> {
        let count = result_buffer.len();
        let has_all = rows.iter().all(|row| (*row as usize) < count);
        let lacks = (!has_all).then_some("a row of the result is not in its buffer");
        match result_buffer.broken().or(lacks) {
            Some(what) => Err(QueryError::Broken(what)),
            None => Ok(ResultSet {
                columns,
                result_buffer,
                rows,
            }),
        }
    }

    /// Creates a result set from rows of another source.
    ///
    /// # Errors
    /// [`QueryError::Broken`] if a row does not have one cell for each column.
    pub fn from_rows(
        columns: Vec<ResultColumn>,
        rows: impl IntoIterator<Item = Vec<Cell<String>>>,
    ) -> Result<ResultSet, QueryError> {
        let mut buffer = ResultBuffer::new(columns.len());
        let mut numbers = Vec::new();
        for row in rows {
            let cells: Vec<CellRef> = row.iter().map(|cell| buffer.store_cell(cell)).collect();
            numbers.push(buffer.push(cells.into_iter()));
        }
        ResultSet::new(columns, buffer, numbers)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows, each with one cell for each column.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.rows.iter().map(|row| Row {
            held: self.result_buffer.row(*row),
            result_buffer: &self.result_buffer,
        })
    }

    /// Returns an estimate of the memory in use.
    pub fn footprint(&self) -> usize {
        self.result_buffer.footprint() + self.rows.capacity() * size_of::<u32>()
    }

    /// Removes all rows behind the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// Returns the bytes of the texts of a row before formatting; 0 if there is no such row.
    pub fn row_bytes(&self, number: usize) -> usize {
        let row = self.rows.get(number);
        let cells = row.map_or(&[] as &[CellRef], |row| self.result_buffer.row(*row));
        let cells = cells.iter();
        cells
            .map(|held| self.result_buffer.cell(*held).text_bytes())
            .sum()
    }

    /// Appends rows from row `from` on until `out` has at least `bytes` bytes. If it exceeds `most`
    /// bytes, the rest of a row can be missing.
    ///
    /// Returns the index of the first row that was not written, or the number of rows.
    pub fn write_piece(
        &self,
        format: &ResultFormat,
        from: usize,
        (bytes, most): (usize, usize),
        out: &mut String,
    ) -> usize {
        let rows = self.rows.get(from..).unwrap_or_default();
        for (number, row) in (from..).zip(rows) {
            let is_csv = matches!(format, ResultFormat::Csv(..));
            // A row of CSV is always written whole, so a row that does not fit is left to the
            // caller.
            let has_room = || out.len().saturating_add(self.row_bytes(number)) <= most;
            if out.len() >= bytes || (is_csv && number > from && !has_room()) {
                return number;
            }
            self.write_row(
                (format, most),
                number,
                Row {
                    held: self.result_buffer.row(*row),
                    result_buffer: &self.result_buffer,
                },
                out,
            );
        }
        self.rows.len()
    }

    fn write_row(
        &self,
        (format, most): (&ResultFormat, usize),
        number: usize,
        row: Row<'_>,
        out: &mut String,
    ) {
        match format {
            ResultFormat::Json => {
                out.push_str(if number > 0 { ",[" } else { "[" });
                for (j, cell) in row.iter().enumerate() {
                    out.push_str(if j > 0 { "," } else { "" });
                    if out.len() > most {
                        return;
                    }
                    cell.write_json(out);
                }
                out.push(']');
            }
            ResultFormat::Ndjson(names) => super::table::write_ndjson(names, row, most, out),
            ResultFormat::Csv(options, columns) => columns.write(row, *options, out),
        }
    }

    /// Appends the rows as a JSON array of arrays.
    pub fn write_rows(&self, out: &mut String) {
        // An estimate: a cell has 12 bytes.
        out.reserve(self.rows.len() * self.columns.len() * 12);
        ResultFormat::Json.begin(out);
        self.write_piece(&ResultFormat::Json, 0, (usize::MAX, usize::MAX), out);
        ResultFormat::Json.end(out);
    }
}

impl<'r> Row<'r> {
    /// Returns the cells in the order of the columns.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Cell<&'r str>> + DoubleEndedIterator {
        self.held
            .iter()
            .map(move |held| self.result_buffer.cell(*held))
    }

    /// Returns the cell of a column.
    pub fn get(self, column: usize) -> Option<Cell<&'r str>> {
        self.held
            .get(column)
            .map(|held| self.result_buffer.cell(*held))
    }
}

impl<S: AsRef<str>> Cell<S> {
    /// Creates the cell of a computed number; NULL if it is not finite.
    pub fn computed(number: f64) -> Cell<S> {
        if number.is_finite() {
            Cell::Number(Number::Computed(number))
        } else {
            Cell::Null
        }
    }

    /// Returns the cell with an owned text.
    pub fn to_owned(&self) -> Cell<String> {
        let text = |text: &S| text.as_ref().to_owned();
        match self {
            Cell::Null => Cell::Null,
            Cell::Boolean(flag) => Cell::Boolean(*flag),
            Cell::Number(Number::Decimal(value, decimals)) => {
                Cell::Number(Number::Decimal(*value, *decimals))
            }
            Cell::Number(Number::Computed(value)) => Cell::Number(Number::Computed(*value)),
            Cell::Number(Number::Token(token)) => Cell::Number(Number::Token(text(token))),
            Cell::Text(s) => Cell::Text(text(s)),
            Cell::Json(s) => Cell::Json(text(s)),
        }
    }

    /// Returns the bytes of the text.
    pub fn text_bytes(&self) -> usize {
        match self {
            Cell::Text(text) | Cell::Json(text) => text.as_ref().len(),
            _ => 0,
        }
    }

    /// Appends the cell as JSON.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Cell::Null => out.push_str("null"),
            Cell::Boolean(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Cell::Number(number) => number.write(out),
            Cell::Json(token) => out.push_str(token.as_ref()),
            Cell::Text(text) => quote_into(out, text.as_ref()),
        }
    }
}

impl ResultBuffer {
    /// Creates an empty buffer of rows with `width` cells.
    pub fn new(width: usize) -> ResultBuffer {
        ResultBuffer {
            width: width.max(1),
            ..ResultBuffer::default()
        }
    }

    /// Returns the broken invariant, if any: rows are missing or incomplete.
    pub fn broken(&self) -> Option<&'static str> {
        self.broken
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        // A default buffer has no columns and no rows.
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    /// Returns an estimate of the allocated bytes.
    pub fn footprint(&self) -> usize {
        self.cells.capacity() * size_of::<CellRef>() + self.own.size()
    }

    /// Returns an estimate of the bytes held, without the dictionary of the batch.
    pub fn bytes(&self) -> usize {
        self.cells.len() * size_of::<CellRef>() + self.own.size()
    }

    /// Returns the cells of a row; none if there is no such row.
    ///
    /// A number of a row that the buffer does not have is a broken invariant, which the callers
    /// record.
    pub fn row(&self, number: u32) -> &[CellRef] {
        let start = number as usize * self.width;
        self.cells
            .get(start..start + self.width)
            .unwrap_or_default()
    }

    /// Adds a row, which must have a cell for each column.
    pub fn push(&mut self, row: impl Iterator<Item = CellRef>) -> u32 {
        let number = self.len();
        let end = (number + 1) * self.width;
        self.cells.extend(row);
        if self.cells.len() != end {
            self.broken = Some("a row has not one cell for each column");
            // Later rows remain in their positions.
            self.cells.resize(end, CellRef::Null);
        }
        number as u32
    }

    /// Reserves memory for `rows` more rows.
    pub fn reserve(&mut self, rows: usize) {
        self.cells.reserve(rows * self.width);
    }

    /// Adds rows of NULL, which the caller fills. Returns their cells, row by row, and the
    /// dictionary for other texts.
    pub fn extend(&mut self, rows: usize) -> (&mut [CellRef], &mut Dictionary) {
        let start = self.cells.len();
        self.cells.resize(start + rows * self.width, CellRef::Null);
        // The new cells begin at `start`, so the default is never used.
        let cells = self.cells.get_mut(start..).unwrap_or_default();
        (cells, &mut self.own)
    }

    /// Returns the cells of a row, and the dictionary that they can refer to.
    pub fn row_mut(&mut self, number: u32) -> Option<(&mut [CellRef], &mut Dictionary)> {
        let start = (number as usize).checked_mul(self.width)?;
        let cells = self.cells.get_mut(start..start.checked_add(self.width)?)?;
        Some((cells, &mut self.own))
    }

    /// Switches to the dictionary of another batch. Texts of the previous dictionary are copied.
    pub fn switch_batch(&mut self, texts: &DictionaryTexts) {
        // Many cells can refer to one text of megabytes, which is hashed once.
        let mut known = HashMap::new();
        // `detached` is at most the number of cells, so the default is never used.
        for held in self.cells.get_mut(self.detached..).unwrap_or_default() {
            if let CellRef::DictionaryText(id) = *held {
                let own = known
                    .entry(id)
                    .or_insert_with(|| self.own.number_of(self.batch_texts.text(id)));
                *held = CellRef::Text(*own);
            }
        }
        self.detached = self.cells.len();
        self.batch_texts = texts.clone();
    }

    /// Reads the texts that cells refer to, if the batch was opened from a checkpoint. The result
    /// is written after the batch was checked for failures, so later reads must not fail.
    pub fn fetch_texts(&self) {
        let cells = self.cells.get(self.detached..).unwrap_or_default().iter();
        self.batch_texts.fetch(cells.filter_map(|cell| match cell {
            CellRef::DictionaryText(id) => Some(*id),
            _ => None,
        }));
    }

    /// Keeps these rows only, in this order, and removes all texts that they do not refer to. All
    /// of them must be in the buffer.
    pub fn keep(&mut self, rows: impl Iterator<Item = u32>) {
        let mut kept = ResultBuffer {
            batch_texts: self.batch_texts.clone(),
            broken: self.broken,
            ..ResultBuffer::new(self.width)
        };
        let mut known = HashMap::new();
        for row in rows {
            let moved: Vec<CellRef> = self
                .row(row)
                .iter()
                .map(|held| match held {
                    // Texts of the removed rows are dropped with the old dictionary.
                    CellRef::Text(id) | CellRef::Json(id) | CellRef::Token(id) => *known
                        .entry((std::mem::discriminant(held), *id))
                        .or_insert_with(|| kept.store_cell(&self.cell(*held))),
                    _ => *held,
                })
                .collect();
            kept.push(moved.into_iter());
        }
        *self = kept;
    }

    /// Removes the rows from `start` on except for `rows`, which follow in this order. All of them
    /// must be in the buffer.
    pub fn keep_behind(&mut self, start: usize, rows: &[u32]) {
        let kept: Vec<CellRef> = rows
            .iter()
            .flat_map(|row| self.row(*row))
            .copied()
            .collect();
        if kept.len() != rows.len() * self.width {
            self.broken = Some("a row to be kept is not in the result buffer");
        }
        self.cells.truncate(start * self.width);
        self.cells.extend(kept);
        // The rows that moved can refer to the dictionary of the batch.
        self.detached = self.detached.min(start * self.width);
    }

    /// Returns the rows with copies of their texts.
    pub fn detach(mut self) -> DetachedRows {
        self.leave_batch();
        let (mut text, mut ends) = (String::with_capacity(self.own.size()), Vec::new());
        for id in 0..self.own.len() as u32 {
            text.push_str(self.own.texts().text(id));
            ends.push(text.len());
        }
        DetachedRows {
            cells: self.cells,
            text,
            ends,
        }
    }

    /// Adds rows, and returns the number of the first of them.
    pub fn append(&mut self, rows: DetachedRows) -> u32 {
        self.leave_batch();
        let first = self.len() as u32;
        let mut known: Vec<Option<u32>> = vec![None; rows.ends.len()];
        let mut own_id = |id: u32| {
            let slot = known.get_mut(id as usize)?;
            if slot.is_none() {
                *slot = Some(self.own.number_of(rows.text(id)?));
            }
            *slot
        };
        let cells = rows.cells.iter().map(|held| match *held {
            CellRef::Text(id) => own_id(id).map(CellRef::Text),
            CellRef::Token(id) => own_id(id).map(CellRef::Token),
            CellRef::Json(id) => own_id(id).map(CellRef::Json),
            // The dictionary of the batch remained on the other thread.
            CellRef::DictionaryText(_) => None,
            other => Some(other),
        });
        let cells: Option<Vec<CellRef>> = cells.collect();
        match cells {
            Some(cells) => self.cells.extend(cells),
            None => self.broken = Some("a cell of a part of a result has no text"),
        }
        self.detached = self.cells.len();
        first
    }

    /// Copies the texts of the dictionary of the batch.
    fn leave_batch(&mut self) {
        self.switch_batch(&DictionaryTexts::default());
    }

    /// Stores a cell, and returns its reference.
    pub fn store_cell<S: AsRef<str>>(&mut self, cell: &Cell<S>) -> CellRef {
        CellRef::of(cell, &mut self.own)
    }

    /// Returns the cell of a reference.
    pub fn cell(&self, held: CellRef) -> Cell<&str> {
        let own = |id| self.own.texts().text(id);
        match held {
            CellRef::Null => Cell::Null,
            CellRef::Boolean(flag) => Cell::Boolean(flag),
            CellRef::Decimal(value, decimals) => Cell::Number(Number::Decimal(value, decimals)),
            CellRef::Computed(value) => Cell::Number(Number::Computed(value)),
            CellRef::DictionaryText(id) => Cell::Text(self.batch_texts.text(id)),
            CellRef::Token(id) => Cell::Number(Number::Token(own(id))),
            CellRef::Text(id) => Cell::Text(own(id)),
            CellRef::Json(id) => Cell::Json(own(id)),
        }
    }
}

impl CellRef {
    /// Creates the reference to a cell, with its text in the dictionary of the result buffer.
    pub fn of<S: AsRef<str>>(cell: &Cell<S>, own: &mut Dictionary) -> CellRef {
        let mut number_of = |text: &S| own.number_of(text.as_ref());
        match cell {
            Cell::Null => CellRef::Null,
            Cell::Boolean(flag) => CellRef::Boolean(*flag),
            Cell::Number(Number::Decimal(value, decimals)) => CellRef::Decimal(*value, *decimals),
            Cell::Number(Number::Computed(value)) => CellRef::Computed(*value),
            Cell::Number(Number::Token(token)) => CellRef::Token(number_of(token)),
            Cell::Text(text) => CellRef::Text(number_of(text)),
            Cell::Json(text) => CellRef::Json(number_of(text)),
        }
    }

    /// Creates the reference to the value of a leaf in a row of its column.
    ///
    /// Returns `None` for a row that the column does not have. Its presence bitmap, a part of a
    /// segment, may not be loaded yet: the run is then restarted (see `document::part`). Otherwise
    /// it is a broken invariant.
    pub fn from_leaf(
        column_view: ColumnView<'_>,
        row: u32,
        own: &mut Dictionary,
    ) -> Option<CellRef> {
        let at = column_view.at(row);
        match column_view.column() {
            Column::Number(numbers) => match numbers.at(at)? {
                Number::Decimal(value, decimals) => Some(CellRef::Decimal(value, decimals)),
                Number::Token(token) => Some(CellRef::Token(own.number_of(token))),
                // No stored column has computed numbers.
                Number::Computed(_) => None,
            },
            Column::Boolean(flags) => Some(CellRef::Boolean(*flags.get(at as usize)?)),
            Column::Text(ids) => Some(CellRef::DictionaryText(*ids.get(at as usize)?)),
            Column::DateTime(moments) => Some(match moments.text(at)? {
                MomentText::InDictionary(id) => CellRef::DictionaryText(id),
                MomentText::Written(time) => CellRef::Text(own.number_of(&time.text())),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CellRef, ResultBuffer, ResultSet};
    use crate::answer::QueryError;

    fn refused(result_buffer: ResultBuffer, rows: Vec<u32>) -> bool {
        let outcome = ResultSet::new(Vec::new(), result_buffer, rows);
        matches!(outcome, Err(QueryError::Broken(_)))
    }

    fn buffer(rows: &[usize]) -> ResultBuffer {
        let mut buffer = ResultBuffer::new(2);
        for cells in rows {
            buffer.push((0..*cells).map(|_| CellRef::Boolean(true)));
        }
        buffer
    }

    #[test]
    fn result_with_an_incomplete_or_missing_row_is_refused() {
        assert!(!refused(buffer(&[2, 2]), vec![1, 0, 1]));
        assert!(refused(buffer(&[2, 1]), vec![0]), "a cell is missing");
        assert!(refused(buffer(&[3, 2]), vec![0]), "a cell too many");
        assert!(refused(buffer(&[2]), vec![1]), "a row is missing");
        let mut kept = buffer(&[2, 2]);
        kept.keep([0, 2].into_iter());
        assert!(refused(kept, vec![0]), "a missing row is kept");
        let mut kept = buffer(&[2, 2]);
        kept.keep_behind(1, &[2]);
        assert!(refused(kept, vec![0]), "a missing row is kept at the end");
    }
}
