//! Queries between whose steps everything may happen: commits, deletions, compactions, collections
//! of garbage, nights, and other queries of the same isolate.
//!
//! A query waits at each batch of statements, at each blob and between the pieces of its work. Its
//! answer must be that of the state in which it began, whatever happens while it waits.

use super::queries::QUERIES;
use super::{Compaction, LATER, Place, Restarting, TODAY, rows, texts};
use crate::rows::NOW;
use crate::sql::{Dice, EHRS};
use crate::sqlite::Sqlite;
use crate::store::{Draft, creation, done};
use aqlite::aql::{Budget, Parameters, QueryOptions, Run, prepare};
use aqlite::document::Batch;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{BatchSink, Pause, Repository};
use aqlite::store::scan::Progress;
use aqlite::store::sql::{LayoutCatalog, Row, Segments, Sql, SqlError, SqlRepository, Statement};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Events while one query waits, at most: without a limit, a query of many steps would take long.
const EVENTS: usize = 8;

/// Waits for one turn.
async fn turn() {
    let mut waits = true;
    poll_fn(|_| match std::mem::take(&mut waits) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

/// A database whose answers arrive a turn after they were made.
struct Waiting(Sqlite);

impl Sql for Waiting {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        let answer = self.0.batch(statements).await;
        turn().await;
        answer
    }
}

/// A run that waits between the pieces of its work.
struct Pausing<'p>(Restarting<'p>);

impl BatchSink for Pausing<'_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        self.0.take(batch)
    }

    fn needed_documents(&self, union: &Batch, most: usize) -> Option<Vec<Vec<u64>>> {
        self.0.needed_documents(union, most)
    }

    fn restart(&mut self) -> bool {
        self.0.restart()
    }

    fn savepoint(&mut self) -> bool {
        self.0.savepoint()
    }

    fn roll_back(&mut self) {
        self.0.roll_back();
    }

    fn pause(&self) -> Pause {
        Box::pin(turn())
    }
}

/// Returns the rows of a query, and the number of segments that it read.
async fn answer(store: &SqlRepository<Waiting>, query: &str) -> (Vec<String>, usize) {
    let plan = prepare(query, &Parameters::new(), &QueryOptions::default()).expect("a query");
    let budget = Budget {
        piece: 2_000,
        ..Budget::default()
    };
    let go_on = || false;
    let begin = || Run::new(&plan, NOW, budget, &go_on);
    let mut sink = Pausing(Restarting::of(&begin));
    store.scan(plan.scan(), &mut sink).await.expect("a scan");
    let segments = sink.0.segments;
    (texts(&sink.0.run.finish().expect("an answer")), segments)
}

/// A composition that was written.
struct Written {
    ehr: &'static str,
    object: String,
    number: u32,
}

