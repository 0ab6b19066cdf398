//! The differences between the rows of a view and its dataset.
//!
//! Rows arrive in parts. Those of changed objects are written at once, with the types that the values
//! so far have. The first rows are held back, because they decide most types. If a later value needs
//! another type of a column, nothing more is written, but all types are known at the end: the caller
//! begins again with them. So most syncs evaluate their view once, and no sync holds all rows.

use super::columns::Columns;
use super::ehrs::LakeEhrs;
use super::files::FileWriter;
use super::objects::{ObjectEntry, ObjectId, Objects};
use super::pseudonym::Identifiers;
use super::row::{self, LakeCells};
use super::source::{Deletion, LakeSource, RowSink, Touched, object_and_version};
use super::storage::Storage;
use super::sync_views::SyncView;
use crate::outcome::Failure;
use crate::progress::{Progress, is_interrupted};
use aqlite::aql::{Cell, ResultSet, Row};
use aqlite::arrow::ColumnTypes;
use aqlite::rm::time::{Temporal, TemporalKind};
use std::collections::HashSet;
use std::rc::Rc;

/// The bytes of rows that are held back before the first file begins.
pub const HELD_BYTES: usize = 33_554_432;

/// Everything about a sync of a view that its rows do not change.
#[derive(Clone, Copy)]
pub struct SyncContext<'c> {
    /// The view.
    pub view: &'c SyncView,
    /// The place of the lake.
    pub storage: &'c Storage,
    /// The index before this sync, without what it removes.
    pub known: &'c Objects,
    /// The number of the sync.
    pub sync: u64,
    /// The ids that have pseudonyms; `None` if all ids are written as they are.
    pub identifiers: Option<&'c Identifiers<'c>>,
    /// The bytes of rows that are held back before the first file begins.
    pub held_bytes: usize,
    /// Whether documents could not be read: objects without rows are kept then.
    pub is_incomplete: bool,
    /// Whether nothing is written.
    pub is_dry: bool,
    /// The progress in rows.
    pub progress: &'c Progress,
}

/// The rows of a view that its dataset does not have. It receives all rows, and writes the new ones.
pub struct Changes<'c> {
    context: SyncContext<'c>,
    /// The types of the values before this pass over the rows.
    known_types: Option<ColumnTypes>,
    /// Absent before the first part.
    table: Option<Table>,
    ehrs: LakeEhrs<'c>,
    new: Vec<(ObjectId, ObjectEntry)>,
    /// The positions in the index of the objects that have rows.
    seen: Vec<bool>,
    rows: u64,
    output: Output<'c>,
}

/// The columns of the dataset, and the types of their values so far.
struct Table {
    columns: Rc<Columns>,
    types: ColumnTypes,
}

/// The rows that were found, or their files.
enum Output<'c> {
    /// The first rows, and their bytes.
    Held(Vec<Part>, usize),
    /// Files.
    Files(Box<FileWriter<'c>>),
    /// Nothing: a column has another type than the files.
    Refused,
}

/// A part of the rows of a view.
struct Part {
    rows: ResultSet,
    /// The objects whose rows are written.
    objects: Vec<PartObject>,
}

/// An object with changed rows.
struct PartObject {
    /// The index of its first row, and the index behind its last one.
    rows: (usize, usize),
    /// The number of its EHR in [`LakeEhrs`].
    ehr: u32,
    version: u32,
    committed: Option<i64>,
}

/// The keys of a row: the id of the EHR, the uid of the version, the time of its commit.
struct Keys<'r> {
    ehr_id: &'r str,
    uid: &'r str,
    committed: &'r str,
}

/// The outcome of a pass over the rows of a view.
pub struct Found<'c> {
    /// The types of all values.
    pub types: ColumnTypes,
    /// The columns of the dataset.
    pub columns: Rc<Columns>,
    /// The writer of the files; `None` if they must be written again, because a later value needs
    /// another type of a column.
    pub writer: Option<FileWriter<'c>>,
    /// The number of rows of changed and of deleted objects.
    pub rows: u64,
    /// The objects without rows that are kept, because documents could not be read.
    pub kept: usize,
    /// The changes of the index.
    pub index: IndexChanges,
}

/// The changes of the index of a dataset.
#[derive(Default)]
pub struct IndexChanges {
    /// The objects with new rows, whose EHRs have the numbers of `ehrs`.
    new: Vec<(ObjectId, ObjectEntry)>,
    /// The objects that have no rows any more, whose EHRs have the numbers of the index.
    gone: Vec<(ObjectId, ObjectEntry)>,
    ehrs: Vec<String>,
}

