//! Loading: files become segments, on every core.
//!
//! One thread plans blocks, the others read them, and the caller's thread stores the segments. The
//! order of the blocks determines the ordinals, so equal files result in equal segments.

use super::block::{self, Block, Builder, DOCUMENTS_OF_FILE, DOCUMENTS_OF_LINE, Shared, Unit};
use super::catalog::{
    Catalog, Conflicts, EhrFacts, FileProblem, Precedence, SegmentFacts, VersionFacts,
};
use super::document::Document;
use super::files::{self, SourceFile};
use super::owner::{Owner, derived_id};
use super::store::Writer;
use super::version::{SYSTEM, VersionUid, default_status};
use crate::outcome::Failure;
use crate::progress::{self, Progress};
use aqlite::document::{EncodedSegment, ObjectKind};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// The largest number of documents of a block. A segment has at most this number, so the memory of
/// a thread is bounded.
const DOCUMENTS: usize = 4096;

/// The largest number of bytes of the texts of a block.
const BYTES: u64 = 32 << 20;

/// The ordinal of the first document of a file. The statuses of EHRs precede it.
const FIRST: u64 = 1 << 40;

/// A planned block.
struct Task {
    number: usize,
    first: u64,
    unit: Unit,
}

/// The facts of all blocks.
#[derive(Default)]
struct Collected {
    segments: Vec<(usize, SegmentFacts)>,
    problems: Vec<(usize, Vec<FileProblem>)>,
    ehrs: HashMap<u64, EhrFacts>,
    /// The ordinal of the newest EHR_STATUS of each EHR.
    statuses: HashMap<u64, u64>,
    versions: Vec<VersionFacts>,
    /// The blocks, by the ordinals of their first documents.
    units: BTreeMap<u64, Unit>,
}

/// Loads files into a store, and returns their catalog.
///
/// # Errors
/// If the store cannot be written, an invariant is broken, or the user stops.
pub fn load(
    shared: &Shared<'_>,
    writer: &mut Writer,
    progress: &Progress,
) -> Result<Catalog, Failure> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let collected = thread::scope(|scope| {
        // Bounded: the planner must not run far ahead of the readers. Two tasks for each thread
        // keep all of them busy.
        let (planned, tasks) = sync_channel::<Task>(threads * 2);
        let (done, blocks) = channel::<(Task, Result<Block, String>)>();
        scope.spawn(move || plan(shared.files, &planned));
        let tasks = std::sync::Arc::new(Mutex::new(tasks));
        for _ in 0..threads {
            let (tasks, done) = (std::sync::Arc::clone(&tasks), done.clone());
            scope.spawn(move || work(&tasks, &done, shared));
        }
        // Without these clones, the channels close when the threads end.
        drop((done, tasks));
        collect(&blocks, writer, progress)
    });
    let mut collected = collected?;
    progress::check()?;
    add_statuses(&mut collected, shared, writer)?;
    collected.catalog(shared)
}

/// Plans blocks until all files are planned, or no thread takes more.
fn plan(files: &[SourceFile], planned: &SyncSender<Task>) {
    let mut planner = Planner {
        planned,
        number: 0,
        next: FIRST,
    };
    let mut start = 0;
    while let Some(file) = files.get(start) {
        let goes_on = if is_lines(file) {
            start += 1;
            planner.lines(start - 1, file)
        } else {
            let end = end_of_block(files, start);
            let ordinals = (end - start) as u64 * DOCUMENTS_OF_FILE;
            let unit = Unit::Files(start..end);
            start = end;
            planner.send(unit, ordinals)
        };
        if !goes_on {
            return;
        }
    }
}

/// Returns whether a file has a document in each line.
pub fn is_lines(file: &SourceFile) -> bool {
    matches!(file.ending().as_str(), "ndjson" | "jsonl")
}

/// Returns the index behind the last file of a block.
fn end_of_block(files: &[SourceFile], start: usize) -> usize {
    let (mut end, mut bytes) = (start, 0);
    while let Some(file) = files.get(end) {
        let is_full = end - start >= DOCUMENTS || bytes > BYTES;
        if is_lines(file) || is_full {
            break;
        }
        bytes += file.size;
        end += 1;
    }
    end
}

struct Planner<'p> {
    planned: &'p SyncSender<Task>,
    number: usize,
    /// The ordinal of the next document.
    next: u64,
}

