//! Builds of the worker (dist/worker), the page (dist/www) and the npm package (dist/package).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::bindings::{self, BindingsFor};
use crate::process::{Examples, cargo, command, example, output_of, root, run, run_silently};
use crate::stamp::unless_fresh;
use crate::tools::{WASM, npm_packages, npm_program, target};

/// The sources of both wasm modules.
pub const CORE: [&str; 5] = [
    "crates",
    "src",
    "Cargo.toml",
    "Cargo.lock",
    ".cargo/config.toml",
];

/// Builds the worker and the page if they changed.
pub fn all() -> Result<(), String> {
    worker()?;
    page()
}

/// Builds the worker if it changed.
pub fn worker() -> Result<(), String> {
    target(WASM)?;
    npm_packages()?;
    let script = root().join("dist/worker/index.js");
    let inputs = [&CORE[..], &["worker", "package-lock.json"]].concat();
    unless_fresh("worker", &inputs, &script, || {
        compile("aqlite-worker", "worker", &[])?;
        let module = format!("target/{WASM}/worker/aqlite_worker.wasm");
        bindings::write(BindingsFor::Worker, &module, "target/wasm/worker")?;
        bundle_worker("target/wasm/worker", "dist/worker")
    })
}

/// Bundles the bindings of the worker in the folder `wasm` with its entry point into the folder
/// `out`.
pub fn bundle_worker(wasm: &str, out: &str) -> Result<(), String> {
    run_silently(&mut esbuild(&[
        "worker/entry.js",
        "--bundle",
        "--format=esm",
        "--target=es2022",
        "--minify",
        &format!("--alias:aqlite-worker=./{wasm}/aqlite_worker.js"),
        "--external:./aqlite_worker_bg.wasm",
        "--external:cloudflare:*",
        &format!("--outfile={out}/index.js"),
    ]))?;
    let module = "aqlite_worker_bg.wasm";
    copy(&format!("{wasm}/{module}"), &format!("{out}/{module}"))
}

/// Builds the module for browsers with a profile and these options of `cargo build`.
fn module(name: &str, profile: &str, options: &[&str], folder: &str) -> Result<(), String> {
    let inputs = [&CORE[..], &["www/wasm"]].concat();
    let written = root().join(folder).join("aqlite_wasm.js");
    unless_fresh(name, &inputs, &written, || {
        compile("aqlite-wasm", profile, options)?;
        let module = format!("target/{WASM}/{profile}/aqlite_wasm.wasm");
        bindings::write(BindingsFor::Browser, &module, folder)
    })
}

/// Builds the module that writes tables of Arrow and Parquet, for the page and the npm package. It
/// is loaded for the first table only, so it is compiled for size.
fn module_of_tables() -> Result<(), String> {
    /// Held while the module is built. The page and the package may be built at the same time.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = "target/arrow-wasm";
    let inputs = [&CORE[..], &["www/arrow"]].concat();
    let written = root().join(folder).join("aqlite_arrow_wasm.js");
    unless_fresh("module of tables", &inputs, &written, || {
        compile("aqlite-arrow-wasm", "wasm", &[])?;
        let module = format!("target/{WASM}/wasm/aqlite_arrow_wasm.wasm");
        bindings::write(BindingsFor::Browser, &module, folder)
    })
}

/// Builds the npm package (dist/package) and packs it (dist/aqlite.tgz).
pub fn package() -> Result<(), String> {
    target(WASM)?;
    npm_packages()?;
    // For speed, and with the complete REST interface.
    module(
        "module of the package",
        "release",
        &[],
        "target/package-wasm",
    )?;
    module_of_tables()?;
    let packed = root().join("dist/aqlite.tgz");
    let inputs = [&CORE[..], &PACKAGE_SOURCES].concat();
    unless_fresh("package", &inputs, &packed, || {
        let program = ["www/package/build.mjs", "--wasm", "target/package-wasm"];
        let folders = ["--arrow", "target/arrow-wasm", "--out", "dist/package"];
        run(command("node", &program).args(folders))?;
        pack(&packed)
    })?;
    println!("built dist/package, and packed it as dist/aqlite.tgz");
    Ok(())
}

/// The sources of the npm package, beside the core.
const PACKAGE_SOURCES: [&str; 7] = [
    "www/arrow",
    "www/wasm",
    "www/package",
    "www/src",
    "www/notices.mjs",
    "package.json",
    "package-lock.json",
];

