//! Tests of the runtime names of structures that are not nodes.

use super::*;
use aqlite_rm::class::Cls;

/// The template with a single event, which has no segment of its own. The event has a term in two
/// languages.
fn with_one_event() -> (Template, WebTemplate) {
    let node = SMALL.find("<node_id>at0003</node_id>").unwrap();
    let many = "<upper_unbounded>true</upper_unbounded><lower>1</lower>";
    let start = SMALL[..node].rfind(many).unwrap();
    let one = "<upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper>";
    let text = format!("{}{one}{}", &SMALL[..start], &SMALL[start + many.len()..]);
    let before = |text: String, marker: &str, term: &str| {
        assert!(text.contains(marker));
        text.replace(marker, &format!("{term}{marker}"))
    };
    let term =
        r#"<term_definitions code="at0003"><items id="text">Any event</items></term_definitions>"#;
    let text = before(text, r#"<term_definitions code="at0004">"#, term);
    let term = r#"<items code="at0003"><items id="text">Varje händelse</items></items>"#;
    parse_both(&before(
        text,
        r#"<items code="at0000"><items id="text">Kroppsvikt"#,
        term,
    ))
}

/// A document whose event has this name.
fn document((template, web): &(Template, WebTemplate), name: &Value) -> Tree {
    let members = json!({ "encounter/body_weight/weight|magnitude": 72.5 });
    let tree = read(&flat(&members), Shape::Flat, template, web, NOW).unwrap();
    let mut value = canonical(&tree);
    let place = value.pointer_mut("/content/0/data/events/0/name").unwrap();
    assert_eq!(place["value"], "Any event");
    *place = name.clone();
    json::read(&value.to_string(), Cls::COMPOSITION).unwrap()
}

#[test]
fn the_name_of_a_single_event_has_a_key() {
    let both = with_one_event();
    let code = json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "local" }, "code_string": "at0007" });
    for name in [
        json!({ "_type": "DV_TEXT", "value": "After exercise" }),
        json!({ "_type": "DV_TEXT", "value": "After exercise", "formatting": "plain" }),
        json!({ "_type": "DV_CODED_TEXT", "value": "After exercise", "defining_code": code }),
        // A code is no term of the template, whatever its text.
        json!({ "_type": "DV_CODED_TEXT", "value": "Varje händelse", "defining_code": code }),
    ] {
        let tree = document(&both, &name);
        let root = tree.root().unwrap();
        assert_round_trip(&tree, &both.0, &both.1);
        let written = write(root, Shape::Flat, &both.0, &both.1, FlatDialect::Better).unwrap();
        let key = "encounter/body_weight/_data/_event:0/_name";
        assert!(written.text.contains(key), "{}", written.text);
    }
}

#[test]
fn a_term_in_another_language_is_no_name_with_a_key() {
    let both = with_one_event();
    for (name, left) in [
        ("Any event", &[] as &[&str]),
        ("Varje händelse", &["names of structures"]),
    ] {
        let tree = document(&both, &json!({ "_type": "DV_TEXT", "value": name }));
        let root = tree.root().unwrap();
        let written = write(root, Shape::Flat, &both.0, &both.1, FlatDialect::Better).unwrap();
        assert!(!written.text.contains("_name"), "{}", written.text);
        assert_eq!(written.left, left);
    }
}
