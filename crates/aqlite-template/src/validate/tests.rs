//! Tests of the validation of documents.

use super::*;
use aqlite_rm::arbitrary::Generator;

const SAMPLES: [&str; 3] = [
    include_str!("../../../../www/samples/vital_signs.opt"),
    include_str!("../../../../www/samples/laboratory_report.opt"),
    include_str!("../../../../www/samples/problem_list.opt"),
];

#[test]
fn activity_may_permit_any_action() {
    for rule in [
        r"<pattern>openEHR-EHR-ACTION\.x\.v1</pattern>",
        "<list>openEHR-EHR-ACTION.x.v1</list>",
    ] {
        let text = format!(
            r#"<template xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><language><code_string>en</code_string></language>
            <template_id><value>t</value></template_id><concept>t</concept><definition><rm_type_name>ACTIVITY</rm_type_name><node_id>at1</node_id>
            <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>action_archetype_id</rm_attribute_name>
            <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>STRING</rm_type_name><node_id/><item xsi:type="C_STRING">{rule}</item></children>
            </attributes></definition></template>"#
        );
        let template = Template::parse(&text).unwrap();
        for (value, is_valid) in [
            ("/.*/", true),
            ("openEHR-EHR-ACTION.x.v1", true),
            ("openEHR-EHR-ACTION.y.v1", false),
            (".*", false),
        ] {
            let text = format!(
                r#"{{"_type":"ACTIVITY","archetype_node_id":"at1","name":{{"value":"n"}},"action_archetype_id":"{value}"}}"#
            );
            let tree = aqlite_rm::json::read(&text, Cls::ACTIVITY).unwrap();
            let findings = validate(tree.root().unwrap(), &template);
            assert_eq!(
                findings.is_empty(),
                is_valid,
                "{rule} {value}: {findings:?}"
            );
        }
    }
}

#[test]
fn a_boolean_may_have_no_value() {
    for (rule, expected) in [
        ("<true_valid>true</true_valid>", None),
        ("<true_valid>false</true_valid>", Some("false")),
        (
            "<true_valid>false</true_valid><false_valid>false</false_valid>",
            Some("absent: no value is allowed"),
        ),
    ] {
        let text = format!(
            r#"<template xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><language><code_string>en</code_string></language>
            <template_id><value>t</value></template_id><concept>t</concept><definition><rm_type_name>ELEMENT</rm_type_name><node_id>at1</node_id>
            <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name>
            <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_BOOLEAN</rm_type_name><node_id/>
            <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name>
            <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>BOOLEAN</rm_type_name><node_id/><item xsi:type="C_BOOLEAN">{rule}</item></children>
            </attributes></children></attributes></definition></template>"#
        );
        let template = Template::parse(&text).unwrap();
        let text = r#"{"_type":"ELEMENT","archetype_node_id":"at1","name":{"value":"n"},"value":{"_type":"DV_BOOLEAN","value":true}}"#;
        let tree = aqlite_rm::json::read(text, Cls::ELEMENT).unwrap();
        let findings = validate(tree.root().unwrap(), &template);
        let found = findings.first().and_then(|f| f.expected.as_deref());
        assert_eq!(found, expected, "{rule} {findings:?}");
    }
}

#[test]
fn random_documents_do_not_panic() {
    let templates = SAMPLES.map(|text| Template::parse(text).unwrap());
    let mut generator = Generator::new(3);
    for _ in 0..500 {
        let tree = generator.tree();
        for template in &templates {
            validate(tree.root().unwrap(), template);
        }
    }
}

#[test]
fn damaged_template_does_not_panic() {
    for text in SAMPLES {
        for end in (0..text.len())
            .step_by(1999)
            .filter(|i| text.is_char_boundary(*i))
        {
            assert!(Template::parse(&text[..end]).is_err());
            let without = [&text[..end], text.get(end + 40..).unwrap_or_default()].concat();
            let _ = Template::parse(&without);
        }
    }
}
