//! Segments of a database, under random histories: compactions are stopped, blobs are late, lost or
//! damaged, and several isolates have caches of their own. Queries must return the same rows as a
//! plain scan.

mod blobs;
mod divided;
mod gaps;
mod interleaved;
mod memory;
mod named;
mod nightly;
pub mod queries;
mod rounds;

use crate::rows::NOW;
use crate::sql::{Dice, EHRS};
use crate::sqlite::Sqlite;
use crate::store::{Draft, creation, done};
use aqlite::aql::{Budget, Parameters, QueryOptions, ResultSet, Run, Savepoint, prepare};
use aqlite::document::Batch;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{BatchSink, Repository, ScanReads, StoreError};
use aqlite::store::scan::{Progress, Scan, Snapshot};
use aqlite::store::sql::{
    Compaction, LayoutCatalog, Row, Segments, Sql, SqlError, SqlRepository, Statement,
};
use blobs::Unreliable;
use divided::{check_divided, division, last};
use named::check_named;
use queries::{JOINED, QUERIES};
use std::cell::Cell;
use std::future::{poll_fn, ready};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A database with isolates that read segments, beside a repository that reads rows.
struct Place {
    plain: SqlRepository<Sqlite>,
    isolates: Vec<SqlRepository<Sqlite>>,
    /// The segments of each isolate.
    segments: Vec<Rc<Segments>>,
    blobs: Unreliable,
    serial: u64,
}

/// A time in milliseconds since 1970 at which no blob is old.
const TODAY: u64 = 1_800_000_000_000;
/// A time in milliseconds since 1970 at which every blob is old.
const LATER: u64 = TODAY + 3_600_000;

impl Place {
    fn new(most: u64) -> Place {
        Place::with(|segments| segments.with_sizes(1, most))
    }

    fn with(changed: impl Fn(Segments) -> Segments) -> Place {
        let (database, blobs) = (Sqlite::in_memory(), Unreliable::default());
        let small = || Segments::new(Box::new(blobs.clone())).with_named(2);
        let segments = |_| Rc::new(changed(small()));
        let segments: Vec<Rc<Segments>> = (0..3).map(segments).collect();
        let isolate = |segments| database.repository().with_segments(Rc::clone(segments));
        Place {
            plain: database.repository(),
            isolates: segments.iter().map(isolate).collect(),
            segments,
            blobs: blobs.clone(),
            serial: 0,
        }
    }

    /// Compacts once. A failure of the store leaves garbage.
    fn compact(&mut self, isolate: usize) -> Option<Compaction> {
        self.serial += 1;
        let (blob, pause) = (format!("b{}", self.serial), || {
            Box::pin(ready(())) as aqlite::store::repository::Pause
        });
        let compaction = self.isolates[isolate].compact(&blob, TODAY, &pause);
        now_or_never(compaction).expect("ready").ok()
    }

    fn collect(&self, isolate: usize, now: u64) {
        let _ = now_or_never(self.isolates[isolate].collect_garbage(now)).expect("ready");
    }
}

/// A run that can be started again.
struct Restarting<'p> {
    begin: &'p dyn Fn() -> Run<'p>,
    run: Run<'p>,
    /// The segments that were read.
    segments: usize,
    reads: ScanReads,
    /// The state before a segment that is sent alone, and the number of such segments.
    before: Option<Savepoint>,
    alone: usize,
    /// The number of restarts.
    restarts: usize,
}

impl<'p> Restarting<'p> {
    fn of(begin: &'p dyn Fn() -> Run<'p>) -> Restarting<'p> {
        Restarting {
            begin,
            run: begin(),
            segments: 0,
            reads: ScanReads::default(),
            before: None,
            alone: 0,
            restarts: 0,
        }
    }
}

