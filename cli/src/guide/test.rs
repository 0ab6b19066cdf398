//! `guide test`: the fixtures beside guides.
//!
//! Every `*.yml` below a folder is a fixture, every `*.gdl2.json`, `*.json` and `*.gdl` may be a
//! guide. A fixture belongs to the guide file of its own name (`X.test.yml`, `X.fixture.yml` →
//! `X.gdl2.json`), else to the guide whose id it names, if need be in other punctuation. For a case
//! that fails, the report has the change that would let it pass, if there is one.

mod junit;

use super::moment;
use crate::outcome::{Failure, Outcome};
use crate::printable::printable;
use crate::{progress, query};
use aqlite::diag::{Diagnostic, LineIndex, Severity};
use aqlite::gdl::suite::{Case, Suite};
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, CompiledGuide};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Run the fixtures beside the guides of a folder:
    aqlite guide test guides

  Write the results for continuous integration, with the problems of the guides:
    aqlite guide test guides --junit report.xml --lint

A fixture `score.test.yml` belongs to the guide `score.gdl2.json`.

Exit code: 0 if all cases pass, 1 if one fails or a file cannot be read, 2 for wrong usage.";

/// The options of `guide test`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Folders of guides and fixtures, or single files
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// The time of fixtures that state none, ISO 8601; by default the present
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also report the problems of the guides
    #[arg(long)]
    lint: bool,
}

/// Runs the fixtures.
///
/// # Errors
/// If a folder cannot be read, or the report cannot be written.
pub fn run(options: &Options) -> Result<Outcome, Failure> {
    let now = moment(options.now.as_deref())?;
    let mut files = Vec::new();
    for path in &options.paths {
        walk(path, &mut files)?;
    }
    let mut out = std::io::stdout().lock();
    let (guides, problems) = Guides::read(&files);
    if options.lint {
        out.write_all(problems.as_bytes())?;
    }
    for unreadable in &guides.unreadable {
        writeln!(out, "{}", printable(unreadable))?;
    }
    let mut reports = Vec::new();
    for file in files.iter().filter(|file| is_fixture(file)) {
        progress::check()?;
        let report = Report::of(file, &guides, now);
        out.write_all(report.text().as_bytes())?;
        reports.push(report);
    }
    if let Some(file) = &options.junit {
        std::fs::write(file, junit::text(&reports))
            .map_err(|error| Failure::Data(format!("{}: {error}", file.display())))?;
    }
    let results = || reports.iter().flat_map(|report| &report.results);
    let failed = results().filter(|r| !r.problems.is_empty()).count();
    let (fixtures, cases) = (reports.len(), results().count());
    if fixtures == 0 {
        let paths = options.paths.iter();
        let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        query::warn_of_none("fixtures", &paths);
    }
    writeln!(out, "{fixtures} fixtures, {cases} cases, {failed} failed")?;
    Ok(if failed == 0 && guides.unreadable.is_empty() {
        Outcome::Success
    } else {
        Outcome::Findings
    })
}

fn is_fixture(file: &Path) -> bool {
    let name = file.to_string_lossy();
    [".yml", ".yaml", ".test.json"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::Data(format!("{}: {error}", path.display())))?;
    paths.sort();
    paths.iter().try_for_each(|path| walk(path, files))
}

/// Guides by the stem of their file, and by their id.
#[derive(Default)]
struct Guides {
    compiled: Vec<CompiledGuide>,
    by_stem: BTreeMap<String, usize>,
    by_id: BTreeMap<String, usize>,
    by_letters: BTreeMap<String, usize>,
    /// A line for each file that may be a guide and cannot be read.
    unreadable: Vec<String>,
}

