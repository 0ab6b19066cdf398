//! `cargo xtask soak`: tests that take too long for every change.

use crate::options::Options;
use crate::process::{cargo, command, corpus, output_of, root, run};
use crate::test::TABLES;
use crate::{bench, bundle, conformance, sample, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The limits of one fuzz input: seconds, and megabytes in all and per allocation.
const LIMITS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=512"];

/// A part of the soak that is not a fuzz target: its name and its function.
type Other = (&'static str, fn(&Options) -> Result<(), String>);

const OTHERS: [Other; 12] = [
    ("samples", samples),
    ("kill", kill),
    ("serve", serve),
    ("native", native),
    ("attack", attack),
    ("oehrpy", oehrpy),
    ("schemathesis", schemathesis),
    ("mutants", mutants),
    ("tables", tables),
    ("lake", lake),
    ("bundlers", bundlers),
    ("benches", benches),
];

/// The folders in which code is mutated.
const MUTATED: [&str; 4] = [
    "crates/aqlite-gdl",
    "crates/aqlite-template",
    "src/service",
    "src/store",
];

/// Runs the long tests of [`OTHERS`], then every fuzz target for some minutes. `--only` selects one
/// of them.
pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(
        args,
        &["minutes", "only", "corpus", "openapi", "shard"],
        &[],
    )?;
    let minutes: u64 = options
        .value("minutes", "10")
        .parse()
        .map_err(|_| "`--minutes` needs a number".to_owned())?;
    let only = options.given("only");
    let is_selected = |name: &str| only.is_none_or(|only| only == name);
    let (mut targets, mut others) = (targets()?, OTHERS.to_vec());
    targets.retain(|target| is_selected(target));
    others.retain(|(name, _)| is_selected(name));
    if let Some(only) = only.filter(|_| others.is_empty() && targets.is_empty()) {
        return Err(unknown(only)?);
    }
    // The files of the corpus are seeds, too.
    let corpus = corpus(options.given("corpus"))?;
    let mut outcomes: Vec<_> = others
        .into_iter()
        .map(|(name, run)| (name.to_owned(), run(&options)))
        .collect();
    if !targets.is_empty() {
        let fuzzer = Fuzzer::new()?;
        targets.iter().try_for_each(|target| fuzzer.build(target))?;
        outcomes.extend(targets.into_iter().map(|target| {
            (
                target.clone(),
                fuzzer.run(&target, minutes, corpus.as_deref()),
            )
        }));
    }
    summary(minutes, &outcomes)
}

/// Returns the message for a name that is neither a long test nor a fuzz target.
fn unknown(name: &str) -> Result<String, String> {
    let mut names = OTHERS.map(|(name, _)| name.to_owned()).to_vec();
    names.extend(targets()?);
    Ok(format!(
        "there is no `{name}`; there are: {}",
        names.join(", ")
    ))
}

/// Compares the six queries with the truth table, on 100,000 compositions.
fn samples(_: &Options) -> Result<(), String> {
    let six = [
        "test",
        "--profile",
        "checked",
        "--test",
        "it",
        "--",
        "six_questions",
    ];
    run(cargo(&six).env("AQLITE_SAMPLES", "10000,100000"))
}

/// Kills servers while they write.
fn kill(_: &Options) -> Result<(), String> {
    bundle::all()?;
    sample::generate()?;
    run(&mut command("node", &["tests/e2e/kill.mjs"]))
}

/// Kills `aqlite serve` thirty times while it commits.
fn serve(_: &Options) -> Result<(), String> {
    let tests = [
        "test",
        "--release",
        "--package",
        "aqlite-cli",
        "--test",
        "it",
    ];
    let mut tests = cargo(&tests);
    run(tests.arg("crash").env("AQLITE_KILLS", "30"))
}

/// Runs the attacks on the worker in their full sizes.
fn attack(_: &Options) -> Result<(), String> {
    bundle::all()?;
    sample::generate()?;
    run(attacks().env("AQLITE_ATTACK", "long"))
}

/// Returns the command that runs `tests/e2e/attack*.test.mjs`.
fn attacks() -> Command {
    let files =
        ["", "_records", "_strangers"].map(|part| format!("tests/e2e/attack{part}.test.mjs"));
    // One test at a time, because the latency of neighbors is measured.
    let mut tests = command("node", &["--test", "--test-concurrency=1"]);
    tests.args(files);
    tests
}

/// Runs the benchmarks of the worker and the page on a few compositions. Their figures mean
/// nothing; the programs must find what they measure.
fn benches(_: &Options) -> Result<(), String> {
    for part in ["--worker", "--page"] {
        bench::run_task(&[part, "--compositions", "5000"].map(String::from))?;
    }
    Ok(())
}

/// Runs the whole sequence of requests of an unmodified client library.
fn oehrpy(_: &Options) -> Result<(), String> {
    bundle::all()?;
    sample::generate()?;
    clients("oehrpy", &[], None)
}

/// Reads the tables that the suites of AQL write in pyarrow, Polars and DuckDB.
fn tables(options: &Options) -> Result<(), String> {
    let corpus = corpus(options.given("corpus"))?.ok_or("the tables are those of the corpus")?;
    let mut suites = conformance::command();
    suites.arg("aql").arg("--corpus").arg(corpus);
    run(suites.env("AQLITE_TABLES_OUT", root().join(TABLES)))?;
    let python = python_with("target/tables/venv", "tests/tables/requirements.txt")?;
    run(&mut command(&python, &["tests/tables/check.py", TABLES]))
}

/// Runs the scripts of docs/analytics.md on a lake of the sample, and reads its Iceberg tables in
/// pyiceberg, and in DuckDB with its extension for Iceberg.
fn lake(_: &Options) -> Result<(), String> {
    run(&mut cargo(&["build", "--quiet", "--package", "aqlite-cli"]))?;
    let sample = root().join("target/tables/sample");
    let folder = sample.to_string_lossy();
    let size = ["--ehrs", "20", "--compositions", "200", "--seed", "7"];
    let mut arguments = size.map(str::to_owned).to_vec();
    arguments.extend([String::from("--out"), folder.into_owned()]);
    sample::gen_data(&arguments)?;
    let python = python_with("target/tables/venv", "tests/tables/requirements.txt")?;
    let extensions = "tests/tables/iceberg_requirements.txt";
    let with_extensions = python_with("target/tables/iceberg-venv", extensions)?;
    let mut scripts = command(&python, &["tests/tables/lake.py"]);
    scripts.arg(root().join("target/debug/aqlite")).arg(&sample);
    scripts.arg(root().join("target/tables/lake"));
    run(scripts.arg(with_extensions))
}

/// Runs the packed npm package in Deno, Bun and Next.
fn bundlers(_: &Options) -> Result<(), String> {
    bundle::package()?;
    tools::locked_packages("tests/soak/bundlers")?;
    let mut tests = command("node", &["--test", "tests/soak/bundlers.test.mjs"]);
    run(tests.env("CHROMIUM", tools::browser()?.chromium))
}

/// Runs the suites of AQL, guides and simplified formats, the requests of schemathesis, and the
/// attacks on the worker against `aqlite serve`.
fn native(options: &Options) -> Result<(), String> {
    run(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "aqlite-cli",
    ]))?;
    sample::generate()?;
    let program = root().join("target/release/aqlite");
    if let Some(corpus) = corpus(options.given("corpus"))? {
        let mut suites = conformance::command();
        suites.args(["aql", "gdl.service", "rm.flat_service"]);
        suites.arg("--corpus").arg(corpus);
        let mut clients = command("node", &["tests/soak/clients.mjs", "conformance"]);
        clients.arg(suites.get_program()).args(suites.get_args());
        run(clients.env("AQLITE_PROGRAM", &program))?;
    }
    clients("schemathesis", &openapi_documents(options)?, Some(&program))?;
    run(attacks().env("AQLITE_PROGRAM", &program))
}