impl BatchSink for Restarting<'_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        self.segments += usize::from(batch.is_late());
        self.run.advance(batch)
    }

    fn needed_documents(&self, union: &Batch, most: usize) -> Option<Vec<Vec<u64>>> {
        self.run.needed_documents(union, most)
    }

    fn restart(&mut self) -> bool {
        let earlier = std::mem::replace(&mut self.run, (self.begin)());
        self.run.take_over(earlier);
        self.segments = 0;
        self.restarts += 1;
        true
    }

    fn savepoint(&mut self) -> bool {
        self.alone += 1;
        self.before = self.run.savepoint();
        self.before.is_some()
    }

    fn roll_back(&mut self) {
        let before = self.before.as_ref().expect("a checkpoint");
        self.run.roll_back(before);
    }

    fn observe(&mut self, reads: &ScanReads) {
        self.reads = *reads;
    }
}

fn rows(store: &SqlRepository<Sqlite>, query: &str) -> Vec<String> {
    now_or_never(rows_later(store, query)).expect("ready")
}

async fn rows_later(store: &SqlRepository<impl Sql>, query: &str) -> Vec<String> {
    scan_in(store, query, None).await.expect("a scan").rows
}

/// The outcome of a scan.
struct Scanned {
    rows: Vec<String>,
    /// The segments that were read.
    segments: usize,
    reads: ScanReads,
    /// The number of segments that were sent alone.
    alone: usize,
    /// The number of times that the evaluation was restarted, because parts were loaded.
    restarts: usize,
}

/// Scans for a query in the newest state.
fn scanned(store: &SqlRepository<Sqlite>, query: &str) -> Scanned {
    let scanned = now_or_never(scan_in(store, query, None));
    scanned.expect("ready").expect("a scan")
}

/// Scans for a query in an older state if there is one, else in the newest.
async fn scan_in(
    store: &SqlRepository<impl Sql>,
    query: &str,
    snapshot: Option<Snapshot>,
) -> Result<Scanned, StoreError> {
    let plan = prepare(query, &Parameters::new(), &QueryOptions::default()).expect("a query");
    let (go_on, budget) = (|| false, Budget::default());
    let begin = || Run::new(&plan, NOW, budget, &go_on);
    let mut sink = Restarting::of(&begin);
    let scan = Scan {
        snapshot,
        ..plan.scan().clone()
    };
    store.scan(&scan, &mut sink).await?;
    let answer = sink.run.finish().expect("an answer");
    Ok(Scanned {
        rows: texts(&answer),
        segments: sink.segments,
        reads: sink.reads,
        alone: sink.alone,
        restarts: sink.restarts,
    })
}

fn texts(result: &ResultSet) -> Vec<String> {
    let rows = result.rows().map(|row| {
        let mut text = String::new();
        row.iter().for_each(|cell| {
            cell.write_json(&mut text);
            text.push(' ');
        });
        text
    });
    rows.collect()
}

/// Compares the answers of an isolate in older states with those of a plain scan. Returns the number
/// of segments that were read.
fn check_past(place: &Place, isolate: usize, seed: u64, past: &[Snapshot]) -> usize {
    let mut segments = 0;
    for (snapshot, query) in past
        .iter()
        .flat_map(|snapshot| QUERIES.map(|q| (*snapshot, q)))
    {
        let rows = |store| {
            let scanned = now_or_never(scan_in(store, query, Some(snapshot))).expect("ready");
            scanned.map(|scanned| (scanned.rows, scanned.segments))
        };
        let (expected, found) = (rows(&place.plain), rows(&place.isolates[isolate]));
        match (expected, found) {
            (Ok(expected), Ok(found)) => {
                assert_eq!(found.0, expected.0, "seed {seed}, {snapshot:?}: {query}");
                assert_eq!(expected.1, 0, "a plain scan reads no segment");
                segments += found.1;
            }
            (expected, found) => assert_eq!(
                found.err().map(|error| error.to_string()),
                expected.err().map(|error| error.to_string()),
                "seed {seed}, {snapshot:?}: {query}"
            ),
        }
    }
    segments
}

/// The newest state.
fn newest(store: &SqlRepository<Sqlite>) -> Snapshot {
    let plan = prepare(QUERIES[0], &Parameters::new(), &QueryOptions::default()).expect("a query");
    let mut sink = |_: &Batch| false;
    now_or_never(store.scan(plan.scan(), &mut sink))
        .expect("ready")
        .expect("a scan")
}

