//! Web templates by authored examples and random trees.

use super::*;

#[test]
fn a_small_template_as_a_web_template() {
    let template =
        Template::parse(include_str!("../../../../tests/cases/template/small.opt")).unwrap();
    let web = WebTemplate::of(&template);
    let event = web
        .tree
        .child("body_weight")
        .and_then(|o| o.children.first())
        .unwrap();
    let ids: Vec<&str> = event.children.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["weight", "time"]);
    let weight = event.child("weight").unwrap();
    assert_eq!(
        (weight.class, weight.element().map(|s| s.id.as_str())),
        (Cls::DV_QUANTITY, Some("at0004"))
    );
    let json: serde_json::Value = serde_json::from_str(&web.to_json(&template)).unwrap();
    let found = json
        .pointer("/tree/children/0/children/0/children/0")
        .unwrap();
    assert_eq!(
        found
            .pointer("/aqlPath")
            .and_then(|v| v.as_str())
            .map(|p| p.ends_with("/items[at0004]/value")),
        Some(true)
    );
    assert_eq!(
        found
            .pointer("/inputs/1/list/0/validation/range/max")
            .and_then(serde_json::Value::as_f64),
        Some(1000.0)
    );
}
