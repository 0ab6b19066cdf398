//! Tests of indexes in names, of defaults of `ctx`, and of the only legal values.

use super::*;

#[test]
fn a_name_with_an_index_is_one_instance_in_structured() {
    let (template, web) = parse_both(SMALL);
    let event = |kilograms: u32| json!([{ "weight": [{ "|magnitude": kilograms }] }]);
    let document = |events: Value| {
        json!({ "ctx": { "territory": "SE", "composer_self": true },
            "encounter": { "body_weight": [events] } })
        .to_string()
    };
    let events = json!({ "events_at0003:0": event(70), "events_at0003:1": event(71) });
    let tree = read(&document(events), Shape::Structured, &template, &web, NOW).unwrap();
    let found = canonical(&tree)["content"][0]["data"]["events"].take();
    let weight = |at: usize| found[at]["data"]["items"][0]["value"]["magnitude"].clone();
    assert_eq!((weight(0), weight(1)), (json!(70), json!(71)));
    let several = json!({ "events_at0003:1": [{}, { "weight": [{ "|magnitude": 1 }] }] });
    let found = findings_of(&document(several), Shape::Structured, &template, &web);
    assert_eq!(
        found,
        [(
            "FLT0105",
            String::from("encounter/body_weight/events_at0003:1")
        )]
    );
}

#[test]
fn identifiers_of_a_participation_may_be_spelt_as_in_flat_in_structured() {
    let (template, web) = parse_both(SMALL);
    let text = json!({ "ctx": { "territory": "SE", "composer_self": true, "participation_name:1": "Berg",
            "participation_identifiers:1|issuer:0": "ward", "participation_identifiers:1|id:0": "7" },
        "encounter": { "body_weight": [{ "events_at0003": [{ "weight": [{ "|magnitude": 70 }] }] }] } });
    let tree = read(&text.to_string(), Shape::Structured, &template, &web, NOW).unwrap();
    let performer = canonical(&tree)["context"]["participations"][0]["performer"].take();
    let expected = json!([{ "_type": "DV_IDENTIFIER", "issuer": "ward", "id": "7" }]);
    assert_eq!(performer["identifiers"], expected);
}

