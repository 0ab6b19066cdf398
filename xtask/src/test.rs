//! `cargo xtask test`: all tests in one command.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::process::{Examples, cargo, checked_tests, command, root, run_keeping};
use crate::tools::{
    WASI, WASM, browser, bundlers, duckdb, npm_packages, npm_program, target, wasm_test_runner,
};
use crate::{bundle, conformance, docs, node_tests, publish, sample};

/// The library crates, whose unit tests also run inside wasm.
const LIBRARIES: [&str; 7] = [
    "aqlite-rm",
    "aqlite-engine",
    "aqlite-template",
    "aqlite-aql",
    "aqlite-gdl",
    "aqlite-arrow",
    "aqlite",
];

/// The folder into which the suites of AQL write tables of Arrow and Parquet.
pub const TABLES: &str = "target/tables/cases";

/// The results of the steps: one line each, the counts of the test runners, and failed tests.
#[derive(Default)]
struct Report {
    steps: Vec<String>,
    counts: Vec<String>,
    failed: Vec<String>,
}

/// A build: the name of its step, the steps that it needs, and its function.
type Build<'b> = (&'static str, &'b [&'b Step], fn() -> Result<(), String>);

/// A step that was finished, or skipped because a step that it needs had failed.
struct Step {
    name: &'static str,
    is_ok: bool,
}

pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &[], &["quick"])?;
    let started = Instant::now();
    let corpus = conformance::corpus_argument()?;
    let mut report = Report::default();
    report.step("format", cargo(&["fmt", "--all", "--check"]));
    report.step(
        "lints",
        cargo(&[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            // The program that writes bindings.
            "--features",
            "xtask/bindings",
            "--",
            "--deny",
            "warnings",
        ]),
    );
    // The program has the name of the library. One command would write the pages of both at the same
    // time into one folder, where each removes those of the other.
    let crates = documentation(&["--workspace", "--exclude", "aqlite-cli"]);
    let program = documentation(&["--package", "aqlite-cli"]);
    report.step("documentation of the program", program);
    report.step("documentation of the crates", crates);
    report.step("lints of the fuzz targets", fuzz_targets());
    report.step(
        "lints of the mutants",
        mutants("clippy", &["--all-targets", "--", "--deny", "warnings"]),
    );
    report.step("tests of the mutants", mutants("test", &[]));
    let packages = native(&mut report, &corpus);
    if !options.has("quick") {
        let chromium = report.work("Chromium", &[], || browser().map(drop));
        wasm(&mut report, &chromium);
        hosts(&mut report, &packages, &chromium);
    }
    report.print(started)
}

/// Builds the documentation of packages. A link that leads nowhere is an error, and so is one from a
/// public item to a private one.
fn documentation(packages: &[&str]) -> Command {
    let mut doc = cargo(&[&["doc", "--quiet", "--no-deps"], packages].concat());
    doc.env("RUSTDOCFLAGS", "--deny warnings");
    doc
}

/// Checks that the fuzz targets compile. They are a workspace of their own, and run in `cargo xtask
/// soak` only.
fn fuzz_targets() -> Command {
    let manifest = [
        "--locked",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--no-default-features",
        "--target-dir",
        "target/fuzz",
    ];
    cargo(
        &[
            &["clippy", "--quiet"],
            &manifest[..],
            &["--", "--deny", "warnings"],
        ]
        .concat(),
    )
}

/// Checks the program that runs mutants, a workspace of its own. The mutants themselves run in `cargo
/// xtask soak` only.
fn mutants(action: &str, options: &[&str]) -> Command {
    let manifest = [
        "--locked",
        "--manifest-path",
        "tests/soak/mutants/Cargo.toml",
    ];
    let target = ["--target-dir", "target/soak/mutants-tool"];
    cargo(&[&[action, "--quiet"], &manifest[..], &target, options].concat())
}

