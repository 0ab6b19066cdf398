//! Arrays of Arrow from cells, for one batch of rows.

use crate::TableError;
use crate::number::{NumberType, integer, token_of, unscaled};
use crate::object::{CodedClass, DataValue};
use crate::types::{ColumnType, days_of, instant, micros_of};
use crate::write::Times;
use aqlite_engine::answer::Cell;
use aqlite_engine::document::Number;
use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder, StringBuilder,
    StringDictionaryBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Fields};
use std::sync::Arc;

/// Texts that repeat, each of which is stored once.
type Repeating = StringDictionaryBuilder<Int32Type>;

/// The arrays of one column of a result under construction.
pub(crate) enum ColumnBuilder {
    Boolean(BooleanBuilder),
    Number(NumberBuilder),
    Text(StringBuilder),
    Time(TimestampMicrosecondBuilder, Option<StringBuilder>),
    Date(Date32Builder),
    Json(StringBuilder),
    Quantity(Box<QuantityBuilder>),
    Coded(Box<CodedBuilder>),
}

impl ColumnBuilder {
    /// Creates the builder of a column.
    pub fn new(column: &ColumnType, times: Times) -> ColumnBuilder {
        // Only columns of numbers and quantities read this; texts hold any number.
        let numbers = column.numbers().unwrap_or(NumberType::Text);
        match column {
            ColumnType::Boolean => ColumnBuilder::Boolean(BooleanBuilder::new()),
            ColumnType::Number(_) => ColumnBuilder::Number(NumberBuilder::new(numbers)),
            ColumnType::Time if times != Times::Text => {
                let instants = TimestampMicrosecondBuilder::new().with_data_type(instant());
                let texts = (times == Times::Both).then(StringBuilder::new);
                ColumnBuilder::Time(instants, texts)
            }
            ColumnType::Date if times != Times::Text => ColumnBuilder::Date(Date32Builder::new()),
            // A column of NULL only has no type of its own. Every reader knows texts.
            ColumnType::Empty | ColumnType::Text | ColumnType::Time | ColumnType::Date => {
                ColumnBuilder::Text(StringBuilder::new())
            }
            ColumnType::Json => ColumnBuilder::Json(StringBuilder::new()),
            ColumnType::Quantity(_) => {
                let fields = column.data_type(times);
                ColumnBuilder::Quantity(Box::new(QuantityBuilder::new(numbers, fields)))
            }
            ColumnType::Coded(class) => {
                let fields = column.data_type(times);
                ColumnBuilder::Coded(Box::new(CodedBuilder::new(*class, fields)))
            }
        }
    }

    /// Appends a cell.
    ///
    /// # Errors
    /// If the cell does not have the type of the column: it was not observed.
    pub fn append(&mut self, cell: &Cell<&str>) -> Result<(), TableError> {
        match (self, cell) {
            (ColumnBuilder::Boolean(flags), Cell::Boolean(flag)) => flags.append_value(*flag),
            (ColumnBuilder::Boolean(flags), Cell::Null) => flags.append_null(),
            (ColumnBuilder::Number(numbers), Cell::Number(number)) => {
                return numbers.append(Some(number));
            }
            (ColumnBuilder::Number(numbers), Cell::Null) => return numbers.append(None),
            (ColumnBuilder::Text(texts), Cell::Text(text)) => texts.append_value(text),
            (ColumnBuilder::Text(texts), Cell::Null) => texts.append_null(),
            (ColumnBuilder::Time(instants, texts), Cell::Text(text)) => {
                instants.append_value(micros_of(text).ok_or_else(unexpected)?);
                texts.iter_mut().for_each(|texts| texts.append_value(text));
            }
            (ColumnBuilder::Time(instants, texts), Cell::Null) => {
                instants.append_null();
                texts.iter_mut().for_each(StringBuilder::append_null);
            }
            (ColumnBuilder::Date(days), Cell::Text(text)) => {
                days.append_value(days_of(text).ok_or_else(unexpected)?);
            }
            (ColumnBuilder::Date(days), Cell::Null) => days.append_null(),
            (ColumnBuilder::Json(texts), Cell::Null) => texts.append_null(),
            (ColumnBuilder::Json(texts), cell) => {
                // Values of several types are one column of JSON, in which a text has its quotes.
                let mut json = String::new();
                cell.write_json(&mut json);
                texts.append_value(json);
            }
            (ColumnBuilder::Quantity(quantities), cell) => return quantities.append(cell),
            (ColumnBuilder::Coded(coded), cell) => coded.append(cell)?,
            _ => return Err(unexpected()),
        }
        Ok(())
    }

