//! Tests of lint: each rule, its changes, and queries without warnings.

use super::*;
use crate::{parse, print};

const SMALL: &str = include_str!("../../../../tests/cases/template/small.opt");

fn found(query: &str) -> Vec<LintWarning> {
    let template = Template::parse(SMALL).unwrap();
    let (ast, _) = parse(query);
    lint(query, &ast.unwrap(), &Parameters::new(), &[&template])
}

/// Returns the text with the changes of all warnings.
fn fixed(query: &str) -> String {
    let mut text = query.to_owned();
    for warning in found(query).iter().rev() {
        let fix = warning.diagnostic.fix.as_ref().unwrap();
        text.replace_range(fix.span.start..fix.span.end, &fix.text);
    }
    text
}

const FROM: &str =
    "FROM COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.body_weight.v2]";
const VALUE: &str = "o/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value";

#[test]
fn queries_that_fit_the_template_have_no_warning() {
    for query in [
        format!(
            "SELECT {VALUE}/magnitude {FROM} WHERE {VALUE}/units = 'kg' AND {VALUE}/magnitude > 50"
        ),
        format!("SELECT {VALUE} {FROM} WHERE {VALUE} > 50 AND {VALUE} < 90 OR {VALUE} != 3"),
        format!("SELECT o/name/value {FROM} WHERE o/name/value = 'a' OR o/name/value = 'b'"),
        String::from("SELECT s FROM EHR_STATUS s[openEHR-EHR-EHR_STATUS.generic.v1]"),
        String::from("SELECT x FROM EHR e CONTAINS CLUSTER x[openEHR-EHR-CLUSTER.device.v1]"),
    ] {
        let warnings = found(&query);
        assert!(warnings.is_empty(), "{query}: {warnings:#?}");
    }
}

#[test]
fn each_rule_warns_and_its_change_removes_the_warning() {
    let meant = format!("SELECT {VALUE}/magnitude AS kg {FROM}");
    let cases = [
        (
            ARCHETYPE,
            meant.replace("body_weight", "bodyweight"),
            meant.clone(),
        ),
        (VERSION, meant.replace(".v2", ".v1"), meant.clone()),
        (CODE, meant.replace("at0004", "at0044"), meant.clone()),
        (
            NODE,
            meant.replace("items[at0004]", "items[at0003]"),
            meant.clone(),
        ),
    ];
    for (code, query, expected) in cases {
        let warnings = found(&query);
        let codes: Vec<&str> = warnings.iter().map(|w| w.diagnostic.code).collect();
        assert_eq!(codes, [code], "{query}");
        assert_eq!(fixed(&query), expected, "{query}");
    }
    let conditions = [
        (ATTRIBUTE, "/denominator = 5", "/magnitude = 5"),
        (UNIT, "/units = 'KG'", "/units = 'kg'"),
        (TYPES, "/magnitude = '80'", "/magnitude = 80"),
        (TYPES, "/units = 5", "/units = '5'"),
    ];
    for (code, wrong, right) in conditions {
        let query = format!("SELECT o {FROM} WHERE {VALUE}{wrong}");
        let warnings = found(&query);
        assert_eq!(
            warnings.first().map(|w| w.diagnostic.code),
            Some(code),
            "{query}"
        );
        assert_eq!(
            fixed(&query),
            format!("SELECT o {FROM} WHERE {VALUE}{right}")
        );
    }
}