/// Runs unit tests, the integration binary, documentation examples and the corpus in the profile
/// `checked`. Returns the step of the npm packages.
fn native(report: &mut Report, corpus: &[String]) -> Step {
    report.step(
        "native tests",
        checked_tests(&["--lib", "--bins", "--test", "it", "--test", "work"]),
    );
    report.step("documentation examples", checked_tests(&["--doc"]));
    report.work("crates as packages", &[], publish::check);
    let packages = report.work("npm packages", &[], npm_packages);
    scripts(report, &packages);
    // The suite about written XML validates with a package from npm.
    report.tests("conformance", &[&packages], || {
        let mut suites = conformance::command();
        suites
            .args(corpus)
            .env("AQLITE_TABLES_OUT", root().join(TABLES));
        Ok(suites)
    });
    if !corpus.is_empty() {
        let duckdb = report.work("DuckDB", &[&packages], duckdb);
        report.tests("tables in DuckDB", &[&duckdb], || {
            Ok(command("node", &["tests/tables/duckdb.mjs", TABLES]))
        });
    }
    packages
}

/// Checks the form of TypeScript and JavaScript, and the workflows.
fn scripts(report: &mut Report, packages: &Step) {
    report.tests("form of TypeScript and JavaScript", &[packages], || {
        Ok(command(
            npm_program("prettier"),
            &["--check", "--log-level", "warn", "."],
        ))
    });
    report.tests("lints of TypeScript and JavaScript", &[packages], || {
        Ok(command(npm_program("eslint"), &["."]))
    });
    report.tests("public automation", &[packages], || {
        Ok(command("node", &["tests/workflows.mjs"]))
    });
}

/// Runs the core inside wasm: in Node and in a headless browser.
fn wasm(report: &mut Report, chromium: &Step) {
    let targets = report.work("targets of wasm", &[], || {
        target(WASM).and_then(|()| target(WASI))
    });
    let runner = report.work("runner of wasm tests", &[], || wasm_test_runner().map(drop));
    report.tests("lints of the wasm crates", &[&targets], || Ok(wasm_lints()));
    report.tests(
        "unit tests inside wasm",
        &[&targets],
        || Ok(units_in_wasm()),
    );
    report.tests("wasm tests in Node", &[&targets, &runner], || {
        in_wasm("node")
    });
    report.tests(
        "wasm tests in Chromium",
        &[&targets, &runner, chromium],
        || {
            let mut tests = in_wasm("browser")?;
            tests.env("CHROMEDRIVER", browser()?.driver);
            Ok(tests)
        },
    );
}

fn wasm_lints() -> Command {
    let crates = ["aqlite-worker", "aqlite-wasm", "aqlite-arrow-wasm"];
    let mut lints = cargo(&["clippy", "--quiet", "--target", WASM]);
    lints
        .args(crates.iter().flat_map(|name| ["--package", name]))
        .args(["--", "--deny", "warnings"]);
    lints
}

/// Returns the unit tests of all libraries, in a WASI program of Node.
fn units_in_wasm() -> Command {
    // The tests of each package start in its own folder.
    let start = format!(
        "target.{WASI}.runner = ['node', '--no-warnings', {:?}]",
        root().join("tests/wasm/wasi.mjs")
    );
    let mut tests = cargo(&["test", "--quiet", "--config", &start]);
    tests
        .args(["--profile", "checked-wasm", "--target", WASI])
        .args(LIBRARIES.iter().flat_map(|name| ["--package", name]))
        .arg("--lib");
    tests
}

fn in_wasm(test: &str) -> Result<Command, String> {
    let temporary = root().join("target/tmp");
    std::fs::create_dir_all(&temporary).map_err(|e| format!("{}: {e}", temporary.display()))?;
    let mut tests = cargo(&[
        "test",
        "--profile",
        "checked-wasm",
        "--target",
        WASM,
        "--package",
        "aqlite-wasm-tests",
        "--test",
        test,
    ]);
    tests.env(
        "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER",
        wasm_test_runner()?,
    );
    // The runner writes a module into the folder for temporary files. A package.json above it must
    // not change its module format.
    tests.env("TMPDIR", temporary);
    Ok(tests)
}

