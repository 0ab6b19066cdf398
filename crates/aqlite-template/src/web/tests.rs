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

/// Returns the web template of the order without the node ids of its transitions.
fn order_without_ids_of_transitions(change: impl Fn(String) -> String) -> serde_json::Value {
    const CLASS: &str = "<rm_type_name>ISM_TRANSITION</rm_type_name>";
    let text = include_str!("../../../../tests/cases/template/order.opt");
    let mut parts = text.split(CLASS);
    let mut changed = parts.next().unwrap().to_owned();
    for part in parts {
        let (front, back) = part.split_once("<node_id>").unwrap();
        let (_, back) = back.split_once("</node_id>").unwrap();
        changed += &format!("{CLASS}{front}<node_id/>{back}");
    }
    let template = Template::parse(&change(changed)).unwrap();
    serde_json::from_str(&WebTemplate::of(&template).to_json(&template)).unwrap()
}

fn transition(web: &serde_json::Value) -> &serde_json::Value {
    let action = web.pointer("/tree/children").unwrap().as_array().unwrap();
    let action = action.iter().find(|c| c["rmType"] == "ACTION").unwrap();
    let kids = action["children"].as_array().unwrap();
    kids.iter().find(|c| c["id"] == "ism_transition").unwrap()
}

#[test]
fn transition_without_a_node_id_has_the_codes_of_its_careflow_step() {
    let text = include_str!("../../../../tests/cases/template/order.opt");
    let template = Template::parse(text).unwrap();
    let with_ids = WebTemplate::of(&template).to_json(&template);
    let with_ids: serde_json::Value = serde_json::from_str(&with_ids).unwrap();
    let without_ids = order_without_ids_of_transitions(|text| text);
    assert_eq!(transition(&without_ids), transition(&with_ids));
    let steps = "/children/2/inputs/0/list";
    let steps = transition(&without_ids).pointer(steps).unwrap();
    assert_eq!(steps.as_array().unwrap().len(), 3);
}

#[test]
fn transition_without_careflow_steps_has_the_states_of_the_template() {
    let without_steps = |text: String| text.replace("careflow_step<", "reason<");
    let web = order_without_ids_of_transitions(without_steps);
    let transition = transition(&web);
    let states = transition.pointer("/children/0/inputs/0/list").unwrap();
    let states: Vec<_> = states.as_array().unwrap().iter().collect();
    assert_eq!(
        states.iter().map(|s| &s["value"]).collect::<Vec<_>>(),
        ["245", "526", "532"]
    );
    assert_eq!(transition["children"].as_array().unwrap().len(), 3);
    let list = transition.pointer("/children/2/inputs/0/list");
    assert!(list.is_none(), "{list:?}");
}

/// Returns the annotations of the three sections of a template with more elements at its end.
fn annotations_with(elements: &str) -> Vec<Option<serde_json::Value>> {
    let text = include_str!("../../../../tests/cases/template/named.opt");
    let text = text.replace("</template>", &format!("{elements}</template>"));
    let template = Template::parse(&text).unwrap();
    let web = WebTemplate::of(&template).to_json(&template);
    let web: serde_json::Value = serde_json::from_str(&web).unwrap();
    let sections = web.pointer("/tree/children").unwrap().as_array().unwrap();
    let sections = sections.iter().filter(|c| c["rmType"] == "SECTION");
    sections.map(|s| s.get("annotations").cloned()).collect()
}

#[test]
fn annotation_belongs_to_the_first_node_of_its_path() {
    let section = "/content[openEHR-EHR-SECTION.topic.v1";
    let annotation = |name: &str| {
        format!(
            r#"<annotations path="[openEHR-EHR-COMPOSITION.report.v1]{section}{name}]"><items id="source">ward</items></annotations>"#
        )
    };
    let note = Some(serde_json::json!({ "source": "ward" }));
    let (first, second) = (note.clone(), note);
    assert_eq!(annotations_with(&annotation("")), [first, None, None]);
    for name in [" and name/value='Second'", ", 'Second'"] {
        let found = annotations_with(&annotation(name));
        assert_eq!(found, [None, second.clone(), None], "{name}");
    }
}

#[test]
fn hints_of_views_are_annotations() {
    let view = r#"<view><constraints path="/content[openEHR-EHR-SECTION.topic.v1 and name/value='First']">
        <items id="pass_through"><value>true</value></items></constraints></view>"#;
    let hint = Some(serde_json::json!({ "view:pass_through": "true" }));
    assert_eq!(annotations_with(view), [hint, None, None]);
}

