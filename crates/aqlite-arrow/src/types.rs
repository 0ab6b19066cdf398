//! The types of columns, which follow from all their values.

use crate::number::{NumberFacts, NumberType};
use crate::object::{CodedClass, DataValue};
use crate::write::Times;
use crate::{CLASS, CONTENT, DECIMALS, JSON, NUMBER, PATH, TEXT_OF};
use aqlite_engine::answer::{Cell, ResultColumn, ResultSet, Row};
use aqlite_rm::time::{CALENDAR, Parts, Temporal, TemporalKind, format_utc, from_unix_millis};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The types of the columns of a result, observed row by row.
///
/// The memory is that of a few numbers for each column. The serialized form lets a later process
/// observe more rows of the same columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnTypes(pub(crate) Vec<ColumnType>);

impl ColumnTypes {
    /// Creates the types of columns of which no value was observed.
    pub fn new(columns: usize) -> ColumnTypes {
        ColumnTypes(vec![ColumnType::Empty; columns])
    }

    /// Observes the values of a row.
    pub fn observe(&mut self, row: Row<'_>) {
        self.observe_cells(row.iter());
    }

    /// Observes the cells of a row that is put together from several sources.
    pub fn observe_cells<'c>(&mut self, cells: impl Iterator<Item = Cell<&'c str>>) {
        for (cell, column) in cells.zip(&mut self.0) {
            column.observe(&cell);
        }
    }
}

/// The type of the values of a column so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ColumnType {
    /// NULL only.
    Empty,
    Boolean,
    Number(NumberFacts),
    Text,
    /// Date-times that are complete, with a zone.
    Time,
    /// Dates that are complete, in the extended form.
    Date,
    /// Objects of class DV_QUANTITY, with facts about their magnitudes.
    Quantity(NumberFacts),
    Coded(CodedClass),
    /// Anything else, also values of several types.
    Json,
}

impl ColumnType {
    fn observe(&mut self, cell: &Cell<&str>) {
        match (&mut *self, cell) {
            (_, Cell::Null)
            // JSON accepts every value, so the type of the column is final.
            | (ColumnType::Json, _)
            | (ColumnType::Boolean, Cell::Boolean(_))
            | (ColumnType::Text, Cell::Text(_)) => {}
            (ColumnType::Number(facts), Cell::Number(number)) => facts.observe(number),
            (ColumnType::Time, Cell::Text(text)) => {
                // The rows before were texts too, so the column can still become one of texts.
                if micros_of(text).is_none() {
                    *self = ColumnType::Text;
                }
            }
            (ColumnType::Date, Cell::Text(text)) => {
                if days_of(text).is_none() {
                    *self = ColumnType::Text;
                }
            }
            // NULL before the first value does not decide the type.
            (ColumnType::Empty, cell) => *self = ColumnType::of(cell),
            (ColumnType::Quantity(_) | ColumnType::Coded(_), Cell::Json(json)) => {
                self.observe_object(json);
            }
            _ => *self = ColumnType::Json,
        }
    }

    fn observe_object(&mut self, json: &str) {
        match (&mut *self, DataValue::read(json)) {
            (ColumnType::Quantity(facts), Some(DataValue::Quantity(quantity))) => {
                facts.observe_token(quantity.magnitude);
            }
            (ColumnType::Coded(class), Some(DataValue::Coded(coded)))
                if coded.class() == *class => {}
            _ => *self = ColumnType::Json,
        }
    }

    /// Returns the type of a column with one value.
    fn of(cell: &Cell<&str>) -> ColumnType {
        match cell {
            Cell::Null => ColumnType::Empty,
            Cell::Boolean(_) => ColumnType::Boolean,
            Cell::Number(number) => {
                let mut facts = NumberFacts::default();
                facts.observe(number);
                ColumnType::Number(facts)
            }
            Cell::Text(text) if micros_of(text).is_some() => ColumnType::Time,
            Cell::Text(text) if days_of(text).is_some() => ColumnType::Date,
            Cell::Text(_) => ColumnType::Text,
            Cell::Json(json) => match DataValue::read(json) {
                Some(DataValue::Quantity(quantity)) => {
                    let mut facts = NumberFacts::default();
                    facts.observe_token(quantity.magnitude);
                    ColumnType::Quantity(facts)
                }
                Some(DataValue::Coded(coded)) => ColumnType::Coded(coded.class()),
                None => ColumnType::Json,
            },
        }
    }

    /// Returns the type of the numbers of the column, or of its magnitudes.
    pub fn numbers(&self) -> Option<NumberType> {
        match self {
            ColumnType::Number(facts) => Some(facts.number_type()),
            ColumnType::Quantity(facts) => Some(facts.real_type()),
            _ => None,
        }
    }

