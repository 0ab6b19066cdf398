//! Lines that name the running step of a command, and how long it usually takes.

use std::time::Instant;

/// Runs a step. Prints its name and usual duration before, and its duration after it.
/// `usually` is the time of a machine with two free cores that does the work the first time.
pub fn step<T>(
    name: &str,
    usually: &str,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    println!("… {name} (usually {usually})");
    let started = Instant::now();
    let outcome = work().map_err(|message| format!("{name}: {message}"))?;
    println!("✓ {name}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(outcome)
}
