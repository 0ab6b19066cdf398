//! The tests that reach each mutant, and the mutants that they catch.

use crate::tree::TestProgram;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Seconds of processor time after which a test without any mutant is ended and left out.
const LONGEST_TEST: u64 = 60;
/// Time after which a test process is ended although it computes nothing.
const LONGEST_WAIT: Duration = Duration::from_secs(1800);
/// Tests of at most this time run in one process.
const SHORT_TEST: Duration = Duration::from_secs(2);
/// Runs a program with bounds on its addresses and on its processor time: a mutant may allocate or
/// loop without end. The time on the clock would depend on what else the machine does.
const BOUNDED: &str = "ulimit -v 6000000; ulimit -t \"$1\"; shift; exec \"$@\"";

/// A test that passes without any mutant.
#[derive(Clone)]
pub struct Test {
    program: usize,
    name: String,
    time: Duration,
}

/// The tests by the mutants that they reach.
#[derive(Default)]
pub struct Reached {
    tests: BTreeMap<u32, Vec<Test>>,
    /// The tests that did not pass without any mutant, or took too long.
    pub left_out: Vec<String>,
}

/// The fate of a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// A test failed.
    Caught,
    /// The tests needed a multiple of their time.
    Timeout,
    /// All tests passed.
    Survived,
    /// No test reaches the code.
    Unreached,
    /// The time was over before.
    NotRun,
}

/// A folder with mutants, and the tests that run for them.
struct Tested {
    folder: &'static str,
    /// The module of its unit tests; empty for a whole crate.
    module: &'static str,
    /// Beginnings of the names of integration tests.
    tests: &'static [&'static str],
}

const TESTED: [Tested; 4] = [
    Tested {
        folder: "crates/aqlite-gdl",
        module: "",
        tests: &["gdl", "guide", "problems::", "push::"],
    },
    Tested {
        folder: "crates/aqlite-template",
        module: "",
        tests: &[
            "template::",
            "simplified::",
            "gdl_templates::",
            "notation::",
        ],
    },
    Tested {
        folder: "src/service",
        module: "service::",
        tests: &[
            "rest::the_cases_hold_in_memory",
            "access_log::",
            "altered::",
            "bulk::",
            "contributions::",
            "error_codes::",
            "faults::",
            "guide_",
            "limits::",
            "limits_table::",
            "loading::",
            "openapi::",
            "parts::",
            "steps::",
            "tables::",
            "terminology::",
            "write_policy::",
        ],
    },
    Tested {
        folder: "src/store",
        module: "store::",
        tests: &[
            "store::",
            "sql::",
            "snapshot::",
            "storage::",
            "segments::",
            "altered::",
            "bulk::",
            "checkpoints::",
            "contributions::",
            "faults::",
            "integrity::",
            "paging::",
            "pieces::",
            "privacy::",
            "repeated::",
            "rewound::",
            "upgrade::",
        ],
    },
];

impl Tested {
    /// Returns whether a test runs for the mutants of this folder.
    fn has(&self, program: &TestProgram, name: &str) -> bool {
        let is_own = self.module.is_empty() == program.folder.ends_with(self.folder);
        match program.is_unit {
            true => is_own && name.starts_with(self.module),
            false => self.tests.iter().any(|start| name.starts_with(start)),
        }
    }
}

/// Runs each test of some folders alone and records the mutants that it reaches.
pub fn record(
    programs: &[TestProgram],
    folders: &[String],
    folder: &Path,
    workers: usize,
) -> Result<Reached, String> {
    let mut all = Vec::new();
    for (program, file) in programs.iter().enumerate() {
        let wanted = TESTED
            .iter()
            .filter(|t| folders.iter().any(|folder| folder == t.folder));
        let wanted: Vec<&Tested> = wanted.collect();
        let names = names(file)?
            .into_iter()
            .filter(|name| wanted.iter().any(|t| t.has(file, name)));
        all.extend(names.map(|name| (program, name)));
    }
    let reached = Mutex::new(Reached::default());
    in_parallel(workers, all.len(), |at, worker| {
        let (program, name) = &all[at];
        let file = folder.join(format!("reached-{worker}"));
        let _ = std::fs::remove_file(&file);
        let started = Instant::now();
        let mut command = test(&programs[*program], &[name], LONGEST_TEST);
        command.env("AQLITE_MUTANTS_REACHED", &file);
        let outcome = watched(&mut command);
        let ids = std::fs::read_to_string(&file).unwrap_or_default();
        let test = Test {
            program: *program,
            name: name.clone(),
            time: started.elapsed(),
        };
        let Ok(mut reached) = reached.lock() else {
            return;
        };
        match outcome {
            Outcome::Survived => reached.add(&test, &ids),
            _ if ids.is_empty() => {}
            _ => reached.left_out.push(format!("{name} ({outcome:?})")),
        }
    });
    reached.into_inner().map_err(|e| e.to_string())
}

impl Reached {
    fn add(&mut self, test: &Test, ids: &str) {
        for id in ids.lines().filter_map(|line| line.parse().ok()) {
            self.tests.entry(id).or_default().push(test.clone());
        }
    }
}

