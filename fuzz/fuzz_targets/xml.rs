//! Canonical XML: an accepted document can be written as JSON, and, if XML can represent it, as the
//! same XML again.
#![no_main]

use aqlite::rm::class::Cls;
use aqlite::rm::{json, xml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(tree) = xml::read(text, Cls::COMPOSITION)
        && let Some(root) = tree.root()
    {
        let again =
            json::read(&json::write(root), Cls::COMPOSITION).expect("what was read is written");
        assert!(again.root().is_some_and(|r| r.same_as(root)));
        if let Ok(written) = xml::write(root, "composition") {
            let again = xml::read(&written, Cls::COMPOSITION).expect("what was written reads");
            assert!(again.root().is_some_and(|r| r.same_as(root)), "{written}");
        }
    }
});
