//! The build for `cargo xtask serve`: worker and page below `target/local`, compiled in a minute or
//! two. The profile `serve` does without link-time optimization, and one run of cargo compiles the
//! core for both. `bundle` builds the deployed files.

use std::path::PathBuf;
use std::process::Stdio;

use crate::bindings::{self, BindingsFor};
use crate::bundle::{CORE, PageModules, bundle_page, bundle_worker};
use crate::process::{cargo, command, root, run_silently};
use crate::progress::step;
use crate::stamp::unless_fresh;
use crate::tools::{WASM, target};

/// The folder of everything that this build writes, relative to the root.
const FOLDER: &str = "target/local";
/// The folder of the modules and their bindings.
const WASM_FOLDER: &str = "target/local/wasm";
/// The size of the sample that a server starts with: EHRs and compositions.
const SAMPLE: [&str; 2] = ["36", "240"];

/// The folders that the server reads.
pub struct Built {
    /// The script and the module of the worker.
    pub worker: PathBuf,
    /// The files of the page.
    pub page: PathBuf,
    /// The sample, as `gen-data` writes it.
    pub sample: PathBuf,
}

impl Built {
    /// The folders of the build that is deployed.
    pub fn deployed() -> Built {
        Built {
            worker: root().join("dist/worker"),
            page: root().join("dist/www"),
            sample: root().join("target/sample"),
        }
    }
}

/// Builds worker, page and sample as far as they changed. `packages` installs the npm packages, and
/// does what else needs no compiler; it runs beside the compiler.
pub fn build(packages: impl FnOnce() -> Result<(), String> + Send) -> Result<Built, String> {
    beside(packages, modules)?;
    beside(worker, page)?;
    let folder = root().join(FOLDER);
    Ok(Built {
        worker: folder.join("worker"),
        page: folder.join("www"),
        sample: folder.join("sample"),
    })
}

/// Compiles the modules in one run of cargo, and writes their bindings.
fn modules() -> Result<(), String> {
    let inputs = [
        &CORE[..],
        &["worker", "www/arrow", "www/wasm", "xtask/files.rs"],
    ]
    .concat();
    let bindings = root().join(WASM_FOLDER).join("aqlite_wasm.js");
    unless_fresh("serve-modules", &inputs, &bindings, || {
        target(WASM)?;
        step(
            "compile worker and page to WebAssembly",
            "2 minutes",
            || {
                let packages = ["aqlite-worker", "aqlite-wasm", "aqlite-arrow-wasm"];
                let packages = packages.into_iter().flat_map(|name| ["--package", name]);
                let mut build = cargo(&["build", "--lib", "--target", WASM, "--profile", "serve"]);
                build
                    .args(packages)
                    .args(["--features", "aqlite-wasm/files"]);
                run_silently(build.stderr(Stdio::inherit()))
            },
        )?;
        step("write the bindings", "5 s", || {
            let page = || {
                bind(BindingsFor::Browser, "aqlite_wasm")?;
                bind(BindingsFor::Browser, "aqlite_arrow_wasm")
            };
            beside(|| bind(BindingsFor::Worker, "aqlite_worker"), page)
        })
    })
}

fn bind(host: BindingsFor, name: &str) -> Result<(), String> {
    let module = format!("target/{WASM}/serve/{name}.wasm");
    bindings::write(host, &module, WASM_FOLDER)
}

/// Bundles the worker.
fn worker() -> Result<(), String> {
    let script = root().join(FOLDER).join("worker/index.js");
    let inputs = [&CORE[..], &["worker", "package-lock.json"]].concat();
    unless_fresh("serve-worker", &inputs, &script, || {
        step("bundle the worker", "1 s", || {
            bundle_worker(WASM_FOLDER, &format!("{FOLDER}/worker"))
        })
    })
}

/// Bundles the page. The module writes the OpenAPI document and the sample, so that the core is not
/// compiled for this machine as well.
fn page() -> Result<(), String> {
    let index = root().join(FOLDER).join("www/index.html");
    let inputs = [&CORE[..], &["www", "package-lock.json", "xtask/files.mjs"]].concat();
    unless_fresh("serve-page", &inputs, &index, || {
        step("write the sample, bundle the page", "5 s", || {
            let [ehrs, compositions] = SAMPLE;
            let files = ["xtask/files.mjs", "--wasm", WASM_FOLDER, "--out", FOLDER];
            let size = ["--ehrs", ehrs, "--compositions", compositions];
            run_silently(command("node", &files).args(size))?;
            let modules = PageModules {
                core: WASM_FOLDER,
                tables: WASM_FOLDER,
            };
            bundle_page(
                modules,
                &format!("{FOLDER}/www"),
                &format!("{FOLDER}/openapi.json"),
            )
        })
    })
}

/// Runs two functions at the same time. Returns the first error.
fn beside(
    one: impl FnOnce() -> Result<(), String> + Send,
    other: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        one.join()
            .map_err(|_| String::from("a step of the build panicked"))??;
        other
    })
}
