//! `cargo xtask bench`: questions and steps, native and in wasm (Node), beside SQLite in three layouts.

use crate::options::Options;
use crate::process::{cargo, root, run_keeping};
use crate::readme;
use crate::tools::{WASI, target};

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["compositions", "corpus"], &["readme", "native"])?;
    let sizes = options.value("compositions", "10000,100000");
    let corpus = corpus(options.given("corpus"));
    let mut beside = measured(NATIVE, &["--bin", "aqlite-memory"], &[])?;
    if !options.has("native") {
        target(WASI)?;
        beside.extend(measured(IN_WASM, &["--bin", "aqlite-bench"], &with_corpus(&["--compositions", sizes], corpus.as_deref()))?);
        beside.extend(measured(IN_WASM, &["--bin", "aqlite-memory"], &["--hold", "100000"])?.iter().map(|line| format!("wasm {line}")));
    }
    let beside = beside.join(";");
    let report =
        lay_out(&measured(NATIVE, &["--bin", "aqlite-bench"], &with_corpus(&["--compositions", sizes, "--beside", &beside], corpus.as_deref()))?);
    println!("\n{report}");
    if options.has("readme") { readme::write("bench", &report) } else { Ok(()) }
}

const NATIVE: bool = false;
const IN_WASM: bool = true;

/// Runs a program of the benchmark, in wasm with the vector instructions that every host of aqlite has; gives the lines that
/// say something measured.
fn measured(in_wasm: bool, program: &[&str], args: &[&str]) -> Result<Vec<String>, String> {
    let place: &[&str] = if in_wasm { &["--profile", "wasm", "--target", WASI] } else { &["--release"] };
    let mut bench = cargo(&[&["run", "--quiet", "--package", "aqlite-bench"], place, program, &["--"], args].concat());
    if in_wasm {
        bench.env("CARGO_TARGET_WASM32_WASIP1_RUNNER", "node --no-warnings tests/wasm/wasi.mjs");
        bench.env("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", "-Ctarget-feature=+simd128");
    }
    let (lines, outcome) = run_keeping(&mut bench, |line| line.starts_with(['|', 'w', 'm', 'M']) || line.ends_with(':'));
    outcome.map(|()| lines)
}

/// The corpus whose guides are run: the named one, that of `AQLITE_CORPUS`, or none.
fn corpus(named: Option<&str>) -> Option<String> {
    let named = named.map(str::to_owned).or_else(|| std::env::var("AQLITE_CORPUS").ok())?;
    let path = root().join(named);
    path.is_dir().then(|| path.to_string_lossy().into_owned())
}

fn with_corpus<'a>(args: &[&'a str], corpus: Option<&'a str>) -> Vec<&'a str> {
    args.iter().copied().chain(corpus.into_iter().flat_map(|c| ["--corpus", c])).collect()
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
