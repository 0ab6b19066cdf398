//! The core in wasm, in a browser's worker.

mod cases;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);