/// Compares the answers of an isolate with those of a plain scan.
fn check(place: &Place, isolate: usize, seed: u64) {
    for query in QUERIES {
        let (expected, found) = (
            rows(&place.plain, query),
            rows(&place.isolates[isolate], query),
        );
        assert_eq!(found, expected, "seed {seed}: {query}");
    }
}

fn random_history(seed: u64) -> [usize; 5] {
    let mut dice = Dice::of(seed);
    let most = [3, 20, 1_000][(seed % 3) as usize];
    let listed = if seed.is_multiple_of(2) { 2 } else { 50_000 };
    let mut place = Place::with(|segments| segments.with_sizes(1, most).with_listed(listed));
    place.blobs.state.set(seed);
    let (mut written, mut lost, mut named) = (0, 0, 0);
    let (mut snapshots, mut past) = (Vec::new(), 0);
    let (mut divisions, mut divided) = (Vec::new(), 0);
    for serial in 0..250 {
        let _ = now_or_never(place.plain.commit(dice.commit(serial))).expect("ready");
        let isolate = dice.roll(3) as usize;
        place.blobs.one_fails_in.set(dice.roll(4) * 8);
        match dice.roll(24) {
            0..=5 => match place.compact(isolate) {
                Some(Compaction::Written) => written += 1,
                None => lost += 1,
                _ => {}
            },
            6 => place.collect(isolate, TODAY),
            7 => place.collect(isolate, LATER),
            8 if dice.roll(4) == 0 => {
                let ehr = EHRS[dice.roll(3) as usize];
                if done(place.plain.delete_ehr(ehr)) {
                    drop(now_or_never(place.plain.commit(creation(ehr, None))));
                }
            }
            9 | 10 => check(&place, isolate, seed),
            11 | 12 => named += check_named(&place, isolate, seed),
            13 | 14 => snapshots.push(newest(&place.plain)),
            15 => past += check_past(&place, isolate, seed, &snapshots),
            16 => drop(place.at_night(isolate)),
            17 | 18 => divisions.extend(division(&place, isolate)),
            19 => divided += check_divided(&place, seed, last(&divisions)),
            _ => {}
        }
    }
    place.blobs.one_fails_in.set(0);
    while place.compact(0) == Some(Compaction::Written) {}
    check(&place, 1, seed);
    check(&place, 2, seed);
    assert!(check_named(&place, 2, seed) > 0, "seed {seed}: named EHRs");
    past += check_past(&place, 2, seed, &snapshots);
    divisions.extend(division(&place, 1));
    divided += check_divided(&place, seed, last(&divisions));
    let reads = place.blobs.reads.get();
    check(&place, 2, seed);
    check_named(&place, 2, seed);
    check_past(&place, 2, seed, &snapshots);
    assert_eq!(place.blobs.reads.get(), reads, "seed {seed}: all is cached");
    place.collect(0, LATER);
    let live = Sqlite::texts(
        place.plain.sql(),
        "SELECT blob FROM segment UNION ALL SELECT blob FROM ehr_segment",
    );
    let is_live = |key: &String| live.iter().any(|blob| key.contains(&format!("/{blob}/")));
    let blobs = place.blobs.blobs.borrow();
    assert!(
        blobs.keys().all(is_live),
        "seed {seed}: blobs without a segment: {live:?} {:?}",
        blobs.keys()
    );
    [written, lost, named, past, divided]
}

#[test]
fn queries_over_segments_give_the_rows_of_the_plain_scan() {
    let mut counts = [0; 5];
    for more in (1..=6).map(random_history) {
        counts
            .iter_mut()
            .zip(more)
            .for_each(|(count, more)| *count += more);
    }
    let [written, lost, named, past, divided] = counts;
    assert!(
        written > 60 && lost > 5 && named > 100 && past > 100 && divided > 100,
        "{written} segments were written, {lost} compactions failed, {named} were read for named EHRs, {past} in older states, {divided} parts were merged"
    );
}

