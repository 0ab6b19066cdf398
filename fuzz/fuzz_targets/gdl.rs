//! Guides: any text is read or refused, and what is read compiles and runs.
#![no_main]

use aqlite::gdl::{self, Options, RunInput, time::Moment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(guide) = gdl::parse(text) {
        let compiled = guide.compile();
        let now = Moment::parse("2025-01-01T12:00:00Z", 0).expect("a time");
        let instances = compiled.instances_of(&[]);
        let _ = compiled.run(&RunInput { instances: &instances, now, language: "en", options: Options::default(), terminology: None });
    }
});
