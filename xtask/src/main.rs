//! The project's commands: `cargo xtask <command>`.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::indexing_slicing, reason = "a developer's tool may panic")]

mod bench;
mod bindings;
mod bundle;
mod conformance;
mod development;
mod docs;
mod figures;
mod gdl_test;
mod gen_rm;
mod http;
mod node_tests;
mod options;
mod process;
mod progress;
mod publish;
mod readme;
mod sample;
mod serve;
mod smoke;
mod soak;
mod stamp;
mod test;
mod tools;

use std::process::ExitCode;

struct Task {
    name: &'static str,
    usage: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const TASKS: &[Task] = &[
    Task {
        name: "serve",
        usage: "serve [--port 8787] [--state DIR] [--no-sample] [--system-id aqlite.local] [--admin] [--terminology URL] [--release]
      Serves the repository and the playground on this machine, with sample data. --release compiles them as they are
      deployed: this needs minutes, and they run two to three times faster.",
        run: serve::run_server,
    },
    Task { name: "test", usage: "test [--quick]\n      Runs every test. --quick: only those that need neither wasm nor a browser.", run: test::run },
    Task {
        name: "conformance",
        usage: "conformance [rm|aql|gdl] [--corpus DIR] [--via ITS_BASE_URL [--yes]] [--readme]
      Runs an external corpus against the core, or over HTTP against `serve --no-sample --admin`, whose data it removes:
      without --yes it refuses a repository that is not empty.
      --readme writes the figures into README.md.",
        run: conformance::run,
    },
    Task {
        name: "bench",
        usage: "bench [--compositions 100000] [--corpus DIR] [--native] [--million] [--readme] [--from FILE]
      Measures queries and the steps of a document, native and in wasm, beside SQLite over JSON text, over JSONB and over
      one row for each node, and compares the figures with their goals. --million also measures a million compositions.
      --readme writes the tables into README.md and docs/benchmark.md. --from reads the figures from the output of an
      earlier run.
  bench --worker [--compositions 100000] [--readme]
      Measures the worker in workerd beside an empty handler: commits, reads, a bulk import, a guide on a population.
  bench --serve [--compositions 100000] [--readme]
      Measures population queries of `aqlite serve`, on all processors and on one, and a bulk import.
  bench --page [--compositions 100000] [--corpus DIR] [--readme]
      Measures the page in Chromium: first answers, many compositions, a filter, typing, scrolling; with a corpus also
      completion.",
        run: bench::run_task,
    },
    Task {
        name: "gen-data",
        usage: "gen-data [--ehrs 100] [--compositions 1000] [--seed 1] --out DIR [--bulk]
      Writes synthetic compositions, and a table of their facts. --bulk also writes the lines that `aqlite load` sends.",
        run: sample::gen_data,
    },
    Task {
        name: "gdl-test",
        usage: "gdl-test DIR [--junit FILE] [--now TIME]
      Runs the fixtures (*.yml) beside guides, and checks them against their guides.",
        run: gdl_test::run_task,
    },
    Task { name: "gen-rm", usage: "gen-rm\n      Generates the class table from its TSV.", run: |_| gen_rm::run() },
    Task {
        name: "soak",
        usage: "soak [--minutes 10] [--only samples|kill|serve|native|attack|oehrpy|schemathesis|mutants|tables|lake|bundlers|benches|TARGET] [--corpus DIR] [--openapi DIR] [--shard K/N]
      Runs the long tests: 100,000 compositions; 15 kills of workerd during 1,000 commits; 30 kills of
      `aqlite serve`; the attacks in full size; the client
      library oehrpy and, from the standard's OpenAPI documents, schemathesis (both need Python); every
      twentieth mutant of guides, templates, service and store, each of which must fail a test (--shard K/N takes
      others); the tables of the suites of AQL in pyarrow, Polars and DuckDB (Python), and the scripts of
      docs/analytics.md; the npm package in Deno, Bun and Next; each fuzz target for the given minutes",
        run: soak::run_task,
    },
    Task {
        name: "smoke",
        usage: "smoke --base URL [--token TOKEN] [--no-page]
      Tests a new deployment over HTTP: health, access, one EHR with one document, a query, the page. With a token, the
      deployment must refuse requests without it; without a token, it must be open.",
        run: smoke::run_task,
    },
    Task { name: "build", usage: "build\n      Builds the worker and the page into dist/, if they changed.", run: |_| bundle::all() },
    Task {
        name: "screenshots",
        usage: "screenshots [--all DIR]
      Makes the pictures of the README. --all: every view of the page at three widths, light and dark.",
        run: screenshots,
    },
    Task { name: "docs", usage: "docs\n      Builds the documentation as a site into dist/docs, and checks every link.", run: docs::run },
    Task { name: "package", usage: "package\n      Builds the npm package in dist/package, and packs it as dist/aqlite.tgz.", run: |_| bundle::package() },
    Task { name: "second-stage", usage: "", run: serve::second_stage },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("help", String::as_str);
    let asks_help = args
        .iter()
        .skip(1)
        .any(|arg| ["--help", "-h"].contains(&arg.as_str()));
    let outcome = match TASKS.iter().find(|task| task.name == name) {
        Some(task) if asks_help => {
            println!("cargo xtask {}", task.usage);
            Ok(())
        }
        Some(task) => (task.run)(&args[1..]),
        None if ["help", "--help", "-h"].contains(&name) => {
            print!("{}", help());
            Ok(())
        }
        None => Err(format!("unknown command `{name}`\n{}", help())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Writes pictures of the page as it is built now.
fn screenshots(args: &[String]) -> Result<(), String> {
    let options = options::Options::read(args, &["all"], &[])?;
    tools::npm_packages()?;
    bundle::all()?;
    let mut node = process::command("node", &["tests/web/screenshots.mjs"]);
    node.env("CHROMIUM", tools::browser()?.chromium);
    if let Some(folder) = options.given("all") {
        node.args(["--all", folder]);
    }
    process::run(&mut node)
}

fn help() -> String {
    let usages = TASKS
        .iter()
        .filter(|task| !task.usage.is_empty())
        .map(|task| format!("  {}\n", task.usage));
    format!("cargo xtask <command>\n\n{}", usages.collect::<String>())
}
