//! Random repositories and random queries. The reference, the document walk, the row templates, and
//! several batches in place of one must all return the same rows in the same order.
//!
//! `AQLITE_SEEDS=100..200` selects other seeds, `AQLITE_SEEDS=500` their number. A failure is
//! reduced and printed as data and query for `tests/cases/rows`.

mod data;
mod query;
pub mod random;
mod series;

use super::notation::{Document, Repository};
use super::reference;
use super::rows::{NOW, run_divided, run_plan, traced};
use super::work::measured;
use aqlite::aql::{
    Budget, ExecutionPath, Parameter, QueryError, QueryOptions, check, format, lint, parse,
    prepare, prepare_tree, print,
};
use aqlite::document::{Batch, DocRow, EhrRow, EncodedSegment, Segment, SegmentState, UnionPart};
use query::Draft;
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// The maximum number of failures that are reduced and printed.
const MOST_FAILURES: usize = 6;

/// The maximum units of work for each byte of the data, each row and 40 bytes of the query.
const UNITS: u64 = 100;

/// The number of queries among which every feature must occur.
const ENOUGH: usize = 2_000;

/// The number of repositories for each seed, and of queries for each repository.
const REPOSITORIES: usize = 20;
const QUERIES: usize = 20;

#[test]
fn every_execution_path_returns_the_same_rows() {
    let mut statistics = Statistics::default();
    let mut wrong = Vec::new();
    for seed in seeds() {
        let mut random = Random::new(seed);
        for _ in 0..REPOSITORIES {
            let kind = random.below(6);
            let is_series = kind < 2;
            let text = match kind {
                0 | 1 => series::repository(&mut random),
                2 => data::variations(&mut random),
                _ => data::repository(&mut random),
            };
            for _ in 0..QUERIES {
                let case = Case {
                    data: text.clone(),
                    draft: if is_series {
                        series::draft(&mut random)
                    } else {
                        query::draft(&mut random)
                    },
                    exact: random.one_in(8),
                    ehr: random.one_in(10).then(|| "e1".to_owned()),
                };
                match case.outcome() {
                    Outcome::Agreed(rows, paths) => {
                        statistics.agreed += 1;
                        statistics.with_rows += usize::from(rows > 0);
                        paths
                            .into_iter()
                            .for_each(|path| *statistics.paths.entry(path).or_default() += 1);
                        statistics.features(&case.draft.text());
                    }
                    Outcome::Refused(why) => {
                        statistics.refused += 1;
                        statistics.reason = why;
                    }
                    Outcome::TooMuch => statistics.too_much += 1,
                    Outcome::Differs(how) => {
                        // Shown at once, because the reduction may take minutes.
                        eprintln!("seed {seed}\n{}\n{how}", case.show());
                        let small = case.smaller();
                        let Outcome::Differs(how) = small.outcome() else {
                            panic!("a smaller case differs no more")
                        };
                        wrong.push(format!("seed {seed}\n{}\n{how}", small.show()));
                        assert!(
                            wrong.len() < MOST_FAILURES,
                            "{}\n{statistics:?}",
                            wrong.join("\n\n")
                        );
                    }
                }
            }
        }
    }
    let all = statistics.agreed + statistics.refused + statistics.too_much;
    println!("{statistics:?}");
    assert!(wrong.is_empty(), "{}\n{statistics:?}", wrong.join("\n\n"));
    assert!(
        statistics.agreed * 10 > all * 8,
        "too few of the queries run: {statistics:?}"
    );
    assert!(
        statistics.with_rows * 4 > all,
        "too few of the queries give rows: {statistics:?}"
    );
    let missing: Vec<_> = query::features()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !statistics.features.contains_key(name))
        .collect();
    assert!(
        missing.is_empty() || all < ENOUGH,
        "no query has {missing:?}"
    );
    let untaken: Vec<_> = ExecutionPath::ALL
        .iter()
        .filter(|path| !statistics.paths.contains_key(path))
        .collect();
    assert!(
        untaken.is_empty() || all < ENOUGH,
        "no query that agreed took {untaken:?}: {statistics:?}"
    );
}

/// Returns the seeds of `AQLITE_SEEDS`, or else a few.
fn seeds() -> Range<u64> {
    let Ok(named) = std::env::var("AQLITE_SEEDS") else {
        return 1..6;
    };
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .expect("AQLITE_SEEDS is a number, or two with `..` between")
    };
    named.split_once("..").map_or_else(
        || 1..number(&named) + 1,
        |(from, to)| number(from)..number(to),
    )
}