impl<'c> Changes<'c> {
    /// Begins a pass over the rows of a view. `types` are those of the dataset and of earlier passes.
    pub fn new(context: SyncContext<'c>, types: Option<ColumnTypes>) -> Changes<'c> {
        Changes {
            context,
            known_types: types,
            table: None,
            ehrs: LakeEhrs::new(context.identifiers),
            new: Vec::new(),
            seen: vec![false; context.known.len()],
            rows: 0,
            output: Output::Held(Vec::new(), 0),
        }
    }

    /// Returns the columns, which the first part determines.
    fn columns_of(&mut self, rows: &ResultSet) -> Result<Rc<Columns>, Failure> {
        if let Some(table) = &self.table {
            return Ok(Rc::clone(&table.columns));
        }
        let columns = Rc::new(Columns::of(rows, &self.context.view.name)?);
        self.begin_table(Rc::clone(&columns));
        Ok(columns)
    }

    /// Sets the columns, of which this pass has observed no value.
    fn begin_table(&mut self, columns: Rc<Columns>) {
        let types = self.known_types.clone();
        self.table = Some(Table {
            types: types.unwrap_or_else(|| ColumnTypes::new(columns.all.len())),
            columns,
        });
    }

    fn table(&mut self) -> Result<&mut Table, Failure> {
        self.table.as_mut().ok_or_else(|| internal("no columns"))
    }

    /// Finds the changed objects of a part, and observes the types of their rows.
    fn changed(&mut self, rows: ResultSet) -> Result<Part, Failure> {
        let columns = self.columns_of(&rows)?;
        let all: Vec<Row<'_>> = rows.rows().collect();
        let (mut objects, mut start) = (Vec::new(), 0);
        let mut buffer = row::Digest::default();
        let key = self.context.identifiers.map(Identifiers::key);
        while let Some(first) = all.get(start) {
            let keys = Keys::of(*first, &columns)?;
            let (mut end, mut digest) = (start, 0_u64);
            let replaced = self
                .context
                .identifiers
                .map(|ids| ids.replaced_in(keys.uid));
            while let Some(row) = all.get(end)
                && Keys::of(*row, &columns)?.uid == keys.uid
            {
                // A sum does not depend on the order of the rows, which a query does not fix.
                digest = digest.wrapping_add(buffer.of(*row, columns.keys, key));
                end += 1;
            }
            let (id, version) = object_and_version(keys.uid);
            let id = replaced
                .as_ref()
                .map_or(id, |replaced| replaced.object_id(id));
            let object = (ObjectId::of(id), version);
            if let Some(object) = self.compare(&keys, object, digest, (start, end))? {
                self.observe(&object, all.get(start..end).unwrap_or_default())?;
                objects.push(object);
            }
            start = end;
        }
        drop(all);
        Ok(Part { rows, objects })
    }

    /// Compares an object with the index; `None` if its rows are those of the dataset.
    fn compare(
        &mut self,
        keys: &Keys<'_>,
        (id, version): (ObjectId, u32),
        digest: u64,
        rows: (usize, usize),
    ) -> Result<Option<PartObject>, Failure> {
        // Rows of two versions must not have the same digest.
        let digest = digest.wrapping_add(u64::from(version));
        let ehr = self.ehrs.number_of(keys.ehr_id);
        if let Some(position) = self.context.known.find(&id) {
            let seen = self.seen.get_mut(position);
            // The rows of an object are compared as a whole, so they must be adjacent. Objects
            // without an entry in the index are checked in `Objects::with`.
            if seen.is_none_or(|seen| std::mem::replace(seen, true)) {
                return Err(Failure::Data(format!(
                    "the rows of the object {id} do not follow one another"
                )));
            }
            let known = self.context.known.entry(position);
            // The newer version of the last rows may be in a document that could not be read.
            let is_older = known.is_some_and(|entry| version < entry.version);
            if is_older && self.context.is_incomplete {
                return Ok(None);
            }
            // The digest does not cover the id of the EHR: a document may move to another one.
            if known.is_some_and(|entry| entry.digest == Some(digest) && self.is_of(entry, ehr)) {
                return Ok(None);
            }
        }
        let object = PartObject {
            rows,
            ehr,
            version,
            committed: micros_of(keys.committed),
        };
        let entry = ObjectEntry {
            ehr: object.ehr,
            version,
            committed: object.committed,
            digest: Some(digest),
        };
        self.new.push((id, entry));
        self.rows += (rows.1 - rows.0) as u64;
        Ok(Some(object))
    }

    /// Returns whether the last rows of an object have the EHR with a number of [`LakeEhrs`].
    fn is_of(&self, entry: &ObjectEntry, ehr: u32) -> bool {
        let shown = self.ehrs.get(ehr);
        shown == Some(self.context.known.ehr_id(entry.ehr))
    }

    fn observe(&mut self, object: &PartObject, rows: &[Row<'_>]) -> Result<(), Failure> {
        let Some(table) = &mut self.table else {
            return Err(internal("no columns"));
        };
        let columns = Rc::clone(&table.columns);
        object.each_row(&self.ehrs, &self.context, (rows, &columns), &mut |cells| {
            table.types.observe_cells(cells.iter().copied());
            Ok(())
        })
    }

    /// Holds a part back, or writes it.
    fn add(&mut self, part: Part) -> Result<(), Failure> {
        if let Output::Held(parts, bytes) = &mut self.output {
            *bytes += part.bytes();
            parts.push(part);
            return match *bytes > self.context.held_bytes {
                true => self.begin(),
                false => Ok(()),
            };
        }
        self.renew_types()?;
        self.write(&part)
    }

    /// Begins the files with the rows that were held back.
    fn begin(&mut self) -> Result<(), Failure> {
        let context = self.context;
        let table = self.table()?;
        let writer = FileWriter::new(&context, Rc::clone(&table.columns), &table.types)?;
        if let Output::Held(parts, _) =
            std::mem::replace(&mut self.output, Output::Files(Box::new(writer)))
        {
            for part in parts {
                self.write(&part)?;
            }
        }
        Ok(())
    }

    /// Lets the files have the present types, or ends them if these need other columns.
    fn renew_types(&mut self) -> Result<(), Failure> {
        if let (Output::Files(writer), Some(table)) = (&mut self.output, &self.table)
            && !writer.renew_types(&table.types)?
        {
            self.output = Output::Refused;
        }
        Ok(())
    }

    fn write(&mut self, part: &Part) -> Result<(), Failure> {
        let Output::Files(writer) = &mut self.output else {
            return Ok(());
        };
        let all: Vec<Row<'_>> = part.rows.rows().collect();
        let columns = Rc::clone(&writer.columns);
        for object in &part.objects {
            let rows = all.get(object.rows.0..object.rows.1).unwrap_or_default();
            object.each_row(&self.ehrs, &self.context, (rows, &columns), &mut |cells| {
                writer.write(cells)
            })?;
        }
        Ok(())
    }

    /// Ends the pass: finds the objects that have no rows any more, and writes that they are deleted.
    ///
    /// # Errors
    /// If the deletions cannot be read, or a file cannot be written.
    pub fn finish(
        mut self,
        source: &LakeSource,
        touched: Option<&Touched>,
    ) -> Result<Found<'c>, Failure> {
        let (gone, kept) = self.gone(source, touched)?;
        self.rows += gone.len() as u64;
        self.observe_gone(&gone)?;
        match self.output {
            Output::Held(..) if !self.context.is_dry && self.rows > 0 => self.begin()?,
            _ => self.renew_types()?,
        }
        self.write_gone(&gone)?;
        let table = self.table.ok_or_else(|| internal("no columns"))?;
        let writer = match self.output {
            Output::Files(writer) => Some(*writer),
            Output::Held(..) => Some(FileWriter::new(
                &self.context,
                Rc::clone(&table.columns),
                &table.types,
            )?),
            Output::Refused => None,
        };
        Ok(Found {
            types: table.types,
            columns: table.columns,
            writer,
            rows: self.rows,
            kept,
            index: IndexChanges {
                new: self.new,
                gone,
                ehrs: self.ehrs.into_shown(),
            },
        })
    }

    /// Returns the objects of the dataset that have no rows any more, and the number of those that are
    /// kept nevertheless.
    fn gone(
        &self,
        source: &LakeSource,
        touched: Option<&Touched>,
    ) -> Result<(Vec<(ObjectId, ObjectEntry)>, usize), Failure> {
        let known = self.context.known;
        let is_gone = |position: usize| self.seen.get(position) == Some(&false);
        let present = |position: usize, id: &ObjectId| {
            // Without a digest, an earlier sync has already written that the object is deleted.
            let entry = known.entry(position).filter(|entry| entry.digest.is_some());
            entry
                .filter(|_| is_gone(position))
                .map(|entry| (id.clone(), *entry))
        };
        // If only touched objects were read, the absence of the other objects means nothing.
        let mut gone: Vec<(ObjectId, ObjectEntry)> = match touched {
            None => (0..)
                .zip(known.iter())
                .filter_map(|(position, (id, _))| present(position, id))
                .collect(),
            Some(touched) => touched
                .keys()
                .map(|id| ObjectId::of(id))
                .filter_map(|id| present(known.find(&id)?, &id))
                .collect(),
        };
        if gone.is_empty() || self.context.is_incomplete {
            return Ok((Vec::new(), gone.len()));
        }
        gone.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let deletions = source.deletions(&|| self.ehrs_of(&gone, source))?;
        for (id, entry) in &mut gone {
            entry.digest = None;
            // An object may also leave a view because its new version does not match the query. It
            // keeps the version of its last rows then.
            if let Some(Deletion { version, committed }) = deletions.get(&id.to_string()) {
                entry.version = *version;
                entry.committed = micros_of(committed).or(entry.committed);
            }
        }
        Ok((gone, 0))
    }

    /// Returns the EHRs of objects, with the ids that the data have.
    fn ehrs_of(
        &self,
        objects: &[(ObjectId, ObjectEntry)],
        source: &LakeSource,
    ) -> Result<Vec<String>, Failure> {
        let known = self.context.known;
        let shown: HashSet<&str> = objects
            .iter()
            .map(|(_, entry)| known.ehr_id(entry.ehr))
            .collect();
        let mut ehrs: Vec<String> = match self.context.identifiers {
            None => shown.into_iter().map(str::to_owned).collect(),
            // Pseudonyms cannot be inverted, so those of all EHRs are compared.
            Some(identifiers) => {
                let all = source.ehrs()?.into_iter();
                all.filter(|ehr| shown.contains(identifiers.key().of_ehr(ehr).as_str()))
                    .collect()
            }
        };
        ehrs.sort_unstable();
        Ok(ehrs)
    }

    fn observe_gone(&mut self, gone: &[(ObjectId, ObjectEntry)]) -> Result<(), Failure> {
        let context = self.context;
        let table = self.table()?;
        let width = table.columns.all.len();
        for (id, entry) in gone {
            LakeCells::deleted(context.known.ehr_id(entry.ehr), id, entry, context.sync)
                .with_nulls(width, &mut |cells| {
                    table.types.observe_cells(cells.iter().copied());
                    Ok(())
                })?;
        }
        Ok(())
    }

    fn write_gone(&mut self, gone: &[(ObjectId, ObjectEntry)]) -> Result<(), Failure> {
        let context = self.context;
        let Output::Files(writer) = &mut self.output else {
            return Ok(());
        };
        let width = writer.columns.all.len();
        for (id, entry) in gone {
            LakeCells::deleted(context.known.ehr_id(entry.ehr), id, entry, context.sync)
                .with_nulls(width, &mut |cells| writer.write(cells))?;
        }
        Ok(())
    }
}

impl RowSink for Changes<'_> {
    fn take(&mut self, rows: ResultSet) -> Result<(), Failure> {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let count = rows.len() as u64;
        let part = self.changed(rows)?;
        self.context.progress.advance(count);
        self.context.progress.show();
        match part.objects.is_empty() || self.context.is_dry {
            true => Ok(()),
            false => self.add(part),
        }
    }

