//! Tests of positions that a document gives by several keys.

use super::*;

/// Pairs of keys of one position, and two values for it. `/` and `|` start at the ELEMENT.
const PAIRS: &str = r#"
ctx/language ctx/_language "en" "sv"
ctx/language ctx/language|code "en" "sv"
ctx/time ctx/_time "2026-01-01T00:00:00Z" "2026-01-02T00:00:00Z"
ctx/time ctx/time|value "2026-01-01T00:00:00Z" "2026-01-02T00:00:00Z"
ctx/setting ctx/setting|code "225" "227"
ctx/setting|code ctx/_setting|code "225" "227"
ctx/setting|code ctx/setting|value "225" "227"
ctx/id_scheme ctx/id_schema "a" "b"
ctx/id_scheme ctx/_id_schema "a" "b"
ctx/location ctx/location|value "a" "b"
ctx/health_care_facility ctx/healthcare_facility "a" "b"
ctx/health_care_facility|name ctx/_healthcare_facility|name "a" "b"
ctx/health_care_facility ctx/health_care_facility|name "a" "b"
ctx/composer_name ctx/composer|name "a" "b"
ctx/participation_name:1 ctx/_participation_name:1 "a" "b"
ctx/work_flow_id|id_scheme ctx/work_flow_id|scheme "a" "b"
encounter/context/start_time encounter/context/_start_time "2026-01-01T00:00:00Z" "2026-01-02T00:00:00Z"
encounter/context/start_time encounter/context/_start_time|value "2026-01-01T00:00:00Z" "2026-01-02T00:00:00Z"
encounter/context/start_time encounter/_context/start_time "2026-01-01T00:00:00Z" "2026-01-02T00:00:00Z"
encounter/language encounter/_language "en" "sv"
encounter/language|code encounter/_language "en" "sv"
encounter/body_weight/_work_flow_id|id encounter/body_weight/_workflow_id|id "a" "b"
encounter/body_weight/_link:1|type encounter/body_weight/_links:1|type "a" "b"
encounter/body_weight/link|type encounter/body_weight/_link|type "a" "b"
encounter/body_weight/history_origin encounter/body_weight/_history_origin "2026-01-01T00:00:00Z" "2026-01-02T00:00:00Z"
encounter/body_weight/history_origin encounter/body_weight/data_history_origin "2026-01-01T00:00:00Z" "2026-01-02T00:00:00Z"
encounter/body_weight/_data/_uid encounter/body_weight/data/_uid "6ba7b810-9dad-41d1-80b4-00c04fd43001" "6ba7b810-9dad-41d1-80b4-00c04fd43002"
encounter/body_weight/_other_participation/relationship|code encounter/body_weight/_other_participation/_relationship|code "10" "9"
/count_value /value12 1 2
/count_value/_normal_range/lower /count_value/normal_range/lower 1 2
/count_value/_normal_range/lower /count_value/_normal_range/_lower|magnitude 1 2
/_null_flavour|code /null_flavour|code "253" "271"
"#;

/// Reads a document with two keys.
fn read_pair(keys: [&str; 2], values: [&Value; 2]) -> Vec<(&'static str, String)> {
    let (template, web) = unconstrained();
    let mut members = json!({
        "ctx/id_namespace": "n", "ctx/participation_name:1": "a", "encounter/body_weight/_link:1|target": "ehr:/",
        "encounter/body_weight/_link:1|meaning": "a", "encounter/body_weight/_link:1|type": "a", "/count_value": 1,
    });
    if keys.iter().any(|key| key.starts_with("ctx/work_flow_id")) {
        members["ctx/work_flow_id|id"] = json!("a");
    }
    if keys.iter().any(|key| key.contains("body_weight/_work")) {
        members["encounter/body_weight/_work_flow_id|id_scheme"] = json!("s");
    }
    for (key, value) in keys.into_iter().zip(values) {
        members[key] = value.clone();
    }
    findings_of(&flat(&members), Shape::Flat, &template, &web)
}

