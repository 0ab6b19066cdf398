//! Rows as tables, CSV, JSON, newline-delimited JSON, Arrow and Parquet.

use crate::columnar::{self, TimesForm};
use crate::outcome::Failure;
use crate::rows::Rows;
use aqlite::aql::{Cell, CsvOptions, ResultFormat, ResultSet};
use aqlite::arrow::{ColumnTypes, TableFormat, TableOptions};
use aqlite::rm::json::quote_into;
use clap::ValueEnum;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// The format of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// A table for people
    Table,
    /// Comma-separated values, safe for spreadsheets
    Csv,
    /// One object with columns and rows
    Json,
    /// One object on each line
    Ndjson,
    /// A stream of Apache Arrow
    Arrow,
    /// A file of Apache Parquet
    Parquet,
}

/// The form in which a result is written.
#[derive(Clone, Copy, Debug)]
pub struct OutputForm<'o> {
    /// The format.
    pub format: Format,
    /// The form of date-times in Arrow and Parquet.
    pub times: TimesForm,
    /// The text of the query, which Arrow and Parquet contain.
    pub aql: &'o str,
}

impl Format {
    /// Returns the format if none is chosen: by the ending of the file, a table on a terminal, CSV
    /// in a pipe.
    pub fn or_default(chosen: Option<Format>, file: Option<&Path>) -> Format {
        let ending = || file?.extension()?.to_str();
        match (chosen, file, ending()) {
            (Some(format), ..) => format,
            (None, _, Some("json")) => Format::Json,
            (None, _, Some("ndjson" | "jsonl")) => Format::Ndjson,
            (None, _, Some("arrow" | "arrows")) => Format::Arrow,
            (None, _, Some("parquet")) => Format::Parquet,
            (None, None, _) if std::io::stdout().is_terminal() => Format::Table,
            _ => Format::Csv,
        }
    }

    /// Returns whether rows are written part by part. The columns of CSV, and the widths of a table,
    /// depend on all rows.
    pub fn has_parts(self) -> bool {
        matches!(self, Format::Json | Format::Ndjson) || self.table().is_some()
    }

    /// Returns the format of tables that this is; `None` for the formats of texts.
    pub fn table(self) -> Option<TableFormat> {
        match self {
            Format::Arrow => Some(TableFormat::Arrow),
            Format::Parquet => Some(TableFormat::Parquet),
            Format::Table | Format::Csv | Format::Json | Format::Ndjson => None,
        }
    }

    /// Checks that the format can be written to a file, or else to the standard output.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a binary format on a terminal.
    pub fn check_output(self, file: Option<&Path>) -> Result<(), Failure> {
        let Some(table) = self.table() else {
            return Ok(());
        };
        if file.is_some() || !std::io::stdout().is_terminal() {
            return Ok(());
        }
        let ending = table.extension();
        Err(Failure::Usage(format!(
            "the format is binary, and the output is a terminal: name a file, as in `-o rows.{ending}`"
        )))
    }
}

/// Bytes of rows that are written together.
const PIECE: usize = 1 << 18;

/// The most characters of a cell of a table.
const CELL: usize = 200;

/// Writes the rows of a query.
///
/// # Errors
/// If the rows cannot be read, or the output cannot be written: [`Failure::Closed`] if its reader
/// has closed it.
pub fn write(rows: &Rows<'_>, form: &OutputForm<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    if form.format.table().is_some() {
        let types = columnar::types_of(rows)?;
        return write_table(rows, &types, form, out);
    }
    let mut begun = None;
    rows.each(&mut |part| match form.format {
        Format::Json => write_part(part, || ResultFormat::Json, &mut begun, out),
        Format::Ndjson => {
            let format = || ResultFormat::Ndjson(part.column_names());
            write_part(part, format, &mut begun, out)
        }
        // These formats have one part.
        Format::Csv => {
            let format = || ResultFormat::Csv(CsvOptions::default(), part.csv_columns());
            write_part(part, format, &mut begun, &mut LineFeeds::to(out))
        }
        _ => write_for_people(part, out),
    })?;
    if form.format == Format::Json {
        out.write_all(b"]}\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Writes rows, whose types were observed, in a format of tables.
///
/// # Errors
/// As [`write()`].
pub fn write_table(
    rows: &Rows<'_>,
    types: &ColumnTypes,
    form: &OutputForm<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(format) = form.format.table() {
        columnar::write(rows, types, &form.table_options(format), out)?;
    }
    out.flush()?;
    Ok(())
}

impl OutputForm<'_> {
    fn table_options(&self, format: TableFormat) -> TableOptions<'_> {
        TableOptions {
            format,
            times: self.times.into(),
            aql: self.aql,
            field_ids: false,
        }
    }
}

