//! Tests of the node whose key an object gets.

use super::*;

const NAMED: &str = include_str!("../../../../../tests/cases/template/named.opt");

/// The template of sections with one archetype id whose names are those of terms.
fn with_terms(first: &str, second: &str) -> (Template, WebTemplate) {
    let mut text = NAMED.to_owned();
    let marker = "<rm_attribute_name>name</rm_attribute_name>";
    for name in [first, second] {
        let named = text.find(marker).unwrap();
        let start = text[..named].rfind("<attributes").unwrap();
        let end = "        </attributes>\n        <archetype_id>";
        let end = named + text[named..].find(end).unwrap() + "        </attributes>".len();
        text.replace_range(start..end, "");
        let term = format!("\"text\">{name}<");
        let place = start + text[start..].find("\"text\">Topic<").unwrap();
        text.replace_range(place..place + "\"text\">Topic<".len(), &term);
    }
    parse_both(&text)
}

/// The template of sections with one archetype id whose names are fixed.
fn with_names(first: &str, second: &str) -> (Template, WebTemplate) {
    let first = NAMED.replace("<list>First</list>", &format!("<list>{first}</list>"));
    parse_both(&first.replace("<list>Second</list>", &format!("<list>{second}</list>")))
}

fn sections(names: &[&str]) -> Tree {
    let section = |name: &&str| {
        json!({ "_type": "SECTION", "archetype_node_id": "openEHR-EHR-SECTION.topic.v1",
            "name": { "_type": "DV_TEXT", "value": name },
            "archetype_details": { "archetype_id": { "value": "openEHR-EHR-SECTION.topic.v1" }, "rm_version": "1.1.0" } })
    };
    let all: Vec<Value> = names.iter().map(section).collect();
    let document = json!({ "_type": "COMPOSITION", "archetype_node_id": "openEHR-EHR-COMPOSITION.report.v1",
        "name": { "_type": "DV_TEXT", "value": "Report" }, "content": all });
    json::read(&document.to_string(), Cls::COMPOSITION).unwrap()
}

fn keys_of(tree: &Tree, (template, web): &(Template, WebTemplate)) -> Vec<String> {
    let root = tree.root().unwrap();
    let written = write(root, Shape::Flat, template, web, FlatDialect::Better).unwrap();
    assert!(!written.text.contains("|raw"), "{}", written.text);
    let all: serde_json::Map<String, Value> = serde_json::from_str(&written.text).unwrap();
    let keys = all.into_iter().filter(|(key, _)| key.contains(':'));
    keys.map(|(key, value)| format!("{key} = {}", value.as_str().unwrap_or_default()))
        .collect()
}

#[test]
fn an_object_gets_the_key_of_the_node_whose_term_is_its_name() {
    let both = with_terms("Sleep", "Sport");
    let found = keys_of(&sections(&["Sport", "Sport"]), &both);
    let expected = [
        "report/sport:0|_type = SECTION",
        "report/sport:1|_type = SECTION",
    ];
    assert_eq!(found, expected);
    // A name that no node has is a runtime name of the first node.
    let found = keys_of(&sections(&["Smoking"]), &both);
    assert!(found.contains(&String::from("report/sleep:0/_name = Smoking")));
}

#[test]
fn a_name_of_the_template_may_end_like_a_number() {
    let expected = ["report/request_3:0|_type = SECTION"];
    for both in [
        with_terms("Request", "Request #3"),
        with_names("Request", "Request #3"),
    ] {
        assert_eq!(keys_of(&sections(&["Request #3"]), &both), expected);
        let found = keys_of(&sections(&["Request #2"]), &both);
        assert_eq!(found, ["report/request:0|_type = SECTION"]);
    }
}

/// A value as the writer writes it at the ELEMENT without a constraint.
fn written_value(value: Value) -> String {
    let (template, web) = unconstrained();
    let tree = read(
        &flat(&json!({ "|raw": value })),
        Shape::Flat,
        &template,
        &web,
        NOW,
    )
    .unwrap();
    let root = tree.root().unwrap();
    let text = write(root, Shape::Flat, &template, &web, FlatDialect::Better)
        .unwrap()
        .text;
    assert!(!text.contains("|raw"), "{text}");
    text
}

