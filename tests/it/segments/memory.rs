//! Queries whose parts of segments do not fit into memory: each has another way to its rows.

use super::queries::QUERIES;
use super::{Place, Scanned, check, check_named, rows, scanned};
use crate::sql::{Dice, EHRS};
use crate::store::{Draft, creation, done};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;
use aqlite::store::sql::{Compaction, Segments};
use std::rc::Rc;

#[test]
fn join_that_needs_too_much_memory_reads_rows_of_its_documents_alone() {
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
    let query = "SELECT e/ehr_id/value AS ehr, a AS a, b AS b FROM EHR e CONTAINS ((COMPOSITION a CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.pulse.v2]) AND COMPOSITION b)";
    let expected = rows(&place.plain, query);
    assert_eq!(expected.len(), 12, "4 documents for each of 3 EHRs");
    let all = scanned(&place.isolates[1], query).reads.part_bytes as usize;
    let everything = scanned(&place.plain, query).reads.rows;
    let mut listed = 0;
    for part in 1..=40 {
        let segments = Segments::new(Box::new(place.blobs.clone())).with_sizes(1, 16);
        let segments = Rc::new(segments.with_memory(usize::MAX, all * part / 40));
        let isolate = place.plain.sql().repository().with_segments(segments);
        let found = scanned(&isolate, query);
        assert_eq!(found.rows, expected, "{part} of 40");
        let read = found.reads;
        let is_listed = read.absent_segments == 0 && read.rows > 0;
        assert!(!is_listed || read.rows == 12, "{read:?} of {everything}");
        listed += usize::from(is_listed);
    }
    assert!(
        listed > 3,
        "in {listed} runs the documents of the join were read"
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
    let segments = Segments::new(Box::new(place.blobs.clone())).with_sizes(1, 1_000);
    let segments = Rc::new(segments.with_memory(usize::MAX, limit));
    let isolate = place.plain.sql().repository().with_segments(segments);
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
    let segments = Segments::new(Box::new(place.blobs.clone())).with_sizes(1, 8);
    let segments = Rc::new(segments.with_memory(limit, limit));
    let isolate = place.plain.sql().repository().with_segments(segments);
    for query in QUERIES {
        let Scanned {
            reads: read, alone, ..
        } = scanned(&isolate, query);
        assert_eq!(rows(&isolate, query), rows(&place.plain, query), "{query}");
        if query == QUERIES[4] {
            assert_eq!((read.rows, read.absent_segments), (0, 0), "{read:?}");
            assert!(alone > 4, "{alone} segments were sent alone");
        }
    }
}
