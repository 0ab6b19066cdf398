//! Gaps between segments, which queries fill with rows, before the rows behind all segments; and
//! the invariants that turn a row that would be counted twice into an error.

use super::{Compaction, Place, QUERIES, scan_in, scanned};
use crate::sql::EHRS;
use crate::sqlite::Sqlite;
use crate::store::{Draft, creation, done};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{Repository, StoreError};
use aqlite::store::sql::{LayoutCatalog, Row, Sql, SqlError, SqlRepository, Statement};
use std::rc::Rc;

/// The versions of each segment, and the EHRs of each segment of EHRs.
const SIZE: u64 = 10;

/// Rows behind the segments: more than the size of the first page that a short gap leads to.
const BEHIND: u64 = 120;

/// Returns an ehr_id.
fn numbered(number: u64) -> String {
    format!("55555555-5555-4555-8555-{number:012}")
}

/// Compacts everything, and lets an isolate learn how far the segments reach.
fn compacted(place: &mut Place, isolate: usize, query: &str) {
    while place.compact(0) == Some(Compaction::Written) {}
    let read = scanned(&place.isolates[isolate], query).reads;
    assert_eq!((read.rows, read.absent_segments), (0, 0), "{read:?}");
    assert!(read.segments >= 3, "{read:?}");
}

/// Compares an answer over segments with a gap with that of a plain scan.
fn check_gap(place: &Place, isolate: usize, query: &str) {
    let expected = scanned(&place.plain, query);
    let found = scanned(&place.isolates[isolate], query);
    assert_eq!(found.rows, expected.rows, "{query}");
    assert!(found.reads.segments >= 2, "{query}: {:?}", found.reads);
    // The first pages of both kinds of rows are small, and no row is read twice.
    assert!(
        found.reads.rows < expected.reads.rows,
        "{query}: {:?}",
        found.reads
    );
}

/// Versions 1 to 30 in three segments. Those of the second one include an EHR of their own.
fn place_of_three_segments(query: &str, isolate: usize) -> Place {
    let mut place = Place::new(SIZE);
    done(place.plain.commit(creation(EHRS[0], None)));
    let add = |place: &Place, ehr: &str, number: u64| {
        let object = format!("object-{number}");
        let draft = Draft {
            ehr,
            ..Draft::composition(&object, 1)
        };
        done(place.plain.commit(draft.commit()));
    };
    (2..=SIZE).for_each(|number| add(&place, EHRS[0], number));
    done(place.plain.commit(creation(EHRS[1], None)));
    add(&place, EHRS[1], SIZE + 2);
    (SIZE + 3..=3 * SIZE).for_each(|number| add(&place, EHRS[0], number));
    compacted(&mut place, isolate, query);
    let behind = 3 * SIZE + 1..=3 * SIZE + BEHIND;
    behind.for_each(|number| add(&place, EHRS[0], number));
    place
}

#[test]
fn each_version_behind_a_gap_is_counted_once() {
    for query in [
        QUERIES[0],
        "SELECT count(*) AS n, count(DISTINCT c/name/value) AS names, count(DISTINCT e/ehr_id/value) AS ehrs FROM EHR e CONTAINS COMPOSITION c",
        QUERIES[1],
        QUERIES[9],
    ] {
        let place = place_of_three_segments(query, 1);
        done(place.plain.delete_ehr(EHRS[1]));
        check_gap(&place, 1, query);
        // The isolate now knows that its segments reach less far.
        check_gap(&place, 1, query);
    }
}

/// A rewritten segment has a new blob, which other places may see a minute later.
#[test]
fn each_version_behind_a_late_segment_is_counted_once() {
    let query = QUERIES[0];
    let place = place_of_three_segments(query, 1);
    let rename = "UPDATE segment SET blob = 'late' WHERE first = 11 RETURNING blob";
    assert_eq!(Sqlite::texts(place.plain.sql(), rename), ["late"]);
    check_gap(&place, 1, query);
    check_gap(&place, 1, query);
}

