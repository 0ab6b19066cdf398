//! Dates, times and durations, one per line: the order is total on each axis, and equal values are
//! the same.
#![no_main]

use aqlite::rm::time::{Temporal, TemporalKind};
use libfuzzer_sys::fuzz_target;
use std::cmp::Ordering;

fuzz_target!(|text: &str| {
    let kinds = [
        TemporalKind::Date,
        TemporalKind::Time,
        TemporalKind::DateTime,
        TemporalKind::Duration,
    ];
    let mut values: Vec<Temporal> = Vec::new();
    for line in text.lines().take(8) {
        values.extend(kinds.iter().filter_map(|kind| Temporal::parse(*kind, line)));
        values.extend(Temporal::classify(line));
    }
    for a in &values {
        assert!(a.magnitude().is_finite() && a.earliest <= a.latest, "{a:?}");
        for b in &values {
            assert_eq!(a.total_order(*b), b.total_order(*a).map(Ordering::reverse));
            assert_eq!(a.same(*b), a.total_order(*b).map(Ordering::is_eq));
            for c in &values {
                let ordered = a.total_order(*b).is_some_and(Ordering::is_le)
                    && b.total_order(*c).is_some_and(Ordering::is_le);
                assert!(
                    !ordered || a.total_order(*c).is_some_and(Ordering::is_le),
                    "{a:?} {b:?} {c:?}"
                );
            }
        }
    }
});
