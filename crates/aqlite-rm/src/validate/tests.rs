//! Tests of the validation, and the authored cases of `tests/cases/rm/validation.txt`.

use super::*;
use crate::json;
use std::fmt::Write;

fn problems(text: &str) -> Vec<String> {
    let tree = json::read(text, Cls::ANY).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    validate(tree.root().unwrap())
        .iter()
        .map(Finding::one_line)
        .collect()
}

#[test]
fn missing_mandatory_attributes_are_reported() {
    assert_eq!(
        problems(
            r#"{"_type":"CLUSTER","archetype_node_id":"at1","name":{"_type":"DV_TEXT"},"items":[]}"#
        ),
        [
            "/items: Attribute items of class CLUSTER does not match existence 1..*; expected 1..*, found no member (RM0201)",
            "/name/value: Attribute value of class DV_TEXT does not match existence 1..1; expected 1..1, found nothing (RM0201)",
        ]
    );
}

#[test]
fn malformed_values_are_reported() {
    for (text, path) in [
        (
            r#"{"_type":"DV_DATE","value":"2021-02-30"}"#,
            "/value: not an ISO 8601 date;",
        ),
        (
            r#"{"_type":"DV_DURATION","value":"1Y"}"#,
            "/value: not an ISO 8601 duration;",
        ),
        (r#"{"_type":"DV_URI","value":"a b"}"#, "/value: not a URI;"),
        (r#"{"_type":"DV_URI","value":"xyz"}"#, "/value: not a URI;"),
        (
            r#"{"_type":"DV_ORDINAL","value":3000000000,"symbol":{"_type":"DV_CODED_TEXT","value":"x","defining_code":{"terminology_id":{"value":"l"},"code_string":"a"}}}"#,
            "/value: not a 32-bit integer;",
        ),
        (
            r#"{"_type":"DV_QUANTITY","magnitude":1.8e400,"units":"1"}"#,
            "/magnitude: not a number within",
        ),
    ] {
        let found = problems(text);
        assert!(
            found.len() == 1 && found[0].starts_with(path) && found[0].ends_with("(RM0110)"),
            "{found:?}"
        );
    }
    assert!(
        problems(r#"{"_type":"DV_URI","value":"ldap://[2001:db8::7]/c=GB?objectClass?one"}"#)
            .is_empty()
    );
    assert!(
        is_base64("QUJD\nREVG\n") && is_base64("QQ==") && !is_base64("Q") && !is_base64("Q=Q=")
    );
}

#[test]
fn errors_and_warnings_have_separate_limits() {
    let warned = r#"{"_type":"DV_MULTIMEDIA","media_type":{"terminology_id":{"value":"IANA_media-types"},"code_string":"x/y"},"size":1}"#;
    let element = |value: &str| {
        format!(
            r#"{{"_type":"ELEMENT","archetype_node_id":"at1","name":{{"value":"n"}},"value":{value}}}"#
        )
    };
    let wrong = element(r#"{"_type":"DV_DATE","value":"x"}"#);
    let items = vec![element(warned); 1_500].join(",") + "," + &vec![wrong; 1_500].join(",");
    let text = format!(
        r#"{{"_type":"ITEM_TREE","archetype_node_id":"at0","name":{{"value":"n"}},"items":[{items}]}}"#
    );
    let tree = json::read(&text, Cls::ITEM_TREE).unwrap();
    let found = validate(tree.root().unwrap());
    let errors = found
        .iter()
        .filter(|f| f.severity == Severity::Error)
        .count();
    assert_eq!((errors, found.len()), (1_000, 2_000));
}

/// Each case is a title, a document, and behind `---` its findings.
#[test]
fn authored_documents_have_their_findings() {
    let text = include_str!("../../../../tests/cases/rm/validation.txt");
    let mut wrong = String::new();
    for case in text.split("\n=== ").skip(1) {
        let (title, body) = case.split_once('\n').unwrap();
        let (document, expected) = body.split_once("---").unwrap();
        let tree = json::read(document, Cls::ANY).unwrap_or_else(|e| panic!("{title}: {e:?}"));
        let findings = validate(tree.root().unwrap());
        let found = findings.iter().map(in_one_line).collect::<Vec<_>>();
        if found.join("\n") != expected.trim() {
            let _ = write!(
                wrong,
                "=== {title}\n{}\n---\n{}\n\n",
                document.trim(),
                found.join("\n")
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn in_one_line(finding: &Finding) -> String {
    let mark = if finding.severity == Severity::Warning {
        " (warning)"
    } else {
        ""
    };
    format!("{}{mark}", finding.one_line())
}
