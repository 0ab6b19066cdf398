//! Canonical JSON: an accepted document is written and read again as the same tree, and validated
//! without a panic.
#![no_main]

use aqlite::rm::class::Cls;
use aqlite::rm::{json, validate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(tree) = json::read(text, Cls::ANY)
        && let Some(root) = tree.root()
    {
        let written = json::write(root);
        let again = json::read(&written, Cls::ANY).expect("what was written reads");
        assert!(again.root().is_some_and(|r| r.same_as(root)), "{written}");
        let _ = validate::validate(root);
    }
});
