//! Reading tables back as rows of JSON: the inverse of writing them.
//!
//! A row has the cells of the AQL result. Numbers have the same values, and date-times that became
//! points in time are written in UTC.

use crate::object::Other;
use crate::types::date_of;
use crate::{AQL, CLASS, CONTENT, TEXT_OF, TableError, TableFormat};
use aqlite_rm::json::{members, quote_into};
use aqlite_rm::number::shortest;
use aqlite_rm::time::{format_utc, from_unix_millis};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::HashSet;

/// A table that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRows {
    /// The text of the query, from the metadata.
    pub aql: String,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The names of the columns that repeat points in time as texts.
    pub text_columns: Vec<String>,
    /// The rows, with a cell of JSON for each column.
    pub rows: Vec<Vec<String>>,
    /// The number of batches.
    pub batches: usize,
}

/// Reads a table that [`crate::TableWriter`] has written.
///
/// # Errors
/// If the bytes have another format, or a column has a type that is never written.
pub fn table(format: TableFormat, bytes: Vec<u8>) -> Result<TableRows, TableError> {
    let mut rows = Vec::new();
    let (schema, batches) = each_row(format, bytes, &mut |row| {
        rows.push(row.to_vec());
        true
    })?;
    let names = |is_wanted: &dyn Fn(&Field) -> bool| {
        let fields = schema.fields().iter().filter(|field| is_wanted(field));
        fields.map(|field| field.name().clone()).collect()
    };
    Ok(TableRows {
        text_columns: names(&|field| !is_kept(field)),
        aql: schema.metadata().get(AQL).cloned().unwrap_or_default(),
        columns: names(&is_kept),
        rows,
        batches,
    })
}

/// Reads the rows of a table one after the other, with a cell of JSON for each column, until `visit`
/// returns false. The memory is that of one batch. Returns the schema, and the number of batches.
///
/// # Errors
/// As [`table`].
pub fn each_row(
    format: TableFormat,
    bytes: Vec<u8>,
    visit: &mut dyn FnMut(&[String]) -> bool,
) -> Result<(SchemaRef, usize), TableError> {
    match format {
        TableFormat::Arrow => {
            let reader = StreamReader::try_new(bytes.as_slice(), None)?;
            visit_rows(reader.schema(), reader, visit)
        }
        TableFormat::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))?;
            visit_rows(builder.schema().clone(), builder.build()?, visit)
        }
    }
}

/// Reads the distinct texts of one column of a Parquet file, and no other column.
///
/// # Errors
/// If the bytes have another format, or the column is absent or has another type.
pub fn distinct_texts(bytes: Vec<u8>, column: &str) -> Result<HashSet<String>, TableError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), [column]);
    let mut found = HashSet::new();
    for batch in builder.with_projection(mask).build()? {
        let batch = batch?;
        let array = batch.column_by_name(column);
        let texts = array.and_then(|array| array.as_string_opt::<i32>());
        let texts =
            texts.ok_or_else(|| TableError::new(format!("no column `{column}` of texts")))?;
        for text in texts.iter().flatten() {
            // The test avoids a copy of each text that was found before.
            if !found.contains(text) {
                found.insert(text.to_owned());
            }
        }
    }
    Ok(found)
}

fn visit_rows(
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    visit: &mut dyn FnMut(&[String]) -> bool,
) -> Result<(SchemaRef, usize), TableError> {
    let mut count = 0;
    for batch in batches {
        let batch = batch?;
        count += 1;
        for row in 0..batch.num_rows() {
            let fields = schema.fields().iter().zip(batch.columns());
            let cells = fields.filter(|(field, _)| is_kept(field));
            let cells = cells.map(|(field, array)| cell(field, array.as_ref(), row));
            if !visit(&cells.collect::<Result<Vec<_>, _>>()?) {
                return Ok((schema, count));
            }
        }
    }
    Ok((schema, count))
}

/// Returns whether a column has cells of the result, and does not repeat those of another one.
fn is_kept(field: &Field) -> bool {
    !field.metadata().contains_key(TEXT_OF)
}

