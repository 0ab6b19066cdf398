//! Execution of other programs from the project's root. Commands are printed, and errors name the
//! command.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the project's root folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The corpus beside the project, which is used if no other is named.
pub const DEFAULT_CORPUS: &str = "../shared/corpus";

/// Returns the corpus: the named one, that of `AQLITE_CORPUS`, or the one beside the project if it
/// exists. A named corpus must exist.
pub fn corpus(named: Option<&str>) -> Result<Option<PathBuf>, String> {
    let named = named
        .map(str::to_owned)
        .or_else(|| std::env::var("AQLITE_CORPUS").ok());
    let folder = root().join(named.as_deref().unwrap_or(DEFAULT_CORPUS));
    match (
        folder.canonicalize().ok().filter(|path| path.is_dir()),
        named,
    ) {
        (None, Some(named)) => Err(format!("the corpus `{named}` does not exist")),
        (found, _) => Ok(found),
    }
}

/// Returns a command that runs in the project's root.
pub fn command(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    // Cargo describes the package of this program in variables. Build scripts that read a variable of
    // the same name, as that of `ring` does, would run again whenever another program calls cargo.
    for (name, _) in std::env::vars_os() {
        let is_of_package =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns a command of the cargo that runs this program. It writes into `target`, from where the
/// next steps read, also if the user's cargo writes into another folder.
pub fn cargo(args: &[&str]) -> Command {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut cargo = command(program, args);
    cargo.env("CARGO_TARGET_DIR", root().join("target"));
    cargo
}

/// The packages of all tests in the profile `checked`. Cargo unites the features of dependencies over
/// the selected packages, so each selection compiles the core once more.
pub const PACKAGES: [&str; 3] = ["--workspace", "--exclude", "aqlite-bench"];

/// The variable with [`PACKAGES`] for tests that call cargo themselves.
pub const PACKAGES_VARIABLE: &str = "AQLITE_TEST_PACKAGES";

/// Returns `cargo test` in the profile `checked`.
pub fn checked_tests(args: &[&str]) -> Command {
    let profile = ["test", "--quiet", "--no-fail-fast", "--profile", "checked"];
    let mut tests = cargo(&[&profile, &PACKAGES[..], args].concat());
    tests.env(PACKAGES_VARIABLE, PACKAGES.join(" "));
    tests
}

/// The compiler settings of the example programs of the core. They write data for other steps.
#[derive(Clone, Copy)]
pub enum Examples {
    /// Those of development: the core is compiled quickly.
    Quick,
    /// Those of the tests, which have compiled the core already.
    OfTests,
}

/// Compiles an example program of the core. Returns the command that runs it.
pub fn example(name: &str, examples: Examples) -> Result<Command, String> {
    let Examples::OfTests = examples else {
        return Ok(cargo(&["run", "--quiet", "--example", name, "--"]));
    };
    let profile = ["build", "--quiet", "--profile", "checked"];
    run(&mut cargo(
        &[&profile, &PACKAGES[..], &["--example", name]].concat(),
    ))?;
    let program = format!("target/checked/examples/{name}");
    Ok(command(root().join(program), &[]))
}

/// Formats a command as a person would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    let words = std::iter::once(program)
        .chain(command.get_args())
        .map(|w| w.to_string_lossy().into_owned());
    words
        .map(|w| {
            if w.is_empty() || w.contains(' ') {
                format!("'{w}'")
            } else {
                w
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command to its end. Its output is written to the terminal.
pub fn run(command: &mut Command) -> Result<(), String> {
    let name = shown(command);
    println!("$ {name}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed: {status}")),
        Err(error) => Err(format!("`{name}` could not be started: {error}")),
    }
}

/// Runs a command to its end. Its output becomes part of the error if it fails; `command` may
/// direct its standard error elsewhere.
pub fn run_silently(command: &mut Command) -> Result<(), String> {
    let name = shown(command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let output = child
        .and_then(|child| child.wait_with_output())
        .map_err(|error| format!("`{name}` could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "`{name}` failed: {}\n{said}{errors}",
        output.status
    ))
}

/// Runs a command, shows its output as it comes, and returns the lines of standard output that
/// `keep` accepts.
pub fn run_keeping(
    command: &mut Command,
    keep: fn(&str) -> bool,
) -> (Vec<String>, Result<(), String>) {
    let name = shown(command);
    println!("$ {name}");
    let mut kept = Vec::new();
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return (kept, Err(format!("`{name}` could not be started: {error}"))),
    };
    let lines = child.stdout.take().into_iter();
    for line in lines.flat_map(|output| BufReader::new(output).split(b'\n').map_while(Result::ok)) {
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        if keep(&line) {
            kept.push(line.trim_end().to_owned());
        }
    }
    let outcome = match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed: {status}")),
        Err(error) => Err(format!("`{name}`: {error}")),
    };
    (kept, outcome)
}

/// Returns the standard output of a command, trimmed. `None` if it fails or does not exist.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the path of a program in the search path.
pub fn find(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}