impl Planner<'_> {
    /// Sends a block. Returns false if no thread takes more.
    fn send(&mut self, unit: Unit, ordinals: u64) -> bool {
        let task = Task {
            number: self.number,
            first: self.next,
            unit,
        };
        self.number += 1;
        // Ordinals are reserved for the maximum number of documents, so they do not depend on the
        // content of other files.
        self.next += ordinals;
        self.planned.send(task).is_ok()
    }

    /// Sends the blocks of a file of lines.
    fn lines(&mut self, index: usize, file: &SourceFile) -> bool {
        let (mut start, mut length, mut lines, mut first) = (0, 0, 0, 1);
        let mut goes_on = true;
        let mut send = |start: u64, length: u64, line: u32, lines: u32| {
            let unit = Unit::Lines {
                file: index,
                start,
                length,
                line,
            };
            self.send(unit, u64::from(lines) * DOCUMENTS_OF_LINE)
        };
        let read = each_line(file, |bytes| {
            length += bytes;
            lines += 1;
            if lines as usize >= DOCUMENTS || length > BYTES {
                goes_on = send(start, length, first, lines);
                (start, first) = (start + length, first + lines);
                (length, lines) = (0, 0);
            }
            goes_on
        });
        // A file that cannot be read is a block of its own, which reports it.
        if read.is_err() || length > 0 {
            // A length of 1 makes the reader open the file, and report the error.
            goes_on &= send(start, length.max(1), first, lines.max(1));
        }
        goes_on
    }
}

/// Calls a function with the length of each line, until it returns false.
fn each_line(file: &SourceFile, mut visit: impl FnMut(u64) -> bool) -> std::io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 18, files::open(&file.path)?);
    let mut open = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let length = buffer.len();
        let mut rest = buffer;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            if !visit(open + at as u64 + 1) {
                return Ok(());
            }
            open = 0;
            rest = rest.get(at + 1..).unwrap_or_default();
        }
        open += rest.len() as u64;
        reader.consume(length);
    }
    if open > 0 {
        visit(open);
    }
    Ok(())
}

/// Reads blocks until none is left.
fn work(
    tasks: &Mutex<Receiver<Task>>,
    done: &Sender<(Task, Result<Block, String>)>,
    shared: &Shared<'_>,
) {
    loop {
        let task = match tasks.lock() {
            Ok(tasks) => tasks.recv(),
            Err(_) => return,
        };
        let Ok(task) = task else {
            return;
        };
        let block = block::read(&task.unit, task.first, shared);
        // Asks whether the user has stopped, without progress.
        let is_over = !(shared.advance)(0);
        if done.send((task, block)).is_err() || is_over {
            return;
        }
    }
}