#[derive(Debug, Default)]
struct Statistics {
    agreed: usize,
    with_rows: usize,
    refused: usize,
    reason: String,
    too_much: usize,
    /// The number of agreeing queries with each feature.
    features: BTreeMap<String, usize>,
    /// The number of agreeing queries that used each execution path.
    paths: BTreeMap<ExecutionPath, usize>,
}

impl Statistics {
    fn features(&mut self, text: &str) {
        query::features()
            .into_iter()
            .filter(|(_, words)| text.contains(words))
            .for_each(|(name, _)| *self.features.entry(name).or_default() += 1);
    }
}

#[derive(Clone)]
struct Case {
    data: String,
    draft: Draft,
    exact: bool,
    ehr: Option<String>,
}

enum Outcome {
    /// The number of rows, and the execution paths that produced them.
    Agreed(usize, BTreeSet<ExecutionPath>),
    Differs(String),
    /// The text is not a valid query.
    Refused(String),
    TooMuch,
}

impl Case {
    fn outcome(&self) -> Outcome {
        let text = self.draft.text();
        let Ok(repository) = Repository::read(&self.data) else {
            return Outcome::Refused("data".to_owned());
        };
        let options = QueryOptions {
            ehr: self.ehr.as_deref(),
            exact_archetypes: self.exact,
            ..QueryOptions::default()
        };
        let parameters = &self.draft.parameters;
        let plan = match prepare(&text, parameters, &options) {
            Ok(plan) => plan,
            Err(problems) => {
                return Outcome::Refused(problems.iter().map(|d| d.one_line(&text)).collect());
            }
        };
        let ast = parse(&text).0.expect("it was prepared");
        let query = check(&ast, parameters, &Default::default()).expect("it was prepared");
        let printed = print(&ast);
        let again = parse(&printed)
            .0
            .and_then(|ast| check(&ast, parameters, &Default::default()).ok());
        if again.as_ref() != Some(&query) || format(&printed).ok().as_ref() != Some(&printed) {
            return Outcome::Differs(format!(
                "printed it is another query, or another text:\n{printed}"
            ));
        }
        let Some(expected) = reference::rows(
            &query,
            &repository,
            &reference::Options {
                ehr: options.ehr,
                exact: self.exact,
                now: NOW,
            },
        ) else {
            return Outcome::TooMuch;
        };
        let batch = repository.batch();
        let whole_ehrs = plan.scan().whole_ehrs;
        let halves = repository.parts(whole_ehrs, 2);
        let halves: Vec<&Batch> = halves.iter().collect();
        let fifths = repository.parts(whole_ehrs, 5);
        let ways = [
            ("plain", vec![&batch], true),
            ("optimised", vec![&batch], false),
            ("plain, two batches", halves.clone(), true),
            ("optimised, two batches", halves.clone(), false),
            ("optimised, five batches", fifths.iter().collect(), false),
        ];
        for warning in lint(&text, &ast, parameters, &[]) {
            let contrary = prepare_tree(&warning.contrary, parameters, &options);
            let contrary = contrary.expect("parts of a valid query are valid");
            match run_plan(&text, &contrary, &[&batch], false) {
                Err(message) if message.contains("more than") => {}
                Ok((found, _)) if found.is_empty() => {}
                other => {
                    let warning = warning.diagnostic.one_line(&text);
                    return Outcome::Differs(format!("{warning}\nrefuted by {other:#?}"));
                }
            }
        }
        let mut taken = BTreeSet::new();
        for (name, batches, plain) in ways {
            match traced(&text, parameters, &options, &batches, plain) {
                Err(message) if message.contains("more than") => return Outcome::TooMuch,
                Ok((found, paths)) if found == expected => taken.extend(paths),
                other => {
                    return Outcome::Differs(format!("reference {expected:#?}\n{name} {other:#?}"));
                }
            }
        }
        if plan.is_divisible() {
            // A part without documents changes nothing.
            let none = Batch::default();
            let (before, behind) = fifths.split_at(fifths.len() / 2);
            let divided: Vec<&Batch> = before.iter().chain([&none]).chain(behind).collect();
            for plain in [true, false] {
                match run_divided(&text, &plan, &divided, plain) {
                    Err(message) if message.contains("more than") => return Outcome::TooMuch,
                    Ok((found, paths)) if found == expected => taken.extend(paths),
                    other => {
                        return Outcome::Differs(format!(
                            "reference {expected:#?}\nmerged parts, plain: {plain} {other:#?}"
                        ));
                    }
                }
            }
        }
        let (scan, ehrs) = (plan.scan(), repository.ehrs.len() as u64);
        let is_joined = scan.whole_ehrs;
        let is_served = !is_joined || !scan.derived && !scan.all_versions;
        if is_served && scan.ehrs.is_none() {
            let segments = segments(&repository);
            for plain in [true, false] {
                // One plan for all attempts, as in a repository: facts that it keeps about absent
                // parts must not matter.
                let answer = |batches: &[Rc<Batch>]| {
                    let union = is_joined.then(|| union(batches, ehrs));
                    let batches = match &union {
                        Some(union) => vec![union],
                        None => batches.iter().map(Rc::as_ref).collect(),
                    };
                    run_plan(&text, &plan, &batches, plain)
                };
                match from_segments(&segments, answer) {
                    Err(message) if message.contains("more than") => return Outcome::TooMuch,
                    Ok((found, paths)) if found == expected => taken.extend(paths),
                    other => {
                        return Outcome::Differs(format!(
                            "reference {expected:#?}\nsegments, plain: {plain} {other:#?}"
                        ));
                    }
                }
            }
        }
        self.within_budgets(&text, &options, &halves, &expected)
            .unwrap_or(Outcome::Agreed(expected.len(), taken))
    }