/// Returns a cell as JSON.
fn cell(field: &Field, array: &dyn Array, row: usize) -> Result<String, TableError> {
    if array.is_null(row) {
        return Ok(String::from("null"));
    }
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => shortest(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Timestamp(..) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            // `format_utc` counts from the year 1, Arrow from 1970.
            let time = micros.checked_add(from_unix_millis(0)).and_then(format_utc);
            format!("\"{}\"", time.ok_or_else(|| outside(field))?)
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(row);
            format!("\"{}\"", date_of(days).ok_or_else(|| outside(field))?)
        }
        DataType::Utf8 => match field.metadata().contains_key(CONTENT) {
            true => array.as_string::<i32>().value(row).to_owned(),
            false => quoted(array.as_string::<i32>().value(row)),
        },
        DataType::Dictionary(..) => {
            let texts = array
                .as_dictionary::<Int32Type>()
                .downcast_dict::<arrow_array::StringArray>();
            let texts = texts.ok_or_else(|| unknown(field))?;
            quoted(arrow_array::ArrayAccessor::value(&texts, row))
        }
        DataType::Struct(_) => object(field, array.as_struct(), row)?,
        _ => return Err(unknown(field)),
    })
}

fn unknown(field: &Field) -> TableError {
    TableError::new(format!(
        "`{}` has the type {}",
        field.name(),
        field.data_type()
    ))
}

fn outside(field: &Field) -> TableError {
    TableError::new(format!(
        "`{}` has a time outside the years 1 to 9999",
        field.name()
    ))
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    quote_into(&mut out, text);
    out
}

/// Returns a struct as the object that it was written from.
fn object(field: &Field, array: &StructArray, row: usize) -> Result<String, TableError> {
    let class = field.metadata().get(CLASS).map_or("", String::as_str);
    let mut present = Vec::new();
    for (field, array) in array.fields().iter().zip(array.columns()) {
        if !array.is_null(row) {
            present.push((field.name().as_str(), cell(field, array.as_ref(), row)?));
        }
    }
    let member = |wanted: &str| present.iter().find(|(name, _)| *name == wanted);
    let value = |wanted: &str| member(wanted).map(|(_, value)| value.as_str());
    let other = value("other").map_or(Ok(Vec::new()), members);
    let other = other.map_err(|_| unknown(field))?;
    let mut made = Other::default();
    made.add_text("_type", class);
    for (name, json) in own_members(class, &value) {
        // `other` has the complete value where a member could not represent it.
        if !other.iter().any(|(other, _)| *other == name) {
            made.add(name, &json);
        }
    }
    other.iter().for_each(|(name, json)| made.add(name, json));
    Ok(made.finish().unwrap_or_default())
}

/// Returns the attributes that have members of a struct.
fn own_members<'v>(
    class: &str,
    value: &dyn Fn(&str) -> Option<&'v str>,
) -> Vec<(&'static str, String)> {
    let named = |name: &'static str| Some((name, value(name)?.to_owned()));
    let terminology = || {
        let id = value("terminology")?;
        let id = format!(r#"{{"_type":"TERMINOLOGY_ID","value":{id}}}"#);
        Some(("terminology_id", id))
    };
    let code = || Some(("code_string", value("code")?.to_owned()));
    let all = match class {
        "DV_QUANTITY" => vec![named("magnitude"), named("units"), named("precision")],
        "CODE_PHRASE" => vec![terminology(), code()],
        _ => {
            let mut phrase = Other::default();
            phrase.add_text("_type", "CODE_PHRASE");
            let parts: Vec<_> = [terminology(), code()].into_iter().flatten().collect();
            parts.iter().for_each(|(name, json)| phrase.add(name, json));
            let phrase = phrase.finish().filter(|_| !parts.is_empty());
            vec![
                named("value"),
                phrase.map(|phrase| ("defining_code", phrase)),
            ]
        }
    };
    all.into_iter().flatten().collect()
}