#[test]
fn different_values_of_one_position_contradict_each_other() {
    let mut wrong = Vec::new();
    for case in PAIRS.trim().lines() {
        let [one, other, first, second] = case.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let value = |text| serde_json::from_str::<Value>(text).unwrap();
        let (first, second) = (value(first), value(second));
        for keys in [[one, other], [other, one]] {
            let equal = read_pair(keys, [&first, &first]);
            if equal.iter().any(|(code, _)| *code == "FLT0107") {
                wrong.push(format!("equal {keys:?}: {equal:?}"));
            }
            let different = read_pair(keys, [&first, &second]);
            let is_named = |(code, key): &(&str, String)| {
                let key = key.strip_prefix(AT).unwrap_or(key);
                *code == "FLT0107" && keys.iter().any(|sent| sent.starts_with(key))
            };
            if different.len() != 1 || !different.iter().all(is_named) {
                wrong.push(format!("different {keys:?}: {different:?}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{}", wrong.join("\n"));
}

#[test]
fn parts_of_one_position_may_have_different_spellings() {
    let (template, web) = parse_both(SMALL);
    let members = json!({
        "|magnitude": 1, "ctx/_composer_self": "TRUE", "ctx/health_care_facility|name": "Hospital",
        "ctx/healthcare_facility|id": "9", "ctx/id_scheme": "s", "ctx/id_namespace": "n",
        "encounter/body_weight/_work_flow_id|id": "7", "encounter/body_weight/_workflow_id|type": "PLAN",
        "ctx/setting": "home", "ctx/setting|code": 225, "ctx/setting|value": "Zuhause",
    });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
        .unwrap_or_else(|findings| panic!("{findings:?}"));
    let document = canonical(&tree);
    for (pointer, expected) in [
        ("/context/health_care_facility/name", "Hospital"),
        ("/context/health_care_facility/external_ref/id/value", "9"),
        ("/context/setting/defining_code/code_string", "225"),
        ("/content/0/workflow_id/id/value", "7"),
        ("/content/0/workflow_id/type", "PLAN"),
    ] {
        let found = document.pointer(pointer);
        assert_eq!(found, Some(&json!(expected)), "{pointer}");
    }
}

#[test]
fn a_code_of_a_fixed_group_may_be_given_by_its_text() {
    let event = AT.trim_end_matches("/weight");
    let (template, web) = parse_both(&SMALL.replace("POINT_EVENT", "EVENT"));
    let paths = [
        (
            "encounter/context/setting",
            "home",
            "225",
            "/context/setting",
        ),
        (
            &format!("{event}/math_function"),
            "maximum",
            "144",
            "/content/0/data/events/0/math_function",
        ),
        (
            &format!("{AT}/_null_flavour"),
            "unknown",
            "253",
            "/content/0/data/events/0/data/items/0/null_flavour",
        ),
    ];
    for (key, text, code, path) in paths {
        for suffix in ["", "|value", "|code"] {
            let time = format!("{event}/time");
            let members = json!({ time: NOW, format!("{key}{suffix}"): text });
            let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
                .unwrap_or_else(|f| panic!("{key}{suffix}: {f:?}"));
            let document = canonical(&tree);
            let coded = document.pointer(path).unwrap();
            assert_eq!(coded["value"], text, "{key}{suffix}");
            assert_eq!(coded["defining_code"]["code_string"], code);
            let terminology = &coded["defining_code"]["terminology_id"]["value"];
            assert_eq!(terminology, "openehr");
        }
    }
}

#[test]
fn an_activity_without_a_node_is_at_the_singular_of_its_attribute() {
    let (template, web) = parse_both(include_str!(
        "../../../../../tests/cases/template/order.opt"
    ));
    let activity = json!({ "_type": "ACTIVITY", "archetype_node_id": "at0099",
        "name": { "_type": "DV_TEXT", "value": "More" },
        "description": { "_type": "ITEM_TREE", "archetype_node_id": "at0098",
            "name": { "_type": "DV_TEXT", "value": "Tree" } } });
    let text = json!({ "ctx/territory": "SE", "ctx/composer_self": true,
        "report/request:0/current_activity:0/service": "one", "report/request:0/_activity:0|raw": activity });
    let tree = read(&text.to_string(), Shape::Flat, &template, &web, NOW)
        .unwrap_or_else(|f| panic!("{f:?}"));
    assert_eq!(canonical(&tree)["content"][0]["activities"][1], activity);
    let root = tree.root().unwrap();
    let written = write(root, Shape::Flat, &template, &web, FlatDialect::Better).unwrap();
    assert!(
        written.text.contains("request:0/_activity:0|raw"),
        "{}",
        written.text
    );
    assert_round_trip(&tree, &template, &web);
}

/// The template of an order in which two codes have one text, and two careflow steps have one.
fn with_equal_texts() -> (Template, WebTemplate) {
    let order = include_str!("../../../../../tests/cases/template/order.opt");
    let text = order.replace(">Sample sent<", ">Sample taken<");
    parse_both(&text.replace(">Service started<", ">Service planned<"))
}

#[test]
fn a_text_of_several_codes_needs_another_key() {
    let (template, web) = with_equal_texts();
    let taken = "/content/0/description/items/0/value";
    let step = "/content/0/ism_transition/careflow_step";
    let key = |key: &str| format!("report/service:0/{key}");
    for (members, expected) in [
        (
            json!({ "what_was_done": "Sample taken" }),
            Err("what_was_done"),
        ),
        (
            json!({ "what_was_done|value": "Sample taken" }),
            Err("what_was_done"),
        ),
        (
            json!({ "what_was_done": "Sample taken", "what_was_done|code": "at0008" }),
            Ok((taken, "at0008")),
        ),
        (
            json!({ "what_was_done|value": "Sample taken", "what_was_done|code": "at0008" }),
            Ok((taken, "at0008")),
        ),
        (
            json!({ "ism_transition/careflow_step|value": "Service planned" }),
            Err("ism_transition/careflow_step"),
        ),
        (
            json!({ "ism_transition/careflow_step|value": "Service planned", "ism_transition/current_state|code": "532" }),
            Err("ism_transition/careflow_step"),
        ),
        (
            json!({ "ism_transition/careflow_step|value": "Service planned", "ism_transition/current_state|value": "active" }),
            Ok((step, "at0005")),
        ),
        (
            json!({ "ism_transition/careflow_step": "Service planned", "ism_transition/current_state|code": "526" }),
            Ok((step, "at0004")),
        ),
        (
            json!({ "ism_transition/careflow_step|value": "Service done", "ism_transition/current_state|code": "532" }),
            Ok((step, "at0006")),
        ),
    ] {
        let given = members.as_object().unwrap().iter();
        let given = given
            .map(|(end, value)| (key(end), value.clone()))
            .collect();
        let found = read(
            &flat(&Value::Object(given)),
            Shape::Flat,
            &template,
            &web,
            NOW,
        );
        let found = found.map_err(|findings| (findings[0].code, findings[0].path.clone()));
        let found = found.map(|tree| canonical(&tree));
        match expected {
            Ok((path, code)) => {
                let coded = found.as_ref().unwrap().pointer(path).unwrap();
                assert_eq!(coded["defining_code"]["code_string"], code, "{members}");
            }
            Err(end) => assert_eq!(found.unwrap_err(), ("FLT0108", key(end)), "{members}"),
        }
    }
}

#[test]
fn the_state_of_the_context_selects_among_careflow_steps_with_one_text() {
    let (template, web) = with_equal_texts();
    let members = json!({ "ctx/action_ism_transition_current_state": "active",
        "report/service:0/ism_transition/careflow_step|value": "Service planned" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    let step = canonical(&tree)["content"][0]["ism_transition"]["careflow_step"].take();
    assert_eq!(step["defining_code"]["code_string"], "at0005");
}

#[test]
fn a_date_is_a_limit_of_the_time_of_a_participation() {
    let (template, web) = parse_both(SMALL);
    let at = "encounter/body_weight/_other_participation:0";
    let members = json!({ "|magnitude": 70, format!("{at}|name"): "Berg",
        format!("{at}|function"): "nurse", format!("{at}/_time/lower"): "2024-01-01" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    let found = canonical(&tree)["content"][0]["other_participations"][0]["time"].take();
    let expected = json!({ "_type": "DV_DATE_TIME", "value": "2024-01-01" });
    assert_eq!(found["lower"], expected);
    assert_round_trip(&tree, &template, &web);
}
