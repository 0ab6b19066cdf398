//! Checkpoints of the memory repository: one that is opened from a checkpoint and the journal behind
//! it must be the one that was never closed. A damaged file results in errors, never in other
//! answers.

use crate::rows::NOW;
use crate::segments::queries::QUERIES;
use crate::sql::{Dice, EHRS};
use crate::store::definitions::definition;
use crate::store::{creation, done};
use aqlite::aql::{Budget, Parameters, QueryOptions, Run, prepare};
use aqlite::document::{Batch, ReadBytes};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{
    AccessFilter, AccessRecord, ContributionDetail, DefinitionKind, ItemTag, Repository,
    StoreError, TagList,
};
use aqlite::store::scan::{Scan, Snapshot};
use std::cell::Cell;
use std::rc::Rc;

/// A checkpoint as a host keeps it.
#[derive(Clone)]
pub struct Saved {
    pub file: Rc<Vec<u8>>,
    pub head: Vec<u8>,
    /// The number of bytes that were read.
    pub read: Rc<Cell<usize>>,
}

impl ReadBytes for Saved {
    fn read(&self, start: u64, end: u64) -> Result<Vec<u8>, String> {
        let bytes = self.file.get(start as usize..end as usize);
        self.read.set(self.read.get() + (end - start) as usize);
        bytes
            .map(<[u8]>::to_vec)
            .ok_or_else(|| String::from("the file is too short"))
    }
}

/// Writes a checkpoint of a repository.
pub fn save(memory: &Memory) -> Result<Saved, String> {
    let (mut work, mut file) = (memory.checkpoint(), Vec::new());
    while let Some(bytes) = memory.checkpoint_step(&mut work)? {
        file.extend(bytes);
    }
    Ok(Saved {
        head: memory.checkpoint_head(work)?,
        file: Rc::new(file),
        read: Rc::default(),
    })
}

/// Opens a repository from a checkpoint.
pub fn open(saved: &Saved) -> Result<Memory, String> {
    Memory::open(&saved.head, Box::new(saved.clone()))
}

fn ready<T>(future: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    now_or_never(future).expect("ready")
}

/// Returns the rows of a query in the newest state, or in the one of a snapshot.
fn rows(memory: &Memory, query: &str, snapshot: Option<Snapshot>) -> Result<Vec<String>, String> {
    let plan = prepare(query, &Parameters::new(), &QueryOptions::default()).expect("a query");
    let go_on = || false;
    let mut run = Run::new(&plan, NOW, Budget::default(), &go_on);
    let mut sink = |batch: &Batch| run.push(batch);
    let scan = Scan {
        snapshot,
        ..plan.scan().clone()
    };
    ready(memory.scan(&scan, &mut sink)).map_err(|error| error.to_string())?;
    let answer = run.finish().map_err(|error| format!("{error:?}"))?;
    let rows = answer.rows().map(|row| {
        let mut text = String::new();
        row.iter().for_each(|cell| {
            cell.write_json(&mut text);
            text.push(' ');
        });
        text
    });
    let rows = rows.collect();
    // A text of the answer may be the first that was read of its page.
    memory.failure().map_or(Ok(rows), Err)
}