#[test]
fn a_value_gets_the_key_of_the_alternative_of_its_class() {
    let text = written_value(json!({ "_type": "DV_EHR_URI", "value": "ehr://a/1" }));
    assert!(
        text.contains("weight/ehr_uri_value\":\"ehr://a/1"),
        "{text}"
    );
    assert!(!text.contains("_type"), "{text}");
}

#[test]
fn an_interval_gets_the_key_of_the_alternative_of_its_limits() {
    let start = SMALL.find("<children xsi:type=\"C_DV_QUANTITY\"").unwrap();
    let end = start + SMALL[start..].find("</children>").unwrap() + "</children>".len();
    let of = |class: &str| {
        format!(
            "<children xsi:type=\"C_COMPLEX_OBJECT\"><rm_type_name>DV_INTERVAL&lt;{class}&gt;</rm_type_name><node_id/></children>"
        )
    };
    let both = of("DV_COUNT") + &of("DV_DATE_TIME");
    let (template, web) = parse_both(&format!("{}{both}{}", &SMALL[..start], &SMALL[end..]));
    for (key, limit) in [
        ("interval_of_count_value", json!(3)),
        ("interval_of_date_time_value", json!("2026-01-31T10:00:00Z")),
    ] {
        let members = json!({ format!("/{key}/lower"): limit, format!("/{key}/upper"): limit });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|findings| panic!("{key}: {findings:?}"));
        let root = tree.root().unwrap();
        let text = write(root, Shape::Flat, &template, &web, FlatDialect::Better)
            .unwrap()
            .text;
        assert!(text.contains(&format!("weight/{key}:0/lower")), "{text}");
    }
}

