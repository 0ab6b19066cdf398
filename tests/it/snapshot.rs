//! A snapshot shows one state, whatever is committed and removed after it, for random histories, in
//! memory and in the database.

use crate::sql::Dice;
use crate::sqlite::Sqlite;
use crate::store::{creation, done, found};
use aqlite::document::{Batch, ObjectKind};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::{Repository, StoreError};
use aqlite::store::scan::{Scan, Snapshot};
use std::collections::BTreeSet;

const EHRS: [&str; 3] = crate::sql::EHRS;

/// The scans whose answers are compared: of documents and of whole EHRs, of the latest versions and
/// of all, of all patients and of some.
fn scans() -> Vec<Scan> {
    let compositions = Scan {
        kinds: vec![ObjectKind::Composition],
        whole_ehrs: false,
        empty_ehrs: false,
        ..Scan::default()
    };
    let named = |ehrs: &[&str], scan: Scan| Scan {
        ehrs: Some(ehrs.iter().map(|id| (*id).to_owned()).collect()),
        ..scan
    };
    vec![
        compositions.clone(),
        Scan {
            all_versions: true,
            ..compositions.clone()
        },
        Scan::default(),
        Scan {
            all_versions: true,
            ..Scan::default()
        },
        named(
            &EHRS[..1],
            Scan {
                unqueryable: true,
                ..compositions.clone()
            },
        ),
        named(
            &EHRS[..1],
            Scan {
                all_versions: true,
                ..Scan::default()
            },
        ),
        named(
            &EHRS[1..],
            Scan {
                unqueryable: true,
                ..compositions
            },
        ),
    ]
}

/// A state as each scan names it, and the rows that were found in it.
struct Remembered {
    snapshots: Vec<Snapshot>,
    found: Vec<Vec<String>>,
    /// The EHRs of the state.
    ehrs: BTreeSet<&'static str>,
    /// Those of them that population queries read.
    queryable: BTreeSet<&'static str>,
    /// Those of them that were removed since.
    removed: BTreeSet<&'static str>,
}

fn newest<R: Repository>(store: &R, scan: &Scan) -> Snapshot {
    done(store.scan(scan, &mut |_: &Batch| true))
}

fn queryable<R: Repository>(store: &R) -> BTreeSet<&'static str> {
    let is_queryable = |ehr: &&str| done(store.ehr(ehr)).is_some_and(|ehr| ehr.is_queryable);
    EHRS.into_iter().filter(is_queryable).collect()
}

fn remember<R: Repository>(store: &R) -> Remembered {
    let ehrs = EHRS
        .into_iter()
        .filter(|ehr| done(store.ehr(ehr)).is_some())
        .collect();
    Remembered {
        snapshots: scans().iter().map(|scan| newest(store, scan)).collect(),
        found: scans().iter().map(|scan| found(store, scan)).collect(),
        queryable: queryable(store),
        ehrs,
        removed: BTreeSet::new(),
    }
}

/// Returns whether a scan of a remembered state must be refused, because data that it would show
/// are removed, or are of an EHR that is not queryable any more.
fn is_gone<R: Repository>(store: &R, scan: &Scan, then: &Remembered) -> bool {
    let is_asked = |ehr: &&str| {
        scan.ehrs
            .as_ref()
            .is_none_or(|ehrs| ehrs.iter().any(|id| id == ehr))
    };
    let now = queryable(store);
    let mut withdrawn = then.queryable.iter().filter(|ehr| !now.contains(*ehr));
    then.removed.iter().any(is_asked) || (!scan.unqueryable && withdrawn.any(is_asked))
}

fn check<R: Repository>(store: &R, then: &Remembered) -> (usize, usize) {
    let (mut shown, mut gone) = (0, 0);
    for ((scan, expected), asked) in scans().into_iter().zip(&then.found).zip(&then.snapshots) {
        let scan = Scan {
            snapshot: Some(*asked),
            ..scan
        };
        match now_or_never(store.scan(&scan, &mut |_: &Batch| true))
            .expect("a synchronous repository")
        {
            Ok(snapshot) => {
                assert!(!is_gone(store, &scan, then), "{scan:?}");
                assert_eq!(snapshot, *asked);
                assert_eq!(&found(store, &scan), expected, "{scan:?}");
                shown += 1;
            }
            Err(error) => {
                assert_eq!(error, StoreError::SnapshotGone);
                assert!(is_gone(store, &scan, then), "{scan:?}");
                gone += 1;
            }
        }
    }
    (shown, gone)
}

fn random_history<R: Repository>(store: &R, seed: u64) -> (usize, usize) {
    let (mut dice, mut remembered, mut counts) = (Dice::of(seed), Vec::<Remembered>::new(), (0, 0));
    for serial in 0..400 {
        let _ = now_or_never(store.commit(dice.commit(serial))).expect("a synchronous repository");
        if dice.roll(60) == 0 {
            let ehr = EHRS[dice.roll(3) as usize];
            if done(store.delete_ehr(ehr)) {
                for then in remembered.iter_mut().filter(|then| then.ehrs.contains(ehr)) {
                    then.removed.insert(ehr);
                }
                drop(now_or_never(store.commit(creation(ehr, None))));
            }
        }
        if dice.roll(20) == 0 {
            remembered.push(remember(store));
        }
        if let Some(then) = remembered.get(dice.roll(8) as usize) {
            let (shown, gone) = check(store, then);
            counts = (counts.0 + shown, counts.1 + gone);
        }
    }
    for then in &remembered {
        check(store, then);
    }
    counts
}

#[test]
fn a_snapshot_shows_one_state_or_says_that_it_is_gone() {
    let histories = |seeds: u64, run: &dyn Fn(u64) -> (usize, usize)| {
        (0..seeds)
            .map(run)
            .fold((0, 0), |(shown, gone), (more, removed)| {
                (shown + more, gone + removed)
            })
    };
    for (shown, gone) in [
        histories(8, &|seed| random_history(&Memory::new(), seed)),
        histories(8, &|seed| {
            random_history(&Sqlite::in_memory().repository(), seed)
        }),
        histories(2, &|seed| {
            random_history(&Sqlite::in_memory().forgetful_repository(), seed)
        }),
    ] {
        assert!(shown > 500 && gone > 50, "{shown} shown, {gone} gone");
    }
}

#[test]
fn a_reset_leaves_no_snapshot_and_numbers_are_not_given_again() {
    fn check<R: Repository>(store: &R) {
        done(store.commit(creation(EHRS[0], None)));
        let before = newest(store, &Scan::default());
        done(store.reset());
        done(store.commit(creation(EHRS[0], None)));
        let scan = Scan {
            snapshot: Some(before),
            ..Scan::default()
        };
        assert_eq!(
            now_or_never(store.scan(&scan, &mut |_: &Batch| true)).expect("ready"),
            Err(StoreError::SnapshotGone)
        );
        let after = newest(store, &Scan::default());
        assert!(
            after.version > before.version
                && after.removals > before.removals
                && after.revision > before.revision
        );
        let later = Scan {
            snapshot: Some(Snapshot {
                version: after.version + 1,
                ..after
            }),
            ..Scan::default()
        };
        assert_eq!(
            now_or_never(store.scan(&later, &mut |_: &Batch| true)).expect("ready"),
            Err(StoreError::NoSuchSnapshot)
        );
    }
    check(&Memory::new());
    check(&Sqlite::in_memory().repository());
}
