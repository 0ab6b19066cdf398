//! Writing tables: batches of rows to a stream of Arrow, or to the row groups of a Parquet file.

use crate::builder::ColumnBuilder;
use crate::field_ids::numbered;
use crate::types::{ColumnTypes, fields};
use crate::{AQL, TableError};
use aqlite_engine::answer::{Cell, ResultSet, Row};
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::sync::Arc;

/// The most rows of a batch.
pub const BATCH_ROWS: usize = 8_192;

/// The bytes of texts after which a batch ends. Its arrays have offsets of 32 bits, and its memory is
/// bounded.
pub const BATCH_BYTES: usize = 4 << 20;

/// The rows of a row group of Parquet, which is held in memory until it is complete.
const GROUP_ROWS: usize = 131_072;

/// The bytes of a row group of Parquet, after which it ends.
const GROUP_BYTES: usize = 32 << 20;

/// A format of tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum TableFormat {
    /// The stream format of Apache Arrow, without compression.
    #[default]
    Arrow,
    /// Apache Parquet, compressed by Snappy.
    Parquet,
}

impl TableFormat {
    /// Returns the short name: `arrow`, `parquet`. A later release keeps it.
    pub fn name(self) -> &'static str {
        match self {
            TableFormat::Arrow => "arrow",
            TableFormat::Parquet => "parquet",
        }
    }

    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            TableFormat::Arrow => "application/vnd.apache.arrow.stream",
            TableFormat::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// Returns the usual ending of file names.
    pub fn extension(self) -> &'static str {
        match self {
            TableFormat::Arrow => "arrows",
            TableFormat::Parquet => "parquet",
        }
    }
}

/// The form of columns whose values are all complete date-times with a zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Times {
    /// Points in time.
    #[default]
    Instant,
    /// Texts as they were sent.
    Text,
    /// Points in time, and a second column with the texts.
    Both,
}

impl Times {
    /// Returns the value of the parameter `times` of media types. A later release keeps it.
    pub fn name(self) -> &'static str {
        match self {
            Times::Instant => "instant",
            Times::Text => "text",
            Times::Both => "both",
        }
    }
}

/// The options of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableOptions<'o> {
    /// The format.
    pub format: TableFormat,
    /// The form of date-times.
    pub times: Times,
    /// The text of the query, for the metadata.
    pub aql: &'o str,
    /// Whether the columns have field ids of Parquet, as tables of Apache Iceberg need them.
    pub field_ids: bool,
}

/// A table that is being written.
pub struct TableWriter {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    /// The rows, and the bytes of their texts, in the present batch.
    rows: usize,
    bytes: usize,
    encoder: Encoder,
}

