//! Tests of the reader of templates of ADL 2.

use super::super::validate;
use super::*;
use aqlite_rm::json;

const SMALL: &str = r#"<operational_template xmlns:xsi="x"><archetype_id rm_publisher="openEHR" rm_package="EHR" rm_class="CLUSTER" release_version="1.2.0"><concept_id>size</concept_id></archetype_id>
<original_language><code_string>en</code_string></original_language>
<definition xsi:type="C_COMPLEX_OBJECT" rm_type_name="CLUSTER" node_id="id1">
<attributes rm_attribute_name="items"><cardinality><is_unique>false</is_unique><interval><lower>1</lower></interval></cardinality>
<children xsi:type="P_C_COMPLEX_OBJECT" rm_type_name="ELEMENT" node_id="id2" occurrences="0..1"><attributes rm_attribute_name="value">
<children rm_type_name="DV_COUNT" node_id="id3"><attributes rm_attribute_name="magnitude"><children xsi:type="C_INTEGER" rm_type_name="Integer"><constraint><lower>1</lower><upper>9</upper></constraint></children></attributes></children>
<children rm_type_name="DV_CODED_TEXT" node_id="id4"><attributes rm_attribute_name="defining_code"><children xsi:type="C_TERMINOLOGY_CODE" rm_type_name="CODE_PHRASE"><constraint>ac1</constraint></children></attributes></children>
</attributes></children></attributes></definition>
<terminology><term_definitions language="en"><items code="id1"><items id="text">Size</items></items></term_definitions><value_sets id="ac1"><members>at1</members><members>at2</members></value_sets></terminology></operational_template>"#;

fn codes(value: &str, template: &Template) -> Vec<&'static str> {
    let text = format!(
        r#"{{"_type":"CLUSTER","archetype_node_id":"openEHR-EHR-CLUSTER.size.v1.2.0","name":{{"value":"Size"}},"items":[{{"_type":"ELEMENT","archetype_node_id":"id2","name":{{"value":"n"}},"value":{value}}}]}}"#
    );
    let tree = json::read(&text, Cls::CLUSTER).unwrap();
    validate(tree.root().unwrap(), template)
        .iter()
        .map(|f| f.code)
        .collect()
}

