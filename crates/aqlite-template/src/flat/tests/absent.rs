//! Tests of values that the sender states to be absent.

use super::*;
use std::collections::BTreeSet;

const VITAL_SIGNS: &str = include_str!("../../../../../www/samples/vital_signs.opt");

type Members = serde_json::Map<String, Value>;

fn example_of(template: &Template, web: &WebTemplate) -> Members {
    let example = example(template, ExampleKind::Full, None, NOW).unwrap();
    let root = example.root().unwrap();
    let written = write(root, Shape::Flat, template, web, FlatDialect::Better).unwrap();
    let mut members: Members = serde_json::from_str(&written.text).unwrap();
    // Missing ones are refused.
    members.insert(String::from("ctx/composer_self"), json!(true));
    members.insert(String::from("ctx/territory"), json!("SE"));
    members
}

fn read_members(members: &Members, template: &Template, web: &WebTemplate) -> Value {
    let text = Value::Object(members.clone()).to_string();
    let read = read(&text, Shape::Flat, template, web, NOW);
    canonical(&read.unwrap_or_else(|findings| panic!("{findings:?}: {text}")))
}

/// Returns the members that are neither at the key of a node nor below it.
fn without_node(members: &Members, node: &str) -> Members {
    let is_of_node = |key: &str| {
        let rest = key.strip_prefix(node);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '|']))
    };
    let others = members.iter().filter(|(key, _)| !is_of_node(key));
    others.map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Removes what readers complete for an absent node of the one attribute.
fn remove_completed(document: &mut Value, attribute: &str) {
    if let Value::Object(members) = document {
        members.remove(attribute);
    }
    let (mut list, mut object);
    let members: &mut dyn Iterator<Item = &mut Value> = match document {
        Value::Array(members) => {
            list = members.iter_mut();
            &mut list
        }
        Value::Object(members) => {
            object = members.values_mut();
            &mut object
        }
        _ => return,
    };
    members.for_each(|member| remove_completed(member, attribute));
}

#[test]
fn an_absent_node_removes_nothing_beside_it() {
    let (template, web) = parse_both(VITAL_SIGNS);
    let all = example_of(&template, &web);
    let is_node = |place: &&str| !place.starts_with("ctx") && !place.contains("/_");
    let places = all.keys().flat_map(|key| {
        let path = key.split('|').next().unwrap();
        let ends = path.match_indices('/').map(|(at, _)| at);
        ends.chain([path.len()]).map(|end| &path[..end]).skip(1)
    });
    let places: BTreeSet<&str> = places.filter(is_node).collect();
    assert!(places.len() > 50, "{places:?}");
    for place in places {
        let mut members = without_node(&all, place);
        let mut expected = read_members(&members, &template, &web);
        members.insert(format!("{place}|_absent"), json!(true));
        let mut found = read_members(&members, &template, &web);
        // Readers complete these, so they are absent only with the key.
        let attribute = place.rsplit('/').next().unwrap().trim_start_matches('_');
        if expected != found {
            remove_completed(&mut expected, attribute);
            remove_completed(&mut found, attribute);
        }
        assert_eq!(expected, found, "{place}");
    }
}

#[test]
fn an_absent_alternative_leaves_the_other_one() {
    let (template, web) = unconstrained();
    let members = json!({ "/text_value": "rest" });
    let expected = canonical(&read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap());
    for absent in ["/count_value|_absent", "/value2|_absent"] {
        let mut members = members.clone();
        members[absent] = json!(true);
        let text = flat(&members);
        let found = read(&text, Shape::Flat, &template, &web, NOW);
        match absent.contains("count") {
            true => assert_eq!(canonical(&found.unwrap()), expected),
            // The other id of the same alternative.
            false => assert_eq!(found.unwrap_err()[0].code, "FLT0107"),
        }
    }
}

#[test]
fn absent_attributes_of_the_context_are_not_completed() {
    let (template, web) = parse_both(SMALL);
    let members = json!({
        "|magnitude": 72.5, "ctx/link:0|type": "a", "ctx/link:0|meaning": "b",
        "ctx/link:0|target": "ehr://1",
        "encounter/_context|_absent": true, "encounter/body_weight/_link:0|_absent": true,
        "encounter/body_weight/transient_a": 1, "encounter/body_weight/_link:0/transient_b": 2,
    });
    let read = read(&flat(&members), Shape::Flat, &template, &web, NOW);
    let found = canonical(&read.unwrap());
    assert!(found["links"].is_array());
    assert_eq!(found["content"][0].get("links"), None);
    assert_eq!(found.get("context"), None);
    assert!(found["content"][0]["data"]["events"].is_array());
}
