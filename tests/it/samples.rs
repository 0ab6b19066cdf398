//! The sample data in the engine: the six queries against the truth table, the example queries, the
//! guides.
//!
//! `AQLITE_SAMPLES=10000,100000` sets the numbers of EHRs and compositions. The soak uses it.

use super::property::random::Random;
use aqlite::aql::{
    Budget, LintWarning, Page, Parameters, QueryError, QueryOptions, Run, lint, parse, prepare,
    prepare_tree,
};
use aqlite::document::{Batch, DocRow, EhrRow, LayoutStore, ObjectKind, Texts, pack};
use aqlite::gdl::fixture::{self, literal};
use aqlite::gdl::time::Moment;
use aqlite::gdl::{self, Options, RunInput};
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::samples::{Generator, Q1, Q2, Q3, Q4, Q5, Q6, guides, queries, templates};
use aqlite::template::Template;
use serde_json::Value;
use std::cell::Cell;

fn load(generator: &Generator) -> Batch {
    let read: Vec<Template> = templates()
        .iter()
        .map(|t| Template::parse(t.text).unwrap())
        .collect();
    let known: Texts = read
        .iter()
        .flat_map(Template::texts)
        .map(str::to_owned)
        .collect();
    let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
    for number in 0..generator.ehrs() {
        let sample = generator.ehr(number);
        let row = EhrRow {
            ehr_id: sample.ehr_id,
            system_id: "test".into(),
            time_created: sample.time_created,
            is_queryable: sample.is_queryable,
        };
        let ehr = batch.add_ehr(row);
        for index in generator.compositions_of(number) {
            let sample = generator.composition(index);
            let text = format!(
                r#"{{"_type":"ORIGINAL_VERSION","contribution":{{"id":{{"_type":"HIER_OBJECT_ID","value":"k"}},"namespace":"local","type":"CONTRIBUTION"}},"commit_audit":{{"system_id":"test","committer":{{"_type":"PARTY_SELF"}},"time_committed":{{"value":"2026-01-01T00:00:00Z"}},"change_type":{{"value":"creation","defining_code":{{"terminology_id":{{"value":"openehr"}},"code_string":"249"}}}}}},"uid":{{"value":"{0}::test::1"}},"lifecycle_state":{{"value":"complete","defining_code":{{"terminology_id":{{"value":"openehr"}},"code_string":"532"}}}},"data":{1}}}"#,
                sample.uid, sample.json
            );
            let tree = json::read(&text, Cls::VERSION).unwrap();
            let packed = pack(tree.root().unwrap(), &known, &layouts);
            let row = DocRow {
                kind: ObjectKind::Composition,
                object_id: sample.uid,
                number: 1,
                ordinal: u64::try_from(index).unwrap(),
                latest: true,
                deleted: false,
            };
            batch.add(ehr, row, &packed);
        }
    }
    batch
}

fn rows(batch: &Batch, query: &str, ehr: &str) -> Vec<Vec<Value>> {
    let parameters = Parameters::from([(
        "ehr_id".to_owned(),
        aqlite::aql::Parameter::Text(ehr.to_owned()),
    )]);
    rows_with(batch, query, &parameters)
}

fn rows_with(batch: &Batch, query: &str, parameters: &Parameters) -> Vec<Vec<Value>> {
    let plan = prepare(query, parameters, &QueryOptions::default())
        .unwrap_or_else(|e| panic!("{}", e[0].one_line(query)));
    let go_on = || false;
    let mut run = Run::new(&plan, "2026-01-02T03:04:05.678Z", Budget::default(), &go_on);
    run.push(batch);
    let result = run.finish().unwrap();
    let cell = |cell: aqlite::aql::Cell<&str>| {
        let mut out = String::new();
        cell.write_json(&mut out);
        // Digit for digit, because serde_json reads a fraction of 17 digits as its neighbor.
        out.parse::<f64>()
            .map_or_else(|_| serde_json::from_str(&out).unwrap(), Value::from)
    };
    result
        .rows()
        .map(|row| row.iter().map(cell).collect())
        .collect()
}