/// Returns everything that a repository tells of its content, except by queries.
fn content(memory: &Memory) -> Result<Vec<String>, StoreError> {
    let mut all = Vec::new();
    let page = ready(memory.contributions(None, None, 10_000, ContributionDetail::WithVersions))?;
    for contribution in page.items {
        let (uid, document) = (contribution.uid, contribution.document);
        all.push(format!("{} {uid} {document}", contribution.ehr_id));
        for version in contribution.versions {
            let json = version.packed.to_json();
            let object = version.object_id.clone();
            all.push(format!(
                "{} {object} {} {:?} {:?} {:?} {json} {:?}",
                version.version_uid,
                version.number,
                version.preceding,
                version.template_id,
                version.lifecycle,
                version.tags
            ));
            let history = ready(memory.version_metadata(&version.ehr_id, &object))?;
            all.push(format!("{history:?}"));
        }
        let key = ready(memory.idempotency(&contribution.ehr_id, &uid))?;
        all.push(format!("{key:?}"));
    }
    all.push(format!("{:?}", ready(memory.ehrs(None, 100))?));
    for ehr in EHRS {
        all.push(format!("{:?}", ready(memory.tag_lists(ehr, None))?.items));
    }
    for subject in ["p1", "p2", "p3"] {
        let ehr = ready(memory.ehr_by_subject(subject, "hospital"))?;
        all.push(format!("{ehr:?}"));
    }
    let listed = ready(memory.definitions(DefinitionKind::Query, ""))?;
    let ids: Vec<_> = listed.iter().map(|d| (&*d.name, &*d.version)).collect();
    for definition in ready(memory.definition_bodies(DefinitionKind::Query, &ids, 1 << 20))? {
        // The id of a storing is of this repository alone.
        all.push(format!("{} {}", definition.name, definition.body));
    }
    let filter = AccessFilter {
        limit: 1_000,
        ..AccessFilter::default()
    };
    all.push(format!("{:?}", ready(memory.accesses(&filter))?));
    Ok(all)
}

/// Changes a repository at random.
fn change(memory: &Memory, dice: &mut Dice, serial: u64) -> Vec<Result<(), StoreError>> {
    let ehr = EHRS[dice.roll(3) as usize];
    let mut outcomes = vec![ready(memory.commit(dice.commit(serial as usize)))];
    match dice.roll(30) {
        0 => outcomes.push(ready(memory.delete_ehr(ehr)).map(drop)),
        1 | 2 => outcomes.push(ready(memory.commit(creation(ehr, None)))),
        3 => {
            let objects = ready(memory.objects(
                ehr,
                aqlite::document::ObjectKind::Composition,
                dice.roll(3),
                1,
            ));
            // The journal has no record of a removal of nothing.
            let objects = objects.expect("objects");
            if !objects.is_empty() {
                outcomes.push(ready(memory.delete_objects(ehr, &objects)));
            }
        }
        4 | 5 => {
            let tag = ItemTag {
                key: format!("k{}", dice.roll(2)),
                path: None,
                value: Some(format!("v{serial}")),
            };
            let list = TagList {
                target: format!("o{}", dice.roll(4)),
                tags: if dice.roll(3) == 0 { vec![] } else { vec![tag] },
            };
            outcomes.push(ready(memory.set_tags(ehr, list, None)));
        }
        6 => {
            let query = definition(&format!("q{}", dice.roll(3)), "1.0.0");
            outcomes.push(ready(memory.define(DefinitionKind::Query, query)));
        }
        7 => {
            let name = format!("q{}", dice.roll(3));
            let removed = memory.undefine(DefinitionKind::Query, &name, "1.0.0");
            outcomes.push(ready(removed).map(drop));
        }
        8 => {
            let access = AccessRecord {
                time: format!("2026-11-20T10:00:{:02}.000Z", dice.roll(60)),
                ..AccessRecord::default()
            };
            outcomes.push(ready(memory.log_accesses(vec![access])));
        }
        9 if dice.roll(4) == 0 => outcomes.push(ready(memory.reset())),
        _ => {}
    }
    outcomes
}

/// A repository that is closed at random, beside one that never is.
struct Pair {
    lasting: Memory,
    closed: Memory,
    /// The checkpoints, each with the lines before it.
    saved: Vec<(Saved, usize)>,
    lines: Vec<String>,
}

impl Pair {
    fn keep(&mut self) {
        let line = self.closed.take_journal_line().expect("whole");
        self.lines.extend(line);
    }

    /// Opens the repository again from a checkpoint and the lines behind it.
    fn reopen(&mut self, number: usize) {
        let (saved, lines) = &self.saved[number];
        self.closed = open(saved).expect("a checkpoint");
        for line in &self.lines[*lines..] {
            self.closed.replay_journal(line).expect("a line");
        }
    }