#[test]
fn a_quantity_gets_the_key_of_the_alternative_with_its_unit() {
    let start = SMALL.find("<children xsi:type=\"C_DV_QUANTITY\"").unwrap();
    let end = start + SMALL[start..].find("</children>").unwrap() + "</children>".len();
    let first = &SMALL[start..end];
    let second = first.replace("<units>kg</units>", "<units>g</units>");
    let (template, web) = parse_both(&format!("{}{second}{}", &SMALL[..end], &SMALL[end..]));
    let members = json!({ "/value2|magnitude": 70, "/value2|unit": "g" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    let root = tree.root().unwrap();
    let text = write(root, Shape::Flat, &template, &web, FlatDialect::Better)
        .unwrap()
        .text;
    assert!(
        text.contains("weight/quantity_value2:0|unit\":\"g"),
        "{text}"
    );
}

#[test]
fn a_participation_gets_the_key_of_the_node_with_its_function() {
    let node = |code: &str| {
        format!(
            r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>PARTICIPATION</rm_type_name>
            <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>0</lower><upper>1</upper></occurrences>
            <node_id/><attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>function</rm_attribute_name>
            <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_CODED_TEXT</rm_type_name>
            <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences>
            <node_id/><attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>defining_code</rm_attribute_name>
            <children xsi:type="C_CODE_PHRASE"><rm_type_name>CODE_PHRASE</rm_type_name><node_id/>
            <terminology_id><value>local</value></terminology_id><code_list>{code}</code_list></children>
            </attributes></children></attributes></children>"#
        )
    };
    let context = format!(
        r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>context</rm_attribute_name>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>EVENT_CONTEXT</rm_type_name>
        <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences><node_id/>
        <attributes xsi:type="C_MULTIPLE_ATTRIBUTE"><rm_attribute_name>participations</rm_attribute_name>
        {}{}</attributes></children></attributes>"#,
        node("at0010"),
        node("at0011")
    );
    let (template, web) =
        parse_both(&SMALL.replacen("<attributes", &format!("{context}<attributes"), 1));
    let key = "encounter/context/participations2";
    let members = json!({ "|magnitude": 70, format!("{key}|name"): "Berg", format!("{key}/function|code"): "at0011",
        format!("{key}/function|value"): "Assistant" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    let root = tree.root().unwrap();
    let text = write(root, Shape::Flat, &template, &web, FlatDialect::Better)
        .unwrap()
        .text;
    for (suffix, value) in [
        ("/function|code", "at0011"),
        ("/function|value", "Assistant"),
        ("|name", "Berg"),
    ] {
        assert!(
            text.contains(&format!("{key}{suffix}\":\"{value}\"")),
            "{text}"
        );
    }
    assert!(!text.contains("|_type") && !text.contains("|raw"), "{text}");
}

/// The template with a text and a code of another terminology as types of value.
fn text_or_code() -> (Template, WebTemplate) {
    let values = r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_TEXT</rm_type_name><node_id/></children>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_CODED_TEXT</rm_type_name><node_id/>
        <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>defining_code</rm_attribute_name>
        <children xsi:type="C_CODE_PHRASE"><rm_type_name>CODE_PHRASE</rm_type_name><node_id/>
        <terminology_id><value>SNOMED-CT</value></terminology_id></children></attributes></children>"#;
    let start = SMALL
        .find(r#"<children xsi:type="C_DV_QUANTITY">"#)
        .unwrap();
    let end = start + SMALL[start..].find("</children>").unwrap() + "</children>".len();
    parse_both(&format!("{}{values}{}", &SMALL[..start], &SMALL[end..]))
}

#[test]
fn a_text_before_a_code_is_sent_without_a_suffix_and_a_code_with_suffixes() {
    let (template, web) = text_or_code();
    let code = json!({ "_type": "CODE_PHRASE", "code_string": "386661006",
        "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "SNOMED-CT" } });
    for (members, key, expected) in [
        (
            json!({ "": "Grippe" }),
            "",
            json!({ "_type": "DV_TEXT", "value": "Grippe" }),
        ),
        (
            json!({ "|other": "Grippe" }),
            "",
            json!({ "_type": "DV_TEXT", "value": "Grippe" }),
        ),
        (
            json!({ "|code": "386661006", "|value": "Fever" }),
            "|code",
            json!({ "_type": "DV_CODED_TEXT", "value": "Fever", "defining_code": code }),
        ),
    ] {
        let members = members.as_object().unwrap().iter();
        let members: Value = members
            .map(|(k, v)| (format!("{AT}{k}"), v.clone()))
            .collect();
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
        let value = "/content/0/data/events/0/data/items/0/value";
        assert_eq!(canonical(&tree).pointer(value), Some(&expected));
        assert_round_trip(&tree, &template, &web);
        let root = tree.root().unwrap();
        let written = write(root, Shape::Flat, &template, &web, FlatDialect::Better).unwrap();
        assert!(
            written.text.contains(&format!("{AT}{key}\"")),
            "{}",
            written.text
        );
    }
}

#[test]
fn a_context_with_a_node_id_is_also_found_by_its_attribute() {
    let context = r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>context</rm_attribute_name>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>EVENT_CONTEXT</rm_type_name><node_id>at0000</node_id></children></attributes>"#;
    let text = SMALL.replacen("<attributes", &format!("{context}<attributes"), 1);
    let (template, web) = parse_both(&text);
    let context = web
        .tree
        .children
        .iter()
        .find(|c| c.class == Cls::EVENT_CONTEXT)
        .unwrap();
    assert_eq!(context.id, "encounter");
    for id in [context.id.as_str(), "context"] {
        let members = json!({ "|magnitude": 70, format!("encounter/{id}/_location"): "Ward 7" });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
        assert_eq!(canonical(&tree)["context"]["location"], "Ward 7", "{id}");
    }
}

#[test]
fn a_constrained_null_flavour_is_also_read_like_an_alternative_of_the_value() {
    let null = r#"<node_id>at0004</node_id><attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>null_flavour</rm_attribute_name>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_CODED_TEXT</rm_type_name><node_id/></children></attributes>"#;
    let (template, web) = parse_both(&SMALL.replace("<node_id>at0004</node_id>", null));
    for id in ["null_flavour", "coded_text_value"] {
        let members = json!({ format!("/{id}|code"): "273" });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{id}: {f:?}"));
        let flavour = "/content/0/data/events/0/data/items/0/null_flavour/value";
        let document = canonical(&tree);
        assert_eq!(document.pointer(flavour), Some(&json!("not applicable")));
    }
}
