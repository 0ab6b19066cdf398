//! The sync of one view.

use super::changes::{Changes, Found, HELD_BYTES, SyncContext};
use super::columns::Columns;
use super::files::{FileWriter, Removed, holds, may_have, observe_ids, schema_of};
use super::iceberg::{self, TableChange};
use super::names;
use super::objects::{Objects, checksum};
use super::pseudonym::Identifiers;
use super::source::{LakeSource, Touched, columns_of};
use super::state::{CheckedFile, DataFile, ViewState, Watermark};
use super::storage::Storage;
use super::sync_views::SyncView;
use crate::outcome::Failure;
use crate::progress::Progress;
use aqlite::aql::author_texts;
use aqlite::arrow::{ColumnTypes, has_same_columns};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// The passes over the rows of a view. The second one knows all types, unless the data have changed
/// meanwhile.
const PASSES: usize = 8;

/// The sync of one view.
pub struct ViewSync<'v> {
    /// The view.
    pub view: &'v SyncView,
    /// The place of the lake.
    pub storage: &'v Storage,
    /// The data.
    pub source: &'v LakeSource,
    /// The state of the data before their rows were read.
    pub watermark: Option<&'v Watermark>,
    /// The states of all views of the lake before the sync.
    pub lake: &'v BTreeMap<String, ViewState>,
    /// The ids that have pseudonyms; `None` if all ids are written as they are.
    pub identifiers: Option<&'v Identifiers<'v>>,
    /// Whether all EHRs of the dataset may be removed.
    pub may_remove_all: bool,
    /// Whether the dataset is written anew, without its earlier rows.
    pub is_rebuild: bool,
    /// Whether nothing is written.
    pub is_dry: bool,
    /// The progress in rows.
    pub progress: &'v Progress,
}

/// The files with ids that were unknown when they were written, and have pseudonyms now.
struct Renamed {
    files: HashSet<String>,
    /// The types of the dataset, also with these pseudonyms.
    types: Option<ColumnTypes>,
}

/// The changes of the files of earlier syncs.
#[derive(Clone, Copy)]
struct Older<'o> {
    /// The EHRs and objects whose rows leave them.
    removed: &'o Removed,
    /// The names of those with ids that have pseudonyms now.
    renamed: &'o HashSet<String>,
}

/// The changes that a sync has written for a view.
#[derive(Default)]
pub struct Summary {
    rows: u64,
    changed: usize,
    deleted: usize,
    removed_ehrs: usize,
    removed_objects: usize,
    rewritten_files: usize,
    /// EHRs that are not in the data, and compositions without rows, which stay because documents
    /// could not be read.
    kept_ehrs: usize,
    kept: usize,
}

