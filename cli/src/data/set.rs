//! A data set: the templates, the catalog and the segments of some files.

use super::block::Shared;
use super::catalog::{Catalog, EhrFacts, FileProblem, UNREADABLE};
use super::content::Content;
use super::files::{self, STANDARD_INPUT, SourceFile};
use super::load;
use super::options::DataOptions;
use super::owner::Owners;
use super::store::{self, IndexWriter, Store, Writer};
use super::templates::{self, Templates, may_be_template};
use crate::outcome::Failure;
use crate::progress::{self, Progress, is_interrupted};
use aqlite::diag::LineIndex;
use aqlite::document::{Batch, Segment, SegmentState};
use aqlite::rm::time;
use etcetera::BaseStrategy;
use std::cell::OnceCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use twox_hash::XxHash64;

/// Bytes of a file that show whether it is a template.
const BEGINNING: u64 = 4096;

/// A segment with the parts that were loaded so far.
pub struct Opened {
    /// The segment.
    pub segment: Segment,
    /// Its batch.
    pub batch: Batch,
}

/// A data set that answers queries.
pub struct DataSet {
    /// The catalog.
    pub catalog: Catalog,
    /// The templates.
    pub templates: Arc<Templates>,
    /// Whether an index file had the segments.
    pub is_cached: bool,
    pub(super) store: Store,
    pub(super) segments: Vec<Opened>,
    pub(super) whole: OnceCell<Batch>,
}

impl DataSet {
    /// Opens the data of some options: by their index file if it is of these files, else by reading
    /// them.
    ///
    /// # Errors
    /// If arguments name no files, files cannot be listed, or the user stops. Problems of single
    /// files are in the catalog.
    pub fn open(options: &DataOptions) -> Result<DataSet, Failure> {
        let files = files::list(&options.data, files::DATA)?;
        let index = Index::of(options, &files);
        if let Some((store, catalog)) = index.as_ref().and_then(Index::open)
            // A damaged index file is no error: the files are read again.
            && let Ok(set) = DataSet::assemble(&files, store, catalog, true)
        {
            return Ok(set);
        }
        DataSet::read(options, &files, index.as_ref())
    }

    /// Opens the data of some options by their index file; `None` if there is none of these files.
    ///
    /// # Errors
    /// If arguments name no files, or files cannot be listed.
    pub fn open_indexed(options: &DataOptions) -> Result<Option<DataSet>, Failure> {
        let files = files::list(&options.data, files::DATA)?;
        let index = Index::of(options, &files);
        let opened = index.as_ref().and_then(Index::open);
        Ok(
            opened
                .and_then(|(store, catalog)| DataSet::assemble(&files, store, catalog, true).ok()),
        )
    }

    /// Returns a number that changes with the files of some options; `None` if they are not known
    /// before they are read, or were modified so recently that a change could leave it the same.
    ///
    /// # Errors
    /// If arguments name no files, or files cannot be listed.
    pub fn fingerprint(options: &DataOptions) -> Result<Option<u128>, Failure> {
        let files = files::list(&options.data, files::DATA)?;
        let index = Index::of(options, &files).filter(|_| !is_recent(&files, SystemTime::now()));
        Ok(index.map(|index| index.fingerprint))
    }

    /// Computes something from the data. If the index file turns out to be damaged, the files are
    /// read again, and the computation is repeated.
    ///
    /// # Errors
    /// As the computation, and as [`DataSet::open`].
    pub fn reliably<T>(
        &mut self,
        options: &DataOptions,
        mut compute: impl FnMut(&DataSet) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match compute(self) {
            Err(Failure::Damaged(_)) if self.is_cached => {
                let files = files::list(&options.data, files::DATA)?;
                let index = Index::of(options, &files);
                *self = DataSet::read(options, &files, index.as_ref())?;
                compute(self)
            }
            other => other,
        }
    }

    /// Reads the files, and writes their index file.
    fn read(
        options: &DataOptions,
        files: &[SourceFile],
        index: Option<&Index>,
    ) -> Result<DataSet, Failure> {
        let started = SystemTime::now();
        let owners = Owners::new(options.ehr_from, options.ehr_map.as_deref())?;
        if let Some(index) = index
            && let Some(writer) = index.writer()
        {
            // An index of files that may still change could become stale while its fingerprint
            // stays.
            let keep = !is_recent(files, started);
            match read(files, &owners, writer, (index.fingerprint, keep)) {
                // A full disk, for example: memory suffices for an answer.
                Err(Failure::Data(_)) => {}
                other => return other,
            }
        }
        read(files, &owners, Writer::Memory(Vec::new()), (0, false))
    }

