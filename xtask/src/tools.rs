//! The tools that the commands need beside cargo, a C compiler and Node. They are found, or
//! installed once.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::process::{cargo, command, find, output_of, root, run, run_silently};

/// The target of Cloudflare and of browsers.
pub const WASM: &str = "wasm32-unknown-unknown";
/// The target of unit tests in wasm: it has files and arguments.
pub const WASI: &str = "wasm32-wasip1";

/// Installs the standard library of a target.
pub fn target(name: &str) -> Result<(), String> {
    let folder = output_of(&mut command(
        "rustc",
        &["--print", "target-libdir", "--target", name],
    ));
    if folder.is_some_and(|f| PathBuf::from(f).is_dir()) {
        return Ok(());
    }
    println!("the target {name} is missing: installing it");
    run(&mut command("rustup", &["target", "add", name]))
}

/// Compiles the runner of wasm-bindgen tests, and returns its path.
pub fn wasm_test_runner() -> Result<PathBuf, String> {
    own_program("wasm-test-runner", "wasm-tests")
}

/// Compiles the program that writes bindings, and returns its path.
pub fn bindings_writer() -> Result<PathBuf, String> {
    own_program("write-bindings", "bindings")
}

/// Compiles a program of this package that needs a feature, and returns its path.
fn own_program(name: &str, feature: &str) -> Result<PathBuf, String> {
    let program = ["--bin", name, "--features", feature];
    run_silently(
        cargo(&["build", "--quiet", "--package", "xtask"])
            .args(program)
            .stderr(Stdio::inherit()),
    )?;
    let folder = std::env::current_exe().map_err(|e| e.to_string())?;
    let suffix = std::env::consts::EXE_SUFFIX;
    Ok(folder.with_file_name(format!("{name}{suffix}")))
}

/// Returns `cargo-fuzz` in the tested version.
pub fn cargo_fuzz() -> Result<PathBuf, String> {
    cargo_program("cargo-fuzz", "0.13.1", &[])
}

/// Returns `cargo-mutants` in the tested version.
pub fn cargo_mutants() -> Result<PathBuf, String> {
    cargo_program("cargo-mutants", "27.1.0", &[])
}

/// Returns `mdbook` in the tested version, without its server.
pub fn mdbook() -> Result<PathBuf, String> {
    // Without optimization it compiles in half the time, and builds the site in a second.
    let options = [
        "--locked",
        "--debug",
        "--no-default-features",
        "--features",
        "search",
    ];
    cargo_program("mdbook", "0.5.4", &options)
}

fn cargo_program(name: &str, version: &str, options: &[&str]) -> Result<PathBuf, String> {
    let folder = root().join(format!("target/tools/{name}-{version}"));
    let program = folder.join("bin").join(name);
    if !program.is_file() {
        println!("{name} {version} is missing: building it, once");
        let root = folder.to_string_lossy();
        let install = ["install", "--quiet", name, "--version", version];
        run(cargo(&install).args(["--root", &root]).args(options))?;
    }
    Ok(program)
}

/// Installs the npm packages of package-lock.json.
pub fn npm_packages() -> Result<(), String> {
    let node = output_of(&mut command("node", &["--version"]))
        .ok_or("Node is missing: install Node 20 or later")?;
    let major: u32 = node
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|m| m.parse().ok())
        .unwrap_or(0);
    if major < 20 {
        return Err(format!("Node {node} is too old: install Node 20 or later"));
    }
    locked_packages("")
}

/// Installs the bundlers for the tests of the npm package.
pub fn bundlers() -> Result<(), String> {
    locked_packages("tests/package")
}

/// Installs the npm packages of the lock file in a folder.
pub fn locked_packages(folder: &str) -> Result<(), String> {
    let folder = root().join(folder);
    let lock = folder.join("package-lock.json");
    let lock = fs::read(&lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    let stamp = folder.join("node_modules/.installed-lock.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    println!(
        "npm packages of {} are missing or outdated: installing them",
        folder.display()
    );
    let install = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
    run(command("npm", &install).current_dir(&folder))?;
    fs::write(&stamp, lock).map_err(|e| format!("{}: {e}", stamp.display()))
}

/// Installs DuckDB for the tests of tables. It has a folder of its own, without a lock: a lock would
/// name the programs for all systems, and not each registry has all of them.
pub fn duckdb() -> Result<(), String> {
    let folder = root().join("tests/tables");
    let wanted = fs::read(folder.join("package.json")).map_err(|e| format!("DuckDB: {e}"))?;
    let stamp = folder.join("node_modules/.installed.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("DuckDB is missing or outdated: installing it");
    let mut install = command(
        "npm",
        &[
            "install",
            "--no-package-lock",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ],
    );
    run(install.current_dir(&folder))?;
    fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))
}

/// Returns the path of a program of the npm packages.
pub fn npm_program(name: &str) -> PathBuf {
    root().join("node_modules/.bin").join(name)
}

/// A headless browser and its driver.
pub struct Browser {
    /// The browser itself.
    pub chromium: PathBuf,
    /// Its WebDriver.
    pub driver: PathBuf,
}

/// Returns Chromium and its driver, from `CHROMIUM` and `CHROMEDRIVER` or the search path. Installs
/// them by apt-get where that is allowed.
pub fn browser() -> Result<Browser, String> {
    const INSTALL: [&str; 5] = [
        "install",
        "--yes",
        "--no-install-recommends",
        "chromium",
        "chromium-driver",
    ];
    if let Some(found) = find_browser() {
        return Ok(found);
    }
    let by_hand = format!(
        "Chromium or its driver is missing: run `sudo apt-get {}` (or set CHROMIUM and CHROMEDRIVER)",
        INSTALL.join(" ")
    );
    let is_root = output_of(&mut command("id", &["-u"])).is_some_and(|id| id == "0");
    if !is_root || find("apt-get").is_none() {
        return Err(by_hand);
    }
    println!("Chromium is missing: installing it");
    run(&mut command("apt-get", &["update", "--quiet"]))?;
    run(command("apt-get", &INSTALL).env("DEBIAN_FRONTEND", "noninteractive"))?;
    find_browser().ok_or(by_hand)
}

/// Returns Chromium and its driver, if they are installed.
pub fn find_browser() -> Option<Browser> {
    let named = |variable: &str, names: &[&str]| {
        let set = std::env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_file());
        set.or_else(|| names.iter().find_map(|name| find(name)))
    };
    Some(Browser {
        chromium: named(
            "CHROMIUM",
            &[
                "chromium",
                "chromium-browser",
                "google-chrome",
                "google-chrome-stable",
            ],
        )?,
        driver: named("CHROMEDRIVER", &["chromedriver"])?,
    })
}