/// Tests the worker in workerd, the page in Chromium and the npm package.
fn hosts(report: &mut Report, packages: &Step, chromium: &Step) {
    let bundlers = report.work("bundlers", &[packages], bundlers);
    let needs: &[&Step] = &[packages];
    let [worker, page, package] = report.at_once([
        ("worker", needs, bundle::worker),
        ("page", needs, || bundle::page_by(Examples::OfTests)),
        ("package", needs, bundle::package),
    ]);
    let sample = report.work("sample", &[], || sample::generate_by(Examples::OfTests));
    let site = report.work("documentation site", &[], docs::build);
    report.tests("size of worker and page", &[&worker, &page], || {
        Ok(command("node", &["tests/e2e/size.mjs"]))
    });
    report.node_tests(&[
        Suite {
            name: "worker in workerd",
            folder: "tests/e2e",
            needs: &[&worker, &page, &sample],
        },
        Suite {
            name: "page in Chromium",
            folder: "tests/web",
            needs: &[&worker, &page, &sample, &site, chromium],
        },
        Suite {
            name: "package in Node, Chromium, workerd and bundlers",
            folder: "tests/package",
            needs: &[&package, &bundlers, chromium],
        },
    ]);
    let needs = [packages, &sample];
    report.tests("aqlite serve by tests of the worker", &needs, || {
        node_tests::command_of_program(&root().join("target/checked/aqlite"))
    });
}

/// A suite of tests in JavaScript.
struct Suite<'s> {
    /// The name of its step.
    name: &'static str,
    folder: &'static str,
    /// The steps that it needs.
    needs: &'s [&'s Step],
}

fn heading(name: &str) {
    println!("\n==== {name}");
}

/// Returns whether a line belongs to the summary: the number of tests, or a test that failed.
fn is_summary(line: &str) -> bool {
    is_count(line) || is_failure(line)
}

/// Returns whether a line of the test harness of Rust, or of TAP, names a failed test.
fn is_failure(line: &str) -> bool {
    (line.starts_with("---- ") && line.ends_with(" ----"))
        || line.trim_start().starts_with("not ok ")
}

/// Returns whether a line is the number of tests that a runner prints.
fn is_count(line: &str) -> bool {
    let starts = [
        "test result:",
        "conformance ",
        "# tests ",
        "# pass ",
        "# fail ",
    ];
    starts.iter().any(|start| line.starts_with(start))
        && !line.starts_with("test result: ok. 0 passed; 0 failed; 0 ignored")
}

impl Report {
    /// Runs a command that needs nothing but cargo.
    fn step(&mut self, name: &'static str, command: Command) {
        self.tests(name, &[], || Ok(command));
    }

    /// Runs a command, unless a step that it needs has failed.
    fn tests(
        &mut self,
        name: &'static str,
        needs: &[&Step],
        command: impl FnOnce() -> Result<Command, String>,
    ) -> Step {
        let mut counts = Vec::new();
        let step = self.work(name, needs, || {
            let outcome;
            (counts, outcome) = run_keeping(&mut command()?, is_summary);
            outcome
        });
        self.counts
            .extend(counts.iter().map(|line| format!("{name}: {line}")));
        step
    }

