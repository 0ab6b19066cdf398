//! Field ids of Parquet, by which tables of Apache Iceberg find columns.

use crate::CONTENT;
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

/// Returns whether two schemas have the same columns: names, types, and the content of texts. Other
/// metadata may differ.
pub fn has_same_columns(one: &Schema, other: &Schema) -> bool {
    have_same_fields(one.fields(), other.fields())
}

fn have_same_fields(one: &Fields, other: &Fields) -> bool {
    let is_same = |(one, other): (&FieldRef, &FieldRef)| {
        one.name() == other.name()
            && one.metadata().get(CONTENT) == other.metadata().get(CONTENT)
            && is_same_type(one.data_type(), other.data_type())
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

/// Returns whether two types are the same. Structs are compared by their members.
fn is_same_type(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::Struct(one), DataType::Struct(other)) => have_same_fields(one, other),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DECIMALS, JSON};
    use std::collections::HashMap;

    fn schema(data_type: DataType, metadata: Option<(&str, &str)>) -> Schema {
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let metadata: HashMap<String, String> = metadata.into_iter().collect();
        Schema::new(vec![
            Field::new("x", data_type, true).with_metadata(metadata),
        ])
    }

    #[test]
    fn texts_of_another_content_are_another_column() {
        let plain = schema(DataType::Utf8, None);
        assert!(has_same_columns(&plain, &plain));
        let json = schema(DataType::Utf8, Some((CONTENT, JSON)));
        assert!(!has_same_columns(&plain, &json));
        let [one, other] = ["1", "2"].map(|n| schema(DataType::Float64, Some((DECIMALS, n))));
        assert!(has_same_columns(&one, &other));
        let members = |of: &Schema| schema(DataType::Struct(of.fields().clone()), None);
        assert!(has_same_columns(&members(&one), &members(&other)));
        assert!(!has_same_columns(&members(&plain), &members(&json)));
    }
}
