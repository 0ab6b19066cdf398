//! Runs the fixtures of guides: `gdl_test DIR [--now ISO] [--junit FILE] [--lint]`.
//!
//! Every `*.yml` below the folder is a fixture, every `*.gdl2.json`, `*.json` and `*.gdl` may be a
//! guide. A fixture belongs to the guide file of its own name (`X.test.yml`, `X.fixture.yml` →
//! `X.gdl2.json`), else to the guide whose id it names, if need be in other punctuation. `--now` is
//! the time of evaluation of fixtures that fix none; by default the clock. `--lint` tells the
//! problems of the guides too. For a case that fails it says what would let it pass, where it finds
//! that out. The program fails when a case does.

use aqlite::diag::{Diagnostic, LineIndex, Severity};
use aqlite::gdl::suite::{Case, Suite};
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, CompiledGuide, Options};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

fn main() -> Result<(), String> {
    let arguments = Arguments::read()?;
    let mut files = Vec::new();
    walk(&arguments.folder, &mut files)?;
    let guides = Guides::read(&files, arguments.lint);
    let is_fixture = |f: &&PathBuf| {
        f.extension().is_some_and(|e| e == "yml" || e == "yaml")
            || f.to_string_lossy().ends_with(".test.json")
    };
    let reports: Vec<Report> = files
        .iter()
        .filter(is_fixture)
        .map(|file| Report::of(file, &guides, arguments.now))
        .collect();
    reports
        .iter()
        .for_each(|report| print!("{}", report.text()));
    if let Some(file) = &arguments.junit {
        std::fs::write(file, junit(&reports))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let results = || reports.iter().flat_map(|r| &r.results);
    let failed = results().filter(|r| !r.problems.is_empty()).count();
    println!(
        "{} fixtures, {} cases, {failed} failed",
        reports.len(),
        results().count()
    );
    if failed == 0 {
        Ok(())
    } else {
        Err(format!("{failed} cases failed"))
    }
}

struct Arguments {
    folder: PathBuf,
    junit: Option<PathBuf>,
    now: Moment,
    lint: bool,
}

impl Arguments {
    fn read() -> Result<Arguments, String> {
        let seconds = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_secs());
        let mut found = Arguments {
            folder: PathBuf::new(),
            junit: None,
            now: Moment::from_millis(i64::try_from(seconds).unwrap_or_default() * 1000, 0),
            lint: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("`{word}` needs a value"));
            match word.as_str() {
                "--junit" => found.junit = Some(PathBuf::from(value()?)),
                "--now" => {
                    found.now = Moment::parse(&value()?, 0).ok_or("`--now` is no date-time")?
                }
                "--lint" => found.lint = true,
                folder => found.folder = PathBuf::from(folder),
            }
        }
        if found.folder.is_dir() {
            Ok(found)
        } else {
            Err("name the folder of the guides".to_owned())
        }
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(&path, files)?
        } else {
            files.push(path)
        }
    }
    Ok(())
}

/// Guides by the stem of their file, and by their id.
struct Guides {
    compiled: Vec<CompiledGuide>,
    by_stem: BTreeMap<String, usize>,
    by_id: BTreeMap<String, usize>,
    by_letters: BTreeMap<String, usize>,
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
    /// Reads the guides among files, and tells what is wrong with them.
    fn read(files: &[PathBuf], lint: bool) -> Guides {
        let mut guides = Guides {
            compiled: Vec::new(),
            by_stem: BTreeMap::new(),
            by_id: BTreeMap::new(),
            by_letters: BTreeMap::new(),
        };
        for file in files
            .iter()
            .filter(|f| f.extension().is_some_and(|e| e == "json" || e == "gdl"))
        {
            let Ok(text) = std::fs::read_to_string(file) else {
                continue;
            };
            let tell = |problems: &[Diagnostic]| {
                let (name, index) = (file.display().to_string(), LineIndex::new(&text));
                problems
                    .iter()
                    .for_each(|problem| print!("{}", told(&name, &index, problem)));
            };
            let guide = match gdl::parse(&text) {
                Ok(guide) => guide,
                Err(problems) => {
                    if lint {
                        tell(&problems);
                    }
                    continue;
                }
            };
            let index = guides.compiled.len();
            guides.by_stem.entry(stem(file)).or_insert(index);
            guides.by_id.entry(guide.id.clone()).or_insert(index);
            guides.by_letters.entry(letters(&guide.id)).or_insert(index);
            let compiled = guide.compile();
            if lint {
                tell(&compiled.problems);
            }
            guides.compiled.push(compiled);
        }
        guides
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
            .map(|d| told(&name, &index, d))
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
        let outcome = suite.run(case, guide, now, Options::default());
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

fn told(file: &str, index: &LineIndex<'_>, problem: &Diagnostic) -> String {
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

fn junit(reports: &[Report]) -> String {
    let mut out =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gdl\">\n");
    for report in reports {
        let failures = report
            .results
            .iter()
            .filter(|r| !r.problems.is_empty())
            .count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\">",
            xml(&report.file),
            report.results.len()
        );
        for CaseResult {
            name,
            seconds,
            problems,
        } in &report.results
        {
            let _ = write!(
                out,
                "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.6}\"",
                xml(&stem(Path::new(&report.file))),
                xml(name)
            );
            match problems.first() {
                None => out.push_str("/>\n"),
                Some(first) => {
                    let _ = writeln!(
                        out,
                        ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                        xml(first),
                        xml(&problems.join("\n"))
                    );
                }
            }
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// Text for XML: what it forbids is left out.
fn xml(text: &str) -> String {
    let kept = text.chars().filter(|c| *c >= ' ' || *c == '\n');
    kept.fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
        out
    })
}
