//! Suites `gdl.parse` (every published guide is read and compiled), `gdl.cases` (published fixtures agree), `gdl.fixtures` (the
//! fixture files themselves are read and give the same verdicts).

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use aqlite::aql::{self, CheckOptions, Parameter, Parameters};
use aqlite::gdl::fixture;
use aqlite::gdl::suite::Suite;
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, CompiledGuide, Options, RunInput};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

const FOLDERS: [&str; 4] = ["gdl/guides", "gdl/gdl1", "gdl/spec_examples", "gdl/engine_unit_guides"];

/// Every file that is a guide; resources that stand between them are no guides.
pub fn parse(corpus: &Corpus) -> Vec<Case> {
    let files = FOLDERS.iter().flat_map(|folder| corpus.files(folder));
    let cases = files.filter_map(|file| {
        let text = corpus.text(&file);
        let is_resource = text.as_ref().is_ok_and(|t| t.contains("\"resourceType\"") && !t.contains("\"definition\""));
        // The unit guides of the engine are bound to made-up paths.
        let is_bound = !file.contains("engine_unit_guides");
        (!is_resource).then(|| Case::check(file, || compiled(&text?).and_then(|guide| if is_bound { queries_are_sound(&guide) } else { Ok(()) })))
    });
    cases.collect()
}

/// What the bindings ask must be queries that can run.
fn queries_are_sound(guide: &CompiledGuide) -> Result<(), String> {
    let parameters = Parameters::from([("ehr_id".to_owned(), Parameter::Text("x".to_owned()))]);
    for query in guide.queries() {
        for text in [&query.aql, &query.population_aql] {
            let (ast, problems) = aql::parse(text);
            let checked = ast.ok_or(problems).and_then(|ast| aql::check(&ast, &parameters, &CheckOptions::default()));
            checked.map_err(|problems| format!("{text}: {}", problems.iter().map(|p| p.one_line(text)).collect::<Vec<_>>().join("; ")))?;
        }
    }
    Ok(())
}

fn compiled(text: &str) -> Result<CompiledGuide, String> {
    let guide = gdl::parse(text).map_err(|problems| problems.iter().map(|p| p.one_line(text)).collect::<Vec<_>>().join("; "))?;
    Ok(guide.compile())
}

/// The published fixtures whose verdict is normative.
///
/// Rules fired that are not those of the independent verdict are printed. The known ones (`ECOG_performance_status`, whose
/// input labels carry broken line ends): that engine compares the labels of ordinals, here value and code decide.
pub fn cases(corpus: &Corpus) -> Vec<Case> {
    let mut guides: HashMap<String, Result<CompiledGuide, String>> = HashMap::new();
    let (mut other_rules, mut compared) = (Vec::new(), 0);
    let cases: Vec<Case> = corpus
        .json_lines("gdl/cases.jsonl")
        .iter()
        .map(|case| {
            let id = text_of(case, "id");
            let verdict = case.get("oracle").map_or("agree", |o| text_of(o, "verdict"));
            let file = format!("gdl/{}", text_of(case, "guide"));
            if !matches!(verdict, "agree" | "agree_label" | "agree_unrounded") {
                return Case::skipped(id, format!("no verdict: {verdict}"));
            }
            let guide = guides.entry(file.clone()).or_insert_with(|| corpus.text(&file).and_then(|t| compiled(&t)));
            Case::check(id, || {
                let (differences, fired) = run(guide.as_ref().map_err(Clone::clone)?, case, verdict != "agree_unrounded")?;
                if let Some(expected) = case.get("oracle").and_then(|o| o.get("fired")).and_then(Value::as_array) {
                    compared += 1;
                    let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).collect();
                    if expected != fired {
                        other_rules.push(format!("{id}: fired {}, the verdict has {}", fired.join(" "), expected.join(" ")));
                    }
                }
                if differences.is_empty() { Ok(()) } else { Err(format!("{}; fired {}", differences.join("; "), fired.join(" "))) }
            })
        })
        .collect();
    println!("  gdl.cases: the rules fired are those of the independent verdict in {} of {compared} normative cases", compared - other_rules.len());
    other_rules.iter().for_each(|line| println!("    {line}"));
    cases
}

/// Each fixture file, read as it is: the same cases with the same differences as in `gdl.cases`.
pub fn fixtures(corpus: &Corpus) -> Vec<Case> {
    let mut by_file: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for case in corpus.json_lines("gdl/cases.jsonl") {
        by_file.entry(format!("gdl/{}", text_of(&case, "fixture"))).or_default().push(case);
    }
    let files = corpus.files("gdl/fixtures");
    files.into_iter().map(|file| Case::check(file.clone(), || fixture_agrees(corpus, &file, by_file.get(&file).map(Vec::as_slice)))).collect()
}

fn fixture_agrees(corpus: &Corpus, file: &str, cases: Option<&[Value]>) -> Result<(), String> {
    let text = corpus.text(file)?;
    let suite = Suite::read(&text).map_err(|problem| problem.one_line(&text))?;
    let cases = cases.unwrap_or_default();
    if cases.len() != suite.cases.len() {
        return Err(format!("{} cases instead of {}", suite.cases.len(), cases.len()));
    }
    for (own, case) in suite.cases.iter().zip(cases) {
        let guide = compiled(&corpus.text(&format!("gdl/{}", text_of(case, "guide")))?)?;
        let now = Moment::parse(text_of(case, "now"), 0).ok_or("`now` is no time")?;
        let found = suite.run(own, &guide, now, Options::default());
        let (differences, fired) = run(&guide, case, true)?;
        let same = found.differences == differences && found.run.fired.iter().map(|r| &**r).eq(fired.iter().map(String::as_str));
        if own.id.trim() != text_of(case, "test").trim() || !same {
            return Err(format!("{}: {:?} instead of {:?}", own.id, found.differences, differences));
        }
        suite.lint(&guide);
    }
    Ok(())
}

fn run(guide: &CompiledGuide, case: &Value, round_on_store: bool) -> Result<(Vec<String>, Vec<String>), String> {
    let literals = |member: &str| -> Vec<(String, String)> {
        let members = case.get(member).and_then(Value::as_object).into_iter().flatten();
        members.map(|(code, value)| (code.clone(), text_of(value, "lit").to_owned())).collect()
    };
    let input: Vec<_> = literals("input").into_iter().map(|(code, text)| (code, fixture::literal(&text))).collect();
    let instances = fixture::instances(guide, &input);
    let language = text_of(case, "language");
    let input = RunInput {
        instances: &instances,
        now: Moment::parse(text_of(case, "now"), 0).ok_or("`now` is no time")?,
        language: if language.is_empty() { "en" } else { language },
        options: Options { round_on_store, ..Options::default() },
        terminology: None,
    };
    let run = guide.run(&input);
    Ok((fixture::differences(guide, &run, &literals("expected")), run.fired.iter().map(ToString::to_string).collect()))
}
