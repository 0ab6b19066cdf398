//! Bounds on the work for one input: bytes allocated in all, including freed ones, and time.
//!
//! Allocation is counted over the whole process, so nothing else may run. The constants are
//! generous: they distinguish a linear cost from a quadratic or exponential one, not a fast reader
//! from a slow one.

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The bytes that may be allocated for any input, and for each byte of it. An example of the
/// maximum size allocates some hundred megabytes in all, most of them freed at once, because each
/// value is tried against its constraint.
const BYTES: (usize, usize) = (2_000_000_000, 1_000);

/// The time for any input, and for 1,000 bytes of it. It also bounds loops that allocate nothing.
const TIME: (Duration, Duration) = (Duration::from_secs(20), Duration::from_millis(10));

/// Returns the bytes that some work allocates in all, including freed ones.
#[allow(
    dead_code,
    reason = "the fuzz targets include this file and need only the bounds"
)]
pub fn allocated(work: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    work();
    let change = region.change();
    change.bytes_allocated + usize::try_from(change.bytes_reallocated).unwrap_or_default()
}

/// Runs some work on an input of `length` bytes.
///
/// # Panics
///
/// The work exceeded a linear bound of the length of the input.
pub fn within_bounds(what: &str, length: usize, work: impl FnOnce()) {
    let (region, started) = (Region::new(ALLOCATOR), Instant::now());
    work();
    let (change, time) = (region.change(), started.elapsed());
    let grown = usize::try_from(change.bytes_reallocated).unwrap_or_default();
    let bytes = change.bytes_allocated + grown;
    let most = BYTES.0 + BYTES.1 * length;
    assert!(
        bytes <= most,
        "{what}: {bytes} bytes were allocated for an input of {length}, expected at most {most}"
    );
    let most = TIME.0 + TIME.1 * u32::try_from(length / 1_000).unwrap_or(u32::MAX);
    assert!(
        time <= most,
        "{what}: {time:?} for an input of {length} bytes, expected at most {most:?}"
    );
    if std::env::var_os("AQLITE_WORK_FIGURES").is_some() {
        println!("{what}: {length} bytes, {bytes} allocated, {time:?}");
    }
}
