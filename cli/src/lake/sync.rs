//! The command `lake sync`: the rows of views as datasets, renewed by each run.
//!
//! Data files, the index of objects and the metadata of a table are written first. The state, which
//! names them, is written last. A sync that is killed has changed nothing, and the next one removes
//! its files.

use super::changes::Changes;
use super::columns::Columns;
use super::files::{FileWriter, Removed, holds};
use super::iceberg::{self, TableChange};
use super::objects::{Objects, checksum};
use super::pseudonym::Pseudonyms;
use super::source::{Source, ViewRows};
use super::state::{DataFile, LakeState, ObjectsFile, ViewState, Watermark};
use super::storage::Storage;
use super::sync_views::{SyncView, views_of};
use crate::data::DataOptions;
use crate::outcome::{Failure, Outcome};
use crate::progress::Progress;
use aqlite::arrow::{ColumnTypes, has_same_columns};
use clap::Args;
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;

/// The options of `lake sync`.
#[derive(Args)]
pub struct SyncOptions {
    #[command(flatten)]
    pub data: DataOptions,
    /// The place of the lake: a folder, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE")]
    pub to: String,
    /// A view: the name of its dataset and the file of its query; may be repeated
    #[arg(long = "view", value_name = "NAME=FILE.aql")]
    pub views: Vec<String>,
    /// A query that is stored in the repository of -d, as a view; may be repeated
    #[arg(long = "stored", value_name = "NAME")]
    pub stored: Vec<String>,
    /// A template, whose flat tables are views; may be repeated. Without any view, the templates of -d
    #[arg(long = "template", value_name = "FILE.opt")]
    pub templates: Vec<PathBuf>,
    /// A file with a secret key: ids of EHRs and subjects are replaced by keyed hashes
    #[arg(long, value_name = "FILE")]
    pub pseudonyms: Option<PathBuf>,
    /// Remove the datasets of these views, and write them again
    #[arg(long)]
    pub rebuild: bool,
    /// Remove all rows of the lake if the data have none of its EHRs any more
    #[arg(long)]
    pub allow_empty: bool,
    /// Report what would be written and removed, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The bearer token for the server of -d; without it AQLITE_AUTHORIZATION is sent, if it is set
    #[arg(
        long,
        value_name = "TOKEN",
        env = "AQLITE_TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
}

/// The changes that a sync has written for a view.
#[derive(Default)]
struct Summary {
    rows: usize,
    changed: usize,
    deleted: usize,
    removed_ehrs: usize,
    removed_objects: usize,
    rewritten_files: usize,
}

/// Runs the command.
///
/// # Errors
/// If the data cannot be read, or the lake cannot be written.
pub fn run(options: &SyncOptions) -> Result<Outcome, Failure> {
    let pseudonyms = options
        .pseudonyms
        .as_deref()
        .map(Pseudonyms::read)
        .transpose()?;
    let source = Source::open(&options.data, options.token.as_deref())?;
    let views = views_of(options, &source)?;
    let storage = Storage::open(&options.to)?;
    let state = LakeState::read(&storage)?;
    let mut lake = Lake {
        options,
        source,
        storage,
        state,
        pseudonyms,
    };
    lake.check_key()?;
    if !options.dry_run {
        lake.clean()?;
    }
    for view in &views {
        lake.sync(view)?;
    }
    if !options.dry_run {
        lake.clean()?;
    }
    Ok(lake.source.report())
}

/// Reports the outcome of a view. A reader that has closed the output does not end the sync.
fn report(view: &str, outcome: &str) {
    let _ = writeln!(std::io::stdout(), "{view}: {outcome}");
}

/// A lake that is being synchronized.
struct Lake<'o> {
    options: &'o SyncOptions,
    source: Source,
    storage: Storage,
    state: LakeState,
    pseudonyms: Option<Pseudonyms>,
}

