//! Result sets: columns and rows of cells, with stored content exactly as stored.
//!
//! Nothing is text until it is written: a cell is a number, or says where its text stands among the words of the batch or
//! among those that the result set keeps itself.

use super::table::{CsvColumns, CsvOptions};
use crate::document::{Column, Dictionary, Lane, Number, Words};
use crate::rm::json::quote_into;

/// The answer of a query.
#[derive(Clone, Debug, Default)]
pub struct ResultSet {
    /// The columns, in SELECT order.
    pub columns: Vec<ResultColumn>,
    sheet: Sheet,
    /// The rows of the sheet, in the order of the answer.
    rows: Vec<u32>,
}

/// How rows are written.
#[derive(Clone, Debug)]
pub enum Layout {
    /// A JSON array of arrays.
    Json,
    /// A JSON object a line, with these names of members.
    Ndjson(Vec<String>),
    /// Lines of CSV.
    Csv(CsvOptions, CsvColumns),
}

impl Layout {
    /// Appends what stands in front of the rows.
    pub fn begin(&self, out: &mut String) {
        match self {
            Layout::Json => out.push('['),
            Layout::Ndjson(_) => {}
            Layout::Csv(options, columns) => columns.write_head(*options, out),
        }
    }

    /// Appends what stands behind the rows.
    pub fn end(&self, out: &mut String) {
        if let Layout::Json = self {
            out.push(']');
        }
    }
}

/// A column of a result set.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// The alias, or `#<index from 0>`.
    pub name: String,
    /// The path as written, with its variable; absent for literals, functions and aggregates.
    pub path: Option<String>,
}

/// A cell of a result set, with its text as an `S`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<S> {
    /// NULL.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A number, as stored or computed.
    Number(Number<S>),
    /// A text.
    Text(S),
    /// An object or list as canonical JSON.
    Json(S),
}

/// A row of a result set.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r> {
    held: &'r [Held],
    sheet: &'r Sheet,
}

/// A cell as it is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Held {
    Null,
    Boolean(bool),
    Decimal(f64, u8),
    Computed(f64),
    /// The number of a word of the batch.
    Word(u32),
    /// The number of a text of the sheet's own.
    Token(u32),
    Text(u32),
    Json(u32),
}

/// Cells, row by row, and the texts that they name.
#[derive(Clone, Debug, Default)]
pub(super) struct Sheet {
    width: usize,
    cells: Vec<Held>,
    /// The texts of the batch that the last rows came from.
    words: Words,
    /// How many cells name none of these any more.
    detached: usize,
    own: Dictionary,
}

impl ResultSet {
    pub(super) fn new(columns: Vec<ResultColumn>, sheet: Sheet, rows: Vec<u32>) -> ResultSet {
        ResultSet { columns, sheet, rows }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, each with one cell a column.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.rows.iter().map(|row| Row { held: self.sheet.row(*row), sheet: &self.sheet })
    }

    /// Bytes that it takes of the memory of the host, about.
    pub fn footprint(&self) -> usize {
        self.sheet.footprint() + self.rows.capacity() * size_of::<u32>()
    }

    /// Keeps the first rows only.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// Appends rows in a layout, from a number on, until the text has so many bytes; gives the number of the first row that is left.
    pub fn write_piece(&self, layout: &Layout, from: usize, bytes: usize, out: &mut String) -> usize {
        let rows = self.rows.get(from..).unwrap_or_default();
        for (number, row) in (from..).zip(rows) {
            if out.len() >= bytes {
                return number;
            }
            self.write_row(layout, number, Row { held: self.sheet.row(*row), sheet: &self.sheet }, out);
        }
        self.rows.len()
    }

    fn write_row(&self, layout: &Layout, number: usize, row: Row<'_>, out: &mut String) {
        match layout {
            Layout::Json => {
                out.push_str(if number > 0 { ",[" } else { "[" });
                for (j, cell) in row.iter().enumerate() {
                    out.push_str(if j > 0 { "," } else { "" });
                    cell.write_json(out);
                }
                out.push(']');
            }
            Layout::Ndjson(names) => super::table::write_ndjson(names, row, out),
            Layout::Csv(options, columns) => columns.write(row, *options, out),
        }
    }

    /// Appends the rows as a JSON array of arrays.
    pub fn write_rows(&self, out: &mut String) {
        out.reserve(self.rows.len() * self.columns.len() * 12);
        Layout::Json.begin(out);
        self.write_piece(&Layout::Json, 0, usize::MAX, out);
        Layout::Json.end(out);
    }
}

impl<'r> Row<'r> {
    /// The cells.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Cell<&'r str>> + DoubleEndedIterator {
        self.held.iter().map(move |held| self.sheet.cell(*held))
    }

    /// The cell of a column.
    pub fn get(self, column: usize) -> Option<Cell<&'r str>> {
        self.held.get(column).map(|held| self.sheet.cell(*held))
    }
}

impl<S: AsRef<str>> Cell<S> {
    /// A computed number: NULL where there is none.
    pub fn computed(number: f64) -> Cell<S> {
        if number.is_finite() { Cell::Number(Number::Computed(number)) } else { Cell::Null }
    }

