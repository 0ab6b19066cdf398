//! AQL: a parsed query is printed as the same query, and returns the same rows with and without row
//! templates.
#![no_main]

use aqlite::aql::{
    Budget, NoLabels, Parameters, QueryOptions, Run, complete, diagnose, format, hover, parse,
    prepare, print,
};
use aqlite::document::Batch;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../tests/it/notation.rs"]
mod notation;

thread_local! {
    static BATCH: Batch = notation::Repository::read(include_str!("../seeds/repository.txt")).expect("a repository").batch();
}

fuzz_target!(|text: &str| {
    let (ast, _) = parse(text);
    if let Some(ast) = &ast {
        let printed = print(ast);
        let again = parse(&printed).0.expect("what was printed parses");
        assert_eq!(print(&again), printed);
    }
    let _ = (format(text), diagnose(text));
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0);
    let _ = (
        complete(text, middle, &NoLabels),
        hover(text, middle, &NoLabels),
    );
    if let Ok(plan) = prepare(text, &Parameters::new(), &QueryOptions::default()) {
        BATCH.with(|batch| {
            let rows = |plain: bool| {
                let stop = || false;
                let mut run = Run::new(
                    &plan,
                    "2026-01-02T03:04:05.678Z",
                    Budget {
                        rows: 1000,
                        plain,
                        work: 50_000_000,
                        ..Budget::default()
                    },
                    &stop,
                );
                run.push(batch);
                let result = run.finish().ok()?;
                let mut rows = String::new();
                result.write_rows(&mut rows);
                Some((result.columns, rows))
            };
            if let (Some(plain), Some(fast)) = (rows(true), rows(false)) {
                assert_eq!(plain, fast);
            }
        });
    }
});