#[test]
fn queries_that_join_documents_read_segments() {
    let mut place = Place::new(7);
    let mut dice = Dice::of(5);
    for serial in 0..150 {
        let _ = now_or_never(place.plain.commit(dice.commit(serial))).expect("ready");
    }
    while place.compact(0) == Some(Compaction::Written) {}
    let behind = Draft {
        ehr: EHRS[0],
        ..Draft::composition("behind", 1)
    };
    done(place.plain.commit(behind.commit()));
    let mut with_rows = 0;
    for query in JOINED {
        let expected = rows(&place.plain, query);
        let found = scanned(&place.isolates[1], query);
        assert_eq!(found.rows, expected, "{query}");
        assert!(found.segments > 0, "a union: {query}");
        assert!(found.reads.segments > 2, "{query}: {:?}", found.reads);
        assert!(found.reads.rows <= 1, "{query}: {:?}", found.reads);
        with_rows += usize::from(!expected.is_empty());
    }
    assert!(with_rows >= 5, "{with_rows} of the queries have rows");
}

#[test]
fn query_shows_its_state_while_others_go_on() {
    let mut place = Place::new(1_000);
    done(place.plain.commit(creation(EHRS[0], None)));
    for object in ["a", "b", "c"] {
        let draft = Draft {
            ehr: EHRS[0],
            ..Draft::composition(object, 1)
        };
        done(place.plain.commit(draft.commit()));
    }
    assert_eq!(place.compact(0), Some(Compaction::Written));
    let query = QUERIES[1];
    let before = rows(&place.plain, query);
    place.blobs.is_slow.set(true);
    let (isolate, mut context) = (&place.isolates[1], Context::from_waker(Waker::noop()));
    let mut first = Box::pin(rows_later(isolate, query));
    let mut number = 1;
    let found = loop {
        match first.as_mut().poll(&mut context) {
            Poll::Ready(found) => break found,
            Poll::Pending => {
                // Each time that the query waits, a version is superseded, and another query of the
                // same isolate reads the newer state to its end.
                number += 1;
                let draft = Draft {
                    ehr: EHRS[0],
                    ..Draft::composition("b", number)
                };
                done(place.plain.commit(draft.commit()));
                let mut second = Box::pin(rows_later(isolate, query));
                let newer = loop {
                    if let Poll::Ready(newer) = second.as_mut().poll(&mut context) {
                        break newer;
                    }
                };
                assert_eq!(newer, rows(&place.plain, query));
            }
        }
    };
    assert!(number > 2, "the query waited {} times", number - 1);
    assert_eq!(found, before);
}

/// A database whose answers may arrive later than they were given.
struct Late {
    database: Sqlite,
    is_late: Rc<Cell<bool>>,
}

impl Sql for Late {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        let answer = self.database.batch(statements).await;
        let mut waits = self.is_late.take();
        poll_fn(|_| match std::mem::take(&mut waits) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
        answer
    }
}

#[test]
fn query_shows_its_state_if_a_newer_one_is_answered_first() {
    for first_is_cold in [true, false] {
        let (database, blobs) = (Sqlite::in_memory(), Unreliable::default());
        let plain = database.repository();
        let segments = Segments::new(Box::new(blobs.clone())).with_sizes(1, 1_000);
        let is_late = Rc::new(Cell::new(false));
        let late = Late {
            database: database.clone(),
            is_late: Rc::clone(&is_late),
        };
        let isolate = SqlRepository::new(late, Rc::new(LayoutCatalog::default()))
            .with_segments(Rc::new(segments));
        let write = |object, number| {
            let draft = Draft {
                ehr: EHRS[0],
                ..Draft::composition(object, number)
            };
            done(plain.commit(draft.commit()));
        };
        done(plain.commit(creation(EHRS[0], None)));
        write("a", 1);
        write("b", 1);
        let pause = || Box::pin(ready(())) as aqlite::store::repository::Pause;
        let written = now_or_never(isolate.compact("b1", TODAY, &pause)).expect("ready");
        assert_eq!(written, Ok(Compaction::Written));
        let query =
            "SELECT v/uid/value AS uid FROM VERSION v[LATEST_VERSION] CONTAINS COMPOSITION c";
        let read = || now_or_never(rows_later(&isolate, query)).expect("ready");
        if !first_is_cold {
            read();
        }
        let before = rows(&plain, query);
        is_late.set(true);
        let (mut first, mut context) = (
            Box::pin(rows_later(&isolate, query)),
            Context::from_waker(Waker::noop()),
        );
        assert!(first.as_mut().poll(&mut context).is_pending());
        write("b", 2);
        let after = rows(&plain, query);
        assert_ne!(before, after);
        assert_eq!(read(), after);
        assert_eq!(first.as_mut().poll(&mut context), Poll::Ready(before));
        assert_eq!(read(), after);
        write("a", 2);
        assert_eq!(read(), rows(&plain, query));
    }
}

