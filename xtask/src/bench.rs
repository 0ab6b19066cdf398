//! `cargo xtask bench`: the six questions, native and in wasm (Node), beside SQLite over JSON text.

use crate::bundle::wasm_module;
use crate::options::Options;
use crate::process::{cargo, command, run_keeping};
use crate::readme;

/// Where the measured columns of a row begin: `| Q1 | question | rows ms | …`.
const NATIVE_COLUMN: usize = 3;

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["compositions"], &["readme", "native"])?;
    let sizes = options.value("compositions", "10000,100000");
    let mut report = native(sizes)?;
    if !options.has("native") {
        wasm_module("aqlite-bench", &["--target", "nodejs"], "target/wasm/bench")?;
        let measured: Vec<Vec<f64>> = sizes.split(',').map(wasm).collect::<Result<_, _>>()?;
        report = beside(&report, &measured);
    }
    let report = report.join("\n");
    println!("\n{report}");
    if options.has("readme") { readme::write("bench", &report) } else { Ok(()) }
}

/// Runs the benchmark natively; gives its lines.
fn native(sizes: &str) -> Result<Vec<String>, String> {
    let mut bench = cargo(&["run", "--quiet", "--release", "--package", "aqlite-bench", "--", "--compositions", sizes]);
    let (lines, outcome) = run_keeping(&mut bench, |_| true);
    outcome.map(|()| lines)
}

/// Runs it in wasm; gives the milliseconds of loading and of each question.
fn wasm(size: &str) -> Result<Vec<f64>, String> {
    let program = format!("console.log(require('./target/wasm/bench/aqlite_bench.js').measure({size}))");
    let (lines, outcome) = run_keeping(&mut command("node", &["--max-old-space-size=8000", "-e", &program]), |_| true);
    outcome?;
    let last = lines.last().map(String::as_str).unwrap_or_default();
    last.split_whitespace().map(|n| n.parse::<f64>().map_err(|e| format!("`{last}`: {e}"))).collect()
}

/// The native tables with two more columns: milliseconds in wasm, and how many times the native time that is.
fn beside(report: &[String], measured: &[Vec<f64>]) -> Vec<String> {
    let mut tables = measured.iter();
    let mut times: &[f64] = &[];
    let mut lines = Vec::new();
    for line in report {
        if line.starts_with("###") {
            times = tables.next().and_then(|all| all.get(1..)).unwrap_or_default();
        }
        let more = match line.split('|').nth(1).map(str::trim) {
            Some("") => " wasm ms | wasm ÷ native |".to_owned(),
            Some("---") => "---:|---:|".to_owned(),
            Some(_) => times.split_first().map_or_else(String::new, |(time, rest)| {
                times = rest;
                let native = line.split('|').nth(NATIVE_COLUMN).and_then(|n| n.trim().parse::<f64>().ok()).unwrap_or(f64::NAN);
                format!(" {time:.3} | {:.1} |", time / native)
            }),
            None => String::new(),
        };
        lines.push(format!("{line}{more}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    #[test]
    fn wasm_stands_beside_native() {
        let report = ["### 10 compositions", "| | question | rows ms |", "|---|---|---:|", "| Q1 | latest | 0.500 |"].map(str::to_owned);
        let lines = super::beside(&report, &[vec![7.0, 1.0]]);
        assert_eq!(
            lines[1..],
            ["| | question | rows ms | wasm ms | wasm ÷ native |", "|---|---|---:|---:|---:|", "| Q1 | latest | 0.500 | 1.000 | 2.0 |"]
        );
    }
}
