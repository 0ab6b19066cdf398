//! Tests of the parser: trees, diagnostics and limits.

use super::*;

fn ok(text: &str) -> Query {
    let (query, diagnostics) = parse(text);
    query.unwrap_or_else(|| panic!("{text}: {diagnostics:?}"))
}

fn codes(text: &str) -> Vec<&'static str> {
    parse(text).1.iter().map(|d| d.code).collect()
}

#[test]
fn contains_takes_everything_to_its_right() {
    let a = ok(
        "SELECT a FROM EHR e CONTAINS COMPOSITION a CONTAINS OBSERVATION o AND EVALUATION v OR ACTION x",
    );
    let b = ok(
        "SELECT a FROM EHR e CONTAINS (COMPOSITION a CONTAINS ((OBSERVATION o AND EVALUATION v) OR ACTION x))",
    );
    assert_eq!(a, b);
}

#[test]
fn not_binds_tighter_than_and_tighter_than_or() {
    let a = ok("SELECT a FROM EHR a WHERE NOT a/x = 1 AND a/y = 2 OR a/z = 3");
    let b = ok("SELECT a FROM EHR a WHERE ((NOT (a/x = 1)) AND a/y = 2) OR a/z = 3");
    assert_eq!(a, b);
}

#[test]
fn several_errors_are_reported_together() {
    assert_eq!(
        codes("SELECT a/, b/name/ FROM EHR WHERE a/b <> 3 ORDER BY 1 LIMIT x"),
        ["AQL0101", "AQL0101", "AQL0102", "AQL0101", "AQL0101"]
    );
}

#[test]
fn clauses_out_of_order_are_reported_once() {
    assert_eq!(
        codes("SELECT c FROM COMPOSITION c LIMIT 5 ORDER BY c/name/value"),
        ["AQL0105"]
    );
    assert_eq!(codes("FROM EHR e SELECT e"), ["AQL0105"]);
    assert_eq!(codes("FROM EHR e"), ["AQL0101"]);
    assert_eq!(codes(""), ["AQL0101"]);
    assert_eq!(codes("asdf"), ["AQL0101"]);
    assert_eq!(codes("SELECT c"), ["AQL0101"]);
    assert_eq!(codes("SELECT c WHERE c/a = 1"), ["AQL0101"]);
}

#[test]
fn deep_nesting_and_long_texts_are_refused() {
    let deep = |n: usize| {
        format!(
            "SELECT e FROM EHR e WHERE {}e/a = 1{}",
            "(".repeat(n),
            ")".repeat(n)
        )
    };
    assert!(codes(&deep(60)).is_empty());
    assert_eq!(codes(&deep(10_000)), ["AQL0002"]);
    assert_eq!(
        codes(&format!(
            "SELECT e FROM EHR e WHERE {} e/a = 1",
            "NOT ".repeat(10_000)
        )),
        ["AQL0002"]
    );
    assert_eq!(codes(&" ".repeat(TEXT_LIMIT + 1)), ["AQL0001"]);
    let wide = format!(
        "SELECT e FROM EHR e WHERE e/a = 1{}",
        " OR e/a = 1".repeat(20_000)
    );
    assert!(codes(&wide).is_empty());
}

#[test]
fn an_error_names_what_could_stand_there() {
    let (_, diagnostics) = parse("SELECT c/name/value n FROM COMPOSITION c");
    let first = diagnostics.first().map(|d| d.message.as_str());
    assert_eq!(
        first,
        Some("expected `[`, `/`, `AS`, `,` or `FROM`, found `n`")
    );
}
