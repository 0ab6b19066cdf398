//! Tests of the invariants: objects, and the invariants that they violate.

use super::*;
use crate::json;
use crate::validate::validate;

/// Returns the names of the invariants that an object violates.
fn broken(text: &str) -> Vec<String> {
    let tree = json::read(text, Cls::ANY).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let findings = validate(tree.root().unwrap());
    findings
        .iter()
        .filter(|f| f.path.is_empty())
        .filter_map(|f| {
            f.message
                .strip_prefix("Invariant ")?
                .split(' ')
                .next()
                .map(str::to_owned)
        })
        .collect()
}

/// Objects, and the names of the invariants that they violate.
const VIOLATIONS: &[(&str, &str)] = &[
    (
        r#"{"_type":"DV_INTERVAL","lower_unbounded":true,"lower_included":true,"upper_unbounded":true}"#,
        "Lower_included_valid",
    ),
    (
        r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_COUNT","magnitude":200},"upper":{"_type":"DV_COUNT","magnitude":100}}"#,
        "Limits_consistent",
    ),
    (
        r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_DATE","value":"2021"},"upper":{"_type":"DV_DATE","value":"2022-05"}}"#,
        "",
    ),
    (
        r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_DATE","value":"2021"},"upper":{"_type":"DV_DATE","value":"2021-05"}}"#,
        "Limits_comparable",
    ),
    (
        r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_DATE","value":"2021"},"upper":{"_type":"DV_COUNT","magnitude":1}}"#,
        "Limits_comparable",
    ),
    (
        r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_QUANTITY","magnitude":1,"units":"m"},"upper":{"_type":"DV_QUANTITY","magnitude":2,"units":"kg"}}"#,
        "Limits_comparable",
    ),
    (
        r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_QUANTITY","magnitude":1,"units":"m"},"upper":{"_type":"DV_QUANTITY","magnitude":2.0,"units":"m"}}"#,
        "",
    ),
    // A limit beside `unbounded` is none.
    (
        r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_COUNT","magnitude":5},"lower_unbounded":true,"upper":{"_type":"DV_COUNT","magnitude":3}}"#,
        "",
    ),
    (
        r#"{"_type":"DV_INTERVAL","lower":{"_type":"DV_QUANTITY","magnitude":1,"units":"m"},"upper":{"_type":"DV_QUANTITY","magnitude":2,"units":"kg"},"upper_unbounded":true}"#,
        "",
    ),
    (
        r#"{"_type":"DV_COUNT","magnitude":1,"normal_status":{"terminology_id":{"value":"openehr_normal_statuses"},"code_string":"N"},"normal_range":{"lower":{"_type":"DV_COUNT","magnitude":5},"lower_unbounded":true,"upper":{"_type":"DV_COUNT","magnitude":9}}}"#,
        "",
    ),
    (
        r#"{"_type":"DV_COUNT","magnitude":10,"normal_status":{"terminology_id":{"value":"openehr_normal_statuses"},"code_string":"H"},"normal_range":{"lower":{"_type":"DV_COUNT","magnitude":5},"upper":{"_type":"DV_COUNT","magnitude":9},"upper_unbounded":true}}"#,
        "Normal_range_and_status_consistency",
    ),
    (
        r#"{"_type":"REFERENCE_RANGE","range":{"lower_unbounded":true,"lower":{"_type":"DV_COUNT","magnitude":1,"normal_range":{}}}}"#,
        "",
    ),
    (
        r#"{"_type":"DV_QUANTITY","magnitude":1,"units":"m","accuracy":0,"accuracy_is_percent":true}"#,
        "Accuracy_is_percent_validity",
    ),
    (
        r#"{"_type":"DV_QUANTITY","magnitude":1,"units":"m","accuracy":0,"accuracy_is_percent":false}"#,
        "",
    ),
    (
        r#"{"_type":"DV_PROPORTION","numerator":1,"denominator":0,"type":0}"#,
        "Valid_denominator",
    ),
    (
        r#"{"_type":"DV_PROPORTION","numerator":1,"denominator":2,"type":1}"#,
        "Unitary_validity",
    ),
    (
        r#"{"_type":"DV_PROPORTION","numerator":1,"denominator":1.00,"type":1}"#,
        "",
    ),
    (
        r#"{"_type":"DV_PROPORTION","numerator":1,"denominator":99,"type":2}"#,
        "Percent_validity",
    ),
    (
        r#"{"_type":"DV_PROPORTION","numerator":1.5,"denominator":2,"type":3}"#,
        "Is_integral_validity",
    ),
    (
        r#"{"_type":"DV_PROPORTION","numerator":1.5,"denominator":2,"type":0,"precision":0}"#,
        "Precision_validity",
    ),
    (
        r#"{"_type":"DV_PROPORTION","numerator":1,"denominator":2,"type":5}"#,
        "Type_validity",
    ),
    (
        r#"{"_type":"DV_COUNT","magnitude":1,"magnitude_status":"=="}"#,
        "Magnitude_status_valid",
    ),
    (
        r#"{"_type":"DV_COUNT","magnitude":1,"accuracy":101,"accuracy_is_percent":true}"#,
        "Accuracy_validity",
    ),
    (
        r#"{"_type":"DV_COUNT","magnitude":9,"normal_status":{"terminology_id":{"value":"openehr_normal_statuses"},"code_string":"N"},"normal_range":{"upper":{"_type":"DV_COUNT","magnitude":5}}}"#,
        "Normal_range_and_status_consistency",
    ),
    (r#"{"_type":"DV_TEXT","value":""}"#, "Value_valid"),
    (
        r#"{"_type":"DV_EHR_URI","value":"http://x"}"#,
        "Scheme_valid",
    ),
    (r#"{"_type":"DV_EHR_URI","value":"ehr:/x"}"#, ""),
    (r#"{"_type":"DV_MULTIMEDIA","size":1}"#, "Not_empty"),
    (r#"{"_type":"TERM_MAPPING","match":"!"}"#, "Match_valid"),
    (
        r#"{"_type":"ELEMENT","archetype_node_id":"at1"}"#,
        "Inv_null_flavour_indicated",
    ),
    (
        r#"{"_type":"HISTORY","archetype_node_id":"at1"}"#,
        "Events_valid",
    ),
    (r#"{"_type":"PARTY_IDENTIFIED"}"#, "Basic_validity"),
    (r#"{"_type":"PARTY_REF","type":"DOG"}"#, "Type_validity"),
    (
        r#"{"_type":"OBJECT_REF","namespace":"1x"}"#,
        "Namespace_valid",
    ),
    (
        r#"{"_type":"OBJECT_VERSION_ID","value":"a::b"}"#,
        "Version_id_valid",
    ),
    (
        r#"{"_type":"CLUSTER","archetype_node_id":"openEHR-EHR-CLUSTER.a.v1"}"#,
        "Archetyped_valid",
    ),
    (
        r#"{"_type":"CLUSTER","archetype_node_id":"at1","archetype_details":{}}"#,
        "Archetyped_valid",
    ),
    (
        r#"{"_type":"CLUSTER","archetype_node_id":"openEHR-EHR-CLUSTER.a.v1","archetype_details":{"archetype_id":{"value":"openEHR-EHR-CLUSTER.b.v1"}}}"#,
        "Archetype_details_valid",
    ),
    (
        r#"{"_type":"PERSON","uid":{"_type":"OBJECT_VERSION_ID","value":"a::s::2"},"archetype_node_id":"openEHR-DEMOGRAPHIC-PERSON.p.v1","archetype_details":{"archetype_id":{"value":"openEHR-DEMOGRAPHIC-PERSON.p.v1"}},"relationships":[{"source":{"id":{"_type":"HIER_OBJECT_ID","value":"b"}}}]}"#,
        "Relationships_validity",
    ),
    (
        r#"{"_type":"PERSON","uid":{"_type":"OBJECT_VERSION_ID","value":"a::s::2"},"archetype_node_id":"openEHR-DEMOGRAPHIC-PERSON.p.v1","archetype_details":{"archetype_id":{"value":"openEHR-DEMOGRAPHIC-PERSON.p.v1"}},"relationships":[{"source":{"id":{"_type":"HIER_OBJECT_ID","value":"a"}}},{"source":{"id":{"_type":"OBJECT_VERSION_ID","value":"a::s::1"}}},{"source":{"id":{"_type":"GENERIC_ID","value":"b"}}}]}"#,
        "",
    ),
    (
        r#"{"_type":"PERSON","archetype_node_id":"openEHR-DEMOGRAPHIC-PERSON.p.v1","archetype_details":{"archetype_id":{"value":"openEHR-DEMOGRAPHIC-PERSON.p.v1"}},"relationships":[{"source":{"id":{"_type":"HIER_OBJECT_ID","value":"b"}}}]}"#,
        "",
    ),
];

#[test]
fn violated_invariants_are_reported_by_name() {
    for (text, name) in VIOLATIONS {
        assert_eq!(broken(text).join(" "), *name, "{text}");
    }
}
