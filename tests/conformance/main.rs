//! Runs an external corpus: `cargo test --test conformance -- [SUITE…] [--corpus DIR] [--via
//! ITS_BASE_URL|memory|sqlite|segments] [--yes]`. The suites of the service remove everything in
//! the repository at an address; without `--yes` it must be empty.
//!
//! A suite is a function from the corpus to its cases. To add one, write a module with `pub fn
//! run(corpus: &Corpus) -> Vec<Case>`, and add a line to [`SUITES`]. `Case::check(id, || …)` turns
//! a `Result<(), String>` (or a panic) into a case. Use `Case::skipped` if the corpus has no
//! verdict. Cases that are known to fail are listed in `known_failures/SUITE.txt`, one id per line.
//! An unlisted failure fails the run, and so does a listed case that passes. Each suite prints one
//! line and writes `target/conformance/SUITE.json`. `SUITE` may be the name of a group: `rm` runs
//! every `rm.…`.
//!
//! The corpus is `--corpus`, else `AQLITE_CORPUS`, else `../shared/corpus`. Its own README
//! describes it. A named but missing corpus fails the run. Without a name, the run is skipped with
//! a message.

mod aql_parse;
mod aql_service;
mod corpus;
mod gdl;
mod gdl_service;
mod judge;
#[path = "../it/notation.rs"]
#[allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "shared with the integration tests, which may panic"
)]
mod notation;
#[path = "../it/over_http.rs"]
mod over_http;
#[path = "../it/random_document.rs"]
#[allow(
    clippy::indexing_slicing,
    reason = "shared with the integration tests, which may panic"
)]
mod random_document;
mod raw;
#[path = "../it/reference/mod.rs"]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "shared with the integration tests, which may panic"
)]
mod reference;
mod report;
mod rm_cnf;
#[allow(clippy::indexing_slicing, reason = "the values are those made here")]
mod rm_cnf_structure;
mod rm_example;
mod rm_flat;
mod rm_flat_service;
mod rm_fragments;
mod rm_json;
mod rm_opt;
mod rm_random;
mod rm_validation;
mod rm_webtemplate;
mod rm_xml;
mod rm_xsd;
mod rows;
#[path = "../it/same_cells.rs"]
mod same_cells;
mod server;
mod service_xsd;
#[path = "../it/sqlite.rs"]
#[allow(
    dead_code,
    clippy::expect_used,
    reason = "shared with the integration tests, which use all of it and may panic"
)]
mod sqlite;
mod tables;

use corpus::Corpus;
use report::Case;
use server::Server;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::available_parallelism;

/// The function that runs a suite.
type Suite = fn(&Corpus) -> Vec<Case>;

/// Every suite with its function.
const SUITES: &[(&str, Suite)] = &[
    ("aql.parse", aql_parse::run),
    ("aql.result", aql_service::result),
    ("aql.result_flat", aql_service::result_flat),
    ("aql.error", aql_service::error),
    ("aql.no_oracle", aql_service::no_oracle),
    ("gdl.parse", gdl::parse),
    ("gdl.print", gdl::print),
    ("gdl.cases", gdl::cases),
    ("gdl.strict", gdl::strict),
    ("gdl.fired", gdl::fired),
    ("gdl.output", gdl::output),
    ("gdl.fixtures", gdl::fixtures),
    ("gdl.service", gdl_service::run),
    ("rm.cnf", rm_cnf::run),
    ("rm.example", rm_example::run),
    ("rm.flat", rm_flat::run),
    ("rm.flat_service", rm_flat_service::run),
    ("rm.json", rm_json::run),
    ("rm.opt", rm_opt::run),
    ("rm.validation", rm_validation::run),
    ("rm.webtemplate", rm_webtemplate::run),
    ("rm.flat_random", rm_random::run),
    ("rm.constraint_fragments", rm_fragments::constraints),
    ("rm.webtemplate_nodes", rm_fragments::nodes),
    ("rm.xml", rm_xml::run),
    ("rm.xsd", rm_xsd::run),
    ("service.xsd", service_xsd::run),
];

fn main() -> ExitCode {
    let options = Options::from_args(std::env::args().skip(1));
    let corpus = match Corpus::open(options.corpus, options.via) {
        Ok(Some(corpus)) => corpus,
        Ok(None) => {
            println!("conformance SKIPPED: there is no corpus (set AQLITE_CORPUS)");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(address) = &corpus.via {
        if !options.may_remove
            && let Err(message) = Server::check_empty(address)
        {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
        println!("suites of the service run against {address}");
    }
    let wanted = SUITES
        .iter()
        .filter(|(name, _)| Options::wants(&options.suites, name));
    if run_all(&wanted.collect::<Vec<_>>(), &corpus) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The stack of a suite: that of a main thread, because some cases are nested deeply.
const STACK: usize = 8 << 20;

/// Runs suites at the same time, and prints their reports in order. Suites that share a server run
/// one after another, because each replaces its data. Returns whether all suites are as expected.
fn run_all(suites: &[&(&str, Suite)], corpus: &Corpus) -> bool {
    let threads = match corpus.via {
        Some(_) => 1,
        None => available_parallelism().map_or(1, usize::from),
    };
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (next, sender) = (&next, sender.clone());
            let work = move || {
                while let Some((at, (_, run))) = taken(suites, next) {
                    // The receiver lives until all threads have ended.
                    drop(sender.send((at, run(corpus))));
                }
            };
            let thread = std::thread::Builder::new().stack_size(STACK);
            if let Err(error) = thread.spawn_scoped(scope, work) {
                eprintln!("no thread for the suites: {error}");
                return false;
            }
        }
        drop(sender);
        print_in_order(suites, &results)
    })
}

/// Returns the next suite that no thread has taken, and its position.
fn taken<'s>(
    suites: &[&'s (&'s str, Suite)],
    next: &AtomicUsize,
) -> Option<(usize, &'s (&'s str, Suite))> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    suites.get(at).map(|suite| (at, *suite))
}

/// Prints the report of each suite when those before it are printed. Returns whether all are as
/// expected.
fn print_in_order(suites: &[&(&str, Suite)], results: &Receiver<(usize, Vec<Case>)>) -> bool {
    let mut waiting = BTreeMap::new();
    let mut is_good = true;
    let mut printed = 0;
    for (at, cases) in results {
        waiting.insert(at, cases);
        while let Some(cases) = waiting.remove(&printed) {
            if let Some((name, _)) = suites.get(printed) {
                is_good &= report::print_report(name, &cases);
            }
            printed += 1;
        }
    }
    is_good && printed == suites.len()
}

#[derive(Default)]
struct Options {
    suites: Vec<String>,
    corpus: Option<String>,
    via: Option<String>,
    /// Whether the content of the repository at `via` may be removed.
    may_remove: bool,
}

impl Options {
    /// Returns whether a suite runs: one that was named, or any if none was named.
    fn wants(suites: &[String], suite: &str) -> bool {
        suites.is_empty() || suites.iter().any(|argument| selects(argument, suite))
    }

    /// Reads the arguments. Those of the usual test harness are ignored.
    fn from_args(mut args: impl Iterator<Item = String>) -> Options {
        let mut options = Options::default();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--corpus" => options.corpus = args.next(),
                "--via" => options.via = args.next(),
                "--yes" => options.may_remove = true,
                flag if flag.starts_with('-') => {}
                _ => options.suites.push(arg),
            }
        }
        options
    }
}

fn selects(argument: &str, suite: &str) -> bool {
    suite
        .strip_prefix(argument)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
