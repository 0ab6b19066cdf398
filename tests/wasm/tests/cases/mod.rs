//! The checks for both hosts.

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
fn refuses_what_is_nested_too_deep() {
    let deep = format!("{}{}", "{\"content\":[".repeat(10_000), "]}".repeat(10_000));
    assert_eq!(round_trip(&deep), None);
}
