//! AQL: parser, checker, and the rows of every authored case of `tests/cases/rows`.

use super::case::{Case, read, run};
use super::notation::Repository;
use aqlite::aql::{Parameters, QueryOptions, check, format, parse, prepare};
use wasm_bindgen_test::wasm_bindgen_test;

/// The files of `tests/cases/rows`. `authored_rows_run_in_wasm` of `tests/it` compares the list with
/// the folder.
const ROWS: [&str; 15] = [
    include_str!("../../../cases/rows/columns.txt"),
    include_str!("../../../cases/rows/examples.txt"),
    include_str!("../../../cases/rows/functions.txt"),
    include_str!("../../../cases/rows/logic.txt"),
    include_str!("../../../cases/rows/ordering.txt"),
    include_str!("../../../cases/rows/paths.txt"),
    include_str!("../../../cases/rows/precedence.txt"),
    include_str!("../../../cases/rows/specialisation.txt"),
    include_str!("../../../cases/rows/temporal.txt"),
    include_str!("../../../cases/rows/terminology.txt"),
    include_str!("../../../cases/rows/units.txt"),
    include_str!("../../../cases/rows/values.txt"),
    include_str!("../../../cases/rows/versioned.txt"),
    include_str!("../../../cases/rows/versions.txt"),
    include_str!("../../../cases/rows/whole_numbers.txt"),
];

/// Compares the rows of a case, or the code of its refusal, with the expected ones.
fn differs(case: &Case) -> Option<String> {
    let repository = Repository::read(&case.data).expect("data");
    let options = QueryOptions {
        ehr: case.ehr.as_deref(),
        exact_archetypes: case.exact,
        ..QueryOptions::default()
    };
    if let Some(code) = &case.error {
        let found = prepare(&case.query, &case.parameters, &options).err();
        let is_refused = found.is_some_and(|found| found.iter().any(|d| d.code == code));
        return (!is_refused).then(|| format!("{}: not refused with {code}", case.title));
    }
    let batch = repository.batch();
    let mut found = match run(&case.query, &case.parameters, &options, &[&batch], false) {
        Ok(rows) => rows,
        Err(message) => return Some(format!("{}: {message}", case.title)),
    };
    let mut expected = case.expected.clone();
    if case.unordered {
        found.sort();
        expected.sort();
    }
    (found != expected).then(|| {
        format!(
            "{}\n  expected {expected:#?}\n  found {found:#?}",
            case.title
        )
    })
}

#[wasm_bindgen_test]
fn authored_queries_return_their_rows() {
    let cases: Vec<Case> = ROWS.iter().flat_map(|text| read(text)).collect();
    let with_rows = cases.iter().filter(|case| !case.expected.is_empty());
    assert!(with_rows.count() > 300);
    let wrong: Vec<String> = cases.iter().filter_map(differs).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[wasm_bindgen_test]
fn a_query_is_parsed_checked_and_formatted() {
    let text = "select c/name/value from EHR e contains COMPOSITION c";
    let (tree, problems) = parse(text);
    assert!(problems.is_empty());
    assert!(check(&tree.unwrap(), &Parameters::default(), &Default::default()).is_ok());
    let formatted = format(text).unwrap();
    assert!(formatted.starts_with("SELECT c/name/value"), "{formatted}");
    assert_eq!(format(&formatted).unwrap(), formatted);
}

#[wasm_bindgen_test]
fn a_syntax_error_has_a_position() {
    let (_, problems) = parse("SELECT c FROM");
    assert!(!problems.is_empty());
    assert_eq!(problems[0].span.start, 13);
}

#[wasm_bindgen_test]
fn an_unknown_attribute_is_found_by_the_checker_with_help() {
    let (tree, _) = parse("SELECT o/dta/origin FROM OBSERVATION o");
    let found = check(&tree.unwrap(), &Parameters::default(), &Default::default())
        .err()
        .unwrap();
    assert_eq!(found[0].code, "AQL0203");
    assert_eq!(found[0].help.as_deref(), Some("did you mean `data`?"));
}
