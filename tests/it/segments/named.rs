//! Queries that name EHRs, over segments and over rows.

use super::Place;
use crate::rows::NOW;
use crate::sql::EHRS;
use crate::sqlite::Sqlite;
use aqlite::aql::{Budget, Parameters, QueryOptions, RowValue, Run, prepare};
use aqlite::document::{Batch, Leaf};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{BatchSink, Repository};
use aqlite::store::scan::{Progress, Scan};
use aqlite::store::sql::SqlRepository;
use std::collections::{BTreeMap, BTreeSet};

/// Compares the answers of queries that name EHRs with those of a plain scan. Returns the number of
/// segments that were read.
pub(super) fn check_named(place: &Place, isolate: usize, seed: u64) -> usize {
    let absent = "44444444-4444-4444-8444-444444444444";
    let mut segments = 0;
    for ehrs in [&[EHRS[1], absent][..], &[EHRS[2], EHRS[0], EHRS[1]]] {
        let ehrs: Vec<String> = ehrs.iter().map(|ehr| (*ehr).to_owned()).collect();
        for query in NAMED {
            let expected = named(&place.plain, query, &ehrs);
            let found = named(&place.isolates[isolate], query, &ehrs);
            let case = format!("seed {seed}: {query} of {ehrs:?}");
            assert_eq!(found.0, expected.0, "{case}");
            assert_eq!(found.1, expected.1, "{case}");
            assert_eq!(expected.2, 0, "a plain scan reads no segment");
            segments += found.2;
        }
    }
    segments
}

/// Queries whose last column is the EHR.
const NAMED: [&str; 4] = [
    "SELECT c/uid/value, e/ehr_id/value FROM EHR e CONTAINS COMPOSITION c",
    "SELECT o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude, c/uid/value, e/ehr_id/value FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]",
    "SELECT v/uid/value, e/ehr_id/value FROM EHR e CONTAINS VERSION v[ALL_VERSIONS]",
    "SELECT s/uid/value, s/is_queryable, e/ehr_id/value FROM EHR e CONTAINS EHR_STATUS s",
];

/// Returns the rows of a query that names EHRs, the EHRs that exist, and the number of segments that
/// were read.
fn named(
    store: &SqlRepository<Sqlite>,
    query: &str,
    ehrs: &[String],
) -> (BTreeMap<String, Vec<String>>, BTreeSet<String>, usize) {
    let plan = prepare(query, &Parameters::new(), &QueryOptions::default()).expect("a query");
    let plan = plan.among(ehrs);
    let (go_on, budget) = (|| false, Budget::default());
    let begin = || Run::new(&plan, NOW, budget, &go_on);
    let mut sink = OfNamed {
        run: Some(begin()),
        begin: Some(&begin),
        ..OfNamed::default()
    };
    let scan = Scan {
        empty_ehrs: true,
        ..plan.scan().clone()
    };
    now_or_never(store.scan(&scan, &mut sink))
        .expect("ready")
        .expect("a scan");
    let finished = sink.run.expect("a run").finish();
    assert!(finished.expect("an answer").is_empty());
    (sink.rows, sink.existing, sink.segments)
}

/// The rows of a query that names EHRs, and the EHRs that exist.
#[derive(Default)]
struct OfNamed<'p> {
    begin: Option<&'p dyn Fn() -> Run<'p>>,
    run: Option<Run<'p>>,
    /// The rows by EHR, which is the last value of a row.
    rows: BTreeMap<String, Vec<String>>,
    existing: BTreeSet<String>,
    /// The number of segments that were read.
    segments: usize,
}

impl OfNamed<'_> {
    fn advance(&mut self, batch: &Batch, ehrs: Option<&[u32]>) -> Progress {
        let rows = &mut self.rows;
        let mut visit = |_: u64, row: &[RowValue<'_>]| {
            let text = |value: &RowValue<'_>| match value.leaf() {
                Some(Leaf::Text(text)) => text.to_owned(),
                leaf => format!("{leaf:?}"),
            };
            let texts: Vec<String> = row.iter().map(text).collect();
            let (ehr, values) = texts.split_last().expect("an EHR");
            rows.entry(ehr.clone()).or_default().push(values.join(" "));
        };
        let run = self.run.as_mut().expect("a run");
        match ehrs {
            Some(ehrs) => run.advance_each_among(batch, ehrs, &mut visit),
            None => run.advance_each(batch, &mut visit),
        }
    }
}

impl BatchSink for OfNamed<'_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        assert!(!batch.is_late(), "a segment without its EHRs");
        let ids = batch.ehrs().filter_map(|ehr| batch.ehr_id(ehr));
        self.existing.extend(ids.map(str::to_owned));
        self.advance(batch, None)
    }

    fn receive_named_ehrs(&mut self, ehr_ids: &mut dyn Iterator<Item = &str>) -> bool {
        self.existing.extend(ehr_ids.map(str::to_owned));
        true
    }

    fn take_among(&mut self, segment: &Batch, ehrs: &[u32]) -> Progress {
        self.segments += 1;
        self.advance(segment, Some(ehrs))
    }

    fn restart(&mut self) -> bool {
        self.run = self.begin.map(|begin| begin());
        self.rows.clear();
        self.segments = 0;
        true
    }
}
