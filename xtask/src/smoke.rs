//! `cargo xtask smoke`: a fresh deployment, tested from outside.

use crate::options::Options;
use crate::process::{command, run};

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["base", "token"], &["no-page"])?;
    let base = options.given("base").ok_or("`--base URL` is missing")?;
    let mut smoke = command("node", &["xtask/smoke.mjs", "--base", base]);
    if let Some(token) = options.given("token") {
        // Other users of the machine see arguments, but not the environment.
        smoke.env("AQLITE_TOKEN", token);
    }
    if options.has("no-page") {
        smoke.arg("--no-page");
    }
    run(&mut smoke)
}
