//! Suites `gdl.parse` (every published guide is read and compiled), `gdl.print` (a printed guide is
//! read as the same guide), `gdl.cases` (published fixtures agree), `gdl.strict` (they also agree
//! if no value is invented), `gdl.fired` (by the same rules), `gdl.output` (every result is a valid
//! value of the Reference Model), `gdl.fixtures` (the fixture files are read and give the same
//! verdicts).

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use aqlite::aql::{self, CheckOptions, Parameter, Parameters};
use aqlite::diag::{Diagnostic, Finding};
use aqlite::gdl::output::rm_json;
use aqlite::gdl::suite::Suite;
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, CompiledGuide, Options, Run, RunInput, fixture, print};
use aqlite::rm;
use aqlite::rm::class::Cls;
use aqlite::rm::validate::validate;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

const FOLDERS: [&str; 4] = [
    "gdl/guides",
    "gdl/gdl1",
    "gdl/spec_examples",
    "gdl/engine_unit_guides",
];

/// Returns every guide file with its text. Resources in the same folders are left out.
fn guides(corpus: &Corpus) -> impl Iterator<Item = (String, Result<String, String>)> {
    let files = FOLDERS.iter().flat_map(|folder| corpus.files(folder));
    let texts = files
        .map(|file| (corpus.text(&file), file))
        .map(|(text, file)| (file, text));
    texts.filter(|(_, text)| {
        !text
            .as_ref()
            .is_ok_and(|t| t.contains("\"resourceType\"") && !t.contains("\"definition\""))
    })
}

/// Every guide is read and compiled, and its queries are valid.
pub fn parse(corpus: &Corpus) -> Vec<Case> {
    let cases = guides(corpus).map(|(file, text)| {
        // The unit test guides of the engine have invented paths.
        let is_bound = !file.contains("engine_unit_guides");
        Case::check(file, || {
            compiled(&text?).and_then(|guide| {
                if is_bound {
                    queries_are_sound(&guide)
                } else {
                    Ok(())
                }
            })
        })
    });
    cases.collect()
}

/// Every guide printed as JSON and as ODIN, and each of these printed as the other, is the same
/// guide.
pub fn print(corpus: &Corpus) -> Vec<Case> {
    guides(corpus)
        .map(|(file, text)| Case::check(file, || printed_is_the_same(&text?)))
        .collect()
}

fn printed_is_the_same(text: &str) -> Result<(), String> {
    let text_of = |d: Diagnostic| d.one_line(text);
    let (json, odin) = (
        print::json(text).map_err(text_of)?,
        print::odin(text).map_err(text_of)?,
    );
    let (json_of_odin, odin_of_json) = (
        print::json(&odin).map_err(text_of)?,
        print::odin(&json).map_err(text_of)?,
    );
    let of = |printed: &str| model(printed).map_err(|e| format!("{e}\n{printed}"));
    let expected = (model(text)?, of(&json)?);
    for (name, printed, expected) in [
        ("ODIN", &odin, &expected.0),
        ("JSON of ODIN", &json_of_odin, &expected.1),
        ("ODIN of JSON", &odin_of_json, &expected.1),
    ] {
        let found = of(printed)?;
        if found != *expected {
            return Err(format!(
                "{name} differs {}",
                first_difference(expected, &found)
            ));
        }
    }
    // JSON translates GDL1, so names and version differ, but not the meaning.
    let plain = |model: &str| {
        model
            .replace("\"units\"", "\"unit\"")
            .replace(".units", ".unit")
            .replace("\"0.1\"", "\"2.0\"")
    };
    let (before, after) = (plain(&expected.0), plain(&expected.1));
    if before == after {
        Ok(())
    } else {
        Err(format!(
            "JSON differs {}",
            first_difference(&before, &after)
        ))
    }
}

/// Returns a compiled guide as text, without positions in the file.
fn model(text: &str) -> Result<String, String> {
    let mut model = format!("{:?}", compiled(text)?);
    // The order of a hash table varies.
    while let Some(at) = model.find("term_index: {") {
        let end = model
            .get(at..)
            .and_then(|rest| rest.find('}'))
            .map_or(model.len(), |i| at + i + 1);
        model.replace_range(at..end, "");
    }
    let mut parts = model.split("Span { start: ");
    let first = parts.next().unwrap_or_default().to_owned();
    Ok(parts.fold(first, |out, part| {
        out + part.split_once(" }").map_or("", |(_, rest)| rest)
    }))
}

