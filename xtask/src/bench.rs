//! `cargo xtask bench`: the six questions, native and in wasm (Node), beside SQLite over JSON text.

use crate::options::Options;
use crate::process::{cargo, run_keeping};
use crate::readme;
use crate::tools::{WASI, target};

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["compositions"], &["readme", "native"])?;
    let sizes = options.value("compositions", "10000,100000");
    let wasm = if options.has("native") { Vec::new() } else { in_wasm(sizes)? };
    let report = lay_out(&questions(sizes, &wasm.join(";"))?);
    println!("\n{report}");
    if options.has("readme") { readme::write("bench", &report) } else { Ok(()) }
}

/// The run in wasm, with the vector instructions that every host of aqlite has; gives a line a size.
fn in_wasm(sizes: &str) -> Result<Vec<String>, String> {
    target(WASI)?;
    let mut bench = cargo(&["run", "--quiet", "--profile", "wasm", "--package", "aqlite-bench", "--target", WASI, "--", "--compositions", sizes]);
    bench.env("CARGO_TARGET_WASM32_WASIP1_RUNNER", "node --no-warnings tests/wasm/wasi.mjs");
    bench.env("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", "-Ctarget-feature=+simd128");
    let (lines, outcome) = run_keeping(&mut bench, |line| line.starts_with("wasm "));
    outcome.map(|()| lines)
}

/// The native run beside SQLite; gives the lines of its tables.
fn questions(sizes: &str, wasm: &str) -> Result<Vec<String>, String> {
    let mut bench = cargo(&["run", "--quiet", "--release", "--package", "aqlite-bench", "--", "--compositions", sizes, "--wasm", wasm]);
    let (lines, outcome) = run_keeping(&mut bench, |line| line.starts_with('|') || line.ends_with(':'));
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
