//! `cargo xtask bench`: the six questions, native and in wasm (Node), beside SQLite over JSON text.

use crate::options::Options;
use crate::process::{cargo, run_keeping};
use crate::readme;
use crate::tools::{WASI, target};

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["compositions"], &["readme", "native"])?;
    let sizes = ["--compositions", options.value("compositions", "10000,100000")];
    let mut report = vec!["Native:".to_owned()];
    report.extend(questions(&[], &sizes)?);
    if !options.has("native") {
        target(WASI)?;
        report.push("In wasm (Node):".to_owned());
        report.extend(questions(&["--target", WASI], &sizes)?);
    }
    let report = lay_out(&report);
    println!("\n{report}");
    if options.has("readme") { readme::write("bench", &report) } else { Ok(()) }
}

/// Runs the benchmark; gives the lines of its tables.
fn questions(target: &[&str], sizes: &[&str]) -> Result<Vec<String>, String> {
    let mut bench = cargo(&[&["bench", "--quiet", "--bench", "questions"], target, &["--"], sizes].concat());
    bench.env("CARGO_TARGET_WASM32_WASIP1_RUNNER", "node --no-warnings tests/wasm/wasi.mjs");
    let (lines, outcome) = run_keeping(&mut bench, |line| line.starts_with('|'));
    outcome.map(|()| lines)
}

/// Markdown: tables stand apart from the lines around them.
fn lay_out(lines: &[String]) -> String {
    let mut text = String::new();
    for (i, line) in lines.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| lines.get(i));
        if before.is_some_and(|before| before.starts_with('|') != line.starts_with('|')) {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}
