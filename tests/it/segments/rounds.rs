//! The rounds in which a query loads the parts of segments that it reads: their number does not
//! depend on the number of segments.

use super::queries::WALKED;
use super::{Compaction, Place, scanned};
use crate::sql::Dice;
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
