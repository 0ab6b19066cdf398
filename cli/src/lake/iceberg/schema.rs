//! The schema of a table of Apache Iceberg, from that of its Parquet files.

use aqlite::arrow::arrow_schema::{DataType, FieldRef, Fields, Schema};
use aqlite::arrow::field_id;
use serde_json::{Value, json};

/// Returns the schema as metadata have it. Field ids are those of the files.
pub fn of(schema: &Schema) -> Value {
    let mut value = struct_of(schema.fields());
    if let Some(members) = value.as_object_mut() {
        members.insert(String::from("schema-id"), Value::from(0));
    }
    value
}

/// Returns the largest field id of a schema.
pub fn last_id(schema: &Value) -> i64 {
    let fields = schema.get("fields").and_then(Value::as_array);
    let ids = fields.into_iter().flatten().map(|field| {
        let own = field.get("id").and_then(Value::as_i64).unwrap_or_default();
        own.max(field.get("type").map_or(0, last_id))
    });
    ids.max().unwrap_or_default()
}

fn struct_of(fields: &Fields) -> Value {
    let fields = fields.iter().map(field).collect::<Value>();
    json!({"type": "struct", "fields": fields})
}

fn field(field: &FieldRef) -> Value {
    json!({
        "id": field_id(field).unwrap_or_default(),
        "name": field.name(),
        "required": !field.is_nullable(),
        "type": type_of(field.data_type()),
    })
}

fn type_of(data_type: &DataType) -> Value {
    match data_type {
        DataType::Boolean => json!("boolean"),
        DataType::Int64 => json!("long"),
        DataType::Float64 => json!("double"),
        DataType::Date32 => json!("date"),
        // Times are points in time, stored in UTC.
        DataType::Timestamp(..) => json!("timestamptz"),
        DataType::Decimal128(digits, decimals) => json!(format!("decimal({digits},{decimals})")),
        DataType::Struct(members) => struct_of(members),
        // Texts, also those that are dictionary-encoded.
        _ => json!("string"),
    }
}