    /// Returns the type in Arrow. Dates and date-times have the type of texts if `times` says so.
    pub fn data_type(&self, times: Times) -> DataType {
        match self {
            ColumnType::Boolean => DataType::Boolean,
            ColumnType::Number(facts) => number_data_type(facts.number_type()),
            ColumnType::Time if times != Times::Text => instant(),
            ColumnType::Date if times != Times::Text => DataType::Date32,
            ColumnType::Empty
            | ColumnType::Text
            | ColumnType::Time
            | ColumnType::Date
            | ColumnType::Json => DataType::Utf8,
            ColumnType::Quantity(facts) => DataType::Struct(quantity_fields(facts)),
            ColumnType::Coded(class) => DataType::Struct(coded_fields(*class)),
        }
    }

    fn metadata(&self) -> Option<(&'static str, String)> {
        match self {
            ColumnType::Json => Some((CONTENT, String::from(JSON))),
            ColumnType::Quantity(_) => Some((CLASS, String::from("DV_QUANTITY"))),
            ColumnType::Coded(class) => Some((CLASS, class.name().to_owned())),
            ColumnType::Number(facts) => number_metadata(facts.number_type(), facts),
            _ => None,
        }
    }
}

/// Returns the fields of a result: one for each column, and one more for each column of date-times
/// with [`Times::Both`].
pub(crate) fn fields(result: &ResultSet, types: &ColumnTypes, times: Times) -> Vec<Field> {
    let mut names = result.column_names();
    let mut fields = Vec::with_capacity(names.len());
    let columns = result.columns.iter().zip(names.clone()).zip(&types.0);
    for ((column, name), of_column) in columns {
        fields.push(field(column, &name, of_column, times));
        if *of_column == ColumnType::Time && times == Times::Both {
            let text = free_name(&format!("{name}_text"), &names);
            let metadata = HashMap::from([(String::from(TEXT_OF), name)]);
            fields.push(Field::new(&text, DataType::Utf8, true).with_metadata(metadata));
            // A later column must not get this name.
            names.push(text);
        }
    }
    fields
}

/// Returns a name that is not among `names`: with a number behind it if it is.
fn free_name(name: &str, names: &[String]) -> String {
    let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|name| !names.contains(name))
        .unwrap_or_default()
}

fn field(column: &ResultColumn, name: &str, of_column: &ColumnType, times: Times) -> Field {
    let path = column.path.iter().map(|path| (PATH, path.clone()));
    let metadata = path.chain(of_column.metadata());
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
    Field::new(name, of_column.data_type(times), true)
        .with_metadata(metadata.collect::<HashMap<_, _>>())
}

fn number_data_type(number_type: NumberType) -> DataType {
    match number_type {
        NumberType::Integer => DataType::Int64,
        NumberType::Double => DataType::Float64,
        NumberType::Decimal(decimals) => DataType::Decimal128(38, decimals),
        NumberType::Text => DataType::Utf8,
    }
}

fn number_metadata(number_type: NumberType, facts: &NumberFacts) -> Option<(&'static str, String)> {
    match number_type {
        NumberType::Double => Some((DECIMALS, facts.decimals().to_string())),
        NumberType::Text => Some((CONTENT, String::from(NUMBER))),
        NumberType::Integer | NumberType::Decimal(_) => None,
    }
}

/// The type of a point in time: microseconds since 1970 in UTC.
pub(crate) fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The type of texts that repeat.
fn repeating() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn quantity_fields(facts: &NumberFacts) -> Fields {
    let number_type = facts.real_type();
    let magnitude = Field::new("magnitude", number_data_type(number_type), true);
    let metadata = number_metadata(number_type, facts);
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
    Fields::from(vec![
        magnitude.with_metadata(metadata.into_iter().collect::<HashMap<_, _>>()),
        Field::new("units", repeating(), true),
        Field::new("precision", DataType::Int64, true),
        other(),
    ])
}

fn coded_fields(class: CodedClass) -> Fields {
    let named = |name: &str| Field::new(name, repeating(), true);
    let mut fields = vec![named("code"), named("terminology"), other()];
    if class == CodedClass::CodedText {
        // Readers see the text first, as in the object.
        fields.insert(0, named("value"));
    }
    Fields::from(fields)
}

/// The field of attributes that have no other field.
fn other() -> Field {
    let metadata = HashMap::from([(String::from(CONTENT), String::from(JSON))]);
    Field::new("other", DataType::Utf8, true).with_metadata(metadata)
}

/// Returns the microseconds since 1970 of a date-time that is complete and has a zone; `None` for
/// any other text, and for a time with a finer fraction.
pub(crate) fn micros_of(text: &str) -> Option<i64> {
    // Most texts are no date-times, and this bound rejects them without parsing.
    if !(16..=40).contains(&text.len()) || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let parts = Parts::parse(TemporalKind::DateTime, text)?;
    let finer = parts.fraction.unwrap_or_default().finer;
    let is_complete = parts.second.is_some() && parts.zone.is_some() && finer == 0;
    let time = Temporal::parse(TemporalKind::DateTime, text).filter(|_| is_complete)?;
    // `earliest` counts from the year 1, Arrow from 1970. An offset may move the instant into the year
    // 0 or 10000 of UTC, which readers such as Python do not have.
    let is_readable = CALENDAR.contains(&time.earliest);
    is_readable.then(|| time.earliest - from_unix_millis(0))
}

