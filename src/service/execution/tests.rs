//! Tests of the consumption of a chain of guides.

use super::*;

fn chain(ehr_range: EhrRange, ehrs: usize) -> Chain {
    Chain {
        ehr_range,
        started: 0,
        reports_queries: false,
        query_time: 0.0,
        limits: Limits::default(),
        spent: vec![Spent::default(); ehrs],
        earlier: Vec::new(),
    }
}

#[test]
fn runs_on_an_ehr_without_a_count_are_an_internal_error() {
    let spent = Spent { bytes: 3, steps: 5 };
    let mut piece = chain(EhrRange::Piece, 1);
    assert_eq!(piece.count(0, spent), Ok(spent));
    assert_eq!(piece.limits_of(0), Ok(Limits::default().without(spent)));
    assert_eq!(piece.limits_of(1).unwrap_err().status, 500);
    assert_eq!(piece.count(1, spent).unwrap_err().status, 500);
    let mut whole = chain(EhrRange::All, 1);
    assert_eq!(whole.count(0, spent), Ok(spent));
    assert_eq!(whole.limits_of(0), Ok(Limits::default().without(spent)));
}
