//! The core in wasm, in a browser's worker.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod cases;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);