/// The letters and digits of an id.
fn letters(id: &str) -> String {
    id.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The name of a file without its endings: `BMI.v1` of `BMI.v1.gdl2.json` and of `BMI.v1.test.yml`.
fn stem(file: &Path) -> String {
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let endings = [
        ".gdl2.json",
        ".test.json",
        ".json",
        ".gdl",
        ".test.yml",
        ".fixture.yml",
        ".fixtures.yml",
        ".yml",
        ".yaml",
    ];
    endings
        .iter()
        .find_map(|e| name.strip_suffix(e))
        .unwrap_or(&name)
        .to_owned()
}

impl Guides {
    /// Reads the guides among files. The second part is the text of their problems.
    fn read(files: &[PathBuf]) -> (Guides, String) {
        let mut guides = Guides::default();
        let mut problems = String::new();
        let is_guide = |file: &&PathBuf| {
            let ending = file.extension().unwrap_or_default();
            ending == "json" || ending == "gdl"
        };
        for file in files.iter().filter(is_guide) {
            let text = match std::fs::read_to_string(file) {
                Ok(text) => text,
                Err(error) => {
                    let line = format!("{}: error: {error}", file.display());
                    guides.unreadable.push(line);
                    continue;
                }
            };
            let found = guides.add(file, &text);
            let (name, index) = (file.display().to_string(), LineIndex::new(&text));
            problems.extend(found.iter().map(|problem| line_of(&name, &index, problem)));
        }
        (guides, problems)
    }

    /// Adds the guide of a file. Returns its problems.
    fn add(&mut self, file: &Path, text: &str) -> Vec<Diagnostic> {
        let guide = match gdl::parse(text) {
            Ok(guide) => guide,
            Err(problems) => return problems,
        };
        let index = self.compiled.len();
        self.by_stem.entry(stem(file)).or_insert(index);
        self.by_id.entry(guide.id.clone()).or_insert(index);
        self.by_letters.entry(letters(&guide.id)).or_insert(index);
        let compiled = guide.compile();
        let problems = compiled.problems.clone();
        self.compiled.push(compiled);
        problems
    }

    fn of(&self, file: &Path, suite: &Suite) -> Option<&CompiledGuide> {
        let found = self
            .by_stem
            .get(&stem(file))
            .or_else(|| self.by_id.get(&suite.guide_id));
        found
            .or_else(|| self.by_letters.get(&letters(&suite.guide_id)))
            .and_then(|i| self.compiled.get(*i))
    }
}

/// The outcome of a fixture.
struct Report {
    file: String,
    warnings: Vec<String>,
    results: Vec<CaseResult>,
}

/// The outcome of a case; no problem if it passed.
struct CaseResult {
    name: String,
    seconds: f64,
    problems: Vec<String>,
}

impl Report {
    fn of(file: &Path, guides: &Guides, now: Moment) -> Report {
        let name = file.display().to_string();
        let failed = |problem: String| Report {
            file: name.clone(),
            warnings: Vec::new(),
            results: vec![CaseResult {
                name: String::from("the fixture"),
                seconds: 0.0,
                problems: vec![problem],
            }],
        };
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => return failed(error.to_string()),
        };
        let suite = match Suite::read(&text) {
            Ok(suite) => suite,
            Err(problem) => return failed(problem.one_line(&text)),
        };
        let Some(guide) = guides.of(file, &suite) else {
            return failed(format!("there is no guide `{}`", suite.guide_id));
        };
        let index = LineIndex::new(&text);
        let warnings = suite
            .lint(guide)
            .iter()
            .map(|d| line_of(&name, &index, d))
            .collect();
        Report {
            file: name,
            warnings,
            results: suite
                .cases
                .iter()
                .map(|case| CaseResult::of(case, &suite, guide, now))
                .collect(),
        }
    }

    fn text(&self) -> String {
        let mut out = self.warnings.concat();
        for result in self.results.iter().filter(|r| !r.problems.is_empty()) {
            let _ = writeln!(out, "{}: FAILED: {}", self.file, result.name);
            result
                .problems
                .iter()
                .for_each(|p| out.push_str(&format!("    {p}\n")));
        }
        out
    }
}

impl CaseResult {
    fn of(case: &Case, suite: &Suite, guide: &CompiledGuide, now: Moment) -> CaseResult {
        let started = Instant::now();
        let outcome = suite.run(case, guide, now, gdl::Options::default());
        let seconds = started.elapsed().as_secs_f64();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(exceeded) => {
                return CaseResult {
                    name: case.id.clone(),
                    seconds,
                    problems: vec![exceeded.to_string()],
                };
            }
        };
        let mut problems = outcome.differences;
        if !problems.is_empty() {
            problems.push(format!("rules fired: {}", outcome.run.fired.join(" ")));
            problems.extend(suite.cause(case, guide, now));
            problems.extend(
                outcome
                    .run
                    .notes
                    .iter()
                    .map(|n| format!("{} `{}`: {}", n.place, n.statement, n.reason)),
            );
        }
        CaseResult {
            name: case.id.clone(),
            seconds,
            problems,
        }
    }
}

fn line_of(file: &str, index: &LineIndex<'_>, problem: &Diagnostic) -> String {
    let (line, column) = index.line_column(problem.span.start);
    let kind = if problem.severity == Severity::Error {
        "error"
    } else {
        "warning"
    };
    let help = problem.help.as_deref().unwrap_or_default();
    format!(
        "{file}:{line}:{column}: {kind}[{}]: {}; {help}\n",
        problem.code, problem.message
    )
}
