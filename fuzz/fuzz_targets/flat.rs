//! FLAT and STRUCTURED: any text is read or refused, and a written document is read as the same
//! document, within a linear bound of time and memory.
#![no_main]

use aqlite::rm::json;
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{Template, WebTemplate};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const NOW: &str = "2026-11-20T09:30:00Z";

static TEMPLATES: LazyLock<Vec<(Template, WebTemplate)>> = LazyLock::new(|| {
    let samples = [
        include_str!("../../www/samples/vital_signs.opt"),
        include_str!("../../tests/cases/template/small.opt"),
        include_str!("../../tests/cases/template/named.opt"),
    ];
    let read = |text: &str| Template::parse(text).expect("a template");
    samples
        .into_iter()
        .map(read)
        .map(|t| (WebTemplate::of(&t), t))
        .map(|(w, t)| (t, w))
        .collect()
});

#[path = "../../tests/work/measure.rs"]
mod measure;

fuzz_target!(|text: &str| {
    LazyLock::force(&TEMPLATES);
    // Three templates, two shapes, and for each of two makers four passes behind the first.
    measure::BODIES.repeated(3 * 2 * 9).slower(10).check(
        "a document in a simplified format",
        text.len(),
        || round_trip(text),
    );
});

fn round_trip(text: &str) {
    for (template, web) in TEMPLATES.iter() {
        for shape in [Shape::Flat, Shape::Structured] {
            let Ok(tree) = flat::read(text, shape, template, web, NOW) else {
                continue;
            };
            let Some(root) = tree.root() else { continue };
            for maker in [FlatDialect::Better, FlatDialect::Ehrbase] {
                let written = flat::write(root, shape, template, web, maker)
                    .expect("a composition")
                    .text;
                let again = flat::read(&written, shape, template, web, NOW)
                    .expect("what was written reads");
                let again = again.root().expect("a document");
                let rewritten = flat::write(again, shape, template, web, maker)
                    .expect("a composition")
                    .text;
                let third = flat::read(&rewritten, shape, template, web, NOW)
                    .expect("what was written again reads");
                assert_eq!(
                    third.root().map(json::write),
                    Some(json::write(again)),
                    "{written}"
                );
            }
        }
    }
}