/// Returns the codes of the warnings of lint about a query, and whether a row refutes each.
fn lint_of(batch: &Batch, query: &str, parameters: &Parameters) -> Vec<(&'static str, bool)> {
    let read: Vec<Template> = templates()
        .iter()
        .map(|t| Template::parse(t.text).unwrap())
        .collect();
    let read: Vec<&Template> = read.iter().collect();
    let ast = parse(query).0.unwrap();
    let warnings = lint(query, &ast, parameters, &read);
    let is_refuted = |warning: &LintWarning| {
        let plan = prepare_tree(&warning.contrary, parameters, &QueryOptions::default()).unwrap();
        let go_on = || false;
        let mut run = Run::new(&plan, "2026-01-02T03:04:05.678Z", Budget::default(), &go_on);
        run.push(batch);
        !run.finish().unwrap().is_empty()
    };
    let warnings = warnings.iter();
    warnings
        .map(|w| (w.diagnostic.code, is_refuted(w)))
        .collect()
}

#[test]
fn examples_have_no_warning_of_lint() {
    let batch = load(&Generator::new(5, 20, 200));
    let samples = queries();
    let examples = samples.iter().map(|query| query.aql);
    for query in examples.chain([Q1, Q2, Q3, Q4, Q5, Q6]) {
        let found = lint_of(&batch, query, &Parameters::new());
        assert!(found.is_empty(), "{query}: {found:?}");
    }
}

/// Words and values of queries that are exchanged with each other.
fn words(query: &str) -> Vec<(usize, &str)> {
    let is_end = |c: char| "[]/ ,(){}\n".contains(c);
    let mut words = Vec::new();
    let mut start = 0;
    for (at, _) in query.match_indices(is_end).chain([(query.len(), "")]) {
        let word = &query[start..at];
        if word.len() > 2
            && word.starts_with(|c: char| c.is_ascii_lowercase() || "'0123456789".contains(c))
        {
            words.push((start, word));
        }
        start = at + 1;
    }
    words
}

/// Queries with one word exchanged: what a slip of the hand makes of them.
#[test]
fn no_row_refutes_a_warning_about_an_altered_query() {
    let batch = load(&Generator::new(5, 20, 200));
    let samples = queries();
    let mut random = Random::new(7);
    let mut warned = std::collections::BTreeMap::new();
    let all: Vec<&str> = samples.iter().map(|query| query.aql).collect();
    let others: Vec<&str> = all
        .iter()
        .flat_map(|q| words(q))
        .map(|(_, word)| word)
        .collect();
    for _ in 0..1_500 {
        let query = all[random.below(all.len())];
        let words = words(query);
        let (start, word) = words[random.below(words.len())];
        let mut altered = query.to_owned();
        let end = start + word.len();
        match random.below(2) {
            0 => altered.replace_range(start..end, others[random.below(others.len())]),
            _ => altered.replace_range(end - 1..end, "7"),
        }
        let parameters = Parameters::from([(
            String::from("ehr_id"),
            aqlite::aql::Parameter::Text(String::from("x")),
        )]);
        let valid = prepare(&altered, &parameters, &QueryOptions::default()).is_ok();
        let found = match valid {
            true => lint_of(&batch, &altered, &parameters),
            false => Vec::new(),
        };
        for (code, is_refuted) in found {
            assert!(!is_refuted, "{code}: {altered}");
            *warned.entry(code).or_insert(0) += 1;
        }
    }
    assert!(warned.len() > 5, "rules that warned: {warned:?}");
}

