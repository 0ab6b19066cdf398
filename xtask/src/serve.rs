//! `cargo xtask serve`: the repository and the page on this machine, with local D1 and KV.
//!
//! The command builds the worker, and then becomes the server, so that the REST interface answers
//! soon. The server starts the command `second-stage` of this program, which builds the page and
//! loads the sample, and stops it when it stops itself.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::development::{self, Built};
use crate::options::Options;
use crate::process::{command, root, run_silently};
use crate::progress::step;
use crate::stamp::unless_fresh;
use crate::tools::{npm_packages, npm_program};
use crate::{bundle, sample};

pub fn run_server(args: &[String]) -> Result<(), String> {
    let options = Options::read(
        args,
        &["port", "state", "system-id", "terminology"],
        &["no-sample", "admin", "release"],
    )?;
    let port = port_of(&options)?;
    TcpListener::bind(("127.0.0.1", port))
        .map_err(|e| format!("port {port} on 127.0.0.1: {e}; choose another by --port"))?;
    let here = std::env::current_dir().map_err(|e| e.to_string())?;
    let state = options.given("state").map_or_else(
        || root().join(".wrangler/state"),
        |folder| here.join(folder),
    );
    let prepare = || {
        step("install the npm packages", "10 s", npm_packages)?;
        migrate(&state)
    };
    let built = if options.has("release") {
        prepare()?;
        bundle::all()?;
        sample::generate()?;
        Built::deployed()
    } else {
        development::build_worker(prepare)?
    };
    let mut server = server(port, &state, &built, &options);
    add_second_stage(&mut server, port, &built, &options)?;
    become_process(&mut server)
}

/// Adds the command line of the second stage to that of the server, which starts it.
fn add_second_stage(
    server: &mut Command,
    port: u16,
    built: &Built,
    options: &Options,
) -> Result<(), String> {
    server
        .arg("--")
        .arg(std::env::current_exe().map_err(|e| e.to_string())?)
        .args(["second-stage", "--port", &port.to_string()]);
    if !options.has("no-sample") {
        server.arg("--sample").arg(&built.sample);
    }
    if options.has("admin") {
        server.arg("--admin");
    }
    if !built.has_page {
        server.arg("--build-page");
    }
    Ok(())
}

fn port_of(options: &Options) -> Result<u16, String> {
    let port = options.value("port", "8787");
    port.parse()
        .map_err(|_| format!("`--port {port}`: expected a number from 1 to 65535"))
}

/// Returns a command of wrangler, silent and without network. Its log, which contains no answer of
/// the database, is written to a folder of the state, and removed.
fn wrangler(args: &[&str], log: &Path) -> Command {
    let mut wrangler = command(npm_program("wrangler"), args);
    wrangler
        .env("CI", "1")
        .env("WRANGLER_SEND_METRICS", "false")
        .env("CLOUDFLARE_CF_FETCH_ENABLED", "false")
        .env("WRANGLER_LOG_PATH", log);
    wrangler
}

fn migrate(state: &Path) -> Result<(), String> {
    let (to, log) = (state.to_string_lossy(), state.join("tmp/log"));
    let name = format!(
        "migrations-{:x}",
        to.bytes()
            .fold(5381_u64, |h, b| h.wrapping_mul(33) ^ u64::from(b))
    );
    let done = unless_fresh(
        &name,
        &["migrations", "migrations-log", "wrangler.toml"],
        &state.join("v3/d1"),
        || {
            ["DB", "LOG"].iter().try_for_each(|name| {
                let apply = ["d1", "migrations", "apply", name, "--local"];
                run_silently(wrangler(&apply, &log).args(["--persist-to", &to]))
            })
        },
    );
    match std::fs::remove_dir_all(&log) {
        Err(error) if log.exists() => Err(format!("{}: {error}", log.display())),
        _ => done,
    }
}

/// Returns the program that runs the worker, without proxy, inspector and log files.
fn server(port: u16, state: &Path, built: &Built, options: &Options) -> Command {
    let mut server = command("node", &["xtask/serve.mjs", "--port", &port.to_string()]);
    server.arg("--state").arg(state);
    server.arg("--worker").arg(&built.worker);
    server.arg("--page").arg(&built.page);
    if !built.has_page {
        server.args(["--waiting-page", "xtask/waiting"]);
    }
    let mut set = |name: &str, value: &str| {
        server.args(["--var", &format!("{name}={value}")]);
    };
    set("AUTH", "none");
    set("SYSTEM_ID", options.value("system-id", "aqlite.local"));
    if options.has("admin") {
        set("ADMIN", "true");
    }
    if let Some(base) = options.given("terminology") {
        set("TERMINOLOGY_URL", base);
    }
    server
}

/// Replaces this process by the server, so that a signal to it reaches the server.
#[cfg(unix)]
fn become_process(command: &mut Command) -> Result<(), String> {
    use std::os::unix::process::CommandExt;
    Err(format!(
        "the server could not be started: {}",
        command.exec()
    ))
}

#[cfg(not(unix))]
fn become_process(command: &mut Command) -> Result<(), String> {
    crate::process::run(command)
}

/// Loads the sample into the server, which answers already, and prints the addresses. With
/// `--build-page` it prints them first, because the build of page and sample takes a minute.
pub fn second_stage(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["port", "sample"], &["admin", "build-page"])?;
    let port = port_of(&options)?;
    let load = || {
        if let Some(folder) = options.given("sample") {
            let outcome = sample::load(port, Path::new(folder));
            println!("{}", outcome.unwrap_or_else(|e| format!("no sample: {e}")));
        }
    };
    let greet = |page| println!("{}", welcome(port, page, options.has("admin")));
    if options.has("build-page") {
        greet("  (follows when it is compiled: usually 1 minute)");
        return development::build_page(load);
    }
    load();
    greet("");
    Ok(())
}

fn welcome(port: u16, page: &str, admin: bool) -> String {
    let base = format!("http://127.0.0.1:{port}");
    let admin = if admin {
        "  ADMIN=true: physical deletes and reset are open as well\n"
    } else {
        ""
    };
    format!(
        "
aqlite is ready (Ctrl-C stops it)

  page                 {base}/{page}
  REST, native         {base}/v1
  REST, openEHR ITS    {base}/rest/openehr/v1

  AUTH=none: access is open to every program on this machine, and to no page of another site; never deploy it so
{admin}
  curl -s {base}/v1/query/aql -H 'content-type: application/json' \\
    -d '{{\"q\":\"SELECT c/name/value AS name, count(*) AS n FROM EHR e CONTAINS COMPOSITION c\"}}'
"
    )
}