#[test]
fn a_composer_with_an_id_may_be_the_subject() {
    let (template, web) = parse_both(SMALL);
    let members = json!({ "|magnitude": 70, "encounter/composer|id": "7", "encounter/composer|id_scheme": "s",
        "encounter/composer|id_namespace": "n" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    let expected = json!({ "_type": "PARTY_SELF", "external_ref": { "_type": "PARTY_REF", "namespace": "n", "type": "PARTY",
        "id": { "_type": "GENERIC_ID", "value": "7", "scheme": "s" } } });
    assert_eq!(canonical(&tree)["composer"], expected);
    assert_round_trip(&tree, &template, &web);
    // A party with a name is not the subject.
    let members = json!({ "|magnitude": 70, "encounter/composer|name": "Berg" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    assert_eq!(canonical(&tree)["composer"]["_type"], "PARTY_IDENTIFIED");
}

#[test]
fn references_of_an_entry_take_scheme_and_namespace_of_the_context() {
    let (template, web) = parse_both(SMALL);
    let own = json!({ "|magnitude": 70, "ctx/work_flow_id|id": "7", "encounter/body_weight/_guideline_id|id": "8" });
    let mut members = own.clone();
    members["ctx/id_scheme"] = json!("s");
    members["ctx/id_namespace"] = json!("n");
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    let entry = canonical(&tree)["content"][0].take();
    for (attribute, id) in [("workflow_id", "7"), ("guideline_id", "8")] {
        let expected = json!({ "_type": "OBJECT_REF", "namespace": "n", "type": "ANY",
            "id": { "_type": "GENERIC_ID", "value": id, "scheme": "s" } });
        assert_eq!(entry[attribute], expected);
    }
    let found = findings_of(&flat(&own), Shape::Flat, &template, &web);
    let missing = ["ctx/work_flow_id", "encounter/body_weight/_guideline_id"];
    for key in missing {
        assert!(found.contains(&("FLT0108", key.to_owned())), "{found:?}");
    }
}

#[test]
fn flags_of_a_reference_range_that_no_reader_assumes_are_written() {
    let (template, web) = parse_both(SMALL);
    let members = json!({ "|magnitude": 70, "/_normal_range/lower|magnitude": 40,
        "/_normal_range/lower|unit": "kg" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    let root = tree.root().unwrap();
    for dialect in [FlatDialect::Better, FlatDialect::Ehrbase] {
        let text = write(root, Shape::Flat, &template, &web, dialect)
            .unwrap()
            .text;
        assert!(
            text.contains("_normal_range|upper_unbounded\":true"),
            "{text}"
        );
        assert!(
            text.contains("_normal_range|upper_included\":false"),
            "{text}"
        );
        assert!(!text.contains("_normal_range|lower_"), "{text}");
    }
}

#[test]
fn the_only_state_of_a_transition_is_completed() {
    let order = include_str!("../../../../../tests/cases/template/order.opt");
    let (template, web) = parse_both(order);
    let mut only = web.clone();
    let of = |web: &mut WebNode| {
        let mut kids = web.children.iter_mut();
        let action = kids.find(|kid| kid.id == "service").unwrap();
        let mut kids = action.children.iter_mut();
        kids.find(|kid| kid.id == "ism_transition")
            .unwrap()
            .transitions
            .truncate(1);
    };
    of(&mut only.tree);
    let text =
        json!({ "ctx/territory": "SE", "ctx/composer_self": true, "report/service:0/time": NOW });
    let state = |web: &WebTemplate| {
        let tree = read(&text.to_string(), Shape::Flat, &template, web, NOW).unwrap();
        canonical(&tree)["content"][0]["ism_transition"]["current_state"]["value"].clone()
    };
    assert_eq!(state(&web), "completed");
    assert_eq!(state(&only), "planned");
}

#[test]
fn the_only_code_of_a_mandatory_careflow_step_is_completed() {
    let order = include_str!("../../../../../tests/cases/template/order.opt");
    let name = "<rm_attribute_name>careflow_step</rm_attribute_name>";
    let with_existence = |lower: u8| {
        let mut parts = order.split(name);
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |text, part| {
            let (existence, part) = part.split_once("</existence>").unwrap();
            let existence = existence.replace("<lower>0<", &format!("<lower>{lower}<"));
            format!("{text}{name}{existence}</existence>{part}")
        })
    };
    let text =
        json!({ "ctx/territory": "SE", "ctx/composer_self": true, "report/service:0/time": NOW });
    let step = |lower: u8, alternatives: usize| {
        let (template, mut web) = parse_both(&with_existence(lower));
        let action = web.tree.children.iter_mut();
        let action = action.into_iter().find(|kid| kid.id == "service").unwrap();
        let mut kids = action.children.iter_mut();
        let transition = kids.find(|kid| kid.id == "ism_transition").unwrap();
        transition.transitions.truncate(alternatives);
        let tree = read(&text.to_string(), Shape::Flat, &template, &web, NOW).unwrap();
        let step = canonical(&tree)["content"][0]["ism_transition"]["careflow_step"].take();
        step["defining_code"]["code_string"].clone()
    };
    assert_eq!(step(1, 1), "at0004");
    // The step of the state, which is 532 by default.
    assert_eq!(step(1, 3), "at0006");
    assert_eq!(step(1, 2), Value::Null);
    assert_eq!(step(0, 3), Value::Null);
}

/// The template with one event, an INTERVAL_EVENT with a fixed width.
fn with_width() -> String {
    let width = r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>width</rm_attribute_name>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_DURATION</rm_type_name><node_id/>
        <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name>
        <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>DURATION</rm_type_name><node_id/>
        <item xsi:type="C_DURATION"><range><lower_included>true</lower_included><upper_included>true</upper_included>
        <lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>PT1H</lower><upper>PT1H</upper>
        </range></item></children></attributes></children></attributes>"#;
    let text = SMALL.replace("POINT_EVENT", "INTERVAL_EVENT");
    let id = "<node_id>at0003</node_id>";
    let text = text.replace(id, &format!("{id}{width}"));
    let event = text.find("INTERVAL_EVENT").unwrap();
    let open = "<upper_unbounded>true</upper_unbounded><lower>1</lower>";
    let once = "<upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper>";
    let (front, behind) = text.split_at(event);
    format!("{front}{}", behind.replacen(open, once, 1))
}

#[test]
fn the_only_width_of_an_event_is_completed() {
    for (text, key) in [
        (with_width(), "encounter/body_weight/weight"),
        (
            with_width().replacen(
                "<upper>1</upper></occurrences>\n                <node_id>at0003",
                "<upper>3</upper></occurrences>\n                <node_id>at0003",
                1,
            ),
            AT,
        ),
    ] {
        let (template, web) = parse_both(&text);
        let members = json!({ format!("{key}|magnitude"): 70 });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{key}: {f:?}"));
        let event = canonical(&tree)["content"][0]["data"]["events"][0].take();
        assert_eq!(event["width"]["value"], "PT1H", "{key}");
    }
}

#[test]
fn an_event_with_an_attribute_of_an_interval_is_one() {
    let text = SMALL.replace("POINT_EVENT", "EVENT");
    let (template, web) = parse_both(&text);
    let event = AT.trim_end_matches("/weight");
    for (key, value, class) in [
        ("/width", "PT1H", "INTERVAL_EVENT"),
        ("/math_function|code", "146", "INTERVAL_EVENT"),
        ("/time", "2026-01-31T10:00:00Z", "POINT_EVENT"),
    ] {
        let width = format!("{event}/width");
        let mut members = json!({ "|magnitude": 70, width: "PT1H" });
        if key != "/width" {
            members = json!({ "|magnitude": 70, format!("{event}{key}"): value });
        }
        let found = match read(&flat(&members), Shape::Flat, &template, &web, NOW) {
            Ok(tree) => canonical(&tree)["content"][0]["data"]["events"][0]["_type"].take(),
            Err(findings) => panic!("{key}: {findings:?}"),
        };
        assert_eq!(found, class, "{key}");
    }
}

#[test]
fn the_only_event_with_an_attribute_of_an_interval_is_one() {
    let text = with_width().replace("INTERVAL_EVENT", "EVENT");
    let width = text.find("<attributes xsi:type=\"C_SINGLE_ATTRIBUTE\"><rm_attribute_name>width");
    let start = width.unwrap();
    let end = start + text[start..].find("\n                <attributes").unwrap();
    let (template, web) = parse_both(&format!("{}{}", &text[..start], &text[end..]));
    let weight = "encounter/body_weight/weight|magnitude";
    for (key, value, class) in [
        ("width", json!("PT1H"), "INTERVAL_EVENT"),
        ("_width", json!("PT1H"), "INTERVAL_EVENT"),
        ("math_function|code", json!("145"), "INTERVAL_EVENT"),
        ("math_function", json!("maximum"), "INTERVAL_EVENT"),
        ("|sample_count", json!(3), "INTERVAL_EVENT"),
        ("_data/_event:0/_width", json!("PT1H"), "INTERVAL_EVENT"),
        ("time", json!("2026-01-31T10:00:00Z"), "POINT_EVENT"),
    ] {
        let key = format!("encounter/body_weight/{key}").replace("/|", "|");
        let members = json!({ weight: 70, key.as_str(): value });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{key}: {f:?}"));
        let event = canonical(&tree)["content"][0]["data"]["events"][0].take();
        assert_eq!(event["_type"], class, "{key}");
        assert!(
            event.to_string().contains(&value.to_string()),
            "{key}: {event}"
        );
        assert_round_trip(&tree, &template, &web);
        let root = tree.root().unwrap();
        let written = write(root, Shape::Flat, &template, &web, FlatDialect::Better).unwrap();
        assert!(!written.text.contains("|raw"), "{}", written.text);
    }
}

#[test]
fn structured_may_omit_the_bar_of_a_suffix() {
    let (template, web) = parse_both(SMALL);
    let read = |weight: Value| {
        let text = json!({ "ctx": { "territory": "SE", "composer_self": true },
            "encounter": { "body_weight": [{ "events_at0003": [{ "weight": [weight] }] }] } });
        read(&text.to_string(), Shape::Structured, &template, &web, NOW)
            .map(|tree| canonical(&tree))
            .unwrap_or_else(|findings| panic!("{findings:?}"))
    };
    let expected = read(json!({ "|magnitude": 70, "|unit": "kg" }));
    assert_eq!(read(json!({ "magnitude": 70, "unit": "kg" })), expected);
    assert_eq!(read(json!({ "|magnitude": 70, "unit": "kg" })), expected);
}

/// The limits of a range that contains one value.
const ONE: &str = "<lower_included>true</lower_included><upper_included>true</upper_included>\
    <lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded>";

/// Constraints that permit one value, and that value as canonical JSON.
fn only_values() -> Vec<(String, Value)> {
    let typed = |class: &str, kind: &str, content: &str| {
        format!(
            "<children xsi:type=\"{kind}\"><rm_type_name>{class}</rm_type_name><node_id/>{content}</children>"
        )
    };
    let primitive = |class: &str, attribute: &str, kind: &str, item: &str| {
        let item = format!("<item xsi:type=\"{kind}\">{item}</item>");
        let leaf = typed(kind, "C_PRIMITIVE_OBJECT", &item);
        let attribute = format!(
            "<attributes xsi:type=\"C_SINGLE_ATTRIBUTE\"><rm_attribute_name>{attribute}</rm_attribute_name>{leaf}</attributes>"
        );
        typed(class, "C_COMPLEX_OBJECT", &attribute)
    };
    let symbol = "<value>2</value><symbol><value>much</value><defining_code><terminology_id><value>local</value>\
        </terminology_id><code_string>at0006</code_string></defining_code></symbol>";
    let range =
        |limit: &str| format!("<range>{ONE}<lower>{limit}</lower><upper>{limit}</upper></range>");
    vec![
        (
            primitive(
                "DV_COUNT",
                "magnitude",
                "C_INTEGER",
                &range("9007199254740993"),
            ),
            json!({ "_type": "DV_COUNT", "magnitude": 9_007_199_254_740_993_i64 }),
        ),
        (
            primitive("DV_COUNT", "magnitude", "C_INTEGER", "<list>3</list>"),
            json!({ "_type": "DV_COUNT", "magnitude": 3 }),
        ),
        (
            primitive("DV_TEXT", "value", "C_STRING", "<list>fixed</list>"),
            json!({ "_type": "DV_TEXT", "value": "fixed" }),
        ),
        (
            primitive(
                "DV_BOOLEAN",
                "value",
                "C_BOOLEAN",
                "<true_valid>true</true_valid><false_valid>false</false_valid>",
            ),
            json!({ "_type": "DV_BOOLEAN", "value": true }),
        ),
        (
            primitive("DV_DURATION", "value", "C_DURATION", &range("PT5M")),
            json!({ "_type": "DV_DURATION", "value": "PT5M" }),
        ),
        (
            typed(
                "DV_ORDINAL",
                "C_DV_ORDINAL",
                &format!("<list>{symbol}</list>"),
            ),
            json!({ "_type": "DV_ORDINAL", "value": 2, "symbol": { "_type": "DV_CODED_TEXT", "value": "Much",
                "defining_code": { "_type": "CODE_PHRASE", "code_string": "at0006",
                    "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "local" } } } }),
        ),
        (
            typed(
                "DV_QUANTITY",
                "C_DV_QUANTITY",
                &format!(
                    "<list><magnitude>{ONE}<lower>50.5</lower><upper>50.5</upper></magnitude><units>kg</units></list>"
                ),
            ),
            json!({ "_type": "DV_QUANTITY", "magnitude": 50.5, "units": "kg" }),
        ),
    ]
}

/// The constraint of a coded text on codes, each of which is an alternative.
fn coded(codes: &[&str]) -> String {
    let code = |code: &&str| {
        format!(
            "<children xsi:type=\"C_CODE_PHRASE\"><rm_type_name>CODE_PHRASE</rm_type_name><node_id/>\
            <terminology_id><value>local</value></terminology_id><code_list>{code}</code_list></children>"
        )
    };
    let codes: String = codes.iter().map(code).collect();
    format!(
        "<children xsi:type=\"C_COMPLEX_OBJECT\"><rm_type_name>DV_CODED_TEXT</rm_type_name><node_id/>\
        <attributes xsi:type=\"C_SINGLE_ATTRIBUTE\"><rm_attribute_name>defining_code</rm_attribute_name>{codes}\
        </attributes></children>"
    )
}

#[test]
fn a_code_with_an_alternative_is_not_completed() {
    for (codes, expected) in [
        (&["at0006"][..], Some(json!("at0006"))),
        (&["at0006", "at0005"], None),
    ] {
        let (template, web) = parse_both(&with_second(&coded(codes)));
        let members = flat(&json!({ "|magnitude": 70 }));
        let tree = read(&members, Shape::Flat, &template, &web, NOW).unwrap();
        let code = "/content/0/data/events/0/data/items/1/value/defining_code/code_string";
        assert_eq!(
            canonical(&tree).pointer(code).cloned(),
            expected,
            "{codes:?}"
        );
    }
}

#[test]
fn codes_of_all_alternatives_are_codes_of_the_node() {
    let (template, web) = parse_both(&with_second(&coded(&["at0006", "at0005"])));
    let second = AT.replace("/weight", "/second");
    // The text alone is enough: it is that of the second alternative.
    for (key, value) in [("|value", "Second"), ("|code", "at0005"), ("", "at0005")] {
        let members = json!({ "|magnitude": 70, format!("{second}{key}"): value });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{key}: {f:?}"));
        assert_round_trip(&tree, &template, &web);
        let found = canonical(&tree)["content"][0]["data"]["events"][0].take();
        let code = &found["data"]["items"][1]["value"]["defining_code"]["code_string"];
        assert_eq!(code, "at0005", "{key}");
    }
    let listed = web.to_json(&template);
    assert!(listed.contains(r#""value":"at0006""#) && listed.contains(r#""value":"at0005""#));
}

/// The template with a second mandatory ELEMENT whose value has this constraint.
fn with_second(constraint: &str) -> String {
    let element = format!(
        "<children xsi:type=\"C_COMPLEX_OBJECT\"><rm_type_name>ELEMENT</rm_type_name>\
        <occurrences>{ONE}<lower>1</lower><upper>1</upper></occurrences><node_id>at0005</node_id>\
        <attributes xsi:type=\"C_SINGLE_ATTRIBUTE\"><rm_attribute_name>value</rm_attribute_name>{constraint}\
        </attributes></children><cardinality>"
    );
    let terms = [("at0005", "Second"), ("at0006", "Much")].map(|(code, text)| {
        format!(
            "<term_definitions code=\"{code}\"><items id=\"text\">{text}</items></term_definitions>"
        )
    });
    let first = "<term_definitions code=\"at0004\">";
    let text = SMALL.replacen("<cardinality>", &element, 1);
    text.replacen(first, &format!("{}{first}", terms.concat()), 1)
}

#[test]
fn the_only_value_of_a_mandatory_leaf_is_completed() {
    let second = |constraint: &str, members: Value| {
        let (template, web) = parse_both(&with_second(constraint));
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{constraint}: {f:?}"));
        assert_round_trip(&tree, &template, &web);
        let value = "/content/0/data/events/0/data/items/1/value";
        canonical(&tree).pointer(value).cloned()
    };
    for (constraint, expected) in only_values() {
        let found = second(&constraint, json!({ "|magnitude": 70 }));
        assert_eq!(found, Some(expected), "{constraint}");
        for wider in [
            constraint
                .replacen("<upper>", "<upper>1", 1)
                .replacen("1PT5M", "PT6M", 1),
            constraint.replacen("upper_included>true", "upper_included>false", 1),
            constraint.replacen("<list>3</list>", "<list>3</list><list>4</list>", 1),
        ] {
            if wider != constraint {
                let found = second(&wider, json!({ "|magnitude": 70 }));
                assert_eq!(found, None, "{wider}");
            }
        }
    }
}

#[test]
fn the_only_value_of_an_optional_leaf_is_not_completed() {
    let bounds = |lower: u8| {
        format!("<lower>{lower}</lower><upper>1</upper></occurrences><node_id>at0005</node_id>")
    };
    for (constraint, _) in only_values() {
        let mandatory = with_second(&constraint);
        let optional = mandatory.replacen(&bounds(1), &bounds(0), 1);
        assert_ne!(optional, mandatory);
        let (template, web) = parse_both(&optional);
        let members = json!({ "|magnitude": 70 });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
        let items = "/content/0/data/events/0/data/items";
        let items = canonical(&tree).pointer(items).cloned().unwrap();
        assert_eq!(items.as_array().map(Vec::len), Some(1), "{items}");
    }
}

#[test]
fn the_only_value_is_at_the_place_of_its_node() {
    let (constraint, _) = &only_values()[1];
    let text = with_second(constraint);
    let (front, behind) = text.split_once("<cardinality>").unwrap();
    let second = front.rfind("<children xsi:type=\"C_COMPLEX_OBJECT\"><rm_type_name>ELEMENT");
    let third = front[second.unwrap()..]
        .replace("at0005", "at0007")
        .replace(">3<", ">4<");
    let term = "<term_definitions code=\"at0005\">";
    let third_term =
        "<term_definitions code=\"at0007\"><items id=\"text\">Third</items></term_definitions>";
    let text = format!("{front}{third}<cardinality>{behind}");
    let (template, web) = parse_both(&text.replacen(term, &format!("{third_term}{term}"), 1));
    let third = AT
        .replace("weight", "third")
        .replace("body_third", "body_weight");
    for name in ["Third", "Own name"] {
        let members = json!({ "|magnitude": 70, &third: 4, format!("{third}/_name"): name });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
        let items = canonical(&tree)["content"][0]["data"]["events"][0]["data"]["items"].take();
        let ids: Vec<_> = (0..3)
            .map(|i| items[i]["archetype_node_id"].clone())
            .collect();
        assert_eq!(ids, ["at0004", "at0005", "at0007"], "{name}");
        assert_round_trip(&tree, &template, &web);
    }
}

#[test]
fn a_code_of_a_value_set_has_its_terminology_without_the_subset() {
    let set = "terminology:SNOMED-CT?subset=problems";
    let (template, web) = parse_both(&with_second(&format!(
        "<children xsi:type=\"C_COMPLEX_OBJECT\"><rm_type_name>DV_CODED_TEXT</rm_type_name><node_id/>\
        <attributes xsi:type=\"C_SINGLE_ATTRIBUTE\"><rm_attribute_name>defining_code</rm_attribute_name>\
        <children xsi:type=\"C_CODE_REFERENCE\"><rm_type_name>CODE_PHRASE</rm_type_name><node_id/>\
        <referenceSetUri>{set}</referenceSetUri></children></attributes></children>"
    )));
    let displayed = r#""terminology":"SNOMED-CT?subset=problems""#;
    assert!(web.to_json(&template).contains(displayed));
    let key = "encounter/body_weight/events_at0003:0/second";
    for (given, expected) in [
        (Value::Null, "SNOMED-CT"),
        (json!("SNOMED-CT"), "SNOMED-CT"),
        (json!("SNOMED-CT?subset=problems"), "SNOMED-CT"),
        (json!("ICD10"), "ICD10"),
    ] {
        let members = json!({ "|magnitude": 70, format!("{key}|code"): "386661006",
            format!("{key}|value"): "Fever", format!("{key}|terminology"): given });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
        let value = canonical(&tree)["content"][0]["data"]["events"][0]["data"]["items"][1].take();
        let found = &value["value"]["defining_code"]["terminology_id"]["value"];
        assert_eq!(found, expected, "{given}");
        let findings = crate::validate(tree.root().unwrap(), &template);
        assert_eq!(findings.is_empty(), expected == "SNOMED-CT", "{findings:?}");
        assert_round_trip(&tree, &template, &web);
    }
}

#[test]
fn a_participation_without_a_performer_is_of_the_subject() {
    let (template, web) = parse_both(SMALL);
    let entry = "encounter/body_weight/_other_participation:0";
    for (key, value, expected) in [
        ("|function", "patient", "PARTY_SELF"),
        ("|mode", "teleconference", "PARTY_SELF"),
        ("|name", "Berg", "PARTY_IDENTIFIED"),
        ("|identifiers_id:0", "7", "PARTY_IDENTIFIED"),
        ("/_identifier:0|id", "7", "PARTY_IDENTIFIED"),
        ("/relationship|code", "10", "PARTY_RELATED"),
    ] {
        let members = json!({ "|magnitude": 70, format!("{entry}{key}"): value });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{key}: {f:?}"));
        let participation = canonical(&tree)["content"][0]["other_participations"][0].take();
        assert_eq!(participation["performer"]["_type"], expected, "{key}");
        assert_round_trip(&tree, &template, &web);
    }
}

#[test]
fn texts_of_links_in_the_context_may_be_coded() {
    let (template, web) = parse_both(SMALL);
    let members = json!({ "|magnitude": 70, "ctx/link:0|type": "SNOMED-CT::1::Issue",
        "ctx/link:0|meaning": "2::Problem", "ctx/link:0|target": "ehr://a" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
        .unwrap_or_else(|f| panic!("{f:?}"));
    let coded = |terminology: &str, code: &str, text: &str| {
        json!({ "_type": "DV_CODED_TEXT", "value": text, "defining_code": { "_type": "CODE_PHRASE",
            "terminology_id": { "_type": "TERMINOLOGY_ID", "value": terminology },
            "code_string": code } })
    };
    let link = canonical(&tree)["content"][0]["links"][0].take();
    assert_eq!(link["type"], coded("SNOMED-CT", "1", "Issue"));
    assert_eq!(link["meaning"], coded("external", "2", "Problem"));
    assert_round_trip(&tree, &template, &web);
}

#[test]
fn links_and_participations_of_the_context_may_have_any_indexes() {
    let (template, web) = parse_both(SMALL);
    let members = json!({ "|magnitude": 70,
        "ctx/link:17|type": "a", "ctx/link:17|meaning": "a", "ctx/link:17|target": "ehr://a",
        "ctx/_link:99|type": "b", "ctx/_link:99|meaning": "b", "ctx/_link:99|target": "ehr://b",
        "ctx/participation_name:3": "Berg", "ctx/_participation_name:5": "Lund" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
        .unwrap_or_else(|f| panic!("{f:?}"));
    let document = canonical(&tree);
    let texts = |list: &Value, pointer: &str| -> Vec<Value> {
        let all = list.as_array().into_iter().flatten();
        all.map(|one| one.pointer(pointer).cloned().unwrap_or_default())
            .collect()
    };
    let entry = &document["content"][0];
    for links in [&document["links"], &entry["links"]] {
        assert_eq!(texts(links, "/type/value"), ["a", "b"]);
    }
    for list in [
        &document["context"]["participations"],
        &entry["other_participations"],
    ] {
        assert_eq!(texts(list, "/performer/name"), ["Berg", "Lund"]);
    }
}
