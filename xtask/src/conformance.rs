//! `cargo xtask conformance [rm|aql|gdl] [--corpus DIR] [--via URL [--yes]]`: tests the core with an
//! external corpus.

use std::process::Command;

use crate::options::Options;
use crate::{process, readme};

pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["corpus", "via"], &["readme", "yes"])?;
    let area_of = |suite: &str| suite.split('.').next().unwrap_or_default().to_owned();
    if let Some(other) = options
        .words
        .iter()
        .find(|word| !["rm", "aql", "gdl"].contains(&area_of(word).as_str()))
    {
        return Err(format!(
            "unknown suite `{other}`: expected rm, aql or gdl, or one suite of them such as aql.parse"
        ));
    }
    let mut tests = command();
    tests.args(&options.words);
    match options.given("corpus") {
        Some(folder) => {
            let here = std::env::current_dir().map_err(|e| e.to_string())?;
            tests.arg("--corpus").arg(here.join(folder))
        }
        None => tests.args(corpus_argument()?),
    };
    if let Some(base) = options.given("via") {
        tests.args(["--via", base]);
    }
    if options.has("yes") {
        tests.arg("--yes");
    }
    let (lines, outcome) =
        process::run_keeping(&mut tests, |line| line.starts_with("conformance "));
    if options.has("readme") {
        readme::write("README.md", "conformance", &table(&lines))?;
    }
    outcome
}

/// Converts `conformance SUITE: P passed, F failed, S skipped, of N` to rows of a table.
fn table(lines: &[String]) -> String {
    let rows = lines.iter().filter_map(|line| {
        let (suite, counts) = line.strip_prefix("conformance ")?.split_once(": ")?;
        let numbers: Vec<&str> = counts
            .split(|c: char| !c.is_ascii_digit())
            .filter(|n| !n.is_empty())
            .collect();
        let [passed, failed, skipped, all] = numbers[..] else {
            return None;
        };
        Some(format!(
            "| `{suite}` | {passed} | {failed} | {skipped} | {all} |\n"
        ))
    });
    format!(
        "| suite | passed | failed | skipped | of |\n|---|---|---|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// Returns the command that runs all suites. Arguments select some of them.
pub fn command() -> Command {
    process::checked_tests(&["--test", "conformance", "--"])
}

/// Returns the corpus as arguments. Prints that the tests are skipped if there is none.
pub fn corpus_argument() -> Result<Vec<String>, String> {
    let Some(path) = process::corpus(None)? else {
        println!(
            "WARNING: no corpus at {}, and AQLITE_CORPUS is not set: the tests that need it are skipped",
            process::DEFAULT_CORPUS
        );
        return Ok(Vec::new());
    };
    Ok(vec![
        "--corpus".to_owned(),
        path.to_string_lossy().into_owned(),
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_become_a_row() {
        let table = super::table(&[
            "conformance rm.json: 694 passed, 0 failed, 7 skipped, of 701".to_owned(),
        ]);
        assert!(
            table.ends_with("| `rm.json` | 694 | 0 | 7 | 701 |\n"),
            "{table}"
        );
    }
}
