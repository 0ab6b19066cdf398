//! The six questions in one thread: `aqlite-bench [--compositions N,N] [--wasm LINES]`.
//!
//! Native, SQLite over JSON text is asked the same in the same run, and a table is printed. In wasm, one line a size:
//! `wasm SIZE LOAD_MS Q1 … Q6`; `--wasm` takes such lines (joined by `;`) into the native table.

#[cfg(not(target_family = "wasm"))]
mod peer;

use aqlite::aql::{Cell, ResultSet};
use aqlite_bench::{Loaded, QUESTIONS, load, reading};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)).cloned();
    for size in value("--compositions").unwrap_or("10000,100000".to_owned()).split(',') {
        measure(size.trim().parse()?, &value("--wasm").unwrap_or_default())?;
    }
    tell_reading(&value("--wasm").unwrap_or_default());
    Ok(())
}

/// In wasm: the line `wasm reading STEP…`; native: the table, with those beside.
fn tell_reading(wasm: &str) {
    let start = Instant::now();
    let steps = reading(&move || start.elapsed().as_secs_f64() * 1000.0);
    if cfg!(target_family = "wasm") {
        println!("wasm reading {}", steps.iter().map(|(_, micros)| format!("{micros:.2}")).collect::<Vec<_>>().join(" "));
        return;
    }
    let in_wasm: Vec<&str> = wasm.split(';').find_map(|l| l.strip_prefix("wasm reading ")).map_or_else(Vec::new, |l| l.split(' ').collect());
    println!("\nOne composition of 5.8 kB, from text to shape and slots and back:\n\n| step | native, µs | wasm, µs |\n|---|---:|---:|");
    for (i, (name, micros)) in steps.iter().enumerate() {
        println!("| {name} | {micros:.1} | {} |", in_wasm.get(i).unwrap_or(&""));
    }
}

#[cfg(target_family = "wasm")]
fn measure(compositions: usize, _: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let clock = move || start.elapsed().as_secs_f64() * 1000.0;
    let loaded = load(compositions, &clock);
    check(&loaded)?;
    let times: Vec<String> = loaded.times(&clock).iter().map(|(rows, _)| format!("{rows:.4}")).collect();
    println!("wasm {compositions} {:.0} {}", loaded.load_ms, times.join(" "));
    Ok(())
}

/// The milliseconds of the questions in wasm, from the lines that the wasm run printed.
#[cfg(not(target_family = "wasm"))]
fn wasm_times(lines: &str, compositions: usize) -> Vec<f64> {
    let mut words = lines.split(';').map(|l| l.split_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect::<Vec<f64>>());
    words.find(|w| w.first() == Some(&(compositions as f64))).map_or_else(Vec::new, |w| w.into_iter().skip(2).collect())
}

#[cfg(not(target_family = "wasm"))]
fn measure(compositions: usize, wasm: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let clock = move || start.elapsed().as_secs_f64() * 1000.0;
    let loaded = load(compositions, &clock);
    check(&loaded)?;
    let ours = loaded.times(&clock);
    let own_memory = peak_memory();
    let peer = peer::Peer::load(&loaded, &clock)?;
    let share = 100.0 * (loaded.packed_bytes + loaded.shape_bytes) as f64 / loaded.json_bytes as f64;
    println!("{compositions} compositions, {} EHRs, {:.0} MB of canonical JSON:\n", loaded.generator.ehrs(), mega(loaded.json_bytes));
    println!("| | aqlite | SQLite, JSON text |\n|---|---:|---:|");
    println!("| load | {:.0} ms | {:.0} ms |", loaded.load_ms, peer.load_ms);
    println!(
        "| stored | {:.1} MB ({share:.1} % of the JSON), {} shapes | {:.1} MB |",
        mega(loaded.packed_bytes + loaded.shape_bytes),
        loaded.shapes,
        mega(peer.bytes)
    );
    println!("| columns in memory | {:.1} MB; peak of the process {own_memory:.0} MB | |", mega(loaded.batch.bytes()));
    println!(
        "\n| | question | aqlite, ms | as JSON, ms | wasm, ms | SQLite, ms | times faster | wasm to native |\n|---|---|---:|---:|---:|---:|---:|---:|"
    );
    let wasm = wasm_times(wasm, compositions);
    for (i, ((name, what, aql), (rows, text))) in QUESTIONS.iter().zip(&ours).enumerate() {
        let (theirs, count) = peer.ask(i, &loaded.ehr_id(), &clock)?;
        let found = loaded.ask(aql).rows.len();
        if found != count {
            return Err(format!("{name}: {found} rows, SQLite gives {count}").into());
        }
        let in_wasm = wasm.get(i).map_or((String::new(), String::new()), |w| (format!("{w:.3}"), format!("{:.1}", w / rows)));
        println!("| {name} | {what} | {rows:.3} | {text:.3} | {} | {theirs:.1} | {:.0} | {} |", in_wasm.0, theirs / rows, in_wasm.1);
    }
    Ok(())
}

/// The answers must be those of the truth table before anything is measured.
fn check(loaded: &Loaded) -> Result<(), String> {
    let generator = &loaded.generator;
    let rows = |i: usize| QUESTIONS.get(i).map(|(_, _, aql)| loaded.ask(aql)).unwrap_or_default();
    let number = |result: &ResultSet, column: usize| match result.rows.first().and_then(|r| r.get(column)) {
        Some(Cell::Number(token)) => token.parse::<f64>().unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    let expect = |good: bool, question: &str| if good { Ok(()) } else { Err(format!("{question} differs from the truth table")) };
    expect(rows(1).rows.len() == generator.systolic_from_140().len(), "Q2")?;
    expect(number(&rows(2), 0) == generator.with_body_temperature() as f64, "Q3")?;
    let (mean, highest) = generator.mean_and_highest_systolic().unwrap_or_default();
    let found = rows(3);
    expect((number(&found, 0) - mean).abs() < 1e-9 && number(&found, 1) == highest, "Q4")?;
    expect(rows(4).rows.len() == generator.last_20_compositions(loaded.ehr()).len(), "Q5")?;
    expect(rows(5).rows.len() == generator.pressure_160_with_pulse_100().len(), "Q6")
}

#[cfg(not(target_family = "wasm"))]
fn mega(bytes: usize) -> f64 {
    bytes as f64 / 1_000_000.0
}

/// The most memory that the process has held, in MB, where the system tells it.
#[cfg(not(target_family = "wasm"))]
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().split(' ').next()?.parse::<f64>().ok()).map_or(f64::NAN, |kb| kb / 1000.0)
}
