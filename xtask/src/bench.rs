//! `cargo xtask bench`: the six questions, native and in wasm (Node), beside SQLite over JSON text.

use std::fs;

use crate::options::Options;
use crate::process::{cargo, root, run_keeping};
use crate::tools::{WASI, target};

const START: &str = "<!-- bench: written by `cargo xtask bench --readme` -->\n";
const END: &str = "<!-- bench: end -->\n";

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
    if options.has("readme") { write_to_readme(&report) } else { Ok(()) }
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

fn write_to_readme(report: &str) -> Result<(), String> {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).map_err(|e| format!("README.md: {e}"))?;
    let parts = readme.split_once(START).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or("README.md has lost the marks between which the table stands")?;
    fs::write(&path, format!("{before}{START}\n{report}\n{END}{after}")).map_err(|e| format!("README.md: {e}"))
}
