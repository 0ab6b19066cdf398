//! Every rule of `docs/aql-rules.md` has cases, and every name in braces behind a case's title is a
//! rule there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A row of a table of the page: the rule, permitted and refused examples.
struct Rule {
    name: String,
    holds: String,
    refused: String,
}

fn rules() -> (Vec<Rule>, Vec<Rule>) {
    let page = fs::read_to_string(path("docs/aql-rules.md")).unwrap();
    let (language, meaning) = page.split_once("## The meaning").unwrap();
    (table(language), table(meaning))
}

fn table(text: &str) -> Vec<Rule> {
    let cells = |line: &str| {
        line.trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| cells(&line.replace("| |", "|  | ")));
    rows.map(|row| Rule {
        name: row[0].trim_matches('`').to_owned(),
        holds: row[1].clone(),
        refused: row.get(2).cloned().unwrap_or_default(),
    })
    .collect()
}

/// The cases of each rule: the file, and whether the query is refused.
type Shown = BTreeMap<String, Vec<(String, bool)>>;

/// Returns the rules that the cases of a folder name.
fn shown(folder: &str, head: &str, is_refused: &dyn Fn(&str) -> bool, out: &mut Shown) {
    let mut files: Vec<PathBuf> = fs::read_dir(path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some()) {
        let text = fs::read_to_string(file).unwrap();
        for case in format!("\n{text}").split(&format!("\n{head} ")).skip(1) {
            let (title, body) = case.split_once('\n').unwrap_or((case, ""));
            let Some((_, names)) = title
                .strip_suffix('}')
                .and_then(|title| title.rsplit_once(" {"))
            else {
                continue;
            };
            let place = format!("{}: {title}", file.file_name().unwrap().to_string_lossy());
            names.split(", ").for_each(|name| {
                out.entry(name.to_owned())
                    .or_default()
                    .push((place.clone(), is_refused(body)))
            });
        }
    }
}

#[test]
fn every_rule_is_shown_by_cases() {
    let mut cases = Shown::new();
    shown(
        "tests/cases/aql",
        "==",
        &|body| !body.contains("\n=>\nnothing"),
        &mut cases,
    );
    shown(
        "tests/cases/rows",
        "===",
        &|body| body.contains("\n---- error"),
        &mut cases,
    );
    shown("tests/cases/rest", "===", &|_| false, &mut cases);
    let (language, meaning) = rules();
    let mut missing = Vec::new();
    for rule in &language {
        let has = |refused| {
            cases
                .get(&rule.name)
                .is_some_and(|cases| cases.iter().any(|(_, r)| *r == refused))
        };
        if !rule.holds.is_empty() && !has(false) {
            missing.push(format!("`{}` by no query that is accepted", rule.name));
        }
        if !rule.refused.is_empty() && !has(true) {
            missing.push(format!("`{}` by no query that is refused", rule.name));
        }
    }
    missing.extend(
        meaning
            .iter()
            .filter(|rule| !cases.contains_key(&rule.name))
            .map(|rule| format!("`{}` by no case", rule.name)),
    );
    let known: BTreeSet<&str> = language
        .iter()
        .chain(&meaning)
        .map(|rule| rule.name.as_str())
        .collect();
    let unknown = cases
        .iter()
        .filter(|(name, _)| !known.contains(name.as_str()));
    missing.extend(unknown.map(|(name, cases)| format!("`{name}` is no rule: {}", cases[0].0)));
    assert!(known.len() > 80, "the page has {} rules", known.len());
    assert!(
        missing.is_empty(),
        "rules that are shown\n{}",
        missing.join("\n")
    );
}

#[test]
fn rows_have_three_hundred_cases_with_reasons() {
    let cases = fs::read_dir(path("tests/cases/rows"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let titles: Vec<String> = cases
        .flat_map(|text| {
            text.lines()
                .filter_map(|l| l.strip_prefix("=== "))
                .filter(|t| !t.starts_with("data "))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(titles.len() >= 300, "{} cases", titles.len());
    let unexplained: Vec<&String> = titles
        .iter()
        .filter(|title| title.split_whitespace().count() < 2)
        .collect();
    assert!(
        unexplained.len() * 10 < titles.len(),
        "titles say why the rows are these: {unexplained:?}"
    );
}
