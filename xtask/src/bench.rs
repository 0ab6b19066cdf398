//! `cargo xtask bench`: queries and steps, natively and in wasm (Node), compared with SQLite in
//! four layouts, and the worker in workerd. The programs of `benches/` measure,
//! `benches/figures.tsv` selects the figures of the tables.

use crate::figures::{Measured, short};
use crate::options::Options;
use crate::process::{cargo, command, corpus, run_keeping};
use crate::tools::{WASI, browser, npm_packages, target};
use crate::{bundle, readme, sample};

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(
        args,
        &["compositions", "corpus", "from"],
        &["readme", "native", "million", "worker", "page"],
    )?;
    let compositions = options.value("compositions", "100000");
    let mut measured = Measured::about(compositions);
    let part = ["worker", "page"]
        .into_iter()
        .find(|part| options.has(part));
    match (options.given("from"), part) {
        (Some(file), _) => measured.take(&kept(file)?),
        (None, Some("worker")) => worker(compositions, &mut measured)?,
        (None, Some(_)) => page(&options, compositions, &mut measured)?,
        (None, None) => core(&options, compositions, &mut measured)?,
    }
    let tables = if part.is_none() {
        tables(compositions, &measured)
    } else {
        String::new()
    };
    let part = part.map_or("bench".to_owned(), |part| format!("bench {part}"));
    let shown = measured.figures()?;
    println!(
        "\n{tables}{}\n{} goals reached, {} missed",
        shown.text, shown.reached, shown.missed
    );
    if options.has("readme") {
        if part == "bench" {
            readme::write("README.md", &part, &tables)?;
        }
        readme::write("docs/benchmark.md", &part, &shown.text)?;
    }
    Ok(())
}

/// Returns the lines that an earlier run printed.
fn kept(file: &str) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Runs the parts that need no host but Node.
fn core(options: &Options, compositions: &str, measured: &mut Measured) -> Result<(), String> {
    let asked = |what: &str| format!("{what}={compositions}");
    let corpus = corpus(options.given("corpus"))?
        .map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default();
    let guides = format!("guides={corpus}");
    let wasm = [
        asked("questions"),
        "ehr".to_owned(),
        "steps".to_owned(),
        guides.clone(),
    ];
    let mut native = vec![
        "steps".to_owned(),
        guides,
        asked("population"),
        "ehr".to_owned(),
        "questions=10000".to_owned(),
    ];
    native.extend([asked("uneven"), asked("beside")]);
    if options.has("million") {
        native.push("questions=1000000".to_owned());
    }
    let hold = ["--hold", compositions];
    if !options.has("native") {
        target(WASI)?;
        measured.take(&program(IN_WASM, "aqlite-bench", &wasm, &corpus)?);
        measured.take(&program(IN_WASM, "aqlite-memory", &hold, &corpus)?);
    }
    measured.take(&program(NATIVE, "aqlite-memory", &[""; 0], &corpus)?);
    measured.take(&program(NATIVE, "aqlite-memory", &hold, &corpus)?);
    measured.take(&program(NATIVE, "aqlite-bench", &native, &corpus)?);
    Ok(())
}

/// Measures the worker as it ships, in workerd on this machine.
fn worker(compositions: &str, measured: &mut Measured) -> Result<(), String> {
    npm_packages()?;
    bundle::worker()?;
    let folder = sample::of(compositions)?;
    let mut node = command("node", &["--no-warnings", "benches/worker/measure.mjs"]);
    let (lines, outcome) = run_keeping(node.arg(folder), is_measure);
    measured.take(&lines);
    outcome
}

/// Measures the page as it ships, in Chromium on this machine.
fn page(options: &Options, compositions: &str, measured: &mut Measured) -> Result<(), String> {
    bundle::all()?;
    let mut node = command(
        "node",
        &[
            "--no-warnings",
            "benches/page/measure.mjs",
            "--compositions",
            compositions,
        ],
    );
    node.env("CHROMIUM", browser()?.chromium);
    if let Some(corpus) = corpus(options.given("corpus"))? {
        node.arg("--templates").arg(corpus.join("rm/opt"));
    }
    let (lines, outcome) = run_keeping(&mut node, is_measure);
    measured.take(&lines);
    outcome
}

const NATIVE: bool = false;
const IN_WASM: bool = true;