    /// The same with a text of its own.
    pub fn to_owned(&self) -> Cell<String> {
        let text = |text: &S| text.as_ref().to_owned();
        match self {
            Cell::Null => Cell::Null,
            Cell::Boolean(flag) => Cell::Boolean(*flag),
            Cell::Number(Number::Decimal(value, decimals)) => Cell::Number(Number::Decimal(*value, *decimals)),
            Cell::Number(Number::Computed(value)) => Cell::Number(Number::Computed(*value)),
            Cell::Number(Number::Token(token)) => Cell::Number(Number::Token(text(token))),
            Cell::Text(s) => Cell::Text(text(s)),
            Cell::Json(s) => Cell::Json(text(s)),
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

impl Sheet {
    /// No row yet of so many cells.
    pub fn new(width: usize) -> Sheet {
        Sheet { width: width.max(1), ..Sheet::default() }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    /// Bytes that it has room for, about.
    pub fn footprint(&self) -> usize {
        self.cells.capacity() * size_of::<Held>() + self.own.size()
    }

    /// Bytes held, about; the words of the batch are its own.
    pub fn bytes(&self) -> usize {
        self.cells.len() * size_of::<Held>() + self.own.size()
    }

    /// The cells of a row.
    pub fn row(&self, number: u32) -> &[Held] {
        let start = number as usize * self.width;
        self.cells.get(start..start + self.width).unwrap_or_default()
    }

    /// Adds a row; what is missing is NULL.
    pub fn push(&mut self, row: impl Iterator<Item = Held>) -> u32 {
        let number = self.len();
        self.cells.extend(row.take(self.width));
        self.cells.resize((number + 1) * self.width, Held::Null);
        number as u32
    }

    /// Makes room for so many rows more.
    pub fn reserve(&mut self, rows: usize) {
        self.cells.reserve(rows * self.width);
    }

    /// Adds rows of NULL, to be filled; gives their cells, row by row, and where other texts may be kept.
    pub fn extend(&mut self, rows: usize) -> (&mut [Held], &mut Dictionary) {
        let start = self.cells.len();
        self.cells.resize(start + rows * self.width, Held::Null);
        (self.cells.get_mut(start..).unwrap_or_default(), &mut self.own)
    }

    /// From now on words are those of another batch; who holds some of the last one's gets them as texts of its own.
    pub fn turn_to(&mut self, words: &Words) {
        for held in self.cells.get_mut(self.detached..).unwrap_or_default() {
            if let Held::Word(id) = held {
                *held = Held::Text(self.own.number_of(self.words.word(*id)));
            }
        }
        self.detached = self.cells.len();
        self.words = words.clone();
    }

    /// Keeps these rows only, in this order, and no text that none of them names.
    pub fn keep(&mut self, rows: impl Iterator<Item = u32>) {
        let mut kept = Sheet { words: self.words.clone(), ..Sheet::new(self.width) };
        for row in rows {
            let moved: Vec<Held> =
                self.row(row).iter().map(|held| if let Held::Word(_) = held { *held } else { kept.hold(&self.cell(*held)) }).collect();
            kept.push(moved.into_iter());
        }
        *self = kept;
    }

    /// Of the rows from this one on keeps some only, in this order.
    pub fn keep_behind(&mut self, start: usize, rows: &[u32]) {
        let kept: Vec<Held> = rows.iter().flat_map(|row| self.row(*row)).copied().collect();
        self.cells.truncate(start * self.width);
        self.cells.extend(kept);
        self.detached = self.detached.min(self.cells.len());
    }

    /// What a cell is kept as.
    pub fn hold<S: AsRef<str>>(&mut self, cell: &Cell<S>) -> Held {
        Held::of(cell, &mut self.own)
    }

    /// The cell that is kept so.
    pub fn cell(&self, held: Held) -> Cell<&str> {
        let own = |id| self.own.words().word(id);
        match held {
            Held::Null => Cell::Null,
            Held::Boolean(flag) => Cell::Boolean(flag),
            Held::Decimal(value, decimals) => Cell::Number(Number::Decimal(value, decimals)),
            Held::Computed(value) => Cell::Number(Number::Computed(value)),
            Held::Word(id) => Cell::Text(self.words.word(id)),
            Held::Token(id) => Cell::Number(Number::Token(own(id))),
            Held::Text(id) => Cell::Text(own(id)),
            Held::Json(id) => Cell::Json(own(id)),
        }
    }
}

impl Held {
    /// What a cell is kept as, its text among the sheet's own.
    pub fn of<S: AsRef<str>>(cell: &Cell<S>, own: &mut Dictionary) -> Held {
        let mut number_of = |text: &S| own.number_of(text.as_ref());
        match cell {
            Cell::Null => Held::Null,
            Cell::Boolean(flag) => Held::Boolean(*flag),
            Cell::Number(Number::Decimal(value, decimals)) => Held::Decimal(*value, *decimals),
            Cell::Number(Number::Computed(value)) => Held::Computed(*value),
            Cell::Number(Number::Token(token)) => Held::Token(number_of(token)),
            Cell::Text(text) => Held::Text(number_of(text)),
            Cell::Json(text) => Held::Json(number_of(text)),
        }
    }

    /// A slot's value in a row of its column, among the words of the batch.
    pub fn slot(lane: Lane<'_>, row: u32, own: &mut Dictionary) -> Held {
        let at = lane.at(row);
        match lane.column() {
            Column::Number(numbers) => match numbers.at(at) {
                Some(Number::Decimal(value, decimals)) => Held::Decimal(value, decimals),
                Some(Number::Token(token)) => Held::Token(own.number_of(token)),
                _ => Held::Null,
            },
            Column::Boolean(flags) => flags.get(at as usize).map_or(Held::Null, |flag| Held::Boolean(*flag)),
            column => column.ids().and_then(|ids| ids.get(at as usize)).map_or(Held::Null, |id| Held::Word(*id)),
        }
    }
}