    fn restart(&mut self) -> Result<(), Failure> {
        let columns = self.table.take().map(|table| table.columns);
        *self = Changes::new(self.context, self.known_types.take());
        // The columns are not sent again, and there may be no rows that determine
        // them.
        if let Some(columns) = columns {
            self.begin_table(columns);
        }
        Ok(())
    }
}

impl<'c> Found<'c> {
    /// Creates the outcome of no pass: older files alone are written again.
    pub fn without_rows(
        types: ColumnTypes,
        columns: Rc<Columns>,
        writer: FileWriter<'c>,
    ) -> Found<'c> {
        Found {
            types,
            columns,
            writer: Some(writer),
            rows: 0,
            kept: 0,
            index: IndexChanges::default(),
        }
    }
}

impl Part {
    /// Returns the memory of its rows, about.
    fn bytes(&self) -> usize {
        let texts: usize = (0..self.rows.len())
            .map(|row| self.rows.row_bytes(row))
            .sum();
        texts + self.rows.footprint()
    }
}

impl PartObject {
    /// Passes the cells of its rows in the dataset to `use_row`.
    fn each_row(
        &self,
        ehrs: &LakeEhrs<'_>,
        context: &SyncContext<'_>,
        (rows, columns): (&[Row<'_>], &Columns),
        use_row: row::UseRow<'_>,
    ) -> Result<(), Failure> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let shown = ehrs.get(self.ehr).ok_or_else(|| internal("no EHR"))?;
        let uid = Keys::of(*first, columns)?.uid;
        let replaced = context.identifiers.map(|ids| ids.replaced_in(uid));
        let replaced = replaced.as_ref();
        let id = object_and_version(uid).0;
        let id = replaced.map_or(id, |replaced| replaced.object_id(id));
        let cells = LakeCells::present(shown, id, (self.version, self.committed), context.sync);
        for row in rows {
            cells.with_row(*row, &columns.kept, replaced, use_row)?;
        }
        Ok(())
    }
}

impl<'r> Keys<'r> {
    fn of(row: Row<'r>, columns: &Columns) -> Result<Keys<'r>, Failure> {
        let key = |index: usize| match row.get(columns.keys + index) {
            Some(Cell::Text(text)) => Ok(text),
            // The time of commit may be unknown.
            Some(Cell::Null) if index == 2 => Ok(""),
            _ => Err(Failure::Data(String::from(
                "a row names no EHR or no version: the repository does not tell them",
            ))),
        };
        Ok(Keys {
            ehr_id: key(0)?,
            uid: key(1)?,
            committed: key(2)?,
        })
    }
}

impl IndexChanges {
    /// Returns the number of objects with new rows.
    pub fn changed(&self) -> usize {
        self.new.len()
    }