#[test]
fn the_memory_of_a_query_is_bounded() {
    let batch = load(&Generator::new(5, 20, 200));
    let go_on = || false;
    let from = "FROM EHR e CONTAINS COMPOSITION c";
    let queries = [
        "c",
        "c/context/start_time/value, COUNT(*)",
        "COUNT(DISTINCT c/context/start_time/value)",
        "DISTINCT c/context/start_time/value",
        "MAX(c/context/start_time/value)",
    ];
    let queries = queries
        .map(|select| format!("SELECT {select} {from}"))
        .into_iter()
        .chain([format!(
            "SELECT c/context/start_time/value {from} ORDER BY c/context/start_time/value"
        )]);
    for query in queries {
        for (plain, bytes) in [
            (false, 2048),
            (true, 2048),
            (false, 1 << 18),
            (true, 1 << 18),
        ] {
            let plan = prepare(&query, &Parameters::new(), &QueryOptions::default()).unwrap();
            let mut run = Run::new(
                &plan,
                "2026-01-02T03:04:05.678Z",
                Budget {
                    plain,
                    bytes,
                    ..Budget::default()
                },
                &go_on,
            );
            run.push(&batch);
            let fits = bytes > 2048 && !query.contains("SELECT c FROM") || query.contains("MAX");
            assert_eq!(
                run.finish().map(drop),
                if fits {
                    Ok(())
                } else {
                    Err(QueryError::TooLarge(bytes))
                },
                "{query}, plain: {plain}"
            );
        }
    }
}

#[test]
fn a_long_condition_can_be_stopped() {
    let batch = load(&Generator::new(5, 600, 6000));
    for condition in [
        "c/context/start_time/value LIKE '*never'",
        "c/context/start_time/value = c/uid/value",
        "LENGTH(c/context/start_time/value) > 1000",
    ] {
        let query =
            format!("SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c WHERE {condition}");
        let plan = prepare(&query, &Parameters::new(), &QueryOptions::default()).unwrap();
        for stop in [true, false] {
            let asked = Cell::new(0);
            let stopped = || {
                asked.set(asked.get() + 1);
                stop
            };
            let mut run = Run::new(
                &plan,
                "2026-01-02T03:04:05.678Z",
                Budget::default(),
                &stopped,
            );
            run.push(&batch);
            assert_eq!(
                run.finish().map(|found| found.len()),
                if stop {
                    Err(QueryError::Stopped)
                } else {
                    Ok(0)
                },
                "{condition}"
            );
            assert!(asked.get() > 0, "{condition}");
        }
    }
}

#[test]
fn the_first_rows_are_the_first_of_all_rows() {
    let batch = load(&Generator::new(5, 200, 2000));
    let go_on = || false;
    let ask = |query: &str, budget: Budget| {
        let plan = prepare(query, &Parameters::new(), &QueryOptions::default()).unwrap();
        let mut run = Run::new(&plan, "2026-01-02T03:04:05.678Z", budget, &go_on);
        run.push(&batch);
        let mut out = String::new();
        run.finish().unwrap().write_rows(&mut out);
        serde_json::from_str::<Vec<Value>>(&out).unwrap()
    };
    let pressure = "OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";
    let systolic = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
    let queries = [
        "SELECT c/context/start_time/value FROM EHR e CONTAINS COMPOSITION c".to_owned(),
        format!(
            "SELECT c/context/start_time/value, {systolic} FROM EHR e CONTAINS COMPOSITION c CONTAINS {pressure} WHERE {systolic} >= 150"
        ),
        format!(
            "SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c CONTAINS ({pressure} AND OBSERVATION p[openEHR-EHR-OBSERVATION.pulse.v2])"
        ),
    ];
    for query in queries {
        let all = ask(&query, Budget::default());
        for limit in [1, 5, 60, 100, 5000] {
            // If a slice has more rows than may be held, the few requested rows are found, too.
            for (slice, rows) in [(1, 6000), (64, limit + 60), (64, limit + 10), (1000, 6000)] {
                let first = ask(
                    &format!("{query} LIMIT {limit} OFFSET 2"),
                    Budget {
                        slice,
                        rows: rows + 2,
                        ..Budget::default()
                    },
                );
                assert!(
                    first.iter().eq(all.iter().skip(2).take(limit)),
                    "{query} LIMIT {limit}, by {slice}"
                );
            }
        }
    }
}