impl Lake<'_> {
    /// Checks that the lake has the ids that the options ask for.
    fn check_key(&mut self) -> Result<(), Failure> {
        let key = self.pseudonyms.as_ref().map(Pseudonyms::fingerprint);
        if self.state.views.is_empty() {
            self.state.key = key;
        } else if key != self.state.key {
            let problem = match (&self.state.key, &key) {
                (Some(_), None) => "the lake has pseudonyms: name their key by --pseudonyms",
                (None, _) => "the lake has the ids themselves: write pseudonyms to another place",
                (Some(_), Some(_)) => "the lake has pseudonyms of another key",
            };
            return Err(Failure::Usage(String::from(problem)));
        }
        Ok(())
    }

    /// Removes the files that no state names: those of a sync that was killed, or those that a sync
    /// has replaced.
    fn clean(&self) -> Result<(), Failure> {
        let mut named: HashSet<String> = HashSet::new();
        for (view, state) in &self.state.views {
            named.extend(state.names(view));
            iceberg::publish(&self.storage, view, state)?;
        }
        for folder in self.folders() {
            for name in self.storage.list(&folder)? {
                if !named.contains(&name) {
                    self.storage.remove(&name)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the folders with files of the lake. Other files beside them are left alone.
    fn folders(&self) -> Vec<String> {
        let mut folders = vec![String::from("_aqlite/objects")];
        for view in self.state.views.keys() {
            folders.push(format!("{view}/data"));
            folders.push(format!("{view}/metadata"));
        }
        folders
    }

    /// Synchronizes a view, and reports the changes.
    fn sync(&mut self, view: &SyncView) -> Result<(), Failure> {
        let before = self.before(view)?;
        let watermark = self.source.watermark()?;
        let is_same = watermark.is_some() && before.watermark == watermark;
        if is_same {
            report(&view.name, &Summary::default().text(false));
            return Ok(());
        }
        let since = before.watermark.as_ref();
        let rows = self.source.rows(&view.query, since)?;
        let (after, summary) = self.write(view, &before, (&rows, watermark))?;
        report(&view.name, &summary.text(self.options.dry_run));
        if let Some(after) = after {
            self.state.views.insert(view.name.clone(), after.clone());
            self.state.write(&self.storage)?;
            iceberg::publish(&self.storage, &view.name, &after)?;
        }
        Ok(())
    }

    /// Returns the state of a view before this sync.
    fn before(&self, view: &SyncView) -> Result<ViewState, Failure> {
        match self.state.views.get(&view.name) {
            // The numbers of syncs go on, so that no file gets the name of one that is in use.
            Some(state) if self.options.rebuild => Ok(ViewState {
                sync: state.sync,
                ..ViewState::new(&view.aql)
            }),
            Some(state) if state.aql != view.aql => Err(Failure::Data(format!(
                "the dataset `{}` has the rows of another query: choose another name, or write it again with --rebuild",
                view.name
            ))),
            Some(state) => Ok(state.clone()),
            None => Ok(ViewState::new(&view.aql)),
        }
    }

    /// Writes the changes of a view. Returns its new state; `None` for a dry run.
    fn write(
        &self,
        view: &SyncView,
        before: &ViewState,
        (rows, watermark): (&ViewRows, Option<Watermark>),
    ) -> Result<(Option<ViewState>, Summary), Failure> {
        let columns = Columns::of(&rows.result, &view.name)?;
        let known = before.read_objects(&self.storage)?;
        let removed = Removed {
            ehrs: self.removed_ehrs(&known, rows)?,
            objects: self.removed_objects(&known, rows)?,
        };
        let known = match removed.is_empty() {
            true => known,
            false => known.without(&removed),
        };
        let sync = before.sync + 1;
        let key = (self.pseudonyms.as_ref(), sync);
        let changes = Changes::find((rows, &columns), &known, &self.source, key)?;
        let mut summary = Summary {
            rows: changes.len(),
            changed: changes.changed(),
            deleted: changes.gone(),
            removed_ehrs: removed.ehrs.len(),
            removed_objects: removed.objects.len(),
            rewritten_files: 0,
        };
        if self.options.dry_run {
            return Ok((None, summary));
        }
        let mut after = ViewState {
            watermark,
            ..before.clone()
        };
        if summary.rows > 0 || !removed.is_empty() {
            after.sync = sync;
            let written = self.write_files(view, &mut after, (&changes, &columns, &removed));
            summary.rewritten_files = written?;
            self.write_objects(view, &mut after, &changes.objects())?;
        }
        Ok((Some(after), summary))
    }

    /// Returns the EHRs of the dataset that the data do not have any more.
    fn removed_ehrs(&self, known: &Objects, rows: &ViewRows) -> Result<HashSet<String>, Failure> {
        if rows.touched.is_some() {
            return Ok(HashSet::new());
        }
        let mut present = self.source.ehrs()?;
        if let Some(pseudonyms) = &self.pseudonyms {
            present = present.iter().map(|ehr| pseudonyms.of_ehr(ehr)).collect();
        }
        let removed = known.absent_ehrs(&present);
        let is_all = !removed.is_empty() && known.ehrs() == removed.len();
        if is_all && !self.options.allow_empty {
            return Err(Failure::Data(format!(
                "the data have none of the {} EHRs of the lake: are they the right data? --allow-empty removes all rows",
                removed.len()
            )));
        }
        Ok(removed)
    }

    /// Returns the objects of the dataset that were removed physically, in EHRs that exist.
    fn removed_objects(
        &self,
        known: &Objects,
        rows: &ViewRows,
    ) -> Result<HashSet<String>, Failure> {
        let present = match rows.touched {
            None if known.ehrs() > 0 => self.source.objects()?,
            _ => None,
        };
        let Some(present) = present else {
            return Ok(HashSet::new());
        };
        let ids = known.iter().map(|(id, _)| id);
        Ok(ids.filter(|id| !present.contains(*id)).cloned().collect())
    }

    /// Writes the data files and the metadata of a sync. Returns the number of older files that were
    /// written again.
    fn write_files(
        &self,
        view: &SyncView,
        state: &mut ViewState,
        (changes, columns, removed): (&Changes<'_>, &Columns, &Removed),
    ) -> Result<usize, Failure> {
        let types = observed(state.types.as_ref(), changes, columns)?;
        let old_types = state.types.clone().unwrap_or_else(|| types.clone());
        let progress = Progress::of_rows(changes.len() as u64 + state.total().rows, "writing");
        let mut writer = FileWriter {
            storage: &self.storage,
            view: &view.name,
            aql: &view.aql,
            columns,
            types: &old_types,
            sync: state.sync,
            written: 0,
            progress: &progress,
        };
        let old_schema = writer.schema()?;
        writer.types = &types;
        let schema = writer.schema()?;
        let is_new_schema = !has_same_columns(&old_schema, &schema);
        let (mut all, mut rewritten) = (Vec::with_capacity(state.files.len()), 0);
        for file in &state.files {
            let is_other =
                is_new_schema || !removed.is_empty() && holds(&self.storage, file, removed)?;
            if is_other {
                all.extend(writer.rewrite(std::slice::from_ref(file), removed)?);
                rewritten += 1;
            } else {
                all.push(file.clone());
            }
        }
        let added: Vec<DataFile> = writer.write(changes.rows())?;
        progress.finish();
        all.extend(added.iter().cloned());
        let change = TableChange {
            view: &view.name,
            sync: state.sync,
            schema: &schema,
            all: &all,
            added: (rewritten == 0).then_some(added.as_slice()),
            is_new_schema,
        };
        state.iceberg = iceberg::write(&self.storage, &state.iceberg, &change)?;
        state.files = all;
        state.types = Some(types);
        Ok(rewritten)
    }

    fn write_objects(
        &self,
        view: &SyncView,
        state: &mut ViewState,
        objects: &Objects,
    ) -> Result<(), Failure> {
        let bytes = objects.bytes();
        let name = format!("_aqlite/objects/{}-{:08}.index", view.name, state.sync);
        let checksum = checksum(&bytes);
        self.storage.write(&name, bytes)?;
        state.objects = Some(ObjectsFile { name, checksum });
        Ok(())
    }
}

/// Returns the types of columns after the rows of a sync.
fn observed(
    before: Option<&ColumnTypes>,
    changes: &Changes<'_>,
    columns: &Columns,
) -> Result<ColumnTypes, Failure> {
    let mut types = match before {
        Some(types) => types.clone(),
        None => ColumnTypes::new(columns.all.len()),
    };
    let mut rows = changes.rows().peekable();
    while rows.peek().is_some() {
        let batch = rows.by_ref().take(aqlite::arrow::BATCH_ROWS);
        let batch = columns.result(batch.collect::<Result<_, _>>()?)?;
        batch.rows().for_each(|row| types.observe(row));
    }
    Ok(types)
}

impl Summary {
    /// Returns the words of the summary.
    fn text(&self, is_dry: bool) -> String {
        let is_empty = self.rows + self.removed_ehrs + self.removed_objects == 0;
        let new_rows = self.rows.saturating_sub(self.deleted);
        let mut parts = match is_empty {
            true => vec![String::from("no changes")],
            false => vec![format!("{new_rows} rows of {} compositions", self.changed)],
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
        let text = parts.join(", ");
        match is_dry {
            true => format!("{text} (dry run: nothing was written)"),
            false => text,
        }
    }
}