    /// Puts a data set together, from a complete store.
    fn assemble(
        files: &[SourceFile],
        store: Store,
        mut catalog: Catalog,
        is_cached: bool,
    ) -> Result<DataSet, Failure> {
        let (templates, problems) = read_templates(files, &catalog.templates);
        progress::check()?;
        // Templates are read each time, so their problems are not those of the index file.
        catalog.problems.splice(0..0, problems);
        let mut set = DataSet {
            catalog,
            templates: Arc::new(templates),
            is_cached,
            store,
            segments: Vec::new(),
            whole: OnceCell::new(),
        };
        set.open_segments()?;
        Ok(set)
    }

    fn open_segments(&mut self) -> Result<(), Failure> {
        let unqueryable = self.unqueryable();
        for facts in &self.catalog.segments {
            let head = self.store.read(facts.head)?;
            let segment = Segment::read(&head).map_err(damaged)?;
            let state = SegmentState {
                superseded: &self.catalog.superseded,
                unqueryable: &unqueryable,
            };
            let batch = segment.batch(&state).map_err(damaged)?;
            self.segments.push(Opened { segment, batch });
        }
        Ok(())
    }

    /// Returns the numbers of EHRs that population queries do not read, ascending.
    fn unqueryable(&self) -> Vec<u64> {
        let hidden = |ehr: &&EhrFacts| !ehr.is_queryable;
        let mut numbers: Vec<u64> = self
            .catalog
            .ehrs
            .iter()
            .filter(hidden)
            .map(|ehr| ehr.number)
            .collect();
        numbers.sort_unstable();
        numbers
    }
}

/// Returns the failure for a segment that cannot be read.
pub(super) fn damaged(what: &str) -> Failure {
    Failure::Damaged(what.to_owned())
}

/// Reads all files into a store.
fn read(
    files: &[SourceFile],
    owners: &Owners,
    mut writer: Writer,
    (fingerprint, keep): (u128, bool),
) -> Result<DataSet, Failure> {
    let found: Vec<u32> = (0..)
        .zip(files)
        .filter(|(_, file)| is_template(file))
        .map(|(at, _)| at)
        .collect();
    progress::check()?;
    let (templates, _) = read_templates(files, &found);
    // `found` is ascending, because the files were numbered in order.
    let documents: Vec<SourceFile> = (0..)
        .zip(files)
        .filter(|(at, _)| found.binary_search(at).is_err())
        .map(|(_, file)| file.clone())
        .collect();
    let progress = Progress::new(documents.iter().map(|file| file.size).sum(), "reading");
    let advance = |bytes: u64| progress.advance(bytes);
    let created = oldest(files);
    let shared = Shared {
        files: &documents,
        templates: &templates,
        owners,
        created: &created,
        advance: &advance,
    };
    let loaded = load::load(&shared, &mut writer, &progress);
    progress.finish();
    let mut catalog = loaded?;
    catalog.templates = found;
    catalog.problems.extend(owners.unmatched(&documents));
    // Other permissions leave size and time of a file as they are, so its fingerprint would stay.
    let is_complete = catalog.problems.iter().all(|one| one.code != UNREADABLE);
    let keep = keep && is_complete && !is_interrupted();
    let store = writer.finish(&catalog, fingerprint, keep)?;
    DataSet::assemble(files, store, catalog, false)
}

/// Returns whether a file begins like a template; false after Ctrl-C, to which the caller responds.
fn is_template(file: &SourceFile) -> bool {
    if is_interrupted() || !may_be_template(file) {
        return false;
    }
    let Ok(opened) = files::open(&file.path) else {
        return false;
    };
    let mut bytes = Vec::new();
    let read = opened.take(BEGINNING).read_to_end(&mut bytes);
    read.is_ok() && Content::is_template(&String::from_utf8_lossy(&bytes))
}

/// Reads the templates of some arguments of `-d`, for commands that read no other data.
///
/// # Errors
/// As [`files::list`]; [`Failure::Data`] for a template that cannot be read.
pub fn templates_of(arguments: &[String]) -> Result<Templates, Failure> {
    let files = files::list(arguments, files::DATA)?;
    let found: Vec<u32> = (0..)
        .zip(&files)
        .filter(|(_, file)| is_template(file))
        .map(|(at, _)| at)
        .collect();
    let (templates, problems) = read_templates(&files, &found);
    progress::check()?;
    match problems.first() {
        Some(problem) => Err(Failure::Data(problem.to_string())),
        None => Ok(templates),
    }
}

/// Reads the templates among files, by their indices; some only, if the user pressed Ctrl-C.
fn read_templates(files: &[SourceFile], indices: &[u32]) -> (Templates, Vec<FileProblem>) {
    let (mut all, mut problems) = (Templates::default(), Vec::new());
    let chosen = indices.iter().filter_map(|at| files.get(*at as usize));
    for file in chosen.take_while(|_| !is_interrupted()) {
        let text = match files::read_text(&file.path) {
            Ok(text) => text,
            Err(error) => {
                problems.push(problem(file, 0, UNREADABLE, error.to_string()));
                continue;
            }
        };
        match templates::parse(&text) {
            Ok(template) => all.add(template),
            Err(found) => {
                let index = LineIndex::new(&text);
                problems.extend(found.iter().map(|diagnostic| {
                    let (line, _) = index.line_column(diagnostic.span.start);
                    let line = u32::try_from(line).unwrap_or_default();
                    problem(file, line, diagnostic.code, diagnostic.message.clone())
                }));
            }
        }
    }
    (all, problems)
}

