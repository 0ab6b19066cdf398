//! Guides: time to read one, runs per second, and a run on a whole population.

use crate::clock::{seconds, timed};
use crate::questions::Loaded;
use crate::report;
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, CompiledGuide, Instance, Options, Population, RunInput, fixture};
use aqlite::samples;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// The input of a guide.
struct Fixture {
    guide: usize,
    instances: Vec<Vec<Instance>>,
    now: Moment,
    language: String,
}

/// Reports how fast guides are read and run: the samples, and all published guides if a corpus is
/// given.
pub fn guides(corpus: Option<&Path>) {
    report("guide.parse_30kB", guide_of_30_kb());
    let (guides, fixtures) = sample_fixtures(None);
    report("guide.runs.samples", runs(&guides, &fixtures));
    if corpus.is_some() {
        let (guides, fixtures) = sample_fixtures(corpus);
        report("guide.runs.published", runs(&guides, &fixtures));
    }
}

/// Reports how many EHRs per second each sample guide processes, including its queries. The best of
/// three runs counts.
pub fn population(loaded: &Loaded) {
    for (i, sample) in samples::guides().iter().enumerate() {
        let Ok(guide) = gdl::parse(sample.text).map(|guide| guide.compile()) else {
            continue;
        };
        let rates = (0..3).map(|_| {
            let (time, ehrs) = seconds(|| run_on_all(loaded, &guide).unwrap_or_default());
            ehrs as f64 / time
        });
        report(&format!("population.{i}"), rates.fold(0.0, f64::max));
    }
}

/// Runs a guide on every EHR that has data for it. Returns the number of these EHRs.
fn run_on_all(loaded: &Loaded, guide: &CompiledGuide) -> Option<usize> {
    let now = Moment::parse("2026-01-01T12:00:00Z", 0)?;
    let mut population = Population::new(guide, now, Options::default());
    let queries: Vec<String> = population
        .queries()
        .iter()
        .map(|query| query.population_aql.clone())
        .collect();
    for (i, aql) in queries.iter().enumerate() {
        loaded.each(aql, &mut |at, row| population.add(i, at, row));
    }
    let mut ehrs = 0;
    let like = RunInput {
        instances: &[],
        clock: now.into(),
        language: "en",
        options: Options::default(),
        terminology: None,
    };
    population
        .run(&like, |_, run| {
            std::hint::black_box(run);
            ehrs += 1;
        })
        .ok()?;
    Some(ehrs)
}

fn sample_fixtures(corpus: Option<&Path>) -> (Vec<CompiledGuide>, Vec<Fixture>) {
    let mut guides: Vec<CompiledGuide> = samples::guides()
        .iter()
        .filter_map(|g| gdl::parse(g.text).ok())
        .map(|g| g.compile())
        .collect();
    let mut fixtures: Vec<Fixture> = guides
        .iter()
        .enumerate()
        .filter_map(|(i, guide)| sample_fixture(i, guide))
        .collect();
    if let Some(corpus) = corpus {
        add_cases(corpus, &mut guides, &mut fixtures);
    }
    (guides, fixtures)
}

/// Adds the cases of the corpus, with the guides that they name.
fn add_cases(corpus: &Path, guides: &mut Vec<CompiledGuide>, fixtures: &mut Vec<Fixture>) {
    let mut numbers: HashMap<String, Option<usize>> = HashMap::new();
    let cases = std::fs::read_to_string(corpus.join("gdl/cases.jsonl")).unwrap_or_default();
    for case in cases
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let file = format!("gdl/{}", text_of(&case, "guide"));
        let number = *numbers.entry(file.clone()).or_insert_with(|| {
            let text = std::fs::read_to_string(corpus.join(file)).ok()?;
            guides.push(gdl::parse(&text).ok()?.compile());
            Some(guides.len() - 1)
        });
        fixtures.extend(number.and_then(|i| corpus_fixture(i, guides.get(i)?, &case)));
    }
}

/// Builds a fixture in which every variable of every input has a quantity. Most rules fire or fail
/// on such values.
fn sample_fixture(number: usize, guide: &CompiledGuide) -> Option<Fixture> {
    let elements = guide.guide().bindings.iter().flat_map(|b| &b.elements);
    let input: Vec<_> = elements
        .map(|e| (e.id.clone(), fixture::literal("150,mm[Hg]")))
        .collect();
    let now = Moment::parse("2026-01-01T12:00:00Z", 0)?;
    Some(Fixture {
        guide: number,
        instances: fixture::instances(guide, &input),
        now,
        language: "en".to_owned(),
    })
}

fn corpus_fixture(number: usize, guide: &CompiledGuide, case: &Value) -> Option<Fixture> {
    let members = case.get("input").and_then(Value::as_object)?;
    let input: Vec<_> = members
        .iter()
        .map(|(code, value)| (code.clone(), fixture::literal(text_of(value, "lit"))))
        .collect();
    let now = Moment::parse(text_of(case, "now"), 0)?;
    let language = text_of(case, "language");
    let language = if language.is_empty() { "en" } else { language }.to_owned();
    Some(Fixture {
        guide: number,
        instances: fixture::instances(guide, &input),
        now,
        language,
    })
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the runs per second over all fixtures.
fn runs(guides: &[CompiledGuide], fixtures: &[Fixture]) -> f64 {
    let run = |f: &Fixture| {
        let guide = guides.get(f.guide)?;
        let input = RunInput {
            instances: &f.instances,
            clock: f.now.into(),
            language: &f.language,
            options: Options::default(),
            terminology: None,
        };
        Some(guide.run(&input).ok()?.fired.len())
    };
    let pass = timed(1.0, || fixtures.iter().filter_map(run).sum::<usize>());
    fixtures.len() as f64 * 1000.0 / pass
}

/// Returns the microseconds to read and compile 30 kB of guide, in proportion to the largest
/// sample.
fn guide_of_30_kb() -> f64 {
    let largest = samples::guides()
        .iter()
        .map(|g| g.text)
        .max_by_key(|t| t.len())
        .unwrap_or_default();
    timed(0.5, || {
        gdl::parse(largest).map(|guide| guide.compile()).is_ok()
    }) * 1000.0
        * 30_000.0
        / largest.len() as f64
}
