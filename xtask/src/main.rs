//! The project's commands: `cargo xtask <command>`.
#![allow(missing_docs, reason = "a program, not a library")]

mod gen_rm;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.first().map(String::as_str) {
        Some("gen-rm") => gen_rm::run(),
        _ => Err("usage: cargo xtask gen-rm".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
