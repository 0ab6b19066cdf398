//! Runs the mutants of cargo-mutants from one build, and compares the survivors with a list.
//!
//! Arguments: the program cargo-mutants, the shard K/N, the minutes for which mutants run, and the
//! folders to mutate.

mod list;
mod run;
mod survivors;
mod tree;
mod weave;

use list::Mutant;
use run::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

const WORKERS: usize = 2;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, shard, minutes, folders @ ..] = &arguments[..] else {
        return Err(
            "arguments: the program cargo-mutants, a shard K/N, minutes, folders".to_owned(),
        );
    };
    let minutes: u64 = minutes
        .parse()
        .map_err(|_| format!("`{minutes}` is no number"))?;
    let project = std::env::current_dir().map_err(|e| e.to_string())?;
    let work = project.join("target/soak/mutants");
    std::fs::create_dir_all(&work).map_err(|e| e.to_string())?;
    let all = listed(program, &project)?;
    let (first, of) = parsed(shard)?;
    let sampled: Vec<Mutant> = folders
        .iter()
        .flat_map(|folder| list::sample(&all, folder, first, of))
        .collect();
    println!(
        "{} mutants in all, {} in the shard {shard}",
        all.len(),
        sampled.len()
    );
    let limit = Duration::from_secs(minutes * 60);
    let outcomes = outcomes(&project, &work, &sampled, folders, limit)?;
    let report = Report {
        folders,
        mutants: &sampled,
        outcomes: &outcomes,
    };
    report.print();
    survivors::compare(
        &project.join("tests/soak/mutants_survivors.txt"),
        &sampled,
        &outcomes,
    )
}

fn parsed(shard: &str) -> Result<(usize, usize), String> {
    let parts = shard
        .split_once('/')
        .and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts
        .filter(|(k, n)| k < n)
        .ok_or(format!("the shard `{shard}` is not K/N with K below N"))
}

/// Lists all mutants of the mutated crates.
fn listed(program: &str, project: &Path) -> Result<Vec<Mutant>, String> {
    let packages = tree::CRATES
        .iter()
        .flat_map(|(name, _)| ["--package", *name]);
    let output = Command::new(PathBuf::from(program))
        .args(["mutants", "--list", "--json"])
        .args(packages)
        .current_dir(project)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    match output.status.success() {
        true => list::read(&String::from_utf8_lossy(&output.stdout)),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Compiles the mutants and runs those that compile. Mutants without an outcome do not compile.
fn outcomes(
    project: &Path,
    work: &Path,
    mutants: &[Mutant],
    folders: &[String],
    limit: Duration,
) -> Result<BTreeMap<u32, Outcome>, String> {
    let mut tree = tree::Tree::copy(project, work, mutants)?;
    let (built, programs) = tree.build(project, mutants)?;
    println!(
        "{} mutants compile; recording the tests that reach them",
        built.len()
    );
    let reached = run::record(&programs, folders, work, WORKERS)?;
    for test in &reached.left_out {
        println!("left out, because it does not pass without a mutant: {test}");
    }
    let names: BTreeMap<u32, &str> = mutants.iter().map(|m| (m.id, m.name.as_str())).collect();
    let outcomes = Mutex::new(BTreeMap::new());
    run::run(
        &programs,
        &reached,
        &built,
        WORKERS,
        limit,
        |id, outcome| {
            let Ok(mut outcomes) = outcomes.lock() else {
                return;
            };
            outcomes.insert(id, outcome);
            if !matches!(outcome, Outcome::Caught | Outcome::NotRun) {
                println!(
                    "{}/{} {outcome:?}: {}",
                    outcomes.len(),
                    built.len(),
                    names[&id]
                );
            }
        },
    );
    outcomes.into_inner().map_err(|e| e.to_string())
}

/// The figures of a run.
struct Report<'a> {
    folders: &'a [String],
    mutants: &'a [Mutant],
    outcomes: &'a BTreeMap<u32, Outcome>,
}

impl Report<'_> {
    fn print(&self) {
        println!(
            "{:<28} mutants  caught  timeout  survived  unreached  not run  unviable",
            "folder"
        );
        for folder in self.folders {
            let ids: BTreeSet<u32> = self
                .mutants
                .iter()
                .filter(|m| m.file.starts_with(folder))
                .map(|m| m.id)
                .collect();
            let count = |outcome| {
                ids.iter()
                    .filter(|id| self.outcomes.get(id) == outcome)
                    .count()
            };
            println!(
                "{folder:<28} {:>7} {:>7} {:>8} {:>9} {:>10} {:>8} {:>9}",
                ids.len(),
                count(Some(&Outcome::Caught)),
                count(Some(&Outcome::Timeout)),
                count(Some(&Outcome::Survived)),
                count(Some(&Outcome::Unreached)),
                count(Some(&Outcome::NotRun)),
                count(None),
            );
        }
    }
}