    /// Checks that any budget of work results in the whole answer or the error, never in a part.
    /// The counted work must be proportional to the data and the rows.
    fn within_budgets(
        &self,
        text: &str,
        options: &QueryOptions<'_>,
        batches: &[&Batch],
        expected: &[String],
    ) -> Option<Outcome> {
        // Pieces of one step each are slow, so only some queries are run that way.
        if !text.len().is_multiple_of(16) {
            return None;
        }
        for plain in [true, false] {
            let budget = Budget {
                plain,
                rows: 20_000,
                slice: 2,
                ..Budget::default()
            };
            let whole = measured(text, &self.draft.parameters, options, batches, budget);
            for (part, piece) in [(1, 40), (3, 500), (7, 5_000), (8, 10_000_000)] {
                let tight = Budget {
                    work: whole.work / 8 * part,
                    piece,
                    ..budget
                };
                match measured(text, &self.draft.parameters, options, batches, tight).rows {
                    Ok(rows) if rows == expected => {}
                    Err(QueryError::TooMuchWork(_)) => {}
                    other => {
                        return Some(Outcome::Differs(format!(
                            "reference {expected:#?}\n{part}/8 of the work, plain: {plain} {other:#?}"
                        )));
                    }
                }
            }
            let input = (self.data.len() * (1 + text.len() / 40)) as u64;
            if whole.work > UNITS * input * (1 + expected.len() as u64) {
                let statistics = format!(
                    "{} units for {} bytes of data, {} rows, plain: {plain}",
                    whole.work,
                    self.data.len(),
                    expected.len()
                );
                return Some(Outcome::Differs(statistics));
            }
        }
        None
    }

    fn show(&self) -> String {
        let mut with = if self.exact {
            "with: exact\n".to_owned()
        } else {
            String::new()
        };
        with += &self
            .ehr
            .as_ref()
            .map(|e| format!("with: ehr {e}\n"))
            .unwrap_or_default();
        with += &self
            .draft
            .parameters
            .iter()
            .map(|(name, value)| format!("with: ${name} = {}\n", json(value)))
            .collect::<String>();
        format!(
            "=== data found\n{}\n=== found\ndata: found\n{with}{}\n---- rows",
            self.data,
            self.draft.text()
        )
    }

    /// Returns the smallest case that still differs, found by removing parts.
    fn smaller(&self) -> Case {
        let mut best = self.clone();
        loop {
            let drafts = best.draft.smaller().into_iter().map(|draft| Case {
                draft,
                ..best.clone()
            });
            let options = [
                Case {
                    exact: false,
                    ..best.clone()
                },
                Case {
                    ehr: None,
                    ..best.clone()
                },
            ]
            .into_iter()
            .filter(|c| (c.exact, &c.ehr) != (best.exact, &best.ehr));
            let data = without_lines(&best.data).into_iter().map(|data| Case {
                data,
                ..best.clone()
            });
            let found = drafts
                .chain(options)
                .chain(data)
                .find(|case| matches!(case.outcome(), Outcome::Differs(_)));
            match found {
                Some(smaller) => best = smaller,
                None => return best,
            }
        }
    }
}