/// Packs dist/package into a file.
fn pack(packed: &Path) -> Result<(), String> {
    let program = ["pack", "--silent", "./dist/package"];
    let name = output_of(command("npm", &program).args(["--pack-destination", "dist"]));
    let name = name.ok_or("`npm pack` failed")?;
    fs::rename(root().join("dist").join(&name), packed).map_err(|e| format!("{name}: {e}"))
}

/// Builds the page if it changed. Its own build script bundles it.
pub fn page() -> Result<(), String> {
    page_by(Examples::Quick)
}

/// Builds the page if it changed, with the OpenAPI document of a program with these settings.
pub fn page_by(examples: Examples) -> Result<(), String> {
    // For a small first load: compiled for size, and without the parts that only servers need.
    let options = ["--no-default-features"];
    module("module of the page", "wasm", &options, "target/www-wasm")?;
    module_of_tables()?;
    let index = root().join("dist/www/index.html");
    let inputs = [
        &CORE[..],
        &["www", "package-lock.json", "examples/openapi.rs"],
    ]
    .concat();
    unless_fresh("page", &inputs, &index, || {
        let modules = PageModules {
            core: "target/www-wasm",
            tables: "target/arrow-wasm",
        };
        bundle_page(modules, "dist/www", &openapi(examples)?)
    })
}

/// The folders with the modules of the page and their bindings.
#[derive(Clone, Copy)]
pub struct PageModules<'f> {
    /// The core.
    pub core: &'f str,
    /// The writer of Arrow and Parquet.
    pub tables: &'f str,
}

/// Bundles the page with its modules into the folder `out`.
pub fn bundle_page(modules: PageModules<'_>, out: &str, openapi: &str) -> Result<(), String> {
    let PageModules { core, tables } = modules;
    let program = ["www/build.mjs", "--wasm", core, "--arrow", tables];
    let options = ["--out", out, "--openapi", openapi];
    run_silently(command("node", &program).args(options))
}

/// Writes the OpenAPI document of the REST interface, by an example program of the core. Returns
/// the file name.
fn openapi(examples: Examples) -> Result<String, String> {
    let file = root().join("target/openapi.json");
    let printed = example("openapi", examples)?
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("openapi: {e}"))?;
    if !printed.status.success() {
        return Err(format!(
            "the OpenAPI document could not be written: {}",
            printed.status
        ));
    }
    fs::write(&file, printed.stdout).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(file.to_string_lossy().into_owned())
}

/// Compiles a crate to a wasm module with a profile.
///
/// In the profiles `wasm` and `worker` the module is the only output. If cargo also wrote the library that tests
/// of the facade link, as `cargo build` does, it would ignore `lto` of the profile. For the npm
/// package it shall: with `lto` its module is 17 % larger, and not measurably faster.
fn compile(package: &str, profile: &str, options: &[&str]) -> Result<(), String> {
    let of_package = ["--profile", profile, "--package", package];
    let common = [
        &["--quiet", "--lib", "--target", WASM],
        &of_package[..],
        options,
    ]
    .concat();
    if ["wasm", "worker"].contains(&profile) {
        let mut build = cargo(&["rustc", "--crate-type", "cdylib"]);
        return run(build.args(common).arg("--").args(FOR_SIZE));
    }
    run(cargo(&["build"]).args(common))
}

/// Options of the last step of the compiler, which optimizes all crates together, for small modules.
///
/// The passes that they leave out keep values that are cheap to compute in local variables, across
/// loops or branches. In the page's module the numbers of these variables take 17 kB after brotli,
/// in the worker's module 30 kB after gzip, and no time is gained: the compiler of V8 optimizes
/// again. The last option copies fewer blocks whose branch is known for one of their predecessors.
const FOR_SIZE: [&str; 7] = [
    "-Cllvm-args=-disable-machine-licm",
    "-Cllvm-args=-disable-lsr",
    "-Cllvm-args=-disable-lftr",
    "-Cllvm-args=-enable-pre=false",
    "-Cllvm-args=-enable-load-pre=false",
    "-Cllvm-args=-replexitval=never",
    "-Cllvm-args=-jump-threading-threshold=2",
];

fn esbuild(args: &[&str]) -> Command {
    let mut esbuild = command(npm_program("esbuild"), &["--log-level=warning"]);
    esbuild.args(args);
    esbuild
}

fn copy(from: &str, to: &str) -> Result<(), String> {
    fs::copy(root().join(from), root().join(to))
        .map(|_| ())
        .map_err(|e| format!("{from} to {to}: {e}"))
}