/// A run beside another query of the same isolate, which is executed before each piece but the first.
struct Beside<'p> {
    restarting: Restarting<'p>,
    other: &'p dyn Fn(),
    is_first: bool,
}

impl BatchSink for Beside<'_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        if !std::mem::take(&mut self.is_first) {
            (self.other)();
        }
        self.restarting.take(batch)
    }

    fn restart(&mut self) -> bool {
        self.restarting.restart()
    }
}

#[test]
fn part_that_another_query_loads_is_not_missed() {
    for query in QUERIES {
        // No part is in memory at first.
        let mut place = Place::new(5);
        let mut dice = Dice::of(5);
        for serial in 0..120 {
            let _ = now_or_never(place.plain.commit(dice.commit(serial))).expect("ready");
        }
        while place.compact(0) == Some(Compaction::Written) {}
        let (isolate, expected) = (&place.isolates[1], rows(&place.plain, query));
        let plan = prepare(query, &Parameters::new(), &QueryOptions::default()).expect("a query");
        let (go_on, budget) = (|| false, Budget::default());
        let begin = || Run::new(&plan, NOW, budget, &go_on);
        let other = || assert_eq!(rows(isolate, query), expected);
        let restarting = Restarting::of(&begin);
        let mut sink = Beside {
            restarting,
            other: &other,
            is_first: true,
        };
        let scanned = now_or_never(isolate.scan(plan.scan(), &mut sink)).expect("ready");
        scanned.expect("a scan");
        let found = sink.restarting.run.finish().expect("an answer");
        assert_eq!(texts(&found), expected, "{query}");
    }
}

#[test]
fn deleted_text_is_in_no_blob() {
    let mut place = Place::new(1_000);
    let secret = "Rosalinde Unverkennbar";
    done(place.plain.commit(creation(EHRS[0], None)));
    done(place.plain.commit(creation(EHRS[1], None)));
    let draft = Draft {
        ehr: EHRS[0],
        text: secret,
        ..Draft::composition("a", 1)
    };
    done(place.plain.commit(draft.commit()));
    while place.compact(0) == Some(Compaction::Written) {}
    check(&place, 1, 0);
    assert!(
        place.blobs.blobs.borrow().len() >= 4,
        "versions and EHRs have segments"
    );
    done(place.plain.delete_ehr(EHRS[0]));
    place.collect(0, TODAY);
    assert!(place.blobs.blobs.borrow().is_empty(), "the blobs are gone");
    check(&place, 1, 0);
}

#[test]
fn of_two_compactions_one_makes_its_segment_live() {
    let mut place = Place::new(1_000);
    let fill = |place: &Place| {
        done(place.plain.commit(creation(EHRS[0], None)));
        done(place.plain.commit(Draft::composition("a", 1).commit()));
    };
    fill(&place);
    assert_eq!(place.compact(0), Some(Compaction::Written), "versions");
    assert_eq!(place.compact(1), Some(Compaction::Written), "EHRs");
    assert_eq!(place.compact(1), Some(Compaction::Nothing));
    done(place.plain.reset());
    fill(&place);
    assert_eq!(place.compact(1), Some(Compaction::Written));
    check(&place, 2, 0);
}