#[test]
fn pairs_of_conditions_are_compared() {
    let name = "o/name/value";
    let start = "c/context/start_time/value";
    let number = &format!("{VALUE}/magnitude");
    let cases = [
        (
            EXCLUSIVE,
            format!("{number} > 5 AND {number} < 3"),
            format!("{number} > 3 AND {number} < 5"),
        ),
        (
            EXCLUSIVE,
            format!("{name} = 'a' AND {name} = 'b'"),
            format!("{name} matches {{'a', 'b'}}"),
        ),
        (
            EXCLUSIVE,
            format!("{start} > '2024-06-01' AND {start} <= '2024-01-01'"),
            format!("{start} > '2024-01-01' AND {start} <= '2024-06-01'"),
        ),
        (
            ALWAYS,
            format!("{name} != 'a' OR {name} != 'b'"),
            format!("{name} != 'a' AND {name} != 'b'"),
        ),
        (
            ALWAYS,
            format!("{number} > 3 OR {number} < 5"),
            format!("{number} > 3 AND {number} < 5"),
        ),
    ];
    for (code, wrong, right) in cases {
        let query = format!("SELECT o {FROM} WHERE {wrong}");
        let warnings = found(&query);
        let codes: Vec<&str> = warnings.iter().map(|w| w.diagnostic.code).collect();
        assert_eq!(codes, [code], "{query}");
        assert_eq!(fixed(&query), format!("SELECT o {FROM} WHERE {right}"));
        assert!(warnings[0].is_certain);
    }
    for right in [
        format!("{number} > 3 AND {number} < 5"),
        format!("{number} >= 3 AND {number} <= 3"),
        format!("{name} = 'a' AND {start} = 'b'"),
        // Both are the same moment.
        format!("{start} = '2024-06-01T10:00:00Z' AND {start} = '2024-06-01T12:00:00+02:00'"),
        // A short form of a version uid equals the whole.
        "c/uid/value = 'a::b::1' AND c/uid/value = 'a'".to_owned(),
        format!("{number} > 5 OR {number} < 3"),
    ] {
        let query = format!("SELECT o {FROM} WHERE {right}");
        assert!(found(&query).is_empty(), "{query}");
    }
}

#[test]
fn whole_text_compares_with_nothing() {
    let query = "SELECT c FROM COMPOSITION c WHERE c/name = 'Report'";
    let warnings = found(query);
    assert_eq!(warnings[0].diagnostic.code, TYPES);
    assert!(warnings[0].is_certain);
    assert_eq!(
        fixed(query),
        "SELECT c FROM COMPOSITION c WHERE c/name/value = 'Report'"
    );
}

#[test]
fn codes_of_archetypes_do_not_occur_among_those_of_other_terminologies() {
    let order = include_str!("../../../../tests/cases/template/order.opt");
    let lines = order.lines().filter(|line| !line.contains("<code_list>at"));
    let order = lines.collect::<String>().replace(">local<", ">SNOMED-CT<");
    let template = Template::parse(&order).unwrap();
    let code = "a/ism_transition/careflow_step/defining_code";
    for (condition, expected) in [
        ("code_string = 'at0004'", Some(TERM)),
        ("code_string = '73211009'", None),
        ("code_string matches {'73211009', 'at0004'}", Some(TERM)),
        // The terminology has several names.
        ("terminology_id/value = 'http://snomed.info/sct'", None),
    ] {
        let query = format!(
            "SELECT a FROM COMPOSITION c CONTAINS ACTION a[openEHR-EHR-ACTION.service.v1] WHERE {code}/{condition}"
        );
        let ast = parse(&query).0.unwrap();
        let found = lint(&query, &ast, &Parameters::new(), &[&template]);
        let codes: Vec<&str> = found.iter().map(|w| w.diagnostic.code).collect();
        assert_eq!(codes, expected.into_iter().collect::<Vec<_>>(), "{query}");
    }
}

#[test]
fn contrary_asks_for_the_part_that_is_warned_about() {
    let warnings = found(
        "SELECT p/data[at0002]/events[at0003, 'x']/data[at0099]/items FROM COMPOSITION c[openEHR-EHR-COMPOSITION.encounter.v1] CONTAINS OBSERVATION p[openEHR-EHR-OBSERVATION.body_weight.v2, 'y']",
    );
    let contrary: Vec<String> = warnings
        .iter()
        .map(|w| {
            print(&w.contrary)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert!(
        contrary.contains(&String::from("SELECT 1 FROM COMPOSITION [openEHR-EHR-COMPOSITION.encounter.v1] CONTAINS OBSERVATION p[openEHR-EHR-OBSERVATION.body_weight.v2] WHERE EXISTS p/data[at0002]/events[at0003]/data[at0099] LIMIT 1")),
        "{contrary:#?}"
    );
}

#[test]
fn rules_have_codes_in_order() {
    assert!(LINT_RULES.is_sorted_by_key(|rule| rule.code));
}