    /// Returns the number of objects that have no rows any more.
    pub fn deleted(&self) -> usize {
        self.gone.len()
    }

    /// Returns the index after the sync.
    ///
    /// # Errors
    /// If an object was found twice.
    pub fn applied(self, mut known: Objects) -> Result<Objects, Failure> {
        let mut all = self.new;
        for (_, entry) in &mut all {
            let ehr = self.ehrs.get(entry.ehr as usize);
            entry.ehr = known.ehr(ehr.ok_or_else(|| internal("no EHR"))?);
        }
        all.extend(self.gone);
        known.with(all)
    }
}

/// The failure for a broken invariant.
fn internal(what: &str) -> Failure {
    Failure::Data(format!("an invariant of the sync is broken: {what}"))
}

/// Returns the microseconds since 0001-01-01 of a time of commit.
fn micros_of(text: &str) -> Option<i64> {
    Temporal::parse(TemporalKind::DateTime, text).map(|time| time.earliest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataOptions;
    use crate::data::owner::EhrFrom;
    use crate::server_options::ServerOptions;
    use aqlite::aql::ResultColumn;
    use aqlite::arrow::TableFormat;
    use aqlite::arrow::read::table;
    use aqlite::document::Number;
    use object_store::memory::InMemory;
    use object_store::path::Path as Key;
    use std::sync::Arc;

    /// Everything that a sync of the view of one column needs.
    struct Lake {
        view: SyncView,
        storage: Storage,
        progress: Progress,
    }

    impl Lake {
        fn new() -> Lake {
            let store = Arc::new(InMemory::new());
            let storage = Storage::new(store, Key::default(), String::from("s3://b"), None);
            Lake {
                view: SyncView {
                    name: String::from("v"),
                    aql: String::new(),
                    query: String::new(),
                    template: None,
                },
                storage: storage.unwrap(),
                progress: Progress::of_unknown("rows"),
            }
        }

        fn changes<'l>(&'l self, known: &'l Objects, types: Option<ColumnTypes>) -> Changes<'l> {
            let context = SyncContext {
                view: &self.view,
                storage: &self.storage,
                known,
                sync: 1,
                identifiers: None,
                held_bytes: 0,
                is_incomplete: false,
                is_dry: false,
                progress: &self.progress,
            };
            Changes::new(context, types)
        }
    }

    /// Returns rows of a column `x`, each of an object of its own.
    fn part(cells: &[(&str, Cell<&str>)]) -> ResultSet {
        let names = ["x", "e", "v", "t"];
        let columns = names.map(|name| ResultColumn {
            name: name.to_owned(),
            path: None,
        });
        let rows = cells.iter().map(|(object, cell)| {
            vec![
                cell.to_owned(),
                Cell::Text(String::from("ehr")),
                Cell::Text(format!("{object}::s::1")),
                Cell::Null,
            ]
        });
        ResultSet::from_rows(columns.to_vec(), rows).unwrap()
    }

    fn found<'l>(
        lake: &'l Lake,
        known: &'l Objects,
        types: Option<ColumnTypes>,
        parts: &[ResultSet],
    ) -> Found<'l> {
        let mut changes = lake.changes(known, types);
        for part in parts {
            changes.take(part.clone()).unwrap();
        }
        let source = LakeSource::open(
            &DataOptions {
                data: vec![String::from("absent")],
                ehr_map: None,
                ehr_from: EhrFrom::Folder,
                skip_invalid: false,
                no_cache: true,
                cache_dir: None,
            },
            &ServerOptions::default(),
        );
        changes.finish(&source.unwrap(), None).unwrap()
    }

