//! `cargo xtask test`: every test, in one command.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::options::Options;
use crate::process::{cargo, command, root, run_keeping};
use crate::tools::{WASI, WASM, browser, npm_packages, npm_program, target, wasm_bindgen};
use crate::{bundle, conformance, sample};

/// What the steps left behind: one line each, and the runners' own counts.
#[derive(Default)]
struct Report {
    steps: Vec<String>,
    counts: Vec<String>,
    failed: Vec<String>,
}

pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &[], &["quick"])?;
    let started = Instant::now();
    let corpus = conformance::corpus_argument()?;
    let mut report = Report::default();
    report.step("format", cargo(&["fmt", "--all", "--check"]));
    report.step("lints", cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]));
    native(&mut report, &corpus);
    if !options.has("quick") {
        wasm(&mut report)?;
        hosts(&mut report)?;
    }
    report.print(started)
}

/// Unit tests, the integration binary, documentation examples and the corpus, as the core ships: optimised.
fn native(report: &mut Report, corpus: &[String]) {
    let checked = |more: &[&str]| cargo(&[&["test", "--quiet", "--profile", "checked"], more].concat());
    report.step("native tests", checked(&["--workspace", "--exclude", "aqlite-bench", "--lib", "--bins", "--test", "it"]));
    report.step("documentation examples", checked(&["--doc"]));
    // The suite of written XML validates with a package from npm.
    let started = Instant::now();
    report.note("npm packages", started, npm_packages());
    let mut suites = conformance::command();
    suites.args(corpus);
    report.step("conformance", suites);
}

/// The core inside wasm: in Node and in a headless browser.
fn wasm(report: &mut Report) -> Result<(), String> {
    target(WASM)?;
    target(WASI)?;
    let runner = wasm_bindgen()?.join("wasm-bindgen-test-runner");
    let driver = browser()?.driver;
    let temporary = root().join("target/tmp");
    std::fs::create_dir_all(&temporary).map_err(|e| format!("{}: {e}", temporary.display()))?;
    let crates = ["--package", "aqlite-worker", "--package", "aqlite-wasm"];
    let clippy = [&["clippy", "--quiet", "--target", WASM], &crates[..], &["--", "--deny", "warnings"]].concat();
    report.step("lints of the wasm crates", cargo(&clippy));
    // Each package's tests start in its own folder.
    let start = format!("target.{WASI}.runner = ['node', '--no-warnings', {:?}]", root().join("tests/wasm/wasi.mjs"));
    let units = ["test", "--quiet", "--config", &start, "--profile", "checked-wasm", "--target", WASI];
    let units = cargo(&[&units, &["--package", "aqlite", "--package", "aqlite-engine", "--lib"][..]].concat());
    report.step("unit tests inside wasm", units);
    for (name, test) in [("wasm tests in Node", "node"), ("wasm tests in Chromium", "browser")] {
        let args = ["test", "--profile", "checked-wasm", "--target", WASM, "--package", "aqlite-wasm-tests", "--test", test];
        let mut tests = cargo(&args);
        tests.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", &runner).env("CHROMEDRIVER", &driver);
        // The runner writes a module into the folder for temporary files: a package.json above it must not change what it means.
        tests.env("TMPDIR", &temporary);
        report.step(name, tests);
    }
    Ok(())
}

/// The worker in workerd and the page in Chromium.
fn hosts(report: &mut Report) -> Result<(), String> {
    npm_packages()?;
    let started = Instant::now();
    heading("worker and page");
    let built = bundle::all().and_then(|()| bundle::package()).and_then(|()| sample::generate());
    report.note("worker and page", started, built);
    report.step("types of the page", command(npm_program("tsc"), &["--noEmit", "--project", "www/tsconfig.json"]));
    report.step("size of worker and page", command("node", &["tests/e2e/size.mjs"]));
    report.step("worker in workerd", node_tests("tests/e2e"));
    report.step("page in Chromium", node_tests("tests/web"));
    report.step("package in Node, Chromium and workerd", node_tests("tests/package"));
    Ok(())
}

fn node_tests(folder: &str) -> Command {
    let mut files: Vec<String> = std::fs::read_dir(root().join(folder))
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    files.retain(|name| name.ends_with(".test.mjs"));
    files.sort();
    let mut node = command("node", &["--test", "--test-reporter=tap", "--test-concurrency=2"]);
    node.args(files.iter().map(|name| Path::new(folder).join(name)));
    if let Ok(found) = browser() {
        node.env("CHROMIUM", found.chromium);
    }
    node
}

fn heading(name: &str) {
    println!("\n==== {name}");
}

/// Lines by which the runners say how many tests they ran.
fn is_count(line: &str) -> bool {
    let starts = ["test result:", "conformance ", "# tests ", "# pass ", "# fail "];
    starts.iter().any(|start| line.starts_with(start)) && !line.starts_with("test result: ok. 0 passed; 0 failed; 0 ignored")
}

impl Report {
    fn step(&mut self, name: &str, mut command: Command) {
        heading(name);
        let started = Instant::now();
        let (counts, outcome) = run_keeping(&mut command, is_count);
        self.counts.extend(counts.iter().map(|line| format!("{name}: {line}")));
        self.note(name, started, outcome);
    }

    fn note(&mut self, name: &str, started: Instant, outcome: Result<(), String>) {
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        self.steps.push(format!("{:>6.1} s  {word:6}  {name}", started.elapsed().as_secs_f64()));
        if let Err(message) = outcome {
            println!("{message}");
            self.failed.push(name.to_owned());
        }
    }

    fn print(&self, started: Instant) -> Result<(), String> {
        heading("summary");
        for line in self.counts.iter().chain(&self.steps) {
            println!("{line}");
        }
        println!("{:>6.1} s  in all", started.elapsed().as_secs_f64());
        if self.failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", self.failed.join(", "))) }
    }
}