/// Runs mutants, each with the tests that reach it, the short ones first. After the time limit no
/// further one starts. Those that ran until then are spread over the whole list.
pub fn run(
    programs: &[TestProgram],
    reached: &Reached,
    mutants: &BTreeSet<u32>,
    workers: usize,
    limit: Duration,
    done: impl Fn(u32, Outcome) + Sync,
) {
    let started = Instant::now();
    let mutants = spread(mutants);
    in_parallel(workers, mutants.len(), |at, _| {
        let outcome = match reached.tests.get(&mutants[at]) {
            None => Outcome::Unreached,
            Some(_) if started.elapsed() > limit => Outcome::NotRun,
            Some(tests) => fate(programs, mutants[at], tests),
        };
        done(mutants[at], outcome);
    });
}

/// Returns numbers in an order of which every beginning is spread evenly over all of them: that of
/// their indices with the bits reversed.
fn spread(mutants: &BTreeSet<u32>) -> Vec<u32> {
    let mut indexed: Vec<(usize, u32)> = mutants.iter().copied().enumerate().collect();
    indexed.sort_by_key(|(index, _)| index.reverse_bits());
    indexed.into_iter().map(|(_, id)| id).collect()
}

fn fate(programs: &[TestProgram], mutant: u32, tests: &[Test]) -> Outcome {
    for group in groups(tests) {
        let names: Vec<&str> = group.iter().map(|test| test.name.as_str()).collect();
        let usual: Duration = group.iter().map(|test| test.time).sum();
        let Some(first) = group.first() else { continue };
        let limit = usual.as_secs() * 5 + 30;
        let mut command = test(&programs[first.program], &names, limit);
        command.env("AQLITE_MUTANT", mutant.to_string());
        let outcome = watched(&mut command);
        if outcome != Outcome::Survived {
            return outcome;
        }
    }
    Outcome::Survived
}

/// Returns the tests in the order in which they run: the short ones of each program in one process, then
/// one after another.
fn groups(tests: &[Test]) -> Vec<Vec<&Test>> {
    let mut short: BTreeMap<usize, Vec<&Test>> = BTreeMap::new();
    let mut long: Vec<&Test> = Vec::new();
    for test in tests {
        match test.time <= SHORT_TEST {
            true => short.entry(test.program).or_default().push(test),
            false => long.push(test),
        }
    }
    long.sort_by_key(|test| test.time);
    short
        .into_values()
        .chain(long.into_iter().map(|test| vec![test]))
        .collect()
}

fn names(program: &TestProgram) -> Result<Vec<String>, String> {
    let mut list = test(program, &[], LONGEST_TEST);
    let output = list
        .args(["--list", "--format", "terse"])
        .stdout(Stdio::piped())
        .output();
    let output = output.map_err(|e| format!("{}: {e}", program.path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .lines()
        .filter_map(|line| Some(line.strip_suffix(": test")?.to_owned()))
        .collect())
}

/// Returns a command that runs tests by their whole names, for at most some seconds of the processor.
fn test(program: &TestProgram, names: &[&str], seconds: u64) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", BOUNDED, "sh", &seconds.to_string()]);
    command.arg(&program.path).args(["--test-threads", "1"]);
    if !names.is_empty() {
        command.arg("--exact").args(names);
    }
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Runs tests until one fails or the time is over.
fn watched(command: &mut Command) -> Outcome {
    let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else {
        return Outcome::Timeout;
    };
    let failed = AtomicBool::new(false);
    let output = child.stdout.take();
    std::thread::scope(|scope| {
        let failed = &failed;
        scope.spawn(move || {
            let lines = output
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                if line.starts_with("test ") && line.ends_with("FAILED") {
                    failed.store(true, Ordering::Relaxed);
                }
            }
        });
        end_of(&mut child, failed)
    })
}

fn end_of(child: &mut Child, failed: &AtomicBool) -> Outcome {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return of_status(status),
            Err(_) => return Outcome::Caught,
            Ok(None) => {}
        }
        let is_late = started.elapsed() > LONGEST_WAIT;
        if is_late || failed.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return if is_late {
                Outcome::Timeout
            } else {
                Outcome::Caught
            };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the outcome of a test process that ended. The system ends one whose processor time is over.
fn of_status(status: ExitStatus) -> Outcome {
    match (status.success(), status.signal()) {
        (true, _) => Outcome::Survived,
        (false, Some(SIGXCPU | SIGKILL)) => Outcome::Timeout,
        (false, _) => Outcome::Caught,
    }
}

/// The signals that end a process whose processor time is over, at the soft and at the hard limit.
const SIGXCPU: i32 = 24;
const SIGKILL: i32 = 9;

/// Calls a function for each number below `count`, on several threads.
fn in_parallel(workers: usize, count: usize, call: impl Fn(usize, usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (next, call) = (&next, &call);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    call(at, worker);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_loops_without_end_is_ended_by_its_processor_time() {
        let mut command = Command::new("sh");
        command.args(["-c", BOUNDED, "sh", "1", "sh", "-c", "while :; do :; done"]);
        assert_eq!(watched(&mut command), Outcome::Timeout);
    }

    #[test]
    fn the_first_line_about_a_failure_decides() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test a::b ... FAILED'; exec sleep 60"]);
        assert_eq!(watched(&mut command), Outcome::Caught);
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test a::b ... ok'"]);
        assert_eq!(watched(&mut command), Outcome::Survived);
    }

    #[test]
    fn the_first_mutants_are_spread_over_the_list() {
        let order = spread(&(10..18).collect());
        assert_eq!(order, [10, 14, 12, 16, 11, 15, 13, 17]);
    }
}
