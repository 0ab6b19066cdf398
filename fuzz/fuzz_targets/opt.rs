//! Operational templates: any text is read or refused, and what is read checks a document.
#![no_main]

use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::rm::tree::Tree;
use aqlite::template::{Template, validate};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Tree> = LazyLock::new(|| json::read(include_str!("../seeds/json/composition.json"), Cls::COMPOSITION).expect("a composition"));

fuzz_target!(|text: &str| {
    if let Ok(template) = Template::parse(text) {
        let _ = template.texts();
        let _ = DOCUMENT.root().map(|root| validate(root, &template));
    }
});