#[test]
fn pages_far_behind_the_first_need_no_more_memory() {
    const PAGE: usize = 150;
    const BYTES: usize = 2 << 20;
    let batch = load(&Generator::new(5, 100, 1000));
    let go_on = || false;
    let ask = |query: &str, page: Option<Page>, budget: Budget| {
        let options = QueryOptions {
            page,
            ..QueryOptions::default()
        };
        let plan = prepare(query, &Parameters::new(), &options).unwrap();
        let mut run = Run::new(&plan, "2026-01-02T03:04:05.678Z", budget, &go_on);
        run.push(&batch);
        let mut out = String::new();
        run.finish().map(|result| {
            result.write_rows(&mut out);
            serde_json::from_str::<Vec<Value>>(&out).unwrap()
        })
    };
    let queries = [
        "SELECT c FROM EHR e CONTAINS COMPOSITION c",
        "SELECT c FROM EHR e CONTAINS COMPOSITION c LIMIT 980 OFFSET 7",
    ];
    for (query, plain) in queries.iter().flat_map(|q| [(q, false), (q, true)]) {
        let budget = Budget {
            plain,
            bytes: BYTES,
            ..Budget::default()
        };
        let all = ask(query, None, Budget::default()).unwrap();
        let whole = ask(query, None, budget).map(|rows| rows.len());
        assert_eq!(whole, Err(QueryError::TooLarge(BYTES)), "{query}");
        let mut found = Vec::new();
        while let Some(rows) = Some(found.len() as u64)
            .map(|offset| Page {
                offset,
                rows: PAGE as u64,
            })
            .map(|page| ask(query, Some(page), budget).unwrap())
            .filter(|rows| !rows.is_empty())
        {
            assert!(rows.len() <= PAGE);
            found.extend(rows);
        }
        assert!(
            found == all,
            "{query}, plain: {plain}: {} rows",
            found.len()
        );
    }
}

#[test]
fn six_questions_have_the_answers_of_the_truth_table() {
    let size = std::env::var("AQLITE_SAMPLES").unwrap_or_else(|_| String::from("1000,10000"));
    let (ehrs, compositions) = size
        .split_once(',')
        .and_then(|(e, c)| Some((e.parse().ok()?, c.parse().ok()?)))
        .expect("EHRs,compositions");
    let generator = Generator::new(5, ehrs, compositions);
    let batch = load(&generator);
    let id = |number: usize| generator.ehr(number).ehr_id;
    let ask = |query: &str, ehr: &str| rows(&batch, query, ehr);
    let number = |value: Option<f64>| value.map_or(Value::Null, Value::from);
    let same = |found: &[Vec<Value>], expected: &[Vec<Value>]| {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!(
                found == expected || (found.is_number() && found.as_f64() == expected.as_f64()),
                "{found} is not {expected}"
            );
        }
    };
    for ehr in 0..generator.ehrs() {
        let latest = generator
            .latest_blood_pressure(ehr)
            .map(|p| vec![p.time.into(), number(p.systolic), number(p.diastolic)]);
        same(&ask(Q1, &id(ehr)), &Vec::from_iter(latest));
        let last: Vec<Vec<Value>> = generator
            .last_20_compositions(ehr)
            .into_iter()
            .map(|(time, template)| vec![time.into(), template.into()])
            .collect();
        same(&ask(Q5, &id(ehr)), &last);
    }
    let high = generator.systolic_from_140().into_iter().map(|p| {
        vec![
            id(p.ehr).into(),
            p.time.into(),
            number(p.systolic),
            number(p.diastolic),
        ]
    });
    same(&ask(Q2, ""), &high.collect::<Vec<_>>());
    same(
        &ask(Q3, ""),
        &[vec![generator.with_body_temperature().into()]],
    );
    let (mean, highest) = generator.mean_and_highest_systolic().unwrap();
    same(&ask(Q4, ""), &[vec![mean.into(), highest.into()]]);
    let both = generator
        .pressure_160_with_pulse_100()
        .into_iter()
        .map(|row| {
            vec![
                id(row.ehr).into(),
                row.time.into(),
                row.systolic.into(),
                row.pulse.into(),
            ]
        });
    same(&ask(Q6, ""), &both.collect::<Vec<_>>());
}