    const NUMBERS: [Cell<&str>; 3] = [
        Cell::Number(Number::Token("1.5")),
        Cell::Number(Number::Token("2.25")),
        Cell::Text("many"),
    ];

    #[test]
    fn files_have_one_type_of_each_column_after_the_second_pass() {
        let (lake, known) = (Lake::new(), Objects::default());
        let [one, two, many] = NUMBERS;
        let parts = [
            part(&[]),
            part(&[("a", one)]),
            part(&[("b", two), ("c", many)]),
        ];
        let first = found(&lake, &known, None, &parts);
        assert!(first.writer.is_none(), "a text is no number");
        let mut second = found(&lake, &known, Some(first.types.clone()), &parts);
        assert_eq!(second.types, first.types);
        assert_eq!((second.rows, second.index.changed()), (3, 3));
        let files = second.writer.as_mut().unwrap().take_files().unwrap();
        let rows: Vec<Vec<String>> = files
            .iter()
            .flat_map(|file| {
                let bytes = lake.storage.expect(&file.name).unwrap();
                table(TableFormat::Parquet, bytes).unwrap().rows
            })
            .collect();
        let cells: Vec<&str> = rows.iter().map(|row| row[6].as_str()).collect();
        assert_eq!(cells, ["1.5", "2.25", "\"many\""]);
        assert_eq!(files.len(), 1);
    }