    fn check(&self, case: &str, past: &[Snapshot]) {
        for query in QUERIES {
            let expected = rows(&self.lasting, query, None);
            assert_eq!(rows(&self.closed, query, None), expected, "{case}: {query}");
        }
        for (query, snapshot) in past
            .iter()
            .flat_map(|s| QUERIES[..8].iter().map(move |q| (q, s)))
        {
            let expected = rows(&self.lasting, query, Some(*snapshot));
            let found = rows(&self.closed, query, Some(*snapshot));
            assert_eq!(found, expected, "{case}, {snapshot:?}: {query}");
        }
        let expected = content(&self.lasting).expect("content");
        assert_eq!(content(&self.closed).expect("content"), expected, "{case}");
    }

    fn newest(&self) -> Snapshot {
        let scan = Scan::default();
        done(self.lasting.scan(&scan, &mut |_: &Batch| false))
    }
}

fn random_history(seed: u64) -> [usize; 3] {
    let (mut dice, mut counts) = (Dice::of(seed), [0; 3]);
    let mut pair = Pair {
        lasting: Memory::journaled(),
        closed: Memory::journaled(),
        saved: Vec::new(),
        lines: Vec::new(),
    };
    let mut past = Vec::new();
    for serial in 0..250 {
        let mut same = dice.clone();
        let expected = change(&pair.lasting, &mut same, serial);
        assert_eq!(change(&pair.closed, &mut dice, serial), expected, "{seed}");
        pair.keep();
        match dice.roll(16) {
            0 | 1 => {
                let saved = save(&pair.closed).expect("a checkpoint");
                pair.saved.push((saved, pair.lines.len()));
                counts[0] += 1;
                // The one who writes a checkpoint opens it too: the lines behind it begin anew.
                pair.reopen(pair.saved.len() - 1);
            }
            2 if !pair.saved.is_empty() => {
                // An older checkpoint with more lines is the same as a newer one with fewer. A newer
                // one that was given up is never opened again.
                let older = pair.saved.len().saturating_sub(1 + dice.roll(2) as usize);
                pair.saved.truncate(older + 1);
                pair.reopen(older);
                counts[1] += 1;
            }
            3 => {
                pair.check(&format!("seed {seed}, step {serial}"), &past);
                counts[2] += 1;
            }
            4 => past = vec![pair.newest()],
            _ => {}
        }
    }
    pair.check(&format!("seed {seed}"), &past);
    if !pair.saved.is_empty() {
        pair.reopen(0);
        pair.check(
            &format!("seed {seed}: all lines after the first checkpoint"),
            &past,
        );
    }
    counts
}

#[test]
fn reopened_repository_is_the_one_that_was_never_closed() {
    let mut counts = [0; 3];
    for more in (1..=8).map(random_history) {
        counts.iter_mut().zip(more).for_each(|(c, more)| *c += more);
    }
    assert!(counts.iter().all(|count| *count > 40), "{counts:?}");
}

/// A repository with a history, saved.
fn example(seed: u64, steps: u64) -> (Memory, Saved) {
    let (mut dice, memory) = (Dice::of(seed), Memory::journaled());
    EHRS.iter()
        .for_each(|ehr| done(memory.commit(creation(ehr, None))));
    for serial in 0..steps {
        change(&memory, &mut dice, serial);
    }
    let saved = save(&memory).expect("a checkpoint");
    (memory, saved)
}

#[test]
fn equal_states_have_equal_checkpoints() {
    let (memory, _) = example(3, 120);
    // Maps are written in the order of their keys, whatever order they have in memory.
    for serial in 0..12 {
        let query = definition(&format!("query{serial}"), "1.0.0");
        done(memory.define(DefinitionKind::Query, query));
    }
    let saved = save(&memory).expect("a checkpoint");
    let again = save(&memory).expect("a checkpoint");
    assert!(again.head == saved.head && again.file == saved.file);
    // Nothing was changed or read, so every part is copied as it is.
    let copied = save(&open(&saved).expect("a checkpoint")).expect("a checkpoint");
    assert!(copied.head == saved.head && copied.file == saved.file);
}