/// Sends requests derived from the OpenAPI documents of the standard. None may be answered by 5xx.
fn schemathesis(options: &Options) -> Result<(), String> {
    bundle::all()?;
    sample::generate()?;
    clients("schemathesis", &openapi_documents(options)?, None)
}

/// Returns the OpenAPI documents of the standard.
fn openapi_documents(options: &Options) -> Result<Vec<PathBuf>, String> {
    let folder = options
        .given("openapi")
        .map(str::to_owned)
        .or_else(|| std::env::var("AQLITE_OPENAPI").ok());
    let folder = root().join(folder.unwrap_or_else(|| "../shared/reference/openapi".to_owned()));
    let entries = std::fs::read_dir(&folder).map_err(|e| {
        format!(
            "{}: {e}; name the folder of OpenAPI documents by `--openapi`",
            folder.display()
        )
    })?;
    let mut documents: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
        .collect();
    documents.sort();
    Ok(documents)
}

/// Runs foreign clients against workerd, or against the program `aqlite` if one is given. They are
/// installed in an environment of their own under target/, in the versions of
/// tests/soak/requirements.txt.
fn clients(name: &str, documents: &[PathBuf], program: Option<&Path>) -> Result<(), String> {
    let python = python_with("target/soak/venv", "tests/soak/requirements.txt")?;
    let mut clients = command("node", &["tests/soak/clients.mjs", name]);
    clients.arg(&python).args(documents);
    if let Some(program) = program {
        clients.env("AQLITE_PROGRAM", program);
    }
    run(&mut clients)
}

/// Returns Python in an environment of its own, with the packages of a file.
fn python_with(folder: &str, requirements: &str) -> Result<PathBuf, String> {
    let home = root().join(folder);
    let python = home.join("bin/python");
    if !python.is_file() {
        run(command("python3", &["-m", "venv"]).arg(&home))?;
    }
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--requirement",
        requirements,
    ];
    run(&mut command(&python, &install))?;
    Ok(python)
}