/// Returns the `aqlPath` of a node and of all below it.
fn aql_paths(node: &serde_json::Value, into: &mut Vec<String>) {
    into.extend(node["aqlPath"].as_str().map(str::to_owned));
    let children = node["children"].as_array().into_iter().flatten();
    children.for_each(|child| aql_paths(child, into));
}

#[test]
fn only_locatables_have_a_predicate_in_paths() {
    let text = include_str!("../../../../tests/cases/template/small.opt");
    let text = text.replace("<node_id/>", "<node_id>at0001</node_id>");
    let context = r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>context</rm_attribute_name>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>EVENT_CONTEXT</rm_type_name><node_id>at0002</node_id>
        <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>other_context</rm_attribute_name>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>ITEM_TREE</rm_type_name><node_id>at0003</node_id>
        <attributes xsi:type="C_MULTIPLE_ATTRIBUTE"><rm_attribute_name>items</rm_attribute_name>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>ELEMENT</rm_type_name><node_id>at0004</node_id>
        </children></attributes></children></attributes></children></attributes>"#;
    let text = text.replacen("<attributes", &format!("{context}<attributes"), 1);
    let template = Template::parse(&text).unwrap();
    let web = WebTemplate::of(&template).to_json(&template);
    let web: serde_json::Value = serde_json::from_str(&web).unwrap();
    let mut paths = Vec::new();
    aql_paths(&web["tree"], &mut paths);
    for path in [
        "/category",
        "/context/start_time",
        "/context/other_context[at0003]/items[at0004]/value",
    ] {
        assert!(paths.iter().any(|p| p == path), "{path}: {paths:?}");
    }
    for attribute in ["category", "context", "value", "defining_code"] {
        let with_id = format!("/{attribute}[");
        assert!(paths.iter().all(|p| !p.contains(&with_id)), "{paths:?}");
    }
}

/// Returns the template with another value in place of the quantity.
fn with_value(value: &str) -> String {
    let text = include_str!("../../../../tests/cases/template/small.opt");
    let start = text.find("<children xsi:type=\"C_DV_QUANTITY\"").unwrap();
    let end = start + text[start..].find("</children>").unwrap() + "</children>".len();
    format!("{}{value}{}", &text[..start], &text[end..])
}

/// Returns the fields of a value: `class` is its class, with the constraint on an attribute.
fn inputs_of(class: &str, constraint: Option<(&str, &str)>) -> serde_json::Value {
    let attribute = constraint.map(|(attribute, item)| {
        format!(
            r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>{attribute}</rm_attribute_name>
            <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>X</rm_type_name><node_id/>{item}</children></attributes>"#
        )
    });
    let text = with_value(&format!(
        r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>{class}</rm_type_name><node_id/>{}</children>"#,
        attribute.unwrap_or_default()
    ));
    let template = Template::parse(&text).unwrap();
    let web = WebTemplate::of(&template).to_json(&template);
    let mut web: serde_json::Value = serde_json::from_str(&web).unwrap();
    let node = "/tree/children/0/children/0/children/0/inputs";
    web.pointer_mut(node).unwrap().take()
}

