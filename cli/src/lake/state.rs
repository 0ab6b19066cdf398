//! The state of a lake: one file, which is written last. Only what it names belongs to the lake.

use super::issued::Issued;
use super::names::{self, OwnFolder, STATE};
use super::objects::{Objects, checksum};
use super::storage::{Storage, StoredFile};
use crate::outcome::Failure;
use aqlite::arrow::ColumnTypes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

/// The form of the state and of the index of objects. A newer release may write another one.
const FORM: u32 = 3;

/// The state of a lake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LakeState {
    /// The form of this file.
    pub form: u32,
    /// The program that wrote it.
    pub program: String,
    /// The fingerprint of the key of pseudonyms; absent if ids are written as they are.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub key: Option<String>,
    /// The pseudonyms that were issued.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub issued: Option<IssuedFile>,
    /// The views by name.
    pub views: BTreeMap<String, ViewState>,
}

/// The state of the dataset of a view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewState {
    /// The text of the query.
    pub aql: String,
    /// The number of the last sync that changed the dataset, from 1.
    pub sync: u64,
    /// The state of the data when they were read.
    pub watermark: Option<Watermark>,
    /// The state of the data whose removed EHRs have left the dataset, if a later sync of other views
    /// has removed them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub removals: Option<Watermark>,
    /// The number of pseudonyms that were issued before the last sync: its files have none of the
    /// ids that they replace. Absent if ids are written as they are.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pseudonyms: Option<usize>,
    /// The types of all values so far; absent before the first row.
    pub types: Option<ColumnTypes>,
    /// The data files, oldest first.
    pub files: Vec<DataFile>,
    /// The index of objects.
    pub objects: Option<CheckedFile>,
    /// The table of Apache Iceberg.
    pub iceberg: IcebergState,
}

/// The state of the data that a sync has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watermark {
    /// Equal texts are equal states.
    pub state: String,
    /// The number of the newest version of a database, in the order of commits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<i64>,
    /// Changes of a database beside new versions: removals, and EHRs that queries may not read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub others: Option<String>,
    /// The uid of the newest CONTRIBUTION of a database. Without it, the database was restored to an
    /// earlier state, and has assigned the numbers of versions again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub newest: Option<String>,
}

/// A Parquet file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// The name in the lake.
    pub name: String,
    /// The number of rows.
    pub rows: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The filter of its tokens, if ids have pseudonyms.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tokens: Option<CheckedFile>,
}

/// The file of the issued pseudonyms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedFile {
    /// The number of the file, which rises with each new one.
    pub number: u64,
    /// The number of pseudonyms.
    pub count: usize,
    /// The file.
    pub file: CheckedFile,
}

/// A file with a checksum, such as the index of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedFile {
    /// The name in the lake.
    pub name: String,
    /// The checksum of its bytes (XXH64).
    pub checksum: u64,
}

/// The state of a table of Apache Iceberg.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IcebergState {
    /// The UUID of the table; empty before the first sync.
    pub uuid: String,
    /// The number of the metadata file.
    pub version: u64,
    /// Snapshots, oldest first. The last one is current.
    pub snapshots: Vec<Snapshot>,
    /// The manifests of the current snapshot, oldest first.
    pub manifests: Vec<Manifest>,
}

/// A snapshot of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The id, which is also its sequence number: that of the sync.
    pub id: u64,
    /// Milliseconds since 1970.
    pub time: i64,
    /// The name of its list of manifests.
    pub list: String,
    /// `append` or `overwrite`.
    pub operation: String,
    /// The number of files and rows that it added, and of all its files and rows.
    pub added: Extent,
    /// All files and rows.
    pub total: Extent,
}

/// A number of files with their rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Files.
    pub files: u64,
    /// Rows of all of them.
    pub rows: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// A manifest: a list of data files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The name in the lake.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The snapshot that added it.
    pub snapshot: u64,
    /// Its files.
    pub extent: Extent,
}

impl LakeState {
    /// Reads the state of a lake. A place without one is an empty lake.
    ///
    /// # Errors
    /// If the state cannot be read, or a newer release wrote it.
    pub fn read(storage: &Storage) -> Result<LakeState, Failure> {
        let Some(bytes) = storage.read_state(STATE)? else {
            return Ok(LakeState {
                form: FORM,
                program: program(),
                key: None,
                issued: None,
                views: BTreeMap::new(),
            });
        };
        let failed = |problem: String| Failure::Data(format!("{}: {problem}", storage.url(STATE)));
        let damaged = |error: serde_json::Error| {
            failed(format!(
                "the state is damaged ({error}): restore this file from a copy, or write the lake anew in another place"
            ))
        };
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(damaged)?;
        // Checked before the other members, which another form may not have.
        if value.get("form") != Some(&FORM.into()) {
            let problem = "the lake is of another release: write it anew in another place";
            return Err(failed(String::from(problem)));
        }
        serde_json::from_value(value).map_err(damaged)
    }

    /// Reads the pseudonyms that were issued.
    ///
    /// # Errors
    /// If their file is absent or damaged.
    pub fn read_issued(&self, storage: &Storage) -> Result<Issued, Failure> {
        let Some(IssuedFile { file, .. }) = &self.issued else {
            return Ok(Issued::default());
        };
        let failed = |problem: &str| {
            Failure::Data(format!(
                "{} {problem}: restore it from a copy, or write the lake anew in another place",
                storage.url(&file.name)
            ))
        };
        let bytes = storage.read(&file.name)?;
        let bytes = bytes.ok_or_else(|| failed("is missing"))?;
        let issued = Issued::read(&bytes).filter(|_| checksum(&bytes) == file.checksum);
        issued.ok_or_else(|| failed("is damaged"))
    }