#[test]
fn damaged_segments_are_written_again() {
    for key in ["head", "0"] {
        let mut place = Place::new(1_000);
        done(place.plain.commit(creation(EHRS[0], None)));
        done(place.plain.commit(Draft::composition("a", 1).commit()));
        while place.compact(0) == Some(Compaction::Written) {}
        let damage = |(blob, bytes): (&String, &mut Vec<u8>)| {
            if blob.ends_with(&format!("/{key}")) {
                bytes.iter_mut().for_each(|byte| *byte ^= 1);
            }
        };
        place.blobs.blobs.borrow_mut().iter_mut().for_each(damage);
        check_named(&place, 0, 0);
        check(&place, 1, 0);
        assert_eq!(place.segments[1].lost().len(), 2, "{key}");
        assert_eq!(place.compact(1), Some(Compaction::Written), "versions");
        assert_eq!(place.compact(1), Some(Compaction::Written), "EHRs");
        let blobs = place.blobs.blobs.borrow().len();
        assert_eq!(blobs, 4, "a head and a value of each, {key}");
        check(&place, 2, 0);
        assert!(place.segments[2].lost().is_empty());
    }
}

/// The blobs of a store may be replaced by those of another deployment, which are intact.
#[test]
fn segments_of_another_repository_are_not_read() {
    let filled = |object: &str, serial: u64| {
        let mut place = Place::new(1_000);
        place.serial = serial;
        done(place.plain.commit(creation(EHRS[0], None)));
        done(place.plain.commit(Draft::composition(object, 1).commit()));
        while place.compact(0) == Some(Compaction::Written) {}
        place
    };
    let (own, other) = (filled("own", 0), filled("another", 50));
    let mut blobs = own.blobs.blobs.borrow_mut();
    let others = other.blobs.blobs.borrow();
    assert_eq!(blobs.len(), 4, "a head and a value of versions and of EHRs");
    let pairs = blobs.iter_mut().zip(others.iter());
    for ((key, bytes), (other_key, other_bytes)) in pairs {
        let last = |key: &str| key.rsplit('/').next().map(str::to_owned);
        assert!(key != other_key && last(key) == last(other_key));
        bytes.clone_from(other_bytes);
    }
    drop(blobs);
    check(&own, 1, 0);
    assert_eq!(own.segments[1].lost().len(), 2);
}

#[test]
fn segments_behind_a_removed_one_are_read() {
    let mut place = Place::new(3);
    done(place.plain.commit(creation(EHRS[0], None)));
    done(place.plain.commit(Draft::composition("a", 1).commit()));
    done(place.plain.commit(creation(EHRS[1], None)));
    for object in ["b", "c", "d", "e", "f", "g"] {
        let draft = Draft {
            ehr: EHRS[1],
            ..Draft::composition(object, 1)
        };
        done(place.plain.commit(draft.commit()));
    }
    while place.compact(0) == Some(Compaction::Written) {}
    let all = "SELECT c/uid/value AS uid FROM COMPOSITION c";
    for query in [all, &format!("{all} LIMIT 2"), &format!("{all} LIMIT 5")] {
        assert!(scanned(&place.isolates[1], query).segments > 0, "{query}");
    }
    done(place.plain.delete_ehr(EHRS[0]));
    for query in [all, &format!("{all} LIMIT 5")] {
        let Scanned {
            rows: found,
            segments,
            ..
        } = scanned(&place.isolates[1], query);
        assert_eq!(found, rows(&place.plain, query), "{query}");
        assert!(segments > 0, "{query} reads rows only");
    }
    check(&place, 1, 0);
}

#[test]
fn query_of_a_repository_without_segments_finds_that_they_are_due() {
    let place = Place::with(|segments| segments.with_sizes(4, 1_000));
    done(place.plain.commit(creation(EHRS[0], None)));
    for (object, is_due) in [("a", false), ("b", false), ("c", true)] {
        let draft = Draft {
            ehr: EHRS[0],
            ..Draft::composition(object, 1)
        };
        done(place.plain.commit(draft.commit()));
        rows(&place.isolates[0], QUERIES[0]);
        assert_eq!(place.segments[0].is_due(), is_due, "{object}");
    }
}