#[test]
fn each_value_has_a_field_with_its_constraint_and_its_assumed_value() {
    for (class, constraint, expected) in [
        ("DV_DATE", None, r#"[{"type":"DATE"}]"#),
        ("DV_TIME", None, r#"[{"type":"TIME"}]"#),
        ("DV_DATE_TIME", None, r#"[{"type":"DATETIME"}]"#),
        ("DV_TEXT", None, r#"[{"type":"TEXT"}]"#),
        ("DV_BOOLEAN", None, r#"[{"type":"BOOLEAN"}]"#),
        ("DV_COUNT", None, r#"[{"type":"INTEGER"}]"#),
        (
            "DV_DATE",
            Some((
                "value",
                r#"<item xsi:type="C_DATE"><pattern>yyyy-mm-??</pattern></item>"#,
            )),
            r#"[{"type":"DATE","validation":{"pattern":"yyyy-mm-??"}}]"#,
        ),
        (
            "DV_TIME",
            Some((
                "value",
                r#"<item xsi:type="C_TIME"><assumed_value>08:00:00</assumed_value></item>"#,
            )),
            r#"[{"type":"TIME","defaultValue":"08:00:00"}]"#,
        ),
        (
            "DV_COUNT",
            Some((
                "magnitude",
                r#"<item xsi:type="C_INTEGER"><list>1</list><list>2</list><assumed_value>2</assumed_value></item>"#,
            )),
            r#"[{"type":"INTEGER","list":[{"value":"1","label":"1"},{"value":"2","label":"2"}],"defaultValue":2}]"#,
        ),
        // An Integer64 has more digits than a double.
        (
            "DV_COUNT",
            Some((
                "magnitude",
                r#"<item xsi:type="C_INTEGER"><range><lower_included>true</lower_included><upper_included>false</upper_included>
                    <lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded>
                    <lower>9007199254740993</lower><upper>9223372036854775807</upper></range>
                    <assumed_value>9007199254740995</assumed_value></item>"#,
            )),
            r#"[{"type":"INTEGER","validation":{"range":{"minOp":">=","min":9007199254740993,"maxOp":"<=","max":9223372036854775806}},"defaultValue":9007199254740995}]"#,
        ),
        (
            "DV_COUNT",
            Some((
                "magnitude",
                r#"<item xsi:type="C_INTEGER"><list>9007199254740993</list><assumed_value>9007199254740993</assumed_value></item>"#,
            )),
            r#"[{"type":"INTEGER","list":[{"value":"9007199254740993","label":"9007199254740993"}],"defaultValue":9007199254740993}]"#,
        ),
        (
            "DV_PROPORTION",
            Some((
                "type",
                r#"<item xsi:type="C_INTEGER"><list>2</list></item>"#,
            )),
            r#"[{"type":"DECIMAL","suffix":"numerator"},{"type":"DECIMAL","suffix":"denominator","validation":{"range":{"minOp":">=","min":100.0,"maxOp":"<=","max":100.0}}}]"#,
        ),
    ] {
        let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        let found = inputs_of(class, constraint);
        assert_eq!(found, expected, "{class} {constraint:?}");
    }
}

/// Returns the template with a code of another terminology in place of the quantity.
fn with_external_code(term: &str) -> String {
    let coded = r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_CODED_TEXT</rm_type_name><node_id/>
        <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>defining_code</rm_attribute_name>
        <children xsi:type="C_CODE_PHRASE"><rm_type_name>CODE_PHRASE</rm_type_name><node_id/>
        <terminology_id><value>urn:lab</value></terminology_id><code_list>chem</code_list></children></attributes></children>"#;
    let text = with_value(coded);
    let terms = format!(
        r#"<term_definitions code="{term}"><items id="text">Chemistry</items></term_definitions>"#
    );
    let before = "<term_definitions code=\"at0004\">";
    text.replacen(before, &format!("{terms}{before}"), 1)
}

#[test]
fn the_label_of_an_external_code_is_its_term() {
    for term in ["chem", "urn:lab::chem"] {
        let template = Template::parse(&with_external_code(term)).unwrap();
        let web = WebTemplate::of(&template).to_json(&template);
        let web: serde_json::Value = serde_json::from_str(&web).unwrap();
        let path = "/tree/children/0/children/0/children/0/inputs/0/list/0";
        let entry = web.pointer(path).unwrap();
        assert_eq!(entry["label"], "Chemistry", "{term}");
        assert_eq!(entry["localizedLabels"]["en"], "Chemistry", "{term}");
    }
}

#[test]
fn a_text_before_a_code_is_the_node_unless_the_codes_are_listed() {
    let text = r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_TEXT</rm_type_name><node_id/></children>"#;
    let coded = r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_CODED_TEXT"#;
    let listed = with_external_code("chem").replacen(coded, &format!("{text}{coded}"), 1);
    let open = listed.replace("<code_list>chem</code_list>", "");
    let inputs = |text: &str| {
        let template = Template::parse(text).unwrap();
        let web = WebTemplate::of(&template).to_json(&template);
        let web: serde_json::Value = serde_json::from_str(&web).unwrap();
        let node = web
            .pointer("/tree/children/0/children/0/children/0")
            .unwrap();
        (node["rmType"].clone(), node["inputs"].clone())
    };
    let (class, fields) = inputs(&open);
    let other = serde_json::json!({ "suffix": "other", "type": "TEXT" });
    assert_eq!(class, "DV_TEXT");
    assert_eq!(
        fields,
        serde_json::json!([{ "type": "TEXT", "listOpen": true }, other])
    );
    let (class, fields) = inputs(&listed);
    assert_eq!(class, "DV_CODED_TEXT");
    assert_eq!((&fields[0]["suffix"], &fields[1]), (&"code".into(), &other));
}

#[test]
fn a_fixed_name_replaces_the_list_of_coded_names() {
    let text = include_str!("../../../../tests/cases/template/named.opt");
    let codes = r#"<rm_type_name>DV_CODED_TEXT</rm_type_name><node_id/>
        <attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>defining_code</rm_attribute_name>
        <children xsi:type="C_CODE_PHRASE"><rm_type_name>CODE_PHRASE</rm_type_name><node_id/>
        <terminology_id><value>local</value></terminology_id>
        <code_list>at0001</code_list><code_list>at0002</code_list></children></attributes>"#;
    let name = text.find("<rm_type_name>DV_TEXT</rm_type_name>").unwrap();
    let end = name + text[name..].find("<node_id/>").unwrap() + "<node_id/>".len();
    let text = format!("{}{codes}{}", &text[..name], &text[end..]);
    for (term, code) in [("First", Some("at0001")), ("Other", None)] {
        let terms = format!(
            r#"<term_definitions code="at0001"><items id="text">{term}</items></term_definitions>
            <term_definitions code="at0002"><items id="text">Last</items></term_definitions>"#
        );
        let before = "<term_definitions code=\"at0000\"><items id=\"text\">Topic<";
        let text = text.replacen(before, &format!("{terms}{before}"), 1);
        let web = WebTemplate::of(&Template::parse(&text).unwrap());
        let sections = web.tree.children.iter();
        let sections: Vec<&WebNode> = sections.filter(|c| c.class == Cls::SECTION).collect();
        let ids: Vec<&str> = sections.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["first", "second", "topic"]);
        let step = sections[0].last_step().unwrap();
        assert_eq!(step.name_code.as_deref(), code);
        assert_eq!(step.constrained_name(), Some("First"));
    }
}

#[test]
fn only_the_category_among_the_nodes_of_a_template_is_context() {
    let context = r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>category</rm_attribute_name>
        <children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_CODED_TEXT</rm_type_name><node_id/></children></attributes>"#;
    let text = include_str!("../../../../tests/cases/template/small.opt");
    let text = text.replacen("<attributes", &format!("{context}<attributes"), 1);
    let template = Template::parse(&text).unwrap();
    let tree = WebTemplate::of(&template).tree;
    assert!(tree.child("category").unwrap().in_context);
    let entry = tree.child("body_weight").unwrap();
    assert!(!entry.in_context);
    let event = entry.children.first().unwrap();
    assert!(!event.in_context && !event.child("weight").unwrap().in_context);
}

/// Returns the occurrences of the nodes with an id.
fn occurrences_of(web: &WebNode, id: &str) -> Vec<String> {
    let own = (web.id == id).then(|| web.occurrences.to_string());
    let below = web.children.iter().flat_map(|c| occurrences_of(c, id));
    own.into_iter().chain(below).collect()
}

#[test]
fn a_node_that_the_template_does_not_mention_has_the_occurrences_of_its_attribute() {
    let text = include_str!("../../../../tests/cases/template/order.opt");
    let tree = WebTemplate::of(&Template::parse(text).unwrap()).tree;
    for (id, occurrences) in [("expiry_time", "0..1"), ("language", "1..1")] {
        let found = occurrences_of(&tree, id);
        assert!(!found.is_empty(), "{id}");
        assert!(
            found.iter().all(|found| found == occurrences),
            "{id}: {found:?}"
        );
    }
}

/// A template of ADL 2 whose single-valued attributes have objects with ids and no occurrences.
const NOTE: &str = r#"operational_template (adl_version=2.0.6; rm_release=1.1.0; generated)
    openEHR-EHR-COMPOSITION.note.v1.0.0

language
    original_language = <[ISO_639-1::en]>

definition
    COMPOSITION[id1] matches {
        category matches { DV_CODED_TEXT[id10] matches { defining_code matches {[openehr::433]} } }
        context matches {
            EVENT_CONTEXT[id12] matches {
                other_context matches {
                    ITEM_TREE[id13] matches {
                        items matches {
                            ELEMENT[id14] matches {
                                value matches {
                                    DV_INTERVAL<DV_COUNT>[id15] matches {
                                        lower matches { DV_COUNT[id16] matches { magnitude matches {|>=0|} } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

terminology
    term_definitions = <
        ["en"] = <
            ["id1"] = <text = <"Note"> description = <"x">>
            ["id14"] = <text = <"Extra"> description = <"x">>
        >
    >
"#;

#[test]
fn single_valued_attributes_have_one_object_without_its_id() {
    let template = Template::parse_opt2(NOTE).unwrap();
    let web = WebTemplate::of(&template);
    let context = web.tree.child("context").unwrap();
    let interval = context.child("extra").unwrap();
    for node in [
        Some(&web.tree),
        web.tree.child("category"),
        Some(context),
        interval.child("lower"),
    ] {
        assert_eq!(node.unwrap().occurrences.upper, Some(1));
    }
    // An ELEMENT of a list may be repeated.
    assert_eq!(interval.occurrences.upper, None);
}
