//! The command `lake sync`: the rows of views as datasets, renewed by each run.
//!
//! Data files, the index of objects and the metadata of a table are written first. The state, which
//! names them, is written last. A sync that is killed has changed nothing, and the next one removes
//! its files. Views are synchronized by several threads, each with a reader of the data of its own.

use super::iceberg;
use super::pseudonym::{Identifiers, Pseudonyms};
use super::source::LakeSource;
use super::state::{LakeState, ViewState, Watermark};
use super::storage::Storage;
use super::sync_drop::{check_names, clean, drop_views, reserve};
use super::sync_view::{Summary, ViewSync};
use super::sync_views::{SyncView, views_of};
use crate::data::DataOptions;
use crate::outcome::{Failure, Outcome};
use crate::progress::Progress;
use crate::server_options::ServerOptions;
use crate::terminal::report_line;
use clap::Args;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

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
    /// A file with a secret key: keyed hashes replace ids of EHRs and subjects, also of removed ones
    #[arg(long, value_name = "FILE")]
    pub pseudonyms: Option<PathBuf>,
    /// Remove the datasets of these views, and write them again
    #[arg(long)]
    pub rebuild: bool,
    /// Remove the dataset of a view from the lake; may be repeated, and needs no data
    #[arg(long = "drop", value_name = "NAME")]
    pub dropped: Vec<String>,
    /// Remove all rows of the lake if the data have none of its EHRs any more
    #[arg(long)]
    pub allow_empty: bool,
    /// Report what would be written and removed, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub server: ServerOptions,
}

impl SyncOptions {
    /// Returns whether the options name a view.
    fn has_views(&self) -> bool {
        !(self.views.is_empty() && self.stored.is_empty() && self.templates.is_empty())
    }
}

/// Runs the command.
///
/// # Errors
/// If the data cannot be read, or the lake cannot be written.
pub fn run(options: &SyncOptions) -> Result<Outcome, Failure> {
    if !options.dropped.is_empty() && !options.has_views() && options.data.data.is_empty() {
        let storage = Storage::open(&options.to, options.dry_run)?;
        let mut state = LakeState::read(&storage)?;
        return drop_views(options, &storage, &mut state).map(|()| Outcome::Success);
    }
    let pseudonyms = options
        .pseudonyms
        .as_deref()
        .map(Pseudonyms::read)
        .transpose()?;
    let source = LakeSource::open(&options.data, &options.server)?;
    let views = views_of(options, &source)?;
    let storage = Storage::open(&options.to, options.dry_run)?;
    let mut state = LakeState::read(&storage)?;
    // A lake must not mix ids and pseudonyms, or pseudonyms of two keys: rows could not be joined.
    check_key(&mut state, pseudonyms.as_ref())?;
    check_names(options, &views, &state)?;
    drop_views(options, &storage, &mut state)?;
    reserve(options, &views, (&storage, &mut state))?;
    if !options.dry_run {
        clean(&storage, &state)?;
    }
    let others = others(&views, &state);
    let lake = Lake {
        options,
        // It is read before the rows, so a later change is found by the next sync.
        watermark: source.watermark()?,
        storage: &storage,
        pseudonyms: pseudonyms.as_ref(),
        identifiers: Mutex::default(),
        before: state.views.clone(),
        progress: Progress::of_unknown("rows read"),
        queue: Mutex::new(views.iter().enumerate().collect()),
        committed: Mutex::new(Committed {
            state,
            reports: vec![None; views.len()],
            reported: 0,
            is_held: false,
            failures: Vec::new(),
        }),
    };
    lake.sync_all(&views, &source)?;
    lake.remove_from(&others, &source);
    lake.progress.finish();
    let committed = lake.committed.into_inner();
    let mut committed = committed.unwrap_or_else(PoisonError::into_inner);
    warn_of(&others);
    if let Some(last) = committed.failures.pop() {
        for failure in committed.failures {
            failure.report();
        }
        return Err(last);
    }
    if !options.dry_run {
        clean(&storage, &committed.state)?;
    }
    let reported = source.report();
    if !committed.is_held {
        return Ok(reported);
    }
    report_line!(
        "error: documents could not be read, so EHRs and compositions that the data lack stay in the lake: mend or remove these files, and run the sync again"
    );
    Ok(Outcome::Findings)
}

/// Returns the datasets of the lake that a run does not name, with the views that made them.
fn others(views: &[SyncView], state: &LakeState) -> Vec<(String, Result<SyncView, Failure>)> {
    let is_named = |name: &str| views.iter().any(|view| view.name == name);
    let others = state.views.iter();
    let others = others.filter(|(name, view)| !is_named(name) && !view.is_reserved());
    others
        .map(|(name, view)| {
            (
                name.clone(),
                SyncView::new(name.clone(), view.aql.clone(), name),
            )
        })
        .collect()
}

/// Warns of datasets that a run does not name.
fn warn_of(others: &[(String, Result<SyncView, Failure>)]) {
    if others.is_empty() {
        return;
    }
    let names: Vec<String> = others.iter().map(|(name, _)| format!("`{name}`")).collect();
    report_line!(
        "warning: this run names no view of the datasets {}: only removed EHRs left them, and their other rows are those of an earlier sync. Name their views too, or remove one by --drop NAME",
        names.join(", ")
    );
}

