//! SQLite as the host of the repository, with the limits of D1.

use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Pause;
use aqlite::store::sql::{
    BlobFuture, Blobs, Compaction, LayoutCatalog, Row, Segments, Sql, SqlError, SqlRepository,
    SqlValue, Statement,
};
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::future::ready;
use std::path::Path;
use std::rc::Rc;

const PARAMS: usize = 100;
const SQL_BYTES: usize = 100_000;
const VALUE_BYTES: usize = 2_000_000;
const EXACT: i64 = 1 << 53;

/// Returns the files in `migrations/` in the order of their numbers: number and text.
pub fn migrations() -> Vec<(String, String)> {
    migrations_in("migrations")
}

fn migrations_in(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("migrations")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    let number = |file: &Path| {
        file.file_name()
            .and_then(|n| n.to_str())
            .and_then(|n| n.split('_').next())
            .unwrap_or_default()
            .to_owned()
    };
    files
        .iter()
        .map(|file| {
            (
                number(file),
                std::fs::read_to_string(file).expect("migration"),
            )
        })
        .collect()
}

/// A database that several repositories may share.
#[derive(Clone)]
pub struct Sqlite {
    connection: Rc<Connection>,
    /// The database of the access log.
    log: Rc<Connection>,
    trips: Rc<Cell<usize>>,
    executed: Rc<Cell<usize>>,
    /// The texts of the statements that were executed.
    texts: Rc<RefCell<BTreeSet<String>>>,
    last: Rc<RefCell<String>>,
}

impl Sqlite {
    /// Creates a database in memory.
    pub fn in_memory() -> Sqlite {
        Sqlite::over(Connection::open_in_memory().expect("memory"))
    }

    /// Creates a database in a file, which overwrites freed pages.
    pub fn in_file(path: &Path) -> Sqlite {
        let connection = Connection::open(path).expect("file");
        connection
            .pragma_update(None, "secure_delete", "ON")
            .expect("pragma");
        Sqlite::over(connection)
    }

    /// Executes a statement without the repositories.
    pub fn behind(&self, sql: &str) {
        self.connection.execute_batch(sql).expect("statements");
    }

    /// Returns the error by which the database refuses a statement.
    pub fn refuses(&self, sql: &str) -> String {
        self.connection
            .execute_batch(sql)
            .expect_err("refused")
            .to_string()
    }

    fn over(connection: Connection) -> Sqlite {
        for (_, migration) in migrations() {
            connection.execute_batch(&migration).expect("migration");
        }
        Sqlite::with(connection)
    }

    /// Wraps a database without migrations.
    pub fn with(connection: Connection) -> Sqlite {
        let log = Connection::open_in_memory().expect("memory");
        migrations_in("migrations-log")
            .iter()
            .for_each(|(_, migration)| log.execute_batch(migration).expect("migration"));
        Sqlite {
            connection: Rc::new(connection),
            log: Rc::new(log),
            trips: Rc::default(),
            executed: Rc::default(),
            texts: Rc::default(),
            last: Rc::default(),
        }
    }

    /// Returns the database of the access log, whose round trips count too.
    pub fn log(&self) -> Sqlite {
        Sqlite {
            connection: Rc::clone(&self.log),
            last: Rc::default(),
            ..self.clone()
        }
    }

    /// Returns a repository with empty caches.
    pub fn repository(&self) -> SqlRepository<Sqlite> {
        SqlRepository::new(self.clone(), Rc::new(LayoutCatalog::default())).with_log(self.log())
    }

    /// Returns a repository that caches no layouts.
    pub fn forgetful_repository(&self) -> SqlRepository<Sqlite> {
        SqlRepository::new(self.clone(), Rc::new(LayoutCatalog::with_limit(0))).with_log(self.log())
    }