#[test]
fn example_queries_find_something() {
    let generator = Generator::new(1, 100, 2000);
    let batch = load(&generator);
    for sample in queries() {
        let value = |(name, value): &(&str, &str)| {
            (
                (*name).to_owned(),
                aqlite::aql::Parameter::Untyped((*value).to_owned()),
            )
        };
        let parameters: Parameters = sample.parameters.iter().map(value).collect();
        assert!(
            !rows_with(&batch, sample.aql, &parameters).is_empty(),
            "{}",
            sample.title
        );
    }
}

#[test]
fn guides_use_the_latest_values() {
    let [category, score] = guides();
    for (guide, input, expected) in [
        (
            category,
            "gt0003=184,mm[Hg] gt0004=112,mm[Hg]",
            "gt0011=5|local::at0015|Grade 3 hypertension| gt0012=72,mm[Hg]",
        ),
        (
            category,
            "gt0003=142.5,mm[Hg] gt0004=85,mm[Hg]",
            "gt0011=3|local::at0013|Grade 1 hypertension|",
        ),
        (
            category,
            "gt0003=112,mm[Hg] gt0004=70,mm[Hg]",
            "gt0011=0|local::at0010|Optimal|",
        ),
        (category, "gt0003=15,kPa gt0004=10,kPa", ""),
        (
            score,
            "gt0003=22,/min gt0005=95,mm[Hg] gt0007=112,/min gt0009=38.5,Cel",
            "gt0011=2|local::at0102|Clearly off| gt0015=7 gt0016=local::at0112|High|",
        ),
        (
            score,
            "gt0003=14,/min gt0005=125,mm[Hg] gt0007=70,/min gt0009=36.8,Cel",
            "gt0015=0 gt0016=local::at0110|Low|",
        ),
        (
            score,
            "gt0003=7,/min gt0005=125,mm[Hg] gt0007=70,/min gt0009=36.8,Cel",
            "gt0015=3 gt0016=local::at0111|Medium|",
        ),
        (
            score,
            "gt0003=14,/min gt0005=125,mm[Hg] gt0007=70,/min",
            "gt0011=0|local::at0100|In range|",
        ),
    ] {
        let compiled = gdl::parse(guide.text)
            .unwrap_or_else(|e| panic!("{}", e[0].one_line(guide.text)))
            .compile();
        let pairs = |text: &str| -> Vec<(String, String)> {
            text.split(" gt")
                .filter(|p| !p.is_empty())
                .map(|p| p.trim_start_matches("gt").split_once('=').unwrap())
                .map(|(k, v)| (format!("gt{k}"), v.to_owned()))
                .collect()
        };
        let input: Vec<_> = pairs(input)
            .into_iter()
            .map(|(k, v)| (k, literal(&v)))
            .collect();
        let instances = fixture::instances(&compiled, &input);
        let now = Moment::parse("2026-01-01T00:00:00Z", 0).unwrap();
        let run = compiled
            .run(&RunInput {
                instances: &instances,
                clock: now.into(),
                language: "en",
                options: Options::default(),
                terminology: None,
            })
            .unwrap();
        assert_eq!(
            fixture::differences(&compiled, &run, &pairs(expected)),
            Vec::<String>::new(),
            "{}: {expected}",
            guide.id
        );
    }
}