#[test]
fn versions_wait_until_a_segment_has_them() {
    let mut place = Place::with(|segments| segments.with_sizes(4, 1_000));
    done(place.isolates[0].commit(creation(EHRS[0], None)));
    for object in ["a", "b", "c", "d"] {
        let draft = Draft {
            ehr: EHRS[0],
            ..Draft::composition(object, 1)
        };
        done(place.isolates[0].commit(draft.commit()));
    }
    assert!(place.segments[0].is_due());
    assert_eq!(place.compact(0), Some(Compaction::Written));
    assert!(!place.segments[0].is_due());
}

#[test]
fn rows_behind_the_segments_come_with_the_manifest() {
    let mut place = Place::new(3);
    let draft = |object| Draft {
        ehr: EHRS[0],
        ..Draft::composition(object, 1)
    };
    done(place.plain.commit(creation(EHRS[0], None)));
    done(place.plain.commit(draft("a").commit()));
    while place.compact(0) == Some(Compaction::Written) {}
    let queries = [QUERIES[0], QUERIES[1], QUERIES[13]];
    // The isolate learns how far the segments reach, and then the layouts of rows behind them.
    for object in ["b", "c"] {
        for query in queries {
            rows(&place.isolates[1], query);
        }
        done(place.plain.commit(draft(object).commit()));
    }
    done(place.plain.commit(creation(EHRS[1], None)));
    for query in queries {
        let expected = rows(&place.plain, query);
        place.plain.sql().trips();
        assert_eq!(rows(&place.isolates[1], query), expected, "{query}");
        assert_eq!(place.plain.sql().trips(), 1, "{query}");
    }
    // The segments reach further than the isolate expects, then less far.
    while place.compact(0) == Some(Compaction::Written) {}
    check(&place, 1, 0);
    done(place.plain.delete_ehr(EHRS[0]));
    check(&place, 1, 0);
}

/// A repository with four compositions of one EHR, of which no segment is written.
fn place_of_four_documents() -> Place {
    let place = Place::new(3);
    done(place.plain.commit(creation(EHRS[0], None)));
    for object in ["a", "b", "c", "d"] {
        let draft = Draft {
            ehr: EHRS[0],
            ..Draft::composition(object, 1)
        };
        done(place.plain.commit(draft.commit()));
    }
    place
}

#[test]
fn what_a_query_reads_is_counted() {
    let mut place = place_of_four_documents();
    let query = QUERIES[1];
    let unsegmented = scanned(&place.isolates[0], query).reads;
    assert_eq!((unsegmented.segments, unsegmented.rows), (0, 4));
    while place.compact(0) == Some(Compaction::Written) {}
    let cold = scanned(&place.isolates[1], query).reads;
    assert_eq!((cold.rows, cold.absent_segments), (0, 0), "{cold:?}");
    assert!(cold.segments > 1 && cold.blobs > cold.segments, "{cold:?}");
    assert!(cold.blob_bytes > 0 && cold.part_bytes > 0, "{cold:?}");
    let warm = scanned(&place.isolates[1], query).reads;
    let no_blobs = ScanReads {
        blobs: 0,
        blob_bytes: 0,
        ..cold
    };
    assert_eq!(warm, no_blobs);
    place.blobs.blobs.borrow_mut().clear();
    let lost = scanned(&place.isolates[2], query).reads;
    assert_eq!((lost.segments, lost.rows, lost.blobs), (0, 4, 0));
    assert_eq!(lost.absent_segments, cold.segments);
}

/// The head of a segment has the ranges of its columns.
#[test]
fn comparison_that_no_value_passes_loads_no_column() {
    let mut place = place_of_four_documents();
    while place.compact(0) == Some(Compaction::Written) {}
    let path = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
    let scanned = |isolate: usize, comparison: &str| {
        let query = format!(
            "SELECT {path} AS m FROM OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE {path} {comparison}"
        );
        scanned(&place.isolates[isolate], &query)
    };
    // Each value is 120.5.
    let beyond = scanned(1, "> 120.6");
    let within = scanned(2, ">= 120.5");
    assert_eq!((beyond.rows.len(), within.rows.len()), (0, 4));
    assert!(
        beyond.reads.part_bytes < within.reads.part_bytes,
        "{:?} and {:?}",
        beyond.reads,
        within.reads
    );
}
