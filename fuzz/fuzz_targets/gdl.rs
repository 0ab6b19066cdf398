//! Guides, their expressions and their fixtures: any text is read or refused. A guide compiles,
//! runs on data of every kind, and is printed as the same guide. Time and memory stay within a
//! linear bound of the length of the text.
#![no_main]

use aqlite::gdl::suite::Suite;
use aqlite::gdl::{self, CompiledGuide, Options, RunInput, describe, fixture, print, time::Moment};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

#[path = "../../tests/work/measure.rs"]
mod measure;

const VALUES: [&str; 8] = [
    "72.5,kg",
    "3",
    "2|local::at0005|Low|",
    "local::at0004|Yes|",
    "96,100,2",
    "true",
    "2019-08-12T09:18+02:00",
    "a text",
];

/// A guide with the placeholder `STATEMENT` as a predicate, a condition and an action.
const AROUND: &str = include_str!("../seeds/gdl/around.gdl2.json");

/// The guide with which fixtures are run.
static SAMPLE: LazyLock<CompiledGuide> =
    LazyLock::new(|| gdl::parse(AROUND).expect("the sample is a guide").compile());

fuzz_target!(|text: &str| {
    // A guide is read, printed in both syntaxes, and run with and without data: ten passes.
    measure::GUIDES
        .repeated(10)
        .slower(10)
        .check("a guide", text.len(), || {
            if !guide(text) && !suite(text) {
                text.lines()
                    .take(8)
                    .filter(|line| line.len() < 1000)
                    .for_each(statement);
            }
        });
});

fn now() -> Moment {
    Moment::parse("2025-01-01T12:00:00Z", 0).expect("a time")
}

/// Tests the text as a guide. Returns whether it is one.
fn guide(text: &str) -> bool {
    let Ok(guide) = gdl::parse(text) else {
        return false;
    };
    let compiled = guide.compile();
    run(&compiled);
    let _ = compiled.queries_at(now());
    let _ = describe::describe(text, "en", now(), Options::default());
    for printed in [print::json(text), print::odin(text)] {
        let printed = printed.expect("what was read is printed");
        let again = match gdl::parse(&printed) {
            Ok(guide) => guide.compile(),
            // The two syntaxes count levels of nesting differently.
            Err(problems) => {
                assert_eq!(
                    problems.first().map(|p| p.code),
                    Some("GDL0103"),
                    "{printed}"
                );
                return true;
            }
        };
        assert_eq!(again.problems.len(), compiled.problems.len(), "{printed}");
    }
    true
}

/// Runs a guide without data and on values of every kind.
fn run(compiled: &CompiledGuide) {
    let variables = compiled
        .guide()
        .bindings
        .iter()
        .flat_map(|b| &b.elements)
        .map(|e| e.id.clone());
    let input: Vec<_> = variables
        .zip(VALUES.iter().cycle())
        .map(|(variable, value)| (variable, fixture::literal(value)))
        .collect();
    for instances in [
        compiled.instances_of(&[]),
        fixture::instances(compiled, &input),
    ] {
        for options in [
            Options {
                trace: true,
                ..Options::default()
            },
            Options {
                imitates_published_engine: true,
                round_on_store: false,
                ..Options::default()
            },
        ] {
            let _ = compiled.run(&RunInput {
                instances: &instances,
                clock: now().into(),
                language: "en",
                options,
                terminology: None,
            });
        }
    }
}

/// Tests a line as a statement.
fn statement(text: &str) {
    let escaped = text.chars().fold(String::new(), |out, c| match c {
        '"' | '\\' => out + "\\" + c.encode_utf8(&mut [0; 4]),
        c if c < ' ' => out + &format!("\\u{:04x}", u32::from(c)),
        c => out + c.encode_utf8(&mut [0; 4]),
    });
    let guide = gdl::parse(&AROUND.replace("STATEMENT", &escaped))
        .expect("a statement takes no guide away")
        .compile();
    run(&guide);
    let _ = guide.queries_at(now());
}

/// Tests the text as a fixture. Returns whether it is one.
fn suite(text: &str) -> bool {
    let Ok(suite) = Suite::read(text) else {
        return false;
    };
    suite.lint(&SAMPLE);
    for case in &suite.cases {
        let _ = suite.run(case, &SAMPLE, now(), Options::default());
    }
    true
}
