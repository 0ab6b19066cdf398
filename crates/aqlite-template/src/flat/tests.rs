//! Tests of spellings of values, defaults, errors and round trips.

use super::*;
use crate::web::WebNode;
use crate::{ExampleKind, example};
use aqlite_rm::diag::Severity;
use aqlite_rm::json;
use serde_json::{Value, json};

mod absent;
mod defaults;
mod dialects;
mod errors;
mod matching;
mod names;
mod ordinal;
mod proportion;
mod spellings;

const SMALL: &str = include_str!("../../../../tests/cases/template/small.opt");
const NOW: &str = "2026-11-20T09:30:00Z";
/// The one ELEMENT of the template.
const AT: &str = "encounter/body_weight/events_at0003:0/weight";

fn parse_both(text: &str) -> (Template, WebTemplate) {
    let template = Template::parse(text).unwrap();
    let web = WebTemplate::of(&template);
    (template, web)
}

/// The template without a constraint on the value of its ELEMENT, which then accepts every type.
fn unconstrained() -> (Template, WebTemplate) {
    let named = SMALL
        .find("<rm_attribute_name>value</rm_attribute_name>")
        .unwrap();
    let start = SMALL[..named].rfind("<attributes").unwrap();
    let end = named + SMALL[named..].find("</attributes>").unwrap() + "</attributes>".len();
    parse_both(&format!("{}{}", &SMALL[..start], &SMALL[end..]))
}

/// A document with these members. Keys that start with `/` or `|` are relative to the ELEMENT.
fn flat(members: &Value) -> String {
    let mut all = json!({ "ctx/territory": "SE", "ctx/composer_self": true });
    for (key, value) in members.as_object().unwrap() {
        let key = if key.starts_with(['/', '|']) {
            format!("{AT}{key}")
        } else {
            key.clone()
        };
        all[key] = value.clone();
    }
    all.to_string()
}

fn canonical(tree: &Tree) -> Value {
    serde_json::from_str(&json::write(tree.root().unwrap())).unwrap()
}

