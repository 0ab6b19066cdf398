//! Field ids of Parquet, by which tables of Apache Iceberg find columns.

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

/// Returns fields with ids. The columns of the table have the first ids from 1 on, in their order.
/// The members of structs follow, struct by struct.
pub(crate) fn numbered(fields: Vec<Field>) -> Vec<Field> {
    let mut next = fields.len() + 1;
    let numbered = (1..).zip(fields).map(|(id, field)| {
        let data_type = match field.data_type() {
            DataType::Struct(members) => DataType::Struct(members_from(members, &mut next)),
            other => other.clone(),
        };
        with_id(field.with_data_type(data_type), id)
    });
    numbered.collect()
}

/// Returns the members of a struct with the ids from `next` on.
fn members_from(members: &Fields, next: &mut usize) -> Fields {
    let number = |member: &FieldRef| {
        let id = *next;
        *next += 1;
        with_id(member.as_ref().clone(), id)
    };
    members.iter().map(number).collect::<Vec<Field>>().into()
}

fn with_id(mut field: Field, id: usize) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
    field.set_metadata(metadata);
    field
}

/// Returns the id of a field; `None` if it has none.
pub fn field_id(field: &Field) -> Option<i32> {
    field
        .metadata()
        .get(PARQUET_FIELD_ID_META_KEY)?
        .parse()
        .ok()
}

/// Returns whether two schemas have the same names and types of columns. Metadata may differ.
pub fn has_same_columns(one: &Schema, other: &Schema) -> bool {
    let (one, other) = (one.fields(), other.fields());
    let is_same = |(one, other): (&FieldRef, &FieldRef)| {
        one.name() == other.name() && is_same_type(one.data_type(), other.data_type())
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

/// Returns whether two types are the same. Structs are compared with the names of their members.
fn is_same_type(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::Struct(one), DataType::Struct(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| {
                    one.name() == other.name() && is_same_type(one.data_type(), other.data_type())
                })
        }
        _ => one == other,
    }
}
