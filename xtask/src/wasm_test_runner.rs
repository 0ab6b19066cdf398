//! Runs a binary of wasm-bindgen tests in Node or in a browser: the program
//! `wasm-bindgen-test-runner`, from its crate and in the version of Cargo.lock. `cargo xtask test`
//! compiles it with the feature `wasm-tests`, so other commands do not wait for it.
#![allow(missing_docs, reason = "a program, not a library")]

fn main() -> anyhow::Result<()> {
    wasm_bindgen_cli::wasm_bindgen_test_runner::run_cli_with_args(std::env::args_os())
}
