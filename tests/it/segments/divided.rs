//! Queries whose documents are divided among several isolates, as among the threads of a server.

use super::queries::QUERIES;
use super::{Place, Restarting, scan_in, texts};
use crate::rows::NOW;
use crate::sqlite::Sqlite;
use aqlite::aql::{self, Budget, Parameters, Plan, QueryOptions, Run, prepare};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{Division, Repository, StoreError};
use aqlite::store::scan::{Progress, Scan};
use aqlite::store::sql::SqlRepository;

/// The maximum number of parts.
const PARTS: usize = 4;

/// Queries whose results are merged in all ways, beside those that all tests of segments run.
const MERGED: [&str; 4] = [
    "SELECT c/name/value AS name, count(*), min(c/uid/value), max(c/context/start_time/value) FROM EHR e CONTAINS COMPOSITION c",
    "SELECT DISTINCT c/name/value AS name FROM EHR e CONTAINS COMPOSITION c WHERE c/name/value != 'x' LIMIT 3 OFFSET 1",
    "SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c ORDER BY c/uid/value DESC LIMIT 4 OFFSET 2",
    "SELECT TOP 3 BACKWARD c/uid/value AS uid, c AS whole FROM EHR e CONTAINS COMPOSITION c",
];

/// Divides the newest state; `None` if it has too few segments.
pub(super) fn division(place: &Place, isolate: usize) -> Option<Division> {
    let plan = plan_of(QUERIES[0]);
    let division = place.isolates[isolate].divide(plan.scan(), PARTS);
    now_or_never(division).expect("ready").expect("a division")
}

/// Returns the last division, if there is one.
pub(super) fn last(divisions: &[Division]) -> &[Division] {
    &divisions[divisions.len().saturating_sub(1)..]
}

/// Compares the merged answers of several isolates with those of a plain scan. `divisions` may be
/// older than the present state. Returns the number of parts that were read.
pub(super) fn check_divided(place: &Place, seed: u64, divisions: &[Division]) -> usize {
    let mut parts = 0;
    for division in divisions {
        for query in QUERIES.into_iter().chain(MERGED) {
            let plan = plan_of(query);
            if !plan.is_divisible() {
                continue;
            }
            let expected = scan_in(&place.plain, query, Some(division.snapshot));
            let expected = now_or_never(expected)
                .expect("ready")
                .map(|found| found.rows);
            let found = merged(&place.isolates, &plan, division);
            let text = |error: StoreError| error.to_string();
            assert_eq!(
                found.map_err(text),
                expected.map_err(text),
                "seed {seed}, {division:?}: {query}"
            );
            parts += division.parts.len();
        }
    }
    parts
}

fn plan_of(query: &str) -> Plan {
    prepare(query, &Parameters::new(), &QueryOptions::default()).expect("a query")
}

/// Returns the rows of a query of which each isolate evaluates some parts.
fn merged(
    isolates: &[SqlRepository<Sqlite>],
    plan: &Plan,
    division: &Division,
) -> Result<Vec<String>, StoreError> {
    let (go_on, budget) = (|| false, Budget::default());
    let of_part = aql::plan(plan.query().of_part(), None, false).expect("a plan");
    let begin = || Run::new(&of_part, NOW, budget, &go_on);
    let scan = Scan {
        snapshot: Some(division.snapshot),
        ..plan.scan().clone()
    };
    let mut whole = Run::new(plan, NOW, budget, &go_on);
    for (part, isolate) in division.parts.iter().zip(isolates.iter().cycle()) {
        let mut sink = Restarting::of(&begin);
        let snapshot = now_or_never(isolate.scan_part(&scan, *part, &mut sink)).expect("ready")?;
        assert_eq!(snapshot, division.snapshot);
        let partial = sink.run.into_partial().expect("a partial result");
        if whole.absorb(partial) == Progress::Enough {
            break;
        }
    }
    Ok(texts(&whole.finish().expect("an answer")))
}
