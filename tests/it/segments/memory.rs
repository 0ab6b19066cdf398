//! Queries whose parts of segments do not fit into memory: each has another way to its rows.

use super::queries::QUERIES;
use super::{Place, Scanned, check, check_named, rows, scanned};
use crate::rest::Ticks;
use crate::sql::{Dice, EHRS};
use crate::sqlite::Sqlite;
use crate::store::{Draft, creation, done};
use aqlite::service::{Auth, Config, Request, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;
use aqlite::store::sql::{Compaction, Segments, SqlRepository};
use serde_json::{Value, json};
use std::rc::Rc;

const JOIN: &str = "SELECT e/ehr_id/value AS ehr, a AS a, b AS b FROM EHR e CONTAINS ((COMPOSITION a CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.pulse.v2]) AND COMPOSITION b)";

/// Returns segments with 160 documents of 40 EHRs. [`JOIN`] has the four documents of three EHRs.
fn joinable() -> Place {
    let mut place = Place::new(16);
    for number in 0..40 {
        let ehr = format!("{number:08}-0000-4000-8000-000000000000");
        done(place.plain.commit(creation(&ehr, None)));
        for document in 0..4 {
            let object = format!("o-{number}-{document}");
            let text = format!("remark {object} ").repeat(50);
            let draft = Draft {
                ehr: &ehr,
                text: &text,
                archetype: match object.as_str() {
                    "o-5-2" | "o-18-0" | "o-31-3" => "openEHR-EHR-OBSERVATION.pulse.v2",
                    _ => "openEHR-EHR-OBSERVATION.blood_pressure.v2",
                },
                ..Draft::composition(&object, 1)
            };
            done(place.plain.commit(draft.commit()));
        }
    }
    while place.compact(0) == Some(Compaction::Written) {}
    place
}

/// Returns a repository with segments that may have `memory` bytes of parts.
fn isolate(place: &Place, most: u64, (kept, memory): (usize, usize)) -> SqlRepository<Sqlite> {
    let segments = Segments::new(Box::new(place.blobs.clone())).with_sizes(1, most);
    let segments = Rc::new(segments.with_memory(kept, memory));
    place.plain.sql().repository().with_segments(segments)
}

/// Sends a query to a service on a repository, and returns the body of the response.
fn posted(repository: SqlRepository<Sqlite>, path: &str, query: &str) -> Value {
    let config = Config {
        auth: Auth::Open,
        ..Config::default()
    };
    let service = Service::new(repository, config);
    let request = Request::new("POST", path);
    let request = request.with_body("application/json", json!({ "q": query }).to_string());
    let response = now_or_never(service.handle(&request, &mut Ticks::new())).expect("ready");
    let body = String::from_utf8(response.body).expect("a text");
    assert_eq!(response.status, 200, "{body}");
    serde_json::from_str(&body).expect("JSON")
}

#[test]
fn join_that_needs_too_much_memory_reads_rows_of_its_documents_alone() {
    let (place, query) = (joinable(), JOIN);
    let expected = rows(&place.plain, query);
    assert_eq!(expected.len(), 12, "4 documents for each of 3 EHRs");
    let all = scanned(&place.isolates[1], query).reads.part_bytes as usize;
    let everything = scanned(&place.plain, query).reads.rows;
    let (mut listed, mut explained_listed) = (0, 0);
    for part in 1..=40 {
        let memory = (usize::MAX, all * part / 40);
        let found = scanned(&isolate(&place, 16, memory), query);
        assert_eq!(found.rows, expected, "{part} of 40");
        let read = found.reads;
        let explained = posted(isolate(&place, 16, memory), "/v1/query/aql/explain", query);
        let run = &explained["run"];
        assert_eq!(run["rows"], 12, "{part} of 40: {run}");
        let reads = (&run["reads"]["rows"], &run["reads"]["absent_segments"]);
        explained_listed += usize::from(reads == (&json!(12), &json!(0)));
        let is_listed = read.absent_segments == 0 && read.rows > 0;
        assert!(!is_listed || read.rows == 12, "{read:?} of {everything}");
        listed += usize::from(is_listed);
    }
    assert!(
        listed > 3 && explained_listed > 3,
        "in {listed} and {explained_listed} runs the documents of the join were read"
    );
}

#[test]
fn little_memory_changes_no_answer() {
    for (kept, loaded) in [(0, usize::MAX), (0, 2_000), (0, 20_000), (usize::MAX, 0)] {
        let mut place = Place::with(|segments| segments.with_sizes(1, 7).with_memory(kept, loaded));
        let mut dice = Dice::of(5);
        for serial in 0..120 {
            let _ = now_or_never(place.plain.commit(dice.commit(serial))).expect("ready");
        }
        while place.compact(0) == Some(Compaction::Written) {}
        check(&place, 1, 5);
        check(&place, 1, 5);
        check_named(&place, 1, 5);
        check_named(&place, 1, 5);
    }
}

#[test]
fn query_that_needs_too_much_memory_reads_rows_and_no_part() {
    let mut place = Place::with(|segments| segments.with_sizes(1, 1_000).with_memory(1_000, 1));
    done(place.plain.commit(creation(EHRS[0], None)));
    done(place.plain.commit(Draft::composition("a", 1).commit()));
    while place.compact(0) == Some(Compaction::Written) {}
    let reads = place.blobs.reads.get();
    let query = QUERIES[1];
    assert_eq!(rows(&place.isolates[1], query), rows(&place.plain, query));
    assert_eq!(place.blobs.reads.get(), reads + 1, "the head");
}

#[test]
fn parts_of_earlier_queries_make_room_for_a_query_that_needs_it() {
    let mut place = Place::new(1_000);
    done(place.plain.commit(creation(EHRS[0], None)));
    for object in 0..40 {
        let object = format!("c{object}");
        let draft = Draft::composition(&object, 1);
        done(place.plain.commit(draft.commit()));
    }
    while place.compact(0) == Some(Compaction::Written) {}
    // Each query may take as much memory as it needs alone, and less than both need together.
    let queries = [QUERIES[1], QUERIES[4]];
    let need =
        |isolate: usize, query| scanned(&place.isolates[isolate], query).reads.part_bytes as usize;
    let (first, second) = (need(0, queries[0]), need(1, queries[1]));
    let (limit, both) = (first.max(second), need(0, queries[1]));
    assert!(limit < both, "{first} {second} {both}");
    let isolate = isolate(&place, 1_000, (usize::MAX, limit));
    for query in queries {
        let read = scanned(&isolate, query).reads;
        assert_eq!(
            (read.rows, read.absent_segments),
            (0, 0),
            "{query} {read:?}"
        );
        assert!(read.part_bytes as usize <= limit, "{query}");
        assert_eq!(rows(&isolate, query), rows(&place.plain, query), "{query}");
    }
}

#[test]
fn segments_are_sent_one_after_the_other_if_they_do_not_fit_together() {
    let mut place = Place::new(8);
    done(place.plain.commit(creation(EHRS[0], None)));
    for object in 0..60 {
        let object = format!("c{object:02}");
        let draft = Draft::composition(&object, 1);
        done(place.plain.commit(draft.commit()));
    }
    while place.compact(0) == Some(Compaction::Written) {}
    let whole = |query| scanned(&place.isolates[0], query).reads;
    let query = QUERIES[4];
    let (all, least) = (whole(query), 2);
    assert!(all.segments > 4, "{all:?}");
    let limit = all.part_bytes as usize / all.segments as usize * least;
    let few = isolate(&place, 8, (limit, limit));
    for query in QUERIES {
        let Scanned {
            reads: read, alone, ..
        } = scanned(&few, query);
        assert_eq!(rows(&few, query), rows(&place.plain, query), "{query}");
        // Without a cache, the service reads about the same parts of each segment as the sink of these
        // tests. If it could not go back to the state before a segment, it would read rows instead.
        let start = place.blobs.reads.get();
        drop(scanned(&isolate(&place, 8, (limit, limit)), query));
        let middle = place.blobs.reads.get();
        let found = posted(isolate(&place, 8, (limit, limit)), "/v1/query/aql", query);
        let blobs = (middle - start, place.blobs.reads.get() - middle);
        let expected = posted(place.plain.sql().repository(), "/v1/query/aql", query);
        assert_eq!(found["rows"], expected["rows"], "{query}");
        if query == QUERIES[4] {
            assert!(blobs.1 * 2 > blobs.0, "{blobs:?} blobs were read");
            assert_eq!((read.rows, read.absent_segments), (0, 0), "{read:?}");
            assert!(alone > 4, "{alone} segments were sent alone");
        }
    }
}
