//! JavaScript bindings of the wasm modules. The program `write-bindings` of this package writes
//! them (`write_bindings.rs`).

use std::path::Path;

use crate::process::{command, root, run_silently};
use crate::tools::bindings_writer;

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
    let name = match host {
        BindingsFor::Worker => "worker",
        BindingsFor::Browser => "browser",
    };
    run_silently(&mut command(bindings_writer()?, &[name, module, folder]))?;
    match host {
        // The runtime has no source phase imports: a plain import is a compiled module there.
        BindingsFor::Worker => edit(&root().join(folder).join("aqlite_worker.js"), |glue| {
            glue.replace("import source ", "import ")
        }),
        BindingsFor::Browser => Ok(()),
    }
}

fn edit(path: &Path, change: impl FnOnce(&str) -> String) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    std::fs::write(path, change(&text)).map_err(|e| format!("{}: {e}", path.display()))
}