    /// Returns the first column of the rows of a statement as text, without the repository.
    pub fn texts(&self, sql: &str) -> Vec<String> {
        let mut statement = self.connection.prepare(sql).expect("query");
        let rows = statement
            .query_map([], |row| row.get::<_, Value>(0))
            .expect("rows");
        let text = |value| match value {
            Value::Text(text) => text,
            Value::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        rows.map(|value| text(value.expect("value"))).collect()
    }

    /// Returns the rows of all tables as INSERTs, table by table.
    pub fn dump(&self) -> Vec<String> {
        let tables = self.texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid");
        let rows = |table: &String| {
            let columns = self
                .texts(&format!(
                    "SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')"
                ))
                .join(" || ', ' || ");
            self.texts(&format!("SELECT 'INSERT OR REPLACE INTO {table} VALUES (' || {columns} || ');' FROM {table} ORDER BY 1"))
        };
        tables.iter().flat_map(rows).collect()
    }

    /// Returns the rows of all tables but those of layouts and profiles, which a refused commit may
    /// have written.
    pub fn records(&self) -> Vec<String> {
        let is_shared = |row: &String| {
            ["shape", "profile"].map(|table| row.contains(&format!(" INTO {table} VALUES")))
        };
        let mut rows = self.dump();
        rows.retain(|row| is_shared(row) == [false, false]);
        rows
    }

    /// Returns the query plan of the last statement, one line per step.
    pub fn last_plan(&self) -> String {
        let mut statement = self
            .connection
            .prepare(&format!("EXPLAIN QUERY PLAN {}", self.last.borrow()))
            .expect("plan");
        let mut rows = statement.raw_query();
        let mut plan = String::new();
        while let Some(row) = rows.next().expect("step") {
            plan += &row.get::<_, String>(3).expect("detail");
            plan.push('\n');
        }
        plan
    }

    /// Returns the number of batches since the last call.
    pub fn trips(&self) -> usize {
        self.trips.take()
    }

    /// Returns the executed statements that read all rows of a table, with their plans.
    pub fn scans_of(&self, table: &str) -> Vec<String> {
        let texts = self.texts.borrow().clone();
        let plan = |text: String| {
            self.last.replace(text.clone());
            let plan = self.last_plan();
            let is_scan = |step: &str| {
                step == format!("SCAN {table}") || step.starts_with(&format!("SCAN {table} "))
            };
            plan.lines().any(is_scan).then(|| format!("{text}\n{plan}"))
        };
        texts.into_iter().filter_map(plan).collect()
    }

    /// Returns the number of statements since the last call.
    pub fn executed(&self) -> usize {
        self.executed.take()
    }

    fn execute(&self, statement: &Statement) -> rusqlite::Result<Vec<Row>> {
        assert!(
            statement.params.len() <= PARAMS && statement.sql.len() <= SQL_BYTES,
            "over a limit: {}",
            statement.sql
        );
        let mut prepared = self.connection.prepare_cached(&statement.sql)?;
        assert_eq!(
            prepared.parameter_count(),
            statement.params.len(),
            "parameters of {}",
            statement.sql
        );
        self.texts.borrow_mut().insert(statement.sql.to_string());
        self.executed.set(self.executed.get() + 1);
        self.last.replace(statement.sql.to_string());
        let names: HashSet<&str> = prepared.column_names().collect();
        let columns = prepared.column_count();
        assert_eq!(
            names.len(),
            columns,
            "rows are objects on D1, so the names of columns must differ: {}",
            statement.sql
        );
        let mut found = Vec::new();
        for params in statement.executions() {
            let params = rusqlite::params_from_iter(params.iter().map(bound));
            let mut rows = prepared.query(params)?;
            while let Some(row) = rows.next()? {
                found.push(
                    (0..columns)
                        .map(|i| row.get_ref(i).map(read))
                        .collect::<rusqlite::Result<Row>>()?,
                );
            }
        }
        Ok(found)
    }
}

impl Sql for Sqlite {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        self.trips.set(self.trips.get() + 1);
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        let answers = statements
            .iter()
            .map(|s| self.execute(s))
            .collect::<rusqlite::Result<Vec<_>>>()
            .map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(answers)
    }
}

fn failed(error: rusqlite::Error) -> SqlError {
    SqlError::from_message(&error.to_string())
}

/// Binds a value as D1 does: numbers of JavaScript.
fn bound(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => {
            assert!(number.abs() <= EXACT, "{number} is not exact");
            Value::Real(*number as f64)
        }
        SqlValue::Real(number) => Value::Real(*number),
        SqlValue::Text(text) => {
            assert!(text.len() <= VALUE_BYTES, "a value of {} bytes", text.len());
            Value::Text(text.clone())
        }
    }
}

/// Reads a value as D1 does: numbers of JavaScript.
fn read(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Integer(number) => SqlValue::Real(number as f64),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Null | ValueRef::Blob(_) => SqlValue::Null,
    }
}