fn first_difference(a: &str, b: &str) -> String {
    let at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let near = |text: &str| {
        String::from_utf8_lossy(
            &text
                .bytes()
                .skip(at.saturating_sub(60))
                .take(120)
                .collect::<Vec<u8>>(),
        )
        .into_owned()
    };
    format!("at {at}: {} | {}", near(a), near(b))
}

/// Checks that the queries of the bindings can run.
fn queries_are_sound(guide: &CompiledGuide) -> Result<(), String> {
    let parameters = Parameters::from([("ehr_id".to_owned(), Parameter::Text("x".to_owned()))]);
    for query in guide.queries() {
        for text in [&query.aql, &query.population_aql] {
            let (ast, problems) = aql::parse(text);
            let checked = ast
                .ok_or(problems)
                .and_then(|ast| aql::check(&ast, &parameters, &CheckOptions::default()));
            checked.map_err(|problems| {
                format!(
                    "{text}: {}",
                    problems
                        .iter()
                        .map(|p| p.one_line(text))
                        .collect::<Vec<_>>()
                        .join("; ")
                )
            })?;
        }
    }
    Ok(())
}

pub fn compiled(text: &str) -> Result<CompiledGuide, String> {
    let guide = gdl::parse(text).map_err(|problems| {
        problems
            .iter()
            .map(|p| p.one_line(text))
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    Ok(guide.compile())
}

/// Runs the published fixtures with a normative verdict, under the options that imitate the engine
/// of their makers.
pub fn cases(corpus: &Corpus) -> Vec<Case> {
    normative(corpus, &|guide, case, options| {
        no_difference(
            guide,
            case,
            Options {
                imitates_published_engine: true,
                ..options
            },
        )
    })
}

/// Runs the fixtures without invented values, the default of the evaluator.
pub fn strict(corpus: &Corpus) -> Vec<Case> {
    normative(corpus, &no_difference)
}

/// Compares the fired rules with those of the independent verdict, in its order, if there is one.
pub fn fired(corpus: &Corpus) -> Vec<Case> {
    normative(corpus, &|guide, case, options| {
        let expected = case
            .get("oracle")
            .and_then(|o| o.get("fired"))
            .and_then(Value::as_array)
            .ok_or("the verdict names no rules")?;
        let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).collect();
        let (_, fired) = agreement(
            guide,
            case,
            Options {
                imitates_published_engine: true,
                ..options
            },
        )?;
        if fired == expected {
            Ok(())
        } else {
            Err(format!(
                "fired {}, the verdict has {}",
                fired.join(" "),
                expected.join(" ")
            ))
        }
    })
}

fn no_difference(guide: &CompiledGuide, case: &Value, options: Options) -> Result<(), String> {
    let (differences, fired) = agreement(guide, case, options)?;
    if differences.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{}; fired {}",
            differences.join("; "),
            fired.join(" ")
        ))
    }
}

/// A check of one case with its guide.
type Check<'a> = &'a dyn Fn(&CompiledGuide, &Value, Options) -> Result<(), String>;

/// Returns the cases with a normative verdict, each checked under the options of its verdict.
fn normative(corpus: &Corpus, check: Check<'_>) -> Vec<Case> {
    let mut guides: HashMap<String, Result<CompiledGuide, String>> = HashMap::new();
    let cases = corpus.json_lines("gdl/cases.jsonl");
    let checked = cases.iter().map(|case| {
        let id = text_of(case, "id");
        let verdict = case
            .get("oracle")
            .map_or("agree", |o| text_of(o, "verdict"));
        if !matches!(verdict, "agree" | "agree_label" | "agree_unrounded") {
            return Case::skipped(id, format!("no verdict: {verdict}"));
        }
        let file = format!("gdl/{}", text_of(case, "guide"));
        let guide = guides
            .entry(file.clone())
            .or_insert_with(|| corpus.text(&file).and_then(|t| compiled(&t)));
        let options = Options {
            round_on_store: verdict != "agree_unrounded",
            ..Options::default()
        };
        Case::check(id, || {
            check(guide.as_ref().map_err(Clone::clone)?, case, options)
        })
    });
    checked.collect()
}

/// Reads each fixture file: its cases have the same differences as in `gdl.cases`.
pub fn fixtures(corpus: &Corpus) -> Vec<Case> {
    let mut by_file: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for case in corpus.json_lines("gdl/cases.jsonl") {
        by_file
            .entry(format!("gdl/{}", text_of(&case, "fixture")))
            .or_default()
            .push(case);
    }
    let files = corpus.files("gdl/fixtures");
    files
        .into_iter()
        .map(|file| {
            Case::check(file.clone(), || {
                fixture_agrees(corpus, &file, by_file.get(&file).map(Vec::as_slice))
            })
        })
        .collect()
}