fn collect(
    blocks: &Receiver<(Task, Result<Block, String>)>,
    writer: &mut Writer,
    progress: &Progress,
) -> Result<Collected, Failure> {
    let mut collected = Collected::default();
    loop {
        // The timeout only redraws the progress.
        match blocks.recv_timeout(Duration::from_millis(100)) {
            Ok((task, block)) => {
                let block = block.map_err(Failure::Data)?;
                collected.add(task, block, writer)?;
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(collected),
        }
        progress.show();
    }
}

fn store(
    segment: EncodedSegment,
    documents: u32,
    writer: &mut Writer,
) -> Result<SegmentFacts, Failure> {
    let mut values = Vec::new();
    for value in segment.values {
        values.push(writer.append(&value)?);
    }
    Ok(SegmentFacts {
        head: writer.append(&segment.head)?,
        values,
        documents,
    })
}

impl Collected {
    fn add(&mut self, task: Task, block: Block, writer: &mut Writer) -> Result<(), Failure> {
        let number = task.number;
        self.units.insert(task.first, task.unit);
        if block.documents > 0 {
            let facts = store(block.segment, block.documents, writer)?;
            self.segments.push((number, facts));
        }
        if !block.problems.is_empty() {
            self.problems.push((number, block.problems));
        }
        self.versions.extend(block.versions);
        for ehr in block.ehrs {
            self.add_ehr(ehr)?;
        }
        Ok(())
    }

    fn add_ehr(&mut self, ehr: EhrFacts) -> Result<(), Failure> {
        // Blocks arrive in any order, so the newest status is found by the ordinals.
        let is_newest = ehr.has_status
            && self
                .statuses
                .get(&ehr.number)
                .is_none_or(|newest| *newest < ehr.first);
        if is_newest {
            self.statuses.insert(ehr.number, ehr.first);
        }
        let Some(known) = self.ehrs.get_mut(&ehr.number) else {
            self.ehrs.insert(ehr.number, ehr);
            return Ok(());
        };
        if known.ehr_id != ehr.ehr_id {
            let problem = format!(
                "the EHRs `{}` and `{}` have the same number: rename one",
                known.ehr_id, ehr.ehr_id
            );
            return Err(Failure::Data(problem));
        }
        if is_newest {
            known.is_queryable = ehr.is_queryable;
            known.has_status = true;
        }
        known.first = known.first.min(ehr.first);
        if known.subject.is_none() {
            known.subject = ehr.subject;
        }
        Ok(())
    }

    /// Returns the place of a document: its file, with the line in a file of lines.
    fn place_of(&self, ordinal: u64, files: &[SourceFile]) -> Option<String> {
        let (first, unit) = self.units.range(..=ordinal).next_back()?;
        let after = ordinal - first;
        match unit {
            Unit::Files(range) => {
                let number = usize::try_from(after / DOCUMENTS_OF_FILE).ok()?;
                files.get(range.start + number).map(SourceFile::shown)
            }
            Unit::Lines { file, line, .. } => {
                let line = u64::from(*line) + after / DOCUMENTS_OF_LINE;
                let file = files.get(*file)?.shown();
                Some(format!("{file}:{line}"))
            }
        }
    }

    fn catalog(mut self, shared: &Shared<'_>) -> Result<Catalog, Failure> {
        self.segments.sort_by_key(|(number, _)| *number);
        self.problems.sort_by_key(|(number, _)| *number);
        self.versions.sort_by_key(|version| version.ordinal);
        let precedence = Precedence::of(&self.versions);
        // Default statuses have smaller ordinals, and are no documents of the user.
        let documents = self.versions.iter().filter(|v| v.ordinal >= FIRST).count() as u64;
        let place = |ordinals: &[u64]| self.place_of(*ordinals.first()?, shared.files);
        let conflicts = Conflicts {
            repeated: place(&precedence.repeated),
            foreign: place(&precedence.foreign),
            foreign_documents: precedence.foreign.len() as u64,
        };
        Ok(Catalog {
            ehrs: in_order(self.ehrs),
            segments: self.segments.into_iter().map(|(_, facts)| facts).collect(),
            conflicts,
            superseded: precedence.superseded,
            repeated: precedence.repeated,
            problems: self.problems.into_iter().flat_map(|(_, all)| all).collect(),
            created: shared.created.to_owned(),
            documents,
            templates: Vec::new(),
        })
    }
}

fn in_order(ehrs: HashMap<u64, EhrFacts>) -> Vec<EhrFacts> {
    let mut ehrs: Vec<EhrFacts> = ehrs.into_values().collect();
    ehrs.sort_by(|a, b| (a.first, &a.ehr_id).cmp(&(b.first, &b.ehr_id)));
    ehrs
}

/// Adds the default EHR_STATUS of EHRs that have none in the data. Their segments come first.
fn add_statuses(
    collected: &mut Collected,
    shared: &Shared<'_>,
    writer: &mut Writer,
) -> Result<(), Failure> {
    let without = |ehr: &&EhrFacts| !ehr.has_status;
    let ehrs = in_order(collected.ehrs.clone());
    let ehrs: Vec<&EhrFacts> = ehrs.iter().filter(without).collect();
    // Ordinals below `FIRST` are reserved for default statuses, which so precede all documents.
    let mut first = 1;
    let mut made = Vec::new();
    for chunk in ehrs.chunks(DOCUMENTS) {
        let mut builder = Builder::new(shared).map_err(Failure::Data)?;
        for (ordinal, ehr) in (first..).zip(chunk) {
            let status = default_status(ehr.subject.as_ref()).map_err(Failure::Data)?;
            let owner = Owner {
                ehr_id: ehr.ehr_id.clone(),
                subject: ehr.subject.clone(),
            };
            let object_id = derived_id(&format!("status of {}", ehr.ehr_id));
            let uid = VersionUid {
                text: format!("{object_id}::{SYSTEM}::1"),
                object_id,
                number: 1,
            };
            let kind = (ObjectKind::EhrStatus, uid);
            let document = Document::alone(status);
            builder.add_version(owner, kind, document, (ordinal, shared.created));
        }
        first += chunk.len() as u64;
        let block = builder.finish().map_err(Failure::Data)?;
        made.push((0, store(block.segment, block.documents, writer)?));
        collected.versions.extend(block.versions);
    }
    // Blocks are sorted by number, stably, so the statuses precede block 0.
    made.append(&mut collected.segments);
    collected.segments = made;
    Ok(())
}