    #[test]
    fn metadata_of_a_file_are_those_of_its_rows() {
        let (lake, known) = (Lake::new(), Objects::default());
        let [one, two, _] = NUMBERS;
        let parts = [
            part(&[("a", one)]),
            part(&[("b", two)]),
            part(&[("c", two)]),
        ];
        let mut found = found(&lake, &known, None, &parts);
        let files = found.writer.as_mut().unwrap().take_files().unwrap();
        let rows: Vec<u64> = files.iter().map(|file| file.rows).collect();
        assert_eq!(rows, [1, 2], "the second file has two decimals");
    }

    #[test]
    fn object_whose_rows_come_apart_is_refused() {
        let (lake, known) = (Lake::new(), Objects::default());
        let [one, two, _] = NUMBERS;
        let parts = [part(&[("a", one)]), part(&[("b", two), ("a", two)])];
        let apart = found(&lake, &known, None, &parts)
            .index
            .applied(Objects::default());
        assert!(apart.is_err());
        let before = found(&lake, &known, None, &parts[..1]);
        let before = before.index.applied(Objects::default()).unwrap();
        let mut changes = lake.changes(&before, None);
        changes.take(parts[0].clone()).unwrap();
        assert!(changes.take(parts[1].clone()).is_err());
    }

    #[test]
    fn rows_that_are_sent_again_are_found_once() {
        let (lake, known) = (Lake::new(), Objects::default());
        let mut changes = lake.changes(&known, None);
        let one = part(&[("a", NUMBERS[0])]);
        changes.take(one.clone()).unwrap();
        changes.restart().unwrap();
        assert!(changes.table.is_some(), "the columns are still known");
        changes.take(one).unwrap();
        assert_eq!((changes.rows, changes.new.len()), (1, 1));
    }
}