    /// Runs the tests of several suites in one pool of processes, unless a step that they need has
    /// failed. Many tests wait for a browser or a server, and those of another suite run meanwhile.
    fn node_tests(&mut self, suites: &[Suite<'_>]) {
        let mut folders = Vec::new();
        for suite in suites {
            if self.can_run(suite.name, suite.needs) {
                println!("{}: {}", suite.name, suite.folder);
                folders.push(suite.folder);
            }
        }
        if !folders.is_empty() {
            self.tests("worker, page and package", &[], || {
                node_tests::command_of(&folders)
            });
        }
    }

    /// Calls functions at the same time, except those whose needs have failed. A build uses one
    /// processor for its last phase, the optimization of the whole program.
    fn at_once<const N: usize>(&mut self, builds: [Build<'_>; N]) -> [Step; N] {
        let builds = builds.map(|(name, needs, work)| (name, self.can_run(name, needs), work));
        heading(&builds.map(|(name, ..)| name).join(", "));
        let outcomes = std::thread::scope(|scope| {
            let running = builds.map(|(_, can_run, work)| {
                can_run.then(|| {
                    let started = Instant::now();
                    scope.spawn(move || (work(), started.elapsed()))
                })
            });
            running.map(|build| build.map(|thread| thread.join()))
        });
        let mut outcomes = outcomes.into_iter();
        builds.map(|(name, ..)| match outcomes.next().flatten() {
            Some(Ok((outcome, elapsed))) => self.ended(name, elapsed, outcome),
            Some(Err(_)) => self.ended(name, Duration::ZERO, Err(format!("{name} panicked"))),
            None => Step { name, is_ok: false },
        })
    }

    /// Calls a function, unless a step that it needs has failed.
    fn work(
        &mut self,
        name: &'static str,
        needs: &[&Step],
        work: impl FnOnce() -> Result<(), String>,
    ) -> Step {
        if !self.can_run(name, needs) {
            return Step { name, is_ok: false };
        }
        heading(name);
        let started = Instant::now();
        let outcome = work();
        self.ended(name, started.elapsed(), outcome)
    }

    /// Returns whether all needs of a step are met. If not, the report names the others.
    fn can_run(&mut self, name: &str, needs: &[&Step]) -> bool {
        let missing: Vec<_> = needs
            .iter()
            .filter(|step| !step.is_ok)
            .map(|step| step.name)
            .collect();
        if !missing.is_empty() {
            self.steps.push(format!(
                "         NOT RUN  {name} (needs: {})",
                missing.join(", ")
            ));
        }
        missing.is_empty()
    }

    /// Adds the outcome of a step to the report.
    fn ended(
        &mut self,
        name: &'static str,
        elapsed: Duration,
        outcome: Result<(), String>,
    ) -> Step {
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        self.steps.push(format!(
            "{:>6.1} s  {word:7}  {name}",
            elapsed.as_secs_f64()
        ));
        if let Err(message) = &outcome {
            println!("{message}");
            self.failed.push(name.to_owned());
        }
        Step {
            name,
            is_ok: outcome.is_ok(),
        }
    }

    fn print(&self, started: Instant) -> Result<(), String> {
        heading("summary");
        for line in self.counts.iter().chain(&self.steps) {
            println!("{line}");
        }
        println!("{:>6.1} s  in all", started.elapsed().as_secs_f64());
        if self.failed.is_empty() {
            Ok(())
        } else {
            Err(format!("failed: {}", self.failed.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, is_summary};
    use crate::process::command;

    #[test]
    fn summary_names_failed_tests() {
        assert!(is_summary("---- service::loads::part_ends stdout ----"));
        assert!(is_summary("    not ok 2 - a journal is compacted"));
        assert!(is_summary("# fail 1"));
        assert!(!is_summary("    ok 1 - a journal is read"));
        assert!(!is_summary("---- of a text"));
    }

    #[test]
    fn step_behind_a_failed_one_is_not_run() {
        let mut report = Report::default();
        let worker = report.work("worker", &[], || Err("the disk is full".to_owned()));
        let sample = report.work("sample", &[], || Ok(()));
        let tests = report.tests("worker in workerd", &[&worker, &sample], || {
            panic!("it was run")
        });
        let more = report.work("what comes of them", &[&tests], || panic!("it was run"));
        let other = report.tests("other", &[&sample], || Ok(command("true", &[])));
        assert_eq!((tests.is_ok, more.is_ok, other.is_ok), (false, false, true));
        assert_eq!(report.failed, ["worker"]);
        assert!(
            report.steps[2].ends_with("NOT RUN  worker in workerd (needs: worker)"),
            "{:?}",
            report.steps
        );
        assert!(
            report.steps[3].ends_with("NOT RUN  what comes of them (needs: worker in workerd)"),
            "{:?}",
            report.steps
        );
    }

    #[test]
    fn builds_at_once_are_reported_in_order() {
        let mut report = Report::default();
        let packages = report.work("packages", &[], || Err("no network".to_owned()));
        let steps = report.at_once([
            ("worker", &[], || Err("the disk is full".to_owned())),
            ("page", &[], || panic!("a fault")),
            ("package", &[&packages], || panic!("it was run")),
            ("site", &[], || Ok(())),
        ]);
        assert_eq!(steps.map(|step| step.is_ok), [false, false, false, true]);
        assert_eq!(report.failed, ["packages", "worker", "page"]);
        let is_of = |line: &String, name: &str| line.ends_with(name);
        assert!(report.steps.iter().any(|line| is_of(line, "ok       site")));
        assert!(
            report
                .steps
                .iter()
                .any(|line| is_of(line, "NOT RUN  package (needs: packages)")),
            "{:?}",
            report.steps
        );
    }
}
