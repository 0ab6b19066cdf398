//! Tests of proportions whose denominator the template fixes.

use super::*;

/// The template with a proportion of these kinds, whose denominator is 60.
fn sixtieths(kinds: &str) -> (Template, WebTemplate) {
    let attribute = |name: &str, kind: &str, rule: &str| {
        format!(
            r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>{name}</rm_attribute_name>
            <children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>{kind}</rm_type_name><node_id/>
            <item xsi:type="C_{kind}">{rule}</item></children></attributes>"#
        )
    };
    let range = "<range><lower_included>true</lower_included><upper_included>true</upper_included>\
                 <lower>60</lower><upper>60</upper></range>";
    let start = SMALL
        .find(r#"<children xsi:type="C_DV_QUANTITY">"#)
        .unwrap();
    let end = start + SMALL[start..].find("</children>").unwrap();
    parse_both(&format!(
        r#"{}<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_PROPORTION</rm_type_name><node_id/>{}{}{}"#,
        &SMALL[..start],
        attribute("denominator", "REAL", range),
        attribute("type", "INTEGER", kinds),
        &SMALL[end..]
    ))
}

#[test]
fn a_fixed_denominator_completes_a_proportion() {
    for kinds in ["<list>0</list>", "<list>0</list><list>3</list>", ""] {
        let (template, web) = sixtieths(kinds);
        for key in [json!({ "": 15 }), json!({ "|numerator": 15 })] {
            let keys = key.as_object().unwrap().iter();
            let keys = keys.map(|(key, value)| (format!("{AT}{key}"), value.clone()));
            let text = flat(&Value::Object(keys.collect()));
            let tree = read(&text, Shape::Flat, &template, &web, NOW).unwrap();
            let expected =
                json!({ "_type": "DV_PROPORTION", "numerator": 15, "denominator": 60, "type": 0 });
            let document = canonical(&tree);
            let found = document.pointer("/content/0/data/events/0/data/items/0/value");
            assert_eq!(found, Some(&expected), "{kinds} {key}");
        }
    }
}
