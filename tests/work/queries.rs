//! Queries: read, checked, planned.

use crate::measure::within_bounds;
use aqlite::aql::{NoLabels, Parameters, QueryOptions, complete, diagnose, format, parse, prepare, print};

pub fn all() {
    let many = |part: &str, between: &str, count: usize| vec![part; count].join(between);
    let queries = [
        ("many columns", format!("SELECT {} FROM EHR e", many("e/ehr_id/value", ", ", 10_000))),
        ("many conditions", format!("SELECT e FROM EHR e WHERE {}", many("e/ehr_id/value = 'x'", " AND ", 8_000))),
        ("conditions inside one another", format!("SELECT e FROM EHR e WHERE {}e/ehr_id/value = 'x'{}", "(".repeat(50_000), ")".repeat(50_000))),
        ("negations inside one another", format!("SELECT e FROM EHR e WHERE {} e/ehr_id/value = 'x'", "NOT ".repeat(50_000))),
        ("a long list", format!("SELECT e FROM EHR e WHERE e/ehr_id/value matches {{{}}}", many("'x'", ", ", 40_000))),
        ("containments inside one another", format!("SELECT e FROM EHR e {}", many("CONTAINS CLUSTER", " ", 10_000))),
        ("many containments", format!("SELECT e FROM EHR e CONTAINS ({})", many("ELEMENT", " AND ", 10_000))),
        ("a long path", format!("SELECT c/{} FROM COMPOSITION c", many("items[at0001]", "/", 10_000))),
        ("a long text", format!("SELECT e FROM EHR e WHERE e/ehr_id/value = '{}'", "x".repeat(200_000))),
        ("a long word", "x".repeat(200_000)),
        ("an expression with repetitions", format!("SELECT o FROM OBSERVATION o[{{/{}/}}]", "(a{1000}){15}".repeat(1_000))),
    ];
    for (what, query) in &queries {
        within_bounds(what, query.len(), || {
            let (ast, _) = parse(query);
            let _ = ast.as_ref().map(print);
            let _ = (format(query), diagnose(query), complete(query, query.len(), &NoLabels));
            let _ = prepare(query, &Parameters::new(), &QueryOptions::default());
        });
    }
}
