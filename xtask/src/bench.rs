//! `cargo xtask bench`: the six questions, native and in wasm, beside SQLite over JSON text.

use crate::options::Options;
use crate::process::{cargo, run};

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::read(args, &["compositions"], &[])?;
    let sizes = options.value("compositions", "10000,100000");
    self::run_native(sizes)
}

fn run_native(sizes: &str) -> Result<(), String> {
    run(&mut cargo(&["bench", "--quiet", "--bench", "questions", "--", "--compositions", sizes]))
}