fn fixture_agrees(corpus: &Corpus, file: &str, cases: Option<&[Value]>) -> Result<(), String> {
    let text = corpus.text(file)?;
    let suite = Suite::read(&text).map_err(|problem| problem.one_line(&text))?;
    let cases = cases.unwrap_or_default();
    if cases.len() != suite.cases.len() {
        return Err(format!(
            "{} cases instead of {}",
            suite.cases.len(),
            cases.len()
        ));
    }
    for (own, case) in suite.cases.iter().zip(cases) {
        let guide = compiled(&corpus.text(&format!("gdl/{}", text_of(case, "guide")))?)?;
        let now = Moment::parse(text_of(case, "now"), 0).ok_or("`now` is no time")?;
        let found = suite
            .run(own, &guide, now, Options::default())
            .map_err(|exceeded| exceeded.to_string())?;
        let (differences, fired) = agreement(&guide, case, Options::default())?;
        let same = found.differences == differences
            && found
                .run
                .fired
                .iter()
                .map(|r| &**r)
                .eq(fired.iter().map(String::as_str));
        if own.id.trim() != text_of(case, "test").trim() || !same {
            return Err(format!(
                "{}: {:?} instead of {:?}",
                own.id, found.differences, differences
            ));
        }
        suite.lint(&guide);
    }
    Ok(())
}

/// Returns the differences from the expectation of the case, and the rules that fired.
fn agreement(
    guide: &CompiledGuide,
    case: &Value,
    options: Options,
) -> Result<(Vec<String>, Vec<String>), String> {
    let run = run(guide, case, options)?;
    let expected: Vec<(String, String)> = literals(case, "expected");
    Ok((
        fixture::differences(guide, &run, &expected),
        run.fired.iter().map(ToString::to_string).collect(),
    ))
}

pub fn literals(case: &Value, member: &str) -> Vec<(String, String)> {
    let members = case
        .get(member)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    members
        .map(|(code, value)| (code.clone(), text_of(value, "lit").to_owned()))
        .collect()
}

fn run(guide: &CompiledGuide, case: &Value, options: Options) -> Result<Run, String> {
    let input: Vec<_> = literals(case, "input")
        .into_iter()
        .map(|(code, text)| (code, fixture::literal(&text)))
        .collect();
    let instances = fixture::instances(guide, &input);
    let language = text_of(case, "language");
    let language = if language.is_empty() { "en" } else { language };
    let now = Moment::parse(text_of(case, "now"), 0).ok_or("`now` is no time")?;
    guide
        .run(&RunInput {
            instances: &instances,
            clock: now.into(),
            language,
            options,
            terminology: None,
        })
        .map_err(|exceeded| exceeded.to_string())
}

/// Every value that a published fixture yields is valid, whatever its verdict.
pub fn output(corpus: &Corpus) -> Vec<Case> {
    let mut guides: HashMap<String, Result<CompiledGuide, String>> = HashMap::new();
    let mut cases = Vec::new();
    for case in corpus.json_lines("gdl/cases.jsonl") {
        let file = format!("gdl/{}", text_of(&case, "guide"));
        let guide = guides
            .entry(file.clone())
            .or_insert_with(|| corpus.text(&file).and_then(|t| compiled(&t)));
        cases.push(Case::check(text_of(&case, "id"), || {
            let run = run(
                guide.as_ref().map_err(Clone::clone)?,
                &case,
                Options::default(),
            )?;
            run.outputs
                .iter()
                .flat_map(|o| &o.values)
                .try_for_each(|value| {
                    let json = rm_json(&value.value).to_string();
                    let text_of = |f: &[Finding]| {
                        format!(
                            "{}: {json}: {}",
                            value.code,
                            f.iter()
                                .map(Finding::one_line)
                                .collect::<Vec<_>>()
                                .join("; ")
                        )
                    };
                    let tree = rm::json::read(&json, Cls::ANY).map_err(|f| text_of(&f))?;
                    let findings = tree.root().map(validate).unwrap_or_default();
                    if findings.is_empty() {
                        Ok(())
                    } else {
                        Err(text_of(&findings))
                    }
                })
        }));
    }
    cases
}
