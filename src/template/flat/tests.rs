//! Spellings of values, defaults, mistakes, and what comes back.

use super::*;
use crate::rm::json;
use crate::template::{ExampleKind, example};
use serde_json::{Value, json};

const SMALL: &str = include_str!("../../../tests/cases/template/small.opt");
const NOW: &str = "2026-11-20T09:30:00Z";
/// The one ELEMENT of the template.
const AT: &str = "encounter/body_weight/events_at0003:0/weight";

fn formed(text: &str) -> (Template, WebTemplate) {
    let template = Template::parse(text).unwrap();
    let web = WebTemplate::of(&template);
    (template, web)
}

/// The template without a constraint on the value of its ELEMENT, which then takes every type.
fn open() -> (Template, WebTemplate) {
    let named = SMALL.find("<rm_attribute_name>value</rm_attribute_name>").unwrap();
    let start = SMALL[..named].rfind("<attributes").unwrap();
    let end = named + SMALL[named..].find("</attributes>").unwrap() + "</attributes>".len();
    formed(&format!("{}{}", &SMALL[..start], &SMALL[end..]))
}

/// A document with these members, whose keys stand below the ELEMENT where they begin with `/` or `|`.
fn flat(members: &Value) -> String {
    let mut all = json!({ "ctx/territory": "SE", "ctx/composer_self": true });
    for (key, value) in members.as_object().unwrap() {
        let key = if key.starts_with(['/', '|']) { format!("{AT}{key}") } else { key.clone() };
        all[key] = value.clone();
    }
    all.to_string()
}

fn canonical(tree: &Tree) -> Value {
    serde_json::from_str(&json::write(tree.root().unwrap())).unwrap()
}

