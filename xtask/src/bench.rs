//! `cargo xtask bench`: queries and steps, natively and in wasm (Node), compared with SQLite in
//! four layouts, and the worker in workerd. The programs of `benches/` measure,
//! `benches/figures.tsv` selects the figures of the tables.

use crate::figures::{Measured, short};
use crate::options::Options;
use crate::process::{cargo, command, corpus, output_of, root, run, run_keeping};
use crate::tools::{WASI, browser, npm_packages, target};
use crate::{bundle, readme, sample};

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(
        args,
        &["compositions", "corpus", "from"],
        &["readme", "native", "million", "worker", "serve", "page"],
    )?;
    let compositions = options.value("compositions", "100000");
    let mut measured = Measured::about(compositions);
    let part = ["worker", "serve", "page"]
        .into_iter()
        .find(|part| options.has(part));
    let mut origin = origin();
    match (options.given("from"), part) {
        (Some(file), _) => {
            let lines = kept(file)?;
            origin = lines.iter().find(|line| line.starts_with(ORIGIN)).cloned();
            measured.take(&lines);
        }
        (None, Some("worker")) => worker(compositions, &mut measured)?,
        (None, Some("serve")) => serve(compositions, &mut measured)?,
        (None, Some(_)) => page(&options, compositions, &mut measured)?,
        (None, None) => core(&options, compositions, &mut measured)?,
    }
    let tables = match part {
        None => tables(compositions, &measured),
        Some(_) => String::new(),
    };
    let shown = measured.figures()?;
    println!(
        "\n{}\n\n{tables}{}\n{} goals reached, {} missed",
        origin.as_deref().unwrap_or_default(),
        shown.text,
        shown.reached,
        shown.missed
    );
    if options.has("readme") {
        let origin = origin.ok_or("the commit of the figures is unknown")?;
        let dated = |text: &str| format!("{origin}\n\n{}", text.trim_start());
        write_readme(part, &dated(&tables), &dated(&shown.text))?;
    }
    Ok(())
}

/// The begin of the sentence that dates figures.
const ORIGIN: &str = "Measured with the code of ";

/// Returns the sentence that dates figures: the present commit and its day. `None` outside of a
/// repository of Git.
fn origin() -> Option<String> {
    let commit = output_of(&mut command("git", &["log", "-1", "--format=%h of %cs"]))?;
    Some(format!("{ORIGIN}commit {}.", commit.trim()))
}

/// Writes the tables and the figures of a part into the documentation.
fn write_readme(part: Option<&str>, tables: &str, figures: &str) -> Result<(), String> {
    let Some(part) = part else {
        readme::write("README.md", "bench", tables)?;
        return readme::write("docs/benchmark.md", "bench", figures);
    };
    readme::write("docs/benchmark.md", &format!("bench {part}"), figures)
}

/// Returns the lines that an earlier run printed.
fn kept(file: &str) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Runs the parts that need no host but Node.
fn core(options: &Options, compositions: &str, measured: &mut Measured) -> Result<(), String> {
    let corpus = corpus(options.given("corpus"))?
        .map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default();
    let parts = |names: &str| -> Vec<String> {
        let names = names
            .replace("{N}", compositions)
            .replace("{corpus}", &corpus);
        names.split('\n').map(str::to_owned).collect()
    };
    let wasm = parts("questions={N}\nehr\nsteps\nguides={corpus}");
    let mut native = parts(
        "steps\nguides={corpus}\npopulation={N}\nehr\nquestions=10000\nuneven={N}\nbeside={N}",
    );
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

/// Measures `aqlite serve` as it is installed.
fn serve(compositions: &str, measured: &mut Measured) -> Result<(), String> {
    npm_packages()?;
    run(&mut cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "aqlite-cli",
    ]))?;
    let folder = sample::of(compositions)?;
    let mut node = command("node", &["--no-warnings", "benches/serve/measure.mjs"]);
    node.arg(folder).arg(root().join("target/release/aqlite"));
    let (lines, outcome) = run_keeping(&mut node, is_measure);
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
    let names = PEERS.map(|(_, name)| name).join(" | ");
    let queries = table_of_queries(n, measured, &names);
    let stored = table_of_storage(n, measured, &names);
    [queries, stored, table_of_steps(measured)].concat()
}

/// Returns a figure times a factor; nothing if it was not measured.
fn scaled(measured: &Measured, figure: &str, scale: f64) -> String {
    let value = measured.value(figure);
    value.map_or_else(String::new, |v| short(v * scale))
}

/// Returns the cells of a row for all peers.
fn of_peers(cell: &dyn Fn(&str) -> String) -> String {
    PEERS.map(|(key, _)| cell(key)).join(" | ")
}

fn table_of_queries(n: &str, measured: &Measured, names: &str) -> String {
    let value = |figure: &str, scale: f64| scaled(measured, figure, scale);
    let mut out = format!(
        "{n} compositions, {} EHRs, {} MB of canonical JSON. Milliseconds, and how many times faster that is than SQLite:\n\n",
        value(&format!("native.{n}.ehrs"), 1.0),
        value(&format!("native.{n}.bytes.json"), 1e-6)
    );
    out.push_str(&format!(
        "| | native, ms | wasm, ms | {names} |\n|---|---:|---:|---:|---:|---:|---:|\n"
    ));
    for (what, own, theirs) in QUESTIONS {
        let faster =
            of_peers(&|peer| value(&format!("{peer}.{n}.{theirs} / native.{n}.{own}"), 1.0));
        let (native, wasm) = (
            value(&format!("native.{n}.{own}"), 1.0),
            value(&format!("wasm.{n}.{own}"), 1.0),
        );
        out.push_str(&format!("| {what} | {native} | {wasm} | {faster} |\n"));
    }
    out
}

fn table_of_storage(n: &str, measured: &Measured, names: &str) -> String {
    let value = |figure: &str, scale: f64| scaled(measured, figure, scale);
    let bytes = of_peers(&|peer| value(&format!("{peer}.{n}.bytes.stored"), 1e-6));
    let loads = of_peers(&|peer| value(&format!("{peer}.{n}.load"), 1e-3));
    let head = format!("\n| | aqlite | {names} |\n|---|---:|---:|---:|---:|---:|\n");
    let stored = value(&format!("native.{n}.bytes.stored"), 1e-6);
    let loaded = value(&format!("native.{n}.load"), 1e-3);
    format!("{head}| stored, MB | {stored} | {bytes} |\n| loaded in, s | {loaded} | {loads} |\n")
}

fn table_of_steps(measured: &Measured) -> String {
    let value = |figure: &str, scale: f64| scaled(measured, figure, scale);
    let bytes = value("native.step.bytes", 1.0);
    let mut out = format!("\nOne composition of {bytes} bytes:\n\n");
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
