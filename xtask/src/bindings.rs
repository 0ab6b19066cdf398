//! JavaScript bindings of the wasm modules. The crate wasm-bindgen-cli-support writes them, which
//! its command line also calls. `=` in Cargo.toml pins it to the version of wasm-bindgen that the
//! code links, and cargo refuses two versions: both link the native library `wasm_bindgen`.

use std::path::Path;

use wasm_bindgen_cli_support::Bindgen;

use crate::process::root;

/// The host whose conventions the bindings follow.
#[derive(Clone, Copy)]
pub enum BindingsFor {
    /// Cloudflare's runtime: a module that imports the wasm file, and can start again after a
    /// panic.
    Worker,
    /// Browsers: a module with an initialization function, and its types.
    Browser,
}

/// Writes the bindings of a module into a folder. Both paths are relative to the root. The files
/// are named after the module.
pub fn write(host: BindingsFor, module: &str, folder: &str) -> Result<(), String> {
    configured(host)
        .and_then(|mut bindgen| {
            bindgen
                .input_path(root().join(module))
                .remove_name_section(true)
                .omit_default_module_path(false)
                .generate(root().join(folder))
        })
        .map_err(|error| format!("bindings of {module}: {error:#}"))?;
    match host {
        // The runtime has no source phase imports: a plain import is a compiled module there.
        BindingsFor::Worker => edit(&root().join(folder).join("aqlite_worker.js"), |glue| {
            glue.replace("import source ", "import ")
        }),
        BindingsFor::Browser => Ok(()),
    }
}

/// Returns the generator with the options of a host.
fn configured(host: BindingsFor) -> anyhow::Result<Bindgen> {
    let mut bindgen = Bindgen::new();
    match host {
        BindingsFor::Worker => bindgen
            .module(true)?
            .typescript(false)
            .reset_state_function(true)
            .force_enable_abort_handler(true),
        BindingsFor::Browser => bindgen
            .web(true)?
            .typescript(true)
            .remove_producers_section(true),
    };
    Ok(bindgen)
}

fn edit(path: &Path, change: impl FnOnce(&str) -> String) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    std::fs::write(path, change(&text)).map_err(|e| format!("{}: {e}", path.display()))
}
