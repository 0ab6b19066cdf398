//! Operational templates: any text is read or refused, and every derived artefact is bounded:
//! examples, the web template, the simplified formats, the validation of a document. Time and
//! memory stay within a linear bound of the length of the text.
#![no_main]

use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::rm::tree::Tree;
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{ExampleKind, Template, WebTemplate, example, validate};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

#[path = "../../tests/work/measure.rs"]
mod measure;

const NOW: &str = "2026-11-20T09:30:00Z";
const RESULT: usize = 50_000_000;

static DOCUMENT: LazyLock<Tree> = LazyLock::new(|| {
    json::read(
        include_str!("../seeds/json/composition.json"),
        Cls::COMPOSITION,
    )
    .expect("a composition")
});

fuzz_target!(|text: &str| {
    LazyLock::force(&DOCUMENT);
    measure::EXAMPLES
        .slower(10)
        .check("a template", text.len(), || {
            Template::parse(text).iter().for_each(derive);
            Template::parse_opt2(text).iter().for_each(derive);
        });
});

fn derive(template: &Template) {
    let _ = (template.texts(), template.excesses());
    let _ = DOCUMENT.root().map(|root| validate(root, template));
    let _ = example(template, ExampleKind::Full, None, NOW);
    let web = WebTemplate::of(template);
    let _ = web.to_json_within(template, RESULT);
    let Ok(tree) = example(template, ExampleKind::Minimal, None, NOW) else {
        return;
    };
    let (Some(root), true) = (tree.root(), web.is_complete) else {
        return;
    };
    for shape in [Shape::Flat, Shape::Structured] {
        let Ok(written) = flat::write_within(root, shape, template, &web, FlatDialect::Better, RESULT)
        else {
            continue;
        };
        let _ = flat::read(&written.text, shape, template, &web, NOW);
    }
}