/// Breaks the code in one place after another and expects a test to fail each time. There are
/// thousands of places, so `--shard` (K/N) selects every Nth, and `--minutes` limits the time after
/// the build. tests/soak/mutants/README.md describes how all mutants run from one build.
fn mutants(options: &Options) -> Result<(), String> {
    let manifest = ["--manifest-path", "tests/soak/mutants/Cargo.toml"];
    let target = ["--target-dir", "target/soak/mutants-tool"];
    let mut program = cargo(&["run", "--quiet", "--locked"]);
    program.args(manifest).args(target).arg("--");
    program.arg(tools::cargo_mutants()?);
    program.arg(options.value("shard", "0/20"));
    program.arg(options.value("minutes", "60"));
    run(program.args(MUTATED))
}

/// Prints one line for each part. Returns an error if one failed.
fn summary(minutes: u64, outcomes: &[(String, Result<(), String>)]) -> Result<(), String> {
    println!("\nsoak, {minutes} minutes each:");
    for (name, outcome) in outcomes {
        println!(
            "  {name:<12} {}",
            if outcome.is_ok() {
                "nothing found"
            } else {
                "FAILED, see above"
            }
        );
    }
    match outcomes
        .iter()
        .filter(|(_, outcome)| outcome.is_err())
        .count()
    {
        0 => Ok(()),
        count => Err(format!(
            "{count} of {} found something; inputs lie in fuzz/artifacts",
            outcomes.len()
        )),
    }
}

/// Returns the names of the fuzz targets, sorted.
fn targets() -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(root().join("fuzz/fuzz_targets"))
        .map_err(|e| format!("fuzz/fuzz_targets: {e}"))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|e| {
            e.path()
                .file_stem()
                .map(|s| s.to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    Ok(names)
}

/// Returns folders with texts of the kind that a target reads.
fn seeds(target: &str, corpus: Option<&Path>) -> Vec<PathBuf> {
    let own = [
        format!("fuzz/seeds/{target}"),
        "www/samples".to_owned(),
        format!("tests/cases/{target}"),
    ]
    .map(|folder| root().join(folder));
    let foreign = folders_of_corpus(target)
        .iter()
        .filter_map(|folder| Some(corpus?.join(folder)));
    own.into_iter()
        .chain(foreign)
        .filter(|folder| folder.is_dir())
        .collect()
}

/// Returns the folders of the corpus with texts of the kind that a target reads.
fn folders_of_corpus(target: &str) -> &'static [&'static str] {
    match target {
        "json" => &[
            "rm/composition_json",
            "rm/ehr_status",
            "rm/folder",
            "rm/contribution",
            "rm/invalid_composition",
        ],
        "xml" => &["rm/composition_xml", "rm/version"],
        "opt" => &[
            "rm/opt",
            "rm/opt_variants",
            "rm/opt_invalid",
            "rm/reference/xsd/v1_Release-1.0.2v2/components/AOM2/examples",
        ],
        "gdl" => &["gdl/guides", "gdl/gdl1", "gdl/fixtures"],
        "flat" => &[
            "rm/flat/ehrbase",
            "rm/flat/better-care",
            "rm/structured",
            "rm/better_compat/flat",
            "rm/better_compat/structured",
        ],
        _ => &[],
    }
}

/// cargo-fuzz with a compiler that can instrument.
struct Fuzzer {
    program: PathBuf,
    /// Whether a nightly toolchain exists. The stable one is otherwise run with RUSTC_BOOTSTRAP.
    is_nightly: bool,
}

impl Fuzzer {
    fn new() -> Result<Fuzzer, String> {
        let is_nightly = output_of(&mut command(
            "rustup",
            &["run", "nightly", "rustc", "--version"],
        ))
        .is_some();
        if !is_nightly {
            println!("no nightly toolchain: fuzzing with the stable one and RUSTC_BOOTSTRAP=1");
        }
        Ok(Fuzzer {
            program: tools::cargo_fuzz()?,
            is_nightly,
        })
    }

    fn build(&self, target: &str) -> Result<(), String> {
        run(self.cargo().args(["build", target]))
    }

    fn run(&self, target: &str, minutes: u64, corpus: Option<&Path>) -> Result<(), String> {
        let found = format!("fuzz/corpus/{target}");
        std::fs::create_dir_all(root().join(&found)).map_err(|e| e.to_string())?;
        let time = format!("-max_total_time={}", minutes * 60);
        let mut fuzz = self.cargo();
        fuzz.args(["run", target, &found])
            .args(seeds(target, corpus))
            .arg("--")
            .arg(time)
            .args(LIMITS);
        run(&mut fuzz)
    }

    /// Returns `cargo fuzz` as cargo would call it.
    fn cargo(&self) -> Command {
        let mut fuzz = command(&self.program, &["fuzz"]);
        match self.is_nightly {
            true => fuzz.env("RUSTUP_TOOLCHAIN", "nightly"),
            false => fuzz.env("RUSTC_BOOTSTRAP", "1"),
        };
        // The variables that cargo set for this program refer to another toolchain.
        fuzz.env_remove("CARGO").env_remove("RUSTC");
        fuzz
    }
}