#[test]
fn values_are_spelled_in_many_ways() {
    let (template, web) = open();
    let code = |terminology: &str, code: &str| json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": terminology }, "code_string": code });
    let coded = json!({ "_type": "DV_CODED_TEXT", "value": "Fever", "defining_code": code("SNOMED-CT", "386661006") });
    let cases = [
        (json!({ "/text_value": "rest" }), json!({ "_type": "DV_TEXT", "value": "rest" })),
        (json!({ "/value2": "rest" }), json!({ "_type": "DV_TEXT", "value": "rest" })),
        (
            json!({ "/coded_text_value|code": "386661006", "/coded_text_value|value": "Fever", "/coded_text_value|terminology": "SNOMED-CT" }),
            coded.clone(),
        ),
        (json!({ "/coded_text_value": "SNOMED-CT::386661006::Fever" }), coded.clone()),
        (json!({ "/text_value|code": "386661006", "/text_value|value": "Fever", "/text_value|terminology": "SNOMED-CT" }), coded.clone()),
        (
            json!({ "/quantity_value|magnitude": 1.5, "/quantity_value|unit": "kg" }),
            json!({ "_type": "DV_QUANTITY", "magnitude": 1.5, "units": "kg" }),
        ),
        (json!({ "/quantity_value": "1.5", "/quantity_value|units": "kg" }), json!({ "_type": "DV_QUANTITY", "magnitude": 1.5, "units": "kg" })),
        (json!({ "/count_value": "5" }), json!({ "_type": "DV_COUNT", "magnitude": 5 })),
        (json!({ "/count_value|magnitude": 5 }), json!({ "_type": "DV_COUNT", "magnitude": 5 })),
        (json!({ "/boolean_value": "false" }), json!({ "_type": "DV_BOOLEAN", "value": false })),
        (
            json!({ "/proportion_value|numerator": 1, "/proportion_value|denominator": 2, "/proportion_value|type": 0, "/proportion_value": 0.5 }),
            json!({ "_type": "DV_PROPORTION", "numerator": 1, "denominator": 2, "type": 0 }),
        ),
        (json!({ "/proportion_value": 12 }), json!({ "_type": "DV_PROPORTION", "numerator": 12, "denominator": 100, "type": 2 })),
        (json!({ "/duration_value": "P1Y" }), json!({ "_type": "DV_DURATION", "value": "P1Y" })),
        (
            json!({ "/duration_value|hour": 1, "/duration_value|minute": "30", "/duration_value|day": 2 }),
            json!({ "_type": "DV_DURATION", "value": "P2DT1H30M" }),
        ),
        (json!({ "/date_time_value": "now" }), json!({ "_type": "DV_DATE_TIME", "value": NOW })),
        (json!({ "/date_value": "2026-11" }), json!({ "_type": "DV_DATE", "value": "2026-11" })),
        (json!({ "/identifier_value": "17", "/identifier_value|issuer": "ward" }), json!({ "_type": "DV_IDENTIFIER", "id": "17", "issuer": "ward" })),
        (json!({ "/uri_value": "https://example.org" }), json!({ "_type": "DV_URI", "value": "https://example.org" })),
        (
            json!({ "/parsable_value": "a b", "/parsable_value|formalism": "text/plain" }),
            json!({ "_type": "DV_PARSABLE", "value": "a b", "formalism": "text/plain" }),
        ),
        (
            json!({ "/quantity_value|magnitude": 1, "/quantity_value|unit": "kg", "/quantity_value/_normal_range/lower|magnitude": 0, "/quantity_value/_normal_range/lower|unit": "kg" }),
            json!({ "_type": "DV_QUANTITY", "magnitude": 1, "units": "kg", "normal_range": {
                "_type": "DV_INTERVAL", "lower": { "_type": "DV_QUANTITY", "magnitude": 0, "units": "kg" },
                "lower_unbounded": false, "lower_included": true, "upper_unbounded": true, "upper_included": false } }),
        ),
        (json!({ "/count_value|raw": { "_type": "DV_COUNT", "magnitude": 7 } }), json!({ "_type": "DV_COUNT", "magnitude": 7 })),
        (json!({ "/count_value|raw": "{\"@class\":\"DV_COUNT\",\"magnitude\":7}" }), json!({ "_type": "DV_COUNT", "magnitude": 7 })),
    ];
    for (members, expected) in cases {
        let text = flat(&members);
        let tree = read(&text, Shape::Flat, &template, &web, NOW).unwrap_or_else(|f| panic!("{members}: {f:?}"));
        let found = canonical(&tree).pointer("/content/0/data/events/0/data/items/0/value").cloned().unwrap_or_default();
        assert_eq!(found, expected, "{members}");
        comes_back(&tree, &template, &web);
    }
}

/// The document is the same behind both formats and both dialects.
fn comes_back(tree: &Tree, template: &Template, web: &WebTemplate) {
    for shape in [Shape::Flat, Shape::Structured] {
        for maker in [Maker::Better, Maker::Ehrbase] {
            let written = write(tree.root().unwrap(), shape, template, web, maker);
            let again = read(&written.text, shape, template, web, NOW).unwrap_or_else(|f| panic!("{f:?}: {}", written.text));
            assert_eq!(canonical(&again), canonical(tree), "{}", written.text);
            assert_eq!(written.left, Vec::<&str>::new(), "{}", written.text);
        }
    }
}