#[test]
fn a_query_reads_the_parts_that_it_needs() {
    let (memory, saved) = example(4, 150);
    let opened = open(&saved).expect("a checkpoint");
    assert_eq!(saved.read.get(), 0, "opening reads the head only");
    let query = "SELECT count(*) AS n FROM COMPOSITION c";
    assert_eq!(rows(&opened, query, None), rows(&memory, query, None));
    let read = saved.read.get();
    assert!(
        read > 0 && read * 4 < saved.file.len(),
        "{read} of {}",
        saved.file.len()
    );
    assert_eq!(rows(&opened, query, None), rows(&memory, query, None));
    assert_eq!(saved.read.get(), read, "parts are read once");
}

#[test]
fn a_change_makes_a_checkpoint_void() {
    let (memory, _) = example(5, 20);
    let mut work = memory.checkpoint();
    let first = memory.checkpoint_step(&mut work).expect("a step");
    assert!(first.is_some());
    done(memory.define(DefinitionKind::Query, definition("later", "1.0.0")));
    let why = memory.checkpoint_step(&mut work).expect_err("void");
    assert_eq!(
        why,
        "the repository has changed since the checkpoint was begun"
    );
}

/// Returns whether a damaged checkpoint was noticed. Fails if it gives another answer.
fn is_noticed(damaged: &Saved, expected: &(Vec<Vec<String>>, Vec<String>)) -> bool {
    let Ok(memory) = open(damaged) else {
        return true;
    };
    let mut noticed = false;
    for (query, expected) in QUERIES.iter().zip(&expected.0) {
        match rows(&memory, query, None) {
            Ok(found) => assert_eq!(found, *expected, "{query}"),
            Err(_) => noticed = true,
        }
    }
    match content(&memory) {
        Ok(found) => assert_eq!(found, expected.1),
        Err(_) => noticed = true,
    }
    let written = ready(memory.log_accesses(vec![AccessRecord::default()]));
    assert_eq!(
        written.is_err(),
        noticed,
        "nothing is written after a failure"
    );
    assert_eq!(memory.take_journal_line().is_err(), noticed);
    noticed
}

#[test]
fn damaged_files_are_errors() {
    let (memory, saved) = example(6, 60);
    let all = QUERIES.map(|query| rows(&memory, query, None).expect("rows"));
    let expected = (all.to_vec(), content(&memory).expect("content"));
    assert!(!is_noticed(&saved, &expected), "whole files are read");
    let mut dice = Dice::of(7);
    for at in (0..saved.file.len()).step_by(97) {
        let mut file = (*saved.file).clone();
        file[at] ^= 1 << dice.roll(8);
        let damaged = Saved {
            file: Rc::new(file),
            ..saved.clone()
        };
        // Nothing of what is compared needs the stored index of the words.
        is_noticed(&damaged, &expected);
    }
    for at in (0..saved.head.len()).step_by(31) {
        let mut head = saved.head.clone();
        head[at] ^= 1 << dice.roll(8);
        let damaged = Saved {
            head,
            ..saved.clone()
        };
        assert!(open(&damaged).is_err(), "byte {at} of the head");
    }
    for end in [0, 1, 20, saved.head.len() / 2, saved.head.len() - 1] {
        let head = saved.head[..end].to_vec();
        assert!(
            open(&Saved {
                head,
                ..saved.clone()
            })
            .is_err(),
            "{end} bytes"
        );
    }
    for end in [0, 100, saved.file.len() / 2] {
        let damaged = Saved {
            file: Rc::new(saved.file[..end].to_vec()),
            ..saved.clone()
        };
        assert!(is_noticed(&damaged, &expected), "{end} bytes of the file");
    }
}

