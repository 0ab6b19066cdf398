//! The command `lake sync`: the rows of views as datasets, renewed by each run.
//!
//! Data files, the index of objects and the metadata of a table are written first. The state, which
//! names them, is written last. A sync that is killed has changed nothing, and the next one removes
//! its files. Views are synchronized by several threads, each with a reader of the data of its own.

use super::iceberg;
use super::pseudonym::Pseudonyms;
use super::source::Source;
use super::state::{LakeState, ViewState, Watermark};
use super::storage::Storage;
use super::sync_view::{Summary, ViewSync};
use super::sync_views::{SyncView, views_of};
use crate::data::DataOptions;
use crate::outcome::{Failure, Outcome};
use crate::progress::Progress;
use crate::server_options::ServerOptions;
use clap::Args;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    #[command(flatten)]
    pub server: ServerOptions,
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
    let source = Source::open(&options.data, &options.server)?;
    let views = views_of(options, &source)?;
    let storage = Storage::open(&options.to)?;
    let mut state = LakeState::read(&storage)?;
    // A lake must not mix ids and pseudonyms, or pseudonyms of two keys: rows could not be joined.
    check_key(&mut state, pseudonyms.as_ref())?;
    if !options.dry_run {
        clean(&storage, &state)?;
    }
    let lake = Lake {
        options,
        // It is read before the rows, so a later change is found by the next sync.
        watermark: source.watermark()?,
        storage: &storage,
        pseudonyms: pseudonyms.as_ref(),
        before: state.views.clone(),
        progress: Progress::of_unknown("rows read"),
        queue: Mutex::new(views.iter().enumerate().collect()),
        committed: Mutex::new(Committed {
            state,
            reports: vec![None; views.len()],
            reported: 0,
            is_held: false,
            outcome: Ok(()),
        }),
    };
    lake.sync_all(&views, &source)?;
    lake.progress.finish();
    let committed = lake.committed.into_inner();
    let committed = committed.unwrap_or_else(PoisonError::into_inner);
    committed.outcome?;
    if !options.dry_run {
        clean(&storage, &committed.state)?;
    }
    let reported = source.report();
    if !committed.is_held {
        return Ok(reported);
    }
    eprintln!(
        "error: documents could not be read, so EHRs and compositions that the data lack stay in the lake: mend or remove these files, and run the sync again"
    );
    Ok(Outcome::Findings)
}

/// Checks that the lake has the ids that the options ask for.
fn check_key(state: &mut LakeState, pseudonyms: Option<&Pseudonyms>) -> Result<(), Failure> {
    let key = pseudonyms.map(Pseudonyms::fingerprint);
    if state.views.is_empty() {
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

/// Removes the files that no state names: those of a sync that was killed, or those that a sync has
/// replaced.
fn clean(storage: &Storage, state: &LakeState) -> Result<(), Failure> {
    let mut named: HashSet<String> = HashSet::new();
    let mut folders = vec![String::from("_aqlite/objects")];
    for (view, of_view) in &state.views {
        named.extend(of_view.names(view));
        // The last sync may have been killed between its state and the hint of a table.
        iceberg::publish(storage, view, of_view)?;
        folders.push(format!("{view}/data"));
        folders.push(format!("{view}/metadata"));
    }
    storage.remove_incomplete("_aqlite")?;
    // Other files beside these folders are left alone.
    for folder in folders {
        storage.remove_incomplete(&folder)?;
        for name in storage.list(&folder)? {
            if !named.contains(&name) {
                storage.remove(&name)?;
            }
        }
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
    /// The first failure. No view begins after it.
    outcome: Result<(), Failure>,
}

impl<'l> Lake<'l> {
    /// Synchronizes all views. Threads share them, unless one is enough.
    fn sync_all(&self, views: &[SyncView], source: &Source) -> Result<(), Failure> {
        let is_current = |view| self.before(view).is_ok_and(|view| self.is_current(&view));
        let changed = views.iter().filter(|view| !is_current(view)).count();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = match source {
            Source::Server(_) => 1,
            Source::Files(_) | Source::Database(_) => threads.min(changed),
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
        if let Ok(Some(source)) = Source::another(&options.data, &options.server) {
            self.sync_queue(&source);
        }
    }

    /// Synchronizes the views of the queue, until it is empty or a view fails.
    fn sync_queue(&self, source: &Source) {
        while let Some((number, view)) = self.next() {
            let outcome = self.sync(number, view, source);
            let mut committed = lock(&self.committed);
            if committed.outcome.is_ok() {
                committed.outcome = outcome;
            }
            if committed.outcome.is_err() {
                // An empty queue ends the other threads after their present view.
                return lock(&self.queue).clear();
            }
        }
    }

    /// Takes a view from the queue. A lock in the head of a loop would be held by its body.
    fn next(&self) -> Option<(usize, &'l SyncView)> {
        lock(&self.queue).pop_front()
    }

    /// Synchronizes a view, and reports the changes.
    fn sync(&self, number: usize, view: &SyncView, source: &Source) -> Result<(), Failure> {
        let before = self.before(view)?;
        if self.is_current(&before) {
            lock(&self.committed).report(view, number, &Summary::default().text(false));
            return Ok(());
        }
        let sync = ViewSync {
            view,
            storage: self.storage,
            source,
            watermark: self.watermark.as_ref(),
            lake: &self.before,
            pseudonyms: self.pseudonyms,
            may_remove_all: self.options.allow_empty,
            is_dry: self.options.dry_run,
            progress: &self.progress,
        };
        let (after, summary) = sync.run(&before)?;
        let mut committed = lock(&self.committed);
        committed.is_held |= summary.is_held();
        if let Some(after) = after {
            committed.state.views.insert(view.name.clone(), after);
            // Each view is committed when it is complete, so a later failure keeps the earlier
            // views.
            committed.state.write(self.storage)?;
            if let Some(after) = committed.state.views.get(&view.name) {
                iceberg::publish(self.storage, &view.name, after)?;
            }
        }
        committed.report(view, number, &summary.text(self.options.dry_run));
        Ok(())
    }

    /// Returns whether the data are those that the last sync of a view has read.
    fn is_current(&self, before: &ViewState) -> bool {
        self.watermark.is_some() && before.watermark == self.watermark
    }

    /// Returns the state of a view before this sync.
    fn before(&self, view: &SyncView) -> Result<ViewState, Failure> {
        match self.before.get(&view.name) {
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
}

impl Committed {
    /// Reports the outcome of a view, once those of all views before it were reported. A reader that
    /// has closed the output does not end the sync.
    fn report(&mut self, view: &SyncView, number: usize, outcome: &str) {
        if let Some(report) = self.reports.get_mut(number) {
            *report = Some(format!("{}: {outcome}", view.name));
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