    /// Returns the arrays of the cells so far, one for each field of the column, and empties the
    /// builder.
    pub fn finish(&mut self) -> Result<Vec<ArrayRef>, TableError> {
        Ok(match self {
            ColumnBuilder::Boolean(flags) => vec![Arc::new(flags.finish())],
            ColumnBuilder::Number(numbers) => vec![numbers.finish()],
            ColumnBuilder::Text(texts) | ColumnBuilder::Json(texts) => {
                vec![Arc::new(texts.finish())]
            }
            ColumnBuilder::Time(instants, texts) => {
                let texts = texts
                    .iter_mut()
                    .map(|texts| Arc::new(texts.finish()) as ArrayRef);
                let texts: Vec<ArrayRef> = texts.collect();
                [vec![Arc::new(instants.finish()) as ArrayRef], texts].concat()
            }
            ColumnBuilder::Date(days) => vec![Arc::new(days.finish())],
            ColumnBuilder::Quantity(quantities) => vec![quantities.finish()?],
            ColumnBuilder::Coded(coded) => vec![coded.finish()?],
        })
    }
}

/// The error for a cell that was not observed before it was written.
fn unexpected() -> TableError {
    TableError::new("a value does not have the type of its column")
}

/// An array of numbers under construction.
pub(crate) enum NumberBuilder {
    Integer(Int64Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, i8),
    Text(StringBuilder),
}

impl NumberBuilder {
    fn new(number_type: NumberType) -> NumberBuilder {
        match number_type {
            NumberType::Integer => NumberBuilder::Integer(Int64Builder::new()),
            NumberType::Double => NumberBuilder::Double(Float64Builder::new()),
            NumberType::Decimal(decimals) => {
                // 38 is the largest precision of 128 bits.
                let data_type = DataType::Decimal128(38, decimals);
                let numbers = Decimal128Builder::new().with_data_type(data_type);
                NumberBuilder::Decimal(numbers, decimals)
            }
            NumberType::Text => NumberBuilder::Text(StringBuilder::new()),
        }
    }

    fn append(&mut self, number: Option<&Number<&str>>) -> Result<(), TableError> {
        match self {
            // Only a double may round. The other types fail for a number that they cannot
            // represent.
            NumberBuilder::Double(numbers) => numbers.append_option(number.map(Number::value)),
            NumberBuilder::Integer(numbers) => numbers.append_option(converted(number, integer)?),
            NumberBuilder::Decimal(numbers, decimals) => {
                let unscaled = |number: &Number<&str>| unscaled(&token_of(number), *decimals);
                numbers.append_option(converted(number, unscaled)?);
            }
            NumberBuilder::Text(texts) => texts.append_option(number.map(token_of)),
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            NumberBuilder::Integer(numbers) => Arc::new(numbers.finish()),
            NumberBuilder::Double(numbers) => Arc::new(numbers.finish()),
            NumberBuilder::Decimal(numbers, _) => Arc::new(numbers.finish()),
            NumberBuilder::Text(texts) => Arc::new(texts.finish()),
        }
    }
}

/// Converts a number, if there is one.
///
/// # Errors
/// If the number has no such value.
fn converted<T>(
    number: Option<&Number<&str>>,
    convert: impl Fn(&Number<&str>) -> Option<T>,
) -> Result<Option<T>, TableError> {
    number
        .map(|number| convert(number).ok_or_else(unexpected))
        .transpose()
}

/// The parts that all arrays of structs have: their fields, and which rows are not NULL.
struct StructRows {
    fields: Fields,
    present: NullBufferBuilder,
}