#[test]
fn what_is_left_open_is_filled() {
    let (template, web) = formed(SMALL);
    let filled = |members: Value| canonical(&read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap());
    let plain = filled(json!({ "|magnitude": 72.5 }));
    for (pointer, value) in [
        ("/language/code_string", "en"),
        ("/territory/code_string", "SE"),
        ("/category/defining_code/code_string", "433"),
        ("/composer/_type", "PARTY_SELF"),
        ("/context/start_time/value", NOW),
        ("/context/setting/defining_code/code_string", "238"),
        ("/content/0/encoding/code_string", "UTF-8"),
        ("/content/0/subject/_type", "PARTY_SELF"),
        ("/content/0/data/origin/value", NOW),
        ("/content/0/data/events/0/time/value", NOW),
        ("/content/0/data/events/0/data/items/0/value/units", "kg"),
    ] {
        assert_eq!(plain.pointer(pointer).and_then(Value::as_str), Some(value), "{pointer}");
    }
    let told = filled(json!({
        "|magnitude": 72.5, "ctx/time": "2026-01-02T03:04:05Z", "ctx/setting": "home", "ctx/location": "ward 3", "ctx/participation_name": "Berg",
        "ctx/participation_function": "nurse", "ctx/health_care_facility|name": "Hospital", "ctx/provider_name": "Lund",
        "encounter/body_weight/history_origin": "2026-01-01T00:00:00Z", "ctx/link|type": "issue", "ctx/link|meaning": "problem", "ctx/link|target": "ehr://x",
    }));
    for (pointer, value) in [
        ("/context/start_time/value", "2026-01-02T03:04:05Z"),
        ("/context/setting/defining_code/code_string", "225"),
        ("/context/location", "ward 3"),
        ("/context/participations/0/performer/name", "Berg"),
        ("/context/participations/0/function/value", "nurse"),
        ("/content/0/other_participations/0/performer/name", "Berg"),
        ("/context/health_care_facility/name", "Hospital"),
        ("/content/0/provider/name", "Lund"),
        ("/content/0/data/origin/value", "2026-01-01T00:00:00Z"),
        ("/content/0/data/events/0/time/value", "2026-01-01T00:00:00Z"),
        ("/content/0/links/0/target/value", "ehr://x"),
    ] {
        assert_eq!(told.pointer(pointer).and_then(Value::as_str), Some(value), "{pointer}");
    }
}

#[test]
fn many_keys_are_refused_at_once() {
    let (template, web) = formed(SMALL);
    let members: String = (0..100_000).map(|i| format!("\"{AT}:{i}|magnitude\":1,")).collect();
    let found = read(&format!("{{{members}\"ctx/territory\":\"SE\"}}"), Shape::Flat, &template, &web, NOW).unwrap_err();
    assert!(found.len() == 1 && found[0].message.contains("too many keys"), "{found:?}");
    let deep = format!("{}1{}", r#"{"encounter":"#.repeat(10_000), "}".repeat(10_000));
    assert!(read(&deep, Shape::Structured, &template, &web, NOW).is_err());
    let unknown: String = (0..1_000).map(|i| format!("\"encounter/x{i}\":1,")).collect();
    assert_eq!(read(&format!("{{{unknown}\"ctx/territory\":\"SE\"}}"), Shape::Flat, &template, &web, NOW).unwrap_err().len(), MAX_FINDINGS);
}

#[test]
fn the_right_key_is_the_first_candidate_for_a_mistyped_one() {
    let (mut tried, mut right) = (0, 0);
    for text in [include_str!("../../../www/samples/vital_signs.opt"), include_str!("../../../www/samples/laboratory_report.opt")] {
        let (template, web) = formed(text);
        let tree = example(&template, ExampleKind::Full, None, NOW).unwrap();
        let Written { text, .. } = write(tree.root().unwrap(), Shape::Flat, &template, &web, Maker::Better);
        let all: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        for (key, value) in all.iter().filter(|(k, _)| k.matches('/').count() > 1 && !k.contains("|raw")) {
            let path = key.split('|').next().unwrap();
            let (front, last) = path.rsplit_once('/').unwrap();
            let middle = last.char_indices().nth(last.split(':').next().unwrap().chars().count() / 2).map_or(0, |(at, _)| at);
            let mistyped = format!("{front}/{}q{}{}", &last[..middle], &last[middle..], &key[path.len()..]);
            let mut members = all.clone();
            members.remove(key);
            members.insert(mistyped, value.clone());
            let found = read(&Value::Object(members).to_string(), Shape::Flat, &template, &web, NOW).unwrap_err();
            let plain = |text: &str| text.split(['/', ',']).map(|s| s.split(':').next().unwrap_or_default()).collect::<Vec<_>>().join("/");
            let first = found.iter().find(|f| f.code == "FLT0101").and_then(|f| f.expected.clone()).unwrap_or_default();
            tried += 1;
            right += usize::from(plain(first.split(", ").next().unwrap_or_default()) == plain(path));
        }
    }
    assert!(tried > 100 && right * 100 >= tried * 95, "{right} of {tried}");
}
