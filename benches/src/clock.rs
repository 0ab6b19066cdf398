//! Time measurement: the minimum of several samples after a warm-up. Other programs on the machine
//! only add to a time.

use std::time::Instant;

/// The number of samples. Their minimum is the result.
const SAMPLES: usize = 9;

/// Measures one call, in seconds. Returns the time and the result.
pub fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begin = Instant::now();
    let out = std::hint::black_box(work());
    (begin.elapsed().as_secs_f64(), out)
}

/// Measures a call, in milliseconds: the minimum of nine samples. Each sample has as many calls as
/// fill a ninth of `budget` seconds, after a warm-up of the same length. A call that takes longer
/// than `budget` runs three times.
pub fn timed<T>(budget: f64, mut work: impl FnMut() -> T) -> f64 {
    let (mut first, _) = seconds(&mut work);
    let (mut warm, mut calls) = (first, 1);
    while warm < budget / 9.0 {
        first = seconds(&mut work).0;
        warm += first;
        calls += 1;
    }
    let each = (budget / SAMPLES as f64 / (warm / f64::from(calls))).max(1.0) as u32;
    let samples = if warm > budget { 3 } else { SAMPLES };
    let sample = |_| {
        seconds(|| (0..each).for_each(|_| drop(std::hint::black_box(work())))).0 * 1000.0
            / f64::from(each)
    };
    (0..samples).map(sample).fold(f64::INFINITY, f64::min)
}