/// The format of rows that are being written, and the number of those that are.
type Begun = Option<(ResultFormat, usize)>;

/// Writes a part of the rows as text; before the first one the text that precedes all rows.
fn write_part(
    part: &ResultSet,
    format: impl FnOnce() -> ResultFormat,
    begun: &mut Begun,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut text = String::new();
    let (format, written) = match begun {
        Some(begun) => begun,
        None => {
            let format = format();
            if let ResultFormat::Json = format {
                text.push_str(&head(part));
            }
            format.begin(&mut text);
            begun.insert((format, 0))
        }
    };
    // The rows of a part begin without the comma that divides them from those of the part before.
    if let ResultFormat::Json = format
        && *written > 0
        && !part.is_empty()
    {
        text.push(',');
    }
    let mut next = 0;
    while next < part.len() {
        next = part.write_piece(format, next, (PIECE, usize::MAX), &mut text);
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    *written += part.len();
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// A writer of CSV that ends lines as other programs on the command line do: by a line feed, without
/// the carriage return of RFC 4180. Texts in quotes keep theirs.
struct LineFeeds<'o> {
    out: &'o mut dyn Write,
    is_quoted: bool,
}

impl LineFeeds<'_> {
    fn to(out: &mut dyn Write) -> LineFeeds<'_> {
        LineFeeds {
            out,
            is_quoted: false,
        }
    }
}

impl Write for LineFeeds<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = Vec::with_capacity(bytes.len());
        for byte in bytes {
            // A doubled quote in a text ends it and begins it again.
            self.is_quoted ^= *byte == b'"';
            if self.is_quoted || *byte != b'\r' {
                kept.push(*byte);
            }
        }
        self.out.write_all(&kept)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// Returns the text of a JSON result before its rows.
fn head(result: &ResultSet) -> String {
    let mut out = String::from("{\"columns\":[");
    for (number, column) in result.columns.iter().enumerate() {
        out.push_str(if number > 0 {
            ",{\"name\":"
        } else {
            "{\"name\":"
        });
        quote_into(&mut out, &column.name);
        if let Some(path) = &column.path {
            out.push_str(",\"path\":");
            quote_into(&mut out, path);
        }
        out.push('}');
    }
    out.push_str("],\"rows\":");
    out
}

fn write_for_people(result: &ResultSet, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(result.column_names());
    for row in result.rows() {
        table.add_row(row.iter().map(cell));
    }
    writeln!(out, "{table}")?;
    let rows = result.len();
    writeln!(out, "{rows} {}", if rows == 1 { "row" } else { "rows" })?;
    Ok(())
}

fn cell(cell: Cell<&str>) -> comfy_table::Cell {
    let mut text = String::new();
    match &cell {
        Cell::Null => {}
        Cell::Text(value) => text.push_str(value),
        other => other.write_json(&mut text),
    }
    // A control character could change the state of the terminal.
    let mut shown: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(CELL)
        .collect();
    if text.chars().nth(CELL).is_some() {
        shown.push('…');
    }
    let made = comfy_table::Cell::new(shown);
    match cell {
        Cell::Number(_) => made.set_alignment(CellAlignment::Right),
        _ => made,
    }
}
