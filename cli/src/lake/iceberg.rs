//! Tables of Apache Iceberg (format version 2) around the data files of a dataset.
//!
//! A sync adds a manifest with its files, and a snapshot whose list has all manifests. Files that were
//! written again get one new manifest, and earlier snapshots expire: they would show removed rows. The
//! file `version-hint.text` names the newest metadata. Lower and upper bounds of columns are left out,
//! so that metadata hold no value of a row.

mod schema;

use super::names;
use super::state::{DataFile, Extent, IcebergState, Manifest, Snapshot, ViewState, now_millis};
use super::storage::Storage;
use crate::outcome::Failure;
use apache_avro::types::Value as Avro;
use apache_avro::{Schema, Writer};
use aqlite::arrow::arrow_schema::Schema as ArrowSchema;
use serde_json::{Value, json};

/// The most snapshots that a table keeps.
const SNAPSHOTS: usize = 100;

/// The schema of the entries of manifests.
const ENTRIES: &str = include_str!("iceberg/manifest_entry.json");

/// The schema of lists of manifests.
const MANIFESTS: &str = include_str!("iceberg/manifest_file.json");

/// The files of a table after a sync.
pub struct TableChange<'c> {
    /// The name of the view.
    pub view: &'c str,
    /// The number of the sync.
    pub sync: u64,
    /// The schema of the files.
    pub schema: &'c ArrowSchema,
    /// All files.
    pub all: &'c [DataFile],
    /// The files that the sync added; `None` if older files were removed or written again.
    pub added: Option<&'c [DataFile]>,
    /// Whether the types of columns are others than before.
    pub is_new_schema: bool,
}

/// Writes manifests and metadata. The table is the old one until [`publish`].
///
/// # Errors
/// If a file cannot be written.
pub fn write(
    storage: &Storage,
    before: &IcebergState,
    change: &TableChange<'_>,
) -> Result<IcebergState, Failure> {
    let mut state = before.clone();
    // Columns of another type are another table for Iceberg, which allows few changes of types.
    if state.uuid.is_empty() || change.is_new_schema {
        state.uuid = uuid::Uuid::new_v4().to_string();
    }
    let files = match change.added {
        Some(added) => added,
        None => {
            // Older snapshots would show removed rows, and their files are deleted after the sync.
            (state.snapshots, state.manifests) = (Vec::new(), Vec::new());
            change.all
        }
    };
    let schema = schema::of(change.schema);
    if !files.is_empty() {
        let manifest = write_manifest(storage, change, files, &schema)?;
        state.manifests.push(manifest);
    }
    let list = write_list(storage, change, &state.manifests)?;
    state.snapshots.push(Snapshot {
        id: change.sync,
        time: now_millis(),
        list,
        operation: String::from(if change.added.is_some() {
            "append"
        } else {
            "overwrite"
        }),
        added: Extent::of(files),
        total: Extent::of(change.all),
    });
    let excess = state.snapshots.len().saturating_sub(SNAPSHOTS);
    state.snapshots.drain(..excess);
    // Snapshot, sequence number and metadata version all are the number of the sync.
    state.version = change.sync;
    let metadata = metadata(storage, change.view, &state, &schema);
    let text = serde_json::to_vec_pretty(&metadata);
    let text = text.map_err(|error| Failure::Data(error.to_string()))?;
    storage.write(&names::METADATA.name(change.view, [state.version]), text)?;
    Ok(state)
}

/// Makes the metadata of a state those that readers find.
///
/// # Errors
/// If the file that names them cannot be written.
pub fn publish(storage: &Storage, view: &str, state: &ViewState) -> Result<(), Failure> {
    let (name, version) = (
        names::HINT.name(view, []),
        state.iceberg.version.to_string(),
    );
    if version == "0" || storage.read(&name)?.as_deref() == Some(version.as_bytes()) {
        return Ok(());
    }
    storage.write(&name, version.into_bytes()).map(drop)
}

/// Writes the manifest of the files that a sync has added.
fn write_manifest(
    storage: &Storage,
    change: &TableChange<'_>,
    files: &[DataFile],
    schema: &Value,
) -> Result<Manifest, Failure> {
    let properties = [
        ("schema", schema.to_string()),
        ("schema-id", String::from("0")),
        ("partition-spec", String::from("[]")),
        ("partition-spec-id", String::from("0")),
        ("format-version", String::from("2")),
        ("content", String::from("data")),
    ];
    let entries = files.iter().map(|file| entry(storage, change.sync, file));
    let bytes = avro(ENTRIES, &properties, entries)?;
    let name = names::MANIFEST.name(change.view, [change.sync]);
    let written = storage.write(&name, bytes)?;
    Ok(Manifest {
        name,
        bytes: written.bytes,
        snapshot: change.sync,
        extent: Extent::of(files),
    })
}

/// Returns the entry of an added file.
fn entry(storage: &Storage, sync: u64, file: &DataFile) -> Avro {
    record([
        // Status 1 is ADDED, and content 0 is DATA (Iceberg specification, "Manifests").
        ("status", Avro::Int(1)),
        ("snapshot_id", optional(sync)),
        ("sequence_number", optional(sync)),
        ("file_sequence_number", optional(sync)),
        (
            "data_file",
            record([
                ("content", Avro::Int(0)),
                ("file_path", Avro::String(storage.url(&file.name))),
                ("file_format", Avro::String(String::from("PARQUET"))),
                ("partition", Avro::Record(Vec::new())),
                ("record_count", long(file.rows)),
                ("file_size_in_bytes", long(file.bytes)),
            ]),
        ),
    ])
}