#[test]
fn supported_definition_constrains_documents() {
    let template = Template::parse_opt2(SMALL).unwrap();
    assert_eq!(
        (
            template.template_id.as_str(),
            template.version.as_str(),
            template.concept.as_str()
        ),
        ("openEHR-EHR-CLUSTER.size.v1.2.0", "1.2.0", "Size")
    );
    assert!(!template.is_opaque, "{:?}", template.warnings);
    let coded = |code: &str| {
        format!(
            r#"{{"_type":"DV_CODED_TEXT","value":"x","defining_code":{{"terminology_id":{{"value":"local"}},"code_string":"{code}"}}}}"#
        )
    };
    assert!(codes(r#"{"_type":"DV_COUNT","magnitude":5}"#, &template).is_empty());
    assert_eq!(
        codes(r#"{"_type":"DV_COUNT","magnitude":10}"#, &template),
        ["TPL0506"]
    );
    assert!(codes(&coded("at2"), &template).is_empty());
    assert_eq!(codes(&coded("at3"), &template), ["TPL0507"]);
    assert_eq!(
        codes(r#"{"_type":"DV_TEXT","value":"x"}"#, &template),
        ["TPL0504"]
    );
}

/// Returns the template with another class of value, its attributes and a tuple of them.
fn with_tuple(class: &str, columns: &[(&str, &str, &[&str])]) -> Template {
    let cells = |kind: &str, cells: &[&str]| {
        let cell = |text: &&str| {
            format!(
                r#"<children xsi:type="{kind}" rm_type_name="x"><constraint>{text}</constraint></children>"#
            )
        };
        cells.iter().map(cell).collect::<String>()
    };
    let attributes: String = columns
        .iter()
        .map(|(name, kind, texts)| {
            format!(
                r#"<attributes rm_attribute_name="{name}">{}</attributes>"#,
                cells(kind, texts)
            )
        })
        .collect();
    let members: String = columns
        .iter()
        .map(|(name, ..)| format!("<members>{name}</members>"))
        .collect();
    let (start, end) = (
        SMALL.find("<children rm_type_name=\"DV_COUNT\"").unwrap(),
        SMALL
            .find("<children rm_type_name=\"DV_CODED_TEXT\"")
            .unwrap(),
    );
    let value = format!(
        r#"<children rm_type_name="{class}" node_id="id9">{attributes}<attribute_tuples>{members}</attribute_tuples></children>"#
    );
    Template::parse_opt2(&format!("{}{value}{}", &SMALL[..start], &SMALL[end..])).unwrap()
}

#[test]
fn quantities_are_read_from_tuples() {
    let rows: [(&str, &str, &[&str]); 3] = [
        (
            "magnitude",
            "P_C_REAL",
            &[
                "<lower>125.0</lower><upper>16000.0</upper>",
                "<lower>0.125</lower><upper>16.0</upper>",
            ],
        ),
        ("units", "P_C_STRING", &["Hz", "kHz"]),
        (
            "precision",
            "P_C_INTEGER",
            &["<lower>0</lower>", "<lower>3</lower>"],
        ),
    ];
    let template = with_tuple("DV_QUANTITY", &rows);
    assert!(!template.is_opaque, "{:?}", template.warnings);
    let sent = |magnitude: &str, units: &str, precision: u8| {
        codes(
            &format!(
                r#"{{"_type":"DV_QUANTITY","magnitude":{magnitude},"units":"{units}","precision":{precision}}}"#
            ),
            &template,
        )
    };
    assert!(sent("500", "Hz", 0).is_empty() && sent("0.500", "kHz", 3).is_empty());
    assert_eq!(
        (
            sent("500", "kHz", 3),
            sent("500", "Hz", 3),
            sent("500", "MHz", 0)
        ),
        (vec!["TPL0506"], vec!["TPL0506"], vec!["TPL0508"])
    );
}

#[test]
fn ordinals_are_read_from_tuples() {
    let rows: [(&str, &str, &[&str]); 2] = [
        (
            "value",
            "P_C_INTEGER",
            &["<lower>0</lower>", "<lower>2</lower>"],
        ),
        ("symbol", "P_C_TERMINOLOGY_CODE", &["at7", "at8"]),
    ];
    let template = with_tuple("DV_ORDINAL", &rows);
    assert!(!template.is_opaque, "{:?}", template.warnings);
    let sent = |value: u8, code: &str| {
        let symbol = format!(
            r#"{{"_type":"DV_CODED_TEXT","value":"x","defining_code":{{"terminology_id":{{"value":"local"}},"code_string":"{code}"}}}}"#
        );
        codes(
            &format!(r#"{{"_type":"DV_ORDINAL","value":{value},"symbol":{symbol}}}"#),
            &template,
        )
    };
    assert!(sent(0, "at7").is_empty() && sent(2, "at8").is_empty());
    assert_eq!(
        (sent(1, "at8"), sent(2, "at7")),
        (vec!["TPL0509"], vec!["TPL0509"])
    );
}

#[test]
fn rows_of_a_tuple_constrain_any_attributes_together() {
    let kinds: [(&str, &str, &[&str]); 3] = [
        (
            "numerator",
            "P_C_REAL",
            &[
                "<lower>0</lower><upper>1</upper>",
                "<lower>0</lower><upper>100</upper>",
            ],
        ),
        (
            "denominator",
            "P_C_REAL",
            &["<lower>1</lower>", "<lower>100</lower>"],
        ),
        (
            "type",
            "P_C_INTEGER",
            &["<lower>1</lower>", "<lower>2</lower>"],
        ),
    ];
    let template = with_tuple("DV_PROPORTION", &kinds);
    assert!(template.warnings.is_empty());
    let sent = |numerator: &str, denominator: &str, kind: u8| {
        let value = format!(
            r#"{{"_type":"DV_PROPORTION","numerator":{numerator},"denominator":{denominator},"type":{kind}}}"#
        );
        codes(&value, &template)
    };
    assert!(sent("0.5", "1", 1).is_empty() && sent("50", "100", 2).is_empty());
    // The finding is that of the nearest row.
    assert_eq!(
        (sent("5", "1", 1), sent("50", "100", 1)),
        (vec!["TPL0506"], vec!["TPL0506"])
    );
    // An example has the values of one row.
    let now = "2026-11-20T09:30:00Z";
    let example = crate::example(&template, crate::ExampleKind::Full, None, now).unwrap();
    let found = validate(example.root().unwrap(), &template);
    assert!(found.is_empty(), "{found:?}");
    // The only row of a tuple constrains each attribute.
    let only: [(&str, &str, &[&str]); 2] = [
        ("numerator", "P_C_REAL", &["<lower>1</lower>"]),
        ("denominator", "P_C_REAL", &["<lower>2</lower>"]),
    ];
    let template = with_tuple("DV_PROPORTION", &only);
    let half = r#"{"_type":"DV_PROPORTION","numerator":1,"denominator":2,"type":0}"#;
    assert!(codes(half, &template).is_empty());
    assert_eq!(
        codes(&half.replace(":2", ":3"), &template),
        ["TPL0506"],
        "{:?}",
        template.warnings
    );
}

#[test]
fn cells_may_have_several_ranges_and_texts() {
    let rows: [(&str, &str, &[&str]); 3] = [
        (
            "magnitude",
            "P_C_REAL",
            &[
                "<lower>1</lower><upper>2</upper></constraint><constraint><lower>8</lower><upper>9</upper>",
                "<lower>5</lower><upper>6</upper>",
            ],
        ),
        (
            "units",
            "P_C_STRING",
            &["kg</constraint><constraint>g", "mg"],
        ),
        ("magnitude_status", "P_C_STRING", &["=", "~"]),
    ];
    let template = with_tuple("DV_QUANTITY", &rows);
    assert!(template.warnings.is_empty());
    let sent = |magnitude: &str, units: &str, status: &str| {
        let value = format!(
            r#"{{"_type":"DV_QUANTITY","magnitude":{magnitude},"units":"{units}","magnitude_status":"{status}"}}"#
        );
        codes(&value, &template)
    };
    for (magnitude, units, status) in [("8.5", "kg", "="), ("1", "g", "="), ("5.5", "mg", "~")] {
        assert!(sent(magnitude, units, status).is_empty(), "{magnitude}");
    }
    assert_eq!(
        [
            sent("5.5", "kg", "="),
            sent("8.5", "mg", "~"),
            sent("5.5", "mg", "="),
            sent("8.5", "t", "=")
        ],
        [["TPL0506"], ["TPL0506"], ["TPL0506"], ["TPL0508"]]
    );
}

#[test]
fn an_example_that_readers_would_refuse_is_an_error() {
    // A CODE_PHRASE is no DATA_VALUE.
    let (start, behind) = SMALL
        .split_once("<children rm_type_name=\"DV_COUNT\"")
        .unwrap();
    let end = behind.find("</attributes></children></attributes></definition>");
    let code = r#"<children xsi:type="C_TERMINOLOGY_CODE" rm_type_name="CODE_PHRASE"><constraint>at1</constraint></children>"#;
    let text = format!("{start}{code}{}", &behind[end.unwrap()..]);
    let template = Template::parse_opt2(&text).unwrap();
    let now = "2026-11-20T09:30:00Z";
    let found = crate::example(&template, crate::ExampleKind::Full, None, now).unwrap_err();
    assert!(!found.is_empty());
}

#[test]
fn columns_of_different_lengths_are_not_checked() {
    let rows: [(&str, &str, &[&str]); 2] = [
        (
            "numerator",
            "P_C_REAL",
            &["<lower>1</lower>", "<lower>3</lower>"],
        ),
        ("denominator", "P_C_REAL", &["<lower>2</lower>"]),
    ];
    let template = with_tuple("DV_PROPORTION", &rows);
    assert!(!template.is_opaque && template.warnings.len() == 1);
    let coded = r#"{"_type":"DV_CODED_TEXT","value":"x","defining_code":{"terminology_id":{"value":"local"},"code_string":"at9"}}"#;
    assert_eq!(
        codes(coded, &template),
        ["TPL0507"],
        "its sibling is checked"
    );
}

#[test]
fn definition_with_a_foreign_class_is_opaque() {
    let text = SMALL.replace(
        "<children rm_type_name=\"DV_COUNT\" node_id=\"id3\">",
        "<children rm_type_name=\"DV_WAVEFORM\" node_id=\"id3\">",
    );
    let template = Template::parse_opt2(&text).unwrap();
    assert!(template.is_opaque && template.warnings.len() == 1);
    assert!(codes(r#"{"_type":"DV_TEXT","value":"x"}"#, &template).is_empty());
}

#[test]
fn text_that_is_not_a_template_is_rejected() {
    for (text, expected) in [
        ("<a/>", "TPL0201"),
        ("<archetype><definition/></archetype>", "TPL0202"),
        ("<archetype>", "TPL0101"),
        (
            "<template><concept/><definition><archetype_id/></definition></template>",
            "TPL0206",
        ),
        ("<template><concept/><definition/></template>", "TPL0202"),
        (
            "<template><definition><archetype_id/></definition></template>",
            "TPL0202",
        ),
        (
            "<archetype><concept/><definition><archetype_id/></definition></archetype>",
            "TPL0202",
        ),
        (
            "<template><concept/><definition><archetype_id/></definition><terminology/></template>",
            "TPL0202",
        ),
    ] {
        assert_eq!(Template::parse_opt2(text).unwrap_err()[0].code, expected);
    }
}

#[test]
fn unreadable_parts_of_constraints_are_reported() {
    let warnings = |from: &str, to: &str| {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from}");
        let template = Template::parse_opt2(&text).unwrap();
        let messages = template.warnings.iter().map(|w| w.message.clone());
        messages.collect::<Vec<_>>()
    };
    assert_eq!(
        warnings(r#"occurrences="0..1""#, r#"occurrences="0..x""#),
        ["the occurrences `0..x` is not understood: it is not checked"]
    );
    let (items, value) = (
        r#"<attributes rm_attribute_name="value">"#,
        r#"<attributes rm_attribute_name="value" cardinality="many; ordered">"#,
    );
    assert_eq!(
        warnings(items, value),
        ["the cardinality `many` is not understood: it is not checked"]
    );
    assert!(warnings(r#"occurrences="0..1""#, r#"occurrences="""#).is_empty());
    assert_eq!(
        warnings(
            r#"rm_attribute_name="magnitude""#,
            r#"rm_attribute_name="value""#
        ),
        ["the attribute `value` is not understood: it is not checked"]
    );
    let dates = "<lower>soon</lower><upper>2026-12-31</upper>";
    let text = SMALL
        .replace("C_INTEGER", "C_DATE")
        .replace("<lower>1</lower><upper>9</upper>", dates);
    let template = Template::parse_opt2(&text).unwrap();
    assert_eq!(
        template.warnings[0].message,
        "the limit `soon` is not understood: it is not checked"
    );
}

#[test]
fn an_excess_is_reported_with_the_ids_of_its_path() {
    let text = SMALL.replacen("0..1", "2000000000..*", 1);
    let template = Template::parse_opt2(&text).unwrap();
    let message = template.excesses()[0].message.as_str();
    assert!(message.starts_with("[id1]/items[id2]: "), "{message}");
}