fn problem(file: &SourceFile, line: u32, code: &str, message: String) -> FileProblem {
    FileProblem {
        path: file.shown(),
        line,
        severity: String::from("error"),
        code: code.to_owned(),
        message,
    }
}

/// Returns the time of the oldest file, ISO 8601: EHRs of files are as old as that.
fn oldest(files: &[SourceFile]) -> String {
    // The standard input and a link that leads nowhere have no time.
    let times = files.iter().map(|file| file.modified);
    let nanos = times.filter(|time| *time > 0).min().unwrap_or(0);
    let millis = i64::try_from(nanos / 1_000_000).unwrap_or_default();
    time::format_nearest_utc(time::from_unix_millis(millis))
}

/// Returns whether a file was modified so shortly before it was read that a later change could have
/// the same time. File systems that count whole seconds may be two seconds late.
fn is_recent(files: &[SourceFile], started: SystemTime) -> bool {
    let since = |margin: Duration| {
        let time = started.checked_sub(margin)?.duration_since(UNIX_EPOCH);
        u64::try_from(time.ok()?.as_nanos()).ok()
    };
    let (fine, coarse) = (
        since(Duration::from_millis(100)),
        since(Duration::from_secs(2)),
    );
    files.iter().any(|file| {
        // A time without a fraction suggests a file system that counts whole seconds.
        let is_coarse = file.modified % 1_000_000_000 == 0;
        let bound = if is_coarse { coarse } else { fine };
        bound.is_none_or(|bound| file.modified >= bound)
    })
}

/// The index file of a data set.
struct Index {
    path: PathBuf,
    /// The fingerprint of the files, the options and the program.
    fingerprint: u128,
}

impl Index {
    /// Returns the index file of some options; `None` if there shall be none.
    fn of(options: &DataOptions, files: &[SourceFile]) -> Option<Index> {
        if options.no_cache || options.data.iter().any(|data| data == STANDARD_INPUT) {
            return None;
        }
        let folder = match &options.cache_dir {
            Some(folder) => folder.clone(),
            None => etcetera::base_strategy::choose_native_strategy()
                .ok()?
                .cache_dir()
                .join("aqlite"),
        };
        let here = std::env::current_dir().ok()?;
        let mut name = Hash::default();
        // The arguments may be relative paths, so the working directory is a part of the name. The
        // name does not depend on the content: changed files replace their index file.
        name.add_path(&here);
        options
            .data
            .iter()
            .for_each(|data| name.add(data.as_bytes()));
        let mut print = Hash::default();
        print.add_path(&here);
        print.add(format!("{:?}", options.ehr_from).as_bytes());
        print.add(env!("CARGO_PKG_VERSION").as_bytes());
        let program = std::env::current_exe().ok()?;
        print.add_file(&program)?;
        print.add(
            &options
                .ehr_map
                .as_ref()
                .map_or(Some(Vec::new()), |map| std::fs::read(map).ok())?,
        );
        for file in files {
            print.add_path(&file.path);
            print.add(&file.size.to_le_bytes());
            print.add(&file.modified.to_le_bytes());
        }
        Some(Index {
            path: folder.join(format!("{:032x}.index", name.finish())),
            fingerprint: print.finish(),
        })
    }

    fn open(&self) -> Option<(Store, Catalog)> {
        store::open(&self.path, self.fingerprint)
    }

    fn writer(&self) -> Option<Writer> {
        let writer = IndexWriter::create(&self.path).ok()?;
        Some(Writer::File(writer))
    }
}

/// A hash of 128 bits over some fields, each with its length.
#[derive(Default)]
struct Hash(Vec<u8>);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        self.0
            .extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn add_path(&mut self, path: &Path) {
        self.add(path.as_os_str().as_encoded_bytes());
    }

    /// Adds size and time of a file: another build of the program may read files in another way.
    fn add_file(&mut self, path: &Path) -> Option<()> {
        let metadata = std::fs::metadata(path).ok()?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        self.add(&metadata.len().to_le_bytes());
        self.add(&modified.as_nanos().to_le_bytes());
        Some(())
    }

    fn finish(&self) -> u128 {
        // Two seeds result in two independent halves.
        let (high, low) = (XxHash64::oneshot(1, &self.0), XxHash64::oneshot(2, &self.0));
        u128::from(high) << 64 | u128::from(low)
    }
}