impl StructRows {
    fn new(data_type: DataType) -> StructRows {
        StructRows {
            fields: match data_type {
                // A builder of structs is only created for columns whose type is a struct.
                DataType::Struct(fields) => fields,
                _ => Fields::empty(),
            },
            present: NullBufferBuilder::new(0),
        }
    }

    fn finish(&mut self, members: Vec<ArrayRef>) -> Result<ArrayRef, TableError> {
        let present = self.present.finish();
        let made = StructArray::try_new(self.fields.clone(), members, present)?;
        Ok(Arc::new(made))
    }
}

/// An array of quantities under construction.
pub(crate) struct QuantityBuilder {
    rows: StructRows,
    magnitude: NumberBuilder,
    units: Repeating,
    precision: Int64Builder,
    other: StringBuilder,
}

impl QuantityBuilder {
    fn new(numbers: NumberType, data_type: DataType) -> QuantityBuilder {
        QuantityBuilder {
            rows: StructRows::new(data_type),
            magnitude: NumberBuilder::new(numbers),
            units: Repeating::new(),
            precision: Int64Builder::new(),
            other: StringBuilder::new(),
        }
    }

    fn append(&mut self, cell: &Cell<&str>) -> Result<(), TableError> {
        let quantity = match cell {
            Cell::Null => None,
            Cell::Json(json) => match DataValue::read(json) {
                Some(DataValue::Quantity(quantity)) => Some(quantity),
                _ => return Err(unexpected()),
            },
            _ => return Err(unexpected()),
        };
        // A NULL row has a NULL in each member too, so that all arrays have equal lengths.
        self.rows.present.append(quantity.is_some());
        let quantity = quantity.as_ref();
        let magnitude = quantity.map(|quantity| Number::Token(quantity.magnitude));
        self.magnitude.append(magnitude.as_ref())?;
        self.units
            .append_option(quantity.and_then(|quantity| quantity.units.as_deref()));
        self.precision
            .append_option(quantity.and_then(|quantity| quantity.precision));
        self.other
            .append_option(quantity.and_then(|quantity| quantity.other.as_deref()));
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef, TableError> {
        let members: Vec<ArrayRef> = vec![
            self.magnitude.finish(),
            Arc::new(self.units.finish()),
            Arc::new(self.precision.finish()),
            Arc::new(self.other.finish()),
        ];
        self.rows.finish(members)
    }
}

/// An array of coded texts under construction.
pub(crate) struct CodedBuilder {
    rows: StructRows,
    class: CodedClass,
    value: Repeating,
    code: Repeating,
    terminology: Repeating,
    other: StringBuilder,
}

impl CodedBuilder {
    fn new(class: CodedClass, data_type: DataType) -> CodedBuilder {
        CodedBuilder {
            rows: StructRows::new(data_type),
            class,
            value: Repeating::new(),
            code: Repeating::new(),
            terminology: Repeating::new(),
            other: StringBuilder::new(),
        }
    }

    fn append(&mut self, cell: &Cell<&str>) -> Result<(), TableError> {
        let coded = match cell {
            Cell::Null => None,
            Cell::Json(json) => match DataValue::read(json) {
                Some(DataValue::Coded(coded)) if coded.class() == self.class => Some(coded),
                _ => return Err(unexpected()),
            },
            _ => return Err(unexpected()),
        };
        self.rows.present.append(coded.is_some());
        let coded = coded.unwrap_or_default();
        self.value.append_option(coded.value.as_deref());
        self.code.append_option(coded.code.as_deref());
        self.terminology.append_option(coded.terminology.as_deref());
        self.other.append_option(coded.other);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef, TableError> {
        let value = self.value.finish();
        let mut members: Vec<ArrayRef> = vec![
            Arc::new(self.code.finish()),
            Arc::new(self.terminology.finish()),
            Arc::new(self.other.finish()),
        ];
        // The array of a CODE_PHRASE has NULLs only, and no field.
        debug_assert!(self.class == CodedClass::CodedText || value.null_count() == value.len());
        if self.class == CodedClass::CodedText {
            members.insert(0, Arc::new(value));
        }
        self.rows.finish(members)
    }
}
