//! The rounds in which a query loads the parts of segments that it reads: their number does not
//! depend on the number of segments. A query for its first rows loads no parts of later segments.

use super::queries::{QUERIES, WALKED};
use super::{Compaction, Place, scanned};
use crate::sql::{Dice, EHRS};
use crate::store::{Draft, creation, done};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;

/// Returns a place with many segments of a random history.
fn place_of_many_segments() -> Place {
    let (mut place, mut dice) = (Place::new(2), Dice::of(3));
    for serial in 0..900 {
        let _ = now_or_never(place.plain.commit(dice.commit(serial))).expect("ready");
        if serial % 6 == 0 {
            place.compact(0);
        }
    }
    while place.compact(0) == Some(Compaction::Written) {}
    place
}

#[test]
fn parts_of_all_segments_are_loaded_together() {
    let place = place_of_many_segments();
    for query in WALKED {
        let expected = scanned(&place.plain, query).rows;
        let found = scanned(&place.isolates[1], query);
        assert_eq!(found.rows, expected, "{query}");
        assert!(found.segments > 15, "{query}: {} segments", found.segments);
        assert!(found.restarts <= 8, "{query}: {} restarts", found.restarts);
    }
}

/// Returns a place with ten segments of the same documents.
fn place_of_equal_segments() -> Place {
    let mut place = Place::new(40);
    done(place.plain.commit(creation(EHRS[0], None)));
    for number in 1..400 {
        let object = format!("c{number}");
        let draft = Draft::composition(&object, 1);
        done(place.plain.commit(draft.commit()));
    }
    while place.compact(0) == Some(Compaction::Written) {}
    place
}

#[test]
fn first_rows_load_no_parts_of_later_segments() {
    let place = place_of_equal_segments();
    let listed = [QUERIES[1], QUERIES[3], QUERIES[4]];
    let walked =
        WALKED.map(|query| query.replace("count(*) AS n, max(c/uid/value)", "c/uid/value"));
    let walked = walked.map(|query| query.replace("count(*) AS n, max(x/value/magnitude)", "x"));
    let queries = listed.map(String::from).into_iter().chain(walked);
    for query in queries {
        let limited = format!("{query} LIMIT 5");
        let all = scanned(&place.isolates[1], &query);
        let few = scanned(&place.isolates[2], &limited);
        assert_eq!(few.rows, scanned(&place.plain, &limited).rows, "{query}");
        if all.rows.len() < 40 {
            continue;
        }
        let parts = (few.reads.part_bytes, all.reads.part_bytes);
        assert!(parts.0 * 3 < parts.1, "{query}: {parts:?} bytes of parts");
    }
}
