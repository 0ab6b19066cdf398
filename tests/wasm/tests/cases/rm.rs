//! The Reference Model: readers, writers, storage form, validation and conversion of units.

use super::{TEMPLATE, WEIGHT};
use aqlite::rm::class::Cls;
use aqlite::rm::{json, units, validate, xml};
use aqlite::template::Template;
use aqlite_wasm_tests::{COMPOSITION, pack_and_unpack, round_trip};
use wasm_bindgen_test::wasm_bindgen_test;

/// Removes the white space between tokens, which the file has for readability.
fn compact(text: &str) -> String {
    text.lines().collect()
}

#[wasm_bindgen_test]
fn reads_and_writes_a_document_unchanged() {
    assert_eq!(
        round_trip(COMPOSITION).as_deref(),
        Some(compact(COMPOSITION).as_str())
    );
}

#[wasm_bindgen_test]
fn packs_and_unpacks_a_document_unchanged() {
    assert_eq!(pack_and_unpack(COMPOSITION), round_trip(COMPOSITION));
}

#[wasm_bindgen_test]
fn refuses_a_document_that_is_nested_too_deeply() {
    let deep = format!("{}{}", "{\"content\":[".repeat(10_000), "]}".repeat(10_000));
    assert_eq!(round_trip(&deep), None);
}

#[wasm_bindgen_test]
fn converts_a_document_to_xml_and_back_with_its_digits() {
    let tree = json::read(WEIGHT, Cls::COMPOSITION).unwrap();
    let written = xml::write(tree.root().unwrap(), "composition").unwrap();
    assert!(written.contains("<magnitude>72.50</magnitude>"));
    let again = xml::read(&written, Cls::COMPOSITION).unwrap();
    assert_eq!(Some(json::write(again.root().unwrap())), round_trip(WEIGHT));
}

#[wasm_bindgen_test]
fn a_composition_without_a_composer_is_a_finding_of_the_model() {
    let without = WEIGHT.replace("\"composer\"", "\"_composer\"");
    let found = match json::read(&without, Cls::COMPOSITION) {
        Ok(tree) => validate::validate(tree.root().unwrap()),
        Err(found) => found,
    };
    assert!(!found.is_empty());
    let tree = json::read(WEIGHT, Cls::COMPOSITION).unwrap();
    assert!(validate::validate(tree.root().unwrap()).is_empty());
}

#[wasm_bindgen_test]
fn a_unit_outside_the_template_is_a_finding_with_its_path() {
    let template = Template::parse(TEMPLATE).unwrap();
    let findings = |text: &str| {
        let tree = json::read(text, Cls::COMPOSITION).unwrap();
        aqlite::template::validate(tree.root().unwrap(), &template)
    };
    assert!(findings(WEIGHT).is_empty());
    let found = findings(&WEIGHT.replace("\"units\": \"kg\"", "\"units\": \"Cel\""));
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].path,
        "/content[0]/data/events[0]/data/items[0]/value"
    );
}

#[wasm_bindgen_test]
fn quantities_are_converted_within_a_property_only() {
    assert_eq!(units::convert(1.5, "kg", "g"), Some(1500.0));
    assert_eq!(units::convert(1.5, "kg", "mm[Hg]"), None);
}