#[test]
fn deleted_text_is_in_no_checkpoint() {
    let (memory, _) = example(8, 30);
    let secret = "confidential";
    // The history may have removed the EHR.
    let _ = ready(memory.commit(creation(EHRS[0], None)));
    let draft = crate::store::Draft {
        ehr: EHRS[0],
        text: secret,
        ..crate::store::Draft::composition("secret", 1)
    };
    done(memory.commit(draft.commit()));
    let opened = open(&save(&memory).expect("a checkpoint")).expect("a checkpoint");
    assert_eq!(content(&opened), content(&memory));
    assert!(format!("{:?}", content(&opened)).contains(secret));
    done(opened.delete_objects(EHRS[0], &[String::from("secret")]));
    let after = open(&save(&opened).expect("a checkpoint")).expect("a checkpoint");
    assert!(!format!("{:?}", content(&after)).contains(secret));
    let words = "SELECT o/data[at0001]/events[at0006]/data[at0003]/items[at0005]/value/value FROM OBSERVATION o";
    assert!(!format!("{:?}", rows(&after, words, None)).contains(secret));
}

/// The versions of the format, of which the last is the present one.
const VERSIONS: [u8; 2] = [1, 2];

/// Returns the path of a file of the checkpoint that the first release with a version of the format
/// wrote.
fn file_of(version: u8, name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases/checkpoints")
        .join(format!("{version}.{name}"))
}

/// A history of which both the journal and a checkpoint are kept.
fn history_of_form() -> (Saved, String) {
    // One that ends with many versions.
    let histories = (11..31).map(history);
    histories
        .max_by_key(|(saved, _)| saved.file.len())
        .expect("a history")
}

fn history(seed: u64) -> (Saved, String) {
    let (mut dice, memory) = (Dice::of(seed), Memory::journaled());
    EHRS.iter()
        .for_each(|ehr| done(memory.commit(creation(ehr, None))));
    for serial in 0..60 {
        change(&memory, &mut dice, serial);
    }
    let saved = save(&memory).expect("a checkpoint");
    (
        saved,
        memory.take_journal_line().expect("whole").expect("lines"),
    )
}

#[test]
#[ignore = "writes the files of tests/cases/checkpoints, for a new form only"]
fn write_files_of_the_present_form() {
    let (saved, lines) = history_of_form();
    let [.., present] = VERSIONS;
    std::fs::write(file_of(present, "head"), &saved.head).expect("a file");
    std::fs::write(file_of(present, "parts"), &*saved.file).expect("a file");
    std::fs::write(file_of(present, "journal"), lines).expect("a file");
}

#[test]
fn checkpoints_of_earlier_releases_are_read() {
    for version in VERSIONS {
        check_version(version);
    }
}

/// Opens the checkpoint of a version of the format, compares it with its journal, and changes it.
fn check_version(version: u8) {
    let read =
        |name| std::fs::read(file_of(version, name)).expect("a file of tests/cases/checkpoints");
    let saved = Saved {
        head: read("head"),
        file: Rc::new(read("parts")),
        read: Rc::default(),
    };
    let opened = open(&saved).expect("a checkpoint");
    let repeated = Memory::journaled();
    let lines = String::from_utf8(read("journal")).expect("text");
    repeated.replay_journal(&lines).expect("a journal");
    for query in QUERIES {
        let expected = rows(&repeated, query, None);
        assert_eq!(rows(&opened, query, None), expected, "{query}");
    }
    assert_eq!(content(&opened), content(&repeated));
    // Later changes continue the same objects.
    let mut dice = Dice::of(12);
    for serial in 100..140 {
        let expected = change(&repeated, &mut dice.clone(), serial);
        assert_eq!(change(&opened, &mut dice, serial), expected);
    }
    assert_eq!(content(&opened), content(&repeated));
}