/// Writes the list of the manifests of a snapshot, and returns its name.
fn write_list(
    storage: &Storage,
    change: &TableChange<'_>,
    manifests: &[Manifest],
) -> Result<String, Failure> {
    let (count, none) = (
        |files: u64| Avro::Int(i32::try_from(files).unwrap_or(i32::MAX)),
        Avro::Int(0),
    );
    let rows = manifests.iter().map(|manifest| {
        let is_own = manifest.snapshot == change.sync;
        let extent = manifest.extent;
        let (added, existing) = match is_own {
            true => (extent, Extent::default()),
            false => (Extent::default(), extent),
        };
        record([
            ("manifest_path", Avro::String(storage.url(&manifest.name))),
            ("manifest_length", long(manifest.bytes)),
            ("partition_spec_id", none.clone()),
            ("content", none.clone()),
            ("sequence_number", long(manifest.snapshot)),
            ("min_sequence_number", long(manifest.snapshot)),
            ("added_snapshot_id", long(manifest.snapshot)),
            ("added_files_count", count(added.files)),
            ("existing_files_count", count(existing.files)),
            ("deleted_files_count", none.clone()),
            ("added_rows_count", long(added.rows)),
            ("existing_rows_count", long(existing.rows)),
            ("deleted_rows_count", long(0)),
        ])
    });
    let properties = [
        ("format-version", String::from("2")),
        ("snapshot-id", change.sync.to_string()),
        ("sequence-number", change.sync.to_string()),
    ];
    let bytes = avro(MANIFESTS, &properties, rows)?;
    let name = names::LIST.name(change.view, [change.sync]);
    storage.write(&name, bytes)?;
    Ok(name)
}

/// Returns a file of Avro.
fn avro(
    schema: &str,
    properties: &[(&str, String)],
    rows: impl Iterator<Item = Avro>,
) -> Result<Vec<u8>, Failure> {
    let failed = |error: apache_avro::Error| Failure::Data(error.to_string());
    let schema = Schema::parse_str(schema).map_err(failed)?;
    let mut writer = Writer::new(&schema, Vec::new());
    for (key, value) in properties {
        writer
            .add_user_metadata((*key).to_owned(), value)
            .map_err(failed)?;
    }
    for row in rows {
        writer.append(row).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

fn record<const N: usize>(fields: [(&str, Avro); N]) -> Avro {
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    Avro::Record(fields.collect())
}

fn long(number: u64) -> Avro {
    Avro::Long(i64::try_from(number).unwrap_or(i64::MAX))
}

fn optional(number: u64) -> Avro {
    // The schemas declare an optional field as the union `[null, long]`. Branch 1 is `long`.
    Avro::Union(1, Box::new(long(number)))
}

/// Returns the metadata of a table.
fn metadata(storage: &Storage, view: &str, state: &IcebergState, schema: &Value) -> Value {
    let last = state.snapshots.last();
    let last_column = schema::last_id(schema);
    let (current, time) = last.map_or((0, 0), |last| (last.id, last.time));
    let log = state.snapshots.iter();
    let log = log.map(|one| json!({"snapshot-id": one.id, "timestamp-ms": one.time}));
    json!({
        "format-version": 2,
        "table-uuid": state.uuid,
        "location": storage.url(view),
        "last-sequence-number": current,
        "last-updated-ms": time,
        "last-column-id": last_column,
        "current-schema-id": 0,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        // Iceberg assigns ids of partition fields from 1000 on. The table has no partitions.
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"write.format.default": "parquet"},
        "current-snapshot-id": current,
        "refs": {"main": {"snapshot-id": current, "type": "branch"}},
        "snapshots": snapshots(storage, state),
        "snapshot-log": log.collect::<Value>(),
        "metadata-log": [],
    })
}

fn snapshots(storage: &Storage, state: &IcebergState) -> Value {
    let mut parent = None;
    let mut all = Vec::with_capacity(state.snapshots.len());
    for one in &state.snapshots {
        let mut snapshot = json!({
            "snapshot-id": one.id,
            "sequence-number": one.id,
            "timestamp-ms": one.time,
            "manifest-list": storage.url(&one.list),
            "schema-id": 0,
            "summary": {
                "operation": one.operation,
                "added-data-files": one.added.files.to_string(),
                "added-records": one.added.rows.to_string(),
                "added-files-size": one.added.bytes.to_string(),
                "total-data-files": one.total.files.to_string(),
                "total-records": one.total.rows.to_string(),
                "total-files-size": one.total.bytes.to_string(),
                "total-delete-files": "0",
                "total-position-deletes": "0",
                "total-equality-deletes": "0",
            },
        });
        if let (Some(parent), Some(members)) = (parent, snapshot.as_object_mut()) {
            members.insert(String::from("parent-snapshot-id"), Value::from(parent));
        }
        parent = Some(one.id);
        all.push(snapshot);
    }
    Value::Array(all)
}