/// Checks that the lake has the ids that the options ask for.
fn check_key(state: &mut LakeState, pseudonyms: Option<&Pseudonyms>) -> Result<(), Failure> {
    let key = pseudonyms.map(Pseudonyms::fingerprint);
    if state.views.is_empty() {
        if state.key != key {
            // Pseudonyms of another key are those of no id.
            state.issued = None;
        }
        state.key = key;
    } else if key != state.key {
        let problem = match (&state.key, &key) {
            (Some(_), None) => "the lake has pseudonyms: name their key by --pseudonyms",
            (None, _) => "the lake has the ids themselves: write pseudonyms to another place",
            (Some(_), Some(_)) => "the lake has pseudonyms of another key",
        };
        return Err(Failure::Usage(String::from(problem)));
    }
    Ok(())
}

/// A lake that is being synchronized.
struct Lake<'l> {
    options: &'l SyncOptions,
    /// The state of the data; `None` if it is unknown before they are read.
    watermark: Option<Watermark>,
    storage: &'l Storage,
    pseudonyms: Option<&'l Pseudonyms>,
    /// The ids that have pseudonyms, once a view needs them.
    identifiers: Mutex<Option<Arc<Identifiers<'l>>>>,
    /// The states of the views before this sync.
    before: BTreeMap<String, ViewState>,
    progress: Progress,
    /// The views that no thread has begun.
    queue: Mutex<VecDeque<(usize, &'l SyncView)>>,
    committed: Mutex<Committed>,
}

/// The part of a sync that is complete.
struct Committed {
    /// The state as it is stored.
    state: LakeState,
    /// The outcomes of the views, which are reported in their order.
    reports: Vec<Option<String>>,
    reported: usize,
    /// Whether rows stay only because documents could not be read.
    is_held: bool,
    /// The failures of views. The others are synchronized nevertheless.
    failures: Vec<Failure>,
}

