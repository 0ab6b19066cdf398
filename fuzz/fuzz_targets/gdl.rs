//! Guides: any text is read or refused; what is read compiles, runs on data of every kind, and printed it is the same guide.
#![no_main]

use aqlite::gdl::{self, Options, RunInput, describe, fixture, print, time::Moment};
use libfuzzer_sys::fuzz_target;

const VALUES: [&str; 8] = ["72.5,kg", "3", "2|local::at0005|Low|", "local::at0004|Yes|", "96,100,2", "true", "2019-08-12T09:18+02:00", "a text"];

fuzz_target!(|text: &str| {
    let Ok(guide) = gdl::parse(text) else { return };
    let compiled = guide.compile();
    let now = Moment::parse("2025-01-01T12:00:00Z", 0).expect("a time");
    let variables = guide.bindings.iter().flat_map(|b| &b.elements).map(|e| e.id.clone());
    let input: Vec<_> = variables.zip(VALUES.iter().cycle()).map(|(variable, value)| (variable, fixture::literal(value))).collect();
    for instances in [compiled.instances_of(&[]), fixture::instances(&compiled, &input)] {
        let options = Options { trace: true, ..Options::default() };
        let _ = compiled.run(&RunInput { instances: &instances, now, language: "en", options, terminology: None });
    }
    let _ = compiled.queries_at(now);
    let _ = describe::describe(text, "en", now);
    for printed in [print::json(text), print::odin(text)] {
        let printed = printed.expect("what was read is printed");
        let again = match gdl::parse(&printed) {
            Ok(guide) => guide.compile(),
            // The two syntaxes count levels in their own way.
            Err(problems) => return assert_eq!(problems.first().map(|p| p.code), Some("GDL0103"), "{printed}"),
        };
        assert_eq!(again.problems.len(), compiled.problems.len(), "{printed}");
    }
});
