//! The build for `cargo xtask serve`, below `target/local`, in two stages: first the worker, so
//! that the REST interface answers soon, then the page and the sample, while the server runs. The
//! profile `serve` does without link-time optimization, and each stage compiles only the crates
//! that the earlier runs of cargo have not compiled. `bundle` builds the deployed files.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::bindings::{self, BindingsFor};
use crate::bundle::{CORE, PageModules, bundle_page, bundle_worker};
use crate::process::{cargo, command, root, run_silently};
use crate::progress::step;
use crate::stamp::Stamped;
use crate::tools::{WASM, bindings_writer, target};

/// The folder of everything that this build writes, relative to the root.
const FOLDER: &str = "target/local";
/// The folder of the modules and their bindings.
const WASM_FOLDER: &str = "target/local/wasm";
/// The packages of the first run of cargo.
const WORKER: [&str; 2] = ["--package", "aqlite-worker"];
/// The packages of the second run. The worker is one of them, because cargo unites the features of
/// the core over all of them: so it compiles the core once.
const PAGE: [&str; 6] = [
    "--package",
    "aqlite-worker",
    "--package",
    "aqlite-wasm",
    "--features",
    "aqlite-wasm/files",
];
/// The packages of the third run. The worker is none of them: Arrow turns on features of `chrono`
/// with which the core would be compiled once more.
const TABLES: [&str; 2] = ["--package", "aqlite-arrow-wasm"];
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
    /// Whether page and sample are up to date. Otherwise [`build_page`] builds them.
    pub has_page: bool,
}

impl Built {
    /// The folders of the build that is deployed.
    pub fn deployed() -> Built {
        Built {
            worker: root().join("dist/worker"),
            page: root().join("dist/www"),
            sample: root().join("target/sample"),
            has_page: true,
        }
    }
}

/// The first stage: builds the worker as far as it changed. `packages` installs the npm packages,
/// and does what else needs no compiler; it runs beside the compiler.
pub fn build_worker(packages: impl FnOnce() -> Result<(), String> + Send) -> Result<Built, String> {
    beside(packages, worker_module)?;
    bundled_worker()?;
    let folder = root().join(FOLDER);
    Ok(Built {
        worker: folder.join("worker"),
        page: folder.join("www"),
        sample: folder.join("sample"),
        has_page: files().is_fresh() && page().is_fresh(),
    })
}

/// The second stage: builds page and sample as far as they changed. `load` loads the sample; it
/// runs beside the compiler, as soon as the sample is complete. Cargo prints errors only, so that
/// the addresses of the server remain visible in the terminal.
pub fn build_page(load: impl FnOnce() + Send) -> Result<(), String> {
    page_module()?;
    write_files()?;
    let loaded = || {
        load();
        Ok(())
    };
    beside(loaded, tables_module)?;
    bundled_page()
}

/// Compiles the worker, and the program that writes its bindings, at the same time.
fn worker_module() -> Result<(), String> {
    module("serve-worker-module", &["worker"], "aqlite_worker.js").unless_fresh(|| {
        target(WASM)?;
        let writer = || {
            step("compile the writer of bindings", "1 minute", || {
                bindings_writer().map(drop)
            })
        };
        beside(writer, || {
            step("compile the worker to WebAssembly", "2 minutes", || {
                run_silently(&mut compiler(&WORKER))
            })
        })?;
        bind(BindingsFor::Worker, "aqlite_worker")
    })
}

/// Compiles the page's module of the core.
fn page_module() -> Result<(), String> {
    let sources = ["www/wasm", "xtask/files.rs"];
    module("serve-page-module", &sources, "aqlite_wasm.js").unless_fresh(|| {
        step("compile the page to WebAssembly", "10 s", || {
            run_silently(compiler(&PAGE).arg("--quiet"))?;
            bind(BindingsFor::Browser, "aqlite_wasm")
        })
    })
}

/// Compiles the page's module of tables.
fn tables_module() -> Result<(), String> {
    let bindings = "aqlite_arrow_wasm.js";
    module("serve-tables-module", &["www/arrow"], bindings).unless_fresh(|| {
        step(
            "compile the page's tables to WebAssembly",
            "1 minute",
            || {
                run_silently(compiler(&TABLES).arg("--quiet"))?;
                bind(BindingsFor::Browser, "aqlite_arrow_wasm")
            },
        )
    })
}