impl ViewSync<'_> {
    /// Writes the changes of the view. Returns its new state; `None` for a dry run.
    ///
    /// # Errors
    /// If the data cannot be read, or a file cannot be written.
    pub fn run(&self, before: &ViewState) -> Result<(Option<ViewState>, Summary), Failure> {
        self.check_query()?;
        let touched = self.source.touched(before.watermark.as_ref())?;
        let known = before.read_objects(self.storage)?;
        let (removed, is_incomplete, kept_ehrs) = self.removed_now(&known, touched.as_ref())?;
        // The removed objects leave the index first, so that they are not reported as deleted.
        let known = match removed.is_empty() {
            true => known,
            false => known.without(&removed),
        };
        let context = self.context(&known, (before.sync + 1, is_incomplete));
        let renamed = self.renamed(before)?;
        let mut found = self.find(&context, renamed.types.clone(), touched.as_ref())?;
        let mut summary = Summary::of(&found, &removed, kept_ehrs);
        if self.is_dry {
            return Ok((None, summary));
        }
        let mut after = ViewState {
            // Incomplete data are read again by the next sync, which reports their problems again.
            watermark: self.watermark.filter(|_| !is_incomplete).cloned(),
            removals: None,
            pseudonyms: self.issued_count(),
            ..before.clone()
        };
        if summary.rows > 0 || !removed.is_empty() || !renamed.files.is_empty() {
            after.sync = context.sync;
            let older = Older {
                removed: &removed,
                renamed: &renamed.files,
            };
            summary.rewritten_files = self.write(&context, &mut after, (&mut found, older))?;
            let index = found.index;
            self.write_objects(&mut after, &index.applied(known)?)?;
        }
        Ok((Some(after), summary))
    }

    /// Removes the EHRs that the data lack from the dataset, lets pseudonyms replace the ids that have
    /// become known, and changes nothing else. Returns the new state; `None` for a dry run.
    ///
    /// # Errors
    /// As [`ViewSync::run`].
    pub fn remove(&self, before: &ViewState) -> Result<(Option<ViewState>, Summary), Failure> {
        let last = before.removals.as_ref().or(before.watermark.as_ref());
        let touched = self.source.touched(last)?;
        let known = before.read_objects(self.storage)?;
        let (removed, is_incomplete, kept_ehrs) = self.removed_now(&known, touched.as_ref())?;
        let columns = Rc::new(Columns::of(
            &columns_of(&self.view.query)?,
            &self.view.name,
        )?);
        let known = known.without(&removed);
        let context = self.context(&known, (before.sync + 1, is_incomplete));
        let renamed = self.renamed(before)?;
        let types = renamed.types;
        let types = types.unwrap_or_else(|| ColumnTypes::new(columns.all.len()));
        let writer = FileWriter::new(&context, Rc::clone(&columns), &types)?;
        let mut found = Found::without_rows(types, columns, writer);
        let mut summary = Summary::of(&found, &removed, kept_ehrs);
        if self.is_dry {
            return Ok((None, summary));
        }
        let mut after = ViewState {
            removals: self.watermark.filter(|_| !is_incomplete).cloned(),
            pseudonyms: self.issued_count(),
            ..before.clone()
        };
        if !removed.is_empty() || !renamed.files.is_empty() {
            after.sync = context.sync;
            let older = Older {
                removed: &removed,
                renamed: &renamed.files,
            };
            summary.rewritten_files = self.write(&context, &mut after, (&mut found, older))?;
            self.write_objects(&mut after, &known)?;
        }
        Ok((Some(after), summary))
    }

    /// Returns what is removed from the dataset, whether documents could not be read, and the number
    /// of EHRs that stay for this reason only.
    fn removed_now(
        &self,
        known: &Objects,
        touched: Option<&Touched>,
    ) -> Result<(Removed, bool, usize), Failure> {
        let removed = self.removed(known, touched)?;
        Ok(match self.source.is_incomplete()? {
            true => (Removed::default(), true, removed.ehrs.len()),
            false => (removed, false, 0),
        })
    }

    /// Returns the files with ids that were unknown when they were written.
    fn renamed(&self, before: &ViewState) -> Result<Renamed, Failure> {
        let mut renamed = Renamed {
            files: HashSet::new(),
            types: before.types.clone(),
        };
        let (Some(identifiers), Some(types)) = (self.identifiers, &mut renamed.types) else {
            return Ok(renamed);
        };
        let ids = identifiers.since(before.pseudonyms.unwrap_or_default());
        if ids.is_empty() || self.is_dry {
            return Ok(renamed);
        }
        for file in &before.files {
            if may_have(self.storage, file, &ids)?
                && observe_ids(self.storage, file, identifiers, types)?
            {
                renamed.files.insert(file.name.clone());
            }
        }
        Ok(renamed)
    }

    fn issued_count(&self) -> Option<usize> {
        self.identifiers.map(|ids| ids.issued().len())
    }

    fn context<'c>(
        &'c self,
        known: &'c Objects,
        (sync, is_incomplete): (u64, bool),
    ) -> SyncContext<'c> {
        SyncContext {
            view: self.view,
            storage: self.storage,
            known,
            sync,
            identifiers: self.identifiers,
            held_bytes: HELD_BYTES,
            is_incomplete,
            is_dry: self.is_dry,
            progress: self.progress,
        }
    }

    /// Finds the changes, and writes their rows.
    fn find<'c>(
        &self,
        context: &SyncContext<'c>,
        mut types: Option<ColumnTypes>,
        touched: Option<&Touched>,
    ) -> Result<Found<'c>, Failure> {
        for _ in 0..PASSES {
            let mut changes = Changes::new(*context, types);
            self.source.send(&self.view.query, touched, &mut changes)?;
            let found = changes.finish(self.source, touched)?;
            if found.writer.is_some() {
                return Ok(found);
            }
            types = Some(found.types);
        }
        Err(Failure::Data(String::from(
            "the types of columns change with each pass over the data: run the sync again",
        )))
    }

    /// Returns what is removed from the dataset: EHRs that the data do not have any more, and objects
    /// that were removed physically from EHRs that exist.
    fn removed(&self, known: &Objects, touched: Option<&Touched>) -> Result<Removed, Failure> {
        // `touched` is present only if nothing but new versions changed since the last sync.
        if touched.is_some() || known.ehrs() == 0 && !self.is_rebuild {
            return Ok(Removed::default());
        }
        let mut present = self.source.ehrs()?;
        if let Some(identifiers) = self.identifiers {
            let key = identifiers.key();
            present = present.iter().map(|ehr| key.of_ehr(ehr)).collect();
        }
        let ehrs = known.absent_ehrs(&present);
        // A rebuild begins without known EHRs, and replaces the rows of all.
        if known.ehrs() == ehrs.len() && !self.may_remove_all {
            self.check_lake(&present)?;
        }
        let absent: HashSet<String> = match self.source.objects()? {
            Some(present) => {
                let ids = known.iter().map(|(id, _)| id);
                let absent = ids.filter(|id| present.binary_search(id).is_err());
                absent.map(ToString::to_string).collect()
            }
            None => HashSet::new(),
        };
        // An object of a removed EHR may have earlier rows with another EHR, from which it moved.
        let of_ehrs: HashSet<String> = known.of_ehrs(&ehrs).map(ToString::to_string).collect();
        Ok(Removed {
            absent: &absent - &of_ehrs,
            objects: &absent | &of_ehrs,
            ehrs,
        })
    }

    /// Checks that neither the name of the view nor the text of the query has an id with a pseudonym:
    /// each file contains the text, and so does the state of the lake.
    ///
    /// # Errors
    /// If one has.
    fn check_query(&self) -> Result<(), Failure> {
        let Some(identifiers) = self.identifiers else {
            return Ok(());
        };
        let mut texts = author_texts(&self.view.aql);
        texts.push(self.view.name.clone());
        match texts.iter().find_map(|text| identifiers.named_in(text)) {
            Some(id) => Err(Failure::Data(format!(
                "the query of `{}` names the id `{id}` of a patient, and a lake with pseudonyms contains its text: choose the rows by another condition, and name columns and the view otherwise",
                self.view.name
            ))),
            None => Ok(()),
        }
    }

    /// Checks that the data have an EHR of any view of the lake, as the last sync has left it. A wrong
    /// or empty data source must not erase the lake.
    ///
    /// # Errors
    /// If they have none.
    fn check_lake(&self, present: &HashSet<String>) -> Result<(), Failure> {
        let mut absent = HashSet::new();
        for view in self.lake.values() {
            let known = match view.read_objects(self.storage) {
                // A rebuild repairs a damaged index.
                Err(_) if self.is_rebuild => return Ok(()),
                known => known?,
            };
            let absent_of_view = known.absent_ehrs(present);
            if absent_of_view.len() < known.ehrs() {
                return Ok(());
            }
            absent.extend(absent_of_view);
        }
        if absent.is_empty() {
            return Ok(());
        }
        Err(Failure::Data(format!(
            "the data have none of the {} EHRs of the lake: are they the right data? --allow-empty removes all rows",
            absent.len()
        )))
    }

    /// Writes the older files that the changes concern again, and the metadata of the sync. Returns
    /// the number of these files.
    fn write(
        &self,
        context: &SyncContext<'_>,
        state: &mut ViewState,
        (found, older): (&mut Found<'_>, Older<'_>),
    ) -> Result<usize, Failure> {
        let Some(writer) = &mut found.writer else {
            return Ok(0);
        };
        let added = writer.take_files()?;
        let is_new_schema = match &state.types {
            Some(types) => {
                let schema = schema_of(context, &found.columns, types)?;
                !has_same_columns(&schema, writer.schema())
            }
            None => false,
        };
        let (mut all, rewritten) =
            self.older_files(writer, &state.files, (older, is_new_schema))?;
        all.extend(added.iter().cloned());
        let change = TableChange {
            view: &self.view.name,
            sync: context.sync,
            schema: writer.schema(),
            all: &all,
            // After a rewrite, the snapshots start again with all files.
            added: (rewritten == 0).then_some(added.as_slice()),
            is_new_schema,
        };
        state.iceberg = iceberg::write(self.storage, &state.iceberg, &change)?;
        state.files = all;
        state.types = Some(found.types.clone());
        Ok(rewritten)
    }

    /// Returns the files of earlier syncs as they are now, and the number of those that were written
    /// again.
    fn older_files(
        &self,
        writer: &mut FileWriter<'_>,
        files: &[DataFile],
        (Older { removed, renamed }, is_new_schema): (Older<'_>, bool),
    ) -> Result<(Vec<DataFile>, usize), Failure> {
        let (mut all, mut rewritten) = (Vec::with_capacity(files.len()), 0);
        for file in files {
            let is_other = is_new_schema
                || renamed.contains(&file.name)
                || !removed.is_empty() && holds(self.storage, file, removed)?;
            if is_other {
                all.extend(writer.rewrite(file, removed)?);
                rewritten += 1;
            } else {
                all.push(file.clone());
            }
        }
        Ok((all, rewritten))
    }

    fn write_objects(&self, state: &mut ViewState, objects: &Objects) -> Result<(), Failure> {
        let bytes = objects.bytes();
        let name = names::INDEX.name(&self.view.name, [state.sync]);
        let checksum = checksum(&bytes);
        self.storage.write(&name, bytes)?;
        state.objects = Some(CheckedFile { name, checksum });
        Ok(())
    }
}

