//! Writes the JavaScript bindings of a wasm module: `write-bindings worker|browser MODULE FOLDER`.
//!
//! The crate wasm-bindgen-cli-support does it, which the command line of wasm-bindgen also calls.
//! `=` in Cargo.toml pins it to the version of wasm-bindgen that the code links, and cargo refuses
//! two versions: both link the native library `wasm_bindgen`. This is a program of its own because
//! the crate takes half a minute to compile. `cargo xtask serve` does so beside the worker.
#![allow(missing_docs, reason = "a program, not a library")]

use anyhow::{Context, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, module, folder] = &args[..] else {
        bail!("expected a host, a module and a folder");
    };
    configured(host)?
        .input_path(module)
        .remove_name_section(true)
        .omit_default_module_path(false)
        .generate(folder)
        .with_context(|| format!("bindings of {module}"))
}

/// Returns the generator with the options of a host.
fn configured(host: &str) -> anyhow::Result<Bindgen> {
    let mut bindgen = Bindgen::new();
    match host {
        "worker" => bindgen
            .module(true)?
            .typescript(false)
            .reset_state_function(true)
            .force_enable_abort_handler(true),
        "browser" => bindgen
            .web(true)?
            .typescript(true)
            .remove_producers_section(true),
        _ => bail!("`{host}`: expected `worker` or `browser`"),
    };
    Ok(bindgen)
}