/// A module with its bindings, which is compiled from the core and other files.
fn module<'n>(name: &'n str, sources: &[&'n str], bindings: &str) -> Stamped<'n> {
    stamped(name, sources, &format!("wasm/{bindings}"))
}

/// A step whose inputs are the core and other files, and whose output is below [`FOLDER`].
fn stamped<'n>(name: &'n str, sources: &[&'n str], output: &str) -> Stamped<'n> {
    Stamped {
        name,
        inputs: [&CORE[..], sources].concat(),
        output: root().join(FOLDER).join(output),
    }
}

/// Returns the command that compiles packages in the profile `serve`. It shows its progress and the
/// errors of the compiler.
fn compiler(packages: &[&str]) -> Command {
    let common = ["build", "--lib", "--target", WASM, "--profile", "serve"];
    let mut build = cargo(&[&common[..], packages].concat());
    build.stderr(Stdio::inherit());
    build
}

fn bind(host: BindingsFor, name: &str) -> Result<(), String> {
    let module = format!("target/{WASM}/serve/{name}.wasm");
    bindings::write(host, &module, WASM_FOLDER)
}

/// Bundles the worker.
fn bundled_worker() -> Result<(), String> {
    let sources = ["worker", "package-lock.json"];
    stamped("serve-worker", &sources, "worker/index.js").unless_fresh(|| {
        step("bundle the worker", "1 s", || {
            bundle_worker(WASM_FOLDER, &format!("{FOLDER}/worker"))
        })
    })
}

/// The OpenAPI document and the sample.
fn files() -> Stamped<'static> {
    let sources = ["www/wasm", "xtask/files.rs", "xtask/files.mjs"];
    stamped("serve-files", &sources, "sample/compositions.ndjson")
}

/// Writes the OpenAPI document and the sample, by the module of the page, so that the core is not
/// compiled for this machine as well.
fn write_files() -> Result<(), String> {
    files().unless_fresh(|| {
        let [ehrs, compositions] = SAMPLE;
        let files = ["xtask/files.mjs", "--wasm", WASM_FOLDER, "--out", FOLDER];
        let size = ["--ehrs", ehrs, "--compositions", compositions];
        run_silently(command("node", &files).args(size))
    })
}

/// The files of the page.
fn page() -> Stamped<'static> {
    let sources = ["www", "package-lock.json", "xtask/files.rs"];
    stamped("serve-page", &sources, "www/index.html")
}

/// Bundles the page.
fn bundled_page() -> Result<(), String> {
    page().unless_fresh(|| {
        step("bundle the page", "3 s", || {
            let modules = PageModules {
                core: WASM_FOLDER,
                tables: WASM_FOLDER,
            };
            let openapi = format!("{FOLDER}/openapi.json");
            bundle_page(modules, &format!("{FOLDER}/www"), &openapi)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{PAGE, TABLES, WASM, WORKER};
    use crate::process::{cargo, output_of};

    /// Returns the crates that cargo compiles for a selection of packages, with their features.
    fn crates(selection: &[&str]) -> BTreeSet<String> {
        let form = ["--prefix", "none", "--format", "{p} [{f}]"];
        let tree = ["tree", "--target", WASM, "--edges", "normal,build"];
        let printed = output_of(&mut cargo(&[&tree[..], &form, selection].concat())).unwrap();
        let lines = printed.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| line.trim_end_matches(" (*)").to_owned())
            .collect()
    }

    #[test]
    fn later_runs_of_cargo_compile_no_crate_of_the_worker_again() {
        let worker = crates(&WORKER);
        let name = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
        let names: BTreeSet<String> = worker.iter().map(name).collect();
        let again = |selection: &[&str]| {
            let lines = crates(selection).into_iter();
            let other = lines.filter(|line| names.contains(&name(line)) && !worker.contains(line));
            other.map(|line| name(&line)).collect::<Vec<_>>()
        };
        assert_eq!(again(&PAGE), Vec::<String>::new());
        // No crate of the core in the module of tables depends on these.
        assert_eq!(again(&TABLES), ["chrono", "num-traits"]);
    }
}
