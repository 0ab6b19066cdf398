//! Bounds on the work for one input: bytes allocated in all, including freed ones, and time.
//!
//! Allocation is counted over the whole process, so nothing else may run. Each kind of input has
//! bounds of its own: a fixed part for small inputs, and a part for each byte, which distinguishes a
//! linear cost from a quadratic or exponential one. `AQLITE_WORK_FIGURES` prints the figures of each
//! input and, for each kind, the fixed part that the inputs would need. The constants are about
//! three times that in bytes and ten times that in time. A time that exceeds its bound is compared with
//! that of a reference work in the same run, so a slow machine does not fail.

#![allow(
    dead_code,
    reason = "each fuzz target includes this file and needs one of the bounds"
)]

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The bounds on the work for an input.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// The bytes that may be allocated for any input.
    pub bytes: usize,
    /// The bytes that may be allocated for each byte of the input.
    pub bytes_for_each: usize,
    /// The processor time for any input. It also bounds loops that allocate nothing.
    pub time: Duration,
    /// The processor time for 1,000 bytes of the input.
    pub time_for_thousand: Duration,
}

/// Templates: read, described and used for validation.
pub const TEMPLATES: Bounds = Bounds {
    bytes: 400_000_000,
    bytes_for_each: 200,
    time: Duration::from_secs(1),
    time_for_thousand: Duration::from_millis(2),
};

/// Templates in ADL 2 text: read. A service does this between two requests, without a pause.
pub const ADL: Bounds = Bounds {
    bytes: 400_000_000,
    bytes_for_each: 200,
    time: Duration::from_millis(200),
    time_for_thousand: Duration::from_micros(100),
};

/// Examples of a template, and what is made of them. The size of an example depends on the limits
/// of templates, not on the length of the template. An example of the maximum size allocates some
/// hundred megabytes in all, most of them freed at once, because each value is tried against its
/// constraint.
pub const EXAMPLES: Bounds = Bounds {
    bytes: 2_000_000_000,
    bytes_for_each: 1_000,
    time: Duration::from_secs(5),
    time_for_thousand: Duration::from_millis(10),
};

/// Guides: read, checked and run within their limits.
pub const GUIDES: Bounds = Bounds {
    bytes: 200_000_000,
    bytes_for_each: 200,
    time: Duration::from_secs(5),
    time_for_thousand: Duration::from_millis(2),
};

/// Queries: parsed, formatted, completed and planned.
pub const QUERIES: Bounds = Bounds {
    bytes: 5_000_000,
    bytes_for_each: 2_200,
    time: Duration::from_millis(500),
    time_for_thousand: Duration::from_millis(20),
};

/// Bodies in canonical and simplified formats: read, validated and written.
pub const BODIES: Bounds = Bounds {
    bytes: 1_000_000,
    bytes_for_each: 300,
    time: Duration::from_millis(500),
    time_for_thousand: Duration::from_millis(1),
};

impl Bounds {
    /// Returns the bounds of a slower build, such as one with sanitizers.
    pub fn slower(self, times: u32) -> Bounds {
        Bounds {
            time: self.time * times,
            time_for_thousand: self.time_for_thousand * times,
            ..self
        }
    }

    /// Returns the bounds of work that reads or writes an input several times.
    pub fn repeated(self, times: u32) -> Bounds {
        let count = usize::try_from(times).unwrap_or(usize::MAX);
        Bounds {
            bytes: self.bytes * count,
            bytes_for_each: self.bytes_for_each * count,
            ..self.slower(times)
        }
    }

    /// Runs some work on an input of `length` bytes.
    ///
    /// # Panics
    ///
    /// The work exceeded the bounds.
    pub fn check(self, what: &str, length: usize, work: impl FnOnce()) {
        let (region, started) = (Region::new(ALLOCATOR), processor_time());
        work();
        let (change, time) = (region.change(), processor_time().saturating_sub(started));
        let grown = usize::try_from(change.bytes_reallocated).unwrap_or_default();
        let bytes = change.bytes_allocated + grown;
        let thousands = u32::try_from(length / 1_000).unwrap_or(u32::MAX);
        if std::env::var_os("AQLITE_WORK_FIGURES").is_some() {
            println!(
                "{what}: {length} bytes, {bytes} allocated, {time:?}; beyond its length {} and {:?}",
                bytes.saturating_sub(self.bytes_for_each * length),
                time.saturating_sub(self.time_for_thousand * thousands)
            );
        }
        let most = self.bytes + self.bytes_for_each * length;
        assert!(
            bytes <= most,
            "{what}: {bytes} bytes were allocated for an input of {length}, expected at most {most}"
        );
        assert_time(
            &format!("{what}, an input of {length} bytes"),
            time,
            self.time + self.time_for_thousand * thousands,
        );
    }
}

/// The processor time of [`reference_work`] on the machine that the bounds were measured on, in the
/// build of the tests.
const REFERENCE: Duration = Duration::from_millis(15);

/// Checks that some work took at most the time `most`, or as much more as this machine and build are
/// slower than those of the bounds.
///
/// # Panics
///
/// It took longer.
pub fn assert_time(what: &str, time: Duration, most: Duration) {
    if time <= most {
        return;
    }
    let reference = reference_work();
    let most = most.mul_f64((reference.as_secs_f64() / REFERENCE.as_secs_f64()).max(1.0));
    assert!(
        time <= most,
        "{what}: {time:?}, expected at most {most:?}; the reference takes {reference:?} here, \
         {REFERENCE:?} where the bounds were measured"
    );
}

/// Sorts 100,000 texts in an order far from theirs. Returns the processor time.
fn reference_work() -> Duration {
    let started = processor_time();
    let texts: BTreeSet<String> = (0..100_000_u64)
        .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string())
        .collect();
    assert_eq!(texts.len(), 100_000);
    processor_time().saturating_sub(started)
}

/// Returns the processor time of this thread, which other processes do not change. Where the system
/// has no such file (it is one of Linux), the time since the first call.
pub fn processor_time() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let started = *STARTED;
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .map_or_else(|| started.elapsed(), Duration::from_nanos)
}

/// Returns the bytes that some work allocates in all, including freed ones.
pub fn allocated(work: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    work();
    let change = region.change();
    change.bytes_allocated + usize::try_from(change.bytes_reallocated).unwrap_or_default()
}
