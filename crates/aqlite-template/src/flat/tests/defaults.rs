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
    assert_eq!(found, [("FLT0105", String::from("events_at0003:1"))]);
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
    for maker in [Maker::Better, Maker::Ehrbase] {
        let text = write(root, Shape::Flat, &template, &web, maker)
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