#[test]
fn the_database_itself_keeps_kind_owner_and_template_of_an_object() {
    let database = Sqlite::in_memory();
    let (a, b) = (
        "11111111-1111-4111-8111-111111111111",
        "22222222-2222-4222-8222-222222222222",
    );
    let ehr = |id: u8, ehr_id: &str| {
        format!("INSERT INTO ehr VALUES ({id}, '{ehr_id}', '', '', NULL, NULL, 1, 1);")
    };
    let version = |id: u8,
                   ehr: u8,
                   kind: u8,
                   object: &str,
                   number: u8,
                   lifecycle: &str,
                   template: &str| {
        let preceding = if number > 1 { "'before'" } else { "NULL" };
        format!(
            "INSERT INTO version VALUES ({id}, {ehr}, {kind}, '{object}', {number}, 's', {preceding}, NULL, 1, '', '{lifecycle}', {template}, 1, '[]', '', 0, '', NULL, NULL)"
        )
    };
    let composition = |id: u8, number: u8, archetype: &str, persistent: &str| {
        let row = version(id, 1, 1, "c", number, "532", "'t'");
        row.replace("NULL, NULL)", &format!("{archetype}, {persistent})"))
    };
    let start = [
        ehr(1, a),
        ehr(2, b),
        "INSERT INTO profile VALUES (1, 1, '[]');".to_owned(),
        version(1, 1, 1, "o", 1, "532", "'t'") + ";",
        version(2, 1, 1, "o", 2, "523", "NULL") + ";",
        version(3, 1, 2, "s", 1, "532", "NULL") + ";",
        // A row of a release without these columns.
        composition(7, 1, "NULL", "NULL") + ";",
        composition(8, 2, "'a'", "0"),
    ];
    database
        .connection
        .execute_batch(&start.concat())
        .expect("rows");
    for (row, rule) in [
        (version(9, 1, 3, "o", 3, "532", "'t'"), "version.kind"),
        (version(9, 2, 1, "o", 3, "532", "'t'"), "version.kind"),
        (version(9, 1, 1, "o", 3, "532", "'u'"), "version.template"),
        (version(9, 1, 1, "o", 3, "532", "NULL"), "version.template"),
        (version(9, 1, 3, "o", 3, "523", "NULL"), "version.kind"),
        (version(9, 1, 2, "t", 1, "532", "NULL"), "ONE"),
        (composition(9, 3, "'b'", "0"), "version.archetype"),
        (composition(9, 3, "'a'", "1"), "version.persistent"),
        (version(9, 0, 1, "p", 1, "532", "NULL"), "OWNER"),
        (version(9, 1, 4, "p", 1, "532", "NULL"), "OWNER"),
    ] {
        let error = database
            .connection
            .execute_batch(&row)
            .expect_err(&row)
            .to_string();
        assert!(error.contains(rule), "{row}: {error}");
        assert!(
            matches!(SqlError::from_message(&error), SqlError::Constraint(_)),
            "{error}"
        );
    }
    for row in [
        version(4, 1, 1, "o", 3, "532", "'t'"),
        version(5, 1, 2, "s", 2, "532", "NULL"),
        version(6, 0, 4, "p", 1, "532", "NULL"),
        composition(9, 3, "'a'", "0"),
        composition(10, 4, "NULL", "NULL"),
    ] {
        database.connection.execute_batch(&row).expect(&row);
    }
}

/// Blobs in the memory of this process.
#[derive(Default)]
pub struct MemoryBlobs(RefCell<BTreeMap<String, Vec<u8>>>);

impl Blobs for MemoryBlobs {
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>> {
        Box::pin(ready(Ok(self.0.borrow().get(key).cloned())))
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        self.0.borrow_mut().insert(key.to_owned(), bytes);
        Box::pin(ready(Ok(())))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        self.0.borrow_mut().remove(key);
        Box::pin(ready(Ok(())))
    }
}

impl Sqlite {
    /// Creates a repository that reads segments of few versions: see [`compact`].
    pub fn segmented(&self) -> SqlRepository<Sqlite> {
        let segments = Segments::new(Box::new(MemoryBlobs::default()));
        let segments = segments.with_sizes(1, 5).with_named(2);
        self.repository().with_segments(Rc::new(segments))
    }
}

/// Writes segments of all versions, and deletes the blobs of replaced ones. `serial` numbers the
/// blobs.
pub fn compact(repository: &SqlRepository<Sqlite>, serial: &Cell<u64>) {
    let pause = || Box::pin(ready(())) as Pause;
    loop {
        serial.set(serial.get() + 1);
        let blob = format!("b{}", serial.get());
        let compacted = now_or_never(repository.compact(&blob, 0, &pause));
        if compacted.expect("ready").expect("a compaction") != Compaction::Written {
            return;
        }
    }
}
