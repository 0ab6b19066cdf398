//! The work of a night: absent and outdated segments are written again.

use super::{Compaction, Place, TODAY, check};
use crate::sql::EHRS;
use crate::sqlite::Sqlite;
use crate::store::{Draft, creation, done};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{Pause, Repository, StoreError};
use aqlite::store::sql::CompactionHost;
use std::cell::Cell;
use std::future::ready;

impl Place {
    /// Does the work of a night but for the compaction. Returns the absent segments.
    pub(super) fn at_night(&mut self, isolate: usize) -> Result<Vec<String>, StoreError> {
        let serial = Cell::new(self.serial);
        let blob = || {
            serial.set(serial.get() + 1);
            format!("b{}", serial.get())
        };
        let host = CompactionHost {
            blob: &blob,
            now: &|| TODAY,
            pause: &|| Box::pin(ready(())) as Pause,
        };
        let repository = &self.isolates[isolate];
        let absent = now_or_never(repository.find_lost_segments()).expect("ready");
        let rewritten = now_or_never(repository.rewrite_outdated_for(1, &host)).expect("ready");
        self.serial = serial.get();
        rewritten.and(absent)
    }

    /// Returns the blobs of the segments of versions.
    fn blobs_of_versions(&self) -> Vec<String> {
        Sqlite::texts(self.plain.sql(), "SELECT blob FROM segment ORDER BY first")
    }
}

/// Returns a place whose segment has the first versions of these compositions.
fn filled(objects: &[&str]) -> Place {
    let mut place = Place::new(1_000);
    done(place.plain.commit(creation(EHRS[0], None)));
    for object in objects {
        done(place.plain.commit(Draft::composition(object, 1).commit()));
    }
    while place.compact(0) == Some(Compaction::Written) {}
    place
}

#[test]
fn absent_segment_is_written_again_without_a_query() {
    let mut place = filled(&["a"]);
    place
        .blobs
        .blobs
        .borrow_mut()
        .retain(|key, _| !key.ends_with("/head"));
    let absent = place.at_night(2).expect("the store answers");
    assert_eq!(absent.len(), 2, "versions and EHRs: {absent:?}");
    assert_eq!(place.compact(2), Some(Compaction::Written), "versions");
    assert_eq!(place.compact(2), Some(Compaction::Written), "EHRs");
    assert_eq!(place.at_night(1).expect("the store answers"), [""; 0]);
    check(&place, 0, 0);
}

#[test]
fn absence_of_the_store_is_an_error() {
    let mut place = filled(&["a"]);
    place.blobs.one_fails_in.set(1);
    let nights: Vec<_> = (0..8).map(|_| place.at_night(1)).collect();
    let errors = nights.iter().filter(|night| night.is_err()).count();
    assert!(errors > 0 && errors < 8, "{errors} errors");
}

#[test]
fn segment_is_rewritten_if_more_than_a_tenth_is_superseded() {
    // Eleven versions, with that of the EHR_STATUS.
    let mut place = filled(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let first = place.blobs_of_versions();
    assert_eq!(first.len(), 1);
    done(place.plain.commit(Draft::composition("a", 2).commit()));
    place.at_night(0).expect("the store answers");
    assert_eq!(place.blobs_of_versions(), first, "1 of 11");
    done(place.plain.commit(Draft::composition("b", 2).commit()));
    place.at_night(0).expect("the store answers");
    let second = place.blobs_of_versions();
    assert!(second.len() == 1 && second != first, "2 of 11");
    place.at_night(1).expect("the store answers");
    assert_eq!(place.blobs_of_versions(), second, "it is up to date");
    for isolate in 0..3 {
        check(&place, isolate, 0);
    }
    let heads = place.blobs.blobs.borrow();
    assert!(
        heads.keys().all(|key| !key.contains(&first[0])),
        "the old one is deleted"
    );
}
