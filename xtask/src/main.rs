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
mod transfer;

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
      the repository and the playground on this machine, with sample data; --release: as they are deployed, which takes
      minutes to compile and runs two to three times faster",
        run: serve::run_server,
    },
    Task { name: "test", usage: "test [--quick]\n      every test; --quick: what needs neither wasm nor a browser", run: test::run },
    Task {
        name: "conformance",
        usage: "conformance [rm|aql|gdl] [--corpus DIR] [--via ITS_BASE_URL] [--readme]
      an external corpus, against the core or over HTTP (`serve --no-sample --admin`, which it empties); --readme: the figures go into README.md",
        run: conformance::run,
    },
    Task {
        name: "bench",
        usage: "bench [--compositions 100000] [--corpus DIR] [--native] [--million] [--readme] [--from FILE]
      questions and steps, native and in wasm, beside SQLite over JSON text, over JSONB and over one row a node, and which goals
      are reached; --million: a million compositions too; --readme: the tables go into README.md and docs/benchmark.md; --from: what an
      earlier run printed is shown, nothing is measured
  bench --worker [--compositions 100000] [--readme]
      the worker in workerd beside an empty handler: commits, reads, a bulk import, a guide on a population
  bench --page [--compositions 100000] [--corpus DIR] [--readme]
      the page in Chromium: first answers, many compositions, a filter, typing, scrolling; with a corpus completion",
        run: bench::run_task,
    },
    Task {
        name: "gen-data",
        usage: "gen-data [--ehrs 100] [--compositions 1000] [--seed 1] --out DIR [--bulk]
      synthetic compositions, and the truth about them; --bulk: also the lines that `aqlite load` sends",
        run: sample::gen_data,
    },
    Task {
        name: "gdl-test",
        usage: "gdl-test DIR [--junit FILE] [--now TIME]
      the fixtures (*.yml) beside guides: run, compared, checked against their guides",
        run: gdl_test::run_task,
    },
    Task { name: "gen-rm", usage: "gen-rm\n      the class table from its TSV", run: |_| gen_rm::run() },
    Task {
        name: "soak",
        usage: "soak [--minutes 10] [--only samples|kill|serve|attack|oehrpy|schemathesis|mutants|tables|lake|bundlers|TARGET] [--corpus DIR] [--openapi DIR] [--shard K/N]
      the long tests: 100,000 compositions; 15 kills of workerd during 1,000 commits; 30 kills of
      `aqlite serve`; the attacks in full size; the client
      library oehrpy and, from the standard's OpenAPI documents, schemathesis (both need Python); the code broken in
      one of 300 places after another, each of which must fail a test (--shard K/N takes others); the tables of the
      suites of AQL in pyarrow, Polars and DuckDB (Python), and the scripts of docs/analytics.md; the npm
      package in Deno, Bun and Next; for the given minutes each every fuzz target",
        run: soak::run_task,
    },
    Task {
        name: "export",
        usage: "export FILE [--base http://127.0.0.1:8787/v1] [--ehr EHR_ID]
      everything of a repository, or one EHR, as NDJSON with digests; goes on where it broke off; AQLITE_AUTHORIZATION is sent",
        run: transfer::export,
    },
    Task {
        name: "import",
        usage: "import FILE [--base http://127.0.0.1:8787/v1] [--findings keep]
      an export into a repository; what is there is passed over; AQLITE_AUTHORIZATION is sent; `--findings keep` takes in compositions
      in which the model or their template finds errors",
        run: transfer::import,
    },
    Task {
        name: "smoke",
        usage: "smoke --base URL [--token TOKEN] [--no-page]
      a fresh deployment from outside: health, access, one EHR with one document, a query, the page; with a token it must
      refuse requests without it, without a token it must be open",
        run: smoke::run_task,
    },
    Task { name: "build", usage: "build\n      the worker and the page into dist/, as far as they changed", run: |_| bundle::all() },
    Task {
        name: "screenshots",
        usage: "screenshots [--all DIR]
      the pictures of the README; --all: every view of the page at three widths, light and dark",
        run: screenshots,
    },
    Task { name: "docs", usage: "docs\n      the documentation as a site into dist/docs, with every link checked", run: docs::run },
    Task { name: "package", usage: "package\n      the npm package into dist/package, and packed as dist/aqlite.tgz", run: |_| bundle::package() },
    Task { name: "greet", usage: "", run: serve::greet },
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