#[test]
fn each_ehr_behind_a_gap_is_counted_once() {
    for query in [QUERIES[13], QUERIES[14]] {
        let mut place = Place::new(SIZE);
        let add = |place: &Place, number| {
            done(place.plain.commit(creation(&numbered(number), None)));
        };
        (1..=3 * SIZE).for_each(|number| add(&place, number));
        compacted(&mut place, 1, query);
        (3 * SIZE + 1..=3 * SIZE + BEHIND).for_each(|number| add(&place, number));
        done(place.plain.delete_ehr(&numbered(SIZE + 2)));
        check_gap(&place, 1, query);
        check_gap(&place, 1, query);
    }
}

/// A database that returns the last row of each page of documents twice.
struct Repeating(Sqlite);

impl Sql for Repeating {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        let is_page = |statement: &Statement| statement.sql.starts_with("SELECT p.found");
        let pages: Vec<bool> = statements.iter().map(is_page).collect();
        let mut answers = self.0.batch(statements).await?;
        for (rows, _) in answers
            .iter_mut()
            .zip(pages)
            .filter(|(_, is_page)| *is_page)
        {
            rows.extend(rows.last().cloned());
        }
        Ok(answers)
    }
}

/// Returns the error that ends the scan of a query.
fn refused(store: &SqlRepository<impl Sql>, query: &str) -> String {
    match now_or_never(scan_in(store, query, None)).expect("ready") {
        Err(StoreError::Failed(what)) => what,
        Err(other) => panic!("{query}: {other}"),
        Ok(scanned) => panic!("{query} is answered: {:?}", scanned.rows),
    }
}

#[test]
fn row_that_is_read_twice_is_an_error() {
    let place = place_of_three_segments(QUERIES[0], 1);
    let database = Repeating(place.plain.sql().clone());
    let repeating = SqlRepository::new(database, Rc::new(LayoutCatalog::default()));
    // Documents, old versions, statuses, EHRs and joins. A page without rows repeats none.
    for number in [0, 1, 8, 11, 13, 17, 19] {
        let query = QUERIES[number];
        let what = refused(&repeating, query);
        assert!(what.contains("out of its order"), "{query}: {what}");
    }
    let of_one_ehr = format!(
        "SELECT c/uid/value AS uid FROM EHR e[ehr_id/value = '{}'] CONTAINS COMPOSITION c",
        EHRS[0]
    );
    assert!(refused(&repeating, &of_one_ehr).contains("out of its order"));
}

#[test]
fn segments_that_overlap_are_an_error() {
    for change in ["last = 12", "first = 11", "state = 9"] {
        let place = place_of_three_segments(QUERIES[0], 1);
        let change = format!("UPDATE segment SET {change} WHERE first = 1");
        place.plain.sql().behind(&change);
        let what = refused(&place.isolates[1], QUERIES[0]);
        assert!(what.contains("overlap"), "{change}: {what}");
    }
}

#[test]
fn segment_with_other_documents_than_the_manifest_says_is_not_read() {
    for change in ["versions = versions - 1", "first = 2", "last = 9"] {
        let mut place = place_of_three_segments(QUERIES[0], 1);
        let change = format!("UPDATE segment SET {change} WHERE first = 1");
        place.plain.sql().behind(&change);
        let expected = scanned(&place.plain, QUERIES[0]).rows;
        let found = scanned(&place.isolates[2], QUERIES[0]);
        assert_eq!(found.rows, expected, "{change}");
        assert_eq!(
            found.reads.absent_segments, 1,
            "{change}: {:?}",
            found.reads
        );
        assert_eq!(place.compact(2), Some(Compaction::Written), "{change}");
        let again = scanned(&place.isolates[2], QUERIES[0]);
        assert_eq!(
            (again.rows, again.reads.absent_segments),
            (expected, 0),
            "{change}"
        );
    }
}