impl<'l> Lake<'l> {
    /// Synchronizes all views. Threads share them, unless one is enough.
    fn sync_all(&self, views: &[SyncView], source: &LakeSource) -> Result<(), Failure> {
        let is_current = |view| self.before(view).is_ok_and(|view| self.is_current(&view));
        let changed = views.iter().filter(|view| !is_current(view)).count();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = match source {
            LakeSource::Server(_) => 1,
            LakeSource::Files(_) | LakeSource::Database(_) => threads.min(changed),
        };
        if threads > 1 {
            source.prepare()?;
        }
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.help());
            }
            self.sync_queue(source);
        });
        Ok(())
    }

    /// Synchronizes views in another thread, with the data opened again.
    fn help(&self) {
        let options = self.options;
        // Without it, the first thread synchronizes all views, or ends with the same failure.
        if let Ok(Some(source)) = LakeSource::another(&options.data, &options.server) {
            self.sync_queue(&source);
        }
    }

    /// Synchronizes the views of the queue, until it is empty or the user stops.
    fn sync_queue(&self, source: &LakeSource) {
        while let Some((number, view)) = self.next() {
            let Err(failure) = self.sync(number, view, source) else {
                continue;
            };
            if matches!(failure, Failure::Interrupted) {
                // An empty queue ends the other threads after their present view.
                lock(&self.queue).clear();
            }
            let mut committed = lock(&self.committed);
            committed.report(&view.name, number, "failed");
            committed.fail(failure);
        }
    }

    /// Takes a view from the queue. A lock in the head of a loop would be held by its body.
    fn next(&self) -> Option<(usize, &'l SyncView)> {
        lock(&self.queue).pop_front()
    }

    /// Synchronizes a view, and reports the changes.
    fn sync(&self, number: usize, view: &SyncView, source: &LakeSource) -> Result<(), Failure> {
        let before = self.before(view)?;
        before.check_files(&view.name, self.storage)?;
        if self.is_current(&before) {
            lock(&self.committed).report(&view.name, number, &Summary::default().text(false));
            return Ok(());
        }
        let identifiers = self.identifiers(source)?;
        let sync = self.view_sync(view, source, identifiers.as_deref());
        let (after, summary) = sync.run(&before)?;
        let mut committed = lock(&self.committed);
        committed.is_held |= summary.is_held();
        if let Some(after) = after {
            self.commit(&mut committed, &view.name, after)?;
        }
        committed.report(&view.name, number, &summary.text(self.options.dry_run));
        Ok(())
    }

    fn view_sync<'s>(
        &'s self,
        view: &'s SyncView,
        source: &'s LakeSource,
        identifiers: Option<&'s Identifiers<'s>>,
    ) -> ViewSync<'s> {
        ViewSync {
            view,
            storage: self.storage,
            source,
            watermark: self.watermark.as_ref(),
            lake: &self.before,
            identifiers,
            may_remove_all: self.options.allow_empty,
            is_rebuild: self.options.rebuild,
            is_dry: self.options.dry_run,
            progress: &self.progress,
        }
    }

    /// Commits a view when it is complete, so that a later failure keeps the earlier views.
    fn commit(
        &self,
        committed: &mut Committed,
        name: &str,
        after: ViewState,
    ) -> Result<(), Failure> {
        committed.state.views.insert(name.to_owned(), after);
        committed.state.write(self.storage)?;
        match committed.state.views.get(name) {
            Some(after) => iceberg::publish(self.storage, name, after),
            None => Ok(()),
        }
    }

    /// Removes the EHRs that the data lack from the datasets that the run does not name.
    fn remove_from(&self, others: &[(String, Result<SyncView, Failure>)], source: &LakeSource) {
        for (name, view) in others {
            let outcome = match view {
                Ok(view) => self.remove_ehrs(view, source),
                // The rules of views may have changed since.
                Err(_) => Err(Failure::Data(format!(
                    "removed EHRs cannot leave the dataset `{name}`, because its query is no view of this release: remove it by --drop {name}"
                ))),
            };
            if let Err(failure) = outcome {
                let is_end = matches!(failure, Failure::Interrupted);
                lock(&self.committed).fail(failure);
                if is_end {
                    return;
                }
            }
        }
    }

    fn remove_ehrs(&self, view: &SyncView, source: &LakeSource) -> Result<(), Failure> {
        let Some(before) = self.before.get(&view.name) else {
            return Ok(());
        };
        let last = before.removals.as_ref().or(before.watermark.as_ref());
        if self.watermark.is_some()
            && last == self.watermark.as_ref()
            && before.pseudonyms == self.issued_count()
        {
            return Ok(());
        }
        let identifiers = self.identifiers(source)?;
        let sync = self.view_sync(view, source, identifiers.as_deref());
        let (after, summary) = sync.remove(before)?;
        let mut committed = lock(&self.committed);
        committed.is_held |= summary.is_held();
        if let Some(after) = after {
            self.commit(&mut committed, &view.name, after)?;
        }
        if !summary.is_empty() {
            let text = summary.text(self.options.dry_run);
            let _ = writeln!(std::io::stdout(), "{}: {text}", view.name);
        }
        Ok(())
    }

    /// Returns the ids that have pseudonyms. The first view that needs them reads them.
    fn identifiers(&self, source: &LakeSource) -> Result<Option<Arc<Identifiers<'l>>>, Failure> {
        let Some(key) = self.pseudonyms else {
            return Ok(None);
        };
        let mut held = lock(&self.identifiers);
        if held.is_none() {
            let ids = source.patient_ids()?;
            let mut committed = lock(&self.committed);
            let issued = committed.state.read_issued(self.storage)?;
            let identifiers = Identifiers::new(key, &ids, issued);
            // They are stored before a file has one of them, so that none is forgotten.
            if identifiers.has_new() && !self.options.dry_run {
                let state = &mut committed.state;
                state.write_issued(self.storage, identifiers.issued())?;
            }
            *held = Some(Arc::new(identifiers));
        }
        Ok(held.clone())
    }

    /// Returns whether the data are those that the last sync of a view has read.
    fn is_current(&self, before: &ViewState) -> bool {
        self.watermark.is_some()
            && before.watermark == self.watermark
            && before.pseudonyms == self.issued_count()
    }

    /// Returns the number of pseudonyms of the lake, if ids have pseudonyms.
    fn issued_count(&self) -> Option<usize> {
        let key = self.pseudonyms;
        key.map(|_| lock(&self.committed).state.issued_count())
    }

    /// Returns the state of a view before this sync.
    fn before(&self, view: &SyncView) -> Result<ViewState, Failure> {
        match self.before.get(&view.name) {
            // The numbers of syncs continue, so that no file gets the name of one that is in use.
            Some(state) if self.options.rebuild => Ok(ViewState {
                sync: state.sync,
                ..ViewState::new(&view.aql)
            }),
            Some(state) if state.is_reserved() => Ok(ViewState::new(&view.aql)),
            Some(state) if !view.is_same(&state.aql) => Err(view.other_query()),
            Some(state) => Ok(ViewState {
                aql: view.aql.clone(),
                ..state.clone()
            }),
            None => Ok(ViewState::new(&view.aql)),
        }
    }
}

impl Committed {
    /// Notes the failure of a view. One that concerns all views is noted once.
    fn fail(&mut self, failure: Failure) {
        let text = failure.message();
        if !self.failures.iter().any(|other| other.message() == text) {
            self.failures.push(failure);
        }
    }

    /// Reports the outcome of a view, once those of all views before it were reported. A reader that
    /// has closed the output does not end the sync.
    fn report(&mut self, view: &str, number: usize, outcome: &str) {
        if let Some(report) = self.reports.get_mut(number) {
            *report = Some(format!("{view}: {outcome}"));
        }
        while let Some(Some(report)) = self.reports.get(self.reported) {
            let _ = writeln!(std::io::stdout(), "{report}");
            self.reported += 1;
        }
    }
}

/// Locks a part of the sync. A thread that has panicked ends the program.
fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