fn json(value: &Parameter) -> serde_json::Value {
    match value {
        Parameter::Null => serde_json::Value::Null,
        Parameter::Boolean(flag) => (*flag).into(),
        Parameter::Number(number) => serde_json::from_str(number).expect("a number"),
        Parameter::Text(text) => text.as_str().into(),
        Parameter::Untyped(text) => serde_json::json!({ "text": text }),
        Parameter::List(values) => values.iter().map(json).collect(),
    }
}

/// Returns the repository as two segments that were written before any document was superseded and while
/// all EHRs were queryable, with their batches in the present state.
fn segments(repository: &Repository) -> Vec<(EncodedSegment, Segment, Rc<Batch>)> {
    let superseded = repository.documents.iter().filter(|d| !d.row.latest);
    let superseded: Vec<u64> = superseded.map(|d| d.row.ordinal).collect();
    let hidden = (0..).zip(&repository.ehrs).filter(|(_, e)| !e.is_queryable);
    let unqueryable: Vec<u64> = hidden.map(|(number, _)| number).collect();
    let state = SegmentState {
        superseded: &superseded,
        unqueryable: &unqueryable,
    };
    let ehrs: Vec<u64> = (0..repository.ehrs.len() as u64).collect();
    let written = Repository {
        ehrs: repository
            .ehrs
            .iter()
            .map(|ehr| EhrRow {
                is_queryable: true,
                ..ehr.clone()
            })
            .collect(),
        documents: repository
            .documents
            .iter()
            .map(|document| Document {
                row: DocRow {
                    latest: true,
                    ..document.row.clone()
                },
                tree: document.tree.clone(),
                ..*document
            })
            .collect(),
    };
    let halves = written.parts(false, 2).into_iter();
    let encoded: Vec<_> = halves.map(|batch| batch.to_segment(&ehrs)).collect();
    // The older one has the greater numbers of tables.
    let segments = encoded.into_iter().zip([1_000, 0]).map(|(encoded, first)| {
        let encoded = encoded.expect("a whole batch");
        let segment = Segment::read(&encoded.head).expect("what was written");
        let segment = segment.with_first_table(first);
        let batch = segment.batch(&state).expect("what was written");
        (encoded, segment, Rc::new(batch))
    });
    segments.collect()
}

/// Unites segments with the EHRs from 0 to `ehrs`.
fn union(batches: &[Rc<Batch>], ehrs: u64) -> Batch {
    let numbers: Vec<u64> = (0..ehrs).collect();
    let part = |batch: &Rc<Batch>| UnionPart {
        batch: Rc::clone(batch),
        ehrs: &numbers,
    };
    let parts: Vec<UnionPart<'_>> = batches.iter().map(part).collect();
    Batch::union(&parts, ehrs).expect("segments that fit")
}

/// Evaluates on segments: loads the missing parts and repeats until none is missing.
fn from_segments<R>(
    segments: &[(EncodedSegment, Segment, Rc<Batch>)],
    answer: impl Fn(&[Rc<Batch>]) -> R,
) -> R {
    let batches: Vec<Rc<Batch>> = segments.iter().map(|(.., b)| Rc::clone(b)).collect();
    loop {
        let answered = answer(&batches);
        let mut is_whole = true;
        for (encoded, segment, batch) in segments {
            for part in batch.wanted() {
                is_whole = false;
                let place = segment.place(part).expect("a part");
                let value = &encoded.values[place.value as usize];
                let bytes = &value[place.start as usize..place.end as usize];
                segment.load(batch, part, bytes).expect("what was written");
            }
        }
        if is_whole {
            return answered;
        }
    }
}

/// Returns variants of the data without one of its lines and the lines below it, or with shorter
/// text.
fn without_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let without = |at: usize| {
        let end = (at + 1..lines.len())
            .find(|i| depth(lines[*i]) <= depth(lines[at]))
            .unwrap_or(lines.len());
        lines[..at]
            .iter()
            .chain(&lines[end..])
            .map(|l| format!("{l}\n"))
            .collect::<String>()
    };
    (0..lines.len())
        .rev()
        .filter(|at| {
            !lines[*at].starts_with("EHR ")
                || lines
                    .get(at + 1)
                    .is_none_or(|next| next.starts_with("EHR "))
        })
        .map(without)
        .collect()
}
