//! Tests of the keys that the writer chooses, by dialect.

use super::*;

/// Returns the keys of a document that was read from these members, in both dialects.
fn keys(text: &str, opt: &str) -> [Value; 2] {
    let (template, web) = parse_both(opt);
    let tree = read(text, Shape::Flat, &template, &web, NOW).unwrap_or_else(|f| panic!("{f:?}"));
    assert_round_trip(&tree, &template, &web);
    [FlatDialect::Better, FlatDialect::Ehrbase].map(|dialect| {
        let written = write(tree.root().unwrap(), Shape::Flat, &template, &web, dialect).unwrap();
        serde_json::from_str(&written.text).unwrap()
    })
}

#[test]
fn a_context_without_a_node_has_the_keys_of_one_for_ehrbase() {
    let members = json!({ "|magnitude": 70, "ctx/time": NOW, "ctx/end_time": NOW });
    let [better, ehrbase] = keys(&flat(&members), SMALL);
    assert_eq!(better["encounter/_context/_start_time"], NOW);
    assert_eq!(ehrbase["encounter/context/start_time"], NOW);
    assert_eq!(ehrbase["encounter/context/setting|code"], "238");
    assert_eq!(ehrbase["encounter/context/_end_time"], NOW);
}

#[test]
fn the_key_of_a_node_takes_precedence_over_that_of_an_attribute() {
    let named = SMALL.replace(">Body weight<", ">Context<");
    let text = flat(&json!({ "|magnitude": 70 })).replace("body_weight", "context");
    let [_, ehrbase] = keys(&text, &named);
    assert_eq!(ehrbase["encounter/_context/start_time"], NOW);
    let weight = AT.replace("body_weight", "context");
    assert_eq!(ehrbase[format!("{weight}|magnitude")], 70);
}

#[test]
fn a_text_with_parts_is_the_main_value_for_ehrbase() {
    let (template, web) = unconstrained();
    let members = json!({ "/text_value": "rest", "/text_value|formatting": "plain" });
    let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap();
    assert_round_trip(&tree, &template, &web);
    for (dialect, key) in [
        (FlatDialect::Better, "text_value|value"),
        (FlatDialect::Ehrbase, "text_value"),
    ] {
        let written = write(tree.root().unwrap(), Shape::Flat, &template, &web, dialect).unwrap();
        let written: Value = serde_json::from_str(&written.text).unwrap();
        assert_eq!(written[format!("{AT}/{key}")], "rest", "{dialect:?}");
    }
}

#[test]
fn a_workflow_definition_is_written_by_a_suffix_for_ehrbase() {
    let order = include_str!("../../../../../tests/cases/template/order.opt");
    let request = "report/request:0";
    let mut members = json!({ "ctx/territory": "SE", "ctx/composer_self": true });
    members[format!("{request}/_wf_definition")] = json!("flow");
    members[format!("{request}/_wf_definition|formalism")] = json!("text");
    members[format!("{request}/current_activity:0/service")] = json!("X-ray");
    let [better, ehrbase] = keys(&members.to_string(), order);
    assert_eq!(better[format!("{request}/_wf_definition")], "flow");
    assert_eq!(ehrbase[format!("{request}/_wf_definition|value")], "flow");
}
