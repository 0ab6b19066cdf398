//! Tests of the spellings of ordinals.

use super::*;

/// The template with a list of ordinals. Two of them have the same text, two the same number, and
/// one has a number as its text.
fn ordinals() -> (Template, WebTemplate) {
    let item = |number: &str, code: &str| {
        format!(
            "<list><value>{number}</value><symbol><value/><defining_code><terminology_id><value>local</value></terminology_id><code_string>{code}</code_string></defining_code></symbol></list>"
        )
    };
    let list = [
        ("0", "at0010"),
        ("1", "at0011"),
        ("2", "at0012"),
        ("3", "at0013"),
        ("3", "at0014"),
    ];
    let list: String = list.map(|(number, code)| item(number, code)).concat();
    let start = SMALL
        .find(r#"<children xsi:type="C_DV_QUANTITY">"#)
        .unwrap();
    let end = start + SMALL[start..].find("</children>").unwrap();
    let text = format!(
        r#"{}<children xsi:type="C_DV_ORDINAL"><rm_type_name>DV_ORDINAL</rm_type_name><node_id/>{list}{}"#,
        &SMALL[..start],
        &SMALL[end..]
    );
    let term = |code: &str, text: &str| {
        format!(
            r#"<term_definitions code="{code}"><items id="text">{text}</items></term_definitions>"#
        )
    };
    let terms = [
        ("at0010", "None"),
        ("at0011", "Some"),
        ("at0012", "Some"),
        ("at0013", "7"),
        ("at0014", "All"),
    ];
    let terms = terms.map(|(code, text)| term(code, text)).concat();
    let last = r#"<term_definitions code="at0004">"#;
    parse_both(&text.replacen(last, &format!("{terms}{last}"), 1))
}

#[test]
fn an_ordinal_is_given_by_number_code_or_text() {
    let (template, web) = ordinals();
    for (members, expected) in [
        (json!({ "": 1 }), Ok((1, "at0011", "Some"))),
        (json!({ "": "2.0" }), Ok((2, "at0012", "Some"))),
        (json!({ "": "at0012" }), Ok((2, "at0012", "Some"))),
        (json!({ "": "at0012::Some" }), Ok((2, "at0012", "Some"))),
        (json!({ "": "Some" }), Err("FLT0108")),
        (
            json!({ "": "Some", "|ordinal": 2 }),
            Ok((2, "at0012", "Some")),
        ),
        (json!({ "": 3 }), Err("FLT0108")),
        (
            json!({ "": 3, "|code": "at0014" }),
            Ok((3, "at0014", "All")),
        ),
        (json!({ "": 3, "|value": "All" }), Ok((3, "at0014", "All"))),
        (json!({ "": 3, "|value": "None" }), Err("FLT0107")),
        (json!({ "": "7" }), Ok((3, "at0013", "7"))),
        (
            json!({ "": "Some", "|code": "at0012" }),
            Ok((2, "at0012", "Some")),
        ),
        (json!({ "": "None", "|code": "at0012" }), Err("FLT0107")),
        (json!({ "": 1, "|code": "at0012" }), Err("FLT0107")),
        (json!({ "": 1, "|ordinal": 2 }), Err("FLT0107")),
        (json!({ "": "Many" }), Err("FLT0104")),
        (
            json!({ "": "at0099", "|code": "at0099", "|ordinal": 9 }),
            Ok((9, "at0099", "at0099")),
        ),
        (json!({ "|value": "Some" }), Err("FLT0108")),
        (
            json!({ "|value": "Some", "|ordinal": 1 }),
            Ok((1, "at0011", "Some")),
        ),
        (
            json!({ "|value": "Some", "": 2 }),
            Ok((2, "at0012", "Some")),
        ),
        (
            json!({ "|value": "3", "|code": "at0014" }),
            Ok((3, "at0014", "All")),
        ),
        (json!({ "|value": "3" }), Err("FLT0108")),
        (json!({ "|value": "2" }), Ok((2, "at0012", "Some"))),
        (json!({ "|value": "at0012" }), Ok((2, "at0012", "Some"))),
        (
            json!({ "|value": "None", "|code": "at0012" }),
            Ok((2, "at0012", "None")),
        ),
        (
            json!({ "|value": "Many", "|code": "at0012" }),
            Ok((2, "at0012", "Many")),
        ),
        (json!({ "|ordinal": 2 }), Ok((2, "at0012", "Some"))),
        (json!({ "|ordinal": 3 }), Err("FLT0108")),
        (
            json!({ "|ordinal": 3, "|value": "7" }),
            Ok((3, "at0013", "7")),
        ),
        (json!({ "|ordinal": 3, "|value": "Few" }), Err("FLT0108")),
        (json!({ "|code": "at0013" }), Ok((3, "at0013", "7"))),
    ] {
        let keys = members.as_object().unwrap().iter();
        let keys = keys
            .map(|(key, value)| (format!("{AT}{key}"), value.clone()))
            .collect();
        let text = flat(&Value::Object(keys));
        let found = read(&text, Shape::Flat, &template, &web, NOW);
        let found = found.map(|tree| {
            let document = canonical(&tree);
            document
                .pointer("/content/0/data/events/0/data/items/0/value")
                .cloned()
        });
        let expected = expected.map(|(number, code, text)| {
            Some(json!({ "_type": "DV_ORDINAL", "value": number, "symbol": { "_type": "DV_CODED_TEXT", "value": text,
                "defining_code": { "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "local" }, "code_string": code } } }))
        });
        let found = found.map_err(|findings| findings[0].code);
        assert_eq!(found, expected, "{members}");
    }
}

#[test]
fn a_number_of_several_ordinals_is_refused_with_their_codes() {
    let (template, web) = ordinals();
    let text = flat(&json!({ "|ordinal": 3 }));
    let found = read(&text, Shape::Flat, &template, &web, NOW).unwrap_err();
    let listed =
        "several codes of the template fit, such as `at0013` (7), `at0014` (All): give `|code`";
    assert_eq!(found[0].message, listed);
    assert_eq!(found[0].expected, Some(format!("{AT}|code")));
    let text = flat(&json!({ "|code": "at0013" }));
    assert!(read(&text, Shape::Flat, &template, &web, NOW).is_ok());
}