/// Runs a program of the benchmark and returns its result lines. The wasm build is compiled like
/// the npm package, with the vector instructions that every host of aqlite has.
fn program(
    in_wasm: bool,
    name: &str,
    args: &[impl AsRef<str>],
    corpus: &str,
) -> Result<Vec<String>, String> {
    let place: &[&str] = if in_wasm { &["--target", WASI] } else { &[] };
    let mut bench = cargo(
        &[
            &[
                "run",
                "--quiet",
                "--release",
                "--package",
                "aqlite-bench",
                "--bin",
                name,
            ],
            place,
            &["--"],
        ]
        .concat(),
    );
    bench
        .args(args.iter().map(AsRef::as_ref))
        .env("AQLITE_CORPUS", corpus);
    if in_wasm {
        bench.env(
            "CARGO_TARGET_WASM32_WASIP1_RUNNER",
            "node --no-warnings tests/wasm/wasi.mjs",
        );
    }
    let (lines, outcome) = run_keeping(&mut bench, is_measure);
    outcome.map(|()| lines)
}

fn is_measure(line: &str) -> bool {
    line.contains(" = ")
}

/// The layouts of SQLite: key and heading.
const PEERS: [(&str, &str); 4] = [
    ("text", "JSON text"),
    ("jsonb", "JSONB"),
    ("jsonb_each", "JSONB, jsonb_each"),
    ("nodes", "one row a node"),
];
/// The rows of the table of queries: description, key of aqlite, key of SQLite.
const QUESTIONS: [(&str, &str, &str); 7] = [
    ("Q1 latest blood pressure of an EHR", "Q1.rows", "Q1"),
    ("Q2 systolic ≥ 140, all EHRs, 4 columns", "Q2.rows", "Q2"),
    ("Q2 as the text of a JSON result set", "Q2.json", "Q2"),
    (
        "Q3 count of compositions with body temperature",
        "Q3.rows",
        "Q3",
    ),
    ("Q4 mean and maximum systolic of all", "Q4.rows", "Q4"),
    ("Q5 last 20 compositions of an EHR", "Q5.rows", "Q5"),
    (
        "Q6 systolic ≥ 160 and pulse ≥ 100 in one composition",
        "Q6.rows",
        "Q6",
    ),
];
/// Steps with their keys.
const STEPS: [(&str, &str); 7] = [
    ("serde_json `Value` of the same bytes", "serde"),
    ("read", "read"),
    ("read and pack", "read_pack"),
    ("check against the Reference Model", "model"),
    ("check against the template", "template"),
    ("write canonical JSON", "write"),
    ("unpack to canonical JSON", "unpack"),
];

/// Returns the short tables of queries and steps.
fn tables(n: &str, measured: &Measured) -> String {
    let value = |figure: &str, scale: f64| {
        measured
            .value(figure)
            .map_or_else(String::new, |v| short(v * scale))
    };
    let peers = |row: &dyn Fn(&str) -> String| {
        PEERS
            .iter()
            .map(|(key, _)| row(key))
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let names = PEERS.map(|(_, name)| name).join(" | ");
    let mut out = format!(
        "{n} compositions, {} EHRs, {} MB of canonical JSON. Milliseconds, and how many times faster that is than SQLite:\n\n",
        value(&format!("native.{n}.ehrs"), 1.0),
        value(&format!("native.{n}.bytes.json"), 1e-6)
    );
    out.push_str(&format!(
        "| | native, ms | wasm, ms | {names} |\n|---|---:|---:|---:|---:|---:|---:|\n"
    ));
    for (what, own, theirs) in QUESTIONS {
        let faster = peers(&|peer| value(&format!("{peer}.{n}.{theirs} / native.{n}.{own}"), 1.0));
        let (native, wasm) = (
            value(&format!("native.{n}.{own}"), 1.0),
            value(&format!("wasm.{n}.{own}"), 1.0),
        );
        out.push_str(&format!("| {what} | {native} | {wasm} | {faster} |\n"));
    }
    let bytes = peers(&|peer| value(&format!("{peer}.{n}.bytes.stored"), 1e-6));
    let loads = peers(&|peer| value(&format!("{peer}.{n}.load"), 1e-3));
    out.push_str(&format!(
        "\n| | aqlite | {names} |\n|---|---:|---:|---:|---:|---:|\n"
    ));
    out.push_str(&format!(
        "| stored, MB | {} | {bytes} |\n",
        value(&format!("native.{n}.bytes.stored"), 1e-6)
    ));
    out.push_str(&format!(
        "| loaded in, s | {} | {loads} |\n",
        value(&format!("native.{n}.load"), 1e-3)
    ));
    out.push_str(&format!(
        "\nOne composition of {} bytes:\n\n",
        value("native.step.bytes", 1.0)
    ));
    out.push_str("| | native, µs | wasm, µs | wasm to native |\n|---|---:|---:|---:|\n");
    for (what, key) in STEPS {
        let [native, wasm] =
            ["native", "wasm"].map(|host| value(&format!("{host}.step.{key}"), 1.0));
        out.push_str(&format!(
            "| {what} | {native} | {wasm} | {} |\n",
            value(&format!("wasm.step.{key} / native.step.{key}"), 1.0)
        ));
    }
    out
}