enum Encoder {
    Stream(Box<StreamWriter<Vec<u8>>>),
    File(Box<ArrowWriter<Vec<u8>>>),
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("TableWriter").finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Begins a table with the columns of a result, whose types were observed.
    ///
    /// # Errors
    /// If the format refuses the columns.
    pub fn new(
        result: &ResultSet,
        types: &ColumnTypes,
        options: &TableOptions<'_>,
    ) -> Result<TableWriter, TableError> {
        let schema = TableWriter::schema(result, types, options);
        let encoder = match options.format {
            TableFormat::Arrow => {
                Encoder::Stream(Box::new(StreamWriter::try_new(Vec::new(), &schema)?))
            }
            TableFormat::Parquet => {
                let properties = Some(properties(options.aql));
                let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), properties)?;
                Encoder::File(Box::new(writer))
            }
        };
        let columns = types.0.iter();
        Ok(TableWriter {
            schema,
            columns: columns
                .map(|column| ColumnBuilder::new(column, options.times))
                .collect(),
            rows: 0,
            bytes: 0,
            encoder,
        })
    }

    /// Returns the schema of the table with the columns of a result.
    pub fn schema(
        result: &ResultSet,
        types: &ColumnTypes,
        options: &TableOptions<'_>,
    ) -> SchemaRef {
        let metadata = HashMap::from([(String::from(AQL), options.aql.to_owned())]);
        let mut fields = fields(result, types, options.times);
        if options.field_ids {
            fields = numbered(fields);
        }
        Arc::new(Schema::new_with_metadata(fields, metadata))
    }

    /// Writes rows, whose values were observed. Complete batches of them are encoded.
    ///
    /// # Errors
    /// If a value does not have the type of its column.
    pub fn write<'r>(&mut self, rows: impl Iterator<Item = Row<'r>>) -> Result<(), TableError> {
        for row in rows {
            self.write_cells(row.iter())?;
        }
        Ok(())
    }

    /// Writes a row that is put together from several sources, like [`TableWriter::write`].
    ///
    /// # Errors
    /// As [`TableWriter::write`]; also if the row has not one cell for each column.
    pub fn write_cells<'c>(
        &mut self,
        cells: impl Iterator<Item = Cell<&'c str>>,
    ) -> Result<(), TableError> {
        let mut columns = self.columns.iter_mut();
        for cell in cells {
            columns.next().ok_or_else(uneven)?.append(&cell)?;
            // Only texts have sizes without a bound; the number of rows bounds other cells.
            self.bytes = self.bytes.saturating_add(cell.text_bytes());
        }
        if columns.next().is_some() {
            return Err(uneven());
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.encode()?;
        }
        Ok(())
    }

    /// Encodes the present batch.
    ///
    /// # Errors
    /// As [`TableWriter::write`].
    pub fn encode(&mut self) -> Result<(), TableError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        for column in &mut self.columns {
            arrays.extend(column.finish()?);
        }
        // Members of structs have their field ids in the schema only.
        let options = RecordBatchOptions::new()
            // A table without columns has rows too.
            .with_row_count(Some(self.rows))
            .with_match_field_names(false);
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        // The builders were emptied by `finish`, also if the encoder fails below.
        (self.rows, self.bytes) = (0, 0);
        match &mut self.encoder {
            Encoder::Stream(stream) => stream.write(&batch)?,
            Encoder::File(file) => {
                file.write(&batch)?;
                // A row group ends between batches only, so a group may exceed its bounds by one
                // batch.
                let is_full = file.in_progress_size() >= GROUP_BYTES;
                if is_full || file.in_progress_rows() >= GROUP_ROWS {
                    file.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Removes and returns the bytes that are ready.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(match &mut self.encoder {
            Encoder::Stream(stream) => stream.get_mut(),
            Encoder::File(file) => file.inner_mut(),
        })
    }

    /// Returns the bytes that this holds: those that are ready, and those of an incomplete row group.
    pub fn held_bytes(&self) -> usize {
        self.bytes
            // A stream has no incomplete part: each batch is encoded at once.
            + match &self.encoder {
                Encoder::Stream(stream) => stream.get_ref().len(),
                Encoder::File(file) => file.in_progress_size() + file.inner().len(),
            }
    }

    /// Ends the table, and returns the bytes that were not taken.
    ///
    /// # Errors
    /// As [`TableWriter::write`].
    pub fn finish(mut self) -> Result<Vec<u8>, TableError> {
        self.encode()?;
        Ok(match self.encoder {
            Encoder::Stream(stream) => stream.into_inner()?,
            Encoder::File(file) => file.into_inner()?,
        })
    }
}

/// The error for a row that has fewer or more cells than the table has columns.
fn uneven() -> TableError {
    TableError::new("a row has not one cell for each column")
}

fn properties(aql: &str) -> WriterProperties {
    let query = KeyValue::new(String::from(AQL), aql.to_owned());
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("aqlite {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![query]))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{TableRows, table};
    use aqlite_engine::answer::ResultColumn;
    use aqlite_engine::document::Number;
    use arrow_ipc::reader::StreamReader;

    const FORMATS: [TableFormat; 2] = [TableFormat::Arrow, TableFormat::Parquet];

    /// Returns a result with one column, whose cells are written as JSON.
    fn result(cells: &[&str]) -> ResultSet {
        let column = ResultColumn {
            name: String::from("x"),
            path: Some(String::from("c/x")),
        };
        ResultSet::from_rows(vec![column], cells.iter().map(|json| vec![cell(json)])).unwrap()
    }

    fn cell(json: &str) -> Cell<String> {
        match json.as_bytes()[0] {
            b'n' => Cell::Null,
            b't' | b'f' => Cell::Boolean(json == "true"),
            b'"' => Cell::Text(aqlite_rm::json::text(json).unwrap()),
            b'{' | b'[' => Cell::Json(json.to_owned()),
            _ => Cell::Number(Number::Token(json.to_owned())),
        }
    }

    fn written(result: &ResultSet, options: &TableOptions<'_>) -> Vec<u8> {
        let mut types = ColumnTypes::new(result.columns.len());
        result.rows().for_each(|row| types.observe(row));
        let mut writer = TableWriter::new(result, &types, options).unwrap();
        writer.write(result.rows()).unwrap();
        writer.finish().unwrap()
    }

    fn read_back(cells: &[&str], format: TableFormat, times: Times) -> TableRows {
        let options = TableOptions {
            format,
            times,
            aql: "SELECT c/x AS x FROM COMPOSITION c",
            field_ids: false,
        };
        table(format, written(&result(cells), &options)).unwrap()
    }

    fn data_type(cells: &[&str]) -> String {
        let bytes = written(&result(cells), &TableOptions::default());
        let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
        reader.schema().field(0).data_type().to_string()
    }

    const QUANTITY: &str = r#"{"_type":"DV_QUANTITY","magnitude":72.5,"units":"kg","precision":1}"#;
    const FLAGGED: &str = r#"{"_type":"DV_QUANTITY","magnitude":80,"units":"kg","normal_range":{"_type":"DV_INTERVAL"}}"#;
    const CODE: &str = r#"{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"local"},"code_string":"at1"}"#;

    #[test]
    fn rows_are_read_back_as_they_were_written() {
        let coded =
            format!(r#"{{"_type":"DV_CODED_TEXT","value":"a \"b\"","defining_code":{CODE}}}"#);
        let columns: [&[&str]; 12] = [
            &["null", "null"],
            &["true", "null", "false"],
            &["1", "-9223372036854775808", "null"],
            &["1", "72.5", "0.1"],
            &["9007199254740993", "0.5"],
            &["1e-400", "2"],
            &["\"a\"", "\"\"", "\"ä \\\"b\\\"\"", "null"],
            &["\"2024-02-29T12:00:00Z\"", "null"],
            &["\"2024-02-29\"", "\"2024-02\""],
            &["1", "\"a\"", "[1,2]", "null", "true"],
            &[QUANTITY, "null", FLAGGED],
            &[&coded, "null", &coded],
        ];
        for cells in columns.into_iter().chain([&[CODE, "null", CODE][..]]) {
            for format in FORMATS {
                let table = read_back(cells, format, Times::Instant);
                assert_eq!(table.aql, "SELECT c/x AS x FROM COMPOSITION c");
                let found: Vec<String> = table.rows.concat();
                let same =
                    |(found, sent): (&String, &&str)| same_number(found, sent) || found == sent;
                assert!(
                    found.iter().zip(cells).all(same),
                    "{found:?} instead of {cells:?}"
                );
                assert_eq!(found.len(), cells.len());
            }
        }
    }

    /// Returns whether both are numbers with the same digits; decimal numbers have zeros at the end.
    fn same_number(found: &str, sent: &str) -> bool {
        let is_decimal = found.contains('.') && !found.starts_with(['"', '{', '[']);
        let trimmed = found.trim_end_matches('0').trim_end_matches('.');
        is_decimal && trimmed == sent
    }

    #[test]
    fn columns_have_the_types_of_the_table_in_the_documentation() {
        let repeating = "Dictionary(Int32, Utf8)";
        for (cells, expected) in [
            (&["null"][..], "Utf8"),
            (&["true"], "Boolean"),
            (&["1"], "Int64"),
            (&["1", "1.5"], "Float64"),
            (&["9007199254740993", "0.5"], "Decimal128(38, 1)"),
            (&["1e-400"], "Utf8"),
            (&["\"a\""], "Utf8"),
            (&["\"2024-02-29T12:00:00Z\""], "Timestamp(µs, \"UTC\")"),
            (&["\"2024-02-29\""], "Date32"),
            (&["{\"_type\":\"DV_TEXT\"}", "1"], "Utf8"),
        ] {
            assert_eq!(data_type(cells), expected, "{cells:?}");
        }
        let quantity = data_type(&[QUANTITY]);
        assert!(quantity.contains("\"magnitude\": Float64"), "{quantity}");
        assert!(
            quantity.contains(&format!("\"units\": {repeating}")),
            "{quantity}"
        );
        let code = data_type(&[CODE]);
        assert!(code.contains(&format!("\"code\": {repeating}")), "{code}");
    }

    #[test]
    fn times_have_the_form_that_is_chosen() {
        let sent = "\"2024-02-29T12:00:00+01:00\"";
        for format in FORMATS {
            let cells = |times| read_back(&[sent], format, times).rows.concat();
            assert_eq!(cells(Times::Instant), ["\"2024-02-29T11:00:00Z\""]);
            assert_eq!(cells(Times::Both), ["\"2024-02-29T11:00:00Z\""]);
            assert_eq!(cells(Times::Text), [sent]);
        }
        let options = TableOptions {
            times: Times::Both,
            ..TableOptions::default()
        };
        let bytes = written(&result(&[sent]), &options);
        let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
        let schema = reader.schema();
        let names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
        assert_eq!(names, ["x", "x_text"]);
    }

    #[test]
    fn long_tables_have_several_batches_and_bounded_memory() {
        let cells: Vec<String> = (0..3 * BATCH_ROWS)
            .map(|number| QUANTITY.replace("kg", &format!("u{}", number / BATCH_ROWS)))
            .collect();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let result = result(&cells);
        for format in FORMATS {
            let mut types = ColumnTypes::new(1);
            result.rows().for_each(|row| types.observe(row));
            let options = TableOptions {
                format,
                ..TableOptions::default()
            };
            let mut writer = TableWriter::new(&result, &types, &options).unwrap();
            let mut bytes = Vec::new();
            for row in result.rows() {
                writer.write(std::iter::once(row)).unwrap();
                bytes.extend(writer.take());
                assert!(writer.held_bytes() < 4_000_000);
            }
            bytes.extend(writer.finish().unwrap());
            let table = table(format, bytes).unwrap();
            assert!(table.batches >= 3, "{} batches", table.batches);
            assert_eq!(table.rows.concat(), cells);
        }
    }

    #[test]
    fn value_that_was_not_observed_is_an_error() {
        let (observed, other) = (result(&["1"]), result(&["\"a\""]));
        let mut types = ColumnTypes::new(1);
        observed.rows().for_each(|row| types.observe(row));
        let mut writer = TableWriter::new(&observed, &types, &TableOptions::default()).unwrap();
        let error = writer.write(other.rows()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a value does not have the type of its column"
        );
    }

    #[test]
    fn row_of_another_width_is_an_error() {
        let result = result(&["1"]);
        let mut types = ColumnTypes::new(1);
        result.rows().for_each(|row| types.observe(row));
        for cells in [&[][..], &[Cell::Null, Cell::Null]] {
            let mut writer = TableWriter::new(&result, &types, &TableOptions::default()).unwrap();
            let error = writer.write_cells(cells.iter().copied()).unwrap_err();
            assert_eq!(error.to_string(), "a row has not one cell for each column");
        }
    }

    #[test]
    fn result_without_rows_is_a_table_with_its_columns() {
        for format in FORMATS {
            let table = read_back(&[], format, Times::Instant);
            assert_eq!(
                (table.columns, table.rows.len()),
                (vec![String::from("x")], 0)
            );
        }
    }
}