impl Summary {
    fn of(found: &Found<'_>, removed: &Removed, kept_ehrs: usize) -> Summary {
        Summary {
            rows: found.rows,
            changed: found.index.changed(),
            deleted: found.index.deleted(),
            removed_ehrs: removed.ehrs.len(),
            removed_objects: removed.absent.len(),
            rewritten_files: 0,
            kept_ehrs,
            kept: found.kept,
        }
    }

    /// Returns whether the dataset stays as it is.
    pub fn is_empty(&self) -> bool {
        !self.has_changes() && !self.is_held()
    }

    fn has_changes(&self) -> bool {
        self.rows > 0 || self.removed_ehrs + self.removed_objects + self.rewritten_files > 0
    }

    /// Returns whether rows stay only because documents could not be read.
    pub fn is_held(&self) -> bool {
        self.kept_ehrs + self.kept > 0
    }

    /// Returns the words of the summary.
    pub fn text(&self, is_dry: bool) -> String {
        let new_rows = self.rows.saturating_sub(self.deleted as u64);
        let mut parts = match self.has_changes() {
            true => vec![format!("{new_rows} rows of {} compositions", self.changed)],
            false => vec![String::from("no changes")],
        };
        if self.deleted > 0 {
            parts.push(format!("{} deleted compositions", self.deleted));
        }
        if self.removed_ehrs > 0 {
            parts.push(format!("{} removed EHRs", self.removed_ehrs));
        }
        if self.removed_objects > 0 {
            parts.push(format!("{} removed compositions", self.removed_objects));
        }
        if self.rewritten_files > 0 {
            parts.push(format!("{} files written again", self.rewritten_files));
        }
        if self.kept_ehrs > 0 {
            parts.push(format!("{} absent EHRs kept", self.kept_ehrs));
        }
        if self.kept > 0 {
            parts.push(format!("{} absent compositions kept", self.kept));
        }
        let text = parts.join(", ");
        match is_dry {
            true => format!("{text} (dry run: nothing was written)"),
            false => text,
        }
    }
}