/// The days from 0001-01-01 to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_162;
const MICROS_OF_DAY: i64 = 86_400_000_000;

/// Returns the days since 1970 of a complete date in the form `YYYY-MM-DD`; `None` for any other
/// text. The text follows from the number again.
pub(crate) fn days_of(text: &str) -> Option<i32> {
    let is_extended = text.len() == 10 && text.as_bytes().get(4) == Some(&b'-');
    let date = is_extended.then(|| Temporal::parse(TemporalKind::Date, text))??;
    let days = date.earliest.div_euclid(MICROS_OF_DAY) - DAYS_BEFORE_1970;
    i32::try_from(days).ok()
}

/// Returns the text of a date by its days since 1970; `None` outside the years 1 to 9999.
pub(crate) fn date_of(days: i32) -> Option<String> {
    let start = (i64::from(days) + DAYS_BEFORE_1970) * MICROS_OF_DAY;
    Some(format_utc(start)?.chars().take(10).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_of(cells: &[Cell<&str>]) -> ColumnType {
        let mut column = ColumnType::Empty;
        cells.iter().for_each(|cell| column.observe(cell));
        column
    }

    #[test]
    fn values_of_several_types_are_json() {
        let quantity = Cell::Json(r#"{"_type":"DV_QUANTITY","magnitude":1,"units":"kg"}"#);
        let coded = Cell::Json(
            r#"{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"a"},"code_string":"b"}"#,
        );
        let (text, yes) = (Cell::Text("a"), Cell::Boolean(true));
        assert_eq!(type_of(&[Cell::Null]), ColumnType::Empty);
        assert_eq!(type_of(&[Cell::Null, text, Cell::Null]), ColumnType::Text);
        assert!(matches!(
            type_of(&[quantity, quantity]),
            ColumnType::Quantity(_)
        ));
        assert_eq!(type_of(&[coded]), ColumnType::Coded(CodedClass::CodePhrase));
        for mixed in [
            [quantity, coded],
            [coded, text],
            [text, yes],
            [yes, quantity],
        ] {
            assert_eq!(type_of(&mixed), ColumnType::Json, "{mixed:?}");
        }
    }

    #[test]
    fn times_are_points_only_if_all_are_complete_with_a_zone() {
        let whole = Cell::Text("2024-02-29T12:00:00+01:00");
        assert_eq!(
            type_of(&[whole, Cell::Text("20240229T110000Z")]),
            ColumnType::Time
        );
        for partial in [
            "2024-02-29T12:00:00",
            "2024-02-29T12:00+01:00",
            "2024-02-29",
            "2024-02",
            "2024-02-29T12:00:00.0000001Z",
            "2024-02-30T12:00:00Z",
            "2024-02-29T12:00:00Z and later",
        ] {
            assert_eq!(
                type_of(&[whole, Cell::Text(partial)]),
                ColumnType::Text,
                "{partial}"
            );
            assert_eq!(
                type_of(&[Cell::Text(partial), whole]),
                ColumnType::Text,
                "{partial}"
            );
        }
    }

    #[test]
    fn dates_are_days_only_if_all_are_complete() {
        let whole = Cell::Text("2024-02-29");
        assert_eq!(type_of(&[whole, Cell::Null, whole]), ColumnType::Date);
        for other in [
            "2024-02",
            "20240229",
            "2023-02-29",
            "2024-02-29T00:00:00Z",
            "2024-2-290",
        ] {
            let other = Cell::Text(other);
            assert_eq!(type_of(&[whole, other]), ColumnType::Text, "{other:?}");
            assert_eq!(type_of(&[other, whole]), ColumnType::Text, "{other:?}");
        }
    }

    #[test]
    fn dates_count_days_from_1970() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-03-01", 11_017),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(days_of(text), Some(days), "{text}");
            assert_eq!(date_of(days).as_deref(), Some(text));
        }
    }

    #[test]
    fn times_count_microseconds_from_1970() {
        for (text, is_instant) in [
            ("0001-01-01T00:00:00Z", true),
            ("0001-01-01T00:00:00+01:00", false),
            ("9999-12-31T23:59:59.999999Z", true),
            ("9999-12-31T23:59:59-01:00", false),
        ] {
            assert_eq!(micros_of(text).is_some(), is_instant, "{text}");
        }
        assert_eq!(micros_of("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(micros_of("1970-01-01T01:00:00.5+01:00"), Some(500_000));
        assert_eq!(micros_of("1969-12-31T23:59:59.999999Z"), Some(-1));
    }

    #[test]
    fn name_of_a_text_column_is_free() {
        let names = ["a_text", "a_text_2"].map(str::to_owned);
        assert_eq!(free_name("a_text", &names), "a_text_3");
        assert_eq!(free_name("b_text", &names), "b_text");
    }
}