/// Spellings of a value in FLAT, and the value as canonical JSON. `NOW` is the time of reading.
const SPELLINGS: &str = r#"
{ "/text_value": "rest" }
  => { "_type": "DV_TEXT", "value": "rest" }
{ "/value2": "rest" }
  => { "_type": "DV_TEXT", "value": "rest" }
{ "/coded_text_value|code": "386661006", "/coded_text_value|value": "Fever", "/coded_text_value|terminology": "SNOMED-CT" }
  => {"_type": "DV_CODED_TEXT", "value": "Fever", "defining_code": {"_type": "CODE_PHRASE", "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "SNOMED-CT"}, "code_string": "386661006"}}
{ "/coded_text_value|386661006": true, "/coded_text_value|value": "Fever", "/coded_text_value|terminology": "SNOMED-CT" }
  => {"_type": "DV_CODED_TEXT", "value": "Fever", "defining_code": {"_type": "CODE_PHRASE", "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "SNOMED-CT"}, "code_string": "386661006"}}
{ "/coded_text_value": "SNOMED-CT::386661006::Fever" }
  => {"_type": "DV_CODED_TEXT", "value": "Fever", "defining_code": {"_type": "CODE_PHRASE", "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "SNOMED-CT"}, "code_string": "386661006"}}
{ "/text_value|code": "386661006", "/text_value|value": "Fever", "/text_value|terminology": "SNOMED-CT" }
  => {"_type": "DV_CODED_TEXT", "value": "Fever", "defining_code": {"_type": "CODE_PHRASE", "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "SNOMED-CT"}, "code_string": "386661006"}}
{ "/quantity_value|magnitude": 1.5, "/quantity_value|unit": "kg" }
  => { "_type": "DV_QUANTITY", "magnitude": 1.5, "units": "kg" }
{ "/quantity_value": "1.5", "/quantity_value|units": "kg" }
  => { "_type": "DV_QUANTITY", "magnitude": 1.5, "units": "kg" }
{ "/count_value": "5" }
  => { "_type": "DV_COUNT", "magnitude": 5 }
{ "/count_value|magnitude": 5 }
  => { "_type": "DV_COUNT", "magnitude": 5 }
{ "/boolean_value": "false" }
  => { "_type": "DV_BOOLEAN", "value": false }
{ "/proportion_value|numerator": 1, "/proportion_value|denominator": 2, "/proportion_value|type": 0, "/proportion_value": 0.5 }
  => { "_type": "DV_PROPORTION", "numerator": 1, "denominator": 2, "type": 0 }
{ "/proportion_value": 35, "/proportion_value|type": 2 }
  => { "_type": "DV_PROPORTION", "numerator": 35, "denominator": 100, "type": 2 }
{ "/proportion_value": 0.2, "/proportion_value|type": 0 }
  => { "_type": "DV_PROPORTION", "numerator": 0.2, "denominator": 1, "type": 0 }
{ "/proportion_value": 0.25, "/proportion_value|numerator": 2, "/proportion_value|type": 0, "/proportion_value|denominator": 8 }
  => { "_type": "DV_PROPORTION", "numerator": 2, "denominator": 8, "type": 0 }
{ "/proportion_value|numerator": 1, "/proportion_value|denominator": 4 }
  => { "_type": "DV_PROPORTION", "numerator": 1, "denominator": 4, "type": 0 }
{ "/proportion_value|numerator": 30 }
  => { "_type": "DV_PROPORTION", "numerator": 30, "denominator": 100, "type": 2 }
{ "/multimedia_value|mediatype": "image/png", "/multimedia_value|data": "AAEC" }
  => { "_type": "DV_MULTIMEDIA", "media_type": { "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "IANA_media-types" }, "code_string": "image/png" }, "size": 3, "data": "AAEC" }
{ "/multimedia_value|mediatype": "image/png", "/multimedia_value|data": "AAECAw==", "/multimedia_value|size": 0 }
  => { "_type": "DV_MULTIMEDIA", "media_type": { "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "IANA_media-types" }, "code_string": "image/png" }, "size": 0, "data": "AAECAw==" }
{ "/duration_value": "P1Y" }
  => { "_type": "DV_DURATION", "value": "P1Y" }
{ "/duration_value|hour": 1, "/duration_value|minute": "30", "/duration_value|day": 2 }
  => { "_type": "DV_DURATION", "value": "P2DT1H30M" }
{ "/duration_value|second": 1.5, "/duration_value|minute": "2.0" }
  => { "_type": "DV_DURATION", "value": "PT2M1.5S" }
{ "/count_value": "5.0" }
  => { "_type": "DV_COUNT", "magnitude": 5 }
{ "/count_value": 7.00 }
  => { "_type": "DV_COUNT", "magnitude": 7 }
{ "/boolean_value": "TRUE" }
  => { "_type": "DV_BOOLEAN", "value": true }
{ "/boolean_value": "fAlse" }
  => { "_type": "DV_BOOLEAN", "value": false }
{ "/quantity_value|magnitude": "1.5E2", "/quantity_value|unit": "" }
  => { "_type": "DV_QUANTITY", "magnitude": 150.0, "units": "" }
{ "/count_value": 5, "/count_value/_other_reference_ranges:0/lower": 1, "/count_value/_other_reference_ranges:0/upper": 9, "/count_value/_other_reference_ranges:0|lower_included": false, "/count_value/_other_reference_ranges:0/meaning": "usual" }
  => { "_type": "DV_COUNT", "magnitude": 5, "other_reference_ranges": [{ "_type": "REFERENCE_RANGE", "meaning": { "_type": "DV_TEXT", "value": "usual" }, "range": { "_type": "DV_INTERVAL", "lower": { "_type": "DV_COUNT", "magnitude": 1 }, "upper": { "_type": "DV_COUNT", "magnitude": 9 }, "lower_included": false, "lower_unbounded": false, "upper_unbounded": false, "upper_included": true } }] }
{ "/date_time_value": "now" }
  => { "_type": "DV_DATE_TIME", "value": "NOW" }
{ "/date_value": "2026-11" }
  => { "_type": "DV_DATE", "value": "2026-11" }
{ "/identifier_value": "17", "/identifier_value|issuer": "ward" }
  => { "_type": "DV_IDENTIFIER", "id": "17", "issuer": "ward" }
{ "/uri_value": "https://example.org" }
  => { "_type": "DV_URI", "value": "https://example.org" }
{ "/parsable_value": "a b", "/parsable_value|formalism": "text/plain" }
  => { "_type": "DV_PARSABLE", "value": "a b", "formalism": "text/plain" }
{ "/quantity_value|magnitude": 1, "/quantity_value|unit": "kg", "/quantity_value/_normal_range/lower|magnitude": 0, "/quantity_value/_normal_range/lower|unit": "kg" }
  => { "_type": "DV_QUANTITY", "magnitude": 1, "units": "kg", "normal_range": { "_type": "DV_INTERVAL", "lower": { "_type": "DV_QUANTITY", "magnitude": 0, "units": "kg" }, "lower_unbounded": false, "lower_included": true, "upper_unbounded": true, "upper_included": false } }
{ "/quantity_value": "1.50", "/quantity_value|magnitude": 1.5, "/quantity_value|unit": "kg", "/quantity_value|units": "kg" }
  => { "_type": "DV_QUANTITY", "magnitude": 1.5, "units": "kg" }
{ "/count_value": 5, "/count_value|magnitude": "5.0" }
  => { "_type": "DV_COUNT", "magnitude": 5 }
{ "/coded_text_value": "386661006", "/coded_text_value|code": "386661006", "/coded_text_value|value": "Fever", "/coded_text_value|terminology": "SNOMED-CT" }
  => {"_type": "DV_CODED_TEXT", "value": "Fever", "defining_code": {"_type": "CODE_PHRASE", "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "SNOMED-CT"}, "code_string": "386661006"}}
{ "/coded_text_value": "Fever", "/coded_text_value|code": "386661006", "/coded_text_value|value": "Fever", "/coded_text_value|terminology": "SNOMED-CT" }
  => {"_type": "DV_CODED_TEXT", "value": "Fever", "defining_code": {"_type": "CODE_PHRASE", "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "SNOMED-CT"}, "code_string": "386661006"}}
{ "/state_value|code": "245", "/state_value|value": "active", "/state_value|terminology": "openehr" }
  => { "_type": "DV_STATE", "value": { "_type": "DV_CODED_TEXT", "value": "active", "defining_code": { "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "openehr" }, "code_string": "245" } }, "is_terminal": false }
{ "/state_value|code": "532", "/state_value|terminology": "openehr", "/state_value|is_terminal": true }
  => { "_type": "DV_STATE", "value": { "_type": "DV_CODED_TEXT", "value": "completed", "defining_code": { "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "openehr" }, "code_string": "532" } }, "is_terminal": true }
{ "/state_value|code": "x1", "/state_value|value": "In transit" }
  => { "_type": "DV_STATE", "value": { "_type": "DV_CODED_TEXT", "value": "In transit", "defining_code": { "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": "external" }, "code_string": "x1" } }, "is_terminal": false }
{ "/identifier_value": "17", "/identifier_value|id": "17" }
  => { "_type": "DV_IDENTIFIER", "id": "17" }
{ "/count_value|raw": { "_type": "DV_COUNT", "magnitude": 7 } }
  => { "_type": "DV_COUNT", "magnitude": 7 }
{ "/count_value|raw": "{\"@class\":\"DV_COUNT\",\"magnitude\":7}" }
  => { "_type": "DV_COUNT", "magnitude": 7 }
{ "|raw": { "_type": "DV_COUNT", "magnitude": 3 } }
  => { "_type": "DV_COUNT", "magnitude": 3 }
{ "|raw": "{\"@class\":\"DV_TEXT\",\"value\":\"rest\"}" }
  => { "_type": "DV_TEXT", "value": "rest" }
{ "|raw": { "_type": "ELEMENT", "archetype_node_id": "at0004", "name": { "_type": "DV_TEXT", "value": "Weight" }, "value": { "_type": "DV_COUNT", "magnitude": 3 } } }
  => { "_type": "DV_COUNT", "magnitude": 3 }
{ "/text_value|raw": "{\"@class\" : \"DV_TEXT\",\"value\":\"@class\"}" }
  => { "_type": "DV_TEXT", "value": "@class" }
"#;

#[test]
fn values_have_several_spellings() {
    let (template, web) = unconstrained();
    for case in SPELLINGS.replace("NOW", NOW).trim().split("\n{") {
        let (members, expected) = case.split_once("=>").unwrap();
        let members = format!("{{{}", members.trim_start_matches('{'));
        let (members, expected): (Value, Value) = (
            serde_json::from_str(&members).unwrap(),
            serde_json::from_str(expected).unwrap(),
        );
        let text = flat(&members);
        let tree = read(&text, Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{members}: {f:?}"));
        let found = canonical(&tree)
            .pointer("/content/0/data/events/0/data/items/0/value")
            .cloned()
            .unwrap_or_default();
        assert_eq!(found, expected, "{members}");
        assert_round_trip(&tree, &template, &web);
    }
}

/// Asserts that both formats in both dialects preserve the document.
fn assert_round_trip(tree: &Tree, template: &Template, web: &WebTemplate) {
    for shape in [Shape::Flat, Shape::Structured] {
        for dialect in [FlatDialect::Better, FlatDialect::Ehrbase] {
            let written = write(tree.root().unwrap(), shape, template, web, dialect).unwrap();
            let again = read(&written.text, shape, template, web, NOW)
                .unwrap_or_else(|f| panic!("{f:?}: {}", written.text));
            assert_eq!(canonical(&again), canonical(tree), "{}", written.text);
            assert_eq!(written.left, Vec::<&str>::new(), "{}", written.text);
        }
    }
}

#[test]
fn the_empty_member_is_the_main_value_in_structured() {
    let (template, web) = unconstrained();
    for (kid, value, expected) in [
        (
            "text_value",
            json!("rest"),
            json!({ "_type": "DV_TEXT", "value": "rest" }),
        ),
        (
            "count_value",
            json!(3),
            json!({ "_type": "DV_COUNT", "magnitude": 3 }),
        ),
        (
            "identifier_value",
            json!("17"),
            json!({ "_type": "DV_IDENTIFIER", "id": "17" }),
        ),
        (
            "uri_value",
            json!("https://example.org"),
            json!({ "_type": "DV_URI", "value": "https://example.org" }),
        ),
        (
            "boolean_value",
            json!(true),
            json!({ "_type": "DV_BOOLEAN", "value": true }),
        ),
    ] {
        let mut weight = json!({});
        weight[kid] = json!([{ "": value }]);
        let text = json!({ "ctx": { "territory": "SE", "composer_self": true }, "encounter": { "body_weight": [{ "events_at0003": [{ "weight": [weight] }] }] } });
        let tree = read(&text.to_string(), Shape::Structured, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{kid}: {f:?}"));
        assert_eq!(
            canonical(&tree).pointer("/content/0/data/events/0/data/items/0/value"),
            Some(&expected),
            "{kid}"
        );
    }
}

/// A document of the small template with these members set by pointer, written in FLAT.
fn written_with(members: &[(&str, Value)]) -> (Tree, String) {
    let (template, web) = parse_both(SMALL);
    let mut value = canonical(
        &read(
            &flat(&json!({ "|magnitude": 72.5 })),
            Shape::Flat,
            &template,
            &web,
            NOW,
        )
        .unwrap(),
    );
    for (pointer, member) in members {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = value
            .pointer_mut(parent)
            .unwrap_or_else(|| panic!("{pointer}"))
            .as_object_mut()
            .unwrap();
        if member.is_null() {
            parent.remove(key);
        } else {
            parent.insert(key.to_owned(), member.clone());
        }
    }
    let tree = json::read(&value.to_string(), aqlite_rm::class::Cls::COMPOSITION).unwrap();
    assert_round_trip(&tree, &template, &web);
    let text = write(
        tree.root().unwrap(),
        Shape::Flat,
        &template,
        &web,
        FlatDialect::Better,
    )
    .unwrap()
    .text;
    assert!(!text.contains("|raw"), "{text}");
    (tree, text)
}

#[test]
fn attributes_without_suffix_have_keys_of_their_own() {
    let identifier = |id: &str, issuer: Option<&str>| match issuer {
        Some(issuer) => json!({ "_type": "DV_IDENTIFIER", "id": id, "issuer": issuer }),
        None => json!({ "_type": "DV_IDENTIFIER", "id": id }),
    };
    let performer = json!({ "_type": "PARTY_IDENTIFIED", "name": "Berg", "identifiers": [identifier("1", None), identifier("2", Some("ward"))] });
    let reference = |id: Value| json!({ "_type": "PARTY_REF", "id": id, "namespace": "local", "type": "ORGANISATION" });
    let party = |id: Value| json!({ "_type": "PARTY_IDENTIFIED", "name": "Lund", "external_ref": reference(id) });
    let entry = "/content/0";
    for (members, key) in [
        (
            vec![(
                "/content/0/other_participations",
                json!([{ "_type": "PARTICIPATION", "function": { "_type": "DV_TEXT", "value": "nurse" }, "performer": performer }]),
            )],
            "_other_participation:0|identifiers_issuer:1\":\"ward",
        ),
        (
            vec![("/content/0/provider", json!({ "_type": "PARTY_SELF" }))],
            "body_weight/_provider|_type\":\"PARTY_SELF",
        ),
        (
            vec![(
                "/content/0/provider",
                party(json!({ "_type": "HIER_OBJECT_ID", "value": "1.2.3" })),
            )],
            "_provider/_external_ref/_id|_type\":\"HIER_OBJECT_ID",
        ),
        (
            vec![(
                "/content/0/provider",
                party(json!({ "_type": "GENERIC_ID", "value": "7", "scheme": "s" })),
            )],
            "_provider/_external_ref|type\":\"ORGANISATION",
        ),
        (
            vec![(
                "/content/0/data/uid",
                json!({ "_type": "HIER_OBJECT_ID", "value": "00000000-0000-4000-8000-000000000001" }),
            )],
            "body_weight/_data/_uid",
        ),
        (
            vec![(
                "/content/0/data/period",
                json!({ "_type": "DV_DURATION", "value": "PT1H" }),
            )],
            "body_weight/_data/_period\":\"PT1H",
        ),
        (vec![("/context", Value::Null)], "context|_absent\":true"),
    ] {
        let (_, text) = written_with(&members);
        assert!(text.contains(key), "{entry} {key}: {text}");
    }
}

#[test]
fn a_facility_of_the_context_has_its_own_scheme() {
    let (template, web) = parse_both(SMALL);
    let text = flat(
        &json!({ "|magnitude": 72.5, "ctx/id_scheme": "general", "ctx/id_namespace": "general", "ctx/composer_name": "Berg", "ctx/composer_id": "1",
        "ctx/health_care_facility|name": "Hospital", "ctx/health_care_facility|id": "9", "ctx/health_care_facility|id_scheme": "own",
        "ctx/health_care_facility|id_namespace": "houses" }),
    );
    let text = text.replace("\"ctx/composer_self\":true,", "");
    let found = canonical(
        &read(&text, Shape::Flat, &template, &web, NOW).unwrap_or_else(|f| panic!("{f:?}")),
    );
    let reference = |pointer: &str| {
        found
            .pointer(&format!("{pointer}/external_ref"))
            .map(|r| (r["id"]["scheme"].clone(), r["namespace"].clone()))
    };
    assert_eq!(
        reference("/context/health_care_facility"),
        Some((json!("own"), json!("houses")))
    );
    assert_eq!(
        reference("/composer"),
        Some((json!("general"), json!("general")))
    );
}

#[test]
fn a_context_without_a_node_is_completed() {
    let (template, web) = parse_both(SMALL);
    assert!(web.tree.child("context").is_none());
    for (key, value, attribute, expected) in [
        ("context/_location", "ward 3", "/location", "ward 3"),
        ("_context/_location", "ward 3", "/location", "ward 3"),
        (
            "context/_location",
            "ward 3",
            "/start_time/value",
            "2020-01-01T00:00:00Z",
        ),
        (
            "context/_end_time",
            "2020-01-02",
            "/setting/value",
            "other care",
        ),
        (
            "context/start_time",
            "2019-01-01T00:00:00Z",
            "/start_time/value",
            "2019-01-01T00:00:00Z",
        ),
        ("context/setting|code", "225", "/setting/value", "home"),
    ] {
        let key = format!("encounter/{key}");
        let members =
            json!({ "ctx/time": "2020-01-01T00:00:00Z", key.clone(): value, "|magnitude": 1 });
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{key}: {f:?}"));
        let document = canonical(&tree);
        let found = document.pointer(&format!("/context{attribute}"));
        assert_eq!(found, Some(&json!(expected)), "{key}");
        assert!(document.pointer("/context/start_time").is_some(), "{key}");
        assert_round_trip(&tree, &template, &web);
    }
}

#[test]
fn omitted_values_are_completed() {
    let (template, web) = parse_both(SMALL);
    let filled = |members: Value| {
        canonical(&read(&flat(&members), Shape::Flat, &template, &web, NOW).unwrap())
    };
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
        assert_eq!(
            plain.pointer(pointer).and_then(Value::as_str),
            Some(value),
            "{pointer}"
        );
    }
    let filled_in = filled(json!({
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
        (
            "/content/0/data/events/0/time/value",
            "2026-01-01T00:00:00Z",
        ),
        ("/content/0/links/0/target/value", "ehr://x"),
    ] {
        assert_eq!(
            filled_in.pointer(pointer).and_then(Value::as_str),
            Some(value),
            "{pointer}"
        );
    }
}

#[test]
fn codes_of_the_context_are_given_by_code_or_text() {
    let (template, web) = parse_both(SMALL);
    for (key, given, pointer, code, text) in [
        ("setting", "225", "/setting", "225", "home"),
        ("setting", "Home", "/setting", "225", "home"),
        ("setting", "openehr::225::home", "/setting", "225", "home"),
        (
            "participation_mode",
            "207",
            "/participations/0/mode",
            "207",
            "email",
        ),
        (
            "participation_mode",
            "E-post::openehr::207",
            "/participations/0/mode",
            "207",
            "E-post",
        ),
        (
            "participation_mode",
            "openehr::207::E-post",
            "/participations/0/mode",
            "207",
            "E-post",
        ),
        (
            "participation_mode",
            "telephone",
            "/participations/0/mode",
            "204",
            "telephone",
        ),
        (
            "participation_mode",
            "videoconference",
            "/participations/0/mode",
            "195",
            "videoconference",
        ),
    ] {
        let mut members = json!({ "|magnitude": 1, "ctx/participation_name": "Berg" });
        members[format!("ctx/{key}")] = json!(given);
        let tree = read(&flat(&members), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{given}: {f:?}"));
        let value = canonical(&tree)["context"]
            .pointer(pointer)
            .cloned()
            .unwrap_or_default();
        let found = (&value["defining_code"]["code_string"], &value["value"]);
        assert_eq!(found, (&json!(code), &json!(text)), "{given}");
        assert_round_trip(&tree, &template, &web);
    }
}

/// Returns the code and the key of every finding.
fn findings_of(
    text: &str,
    shape: Shape,
    template: &Template,
    web: &WebTemplate,
) -> Vec<(&'static str, String)> {
    let findings = read(text, shape, template, web, NOW)
        .err()
        .unwrap_or_default();
    findings.into_iter().map(|f| (f.code, f.path)).collect()
}

#[test]
fn the_mode_of_a_participation_is_in_its_group() {
    let (template, web) = parse_both(SMALL);
    let key = "encounter/body_weight/_other_participation:0";
    let findings = |mode: &str| {
        let members = json!({ "|magnitude": 1, format!("{key}|name"): "Berg", format!("{key}|function"): "nurse", format!("{key}|mode"): mode });
        findings_of(&flat(&members), Shape::Flat, &template, &web)
    };
    for mode in [
        "216",
        "Face-to-face communication",
        "Gespräch::openehr::216",
    ] {
        assert_eq!(findings(mode), [], "{mode}");
    }
    for mode in ["telegraph", "999", "telegraph::openehr::999"] {
        assert_eq!(findings(mode), [("FLT0104", String::from(key))], "{mode}");
    }
}

#[test]
fn strict_structured_requires_lists() {
    let (template, web) = parse_both(SMALL);
    let strict = |weight: Value| {
        let text = json!({ "ctx": { "territory": "SE", "composer_self": true }, "encounter": { "body_weight": [{ "events_at0003": [{ "weight": weight }] }] } });
        findings_of(&text.to_string(), Shape::StrictStructured, &template, &web)
    };
    assert_eq!(strict(json!([{ "|magnitude": 72.5 }])), []);
    assert_eq!(
        strict(json!({ "|magnitude": 72.5 })),
        [(
            "FLT0106",
            String::from("encounter/body_weight/events_at0003/weight")
        )]
    );
    let tree = read(
        &flat(&json!({ "|magnitude": 72.5 })),
        Shape::Flat,
        &template,
        &web,
        NOW,
    )
    .unwrap();
    let written = write(
        tree.root().unwrap(),
        Shape::Structured,
        &template,
        &web,
        FlatDialect::Better,
    )
    .unwrap()
    .text;
    assert_eq!(
        findings_of(&written, Shape::StrictStructured, &template, &web),
        []
    );
}

/// An order with two requests, the second of two activities, and an action that follows one of
/// them.
fn read_action_following(details: &Value) -> Result<Value, Vec<(&'static str, String)>> {
    let (template, web) = parse_both(include_str!("../../../../tests/cases/template/order.opt"));
    let mut all = json!({
        "ctx/territory": "SE", "ctx/composer_self": true, "report/_uid": "6ba7b810-9dad-41d1-80b4-00c04fd43001",
        "report/request:0/current_activity:0/service": "one", "report/request:1/_uid": "6ba7b810-9dad-41d1-80b4-00c04fd43002",
        "report/request:1/current_activity:0/service": "two", "report/request:1/current_activity:1/service": "three",
        "report/service:0/ism_transition/careflow_step|code": "at0005",
    });
    for (suffix, value) in details.as_object().unwrap() {
        all[format!("report/service:0/_instruction_details{suffix}")] = value.clone();
    }
    let tree = read(&all.to_string(), Shape::Flat, &template, &web, NOW).map_err(|found| {
        found
            .into_iter()
            .map(|f| (f.code, f.path))
            .collect::<Vec<_>>()
    })?;
    let findings = crate::validate(tree.root().unwrap(), &template);
    assert!(findings.is_empty(), "{findings:?}");
    assert_round_trip(&tree, &template, &web);
    Ok(canonical(&tree)["content"][2]["instruction_details"].take())
}

#[test]
fn an_action_names_its_instruction_by_key_uid_or_number() {
    let request = "/content[openEHR-EHR-INSTRUCTION.service_request.v1, 2]";
    for (details, activity) in [
        (
            json!({ "|wt_path": "report/request:1", "|activity_index": 1 }),
            "activities[at0001, 2]",
        ),
        (
            json!({ "|wt_path": "request:1", "|activity_index": "0" }),
            "activities[at0001, 1]",
        ),
        (
            json!({ "|instruction_uid": "6ba7b810-9dad-41d1-80b4-00c04fd43002", "|activity_index": 1 }),
            "activities[at0001, 2]",
        ),
        (
            json!({ "|instruction_index": 1, "|activity_id": "activities[at0001]" }),
            "activities[at0001]",
        ),
    ] {
        let found =
            read_action_following(&details).unwrap_or_else(|found| panic!("{details}: {found:?}"));
        assert_eq!(
            (&found["instruction_id"]["path"], &found["activity_id"]),
            (&json!(request), &json!(activity)),
            "{details}"
        );
        assert_eq!(
            found["instruction_id"]["id"]["value"],
            json!("6ba7b810-9dad-41d1-80b4-00c04fd43001"),
            "{details}"
        );
    }
    let first = read_action_following(&json!({ "|instruction_index": 0, "|composition_uid": "6ba7b810-9dad-41d1-80b4-00c04fd43009" })).unwrap();
    assert_eq!(
        (
            &first["activity_id"],
            &first["instruction_id"]["id"]["value"]
        ),
        (
            &json!("activities[at0001]"),
            &json!("6ba7b810-9dad-41d1-80b4-00c04fd43009")
        )
    );
    for (details, code) in [
        (json!({ "|wt_path": "report/request:7" }), "FLT0104"),
        (json!({ "|instruction_index": "x" }), "FLT0104"),
        (json!({ "|instruction_index": 1 }), "FLT0108"),
        (
            json!({ "|instruction_index": 1, "|activity_index": 2 }),
            "FLT0104",
        ),
        (json!({ "|instruction_nidex": 1 }), "FLT0102"),
    ] {
        assert_eq!(
            read_action_following(&details).unwrap_err()[0].0,
            code,
            "{details}"
        );
    }
}

#[test]
fn a_text_beside_a_code_is_a_further_element() {
    let many = include_str!("../../../../tests/cases/template/order.opt");
    let (once, bounds) = (
        many.rfind("<node_id>at0002</node_id>").unwrap(),
        "<upper_unbounded>true</upper_unbounded><lower>0</lower>",
    );
    let at = many[..once].rfind(bounds).unwrap();
    let single = format!(
        "{}<upper_unbounded>false</upper_unbounded><lower>0</lower><upper>1</upper>{}",
        &many[..at],
        &many[at + bounds.len()..]
    );
    let text = json!({ "ctx/territory": "SE", "ctx/composer_self": true, "report/service:0/what_was_done|code": "at0007", "report/service:0/what_was_done|other": "a bandage" });
    let (template, web) = parse_both(many);
    let tree = read(&text.to_string(), Shape::Flat, &template, &web, NOW)
        .unwrap_or_else(|f| panic!("{f:?}"));
    let items = canonical(&tree)["content"][0]["description"]["items"].take();
    assert_eq!(
        (&items[0]["value"]["value"], &items[1]["value"]),
        (
            &json!("Sample taken"),
            &json!({ "_type": "DV_TEXT", "value": "a bandage" })
        )
    );
    assert_round_trip(&tree, &template, &web);
    let (template, web) = parse_both(&single);
    assert_eq!(
        findings_of(&text.to_string(), Shape::Flat, &template, &web),
        [("FLT0107", String::from("report/service:0/what_was_done"))]
    );
}

#[test]
fn a_careflow_step_is_found_by_its_text() {
    let (template, web) = parse_both(include_str!("../../../../tests/cases/template/order.opt"));
    for (suffix, text, code) in [
        ("|value", "Service started", "at0005"),
        ("|value", "Service done", "at0006"),
        ("", "Service done", "at0006"),
        ("", "at0005", "at0005"),
    ] {
        let key = format!("report/service:0/ism_transition/careflow_step{suffix}");
        let text = json!({ "ctx/territory": "SE", "ctx/composer_self": true, key: text });
        let tree = read(&text.to_string(), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{text}: {f:?}"));
        let step = canonical(&tree)["content"][0]["ism_transition"]["careflow_step"].take();
        assert_eq!(step["defining_code"]["code_string"], code, "{text}");
        assert_eq!(step["defining_code"]["terminology_id"]["value"], "local");
    }
    let key = "report/service:0/ism_transition/careflow_step|value";
    let text = json!({ "ctx/territory": "SE", "ctx/composer_self": true, key: "Service lost" });
    assert_eq!(
        findings_of(&text.to_string(), Shape::Flat, &template, &web)[0].0,
        "FLT0108"
    );
}

#[test]
fn a_step_and_its_state_are_a_pair() {
    let (template, web) = parse_both(include_str!("../../../../tests/cases/template/order.opt"));
    for (state, step, text, transition, expected) in [
        ("245", "at0005", "Service started", None, vec![]),
        (
            "245",
            "at0005",
            "It has begun",
            Some("540"),
            vec![("TPL0512", Severity::Warning)],
        ),
        (
            "245",
            "at0006",
            "Service done",
            None,
            vec![
                ("TPL0507", Severity::Warning),
                ("TPL0510", Severity::Warning),
            ],
        ),
        (
            "245",
            "at0006",
            "Service done",
            Some("540"),
            vec![("TPL0507", Severity::Error), ("TPL0510", Severity::Error)],
        ),
        (
            "527",
            "at0006",
            "Service done",
            None,
            vec![("TPL0507", Severity::Error), ("TPL0510", Severity::Error)],
        ),
    ] {
        let mut all = json!({
            "ctx/territory": "SE", "ctx/composer_self": true, "report/service:0/ism_transition/current_state|code": state,
            "report/service:0/ism_transition/careflow_step|code": step, "report/service:0/ism_transition/careflow_step|value": text,
        });
        if let Some(transition) = transition {
            all["report/service:0/ism_transition/transition|code"] = json!(transition);
        }
        let tree = read(&all.to_string(), Shape::Flat, &template, &web, NOW)
            .unwrap_or_else(|f| panic!("{f:?}"));
        let findings = crate::validate(tree.root().unwrap(), &template);
        let found: Vec<_> = findings.iter().map(|f| (f.code, f.severity)).collect();
        assert_eq!(
            found, expected,
            "{state} {step} {transition:?}: {findings:?}"
        );
        let ending = transition.map_or_else(
            || format!("[active/openehr/{state}]"),
            |_| String::from("[start/openehr/540]"),
        );
        let is_named =
            |f: &Finding| f.code != "TPL0510" || f.message.ends_with(&ending) || state == "527";
        assert!(findings.iter().all(is_named), "{findings:?}");
    }
}