    /// Writes the pseudonyms that were issued, and the state. From then on a removed patient keeps
    /// them.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_issued(&mut self, storage: &Storage, issued: &Issued) -> Result<(), Failure> {
        let number = self.issued.as_ref().map_or(1, |before| before.number + 1);
        let (name, bytes) = (names::ISSUED.name("", [number]), issued.bytes());
        let checksum = checksum(&bytes);
        storage.write(&name, bytes)?;
        self.issued = Some(IssuedFile {
            number,
            count: issued.len(),
            file: CheckedFile { name, checksum },
        });
        self.write(storage)
    }

    /// Returns the number of pseudonyms that were issued.
    pub fn issued_count(&self) -> usize {
        self.issued.as_ref().map_or(0, |issued| issued.count)
    }

    /// Writes the state. From then on the lake is what it names.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, storage: &Storage) -> Result<(), Failure> {
        self.program = program();
        let text = serde_json::to_vec_pretty(self);
        let text = text.map_err(|error| Failure::Data(error.to_string()))?;
        storage.write_state(STATE, text)
    }
}

impl ViewState {
    /// Creates the state of a view without rows.
    pub fn new(aql: &str) -> ViewState {
        ViewState {
            aql: aql.to_owned(),
            sync: 0,
            watermark: None,
            removals: None,
            pseudonyms: None,
            types: None,
            files: Vec::new(),
            objects: None,
            iceberg: IcebergState::default(),
        }
    }

    /// Reads the index of objects.
    ///
    /// # Errors
    /// If it is absent or damaged.
    pub fn read_objects(&self, storage: &Storage) -> Result<Objects, Failure> {
        match &self.objects {
            Some(file) => Objects::read(&storage.expect(&file.name)?, file.checksum)
                .map_err(|error| error.at(&storage.url(&file.name))),
            None => Ok(Objects::default()),
        }
    }

    /// Returns whether no sync of the view has ended: its folders are reserved for it.
    pub fn is_reserved(&self) -> bool {
        self.aql.is_empty() && self.sync == 0
    }

    /// Checks that the files of the view are present and have their sizes.
    ///
    /// # Errors
    /// If one is missing or has another size.
    pub fn check_files(&self, view: &str, storage: &Storage) -> Result<(), Failure> {
        let mut sizes: HashMap<String, u64> = HashMap::new();
        for folder in OwnFolder::of_view(view) {
            let files = storage.list(&folder.name)?.into_iter();
            sizes.extend(files.map(|file| (file.name, file.bytes)));
        }
        let data = self.files.iter().map(|file| (&file.name, Some(file.bytes)));
        let manifests = self.iceberg.manifests.iter();
        let manifests = manifests.map(|file| (&file.name, Some(file.bytes)));
        let lists = self.iceberg.snapshots.iter().map(|one| (&one.list, None));
        for (name, expected) in data.chain(manifests).chain(lists) {
            let found = sizes.get(name);
            if found.is_some() && expected.is_none_or(|expected| found == Some(&expected)) {
                continue;
            }
            let problem = match found {
                None => String::from("is missing"),
                Some(bytes) => format!(
                    "has {bytes} bytes instead of {}",
                    expected.unwrap_or_default()
                ),
            };
            return Err(Failure::Data(format!(
                "{} {problem}: restore it, or write the dataset `{view}` again with --rebuild and its view alone",
                storage.url(name)
            )));
        }
        Ok(())
    }

    /// Returns the names of all files that belong to the view.
    pub fn names(&self, view: &str) -> Vec<String> {
        let mut all: Vec<String> = self.files.iter().map(|file| file.name.clone()).collect();
        let tokens = self.files.iter().filter_map(|file| file.tokens.as_ref());
        all.extend(tokens.map(|file| file.name.clone()));
        all.extend(self.objects.iter().map(|file| file.name.clone()));
        let iceberg = &self.iceberg;
        all.extend(iceberg.manifests.iter().map(|file| file.name.clone()));
        all.extend(iceberg.snapshots.iter().map(|one| one.list.clone()));
        // A dataset without rows, written anew, has no table yet.
        if iceberg.version > 0 {
            all.push(names::METADATA.name(view, [iceberg.version]));
            all.push(names::HINT.name(view, []));
        }
        all
    }
}

impl Extent {
    /// Returns the extent of files.
    pub fn of(files: &[DataFile]) -> Extent {
        Extent {
            files: files.len() as u64,
            rows: files.iter().map(|file| file.rows).sum(),
            bytes: files.iter().map(|file| file.bytes).sum(),
        }
    }
}

impl DataFile {
    /// Creates the entry of a file that was written.
    pub fn new(file: StoredFile, rows: u64) -> DataFile {
        DataFile {
            name: file.name,
            rows,
            bytes: file.bytes,
            tokens: None,
        }
    }
}

/// Returns the time in milliseconds since 1970.
pub fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

fn program() -> String {
    format!("aqlite {}", env!("CARGO_PKG_VERSION"))
}