/// A place with an isolate whose queries wait.
struct World {
    place: Place,
    isolate: Rc<SqlRepository<Waiting>>,
    dice: Dice,
    written: Vec<Written>,
    serial: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice::of(seed);
        let most = 2 + dice.roll(4);
        // Sometimes a list of ids has several pages, each of a transaction of its own.
        let listed = [50_000, 1][(seed / 2 % 2) as usize];
        let sized = |segments: Segments| segments.with_sizes(1, most).with_listed(listed);
        // Sometimes the parts of all segments do not fit into memory together.
        let memory = [usize::MAX, 20_000][(seed % 2) as usize];
        let place = Place::with(sized);
        place.blobs.is_slow.set(true);
        let own = sized(Segments::new(Box::new(place.blobs.clone())));
        let own = own.with_memory(memory, memory);
        let database = Waiting(place.plain.sql().clone());
        let isolate = SqlRepository::new(database, Rc::new(LayoutCatalog::default()));
        for ehr in EHRS {
            done(place.plain.commit(creation(ehr, None)));
        }
        World {
            isolate: Rc::new(isolate.with_segments(Rc::new(own))),
            place,
            dice,
            written: Vec::new(),
            serial: 0,
        }
    }

    /// Writes a composition, mostly a new one.
    fn write(&mut self) {
        self.serial += 1;
        let old = self.dice.roll(3) == 0 && !self.written.is_empty();
        let at = self.dice.roll(self.written.len().max(1) as u64) as usize;
        if !old {
            let written = Written {
                ehr: EHRS[self.dice.roll(3) as usize],
                object: format!("d-{}", self.serial),
                number: 0,
            };
            self.written.push(written);
        }
        let at = if old { at } else { self.written.len() - 1 };
        let deletes = old && self.dice.roll(3) == 0;
        let written = &mut self.written[at];
        let draft = Draft {
            ehr: written.ehr,
            deletes,
            ..Draft::composition(&written.object, written.number + 1)
        };
        // The EHR may not be modifiable now, or the object may have been removed with it.
        if let Ok(Ok(())) = now_or_never(self.place.plain.commit(draft.commit())) {
            written.number += 1;
        }
    }

    /// Commits something that changes an EHR_STATUS or a directory, or is refused.
    fn commit(&mut self) {
        self.serial += 1;
        let commit = self.dice.commit(self.serial);
        let _ = now_or_never(self.place.plain.commit(commit));
    }

    /// Removes an object or an EHR physically.
    fn remove(&mut self) {
        if self.dice.roll(4) == 0 || self.written.is_empty() {
            let ehr = EHRS[self.dice.roll(3) as usize];
            done(self.place.plain.delete_ehr(ehr));
            done(self.place.plain.commit(creation(ehr, None)));
            self.written.retain(|written| written.ehr != ehr);
        } else {
            // Mostly one of the first compositions, so that segments have a gap.
            let at = self.dice.roll(self.written.len() as u64 / 2 + 1) as usize;
            let Written { ehr, object, .. } = self.written.swap_remove(at);
            done(self.place.plain.delete_objects(ehr, &[object]));
        }
    }

    /// Does anything but answering the query that waits.
    fn event(&mut self, removes: bool) {
        // Whatever else reads blobs in an event does not wait.
        self.place.blobs.is_slow.set(false);
        match self.dice.roll(12) {
            0..=2 => self.write(),
            3 => self.commit(),
            4..=6 => {
                let _ = self.place.compact(0);
            }
            7 => self.place.collect(0, TODAY),
            8 => self.place.collect(0, LATER),
            9 => drop(self.place.at_night(0)),
            10 => {
                let query = QUERIES[self.dice.roll(QUERIES.len() as u64) as usize];
                let expected = rows(&self.place.plain, query);
                assert_eq!(self.answer_beside(query, 0, false).0, expected, "{query}");
            }
            _ if removes => self.remove(),
            _ => self.write(),
        }
        self.place.blobs.is_slow.set(true);
    }

    /// Returns the answer of the isolate, and the number of segments that it read, with at most so
    /// many events beside it.
    fn answer_beside(&mut self, query: &str, events: usize, removes: bool) -> (Vec<String>, usize) {
        let isolate = Rc::clone(&self.isolate);
        let mut found = Box::pin(answer(&isolate, query));
        let mut left = events;
        loop {
            match found.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(found) => return found,
                Poll::Pending if left > 0 => {
                    left -= 1;
                    self.event(removes);
                }
                Poll::Pending => {}
            }
        }
    }

    /// Lets the isolate learn that data were removed. A query that finds this out begins again, in the
    /// state of that time.
    fn follow(&mut self) {
        self.place.blobs.is_slow.set(false);
        drop(self.answer_beside("SELECT s/is_queryable AS q FROM EHR_STATUS s", 0, false));
        self.place.blobs.is_slow.set(true);
    }

    /// Writes segments, lets the isolate learn how far they reach, and writes rows behind them.
    fn prepare(&mut self) {
        self.place.blobs.is_slow.set(false);
        for _ in 0..self.dice.roll(30) {
            self.write();
            self.commit();
        }
        while self.place.compact(0) == Some(Compaction::Written) {}
        for query in [QUERIES[0], QUERIES[13]] {
            let expected = rows(&self.place.plain, query);
            assert_eq!(self.answer_beside(query, 0, false).0, expected);
        }
        // A page of rows behind the segments is much longer than a segment.
        for _ in 0..40 + self.dice.roll(30) {
            self.write();
        }
        for _ in 0..=self.dice.roll(3) {
            self.remove();
        }
        self.place.blobs.is_slow.set(true);
    }
}

/// The uids of all versions, as a query shows them.
fn stored_uids(place: &Place) -> BTreeSet<String> {
    let uids = "SELECT '\"' || object || '::' || system || '::' || number || '\" ' FROM version";
    Sqlite::texts(place.plain.sql(), uids).into_iter().collect()
}

#[test]
fn answer_is_that_of_the_state_in_which_the_query_began() {
    let mut segments = 0;
    for seed in 1..=6 {
        let mut world = World::new(seed);
        for round in 0..3 {
            world.prepare();
            for _ in 0..5 {
                let query = QUERIES[world.dice.roll(QUERIES.len() as u64) as usize];
                world.follow();
                let expected = rows(&world.place.plain, query);
                let (found, read) = world.answer_beside(query, EVENTS, false);
                assert_eq!(found, expected, "seed {seed}, round {round}: {query}");
                segments += read;
            }
        }
    }
    assert!(segments > 40, "{segments} segments were read");
}

/// A physical deletion takes versions out of queries that read their rows later. All others are in
/// the answer once.
#[test]
fn answer_beside_deletions_has_each_version_once() {
    let queries = [
        QUERIES[1],
        "SELECT v/uid/value AS uid FROM VERSION v[ALL_VERSIONS] CONTAINS COMPOSITION c",
    ];
    let mut segments = 0;
    for seed in 1..=6 {
        let mut world = World::new(100 + seed);
        for round in 0..3 {
            world.prepare();
            for query in queries.into_iter().cycle().take(4) {
                let case = format!("seed {seed}, round {round}: {query}");
                world.follow();
                let expected = rows(&world.place.plain, query);
                let (found, read) = world.answer_beside(query, EVENTS, true);
                segments += read;
                let stored = stored_uids(&world.place);
                let mut rest = found.iter().peekable();
                for uid in &expected {
                    let is_found = rest.next_if_eq(&uid).is_some();
                    assert!(
                        is_found || !stored.contains(uid),
                        "{case}: {uid} is missing"
                    );
                }
                assert_eq!(
                    rest.next(),
                    None,
                    "{case}: it is out of order, or there twice"
                );
            }
        }
    }
    assert!(segments > 40, "{segments} segments were read");
}
